/*
 * port.h: a link that several streams want at once, or several lanes of one stream.
 *
 * Messages of a lane that is alone on a link go first come, first served. Where several streams
 * meet, they take turns of one segment each (run.arbitration `fair`), or the more urgent one goes
 * first, again in turns of a segment (`priority`).
 *
 * In a stream's turns its lanes take turns of a segment, and lanes of an earlier phase go first. A
 * gather over three axes has lanes with small messages of an early phase and large ones of a late
 * phase. Alone they meet only where axes are of unlike length; once another stream has put them out
 * of step, they do anywhere. A ring sends a message when the one before has come: if a small one
 * waited for a whole large one at each step, as many large ones would pass as there are steps, the
 * axis of the next phase would idle for so long, and the next gather would begin as far out of
 * step. Pieces are in several phases at once and keep themselves in step (plan_item.turn): without
 * another stream they go as they come, and with one in turns, whatever their phase. So do messages
 * that name their receivers: a chip may put all of them on a link at once, and with turns each of
 * them would have events of its own. All others keep to links of the grid, so on cables of levels
 * nobody asks for the last lane.
 *
 * Turns follow one another without a gap, so a link is free when it would have been had all waited
 * in one queue (link_state.free_ps); what arbitration decides is who leaves when.
 *
 * Who takes turns. A queue knows for each stream how much work it was asked for and how much of it
 * is done at the next turn's beginning, and in which order streams come. When the k-th picosecond
 * of a stream's work is done follows from these in closed form, if nothing else comes
 * (port_done_ps()): rounds are not events. In the same way the turns of a stream's lanes say at
 * which amount of the stream's work a message is done (port_lanes.c). A stream that comes while a
 * segment is on the link goes before the stream of that segment, behind all others. A stream whose
 * work ends has no turn until it asks again.
 *
 * What is promised. A message that finds its link free, or only its own stream on it, has its
 * events posted at once, as if nothing else could come: events, instants and their number are those
 * of a queue without arbitration (promise.h says what happens if something comes).
 *
 * The order of instants. Everything is decided on arrival at the link, in the order of events; no
 * two events of one instant and key touch the same link (routed.h), so ties go by the relative key.
 */
#ifndef SIM_REPLAY_PORT_H
#define SIM_REPLAY_PORT_H

#include "sim/base/hashed.h"
#include "sim/replay/route.h"

enum {
    PORT_SEGMENT_NCCL_BYTES = 1 << 20, /* NCCL's slice: port.c. */
    PORT_SEGMENT_BYTES = 1 << 16,      /* Where NCCL does not cut. */
    PORT_SHARED = 0xff,                /* link_state.stream: streams take turns. */
    PORT_NO_STREAM = 0xff,
    PORT_NO_LANE = 0xffff,
    PORT_DONE_LONG_AGO = -1, /* port_entry.done_ps */
    PORT_BY_TURNS = -2,      /* port_entry.done_ps, begun_ps: not fixed yet */
};

/* Not known: its last message waits for turns. */
static const int64_t lane_held_ps = INT64_MAX;

/* A message at a link, as long as its events could change. */
struct port_entry {
    struct lane_table *lane;
    uint64_t key;       /* The key of the next event: the head at the next link, or the arrival. */
    int64_t work_ps;    /* The message's own time on this link. */
    int64_t end_ps;     /* Promised instant at which the tail leaves this link. */
    int64_t tail_ps;    /* Earliest instant at which the tail may leave. */
    int64_t latency_ps; /* From this link to the next event. */
    int64_t lane_ps;    /* Where lanes take turns: the lane's work at the message's end. */
    /* The stream's work at the message's end, and at its first picosecond: port_ticket_done_ps().
     */
    int64_t done_ps, begun_ps;
    uint32_t chip;   /* Sender of a routed message; otherwise the owner of the port. */
    uint32_t number; /* On routes of several links: the message's number in its lane. */
    uint32_t next;   /* Next entry of the stream's list, or of the link's. */
    uint32_t before; /* The entry before in a stream's list. */
    uint32_t turns; /* The one of `lanes` whose turns decide when the message is done, until that is
                       fixed. */
    uint32_t turns_next; /* The next entry that the same turns decide. */
    uint32_t record;     /* 1 + index of its timeline record; 0: none. */
    bool last;           /* The next event is its arrival. */
    bool own;            /* This link is the first of the route: the lane waits for the end. */
    bool withheld;       /* An EVENT_PORT will post its next event. */
    bool head_withheld;  /* An EVENT_PORT will post the event of its head. */
};

struct port_list {
    uint32_t first, last; /* Entries; 0: none. */
};

/* A lane that has work left at a shared link. */
struct port_lane {
    int64_t asked_ps;  /* Work that the lane has asked for since it came. */
    int64_t served_ps; /* Work of the lane that is done when the next turn begins. */
    uint16_t number;
    uint8_t phase;        /* Lanes of the earliest phase go first. */
    uint32_t next;        /* The lane with the next turn of the stream. */
    uint32_t first, last; /* Entries whose ends are not fixed; 0: none. */
};

/* A stream at a shared link. */
struct port_flow {
    int64_t asked_ps;  /* Work that the stream has asked for since the start. */
    int64_t served_ps; /* Work of the stream that is done when the next turn begins. */
    struct port_list list;
    int64_t turn_ps;     /* Work of the stream that is done when the next turn of a lane begins. */
    uint32_t lane_first; /* Lanes with work left, in the order of their turns. */
    uint16_t lane_current; /* The lane whose turn ends at turn_ps; or PORT_NO_LANE. */
    uint32_t promised;     /* Entries whose events are posted. */
};

/* State of a link that several streams have wanted, in addition to link_state. */
struct port_queue {
    int64_t turn_ps;  /* When the next turn begins. */
    int64_t whole_ps; /* Work that goes before all turns: of messages that cannot be cut. */
    uint8_t count;    /* Streams with work left, in the order of their turns. */
    uint8_t current;  /* Stream whose turn ends at turn_ps; or PORT_NO_STREAM. */
    uint8_t turn[PROGRAM_STREAMS_MAX];
    struct port_flow *flow; /* [stream] */
};

/* A promise that is not kept: an event that is passed over when it comes. */
struct port_void {
    uint64_t key;
    int64_t stamp; /* The event's instant; 0 where the key has the message's number or epoch. */
    uint32_t chip; /* The event's payload. */
    uint32_t count;
    uint32_t next; /* The next free entry. */
};

/* Most events hash to a slot without void events, and need no look-up. */
enum { PORT_VOID_BITS = 8, PORT_VOID_SLOTS = 1 << PORT_VOID_BITS };

struct ports {
    uint8_t urgency[PROGRAM_STREAMS_MAX]; /* 0 goes first; all 0 where all are alike. */
    int64_t *segment_ps;                  /* [link kind] */
    struct port_queue *queues;            /* From 1, made when a link needs one. */
    struct port_flow *flows;              /* [queue][stream] */
    uint32_t stream_count;
    /* [queue]: entries while one stream is alone, all promised. Every message looks here, so they
     * lie close together. */
    struct port_list *kept;
    uint32_t queue_count, queue_capacity;
    struct port_entry *entries; /* From 1. */
    uint32_t entry_free, entry_count, entry_capacity;
    struct port_lane *lanes; /* From 1. */
    uint32_t lane_free, lane_count;
    bool lanes_lacked;       /* Lanes ran out, and the run is refused. */
    struct port_void *voids; /* From 1. */
    uint32_t void_free, voids_used, void_capacity;
    uint64_t void_left; /* Void events of all chips; 0: no look-up is needed. */
    uint32_t
        void_in_slot[PORT_VOID_SLOTS]; /* [slot]: void events whose key and stamp hash to it. */
    struct hashed named;      /* Entries of streams that take turns, by what an EVENT_PORT says. */
    struct hashed void_named; /* Void events, by all that they are known by. */
};

static inline uint32_t *port_void_slot(struct ports *ports, uint64_t key, int64_t stamp)
{
    uint64_t const mixed =
        (uint64_t)stamp * UINT64_C(0x9e3779b97f4a7c15) + key * UINT64_C(0xbf58476d1ce4e5b9);
    return &ports->void_in_slot[mixed >> (64 - PORT_VOID_BITS)];
}

/* A link as a message comes to it. */
struct port_ticket {
    struct link_state *link;
    struct link_waits *waits; /* NULL: not counted. */
    uint32_t kind;            /* The kind of link, in message_cost. */
    uint32_t port;
    uint32_t chip; /* Grid: the owner of the link. */
};

/* port_keep.c: more messages share links at once than there is room for: refuses the run. */
void port_no_room(struct replay *replay);

/* Keeps a message in an entry of its own; 0: there is no room, and the run is refused. */
uint32_t port_entry_add(struct replay *replay, const struct port_entry *entry);

/* An entry for a message; 0: there is no room, and the run is refused. */
static inline uint32_t port_entry_take(struct replay *replay)
{
    struct ports *ports = replay->ports;
    uint32_t const index = ports->entry_free;
    if (index != 0) {
        ports->entry_free = ports->entries[index].next;
        return index;
    }
    if (ports->entry_count < ports->entry_capacity) return ++ports->entry_count;
    port_no_room(replay);
    return 0;
}

static inline void port_entry_give(struct ports *ports, uint32_t index)
{
    ports->entries[index].next = ports->entry_free;
    ports->entry_free = index;
}

/* Does nothing for entry 0, which stands for none. */
static inline void port_list_append(struct ports *ports, struct port_list *list, uint32_t index)
{
    if (index == 0) return;
    uint32_t const before = list->first == 0 ? 0 : list->last;
    ports->entries[index].before = before;
    ports->entries[index].next = 0;
    *(before == 0 ? &list->first : &ports->entries[before].next) = index;
    list->last = index;
}

/* The number of a link's queue, which is made if there is none. */
static inline uint32_t port_queue_of(struct ports *ports, struct link_state *link)
{
    if (link->queue == 0) {
        SIM_ASSERT(ports->queue_count < ports->queue_capacity);
        link->queue = ++ports->queue_count;
        struct port_queue *queue = &ports->queues[link->queue];
        queue->current = PORT_NO_STREAM;
        queue->flow = &ports->flows[(uint64_t)link->queue * ports->stream_count];
    }
    return link->queue;
}

/* Whether messages that meet at a link take turns: under an arbitration other than `fifo`. */
bool ports_wanted(const struct replay *replay);

/* Sets replay->ports where ports_wanted(). */
enum status ports_build(struct arena *arena, struct replay *replay, uint64_t message_max,
                        struct error *reterr);

/* When the lane of a message that leaves at `depart_ps` has none under way at its first links. */
int64_t port_lane_leaves_ps(const struct replay *replay, const struct port_entry *of,
                            int64_t depart_ps);
void port_list_remove(struct ports *ports, struct port_list *list, uint32_t index);
/* The hash of what an EVENT_PORT says of its entry: the order but for the kind, and the chip. */
uint64_t port_name(uint64_t key, uint32_t chip);
/* An entry of a stream that takes turns is found by its name from now on. */
void port_name_add(struct ports *ports, uint32_t index);
/* Entries of a stream that takes turns; what is removed is done, and given away. */
void port_flow_append(struct ports *ports, struct port_flow *flow, uint32_t index);
void port_flow_remove(struct ports *ports, struct port_flow *flow, uint32_t index,
                      int64_t segment_ps);
/* A flow of a prefix fold goes on here, once its entries are copied: its lanes are copied, and its
 * entries found by their names. The run is refused where there is no room. */
void port_flow_take_over(const struct ports *from, struct replay *replay, struct port_flow *flow);
/* Inserts an entry into a list in the order of leaving. */
void port_list_sort_in(struct ports *ports, struct port_list *list, uint32_t index);

/* Advances the queue to the first turn that begins at `now_ps` or later. */
void port_advance(const struct ports *ports, struct port_queue *queue, int64_t segment_ps,
                  int64_t now_ps);
/* port_lanes.c: a stream has asked for an entry's work: the lane's turns in the stream's give the
 * entry's place in the stream's work. It moves as other lanes ask, until the lane's turns have come
 * so far. `ret_certain`: that of its first picosecond, and of its last, also if another lane comes.
 */
void port_lane_ask(struct ports *ports, struct port_flow *flow, uint32_t index, int64_t work_ps,
                   int64_t segment_ps, bool ret_certain[2]);
/* How much of the stream's work is done with the entry's last picosecond, and with its first, if
 * nothing else comes; of one that was done long ago: PORT_DONE_LONG_AGO, and anything. */
int64_t port_ticket_done_ps(const struct ports *ports, const struct port_flow *flow,
                            const struct port_entry *entry, int64_t segment_ps);
int64_t port_ticket_begun_ps(const struct ports *ports, const struct port_flow *flow,
                             const struct port_entry *entry, int64_t segment_ps);
/* An entry is done: its place moves no more. */
void port_ticket_fix(struct ports *ports, const struct port_flow *flow, uint32_t index,
                     int64_t segment_ps);
/* Ends the turns of lanes: all work of the stream is done. */
void port_lanes_end(struct ports *ports, struct port_flow *flow);
/* Copies the lanes of a flow of a prefix fold, once its entries are copied. */
void port_lanes_copy(const struct ports *from, struct ports *ports, struct port_flow *flow);

/* A stream asks for work. */
void port_ask(const struct ports *ports, struct port_queue *queue, uint32_t stream,
              int64_t work_ps);
/* The instant at which `done_ps` of a stream's work is done, if nothing else comes; 0: long ago. */
int64_t port_done_ps(const struct ports *ports, const struct port_queue *queue, uint32_t stream,
                     int64_t done_ps, int64_t segment_ps);
/* Whether that stays so if another stream comes. */
bool port_done_certain(const struct ports *ports, const struct port_queue *queue, uint32_t stream,
                       int64_t done_ps, int64_t segment_ps);

#endif
