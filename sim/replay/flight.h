/*
 * flight.h: collectives that are alike are simulated once. Internal to sim/replay.
 *
 * In a folded run a chip may stand for all members of a group: a message that it sends comes back
 * to it. If all that such a collective uses is free when it begins, nothing but its plan decides
 * what its messages do. The second one of a plan on a chip is therefore logged: its handlers run by
 * themselves, from instant 0 on, in an engine of their own (flight_log.c). Every later one that
 * finds all it uses free flies: the only event that is posted is its end.
 *
 *   begin   lanes, links and reads that the log uses are free     -> flown: links are marked
 *   serve   a part of a compute op begins or ends on the chip     -> HBM and VPU have what the
 *                                                                    messages have cost until now
 *   close   the end comes                                         -> all state is what it became
 *   land    another message comes to a link of the collective, or leaves by one of its ways
 *                                                                 -> its handlers run up to now,
 *                                                                    and the rest of its events
 *                                                                    goes to the engine
 *
 * Why the result is the same. Handlers compute with differences of instants, so from the same
 * relative state they do the same, later. Messages do not wait for a compute op: where HBM might
 * delay them (servers.may_exceed), nothing flies. State that a collective alone reads (lanes, its
 * slots) may be written when it ends. State that others read is brought up to date before they do:
 * links and reads by landing, servers by serving. What messages ask of a server between two changes
 * of its run may be added in any order (server_passed()).
 *
 * What has happened until now. Events of an instant come in the order of their keys, so a flown
 * event has happened if its instant and key lie before those of the event at hand (`order`). That
 * holds since each event of a message comes 1 ps or more after the one that posted it: links and
 * ports of a way have a latency of at least 1 ps (route.h), and a message that finds a link busy
 * goes on at a later instant. A flown event thus waits already when its instant begins.
 *
 * Links that are still held. Where links of a collective that begins are held by messages that have
 * been put on them, or reads of its ways go on, its log is one of a collective that begins so
 * (flight_start): what is left of these is all that it knows of others. A collective that flies
 * leaves its links to it, once its own messages have taken all of them (`is_off`). Where streams
 * take turns at links there is no such log.
 *
 * Collectives that lead from chip to chip fly for all chips at once: flight_group.h.
 *
 * A change of these can break exactness: a handler of messages that reads state of others than its
 * collective, its links and its chip's servers; a handler that posts at once; a lane of a level
 * that takes turns with others of its collective (lane.takes_turns), since a collective is logged
 * without ports; state of a link that is read without flights_clear_link().
 * tests/property/test_flights.c holds drawn runs against runs that simulate every message.
 */
#ifndef SIM_REPLAY_FLIGHT_H
#define SIM_REPLAY_FLIGHT_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/replay/state.h"

struct flight_group;
struct flight_recorder;
struct flight_servers;

/* Most memory of all logs of a run. */
enum { FLIGHT_LOG_BYTES = 1 << 24 };

/* All instants of a log count from the begin of its collective, and its keys have epoch 0. */
struct flight_instant {
    int64_t at_ps;
    uint64_t key; /* Of the event at hand. */
};

/* What a message costs where it arrives, or a shard as it is written. */
struct flight_arrival {
    int64_t from_ps;              /* Begin of its passage. */
    int64_t sum_ps[SERVER_COUNT]; /* Granted so far, this one included. */
};

/* A message leaves its chip. */
struct flight_leaving {
    int64_t sum_ps; /* Of HBM granted so far, this one included. */
    struct server_reads reads;
    uint32_t way;
};

struct flight_link {
    struct link_state *link;
    struct link_waits *waits; /* NULL: not counted. */
    struct link_state after; /* `free_ps` counts from the begin; `busy_ps` and `bytes` are added. */
    struct link_waits added;
    int64_t queued_ps; /* The longest wait for a link of the port. */
    int64_t held_ps;   /* How long others hold it from the begin on; 0: it is free. */
    uint32_t port;
    bool waits_here; /* Messages may wait for the link. */
};

enum flight_log_state { FLIGHT_UNSEEN, FLIGHT_SEEN, FLIGHT_LOGGED };

/* What a collective of a plan does on a chip. */
struct flight_log {
    int64_t length_ps;
    uint64_t event_count; /* Before the end. */
    uint64_t transfers;
    const struct flight_instant *arrived_at; /* [arrival] */
    const struct flight_arrival *arrived;
    const struct flight_instant *left_at; /* [leaving] */
    const struct flight_leaving *left;
    const uint16_t *senders; /* [arrival]: of messages; NULL: the chip itself. */
    uint32_t arrived_count;
    uint32_t message_count; /* Arrivals of messages; shards follow them. */
    uint32_t left_count;
    uint32_t left_at_begin; /* Messages that leave while the collective begins. */
    int64_t passage_ps;     /* The longest passage of a message that arrives. */
    int64_t taken_ps;       /* When a message takes or passes a link last. */
    const struct flight_link *links;
    uint32_t link_count;
    uint32_t ways;                    /* Ways by which messages leave; bits. */
    const struct lane_state *lanes;   /* [lane]: at the end. */
    const struct flight_start *start; /* NULL: all is free at the begin. */
};

/* A collective under way. */
struct flight {
    const struct flight_log *log; /* NULL: none. */
    int64_t begin_ps;
    int64_t void_ps;        /* Instant of an end that is to be ignored; 0: none. */
    uint32_t arrived, left; /* Of the log: what has been served. */
    bool is_off;            /* All links have been taken by its messages, and are written. */
};

enum { FLIGHT_START_LINKS = 8, FLIGHT_START_WAYS = 2, FLIGHT_VARIANTS_MAX = 32 };

/* What is not free when a collective begins: links that messages of others still hold, and reads of
 * ways that go on. Instants count from the begin; of a link 0: it is free. */
struct flight_start {
    int64_t free_ps[FLIGHT_START_LINKS]; /* [link of the plan's first log] */
    struct server_reads reads[FLIGHT_START_WAYS];
};

/* A log of a collective that begins so. */
struct flight_variant {
    struct flight_variant *next;
    struct flight_start start;
    struct flight_log log;
    bool fails; /* True where there is no log. */
};

struct flights {
    struct arena *arena;
    struct engine *engine;            /* Simulates one collective by itself. */
    bool *never;                      /* [plan]: its collectives do not fly. */
    uint8_t *states;                  /* [plan][chip]: enum flight_log_state */
    struct flight_log *logs;          /* [plan][chip]: where FLIGHT_LOGGED. */
    struct flight *aloft;             /* [stream][chip] */
    struct flight_variant **variants; /* [plan][chip] */
    uint32_t *of_chip;                /* [chip]: streams with a collective aloft; bits. */
    struct flight_recorder *recorder; /* NULL unless a collective is logged. */
    uint64_t log_bytes;
    uint64_t variant_asks; /* Begins on held links. */
    uint64_t variant_hits; /* Of these, from a start that is known. */
    /* Collectives of all chips at once (flight_group.h). */
    struct flight_group **groups;   /* [plan]; NULL: none fly. */
    struct flight_group **together; /* [stream]: that flies, or waits for chips to begin. */
    bool *timed;                    /* [stream]: all chips have begun. */
    int64_t *timer_ps;              /* [stream]: instant of an end of chip 0 that is a timer. */
    struct flight_servers *aside;   /* [chip]: while collectives land; NULL: no groups. */
    struct engine *landed_for;      /* The engine of the run, while collectives land. */
    struct flight_instant order;    /* Events before it have happened. */
    bool meets;                     /* What lands has an event at that instant. */
    uint64_t latest_key;            /* The greatest that was handled at this instant. */
};

/* Leaves replay->lanes.flights NULL where nothing can fly. Needs the tables and ports. */
enum status flights_build(struct arena *arena, struct replay *replay, struct error *reterr);

/* A collective begins: false if its messages are to be simulated. */
bool flight_begin(struct replay *replay, uint32_t stream, uint32_t chip, int64_t now_ps);
/* Before ends of collectives are handled, which are an entry's: closes collectives that fly, and
 * leaves void ends out. Returns how many of `chips` are left; they are in `ret_chips`, which has
 * room for as many. */
uint32_t flights_end(struct replay *replay, uint64_t key, const uint32_t *chips, uint32_t count,
                     int64_t now_ps, uint32_t *ret_chips);
/* Whether an event is a void end. If so it is void no more: the collective may have landed so late
 * that its own end comes at the same instant, and is told apart by nothing. */
bool flight_void_take(struct replay *replay, uint64_t key, uint32_t chip, int64_t now_ps);
void flights_land_all(struct replay *replay);
/* flight_log.c: what the messages of a collective that flies add to the digest. */
uint64_t flight_digest(const struct flight_log *log, int64_t begin_ps, uint32_t epoch,
                       uint32_t chip);

static inline struct flight *flight_at(const struct replay *replay, uint32_t stream, uint32_t chip)
{
    return &replay->lanes.flights->aloft[(uint64_t)stream * replay->chip_count + chip];
}

/* flight_start.c: the log by which the collective that begins flies; NULL: its messages are
 * simulated. */
const struct flight_log *flight_log_to_fly(struct replay *replay, uint32_t stream, uint32_t chip,
                                           int64_t now_ps);
/* Brings servers up to now. */
void flight_serve_until_now(struct replay *replay, uint32_t stream, uint32_t chip);
/* Its links become what they were at the end of the log. */
void flight_links_close(struct replay *replay, const struct flight *flight);

/* flight_group.c calls these. Whether all that a collective of a log uses of the chip is free: */
bool flight_finds_free(struct replay *replay, const struct flight_log *log, uint32_t stream,
                       uint32_t chip, int64_t now_ps);
/* Brings servers up to the arrivals and leavings before these. */
void flight_serve(struct replay *replay, struct flight *flight, uint32_t chip, uint32_t arrived,
                  uint32_t left);
/* All is as its messages have left it; what follows is the end of any collective. */
void flight_close(struct replay *replay, uint32_t stream, uint32_t chip);
/* What its messages add to the digest. Further steps have none. */
void flight_digest_close(struct replay *replay, const struct flight_log *log, int64_t begin_ps,
                         uint32_t epoch, uint32_t stream, uint32_t chip);
/* Its lanes become what they were at the end of the log. */
void flight_lanes_close(const struct plan_table *plan, const struct flight_log *log,
                        int64_t begin_ps, uint32_t chip);
/* It flies no longer. */
void flight_leave(struct replay *replay, uint32_t stream, uint32_t chip);
/* Before handlers run for collectives of a stream that land, from the first begin on, and after. */
void flight_landing_begin(struct replay *replay, uint32_t stream, int64_t begin_ps);
void flight_landing_end(struct replay *replay);

/* What the functions below do when they find a flight. */
void flights_serve_chip(struct replay *replay, uint32_t chip);
void flights_land_link(struct replay *replay, const struct link_state *link);
void flights_land_way(struct replay *replay, uint32_t chip, uint32_t way);

static inline bool flight_is_recorded(const struct replay *replay)
{
    return replay->lanes.flights != NULL && replay->lanes.flights->recorder != NULL;
}

/* An event is handled. */
static inline void flights_order(struct flights *flights, int64_t now_ps, uint64_t key)
{
    if (flights->order.at_ps != now_ps) {
        flights->order = (struct flight_instant){now_ps, key};
        flights->latest_key = key;
    } else if (key >= flights->latest_key) {
        flights->latest_key = flights->order.key = key;
    } else { /* It was posted at this instant, after events with greater keys. */
        flights->order.key = flights->latest_key + 1;
    }
}

/* Before a compute op looks at its servers. */
static inline void flights_serve(struct replay *replay, uint32_t chip)
{
    if (replay->lanes.flights != NULL && replay->lanes.flights->of_chip[chip] != 0)
        flights_serve_chip(replay, chip);
}

/* Before a message takes a link. A collective that is logged has all links for itself. */
static inline void flights_clear_link(struct replay *replay, const struct link_state *link)
{
    if (link->flown && !flight_is_recorded(replay)) flights_land_link(replay, link);
}

/* Before a message leaves a chip by one of its ways (reads_at()). */
static inline void flights_clear_way(struct replay *replay, uint32_t chip, uint32_t way)
{
    if (replay->lanes.flights != NULL && replay->lanes.flights->of_chip[chip] != 0 &&
        !flight_is_recorded(replay))
        flights_land_way(replay, chip, way);
}

#endif
