#include "sim/program/builder.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/machine/machine.h"

const struct builder_room builder_room_most = {.templates = PROGRAM_TEMPLATES_MAX,
                                               .ops = PROGRAM_OPS_MAX,
                                               .works = PROGRAM_WORKS_MAX,
                                               .plans = PROGRAM_PLANS_MAX,
                                               .copies = PROGRAM_COPIES_MAX};

enum { NAME_BYTES = 128 };

static void *take(struct builder *builder, uint64_t count, uint64_t size_bytes)
{
    void *memory = NULL;
    if (builder->status == STATUS_OK)
        builder->status = arena_try(builder->arena, count, size_bytes, &memory, builder->error);
    return memory;
}

/* Room for items that are added one after the other, each of them whole. */
static void *take_room(struct builder *builder, uint64_t count, uint64_t size_bytes)
{
    void *memory = NULL;
    if (builder->status == STATUS_OK)
        builder->status =
            arena_try_unset(builder->arena, count, size_bytes, &memory, builder->error);
    return memory;
}

void builder_begin(struct builder *builder, struct arena *arena, const struct machine *machine,
                   struct builder_room room, struct program *program, struct error *reterr)
{
    *builder = (struct builder){
        .arena = arena, .machine = machine, .room = room, .program = program, .error = reterr};
    *program = (struct program){0};
    program->works = take_room(builder, room.works, sizeof *program->works);
    program->plans = take_room(builder, room.plans, sizeof *program->plans);
    program->templates = take_room(builder, room.templates, sizeof *program->templates);
    program->copies = take_room(builder, room.copies, sizeof *program->copies);
    builder->requests = take_room(builder, room.plans, sizeof *builder->requests);
    builder->work_parts = take_room(builder, room.works, sizeof *builder->work_parts);
    builder->op = take_room(builder, room.ops, sizeof *builder->op);
    program->requests = builder->requests;
}

enum status builder_fail(struct builder *builder, enum status status, const char *where,
                         const char *format, ...)
{
    char message[512];
    va_list arguments;
    if (builder->status != STATUS_OK) return builder->status;
    va_start(arguments, format);
    (void)vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    builder->status = error_set(builder->error, status, where, "%s", message);
    return builder->status;
}

const char *builder_format(struct builder *builder, const char *format, ...)
{
    char buffer[NAME_BYTES];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(buffer, sizeof buffer, format, arguments);
    va_end(arguments);
    char *text = arena_text(builder->arena, buffer);
    if (text == NULL) (void)builder_fail(builder, STATUS_NO_MEMORY, "", "no memory for a name");
    return text;
}

uint8_t builder_stream(struct builder *builder, struct program_stream stream)
{
    struct program *program = builder->program;
    if (builder->status != STATUS_OK || program->stream_count == PROGRAM_STREAMS_MAX)
        return PROGRAM_STREAMS_MAX;
    char text[STREAM_USE_BYTES];
    if (stream.name == NULL)
        stream.name = builder_format(builder, "%s", stream_use_text(stream.use, text));
    program->stream[program->stream_count] = stream;
    return (uint8_t)program->stream_count++;
}

void builder_template_begin(struct builder *builder, const char *name)
{
    builder->template_name = name;
    builder->op_count = builder->more_count = 0;
    memset(builder->stream_parts, 0, sizeof builder->stream_parts);
}

static enum status refuse_needs(struct builder *builder)
{
    return builder_fail(builder, STATUS_LIMIT, "/workload",
                        "an op waits for more others than a program can say");
}

uint16_t builder_template_end(struct builder *builder)
{
    struct program *program = builder->program;
    if (builder->status != STATUS_OK) return 0;
    if (builder->more_count > 0) {
        (void)refuse_needs(builder);
        return 0;
    }
    SIM_ASSERT(builder->op_count != 0);
    if (program->template_count == builder->room.templates) {
        (void)builder_fail(builder, STATUS_LIMIT, "/workload",
                           "the program has more than %u different passes",
                           builder->room.templates);
        return 0;
    }
    struct program_op *op = take(builder, builder->op_count, sizeof *op);
    if (op == NULL) return 0;
    memcpy(op, builder->op, builder->op_count * sizeof *op);
    struct program_template *template = &program->templates[program->template_count];
    *template = (struct program_template){
        .name = builder->template_name, .op = op, .op_count = builder->op_count};
    memcpy(template->stream_parts, builder->stream_parts, sizeof template->stream_parts);
    return (uint16_t)program->template_count++;
}

uint32_t builder_work_add(struct builder *builder, const struct work *work, uint32_t parts,
                          const char *where)
{
    struct program *program = builder->program;
    if (builder->status != STATUS_OK) return BUILDER_NONE;
    if (program->work_count == builder->room.works) {
        (void)builder_fail(builder, STATUS_LIMIT, where,
                           "the program has more than %u different ops", builder->room.works);
        return BUILDER_NONE;
    }
    program->works[program->work_count] = *work;
    builder->work_parts[program->work_count] = parts;
    return program->work_count++;
}

uint32_t builder_work(struct builder *builder, const struct work *work, uint32_t parts,
                      const char *where)
{
    const struct program *program = builder->program;
    if (builder->status != STATUS_OK) return BUILDER_NONE;
    for (uint32_t w = 0; w < program->work_count; w++)
        if (builder->work_parts[w] == parts && memcmp(&program->works[w], work, sizeof *work) == 0)
            return w;
    return builder_work_add(builder, work, parts, where);
}

uint32_t builder_plan_add(struct builder *builder, const struct plan_request *of, bool on_links,
                          const char *where)
{
    struct program *program = builder->program;
    struct plan_request request = *of;
    if (builder->status != STATUS_OK || request.group.dimension_count == 0) return BUILDER_NONE;
    if (program->plan_count == builder->room.plans) {
        (void)builder_fail(builder, STATUS_LIMIT, where,
                           "the program has more than %u different collectives",
                           builder->room.plans);
        return BUILDER_NONE;
    }
    for (uint32_t d = 0; d < request.group.dimension_count; d++)
        on_links = on_links || request.group.dimension[d].switched;
    if (on_links) plan_request_links(builder->machine, &request);
    builder->status = plan_build(builder->arena, &request, where,
                                 &program->plans[program->plan_count], builder->error);
    if (builder->status != STATUS_OK) return BUILDER_NONE;
    request.cancel = NULL; /* Which is gone when others read what was asked for. */
    builder->requests[program->plan_count] = request;
    return program->plan_count++;
}

uint32_t builder_plan(struct builder *builder, const struct plan_request *request, bool on_links,
                      const char *where)
{
    if (builder->status != STATUS_OK) return BUILDER_NONE;
    for (uint32_t p = 0; p < builder->program->plan_count; p++)
        if (plan_request_equal(&builder->requests[p], request)) return p;
    return builder_plan_add(builder, request, on_links, where);
}

uint32_t builder_copy(struct builder *builder, bool to_host, uint64_t size_bytes)
{
    struct program *program = builder->program;
    if (builder->status != STATUS_OK) return BUILDER_NONE;
    SIM_ASSERT(program->copy_count < builder->room.copies);
    program->copies[program->copy_count] =
        (struct program_copy){.to_host = to_host, .size_bytes = size_bytes};
    return program->copy_count++;
}

uint32_t builder_op(struct builder *builder, struct program_op op)
{
    if (builder->status != STATUS_OK) return BUILDER_NONE;
    SIM_ASSERT(builder->op_count < builder->room.ops && op.stream < PROGRAM_STREAMS_MAX);
    if (op.class_name == NULL) op.class_name = op.name;
    op.part_first = builder->stream_parts[op.stream];
    op.operand_op = PROGRAM_NONE;
    builder->stream_parts[op.stream] += op.parts;
    builder->op[builder->op_count] = op;
    return builder->op_count++;
}

enum status builder_need_keep(struct builder *builder, struct program_op *op,
                              const struct program_need *need)
{
    if (op->need_count == PROGRAM_NEEDS_MAX) return refuse_needs(builder);
    op->need[op->need_count++] = *need;
    return STATUS_OK;
}

void builder_need(struct builder *builder, uint32_t op, struct program_need need)
{
    if (builder->status != STATUS_OK || op == BUILDER_NONE) return;
    struct program_op *of = &builder->op[op];
    if (of->need_count < PROGRAM_NEEDS_MAX)
        of->need[of->need_count++] = need;
    else if (builder->more_count < BUILDER_MORE_MAX)
        builder->more[builder->more_count++] = (struct builder_more){op, need};
    else
        (void)refuse_needs(builder);
}

struct program_need builder_end_of(const struct builder *builder, uint32_t op)
{
    const struct program_op *of = &builder->op[op];
    return (struct program_need){.stream = of->stream, .part = of->part_first + of->parts};
}

void builder_effect(struct builder *builder, uint32_t op, struct program_effect effect)
{
    if (builder->status != STATUS_OK || op == BUILDER_NONE || effect.bytes == 0) return;
    struct program_op *of = &builder->op[op];
    for (uint32_t e = 0; e < of->effect_count; e++) {
        struct program_effect *same = &of->effect[e];
        if (same->memory != effect.memory || same->at_end != effect.at_end) continue;
        same->bytes += effect.bytes;
        return;
    }
    SIM_ASSERT(of->effect_count < PROGRAM_EFFECTS_MAX);
    of->effect[of->effect_count++] = effect;
}

struct program_role *builder_roles(struct builder *builder, uint32_t count, uint64_t blocks)
{
    struct program *program = builder->program;
    program->roles = take(builder, count, sizeof *program->roles);
    for (uint32_t r = 0; blocks > 0 && r < count && builder->status == STATUS_OK; r++)
        program->roles[r].block = take(builder, blocks, sizeof *program->roles[r].block);
    program->role_count = builder->status == STATUS_OK ? count : 0;
    return builder->status == STATUS_OK ? program->roles : NULL;
}

void builder_block(struct program_role *role, struct program_block block)
{
    role->block[role->block_count++] = block;
}
