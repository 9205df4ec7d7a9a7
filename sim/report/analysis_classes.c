/* What the ops of each class did together; a row of an analysis. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/units.h"
#include "sim/collective/ragged.h"
#include "sim/kernels/kernel_of_work.h"
#include "sim/report/analysis_parts.h"
#include "sim/resource/compute.h"
#include "sim/roofline/gather_form.h"
#include "sim/roofline/level_rate.h"

/* busbw of nccl-tests over array bytes a second. */
static double bus_factor(enum collective_kind kind, uint64_t ranks)
{
    struct collective_factor const factor = collective_bus_factor(kind, ranks);
    return (double)factor.numerator / (double)factor.denominator /
           (double)collective_sizes(kind, ranks);
}

static const char *machine_axes(struct arena *arena, const struct group *group, uint32_t *ret_bits)
{
    char text[32] = "";
    uint32_t bits = 0;
    for (uint32_t i = 0; i < group->dimension_count; i++) {
        size_t const used = strlen(text);
        uint32_t const axis = group->dimension[i].axis;
        (void)snprintf(text + used, sizeof text - used, "%s%s", used == 0 ? "" : " ",
                       group->dimension[i].name);
        bits |= 1u << axis;
    }
    *ret_bits = bits;
    return arena_text(arena, text);
}

/* What a stream is for: "fsdp" of "gather fsdp"; "" where the program does not say. */
static void stream_set(const struct report_input *input, struct arena *arena, uint32_t stream,
                       struct analysis_class *row)
{
    const struct program_stream *of = &input->program->stream[stream];
    char text[STREAM_USE_BYTES];
    row->of = of->use.of;
    row->verb = of->use.verb;
    row->axis = arena_text(arena, stream_of_text(row->of, text));
}

/* V of an array; of a ragged exchange, that of the dense one which moves as much. */
static double array_bytes(const struct plan *plan)
{
    double const ranks = (double)group_rank_count(&plan->group);
    if (plan->ragged_units == NULL) return (double)plan->size_bytes;
    return (double)ragged_load(plan).sent_bytes * ranks / (ranks - 1);
}

double analysis_moved_bytes(const struct plan *plan)
{
    return array_bytes(plan) * bus_factor(plan->kind, group_rank_count(&plan->group));
}

static void add_collective(const struct report_input *input, struct arena *arena,
                           const struct program_op *op, uint64_t slots, struct analysis_class *row)
{
    const struct plan *plan = &input->program->plans[op->index];
    row->bytes += array_bytes(plan) * (double)slots;
    if (row->kind != NULL) return;
    row->collective = true;
    row->kind = collective_kind_name(plan->kind);
    row->runs = plan->kind;
    row->of_rank = plan->kind == COLLECTIVE_PERMUTE;
    stream_set(input, arena, op->stream, row);
    row->algorithm = plan->algorithm_name;
    row->by = &plan->algorithm;
    for (uint32_t i = 0; i < plan->item_count; i++)
        if (plan->item[i].primitive->network != PRIMITIVE_NETWORK_NONE) row->in_switches = true;
    row->machine_axes = machine_axes(arena, &plan->group, &row->axis_bits);
    row->rank_count = group_rank_count(&plan->group);
    row->hop_s = gather_form_plan_hop_s(input->machine, plan);
    row->busbw_bytes_per_s = bus_factor(plan->kind, row->rank_count);
}

/* Places along a dimension between who sends a message and who gets it. */
static int64_t send_members(const struct report_input *input, const struct plan *plan, uint32_t d)
{
    const struct group_dimension *dimension = &plan->group.dimension[d];
    int64_t members = plan->permute.offset[d];
    /* Over two levels most are neighbours in the inner one. */
    if (plan->permute.shift != 0)
        members = d == plan->flat_dimension[plan->group.dimension_count - 1];
    if (plan->permute.mirrors)
        members = (int64_t)dimension->size - 1 -
                  2 * (int64_t)analysis_role(input, input->trace->reported_chip);
    if (members < 0) members = -members;
    return plan->permute.mirrors && dimension->ring && 2 * members > dimension->size
               ? dimension->size - members
               : members;
}

/* How far one message goes, were nothing else on its way. */
static double send_hop_s(const struct report_input *input, const struct plan *plan)
{
    const struct chip *chip = &input->machine->chip;
    double total = units_seconds(chip->launch.message_ps);
    for (uint32_t i = 0; i < plan->group.dimension_count; i++) {
        const struct group_dimension *dimension = &plan->group.dimension[i];
        int64_t const members = send_members(input, plan, i);
        if (members == 0) continue;
        total += dimension->switched
                     ? units_seconds(level_latency_ps(input->machine, dimension))
                     : (double)members * dimension->stride * units_seconds(chip->hop_latency_ps);
    }
    return total;
}

static void add_send(const struct report_input *input, struct arena *arena,
                     const struct program_op *op, uint64_t slots, struct analysis_class *row)
{
    const struct plan *plan = &input->program->plans[op->index];
    row->bytes += (double)plan->size_bytes * (double)slots;
    if (row->kind != NULL) return;
    row->collective = true;
    row->kind = "send";
    row->runs = COLLECTIVE_KIND_COUNT;
    stream_set(input, arena, op->stream, row);
    row->algorithm = plan->algorithm_name;
    row->by = &plan->algorithm;
    row->machine_axes = machine_axes(arena, &plan->group, &row->axis_bits);
    row->rank_count = 2;
    row->hop_s = send_hop_s(input, plan);
    row->busbw_bytes_per_s = 1; /* A factor still. */
}

static void add_copy(const struct report_input *input, struct arena *arena,
                     const struct program_op *op, uint64_t slots, struct analysis_class *row)
{
    const struct machine *machine = input->machine;
    const struct program_copy *copy = &input->program->copies[op->index];
    row->bytes += (double)copy->size_bytes * (double)slots;
    if (row->kind != NULL) return;
    row->collective = true;
    row->kind = copy->to_host ? "store" : "load";
    row->runs = COLLECTIVE_KIND_COUNT;
    stream_set(input, arena, op->stream, row);
    row->algorithm = "copy";
    row->machine_axes = machine->host.cable_name;
    row->axis_bits = ANALYSIS_HOST_BIT;
    row->rank_count = 1;
    row->hop_s = units_seconds(machine->host.latency_ps);
    row->busbw_bytes_per_s = 1; /* A factor still. */
}

const char *const analysis_resource_names[] = {"mxu", "vpu", "hbm", NULL};

/* What an op keeps its slowest resource busy for, beyond each other one. */
static void add_beyond(const double resource_s[ANALYSIS_RESOURCES], double times,
                       struct analysis_class *row)
{
    uint32_t slowest = 0;
    for (uint32_t resource = 1; resource < ANALYSIS_RESOURCES; resource++)
        if (resource_s[resource] > resource_s[slowest]) slowest = resource;
    for (uint32_t resource = 0; resource < ANALYSIS_RESOURCES; resource++)
        row->beyond_s[resource][slowest] += (resource_s[slowest] - resource_s[resource]) * times;
}

/* Whether the chip has measured kernels, and none of them is this work's. */
static bool is_untabled(const struct chip *chip, const struct work *work)
{
    const struct kernel_stack *stack = chip->kernels.stack;
    return stack != NULL && !kernel_is_between(stack, work) && !kernel_is_within(stack, work) &&
           kernel_of_work(stack, chip_cores_apart(chip), work).table == NULL;
}

/* By the times that a replay takes, so that padding, idle cores and measured kernels count. */
static void add_compute(const struct report_input *input, const struct program_op *op,
                        uint64_t slots, struct analysis *analysis)
{
    struct analysis_class *row = &analysis->classes[op->class_index];
    struct analysis_alone *alone = &analysis->alone[op->class_index];
    uint32_t math_ppm, hbm_ppm;
    machine_chip_ppm(input->machine, input->trace->reported_chip, &math_ppm, &hbm_ppm);
    const struct work *work = &input->program->works[op->index];
    struct compute_time const time = compute_time(&input->machine->chip, work, math_ppm, hbm_ppm);
    double const times = (double)slots;
    double const resource_s[ANALYSIS_RESOURCES] = {[ANALYSIS_MXU] = units_seconds(time.mxu_ps),
                                                   [ANALYSIS_VPU] = units_seconds(time.vpu_ps),
                                                   [ANALYSIS_HBM] = units_seconds(time.hbm_ps)};
    double const other_s = fmax(resource_s[ANALYSIS_MXU], resource_s[ANALYSIS_VPU]);
    alone->time_s += units_seconds(time.duration_ps) * times;
    if (is_untabled(&input->machine->chip, work))
        alone->untabled_s += units_seconds(time.duration_ps) * times;
    row->math_s += resource_s[ANALYSIS_MXU] * times;
    analysis->async_s += units_seconds(time.async_ps) * times;
    if (resource_s[ANALYSIS_HBM] > other_s)
        row->hbm_excess_s += (resource_s[ANALYSIS_HBM] - other_s) * times;
    add_beyond(resource_s, times, row);
}

enum status analysis_classes_build(struct arena *arena, const struct report_input *input,
                                   struct analysis *analysis, struct error *reterr)
{
    const struct program *program = input->program;
    const struct trace *trace = input->trace;
    SIM_ASSERT(trace->class_count == program->class_count);
    void *memory;
    STATUS_TRY(arena_try(arena, program->class_count, sizeof *analysis->classes, &memory, reterr));
    analysis->classes = memory;
    STATUS_TRY(arena_try(arena, program->class_count, sizeof *analysis->alone, &memory, reterr));
    analysis->alone = memory;
    analysis->class_count = program->class_count;
    for (uint32_t i = 0; i < program->class_count; i++) {
        struct analysis_class *row = &analysis->classes[i];
        row->name = program->class_names[i];
        row->count = trace->classes[i].count;
        row->time_s = units_seconds(trace->classes[i].busy_ps);
        row->exposed_s = units_seconds(trace->classes[i].exposed_ps);
        row->idle_s = units_seconds(trace->classes[i].idle_ps);
    }
    for (uint32_t t = 0; t < program->template_count; t++) {
        uint64_t const slots = analysis_slots(input, t, PROGRAM_ANY_PHASE);
        for (uint32_t i = 0; i < program->templates[t].op_count; i++) {
            const struct program_op *op = &program->templates[t].op[i];
            struct analysis_class *row = &analysis->classes[op->class_index];
            if (op->kind == PROGRAM_OP_COLLECTIVE)
                add_collective(input, arena, op, slots, row);
            else if (op->kind == PROGRAM_OP_COPY)
                add_copy(input, arena, op, slots, row);
            else if (op->kind == PROGRAM_OP_SEND)
                add_send(input, arena, op, slots, row);
            else if (op->kind == PROGRAM_OP_RECEIVE)
                row->receives = true;
            else
                add_compute(input, op, slots, analysis);
        }
    }
    for (uint32_t i = 0; i < analysis->class_count; i++) {
        struct analysis_class *row = &analysis->classes[i];
        if (row->time_s > 0) row->busbw_bytes_per_s *= row->bytes / row->time_s;
    }
    return STATUS_OK;
}
