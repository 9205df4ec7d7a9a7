/*
 * program_check.c: what a program must be before it is simulated, and the fields that follow from
 * it.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/counted.h"
#include "sim/base/name.h"
#include "sim/base/units.h"
#include "sim/program/program.h"
#include "sim/program/program_play.h"

/* Parts of roles that are run to see whether each need is met, and their slots. Of longer roles
 * needs are counted only: they are relative, so a long program says no more than a short one of the
 * same templates; and a run that cannot finish is an error of its own. */
enum { PLAYED_SLOTS_MAX = 4096, PLAYED_PARTS_MAX = 1 << 24 };

struct check {
    struct program *program;
    struct program_place place;
    struct error *reterr;
    units_wide *slot_bytes; /* [template]: effect_bytes() of a slot. */
};

static void place_none(struct program_place *place)
{
    memset(place, 0xff, sizeof *place);
}

/* "template 3 (layer forward), op 12 (mlp.in)" */
static void place_text(const struct check *check, char *buffer, size_t size)
{
    const struct program *program = check->program;
    const struct program_place *place = &check->place;
    if (place->template_index != PROGRAM_NOWHERE && place->op != PROGRAM_NOWHERE)
        (void)snprintf(buffer, size, "template %u, op %u (%.80s)", place->template_index, place->op,
                       program->templates[place->template_index].op[place->op].name);
    else if (place->template_index != PROGRAM_NOWHERE)
        (void)snprintf(buffer, size, "template %u", place->template_index);
    else if (place->role != PROGRAM_NOWHERE && place->block != PROGRAM_NOWHERE)
        (void)snprintf(buffer, size, "role %u, block %u", place->role, place->block);
    else if (place->role != PROGRAM_NOWHERE)
        (void)snprintf(buffer, size, "role %u", place->role);
    else if (place->stream != PROGRAM_NOWHERE)
        (void)snprintf(buffer, size, "stream %u", place->stream);
    else
        (void)snprintf(buffer, size, "program");
}

static enum status refuse(const struct check *check, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static enum status refuse(const struct check *check, const char *format, ...)
{
    char where[160], message[512];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    place_text(check, where, sizeof where);
    return error_set(check->reterr, STATUS_INVALID, where, "%s", message);
}

static enum status index_check(const struct check *check, const struct program_op *op,
                               const char *what, uint32_t count)
{
    if (op->index < count) return STATUS_OK;
    return refuse(check, "there is no %s %u; there are %u", what, op->index, count);
}

/* One message of a permute, to a stream that counts it. */
static enum status send_check(const struct check *check, const struct program_op *op)
{
    const struct program *program = check->program;
    const struct program_stream *stream = &program->stream[op->stream];
    const struct plan *plan = &program->plans[op->index];
    if (stream->inbox >= program->stream_count ||
        program->stream[stream->inbox].kind != PROGRAM_OP_RECEIVE)
        return refuse(check, "stream %u, on which it sends, has no stream of receives for inbox",
                      op->stream);
    if (plan->kind != COLLECTIVE_PERMUTE || plan->lane_count != 1 || plan->part_count != 1)
        return refuse(check, "plan %u, which it sends by, is not one message of a Permute",
                      op->index);
    return STATUS_OK;
}

static enum status compute_check(const struct check *check, const struct program_op *op,
                                 uint32_t *work_parts)
{
    STATUS_TRY(index_check(check, op, "work", check->program->work_count));
    if (work_parts[op->index] != 0 && work_parts[op->index] != op->parts)
        return refuse(check, "it cuts work %u into %s, and another op into %u", op->index,
                      counted(op->parts, "part").text, work_parts[op->index]);
    work_parts[op->index] = op->parts;
    uint64_t const chunks = check->program->works[op->index].chunk_count;
    if (chunks != 0 && op->parts == 1)
        return refuse(check, "it has %s, and its work has %llu chunks",
                      counted(op->parts, "part").text, (unsigned long long)chunks);
    if (op->stream == PROGRAM_COMPUTE) return STATUS_OK;
    return refuse(check, "a compute op lies on stream %d, not %u", PROGRAM_COMPUTE, op->stream);
}

/* What an op of each kind names, and in how many parts. */
static enum status op_kind_check(const struct check *check, const struct program_op *op,
                                 uint32_t *work_parts)
{
    const struct program *program = check->program;
    if (op->kind != PROGRAM_OP_COLLECTIVE && op->operand_op != PROGRAM_NONE)
        return refuse(check, "only a collective has an operand that another op makes");
    if (op->kind == PROGRAM_OP_COMPUTE) return compute_check(check, op, work_parts);
    if (op->stream == PROGRAM_COMPUTE)
        return refuse(check, "stream %d is for compute ops", PROGRAM_COMPUTE);
    if (op->kind == PROGRAM_OP_COPY) {
        STATUS_TRY(index_check(check, op, "host_copy", program->copy_count));
        if (program->copies[op->index].size_bytes == 0)
            return refuse(check, "host_copy %u has no bytes", op->index);
    } else if (op->kind != PROGRAM_OP_RECEIVE) {
        STATUS_TRY(index_check(check, op, "plan", program->plan_count));
        uint32_t const parts = program->plans[op->index].part_count;
        if (op->parts != parts)
            return refuse(check, "it has %s, and plan %u has %u", counted(op->parts, "part").text,
                          op->index, parts);
        return op->kind == PROGRAM_OP_SEND ? send_check(check, op) : STATUS_OK;
    }
    return op->parts == 1 ? STATUS_OK : refuse(check, "it has %u parts; it has one", op->parts);
}

static enum status op_check(const struct check *check, const struct program_op *op,
                            uint32_t *work_parts)
{
    const struct program *program = check->program;
    if (op->stream >= program->stream_count)
        return refuse(check, "there is no stream %u; there are %u", op->stream,
                      program->stream_count);
    if (op->parts < 1 || op->parts > PROGRAM_PARTS_MAX)
        return refuse(check, "%u parts are not between 1 and %d", op->parts, PROGRAM_PARTS_MAX);
    if (program->stream[op->stream].kind != op->kind)
        return refuse(check, "stream %u is for ops of another kind", op->stream);
    if (op->need_count > PROGRAM_NEEDS_MAX || op->effect_count > PROGRAM_EFFECTS_MAX)
        return refuse(check, "it has more than %d needs or %d effects", PROGRAM_NEEDS_MAX,
                      PROGRAM_EFFECTS_MAX);
    if (op->name == NULL || op->class_name == NULL) return refuse(check, "it has no name");
    for (uint32_t n = 0; n < op->need_count; n++)
        if (op->need[n].stream >= program->stream_count)
            return refuse(check, "it needs stream %u; there are %u", op->need[n].stream,
                          program->stream_count);
    return op_kind_check(check, op, work_parts);
}

static enum status template_seal(struct check *check, struct program_template *template,
                                 uint32_t *work_parts)
{
    uint32_t receives = 0;
    memset(template->stream_parts, 0, sizeof template->stream_parts);
    if (template->op_count < 1 || template->op_count > PROGRAM_OPS_MAX)
        return refuse(check, "%u ops are not between 1 and %d", template->op_count,
                      PROGRAM_OPS_MAX);
    for (uint32_t i = 0; i < template->op_count; i++) {
        struct program_op *op = &template->op[i];
        check->place.op = i;
        STATUS_TRY(op_check(check, op, work_parts));
        op->part_first = template->stream_parts[op->stream];
        template->stream_parts[op->stream] += op->parts;
        receives += op->kind == PROGRAM_OP_RECEIVE;
        if (receives > 1) /* Or a block would not say for which of them its arrivals are. */
            return refuse(check, "a template has one receive, and this is its second");
    }
    check->place.op = PROGRAM_NOWHERE;
    return STATUS_OK;
}

/* An operand op is produced chunk by chunk, as many as the plan's. */
static enum status operands_check(struct check *check, const struct program_template *template)
{
    for (uint32_t i = 0; i < template->op_count; i++) {
        const struct program_op *op = &template->op[i];
        if (op->kind != PROGRAM_OP_COLLECTIVE || op->operand_op == PROGRAM_NONE) continue;
        check->place.op = i;
        if (op->operand_op >= template->op_count ||
            template->op[op->operand_op].kind != PROGRAM_OP_COMPUTE)
            return refuse(check, "its operand, op %u, is no compute op of the template",
                          op->operand_op);
        uint32_t const parts = template->op[op->operand_op].parts;
        uint32_t const chunks = check->program->plans[op->index].chunk_count;
        if (parts != chunks)
            return refuse(check, "its operand, op %u, has %s, and plan %u has %s", op->operand_op,
                          counted(parts, "part").text, op->index, counted(chunks, "chunk").text);
    }
    check->place.op = PROGRAM_NOWHERE;
    return STATUS_OK;
}

/* Messages of a stream go from one rank to one other, whatever their sizes: round a line, those of
 * the last rank back over all of it. */
static bool displacements_agree(const struct plan *plan, const struct plan *other)
{
    int32_t const ranks = (int32_t)group_rank_count(&plan->group);
    if (plan->permute.mirrors != other->permute.mirrors) return false;
    if (((int64_t)plan->permute.shift - other->permute.shift) % ranks != 0) return false;
    for (uint32_t d = 0; d < plan->group.dimension_count; d++)
        if (((int64_t)plan->permute.offset[d] - other->permute.offset[d]) %
                (int64_t)plan->group.dimension[d].size !=
            0)
            return false;
    return true;
}

/* A stream is of one group. What it sends comes from one rank, and its messages are counted
 * whatever plan they are of. */
static enum status stream_plans_check(struct check *check)
{
    const struct program *program = check->program;
    uint32_t first[PROGRAM_STREAMS_MAX];
    memset(first, 0xff, sizeof first);
    for (uint32_t t = 0; t < program->template_count; t++) {
        const struct program_template *template = &program->templates[t];
        check->place.template_index = t;
        for (uint32_t i = 0; i < template->op_count; i++) {
            const struct program_op *op = &template->op[i];
            if (op->kind != PROGRAM_OP_COLLECTIVE && op->kind != PROGRAM_OP_SEND) continue;
            const struct plan *plan = &program->plans[op->index];
            if (first[op->stream] == UINT32_MAX) first[op->stream] = op->index;
            const struct plan *other = &program->plans[first[op->stream]];
            check->place.op = i;
            if (!group_equal(&plan->group, &other->group))
                return refuse(check, "plans %u and %u of stream %u differ in their groups",
                              first[op->stream], op->index, op->stream);
            if (op->kind == PROGRAM_OP_SEND &&
                !(plan_lanes_agree(plan, other) && displacements_agree(plan, other)))
                return refuse(check, "plans %u and %u of stream %u differ in their ways",
                              first[op->stream], op->index, op->stream);
        }
    }
    place_none(&check->place);
    return STATUS_OK;
}

/* The class of an op, which is new where none is of its name and stream; UINT32_MAX: too many. */
static uint32_t class_of(const struct program_op *op, const char **names, uint8_t *streams,
                         uint32_t *count)
{
    uint32_t c = 0;
    while (c < *count && (streams[c] != op->stream || !name_same(names[c], op->class_name))) c++;
    if (c == PROGRAM_CLASSES_MAX) return UINT32_MAX;
    if (c == *count) {
        names[c] = op->class_name;
        streams[c] = op->stream;
        ++*count;
    }
    return c;
}

static enum status classes_seal(struct arena *arena, struct check *check)
{
    struct program *program = check->program;
    uint32_t op_count = 0, count = 0;
    void *memory = NULL;
    for (uint32_t t = 0; t < program->template_count; t++)
        op_count += program->templates[t].op_count;
    if (op_count > PROGRAM_CLASSES_MAX) op_count = PROGRAM_CLASSES_MAX;
    STATUS_TRY(arena_try(arena, op_count, sizeof(const char *), &memory, check->reterr));
    const char **names = memory;
    STATUS_TRY(arena_try(arena, op_count, 1, &memory, check->reterr));
    uint8_t *streams = memory;
    for (uint32_t t = 0; t < program->template_count; t++) {
        for (uint32_t i = 0; i < program->templates[t].op_count; i++) {
            struct program_op *op = &program->templates[t].op[i];
            uint32_t const class_index = class_of(op, names, streams, &count);
            check->place.template_index = t;
            check->place.op = i;
            if (class_index == UINT32_MAX)
                return refuse(check, "there are more than %d classes of ops", PROGRAM_CLASSES_MAX);
            op->class_index = (uint16_t)class_index;
        }
    }
    place_none(&check->place);
    program->class_names = names;
    program->class_streams = streams;
    program->class_count = count;
    return STATUS_OK;
}

static bool has_receive(const struct program_template *template)
{
    for (uint32_t i = 0; i < template->op_count; i++)
        if (template->op[i].kind == PROGRAM_OP_RECEIVE) return true;
    return false;
}

/* Bytes that a slot takes and gives, all counted as if they were taken. */
static units_wide effect_bytes(const struct program_template *template)
{
    units_wide bytes = 0;
    for (uint32_t i = 0; i < template->op_count; i++)
        for (uint32_t e = 0; e < template->op[i].effect_count; e++) {
            int64_t const moved = template->op[i].effect[e].bytes;
            bytes += moved < 0 ? 0 - (uint64_t)moved : (uint64_t)moved;
        }
    return bytes;
}

static enum status role_seal(struct check *check, struct program_role *role)
{
    enum { BITS = 62 }; /* Of bytes: two more would wrap. */
    const struct program *program = check->program;
    units_wide bytes = 0;
    uint64_t slots = 0;
    memset(role->stream_total, 0, sizeof role->stream_total);
    if (role->block_count == 0) return refuse(check, "it has no block");
    for (uint32_t m = 0; m < PROGRAM_MEMORY_COUNT; m++) bytes += role->resident_bytes[m];
    for (uint32_t b = 0; b < role->block_count; b++) {
        struct program_block *block = &role->block[b];
        check->place.block = b;
        if (block->template_index >= program->template_count)
            return refuse(check, "there is no template %u; there are %u", block->template_index,
                          program->template_count);
        const struct program_template *template = &program->templates[block->template_index];
        if (block->repeat < 1 || slots + block->repeat > PROGRAM_SLOTS_MAX)
            return refuse(check, "slots up to this block are not between 1 and %d",
                          PROGRAM_SLOTS_MAX);
        if (block->arrivals != 0 && !has_receive(template))
            return refuse(check, "it waits for messages, and template %u has no receive",
                          block->template_index);
        block->slot_first = (uint32_t)slots;
        slots += block->repeat;
        bytes += block->repeat * check->slot_bytes[block->template_index];
        if (bytes >> BITS != 0)
            return refuse(check, "up to here ops take more than 2^%d bytes of memory", BITS);
        for (uint32_t s = 0; s < program->stream_count; s++) {
            block->stream_first[s] = role->stream_total[s];
            role->stream_total[s] += (uint64_t)block->repeat * template->stream_parts[s];
        }
    }
    check->place.block = PROGRAM_NOWHERE;
    role->slot_count = (uint32_t)slots;
    return STATUS_OK;
}

static bool is_short(const struct program *program, const struct program_role *role)
{
    uint64_t parts = 0;
    for (uint32_t s = 0; s < program->stream_count; s++) parts += role->stream_total[s];
    return role->slot_count <= PLAYED_SLOTS_MAX && parts <= PLAYED_PARTS_MAX;
}

static enum status never_refuse(const struct check *check)
{
    return refuse(check, "it can never begin: in role %u what it needs is never done",
                  check->place.role);
}

/* Whether an op asks for more parts than its role has of a stream, in the last slot of a block:
 * there it asks for most. */
static bool asks_more(const struct program *program, const struct program_role *role,
                      const struct program_block *block, const struct program_op *op)
{
    uint32_t const own = block->slot_first + block->repeat - 1;
    const uint32_t *slot_parts = program->templates[block->template_index].stream_parts;
    for (uint32_t n = 0; n < op->need_count; n++) {
        const struct program_need *need = &op->need[n];
        int64_t const slot = program_need_slot(need, block, own);
        uint64_t const parts = program_need_parts(need, op);
        if (slot < 0 || (slot <= own && parts <= slot_parts[need->stream])) continue;
        if (program_slot_start(role, program, need->stream, slot) + parts >
            role->stream_total[need->stream])
            return true;
    }
    return false;
}

/* Of a role that is too long to be run: each need is of parts that the role has. */
static enum status needs_count_check(struct check *check, const struct program_role *role)
{
    const struct program *program = check->program;
    for (uint32_t b = 0; b < role->block_count; b++) {
        const struct program_template *template =
            &program->templates[role->block[b].template_index];
        for (uint32_t i = 0; i < template->op_count; i++) {
            if (!asks_more(program, role, &role->block[b], &template->op[i])) continue;
            check->place.template_index = role->block[b].template_index;
            check->place.op = i;
            return never_refuse(check);
        }
    }
    return STATUS_OK;
}

static enum status role_check(struct check *check, const struct program_role *role)
{
    struct program_place place = check->place;
    if (!is_short(check->program, role)) return needs_count_check(check, role);
    if (program_play_ends(check->program, role, &place)) return STATUS_OK;
    check->place = place;
    return never_refuse(check);
}

static enum status streams_check(struct check *check)
{
    const struct program *program = check->program;
    if (program->stream_count < 1 || program->stream_count > PROGRAM_STREAMS_MAX)
        return refuse(check, "%u streams are not between 1 and %d", program->stream_count,
                      PROGRAM_STREAMS_MAX);
    check->place.stream = PROGRAM_COMPUTE;
    if (program->stream[PROGRAM_COMPUTE].kind != PROGRAM_OP_COMPUTE)
        return refuse(check, "it must be the stream of compute ops");
    place_none(&check->place);
    return STATUS_OK;
}

static enum status roles_seal(struct check *check)
{
    struct program *program = check->program;
    if (program->role_count < 1) return refuse(check, "there is no role");
    if (program->role_count > 1 &&
        (program->role_axis >= LEVEL_AXES_MAX || program->role_stride < 1))
        return refuse(check, "roles must lie along an axis, a stride apart");
    for (uint32_t r = 0; r < program->role_count; r++) {
        check->place.role = r;
        STATUS_TRY(role_seal(check, &program->roles[r]));
        STATUS_TRY(role_check(check, &program->roles[r]));
    }
    return STATUS_OK;
}

static enum status seal(struct arena *arena, struct check *check)
{
    struct program *program = check->program;
    void *memory = NULL;
    STATUS_TRY(streams_check(check));
    STATUS_TRY(arena_try(arena, program->work_count, sizeof(uint32_t), &memory, check->reterr));
    uint32_t *work_parts = memory;
    STATUS_TRY(arena_try(arena, program->template_count, sizeof *check->slot_bytes, &memory,
                         check->reterr));
    check->slot_bytes = memory;
    for (uint32_t t = 0; t < program->template_count; t++) {
        check->place.template_index = t;
        STATUS_TRY(template_seal(check, &program->templates[t], work_parts));
        STATUS_TRY(operands_check(check, &program->templates[t]));
        check->slot_bytes[t] = effect_bytes(&program->templates[t]);
    }
    place_none(&check->place);
    STATUS_TRY(stream_plans_check(check));
    STATUS_TRY(classes_seal(arena, check));
    return roles_seal(check);
}

enum status program_try_seal(struct arena *arena, struct program *program,
                             struct program_place *ret_place, struct error *reterr)
{
    struct check check = {.program = program, .reterr = reterr};
    place_none(&check.place);
    enum status const status = seal(arena, &check);
    *ret_place = check.place;
    return status;
}
