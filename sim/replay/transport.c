/*
 * Collectives as they travel: lanes, links, and HBM's share of them.
 *
 * A lane sends its messages one at a time: the next when what it forwards has arrived, when the
 * data it starts from are there, and when its last message has left. Arrivals are counted from the
 * start of the step, so a neighbour that is ahead needs no mailbox: its messages are absorbed when
 * the op they belong to begins here.
 */
#include <stddef.h>

#include "sim/replay/replay_internal.h"

/* A lane of the running collective of a chip, and where it stands. */
struct place {
    const struct lane_table *table;
    struct lane_state *state;
    struct stream_state *stream;
    uint32_t lane; /* Over all streams. */
    uint32_t chip;
    uint32_t position;
};

static struct place place_of(struct replay *replay, uint32_t lane, uint32_t chip)
{
    uint32_t const stream = replay->lane_stream[lane];
    struct place place = {
        .table = &(*plan_at(replay, stream, chip))->lane[lane - replay->lane_first[stream]],
        .state = lane_at(replay, lane, chip),
        .stream = stream_at(replay, stream, chip),
        .lane = lane,
        .chip = chip,
    };
    if (!place.table->ring) place.position = place.table->position[chip];
    return place;
}

/* Work at this chip's own rate, out of work at the rate of the others. */
static int64_t scaled_ps(int64_t ps, uint32_t ppm)
{
    return ppm == PPM_ONE ? ps : (int64_t)((units_wide)(uint64_t)ps * PPM_ONE / ppm);
}

static const struct fold_chip_class *chip_class_of(const struct replay *replay, uint32_t chip)
{
    return &replay->fold->chip_classes[replay->chips[chip].class];
}

static uint32_t link_class_of(const struct replay *replay, uint32_t chip, uint32_t port)
{
    if (replay->fold->link_class == NULL) return 0;
    return replay->fold->link_class[(uint64_t)chip * MACHINE_PORTS_MAX + port];
}

static const struct message_cost *cost_at(const struct lane_table *table, uint32_t class,
                                          uint32_t units)
{
    return &table->cost[(uint64_t) class * (table->units_max + 1) + units];
}

/* The port of the `hop`-th link of the route. */
static uint32_t route_port(const struct lane_table *table, uint32_t hop)
{
    uint32_t leg = 0;
    while (hop >= table->leg[leg].hops) hop -= table->leg[leg++].hops;
    return table->leg[leg].port;
}

static void record_transfer(struct replay *replay, uint32_t lane, uint32_t chip, uint32_t port,
                            int64_t begin_ps, int64_t end_ps, uint64_t bytes)
{
    uint32_t const stream = replay->lane_stream[lane];
    const struct stream_state *state = stream_at(replay, stream, chip);
    struct trace_record record = {.begin_ps = begin_ps,
                                  .end_ps = end_ps,
                                  .bytes = bytes,
                                  .chip = chip,
                                  .slot = state->slot,
                                  .kind = TRACE_TRANSFER,
                                  .stream = (uint8_t)stream,
                                  .lane = (uint16_t)lane,
                                  .port = (uint16_t)port};
    record.op = streams_op_index(replay, stream, state);
    account_record(replay, &record);
}

/* A message on its way: which lane and plan sent it, how large, where on its route. */
struct message {
    const struct lane_table *table;
    uint32_t lane;
    uint32_t plan;
    uint32_t units;
    uint32_t hop;     /* Links behind it. */
    uint32_t slowest; /* Class of the slowest of them. */
};

/* Puts a message on the next link of its route, first come, first served. It may begin at once, and
 * its tail may not leave before `tail_ps`. The next event is its head at a chip on the way, or all
 * of it at the end. Returns when its tail leaves. */
static int64_t message_forward(struct replay *replay, const struct message *message, uint32_t chip,
                               int64_t now_ps, int64_t tail_ps)
{
    const struct lane_table *table = message->table;
    uint32_t const port = route_port(table, message->hop);
    uint32_t const class = link_class_of(replay, chip, port);
    const struct message_cost *cost = cost_at(table, class, message->units);
    uint32_t const next = replay->neighbour[(uint64_t)port * replay->chip_count + chip];
    SIM_ASSERT(next != UINT32_MAX);

    struct link_state *link = link_at(replay, port, chip);
    int64_t const start_ps = link->free_ps > now_ps ? link->free_ps : now_ps;
    int64_t depart_ps = start_ps + cost->link_ps;
    if (depart_ps < tail_ps) depart_ps = tail_ps;
    if (start_ps - now_ps > replay->queued_ps[port]) replay->queued_ps[port] = start_ps - now_ps;
    link->free_ps = depart_ps;
    link->busy_ps += cost->link_ps;
    link->bytes += cost->bytes;
    replay->transfers++;
    if (replay->chips[chip].shown)
        record_transfer(replay, message->lane, chip, port, start_ps, depart_ps, cost->bytes);

    int64_t latency_ps = replay->fold->link_classes[class].latency_ps;
    if (message->hop == 0) latency_ps += replay->message_overhead_ps;
    uint32_t const stream = replay->lane_stream[message->lane];
    uint64_t const what = (uint64_t)message->plan << ORDER_PLAN_SHIFT | message->units;
    if (message->hop + 1u == table->hop_count) {
        engine_post(replay->engine, depart_ps + latency_ps,
                    order_make(EVENT_ARRIVE, port, stream, message->lane) | what,
                    channel_of(replay, EVENT_ARRIVE, message->lane), next);
        return depart_ps;
    }
    bool const slower = message->hop == 0 ||
                        cost->link_ps > cost_at(table, message->slowest, message->units)->link_ps;
    uint64_t const slowest = slower ? class : message->slowest;
    uint64_t const order = order_make(EVENT_HOP, port, stream, message->lane) | what |
                           (uint64_t)(message->hop + 1) << ORDER_HOP_SHIFT |
                           slowest << ORDER_CLASS_SHIFT;
    /* Between chips at least 1 ps passes, even over a link without latency. */
    engine_post(replay->engine, start_ps + (latency_ps > 0 ? latency_ps : 1), order,
                channel_of(replay, EVENT_HOP, message->lane), next);
    return depart_ps;
}

void transport_hop(struct replay *replay, uint32_t chip, uint64_t order, int64_t now_ps)
{
    struct message message = {
        .lane = order_field(order, ORDER_LANE_SHIFT, ORDER_LANE_BITS),
        .plan = order_field(order, ORDER_PLAN_SHIFT, ORDER_PLAN_BITS),
        .units = order_field(order, 0, ORDER_UNITS_BITS),
        .hop = order_field(order, ORDER_HOP_SHIFT, ORDER_HOP_BITS),
        .slowest = order_field(order, ORDER_CLASS_SHIFT, ORDER_CLASS_BITS),
    };
    uint32_t const first = replay->lane_first[replay->lane_stream[message.lane]];
    message.table = &replay->plans[message.plan].lane[message.lane - first];
    /* Cut through: the tail follows its head over the slowest link so far. */
    int64_t const tail_ps =
        now_ps + cost_at(message.table, message.slowest, message.units)->link_ps;
    (void)message_forward(replay, &message, chip, now_ps, tail_ps);
}

/* HBM time of the collectives. Where all links together cannot ask more than HBM has, it delays
 * nothing and only adds up; else it is a clock, and the answer is when the work is done. */
static int64_t dma_charge(struct replay *replay, uint32_t chip, int64_t since_ps, int64_t work_ps)
{
    struct chip_state *state = &replay->chips[chip];
    work_ps = scaled_ps(work_ps, chip_class_of(replay, chip)->hbm_ppm);
    state->dma_ps += work_ps;
    if (!replay->dma_may_exceed) return 0;
    state->hbm_free_ps = (state->hbm_free_ps > since_ps ? state->hbm_free_ps : since_ps) + work_ps;
    return state->hbm_free_ps;
}

static void lane_send(struct replay *replay, const struct place *place, uint32_t units,
                      int64_t now_ps)
{
    const struct lane_table *table = place->table;
    uint32_t const stream = replay->lane_stream[place->lane];
    struct message const message = {.table = table,
                                    .lane = place->lane,
                                    .plan = (*plan_at(replay, stream, place->chip))->index,
                                    .units = units};
    int64_t const read_ps =
        dma_charge(replay, place->chip, now_ps, cost_at(table, 0, units)->read_ps);
    int64_t const depart_ps = message_forward(replay, &message, place->chip, now_ps, read_ps);
    place->state->sent++;
    place->state->free_ps = depart_ps;
    if (depart_ps > place->stream->depart_ps) place->stream->depart_ps = depart_ps;
}

/* Whether a piece of the item before has fully arrived here. */
static bool predecessor_arrived(struct replay *replay, const struct place *place, uint32_t piece)
{
    uint32_t const first = replay->lane_first[replay->lane_stream[place->lane]];
    for (uint32_t i = 0; i < place->table->after_count; i++) {
        struct place const before =
            place_of(replay, first + place->table->after_first + i, place->chip);
        uint32_t const each = before.table->arrival_count[before.position];
        if (before.state->counted < (piece + 1) * each) return false;
    }
    return true;
}

/* Whether the op that computes the operand has got as far as this message needs. */
static bool operand_ready(struct replay *replay, const struct place *place, uint32_t piece,
                          uint32_t chunks)
{
    uint32_t const stream = replay->lane_stream[place->lane];
    const struct need_cache *needs = streams_needs(replay, stream, place->stream);
    if (needs->op->operand_op == PROGRAM_NONE || !place->table->first) return true;
    const struct plan *plan = (*plan_at(replay, stream, place->chip))->plan;
    uint32_t const wanted = plan->group.dimension_count > 1 ? piece + 1 : chunks;
    struct stream_state *compute = stream_at(replay, PROGRAM_COMPUTE, place->chip);
    if (compute->done >= needs->operand_first + wanted) return true;
    compute->waiters |= (uint16_t)(1u << stream);
    return false;
}

static void lane_check_finished(const struct place *place)
{
    struct lane_state *state = place->state;
    if (state->finished || state->sent < state->sends || state->counted < state->arrivals) return;
    state->finished = true;
    place->stream->lanes_left--;
}

/* Sends what may be sent now. */
static void lane_try(struct replay *replay, const struct place *place, int64_t now_ps)
{
    const struct lane_table *table = place->table;
    struct lane_state *state = place->state;
    while (state->sent < state->sends && !state->waiting) {
        uint32_t step = state->sent, piece = 0;
        if (table->piece_count > 1) {
            uint32_t const each = table->send_count[place->position];
            piece = step / each;
            step -= piece * each;
        }
        struct primitive_step const next =
            table->primitive->step(table->size, table->lane, place->position, step);
        uint32_t const arrivals = piece * table->arrival_count[place->position] + next.arrivals;
        if (state->counted < arrivals) return;
        if (table->after_count > 0 && step == 0 && !predecessor_arrived(replay, place, piece))
            return;
        if (!operand_ready(replay, place, piece, next.chunks)) return;
        if (state->free_ps > now_ps) {
            state->waiting = true;
            engine_post(replay->engine, state->free_ps,
                        order_make(EVENT_LANE_READY, table->leg[0].port,
                                   replay->lane_stream[place->lane], place->lane),
                        channel_of(replay, EVENT_LANE_READY, place->lane), place->chip);
            return;
        }
        lane_send(replay, place, next.units, now_ps);
    }
    lane_check_finished(place);
}

void transport_lane_ready(struct replay *replay, uint32_t lane, uint32_t chip, int64_t now_ps)
{
    struct place const place = place_of(replay, lane, chip);
    place.state->waiting = false;
    lane_try(replay, &place, now_ps);
    transport_check_end(replay, replay->lane_stream[lane], chip, now_ps);
}

/* Pieces of the whole array that every order has completed on this chip. */
static uint32_t pieces_done(struct replay *replay, uint32_t stream, uint32_t chip)
{
    const struct plan_table *plan = *plan_at(replay, stream, chip);
    uint32_t least = UINT32_MAX;
    for (uint32_t i = 0; i < plan->lane_count; i++) {
        if (!plan->lane[i].last) continue;
        struct place const place = place_of(replay, replay->lane_first[stream] + i, chip);
        uint32_t const each = place.table->arrival_count[place.position];
        uint32_t const pieces = each == 0 ? place.table->piece_count : place.state->counted / each;
        least = pieces < least ? pieces : least;
    }
    return least;
}

/* Absorbs an arrival into the running op. Returns parts that others may now count on. */
static uint32_t lane_absorb(struct replay *replay, const struct place *place, uint32_t units)
{
    const struct lane_table *table = place->table;
    const struct plan *plan =
        (*plan_at(replay, replay->lane_stream[place->lane], place->chip))->plan;
    place->state->counted++;
    if (plan->counts_units) return units;
    if (plan->part_count == 1 || !table->last) return 0;
    if (place->state->counted % table->arrival_count[place->position] != 0) return 0;
    uint32_t const stream = replay->lane_stream[place->lane];
    uint32_t const pieces = pieces_done(replay, stream, place->chip);
    uint32_t const known = place->stream->done - place->stream->op_first;
    return pieces > known ? pieces - known : 0;
}

/* Units of the `index`-th message to arrive: what the neighbour sent in its step of that number. */
static uint32_t arrival_units(const struct place *place, uint32_t index)
{
    const struct lane_table *table = place->table;
    uint32_t const step = index % table->arrival_count[place->position];
    uint32_t position = place->position;
    if (!table->ring) position = table->lane == 0 ? position - 1 : position + 1;
    return table->primitive->step(table->size, table->lane, position, step).units;
}

/* Where HBM or the VPU is behind, the message counts as arrived when they have caught up. */
static bool landing_delayed(struct replay *replay, const struct lane_table *table, uint32_t units,
                            uint32_t chip, uint64_t order, int64_t now_ps)
{
    const struct message_cost *cost = cost_at(table, 0, units);
    int64_t const vector_ps = scaled_ps(cost->vector_ps, chip_class_of(replay, chip)->math_ppm);
    replay->chips[chip].vector_ps += vector_ps;
    int64_t const began_ps = now_ps - cost->link_ps;
    int64_t clear_ps = dma_charge(replay, chip, began_ps, cost->write_ps);
    if (!replay->dma_may_exceed) return false;
    if (clear_ps < began_ps + vector_ps) clear_ps = began_ps + vector_ps;
    /* Streams share HBM while they run, so a backlog counts only beyond the message's own time. */
    int64_t const land_ps = clear_ps - cost->link_ps;
    if (land_ps <= now_ps) return false;
    uint32_t const lane = order_field(order, ORDER_LANE_SHIFT, ORDER_LANE_BITS);
    uint64_t const kind = (uint64_t)(EVENT_LAND ^ EVENT_ARRIVE) << ORDER_KIND_SHIFT;
    engine_post(replay->engine, land_ps, order ^ kind, channel_of(replay, EVENT_LAND, lane), chip);
    return true;
}

void transport_land(struct replay *replay, uint32_t chip, uint64_t order, int64_t now_ps)
{
    uint32_t const lane = order_field(order, ORDER_LANE_SHIFT, ORDER_LANE_BITS);
    uint32_t const stream = replay->lane_stream[lane];
    struct lane_state *state = lane_at(replay, lane, chip);
    state->arrived++;
    if (stream_at(replay, stream, chip)->phase != STREAM_RUNS) return;
    struct place const place = place_of(replay, lane, chip);
    if (state->counted == state->arrivals) return; /* It belongs to an op still to come. */
    uint32_t const parts = lane_absorb(replay, &place, order_field(order, 0, ORDER_UNITS_BITS));
    if (parts > 0) streams_progress(replay, stream, chip, parts, now_ps);
    lane_try(replay, &place, now_ps);
    bool const piece_whole = place.table->follower_count > 0 &&
                             state->counted % place.table->arrival_count[place.position] == 0;
    for (uint32_t i = 0; piece_whole && i < place.table->follower_count; i++) {
        struct place const follower =
            place_of(replay, replay->lane_first[stream] + place.table->follower_first + i, chip);
        lane_try(replay, &follower, now_ps);
    }
    transport_check_end(replay, stream, chip, now_ps);
}

void transport_arrive(struct replay *replay, uint32_t chip, uint64_t order, int64_t now_ps)
{
    uint32_t const lane = order_field(order, ORDER_LANE_SHIFT, ORDER_LANE_BITS);
    uint32_t const plan = order_field(order, ORDER_PLAN_SHIFT, ORDER_PLAN_BITS);
    uint32_t const first = replay->lane_first[replay->lane_stream[lane]];
    replay->digest += digest_record(now_ps, order, chip);
    if (!landing_delayed(replay, &replay->plans[plan].lane[lane - first],
                         order_field(order, 0, ORDER_UNITS_BITS), chip, order, now_ps))
        transport_land(replay, chip, order, now_ps);
}

void transport_begin(struct replay *replay, uint32_t stream, uint32_t chip, int64_t now_ps)
{
    const struct plan_table *plan = *plan_at(replay, stream, chip);
    struct stream_state *state = stream_at(replay, stream, chip);
    uint32_t const first = replay->lane_first[stream];
    state->depart_ps = now_ps;
    state->lanes_left = (uint8_t)plan->lane_count;
    uint32_t parts = plan->plan->counts_units ? plan->plan->chunk_parts : 0;
    for (uint32_t i = 0; i < plan->lane_count; i++) {
        struct place const place = place_of(replay, first + i, chip);
        place.state->sends = place.table->send_count[place.position] * place.table->piece_count;
        place.state->arrivals =
            place.table->arrival_count[place.position] * place.table->piece_count;
        place.state->sent = 0;
        place.state->counted = 0;
        place.state->finished = false;
    }
    for (uint32_t i = 0; i < plan->lane_count; i++) {
        struct place const place = place_of(replay, first + i, chip);
        while (place.state->counted < place.state->arrivals &&
               place.state->counted < place.state->arrived - place.state->base) {
            uint32_t const gained =
                lane_absorb(replay, &place, arrival_units(&place, place.state->counted));
            state->done += gained;
        }
    }
    state->done += parts;
    for (uint32_t i = 0; i < plan->lane_count; i++) {
        struct place const place = place_of(replay, first + i, chip);
        lane_try(replay, &place, now_ps);
    }
    streams_progress(replay, stream, chip, 0, now_ps);
    transport_check_end(replay, stream, chip, now_ps);
}

void transport_operand(struct replay *replay, uint32_t stream, uint32_t chip, int64_t now_ps)
{
    const struct plan_table *plan = *plan_at(replay, stream, chip);
    for (uint32_t i = 0; i < plan->lane_count; i++) {
        struct place const place = place_of(replay, replay->lane_first[stream] + i, chip);
        lane_try(replay, &place, now_ps);
    }
    transport_check_end(replay, stream, chip, now_ps);
}

void transport_check_end(struct replay *replay, uint32_t stream, uint32_t chip, int64_t now_ps)
{
    struct stream_state *state = stream_at(replay, stream, chip);
    if (state->phase != STREAM_RUNS || state->lanes_left > 0) return;
    const struct need_cache *needs = streams_needs(replay, stream, state);
    if (needs->op->operand_op != PROGRAM_NONE) {
        /* The own chunk of the operand is never sent, and is part of the result all the same. */
        struct stream_state *compute = stream_at(replay, PROGRAM_COMPUTE, chip);
        if (compute->done < needs->operand_first + needs->operand_parts) {
            compute->waiters |= (uint16_t)(1u << stream);
            return;
        }
    }
    state->phase = STREAM_ENDS;
    int64_t const end_ps = state->depart_ps > now_ps ? state->depart_ps : now_ps;
    engine_post(replay->engine, end_ps, order_make(EVENT_COLLECTIVE_END, 0, stream, 0),
                channel_of(replay, EVENT_COLLECTIVE_END, stream), chip);
}

void transport_end(struct replay *replay, uint32_t stream, uint32_t chip)
{
    const struct plan_table *plan = *plan_at(replay, stream, chip);
    const struct stream_state *state = stream_at(replay, stream, chip);
    int64_t port_ps[MACHINE_PORTS_MAX] = {0};
    for (uint32_t i = 0; i < plan->lane_count; i++) {
        struct place const place = place_of(replay, replay->lane_first[stream] + i, chip);
        const struct lane_table *table = place.table;
        place.state->base += place.state->arrivals;
        if (table->lane == 0) /* What a ReduceScatter leaves is written once. */
            (void)dma_charge(replay, chip, 0, table->shard_ps * table->piece_count);
        if (place.state->sends == 0) continue;
        uint32_t const port = table->leg[0].port;
        uint32_t const class = link_class_of(replay, chip, port);
        uint64_t const units =
            table->ring
                ? table->units_total * table->piece_count
                : (uint64_t)place.state->sends *
                      table->primitive->step(table->size, table->lane, place.position, 0).units;
        port_ps[port] +=
            (int64_t)(units / table->units_max) * cost_at(table, class, table->units_max)->link_ps;
    }
    /* No collective is faster than the ports it leaves by: bytes over rate, each port apart. */
    for (uint32_t port = 0; port < MACHINE_PORTS_MAX; port++) {
        if (port_ps[port] == 0) continue;
        SIM_ASSERT(port_ps[port] <= state->depart_ps - state->begin_ps);
        replay->bound_checks++;
    }
}
