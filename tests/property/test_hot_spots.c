/*
 * A permutation through leaves and spines, where leaves have as many cables up as they have chips:
 * spread over all cables, or along rails, it takes one message's time. Where a hash of its ends
 * names each flow's cable, flows collide as balls that fall into bins; how much the fullest cable
 * then carries is computed here from the statistics alone.
 */
#include "sim/base/units.h"
#include "sim/measure/measure_row.h"
#include "tests/support/case.h"
#include "tests/support/exchange.h"
#include "tests/support/scene.h"

enum { LEAVES = 12, CHIPS = 16, BALLS_MAX = 32, RUNS = 60, LATENCY_PS = 200000 };

static const uint64_t cable_bytes_per_s = UINT64_C(50000000000);
static const uint64_t message_bytes = 1000000;

static void shuffle(uint32_t *values, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) values[i] = i;
    for (uint32_t i = count; i > 1; i--) {
        uint32_t const j = case_below(i), kept = values[i - 1];
        values[i - 1] = values[j];
        values[j] = kept;
    }
}

/* Every chip sends to another leaf, and every leaf receives from as many as it has chips. Rails: to
 * the chip at the same place. */
static void permutation_draw(bool rails, uint32_t target[LEAVES * CHIPS])
{
    uint32_t place[CHIPS], at[LEAVES][CHIPS], next[LEAVES] = {0};
    shuffle(place, CHIPS);
    for (uint32_t leaf = 0; leaf < LEAVES; leaf++) shuffle(at[leaf], CHIPS);
    for (uint32_t leaf = 0; leaf < LEAVES; leaf++) {
        for (uint32_t p = 0; p < CHIPS; p++) {
            uint32_t const to = (leaf + 1 + place[p] % (LEAVES - 1)) % LEAVES;
            target[leaf * CHIPS + p] = to * CHIPS + (rails ? p : at[to][next[to]++]);
        }
    }
}

static struct trace permutation_play(enum level_policy policy, bool rails)
{
    uint32_t target[LEAVES * CHIPS];
    struct scene scene;
    permutation_draw(rails, target);
    exchange_target = target;
    scene_open_axes(&scene, (const uint32_t[]){LEAVES * CHIPS, 1, 1, 1}, 0);
    struct level *level = scene_level(&scene, "InfiniBand", 0);
    (void)scene_tier(level, (const uint32_t[]){CHIPS, 1, 1, 1}, 1, cable_bytes_per_s, LATENCY_PS);
    scene_tier(level, scene.machine.shape, CHIPS, cable_bytes_per_s, LATENCY_PS)->policy = policy;
    struct group const group = {.dimension = {scene_dimension(&scene, 0)}, .dimension_count = 1};
    (void)scene_routed(&scene, scene_stream(&scene, "permutation"), &exchange_permutation, &group,
                       false, message_bytes / 2, 1);
    struct trace const trace = scene_run(&scene, 1, true, false);
    scene_close(&scene);
    return trace;
}

static int64_t message_ps(void)
{
    return units_duration_ps(message_bytes, cable_bytes_per_s);
}

static void spread_or_on_rails_nothing_is_lost(void **state)
{
    (void)state;
    for (uint32_t run = 0; run < 8; run++) {
        assert_int_equal(permutation_play(LEVEL_SPRAY, false).step_ps,
                         message_ps() + 4 * LATENCY_PS);
        assert_int_equal(permutation_play(LEVEL_RAIL, true).step_ps, message_ps() + 4 * LATENCY_PS);
    }
}

/* How likely it is that of `balls` in as many bins no bin has more than `most`: the coefficient of
 * x^balls in (sum over i to most of x^i / i!)^bins, times balls! / bins^balls. */
static double none_above(uint32_t balls, uint32_t most)
{
    double way[BALLS_MAX + 1] = {1.0};
    for (uint32_t bin = 0; bin < balls; bin++) {
        double next[BALLS_MAX + 1] = {0.0};
        for (uint32_t held = 0; held <= balls; held++) {
            double share = 1.0;
            for (uint32_t i = 0; i <= most && held + i <= balls; i++) {
                next[held + i] += way[held] * share;
                share /= (i + 1) * (double)balls;
            }
        }
        for (uint32_t held = 0; held <= balls; held++) way[held] = next[held];
    }
    double result = way[balls];
    for (uint32_t i = 2; i <= balls; i++) result *= i;
    return result;
}

/* What the fullest cable of all leaves carries on average, where each has as many flows as cables.
 */
static double expected_most(uint32_t leaves, uint32_t chips)
{
    double expected = 0.0;
    for (uint32_t most = 0; most < chips; most++) {
        double all = 1.0;
        for (uint32_t leaf = 0; leaf < leaves; leaf++) all *= none_above(chips, most);
        expected += 1.0 - all;
    }
    return expected;
}

static void hashed_flows_collide_as_balls_in_bins_do(void **state)
{
    (void)state;
    double up = 0.0, down = 0.0, step = 0.0;
    for (uint32_t run = 0; run < RUNS; run++) {
        struct trace const trace = permutation_play(LEVEL_HASH, false);
        int64_t const up_ps = trace.link[machine_level_port(0, 1, false)].busy_ps;
        int64_t const down_ps = trace.link[machine_level_port(0, 1, true)].busy_ps;
        int64_t const most_ps = up_ps > down_ps ? up_ps : down_ps;
        assert_int_equal(up_ps % message_ps(), 0);
        assert_true(trace.step_ps >= most_ps + 4 * LATENCY_PS);
        assert_true(trace.step_ps <= up_ps + down_ps + 4 * LATENCY_PS);
        up += (double)up_ps / (double)message_ps() / RUNS;
        down += (double)down_ps / (double)message_ps() / RUNS;
        step += (double)trace.step_ps / (double)message_ps() / RUNS;
    }
    double const expected = expected_most(LEAVES, CHIPS);
    print_message("    fullest cable: %.2f up, %.2f down, %.2f expected; the step takes %.2f\n", up,
                  down, expected, step);
    /* Its standard deviation is some 0.7, of the mean of so many runs 0.1. */
    assert_true(up > expected - 0.3 && up < expected + 0.3);
    assert_true(down > expected - 0.3 && down < expected + 0.3);
}

static int64_t shift_ps(const char *spec, uint32_t shift, uint64_t size_bytes)
{
    struct machine const machine = case_machine(spec);
    struct measure_row_args const args = {.machine = &machine,
                                          .operation = MEASURE_SENDRECV,
                                          .shift = shift,
                                          .group = case_group(&machine, NULL)};
    const struct measure_row_choice *choice = NULL;
    struct measured measured;
    case_ok(measure_row_choose(case_arena, &args, size_bytes, NULL, "/row", &choice, &case_error));
    case_ok(measure_run(case_arena, &machine, &choice->request, 1, "/row",
                        &(struct measure_options){.engine = "fast"}, &measured, &case_error));
    return measured.time_ps[0];
}

/* A scalable unit of H100s: 8 leaves, one for each GPU of a node, 32 cables up from each. A shift
 * to another GPU of another node has all 32 flows of a leaf go to one other, each way along the
 * same cables; one within the rail stays below its leaf. */
static void shifts_on_a_cluster_collide_too(void **state)
{
    (void)state;
    enum { NODES = 32, RAILS = 8, STEP = 3 };
    uint64_t const size_bytes = 16 << 20;
    int64_t const alone_ps = units_duration_ps(size_bytes, cable_bytes_per_s);
    double mean = 0.0;
    uint32_t count = 0;
    for (uint32_t node = 1; node < NODES; node += STEP) {
        for (uint32_t rail = 0; rail < RAILS; rail++) {
            uint32_t const shift = node * RAILS + rail;
            int64_t const hash_ps = shift_ps("h100-sxm:nodes=32,policy=hash", shift, size_bytes);
            int64_t const spray_ps = shift_ps("h100-sxm:nodes=32,policy=spray", shift, size_bytes);
            assert_in_range(spray_ps, alone_ps, alone_ps + 3 * TIME_PS_PER_US);
            assert_int_equal(shift_ps("h100-sxm:nodes=32,policy=rail", shift, size_bytes),
                             spray_ps);
            if (rail == 0) {
                assert_int_equal(hash_ps, spray_ps);
                continue;
            }
            assert_int_equal((hash_ps - spray_ps) % alone_ps, 0);
            mean += (double)hash_ps / (double)alone_ps;
            count++;
        }
    }
    mean /= count;
    double const expected = expected_most(RAILS, NODES);
    print_message("    a scalable unit: %.2f times, %.2f expected\n", mean, expected);
    assert_true(mean > expected - 0.2 && mean < expected + 0.2);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(spread_or_on_rails_nothing_is_lost),
        cmocka_unit_test(hashed_flows_collide_as_balls_in_bins_do),
        cmocka_unit_test(shifts_on_a_cluster_collide_too),
    };
    return cmocka_run_group_tests_name("hot spots", tests, case_arena_up, case_arena_down);
}
