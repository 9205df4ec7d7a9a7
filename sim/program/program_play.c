/*
 * program_play.c: a role run where nothing but collectives takes time, or nothing at all.
 */
#include "sim/program/program_play.h"

#include "sim/base/arena.h"

/* Where a stream is while a role runs without time. */
struct cursor {
    uint32_t block;
    uint32_t slot;
    uint32_t op;
    uint32_t part;
    const uint64_t *awaited; /* The count that keeps the stream from going on; NULL: none. */
    uint64_t wanted;         /* What the count has to come to. */
};

struct play {
    const struct program *program;
    const struct program_role *role;
    uint64_t begun[PROGRAM_STREAMS_MAX];
    uint64_t done[PROGRAM_STREAMS_MAX];
    struct cursor cursor[PROGRAM_STREAMS_MAX];

    /* With times, of each part of a stream when it begins and when it is done. */
    const int64_t *plan_ps;
    int64_t *begun_ps[PROGRAM_STREAMS_MAX], *done_ps[PROGRAM_STREAMS_MAX];
};

/* Moves a cursor on to the next op of its stream; NULL at the end of the role. */
static const struct program_op *cursor_op(const struct play *play, struct cursor *cursor,
                                          uint32_t stream)
{
    while (cursor->block < play->role->block_count) {
        const struct program_block *block = &play->role->block[cursor->block];
        const struct program_template *template = &play->program->templates[block->template_index];
        if (template->stream_parts[stream] != 0) {
            while (cursor->op < template->op_count && template->op[cursor->op].stream != stream) {
                cursor->op++;
            }
            if (cursor->op < template->op_count) return &template->op[cursor->op];
        }
        cursor->op = 0;
        cursor->slot++;
        bool const skip = template->stream_parts[stream] == 0;
        if (skip || cursor->slot == block->slot_first + block->repeat) {
            cursor->block++;
            cursor->slot = block->slot_first + block->repeat;
        }
    }
    return NULL;
}

/* Parts of a stream before a slot. Most are of the block itself, which need not be looked up. */
static uint64_t slot_start(const struct play *play, const struct cursor *cursor, uint32_t stream,
                           int64_t slot)
{
    const struct program_block *block = &play->role->block[cursor->block];
    int64_t const by = slot - (int64_t)block->slot_first;
    if (by < 0 || by >= (int64_t)block->repeat)
        return program_slot_start(play->role, play->program, stream, slot);
    return block->stream_first[stream] +
           (uint64_t)by * play->program->templates[block->template_index].stream_parts[stream];
}

/* Parts of its stream that must have begun, or be done. */
static uint64_t needed(const struct play *play, const struct program_need *need,
                       const struct cursor *cursor)
{
    int64_t const slot = program_need_slot(need, &play->role->block[cursor->block], cursor->slot);
    if (slot < 0) return 0;
    return slot_start(play, cursor, need->stream, slot) + need->part +
           (uint64_t)need->per_part * cursor->part;
}

/* Whether a count has come to what a stream wants of it; if not, the stream waits for that. */
static bool is_reached(const uint64_t *count, uint64_t wanted, struct cursor *cursor)
{
    bool const reached = *count >= wanted;
    cursor->awaited = reached ? NULL : count;
    cursor->wanted = wanted;
    return reached;
}

static bool needs_met(const struct play *play, const struct program_op *op, struct cursor *cursor)
{
    for (uint32_t n = 0; n < op->need_count; n++) {
        const struct program_need *need = &op->need[n];
        const uint64_t *counts = need->begun ? play->begun : play->done;
        if (!is_reached(&counts[need->stream], needed(play, need, cursor), cursor)) return false;
    }
    return true;
}

/* Parts of the compute stream up to the last one of a collective's operand; 0: it has none. */
static uint64_t operand_end(const struct play *play, const struct program_op *op,
                            const struct cursor *cursor)
{
    if (op->kind != PROGRAM_OP_COLLECTIVE || op->operand_op == PROGRAM_NONE) return 0;
    const struct program_block *block = &play->role->block[cursor->block];
    const struct program_op *operand =
        &play->program->templates[block->template_index].op[op->operand_op];
    return slot_start(play, cursor, PROGRAM_COMPUTE, cursor->slot) + operand->part_first +
           operand->parts;
}

/* --- Times --- */

static int64_t later(int64_t one, int64_t other)
{
    return one > other ? one : other;
}

static int64_t at_ps(const int64_t *times, uint64_t count)
{
    return count == 0 ? 0 : times[count - 1];
}

/* A part begins when the one before is done and its needs are met. */
static void begun_note(const struct play *play, const struct program_op *op,
                       const struct cursor *cursor, uint32_t stream, uint64_t begun)
{
    uint64_t const first = play->done[stream];
    if (play->plan_ps == NULL) return;
    int64_t start_ps = at_ps(play->done_ps[stream], first);
    for (uint32_t n = 0; n < op->need_count; n++) {
        const struct program_need *need = &op->need[n];
        const int64_t *times = (need->begun ? play->begun_ps : play->done_ps)[need->stream];
        start_ps = later(start_ps, at_ps(times, needed(play, need, cursor)));
    }
    for (uint64_t part = first; part < begun; part++) play->begun_ps[stream][part] = start_ps;
}

/* Of a collective the last part comes when it has taken its time, and when its operand is there;
 * of the others nobody knows. */
static void done_note(const struct play *play, const struct program_op *op,
                      const struct cursor *cursor, uint32_t stream, uint32_t parts)
{
    uint64_t const first = play->done[stream], last = first + parts - 1;
    if (play->plan_ps == NULL) return;
    int64_t const start_ps = play->begun_ps[stream][first];
    int64_t const own_ps = op->kind == PROGRAM_OP_COLLECTIVE ? play->plan_ps[op->index] : 0;
    int64_t const operand_ps = at_ps(play->done_ps[PROGRAM_COMPUTE], operand_end(play, op, cursor));
    for (uint64_t part = first; part < last; part++) play->done_ps[stream][part] = start_ps;
    play->done_ps[stream][last] = later(start_ps + own_ps, operand_ps);
}

/* --- Playing --- */

/* Plays what a stream can do now; whether anything was done. */
static bool stream_play(struct play *play, uint32_t stream)
{
    struct cursor *cursor = &play->cursor[stream];
    bool moved = false;
    if (cursor->awaited != NULL && *cursor->awaited < cursor->wanted) return false;
    for (;;) {
        const struct program_op *op = cursor_op(play, cursor, stream);
        if (op == NULL || !needs_met(play, op, cursor)) return moved;
        /* A collective begins as a whole, a compute op part by part. */
        uint32_t const parts = op->kind == PROGRAM_OP_COLLECTIVE ? op->parts : 1;
        uint64_t const begun = play->done[stream] + parts;
        if (play->begun[stream] < begun) {
            begun_note(play, op, cursor, stream, begun);
            play->begun[stream] = begun;
            moved = true;
        }
        uint64_t const operand = operand_end(play, op, cursor);
        if (!is_reached(&play->done[PROGRAM_COMPUTE], operand, cursor)) return moved;
        done_note(play, op, cursor, stream, parts);
        play->done[stream] += parts;
        cursor->part += parts;
        moved = true;
        if (cursor->part == op->parts) {
            cursor->part = 0;
            cursor->op++;
        }
    }
}

static void role_play(struct play *play)
{
    bool moved = true;
    while (moved) {
        moved = false;
        for (uint32_t s = 0; s < play->program->stream_count; s++)
            if (stream_play(play, s)) moved = true;
    }
}

/* --- In order --- */

/* Whether what an op of slot `own` needs is done when all slots and ops before it have run.
 * `before`: parts of each stream in the slot before the op. */
static bool need_is_before(const struct program *program, const struct program_role *role,
                           const struct program_block *block, uint32_t own,
                           const struct program_op *op, const struct program_need *need,
                           const uint64_t *before)
{
    int64_t const slot = program_need_slot(need, block, own);
    uint64_t const parts = program_need_parts(need, op);
    if (slot < 0 || (slot <= own && parts <= before[need->stream])) return true;
    return program_slot_start(role, program, need->stream, slot) + parts <=
           program_slot_start(role, program, need->stream, own) + before[need->stream];
}

static bool slot_is_in_order(const struct program *program, const struct program_role *role,
                             const struct program_block *block, uint32_t own)
{
    const struct program_template *template = &program->templates[block->template_index];
    uint64_t before[PROGRAM_STREAMS_MAX] = {0};
    for (uint32_t i = 0; i < template->op_count; i++) {
        const struct program_op *op = &template->op[i];
        for (uint32_t n = 0; n < op->need_count; n++)
            if (!need_is_before(program, role, block, own, op, &op->need[n], before)) return false;
        if (op->operand_op != PROGRAM_NONE && op->operand_op >= i) return false;
        before[op->stream] += op->parts;
    }
    return true;
}

/* Whether each op could run in any slot when those before it are done: no op needs a later slot. */
static bool template_is_in_order(const struct program_template *template)
{
    uint64_t before[PROGRAM_STREAMS_MAX] = {0};
    for (uint32_t i = 0; i < template->op_count; i++) {
        const struct program_op *op = &template->op[i];
        for (uint32_t n = 0; n < op->need_count; n++)
            if (op->need[n].slot == PROGRAM_SLOT_SINCE || op->need[n].slot > 0 ||
                program_need_parts(&op->need[n], op) > before[op->need[n].stream])
                return false;
        if (op->operand_op != PROGRAM_NONE && op->operand_op >= i) return false;
        before[op->stream] += op->parts;
    }
    return true;
}

/* Whether each op could run when those that stand before it are done. Counts only grow, so a role
 * that ends in one order ends in any. */
static bool is_in_order(const struct program *program, const struct program_role *role)
{
    enum { UNKNOWN, IN_ANY_SLOT, BY_SLOT };
    uint8_t known[PROGRAM_TEMPLATES_MAX] = {UNKNOWN};
    SIM_ASSERT(program->template_count <= PROGRAM_TEMPLATES_MAX);
    for (uint32_t b = 0; b < role->block_count; b++) {
        const struct program_block *block = &role->block[b];
        uint8_t *template = &known[block->template_index];
        if (*template == UNKNOWN)
            *template = template_is_in_order(&program->templates[block->template_index])
                            ? IN_ANY_SLOT
                            : BY_SLOT;
        if (*template == IN_ANY_SLOT) continue;
        for (uint32_t k = 0; k < block->repeat; k++)
            if (!slot_is_in_order(program, role, block, block->slot_first + k)) return false;
    }
    return true;
}

bool program_play_ends(const struct program *program, const struct program_role *role,
                       struct program_place *ret_place)
{
    struct play play = {.program = program, .role = role};
    if (is_in_order(program, role)) return true;
    role_play(&play);
    for (uint32_t s = 0; s < program->stream_count; s++) {
        if (play.done[s] == role->stream_total[s]) continue;
        const struct program_op *op = cursor_op(&play, &play.cursor[s], s);
        const struct program_block *block = &role->block[play.cursor[s].block];
        ret_place->template_index = block->template_index;
        ret_place->op = (uint32_t)(op - program->templates[block->template_index].op);
        return false;
    }
    return true;
}

enum status program_play_longest(const struct program *program, const struct program_role *role,
                                 const int64_t *plan_ps, int64_t *ret_ps, struct error *reterr)
{
    struct play play = {.program = program, .role = role, .plan_ps = plan_ps};
    struct arena *arena = arena_create(0);
    enum status status = arena == NULL ? error_set(reterr, STATUS_NO_MEMORY, "",
                                                   "no memory to find a step's longest chain")
                                       : STATUS_OK;
    for (uint32_t s = 0; s < program->stream_count && status == STATUS_OK; s++) {
        void *begun = NULL, *done = NULL;
        status = arena_try(arena, role->stream_total[s], sizeof(int64_t), &begun, reterr);
        if (status == STATUS_OK)
            status = arena_try(arena, role->stream_total[s], sizeof(int64_t), &done, reterr);
        play.begun_ps[s] = begun;
        play.done_ps[s] = done;
    }
    if (status == STATUS_OK) role_play(&play);
    *ret_ps = 0;
    for (uint32_t s = 0; s < program->stream_count && status == STATUS_OK; s++)
        *ret_ps = later(*ret_ps, at_ps(play.done_ps[s], role->stream_total[s]));
    arena_destroy(arena);
    return status;
}
