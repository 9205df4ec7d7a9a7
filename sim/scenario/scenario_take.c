/*
 * scenario_take.c: readers of optional members.
 */
#include <stddef.h>

#include "sim/base/json.h"
#include "sim/scenario/scenario_parts.h"

enum status scenario_take_text(struct json *object, const char *key, const char **value,
                               struct error *reterr)
{
    struct json *member = json_take(object, key);
    return member == NULL ? STATUS_OK : json_as_string(member, value, reterr);
}

enum status scenario_take_flag(struct json *object, const char *key, bool *value,
                               struct error *reterr)
{
    struct json *member = json_take(object, key);
    return member == NULL ? STATUS_OK : json_as_boolean(member, value, reterr);
}

enum status scenario_take_count(struct json *object, const char *key, uint32_t least, uint32_t most,
                                uint32_t *value, struct error *reterr)
{
    struct json *member = json_take(object, key);
    int64_t count = 0;
    if (member == NULL) return STATUS_OK;
    STATUS_TRY(json_as_count(member, least, most, &count, reterr));
    *value = (uint32_t)count;
    return STATUS_OK;
}

enum status scenario_take_choice(struct json *object, const char *key, const char *const *choices,
                                 uint32_t *value, struct error *reterr)
{
    struct json *member = json_take(object, key);
    return member == NULL ? STATUS_OK : json_choice(member, choices, value, reterr);
}

enum status scenario_need_array(struct json *json, uint32_t least, uint32_t most,
                                struct error *reterr)
{
    if (json_kind(json) != JSON_ARRAY)
        return error_set(reterr, STATUS_INVALID, json_where(json), "must be an array");
    uint32_t const count = json_count(json);
    if (count < least || count > most)
        return error_set(reterr, STATUS_INVALID, json_where(json), "has %u elements; the %s is %u",
                         count, count < least ? "minimum" : "maximum",
                         count < least ? least : most);
    return STATUS_OK;
}
