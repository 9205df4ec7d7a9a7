/*
 * Two passes that overlap: the ops of both in one template, so that what one computes runs during
 * the collectives that the other waits for.
 *
 * Each pass's ops stay in their order: a compute op takes along what stands between it and the
 * next, which is what it sends and what the next waits for. Any such order keeps every op behind
 * what it needs, on all streams. Which pass goes on is chosen as if each collective took as long as
 * a fair share of the math: the one that waits for none, or for the one that more math has covered;
 * where both could, the one of which less is done.
 */
#include <string.h>

#include "sim/base/units.h"
#include "sim/step/pipeline.h"

/* The ops of one pass, in a template under construction. */
struct side {
    uint32_t at, end;
    uint64_t flop, flop_done;
};

struct mix {
    const struct lower *lower;
    struct side side[2];
    uint32_t order[PROGRAM_OPS_MAX]; /* [new]: old. */
    uint32_t count;
    uint64_t flop_done;
    uint64_t issued_flop[PROGRAM_OPS_MAX]; /* [old]: what was done when a collective was placed, */
    uint32_t place[PROGRAM_OPS_MAX];       /* [old]: and where. */
    uint64_t share_flop;                   /* Math a collective. */
};

static uint64_t op_flop(const struct lower *lower, const struct program_op *op)
{
    if (op->kind != PROGRAM_OP_COMPUTE) return 0;
    return work_matmul_flop(&lower->build.program->works[op->index]);
}

static bool op_computes(const struct mix *mix, uint32_t op)
{
    return mix->lower->build.op[op].kind == PROGRAM_OP_COMPUTE;
}

static void op_place(struct mix *mix, uint32_t op)
{
    mix->issued_flop[op] = mix->flop_done;
    mix->place[op] = mix->count;
    mix->order[mix->count++] = op;
}

/* What stands before a side's next compute op. */
static void side_lead(struct mix *mix, struct side *side)
{
    for (; side->at < side->end && !op_computes(mix, side->at); side->at++) op_place(mix, side->at);
}

/* Its next compute op, and what stands before the one after. */
static void side_advance(struct mix *mix, struct side *side)
{
    uint64_t const flop = op_flop(mix->lower, &mix->lower->build.op[side->at]);
    mix->flop_done += flop;
    side->flop_done += flop;
    op_place(mix, side->at++);
    side_lead(mix, side);
}

/* The op of a stream in which a count of its parts is reached; counts are those of the old order.
 */
static const struct program_op *op_of_part(const struct lower *lower, uint32_t stream,
                                           uint32_t part)
{
    for (uint32_t i = 0; i < lower->build.op_count; i++) {
        const struct program_op *op = &lower->build.op[i];
        if (op->stream == stream && op->part_first < part && part <= op->part_first + op->parts)
            return op;
    }
    SIM_ASSERT(false);
    return NULL;
}

/* Puts the ops in a new order: order[new] is old. */
static void ops_reorder(struct lower *lower, const uint32_t *order)
{
    struct program_op old[PROGRAM_OPS_MAX];
    uint32_t place[PROGRAM_OPS_MAX], first[PROGRAM_OPS_MAX], parts[PROGRAM_STREAMS_MAX] = {0};
    for (uint32_t i = 0; i < lower->build.op_count; i++) {
        const struct program_op *op = &lower->build.op[order[i]];
        place[order[i]] = i;
        first[order[i]] = parts[op->stream];
        parts[op->stream] += op->parts;
    }
    memcpy(old, lower->build.op, lower->build.op_count * sizeof *old);
    for (uint32_t i = 0; i < lower->build.op_count; i++) {
        struct program_op *op = &old[i];
        for (uint32_t n = 0; n < op->need_count; n++) {
            struct program_need *need = &op->need[n];
            if (need->slot != 0 || need->part == 0) continue; /* Of another slot. */
            const struct program_op *on = op_of_part(lower, need->stream, need->part);
            need->part += first[on - lower->build.op];
            need->part -= on->part_first;
        }
        if (op->operand_op != PROGRAM_NONE) op->operand_op = (uint16_t)place[op->operand_op];
    }
    for (uint32_t i = 0; i < lower->build.op_count; i++) {
        lower->build.op[i] = old[order[i]];
        lower->build.op[i].part_first = first[order[i]];
    }
}

/* What a side waits for: the collective that the least math has covered, at most a fair share. */
struct wait {
    uint64_t covered_flop;
    uint32_t place;
};

static struct wait side_wait(const struct mix *mix, const struct side *side)
{
    const struct program_op *op = &mix->lower->build.op[side->at];
    struct wait wait = {.covered_flop = mix->share_flop};
    for (uint32_t n = 0; n < op->need_count; n++) {
        const struct program_need *need = &op->need[n];
        if (need->slot != 0 || need->part == 0 || need->stream == PROGRAM_COMPUTE) continue;
        const struct program_op *on_op = op_of_part(mix->lower, need->stream, need->part);
        uint32_t const on = (uint32_t)(on_op - mix->lower->build.op);
        uint64_t const since = mix->flop_done - mix->issued_flop[on];
        if (since >= mix->share_flop) continue;
        wait.covered_flop = since < wait.covered_flop ? since : wait.covered_flop;
        wait.place = mix->place[on] > wait.place ? mix->place[on] : wait.place;
    }
    return wait;
}

static struct side *side_next(struct mix *mix)
{
    struct side *one = &mix->side[0], *other = &mix->side[1];
    if (one->at == one->end) return other;
    if (other->at == other->end) return one;
    struct wait const first = side_wait(mix, one), second = side_wait(mix, other);
    if (first.covered_flop != second.covered_flop)
        return first.covered_flop > second.covered_flop ? one : other;
    if (first.place != second.place) return first.place < second.place ? one : other;
    bool const behind =
        (units_wide)one->flop_done * other->flop <= (units_wide)other->flop_done * one->flop;
    return behind ? one : other;
}

void pipeline_ops_mix(struct lower *lower, uint32_t first, uint32_t second)
{
    struct mix mix = {
        .lower = lower,
        .side = {{.at = first, .end = second}, {.at = second, .end = lower->build.op_count}}};
    uint32_t collectives = 1;
    if (lower->build.status != STATUS_OK) return;
    for (uint32_t i = first; i < lower->build.op_count; i++) {
        mix.side[i >= second].flop += op_flop(lower, &lower->build.op[i]);
        collectives += lower->build.op[i].kind == PROGRAM_OP_COLLECTIVE;
    }
    mix.share_flop = (mix.side[0].flop + mix.side[1].flop) / collectives;
    for (uint32_t i = 0; i < first; i++) op_place(&mix, i);
    for (uint32_t i = 0; i < 2; i++) side_lead(&mix, &mix.side[i]);
    while (mix.side[0].at < mix.side[0].end || mix.side[1].at < mix.side[1].end)
        side_advance(&mix, side_next(&mix));
    SIM_ASSERT(mix.count == lower->build.op_count);
    ops_reorder(lower, mix.order);
}
