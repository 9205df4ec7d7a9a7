/* What is kept of a stretch that has been recorded. */
#include <string.h>

#include "sim/base/arena.h"
#include "sim/replay/arrival_cost.h"
#include "sim/replay/flight.h"
#include "sim/replay/stretch_record.h"

/* What is kept, before it has memory of its own. */
struct keeping {
    struct replay *replay;
    uint32_t chip;
    const struct stretch_recorder *recorder;
    const struct server_notes *notes;
    int64_t now_ps;
    struct stretch stretch;
    struct stretch_stream stream[PROGRAM_STREAMS_MAX];
    struct stretch_memory memory[PROGRAM_MEMORY_COUNT];
    struct stretch_link link[STRETCH_LINKS_MAX];
    struct stretch_reads reads[MACHINE_PORTS_MAX + 1];
    struct stretch_sum *sum; /* Room for STRETCH_SUMS_MAX. */
    struct server_push push[SERVER_COUNT][SERVER_PUSHES_MAX];
};

/* The stream at which another of the chip has named itself. */
static uint8_t waits_at(struct replay *replay, uint32_t chip, uint32_t stream)
{
    for (uint32_t other = 0; other < replay->stream_count; other++)
        if (stream_at(replay, other, chip)->waiters >> stream & 1) return (uint8_t)other;
    return PROGRAM_STREAMS_MAX;
}

/* Whether a stream is as it was, but for who waits for its parts. */
static bool stands(const struct stream_state *was, const struct stream_state *is)
{
    struct stream_state asked = *was;
    asked.waiters = is->waiters;
    asked.wake_done = is->wake_done;
    asked.wake_begun = is->wake_begun;
    return memcmp(&asked, is, sizeof asked) == 0;
}

/* Only collectives and compute ops begin and end in a stretch, in its slot or before the next. */
static bool stream_keep(struct keeping *keeping, uint32_t stream)
{
    struct replay *replay = keeping->replay;
    const struct stretch_recorder *recorder = keeping->recorder;
    const struct stream_state *was = &recorder->streams[stream];
    const struct stream_state *is = stream_at(replay, stream, keeping->chip);
    enum program_op_kind const kind = replay->program->stream[stream].kind;
    uint32_t const slot = recorder->streams[PROGRAM_COMPUTE].slot;
    int64_t const begin_ps = recorder->begin_ps;
    if (memcmp(is, was, sizeof *is) == 0) return true;
    struct stretch_stream *kept = &keeping->stream[keeping->stretch.stream_count++];
    *kept = (struct stretch_stream){.stream = (uint8_t)stream, .moves = !stands(was, is)};
    kept->state.waiters = is->waiters;
    if (!kept->moves) return true;
    if (stream != PROGRAM_COMPUTE && kind != PROGRAM_OP_COLLECTIVE) return false;
    if (was->slot != slot || is->slot > slot + 1 || is->slot < slot) return false;
    STREAM_STATE_FIELDS(KEEP_FIELD, &kept->state, )
    kept->state.epoch = (uint8_t)(is->epoch - was->epoch);
    kept->waits_at = waits_at(replay, keeping->chip, stream);
    if (kept->waits_at != PROGRAM_STREAMS_MAX)
        kept->state.wants = is->wants - 2 * recorder->streams[kept->waits_at].done;
    kept->began = is->begin_ps != was->begin_ps;
    kept->state.begin_ps = is->begin_ps - begin_ps;
    kept->state.op_first = is->op_first - was->done;
    kept->state.operand_parts = is->operand_parts;
    kept->state.operand_first = is->operand_first;
    if (is->operand_parts > 0) kept->state.operand_first -= recorder->streams[PROGRAM_COMPUTE].done;
    return true;
}

/* How an instant of a server has moved. False: in none of the ways that are known. */
static bool instant_keep(int64_t was_ps, int64_t is_ps, int64_t begin_ps, int64_t run_begin_ps,
                         enum stretch_instant *ret_moves, int64_t *ret_ps)
{
    *ret_ps = is_ps - begin_ps;
    *ret_moves = INSTANT_MOVES;
    if (is_ps >= begin_ps) return true;
    *ret_moves = is_ps == was_ps ? INSTANT_STAYS : INSTANT_RUN_BEGIN;
    return is_ps == was_ps || is_ps == run_begin_ps;
}

static bool server_keep(struct keeping *keeping, enum server server)
{
    struct replay *replay = keeping->replay;
    const struct stretch_recorder *recorder = keeping->recorder;
    const struct server_state *was = &recorder->servers.of[server];
    const struct server_past *past_was = &recorder->pasts.of[server];
    const struct server_state *is = server_at(&replay->servers, server, keeping->chip);
    const struct server_past *past = server_past_at(&replay->servers, server, keeping->chip);
    const struct server_notes *notes = keeping->notes;
    struct stretch_server *kept = &keeping->stretch.server[server];
    if (stretch_server_rests(was, past_was) && !stretch_server_rests(is, past)) return false;
    SERVER_STATE_FIELDS(KEEP_FIELD, kept, )
    kept->needed = past->needed;
    kept->spared_ps = past->spared_ps;
    kept->spares = notes->spared[server];
    kept->push_count = notes->count[server];
    kept->has_room = kept->push_count > 0 || stretch_run_is_empty(was, past_was);
    kept->room_ps = past->room_ps[past->run_count];
    for (uint32_t i = 0; i < kept->push_count; i++) {
        struct server_push *push = &keeping->push[server][i];
        *push = notes->push[server][i];
        if (push->end_ps <= recorder->begin_ps && i > 0) return false;
        push->begin_ps -= recorder->begin_ps;
        push->end_ps -= recorder->begin_ps;
    }
    kept->pushes = keeping->push[server];
    return instant_keep(was->edge_ps, is->edge_ps, recorder->begin_ps, past_was->run_begin_ps,
                        &kept->edge, &kept->edge_ps) &&
           instant_keep(past_was->run_begin_ps, past->run_begin_ps, recorder->begin_ps,
                        past_was->run_begin_ps, &kept->run_begin, &kept->run_begin_ps);
}

static bool link_keep(struct keeping *keeping, const struct flight_link *at, int64_t begin_ps)
{
    struct stretch *stretch = &keeping->stretch;
    uint32_t i = 0;
    while (i < stretch->link_count && keeping->link[i].link != at->link) i++;
    if (i == STRETCH_LINKS_MAX) return false;
    struct stretch_link *link = &keeping->link[i];
    if (i == stretch->link_count) {
        *link = (struct stretch_link){.link = at->link, .waits = at->waits, .free_ps = -1};
        stretch->link_count++;
    }
    link->busy_ps += at->after.busy_ps;
    link->bytes += at->after.bytes;
    link_waits_add(&link->added, at->added.waited_ps, at->added.messages);
    if (!at->waits_here || begin_ps + at->after.free_ps < link->free_ps) return true;
    link->free_ps = begin_ps + at->after.free_ps;
    link->stream = at->after.stream;
    link->lane = at->after.lane;
    return true;
}

/* How long earlier collectives of the stretch, which are listed as they ended, hold a link. */
static int64_t held_ps_by_own(const struct stretch_recorder *recorder,
                              const struct link_state *link, int64_t at_ps)
{
    int64_t free_ps = at_ps;
    for (uint32_t i = 0; i < recorder->flight_count; i++) {
        const struct stretch_flight *flight = &recorder->flight[i];
        for (uint32_t k = 0; flight->begin_ps < at_ps && k < flight->log->link_count; k++) {
            const struct flight_link *at = &flight->log->links[k];
            if (at->link == link && at->waits_here &&
                flight->begin_ps + at->after.free_ps > free_ps)
                free_ps = flight->begin_ps + at->after.free_ps;
        }
    }
    return free_ps - at_ps;
}

/* Whether what held the links of a collective when it began is known: collectives of the stretch
 * alone, since the links are free where it begins. */
static bool flight_start_is_own(const struct stretch_recorder *recorder,
                                const struct stretch_flight *flight)
{
    const struct flight_log *log = flight->log;
    for (uint32_t i = 0; log->start != NULL && i < log->link_count; i++)
        if (log->links[i].held_ps != held_ps_by_own(recorder, log->links[i].link, flight->begin_ps))
            return false;
    return true;
}

static bool flights_keep(struct keeping *keeping)
{
    struct replay *replay = keeping->replay;
    const struct stretch_recorder *recorder = keeping->recorder;
    struct stretch *stretch = &keeping->stretch;
    int64_t const begin_ps = recorder->begin_ps;
    uint32_t ways = 0;
    for (uint32_t i = 0; i < recorder->flight_count; i++) {
        const struct stretch_flight *flight = &recorder->flight[i];
        if (!flight_start_is_own(recorder, flight)) return false;
        stretch->transfers += flight->log->transfers;
        stretch->flown += flight->log->event_count;
        ways |= flight->log->ways;
        for (uint32_t k = 0; k < flight->log->link_count; k++)
            if (!link_keep(keeping, &flight->log->links[k], flight->begin_ps)) return false;
    }
    for (; ways != 0; ways &= ways - 1) {
        struct stretch_reads *kept = &keeping->reads[stretch->reads_count++];
        kept->way = (uint32_t)__builtin_ctz(ways);
        const struct server_reads *is = reads_at(&replay->servers, kept->way, keeping->chip);
        SERVER_READS_FIELDS(KEEP_FIELD, &kept->reads, )
    }
    return true;
}

static void memory_keep(struct keeping *keeping)
{
    struct stretch *stretch = &keeping->stretch;
    int64_t held[PROGRAM_MEMORY_COUNT] = {0}, most[PROGRAM_MEMORY_COUNT] = {0};
    uint32_t kinds = 0;
    for (uint32_t i = 0; i < keeping->recorder->effect_count; i++) {
        const struct program_effect *effect = keeping->recorder->effect[i].effect;
        held[effect->memory] += effect->bytes;
        stretch->total_add += effect->bytes;
        kinds |= 1u << effect->memory;
        if (held[effect->memory] > most[effect->memory])
            most[effect->memory] = held[effect->memory];
        if (stretch->total_add > stretch->total_most) stretch->total_most = stretch->total_add;
    }
    for (; kinds != 0; kinds &= kinds - 1) {
        uint32_t const kind = (uint32_t)__builtin_ctz(kinds);
        keeping->memory[stretch->memory_count++] =
            (struct stretch_memory){(uint8_t)kind, most[kind], held[kind]};
    }
}

static void cores_keep(struct keeping *keeping)
{
    const struct cores *cores = &keeping->replay->servers.cores;
    int64_t const begin_ps = keeping->recorder->begin_ps;
    if (!cores->is_on) return;
    const struct cores_state *is = &cores->states[keeping->chip];
    CORES_STATE_FIELDS(KEEP_FIELD, &keeping->stretch.cores, )
}

/* False: books have moved that are not kept. */
static bool chip_keep(struct keeping *keeping)
{
    const struct stretch_recorder *recorder = keeping->recorder;
    const struct chip_state *was = &recorder->chip;
    const struct chip_state *is = &keeping->replay->chips[keeping->chip];
    struct stretch *stretch = &keeping->stretch;
    int64_t const begin_ps = recorder->begin_ps;
    stretch->length_ps = keeping->now_ps - begin_ps;
    stretch->event_count = recorder->event_count;
    CHIP_STATE_FIELDS(KEEP_FIELD, &stretch->chip, )
    stretch->chip.exposed_last_ps = is->exposed_last_ps - was->exposed_ps;
    stretch->pass = recorder->pass;
    for (uint32_t i = 0; i < recorder->digest_count; i++)
        stretch->parts += event_key_kind(recorder->digest[i].key) == EVENT_COMPUTE_END;
    return stretch_leaves(was, is) && is->block_phase == was->block_phase &&
           is->breakdown_ps >= begin_ps && is->last_end_ps != was->last_end_ps;
}

/* False: more sums have moved than there is room for. */
static bool sums_keep(struct keeping *keeping)
{
    const struct stretch_recorder *recorder = keeping->recorder;
    struct stretch *stretch = &keeping->stretch;
    for (uint32_t i = 0; i < recorder->sum_count; i++) {
        int64_t const add = *recorder->sums[i] - recorder->were[i];
        if (add == 0) continue;
        if (stretch->sum_count == STRETCH_SUMS_MAX) return false;
        keeping->sum[stretch->sum_count++] = (struct stretch_sum){recorder->sums[i], add};
    }
    return true;
}

static const void *copied(struct stretches *stretches, const void *items, uint64_t bytes)
{
    stretches->bytes += bytes;
    void *copy = arena_take(stretches->arena, bytes + 1, 1);
    if (copy != NULL && bytes > 0) memcpy(copy, items, bytes);
    return copy;
}

/* Moves what is kept into memory of its own. NULL: there is none. */
static const struct stretch *moved(struct keeping *keeping)
{
    struct stretches *stretches = keeping->replay->streams.stretches;
    const struct stretch_recorder *recorder = keeping->recorder;
    struct stretch *stretch = &keeping->stretch;
#define X(name)                                                                                    \
    stretch->name = recorder->name;                                                                \
    stretch->name##_count = recorder->name##_count;
    STRETCH_NOTED_LISTS(X)
#undef X
#define X(name) stretch->name = keeping->name;
    STRETCH_MADE_LISTS(X)
#undef X
#define X(name)                                                                                    \
    stretch->name =                                                                                \
        copied(stretches, stretch->name, stretch->name##_count * sizeof *stretch->name);           \
    if (stretch->name == NULL) return NULL;
    STRETCH_LISTS(X)
#undef X
    for (uint32_t server = 0; server < SERVER_COUNT; server++) {
        struct stretch_server *of = &stretch->server[server];
        of->pushes = copied(stretches, of->pushes, of->push_count * sizeof *of->pushes);
        if (of->pushes == NULL) return NULL;
    }
    return copied(stretches, stretch, sizeof *stretch);
}

const struct stretch *stretch_make(struct replay *replay, uint32_t chip, struct stretch_place *to,
                                   int64_t now_ps)
{
    const struct stretches *stretches = replay->streams.stretches;
    struct stretch_sum sums[STRETCH_SUMS_MAX];
    struct keeping keeping = {.replay = replay,
                              .chip = chip,
                              .recorder = stretches->chips[chip].recorder,
                              .notes = &stretches->notes[chip],
                              .now_ps = now_ps,
                              .stretch = {.to = to},
                              .sum = sums};
    if (keeping.notes->looks_back || !chip_keep(&keeping)) return NULL;
    for (enum server server = SERVER_HBM; server < SERVER_COUNT; server++)
        if (!server_keep(&keeping, server)) return NULL;
    for (uint32_t stream = 0; stream < replay->stream_count; stream++)
        if (!stream_keep(&keeping, stream)) return NULL;
    if (!flights_keep(&keeping) || !sums_keep(&keeping)) return NULL;
    memory_keep(&keeping);
    cores_keep(&keeping);
    return moved(&keeping);
}
