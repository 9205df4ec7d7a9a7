/*
 * AllGather after Bruck: in step k a rank sends what it holds, its own chunk and those behind it,
 * to the rank 2^k before it. Any number of ranks.
 */
#include "workloads/collectives/patterns.h"

static struct primitive_step step_of(uint32_t size, uint32_t lane, uint32_t position, uint32_t step)
{
    (void)lane;
    (void)position;
    return step_of_round(step, bruck_chunks(size, step), size - (UINT32_C(1) << step));
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
    .send_count = count_log2_each,
    .arrival_count = count_log2_each,
    .step = step_of,
    .move = move_of,
    .cost = cost_bruck,
};
