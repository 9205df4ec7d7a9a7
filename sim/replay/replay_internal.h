/*
 * replay_internal.h: the state of a run, shared by the files of sim/replay.
 *
 *   replay.c     sets a run up, runs it, names ranks that are stuck, gathers the results
 *   tables.c     constants of a run: durations, lanes, neighbours
 *   streams.c    ops of a stream in order, needs, parts; the compute stream
 *   steps.c      further steps after the first
 *   transport.c  lanes of collectives, links, HBM's share of them
 *   hbm.c        what messages take of HBM, and what compute ops owe for it
 *   links.c      messages between neighbours
 *   port.c       links that several streams want; promise.c: events of messages that wait there
 *   route.c      the way between any two chips, and links of levels; route_twisted.c: if twisted
 *   routed.c     messages that name their receivers; routed_inbox.c: where they arrive
 *   host.c       copies to and from the host
 *   mail.c       messages between ranks of different roles, and waits for them
 *   account.c    breakdown, memory, records
 *   label.c      the ops of messages in a timeline
 *   early.c      pipelines replayed as one while they are alike
 *
 * State is kept as arrays over chips, [stream or lane or port][chip]: in a symmetric machine the
 * chips of a batch are adjacent in memory. A handler touches the state of one chip only.
 */
#ifndef SIM_REPLAY_REPLAY_INTERNAL_H
#define SIM_REPLAY_REPLAY_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/digest.h"
#include "sim/base/period.h"
#include "sim/base/units.h"
#include "sim/engine/engine.h"
#include "sim/replay/order.h"
#include "sim/replay/replay.h"
#include "sim/replay/server.h"
#include "sim/resource/compute.h"

/* Time and memory traffic of a message, by its units. */
struct message_cost {
    int64_t link_ps;   /* On a link of one class. */
    int64_t read_ps;   /* HBM time where it departs, on a chip of class 0. */
    int64_t write_ps;  /* HBM time where it lands. */
    int64_t vector_ps; /* VPU time of adding it where it lands. */
    uint64_t bytes;
};

/* Consecutive lanes of a plan: an item's. */
struct lane_range {
    uint8_t first;
    uint8_t count;
    uint8_t lead;         /* Pieces that a waiting lane may be ahead. */
    uint16_t portions;    /* Portions of each piece of the item. */
    const uint32_t *wait; /* Parts of a piece to wait for (plan_item.wait); NULL: all. */
};

/* NEED_CACHES: chips of a batch pass to the next op in turn, so the needs of both are kept. */
enum { LANE_RANGES_MAX = PLAN_ITEMS_MAX, RUNNING_NONE = 0xffff, NEED_CACHES = 8 };

struct lane_state {    /* 32 bytes: two to a cache line. */
    int64_t free_ps;   /* Instant at which the last of its messages has left. */
    uint32_t early;    /* Messages that arrived for ops still to come; routed: before others of
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

struct link_state {
    int64_t free_ps;
    int64_t busy_ps;
    uint64_t bytes;
    uint32_t queue; /* Index of its port_queue, once streams have met or messages are kept. */
    uint8_t lane;   /* On the grid: lane of its last message, among the lanes of all streams. */
    uint8_t stream; /* Stream of its messages; PORT_SHARED: streams or lanes take turns. */
};

/* Waits of a link's messages, if the caller asks for them: they cost a long run some percent. */
struct link_waits {
    uint64_t waited_ps; /* Sum over all messages; may wrap if the simulated run lasts for days. */
    uint64_t messages;
};

struct host_links;
struct label_passing;
struct mail;
struct ports;
struct routes;
struct routed_lane;
struct spread;

/* A lane of one plan: the data that all chips share. Constant, except `known`. */
struct lane_table {
    const struct primitive *primitive;
    uint32_t size;       /* Of the dimension. */
    uint8_t lane;        /* Of the primitive. */
    bool ring;           /* Every position behaves as position 0. */
    bool waits;          /* Some step of its item waits for its arrivals. */
    bool reduces;        /* A ReduceScatter: its operand may still be computed. */
    bool posts;          /* Its messages are SENDs: they are counted where they arrive. */
    bool first;          /* The first of its order of axes: it reads the operand. */
    bool last;           /* The last of its order of axes: it completes the share. */
    bool waits_by_step;  /* Its steps wait for different portions of the item before. */
    bool led_by_message; /* Portions of the item behind wait for its single messages. */
    bool abreast;        /* Messages go to their first links at once (routed_tables.c). */
    bool takes_turns;    /* With other lanes also where its stream has the link alone (port.h). */
    bool plain;          /* One link a message; links and HBM are all alike, and none waits. */
    uint8_t before_count, behind_count, leg_count;
    struct plan_leg leg[PLAN_ROUTE_MAX];
    uint16_t hop_count;
    uint32_t piece_count;     /* Pieces, with each portion counted as a piece. */
    uint32_t portions;        /* Portions that make up one piece of the array. */
    const uint32_t *position; /* [chip]; unused where ring. */
    const uint32_t *send_count;
    const uint32_t *arrival_count;
    uint32_t units_max;
    struct message_cost *cost; /* [link class][units] */
    int64_t shard_ps;          /* HBM time of writing the shard of a ReduceScatter, per piece. */
    uint64_t units_total;      /* Units of a ring's lane in one piece; for the check of its port. */

    const bool *awaited; /* [arrivals counted]: some lane may wait for that count; NULL: for any. */
    struct label_passing *passing; /* [hop - 1][chip]; NULL unless later links are recorded. */
    uint32_t *recorded; /* [chip]: 1 + index of its last message's record, 0: none; NULL unless
                           messages of one link are recorded. */
    uint32_t *passed;   /* [hop][chip]: messages that came so far; NULL: not needed (port.h). */
    struct plan_table *plan;
    const struct plan_item *item;
    struct routed_lane *routed; /* NULL: its messages go to a neighbour, or on a fixed route. */
    uint8_t stream;
    uint8_t number;             /* Among the lanes of all streams. */
    uint8_t phase;              /* Of its order, from 0; with pieces, which are in several, 0. */
    struct lane_state *states;  /* [chip] */
    struct server_reads *reads; /* [chip]: reads of messages that leave by the first port. */
    struct link_state *links;   /* [chip]: the first link of the route. */
    const uint32_t *neighbours; /* [chip]: the chip at the end of that link. */
    int64_t overhead_ps;        /* Of a message, in addition to the latency of its links. */
    int64_t latency_ps;         /* Of a message over one link of class 0, overhead included. */
    uint64_t arrive_order;      /* Of the arrival of a message over one link, less its units. */
    /* The last two steps asked for, where every position is alike: a chip sends one message and
     * then checks whether it may send the next. */
    struct {
        uint32_t sent;
        uint32_t piece;
        uint32_t number; /* Number of the step. */
        struct primitive_step step;
    } known[2];
    struct lane_range before[LANE_RANGES_MAX]; /* Lanes of items that this lane waits for. */
    struct lane_range behind[LANE_RANGES_MAX]; /* Lanes of items that wait for this lane. */
};

struct plan_table {
    const struct plan *plan;
    struct lane_table *lane;
    uint32_t lane_count;
    uint32_t index; /* In replay.plans. */
    uint32_t stream;
    uint32_t *begun; /* [chip]: ops with this plan that began; NULL: not recorded. */
};

/* A compute op on one class of chips. A span of time is cut into the op's parts as evenly
 * as integers allow: the first `longer` have 1 ps more. */
struct op_table {
    int64_t idle_ps; /* Time of a part on a chip without messages. */
    uint32_t idle_longer;
    uint32_t parts; /* 0: no op has this work. */
    struct op_server {
        int64_t shared_ps; /* Time of a part that the server bounds: its work on the server, and
                              the work that does not overlap it. 0: no work on the server. */
        int64_t spare_ps;  /* Time of the server that a part surely leaves, if `spares`. */
        uint32_t shared_longer;
        bool spares; /* No load of messages can delay the op. */
    } server[SERVER_COUNT];
};

/* Ops of one stream in one template, as indices into the template. */
struct stream_ops {
    const uint16_t *op;
    uint32_t op_count;
};

enum stream_phase {
    STREAM_WAITS,
    STREAM_RUNS,
    STREAM_LEAVES, /* Only messages that wait for turns at a link are left. */
    STREAM_ENDS,
    STREAM_FINISHED,
};

struct stream_state {
    uint32_t done;     /* Parts done since the start of the step. */
    uint32_t begun;    /* Parts begun since the start of the step. */
    uint32_t op_first; /* Value of `done` when the running op began. */
    uint32_t slot;
    uint16_t position; /* In stream_ops of the slot's template. */
    uint8_t phase;     /* enum stream_phase */
    uint8_t lanes_left;
    uint32_t waiters;    /* Streams of this chip that wait for parts of this stream; bits. */
    uint32_t wake_done;  /* The least number of done parts that wakes a waiter. */
    uint32_t wake_begun; /* The least number of begun parts that wakes a waiter. */
    uint16_t part;       /* Compute: part of the running op. Copy: piece of the copy. */
    bool part_runs;
    uint8_t epoch;          /* Collectives begun, modulo 64. */
    uint32_t operand_first; /* Collective: parts of the compute stream before the operand's op. */
    uint32_t operand_parts; /* Collective: parts of the operand's op; 0: the operand is there. */
    int64_t begin_ps;       /* Begin of the running op. */
};

struct chip_state {
    int64_t part_begin_ps;
    int64_t account_ps;       /* Instant up to which the breakdown is written. */
    int64_t first_begin_ps;   /* Of compute before the update; TIME_PS_NEVER: none yet. */
    int64_t last_end_ps;      /* Of compute before the update. */
    int64_t exposed_ps;       /* Exposed time in all. */
    int64_t exposed_last_ps;  /* Exposed time up to last_end_ps. */
    int64_t exposed_first_ps; /* Exposed time up to first_begin_ps. */
    uint32_t running;         /* Streams with a collective or a copy under way, as bits. */
    uint16_t chip_class;      /* Of the fold. */
    uint16_t role;
    uint8_t block_phase; /* enum program_phase of the compute stream's slot. */
    uint8_t last_phase;  /* enum program_phase of the op that ended last before the update. */
    bool computes;
    bool shown;
};

struct breakdown {
    int64_t compute_ps;
    int64_t exposed_ps;
    int64_t idle_ps;
};

struct phase_span {
    int64_t begin_ps;
    int64_t end_ps;
};

struct class_total {
    uint64_t count;
    int64_t busy_ps;
    int64_t exposed_ps; /* Exposed time charged to the class: each instant to one class. */
    int64_t idle_ps;    /* Time of its ops while the compute stream was idle, each in full. */
    int64_t end_ps;     /* End of the last op. */
};

struct memory_state {
    int64_t held_bytes[PROGRAM_MEMORY_COUNT];
    int64_t each_peak_bytes[PROGRAM_MEMORY_COUNT];
    int64_t at_peak_bytes[PROGRAM_MEMORY_COUNT];
    int64_t total_bytes;
    int64_t peak_bytes;
    int64_t peak_at_ps;
    uint32_t peak_slot;
    uint16_t peak_op;
};

/* Needs of one op of one slot, as absolute counts. */
struct need_cache {
    uint32_t slot;
    uint16_t position;
    bool filled;
    uint8_t phase; /* enum program_phase */
    const struct program_op *op;
    uint32_t count[PROGRAM_NEEDS_MAX];
    uint32_t per_part[PROGRAM_NEEDS_MAX];
    uint32_t operand_first; /* Parts of the compute stream before the operand's op. */
    uint32_t operand_parts; /* Parts of the operand's op. */
    uint32_t arrivals;      /* Of a RECEIVE: messages that it waits for. */
    uint32_t pass;          /* Pass of the block. */
};

/* The data that chips of a role share. */
struct role_table {
    const struct program_role *role;
    uint16_t *slot_template; /* [slot] */
    uint32_t *slot_block;    /* [slot]; NULL: blocks are few, and searched. */
    uint32_t late_slot;      /* Slot at which an early fold ends; UINT32_MAX: no early fold. */
    struct need_cache (*needs)[NEED_CACHES]; /* [stream] */
    int64_t *pass_ps;         /* [pass, from 1]: time of pass_chip; [0]: of no pass. NULL: none. */
    int64_t *pass_begin_ps;   /* [pass]: begin on pass_chip. */
    int64_t *pass_end_ps;     /* [pass]: end on pass_chip; 0: it has not begun. */
    int64_t pass_until_ps;    /* End of the time that pass_ps counts. */
    uint32_t pass_count;      /* Passes, [0] included. */
    uint32_t pass_chip;       /* The first chip of the role. */
    struct trace_curve curve; /* Of pass_chip; has room for the whole step, or none. */
};

struct replay {
    const struct machine *machine;
    const struct program *program;
    struct role_table *roles;
    const struct fold *fold;
    const struct replay_options *options;
    struct engine *engine;

    uint32_t chip_count; /* Replayed. */
    uint32_t stream_count;
    uint32_t lane_count;                     /* Lanes of all streams. */
    uint8_t lane_first[PROGRAM_STREAMS_MAX]; /* [stream]: its first lane. */
    uint8_t lane_stream[256];                /* [lane]: its stream. */
    uint32_t port_count;                     /* Ports of the grid. */
    struct routes *routes;
    struct host_links *host;  /* NULL: nothing is copied to or from a host. */
    struct mail *mail;        /* NULL: nothing is sent. */
    struct ports *ports;      /* NULL: no streams share a link, or arbitration is `fifo`. */
    uint32_t *neighbour;      /* [port][chip]; UINT32_MAX: no link. */
    struct plan_table *plans; /* One for each plan of each stream. */
    uint32_t plan_count;
    uint16_t *plan_index;          /* [stream][plan of the program]: in plans, or RUNNING_NONE. */
    struct op_table *ops;          /* [work][chip class]: chips mostly run the same op. */
    struct stream_ops *stream_ops; /* [template][stream] */
    int64_t message_overhead_ps;
    bool differs[SERVER_COUNT];          /* Some chip's server has another rate. */
    bool dma_may_exceed;                 /* False: no server ever delays a collective. */
    uint32_t dma_most_ppm[SERVER_COUNT]; /* Share of a server's time that all links of a chip can
                                            ask for; at most all. */
    uint32_t read_ways; /* Ways by which reads leave a chip: ports, levels, the host. */

    struct chip_state *chips;
    struct stream_state *streams; /* [stream][chip] */
    uint16_t *running;        /* [stream][chip]: plan of the running collective, or RUNNING_NONE. */
    struct server_state *hbm; /* [chip] */
    struct server_state *vpu; /* [chip] */
    struct server_reads *reads; /* [way][chip] */
    struct lane_state *lanes;   /* [lane][chip] */
    struct link_state *links;   /* [port][chip] */
    struct link_waits *waits;   /* [port][chip]; NULL: not counted. */

    struct breakdown *breakdowns;  /* [phase][chip] */
    struct phase_span *spans;      /* [phase][chip] */
    int64_t *stream_ps;            /* [phase][stream][chip]: what is_exposed() ran meanwhile. */
    struct class_total *classes;   /* [class][chip] */
    struct memory_state *memories; /* [chip] */
    int64_t *finished_ps;          /* [chip] */

    uint32_t steps_max;    /* Most steps in a row (steps.h); 0: the single step only. */
    uint32_t *steps_ended; /* [chip] */
    int64_t *step_end_ps;  /* [step, from 1][chip]; [0]: the starts. */
    uint32_t chips_ended[REPLAY_STEPS_MAX + 1]; /* [step, from 1]: chips that have ended it. */
    struct period period;                       /* Valid once it is found. */

    struct spread *spread; /* In the replay of an early fold; otherwise NULL. */
    uint32_t early_chips;  /* Chips of the early fold that the run continued; 0: none. */
    int64_t early_ps;      /* Instant at which the run continued the early fold. */
    uint64_t transfers;
    uint64_t digest;
    uint64_t bound_checks;
    uint64_t compute_parts_done;
    uint64_t compute_parts_total;

    struct trace_record *record;
    uint64_t record_count;
    uint64_t record_capacity;
    bool record_failed;
    bool recording;                       /* Some chip is shown. */
    int64_t queued_ps[MACHINE_PORTS_MAX]; /* The longest wait for a link of a port. */
    struct error refusal;                 /* Error of a handler; the run ends with it. */
};

/* The arrays of state, and the number of rows over chips of each. They are reserved at the start,
 * and an early fold hands them on (early.c). Mail, inboxes and links of levels are kept apart. */
#define REPLAY_STATE_TABLE(X)                                                                      \
    X(chips, 1)                                                                                    \
    X(streams, replay->stream_count)                                                               \
    X(running, replay->stream_count)                                                               \
    X(hbm, 1)                                                                                      \
    X(vpu, 1)                                                                                      \
    X(reads, replay->read_ways)                                                                    \
    X(lanes, replay->lane_count)                                                                   \
    X(links, replay->port_count)                                                                   \
    X(waits, replay->options->count_waits ? replay->port_count : 0)                                \
    X(breakdowns, PROGRAM_PHASE_COUNT)                                                             \
    X(spans, PROGRAM_PHASE_COUNT)                                                                  \
    X(stream_ps, PROGRAM_PHASE_COUNT * replay->stream_count)                                       \
    X(classes, replay->program->class_count)                                                       \
    X(memories, 1)                                                                                 \
    X(finished_ps, 1)                                                                              \
    X(steps_ended, 1)                                                                              \
    X(step_end_ps, replay->steps_max == 0 ? 0 : replay->steps_max + 1)

/* The engine's channel of an event. Events of a batch share it. */
static inline uint32_t channel_of(const struct replay *replay, enum replay_event event,
                                  uint32_t lane_or_stream)
{
    uint32_t const widest =
        replay->lane_count > PROGRAM_STREAMS_MAX ? replay->lane_count : PROGRAM_STREAMS_MAX;
    return (uint32_t)event * widest + lane_or_stream;
}

static inline struct stream_state *stream_at(struct replay *replay, uint32_t stream, uint32_t chip)
{
    return &replay->streams[(uint64_t)stream * replay->chip_count + chip];
}

static inline struct role_table *role_at(const struct replay *replay, uint32_t chip)
{
    return &replay->roles[replay->chips[chip].role];
}

static inline struct lane_state *lane_at(struct replay *replay, uint32_t lane, uint32_t chip)
{
    return &replay->lanes[(uint64_t)lane * replay->chip_count + chip];
}

static inline struct link_state *link_at(struct replay *replay, uint32_t port, uint32_t chip)
{
    return &replay->links[(uint64_t)port * replay->chip_count + chip];
}

static inline struct op_table *op_table_at(const struct replay *replay, uint32_t work,
                                           uint32_t kind)
{
    return &replay->ops[(uint64_t)work * replay->fold->chip_class_count + kind];
}

static inline uint16_t *running_at(struct replay *replay, uint32_t stream, uint32_t chip)
{
    return &replay->running[(uint64_t)stream * replay->chip_count + chip];
}

/* tables.c */
enum status tables_build(struct arena *arena, struct replay *replay, struct error *reterr);
/* Bytes on the wire of a payload, by the plan's protocol. */
uint64_t tables_wire_bytes(const struct plan *plan, uint64_t bytes);
/* The cost of a message, without its time on a link. */
struct message_cost tables_cost(const struct replay *replay, const struct plan *plan,
                                const struct primitive *primitive, uint64_t bytes);
/* Sets the lanes' pointers into the arrays of state, which must exist. */
void tables_attach(struct replay *replay);

/* streams.c */
/* A stream waits until another of its chip has `parts` parts done (or begun). */
static inline void stream_wait(struct stream_state *other, uint32_t waiter, bool begun,
                               uint32_t parts)
{
    uint32_t *least = begun ? &other->wake_begun : &other->wake_done;
    other->waiters |= 1u << waiter;
    if (parts < *least) *least = parts;
}

void streams_start(struct replay *replay, uint32_t chip, int64_t now_ps);
void streams_compute_end(struct replay *replay, uint32_t chip, int64_t now_ps);
/* The chip has finished if all streams have ended and no server owes anything: streams_finish(). */
void streams_finish(struct replay *replay, uint32_t chip, int64_t now_ps);
void streams_check_finished(struct replay *replay, uint32_t chip, int64_t now_ps);
/* A collective's last message has left and all have arrived, or a copy is done. */
void streams_collective_end(struct replay *replay, uint32_t stream, uint32_t chip, int64_t now_ps);
/* Counts `parts` more as done (of a running op) and wakes streams that wait for them. */
void streams_progress(struct replay *replay, uint32_t stream, uint32_t chip, uint32_t parts,
                      int64_t now_ps);
void streams_needs_fill(const struct replay *replay, const struct role_table *role, uint32_t stream,
                        const struct stream_state *state, struct need_cache *cache);

/* The op a stream runs or waits for. Its needs are cached for chips that are at the same place. */
static inline const struct need_cache *streams_needs(struct replay *replay, uint32_t stream,
                                                     uint32_t chip)
{
    const struct role_table *role = role_at(replay, chip);
    const struct stream_state *state = stream_at(replay, stream, chip);
    struct need_cache *cache =
        &role->needs[stream][(state->slot * 5 + state->position) % NEED_CACHES];
    if (!cache->filled || cache->slot != state->slot || cache->position != state->position)
        streams_needs_fill(replay, role, stream, state, cache);
    return cache;
}

uint16_t streams_op_index(struct replay *replay, uint32_t stream, uint32_t chip); /* Template's. */

/* transport.c */
void transport_begin(struct replay *replay, uint32_t stream, uint32_t chip, int64_t now_ps);
void transport_operand(struct replay *replay, uint32_t stream, uint32_t chip, int64_t now_ps);
void transport_arrive(struct replay *replay, uint64_t order, const uint32_t *chips, uint32_t count,
                      int64_t now_ps);
void transport_land(struct replay *replay, uint64_t order, const uint32_t *chips, uint32_t count,
                    int64_t now_ps);
void transport_hop(struct replay *replay, uint64_t order, const uint32_t *chips, uint32_t count,
                   int64_t now_ps);
void transport_lane_ready(struct replay *replay, uint32_t number, uint32_t chip, int64_t now_ps);
/* Posts the end of the running collective if nothing of it is left. */
void transport_check_end(struct replay *replay, uint32_t stream, uint32_t chip, int64_t now_ps);
/* Whether the collective that was to end now still has a message to leave, and ends with it. */
bool transport_leaves(struct replay *replay, uint32_t stream, uint32_t chip, int64_t now_ps);
/* Sends what the lane may send now. */
void transport_lane_try(struct replay *replay, struct lane_table *lane, uint32_t chip,
                        int64_t now_ps);
/* Notes that the lane has sent and received all, if so. */
void transport_lane_check(struct replay *replay, const struct lane_table *lane, uint32_t chip);
/* The lane's last message has left, after others that it shared its link with. */
void transport_left(struct replay *replay, struct lane_table *lane, uint32_t chip, int64_t now_ps);
/* Tries lanes that waited for a piece of this lane. */
void transport_followers_try(struct replay *replay, const struct lane_table *lane, uint32_t chip,
                             int64_t now_ps);
/* Pieces that the plan has completed on the chip, less those that already count as done. */
uint32_t transport_parts_new(struct replay *replay, const struct lane_table *lane, uint32_t chip);
/* Ends the collective's accounts, and checks that no port was faster than its link. */
void transport_end(struct replay *replay, uint32_t stream, uint32_t chip, int64_t now_ps);

#endif
