/*
 * Periods of schedules with given times: what schedule_period() says is what comes out when the
 * lists themselves are repeated, as one long schedule of other microbatches; never longer than the
 * schedule by itself, never shorter than what the busiest rank works.
 */
#include <string.h>

#include "sim/schedule/schedule_play.h"
#include "tests/support/case.h"
#include "tests/support/sampling.h"

enum { RUNS = 300, MORE = 3 };

static const char *const names[] = {
    "gpipe", "1f1b", "eager-1f1b", "interleaved:2", "zb-h1",    "interleaved:3", "looped-bfs:2",
    "zb-h2", "zb-v", "v-half",     "v-min",         "dualpipe", "none",          "dualpipev"};

struct drawn {
    struct schedule_request request;
    struct schedule schedule;
};

static bool draw_as(const char *name, const struct schedule_request *request,
                    struct drawn *ret_drawn)
{
    const struct schedule_form *form = NULL;
    struct error ignored = {0};
    ret_drawn->request = *request;
    case_ok(schedule_form_parse(name, "/", &form, &ret_drawn->request.chunk_count, &case_error));
    return schedule_build(case_arena, form, &ret_drawn->request, "/", &ret_drawn->schedule,
                          &ignored) == STATUS_OK;
}

static struct schedule_request request_draw(uint64_t *random)
{
    uint32_t const ranks = 2 * (1 + (uint32_t)(case_random(random) % 4));
    struct schedule_request request = {.rank_count = ranks};
    request.microbatch_count = 2 * ranks * (1 + (uint32_t)(case_random(random) % 3));
    request.times.forward = 1 + (int64_t)(case_random(random) % 40);
    request.times.input = 1 + (int64_t)(case_random(random) % 40);
    request.times.weight = 1 + (int64_t)(case_random(random) % 40);
    if (case_random(random) % 2 == 0) request.times.hop = (int64_t)(case_random(random) % 9);
    if (case_random(random) % 3 == 0)
        request.times.pair = request.times.forward + request.times.input;
    return request;
}

/* The microbatch of a step, as one of all steps: those of the first copy come first. */
static uint32_t microbatch_of(const struct schedule *schedule, uint32_t microbatch, uint32_t step,
                              uint32_t steps)
{
    uint32_t const each = schedule->microbatch_count / schedule->copy_count;
    return microbatch / each * each * steps + step * each + microbatch % each;
}

static struct schedule repeated(const struct schedule *schedule, uint32_t steps)
{
    struct schedule all = *schedule;
    all.microbatch_count *= steps;
    all.rank = arena_take(case_arena, schedule->rank_count, sizeof *all.rank);
    assert_non_null(all.rank);
    for (uint32_t r = 0; r < schedule->rank_count; r++) {
        const struct schedule_rank *list = &schedule->rank[r];
        struct schedule_rank *longer = &all.rank[r];
        *longer = *list;
        longer->count = list->count * steps;
        longer->pass = arena_take(case_arena, longer->count, sizeof *longer->pass);
        assert_non_null(longer->pass);
        for (uint32_t i = 0; i < longer->count; i++) {
            longer->pass[i] = list->pass[i % list->count];
            longer->pass[i].microbatch =
                microbatch_of(schedule, longer->pass[i].microbatch, i / list->count, steps);
        }
    }
    return all;
}

/* When a rank has ended so many steps of a longer schedule. */
static int64_t end_of(const struct schedule_played *played, const struct schedule *schedule,
                      uint32_t rank, uint32_t steps)
{
    return steps == 0 ? 0 : played->lane[rank].end[steps * schedule->rank[rank].count - 1];
}

static struct period period_of_drawn(const struct drawn *drawn)
{
    struct period period;
    case_ok(
        schedule_period(&drawn->schedule, &drawn->request.times, NULL, "/", &period, &case_error));
    return period;
}

static void check(const struct drawn *drawn)
{
    const struct schedule *schedule = &drawn->schedule;
    struct period const period = period_of_drawn(drawn);
    struct schedule_played alone, played;
    assert_true(period.cycle >= 1);
    uint32_t const steps = period.steps + MORE * period.cycle;
    struct schedule const all = repeated(schedule, steps);
    case_ok(
        schedule_play(case_arena, schedule, &drawn->request.times, NULL, "/", &alone, &case_error));
    case_ok(
        schedule_play(case_arena, &all, &drawn->request.times, NULL, "/", &played, &case_error));
    for (uint32_t r = 0; r < schedule->rank_count; r++) {
        assert_int_equal(end_of(&played, schedule, r, 1), alone.lane[r].last);
        for (uint32_t k = period.steps - period.cycle; k + period.cycle <= steps; k++)
            assert_int_equal(
                (end_of(&played, schedule, r, k + period.cycle) - end_of(&played, schedule, r, k)) /
                    period.cycle,
                period.time);
    }
    assert_true(period.time <= alone.makespan);
    assert_true(period.time >= alone.makespan - alone.bubble_busiest);
}

static void periods_are_those_of_repeated_lists(void **state)
{
    (void)state;
    uint64_t random = 20;
    uint32_t walked = 0, checked = 0;
    for (uint32_t run = 0; run < RUNS; run++) {
        struct drawn drawn;
        const char *name = names[run % (sizeof names / sizeof *names)];
        struct schedule_request const request = request_draw(&random);
        if (sampling_skips(&walked) || !draw_as(name, &request, &drawn)) continue;
        check(&drawn);
        checked++;
    }
    assert_true(checked * sampling_of() > RUNS / 2);
}

/* A step of ZB-H2 is a parallelogram: the next fits into it. */
static void the_second_zero_bubble_is_no_slower_than_the_first(void **state)
{
    (void)state;
    uint64_t random = 77;
    uint32_t walked = 0, faster = 0, checked = 0;
    for (uint32_t run = 0; run < RUNS; run++) {
        struct drawn first, second;
        struct schedule_request const request = request_draw(&random);
        if (sampling_skips(&walked) || !draw_as("zb-h1", &request, &first) ||
            !draw_as("zb-h2", &request, &second))
            continue;
        struct period const one = period_of_drawn(&first), two = period_of_drawn(&second);
        assert_true(two.time <= one.time);
        faster += two.time < one.time;
        checked++;
    }
    assert_true(checked * sampling_of() > RUNS / 2 && 4 * faster > 3 * checked);
}

/* 8 ranks, 24 microbatches, F = I = W: both take 79, and 7 of them are bubble by themselves. */
static void equal_times_leave_no_bubble_between_steps(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t period;
    } rows[] = {{"1f1b", 93}, {"zb-h1", 79}, {"zb-h2", 72}, {"gpipe", 93}};
    struct schedule_request const request = {
        .rank_count = 8, .microbatch_count = 24, .times = {.forward = 1, .input = 1, .weight = 1}};
    for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct drawn drawn;
        assert_true(draw_as(rows[i].name, &request, &drawn));
        assert_int_equal(period_of_drawn(&drawn).time, rows[i].period);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(periods_are_those_of_repeated_lists),
        cmocka_unit_test(the_second_zero_bubble_is_no_slower_than_the_first),
        cmocka_unit_test(equal_times_leave_no_bubble_between_steps),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
