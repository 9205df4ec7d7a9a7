/*
 * ReduceScatter as Bruck's AllGather reversed: sums for the ranks from 2^k ahead on go to the rank
 * 2^k ahead, the farthest first. Any number of ranks.
 */
#include "workloads/collectives/patterns.h"

static uint32_t chunk_at(uint32_t size, uint32_t position, uint32_t index)
{
    uint32_t const far = UINT32_C(1) << (log2_up(size) - 1);
    uint32_t distance = far;
    while (distance > 0 && index >= size - distance) distance /= 2;
    if (distance == 0) return position;
    uint32_t const sent = distance == far ? 0 : size - 2 * distance; /* In the steps before. */
    return (position + distance + index - sent) % size;
}

static struct primitive_step step_of(uint32_t size, uint32_t lane, uint32_t position, uint32_t step)
{
    (void)lane;
    (void)position;
    uint32_t const k = log2_up(size) - 1 - step;
    uint32_t const distance = UINT32_C(1) << k, count = bruck_chunks(size, k);
    return (struct primitive_step){.units = 2 * count,
                                   .arrivals = step,
                                   .chunks = size - distance,
                                   .move_count = count,
                                   .peer = distance,
                                   .slot = step};
}

static struct primitive_move move_of(uint32_t size, uint32_t lane, uint32_t position, uint32_t step,
                                     uint32_t move)
{
    (void)lane;
    uint32_t const distance = UINT32_C(1) << (log2_up(size) - 1 - step);
    return (struct primitive_move){.source = primitive_any,
                                   .destination = (position + distance + move) % size,
                                   .halves = PRIMITIVE_HALVES};
}

const struct primitive primitive_reduce_scatter_bruck = {
    .name = "reduce_scatter_bruck",
    .help = "sums go ahead by N/2, N/4, ... ranks, the far ones first: V(N-1)/(N·w), ceil(log2 N) "
            "latencies",
    .source = "Bruck et al., Efficient Algorithms for All-to-All Communications in Multiport "
              "Message-Passing Systems (1997), section 4, reversed; as PAT in NCCL 2.23",
    .kind = COLLECTIVE_REDUCE_SCATTER,
    .family = PRIMITIVE_BRUCK,
    .lane_count = 1,
    .translates = true,
    .ordered = true,
    .routed = true,
    .send_count = count_log2_each,
    .arrival_count = count_log2_each,
    .step = step_of,
    .move = move_of,
    .chunk_at = chunk_at,
    .cost = cost_bruck,
};
