#include <math.h>

#include "sim/base/arena.h"
#include "sim/base/units.h"
#include "sim/program/program_play.h"
#include "sim/report/analysis_parts.h"
#include "sim/report/launches.h"
#include "sim/report/rates.h"
#include "sim/roofline/all_to_all_bound.h"
#include "sim/roofline/gather_form.h"
#include "sim/roofline/host_bound.h"
#include "sim/roofline/level_rate.h"

uint32_t analysis_role(const struct report_input *input, uint32_t chip)
{
    uint32_t at[MACHINE_AXES_MAX];
    machine_coordinates(input->machine, chip, at);
    return program_role_at(input->program, at);
}

uint64_t analysis_slots(const struct report_input *input, uint32_t template_index, int phase)
{
    uint32_t const role = analysis_role(input, input->trace->reported_chip);
    return program_role_plays(&input->program->roles[role], template_index, phase);
}

/* Seconds that the links of each dimension of a group take for a collective's bytes. A gather or a
 * reduction keeps all of them busy equally long; an AllReduce has one of each. Without a switch a
 * ring, as of cp, has one link of a rank, whatever the step's other collectives go by. */
static void links_find(const struct report_input *input, const struct plan *plan,
                       double ret_s[GROUP_DIMENSIONS_MAX])
{
    struct algorithm goes = input->workload->algorithm;
    double const bytes = (double)plan->size_bytes;
    if (plan->kind == COLLECTIVE_ALL_TO_ALL) {
        for (uint32_t d = 0; d < plan->group.dimension_count; d++)
            ret_s[d] = all_to_all_dimension_s(input->machine, &plan->group, d, bytes);
        return;
    }
    for (uint32_t d = 0; d < plan->group.dimension_count && plan->item_count > 0; d++)
        if (machine_is_meshed(input->machine, plan->group.dimension[d].axis))
            goes = algorithm_by(plan->item[0].primitive->family);
    struct gather_form const form = gather_form_by(input->machine, &plan->group, &goes);
    double const gathers = plan->kind == COLLECTIVE_ALL_REDUCE ? 2 : 1;
    for (uint32_t d = 0; d < plan->group.dimension_count; d++)
        ret_s[d] = gathers * gather_form_s(&form, bytes);
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
 * share it. `phase` may be PROGRAM_ANY_PHASE. */
static double host_s(const struct report_input *input, int phase)
{
    const struct program *program = input->program;
    double bytes[2] = {0};
    for (uint32_t t = 0; program->copy_count > 0 && t < program->template_count; t++) {
        double const slots = (double)analysis_slots(input, t, PROGRAM_ANY_PHASE);
        for (uint32_t i = 0; i < program->templates[t].op_count; i++) {
            const struct program_op *op = &program->templates[t].op[i];
            if (op->kind != PROGRAM_OP_COPY) continue;
            const struct program_copy *copy = &program->copies[op->index];
            double const share = phase == PROGRAM_ANY_PHASE
                                     ? 1
                                     : phase_share(input->trace, (uint32_t)phase, op->stream);
            bytes[copy->to_host] += slots * share * (double)copy->size_bytes;
        }
    }
    return host_link_s(input->machine, bytes[0] > bytes[1] ? bytes[0] : bytes[1]);
}

/* What a step or a phase may be bound by. Queues and axes follow, each as many as there are. */
enum busy { BUSY_LATENCY, BUSY_WAITING, BUSY_BUBBLE, BUSY_LAUNCHES, BUSY_HOST, BUSY_QUEUES };
enum { BUSY_AXES = BUSY_QUEUES + TRACE_QUEUE_COUNT, BUSY_MAX = BUSY_AXES + MACHINE_AXES_MAX };

static const char *const busy_names[BUSY_AXES] = {
    [BUSY_LATENCY] = "latency",   [BUSY_WAITING] = "waiting", [BUSY_BUBBLE] = "bubble",
    [BUSY_LAUNCHES] = "launches", [BUSY_HOST] = "host",
#define X(name, text) [BUSY_QUEUES + TRACE_QUEUE_##name] = text,
    TRACE_QUEUE_TABLE(X)
#undef X
};

/* What takes longest. */
struct busiest {
    uint32_t what; /* enum busy, BUSY_QUEUES and a queue, or BUSY_AXES and an axis. */
    double seconds;
};

static void busiest_try(struct busiest *best, uint32_t what, double time)
{
    if (time > best->seconds) *best = (struct busiest){what, time};
}

static const char *busy_name(const struct machine *machine, uint32_t what)
{
    return what < BUSY_AXES ? busy_names[what] : level_link_name(machine, what - BUSY_AXES);
}

/* NULL: it is no axis. */
static const char *busy_axis(const struct machine *machine, uint32_t what)
{
    return what < BUSY_AXES ? NULL : machine_axis_name(machine, what - BUSY_AXES);
}

/* Time that no bandwidth shortens: idle, and of the exposed time the hops of the collectives that
 * compute waits for at once. `phase` may be PROGRAM_ANY_PHASE. */
static double latency_of(const struct report_input *input, const struct analysis *analysis,
                         int phase, double exposed_s, double idle_s)
{
    const struct program *program = input->program;
    double hops = 0;
    for (uint32_t t = 0; t < program->template_count; t++) {
        double const slots = (double)analysis_slots(input, t, phase);
        for (uint32_t i = 0; i < program->templates[t].op_count; i++) {
            const struct program_op *op = &program->templates[t].op[i];
            bool const awaited = program->stream[op->stream].urgency == 0;
            if (op->kind == PROGRAM_OP_COLLECTIVE && awaited)
                hops += slots * analysis->classes[op->class_index].hop_s;
        }
    }
    return idle_s + (hops < exposed_s ? hops : exposed_s);
}

/* What is busy nearly as long as the busiest might as well be the bound. */
static void runner_up(const struct report_input *input, const struct busiest *each, uint32_t count,
                      const struct busiest *best, struct analysis *analysis)
{
    double const nearly = 0.95;
    struct busiest second = {0};
    for (uint32_t i = 0; i < count; i++)
        if (each[i].what != best->what) busiest_try(&second, each[i].what, each[i].seconds);
    if (second.seconds <= 0 || second.seconds < nearly * best->seconds) return;
    analysis->runner_up = busy_name(input->machine, second.what);
    analysis->runner_up_share = analysis->step_s > 0 ? second.seconds / analysis->step_s : 0;
    analysis->runner_up_axis = busy_axis(input->machine, second.what);
}

double analysis_axis_busy_s(const struct report_input *input, uint32_t axis, uint32_t *ret_port)
{
    const struct trace_link *link = input->trace->link;
    uint8_t const level = input->machine->axis_level[axis];
    uint32_t first = 2 * axis, count = 2;
    if (level != LEVEL_NONE) {
        first = machine_level_port(level, 0, false);
        count = 2 * input->machine->level[level].tier_count;
    }
    *ret_port = first;
    for (uint32_t port = first + 1; port < first + count; port++)
        if (link[port].busy_ps > link[*ret_port].busy_ps) *ret_port = port;
    return units_seconds(link[*ret_port].busy_ps);
}

static struct busiest axis_busiest(const struct report_input *input, uint32_t axis)
{
    uint32_t port;
    return (struct busiest){BUSY_AXES + axis, analysis_axis_busy_s(input, axis, &port)};
}

static void step_bound(const struct report_input *input, struct analysis *analysis)
{
    const struct trace *trace = input->trace;
    struct busiest each[BUSY_MAX] = {{.what = BUSY_LATENCY}};
    uint32_t count = 1;
    bool const apart = launches_are_eager(input->machine) || input->program->role_count > 1;
    each[0].seconds = latency_of(input, analysis, PROGRAM_ANY_PHASE, analysis->exposed_s,
                                 apart ? 0 : analysis->idle_s);
    each[count++] = (struct busiest){BUSY_WAITING, analysis->waiting_s};
    each[count++] = (struct busiest){BUSY_BUBBLE, analysis->bubble_s};
    each[count++] = (struct busiest){BUSY_LAUNCHES, launches_host_s(input)};
    for (uint32_t i = 0; i < TRACE_QUEUE_COUNT; i++)
        each[count++] = (struct busiest){BUSY_QUEUES + i, units_seconds(trace->queue_busy_ps[i])};
    /* Before the axes: a DCN whose first link carries nothing but copies is not what binds. */
    each[count++] = (struct busiest){BUSY_HOST, host_s(input, PROGRAM_ANY_PHASE)};
    for (uint32_t i = 0; i < input->machine->axis_count; i++)
        each[count++] = axis_busiest(input, i);
    struct busiest best = each[0];
    for (uint32_t i = 1; i < count; i++) busiest_try(&best, each[i].what, each[i].seconds);
    runner_up(input, each, count, &best, analysis);
    analysis->bound_by = busy_name(input->machine, best.what);
    analysis->bound_share = analysis->step_s > 0 ? best.seconds / analysis->step_s : 0;
    analysis->bound_is_idle = best.what == BUSY_BUBBLE || best.what == BUSY_WAITING;
    analysis->bound_axis = busy_axis(input->machine, best.what);
}

/* In a pipeline phases take turns, so that one ends later than that. */
static double phase_span_s(const struct analysis_phase *row)
{
    return row->compute_s + row->exposed_s + row->idle_s;
}

/* What collectives and copies did in each phase, evenly over the time that they ran. What queues
 * and links did is counted for the whole step, and phases have parts of it that are as large. */
struct phase_moves {
    double bytes[TRACE_PHASES_MAX];
    double added[TRACE_PHASES_MAX];                     /* Bytes of reductions. */
    double links_s[TRACE_PHASES_MAX][MACHINE_AXES_MAX]; /* By closed forms. */
};

static void phase_op_add(const struct report_input *input, const struct program_op *op,
                         double slots, struct phase_moves *moves)
{
    const struct program *program = input->program;
    bool const copied = op->kind == PROGRAM_OP_COPY;
    const struct plan *plan = copied ? NULL : &program->plans[op->index];
    double const bytes = slots * (copied ? (double)program->copies[op->index].size_bytes
                                         : analysis_moved_bytes(plan));
    double links_s[GROUP_DIMENSIONS_MAX];
    if (!copied) links_find(input, plan, links_s);
    bool const adds =
        !copied && (plan->kind == COLLECTIVE_REDUCE_SCATTER || plan->kind == COLLECTIVE_ALL_REDUCE);
    for (uint32_t phase = 0; phase < input->trace->phase_count; phase++) {
        double const share = phase_share(input->trace, phase, op->stream);
        moves->bytes[phase] += share * bytes;
        if (adds) moves->added[phase] += share * bytes;
        for (uint32_t d = 0; !copied && d < plan->group.dimension_count; d++)
            moves->links_s[phase][plan->group.dimension[d].axis] += share * slots * links_s[d];
    }
}

static struct phase_moves phase_moves(const struct report_input *input)
{
    const struct program *program = input->program;
    struct phase_moves moves = {.bytes = {0}};
    for (uint32_t t = 0; t < program->template_count; t++) {
        double const slots = (double)analysis_slots(input, t, PROGRAM_ANY_PHASE);
        for (uint32_t i = 0; i < program->templates[t].op_count && slots > 0; i++) {
            const struct program_op *op = &program->templates[t].op[i];
            if (op->kind == PROGRAM_OP_COPY || op->kind == PROGRAM_OP_COLLECTIVE)
                phase_op_add(input, op, slots, &moves);
        }
    }
    return moves;
}

/* Time of the axis' busiest link. */
static double phase_axis_s(const struct report_input *input, const struct phase_moves *moves,
                           uint32_t phase, uint32_t axis)
{
    double sum_s = 0;
    for (uint32_t i = 0; i < input->trace->phase_count; i++) sum_s += moves->links_s[i][axis];
    if (sum_s <= 0) return 0;
    return axis_busiest(input, axis).seconds * moves->links_s[phase][axis] / sum_s;
}

static int64_t phase_ops_ps(const struct trace_phase *phase, enum trace_queue queue)
{
    int64_t const ops_ps[TRACE_QUEUE_COUNT] = {
        [TRACE_QUEUE_MXU] = phase->mxu_ps,
        [TRACE_QUEUE_VPU] = phase->vpu_ps,
        [TRACE_QUEUE_HBM] = phase->hbm_ps,
        [TRACE_QUEUE_VMEM] = phase->vmem_ps,
    };
    return ops_ps[queue];
}

/* What ops and messages took of a queue in a phase of `whole_s`, at most. */
static double phase_queue_s(const struct trace *trace, const struct phase_moves *moves,
                            uint32_t phase, enum trace_queue queue, double whole_s)
{
    const double *moved = queue == TRACE_QUEUE_VPU ? moves->added : moves->bytes;
    int64_t messages_ps = trace->queue_busy_ps[queue];
    double sum = 0;
    for (uint32_t i = 0; i < trace->phase_count; i++) {
        messages_ps -= phase_ops_ps(&trace->phase[i], queue);
        sum += moved[i];
    }
    double const ops_s = units_seconds(phase_ops_ps(&trace->phase[phase], queue));
    if (messages_ps <= 0 || sum <= 0) return ops_s;
    return fmin(ops_s + units_seconds(messages_ps) * moved[phase] / sum, whole_s);
}

static const char *phase_bound(const struct report_input *input, const struct analysis *analysis,
                               const struct phase_moves *moves, uint32_t phase,
                               const struct analysis_phase *row)
{
    bool const pipeline = input->program->role_count > 1,
               launched = launches_are_eager(input->machine);
    double const latency_s = latency_of(input, analysis, (int)phase, row->exposed_s,
                                        pipeline || launched ? 0 : row->idle_s);
    struct busiest best = {BUSY_LATENCY, latency_s};
    if (launched) busiest_try(&best, BUSY_LAUNCHES, row->idle_s);
    if (pipeline) busiest_try(&best, BUSY_WAITING, row->waiting_s);
    if (pipeline) busiest_try(&best, BUSY_BUBBLE, row->idle_s - row->waiting_s);
    for (enum trace_queue queue = 0; queue < TRACE_QUEUE_COUNT; queue++)
        busiest_try(&best, (uint32_t)BUSY_QUEUES + queue,
                    phase_queue_s(input->trace, moves, phase, queue, phase_span_s(row)));
    for (uint32_t a = 0; a < input->machine->axis_count; a++)
        busiest_try(&best, BUSY_AXES + a, row->ici_s[a]);
    busiest_try(&best, BUSY_HOST, host_s(input, (int)phase));
    return busy_name(input->machine, best.what);
}

static void phases_build(const struct report_input *input, struct analysis *analysis)
{
    static const char *const names[] = {
#define X(name, text) text,
        PROGRAM_PHASE_TABLE(X)
#undef X
    };
    const struct trace *trace = input->trace;
    struct phase_moves const moves = phase_moves(input);
    SIM_ASSERT(trace->phase_count <= PROGRAM_PHASE_COUNT);
    for (uint32_t i = 0; i < trace->phase_count; i++) {
        const struct trace_phase *phase = &trace->phase[i];
        if (phase->end_ps <= phase->begin_ps) continue;
        struct analysis_phase *row = &analysis->phase[analysis->phase_count++];
        row->name = names[i];
        row->is_update = i == PROGRAM_PHASE_UPDATE;
        row->begin_s = units_seconds(phase->begin_ps);
        row->end_s = units_seconds(phase->end_ps);
        row->compute_s = units_seconds(phase->compute_ps);
        row->exposed_s = units_seconds(phase->exposed_ps);
        row->idle_s = units_seconds(phase->idle_ps);
        row->waiting_s = units_seconds(phase->waiting_ps);
        for (uint32_t a = 0; a < input->machine->axis_count; a++)
            row->ici_s[a] = fmin(phase_axis_s(input, &moves, i, a), phase_span_s(row));
        row->bound_by = phase_bound(input, analysis, &moves, i, row);
    }
}

static enum status hop_chain_build(struct arena *arena, const struct report_input *input,
                                   struct analysis *analysis, struct error *reterr)
{
    const struct program *program = input->program;
    const struct program_role *role =
        &program->roles[analysis_role(input, input->trace->reported_chip)];
    void *hops = NULL;
    int64_t chain_ps = 0;
    if (input->roofline == NULL || !workload_serves(input->workload)) return STATUS_OK;
    STATUS_TRY(arena_try(arena, program->plan_count, sizeof(int64_t), &hops, reterr));
    int64_t *hop_ps = hops;
    for (uint32_t t = 0; t < program->template_count; t++)
        for (uint32_t i = 0; i < program->templates[t].op_count; i++) {
            const struct program_op *op = &program->templates[t].op[i];
            if (op->kind != PROGRAM_OP_COLLECTIVE) continue;
            const struct plan *plan = &program->plans[op->index];
            hop_ps[op->index] =
                (int64_t)(gather_form_plan_hop_s(input->machine, plan) * 1e12 + 0.5);
        }
    STATUS_TRY(program_play_longest(program, role, hop_ps, &chain_ps, reterr));
    analysis->hop_chain_s = units_seconds(chain_ps);
    return STATUS_OK;
}

enum status analysis_bound_check(const struct roofline *roofline, const struct trace *trace,
                                 struct error *reterr)
{
    double const step_s = units_seconds(trace->step_ps);
    double const rounding = 1 + 1e-9; /* Of the closed forms; instants are exact. */
    if (step_s * rounding >= roofline->lower_s) return STATUS_OK;
    return error_set(reterr, STATUS_STUCK, "",
                     "the step took %.9g s, which is below the roofline's lower bound of %.9g "
                     "s (%s): one of them is wrong, so neither is shown",
                     step_s, roofline->lower_s, roofline->bound.by);
}

enum status analysis_build(struct arena *arena, const struct report_input *input,
                           struct analysis *ret_analysis, struct error *reterr)
{
    const struct trace *trace = input->trace;
    struct analysis analysis = {
        .step_s = units_seconds(trace->step_ps),
        .compute_s = units_seconds(trace->compute_ps),
        .exposed_s = units_seconds(trace->exposed_ps),
        .idle_s = units_seconds(trace->idle_ps),
        .waiting_s = units_seconds(trace->waiting_ps),
        .bubble_s =
            input->program->role_count > 1 ? units_seconds(trace->idle_ps - trace->waiting_ps) : 0,
    };
    SIM_ASSERT(trace->compute_ps + trace->exposed_ps + trace->idle_ps == trace->step_ps);
    if (trace->step_ps > 0) rates_fill(input, &analysis);
    STATUS_TRY(analysis_classes_build(arena, input, &analysis, reterr));
    STATUS_TRY(hop_chain_build(arena, input, &analysis, reterr));
    step_bound(input, &analysis);
    phases_build(input, &analysis);
    *ret_analysis = analysis;
    return STATUS_OK;
}
