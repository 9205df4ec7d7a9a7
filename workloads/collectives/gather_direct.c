/*
 * Gather straight to the root.
 */
#include "sim/collective/collective.h"

static uint32_t send_count(uint32_t size, uint32_t lane, uint32_t position)
{
    (void)size;
    (void)lane;
    return position > 0 ? 1 : 0;
}

static uint32_t arrival_count(uint32_t size, uint32_t lane, uint32_t position)
{
    (void)lane;
    return position == 0 ? size - 1 : 0;
}

static struct primitive_step step_of(uint32_t size, uint32_t lane, uint32_t position, uint32_t step)
{
    (void)size;
    (void)lane;
    (void)step;
    return (struct primitive_step){.units = 2, .move_count = 1, .peer = 0, .slot = position - 1};
}

static struct primitive_move move_of(uint32_t size, uint32_t lane, uint32_t position, uint32_t step,
                                     uint32_t move)
{
    (void)size;
    (void)lane;
    (void)step;
    (void)move;
    return (struct primitive_move){
        .source = position, .destination = primitive_any, .halves = PRIMITIVE_HALVES};
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
    .send_count = send_count,
    .arrival_count = arrival_count,
    .step = step_of,
    .move = move_of,
};
