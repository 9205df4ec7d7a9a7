/*
 * AllToAll after Bruck: in step k everything whose way has bit k goes ahead by 2^k ranks, bundled
 * in one message. Bytes travel several times, messages are few.
 */
#include "workloads/collectives/patterns.h"

/* The index-th displacement that has bit k. */
static uint32_t displacement(uint32_t k, uint32_t index)
{
    return index >> k << (k + 1) | UINT32_C(1) << k | (index & ((UINT32_C(1) << k) - 1));
}

/* Displacements below the size that have bit k. */
static uint32_t bundle(uint32_t size, uint32_t k)
{
    uint32_t const rest = size & ((UINT32_C(2) << k) - 1), bit = UINT32_C(1) << k;
    return (size >> (k + 1) << k) + (rest > bit ? rest - bit : 0);
}

static struct primitive_step step_of(uint32_t size, uint32_t lane, uint32_t position, uint32_t step)
{
    (void)lane;
    (void)position;
    return step_of_round(step, bundle(size, step), UINT32_C(1) << step);
}

static struct primitive_move move_of(uint32_t size, uint32_t lane, uint32_t position, uint32_t step,
                                     uint32_t move)
{
    (void)lane;
    uint32_t const whole = displacement(step, move);
    uint32_t const gone = whole & ((UINT32_C(1) << step) - 1);
    uint32_t const source = (position + size - gone) % size;
    return (struct primitive_move){
        .source = source, .destination = (source + whole) % size, .halves = PRIMITIVE_HALVES};
}

/* Of other sizes than powers of two bundles are shorter. */
static struct primitive_cost cost_of(uint32_t size)
{
    uint64_t const units = (uint64_t)size * log2_up(size);
    return (struct primitive_cost){.depth = log2_up(size),
                                   .units = units,
                                   .port_units = units,
                                   .serial = true,
                                   .reach = PRIMITIVE_REACH_DOUBLING,
                                   .bounds = (size & (size - 1)) == 0 ? 0 : PRIMITIVE_COST_UNITS};
}

const struct primitive primitive_all_to_all_bruck = {
    .name = "all_to_all_bruck",
    .help = "bundles go ahead by 1, 2, 4, ... ranks: V·log2(N)/(2N·w) and ceil(log2 N) latencies, "
            "any N",
    .source = "Bruck et al., Efficient Algorithms for All-to-All Communications in Multiport "
              "Message-Passing Systems (1997), section 3: the index operation with radix 2",
    .kind = COLLECTIVE_ALL_TO_ALL,
    .family = PRIMITIVE_BRUCK,
    .lane_count = 1,
    .translates = true,
    .ordered = true,
    .routed = true,
    .send_count = count_log2_each,
    .arrival_count = count_log2_each,
    .step = step_of,
    .move = move_of,
    .cost = cost_of,
};
