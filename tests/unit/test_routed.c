/*
 * Messages that name their receivers, on levels of switches and on grids: closed forms to the
 * nanosecond, folded and full to the picosecond, fast and reference queue to the digest.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sim/base/units.h"
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

/* Full and folded run, and the reference queue. */
static struct trace all_alike(struct scene *scene, uint32_t repeat)
{
    struct trace const folded = scene_run(scene, repeat, false, false);
    struct trace const full = scene_run(scene, repeat, true, false);
    scene->engine = "reference";
    struct trace const reference = scene_run(scene, repeat, true, false);
    struct trace const reference_folded = scene_run(scene, repeat, false, false);
    scene->engine = "fast";
    assert_int_equal(folded.step_ps, full.step_ps);
    assert_int_equal(full.digest, reference.digest);
    assert_int_equal(full.step_ps, reference.step_ps);
    assert_int_equal(folded.digest, reference_folded.digest);
    return full;
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
        struct trace const trace = all_alike(&scene, 1);
        int64_t const message_ps = units_duration_ps(chunk_bytes, node_bytes_per_s);
        assert_int_equal(trace.step_ps, (n - 1) * message_ps + TIME_PS_PER_US);
        const struct trace_link *up = &trace.link[machine_level_port(0, 0, false)];
        const struct trace_link *down = &trace.link[machine_level_port(0, 0, true)];
        assert_int_equal(up->sum_bytes, n * (n - 1) * chunk_bytes);
        assert_int_equal(down->sum_bytes, up->sum_bytes);
        assert_int_equal(up->link_count, n);
        assert_int_equal(down->busy_ps, (n - 1) * message_ps);
        assert_int_equal(trace.transfers, 2 * n * (n - 1));
        assert_int_equal(scene_run(&scene, 1, false, false).chips_replayed, 1);
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
    const struct primitive *primitive = primitive_find(kind, "sharp", true);
    scene->template.op_count = 0;
    scene->program.plan_count = 0;
    scene->program.stream_count = 1;
    (void)scene_routed(scene, scene_stream(scene, "sharp"), primitive, &group, false, unit_bytes,
                       pieces);
    return all_alike(scene, 3).step_ps / 3;
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

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_node_takes_its_bytes_and_one_latency),
        cmocka_unit_test(switches_that_add_take_an_array_and_one_latency),
        cmocka_unit_test(sums_join_tier_by_tier),
    };
    return cmocka_run_group_tests_name("routed", tests, NULL, NULL);
}
