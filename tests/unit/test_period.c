/* When ends of steps repeat, and what is said of those that do not. */
#include "sim/base/period.h"
#include "tests/support/case.h"

static void steps_that_repeat_at_once(void **state)
{
    (void)state;
    static const int64_t ends[] = {0, 0, 7, 7, 14, 14};
    struct period period;
    assert_false(period_find(ends, 2, 1, &period));
    assert_true(period_find(ends, 2, 2, &period));
    assert_int_equal(period.time, 7);
    assert_int_equal(period.steps, 2);
    assert_int_equal(period.cycle, 1);
}

/* The second place begins late: its first step is no period. */
static void steps_that_repeat_after_the_first(void **state)
{
    (void)state;
    static const int64_t ends[] = {0, 0, 7, 9, 14, 16, 21, 23};
    struct period period;
    assert_false(period_find(ends, 2, 2, &period));
    assert_true(period_find(ends, 2, 3, &period));
    assert_int_equal(period.time, 7);
    assert_int_equal(period.steps, 3);
}

/* Each place keeps its own pace: nothing repeats for both. */
static void places_of_unlike_pace_do_not_repeat(void **state)
{
    (void)state;
    static const int64_t ends[] = {0, 0, 7, 9, 14, 18, 21, 27, 28, 36};
    struct period period;
    for (uint32_t steps = 1; steps <= 4; steps++)
        assert_false(period_find(ends, 2, steps, &period));
    period = period_of(ends, 2, 4);
    assert_int_equal(period.cycle, 0);
    assert_int_equal(period.time, 9);
    assert_int_equal(period.spread, 2);
    assert_int_equal(period.steps, 4);
}

/* 6 and 8 in turn: 7 on the average. */
static void steps_that_take_turns(void **state)
{
    (void)state;
    static const int64_t ends[] = {0, 6, 14, 20, 28};
    struct period period;
    assert_false(period_find(ends, 1, 2, &period));
    assert_false(period_find(ends, 1, 3, &period));
    assert_true(period_find(ends, 1, 4, &period));
    assert_int_equal(period.time, 7);
    assert_int_equal(period.cycle, 2);
    period = period_of(ends, 1, 3);
    assert_int_equal(period.cycle, 0);
    assert_int_equal(period.time, 7); /* (20 - 6) / 2 */
    assert_int_equal(period.spread, 2);
    period = period_of(ends, 1, 1);
    assert_int_equal(period.time, 6);
    assert_int_equal(period.spread, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_that_repeat_at_once),
        cmocka_unit_test(steps_that_repeat_after_the_first),
        cmocka_unit_test(places_of_unlike_pace_do_not_repeat),
        cmocka_unit_test(steps_that_take_turns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
