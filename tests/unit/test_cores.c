/*
 * Cores that collectives take from compute ops: as many as NCCL has channels, as long as the
 * collective runs; an op that the matrix unit bounds goes on with the others. Channels are those
 * that public logs of NCCL have.
 */
#include <string.h>

#include "sim/base/units.h"
#include "sim/choose/channels.h"
#include "sim/machine/machine.h"
#include "sim/resource/compute.h"
#include "tests/support/case.h"
#include "tests/support/scene.h"

enum { CHIPS = 4, CORES = 100 };

static const int64_t us = TIME_PS_PER_US;

static void open_ring(struct scene *scene)
{
    scene_open(scene, CHIPS, 1, 1, true);
    scene->machine.chip.core.count = CORES;
}

/* From each chip to the next, for 100 us and a hop of 1 us, with cores. */
static uint32_t sends(struct scene *scene, const char *stream, uint32_t cores)
{
    struct plan_request request = {.kind = COLLECTIVE_PERMUTE,
                                   .group = scene_group(scene, true, false, false),
                                   .size_bytes = 10000000,
                                   .offset = {1}};
    uint32_t const op = scene_plan(scene, scene_stream(scene, stream), &request);
    scene->plan[scene->op[op].index].protocol.cores = cores;
    return op;
}

static uint32_t multiplies(struct scene *scene, int64_t duration_ps)
{
    return scene_compute(scene, (uint64_t)duration_ps * 1000, 1);
}

static int64_t step_ps(struct scene *scene)
{
    (void)scene_run_alike(scene, 1);
    return scene_run(scene, 1, false, false).step_ps;
}

/* Beside 101 us of a message with a fifth of the cores, a matmul of 200 us loses 20.2. */
static void what_runs_beside_a_collective_goes_on_with_the_other_cores(void **state)
{
    static const struct {
        uint32_t cores;
        int64_t math_ps, step_ps;
    } rows[] = {
        {0, 200 * TIME_PS_PER_US, 200 * TIME_PS_PER_US},
        {20, 200 * TIME_PS_PER_US, 220200000},
        {50, 200 * TIME_PS_PER_US, 250500000},
        {20, 40 * TIME_PS_PER_US, 101 * TIME_PS_PER_US}, /* Ends at 50, before the message. */
        {20, 8080 * TIME_PS_PER_US / 100, 101 * TIME_PS_PER_US}, /* Ends with it. */
        /* It has lost 18 at 90, and then goes on as if the message did: for 18 / 0.8. */
        {20, 90 * TIME_PS_PER_US, 112500000},
    };
    (void)state;
    for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct scene scene;
        open_ring(&scene);
        (void)multiplies(&scene, rows[i].math_ps);
        (void)sends(&scene, "message", rows[i].cores);
        /* With what is rounded, and what messages take of the vector unit. */
        assert_in_range(step_ps(&scene), rows[i].step_ps, rows[i].step_ps + us / 1000);
        scene_close(&scene);
    }
}

/* Of two at once both count, and never all cores. */
static void collectives_at_once_add_up(void **state)
{
    (void)state;
    struct scene scene;
    open_ring(&scene);
    uint32_t const first = multiplies(&scene, 300 * us);
    uint32_t const one = sends(&scene, "one", 20), other = sends(&scene, "other", 30);
    (void)first;
    (void)one;
    (void)other;
    /* They share a link, for 200 us and a hop; half of the cores are left. */
    int64_t const both_ps = step_ps(&scene);
    assert_in_range(both_ps, 300 * us + 201 * us / 4, 300 * us + 201 * us / 2);
    scene.plan[0].protocol.cores = scene.plan[1].protocol.cores = 90;
    assert_true(step_ps(&scene) > both_ps);
    scene_close(&scene);
}

/* An op that HBM bounds has cores to spare. */
static void what_memory_bounds_loses_what_its_math_lacks(void **state)
{
    (void)state;
    for (uint32_t near = 0; near < 2; near++) {
        struct scene scene;
        open_ring(&scene);
        uint32_t const op = multiplies(&scene, near ? 90 * us : 50 * us);
        scene.work[scene.op[op].index].hbm_read_bytes = 1000000000; /* 100 us. */
        int64_t const alone_ps = step_ps(&scene);
        uint32_t const message = sends(&scene, "message", 40);
        scene.plan[scene.op[message].index].protocol.cores = 0;
        int64_t const beside_ps = step_ps(&scene);
        scene.plan[scene.op[message].index].protocol.cores = 40;
        assert_true(beside_ps >= alone_ps);
        if (near == 0)
            assert_int_equal(step_ps(&scene), beside_ps);
        else
            assert_true(step_ps(&scene) > beside_ps + 20 * us);
        scene_close(&scene);
    }
}

/* A table's kernels need as many more waves of tiles as cores are fewer; others go by cores. */
static void waves_are_counted_anew(void **state)
{
    enum { HELD_MOST = 16 };
    static const struct {
        uint64_t rows, columns; /* Tiles of 128 x 128. */
        uint32_t loss_ppm;
    } rows[] = {
        {128 * 116, 128, 0},           /* 116 tiles: a wave on 132 cores, and on 116. */
        {128 * 132, 128, 500000},      /* One wave, and two. */
        {128 * 132, 128 * 29, 121212}, /* 29 waves, and 33. */
    };
    struct machine machine;
    (void)state;
    struct machine_plan const plan = {.chip = "h100-sxm",
                                      .profile = "measured",
                                      .stack = "te",
                                      .gpus = 8,
                                      .nodes = 1,
                                      .wrap = {-1, -1, -1}};
    case_ok(machine_build(case_arena, &plan, &machine, &case_error));
    for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct work work = {.matmul_count = 1,
                            .matmul = {{rows[i].rows, 4096, rows[i].columns, 1}},
                            .math_format = FORMAT_BF16,
                            .result = FORMAT_BF16,
                            .kernel = WORK_KERNEL_FORWARD};
        uint32_t ppm[HELD_MOST + 1];
        compute_losses_ppm(&machine.chip, &work, HELD_MOST, ppm);
        assert_in_range(ppm[HELD_MOST], rows[i].loss_ppm, rows[i].loss_ppm + 2);
        assert_int_equal(ppm[0], 0);
        work.kernel = WORK_KERNEL_NONE;
        compute_losses_ppm(&machine.chip, &work, HELD_MOST, ppm);
        assert_int_equal(ppm[HELD_MOST], 121212);
    }
}

static uint32_t channels(const char *chip, uint32_t nodes, uint32_t gpus, enum collective_kind kind,
                         const char *algorithm, uint64_t bytes)
{
    struct machine machine;
    struct machine_plan const plan = {
        .chip = chip, .profile = "measured", .gpus = 8, .nodes = nodes, .wrap = {-1, -1, -1}};
    case_ok(machine_build(case_arena, &plan, &machine, &case_error));
    struct group group = {.dimension_count = nodes > 1 ? 2 : 1};
    group.dimension[0] =
        (struct group_dimension){.axis = 0, .stride = 1, .size = gpus, .switched = true};
    group.dimension[1] =
        (struct group_dimension){.axis = 1, .stride = 1, .size = nodes, .switched = true};
    if (gpus == 1) {
        group.dimension[0] = group.dimension[1];
        group.dimension_count = 1;
    }
    struct protocol_use const use = {
        &machine, &group, kind, algorithm_read(algorithm), bytes, false, PROTOCOL_STANDS_ALONE};
    return channels_of(&use, PROTOCOL_SIMPLE);
}

static void channels_are_those_of_public_logs(void **state)
{
    uint64_t const big = UINT64_C(1) << 30;
    (void)state;
    assert_int_equal(channels("a100-sxm", 1, 8, COLLECTIVE_ALL_GATHER, "ring", big), 24);
    assert_int_equal(channels("h100-sxm", 1, 8, COLLECTIVE_ALL_GATHER, "ring", big), 24);
    assert_int_equal(channels("h100-sxm", 1, 4, COLLECTIVE_ALL_GATHER, "ring", big), 24);
    assert_int_equal(channels("h800-sxm", 1, 8, COLLECTIVE_ALL_GATHER, "ring", big), 16);
    assert_int_equal(channels("h100-sxm", 4, 8, COLLECTIVE_ALL_GATHER, "ring", big), 16);
    assert_int_equal(channels("h100-sxm", 4, 2, COLLECTIVE_ALL_GATHER, "ring", big), 8);
    assert_int_equal(channels("h100-sxm", 4, 1, COLLECTIVE_ALL_GATHER, "ring", big), 4);
    /* Twelve of fast NICs are fewer than 16, and are doubled once more. */
    assert_int_equal(channels("h100-sxm", 4, 6, COLLECTIVE_ALL_GATHER, "ring", big), 24);
    /* NVLS has its own, a small array a few, and a message as many as a peer over the network. */
    assert_int_equal(channels("h100-sxm", 1, 8, COLLECTIVE_ALL_REDUCE, "sharp", big), 16);
    assert_int_equal(channels("b200", 1, 8, COLLECTIVE_ALL_REDUCE, "sharp", big), 24);
    assert_int_equal(channels("h100-sxm", 1, 8, COLLECTIVE_ALL_GATHER, "ring", 128 << 10), 4);
    assert_int_equal(channels("h100-sxm", 1, 8, COLLECTIVE_ALL_GATHER, "ring", 100), 1);
    assert_int_equal(channels("h100-sxm", 4, 1, COLLECTIVE_PERMUTE, NULL, big), 2);
    assert_int_equal(channels("h100-sxm", 1, 8, COLLECTIVE_PERMUTE, NULL, big), 32);
    assert_int_equal(channels("h100-sxm", 1, 8, COLLECTIVE_ALL_TO_ALL, "direct", big), 28);
    assert_int_equal(channels("h100-sxm", 1, 8, COLLECTIVE_ALL_TO_ALL, "direct", 16 * big), 32);
    /* Peers share channels: four each of 8 ranks, one for each 64 KiB of a smaller message, more
     * from 16 MiB a channel on. */
    assert_int_equal(channels("h100-sxm", 1, 8, COLLECTIVE_ALL_TO_ALL, "direct", 16 << 20), 28);
    assert_int_equal(channels("h100-sxm", 1, 4, COLLECTIVE_ALL_TO_ALL, "direct", 16 << 20), 24);
    assert_int_equal(channels("h100-sxm", 1, 8, COLLECTIVE_ALL_TO_ALL, "direct", 4096 << 10), 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_runs_beside_a_collective_goes_on_with_the_other_cores),
        cmocka_unit_test(collectives_at_once_add_up),
        cmocka_unit_test(what_memory_bounds_loses_what_its_math_lacks),
        cmocka_unit_test(waves_are_counted_anew),
        cmocka_unit_test(channels_are_those_of_public_logs),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
