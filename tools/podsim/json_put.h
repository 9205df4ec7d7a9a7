/*
 * json_put.h: a member of an object in one call.
 */
#ifndef TOOLS_PODSIM_JSON_PUT_H
#define TOOLS_PODSIM_JSON_PUT_H

#include "sim/base/json.h"

static inline void put_text(struct json_writer *json, const char *key, const char *value)
{
    json_write_key(json, key);
    json_write_string(json, value);
}

static inline void put_count(struct json_writer *json, const char *key, uint64_t value)
{
    json_write_key(json, key);
    json_write_unsigned(json, value);
}

static inline void put_real(struct json_writer *json, const char *key, double value)
{
    json_write_key(json, key);
    json_write_real(json, value);
}

#endif
