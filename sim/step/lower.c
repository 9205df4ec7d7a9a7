#include "sim/step/lower.h"

#include <string.h>

#include "sim/base/arena.h"
#include "sim/collective/algorithm.h"
#include "sim/collective/hosts.h"

const char lower_stream_activation[] = "x", lower_stream_gradient[] = "dx",
           lower_weight_gradient[] = "dW";

/* The last pass has all that passes have: a head, too. */
static enum status shapes_build(struct lower *lower, struct arena *arena, const struct ranks *last,
                                struct error *reterr)
{
    uint32_t const passes = last->pass.index + 1;
    void *memory = NULL;
    lower->shape_count = passes;
    STATUS_TRY(arena_try(arena, passes, sizeof *lower->shapes, &memory, reterr));
    lower->shapes = memory;
    lower->shape = &lower->shapes[last->pass.index];
    lower->ranks = lower->shape->ranks = last;
    STATUS_TRY(arena_try(arena, passes, sizeof *last, &memory, reterr));
    struct ranks *others = memory;
    for (uint32_t p = 0; p < last->pass.index; p++) {
        others[p] = *last;
        lower->shapes[p].ranks = &others[p];
        if (ranks_serves(last) && inference_pass_is_empty(last->plan, p)) continue; /* Unplayed. */
        STATUS_TRY(ranks_pass_set(&others[p], p, reterr));
    }
    return STATUS_OK;
}

enum status lower_begin(struct arena *arena, const struct ranks *ranks, struct program *program,
                        struct lower **ret_lower, struct error *reterr)
{
    void *memory = NULL;
    STATUS_TRY(arena_try(arena, 1, sizeof(struct lower), &memory, reterr));
    struct lower *lower = *ret_lower = memory;
    STATUS_TRY(shapes_build(lower, arena, ranks, reterr));
    builder_begin(&lower->build, arena, ranks->machine, builder_room_most, program, reterr);
    lower_streams_add(lower);
    return lower->build.status;
}

void lower_pass_begin(struct lower *lower, const struct lower_part *part)
{
    lower->part = *part;
    lower->shape = &lower->shapes[part->pass];
    lower->ranks = lower->shape->ranks;
    lower->kind = lower_kind_of(lower->ranks, part->module);
    lower->layer = &lower->ranks->layer[lower->kind];
    lower->pass_first = lower->build.op_count;
    lower->output = LOWER_NONE;
    lower->received = LOWER_NONE;
    for (uint32_t s = 0; s < PROGRAM_STREAMS_MAX; s++) lower->kept_reader[s] = LOWER_NONE;
    for (uint32_t p = 0; p < MATRICES_MAX; p++) lower->weights[p] = LOWER_NONE;
    for (uint32_t p = 0; p < MATRICES_MAX; p++) lower->parts_sum[p] = LOWER_NONE;
    lower->weights_needed = 0;
    lower->gradients = 0;
    lower->buckets_reduced = 0;
}

void lower_template_begin(struct lower *lower, const char *name, const struct lower_part *part)
{
    builder_template_begin(&lower->build, name);
    lower_pass_begin(lower, part);
}

uint16_t lower_template_end(struct lower *lower)
{
    lower_overlap_template(lower);
    lower_async(lower);
    builder_needs_reduce(&lower->build);
    return builder_template_end(&lower->build);
}

uint32_t lower_op_add(struct lower *lower, struct program_op op)
{
    if (lower->build.status != STATUS_OK) return LOWER_NONE;
    uint32_t const index = builder_op(&lower->build, op);
    if (index < PROGRAM_OPS_MAX) lower->issued[index] = LOWER_NONE;
    return index;
}

void lower_purpose_set(struct lower *lower, uint32_t op, enum program_purpose purpose)
{
    if (op != LOWER_NONE && lower->build.status == STATUS_OK) lower->build.op[op].purpose = purpose;
}

uint32_t lower_compute(struct lower *lower, const char *name, const struct work *work,
                       uint32_t parts)
{
    if (lower->build.status != STATUS_OK) return LOWER_NONE;
    SIM_ASSERT(parts >= 1);
    uint32_t const index = builder_work(&lower->build, work, parts, "/workload/schedule");
    return lower_op_add(lower, (struct program_op){.name = name,
                                                   .kind = PROGRAM_OP_COMPUTE,
                                                   .stream = PROGRAM_COMPUTE,
                                                   .parts = parts,
                                                   .index = (uint16_t)index});
}

/* Whether NCCL chooses by its own estimates: it has no AllToAll, which goes by messages, and
 * between nodes the levels of a plan stand for its rings. */
static bool is_of_nccl_in_node(const struct lower *lower, const struct plan_request *request)
{
    const struct machine *machine = lower->ranks->machine;
    if (request->kind == COLLECTIVE_ALL_TO_ALL ||
        workload_protocols(lower->ranks->plan, &machine->chip) != WORKLOAD_PROTOCOLS_NCCL)
        return false;
    for (uint32_t d = 0; d < request->group.dimension_count; d++)
        if (machine->axis_level[request->group.dimension[d].axis] != 0) return false;
    return machine->chip.kind == CHIP_GPU;
}

/* "auto" of inference, where collectives are exposed, is what is fastest alone; so is NCCL's choice
 * in a node. A collective that computes go chunk by chunk with, tokens that are drawn and messages
 * go by shape. */
static void choose(struct lower *lower, struct plan_request *request, const char *where)
{
    const struct plan_chooser *chooser = &lower->ranks->plan->inference.chooser;
    bool const by_estimates = ranks_serves(lower->ranks) || is_of_nccl_in_node(lower, request);
    if (!by_estimates || chooser->choose == NULL || request->chunk_count != 0 ||
        request->ragged.expert_count != 0 || request->kind == COLLECTIVE_PERMUTE ||
        request->group.dimension_count == 0 || !algorithm_is_chosen(&request->algorithm))
        return;
    lower->build.status = chooser->choose(chooser->owner, request, where, lower->build.error);
}

/* NCCL's protocols, with the least estimate. */
static void convey(struct lower *lower, struct plan_request *request, const char *where)
{
    const struct workload_plan *plan = lower->ranks->plan;
    const struct plan_chooser *chooser = &plan->inference.chooser;
    const struct chip *chip = &lower->ranks->machine->chip;
    if (lower->build.status != STATUS_OK || chooser->convey == NULL ||
        request->group.dimension_count == 0 ||
        workload_protocols(plan, chip) != WORKLOAD_PROTOCOLS_NCCL)
        return;
    lower->build.status = chooser->convey(chooser->owner, request, where, lower->build.error);
    if (workload_collective_cores(plan, chip) != WORKLOAD_COLLECTIVE_CORES_NCCL)
        request->protocol.cores = 0;
}

uint32_t lower_plan_request(struct lower *lower, const struct plan_request *of, uint64_t elements,
                            enum format format)
{
    struct plan_request request = *of;
    request.size_bytes = format_bytes(format, elements);
    return lower_plan_bytes(lower, &request, format);
}

uint32_t lower_plan_bytes(struct lower *lower, const struct plan_request *of, enum format format)
{
    struct plan_request request = *of;
    const char *place = "/run/algorithm";
    if (lower->build.status != STATUS_OK) return LOWER_NONE;
    request.element_bits = format_bits(format);
    request.cancel = lower->ranks->plan->cancel;
    choose(lower, &request, place);
    convey(lower, &request, place);
    hosts_begin(lower->ranks->machine, &request);
    if (lower->build.status != STATUS_OK) return LOWER_NONE;
    uint32_t const plan =
        builder_plan(&lower->build, &request, /* on_links= */ ranks_serves(lower->ranks), place);
    bool const is_refused =
        lower->build.status == STATUS_UNSUPPORTED || lower->build.status == STATUS_NOT_FOUND;
    if (is_refused && strcmp(lower->build.error->where, place) == 0) lower->refused = request;
    return plan;
}

uint32_t lower_plan(struct lower *lower, enum collective_kind kind, const struct group *group,
                    uint64_t elements, enum format format)
{
    struct plan_request const request = {
        .kind = kind,
        .algorithm = lower->ranks->plan->algorithm,
        .group = *group,
    };
    return lower_plan_request(lower, &request, elements, format);
}

uint32_t lower_plan_chunks(const struct lower *lower, uint32_t plan)
{
    if (plan == LOWER_NONE || lower->build.program->plans[plan].chunk_count == 0) return 1;
    return lower->build.program->plans[plan].chunk_count;
}

uint32_t lower_collective(struct lower *lower, enum lower_stream stream, const char *what,
                          const char *group_name, uint32_t plan)
{
    if (lower->build.status != STATUS_OK || plan == LOWER_NONE) return LOWER_NONE;
    SIM_ASSERT(lower->stream[stream] < PROGRAM_STREAMS_MAX);
    const struct plan *of = &lower->build.program->plans[plan];
    const char *kind = collective_kind_name(of->kind);
    const char *name = builder_format(&lower->build, "%s %s", kind, what);
    if (lower->build.status != STATUS_OK) return LOWER_NONE;
    return lower_op_add(lower, (struct program_op){
                                   .name = name,
                                   .class_name = builder_format(&lower->build, "%s %s (%s)", kind,
                                                                what, group_name),
                                   .array = name + strlen(kind) + 1,
                                   .kind = PROGRAM_OP_COLLECTIVE,
                                   .stream = lower->stream[stream],
                                   .parts = of->part_count,
                                   .index = (uint16_t)plan,
                               });
}

const char *lower_moved(const struct lower *lower, uint32_t op)
{
    if (lower->build.status != STATUS_OK || op == LOWER_NONE) return NULL;
    SIM_ASSERT(lower->build.op[op].kind == PROGRAM_OP_COLLECTIVE);
    return lower->build.op[op].array;
}

static void need_target(struct lower *lower, uint32_t op, struct program_need need,
                        const char *array)
{
    need.reason = array != NULL ? PROGRAM_REASON_DATA : PROGRAM_REASON_ORDER;
    need.array = array;
    builder_need(&lower->build, op, need);
}

void lower_operand(struct lower *lower, uint32_t op, uint32_t operand, const char *array)
{
    if (lower->build.status != STATUS_OK || op == LOWER_NONE) return;
    struct program_op *collective = &lower->build.op[op];
    if (lower->build.program->plans[collective->index].chunk_count == 0) {
        lower_need_done(lower, op, operand, array);
        return;
    }
    collective->operand_op = (uint16_t)operand;
    /* It begins with its operand, not before. */
    need_target(lower, op,
                (struct program_need){.stream = PROGRAM_COMPUTE,
                                      .begun = true,
                                      .part = lower->build.op[operand].part_first + 1},
                array);
}

void lower_need_done(struct lower *lower, uint32_t op, uint32_t target, const char *array)
{
    if (lower->build.status != STATUS_OK || op == LOWER_NONE || target == LOWER_NONE) return;
    const struct program_op *on = &lower->build.op[target];
    if (on->stream == lower->build.op[op].stream) return; /* A stream is in order. */
    need_target(lower, op, builder_end_of(&lower->build, target), array);
}

void lower_need_chunks(struct lower *lower, uint32_t op, uint32_t gather, const char *array)
{
    if (lower->build.status != STATUS_OK || op == LOWER_NONE || gather == LOWER_NONE) return;
    const struct program_op *on = &lower->build.op[gather];
    const struct plan *plan = &lower->build.program->plans[on->index];
    if (lower->build.op[op].parts == 1) {
        lower_need_done(lower, op, gather, array);
        return;
    }
    SIM_ASSERT(lower->build.op[op].parts == plan->chunk_count);
    SIM_ASSERT(plan->chunk_count * plan->chunk_parts == plan->part_count);
    need_target(lower, op,
                (struct program_need){.stream = on->stream,
                                      .part = on->part_first + plan->chunk_parts,
                                      .per_part = plan->chunk_parts},
                array);
}

void lower_need_before(struct lower *lower, uint32_t op, enum lower_stream stream,
                       const char *array)
{
    if (lower->build.status != STATUS_OK || op == LOWER_NONE) return;
    uint8_t const index = lower->stream[stream];
    if (index == PROGRAM_STREAMS_MAX || index == lower->build.op[op].stream) return;
    need_target(lower, op, (struct program_need){.stream = index}, array);
}

void lower_need_output(struct lower *lower, uint32_t op, bool gradient, const char *array)
{
    if (lower->build.status != STATUS_OK || op == LOWER_NONE) return;
    if (lower->output != LOWER_NONE) {
        lower_need_done(lower, op, lower->output, array);
        return;
    }
    if (lower->received != LOWER_NONE) {
        lower_need_done(lower, op, lower->received, array);
        return;
    }
    /* A gradient comes out of a norm where there is one. */
    bool const summed = ranks_is_decoder(lower->ranks) && gradient;
    lower_need_before(lower, op, LOWER_COMPUTE, array);
    if (!summed) lower_need_before(lower, op, LOWER_REDUCE_TP, array);
    /* What a stage without layers has got and not sent on. */
    lower_need_before(lower, op, LOWER_RECEIVE_PREVIOUS, array);
    lower_need_before(lower, op, LOWER_RECEIVE_NEXT, array);
}

void lower_take(struct lower *lower, uint32_t op, enum program_memory memory, uint64_t bytes)
{
    builder_effect(&lower->build, op, (struct program_effect){memory, false, (int64_t)bytes});
}

void lower_give(struct lower *lower, uint32_t op, enum program_memory memory, uint64_t bytes)
{
    builder_effect(&lower->build, op, (struct program_effect){memory, true, -(int64_t)bytes});
}

uint64_t lower_activation_bytes(const struct lower *lower, uint64_t elements)
{
    return format_bytes(lower->ranks->plan->formats.activations, elements);
}

uint64_t lower_weight_bytes(const struct lower *lower, uint64_t elements)
{
    return format_stored_bytes(lower->ranks->plan->formats.weights, elements);
}

uint64_t lower_gradient_bytes(const struct lower *lower, uint64_t elements)
{
    return format_bytes(lower->ranks->plan->formats.gradients, elements);
}
