/* What happens on a chip while a stretch is recorded. */
#include "sim/base/arena.h"
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
    if (!recorder->pass.counts) recorder->pass.begin_ps = begin_ps - recorder->begin_ps;
    recorder->pass.counts = true;
    recorder->pass.until_ps = until_ps - recorder->until_ps;
    recorder->pass.end_ps = end_ps - recorder->begin_ps;
}

void stretch_note_events(struct replay *replay, uint32_t chip, int64_t count)
{
    recorder_of(replay, chip)->event_count += count;
}

/* --- It begins --- */

static void sum_name(struct stretch_recorder *recorder, void *sum)
{
    if (recorder->sums != NULL) recorder->sums[recorder->sum_count] = sum;
    recorder->sum_count++;
}

#define SUM_NAME(of, member, again, name, keeping)                                                 \
    if (KEPT_##keeping == KEPT_ADDED) sum_name(recorder, &(of)->member);

/* Counts the sums of a chip, and lists them where there is room for a list. */
static void sums_name(struct replay *replay, uint32_t chip, struct stretch_recorder *recorder)
{
    recorder->sum_count = 0;
    struct breakdowns *breakdowns = &replay->breakdowns;
    for (uint32_t phase = 0; phase < PROGRAM_PHASE_COUNT; phase++) {
        struct breakdown *of = &breakdowns->of_phase[breakdown_row(replay, phase, chip)];
        BREAKDOWN_FIELDS(SUM_NAME, of, )
        for (uint32_t stream = 0; stream < replay->stream_count; stream++)
            sum_name(recorder, breakdown_stream_ps(replay, phase, stream, chip));
    }
    for (uint32_t set = 0; set < breakdowns->link_sets; set++)
        sum_name(recorder, &breakdowns->links_ps[breakdown_row(replay, set, chip)]);
    for (uint32_t class = 0; class < replay->program->class_count; class ++) {
        struct class_total *total =
            &breakdowns->classes[(uint64_t) class * replay->chip_count + chip];
        CLASS_TOTAL_FIELDS(SUM_NAME, total, )
    }
}

/* NULL: there is no memory. */
static struct stretch_recorder *recorder_make(struct replay *replay, uint32_t chip)
{
    struct arena *arena = replay->streams.stretches->arena;
    struct stretch_recorder *recorder = arena_take(arena, 1, sizeof *recorder);
    if (recorder == NULL) return NULL;
    sums_name(replay, chip, recorder);
    recorder->sums = arena_take(arena, recorder->sum_count, sizeof *recorder->sums);
    recorder->were = arena_take(arena, recorder->sum_count, sizeof *recorder->were);
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
    recorder->until_ps = breakdown_passes_ps(replay, chip);
    recorder->pass.counts = false;
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

void stretch_keep(struct replay *replay, uint32_t chip, struct stretch_place *to, int64_t now_ps)
{
    const struct stretch_recorder *recorder = recorder_of(replay, chip);
    const struct stretch *stretch = stretch_make(replay, chip, to, now_ps);
    if (stretch == NULL) {
        stretch_drop(replay, chip);
        return;
    }
    recording_set(replay, chip, false);
    replay->streams.stretches->chips[chip].drops[recorder->site] = 0;
    recorder->from->stretch = stretch;
    replay->tally.stretches++;
}
