/*
 * The replay of a pipeline whose messages are next to nothing ends when the schedule, played with
 * nothing but dependencies, ends: for every schedule, for ranks, microbatches and durations by
 * chance, over links of the grid and through switches, folded or not. The same is true from step
 * to step.
 */
#include <stdio.h>
#include <string.h>

#include "sim/base/units.h"
#include "sim/schedule/schedule.h"
#include "sim/schedule/schedule_play.h"
#include "tests/support/case.h"
#include "tests/support/sampling.h"
#include "tests/support/scene.h"
#include "tests/support/stages.h"

enum { MESSAGE_BYTES = 2, RUNS = 10 };

/* Which of the messages that its sender sends the same way a pass gives rise to, from 1; by
 * direction of the pass, stage and microbatch. */
struct numbers {
    const struct schedule *schedule;
    uint32_t *of;
};

static uint32_t *number_at(const struct numbers *numbers, bool back, uint32_t stage, uint32_t micro)
{
    const struct schedule *schedule = numbers->schedule;
    return &numbers
                ->of[((uint64_t)back * schedule->stage_count + stage) * schedule->microbatch_count +
                     micro];
}

static bool goes_back(const struct schedule_pass *pass)
{
    return pass->kind == SCHEDULE_BACKWARD || pass->kind == SCHEDULE_INPUT;
}

/* The stage on the other side of a pass: before it (whose message it needs) or behind it. */
static bool other_stage(const struct schedule *schedule, const struct schedule_pass *pass,
                        bool before, uint32_t *ret_stage)
{
    if (pass->kind == SCHEDULE_WEIGHT) return false;
    bool const lower = before != goes_back(pass);
    if (lower ? pass->stage == 0 : pass->stage + 1u == schedule->stage_count) return false;
    *ret_stage = lower ? pass->stage - 1u : pass->stage + 1u;
    return schedule_rank_of(schedule, *ret_stage, pass->microbatch) !=
           schedule_rank_of(schedule, pass->stage, pass->microbatch);
}

static enum stages_way way_of(const struct schedule *schedule, uint32_t from, uint32_t to)
{
    uint32_t const ranks = schedule->rank_count;
    if (ranks == 2) return to > from ? STAGES_UP : STAGES_DOWN;
    uint32_t const by = (to + ranks - from) % ranks;
    assert_true(by == 1 || by == ranks - 1);
    return by == 1 ? STAGES_UP : STAGES_DOWN;
}

static uint32_t together(const struct schedule_pass *pass)
{
    return pass->paired ? 2 : 1;
}

/* Messages in the order in which they are sent. */
static void numbers_fill(struct arena *arena, const struct schedule *schedule,
                         struct numbers *numbers)
{
    numbers->schedule = schedule;
    numbers->of =
        arena_take(arena, 2 * (uint64_t)schedule->stage_count * schedule->microbatch_count,
                   sizeof *numbers->of);
    assert_non_null(numbers->of);
    for (uint32_t rank = 0; rank < schedule->rank_count; rank++) {
        uint32_t sent[STAGES_WAYS] = {0}, stage = 0;
        for (uint32_t i = 0; i < schedule->rank[rank].count; i++) {
            const struct schedule_pass *pass = &schedule->rank[rank].pass[i];
            if (!other_stage(schedule, pass, false, &stage)) continue;
            uint32_t const to = schedule_rank_of(schedule, stage, pass->microbatch);
            *number_at(numbers, goes_back(pass), pass->stage, pass->microbatch) =
                ++sent[way_of(schedule, rank, to)];
        }
    }
}

static void rank_fill(struct stages *stages, const struct numbers *numbers, uint32_t rank,
                      const uint32_t work[SCHEDULE_KIND_COUNT])
{
    const struct schedule *schedule = numbers->schedule;
    const struct schedule_rank *list = &schedule->rank[rank];
    uint32_t stage = 0;
    for (uint32_t i = 0; i < list->count;) {
        uint32_t const end = i + together(&list->pass[i]);
        for (uint32_t k = i; k < end; k++) {
            const struct schedule_pass *pass = &list->pass[k];
            if (!other_stage(schedule, pass, true, &stage)) continue;
            uint32_t const from = schedule_rank_of(schedule, stage, pass->microbatch);
            stages_receive(stages, rank, way_of(schedule, from, rank),
                           *number_at(numbers, goes_back(pass), stage, pass->microbatch));
        }
        for (uint32_t k = i; k < end; k++) stages_compute(stages, rank, work[list->pass[k].kind]);
        for (uint32_t k = i; k < end; k++)
            if (other_stage(schedule, &list->pass[k], false, &stage))
                stages_send(stages, rank,
                            way_of(schedule, rank,
                                   schedule_rank_of(schedule, stage, list->pass[k].microbatch)));
        i = end;
    }
}

static uint32_t passes_most(const struct schedule *schedule)
{
    uint32_t most = 0;
    for (uint32_t r = 0; r < schedule->rank_count; r++)
        if (schedule->rank[r].count > most) most = schedule->rank[r].count;
    return most;
}

/* From step to step: to the picosecond where no two messages share a cable at once. */
static void periods_compare(const struct period *folded, const struct period *full,
                            const struct schedule *schedule, const struct schedule_times *times,
                            int64_t spare_ps)
{
    struct period period;
    case_ok(schedule_period(schedule, times, NULL, "/test", &period, &case_error));
    assert_memory_equal(folded, full, sizeof *full);
    assert_int_not_equal(full->cycle, 0);
    assert_in_range(full->time, period.time, period.time + spare_ps);
    if (spare_ps > 0) return;
    assert_int_equal(full->steps, period.steps);
    assert_int_equal(full->cycle, period.cycle);
}

/* Plays one schedule both ways. `spare_ps`: what each message may lose to another. */
static void compare(const char *text, const struct schedule_request *request,
                    const struct machine *machine, uint32_t axis, int64_t hop_ps, int64_t spare_ps,
                    uint64_t *random)
{
    const struct schedule_form *form = NULL;
    struct schedule_request wanted = *request;
    struct schedule schedule;
    struct numbers numbers;
    struct stages stages;
    struct schedule_played played;
    case_ok(schedule_form_parse(text, "/test", &form, &wanted.chunk_count, &case_error));
    case_ok(schedule_build(case_arena, form, &wanted, "/test", &schedule, &case_error));
    numbers_fill(case_arena, &schedule, &numbers);
    struct group const group = case_group(machine, machine_axis_name(machine, axis));
    uint32_t const most = passes_most(&schedule);
    stages_open(&stages, case_arena, machine, &group.dimension[0], MESSAGE_BYTES, 3 * most);
    uint32_t work[SCHEDULE_KIND_COUNT];
    int64_t ps[SCHEDULE_KIND_COUNT];
    for (uint32_t kind = 0; kind < SCHEDULE_KIND_COUNT; kind++) {
        work[kind] = stages_work(&stages, UINT64_C(1000000000) * (1 + case_random(random) % 20));
        ps[kind] = stages_work_ps(&stages, work[kind]);
    }
    struct schedule_times const times = {.forward = ps[SCHEDULE_FORWARD],
                                         .backward = ps[SCHEDULE_BACKWARD],
                                         .input = ps[SCHEDULE_INPUT],
                                         .weight = ps[SCHEDULE_WEIGHT],
                                         .hop = hop_ps};
    for (uint32_t rank = 0; rank < schedule.rank_count; rank++)
        rank_fill(&stages, &numbers, rank, work);
    case_ok(schedule_play(case_arena, &schedule, &times, NULL, "/test", &played, &case_error));
    stages.steps_max = SCHEDULE_STEPS_MAX;
    struct trace const folded = stages_run(&stages, false), full = stages_run(&stages, true);
    assert_int_equal(folded.step_ps, full.step_ps);
    periods_compare(&folded.period, &full.period, &schedule, &times, spare_ps * most);
    assert_in_range(full.step_ps, played.makespan, played.makespan + spare_ps * most);
    for (uint32_t rank = 0; rank < schedule.rank_count; rank++) {
        const struct trace_role *role = &full.roles[rank];
        const struct schedule_lane *lane = &played.lane[rank];
        assert_int_equal(role->compute_ps, lane->work);
        assert_in_range(role->first_begin_ps, lane->first, lane->first + spare_ps * most);
        assert_in_range(role->last_end_ps, lane->last, lane->last + spare_ps * most);
        assert_int_equal(role->exposed_ps, 0);
        assert_true(role->waiting_ps >= 0 && role->bubble_ps >= 0);
        assert_int_equal(role->waiting_ps + role->bubble_ps + role->compute_ps, full.step_ps);
    }
}

static const struct {
    const char *name;
    uint32_t microbatches; /* As many times the ranks, and twice them. */
    bool apart;            /* No two messages of a rank leave the same way at once. */
} forms[] = {
    {"none", 1, true},         {"gpipe", 1, true},         {"1f1b", 1, true},
    {"eager-1f1b", 2, true},   {"interleaved:2", 2, true}, {"interleaved:3", 1, true},
    {"looped-bfs:2", 2, true}, {"zb-h1", 2, true},         {"zb-h2", 2, true},
    {"zb-v", 2, true},         {"v-half", 2, true},        {"v-min", 2, true},
    {"dualpipe", 2, false},    {"dualpipev", 2, false},    {"auto", 2, true},
};

enum where { GRID, NODE, NICS };

static void form_play(uint32_t form, enum where where, uint64_t *random)
{
    uint32_t const ranks = 2 * (1 + (uint32_t)(case_random(random) % 4));
    uint32_t const more = 1 + (uint32_t)(case_random(random) % 3);
    struct schedule_request const request = {
        .rank_count = ranks,
        .microbatch_count = forms[form].microbatches * more * ranks,
        .times = {.forward = 1000, .input = 1000, .weight = 1000}};
    char name[32];
    (void)snprintf(name, sizeof name, "h100-sxm:nodes=%u", ranks);
    struct machine machine = {0};
    struct scene scene;
    uint32_t axis = 0;
    int64_t hop_ps = TIME_PS_PER_US, link_ps = 20; /* 2 bytes at 100 GB/s. */
    if (where == NICS) {
        machine = case_machine(name);
        axis = machine.axis_level[0] == 1 ? 0 : 1;
        const struct level_tier *nic = &machine.level[machine.axis_level[axis]].tier[0];
        hop_ps = machine.chip.launch.message_ps + 2 * nic->latency_ps;
        link_ps = units_duration_ps(MESSAGE_BYTES, nic->cable_bytes_per_s);
    } else if (where == NODE) {
        scene_open_node(&scene, ranks);
        link_ps = 5; /* At 450 GB/s. */
    } else {
        scene_open(&scene, ranks, 1 + (uint32_t)(case_random(random) % 2), 1, true);
    }
    /* Two may leave, or come into a node, by one cable. */
    compare(forms[form].name, &request, where == NICS ? &machine : &scene.machine, axis,
            hop_ps + link_ps, where != GRID || !forms[form].apart ? link_ps : 0, random);
    if (where != NICS) scene_close(&scene);
}

/* Of each form one run at least, which differs from build to build. */
static void every_form(enum where where, uint64_t seed)
{
    uint32_t walked = 0;
    for (uint32_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        uint32_t const sure = sampling_of() % RUNS;
        for (uint32_t run = 0; run < RUNS; run++) {
            uint64_t random = seed + i * RUNS + run;
            if (!sampling_skips(&walked) || run == sure) form_play(i, where, &random);
        }
    }
}

static void a_schedule_on_a_ring_takes_what_it_takes_alone(void **state)
{
    (void)state;
    every_form(GRID, 1);
}

static void a_schedule_in_a_node_takes_what_it_takes_alone(void **state)
{
    (void)state;
    every_form(NODE, 77);
}

static void a_schedule_over_nodes_takes_what_it_takes_alone(void **state)
{
    (void)state;
    every_form(NICS, 777);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_schedule_on_a_ring_takes_what_it_takes_alone),
        cmocka_unit_test(a_schedule_in_a_node_takes_what_it_takes_alone),
        cmocka_unit_test(a_schedule_over_nodes_takes_what_it_takes_alone),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
