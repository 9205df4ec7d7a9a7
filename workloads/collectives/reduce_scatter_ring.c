/*
 * ReduceScatter on a ring, both ways: the AllGather backwards. The partial sum for the rank
 * farthest away leaves first and every rank on its way adds its own; on an even ring the antipodal
 * rank's sum comes half from each side.
 */
#include "workloads/collectives/patterns.h"

static bool is_half(uint32_t size, uint32_t step)
{
    return size % 2 == 0 && step == 0;
}

static struct primitive_step step_of(uint32_t size, uint32_t lane, uint32_t position, uint32_t step)
{
    (void)position;
    /* Of the producer's order below: on an even ring the antipode is one chunk for both lanes. */
    uint32_t const chunks = 2 * step + 1 + lane;
    return (struct primitive_step){
        .units = is_half(size, step) ? 1 : 2,
        .arrivals = step,
        .chunks = size % 2 != 0 ? chunks : chunks - (step > 0 || lane > 0 ? 1 : 0),
        .move_count = 1,
    };
}

static struct primitive_move move_of(uint32_t size, uint32_t lane, uint32_t position, uint32_t step,
                                     uint32_t move)
{
    (void)move;
    uint32_t const distance = size / 2 - step;
    uint32_t const own_half = lane == 0 ? PRIMITIVE_HALF_FIRST : PRIMITIVE_HALF_SECOND;
    return (struct primitive_move){
        .source = primitive_any,
        .destination = (lane == 0 ? position + distance : position + size - distance) % size,
        .halves = (uint8_t)(is_half(size, step) ? own_half : PRIMITIVE_HALVES),
    };
}

/* Farthest first, the higher before the lower of the same distance, its own last. */
static uint32_t chunk_at(uint32_t size, uint32_t position, uint32_t index)
{
    bool const is_even = size % 2 == 0;
    uint32_t const slot = is_even && index > 0 ? index + 1 : index;
    uint32_t const distance = size / 2 - slot / 2;
    if (index == size - 1) return position;
    return (slot % 2 == 0 ? position + distance : position + size - distance) % size;
}

static struct primitive_cost cost_of(uint32_t size)
{
    return (struct primitive_cost){
        .depth = size / 2, .units = size - 1, .port_units = size - 1, .serial = true};
}

const struct primitive primitive_reduce_scatter_ring = {
    .name = "reduce_scatter_ring",
    .help = "partial sums go round a ring in both directions, farthest first: "
            "V(N-1)/(N·2w) and floor(N/2) hops",
    .source = "Austin et al., How to Scale Your Model (2025), chapter 3, ReduceScatter: as costly "
              "as the AllGather, whose transpose it is; Patarasuk and Yuan, Bandwidth optimal "
              "all-reduce algorithms for clusters of workstations, JPDC 69 (2009), section 4",
    .kind = COLLECTIVE_REDUCE_SCATTER,
    .family = PRIMITIVE_RING,
    .ring = true,
    .lane_count = 2,
    .send_count = count_half_each,
    .arrival_count = count_half_each,
    .step = step_of,
    .move = move_of,
    .chunk_at = chunk_at,
    .cost = cost_of,
};
