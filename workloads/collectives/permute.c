/*
 * Permute: each rank sends one message to the rank at a fixed displacement. The primitive itself is
 * the shift by one along a line; a plan routes other displacements over the links they pass and
 * says who sends (on a ring everybody).
 */
#include "workloads/collectives/patterns.h"

static uint32_t send_count(uint32_t size, uint32_t lane, uint32_t position)
{
    (void)lane;
    return position + 1 < size ? 1 : 0;
}

static uint32_t arrival_count(uint32_t size, uint32_t lane, uint32_t position)
{
    (void)size;
    (void)lane;
    return position > 0 ? 1 : 0;
}

static struct primitive_step step_of(uint32_t size, uint32_t lane, uint32_t position, uint32_t step)
{
    (void)size;
    (void)lane;
    (void)position;
    (void)step;
    return (struct primitive_step){.units = 2, .arrivals = 0, .move_count = 1};
}

static struct primitive_move move_of(uint32_t size, uint32_t lane, uint32_t position, uint32_t step,
                                     uint32_t move)
{
    (void)size;
    (void)lane;
    (void)step;
    (void)move;
    return (struct primitive_move){
        .source = position, .destination = position + 1, .halves = PRIMITIVE_HALVES};
}

const struct primitive primitive_permute = {
    .name = "permute",
    .help = "one message to the rank at a fixed displacement, cut through over all links between: "
            "V/w and every hop",
    .source =
        "Austin et al., How to Scale Your Model (2025), chapter 2: a hop to a neighbour takes "
        "about 1 us, a route over (dx, dy, dz) pays each; jax.lax.ppermute",
    .kind = COLLECTIVE_PERMUTE,
    .family = PRIMITIVE_SHIFT,
    .ring = false,
    .lane_count = 1,
    .send_count = send_count,
    .arrival_count = arrival_count,
    .step = step_of,
    .move = move_of,
    .cost = cost_permute,
};
