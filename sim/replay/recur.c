#include "sim/replay/recur.h"

#include <string.h>

#include "sim/base/arena.h"
#include "sim/replay/promise.h"
#include "sim/replay/recur_state.h"
#include "sim/replay/routed.h"
#include "sim/replay/state.h"

enum { EPOCHS = 1 << KEY_EPOCH_BITS, EVENT_KINDS = 8, IMAGE_SMALL_BYTES = 1 << 20 };

struct kept {
    int64_t at_ps;
    uint64_t key;
    uint32_t chip;
};

/* The last event of a kind of a lane, for epochs that meet. */
struct met {
    int64_t at_ps;
    uint32_t epoch;
};

/* Events of a period that are kept at most: of 24 bytes each. */
static const uint64_t kept_max = UINT64_C(1) << 22;

struct recur {
    struct arena *arena;
    struct recur_state state;
    char *image;
    bool has_image;
    int64_t held_bytes; /* By the first chip, when an image was due the last time. */
    int64_t image_ps;
    uint64_t image_events;
    uint32_t first;    /* Slot of the first chip when the search began. */
    uint32_t next;     /* Slot from which on the next image is taken. */
    int64_t period_ps; /* While a period is kept; else 0. */
    struct kept *kept;
    uint64_t kept_count, kept_room;
    bool unkept;         /* Too many, or epochs met. */
    uint32_t *met_first; /* [plan]: of its first lane. */
    struct met (*met)[EVENT_KINDS];
    /* From the image to now, of each stream: */
    uint32_t slots;                       /* Of those that went on. */
    uint32_t parts[PROGRAM_STREAMS_MAX];  /* Done and begun; 0: it waits where it was. */
    uint32_t epochs[PROGRAM_STREAMS_MAX]; /* Collectives begun, modulo EPOCHS. */
};

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

enum status recur_build(struct arena *arena, struct replay *replay, struct error *reterr)
{
    void *memory = NULL;
    uint32_t lanes = 0;
    if (!all_is_named(replay)) return STATUS_OK;
    STATUS_TRY(arena_try(arena, 1, sizeof *replay->recurrence.search, &memory, reterr));
    struct recur *recur = memory;
    STATUS_TRY(arena_try(arena, replay->lanes.plan_count + 1ull, sizeof *recur->met_first, &memory,
                         reterr));
    recur->met_first = memory;
    for (uint32_t i = 0; i < replay->lanes.plan_count; i++) {
        recur->met_first[i] = lanes;
        lanes += replay->lanes.plans[i].lane_count;
    }
    STATUS_TRY(arena_try(arena, lanes + 1ull, sizeof *recur->met, &memory, reterr));
    recur->met = memory;
    recur->arena = arena;
    recur_state_list(replay, &recur->state);
    STATUS_TRY(arena_try(arena, recur->state.image_bytes, 1, &memory, reterr));
    recur->image = memory;
    replay->recurrence.search = recur;
    return STATUS_OK;
}

void recur_event(struct replay *replay, int64_t now_ps, uint64_t key)
{
    struct recur *recur = replay->recurrence.search;
    if (!event_key_names_epoch(key)) return;
    const struct lane_table *lane = routed_lane_of(replay, key);
    uint32_t const index =
        recur->met_first[lane->plan->index] + (uint32_t)(lane - lane->plan->lane);
    struct met *met = &recur->met[index][event_key_kind(key)];
    uint32_t const epoch = event_key_field(key, KEY_EPOCH_SHIFT, KEY_EPOCH_BITS);
    if (met->at_ps == now_ps && met->epoch != epoch) recur->unkept = true;
    *met = (struct met){now_ps, epoch};
}

void recur_digest_add(struct replay *replay, int64_t now_ps, uint64_t key, uint32_t chip)
{
    struct recur *recur = replay->recurrence.search;
    if (recur->kept_count == recur->kept_room)
        recur->unkept = true;
    else
        recur->kept[recur->kept_count++] = (struct kept){now_ps, key, chip};
}

/* Whether nothing is under way. Messages that came before their collective began are not moved. */
static bool at_rest(struct replay *replay)
{
    int64_t const now_ps = engine_now_ps(replay->engine);
    if (engine_pending_count(replay->engine) != replay->chip_count) return false;
    for (uint32_t chip = 0; chip < replay->chip_count; chip++)
        if (!stream_at(replay, PROGRAM_COMPUTE, chip)->part_runs) return false;
    for (uint32_t i = 0; i < replay->grid.port_count * replay->chip_count; i++)
        if (replay->grid.links[i].free_ps > now_ps) return false;
    for (uint32_t index = 0; index < replay->routes->level_count; index++)
        for (uint32_t t = 0; t < replay->machine->level[index].tier_count; t++) {
            const struct tier_links *tier = &replay->routes->level[index].tier[t];
            for (uint32_t i = 0; i < 2 * tier->unit_count * tier->cable_count; i++)
                if (tier->links[i % 2][i / 2].free_ps > now_ps) return false;
        }
    return replay->ports == NULL || replay->ports->void_left == 0;
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
    uint32_t const epochs = (uint32_t)(now->epoch - then->epoch) % EPOCHS;
    if (first) {
        recur->parts[stream] = parts;
        recur->epochs[stream] = epochs;
    }
    if (parts != recur->parts[stream] || epochs != recur->epochs[stream]) return false;
    if (slots == 0) return memcmp(then, now, sizeof *now) == 0;
    return slots == recur->slots && now->begun - then->begun == parts &&
           now->op_first - then->op_first == parts &&
           wake_moves(then->wake_done, now->wake_done, parts) &&
           wake_moves(then->wake_begun, now->wake_begun, parts);
}

static bool streams_again(struct replay *replay)
{
    struct recur *recur = replay->recurrence.search;
    const struct stream_state *then =
        recur_image_of(&recur->state, recur->image, replay->streams.states);
    const struct stream_state *now = replay->streams.states;
    recur->slots = now->slot - then->slot;
    if (recur->slots == 0) return false; /* The first is the compute stream. */
    for (uint32_t stream = 0; stream < replay->stream_count; stream++)
        for (uint32_t chip = 0; chip < replay->chip_count; chip++) {
            uint64_t const at = (uint64_t)stream * replay->chip_count + chip;
            if (!stream_again(recur, stream, &then[at], &now[at], chip == 0)) return false;
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
    const struct recur *recur = replay->recurrence.search;
    int64_t const now_ps = engine_now_ps(replay->engine);
    const struct server_state *image = recur_image_of(&recur->state, recur->image, states);
    for (uint32_t chip = 0; chip < replay->chip_count; chip++) {
        const struct server_state *then = &image[chip], *now = &states[chip];
        bool const in_run = now->needed || now->edge_ps == now_ps;
        if (in_run && now->settled_ps - then->settled_ps != now->dma_ps - then->dma_ps)
            return false;
        for (uint32_t i = 0; i < now->run_count; i++)
            if (break_ps(then, i) != break_ps(now, i)) return false;
    }
    return true;
}

static bool is_again(struct replay *replay)
{
    const struct recur *recur = replay->recurrence.search;
    int64_t const period_ps = engine_now_ps(replay->engine) - recur->image_ps;
    const struct stream_state *image =
        recur_image_of(&recur->state, recur->image, replay->streams.states);
    if (!recur->has_image || image->position != replay->streams.states->position) return false;
    return streams_again(replay) &&
           recur_state_again(&recur->state, recur->image, recur->image_ps, period_ps) &&
           servers_again(replay, replay->servers.hbm) &&
           servers_again(replay, replay->servers.vpu) && inboxes_are_empty(replay);
}

/* The least that all chips have of a stream. */
static uint32_t least_count(struct replay *replay, uint32_t stream, bool begun)
{
    uint32_t least = UINT32_MAX;
    for (uint32_t chip = 0; chip < replay->chip_count; chip++) {
        const struct stream_state *state = stream_at(replay, stream, chip);
        uint32_t const count = begun ? state->begun : state->done;
        least = count < least ? count : least;
    }
    return least;
}

/* Whether an op asks for as many parts more as a period has, than one a period before. What has
 * been met by all chips is met in both. */
static bool needs_move(struct replay *replay, const struct need_cache *before,
                       const struct need_cache *after)
{
    const struct recur *recur = replay->recurrence.search;
    for (uint32_t i = 0; i < after->op->need_count; i++) {
        const struct program_need *need = &after->op->need[i];
        if (after->count[i] - before->count[i] == recur->parts[need->stream]) continue;
        uint64_t const most =
            (after->count[i] > before->count[i] ? after->count[i] : before->count[i]) +
            (uint64_t)after->op->parts * after->per_part[i];
        if (most > least_count(replay, need->stream, need->begun)) return false;
    }
    return after->operand_parts == 0 ||
           after->operand_first - before->operand_first == recur->parts[PROGRAM_COMPUTE];
}

/* Whether a slot is like the one a period before. */
static bool slot_again(struct replay *replay, uint32_t slot)
{
    const struct role_table *role = &replay->roles[0];
    uint32_t const earlier = slot - replay->recurrence.search->slots;
    uint32_t const template = role->slot_template[slot];
    if (template != role->slot_template[earlier]) return false;
    const struct program_block *of[] = {program_slot_block(role->role, earlier),
                                        program_slot_block(role->role, slot)};
    if (of[0]->phase != of[1]->phase) return false;
    for (uint32_t stream = 0; stream < replay->stream_count; stream++) {
        uint32_t const count =
            replay->streams.ops[template * PROGRAM_STREAMS_MAX + stream].op_count;
        for (uint32_t position = 0; position < count; position++) {
            struct need_cache before, after;
            struct stream_state at = {.slot = earlier, .position = (uint16_t)position};
            streams_needs_fill(replay, role, stream, &at, &before);
            at.slot = slot;
            streams_needs_fill(replay, role, stream, &at, &after);
            if (!needs_move(replay, &before, &after)) return false;
        }
    }
    return true;
}

/* How many more periods the slots ahead are like those behind. */
static uint64_t slots_ahead(struct replay *replay)
{
    const struct recur *recur = replay->recurrence.search;
    uint32_t least = UINT32_MAX, most = 0;
    for (uint32_t stream = 0; stream < replay->stream_count; stream++)
        for (uint32_t chip = 0; chip < replay->chip_count && recur->parts[stream] > 0; chip++) {
            uint32_t const slot = stream_at(replay, stream, chip)->slot;
            least = slot < least ? slot : least;
            most = slot > most ? slot : most;
        }
    uint32_t like = least;
    while (like + 1 < replay->roles[0].role->slot_count && slot_again(replay, like + 1)) like++;
    return like <= most ? 0 : (like - most) / recur->slots;
}

/* Periods until a count that grows by `parts` in each comes to what somebody waits for. */
static uint64_t periods_until(uint32_t count, uint32_t wanted, uint32_t parts)
{
    if (parts == 0 || count >= wanted) return UINT64_MAX;
    return (wanted - count - 1) / parts;
}

/* How many more periods those go on waiting who wait for counts of a stream that do not move. */
static uint64_t waiters_ahead(const struct replay *replay, const struct stream_state *image,
                              uint32_t stream, uint32_t chip)
{
    const struct stream_state *states = replay->streams.states;
    const struct stream_state *state = &states[(uint64_t)stream * replay->chip_count + chip];
    uint32_t const parts = replay->recurrence.search->parts[stream];
    uint64_t least = UINT64_MAX;
    for (uint32_t bits = state->waiters; bits != 0; bits &= bits - 1) {
        uint64_t const waiter = (uint64_t)__builtin_ctz(bits) * replay->chip_count + chip;
        uint32_t const wants = states[waiter].wants, moved = wants - image[waiter].wants;
        if (moved == 2 * parts) continue;
        if (moved != 0) return 0;
        uint64_t const most =
            periods_until((wants & 1) != 0 ? state->begun : state->done, wants / 2, parts);
        least = most < least ? most : least;
    }
    return least;
}

/* How many more periods no stream that waits where it was can go on. */
static uint64_t waits_ahead(struct replay *replay)
{
    const struct recur *recur = replay->recurrence.search;
    const struct stream_state *image =
        recur_image_of(&recur->state, recur->image, replay->streams.states);
    uint64_t least = UINT64_MAX;
    for (uint32_t stream = 0; stream < replay->stream_count; stream++)
        for (uint32_t chip = 0; chip < replay->chip_count; chip++) {
            const struct stream_state *state = stream_at(replay, stream, chip);
            uint64_t most = waiters_ahead(replay, image, stream, chip);
            least = most < least ? most : least;
            if (recur->parts[stream] > 0 || state->phase == STREAM_FINISHED) continue;
            if (state->phase != STREAM_WAITS) return 0;
            const struct need_cache *needs = streams_needs(replay, stream, chip);
            for (uint32_t i = 0; i < needs->op->need_count; i++) {
                const struct program_need *need = &needs->op->need[i];
                const struct stream_state *other = stream_at(replay, need->stream, chip);
                most = periods_until(need->begun ? other->begun : other->done, needs->count[i],
                                     recur->parts[need->stream]);
                least = most < least ? most : least;
            }
        }
    return least;
}

static uint64_t periods_ahead(struct replay *replay)
{
    int64_t const now_ps = engine_now_ps(replay->engine);
    uint64_t const clock =
        (uint64_t)((TIME_PS_END / 2 - now_ps) / (now_ps - replay->recurrence.search->image_ps));
    uint64_t const slots = slots_ahead(replay);
    uint64_t const waits = slots == 0 ? 0 : waits_ahead(replay);
    uint64_t const least = slots < waits ? slots : waits;
    return least < clock ? least : clock;
}

/* The digest of what was kept, `times` periods later. */
static void digest_repeat(struct replay *replay, int64_t period_ps, uint64_t times)
{
    const struct recur *recur = replay->recurrence.search;
    for (uint64_t i = 0; i < recur->kept_count; i++) {
        const struct kept *kept = &recur->kept[i];
        bool const turns = event_key_names_epoch(kept->key);
        uint32_t const epochs = turns ? recur->epochs[event_key_stream(kept->key)] : 0;
        uint64_t const rest = kept->key & ~((uint64_t)(EPOCHS - 1) << KEY_EPOCH_SHIFT);
        uint64_t epoch = event_key_field(kept->key, KEY_EPOCH_SHIFT, KEY_EPOCH_BITS);
        for (uint64_t k = 1; k <= times; k++) {
            epoch = (epoch + epochs) % EPOCHS;
            replay->tally.digest +=
                digest_record(kept->at_ps + (int64_t)k * period_ps,
                              turns ? rest | epoch << KEY_EPOCH_SHIFT : kept->key, kept->chip);
        }
    }
}

/* Goes on `times` periods later. */
static void repeat(struct replay *replay, uint64_t times)
{
    struct recur *recur = replay->recurrence.search;
    int64_t const period_ps = recur->period_ps;
    uint64_t const events = engine_event_count(replay->engine) - recur->image_events;
    digest_repeat(replay, period_ps, times);
    recur_state_repeat(&recur->state, recur->image, times);
    for (uint64_t i = 0; i < (uint64_t)replay->stream_count * replay->chip_count; i++)
        replay->streams.states[i].epoch %= EPOCHS;
    engine_jump(replay->engine, (int64_t)times * period_ps, times * events);
    for (uint32_t chip = 0; chip < replay->chip_count; chip++)
        engine_post(replay->engine, replay->chips[chip].part_end_ps,
                    event_key_make(EVENT_COMPUTE_END, 0, PROGRAM_COMPUTE, 0),
                    channel_of(replay, EVENT_COMPUTE_END, 0), chip);
    replay->tally.recurred += times * events;
}

/* A large image is taken only where the first chip holds as much as when one was due before: a step
 * of training holds more with each layer, or less, and its state never comes again. */
static void image_take(struct replay *replay)
{
    struct recur *recur = replay->recurrence.search;
    int64_t const held_bytes = replay->accounts.memories[0].total_bytes;
    recur->has_image =
        recur->state.image_bytes <= IMAGE_SMALL_BYTES || held_bytes == recur->held_bytes;
    recur->held_bytes = held_bytes;
    if (!recur->has_image) return;
    recur_image_take(&recur->state, recur->image);
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

/* Whether there is room for the events of a period like the one since the image. */
static bool kept_reserve(struct replay *replay)
{
    struct recur *recur = replay->recurrence.search;
    uint64_t const events = engine_event_count(replay->engine) - recur->image_events;
    if (events > kept_max) return false;
    if (events <= recur->kept_room) return true;
    recur->kept = arena_take(recur->arena, events, sizeof *recur->kept);
    recur->kept_room = recur->kept == NULL ? 0 : events;
    return recur->kept != NULL;
}

/* What is known without a look at the whole state: the period that is kept is not over, or this is
 * no place at which the image could come again, and another image is not due. */
static bool is_of_no_use(struct replay *replay)
{
    const struct recur *recur = replay->recurrence.search;
    const struct stream_state *now = replay->streams.states;
    const struct stream_state *image = recur_image_of(&recur->state, recur->image, now);
    if (recur->period_ps != 0)
        return engine_now_ps(replay->engine) - recur->image_ps < recur->period_ps && !recur->unkept;
    return now->slot < recur->next && now->position != image->position;
}

static void look(struct replay *replay)
{
    struct recur *recur = replay->recurrence.search;
    int64_t const now_ps = engine_now_ps(replay->engine);
    uint32_t const slot = replay->streams.states->slot;
    if (recur->period_ps != 0) {
        bool const again = now_ps - recur->image_ps == recur->period_ps && !recur->unkept;
        if (again && is_again(replay)) repeat(replay, periods_ahead(replay));
        search(replay);
        return;
    }
    if (now_ps > recur->image_ps && is_again(replay) && periods_ahead(replay) > 1 &&
        kept_reserve(replay)) {
        recur->period_ps = now_ps - recur->image_ps;
        recur->kept_count = 0;
        recur->unkept = false;
        replay->recurrence.keeps = true;
        image_take(replay);
        return;
    }
    if (slot < recur->next) return;
    image_take(replay);
    image_next(recur, slot);
}

void recur_ask(struct replay *replay)
{
    if (engine_pending_count(replay->engine) != replay->chip_count) return;
    replay->recurrence.asked = true;
    engine_pause(replay->engine);
}

bool recur_rest(struct replay *replay)
{
    if (!replay->recurrence.asked || replay->refusal.status != STATUS_OK) return false;
    replay->recurrence.asked = false;
    if (!is_of_no_use(replay) && at_rest(replay)) look(replay);
    return true;
}
