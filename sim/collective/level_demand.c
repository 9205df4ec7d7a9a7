#include "sim/collective/level_demand.h"

#include <stddef.h>

#include "sim/base/units.h"

static uint32_t messages_of(const struct primitive *primitive, uint32_t size)
{
    uint32_t count = 0;
    for (uint32_t l = 0; primitive != NULL && l < primitive->lane_count; l++)
        count += primitive->send_count(size, l, 0);
    return count;
}

static bool is_in_network(const struct primitive *primitive)
{
    return primitive != NULL && primitive->network != PRIMITIVE_NETWORK_NONE;
}

/* What each piece waits for. On a grid the messages of its orders fill the links meanwhile, all the
 * more with both halves of an AllReduce. */
static void series_fill(const struct plan_request *request, const struct choice *choice,
                        uint32_t dimension, struct pieces_level *level)
{
    uint32_t const size = request->group.dimension[dimension].size;
    uint64_t const hop_bytes = request->hop_bytes[dimension],
                   known = request->bytes_per_s[dimension];
    uint64_t const rate = known == 0 ? (uint64_t)TIME_PS_PER_S : known;
    uint32_t const series = primitive_series(choice->once[dimension], size);
    bool const sums = request->kind == COLLECTIVE_ALL_REDUCE;
    bool const beside_grid = choice->levels.grid_count > 0;
    bool const on_grid = !request->group.dimension[dimension].switched;
    if (series == 0 || (beside_grid && (sums || !on_grid))) return;
    int64_t const far_ps = units_duration_ps(hop_bytes, rate);
    int64_t const near_ps = request->next_ps[dimension];
    bool const is_ring = series + 1 >= size || on_grid;
    level->series = on_grid ? PIECES_GRID : is_ring ? PIECES_RING : PIECES_DOUBLING;
    level->twice = sums;
    level->again_ps += series * (uint64_t)((is_ring && near_ps > 0 ? near_ps : far_ps) +
                                           request->protocol.message_ps[request->way[dimension]]);
    if (request->kind != COLLECTIVE_ALL_TO_ALL) level->shards = size - 1;
}

bool level_relays_whole(const struct primitive *primitive, uint32_t size)
{
    return primitive != NULL && primitive->cost(size).relay == PRIMITIVE_RELAY_WHOLE;
}

/* On a grid messages go step by step along axis after axis, in trees storey by storey, and to
 * switches that copy or add and back from them. */
static bool is_longer_alone(const struct plan_request *request, const struct choice *choice,
                            uint32_t dimension, uint32_t cost)
{
    uint32_t const size = request->group.dimension[dimension].size;
    return cost != 0 || is_in_network(choice->once[dimension]) ||
           is_in_network(choice->whole[dimension]) ||
           level_relays_whole(choice->once[dimension], size) ||
           level_relays_whole(choice->whole[dimension], size);
}

void level_demand_add(const struct plan_request *request, const struct choice *choice,
                      uint32_t dimension, uint32_t cost, struct pieces_level *level)
{
    enum collective_kind const kind = request->kind;
    uint32_t const size = request->group.dimension[dimension].size;
    uint64_t const hop_bytes = request->hop_bytes[dimension],
                   known = request->bytes_per_s[dimension];
    uint64_t const rate = known == 0 ? (uint64_t)TIME_PS_PER_S : known;
    level->bytes_per_s += cost == 0 ? rate : 2 * rate / cost;
    level->hop_bytes += hop_bytes == 0 ? 65536 : hop_bytes;
    /* Sums go up to switches that add, and what they gather comes down. */
    level->in_network = is_in_network(choice->once[dimension]);
    if (kind == COLLECTIVE_ALL_REDUCE && level->in_network) level->passes = 2;
    series_fill(request, choice, dimension, level);
    level->longer_alone = is_longer_alone(request, choice, dimension, cost);
    level->messages += messages_of(choice->once[dimension], size) +
                       messages_of(choice->gather[dimension], size) +
                       messages_of(choice->whole[dimension], size);
}
