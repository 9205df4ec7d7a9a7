/* What an analysis says of compute ops: their times by unit, as a replay takes them. */
#include "sim/kernels/kernels.h"
#include "tests/unit/analysis_case.h"

/* Of 8 rows and the sides of a matrix unit of v5p: 2^18 FLOP, which take a second. */
static struct chip *compute_on_v5p(void)
{
    on("tpu-v5p:4x4x4");
    struct chip *chip = &made.machine.chip;
    chip->math_flop_per_s[FORMAT_BF16] = UINT64_C(1) << 18;
    chip->vector_flop_per_s = 100;
    chip->hbm_bytes_per_s = 1000;
    made.work = (struct work){.matmul = {{.rows = 8, .inner = 128, .columns = 128, .count = 1}},
                              .matmul_count = 1,
                              .math_format = FORMAT_BF16,
                              .vector_flop = 50,
                              .hbm_read_bytes = 800,
                              .hbm_write_bytes = 400};
    (void)op_add(PROGRAM_OP_COMPUTE, PROGRAM_COMPUTE, 0);
    return chip;
}

static void compute_says_what_hbm_takes_beyond_math(void **state)
{
    (void)state;
    (void)compute_on_v5p();
    const struct analysis_class *row;
    build();
    row = &made.analysis.classes[0];
    case_near(row->math_s, 5, 1e-9);
    case_near(row->hbm_excess_s, 5 * 0.2, 1e-9);
    case_near(row->beyond_s[ANALYSIS_MXU][ANALYSIS_HBM], 5 * 0.2, 1e-9);
    case_near(row->beyond_s[ANALYSIS_VPU][ANALYSIS_HBM], 5 * 0.7, 1e-9);
    assert_true(row->beyond_s[ANALYSIS_HBM][ANALYSIS_MXU] == 0);
    /* Rates of the reported chip, not of another: math twice as fast, and half of the HBM. */
    static struct machine_chip_override chips[2] = {
        {.at = {0, 0, 0}, .math_ppm = PPM_ONE / 100, .hbm_ppm = PPM_ONE / 100},
        {.at = {0, 0, 1}, .math_ppm = 2 * PPM_ONE, .hbm_ppm = PPM_ONE / 2}};
    case_override_chips(case_arena, &made.machine, chips, 2);
    made.trace.reported_chip = 1;
    build();
    row = &made.analysis.classes[0];
    case_near(row->math_s, 5 * 0.5, 1e-9);
    case_near(row->hbm_excess_s, 5 * (2.4 - 0.5), 1e-9);
    case_override_chips(case_arena, &made.machine, NULL, 0);
    made.work.vector_flop = 110;
    build();
    case_near(made.analysis.classes[0].hbm_excess_s, 5 * 0.1, 1e-9);
    made.work.vector_flop = 130;
    build();
    assert_true(made.analysis.classes[0].hbm_excess_s == 0);
}

/* Start and end of asynchronous collectives are of none of the units. */
static void compute_says_what_asynchronous_collectives_take(void **state)
{
    (void)state;
    (void)compute_on_v5p();
    build();
    assert_true(made.analysis.async_s == 0);
    made.work.async_ps = 3000 * TIME_PS_PER_US;
    build();
    case_near(made.analysis.async_s, 5 * 0.003, 1e-9);
    case_near(made.analysis.classes[0].math_s, 5, 1e-9);
    case_near(made.analysis.classes[0].hbm_excess_s, 5 * 0.2, 1e-9);
}

/* An op is bound by what a replay takes for it, not by its FLOP at the chip's rates. */
static void compute_takes_what_a_replay_takes(void **state)
{
    (void)state;
    struct chip *chip = compute_on_v5p();
    /* 9 rows are padded to 16: 2 s, and HBM does not bind. */
    made.work.matmul[0].rows = 9;
    build();
    case_near(made.analysis.classes[0].math_s, 5 * 2, 1e-9);
    assert_true(made.analysis.classes[0].hbm_excess_s == 0);
    case_near(made.analysis.classes[0].beyond_s[ANALYSIS_HBM][ANALYSIS_MXU], 5 * 0.8, 1e-9);
    /* Three of four cores have no part of it. */
    made.work.matmul[0].rows = 8;
    made.work.idle_core_ppm = PPM_ONE / 4 * 3;
    build();
    case_near(made.analysis.classes[0].math_s, 5 * 4, 1e-9);
    assert_true(made.analysis.classes[0].hbm_excess_s == 0);
    made.work.idle_core_ppm = 0;
    /* A measured kernel has a quarter of the rate of what bounds it on the roofline, HBM. */
    static const uint32_t rows[] = {8}, side[] = {128}, share_ppm[] = {PPM_ONE / 4};
    struct kernel_stack const stack = {.name = "case",
                                       .table = {{.format = FORMAT_BF16,
                                                  .layout = KERNEL_TN,
                                                  .flop_per_s = UINT64_C(1) << 18,
                                                  .bytes_per_s = 1000,
                                                  .edge_count = {1, 1, 1},
                                                  .edge = {rows, side, side},
                                                  .share_ppm = share_ppm}},
                                       .table_count = 1};
    chip->kernels = (struct chip_kernels){
        .stack = &stack, .rest_math_ppm = PPM_ONE / 8, .rest_hbm_ppm = PPM_ONE};
    made.work.kernel = WORK_KERNEL_FORWARD;
    build();
    case_near(made.analysis.classes[0].math_s, 5, 1e-9);
    case_near(made.analysis.classes[0].hbm_excess_s, 5 * (4 * 1.2 - 1), 1e-9);
    /* What has no kernel has the profile's shares: 8 s of math. */
    made.work.kernel = WORK_KERNEL_NONE;
    build();
    case_near(made.analysis.classes[0].math_s, 5 * 8, 1e-9);
    assert_true(made.analysis.classes[0].hbm_excess_s == 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, case_arena_up, case_arena_down)
    const struct CMUnitTest tests[] = {
        TEST(compute_says_what_hbm_takes_beyond_math),
        TEST(compute_says_what_asynchronous_collectives_take),
        TEST(compute_takes_what_a_replay_takes),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
