/*
 * What asynchronous collectives of weights and their gradients take from compute on a TPU: a start
 * and an end of each stand in the compute queue. They take no longer than the collective would take
 * at the rate of its links, which is what it would cost if compute waited for it.
 */
#include "sim/base/units.h"
#include "sim/collective/plan.h"
#include "sim/step/lower.h"

/* Streams that carry weights and their gradients. */
static const uint8_t streams[] = {LOWER_GATHER_WEIGHTS, LOWER_REDUCE_WEIGHTS, LOWER_REDUCE_DP,
                                  LOWER_GATHER_DP,      LOWER_REDUCE_EXPERTS, LOWER_GATHER_EXPERTS};

static bool carries_weights(const struct lower *lower, uint32_t stream)
{
    for (uint32_t s = 0; s < sizeof streams; s++)
        if (lower->stream[streams[s]] == stream) return true;
    return false;
}

/* At the rate of the links of all its axes, both ways around. Between slices hosts take longer. */
static int64_t alone_ps(const struct machine *machine, const struct plan_request *request)
{
    uint32_t const ways = request->kind == COLLECTIVE_ALL_REDUCE ? 2 : 1;
    uint64_t const ranks = group_rank_count(&request->group);
    uint64_t const bytes = request->size_bytes / ranks * (ranks - 1);
    for (uint32_t d = 0; d < request->group.dimension_count; d++)
        if (request->group.dimension[d].switched) return TIME_PS_NEVER;
    uint64_t const rate = 2 * request->group.dimension_count * machine->chip.ici_bytes_per_s;
    return rate == 0 ? TIME_PS_NEVER : ways * units_duration_ps(bytes, rate);
}

static bool reads(const struct program_op *op, const struct program_op *collective)
{
    for (uint32_t n = 0; n < op->need_count; n++)
        if (op->need[n].stream == collective->stream && op->need[n].slot == 0 &&
            op->need[n].part > collective->part_first)
            return true;
    return false;
}

/* The compute op in whose time the end of a collective falls: the first that reads what it gives,
 * else the next, as behind a gradient, else the last before. */
static uint32_t held_op(const struct builder *build, uint32_t collective)
{
    uint32_t next = LOWER_NONE, last = LOWER_NONE;
    for (uint32_t op = 0; op < build->op_count; op++) {
        if (build->op[op].stream != PROGRAM_COMPUTE) continue;
        if (op > collective && reads(&build->op[op], &build->op[collective])) return op;
        if (op > collective && next == LOWER_NONE) next = op;
        if (op < collective) last = op;
    }
    return next != LOWER_NONE ? next : last;
}

static void hold(struct lower *lower, uint32_t held, int64_t time_ps)
{
    struct program_op *op = &lower->build.op[held];
    struct work work = lower->build.program->works[op->index];
    work.async_ps += (uint64_t)time_ps;
    uint32_t const index = builder_work(&lower->build, &work, op->parts, "/workload/schedule");
    if (lower->build.status == STATUS_OK) op->index = (uint16_t)index;
}

void lower_async(struct lower *lower)
{
    const struct machine *machine = lower->ranks->machine;
    int64_t const most_ps = machine->chip.launch.async_ps;
    if (most_ps == 0 || machine->chip.kernels.stack == NULL || ranks_serves(lower->ranks)) return;
    for (uint32_t i = 0; i < lower->build.op_count && lower->build.status == STATUS_OK; i++) {
        const struct program_op *op = &lower->build.op[i];
        if (op->kind != PROGRAM_OP_COLLECTIVE || !carries_weights(lower, op->stream) ||
            lower_overlap_waits(lower, op))
            continue;
        uint32_t const held = held_op(&lower->build, i);
        int64_t const own_ps = alone_ps(machine, &lower->build.requests[op->index]);
        if (held != LOWER_NONE) hold(lower, held, own_ps < most_ps ? own_ps : most_ps);
    }
}
