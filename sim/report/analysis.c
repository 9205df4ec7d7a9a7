#include "sim/report/analysis.h"

#include <stdio.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/units.h"
#include "sim/collective/ragged.h"
#include "sim/report/launches.h"
#include "sim/report/rates.h"
#include "sim/roofline/host_bound.h"
#include "sim/roofline/level_rate.h"
#include "sim/roofline/played.h"

uint32_t analysis_role(const struct report_input *input, uint32_t chip)
{
    uint32_t at[MACHINE_AXES_MAX];
    machine_coordinates(input->machine, chip, at);
    return program_role_at(input->program, at);
}

/* Slots of the reported chip that play a template in a phase. */
static uint64_t slots_of(const struct report_input *input, uint32_t template_index, int phase)
{
    uint64_t count = 0;
    const struct program_role *role =
        &input->program->roles[analysis_role(input, input->trace->reported_chip)];
    for (uint32_t b = 0; b < role->block_count; b++) {
        const struct program_block *block = &role->block[b];
        if (block->template_index != template_index) continue;
        if (phase < 0 || (int)block->phase == phase) count += block->repeat;
    }
    return count;
}

/* As nccl-tests: what an ideal fabric would have to carry, so that kinds and sizes compare. */
static double bus_factor(const struct plan *plan, double ranks)
{
    if (plan->kind == COLLECTIVE_ALL_REDUCE) return 2 * (ranks - 1) / ranks;
    if (plan->kind == COLLECTIVE_PERMUTE) return 1;
    if (plan->kind == COLLECTIVE_ALL_TO_ALL) return (ranks - 1) / ranks / ranks;
    return (ranks - 1) / ranks;
}

/* Seconds of the links of one collective, in units of a gather of the same array. */
static double gather_factor(const struct plan *plan)
{
    if (plan->kind == COLLECTIVE_ALL_REDUCE) return 2;
    return plan->kind == COLLECTIVE_ALL_TO_ALL ? 0.25 : 1;
}

/* Bytes of a collective on the links of its group. Without a switch a ring, as of cp, has one link
 * of a rank, whatever the step's other collectives go by. */
static double links_s(const struct report_input *input, const struct plan *plan)
{
    const char *goes = input->workload->algorithm;
    for (uint32_t d = 0; d < plan->group.dimension_count && plan->item_count > 0; d++)
        if (machine_is_meshed(input->machine, plan->group.dimension[d].axis))
            goes = primitive_algorithm(plan->item[0].primitive);
    struct played const played = played_by(input->machine, &plan->group, goes);
    return gather_factor(plan) * played_gather_s(&played, (double)plan->size_bytes);
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

/* What a stream is for: "fsdp" of "gather fsdp"; its name where that is not known. */
static void stream_set(const struct report_input *input, struct arena *arena, uint32_t stream,
                       struct analysis_class *row)
{
    const struct program_stream *of = &input->program->stream[stream];
    char text[STREAM_USE_BYTES];
    row->of = of->use.of;
    row->verb = of->use.verb;
    row->axis = row->of == 0 ? of->name : arena_text(arena, stream_of_text(row->of, text));
}

/* V of an array; of a ragged exchange, that of the dense one which moves as much. */
static double array_bytes(const struct plan *plan)
{
    double const ranks = (double)group_rank_count(&plan->group);
    if (plan->ragged_units == NULL) return (double)plan->size_bytes;
    return (double)ragged_load(plan).sent_bytes * ranks / (ranks - 1);
}

static void add_collective(const struct report_input *input, struct arena *arena,
                           const struct program_op *op, uint64_t slots, struct analysis_class *row)
{
    const struct plan *plan = &input->program->plans[op->index];
    row->bytes += array_bytes(plan) * (double)slots;
    if (row->kind != NULL) return;
    row->collective = true;
    row->kind = collective_kind_name(plan->kind);
    row->gathers = plan->kind == COLLECTIVE_ALL_GATHER;
    stream_set(input, arena, op->stream, row);
    row->algorithm = plan->algorithm;
    row->machine_axes = machine_axes(arena, &plan->group, &row->axis_bits);
    row->rank_count = group_rank_count(&plan->group);
    row->hop_s = played_plan_hop_s(input->machine, plan);
    row->busbw_bytes_per_s = bus_factor(plan, (double)row->rank_count);
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
    stream_set(input, arena, op->stream, row);
    row->algorithm = plan->algorithm;
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
    stream_set(input, arena, op->stream, row);
    row->algorithm = "copy";
    row->machine_axes = machine->host.cable_name;
    row->axis_bits = ANALYSIS_HOST_BIT;
    row->rank_count = 1;
    row->hop_s = units_seconds(machine->host.latency_ps);
    row->busbw_bytes_per_s = 1; /* A factor still. */
}

const char *const analysis_unit_names[] = {"mxu", "vpu", "hbm", NULL};

/* What an op keeps its slowest unit busy for, beyond each other one. */
static void add_beyond(const double unit_s[ANALYSIS_UNITS], double times,
                       struct analysis_class *row)
{
    uint32_t slowest = 0;
    for (uint32_t unit = 1; unit < ANALYSIS_UNITS; unit++)
        if (unit_s[unit] > unit_s[slowest]) slowest = unit;
    for (uint32_t unit = 0; unit < ANALYSIS_UNITS; unit++)
        row->beyond_s[unit][slowest] += (unit_s[slowest] - unit_s[unit]) * times;
}

static void add_compute(const struct report_input *input, const struct program_op *op,
                        uint64_t slots, struct analysis_class *row)
{
    const struct work *work = &input->program->works[op->index];
    const struct chip *chip = &input->machine->chip;
    double const rate = (double)chip->math_flop_per_s[work->math_format];
    double const math = rate > 0 ? (double)work_matmul_flop(work) / rate : 0;
    double const vector = (double)work->vector_flop / (double)chip->vector_flop_per_s;
    double const bytes = (double)work->hbm_read_bytes + (double)work->hbm_write_bytes;
    double const hbm = bytes / (double)chip->hbm_bytes_per_s;
    double const other = math > vector ? math : vector;
    double const times = (double)slots;
    row->math_s += math * times;
    if (hbm > other) row->hbm_excess_s += (hbm - other) * times;
    struct work_edges const edges = {WORK_EDGE_ROWS, chip->mxu.rows, chip->mxu.columns};
    double const mxu = rate > 0 ? (double)work_padded_flop(work, edges) / rate : 0;
    add_beyond((const double[ANALYSIS_UNITS]){mxu, vector, hbm}, times, row);
}

/* Of all that collectives and copies of a stream take, what falls into a phase: they may run in
 * another one than that of their block. */
static double phase_share(const struct trace *trace, uint32_t phase, uint32_t stream)
{
    double all = 0;
    for (uint32_t i = 0; i < trace->phase_count; i++)
        all += (double)trace->phase[i].stream_ps[stream];
    return all > 0 ? (double)trace->phase[phase].stream_ps[stream] / all : 0;
}

/* Seconds that the busier direction of a link to the host takes for the copies of the chips that
 * share it. `phase` below 0 is the whole step. */
static double host_s(const struct report_input *input, int phase)
{
    const struct program *program = input->program;
    double bytes[2] = {0};
    for (uint32_t t = 0; program->copy_count > 0 && t < program->template_count; t++) {
        double const slots = (double)slots_of(input, t, -1);
        for (uint32_t i = 0; i < program->templates[t].op_count; i++) {
            const struct program_op *op = &program->templates[t].op[i];
            if (op->kind != PROGRAM_OP_COPY) continue;
            const struct program_copy *copy = &program->copies[op->index];
            double const share =
                phase < 0 ? 1 : phase_share(input->trace, (uint32_t)phase, op->stream);
            bytes[copy->to_host] += slots * share * (double)copy->size_bytes;
        }
    }
    return host_link_s(input->machine, bytes[0] > bytes[1] ? bytes[0] : bytes[1]);
}

/* Compute waits for these as soon as they begin; the others run ahead of it or behind it. */
static bool awaited(const struct analysis_class *row)
{
    bool const of_cache = row->of == STREAM_OF_KV && row->verb != STREAM_NO_VERB;
    return row->of == STREAM_OF_TP || row->of == STREAM_OF_TP_D || row->of == STREAM_OF_SEQUENCE ||
           of_cache;
}

static enum status classes_build(struct arena *arena, const struct report_input *input,
                                 struct analysis *facts, struct error *reterr)
{
    const struct program *program = input->program;
    const struct trace *trace = input->trace;
    SIM_ASSERT(trace->class_count == program->class_count);
    void *memory;
    STATUS_TRY(arena_try(arena, program->class_count, sizeof *facts->classes, &memory, reterr));
    facts->classes = memory;
    facts->class_count = program->class_count;
    for (uint32_t i = 0; i < program->class_count; i++) {
        struct analysis_class *row = &facts->classes[i];
        row->name = program->class_names[i];
        row->count = trace->classes[i].count;
        row->time_s = units_seconds(trace->classes[i].busy_ps);
        row->exposed_s = units_seconds(trace->classes[i].exposed_ps);
        row->idle_s = units_seconds(trace->classes[i].idle_ps);
    }
    for (uint32_t t = 0; t < program->template_count; t++) {
        uint64_t const slots = slots_of(input, t, -1);
        for (uint32_t i = 0; i < program->templates[t].op_count; i++) {
            const struct program_op *op = &program->templates[t].op[i];
            struct analysis_class *row = &facts->classes[op->class_index];
            if (op->kind == PROGRAM_OP_COLLECTIVE)
                add_collective(input, arena, op, slots, row);
            else if (op->kind == PROGRAM_OP_COPY)
                add_copy(input, arena, op, slots, row);
            else if (op->kind == PROGRAM_OP_SEND)
                add_send(input, arena, op, slots, row);
            else if (op->kind == PROGRAM_OP_RECEIVE)
                row->receives = true;
            else
                add_compute(input, op, slots, row);
        }
    }
    for (uint32_t i = 0; i < facts->class_count; i++) {
        struct analysis_class *row = &facts->classes[i];
        if (row->time_s > 0) row->busbw_bytes_per_s *= row->bytes / row->time_s;
    }
    return STATUS_OK;
}

/* What takes longest. */
struct busiest {
    const char *name;
    int32_t axis;
    double seconds;
};

static void busiest_try(struct busiest *best, const char *name, int32_t axis, double time)
{
    if (time <= best->seconds) return;
    *best = (struct busiest){.name = name, .axis = axis, .seconds = time};
}

/* Time that no bandwidth shortens: idle, and of the exposed time the hops of the collectives that
 * compute waits for at once. `phase` below 0 is the whole step. */
static double latency_of(const struct report_input *input, const struct analysis *facts, int phase,
                         double exposed_s, double idle_s)
{
    const struct program *program = input->program;
    double hops = 0;
    for (uint32_t t = 0; t < program->template_count; t++) {
        double const slots = (double)slots_of(input, t, phase);
        for (uint32_t i = 0; i < program->templates[t].op_count; i++) {
            const struct program_op *op = &program->templates[t].op[i];
            const struct analysis_class *row = &facts->classes[op->class_index];
            if (row->collective && awaited(row)) hops += slots * row->hop_s;
        }
    }
    return idle_s + (hops < exposed_s ? hops : exposed_s);
}

enum { RESOURCES_MAX = 4 + TRACE_QUEUE_COUNT + MACHINE_AXES_MAX };

/* What is busy nearly as long as the busiest might as well be the bound. */
static void runner_up(const struct report_input *input, const struct busiest *each, uint32_t count,
                      const struct busiest *best, struct analysis *facts)
{
    double const nearly = 0.95;
    struct busiest second = {.axis = -1};
    for (uint32_t i = 0; i < count; i++)
        if (each[i].name != best->name || each[i].axis != best->axis)
            busiest_try(&second, each[i].name, each[i].axis, each[i].seconds);
    if (second.name == NULL || second.seconds < nearly * best->seconds) return;
    facts->runner_up = second.name;
    facts->runner_up_share = facts->step_s > 0 ? second.seconds / facts->step_s : 0;
    if (second.axis >= 0)
        facts->runner_up_axis = machine_axis_name(input->machine, (uint32_t)second.axis);
}

/* The busiest port that serves an axis. */
static struct busiest axis_busiest(const struct report_input *input, uint32_t axis)
{
    const struct trace_link *link = input->trace->link;
    const char *name = level_link_name(input->machine, axis);
    uint8_t const level = input->machine->axis_level[axis];
    uint32_t first = 2 * axis, count = 2;
    if (level != LEVEL_NONE) {
        first = machine_level_port(level, 0, false);
        count = 2 * input->machine->level[level].tier_count;
    }
    struct busiest busiest = {name, (int32_t)axis, units_seconds(link[first].busy_ps)};
    for (uint32_t port = first + 1; port < first + count; port++)
        busiest_try(&busiest, name, (int32_t)axis, units_seconds(link[port].busy_ps));
    return busiest;
}

static const char bubble[] = "bubble"; /* What a step may be bound by. */

static void step_bound(const struct report_input *input, struct analysis *facts)
{
    static const char *const queues[] = {
#define X(name, text) text,
        TRACE_QUEUE_TABLE(X)
#undef X
    };
    const struct trace *trace = input->trace;
    struct busiest each[RESOURCES_MAX] = {{.name = "latency", .axis = -1}};
    uint32_t count = 1;
    each[0].seconds =
        latency_of(input, facts, -1, facts->exposed_s,
                   launches_are_eager(input->machine) ? 0 : facts->idle_s - facts->bubble_s);
    each[count++] = (struct busiest){bubble, -1, facts->bubble_s};
    each[count++] = (struct busiest){"launches", -1, launches_host_s(input)};
    for (uint32_t i = 0; i < TRACE_QUEUE_COUNT; i++)
        each[count++] = (struct busiest){queues[i], -1, units_seconds(trace->queue_busy_ps[i])};
    /* Before the axes: a DCN whose first link carries nothing but copies is not what binds. */
    each[count++] = (struct busiest){"host", -1, host_s(input, -1)};
    for (uint32_t i = 0; i < input->machine->axis_count; i++)
        each[count++] = axis_busiest(input, i);
    struct busiest best = each[0];
    for (uint32_t i = 1; i < count; i++)
        busiest_try(&best, each[i].name, each[i].axis, each[i].seconds);
    runner_up(input, each, count, &best, facts);
    facts->bound_by = best.name;
    facts->bound_share = facts->step_s > 0 ? best.seconds / facts->step_s : 0;
    facts->bound_is_bubble = best.name == bubble;
    if (best.axis >= 0) facts->bound_axis = machine_axis_name(input->machine, (uint32_t)best.axis);
}

/* Closed forms, each evenly over the time that the collective ran. They are the time of a group
 * alone on all of its axes, so that those that ran at once may sum to more than the phase: an axis
 * is busy for no longer. */
static void phase_ici(const struct report_input *input, uint32_t phase, struct analysis_phase *row)
{
    const struct program *program = input->program;
    double const whole = row->compute_s + row->exposed_s + row->idle_s;
    for (uint32_t t = 0; t < program->template_count; t++) {
        double const slots = (double)slots_of(input, t, -1);
        for (uint32_t i = 0; i < program->templates[t].op_count && slots > 0; i++) {
            const struct program_op *op = &program->templates[t].op[i];
            if (op->kind != PROGRAM_OP_COLLECTIVE) continue;
            const struct plan *plan = &program->plans[op->index];
            double const time =
                slots * phase_share(input->trace, phase, op->stream) * links_s(input, plan);
            for (uint32_t d = 0; d < plan->group.dimension_count; d++)
                row->ici_s[plan->group.dimension[d].axis] += time;
        }
    }
    for (uint32_t a = 0; a < input->machine->axis_count; a++)
        if (row->ici_s[a] > whole) row->ici_s[a] = whole;
}

static void phases_build(const struct report_input *input, struct analysis *facts)
{
    static const char *const names[] = {
#define X(name, text) text,
        PROGRAM_PHASE_TABLE(X)
#undef X
    };
    const struct trace *trace = input->trace;
    SIM_ASSERT(trace->phase_count <= PROGRAM_PHASE_COUNT);
    for (uint32_t i = 0; i < trace->phase_count; i++) {
        const struct trace_phase *phase = &trace->phase[i];
        if (phase->end_ps <= phase->begin_ps) continue;
        struct analysis_phase *row = &facts->phase[facts->phase_count++];
        row->name = names[i];
        row->is_update = i == PROGRAM_PHASE_UPDATE;
        row->begin_s = units_seconds(phase->begin_ps);
        row->end_s = units_seconds(phase->end_ps);
        row->compute_s = units_seconds(phase->compute_ps);
        row->exposed_s = units_seconds(phase->exposed_ps);
        row->idle_s = units_seconds(phase->idle_ps);
        phase_ici(input, i, row);
        struct busiest best = {.name = "latency", .axis = -1};
        bool const pipeline = input->program->role_count > 1,
                   launched = launches_are_eager(input->machine);
        best.seconds = latency_of(input, facts, (int)i, row->exposed_s,
                                  pipeline || launched ? 0 : row->idle_s);
        if (launched) busiest_try(&best, "launches", -1, row->idle_s);
        if (pipeline) busiest_try(&best, bubble, -1, row->idle_s);
        busiest_try(&best, "mxu", -1, units_seconds(phase->mxu_ps));
        busiest_try(&best, "vpu", -1, units_seconds(phase->vpu_ps));
        busiest_try(&best, "hbm", -1, units_seconds(phase->hbm_ps));
        busiest_try(&best, "vmem", -1, units_seconds(phase->vmem_ps));
        for (uint32_t a = 0; a < input->machine->axis_count; a++)
            busiest_try(&best, level_link_name(input->machine, a), (int32_t)a, row->ici_s[a]);
        busiest_try(&best, "host", -1, host_s(input, (int)i));
        row->bound_by = best.name;
    }
}

enum status analysis_build(struct arena *arena, const struct report_input *input,
                           struct analysis *ret_analysis, struct error *reterr)
{
    const struct trace *trace = input->trace;
    const struct roofline *roofline = input->roofline;
    struct analysis facts = {
        .step_s = units_seconds(trace->step_ps),
        .compute_s = units_seconds(trace->compute_ps),
        .exposed_s = units_seconds(trace->exposed_ps),
        .idle_s = units_seconds(trace->idle_ps),
        .waiting_s = units_seconds(trace->waiting_ps),
        .bubble_s =
            input->program->role_count > 1 ? units_seconds(trace->idle_ps - trace->waiting_ps) : 0,
    };
    SIM_ASSERT(trace->compute_ps + trace->exposed_ps + trace->idle_ps == trace->step_ps);
    double const rounding = 1 + 1e-9; /* Of the closed forms; instants are exact. */
    if (roofline != NULL && facts.step_s * rounding < roofline->lower_s)
        return error_set(reterr, STATUS_STUCK, "",
                         "the step took %.9g s, which is below the roofline's lower bound of %.9g "
                         "s (%s): one of them is wrong, so neither is shown",
                         facts.step_s, roofline->lower_s, roofline->bound.by);
    if (trace->step_ps > 0) rates_fill(input, &facts);
    STATUS_TRY(classes_build(arena, input, &facts, reterr));
    step_bound(input, &facts);
    phases_build(input, &facts);
    *ret_analysis = facts;
    return STATUS_OK;
}
