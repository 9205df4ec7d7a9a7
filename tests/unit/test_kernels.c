/* Measured kernels: the look-up of a share, and what an op takes by it. */
#include <string.h>

#include "sim/base/json.h"
#include "sim/base/units.h"
#include "sim/kernels/kernel_of_work.h"
#include "sim/kernels/kernels.h"
#include "sim/machine/chip.h"
#include "sim/resource/compute.h"
#include "tests/support/case.h"
#include "tests/support/catalogue.h"

enum { EDGES = 3, CORES = 132 };

static const uint32_t edges[EDGES] = {64, 1024, 4096};
static const uint32_t shares[EDGES * EDGES * EDGES] = {
    1000,  10000,  20000,  11000,  50000,  100000, 21000,  110000, 200000,
    12000, 60000,  120000, 70000,  300000, 500000, 130000, 510000, 600000,
    22000, 140000, 210000, 150000, 520000, 610000, 220000, 620000, 700000};

static struct kernel_table table_case(void)
{
    return (struct kernel_table){
        .format = FORMAT_BF16,
        .layout = KERNEL_TN,
        .source = "a case",
        .flop_per_s = UINT64_C(1000000000000000),
        .bytes_per_s = UINT64_C(4000000000000),
        .edge_count = {EDGES, EDGES, EDGES},
        .edge = {edges, edges, edges},
        .share_ppm = shares,
    };
}

static struct kernel_share share_of(const struct kernel_table *table, uint64_t m, uint64_t n,
                                    uint64_t k)
{
    uint64_t const side[KERNEL_SIDES_MAX] = {m, n, k};
    return kernel_table_share(table, side, CORES);
}

static int64_t time_ps(const struct kernel_table *table, uint64_t m, uint64_t n, uint64_t k)
{
    uint64_t const side[KERNEL_SIDES_MAX] = {m, n, k};
    units_wide const ps = (units_wide)kernel_roofline_ps(table, side) * PPM_ONE;
    return (int64_t)(ps / share_of(table, m, n, k).ppm);
}

static void a_point_of_the_grid_is_itself(void **state)
{
    (void)state;
    struct kernel_table const table = table_case();
    for (uint32_t m = 0; m < EDGES; m++)
        for (uint32_t n = 0; n < EDGES; n++)
            for (uint32_t k = 0; k < EDGES; k++) {
                struct kernel_share const share = share_of(&table, edges[m], edges[n], edges[k]);
                assert_int_equal(share.ppm, shares[(m * EDGES + n) * EDGES + k]);
                assert_false(share.is_outside);
            }
}

/* 256 lies halfway from 64 to 1,024 in logarithms, and 2,048 from 1,024 to 4,096. */
static void between_points_logarithms_are_linear(void **state)
{
    (void)state;
    struct kernel_table const table = table_case();
    assert_in_range(share_of(&table, 64, 64, 256).ppm, 3161, 3163);          /* sqrt(1e3·1e4) */
    assert_in_range(share_of(&table, 1024, 2048, 1024).ppm, 391151, 391153); /* sqrt(3e5·5.1e5) */
    assert_in_range(share_of(&table, 2048, 4096, 4096).ppm, 648073, 648075); /* sqrt(6e5·7e5) */
    /* The eighth root of the product of the corners. */
    assert_in_range(share_of(&table, 2048, 2048, 2048).ppm, 530980, 530984);
}

static void outside_the_grid_time_grows_from_its_edge(void **state)
{
    (void)state;
    struct kernel_table const table = table_case();
    int64_t const edge_ps = time_ps(&table, 4096, 4096, 4096);
    int64_t last_ps = edge_ps;
    assert_true(share_of(&table, 4097, 4096, 4096).is_outside);
    for (uint64_t side = 4096; side <= UINT64_C(1) << 20; side += side / 16) {
        struct kernel_share const share = share_of(&table, side, side, side);
        assert_in_range(share.ppm, 1, PPM_ONE);
        int64_t const ps = time_ps(&table, side, side, side);
        assert_true(ps >= last_ps - last_ps / 100000); /* A share is rounded. */
        last_ps = ps;
    }
    /* Twice the waves and twice the steps: 32 x 32 tiles are 8 waves over 132 cores, and 64 x 32
     * are 16. */
    assert_in_range(time_ps(&table, 8192, 4096, 4096), 2 * edge_ps - 9000, 2 * edge_ps + 9000);
    assert_in_range(time_ps(&table, 4096, 4096, 8192), 2 * edge_ps - 9000, 2 * edge_ps + 9000);
    /* Below the least side there is one tile: the time stays. */
    int64_t const least_ps = time_ps(&table, 64, 64, 64);
    assert_in_range(time_ps(&table, 8, 64, 64), least_ps - least_ps / 100,
                    least_ps + least_ps / 100);
    assert_true(share_of(&table, 1, 1, 1).ppm >= 1);
}

static struct kernel_stack stack_case(const struct kernel_table *table)
{
    return (struct kernel_stack){
        .name = "case", .title = "A case", .chip = "case", .table = {*table}, .table_count = 1};
}

static struct chip chip_case(const struct kernel_stack *stack)
{
    struct chip chip = {
        .kind = CHIP_GPU,
        .hbm_bytes_per_s = UINT64_C(4000000000000),
        .vmem_capacity_bytes = UINT64_C(50) << 20,
        .vmem_bytes_per_s = UINT64_C(5500000000000),
        .vector_flop_per_s = UINT64_C(67000000000000),
        .mxu = {.rows = 16, .columns = 8},
        .core = {.count = CORES},
        .launch = {.op_ps = 5 * TIME_PS_PER_US},
        .kernels = {.stack = stack, .rest_math_ppm = 800000, .rest_hbm_ppm = 900000},
    };
    chip.math_flop_per_s[FORMAT_BF16] = UINT64_C(1000000000000000);
    chip.math_flop_per_s[FORMAT_FP8] = UINT64_C(2000000000000000);
    return chip;
}

static struct work work_case(uint64_t m, uint64_t n, uint64_t k, enum work_kernel kernel)
{
    return (struct work){
        .matmul = {{m, k, n, 1}},
        .matmul_count = 1,
        .math_format = FORMAT_BF16,
        .hbm_read_bytes = 2 * (m * k + k * n),
        .hbm_write_bytes = 2 * m * n,
        .kernel = kernel,
    };
}

static void an_op_takes_what_its_table_says(void **state)
{
    (void)state;
    struct kernel_table const table = table_case();
    struct kernel_stack const stack = stack_case(&table);
    struct chip const chip = chip_case(&stack);
    struct work work = work_case(4096, 4096, 1024, WORK_KERNEL_FORWARD);
    struct compute_time time = compute_time(&chip, &work, PPM_ONE, PPM_ONE);
    /* 34.4 GFLOP at 62 % of 1 PFLOP/s: no launch, no fill. */
    assert_in_range(time.duration_ps, 55418000, 55419000);
    assert_int_equal(time.mxu_ps, time.duration_ps);
    assert_int_equal(time.tile_count, 1); /* Its tiles are within its measured time. */
    assert_int_equal(time.ends_ps, 0);
    /* A slow chip is slower by as much. */
    time = compute_time(&chip, &work, PPM_ONE / 2, PPM_ONE);
    assert_in_range(time.duration_ps, 2 * 55418000, 2 * 55419000);
    /* Few rows: HBM has the share. */
    work = work_case(64, 4096, 4096, WORK_KERNEL_FORWARD);
    time = compute_time(&chip, &work, PPM_ONE, PPM_ONE);
    assert_int_equal(time.hbm_ps, time.duration_ps);
    assert_in_range(time.duration_ps, 43253000, 43255000); /* 34.6 MB at 20 % of 4 TB/s */
    /* Without a kernel, or a table of its format, an op has the profile's shares and launch. */
    work = work_case(4096, 4096, 1024, WORK_KERNEL_NONE);
    time = compute_time(&chip, &work, PPM_ONE, PPM_ONE);
    assert_true(time.duration_ps > 42949000 + 5 * TIME_PS_PER_US);
    assert_int_equal(time.mxu_ps, 42949673);
    work = work_case(4096, 4096, 1024, WORK_KERNEL_FORWARD);
    work.math_format = FORMAT_FP8;
    assert_null(kernel_of_work(chip.kernels.stack, chip.core.count, &work).table);
}

/* The gradient of a weight sums over rows, that of an input over columns. */
static void gradients_have_their_own_sides(void **state)
{
    (void)state;
    struct kernel_table const table = table_case();
    struct kernel_stack stack = stack_case(&table);
    struct chip const chip = chip_case(&stack);
    struct work work = work_case(64, 1024, 4096, WORK_KERNEL_FORWARD);
    assert_int_equal(kernel_of_work(chip.kernels.stack, chip.core.count, &work).share_ppm, 100000);
    assert_false(kernel_of_work(chip.kernels.stack, chip.core.count, &work).is_of_other_layout);
    work.kernel = WORK_KERNEL_INPUT; /* m 64, n 4096, k 1024 */
    assert_int_equal(kernel_of_work(chip.kernels.stack, chip.core.count, &work).share_ppm, 110000);
    assert_true(kernel_of_work(chip.kernels.stack, chip.core.count, &work).is_of_other_layout);
    work.kernel = WORK_KERNEL_WEIGHT; /* m 1024, n 4096, k 64 */
    assert_int_equal(kernel_of_work(chip.kernels.stack, chip.core.count, &work).share_ppm, 130000);
    /* Both: the share of their rooflines in the sum of their times. */
    work.kernel = WORK_KERNEL_GRADIENTS;
    work.matmul[1] = work.matmul[0];
    work.matmul_count = 2;
    uint32_t const both_ppm = kernel_of_work(chip.kernels.stack, chip.core.count, &work).share_ppm;
    assert_in_range(both_ppm, 110000, 130000);
    /* A table of the layout is taken before TN's. */
    stack.table[1] = table;
    stack.table[1].layout = KERNEL_NN;
    stack.table_count = 2;
    work = work_case(64, 1024, 4096, WORK_KERNEL_INPUT);
    assert_false(kernel_of_work(chip.kernels.stack, chip.core.count, &work).is_of_other_layout);
    assert_ptr_equal(kernel_of_work(chip.kernels.stack, chip.core.count, &work).table,
                     &stack.table[1]);
}

/* A product of 4,096 rows in 4 chunks is 4 kernels of the chunk's sides: forward and in a gradient
 * of inputs chunks of rows are of m, in a gradient of weights of k. */
static void chunks_are_kernels_of_their_own(void **state)
{
    (void)state;
    static const struct {
        enum work_kernel kernel;
        enum work_side chunked;
        uint64_t m, n, k;
    } rows[] = {
        {WORK_KERNEL_FORWARD, WORK_SIDE_ROWS, 1024, 2048, 512},
        {WORK_KERNEL_FORWARD, WORK_SIDE_INNER, 4096, 2048, 128},
        {WORK_KERNEL_FORWARD, WORK_SIDE_COLUMNS, 4096, 512, 512},
        {WORK_KERNEL_INPUT, WORK_SIDE_ROWS, 1024, 512, 2048},
        {WORK_KERNEL_INPUT, WORK_SIDE_INNER, 4096, 128, 2048},
        {WORK_KERNEL_WEIGHT, WORK_SIDE_ROWS, 2048, 512, 1024},
        {WORK_KERNEL_WEIGHT, WORK_SIDE_COLUMNS, 512, 512, 4096},
    };
    enum { CHUNKS = 4, HELD = 12 };
    struct kernel_table const table = table_case();
    struct kernel_stack const stack = stack_case(&table);
    struct chip const chip = chip_case(&stack);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct work work = work_case(4096, 2048, 512, rows[i].kernel);
        struct work_call calls[WORK_MATMULS_MAX];
        work.chunk_count = CHUNKS;
        work.chunked = rows[i].chunked;
        assert_int_equal(work_calls(NULL, &work, calls), 1);
        assert_int_equal(calls[0].side[KERNEL_M], rows[i].m);
        assert_int_equal(calls[0].side[KERNEL_N], rows[i].n);
        assert_int_equal(calls[0].side[KERNEL_K], rows[i].k);
        assert_int_equal(calls[0].chunk_count, CHUNKS);
        int64_t const wanted_ps = CHUNKS * time_ps(&table, rows[i].m, rows[i].n, rows[i].k);
        int64_t const ps = compute_time(&chip, &work, PPM_ONE, PPM_ONE).duration_ps;
        assert_in_range(ps, wanted_ps - wanted_ps / 1000, wanted_ps + wanted_ps / 1000);
        /* Waves of tiles on fewer cores are those of a chunk. */
        uint64_t const many = kernel_tile_steps(KERNEL_MATMUL, calls[0].side, CORES);
        uint64_t const few = kernel_tile_steps(KERNEL_MATMUL, calls[0].side, CORES - HELD);
        uint32_t ppm[HELD + 1];
        assert_true(kernel_waves_ppm(&stack, CORES, &work, HELD, ppm));
        assert_int_equal(ppm[HELD], PPM_ONE * many / few);
    }
}

/* Products that were measured: TensorRT-LLM 1.3.0rc20 on an H100, bf16. */
static void shipped_tables_have_what_was_measured(void **state)
{
    (void)state;
    static const struct {
        uint64_t side[KERNEL_SIDES_MAX];
        double measured_us, within;
    } rows[] = {
        {{8192, 8192, 8192}, 1404.8, 0.02}, {{1, 4096, 4096}, 16.56, 0.02},
        {{16, 4096, 16384}, 52.032, 0.02},  {{4096, 5120, 7168}, 376.56, 0.1},
        {{257, 1536, 3072}, 9.6587, 0.25},
    };
    struct kernel_stack const stack = catalogue_kernels("h100-sxm", "trtllm");
    const struct kernel_table *table =
        kernel_table_of(&stack, FORMAT_BF16, KERNEL_TN, FORMAT_BF16, WORK_CAST_WITHIN);
    assert_non_null(table);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint32_t const ppm = kernel_table_share(table, rows[i].side, CORES).ppm;
        double const us = (double)kernel_roofline_ps(table, rows[i].side) / (double)ppm;
        assert_true(us > rows[i].measured_us * (1 - rows[i].within));
        assert_true(us < rows[i].measured_us * (1 + rows[i].within));
    }
}

/* Whether shares are met for the first time: most stacks have tables of others. */
static bool is_first(const uint32_t *share_ppm)
{
    static const uint32_t *met[1024];
    static uint32_t count = 0;
    for (uint32_t i = 0; i < count; i++)
        if (met[i] == share_ppm) return false;
    assert_true(count < sizeof met / sizeof *met);
    met[count++] = share_ppm;
    return true;
}

static void every_shipped_stack_is_read(void **state)
{
    (void)state;
    uint32_t count = 0;
    for (; kernel_stack_name_at(count) != NULL; count++) {
        struct kernel_stack stack;
        struct kernel_error edges_error, shapes_error;
        const char *name = kernel_stack_name_at(count), *dot = strchr(name, '.');
        const char *chip = arena_format(case_arena, "%.*s", (int)(dot - name), name);
        case_ok(kernel_stack_find(dot + 1, chip, "", &stack, &case_error));
        assert_string_equal(stack.chip, chip);
        assert_string_equal(stack.name, dot + 1);
        for (uint32_t t = 0; t < stack.table_count; t++) {
            const struct kernel_table *table = &stack.table[t];
            if (!is_first(table->share_ppm)) continue;
            bool const attends = table->family != KERNEL_MATMUL;
            uint32_t const sides = attends ? 1u << KERNEL_HEADS : 1u << KERNEL_N | 1u << KERNEL_K;
            case_ok(kernel_error_of_edges(case_arena, table, &edges_error, &case_error));
            case_ok(kernel_error_of_shapes(case_arena, table, sides, &shapes_error, &case_error));
            bool const is_point = table->edge_count[KERNEL_TOKENS] == 1; /* Of one shape. */
            assert_true(table->derived != NULL || table->row_count >= 400 || is_point);
            assert_true(table->error_median_ppm < 110000);
            assert_true(edges_error.median_ppm < 130000);
            assert_true(shapes_error.median_ppm < 130000);
        }
    }
    assert_true(count >= 38);
}

static void texts_are_equal(const char *one, const char *other)
{
    assert_int_equal(one == NULL, other == NULL);
    if (one != NULL) assert_string_equal(one, other);
}

static void tables_are_equal(const struct kernel_table *one, const struct kernel_table *other)
{
    uint64_t points = 1;
    assert_int_equal(one->family, other->family);
    for (uint32_t s = 0; s < kernel_side_count(one->family); s++) {
        assert_int_equal(one->edge_count[s], other->edge_count[s]);
        assert_memory_equal(one->edge[s], other->edge[s], one->edge_count[s] * sizeof(uint32_t));
        points *= one->edge_count[s];
    }
    assert_memory_equal(one->share_ppm, other->share_ppm, points * sizeof(uint32_t));
    texts_are_equal(one->source, other->source);
    texts_are_equal(one->of, other->of);
    texts_are_equal(one->derived, other->derived);
    assert_int_equal(one->factor == NULL, other->factor == NULL);
    if (one->factor != NULL) tables_are_equal(one->factor, other->factor);
    assert_true(kernel_tables_alike(one, other));
    assert_int_equal(one->quantises, other->quantises);
    assert_int_equal(one->appends, other->appends);
    assert_int_equal(one->flop_per_s, other->flop_per_s);
    assert_int_equal(one->bytes_per_s, other->bytes_per_s);
    assert_int_equal(one->row_count, other->row_count);
    assert_int_equal(one->error_median_ppm, other->error_median_ppm);
    assert_int_equal(one->error_ninetieth_ppm, other->error_ninetieth_ppm);
}

/* What the build makes of a file is what a user's file of the same text says. */
static void every_shipped_stack_is_its_file(void **state)
{
    (void)state;
    for (uint32_t i = 0; kernel_stack_name_at(i) != NULL; i++) {
        struct kernel_stack shipped, read;
        struct json *document = NULL;
        const char *path =
            arena_format(case_arena, "topology/kernels/%s.json", kernel_stack_name_at(i));
        case_ok(
            kernel_stack_find_full(case_arena, kernel_stack_name_at(i), "", &shipped, &case_error));
        case_ok(json_read_file(case_arena, path, &document, &case_error));
        case_ok(kernel_stack_read(case_arena, document, &read, &case_error));
        texts_are_equal(shipped.name, read.name);
        texts_are_equal(shipped.title, read.title);
        texts_are_equal(shipped.chip, read.chip);
        texts_are_equal(shipped.clock_source, read.clock_source);
        texts_are_equal(shipped.clock_fp8_source, read.clock_fp8_source);
        texts_are_equal(shipped.between.source, read.between.source);
        assert_int_equal(shipped.clock_ppm, read.clock_ppm);
        assert_int_equal(shipped.clock_fp8_ppm, read.clock_fp8_ppm);
        assert_ptr_equal(shipped.between.fusion, read.between.fusion);
        assert_int_equal(shipped.between.launch_ps, read.between.launch_ps);
        assert_memory_equal(shipped.between.share_ppm, read.between.share_ppm,
                            sizeof read.between.share_ppm);
        assert_int_equal(shipped.table_count, read.table_count);
        for (uint32_t t = 0; t < read.table_count; t++) {
            tables_are_equal(&shipped.table[t], &read.table[t]);
            assert_false(shipped.table[t].is_carried_over);
        }
        json_free(document);
    }
}

static const char head[] = "{\"podsim_kernels\": 1, \"chip\": \"c\", \"stack\": \"s\", "
                           "\"title\": \"T\", \"matmul\": [{\"format\": \"bf16\", \"layout\": "
                           "\"TN\", \"source\": \"x\", \"flop_rate\": \"1TFLOP/s\", \"hbm_rate\": "
                           "\"1TB/s\", \"rows\": 8, \"error_median_ppm\": 0, "
                           "\"error_ninetieth_ppm\": 0, ";

/* The rest of a table; and a table that refers to another stack's behind it. */
#define WHOLE "\"m\": [1, 2], \"n\": [1, 2], \"k\": [1, 2], \"share_ppm\": [1, 2, 3, 4, 5, 6, 7, 8]"
#define REFERENCE                                                                                  \
    WHOLE "}, {\"format\": \"bf16\", \"layout\": \"TN\", \"of\": {\"stack\": \"h100-sxm.sglang\"}"

static void files_that_are_none_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *rest, *where, *message;
    } rows[] = {
        {"\"m\": [], \"n\": [1, 2], \"k\": [1, 2], \"share_ppm\": [1]}]}", "/matmul/0/m",
         "1 to 128 sides"},
        {"\"m\": [2, 1], \"n\": [1, 2], \"k\": [1, 2], \"share_ppm\": [1]}]}", "/matmul/0/m/1",
         "not more than 2"},
        {"\"m\": [0, 1], \"n\": [1, 2], \"k\": [1, 2], \"share_ppm\": [1]}]}", "/matmul/0/m/0",
         "below the minimum 1"},
        {"\"m\": [1, 2], \"n\": [1, 2], \"k\": [1, 2], \"share_ppm\": [1, 2, 3]}]}",
         "/matmul/0/share_ppm", "a list of 8 numbers"},
        {"\"m\": [1, 2], \"n\": [1, 2], \"k\": [1, 2], \"share_ppm\": [1, 2, 3, 4, 5, 6, 7, "
         "1000001]}]}",
         "/matmul/0/share_ppm/7", "1000000"},
        {"\"m\": [1, 2], \"n\": [1, 2], \"k\": [1, 2], \"shares_ppm\": [1]}]}", "/matmul/0",
         "\"share_ppm\" is missing"},
        {WHOLE ", \"shares\": 1}]}", "/matmul/0/shares", "unknown key \"shares\""},
        {WHOLE ", \"resul\": 1}]}", "/matmul/0/resul", "nearest known is \"result\""},
        {WHOLE ", \"quantise\": 1}]}", "/matmul/0/quantise", "nearest known is \"quantises\""},
        {REFERENCE ", \"fctor\": 1}]}", "/matmul/1/fctor", "nearest known is \"factor\""},
        {REFERENCE ", \"factor\": 1, \"derivd\": \"\"}]}", "/matmul/1", "\"derived\" is missing"},
        {WHOLE "}], \"more\": 1}", "/more", "unknown key"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct kernel_stack stack;
        struct json *document = NULL;
        const char *text = arena_format(case_arena, "%s%s", head, rows[i].rest);
        case_ok(json_read_text(case_arena, "test", text, strlen(text), &document, &case_error));
        case_refused(kernel_stack_read(case_arena, document, &stack, &case_error), STATUS_INVALID,
                     rows[i].where, rows[i].message);
        json_free(document);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_point_of_the_grid_is_itself),
        cmocka_unit_test(between_points_logarithms_are_linear),
        cmocka_unit_test(outside_the_grid_time_grows_from_its_edge),
        cmocka_unit_test(an_op_takes_what_its_table_says),
        cmocka_unit_test(gradients_have_their_own_sides),
        cmocka_unit_test(chunks_are_kernels_of_their_own),
        cmocka_unit_test(shipped_tables_have_what_was_measured),
        cmocka_unit_test(every_shipped_stack_is_read),
        cmocka_unit_test(every_shipped_stack_is_its_file),
        cmocka_unit_test(files_that_are_none_are_refused),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
