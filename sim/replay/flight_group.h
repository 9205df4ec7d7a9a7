/*
 * flight_group.h: collectives of all replayed chips whose messages wait for each other at links
 * alone. Internal to sim/replay.
 *
 * Where the replayed chips stand for nodes of several units of switches, a collective leads from
 * chip to chip, and cannot fly by itself (flight.h). If its messages wait for no arrival, all that
 * happens follows from the instants at which the chips begin. So the chips fly together:
 *
 *   first chip begins    links of all messages are free    -> links are marked
 *   further chips begin  before a message can have arrived -> nothing is posted
 *   last chip begins     instants of all messages are found, link by link: of each link the heads
 *                        that come to it are put in order, and each takes the link when it is free
 *                                                           -> the end is posted for each chip
 *   serve, close, land   as of a chip that flies by itself, with logs that have just been written
 *
 * Mostly the same chips begin late from one collective to the next, all by as much, and only by how
 * much changes. An instant of a message then follows from the begin of the first chips or from that
 * of the late ones, as long as no comparison of two instants turns. So the second time that such
 * chips are late their instants are found with what they follow from, and with the range in which
 * no comparison turns; and from then on they move.
 *
 * The way of a message leads from links of a lower rank to links of a higher one, so one pass over
 * the links by rank is enough. Orders of heads change little from one collective to the next; they
 * are kept, and sorting them takes a comparison each.
 *
 * The chips fly only if their collectives end at one instant: then no chip begins another one while
 * messages of this one are under way. They land where a chip cannot join, where one begins so late
 * that a message would have arrived (`timer_ps`), and where another message comes to a link.
 */
#ifndef SIM_REPLAY_FLIGHT_GROUP_H
#define SIM_REPLAY_FLIGHT_GROUP_H

#include "sim/replay/flight.h"

enum {
    GROUP_MESSAGES_MAX = 1 << 16,
    GROUP_LINKS_MAX = 1 << 12,
    GROUP_COSTS_MAX = 64,
    GROUP_PENDING_MAX = 1 << 17, /* Events of a collective that lands. */
    GROUP_MISSES_MAX = 2,
    /* At most, of a message that leads over four links. */
    GROUP_MESSAGE_BYTES = 256,
};

/* What a message is at a link of its way. */
struct group_cost {
    int64_t link_ps;    /* Own time on the link. */
    int64_t slowest_ps; /* The longest on the links before: its tail is so far behind its head. */
    int64_t latency_ps;
    int64_t own_ps;                /* With `last`: its passage, as the receiver counts it. */
    int64_t work_ps[SERVER_COUNT]; /* With `last`: at the receiver's servers. */
    bool last;
};

struct group_message {
    uint64_t key;              /* Of its arrival, in epoch 0. */
    int64_t head_ps;           /* From the first begin: its head comes to the next link. */
    uint32_t first_ps;         /* From its begin on, its head comes to the second link. */
    uint16_t sender, receiver; /* Each chip sends, so there are no more than messages. */
};

/* A head at a link, behind the first. */
struct group_hop {
    int64_t at_ps; /* From the first begin. */
    uint16_t message;
    uint8_t cost;
    uint8_t links; /* From this one to the last. */
};

struct group_link {
    struct link_state *link;
    struct link_waits *waits; /* NULL: not counted. */
    struct group_hop *hops;
    uint32_t hop_count;
    uint32_t rank;   /* 0: the first link of a chip's messages, or one where nothing waits. */
    uint32_t sender; /* Of messages whose first link this is; UINT32_MAX: of none. */
    uint32_t packed; /* While links are ordered: the place. */
    uint32_t messages;
    uint32_t port;
    bool waits_here; /* Messages may wait for the link. */
    int64_t busy_ps;
    uint64_t bytes;
    int64_t free_ps; /* From the first begin; with a sender from the sender's. */
    uint64_t waited_ps;
    int64_t queued_ps;                     /* The longest wait. */
    int32_t free_by, waited_by, queued_by; /* How far these move, as `head_by`. */
};

/* How much later than they are late chips may begin, and no comparison turns. */
struct group_range {
    int64_t least_ps, most_ps;
};

/* How instants move where the same chips are late again, by another time. */
struct group_moves {
    uint8_t *is_late;    /* [chip]: whether it does not begin first. */
    int8_t *head_by;     /* [message]: how far `head_ps` moves for each picosecond that they are
                            later. */
    int8_t **arrived_by; /* [chip][arrival]: how far arrivals move, from their receiver's begin. */
    struct group_range range;
    /* Begins of late chips behind the first; 0: chips are late by several times. */
    int64_t late_ps;
    int32_t end_by; /* How far the end moves, from the first begin. */
    uint32_t vain;  /* Ranges that were found, less moves. */
    bool are_known; /* Within `range`. */
};

struct flight_group {
    struct lane_table *lane;
    struct group_message *messages; /* [message] */
    struct group_link *links;       /* [link]: by rank. */
    struct group_cost costs[GROUP_COSTS_MAX];
    uint32_t message_count, link_count, cost_count;
    uint64_t hop_key;  /* From a link to the next, orders of events rise by it. */
    int64_t window_ps; /* From the first begin: before that nothing has arrived. */
    /* By chip. What depends on the instants of begin is written anew for each collective. */
    struct flight_log *logs;
    struct flight_instant **arrived_at;
    struct flight_arrival **arrived;
    uint16_t **senders;   /* Senders of what has arrived. */
    uint8_t **cost_of;    /* Costs of what has arrived. */
    int64_t *shard_ps;    /* HBM time of writing the shard; 0: there is none. */
    int64_t *later_ps;    /* Begins behind the first. */
    uint64_t *begin_keys; /* Of the events in which the chips began. */
    bool timed;           /* All instants are those that follow from `later_ps`. */
    struct group_moves moves;
    uint32_t joined; /* Chips that have begun. */
    uint32_t misses; /* Landings, less collectives that flew to their end. */
};

/* Makes room in `flights`. `together`: collectives may fly together. */
enum status flight_groups_build(struct arena *arena, const struct replay *replay, bool together,
                                struct flights *flights, struct error *reterr);

/* flight_group_build.c: the collectives of a plan, or NULL where they cannot fly together, or
 * memory ends. */
struct flight_group *flight_group_build(struct replay *replay, uint32_t plan);
/* flight_group_time.c: what all messages do, from the begins of the chips on. False: the chips do
 * not end at one instant. */
bool flight_group_time(struct replay *replay, struct flight_group *group, uint32_t stream);

/* A collective begins on a chip, and does not fly by itself. False: its messages are simulated. */
bool flight_group_begin(struct replay *replay, uint32_t stream, uint32_t chip, int64_t now_ps);
/* It ends on a chip, and thus on all. */
void flight_group_close(struct replay *replay, uint32_t stream);
void flight_group_land(struct replay *replay, uint32_t stream);
/* Whether the group that flies on a stream uses a link. */
bool flight_group_uses(const struct replay *replay, uint32_t stream, const struct link_state *link);
/* Whether some chips have begun a collective that flies, and others have not. */
bool flight_groups_wait(const struct replay *replay);

#endif
