/*
 * Reduce straight to the root, which adds all arrays itself.
 */
#include "workloads/collectives/patterns.h"

static struct primitive_step step_of(uint32_t size, uint32_t lane, uint32_t position, uint32_t step)
{
    (void)lane;
    (void)step;
    return (struct primitive_step){
        .units = 2 * size, .move_count = size, .peer = 0, .slot = position - 1};
}

const struct primitive primitive_reduce_direct = {
    .name = "reduce_direct",
    .help = "each sends its array to the root, which adds: V(N-1)/w and one latency",
    .source = "Chan et al., Collective communication: theory, practice, and experience (2007), "
              "section 4: the lower bounds, and sending straight to each",
    .kind = COLLECTIVE_REDUCE,
    .family = PRIMITIVE_DIRECT,
    .lane_count = 1,
    .routed = true,
    .send_count = count_one_of_others,
    .arrival_count = count_others_of_root,
    .step = step_of,
    .move = move_array,
    .cost = cost_direct_array,
};
