/*
 * Ops of a stream in order: what they need, when they begin, what they wake when they end.
 *
 * A stream that waits names itself at the stream it waits for; whoever makes progress there wakes
 * it. So nothing is polled, and a handler costs what it changes.
 */
#include "sim/replay/breakdown.h"
#include "sim/replay/chain.h"
#include "sim/replay/flight.h"
#include "sim/replay/fold_prefix.h"
#include "sim/replay/host.h"
#include "sim/replay/p2p.h"
#include "sim/replay/record_owner.h"
#include "sim/replay/state.h"
#include "sim/replay/steps.h"
#include "sim/replay/stream_steps.h"
#include "sim/replay/stretch.h"
#include "sim/replay/transport.h"

static const struct program_block *block_at(const struct role_table *role, uint32_t slot)
{
    if (role->slot_block == NULL) return program_slot_block(role->role, slot);
    return &role->role->block[role->slot_block[slot]];
}

/* Parts of a stream before a slot of a block. */
static inline uint32_t block_start(const struct replay *replay, const struct program_block *block,
                                   uint32_t stream, uint32_t slot)
{
    const struct program_template *template = &replay->program->templates[block->template_index];
    return (uint32_t)(block->stream_first[stream] +
                      (uint64_t)(slot - block->slot_first) * template->stream_parts[stream]);
}

/* As program_slot_start(), without a search. */
static uint32_t slot_start(const struct replay *replay, const struct role_table *role,
                           uint32_t stream, int64_t slot)
{
    if (slot >= role->role->slot_count) return (uint32_t)role->role->stream_total[stream];
    return block_start(replay, block_at(role, (uint32_t)slot), stream, (uint32_t)slot);
}

/* The host launches ops in the order of the program, one after the other, whatever they wait for:
 * when it has launched so many. */
static int64_t launch_ps(const struct chip *chip, uint64_t launches)
{
    units_wide const ps = (units_wide)launches * (uint64_t)chip->launch.host_ps;
    return ps < (units_wide)TIME_PS_END ? (int64_t)ps : TIME_PS_END;
}

static void need_fill(const struct replay *replay, const struct role_table *role,
                      const struct program_block *block, uint32_t own, uint32_t i,
                      struct need_cache *cache)
{
    const struct program_need *need = &cache->op->need[i];
    uint32_t start = 0;
    if (need->slot == 0) {
        start = block_start(replay, block, need->stream, own);
    } else {
        int64_t const slot = program_need_slot(need, block, own);
        if (slot < 0) { /* Before the first slot nothing is needed: 0 parts. */
            cache->count[i] = cache->per_part[i] = 0;
            return;
        }
        start = slot_start(replay, role, need->stream, slot);
    }
    SIM_ASSERT((uint64_t)start + program_need_parts(need, cache->op) <= UINT32_MAX / 2);
    cache->count[i] = start + need->part;
    cache->per_part[i] = need->per_part;
}

/* Of needs that the op does not have nothing is written. */
void streams_needs_fill(const struct replay *replay, const struct role_table *role, uint32_t stream,
                        const struct stream_state *state, struct need_cache *cache)
{
    const struct program_block *block = block_at(role, state->slot);
    const struct program_template *template = &replay->program->templates[block->template_index];
    const struct stream_ops *own =
        &replay->streams.ops[block->template_index * PROGRAM_STREAMS_MAX + stream];
    const struct program_op *op = &template->op[own->op[state->position]];
    cache->slot = state->slot;
    cache->position = state->position;
    cache->filled = true;
    cache->phase = (uint8_t)block->phase;
    cache->pass = block->pass;
    cache->arrivals = (uint32_t)block->arrivals;
    cache->op = op;
    cache->launched_ps = 0;
    cache->operand_first = cache->operand_parts = 0;
    for (uint32_t i = 0; i < op->need_count; i++)
        need_fill(replay, role, block, state->slot, i, cache);
    if (role->block_launches != NULL) {
        uint64_t const before = role->block_launches[block - role->role->block] +
                                (uint64_t)(state->slot - block->slot_first) * template->op_count;
        cache->launched_ps =
            launch_ps(&replay->machine->chip, before + (uint64_t)(op - template->op) + 1);
    }
    if (op->operand_op != PROGRAM_NONE) {
        const struct program_op *operand = &template->op[op->operand_op];
        cache->operand_first =
            block_start(replay, block, PROGRAM_COMPUTE, state->slot) + operand->part_first;
        cache->operand_parts = operand->parts;
    }
}

uint16_t streams_op_index(struct replay *replay, uint32_t stream, uint32_t chip)
{
    const struct stream_state *state = stream_at(replay, stream, chip);
    SIM_ASSERT(state->slot < role_at(replay, chip)->role->slot_count);
    return ops_at(replay, role_at(replay, chip), stream, state->slot)->op[state->position];
}

static void compute_begin_part(struct replay *replay, const struct need_cache *needs, uint32_t chip,
                               int64_t now_ps);

void streams_wake(struct replay *replay, uint32_t chip, uint32_t waiters, int64_t now_ps)
{
    for (; waiters != 0; waiters &= waiters - 1) {
        uint32_t const waiter = (uint32_t)__builtin_ctz(waiters);
        if (stream_sends(replay, waiter, chip))
            transport_operand(replay, waiter, chip, now_ps);
        else
            streams_advance(replay, waiter, chip, now_ps);
    }
}

/* Wakes those for whom enough has come. */
static inline void wake(struct replay *replay, uint32_t stream, uint32_t chip, int64_t now_ps)
{
    struct stream_state *state = stream_at(replay, stream, chip);
    if (stream_has_come(state))
        streams_wake(replay, chip, waiters_take(replay, chip, state, now_ps), now_ps);
}

void streams_progress(struct replay *replay, uint32_t stream, uint32_t chip, uint32_t parts,
                      int64_t now_ps)
{
    stream_at(replay, stream, chip)->done += parts;
    wake(replay, stream, chip, now_ps);
}

static void op_begin(struct replay *replay, const struct need_cache *needs, uint32_t stream,
                     uint32_t chip, struct stream_state *state, int64_t now_ps)
{
    const struct program_op *op = needs->op;
    op_open(replay, needs, stream, chip, now_ps);
    if (stream == PROGRAM_COMPUTE) {
        compute_begin_part(replay, needs, chip, now_ps);
        return;
    }
    if (op->kind != PROGRAM_OP_COLLECTIVE && stretch_is_recorded(replay, chip))
        stretch_drop(replay, chip);
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
    if (replay->images != NULL) prefix_op_begin(replay, op);
    collective_open(replay, needs, stream, chip, now_ps);
    if (replay->records.active)
        record_owner_op_begin(replay, *running_at(replay, stream, chip), chip);
    if (op->kind == PROGRAM_OP_COLLECTIVE && flight_begin(replay, stream, chip, now_ps)) {
        streams_progress(replay, stream, chip, 0, now_ps);
        return;
    }
    if (stretch_is_recorded(replay, chip)) stretch_drop(replay, chip);
    transport_begin(replay, stream, chip, now_ps);
}

/* Inline, since the end of each part needs it for the compute stream. */
static inline __attribute__((always_inline)) void advance(struct replay *replay, uint32_t stream,
                                                          uint32_t chip, int64_t now_ps)
{
    struct stream_state *state = stream_at(replay, stream, chip);
    if (state->phase == STREAM_RUNS) {
        if (stream != PROGRAM_COMPUTE || state->part_runs) return;
        const struct need_cache *own = streams_needs(replay, stream, chip);
        if (needs_met(replay, own, stream, chip, state->part))
            compute_begin_part(replay, own, chip, now_ps);
        return;
    }
    if (state->phase != STREAM_WAITS || !stream_has_op(replay, stream, chip, state)) return;
    const struct need_cache *needs = streams_needs(replay, stream, chip);
    if (!needs_met(replay, needs, stream, chip, 0)) return;
    int64_t const launched_ps = replay->chips[chip].start_ps + needs->launched_ps;
    if (launched_ps <= now_ps)
        op_begin(replay, needs, stream, chip, state, now_ps);
    else
        engine_post(replay->engine, launched_ps < TIME_PS_END ? launched_ps : TIME_PS_END,
                    event_key_make(EVENT_START, KEY_LAUNCHED, stream, 0),
                    channel_of(replay, EVENT_START, stream), chip);
}

void streams_advance(struct replay *replay, uint32_t stream, uint32_t chip, int64_t now_ps)
{
    advance(replay, stream, chip, now_ps);
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

/* A part takes what there is of its weights. */
static void weights_take(struct replay *replay, const struct program_op *op, uint32_t part,
                         uint32_t chip, int64_t now_ps)
{
    const struct fold_chip_class *kind =
        &replay->fold->chip_classes[replay->chips[chip].chip_class];
    uint64_t const rate = units_scale_ppm(replay->machine->chip.hbm_bytes_per_s, kind->hbm_ppm);
    uint64_t const all = replay->program->works[op->index].prefetch_bytes;
    uint64_t const bytes = all / op->parts + (part < all % op->parts);
    prefetch_take(&replay->prefetch, &replay->servers, chip, bytes, rate, now_ps);
}

static void compute_begin_part(struct replay *replay, const struct need_cache *needs, uint32_t chip,
                               int64_t now_ps)
{
    struct stream_state *state = stream_at(replay, PROGRAM_COMPUTE, chip);
    const struct program_op *op = needs->op;
    struct op_table own;
    part_open(replay, state, chip, now_ps);
    if (replay->prefetch.is_on) weights_take(replay, op, state->part, chip, now_ps);
    int64_t const end_ps =
        part_serve(replay, compute_table(replay, chip, op, &own), state->part, chip, now_ps);
    if (replay->streams.chains != NULL)
        chain_offer(replay, chip);
    else
        engine_post(replay->engine, end_ps,
                    event_key_make(EVENT_COMPUTE_END, 0, PROGRAM_COMPUTE, 0),
                    channel_of(replay, EVENT_COMPUTE_END, 0), chip);
    if (replay->recurrence.search != NULL && state->part == 0) recur_ask(replay, &chip, 1);
    wake(replay, PROGRAM_COMPUTE, chip, now_ps);
}

static void part_record(struct replay *replay, uint32_t chip, int64_t now_ps)
{
    const struct stream_state *state = stream_at(replay, PROGRAM_COMPUTE, chip);
    struct trace_record const record = {.begin_ps = replay->chips[chip].part_begin_ps,
                                        .end_ps = now_ps,
                                        .chip = chip,
                                        .slot = state->slot,
                                        .op = streams_op_index(replay, PROGRAM_COMPUTE, chip),
                                        .kind = TRACE_OP,
                                        .stream = PROGRAM_COMPUTE,
                                        .lane = state->part};
    record_add(&replay->records, &record);
}

static inline __attribute__((always_inline)) void compute_end(struct replay *replay, uint32_t chip,
                                                              int64_t now_ps)
{
    const struct stream_state *state = stream_at(replay, PROGRAM_COMPUTE, chip);
    const struct need_cache *needs = streams_needs(replay, PROGRAM_COMPUTE, chip);
    struct op_table own;
    int64_t const end_ps = part_end_ps(replay, compute_table(replay, chip, needs->op, &own),
                                       state->part, chip, now_ps);
    uint64_t const key = event_key_make(EVENT_COMPUTE_END, 0, PROGRAM_COMPUTE, 0);
    if (end_ps > now_ps) {
        replay->chips[chip].part_end_ps = end_ps;
        engine_post(replay->engine, end_ps, key, channel_of(replay, EVENT_COMPUTE_END, 0), chip);
        return;
    }
    digest_add_own(replay, now_ps, key, chip);
    replay->tally.parts_done++;
    if (replay->chips[chip].shown) part_record(replay, chip, now_ps);
    part_close(replay, needs, chip, now_ps);
    wake(replay, PROGRAM_COMPUTE, chip, now_ps);
    if (state->phase != STREAM_RUNS)
        advance(replay, PROGRAM_COMPUTE, chip, now_ps);
    else if (!state->part_runs &&
             needs_met(replay, needs, PROGRAM_COMPUTE, chip, state->part)) /* Of the same op. */
        compute_begin_part(replay, needs, chip, now_ps);
    part_left(replay, chip, now_ps);
}

void streams_compute_end(struct replay *replay, const uint32_t *chips, uint32_t count,
                         int64_t now_ps)
{
    for (uint32_t i = 0; i < count; i++) compute_end(replay, chips[i], now_ps);
}

/* Chips whose state is fetched ahead. */
enum { AHEAD = 12 };

void streams_compute_window(struct replay *replay, const uint32_t *chips, const int64_t *at_ps,
                            uint32_t count)
{
    const struct stream_state *states = stream_at(replay, PROGRAM_COMPUTE, 0);
    for (uint32_t i = 0; i < count; i++) {
        if (i + AHEAD < count) {
            uint32_t const chip = chips[i + AHEAD];
            __builtin_prefetch(&states[chip], 1);
            __builtin_prefetch(&replay->chips[chip], 1);
            __builtin_prefetch(&replay->servers.states[chip], 1);
        }
        compute_end(replay, chips[i], at_ps[i]);
    }
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
    const struct need_cache *needs = streams_needs(replay, stream, chip);
    const struct program_op *op = needs->op;
    bool const travels = op->kind == PROGRAM_OP_COLLECTIVE || op->kind == PROGRAM_OP_SEND;
    if (travels && transport_leaves(replay, stream, chip, now_ps)) return;
    if (travels) transport_end(replay, stream, chip, now_ps);
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
    if (!is_exposed(op)) p2p_waited(replay, stream, chip, now_ps);
    collective_close(replay, needs, stream, chip, now_ps);
    wake(replay, stream, chip, now_ps);
    streams_advance(replay, stream, chip, now_ps);
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
    for (enum server server = SERVER_HBM; server < SERVER_COUNT; server++)
        server_at(&replay->servers, server, chip)->debt_ps = 0;
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

void streams_wakes_settle(struct replay *replay, uint32_t chip, struct stream_state *state)
{
    uint32_t least[2] = {UINT32_MAX, UINT32_MAX};
    for (uint32_t bits = state->waiters; bits != 0; bits &= bits - 1) {
        uint32_t const wants = stream_at(replay, (uint32_t)__builtin_ctz(bits), chip)->wants;
        if (wants / 2 < least[wants & 1]) least[wants & 1] = wants / 2;
    }
    state->wake_done = least[0];
    state->wake_begun = least[1];
}

void streams_start(struct replay *replay, uint32_t chip, int64_t now_ps)
{
    steps_begin(replay, chip);
    replay->chips[chip].start_ps = now_ps;
    if (replay->prefetch.is_on)
        prefetch_start(&replay->prefetch, chip, role_at(replay, chip)->prefetch_bytes);
    compute_waits(replay, chip, now_ps);
    for (uint32_t stream = 0; stream < replay->stream_count; stream++)
        streams_advance(replay, stream, chip, now_ps);
    streams_check_finished(replay, chip, now_ps);
}
