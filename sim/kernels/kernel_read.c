#include "sim/kernels/kernel_read.h"

#include <string.h>

#include <stddef.h>

#include "sim/base/arena.h"
#include "sim/base/json.h"
#include "sim/base/units.h"

enum { FACTOR_PPM_MOST = 8000000 };

static const char *const layout_names[] = {"TN", "NN", "NT", NULL};

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

enum status kernel_grid_read(struct arena *arena, struct json *object, const char *numbers,
                             int64_t most, struct kernel_table *table, struct error *reterr)
{
    struct json *list = NULL;
    for (uint32_t side = 0; side < kernel_side_count(table->family); side++)
        STATUS_TRY(edges_read(arena, object, side, table, reterr));
    STATUS_TRY(json_need(object, numbers, &list, reterr));
    return numbers_read(arena, list, kernel_point_count(table), most, &table->share_ppm, reterr);
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
    return error_set(reterr, STATUS_INVALID, json_where(value), "a roofline needs rates above 0");
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

static enum status layout_read(struct json *object, enum kernel_layout *ret_layout,
                               struct error *reterr)
{
    struct json *value = NULL;
    uint32_t index = 0;
    STATUS_TRY(json_need(object, "layout", &value, reterr));
    STATUS_TRY(json_choice(value, layout_names, &index, reterr));
    *ret_layout = (enum kernel_layout)index;
    return STATUS_OK;
}

/* Whether steps of inference have kernels of a family, whose rows go to the cache. */
static bool may_append(enum kernel_family family)
{
    return kernel_reads_cache(family) || family == KERNEL_ATTENTION ||
           family == KERNEL_LATENT_ATTENTION;
}

/* Whether kernels of a family may cast operands of their products. */
static bool multiplies(enum kernel_family family)
{
    return kernel_is_of_products(family) || family == KERNEL_EXPERTS || family == KERNEL_BATCHED;
}

/* Reads which scales operands that were cast before have. Without the member they were not cast
 * before. */
static enum status cast_read(struct json *object, struct kernel_table *table, struct error *reterr)
{
    const char *names[WORK_CAST_COUNT] = {NULL};
    struct json *value = json_take(object, "cast");
    uint32_t index = 0;
    table->cast = WORK_CAST_WITHIN;
    if (value == NULL) return STATUS_OK;
    for (uint32_t i = WORK_CAST_WITHIN + 1; i < WORK_CAST_COUNT; i++)
        names[i - 1] = work_cast_name((enum work_cast)i);
    STATUS_TRY(json_choice(value, names, &index, reterr));
    table->cast = (enum work_cast)(WORK_CAST_WITHIN + 1 + index);
    return STATUS_OK;
}

/* What tells a table from others of its family. */
static enum status kind_read(struct json *object, struct kernel_table *table, struct error *reterr)
{
    struct json *value = NULL;
    STATUS_TRY(format_read(object, "format", &table->format, reterr));
    table->stored = table->format;
    table->result = FORMAT_BF16;
    if (kernel_reads_cache(table->family))
        STATUS_TRY(format_read(object, "stored", &table->stored, reterr));
    if (may_append(table->family)) {
        value = json_take(object, "appends");
        return value == NULL ? STATUS_OK : json_as_boolean(value, &table->appends, reterr);
    }
    if (!multiplies(table->family)) return STATUS_OK;
    if (kernel_is_of_products(table->family)) {
        STATUS_TRY(layout_read(object, &table->layout, reterr));
        if (json_take(object, "result") != NULL)
            STATUS_TRY(format_read(object, "result", &table->result, reterr));
        STATUS_TRY(cast_read(object, table, reterr));
    }
    value = json_take(object, "quantises");
    return value == NULL ? STATUS_OK : json_as_boolean(value, &table->quantises, reterr);
}

enum status kernel_text_read(struct json *object, const char *key, const char **ret_text,
                             struct error *reterr)
{
    struct json *value = NULL;
    STATUS_TRY(json_need(object, key, &value, reterr));
    STATUS_TRY(json_as_string(value, ret_text, reterr));
    if ((*ret_text)[strspn(*ret_text, " \t")] != '\0') return STATUS_OK;
    return error_set(reterr, STATUS_INVALID, json_where(value),
                     "says nothing; reports print it with the numbers");
}

/* Where the numbers come from, and how good they are. */
static enum status origin_read(struct json *object, struct kernel_table *table,
                               struct error *reterr)
{
    STATUS_TRY(kernel_text_read(object, "source", &table->source, reterr));
    STATUS_TRY(ppm_read(object, "rows", &table->row_count, reterr));
    STATUS_TRY(ppm_read(object, "error_median_ppm", &table->error_median_ppm, reterr));
    return ppm_read(object, "error_ninetieth_ppm", &table->error_ninetieth_ppm, reterr);
}

/* The places of the edges of a side that `of` names, which has to be edges of the table. Without a
 * list of the side all are taken. */
static enum status edges_choose(struct arena *arena, struct json *of, uint32_t side,
                                struct kernel_table *table, uint32_t place[KERNEL_EDGES_MAX],
                                struct error *reterr)
{
    const uint32_t *edge = table->edge[side];
    uint32_t const count = table->edge_count[side];
    struct json *list = json_take(of, kernel_side_name(table->family, side));
    for (uint32_t i = 0; list == NULL && i < count; i++) place[i] = i;
    if (list == NULL) return STATUS_OK;
    STATUS_TRY(edges_read(arena, of, side, table, reterr));
    for (uint32_t i = 0, at = 0; i < table->edge_count[side]; i++) {
        while (at < count && edge[at] < table->edge[side][i]) at++;
        if (at == count || edge[at] != table->edge[side][i])
            return error_set(reterr, STATUS_INVALID, json_where(json_at(list, i)),
                             "%u is no edge of that table", table->edge[side][i]);
        place[i] = at;
    }
    return STATUS_OK;
}

/* Leaves a table the edges that `of` names, and their points. */
static enum status edges_leave(struct arena *arena, struct json *of, struct kernel_table *table,
                               struct error *reterr)
{
    uint32_t place[KERNEL_SIDES_MAX][KERNEL_EDGES_MAX];
    struct kernel_table const whole = *table;
    uint32_t const sides = kernel_side_count(table->family);
    void *memory = NULL;
    for (uint32_t s = 0; s < sides; s++)
        STATUS_TRY(edges_choose(arena, of, s, table, place[s], reterr));
    uint64_t const points = kernel_point_count(table);
    for (uint32_t s = 0; s < sides; s++)
        table->is_part = table->is_part || table->edge_count[s] < whole.edge_count[s];
    STATUS_TRY(arena_try(arena, points, sizeof *table->share_ppm, &memory, reterr));
    uint32_t *share_ppm = memory;
    for (uint64_t i = 0; i < points; i++) {
        uint64_t rest = i, stride = 1, from = 0;
        for (uint32_t s = sides; s-- > 0; rest /= table->edge_count[s]) {
            from += stride * place[s][rest % table->edge_count[s]];
            stride *= whole.edge_count[s];
        }
        share_ppm[i] = whole.share_ppm[from];
    }
    table->share_ppm = share_ppm;
    return STATUS_OK;
}

/* The table of another stack, that `of` names: of the same kind where it says no other. Its numbers
 * are there. */
static enum status base_find(struct kernel_reading *reading, struct json *of,
                             const struct kernel_table *table, const struct kernel_table **ret_base,
                             struct error *reterr)
{
    const char *keys[3 + KERNEL_SIDES_MAX + 1] = {"stack", "family", "layout"};
    const char *families[KERNEL_FAMILIES + 1] = {NULL}, *name = NULL;
    const struct kernel_stack *stack = NULL;
    struct json *value = NULL;
    uint32_t family = table->family;
    enum kernel_layout layout = table->layout;
    for (uint32_t f = 0; f < KERNEL_FAMILIES; f++)
        families[f] = kernel_family_name((enum kernel_family)f);
    STATUS_TRY(json_as_object(of, reterr));
    STATUS_TRY(kernel_text_read(of, "stack", &name, reterr));
    if ((value = json_take(of, "family")) != NULL)
        STATUS_TRY(json_choice(value, families, &family, reterr));
    if (json_take(of, "layout") != NULL) STATUS_TRY(layout_read(of, &layout, reterr));
    for (uint32_t s = 0; s < kernel_side_count(table->family); s++) {
        keys[3 + s] = kernel_side_name(table->family, s);
        (void)json_take(of, keys[3 + s]); /* edges_choose() reads it. */
    }
    STATUS_TRY(json_end(of, keys, reterr));
    STATUS_TRY(reading->find(reading, name, true, json_where(of), &stack, reterr));
    *ret_base =
        family == KERNEL_MATMUL
            ? kernel_table_of(stack, table->format, layout, FORMAT_BF16, table->cast)
        : family == KERNEL_GROUPED
            ? kernel_grouped_of(stack, table->format, layout, table->result, table->cast)
            : kernel_other_of(stack, (enum kernel_family)family, table->format, table->stored);
    bool const has_sides = *ret_base != NULL && kernel_side_count((*ret_base)->family) ==
                                                    kernel_side_count(table->family);
    if (has_sides && (family != KERNEL_MATMUL || (*ret_base)->layout == layout)) return STATUS_OK;
    return error_set(reterr, STATUS_NOT_FOUND, json_where(of),
                     "\"%.80s\" has no table of %s in %s for this one", name, families[family],
                     format_name(table->format));
}

/* A table of shares that are another's by a factor, which is no more than 1 then. */
static enum status factor_apply(struct arena *arena, struct json *object,
                                struct kernel_table *table, struct error *reterr)
{
    uint64_t const points = kernel_point_count(table);
    void *memory = NULL;
    const char *keys[KERNEL_SIDES_MAX + 2] = {"ppm"};
    STATUS_TRY(json_as_object(object, reterr));
    STATUS_TRY(arena_try(arena, 1, sizeof(struct kernel_table), &memory, reterr));
    struct kernel_table *factor = memory;
    *factor = (struct kernel_table){.family = table->family, .factor = table->factor};
    STATUS_TRY(kernel_grid_read(arena, object, "ppm", FACTOR_PPM_MOST, factor, reterr));
    for (uint32_t s = 0; s < kernel_side_count(table->family); s++)
        keys[1 + s] = kernel_side_name(table->family, s);
    STATUS_TRY(json_end(object, keys, reterr));
    STATUS_TRY(arena_try(arena, points, sizeof *table->share_ppm, &memory, reterr));
    uint32_t *share_ppm = memory;
    for (uint64_t i = 0; i < points; i++) {
        uint64_t side[KERNEL_SIDES_MAX] = {0}, rest = i;
        for (uint32_t s = kernel_side_count(table->family); s-- > 0; rest /= table->edge_count[s])
            side[s] = table->edge[s][rest % table->edge_count[s]];
        uint64_t const ppm =
            (uint64_t)table->share_ppm[i] * kernel_table_inside_ppm(factor, side) / PPM_ONE;
        share_ppm[i] = ppm > PPM_ONE ? PPM_ONE : ppm == 0 ? 1 : (uint32_t)ppm;
    }
    table->share_ppm = share_ppm;
    table->factor = factor;
    return STATUS_OK;
}

/* What another stack has, as it is or by a factor. */
static enum status reference_read(struct kernel_reading *reading, struct json *object,
                                  struct json *of, struct kernel_table *table, struct error *reterr)
{
    struct kernel_table const kind = *table;
    const struct kernel_table *base = NULL;
    struct json *factor = json_take(object, "factor");
    STATUS_TRY(base_find(reading, of, table, &base, reterr));
    *table = *base;
    table->family = kind.family;
    table->layout = kind.layout;
    table->result = kind.result;
    table->stored = kind.stored;
    table->cast = kind.cast;
    table->appends = base->appends && may_append(kind.family);
    STATUS_TRY(edges_leave(reading->arena, of, table, reterr));
    if (base->of == NULL) STATUS_TRY(kernel_text_read(of, "stack", &table->of, reterr));
    if (factor == NULL) {
        if (base->family == kind.family && base->layout == kind.layout) return STATUS_OK;
        return error_set(reterr, STATUS_INVALID, json_where(object),
                         "a table of another family or layout needs a \"factor\" to that one");
    }
    STATUS_TRY(kernel_text_read(object, "derived", &table->derived, reterr));
    STATUS_TRY(origin_read(object, table, reterr));
    table->is_part = false; /* The file says what the product of both was compared with. */
    return factor_apply(reading->arena, factor, table, reterr);
}

/* Offers those keys alone that a table may leave out: another one that is misspelt has been refused
 * as missing. */
static enum status keys_end(struct json *object, enum kernel_family family, bool is_reference,
                            struct error *reterr)
{
    const char *keys[6] = {NULL};
    uint32_t count = 0;
    if (is_reference) keys[count++] = "factor";
    if (kernel_is_of_products(family)) keys[count++] = "result";
    if (may_append(family)) keys[count++] = "appends";
    if (multiplies(family)) keys[count++] = "quantises";
    if (kernel_is_of_products(family)) keys[count++] = "cast";
    return json_end(object, keys, reterr);
}

enum status kernel_table_read(struct kernel_reading *reading, struct json *object,
                              struct kernel_table *table, struct error *reterr)
{
    STATUS_TRY(json_as_object(object, reterr));
    STATUS_TRY(kind_read(object, table, reterr));
    struct json *of = json_take(object, "of");
    if (of != NULL) {
        STATUS_TRY(reference_read(reading, object, of, table, reterr));
        return keys_end(object, table->family, true, reterr);
    }
    STATUS_TRY(origin_read(object, table, reterr));
    STATUS_TRY(rate_read(object, "flop_rate", QUANTITY_FLOP_RATE, &table->flop_per_s, reterr));
    STATUS_TRY(rate_read(object, "hbm_rate", QUANTITY_RATE, &table->bytes_per_s, reterr));
    STATUS_TRY(kernel_grid_read(reading->arena, object, "share_ppm", PPM_ONE, table, reterr));
    return keys_end(object, table->family, false, reterr);
}
