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
        const char *line;
    } rows[] = {
        {&step, 0, 2000000, "  0.0 % of the step, 1.0 M events/s, 2 s so far"},
        {&step, 0.25, 22000000, " 25.0 % of the step, 11.0 M events/s, 6 s left"},
        {&step, 1, 22000000, "100.0 % of the step, 11.0 M events/s, 0 s left"},
        {&step, 1.4, 22000000, "  1.4 steps for the period, 11.0 M events/s, 2 s so far"},
        {&schedules, 0.5, 400000, " 50.0 % of the schedules, 0.2 M events/s, 2 s left"},
        {&schedules, 1.1, 400000, "100.0 % of the schedules, 0.2 M events/s, 0 s left"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char line[PROGRESS_LINE_BYTES];
        progress_line(line, *rows[i].words, rows[i].share, rows[i].events, 2);
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
    assert_int_equal(progress_events_add(&events, 5), 35);
    assert_int_equal(progress_events_add(&events, 0), 35);
    assert_int_equal(progress_events_add(&events, 7), 42);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_line_says_what_is_done_and_how_long_the_rest_takes),
        cmocka_unit_test(events_of_runs_one_after_the_other_add_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
