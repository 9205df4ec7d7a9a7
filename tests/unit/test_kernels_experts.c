/* A layer's experts as engines run them: one measured kernel, which two ops share. */
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

/* vLLM 0.24.0 on an H100: Qwen3-30B-A3B, Qwen3-235B-A22B and Mixtral 8x7B in bf16, balanced. */
static void experts_take_what_was_measured(void **state)
{
    static const struct {
        uint64_t tokens, experts, columns, model;
        double us;
    } rows[] = {
        {1, 8, 768, 2048, 49.072},     {4, 128, 768, 2048, 431.94},   {64, 128, 768, 2048, 528.75},
        {256, 128, 768, 2048, 836.2},  {4, 128, 1536, 4096, 1688.9},  {16, 8, 14336, 4096, 969.19},
        {256, 8, 14336, 4096, 1912.2}, {4096, 8, 14336, 4096, 22561},
    };
    (void)state;
    struct kernel_stack const stack = catalogue_kernels("h100-sxm", "vllm");
    const struct kernel_table *table =
        kernel_other_of(&stack, KERNEL_EXPERTS, FORMAT_BF16, FORMAT_BF16);
    assert_non_null(table);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint64_t const side[KERNEL_SIDES_MAX] = {rows[i].tokens, rows[i].experts, rows[i].columns,
                                                 rows[i].model};
        double const us = (double)kernel_roofline_ps(table, side) /
                          kernel_table_share(table, side, CORES).ppm * PPM_ONE / TIME_PS_PER_US;
        if (us < 0.8 * rows[i].us || us > 1.2 * rows[i].us)
            fail_msg("row %zu takes %.1f us, not %.1f", i, us, rows[i].us);
    }
}

static void engines_without_rows_have_those_of_another(void **state)
{
    (void)state;
    static const char *const rows[][3] = {
        {"h100-sxm", "trtllm", "h100-sxm.vllm"},
        {"b200", "sglang", "b200.vllm"},
        {"a100-sxm", "vllm", "a100-sxm.sglang"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct kernel_stack const stack = catalogue_kernels(rows[i][0], rows[i][1]);
        const struct kernel_table *table =
            kernel_other_of(&stack, KERNEL_EXPERTS, FORMAT_BF16, FORMAT_BF16);
        assert_non_null(table);
        assert_string_equal(table->of, rows[i][2]);
    }
    /* Steps of training have no such kernel. */
    struct kernel_stack const te = catalogue_kernels("h100-sxm", "te");
    assert_null(kernel_other_of(&te, KERNEL_EXPERTS, FORMAT_BF16, FORMAT_BF16));
}

static void lower_decode(struct play *play, const char *stack, const char *software)
{
    static const struct play_options lower_only = {.lower_only = true};
    char text[TEXT_BYTES];
    case_text(text, sizeof text,
              "{\"podsim\": 1, \"machine\": {\"chip\": \"h100-sxm\", \"nodes\": 1, \"gpus\": 1, "
              "\"profile\": \"measured\", \"stack\": \"%s\"}, \"mesh\": {\"dp\": [\"gpu\"]}, "
              "\"workload\": {\"kind\": \"decode\", \"model\": \"qwen3-30b-a3b\", \"batch\": "
              "1024, \"context\": 8, \"allow_oversubscription\": true}, \"run\": {%s}}",
              stack, software);
    play_run(play, text, &lower_only);
}

/* 8,192 rows of 128 experts: both products together take 529 us, whatever the stack joins, and all
 * else of the experts no time of its own. */
static void both_products_share_the_time(void **state)
{
    static const char *const software[] = {"", "\"joined_products\": \"none\""};
    static const char *const within[] = {"moe.Route", "moe.Sort", "moe.gate", "moe.Sum"};
    (void)state;
    for (size_t i = 0; i < sizeof software / sizeof *software; i++) {
        struct play play;
        lower_decode(&play, "vllm", software[i]);
        const struct chip *chip = &play.machine.chip;
        struct walk_op walk = {.program = &play.program};
        int64_t all_ps = 0;
        uint32_t in_count = 0, out_count = 0, within_count = 0;
        while (walk_next(&walk)) {
            if (walk.op->kind != PROGRAM_OP_COMPUTE) continue;
            const struct work *work = &play.program.works[walk.op->index];
            int64_t const ps = compute_time(chip, work, PPM_ONE, PPM_ONE).duration_ps;
            bool const is_in = strcmp(walk.op->name, "experts.Gate,Up") == 0;
            bool const is_out = strcmp(walk.op->name, "experts.Out") == 0;
            if (is_in && in_count++ == 0) {
                struct work_call calls[WORK_MATMULS_MAX];
                assert_int_equal(work_calls(NULL, work, calls), 1);
                assert_int_equal(calls[0].family, KERNEL_EXPERTS);
                assert_int_equal(calls[0].side[KERNEL_TOKENS], 64);
                assert_int_equal(calls[0].side[KERNEL_EXPERT], 128);
                assert_int_equal(calls[0].side[KERNEL_COLUMNS], 768);
                assert_int_equal(calls[0].side[KERNEL_MODEL], 2048);
                all_ps += ps;
            }
            if (is_out && out_count++ == 0) all_ps += ps;
            for (size_t w = 0; w < sizeof within / sizeof *within; w++) {
                if (strcmp(walk.op->name, within[w]) != 0) continue;
                assert_int_equal(work->kernel, WORK_KERNEL_WITHIN);
                assert_int_equal(ps, 0);
                within_count++;
            }
        }
        assert_true(in_count > 0 && in_count == out_count && within_count == 4 * in_count);
        assert_in_range(all_ps, 475 * TIME_PS_PER_US, 580 * TIME_PS_PER_US);
        play_close(&play);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(experts_take_what_was_measured),
        cmocka_unit_test(engines_without_rows_have_those_of_another),
        cmocka_unit_test(both_products_share_the_time),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
