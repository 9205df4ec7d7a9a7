/*
 * What messages take of HBM counts along their passage: a compute op that runs beside it and needs
 * HBM pays, or owes what the next one pays, or the step's end. Chips of 100 GB/s links, 1 us hops.
 */
#include <string.h>

#include "sim/base/units.h"
#include "tests/support/case.h"
#include "tests/support/scene.h"

enum { CHIPS = 4 };

static const int64_t us = TIME_PS_PER_US;

/* One link can ask for a thirtieth of it, the six ports of a chip, in and out, for 0.4. */
static const uint64_t hbm_bytes_per_s = UINT64_C(3000000000000);
static const uint64_t message_bytes = 10000000; /* 100 us on its link. */
static const int64_t link_ps = 100 * TIME_PS_PER_US;

static void open_ring(struct scene *scene)
{
    scene_open(scene, CHIPS, 1, 1, true);
    scene->machine.chip.hbm_bytes_per_s = hbm_bytes_per_s;
}

/* An op that HBM bounds, for so long on an idle chip; */
static uint32_t streams_bytes(struct scene *scene, int64_t duration_ps)
{
    uint32_t const op = scene_compute(scene, 0, 1);
    scene->work[scene->op[op].index].hbm_read_bytes =
        (uint64_t)duration_ps * (scene->machine.chip.hbm_bytes_per_s / 1000000000) / 1000;
    return op;
}

/* one that leaves HBM alone, 1 PFLOP/s; */
static uint32_t multiplies(struct scene *scene, int64_t duration_ps)
{
    return scene_compute(scene, (uint64_t)duration_ps * 1000, 1);
}

/* and a message from each chip to the one at an offset. */
static uint32_t sends_by(struct scene *scene, int32_t offset)
{
    struct plan_request request = {.kind = COLLECTIVE_PERMUTE,
                                   .group = scene_group(scene, true, false, false),
                                   .size_bytes = message_bytes,
                                   .offset = {offset}};
    return scene_plan(scene, scene_stream(scene, "permute"), &request);
}

static uint32_t sends(struct scene *scene)
{
    return sends_by(scene, 1);
}

static void assert_near_ps(int64_t got_ps, int64_t wanted_ps)
{
    int64_t const slack_ps = us / 100; /* Filling and draining an op, and what is sent meanwhile. */
    if (got_ps < wanted_ps - slack_ps || got_ps > wanted_ps + slack_ps)
        fail_msg("wanted %lld ps, got %lld ps", (long long)wanted_ps, (long long)got_ps);
}

/* The step, which folded and full runs on both engines agree on; HBM and VPU are never busy for
 * longer. */
static int64_t step_ps(struct scene *scene)
{
    (void)scene_run_alike(scene, 1);
    struct trace const folded = scene_run(scene, 1, false, false);
    assert_true(folded.queue_busy_ps[TRACE_QUEUE_HBM] <= folded.step_ps);
    assert_true(folded.queue_busy_ps[TRACE_QUEUE_VPU] <= folded.step_ps);
    assert_int_equal(folded.compute_ps + folded.exposed_ps + folded.idle_ps, folded.step_ps);
    return folded.step_ps;
}

/* An op of 145/3 us of traffic runs beside the message's reads, a thirtieth of HBM: it ends at 50.
 * What arrived beside it, from 1 us on, is known at 101 us only. */
static const int64_t op_ps = 145 * TIME_PS_PER_US / 3, owed_ps = 49 * TIME_PS_PER_US / 30;

static void the_next_op_that_needs_hbm_pays_what_one_before_owes(void **state)
{
    (void)state;
    struct scene scene;
    open_ring(&scene);
    (void)streams_bytes(&scene, op_ps);
    uint32_t const message = sends(&scene), next = streams_bytes(&scene, 20 * us);
    scene_need(&scene, next, message, 0);
    assert_near_ps(step_ps(&scene), link_ps + us + 20 * us + owed_ps);
    scene_close(&scene);
}

static void the_end_of_the_step_pays_where_none_follows(void **state)
{
    (void)state;
    struct scene scene;
    open_ring(&scene);
    uint32_t const message = sends(&scene);
    assert_near_ps(step_ps(&scene), link_ps + us);
    (void)streams_bytes(&scene, op_ps);
    assert_near_ps(step_ps(&scene), link_ps + us + owed_ps);
    uint32_t const after = multiplies(&scene, us);
    scene_need(&scene, after, message, 0);
    int64_t const spared_ps = 6 * us / 10; /* Links take at most 0.4 of HBM. */
    assert_near_ps(step_ps(&scene), link_ps + 2 * us + owed_ps - spared_ps);
    scene_close(&scene);
}

static void nothing_is_owed_where_no_op_needed_hbm(void **state)
{
    (void)state;
    for (uint32_t overlap = 0; overlap < 2; overlap++) {
        struct scene scene;
        open_ring(&scene);
        if (overlap == 1) (void)multiplies(&scene, 80 * us);
        uint32_t const message = sends(&scene), next = streams_bytes(&scene, 20 * us);
        scene_need(&scene, next, message, 0);
        assert_near_ps(step_ps(&scene), link_ps + us + 20 * us);
        scene_close(&scene);
    }
}

static void an_op_with_hbm_to_spare_pays_from_that(void **state)
{
    (void)state;
    for (int64_t length_us = 1; length_us <= 5; length_us++) {
        struct scene scene;
        open_ring(&scene);
        (void)streams_bytes(&scene, op_ps);
        uint32_t const message = sends(&scene), spares = multiplies(&scene, length_us * us);
        (void)streams_bytes(&scene, 20 * us);
        scene_need(&scene, spares, message, 0);
        int64_t const spared_ps = length_us * 6 * us / 10;
        int64_t const left_ps = spared_ps < owed_ps ? owed_ps - spared_ps : 0;
        assert_near_ps(step_ps(&scene), link_ps + us + length_us * us + 20 * us + left_ps);
        scene_close(&scene);
    }
}

/* Math sets the pace of the first op: it takes 60 us and leaves a quarter of HBM, more than DMA
 * wants beside it. */
static void what_the_op_beside_it_left_over_is_not_owed(void **state)
{
    (void)state;
    struct scene scene;
    open_ring(&scene);
    uint32_t const op = multiplies(&scene, 60 * us);
    scene.work[op].hbm_read_bytes = 45 * (hbm_bytes_per_s / 1000000);
    int64_t const alone_ps = step_ps(&scene);
    uint32_t const message = sends(&scene), next = streams_bytes(&scene, 20 * us);
    scene_need(&scene, next, message, 0);
    assert_true(alone_ps >= 60 * us && alone_ps < 62 * us);
    assert_near_ps(step_ps(&scene), link_ps + us + 20 * us);
    scene_close(&scene);
}

/* The first op is as above, but leaves 60 - 53 us of HBM, of which reads take 4. Both
 * messages land after it, and each owes 59/30 us: what is left over pays one and a half of them, as
 * time that is spent on one is not there for the other. */
static void what_is_left_over_is_spent_once(void **state)
{
    (void)state;
    struct scene scene;
    open_ring(&scene);
    uint32_t const op = multiplies(&scene, 60 * us);
    scene.work[op].hbm_read_bytes = 53 * (hbm_bytes_per_s / 1000000);
    uint32_t const message = sends(&scene), other = sends_by(&scene, -1);
    uint32_t const next = streams_bytes(&scene, 20 * us);
    scene_need(&scene, next, message, 0);
    scene_need(&scene, next, other, 0);
    int64_t const left_ps = (60 - 53 - 4) * us;
    int64_t const least_ps = link_ps + us + 20 * us + 2 * (59 * us / 30) - left_ps;
    int64_t const ends_ps = step_ps(&scene); /* To fill and drain the op takes a little of it. */
    assert_true(ends_ps >= least_ps && ends_ps <= least_ps + us / 10);
    scene_close(&scene);
}

/* Ten times an op with and without traffic, of 4 us each: more breaks than a chip remembers, and
 * those that are forgotten, of four thirtieths each, are owed too. */
static void many_short_ops_beside_one_message_owe_what_each_lost(void **state)
{
    (void)state;
    struct scene scene;
    open_ring(&scene);
    for (uint32_t i = 0; i < 10; i++) {
        (void)streams_bytes(&scene, 4 * us);
        (void)multiplies(&scene, 4 * us);
    }
    uint32_t const message = sends(&scene), next = streams_bytes(&scene, 20 * us);
    scene_need(&scene, next, message, 0);
    int64_t const least_ps = link_ps + us + 20 * us + (10 * 4 - 1) * us / 30;
    int64_t const ends_ps = step_ps(&scene);
    assert_true(ends_ps >= least_ps && ends_ps <= least_ps + us / 2);
    scene_close(&scene);
}

/* One link has a tenth of the others' rate, so a message over it is on its way for 1,000 us. The
 * op beside it ends when half of that has passed. */
static void a_passage_is_as_long_as_its_slowest_link_takes(void **state)
{
    (void)state;
    static const struct machine_link_override slow = {
        .from = {1, 0, 0, 0}, .to = {2, 0, 0, 0}, .bytes_per_s = UINT64_C(10000000000)};
    for (int32_t hops = 1; hops <= 2; hops++) {
        struct scene scene;
        open_ring(&scene);
        scene.machine.shape[0] = scene.machine.chip_count = 2 * CHIPS;
        scene.machine.links = &slow;
        scene.machine.link_override_count = 1;
        struct plan_request request = {.kind = COLLECTIVE_PERMUTE,
                                       .group = scene_group(&scene, true, false, false),
                                       .size_bytes = message_bytes,
                                       .offset = {hops}};
        (void)scene_plan(&scene, scene_stream(&scene, "permute"), &request);
        int64_t const alone_ps = step_ps(&scene), hbm_ps = link_ps / 30;
        int64_t const begins_ps = alone_ps - 10 * link_ps;
        int64_t const queued_ps = (hops - 1) * 10 * link_ps;
        assert_in_range(begins_ps, us + queued_ps, hops * us + queued_ps);
        int64_t const ends_ps = begins_ps + 5 * link_ps; /* Of the op, with the reads beside it. */
        (void)streams_bytes(&scene, ends_ps - hbm_ps);
        assert_near_ps(step_ps(&scene), alone_ps + hbm_ps / 2);
        scene_close(&scene);
    }
}

/* Links that may ask for more than HBM has: DMA is a clock. The message is read for a third of its
 * time, then written for a third: the op ends when both are done, but knows of the reads only. */
static void where_dma_may_exceed_hbm_its_clock_says_when(void **state)
{
    (void)state;
    for (uint32_t follows = 0; follows < 2; follows++) {
        struct scene scene;
        open_ring(&scene);
        scene.machine.chip.hbm_bytes_per_s = hbm_bytes_per_s / 10;
        (void)streams_bytes(&scene, op_ps);
        uint32_t const message = sends(&scene);
        int64_t wanted_ps = link_ps + us + link_ps / 3;
        if (follows == 1) {
            scene_need(&scene, streams_bytes(&scene, 20 * us), message, 0);
            wanted_ps += 20 * us;
        }
        assert_near_ps(step_ps(&scene), wanted_ps);
        scene_close(&scene);
    }
}

/* Shares of 4.5 MB, 10 us on a cable each, within a node. */
enum { SHARE_BYTES = 4500000 };
static void gathers_in_node(struct scene *scene, const char *algorithm)
{
    struct plan_request request = {
        .kind = COLLECTIVE_ALL_GATHER,
        .group = {.dimension = {scene_dimension(scene, 0)}, .dimension_count = 1},
        .size_bytes = (uint64_t)CHIPS * SHARE_BYTES,
        .algorithm = algorithm_read(algorithm),
        .multicasts = {true},
        .reduces = {true}};
    (void)scene_plan(scene, scene_stream(scene, "gather"), &request);
}

static void open_node(struct scene *scene, uint64_t rate_bytes_per_s)
{
    scene_open_node(scene, CHIPS);
    scene->machine.level[0].tier[0].multicasts = true;
    scene->machine.chip.hbm_bytes_per_s = rate_bytes_per_s;
}

/* Through switches that copy or not, one chip with half of the others' HBM. Its op has as much
 * traffic as 60 us take, and goes on beside all of the gather: HBM is never idle. */
static void messages_through_switches_are_paid_for_alike(void **state)
{
    (void)state;
    static const struct machine_chip_override half = {
        .at = {1, 0, 0, 0}, .math_ppm = PPM_ONE, .hbm_ppm = PPM_ONE / 2};
    static const struct {
        const char *algorithm;
        uint32_t reads, writes; /* Of a chip's share. */
    } gathers[] = {{"direct", 3, 3}, {"ring", 3, 3}, {"sharp", 1, 3}};
    static const uint64_t rates[] = {UINT64_C(2000000000000), UINT64_C(600000000000)};
    for (uint32_t i = 0; i < sizeof gathers / sizeof *gathers; i++)
        for (uint32_t r = 0; r < 2; r++) {
            struct scene scene;
            open_node(&scene, rates[r]);
            case_override_chips(scene.arena, &scene.machine, &half, 1);
            (void)streams_bytes(&scene, 30 * us);
            gathers_in_node(&scene, gathers[i].algorithm);
            int64_t const share_ps =
                (int64_t)(UINT64_C(2) * SHARE_BYTES * 1000000 / (rates[r] / 1000000));
            int64_t const hbm_ps = 60 * us + (gathers[i].reads + gathers[i].writes) * share_ps;
            assert_near_ps(step_ps(&scene), hbm_ps);
            scene_close(&scene);
        }
}

/* What arrives last is on its cable for 10 us. The op ends when half of these are over: its own
 * share, sent once, and two that have arrived were in its way. Half of the last one is owed. */
static void what_a_switch_copies_is_paid_for_along_its_cable(void **state)
{
    uint64_t const rate_bytes_per_s = UINT64_C(2000000000000);
    int64_t const share_ps =
        (int64_t)(UINT64_C(1000000) * SHARE_BYTES / (rate_bytes_per_s / 1000000));
    struct scene scene;
    (void)state;
    open_node(&scene, rate_bytes_per_s);
    gathers_in_node(&scene, "sharp");
    int64_t const alone_ps = step_ps(&scene), ends_ps = alone_ps - 5 * us;
    (void)streams_bytes(&scene, ends_ps - 3 * share_ps);
    assert_near_ps(step_ps(&scene), alone_ps + share_ps / 2);
    scene_close(&scene);
}

/* The VPU adds what arrives at a fortieth of its rate: 100 us of link are 2.5 us of VPU. */
static uint32_t adds(struct scene *scene)
{
    scene->machine.chip.vector_flop_per_s = UINT64_C(2000000000000);
    struct group const x = scene_group(scene, true, false, false);
    return scene_collective(scene, scene_stream(scene, "reduce"), COLLECTIVE_REDUCE_SCATTER, x,
                            CHIPS * message_bytes, NULL, 0);
}

/* An op that the VPU bounds, for so long on an idle chip. */
static uint32_t adds_vectors(struct scene *scene, int64_t duration_ps)
{
    uint32_t const op = scene_compute(scene, 0, 1);
    scene->work[scene->op[op].index].vector_flop =
        (uint64_t)duration_ps * (scene->machine.chip.vector_flop_per_s / 1000000000) / 1000;
    return op;
}

/* What a chip adds of a ring of four: three quarters of V, two bytes each. */
static int64_t added_ps(const struct scene *scene)
{
    return (int64_t)((uint64_t)3 * message_bytes / 2 * 1000000 /
                     (scene->machine.chip.vector_flop_per_s / 1000000));
}

static void additions_push_out_an_op_that_the_vpu_bounds(void **state)
{
    (void)state;
    static const uint64_t rates[] = {UINT64_C(2000000000000), UINT64_C(20000000000)};
    for (uint32_t i = 0; i < 2; i++) { /* Links ask for a part of the VPU; for more than it has. */
        struct scene scene;
        open_ring(&scene);
        uint32_t const sum = adds(&scene);
        scene.machine.chip.vector_flop_per_s = rates[i];
        int64_t const alone_ps = step_ps(&scene);
        uint32_t const op = adds_vectors(&scene, 3000 * us); /* All of the sum runs beside it. */
        assert_true(alone_ps < 3000 * us);
        assert_near_ps(step_ps(&scene), 3000 * us + added_ps(&scene));
        /* Behind the sum nobody is in its way. */
        scene_need(&scene, op, sum, 0);
        assert_near_ps(step_ps(&scene), alone_ps + 3000 * us);
        scene_close(&scene);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_next_op_that_needs_hbm_pays_what_one_before_owes),
        cmocka_unit_test(the_end_of_the_step_pays_where_none_follows),
        cmocka_unit_test(nothing_is_owed_where_no_op_needed_hbm),
        cmocka_unit_test(an_op_with_hbm_to_spare_pays_from_that),
        cmocka_unit_test(what_the_op_beside_it_left_over_is_not_owed),
        cmocka_unit_test(what_is_left_over_is_spent_once),
        cmocka_unit_test(many_short_ops_beside_one_message_owe_what_each_lost),
        cmocka_unit_test(a_passage_is_as_long_as_its_slowest_link_takes),
        cmocka_unit_test(where_dma_may_exceed_hbm_its_clock_says_when),
        cmocka_unit_test(messages_through_switches_are_paid_for_alike),
        cmocka_unit_test(what_a_switch_copies_is_paid_for_along_its_cable),
        cmocka_unit_test(additions_push_out_an_op_that_the_vpu_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
