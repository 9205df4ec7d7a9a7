/*
 * key.c: sections of a scenario are read and written by their rows.
 */
#include "sim/scenario/key.h"

#include <math.h>
#include <string.h>

#include "sim/base/json.h"
#include "sim/base/units.h"
#include "sim/scenario/scenario.h"

/* A field that is an enum is read and written as the uint32_t that it is. */
_Static_assert(sizeof(enum workload_remat) == sizeof(uint32_t), "an enum is 32 bits");

static void *field(struct scenario *scenario, size_t at)
{
    return (char *)scenario + at;
}

static const void *field_of(const struct scenario *scenario, size_t at)
{
    return (const char *)scenario + at;
}

static void preset_fill(const struct key *row, struct scenario *scenario)
{
    void *const at = field(scenario, row->at);
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
            row->like_at == 0 ? (uint32_t)row->preset : *(uint32_t *)field(scenario, row->like_at);
        break;
    case KEY_TOKENS:
    case KEY_INTEGER:
        *(uint64_t *)at = (uint64_t)row->preset;
        break;
    case KEY_WORD:
        *(const char **)at = row->choices[row->preset];
        break;
    case KEY_TEXT:
        *(const char **)at = row->word;
        break;
    case KEY_FIXED:
    case KEY_OBJECT:
    case KEY_OWN:
        break;
    }
}

static enum status number_read(const struct key *row, struct json *member, void *at,
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

static enum status value_read(const struct key *row, struct json *member, struct scenario *scenario,
                              struct error *reterr)
{
    void *const at = field(scenario, row->at);
    switch (row->kind) {
    case KEY_FLAG:
        return json_as_boolean(member, at, reterr);
    case KEY_FLAG_NOT:
        STATUS_TRY(json_as_boolean(member, at, reterr));
        *(bool *)at = !*(bool *)at;
        return STATUS_OK;
    case KEY_COUNT:
    case KEY_TOKENS:
    case KEY_INTEGER:
        return number_read(row, member, at, reterr);
    case KEY_SHARE:
        return share_read(row, member, at, reterr);
    case KEY_CHOICE:
    case KEY_WORD:
    case KEY_FIXED:
        return choice_read(row, member, at, reterr);
    case KEY_TEXT:
        return json_as_string(member, at, reterr);
    case KEY_OBJECT:
    case KEY_OWN:
        break;
    }
    return STATUS_OK;
}

static enum status key_read(const struct key *row, const struct key_reader *reader,
                            struct error *reterr)
{
    struct json *member = reader->object == NULL ? NULL : json_take(reader->object, row->name);
    if (row->kind == KEY_OBJECT) {
        struct key_reader inner = *reader;
        inner.object = member;
        return keys_read(row->members, &inner, reterr);
    }
    preset_fill(row, reader->scenario);
    return member == NULL ? STATUS_OK : value_read(row, member, reader->scenario, reterr);
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
        struct json *member = reader->object == NULL ? NULL : json_take(reader->object, row->name);
        if (row->needed) STATUS_TRY(json_need(reader->object, row->name, &member, reterr));
        if (row->settle != NULL) STATUS_TRY(row->settle(reader, member, reterr));
    }
    return STATUS_OK;
}

static void value_write(struct json_writer *writer, const struct key *row,
                        const struct scenario *scenario)
{
    const void *const at = field_of(scenario, row->at);
    if (row->write != NULL) {
        row->write(writer, row->name, scenario);
        return;
    }
    switch (row->kind) {
    case KEY_FLAG:
        json_put_boolean(writer, row->name, *(const bool *)at);
        break;
    case KEY_FLAG_NOT:
        json_put_boolean(writer, row->name, !*(const bool *)at);
        break;
    case KEY_COUNT:
        json_put_unsigned(writer, row->name, *(const uint32_t *)at);
        break;
    case KEY_TOKENS:
    case KEY_INTEGER:
        json_put_unsigned(writer, row->name, *(const uint64_t *)at);
        break;
    case KEY_SHARE:
        json_put_real(writer, row->name, (double)*(const uint32_t *)at / PPM_ONE);
        break;
    case KEY_CHOICE:
        json_put_string(writer, row->name,
                        row->choices[*(const uint32_t *)at - (uint32_t)row->least]);
        break;
    case KEY_FIXED:
        json_put_string(writer, row->name, row->choices[0]);
        break;
    case KEY_WORD:
    case KEY_TEXT:
        json_put_string(writer, row->name, *(const char *const *)at);
        break;
    case KEY_OBJECT:
        json_put_object(writer, row->name);
        keys_write(writer, row->members, scenario);
        json_write_object_end(writer);
        break;
    case KEY_OWN:
        break;
    }
}

void keys_write(struct json_writer *writer, const struct key *rows, const struct scenario *scenario)
{
    for (const struct key *row = rows; row->name != NULL; row++)
        if (row->shown == NULL || row->shown(scenario)) value_write(writer, row, scenario);
}
