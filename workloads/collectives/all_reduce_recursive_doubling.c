/*
 * AllReduce by recursive doubling: partners at distance 1, 2, 4, ... exchange their sums of the
 * whole array. As few messages in series as there can be, for arrays so small that bytes do not
 * count.
 */
#include "sim/collective/collective.h"

#include <stddef.h>

static const char *refuses(uint32_t size)
{
    return (size & (size - 1)) == 0 ? NULL : "needs a power of two";
}

static uint32_t log2_up(uint32_t size)
{
    uint32_t log = 0;
    while ((UINT64_C(1) << log) < size) log++;
    return log;
}

static uint32_t message_count(uint32_t size, uint32_t lane, uint32_t position)
{
    (void)lane;
    (void)position;
    return log2_up(size);
}

static struct primitive_step step_of(uint32_t size, uint32_t lane, uint32_t position, uint32_t step)
{
    (void)lane;
    return (struct primitive_step){.units = 2 * size,
                                   .arrivals = step,
                                   .move_count = size,
                                   .peer = position ^ UINT32_C(1) << step,
                                   .slot = step};
}

static struct primitive_move move_of(uint32_t size, uint32_t lane, uint32_t position, uint32_t step,
                                     uint32_t move)
{
    (void)size;
    (void)lane;
    (void)position;
    (void)step;
    return (struct primitive_move){
        .source = primitive_any, .destination = move, .halves = PRIMITIVE_HALVES};
}

const struct primitive primitive_all_reduce_recursive_doubling = {
    .name = "all_reduce_recursive_doubling",
    .help = "partners at doubling distance exchange whole sums: V·log2(N)/w and log2(N) latencies",
    .source = "Thakur, Rabenseifner and Gropp, Optimization of Collective Communication Operations "
              "in MPICH (2005), section 4.5: recursive doubling",
    .kind = COLLECTIVE_ALL_REDUCE,
    .family = PRIMITIVE_RECURSIVE_DOUBLING,
    .lane_count = 1,
    .partners = true,
    .ordered = true,
    .refuses = refuses,
    .routed = true,
    .send_count = message_count,
    .arrival_count = message_count,
    .step = step_of,
    .move = move_of,
};
