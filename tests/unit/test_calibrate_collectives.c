/*
 * `podsim calibrate` and collectives: rows that were made with factors give these back, and a stack
 * with them plays as the rows say.
 */
#include <stdio.h>
#include <string.h>

#include "sim/base/json.h"
#include "sim/base/strbuf.h"
#include "sim/base/units.h"
#include "sim/choose/choose.h"
#include "sim/measure/measure.h"
#include "sim/measure/measure_group.h"
#include "sim/measure/measure_row.h"
#include "tests/support/case.h"
#include "tools/podsim/calibrate/calibrate.h"

static struct calibration calibration;
static struct rows rows;
static struct chip chip;

/* The time of an AllReduce between GPUs of a node with factors. */
static int64_t played_ps(const char *name, const struct chip_nccl *factors, uint32_t ranks,
                         uint64_t bytes)
{
    struct machine_plan const plan = {
        .chip = name, .gpus = ranks, .profile = "measured", .wrap = {-1, -1, -1}};
    struct measure_options const options = {.engine = "fast"};
    struct measured measured;
    static struct machine machine;
    struct measure_row_args args = {.machine = &machine,
                                    .operation = MEASURE_ALL_REDUCE,
                                    .format = FORMAT_BF16,
                                    .protocols = true};
    const struct measure_row_choice *choice = NULL;
    case_ok(machine_build(case_arena, &plan, &machine, &case_error));
    machine.chip.kernels.nccl = *factors;
    case_ok(measure_group(&machine, NULL, "", &args.group, &case_error));
    case_ok(measure_row_choose(case_arena, &args, bytes, NULL, "", &choice, &case_error));
    case_ok(measure_run(case_arena, &machine, &choice->request, 1, "", &options, &measured,
                        &case_error));
    return measured.time_ps[0];
}

static void row_add(struct strbuf *text, uint32_t ranks, uint64_t bytes, int64_t ps)
{
    strbuf_add(text,
               "collective kind=all_reduce ranks=%u bytes=%llu repeats=11 median=%lldps low=%lldps "
               "high=%lldps\n",
               ranks, (unsigned long long)bytes, (long long)ps, (long long)ps, (long long)ps);
}

static enum status calibrated(const char *name, const char *text)
{
    enum status const status =
        rows_read(case_arena, "rows", text, strlen(text), &rows, &case_error);
    if (status != STATUS_OK) return status;
    case_ok(chip_find(case_arena, name, "ideal", "", "", &chip, &case_error));
    calibration = (struct calibration){
        .rows = &rows,
        .chip = &chip,
        .source = "a case",
        .machine = {.chip = name, .profile = "measured", .wrap = {-1, -1, -1}}};
    return calibrate_tables(case_arena, "rows", &calibration, &case_error);
}

static void near(uint32_t ppm, uint32_t wanted)
{
    assert_in_range(ppm, wanted - wanted / 1000, wanted + wanted / 1000);
}

/* On eight H100 switches add, on eight A100 they do not. */
static void rows_give_back_the_factors_they_were_made_with(void **state)
{
    (void)state;
    static const struct chip_nccl made = {1500000, 1150000, 1400000};
    static const char *const names[] = {"h100-sxm", "a100-sxm"};
    for (uint32_t i = 0; i < 2; i++) {
        struct strbuf text = {.bytes = NULL};
        strbuf_add(&text, "podsim_rows 1\n");
        row_add(&text, 8, 1 << 16, played_ps(names[i], &made, 8, 1 << 16));
        row_add(&text, 8, 1 << 27, played_ps(names[i], &made, 8, 1 << 27));
        row_add(&text, 2, 1 << 27, played_ps(names[i], &made, 2, 1 << 27));
        strbuf_add(&text, "end 3\n");
        case_ok(calibrated(names[i], text.bytes));
        strbuf_free(&text);
        const struct calibrate_collectives *of = &calibration.collectives;
        near(of->factors.latency_ppm, made.latency_ppm);
        near(of->factors.byte_ppm, made.byte_ppm);
        if (i == 0) near(of->factors.nvls_ppm, made.nvls_ppm);
        if (i == 1) assert_int_equal(of->factors.nvls_ppm, 0);
        assert_int_equal(of->error[MEASURE_COUNT].count, 3);
        assert_true(of->error[MEASURE_COUNT].ninetieth_ppm < 1000);
        assert_true(of->before[MEASURE_COUNT].median_ppm > 20000);
    }
}

/* Through the file of a stack, which has nothing else. */
static void a_stack_of_factors_plays_as_its_rows(void **state)
{
    (void)state;
    struct strbuf text = {.bytes = NULL};
    struct kernel_stack stack;
    struct json *document = NULL;
    struct machine machine;
    case_ok(calibrated("h100-sxm", "podsim_rows 1\ncollective kind=all_reduce ranks=8 bytes=65536 "
                                   "repeats=11 median=25us low=24us high=26us\nend 1\n"));
    case_ok(calibrate_stack(case_arena, &calibration, "mine", &stack, &case_error));
    kernel_stack_write(&stack, NULL, &text);
    case_ok(
        json_read_text(case_arena, "mine", text.bytes, text.size_bytes, &document, &case_error));
    struct machine_plan const plan = {.chip = "h100-sxm",
                                      .profile = "measured",
                                      .stack = "./mine.json",
                                      .stack_document = document,
                                      .wrap = {-1, -1, -1}};
    case_ok(machine_build(case_arena, &plan, &machine, &case_error));
    const struct chip_nccl *factors = &machine.chip.kernels.nccl;
    assert_int_equal(factors->latency_ppm, calibration.collectives.factors.latency_ppm);
    assert_int_equal(factors->byte_ppm, 0);
    int64_t const ps = played_ps("h100-sxm", factors, 8, 65536);
    assert_in_range(ps, 24995000, 25005000);
    json_free(document);
    strbuf_free(&text);
}

static void times_that_no_factor_gives_leave_the_constant(void **state)
{
    (void)state;
    assert_int_equal(calibrated("h100-sxm",
                                "podsim_rows 1\ncollective kind=all_reduce ranks=8 bytes=65536 "
                                "repeats=11 median=1s low=1s high=1s\nend 1\n"),
                     STATUS_INVALID);
    assert_true(calibration.collectives.latency.is_outside);
    assert_int_equal(calibration.collectives.factors.latency_ppm, 0);
}

#define ONE "collective kind=all_gather ranks=2 bytes=8192 repeats=1 median=9us low=9us high=9us\n"
#define LONG(us)                                                                                   \
    "collective kind=all_reduce ranks=8 bytes=134217728 repeats=1 median=" us "us low=" us         \
    "us high=" us "us\n"

/* 128 MiB take 298.3 us at 450 GB/s: each GPU sends them once, and switches add. */
static void rows_faster_than_the_wire_are_left_out(void **state)
{
    (void)state;
    case_ok(
        calibrated("h100-sxm", "podsim_rows 1\n" LONG("298") LONG("600") LONG("299") "end 3\n"));
    assert_int_equal(calibration.left_out_count, 1);
    assert_int_equal(calibration.left_out[0].line, 2);
    assert_string_equal(calibration.left_out[0].why,
                        "all_reduce of 8 GPUs, 134217728 bytes: faster than the wire, 1.001 times");
    assert_int_equal(calibration.collectives.row_count, 2);
    assert_int_equal(calibration.collectives.error[MEASURE_COUNT].count, 2);
    assert_int_equal(calibration.collectives.nvls.row->line, 3);
}

/* The message has the reason, and the line if there is one. */
static void rows_that_set_no_factor_say_why(void **state)
{
    (void)state;
    static const char *const wrong[][3] = {
        {"h100-sxm",
         "collective kind=all_reduce ranks=8 bytes=65536 repeats=1 median=1s low=1s high=1s\n",
         "line 2: no factor from 0.5 to 10 gives its time"},
        {"h100-sxm", LONG("200"), "line 2: all_reduce of 8 GPUs, 134217728 bytes: faster than"},
        {"h100-sxm", LONG("320"), "line 2: no factor from 0.5 to 10"},
        {"h100-sxm", ONE, "factors are learned from AllReduces, and no row is of one"},
        {"h100-sxm",
         "collective kind=all_reduce ranks=8 bytes=8192 repeats=1 median=9us low=9us high=9us\n",
         "factors need an AllReduce of about 64 KiB or 128 MiB"},
        {"tpu-v5e", ONE, "line 2: the constants are NCCL's, which TPUs have not"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const char *text = arena_format(case_arena, "podsim_rows 1\n%send 1\n", wrong[i][1]);
        assert_int_equal(calibrated(wrong[i][0], text), STATUS_INVALID);
        assert_non_null(strstr(case_error.message, wrong[i][2]));
    }
}

/* Rows of more GPUs that are no AllReduce do not matter. */
static void the_most_gpus_are_those_of_an_all_reduce(void **state)
{
    (void)state;
    case_ok(calibrated("h100-sxm",
                       "podsim_rows 1\n"
                       "collective kind=all_gather ranks=8 bytes=65536 repeats=1 median=20us "
                       "low=20us high=20us\n"
                       "collective kind=all_reduce ranks=4 bytes=65536 repeats=1 median=12us "
                       "low=12us high=12us\nend 2\n"));
    assert_int_equal(calibration.collectives.latency.row->line, 3);
    assert_true(calibration.collectives.factors.latency_ppm > 0);
}

static void rows_of_no_machine_are_refused_with_their_line(void **state)
{
    (void)state;
    static const char *const wrong[][2] = {
        {"kind=all_reduce ranks=16 bytes=65536", "ranks=16"},
        {"kind=all_reduce ranks=1 bytes=65536", "one GPU has no collective"},
        {"kind=allreduce ranks=8 bytes=65536", "the nearest is all_reduce"},
        {"kind=broadcast ranks=8 bytes=65536", "kind=broadcast is not known"},
        {"kind=all_reduce ranks=8 bytes=2199023255552", "no whole number"},
        {"kind=all_reduce ranks=8", "lacks bytes="},
        {"kind=all_reduce ranks=8 bytes=8 busbw=3", "has no \"busbw\""},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const char *text =
            arena_format(case_arena,
                         "podsim_rows 1\n\ncollective %s repeats=11 median=20us low=20us "
                         "high=20us\n",
                         wrong[i][0]);
        assert_int_equal(calibrated("h100-sxm", text), STATUS_INVALID);
        assert_string_equal(case_error.where, "rows:3");
        assert_non_null(strstr(case_error.message, wrong[i][1]));
    }
}

/* Rows of several programs in one file. */
static void programs_follow_each_other(void **state)
{
    (void)state;
    static const char good[] =
        "podsim_rows 1\nscript cuda\ndevice A\nlibrary cuBLAS\n" ONE
        "end 1\npodsim_rows 1\nscript nccl\ndevice A\nlibrary NCCL\n" ONE ONE "end 2\n";
    case_ok(rows_read(case_arena, "rows", good, strlen(good), &rows, &case_error));
    assert_int_equal(rows.count, 3);
    assert_string_equal(rows.script, "cuda");
    assert_string_equal(rows.libraries, "cuBLAS; NCCL");
    assert_true(rows.is_whole);
    static const char *const wrong[][3] = {
        {"podsim_rows 1\n" ONE "end 1\n" ONE, "rows:4", "behind \"end\""},
        {"podsim_rows 1\n" ONE "podsim_rows 1\n" ONE, "rows:3",
         "the rows from line 1 have no line \"end\""},
        {"podsim_rows 1\n" ONE "end 1\npodsim_rows 1\n" ONE ONE "podsim_rows 1\n", "rows:7",
         "from line 4 have no line \"end\" before these: their program was stopped; write \"end "
         "2\""},
        {"podsim_rows 1\n" ONE "end 1\npodsim_rows 2\n", "rows:4", "version"},
        {"podsim_rows 1\n" ONE "end 1\npodsim_rows 1\n" ONE "end 2\n", "rows:6", "2 rows were"},
        {"podsim_rows 1\ndevice A\n" ONE "end 1\npodsim_rows 1\ndevice B\n", "rows:6",
         "rows of B, and rows of A before them"},
        {"podsim_rows 1\ndevice A\ndevice A\n" ONE, "rows:3", "a second line \"device\""},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(
            rows_read(case_arena, "rows", wrong[i][0], strlen(wrong[i][0]), &rows, &case_error),
            STATUS_INVALID);
        assert_string_equal(case_error.where, wrong[i][1]);
        assert_non_null(strstr(case_error.message, wrong[i][2]));
    }
}

/* A file without a line "end" behind its last program was stopped. */
static void a_second_program_that_was_stopped_is_noticed(void **state)
{
    (void)state;
    static const char text[] = "podsim_rows 1\n" ONE "end 1\npodsim_rows 1\n" ONE;
    case_ok(rows_read(case_arena, "rows", text, strlen(text), &rows, &case_error));
    assert_int_equal(rows.count, 2);
    assert_false(rows.is_whole);
}

static void tpus_have_no_such_constants(void **state)
{
    (void)state;
    (void)calibrated("tpu-v5e", "podsim_rows 1\n" ONE "end 1\n");
    assert_int_equal(calibration.left_out_count, 1);
    assert_int_equal(calibration.collectives.row_count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_give_back_the_factors_they_were_made_with),
        cmocka_unit_test(a_stack_of_factors_plays_as_its_rows),
        cmocka_unit_test(times_that_no_factor_gives_leave_the_constant),
        cmocka_unit_test(rows_faster_than_the_wire_are_left_out),
        cmocka_unit_test(rows_that_set_no_factor_say_why),
        cmocka_unit_test(the_most_gpus_are_those_of_an_all_reduce),
        cmocka_unit_test(rows_of_no_machine_are_refused_with_their_line),
        cmocka_unit_test(programs_follow_each_other),
        cmocka_unit_test(a_second_program_that_was_stopped_is_noticed),
        cmocka_unit_test(tpus_have_no_such_constants),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
