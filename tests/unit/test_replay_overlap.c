/*
 * Overlap, contention and overrides come out of queues: two collectives on different axes do not
 * feel each other, on one axis they share it; a slow chip or link holds up whom it must, and no
 * one else; what folds is exact.
 */
#include <stdio.h>
#include <string.h>

#include "sim/base/units.h"
#include "tests/support/case.h"
#include "tests/support/refusals.h"
#include "tests/support/scene.h"

static const uint64_t megabyte = 1000000;

/* A torus of 8x8 chips whose stream "x" gathers over x. Returns the stream "y", which is empty. */
static uint32_t gather_over_x_open(struct scene *scene)
{
    scene_open(scene, 8, 8, 1, true);
    uint32_t const first = scene_stream(scene, "x"), second = scene_stream(scene, "y");
    (void)scene_collective(scene, first, COLLECTIVE_ALL_GATHER,
                           scene_group(scene, true, false, false), 64 * megabyte, NULL, 0);
    return second;
}

static void collectives_on_different_axes_overlap_fully(void **state)
{
    (void)state;
    struct scene scene;
    uint32_t const second = gather_over_x_open(&scene);
    int64_t const alone_ps = scene_run(&scene, 1, false, false).step_ps;
    (void)scene_collective(&scene, second, COLLECTIVE_REDUCE_SCATTER,
                           scene_group(&scene, false, true, false), 64 * megabyte, NULL, 0);
    assert_int_equal(scene_run(&scene, 1, false, false).step_ps, alone_ps);
    assert_int_equal(scene_run(&scene, 1, true, false).step_ps, alone_ps);
    scene_close(&scene);
}

static void collectives_on_one_axis_share_it(void **state)
{
    (void)state;
    struct scene scene;
    scene_open(&scene, 8, 1, 1, true);
    uint32_t const first = scene_stream(&scene, "a"), second = scene_stream(&scene, "b");
    struct group const x = scene_group(&scene, true, false, false);
    (void)scene_collective(&scene, first, COLLECTIVE_ALL_GATHER, x, 640 * megabyte, NULL, 0);
    int64_t const alone_ps = scene_run(&scene, 1, false, false).step_ps;
    (void)scene_collective(&scene, second, COLLECTIVE_ALL_GATHER, x, 640 * megabyte, NULL, 0);
    struct trace const both = scene_run(&scene, 1, false, false);
    /* The links are busy twice as long; the hops of one hide behind the bytes of the other. */
    assert_in_range(both.step_ps, 2 * (alone_ps - 4 * TIME_PS_PER_US), 2 * alone_ps);
    assert_int_equal(both.step_ps, scene_run(&scene, 1, true, false).step_ps);
    assert_true(both.link[0].queued_ps > 0);
    scene_close(&scene);
}

/* Compute counts for the set of links on which something of the chip is under way at the time. */
static void compute_is_counted_by_the_links_that_are_busy_meanwhile(void **state)
{
    (void)state;
    struct scene scene;
    uint32_t const second = gather_over_x_open(&scene);
    int64_t const x_ps = scene_run(&scene, 1, false, false).step_ps;
    (void)scene_collective(&scene, second, COLLECTIVE_ALL_GATHER,
                           scene_group(&scene, false, true, false), 128 * megabyte, NULL, 0);
    int64_t const y_ps = scene_run(&scene, 1, false, false).step_ps;
    (void)scene_compute(&scene, UINT64_C(4000000000000), 1);
    for (uint32_t full = 0; full < 2; full++) {
        struct trace const trace = scene_run(&scene, 1, full == 1, false);
        assert_true(trace.compute_ps == trace.step_ps && x_ps < y_ps && y_ps < trace.step_ps);
        assert_int_equal(trace.links_ps[3], x_ps);
        assert_int_equal(trace.links_ps[2], y_ps - x_ps);
        assert_int_equal(trace.links_ps[0], trace.step_ps - y_ps);
        assert_int_equal(trace.links_ps[1], 0);
    }
    scene_close(&scene);
}

static void point_to_point_pays_every_hop_and_cuts_through(void **state)
{
    (void)state;
    static const int32_t offsets[][GROUP_DIMENSIONS_MAX] = {
        {1, 0, 0}, {3, 0, 0}, {2, 3, 0}, {3, 2, 4}, {-1, -2, -3}};
    for (uint32_t i = 0; i < sizeof offsets / sizeof *offsets; i++) {
        struct scene scene;
        scene_open(&scene, 8, 8, 8, true);
        uint32_t const stream = scene_stream(&scene, "permute");
        struct plan_request request = {.kind = COLLECTIVE_PERMUTE,
                                       .group = scene_group(&scene, true, true, true),
                                       .size_bytes = megabyte};
        memcpy(request.offset, offsets[i], sizeof request.offset);
        uint32_t const op = scene_collective(&scene, stream, COLLECTIVE_ALL_GATHER,
                                             scene_group(&scene, true, false, false), 8, NULL, 0);
        case_ok(plan_build(scene.arena, &request, "/test", &scene.plan[0], &case_error));
        scene.op[op].parts = scene.plan[0].part_count;
        int64_t hops = 0;
        for (uint32_t d = 0; d < 3; d++) hops += offsets[i][d] < 0 ? -offsets[i][d] : offsets[i][d];
        /* Every chip sends at once along a route of the same form, so the links of an axis carry
         * as many messages as the route has hops there, and they queue. */
        int64_t const idle_ps = 10 * TIME_PS_PER_US + hops * TIME_PS_PER_US;
        struct trace const folded = scene_run(&scene, 1, false, false);
        if (hops == 1) assert_int_equal(folded.step_ps, idle_ps);
        assert_true(folded.step_ps >= idle_ps);
        assert_int_equal(folded.step_ps, scene_run(&scene, 1, true, false).step_ps);
        assert_int_equal(folded.work.transfers, hops);
        scene_close(&scene);
    }
}

/* A layer: gather, matmul, reduce; repeated, the gather one layer ahead. */
static void layers_open(struct scene *scene, uint32_t x, uint32_t y, uint32_t z)
{
    scene_open(scene, x, y, z, true);
    uint32_t const gathers = scene_stream(scene, "gather"), reduces = scene_stream(scene, "reduce");
    struct group const group = scene_group(scene, true, true, true);
    uint32_t const gather =
        scene_collective(scene, gathers, COLLECTIVE_ALL_GATHER, group, 64 * megabyte, NULL, 0);
    uint32_t const matmul = scene_compute(scene, UINT64_C(100000000000), 4);
    uint32_t const reduce =
        scene_collective(scene, reduces, COLLECTIVE_REDUCE_SCATTER, group, 64 * megabyte, NULL, 0);
    scene->op[gather].need[scene->op[gather].need_count++] =
        (struct program_need){.stream = PROGRAM_COMPUTE, .begun = true, .slot = -1, .part = 1};
    scene_need(scene, matmul, gather, 0);
    scene_need(scene, reduce, matmul, 0);
}

static void overridden_chips_and_links_unfold_what_they_must_and_stay_exact(void **state)
{
    (void)state;
    static const struct machine_chip_override chips[] = {
        {.at = {3, UINT32_MAX, UINT32_MAX}, .math_ppm = 500000, .hbm_ppm = 1000000},
        {.at = {1, 2, 3}, .math_ppm = 700000, .hbm_ppm = 1000000}};
    static const struct machine_link_override link = {
        .from = {0, 0, 0}, .to = {1, 0, 0}, .bytes_per_s = UINT64_C(45000000000)};
    for (uint32_t overrides = 0; overrides < 4; overrides++) {
        struct scene scene;
        layers_open(&scene, 4, 4, 4);
        int64_t const even_ps = scene_run(&scene, 6, false, false).step_ps;
        if (overrides == 1 || overrides == 2) {
            case_override_chips(scene.arena, &scene.machine, &chips[overrides - 1], 1);
        } else if (overrides == 3) {
            scene.machine.links = &link;
            scene.machine.link_override_count = 1;
        }
        struct trace const folded = scene_run(&scene, 6, false, false);
        struct trace const full = scene_run(&scene, 6, true, false);
        static const uint64_t replayed[] = {1, 4, 64, 64};
        assert_int_equal(folded.fold.replayed, replayed[overrides]);
        assert_int_equal(full.fold.replayed, 64);
        assert_int_equal(folded.step_ps, full.step_ps);
        assert_int_equal(folded.exposed_ps, full.exposed_ps);
        if (overrides == 0)
            assert_int_equal(folded.step_ps, even_ps);
        else
            assert_true(folded.step_ps > even_ps);
        scene_close(&scene);
    }
}

/* Ops of one stream, each by an algorithm of its own, end when they would on streams of their own,
 * one after the other: a chip that is ahead sends what those behind keep for the op to come. A slow
 * chip lets the others get ahead. */
static void a_stream_may_change_its_algorithm(void **state)
{
    (void)state;
    static const struct machine_chip_override slow = {
        .at = {1, 2, 0}, .math_ppm = 500000, .hbm_ppm = 1000000};
    static const char *const names[] = {"double-tree", "line", "flat-recursive-doubling", "line"};
    enum { OPS = sizeof names / sizeof *names, SLOTS = 5 };
    int64_t step_ps[2];
    for (uint32_t apart = 0; apart < 2; apart++) {
        struct scene scene;
        uint32_t stream = 0, before = 0;
        scene_open(&scene, 4, 4, 1, false);
        case_override_chips(scene.arena, &scene.machine, &slow, 1);
        uint32_t const compute = scene_compute(&scene, 1000000000, 1);
        for (uint32_t i = 0; i < OPS; i++) {
            if (i == 0 || apart == 1) stream = scene_stream(&scene, names[i]);
            uint32_t const op =
                scene_collective(&scene, stream, COLLECTIVE_ALL_REDUCE,
                                 scene_group(&scene, true, true, false), 64 << 10, names[i], 0);
            scene_need(&scene, op, i == 0 ? compute : before, 0);
            before = op;
        }
        scene_need(&scene, compute, before, -1);
        step_ps[apart] = scene_run_alike(&scene, SLOTS).step_ps;
        scene_close(&scene);
    }
    assert_int_equal(step_ps[0], step_ps[1]);
}

static void both_queues_print_the_same_digest(void **state)
{
    (void)state;
    static const struct machine_chip_override chip = {
        .at = {1, 0, 2}, .math_ppm = 900000, .hbm_ppm = 1000000};
    struct scene scene;
    layers_open(&scene, 4, 3, 5);
    case_override_chips(scene.arena, &scene.machine, &chip, 1);
    struct trace const fast = scene_run(&scene, 5, true, false);
    scene.engine = "reference";
    struct trace const reference = scene_run(&scene, 5, true, false);
    assert_true(fast.digest == reference.digest);
    assert_int_equal(fast.step_ps, reference.step_ps);
    assert_int_equal(fast.work.events, reference.work.events);
    scene_close(&scene);
}

static void the_records_of_a_chip_are_the_same_folded_and_full(void **state)
{
    (void)state;
    struct scene scene;
    layers_open(&scene, 4, 4, 2);
    struct trace const folded = scene_run(&scene, 4, false, true);
    struct trace const full = scene_run(&scene, 4, true, true);
    assert_true(folded.records.count > 100);
    uint64_t found = 0;
    /* Both are in the order of the engine, which among events of one instant is not defined
     * across chips, but is for one chip. */
    for (uint64_t i = 0, j = 0; i < folded.records.count; i++) {
        if (folded.records.record[i].chip != 0) continue;
        while (full.records.record[j].chip != 0) j++;
        assert_memory_equal(&folded.records.record[i], &full.records.record[j],
                            sizeof folded.records.record[i]);
        j++;
        found++;
    }
    assert_true(found > 100);
    scene_close(&scene);
}

static void a_chunked_gather_feeds_its_matmul_as_it_arrives(void **state)
{
    (void)state;
    enum { RANKS = 16 };
    struct scene scene;
    scene_open(&scene, RANKS, 1, 1, true);
    uint32_t const gathers = scene_stream(&scene, "gather"),
                   reduces = scene_stream(&scene, "reduce");
    struct group const group = scene_group(&scene, true, false, false);
    uint64_t const size = 320 * megabyte; /* A chunk of 20 MB takes 200 us a link. */
    uint32_t const gather =
        scene_collective(&scene, gathers, COLLECTIVE_ALL_GATHER, group, size, NULL, RANKS);
    /* 16 parts of 100 us: two arrive every 201 us. */
    uint32_t const matmul = scene_compute(&scene, UINT64_C(1600000000000), RANKS);
    uint32_t const second = scene_compute(&scene, UINT64_C(1600000000000), RANKS);
    uint32_t const reduce =
        scene_collective(&scene, reduces, COLLECTIVE_REDUCE_SCATTER, group, size, NULL, RANKS);
    uint32_t const unit = scene.plan[0].chunk_parts;
    scene.op[matmul].need[0] =
        (struct program_need){.stream = (uint8_t)gathers, .part = unit, .per_part = unit};
    scene.op[matmul].need_count = 1;
    scene.op[reduce].operand_op = (uint16_t)second;
    (void)gather;
    struct trace const folded = scene_run(&scene, 1, false, false);
    struct trace const full = scene_run(&scene, 1, true, false);
    int64_t const math_ps = 2 * 1600 * TIME_PS_PER_US;
    assert_int_equal(folded.step_ps, full.step_ps);
    assert_true(folded.step_ps > math_ps);
    /* Serial it would be twice the 1.5 ms of either collective more. */
    assert_in_range(folded.step_ps, math_ps, math_ps + 450 * TIME_PS_PER_US);
    scene_close(&scene);
}

/* A matmul of no work. Steps that take no time have no period. */
static void a_step_may_take_no_time(void **state)
{
    (void)state;
    struct scene scene;
    struct trace trace;
    struct fold fold;
    scene_open(&scene, 2, 1, 1, false);
    (void)scene_compute(&scene, 0, 1);
    assert_int_equal(scene_run(&scene, 1, true, false).step_ps, 0);
    struct replay_options const options = {.engine = "fast", .steps_max = 3};
    case_ok(fold_build(scene.arena, &scene.machine, &scene.program, true, &fold, &case_error));
    case_ok(replay_run(scene.arena, &options, &scene.machine, &scene.program, &fold, &trace,
                       &case_error));
    assert_int_equal(trace.period.steps, 0);
    scene_close(&scene);
}

static void a_run_that_cannot_finish_names_who_waits_for_whom(void **state)
{
    (void)state;
    struct scene scene;
    struct trace trace;
    struct fold fold;
    layers_open(&scene, 4, 1, 1);
    (void)scene_run(&scene, 2, false, false);
    /* After sealing, which would refuse it: a need that no stream ever meets. */
    scene.op[1].need[0].part = 1000;
    struct replay_options const options = {.engine = "fast"};
    case_ok(fold_build(scene.arena, &scene.machine, &scene.program, true, &fold, &case_error));
    case_refused(replay_run(scene.arena, &options, &scene.machine, &scene.program, &fold, &trace,
                            &case_error),
                 STATUS_STUCK, NULL, "4 of 4 replayed chips did not finish");
    assert_non_null(strstr(case_error.message, "stream compute, at matmul of scene"));
    assert_non_null(strstr(case_error.message, "waits for 1000 parts of stream gather"));
    refusals_hold(&case_error, __FILE__);
    scene_close(&scene);
}

static void a_collective_whose_messages_do_not_come_says_how_many(void **state)
{
    (void)state;
    struct scene scene;
    struct trace trace;
    struct fold fold;
    uint32_t expects[4];
    scene_open(&scene, 4, 1, 1, true);
    uint32_t const stream = scene_stream(&scene, "gather");
    (void)scene_collective(&scene, stream, COLLECTIVE_ALL_GATHER,
                           scene_group(&scene, true, false, false), megabyte, NULL, 0);
    (void)scene_run(&scene, 1, true, false);
    /* After sealing and its proof: each waits for five messages that nobody sends. */
    for (uint32_t i = 0; i < 4; i++) expects[i] = scene.plan[0].lane[0].arrival_count[i] + 5;
    uint32_t const pieces = scene.plan[0].item[0].piece_count;
    scene.plan[0].lane[0].arrival_count = expects;
    struct replay_options const options = {.engine = "fast"};
    case_ok(fold_build(scene.arena, &scene.machine, &scene.program, true, &fold, &case_error));
    case_refused(replay_run(scene.arena, &options, &scene.machine, &scene.program, &fold, &trace,
                            &case_error),
                 STATUS_STUCK, NULL, "4 of 4 replayed chips did not finish");
    char wanted[80];
    (void)snprintf(wanted, sizeof wanted, "waits for %u messages of its group that did not arrive",
                   5 * pieces);
    assert_non_null(strstr(case_error.message, "stream gather"));
    assert_non_null(strstr(case_error.message, wanted));
    refusals_hold(&case_error, __FILE__);
    scene_close(&scene);
}

static void a_step_longer_than_a_run_can_count_is_refused(void **state)
{
    (void)state;
    static const struct machine_link_override link = {
        .from = {0, 0, 0}, .to = {1, 0, 0}, .bytes_per_s = 1};
    static const char *const engines[] = {"fast", "reference"};
    for (uint32_t i = 0; i < 2; i++) {
        struct scene scene;
        struct trace trace;
        layers_open(&scene, 4, 4, 1);
        scene.engine = engines[i];
        scene.machine.links = &link;
        scene.machine.link_override_count = 1;
        case_refused(scene_try(&scene, 6, false, true, &trace, &case_error), STATUS_LIMIT, NULL,
                     "longer than 53 days");
        scene_close(&scene);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(collectives_on_different_axes_overlap_fully),
        cmocka_unit_test(collectives_on_one_axis_share_it),
        cmocka_unit_test(compute_is_counted_by_the_links_that_are_busy_meanwhile),
        cmocka_unit_test(point_to_point_pays_every_hop_and_cuts_through),
        cmocka_unit_test(overridden_chips_and_links_unfold_what_they_must_and_stay_exact),
        cmocka_unit_test(a_stream_may_change_its_algorithm),
        cmocka_unit_test(both_queues_print_the_same_digest),
        cmocka_unit_test(the_records_of_a_chip_are_the_same_folded_and_full),
        cmocka_unit_test(a_chunked_gather_feeds_its_matmul_as_it_arrives),
        cmocka_unit_test(a_step_may_take_no_time),
        cmocka_unit_test(a_run_that_cannot_finish_names_who_waits_for_whom),
        cmocka_unit_test(a_collective_whose_messages_do_not_come_says_how_many),
        cmocka_unit_test(a_step_longer_than_a_run_can_count_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
