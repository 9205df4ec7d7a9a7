/* Single collectives with and without counts of what waits at links. */
#include "sim/measure/measure_row.h"
#include "tests/support/case.h"

/* Alike chips go together where waits are not counted, and pieces share what is known of ways. */
static void test_waits_change_nothing_else(void **state)
{
    (void)state;
    struct machine const machine = case_machine("v5p:4x4x8");
    struct measure_row_args args = {
        .machine = &machine, .operation = MEASURE_ALL_REDUCE, .format = FORMAT_BF16};
    case_ok(measure_group(&machine, NULL, "--axes", &args.group, &case_error));
    static const char *const names[] = {"double-tree", "tree", "ring", "recursive-doubling"};
    for (uint32_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct algorithm const algorithm = algorithm_read(names[i]);
        const struct measure_row_choice *choice = NULL;
        struct measured measured[3];
        struct measure_options const options[3] = {
            {.engine = "fast"},
            {.engine = "fast", .count_waits = true},
            {.engine = "reference"},
        };
        case_ok(measure_row_choose(case_arena, &args, UINT64_C(64) << 20, &algorithm, "-e", &choice,
                                   &case_error));
        for (uint32_t run = 0; run < 3; run++)
            case_ok(measure_run(case_arena, &machine, &choice->request, 1, "--algorithm",
                                &options[run], &measured[run], &case_error));
        for (uint32_t run = 1; run < 3; run++) {
            assert_int_equal(measured[run].time_ps[0], measured[0].time_ps[0]);
            assert_int_equal(measured[run].trace.digest, measured[0].trace.digest);
            assert_int_equal(measured[run].trace.work.events, measured[0].trace.work.events);
        }
        assert_true(measured[1].trace.link[0].messages > 0);
        assert_int_equal(measured[0].trace.link[0].messages, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_waits_change_nothing_else)};
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
