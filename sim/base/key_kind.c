/*
 * key_kind.c: the kinds of values that any object may have.
 */
#include <math.h>
#include <stdio.h>

#include "sim/base/arena.h"
#include "sim/base/json.h"
#include "sim/base/key.h"
#include "sim/base/key_place.h"
#include "sim/base/name.h"
#include "sim/base/strbuf.h"
#include "sim/base/units.h"

enum { AMOUNT_BYTES = 40 };

static enum status flag_parse(const struct key *row, struct json *value, int64_t *ret_number,
                              struct error *reterr)
{
    bool is = false;
    (void)row;
    STATUS_TRY(json_as_boolean(value, &is, reterr));
    *ret_number = is;
    return STATUS_OK;
}

static void flag_put(struct json_writer *writer, const struct key *row, int64_t number)
{
    (void)row;
    json_write_boolean(writer, number > 0);
}

static void flag_say(struct strbuf *text, const struct key *row, int64_t number)
{
    (void)row;
    strbuf_add(text, "`%s`", number > 0 ? "true" : "false");
}

static enum status count_parse(const struct key *row, struct json *value, int64_t *ret_number,
                               struct error *reterr)
{
    return json_as_count(value, row->least, row->most, ret_number, reterr);
}

static enum status integer_parse(const struct key *row, struct json *value, int64_t *ret_number,
                                 struct error *reterr)
{
    return json_as_integer(value, row->least, row->most, ret_number, reterr);
}

static void integer_put(struct json_writer *writer, const struct key *row, int64_t number)
{
    (void)row;
    json_write_integer(writer, number);
}

static void integer_say(struct strbuf *text, const struct key *row, int64_t number)
{
    (void)row;
    strbuf_add(text, "%lld", (long long)number);
}

static enum status share_parse(const struct key *row, struct json *value, int64_t *ret_number,
                               struct error *reterr)
{
    double share = 0;
    STATUS_TRY(json_as_real(value, (double)row->least / PPM_ONE, (double)row->most / PPM_ONE,
                            &share, reterr));
    *ret_number = llround(share * PPM_ONE);
    return STATUS_OK;
}

static void share_put(struct json_writer *writer, const struct key *row, int64_t number)
{
    (void)row;
    json_write_real(writer, (double)number / PPM_ONE);
}

static void share_say(struct strbuf *text, const struct key *row, int64_t number)
{
    (void)row;
    strbuf_add(text, "%g", (double)number / PPM_ONE);
}

static enum status choice_parse(const struct key *row, struct json *value, int64_t *ret_number,
                                struct error *reterr)
{
    uint32_t chosen = 0;
    enum status const status = json_choice(value, row->choices, &chosen, reterr);
    if (status != STATUS_OK && row->values.instead != NULL && json_kind(value) != JSON_STRING) {
        struct error const refusal = *reterr;
        return error_set(reterr, status, json_where(value), "%s; %s", refusal.message,
                         row->values.instead);
    }
    STATUS_TRY(status);
    *ret_number = row->least + chosen;
    return STATUS_OK;
}

static void choice_put(struct json_writer *writer, const struct key *row, int64_t number)
{
    json_write_string(writer, row->choices[number - row->least]);
}

static void choice_say(struct strbuf *text, const struct key *row, int64_t number)
{
    strbuf_add(text, "`%s`", row->choices[number - row->least]);
}

/* Exactly, with the largest unit of which it is a whole number. */
static const char *amount_text(const struct key *row, int64_t amount, char buffer[AMOUNT_BYTES])
{
    const char *const *unit = row->kind->units;
    for (; amount % row->kind->step == 0 && unit[1] != NULL; unit++) amount /= row->kind->step;
    (void)snprintf(buffer, AMOUNT_BYTES, "%lld%s", (long long)amount, *unit);
    return buffer;
}

static enum status amount_parse(const struct key *row, struct json *value, int64_t *ret_number,
                                struct error *reterr)
{
    char least[AMOUNT_BYTES], most[AMOUNT_BYTES];
    const char *text = NULL;
    uint64_t amount = 0;
    STATUS_TRY(json_as_quantity(value, row->kind->quantity, &amount, reterr));
    *ret_number = amount > INT64_MAX ? INT64_MAX : (int64_t)amount;
    if (*ret_number >= row->least && *ret_number <= row->most) return STATUS_OK;
    STATUS_TRY(json_as_string(value, &text, reterr));
    return error_set(reterr, STATUS_INVALID, json_where(value),
                     "must be between %s and %s, but is %.40s", amount_text(row, row->least, least),
                     amount_text(row, row->most, most), text);
}

static void amount_put(struct json_writer *writer, const struct key *row, int64_t number)
{
    char text[AMOUNT_BYTES];
    json_write_string(writer, amount_text(row, number, text));
}

static void amount_say(struct strbuf *text, const struct key *row, int64_t number)
{
    char buffer[AMOUNT_BYTES];
    strbuf_add(text, "%s", amount_text(row, number, buffer));
}

enum status key_text_or_word(const struct key *row, struct json *value, const char **ret_text,
                             struct error *reterr)
{
    *ret_text = row->word;
    if (value == NULL) return STATUS_OK;
    STATUS_TRY(json_as_string(value, ret_text, reterr));
    if (name_same(*ret_text, row->word)) *ret_text = row->word;
    return STATUS_OK;
}

static enum status text_read(const struct key *row, const struct key_reader *reader,
                             struct json *value, struct error *reterr)
{
    const char **const at = key_field(row, reader);
    uint32_t chosen = 0;
    *at = row->word;
    if (value == NULL) return STATUS_OK;
    if (row->choices != NULL) {
        STATUS_TRY(json_choice(value, row->choices, &chosen, reterr));
        *at = row->choices[chosen];
        return STATUS_OK;
    }
    STATUS_TRY(json_as_string(value, at, reterr));
    if (row->least > 0 && **at == '\0')
        return error_set(reterr, STATUS_INVALID, json_where(value), "must not be empty");
    return STATUS_OK;
}

static void text_write(struct json_writer *writer, const struct key *row,
                       const struct key_source *source)
{
    json_write_string(writer, *(const char *const *)key_field_of(row, source));
}

enum status key_array(struct json *json, int64_t least, int64_t most, struct error *reterr)
{
    if (json_kind(json) != JSON_ARRAY)
        return error_set(reterr, STATUS_INVALID, json_where(json), "must be an array");
    uint32_t const count = json_count(json);
    if (count < least || count > most)
        return error_set(reterr, STATUS_INVALID, json_where(json),
                         "has %u element%s; the %s is %lld", count, count == 1 ? "" : "s",
                         count < least ? "minimum" : "maximum",
                         (long long)(count < least ? least : most));
    return STATUS_OK;
}

static enum status words_read(const struct key *row, const struct key_reader *reader,
                              struct json *value, struct error *reterr)
{
    const char *text = NULL;
    uint32_t chosen = 0;
    (void)reader;
    if (value == NULL) return STATUS_OK;
    if (json_kind(value) != JSON_ARRAY)
        return error_set(reterr, STATUS_INVALID, json_where(value),
                         "must be an array of names, such as [\"x\"]");
    STATUS_TRY(key_array(value, row->least, row->most, reterr));
    for (uint32_t i = 0; i < json_count(value); i++) {
        if (row->choices != NULL)
            STATUS_TRY(json_choice(json_at(value, i), row->choices, &chosen, reterr));
        else
            STATUS_TRY(json_as_string(json_at(value, i), &text, reterr));
    }
    return STATUS_OK;
}

static void words_schema(struct json_writer *writer, const struct key *row)
{
    key_array_schema(writer, row->least, row->most);
    key_types_schema(writer, "string", NULL);
    if (row->choices != NULL) key_choices_schema(writer, row->choices);
    json_write_object_end(writer);
}

enum status key_object_read(const struct key *row, const struct key_reader *reader,
                            struct json *value, struct error *reterr)
{
    struct key_reader inner = *reader;
    inner.object = value;
    inner.base = key_field(row, reader);
    return keys_read(row->members, &inner, reterr);
}

static void members_write(struct json_writer *writer, const struct key *row,
                          const struct key_source *source, const void *base)
{
    struct key_source inner = *source;
    inner.base = base;
    json_write_object(writer);
    keys_write(writer, row->members, &inner);
    json_write_object_end(writer);
}

static void object_write(struct json_writer *writer, const struct key *row,
                         const struct key_source *source)
{
    members_write(writer, row, source, key_field_of(row, source));
}

/* What other variants have, this one refuses by their names. */
static enum status other_refuse(const struct key *row, uint32_t chosen, struct json *object,
                                struct error *reterr)
{
    char owners[KEY_OWNERS_BYTES];
    for (const struct key *other = row->members; other->name != NULL; other++)
        for (const struct key *of = other->members; of->name != NULL; of++) {
            struct json *member = json_take(object, of->name);
            if (member == NULL || key_variant_has(&row->members[chosen], NULL, of->name)) continue;
            (void)key_owners(row->members, NULL, of->name, owners);
            return error_set(reterr, STATUS_INVALID, json_where(member),
                             "is a key of %s, which a \"%s\" does not have", owners,
                             row->members[chosen].name);
        }
    return STATUS_OK;
}

static enum status variants_read(const struct key *row, const struct key_reader *reader,
                                 struct json *value, struct error *reterr)
{
    const char *names[KEYS_MAX + 1] = {0};
    uint32_t chosen = 0;
    struct json *kind = NULL;
    struct key_reader inner = *reader;
    if (value == NULL) return STATUS_OK; /* It is needed. */
    for (uint32_t i = 0; row->members[i].name != NULL; i++) names[i] = row->members[i].name;
    STATUS_TRY(json_as_object(value, reterr));
    STATUS_TRY(json_need(value, row->members[0].members->name, &kind, reterr));
    STATUS_TRY(json_choice(kind, names, &chosen, reterr));
    STATUS_TRY(other_refuse(row, chosen, value, reterr));
    inner.object = value;
    inner.base = key_field(row, reader);
    inner.variants = row->members;
    inner.variant = row->members[chosen].name;
    return keys_read(row->members[chosen].members, &inner, reterr);
}

/* The first row of each variant has the same field. */
static void variants_write(struct json_writer *writer, const struct key *row,
                           const struct key_source *source)
{
    struct key_source inner = *source;
    inner.base = key_field_of(row, source);
    const struct key *first = row->members[0].members;
    uint32_t const kind = *(const uint32_t *)key_field_of(first, &inner);
    json_write_object(writer);
    keys_write(writer, row->members[kind].members, &inner);
    json_write_object_end(writer);
}

static void variants_schema(struct json_writer *writer, const struct key *row)
{
    json_put_array(writer, "anyOf");
    for (const struct key *variant = row->members; variant->name != NULL; variant++) {
        json_write_object(writer);
        keys_schema(writer, variant->members);
        json_write_object_end(writer);
    }
    json_write_array_end(writer);
}

static enum status list_read(const struct key *row, const struct key_reader *reader,
                             struct json *array, struct error *reterr)
{
    const struct key_elements *const elements = &row->elements;
    void *memory = NULL;
    struct key_reader inner = *reader;
    if (array == NULL) return STATUS_OK;
    STATUS_TRY(key_array(array, row->least, row->most, reterr));
    STATUS_TRY(arena_try(reader->arena, json_count(array), elements->size_bytes, &memory, reterr));
    inner.axis_count = 0;
    if (elements->axis_count != NULL)
        STATUS_TRY(elements->axis_count(reader, &inner.axis_count, reterr));
    for (uint32_t i = 0; i < json_count(array); i++) {
        inner.object = json_at(array, i);
        inner.base = (char *)memory + i * elements->size_bytes;
        STATUS_TRY(keys_read(row->members, &inner, reterr));
    }
    *(const void **)key_field(row, reader) = memory;
    *(uint32_t *)((char *)reader->base + elements->count_at) = json_count(array);
    return STATUS_OK;
}

static void list_write(struct json_writer *writer, const struct key *row,
                       const struct key_source *source)
{
    const char *const memory = *(const char *const *)key_field_of(row, source);
    uint32_t const count = *(const uint32_t *)((const char *)source->base + row->elements.count_at);
    json_write_array(writer);
    for (uint32_t i = 0; i < count; i++)
        members_write(writer, row, source, memory + i * row->elements.size_bytes);
    json_write_array_end(writer);
}

static void list_schema(struct json_writer *writer, const struct key *row)
{
    key_array_schema(writer, row->least, row->most);
    keys_schema(writer, row->members);
    json_write_object_end(writer);
}

#define NUMBER(name) .parse = name##_parse, .put = name##_put, .say = name##_say, NUMBER_ACCESS
#define NUMBER_ACCESS .read = key_number_read, .write = key_number_write

const struct key_kind key_flag = {NUMBER(flag), .type = "boolean", .values = "boolean"};
const struct key_kind key_count = {.parse = count_parse,
                                   .put = integer_put,
                                   .say = integer_say,
                                   NUMBER_ACCESS,
                                   .type = "integer",
                                   .type_too = "string",
                                   /* As scaled.h reads it. */
                                   .pattern = "^[0-9]+(\\.[0-9]+)?[kKmMgGtTpP]?$",
                                   .has_range = true};
const struct key_kind key_integer = {NUMBER(integer), .type = "integer", .has_range = true};
const struct key_kind key_share = {NUMBER(share), .type = "number", .has_range = true};
const struct key_kind key_choice = {NUMBER(choice)};

/* As quantity.h reads them. */
#define AMOUNT(what, form, names, ratio)                                                           \
    {                                                                                              \
        NUMBER(amount), .quantity = (what), .units = (names), .step = (ratio), .type = "string",   \
                        .pattern = "^[0-9]+(\\.[0-9]+)?([eE][-+]?[0-9]+)? *" form "$"              \
    }

static const char *const byte_units[] = {"B", "KiB", "MiB", "GiB", "TiB", NULL};
static const char *const rate_units[] = {"B/s", "kB/s", "MB/s", "GB/s", "TB/s", "PB/s", NULL};
static const char *const flop_units[] = {"FLOP/s",  "kFLOP/s", "MFLOP/s", "GFLOP/s",
                                         "TFLOP/s", "PFLOP/s", NULL};
static const char *const duration_units[] = {"ps", "ns", "us", "ms", "s", NULL};
static const char *const price_units[] = {"uUSD/h", "USD/h", NULL};
static const char *const power_units[] = {"W", "kW", NULL};

const struct key_kind key_bytes =
    AMOUNT(QUANTITY_BYTES, "([kKMGTP]?B|[KMGT]iB|[kMGT]?bit)", byte_units, 1024);
const struct key_kind key_rate =
    AMOUNT(QUANTITY_RATE, "([kKMGTP]?B|[KMGT]iB|[kMGT]?bit)/s", rate_units, 1000);
const struct key_kind key_flop_rate =
    AMOUNT(QUANTITY_FLOP_RATE, "[kMGTP]?FLOP/s", flop_units, 1000);
const struct key_kind key_duration = AMOUNT(QUANTITY_DURATION, "[pnum]?s", duration_units, 1000);

const struct key_kind key_price = AMOUNT(QUANTITY_PRICE, "u?USD/h", price_units, 1000000);
const struct key_kind key_power = AMOUNT(QUANTITY_POWER, "k?W", power_units, 1000);

const struct key_kind key_text = {
    .read = text_read, .write = text_write, .type = "string", .has_length = true, .begin = '"'};
const struct key_kind key_words = {.read = words_read, .schema = words_schema};
const struct key_kind key_object = {.read = key_object_read,
                                    .write = object_write,
                                    .waits = true,
                                    .schema = key_object_schema,
                                    .begin = '{'};
const struct key_kind key_variants = {.read = variants_read,
                                      .write = variants_write,
                                      .waits = true,
                                      .schema = variants_schema,
                                      .begin = '{'};
const struct key_kind key_list = {
    .read = list_read, .write = list_write, .waits = true, .schema = list_schema, .begin = '['};
