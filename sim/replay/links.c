/* Messages on their routes: over several links they cut through, and each link is a queue. */
#include "sim/replay/links.h"

#include "sim/replay/label.h"

uint32_t route_port(const struct lane_table *lane, uint32_t hop)
{
    uint32_t leg = 0;
    while (hop >= lane->leg[leg].hops) hop -= lane->leg[leg++].hops;
    return lane->leg[leg].port;
}

void link_record(struct replay *replay, const struct lane_table *lane, const struct label *label,
                 const struct label_ends *ends, uint32_t chip, uint32_t port, int64_t begin_ps,
                 int64_t end_ps, uint64_t bytes)
{
    struct trace_record const record = {.begin_ps = begin_ps,
                                        .end_ps = end_ps,
                                        .bytes = bytes,
                                        .wait_ps = begin_ps - engine_now_ps(replay->engine),
                                        .chip = chip,
                                        .slot = label->template_index,
                                        .from = ends->from,
                                        .to = ends->to,
                                        .at = ends->at,
                                        .number = ends->number,
                                        .op = label->op,
                                        .kind = TRACE_TRANSFER,
                                        .stream = (uint8_t)lane->stream,
                                        .lane = (uint16_t)lane->number,
                                        .port = (uint16_t)port};
    account_record(replay, &record);
}

void link_hop_record(struct replay *replay, const struct lane_table *lane, uint32_t hop,
                     uint32_t chip, uint32_t port, int64_t begin_ps, int64_t end_ps, uint64_t bytes)
{
    struct label const label = hop == 0 ? label_running(replay, lane->stream, chip)
                                        : label_passing(replay, lane, chip, hop);
    struct label_ends const ends = label_ends_fixed(replay, lane, chip, hop);
    link_record(replay, lane, &label, &ends, chip, port, begin_ps, end_ps, bytes);
}

int64_t message_forward(struct replay *replay, const struct lane_table *lane, uint32_t chip,
                        uint32_t units, uint32_t hop, uint32_t slowest, int64_t now_ps,
                        int64_t tail_ps)
{
    uint32_t const port = route_port(lane, hop);
    uint32_t const kind = link_class_of(replay, chip, port);
    const struct message_cost *cost = cost_at(lane, kind, units);
    uint32_t const next = replay->neighbour[(uint64_t)port * replay->chip_count + chip];
    SIM_ASSERT(next != UINT32_MAX);
    int64_t depart_ps = 0;
    int64_t const start_ps = link_take(replay, link_at(replay, port, chip), lane, hop, port, chip,
                                       cost, now_ps, tail_ps, &depart_ps);
    int64_t latency_ps = replay->fold->link_classes[kind].latency_ps;
    if (hop == 0) latency_ps += lane->overhead_ps;
    bool const slower = hop == 0 || cost->link_ps > cost_at(lane, slowest, units)->link_ps;
    uint64_t const what = (uint64_t)lane->plan->index << ORDER_PLAN_SHIFT | units |
                          (uint64_t)(slower ? kind : slowest) << ORDER_CLASS_SHIFT;
    if (hop + 1u == lane->hop_count) {
        engine_post(replay->engine, depart_ps + latency_ps,
                    order_make(EVENT_ARRIVE, port, lane->stream, lane->number) | what,
                    channel_of(replay, EVENT_ARRIVE, lane->number), next);
        return depart_ps;
    }
    uint64_t const order = order_make(EVENT_HOP, port, lane->stream, lane->number) | what |
                           (uint64_t)(hop + 1) << ORDER_HOP_SHIFT;
    /* Between chips at least 1 ps passes, even over a link without latency. */
    engine_post(replay->engine, start_ps + (latency_ps > 0 ? latency_ps : 1), order,
                channel_of(replay, EVENT_HOP, lane->number), next);
    return depart_ps;
}

int64_t message_depart(struct replay *replay, const struct lane_table *lane, uint32_t chip,
                       uint32_t units, int64_t now_ps)
{
    int64_t const work_ps = cost_at(lane, 0, units)->read_ps;
    int64_t const read_ps = dma_read_ps(replay, chip, work_ps, now_ps);
    int64_t const depart_ps = message_forward(replay, lane, chip, units, 0, 0, now_ps, read_ps);
    dma_leave(replay, &lane->reads[chip], chip, work_ps, now_ps, depart_ps);
    return depart_ps;
}

void transport_hop(struct replay *replay, uint64_t order, const uint32_t *chips, uint32_t count,
                   int64_t now_ps)
{
    const struct lane_table *lane = lane_of_order(replay, order);
    uint32_t const units = order_field(order, 0, ORDER_UNITS_BITS);
    uint32_t const hop = order_field(order, ORDER_HOP_SHIFT, ORDER_HOP_BITS);
    uint32_t const slowest = order_field(order, ORDER_CLASS_SHIFT, ORDER_CLASS_BITS);
    /* Cut through: the tail follows its head over the slowest link so far. */
    int64_t const tail_ps = now_ps + cost_at(lane, slowest, units)->link_ps;
    for (uint32_t i = 0; i < count; i++)
        (void)message_forward(replay, lane, chips[i], units, hop, slowest, now_ps, tail_ps);
}
