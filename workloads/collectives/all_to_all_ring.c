/*
 * AllToAll on a ring, both ways: each rank sends to either side one bundle with all it has for the
 * ranks of that side; each rank on the way takes out its chunk and passes on the rest. On an even
 * ring the antipodal chunk goes half each way.
 */
#include "workloads/collectives/patterns.h"

/* The bundle still has chunks for the ranks that are step+1 to size/2 away from its origin. */
static struct primitive_step step_of(uint32_t size, uint32_t lane, uint32_t position, uint32_t step)
{
    (void)lane;
    (void)position;
    uint32_t const count = size / 2 - step;
    return (struct primitive_step){
        .units = 2 * count - (size % 2 == 0 ? 1 : 0), .arrivals = step, .move_count = count};
}

static struct primitive_move move_of(uint32_t size, uint32_t lane, uint32_t position, uint32_t step,
                                     uint32_t move)
{
    uint32_t const onwards = move + 1;
    bool const is_half = size % 2 == 0 && step + onwards == size / 2;
    uint32_t const own_half = lane == 0 ? PRIMITIVE_HALF_FIRST : PRIMITIVE_HALF_SECOND;
    return (struct primitive_move){
        .source = (lane == 0 ? position + size - step : position + step) % size,
        .destination = (lane == 0 ? position + onwards : position + size - onwards) % size,
        .halves = (uint8_t)(is_half ? own_half : PRIMITIVE_HALVES),
    };
}

static struct primitive_cost cost_of(uint32_t size)
{
    uint64_t const units = (uint64_t)size * size / 4;
    return (struct primitive_cost){
        .depth = size / 2, .units = units, .port_units = units, .serial = true};
}

const struct primitive primitive_all_to_all_ring = {
    .name = "all_to_all_ring",
    .help = "bundles go round a ring in both directions, a chunk less each hop: "
            "V/(8w) on an even ring and floor(N/2) hops",
    .source = "Austin et al., How to Scale Your Model (2025), chapter 3, AllToAll: a quarter of an "
              "AllGather on a ring in both directions",
    .kind = COLLECTIVE_ALL_TO_ALL,
    .family = PRIMITIVE_RING,
    .ring = true,
    .lane_count = 2,
    .send_count = count_half_each,
    .arrival_count = count_half_each,
    .step = step_of,
    .move = move_of,
    .cost = cost_of,
};
