/*
 * routed.h: messages that name their receivers, from chip to chip over the links of route.h.
 *
 * An event is the head of a message at its next link, or all of it at its end. Its payload is the
 * chip that SENT it; everything else is computed anew from the lane, the number of the message and
 * the coordinates, so a message on its way needs no memory.
 *
 * Order. Links of a level, and links of the grid on the way, are touched by messages of many
 * senders, and the engine does not define the order of payloads within a batch (engine.h). So two
 * messages with the same instant and key must never touch the same link, nor the same lane of the
 * same receiver. The key is: kind, stream, lane, plan, epoch (which collective of the stream), hop,
 * number (which message of the lane) and a discriminator. Messages that agree in all but the
 * last have different senders, and:
 *
 *   a translating primitive on the grid    They are displaced alike: where each has gone `hop`
 *       links the one's way is the other's, shifted by the difference of the senders, so they are
 * at different chips. On a line senders may go in opposite directions; then they use different
 *       ports, and once both have gone on along another axis their lines differ. Discriminator 0.
 *   the same on a twisted torus    A step up from the last place of an axis that does not close
 *       comes out in another line, so senders whose digits are displaced alike may lie to their
 *       receivers in different ways: those that pass the end of their extent and those that do
 *       not. Which they are follows from the sender's place in the extent along such axes, which
 *       is its discriminator. Senders that agree there are displaced alike as chips of the torus,
 *       and a way depends on that alone (machine/path_twisted.c), never on the sender's place: it
 * is the other's, shifted, as above. on a level    A shift of the senders that maps units onto
 * units and groups onto groups (a multiple of each queueing tier's boxes, and of the group's extent
 * unless one divides the other) takes links to other links. What is left is to tell apart senders
 * within such a shift: the discriminator is the sender's place in the box of that shift. Chips
 * below a switch (every cable is one chip's) have a box of 1, so their discriminator is 0 and they
 *       share entries of the queue.
 *   a primitive that does not translate    Its positions are told apart too: the discriminator is
 *       the sender's place in the whole extent of the group, or in the least shift that maps the
 *       primitive onto itself (half the extent for partners at doubling distance, 1 along the
 *       slowest digit of a ring over all positions): senders such a shift apart are displaced
 *       alike.
 *
 * Nothing of the key depends on where a fold cuts the machine: a folded run decides ties as the
 * full one does. Sends touch the first link of a way, which belongs to the sender alone.
 *
 * Epochs. Members of a group are mostly one collective apart, but the root of a broadcast may be
 * several ahead. A receiver keeps what comes for the next EPOCHS_AHEAD; a run in which anybody is
 * further behind is refused.
 */
#ifndef SIM_REPLAY_ROUTED_H
#define SIM_REPLAY_ROUTED_H

#include "sim/replay/arrival_cost.h"
#include "sim/replay/route.h"

enum {
    EPOCHS_AHEAD = 4, /* Rows of an inbox: the running collective and three to come. */
    ROUTED_COST_BITS = 4,
    ROUTED_COSTS = 1 << ROUTED_COST_BITS, /* Costs that a lane remembers. */
    /* Most places of a lane's messages that are remembered, so that caches hold them. */
    ROUTED_WAYS_MAX = 1 << 14,
};

/* Time and memory traffic of a routed message, by its units. */
struct routed_cost {
    uint32_t units;             /* 0: no cost is remembered. */
    int64_t *link_ps;           /* [kind] */
    uint64_t *bytes;            /* [kind]: bytes on the wire. */
    int64_t slowest_ps;         /* The longest of link_ps. */
    struct message_cost memory; /* The memory traffic; link_ps and bytes of it are unused. */
};

/* The `number`-th message of a translating primitive, the same for all positions. */
struct routed_step {
    struct place by; /* Displacement, along each axis less than the group's extent. */
    uint32_t units;
    uint32_t slot;
    uint8_t antipode; /* Axes on which a message half way round goes down; bits. */
};

/* The place of a chip's message of a step after a number of links. */
struct routed_way {
    struct route_link at; /* at.link is NULL: not looked up yet. */
    uint32_t receiver;    /* The number of the receiving chip among the replayed ones. */
    uint32_t tie;         /* The sender's discriminator. */
    /* Where positions differ: units and slot of the message, and arrivals at the receiver in a
     * piece. */
    uint32_t units, slot, arrivals;
    uint8_t level, top; /* Level of the message, and the highest tier of its way. */
};

/* Places that are remembered of all messages of a lane. */
struct routed_places {
    struct routed_way *ways; /* [step][hop][sender]; by place steps of `pieces` pieces. */
    uint32_t hops;
    uint32_t pieces; /* By place: the ways of piece p are those of piece p + `pieces`. */
};

struct tree;

/* How the messages of a lane find their ways. */
enum routed_guide {
    ROUTED_BY_POSITION, /* Positions differ: each link asks for a message's step anew. */
    ROUTED_BY_PLACE,    /* Positions differ and places are few: `places` remember them. */
    ROUTED_BY_STEP,     /* Positions are alike: `steps` have each message's displacement. */
    ROUTED_BY_AXIS,     /* Positions are alike and displacements lie along one axis of switches. */
    ROUTED_BY_WAY,      /* Positions are alike and places are few: `places` remember them. */
    ROUTED_TOGETHER,    /* Positions and links are alike: messages of a number go alike. */
    ROUTED_BY_TREE,     /* Switches copy or add messages: `tree`. */
};

struct routed_lane {
    enum routed_guide guide;
    struct tree *tree;
    uint32_t tree_units; /* Units of each message of the tree. */
    const struct plan *plan;
    const struct plan_item *item;
    uint32_t axes;       /* Machine axes that the item spans; bits. */
    uint32_t axis;       /* The only axis of `axes`, with ROUTED_BY_AXIS. */
    bool switched;       /* A level serves some of these axes. */
    bool twisted;        /* Routes over several axes use links around twisted ones. */
    uint8_t tie_bits;    /* Lowest bits of the order key: the discriminator. */
    uint8_t number_bits; /* Bits above the discriminator: the number; above these the hop. */
    struct path_balance balance;
    const struct routed_step *steps; /* [number] */
    struct routed_places places;
    uint32_t extent[MACHINE_AXES_MAX]; /* Size · stride. */
    uint32_t stride[MACHINE_AXES_MAX];
    uint32_t *end[MACHINE_AXES_MAX]; /* [coordinate]: end of its extent. */
    uint32_t *tie[MACHINE_AXES_MAX]; /* [coordinate]: its term of the discriminator. */
    uint64_t wakes;                  /* Lanes of its item that may wait for its arrivals; bits. */
    uint32_t words;                  /* Words of a row of slots. */
    uint64_t *slots;       /* [chip][epoch row][word]; NULL: arrivals count in any order. */
    uint32_t *ahead;       /* [chip][epoch row]: messages that came for the epoch. */
    uint32_t *ahead_units; /* [chip][epoch row]: units of these messages. */
    int64_t overhead_ps[1 + LEVELS_MAX]; /* Of a message: [0] over the grid, [1 + n] by level n. */
    struct routed_cost costs[ROUTED_COSTS];
};

/* A message, as its event names it. */
struct routed_message {
    uint32_t units;
    /* Of its units, until another message of the lane is looked at: routed_price(). */
    const struct routed_cost *cost;
    const struct routed_step *step; /* NULL: positions differ. */
    uint32_t epoch;
    uint32_t hop;
    uint32_t number;
    uint32_t slot;           /* Over all pieces. */
    struct routed_way *ways; /* [hop][sender] of the step; NULL: none remembered. */
    uint32_t pieces_before;  /* By place: pieces before the ones whose ways are remembered. */
    struct path_course course;
    struct path_leg leg; /* With ROUTED_TOGETHER. */
    struct route_ends ends;
};

/* The bit of one of an item's lanes; those behind the 64th share one. */
static inline uint64_t lane_bit(uint32_t lane)
{
    return UINT64_C(1) << (lane < 63 ? lane : 63);
}

/* Fills lane->routed of a lane whose item is routed. */
enum status routed_build(struct arena *arena, struct replay *replay, const struct plan *plan,
                         struct lane_table *lane, struct error *reterr);

/* Sends the lane's next message, the `number`-th of a piece; returns when its tail has left. */
int64_t routed_send(struct replay *replay, struct lane_table *lane, uint32_t chip, uint32_t piece,
                    uint32_t number, int64_t now_ps);
/* Marks the run as refused: a chip is too far behind others that send to it. */
void routed_refuse_ahead(struct replay *replay, const struct lane_table *lane, uint32_t chip);
void routed_hop(struct replay *replay, uint64_t key, const uint32_t *chips, uint32_t count,
                int64_t now_ps);
void routed_arrive(struct replay *replay, uint64_t key, const uint32_t *chips, uint32_t count,
                   int64_t now_ps);
void routed_land(struct replay *replay, uint64_t key, const uint32_t *chips, uint32_t count,
                 int64_t now_ps);
/* Counts messages that came before the collective began; returns parts that are thereby done. */
uint32_t routed_begin(struct replay *replay, const struct lane_table *lane, uint32_t chip);
void routed_end(struct replay *replay, const struct lane_table *lane, uint32_t chip);
/* Prefetches the data of an event's handler. */
void routed_ahead(struct replay *replay, uint64_t key, uint32_t chip);
/* Messages of a lane that can be under way at once. */
uint64_t routed_bound(const struct lane_table *lane);

/* Fills a cost that a lane does not remember. */
void routed_cost_fill(const struct replay *replay, const struct lane_table *lane, uint32_t units,
                      struct routed_cost *cost);

static inline const struct routed_cost *
routed_cost_of(const struct replay *replay, const struct lane_table *lane, uint32_t units)
{
    /* Scattered by the golden section of 2^32: sizes of a lane are powers of two, or neighbours. */
    struct routed_cost *cost =
        &lane->routed->costs[units * UINT32_C(2654435769) >> (32 - ROUTED_COST_BITS)];
    if (cost->units != units) routed_cost_fill(replay, lane, units, cost);
    return cost;
}

/* Looks the cost of a message up again if it has been forgotten. A lane remembers costs of a few
 * units only, and handlers that send, or land a collective, look at other messages in between. */
static inline void routed_price(const struct replay *replay, const struct lane_table *lane,
                                struct routed_message *message)
{
    if (message->cost->units != message->units)
        message->cost = routed_cost_of(replay, lane, message->units);
}

/* A place's part of the discriminator. */
static inline uint32_t routed_tie(const struct routed_lane *routed, const struct place *place)
{
    uint32_t tie = 0;
    if (routed->tie_bits == 0) return 0;
    for (uint32_t axis = 0; axis < MACHINE_AXES_MAX; axis++)
        tie += routed->tie[axis][place->at[axis]];
    return tie;
}

/* The order of an event, less hop, number and discriminator. */
static inline uint64_t routed_key(const struct lane_table *lane, enum replay_event event,
                                  uint32_t epoch)
{
    return event_key_make(event, KEY_ROUTED, lane->stream, lane->number) |
           (uint64_t)lane->plan->index << KEY_ROUTED_PLAN_SHIFT |
           (uint64_t)epoch << KEY_EPOCH_SHIFT;
}

/* Length of a message, in its step's units. */
static inline uint32_t routed_portion_size(const struct lane_table *lane, uint32_t piece)
{
    if (lane->portions == 1) return 1;
    return plan_item_portion_size(lane->item, piece % lane->portions);
}

static inline struct lane_table *routed_lane_of(struct replay *replay, uint64_t key)
{
    uint32_t const lane = event_key_lane(key);
    const struct plan_table *plan =
        &replay->lanes.plans[event_key_field(key, KEY_ROUTED_PLAN_SHIFT, KEY_ROUTED_PLAN_BITS)];
    return &plan->lane[lane - plan->lane_first];
}

#endif
