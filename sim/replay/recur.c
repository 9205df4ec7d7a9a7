#include "sim/replay/recur.h"

#include <string.h>

#include "sim/base/arena.h"
#include "sim/replay/port.h"
#include "sim/replay/recur_search.h"
#include "sim/replay/routed.h"
#include "sim/replay/state.h"

static bool all_is_named(const struct replay *replay)
{
    const struct replay_options *options = replay->options;
    if (options->every_layer || engine_is_reference(replay->engine)) return false;
    if (options->record || options->curves || options->count_waits || replay->steps.max != 0)
        return false;
    if (replay->prefetch.is_on || replay->p2p != NULL || replay->host != NULL ||
        replay->program->role_count != 1)
        return false;
    if (replay->roles[0].block_launches != NULL || replay->roles[0].pass_ps != NULL) return false;
    for (uint32_t i = 0; i < replay->lanes.plan_count; i++)
        for (uint32_t l = 0; l < replay->lanes.plans[i].lane_count; l++) {
            const struct lane_table *lane = &replay->lanes.plans[i].lane[l];
            if (lane->route.passed != NULL) return false;
            if (lane->routed != NULL && lane->routed->tree != NULL) return false;
        }
    return true;
}

/* Messages that name their receivers are known to inboxes as they come, and collectives that fly to
 * their logs. */
static bool rests_only(const struct replay *replay)
{
    for (uint32_t i = 0; i < replay->lanes.plan_count; i++)
        for (uint32_t l = 0; l < replay->lanes.plans[i].lane_count; l++)
            if (replay->lanes.plans[i].lane[l].routed != NULL) return true;
    return replay->lanes.flights != NULL;
}

enum status recur_build(struct arena *arena, struct replay *replay, struct error *reterr)
{
    void *memory = NULL;
    if (!all_is_named(replay)) return STATUS_OK;
    STATUS_TRY(arena_try(arena, 1, sizeof *replay->recurrence.search, &memory, reterr));
    struct recur *recur = memory;
    STATUS_TRY(recur_kept_build(arena, replay, &recur->kept, reterr));
    recur->arena = arena;
    recur->only_rest = rests_only(replay);
    STATUS_TRY(recur_state_build(arena, replay, &recur->state, reterr));
    replay->recurrence.search = recur;
    return STATUS_OK;
}

/* Whether a link works, and how: `only_shared`: messages take turns there. */
static bool link_works(const struct link_state *link, bool only_shared, int64_t now_ps)
{
    return link->free_ps > now_ps && (!only_shared || link->stream == PORT_SHARED);
}

static bool some_link_works(const struct replay *replay, bool only_shared)
{
    int64_t const now_ps = engine_now_ps(replay->engine);
    for (uint32_t i = 0; i < replay->grid.port_count * replay->chip_count; i++)
        if (link_works(&replay->grid.links[i], only_shared, now_ps)) return true;
    for (uint32_t index = 0; index < replay->routes->level_count; index++)
        for (uint32_t t = 0; t < replay->machine->level[index].tier_count; t++) {
            const struct tier_links *tier = &replay->routes->level[index].tier[t];
            for (uint32_t i = 0; i < 2 * tier->unit_count * tier->cable_count; i++)
                if (link_works(&tier->links[i % 2][i / 2], only_shared, now_ps)) return true;
        }
    return false;
}

/* Whether all that is known of the future lies in the arrays that are named, and in the engine.
 * Messages that came before their collective began are not moved. */
static bool all_is_known(struct replay *replay)
{
    const struct recur *recur = replay->recurrence.search;
    if (replay->ports != NULL && replay->ports->void_left > 0) return false;
    if (some_link_works(replay, !recur->only_rest)) return false;
    if (!recur->only_rest) return true;
    if (engine_pending_count(replay->engine) != replay->chip_count) return false;
    for (uint32_t chip = 0; chip < replay->chip_count; chip++)
        if (!stream_at(replay, PROGRAM_COMPUTE, chip)->part_runs) return false;
    return true;
}

struct pending_walk {
    struct recur_pending sum;
    int64_t now_ps;
};

static void pending_add(void *owner, int64_t at_ps, uint64_t key, const uint32_t *chips,
                        uint32_t count)
{
    struct pending_walk *walk = owner;
    int64_t const ahead_ps = at_ps - walk->now_ps;
    for (uint32_t i = 0; i < count; i++) {
        walk->sum.sums[0] += digest_record(ahead_ps, key, chips[i]);
        walk->sum.sums[1] += digest_record((int64_t)chips[i], (uint64_t)ahead_ps, key);
    }
    walk->sum.count += count;
    if (at_ps > walk->sum.latest_ps) walk->sum.latest_ps = at_ps;
}

static struct recur_pending pending_sum(struct replay *replay)
{
    struct pending_walk walk = {.now_ps = engine_now_ps(replay->engine)};
    engine_pending_each(replay->engine, pending_add, &walk);
    return walk.sum;
}

/* Whether the same waits as when the image was taken. */
static bool pending_again(struct replay *replay)
{
    struct recur *recur = replay->recurrence.search;
    const struct recur_pending *then = &recur->image_pending;
    struct recur_pending const now = pending_sum(replay);
    recur->latest_ps = now.latest_ps;
    return now.count == then->count && now.sums[0] == then->sums[0] && now.sums[1] == then->sums[1];
}

static bool inboxes_are_empty(const struct replay *replay)
{
    for (uint32_t i = 0; i < replay->lanes.plan_count; i++)
        for (uint32_t l = 0; l < replay->lanes.plans[i].lane_count; l++) {
            const struct routed_lane *routed = replay->lanes.plans[i].lane[l].routed;
            for (uint32_t k = 0; routed != NULL && k < EPOCHS_AHEAD * replay->chip_count; k++)
                if (routed->early[k] != 0) return false;
        }
    return true;
}

/* A count that another stream waits for moves with what it counts, or not at all. */
static bool wake_moves(uint32_t then, uint32_t now, uint32_t parts)
{
    return now == then || now - then == parts;
}

/* A stream of a chip has gone on by the slots and parts that all have, or has not moved. */
static bool stream_again(struct recur *recur, uint32_t stream, const struct stream_state *then,
                         const struct stream_state *now, bool first)
{
    uint32_t const slots = now->slot - then->slot, parts = now->done - then->done;
    uint32_t const epochs = (uint32_t)(now->epoch - then->epoch) % RECUR_EPOCHS;
    if (first) {
        recur->parts[stream] = parts;
        recur->epochs[stream] = epochs;
    }
    if (parts != recur->parts[stream] || epochs != recur->epochs[stream]) return false;
    if (slots == 0) return memcmp(then, now, sizeof *now) == 0;
    uint32_t const operands = now->operand_first - then->operand_first;
    return slots == recur->slots && now->begun - then->begun == parts &&
           now->op_first - then->op_first == parts &&
           (now->operand_parts == 0 || operands == recur->parts[PROGRAM_COMPUTE]) &&
           wake_moves(then->wake_done, now->wake_done, parts) &&
           wake_moves(then->wake_begun, now->wake_begun, parts);
}

static bool streams_again(struct replay *replay)
{
    struct recur *recur = replay->recurrence.search;
    const struct stream_state *now = replay->streams.states, *then;
    then = recur_image_of(&recur->state, now, 0);
    recur->slots = now->slot - then->slot;
    if (recur->slots == 0) return false; /* The first is the compute stream. */
    for (uint32_t stream = 0; stream < replay->stream_count; stream++)
        for (uint32_t chip = 0; chip < replay->chip_count; chip++) {
            uint64_t const at = (uint64_t)stream * replay->chip_count + chip;
            then = recur_image_of(&recur->state, now, at);
            if (!stream_again(recur, stream, then, &now[at], chip == 0)) return false;
        }
    return true;
}

static int64_t break_ps(const struct server_state *state, uint32_t i)
{
    int64_t const next_ps =
        i + 1u == state->run_count ? state->run_begin_ps : state->run[i + 1].begin_ps;
    return next_ps - state->run[i].end_ps;
}

/* What is settled counts, in a run, against what has been granted; the breaks between runs say
 * which are remembered as one. */
static bool servers_again(struct replay *replay, const struct server_state *states)
{
    struct recur *recur = replay->recurrence.search;
    int64_t const now_ps = engine_now_ps(replay->engine);
    for (uint32_t chip = 0; chip < replay->chip_count; chip++) {
        const struct server_state *then = recur_image_of(&recur->state, states, chip);
        const struct server_state *now = &states[chip];
        bool const in_run = now->needed || now->edge_ps == now_ps;
        if (in_run && now->settled_ps - then->settled_ps != now->dma_ps - then->dma_ps)
            return false;
        for (uint32_t i = 0; i < now->run_count; i++)
            if (break_ps(then, i) != break_ps(now, i)) return false;
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
static bool memory_again(const struct recur *recur, const struct memory_state *then,
                         const struct memory_state *now, int64_t period_ps)
{
    int64_t const more = now->total_bytes - then->total_bytes;
    bool const peaks = more > 0;
    if (!peak_again(more, then->peak_bytes, now->peak_bytes) ||
        now->peak_at_ps - then->peak_at_ps != (peaks ? period_ps : 0) ||
        now->peak_slot - then->peak_slot != (peaks ? recur->slots : 0))
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
    const struct memory_state *now = replay->accounts.memories;
    for (uint32_t chip = 0; chip < replay->chip_count; chip++)
        if (!memory_again(recur, recur_image_of(&recur->state, now, chip), &now[chip], period_ps))
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
    return streams_again(replay) && memories_again(replay, period_ps) &&
           recur_state_again(&recur->state, recur->image_ps, period_ps) &&
           servers_again(replay, replay->servers.hbm) &&
           servers_again(replay, replay->servers.vpu) && inboxes_are_empty(replay) &&
           pending_again(replay);
}

/* Goes on `times` periods later. */
static void repeat(struct replay *replay, uint64_t times)
{
    struct recur *recur = replay->recurrence.search;
    int64_t const period_ps = recur->period_ps;
    uint64_t const events = engine_event_count(replay->engine) - recur->image_events;
    recur_kept_repeat(&recur->kept, period_ps, times, recur->epochs, &replay->tally.digest);
    recur_state_repeat(&recur->state, times);
    for (uint64_t i = 0; i < (uint64_t)replay->stream_count * replay->chip_count; i++)
        replay->streams.states[i].epoch %= RECUR_EPOCHS;
    engine_jump(replay->engine, (int64_t)times * period_ps, times * events);
    replay->tally.recurred += times * events;
}

static void image_take(struct replay *replay)
{
    struct recur *recur = replay->recurrence.search;
    recur_image_take(&recur->state);
    recur->has_image = true;
    recur->image_pending = pending_sum(replay);
    recur->image_ps = engine_now_ps(replay->engine);
    recur->image_events = engine_event_count(replay->engine);
}

/* The next image is taken a quarter of the slots since the search began later. So some image lies
 * soon behind whatever has to settle, and periods of any length are found. */
static void image_next(struct recur *recur, uint32_t slot)
{
    uint32_t const ahead = (slot - recur->first) / 4;
    recur->next = slot + (ahead > 0 ? ahead : 1);
}

static void search(struct replay *replay)
{
    struct recur *recur = replay->recurrence.search;
    recur->period_ps = 0;
    replay->recurrence.keeps = false;
    recur->first = recur->next = replay->streams.states->slot;
    image_take(replay);
    image_next(recur, recur->first);
}

/* What is known without a look at the whole state: the period that is kept is not over, or this is
 * no place at which the image could come again, and another image is not due. */
static bool is_of_no_use(struct replay *replay)
{
    struct recur *recur = replay->recurrence.search;
    const struct stream_state *now = replay->streams.states;
    if (recur->period_ps != 0)
        return engine_now_ps(replay->engine) - recur->image_ps < recur->period_ps &&
               !recur->kept.failed;
    if (now->slot >= recur->next) return false;
    const struct stream_state *then = recur_image_of(&recur->state, now, 0);
    return now->position != then->position;
}

static void look(struct replay *replay)
{
    struct recur *recur = replay->recurrence.search;
    int64_t const now_ps = engine_now_ps(replay->engine);
    uint32_t const slot = replay->streams.states->slot;
    if (recur->period_ps != 0) {
        bool const again = now_ps - recur->image_ps == recur->period_ps && !recur->kept.failed;
        if (again && is_again(replay)) repeat(replay, recur_periods_ahead(replay));
        search(replay);
        return;
    }
    if (now_ps > recur->image_ps && is_again(replay) && recur_periods_ahead(replay) > 1 &&
        recur_kept_begin(recur->arena, &recur->kept,
                         engine_event_count(replay->engine) - recur->image_events)) {
        recur->period_ps = now_ps - recur->image_ps;
        replay->recurrence.keeps = true;
        image_take(replay);
        return;
    }
    if (slot < recur->next) return;
    image_take(replay);
    image_next(recur, slot);
}

void recur_ask(struct replay *replay, const uint32_t *chips, uint32_t count)
{
    bool asks = replay->recurrence.search->only_rest &&
                engine_pending_count(replay->engine) == replay->chip_count;
    for (uint32_t i = 0; !replay->recurrence.search->only_rest && i < count; i++)
        asks = asks || chips[i] == 0;
    if (!asks) return;
    replay->recurrence.asked = true;
    engine_pause(replay->engine);
}

bool recur_rest(struct replay *replay)
{
    if (!replay->recurrence.asked || replay->refusal.status != STATUS_OK) return false;
    replay->recurrence.asked = false;
    if (!is_of_no_use(replay) && all_is_known(replay)) look(replay);
    return true;
}
