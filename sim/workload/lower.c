#include "sim/workload/lower.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/workload/reads.h"

void lower_begin(struct lower *lower, struct arena *arena, const struct local *local,
                 struct program *program, struct error *reterr)
{
    *lower = (struct lower){.arena = arena, .local = local, .program = program, .error = reterr};
    *program = (struct program){0};
    program->works = arena_take(arena, LOWER_WORKS_MAX, sizeof *program->works);
    program->plans = arena_take(arena, LOWER_PLANS_MAX, sizeof *program->plans);
    program->templates = arena_take(arena, LOWER_TEMPLATES_MAX, sizeof *program->templates);
    program->copies = arena_take(arena, LOWER_COPIES_MAX, sizeof *program->copies);
    if (program->works == NULL || program->plans == NULL || program->templates == NULL ||
        program->copies == NULL) {
        lower->status = error_set(reterr, STATUS_NO_MEMORY, "", "no memory for the program");
        return;
    }
    program->requests = lower->requests;
    lower->layer = &local->layer[local_last_kind(local)];
    lower_streams_add(lower);
}

const char *lower_format(struct lower *lower, const char *format, ...)
{
    char buffer[128];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(buffer, sizeof buffer, format, arguments);
    va_end(arguments);
    char *text = arena_text(lower->arena, buffer);
    if (text == NULL && lower->status == STATUS_OK) {
        lower->status = error_set(lower->error, STATUS_NO_MEMORY, "", "no memory for a name");
    }
    return text;
}

void lower_pass_begin(struct lower *lower)
{
    lower->output = LOWER_NONE;
    lower->received = LOWER_NONE;
    lower->half = LOWER_WHOLE;
    lower->windowed = false;
    lower->repeating = false;
    lower->last_microbatch = true;
    lower->last_lookup = true;
    lower->keeping = LOWER_GATHERS;
    lower->head_stays = false;
    lower->updated = false;
    lower->gathers_since = false;
    for (uint32_t p = 0; p < LOCAL_PLACE_COUNT; p++) lower->weights[p] = LOWER_NONE;
    lower->weights_needed = 0;
    lower->gradients = 0;
    lower->units_reduced = 0;
    lower->kv_sum = LOWER_NONE;
}

void lower_template_begin(struct lower *lower, const char *name)
{
    lower->template_name = name;
    lower->op_count = 0;
    memset(lower->stream_parts, 0, sizeof lower->stream_parts);
    lower_pass_begin(lower);
}

uint16_t lower_template_end(struct lower *lower)
{
    struct program *program = lower->program;
    if (lower->status != STATUS_OK) return 0;
    SIM_ASSERT(program->template_count < LOWER_TEMPLATES_MAX && lower->op_count != 0);
    struct program_op *op = arena_take(lower->arena, lower->op_count, sizeof *op);
    if (op == NULL) {
        lower->status = error_set(lower->error, STATUS_NO_MEMORY, "", "no memory for the ops");
        return 0;
    }
    memcpy(op, lower->op, lower->op_count * sizeof *op);
    struct program_template *template = &program->templates[program->template_count];
    *template = (struct program_template){lower->template_name, op, lower->op_count, {0}};
    memcpy(template->stream_parts, lower->stream_parts, sizeof template->stream_parts);
    return (uint16_t)program->template_count++;
}

uint32_t lower_op_add(struct lower *lower, struct program_op op)
{
    SIM_ASSERT(lower->op_count < LOWER_OPS_MAX);
    if (lower->status != STATUS_OK) return LOWER_NONE;
    const struct reads *row = reads_find(op.name);
    SIM_ASSERT(row != NULL);
    op.reads = row->reads;
    op.writes = row->writes;
    op.part_first = lower->stream_parts[op.stream];
    op.operand_op = PROGRAM_NONE;
    lower->stream_parts[op.stream] += op.parts;
    lower->op[lower->op_count] = op;
    return lower->op_count++;
}

/* Templates of a pipeline differ in what is around their ops: equal works in equal parts are there
 * once. */
static uint16_t work_index(struct lower *lower, const struct work *work, uint32_t parts)
{
    struct program *program = lower->program;
    for (uint32_t w = 0; w < program->work_count; w++)
        if (lower->work_parts[w] == parts && memcmp(&program->works[w], work, sizeof *work) == 0)
            return (uint16_t)w;
    if (program->work_count == LOWER_WORKS_MAX) {
        if (lower->status == STATUS_OK)
            lower->status =
                error_set(lower->error, STATUS_LIMIT, "/workload/schedule",
                          "its stages differ in more ways than the step has room for: more "
                          "than %d different ops",
                          LOWER_WORKS_MAX);
        return 0;
    }
    program->works[program->work_count] = *work;
    lower->work_parts[program->work_count] = parts;
    return (uint16_t)program->work_count++;
}

uint32_t lower_compute(struct lower *lower, const char *name, const struct work *work,
                       uint32_t parts)
{
    if (lower->status != STATUS_OK || lower_is_dead(lower, name)) return LOWER_NONE;
    SIM_ASSERT(parts >= 1);
    return lower_op_add(lower, (struct program_op){.name = name,
                                                   .class_name = name,
                                                   .kind = PROGRAM_OP_COMPUTE,
                                                   .stream = PROGRAM_COMPUTE,
                                                   .parts = parts,
                                                   .index = work_index(lower, work, parts)});
}

static bool groups_equal(const struct group *a, const struct group *b)
{
    if (a->dimension_count != b->dimension_count) return false;
    for (uint32_t d = 0; d < a->dimension_count; d++) {
        const struct group_dimension *one = &a->dimension[d];
        const struct group_dimension *other = &b->dimension[d];
        if (one->axis != other->axis || one->size != other->size || one->stride != other->stride) {
            return false;
        }
    }
    return true;
}

static bool requests_equal(const struct plan_request *a, const struct plan_request *b)
{
    return a->spreads == b->spreads && a->ragged.expert_count == b->ragged.expert_count &&
           memcmp(a->exchange_bytes, b->exchange_bytes, sizeof a->exchange_bytes) == 0 &&
           a->kind == b->kind && a->size_bytes == b->size_bytes &&
           a->element_bits == b->element_bits && groups_equal(&a->group, &b->group) &&
           a->chunk_count == b->chunk_count && a->mirrors == b->mirrors && a->shift == b->shift &&
           memcmp(a->offset, b->offset, sizeof a->offset) == 0 &&
           (a->algorithm == b->algorithm || (a->algorithm != NULL && b->algorithm != NULL &&
                                             strcmp(a->algorithm, b->algorithm) == 0));
}

/* What can run here may be refused by the next collective of the step: say which is meant. */
static void name_the_refused(const struct plan_request *request, struct error *error)
{
    struct error const why = *error;
    (void)error_set(error, why.status, why.where,
                    "%s over %u ranks: %.800s; the name is for every collective of the step, and "
                    "\"auto\" finds one for each",
                    collective_kind_name(request->kind),
                    (unsigned)group_rank_count(&request->group), why.message);
}

uint32_t lower_plan_request(struct lower *lower, const struct plan_request *of, uint64_t elements,
                            enum format format)
{
    struct program *program = lower->program;
    struct plan_request request = *of;
    request.size_bytes = format_bytes(format, elements);
    request.element_bits = format_bits(format);
    request.watch = lower->local->plan->watch;
    if (lower->status != STATUS_OK || request.group.dimension_count == 0) return LOWER_NONE;
    for (uint32_t p = 0; p < program->plan_count; p++)
        if (requests_equal(&lower->requests[p], &request)) return p;
    SIM_ASSERT(program->plan_count < LOWER_PLANS_MAX);
    for (uint32_t d = 0; d < request.group.dimension_count; d++)
        if (request.group.dimension[d].switched)
            plan_request_links(lower->local->machine, &request);
    lower->status = plan_build(lower->arena, &request, "/run/algorithm",
                               &program->plans[program->plan_count], lower->error);
    if (lower->status == STATUS_UNSUPPORTED) name_the_refused(&request, lower->error);
    if (lower->status != STATUS_OK) return LOWER_NONE;
    request.watch = NULL; /* Which is gone when others read what was asked for. */
    lower->requests[program->plan_count] = request;
    return program->plan_count++;
}

uint32_t lower_plan(struct lower *lower, enum collective_kind kind, const struct group *group,
                    uint64_t elements, enum format format, bool chunked)
{
    struct plan_request const request = {
        .kind = kind,
        .algorithm = lower->local->plan->algorithm,
        .group = *group,
        .chunk_count = chunked ? (uint32_t)group_rank_count(group) : 0,
    };
    return lower_plan_request(lower, &request, elements, format);
}

uint32_t lower_plan_chunks(const struct lower *lower, uint32_t plan)
{
    if (plan == LOWER_NONE || lower->program->plans[plan].chunk_count == 0) return 1;
    return lower->program->plans[plan].chunk_count;
}

uint32_t lower_collective(struct lower *lower, enum lower_stream stream, const char *what,
                          const char *group_name, uint32_t plan)
{
    if (lower->status != STATUS_OK || plan == LOWER_NONE) return LOWER_NONE;
    SIM_ASSERT(lower->stream[stream] < PROGRAM_STREAMS_MAX);
    const struct plan *of = &lower->program->plans[plan];
    const char *kind = collective_kind_name(of->kind);
    const char *name = lower_format(lower, "%s %s", kind, what);
    if (lower->status != STATUS_OK || lower_is_dead(lower, name)) return LOWER_NONE;
    return lower_op_add(lower,
                        (struct program_op){
                            .name = name,
                            .class_name = lower_format(lower, "%s %s (%s)", kind, what, group_name),
                            .kind = PROGRAM_OP_COLLECTIVE,
                            .stream = lower->stream[stream],
                            .parts = of->part_count,
                            .index = (uint16_t)plan,
                        });
}

/* "W_mlp" of "AllGather W_mlp", "dW_mlp" of "ReduceScatter dW_mlp": gradients are of the unit that
 * is reduced, weights of the one that is gathered. */
static const char *unit_of(const struct program_op *op, const char *array)
{
    const char *space = strchr(op->name, ' ');
    bool const names = op->kind == PROGRAM_OP_COLLECTIVE && space != NULL &&
                       strncmp(space + 1, array, strlen(array)) == 0;
    return names ? space + 1 : NULL;
}

/* Data where the op reads what its target writes, and an order where it does not. */
static void need_target(struct lower *lower, uint32_t op, uint32_t target, struct program_need need)
{
    const struct program_op *on = &lower->op[target];
    char array[READS_ARRAY_BYTES];
    need.reason = PROGRAM_REASON_ORDER;
    if (reads_meet(lower->op[op].reads, on->writes, array)) {
        const char *unit = unit_of(on, array);
        if (unit == NULL) unit = unit_of(&lower->op[op], array);
        need.reason = PROGRAM_REASON_DATA;
        need.array = unit != NULL ? unit : lower_format(lower, "%s", array);
    }
    lower_need(lower, op, need);
}

void lower_operand(struct lower *lower, uint32_t op, uint32_t operand)
{
    if (lower->status != STATUS_OK || op == LOWER_NONE) return;
    struct program_op *collective = &lower->op[op];
    if (lower->program->plans[collective->index].chunk_count == 0) {
        lower_need_done(lower, op, operand);
        return;
    }
    collective->operand_op = (uint16_t)operand;
    /* It begins with its operand, not before. */
    need_target(lower, op, operand,
                (struct program_need){.stream = PROGRAM_COMPUTE,
                                      .begun = true,
                                      .part = lower->op[operand].part_first + 1});
}

void lower_need(struct lower *lower, uint32_t op, struct program_need need)
{
    if (lower->status != STATUS_OK || op == LOWER_NONE) return;
    struct program_op *of = &lower->op[op];
    SIM_ASSERT(of->need_count < PROGRAM_NEEDS_MAX);
    of->need[of->need_count++] = need;
}

void lower_need_done(struct lower *lower, uint32_t op, uint32_t target)
{
    if (lower->status != STATUS_OK || op == LOWER_NONE || target == LOWER_NONE) return;
    const struct program_op *on = &lower->op[target];
    if (on->stream == lower->op[op].stream) return; /* A stream is in order. */
    need_target(lower, op, target,
                (struct program_need){.stream = on->stream, .part = on->part_first + on->parts});
}

void lower_need_chunks(struct lower *lower, uint32_t op, uint32_t gather)
{
    if (lower->status != STATUS_OK || op == LOWER_NONE || gather == LOWER_NONE) return;
    const struct program_op *on = &lower->op[gather];
    const struct plan *plan = &lower->program->plans[on->index];
    if (lower->op[op].parts == 1) {
        lower_need_done(lower, op, gather);
        return;
    }
    SIM_ASSERT(lower->op[op].parts == plan->chunk_count);
    SIM_ASSERT(plan->chunk_count * plan->chunk_parts == plan->part_count);
    need_target(lower, op, gather,
                (struct program_need){.stream = on->stream,
                                      .part = on->part_first + plan->chunk_parts,
                                      .per_part = plan->chunk_parts});
}

void lower_need_before(struct lower *lower, uint32_t op, enum lower_stream stream,
                       enum program_reason reason)
{
    if (lower->status != STATUS_OK || op == LOWER_NONE) return;
    uint8_t const index = lower->stream[stream];
    if (index == PROGRAM_STREAMS_MAX || index == lower->op[op].stream) return;
    /* What goes from slot to slot. */
    static const char *const arrays[] = {"x", "dx", "dW", "mtp.dRows"};
    struct program_need need = {.stream = index, .reason = reason};
    for (uint32_t i = 0; i < sizeof arrays / sizeof *arrays && reason == PROGRAM_REASON_DATA; i++)
        if (need.array == NULL && reads_have(lower->op[op].reads, arrays[i]))
            need.array = arrays[i];
    if (reason == PROGRAM_REASON_DATA && need.array == NULL) need.reason = PROGRAM_REASON_ORDER;
    lower_need(lower, op, need);
}

void lower_need_output(struct lower *lower, uint32_t op)
{
    if (lower->status != STATUS_OK || op == LOWER_NONE) return;
    if (lower->output != LOWER_NONE) {
        lower_need_done(lower, op, lower->output);
        return;
    }
    if (lower->received != LOWER_NONE) {
        lower_need_done(lower, op, lower->received);
        return;
    }
    enum program_reason const reason =
        lower->repeating ? PROGRAM_REASON_ORDER : PROGRAM_REASON_DATA;
    /* A gradient comes out of a norm where there is one. */
    bool const summed =
        local_is_llama(lower->local) && (lower->repeating || !reads_have(lower->op[op].reads, "x"));
    lower_need_before(lower, op, LOWER_COMPUTE, reason);
    if (!summed) lower_need_before(lower, op, LOWER_REDUCE_TP, reason);
    /* What a stage without layers has got and not sent on. */
    lower_need_before(lower, op, LOWER_RECEIVE_PREVIOUS, reason);
    lower_need_before(lower, op, LOWER_RECEIVE_NEXT, reason);
}

static void effect_add(struct lower *lower, uint32_t op, struct program_effect effect)
{
    if (lower->status != STATUS_OK || op == LOWER_NONE || effect.bytes == 0) return;
    struct program_op *of = &lower->op[op];
    for (uint32_t e = 0; e < of->effect_count; e++) {
        struct program_effect *same = &of->effect[e];
        if (same->memory != effect.memory || same->at_end != effect.at_end) continue;
        same->bytes += effect.bytes;
        return;
    }
    SIM_ASSERT(of->effect_count < PROGRAM_EFFECTS_MAX);
    of->effect[of->effect_count++] = effect;
}

void lower_take(struct lower *lower, uint32_t op, enum program_memory memory, uint64_t bytes)
{
    effect_add(lower, op, (struct program_effect){memory, false, (int64_t)bytes});
}

void lower_give(struct lower *lower, uint32_t op, enum program_memory memory, uint64_t bytes)
{
    effect_add(lower, op, (struct program_effect){memory, true, -(int64_t)bytes});
}

uint64_t lower_activation_bytes(const struct lower *lower, uint64_t elements)
{
    return format_bytes(lower->local->plan->formats.activations, elements);
}

uint64_t lower_matmul_bytes(const struct lower *lower, uint64_t elements)
{
    return format_bytes(lower->local->plan->formats.matmuls, elements);
}

uint64_t lower_dispatch_bytes(const struct lower *lower, uint64_t elements)
{
    return format_bytes(lower->local->plan->formats.dispatch, elements);
}

uint64_t lower_weight_bytes(const struct lower *lower, uint64_t elements)
{
    return format_bytes(lower->local->plan->formats.weights, elements);
}

uint64_t lower_gradient_bytes(const struct lower *lower, uint64_t elements)
{
    return format_bytes(lower->local->plan->formats.gradients, elements);
}
