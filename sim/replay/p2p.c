#include "sim/replay/p2p.h"

#include <string.h>

#include "sim/base/arena.h"
#include "sim/replay/breakdown.h"
#include "sim/replay/message.h"
#include "sim/replay/route.h"
#include "sim/replay/state.h"

static uint64_t index_of(const struct replay *replay, uint32_t stream, uint32_t chip)
{
    return (uint64_t)stream * replay->chip_count + chip;
}

/* Where the message of a permute's lane leads to. */
static uint32_t receiver_of(const struct replay *replay, const struct lane_table *lane,
                            uint32_t chip)
{
    if (lane->routed != NULL) {
        const struct plan *plan = lane->plan->plan;
        const struct place *from = &replay->routes->places[chip];
        struct place to;
        uint32_t const position = plan_item_position(plan, lane->item, from->at);
        uint32_t const peer = plan_step(plan, lane->item, lane->lane, position, 0).peer;
        plan_item_peer(plan, lane->item, from->at, peer, to.at);
        return route_chip(replay->routes, &to);
    }
    for (uint32_t leg = 0; leg < lane->route.leg_count; leg++)
        for (uint32_t hop = 0; hop < lane->route.leg[leg].hops; hop++)
            chip = replay->grid
                       .neighbour[(uint64_t)lane->route.leg[leg].port * replay->chip_count + chip];
    return chip;
}

/* A chip gets the messages of a stream from one sender, whatever plan they are of: program_seal()
 * lets the plans of a stream differ in their sizes only, and a permute has one sender a receiver,
 * also folded, as a fold maps who sends to whom onto itself. */
static void senders_find(struct replay *replay)
{
    struct p2p *p2p = replay->p2p;
    for (uint32_t i = 0; i < replay->lanes.plan_count; i++) {
        const struct plan_table *plan = &replay->lanes.plans[i];
        if (replay->program->stream[plan->stream].kind != PROGRAM_OP_SEND) continue;
        const struct lane_table *lane = &plan->lane[0];
        for (uint32_t chip = 0; chip < replay->chip_count; chip++) {
            if (lane->steps.send_count[position_of(lane, chip)] == 0) continue;
            uint32_t const to = receiver_of(replay, lane, chip);
            uint32_t *sender = &p2p->sender[index_of(replay, plan->stream, to)];
            SIM_ASSERT(*sender == UINT32_MAX || *sender == chip);
            *sender = chip;
        }
    }
}

enum status p2p_build(struct arena *arena, struct replay *replay, struct error *reterr)
{
    const struct program *program = replay->program;
    uint64_t const rows = (uint64_t)replay->stream_count * replay->chip_count;
    uint64_t sends = 0;
    bool any = false;
    for (uint32_t stream = 0; stream < program->stream_count; stream++)
        any = any || program->stream[stream].kind == PROGRAM_OP_SEND ||
              program->stream[stream].kind == PROGRAM_OP_RECEIVE;
    if (!any) return STATUS_OK;
    void *memory = NULL;
    STATUS_TRY(arena_try(arena, 1, sizeof *replay->p2p, &memory, reterr));
    struct p2p *p2p = replay->p2p = memory;
    STATUS_TRY(arena_try(arena, rows, sizeof *p2p->came, &memory, reterr));
    p2p->came = memory;
    STATUS_TRY(arena_try(arena, rows, sizeof *p2p->sender, &memory, reterr));
    p2p->sender = memset(memory, 0xff, rows * sizeof *p2p->sender);
    STATUS_TRY(arena_try(arena, rows, sizeof *p2p->transfer_ps, &memory, reterr));
    p2p->transfer_ps = memory;
    STATUS_TRY(arena_try(arena, replay->chip_count, sizeof *p2p->waits, &memory, reterr));
    p2p->waits = memory;
    STATUS_TRY(arena_try(arena, rows, sizeof *p2p->first, &memory, reterr));
    p2p->first = memory;
    for (uint32_t stream = 0; stream < program->stream_count; stream++) {
        if (program->stream[stream].kind != PROGRAM_OP_SEND) continue;
        for (uint32_t chip = 0; chip < replay->chip_count; chip++) {
            p2p->first[index_of(replay, stream, chip)] = sends;
            sends += role_at(replay, chip)->role->stream_total[stream];
        }
    }
    STATUS_TRY(arena_try(arena, sends, sizeof *p2p->left_ps, &memory, reterr));
    p2p->left_ps = memory;
    senders_find(replay);
    return STATUS_OK;
}

/* Messages of a stream that a sender sends in a step. */
static uint32_t sent_count(const struct replay *replay, uint32_t stream, uint32_t sender)
{
    return (uint32_t)role_at(replay, sender)->role->stream_total[stream];
}

void p2p_send(struct replay *replay, uint32_t stream, uint32_t chip, int64_t now_ps)
{
    struct p2p *p2p = replay->p2p;
    const struct program_op *op = streams_needs(replay, stream, chip)->op;
    uint32_t const number = stream_at(replay, stream, chip)->op_first;
    p2p->left_ps[p2p->first[index_of(replay, stream, chip)] + number] = now_ps;
    p2p->waits[chip].sent_bytes += replay->program->plans[op->index].size_bytes;
}

static void receive_end(struct replay *replay, uint32_t stream, uint32_t chip, int64_t now_ps)
{
    stream_at(replay, stream, chip)->phase = STREAM_ENDS;
    engine_post(replay->engine, now_ps, event_key_make(EVENT_COLLECTIVE_END, 0, stream, 0),
                channel_of(replay, EVENT_COLLECTIVE_END, stream), chip);
}

/* For a timeline: which message of whom has come, and how many with it. */
static void arrival_record(struct replay *replay, uint32_t stream, uint32_t chip, uint32_t sender,
                           uint32_t number, int64_t now_ps)
{
    if (!replay->chips[chip].shown) return;
    uint32_t const inbox = replay->program->stream[stream].inbox;
    uint32_t const at = fold_machine_chip(replay->fold, replay->machine, chip);
    struct trace_record const record = {
        .begin_ps = now_ps,
        .end_ps = now_ps,
        .came = replay->p2p->came[index_of(replay, inbox, chip)],
        .chip = chip,
        .from = fold_machine_chip(replay->fold, replay->machine, sender),
        .to = at,
        .at = at,
        .number = number,
        .kind = TRACE_ARRIVAL,
        .stream = (uint8_t)stream,
        .inbox = (uint16_t)inbox};
    record_add(&replay->records, &record);
}

void p2p_arrive(struct replay *replay, uint32_t stream, uint32_t chip, int64_t now_ps)
{
    struct p2p *p2p = replay->p2p;
    uint32_t const inbox = replay->program->stream[stream].inbox;
    uint64_t const from = index_of(replay, stream, chip), to = index_of(replay, inbox, chip);
    /* Messages of one sender keep their order, and left at least 1 ps ago. */
    uint32_t const sender = p2p->sender[from], number = p2p->came[from]++;
    SIM_ASSERT(sender != UINT32_MAX);
    if (number >= sent_count(replay, stream, sender)) return; /* Of a step that comes later. */
    uint32_t const came = ++p2p->came[to];
    if (replay->records.active) arrival_record(replay, stream, chip, sender, number, now_ps);
    if (stream_at(replay, inbox, chip)->phase != STREAM_RUNS) return;
    if (came < streams_needs(replay, inbox, chip)->arrivals) return;
    p2p->transfer_ps[to] =
        now_ps - p2p->left_ps[p2p->first[index_of(replay, stream, sender)] + number];
    receive_end(replay, inbox, chip, now_ps);
}

void p2p_receive(struct replay *replay, uint32_t stream, uint32_t chip, int64_t now_ps)
{
    struct p2p *p2p = replay->p2p;
    uint64_t const index = index_of(replay, stream, chip);
    if (p2p->came[index] < streams_needs(replay, stream, chip)->arrivals) return;
    p2p->transfer_ps[index] = 0;
    receive_end(replay, stream, chip, now_ps);
}

void p2p_again(struct replay *replay, uint32_t chip)
{
    const struct program *program = replay->program;
    struct p2p *p2p = replay->p2p;
    for (uint32_t stream = 0; stream < program->stream_count; stream++)
        if (program->stream[stream].kind == PROGRAM_OP_RECEIVE)
            p2p->came[index_of(replay, stream, chip)] = 0;
    for (uint32_t stream = 0; stream < program->stream_count; stream++) {
        uint64_t const from = index_of(replay, stream, chip);
        uint32_t const sender = p2p->sender[from];
        if (program->stream[stream].kind != PROGRAM_OP_SEND || sender == UINT32_MAX) continue;
        uint32_t const count = sent_count(replay, stream, sender);
        SIM_ASSERT(p2p->came[from] >= count); /* The chip has waited for all of them. */
        p2p->came[from] -= count;
        p2p->came[index_of(replay, program->stream[stream].inbox, chip)] +=
            p2p->came[from] < count ? p2p->came[from] : count;
    }
}

void p2p_waited(struct replay *replay, uint32_t stream, uint32_t chip, int64_t now_ps)
{
    struct p2p_wait *wait = &replay->p2p->waits[chip];
    bool const receives = replay->program->stream[stream].kind == PROGRAM_OP_RECEIVE;
    breakdown_until(replay, chip, now_ps);
    int64_t const transfer_ps = receives ? replay->p2p->transfer_ps[index_of(replay, stream, chip)]
                                         : now_ps - stream_at(replay, stream, chip)->begin_ps;
    if (transfer_ps == 0) return; /* It had come before it was asked for. */
    /* Several that end at one instant: a RECEIVE goes before a SEND, the shortest before others. */
    if (wait->ended && (wait->received > receives ||
                        (wait->received == receives && wait->transfer_ps < transfer_ps)))
        return;
    wait->ended = true;
    wait->received = receives;
    wait->transfer_ps = transfer_ps;
}

static void idle_clear(struct p2p_wait *wait)
{
    if (wait->idle_ps == 0) return;
    wait->idle_ps = 0;
    memset(wait->phase_ps, 0, sizeof wait->phase_ps);
}

/* The chip goes on, and with it ends what it waited for until now. A transfer is the end of a
 * wait. Of several phases the last ones in PROGRAM_PHASE's order are charged first. */
static void wait_close(struct replay *replay, uint32_t chip)
{
    struct p2p_wait *wait = &replay->p2p->waits[chip];
    if (!wait->ended) return;
    int64_t left_ps = wait->idle_ps < wait->transfer_ps ? wait->idle_ps : wait->transfer_ps;
    wait->waiting_ps += left_ps;
    for (uint32_t phase = PROGRAM_PHASE_COUNT; phase-- > 0 && left_ps > 0;) {
        int64_t const idle_ps = wait->phase_ps[phase];
        int64_t const part_ps = idle_ps < left_ps ? idle_ps : left_ps;
        replay->breakdowns.of_phase[breakdown_row(replay, phase, chip)].waiting_ps += part_ps;
        left_ps -= part_ps;
    }
    idle_clear(wait);
    wait->ended = false;
}

void p2p_account(struct replay *replay, uint32_t chip, int64_t span_ps)
{
    struct p2p_wait *wait = &replay->p2p->waits[chip];
    const struct chip_state *self = &replay->chips[chip];
    if (!self->computes && self->running == 0) {
        wait->ended = false; /* What ended did not let the chip go on. */
        wait->idle_ps += span_ps;
        wait->phase_ps[self->block_phase] += span_ps;
        return;
    }
    wait_close(replay, chip);
    if (self->computes) idle_clear(wait);
}

uint64_t p2p_bound(const struct replay *replay, uint32_t stream)
{
    uint64_t most = 0;
    for (uint32_t role = 0; role < replay->program->role_count; role++) {
        uint64_t const total = replay->program->roles[role].stream_total[stream];
        most = total > most ? total : most;
    }
    return (replay->steps.max > 1 ? replay->steps.max * most : most) + 1;
}
