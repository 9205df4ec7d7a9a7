/*
 * view.h: a lane of a collective on all chips, and a message on a link: what transport.c does for
 * every message, so it is all in line.
 */
#ifndef SIM_REPLAY_VIEW_H
#define SIM_REPLAY_VIEW_H

#include <stddef.h>

#include "sim/replay/replay_internal.h"

/* A lane of one plan, on all chips. */
struct view {
    const struct plan_table *plan;
    const struct lane_table *table;
    struct lane_state *states; /* [chip] */
    uint32_t lane;             /* Over all streams. */
    uint32_t stream;
    struct link_state *links;   /* [chip]: of the first link of the route, */
    const uint32_t *neighbours; /* and where they lead. */
    int64_t latency_ps;         /* Of a message over one link of class 0. */
    uint64_t arrive_order;      /* Of a message over one link, less its units. */
    /* The last two steps asked for, where every position is alike: of chips that send their
     * message of this number, and look whether they may send the next. */
    struct {
        uint32_t sent;
        struct primitive_step step;
    } known[2];
};

static inline struct view view_open(struct replay *replay, uint32_t stream, uint32_t plan,
                                    uint32_t lane_of_plan)
{
    const struct lane_table *table = &replay->plans[plan].lane[lane_of_plan];
    uint32_t const port = table->leg[0].port;
    uint32_t const lane = replay->lane_first[stream] + lane_of_plan;
    return (struct view){
        .plan = &replay->plans[plan],
        .table = table,
        .states = lane_at(replay, lane, 0),
        .lane = lane,
        .stream = stream,
        .links = link_at(replay, port, 0),
        .neighbours = &replay->neighbour[(uint64_t)port * replay->chip_count],
        .latency_ps = replay->fold->link_classes[0].latency_ps + replay->message_overhead_ps,
        .arrive_order = order_make(EVENT_ARRIVE, port, stream, lane) | (uint64_t)plan
                                                                           << ORDER_PLAN_SHIFT,
        .known = {{.sent = UINT32_MAX}, {.sent = UINT32_MAX}},
    };
}

static inline struct view view_of_order(struct replay *replay, uint64_t order)
{
    uint32_t const stream = order_field(order, ORDER_STREAM_SHIFT, ORDER_STREAM_BITS);
    uint32_t const lane = order_field(order, ORDER_LANE_SHIFT, ORDER_LANE_BITS);
    return view_open(replay, stream, order_field(order, ORDER_PLAN_SHIFT, ORDER_PLAN_BITS),
                     lane - replay->lane_first[stream]);
}

static inline uint32_t position_of(const struct lane_table *table, uint32_t chip)
{
    return table->ring ? 0 : table->position[chip];
}

static inline uint32_t link_class_of(const struct replay *replay, uint32_t chip, uint32_t port)
{
    if (replay->fold->link_class == NULL) return 0;
    return replay->fold->link_class[(uint64_t)chip * MACHINE_PORTS_MAX + port];
}

static inline const struct message_cost *cost_at(const struct lane_table *table, uint32_t class,
                                                 uint32_t units)
{
    return &table->cost[(uint64_t) class * (table->units_max + 1) + units];
}

/* links.c: the record of a message for a timeline. */
void link_record(struct replay *replay, const struct view *view, uint32_t chip, uint32_t port,
                 int64_t begin_ps, int64_t end_ps, uint64_t bytes);

/* Puts a message on a link, first come, first served: it may begin now, and its tail may not leave
 * before `tail_ps`. Returns when it begins and, in `ret_depart_ps`, when its tail leaves. */
static inline int64_t link_take(struct replay *replay, struct link_state *link,
                                const struct view *view, uint32_t port, uint32_t chip,
                                const struct message_cost *cost, int64_t now_ps, int64_t tail_ps,
                                int64_t *ret_depart_ps)
{
    int64_t const start_ps = link->free_ps > now_ps ? link->free_ps : now_ps;
    int64_t depart_ps = start_ps + cost->link_ps;
    if (depart_ps < tail_ps) depart_ps = tail_ps;
    if (start_ps - now_ps > replay->queued_ps[port]) replay->queued_ps[port] = start_ps - now_ps;
    link->free_ps = depart_ps;
    link->busy_ps += cost->link_ps;
    link->bytes += cost->bytes;
    replay->transfers++;
    if (replay->recording && replay->chips[chip].shown)
        link_record(replay, view, chip, port, start_ps, depart_ps, cost->bytes);
    *ret_depart_ps = depart_ps;
    return start_ps;
}

/* links.c: a message goes over the `hop`-th link of its route; `slowest` is the class of the
 * slowest link behind it. The next event is its head at a chip on the way, or all of it at the end.
 * Returns when its tail leaves. */
int64_t message_forward(struct replay *replay, const struct view *view, uint32_t chip,
                        uint32_t units, uint32_t hop, uint32_t slowest, int64_t now_ps,
                        int64_t tail_ps);

/* A message leaves its sender: nearly always over one link like all others, in few steps. */
static inline int64_t message_send(struct replay *replay, const struct view *view, uint32_t chip,
                                   uint32_t units, int64_t now_ps, int64_t tail_ps)
{
    if (view->table->hop_count > 1 || replay->fold->link_class != NULL)
        return message_forward(replay, view, chip, units, 0, 0, now_ps, tail_ps);
    int64_t depart_ps = 0;
    (void)link_take(replay, &view->links[chip], view, view->table->leg[0].port, chip,
                    cost_at(view->table, 0, units), now_ps, tail_ps, &depart_ps);
    engine_post(replay->engine, depart_ps + view->latency_ps, view->arrive_order | units,
                channel_of(replay, EVENT_ARRIVE, view->lane), view->neighbours[chip]);
    return depart_ps;
}

#endif
