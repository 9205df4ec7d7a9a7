/* The end of a collective on a chip: all has come, all has left, and what it leaves is written. */
#include <string.h>

#include "sim/replay/arrival_cost.h"
#include "sim/replay/batch.h"
#include "sim/replay/flight_log.h"
#include "sim/replay/message.h"
#include "sim/replay/routed.h"
#include "sim/replay/state.h"
#include "sim/replay/transport.h"

/* When the last message of the running collective leaves this chip. */
static int64_t last_departure_ps(struct replay *replay, uint32_t stream, uint32_t chip)
{
    const struct plan_table *plan = &replay->lanes.plans[*running_at(replay, stream, chip)];
    int64_t last_ps = 0;
    for (uint32_t i = 0; i < plan->lane_count; i++) {
        const struct lane_state *state = &plan->lane[i].states[chip];
        if (state->sends > 0 && state->free_ps > last_ps) last_ps = state->free_ps;
    }
    return last_ps;
}

/* What a ReduceScatter leaves is written once, along its whole time. Where HBM may be behind, that
 * is when it ends, and the answer is when all that has been asked of HBM is done, and of the VPU
 * where the collective adds. */
static int64_t shards_write(struct replay *replay, uint32_t stream, uint32_t chip, int64_t now_ps)
{
    const struct plan_table *plan = &replay->lanes.plans[*running_at(replay, stream, chip)];
    for (uint32_t i = 0; i < plan->lane_count; i++) {
        const struct lane_table *lane = &plan->lane[i];
        bool const has_shard = lane->costs.shard_ps > 0 && position_of(lane, chip) < lane->size;
        if (lane->lane != 0 || !has_shard) continue;
        int64_t const work_ps = lane->costs.shard_ps * lane->piece_count / lane->portions;
        if (replay->servers.may_exceed)
            (void)dma_clock(&replay->servers, SERVER_HBM, chip, now_ps, work_ps, now_ps);
        else
            dma_pass(&replay->servers, SERVER_HBM, chip, work_ps,
                     stream_at(replay, stream, chip)->begin_ps, now_ps);
        if (flight_is_recorded(replay)) flight_record_shard(replay, chip);
    }
    if (!replay->servers.may_exceed) return 0;
    enum collective_kind const kind = plan->plan->kind;
    bool const adds = kind == COLLECTIVE_REDUCE_SCATTER || kind == COLLECTIVE_ALL_REDUCE ||
                      kind == COLLECTIVE_REDUCE;
    int64_t const hbm_ps = server_past_at(&replay->servers, SERVER_HBM, chip)->free_ps,
                  vpu_ps = server_past_at(&replay->servers, SERVER_VPU, chip)->free_ps;
    return adds && vpu_ps > hbm_ps ? vpu_ps : hbm_ps;
}

/* The collective ends when its last message has left; while that waits for turns, it will say. */
static void end_post(struct replay *replay, uint32_t stream, uint32_t chip, int64_t written_ps,
                     int64_t now_ps)
{
    struct stream_state *state = stream_at(replay, stream, chip);
    int64_t const depart_ps = last_departure_ps(replay, stream, chip);
    state->phase = depart_ps == lane_held_ps ? STREAM_LEAVES : STREAM_ENDS;
    if (state->phase == STREAM_LEAVES) return;
    int64_t const end_ps = depart_ps > written_ps ? depart_ps : written_ps;
    engine_post(replay->engine, end_ps > now_ps ? end_ps : now_ps,
                event_key_make(EVENT_COLLECTIVE_END, 0, stream, 0),
                channel_of(replay, EVENT_COLLECTIVE_END, stream), chip);
}

void transport_check_end(struct replay *replay, uint32_t stream, uint32_t chip, int64_t now_ps)
{
    struct stream_state *state = stream_at(replay, stream, chip);
    if (state->phase == STREAM_LEAVES) {
        end_post(replay, stream, chip, 0, now_ps);
        return;
    }
    if (state->phase != STREAM_RUNS || state->lanes_left > 0) return;
    if (state->operand_parts > 0) {
        /* The own chunk of the operand is never sent, and is part of the result all the same. */
        struct stream_state *compute = stream_at(replay, PROGRAM_COMPUTE, chip);
        uint32_t const wanted = state->operand_first + state->operand_parts;
        if (compute->done < wanted) {
            stream_wait(state, compute, stream, false, wanted);
            return;
        }
    }
    end_post(replay, stream, chip, shards_write(replay, stream, chip, now_ps), now_ps);
}

bool transport_leaves(struct replay *replay, uint32_t stream, uint32_t chip, int64_t now_ps)
{
    if (replay->ports == NULL || last_departure_ps(replay, stream, chip) <= now_ps) return false;
    end_post(replay, stream, chip, 0, now_ps);
    return true;
}

/* What a lane of the running op has put on its port at least, had the link done nothing else. Each
 * message's time is rounded up, so that of a whole one is up to 1 ps more than its share. */
static int64_t port_time_ps(const struct replay *replay, const struct lane_table *lane,
                            uint32_t chip)
{
    uint32_t const position = position_of(lane, chip);
    uint64_t units = lane->costs.units_total;
    for (uint32_t step = 0; !lane->ring && step < lane->steps.send_count[position]; step++)
        units += lane_step(lane, position, step).units;
    uint32_t const kind = link_class_of(replay, chip, lane->route.leg[0].port);
    int64_t const whole_ps = cost_at(lane, kind, lane->costs.units_max)->link_ps;
    if (whole_ps == 0) return 0;
    return (int64_t)(units * lane->piece_count / lane->costs.units_max) * (whole_ps - 1);
}

/* Ports by which a collective leaves a chip. */
struct port_bound {
    int64_t most_ps; /* Time of the port that takes the longest, at least. */
    uint32_t ports;  /* Ports that take any time. */
};

/* What all lanes of the running op have put on each port at least. */
static struct port_bound port_bound_of(struct replay *replay, const struct plan_table *plan,
                                       uint32_t chip)
{
    int64_t port_ps[MACHINE_GRID_PORTS] = {0};
    struct port_bound bound = {0, 0};
    for (uint32_t i = 0; i < plan->lane_count; i++) {
        const struct lane_table *lane = &plan->lane[i];
        if (lane->routed == NULL && lane->states[chip].sends > 0)
            port_ps[lane->route.leg[0].port] += port_time_ps(replay, lane, chip);
    }
    for (uint32_t port = 0; port < MACHINE_GRID_PORTS; port++) {
        bound.ports += port_ps[port] != 0;
        bound.most_ps = port_ps[port] > bound.most_ps ? port_ps[port] : bound.most_ps;
    }
    return bound;
}

/* No collective is faster than the ports it leaves by: bytes over rate, each port apart. (Links of
 * routes are checked at the end of the run: breakdown.c.) */
static void port_check(struct replay *replay, const struct port_bound *bound, int64_t took_ps)
{
    SIM_ASSERT(bound->most_ps <= took_ps);
    replay->tally.bound_checks += bound->ports;
}

void transport_end(struct replay *replay, uint32_t stream, uint32_t chip, int64_t now_ps)
{
    const struct plan_table *plan = &replay->lanes.plans[*running_at(replay, stream, chip)];
    bool has_ports = false;
    for (uint32_t i = 0; i < plan->lane_count; i++) {
        if (plan->lane[i].routed != NULL) routed_end(replay, &plan->lane[i], chip);
        has_ports = has_ports || plan->lane[i].routed == NULL;
    }
    if (!has_ports) return;
    struct port_bound const bound = port_bound_of(replay, plan, chip);
    port_check(replay, &bound, now_ps - stream_at(replay, stream, chip)->begin_ps);
}

/* Whether all links of two chips are of the same classes. */
static bool links_alike(const struct replay *replay, uint32_t chip, uint32_t other)
{
    const uint8_t *kinds = replay->fold->link_class;
    return kinds == NULL || memcmp(&kinds[(uint64_t)chip * MACHINE_PORTS_MAX],
                                   &kinds[(uint64_t)other * MACHINE_PORTS_MAX],
                                   MACHINE_PORTS_MAX * sizeof *kinds) == 0;
}

void lanes_end(struct replay *replay, uint32_t stream, const struct batch *batch, int64_t now_ps)
{
    const uint16_t *running = running_at(replay, stream, 0);
    if (batch->count == 0) return;
    uint16_t const index = running[batch->chip[0]];
    const struct plan_table *plan = &replay->lanes.plans[index];
    struct port_bound bound = {0, 0};
    bool alike = true;
    for (uint32_t i = 0; i < plan->lane_count; i++)
        alike = alike && plan->lane[i].ring && plan->lane[i].route.single;
    if (alike) bound = port_bound_of(replay, plan, batch->chip[0]);
    for (uint32_t i = 0; i < batch->count; i++) {
        uint32_t const chip = batch->chip[i];
        if (alike && running[chip] == index && links_alike(replay, chip, batch->chip[0]))
            port_check(replay, &bound, now_ps - stream_at(replay, stream, chip)->begin_ps);
        else
            transport_end(replay, stream, chip, now_ps);
    }
}
