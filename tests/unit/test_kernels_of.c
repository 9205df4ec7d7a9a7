/* Tables that are other stacks': as they are, by a factor, and all that another stack has. */

#include "sim/base/units.h"
#include "sim/kernels/kernel_of_work.h"
#include "sim/kernels/kernels.h"
#include "tests/support/case.h"
#include "tests/support/catalogue.h"
#include "tests/support/kernel_stack.h"

enum { CORES = 132, FP8_PPM = 820000 };

/* Half of TN's share at 1,024, a quarter at 4,096, so 0.354 of it halfway. Outside of the factor's
 * grid it is that of the edge. */
static void a_factor_makes_a_table_of_another(void **state)
{
    (void)state;
    struct kernel_stack mine, sglang = catalogue_kernels("h100-sxm", "sglang");
    case_ok(kernel_stack_made(
        ", \"matmul\": [{\"format\": \"bf16\", \"layout\": \"NT\", \"result\": "
        "\"fp32\", \"of\": {\"stack\": \"h100-sxm.sglang\", \"layout\": \"TN\"}, "
        "\"factor\": {\"m\": [1024, 4096], \"n\": [32], \"k\": [32], \"ppm\": "
        "[500000, 250000]}, \"derived\": \"a case\", \"source\": \"x\", \"rows\": 3, "
        "\"error_median_ppm\": 1, \"error_ninetieth_ppm\": 2}]",
        &mine));
    const struct kernel_table *table =
        kernel_table_of(&mine, FORMAT_BF16, KERNEL_NT, FORMAT_FP32, WORK_CAST_WITHIN);
    const struct kernel_table *of =
        kernel_table_of(&sglang, FORMAT_BF16, KERNEL_TN, FORMAT_BF16, WORK_CAST_WITHIN);
    assert_non_null(table);
    assert_string_equal(table->of, "h100-sxm.sglang");
    assert_string_equal(table->derived, "a case");
    assert_int_equal(table->row_count, 3);
    assert_int_equal(table->flop_per_s, of->flop_per_s);
    static const struct {
        uint64_t m, of_million;
    } rows[] = {{1024, 500000}, {2048, 353553}, {4096, 250000}, {32768, 250000}, {16, 500000}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint64_t const side[KERNEL_SIDES_MAX] = {rows[i].m, 4096, 8192};
        uint64_t const wanted =
            kernel_table_share(of, side, CORES).ppm * rows[i].of_million / PPM_ONE;
        assert_in_range(kernel_table_share(table, side, CORES).ppm, wanted - 2, wanted + 2);
    }
    /* The layout is nearer than TN, whatever its result, and there is no other. */
    assert_ptr_equal(kernel_table_of(&mine, FORMAT_BF16, KERNEL_NT, FORMAT_BF16, WORK_CAST_WITHIN),
                     table);
    assert_null(kernel_table_of(&mine, FORMAT_BF16, KERNEL_NN, FORMAT_BF16, WORK_CAST_WITHIN));
}

static void no_factor_lifts_a_share_above_one(void **state)
{
    (void)state;
    struct kernel_stack mine;
    case_ok(kernel_stack_made(
        ", \"attention_backward\": [{\"format\": \"bf16\", \"of\": {\"stack\": "
        "\"h100-sxm.vllm\", \"family\": \"attention\"}, \"factor\": {\"tokens\": "
        "[1], \"heads\": [1], \"group\": [1], \"width\": [128], \"ppm\": [8000000]}, "
        "\"derived\": \"a case\", \"source\": \"x\", \"rows\": 0, "
        "\"error_median_ppm\": 0, \"error_ninetieth_ppm\": 0}]",
        &mine));
    const struct kernel_table *table =
        kernel_other_of(&mine, KERNEL_ATTENTION_BACKWARD, FORMAT_BF16, FORMAT_BF16);
    uint64_t const side[KERNEL_SIDES_MAX] = {8192, 64, 8, 128};
    assert_int_equal(kernel_table_share(table, side, CORES).ppm, PPM_ONE);
}

/* Products of its own, attention and fp8 of the other: which is another chip's for one. */
static void all_tables_of_another_stack_are_taken_but_those_of_its_own(void **state)
{
    (void)state;
    struct kernel_stack mine, te = catalogue_kernels("h100-sxm", "te"),
                              eager = catalogue_kernels("h800-sxm", "te");
    case_ok(kernel_stack_made(
        ", \"tables_of\": \"h100-sxm.te\", \"matmul\": [{\"format\": \"bf16\", "
        "\"layout\": \"NN\", \"of\": {\"stack\": \"h100-sxm.trtllm\", \"layout\": "
        "\"TN\"}, \"factor\": {\"m\": [1], \"n\": [1], \"k\": [1], \"ppm\": "
        "[1000000]}, \"derived\": \"a case\", \"source\": \"x\", \"rows\": 0, "
        "\"error_median_ppm\": 0, \"error_ninetieth_ppm\": 0}]",
        &mine));
    assert_int_equal(mine.table_count, te.table_count);
    assert_string_equal(
        kernel_table_of(&mine, FORMAT_BF16, KERNEL_NN, FORMAT_BF16, WORK_CAST_WITHIN)->of,
        "h100-sxm.trtllm");
    const struct kernel_table *products =
        kernel_table_of(&mine, FORMAT_BF16, KERNEL_TN, FORMAT_BF16, WORK_CAST_WITHIN);
    assert_string_equal(products->of, "h100-sxm.sglang");
    assert_null(products->derived);
    assert_true(
        kernel_table_of(&mine, FORMAT_FP8, KERNEL_TN, FORMAT_BF16, WORK_CAST_WITHIN)->quantises);
    assert_string_equal(
        kernel_table_of(&eager, FORMAT_BF16, KERNEL_TN, FORMAT_BF16, WORK_CAST_WITHIN)->derived,
        "shares of another chip");
}

/* A stack that takes the tables of its own chip has their clock, unless it has one; of another chip
 * it has none. */
static void a_clock_comes_with_the_tables_of_its_chip(void **state)
{
    (void)state;
    struct kernel_stack mine, eager = catalogue_kernels("h100-sxm", "torch-eager");
    assert_int_equal(eager.clock_ppm, 770000);
    assert_int_equal(catalogue_kernels("h100-sxm", "trtllm").clock_ppm, 0);
    assert_int_equal(catalogue_kernels("tpu-v6e", "xla").clock_ppm, 730000);
    assert_int_equal(catalogue_kernels("tpu-v5e", "xla").clock_ppm, 0);
    case_ok(kernel_stack_made(", \"tables_of\": \"h100-sxm.te\"", &mine));
    assert_int_equal(mine.clock_ppm, 830000);
    assert_int_equal(mine.clock_fp8_ppm, 820000);
    assert_int_equal(eager.clock_fp8_ppm, FP8_PPM);
    assert_int_equal(catalogue_kernels("h200-sxm", "torch-compile").clock_fp8_ppm, FP8_PPM);
    case_ok(kernel_stack_made(", \"tables_of\": \"h100-sxm.te\", \"clock\": {\"ppm\": 1000000, "
                              "\"source\": \"cool\"}",
                              &mine));
    assert_int_equal(mine.clock_ppm, 1000000);
    assert_int_equal(mine.clock_fp8_ppm, 0);
    assert_string_equal(mine.clock_source, "cool");
    case_ok(
        kernel_stack_made(", \"tables_of\": \"h100-sxm.te\", \"clock\": {\"ppm\": 1000000, "
                          "\"source\": \"cool\", \"fp8\": {\"ppm\": 700000, \"source\": \"warm\"}}",
                          &mine));
    assert_int_equal(mine.clock_fp8_ppm, 700000);
    assert_string_equal(mine.clock_fp8_source, "warm");
}

static void a_clock_is_six_tenths_at_least_and_has_a_source(void **state)
{
    (void)state;
    struct kernel_stack mine;
    static const char tables[] = ", \"tables_of\": \"h100-sxm.te\", \"clock\": ";
    case_ok(kernel_stack_made(
        arena_format(case_arena, "%s{\"ppm\": 600000, \"source\": \"x\"}", tables), &mine));
    case_refused(
        kernel_stack_made(
            arena_format(case_arena, "%s{\"ppm\": 599999, \"source\": \"x\"}", tables), &mine),
        STATUS_INVALID, "/clock/ppm", "600000");
    case_refused(kernel_stack_made(arena_format(case_arena, "%s{\"ppm\": 900000}", tables), &mine),
                 STATUS_INVALID, "/clock", "source");
    case_refused(kernel_stack_made(arena_format(case_arena, "%s0.9", tables), &mine),
                 STATUS_INVALID, "/clock", "object");
    static const struct {
        const char *fp8, *where, *word;
    } rows[] = {{"{\"ppm\": 599999, \"source\": \"x\"}", "/clock/fp8/ppm", "600000"},
                {"{\"ppm\": 700000}", "/clock/fp8", "source"},
                {"0.7", "/clock/fp8", "object"},
                {"{\"ppm\": 700000, \"source\": \"x\", \"fp8\": 1}", "/clock/fp8/fp8", "ppm"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        case_refused(
            kernel_stack_made(arena_format(case_arena,
                                           "%s{\"ppm\": 900000, \"source\": \"x\", \"fp8\": %s}",
                                           tables, rows[i].fp8),
                              &mine),
            STATUS_INVALID, rows[i].where, rows[i].word);
}

/* Of gradients of weights in fp32, and in bf16: a B200 has tables of both. */
static void a_gradient_is_looked_up_by_its_format(void **state)
{
    (void)state;
    struct kernel_stack const te = catalogue_kernels("b200", "te");
    struct chip chip = {.kind = CHIP_GPU, .core = {.count = 148}, .kernels = {.stack = &te}};
    struct work work = {.matmul = {{4096, 8192, 4096, 1}},
                        .matmul_count = 1,
                        .math_format = FORMAT_BF16,
                        .kernel = WORK_KERNEL_WEIGHT,
                        .result = FORMAT_FP32};
    chip.math_flop_per_s[FORMAT_BF16] = UINT64_C(2250000000000000);
    struct work_kernels kernels = kernel_of_work(chip.kernels.stack, chip.core.count, &work);
    assert_int_equal(kernels.table->result, FORMAT_FP32);
    assert_int_equal(kernels.table->layout, KERNEL_NT);
    assert_true(kernels.is_derived);
    uint32_t const sum_ppm = kernels.share_ppm;
    work.result = FORMAT_BF16;
    kernels = kernel_of_work(chip.kernels.stack, chip.core.count, &work);
    assert_int_equal(kernels.table->result, FORMAT_BF16);
    assert_true(kernels.share_ppm > sum_ppm);
    /* A forward product is TN's, whatever its gradients are. */
    work.kernel = WORK_KERNEL_FORWARD;
    work.result = FORMAT_FP32;
    assert_int_equal(kernel_of_work(chip.kernels.stack, chip.core.count, &work).table->layout,
                     KERNEL_TN);
}

/* Sequences beyond the grid of forward attention: SimuMax's times of backward over forward on a
 * B200, of 8 and of 16 heads of queries, with 8 for each of keys. */
static void backward_attention_beyond_the_grid_has_its_own_ratio(void **state)
{
    (void)state;
    static const struct {
        uint64_t tokens, heads;
        double ratio;
    } rows[] = {{32768, 1, 3.147}, {32768, 2, 3.342}, {131072, 1, 3.034}, {131072, 2, 2.990}};
    struct kernel_stack const te = catalogue_kernels("b200", "te");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint64_t const side[KERNEL_SIDES_MAX] = {rows[i].tokens, rows[i].heads, 8, 128};
        double time[2];
        for (uint32_t backward = 0; backward < 2; backward++) {
            const struct kernel_table *table =
                kernel_other_of(&te, backward ? KERNEL_ATTENTION_BACKWARD : KERNEL_ATTENTION,
                                FORMAT_BF16, FORMAT_BF16);
            struct kernel_share const share = kernel_table_share(table, side, 148);
            assert_true(share.is_outside);
            time[backward] = (double)kernel_roofline_ps(table, side) / share.ppm;
        }
        case_near(time[1] / time[0], rows[i].ratio, 0.04);
    }
}

/* Training kernels that SimuMax measured, as a share of the dense peak: matmuls m, n, k; attention
 * of 4,096 tokens, heads of keys, group, width, half of an efficiency that counts the full square.
 */
static void shipped_training_tables_have_what_was_measured(void **state)
{
    (void)state;
    static const struct {
        const char *chip;
        enum kernel_family family;
        enum kernel_layout layout;
        enum format result;
        uint64_t side[KERNEL_SIDES_MAX];
        double share, within;
    } rows[] = {
        {"a100-sxm", KERNEL_MATMUL, KERNEL_TN, FORMAT_BF16, {4096, 1536, 7168}, 0.803, 0.15},
        {"a100-sxm", KERNEL_MATMUL, KERNEL_TN, FORMAT_BF16, {4096, 3584, 4096}, 0.657, 0.25},
        {"b200", KERNEL_MATMUL, KERNEL_TN, FORMAT_BF16, {2048, 28672, 8192}, 0.475, 0.15},
        {"b200", KERNEL_ATTENTION_BACKWARD, 0, 0, {4096, 8, 8, 128}, 0.3647, 0.1},
        {"b200", KERNEL_ATTENTION_BACKWARD, 0, 0, {4096, 8, 4, 128}, 0.3935, 0.1},
        {"a100-sxm", KERNEL_ATTENTION_BACKWARD, 0, 0, {4096, 8, 8, 128}, 0.5026, 0.15},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct kernel_stack const te = catalogue_kernels(rows[i].chip, "te");
        const struct kernel_table *table =
            rows[i].family == KERNEL_MATMUL
                ? kernel_table_of(&te, FORMAT_BF16, rows[i].layout, rows[i].result,
                                  WORK_CAST_WITHIN)
                : kernel_other_of(&te, rows[i].family, FORMAT_BF16, FORMAT_BF16);
        double const share = kernel_table_share(table, rows[i].side, 108).ppm / 1e6;
        case_near(share, rows[i].share, rows[i].within);
        assert_non_null(table->derived);
    }
}

/* Rows that SimuMax measured, of which each expert has `rows`: TN, and the gradients of inputs and
 * of weights at the sides as executed. The share is of the larger of math and bytes, which bound
 * 128 rows. */
static void products_for_each_expert_have_tables_where_they_were_measured(void **state)
{
    (void)state;
    static const struct {
        const char *chip;
        enum work_kernel kernel;
        enum kernel_layout layout;
        enum format result;
        uint64_t rows, inner, columns;
        double share, within;
    } rows[] = {
        {"b200", WORK_KERNEL_FORWARD, KERNEL_TN, FORMAT_BF16, 1024, 7168, 4096, 0.457, 0.15},
        {"b200", WORK_KERNEL_FORWARD, KERNEL_TN, FORMAT_BF16, 128, 7168, 4096, 0.475, 0.1},
        {"b200", WORK_KERNEL_INPUT, KERNEL_NN, FORMAT_BF16, 1024, 7168, 4096, 0.435, 0.1},
        {"b200", WORK_KERNEL_WEIGHT, KERNEL_NT, FORMAT_FP32, 1024, 7168, 4096, 0.289, 0.1},
        {"b200", WORK_KERNEL_WEIGHT, KERNEL_NT, FORMAT_BF16, 1024, 7168, 4096, 0.347, 0.15},
        {"a100-sxm", WORK_KERNEL_FORWARD, KERNEL_TN, FORMAT_BF16, 1232, 5120, 3072, 0.707, 0.1},
        {"a100-40gb", WORK_KERNEL_WEIGHT, KERNEL_NT, FORMAT_FP32, 1232, 5120, 3072, 0.604, 0.1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct kernel_stack const te = catalogue_kernels(rows[i].chip, "te");
        struct work work = {
            .matmul = {{rows[i].rows, rows[i].inner, rows[i].columns, 20}},
            .matmul_count = 1,
            .math_format = FORMAT_BF16,
            .kernel = rows[i].kernel,
            .result = rows[i].result,
            .of_experts = 1,
        };
        struct work_kernels const kernels = kernel_of_work(&te, 148, &work);
        assert_ptr_equal(kernels.table, kernel_grouped_of(&te, FORMAT_BF16, rows[i].layout,
                                                          rows[i].result, WORK_CAST_WITHIN));
        assert_non_null(kernels.table->derived);
        case_near(kernels.share_ppm / 1e6, rows[i].share, rows[i].within);
        /* Others, such as gate and up of a dense layer, are products one by one. */
        work.of_experts = 0;
        assert_int_equal(kernel_of_work(&te, 148, &work).table->family, KERNEL_MATMUL);
    }
}

/* PyTorch and XLA run the products of experts in kernels of their own; so does a format, a result
 * or a chip without such rows. */
static void no_other_software_has_the_table_of_grouped_products(void **state)
{
    (void)state;
    static const char *const stacks[][2] = {{"b200", "xla"},
                                            {"b200", "torch-compile"},
                                            {"a100-sxm", "torch-eager"},
                                            {"h100-sxm", "te"},
                                            {"gb200-nvl72", "te"}};
    for (size_t i = 0; i < sizeof stacks / sizeof *stacks; i++) {
        struct kernel_stack const stack = catalogue_kernels(stacks[i][0], stacks[i][1]);
        assert_null(
            kernel_grouped_of(&stack, FORMAT_BF16, KERNEL_TN, FORMAT_BF16, WORK_CAST_WITHIN));
    }
    struct kernel_stack const te = catalogue_kernels("b200", "te");
    assert_null(kernel_grouped_of(&te, FORMAT_FP8, KERNEL_TN, FORMAT_BF16, WORK_CAST_WITHIN));
    assert_null(kernel_grouped_of(&te, FORMAT_BF16, KERNEL_TN, FORMAT_FP32, WORK_CAST_WITHIN));
    struct kernel_stack mine;
    case_ok(kernel_stack_made(", \"tables_of\": \"b200.te\"", &mine));
    assert_null(kernel_grouped_of(&mine, FORMAT_BF16, KERNEL_NT, FORMAT_FP32, WORK_CAST_WITHIN));
}

static void a_file_has_the_table_of_the_software_that_its_fusion_names(void **state)
{
    (void)state;
    static const char *const fusions[] = {"compiled", "eager", "te"};
    for (size_t i = 0; i < sizeof fusions / sizeof *fusions; i++) {
        struct kernel_stack mine;
        case_ok(kernel_stack_made(
            arena_format(case_arena,
                         ", \"tables_of\": \"b200.te\", \"between\": {\"fusion\": "
                         "\"%s\", \"source\": \"x\", \"launch\": \"1us\", "
                         "\"share_ppm\": {\"rest\": 1, \"norm\": 1, \"sum\": 1, "
                         "\"gate\": 1, \"function\": 1, \"turn\": 1, "
                         "\"loss\": 1, \"update\": 1}}",
                         fusions[i]),
            &mine));
        const struct kernel_table *table =
            kernel_grouped_of(&mine, FORMAT_BF16, KERNEL_NT, FORMAT_FP32, WORK_CAST_WITHIN);
        assert_true((table != NULL) == (i == 2));
        if (table != NULL) assert_true(table->is_carried_over);
    }
}

/* A table of what has no mask is taken by heads as wide as those that were measured: here 64
 * columns, of a stack with the table, and no others. Each query of a whole sequence has all keys.
 */
static void attention_without_a_mask_has_a_table_by_width(void **state)
{
    (void)state;
    struct kernel_stack const vllm = catalogue_kernels("h100-sxm", "vllm"),
                              trtllm = catalogue_kernels("h100-sxm", "trtllm");
    struct work work = {
        .kernel = WORK_KERNEL_ATTENTION,
        .math_format = FORMAT_BF16,
        .attended = {{.tokens = 8191,
                      .heads = 17,
                      .group = 2,
                      .key_width = 64,
                      .value_width = 64,
                      .stored = FORMAT_BF16,
                      .is_other = 1,
                      .full_tokens = 4096,
                      .full_heads = 64}},
    };
    struct work_call calls[WORK_MATMULS_MAX];
    static const uint64_t sides[KERNEL_SIDES_MAX] = {4096, 64, 1, 64};
    assert_int_equal(work_calls(&vllm, &work, calls), 1);
    assert_int_equal(calls[0].family, KERNEL_FULL_ATTENTION);
    for (uint32_t s = 0; s < KERNEL_SIDES_MAX; s++) assert_int_equal(calls[0].side[s], sides[s]);
    struct work_kernels const kernels = kernel_of_work(&vllm, CORES, &work);
    assert_false(kernels.is_of_other_mask);
    assert_false(kernels.is_outside);
    /* All scores, and not half of them. */
    assert_int_equal(
        kernel_demand(kernels.table, sides).math_ps,
        units_duration_ps(UINT64_C(4) * 4096 * 4096 * 64 * 64, kernels.table->flop_per_s));
    assert_int_equal(work_calls(&trtllm, &work, calls), 1);
    assert_int_equal(calls[0].family, KERNEL_ATTENTION);
    assert_true(calls[0].is_of_other_mask);
    work.attended[0].key_width = work.attended[0].value_width = 128;
    assert_int_equal(work_calls(&vllm, &work, calls), 1);
    assert_int_equal(calls[0].family, KERNEL_ATTENTION);
}

/* Texts of programs may have 2^40 heads of as many queries. */
static void heads_beyond_64_bits_are_the_most_of_them(void **state)
{
    (void)state;
    struct kernel_stack const trtllm = catalogue_kernels("h100-sxm", "trtllm");
    struct work work = {
        .kernel = WORK_KERNEL_ATTENTION,
        .math_format = FORMAT_BF16,
        .attended = {{.tokens = 4096,
                      .heads = 128,
                      .group = 2,
                      .key_width = 192,
                      .value_width = 128,
                      .stored = FORMAT_BF16}},
    };
    struct work_call calls[WORK_MATMULS_MAX];
    assert_int_equal(work_calls(&trtllm, &work, calls), 1);
    assert_int_equal(calls[0].family, KERNEL_LATENT_ATTENTION);
    assert_int_equal(calls[0].side[KERNEL_HEADS], 256);
    work.attended[0].heads = work.attended[0].group = UINT64_C(1) << 40;
    assert_int_equal(work_calls(&trtllm, &work, calls), 1);
    assert_true(calls[0].side[KERNEL_HEADS] == UINT64_MAX);
    assert_in_range(kernel_of_work(&trtllm, CORES, &work).share_ppm, 1, PPM_ONE);
}

static void references_to_nothing_are_refused(void **state)
{
    (void)state;
    static const char numbers[] =
        "\"derived\": \"a case\", \"source\": \"x\", \"rows\": 0, \"error_median_ppm\": 0, "
        "\"error_ninetieth_ppm\": 0";
    static const struct {
        const char *list, *where, *words;
        enum status status;
    } rows[] = {
        {", \"tables_of\": \"h100-sxm.tee\"", "/tables_of", "h100-sxm.te\"", STATUS_NOT_FOUND},
        {", \"matmul\": [{\"format\": \"bf16\", \"layout\": \"TN\", \"of\": {\"stack\": "
         "\"h100-sxm.sgl\"}}]",
         "/matmul/0/of", "h100-sxm.sglang", STATUS_NOT_FOUND},
        {", \"matmul\": [{\"format\": \"int8\", \"layout\": \"TN\", \"of\": {\"stack\": "
         "\"h100-sxm.sglang\"}}]",
         "/matmul/0/of", "no table of matmul in int8", STATUS_NOT_FOUND},
        {", \"matmul\": [{\"format\": \"bf16\", \"layout\": \"NN\", \"of\": {\"stack\": "
         "\"h100-sxm.sglang\", \"layout\": \"TN\"}}]",
         "/matmul/0", "\"factor\"", STATUS_INVALID},
        {", \"matmul\": [{\"format\": \"bf16\", \"layout\": \"NN\", \"of\": {\"stack\": "
         "\"h100-sxm.te\"}}]",
         "/matmul/0/of", "no table of matmul", STATUS_NOT_FOUND},
        {", \"attention\": [{\"format\": \"bf16\", \"of\": {\"stack\": \"h100-sxm.sglang\", "
         "\"family\": \"matmul\"}}]",
         "/attention/0/of", "no table of matmul", STATUS_NOT_FOUND},
        {", \"matmul\": [{\"format\": \"bf16\", \"layout\": \"TN\", \"of\": {\"stack\": "
         "\"h100-sxm.sglang\", \"layouts\": 1}}]",
         "/matmul/0/of/layouts", "layout", STATUS_INVALID},
        {", \"matmul\": [{\"format\": \"bf16\", \"layout\": \"TN\", \"of\": {\"stack\": "
         "\"h100-sxm.sglang\"}, \"m\": [1]}]",
         "/matmul/0/m", "unknown key", STATUS_INVALID},
    };
    struct kernel_stack stack;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        case_refused(kernel_stack_made(rows[i].list, &stack), rows[i].status, rows[i].where,
                     rows[i].words);
    const char *large = arena_format(
        case_arena,
        ", \"matmul\": [{\"format\": \"bf16\", \"layout\": \"NN\", \"of\": {\"stack\": "
        "\"h100-sxm.sglang\", \"layout\": \"TN\"}, %s, \"factor\": {\"m\": [1], \"n\": [1], \"k\": "
        "[1], \"ppm\": [8000001]}}]",
        numbers);
    case_refused(kernel_stack_made(large, &stack), STATUS_INVALID, "/matmul/0/factor/ppm/0",
                 "8000000");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_factor_makes_a_table_of_another),
        cmocka_unit_test(no_factor_lifts_a_share_above_one),
        cmocka_unit_test(all_tables_of_another_stack_are_taken_but_those_of_its_own),
        cmocka_unit_test(a_clock_comes_with_the_tables_of_its_chip),
        cmocka_unit_test(a_clock_is_six_tenths_at_least_and_has_a_source),
        cmocka_unit_test(a_gradient_is_looked_up_by_its_format),
        cmocka_unit_test(backward_attention_beyond_the_grid_has_its_own_ratio),
        cmocka_unit_test(shipped_training_tables_have_what_was_measured),
        cmocka_unit_test(products_for_each_expert_have_tables_where_they_were_measured),
        cmocka_unit_test(no_other_software_has_the_table_of_grouped_products),
        cmocka_unit_test(a_file_has_the_table_of_the_software_that_its_fusion_names),
        cmocka_unit_test(attention_without_a_mask_has_a_table_by_width),
        cmocka_unit_test(heads_beyond_64_bits_are_the_most_of_them),
        cmocka_unit_test(references_to_nothing_are_refused),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
