/* The state of a chip behind a stretch that it has repeated. */
#include <string.h>

#include "sim/base/digest.h"
#include "sim/replay/arrival_cost.h"
#include "sim/replay/flight.h"
#include "sim/replay/stretch_record.h"

static void digest_close(struct replay *replay, uint32_t chip, const struct stretch *stretch,
                         int64_t begin_ps)
{
    uint64_t digest = 0;
    for (uint32_t i = 0; i < stretch->digest_count; i++)
        digest += digest_record(begin_ps + stretch->digest[i].at_ps, stretch->digest[i].key, chip);
    for (uint32_t i = 0; replay->recurrence.keeps && i < stretch->digest_count; i++)
        recur_digest_add(replay, begin_ps + stretch->digest[i].at_ps, stretch->digest[i].key, chip);
    replay->tally.digest += digest;
    replay->tally.parts_done += stretch->parts;
}

static void link_close(const struct stretch_link *kept, struct link_state *state, int64_t begin_ps)
{
    LINK_STATE_FIELDS(CLOSE_FIELD, kept, )
    state->flown = false;
    if (kept->free_ps < 0) return;
    state->free_ps = begin_ps + kept->free_ps;
    state->stream = kept->stream;
    state->lane = kept->lane;
}

static void flights_close(struct replay *replay, uint32_t chip, const struct stretch *stretch,
                          int64_t begin_ps)
{
    for (uint32_t i = 0; i < stretch->flight_count; i++) {
        const struct stretch_flight *at = &stretch->flight[i];
        int64_t const at_ps = begin_ps + at->begin_ps;
        uint32_t const epoch = (uint32_t)(stream_at(replay, at->stream, chip)->epoch + at->epoch) %
                               (1u << KEY_EPOCH_BITS);
        flight_digest_close(replay, at->log, at_ps, epoch, at->stream, chip);
        flight_lanes_close(at->plan, at->log, at_ps, chip);
    }
    for (uint32_t i = 0; i < stretch->link_count; i++) {
        const struct stretch_link *at = &stretch->link[i];
        link_close(at, at->link, begin_ps);
        link_waits_add(at->waits, at->added.waited_ps, at->added.messages);
    }
    replay->tally.posted += stretch->flight_count;
    replay->tally.transfers += stretch->transfers;
    replay->tally.flown += stretch->flown;
}

/* Where no peak is passed, sums are all. */
static void memory_close(struct replay *replay, uint32_t chip, const struct stretch *stretch,
                         int64_t begin_ps)
{
    struct memory_state *state = &replay->breakdowns.memories[chip];
    bool is_below = state->total_bytes + stretch->total_most <= state->peak_bytes;
    for (uint32_t i = 0; i < stretch->memory_count; i++) {
        const struct stretch_memory *at = &stretch->memory[i];
        is_below = is_below &&
                   state->held_bytes[at->kind] + at->most_bytes <= state->each_peak_bytes[at->kind];
    }
    if (!is_below) {
        for (uint32_t i = 0; i < stretch->effect_count; i++)
            breakdown_effect_at(replay, stretch->effect[i].effect,
                                replay->streams.states[chip].slot, stretch->effect[i].op, chip,
                                begin_ps + stretch->effect[i].at_ps);
        return;
    }
    state->total_bytes += stretch->total_add;
    for (uint32_t i = 0; i < stretch->memory_count; i++)
        state->held_bytes[stretch->memory[i].kind] += stretch->memory[i].add_bytes;
}

/* An instant of a server behind the stretch. */
static int64_t instant_of(enum stretch_instant moves, int64_t is_ps, int64_t run_begin_ps,
                          int64_t then_ps)
{
    if (moves == INSTANT_STAYS) return is_ps;
    return moves == INSTANT_RUN_BEGIN ? run_begin_ps : then_ps;
}

static void server_close(struct replay *replay, uint32_t chip, enum server server,
                         const struct stretch_server *of, int64_t begin_ps)
{
    struct server_state *state = server_at(&replay->servers, server, chip);
    struct server_past *past = server_past_at(&replay->servers, server, chip);
    int64_t const run_begin_ps = past->run_begin_ps;
    bool const was_empty = stretch_run_is_empty(state, past);
    for (uint32_t i = 0; i < of->push_count; i++) {
        struct server_push push = of->pushes[i];
        push.begin_ps = i == 0 && push.begin_ps <= 0 ? run_begin_ps : begin_ps + push.begin_ps;
        push.end_ps = i == 0 && push.end_ps <= 0 ? state->edge_ps : begin_ps + push.end_ps;
        server_run_push(past, &push, i > 0 || was_empty);
    }
    if (of->has_room) past->room_ps[past->run_count] = of->room_ps;
    SERVER_STATE_FIELDS(CLOSE_FIELD, of, )
    state->edge_ps = instant_of(of->edge, state->edge_ps, run_begin_ps, begin_ps + of->edge_ps);
    past->run_begin_ps =
        instant_of(of->run_begin, run_begin_ps, run_begin_ps, begin_ps + of->run_begin_ps);
    past->needed = of->needed;
    if (of->spares) past->spared_ps = of->spared_ps;
}

static void servers_close(struct replay *replay, uint32_t chip, const struct stretch *stretch,
                          int64_t begin_ps)
{
    for (enum server server = SERVER_HBM; server < SERVER_COUNT; server++)
        server_close(replay, chip, server, &stretch->server[server], begin_ps);
    for (uint32_t i = 0; i < stretch->reads_count; i++) {
        const struct stretch_reads *at = &stretch->reads[i];
        struct server_reads *state = reads_at(&replay->servers, at->way, chip);
        SERVER_READS_FIELDS(CLOSE_FIELD, &at->reads, )
    }
    if (!replay->servers.cores.is_on) return;
    struct cores_state *state = &replay->servers.cores.states[chip];
    CORES_STATE_FIELDS(CLOSE_FIELD, &stretch->cores, )
}

/* `done`: parts that each stream of the chip had done at the begin. */
static void stream_close(const struct stretch_stream *at, const uint32_t *done, int64_t begin_ps,
                         struct stream_state *state)
{
    const struct stream_state *kept = &at->state;
    state->waiters = kept->waiters;
    if (!at->moves) return;
    STREAM_STATE_FIELDS(CLOSE_FIELD, kept, )
    state->epoch = (uint8_t)((state->epoch + kept->epoch) % (1u << KEY_EPOCH_BITS));
    if (at->waits_at != PROGRAM_STREAMS_MAX) state->wants = kept->wants + 2 * done[at->waits_at];
    if (!at->began) return;
    state->begin_ps = begin_ps + kept->begin_ps;
    state->op_first = done[at->stream] + kept->op_first;
    state->operand_parts = kept->operand_parts;
    state->operand_first = kept->operand_first;
    if (kept->operand_parts > 0) state->operand_first += done[PROGRAM_COMPUTE];
}

static void streams_close(struct replay *replay, uint32_t chip, const struct stretch *stretch,
                          int64_t begin_ps)
{
    uint32_t done[PROGRAM_STREAMS_MAX];
    for (uint32_t stream = 0; stream < replay->stream_count; stream++)
        done[stream] = stream_at(replay, stream, chip)->done;
    for (uint32_t i = 0; i < stretch->stream_count; i++)
        stream_close(&stretch->stream[i], done, begin_ps,
                     stream_at(replay, stretch->stream[i].stream, chip));
    for (uint32_t i = 0; i < stretch->stream_count; i++)
        streams_wakes_settle(replay, chip, stream_at(replay, stretch->stream[i].stream, chip));
}

static void pass_close(struct replay *replay, uint32_t chip, const struct stretch *stretch,
                       int64_t begin_ps, int64_t until_ps)
{
    struct role_table *role = role_at(replay, chip);
    int64_t const counted_ps = until_ps + stretch->pass.until_ps - role->pass_until_ps;
    int64_t const pass_begin_ps = begin_ps + stretch->pass.begin_ps;
    int64_t const pass_end_ps = begin_ps + stretch->pass.end_ps;
    if (replay->recurrence.keeps) recur_pass(replay, chip, counted_ps, pass_begin_ps, pass_end_ps);
    breakdown_pass_add(role, streams_needs(replay, PROGRAM_COMPUTE, chip), counted_ps,
                       pass_begin_ps, pass_end_ps);
}

static void books_close(struct replay *replay, uint32_t chip, const struct stretch *stretch,
                        int64_t begin_ps)
{
    struct chip_state *state = &replay->chips[chip];
    if (stretch->pass.counts)
        pass_close(replay, chip, stretch, begin_ps, breakdown_passes_ps(replay, chip));
    for (uint32_t i = 0; i < stretch->sum_count; i++) *stretch->sum[i].at += stretch->sum[i].add;
    for (uint32_t i = 0; i < stretch->class_count; i++) {
        int64_t const end_ps = begin_ps + stretch->class[i].end_ps;
        int64_t *class_end_ps = &replay->breakdowns.class_end_ps[stretch->class[i].index];
        if (end_ps > *class_end_ps) *class_end_ps = end_ps;
    }
    state->exposed_last_ps = state->exposed_ps + stretch->chip.exposed_last_ps;
    CHIP_STATE_FIELDS(CLOSE_FIELD, &stretch->chip, )
    replay->breakdowns.spans[breakdown_row(replay, state->block_phase, chip)].end_ps =
        state->breakdown_ps;
}

void stretch_close(struct replay *replay, uint32_t chip, const struct stretch *stretch,
                   int64_t begin_ps)
{
    digest_close(replay, chip, stretch, begin_ps);
    flights_close(replay, chip, stretch, begin_ps);
    memory_close(replay, chip, stretch, begin_ps);
    servers_close(replay, chip, stretch, begin_ps);
    books_close(replay, chip, stretch, begin_ps);
    streams_close(replay, chip, stretch, begin_ps);
    engine_count(replay->engine, stretch->event_count - 1);
}
