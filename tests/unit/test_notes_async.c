/* What a step made by hand says of the start and end of its asynchronous collectives. */
#include "sim/base/units.h"
#include "sim/report/notes_async.h"
#include "sim/report/notes_parts.h"
#include "tests/unit/notes_case.h"

static void part_is(uint32_t at, const char *name, double seconds)
{
    assert_string_equal(made.notes.part[at].name, name);
    case_near(made.notes.part[at].seconds, seconds, 1e-9);
}

static void they_are_a_part_beyond_the_bound(void **state)
{
    (void)state;
    made.analysis.async_s = 0.09375;
    notes_parts_build(case_arena, &made.input, &made.analysis, &made.notes);
    assert_int_equal(made.notes.part_count, 2);
    part_is(0, "compute beyond the bound: fill and drain of tiles, overheads, HBM shared", 0.15625);
    part_is(1, "start and end of asynchronous collectives", 0.09375);
}

static void note(double async_s)
{
    made.machine.chip.launch.async_ps = 2000 * TIME_PS_PER_US;
    made.analysis.async_s = async_s;
    notes_case_again();
    notes_async_build(case_arena, &made.input, &made.analysis, &made.notes);
}

static void beyond_a_tenth_of_the_step_a_note_says_so(void **state)
{
    (void)state;
    note(0.1);
    notes_case_are(NULL);
    note(0.15625);
    notes_case_are("start and end of asynchronous collectives take 156 ms from compute (15.6% of "
                   "the step): at most 2.00 ms each, and no more than a collective takes on its "
                   "links; the time of v5e is learned from models of 16B and 64B on 256 chips a "
                   "slice, whose gathers take 2.0 to 7.8 ms on their links");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, notes_case_up, case_arena_down)
    const struct CMUnitTest tests[] = {
        TEST(they_are_a_part_beyond_the_bound),
        TEST(beyond_a_tenth_of_the_step_a_note_says_so),
    };
#undef TEST
    return cmocka_run_group_tests_name("notes of asynchronous collectives", tests, NULL, NULL);
}
