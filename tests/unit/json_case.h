/*
 * json_case.h: JSON of a text, and why there is none.
 */
#ifndef TESTS_UNIT_JSON_CASE_H
#define TESTS_UNIT_JSON_CASE_H

#include <string.h>

#include "sim/base/json.h"
#include "tests/support/case.h"

static struct error error;
static struct json *read_bytes(const char *bytes, uint64_t count)
{
    struct json *json = NULL;
    memset(&error, 0, sizeof error);
    if (json_read_text(case_arena, "file.json", bytes, count, &json, &error) != STATUS_OK)
        return NULL;
    return json;
}

static struct json *parse(const char *text)
{
    return read_bytes(text, strlen(text));
}

#endif
