/*
 * promise.h: the events of messages that share their links (port.h).
 *
 * An event is never cancelled. If a message has to share its link after its event was posted, the
 * event is ignored when it comes, and another event is posted once the true instant is known.
 *
 *   A message that was promised to leave at one instant and leaves at another is withheld: an
 *   EVENT_PORT of its own, at this link, waits for its end. If that has moved again when the event
 *   comes, the event is posted anew; else the message's arrival is posted, later by the latency of
 *   the rest of the route. The last of these arrivals counts: the receiver ignores an arrival while
 *   others are still to come. Later cables keep the interval that the message booked, even if the
 *   message passes them later. A head that was promised and has not begun is withheld likewise.
 *
 * Which events are passed over is noted under their names, once and for all before they come: at
 * least 1 ps, for what is promised lies a latency ahead. Names are (order, payload) and the
 * instant, for heads and where the way is one link. Over several links the order of an arrival has
 * the message's number among those of its sender and lane: what a link posts for a message may come
 * before the message in front of it has arrived, so receivers cannot count.
 *
 * Whose state. A lane waits for the end of its message at the first link of the way only, and that
 * link is the sender's own: a port of the grid, or its cable into the lowest switches of a level.
 * So the lane that is told to wait (withhold()) is always one of the link's chip. The event at hand
 * may be of another chip's message: on the grid a message that names its receiver may pass there,
 * and its payload is its sender. Its handler touches that link and the lanes of the link's chip,
 * and no lane of the sender. No two events of one instant and key touch one link (routed.h), so no
 * two of a batch touch one lane, in whichever order the engine has them. Events of different keys
 * come in the order of the keys, which is the same in every queue and in every fold. What follows,
 * the end of that message and what the lane sends next, is an event of the link's own chip. An
 * EVENT_PORT at a link further on touches the link alone.
 */
#ifndef SIM_REPLAY_PROMISE_H
#define SIM_REPLAY_PROMISE_H

#include "sim/replay/port.h"

/* A message comes to a link that has messages with which it takes turns (promise_meets()). `entry`
 * has all but what is filled here. Returns when its tail leaves; lane_held_ps: that is not known.
 */
int64_t promise_share(struct replay *replay, const struct port_ticket *place,
                      const struct port_entry *entry, uint64_t bytes, int64_t now_ps);

/* A message that cannot be cut comes to such a link and has the next turn, until its end. Returns
 * when the turn begins. */
int64_t promise_whole(struct replay *replay, const struct port_ticket *place, int64_t work_ps,
                      int64_t now_ps);

/* Keeps a message that has been promised, in case that others come: the caller fills its entry, but
 * for the places in lists and what turns give. Without room, it is one that nothing reads. `idle`:
 * it found the link free, so all that are kept there have left. */
static inline struct port_entry *promise_keep(struct replay *replay, struct link_state *link,
                                              bool idle, int64_t now_ps)
{
    struct ports *ports = replay->ports;
    struct port_list *list = &ports->kept[port_queue_of(ports, link)];
    /* Mostly one is kept there, which need not be read. */
    if (idle && list->first != 0 && list->first == list->last) return &ports->entries[list->first];
    while (list->first != 0 && ports->entries[list->first].end_ps <= now_ps) {
        uint32_t const first = list->first;
        list->first = ports->entries[first].next;
        port_entry_give(ports, first);
    }
    uint32_t const index = port_entry_take(replay);
    port_list_append(ports, list, index);
    return &ports->entries[index];
}

/* An EVENT_PORT. */
void promise_port(struct replay *replay, uint64_t key, const uint32_t *chips, uint32_t count,
                  int64_t now_ps);

/* Add state of a prefix fold: a message at a link; a void event. */
void promise_append(struct replay *replay, struct port_list *list, const struct port_entry *entry);
void promise_void_add(struct replay *replay, uint64_t key, uint32_t chip, int64_t stamp);

/* A void event has another order and stamp. */
void promise_void_rename(struct ports *ports, uint32_t index, uint64_t key, int64_t stamp);

/* promise_record.c: the record of the last message of a lane of one link, if that ends when the
 * entry does; 0: there is none. */
uint32_t promise_record_find(const struct replay *replay, const struct port_ticket *place,
                             const struct port_entry *entry);
/* A message comes to turns. It waits at the link for as long as it is there but not on it. */
void promise_record(struct replay *replay, const struct port_entry *entry, int64_t now_ps);
/* A message has left, at another instant than was promised. */
void promise_record_end(struct replay *replay, const struct port_entry *entry, int64_t now_ps);
/* A slice begins with its first byte. Whatever comes to a link moves the slices that are still to
 * come. */
void promise_records_move(struct replay *replay, const struct port_ticket *place,
                          const struct port_queue *queue, int64_t now_ps);

/* Whether an event is void; if so, removes it from the void events. */
bool promise_void_take(struct replay *replay, uint64_t key, uint32_t chip, int64_t stamp);

/* Whether an event of some chip with this key and stamp may be void. */
static inline bool promise_may_be_void(const struct replay *replay, uint64_t key, int64_t stamp)
{
    return replay->ports != NULL && replay->ports->void_left > 0 &&
           *port_void_slot(replay->ports, key, stamp) > 0;
}

static inline bool promise_is_void(struct replay *replay, uint64_t key, uint32_t chip,
                                   int64_t stamp)
{
    return promise_may_be_void(replay, key, stamp) && promise_void_take(replay, key, chip, stamp);
}

/* Whether a message finds the link with messages of another stream, or of a lane of its own stream
 * that it takes turns with. `lane`: NULL: of a stream without lanes. */
static inline bool promise_meets(const struct replay *replay, const struct link_state *link,
                                 uint32_t stream, const struct lane_table *lane, int64_t now_ps)
{
    return link->free_ps > now_ps && replay->ports != NULL &&
           (link->stream != stream ||
            (lane != NULL && lane->takes_turns && link->lane != lane->number));
}

/* The instant until which a departing message is read: its own end, or the end of all work of the
 * link where its own end is not known. */
static inline int64_t promise_left_ps(const struct link_state *link, int64_t depart_ps)
{
    return depart_ps == lane_held_ps ? link->free_ps : depart_ps;
}

/* The number of a message over several links of the grid, in the order of its arrival. Of messages
 * under way few have one lane, so the last digits are enough. */
static inline uint64_t arrival_number(uint32_t number)
{
    return (uint64_t)(number & ((1u << KEY_HOP_BITS) - 1)) << KEY_HOP_SHIFT;
}

/* routed.c: the link of an EVENT_PORT of a sender. */
void routed_port_ticket(struct replay *replay, uint64_t key, uint32_t sender,
                        struct port_ticket *ret_place);
/* The order of the arrival of such a message, and the latency from the begin of the next link to
 * the arrival. */
uint64_t routed_rest(struct replay *replay, uint64_t key, uint32_t sender, int64_t *ret_ps);

#endif
