/* What no other answer beats, and where a curve of answers bends. */
#include "sim/report/frontier.h"

#include <math.h>

#include "sim/roofline/inference.h"
#include "tests/support/case.h"

enum { POINTS_MAX = 16 };

static void what_another_beats_is_not_on_the_frontier(void **state)
{
    (void)state;
    static const struct {
        struct frontier_point point;
        bool on;
    } rows[] = {
        {{1, 10, true}, true},  {{2, 20, true}, true},
        {{2, 20, true}, true}, /* Equal points do not beat each other. */
        {{2, 19, true}, false}, {{3, 20, true}, false},
        {{4, 25, true}, true},  {{5, 24, true}, false},
        {{1, 9, true}, false},  {{0.5, 99, false}, false}, /* It was refused. */
    };
    enum { COUNT = sizeof rows / sizeof *rows };
    struct frontier_point points[COUNT];
    bool on[COUNT];
    for (uint32_t i = 0; i < COUNT; i++) points[i] = rows[i].point;
    frontier_mark(points, COUNT, on);
    for (uint32_t i = 0; i < COUNT; i++) assert_int_equal(on[i], rows[i].on);
    frontier_mark(points, 0, on);
}

/* The frontier of points drawn on a grid is what a search by pairs finds, and its points in the
 * order of latency have rising rates. */
static void frontiers_rise(void **state)
{
    (void)state;
    uint32_t seed = 1;
    for (uint32_t draw = 0; draw < 500; draw++) {
        struct frontier_point points[POINTS_MAX];
        bool on[POINTS_MAX];
        for (uint32_t i = 0; i < POINTS_MAX; i++) {
            seed = seed * 1664525 + 1013904223;
            points[i] = (struct frontier_point){
                .latency_s = seed >> 28, .rate = seed >> 20 & 15, .is = (seed >> 18 & 3) != 0};
        }
        frontier_mark(points, POINTS_MAX, on);
        for (uint32_t i = 0; i < POINTS_MAX; i++) {
            bool beaten = !points[i].is;
            for (uint32_t k = 0; k < POINTS_MAX; k++) {
                if (!points[k].is) continue;
                bool const worse =
                    points[k].latency_s > points[i].latency_s || points[k].rate < points[i].rate;
                bool const same =
                    points[k].latency_s == points[i].latency_s && points[k].rate == points[i].rate;
                beaten = beaten || (!worse && !same);
                if (on[i] && on[k] && points[k].latency_s > points[i].latency_s)
                    assert_true(points[k].rate > points[i].rate);
            }
            assert_int_equal(on[i], !beaten);
        }
    }
}

/* T = a + b·B and B/T: the knee is at B = a/b. */
static void a_knee_is_where_latency_has_doubled(void **state)
{
    (void)state;
    for (uint32_t bend = 1; bend <= POINTS_MAX; bend++) {
        struct frontier_point points[POINTS_MAX];
        for (uint32_t i = 0; i < POINTS_MAX; i++) {
            double const batch = i + 1, latency_s = 1 + batch / bend;
            points[i] = (struct frontier_point){latency_s, batch / latency_s, true};
        }
        assert_int_equal(frontier_knee(points, POINTS_MAX), bend - 1);
        points[bend - 1].is = false;
        assert_int_not_equal(frontier_knee(points, POINTS_MAX), bend - 1);
    }
    struct frontier_point const none[] = {{1, 1, false}}, equal[] = {{1, 1, true}, {1, 1, true}};
    assert_int_equal(frontier_knee(none, 1), frontier_none);
    assert_int_equal(frontier_knee(none, 0), frontier_none);
    assert_int_equal(frontier_knee(equal, 2), 0);
}

/* The book's figure 8.1, whose formula does bend: 70.4 G parameters in int8, 2,048 tokens in the
 * cache, 16 v5e. The step is a + b·B up to B_crit, and a/b is 209, so the knee is B_crit or, on
 * powers of 2, the one behind it. */
static void the_books_curve_bends_where_math_takes_over(void **state)
{
    (void)state;
    struct inference_model const model = {
        .parameters = 70.4e9, .parameter_bytes = 70.4e9, .kv_bytes_per_token = 163840};
    struct inference_chips const chips = {.count = 16,
                                          .flop_per_s = 197e12,
                                          .hbm_bytes_per_s = 810e9,
                                          .hbm_bytes = 16e9,
                                          .attention_flop_per_s = 197e12};
    struct frontier_point points[10], fine[553];
    for (uint32_t i = 0; i < 10; i++) {
        double const batch = 1u << i;
        double const step_s = inference_pass(&model, &chips, batch, 0, batch * 2048).step_s;
        points[i] = (struct frontier_point){step_s, batch / step_s / 16, true};
    }
    for (uint32_t i = 0; i < 553; i++) {
        double const batch = i + 1;
        double const step_s = inference_pass(&model, &chips, batch, 0, batch * 2048).step_s;
        fine[i] = (struct frontier_point){step_s, batch / step_s / 16, true};
    }
    assert_int_equal(points[frontier_knee(points, 10)].rate, 885);
    assert_int_equal(frontier_knee(fine, 553) + 1,
                     (uint32_t)inference_critical_tokens(1, 197e12, 810e9));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_another_beats_is_not_on_the_frontier),
        cmocka_unit_test(frontiers_rise),
        cmocka_unit_test(a_knee_is_where_latency_has_doubled),
        cmocka_unit_test(the_books_curve_bends_where_math_takes_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
