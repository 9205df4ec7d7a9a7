/*
 * Needs that others imply are left out: what an op's stream has waited for before, and what an op
 * has waited for that is waited for here. So an op may state all that it reads, and a program says
 * only what it takes. No instant depends on it.
 */
#include <string.h>

#include "sim/program/builder.h"

/* Of each stream, parts in this slot that are done, and one more. 0: not even those of earlier
 * slots are known to be. */
struct clock {
    uint32_t parts[PROGRAM_STREAMS_MAX];
};

struct reducer {
    struct program_op *op;
    uint32_t stream_count;
    struct clock end[PROGRAM_OPS_MAX];  /* [op]: once it has ended. */
    uint32_t former[PROGRAM_OPS_MAX];   /* [op]: the one before it on its stream, or */
    uint32_t last[PROGRAM_STREAMS_MAX]; /* BUILDER_NONE; and the stream's last op so far. */
};

static void clock_join(const struct reducer *reducer, struct clock *clock, uint32_t op)
{
    for (uint32_t s = 0; op != BUILDER_NONE && s < reducer->stream_count; s++)
        if (reducer->end[op].parts[s] > clock->parts[s])
            clock->parts[s] = reducer->end[op].parts[s];
}

static void clock_reach(struct clock *clock, uint32_t stream, uint32_t parts)
{
    if (parts + 1 > clock->parts[stream]) clock->parts[stream] = parts + 1;
}

/* Of this slot's parts, or of all before it: it is met once, when a count is reached. */
static bool is_plain(const struct program_need *need)
{
    return need->slot == 0 && !need->begun && need->per_part == 0;
}

/* The last op of a stream that has ended when a count of its parts is reached, or BUILDER_NONE. */
static uint32_t ended(const struct reducer *reducer, uint32_t stream, uint32_t parts)
{
    uint32_t op = reducer->last[stream];
    while (op != BUILDER_NONE && reducer->op[op].part_first + reducer->op[op].parts > parts)
        op = reducer->former[op];
    return op;
}

/* What is done before an op may begin, its needs aside. */
static struct clock begun(const struct reducer *reducer, const struct program_op *op)
{
    struct clock clock = {{0}};
    clock_reach(&clock, op->stream, 0);
    clock_join(reducer, &clock, reducer->last[op->stream]);
    return clock;
}

/* All that an op states, of which there may be more than a program can say. */
struct stated {
    struct program_need need[PROGRAM_NEEDS_MAX + BUILDER_MORE_MAX];
    uint32_t count;
};

static void stated_set(const struct builder *builder, uint32_t index, struct stated *ret_stated)
{
    const struct program_op *op = &builder->op[index];
    ret_stated->count = op->need_count;
    memcpy(ret_stated->need, op->need, op->need_count * sizeof *op->need);
    for (uint32_t i = 0; i < builder->more_count; i++)
        if (builder->more[i].op == index)
            ret_stated->need[ret_stated->count++] = builder->more[i].need;
}

static bool is_implied(const struct reducer *reducer, const struct stated *stated, uint32_t index,
                       const struct clock *before)
{
    const struct program_need *need = &stated->need[index];
    if (!is_plain(need)) return false;
    if (before->parts[need->stream] > need->part) return true;
    for (uint32_t i = 0; i < stated->count; i++) {
        const struct program_need *other = &stated->need[i];
        if (i == index || !is_plain(other)) continue;
        if (other->stream == need->stream) {
            if (other->part > need->part || (other->part == need->part && i < index)) return true;
            continue;
        }
        uint32_t const at = ended(reducer, other->stream, other->part);
        if (at != BUILDER_NONE && reducer->end[at].parts[need->stream] > need->part) return true;
    }
    return false;
}

static void end_set(struct reducer *reducer, uint32_t index, const struct stated *stated,
                    struct clock end)
{
    const struct program_op *op = &reducer->op[index];
    for (uint32_t i = 0; i < stated->count; i++) {
        const struct program_need *need = &stated->need[i];
        uint32_t const parts = need->part + need->per_part * (op->parts - 1);
        if (need->slot != 0 || need->begun) continue;
        clock_reach(&end, need->stream, parts);
        clock_join(reducer, &end, ended(reducer, need->stream, parts));
    }
    if (op->kind == PROGRAM_OP_COLLECTIVE && op->operand_op != PROGRAM_NONE)
        clock_join(reducer, &end, op->operand_op);
    clock_reach(&end, op->stream, op->part_first + op->parts);
    reducer->end[index] = end;
    reducer->former[index] = reducer->last[op->stream];
    reducer->last[op->stream] = index;
}

/* By all that is waited for: in which order they are added does not show. */
static bool is_behind(const struct program_need *a, const struct program_need *b)
{
    if (a->stream != b->stream) return a->stream > b->stream;
    if (a->slot != b->slot) return a->slot > b->slot;
    if (a->part != b->part) return a->part > b->part;
    if (a->begun != b->begun) return a->begun;
    return a->per_part > b->per_part;
}

static void needs_sort(struct program_op *op)
{
    for (uint32_t i = 1; i < op->need_count; i++)
        for (uint32_t k = i; k > 0 && is_behind(&op->need[k - 1], &op->need[k]); k--) {
            struct program_need const need = op->need[k];
            op->need[k] = op->need[k - 1];
            op->need[k - 1] = need;
        }
}

void builder_needs_reduce(struct builder *builder)
{
    struct reducer reducer;
    struct stated stated;
    if (builder->status != STATUS_OK) return;
    reducer.op = builder->op;
    reducer.stream_count = builder->program->stream_count;
    for (uint32_t s = 0; s < PROGRAM_STREAMS_MAX; s++) reducer.last[s] = BUILDER_NONE;
    for (uint32_t i = 0; i < builder->op_count; i++) {
        struct program_op *op = &builder->op[i];
        struct clock const before = begun(&reducer, op);
        stated_set(builder, i, &stated);
        op->need_count = 0;
        for (uint32_t n = 0; n < stated.count; n++)
            if (!is_implied(&reducer, &stated, n, &before) &&
                builder_need_keep(builder, op, &stated.need[n]) != STATUS_OK)
                return;
        end_set(&reducer, i, &stated, before);
        needs_sort(op);
    }
    builder->more_count = 0;
}
