/* Members of a config.json: counts, flags and lists. */
#include <stddef.h>

#include "sim/base/json.h"
#include "sim/model/model_read_parts.h"

struct json *model_take_set(struct json *object, const char *key)
{
    struct json *value = json_take(object, key);
    return value == NULL || json_kind(value) == JSON_NULL ? NULL : value;
}

enum status model_need_count(struct json *document, const char *key, int64_t most,
                             uint64_t *ret_count, struct error *reterr)
{
    struct json *value = NULL;
    int64_t count = 0;
    STATUS_TRY(json_need(document, key, &value, reterr));
    STATUS_TRY(json_as_integer(value, 1, most, &count, reterr));
    *ret_count = (uint64_t)count;
    return STATUS_OK;
}

enum status model_take_count(struct json *document, const char *key, int64_t most,
                             uint64_t otherwise, uint64_t *ret_count, struct error *reterr)
{
    *ret_count = otherwise;
    if (model_take_set(document, key) == NULL) return STATUS_OK;
    return model_need_count(document, key, most, ret_count, reterr);
}

enum status model_take_flag(struct json *document, const char *key, bool otherwise, bool *ret_flag,
                            struct error *reterr)
{
    struct json *value = model_take_set(document, key);
    *ret_flag = otherwise;
    return value == NULL ? STATUS_OK : json_as_boolean(value, ret_flag, reterr);
}

enum status model_take_list(struct json *document, const char *key, struct json **ret_list,
                            struct error *reterr)
{
    struct json *value = model_take_set(document, key);
    *ret_list = value;
    if (value == NULL || json_kind(value) == JSON_ARRAY) return STATUS_OK;
    return error_set(reterr, STATUS_INVALID, json_where(value), "must be a list");
}
