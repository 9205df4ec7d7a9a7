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

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_node_takes_its_bytes_and_one_latency),
    };
    return cmocka_run_group_tests_name("routed", tests, NULL, NULL);
}
