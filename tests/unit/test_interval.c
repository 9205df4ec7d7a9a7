/* Intervals out of residuals, by hand; the residuals of the project. */
#include <string.h>

#include "tests/support/case.h"
#include "tools/podsim/common/interval.h"

static struct residual row(const char *publication, const char *chip, const char *stack,
                           uint32_t ratio_ppm)
{
    return (struct residual){
        .id = "made",
        .publication = publication,
        .kind = {.work = RESIDUAL_DENSE, .chip = chip, .stack = stack, .eight_bits = false},
        .ratio_ppm = ratio_ppm};
}

static const struct residual_kind kind = {
    .work = RESIDUAL_DENSE, .chip = "c", .stack = "s", .eight_bits = false};

static struct interval_pool pool_of(struct residual *rows, uint32_t count, const bool *left_out)
{
    struct residuals const residuals = {rows, count, 80};
    struct interval_pool pool;
    case_ok(interval_pool_build(case_arena, &residuals, left_out, &kind, &pool, &case_error));
    return pool;
}

static void near(double got, double wanted)
{
    if (got - wanted > 1e-9 || wanted - got > 1e-9) fail_msg("%.12g is not %.12g", got, wanted);
}

static void cut_is(const struct interval_pool *pool, uint32_t mass_percent, double low, double high)
{
    double got_low = 0, got_high = 0;
    interval_cut(pool, mass_percent, &got_low, &got_high);
    near(got_low, low);
    near(got_high, high);
}

/* Five publications with a row each: the median is the third, and ratios 2, 1.6, 1, 1.25 and 4
 * lie at distances 1.6, 1.28, 1.25, 1 and 3.2 of it. */
static void an_interval_reaches_as_far_as_its_share_of_the_weight(void **state)
{
    (void)state;
    struct residual rows[] = {
        row("a", "c", "s", 2000000), row("b", "c", "s", 1600000), row("d", "c", "s", 1000000),
        row("e", "c", "s", 1250000), row("f", "c", "s", 4000000),
    };
    struct interval_pool const pool = pool_of(rows, 5, NULL);
    assert_int_equal(pool.count, 5);
    near(pool.median, 1.6);
    near(pool.weight, 5);
    cut_is(&pool, 1, 1.6, 1.6);
    cut_is(&pool, 20, 1.6, 1.6);
    cut_is(&pool, 21, 1.6 / 1.25, 1.6 * 1.25);
    cut_is(&pool, 60, 1.6 / 1.28, 1.6 * 1.28);
    cut_is(&pool, 80, 1.6 / 1.6, 1.6 * 1.6);
    cut_is(&pool, 99, 1.6 / 2.5, 1.6 * 2.5);
    near(interval_mass(&pool, 1.6), 0);
    near(interval_mass(&pool, 1), 0.6);
    near(interval_mass(&pool, 3), 0.8);
    near(interval_mass(&pool, 100), 1);
}

/* An interval has a ratio within as soon as its share is above the ratio's mass. */
static void mass_and_interval_agree(void **state)
{
    (void)state;
    struct residual rows[] = {
        row("a", "c", "s", 900000),  row("a", "c", "s", 1100000), row("b", "x", "s", 1200000),
        row("d", "x", "y", 1300000), row("e", "c", "s", 1050000), row("e", "c", "y", 700000),
    };
    struct interval_pool const pool = pool_of(rows, 6, NULL);
    double const ratios[] = {0.5, 0.7, 0.9, 0.95, 1.05, 1.1, 1.25, 1.3, 2};
    for (size_t r = 0; r < sizeof ratios / sizeof *ratios; r++)
        for (uint32_t mass_percent = 1; mass_percent < 100; mass_percent++) {
            double low = 0, high = 0;
            interval_cut(&pool, mass_percent, &low, &high);
            bool const is_within =
                low <= ratios[r] * (1 + 1e-12) && ratios[r] <= high * (1 + 1e-12);
            /* Distances that are alike but for rounding decide nothing. */
            double const mass = 100 * interval_mass(&pool, ratios[r]);
            if (mass - mass_percent < 1e-6 && mass_percent - mass < 1e-6) continue;
            if (is_within != (mass < mass_percent) && mass < 99.9999)
                fail_msg("%g at %u %%: %g", ratios[r], mass_percent, mass);
        }
}

static void a_publication_counts_once(void **state)
{
    (void)state;
    struct residual rows[] = {
        row("a", "c", "s", 1000000), row("a", "c", "s", 1000000), row("a", "c", "s", 1000000),
        row("a", "c", "s", 1000000), row("b", "c", "s", 3000000), row("d", "c", "s", 3000000),
    };
    struct interval_pool const pool = pool_of(rows, 6, NULL);
    near(pool.weight, 3);
    near(pool.median, 3);
    assert_int_equal(pool.alike_rows, 6);
    assert_int_equal(pool.alike_publications, 3);
}

/* 0.3 for each difference. A publication has the weight of its nearest row. */
static void what_differs_counts_less(void **state)
{
    (void)state;
    struct residual rows[] = {
        row("a", "c", "s", 1000000), row("a", "x", "s", 1000000), row("b", "c", "y", 1000000),
        row("d", "x", "y", 1000000), row("e", "c", "s", 1000000), row("f", "c", "s", 1000000),
    };
    rows[4].kind.eight_bits = true;
    rows[5].kind.work = RESIDUAL_SERVING;
    struct interval_pool const pool = pool_of(rows, 6, NULL);
    assert_int_equal(pool.count, 5);
    near(pool.weight, 1 + 0.3 + 0.09 + 0.3);
    near(pool.alike_weight, 1 / 1.3 + 0.3);
    assert_int_equal(pool.alike_rows, 2);
    assert_int_equal(pool.alike_publications, 2);
    assert_int_equal(pool.other_rows, 3);
    assert_int_equal(pool.other_publications, 3);
}

static void one_row_and_no_row(void **state)
{
    (void)state;
    struct residual rows[] = {row("a", "x", "y", 1500000), row("b", "c", "s", 2500000)};
    bool const without_last[] = {false, true}, without_all[] = {true, true};
    struct interval_pool pool = pool_of(rows, 2, without_last);
    assert_int_equal(pool.count, 1);
    near(pool.alike_weight, 0);
    cut_is(&pool, 80, 1.5, 1.5);
    near(interval_mass(&pool, 1.5), 0);
    near(interval_mass(&pool, 1.4), 1);
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
    assert_true(residuals.mass_percent >= 50 && residuals.mass_percent < 99);
    for (uint32_t i = 0; i < residuals.row_count; i++) {
        of_work[residuals.row[i].kind.work]++;
        assert_true(residuals.row[i].ratio_ppm > 100000 && residuals.row[i].ratio_ppm < 10000000);
    }
    for (int work = 0; work < RESIDUAL_WORKS; work++) assert_true(of_work[work] >= 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_interval_reaches_as_far_as_its_share_of_the_weight),
        cmocka_unit_test(mass_and_interval_agree),
        cmocka_unit_test(a_publication_counts_once),
        cmocka_unit_test(what_differs_counts_less),
        cmocka_unit_test(one_row_and_no_row),
        cmocka_unit_test(the_project_has_residuals_of_each_work),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
