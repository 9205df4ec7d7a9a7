/*
 * Order k costs dimension d  a[d][k] = cost_d (n_d - 1) · (product of the sizes gathered before d).
 * Wanted are shares x >= 0, Σ x = 1, with the least max_d Σ_k a[d][k] x_k. Where all dimensions can
 * be made equal that is A x = t·1; where they cannot (a long line beside a short ring), some orders
 * get nothing. The optimum of so small a linear program lies where as many dimensions are equal as
 * orders are used, so all those few square systems are solved by Cramer's rule and compared.
 */
#include "sim/collective/shares.h"

#include <stdbool.h>

#include "sim/base/units.h"

__extension__ typedef __int128 shares_wide;

struct candidate {
    int64_t weight[GROUP_DIMENSIONS_MAX];
    int64_t total;
    shares_wide load; /* Of the busiest dimension, times `total`. */
};

struct system {
    uint32_t count;
    int64_t a[GROUP_DIMENSIONS_MAX][GROUP_DIMENSIONS_MAX]; /* [dimension][order] */
};

static uint32_t members(uint32_t subset, uint32_t ret_member[GROUP_DIMENSIONS_MAX])
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < GROUP_DIMENSIONS_MAX; i++)
        if ((subset >> i & 1) != 0) ret_member[count++] = i;
    return count;
}

/* The determinant of b with column `column` replaced by ones. */
static shares_wide determinant_ones(uint32_t count, int64_t b[3][3], uint32_t column)
{
    int64_t c[3][3];
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t j = 0; j < count; j++) c[i][j] = j == column ? 1 : b[i][j];
    if (count == 1) return c[0][0];
    if (count == 2) return (shares_wide)c[0][0] * c[1][1] - (shares_wide)c[0][1] * c[1][0];
    shares_wide sum = 0;
    for (uint32_t j = 0; j < 3; j++) {
        uint32_t const k = (j + 1) % 3, l = (j + 2) % 3;
        sum += c[0][j] * ((shares_wide)c[1][k] * c[2][l] - (shares_wide)c[1][l] * c[2][k]);
    }
    return sum;
}

/* Shares of the given orders that make the given dimensions equal; false if there are none. */
static bool solve(const struct system *system, uint32_t orders, uint32_t dimensions,
                  struct candidate *ret)
{
    uint32_t order[GROUP_DIMENSIONS_MAX], dimension[GROUP_DIMENSIONS_MAX];
    uint32_t const count = members(orders, order);
    if (members(dimensions, dimension) != count) return false;
    int64_t b[3][3] = {0};
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t j = 0; j < count; j++) b[i][j] = system->a[dimension[i]][order[j]];

    *ret = (struct candidate){0};
    int sign = 0;
    for (uint32_t j = 0; j < count; j++) {
        shares_wide const x = determinant_ones(count, b, j);
        int const x_sign = (x > 0) - (x < 0);
        if (x_sign == 0 || (sign != 0 && x_sign != sign)) return false; /* Fewer orders do. */
        sign = x_sign;
        ret->weight[order[j]] = (int64_t)(x < 0 ? -x : x);
        ret->total += ret->weight[order[j]];
    }
    for (uint32_t d = 0; d < system->count; d++) {
        shares_wide load = 0;
        for (uint32_t k = 0; k < system->count; k++)
            load += (shares_wide)system->a[d][k] * ret->weight[k];
        if (load > ret->load) ret->load = load;
    }
    return true;
}

static struct system system_of(const struct group *group, const uint32_t cost[GROUP_DIMENSIONS_MAX])
{
    struct system system = {.count = group->dimension_count};
    SIM_ASSERT(system.count >= 1 && system.count <= GROUP_DIMENSIONS_MAX);
    /* Cofactors are products of two costs, each below 2·N·stride, which a machine's chips bound;
     * the comparison below needs 116 bits. */
    for (uint32_t d = 0; d < system.count; d++)
        SIM_ASSERT(group_rank_count(group) * group->dimension[d].stride <= UINT32_C(1) << 20);
    for (uint32_t d = 0; d < system.count; d++)
        for (uint32_t k = 0; k < system.count; k++) {
            system.a[d][k] = (int64_t)cost[d] * (group->dimension[d].size - 1);
            for (uint32_t e = k; e % system.count != d; e++)
                system.a[d][k] *= group->dimension[e % system.count].size;
        }
    return system;
}

struct shares shares_solve(const struct group *group, const uint32_t cost[GROUP_DIMENSIONS_MAX])
{
    struct system const system = system_of(group, cost);
    bool is_even = true;
    for (uint32_t d = 0; d < system.count; d++)
        is_even =
            is_even && group->dimension[d].size == group->dimension[0].size && cost[d] == cost[0];
    struct candidate best = {0};
    for (uint32_t d = 0; is_even && d < system.count; d++) best.weight[d] = 1;
    best.total = is_even ? system.count : 0;
    uint32_t const end = UINT32_C(1) << system.count;
    for (uint32_t orders = end - 1; !is_even && orders > 0; orders--)
        for (uint32_t dimensions = end - 1; dimensions > 0; dimensions--) {
            struct candidate candidate;
            if (!solve(&system, orders, dimensions, &candidate)) continue;
            if (best.total == 0 || candidate.load * best.total < best.load * candidate.total)
                best = candidate;
        }
    SIM_ASSERT(best.total > 0);
    struct shares shares = {.total = best.total};
    for (uint32_t d = 0; d < system.count; d++) shares.weight[d] = best.weight[d];
    return shares;
}

uint64_t shares_wait_ppm(const struct group *group, const uint32_t cost[GROUP_DIMENSIONS_MAX],
                         const struct shares *shares)
{
    struct system const system = system_of(group, cost);
    shares_wide order_end[GROUP_DIMENSIONS_MAX] = {0}, dimension_end[GROUP_DIMENSIONS_MAX] = {0};
    shares_wide load[GROUP_DIMENSIONS_MAX] = {0}, end = 0, busy = 0;
    for (uint32_t level = 0; level < system.count; level++)
        for (uint32_t k = 0; k < system.count; k++) {
            uint32_t const d = (k + level) % system.count;
            shares_wide const work = (shares_wide)system.a[d][k] * shares->weight[k];
            shares_wide const begin =
                order_end[k] > dimension_end[d] ? order_end[k] : dimension_end[d];
            if (work == 0) continue;
            order_end[k] = dimension_end[d] = begin + work;
            load[d] += work;
            if (dimension_end[d] > end) end = dimension_end[d];
            if (load[d] > busy) busy = load[d];
        }
    return (uint64_t)((end - busy) * PPM_ONE / busy);
}
