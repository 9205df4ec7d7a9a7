/*
 * Ops of a stream in order: what they need, when they begin, what they wake when they end.
 *
 * A stream that waits names itself at the stream it waits for; whoever makes progress there wakes
 * it. So nothing is polled, and a handler costs what it changes.
 */
#include "sim/replay/breakdown.h"
#include "sim/replay/fold_prefix.h"
#include "sim/replay/host.h"
#include "sim/replay/p2p.h"
#include "sim/replay/record_owner.h"
#include "sim/replay/state.h"
#include "sim/replay/steps.h"
#include "sim/replay/transport.h"

static inline const struct stream_ops *
ops_at(const struct replay *replay, const struct role_table *role, uint32_t stream, uint32_t slot)
{
    return &replay->streams.ops[role->slot_template[slot] * PROGRAM_STREAMS_MAX + stream];
}

static const struct program_block *block_at(const struct role_table *role, uint32_t slot)
{
    if (role->slot_block == NULL) return program_slot_block(role->role, slot);
    return &role->role->block[role->slot_block[slot]];
}

/* As program_slot_start(), without a search. */
static uint32_t slot_start(const struct replay *replay, const struct role_table *role,
                           uint32_t stream, int64_t slot)
{
    if (slot >= role->role->slot_count) return (uint32_t)role->role->stream_total[stream];
    const struct program_block *block = block_at(role, (uint32_t)slot);
    return (uint32_t)(block->stream_first[stream] +
                      (uint64_t)(slot - block->slot_first) *
                          replay->program->templates[block->template_index].stream_parts[stream]);
}

/* The host launches ops in the order of the program, one after the other, whatever they wait for:
 * when it has launched so many. */
static int64_t launch_ps(const struct chip *chip, uint64_t launches)
{
    units_wide const ps = (units_wide)launches * (uint64_t)chip->launch.host_ps;
    return ps < (units_wide)TIME_PS_END ? (int64_t)ps : TIME_PS_END;
}

void streams_needs_fill(const struct replay *replay, const struct role_table *role, uint32_t stream,
                        const struct stream_state *state, struct need_cache *cache)
{
    const struct program_block *block = block_at(role, state->slot);
    const struct program_op *ops = replay->program->templates[block->template_index].op;
    const struct program_op *op =
        &ops[ops_at(replay, role, stream, state->slot)->op[state->position]];
    *cache = (struct need_cache){.slot = state->slot,
                                 .position = state->position,
                                 .filled = true,
                                 .phase = (uint8_t)block->phase,
                                 .pass = block->pass,
                                 .arrivals = (uint32_t)block->arrivals,
                                 .op = op};
    for (uint32_t i = 0; i < op->need_count; i++) {
        const struct program_need *need = &op->need[i];
        int64_t const slot = program_need_slot(need, block, state->slot);
        if (slot < 0) continue; /* Before the first slot nothing is needed: 0 parts. */
        cache->count[i] = slot_start(replay, role, need->stream, slot) + need->part;
        cache->per_part[i] = need->per_part;
    }
    if (role->block_launches != NULL) {
        uint64_t const before = role->block_launches[block - role->role->block] +
                                (uint64_t)(state->slot - block->slot_first) *
                                    replay->program->templates[block->template_index].op_count;
        cache->launched_ps = launch_ps(&replay->machine->chip, before + (uint64_t)(op - ops) + 1);
    }
    if (op->operand_op != PROGRAM_NONE) {
        const struct program_op *operand = &ops[op->operand_op];
        cache->operand_first =
            slot_start(replay, role, PROGRAM_COMPUTE, state->slot) + operand->part_first;
        cache->operand_parts = operand->parts;
    }
}

uint16_t streams_op_index(struct replay *replay, uint32_t stream, uint32_t chip)
{
    const struct stream_state *state = stream_at(replay, stream, chip);
    SIM_ASSERT(state->slot < role_at(replay, chip)->role->slot_count);
    return ops_at(replay, role_at(replay, chip), stream, state->slot)->op[state->position];
}

/* Whether all needs of part `part` are met; else the stream waits at the first that is not. */
static bool needs_met(struct replay *replay, uint32_t stream, uint32_t chip, uint32_t part)
{
    const struct need_cache *cache = streams_needs(replay, stream, chip);
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

static void compute_begin_part(struct replay *replay, uint32_t chip, int64_t now_ps);
static void stream_advance(struct replay *replay, uint32_t stream, uint32_t chip, int64_t now_ps);

/* Takes those waiters from the stream for whom enough parts are done or begun. */
static inline uint32_t waiters_take(struct replay *replay, uint32_t chip,
                                    struct stream_state *state)
{
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

/* Wakes those for whom enough has come. */
static inline void wake(struct replay *replay, uint32_t stream, uint32_t chip, int64_t now_ps)
{
    struct stream_state *state = stream_at(replay, stream, chip);
    if (state->done < state->wake_done && state->begun < state->wake_begun) return;
    const struct chip_state *self = &replay->chips[chip];
    /* Whom exposed time waited for can be told no longer once they have gone on. */
    if (!self->computes && self->running != 0) breakdown_until(replay, chip, now_ps);
    uint32_t waiters = waiters_take(replay, chip, state);
    while (waiters != 0) {
        uint32_t const waiter = (uint32_t)__builtin_ctz(waiters);
        waiters &= waiters - 1;
        if (waiter != PROGRAM_COMPUTE && stream_at(replay, waiter, chip)->phase == STREAM_RUNS)
            transport_operand(replay, waiter, chip, now_ps);
        else
            stream_advance(replay, waiter, chip, now_ps);
    }
}

void streams_progress(struct replay *replay, uint32_t stream, uint32_t chip, uint32_t parts,
                      int64_t now_ps)
{
    stream_at(replay, stream, chip)->done += parts;
    wake(replay, stream, chip, now_ps);
}

/* Whether a chip that only waits for it is said to communicate. Who waits for another rank of the
 * pipeline is idle: what it waits for is mostly that rank's work. */
static bool is_exposed(const struct program_op *op)
{
    return op->kind == PROGRAM_OP_COLLECTIVE || op->kind == PROGRAM_OP_COPY;
}

static void op_begin(struct replay *replay, uint32_t stream, uint32_t chip,
                     struct stream_state *state, int64_t now_ps)
{
    const struct need_cache *needs = streams_needs(replay, stream, chip);
    const struct program_op *op = needs->op;
    struct chip_state *self = &replay->chips[chip];
    breakdown_until(replay, chip, now_ps); /* It has waited until now. */
    state->phase = STREAM_RUNS;
    state->begin_ps = now_ps;
    state->op_first = state->done;
    state->part = 0;
    breakdown_op_effects(replay, op, false, chip, now_ps);
    if (stream == PROGRAM_COMPUTE) {
        self->block_phase = needs->phase;
        if (needs->phase != PROGRAM_PHASE_UPDATE && now_ps < self->first_begin_ps) {
            self->first_begin_ps = now_ps;
            self->exposed_first_ps = self->exposed_ps;
        }
        compute_begin_part(replay, chip, now_ps);
        return;
    }
    if (is_exposed(op)) self->running |= 1u << stream;
    if (op->kind == PROGRAM_OP_COPY || op->kind == PROGRAM_OP_RECEIVE) {
        state->begun++;
        if (op->kind == PROGRAM_OP_COPY)
            host_begin(replay, stream, chip, now_ps);
        else
            p2p_receive(replay, stream, chip, now_ps);
        streams_progress(replay, stream, chip, 0, now_ps);
        return;
    }
    if (op->kind == PROGRAM_OP_SEND) p2p_send(replay, stream, chip, now_ps);
    if (replay->spread != NULL) prefix_op_begin(replay, op);
    state->operand_first = needs->operand_first;
    state->operand_parts = needs->operand_parts;
    state->begun += op->parts;
    state->epoch = (uint8_t)((state->epoch + 1) % (1u << KEY_EPOCH_BITS));
    *running_at(replay, stream, chip) =
        replay->lanes.plan_index[stream * replay->program->plan_count + op->index];
    if (replay->records.active)
        record_owner_op_begin(replay, *running_at(replay, stream, chip), chip);
    transport_begin(replay, stream, chip, now_ps);
}

static void op_end(struct replay *replay, uint32_t stream, uint32_t chip,
                   struct stream_state *state, int64_t now_ps)
{
    const struct need_cache *needs = streams_needs(replay, stream, chip);
    const struct program_op *op = needs->op;
    SIM_ASSERT(state->done == state->op_first + op->parts);
    breakdown_until(replay, chip, now_ps);
    breakdown_op_effects(replay, op, true, chip, now_ps);
    breakdown_class(replay, op, chip, state->begin_ps, now_ps);
    if (stream == PROGRAM_COMPUTE && needs->phase != PROGRAM_PHASE_UPDATE) {
        struct chip_state *self = &replay->chips[chip];
        self->last_end_ps = now_ps;
        self->exposed_last_ps = self->exposed_ps;
        self->last_phase = needs->phase;
        breakdown_pass(replay, needs, chip, state->begin_ps, now_ps);
    }
    state->phase = STREAM_WAITS;
    state->position++;
}

/* Goes on to the next op of the stream, past slots that have none; false at the end of the step. */
static bool stream_has_op(const struct replay *replay, uint32_t stream, uint32_t chip,
                          struct stream_state *state)
{
    const struct role_table *role = role_at(replay, chip);
    while (state->slot < role->role->slot_count) {
        if (state->position < ops_at(replay, role, stream, state->slot)->op_count) return true;
        state->slot++;
        state->position = 0;
        if (stream == PROGRAM_COMPUTE && state->slot >= role->late_slot)
            engine_pause(replay->engine);
    }
    state->phase = STREAM_FINISHED;
    return false;
}

static void stream_advance(struct replay *replay, uint32_t stream, uint32_t chip, int64_t now_ps)
{
    struct stream_state *state = stream_at(replay, stream, chip);
    if (state->phase == STREAM_RUNS) {
        if (stream == PROGRAM_COMPUTE && !state->part_runs &&
            needs_met(replay, stream, chip, state->part))
            compute_begin_part(replay, chip, now_ps);
        return;
    }
    if (state->phase != STREAM_WAITS || !stream_has_op(replay, stream, chip, state)) return;
    if (!needs_met(replay, stream, chip, 0)) return;
    int64_t const launched_ps =
        replay->chips[chip].start_ps + streams_needs(replay, stream, chip)->launched_ps;
    if (launched_ps <= now_ps)
        op_begin(replay, stream, chip, state, now_ps);
    else
        engine_post(replay->engine, launched_ps < TIME_PS_END ? launched_ps : TIME_PS_END,
                    event_key_make(EVENT_START, KEY_LAUNCHED, stream, 0),
                    channel_of(replay, EVENT_START, stream), chip);
}

void streams_launched(struct replay *replay, uint32_t stream, uint32_t chip, int64_t now_ps)
{
    stream_advance(replay, stream, chip, now_ps);
}

static const struct op_table *compute_rest_table(const struct replay *replay, uint32_t chip,
                                                 const struct program_op *op, struct op_table *own)
{
    *own = op_table_of(replay, replay->chips[chip].chip_class, op,
                       replay->prefetch.states[chip].own_bytes);
    return own;
}

/* Of the running part, less what it found in VMEM. `own`: has room for what it alone has. */
static inline const struct op_table *compute_table(const struct replay *replay, uint32_t chip,
                                                   const struct program_op *op,
                                                   struct op_table *own)
{
    if (replay->prefetch.is_on && replay->prefetch.states[chip].own_bytes != 0)
        return compute_rest_table(replay, chip, op, own);
    return op_table_at(replay, op->index, replay->chips[chip].chip_class);
}

static void compute_begin_part(struct replay *replay, uint32_t chip, int64_t now_ps)
{
    struct stream_state *state = stream_at(replay, PROGRAM_COMPUTE, chip);
    struct chip_state *self = &replay->chips[chip];
    const struct program_op *op = streams_needs(replay, PROGRAM_COMPUTE, chip)->op;
    if (!self->computes) breakdown_until(replay, chip, now_ps);
    self->computes = true;
    self->part_begin_ps = now_ps;
    state->part_runs = true;
    state->begun++;
    prefetch_take(replay, op, state->part, chip, now_ps);
    struct op_table own;
    const struct op_table *table = compute_table(replay, chip, op, &own);
    for (enum server server = SERVER_HBM; server < SERVER_COUNT; server++)
        if (!table->server[server].spares)
            server_part_begin(&replay->servers, server, chip, now_ps);
    int64_t const duration_ps = table->idle_ps + (state->part < table->idle_longer);
    self->part_end_ps = now_ps + duration_ps;
    engine_post(replay->engine, self->part_end_ps,
                event_key_make(EVENT_COMPUTE_END, 0, PROGRAM_COMPUTE, 0),
                channel_of(replay, EVENT_COMPUTE_END, 0), chip);
    if (replay->recurrence.search != NULL && state->part == 0) recur_ask(replay);
    wake(replay, PROGRAM_COMPUTE, chip, now_ps);
}

/* When the part ends, given what it owes to messages, which go first: an op that HBM or the VPU
 * bounds is pushed out; one with time of it to spare is not, and what it spares pays what was owed.
 */
static int64_t part_end_ps(struct replay *replay, uint32_t chip, const struct stream_state *state,
                           const struct program_op *op, int64_t now_ps)
{
    struct op_table rest;
    const struct op_table *table = compute_table(replay, chip, op, &rest);
    int64_t const begin_ps = replay->chips[chip].part_begin_ps;
    int64_t owed_ps[SERVER_COUNT], end_ps[SERVER_COUNT], last_ps = now_ps;
    for (enum server server = SERVER_HBM; server < SERVER_COUNT; server++) {
        const struct op_server *own = &table->server[server];
        if (own->spares) continue;
        owed_ps[server] = server_owed_ps(&replay->servers, server, chip, now_ps);
        end_ps[server] =
            begin_ps + own->shared_ps + (state->part < own->shared_longer) + owed_ps[server];
        if (end_ps[server] > last_ps) last_ps = end_ps[server];
    }
    if (last_ps > now_ps) return last_ps;
    for (enum server server = SERVER_HBM; server < SERVER_COUNT; server++) {
        const struct op_server *own = &table->server[server];
        if (own->spares)
            server_spare(server_at(&replay->servers, server, chip), own->spare_ps);
        else
            server_part_end(&replay->servers, server, chip, owed_ps[server],
                            now_ps - end_ps[server], now_ps);
    }
    return now_ps;
}

void streams_compute_end(struct replay *replay, uint32_t chip, int64_t now_ps)
{
    struct stream_state *state = stream_at(replay, PROGRAM_COMPUTE, chip);
    struct chip_state *self = &replay->chips[chip];
    const struct program_op *op = streams_needs(replay, PROGRAM_COMPUTE, chip)->op;
    int64_t const end_ps = part_end_ps(replay, chip, state, op, now_ps);
    uint64_t const key = event_key_make(EVENT_COMPUTE_END, 0, PROGRAM_COMPUTE, 0);
    if (end_ps > now_ps) {
        self->part_end_ps = end_ps;
        engine_post(replay->engine, end_ps, key, channel_of(replay, EVENT_COMPUTE_END, 0), chip);
        return;
    }
    digest_add(replay, now_ps, key, chip);
    replay->tally.parts_done++;
    if (self->shown) {
        struct trace_record record = {.begin_ps = self->part_begin_ps,
                                      .end_ps = now_ps,
                                      .chip = chip,
                                      .slot = state->slot,
                                      .op = streams_op_index(replay, PROGRAM_COMPUTE, chip),
                                      .kind = TRACE_OP,
                                      .stream = PROGRAM_COMPUTE,
                                      .lane = state->part};
        record_add(&replay->records, &record);
    }
    state->part_runs = false;
    state->part++;
    state->done++;
    if (state->part == op->parts) op_end(replay, PROGRAM_COMPUTE, chip, state, now_ps);
    wake(replay, PROGRAM_COMPUTE, chip, now_ps);
    stream_advance(replay, PROGRAM_COMPUTE, chip, now_ps);
    if (!state->part_runs) {
        breakdown_until(replay, chip, now_ps);
        self->computes = false;
        prefetch_wait(replay, chip, now_ps);
    }
    if (state->phase == STREAM_FINISHED) streams_check_finished(replay, chip, now_ps);
}

static uint64_t op_bytes(const struct program *program, const struct program_op *op)
{
    if (op->kind == PROGRAM_OP_RECEIVE) return 0;
    return op->kind == PROGRAM_OP_COPY ? program->copies[op->index].size_bytes
                                       : program->plans[op->index].size_bytes;
}

void streams_collective_end(struct replay *replay, uint32_t stream, uint32_t chip, int64_t now_ps)
{
    struct stream_state *state = stream_at(replay, stream, chip);
    const struct program_op *op = streams_needs(replay, stream, chip)->op;
    bool const travels = op->kind == PROGRAM_OP_COLLECTIVE || op->kind == PROGRAM_OP_SEND;
    if (travels && transport_leaves(replay, stream, chip, now_ps)) return;
    if (travels) transport_end(replay, stream, chip, now_ps);
    state->done = state->op_first + op->parts;
    if (replay->chips[chip].shown) {
        struct trace_record record = {.begin_ps = state->begin_ps,
                                      .end_ps = now_ps,
                                      .bytes = op_bytes(replay->program, op),
                                      .chip = chip,
                                      .slot = state->slot,
                                      .op = streams_op_index(replay, stream, chip),
                                      .kind = TRACE_OP,
                                      .stream = (uint8_t)stream};
        record_add(&replay->records, &record);
    }
    digest_add(replay, now_ps, event_key_make(EVENT_COLLECTIVE_END, 0, stream, 0), chip);
    *running_at(replay, stream, chip) = RUNNING_NONE;
    if (!is_exposed(op)) p2p_waited(replay, stream, chip, now_ps);
    op_end(replay, stream, chip, state, now_ps);
    replay->chips[chip].running &= ~(1u << stream);
    wake(replay, stream, chip, now_ps);
    stream_advance(replay, stream, chip, now_ps);
    if (state->phase == STREAM_FINISHED) streams_check_finished(replay, chip, now_ps);
}

static void chip_finish(struct replay *replay, uint32_t chip, int64_t now_ps)
{
    replay->steps.finished_ps[chip] = now_ps;
    steps_end(replay, chip, now_ps);
}

void streams_check_finished(struct replay *replay, uint32_t chip, int64_t now_ps)
{
    for (uint32_t stream = 0; stream < replay->stream_count; stream++)
        if (stream_at(replay, stream, chip)->phase != STREAM_FINISHED) return;
    breakdown_until(replay, chip, now_ps);
    int64_t const left_ps = servers_left_ps(&replay->servers, chip, now_ps);
    if (left_ps == 0) {
        chip_finish(replay, chip, now_ps);
        return;
    }
    /* The last op that needed the server goes on for so long, and then nothing is owed. */
    replay->servers.hbm[chip].debt_ps = replay->servers.vpu[chip].debt_ps = 0;
    int64_t const end_ps = left_ps < TIME_PS_END - now_ps ? now_ps + left_ps : TIME_PS_END;
    replay->chips[chip].computes = true;
    engine_post(replay->engine, end_ps, event_key_make(EVENT_FINISH, 0, 0, 0),
                channel_of(replay, EVENT_FINISH, 0), chip);
}

void streams_finish(struct replay *replay, uint32_t chip, int64_t now_ps)
{
    digest_add(replay, now_ps, event_key_make(EVENT_FINISH, 0, 0, 0), chip);
    breakdown_until(replay, chip, now_ps);
    replay->chips[chip].computes = false;
    chip_finish(replay, chip, now_ps);
}

void streams_start(struct replay *replay, uint32_t chip, int64_t now_ps)
{
    steps_begin(replay, chip);
    replay->chips[chip].start_ps = now_ps;
    prefetch_start(replay, chip);
    prefetch_wait(replay, chip, now_ps);
    for (uint32_t stream = 0; stream < replay->stream_count; stream++)
        stream_advance(replay, stream, chip, now_ps);
    streams_check_finished(replay, chip, now_ps);
}
