/*
 * ReduceScatter by recursive halving: partners at half the distance each time exchange the half of
 * what they still sum that the other one's side ends up with.
 */
#include "workloads/collectives/patterns.h"

/* The first chunk of what goes to the partner of a step. */
static uint32_t first(uint32_t size, uint32_t position, uint32_t step)
{
    uint32_t const distance = size >> (step + 1);
    return (position ^ distance) / distance * distance;
}

static uint32_t chunk_at(uint32_t size, uint32_t position, uint32_t index)
{
    uint32_t step = 0, sent = 0;
    while (step < log2_up(size) && index - sent >= size >> (step + 1)) sent += size >> ++step;
    return step == log2_up(size) ? position : first(size, position, step) + index - sent;
}

static struct primitive_step step_of(uint32_t size, uint32_t lane, uint32_t position, uint32_t step)
{
    (void)lane;
    uint32_t const distance = size >> (step + 1);
    return (struct primitive_step){.units = 2 * distance,
                                   .arrivals = step,
                                   .chunks = size - distance,
                                   .move_count = distance,
                                   .peer = position ^ distance,
                                   .slot = step};
}

static struct primitive_move move_of(uint32_t size, uint32_t lane, uint32_t position, uint32_t step,
                                     uint32_t move)
{
    (void)lane;
    return (struct primitive_move){.source = primitive_any,
                                   .destination = first(size, position, step) + move,
                                   .halves = PRIMITIVE_HALVES};
}

const struct primitive primitive_reduce_scatter_recursive = {
    .name = "reduce_scatter_recursive",
    .help =
        "partners at halving distance exchange halves and add: V(N-1)/(N·w) and log2(N) latencies",
    .source = "Thakur, Rabenseifner and Gropp, Optimization of Collective Communication Operations "
              "in MPICH (2005), section 4.2: recursive halving",
    .kind = COLLECTIVE_REDUCE_SCATTER,
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
    .chunk_at = chunk_at,
    .cost = cost_recursive,
};
