#include "sim/replay/fold_prefix.h"

#include <string.h>

#include "sim/base/arena.h"
#include "sim/replay/chain.h"
#include "sim/replay/flight.h"
#include "sim/replay/p2p.h"
#include "sim/replay/promise.h"
#include "sim/replay/routed.h"
#include "sim/replay/state.h"
#include "sim/replay/steps.h"

struct prefix_images {
    struct replay *whole;
    uint32_t count;   /* Chips of the whole run for each of the prefix fold. */
    uint32_t *image;  /* [chip][count] */
    uint32_t *prefix; /* [chip of the whole run] */
    bool is_refined;  /* A refining plan has begun. */
};

static bool op_refines(const struct replay *prefix, const struct program_op *op)
{
    bool const has_plan = op->kind == PROGRAM_OP_COLLECTIVE || op->kind == PROGRAM_OP_SEND;
    return has_plan && prefix->fold->refines[op->index];
}

/* The first slot of the compute stream that refining ops of a block's first slot wait for;
 * INT64_MAX: it has none. */
static int64_t refining_after(const struct replay *prefix, const struct program_block *block)
{
    const struct program_template *template = &prefix->program->templates[block->template_index];
    int64_t after = INT64_MAX;
    for (uint32_t i = 0; i < template->op_count; i++) {
        const struct program_op *op = &template->op[i];
        if (!op_refines(prefix, op)) continue;
        after = after < block->slot_first ? after : block->slot_first;
        for (uint32_t n = 0; n < op->need_count; n++) {
            int64_t const slot = program_need_slot(&op->need[n], block, block->slot_first);
            if (op->need[n].stream == PROGRAM_COMPUTE && slot < after) after = slot;
        }
    }
    return after;
}

/* The slot before those in which a refining op may begin: the prefix run stops as soon as some rank
 * has come there. */
static void end_slots_find(struct replay *prefix)
{
    for (uint32_t r = 0; r < prefix->program->role_count; r++) {
        struct role_table *table = &prefix->roles[r];
        for (uint32_t b = 0; b < table->role->block_count; b++) {
            int64_t const before = refining_after(prefix, &table->role->block[b]) - 1;
            if (before < table->prefix_end_slot)
                table->prefix_end_slot = before < 0 ? 0 : (uint32_t)before;
        }
    }
}

enum status prefix_prepare(struct arena *arena, struct replay *prefix, struct replay *whole,
                           bool *ret_worthwhile, struct error *reterr)
{
    void *images = NULL, *image = NULL, *of = NULL;
    STATUS_TRY(arena_try(arena, 1, sizeof *prefix->images, &images, reterr));
    STATUS_TRY(arena_try(arena, whole->chip_count, sizeof(uint32_t), &image, reterr));
    STATUS_TRY(arena_try(arena, whole->chip_count, sizeof(uint32_t), &of, reterr));
    prefix->images = images;
    prefix->breakdowns.digest_apart = true;
    *prefix->images = (struct prefix_images){.whole = whole,
                                             .count = whole->chip_count / prefix->chip_count,
                                             .image = image,
                                             .prefix = of};
    const struct machine *machine = whole->machine;
    for (uint32_t chip = 0; chip < whole->chip_count; chip++)
        prefix->images->prefix[chip] = fold_replayed_chip(
            prefix->fold, machine, fold_machine_chip(whole->fold, machine, chip));
    uint32_t filled = 0;
    for (uint32_t chip = 0; chip < prefix->chip_count; chip++)
        for (uint32_t other = 0; other < whole->chip_count; other++)
            if (prefix->images->prefix[other] == chip) prefix->images->image[filled++] = other;
    SIM_ASSERT(filled == whole->chip_count);
    end_slots_find(prefix);
    *ret_worthwhile = true;
    for (uint32_t r = 0; r < prefix->program->role_count; r++)
        *ret_worthwhile = *ret_worthwhile && prefix->roles[r].prefix_end_slot > 0;
    return STATUS_OK;
}

void prefix_op_begin(struct replay *prefix, const struct program_op *op)
{
    if (!op_refines(prefix, op)) return;
    prefix->images->is_refined = true;
    engine_pause(prefix->engine);
}

bool prefix_holds(const struct replay *prefix)
{
    return engine_pending_count(prefix->engine) > 0 && !prefix->images->is_refined &&
           prefix->refusal.status == STATUS_OK;
}

/* The order of an event of a chip as one of another that it stands for: discriminators say where a
 * message comes from. */
static uint64_t event_key_of_image(struct replay *prefix, uint64_t key, uint32_t chip,
                                   uint32_t image)
{
    if (!event_key_names_epoch(key)) return key;
    const struct routed_lane *routed = routed_lane_of(prefix, key)->routed;
    if (routed->tie_bits == 0) return key;
    return key + routed_tie(routed, &prefix->images->whole->routes->places[image]) -
           routed_tie(routed, &prefix->routes->places[chip]);
}

void prefix_digest_add(struct replay *prefix, int64_t now_ps, uint64_t key, uint32_t chip)
{
    const struct prefix_images *images = prefix->images;
    for (uint32_t i = 0; i < images->count; i++) {
        uint32_t const image = images->image[chip * images->count + i];
        prefix->tally.digest +=
            digest_record(now_ps, event_key_of_image(prefix, key, chip, image), image);
    }
}

void digest_add_apart(struct replay *replay, int64_t now_ps, uint64_t key, uint32_t chip)
{
    if (replay->steps.max == 0) prefix_digest_add(replay, now_ps, key, chip);
}

/* Rows of an array over chips, one after another. */
static void rows_copy(const struct prefix_images *images, uint64_t rows, const void *from, void *to,
                      uint64_t item_bytes)
{
    uint32_t const whole = images->whole->chip_count, prefix = whole / images->count;
    for (uint64_t row = 0; row < rows; row++)
        for (uint32_t chip = 0; chip < whole; chip++)
            memcpy((char *)to + (row * whole + chip) * item_bytes,
                   (const char *)from + (row * prefix + images->prefix[chip]) * item_bytes,
                   item_bytes);
}

static void p2p_copy(const struct replay *prefix, struct replay *whole)
{
    const struct prefix_images *images = prefix->images;
    const struct p2p *from = prefix->p2p;
    struct p2p *to = whole->p2p;
    if (from == NULL) return;
    rows_copy(images, prefix->stream_count, from->came, to->came, sizeof *to->came);
    rows_copy(images, prefix->stream_count, from->transfer_ps, to->transfer_ps,
              sizeof *to->transfer_ps);
    rows_copy(images, 1, from->waits, to->waits, sizeof *to->waits);
    for (uint32_t stream = 0; stream < prefix->stream_count; stream++) {
        if (prefix->program->stream[stream].kind != PROGRAM_OP_SEND) continue;
        for (uint32_t chip = 0; chip < whole->chip_count; chip++) {
            uint64_t const row = (uint64_t)stream * prefix->chip_count + images->prefix[chip];
            uint64_t const count = role_at(whole, chip)->role->stream_total[stream];
            memcpy(&to->left_ps[to->first[(uint64_t)stream * whole->chip_count + chip]],
                   &from->left_ps[from->first[row]], count * sizeof *to->left_ps);
        }
    }
}

/* What is kept of messages that came before their collective began. */
static void inboxes_copy(const struct replay *prefix, struct replay *whole)
{
    const struct prefix_images *images = prefix->images;
    for (uint32_t i = 0; i < whole->lanes.plan_count; i++)
        for (uint32_t l = 0; l < whole->lanes.plans[i].lane_count; l++) {
            const struct routed_lane *from = prefix->lanes.plans[i].lane[l].routed;
            struct routed_lane *to = whole->lanes.plans[i].lane[l].routed;
            if (to == NULL || to->tree != NULL) continue;
            SIM_ASSERT(from->tie_bits == to->tie_bits && from->number_bits == to->number_bits &&
                       from->words == to->words);
            rows_copy(images, 1, from->ahead, to->ahead, EPOCHS_AHEAD * sizeof *to->ahead);
            rows_copy(images, 1, from->ahead_units, to->ahead_units,
                      EPOCHS_AHEAD * sizeof *to->ahead_units);
            if (to->slots != NULL)
                rows_copy(images, 1, from->slots, to->slots,
                          EPOCHS_AHEAD * to->words * sizeof *to->slots);
        }
}

/*
 * A message at a link: which of the sender's images it is of. There is one, and one only.
 *
 *   A fold has as many images of one chip as of any other. A step of a plan takes members to
 *   members, each to another one. What is replayed of a receiver follows from what is replayed of
 *   its sender, in both folds (fold.h, fold_digits.c). So the images of a sender send to different
 *   images of its receiver, and are at different chips after the same number of links of the grid.
 *   A link of the grid is one chip's, so exactly one image of the sender has its message there.
 *   A cable that queues is a unit's: the sender's on the way up, the receiver's on the way down.
 *   Chips of such a unit are told apart in both folds where a plan climbs so high, so the
 *   images of one chip lie in different units, one in each image of the unit. Which cable of the
 *   unit it is follows from places that both folds keep: a rail's from the sender's place in the
 *   unit, a pair's from both ends', and where a hash of two ends decides, no two chips are alike.
 */
static uint32_t entry_image(struct replay *prefix, struct replay *whole,
                            const struct port_entry *entry, const struct link_state *link,
                            uint32_t grid_chip)
{
    const struct prefix_images *images = prefix->images;
    struct port_ticket place = {.link = NULL};
    uint32_t image = grid_chip;
    if (entry->lane->routed == NULL) return image;
    for (uint32_t i = 0; i < images->count && place.link != link; i++) {
        image = images->image[entry->chip * images->count + i];
        routed_port_ticket(whole, event_key_of_image(prefix, entry->key, entry->chip, image), image,
                           &place);
    }
    SIM_ASSERT(place.link == link);
    return image;
}

static void list_copy(struct replay *prefix, struct replay *whole, const struct port_list *from,
                      const struct link_state *link, uint32_t grid_chip, struct port_list *to)
{
    *to = (struct port_list){0, 0};
    for (uint32_t e = from->first; e != 0; e = prefix->ports->entries[e].next) {
        struct port_entry entry = prefix->ports->entries[e];
        uint32_t const image = entry_image(prefix, whole, &entry, link, grid_chip);
        const struct plan_table *plan = entry.lane->plan;
        entry.key = event_key_of_image(prefix, entry.key, entry.chip, image);
        entry.lane = &whole->lanes.plans[plan->index].lane[entry.lane - plan->lane];
        entry.chip = image;
        promise_append(whole, to, &entry);
    }
}

/* What is kept of a link. `grid_chip`: whose it is, of the grid. */
static void queue_copy(struct replay *prefix, struct replay *whole, const struct link_state *from,
                       struct link_state *to, uint32_t grid_chip)
{
    if (from->queue == 0) return;
    const struct port_queue *queue = &prefix->ports->queues[from->queue];
    uint32_t const number = port_queue_of(whole->ports, to);
    struct port_queue *own = &whole->ports->queues[number];
    struct port_flow *flows = own->flow;
    *own = *queue;
    own->flow = flows;
    list_copy(prefix, whole, &prefix->ports->kept[from->queue], to, grid_chip,
              &whole->ports->kept[number]);
    for (uint32_t s = 0; s < whole->stream_count; s++) {
        flows[s] = queue->flow[s];
        list_copy(prefix, whole, &queue->flow[s].list, to, grid_chip, &flows[s].list);
        port_flow_take_over(prefix->ports, whole, &flows[s]);
    }
}

/* Links of the grid that streams share, and what is to be passed over when it comes. */
static void ports_copy(struct replay *prefix, struct replay *whole)
{
    const struct prefix_images *images = prefix->images;
    if (whole->ports == NULL) return;
    for (uint32_t port = 0; port < whole->grid.port_count; port++)
        for (uint32_t chip = 0; chip < whole->chip_count; chip++) {
            link_at(whole, port, chip)->queue = 0;
            queue_copy(prefix, whole, link_at(prefix, port, images->prefix[chip]),
                       link_at(whole, port, chip), chip);
        }
    for (uint32_t v = 1; v <= prefix->ports->voids_used; v++) {
        const struct port_void *at = &prefix->ports->voids[v];
        for (uint32_t k = 0; k < at->count * images->count; k++) {
            uint32_t const chip = images->image[at->chip * images->count + k % images->count];
            promise_void_add(whole, event_key_of_image(prefix, at->key, at->chip, chip), chip,
                             at->stamp);
        }
    }
    for (uint32_t i = 0; i < whole->lanes.plan_count; i++)
        for (uint32_t l = 0; l < whole->lanes.plans[i].lane_count; l++) {
            const struct lane_table *lane = &whole->lanes.plans[i].lane[l];
            if (lane->route.passed != NULL)
                rows_copy(images, lane->route.hop_count,
                          prefix->lanes.plans[i].lane[l].route.passed, lane->route.passed,
                          sizeof *lane->route.passed);
        }
}

/* Cables of units that are told apart in both. Where nothing queues, one may stand for several that
 * hold what is replayed more than once. */
static void tier_copy(struct replay *prefix, struct replay *whole, uint32_t index, uint32_t t)
{
    const struct tier_links *from = &prefix->routes->level[index].tier[t];
    struct tier_links *to = &whole->routes->level[index].tier[t];
    for (uint32_t chip = 0; chip < whole->chip_count; chip++) {
        uint32_t const unit = to->unit[chip];
        uint32_t const other = from->unit[prefix->images->prefix[chip]];
        for (uint32_t cable = 0; cable < to->cable_count; cable++)
            for (uint32_t down = 0; down < 2; down++) {
                uint32_t const at = unit * to->cable_count + cable;
                uint32_t const own = other * to->cable_count + cable;
                struct link_state *link = &to->links[down][at];
                uint32_t const queue = link->queue;
                *link = from->links[down][own];
                link->queue = queue;
                if (whole->ports != NULL && queue == 0)
                    queue_copy(prefix, whole, &from->links[down][own], link, UINT32_MAX);
                to->waits[down][at] = from->waits[down][own];
                SIM_ASSERT(link->busy_ps == 0 || from->whole == to->whole);
                link->bytes = link->bytes * from->whole / to->whole;
            }
    }
}

static void passes_copy(const struct replay *prefix, struct replay *whole)
{
    for (uint32_t r = 0; r < whole->program->role_count; r++) {
        const struct role_table *from = &prefix->roles[r];
        struct role_table *to = &whole->roles[r];
        SIM_ASSERT(prefix->images->prefix[to->pass_chip] == from->pass_chip);
        if (whole->options->curves) to->curve = from->curve; /* Has room for the rest. */
        if (from->pass_ps == NULL) continue;
        uint64_t const bytes = from->pass_count * sizeof *to->pass_ps;
        memcpy(to->pass_ps, from->pass_ps, bytes);
        memcpy(to->pass_begin_ps, from->pass_begin_ps, bytes);
        memcpy(to->pass_end_ps, from->pass_end_ps, bytes);
        to->pass_until_ps = from->pass_until_ps;
    }
}

static void state_copy(struct replay *prefix, struct replay *whole)
{
    const struct prefix_images *images = prefix->images;
    const struct replay *replay = prefix; /* Further steps have rows that the first has not. */
#define X(array, rows, fields)                                                                     \
    if (whole->array != NULL)                                                                      \
        rows_copy(images, rows, prefix->array, whole->array, sizeof *whole->array);
    REPLAY_STATE_TABLE(X)
#undef X
    memcpy(whole->breakdowns.class_end_ps, prefix->breakdowns.class_end_ps,
           prefix->program->class_count * sizeof *whole->breakdowns.class_end_ps);
    ports_copy(prefix, whole);
    passes_copy(prefix, whole);
    p2p_copy(prefix, whole);
    inboxes_copy(prefix, whole);
    for (uint32_t index = 0; index < whole->routes->level_count; index++)
        for (uint32_t t = 0; t < whole->machine->level[index].tier_count; t++)
            tier_copy(prefix, whole, index, t);
}

/* An event that waits, of each image of its chip. */
static void images_post(struct replay *prefix, int64_t now_ps, uint64_t key, uint32_t chip)
{
    const struct prefix_images *images = prefix->images;
    for (uint32_t k = 0; k < images->count; k++) {
        uint32_t const image = images->image[chip * images->count + k];
        engine_post(images->whole->engine, now_ps, event_key_of_image(prefix, key, chip, image),
                    channel_of_key(images->whole, key), image);
    }
}

static void event_continue(void *owner, struct engine *engine, int64_t now_ps, uint64_t key,
                           const uint32_t *chips, uint32_t count)
{
    struct replay *prefix = owner;
    (void)engine;
    for (uint32_t i = 0; i < count; i++)
        if (!flight_void_take(prefix, key, chips[i], now_ps))
            images_post(prefix, now_ps, key, chips[i]);
}

void prefix_continue(struct replay *prefix)
{
    struct replay *whole = prefix->images->whole;
    uint64_t const count = prefix->images->count;
    flights_land_all(prefix);
    state_copy(prefix, whole);
    steps_continue(prefix, whole, prefix->images->count);
    whole->tally.transfers = prefix->tally.transfers * count;
    whole->tally.bound_checks = prefix->tally.bound_checks * count;
    whole->tally.parts_done = prefix->tally.parts_done * count;
    whole->tally.digest = prefix->tally.digest;
    whole->tally.recorded = prefix->tally.recorded;
    whole->tally.posted = prefix->tally.posted;
    whole->tally.landed = prefix->tally.landed;
    whole->tally.landed_off = prefix->tally.landed_off;
    whole->tally.simulated = prefix->tally.simulated;
    whole->tally.prefix_chips = prefix->chip_count;
    whole->tally.prefix_ps = engine_now_ps(prefix->engine);
    memcpy(whole->tally.queued_ps, prefix->tally.queued_ps, sizeof whole->tally.queued_ps);
    engine_continue(whole->engine, prefix->engine, count);
    engine_drain(prefix->engine, event_continue, prefix);
}

/* Events that wait in the run of the first step, as they are handed over. */
struct handed {
    struct replay *first;
    struct handed_event {
        int64_t at_ps;
        uint64_t key;
        uint32_t chip;
    } * events;
    uint64_t count;
};

static void event_hand(void *owner, struct engine *engine, int64_t now_ps, uint64_t key,
                       const uint32_t *chips, uint32_t count)
{
    struct handed *handed = owner;
    (void)engine;
    for (uint32_t i = 0; i < count; i++) {
        if (flight_void_take(handed->first, key, chips[i], now_ps) || key == chain_key ||
            key == stretch_key)
            continue;
        images_post(handed->first, now_ps, key, chips[i]);
        handed->events[handed->count++] = (struct handed_event){now_ps, key, chips[i]};
    }
}

/* Whether all state is in what is copied, and no chip has ended its step before now. */
static bool can_be_shared(const struct replay *first)
{
    if (first->host != NULL) return false;
    for (uint32_t i = 0; i < first->lanes.plan_count; i++)
        for (uint32_t l = 0; l < first->lanes.plans[i].lane_count; l++) {
            const struct routed_lane *routed = first->lanes.plans[i].lane[l].routed;
            if (routed != NULL && routed->tree != NULL) return false;
        }
    for (uint32_t chip = 0; chip < first->chip_count; chip++)
        if (first->steps.finished_ps[chip] != TIME_PS_NEVER &&
            first->steps.finished_ps[chip] != engine_now_ps(first->engine))
            return false;
    return true;
}

enum status prefix_share(struct arena *arena, struct replay *first, struct replay *further,
                         bool *ret_shared, struct error *reterr)
{
    uint32_t const chips = first->chip_count;
    void *same = NULL, *events = NULL;
    *ret_shared = false;
    if (!can_be_shared(first)) return STATUS_OK;
    stretches_break_all(first);
    flights_land_all(first);
    chains_break_all(first);
    STATUS_TRY(arena_try(arena, chips, sizeof(uint32_t), &same, reterr));
    STATUS_TRY(arena_try(arena, engine_pending_count(first->engine), sizeof(struct handed_event),
                         &events, reterr));
    uint32_t *itself = same;
    for (uint32_t chip = 0; chip < chips; chip++) itself[chip] = chip;
    struct prefix_images images = {.whole = further, .count = 1, .image = itself, .prefix = itself};
    struct handed handed = {.first = first, .events = events};
    first->images = &images;
    state_copy(first, further);
    engine_continue(further->engine, first->engine, 1);
    engine_drain(first->engine, event_hand, &handed);
    first->images = NULL;
    for (uint64_t i = 0; i < handed.count; i++)
        engine_post(first->engine, handed.events[i].at_ps, handed.events[i].key,
                    channel_of_key(first, handed.events[i].key), handed.events[i].chip);
    for (uint32_t chip = 0; chip < chips; chip++) {
        if (further->steps.finished_ps[chip] == TIME_PS_NEVER) continue;
        further->steps.ended[chip] = 0;
        steps_end(further, chip, engine_now_ps(further->engine));
    }
    *ret_shared = true;
    return STATUS_OK;
}
