/*
 * `podsim calibrate`: rows are read or refused with their line, and rows that were made of a stack
 * give the stack back.
 */
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "sim/base/json.h"
#include "sim/base/strbuf.h"
#include "sim/base/units.h"
#include "tests/support/case.h"
#include "tools/podsim/calibrate/calibrate.h"

#define HEAD "podsim_rows 1\n"
#define TIMES " repeats=20 median=100us low=99us high=102us\n"
#define PRODUCT "matmul format=bf16 layout=TN "

static struct calibration calibration;
static struct rows rows;
static struct chip chip;
static struct kernel_stack base;

static enum status rows_of(const char *text)
{
    return rows_read(case_arena, "rows", text, strlen(text), &rows, &case_error);
}

/* Rows of an H100 with what a stack of it has; NULL: no stack. */
static enum status tables_of(const char *text, const char *stack)
{
    case_ok(rows_of(text));
    case_ok(chip_find(case_arena, "h100-sxm", "ideal", "", "", &chip, &case_error));
    calibration = (struct calibration){.rows = &rows, .chip = &chip, .source = "a case"};
    if (stack != NULL) {
        case_ok(kernel_stack_find(stack, "h100-sxm", "", &base, &case_error));
        calibration.base = &base;
        calibration.base_name = arena_format(case_arena, "h100-sxm.%s", stack);
    }
    return calibrate_tables(case_arena, "rows", &calibration, &case_error);
}

/* The stack that the file of the tables is. */
static struct kernel_stack stack_written(void)
{
    struct strbuf text = {.bytes = NULL};
    struct json *document = NULL;
    struct kernel_stack stack;
    case_ok(calibrate_stack(case_arena, &calibration, "mine", &stack, &case_error));
    kernel_stack_write(&stack, calibration.base_name, &text);
    assert_false(text.failed);
    case_ok(
        json_read_text(case_arena, "mine", text.bytes, text.size_bytes, &document, &case_error));
    case_ok(kernel_stack_read(case_arena, document, &stack, &case_error));
    json_free(document);
    strbuf_free(&text);
    return stack;
}

static void rows_are_what_lines_say(void **state)
{
    (void)state;
    case_ok(rows_of("# a comment\n" HEAD "script pytorch\r\ndevice NVIDIA H100 80GB HBM3\n\n"
                    "driver 550.54\nlibrary PyTorch 2.6.0\nclock 1980 MHz\n"
                    "matmul format=bf16 layout=NT result=fp32 m=16 n=32 k=64" TIMES
                    "matmul k=64 n=32 m=16 format=fp8 layout=TN cast=tensor" TIMES
                    "  attention_backward format=bf16 tokens=128 heads=8 group=4 width=64" TIMES
                    "between kernel=norm bytes=1048576" TIMES "launch" TIMES
                    "skipped attention width=256: no such kernel\nend 5\n"));
    assert_int_equal(rows.count, 5);
    assert_string_equal(rows.script, "pytorch");
    assert_string_equal(rows.device, "NVIDIA H100 80GB HBM3");
    assert_string_equal(rows.clock, "1980 MHz");
    assert_true(rows.is_whole);
    assert_int_equal(rows.cut_line, 0);
    assert_int_equal(rows.skipped_count, 1);
    assert_int_equal(rows.row[0].line, 9);
    assert_int_equal(rows.row[0].layout, KERNEL_NT);
    assert_int_equal(rows.row[0].result, FORMAT_FP32);
    assert_int_equal(rows.row[0].cast, WORK_CAST_WITHIN);
    assert_int_equal(rows.row[1].cast, WORK_CAST_TENSOR);
    assert_int_equal(rows.row[1].side[KERNEL_K], 64);
    assert_int_equal(rows.row[2].family, KERNEL_ATTENTION_BACKWARD);
    assert_int_equal(rows.row[2].side[KERNEL_WIDTH], 64);
    assert_int_equal(rows.row[3].function, WORK_FUNCTION_NORM);
    assert_int_equal(rows.row[3].moved_bytes, 1048576);
    assert_int_equal(rows.row[4].what, ROW_LAUNCH);
    assert_int_equal(rows.row[4].median_ps, 100 * TIME_PS_PER_US);
    assert_int_equal(rows.row[4].repeats, 20);
}

#define SIDES "m=16 n=32 k=64"
static void lines_that_are_none_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *expected;
    } cases[] = {
        {"", "rows:1: the file has no rows"},
        {"hello\n", "rows:1: rows begin with \"podsim_rows 1\"; *"},
        {"podsim_rows 2\n", "rows:1: version \"2\" of the rows; this podsim reads 1"},
        {HEAD "launch" TIMES HEAD, "rows:3: the rows from line 1 have no line \"end\"*"},
        {HEAD "end 0\n", "rows:2: the file has no rows: *"},
        {HEAD "matmull " SIDES TIMES, "rows:2: no line begins with \"matmull\"; the nearest is "
                                      "matmul"},
        {HEAD "matmul format=bf61 layout=TN " SIDES TIMES, "rows:2: format=bf61 is not known; the "
                                                           "nearest is bf16"},
        {HEAD "matmul format=bf16 layout=TT " SIDES TIMES, "rows:2: layout=TT is not known; *"},
        {HEAD "matmul format=fp8 layout=TN cast=tensr " SIDES TIMES,
         "rows:2: cast=tensr is not "
         "known; the nearest is tensor"},
        {HEAD "matmul format=bf16 " SIDES TIMES, "rows:2: \"matmul\" lacks layout=..."},
        {HEAD PRODUCT "m=16 n=32" TIMES, "rows:2: \"matmul\" lacks k=..."},
        {HEAD PRODUCT "m=0 n=32 k=64" TIMES, "rows:2: m=0 is no whole number from 1 to 2147483647"},
        {HEAD PRODUCT "m=-16 n=32 k=64" TIMES, "rows:2: m=-16 is no whole number *"},
        {HEAD PRODUCT "m=99999999999999999999 n=32 k=64" TIMES, "rows:2: m=99* is no whole *"},
        {HEAD PRODUCT "m=16 m=16 n=32 k=64" TIMES, "rows:2: m=... stands here twice"},
        {HEAD PRODUCT "m=16 n=32 k=64 heads=2" TIMES, "rows:2: \"matmul\" has no \"heads\"*"},
        {HEAD "attention format=bf16 tokens=8 heads=1 group=1 wdth=8" TIMES,
         "rows:2: \"attention\" lacks width=..."},
        {HEAD PRODUCT SIDES " layot=TN" TIMES, "rows:2: \"matmul\" has no \"layot\"; the nearest "
                                               "is layout"},
        {HEAD PRODUCT SIDES " fast" TIMES, "rows:2: \"fast\" is not KEY=VALUE"},
        {HEAD PRODUCT SIDES " repeats=20 median=nan low=1us high=2us\n", "rows:2: median=nan: *"},
        {HEAD PRODUCT SIDES " repeats=20 median=1.5 low=1us high=2us\n", "rows:2: median=1.5: *"},
        {HEAD PRODUCT SIDES " repeats=20 median=-1us low=1us high=2us\n", "rows:2: median=-1us: *"},
        {HEAD PRODUCT SIDES " repeats=20 median=0us low=0us high=0us\n",
         "rows:2: median=0us is no time *"},
        {HEAD PRODUCT SIDES " repeats=20 median=1e99s low=1us high=2us\n", "rows:2: median=1e99s*"},
        {HEAD PRODUCT SIDES " repeats=0 median=1us low=1us high=2us\n",
         "rows:2: repeats=0 is no *"},
        {HEAD PRODUCT SIDES " repeats=9 median=3us low=1us high=2us\n",
         "rows:2: the median does not lie between low and high"},
        {HEAD "between kernel=nrom bytes=9" TIMES, "rows:2: kernel=nrom is not known; the nearest "
                                                   "is norm"},
        {HEAD "device\nlaunch" TIMES, "rows:2: \"device\" lacks its text"},
        {HEAD "device a\ndevice b\n", "rows:3: a second line \"device\"; *"},
        {HEAD "launch" TIMES "end 2\n", "rows:3: 2 rows were written, and 1 are before this line"},
        {HEAD "launch" TIMES "end 1\nlaunch" TIMES, "rows:4: a line behind \"end\"; *"},
        {HEAD "device caf\xc3\xa9\n", "rows:2: a character that is not printable ASCII"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char got[sizeof case_error.where + sizeof case_error.message + 4];
        if (rows_of(cases[i].text) == STATUS_OK) fail_msg("not refused: %s", cases[i].text);
        (void)snprintf(got, sizeof got, "%s: %s", case_error.where, case_error.message);
        if (fnmatch(cases[i].expected, got, 0) != 0)
            fail_msg("%s\nis refused by\n%s\nand not by\n%s", cases[i].text, got,
                     cases[i].expected);
    }
}

/* A program that was stopped leaves rows, and half a line. */
static void what_was_cut_off_is_left_out(void **state)
{
    (void)state;
    case_ok(rows_of(HEAD "launch" TIMES "launch repeats=20 median=100us low=99us hi"));
    assert_int_equal(rows.count, 1);
    assert_int_equal(rows.cut_line, 3);
    assert_false(rows.is_whole);
    case_ok(rows_of(HEAD "launch" TIMES));
    assert_int_equal(rows.cut_line, 0);
    assert_false(rows.is_whole);
}

/* One row for each point of a table, but for some edges. */
static void rows_add(const struct kernel_table *table, uint32_t every, struct strbuf *text)
{
    uint64_t points = 1;
    uint32_t const sides = kernel_side_count(table->family);
    for (uint32_t s = 0; s < sides; s++) points *= table->edge_count[s];
    for (uint64_t p = 0; p < points; p++) {
        uint64_t side[KERNEL_SIDES_MAX] = {0}, rest = p;
        bool is_there = true;
        for (uint32_t s = sides; s-- > 0; rest /= table->edge_count[s]) {
            uint64_t const at = rest % table->edge_count[s];
            side[s] = table->edge[s][at];
            is_there = is_there && (at % every == 0 || at + 1 == table->edge_count[s]);
        }
        if (!is_there) continue;
        strbuf_add(text, "%s format=%s", kernel_family_name(table->family),
                   format_name(table->format));
        if (table->family == KERNEL_MATMUL)
            strbuf_add(text, " layout=%s result=%s", kernel_layout_name(table->layout),
                       format_name(table->result));
        if (table->cast != WORK_CAST_WITHIN)
            strbuf_add(text, " cast=%s", work_cast_name(table->cast));
        for (uint32_t s = 0; s < sides; s++)
            strbuf_add(text, " %s=%llu", kernel_side_name(table->family, s),
                       (unsigned long long)side[s]);
        units_wide const scaled = (units_wide)(uint64_t)kernel_roofline_ps(table, side) * PPM_ONE;
        unsigned long long const ps = (unsigned long long)(scaled / table->share_ppm[p]) + 1;
        strbuf_add(text, " repeats=30 median=%llups low=%llups high=%llups\n", ps, ps - ps / 100,
                   ps + ps / 100);
    }
}

static bool is_row(const struct kernel_table *table)
{
    bool const is_of_family = table->family == KERNEL_MATMUL || table->family == KERNEL_ATTENTION ||
                              table->family == KERNEL_ATTENTION_BACKWARD;
    return is_of_family && !table->quantises;
}

/* All rows of a stack; of each side one edge of `every`, and the last. */
static const char *rows_made(const char *name, uint32_t every)
{
    static const char between[] = "between kernel=norm bytes=1000000000 repeats=20 median=400us "
                                  "low=399us high=402us\n";
    struct kernel_stack stack;
    struct strbuf text = {.bytes = NULL};
    case_ok(kernel_stack_find(name, "h100-sxm", "", &stack, &case_error));
    strbuf_add(&text, HEAD);
    for (uint32_t t = 0; t < stack.table_count; t++)
        if (is_row(&stack.table[t])) rows_add(&stack.table[t], every, &text);
    strbuf_add(&text, "%s", between);
    const char *made = arena_text(case_arena, text.bytes);
    strbuf_free(&text);
    assert_non_null(made);
    return made;
}

static const struct kernel_table *same_kind(const struct kernel_stack *stack,
                                            const struct kernel_table *table)
{
    for (uint32_t t = 0; t < stack->table_count; t++) {
        const struct kernel_table *other = &stack->table[t];
        if (kernel_tables_alike(other, table)) return other;
    }
    fail_msg("no table of %s in %s", kernel_family_name(table->family), format_name(table->format));
    return NULL;
}

/* All that a stack has is in its file: decodes, casts, clocks, kernels between matmuls. */
static void a_written_stack_is_read_as_it_was(void **state)
{
    (void)state;
    static const char *const names[] = {"trtllm", "te"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct kernel_stack stack, again;
        struct strbuf first = {.bytes = NULL}, second = {.bytes = NULL};
        struct json *document = NULL;
        case_ok(kernel_stack_find(names[i], "h100-sxm", "", &stack, &case_error));
        kernel_stack_write(&stack, NULL, &first);
        case_ok(json_read_text(case_arena, "first", first.bytes, first.size_bytes, &document,
                               &case_error));
        case_ok(kernel_stack_read(case_arena, document, &again, &case_error));
        kernel_stack_write(&again, NULL, &second);
        assert_int_equal(again.table_count, stack.table_count);
        assert_int_equal(again.clock_ppm, stack.clock_ppm);
        assert_int_equal(again.clock_fp8_ppm, stack.clock_fp8_ppm);
        assert_int_equal(again.between.launch_ps, stack.between.launch_ps);
        assert_memory_equal(again.between.share_ppm, stack.between.share_ppm,
                            sizeof stack.between.share_ppm);
        for (uint32_t t = 0; t < stack.table_count; t++) {
            const struct kernel_table *table = &stack.table[t], *other = &again.table[t];
            assert_int_equal(other->family, table->family);
            assert_int_equal(other->stored, table->stored);
            assert_int_equal(other->result, table->result);
            assert_int_equal(other->cast, table->cast);
            assert_int_equal(other->quantises, table->quantises);
            assert_int_equal(other->bytes_per_s, table->bytes_per_s);
            assert_int_equal(other->share_ppm[7], table->share_ppm[7]);
        }
        assert_string_equal(second.bytes, first.bytes);
        strbuf_free(&first);
        strbuf_free(&second);
        json_free(document);
    }
}

/* Look-ups inside the grid, between its edges and outside agree to what a share is rounded to.
 * Outside, the backward attention of the base has a factor of its own, which no rows give. */
static void rows_of_a_stack_give_it_back(void **state)
{
    (void)state;
    uint64_t chance = 7;
    uint32_t measured = 0;
    case_ok(tables_of(rows_made("te", 1), "te"));
    assert_int_equal(calibration.left_out_count, 0);
    struct kernel_stack const mine = stack_written();
    assert_int_equal(mine.table_count, base.table_count);
    assert_int_equal(mine.clock_ppm, base.clock_ppm);
    for (uint32_t t = 0; t < base.table_count; t++) {
        const struct kernel_table *table = &base.table[t], *made = same_kind(&mine, table);
        /* What was not measured is the base's, and says so. */
        assert_true((made->of == NULL) == is_row(table));
        measured += made->of == NULL;
        for (uint32_t i = 0; i < 2000; i++) {
            uint64_t side[KERNEL_SIDES_MAX] = {0};
            for (uint32_t s = 0; s < kernel_side_count(table->family); s++) {
                uint64_t const bits = case_random(&chance) % 17;
                side[s] = 1 + (case_random(&chance) & ((UINT64_C(1) << bits) - 1));
            }
            struct kernel_share const share = kernel_table_share(table, side, 132);
            if (share.is_outside && table->family == KERNEL_ATTENTION_BACKWARD) continue;
            uint32_t const wanted = share.ppm;
            uint32_t const got = kernel_table_share(made, side, 132).ppm;
            uint32_t const apart = got > wanted ? got - wanted : wanted - got;
            if (apart > 3 + wanted / 50) fail_msg("%u ppm and not %u ppm", got, wanted);
            if (wanted > 10000) assert_true(apart <= 3 + wanted / 1000);
        }
    }
    assert_true(measured >= 8);
    assert_int_equal(mine.between.fusion, base.between.fusion);
    assert_int_equal(mine.between.launch_ps, base.between.launch_ps);
    assert_int_equal(mine.between.share_ppm[WORK_FUNCTION_SUM],
                     base.between.share_ppm[WORK_FUNCTION_SUM]);
    /* 1 GB takes 298.5 us at 3.35 TB/s, and its row 400 us. */
    assert_in_range(mine.between.share_ppm[WORK_FUNCTION_NORM], 746260, 746280);
}

/* With every second edge alone, look-ups are off by what the summary says of a table. */
static void thin_rows_are_off_by_what_is_said(void **state)
{
    (void)state;
    struct kernel_error wanted;
    case_ok(tables_of(rows_made("te", 1), "te"));
    for (uint32_t t = 0; t < calibration.table_count; t++) {
        const struct calibrate_table *made = &calibration.table[t];
        const struct kernel_table *table = calibrate_base_table(&calibration, &made->table);
        case_ok(kernel_error_of_edges(case_arena, table, &wanted, &case_error));
        assert_int_equal(made->edges.point_count, wanted.point_count);
        assert_in_range(made->edges.median_ppm, wanted.median_ppm - wanted.median_ppm / 100 - 100,
                        wanted.median_ppm + wanted.median_ppm / 100 + 100);
        assert_in_range(made->spread.median_ppm, 19900, 20100);
    }
    case_ok(tables_of(rows_made("te", 2), "te"));
    struct kernel_stack const mine = stack_written();
    struct kernel_table const *forward = &base.table[0], *made = same_kind(&mine, forward);
    uint32_t within = 0, count = 0;
    for (uint32_t m = 0; m < forward->edge_count[0]; m++)
        for (uint32_t n = 0; n < forward->edge_count[1]; n++, count++) {
            uint64_t const side[KERNEL_SIDES_MAX] = {forward->edge[0][m], forward->edge[1][n],
                                                     4096};
            double const ratio = (double)kernel_table_share(forward, side, 132).ppm /
                                 kernel_table_share(made, side, 132).ppm;
            within += ratio > 0.85 && ratio < 1.15;
        }
    assert_true(within * 10 >= count * 8);
}

/* 2 · 1024^3 FLOP at 990 TFLOP/s take 2.17 us; 4.34 us are a share of a half. */
#define CUBE(times) PRODUCT "m=1024 n=1024 k=1024 repeats=20 " times "\n"
#define TALL(times) PRODUCT "m=2048 n=1024 k=1024 repeats=20 " times "\n"

static void a_point_has_the_median_of_its_rows(void **state)
{
    (void)state;
    case_ok(tables_of(HEAD CUBE("median=8.68us low=8us high=9us") CUBE(
                          "median=4.34us low=4us high=5us") CUBE("median=3us low=3us high=3us"),
                      NULL));
    struct kernel_stack const mine = stack_written();
    assert_int_equal(mine.table_count, 1);
    assert_in_range(mine.table[0].share_ppm[0], 499000, 501000);
    assert_int_equal(mine.table[0].row_count, 3);
    assert_in_range(mine.table[0].error_ninetieth_ppm, 440000, 500000);
    assert_null(mine.between.fusion);
}

static void rows_above_the_roofline_are_left_out_by_name(void **state)
{
    (void)state;
    const char *text = HEAD CUBE("median=4.34us low=4us high=5us")
        TALL("median=2us low=2us high=2us") "between kernel=norm bytes=1000000000" TIMES;
    case_ok(tables_of(text, "te"));
    assert_int_equal(calibration.left_out_count, 2);
    assert_int_equal(calibration.left_out[0].line, 3);
    assert_int_equal(fnmatch("matmul 2048 x 1024 x 1024: faster than the roofline, 2.1* times",
                             calibration.left_out[0].why, 0),
                     0);
    assert_int_equal(calibration.left_out[1].line, 4);
    assert_int_equal(fnmatch("norm of 1000000000 bytes: faster than HBM, 2.9* times",
                             calibration.left_out[1].why, 0),
                     0);
    /* The point without a row has the share of the one next to it. */
    struct kernel_stack const mine = stack_written();
    const struct kernel_table *made = same_kind(&mine, &calibration.table[0].table);
    assert_int_equal(calibration.table[0].filled_count, 1);
    assert_int_equal(made->edge_count[KERNEL_M], 2);
    assert_in_range(made->share_ppm[1], made->share_ppm[0] - 2, made->share_ppm[0] + 2);
    assert_int_equal(mine.between.share_ppm[WORK_FUNCTION_NORM],
                     base.between.share_ppm[WORK_FUNCTION_NORM]);
    /* Nothing is left: the chip is another one. */
    case_refused(tables_of(HEAD CUBE("median=1us low=1us high=1us"), "te"), STATUS_INVALID, "rows",
                 "too many rows are faster than the roofline; is --chip right?");
}

/* What is no grid, or of a format that the chip lacks, makes no table. */
static void rows_that_make_no_table_say_why(void **state)
{
    (void)state;
    struct strbuf text = {.bytes = NULL};
    strbuf_add(&text, HEAD);
    for (uint32_t i = 1; i <= 20; i++)
        strbuf_add(&text, PRODUCT "m=%u n=%u k=64" TIMES, 16 * i, 32 * i);
    case_refused(tables_of(text.bytes, NULL), STATUS_INVALID, "rows",
                 "more than half of the combinations of its sides have no row");
    strbuf_free(&text);
    strbuf_add(&text, HEAD);
    for (uint32_t i = 1; i <= 129; i++) strbuf_add(&text, PRODUCT "m=%u n=64 k=64" TIMES, i);
    case_refused(tables_of(text.bytes, NULL), STATUS_INVALID, "rows", "more than 128 lengths");
    strbuf_free(&text);
    case_refused(tables_of(HEAD "matmul format=fp4 layout=TN m=16 n=16 k=16" TIMES, NULL),
                 STATUS_INVALID, "rows", "no rate for the format");
    case_refused(tables_of(HEAD "launch" TIMES, NULL), STATUS_INVALID, "rows", "no table");
    /* The largest sides that a row may have: their roofline is beyond all times. */
    case_refused(tables_of(HEAD PRODUCT "m=2147483647 n=2147483647 k=2147483647" TIMES, NULL),
                 STATUS_INVALID, "rows", "faster than the roofline");
}

static void more_kinds_than_a_stack_has_are_refused(void **state)
{
    (void)state;
    static const char *const formats[] = {"bf16", "fp16", "fp8", "int8"};
    struct strbuf text = {.bytes = NULL};
    strbuf_add(&text, HEAD);
    for (uint32_t i = 0; i < 28; i++)
        strbuf_add(&text, "matmul format=%s layout=TN result=%s m=16 n=16 k=16" TIMES,
                   formats[i % 4], format_name((enum format)(i / 4)));
    case_refused(tables_of(text.bytes, NULL), STATUS_LIMIT, "rows:26", "24 tables at most");
    strbuf_free(&text);
}

/* Bytes of good rows are changed: what is taken makes a stack that is read, and what is refused
 * says why. */
static void damaged_rows_are_refused_or_of_use(void **state)
{
    (void)state;
    static const char odd[] = "0 9=.\nme#-\xff"
                              "ux1\r";
    const char *good = HEAD "device H100\n" CUBE("median=4.34us low=4us high=5us")
        TALL("median=5us low=5us high=6us") "attention format=bf16 tokens=128 heads=8 group=4 "
                                            "width=64" TIMES
                                            "between kernel=sum bytes=99999999" TIMES "launch" TIMES
                                            "end 5\n";
    size_t const length = strlen(good);
    uint64_t chance = 3;
    uint32_t taken = 0;
    for (uint32_t i = 0; i < 2000; i++) {
        char text[1024];
        assert_true(length < sizeof text);
        memcpy(text, good, length + 1);
        for (uint64_t changes = 1 + case_random(&chance) % 3; changes > 0; changes--) {
            uint64_t const at = case_random(&chance) % length;
            text[at] = odd[case_random(&chance) % (sizeof odd - 1)];
        }
        if (case_random(&chance) % 4 == 0) text[case_random(&chance) % length] = '\0';
        if (rows_of(text) != STATUS_OK) {
            assert_true(case_error.message[0] != '\0');
            assert_int_equal(strncmp(case_error.where, "rows:", 5), 0);
            continue;
        }
        if (tables_of(text, i % 50 == 0 ? "te" : NULL) != STATUS_OK) continue;
        struct kernel_stack const mine = stack_written();
        struct strbuf summary = {.bytes = NULL};
        calibrate_summary(&calibration, "rows", &summary);
        assert_false(summary.failed);
        strbuf_free(&summary);
        taken += mine.table_count > 0;
    }
    assert_in_range(taken, 100, 1500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_what_lines_say),
        cmocka_unit_test(lines_that_are_none_are_refused),
        cmocka_unit_test(what_was_cut_off_is_left_out),
        cmocka_unit_test(a_written_stack_is_read_as_it_was),
        cmocka_unit_test(rows_of_a_stack_give_it_back),
        cmocka_unit_test(thin_rows_are_off_by_what_is_said),
        cmocka_unit_test(a_point_has_the_median_of_its_rows),
        cmocka_unit_test(rows_above_the_roofline_are_left_out_by_name),
        cmocka_unit_test(rows_that_make_no_table_say_why),
        cmocka_unit_test(more_kinds_than_a_stack_has_are_refused),
        cmocka_unit_test(damaged_rows_are_refused_or_of_use),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
