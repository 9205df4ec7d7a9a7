/* The line of progress on a terminal. */
#include "tools/podsim/common/progress.h"

#include "tests/support/case.h"

static const struct progress_words step = {"step", "steps for the period"};
static const struct progress_words schedules = {"schedules", NULL};

static void the_line_says_what_is_done_and_how_long_the_rest_takes(void **state)
{
    (void)state;
    static const struct {
        const struct progress_words *words;
        double share;
        uint64_t events;
        double elapsed_s;
        const char *line;
    } rows[] = {
        {&step, 0, 2000000, 2, "  0.0 % of the step, 1.0 M events/s, 2 s so far"},
        {&step, 0.0011, 2000000, 2, "  0.1 % of the step, 1.0 M events/s, 2 s so far"},
        {&step, 0.25, 2000000, 1, " 25.0 % of the step, 2.0 M events/s, 1 s so far"},
        {&step, 0.25, 22000000, 2, " 25.0 % of the step, 11.0 M events/s, 6 s left"},
        {&step, 1, 22000000, 2, "100.0 % of the step, 11.0 M events/s, 0 s left"},
        {&step, 1.4, 22000000, 2, "  1.4 steps for the period, 11.0 M events/s, 2 s so far"},
        {&schedules, 0.5, 400000, 2, " 50.0 % of the schedules, 0.2 M events/s, 2 s left"},
        {&schedules, 1.1, 400000, 2, "100.0 % of the schedules, 0.2 M events/s, 0 s left"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char line[PROGRESS_LINE_BYTES];
        progress_line(line, *rows[i].words, rows[i].share, rows[i].events, rows[i].elapsed_s,
                      rows[i].elapsed_s);
        assert_string_equal(line, rows[i].line);
    }
}

static void events_of_runs_one_after_the_other_add_up(void **state)
{
    (void)state;
    struct progress_events events = {0};
    assert_int_equal(progress_events_add(&events, 10), 10);
    assert_int_equal(progress_events_add(&events, 30), 30);
    assert_int_equal(progress_events_add(&events, 30), 30);
    assert_int_equal(events.replaced, 0);
    assert_int_equal(progress_events_add(&events, 5), 35);
    assert_int_equal(events.replaced, 1);
    assert_int_equal(progress_events_add(&events, 0), 35);
    assert_int_equal(progress_events_add(&events, 7), 42);
    assert_int_equal(events.replaced, 2);
}

static void what_is_left_is_of_the_run_at_hand(void **state)
{
    (void)state;
    struct progress_run run = {0};
    char line[PROGRESS_LINE_BYTES];
    assert_true(progress_run_s(&run, 0.25, 0, 1) == 1);
    assert_true(progress_run_s(&run, 0.5, 0, 3) == 3);
    assert_true(progress_run_s(&run, 0.75, 1, 3.5) == 0.5);
    assert_true(progress_run_s(&run, 0.97, 1, 5) == 2);
    assert_true(progress_run_s(&run, 0.125, 1, 6) == 1);
    progress_line(line, step, 0.5, 25000000, 5, 2);
    assert_string_equal(line, " 50.0 % of the step, 5.0 M events/s, 2 s left");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_line_says_what_is_done_and_how_long_the_rest_takes),
        cmocka_unit_test(what_is_left_is_of_the_run_at_hand),
        cmocka_unit_test(events_of_runs_one_after_the_other_add_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
