/*
 * Gather straight to the root.
 */
#include "workloads/collectives/patterns.h"

static struct primitive_step step_of(uint32_t size, uint32_t lane, uint32_t position, uint32_t step)
{
    (void)size;
    (void)lane;
    (void)step;
    return (struct primitive_step){.units = 2, .move_count = 1, .peer = 0, .slot = position - 1};
}

const struct primitive primitive_gather_direct = {
    .name = "gather_direct",
    .help = "each sends its chunk to the root: V(N-1)/(N·w) and one latency",
    .source = "Chan et al., Collective communication: theory, practice, and experience (2007), "
              "section 4: the lower bounds, and sending straight to each",
    .kind = COLLECTIVE_GATHER,
    .family = PRIMITIVE_DIRECT,
    .lane_count = 1,
    .routed = true,
    .send_count = count_one_of_others,
    .arrival_count = count_others_of_root,
    .step = step_of,
    .move = move_own_chunk,
    .cost = cost_direct,
};
