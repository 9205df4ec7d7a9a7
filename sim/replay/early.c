#include "sim/replay/early.h"

#include <string.h>

#include "sim/base/arena.h"
#include "sim/replay/mail.h"
#include "sim/replay/promise.h"
#include "sim/replay/routed.h"
#include "sim/replay/state.h"
#include "sim/replay/steps.h"

struct spread {
    struct replay *whole;
    uint32_t count;  /* Chips of the whole run for each of the early one. */
    uint32_t *image; /* [chip][count] */
    uint32_t *early; /* [chip of the whole run] */
    bool too_late;   /* A late plan has begun. */
};

static bool op_is_late(const struct replay *early, const struct program_op *op)
{
    bool const has_plan = op->kind == PROGRAM_OP_COLLECTIVE || op->kind == PROGRAM_OP_SEND;
    return has_plan && early->fold->late[op->index];
}

/* The first slot of the compute stream that late ops of a block's first slot wait for; INT64_MAX:
 * it has none. */
static int64_t late_after(const struct replay *early, const struct program_block *block)
{
    const struct program_template *template = &early->program->templates[block->template_index];
    int64_t after = INT64_MAX;
    for (uint32_t i = 0; i < template->op_count; i++) {
        const struct program_op *op = &template->op[i];
        if (!op_is_late(early, op)) continue;
        after = after < block->slot_first ? after : block->slot_first;
        for (uint32_t n = 0; n < op->need_count; n++) {
            int64_t const slot = program_need_slot(&op->need[n], block, block->slot_first);
            if (op->need[n].stream == PROGRAM_COMPUTE && slot < after) after = slot;
        }
    }
    return after;
}

/* The slot before those in which a late op may begin: the early run stops as soon as some rank has
 * come there. */
static void late_slots_find(struct replay *early)
{
    for (uint32_t r = 0; r < early->program->role_count; r++) {
        struct role_table *table = &early->roles[r];
        for (uint32_t b = 0; b < table->role->block_count; b++) {
            int64_t const before = late_after(early, &table->role->block[b]) - 1;
            if (before < table->late_slot) table->late_slot = before < 0 ? 0 : (uint32_t)before;
        }
    }
}

enum status early_prepare(struct arena *arena, struct replay *early, struct replay *whole,
                          bool *ret_worthwhile, struct error *reterr)
{
    void *spread = NULL, *image = NULL, *of = NULL;
    STATUS_TRY(arena_try(arena, 1, sizeof *early->spread, &spread, reterr));
    STATUS_TRY(arena_try(arena, whole->chip_count, sizeof(uint32_t), &image, reterr));
    STATUS_TRY(arena_try(arena, whole->chip_count, sizeof(uint32_t), &of, reterr));
    early->spread = spread;
    *early->spread = (struct spread){.whole = whole,
                                     .count = whole->chip_count / early->chip_count,
                                     .image = image,
                                     .early = of};
    const struct machine *machine = whole->machine;
    for (uint32_t chip = 0; chip < whole->chip_count; chip++)
        early->spread->early[chip] =
            fold_replayed_chip(early->fold, machine, fold_machine_chip(whole->fold, machine, chip));
    uint32_t filled = 0;
    for (uint32_t chip = 0; chip < early->chip_count; chip++)
        for (uint32_t other = 0; other < whole->chip_count; other++)
            if (early->spread->early[other] == chip) early->spread->image[filled++] = other;
    SIM_ASSERT(filled == whole->chip_count);
    late_slots_find(early);
    *ret_worthwhile = true;
    for (uint32_t r = 0; r < early->program->role_count; r++)
        *ret_worthwhile = *ret_worthwhile && early->roles[r].late_slot > 0;
    return STATUS_OK;
}

void early_op_begin(struct replay *early, const struct program_op *op)
{
    if (!op_is_late(early, op)) return;
    early->spread->too_late = true;
    engine_pause(early->engine);
}

bool early_holds(const struct replay *early)
{
    return engine_pending_count(early->engine) > 0 && !early->spread->too_late &&
           early->refusal.status == STATUS_OK;
}

/* The order of an event of a chip as one of another that it stands for: discriminators say where a
 * message comes from. */
static uint64_t order_of_image(struct replay *early, uint64_t order, uint32_t chip, uint32_t image)
{
    uint32_t const port = order_field(order, ORDER_PORT_SHIFT, ORDER_KIND_SHIFT - ORDER_PORT_SHIFT);
    if (port != ORDER_ROUTED || order_event(order) == EVENT_LANE_READY) return order;
    const struct routed_lane *routed = routed_lane_of(early, order)->routed;
    if (routed->tie_bits == 0) return order;
    return order + routed_tie(routed, &early->spread->whole->routes->places[image]) -
           routed_tie(routed, &early->routes->places[chip]);
}

void early_digest_add(struct replay *early, int64_t now_ps, uint64_t order, uint32_t chip)
{
    const struct spread *spread = early->spread;
    for (uint32_t i = 0; i < spread->count; i++) {
        uint32_t const image = spread->image[chip * spread->count + i];
        early->tally.digest +=
            digest_record(now_ps, order_of_image(early, order, chip, image), image);
    }
}

/* Rows of an array over chips, one after another. */
static void rows_copy(const struct spread *spread, uint64_t rows, const void *from, void *to,
                      uint64_t item_bytes)
{
    uint32_t const whole = spread->whole->chip_count, early = whole / spread->count;
    for (uint64_t row = 0; row < rows; row++)
        for (uint32_t chip = 0; chip < whole; chip++)
            memcpy((char *)to + (row * whole + chip) * item_bytes,
                   (const char *)from + (row * early + spread->early[chip]) * item_bytes,
                   item_bytes);
}

static void mail_copy(const struct replay *early, struct replay *whole)
{
    const struct spread *spread = early->spread;
    const struct mail *from = early->mail;
    struct mail *to = whole->mail;
    if (from == NULL) return;
    rows_copy(spread, early->stream_count, from->came, to->came, sizeof *to->came);
    rows_copy(spread, early->stream_count, from->transfer_ps, to->transfer_ps,
              sizeof *to->transfer_ps);
    rows_copy(spread, 1, from->waits, to->waits, sizeof *to->waits);
    for (uint32_t stream = 0; stream < early->stream_count; stream++) {
        if (early->program->stream[stream].kind != PROGRAM_OP_SEND) continue;
        for (uint32_t chip = 0; chip < whole->chip_count; chip++) {
            uint64_t const row = (uint64_t)stream * early->chip_count + spread->early[chip];
            uint64_t const count = role_at(whole, chip)->role->stream_total[stream];
            memcpy(&to->left_ps[to->first[(uint64_t)stream * whole->chip_count + chip]],
                   &from->left_ps[from->first[row]], count * sizeof *to->left_ps);
        }
    }
}

/* What is kept of messages that came before their collective began. */
static void inboxes_copy(const struct replay *early, struct replay *whole)
{
    const struct spread *spread = early->spread;
    for (uint32_t i = 0; i < whole->lanes.plan_count; i++)
        for (uint32_t l = 0; l < whole->lanes.plans[i].lane_count; l++) {
            const struct routed_lane *from = early->lanes.plans[i].lane[l].routed;
            struct routed_lane *to = whole->lanes.plans[i].lane[l].routed;
            if (to == NULL || to->tree != NULL) continue;
            SIM_ASSERT(from->tie_bits == to->tie_bits && from->number_bits == to->number_bits &&
                       from->words == to->words);
            rows_copy(spread, 1, from->early, to->early, EPOCHS_AHEAD * sizeof *to->early);
            rows_copy(spread, 1, from->early_units, to->early_units,
                      EPOCHS_AHEAD * sizeof *to->early_units);
            if (to->slots != NULL)
                rows_copy(spread, 1, from->slots, to->slots,
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
 *   Chips of such a unit are told apart in both folds where an early plan climbs so high, so the
 *   images of one chip lie in different units, one in each image of the unit. Which cable of the
 *   unit it is follows from places that both folds keep: a rail's from the sender's place in the
 *   unit, a pair's from both ends', and where a hash of two ends decides, no two chips are alike.
 */
static uint32_t entry_image(struct replay *early, struct replay *whole,
                            const struct port_entry *entry, const struct link_state *link,
                            uint32_t grid_chip)
{
    const struct spread *spread = early->spread;
    struct port_place place = {.link = NULL};
    uint32_t image = grid_chip;
    if (entry->lane->routed == NULL) return image;
    for (uint32_t i = 0; i < spread->count && place.link != link; i++) {
        image = spread->image[entry->chip * spread->count + i];
        routed_port_place(whole, order_of_image(early, entry->order, entry->chip, image), image,
                          &place);
    }
    SIM_ASSERT(place.link == link);
    return image;
}

static void list_copy(struct replay *early, struct replay *whole, const struct port_list *from,
                      const struct link_state *link, uint32_t grid_chip, struct port_list *to)
{
    *to = (struct port_list){0, 0};
    for (uint32_t e = from->first; e != 0; e = early->ports->entries[e].next) {
        struct port_entry entry = early->ports->entries[e];
        uint32_t const image = entry_image(early, whole, &entry, link, grid_chip);
        const struct plan_table *plan = entry.lane->plan;
        entry.order = order_of_image(early, entry.order, entry.chip, image);
        entry.lane = &whole->lanes.plans[plan->index].lane[entry.lane - plan->lane];
        entry.chip = image;
        promise_append(whole, to, &entry);
    }
}

/* What is kept of a link. `grid_chip`: whose it is, of the grid. */
static void queue_copy(struct replay *early, struct replay *whole, const struct link_state *from,
                       struct link_state *to, uint32_t grid_chip)
{
    if (from->queue == 0) return;
    const struct port_queue *queue = &early->ports->queues[from->queue];
    struct port_queue *own = port_queue_of(whole, to);
    *own = *queue;
    list_copy(early, whole, &queue->plain, to, grid_chip, &own->plain);
    for (uint32_t s = 0; s < whole->stream_count; s++) {
        list_copy(early, whole, &queue->flow[s].list, to, grid_chip, &own->flow[s].list);
        port_lanes_copy(early->ports, whole->ports, &own->flow[s]);
        for (uint32_t e = own->flow[s].list.first; e != 0; e = whole->ports->entries[e].next)
            port_name_add(whole->ports, e);
        if (whole->ports->lanes_lacked) port_no_room(whole);
    }
}

/* Links of the grid that streams share, and what is to be passed over when it comes. */
static void ports_copy(struct replay *early, struct replay *whole)
{
    const struct spread *spread = early->spread;
    if (whole->ports == NULL) return;
    for (uint32_t port = 0; port < whole->grid.port_count; port++)
        for (uint32_t chip = 0; chip < whole->chip_count; chip++) {
            link_at(whole, port, chip)->queue = 0;
            queue_copy(early, whole, link_at(early, port, spread->early[chip]),
                       link_at(whole, port, chip), chip);
        }
    for (uint32_t v = 1; v <= early->ports->voids_used; v++) {
        const struct port_void *at = &early->ports->voids[v];
        for (uint32_t k = 0; k < at->count * spread->count; k++) {
            uint32_t const chip = spread->image[at->chip * spread->count + k % spread->count];
            promise_void_add(whole, order_of_image(early, at->order, at->chip, chip), chip,
                             at->stamp);
        }
    }
    for (uint32_t i = 0; i < whole->lanes.plan_count; i++)
        for (uint32_t l = 0; l < whole->lanes.plans[i].lane_count; l++) {
            const struct lane_table *lane = &whole->lanes.plans[i].lane[l];
            if (lane->route.passed != NULL)
                rows_copy(spread, lane->route.hop_count, early->lanes.plans[i].lane[l].route.passed,
                          lane->route.passed, sizeof *lane->route.passed);
        }
}

/* Cables of units that are told apart in both. Where nothing queues, one may stand for several that
 * hold what is replayed more than once. */
static void tier_copy(struct replay *early, struct replay *whole, uint32_t index, uint32_t t)
{
    const struct tier_links *from = &early->routes->level[index].tier[t];
    struct tier_links *to = &whole->routes->level[index].tier[t];
    for (uint32_t chip = 0; chip < whole->chip_count; chip++) {
        uint32_t const unit = route_unit_below(to, &whole->routes->places[chip]);
        uint32_t const other =
            route_unit_below(from, &early->routes->places[early->spread->early[chip]]);
        for (uint32_t cable = 0; cable < to->cable_count; cable++)
            for (uint32_t down = 0; down < 2; down++) {
                struct link_state *link = &to->links[down][unit * to->cable_count + cable];
                uint32_t const queue = link->queue;
                const struct link_state *early_link =
                    &from->links[down][other * to->cable_count + cable];
                *link = *early_link;
                link->queue = queue;
                if (whole->ports != NULL && queue == 0)
                    queue_copy(early, whole, early_link, link, UINT32_MAX);
                to->waits[down][unit * to->cable_count + cable] =
                    from->waits[down][other * to->cable_count + cable];
                SIM_ASSERT(link->busy_ps == 0 || from->whole == to->whole);
                link->bytes = link->bytes * from->whole / to->whole;
            }
    }
}

static void passes_copy(const struct replay *early, struct replay *whole)
{
    for (uint32_t r = 0; r < whole->program->role_count; r++) {
        const struct role_table *from = &early->roles[r];
        struct role_table *to = &whole->roles[r];
        SIM_ASSERT(early->spread->early[to->pass_chip] == from->pass_chip);
        to->curve = from->curve; /* Has room for the rest. */
        if (from->pass_ps == NULL) continue;
        uint64_t const bytes = from->pass_count * sizeof *to->pass_ps;
        memcpy(to->pass_ps, from->pass_ps, bytes);
        memcpy(to->pass_begin_ps, from->pass_begin_ps, bytes);
        memcpy(to->pass_end_ps, from->pass_end_ps, bytes);
        to->pass_until_ps = from->pass_until_ps;
    }
}

static void state_copy(struct replay *early, struct replay *whole)
{
    const struct spread *spread = early->spread;
    const struct replay *replay = whole;
#define X(array, rows) rows_copy(spread, rows, early->array, whole->array, sizeof *whole->array);
    REPLAY_STATE_TABLE(X)
#undef X
    ports_copy(early, whole);
    passes_copy(early, whole);
    mail_copy(early, whole);
    inboxes_copy(early, whole);
    for (uint32_t index = 0; index < whole->routes->level_count; index++)
        for (uint32_t t = 0; t < whole->machine->level[index].tier_count; t++)
            tier_copy(early, whole, index, t);
}

/* The engine's channel of an event that waits. */
static uint32_t channel_of_order(const struct replay *replay, uint64_t order)
{
    enum replay_event const event = order_event(order);
    bool const by_lane = event == EVENT_ARRIVE || event == EVENT_HOP || event == EVENT_LAND ||
                         event == EVENT_LANE_READY || event == EVENT_PORT;
    uint32_t const number =
        by_lane ? order_field(order, ORDER_LANE_SHIFT, ORDER_LANE_BITS) : order_stream(order);
    return channel_of(replay, event, number);
}

static void event_spread(void *owner, struct engine *engine, int64_t now_ps, uint64_t order,
                         const uint32_t *chips, uint32_t count)
{
    struct replay *early = owner;
    const struct spread *spread = early->spread;
    (void)engine;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < spread->count; k++) {
            uint32_t const image = spread->image[chips[i] * spread->count + k];
            engine_post(spread->whole->engine, now_ps,
                        order_of_image(early, order, chips[i], image),
                        channel_of_order(spread->whole, order), image);
        }
}

void early_spread(struct replay *early)
{
    struct replay *whole = early->spread->whole;
    uint64_t const count = early->spread->count;
    state_copy(early, whole);
    steps_spread(early, whole, early->spread->count);
    whole->tally.transfers = early->tally.transfers * count;
    whole->tally.bound_checks = early->tally.bound_checks * count;
    whole->tally.parts_done = early->tally.parts_done * count;
    whole->tally.digest = early->tally.digest;
    whole->tally.early_chips = early->chip_count;
    whole->tally.early_ps = engine_now_ps(early->engine);
    memcpy(whole->tally.queued_ps, early->tally.queued_ps, sizeof whole->tally.queued_ps);
    engine_continue(whole->engine, early->engine, count);
    engine_drain(early->engine, event_spread, early);
}
