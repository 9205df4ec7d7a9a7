/* What happens on a chip while a stretch is recorded, and what is kept of it. */
#include <string.h>

#include "sim/base/arena.h"
#include "sim/replay/arrival_cost.h"
#include "sim/replay/flight.h"
#include "sim/replay/stretch_record.h"

enum { DROPS_MAX = 4 };

static struct stretch_recorder *recorder_of(const struct replay *replay, uint32_t chip)
{
    return replay->streams.stretches->chips[chip].recorder;
}

/* --- While it is recorded --- */

static void recording_set(struct replay *replay, uint32_t chip, bool is_on)
{
    struct stretches *stretches = replay->streams.stretches;
    if (stretches->notes[chip].is_on == is_on) return;
    stretches->notes[chip].is_on = is_on;
    replay->streams.recorded += is_on ? 1 : UINT32_MAX;
    replay->streams.stretched += is_on ? 1 : UINT32_MAX;
    replay->breakdowns.effect_watchers += is_on ? 1 : UINT32_MAX;
    replay->servers.notes = replay->streams.recorded > 0 ? stretches->notes : NULL;
}

void stretch_drop(struct replay *replay, uint32_t chip)
{
    struct stretch_chip *own = &replay->streams.stretches->chips[chip];
    recording_set(replay, chip, false);
    own->recorder->from->dropped++;
    if (own->drops[own->recorder->site] < UINT8_MAX) own->drops[own->recorder->site]++;
}

#define NOTE_ADD(recorder, name, most, ...)                                                        \
    do {                                                                                           \
        if ((recorder)->name##_count == (most))                                                    \
            stretch_drop(replay, chip);                                                            \
        else                                                                                       \
            (recorder)->name[(recorder)->name##_count++] = (struct stretch_##name)__VA_ARGS__;     \
    } while (0)

void stretch_note_digest(struct replay *replay, uint32_t chip, int64_t now_ps, uint64_t key)
{
    struct stretch_recorder *recorder = recorder_of(replay, chip);
    NOTE_ADD(recorder, digest, STRETCH_DIGESTS_MAX, {now_ps - recorder->begin_ps, key});
}

void stretch_note_flight(struct replay *replay, uint32_t stream, uint32_t chip,
                         const struct flight_log *log, int64_t begin_ps)
{
    struct stretch_recorder *recorder = recorder_of(replay, chip);
    uint8_t const epoch =
        (uint8_t)(stream_at(replay, stream, chip)->epoch - recorder->streams[stream].epoch);
    NOTE_ADD(recorder, flight, STRETCH_FLIGHTS_MAX,
             {.log = log,
              .begin_ps = begin_ps - recorder->begin_ps,
              .plan = &replay->lanes.plans[*running_at(replay, stream, chip)],
              .stream = (uint8_t)stream,
              .epoch = epoch});
}

void stretch_note_effect(struct replay *replay, const struct program_effect *effect,
                         uint32_t stream, uint32_t chip, int64_t now_ps)
{
    struct stretch_recorder *recorder = recorder_of(replay, chip);
    const struct stream_state *state = stream_at(replay, stream, chip);
    if (state->slot != recorder->streams[PROGRAM_COMPUTE].slot) {
        replay->streams.stretches->strays++;
        stretch_drop(replay, chip);
        return;
    }
    NOTE_ADD(recorder, effect, STRETCH_EFFECTS_MAX,
             {.effect = effect,
              .at_ps = now_ps - recorder->begin_ps,
              .op = streams_op_index(replay, stream, chip)});
}

void stretch_note_class(struct replay *replay, uint32_t chip, uint32_t class_index, int64_t end_ps)
{
    struct stretch_recorder *recorder = recorder_of(replay, chip);
    for (uint32_t i = 0; i < recorder->class_count; i++)
        if (recorder->class[i].index == class_index) {
            recorder->class[i].end_ps = end_ps - recorder->begin_ps;
            return;
        }
    NOTE_ADD(recorder, class, STRETCH_CLASSES_MAX,
             {.end_ps = end_ps - recorder->begin_ps, .index = (uint16_t)class_index});
}

void stretch_note_pass(struct replay *replay, uint32_t chip, int64_t until_ps, int64_t begin_ps,
                       int64_t end_ps)
{
    struct stretch_recorder *recorder = recorder_of(replay, chip);
    if (!recorder->has_pass) recorder->pass_begin_ps = begin_ps - recorder->begin_ps;
    recorder->has_pass = true;
    recorder->pass_until_ps = until_ps - recorder->until_ps;
    recorder->pass_end_ps = end_ps - recorder->begin_ps;
}

void stretch_note_events(struct replay *replay, uint32_t chip, int64_t count)
{
    recorder_of(replay, chip)->event_count += count;
}

/* --- It begins --- */

static void sum_name(struct stretch_recorder *recorder, void *sum)
{
    recorder->sums[recorder->sum_count++] = sum;
}

static void sums_name(struct replay *replay, uint32_t chip, struct stretch_recorder *recorder)
{
    struct breakdowns *breakdowns = &replay->breakdowns;
    for (uint32_t phase = 0; phase < PROGRAM_PHASE_COUNT; phase++) {
        struct breakdown *of = &breakdowns->of_phase[breakdown_row(replay, phase, chip)];
        sum_name(recorder, &of->compute_ps);
        sum_name(recorder, &of->exposed_ps);
        sum_name(recorder, &of->idle_ps);
        for (uint32_t stream = 0; stream < replay->stream_count; stream++)
            sum_name(recorder, breakdown_stream_ps(replay, phase, stream, chip));
    }
    for (uint32_t set = 0; set < breakdowns->link_sets; set++)
        sum_name(recorder, &breakdowns->links_ps[breakdown_row(replay, set, chip)]);
    for (uint32_t class = 0; class < replay->program->class_count; class ++) {
        struct class_total *total =
            &breakdowns->classes[(uint64_t) class * replay->chip_count + chip];
        sum_name(recorder, &total->count);
        sum_name(recorder, &total->busy_ps);
        sum_name(recorder, &total->exposed_ps);
        sum_name(recorder, &total->idle_ps);
    }
}

/* NULL: there is no memory. */
static struct stretch_recorder *recorder_make(struct replay *replay, uint32_t chip)
{
    struct arena *arena = replay->streams.stretches->arena;
    uint64_t const most = PROGRAM_PHASE_COUNT * (3 + (uint64_t)replay->stream_count) +
                          replay->breakdowns.link_sets + 4 * (uint64_t)replay->program->class_count;
    struct stretch_recorder *recorder = arena_take(arena, 1, sizeof *recorder);
    if (recorder == NULL) return NULL;
    recorder->sums = arena_take(arena, most, sizeof *recorder->sums);
    recorder->were = arena_take(arena, most, sizeof *recorder->were);
    if (recorder->sums == NULL || recorder->were == NULL) return NULL;
    sums_name(replay, chip, recorder);
    return recorder;
}

/* Where in its program the chip is; several places may have one number. */
uint32_t stretch_site(const struct replay *replay, uint32_t chip)
{
    const struct stream_state *compute = &replay->streams.states[chip];
    const struct role_table *role = role_at(replay, chip);
    uint32_t const next = compute->slot + 1 < role->role->slot_count ? compute->slot + 1 : 0;
    return (role->slot_template[compute->slot] * 7u + role->slot_template[next] * 131u +
            compute->position * 29u) %
           STRETCH_SITES;
}

void stretch_record(struct replay *replay, uint32_t chip, struct stretch_place *from,
                    int64_t now_ps)
{
    struct stretches *stretches = replay->streams.stretches;
    struct stretch_chip *own = &stretches->chips[chip];
    if (from->dropped > DROPS_MAX || stretches->bytes > STRETCH_BYTES) return;
    if (own->recorder == NULL) own->recorder = recorder_make(replay, chip);
    struct stretch_recorder *recorder = own->recorder;
    if (recorder == NULL) return;
    recorder->from = from;
    recorder->site = stretch_site(replay, chip);
    recorder->begin_ps = now_ps;
    recorder->event_count = 0;
    recorder->chip = replay->chips[chip];
    for (uint32_t stream = 0; stream < replay->stream_count; stream++)
        recorder->streams[stream] = *stream_at(replay, stream, chip);
    recorder->servers = replay->servers.states[chip];
    recorder->pasts = replay->servers.pasts[chip];
    stretch_bases(replay, chip, recorder->bases);
    recorder->until_ps = stretch_until_ps(replay, chip);
    recorder->has_pass = false;
    recorder->digest_count = recorder->flight_count = 0;
    recorder->effect_count = recorder->class_count = 0;
    for (uint32_t i = 0; i < recorder->sum_count; i++) recorder->were[i] = *recorder->sums[i];
    struct server_notes *notes = &stretches->notes[chip];
    recording_set(replay, chip, true);
    notes->looks_back = false;
    for (uint32_t server = 0; server < SERVER_COUNT; server++) {
        notes->spared[server] = false;
        notes->count[server] = 0;
    }
}

/* --- It ends --- */

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
    struct server_push push[SERVER_COUNT][SERVER_PUSHES_MAX];
};

/* The stream at which another of the chip has named itself. */
static uint8_t waits_at(struct replay *replay, uint32_t chip, uint32_t stream)
{
    for (uint32_t other = 0; other < replay->stream_count; other++)
        if (stream_at(replay, other, chip)->waiters >> stream & 1) return (uint8_t)other;
    return PROGRAM_STREAMS_MAX;
}

/* Only collectives and compute ops begin and end in a stretch, in its slot or before the next. */
static bool stream_keep(struct keeping *keeping, uint32_t stream)
{
    struct replay *replay = keeping->replay;
    const struct stretch_recorder *recorder = keeping->recorder;
    const struct stream_state *was = &recorder->streams[stream];
    struct stretch_stream kept = {.state = *stream_at(replay, stream, keeping->chip),
                                  .stream = (uint8_t)stream};
    struct stream_state *is = &kept.state;
    uint32_t const slot = recorder->streams[PROGRAM_COMPUTE].slot;
    if (memcmp(is, was, sizeof *is) == 0) return true;
    kept.began = is->begin_ps != was->begin_ps;
    kept.waits_at = waits_at(replay, keeping->chip, stream);
    bool const moved = kept.began || is->slot != was->slot || is->position != was->position ||
                       is->phase != was->phase || is->done != was->done || is->wants != was->wants;
    enum program_op_kind const kind = replay->program->stream[stream].kind;
    if (moved && stream != PROGRAM_COMPUTE && kind != PROGRAM_OP_COLLECTIVE) return false;
    if (moved && (was->slot != slot || is->slot > slot + 1 || is->slot < slot)) return false;
    is->slot -= slot;
    is->done -= (uint32_t)recorder->bases[stream];
    is->begun -= (uint32_t)recorder->bases[stream];
    is->op_first -= (uint32_t)recorder->bases[stream];
    if (is->operand_parts > 0) is->operand_first -= (uint32_t)recorder->bases[PROGRAM_COMPUTE];
    if (kept.waits_at != PROGRAM_STREAMS_MAX)
        is->wants -= 2 * (uint32_t)recorder->bases[kept.waits_at];
    is->epoch = (uint8_t)(is->epoch - was->epoch);
    is->begin_ps -= recorder->begin_ps;
    keeping->stream[keeping->stretch.stream_count++] = kept;
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
    kept->dma_ps = is->dma_ps - was->dma_ps;
    kept->settled_ps = is->settled_ps - was->settled_ps;
    kept->debt_ps = is->debt_ps;
    kept->spared_ps = past->spared_ps;
    kept->spares = notes->spared[server];
    kept->needed = past->needed;
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
    link->added.waited_ps += at->added.waited_ps;
    link->added.messages += at->added.messages;
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
        kept->reads = *reads_at(&replay->servers, kept->way, keeping->chip);
        kept->reads.since_ps -= recorder->begin_ps;
        kept->reads.until_ps -= recorder->begin_ps;
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

/* False: books have moved that are not kept. */
static bool chip_keep(struct keeping *keeping)
{
    const struct stretch_recorder *recorder = keeping->recorder;
    const struct chip_state *was = &recorder->chip;
    const struct chip_state *is = &keeping->replay->chips[keeping->chip];
    struct stretch *stretch = &keeping->stretch;
    stretch->length_ps = keeping->now_ps - recorder->begin_ps;
    stretch->event_count = recorder->event_count;
    stretch->part_end_ps = is->part_end_ps - recorder->begin_ps;
    stretch->breakdown_ps = is->breakdown_ps - recorder->begin_ps;
    stretch->last_end_ps = is->last_end_ps - recorder->begin_ps;
    stretch->last_phase = is->last_phase;
    stretch->exposed_ps = is->exposed_ps - was->exposed_ps;
    stretch->exposed_last_ps = is->exposed_last_ps - was->exposed_ps;
    stretch->has_pass = recorder->has_pass;
    stretch->until_ps = recorder->pass_until_ps;
    stretch->pass_begin_ps = recorder->pass_begin_ps;
    stretch->pass_end_ps = recorder->pass_end_ps;
    if (keeping->replay->servers.cores.is_on) {
        stretch->cores = keeping->replay->servers.cores.states[keeping->chip];
        stretch->cores.edge_ps -= recorder->begin_ps;
    }
    for (uint32_t i = 0; i < recorder->digest_count; i++)
        stretch->parts += event_key_kind(recorder->digest[i].key) == EVENT_COMPUTE_END;
    return stretch_leaves(was, is) && is->block_phase == was->block_phase &&
           is->breakdown_ps >= recorder->begin_ps && is->last_end_ps != was->last_end_ps;
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
    struct stretch_sum sums[1024];
    for (uint32_t i = 0; i < recorder->sum_count; i++) {
        int64_t const add = *recorder->sums[i] - recorder->were[i];
        if (add == 0) continue;
        if (stretch->sum_count == sizeof sums / sizeof *sums) return NULL;
        sums[stretch->sum_count++] = (struct stretch_sum){recorder->sums[i], add};
    }
    stretch->sum = sums;
    stretch->digest = recorder->digest;
    stretch->digest_count = recorder->digest_count;
    stretch->flight = recorder->flight;
    stretch->flight_count = recorder->flight_count;
    stretch->effect = recorder->effect;
    stretch->effect_count = recorder->effect_count;
    stretch->class = recorder->class;
    stretch->class_count = recorder->class_count;
    stretch->stream = keeping->stream;
    stretch->memory = keeping->memory;
    stretch->link = keeping->link;
    stretch->reads = keeping->reads;
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

void stretch_keep(struct replay *replay, uint32_t chip, struct stretch_place *to, int64_t now_ps)
{
    struct stretch_recorder *recorder = recorder_of(replay, chip);
    struct server_notes *notes = &replay->streams.stretches->notes[chip];
    struct keeping keeping = {.replay = replay,
                              .chip = chip,
                              .recorder = recorder,
                              .notes = notes,
                              .now_ps = now_ps,
                              .stretch = {.to = to}};
    bool keeps = !notes->looks_back && chip_keep(&keeping);
    for (enum server server = SERVER_HBM; keeps && server < SERVER_COUNT; server++)
        keeps = server_keep(&keeping, server);
    for (uint32_t stream = 0; keeps && stream < replay->stream_count; stream++)
        keeps = stream_keep(&keeping, stream);
    keeps = keeps && flights_keep(&keeping);
    if (keeps) memory_keep(&keeping);
    const struct stretch *stretch = keeps ? moved(&keeping) : NULL;
    if (stretch == NULL) {
        stretch_drop(replay, chip);
        return;
    }
    recording_set(replay, chip, false);
    replay->streams.stretches->chips[chip].drops[recorder->site] = 0;
    recorder->from->stretch = stretch;
    replay->tally.stretches++;
}
