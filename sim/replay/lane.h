/*
 * lane.h: lanes of the plans: what all chips share of a lane, and where each chip is in it.
 */
#ifndef SIM_REPLAY_LANE_H
#define SIM_REPLAY_LANE_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/status.h"
#include "sim/collective/plan.h"
#include "sim/program/program.h"

struct arena;
struct flights;
struct record_passing;
struct grid_port;
struct message_cost;
struct replay;
struct routed_lane;
struct stream_state;

/* Consecutive lanes of a plan: an item's. */
struct lane_range {
    uint8_t first;
    uint8_t count;
    uint8_t lead;         /* Pieces that a waiting lane may be ahead. */
    uint16_t portions;    /* Portions of each piece of the item. */
    const uint32_t *wait; /* Parts of a piece to wait for (plan_item.wait); NULL: all. */
};

enum { LANE_RANGES_MAX = PLAN_ITEMS_MAX, RUNNING_NONE = 0xffff };

struct lane_state {    /* 32 bytes: two to a cache line. */
    int64_t free_ps;   /* Instant at which the last of its messages has left. */
    uint32_t ahead;    /* Messages that arrived for ops still to come; routed: before others of
                          this op that are counted first. */
    uint32_t sent;     /* Messages of the running op that were sent. */
    uint32_t counted;  /* Messages of the running op that arrived. */
    uint32_t sends;    /* Messages that the running op sends in all pieces. */
    uint32_t arrivals; /* Messages that arrive for the running op in all pieces. */
    bool waiting;      /* An EVENT_LANE_READY is under way. */
    bool finished;
    bool alone_before; /* No message of items that the lane waits for comes to this chip. */
    bool alone_behind; /* This chip sends no message in items that wait for the lane. */
};

/* The fixed route of a lane's messages: to a neighbour, or over several links of the grid. */
struct lane_route {
    uint8_t leg_count;
    struct plan_leg leg[PLAN_ROUTE_MAX];
    uint16_t hop_count;
    bool single;             /* One link a message, and no server of a chip delays it. */
    struct grid_port *ports; /* [chip]: the first link of the route, and its reads. */
    const uint8_t *classes;  /* [chip · MACHINE_PORTS_MAX]: of the first link; NULL: all are 0. */
    const uint32_t *neighbours; /* [chip]: the chip at the end of that link. */
    int64_t overhead_ps;        /* Of a message, in addition to the latency of its links. */
    uint32_t *passed; /* [hop][chip]: messages that came so far; NULL: not needed (port.h). */
    struct record_passing *passing; /* [hop - 1][chip]; NULL unless later links are recorded. */
    uint32_t *recorded; /* [chip]: 1 + index of its last message's record, 0: none; NULL unless
                           messages of one link are recorded. */
};

/* The place of a lane among the items of its plan: what waits for what. */
struct lane_chain {
    bool first;          /* The first of its order of axes: it reads the operand. */
    bool last;           /* The last of its order of axes: it completes the share. */
    bool by_step;        /* Steps of the lane wait for different portions of the item before. */
    bool counts;         /* Streams may count on parts after arrivals of the lane. */
    bool led_by_message; /* Portions of the item behind wait for its single messages. */
    uint8_t before_count, behind_count;
    struct lane_range before[LANE_RANGES_MAX]; /* Lanes of items that this lane waits for. */
    struct lane_range behind[LANE_RANGES_MAX]; /* Lanes of items that wait for this lane. */
    const bool *awaited; /* [arrivals counted]: some lane may wait for that count; NULL: for any. */
};

/* What the messages of a lane cost that go to a neighbour or on a fixed route. */
struct lane_costs {
    uint32_t units_max;
    struct message_cost *cost; /* [link class][units] */
    int64_t shard_ps;          /* HBM time of writing the shard of a ReduceScatter, per piece. */
    uint64_t units_total;      /* Units of a ring's lane in one piece; for the check of its port. */
};

/* What the next message of a light lane waits for. */
struct light_step {
    uint32_t arrivals; /* Messages of the lane that have arrived here. */
    uint32_t wanted;   /* Parts of the operand, if it reads the operand. */
    uint16_t units;
    bool reads_operand;
    bool asks_before; /* The message may wait for arrivals in other lanes. */
};

/* What each position of a lane sends and receives in a piece. */
struct lane_steps {
    const uint32_t *send_count;    /* [position]: messages that it sends. */
    const uint32_t *arrival_count; /* [position]: messages that arrive at it. */
    /* Steps of all positions, if they are not too many; else NULL. */
    const struct primitive_step *all; /* [first[position] + number] */
    const uint32_t *first;            /* [position]; of a ring [0] alone. */
    struct primitive_step asked;      /* Where `all` is NULL: what was asked for last. */
    /* [messages sent, in all pieces]: of a ring with one link a message, in neither a script nor a
     * SEND, where messages are neither recorded nor their waits counted. NULL: of another lane. */
    const struct light_step *light;
};

/* The stream of a lane. */
struct lane_owner {
    const uint16_t *running;     /* [chip]: plan of the running collective. */
    struct stream_state *states; /* [chip] */
};

/* A lane of one plan: the data that all chips share. Constant, except `steps.asked`. */
struct lane_table {
    const struct primitive *primitive;
    uint32_t size; /* The dimension's size. */
    uint8_t lane;  /* The primitive's lane. */
    uint8_t stream;
    uint8_t number;       /* Among the lanes of all streams. */
    uint8_t phase;        /* Of its order, from 0; with pieces, which are in several, 0. */
    bool ring;            /* Every position behaves as position 0. */
    bool waits;           /* Some step of its item waits for its arrivals. */
    bool reduces;         /* A ReduceScatter: its operand may still be computed. */
    bool posts;           /* Messages of the lane are SENDs: they are counted where they arrive. */
    bool abreast;         /* Messages go to their first links at once (routed_tables.c). */
    bool takes_turns;     /* With other lanes also where its stream has the link alone (port.h). */
    uint32_t piece_count; /* Pieces, with each portion counted as a piece. */
    uint32_t portions;    /* Portions that make up one piece of the array. */
    const uint32_t *position; /* [chip]; unused where ring. */
    struct lane_steps steps;
    struct plan_table *plan;
    const struct plan_item *item;
    struct lane_state *states; /* [chip] */
    struct lane_owner owner;
    struct lane_chain chain;
    struct lane_costs costs;
    struct lane_route route;
    struct routed_lane *routed; /* NULL: its messages have a fixed route. */
};

struct plan_table {
    const struct plan *plan;
    struct lane_table *lane;
    uint32_t lane_count;
    uint32_t lane_first; /* The plan's first lane, among the lanes of all streams. */
    uint32_t index;      /* In lanes.plans. */
    uint32_t stream;
    uint32_t *begun; /* [chip]: ops with this plan that began; NULL: not recorded. */
};

struct lanes {
    uint32_t count;           /* Lanes of all streams. */
    struct plan_table *plans; /* One for each plan of each stream. */
    uint32_t plan_count;
    uint16_t *plan_index;      /* [stream][plan of the program]: in plans, or RUNNING_NONE. */
    struct lane_state *states; /* [lane][chip] */
    uint16_t *running;       /* [stream][chip]: plan of the running collective, or RUNNING_NONE. */
    struct flights *flights; /* flight.h; NULL: every message is simulated. */
};

/* A table for each plan of each stream; needs all other tables. */
enum status lanes_build(struct arena *arena, struct replay *replay, struct error *reterr);
/* Sets the lanes' pointers into the arrays of state, which must exist. */
enum status lanes_attach(struct arena *arena, struct replay *replay, struct error *reterr);
/* What a position sends as its message of a number, in every piece. */
static inline struct primitive_step lane_step(const struct lane_table *lane, uint32_t position,
                                              uint32_t number)
{
    if (lane->steps.all != NULL) return lane->steps.all[lane->steps.first[position] + number];
    if (lane->routed == NULL)
        return lane->primitive->step(lane->size, lane->lane, position, number);
    return plan_step(lane->plan->plan, lane->item, lane->lane, position, number);
}

/* The cost of a message, without its time on a link. */
/* Bytes on the wire of a payload, by the plan's protocol: between nodes, or by a nearer way. */
uint64_t lane_wire_bytes(const struct plan *plan, uint64_t bytes, bool is_far);

struct message_cost lane_message_cost(const struct replay *replay, const struct plan *plan,
                                      const struct primitive *primitive, uint64_t bytes);

#endif
