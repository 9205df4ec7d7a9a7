/*
 * AllToAll by direct exchange: one message a pair. The displacements are dealt to four lanes, each
 * a range of its own, so that near and far receivers, which are reached by different ports, are
 * served side by side.
 */
#include "workloads/collectives/patterns.h"

enum { LANES = 4 };

/* Displacements 1 + first(lane) to first(lane + 1). */
static uint32_t first(uint32_t size, uint32_t lane)
{
    return (uint32_t)((uint64_t)(size - 1) * lane / LANES);
}

static uint32_t message_count(uint32_t size, uint32_t lane, uint32_t position)
{
    (void)position;
    return first(size, lane + 1) - first(size, lane);
}

static struct primitive_step step_of(uint32_t size, uint32_t lane, uint32_t position, uint32_t step)
{
    (void)position;
    return (struct primitive_step){.units = 2,
                                   .move_count = 1,
                                   .peer = 1 + first(size, lane) + step,
                                   .slot = step,
                                   .wait_lane = (uint8_t)lane};
}

static struct primitive_move move_of(uint32_t size, uint32_t lane, uint32_t position, uint32_t step,
                                     uint32_t move)
{
    (void)move;
    return (struct primitive_move){.source = position,
                                   .destination = (position + 1 + first(size, lane) + step) % size,
                                   .halves = PRIMITIVE_HALVES};
}

const struct primitive primitive_all_to_all_direct = {
    .name = "all_to_all_direct",
    .help = "one message a pair, all at the same displacement at once: V(N-1)/(N²·w) and one "
            "latency",
    .source = "Austin et al., How to Scale Your Model (2025), chapter 12, AllToAlls; the order of "
              "displacements after Thakur, Rabenseifner and Gropp, Optimization of Collective "
              "Communication Operations in MPICH (2005), section 3.3",
    .kind = COLLECTIVE_ALL_TO_ALL,
    .family = PRIMITIVE_DIRECT,
    .lane_count = LANES,
    .routed = true,
    .translates = true,
    .digits = true,
    .send_count = message_count,
    .arrival_count = message_count,
    .step = step_of,
    .move = move_of,
    .cost = cost_direct,
};
