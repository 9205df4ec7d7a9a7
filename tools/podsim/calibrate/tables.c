/*
 * Rows to tables. The sides that rows have are the edges of a grid. A point of the grid has the
 * median of its rows as a share of the roofline. Points without a row have the mean of the
 * logarithms of the shares around them, from the measured points outwards.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/logarithm.h"
#include "sim/base/ranked.h"
#include "sim/base/units.h"
#include "tools/podsim/calibrate/calibrate.h"

enum { REASON_BYTES = 256, FILLED_MOST = 2 /* Of two points one at most has no row. */ };

/* The rows of a kind, by the points that they are of. */
struct points {
    uint64_t count;
    uint32_t *row_count;    /* [point] */
    const struct row **row; /* Those that are used. */
    uint64_t *point;        /* Of each of them. */
    uint32_t used_count;
};

enum status calibrate_leave_out(struct arena *arena, struct calibration *calibration, uint32_t line,
                                struct error *reterr, const char *format, ...)
{
    char why[REASON_BYTES];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(why, sizeof why, format, arguments);
    va_end(arguments);
    const char *text = arena_text(arena, why);
    if (text == NULL) return error_no_memory(reterr, "");
    calibration->left_out[calibration->left_out_count++] =
        (struct calibrate_left_out){.line = line, .why = text};
    return STATUS_OK;
}

enum status calibrate_spread(struct arena *arena, const struct row *const *row, uint32_t count,
                             struct calibrate_spread *ret_spread, struct error *reterr)
{
    void *memory = NULL;
    *ret_spread = (struct calibrate_spread){.most_line = 0};
    if (count == 0) return STATUS_OK;
    STATUS_TRY(arena_try(arena, count, sizeof(uint64_t), &memory, reterr));
    uint64_t *ppm = memory;
    for (uint32_t i = 0; i < count; i++) {
        units_wide const apart = (units_wide)(uint64_t)(row[i]->high_ps - row[i]->low_ps) * PPM_ONE;
        units_wide const of = apart / (uint64_t)row[i]->median_ps;
        ppm[i] = of > UINT32_MAX ? UINT32_MAX : (uint64_t)of;
        if (ret_spread->most_line != 0 && ppm[i] <= ret_spread->most_ppm) continue;
        ret_spread->most_ppm = (uint32_t)ppm[i];
        ret_spread->most_line = row[i]->line;
    }
    ret_spread->median_ppm = (uint32_t)ranked_number(ppm, count, count / 2);
    return STATUS_OK;
}

static bool is_of_kind(const struct row *row, const struct kernel_table *table)
{
    return row->what == ROW_KERNEL && row->family == table->family &&
           row->format == table->format &&
           (row->family != KERNEL_MATMUL ||
            (row->layout == table->layout && row->result == table->result &&
             row->cast == table->cast));
}

const struct kernel_table *calibrate_base_table(const struct calibration *calibration,
                                                const struct kernel_table *table)
{
    for (uint32_t i = 0; calibration->base != NULL && i < calibration->base->table_count; i++) {
        const struct kernel_table *other = &calibration->base->table[i];
        if (kernel_tables_alike(other, table)) return other;
    }
    return NULL;
}

/* A table without points for each kind of row. */
static enum status kinds_find(const char *path, struct calibration *calibration,
                              struct error *reterr)
{
    char place[192];
    for (uint32_t i = 0; i < calibration->rows->count; i++) {
        const struct row *row = &calibration->rows->row[i];
        uint32_t t = 0;
        if (row->what != ROW_KERNEL) continue;
        while (t < calibration->table_count && !is_of_kind(row, &calibration->table[t].table)) t++;
        if (t == KERNEL_TABLES_MAX) {
            (void)snprintf(place, sizeof place, "%.160s:%u", path, row->line);
            return error_set(reterr, STATUS_LIMIT, place,
                             "another kind of kernel; a stack has %d tables at most",
                             KERNEL_TABLES_MAX);
        }
        struct calibrate_table *made = &calibration->table[t];
        if (t == calibration->table_count) {
            calibration->table_count++;
            made->table = (struct kernel_table){
                .family = row->family,
                .format = row->format,
                .layout = row->layout,
                .stored = row->format,
                .result = row->family == KERNEL_MATMUL ? row->result : FORMAT_BF16,
                .cast = row->cast,
                .source = calibration->source,
                .flop_per_s = calibration->chip->math_peak_flop_per_s[row->format],
                .bytes_per_s = calibration->chip->hbm_bytes_per_s,
            };
        }
        made->row_count++;
    }
    return STATUS_OK;
}

/* Adds a number to ascending ones. False: there is no room. */
static bool edge_add(uint32_t *edge, uint32_t *count, uint32_t side)
{
    uint32_t at = 0;
    while (at < *count && edge[at] < side) at++;
    if (at < *count && edge[at] == side) return true;
    if (*count == KERNEL_EDGES_MAX) return false;
    memmove(edge + at + 1, edge + at, (*count - at) * sizeof *edge);
    edge[at] = side;
    ++*count;
    return true;
}

/* The edges of all sides, and how many points they have. */
static enum status edges_find(struct arena *arena, const struct rows *rows,
                              struct calibrate_table *made, uint64_t *ret_points,
                              struct error *reterr)
{
    struct kernel_table *table = &made->table;
    uint32_t *edge[KERNEL_SIDES_MAX] = {NULL};
    uint32_t const sides = kernel_side_count(table->family);
    *ret_points = 1;
    for (uint32_t s = 0; s < sides; s++) {
        void *memory = NULL;
        STATUS_TRY(arena_try(arena, KERNEL_EDGES_MAX, sizeof *edge[s], &memory, reterr));
        table->edge[s] = edge[s] = memory;
    }
    for (uint32_t i = 0; i < rows->count; i++) {
        bool is_room = true;
        if (!is_of_kind(&rows->row[i], table)) continue;
        for (uint32_t s = 0; s < sides; s++)
            is_room = is_room && edge_add(edge[s], &table->edge_count[s], rows->row[i].side[s]);
        if (is_room) continue;
        made->refusal = "one side has more than 128 lengths, which is no grid";
        return STATUS_OK;
    }
    for (uint32_t s = 0; s < sides; s++) *ret_points *= table->edge_count[s];
    if (*ret_points > (uint64_t)FILLED_MOST * made->row_count)
        made->refusal = "more than half of the combinations of its sides have no row";
    return STATUS_OK;
}

static uint64_t point_of(const struct kernel_table *table, const struct row *row)
{
    uint64_t point = 0;
    for (uint32_t s = 0; s < kernel_side_count(table->family); s++) {
        uint32_t at = 0;
        while (table->edge[s][at] != row->side[s]) at++;
        point = point * table->edge_count[s] + at;
    }
    return point;
}

/* "matmul 16 x 256 x 256" */
static void shape_text(const struct row *row, char *text, size_t bytes)
{
    size_t at = (size_t)snprintf(text, bytes, "%s", kernel_family_name(row->family));
    for (uint32_t s = 0; s < kernel_side_count(row->family) && at < bytes; s++)
        at += (size_t)snprintf(text + at, bytes - at, "%s%u", s == 0 ? " " : " x ", row->side[s]);
}

/* The share of the roofline that a row reaches, in millionths; more than PPM_ONE: impossible. */
static uint64_t share_of(const struct kernel_table *table, const struct row *row)
{
    uint64_t side[KERNEL_SIDES_MAX] = {0};
    for (uint32_t s = 0; s < kernel_side_count(table->family); s++) side[s] = row->side[s];
    units_wide const scaled = (units_wide)(uint64_t)kernel_roofline_ps(table, side) * PPM_ONE;
    units_wide const ppm = scaled / (uint64_t)row->median_ps;
    return ppm > UINT32_MAX ? UINT32_MAX : ppm == 0 ? 1 : (uint64_t)ppm;
}

/* Rows by their points, without those that are faster than the roofline. */
static enum status rows_place(struct arena *arena, struct calibration *calibration,
                              struct calibrate_table *made, struct points *points,
                              struct error *reterr)
{
    void *memory = NULL;
    STATUS_TRY(arena_try(arena, points->count, sizeof *points->row_count, &memory, reterr));
    points->row_count = memory;
    STATUS_TRY(arena_try(arena, made->row_count, sizeof *points->row, &memory, reterr));
    points->row = memory;
    STATUS_TRY(arena_try(arena, made->row_count, sizeof *points->point, &memory, reterr));
    points->point = memory;
    for (uint32_t i = 0; i < calibration->rows->count; i++) {
        const struct row *row = &calibration->rows->row[i];
        if (!is_of_kind(row, &made->table)) continue;
        uint64_t const ppm = share_of(&made->table, row);
        if (ppm > PPM_ONE) {
            char shape[96];
            shape_text(row, shape, sizeof shape);
            made->fast_count++;
            STATUS_TRY(calibrate_leave_out(
                arena, calibration, row->line, reterr, "%s: faster than the roofline, %s%.4g times",
                shape, ppm == UINT32_MAX ? "more than " : "", (double)ppm / PPM_ONE));
            continue;
        }
        uint64_t const point = point_of(&made->table, row);
        points->row_count[point]++;
        points->point[points->used_count] = point;
        points->row[points->used_count++] = row;
    }
    return STATUS_OK;
}

/* The share of each point: of the median of its rows. Points without one stay 0. */
static enum status shares_find(struct arena *arena, struct kernel_table *table,
                               const struct points *points, uint32_t *share_ppm,
                               struct error *reterr)
{
    void *memory = NULL;
    STATUS_TRY(arena_try(arena, points->count + 1, sizeof(uint32_t), &memory, reterr));
    uint32_t *begin = memory; /* Of the rows of each point, which lie together. */
    STATUS_TRY(arena_try(arena, points->used_count, sizeof(uint64_t), &memory, reterr));
    uint64_t *share = memory;
    for (uint64_t p = 0; p < points->count; p++) begin[p + 1] = begin[p] + points->row_count[p];
    STATUS_TRY(arena_try(arena, points->count, sizeof(uint32_t), &memory, reterr));
    uint32_t *filled = memory;
    for (uint32_t i = 0; i < points->used_count; i++) {
        uint64_t const p = points->point[i];
        share[begin[p] + filled[p]++] = share_of(table, points->row[i]);
    }
    for (uint64_t p = 0; p < points->count; p++)
        if (points->row_count[p] > 0)
            share_ppm[p] = (uint32_t)ranked_number(share + begin[p], points->row_count[p],
                                                   points->row_count[p] / 2);
    table->share_ppm = share_ppm;
    return STATUS_OK;
}

/* The mean of the logarithms of the shares next to a point on all sides; 0: it has none. */
static uint32_t share_around(const struct kernel_table *table, uint64_t point)
{
    int64_t sum = 0, count = 0;
    uint64_t stride = 1, rest = point;
    for (uint32_t s = kernel_side_count(table->family); s-- > 0;) {
        uint32_t const edges = table->edge_count[s];
        uint64_t const at = rest % edges;
        uint64_t const next[2] = {at > 0 ? point - stride : point,
                                  at + 1 < edges ? point + stride : point};
        for (int i = 0; i < 2; i++)
            if (next[i] != point && table->share_ppm[next[i]] != 0) {
                sum += logarithm_2(table->share_ppm[next[i]]);
                count++;
            }
        rest /= edges;
        stride *= edges;
    }
    return count == 0 ? 0 : (uint32_t)logarithm_times_power_2(1, sum / count);
}

/* Fills points without a row from those around them, one step further each time. */
static void holes_fill(const struct kernel_table *table, uint64_t points, uint32_t *share_ppm,
                       uint32_t *next_ppm)
{
    for (bool is_whole = false; !is_whole;) {
        is_whole = true;
        for (uint64_t p = 0; p < points; p++) {
            next_ppm[p] = share_ppm[p] != 0 ? share_ppm[p] : share_around(table, p);
            is_whole = is_whole && next_ppm[p] != 0;
        }
        memcpy(share_ppm, next_ppm, (size_t)points * sizeof *share_ppm);
    }
}

/* By how much the rows are off what the table says at their points. */
static enum status errors_find(struct arena *arena, struct kernel_table *table,
                               const struct points *points, struct error *reterr)
{
    void *memory = NULL;
    STATUS_TRY(arena_try(arena, points->used_count, sizeof(uint64_t), &memory, reterr));
    uint64_t *ppm = memory;
    for (uint32_t i = 0; i < points->used_count; i++) {
        uint64_t const known = share_of(table, points->row[i]);
        uint64_t const found = table->share_ppm[points->point[i]];
        ppm[i] = (known > found ? known - found : found - known) * PPM_ONE / found;
    }
    table->row_count = points->used_count;
    uint64_t const median = ranked_number(ppm, points->used_count, points->used_count / 2);
    uint64_t const ninetieth =
        ranked_number(ppm, points->used_count, (uint32_t)((uint64_t)points->used_count * 9 / 10));
    table->error_median_ppm = (uint32_t)units_smaller(median, UINT32_MAX);
    table->error_ninetieth_ppm = (uint32_t)units_smaller(ninetieth, UINT32_MAX);
    return STATUS_OK;
}

static enum status table_make(struct arena *arena, struct calibration *calibration,
                              struct calibrate_table *made, struct error *reterr)
{
    struct points points = {.count = 0};
    uint64_t holes = 0;
    void *share = NULL, *next = NULL;
    if (made->table.flop_per_s == 0) {
        made->refusal = "the chip's file has no rate for the format";
        return STATUS_OK;
    }
    STATUS_TRY(edges_find(arena, calibration->rows, made, &points.count, reterr));
    if (made->refusal != NULL) return STATUS_OK;
    STATUS_TRY(rows_place(arena, calibration, made, &points, reterr));
    for (uint64_t p = 0; p < points.count; p++) holes += points.row_count[p] == 0;
    if (holes * FILLED_MOST > points.count) {
        made->refusal = made->fast_count > 0
                            ? "too many rows are faster than the roofline; is --chip right?"
                            : "more than half of the combinations of its sides have no row";
        return STATUS_OK;
    }
    made->filled_count = (uint32_t)holes;
    STATUS_TRY(arena_try(arena, points.count, sizeof(uint32_t), &share, reterr));
    STATUS_TRY(arena_try(arena, points.count, sizeof(uint32_t), &next, reterr));
    STATUS_TRY(shares_find(arena, &made->table, &points, share, reterr));
    holes_fill(&made->table, points.count, share, next);
    STATUS_TRY(errors_find(arena, &made->table, &points, reterr));
    STATUS_TRY(calibrate_spread(arena, points.row, points.used_count, &made->spread, reterr));
    return kernel_error_of_edges(arena, &made->table, &made->edges, reterr);
}

/* Why the rows make nothing. */
static const char *nothing_why(struct arena *arena, const struct calibration *calibration)
{
    const struct calibrate_left_out *left_out = calibration->left_out;
    const char *of_collectives = calibrate_collectives_refusal(arena, calibration);
    if (calibration->table_count > 0) return calibration->table[0].refusal;
    if (calibration->left_out_count > 0)
        return arena_format(arena, "line %u: %s", left_out->line, left_out->why);
    if (of_collectives != NULL) return of_collectives;
    return "no row is of a kernel that the base has";
}

enum status calibrate_tables(struct arena *arena, const char *path, struct calibration *calibration,
                             struct error *reterr)
{
    void *memory = NULL;
    bool is_of_use = false;
    STATUS_TRY(
        arena_try(arena, calibration->rows->count, sizeof *calibration->left_out, &memory, reterr));
    calibration->left_out = memory;
    STATUS_TRY(kinds_find(path, calibration, reterr));
    for (uint32_t t = 0; t < calibration->table_count; t++) {
        STATUS_TRY(table_make(arena, calibration, &calibration->table[t], reterr));
        is_of_use = is_of_use || calibration->table[t].refusal == NULL;
    }
    STATUS_TRY(calibrate_between(arena, calibration, reterr));
    STATUS_TRY(calibrate_collectives(arena, path, calibration, reterr));
    STATUS_TRY(calibrate_overlap(arena, calibration, reterr));
    is_of_use = is_of_use || (calibration->overlap.row_count > 0 && calibration->base != NULL);
    const struct chip_nccl *learned = &calibration->collectives.factors;
    is_of_use =
        is_of_use || learned->latency_ppm != 0 || learned->byte_ppm != 0 || learned->nvls_ppm != 0;
    for (uint32_t f = 0; f < WORK_FUNCTION_COUNT; f++)
        is_of_use = is_of_use || calibration->function[f].share_ppm != 0;
    if (is_of_use || calibration->launch_ps != 0) return STATUS_OK;
    const char *why = nothing_why(arena, calibration);
    if (why == NULL) return error_no_memory(reterr, "");
    return error_set(reterr, STATUS_INVALID, path, "the rows make no table for %s: %s",
                     calibration->chip->name, why);
}
