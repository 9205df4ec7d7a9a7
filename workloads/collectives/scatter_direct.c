/*
 * Scatter straight from the root.
 */
#include "workloads/collectives/patterns.h"

static struct primitive_step step_of(uint32_t size, uint32_t lane, uint32_t position, uint32_t step)
{
    (void)size;
    (void)lane;
    (void)position;
    return (struct primitive_step){.units = 2, .move_count = 1, .peer = step + 1};
}

static struct primitive_move move_of(uint32_t size, uint32_t lane, uint32_t position, uint32_t step,
                                     uint32_t move)
{
    (void)size;
    (void)lane;
    (void)position;
    (void)move;
    return (struct primitive_move){
        .source = primitive_any, .destination = step + 1, .halves = PRIMITIVE_HALVES};
}

const struct primitive primitive_scatter_direct = {
    .name = "scatter_direct",
    .help = "the root sends each its chunk: V(N-1)/(N·w) and one latency",
    .source = "Chan et al., Collective communication: theory, practice, and experience (2007), "
              "section 4: the lower bounds, and sending straight to each",
    .kind = COLLECTIVE_SCATTER,
    .family = PRIMITIVE_DIRECT,
    .lane_count = 1,
    .routed = true,
    .send_count = count_others_of_root,
    .arrival_count = count_one_of_others,
    .step = step_of,
    .move = move_of,
    .origin = origin_root,
    .cost = cost_direct,
};
