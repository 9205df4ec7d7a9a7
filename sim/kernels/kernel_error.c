/*
 * How good a table is: its points are looked up in what is left of it without them.
 */
#include <stddef.h>

#include "sim/base/arena.h"
#include "sim/base/ranked.h"
#include "sim/base/units.h"
#include "sim/kernels/kernels.h"

/* Some edges of each side, by their places. */
struct some_edges {
    uint32_t at[KERNEL_SIDES_MAX][KERNEL_EDGES_MAX];
    uint32_t count[KERNEL_SIDES_MAX];
};

struct errors {
    uint64_t *ppm;
    uint32_t count;
};

/* A point of the grid by the places of its edges. */
struct point {
    uint32_t at[KERNEL_SIDES_MAX];
};

static struct point point_of(const struct kernel_table *table, uint64_t index)
{
    struct point point;
    for (uint32_t s = kernel_side_count(table->family); s-- > 0; index /= table->edge_count[s])
        point.at[s] = (uint32_t)(index % table->edge_count[s]);
    return point;
}

static void edge_keep(struct some_edges *edges, uint32_t side, uint32_t at)
{
    edges->at[side][edges->count[side]++] = at;
}

static uint64_t kept_count(const struct kernel_table *table, const struct some_edges *kept)
{
    uint64_t count = 1;
    for (uint32_t s = 0; s < kernel_side_count(table->family); s++) count *= kept->count[s];
    return count;
}

/* The index in the table of the point that is the `nth` of some edges. */
static uint64_t kept_index(const struct kernel_table *table, const struct some_edges *kept,
                           uint64_t nth)
{
    uint64_t index = 0, stride = 1;
    for (uint32_t s = kernel_side_count(table->family); s-- > 0; nth /= kept->count[s]) {
        index += stride * kept->at[s][nth % kept->count[s]];
        stride *= table->edge_count[s];
    }
    return index;
}

/* The table with some edges alone. `ret_table` has room for all of them. */
static void rest_of(const struct kernel_table *table, const struct some_edges *kept,
                    struct kernel_table *ret_table)
{
    uint32_t *share_ppm = (uint32_t *)ret_table->share_ppm;
    for (uint32_t s = 0; s < kernel_side_count(table->family); s++) {
        uint32_t *edge = (uint32_t *)ret_table->edge[s];
        ret_table->edge_count[s] = kept->count[s];
        for (uint32_t i = 0; i < kept->count[s]; i++) edge[i] = table->edge[s][kept->at[s][i]];
    }
    for (uint64_t nth = 0; nth < kept_count(table, kept); nth++)
        share_ppm[nth] = table->share_ppm[kept_index(table, kept, nth)];
}

static enum status room_take(struct arena *arena, const struct kernel_table *table,
                             struct kernel_table *ret_rest, struct errors *ret_errors,
                             struct error *reterr)
{
    void *memory = NULL;
    *ret_rest = *table;
    for (uint32_t s = 0; s < kernel_side_count(table->family); s++) {
        STATUS_TRY(arena_try(arena, table->edge_count[s], sizeof(uint32_t), &memory, reterr));
        ret_rest->edge[s] = memory;
    }
    STATUS_TRY(arena_try(arena, kernel_point_count(table), sizeof(uint32_t), &memory, reterr));
    ret_rest->share_ppm = memory;
    STATUS_TRY(arena_try(arena, kernel_point_count(table), sizeof(uint64_t), &memory, reterr));
    *ret_errors = (struct errors){.ppm = memory};
    return STATUS_OK;
}

/* One more error, of a point that the rest does not have. Cores are not asked for: the point lies
 * within the grid. */
static void error_add(const struct kernel_table *table, const struct kernel_table *rest,
                      uint64_t index, struct errors *errors)
{
    uint64_t side[KERNEL_SIDES_MAX] = {0};
    struct point const point = point_of(table, index);
    for (uint32_t s = 0; s < kernel_side_count(table->family); s++)
        side[s] = table->edge[s][point.at[s]];
    uint64_t const known = table->share_ppm[index];
    uint64_t const found = kernel_table_share(rest, side, 1).ppm;
    uint64_t const apart = known > found ? known - found : found - known;
    uint64_t const ppm = apart * PPM_ONE / found; /* Of the time that is found. */
    errors->ppm[errors->count++] = units_smaller(ppm, UINT32_MAX);
}

static struct kernel_error error_of(const struct errors *errors)
{
    struct kernel_error error = {.point_count = errors->count};
    if (errors->count == 0) return error;
    uint32_t const count = errors->count, ninetieth = (uint32_t)((uint64_t)count * 9 / 10);
    error.median_ppm = (uint32_t)ranked_number(errors->ppm, count, count / 2);
    error.ninetieth_ppm = (uint32_t)ranked_number(errors->ppm, count, ninetieth);
    return error;
}

enum status kernel_error_of_edges(struct arena *arena, const struct kernel_table *table,
                                  struct kernel_error *ret_error, struct error *reterr)
{
    struct some_edges kept = {0};
    struct kernel_table rest;
    struct errors errors;
    STATUS_TRY(room_take(arena, table, &rest, &errors, reterr));
    for (uint32_t s = 0; s < kernel_side_count(table->family); s++)
        for (uint32_t i = 0; i < table->edge_count[s]; i++)
            if (i % 2 == 0 || i + 1 == table->edge_count[s]) edge_keep(&kept, s, i);
    rest_of(table, &kept, &rest);
    for (uint64_t i = 0; i < kernel_point_count(table); i++) {
        struct point const point = point_of(table, i);
        bool is_kept = true;
        for (uint32_t s = 0; s < kernel_side_count(table->family); s++)
            is_kept = is_kept && (point.at[s] % 2 == 0 || point.at[s] + 1 == table->edge_count[s]);
        if (!is_kept) error_add(table, &rest, i, &errors);
    }
    *ret_error = error_of(&errors);
    return STATUS_OK;
}

/* Whether a point lies on no outermost edge of the sides: the next edge either way is known. */
static bool is_within(const struct kernel_table *table, const struct point *point, uint32_t sides)
{
    bool within = true;
    for (uint32_t s = 0; s < kernel_side_count(table->family); s++)
        if ((sides >> s & 1) != 0)
            within = within && point->at[s] > 0 && point->at[s] + 1 < table->edge_count[s];
    return within;
}

/* The errors of all points that are like one on some sides, without the edges that it has there. */
static void alike_add(const struct kernel_table *table, const struct point *like, uint32_t sides,
                      struct kernel_table *rest, struct errors *errors)
{
    struct some_edges near = {0}, alike = {0};
    for (uint32_t s = 0; s < kernel_side_count(table->family); s++) {
        bool const is_out = (sides >> s & 1) != 0;
        for (uint32_t i = 0; i < table->edge_count[s]; i++) {
            if (!is_out || i + 1 == like->at[s] || i == like->at[s] + 1) edge_keep(&near, s, i);
            if (!is_out || i == like->at[s]) edge_keep(&alike, s, i);
        }
    }
    rest_of(table, &near, rest);
    for (uint64_t nth = 0; nth < kept_count(table, &alike); nth++)
        error_add(table, rest, kept_index(table, &alike, nth), errors);
}

enum status kernel_error_of_shapes(struct arena *arena, const struct kernel_table *table,
                                   uint32_t sides, struct kernel_error *ret_error,
                                   struct error *reterr)
{
    struct kernel_table rest;
    struct errors errors;
    STATUS_TRY(room_take(arena, table, &rest, &errors, reterr));
    for (uint64_t i = 0; i < kernel_point_count(table); i++) {
        struct point const point = point_of(table, i);
        bool is_first = true; /* Of its likes. */
        for (uint32_t s = 0; s < kernel_side_count(table->family); s++)
            is_first = is_first && ((sides >> s & 1) != 0 || point.at[s] == 0);
        if (is_first && is_within(table, &point, sides))
            alike_add(table, &point, sides, &rest, &errors);
    }
    *ret_error = error_of(&errors);
    return STATUS_OK;
}
