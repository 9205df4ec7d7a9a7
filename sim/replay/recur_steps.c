#include "sim/replay/recur_steps.h"

#include <string.h>

#include "sim/base/arena.h"
#include "sim/replay/p2p.h"
#include "sim/replay/recur_search.h"
#include "sim/replay/route.h"
#include "sim/replay/state.h"

/* Places of a step; images of a place, each of another step; the memory of all images. */
enum { PLACES = 32, IMAGES = 2, IMAGE_BYTES_MAX = 1 << 23 };

enum { ITEM_BYTES_MAX = 64 };

/* An image costs as much as some events: what is simulated between two of them, for each item. */
enum { EVENTS_AN_ITEM = 4 };

struct step_image {
    struct recur_state state;
    struct recur_pending pending;
    int64_t at_ps;
    uint64_t met_count, look_backs;
    uint32_t step; /* The first chip's. */
    uint32_t slot;
    uint16_t position;
    bool is_taken;
};

struct recur_steps {
    struct step_image *images; /* [place][image] */
    uint32_t place_count;
    uint32_t next;    /* Place. */
    uint32_t step;    /* Of the first chip. */
    uint64_t handled; /* Events at the last place. */
};

static uint64_t state_bytes(const struct recur_state *state)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < state->array_count; i++)
        bytes += state->array[i].count * (state->array[i].item_bytes + sizeof(uint32_t));
    return bytes;
}

static enum status images_build(struct arena *arena, struct replay *replay, uint32_t places,
                                struct recur_steps *steps, struct error *reterr)
{
    void *memory = NULL;
    STATUS_TRY(arena_try(arena, (uint64_t)places * IMAGES, sizeof *steps->images, &memory, reterr));
    steps->images = memory;
    for (uint32_t i = 0; i < places * IMAGES; i++)
        STATUS_TRY(recur_state_build(arena, replay, &steps->images[i].state, reterr));
    steps->place_count = places;
    return STATUS_OK;
}

static void counts_begin(struct replay *replay)
{
    struct recur *recur = replay->recurrence.search;
    recur->watches = recur->routed;
    replay->recurrence.watches = recur->watches;
    replay->servers.look_backs = &recur->look_backs;
}

void recur_steps_build(struct arena *arena, struct replay *replay)
{
    struct recur *recur = replay->recurrence.search;
    struct error error;
    void *memory = NULL;
    if (recur == NULL || replay->options->steps_max < 2) return;
    uint64_t const most = IMAGE_BYTES_MAX / IMAGES / (state_bytes(&recur->state) + 1);
    uint32_t const places = most < PLACES ? (uint32_t)most : PLACES;
    if (places == 0 || arena_try(arena, 1, sizeof *recur->steps, &memory, &error) != STATUS_OK ||
        images_build(arena, replay, places, memory, &error) != STATUS_OK)
        return;
    recur->steps = memory;
    counts_begin(replay);
}

/* Whether images of the first step have the arrays of the further ones. */
static bool is_of_arrays(const struct recur_state *image, const struct recur_state *state)
{
    if (image->array_count != state->array_count) return false;
    for (uint32_t i = 0; i < state->array_count; i++)
        if (image->array[i].count != state->array[i].count ||
            image->array[i].fields != state->array[i].fields)
            return false;
    return true;
}

bool recur_steps_share(struct replay *first, struct replay *further)
{
    struct recur *from = first->recurrence.search, *to = further->recurrence.search;
    if (from == NULL || to == NULL || from->steps == NULL ||
        !is_of_arrays(&from->steps->images->state, &to->state) ||
        !recur_met_share(&from->kept, &to->kept))
        return false;
    to->steps = from->steps;
    to->met_count = from->met_count;
    to->look_backs = from->look_backs;
    counts_begin(further);
    /* What is left of the single step is not as with further ones behind it. */
    from->steps = NULL;
    first->servers.look_backs = NULL;
    return true;
}

/* The first slot of a place. */
static uint32_t place_slot(const struct replay *replay, uint32_t place)
{
    uint64_t const slots = role_at(replay, 0)->role->slot_count;
    return (uint32_t)(slots * place / replay->recurrence.search->steps->place_count);
}

bool recur_steps_ask(const struct replay *replay)
{
    const struct recur_steps *steps = replay->recurrence.search->steps;
    if (steps == NULL) return false;
    uint32_t const next = steps->step == replay->steps.ended[0] ? steps->next : 0;
    return next < steps->place_count && replay->streams.states->slot >= place_slot(replay, next);
}

/* --- Comparison --- */

struct comparison {
    struct replay *replay;
    struct step_image *image;
    int64_t period_ps;
};

/* The array of an image, by the items of the run. */
static struct recur_array *then_of(const struct comparison *at, const void *items)
{
    const struct recur_state *state = &at->replay->recurrence.search->state;
    uint32_t i = 0;
    while (state->array[i].items != items) i++;
    return &at->image->state.array[i];
}

static bool item_again(const struct comparison *at, const struct recur_array *array,
                       const void *then, const void *now)
{
    return recur_item_again(array->fields, then, now, at->image->at_ps, at->period_ps);
}

/* As many steps further, each chip. */
static bool ended_again(const struct comparison *at)
{
    const struct replay *replay = at->replay;
    struct recur_array *array = then_of(at, replay->steps.ended);
    for (uint32_t chip = 0; chip < replay->chip_count; chip++) {
        const uint32_t *then = recur_item_at(array, chip);
        if (replay->steps.ended[chip] - *then != replay->steps.ended[0] - at->image->step)
            return false;
    }
    return true;
}

/* Collectives are counted on from step to step, all else from the begin of a step. */
static bool counts_again(struct stream_state then, const struct stream_state *now)
{
    bool again = true;
    then.epoch = now->epoch;
#define IS_AGAIN(user, member, kind, name, keeping)                                                \
    if (RECUR_##kind == RECUR_SUM) again = again && then.member == now->member;
    STREAM_STATE_FIELDS(IS_AGAIN, , )
#undef IS_AGAIN
    return again;
}

static bool streams_again(const struct comparison *at)
{
    const struct replay *replay = at->replay;
    struct recur_array *array = then_of(at, replay->streams.states);
    for (uint64_t i = 0; i < array->count; i++) {
        struct stream_state then = *(const struct stream_state *)recur_item_at(array, i);
        struct stream_state now = replay->streams.states[i];
        then.begin_ps = now.begin_ps = 0; /* A figure. */
        if (!counts_again(then, &now) || !item_again(at, array, &then, &now)) return false;
    }
    return true;
}

/* What results are made of, and nothing else. */
static void figures_clear(struct chip_state *chip)
{
    chip->start_ps = chip->breakdown_ps = 0;
    chip->first_begin_ps = chip->last_end_ps = chip->exposed_first_ps = 0;
    chip->last_phase = 0;
}

static bool chips_again(const struct comparison *at)
{
    const struct replay *replay = at->replay;
    struct recur_array *array = then_of(at, replay->chips);
    for (uint32_t chip = 0; chip < replay->chip_count; chip++) {
        struct chip_state then = *(const struct chip_state *)recur_item_at(array, chip);
        struct chip_state now = replay->chips[chip];
        figures_clear(&then);
        figures_clear(&now);
        if (!item_again(at, array, &then, &now)) return false;
    }
    return true;
}

/* What is held has not grown, so no further step comes to hold less than nothing. */
static bool memories_again(const struct comparison *at)
{
    const struct replay *replay = at->replay;
    struct recur_array *array = then_of(at, replay->breakdowns.memories);
    for (uint32_t chip = 0; chip < replay->chip_count; chip++) {
        const struct memory_state *then = recur_item_at(array, chip);
        const struct memory_state *now = &replay->breakdowns.memories[chip];
        if (memcmp(then->held_bytes, now->held_bytes, sizeof now->held_bytes) != 0) return false;
    }
    return true;
}

/* Leaves of a server what messages that look back to the latest two ended runs see: both breaks
 * behind them, and when the earlier one ended, and began by itself. Where it began with those that
 * count as one with it depends on breaks of long ago. */
static void latest_keep(struct server_past *past)
{
    struct server_past const all = *past;
    uint32_t const count = all.run_count;
    memset(past->run, 0, sizeof past->run);
    memset(past->room_ps, 0, sizeof past->room_ps);
    past->run_count = (uint8_t)(count < 2 ? count : 2);
    past->room_ps[2] = all.room_ps[count];
    if (count == 0) return;
    past->run[1] = all.run[count - 1];
    past->room_ps[1] = all.room_ps[count - 1];
    if (count > 1) past->run[0].end_ps = all.run[count - 2].end_ps;
}

static bool pasts_again(const struct comparison *at)
{
    const struct replay *replay = at->replay;
    struct recur_array *array = then_of(at, replay->servers.pasts);
    for (uint32_t chip = 0; chip < replay->chip_count; chip++) {
        struct chip_pasts then = *(const struct chip_pasts *)recur_item_at(array, chip);
        struct chip_pasts now = replay->servers.pasts[chip];
        for (enum server server = SERVER_HBM; server < SERVER_COUNT; server++) {
            latest_keep(&then.of[server]);
            latest_keep(&now.of[server]);
        }
        if (!item_again(at, array, &then, &now)) return false;
    }
    return true;
}

/* What is settled counts against what has been granted (recur.c). */
static bool servers_again(const struct comparison *at)
{
    const struct replay *replay = at->replay;
    struct recur_array *array = then_of(at, replay->servers.states);
    int64_t const now_ps = engine_now_ps(replay->engine);
    for (uint32_t chip = 0; chip < replay->chip_count; chip++) {
        const struct chip_servers *servers_then = recur_item_at(array, chip);
        for (enum server server = SERVER_HBM; server < SERVER_COUNT; server++) {
            const struct server_state *then = &servers_then->of[server];
            const struct server_state *now = server_at(&replay->servers, server, chip);
            bool const counts = server_past_at(&replay->servers, server, chip)->needed ||
                                now->edge_ps == now_ps || now->edge_ps != then->edge_ps;
            if (counts && now->settled_ps - then->settled_ps != now->dma_ps - then->dma_ps)
                return false;
        }
    }
    return true;
}

static bool messages_again(const struct comparison *at)
{
    const struct p2p *p2p = at->replay->p2p;
    if (p2p == NULL) return true;
    struct recur_array *array = then_of(at, p2p->came);
    for (uint64_t i = 0; i < array->count; i++)
        if (*(const uint32_t *)recur_item_at(array, i) != p2p->came[i]) return false;
    return true;
}

/* By how much the epochs of a role's collectives have gone on since the image. */
static uint32_t epochs_since(const struct comparison *at, const struct met_pair *pair)
{
    const struct replay *replay = at->replay;
    uint32_t chip = 0;
    while (replay->chips[chip].role != pair->role) chip++;
    uint64_t const index = (uint64_t)pair->stream * replay->chip_count + chip;
    const struct stream_state *then = recur_item_at(then_of(at, replay->streams.states), index);
    return (uint32_t)(replay->streams.states[index].epoch - then->epoch) % RECUR_EPOCHS;
}

/* Epochs wrap. Whether each two messages that have met since the image go in the same order when
 * they meet again, up to `times` times. */
static bool orders_again(const struct comparison *at, uint32_t times)
{
    const struct recur *recur = at->replay->recurrence.search;
    uint64_t const since = at->image->met_count;
    if (recur->met_count - since > RECUR_MEETS) return false;
    for (uint64_t i = since; i < recur->met_count; i++) {
        const struct met_pair *pair = &recur->kept.meets[i % RECUR_MEETS];
        if (!pair->is_known) return false;
        uint32_t const each = epochs_since(at, pair);
        for (uint32_t k = 1; k <= times; k++) {
            uint32_t const first = (pair->epoch[0] + k * each) % RECUR_EPOCHS;
            uint32_t const second = (pair->epoch[1] + k * each) % RECUR_EPOCHS;
            if ((first < second) != (pair->epoch[0] < pair->epoch[1])) return false;
        }
    }
    return true;
}

/* Arrays of which nothing is asked, or that are compared above. */
static bool is_left_out(const struct replay *replay, const void *items)
{
    const struct p2p *p2p = replay->p2p;
    const void *const left_out[] = {replay->streams.states,
                                    replay->chips,
                                    replay->servers.pasts,
                                    replay->steps.ended,
                                    replay->steps.finished_ps,
                                    replay->breakdowns.memories,
                                    replay->breakdowns.spans,
                                    replay->breakdowns.class_end_ps,
                                    p2p != NULL ? p2p->waits : NULL,
                                    p2p != NULL ? p2p->transfer_ps : NULL,
                                    &replay->tally};
    for (uint32_t i = 0; i < sizeof left_out / sizeof *left_out; i++)
        if (items == left_out[i]) return true;
    return false;
}

/* Of an item: what lies in the past and is asked for no more becomes 0. */
typedef void settle_fn(void *item, int64_t now_ps);

static void link_settle(struct link_state *link, int64_t now_ps)
{
    link->queue = 0; /* A number: what waits there is compared apart. */
    if (link->free_ps >= now_ps) return;
    link->free_ps = 0;
    link->lane = link->stream = 0;
}

static void reads_settle(struct server_reads *reads, int64_t now_ps)
{
    if (reads->until_ps <= now_ps) *reads = (struct server_reads){0};
}

static void link_item_settle(void *item, int64_t now_ps)
{
    link_settle(item, now_ps);
}

static void reads_item_settle(void *item, int64_t now_ps)
{
    reads_settle(item, now_ps);
}

static void port_item_settle(void *item, int64_t now_ps)
{
    struct grid_port *port = item;
    link_settle(&port->link, now_ps);
    reads_settle(&port->reads, now_ps);
}

static void lane_item_settle(void *item, int64_t now_ps)
{
    struct lane_state *lane = item;
    if (lane->free_ps < now_ps) lane->free_ps = 0;
}

/* NULL: items are compared as they are. */
static settle_fn *settle_of(const struct replay *replay, const void *items)
{
    if (items == replay->servers.reads) return reads_item_settle;
    if (items == replay->lanes.states) return lane_item_settle;
    if (items == replay->grid.ports) return port_item_settle;
    for (uint32_t index = 0; index < replay->routes->level_count; index++)
        for (uint32_t t = 0; t < replay->machine->level[index].tier_count; t++) {
            const struct tier_links *tier = &replay->routes->level[index].tier[t];
            if (items == tier->links[0] || items == tier->links[1]) return link_item_settle;
        }
    return NULL;
}

/* The settled items of an array. */
static bool settled_again(const struct comparison *at, const struct recur_array *array,
                          struct recur_array *image, settle_fn *settle)
{
    _Alignas(64) char then[ITEM_BYTES_MAX], now[ITEM_BYTES_MAX];
    uint64_t const bytes = array->item_bytes;
    SIM_ASSERT(bytes <= ITEM_BYTES_MAX);
    for (uint64_t i = 0; i < array->count; i++) {
        memcpy(then, recur_item_at(image, i), bytes);
        memcpy(now, (const char *)array->items + i * bytes, bytes);
        settle(then, at->image->at_ps);
        settle(now, at->image->at_ps + at->period_ps);
        if (!item_again(at, array, then, now)) return false;
    }
    return true;
}

static bool arrays_again(const struct comparison *at)
{
    const struct recur_state *state = &at->replay->recurrence.search->state;
    for (uint32_t i = 0; i < state->array_count; i++) {
        const struct recur_array *array = &state->array[i];
        struct recur_array *image = &at->image->state.array[i];
        settle_fn *settle = settle_of(at->replay, array->items);
        if (is_left_out(at->replay, array->items)) continue;
        if (settle != NULL ? !settled_again(at, array, image, settle)
                           : !recur_array_again(array, image, at->image->at_ps, at->period_ps))
            return false;
    }
    return true;
}

static bool is_again(struct replay *replay, struct step_image *image)
{
    const struct recur *recur = replay->recurrence.search;
    const struct stream_state *first = replay->streams.states;
    const struct recur_pending *then = &image->pending, *now = &recur->pending;
    struct comparison const at = {replay, image, engine_now_ps(replay->engine) - image->at_ps};
    if (image->slot != first->slot || image->position != first->position ||
        image->look_backs != recur->look_backs || now->count != then->count ||
        now->sums[0] != then->sums[0] || now->sums[1] != then->sums[1])
        return false;
    return ended_again(&at) && streams_again(&at) && messages_again(&at) && chips_again(&at) &&
           memories_again(&at) && servers_again(&at) && pasts_again(&at) && arrays_again(&at);
}

static void image_take(struct replay *replay, struct step_image *image)
{
    const struct recur *recur = replay->recurrence.search;
    const struct stream_state *first = replay->streams.states;
    for (uint32_t i = 0; i < image->state.array_count; i++)
        image->state.array[i].items = recur->state.array[i].items;
    recur_image_take(&image->state);
    image->pending = recur->pending;
    image->at_ps = engine_now_ps(replay->engine);
    image->met_count = recur->met_count;
    image->look_backs = recur->look_backs;
    image->step = replay->steps.ended[0];
    image->slot = first->slot;
    image->position = first->position;
    image->is_taken = true;
}

/* The period that follows from the same state `image` ago. A chip that is behind the first one has
 * one step more ahead. */
static bool period_follows(struct replay *replay, struct step_image *image)
{
    int64_t const period_ps = engine_now_ps(replay->engine) - image->at_ps;
    struct comparison const at = {replay, image, period_ps};
    if (!orders_again(&at, 1) ||
        !steps_foresee(replay, replay->steps.ended[0] - image->step, period_ps))
        return false;
    if (orders_again(&at, replay->steps.foreseen + 1)) return true;
    replay->steps.period = (struct period){0};
    replay->steps.foreseen = 0;
    return false;
}

bool recur_steps_look(struct replay *replay)
{
    struct recur *recur = replay->recurrence.search;
    struct recur_steps *steps = recur->steps;
    if (!recur_steps_ask(replay)) return false; /* Or there are none. */
    uint32_t const step = replay->steps.ended[0];
    if (step != steps->step) steps->next = 0;
    steps->step = step;
    uint32_t place = steps->next;
    while (place + 1 < steps->place_count &&
           replay->streams.states->slot >= place_slot(replay, place + 1))
        place++;
    steps->next = place + 1;
    struct step_image *images = &steps->images[place * IMAGES];
    if (recur_handled_count(replay) - steps->handled < EVENTS_AN_ITEM * recur->state.item_count)
        return false;
    if (!recur_pending_known(replay)) return false;
    steps->handled = recur_handled_count(replay);
    for (uint32_t back = 1; back <= IMAGES && back <= step; back++) {
        struct step_image *image = &images[(step - back) % IMAGES];
        if (image->is_taken && image->step == step - back && is_again(replay, image) &&
            period_follows(replay, image))
            return true;
    }
    image_take(replay, &images[step % IMAGES]);
    return false;
}
