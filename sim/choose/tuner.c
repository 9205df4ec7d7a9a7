#include "sim/choose/tuner.h"

#include <stdio.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/name.h"
#include "sim/base/parse_uint.h"
#include "sim/base/units.h"
#include "sim/collective/algorithm.h"

enum { FIELDS_LEAST = 8, FIELDS_MAX = 10, RULES_MAX = 65536, NAMES_MAX = 64, FIELD_BYTES = 64 };

/* Collectives as the file calls them, and as they are here. */
#define KIND_TABLE(X)                                                                              \
    X("allgather", COLLECTIVE_ALL_GATHER)                                                          \
    X("allreduce", COLLECTIVE_ALL_REDUCE)                                                          \
    X("alltoall", COLLECTIVE_ALL_TO_ALL)                                                           \
    X("broadcast", COLLECTIVE_BROADCAST)                                                           \
    X("gather", COLLECTIVE_GATHER)                                                                 \
    X("reduce", COLLECTIVE_REDUCE)                                                                 \
    X("reducescatter", COLLECTIVE_REDUCE_SCATTER)                                                  \
    X("scatter", COLLECTIVE_SCATTER)

static const char *const kind_names[] = {
#define X(name, kind) name,
    KIND_TABLE(X)
#undef X
        NULL};
static const enum collective_kind kinds[] = {
#define X(name, kind) kind,
    KIND_TABLE(X)
#undef X
};

/* Algorithms as the file calls them, and as they are here. */
static const char *const nccl_names[] = {"ring", "tree", "nvls", NULL};
static const enum nccl_algorithm nccl_algorithms[] = {NCCL_RING, NCCL_TREE, NCCL_NVLS};
static const char *const unmodelled[] = {"collnet_direct", "collnet_chain", "nvls_tree", "pat",
                                         NULL};

struct field {
    char text[FIELD_BYTES];
    uint32_t column;
};

struct reader {
    const char *path;
    const char *bytes;
    uint64_t size_bytes, at;
    uint32_t line;
    struct error *reterr;
};

static const char *place(const struct reader *reader, uint32_t column, char buffer[192])
{
    snprintf(buffer, 192, "%.150s:%u:%u", reader->path, reader->line, column);
    return buffer;
}

/* The fields of a line, trimmed; `ret_count` is 0 for a line without any. */
static enum status line_split(struct reader *reader, struct field fields[FIELDS_MAX],
                              uint32_t *ret_count)
{
    char where[192];
    uint64_t const begin = reader->at;
    uint64_t end = begin;
    while (end < reader->size_bytes && reader->bytes[end] != '\n') end++;
    reader->at = end + 1;
    reader->line++;
    *ret_count = 0;
    if (end > begin && reader->bytes[end - 1] == '\r') end--;
    uint64_t at = begin;
    while (at < end && (reader->bytes[at] == ' ' || reader->bytes[at] == '\t')) at++;
    if (at == end || reader->bytes[at] == '#') return STATUS_OK;
    for (at = begin; at <= end; at++) {
        uint64_t stop = at;
        while (stop < end && reader->bytes[stop] != ',') stop++;
        uint64_t first = at, last = stop;
        while (first < last && (reader->bytes[first] == ' ' || reader->bytes[first] == '\t'))
            first++;
        while (last > first && (reader->bytes[last - 1] == ' ' || reader->bytes[last - 1] == '\t'))
            last--;
        uint32_t const column = (uint32_t)(first - begin + 1);
        if (*ret_count == FIELDS_MAX)
            return error_set(reader->reterr, STATUS_INVALID, place(reader, column, where),
                             "more than %d fields", FIELDS_MAX);
        struct field *field = &fields[(*ret_count)++];
        if (last - first >= FIELD_BYTES || memchr(reader->bytes + first, '\0', last - first))
            return error_set(reader->reterr, STATUS_INVALID, place(reader, column, where),
                             "a field of %llu bytes is neither a name nor a number",
                             (unsigned long long)(last - first));
        memcpy(field->text, reader->bytes + first, last - first);
        field->text[last - first] = '\0';
        field->column = column;
        at = stop;
    }
    return STATUS_OK;
}

static const char any_number[] = "-1";

/* An unsigned number, or -1 where `any` permits it. */
static enum status number_take(const struct reader *reader, const struct field *field, bool any,
                               int64_t *ret_value)
{
    char where[192];
    uint64_t value = 0;
    *ret_value = -1;
    if (any && name_same(field->text, any_number)) return STATUS_OK;
    const char *end = parse_uint(field->text, INT64_MAX, &value);
    if (*end != '\0' || end == field->text || value > INT64_MAX)
        return error_set(reader->reterr, STATUS_INVALID, place(reader, field->column, where),
                         "\"%s\" is no whole number from 0 to 2^63 - 1%s", field->text,
                         any ? ", nor -1 for any" : "");
    *ret_value = (int64_t)value;
    return STATUS_OK;
}

static enum status kind_take(const struct reader *reader, const struct field *field,
                             enum collective_kind *ret_kind)
{
    char where[192];
    uint32_t const found = name_find(field->text, kind_names);
    if (kind_names[found] == NULL)
        return error_set(
            reader->reterr, STATUS_NOT_FOUND, place(reader, field->column, where),
            "no collective \"%s\"%s", field->text,
            name_offer(field->text, kind_names, "; did you mean \"", "\"?", NULL).text);
    *ret_kind = kinds[found];
    return STATUS_OK;
}

static enum status algorithm_take(const struct reader *reader, const struct field *field,
                                  enum collective_kind kind, struct algorithm *ret_algorithm)
{
    char where[192];
    const char *names[NAMES_MAX] = {"ring", "tree", "nvls", "auto", "hierarchical"};
    uint32_t count = 5;
    if (unmodelled[name_find(field->text, unmodelled)] != NULL)
        return error_set(reader->reterr, STATUS_UNSUPPORTED, place(reader, field->column, where),
                         "\"%s\" is not modelled; ring, tree and nvls are", field->text);
    uint32_t const own = name_find(field->text, nccl_names);
    *ret_algorithm = nccl_names[own] != NULL
                         ? algorithm_by(primitive_family_of_nccl(nccl_algorithms[own], kind))
                         : algorithm_read(field->text);
    if (ret_algorithm->means == ALGORITHM_FAMILY || algorithm_is_automatic(ret_algorithm))
        return STATUS_OK;
    for (uint32_t i = 0; i < PRIMITIVE_FAMILY_COUNT; i++) {
        const char *const name = primitive_family_name((enum primitive_family)i);
        bool const is_named = nccl_names[name_find(name, nccl_names)] != NULL;
        if (!is_named && count + 1 < NAMES_MAX) names[count++] = name;
    }
    return error_set(reader->reterr, STATUS_NOT_FOUND, place(reader, field->column, where),
                     "no algorithm \"%s\"%s", field->text,
                     name_offer(field->text, names, "; did you mean \"", "\"?", NULL).text);
}

static enum status rule_take(const struct reader *reader, const struct field *fields,
                             uint32_t count, struct tuner_rule *ret_rule)
{
    char where[192];
    struct tuner_rule rule = {.line = reader->line};
    int64_t least, most, operations = -1, registered = -1;
    if (count < FIELDS_LEAST)
        return error_set(reader->reterr, STATUS_INVALID,
                         place(reader, fields[count - 1].column, where),
                         "%u fields; collective, min_bytes, max_bytes, algorithm, protocol, "
                         "channels, nNodes and nRanks are needed",
                         count);
    rule.algorithm_column = fields[3].column;
    rule.protocol_column = fields[4].column;
    STATUS_TRY(kind_take(reader, &fields[0], &rule.kind));
    STATUS_TRY(number_take(reader, &fields[1], false, &least));
    STATUS_TRY(number_take(reader, &fields[2], false, &most));
    if (most < least)
        return error_set(reader->reterr, STATUS_INVALID, place(reader, fields[2].column, where),
                         "max_bytes %s is below min_bytes %s", fields[2].text, fields[1].text);
    STATUS_TRY(algorithm_take(reader, &fields[3], rule.kind, &rule.algorithm));
    STATUS_TRY(protocol_find(fields[4].text, place(reader, fields[4].column, where), &rule.protocol,
                             reader->reterr));
    STATUS_TRY(number_take(reader, &fields[5], true, &rule.channel_count));
    STATUS_TRY(number_take(reader, &fields[6], true, &rule.node_count));
    STATUS_TRY(number_take(reader, &fields[7], true, &rule.rank_count));
    if (count > 8) STATUS_TRY(number_take(reader, &fields[8], true, &operations));
    if (count > 9) STATUS_TRY(number_take(reader, &fields[9], true, &registered));
    rule.min_bytes = (uint64_t)least;
    rule.max_bytes = (uint64_t)most;
    rule.never = (operations != -1 && operations != 1) || registered > 0;
    *ret_rule = rule;
    return STATUS_OK;
}

enum status tuner_read(struct arena *arena, const char *path, const char *bytes,
                       uint64_t size_bytes, struct tuner *ret_tuner, struct error *reterr)
{
    struct reader reader = {path, bytes, size_bytes, 0, 0, reterr};
    struct tuner tuner = {path, NULL, 0};
    uint64_t lines = 1;
    for (uint64_t i = 0; i < size_bytes; i++) lines += bytes[i] == '\n';
    if (lines > RULES_MAX)
        return error_set(reterr, STATUS_LIMIT, path, "%llu lines are more than %d",
                         (unsigned long long)lines, RULES_MAX);
    void *memory = NULL;
    STATUS_TRY(arena_try(arena, lines, sizeof(struct tuner_rule), &memory, reterr));
    struct tuner_rule *rules = memory;
    while (reader.at < size_bytes) {
        struct field fields[FIELDS_MAX];
        uint32_t count;
        STATUS_TRY(line_split(&reader, fields, &count));
        if (count == 0) continue;
        STATUS_TRY(rule_take(&reader, fields, count, &rules[tuner.rule_count++]));
    }
    tuner.rules = rules;
    *ret_tuner = tuner;
    return STATUS_OK;
}

const struct tuner_rule *tuner_find(const struct tuner *tuner, enum collective_kind kind,
                                    uint64_t size_bytes, uint64_t node_count, uint64_t rank_count)
{
    for (uint32_t i = 0; tuner != NULL && i < tuner->rule_count; i++) {
        const struct tuner_rule *rule = &tuner->rules[i];
        if (rule->kind == kind && !rule->never && size_bytes >= rule->min_bytes &&
            size_bytes <= rule->max_bytes &&
            (rule->node_count == -1 || (uint64_t)rule->node_count == node_count) &&
            (rule->rank_count == -1 || (uint64_t)rule->rank_count == rank_count))
            return rule;
    }
    return NULL;
}
