/*
 * AllGather after Bruck: in step k a rank sends what it holds, its own chunk and those behind it,
 * to the rank 2^k before it. Any number of ranks.
 */
#include "sim/collective/collective.h"

static uint32_t log2_up(uint32_t size)
{
    uint32_t log = 0;
    while ((UINT64_C(1) << log) < size) log++;
    return log;
}

/* Chunks that go in the step over a distance of 2^k. */
static uint32_t chunk_count(uint32_t size, uint32_t k)
{
    uint32_t const distance = UINT32_C(1) << k;
    return distance < size - distance ? distance : size - distance;
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
    (void)position;
    uint32_t const count = chunk_count(size, step);
    return (struct primitive_step){.units = 2 * count,
                                   .arrivals = step,
                                   .move_count = count,
                                   .peer = size - (UINT32_C(1) << step),
                                   .slot = step};
}

static struct primitive_move move_of(uint32_t size, uint32_t lane, uint32_t position, uint32_t step,
                                     uint32_t move)
{
    (void)lane;
    (void)step;
    return (struct primitive_move){.source = (position + move) % size,
                                   .destination = primitive_any,
                                   .halves = PRIMITIVE_HALVES};
}

const struct primitive primitive_all_gather_bruck = {
    .name = "all_gather_bruck",
    .help = "what is held goes back by 1, 2, 4, ... ranks: V(N-1)/(N·w) and ceil(log2 N) "
            "latencies, any N",
    .source = "Bruck et al., Efficient Algorithms for All-to-All Communications in Multiport "
              "Message-Passing Systems (1997), section 4: the concatenation operation",
    .kind = COLLECTIVE_ALL_GATHER,
    .family = PRIMITIVE_BRUCK,
    .lane_count = 1,
    .translates = true,
    .ordered = true,
    .routed = true,
    .send_count = message_count,
    .arrival_count = message_count,
    .step = step_of,
    .move = move_of,
};
