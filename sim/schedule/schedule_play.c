#include "sim/schedule/schedule_play.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/units.h"
#include "sim/schedule/schedule_check.h"

/* Of the circle, and of one rank of it at most. */
enum { CYCLE_TEXT_BYTES = 640, CYCLE_STEP_BYTES = 128 };

struct play {
    const struct schedule *schedule;
    const struct schedule_times *times;
    int64_t *forward_end; /* [stage][microbatch]; -1: not yet. */
    int64_t *input_end;
    uint32_t *next; /* [rank]: the pass that it waits to begin. */
    bool *waits;    /* [rank]: not on the stack. */
    uint32_t *stack;
    uint32_t stack_count;
    struct schedule_lane *lane;
};

static uint64_t index_of(const struct play *play, uint32_t stage, uint32_t microbatch)
{
    return (uint64_t)stage * play->schedule->microbatch_count + microbatch;
}

static int64_t hop_ticks(const struct play *play, uint32_t from, uint32_t to, uint32_t microbatch)
{
    return schedule_rank_of(play->schedule, from, microbatch) ==
                   schedule_rank_of(play->schedule, to, microbatch)
               ? 0
               : play->times->hop;
}

/* The pass of another stage that a pass needs; false: none. */
static bool needed(const struct play *play, const struct schedule_pass *pass,
                   struct schedule_pass *ret_needed)
{
    *ret_needed = *pass;
    if (pass->kind == SCHEDULE_FORWARD && pass->stage > 0) {
        ret_needed->stage--;
        return true;
    }
    bool const is_back = pass->kind == SCHEDULE_BACKWARD || pass->kind == SCHEDULE_INPUT;
    if (!is_back || pass->stage + 1u >= play->schedule->stage_count) return false;
    ret_needed->stage++;
    return true;
}

/* When a pass has what it needs of other ranks; -1: not known yet. */
static int64_t ready_ticks(const struct play *play, const struct schedule_pass *pass)
{
    struct schedule_pass other;
    if (!needed(play, pass, &other)) return 0;
    const int64_t *ends = pass->kind == SCHEDULE_FORWARD ? play->forward_end : play->input_end;
    int64_t const end = ends[index_of(play, other.stage, other.microbatch)];
    return end < 0 ? -1 : end + hop_ticks(play, other.stage, pass->stage, pass->microbatch);
}

bool schedule_is_split(const struct schedule *schedule)
{
    for (uint32_t r = 0; r < schedule->rank_count; r++)
        for (uint32_t i = 0; i < schedule->rank[r].count; i++)
            if (schedule->rank[r].pass[i].kind == SCHEDULE_INPUT) return true;
    return false;
}

int64_t schedule_pass_ticks(const struct schedule_times *times, enum schedule_kind kind)
{
    switch (kind) {
    case SCHEDULE_FORWARD:
        return times->forward;
    case SCHEDULE_BACKWARD:
        return times->backward > 0 ? times->backward : times->input + times->weight;
    case SCHEDULE_INPUT:
        return times->input;
    case SCHEDULE_WEIGHT:
        return times->weight;
    case SCHEDULE_KIND_COUNT:
        break;
    }
    SIM_ASSERT(false);
    return 0;
}

/* Who may have waited for it goes on. */
static void wake(struct play *play, const struct schedule_pass *pass)
{
    uint32_t const last = play->schedule->stage_count - 1;
    bool const is_forward = pass->kind == SCHEDULE_FORWARD;
    if (pass->kind == SCHEDULE_WEIGHT || (is_forward ? pass->stage == last : pass->stage == 0))
        return;
    uint32_t const other = is_forward ? pass->stage + 1u : pass->stage - 1u;
    uint32_t const rank = schedule_rank_of(play->schedule, other, pass->microbatch);
    if (!play->waits[rank]) return;
    play->waits[rank] = false;
    play->stack[play->stack_count++] = rank;
}

static void pass_end(struct play *play, const struct schedule_pass *pass, int64_t end_ticks)
{
    uint64_t const index = index_of(play, pass->stage, pass->microbatch);
    if (pass->kind == SCHEDULE_FORWARD) play->forward_end[index] = end_ticks;
    if (pass->kind == SCHEDULE_BACKWARD || pass->kind == SCHEDULE_INPUT)
        play->input_end[index] = end_ticks;
    wake(play, pass);
}

/* Plays one rank as far as it can go. What it needs of itself is before it in its list. */
static void rank_play(struct play *play, uint32_t rank)
{
    const struct schedule_rank *list = &play->schedule->rank[rank];
    const struct schedule_times *times = schedule_times_of(play->times, rank);
    struct schedule_lane *lane = &play->lane[rank];
    uint32_t at = play->next[rank];
    while (at < list->count) {
        uint32_t const count = list->pass[at].paired ? 2 : 1;
        int64_t begin = lane->last, work = 0;
        bool known = true;
        for (uint32_t i = 0; i < count; i++) {
            int64_t const ready = ready_ticks(play, &list->pass[at + i]);
            known = known && ready >= 0;
            begin = ready > begin ? ready : begin;
            work += schedule_pass_ticks(times, (enum schedule_kind)list->pass[at + i].kind);
        }
        if (!known) break;
        if (count == 2 && times->pair > 0) work = times->pair;
        if (at == 0) lane->first = begin;
        lane->last = begin + work;
        lane->work += work;
        for (uint32_t i = 0; i < count; i++) {
            lane->begin[at + i] = begin;
            lane->end[at + i] = lane->last;
        }
        /* The next to play is set before others are woken. */
        for (uint32_t i = 0; i < count; i++) pass_end(play, &list->pass[at + i], lane->last);
        at += count;
    }
    play->next[rank] = at;
    play->waits[rank] = at < list->count;
}

/* The pass that a stuck rank waits for. */
static struct schedule_pass missing(const struct play *play, uint32_t rank)
{
    const struct schedule_rank *list = &play->schedule->rank[rank];
    struct schedule_pass other = {0};
    uint32_t at = play->next[rank];
    if (ready_ticks(play, &list->pass[at]) >= 0) at++; /* It has a partner that is not ready. */
    bool const found = needed(play, &list->pass[at], &other);
    SIM_ASSERT(found);
    return other;
}

static enum status stuck(const struct play *play, const char *where, struct error *reterr)
{
    char text[CYCLE_TEXT_BYTES] = "";
    size_t length = 0;
    uint32_t rank = 0;
    while (!play->waits[rank]) rank++;
    /* As many steps as there are ranks lead into the circle. */
    for (uint32_t i = 0; i < play->schedule->rank_count; i++) {
        struct schedule_pass const other = missing(play, rank);
        rank = schedule_rank_of(play->schedule, other.stage, other.microbatch);
    }
    uint32_t const first = rank;
    do {
        char own[SCHEDULE_PASS_TEXT_BYTES], awaited[SCHEDULE_PASS_TEXT_BYTES];
        struct schedule_pass other = missing(play, rank);
        if (other.kind == SCHEDULE_INPUT) other.kind = SCHEDULE_BACKWARD;
        const struct schedule_rank *list = &play->schedule->rank[rank];
        uint32_t const at = play->next[rank];
        char place[SCHEDULE_PLACE_BYTES];
        int const more =
            list->cell == NULL
                ? snprintf(text + length, sizeof text - length, "%srank %u at %s for %s",
                           length == 0 ? "" : ", ", rank, schedule_pass_text(&list->pass[at], own),
                           schedule_pass_text(&other, awaited))
                : snprintf(text + length, sizeof text - length, "%srank %u at %s (%s) for %s",
                           length == 0 ? "" : ", ", rank, schedule_pass_text(&list->pass[at], own),
                           schedule_place_text(play->schedule, rank, at, place),
                           schedule_pass_text(&other, awaited));
        length += more > 0 ? (size_t)more : 0;
        rank = schedule_rank_of(play->schedule, other.stage, other.microbatch);
    } while (rank != first && length < sizeof text - CYCLE_STEP_BYTES);
    return error_set(reterr, STATUS_STUCK, where, "ranks wait for each other: %s%s", text,
                     rank != first ? ", ..." : "");
}

static enum status play_open(struct arena *arena, struct play *play, struct error *reterr)
{
    const struct schedule *schedule = play->schedule;
    uint64_t const cells = (uint64_t)schedule->stage_count * schedule->microbatch_count;
    void *memory = NULL;
    STATUS_TRY(arena_try(arena, cells, sizeof *play->forward_end, &memory, reterr));
    play->forward_end = memset(memory, 0xff, cells * sizeof *play->forward_end);
    STATUS_TRY(arena_try(arena, cells, sizeof *play->input_end, &memory, reterr));
    play->input_end = memset(memory, 0xff, cells * sizeof *play->input_end);
    STATUS_TRY(arena_try(arena, schedule->rank_count, sizeof *play->next, &memory, reterr));
    play->next = memory;
    STATUS_TRY(arena_try(arena, schedule->rank_count, sizeof *play->stack, &memory, reterr));
    play->stack = memory;
    STATUS_TRY(arena_try(arena, schedule->rank_count, sizeof *play->waits, &memory, reterr));
    play->waits = memory;
    STATUS_TRY(arena_try(arena, schedule->rank_count, sizeof *play->lane, &memory, reterr));
    play->lane = memory;
    for (uint32_t r = 0; r < schedule->rank_count; r++) {
        uint32_t const count = schedule->rank[r].count;
        STATUS_TRY(arena_try(arena, 2 * (uint64_t)count, sizeof(int64_t), &memory, reterr));
        play->lane[r].begin = memory;
        play->lane[r].end = play->lane[r].begin + count;
    }
    return STATUS_OK;
}

/* All lists once, each from where its lane has come to. */
static enum status step_play(struct play *play, const struct cancel *cancel, const char *where,
                             struct error *reterr)
{
    for (uint32_t r = play->schedule->rank_count; r-- > 0;) play->stack[play->stack_count++] = r;
    while (play->stack_count > 0) {
        STATUS_TRY(cancel_check(cancel, reterr));
        rank_play(play, play->stack[--play->stack_count]);
    }
    for (uint32_t r = 0; r < play->schedule->rank_count; r++)
        if (play->next[r] < play->schedule->rank[r].count) return stuck(play, where, reterr);
    return STATUS_OK;
}

static uint64_t passes_of(const struct schedule *schedule)
{
    uint64_t passes = 0;
    for (uint32_t r = 0; r < schedule->rank_count; r++) passes += schedule->rank[r].count;
    return passes;
}

/* Nothing of the step is done yet; lanes stay where they are. */
static void step_open(struct play *play)
{
    const struct schedule *schedule = play->schedule;
    uint64_t const cells = (uint64_t)schedule->stage_count * schedule->microbatch_count;
    memset(play->forward_end, 0xff, cells * sizeof *play->forward_end);
    memset(play->input_end, 0xff, cells * sizeof *play->input_end);
    memset(play->next, 0, schedule->rank_count * sizeof *play->next);
}

static enum status steps_play(struct arena *arena, struct play *play, uint32_t steps_max,
                              const struct cancel *cancel, const char *where,
                              struct period *ret_period, struct error *reterr)
{
    uint32_t const ranks = play->schedule->rank_count;
    void *memory = NULL;
    STATUS_TRY(
        arena_try(arena, (uint64_t)ranks * (steps_max + 1), sizeof(int64_t), &memory, reterr));
    int64_t *ends = memory;
    STATUS_TRY(play_open(arena, play, reterr));
    for (uint32_t step = 1; step <= steps_max; step++) {
        step_open(play);
        STATUS_TRY(step_play(play, cancel, where, reterr));
        for (uint32_t r = 0; r < ranks; r++) ends[(uint64_t)step * ranks + r] = play->lane[r].last;
        if (period_find(ends, ranks, step, ret_period)) return STATUS_OK;
    }
    *ret_period = period_of(ends, ranks, steps_max);
    return STATUS_OK;
}

enum status schedule_period(const struct schedule *schedule, const struct schedule_times *times,
                            const struct cancel *cancel, const char *where,
                            struct period *ret_period, struct error *reterr)
{
    struct play play = {.schedule = schedule, .times = times};
    struct error ignored = {0};
    uint64_t const passes = passes_of(schedule);
    uint32_t steps = SCHEDULE_STEPS_MAX;
    STATUS_TRY(schedule_times_check(times, passes, where, reterr));
    while (schedule_times_check(times, passes * steps, where, &ignored) != STATUS_OK) steps /= 2;
    struct arena *scratch = arena_create(0);
    if (scratch == NULL)
        return error_set(reterr, STATUS_NO_MEMORY, where, "no memory to simulate it");
    enum status const status = steps_play(scratch, &play, steps, cancel, where, ret_period, reterr);
    arena_destroy(scratch);
    return status;
}

enum status schedule_play(struct arena *arena, const struct schedule *schedule,
                          const struct schedule_times *times, const struct cancel *cancel,
                          const char *where, struct schedule_played *ret_played,
                          struct error *reterr)
{
    struct play play = {.schedule = schedule, .times = times};
    STATUS_TRY(schedule_times_check(times, passes_of(schedule), where, reterr));
    STATUS_TRY(play_open(arena, &play, reterr));
    STATUS_TRY(step_play(&play, cancel, where, reterr));
    struct schedule_played played = {.lane = play.lane};
    int64_t least_work = INT64_MAX, most_work = 0;
    for (uint32_t r = 0; r < schedule->rank_count; r++) {
        const struct schedule_lane *lane = &play.lane[r];
        int64_t const bubble = lane->last - lane->first - lane->work;
        if (lane->last > played.makespan) played.makespan = lane->last;
        if (bubble > played.bubble_per_rank) played.bubble_per_rank = bubble;
        if (lane->work < least_work) least_work = lane->work;
        if (lane->work > most_work) most_work = lane->work;
    }
    played.bubble_makespan = played.makespan - least_work;
    played.bubble_busiest = played.makespan - most_work;
    *ret_played = played;
    return STATUS_OK;
}

int64_t schedule_pass_change_ppm(enum schedule_kind kind, uint32_t kept_ppm)
{
    switch (kind) {
    case SCHEDULE_FORWARD:
        return PPM_ONE;
    case SCHEDULE_BACKWARD:
        return -(int64_t)PPM_ONE;
    case SCHEDULE_INPUT:
        return (int64_t)kept_ppm - (int64_t)PPM_ONE;
    case SCHEDULE_WEIGHT:
        return -(int64_t)kept_ppm;
    case SCHEDULE_KIND_COUNT:
        break;
    }
    SIM_ASSERT(false);
    return 0;
}

uint64_t schedule_peak_ppm(const struct schedule *schedule, uint32_t rank, uint32_t kept_ppm)
{
    const struct schedule_rank *list = &schedule->rank[rank];
    int64_t held = 0, most = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        held += schedule_pass_change_ppm((enum schedule_kind)list->pass[i].kind, kept_ppm);
        most = held > most ? held : most;
    }
    return (uint64_t)most;
}
