/*
 * Ranks with roles of their own: what one sends another gets when the links have carried it, a
 * RECEIVE ends when its count has come, and who waits is idle: for a transfer or in a bubble.
 */
#include <string.h>

#include "sim/base/units.h"
#include "sim/resource/compute.h"
#include "tests/support/case.h"
#include "tests/support/scene.h"
#include "tests/support/stages.h"

static const uint64_t megabyte = 1000000;
static const uint64_t small_flop = UINT64_C(10000000000); /* About 10 us at 1 PFLOP/s. */

/* Chips in a line or ring; 1 us a hop, 100 GB/s. */
static void open_grid(struct scene *scene, uint32_t x, uint32_t y, bool wrap)
{
    scene_open(scene, x, y, 1, wrap);
}

/* A pipeline along the first axis, of at most 64 things a rank. */
static void open_stages(struct stages *ret_stages, const struct scene *scene,
                        uint64_t message_bytes)
{
    struct group_dimension const x = scene_dimension(scene, 0);
    stages_open(ret_stages, case_arena, &scene->machine, &x, message_bytes, 64);
}

/* Two ranks in a line; returns a kind of work of theirs. */
static uint32_t open_two(struct scene *scene, struct stages *ret_stages, uint64_t message_bytes)
{
    open_grid(scene, 2, 1, false);
    open_stages(ret_stages, scene, message_bytes);
    return stages_work(ret_stages, small_flop);
}

/* Every rank passes each of `count` microbatches on to the next. */
static void forward_only(struct stages *stages, uint32_t work, uint32_t ranks, uint32_t count)
{
    for (uint32_t rank = 0; rank < ranks; rank++)
        for (uint32_t microbatch = 0; microbatch < count; microbatch++) {
            if (rank > 0) stages_receive(stages, rank, STAGES_UP, microbatch + 1);
            stages_compute(stages, rank, work);
            if (rank + 1 < ranks) stages_send(stages, rank, STAGES_UP);
        }
}

/* Instants of a pipeline whose messages take `hop_ps` and do not queue. */
static void check_forward_only(const struct trace *trace, uint32_t ranks, uint32_t count,
                               int64_t work_ps, int64_t hop_ps, uint64_t bytes)
{
    int64_t const step_ps = (count + ranks - 1) * work_ps + (ranks - 1) * hop_ps;
    assert_int_equal(trace->step_ps, step_ps);
    assert_int_equal(trace->role_count, ranks);
    for (uint32_t rank = 0; rank < ranks; rank++) {
        const struct trace_role *role = &trace->roles[rank];
        int64_t const first_ps = rank * (work_ps + hop_ps);
        assert_int_equal(role->first_begin_ps, first_ps);
        assert_int_equal(role->last_end_ps, first_ps + count * work_ps);
        assert_int_equal(role->compute_ps, count * work_ps);
        assert_int_equal(role->exposed_ps, 0);
        assert_int_equal(role->idle_ps, step_ps - count * work_ps);
        /* The first message is waited for; while it is on its way, that is the transfer's. */
        assert_int_equal(role->waiting_ps, rank > 0 ? hop_ps : 0);
        assert_int_equal(role->bubble_ps, role->idle_ps - role->waiting_ps);
        assert_int_equal(role->sent_bytes, rank + 1 < ranks ? count * bytes : 0);
    }
}

static void a_message_takes_latency_and_bytes_over_rate(void **state)
{
    (void)state;
    static const struct {
        uint32_t ranks;
        bool wrap;
    } cases[] = {{2, false}, {3, false}, {4, false}, {4, true}, {8, true}};
    for (uint32_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct scene scene;
        open_grid(&scene, cases[i].ranks, 1, cases[i].wrap);
        struct stages stages;
        open_stages(&stages, &scene, megabyte / 10);
        uint32_t const work = stages_work(&stages, small_flop);
        forward_only(&stages, work, cases[i].ranks, 5);
        struct trace const trace = stages_run(&stages, false);
        /* 100 KB at 100 GB/s: 1 us, which is less than the work between two messages. */
        check_forward_only(&trace, cases[i].ranks, 5, stages_work_ps(&stages, work),
                           2 * TIME_PS_PER_US, megabyte / 10);
        scene_close(&scene);
    }
}

/* 450 GB/s and half a microsecond up, half a microsecond down. */
static void through_a_switch_too(void **state)
{
    (void)state;
    struct scene scene;
    scene_open_node(&scene, 4);
    struct stages stages;
    open_stages(&stages, &scene, 450000);
    uint32_t const work = stages_work(&stages, small_flop);
    forward_only(&stages, work, 4, 6);
    struct trace const trace = stages_run(&stages, false);
    check_forward_only(&trace, 4, 6, stages_work_ps(&stages, work), 2 * TIME_PS_PER_US, 450000);
    scene_close(&scene);
}

/* GPipe on two ranks: forward passes, then backward passes in the other order. */
static void forward_and_backward(void **state)
{
    (void)state;
    struct scene scene;
    struct stages stages;
    uint32_t const forward = open_two(&scene, &stages, megabyte / 10);
    uint32_t const backward = stages_work(&stages, 2 * small_flop);
    int64_t const f_ps = stages_work_ps(&stages, forward);
    int64_t const b_ps = stages_work_ps(&stages, backward), hop_ps = 2 * TIME_PS_PER_US;
    forward_only(&stages, forward, 2, 3);
    for (uint32_t i = 0; i < 3; i++) {
        stages_compute(&stages, 1, backward);
        stages_send(&stages, 1, STAGES_DOWN);
        stages_receive(&stages, 0, STAGES_DOWN, i + 1);
        stages_compute(&stages, 0, backward);
    }
    struct trace const trace = stages_run(&stages, false);
    assert_int_equal(trace.step_ps, 4 * f_ps + 4 * b_ps + 2 * hop_ps);
    /* Rank 0 has nothing to do from its last forward pass until the first gradient comes. */
    assert_int_equal(trace.roles[0].idle_ps, f_ps + b_ps + 2 * hop_ps);
    assert_int_equal(trace.roles[0].waiting_ps, hop_ps);
    assert_int_equal(trace.roles[1].idle_ps, f_ps + b_ps + 2 * hop_ps);
    assert_int_equal(trace.roles[1].waiting_ps, hop_ps);
    assert_int_equal(trace.waiting_ps, hop_ps);
    assert_int_equal(trace.phase[PROGRAM_PHASE_FORWARD].waiting_ps, hop_ps);
    /* Two messages of rank 0, which ends last, leave while it computes, for 1 us each. */
    assert_int_equal(trace.links_ps[1], 2 * TIME_PS_PER_US);
    assert_int_equal(trace.links_ps[0] + trace.links_ps[1], trace.compute_ps);
    scene_close(&scene);
}

/* Microbatches are sent 2, 1 and wanted 1, 2: both begin when the later has come. */
static void counts_are_of_the_senders_order(void **state)
{
    (void)state;
    struct scene scene;
    struct stages stages;
    uint32_t const work = open_two(&scene, &stages, megabyte / 10);
    int64_t const work_ps = stages_work_ps(&stages, work);
    for (uint32_t i = 0; i < 2; i++) {
        stages_compute(&stages, 0, work);
        stages_send(&stages, 0, STAGES_UP);
        stages_receive(&stages, 1, STAGES_UP, 2 - i);
        stages_compute(&stages, 1, work);
    }
    struct trace const trace = stages_run(&stages, false);
    assert_int_equal(trace.roles[1].first_begin_ps, 2 * work_ps + 2 * TIME_PS_PER_US);
    assert_int_equal(trace.step_ps, 4 * work_ps + 2 * TIME_PS_PER_US);
    assert_int_equal(trace.roles[1].waiting_ps, 2 * TIME_PS_PER_US);
    scene_close(&scene);
}

/* Pipelines side by side fold onto one; where a group gathers along each rank it is one chip. */
static void pipelines_fold_and_stay_exact(void **state)
{
    (void)state;
    /* Ranks that are not neighbours send over several links, which the chips between use too. */
    static const uint32_t ranks[] = {2, 4, 8, 2, 4, 2}, strides[] = {1, 1, 1, 4, 2, 2};
    for (uint32_t i = 0; i < sizeof ranks / sizeof *ranks; i++) {
        struct scene scene;
        open_grid(&scene, 8, 4, true);
        struct group_dimension x = scene_dimension(&scene, 0);
        x.size = ranks[i];
        x.stride = strides[i];
        x.ring = ranks[i] * strides[i] == 8 && ranks[i] > 2;
        struct group const y = scene_group(&scene, false, true, false);
        struct stages stages;
        stages_open(&stages, case_arena, &scene.machine, &x, megabyte, 128);
        uint32_t const work = stages_work(&stages, small_flop);
        uint32_t const gather = stages_gather(&stages, &y, megabyte);
        for (uint32_t rank = 0; rank < ranks[i]; rank++) stages_play(&stages, rank, gather);
        forward_only(&stages, work, ranks[i], 5);
        struct trace const folded = stages_run(&stages, false);
        struct trace const full = stages_run(&stages, true);
        stages.engine = "reference";
        struct trace const reference = stages_run(&stages, true);
        assert_int_equal(folded.fold.replayed, ranks[i] * strides[i]);
        assert_int_equal(full.fold.replayed, 32);
        assert_int_equal(folded.step_ps, full.step_ps);
        assert_int_equal(full.digest, reference.digest);
        for (uint32_t rank = 0; rank < ranks[i]; rank++) {
            const struct trace_role *one = &folded.roles[rank], *other = &full.roles[rank];
            assert_int_equal(one->first_begin_ps, other->first_begin_ps);
            assert_int_equal(one->last_end_ps, other->last_end_ps);
            assert_int_equal(one->waiting_ps, other->waiting_ps);
            assert_int_equal(one->bubble_ps, other->bubble_ps);
            assert_int_equal(one->exposed_ps, other->exposed_ps);
        }
        scene_close(&scene);
    }
}

/* Two nodes of two ranks: the message of rank 1 leaves by the NIC, the others stay in the node. */
static void between_nodes_and_in_them(void **state)
{
    (void)state;
    static const char *const axes[] = {"node", "gpu", "node:2", "gpu:4"};
    for (uint32_t i = 0; i < sizeof axes / sizeof *axes; i++) {
        struct machine const machine = case_machine("h100-sxm:nodes=4");
        struct group const group = case_group(&machine, axes[i]);
        struct stages stages;
        assert_int_equal(group.dimension_count, 1);
        stages_open(&stages, case_arena, &machine, &group.dimension[0], 2 * megabyte, 128);
        uint32_t const ranks = group.dimension[0].size;
        uint32_t const work = stages_work(&stages, 100 * small_flop);
        int64_t const work_ps = stages_work_ps(&stages, work);
        forward_only(&stages, work, ranks, 4);
        struct trace const folded = stages_run(&stages, false);
        struct trace const full = stages_run(&stages, true);
        assert_int_equal(folded.step_ps, full.step_ps);
        assert_true(folded.fold.replayed < full.fold.replayed);
        /* Up and down each tier in turn; of the bytes only the slowest cable is seen. */
        uint32_t const level_index = machine.axis_level[group.dimension[0].axis];
        const struct level *level = &machine.level[level_index];
        uint64_t const rate = level->tier[0].cable_bytes_per_s * level->tier[0].cable_count;
        int64_t hop_ps = machine.chip.launch.message_ps + 2 * level->tier[0].latency_ps +
                         units_duration_ps(2 * megabyte, rate);
        assert_int_equal(full.roles[1].first_begin_ps, work_ps + hop_ps);
        check_forward_only(&full, ranks, 4, work_ps, hop_ps, 2 * megabyte);
    }
}

/* One slow chip makes its rank of one pipeline slow, and no other pipeline. */
static void a_slow_chip_delays_its_own_pipeline(void **state)
{
    (void)state;
    static const struct machine_chip_override slow = {
        .at = {5, UINT32_MAX, UINT32_MAX}, .math_ppm = 500000, .hbm_ppm = 1000000};
    struct scene scene;
    open_grid(&scene, 8, 4, true);
    case_override_chips(scene.arena, &scene.machine, &slow, 1);
    struct group_dimension x = scene_dimension(&scene, 0);
    x.size = 4;
    x.ring = false;
    struct stages stages;
    stages_open(&stages, case_arena, &scene.machine, &x, megabyte / 10, 64);
    uint32_t const work = stages_work(&stages, small_flop);
    int64_t const hop_ps = 2 * TIME_PS_PER_US, work_ps = stages_work_ps(&stages, work);
    forward_only(&stages, work, 4, 5);
    struct trace const folded = stages_run(&stages, false);
    struct trace const full = stages_run(&stages, true);
    int64_t const slow_ps =
        compute_time(&scene.machine.chip, &stages.work[work], 500000, PPM_ONE).duration_ps;
    assert_int_equal(folded.fold.replayed, 8);
    /* Rank 1 of the second pipeline: five passes one after the other. */
    assert_int_equal(folded.step_ps, 3 * (work_ps + hop_ps) + 5 * slow_ps);
    assert_int_equal(full.step_ps, folded.step_ps);
    assert_int_equal(folded.roles[1].chip,
                     machine_chip_at(&scene.machine, (uint32_t[]){5, 0, 0, 0}));
    assert_int_equal(folded.roles[1].compute_ps, 5 * slow_ps);
    assert_int_equal(folded.roles[0].compute_ps, 5 * work_ps);
    /* Rank 2 waits anew for each microbatch; its transfers are each of a hop. */
    assert_int_equal(folded.roles[2].waiting_ps, 5 * hop_ps);
    scene_close(&scene);
}

/* Between slices chips of a host share a cable. */
static void over_the_network_of_a_data_center(void **state)
{
    (void)state;
    struct machine const machine = case_machine("tpu-v5e:4x4,slices=4");
    struct group const group = case_group(&machine, "slice");
    struct stages stages;
    stages_open(&stages, case_arena, &machine, &group.dimension[0], megabyte, 64);
    uint32_t const work = stages_work(&stages, 100 * small_flop);
    forward_only(&stages, work, 4, 3);
    struct trace const folded = stages_run(&stages, false);
    struct trace const full = stages_run(&stages, true);
    const struct level_tier *host = &machine.level[0].tier[0], *network = host + 1;
    uint64_t chips = 1;
    for (uint32_t axis = 0; axis < MACHINE_AXES_MAX; axis++) chips *= host->box[axis];
    int64_t const alone_ps = units_duration_ps(megabyte, level_bundle_bytes_per_s(network));
    assert_int_equal(folded.step_ps, full.step_ps);
    assert_int_equal(full.fold.replayed, 64);
    assert_true(chips > 1);
    /* The last of a host's messages leaves when all have. */
    assert_true(full.roles[1].first_begin_ps >=
                stages_work_ps(&stages, work) + (int64_t)chips * alone_ps);
}

static void a_message_contends_with_a_gather(void **state)
{
    (void)state;
    struct scene scene;
    open_grid(&scene, 4, 1, true);
    struct group_dimension const x = scene_dimension(&scene, 0);
    struct group const group = scene_group(&scene, true, false, false);
    int64_t first_ps[2] = {0}, first_work_ps = 0;
    for (uint32_t with = 0; with < 2; with++) {
        struct stages stages;
        stages_open(&stages, case_arena, &scene.machine, &x, 10 * megabyte, 64);
        uint32_t const work = stages_work(&stages, small_flop);
        uint32_t const gather = stages_gather(&stages, &group, 80 * megabyte);
        for (uint32_t rank = 0; with > 0 && rank < 4; rank++) stages_play(&stages, rank, gather);
        forward_only(&stages, work, 4, 1);
        struct trace const trace = stages_run(&stages, false);
        first_ps[with] = trace.roles[1].first_begin_ps;
        assert_int_equal(trace.step_ps, stages_run(&stages, true).step_ps);
        if (with > 0) assert_true(trace.roles[3].exposed_ps > 0);
        first_work_ps = stages_work_ps(&stages, work);
    }
    /* The gather's message of 20 MB is on the link, and 10 MB share it by segments of 0.7 us. */
    assert_int_equal(first_ps[0], first_work_ps + 101 * TIME_PS_PER_US);
    assert_in_range(first_ps[1] - first_ps[0], 99 * TIME_PS_PER_US, 101 * TIME_PS_PER_US);
    scene_close(&scene);
}

/* Two works a pass, of which that of rank 1 is longer; the first gather holds up the first pass. */
static void a_pass_takes_its_ops_and_the_collectives_it_waits_for(void **state)
{
    (void)state;
    struct scene scene;
    open_grid(&scene, 2, 4, true);
    struct group_dimension x = scene_dimension(&scene, 0);
    struct group const y = scene_group(&scene, false, true, false);
    struct stages stages;
    stages_open(&stages, case_arena, &scene.machine, &x, megabyte, 64);
    uint32_t const works[2] = {stages_work(&stages, small_flop), stages_work(&stages, megabyte)};
    uint32_t const gather = stages_gather(&stages, &y, 100 * megabyte);
    for (uint32_t rank = 0; rank < 2; rank++) stages_play(&stages, rank, gather);
    for (uint32_t rank = 0; rank < 2; rank++)
        for (uint32_t pass = 1; pass <= 3; pass++)
            for (uint32_t i = 0; i < 2; i++) {
                struct program_role *role = &stages.role[rank];
                stages_compute(&stages, rank, works[pass == 2 || rank == 1 ? i : 1]);
                role->block[role->block_count - 1].pass = pass;
            }
    struct trace const folded = stages_run(&stages, false), full = stages_run(&stages, true);
    int64_t const long_ps = stages_work_ps(&stages, works[0]);
    int64_t const short_ps = stages_work_ps(&stages, works[1]);
    for (uint32_t rank = 0; rank < 2; rank++) {
        const struct trace_role *role = &folded.roles[rank];
        assert_int_equal(role->pass_count, 3);
        for (uint32_t pass = 0; pass < 3; pass++) {
            int64_t const first_ps = pass == 1 || rank == 1 ? long_ps : short_ps;
            assert_int_equal(role->pass_ps[pass], first_ps + short_ps);
            assert_int_equal(role->pass_ps[pass], full.roles[rank].pass_ps[pass]);
            /* Behind the gather, one pass follows another. */
            int64_t const before_ps =
                pass == 0 ? role->first_begin_ps : role->pass_end_ps[pass - 1];
            assert_int_equal(role->pass_begin_ps[pass], before_ps);
            assert_int_equal(role->pass_end_ps[pass] - before_ps, first_ps + short_ps);
            assert_int_equal(role->pass_begin_ps[pass], full.roles[rank].pass_begin_ps[pass]);
        }
    }
    assert_int_equal(full.fold.replayed, 8);
    scene_close(&scene);
}

static void a_message_that_never_comes_is_an_error(void **state)
{
    (void)state;
    struct scene scene;
    struct stages stages;
    struct trace trace;
    uint32_t const work = open_two(&scene, &stages, megabyte);
    stages_compute(&stages, 0, work);
    stages_send(&stages, 0, STAGES_UP);
    stages_receive(&stages, 1, STAGES_UP, 2);
    stages_compute(&stages, 1, work);
    case_refused(stages_try(&stages, false, &trace, &case_error), STATUS_STUCK, "/run",
                 "pipeline rank 1, stream compute, at work of work forward, waits for 1 part of "
                 "stream receive up, of which 0 are done; the next waits for 2 messages of other "
                 "ranks, of which 1 came");
    scene_close(&scene);
}

/* Each waits for the other's message before it sends its own. */
static void a_circle_is_an_error(void **state)
{
    (void)state;
    struct scene scene;
    scene_open_node(&scene, 2);
    struct stages stages;
    struct trace trace;
    open_stages(&stages, &scene, megabyte);
    uint32_t const work = stages_work(&stages, small_flop);
    for (uint32_t rank = 0; rank < 2; rank++) {
        stages_receive(&stages, rank, STAGES_UP, 1);
        stages_compute(&stages, rank, work);
        stages_send(&stages, rank, STAGES_UP);
    }
    case_refused(stages_try(&stages, true, &trace, &case_error), STATUS_STUCK, "/run",
                 "2 of 2 replayed chips did not finish");
    scene_close(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_takes_latency_and_bytes_over_rate),
        cmocka_unit_test(through_a_switch_too),
        cmocka_unit_test(forward_and_backward),
        cmocka_unit_test(counts_are_of_the_senders_order),
        cmocka_unit_test(pipelines_fold_and_stay_exact),
        cmocka_unit_test(between_nodes_and_in_them),
        cmocka_unit_test(a_slow_chip_delays_its_own_pipeline),
        cmocka_unit_test(over_the_network_of_a_data_center),
        cmocka_unit_test(a_message_contends_with_a_gather),
        cmocka_unit_test(a_pass_takes_its_ops_and_the_collectives_it_waits_for),
        cmocka_unit_test(a_message_that_never_comes_is_an_error),
        cmocka_unit_test(a_circle_is_an_error),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
