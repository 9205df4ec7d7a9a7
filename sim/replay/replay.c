/* Sets a run up, runs it, says who is stuck. */
#include "sim/replay/replay.h"
#include "sim/replay/recur_steps.h"

#include <stdlib.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/replay/breakdown.h"
#include "sim/replay/chain.h"
#include "sim/replay/flight.h"
#include "sim/replay/fold_prefix.h"
#include "sim/replay/host.h"
#include "sim/replay/p2p.h"
#include "sim/replay/promise.h"
#include "sim/replay/record_owner.h"
#include "sim/replay/results.h"
#include "sim/replay/routed.h"
#include "sim/replay/state.h"
#include "sim/replay/stuck.h"

/* A run of at most this number of chips asks for no prefetches: the state of its chips, a few KiB
 * each, stays in the cache. */
enum { CACHED_CHIPS = 64 };

static uint64_t peak_bytes(const struct replay *replay)
{
    int64_t most = 0;
    for (uint32_t chip = 0; chip < replay->chip_count; chip++)
        if (replay->breakdowns.memories[chip].peak_bytes > most)
            most = replay->breakdowns.memories[chip].peak_bytes;
    return (uint64_t)most;
}

static bool watch(void *owner, int64_t now_ps, uint64_t event_count)
{
    struct replay *replay = owner;
    struct replay_progress const progress = {
        .share = replay->tally.parts_total == 0
                     ? 0.0
                     : (double)replay->tally.parts_done / (double)replay->tally.parts_total,
        .events = event_count,
        .now_ps = now_ps,
        .peak_bytes = replay->options->watch_memory ? peak_bytes(replay) : 0,
    };
    return replay->options->watch(replay->options->watch_owner, &progress);
}

static enum status state_build(struct arena *arena, struct replay *replay, struct error *reterr)
{
    const struct program *program = replay->program;
    uint64_t const stream_rows = (uint64_t)replay->stream_count * replay->chip_count;
    void *memory = NULL;
#define X(array, rows, fields)                                                                     \
    STATUS_TRY(arena_try(arena, (uint64_t)(rows)*replay->chip_count, sizeof *replay->array,        \
                         &memory, reterr));                                                        \
    replay->array = memory;
    REPLAY_STATE_TABLE(X)
#undef X
    STATUS_TRY(arena_try(arena, program->class_count, sizeof *replay->breakdowns.class_end_ps,
                         &memory, reterr));
    replay->breakdowns.class_end_ps = memory;
    replay->servers.ports = replay->grid.ports;
    memset(replay->lanes.running, 0xff, stream_rows * sizeof *replay->lanes.running);
    if (!replay->options->count_waits) replay->grid.waits = NULL;
    for (uint32_t chip = 0; chip < replay->chip_count; chip++) {
        if (replay->fold->chip_class != NULL)
            replay->chips[chip].chip_class = replay->fold->chip_class[chip];
        replay->steps.finished_ps[chip] = TIME_PS_NEVER;
        replay->chips[chip].first_begin_ps = TIME_PS_NEVER;
        uint32_t at[MACHINE_AXES_MAX];
        fold_coordinates(replay->fold, chip, at);
        uint32_t const role = program_role_at(program, at);
        replay->chips[chip].role = (uint16_t)role;
        struct role_table *table = &replay->roles[role];
        table->pass_chip = table->pass_chip < chip ? table->pass_chip : chip;
        replay->tally.parts_total += program->roles[role].stream_total[PROGRAM_COMPUTE];
    }
    for (uint64_t i = 0; i < stream_rows; i++) {
        replay->streams.states[i].wake_done = UINT32_MAX;
        replay->streams.states[i].wake_begun = UINT32_MAX;
    }
    return STATUS_OK;
}

/* Chips that a timeline wants, by the machine's numbers: the replayed chips that stand for them. */
static void shown_mark(struct replay *replay)
{
    if (!replay->options->record) return;
    for (uint32_t i = 0; i < replay->options->shown_count; i++) {
        uint32_t const chip =
            fold_replayed_chip(replay->fold, replay->machine, replay->options->shown_chips[i]);
        replay->chips[chip].shown = true;
        replay->records.active = true;
    }
}

/* How many messages of a lane can be under way: one that leaves, and on the wire as many as its
 * latency covers; on a route of several links, or where HBM may make them wait, up to all of an op
 * and of the one before. */
static uint64_t lane_bound(const struct replay *replay, const struct lane_table *lane)
{
    if (lane->routed != NULL) return routed_bound(lane);
    uint64_t sends = 0;
    uint32_t const positions = lane->ring ? 1 : lane->size;
    for (uint32_t position = 0; position < positions; position++) {
        uint64_t const count = (uint64_t)lane->steps.send_count[position] * lane->piece_count;
        sends = count > sends ? count : sends;
    }
    uint64_t const all = 2 * sends + 2;
    if (lane->route.hop_count > 1 || replay->servers.may_exceed) return 2 * all;
    int64_t latency_ps = 0, fastest_ps = INT64_MAX;
    for (uint32_t kind = 0; kind < replay->fold->link_class_count; kind++) {
        int64_t const link_ps = lane->costs.cost[kind * (lane->costs.units_max + 1u) + 1].link_ps;
        int64_t const hop_ps = replay->fold->link_classes[kind].latency_ps;
        fastest_ps = link_ps < fastest_ps ? link_ps : fastest_ps;
        latency_ps = hop_ps > latency_ps ? hop_ps : latency_ps;
    }
    latency_ps += replay->machine->chip.launch.message_ps;
    uint64_t const wire = (uint64_t)(latency_ps / (fastest_ps > 0 ? fastest_ps : 1)) + 3;
    return wire < all ? wire : all;
}

/* Routed messages under way at once that a run holds. Entries that are never used cost nothing. */
static const uint64_t routed_pending_max = UINT64_C(1) << 25;

/* Events of a message that shares links, on average. */
enum { SHARED_EVENTS = 3 };
static const uint64_t shared_pending_max = UINT64_C(1) << 21;

/* A bound on the events under way: the messages of each lane, and besides, each stream and lane of
 * a chip has at most one event of its own. Of routed messages, and of SENDs, which nobody has to
 * wait for, only the number of all that are sent is known, which few runs come near to: above
 * routed_pending_max it is a limit, not a bound. */
static uint64_t pending_bound(const struct replay *replay, bool *ret_is_limit)
{
    uint64_t lane_most[2][REPLAY_LANES_MAX] = {{0}}; /* [routed][lane] */
    for (uint32_t i = 0; i < replay->lanes.plan_count; i++) {
        const struct plan_table *plan = &replay->lanes.plans[i];
        for (uint32_t l = 0; l < plan->lane_count && !plan->lane[l].posts; l++) {
            uint64_t *of = &lane_most[plan->lane[l].routed != NULL][plan->lane_first + l];
            uint64_t const bound = lane_bound(replay, &plan->lane[l]);
            if (bound > *of) *of = bound;
        }
    }
    uint64_t each = 2 * (uint64_t)replay->stream_count + 2 * (uint64_t)replay->lanes.count + 3;
    uint64_t routed = 0;
    for (uint32_t stream = 0; stream < replay->stream_count; stream++)
        if (replay->program->stream[stream].kind == PROGRAM_OP_SEND)
            routed += p2p_bound(replay, stream) * replay->chip_count;
    for (uint32_t lane = 0; lane < replay->lanes.count; lane++) {
        each += lane_most[false][lane];
        routed += lane_most[true][lane] * replay->chip_count;
    }
    *ret_is_limit = routed > routed_pending_max;
    uint64_t const all = each * replay->chip_count + (*ret_is_limit ? routed_pending_max : routed);
    if (!ports_wanted(replay)) return all;
    /* Of a message that shares its links some posts wait in vain, and one more at each link. */
    *ret_is_limit = true;
    uint64_t const most = all > shared_pending_max ? all : shared_pending_max;
    return SHARED_EVENTS * all < most ? SHARED_EVENTS * all : most;
}

/* What is constant during the run. */
static enum status tables_build(struct arena *arena, struct replay *replay, struct error *reterr)
{
    STATUS_TRY(roles_build(arena, replay, reterr));
    prefetch_build(replay->program, &replay->machine->chip, replay->roles, &replay->prefetch);
    replay->stream_count = replay->program->stream_count;
    replay->chip_count = replay->fold->chip_count;
    breakdown_links_build(replay);
    STATUS_TRY(grid_links_build(arena, replay->machine, replay->fold, &replay->grid, reterr));
    STATUS_TRY(routes_build(arena, replay, reterr));
    STATUS_TRY(host_build_links(arena, replay, reterr));
    STATUS_TRY(streams_build(arena, replay, reterr));
    servers_build(replay);
    STATUS_TRY(cores_build(arena, replay->program, &replay->machine->chip, &replay->servers.cores,
                           reterr));
    STATUS_TRY(ops_build(arena, replay, reterr));
    return lanes_build(arena, replay, reterr);
}

/* The engine knows no machine. */
static enum status engine_build(struct arena *arena, const struct engine_options *options,
                                struct replay *replay, struct error *reterr)
{
    enum status const status = engine_create(arena, options, &replay->engine, reterr);
    if (status != STATUS_LIMIT) return status;
    struct error const why = *reterr;
    return error_set(reterr, status, "/machine",
                     "%s, where %u chips are simulated; a smaller machine has fewer", why.message,
                     replay->chip_count);
}

/* All that a run has before its first event. `steps_max` 0: of the step by itself. */
static enum status replay_make(struct arena *arena, const struct replay_options *options,
                               uint32_t steps_max, const struct machine *machine,
                               const struct program *program, const struct fold *fold,
                               struct replay **ret_replay, struct error *reterr)
{
    void *memory = NULL;
    STATUS_TRY(arena_try(arena, 1, sizeof(struct replay), &memory, reterr));
    struct replay *replay = *ret_replay = memory;
    replay->machine = machine;
    replay->program = program;
    replay->fold = fold;
    replay->options = options;
    replay->steps.max = steps_max;
    replay->breakdowns.digest_apart = steps_max != 0;
    STATUS_TRY(tables_build(arena, replay, reterr));
    STATUS_TRY(state_build(arena, replay, reterr));
    shown_mark(replay);
    replay->breakdowns.effect_watchers = options->curves;
    STATUS_TRY(lanes_attach(arena, replay, reterr));
    STATUS_TRY(p2p_build(arena, replay, reterr));
    bool is_limit = false;
    uint64_t const pending_max = pending_bound(replay, &is_limit);
    struct engine_options const engine = {
        .queue = options->engine,
        .chip_count = replay->chip_count,
        .channel_count = replay_channel_count(replay),
        .pending_max = pending_max,
        .pending_is_limit = is_limit,
        .handler = replay_handle,
        .ahead = replay->chip_count > CACHED_CHIPS ? replay_ahead : NULL,
        .owner = replay,
        .watch = options->watch != NULL ? watch : NULL,
        .watch_owner = replay,
    };
    STATUS_TRY(engine_build(arena, &engine, replay, reterr));
    STATUS_TRY(ports_build(arena, replay, pending_max, reterr));
    STATUS_TRY(flights_build(arena, replay, reterr));
    STATUS_TRY(chains_build(arena, replay, reterr));
    STATUS_TRY(stretches_build(arena, replay, reterr));
    replay->breakdowns.is_off = steps_max != 0 && replay->streams.chains == NULL;
    return record_owner_build(arena, replay, reterr);
}

static void begin(struct replay *replay)
{
    for (uint32_t chip = 0; chip < replay->chip_count; chip++) {
        breakdown_resident(replay, chip);
        engine_post(replay->engine, 0, event_key_make(EVENT_START, 0, 0, 0),
                    channel_of(replay, EVENT_START, 0), chip);
    }
}

/* Plays the beginning with fewer chips, where the fold knows how; else the step is to be simulated
 * from its start on. */
static enum status begin_prefix(struct arena *arena, struct replay *whole, struct error *reterr)
{
    const struct fold *fold = whole->fold->prefix;
    struct replay *prefix = NULL;
    struct error error = {.status = STATUS_OK};
    bool worthwhile = false;
    if (fold != NULL && !whole->options->record) {
        STATUS_TRY(replay_make(arena, whole->options, whole->steps.max, whole->machine,
                               whole->program, fold, &prefix, reterr));
        STATUS_TRY(prefix_prepare(arena, prefix, whole, &worthwhile, reterr));
    }
    if (!worthwhile) {
        begin(whole);
        return STATUS_OK;
    }
    begin(prefix);
    enum status const status = engine_run(prefix->engine, &error);
    if (status == STATUS_INTERRUPTED) {
        *reterr = error;
        return status;
    }
    if (status == STATUS_OK && prefix_holds(prefix))
        prefix_continue(prefix);
    else
        begin(whole);
    return STATUS_OK;
}

/* The run of further steps. Its memory is its own, and is given back: the period is of the instants
 * alone. */
struct further {
    struct replay_options options;
    struct arena *arena;   /* NULL: there is no such run. */
    struct replay *replay; /* NULL: it has to begin with the first step. */
};

static struct replay_options further_options(const struct replay_options *options)
{
    struct replay_options plain = *options;
    plain.record = plain.curves = plain.count_waits = false;
    plain.shown_count = 0;
    return plain;
}

/* Where the first chip has ended its step: further steps begin with what has been simulated. */
static enum status further_begin(struct replay *replay, struct further *further,
                                 struct error *reterr)
{
    struct replay *own = NULL;
    bool shared = false;
    replay->steps.pauses = false;
    further->options = further_options(replay->options);
    further->arena = arena_create(0);
    if (further->arena == NULL)
        return error_set(reterr, STATUS_NO_MEMORY, "/run", "no memory for further steps");
    STATUS_TRY(replay_make(further->arena, &further->options, replay->options->steps_max,
                           replay->machine, replay->program, replay->fold, &own, reterr));
    recur_build(further->arena, own);
    STATUS_TRY(prefix_share(further->arena, replay, own, &shared, reterr));
    if (!shared) return STATUS_OK;
    if (!recur_steps_share(replay, own)) recur_steps_build(further->arena, own);
    further->replay = own;
    return STATUS_OK;
}

/* A run that is refused before it begins lacks what a prefix fold had. */
static enum status run(struct replay *replay, struct further *further, struct error *reterr)
{
    while (replay->refusal.status == STATUS_OK) {
        STATUS_TRY(engine_run(replay->engine, reterr));
        if (replay->steps.pauses && engine_pending_count(replay->engine) > 0 &&
            replay->steps.any_ended) {
            STATUS_TRY(further_begin(replay, further, reterr));
            continue;
        }
        if (replay->steps.period.steps > 0 || !recur_rest(replay)) break;
    }
    if (replay->refusal.status != STATUS_OK) *reterr = replay->refusal;
    return replay->refusal.status;
}

static enum status play(struct arena *arena, struct replay *replay, struct further *further,
                        struct trace *ret_trace, struct error *reterr)
{
    STATUS_TRY(begin_prefix(arena, replay, reterr));
    STATUS_TRY(run(replay, further, reterr));
    STATUS_TRY(stuck_check(arena, replay, reterr));
    /* Each event that was to be passed over has come, so no message has arrived twice. */
    SIM_ASSERT(replay->ports == NULL || replay->ports->void_left == 0);
    if (replay->records.failed) {
        return error_set(reterr, STATUS_NO_MEMORY, "/run",
                         "no memory for the timeline after %llu records",
                         (unsigned long long)replay->records.count);
    }
    return results_take(arena, replay, ret_trace, reterr);
}

/* Steps that follow one another, behind the step by itself. */
static enum status period_play(struct further *further, uint32_t steps_max,
                               const struct replay *first, struct trace *trace,
                               struct error *reterr)
{
    struct replay *replay = further->replay;
    if (replay == NULL) {
        STATUS_TRY(replay_make(further->arena, &further->options, steps_max, first->machine,
                               first->program, first->fold, &replay, reterr));
        recur_build(further->arena, replay);
        recur_steps_build(further->arena, replay);
        STATUS_TRY(begin_prefix(further->arena, replay, reterr));
    }
    STATUS_TRY(run(replay, NULL, reterr));
    trace->period = replay->steps.period;
    trace->work.foreseen = replay->steps.foreseen;
    if (replay->steps.period.steps > 0) return STATUS_OK;
    STATUS_TRY(stuck_check(further->arena, replay, reterr));
    trace->period = period_of(replay->steps.end_ps, replay->chip_count, steps_max);
    return STATUS_OK;
}

static enum status period_run(struct further *further, const struct replay *first,
                              struct trace *trace, struct error *reterr)
{
    const struct replay_options *options = first->options;
    /* Steps that the clock has room for. */
    int64_t const room = trace->step_ps == 0 ? 0 : TIME_PS_END / trace->step_ps / 2;
    uint32_t const steps_max =
        room < (int64_t)options->steps_max ? (uint32_t)room : options->steps_max;
    if (steps_max < 2) return STATUS_OK;
    if (steps_max < options->steps_max) further->replay = NULL;
    if (further->replay == NULL) {
        further->options = further_options(options);
        arena_destroy(further->arena);
        further->arena = arena_create(0);
    }
    if (further->arena == NULL)
        return error_set(reterr, STATUS_NO_MEMORY, "/run", "no memory for further steps");
    return period_play(further, steps_max, first, trace, reterr);
}

enum status replay_run(struct arena *arena, const struct replay_options *options,
                       const struct machine *machine, const struct program *program,
                       const struct fold *fold, struct trace *ret_trace, struct error *reterr)
{
    struct replay *replay = NULL;
    struct further further = {.arena = NULL};
    SIM_ASSERT(options->steps_max <= REPLAY_STEPS_MAX);
    STATUS_TRY(replay_make(arena, options, 0, machine, program, fold, &replay, reterr));
    recur_build(arena, replay);
    recur_steps_build(arena, replay);
    /* Messages on their way name their records, and further steps have none. */
    replay->steps.pauses = options->steps_max > 1 && !options->record;
    STATUS_TRY(windows_take(arena, replay, reterr));
    enum status status = play(arena, replay, &further, ret_trace, reterr);
    free(replay->records.record);
    if (status == STATUS_OK && options->steps_max > 1)
        status = period_run(&further, replay, ret_trace, reterr);
    arena_destroy(further.arena);
    if (status != STATUS_OK) return status;
    /* Records and results speak of the machine's chips. */
    for (uint64_t i = 0; i < ret_trace->records.count; i++)
        ret_trace->records.record[i].chip =
            fold_machine_chip(fold, machine, ret_trace->records.record[i].chip);
    SIM_ASSERT(!options->record || options->shown_count <= TRACE_SHOWN_MAX);
    for (uint32_t i = 0; options->record && i < options->shown_count; i++) {
        uint32_t const asked = options->shown_chips[i];
        ret_trace->shown.chip[i] = asked;
        ret_trace->shown.recorded[i] =
            fold_machine_chip(fold, machine, fold_replayed_chip(fold, machine, asked));
        ret_trace->shown.count = i + 1;
    }
    return STATUS_OK;
}
