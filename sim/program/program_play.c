/*
 * program_play.c: a role played without time: whether each of its needs can be met.
 */
#include "sim/program/program_play.h"

/* Where a stream is while a role is played without time. */
struct cursor {
    uint32_t block;
    uint32_t slot;
    uint32_t op;
    uint32_t part;
};

struct play {
    const struct program *program;
    const struct program_role *role;
    uint64_t begun[PROGRAM_STREAMS_MAX];
    uint64_t done[PROGRAM_STREAMS_MAX];
    struct cursor cursor[PROGRAM_STREAMS_MAX];
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

static bool needs_met(const struct play *play, const struct program_op *op,
                      const struct cursor *cursor)
{
    for (uint32_t n = 0; n < op->need_count; n++) {
        const struct program_need *need = &op->need[n];
        int64_t const slot =
            program_need_slot(need, &play->role->block[cursor->block], cursor->slot);
        if (slot < 0) continue;
        uint64_t const count = slot_start(play, cursor, need->stream, slot) + need->part +
                               (uint64_t)need->per_part * cursor->part;
        if ((need->begun ? play->begun : play->done)[need->stream] < count) return false;
    }
    return true;
}

static bool operand_met(const struct play *play, const struct program_op *op,
                        const struct cursor *cursor)
{
    if (op->kind != PROGRAM_OP_COLLECTIVE || op->operand_op == PROGRAM_NONE) return true;
    const struct program_block *block = &play->role->block[cursor->block];
    const struct program_op *operand =
        &play->program->templates[block->template_index].op[op->operand_op];
    uint64_t const end = slot_start(play, cursor, PROGRAM_COMPUTE, cursor->slot) +
                         operand->part_first + operand->parts;
    return play->done[PROGRAM_COMPUTE] >= end;
}

/* Plays what a stream can do now; whether anything was done. */
static bool stream_play(struct play *play, uint32_t stream)
{
    struct cursor *cursor = &play->cursor[stream];
    bool moved = false;
    for (;;) {
        const struct program_op *op = cursor_op(play, cursor, stream);
        if (op == NULL || !needs_met(play, op, cursor)) return moved;
        /* A collective begins as a whole, a compute op part by part. */
        uint32_t const parts = op->kind == PROGRAM_OP_COLLECTIVE ? op->parts : 1;
        uint64_t const begun = play->done[stream] + parts;
        if (play->begun[stream] < begun) {
            play->begun[stream] = begun;
            moved = true;
        }
        if (!operand_met(play, op, cursor)) return moved;
        play->done[stream] += parts;
        cursor->part += parts;
        moved = true;
        if (cursor->part == op->parts) {
            cursor->part = 0;
            cursor->op++;
        }
    }
}

bool program_play_ends(const struct program *program, const struct program_role *role,
                       struct program_place *ret_place)
{
    struct play play = {.program = program, .role = role};
    bool moved = true;
    while (moved) {
        moved = false;
        for (uint32_t s = 0; s < program->stream_count; s++)
            if (stream_play(&play, s)) moved = true;
    }
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
