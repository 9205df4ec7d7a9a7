/* Chains of compute ops: how they begin, are passed, break and end. */
#include "sim/replay/chain.h"

#include "sim/base/arena.h"
#include "sim/replay/batch.h"
#include "sim/replay/flight.h"
#include "sim/replay/stream_steps.h"
#include "sim/replay/stretch.h"

static const uint64_t end_key = (uint64_t)EVENT_COMPUTE_END << KEY_KIND_SHIFT;

/* Whether a stage has too few chips to go through handlers together (batch.h). */
static bool stages_are_small(const struct replay *replay)
{
    uint32_t const roles = replay->program->role_count;
    return roles > 1 && replay->chip_count < BATCH_CHIPS_MIN * roles;
}

/* Of a program that was read, ops may give back more memory than there is. The first one to do so
 * is named, so ops have to end in order. */
enum status chains_build(struct arena *arena, struct replay *replay, struct error *reterr)
{
    void *memory = NULL;
    if (replay->lanes.flights == NULL || replay->program->text_name != NULL) return STATUS_OK;
    if (!stages_are_small(replay)) return STATUS_OK;
    STATUS_TRY(arena_try(arena, 1, sizeof *replay->streams.chains, &memory, reterr));
    struct chains *chains = memory;
    STATUS_TRY(arena_try(arena, replay->chip_count, sizeof *chains->of, &memory, reterr));
    chains->of = memory;
    replay->streams.chains = chains;
    return STATUS_OK;
}

static void end_post(struct replay *replay, uint32_t chip)
{
    engine_post(replay->engine, replay->chips[chip].part_end_ps, end_key,
                channel_of(replay, EVENT_COMPUTE_END, 0), chip);
}

static const struct program_op *op_behind(const struct program_template *template,
                                          const struct stream_ops *own, uint32_t position)
{
    return &template->op[own->op[position]];
}

/* The most ops behind the one that runs whose begins and ends wake nobody. */
static uint32_t unawaited_count(const struct stream_state *state)
{
    uint32_t const ends = state->wake_done - state->done - 1;
    uint32_t const begins = state->wake_begun - state->begun - 1;
    return ends < begins ? ends : begins;
}

/* Whether the op that has begun is the first of a chain. */
static bool chain_begin(struct replay *replay, uint32_t chip, int64_t now_ps)
{
    struct chain *chain = &replay->streams.chains->of[chip];
    const struct chip_state *self = &replay->chips[chip];
    const struct stream_state *state = stream_at(replay, PROGRAM_COMPUTE, chip);
    const struct role_table *role = role_at(replay, chip);
    if (chip == 0 || chain->end_ps > now_ps || self->running != 0 || self->sends != 0) return false;
    if (role->block_launches != NULL || replay->images != NULL || stream_has_come(state))
        return false;
    uint32_t const index = role->slot_template[state->slot];
    const struct program_template *template = &replay->program->templates[index];
    const struct stream_ops *own = &replay->streams.ops[index * PROGRAM_STREAMS_MAX];
    uint32_t const most = unawaited_count(state);
    int64_t end_ps = self->part_end_ps;
    uint32_t count = 0;
    if (end_ps == now_ps || state->part != 0 ||
        op_behind(template, own, state->position)->parts != 1)
        return false;
    while (count < most && state->position + count + 1 < own->op_count) {
        const struct program_op *op = op_behind(template, own, state->position + count + 1);
        const struct op_table *table = op_table_at(replay, op->index, self->chip_class);
        if (op->need_count > 0 || op->parts != 1 || table->idle_ps == 0) break;
        end_ps += table->idle_ps + (table->idle_longer > 0);
        count++;
    }
    if (count == 0 || end_ps >= TIME_PS_END) return false;
    *chain = (struct chain){.end_ps = end_ps, .left = count, .runs = true};
    replay->streams.chains->run_count++;
    engine_post(replay->engine, end_ps, chain_key, channel_of(replay, EVENT_COMPUTE_END, 0), chip);
    return true;
}

void chain_offer(struct replay *replay, uint32_t chip)
{
    struct chains *chains = replay->streams.chains;
    if (chains->is_offered) end_post(replay, chains->offered);
    chains->is_offered = true;
    chains->offered = chip;
}

void chain_settle(struct replay *replay, int64_t now_ps)
{
    struct chains *chains = replay->streams.chains;
    chains->is_offered = false;
    uint32_t const chip = chains->offered;
    if (replay->streams.stretches != NULL && stretch_settle(replay, chip, now_ps)) return;
    if (!chain_begin(replay, chip, now_ps)) end_post(replay, chip);
}

/* What ops of a chain have in common. */
struct passing {
    const struct program_template *template;
    const struct stream_ops *own;
    struct stream_state *state;
    struct chip_state *self;
    struct need_cache needs; /* Of the op that runs: the op, and what its block says. */
    uint32_t chip;
};

static const struct op_table *table_of(const struct replay *replay, const struct passing *at)
{
    return op_table_at(replay, at->needs.op->index, at->self->chip_class);
}

/* The running op ends, if messages have not delayed it, and the next one begins. */
static bool op_pass(struct replay *replay, struct passing *at, int64_t now_ps)
{
    struct stream_state *state = at->state;
    at->self->part_end_ps = part_end_ps(replay, table_of(replay, at), 0, at->chip, now_ps);
    if (at->self->part_end_ps > now_ps) return false;
    digest_add_own(replay, now_ps, end_key, at->chip);
    replay->tally.parts_done++;
    state->done++;
    op_leave(replay, &at->needs, PROGRAM_COMPUTE, at->chip, now_ps);
    at->needs.op = op_behind(at->template, at->own, state->position);
    op_enter(replay, &at->needs, PROGRAM_COMPUTE, at->chip, now_ps);
    at->self->part_begin_ps = now_ps;
    state->begun++;
    (void)part_serve(replay, table_of(replay, at), 0, at->chip, now_ps);
    return true;
}

/* Ops that have ended before an event end. Returns for how many events that stands. The breakdown
 * of time in between is one span. */
static int64_t ops_pass(struct replay *replay, uint32_t chip, int64_t at_ps, uint64_t key)
{
    struct chain *chain = &replay->streams.chains->of[chip];
    if (chain->left == 0) return 0;
    const struct role_table *role = role_at(replay, chip);
    struct stream_state *state = stream_at(replay, PROGRAM_COMPUTE, chip);
    uint32_t const index = role->slot_template[state->slot];
    struct passing at = {.template = &replay->program->templates[index],
                         .own = &replay->streams.ops[index * PROGRAM_STREAMS_MAX],
                         .state = state,
                         .self = &replay->chips[chip],
                         .needs = *streams_needs(replay, PROGRAM_COMPUTE, chip),
                         .chip = chip};
    int64_t const begin_ps = state->begin_ps;
    uint32_t const first = chain->left;
    int64_t count = 0;
    while (chain->left > 0 &&
           (at.self->part_end_ps < at_ps || (at.self->part_end_ps == at_ps && end_key < key))) {
        if (op_pass(replay, &at, at.self->part_end_ps)) chain->left--;
        count++;
    }
    if (chain->left == first) return count;
    breakdown_until(replay, chip, state->begin_ps);
    compute_closed(replay, &at.needs, chip, begin_ps, state->begin_ps);
    return count;
}

void chain_end(struct replay *replay, uint32_t chip, int64_t now_ps)
{
    struct chain *chain = &replay->streams.chains->of[chip];
    if (!chain->runs) { /* It has been broken. */
        engine_count(replay->engine, -1);
        if (stretch_is_recorded(replay, chip)) stretch_note_events(replay, chip, -1);
        return;
    }
    int64_t const count = ops_pass(replay, chip, now_ps, chain_key);
    bool const is_last = replay->chips[chip].part_end_ps == now_ps;
    chain->runs = false;
    replay->streams.chains->run_count--;
    engine_count(replay->engine, count - !is_last);
    if (stretch_is_recorded(replay, chip)) stretch_note_events(replay, chip, count - !is_last);
    if (is_last)
        streams_compute_end(replay, &chip, 1, now_ps);
    else
        end_post(replay, chip);
}

void chain_break(struct replay *replay, uint32_t chip)
{
    const struct flight_instant *order = &replay->lanes.flights->order;
    int64_t const count = ops_pass(replay, chip, order->at_ps, order->key);
    replay->streams.chains->of[chip].runs = false;
    replay->streams.chains->run_count--;
    engine_count(replay->engine, count);
    if (stretch_is_recorded(replay, chip)) stretch_note_events(replay, chip, count);
    end_post(replay, chip);
}

void chains_break_all(struct replay *replay)
{
    for (uint32_t chip = 0; replay->streams.chains != NULL && chip < replay->chip_count; chip++) {
        chain_clear(replay, chip);
        replay->streams.chains->of[chip].end_ps = 0; /* Events of broken chains are dropped. */
    }
}
