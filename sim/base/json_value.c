/*
 * json_value.c: what readers ask of a value.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/json.h"
#include "sim/base/json_node.h"
#include "sim/base/letter.h"
#include "sim/base/name.h"
#include "sim/base/quantity.h"
#include "sim/base/scaled.h"
#include "sim/base/strbuf.h"

static const char *const kind_names[] = {"null",     "a boolean", "an integer", "a number",
                                         "a string", "an array",  "an object"};

enum json_kind json_kind(const struct json *json)
{
    return (enum json_kind)json->kind;
}

/* "~" and "/" in keys are written as RFC 6901 has it. */
static void where_add_key(struct strbuf *text, const char *key)
{
    for (; *key != '\0'; key++) {
        if (*key == '~' || *key == '/')
            strbuf_add(text, "~%c", *key == '~' ? '0' : '1');
        else
            strbuf_add_bytes(text, key, 1);
    }
}

const char *json_where(const struct json *json)
{
    const struct json *path[2 * JSON_DEPTH_MAX];
    uint32_t depth = 0;
    for (const struct json *node = json; node->parent != NULL; node = node->parent) {
        SIM_ASSERT(depth < 2 * JSON_DEPTH_MAX);
        path[depth++] = node;
    }
    struct strbuf text = {0};
    while (depth > 0) {
        const struct json *node = path[--depth];
        strbuf_add_bytes(&text, "/", 1);
        if (node->key != NULL)
            where_add_key(&text, node->key);
        else
            strbuf_add(&text, "%u", node->index);
    }
    char *where = text.bytes == NULL ? NULL : arena_text(json->document->arena, text.bytes);
    strbuf_free(&text);
    return where == NULL ? "" : where;
}

enum status json_refuse_kind(const struct json *json, const char *wanted, struct error *reterr)
{
    return error_set(reterr, STATUS_INVALID, json_where(json), "must be %s, but is %s", wanted,
                     kind_names[json->kind]);
}

struct json *json_take(struct json *object, const char *key)
{
    if (object->kind != NODE_OBJECT) return NULL;
    for (struct json *member = object->value.first; member != NULL; member = member->next) {
        if (strcmp(member->key, key) == 0) {
            member->taken = true;
            return member;
        }
    }
    return NULL;
}

enum status json_need(struct json *object, const char *key, struct json **ret_json,
                      struct error *reterr)
{
    STATUS_TRY(json_as_object(object, reterr));
    struct json *member = json_take(object, key);
    if (member == NULL)
        return error_set(reterr, STATUS_INVALID, json_where(object), "\"%s\" is missing", key);
    *ret_json = member;
    return STATUS_OK;
}

enum status json_as_object(struct json *json, struct error *reterr)
{
    return json->kind == NODE_OBJECT ? STATUS_OK : json_refuse_kind(json, "an object", reterr);
}

struct json *json_rest(struct json *object, const char **ret_key)
{
    struct json *member = object->value.first;
    while (member != NULL && member->taken) member = member->next;
    if (member != NULL) *ret_key = member->key;
    return member;
}

enum status json_end(struct json *object, const char *const *known, struct error *reterr)
{
    const char *key = NULL;
    STATUS_TRY(json_as_object(object, reterr));
    struct json *member = json_rest(object, &key);
    if (member == NULL) return STATUS_OK;
    return error_set(reterr, STATUS_INVALID, json_where(member), "unknown key \"%.64s\"%s", key,
                     name_offer(key, known, "; the nearest known is \"", "\"", NULL).text);
}

const char *json_key_at(struct json *object, uint32_t index)
{
    if (object->kind != NODE_OBJECT) return NULL;
    struct json *member = object->value.first;
    while (member != NULL && index-- > 0) member = member->next;
    return member == NULL ? NULL : member->key;
}

uint32_t json_count(const struct json *array)
{
    return array->kind == NODE_ARRAY || array->kind == NODE_OBJECT ? array->count : 0;
}

struct json *json_at(struct json *array, uint32_t index)
{
    if (array->kind != NODE_ARRAY || index >= array->count) return NULL;
    return &array->value.first[index];
}

enum status json_as_boolean(struct json *json, bool *ret_value, struct error *reterr)
{
    if (json->kind != NODE_BOOLEAN) return json_refuse_kind(json, "true or false", reterr);
    *ret_value = json->value.boolean;
    return STATUS_OK;
}

static enum status refuse_range(const struct json *json, int64_t value, int64_t least, int64_t most,
                                struct error *reterr)
{
    if (value >= least && value <= most) return STATUS_OK;
    return error_set(reterr, STATUS_INVALID, json_where(json), "%lld is %s %lld", (long long)value,
                     value < least ? "below the minimum" : "above the maximum",
                     (long long)(value < least ? least : most));
}

/* Of JSON 4, 4.0 and 4e0 are one number. 2^63 and above are no int64_t. */
static bool is_whole(double value)
{
    return value >= -0x1p63 && value < 0x1p63 && (double)(int64_t)value == value;
}

/* Says the number in as few digits as tell it from its neighbours. */
static enum status refuse_fraction(const struct json *json, struct error *reterr)
{
    enum { DIGITS_MOST = 17, TEXT_BYTES = 32 };
    double const value = json->value.real;
    char text[TEXT_BYTES];
    for (int digits = 6; digits <= DIGITS_MOST; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value) break;
    }
    return error_set(reterr, STATUS_INVALID, json_where(json), "%s is not a whole number%s", text,
                     fabs(value) < 0x1p63 ? "" : " below 2^63");
}

enum status json_as_integer(struct json *json, int64_t least, int64_t most, int64_t *ret_value,
                            struct error *reterr)
{
    if (json->kind == NODE_REAL && !is_whole(json->value.real))
        return refuse_fraction(json, reterr);
    if (json->kind != NODE_REAL && json->kind != NODE_INTEGER)
        return json_refuse_kind(json, "an integer", reterr);
    *ret_value = json->kind == NODE_REAL ? (int64_t)json->value.real : json->value.integer;
    return refuse_range(json, *ret_value, least, most, reterr);
}

static enum status refuse_count(const struct json *json, int64_t most, struct error *reterr)
{
    bool const is_large = most >= INT64_C(1) << 22;
    return json_refuse_kind(json, is_large ? "an integer such as 4096 or \"4M\"" : "an integer",
                            reterr);
}

enum status json_as_count(struct json *json, int64_t least, int64_t most, int64_t *ret_value,
                          struct error *reterr)
{
    bool const is_number = json->kind == NODE_INTEGER || json->kind == NODE_REAL;
    if (is_number) return json_as_integer(json, least, most, ret_value, reterr);
    if (json->kind != NODE_STRING) return refuse_count(json, most, reterr);
    const char *text = NULL;
    STATUS_TRY(json_as_string(json, &text, reterr));
    uint64_t number = 0;
    const char *unit = "";
    enum scaled const found = scaled_read(text, INT64_MAX, &number, &unit);
    if (found == SCALED_NO_NUMBER && (text[*text == '-'] < '0' || text[*text == '-'] > '9'))
        return refuse_count(json, most, reterr);
    if (found == SCALED_NO_NUMBER || unit[0] != '\0')
        return error_set(reterr, STATUS_INVALID, json_where(json),
                         "\"%.32s\" is no count; one is written 4194304 or \"4M\" (K, M, G, T, "
                         "P: powers of 1024)",
                         text);
    if (found == SCALED_NOT_WHOLE)
        return error_set(reterr, STATUS_INVALID, json_where(json),
                         "\"%.32s\" is not a whole number", text);
    *ret_value = (int64_t)number;
    if (found == SCALED_TOO_LARGE || *ret_value > most)
        return error_set(reterr, STATUS_INVALID, json_where(json),
                         "\"%.32s\" is above the maximum %lld", text, (long long)most);
    return refuse_range(json, *ret_value, least, most, reterr);
}

enum status json_as_real(struct json *json, double least, double most, double *ret_value,
                         struct error *reterr)
{
    if (json->kind != NODE_REAL && json->kind != NODE_INTEGER)
        return json_refuse_kind(json, "a number", reterr);
    double const value = json->kind == NODE_REAL ? json->value.real : (double)json->value.integer;
    if (!(value >= least && value <= most))
        return error_set(reterr, STATUS_INVALID, json_where(json), "%g is %s %g", value,
                         value < least ? "below the minimum" : "above the maximum",
                         value < least ? least : most);
    *ret_value = value;
    return STATUS_OK;
}

enum status json_as_string(struct json *json, const char **ret_text, struct error *reterr)
{
    if (json->kind != NODE_STRING) return json_refuse_kind(json, "a string", reterr);
    /* Texts go to terminals, pictures and timelines as they are. XML has none of C0, and neither
     * U+FFFE nor U+FFFF. */
    if (!letters_are_plain(json->value.text))
        return error_set(reterr, STATUS_INVALID, json_where(json),
                         "holds a control character; it must be one line of text");
    *ret_text = json->value.text;
    return STATUS_OK;
}

/* `text` NULL: no string. */
static enum status choice_refuse(const struct json *json, const char *text,
                                 const char *const *choices, struct error *reterr)
{
    struct strbuf wanted = {0};
    strbuf_add(&wanted, "one of ");
    for (uint32_t i = 0; choices[i] != NULL; i++)
        strbuf_add(&wanted, "%s\"%s\"", i == 0 ? "" : ", ", choices[i]);
    const char *const list = wanted.bytes == NULL ? "one of the choices" : wanted.bytes;
    enum status const status =
        text == NULL
            ? json_refuse_kind(json, list, reterr)
            : error_set(reterr, STATUS_INVALID, json_where(json), "\"%.64s\" is not %s%s", text,
                        list, name_offer(text, choices, "; the nearest is \"", "\"", "").text);
    strbuf_free(&wanted);
    return status;
}

enum status json_choice(struct json *json, const char *const *choices, uint32_t *ret_index,
                        struct error *reterr)
{
    const char *text = NULL;
    if (json->kind != NODE_STRING) return choice_refuse(json, NULL, choices, reterr);
    STATUS_TRY(json_as_string(json, &text, reterr));
    uint32_t const found = name_find(text, choices);
    if (choices[found] == NULL) return choice_refuse(json, text, choices, reterr);
    *ret_index = found;
    return STATUS_OK;
}

enum status json_as_quantity(struct json *json, enum quantity what, uint64_t *ret_amount,
                             struct error *reterr)
{
    char wanted[80];
    struct error unplaced;
    if (json->kind != NODE_STRING) {
        (void)snprintf(wanted, sizeof wanted, "%s with its unit, like \"%s\"", quantity_name(what),
                       quantity_example(what));
        return json_refuse_kind(json, wanted, reterr);
    }
    if (quantity_read(what, json->value.text, "", ret_amount, &unplaced) == STATUS_OK)
        return STATUS_OK;
    return error_set(reterr, unplaced.status, json_where(json), "%s", unplaced.message);
}
