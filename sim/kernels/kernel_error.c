/*
 * How good a table is: its points are looked up in what is left of it without them.
 */
#include <stddef.h>

#include "sim/base/arena.h"
#include "sim/base/units.h"
#include "sim/kernels/kernels.h"

/* Edges by side that a look-up does not know. */
struct left_out {
    bool edge[KERNEL_SIDES_MAX][KERNEL_EDGES_MAX];
};

struct errors {
    uint32_t *ppm;
    uint32_t count;
};

/* A point of the grid by the places of its edges. */
struct point {
    uint32_t at[KERNEL_SIDES_MAX];
};

static uint64_t point_count(const struct kernel_table *table)
{
    uint64_t count = 1;
    for (uint32_t s = 0; s < kernel_side_count(table->family); s++) count *= table->edge_count[s];
    return count;
}

static struct point point_of(const struct kernel_table *table, uint64_t index)
{
    struct point point;
    for (uint32_t s = kernel_side_count(table->family); s-- > 0; index /= table->edge_count[s])
        point.at[s] = (uint32_t)(index % table->edge_count[s]);
    return point;
}

static bool is_left_out(const struct kernel_table *table, const struct left_out *left_out,
                        const struct point *point)
{
    bool is_there = true;
    for (uint32_t s = 0; s < kernel_side_count(table->family); s++)
        is_there = is_there && !left_out->edge[s][point->at[s]];
    return !is_there;
}

/* The table without some edges. `ret_table` has room for all of them. */
static void rest_of(const struct kernel_table *table, const struct left_out *left_out,
                    struct kernel_table *ret_table)
{
    uint32_t *share_ppm = (uint32_t *)ret_table->share_ppm;
    uint64_t count = 0;
    for (uint32_t s = 0; s < kernel_side_count(table->family); s++) {
        uint32_t *edge = (uint32_t *)ret_table->edge[s];
        ret_table->edge_count[s] = 0;
        for (uint32_t i = 0; i < table->edge_count[s]; i++)
            if (!left_out->edge[s][i]) edge[ret_table->edge_count[s]++] = table->edge[s][i];
    }
    for (uint64_t i = 0; i < point_count(table); i++) {
        struct point const point = point_of(table, i);
        if (!is_left_out(table, left_out, &point)) share_ppm[count++] = table->share_ppm[i];
    }
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
    uint64_t side[KERNEL_SIDES_MAX] = {0};
    struct point const point = point_of(table, index);
    for (uint32_t s = 0; s < kernel_side_count(table->family); s++)
        side[s] = table->edge[s][point.at[s]];
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
    for (uint32_t s = 0; s < kernel_side_count(table->family); s++)
        for (uint32_t i = 1; i + 1 < table->edge_count[s]; i += 2) left_out.edge[s][i] = true;
    rest_of(table, &left_out, &rest);
    for (uint64_t i = 0; i < point_count(table); i++) {
        struct point const point = point_of(table, i);
        if (is_left_out(table, &left_out, &point)) error_add(table, &rest, i, &errors);
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
    struct left_out left_out = {0};
    for (uint32_t s = 0; s < kernel_side_count(table->family); s++)
        if ((sides >> s & 1) != 0) left_out.edge[s][like->at[s]] = true;
    rest_of(table, &left_out, rest);
    for (uint64_t i = 0; i < point_count(table); i++) {
        struct point const point = point_of(table, i);
        bool is_alike = true;
        for (uint32_t s = 0; s < kernel_side_count(table->family); s++)
            is_alike = is_alike && ((sides >> s & 1) == 0 || point.at[s] == like->at[s]);
        if (is_alike) error_add(table, rest, i, errors);
    }
}

enum status kernel_error_of_shapes(struct arena *arena, const struct kernel_table *table,
                                   uint32_t sides, struct kernel_error *ret_error,
                                   struct error *reterr)
{
    struct kernel_table rest;
    struct errors errors;
    STATUS_TRY(room_take(arena, table, &rest, &errors, reterr));
    for (uint64_t i = 0; i < point_count(table); i++) {
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
