/*
 * Lengths that are drawn: means, deviations and medians of their distributions, bounds, and the
 * very numbers, which are the same with any compiler.
 */
#include <math.h>

#include "sim/base/lengths.h"
#include "sim/base/random.h"
#include "sim/base/units.h"
#include "tests/support/case.h"

enum { DRAWS = 100000 };

struct moments {
    double mean, deviation, below; /* Share of what is below a limit. */
};

static struct moments moments_of(struct lengths_distribution of, double limit)
{
    struct lengths lengths = {.of = of};
    struct moments moments = {0, 0, 0};
    case_ok(lengths_draw(case_arena, DRAWS, 7, &lengths, &case_error));
    assert_int_equal(lengths.count, DRAWS);
    for (uint32_t i = 0; i < DRAWS; i++) {
        double const length = (double)lengths.tokens[i];
        assert_true(lengths.tokens[i] >= of.least && lengths.tokens[i] <= of.most);
        moments.mean += length / DRAWS;
        moments.deviation += length * length / DRAWS;
        moments.below += (length < limit) / (double)DRAWS;
    }
    moments.deviation = sqrt(moments.deviation - moments.mean * moments.mean);
    return moments;
}

static double share_below(double normal)
{
    return erfc(-normal / sqrt(2)) / 2;
}

/* Of a log-normal number ln(x) is normal, with a mean of ln(m) - s^2/2. */
static void distributions_have_their_moments(void **state)
{
    static const uint32_t sigmas_ppm[] = {0, 100000, 500000, 1000000};
    double const mean = 100000;
    (void)state;
    for (size_t i = 0; i < sizeof sigmas_ppm / sizeof *sigmas_ppm; i++) {
        double const sigma = sigmas_ppm[i] / 1e6;
        struct lengths_distribution const of = {.shape = LENGTHS_LOGNORMAL,
                                                .mean = (uint64_t)mean,
                                                .most = UINT64_MAX,
                                                .sigma_ppm = sigmas_ppm[i]};
        double const deviation = mean * sqrt(exp(sigma * sigma) - 1);
        for (double at = -2.5; at <= 2.5; at += 1.25) {
            struct moments const drawn = moments_of(of, mean * exp(at * sigma - sigma * sigma / 2));
            assert_true(fabs(drawn.mean - mean) <= 5 * deviation / sqrt(DRAWS) + 1e-9 * mean);
            if (sigma > 0) assert_true(fabs(drawn.below - share_below(at)) < 0.005);
        }
    }
    struct lengths_distribution const exponential = {
        .shape = LENGTHS_EXPONENTIAL, .mean = (uint64_t)mean, .most = UINT64_MAX};
    for (double at = 0.125; at < 5; at *= 2) {
        struct moments const drawn = moments_of(exponential, at * mean);
        assert_true(fabs(drawn.mean - mean) < 5 * mean / sqrt(DRAWS));
        assert_true(fabs(drawn.deviation - mean) < 0.02 * mean);
        assert_true(fabs(drawn.below - (1 - exp(-at))) < 0.005);
    }
    struct lengths_distribution const uniform = {.shape = LENGTHS_UNIFORM,
                                                 .mean = (uint64_t)mean,
                                                 .least = 50000,
                                                 .most = 150000,
                                                 .spread_ppm = PPM_ONE / 2};
    struct moments const drawn = moments_of(uniform, 75000);
    assert_true(fabs(drawn.mean - mean) < 0.002 * mean);
    assert_true(fabs(drawn.deviation - mean / sqrt(12)) < 0.002 * mean);
    assert_true(fabs(drawn.below - 0.25) < 0.005);
}

static void lengths_beyond_the_bounds_are_the_bounds(void **state)
{
    struct lengths_distribution const of = {.shape = LENGTHS_LOGNORMAL,
                                            .mean = 1000,
                                            .least = 500,
                                            .most = 2000,
                                            .sigma_ppm = RANDOM_SIGMA_MAX * PPM_ONE};
    (void)state;
    /* Of ln(x) with a mean of ln(1000) - 8 and a deviation of 4. */
    assert_true(fabs(moments_of(of, 501).below - share_below((log(0.5) + 8) / 4)) < 0.005);
    struct lengths_distribution const shared = {
        .shape = LENGTHS_UNIFORM, .mean = 3, .least = 1, .most = 100, .spread_ppm = PPM_ONE};
    assert_true(fabs(moments_of(shared, 2).below - 2.0 / 7) < 0.005); /* 0 is 1. */
}

/* As a script computes them from the formulas in floating point. */
static void the_numbers_stand(void **state)
{
    static const uint64_t expected[][4] = {[LENGTHS_UNIFORM] = {5679, 1867, 2645, 3075},
                                           [LENGTHS_LOGNORMAL] = {3602, 429, 968, 313},
                                           [LENGTHS_EXPONENTIAL] = {1225, 7509, 5235, 4369}};
    (void)state;
    for (uint32_t shape = 0; shape < sizeof expected / sizeof *expected; shape++) {
        struct lengths lengths = {.of = {.shape = shape,
                                         .mean = 4096,
                                         .least = 1,
                                         .most = 1 << 20,
                                         .spread_ppm = 800000,
                                         .sigma_ppm = 1200000}};
        case_ok(lengths_draw(case_arena, 4, 42, &lengths, &case_error));
        for (uint32_t i = 0; i < 4; i++) {
            if (lengths.tokens[i] != expected[shape][i])
                fail_msg("shape %u, number %u: %llu", shape, i,
                         (unsigned long long)lengths.tokens[i]);
        }
    }
}

/* Whatever was drawn before, and however many: the first lengths of more sequences are theirs. */
static void lengths_that_are_kept_are_those_that_are_drawn(void **state)
{
    static const uint32_t counts[] = {3, 1, 40, 41, 7, 500};
    struct lengths_drawn drawn = {.arena = case_arena};
    struct lengths kept = {
        .of = {.shape = LENGTHS_EXPONENTIAL, .mean = 4096, .least = 9, .most = 1 << 20},
        .drawn = &drawn};
    (void)state;
    for (uint32_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        struct lengths anew = {.of = kept.of};
        case_ok(lengths_draw(case_arena, counts[i], 42, &anew, &case_error));
        case_ok(lengths_draw(case_arena, counts[i], 42, &kept, &case_error));
        assert_int_equal(kept.count, counts[i]);
        assert_memory_equal(kept.tokens, anew.tokens, counts[i] * sizeof *anew.tokens);
    }
    assert_int_equal(drawn.count, 500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(distributions_have_their_moments),
        cmocka_unit_test(lengths_beyond_the_bounds_are_the_bounds),
        cmocka_unit_test(the_numbers_stand),
        cmocka_unit_test(lengths_that_are_kept_are_those_that_are_drawn),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
