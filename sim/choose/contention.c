#include "sim/choose/contention.h"

#include <math.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/units.h"
#include "sim/choose/item_paths.h"

enum { CHIPS_MAX = 1 << 13, MESSAGES_MAX = 1 << 15, HOPS_MAX = 1 << 20, SLOT_WORDS_MAX = 1 << 20 };

/* Bytes of a unit with which latencies do not count. */
static const double many_bytes = 1e9;

/* A message of one piece, as a lane of a chip sends it: the same in each simulation. */
struct sending {
    uint32_t receiver;
    uint32_t slot;
    uint32_t slots;    /* Of one piece at the receiver. */
    uint32_t arrivals; /* Of the lane waited for, before the first piece. */
    uint32_t each;     /* And for each further piece. */
    uint32_t hop;      /* The first, */
    uint32_t end;      /* and the one behind its last. */
    uint32_t units;
    uint8_t wait_lane;
    uint8_t network; /* Whose overhead its first link has, */
    double first_s;  /* besides the latency to the next link. */
};

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

struct contention_lane {
    double free_s;
    uint32_t sent;
    uint32_t sends; /* All pieces together. */
    uint32_t counted;
    bool waiting; /* A happening will say when it is free. */
};

struct contention {
    const struct item_paths *paths;
    const struct plan *plan; /* While they are built. */
    struct plan_item item;
    const uint32_t *position; /* [chip], or seats: of who takes no part, one that sends nothing. */
    uint32_t lane_count;
    uint32_t piece_count;
    bool abreast;  /* A lane's messages go to their first links at once (routed_tables.c). */
    bool in_order; /* Arrivals are counted in the order of their slots. */
    uint32_t words;
    uint64_t *slots;              /* [chip · lanes + lane][word] */
    struct contention_lane *lane; /* [chip · lanes + lane] */
    double *free_s;               /* [link] */
    double *busy_s;               /* [link] */
    struct happening *heap;
    uint32_t heap_count;
    struct sending *sending;
    uint32_t *sending_first; /* [chip · lanes + lane] */
    struct message *message;
    uint32_t message_count;
    struct item_path_link *hop;
    uint32_t hop_count;
    double unit_bytes;
    double end_s;
    /* What has been simulated with many bytes, and with which overhead of a message. Where
     * `shifts`, another overhead puts all that comes behind first links off by as much. */
    bool shifts, has_once;
    double overhead_s, once_overhead_s, once_s;
    double wire_byte_s[CONTENTION_WIRES];
};

static bool is_sooner(const struct happening *a, const struct happening *b)
{
    return a->at_s < b->at_s || (a->at_s <= b->at_s && a->chip < b->chip);
}

static void heap_put(struct contention *contention, struct happening what)
{
    uint32_t at = contention->heap_count++;
    for (; at > 0 && is_sooner(&what, &contention->heap[(at - 1) / 2]); at = (at - 1) / 2)
        contention->heap[at] = contention->heap[(at - 1) / 2];
    contention->heap[at] = what;
}

static struct happening heap_take(struct contention *contention)
{
    struct happening const first = contention->heap[0];
    struct happening const last = contention->heap[--contention->heap_count];
    uint32_t at = 0;
    for (;;) {
        uint32_t below = 2 * at + 1;
        if (below >= contention->heap_count) break;
        if (below + 1 < contention->heap_count &&
            is_sooner(&contention->heap[below + 1], &contention->heap[below]))
            below++;
        if (!is_sooner(&contention->heap[below], &last)) break;
        contention->heap[at] = contention->heap[below];
        at = below;
    }
    contention->heap[at] = last;
    return first;
}

/* Puts a message on its next link, first come, first served. Returns when it has left it. */
static double message_take(struct contention *contention, uint32_t index, uint32_t sender,
                           double now_s)
{
    struct message *message = &contention->message[index];
    struct item_path_link const *link = &contention->hop[message->hop++];
    double const own_s = message->bytes / link->bytes_per_s;
    double const start_s = fmax(now_s, contention->free_s[link->link]);
    double const left_s = fmax(start_s + own_s, now_s + message->slowest_s);
    message->slowest_s = fmax(message->slowest_s, own_s);
    contention->free_s[link->link] = start_s + own_s;
    contention->busy_s[link->link] += own_s;
    bool const last = message->hop == message->end;
    heap_put(contention,
             (struct happening){(last ? left_s : start_s) + link->latency_s, sender, index, 0});
    return left_s;
}

/* Without bytes nothing waits for a link. */
static void message_fly(struct contention *contention, uint32_t index, uint32_t sender,
                        double now_s)
{
    struct message *message = &contention->message[index];
    for (; message->hop < message->end; message->hop++)
        now_s += contention->hop[message->hop].latency_s;
    heap_put(contention, (struct happening){now_s, sender, index, 0});
}

static bool sending_waits(const struct contention *contention, uint32_t chip,
                          const struct sending *sending, uint32_t piece)
{
    return sending->arrivals != 0 &&
           contention->lane[chip * contention->lane_count + sending->wait_lane].counted <
               sending->arrivals + piece * sending->each;
}

static uint32_t message_new(struct contention *contention, const struct sending *sending,
                            uint8_t lane, uint32_t piece, double bytes)
{
    contention->message[contention->message_count] =
        (struct message){.receiver = sending->receiver,
                         .slot = piece * sending->slots + sending->slot,
                         .hop = sending->hop,
                         .end = sending->end,
                         .lane = lane,
                         .bytes = bytes};
    return contention->message_count++;
}

static void lane_try(struct contention *contention, uint32_t chip, uint32_t number, double now_s)
{
    uint32_t const index = chip * contention->lane_count + number;
    struct contention_lane *lane = &contention->lane[index];
    uint32_t const first = contention->sending_first[index];
    uint32_t const each = contention->sending_first[index + 1] - first;
    while (lane->sent < lane->sends && !lane->waiting) {
        uint32_t const piece = lane->sent / each;
        const struct sending *sending = &contention->sending[first + lane->sent - piece * each];
        if (sending_waits(contention, chip, sending, piece)) return;
        if (lane->free_s > now_s) {
            lane->waiting = true;
            heap_put(contention,
                     (struct happening){lane->free_s, chip, UINT32_MAX, (uint8_t)number});
            return;
        }
        double const bytes = sending->units * contention->unit_bytes;
        uint32_t const message = message_new(contention, sending, (uint8_t)number, piece, bytes);
        double const left_s = bytes > 0 ? message_take(contention, message, chip, now_s) : now_s;
        if (bytes <= 0) message_fly(contention, message, chip, now_s);
        if (!contention->abreast) lane->free_s = left_s;
        lane->sent++;
    }
}

static void message_land(struct contention *contention, const struct message *message, double now_s)
{
    uint32_t const index = message->receiver * contention->lane_count + message->lane;
    struct contention_lane *lane = &contention->lane[index];
    contention->end_s = now_s;
    if (contention->in_order) {
        uint64_t *row = &contention->slots[(uint64_t)index * contention->words];
        row[message->slot / 64] |= UINT64_C(1) << message->slot % 64;
        while (lane->counted < contention->words * 64 &&
               (row[lane->counted / 64] >> lane->counted % 64 & 1) != 0)
            lane->counted++;
    } else {
        lane->counted++;
    }
    const struct contention_lane *own = &contention->lane[index - message->lane];
    for (uint32_t l = 0; l < contention->lane_count; l++)
        if (own[l].sent < own[l].sends) lane_try(contention, message->receiver, l, now_s);
}

static void happen(struct contention *contention, const struct happening *what)
{
    if (what->message == UINT32_MAX) {
        contention->lane[what->chip * contention->lane_count + what->lane].waiting = false;
        lane_try(contention, what->chip, what->lane, what->at_s);
    } else if (contention->message[what->message].hop < contention->message[what->message].end) {
        (void)message_take(contention, what->message, what->chip, what->at_s);
    } else {
        message_land(contention, &contention->message[what->message], what->at_s);
    }
}

/* Until the last message has arrived. */
static double pieces_simulate(struct contention *contention, uint32_t piece_count,
                              double unit_bytes)
{
    const struct item_paths *paths = contention->paths;
    uint32_t const lanes = paths->chip_count * contention->lane_count;
    contention->piece_count = piece_count;
    contention->unit_bytes = unit_bytes;
    contention->in_order = contention->item.primitive->ordered || piece_count > 1;
    contention->end_s = 0;
    contention->message_count = 0;
    memset(contention->slots, 0, (size_t)lanes * contention->words * sizeof *contention->slots);
    memset(contention->lane, 0, lanes * sizeof *contention->lane);
    for (uint32_t lane = 0; lane < lanes; lane++)
        contention->lane[lane].sends =
            piece_count * (contention->sending_first[lane + 1] - contention->sending_first[lane]);
    for (uint32_t link = 0; link < paths->link_count; link++)
        contention->free_s[link] = contention->busy_s[link] = 0;
    for (uint32_t chip = 0; chip < paths->chip_count; chip++)
        for (uint32_t l = 0; l < contention->lane_count; l++) lane_try(contention, chip, l, 0);
    while (contention->heap_count > 0) {
        struct happening const next = heap_take(contention);
        happen(contention, &next);
    }
    return contention->end_s;
}

/* Messages of one piece; more than the limit where there are too many. */
static uint64_t messages_of(const struct contention *contention, uint32_t *ret_slots)
{
    uint64_t messages = 0;
    *ret_slots = 0;
    for (uint32_t l = 0; l < contention->lane_count; l++) {
        const struct plan_lane *lane = &contention->plan->lane[contention->item.lane_first + l];
        for (uint32_t chip = 0; chip < contention->paths->chip_count; chip++) {
            uint32_t const position = contention->position[chip];
            messages += lane->send_count[position];
            if (lane->arrival_count[position] > *ret_slots)
                *ret_slots = lane->arrival_count[position];
            if (messages > MESSAGES_MAX) return messages;
        }
    }
    return messages;
}

/* Memory that is written before it is read, or NULL. */
static void *unset_take(struct arena *arena, uint64_t count, uint64_t size_bytes)
{
    struct error error;
    void *memory = NULL;
    return arena_try_unset(arena, count, size_bytes, &memory, &error) == STATUS_OK ? memory : NULL;
}

static bool contention_build(struct arena *arena, struct contention *contention)
{
    const struct item_paths *paths = contention->paths;
    uint32_t slots = 0;
    uint32_t *position = arena_take(arena, paths->chip_count, sizeof *position);
    if (position == NULL) return false;
    for (uint32_t chip = 0; chip < paths->chip_count; chip++)
        position[chip] =
            (paths->machine_paths.overridden != NULL ? plan_item_seat : plan_item_position)(
                contention->plan, &contention->item, paths->at[chip].axis);
    contention->position = position;
    contention->lane_count = contention->item.primitive->lane_count;
    uint64_t const messages = messages_of(contention, &slots);
    uint32_t const lanes = paths->chip_count * contention->lane_count;
    contention->words = (2 * slots + 63) / 64 + 1;
    if (messages > MESSAGES_MAX || 2 * messages * paths->longest > HOPS_MAX ||
        (uint64_t)lanes * contention->words > SLOT_WORDS_MAX)
        return false;
    contention->message = unset_take(arena, 2 * messages, sizeof *contention->message);
    contention->sending = unset_take(arena, messages, sizeof *contention->sending);
    contention->sending_first = unset_take(arena, lanes + 1ull, sizeof *contention->sending_first);
    contention->hop = unset_take(arena, messages * paths->longest, sizeof *contention->hop);
    contention->slots =
        arena_take(arena, (uint64_t)lanes * contention->words, sizeof *contention->slots);
    contention->lane = arena_take(arena, lanes, sizeof *contention->lane);
    contention->free_s = arena_take(arena, paths->link_count, sizeof *contention->free_s);
    contention->busy_s = arena_take(arena, paths->link_count, sizeof *contention->busy_s);
    contention->heap =
        unset_take(arena, 2 * messages + 2 * (uint64_t)lanes, sizeof *contention->heap);
    return contention->message != NULL && contention->sending != NULL &&
           contention->sending_first != NULL && contention->hop != NULL &&
           contention->slots != NULL && contention->lane != NULL && contention->free_s != NULL &&
           contention->busy_s != NULL && contention->heap != NULL;
}

/* What a lane of a chip sends as its n-th message, and by which links. */
static struct sending sending_of(struct contention *contention, uint32_t chip, uint32_t number,
                                 uint32_t index)
{
    const struct item_paths *paths = contention->paths;
    const struct plan_lane *own = &contention->plan->lane[contention->item.lane_first + number];
    uint32_t const position = contention->position[chip];
    struct primitive_step const step =
        plan_step(contention->plan, &contention->item, number, position, index);
    const struct plan_lane *awaited =
        &contention->plan->lane[contention->item.lane_first + step.wait_lane];
    uint32_t to[MACHINE_AXES_MAX];
    plan_item_peer(contention->plan, &contention->item, paths->at[chip].axis, step.peer, to);
    struct sending sending = {
        .receiver = item_paths_chip(paths, to),
        .slot = step.slot,
        .slots = own->arrival_count[plan_item_position(contention->plan, &contention->item, to)],
        .arrivals = step.arrivals,
        .each = step.arrivals == 0 ? 0 : awaited->arrival_count[position],
        .hop = contention->hop_count,
        .units = step.units,
        .wait_lane = step.wait_lane,
    };
    uint32_t network;
    contention->hop_count +=
        item_paths_links(paths, chip, to, &contention->hop[contention->hop_count], &network);
    sending.end = contention->hop_count;
    sending.network = (uint8_t)network;
    sending.first_s = contention->hop[sending.hop].latency_s;
    return sending;
}

static void sendings_find(struct contention *contention)
{
    uint32_t count = 0, at = 0;
    for (uint32_t chip = 0; chip < contention->paths->chip_count; chip++)
        for (uint32_t l = 0; l < contention->lane_count; l++) {
            const struct plan_lane *own = &contention->plan->lane[contention->item.lane_first + l];
            uint32_t const sends = own->send_count[contention->position[chip]];
            contention->sending_first[at++] = count;
            for (uint32_t i = 0; i < sends; i++)
                contention->sending[count++] = sending_of(contention, chip, l, i);
        }
    contention->sending_first[at] = count;
}

/* Without bytes, and where no message waits for others, the longest way. */
static double idle_time_s(struct contention *contention, uint32_t piece_count)
{
    uint32_t const lanes = contention->paths->chip_count * contention->lane_count;
    double longest_s = 0;
    for (uint32_t i = 0; i < contention->sending_first[lanes]; i++) {
        const struct sending *sending = &contention->sending[i];
        double way_s = 0;
        if (sending->arrivals != 0) return pieces_simulate(contention, piece_count, 0);
        for (uint32_t hop = sending->hop; hop < sending->end; hop++)
            way_s += contention->hop[hop].latency_s;
        longest_s = fmax(longest_s, way_s);
    }
    return longest_s;
}

static void once_simulate(struct contention *contention)
{
    contention->once_s = pieces_simulate(contention, 1, many_bytes);
    contention->once_overhead_s = contention->overhead_s;
    contention->has_once = true;
    memset(contention->wire_byte_s, 0, sizeof contention->wire_byte_s);
    for (uint32_t link = 0; link < contention->paths->link_count; link++) {
        double *wire = &contention->wire_byte_s[item_paths_wire(contention->paths, link)];
        *wire = fmax(*wire, contention->busy_s[link] / many_bytes);
    }
}

/* Of one piece; `once_s` with many bytes. */
static void times_find(struct contention *contention, struct contention_entry *entry)
{
    double const idle_s = idle_time_s(contention, 1);
    if (!contention->shifts || !contention->has_once) once_simulate(contention);
    entry->once_s = contention->once_s + (contention->overhead_s - contention->once_overhead_s);
    entry->times = (struct contention_times){
        .latency_s = idle_s, .byte_s = fmax(entry->once_s - idle_s, 0) / many_bytes};
    memcpy(entry->times.wire_byte_s, contention->wire_byte_s, sizeof contention->wire_byte_s);
}

/* How much later a second piece is. */
static void next_times_find(struct contention *contention, struct contention_entry *entry)
{
    double const idle_s = entry->times.latency_s, idle_next_s = idle_time_s(contention, 2);
    double const next_s = pieces_simulate(contention, 2, many_bytes);
    entry->times.next_latency_s = idle_next_s - idle_s;
    entry->times.next_byte_s =
        fmax(next_s - entry->once_s - (idle_next_s - idle_s), 0) / many_bytes;
}

/* Whether no message waits for an arrival, all have one overhead, and no link is the first of one
 * message and a later one of another. */
static bool shifts(const struct contention *contention)
{
    uint32_t const lanes = contention->paths->chip_count * contention->lane_count;
    uint32_t const count = contention->sending_first[lanes];
    double *is_first = contention->busy_s; /* Nothing is simulated yet. */
    bool alike = true;
    for (uint32_t i = 0; i < count && alike; i++) {
        const struct sending *sending = &contention->sending[i];
        is_first[contention->hop[sending->hop].link] = 1;
        alike = sending->arrivals == 0 && sending->network == contention->sending[0].network;
    }
    for (uint32_t i = 0; i < count && alike; i++)
        for (uint32_t hop = contention->sending[i].hop + 1; hop < contention->sending[i].end; hop++)
            alike = alike && is_first[contention->hop[hop].link] <= 0;
    return alike;
}

/* The messages of an item and their ways. NULL: there are too many. */
static struct contention *item_build(struct arena *arena, const struct machine *machine,
                                     const struct plan *plan, const struct plan_item *item)
{
    struct contention *contention = arena_take(arena, 1, sizeof *contention);
    struct item_paths *paths = arena_take(arena, 1, sizeof *paths);
    if (contention == NULL || paths == NULL) return NULL;
    *contention = (struct contention){.paths = paths, .plan = plan, .item = *item};
    for (uint32_t d = 0; d < plan->group.dimension_count; d++)
        if ((item->flat || item->dimension == d) &&
            machine_is_meshed(machine, plan->group.dimension[d].axis))
            contention->abreast = true;
    if (!item_paths_build(arena, machine, plan, item, CHIPS_MAX, paths) ||
        !contention_build(arena, contention))
        return NULL;
    sendings_find(contention);
    contention->shifts = shifts(contention);
    return contention;
}

/* Whether messages and ways of two items are the same, in plans of one group and root. */
static bool is_alike(const struct plan_item *item, const struct plan_item *other)
{
    return item->primitive == other->primitive && item->dimension == other->dimension &&
           item->flat == other->flat && item->cyclic == other->cyclic &&
           item->size == other->size && item->at_root == other->at_root &&
           item->off_root == other->off_root;
}

/* Those that are kept, or NULL. */
static struct contention *item_kept(const struct contention_kept *kept,
                                    const struct plan_item *item)
{
    for (uint32_t i = 0; kept != NULL && i < kept->count; i++)
        if (is_alike(&kept->of[i]->item, item)) return kept->of[i];
    return NULL;
}

/* What messages take of a protocol. */
static void overheads_find(struct contention *contention, const struct plan_protocol *protocol)
{
    const struct item_paths *paths = contention->paths;
    uint32_t const lanes = paths->chip_count * contention->lane_count;
    for (uint32_t i = 0; i < contention->sending_first[lanes]; i++) {
        const struct sending *sending = &contention->sending[i];
        contention->overhead_s = item_paths_overhead_s(paths, protocol, sending->network);
        contention->hop[sending->hop].latency_s = sending->first_s + contention->overhead_s;
    }
}

bool contention_simulate(const struct machine *machine, const struct plan *plan,
                         const struct plan_item *item, bool has_once, struct contention_kept *kept,
                         struct contention_entry *entry)
{
    struct contention *contention = item_kept(kept, item);
    struct arena *own = kept == NULL ? arena_create(0) : NULL;
    struct arena *arena = kept == NULL ? own : kept->arena;
    if (arena == NULL) return false;
    if (contention == NULL) {
        contention = item_build(arena, machine, plan, item);
        if (contention != NULL && kept != NULL && kept->count < PLAN_ITEMS_MAX)
            kept->of[kept->count++] = contention;
    }
    bool const done = contention != NULL;
    if (done) {
        overheads_find(contention, &plan->protocol);
        if (!has_once) times_find(contention, entry);
        if (entry->has_next) next_times_find(contention, entry);
    }
    arena_destroy(own);
    return done;
}
