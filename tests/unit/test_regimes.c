/* Maps of a collective: groups, winners, the sizes at which rates are reached. */
#include "sim/base/units.h"
#include "sim/measure/regimes.h"
#include "tests/support/case.h"
#include "tests/support/measure_args.h"

/* The rate of the last winner at the size that has half of the peak. */
static double half_rate(const struct regimes *regimes, const struct regimes_group *group)
{
    const struct measure_row_choice *choice = NULL;
    struct measure_options const options = {.engine = "fast"};
    const char *const name = regimes->algorithm_name[group->winner[regimes->size_count - 1]];
    struct algorithm const algorithm = algorithm_read(name);
    struct measured measured;
    case_ok(measure_row_choose(case_arena, &group->args, group->best.half_bytes, &algorithm, "-e",
                               &choice, &case_error));
    case_ok(measure_run(case_arena, group->args.machine, &choice->request, 1, "--algorithm",
                        &options, &measured, &case_error));
    return (double)group->best.half_bytes / units_seconds(measured.time_ps[0]);
}

static void test_groups(void **state)
{
    (void)state;
    struct machine const machine = case_machine("v5p:4x4x12");
    struct measure_row_args const args = measure_args_of(&machine, MEASURE_ALL_REDUCE, NULL);
    static const char *const expected[] = {"z:2", "z:4", "z", "y:2,z", "y,z", "x:2,y,z", "x,y,z"};
    struct group groups[REGIMES_GROUPS_MAX];
    char text[MEASURE_AXES_BYTES];
    uint32_t const count = regimes_groups(&machine, &args.group, groups);
    assert_int_equal(count, sizeof expected / sizeof *expected);
    for (uint32_t i = 0; i < count; i++)
        assert_string_equal(measure_group_text(&machine, &groups[i], text), expected[i]);
}

/* Crossovers, peaks and sizes are those of the times themselves. */
static void test_map(void **state)
{
    (void)state;
    struct machine const machine = case_machine("v5e:8x16");
    struct regimes_plan plan = {.args = measure_args_of(&machine, MEASURE_ALL_GATHER, "y"),
                                .run = {.engine = "fast"}};
    struct regimes regimes;
    case_ok(sizes_read("1K", "64M", "16", NULL, &plan.sizes, &case_error));
    case_ok(regimes_run(case_arena, &plan, &regimes, &case_error));
    assert_int_equal(regimes.group_count, 4);
    for (uint32_t g = 0; g < regimes.group_count; g++) {
        const struct regimes_group *group = &regimes.group[g];
        for (uint32_t s = 0; s < regimes.size_count; s++)
            for (uint32_t a = 0; a < regimes.algorithm_count; a++)
                if (group->curve[a].applies)
                    assert_true(group->curve[group->winner[s]].time_ps[s] <=
                                group->curve[a].time_ps[s]);
        double const rate = half_rate(&regimes, group);
        assert_true(rate >= group->best.peak_bytes_per_s * 0.5 &&
                    rate <= group->best.peak_bytes_per_s * 0.501);
    }
}

/* The first size of the sweep with a rate is at or behind the size at which the curve reaches it,
 * and the size before is not. */
static void reached_check(const struct regimes *regimes, const struct regimes_curve *curve,
                          double share, uint64_t reached_bytes)
{
    uint64_t before = 0;
    for (uint32_t s = 0; s < regimes->size_count; s++) {
        uint64_t const size = regimes->size_bytes[s];
        double const rate = (double)size / units_seconds(curve->time_ps[s]);
        if (rate >= share * curve->peak_bytes_per_s) {
            assert_true(before < reached_bytes && reached_bytes <= size);
            return;
        }
        before = size;
    }
    assert_true(reached_bytes > before);
}

/* A double tree on eight chips reaches 95 % of its peak below 4 MiB, and loses it at 4 MiB. */
static void test_rates_agree_with_sweep(void **state)
{
    (void)state;
    struct machine const machine = case_machine("v5e:16x16");
    struct regimes_plan plan = {.args = measure_args_of(&machine, MEASURE_ALL_REDUCE, "y:8"),
                                .run = {.engine = "fast"}};
    struct regimes regimes;
    uint32_t curves = 0;
    case_ok(sizes_read("1K", "1G", "4", NULL, &plan.sizes, &case_error));
    case_ok(regimes_run(case_arena, &plan, &regimes, &case_error));
    for (uint32_t g = 0; g < regimes.group_count; g++)
        for (uint32_t a = 0; a < regimes.algorithm_count; a++) {
            const struct regimes_curve *curve = &regimes.group[g].curve[a];
            if (!curve->applies) continue;
            reached_check(&regimes, curve, 0.5, curve->half_bytes);
            reached_check(&regimes, curve, 0.95, curve->most_bytes);
            curves++;
        }
    assert_int_equal(curves, 21);
}

static bool stop_at_once(void *owner, uint32_t thread, double share, uint64_t events)
{
    (void)owner;
    (void)thread;
    (void)share;
    (void)events;
    return false;
}

static void test_interrupted(void **state)
{
    (void)state;
    struct machine const machine = case_machine("v5e:8x16");
    struct regimes_plan plan = {.args = measure_args_of(&machine, MEASURE_ALL_GATHER, "y"),
                                .run = {.engine = "fast"},
                                .watch = stop_at_once};
    struct regimes regimes;
    case_ok(sizes_read("1K", NULL, NULL, NULL, &plan.sizes, &case_error));
    case_refused(regimes_run(case_arena, &plan, &regimes, &case_error), STATUS_INTERRUPTED, NULL,
                 "");
    assert_int_equal(regimes.group_count, 0);
    assert_int_equal(regimes.group[0].curve[0].run_count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_map),
        cmocka_unit_test(test_rates_agree_with_sweep),
        cmocka_unit_test(test_interrupted),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
