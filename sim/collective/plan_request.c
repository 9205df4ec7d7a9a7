/* What is asked of a plan: whether it was asked before, and what the machine's links say of it. */
#include <string.h>

#include "sim/base/name.h"
#include "sim/base/units.h"
#include "sim/collective/plan.h"
#include "sim/machine/machine.h"

bool plan_ragged_equal(const struct plan_ragged *a, const struct plan_ragged *b)
{
    return a->expert_count == b->expert_count && a->top_k == b->top_k &&
           a->token_bytes == b->token_bytes && a->tokens == b->tokens && a->seed == b->seed &&
           a->skew_ppm == b->skew_ppm && a->returns == b->returns;
}

bool plan_request_equal(const struct plan_request *a, const struct plan_request *b)
{
    return a->kind == b->kind && a->size_bytes == b->size_bytes && a->spreads == b->spreads &&
           a->element_bits == b->element_bits && a->chunk_count == b->chunk_count &&
           a->mirrors == b->mirrors && a->shift == b->shift && a->root == b->root &&
           a->piece_count == b->piece_count && a->portion_count == b->portion_count &&
           a->script == b->script && plan_ragged_equal(&a->ragged, &b->ragged) &&
           name_same(a->protocol.name, b->protocol.name) &&
           algorithm_equal(&a->algorithm, &b->algorithm) && group_equal(&a->group, &b->group) &&
           memcmp(a->exchange_bytes, b->exchange_bytes, sizeof a->exchange_bytes) == 0 &&
           memcmp(a->offset, b->offset, sizeof a->offset) == 0;
}

/* Of all that are a stride apart along an axis, as many meet above a tier as lie beside the end of
 * one of its boxes. */
static int64_t next_ps(const struct machine *machine, const struct level *level,
                       const struct group_dimension *at)
{
    int64_t total_ps = level_way_ps(level, 0);
    for (uint32_t tier = 1; tier < level->tier_count; tier++) {
        uint32_t const box = level_box_length(machine, level, (int32_t)tier - 1, at->axis);
        int64_t const more_ps = 2 * level->tier[tier].latency_ps;
        if (box < machine->shape[at->axis])
            total_ps += at->stride < box ? more_ps * at->stride / box : more_ps;
    }
    return total_ps;
}

void plan_request_links(const struct machine *machine, struct plan_request *request)
{
    for (uint32_t d = 0; d < request->group.dimension_count; d++) {
        uint32_t const axis = request->group.dimension[d].axis;
        uint64_t rate = machine->chip.ici_bytes_per_s;
        int64_t hop_ps = machine->chip.hop_latency_ps, near_ps = hop_ps;
        request->multicasts[d] = request->reduces[d] = false;
        request->meshed[d] = machine_is_meshed(machine, axis);
        if (machine->axis_level[axis] != LEVEL_NONE) {
            const struct level *level = &machine->level[machine->axis_level[axis]];
            rate =
                level_share_bytes_per_s(level_least_share(machine, level, level->tier_count - 1));
            hop_ps = level_way_ps(level, level->tier_count - 1);
            near_ps = next_ps(machine, level, &request->group.dimension[d]);
            request->multicasts[d] = request->reduces[d] = true;
            for (uint32_t tier = 0; tier < level->tier_count; tier++) {
                request->multicasts[d] = request->multicasts[d] && level->tier[tier].multicasts;
                request->reduces[d] =
                    request->reduces[d] && level->tier[tier].reduce_flop_per_s > 0;
            }
        }
        request->bytes_per_s[d] = rate;
        request->next_ps[d] = near_ps;
        request->way[d] =
            (uint8_t)(machine->axis_level[axis] == LEVEL_NONE ? 0 : 1 + machine->axis_level[axis]);
        request->hop_bytes[d] =
            (uint64_t)((units_wide)rate * (uint64_t)hop_ps / (uint64_t)TIME_PS_PER_S);
    }
}
