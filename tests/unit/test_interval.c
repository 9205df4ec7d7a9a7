/* Intervals out of residuals, by hand; the residuals of the project. */
#include <string.h>

#include "tests/support/case.h"
#include "tools/podsim/common/interval.h"

static struct residual row(const char *publication, const char *chip, const char *stack,
                           uint32_t ratio_ppm)
{
    return (struct residual){.id = "made",
                             .publication = publication,
                             .kind = {.work = RESIDUAL_DENSE, .chip = chip, .stack = stack},
                             .ratio_ppm = ratio_ppm};
}

static const struct residual_kind kind = {.work = RESIDUAL_DENSE, .chip = "c", .stack = "s"};

static struct interval_pool pool_of(struct residual *rows, uint32_t count, const bool *left_out)
{
    struct residuals const residuals = {.row = rows, .row_count = count};
    struct interval_pool pool;
    case_ok(interval_pool_build(case_arena, &residuals, left_out, &kind, &pool, &case_error));
    return pool;
}

static double reach_of(struct residual *rows, uint32_t count, const bool *left_out,
                       uint32_t percent)
{
    struct residuals const residuals = {.row = rows, .row_count = count};
    double reach = 0;
    case_ok(
        interval_reach(case_arena, &residuals, left_out, &kind, &percent, 1, &reach, &case_error));
    return reach;
}

static void near(double got, double wanted)
{
    if (got - wanted > 1e-9 || wanted - got > 1e-9) fail_msg("%.12g is not %.12g", got, wanted);
}

/* Five publications with a row each. Medians of the other four are 1.25 without 2, 1.6 or 4, and
 * 1.6 without 1 or 1.25. */
static void a_reach_is_the_distance_from_the_other_publications(void **state)
{
    (void)state;
    struct residual rows[] = {
        row("a", "c", "s", 2000000), row("b", "c", "s", 1600000), row("d", "c", "s", 1000000),
        row("e", "c", "s", 1250000), row("f", "c", "s", 4000000),
    };
    double const distances[] = {1.6 / 1.25, 1.6 / 1.25, 1.6, 2 / 1.25, 4 / 1.25};
    struct interval_pool const pool = pool_of(rows, 5, NULL);
    assert_int_equal(pool.count, 5);
    near(pool.median, 1.6);
    near(pool.votes, 5);
    for (uint32_t i = 0; i < 5; i++) {
        near(reach_of(rows, 5, NULL, 20 * i + 1), distances[i]);
        near(reach_of(rows, 5, NULL, 20 * i + 20), distances[i]);
    }
    near(interval_distance(1.6, 2), 1.25);
    near(interval_distance(1.6, 1.28), 1.25);
    near(interval_distance(1.6, 1.6), 1);
}

/* Rows of one publication alone have nothing to be compared with. */
static void what_is_left_out_has_no_part_in_a_reach(void **state)
{
    (void)state;
    struct residual rows[] = {
        row("a", "c", "s", 1000000), row("a", "x", "s", 1000000), row("b", "c", "y", 2000000),
        row("d", "c", "s", 9000000), row("e", "c", "s", 5000000),
    };
    bool const without_d[] = {false, false, false, true, true};
    rows[4].kind.work = RESIDUAL_SERVING;
    near(reach_of(rows, 5, without_d, 100), 2);
    assert_true(reach_of(rows, 5, NULL, 100) > 4);
    near(reach_of(rows, 2, NULL, 80), RESIDUAL_RATIO_MOST_PPM / 1e6); /* Nothing to compare with. */
    near(reach_of(rows, 0, NULL, 80), 1);
}

static void a_publication_counts_once(void **state)
{
    (void)state;
    struct residual rows[] = {
        row("a", "c", "s", 1000000), row("a", "c", "s", 1000000), row("a", "c", "s", 1000000),
        row("a", "c", "s", 1000000), row("b", "c", "s", 3000000), row("d", "c", "s", 3000000),
    };
    struct interval_pool const pool = pool_of(rows, 6, NULL);
    near(pool.votes, 3);
    near(pool.median, 3);
    assert_int_equal(pool.alike_rows, 6);
    assert_int_equal(pool.alike_publications, 3);
}

/* Rows of another chip or stack count as others do, and are told apart. */
static void what_differs_is_counted_apart(void **state)
{
    (void)state;
    struct residual rows[] = {
        row("a", "c", "s", 1000000), row("a", "x", "s", 1000000), row("b", "c", "y", 1000000),
        row("d", "x", "y", 1000000), row("e", "c", "s", 1000000), row("f", "c", "s", 1000000),
    };
    rows[4].kind.is_own_stack = true;
    rows[5].kind.work = RESIDUAL_SERVING;
    struct interval_pool const pool = pool_of(rows, 6, NULL);
    assert_int_equal(pool.count, 5);
    near(pool.votes, 4);
    assert_int_equal(pool.alike_rows, 1);
    assert_int_equal(pool.alike_publications, 1);
    assert_int_equal(pool.other_rows, 4);
    assert_int_equal(pool.other_publications, 4);
}

static void one_row_and_no_row(void **state)
{
    (void)state;
    struct residual rows[] = {row("a", "x", "y", 1500000), row("b", "c", "s", 2500000)};
    bool const without_last[] = {false, true}, without_all[] = {true, true};
    struct interval_pool pool = pool_of(rows, 2, without_last);
    assert_int_equal(pool.count, 1);
    near(pool.median, 1.5);
    pool = pool_of(rows, 2, without_all);
    assert_int_equal(pool.count, 0);
    pool = pool_of(rows, 0, NULL);
    assert_int_equal(pool.count, 0);
}

static void the_project_has_residuals_of_each_work(void **state)
{
    (void)state;
    struct residuals residuals;
    uint32_t of_work[RESIDUAL_WORKS] = {0};
    case_ok(residuals_read(case_arena, &residuals, &case_error));
    for (int work = 0; work < RESIDUAL_WORKS; work++)
        assert_in_range(residuals.reach_ppm[work], 1010000, 2000000);
    for (uint32_t i = 0; i < residuals.row_count; i++) {
        of_work[residuals.row[i].kind.work]++;
        assert_true(residuals.row[i].ratio_ppm > 100000 && residuals.row[i].ratio_ppm < 10000000);
    }
    for (int work = 0; work < RESIDUAL_WORKS; work++) assert_true(of_work[work] >= 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reach_is_the_distance_from_the_other_publications),
        cmocka_unit_test(what_is_left_out_has_no_part_in_a_reach),
        cmocka_unit_test(a_publication_counts_once),
        cmocka_unit_test(what_differs_is_counted_apart),
        cmocka_unit_test(one_row_and_no_row),
        cmocka_unit_test(the_project_has_residuals_of_each_work),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
