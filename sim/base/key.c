/*
 * key.c: objects are read and written by their rows.
 */
#include "sim/base/key.h"

#include <stdio.h>
#include <string.h>

#include "sim/base/json.h"
#include "sim/base/key_place.h"
#include "sim/base/name.h"

enum { WANTED_BYTES = 152 };

void *key_field(const struct key *row, const struct key_reader *reader)
{
    return (char *)reader->base + row->at;
}

const void *key_field_of(const struct key *row, const struct key_source *source)
{
    return (const char *)source->base + row->at;
}

/* A number is text of its source in the file, so a table of hardware cites what it says. */
static enum status sourced_value(struct json *number, struct json **ret_value, struct error *reterr)
{
    static const char *const known[] = {"value", "source", NULL};
    struct json *source = NULL;
    const char *text = NULL;
    STATUS_TRY(json_need(number, "value", ret_value, reterr));
    STATUS_TRY(json_need(number, "source", &source, reterr));
    STATUS_TRY(json_as_string(source, &text, reterr));
    if (text[0] == '\0')
        return error_set(reterr, STATUS_INVALID, json_where(source), "a number has no source");
    return json_end(number, known, reterr);
}

static struct json *member_of(const struct key *row, const struct key_reader *reader)
{
    return reader->object == NULL ? NULL : json_take(reader->object, row->name);
}

/* Refuses a value of another kind of JSON than the row's kind reads. */
static enum status kind_check(const struct key *row, const struct json *value, struct error *reterr)
{
    static const struct {
        char begin;
        enum json_kind kind;
        const char *name;
    } kinds[] = {{'"', JSON_STRING, "a string"},
                 {'[', JSON_ARRAY, "an array"},
                 {'{', JSON_OBJECT, "an object"}};
    const char *const example = row->values.example;
    char wanted[WANTED_BYTES];
    for (size_t i = 0; row->choices == NULL && i < sizeof kinds / sizeof *kinds; i++) {
        if (row->kind->begin != kinds[i].begin || json_kind(value) == kinds[i].kind) continue;
        (void)snprintf(wanted, sizeof wanted, "%s%s%s", kinds[i].name,
                       example == NULL ? "" : " such as ", example == NULL ? "" : example);
        return json_refuse_kind(value, wanted, reterr);
    }
    return STATUS_OK;
}

static enum status member_read(const struct key *row, const struct key_reader *reader,
                               struct error *reterr)
{
    struct json *value = member_of(row, reader);
    if (value != NULL && row->has_source) STATUS_TRY(sourced_value(value, &value, reterr));
    if (value != NULL) STATUS_TRY(kind_check(row, value, reterr));
    return row->kind->read(row, reader, value, reterr);
}

/* Refuses a key of an object that other variants have with this key. */
static enum status other_refuse(const struct key_reader *reader, const char *folder,
                                const char *name, const struct json *member, struct error *reterr)
{
    const char *const slash = strrchr(folder, '/');
    char owners[KEY_OWNERS_BYTES];
    if (reader->variants == NULL || slash == NULL ||
        key_owners(reader->variants, slash + 1, name, owners) == 0)
        return STATUS_OK;
    return error_set(reterr, STATUS_INVALID, json_where(member),
                     "is a key of %s, which a \"%s\" does not have", owners, reader->variant);
}

/* Refuses a key without a row: a key that is nearly one of the object; a key of another object by
 * its place there, first of one within this one, else with the nearest that is known here or
 * within. */
static enum status unknown_refuse(const struct key *rows, const char *const *known,
                                  const struct key_reader *reader, struct error *reterr)
{
    const char *name = NULL;
    struct json *const member = json_rest(reader->object, &name);
    if (member == NULL) return STATUS_OK;
    const char *const folder = json_where(reader->object);
    const char *const nearest = name_nearest(name, known);
    STATUS_TRY(other_refuse(reader, folder, name, member, reterr));
    struct key_place place = key_place_of(name, rows, folder);
    if (place.pointer[0] == '\0' && nearest != NULL && name_is_near(name, nearest))
        return json_end(reader->object, known, reterr);
    if (place.pointer[0] == '\0') place = key_place_of(name, reader->document, "");
    if (place.pointer[0] != '\0')
        return error_set(reterr, STATUS_INVALID, json_where(member),
                         "unknown key \"%.64s\"; there is %s", name, place.pointer);
    if (nearest == NULL) place = key_place_near(name, rows, folder);
    if (place.pointer[0] != '\0')
        return error_set(reterr, STATUS_INVALID, json_where(member),
                         "unknown key \"%.64s\"; the nearest known is %s", name, place.pointer);
    return json_end(reader->object, known, reterr);
}

static enum status rest_refuse(const struct key *rows, const struct key_reader *reader,
                               struct error *reterr)
{
    const char *known[KEYS_MAX + 1] = {0};
    for (uint32_t i = 0; rows[i].name != NULL; i++) {
        SIM_ASSERT(i < KEYS_MAX);
        known[i] = rows[i].name;
        (void)json_take(reader->object, rows[i].name);
    }
    return unknown_refuse(rows, known, reader, reterr);
}

static enum status presence_check(const struct key *row, struct json *object, struct error *reterr)
{
    struct json *member = json_take(object, row->name);
    bool const may_be = row->with == NULL || json_take(object, row->with) != NULL;
    if (member != NULL && !may_be)
        return error_set(reterr, STATUS_INVALID, json_where(member),
                         "has no effect without \"%s\", which is missing", row->with);
    return row->needed && may_be ? json_need(object, row->name, &member, reterr) : STATUS_OK;
}

enum status keys_read(const struct key *rows, const struct key_reader *reader, struct error *reterr)
{
    if (reader->object != NULL) STATUS_TRY(json_as_object(reader->object, reterr));
    for (const struct key *row = rows; row->name != NULL; row++)
        if (!row->kind->waits) STATUS_TRY(member_read(row, reader, reterr));
    /* A misspelt key before a missing one. */
    if (reader->object != NULL) STATUS_TRY(rest_refuse(rows, reader, reterr));
    for (const struct key *row = rows; row->name != NULL; row++)
        if (reader->object != NULL) STATUS_TRY(presence_check(row, reader->object, reterr));
    for (const struct key *row = rows; row->name != NULL; row++) {
        if (row->kind->waits) STATUS_TRY(member_read(row, reader, reterr));
        if (row->settle != NULL) STATUS_TRY(row->settle(reader, member_of(row, reader), reterr));
    }
    return STATUS_OK;
}

static int64_t number_at(const struct key *row, const void *at)
{
    int64_t number = 0;
    if (row->size_bytes == sizeof(int8_t))
        number = *(const int8_t *)at;
    else if (row->size_bytes == sizeof(uint32_t))
        number = *(const uint32_t *)at;
    else
        number = *(const int64_t *)at;
    return row->negated ? !number : number;
}

static void number_set(const struct key *row, int64_t number, void *at)
{
    if (row->negated) number = !number;
    if (row->size_bytes == sizeof(int8_t))
        *(int8_t *)at = (int8_t)number;
    else if (row->size_bytes == sizeof(uint32_t))
        *(uint32_t *)at = (uint32_t)number;
    else if (row->size_bytes == sizeof(int64_t))
        *(int64_t *)at = number;
}

enum status key_number_read(const struct key *row, const struct key_reader *reader,
                            struct json *value, struct error *reterr)
{
    int64_t number = row->preset;
    if (row->like_at != 0) number = number_at(row, (const char *)reader->base + row->like_at);
    if (value != NULL) STATUS_TRY(row->kind->parse(row, value, &number, reterr));
    number_set(row, number, key_field(row, reader));
    return STATUS_OK;
}

void key_number_write(struct json_writer *writer, const struct key *row,
                      const struct key_source *source)
{
    bool const has_field = row->size_bytes != 0;
    row->kind->put(writer, row,
                   has_field ? number_at(row, key_field_of(row, source)) : row->preset);
}

static bool is_shown(const struct key *row, const struct key_source *source);

/* Of kinds that are quiet in some row. */
static bool is_preset(const struct key *row, const struct key_source *source)
{
    const void *const at = key_field_of(row, source);
    struct key_source inner = *source;
    inner.base = at;
    if (row->kind->parse != NULL) return number_at(row, at) == row->preset;
    if (row->members == NULL) return *(const char *const *)at == row->word;
    for (const struct key *member = row->members; member->name != NULL; member++)
        if (is_shown(member, &inner)) return false;
    return true;
}

static bool is_shown(const struct key *row, const struct key_source *source)
{
    for (const struct key *const *also = source->also; also != NULL && *also != NULL; also++)
        if (*also == row) return true;
    return (row->shown == NULL || row->shown(source)) && !(row->quiet && is_preset(row, source));
}

const struct key *key_at(const struct key *rows, const char *pointer,
                         const struct key_source *source)
{
    struct key_source inner = *source;
    size_t const length = *pointer == '/' ? strcspn(pointer + 1, "/") : 0;
    const char *const rest = pointer + length + (*pointer == '/');
    const struct key *row = rows;
    while (row->name != NULL &&
           (strncmp(row->name, pointer + 1, length) != 0 || row->name[length] != '\0'))
        row++;
    if (length == 0 || row->name == NULL) return NULL;
    if (*rest == '\0') return row;
    if (row->members == NULL) return NULL;
    inner.base = key_field_of(row, source);
    if (row->kind != &key_variants) return key_at(row->members, rest, &inner);
    /* The first row of each variant has the same field. */
    const struct key *const first = row->members[0].members;
    return key_at(row->members[*(const uint32_t *)key_field_of(first, &inner)].members, rest,
                  &inner);
}

void keys_write(struct json_writer *writer, const struct key *rows, const struct key_source *source)
{
    for (const struct key *row = rows; row->name != NULL; row++) {
        if (!is_shown(row, source)) continue;
        json_write_key(writer, row->name);
        if (row->write != NULL)
            row->write(writer, source);
        else
            row->kind->write(writer, row, source);
    }
}
