/*
 * Weights that come to VMEM while the compute stream waits: as many as HBM gives in that time
 * beside messages, as VMEM has room for, and as the following ops want, in their order. Chips of
 * 100 GB/s links, 1 us hops and 3 TB/s of HBM.
 */
#include <stdio.h>
#include <string.h>

#include "sim/base/units.h"
#include "sim/resource/compute.h"
#include "tests/support/case.h"
#include "tests/support/play.h"
#include "tests/support/scene.h"

enum { CHIPS = 4 };

static const int64_t us = TIME_PS_PER_US;
static const uint64_t us_bytes = 3000000;       /* Of HBM, in a microsecond. */
static const uint64_t message_bytes = 10000000; /* 100 us on its link. */
static const int64_t wait_ps = 101 * TIME_PS_PER_US;

static void open_ring(struct scene *scene)
{
    scene_open(scene, CHIPS, 1, 1, true);
    scene->machine.chip.hbm_bytes_per_s = us_bytes * 1000000;
    scene->machine.chip.vmem_bytes_per_s = UINT64_C(1) << 60;
}

/* A product whose weights HBM reads in so many microseconds. */
static uint32_t weighs(struct scene *scene, uint32_t length_us, uint32_t parts)
{
    uint32_t const op = scene_compute(scene, 0, parts);
    struct work *work = &scene->work[scene->op[op].index];
    work->hbm_read_bytes = work->prefetch_bytes = length_us * us_bytes;
    return op;
}

static uint32_t sends(struct scene *scene)
{
    struct plan_request request = {.kind = COLLECTIVE_PERMUTE,
                                   .group = scene_group(scene, true, false, false),
                                   .size_bytes = message_bytes,
                                   .offset = {1}};
    return scene_plan(scene, scene_stream(scene, "permute"), &request);
}

/* The step, which folded and full runs on both engines agree on. */
static struct trace played(struct scene *scene)
{
    (void)scene_run_alike(scene, 1);
    struct trace const trace = scene_run(scene, 1, false, false);
    assert_true(trace.queue_busy_ps[TRACE_QUEUE_HBM] <= trace.step_ps);
    return trace;
}

static void assert_near_ps(int64_t got_ps, int64_t wanted_ps)
{
    int64_t const slack_ps = us / 2; /* Filling and draining ops. */
    if (got_ps < wanted_ps - slack_ps || got_ps > wanted_ps + slack_ps)
        fail_msg("wanted %lld ps, got %lld ps", (long long)wanted_ps, (long long)got_ps);
}

/* An op behind a message of 100 us: what it reads comes while it waits, beside what the message
 * reads and writes, a thirtieth of HBM each. */
static void weights_come_while_an_op_waits(void **state)
{
    static const struct {
        uint32_t weights_us;
        int64_t came_ns;
    } rows[] = {{20, 20000}, {90, 90000}, {200, 101000 - 200000 / 30}, {0, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct scene scene;
        open_ring(&scene);
        scene.machine.chip.vmem_capacity_bytes = UINT64_C(1) << 40;
        uint32_t const message = sends(&scene), op = weighs(&scene, rows[i].weights_us, 1);
        scene_need(&scene, op, message, 0);
        struct trace const trace = played(&scene);
        int64_t const came = (int64_t)(1000 * trace.prefetched_bytes / us_bytes);
        assert_in_range(came, rows[i].came_ns - (came == 0 ? 0 : 10), rows[i].came_ns);
        int64_t const left_ps = (int64_t)rows[i].weights_us * us - rows[i].came_ns * (us / 1000);
        assert_near_ps(trace.step_ps, wait_ps + left_ps);
        scene_close(&scene);
    }
}

static void vmem_holds_no_more_than_it_has_room_for(void **state)
{
    (void)state;
    struct scene scene;
    open_ring(&scene);
    scene.machine.chip.vmem_capacity_bytes = 10 * us_bytes;
    uint32_t const message = sends(&scene), op = weighs(&scene, 40, 1);
    scene_need(&scene, op, message, 0);
    struct trace const trace = played(&scene);
    uint64_t const room = compute_vmem_rest_bytes(&scene.machine.chip);
    assert_true(room < 10 * us_bytes && room > 98 * us_bytes / 10);
    assert_int_equal(trace.prefetched_bytes, room);
    assert_near_ps(trace.step_ps, wait_ps + 30 * us);
    scene_close(&scene);
}

/* Three ops of 30 us each behind one wait, and one that reads none: the first two find all of their
 * weights, the third what is left. A second wait behind them has nothing to do. */
static void following_ops_find_theirs_in_order(void **state)
{
    (void)state;
    struct scene scene;
    open_ring(&scene);
    scene.machine.chip.vmem_capacity_bytes = 64 * (80 * us_bytes) / 63;
    uint32_t const message = sends(&scene), first = weighs(&scene, 30, 1);
    scene_need(&scene, first, message, 0);
    (void)scene_compute(&scene, (uint64_t)(5 * us) * 1000, 1);
    (void)weighs(&scene, 30, 3);
    (void)weighs(&scene, 30, 1);
    struct trace const trace = played(&scene);
    assert_in_range(trace.prefetched_bytes, 79 * us_bytes, 81 * us_bytes);
    assert_near_ps(trace.step_ps, wait_ps + 5 * us + 10 * us);
    uint32_t const again = sends(&scene), last = scene_compute(&scene, (uint64_t)us * 1000, 1);
    scene_need(&scene, again, 5 - 1, 0);
    scene_need(&scene, last, again, 0);
    struct trace const longer = played(&scene);
    assert_int_equal(longer.prefetched_bytes, trace.prefetched_bytes);
    scene_close(&scene);
}

/* Each slot waits, and weights of the next slots come too; of the last one nothing follows. */
static void no_more_comes_than_the_step_wants(void **state)
{
    (void)state;
    struct scene scene;
    open_ring(&scene);
    scene.machine.chip.vmem_capacity_bytes = UINT64_C(1) << 40;
    uint32_t const message = sends(&scene), op = weighs(&scene, 20, 1);
    scene_need(&scene, op, message, 0);
    (void)scene_run_alike(&scene, 3);
    struct trace const trace = scene_run(&scene, 3, false, false);
    assert_int_equal(trace.prefetched_bytes, 3 * 20 * us_bytes);
    scene_close(&scene);
}

/* A chip whose HBM is half as fast gets half as much. */
static void a_slow_chip_prefetches_less(void **state)
{
    static const struct machine_chip_override slow = {
        .at = {2, 0, 0, 0}, .math_ppm = PPM_ONE, .hbm_ppm = PPM_ONE / 2};
    (void)state;
    struct scene scene;
    open_ring(&scene);
    scene.machine.chip.vmem_capacity_bytes = UINT64_C(1) << 40;
    scene.machine.chips = &slow;
    scene.machine.chip_override_count = 1;
    uint32_t const message = sends(&scene), op = weighs(&scene, 200, 1);
    scene_need(&scene, op, message, 0);
    struct trace const trace = played(&scene);
    int64_t const came_us = 101 - 400 / 30;
    assert_in_range(trace.prefetched_bytes / us_bytes, came_us / 2 - 1, came_us / 2 + 1);
    assert_near_ps(trace.step_ps, wait_ps + 2 * 200 * us - came_us * us);
    scene_close(&scene);
}

/* Bytes that may come early, of the products of a layer. */
static double early_bytes(const char *machine, const char *mesh, const char *model)
{
    char text[512];
    struct play play;
    double bytes = 0;
    static const struct play_options lower_only = {.lower_only = true};
    (void)snprintf(text, sizeof text,
                   "{\"podsim\": 1, \"machine\": {%s}, \"mesh\": %s, \"workload\": {\"kind\": "
                   "\"decode\", \"model\": \"%s\", \"batch\": 64, \"context\": 512, "
                   "\"allow_oversubscription\": true}, \"run\": {\"prefetch_weights\": \"vmem\"}}",
                   machine, mesh, model);
    play_run(&play, text, &lower_only);
    for (uint32_t w = 0; w < play.program.work_count; w++) {
        const struct work *work = &play.program.works[w];
        assert_true(work->prefetch_bytes <= work->hbm_read_bytes);
        bytes += (double)work->prefetch_bytes;
    }
    play_close(&play);
    return bytes;
}

/* Which experts are read a token says when it is there. Layers are alike, so that each matrix is
 * in one work. */
static void experts_and_gathered_weights_come_when_they_are_known(void **state)
{
    static const char v5p[] = "\"chip\": \"tpu-v5p\", \"shape\": \"4x4x4\"";
    (void)state;
    double const D = 4096, heads = 64, kv_heads = 4, H = 128, V = 151936, experts = 128;
    double const wanted = 2 * (D * H * (2 * heads + 2 * kv_heads) + D * experts + D * V);
    case_near(early_bytes(v5p, "{\"ep\": [\"x\", \"y\", \"z\"]}", "qwen3-235b-a22b"), wanted, 1e-3);
    assert_true(early_bytes(v5p, "{\"fsdp\": [\"x\", \"y\", \"z\"]}", "llama-3-8b") == 0);
    assert_true(early_bytes(v5p, "{\"dp\": [\"x\", \"y\", \"z\"]}",
                            "llama-3-8b\", \"weights\": \"gathered") == 0);
    assert_true(early_bytes(v5p, "{\"dp\": [\"x\", \"y\", \"z\"]}", "llama-3-8b") > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_come_while_an_op_waits),
        cmocka_unit_test(vmem_holds_no_more_than_it_has_room_for),
        cmocka_unit_test(following_ops_find_theirs_in_order),
        cmocka_unit_test(no_more_comes_than_the_step_wants),
        cmocka_unit_test(a_slow_chip_prefetches_less),
        cmocka_unit_test(experts_and_gathered_weights_come_when_they_are_known),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
