/*
 * stream_steps.h: how a stream of one chip goes on, step by step; inline, since parts of compute
 * ops need it. Internal to streams.c and batch_streams.c.
 */
#ifndef SIM_REPLAY_STREAM_STEPS_H
#define SIM_REPLAY_STREAM_STEPS_H

#include "sim/replay/breakdown.h"
#include "sim/replay/flight.h"
#include "sim/replay/fold_prefix.h"
#include "sim/replay/state.h"

static inline const struct stream_ops *
ops_at(const struct replay *replay, const struct role_table *role, uint32_t stream, uint32_t slot)
{
    return &replay->streams.ops[role->slot_template[slot] * PROGRAM_STREAMS_MAX + stream];
}

/* Whether all needs of part `part` are met; else the stream waits at the first that is not. */
static inline bool needs_met(struct replay *replay, const struct need_cache *cache, uint32_t stream,
                             uint32_t chip, uint32_t part)
{
    for (uint32_t i = 0; i < cache->op->need_count; i++) {
        const struct program_need *need = &cache->op->need[i];
        struct stream_state *other = stream_at(replay, need->stream, chip);
        uint32_t const count = need->begun ? other->begun : other->done;
        uint32_t const wanted = cache->count[i] + part * cache->per_part[i];
        if (count >= wanted) continue;
        stream_wait(stream_at(replay, stream, chip), other, stream, need->begun, wanted);
        return false;
    }
    return true;
}

/* Whether the stream has a collective under way, whose lanes may wait for an operand. */
static inline bool stream_sends(struct replay *replay, uint32_t stream, uint32_t chip)
{
    return stream != PROGRAM_COMPUTE && stream_at(replay, stream, chip)->phase == STREAM_RUNS;
}

/* Takes those from the waiters for whom enough parts are done or begun. */
static inline uint32_t waiters_take(struct replay *replay, uint32_t chip,
                                    struct stream_state *state, int64_t now_ps)
{
    const struct chip_state *self = &replay->chips[chip];
    /* Whom exposed time waited for can be told no longer once they have gone on. */
    if (!self->computes && self->running != 0) breakdown_until(replay, chip, now_ps);
    uint32_t const have[2] = {2 * state->done, 2 * state->begun + 1};
    uint32_t least[2] = {UINT32_MAX, UINT32_MAX}, taken = 0;
    for (uint32_t bits = state->waiters; bits != 0; bits &= bits - 1) {
        uint32_t const wants = stream_at(replay, (uint32_t)__builtin_ctz(bits), chip)->wants;
        if (wants <= have[wants & 1])
            taken |= bits & -bits;
        else if (wants / 2 < least[wants & 1])
            least[wants & 1] = wants / 2;
    }
    state->waiters &= ~taken;
    state->wake_done = least[0];
    state->wake_begun = least[1];
    return taken;
}

/* Whether a chip that only waits for it is said to communicate. Who waits for another rank of the
 * pipeline is idle: what it waits for is mostly that rank's work. */
static inline bool is_exposed(const struct program_op *op)
{
    return op->kind == PROGRAM_OP_COLLECTIVE || op->kind == PROGRAM_OP_COPY;
}

/* Memory that an op takes or gives back as it begins or ends. */
static inline void op_effects(struct replay *replay, const struct program_op *op, bool at_end,
                              uint32_t chip, int64_t now_ps)
{
    for (uint32_t i = 0; i < op->effect_count; i++)
        if (op->effect[i].at_end == at_end)
            breakdown_effect(replay, &op->effect[i], op->stream, chip, now_ps);
}

/* The stream of an op that begins, and the memory that the op takes. */
static inline void op_enter(struct replay *replay, const struct need_cache *needs, uint32_t stream,
                            uint32_t chip, int64_t now_ps)
{
    struct stream_state *state = stream_at(replay, stream, chip);
    state->phase = STREAM_RUNS;
    state->begin_ps = now_ps;
    state->op_first = state->done;
    state->part = 0;
    op_effects(replay, needs->op, false, chip, now_ps);
}

/* The books of an op that begins. */
static inline void op_open(struct replay *replay, const struct need_cache *needs, uint32_t stream,
                           uint32_t chip, int64_t now_ps)
{
    struct chip_state *self = &replay->chips[chip];
    breakdown_until(replay, chip, now_ps); /* It has waited until now. */
    op_enter(replay, needs, stream, chip, now_ps);
    if (stream != PROGRAM_COMPUTE) {
        if (is_exposed(needs->op)) self->running |= 1u << stream;
        if (needs->op->kind == PROGRAM_OP_SEND) self->sends |= 1u << stream;
        return;
    }
    self->block_phase = needs->phase;
    if (needs->phase == PROGRAM_PHASE_UPDATE || now_ps >= self->first_begin_ps) return;
    self->first_begin_ps = now_ps;
    self->exposed_first_ps = self->exposed_ps;
}

/* A collective of a plan begins on a chip and takes its cores, or ends and gives them back. */
static inline void cores_change(struct replay *replay, uint32_t chip, uint32_t plan, bool begins,
                                int64_t now_ps)
{
    const struct cores *cores = &replay->servers.cores;
    uint32_t const own = cores->is_on ? replay->program->plans[plan].protocol.cores : 0;
    if (own == 0) return;
    if (stream_at(replay, PROGRAM_COMPUTE, chip)->part_runs)
        cores_settle(cores, chip, streams_needs(replay, PROGRAM_COMPUTE, chip)->op->index, now_ps);
    if (begins)
        cores->states[chip].held += own;
    else
        cores->states[chip].held -= own;
}

/* A collective, or a message to another rank, runs from now on. */
static inline void collective_open(struct replay *replay, const struct need_cache *needs,
                                   uint32_t stream, uint32_t chip, int64_t now_ps)
{
    struct stream_state *state = stream_at(replay, stream, chip);
    cores_change(replay, chip, needs->op->index, /* begins= */ true, now_ps);
    state->operand_first = needs->operand_first;
    state->operand_parts = needs->operand_parts;
    state->begun += needs->op->parts;
    state->epoch = (uint8_t)((state->epoch + 1) % (1u << KEY_EPOCH_BITS));
    *running_at(replay, stream, chip) =
        replay->lanes.plan_index[stream * replay->program->plan_count + needs->op->index];
}

/* The stream of an op that has ended, and the books of its class and of its memory. */
static inline void op_leave(struct replay *replay, const struct need_cache *needs, uint32_t stream,
                            uint32_t chip, int64_t now_ps)
{
    struct stream_state *state = stream_at(replay, stream, chip);
    const struct program_op *op = needs->op;
    SIM_ASSERT(state->done == state->op_first + op->parts);
    op_effects(replay, op, true, chip, now_ps);
    breakdown_class(replay, op, chip, state->begin_ps, now_ps);
    state->phase = STREAM_WAITS;
    state->position++;
}

/* The books of a compute op that has ended, or of several that began at `begin_ps`; the breakdown
 * is written up to now. */
static inline void compute_closed(struct replay *replay, const struct need_cache *needs,
                                  uint32_t chip, int64_t begin_ps, int64_t now_ps)
{
    struct chip_state *self = &replay->chips[chip];
    if (needs->phase == PROGRAM_PHASE_UPDATE) return;
    self->last_end_ps = now_ps;
    self->exposed_last_ps = self->exposed_ps;
    self->last_phase = needs->phase;
    breakdown_pass(replay, needs, chip, begin_ps, now_ps);
}

/* The books of an op that ends. */
static inline void op_close(struct replay *replay, const struct need_cache *needs, uint32_t stream,
                            uint32_t chip, int64_t now_ps)
{
    int64_t const begin_ps = stream_at(replay, stream, chip)->begin_ps;
    breakdown_until(replay, chip, now_ps);
    if (stream == PROGRAM_COMPUTE) compute_closed(replay, needs, chip, begin_ps, now_ps);
    op_leave(replay, needs, stream, chip, now_ps);
}

/* A collective, a message to another rank, or a copy has ended. */
static inline void collective_close(struct replay *replay, const struct need_cache *needs,
                                    uint32_t stream, uint32_t chip, int64_t now_ps)
{
    struct stream_state *state = stream_at(replay, stream, chip);
    digest_add_own(replay, now_ps, event_key_make(EVENT_COLLECTIVE_END, 0, stream, 0), chip);
    *running_at(replay, stream, chip) = RUNNING_NONE;
    if (needs->op->kind == PROGRAM_OP_COLLECTIVE || needs->op->kind == PROGRAM_OP_SEND)
        cores_change(replay, chip, needs->op->index, /* begins= */ false, now_ps);
    state->done = state->op_first + needs->op->parts;
    op_close(replay, needs, stream, chip, now_ps);
    replay->chips[chip].running &= ~(1u << stream);
    replay->chips[chip].sends &= ~(1u << stream);
}

/* Goes on to the next op of the stream, past slots that have none; false at the end of the step. */
static inline bool stream_has_op(const struct replay *replay, uint32_t stream, uint32_t chip,
                                 struct stream_state *state)
{
    const struct role_table *role = role_at(replay, chip);
    while (state->slot < role->role->slot_count) {
        if (state->position < ops_at(replay, role, stream, state->slot)->op_count) return true;
        state->slot++;
        state->position = 0;
        if (stream == PROGRAM_COMPUTE && state->slot >= role->prefix_end_slot)
            engine_pause(replay->engine);
    }
    state->phase = STREAM_FINISHED;
    return false;
}

/* A part of a compute op begins; what it takes of servers follows: part_serve(). */
static inline void part_open(struct replay *replay, struct stream_state *state, uint32_t chip,
                             int64_t now_ps)
{
    struct chip_state *self = &replay->chips[chip];
    if (!self->computes) breakdown_until(replay, chip, now_ps);
    self->computes = true;
    self->part_begin_ps = now_ps;
    state->part_runs = true;
    state->begun++;
}

/* Returns when the part ends, as far as is known. */
static inline int64_t part_serve(struct replay *replay, const struct op_table *table, uint32_t part,
                                 uint32_t chip, int64_t now_ps)
{
    flights_serve(replay, chip);
    for (enum server server = SERVER_HBM; !table->spares && server < SERVER_COUNT; server++)
        if (!table->server[server].spares)
            server_part_begin(&replay->servers, server, chip, now_ps);
    if (replay->servers.cores.is_on) cores_part_begin(&replay->servers.cores, chip, now_ps);
    int64_t const end_ps = now_ps + table->idle_ps + (part < table->idle_longer);
    replay->chips[chip].part_end_ps = end_ps;
    return end_ps;
}

/* When the part ends, given the cores that collectives have and what it owes to messages, which go
 * first: an op that HBM or the VPU bounds is pushed out; one with time of it to spare is not, and
 * what it spares pays what was owed.
 */
static inline int64_t part_end_ps(struct replay *replay, const struct op_table *table,
                                  uint32_t part, uint32_t chip, int64_t now_ps)
{
    flights_serve(replay, chip);
    if (table->spares) { /* Of most ops. */
        for (enum server server = SERVER_HBM; server < SERVER_COUNT; server++)
            server_spare(server_at(&replay->servers, server, chip), &table->server[server]);
        return now_ps;
    }
    int64_t const begin_ps = replay->chips[chip].part_begin_ps;
    int64_t owed_ps[SERVER_COUNT], end_ps[SERVER_COUNT], last_ps = now_ps;
    for (enum server server = SERVER_HBM; server < SERVER_COUNT; server++) {
        const struct op_server *own = &table->server[server];
        if (own->spares) continue;
        owed_ps[server] = server_owed_ps(&replay->servers, server, chip, now_ps);
        end_ps[server] = begin_ps + own->shared_ps + (part < own->shared_longer) + owed_ps[server];
        if (end_ps[server] > last_ps) last_ps = end_ps[server];
    }
    if (table->cores.matter) {
        int64_t const math_ps =
            cores_end_ps(&replay->servers.cores, chip, part, &table->cores, begin_ps, now_ps);
        if (math_ps > last_ps) last_ps = math_ps;
    }
    if (last_ps > now_ps) return last_ps;
    for (enum server server = SERVER_HBM; server < SERVER_COUNT; server++) {
        const struct op_server *own = &table->server[server];
        if (own->spares)
            server_spare(server_at(&replay->servers, server, chip), own);
        else
            server_part_end(&replay->servers, server, chip, owed_ps[server],
                            now_ps - end_ps[server], now_ps);
    }
    return now_ps;
}

/* A part has ended, and with the last of them its op. */
static inline void part_close(struct replay *replay, const struct need_cache *needs, uint32_t chip,
                              int64_t now_ps)
{
    struct stream_state *state = stream_at(replay, PROGRAM_COMPUTE, chip);
    state->part_runs = false;
    state->part++;
    state->done++;
    if (state->part == needs->op->parts) op_close(replay, needs, PROGRAM_COMPUTE, chip, now_ps);
}

/* The compute stream waits from now on. */
static inline void compute_waits(struct replay *replay, uint32_t chip, int64_t now_ps)
{
    if (replay->prefetch.is_on) prefetch_wait(&replay->prefetch, &replay->servers, chip, now_ps);
}

/* What followed the end of a part has happened: the chip may have nothing to compute. */
static inline void part_left(struct replay *replay, uint32_t chip, int64_t now_ps)
{
    const struct stream_state *state = stream_at(replay, PROGRAM_COMPUTE, chip);
    if (!state->part_runs) {
        breakdown_until(replay, chip, now_ps);
        replay->chips[chip].computes = false;
        compute_waits(replay, chip, now_ps);
    }
    if (state->phase == STREAM_FINISHED) streams_check_finished(replay, chip, now_ps);
}

#endif
