#include "sim/choose/contention.h"

#include <math.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/lock.h"
#include "sim/base/units.h"
#include "sim/choose/ecmp_collisions.h"
#include "sim/choose/ways.h"

enum { CHIPS_MAX = 1 << 13, MESSAGES_MAX = 1 << 15, HOPS_MAX = 1 << 20, SLOT_WORDS_MAX = 1 << 20 };

/* Bytes of a unit with which latencies do not count. */
static const double many_bytes = 1e9;

/* A message on its way. */
struct message {
    uint32_t receiver;
    uint32_t slot;
    uint32_t hop; /* The next, */
    uint32_t end; /* and the one behind its last. */
    uint8_t lane;
    double bytes;
    double slowest_s; /* On the links so far: its tail comes so much after its head. */
};

/* A message is at its next link, or at its end; or a lane's last message has left. */
struct happening {
    double at_s;
    uint32_t chip;    /* Where a lane is free; of a message, its sender. */
    uint32_t message; /* UINT32_MAX: a lane is free. */
    uint8_t lane;
};

struct lane_play {
    double free_s;
    uint32_t sent;
    uint32_t counted;
    bool waiting; /* A happening will say when it is free. */
};

struct play {
    const struct ways *ways;
    const struct plan *plan;
    const struct plan_item *item;
    const uint32_t *position; /* [chip], or seats: of who takes no part, one that sends nothing. */
    uint32_t lane_count;
    uint32_t piece_count;
    bool abreast;  /* A lane's messages go to their first links at once (routed_tables.c). */
    bool in_order; /* Arrivals are counted in the order of their slots. */
    uint32_t words;
    uint64_t *slots;        /* [chip · lanes + lane][word] */
    struct lane_play *lane; /* [chip · lanes + lane] */
    double *free_s;         /* [link] */
    double *busy_s;         /* [link] */
    struct happening *heap;
    uint32_t heap_count;
    struct message *message;
    uint32_t message_count;
    struct way_link *hop;
    uint32_t hop_count;
    double unit_bytes;
    double end_s;
};

static bool is_sooner(const struct happening *a, const struct happening *b)
{
    return a->at_s < b->at_s || (a->at_s <= b->at_s && a->chip < b->chip);
}

static void heap_put(struct play *play, struct happening what)
{
    uint32_t at = play->heap_count++;
    for (; at > 0 && is_sooner(&what, &play->heap[(at - 1) / 2]); at = (at - 1) / 2)
        play->heap[at] = play->heap[(at - 1) / 2];
    play->heap[at] = what;
}

static struct happening heap_take(struct play *play)
{
    struct happening const first = play->heap[0];
    struct happening const last = play->heap[--play->heap_count];
    uint32_t at = 0;
    for (;;) {
        uint32_t below = 2 * at + 1;
        if (below >= play->heap_count) break;
        if (below + 1 < play->heap_count && is_sooner(&play->heap[below + 1], &play->heap[below]))
            below++;
        if (!is_sooner(&play->heap[below], &last)) break;
        play->heap[at] = play->heap[below];
        at = below;
    }
    play->heap[at] = last;
    return first;
}

/* Puts a message on its next link, first come, first served. Returns when it has left it. */
static double message_take(struct play *play, uint32_t index, uint32_t sender, double now_s)
{
    struct message *message = &play->message[index];
    struct way_link const *link = &play->hop[message->hop++];
    double const own_s = message->bytes / link->bytes_per_s;
    double const start_s = fmax(now_s, play->free_s[link->link]);
    double const left_s = fmax(start_s + own_s, now_s + message->slowest_s);
    message->slowest_s = fmax(message->slowest_s, own_s);
    play->free_s[link->link] = start_s + own_s;
    play->busy_s[link->link] += own_s;
    bool const last = message->hop == message->end;
    heap_put(play,
             (struct happening){(last ? left_s : start_s) + link->latency_s, sender, index, 0});
    return left_s;
}

/* Without bytes nothing waits for a link. */
static void message_fly(struct play *play, uint32_t index, uint32_t sender, double now_s)
{
    struct message *message = &play->message[index];
    for (; message->hop < message->end; message->hop++) now_s += play->hop[message->hop].latency_s;
    heap_put(play, (struct happening){now_s, sender, index, 0});
}

static bool step_waits(const struct play *play, uint32_t chip, const struct primitive_step *step,
                       uint32_t piece)
{
    if (step->arrivals == 0) return false;
    const struct plan_lane *awaited = &play->plan->lane[play->item->lane_first + step->wait_lane];
    uint32_t const each = awaited->arrival_count[play->position[chip]];
    return play->lane[chip * play->lane_count + step->wait_lane].counted <
           step->arrivals + piece * each;
}

static uint32_t message_new(struct play *play, uint32_t from, const uint32_t to[MACHINE_AXES_MAX],
                            uint8_t lane, uint32_t slot, double bytes)
{
    struct message *message = &play->message[play->message_count];
    *message = (struct message){.receiver = ways_chip(play->ways, to),
                                .slot = slot,
                                .hop = play->hop_count,
                                .lane = lane,
                                .bytes = bytes};
    play->hop_count += ways_find(play->ways, from, to, &play->hop[play->hop_count]);
    message->end = play->hop_count;
    return play->message_count++;
}

static void lane_try(struct play *play, uint32_t chip, uint32_t number, double now_s)
{
    struct lane_play *lane = &play->lane[chip * play->lane_count + number];
    const struct plan_lane *own = &play->plan->lane[play->item->lane_first + number];
    uint32_t const position = play->position[chip], each = own->send_count[position];
    while (lane->sent < each * play->piece_count && !lane->waiting) {
        uint32_t const piece = lane->sent / each;
        struct primitive_step const step =
            plan_step(play->plan, play->item, number, position, lane->sent - piece * each);
        if (step_waits(play, chip, &step, piece)) return;
        if (lane->free_s > now_s) {
            lane->waiting = true;
            heap_put(play, (struct happening){lane->free_s, chip, UINT32_MAX, (uint8_t)number});
            return;
        }
        uint32_t to[MACHINE_AXES_MAX];
        plan_item_peer(play->plan, play->item, play->ways->at[chip].axis, step.peer, to);
        uint32_t const receiver = plan_item_position(play->plan, play->item, to);
        uint32_t const slot = piece * own->arrival_count[receiver] + step.slot;
        double const bytes = step.units * play->unit_bytes;
        uint32_t const message = message_new(play, chip, to, (uint8_t)number, slot, bytes);
        double const left_s = bytes > 0 ? message_take(play, message, chip, now_s) : now_s;
        if (bytes <= 0) message_fly(play, message, chip, now_s);
        if (!play->abreast) lane->free_s = left_s;
        lane->sent++;
    }
}

static void message_land(struct play *play, const struct message *message, double now_s)
{
    uint32_t const index = message->receiver * play->lane_count + message->lane;
    struct lane_play *lane = &play->lane[index];
    play->end_s = now_s;
    if (play->in_order) {
        uint64_t *row = &play->slots[(uint64_t)index * play->words];
        row[message->slot / 64] |= UINT64_C(1) << message->slot % 64;
        while (lane->counted < play->words * 64 &&
               (row[lane->counted / 64] >> lane->counted % 64 & 1) != 0)
            lane->counted++;
    } else {
        lane->counted++;
    }
    for (uint32_t l = 0; l < play->lane_count; l++) lane_try(play, message->receiver, l, now_s);
}

static void happen(struct play *play, const struct happening *what)
{
    if (what->message == UINT32_MAX) {
        play->lane[what->chip * play->lane_count + what->lane].waiting = false;
        lane_try(play, what->chip, what->lane, what->at_s);
    } else if (play->message[what->message].hop < play->message[what->message].end) {
        (void)message_take(play, what->message, what->chip, what->at_s);
    } else {
        message_land(play, &play->message[what->message], what->at_s);
    }
}

/* Until the last message has arrived. */
static double play_out(struct play *play, uint32_t piece_count, double unit_bytes)
{
    const struct ways *ways = play->ways;
    uint32_t const lanes = ways->chip_count * play->lane_count;
    play->piece_count = piece_count;
    play->unit_bytes = unit_bytes;
    play->in_order = play->item->primitive->ordered || piece_count > 1;
    play->end_s = 0;
    play->message_count = play->hop_count = 0;
    memset(play->slots, 0, (size_t)lanes * play->words * sizeof *play->slots);
    memset(play->lane, 0, lanes * sizeof *play->lane);
    for (uint32_t link = 0; link < ways->link_count; link++)
        play->free_s[link] = play->busy_s[link] = 0;
    for (uint32_t chip = 0; chip < ways->chip_count; chip++)
        for (uint32_t l = 0; l < play->lane_count; l++) lane_try(play, chip, l, 0);
    while (play->heap_count > 0) {
        struct happening const next = heap_take(play);
        happen(play, &next);
    }
    return play->end_s;
}

/* Messages of one piece; more than the limit where there are too many. */
static uint64_t messages_of(const struct play *play, uint32_t *ret_slots)
{
    uint64_t messages = 0;
    *ret_slots = 0;
    for (uint32_t l = 0; l < play->lane_count; l++) {
        const struct plan_lane *lane = &play->plan->lane[play->item->lane_first + l];
        for (uint32_t chip = 0; chip < play->ways->chip_count; chip++) {
            uint32_t const position = play->position[chip];
            messages += lane->send_count[position];
            if (lane->arrival_count[position] > *ret_slots)
                *ret_slots = lane->arrival_count[position];
            if (messages > MESSAGES_MAX) return messages;
        }
    }
    return messages;
}

static bool play_build(struct arena *arena, struct play *play)
{
    const struct ways *ways = play->ways;
    uint32_t slots = 0;
    uint32_t *position = arena_take(arena, ways->chip_count, sizeof *position);
    if (position == NULL) return false;
    for (uint32_t chip = 0; chip < ways->chip_count; chip++)
        position[chip] = (ways->paths.overridden != NULL ? plan_item_seat : plan_item_position)(
            play->plan, play->item, ways->at[chip].axis);
    play->position = position;
    play->lane_count = play->item->primitive->lane_count;
    uint64_t const messages = messages_of(play, &slots);
    uint32_t const lanes = ways->chip_count * play->lane_count;
    play->words = (2 * slots + 63) / 64 + 1;
    if (messages > MESSAGES_MAX || 2 * messages * ways->longest > HOPS_MAX ||
        (uint64_t)lanes * play->words > SLOT_WORDS_MAX)
        return false;
    play->message = arena_take(arena, 2 * messages, sizeof *play->message);
    play->hop = arena_take(arena, 2 * messages * ways->longest, sizeof *play->hop);
    play->slots = arena_take(arena, (uint64_t)lanes * play->words, sizeof *play->slots);
    play->lane = arena_take(arena, lanes, sizeof *play->lane);
    play->free_s = arena_take(arena, ways->link_count, sizeof *play->free_s);
    play->busy_s = arena_take(arena, ways->link_count, sizeof *play->busy_s);
    play->heap = arena_take(arena, 2 * messages + 2 * (uint64_t)lanes, sizeof *play->heap);
    return play->message != NULL && play->hop != NULL && play->slots != NULL &&
           play->lane != NULL && play->free_s != NULL && play->busy_s != NULL && play->heap != NULL;
}

static void play_all(struct play *play, struct contention *ret)
{
    double const idle_s = play_out(play, 1, 0), idle_next_s = play_out(play, 2, 0);
    double const next_s = play_out(play, 2, many_bytes);
    double const once_s = play_out(play, 1, many_bytes);
    *ret = (struct contention){
        .latency_s = idle_s,
        .byte_s = fmax(once_s - idle_s, 0) / many_bytes,
        .next_latency_s = idle_next_s - idle_s,
        .next_byte_s = fmax(next_s - once_s - (idle_next_s - idle_s), 0) / many_bytes,
    };
    for (uint32_t link = 0; link < play->ways->link_count; link++) {
        double *wire = &ret->wire_byte_s[ways_wire(play->ways, link)];
        *wire = fmax(*wire, play->busy_s[link] / many_bytes);
    }
}

static bool is_rehearsed(const struct plan *plan, const struct plan_item *item)
{
    return item->primitive->routed && item->primitive->network == PRIMITIVE_NETWORK_NONE &&
           plan->ragged_units == NULL && plan->script == NULL &&
           item->primitive->kind != COLLECTIVE_PERMUTE;
}

static bool contention_play_anew(const struct machine *machine, const struct plan *plan,
                                 const struct plan_item *item, struct contention *ret)
{
    struct arena *arena = arena_create(0);
    if (arena == NULL) return false;
    struct ways ways;
    struct play play = {.ways = &ways, .plan = plan, .item = item};
    for (uint32_t d = 0; d < plan->group.dimension_count; d++)
        if ((item->flat || item->dimension == d) &&
            machine_is_meshed(machine, plan->group.dimension[d].axis))
            play.abreast = true;
    bool const done =
        ways_build(arena, machine, plan, item, CHIPS_MAX, &ways) && play_build(arena, &play);
    if (done) play_all(&play, ret);
    arena_destroy(arena);
    return done;
}

static bool is_same(const struct contention_entry *entry, const struct contention_entry *key)
{
    return entry->primitive == key->primitive && entry->flat == key->flat &&
           entry->dimension == key->dimension && entry->root == key->root &&
           entry->at_root == key->at_root && entry->off_root == key->off_root &&
           group_equal(&entry->group, &key->group) &&
           memcmp(entry->message_ps, key->message_ps, sizeof key->message_ps) == 0;
}

/* The entry of this key, of those from `first` on. NULL: there is none. */
static const struct contention_entry *find(const struct contentions *known, uint32_t first,
                                           const struct contention_entry *key)
{
    uint32_t const count = atomic_load_explicit(&known->count, memory_order_acquire);
    for (uint32_t i = first; i < count; i++)
        if (is_same(&known->entry[i], key)) return &known->entry[i];
    return NULL;
}

/* None of the first `asked` entries is the same. */
static void keep(struct contentions *known, uint32_t asked, const struct contention_entry *entry)
{
    lock_take(&known->lock);
    uint32_t const count = atomic_load_explicit(&known->count, memory_order_relaxed);
    if (count < REHEARSALS_MAX && find(known, asked, entry) == NULL) {
        known->entry[count] = *entry;
        atomic_store_explicit(&known->count, count + 1, memory_order_release);
    }
    lock_give(&known->lock);
}

bool contention_play(const struct machine *machine, const struct plan *plan,
                     const struct plan_item *item, struct contentions *known,
                     struct contention *ret)
{
    struct contention_entry key = {.group = plan->group,
                                   .primitive = item->primitive,
                                   .root = plan->rooted.root,
                                   .dimension = item->dimension,
                                   .flat = item->flat};
    if (machine->link_override_count > 0) { /* Then it matters where who takes part stands. */
        key.at_root = item->at_root;
        key.off_root = item->off_root;
    }
    memcpy(key.message_ps, plan->protocol.message_ps, sizeof key.message_ps);
    *ret = (struct contention){.latency_s = 0};
    if (!is_rehearsed(plan, item)) return false;
    uint32_t const asked =
        known == NULL ? 0 : atomic_load_explicit(&known->count, memory_order_acquire);
    const struct contention_entry *entry = known == NULL ? NULL : find(known, 0, &key);
    if (entry != NULL) {
        *ret = entry->contention;
        return entry->played;
    }
    key.played = contention_play_anew(machine, plan, item, &key.contention);
    if (!key.played) (void)ecmp_count(machine, plan, item, &key.contention);
    *ret = key.contention;
    if (known != NULL) keep(known, asked, &key);
    return key.played;
}
