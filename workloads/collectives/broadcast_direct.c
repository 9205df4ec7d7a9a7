/*
 * Broadcast straight from the root to each other rank, one after the other.
 */
#include "sim/collective/collective.h"

static uint32_t send_count(uint32_t size, uint32_t lane, uint32_t position)
{
    (void)lane;
    return position == 0 ? size - 1 : 0;
}

static uint32_t arrival_count(uint32_t size, uint32_t lane, uint32_t position)
{
    (void)size;
    (void)lane;
    return position > 0 ? 1 : 0;
}

static struct primitive_step step_of(uint32_t size, uint32_t lane, uint32_t position, uint32_t step)
{
    (void)lane;
    (void)position;
    return (struct primitive_step){.units = 2 * size, .move_count = size, .peer = step + 1};
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

const struct primitive primitive_broadcast_direct = {
    .name = "broadcast_direct",
    .help = "the root sends the array to each: V(N-1)/w and one latency",
    .source = "Chan et al., Collective communication: theory, practice, and experience (2007), "
              "section 4: the lower bounds, and sending straight to each",
    .kind = COLLECTIVE_BROADCAST,
    .family = PRIMITIVE_DIRECT,
    .lane_count = 1,
    .routed = true,
    .send_count = send_count,
    .arrival_count = arrival_count,
    .step = step_of,
    .move = move_of,
};
