#include "sim/kernels/kernels.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/embed.h"
#include "sim/base/json.h"
#include "sim/base/name.h"
#include "sim/base/units.h"

/* Written at build time from topology/kernels/. */
extern const struct embed_file kernel_files[];
extern const unsigned kernel_files_count;

enum { STACKS_MAX = 128, FUSIONS_MAX = 16, FILE_VERSION = 1 };

static const char *const layout_names[] = {"TN", "NN", "NT", NULL};

const char *kernel_stack_name_at(uint32_t index)
{
    return index < kernel_files_count ? kernel_files[index].name : NULL;
}

const char *kernel_layout_name(enum kernel_layout layout)
{
    return layout_names[layout];
}

/* A list of whole numbers. */
static enum status numbers_read(struct arena *arena, struct json *list, uint64_t count,
                                int64_t most, const uint32_t **ret_numbers, struct error *reterr)
{
    void *memory = NULL;
    if (json_kind(list) != JSON_ARRAY || json_count(list) != count)
        return error_set(reterr, STATUS_INVALID, json_where(list),
                         "must be a list of %llu numbers, one for each point of the sides",
                         (unsigned long long)count);
    STATUS_TRY(arena_try(arena, count, sizeof **ret_numbers, &memory, reterr));
    uint32_t *numbers = memory;
    for (uint32_t i = 0; i < count; i++) {
        int64_t number = 0;
        STATUS_TRY(json_as_integer(json_at(list, i), 1, most, &number, reterr));
        numbers[i] = (uint32_t)number;
    }
    *ret_numbers = numbers;
    return STATUS_OK;
}

static enum status edges_read(struct arena *arena, struct json *object, uint32_t side,
                              struct kernel_table *table, struct error *reterr)
{
    struct json *list = NULL;
    STATUS_TRY(json_need(object, kernel_side_name(table->family, side), &list, reterr));
    uint32_t const count = json_kind(list) == JSON_ARRAY ? json_count(list) : 0;
    if (count < 1 || count > KERNEL_EDGES_MAX)
        return error_set(reterr, STATUS_INVALID, json_where(list),
                         "must be a list of 1 to %d sides, ascending", KERNEL_EDGES_MAX);
    STATUS_TRY(numbers_read(arena, list, count, INT32_MAX, &table->edge[side], reterr));
    for (uint32_t i = 1; i < count; i++)
        if (table->edge[side][i] <= table->edge[side][i - 1])
            return error_set(reterr, STATUS_INVALID, json_where(json_at(list, i)),
                             "%u is not more than %u before it; sides ascend", table->edge[side][i],
                             table->edge[side][i - 1]);
    table->edge_count[side] = count;
    return STATUS_OK;
}

static enum status ppm_read(struct json *object, const char *key, uint32_t *ret_ppm,
                            struct error *reterr)
{
    struct json *value = NULL;
    int64_t ppm = 0;
    STATUS_TRY(json_need(object, key, &value, reterr));
    STATUS_TRY(json_as_integer(value, 0, UINT32_MAX, &ppm, reterr));
    *ret_ppm = (uint32_t)ppm;
    return STATUS_OK;
}

static enum status rate_read(struct json *object, const char *key, enum quantity quantity,
                             uint64_t *ret_per_s, struct error *reterr)
{
    struct json *value = NULL;
    STATUS_TRY(json_need(object, key, &value, reterr));
    STATUS_TRY(json_as_quantity(value, quantity, ret_per_s, reterr));
    if (*ret_per_s != 0) return STATUS_OK;
    return error_set(reterr, STATUS_INVALID, json_where(value), "a rate of nothing is no roofline");
}

static enum status format_read(struct json *object, const char *key, enum format *ret_format,
                               struct error *reterr)
{
    struct json *value = NULL;
    const char *formats[FORMAT_COUNT + 1] = {NULL};
    uint32_t index = 0;
    for (uint32_t i = 0; i < FORMAT_COUNT; i++) formats[i] = format_name((enum format)i);
    STATUS_TRY(json_need(object, key, &value, reterr));
    STATUS_TRY(json_choice(value, formats, &index, reterr));
    *ret_format = (enum format)index;
    return STATUS_OK;
}

static enum status words_read(struct json *object, struct kernel_table *table, struct error *reterr)
{
    struct json *value = NULL;
    uint32_t index = 0;
    STATUS_TRY(format_read(object, "format", &table->format, reterr));
    table->stored = table->format;
    if (table->family == KERNEL_DECODE)
        STATUS_TRY(format_read(object, "stored", &table->stored, reterr));
    if (table->family == KERNEL_MATMUL) {
        STATUS_TRY(json_need(object, "layout", &value, reterr));
        STATUS_TRY(json_choice(value, layout_names, &index, reterr));
        table->layout = (enum kernel_layout)index;
    }
    STATUS_TRY(json_need(object, "source", &value, reterr));
    return json_as_string(value, &table->source, reterr);
}

/* A table has its sides as keys, and what tells it from others of its family. */
static enum status keys_end(struct json *object, enum kernel_family family, struct error *reterr)
{
    const char *keys[] = {"format",
                          "source",
                          "flop_rate",
                          "hbm_rate",
                          "rows",
                          "error_median_ppm",
                          "error_ninetieth_ppm",
                          "share_ppm",
                          NULL,
                          NULL,
                          NULL,
                          NULL,
                          NULL,
                          NULL};
    uint32_t count = 8;
    for (uint32_t side = 0; side < kernel_side_count(family); side++)
        keys[count++] = kernel_side_name(family, side);
    if (family == KERNEL_MATMUL) keys[count++] = "layout";
    if (family == KERNEL_DECODE) keys[count++] = "stored";
    return json_end(object, keys, reterr);
}

static enum status table_read(struct arena *arena, struct json *object, struct kernel_table *table,
                              struct error *reterr)
{
    struct json *shares = NULL;
    uint64_t points = 1;
    STATUS_TRY(json_as_object(object, reterr));
    STATUS_TRY(words_read(object, table, reterr));
    STATUS_TRY(rate_read(object, "flop_rate", QUANTITY_FLOP_RATE, &table->flop_per_s, reterr));
    STATUS_TRY(rate_read(object, "hbm_rate", QUANTITY_RATE, &table->bytes_per_s, reterr));
    STATUS_TRY(ppm_read(object, "rows", &table->row_count, reterr));
    STATUS_TRY(ppm_read(object, "error_median_ppm", &table->error_median_ppm, reterr));
    STATUS_TRY(ppm_read(object, "error_ninetieth_ppm", &table->error_ninetieth_ppm, reterr));
    for (uint32_t side = 0; side < kernel_side_count(table->family); side++) {
        STATUS_TRY(edges_read(arena, object, side, table, reterr));
        points *= table->edge_count[side];
    }
    STATUS_TRY(json_need(object, "share_ppm", &shares, reterr));
    STATUS_TRY(numbers_read(arena, shares, points, PPM_ONE, &table->share_ppm, reterr));
    return keys_end(object, table->family, reterr);
}

static bool is_same_kind(const struct kernel_table *one, const struct kernel_table *other)
{
    return one->family == other->family && one->format == other->format &&
           one->layout == other->layout && one->stored == other->stored;
}

static enum status tables_read(struct arena *arena, struct json *list, enum kernel_family family,
                               struct kernel_stack *stack, struct error *reterr)
{
    uint32_t const count = json_kind(list) == JSON_ARRAY ? json_count(list) : 0;
    if (count == 0 || count > KERNEL_TABLES_MAX - stack->table_count)
        return error_set(reterr, STATUS_INVALID, json_where(list),
                         "must be a list of tables, and a stack has %d of them at most",
                         KERNEL_TABLES_MAX);
    for (uint32_t i = 0; i < count; i++) {
        struct json *object = json_at(list, i);
        struct kernel_table *table = &stack->table[stack->table_count];
        *table = (struct kernel_table){.family = family};
        STATUS_TRY(table_read(arena, object, table, reterr));
        for (uint32_t before = 0; before < stack->table_count; before++)
            if (is_same_kind(&stack->table[before], table))
                return error_set(reterr, STATUS_INVALID, json_where(object),
                                 "a table of %s in %s like this one is there already",
                                 kernel_family_name(family), format_name(table->format));
        stack->table_count++;
    }
    return STATUS_OK;
}

/* A share of HBM's rate for each kind of kernel. */
static enum status shares_read(struct json *object, struct kernel_between *between,
                               struct error *reterr)
{
    const char *keys[CHAIN_COUNT + 1] = {NULL};
    STATUS_TRY(json_as_object(object, reterr));
    for (uint32_t i = 0; i < CHAIN_COUNT; i++) {
        struct json *value = NULL;
        int64_t ppm = 0;
        keys[i] = chain_name((enum chain)i);
        STATUS_TRY(json_need(object, keys[i], &value, reterr));
        STATUS_TRY(json_as_integer(value, 1, PPM_ONE, &ppm, reterr));
        between->share_ppm[i] = (uint32_t)ppm;
    }
    return json_end(object, keys, reterr);
}

static enum status between_read(struct json *object, struct kernel_between *between,
                                struct error *reterr)
{
    static const char *const keys[] = {"fusion", "source", "launch", "share_ppm", NULL};
    const char *names[FUSIONS_MAX + 1] = {NULL};
    struct json *value = NULL;
    uint32_t index = 0;
    uint64_t launch_ps = 0;
    for (uint32_t i = 0; i < FUSIONS_MAX && fusion_at(i) != NULL; i++)
        names[i] = fusion_at(i)->name;
    STATUS_TRY(json_as_object(object, reterr));
    STATUS_TRY(json_need(object, "fusion", &value, reterr));
    STATUS_TRY(json_choice(value, names, &index, reterr));
    between->fusion = fusion_at(index);
    STATUS_TRY(json_need(object, "source", &value, reterr));
    STATUS_TRY(json_as_string(value, &between->source, reterr));
    STATUS_TRY(json_need(object, "launch", &value, reterr));
    STATUS_TRY(json_as_quantity(value, QUANTITY_DURATION, &launch_ps, reterr));
    between->launch_ps = (int64_t)launch_ps;
    STATUS_TRY(json_need(object, "share_ppm", &value, reterr));
    STATUS_TRY(shares_read(value, between, reterr));
    return json_end(object, keys, reterr);
}

static enum status families_read(struct arena *arena, struct json *document,
                                 struct kernel_stack *stack, struct error *reterr)
{
    const char *keys[KERNEL_FAMILIES + 6] = {"podsim_kernels", "chip", "stack", "title", "between"};
    struct json *between = json_take(document, "between");
    for (uint32_t f = 0; f < KERNEL_FAMILIES; f++) {
        keys[5 + f] = kernel_family_name((enum kernel_family)f);
        struct json *list = json_take(document, keys[5 + f]);
        if (list != NULL)
            STATUS_TRY(tables_read(arena, list, (enum kernel_family)f, stack, reterr));
    }
    keys[5 + KERNEL_FAMILIES] = NULL;
    if (between != NULL) STATUS_TRY(between_read(between, &stack->between, reterr));
    STATUS_TRY(json_end(document, keys, reterr));
    if (stack->table_count != 0) return STATUS_OK;
    return error_set(reterr, STATUS_INVALID, json_where(document),
                     "a stack has a list of tables, such as \"%s\"",
                     kernel_family_name(KERNEL_MATMUL));
}

enum status kernel_stack_read(struct arena *arena, struct json *document,
                              struct kernel_stack *ret_stack, struct error *reterr)
{
    struct json *value = NULL;
    int64_t version = 0;
    *ret_stack = (struct kernel_stack){.table_count = 0};
    STATUS_TRY(json_as_object(document, reterr));
    STATUS_TRY(json_need(document, "podsim_kernels", &value, reterr));
    STATUS_TRY(json_as_integer(value, FILE_VERSION, FILE_VERSION, &version, reterr));
    STATUS_TRY(json_need(document, "chip", &value, reterr));
    STATUS_TRY(json_as_string(value, &ret_stack->chip, reterr));
    STATUS_TRY(json_need(document, "stack", &value, reterr));
    STATUS_TRY(json_as_string(value, &ret_stack->name, reterr));
    STATUS_TRY(json_need(document, "title", &value, reterr));
    STATUS_TRY(json_as_string(value, &ret_stack->title, reterr));
    return families_read(arena, document, ret_stack, reterr);
}

enum status kernel_stack_find(struct arena *arena, const char *name, const char *chip,
                              const char *where, struct kernel_stack *ret_stack,
                              struct error *reterr)
{
    const char *names[STACKS_MAX + 1] = {NULL};
    uint32_t count = 0;
    for (unsigned i = 0; i < kernel_files_count && count < STACKS_MAX; i++) {
        const struct embed_file *file = &kernel_files[i];
        struct json *document = NULL;
        const char *rest = name_after(file->name, chip);
        if (rest == NULL || rest[0] != '.') continue;
        names[count++] = rest + 1;
        if (!name_same(rest + 1, name)) continue;
        STATUS_TRY(
            json_read_text(arena, file->name, file->bytes, file->size_bytes, &document, reterr));
        enum status const status = kernel_stack_read(arena, document, ret_stack, reterr);
        json_free(document);
        return status;
    }
    if (count == 0)
        return error_set(reterr, STATUS_NOT_FOUND, where,
                         "no kernels of %s are shipped; a file of your own may have some, and "
                         "without a stack the profile has constants",
                         chip);
    return error_set(reterr, STATUS_NOT_FOUND, where, "%s has no stack \"%.40s\"%s", chip, name,
                     name_offer(name, names, "; the nearest is \"", "\"", NULL).text);
}
