/*
 * How good a table is: its points are looked up in what is left of it without them.
 */
#include <stddef.h>

#include "sim/base/arena.h"
#include "sim/base/units.h"
#include "sim/kernels/kernels.h"

/* Edges by side that a look-up does not know. */
struct left_out {
    bool edge[KERNEL_SIDES][KERNEL_EDGES_MAX];
};

struct errors {
    uint32_t *ppm;
    uint32_t count;
};

/* A point of the grid by the places of its edges. */
struct point {
    uint32_t at[KERNEL_SIDES];
};

static uint64_t point_count(const struct kernel_table *table)
{
    return (uint64_t)table->edge_count[KERNEL_M] * table->edge_count[KERNEL_N] *
           table->edge_count[KERNEL_K];
}

static struct point point_of(const struct kernel_table *table, uint64_t index)
{
    struct point point;
    for (uint32_t s = KERNEL_SIDES; s-- > 0; index /= table->edge_count[s])
        point.at[s] = (uint32_t)(index % table->edge_count[s]);
    return point;
}

static bool is_left_out(const struct left_out *left_out, const struct point *point)
{
    bool is_there = true;
    for (uint32_t s = 0; s < KERNEL_SIDES; s++)
        is_there = is_there && !left_out->edge[s][point->at[s]];
    return !is_there;
}

/* The table without some edges. `ret_table` has room for all of them. */
static void rest_of(const struct kernel_table *table, const struct left_out *left_out,
                    struct kernel_table *ret_table)
{
    uint32_t *share_ppm = (uint32_t *)ret_table->share_ppm;
    uint64_t count = 0;
    for (uint32_t s = 0; s < KERNEL_SIDES; s++) {
        uint32_t *edge = (uint32_t *)ret_table->edge[s];
        ret_table->edge_count[s] = 0;
        for (uint32_t i = 0; i < table->edge_count[s]; i++)
            if (!left_out->edge[s][i]) edge[ret_table->edge_count[s]++] = table->edge[s][i];
    }
    for (uint64_t i = 0; i < point_count(table); i++) {
        struct point const point = point_of(table, i);
        if (!is_left_out(left_out, &point)) share_ppm[count++] = table->share_ppm[i];
    }
}

static enum status room_take(struct arena *arena, const struct kernel_table *table,
                             struct kernel_table *ret_rest, struct errors *ret_errors,
                             struct error *reterr)
{
    void *memory = NULL;
    *ret_rest = *table;
    for (uint32_t s = 0; s < KERNEL_SIDES; s++) {
        STATUS_TRY(arena_try(arena, table->edge_count[s], sizeof(uint32_t), &memory, reterr));
        ret_rest->edge[s] = memory;
    }
    STATUS_TRY(arena_try(arena, point_count(table), sizeof(uint32_t), &memory, reterr));
    ret_rest->share_ppm = memory;
    STATUS_TRY(arena_try(arena, point_count(table), sizeof(uint32_t), &memory, reterr));
    *ret_errors = (struct errors){.ppm = memory};
    return STATUS_OK;
}

/* One more error, of a point that the rest does not have. Cores are not asked for: the point lies
 * within the grid. */
static void error_add(const struct kernel_table *table, const struct kernel_table *rest,
                      uint64_t index, struct errors *errors)
{
    uint64_t side[KERNEL_SIDES];
    struct point const point = point_of(table, index);
    for (uint32_t s = 0; s < KERNEL_SIDES; s++) side[s] = table->edge[s][point.at[s]];
    uint64_t const known = table->share_ppm[index];
    uint64_t const found = kernel_table_share(rest, side, 1).ppm;
    uint64_t const apart = known > found ? known - found : found - known;
    uint64_t const ppm = apart * PPM_ONE / found; /* Of the time that is found. */
    errors->ppm[errors->count++] = ppm > UINT32_MAX ? UINT32_MAX : (uint32_t)ppm;
}

/* The error that `rank` others are not above, by halves of the range. */
static uint32_t error_at(const struct errors *errors, uint32_t rank)
{
    uint32_t least = 0, most = UINT32_MAX;
    while (least < most) {
        uint32_t const middle = least + (most - least) / 2;
        uint32_t below = 0;
        for (uint32_t i = 0; i < errors->count; i++) below += errors->ppm[i] <= middle;
        if (below > rank)
            most = middle;
        else
            least = middle + 1;
    }
    return least;
}

static struct kernel_error error_of(const struct errors *errors)
{
    struct kernel_error error = {.point_count = errors->count};
    if (errors->count == 0) return error;
    error.median_ppm = error_at(errors, errors->count / 2);
    error.ninetieth_ppm = error_at(errors, (uint32_t)((uint64_t)errors->count * 9 / 10));
    return error;
}

enum status kernel_error_of_edges(struct arena *arena, const struct kernel_table *table,
                                  struct kernel_error *ret_error, struct error *reterr)
{
    struct left_out left_out = {0};
    struct kernel_table rest;
    struct errors errors;
    STATUS_TRY(room_take(arena, table, &rest, &errors, reterr));
    for (uint32_t s = 0; s < KERNEL_SIDES; s++)
        for (uint32_t i = 1; i + 1 < table->edge_count[s]; i += 2) left_out.edge[s][i] = true;
    rest_of(table, &left_out, &rest);
    for (uint64_t i = 0; i < point_count(table); i++) {
        struct point const point = point_of(table, i);
        if (is_left_out(&left_out, &point)) error_add(table, &rest, i, &errors);
    }
    *ret_error = error_of(&errors);
    return STATUS_OK;
}

enum status kernel_error_of_shapes(struct arena *arena, const struct kernel_table *table,
                                   struct kernel_error *ret_error, struct error *reterr)
{
    struct kernel_table rest;
    struct errors errors;
    STATUS_TRY(room_take(arena, table, &rest, &errors, reterr));
    for (uint32_t n = 1; n + 1 < table->edge_count[KERNEL_N]; n++)
        for (uint32_t k = 1; k + 1 < table->edge_count[KERNEL_K]; k++) {
            struct left_out left_out = {0};
            left_out.edge[KERNEL_N][n] = left_out.edge[KERNEL_K][k] = true;
            rest_of(table, &left_out, &rest);
            for (uint64_t m = 0; m < table->edge_count[KERNEL_M]; m++) {
                uint64_t const row = m * table->edge_count[KERNEL_N] + n;
                error_add(table, &rest, row * table->edge_count[KERNEL_K] + k, &errors);
            }
        }
    *ret_error = error_of(&errors);
    return STATUS_OK;
}
