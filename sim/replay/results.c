/* What a run has found, once it has ended, as a trace. */
#include "sim/replay/results.h"

#include <string.h>

#include "sim/base/arena.h"
#include "sim/replay/host.h"
#include "sim/replay/p2p.h"
#include "sim/replay/route.h"
#include "sim/replay/state.h"
#include "sim/resource/compute.h"

/* Adds a link to the row of its port. No link can have been busy longer than until it was free. */
static void link_result(const struct link_state *link, const struct link_waits *waits,
                        uint32_t busiest_chip, struct trace_link *result)
{
    SIM_ASSERT(link->busy_ps <= link->free_ps);
    result->link_count++;
    result->sum_bytes += link->bytes;
    result->sum_busy_ps += link->busy_ps;
    result->sum_messages += waits->messages;
    if (link->busy_ps <= result->busy_ps && result->busy_ps > 0) return;
    result->busy_ps = link->busy_ps;
    result->busiest_chip = busiest_chip;
    result->bytes = link->bytes;
    result->waited_ps = waits->waited_ps;
    result->messages = waits->messages;
}

static void link_results(struct replay *replay, struct trace *trace)
{
    static const struct link_waits none = {0, 0};
    for (uint32_t port = 0; port < MACHINE_PORTS_MAX; port++)
        trace->link[port].queued_ps = replay->tally.queued_ps[port];
    for (uint32_t port = 0; port < replay->grid.port_count; port++) {
        for (uint32_t chip = 0; chip < replay->chip_count; chip++) {
            uint64_t const index = (uint64_t)port * replay->chip_count + chip;
            if (replay->grid.neighbour[index] == UINT32_MAX) continue;
            link_result(&replay->grid.ports[index].link,
                        replay->grid.waits == NULL ? &none : &replay->grid.waits[index],
                        fold_machine_chip(replay->fold, replay->machine, chip), &trace->link[port]);
        }
    }
}

/* Cables of levels. A unit of chips is named by the first of them. */
static void level_results(struct replay *replay, uint32_t index, uint32_t t, struct trace *trace)
{
    struct tier_links *tier = &replay->routes->level[index].tier[t];
    for (uint32_t chip = replay->chip_count; chip-- > 0;) {
        uint32_t const unit = tier->unit[chip];
        tier->first_chip[unit] = fold_machine_chip(replay->fold, replay->machine, chip);
    }
    for (uint32_t down = 0; down < 2; down++) {
        struct trace_link *result = &trace->link[machine_level_port(index, t, down)];
        for (uint32_t i = 0; i < tier->unit_count * tier->cable_count; i++) {
            struct link_state *link = &tier->links[down][i];
            if (!tier->queues) { /* Its bytes were counted; its time is what they take. */
                link->bytes *= tier->whole;
                link->busy_ps = units_duration_ps(link->bytes, replay->routes->rate[tier->kind]);
                link->free_ps = link->busy_ps;
            }
            link_result(link, &tier->waits[down][i], tier->first_chip[i / tier->cable_count],
                        result);
        }
    }
}

/* Links to the host. A unit of chips that share one is named by the first of them. */
static void host_results(const struct replay *replay, struct trace *trace)
{
    const struct host_links *host = replay->host;
    for (uint32_t down = 0; down < 2; down++)
        for (uint32_t chip = 0; chip < replay->chip_count; chip++) {
            uint32_t const unit = host->unit[chip];
            if (host->place[chip] != 0) continue;
            link_result(&host->links[down][unit], &host->waits[down][unit],
                        fold_machine_chip(replay->fold, replay->machine, chip),
                        &trace->link[host->port[down]]);
        }
}

/* What the ops of one block of a step ask of each server. Blocks share templates: the time of an op
 * is looked up once. */
static void block_demand(const struct replay *replay, const struct fold_chip_class *kind,
                         const struct program_block *block, struct compute_time *times,
                         struct trace_phase *phase)
{
    const struct program_template *template = &replay->program->templates[block->template_index];
    for (uint32_t i = 0; i < template->op_count; i++) {
        if (template->op[i].kind != PROGRAM_OP_COMPUTE) continue;
        struct compute_time *time = &times[template->op[i].index];
        if (time->tile_count == 0)
            *time =
                compute_time(&replay->machine->chip, &replay->program->works[template->op[i].index],
                             kind->math_ppm, kind->hbm_ppm);
        phase->mxu_ps += time->mxu_ps * block->repeat;
        phase->vpu_ps += time->vpu_ps * block->repeat;
        phase->hbm_ps += time->hbm_ps * block->repeat;
        phase->vmem_ps += time->vmem_ps * block->repeat;
        phase->ends_ps += time->ends_ps * block->repeat;
    }
}

/* What the ops of the whole step ask of each server; it is the same whenever they run. */
static enum status demand_results(struct arena *arena, const struct replay *replay, uint32_t chip,
                                  struct trace *trace, struct error *reterr)
{
    const struct fold_chip_class *kind =
        &replay->fold->chip_classes[replay->chips[chip].chip_class];
    const struct program_role *role = role_at(replay, chip)->role;
    void *memory = NULL;
    STATUS_TRY(arena_try(arena, replay->program->work_count, sizeof(struct compute_time), &memory,
                         reterr));
    for (uint32_t b = 0; b < role->block_count; b++)
        block_demand(replay, kind, &role->block[b], memory, &trace->phase[role->block[b].phase]);
    for (uint32_t p = 0; p < trace->phase_count; p++) {
        trace->queue_busy_ps[TRACE_QUEUE_MXU] += trace->phase[p].mxu_ps;
        trace->queue_busy_ps[TRACE_QUEUE_VPU] += trace->phase[p].vpu_ps;
        trace->queue_busy_ps[TRACE_QUEUE_HBM] += trace->phase[p].hbm_ps;
        trace->queue_busy_ps[TRACE_QUEUE_VMEM] += trace->phase[p].vmem_ps;
    }
    const struct chip_servers *servers = &replay->servers.states[chip];
    trace->queue_busy_ps[TRACE_QUEUE_HBM] += servers->of[SERVER_HBM].dma_ps;
    trace->queue_busy_ps[TRACE_QUEUE_VPU] += servers->of[SERVER_VPU].dma_ps;
    trace->dma_ps = servers->of[SERVER_HBM].dma_ps;
    if (replay->prefetch.is_on) trace->prefetched_bytes = replay->prefetch.states[chip].sum_bytes;
    return STATUS_OK;
}

static enum status class_results(struct arena *arena, const struct replay *replay, uint32_t chip,
                                 struct trace *trace, struct error *reterr)
{
    void *memory = NULL;
    STATUS_TRY(arena_try(arena, trace->class_count, sizeof *trace->classes, &memory, reterr));
    trace->classes = memory;
    for (uint32_t kind = 0; kind < trace->class_count; kind++) {
        const struct class_total *totals =
            &replay->breakdowns.classes[(uint64_t)kind * replay->chip_count];
        struct trace_class *class = &trace->classes[kind];
        class->count = totals[chip].count;
        class->busy_ps = totals[chip].busy_ps;
        class->exposed_ps = totals[chip].exposed_ps;
        class->idle_ps = totals[chip].idle_ps;
        class->end_ps = replay->breakdowns.class_end_ps[kind];
    }
    return STATUS_OK;
}

static void memory_results(const struct replay *replay, uint32_t chip,
                           struct trace_memory *ret_memory)
{
    const struct memory_state *state = &replay->breakdowns.memories[chip];
    ret_memory->peak_bytes = (uint64_t)state->peak_bytes;
    ret_memory->peak_at_ps = state->peak_at_ps;
    ret_memory->peak_chip = fold_machine_chip(replay->fold, replay->machine, chip);
    ret_memory->peak_slot = state->peak_slot;
    ret_memory->peak_op = state->peak_op;
    for (uint32_t memory = 0; memory < PROGRAM_MEMORY_COUNT; memory++) {
        ret_memory->at_peak_bytes[memory] = (uint64_t)state->at_peak_bytes[memory];
        ret_memory->each_peak_bytes[memory] = (uint64_t)state->each_peak_bytes[memory];
    }
}

static uint32_t fullest_chip(const struct replay *replay)
{
    uint32_t at = 0;
    for (uint32_t chip = 1; chip < replay->chip_count; chip++)
        if (replay->breakdowns.memories[chip].peak_bytes >
            replay->breakdowns.memories[at].peak_bytes)
            at = chip;
    return at;
}

static void role_times(struct replay *replay, uint32_t chip, int64_t step_ps,
                       struct trace_role *role)
{
    const struct chip_state *self = &replay->chips[chip];
    role->chip = fold_machine_chip(replay->fold, replay->machine, chip);
    role->first_begin_ps = self->first_begin_ps == TIME_PS_NEVER ? 0 : self->first_begin_ps;
    role->last_end_ps = self->last_end_ps;
    role->finished_ps = replay->steps.finished_ps[chip];
    role->exposed_before_ps = self->exposed_first_ps;
    for (uint32_t phase = 0; phase < PROGRAM_PHASE_COUNT; phase++) {
        const struct breakdown *breakdown =
            &replay->breakdowns.of_phase[breakdown_row(replay, phase, chip)];
        role->phase[phase].compute_ps = breakdown->compute_ps;
        role->phase[phase].exposed_ps = breakdown->exposed_ps;
        role->compute_ps += breakdown->compute_ps;
        role->exposed_ps += breakdown->exposed_ps;
    }
    /* What is waited for behind the last pass, reductions most of all, holds up no pass. */
    int64_t const behind_ps =
        role->exposed_ps - self->exposed_last_ps - role->phase[PROGRAM_PHASE_UPDATE].exposed_ps;
    role->phase[self->last_phase].exposed_ps -= behind_ps;
    role->phase[PROGRAM_PHASE_UPDATE].exposed_ps += behind_ps;
    role->idle_ps = step_ps - role->compute_ps - role->exposed_ps;
    if (replay->p2p != NULL) {
        role->waiting_ps = replay->p2p->waits[chip].waiting_ps;
        role->sent_bytes = replay->p2p->waits[chip].sent_bytes;
    }
    role->bubble_ps = role->idle_ps - role->waiting_ps;
    SIM_ASSERT(role->bubble_ps >= 0);
}

static enum status role_results(struct arena *arena, struct replay *replay, struct trace *trace,
                                struct error *reterr)
{
    uint32_t const count = replay->program->role_count;
    void *memory = NULL, *last = NULL;
    STATUS_TRY(arena_try(arena, count, sizeof *trace->roles, &memory, reterr));
    STATUS_TRY(arena_try(arena, count, sizeof(uint32_t), &last, reterr));
    trace->roles = memory;
    trace->role_count = count;
    uint32_t *chip_of = memset(last, 0xff, count * sizeof *chip_of);
    for (uint32_t chip = 0; chip < replay->chip_count; chip++) {
        uint32_t const role = replay->chips[chip].role;
        uint32_t *at = &chip_of[role];
        if (*at == UINT32_MAX || replay->steps.finished_ps[chip] > replay->steps.finished_ps[*at])
            *at = chip;
        struct trace_memory *most = &trace->roles[role].memory;
        if ((uint64_t)replay->breakdowns.memories[chip].peak_bytes >= most->peak_bytes)
            memory_results(replay, chip, most);
    }
    for (uint32_t role = 0; role < count; role++) {
        const struct role_table *table = &replay->roles[role];
        role_times(replay, chip_of[role], trace->step_ps, &trace->roles[role]);
        trace->roles[role].curve = table->curve;
        if (table->pass_ps == NULL) continue;
        trace->roles[role].pass_ps = table->pass_ps + 1;
        trace->roles[role].pass_begin_ps = table->pass_begin_ps + 1;
        trace->roles[role].pass_end_ps = table->pass_end_ps + 1;
        trace->roles[role].pass_count = table->pass_count - 1;
    }
    return STATUS_OK;
}

static void phase_results(const struct replay *replay, uint32_t chip, struct trace *trace)
{
    for (uint32_t phase = 0; phase < PROGRAM_PHASE_COUNT; phase++) {
        uint64_t const index = breakdown_row(replay, phase, chip);
        const struct breakdown *breakdown = &replay->breakdowns.of_phase[index];
        trace->phase[phase].begin_ps = replay->breakdowns.spans[index].begin_ps;
        trace->phase[phase].end_ps = replay->breakdowns.spans[index].end_ps;
        trace->phase[phase].compute_ps = breakdown->compute_ps;
        trace->phase[phase].exposed_ps = breakdown->exposed_ps;
        trace->phase[phase].idle_ps = breakdown->idle_ps;
        trace->phase[phase].waiting_ps = breakdown->waiting_ps;
        for (uint32_t stream = 0; stream < replay->stream_count; stream++)
            trace->phase[phase].stream_ps[stream] =
                *breakdown_stream_ps(replay, phase, stream, chip);
        trace->compute_ps += breakdown->compute_ps;
        trace->exposed_ps += breakdown->exposed_ps;
        trace->idle_ps += breakdown->idle_ps;
    }
}

/* Each instant of compute is in one set of links. */
static void links_results(const struct replay *replay, uint32_t chip, struct trace *trace)
{
    _Static_assert(TRACE_LINK_SETS_MAX == 1 << (MACHINE_AXES_MAX + 1), "an axis has no bit");
    int64_t sum_ps = 0;
    for (uint32_t set = 0; set < replay->breakdowns.link_sets; set++)
        sum_ps += trace->links_ps[set] =
            replay->breakdowns.links_ps[(uint64_t)set * replay->chip_count + chip];
    SIM_ASSERT(sum_ps == trace->compute_ps);
}

/* Whether ranks of a pipeline add up something, so that all of them end together. */
static bool roles_meet(const struct program *program)
{
    for (uint32_t i = 0; i < program->plan_count && program->role_count > 1; i++) {
        const struct plan *plan = &program->plans[i];
        for (uint32_t d = 0; d < plan->group.dimension_count; d++) {
            const struct group_dimension *at = &plan->group.dimension[d];
            bool const spans = at->axis == program->role_axis &&
                               at->size * at->stride > program->role_stride &&
                               at->stride < program->role_stride * program->role_count;
            if (spans && plan->kind != COLLECTIVE_PERMUTE) return true;
        }
    }
    return false;
}

/* The chip that ends last; where ranks of a pipeline wait for each other, the chip whose passes end
 * last, which the others wait for. */
static uint32_t reported_chip(const struct replay *replay, bool meets)
{
    uint32_t last = 0;
    for (uint32_t chip = 1; chip < replay->chip_count; chip++) {
        int64_t const by_passes = replay->chips[chip].last_end_ps - replay->chips[last].last_end_ps;
        int64_t const by_step = replay->steps.finished_ps[chip] - replay->steps.finished_ps[last];
        if (meets && by_passes != 0 ? by_passes > 0 : by_step > 0) last = chip;
    }
    return last;
}

enum status results_take(struct arena *arena, struct replay *replay, struct trace *ret_trace,
                         struct error *reterr)
{
    struct trace trace = {
        .phase_count = PROGRAM_PHASE_COUNT,
        .class_count = replay->program->class_count,
        .digest = replay->tally.digest,
        .work = {.events = engine_event_count(replay->engine),
                 .transfers = replay->tally.transfers,
                 .bound_checks = replay->tally.bound_checks,
                 .recurred = replay->tally.recurred,
                 .recorded = replay->tally.recorded,
                 .posted = replay->tally.posted,
                 .landed = replay->tally.landed,
                 .landed_off = replay->tally.landed_off,
                 .simulated = replay->tally.simulated,
                 .stretches = replay->tally.stretches,
                 .repeated = replay->tally.repeated,
                 .broken = replay->tally.broken},
        .fold = {.chips = replay->machine->chip_count,
                 .replayed = replay->chip_count,
                 .prefix = replay->tally.prefix_chips,
                 .prefix_ps = replay->tally.prefix_ps},
    };
    trace.roles_meet = roles_meet(replay->program);
    uint32_t const last = reported_chip(replay, trace.roles_meet);
    for (uint32_t chip = 0; chip < replay->chip_count; chip++)
        if (replay->steps.finished_ps[chip] > trace.step_ps)
            trace.step_ps = replay->steps.finished_ps[chip];
    trace.reported_chip = fold_machine_chip(replay->fold, replay->machine, last);
    phase_results(replay, last, &trace);
    int64_t const after_ps = trace.step_ps - replay->steps.finished_ps[last];
    trace.phase[PROGRAM_PHASE_UPDATE].idle_ps += after_ps;
    trace.idle_ps += after_ps;
    SIM_ASSERT(trace.compute_ps + trace.exposed_ps + trace.idle_ps == trace.step_ps);
    links_results(replay, last, &trace);
    STATUS_TRY(demand_results(arena, replay, last, &trace, reterr));
    link_results(replay, &trace);
    for (uint32_t index = 0; index < replay->routes->level_count; index++)
        for (uint32_t t = 0; t < replay->machine->level[index].tier_count; t++)
            level_results(replay, index, t, &trace);
    if (replay->host != NULL && !replay->host->on_level) host_results(replay, &trace);
    memory_results(replay, fullest_chip(replay), &trace.memory);
    STATUS_TRY(role_results(arena, replay, &trace, reterr));
    for (uint32_t i = 0; i < trace.phase_count; i++) trace.waiting_ps += trace.phase[i].waiting_ps;
    SIM_ASSERT(trace.waiting_ps == (replay->p2p != NULL ? replay->p2p->waits[last].waiting_ps : 0));

    STATUS_TRY(class_results(arena, replay, last, &trace, reterr));
    int64_t charged_ps = 0;
    for (uint32_t kind = 0; kind < trace.class_count; kind++)
        charged_ps += trace.classes[kind].exposed_ps;
    SIM_ASSERT(charged_ps == trace.exposed_ps);
    if (replay->records.count > 0) {
        void *memory = NULL;
        STATUS_TRY(
            arena_try(arena, replay->records.count, sizeof *trace.records.record, &memory, reterr));
        trace.records.record = memory;
        memcpy(trace.records.record, replay->records.record,
               replay->records.count * sizeof *trace.records.record);
        trace.records.count = replay->records.count;
    }
    *ret_trace = trace;
    return STATUS_OK;
}
