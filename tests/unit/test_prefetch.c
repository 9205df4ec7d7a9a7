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

/* A message from each chip to the next one along x, or along y, on a stream of its own. */
static uint32_t sends_along(struct scene *scene, bool x, uint64_t size_bytes)
{
    struct plan_request request = {.kind = COLLECTIVE_PERMUTE,
                                   .group = scene_group(scene, x, !x, false),
                                   .size_bytes = size_bytes,
                                   .offset = {1}};
    return scene_plan(scene, scene_stream(scene, x ? "x" : "y"), &request);
}

static uint32_t sends(struct scene *scene)
{
    return sends_along(scene, true, message_bytes);
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
    case_override_chips(scene.arena, &scene.machine, &slow, 1);
    uint32_t const message = sends(&scene), op = weighs(&scene, 200, 1);
    scene_need(&scene, op, message, 0);
    struct trace const trace = played(&scene);
    int64_t const came_us = 101 - 400 / 30;
    assert_in_range(trace.prefetched_bytes / us_bytes, came_us / 2 - 1, came_us / 2 + 1);
    assert_near_ps(trace.step_ps, wait_ps + 2 * 200 * us - came_us * us);
    scene_close(&scene);
}

static void open_grid(struct scene *scene)
{
    scene_open(scene, CHIPS, CHIPS, 1, true);
    scene->machine.chip.hbm_bytes_per_s = us_bytes * 1000000;
    scene->machine.chip.vmem_bytes_per_s = UINT64_C(1) << 60;
    scene->machine.chip.vmem_capacity_bytes = UINT64_C(1) << 40;
}

/* Within what a tile's ends take. */
static void assert_just_ps(int64_t got_ps, int64_t wanted_ps)
{
    if (got_ps < wanted_ps - us / 5 || got_ps > wanted_ps + us / 5)
        fail_msg("wanted %lld ps, got %lld ps", (long long)wanted_ps, (long long)got_ps);
}

/* A message of 10 us is waited for, one of 100 us goes on beside: what that one writes is known
 * when it lands. HBM is busy from the start, with all that is asked of it. */
static void what_a_message_writes_beside_is_paid_when_it_is_known(void **state)
{
    (void)state;
    struct scene scene;
    open_grid(&scene);
    uint32_t const brief = sends_along(&scene, true, message_bytes / 10);
    (void)sends_along(&scene, false, message_bytes);
    uint32_t const op = weighs(&scene, 200, 1);
    scene_need(&scene, op, brief, 0);
    assert_just_ps(played(&scene).step_ps, 200 * us + 2 * 110 * us / 30);
    scene_close(&scene);
}

/* HBM has read all that is wanted after 5 of 11 us, so that the message beside it delays nothing,
 * though the op that is waiting when it lands needs HBM. */
static void time_that_was_left_over_is_not_owed(void **state)
{
    (void)state;
    struct scene scene;
    open_grid(&scene);
    uint32_t const brief = sends_along(&scene, true, message_bytes / 10);
    uint32_t const lasting = sends_along(&scene, false, message_bytes);
    uint32_t const first = weighs(&scene, 5, 1);
    (void)scene_compute(&scene, (uint64_t)(89 * us) * 1000, 1);
    uint32_t const last = weighs(&scene, 20, 1);
    scene.work[scene.op[last].index].prefetch_bytes = 0;
    scene_need(&scene, first, brief, 0);
    scene_need(&scene, last, lasting, 0);
    assert_just_ps(played(&scene).step_ps, wait_ps + 20 * us);
    scene_close(&scene);
}

/* An op of 50 us owes 49/30 us of what the message beside it wrote. The wait of 1 us behind another
 * op pays as much of that as it is long, and reads nothing; what is left the op behind pays. */
static void a_wait_pays_what_ops_before_owe(void **state)
{
    (void)state;
    struct scene scene;
    open_grid(&scene);
    uint32_t const before = weighs(&scene, 145, 1);
    scene.work[scene.op[before].index].hbm_read_bytes = 145 * us_bytes / 3;
    scene.work[scene.op[before].index].prefetch_bytes = 0;
    uint32_t const lasting = sends_along(&scene, false, message_bytes);
    (void)scene_compute(&scene, (uint64_t)(50 * us) * 1000, 1);
    uint32_t const spares = scene_compute(&scene, (uint64_t)(us / 10) * 1000, 1);
    (void)weighs(&scene, 20, 1);
    scene_need(&scene, spares, lasting, 0);
    struct trace const trace = played(&scene);
    int64_t const owed_ps = 49 * us / 30 - us, spared_ps = us / 10 * 6 / 10;
    assert_int_equal(trace.prefetched_bytes, 0);
    assert_just_ps(trace.step_ps, wait_ps + us / 10 + 20 * us + owed_ps - spared_ps);
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
        cmocka_unit_test(what_a_message_writes_beside_is_paid_when_it_is_known),
        cmocka_unit_test(time_that_was_left_over_is_not_owed),
        cmocka_unit_test(a_wait_pays_what_ops_before_owe),
        cmocka_unit_test(experts_and_gathered_weights_come_when_they_are_known),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
