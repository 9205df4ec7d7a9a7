#include "sim/program/program.h"

#include <stdio.h>
#include <string.h>

#include "sim/base/arena.h"

/* One message of a permute, to a stream that counts it. */
static void send_check(const struct program *program, const struct program_op *op)
{
    const struct program_stream *stream = &program->stream[op->stream];
    const struct plan *plan = &program->plans[op->index];
    SIM_ASSERT(stream->inbox < program->stream_count &&
               program->stream[stream->inbox].kind == PROGRAM_OP_RECEIVE);
    SIM_ASSERT(plan->kind == COLLECTIVE_PERMUTE && plan->lane_count == 1 && plan->part_count == 1);
    SIM_ASSERT(op->operand_op == PROGRAM_NONE);
}

static void template_seal(const struct program *program, struct program_template *template)
{
    uint32_t receives = 0;
    memset(template->stream_parts, 0, sizeof template->stream_parts);
    for (uint32_t i = 0; i < template->op_count; i++) {
        struct program_op *op = &template->op[i];
        SIM_ASSERT(op->stream < program->stream_count && op->parts >= 1);
        SIM_ASSERT(program->stream[op->stream].kind == op->kind);
        SIM_ASSERT(op->need_count <= PROGRAM_NEEDS_MAX && op->effect_count <= PROGRAM_EFFECTS_MAX);
        SIM_ASSERT(op->name != NULL && op->class_name != NULL);
        op->part_first = template->stream_parts[op->stream];
        template->stream_parts[op->stream] += op->parts;
        for (uint32_t n = 0; n < op->need_count; n++) {
            SIM_ASSERT(op->need[n].stream < program->stream_count);
        }
        if (op->kind == PROGRAM_OP_COMPUTE) {
            SIM_ASSERT(op->stream == PROGRAM_COMPUTE && op->index < program->work_count);
            SIM_ASSERT(op->operand_op == PROGRAM_NONE);
        } else if (op->kind == PROGRAM_OP_COPY) {
            SIM_ASSERT(op->stream != PROGRAM_COMPUTE && op->index < program->copy_count);
            SIM_ASSERT(op->parts == 1);
            SIM_ASSERT(program->copies[op->index].size_bytes > 0);
            SIM_ASSERT(op->operand_op == PROGRAM_NONE);
        } else if (op->kind == PROGRAM_OP_RECEIVE) {
            SIM_ASSERT(op->parts == 1);
            SIM_ASSERT(op->operand_op == PROGRAM_NONE);
            receives++;
        } else {
            SIM_ASSERT(op->stream != PROGRAM_COMPUTE && op->index < program->plan_count);
            SIM_ASSERT(op->parts == program->plans[op->index].part_count);
            if (op->kind == PROGRAM_OP_SEND) send_check(program, op);
        }
    }
    SIM_ASSERT(receives <= 1); /* Or a block would not say for which of them its arrivals are. */
}

/* An operand op is produced chunk by chunk, as many as the plan's. */
static void operands_check(const struct program *program, const struct program_template *template)
{
    for (uint32_t i = 0; i < template->op_count; i++) {
        const struct program_op *op = &template->op[i];
        if (op->kind != PROGRAM_OP_COLLECTIVE || op->operand_op == PROGRAM_NONE) continue;
        SIM_ASSERT(op->operand_op < template->op_count);
        const struct program_op *operand = &template->op[op->operand_op];
        SIM_ASSERT(operand->kind == PROGRAM_OP_COMPUTE);
        SIM_ASSERT(operand->parts == program->plans[op->index].chunk_count);
    }
}

/* Messages of a stream go from one rank to one other, whatever their sizes: round a line, those of
 * the last rank back over all of it. */
static void displacements_check(const struct plan *plan, const struct plan *other)
{
    int32_t const ranks = (int32_t)group_rank_count(&plan->group);
    SIM_ASSERT(plan->permute.mirrors == other->permute.mirrors);
    SIM_ASSERT((plan->permute.shift - other->permute.shift) % ranks == 0);
    for (uint32_t d = 0; d < plan->group.dimension_count; d++)
        SIM_ASSERT((plan->permute.offset[d] - other->permute.offset[d]) %
                       (int32_t)plan->group.dimension[d].size ==
                   0);
}

/* Arrivals are counted per (stream, lane), so a lane means the same on every op of a stream. */
static void stream_lanes_seal(struct program *program)
{
    const struct plan *first[PROGRAM_STREAMS_MAX] = {0};
    for (uint32_t s = 0; s < program->stream_count; s++) program->stream[s].lane_count = 0;
    for (uint32_t t = 0; t < program->template_count; t++) {
        const struct program_template *template = &program->templates[t];
        for (uint32_t i = 0; i < template->op_count; i++) {
            const struct program_op *op = &template->op[i];
            if (op->kind != PROGRAM_OP_COLLECTIVE && op->kind != PROGRAM_OP_SEND) continue;
            const struct plan *plan = &program->plans[op->index];
            if (first[op->stream] == NULL) first[op->stream] = plan;
            const struct plan *other = first[op->stream];
            SIM_ASSERT(plan->lane_count == other->lane_count);
            SIM_ASSERT(group_equal(&plan->group, &other->group));
            if (op->kind == PROGRAM_OP_SEND) displacements_check(plan, other);
            for (uint32_t l = 0; l < plan->lane_count; l++) {
                const struct plan_item *item = &plan->item[plan->lane[l].item];
                const struct plan_item *like = &other->item[other->lane[l].item];
                SIM_ASSERT(item->primitive == like->primitive);
                SIM_ASSERT(item->dimension == like->dimension);
                SIM_ASSERT(plan->lane[l].lane == other->lane[l].lane);
            }
            program->stream[op->stream].lane_count = (uint8_t)plan->lane_count;
        }
    }
}

static void classes_seal(struct arena *arena, struct program *program)
{
    uint32_t op_count = 0;
    for (uint32_t t = 0; t < program->template_count; t++) {
        op_count += program->templates[t].op_count;
    }
    const char **names = arena_take(arena, op_count, sizeof *names);
    uint8_t *streams = arena_take(arena, op_count, sizeof *streams);
    SIM_ASSERT(names != NULL && streams != NULL);
    uint32_t count = 0;
    for (uint32_t t = 0; t < program->template_count; t++) {
        for (uint32_t i = 0; i < program->templates[t].op_count; i++) {
            struct program_op *op = &program->templates[t].op[i];
            uint32_t c = 0;
            while (c < count &&
                   (streams[c] != op->stream || strcmp(names[c], op->class_name) != 0)) {
                c++;
            }
            if (c == count) {
                names[c] = op->class_name;
                streams[c] = op->stream;
                count++;
            }
            op->class_index = (uint16_t)c;
        }
    }
    program->class_names = names;
    program->class_streams = streams;
    program->class_count = count;
}

static bool has_receive(const struct program_template *template)
{
    for (uint32_t i = 0; i < template->op_count; i++)
        if (template->op[i].kind == PROGRAM_OP_RECEIVE) return true;
    return false;
}

static void role_seal(const struct program *program, struct program_role *role)
{
    memset(role->stream_total, 0, sizeof role->stream_total);
    role->slot_count = 0;
    for (uint32_t b = 0; b < role->block_count; b++) {
        struct program_block *block = &role->block[b];
        SIM_ASSERT(block->template_index < program->template_count && block->repeat >= 1);
        SIM_ASSERT(block->arrivals == 0 || has_receive(&program->templates[block->template_index]));
        block->slot_first = role->slot_count;
        role->slot_count += block->repeat;
        for (uint32_t s = 0; s < program->stream_count; s++) {
            block->stream_first[s] = role->stream_total[s];
            role->stream_total[s] +=
                (uint64_t)block->repeat * program->templates[block->template_index].stream_parts[s];
        }
    }
}

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

static bool needs_met(const struct play *play, const struct program_op *op,
                      const struct cursor *cursor)
{
    for (uint32_t n = 0; n < op->need_count; n++) {
        const struct program_need *need = &op->need[n];
        int64_t const slot =
            program_need_slot(need, &play->role->block[cursor->block], cursor->slot);
        if (slot < 0) continue;
        uint64_t const count = program_slot_start(play->role, play->program, need->stream, slot) +
                               need->part + (uint64_t)need->per_part * cursor->part;
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
    uint64_t const end =
        program_slot_start(play->role, play->program, PROGRAM_COMPUTE, cursor->slot) +
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

/* No need can stay unmet: one rank, whose collectives take no time and to whom messages have come
 * before it asks, must come to its end. Needs are
 * relative, so a long program says no more than a short one of the same templates; and a run that
 * cannot finish is an error of its own. */
static void role_check(const struct program *program, const struct program_role *role)
{
    enum { CHECKED_SLOTS_MAX = 4096 };
    if (role->slot_count > CHECKED_SLOTS_MAX) return;
    struct play play = {.program = program, .role = role};
    bool moved = true;
    while (moved) {
        moved = false;
        for (uint32_t s = 0; s < program->stream_count; s++) {
            if (stream_play(&play, s)) moved = true;
        }
    }
    for (uint32_t s = 0; s < program->stream_count; s++) {
        bool const every_op_of_the_stream_can_run = play.done[s] == role->stream_total[s];
        SIM_ASSERT(every_op_of_the_stream_can_run);
    }
}

void program_seal(struct arena *arena, struct program *program)
{
    SIM_ASSERT(program->stream_count >= 1 && program->stream_count <= PROGRAM_STREAMS_MAX);
    SIM_ASSERT(program->stream[PROGRAM_COMPUTE].kind == PROGRAM_OP_COMPUTE);
    SIM_ASSERT(program->role_count >= 1);
    SIM_ASSERT(program->role_count == 1 ||
               (program->role_axis < GROUP_DIMENSIONS_MAX && program->role_stride >= 1));
    for (uint32_t t = 0; t < program->template_count; t++) {
        template_seal(program, &program->templates[t]);
        operands_check(program, &program->templates[t]);
    }
    stream_lanes_seal(program);
    classes_seal(arena, program);
    for (uint32_t r = 0; r < program->role_count; r++) {
        role_seal(program, &program->roles[r]);
        role_check(program, &program->roles[r]);
    }
}

const struct program_block *program_slot_block(const struct program_role *role, uint32_t slot)
{
    SIM_ASSERT(slot < role->slot_count);
    uint32_t low = 0;
    uint32_t high = role->block_count;
    while (high - low > 1) {
        uint32_t const middle = low + (high - low) / 2;
        if (role->block[middle].slot_first <= slot) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return &role->block[low];
}

uint64_t program_slot_start(const struct program_role *role, const struct program *program,
                            uint32_t stream, int64_t slot)
{
    if (slot < 0) return 0;
    if (slot >= role->slot_count) return role->stream_total[stream];
    const struct program_block *block = program_slot_block(role, (uint32_t)slot);
    return block->stream_first[stream] +
           (uint64_t)(slot - block->slot_first) *
               program->templates[block->template_index].stream_parts[stream];
}

uint32_t program_role_at(const struct program *program, const uint32_t *at)
{
    if (program->role_count == 1) return 0;
    uint32_t const inner = program->inner_count > 1 ? program->inner_count : 1;
    uint32_t const place =
        at[program->role_axis] / program->role_stride % (program->role_count / inner);
    if (inner == 1) return place;
    return place * inner + at[program->inner_axis] / program->inner_stride % inner;
}

void program_role_first(const struct program *program, uint32_t role,
                        uint32_t ret_at[LEVEL_AXES_MAX])
{
    uint32_t const inner = program->inner_count > 1 ? program->inner_count : 1;
    SIM_ASSERT(role < program->role_count);
    memset(ret_at, 0, LEVEL_AXES_MAX * sizeof *ret_at);
    if (program->role_count == 1) return;
    ret_at[program->role_axis] = role / inner * program->role_stride;
    if (inner > 1) ret_at[program->inner_axis] += role % inner * program->inner_stride;
}

uint32_t program_roles_along(const struct program *program, uint32_t axis, uint32_t *ret_stride)
{
    uint32_t const inner = program->inner_count > 1 ? program->inner_count : 1;
    *ret_stride = 1;
    if (program->role_count == 1) return 1;
    if (inner > 1 && program->inner_axis == axis) {
        *ret_stride = program->inner_stride;
        return inner;
    }
    if (program->role_axis != axis) return 1;
    *ret_stride = program->role_stride;
    return program->role_count / inner;
}

void program_role_name(const struct program *program, uint32_t role, char *buffer,
                       uint32_t buffer_bytes)
{
    if (program->role_count == 1)
        buffer[0] = '\0';
    else
        (void)snprintf(buffer, buffer_bytes, "pipeline rank %u", role);
}

void program_slot_name(const struct program_role *role, uint32_t slot, char *buffer,
                       uint32_t buffer_bytes)
{
    static const char *const phases[] = {
#define X(name, text) text,
        PROGRAM_PHASE_TABLE(X)
#undef X
    };
    const struct program_block *block = program_slot_block(role, slot);
    if (block->layer_first < 0) {
        (void)snprintf(buffer, buffer_bytes, "%s %s", block->name, phases[block->phase]);
        return;
    }
    int64_t const layer =
        block->layer_first + (int64_t)block->layer_step * (int64_t)(slot - block->slot_first);
    (void)snprintf(buffer, buffer_bytes, "%s %lld %s", block->name, (long long)layer,
                   phases[block->phase]);
}

bool program_is_drawn(const struct program *program, uint32_t axis)
{
    for (uint32_t i = 0; i < program->plan_count; i++)
        for (uint32_t d = 0; d < program->plans[i].group.dimension_count; d++)
            if (program->plans[i].ragged_units != NULL &&
                program->plans[i].group.dimension[d].axis == axis)
                return true;
    return false;
}
