/* How the array of a plan is cut: into shares of the orders, pieces, portions, and chunks for
 * others. */
#include <stddef.h>

#include "sim/base/units.h"
#include "sim/collective/compose_build.h"
#include "sim/collective/level_demand.h"
#include "sim/collective/ragged.h"
#include "sim/collective/spanning.h"

/* The part of the group that lies on the grid, and what a byte costs on each of its axes. */
static struct group grid_of(const struct build *build, uint32_t cost[GROUP_DIMENSIONS_MAX])
{
    const struct levels *levels = &build->choice->levels;
    struct group grid = {.dimension_count = levels->grid_count};
    for (uint32_t i = 0; i < levels->grid_count; i++) {
        const struct primitive *primitive = build->choice->once[levels->grid[i]];
        grid.dimension[i] = build->plan->group.dimension[levels->grid[i]];
        bool const ring = primitive != NULL && primitive->ring;
        bool const both_ways = ring && primitive->lane_count == 2;
        grid.dimension[i].ring = ring; /* As its primitive goes along it. */
        cost[i] = (both_ways ? 1 : 2) * grid.dimension[i].stride;
    }
    return grid;
}

/* What a plan asks of its levels, the outermost first: (n-1) shards of those that a rank has
 * already come to it over a level of n units. Returns how many there are. */
static uint32_t levels_fill(const struct build *build, const uint32_t cost[GROUP_DIMENSIONS_MAX],
                            struct pieces_level each[GROUP_DIMENSIONS_MAX])
{
    const struct levels *levels = &build->choice->levels;
    const struct group *group = &build->plan->group;
    const struct plan_request *request = build->request;
    uint64_t const shard = request->size_bytes / group_rank_count(group);
    bool const exchanges = build->plan->kind == COLLECTIVE_ALL_TO_ALL;
    uint64_t held = 1, grid_ranks = 1;
    uint32_t count = 0;
    for (uint32_t i = 0; i < levels->outer_count; i++) {
        uint32_t const size = group->dimension[levels->outer[i]].size;
        level_demand_add(request, build->choice, levels->outer[i], 0, &each[count]);
        each[count].bytes = exchanges ? build_crossing_bytes(request, levels->outer[i]) /
                                            group_rank_count(group) / size * (size - 1)
                                      : shard * held * (size - 1);
        held *= size;
        if (build_is_ragged(build)) each[count].bytes = ragged_level_bytes(request, held, size);
        count++;
    }
    for (uint32_t i = 0; i < levels->grid_count; i++) {
        level_demand_add(request, build->choice, levels->grid[i], cost[i], &each[count]);
        grid_ranks *= group->dimension[levels->grid[i]].size;
    }
    if (levels->grid_count > 0)
        each[count++].bytes =
            build_is_ragged(build) ? ragged_level_bytes(request, held * grid_ranks, grid_ranks)
            : exchanges ? build_crossing_bytes(request, levels->grid[0]) / group_rank_count(group)
                        : shard * held * (grid_ranks - 1);
    return count;
}

/* Whole arrays go storey by storey, so in pieces, none shorter than the way of one storey. */
static uint32_t relay_pieces(const struct build *build)
{
    const struct choice *choice = build->choice;
    const struct plan_request *request = build->request;
    const struct group *group = &build->plan->group;
    uint64_t hop_bytes = 0, bytes = request->size_bytes;
    bool climbs = false;
    for (uint32_t d = 0; d < group->dimension_count; d++) {
        uint64_t const hop = request->hop_bytes[d] == 0 ? 65536 : request->hop_bytes[d];
        uint32_t const size =
            choice->flat ? (uint32_t)group_rank_count(group) : group->dimension[d].size;
        bool const here =
            level_relays_whole(choice->whole[d], size) || level_relays_whole(choice->once[d], size);
        climbs = climbs || here;
        if (!here && !choice->flat) bytes /= group->dimension[d].size;
        hop_bytes = hop > hop_bytes ? hop : hop_bytes;
    }
    uint64_t const count = climbs ? bytes / hop_bytes : 1;
    return count < 1 ? 1 : (uint32_t)(count < PIECES_CHOSEN_MAX ? count : PIECES_CHOSEN_MAX);
}

/* Shares of the orders, and pieces, also so that other ops may go along chunk by chunk. Returns how
 * many pieces let levels overlap. */
static uint32_t shares_set(struct build *build, const struct group *grid, const uint32_t *cost,
                           const struct pieces_level *each, uint32_t level_count)
{
    const struct plan_request *request = build->request;
    struct plan *plan = build->plan;
    bool const flat = build->choice->flat;
    build->pieces = (struct pieces){1, false};
    build->shares = (struct shares){{1}, 1};
    if (!flat && grid->dimension_count > 0 && !build_is_ragged(build)) {
        /* Every order of an AllToAll crosses every dimension with all it has. */
        build->shares = plan->kind == COLLECTIVE_ALL_TO_ALL
                            ? (struct shares){{1, 1, 1}, grid->dimension_count}
                            : shares_solve(grid, cost);
        build->pieces = pieces_choose(grid, cost, &build->shares, plan->kind, request->size_bytes);
    }
    uint32_t const overlapping = level_count > 1 ? pieces_of_levels(each, level_count) : 1;
    uint64_t const needed = pieces_needed(each, level_count);
    uint32_t const enough = needed < overlapping ? (uint32_t)needed : overlapping;
    uint32_t const climbing = relay_pieces(build);
    if (enough > build->pieces.count) build->pieces.count = enough;
    if (climbing > build->pieces.count) build->pieces.count = climbing;
    if (spanning_applies(build->choice, &plan->group, plan->kind)) {
        build->shares = (struct shares){{1, 1, 1}, grid->dimension_count};
        build->pieces = (struct pieces){spanning_pieces(build), false};
    } else if (rooted_is_cut(build)) {
        build->pieces = (struct pieces){rooted_pieces(build), false};
    }
    if (request->piece_count != 0) build->pieces.count = request->piece_count;
    if (build_is_ragged(build) && ragged_tokens(request) < build->pieces.count)
        build->pieces.count = (uint32_t)ragged_tokens(request);
    return overlapping;
}

static void chunks_set(struct build *build, const struct group *grid, const uint32_t *cost,
                       uint32_t overlapping)
{
    const struct plan_request *request = build->request;
    struct plan *plan = build->plan;
    if (request->chunk_count == 0) return;
    if (build->choice->flat || plan->group.dimension_count == 1) {
        plan->chunk_count = (uint32_t)group_rank_count(&plan->group);
        return;
    }
    uint32_t const most = grid->dimension_count < plan->group.dimension_count
                              ? overlapping
                              : pieces_beside(grid, cost, request->size_bytes);
    plan->chunk_count = most < request->chunk_count ? most : request->chunk_count;
    if (plan->chunk_count > 1)
        build->pieces.count = plan->chunk_count;
    else
        plan->chunk_count = 0;
}

/* How the array is cut: into shares, pieces, chunks for other ops, and portions. */
enum status compose_split(struct build *build)
{
    const struct plan_request *request = build->request;
    const struct choice *choice = build->choice;
    struct pieces_level each[GROUP_DIMENSIONS_MAX] = {{0}};
    uint32_t cost[GROUP_DIMENSIONS_MAX] = {0};
    struct group const grid = grid_of(build, cost);
    uint32_t const level_count =
        choice->flat || choice->levels.outer_count == 0 ? 0 : levels_fill(build, cost, each);
    uint32_t const overlapping = shares_set(build, &grid, cost, each, level_count);
    chunks_set(build, &grid, cost, overlapping);
    if (!level_overlap_applies(request, choice)) return STATUS_OK;
    uint32_t const nodes = build->plan->group.dimension[choice->levels.outer[0]].size;
    bool const is_given = request->piece_count != 0 || build->plan->chunk_count > 0;
    struct level_overlap_choice const cut = level_overlap_choose(
        each, nodes, is_given ? build->pieces.count : 0, request->portion_count);
    build->pieces.count = cut.pieces;
    return level_overlap_build(build->arena, &cut, nodes, &build->overlap, build->reterr);
}
