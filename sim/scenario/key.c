/*
 * key.c: sections of a scenario are read and written by their rows.
 */
#include "sim/scenario/key.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/json.h"
#include "sim/base/units.h"
#include "sim/scenario/scenario_parts.h"

/* A field that is an enum is read and written as the uint32_t that it is. */
_Static_assert(sizeof(enum workload_remat) == sizeof(uint32_t), "an enum is 32 bits");

static const char *const rate_units[] = {"B/s", "kB/s", "MB/s", "GB/s", "TB/s", "PB/s", NULL};
static const char *const duration_units[] = {"ps", "ns", "us", "ms", "s", NULL};

static void *field(const struct key_reader *reader, size_t at)
{
    return (char *)reader->base + at;
}

static const void *field_of(const struct key_source *source, size_t at)
{
    return (const char *)source->base + at;
}

const char *key_amount_text(const struct key *row, uint64_t amount, char buffer[KEY_AMOUNT_BYTES])
{
    const char *const *units = row->kind == KEY_RATE ? rate_units : duration_units;
    for (; amount % 1000 == 0 && units[1] != NULL; units++) amount /= 1000;
    (void)snprintf(buffer, KEY_AMOUNT_BYTES, "%llu%s", (unsigned long long)amount, *units);
    return buffer;
}

static void preset_fill(const struct key *row, const struct key_reader *reader)
{
    void *const at = field(reader, row->at);
    switch (row->kind) {
    case KEY_FLAG:
        *(bool *)at = row->preset != 0;
        break;
    case KEY_FLAG_NOT:
        *(bool *)at = row->preset == 0;
        break;
    case KEY_COUNT:
    case KEY_SHARE:
    case KEY_CHOICE:
        *(uint32_t *)at =
            row->like_at == 0 ? (uint32_t)row->preset : *(uint32_t *)field(reader, row->like_at);
        break;
    case KEY_TOKENS:
    case KEY_INTEGER:
    case KEY_RATE:
    case KEY_DURATION:
        *(int64_t *)at = row->preset;
        break;
    case KEY_MAYBE:
        *(int8_t *)at = (int8_t)row->preset;
        break;
    case KEY_CHIP:
    case KEY_CHIPS:
        memset(at, 0, sizeof(uint32_t[MACHINE_AXES_MAX]));
        break;
    case KEY_WORD:
        *(const char **)at = row->choices[row->preset];
        break;
    case KEY_TEXT:
        *(const char **)at = row->word;
        break;
    case KEY_LIST:
        *(uint32_t *)field(reader, row->count_at) = 0;
        break;
    case KEY_FIXED:
    case KEY_OBJECT:
    case KEY_WORDS:
    case KEY_OWN:
        break;
    }
}

static enum status parse_whole(const struct key *row, struct json *member, void *at,
                               struct error *reterr)
{
    int64_t number = 0;
    if (row->kind == KEY_INTEGER)
        STATUS_TRY(json_as_integer(member, row->least, row->most, &number, reterr));
    else
        STATUS_TRY(json_as_count(member, row->least, row->most, &number, reterr));
    if (row->kind == KEY_COUNT)
        *(uint32_t *)at = (uint32_t)number;
    else
        *(uint64_t *)at = (uint64_t)number;
    return STATUS_OK;
}

static enum status choice_read(const struct key *row, struct json *member, void *at,
                               struct error *reterr)
{
    uint32_t chosen = 0;
    STATUS_TRY(json_choice(member, row->choices, &chosen, reterr));
    if (row->kind == KEY_CHOICE) *(uint32_t *)at = (uint32_t)row->least + chosen;
    if (row->kind == KEY_WORD) *(const char **)at = row->choices[chosen];
    return STATUS_OK;
}

static enum status share_read(const struct key *row, struct json *member, uint32_t *ret_ppm,
                              struct error *reterr)
{
    double share = 0;
    STATUS_TRY(json_as_real(member, (double)row->least / PPM_ONE, (double)row->most / PPM_ONE,
                            &share, reterr));
    *ret_ppm = (uint32_t)lround(share * PPM_ONE);
    return STATUS_OK;
}

static enum status amount_read(const struct key *row, struct json *member, int64_t *ret_amount,
                               struct error *reterr)
{
    char least[KEY_AMOUNT_BYTES], most[KEY_AMOUNT_BYTES];
    uint64_t rate = 0;
    if (row->kind == KEY_DURATION) {
        STATUS_TRY(json_duration(member, ret_amount, reterr));
    } else {
        STATUS_TRY(json_rate(member, &rate, reterr));
        *ret_amount = rate > INT64_MAX ? INT64_MAX : (int64_t)rate;
    }
    if (*ret_amount >= row->least && *ret_amount <= row->most) return STATUS_OK;
    return error_set(reterr, STATUS_INVALID, json_where(member), "must be between %s and %s",
                     key_amount_text(row, (uint64_t)row->least, least),
                     key_amount_text(row, (uint64_t)row->most, most));
}

enum status key_array(struct json *json, uint32_t least, uint32_t most, struct error *reterr)
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

/* [3, "*", 0]: one number an axis. */
static enum status chip_at_read(const struct key *row, const struct key_reader *reader,
                                struct json *array, uint32_t ret_at[MACHINE_AXES_MAX],
                                struct error *reterr)
{
    static const char *const any[] = {"*", NULL};
    uint32_t const known = reader->axis_count;
    STATUS_TRY(
        key_array(array, known == 0 ? 1 : known, known == 0 ? MACHINE_AXES_MAX : known, reterr));
    for (uint32_t i = 0; i < json_count(array); i++) {
        struct json *element = json_at(array, i);
        uint32_t ignored = 0;
        int64_t coordinate = machine_any;
        if (row->kind == KEY_CHIPS && json_kind(element) == JSON_STRING)
            STATUS_TRY(json_choice(element, any, &ignored, reterr));
        else
            STATUS_TRY(json_as_integer(element, 0, MACHINE_CHIPS_MAX - 1, &coordinate, reterr));
        ret_at[i] = (uint32_t)coordinate;
    }
    return STATUS_OK;
}

static enum status value_read(const struct key *row, struct json *member,
                              const struct key_reader *reader, struct error *reterr)
{
    bool says = false;
    void *const at = field(reader, row->at);
    switch (row->kind) {
    case KEY_FLAG:
        return json_as_boolean(member, at, reterr);
    case KEY_FLAG_NOT:
        STATUS_TRY(json_as_boolean(member, at, reterr));
        *(bool *)at = !*(bool *)at;
        return STATUS_OK;
    case KEY_MAYBE:
        STATUS_TRY(json_as_boolean(member, &says, reterr));
        *(int8_t *)at = says;
        return STATUS_OK;
    case KEY_COUNT:
    case KEY_TOKENS:
    case KEY_INTEGER:
        return parse_whole(row, member, at, reterr);
    case KEY_RATE:
    case KEY_DURATION:
        return amount_read(row, member, at, reterr);
    case KEY_CHIP:
    case KEY_CHIPS:
        return chip_at_read(row, reader, member, at, reterr);
    case KEY_SHARE:
        return share_read(row, member, at, reterr);
    case KEY_CHOICE:
    case KEY_WORD:
    case KEY_FIXED:
        return choice_read(row, member, at, reterr);
    case KEY_TEXT:
        return json_as_string(member, at, reterr);
    case KEY_OBJECT:
    case KEY_LIST:
    case KEY_WORDS:
    case KEY_OWN:
        break;
    }
    return STATUS_OK;
}

static enum status list_read(const struct key *row, const struct key_reader *reader,
                             struct json *array, struct error *reterr)
{
    void *elements = NULL;
    struct key_reader inner = *reader;
    if (array == NULL) return STATUS_OK;
    STATUS_TRY(key_array(array, (uint32_t)row->least, (uint32_t)row->most, reterr));
    STATUS_TRY(arena_try(reader->arena, json_count(array), row->size_bytes, &elements, reterr));
    inner.axis_count = row->axis_count == NULL ? 0 : row->axis_count(reader);
    for (uint32_t i = 0; i < json_count(array); i++) {
        inner.object = json_at(array, i);
        inner.base = (char *)elements + i * row->size_bytes;
        STATUS_TRY(keys_read(row->members, &inner, reterr));
    }
    *(const void **)field(reader, row->at) = elements;
    *(uint32_t *)field(reader, row->count_at) = json_count(array);
    return STATUS_OK;
}

/* What depends on nothing else. */
static enum status key_read(const struct key *row, const struct key_reader *reader,
                            struct error *reterr)
{
    struct json *member = reader->object == NULL ? NULL : json_take(reader->object, row->name);
    preset_fill(row, reader);
    return member == NULL ? STATUS_OK : value_read(row, member, reader, reterr);
}

/* What may depend on rows before it. */
static enum status key_settle(const struct key *row, const struct key_reader *reader,
                              struct error *reterr)
{
    struct json *member = reader->object == NULL ? NULL : json_take(reader->object, row->name);
    struct key_reader inner = *reader;
    inner.object = member;
    inner.base = field(reader, row->at);
    if (row->kind == KEY_OBJECT) STATUS_TRY(keys_read(row->members, &inner, reterr));
    if (row->kind == KEY_LIST) STATUS_TRY(list_read(row, reader, member, reterr));
    return row->settle == NULL ? STATUS_OK : row->settle(reader, member, reterr);
}

static enum status rest_refuse(const struct key *rows, struct json *object, struct error *reterr)
{
    const char *known[KEYS_MAX + 1] = {0};
    for (uint32_t i = 0; rows[i].name != NULL; i++) {
        SIM_ASSERT(i < KEYS_MAX);
        known[i] = rows[i].name;
    }
    return json_end(object, known, reterr);
}

enum status keys_read(const struct key *rows, const struct key_reader *reader, struct error *reterr)
{
    if (reader->object != NULL) STATUS_TRY(json_as_object(reader->object, reterr));
    for (const struct key *row = rows; row->name != NULL; row++)
        STATUS_TRY(key_read(row, reader, reterr));
    /* A misspelt key before a missing one. */
    if (reader->object != NULL) STATUS_TRY(rest_refuse(rows, reader->object, reterr));
    for (const struct key *row = rows; row->name != NULL; row++) {
        struct json *ignored = NULL;
        if (row->needed) STATUS_TRY(json_need(reader->object, row->name, &ignored, reterr));
    }
    for (const struct key *row = rows; row->name != NULL; row++)
        STATUS_TRY(key_settle(row, reader, reterr));
    return STATUS_OK;
}

static bool is_shown(const struct key *row, const struct key_source *source);

/* Of kinds that are quiet in some row. */
static bool is_preset(const struct key *row, const struct key_source *source)
{
    const void *const at = field_of(source, row->at);
    struct key_source inner = *source;
    inner.base = at;
    if (row->kind == KEY_MAYBE) return *(const int8_t *)at == row->preset;
    if (row->kind == KEY_TEXT) return *(const char *const *)at == NULL;
    if (row->kind == KEY_RATE || row->kind == KEY_DURATION)
        return *(const int64_t *)at == row->preset;
    if (row->kind == KEY_COUNT || row->kind == KEY_SHARE || row->kind == KEY_CHOICE)
        return *(const uint32_t *)at == (uint32_t)row->preset;
    SIM_ASSERT(row->kind == KEY_OBJECT);
    for (const struct key *member = row->members; member->name != NULL; member++)
        if (is_shown(member, &inner)) return false;
    return true;
}

static bool is_shown(const struct key *row, const struct key_source *source)
{
    return (row->shown == NULL || row->shown(source)) && !(row->quiet && is_preset(row, source));
}

static void chip_at_write(struct json_writer *writer, const uint32_t at[MACHINE_AXES_MAX],
                          uint32_t axis_count)
{
    json_write_array(writer);
    for (uint32_t axis = 0; axis < axis_count; axis++) {
        if (at[axis] == machine_any)
            json_write_string(writer, "*");
        else
            json_write_unsigned(writer, at[axis]);
    }
    json_write_array_end(writer);
}

static void object_write(struct json_writer *writer, const struct key *row,
                         const struct key_source *source, const void *base)
{
    struct key_source inner = *source;
    inner.base = base;
    json_write_object(writer);
    keys_write(writer, row->members, &inner);
    json_write_object_end(writer);
}

static void list_write(struct json_writer *writer, const struct key *row,
                       const struct key_source *source)
{
    const char *const elements = *(const char *const *)field_of(source, row->at);
    uint32_t const count = *(const uint32_t *)field_of(source, row->count_at);
    json_write_array(writer);
    for (uint32_t i = 0; i < count; i++)
        object_write(writer, row, source, elements + i * row->size_bytes);
    json_write_array_end(writer);
}

static void value_write(struct json_writer *writer, const struct key *row,
                        const struct key_source *source)
{
    const void *const at = field_of(source, row->at);
    char amount[KEY_AMOUNT_BYTES];
    if (row->write != NULL) {
        row->write(writer, row->name, source);
        return;
    }
    json_write_key(writer, row->name);
    switch (row->kind) {
    case KEY_FLAG:
        json_write_boolean(writer, *(const bool *)at);
        break;
    case KEY_FLAG_NOT:
        json_write_boolean(writer, !*(const bool *)at);
        break;
    case KEY_MAYBE:
        json_write_boolean(writer, *(const int8_t *)at > 0);
        break;
    case KEY_COUNT:
        json_write_unsigned(writer, *(const uint32_t *)at);
        break;
    case KEY_TOKENS:
    case KEY_INTEGER:
        json_write_unsigned(writer, *(const uint64_t *)at);
        break;
    case KEY_SHARE:
        json_write_real(writer, (double)*(const uint32_t *)at / PPM_ONE);
        break;
    case KEY_CHOICE:
        json_write_string(writer, row->choices[*(const uint32_t *)at - (uint32_t)row->least]);
        break;
    case KEY_FIXED:
        json_write_string(writer, row->choices[0]);
        break;
    case KEY_WORD:
    case KEY_TEXT:
        json_write_string(writer, *(const char *const *)at);
        break;
    case KEY_RATE:
    case KEY_DURATION:
        json_write_string(writer, key_amount_text(row, *(const uint64_t *)at, amount));
        break;
    case KEY_CHIP:
    case KEY_CHIPS:
        chip_at_write(writer, at, source->axis_count);
        break;
    case KEY_OBJECT:
        object_write(writer, row, source, at);
        break;
    case KEY_LIST:
        list_write(writer, row, source);
        break;
    case KEY_WORDS:
    case KEY_OWN:
        json_write_null(writer);
        break;
    }
}

void keys_write(struct json_writer *writer, const struct key *rows, const struct key_source *source)
{
    for (const struct key *row = rows; row->name != NULL; row++)
        if (is_shown(row, source)) value_write(writer, row, source);
}
