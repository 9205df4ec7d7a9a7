/* Products head by head, which are one kernel: those that absorb matrices of latent attention. */
#include <string.h>

#include "sim/base/units.h"
#include "sim/kernels/kernel_of_work.h"
#include "sim/kernels/kernels.h"
#include "sim/resource/compute.h"
#include "tests/support/case.h"
#include "tests/support/catalogue.h"
#include "tests/support/walk.h"
#include "tests/unit/workload_case.h"

enum { TEXT_BYTES = WALK_TEXT_BYTES, CORES = 132 };

static double table_us(const struct kernel_table *table, const uint64_t *side)
{
    return (double)kernel_roofline_ps(table, side) / kernel_table_share(table, side, CORES).ppm *
           PPM_ONE / TIME_PS_PER_US;
}

/* Published kernels: TensorRT-LLM 1.3.0rc20 and vLLM 0.24.0; on A100 TensorRT-LLM 1.0.0. */
static void batches_take_what_was_measured(void **state)
{
    static const struct {
        const char *chip, *stack;
        enum format format;
        uint64_t side[KERNEL_SIDES_MAX];
        double us;
    } rows[] = {
        {"h200-sxm", "trtllm", FORMAT_BF16, {128, 32, 512, 128}, 6.3328},
        {"h200-sxm", "trtllm", FORMAT_BF16, {128, 32, 128, 512}, 6.1536},
        {"h200-sxm", "trtllm", FORMAT_FP8, {128, 32, 512, 128}, 19.168},
        {"h200-sxm", "trtllm", FORMAT_FP8, {128, 32, 128, 512}, 16.63},
        {"h200-sxm", "vllm", FORMAT_BF16, {128, 4096, 512, 128}, 187.5},
        {"h200-sxm", "sglang", FORMAT_BF16, {128, 4096, 512, 128}, 187.5},
        {"h100-sxm", "trtllm", FORMAT_BF16, {16, 32, 128, 512}, 4.5376},
        {"b200", "vllm", FORMAT_BF16, {128, 512, 512, 128}, 18.429},
        {"a100-sxm", "vllm", FORMAT_BF16, {128, 32, 128, 512}, 13.21},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct kernel_stack const stack = catalogue_kernels(rows[i].chip, rows[i].stack);
        const struct kernel_table *table =
            kernel_other_of(&stack, KERNEL_BATCHED, rows[i].format, rows[i].format);
        assert_non_null(table);
        double const us = table_us(table, rows[i].side);
        if (us < 0.999 * rows[i].us || us > 1.001 * rows[i].us)
            fail_msg("row %zu takes %.3f us, not %.3f", i, us, rows[i].us);
    }
    /* Blackwell's in fp8 run in bf16. */
    struct kernel_stack const blackwell = catalogue_kernels("b200", "trtllm");
    assert_null(kernel_other_of(&blackwell, KERNEL_BATCHED, FORMAT_FP8, FORMAT_FP8));
}

static void played(struct play *play, const char *stack)
{
    static const struct play_options lower_only = {.lower_only = true};
    char text[TEXT_BYTES];
    case_text(text, sizeof text,
              "{\"podsim\": 1, \"machine\": {\"chip\": \"h200-sxm\", \"nodes\": 4, \"profile\": "
              "\"measured\", \"stack\": \"%s\"}, \"mesh\": {\"ep\": [\"gpu\", \"node\"]}, "
              "\"workload\": {\"kind\": \"decode\", \"model\": \"deepseek-v3\", \"batch\": 1024, "
              "\"context\": 4096, \"formats\": {\"matmuls\": \"fp8\", \"weights\": \"fp8\"}}}",
              stack);
    play_run(play, text, &lower_only);
}

/* DeepSeek-V3 in fp8, 32 sequences a rank: one kernel for all 128 heads. Engines hold copies of the
 * matrices in 16 bits where they have no kernel in fp8, and read these. */
static void a_decode_absorbs_its_matrices_by_one_kernel_each(void **state)
{
    static const struct {
        const char *stack;
        enum format format;
        uint64_t weight_bytes;
        double us[2];
    } rows[] = {{"vllm", FORMAT_BF16, 2, {6.2816, 6.4608}},
                {"trtllm", FORMAT_FP8, 1, {19.168, 16.63}}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct play play;
        uint32_t found = 0;
        played(&play, rows[i].stack);
        struct walk_op walk = {.program = &play.program};
        while (walk_next(&walk)) {
            bool const is_key = strcmp(walk.op->name, "attention.AbsorbK") == 0;
            if (!is_key && strcmp(walk.op->name, "attention.AbsorbV") != 0) continue;
            const struct work *work = &play.program.works[walk.op->index];
            struct work_call calls[WORK_MATMULS_MAX];
            assert_int_equal(work_calls(play.machine.chip.kernels.stack, work, calls), 1);
            assert_int_equal(calls[0].family, KERNEL_BATCHED);
            assert_int_equal(calls[0].count, 1);
            assert_int_equal(calls[0].side[KERNEL_BATCH], 128);
            assert_int_equal(calls[0].side[KERNEL_EACH + KERNEL_M], 32);
            assert_int_equal(work->math_format, rows[i].format);
            assert_int_equal(work->hbm_read_bytes,
                             128 * 128 * 512 * rows[i].weight_bytes +
                                 UINT64_C(2) * 32 * 128 * (is_key ? 128 : 512));
            double const us =
                (double)compute_time(&play.machine.chip, work, PPM_ONE, PPM_ONE).duration_ps /
                TIME_PS_PER_US;
            if (us < 0.99 * rows[i].us[!is_key] || us > 1.01 * rows[i].us[!is_key])
                fail_msg("%s of %s takes %.2f us", walk.op->name, rows[i].stack, us);
            found++;
        }
        assert_true(found > 0);
        play_close(&play);
    }
}

/* Sides that the table of batches has not are looked up in that of products, as one product whose
 * longer side is that of all: as many tiles. Each has matrices of its own. */
static void batches_without_a_table_are_one_product(void **state)
{
    static const struct {
        struct work_matmul of;
        uint64_t side[3], nearest_batch[KERNEL_SIDES_MAX], nearest[KERNEL_SIDES_MAX];
    } rows[] = {
        {{4096, 128, 4096, 32}, /* Scores. */
         {131072, 4096, 128},
         {32, 4096, 512, 128},
         {131072, 512, 128}},
        {{32, 64, 256, 16}, /* Heads of a small model. */
         {32, 4096, 64},
         {16, 32, 256, 128},
         {32, 4096, 128}},
    };
    (void)state;
    struct kernel_stack const stack = catalogue_kernels("h100-sxm", "vllm");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct work const work = {.matmul = {rows[i].of},
                                  .matmul_count = 1,
                                  .math_format = FORMAT_BF16,
                                  .kernel = WORK_KERNEL_FORWARD,
                                  .batched = 1};
        struct work_call calls[WORK_MATMULS_MAX];
        assert_int_equal(work_calls(&stack, &work, calls), 1);
        assert_int_equal(calls[0].family, KERNEL_MATMUL);
        assert_true(calls[0].is_batched);
        for (uint32_t s = 0; s < 3; s++) assert_int_equal(calls[0].side[s], rows[i].side[s]);
        struct work_kernels const kernels = kernel_of_work(&stack, CORES, &work);
        assert_true(kernels.is_of_single);
        const struct kernel_table *batch =
            kernel_other_of(&stack, KERNEL_BATCHED, FORMAT_BF16, FORMAT_BF16);
        uint32_t const ppm =
            (uint32_t)((uint64_t)kernel_table_share(kernels.table, calls[0].side, CORES).ppm *
                       kernel_table_inside_ppm(batch, rows[i].nearest_batch) /
                       kernel_table_share(kernels.table, rows[i].nearest, CORES).ppm);
        assert_in_range(kernels.share_ppm, ppm - 1, ppm + 1);
        struct kernel_demand const of = kernel_batched_demand(kernels.table, calls[0].whole);
        assert_int_equal(of.move_ps, units_duration_ps(2 * rows[i].of.count *
                                                           (rows[i].of.rows * rows[i].of.inner +
                                                            rows[i].of.columns * rows[i].of.inner +
                                                            rows[i].of.rows * rows[i].of.columns),
                                                       kernels.table->bytes_per_s));
    }
}

/* Of a layout that was not measured in batches, a batch within their table takes that table's time
 * where the layout alone takes the time of the measured one. */
static void a_batch_of_another_layout_is_as_fast_as_measured_ones(void **state)
{
    static const uint64_t side[KERNEL_SIDES_MAX] = {32, 1024, 512, 128};
    (void)state;
    struct kernel_stack const stack = catalogue_kernels("a100-sxm", "trtllm");
    struct work const work = {.matmul = {{1024, 512, 128, 32}},
                              .matmul_count = 1,
                              .math_format = FORMAT_BF16,
                              .kernel = WORK_KERNEL_INPUT,
                              .batched = 1};
    struct work_kernels const kernels = kernel_of_work(&stack, CORES, &work);
    assert_true(kernels.is_of_single);
    uint32_t const ppm = kernel_table_inside_ppm(
        kernel_other_of(&stack, KERNEL_BATCHED, FORMAT_BF16, FORMAT_BF16), side);
    assert_in_range(kernels.share_ppm, ppm - 2, ppm + 2);
}

/* One after the other they would take 16 launches. */
static void a_batch_is_faster_than_its_products(void **state)
{
    (void)state;
    struct kernel_stack const stack = catalogue_kernels("h100-sxm", "vllm");
    struct work work = {.matmul = {{32, 64, 256, 16}},
                        .matmul_count = 1,
                        .math_format = FORMAT_BF16,
                        .kernel = WORK_KERNEL_FORWARD};
    uint32_t const apart_ppm = kernel_of_work(&stack, CORES, &work).share_ppm;
    work.batched = 1;
    assert_true(kernel_of_work(&stack, CORES, &work).share_ppm > 8 * apart_ppm);
}

/* Attention that is not fused: 10 heads of one sequence of 4,096 tokens on a rank. Each product is
 * one kernel, in the layout that its operands lie in. */
static void unfused_attention_has_a_kernel_for_all_heads(void **state)
{
    static const struct play_options lower_only = {.lower_only = true};
    static const struct {
        const char *op;
        enum kernel_layout layout;
        uint64_t m, n, k;
    } rows[] = {
        {"attention.S", KERNEL_TN, 4096, 4096, 128},
        {"attention.A", KERNEL_NN, 4096, 128, 4096},
        {"attention.dV", KERNEL_NT, 4096, 128, 4096},
        {"attention.dP", KERNEL_TN, 4096, 4096, 128},
        {"attention.dQr", KERNEL_NN, 4096, 128, 4096},
        {"attention.dKr", KERNEL_NT, 4096, 128, 4096},
    };
    uint32_t found[sizeof rows / sizeof *rows] = {0};
    struct play play;
    (void)state;
    play_run(&play,
             "{\"podsim\": 1, \"machine\": {\"chip\": \"a100-sxm\", \"nodes\": 1, \"gpus\": 4, "
             "\"profile\": \"measured\", \"stack\": \"torch-eager\"}, \"mesh\": {\"tp\": "
             "[\"gpu\"]}, \"workload\": {\"kind\": \"train_step\", \"model\": \"llama-2-13b\", "
             "\"batch_tokens\": 4096, \"sequence_length\": 4096, "
             "\"attention\": \"full\", \"attention_kernel\": \"unfused\", "
             "\"allow_oversubscription\": true}}",
             &lower_only);
    struct walk_op walk = {.program = &play.program};
    while (walk_next(&walk)) {
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            if (strcmp(walk.op->name, rows[i].op) != 0) continue;
            const struct work *work = &play.program.works[walk.op->index];
            struct work_call calls[WORK_MATMULS_MAX];
            const uint64_t *each = calls[0].whole + KERNEL_EACH;
            assert_int_equal(work_calls(play.machine.chip.kernels.stack, work, calls), 1);
            assert_true(calls[0].is_batched);
            assert_int_equal(calls[0].layout, rows[i].layout);
            assert_int_equal(calls[0].whole[KERNEL_BATCH], 10);
            assert_int_equal(each[KERNEL_M], rows[i].m);
            assert_int_equal(each[KERNEL_N], rows[i].n);
            assert_int_equal(each[KERNEL_K], rows[i].k);
            assert_non_null(kernel_of_work(play.machine.chip.kernels.stack, CORES, work).table);
            found[i]++;
        }
    }
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) assert_true(found[i] > 0);
    play_close(&play);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches_take_what_was_measured),
        cmocka_unit_test(a_decode_absorbs_its_matrices_by_one_kernel_each),
        cmocka_unit_test(batches_without_a_table_are_one_product),
        cmocka_unit_test(a_batch_is_faster_than_its_products),
        cmocka_unit_test(a_batch_of_another_layout_is_as_fast_as_measured_ones),
        cmocka_unit_test(unfused_attention_has_a_kernel_for_all_heads),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
