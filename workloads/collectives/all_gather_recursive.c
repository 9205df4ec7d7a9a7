/*
 * AllGather by recursive doubling: partners at distance 1, 2, 4, ... exchange all that they have
 * collected so far.
 */
#include "workloads/collectives/patterns.h"

static struct primitive_step step_of(uint32_t size, uint32_t lane, uint32_t position, uint32_t step)
{
    (void)size;
    (void)lane;
    uint32_t const held = UINT32_C(1) << step;
    return step_of_round(step, held, position ^ held);
}

static struct primitive_move move_of(uint32_t size, uint32_t lane, uint32_t position, uint32_t step,
                                     uint32_t move)
{
    (void)size;
    (void)lane;
    return (struct primitive_move){.source = (position >> step << step) + move,
                                   .destination = primitive_any,
                                   .halves = PRIMITIVE_HALVES};
}

const struct primitive primitive_all_gather_recursive = {
    .name = "all_gather_recursive",
    .help =
        "partners at doubling distance exchange all they have: V(N-1)/(N·w) and log2(N) latencies",
    .source = "Thakur, Rabenseifner and Gropp, Optimization of Collective Communication Operations "
              "in MPICH (2005), section 4.1: recursive doubling",
    .kind = COLLECTIVE_ALL_GATHER,
    .family = PRIMITIVE_RECURSIVE,
    .lane_count = 1,
    .partners = true,
    .ordered = true,
    .refuses = refuses_but_powers_of_two,
    .routed = true,
    .send_count = count_log2_each,
    .arrival_count = count_log2_each,
    .step = step_of,
    .move = move_of,
    .cost = cost_recursive,
};
