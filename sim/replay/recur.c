#include "sim/replay/recur.h"

#include <string.h>

#include "sim/base/arena.h"
#include "sim/replay/flight_group.h"
#include "sim/replay/p2p.h"
#include "sim/replay/recur_search.h"
#include "sim/replay/recur_steps.h"
#include "sim/replay/state.h"
#include "sim/replay/stretch.h"

enum { BARREN_MAX = 8 };

/* Whether the step may be long enough for a state to come again. What an overridden chip or link
 * delays spreads over the grid for many layers. In steps of fewer slots than 2.5 for each hop
 * between the chips farthest apart no state was seen to come again. */
static bool is_long_enough(const struct replay *replay)
{
    const struct fold *fold = replay->fold;
    uint32_t hops = 0;
    if (fold->chip_class_count == 1 && fold->link_class_count == 1) return true;
    for (uint32_t axis = 0; axis < replay->machine->grid_axis_count; axis++)
        hops += fold->period[axis] / 2;
    for (uint32_t r = 0; r < replay->program->role_count; r++)
        if (2 * replay->program->roles[r].slot_count >= 5 * hops) return true;
    return false;
}

static bool all_is_named(const struct replay *replay)
{
    const struct replay_options *options = replay->options;
    if (options->every_layer || engine_is_reference(replay->engine)) return false;
    if (options->record || options->curves || options->count_waits) return false;
    if (replay->prefetch.is_on || replay->host != NULL) return false;
    if (replay->fold->chip_class_count > RECUR_CHIP_CLASSES_MAX || !is_long_enough(replay))
        return false;
    for (uint32_t r = 0; r < replay->program->role_count; r++)
        if (replay->roles[r].block_launches != NULL) return false;
    for (uint32_t i = 0; i < replay->lanes.plan_count; i++)
        for (uint32_t l = 0; l < replay->lanes.plans[i].lane_count; l++)
            if (replay->lanes.plans[i].lane[l].route.passed != NULL) return false;
    return true;
}

static bool names_receivers(const struct replay *replay)
{
    for (uint32_t i = 0; i < replay->lanes.plan_count; i++)
        for (uint32_t l = 0; l < replay->lanes.plans[i].lane_count; l++)
            if (replay->lanes.plans[i].lane[l].routed != NULL) return true;
    return false;
}

static enum status search_build(struct arena *arena, struct replay *replay, struct error *reterr)
{
    void *memory = NULL;
    STATUS_TRY(arena_try(arena, 1, sizeof *replay->recurrence.search, &memory, reterr));
    struct recur *recur = memory;
    STATUS_TRY(recur_kept_build(arena, replay, &recur->kept, reterr));
    recur->arena = arena;
    recur->routed = names_receivers(replay);
    STATUS_TRY(
        arena_try(arena, replay->program->role_count, sizeof *recur->roles, &memory, reterr));
    recur->roles = memory;
    STATUS_TRY(recur_state_build(arena, replay, &recur->state, reterr));
    replay->recurrence.search = recur;
    return STATUS_OK;
}

void recur_build(struct arena *arena, struct replay *replay)
{
    struct error error;
    /* Without memory for a search, every layer is simulated. */
    if (all_is_named(replay)) (void)search_build(arena, replay, &error);
}

static bool all_are_in_one_step(const struct replay *replay)
{
    for (uint32_t chip = 1; chip < replay->chip_count; chip++)
        if (replay->steps.ended[chip] != replay->steps.ended[0]) return false;
    return true;
}

static bool none_flies(const struct replay *replay)
{
    const struct stretches *stretches = replay->streams.stretches;
    for (uint32_t chip = 0; stretches != NULL && chip < replay->chip_count; chip++)
        if (stretches->runs[chip].of != NULL) return false;
    for (uint32_t chip = 0; replay->lanes.flights != NULL && chip < replay->chip_count; chip++)
        if (replay->lanes.flights->of_chip[chip] != 0) return false;
    return true;
}

/* Whether all that is known of the future lies where a comparison looks. */
static bool all_is_known(const struct replay *replay)
{
    return !flight_groups_wait(replay) &&
           (!replay->recurrence.search->routed || recur_inboxes_are_empty(replay));
}

/* Finds what waits. Returns false where events of this instant decide what is compared: while
 * flights are under way they may ask which of their messages have been before; and a message whose
 * turn ends now waits for its event at a link that another one may have taken already. */
static bool pending_find(struct replay *replay)
{
    struct recur *recur = replay->recurrence.search;
    recur->pending = recur_pending_find(replay);
    if (recur->pending.earliest_ps > engine_now_ps(replay->engine)) return true;
    return none_flies(replay) && !recur->pending.turn_ends;
}

bool recur_pending_known(struct replay *replay)
{
    return all_is_known(replay) && pending_find(replay);
}

/* Whether the same waits as when the image was taken. */
static bool pending_again(struct replay *replay)
{
    const struct recur *recur = replay->recurrence.search;
    if (!pending_find(replay)) return false;
    const struct recur_pending *then = &recur->image_pending, *now = &recur->pending;
    return now->count == then->count && now->sums[0] == then->sums[0] &&
           now->sums[1] == then->sums[1];
}

/* A count that another stream waits for moves with what it counts, or not at all. */
static bool wake_moves(uint32_t then, uint32_t now, uint32_t parts)
{
    return now == then || now - then == parts;
}

/* A stream of a chip has gone on by the slots and parts that all of its role have, or has not
 * moved. */
static bool stream_again(const struct recur_role *role, uint32_t stream,
                         const struct stream_state *then, const struct stream_state *now)
{
    uint32_t const slots = now->slot - then->slot, parts = now->done - then->done;
    uint32_t const epochs = (uint32_t)(now->epoch - then->epoch) % RECUR_EPOCHS;
    if (parts != role->parts[stream] || epochs != role->epochs[stream]) return false;
    if (slots == 0) return memcmp(then, now, sizeof *now) == 0;
    uint32_t const operands = now->operand_first - then->operand_first;
    return slots == role->slots && now->begun - then->begun == parts &&
           now->op_first - then->op_first == parts &&
           (now->operand_parts == 0 || operands == role->parts[PROGRAM_COMPUTE]) &&
           wake_moves(then->wake_done, now->wake_done, parts) &&
           wake_moves(then->wake_begun, now->wake_begun, parts);
}

/* What the first chip of a role has done. */
static void role_find(struct replay *replay, uint32_t chip, struct recur_role *role)
{
    struct recur *recur = replay->recurrence.search;
    *role = (struct recur_role){.found = true};
    for (uint32_t stream = 0; stream < replay->stream_count; stream++) {
        uint64_t const at = (uint64_t)stream * replay->chip_count + chip;
        const struct stream_state *now = replay->streams.states, *then;
        then = recur_image_of(&recur->state, now, at);
        role->parts[stream] = now[at].done - then->done;
        role->epochs[stream] = (uint32_t)(now[at].epoch - then->epoch) % RECUR_EPOCHS;
        if (stream == PROGRAM_COMPUTE) role->slots = now[at].slot - then->slot;
        if (replay->p2p == NULL) continue;
        const uint32_t *came = recur_image_of(&recur->state, replay->p2p->came, at);
        role->came[stream] = replay->p2p->came[at] - *came;
    }
}

static bool chip_again(struct replay *replay, uint32_t chip)
{
    struct recur *recur = replay->recurrence.search;
    const struct recur_role *role = recur_role_of(replay, chip);
    const struct stream_state *now = replay->streams.states;
    for (uint32_t stream = 0; stream < replay->stream_count; stream++) {
        uint64_t const at = (uint64_t)stream * replay->chip_count + chip;
        if (!stream_again(role, stream, recur_image_of(&recur->state, now, at), &now[at]))
            return false;
        if (replay->p2p == NULL) continue;
        const uint32_t *then = recur_image_of(&recur->state, replay->p2p->came, at);
        if (replay->p2p->came[at] - *then != role->came[stream]) return false;
    }
    return true;
}

/* Whether the first chip's streams are where they were, which mostly tells states apart. */
static bool first_again(const struct replay *replay)
{
    const struct recur *recur = replay->recurrence.search;
    const struct stream_state *then = recur->first_streams, *now = replay->streams.states;
    uint32_t const slots = now->slot - then->slot;
    for (uint32_t stream = 0; stream < replay->stream_count; stream++) {
        const struct stream_state *other = &now[(uint64_t)stream * replay->chip_count];
        bool const waits = memcmp(&then[stream], other, sizeof *other) == 0;
        if (!waits &&
            (other->slot - then[stream].slot != slots || other->position != then[stream].position ||
             other->phase != then[stream].phase || other->part != then[stream].part))
            return false;
    }
    return slots > 0;
}

static bool streams_again(struct replay *replay)
{
    struct recur *recur = replay->recurrence.search;
    for (uint32_t r = 0; r < replay->program->role_count; r++) recur->roles[r].found = false;
    for (uint32_t chip = 0; chip < replay->chip_count; chip++) {
        struct recur_role *role = &recur->roles[replay->chips[chip].role];
        if (!role->found) role_find(replay, chip, role);
        if (!chip_again(replay, chip)) return false;
    }
    return true;
}

static int64_t break_ps(const struct server_past *past, uint32_t i)
{
    int64_t const next_ps =
        i + 1u == past->run_count ? past->run_begin_ps : past->run[i + 1].begin_ps;
    return next_ps - past->run[i].end_ps;
}

/* What is settled counts against what has been granted: in a run, and in a break that began since;
 * one that began before has both grow evenly. The breaks between runs say which are remembered as
 * one. */
static bool server_again(struct replay *replay, enum server server)
{
    struct recur *recur = replay->recurrence.search;
    int64_t const now_ps = engine_now_ps(replay->engine);
    for (uint32_t chip = 0; chip < replay->chip_count; chip++) {
        const struct chip_servers *servers_then =
            recur_image_of(&recur->state, replay->servers.states, chip);
        const struct chip_pasts *pasts_then =
            recur_image_of(&recur->state, replay->servers.pasts, chip);
        const struct server_state *then = &servers_then->of[server];
        const struct server_state *now = server_at(&replay->servers, server, chip);
        const struct server_past *past_then = &pasts_then->of[server];
        const struct server_past *past = server_past_at(&replay->servers, server, chip);
        bool const in_run = past->needed || now->edge_ps == now_ps;
        bool const counts = in_run || now->edge_ps != then->edge_ps;
        if (counts && now->settled_ps - then->settled_ps != now->dma_ps - then->dma_ps)
            return false;
        for (uint32_t i = 0; i < past->run_count; i++)
            if (break_ps(past_then, i) != break_ps(past, i)) return false;
    }
    return true;
}

/* What is held at the most grows by as much as what is held, once each period reaches it. */
static bool peak_again(int64_t more_bytes, int64_t then_bytes, int64_t now_bytes)
{
    return now_bytes - then_bytes == (more_bytes > 0 ? more_bytes : 0);
}

/* A period takes memory, and then comes to its peak at the same place each time; or it gives
 * memory, or as much as it takes, and stays below the peak. */
static bool memory_again(uint32_t slots, const struct memory_state *then,
                         const struct memory_state *now, int64_t period_ps)
{
    int64_t const more = now->total_bytes - then->total_bytes;
    bool const peaks = more > 0;
    if (!peak_again(more, then->peak_bytes, now->peak_bytes) ||
        now->peak_at_ps - then->peak_at_ps != (peaks ? period_ps : 0) ||
        now->peak_slot - then->peak_slot != (peaks ? slots : 0))
        return false;
    for (uint32_t k = 0; k < PROGRAM_MEMORY_COUNT; k++) {
        int64_t const each = now->held_bytes[k] - then->held_bytes[k];
        if (!peak_again(each, then->each_peak_bytes[k], now->each_peak_bytes[k]) ||
            now->at_peak_bytes[k] - then->at_peak_bytes[k] != (peaks ? each : 0))
            return false;
    }
    return true;
}

static bool memories_again(struct replay *replay, int64_t period_ps)
{
    struct recur *recur = replay->recurrence.search;
    const struct memory_state *now = replay->breakdowns.memories;
    for (uint32_t chip = 0; chip < replay->chip_count; chip++)
        if (!memory_again(recur_role_of(replay, chip)->slots,
                          recur_image_of(&recur->state, now, chip), &now[chip], period_ps))
            return false;
    return true;
}

static bool is_again(struct replay *replay)
{
    struct recur *recur = replay->recurrence.search;
    int64_t const period_ps = engine_now_ps(replay->engine) - recur->image_ps;
    const struct stream_state *now = replay->streams.states, *then;
    if (!recur->has_image) return false;
    then = recur_image_of(&recur->state, now, 0);
    if (then->position != now->position) return false;
    return pending_again(replay) && streams_again(replay) && memories_again(replay, period_ps) &&
           recur_state_again(&recur->state, recur->image_ps, period_ps) &&
           server_again(replay, SERVER_HBM) && server_again(replay, SERVER_VPU);
}

/* Goes on `times` periods later. */
static void repeat(struct replay *replay, uint64_t times)
{
    struct recur *recur = replay->recurrence.search;
    int64_t const period_ps = recur->period_ps;
    uint64_t const events = engine_event_count(replay->engine) - recur->image_events;
    if (replay->steps.max == 0) recur_kept_repeat(replay, period_ps, times);
    recur_state_repeat(&recur->state, times);
    for (uint32_t stream = 0; stream < replay->stream_count; stream++)
        for (uint32_t chip = 0; chip < replay->chip_count; chip++) {
            struct stream_state *state = stream_at(replay, stream, chip);
            state->epoch %= RECUR_EPOCHS;
            if (times > 0) streams_wakes_settle(replay, chip, state);
        }
    recur_others_repeat(replay, period_ps, times, times * events);
    if (times > 0) stretches_jumped(replay, (int64_t)times * period_ps);
    replay->tally.recurred += times * events;
    if (times > 0) recur->barren = 0;
}

static void image_take(struct replay *replay)
{
    struct recur *recur = replay->recurrence.search;
    recur_image_take(&recur->state);
    recur->has_image = true;
    recur->image_pending = recur->pending;
    recur->image_waiting = engine_pending_count(replay->engine);
    for (uint32_t stream = 0; stream < replay->stream_count; stream++)
        recur->first_streams[stream] = *stream_at(replay, stream, 0);
    recur->image_ps = engine_now_ps(replay->engine);
    recur->image_events = engine_event_count(replay->engine);
    recur->image_handled = recur_handled_count(replay);
}

/* The next image is taken an eighth of the slots since the search began later. So some image lies
 * soon behind whatever has to settle, and periods of any length are found. */
static void image_next(struct recur *recur, uint32_t slot)
{
    uint32_t const ahead = (slot - recur->first) / 8;
    recur->next = slot + (ahead > 0 ? ahead : 1);
}

static void keep(struct replay *replay, bool keeps)
{
    replay->recurrence.keeps = keeps;
    replay->recurrence.watches = keeps || replay->recurrence.search->watches;
}

static void search(struct replay *replay)
{
    struct recur *recur = replay->recurrence.search;
    recur->period_ps = 0;
    keep(replay, false);
    recur->first = recur->next = recur->rests_until = replay->streams.states->slot;
    recur->has_image = pending_find(replay);
    if (!recur->has_image) return;
    image_take(replay);
    image_next(recur, recur->first);
}

/* An image costs as much as some events, and a comparison as much as an image. */
static bool image_is_due(const struct replay *replay)
{
    const struct recur *recur = replay->recurrence.search;
    if (replay->streams.states->slot < recur->next) return false;
    return !recur->has_image ||
           (recur_handled_count(replay) - recur->image_handled) / 2 >= recur->state.item_count;
}

/* What is known without a look at the whole state: the period that is kept is not over, or this is
 * no place at which the image could come again, and another image is not due. */
static bool is_useless_to_stop(struct replay *replay)
{
    struct recur *recur = replay->recurrence.search;
    const struct stream_state *now = replay->streams.states;
    if (recur->period_ps != 0)
        return engine_now_ps(replay->engine) - recur->image_ps < recur->period_ps &&
               !recur->kept.failed;
    if (image_is_due(replay)) return false;
    return !recur->has_image || now->slot < recur->rests_until ||
           now->position != recur->first_streams->position;
}

/* A period has been found. Whether it is worth keeping: so much follows behind the next one that
 * has to be kept. */
static bool period_begin(struct replay *replay)
{
    struct recur *recur = replay->recurrence.search;
    uint64_t const events = engine_event_count(replay->engine) - recur->image_events;
    uint64_t const handled = recur_handled_count(replay) - recur->image_handled;
    uint64_t const worth = 2 + recur->state.item_count / (handled + 1);
    if (recur_periods_ahead(replay, worth, worth) == 0) return false;
    if (!recur_events_reserve(replay) || !recur_kept_begin(replay, events)) return false;
    recur->period_ps = engine_now_ps(replay->engine) - recur->image_ps;
    keep(replay, true);
    image_take(replay);
    return true;
}

static void look(struct replay *replay)
{
    struct recur *recur = replay->recurrence.search;
    int64_t const now_ps = engine_now_ps(replay->engine);
    uint32_t const slot = replay->streams.states->slot;
    if (recur->period_ps != 0) {
        bool const again = now_ps - recur->image_ps == recur->period_ps && !recur->kept.failed;
        if (again && is_again(replay)) repeat(replay, recur_periods_ahead(replay, 1, UINT64_MAX));
        search(replay);
        return;
    }
    if (recur->has_image && now_ps > recur->image_ps && is_again(replay)) {
        if (period_begin(replay)) return;
        /* The slots ahead are others: no place near this one is better, but the image may come
         * again later, as that of a microbatch whose layers are few. Where nothing is worth keeping
         * again and again, as where a pipeline changes often, less and less is looked at. */
        recur->rests_until = slot + (recur_role_of(replay, 0)->slots << recur->barren);
        if (recur->barren < BARREN_MAX) recur->barren++;
        return;
    }
    if (!image_is_due(replay) || !pending_find(replay)) return;
    image_take(replay);
    image_next(recur, slot);
}

/* What is known without a look at all chips: whether something is to be done in any case, or the
 * state may be that of the image. */
static bool is_worth_a_look(const struct replay *replay)
{
    const struct recur *recur = replay->recurrence.search;
    return recur->period_ps != 0 || image_is_due(replay) ||
           (engine_pending_count(replay->engine) == recur->image_waiting && first_again(replay));
}

/* A further step has begun. */
static bool steps_on(const struct replay *replay)
{
    return replay->streams.states->slot < replay->recurrence.search->first;
}

static void search_restart(struct replay *replay)
{
    struct recur *recur = replay->recurrence.search;
    recur->has_image = false;
    recur->period_ps = 0;
    keep(replay, false);
    recur->first = recur->next = recur->rests_until = replay->streams.states->slot;
}

void recur_ask(struct replay *replay, const uint32_t *chips, uint32_t count)
{
    bool asks = false;
    for (uint32_t i = 0; i < count && !asks; i++) asks = chips[i] == 0;
    if (!asks || (is_useless_to_stop(replay) && !steps_on(replay) && !recur_steps_ask(replay)))
        return;
    replay->recurrence.asked = true;
    engine_pause(replay->engine);
}

bool recur_rest(struct replay *replay)
{
    if (!replay->recurrence.asked || replay->refusal.status != STATUS_OK) return false;
    replay->recurrence.asked = false;
    if (steps_on(replay)) search_restart(replay);
    if (recur_steps_look(replay)) return false;
    if (!is_useless_to_stop(replay) && is_worth_a_look(replay) && all_are_in_one_step(replay) &&
        all_is_known(replay))
        look(replay);
    return true;
}
