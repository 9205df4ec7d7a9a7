/* Measured kernels of attention: their tables, and what an op of a step asks them for. */
#include <stdio.h>
#include <string.h>

#include "sim/base/json.h"
#include "sim/base/units.h"
#include "sim/kernels/kernel_of_work.h"
#include "sim/kernels/kernels.h"
#include "sim/resource/compute.h"
#include "sim/step/counts.h"
#include "tests/support/case.h"
#include "tests/support/catalogue.h"
#include "tests/support/play.h"

enum { CORES = 132, TEXT_BYTES = 768, POINTS = 16 };

static const uint32_t tokens[] = {1024, 4096}, heads[] = {4, 64}, groups[] = {1, 8},
                      widths[] = {64, 128};
static const uint32_t shares[POINTS] = {10000,  20000,  30000,  40000,  50000,  60000,
                                        70000,  80000,  210000, 220000, 230000, 240000,
                                        250000, 260000, 270000, 280000};

static struct kernel_table table_case(enum kernel_family family)
{
    return (struct kernel_table){
        .family = family,
        .format = FORMAT_BF16,
        .stored = FORMAT_BF16,
        .source = "a case",
        .flop_per_s = UINT64_C(1000000000000000),
        .bytes_per_s = UINT64_C(4000000000000),
        .edge_count = {2, 2, 2, 2},
        .edge = {tokens, heads, groups, widths},
        .share_ppm = shares,
    };
}

/* 4,096 tokens of 4 heads of 128 with 8 queries each: 4,096·4,097/2 scores of 32 heads, each
 * multiplied twice forward and five times backward. A decode of as many keys reads 4,096 rows of
 * 256 numbers of 4 heads, and Q and its result. */
static void a_roofline_counts_causal_scores_or_rows_of_the_cache(void **state)
{
    (void)state;
    uint64_t const side[KERNEL_SIDES_MAX] = {4096, 4, 8, 128};
    int64_t const flop = INT64_C(4096) * 4097 / 2 * 32 * 128 * 2;
    struct kernel_table table = table_case(KERNEL_ATTENTION);
    assert_in_range(kernel_roofline_ps(&table, side), 2 * flop / 1000, 2 * flop / 1000 + 1);
    table.family = KERNEL_ATTENTION_BACKWARD;
    assert_in_range(kernel_roofline_ps(&table, side), 5 * flop / 1000, 5 * flop / 1000 + 1);
    table.family = KERNEL_DECODE;
    int64_t const rows = INT64_C(4096) * 4 * 2 * 128, queries = 2 * 4 * 8 * 128;
    assert_in_range(kernel_roofline_ps(&table, side), (rows + queries) / 2,
                    (rows + queries) / 2 + 1);
    table.stored = FORMAT_FP8;
    assert_in_range(kernel_roofline_ps(&table, side), (rows / 2 + queries) / 2,
                    (rows / 2 + queries) / 2 + 1);
}

static void a_share_is_found_by_four_sides(void **state)
{
    (void)state;
    struct kernel_table const table = table_case(KERNEL_ATTENTION);
    for (uint32_t i = 0; i < POINTS; i++) {
        uint64_t const side[KERNEL_SIDES_MAX] = {tokens[i >> 3 & 1], heads[i >> 2 & 1],
                                                 groups[i >> 1 & 1], widths[i & 1]};
        struct kernel_share const share = kernel_table_share(&table, side, CORES);
        assert_int_equal(share.ppm, shares[i]);
        assert_false(share.is_outside);
    }
    /* Halfway in tokens, heads: the fourth root of the product. */
    uint64_t const between[KERNEL_SIDES_MAX] = {2048, 16, 1, 64};
    assert_in_range(kernel_table_share(&table, between, CORES).ppm, 71577, 71579);
    /* A table of one edge says nothing of that side. */
    struct kernel_table flat = table;
    flat.edge_count[KERNEL_TOKENS] = 1;
    flat.edge[KERNEL_TOKENS] = tokens;
    uint64_t const alone[KERNEL_SIDES_MAX] = {1024, 64, 8, 128};
    assert_int_equal(kernel_table_share(&flat, alone, CORES).ppm, 80000);
}

/* Steps of tiles of 64 columns, by heads of `blocks` tiles on 132 cores. */
static double steps_of(double blocks, double count)
{
    double const longest = blocks + 2;
    double const last = longest * (2.0 / 3 - blocks / (2 * CORES));
    double const mean = (blocks * (blocks + 1) / 2 + 2 * blocks) * count / CORES;
    double const even = mean + (last > 0 ? last : 0);
    return even > longest ? even : longest;
}

/* A tile has the blocks of keys up to its own, and two steps more. Twice the tokens are nearly four
 * times the steps, and a head alone takes as long as its longest tile. */
static void outside_the_grid_time_grows_with_causal_tiles(void **state)
{
    (void)state;
    struct kernel_table const table = table_case(KERNEL_ATTENTION);
    static const uint64_t side[][KERNEL_SIDES_MAX] = {
        {4096, 64, 8, 128}, {8192, 64, 8, 128}, {4096, 132, 8, 128},
        {4096, 4, 1, 128},  {4096, 1, 1, 128},  {65536, 64, 8, 128},
    };
    static const double count[][2] = {{32, 512}, {64, 512}, {32, 1056},
                                      {32, 4},   {32, 1},   {512, 512}};
    double steps[sizeof side / sizeof *side], us[sizeof side / sizeof *side];
    for (size_t i = 0; i < sizeof side / sizeof *side; i++) {
        steps[i] = steps_of(count[i][0], count[i][1]);
        double const found = (double)kernel_tile_steps(KERNEL_ATTENTION, side[i], CORES);
        case_near(found / 4096 / 2, steps[i], 1e-3);
        us[i] = (double)kernel_roofline_ps(&table, side[i]) /
                kernel_table_share(&table, side[i], CORES).ppm;
    }
    case_near(steps[4], 34, 1e-9);
    assert_true(kernel_table_share(&table, side[1], CORES).is_outside);
    case_near(us[1] / us[0], steps[1] / steps[0], 1e-3);
    case_near(us[2] / us[0], steps[2] / steps[0], 1e-3);
    case_near(us[4] / us[3], 34 / steps[3], 1e-3);
    case_near(us[5] / us[0], steps[5] / steps[0], 1e-3);
    /* No cores are asked for: they work as one. */
    assert_true(kernel_tile_steps(KERNEL_ATTENTION, side[1], 1) >
                3 * kernel_tile_steps(KERNEL_ATTENTION, side[0], 1));
}

/* Tables without their longest sequences, of 16,384 tokens, find them from those of 8,192: 94 of
 * 160 within 8 %, 144 within 20 %. With whole waves of tiles of all keys, it is 38 and 76. */
static void longer_sequences_follow_from_shorter_ones(void **state)
{
    (void)state;
    static const struct {
        const char *chip;
        uint32_t cores;
    } chips[] = {{"a100-sxm", 108},
                 {"h100-sxm", 132},
                 {"h200-sxm", 132},
                 {"b200", 148},
                 {"gb200-nvl72", 148}};
    static const char *const stacks[] = {"vllm", "trtllm"};
    uint32_t count = 0, near[2] = {0};
    for (size_t i = 0; i < sizeof chips / sizeof *chips * 2; i++) {
        struct kernel_stack const stack = catalogue_kernels(chips[i / 2].chip, stacks[i % 2]);
        const struct kernel_table *table =
            kernel_other_of(&stack, KERNEL_ATTENTION, FORMAT_BF16, FORMAT_BF16);
        struct kernel_table shorter = *table;
        uint32_t const last = --shorter.edge_count[KERNEL_TOKENS];
        for (uint64_t group = 1; group <= 8; group *= 2)
            for (uint64_t head = 1; head <= 8; head *= 2, count++) {
                uint64_t const side[KERNEL_SIDES_MAX] = {table->edge[KERNEL_TOKENS][last], head,
                                                         group, 128};
                double const known = kernel_table_share(table, side, chips[i / 2].cores).ppm;
                double const off =
                    known / kernel_table_share(&shorter, side, chips[i / 2].cores).ppm - 1;
                near[0] += off < 0.08 && off > -0.08;
                near[1] += off < 0.2 && off > -0.2;
            }
    }
    assert_true(near[0] * 2 > count);
    assert_true(near[1] * 20 > count * 17);
}

/* --- Of a step --- */

static void played(struct play *play, const char *machine, const char *mesh, const char *workload)
{
    static const struct play_options lower = {.lower_only = true};
    char text[TEXT_BYTES];
    int const length =
        snprintf(text, sizeof text,
                 "{\"podsim\": 1, \"machine\": {\"chip\": \"h100-sxm\", %s, \"profile\": "
                 "\"measured\", \"stack\": \"trtllm\"}, \"mesh\": %s, \"workload\": {%s}}",
                 machine, mesh, workload);
    assert_true(length > 0 && length < TEXT_BYTES);
    play_run(play, text, &lower);
}

/* The first work of a step whose kernel is of attention, in a pass. */
static const struct work *attention_of(const struct play *play, enum work_kernel kernel)
{
    for (uint32_t w = 0; w < play->program.work_count; w++)
        if (play->program.works[w].kernel == kernel) return &play->program.works[w];
    fail_msg("no work has the kernel");
    return NULL;
}

static void has_sides(const struct work_attended *of, uint64_t length, uint64_t count,
                      uint64_t group, uint64_t is_other)
{
    assert_int_equal(of->tokens, length);
    assert_int_equal(of->heads, count);
    assert_int_equal(of->group, group);
    assert_int_equal(of->key_width, 128);
    assert_int_equal(of->value_width, 128);
    assert_int_equal(of->is_other, is_other);
}

/* LLaMA-3-8B: 32 heads, 8 of keys. 8 sequences on each of 2 ranks of dp; 4 of tp have 2 heads of
 * keys each. */
static void training_asks_for_whole_sequences(void **state)
{
    (void)state;
    struct play play;
    played(&play, "\"gpus\": 8", "{\"fsdp\": [\"gpu:2\"], \"tp\": [\"gpu:4\"]}",
           "\"kind\": \"train_step\", \"model\": \"llama-3-8b\", \"batch_tokens\": 65536, "
           "\"sequence_length\": 4096, \"attention\": \"causal\"");
    has_sides(&attention_of(&play, WORK_KERNEL_ATTENTION)->attended[0], 4096, 16, 4, 0);
    has_sides(&attention_of(&play, WORK_KERNEL_ATTENTION_BACKWARD)->attended[0], 4096, 16, 4, 0);
    /* TensorRT-LLM has no backward kernels. */
    const struct work *backward = attention_of(&play, WORK_KERNEL_ATTENTION_BACKWARD);
    assert_null(
        kernel_of_work(play.machine.chip.kernels.stack, play.machine.chip.core.count, backward)
            .table);
    play_close(&play);
}

/* A rank of cp has 2,048 of 8,192 queries, with 4,096.5 keys each in the mean: as sequences of
 * 8,192 have, of which 8 heads and a quarter of each come to 2 wholes. In a ring they are four
 * kernels with a quarter of the keys. Where every query has all 8,192 keys, 16,383 tokens have as
 * many. Queries of a ring have all keys of a part, 1,024.125 in the mean. */
static void ranks_of_cp_ask_for_as_many_keys_a_query(void **state)
{
    (void)state;
    static const struct {
        const char *keys;
        uint64_t tokens, heads, full_tokens, full_heads;
    } rows[] = {
        {"\"causal\", \"context\": \"all_gather\"", 8192, 2, 0, 0},
        {"\"causal\", \"context\": \"ring\"", 2048, 8, 1025, 64},
        {"\"full\", \"context\": \"all_gather\"", 16383, 2, 8192, 8},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct play play;
        const char *workload = arena_format(case_arena,
                                            "\"kind\": \"train_step\", \"model\": \"llama-3-8b\", "
                                            "\"batch_tokens\": 8192, \"sequence_length\": 8192, "
                                            "\"attention\": %s",
                                            rows[i].keys);
        played(&play, "\"gpus\": 4", "{\"cp\": [\"gpu\"]}", workload);
        has_sides(&attention_of(&play, WORK_KERNEL_ATTENTION)->attended[0], rows[i].tokens,
                  rows[i].heads, 4, 1);
        const struct work_attended *of = &attention_of(&play, WORK_KERNEL_ATTENTION)->attended[0];
        assert_int_equal(of->full_tokens, rows[i].full_tokens);
        assert_int_equal(of->full_heads, rows[i].full_heads);
        assert_int_equal(of->full_is_other, rows[i].full_tokens != 0);
        play_close(&play);
    }
}

/* 64 sequences of 4,096 earlier tokens and their own; and prompts of 2,048. */
static void decodes_and_prompts_have_tables_of_their_own(void **state)
{
    (void)state;
    struct play play;
    struct work_call calls[WORK_MATMULS_MAX];
    played(&play, "\"gpus\": 1", "{\"dp\": [\"gpu\"]}",
           "\"kind\": \"decode\", \"model\": \"llama-3-8b\", \"batch\": 64, \"context\": 4096");
    const struct work *decode = attention_of(&play, WORK_KERNEL_ATTENTION);
    has_sides(&decode->attended[0], 4096, 512, 4, 0);
    assert_int_equal(work_calls(play.machine.chip.kernels.stack, decode, calls), 1);
    assert_int_equal(calls[0].family, KERNEL_DECODE);
    struct work_kernels const kernels =
        kernel_of_work(play.machine.chip.kernels.stack, play.machine.chip.core.count, decode);
    assert_int_equal(kernels.table->family, KERNEL_DECODE);
    assert_false(kernels.is_outside);
    assert_in_range(kernels.share_ppm, 860000, 890000); /* Measured: 365.33 us, 87.7 % of HBM. */
    play_close(&play);
    played(&play, "\"gpus\": 1", "{\"dp\": [\"gpu\"]}",
           "\"kind\": \"prefill\", \"model\": \"llama-3-8b\", \"prompt\": 2048, \"batch\": 4");
    const struct work *prefill = attention_of(&play, WORK_KERNEL_ATTENTION);
    assert_int_equal(work_calls(play.machine.chip.kernels.stack, prefill, calls), 1);
    assert_int_equal(calls[0].family, KERNEL_ATTENTION);
    assert_int_equal(calls[0].side[KERNEL_TOKENS], 2048);
    assert_int_equal(calls[0].side[KERNEL_HEADS], 32);
    play_close(&play);
}

/* The kernel of a step of DeepSeek-V3 on one chip, which is looked up as decodes of these sides. */
static struct work_kernels latent_decode_of(struct play *play, const char *step, bool is_of_other,
                                            const uint64_t sides[KERNEL_SIDES_MAX])
{
    struct work_call calls[WORK_MATMULS_MAX];
    played(play, "\"gpus\": 1", "{\"dp\": [\"gpu\"]}",
           arena_format(case_arena,
                        "%s, \"model\": \"deepseek-v3\", \"allow_oversubscription\": true", step));
    const struct kernel_stack *stack = play->machine.chip.kernels.stack;
    const struct work *work = attention_of(play, WORK_KERNEL_ATTENTION);
    assert_int_equal(work_calls(stack, work, calls), 1);
    assert_int_equal(calls[0].family, KERNEL_LATENT_DECODE);
    assert_int_equal(calls[0].is_of_other_mask, is_of_other);
    for (uint32_t s = 0; s < KERNEL_SIDES_MAX; s++) assert_int_equal(calls[0].side[s], sides[s]);
    struct work_kernels const kernels = kernel_of_work(stack, play->machine.chip.core.count, work);
    assert_int_equal(kernels.table->family, KERNEL_LATENT_DECODE);
    assert_false(kernels.is_outside);
    return kernels;
}

/* DeepSeek-V3 on one chip: 128 heads share a row of 576 columns, of which 512 are values.
 * Measured: 64 sequences of 4,096 tokens take 139.43 us. */
static void decodes_of_latents_have_tables_of_their_own(void **state)
{
    (void)state;
    struct play play;
    static const uint64_t sides[KERNEL_SIDES_MAX] = {4096, 64, 128, 544};
    struct work_kernels const kernels = latent_decode_of(
        &play, "\"kind\": \"decode\", \"batch\": 64, \"context\": 4096", false, sides);
    /* 4,096 rows of 576 numbers of 64 sequences, and Q and its result; or FLOP. */
    int64_t const bytes = INT64_C(2) * 64 * (4096 * 576 + 128 * (576 + 512));
    int64_t const flop = INT64_C(2) * 64 * 4096 * 128 * (576 + 512);
    double const us = (double)kernel_roofline_ps(kernels.table, sides) / kernels.share_ppm;
    assert_in_range(kernel_roofline_ps(kernels.table, sides) - bytes * 1000 / 3350, 0, 1000);
    assert_true(flop / 990 < bytes * 1000 / 3350);
    case_near(us, 139.43, 0.02);
    play_close(&play);
}

/* DeepSeek-V3 on one chip: prompts of 512 behind 3,584 cached latents have 3,840.5 keys in the
 * mean. Each has 512 x 128 queries with the same rows, as 512 sequences of 128 heads have. */
static void prompts_that_attend_to_latents_are_as_decodes(void **state)
{
    (void)state;
    struct play play;
    static const uint64_t sides[KERNEL_SIDES_MAX] = {3841, 2 * 512, 128, 544};
    struct work_kernels const kernels = latent_decode_of(
        &play, "\"kind\": \"prefill\", \"batch\": 2, \"prompt\": 512, \"cached\": 3584", true,
        sides);
    assert_in_range(kernels.share_ppm, 400000, 900000);
    play_close(&play);
}

/* In one pass prompts that begin and decodes have a kernel each, as in passes of their own. */
static void a_pass_of_latents_has_a_kernel_of_each_kind(void **state)
{
    (void)state;
    struct play play;
    uint32_t count[KERNEL_FAMILIES] = {0};
    played(&play, "\"gpus\": 1", "{\"dp\": [\"gpu\"]}",
           "\"kind\": \"mixed\", \"model\": \"deepseek-v3\", \"batch\": 64, \"context\": 4096, "
           "\"prompts\": 4, \"prompt\": 2048, \"allow_oversubscription\": true");
    for (uint32_t w = 0; w < play.program.work_count; w++) {
        struct work_call calls[WORK_MATMULS_MAX];
        if (play.program.works[w].kernel != WORK_KERNEL_ATTENTION) continue;
        assert_int_equal(work_calls(play.machine.chip.kernels.stack, &play.program.works[w], calls),
                         1);
        bool const decodes = calls[0].family == KERNEL_LATENT_DECODE;
        static const uint64_t sides[2][KERNEL_SIDES_MAX] = {{2048, 4 * 128, 1, 160},
                                                            {4096, 64, 128, 544}};
        for (uint32_t s = 0; s < KERNEL_SIDES_MAX; s++)
            assert_int_equal(calls[0].side[s], sides[decodes][s]);
        count[calls[0].family]++;
    }
    assert_int_equal(count[KERNEL_LATENT_ATTENTION], 1);
    assert_int_equal(count[KERNEL_LATENT_DECODE], 1);
    play_close(&play);
}

/* TensorRT-LLM 1.3.0rc20 on an H100: heads, heads of keys, sequences, tokens and us. */
static void shipped_tables_have_what_was_measured(void **state)
{
    (void)state;
    static const struct {
        enum kernel_family family;
        uint64_t side[KERNEL_SIDES_MAX];
        double measured_us, within;
    } rows[] = {
        {KERNEL_ATTENTION, {8192, 1, 8, 128}, 331.59, 0.02},
        {KERNEL_ATTENTION, {4096, 32, 4, 128}, 1235, 0.05},
        {KERNEL_ATTENTION, {3072, 8, 8, 128}, 407.92, 0.1},
        {KERNEL_DECODE, {4096, 512, 4, 128}, 365.33, 0.05},
        {KERNEL_LATENT_ATTENTION, {4096, 64, 1, 160}, 665.9, 0.05},
        {KERNEL_DECODE, {1024, 128, 5, 128}, 49.248, 0.1},
    };
    struct kernel_stack const stack = catalogue_kernels("h100-sxm", "trtllm");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct kernel_table *table =
            kernel_other_of(&stack, rows[i].family, FORMAT_BF16, FORMAT_BF16);
        assert_non_null(table);
        uint32_t const ppm = kernel_table_share(table, rows[i].side, CORES).ppm;
        double const us = (double)kernel_roofline_ps(table, rows[i].side) / (double)ppm;
        assert_true(us > rows[i].measured_us * (1 - rows[i].within));
        assert_true(us < rows[i].measured_us * (1 + rows[i].within));
    }
}

static void refuses_the_file(const char *list, const char *where, const char *words)
{
    struct kernel_stack stack;
    struct json *document = NULL;
    const char *text = arena_format(case_arena,
                                    "{\"podsim_kernels\": 1, \"chip\": \"c\", \"stack\": \"s\", "
                                    "\"title\": \"T\"%s}",
                                    list);
    case_ok(json_read_text(case_arena, "test", text, strlen(text), &document, &case_error));
    case_refused(kernel_stack_read(case_arena, document, &stack, &case_error), STATUS_INVALID,
                 where, words);
    json_free(document);
}

static void files_that_are_none_are_refused(void **state)
{
    (void)state;
    static const char rates[] = "\"source\": \"x\", \"flop_rate\": \"1TFLOP/s\", \"hbm_rate\": "
                                "\"1TB/s\", \"rows\": 8, \"error_median_ppm\": 0, "
                                "\"error_ninetieth_ppm\": 0, \"tokens\": [1], \"heads\": [1, 2], "
                                "\"group\": [1], \"width\": [64], \"share_ppm\": [1, 2]";
    refuses_the_file("", "", "list of tables");
    refuses_the_file(", \"decode\": []", "/decode", "list of tables");
    refuses_the_file(", \"decodes\": []", "/decodes", "decode");
    refuses_the_file(arena_format(case_arena, ", \"decode\": [{\"format\": \"bf16\", %s}]", rates),
                     "/decode/0", "stored");
    refuses_the_file(arena_format(case_arena,
                                  ", \"attention\": [{\"format\": \"bf16\", \"layout\": \"TN\", "
                                  "%s}]",
                                  rates),
                     "/attention/0/layout", "unknown key");
    refuses_the_file(arena_format(case_arena,
                                  ", \"attention\": [{\"format\": \"bf16\", %s}, {\"format\": "
                                  "\"bf16\", %s}]",
                                  rates, rates),
                     "/attention/1", "there already");
}

/* Ops of the program whose time a table has, each as often as it runs. */
static double measured_ops(const struct play *play, const struct kernel_stack *stack)
{
    const struct program *program = &play->program;
    double count = 0;
    for (uint32_t b = 0; b < program->roles[0].block_count; b++) {
        const struct program_block *block = &program->roles[0].block[b];
        const struct program_template *template = &program->templates[block->template_index];
        for (uint32_t i = 0; i < template->op_count; i++)
            if (template->op[i].kind == PROGRAM_OP_COMPUTE &&
                kernel_is_measured(stack, &program->works[template->op[i].index]))
                count += (double)block->repeat;
    }
    return count;
}

/* A pass with prompts is measured only if both of its kernels of attention are. */
static void counts_know_a_kernel_as_its_op_does(void **state)
{
    (void)state;
    struct play play;
    struct workload_counts counts;
    played(&play, "\"gpus\": 1", "{\"dp\": [\"gpu\"]}",
           "\"kind\": \"mixed\", \"model\": \"llama-3-8b\", \"batch\": 8, \"context\": 4096, "
           "\"prompt\": 2048");
    struct kernel_stack some = *play.machine.chip.kernels.stack;
    double const all = measured_ops(&play, &some);
    case_near(play.roofline.counts.ops.measured, all, 1e-9);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < some.table_count; i++)
        if (some.table[i].family != KERNEL_ATTENTION) some.table[kept++] = some.table[i];
    some.table_count = kept;
    play.machine.chip.kernels.stack = &some;
    case_ok(
        workload_count(&play.scenario.workload, &play.machine, &play.mesh, &counts, &case_error));
    assert_true(measured_ops(&play, &some) < all);
    case_near(counts.ops.measured, measured_ops(&play, &some), 1e-9);
    play_close(&play);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_roofline_counts_causal_scores_or_rows_of_the_cache),
        cmocka_unit_test(a_share_is_found_by_four_sides),
        cmocka_unit_test(outside_the_grid_time_grows_with_causal_tiles),
        cmocka_unit_test(longer_sequences_follow_from_shorter_ones),
        cmocka_unit_test(training_asks_for_whole_sequences),
        cmocka_unit_test(ranks_of_cp_ask_for_as_many_keys_a_query),
        cmocka_unit_test(decodes_and_prompts_have_tables_of_their_own),
        cmocka_unit_test(decodes_of_latents_have_tables_of_their_own),
        cmocka_unit_test(prompts_that_attend_to_latents_are_as_decodes),
        cmocka_unit_test(a_pass_of_latents_has_a_kernel_of_each_kind),
        cmocka_unit_test(counts_know_a_kernel_as_its_op_does),
        cmocka_unit_test(shipped_tables_have_what_was_measured),
        cmocka_unit_test(files_that_are_none_are_refused),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
