/* Stretches: how they begin, end and break. */
#include "sim/replay/stretch.h"

#include "sim/base/arena.h"
#include "sim/replay/flight.h"
#include "sim/replay/p2p.h"
#include "sim/replay/stretch_record.h"

/* EVENTS_MIN: a stretch of fewer is not worth an event; EVENTS_FEW: if short ones are asked for.
 * PENDING_MAX: of one chip. VAIN_MAX: after so many more looks than stretches that came again, the
 * chip looks each VAIN_TURNth time. LOOKS_EACH, STRAYS_EACH: looks, or records into which ops of
 * another slot came, of a chip on average, after which states are looked for no more if less than
 * one of SHARE looks has found one that came again. */
enum {
    EVENTS_MIN = 30,
    EVENTS_FEW = 3,
    PENDING_MAX = 1 << 14,
    VAIN_MAX = 128,
    VAIN_TURN = 16,
    LOOKS_EACH = 24,
    STRAYS_EACH = 4,
    SHARE = 8,
};

enum status stretches_build(struct arena *arena, struct replay *replay, struct error *reterr)
{
    void *memory = NULL;
    if (replay->streams.chains == NULL || replay->host != NULL || replay->options->curves ||
        replay->options->count_waits)
        return STATUS_OK;
    for (uint32_t r = 0; r < replay->program->role_count; r++)
        if (replay->roles[r].block_launches != NULL) return STATUS_OK;
    STATUS_TRY(arena_try(arena, 1, sizeof(struct stretches), &memory, reterr));
    struct stretches *stretches = memory;
    stretches->arena = arena;
    STATUS_TRY(arena_try(arena, replay->chip_count, sizeof *stretches->runs, &memory, reterr));
    stretches->runs = memory;
    STATUS_TRY(arena_try(arena, replay->chip_count, sizeof *stretches->chips, &memory, reterr));
    stretches->chips = memory;
    STATUS_TRY(arena_try(arena, replay->chip_count, sizeof *stretches->notes, &memory, reterr));
    stretches->notes = memory;
    STATUS_TRY(stretch_slots_build(arena, replay, &stretches->slots, reterr));
    struct engine_options const engine = {
        .queue = "reference",
        .chip_count = replay->chip_count,
        .channel_count = replay_channel_count(replay),
        .pending_max = PENDING_MAX,
        .handler = replay_handle,
        .owner = replay,
    };
    STATUS_TRY(engine_create(arena, &engine, &stretches->engine, reterr));
    replay->streams.stretches = stretches;
    return STATUS_OK;
}

static bool streams_are_quiet(struct replay *replay, uint32_t chip)
{
    for (uint32_t stream = 1; stream < replay->stream_count; stream++) {
        const struct stream_state *state = stream_at(replay, stream, chip);
        if (state->phase == STREAM_WAITS || state->phase == STREAM_FINISHED) continue;
        if (state->phase != STREAM_RUNS ||
            replay->program->stream[stream].kind != PROGRAM_OP_RECEIVE)
            return false;
    }
    return true;
}

static bool collectives_are_quiet(struct replay *replay, uint32_t chip, int64_t now_ps)
{
    const struct flights *flights = replay->lanes.flights;
    if (flights->of_chip[chip] != 0) return false;
    for (uint32_t stream = 0; stream < replay->stream_count; stream++)
        if (flights->aloft[(uint64_t)stream * replay->chip_count + chip].void_ps != 0) return false;
    for (uint32_t lane = 0; lane < replay->lanes.count; lane++) {
        const struct lane_state *state = lane_at(replay, lane, chip);
        if (state->waiting || state->free_ps > now_ps) return false;
    }
    return true;
}

static bool is_quiet(struct replay *replay, uint32_t chip, int64_t now_ps)
{
    const struct chip_state *self = &replay->chips[chip];
    const struct stream_state *compute = stream_at(replay, PROGRAM_COMPUTE, chip);
    if (self->running != 0 || self->sends != 0 || replay->images != NULL) return false;
    if (self->part_end_ps <= now_ps || self->part_begin_ps != now_ps || compute->part != 0)
        return false;
    if (stream_has_come(compute) || self->block_phase >= PROGRAM_PHASE_UPDATE) return false;
    if (replay->streams.chains->of[chip].end_ps > now_ps || self->first_begin_ps > now_ps)
        return false;
    if (replay->breakdowns.spans[breakdown_row(replay, self->block_phase, chip)].end_ps == 0)
        return false;
    if (replay->p2p != NULL) {
        const struct p2p_wait *wait = &replay->p2p->waits[chip];
        if (wait->ended || wait->idle_ps != 0) return false;
    }
    return streams_are_quiet(replay, chip) && collectives_are_quiet(replay, chip, now_ps);
}

/* The place of a name. NULL: there is no memory, or it has been taken. */
static struct stretch_place *place_of(struct replay *replay, uint32_t chip,
                                      const struct stretch_key *key)
{
    struct stretches *stretches = replay->streams.stretches;
    struct stretch_place **first = &stretches->chips[chip].bucket[key->mixed[0] % STRETCH_BUCKETS];
    for (struct stretch_place *place = *first; place != NULL; place = place->next)
        if (place->key.mixed[0] == key->mixed[0] && place->key.mixed[1] == key->mixed[1])
            return place;
    if (stretches->bytes > STRETCH_BYTES) return NULL;
    struct stretch_place *place = arena_take(stretches->arena, 1, sizeof *place);
    if (place == NULL) return NULL;
    stretches->bytes += sizeof *place;
    place->key = *key;
    place->next = *first;
    return *first = place;
}

/* Whether what is not in the name of a state is as a stretch needs it. */
static bool may_play(const struct replay *replay, uint32_t chip, const struct stretch *stretch,
                     int64_t now_ps)
{
    const struct stretch_run *run = &replay->streams.stretches->runs[chip];
    if (run->end_ps != 0 || stretch->length_ps > TIME_PS_END / 2 - now_ps) return false;
    for (enum server server = SERVER_HBM; server < SERVER_COUNT; server++)
        if (server_at(&replay->servers, server, chip)->dma_ps > TIME_PS_END / 4) return false;
    for (uint32_t i = 0; i < stretch->link_count; i++)
        if (stretch->link[i].free_ps >= 0 &&
            (stretch->link[i].link->free_ps > now_ps || stretch->link[i].link->flown))
            return false;
    return true;
}

static void play(struct replay *replay, uint32_t chip, const struct stretch *stretch,
                 int64_t now_ps)
{
    struct stretches *stretches = replay->streams.stretches;
    int64_t const end_ps = now_ps + stretch->length_ps;
    stretches->runs[chip] =
        (struct stretch_run){.of = stretch, .begin_ps = now_ps, .end_ps = end_ps};
    replay->streams.stretched++;
    replay->tally.repeated++;
    if (stretches->chips[chip].vain > 0) stretches->chips[chip].vain--;
    if (stretches->chips[chip].vain > 0) stretches->chips[chip].vain--;
    for (uint32_t i = 0; i < stretch->link_count; i++)
        stretch->link[i].link->flown = stretch->link[i].free_ps >= 0;
    engine_post(replay->engine, end_ps, stretch_key, channel_of_key(replay, stretch_key), chip);
}

/* Whether the stretch that is recorded goes on. One that has come to the next slot is none. */
static bool goes_on(struct replay *replay, uint32_t chip)
{
    const struct stretch_recorder *recorder = replay->streams.stretches->chips[chip].recorder;
    if (!stretch_is_recorded(replay, chip)) return false;
    if (recorder->streams[PROGRAM_COMPUTE].slot != replay->streams.states[chip].slot) {
        stretch_drop(replay, chip);
        return false;
    }
    return recorder->event_count < (replay->options->short_stretches ? EVENTS_FEW : EVENTS_MIN);
}

/* Ends all where few states come again. */
static bool is_in_vain(struct replay *replay)
{
    struct stretches *stretches = replay->streams.stretches;
    uint64_t const looks = ++stretches->looks;
    uint64_t const chips = replay->chip_count;
    if (replay->options->short_stretches) return false;
    if (looks < LOOKS_EACH * chips && stretches->strays < STRAYS_EACH * chips) return false;
    if (replay->tally.repeated * SHARE > looks) return false;
    for (uint32_t chip = 0; chip < replay->chip_count; chip++)
        if (stretches->runs[chip].end_ps != 0) return false;
    for (uint32_t chip = 0; chip < replay->chip_count; chip++)
        if (stretches->notes[chip].is_on) stretch_drop(replay, chip);
    replay->streams.stretches = NULL;
    return true;
}

/* Whether a look for the state of a chip may find something, by what was found before. */
static bool is_worth(struct replay *replay, uint32_t chip)
{
    struct stretch_chip *own = &replay->streams.stretches->chips[chip];
    if (replay->options->short_stretches) return true;
    if (own->drops[stretch_site(replay, chip)] >= STRETCH_SITE_DROPS) return false;
    return own->vain < VAIN_MAX || own->turn++ % VAIN_TURN == 0;
}

bool stretch_settle(struct replay *replay, uint32_t chip, int64_t now_ps)
{
    struct stretch_chip *own = &replay->streams.stretches->chips[chip];
    struct stretch_place *place = own->here;
    struct stretch_key key;
    own->here = NULL;
    if (chip == 0) return false;
    if (!stretch_is_recorded(replay, chip) && replay->streams.stretches->runs[chip].end_ps != 0)
        return false;
    if (place == NULL) {
        if (goes_on(replay, chip)) return false;
        if (!stretch_is_recorded(replay, chip) && !is_worth(replay, chip)) return false;
        if (!is_quiet(replay, chip, now_ps)) return false;
        if (stretch_key_find(replay, chip, now_ps, &key)) place = place_of(replay, chip, &key);
        own->vain++;
        if (is_in_vain(replay)) return false;
    }
    if (stretch_is_recorded(replay, chip)) {
        if (place == NULL)
            stretch_drop(replay, chip);
        else
            stretch_keep(replay, chip, place, now_ps);
    }
    if (place == NULL) return false;
    if (place->stretch == NULL) {
        stretch_record(replay, chip, place, now_ps);
        return false;
    }
    if (!may_play(replay, chip, place->stretch, now_ps)) return false;
    play(replay, chip, place->stretch, now_ps);
    return true;
}

static void stop(struct replay *replay, uint32_t chip)
{
    struct stretches *stretches = replay->streams.stretches;
    const struct stretch *stretch = stretches->runs[chip].of;
    for (uint32_t i = 0; i < stretch->link_count; i++)
        if (stretch->link[i].free_ps >= 0) stretch->link[i].link->flown = false;
    stretches->runs[chip].of = NULL;
}

void stretch_end(struct replay *replay, uint32_t chip)
{
    struct stretches *stretches = replay->streams.stretches;
    const struct stretch *stretch = stretches->runs[chip].of;
    stretches->runs[chip].end_ps = 0;
    replay->streams.stretched--;
    if (stretch == NULL) { /* It has been broken. */
        engine_count(replay->engine, -1);
        return;
    }
    int64_t const begin_ps = stretches->runs[chip].begin_ps;
    stop(replay, chip);
    stretch_close(replay, chip, stretch, begin_ps);
    stretches->chips[chip].here = stretch->to;
    chain_offer(replay, chip);
}

static void event_repost(void *owner, struct engine *engine, int64_t now_ps, uint64_t key,
                         const uint32_t *chips, uint32_t count)
{
    struct replay *replay = owner;
    (void)engine;
    for (uint32_t i = 0; i < count; i++)
        engine_post(replay->engine, now_ps, key, channel_of_key(replay, key), chips[i]);
}

void stretch_break(struct replay *replay, uint32_t chip)
{
    struct stretches *stretches = replay->streams.stretches;
    struct flights *flights = replay->lanes.flights;
    struct chains *chains = replay->streams.chains;
    struct flight_instant const order = flights->order;
    uint64_t const latest_key = flights->latest_key;
    struct engine *engine = replay->engine;
    uint32_t const offered = chains->offered;
    bool const is_offered = chains->is_offered;
    int64_t const begin_ps = stretches->runs[chip].begin_ps;
    stop(replay, chip);
    replay->tally.broken++;
    chains->is_offered = false;
    replay->engine = stretches->engine;
    engine_restart(stretches->engine, begin_ps);
    chain_offer(replay, chip);
    chain_settle(replay, begin_ps);
    engine_run_before(stretches->engine, order.at_ps, order.key);
    replay->engine = engine;
    flights->order = order;
    flights->latest_key = latest_key;
    chains->offered = offered;
    chains->is_offered = is_offered;
    engine_count(engine, (int64_t)engine_event_count(stretches->engine));
    engine_drain(stretches->engine, event_repost, replay);
}

void stretches_break_all(struct replay *replay)
{
    struct stretches *stretches = replay->streams.stretches;
    for (uint32_t chip = 0; stretches != NULL && chip < replay->chip_count; chip++) {
        stretch_clear(replay, chip);
        replay->streams.stretched -= stretches->runs[chip].end_ps != 0;
        stretches->runs[chip].end_ps = 0; /* Events of broken stretches are dropped. */
    }
}

void stretches_clear_link(struct replay *replay, const struct link_state *link)
{
    struct stretches *stretches = replay->streams.stretches;
    if (replay->streams.stretched == 0) return;
    for (uint32_t chip = 0; chip < replay->chip_count; chip++) {
        const struct stretch *stretch = stretches->runs[chip].of;
        for (uint32_t i = 0; stretch != NULL && i < stretch->link_count; i++)
            if (stretch->link[i].link == link) {
                stretch_break(replay, chip);
                return;
            }
    }
}

void stretches_jumped(struct replay *replay, int64_t later_ps)
{
    struct stretches *stretches = replay->streams.stretches;
    if (stretches == NULL) return;
    replay->lanes.flights->order.at_ps += later_ps;
    for (uint32_t chip = 0; chip < replay->chip_count; chip++) stretch_clear(replay, chip);
}
