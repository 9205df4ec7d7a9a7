/*
 * message.h: a message on a link, and the look-ups of transport.c; inline, since every message
 * needs them.
 */
#ifndef SIM_REPLAY_MESSAGE_H
#define SIM_REPLAY_MESSAGE_H

#include <stddef.h>

#include "sim/replay/arrival_cost.h"
#include "sim/replay/promise.h"

static inline struct lane_table *lane_of_key(struct replay *replay, uint64_t key)
{
    uint32_t const lane = event_key_lane(key);
    const struct plan_table *plan =
        &replay->lanes.plans[event_key_field(key, KEY_PLAN_SHIFT, KEY_PLAN_BITS)];
    return &plan->lane[lane - plan->lane_first];
}

static inline uint32_t position_of(const struct lane_table *lane, uint32_t chip)
{
    return lane->ring ? 0 : lane->position[chip];
}

static inline uint32_t link_class_of(const struct replay *replay, uint32_t chip, uint32_t port)
{
    if (replay->fold->link_class == NULL) return 0;
    return replay->fold->link_class[(uint64_t)chip * MACHINE_PORTS_MAX + port];
}

static inline const struct message_cost *cost_at(const struct lane_table *lane, uint32_t kind,
                                                 uint32_t units)
{
    return &lane->costs.cost[(uint64_t)kind * (lane->costs.units_max + 1) + units];
}

struct record_owner;
struct record_ends;

/* message.c: records a message that is handed to a link now, for a timeline. */
void link_record(struct replay *replay, const struct lane_table *lane,
                 const struct record_owner *owner, const struct record_ends *ends, uint32_t chip,
                 uint32_t port, int64_t begin_ps, int64_t end_ps, uint64_t bytes);
/* message.c: records a message on the `hop`-th link of its route. */
void link_hop_record(struct replay *replay, const struct lane_table *lane, uint32_t hop,
                     uint32_t chip, uint32_t port, int64_t begin_ps, int64_t end_ps,
                     uint64_t bytes);
/* The port of the `hop`-th link of a route. */
uint32_t route_port(const struct lane_table *lane, uint32_t hop);

/* A message has the link until `depart_ps`. */
static inline void link_serve(struct link_state *link, const struct lane_table *lane,
                              const struct message_cost *cost, int64_t depart_ps)
{
    link->free_ps = depart_ps;
    link->busy_ps += cost->link_ps;
    link->bytes += cost->bytes;
    link->stream = lane->stream;
    link->lane = lane->number;
}

/* A message of a lane that is `single` is read until it has left. */
static inline void message_is_read(struct replay *replay, const struct lane_table *lane,
                                   uint32_t chip, const struct message_cost *cost, int64_t now_ps,
                                   int64_t depart_ps)
{
    int64_t const read_ps = read_cost_ps(&replay->servers, cost, chip);
    server_at(&replay->servers, SERVER_HBM, chip)->dma_ps += read_ps;
    reads_add(&lane->route.ports[chip].reads, read_ps, now_ps, depart_ps);
}

/* The class of the link by which the lane's messages leave a chip. */
static inline uint32_t first_class(const struct lane_table *lane, uint32_t chip)
{
    return lane->route.classes == NULL ? 0
                                       : lane->route.classes[(uint64_t)chip * MACHINE_PORTS_MAX];
}

/* Puts a message on the `hop`-th link of its route, first come, first served: it may begin now, and
 * its tail may not leave before `tail_ps`. Returns when it begins and, in `ret_depart_ps`, when its
 * tail leaves. */
static inline int64_t link_take(struct replay *replay, struct link_state *link,
                                const struct lane_table *lane, uint32_t hop, uint32_t port,
                                uint32_t chip, const struct message_cost *cost, int64_t now_ps,
                                int64_t tail_ps, int64_t *ret_depart_ps)
{
    int64_t const start_ps = link->free_ps > now_ps ? link->free_ps : now_ps;
    int64_t depart_ps = start_ps + cost->link_ps;
    if (depart_ps < tail_ps) depart_ps = tail_ps;
    if (depart_ps >= TIME_PS_END) { /* The run ends with an error; nothing may overflow before. */
        *ret_depart_ps = link->free_ps = TIME_PS_END;
        return start_ps;
    }
    wait_count(replay, port, link_waits_at(replay, port, chip), start_ps - now_ps);
    link_serve(link, lane, cost, depart_ps);
    replay->tally.transfers++;
    if (replay->records.active && replay->chips[chip].shown)
        link_hop_record(replay, lane, hop, chip, port, start_ps, depart_ps, cost->bytes);
    *ret_depart_ps = depart_ps;
    return start_ps;
}

/* message.c: a message goes over the `hop`-th link of its route; `slowest` is the class of the
 * slowest link behind it. The next event is its head at a chip on the way, or all of it at the end.
 * Returns when its tail leaves. */
int64_t message_forward(struct replay *replay, struct lane_table *lane, uint32_t chip,
                        uint32_t units, uint32_t hop, uint32_t slowest, int64_t now_ps,
                        int64_t tail_ps);

/* message_forward() of a message that takes turns with other messages on the link. Returns
 * lane_held_ps if it is not known when the message's tail leaves. */
int64_t message_share(struct replay *replay, struct lane_table *lane, uint32_t chip, uint32_t units,
                      uint32_t hop, uint32_t slowest, int64_t now_ps, int64_t tail_ps);

/* A message of any lane leaves its sender, and is read there. */
int64_t message_depart(struct replay *replay, struct lane_table *lane, uint32_t chip,
                       uint32_t units, int64_t now_ps);

/* A message leaves its sender: nearly always over one link, in few steps. */
static inline __attribute__((always_inline)) int64_t message_send(struct replay *replay,
                                                                  struct lane_table *lane,
                                                                  uint32_t chip, uint32_t units,
                                                                  int64_t now_ps)
{
    if (!lane->route.single ||
        promise_meets(replay, &lane->route.ports[chip].link, lane->stream, lane, now_ps))
        return message_depart(replay, lane, chip, units, now_ps);
    uint32_t const class = first_class(lane, chip);
    const struct message_cost *cost = cost_at(lane, class, units);
    int64_t depart_ps = 0;
    (void)link_take(replay, &lane->route.ports[chip].link, lane, 0, lane->route.leg[0].port, chip,
                    cost, now_ps, 0, &depart_ps);
    message_is_read(replay, lane, chip, cost, now_ps, depart_ps);
    engine_post(replay->engine, depart_ps + cost->latency_ps, cost->arrive_key,
                channel_of(replay, EVENT_ARRIVE, lane->number), lane->route.neighbours[chip]);
    return depart_ps;
}

/* message_send() of a light lane. */
static inline __attribute__((always_inline)) int64_t light_send(struct replay *replay,
                                                                struct lane_table *lane,
                                                                uint32_t chip, uint32_t units,
                                                                int64_t now_ps)
{
    struct grid_port *port = &lane->route.ports[chip];
    const struct message_cost *cost = &lane->costs.cost[units];
    int64_t start_ps = now_ps;
    if (lane->route.classes != NULL) cost = cost_at(lane, first_class(lane, chip), units);
    if (port->link.free_ps > now_ps) {
        if (promise_meets(replay, &port->link, lane->stream, lane, now_ps))
            return message_depart(replay, lane, chip, units, now_ps);
        start_ps = port->link.free_ps;
        queued_note(replay, lane->route.leg[0].port, start_ps - now_ps);
    }
    int64_t const depart_ps = start_ps + cost->link_ps;
    if (depart_ps >= TIME_PS_END) { /* The run ends with an error. */
        port->link.free_ps = TIME_PS_END;
    } else {
        link_serve(&port->link, lane, cost, depart_ps);
        replay->tally.transfers++;
    }
    int64_t const read_ps = read_cost_ps(&replay->servers, cost, chip);
    server_at(&replay->servers, SERVER_HBM, chip)->dma_ps += read_ps;
    reads_add(&port->reads, read_ps, now_ps, port->link.free_ps);
    engine_post(replay->engine, port->link.free_ps + cost->latency_ps, cost->arrive_key,
                channel_of(replay, EVENT_ARRIVE, lane->number), lane->route.neighbours[chip]);
    return port->link.free_ps;
}

#endif
