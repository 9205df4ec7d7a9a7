/*
 * Collectives played through queues meet their closed forms on an idle ideal machine, to the
 * nanosecond (book, chapter 3, with the finite factors that it drops); folded and full agree.
 */
#include <stdlib.h>

#include "sim/base/units.h"
#include "tests/support/case.h"
#include "tests/support/scene.h"

static const double link_bytes_per_s = 1e11;
static const double hop_ps = 1e6;

static int64_t played_ps(uint32_t x, uint32_t y, uint32_t z, bool wrap, enum collective_kind kind,
                         bool on_x, bool on_y, bool on_z, uint64_t size_bytes,
                         const char *algorithm, bool full, uint64_t *ret_digest)
{
    struct scene scene;
    scene_open(&scene, x, y, z, wrap);
    uint32_t const stream = scene_stream(&scene, "collective");
    (void)scene_collective(&scene, stream, kind, scene_group(&scene, on_x, on_y, on_z), size_bytes,
                           algorithm, 0);
    struct trace const trace = scene_run(&scene, 1, full, false);
    if (ret_digest != NULL) *ret_digest = trace.digest;
    scene_close(&scene);
    return trace.step_ps;
}

static void assert_within_ps(double wanted_ps, int64_t got_ps, double slack_ps)
{
    double const off_ps = (double)got_ps - wanted_ps;
    if (off_ps < -slack_ps || off_ps > slack_ps)
        fail_msg("wanted %.0f ps, got %lld ps", wanted_ps, (long long)got_ps);
}

/* Sizes that divide evenly and one that does not: the padding is below a nanosecond's bytes. */
static const uint64_t sizes[] = {UINT64_C(1) << 20, UINT64_C(1) << 27, UINT64_C(999999937)};

static void a_ring_of_any_size_meets_its_closed_form(void **state)
{
    (void)state;
    for (uint32_t n = 3; n <= 33; n++) {
        for (uint32_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            double const v = (double)sizes[i];
            double const gather_ps =
                v * (n - 1) / n / (2 * link_bytes_per_s) * 1e12 + (double)(n / 2) * hop_ps;
            /* Units are rounded up to a byte, n/2 times on the way. */
            double const slack_ps = 1000 + n * 10;
            assert_within_ps(gather_ps,
                             played_ps(n, 1, 1, true, COLLECTIVE_ALL_GATHER, true, false, false,
                                       sizes[i], NULL, false, NULL),
                             slack_ps);
            assert_within_ps(gather_ps,
                             played_ps(n, 1, 1, true, COLLECTIVE_REDUCE_SCATTER, true, false, false,
                                       sizes[i], NULL, false, NULL),
                             slack_ps);
            assert_within_ps(2 * gather_ps,
                             played_ps(n, 1, 1, true, COLLECTIVE_ALL_REDUCE, true, false, false,
                                       sizes[i], NULL, false, NULL),
                             2 * slack_ps);
            double const one_way_ps = v * (n - 1) / n / link_bytes_per_s * 1e12 + (n - 1) * hop_ps;
            assert_within_ps(one_way_ps,
                             played_ps(n, 1, 1, true, COLLECTIVE_ALL_GATHER, true, false, false,
                                       sizes[i], "ring-one-way", false, NULL),
                             2 * slack_ps);
        }
    }
}

static void a_line_meets_its_closed_form(void **state)
{
    (void)state;
    for (uint32_t n = 2; n <= 17; n++) {
        for (uint32_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            double const line_ps =
                (double)sizes[i] * (n - 1) / n / link_bytes_per_s * 1e12 + (n - 1) * hop_ps;
            double const slack_ps = 1000 + n * 20;
            assert_within_ps(line_ps,
                             played_ps(n, 1, 1, false, COLLECTIVE_ALL_GATHER, true, false, false,
                                       sizes[i], NULL, false, NULL),
                             slack_ps);
            assert_within_ps(line_ps,
                             played_ps(n, 1, 1, false, COLLECTIVE_REDUCE_SCATTER, true, false,
                                       false, sizes[i], NULL, false, NULL),
                             slack_ps);
        }
    }
}

static void all_to_all_of_an_even_ring_takes_an_eighth(void **state)
{
    (void)state;
    for (uint32_t n = 4; n <= 32; n += 2) {
        double const wanted_ps =
            (double)(UINT64_C(1) << 30) / (8 * link_bytes_per_s) * 1e12 + (double)(n / 2) * hop_ps;
        assert_within_ps(wanted_ps,
                         played_ps(n, 1, 1, true, COLLECTIVE_ALL_TO_ALL, true, false, false,
                                   UINT64_C(1) << 30, NULL, false, NULL),
                         1000 + n * n * 10);
    }
}

/* The two chips of each of four lines have 2.5 GB for each other, in 32 pieces. Nothing is waited
 * for, and a hop takes longer than all pieces, so that all are under way at once. A slow link
 * leaves the others as full, and another of its rate, which carries nothing, is one of its kind.
 * The engine counts on the bound of what is under way: a run that has more aborts. */
static void all_pieces_may_be_under_way_at_once(void **state)
{
    (void)state;
    static const struct machine_link_override slow[] = {
        {.from = {0, 0, 0, 0}, .to = {0, 1, 0, 0}, .bytes_per_s = UINT64_C(10000000)},
        {.from = {1, 0, 0, 0}, .to = {0, 0, 0, 0}, .bytes_per_s = UINT64_C(10000000)}};
    double const bytes = 2.5e9;
    for (uint32_t overridden = 0; overridden < 2; overridden++) {
        struct scene scene;
        scene_open(&scene, 2, 4, 1, false);
        scene.arbitration = ARBITRATION_FIFO;
        scene.machine.chip.hop_latency_ps = TIME_PS_PER_S;
        scene.machine.links = slow;
        scene.machine.link_override_count = 2 * overridden;
        uint32_t const stream = scene_stream(&scene, "collective");
        (void)scene_collective(&scene, stream, COLLECTIVE_ALL_TO_ALL,
                               scene_group(&scene, true, false, false), (uint64_t)(4 * bytes),
                               "line", 0);
        assert_int_equal(scene.plan[0].item[0].piece_count, 32);
        struct trace const trace = scene_run_alike(&scene, 1);
        double const rate = overridden == 1 ? (double)slow[1].bytes_per_s : link_bytes_per_s;
        assert_within_ps(bytes / rate * 1e12 + (double)TIME_PS_PER_S, trace.step_ps, 1e6);
        scene_close(&scene);
    }
}

static void equal_axes_at_once_are_exact_and_unequal_within_five_percent(void **state)
{
    (void)state;
    static const struct {
        uint32_t x, y, z;
        double slack; /* Of the bound. */
    } grids[] = {{4, 4, 4, 1e-6}, {8, 8, 8, 1e-6},    {16, 16, 1, 1e-6}, {16, 16, 16, 1e-6},
                 {4, 4, 8, 0.05}, {16, 20, 28, 0.05}, {4, 16, 1, 0.05},  {8, 16, 1, 0.05}};
    for (uint32_t i = 0; i < sizeof grids / sizeof *grids; i++) {
        uint32_t const x = grids[i].x, y = grids[i].y, z = grids[i].z;
        double const n = (double)x * y * z, axes = z == 1 ? 2 : 3;
        double const v = 3 * 268435456.0; /* Divides evenly on the equal axes. */
        double const bound_ps = v * (n - 1) / n / (2 * link_bytes_per_s * axes) * 1e12 +
                                (double)(x / 2 + y / 2 + z / 2) * hop_ps;
        int64_t const gather_ps = played_ps(x, y, z, true, COLLECTIVE_ALL_GATHER, true, true, true,
                                            (uint64_t)v, NULL, false, NULL);
        int64_t const scatter_ps = played_ps(x, y, z, true, COLLECTIVE_REDUCE_SCATTER, true, true,
                                             true, (uint64_t)v, NULL, false, NULL);
        assert_true((double)gather_ps >= bound_ps - 1000);
        assert_within_ps(bound_ps, gather_ps, bound_ps * grids[i].slack + 1000);
        assert_within_ps(bound_ps, scatter_ps, bound_ps * grids[i].slack + 1000);
    }
}

static void time_against_size_bends_where_the_hop_latency_says(void **state)
{
    (void)state;
    uint32_t const n = 16;
    /* A step takes chunk/w + hop: half of the time is latency where a chunk is w · hop. */
    uint64_t const knee_bytes = 100000 * n;
    int64_t const tiny_ps =
        played_ps(n, 1, 1, true, COLLECTIVE_ALL_GATHER, true, false, false, 32, NULL, false, NULL);
    int64_t const knee_ps = played_ps(n, 1, 1, true, COLLECTIVE_ALL_GATHER, true, false, false,
                                      knee_bytes, NULL, false, NULL);
    assert_within_ps(8 * hop_ps, tiny_ps, 1000);
    assert_within_ps(8 * hop_ps + 7.5 * hop_ps, knee_ps, 1000);
}

static void folded_and_full_agree_to_the_picosecond(void **state)
{
    (void)state;
    static const struct {
        uint32_t x, y, z;
        bool wrap;
    } grids[] = {
        {4, 4, 4, true}, {4, 4, 8, true}, {5, 3, 1, true}, {4, 3, 2, false}, {6, 4, 1, true}};
    static const enum collective_kind kinds[] = {COLLECTIVE_ALL_GATHER, COLLECTIVE_REDUCE_SCATTER,
                                                 COLLECTIVE_ALL_REDUCE, COLLECTIVE_ALL_TO_ALL};
    for (uint32_t i = 0; i < sizeof grids / sizeof *grids; i++) {
        for (uint32_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            for (uint32_t axes = 1; axes < 8; axes++) {
                bool const x = axes & 1, y = axes & 2, z = axes & 4;
                if (!(x && grids[i].x > 1) && !(y && grids[i].y > 1) && !(z && grids[i].z > 1))
                    continue;
                int64_t const folded_ps =
                    played_ps(grids[i].x, grids[i].y, grids[i].z, grids[i].wrap, kinds[k], x, y, z,
                              12345678, NULL, false, NULL);
                int64_t const full_ps = played_ps(grids[i].x, grids[i].y, grids[i].z, grids[i].wrap,
                                                  kinds[k], x, y, z, 12345678, NULL, true, NULL);
                assert_int_equal(folded_ps, full_ps);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ring_of_any_size_meets_its_closed_form),
        cmocka_unit_test(a_line_meets_its_closed_form),
        cmocka_unit_test(all_to_all_of_an_even_ring_takes_an_eighth),
        cmocka_unit_test(all_pieces_may_be_under_way_at_once),
        cmocka_unit_test(equal_axes_at_once_are_exact_and_unequal_within_five_percent),
        cmocka_unit_test(time_against_size_bends_where_the_hop_latency_says),
        cmocka_unit_test(folded_and_full_agree_to_the_picosecond),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
