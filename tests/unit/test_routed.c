/*
 * Messages that name their receivers, on levels of switches and on grids: closed forms to the
 * nanosecond, folded and full to the picosecond, fast and reference queue to the digest.
 */
#include <string.h>

#include "sim/base/units.h"
#include "tests/support/case.h"
#include "tests/support/exchange.h"
#include "tests/support/scene.h"

static const uint64_t node_bytes_per_s = UINT64_C(450000000000);

static struct group group_of(const struct scene *scene, uint32_t axes)
{
    struct group group = {.dimension_count = 0};
    for (uint32_t axis = 0; axis < MACHINE_AXES_MAX; axis++)
        if (axes >> axis & 1 && scene->machine.shape[axis] > 1)
            group.dimension[group.dimension_count++] = scene_dimension(scene, axis);
    return group;
}

static void a_node_takes_its_bytes_and_one_latency(void **state)
{
    (void)state;
    for (uint32_t n = 2; n <= 72; n += n < 9 ? 1 : 9) {
        uint64_t const chunk_bytes = 1 << 20;
        struct scene scene;
        scene_open_node(&scene, n);
        struct group const group = group_of(&scene, 1);
        (void)scene_routed(&scene, scene_stream(&scene, "exchange"), &exchange_direct, &group,
                           false, chunk_bytes / 2, 1);
        struct trace const trace = scene_run_alike(&scene, 1);
        int64_t const message_ps = units_duration_ps(chunk_bytes, node_bytes_per_s);
        assert_int_equal(trace.step_ps, (n - 1) * message_ps + TIME_PS_PER_US);
        const struct trace_link *up = &trace.link[machine_level_port(0, 0, false)];
        const struct trace_link *down = &trace.link[machine_level_port(0, 0, true)];
        assert_int_equal(up->sum_bytes, n * (n - 1) * chunk_bytes);
        assert_int_equal(down->sum_bytes, up->sum_bytes);
        assert_int_equal(up->link_count, n);
        assert_int_equal(down->busy_ps, (n - 1) * message_ps);
        assert_int_equal(trace.work.transfers, 2 * n * (n - 1));
        assert_int_equal(scene_run(&scene, 1, false, false).fold.replayed, 1);
        scene_close(&scene);
    }
}

/* Units of 8 below a leaf, leaves below a spine; all switches copy and add. */
static void open_tree(struct scene *scene, uint32_t leaves, uint64_t up_bytes_per_s)
{
    scene_open_axes(scene, (const uint32_t[]){8 * leaves, 1, 1, 1}, 0);
    struct level *level = scene_level(scene, "InfiniBand", 0);
    (void)scene_tier(level, (const uint32_t[]){8, 1, 1, 1}, 1, UINT64_C(50000000000), 300000);
    (void)scene_tier(level, scene->machine.shape, 8, up_bytes_per_s, 200000);
    for (uint32_t t = 0; t < 2; t++) {
        level->tier[t].multicasts = true;
        level->tier[t].reduce_flop_per_s = UINT64_C(1000000000000000);
    }
}

static int64_t sharp_ps(struct scene *scene, enum collective_kind kind, uint64_t unit_bytes,
                        uint32_t pieces)
{
    struct group const group = group_of(scene, 1);
    const struct primitive *primitive = primitive_find(kind, PRIMITIVE_SHARP, true);
    scene_clear(scene);
    (void)scene_routed(scene, scene_stream(scene, "sharp"), primitive, &group, false, unit_bytes,
                       pieces);
    return scene_run_alike(scene, 3).step_ps / 3;
}

static void switches_that_add_take_an_array_and_one_latency(void **state)
{
    (void)state;
    for (uint32_t n = 2; n <= 16; n++) {
        uint64_t const unit_bytes = 450000;
        struct scene scene;
        scene_open_node(&scene, n);
        scene.machine.level[0].tier[0].multicasts = true;
        scene.machine.level[0].tier[0].reduce_flop_per_s = UINT64_C(1000000000000000);
        int64_t const chunk_ps = units_duration_ps(2 * unit_bytes, node_bytes_per_s);
        assert_int_equal(sharp_ps(&scene, COLLECTIVE_ALL_REDUCE, unit_bytes, 1),
                         n * chunk_ps + TIME_PS_PER_US);
        assert_int_equal(sharp_ps(&scene, COLLECTIVE_ALL_GATHER, unit_bytes, 1),
                         (n - 1) * chunk_ps + TIME_PS_PER_US);
        assert_int_equal(sharp_ps(&scene, COLLECTIVE_REDUCE_SCATTER, unit_bytes, 1),
                         (n - 1) * chunk_ps + TIME_PS_PER_US);
        /* Adders at a quarter of what the cables bring. */
        scene.machine.level[0].tier[0].reduce_flop_per_s = (n - 1) * node_bytes_per_s / 2 / 4;
        int64_t const slow_ps = sharp_ps(&scene, COLLECTIVE_ALL_REDUCE, unit_bytes, 1);
        assert_in_range(slow_ps, 4 * n * chunk_ps + TIME_PS_PER_US - 10,
                        4 * n * chunk_ps + TIME_PS_PER_US + 10);
        scene_close(&scene);
    }
}

static void sums_join_tier_by_tier(void **state)
{
    (void)state;
    for (uint32_t leaves = 2; leaves <= 5; leaves++) {
        struct scene scene;
        open_tree(&scene, leaves, UINT64_C(50000000000));
        int64_t const chunk_ps = 20000000, way_ps = 1000000; /* 1 MB at 50 GB/s. */
        int64_t const size = 8 * leaves;
        assert_int_equal(sharp_ps(&scene, COLLECTIVE_ALL_REDUCE, 500000, 1),
                         size * chunk_ps + way_ps);
        /* A receiver's cable is never idle once the first copy, from its own leaf, is there. */
        assert_int_equal(sharp_ps(&scene, COLLECTIVE_ALL_GATHER, 500000, 1),
                         (size - 1) * chunk_ps + way_ps - 2 * 200000);
        /* One sum goes up from each leaf: even thin cables to the spine are fast enough. */
        scene_close(&scene);
        open_tree(&scene, leaves, UINT64_C(50000000000) / 8);
        assert_int_equal(sharp_ps(&scene, COLLECTIVE_ALL_REDUCE, 500000, 1),
                         size * chunk_ps + way_ps);
        scene_close(&scene);
    }
}

/* The first chip sends to all others whenever it has computed; one of them computes far slower. */
static enum status root_ahead(uint32_t repeat, struct trace *ret_trace, struct error *reterr)
{
    struct machine_chip_override const slow = {.at = {5}, .math_ppm = 50000, .hbm_ppm = PPM_ONE};
    struct scene scene;
    scene_open_node(&scene, 8);
    case_override_chips(scene.arena, &scene.machine, &slow, 1);
    struct group const group = group_of(&scene, 1);
    uint32_t const compute = scene_compute(&scene, UINT64_C(1000000000), 1);
    uint32_t const stream = scene_stream(&scene, "broadcast");
    uint32_t const op = scene_routed(&scene, stream, &exchange_root, &group, false, 1000, 1);
    scene_need(&scene, op, compute, 0);
    enum status const status = scene_try(&scene, repeat, false, false, ret_trace, reterr);
    scene_close(&scene);
    return status;
}

static void a_root_may_be_a_few_collectives_ahead_and_no_more(void **state)
{
    (void)state;
    struct trace trace;
    for (uint32_t repeat = 1; repeat <= 3; repeat++) {
        case_ok(root_ahead(repeat, &trace, &case_error));
        /* The slow chip takes 20 us a time, whatever has come for it meanwhile. */
        assert_in_range(trace.step_ps, repeat * 20 * TIME_PS_PER_US,
                        repeat * 20 * TIME_PS_PER_US + 3 * TIME_PS_PER_US);
    }
    case_refused(root_ahead(12, &trace, &case_error), STATUS_LIMIT, NULL,
                 "chip 5 is more than 3 collectives");
}

/* A permutation on a ring of the grid by messages that go half way round: both ways carry the same.
 */
static void half_way_round_both_ways_carry_the_same(void **state)
{
    (void)state;
    for (uint32_t n = 4; n <= 8; n += 4) {
        struct scene scene;
        scene_open(&scene, n, 1, 1, true);
        struct group const group = scene_group(&scene, true, false, false);
        (void)scene_routed(&scene, scene_stream(&scene, "exchange"), &exchange_direct, &group,
                           false, 1000, 1);
        struct trace const trace = scene_run_alike(&scene, 2);
        assert_int_equal(trace.link[0].sum_bytes, trace.link[1].sum_bytes);
        assert_int_equal(trace.link[0].bytes, trace.link[0].sum_bytes / n);
        scene_close(&scene);
    }
}

/* Along an axis that an exchange does not cover all chips are alike; along its own, who sends half
 * way round one way and who the other. */
static void only_the_axis_of_an_exchange_has_antipodes(void **state)
{
    (void)state;
    struct scene scene;
    scene_open(&scene, 4, 4, 1, true);
    struct group const group = scene_group(&scene, true, false, false);
    (void)scene_routed(&scene, scene_stream(&scene, "exchange"), &exchange_direct, &group, false,
                       1000, 1);
    (void)scene_run_alike(&scene, 1);
    assert_int_equal(scene_run(&scene, 1, false, false).fold.replayed, 2);
    scene_close(&scene);
}

/* All pairs of a ring of 7, or of a cube of 27, of which one chip comes late. */
static struct trace late_exchange(bool cube, const struct machine_link_override *link)
{
    static const struct machine_chip_override late = {
        .at = {2, 0, 0, 0}, .math_ppm = PPM_ONE / 2, .hbm_ppm = PPM_ONE};
    struct scene scene;
    scene_open(&scene, cube ? 3 : 7, cube ? 3 : 1, cube ? 3 : 1, true);
    struct group const group = scene_group(&scene, true, cube, cube);
    case_override_chips(scene.arena, &scene.machine, &late, 1);
    scene.machine.links = link;
    scene.machine.link_override_count = link != NULL;
    uint32_t const work = scene_compute(&scene, UINT64_C(3000000000), 1); /* 3 us, or 6. */
    uint32_t const exchange =
        scene_routed(&scene, scene_stream(&scene, "exchange"),
                     cube ? &exchange_lanes : &exchange_direct, &group, cube, 50000, 1);
    scene_need(&scene, exchange, work, 0);
    struct trace const trace = scene_run_alike(&scene, 1);
    scene_close(&scene);
    return trace;
}

/* Where all links are alike, messages of a number take the same turns and are looked up together,
 * else one by one. A link with a byte a second more is no faster by a picosecond. The chip that
 * comes late is heard of by whose messages it passes on. */
static void ways_looked_up_together_are_those_looked_up_one_by_one(void **state)
{
    (void)state;
    static const struct machine_link_override link = {
        .from = {1, 0, 0, 0}, .to = {2, 0, 0, 0}, .bytes_per_s = UINT64_C(100000000001)};
    for (uint32_t cube = 0; cube < 2; cube++) {
        struct trace const together = late_exchange(cube == 1, NULL);
        struct trace const one_by_one = late_exchange(cube == 1, &link);
        assert_int_equal(together.step_ps, one_by_one.step_ps);
        assert_int_equal(together.digest, one_by_one.digest);
    }
}

static void torus_exchange_of_all_pairs_folds_to_one_chip(void **state)
{
    (void)state;
    for (uint32_t n = 4; n <= 8; n += 4) {
        struct scene scene;
        scene_open(&scene, n, n, n, true);
        struct group const group = scene_group(&scene, true, true, true);
        (void)scene_routed(&scene, scene_stream(&scene, "exchange"), &exchange_lanes, &group, true,
                           50000, 1);
        struct trace const full = scene_run(&scene, 1, true, false);
        struct trace const folded = scene_run(&scene, 1, false, false);
        assert_int_equal(full.step_ps, folded.step_ps);
        assert_int_equal(folded.fold.replayed, 1);
        /* A message takes n/4 links an axis and way on average over all pairs, itself included. */
        uint64_t const bytes = (uint64_t)n * n * n * 100000 * n / 8;
        for (uint32_t port = 0; port < 6; port++) assert_int_equal(full.link[port].bytes, bytes);
        assert_true(full.step_ps >= units_duration_ps(bytes, UINT64_C(100000000000)));
        scene_close(&scene);
    }
}

/* Partners at doubling distance are the same half a ring on, a ring over all positions is the same
 * a step on along its slowest digit. */
static void what_repeats_after_a_shift_folds_to_it(void **state)
{
    (void)state;
    static const struct {
        enum collective_kind kind;
        enum primitive_family family;
        bool flat;
        uint64_t chips_replayed;
    } cases[] = {
        {COLLECTIVE_ALL_REDUCE, PRIMITIVE_RECURSIVE_DOUBLING, false, 4},
        {COLLECTIVE_ALL_GATHER, PRIMITIVE_RECURSIVE, true, 4 * 2 * 2},
        {COLLECTIVE_REDUCE_SCATTER, PRIMITIVE_RECURSIVE, true, 4 * 2 * 2},
        {COLLECTIVE_ALL_GATHER, PRIMITIVE_RING, true, 4 * 4},
        {COLLECTIVE_ALL_REDUCE, PRIMITIVE_TREE, true, 8 * 4 * 4},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct scene scene;
        scene_open(&scene, 8, 4, 4, true);
        struct group const group = scene_group(&scene, true, cases[i].flat, cases[i].flat);
        (void)scene_routed(&scene, scene_stream(&scene, "collective"),
                           primitive_find(cases[i].kind, cases[i].family, true), &group,
                           cases[i].flat, 5000, 2);
        (void)scene_run_alike(&scene, 2);
        assert_int_equal(scene_run(&scene, 2, false, false).fold.replayed, cases[i].chips_replayed);
        scene_close(&scene);
    }
}

/* Units within units on both levels, and copies to the host, beside which only periods fold. */
static void each_level_in_use_keeps_its_units(void **state)
{
    (void)state;
    static const uint32_t replayed[] = {2, 4 * 4};
    for (uint32_t axis = 0; axis < 2; axis++) {
        static const uint32_t shape[] = {4, 8, 1, 1};
        static const uint32_t boxes[][MACHINE_AXES_MAX] = {
            {2, 1, 1, 1}, {4, 1, 1, 1}, {4, 2, 1, 1}, {4, 4, 1, 1}, {4, 8, 1, 1}};
        struct scene scene;
        scene_open_axes(&scene, shape, 0);
        struct level *node = scene_level(&scene, "node", 0);
        for (uint32_t t = 0; t < 2; t++)
            (void)scene_tier(node, boxes[t], 1, UINT64_C(100000000000), 250000);
        struct level *network = scene_level(&scene, "network", 1);
        for (uint32_t t = 2; t < 5; t++)
            (void)scene_tier(network, boxes[t], 1, UINT64_C(50000000000), 250000);
        scene_host(&scene, UINT64_C(50000000000), 250000, 1);
        (void)scene_copy(&scene, PROGRAM_STREAMS_MAX, true, 1000000);
        struct group const group = {.dimension[0] = scene_dimension(&scene, axis),
                                    .dimension_count = 1};
        (void)scene_routed(&scene, scene_stream(&scene, "exchange"), &exchange_direct, &group,
                           false, 50000, 1);
        struct trace const full = scene_run(&scene, 1, true, false);
        struct trace const folded = scene_run(&scene, 1, false, false);
        assert_int_equal(full.step_ps, folded.step_ps);
        assert_int_equal(folded.fold.replayed, replayed[axis]);
        scene_close(&scene);
    }
}

static void a_machine_that_cannot_is_refused(void **state)
{
    (void)state;
    struct trace trace;
    struct scene scene;
    scene_open_node(&scene, 8);
    struct group const group = group_of(&scene, 1);
    (void)scene_routed(&scene, scene_stream(&scene, "sharp"),
                       primitive_find(COLLECTIVE_ALL_REDUCE, PRIMITIVE_SHARP, true), &group, false,
                       1000, 1);
    case_refused(scene_try(&scene, 1, false, false, &trace, &case_error), STATUS_UNSUPPORTED, NULL,
                 "needs switches that copy messages, and a switch of");
    scene.machine.level[0].tier[0].multicasts = true;
    case_refused(scene_try(&scene, 1, false, false, &trace, &case_error), STATUS_UNSUPPORTED, NULL,
                 "needs switches that add messages");
    scene.machine.level[0].tier[0].box[0] = 4; /* Two nodes that nothing joins. */
    case_refused(scene_try(&scene, 1, false, false, &trace, &case_error), STATUS_UNSUPPORTED, NULL,
                 "no level of the machine joins all 8 members");
    scene_close(&scene);
}

/* A key of an event has 30 bits for the hop, the message and who sends it: on a ring of 255 a
 * message takes up to 127 links, so 8 bits are left to the hop and 22 to 254 messages a piece. */
static void more_messages_than_keys_tell_apart_are_refused(void **state)
{
    (void)state;
    struct trace trace;
    struct scene scene;
    scene_open(&scene, 255, 1, 1, true);
    struct group const group = scene_group(&scene, true, false, false);
    (void)scene_routed(&scene, scene_stream(&scene, "exchange"), &exchange_direct, &group, false,
                       1000, (1u << 22) / 254 + 1);
    case_refused(scene_try(&scene, 1, false, false, &trace, &case_error), STATUS_LIMIT, "/workload",
                 "over 255 ranks, of 4194556 messages a rank, is more than the order of events");
    scene_close(&scene);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_node_takes_its_bytes_and_one_latency),
        cmocka_unit_test(switches_that_add_take_an_array_and_one_latency),
        cmocka_unit_test(sums_join_tier_by_tier),
        cmocka_unit_test(a_root_may_be_a_few_collectives_ahead_and_no_more),
        cmocka_unit_test(half_way_round_both_ways_carry_the_same),
        cmocka_unit_test(only_the_axis_of_an_exchange_has_antipodes),
        cmocka_unit_test(ways_looked_up_together_are_those_looked_up_one_by_one),
        cmocka_unit_test(torus_exchange_of_all_pairs_folds_to_one_chip),
        cmocka_unit_test(what_repeats_after_a_shift_folds_to_it),
        cmocka_unit_test(each_level_in_use_keeps_its_units),
        cmocka_unit_test(a_machine_that_cannot_is_refused),
        cmocka_unit_test(more_messages_than_keys_tell_apart_are_refused),
    };
    return cmocka_run_group_tests_name("routed", tests, NULL, NULL);
}
