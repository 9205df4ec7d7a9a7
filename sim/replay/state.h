/*
 * state.h: the state of a run, made of parts: each is a struct in the header of the files that
 * keep it.
 *
 *   replay.c     sets a run up, runs it; stuck.c: names a rank that does not end
 *   event.c      which handler an event has; window.c: events of several instants together
 *   *_tables.c   what is constant about streams, lanes, servers, trees
 *   streams.c    ops of a stream in order, needs, parts; the compute stream
 *   chain.c      compute ops that follow one another without events of their own
 *   stretch.c    stretches of a chip's step that come again: what they are (stretch_note.c,
 *                stretch_make.c), how a state is named (stretch_key.c), what is so behind them
 *                (stretch_close.c)
 *   batch_lanes.c, batch_streams.c  alike chips of an entry, through both at once
 *   steps.c      further steps after the first
 *   transport.c  lanes of collectives
 *   server.c     what messages take of HBM and of the VPU, and what compute ops owe for it
 *   cores.c      cores that collectives take from compute ops
 *   prefetch.c   weights that come to VMEM while the compute stream waits
 *   message.c    a message on a link of the grid
 *   port.c       links that several streams want; promise.c: events of messages that wait there
 *   route.c      the links of ways (machine/path.h) as they are replayed
 *   routed.c     messages that name their receivers, at a link; routed_way.c: their ways;
 *                routed_land.c: where they arrive
 *   tree.c       messages that switches copy or add
 *   host.c       copies to and from the host
 *   p2p.c        messages between ranks of different roles, and waits for them
 *   breakdown.c  breakdown, memory; results.c: what was found, as a trace
 *   record.c     records of a timeline; record_owner.c: the ops of messages in them
 *   flight.c     collectives that are simulated once; flight_log.c: what they did then;
 *                flight_start.c: whether they fly;
 *                flight_group*.c: those of all chips, whose messages wait at links alone
 *   fold_prefix.c pipelines replayed as one while they are alike
 *
 * State is kept as arrays over chips, [stream or lane or port][chip]: in a symmetric machine the
 * chips of a batch are adjacent in memory. A handler touches the state of one chip only.
 */
#ifndef SIM_REPLAY_STATE_H
#define SIM_REPLAY_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/digest.h"
#include "sim/base/units.h"
#include "sim/engine/engine.h"
#include "sim/replay/breakdown.h"
#include "sim/replay/event_key.h"
#include "sim/replay/lane.h"
#include "sim/replay/link.h"
#include "sim/replay/prefetch.h"
#include "sim/replay/record.h"
#include "sim/replay/recur.h"
#include "sim/replay/replay.h"
#include "sim/replay/server.h"
#include "sim/replay/steps.h"
#include "sim/replay/streams.h"

struct host_links;
struct p2p;
struct ports;
struct routes;
struct prefix_images;

struct replay {
    const struct machine *machine;
    const struct program *program;
    const struct fold *fold;
    const struct replay_options *options;
    struct engine *engine;
    uint32_t chip_count; /* Replayed. */
    uint32_t stream_count;
    struct role_table *roles;
    struct chip_state *chips; /* [chip] */

    struct streams streams;
    struct lanes lanes;
    struct grid_links grid;
    struct routes *routes;
    struct host_links *host; /* NULL: nothing is copied to or from a host. */
    struct p2p *p2p;         /* NULL: nothing is sent. */
    struct ports *ports;     /* NULL: no streams share a link, or arbitration is `fifo`. */
    struct servers servers;
    struct prefetch prefetch;
    struct breakdowns breakdowns;
    struct tally tally;
    struct records records;
    struct steps steps;
    struct recurrence recurrence;
    struct prefix_images *images; /* In the replay of a prefix fold; otherwise NULL. */
    struct error refusal;         /* Error of a handler; the run ends with it. */
};

/* The arrays of state, the number of rows over chips of each, and the fields of an item
 * (state_fields.h, recur_state.c). They are reserved at the start, a prefix fold hands them on
 * (fold_prefix.c), and the search for layers that recur compares them: what tells most states apart
 * comes first. `unnamed`: there is no search where they are used, or none reads them. Messages
 * between roles, inboxes and links of levels are kept apart. */
#define REPLAY_STATE_TABLE(X)                                                                      \
    X(streams.states, replay->stream_count, stream_state)                                          \
    X(chips, 1, chip_state)                                                                        \
    X(breakdowns.memories, 1, memory_state)                                                        \
    X(lanes.running, replay->stream_count, same_16)                                                \
    X(servers.states, 1, chip_servers)                                                             \
    X(servers.pasts, 1, chip_pasts)                                                                \
    X(servers.cores.states, replay->servers.cores.is_on, cores_state)                              \
    X(servers.reads, replay->servers.read_ways - replay->grid.port_count, server_reads)            \
    X(prefetch.states, replay->prefetch.is_on, unnamed)                                            \
    X(lanes.states, replay->lanes.count, lane_state)                                               \
    X(grid.ports, replay->grid.port_count, grid_port)                                              \
    X(grid.waits, replay->options->count_waits ? replay->grid.port_count : 0, link_waits)          \
    X(breakdowns.of_phase, PROGRAM_PHASE_COUNT, breakdown)                                         \
    X(breakdowns.spans, PROGRAM_PHASE_COUNT, phase_span)                                           \
    X(breakdowns.links_ps, replay->breakdowns.link_sets, sum_64)                                   \
    X(breakdowns.stream_ps, PROGRAM_PHASE_COUNT * replay->stream_count, sum_64)                    \
    X(breakdowns.classes, replay->program->class_count, class_total)                               \
    X(steps.finished_ps, 1, same_64)                                                               \
    X(steps.ended, 1, same_32)                                                                     \
    X(steps.end_ps, replay->steps.max == 0 ? 0 : replay->steps.max + 1, unnamed)

/* The engine's channel of an event. Events of a batch share it. */
static inline uint32_t channel_of(const struct replay *replay, enum replay_event event,
                                  uint32_t lane_or_stream)
{
    uint32_t const widest =
        replay->lanes.count > PROGRAM_STREAMS_MAX ? replay->lanes.count : PROGRAM_STREAMS_MAX;
    return (uint32_t)event * widest + lane_or_stream;
}

/* The engine's channel of an event that waits, by its key. */
static inline uint32_t channel_of_key(const struct replay *replay, uint64_t key)
{
    enum replay_event const event = event_key_kind(key);
    bool const by_lane = event == EVENT_ARRIVE || event == EVENT_HOP || event == EVENT_LAND ||
                         event == EVENT_LANE_READY || event == EVENT_PORT;
    uint32_t const number = by_lane ? event_key_lane(key) : event_key_stream(key);
    return channel_of(replay, event, number);
}

static inline uint32_t replay_channel_count(const struct replay *replay)
{
    return channel_of(replay, EVENT_FINISH, 0) + 256;
}

static inline struct stream_state *stream_at(struct replay *replay, uint32_t stream, uint32_t chip)
{
    return &replay->streams.states[(uint64_t)stream * replay->chip_count + chip];
}

static inline struct role_table *role_at(const struct replay *replay, uint32_t chip)
{
    return &replay->roles[replay->chips[chip].role];
}

static inline struct lane_state *lane_at(struct replay *replay, uint32_t lane, uint32_t chip)
{
    return &replay->lanes.states[(uint64_t)lane * replay->chip_count + chip];
}

static inline struct link_state *link_at(struct replay *replay, uint32_t port, uint32_t chip)
{
    return &replay->grid.ports[(uint64_t)port * replay->chip_count + chip].link;
}

/* NULL: waits are not counted. */
static inline struct link_waits *link_waits_at(const struct replay *replay, uint32_t port,
                                               uint32_t chip)
{
    if (replay->grid.waits == NULL) return NULL;
    return &replay->grid.waits[(uint64_t)port * replay->chip_count + chip];
}

/* The longest wait for a port. */
static inline void queued_note(struct replay *replay, uint32_t port, int64_t waited_ps)
{
    int64_t *most_ps = &replay->tally.queued_ps[port];
    if (waited_ps > *most_ps) *most_ps = waited_ps;
}

/* A message has left a link of a port for which it waited. `waits` NULL: waits are not counted. */
static inline void wait_count(struct replay *replay, uint32_t port, struct link_waits *waits,
                              int64_t waited_ps)
{
    queued_note(replay, port, waited_ps);
    link_waits_add(waits, (uint64_t)waited_ps, 1);
}

static inline struct op_table *op_table_at(const struct replay *replay, uint32_t work,
                                           uint32_t kind)
{
    return &replay->streams.works[(uint64_t)work * replay->fold->chip_class_count + kind];
}

static inline uint16_t *running_at(struct replay *replay, uint32_t stream, uint32_t chip)
{
    return &replay->lanes.running[(uint64_t)stream * replay->chip_count + chip];
}

static inline uint64_t breakdown_row(const struct replay *replay, uint32_t phase, uint32_t chip)
{
    return (uint64_t)phase * replay->chip_count + chip;
}

static inline int64_t *breakdown_stream_ps(const struct replay *replay, uint32_t phase,
                                           uint32_t stream, uint32_t chip)
{
    uint64_t const row = (uint64_t)phase * replay->stream_count + stream;
    return &replay->breakdowns.stream_ps[row * replay->chip_count + chip];
}

/* Writes the breakdown of a chip up to now. */
static inline void breakdown_until(struct replay *replay, uint32_t chip, int64_t now_ps)
{
    if (replay->chips[chip].breakdown_ps != now_ps) breakdown_span(replay, chip, now_ps);
}

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

/* event.c: handles an event. */
void replay_event(struct replay *replay, int64_t now_ps, uint64_t key, const uint32_t *chips,
                  uint32_t count);
/* event.c: what the engine calls with events, and some time before (engine.h). */
engine_handler_fn replay_handle;
engine_ahead_fn replay_ahead;
/* window.c: where chips are not alike and only messages on the grid lead from chip to chip, events
 * of several instants are handed over together. Before the first post. */
enum status windows_take(struct arena *arena, struct replay *replay, struct error *reterr);

#endif
