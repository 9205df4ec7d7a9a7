/* Collectives by themselves: what sizes mean, sweeps, groups, fits, runs. */
#include <string.h>

#include "sim/base/units.h"
#include "sim/measure/fit.h"
#include "sim/measure/measure_row.h"
#include "sim/measure/sizes.h"
#include "tests/support/case.h"
#include "tests/support/measure_args.h"

/* GetBw of each test of nccl-tests. */
static void test_factors(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint64_t numerator, denominator, array_bytes, count;
    } expected[] = {
        {"all_gather", 7, 8, 1024, 64},   {"reduce_scatter", 7, 8, 1024, 64},
        {"all_reduce", 14, 8, 1024, 512}, {"all_to_all", 7, 8, 8192, 64},
        {"broadcast", 1, 1, 1024, 512},   {"reduce", 1, 1, 1024, 512},
        {"gather", 7, 8, 1024, 64},       {"scatter", 7, 8, 1024, 64},
        {"sendrecv", 1, 1, 1024, 512},
    };
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        enum measure_op operation;
        uint64_t bytes = 0;
        case_ok(measure_op_find(expected[i].name, "--op", &operation, &case_error));
        struct collective_factor const factor =
            collective_bus_factor(measure_op_kind(operation), 8);
        assert_int_equal(factor.numerator, expected[i].numerator);
        assert_int_equal(factor.denominator, expected[i].denominator);
        case_ok(measure_op_array_bytes(operation, 8, 1024, "-b", &bytes, &case_error));
        assert_int_equal(bytes, expected[i].array_bytes);
        assert_int_equal(measure_op_count(operation, 8, 1024, FORMAT_BF16), expected[i].count);
    }
    assert_int_equal(measure_op_count(MEASURE_ALL_REDUCE, 8, 3, FORMAT_INT4), 6);
    assert_int_equal(measure_op_count(MEASURE_ALL_REDUCE, 8, 3, FORMAT_FP32), 1);
}

static void test_size_texts(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t bytes; /* 0: refused. */
    } expected[] = {
        {"8", 8},
        {"64K", 65536},
        {"64k", 65536},
        {"1.5M", 1572864},
        {"1GiB", UINT64_C(1) << 30},
        {"8G", UINT64_C(8) << 30},
        {"8388608T", UINT64_C(1) << 63},
        {"8192P", UINT64_C(1) << 63},
        {"64p", UINT64_C(1) << 56},
        {"8193P", 0},
        {"9223372036854775808", UINT64_C(1) << 63},
        {"0.5K", 512},
        {"9223372036854775809", 0},
        {"8388608.5T", 0},
        {"99999999999999999999999999999999999999999999", 0},
        {"0", 0},
        {"0.0G", 0},
        {"0.3", 0},
        {"1.1K", 0},
        {"-1", 0},
        {"", 0},
        {".5K", 0},
        {"1.", 0},
        {"K", 0},
        {"1 K", 0},
        {"1MB", 0},
        {"1e3", 0},
        {"1KK", 0},
        {"0x10", 0},
    };
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        struct error error = {0};
        uint64_t bytes = 0;
        enum status const status = sizes_parse(expected[i].text, "-b", &bytes, &error);
        if ((status == STATUS_OK) != (expected[i].bytes != 0) || bytes != expected[i].bytes)
            fail_msg("\"%s\": %llu, %s", expected[i].text, (unsigned long long)bytes,
                     error.message);
    }
}

static void test_sweeps(void **state)
{
    (void)state;
    struct sizes sizes;
    uint64_t bytes = 0, last = 0;
    case_ok(sizes_read("8", "8G", "2", NULL, &sizes, &case_error));
    assert_int_equal(sizes_count(&sizes), 31);
    while (sizes_next(&sizes, &bytes)) last = bytes;
    assert_int_equal(last, UINT64_C(8) << 30);
    case_ok(sizes_read("10", "35", NULL, "10", &sizes, &case_error));
    assert_int_equal(sizes_count(&sizes), 3);
    case_ok(sizes_read("8388608T", NULL, "2", NULL, &sizes, &case_error));
    assert_int_equal(sizes_count(&sizes), 1);
    case_ok(sizes_read("8388607T", "8388608T", NULL, "8388608T", &sizes, &case_error));
    assert_int_equal(sizes_count(&sizes), 1);
    case_ok(sizes_read(NULL, NULL, NULL, NULL, &sizes, &case_error));
    bytes = 0;
    assert_true(sizes_next(&sizes, &bytes));
    assert_int_equal(bytes, 32 << 20);
    case_refused(sizes_read("8", "16", "2", "8", &sizes, &case_error), STATUS_INVALID, NULL, "");
    case_refused(sizes_read("8", "16", "1", NULL, &sizes, &case_error), STATUS_INVALID, NULL, "");
}

static void test_groups(void **state)
{
    (void)state;
    struct machine const machine = case_machine("v5p:4x8x16");
    char text[MEASURE_AXES_BYTES];
    struct group group;
    struct error error = {0};
    case_ok(measure_group(&machine, NULL, "--axes", &group, &case_error));
    assert_string_equal(measure_group_text(&machine, &group, text), "x,y,z");
    case_ok(measure_group(&machine, "z:4,y", "--axes", &group, &case_error));
    assert_string_equal(measure_group_text(&machine, &group, text), "z:4,y");
    assert_false(group.dimension[0].ring);
    assert_true(group.dimension[1].ring);
    static const char *const refused[] = {"z:3", "x,x", "", "x,", "w", "x:0", "x:1", "x:99", ","};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        error.message[0] = '\0';
        if (measure_group(&machine, refused[i], "--axes", &group, &error) == STATUS_OK)
            fail_msg("\"%s\" was taken", refused[i]);
        assert_string_not_equal(error.message, "");
    }
}

/* Times that lie on a line are found again; a time that does not is no better fitted by others. */
static void test_fit(void **state)
{
    (void)state;
    static const uint64_t bytes[] = {1, 1000, 1000000, 1000000000};
    int64_t time_ps[4];
    for (uint32_t i = 0; i < 4; i++) time_ps[i] = 5000000 + (int64_t)(bytes[i] * 20);
    struct fit fit = fit_line(bytes, time_ps, 4);
    assert_true(fit.alpha_s > 4.99999e-6 && fit.alpha_s < 5.00001e-6);
    assert_true(fit.beta_s_per_byte > 1.99999e-11 && fit.beta_s_per_byte < 2.00001e-11);
    assert_true(fit.error_most < 1e-6);
    fit = fit_line(bytes, time_ps, 1);
    assert_true(fit.beta_s_per_byte == 0 && fit.error_most < 1e-9);
    time_ps[1] *= 2;
    fit = fit_line(bytes, time_ps, 4);
    assert_true(fit.error_most > 0.1 && fit.error_most < 1);
}

/* Relative errors: moving the line either way makes their squares larger. */
static void test_fit_is_least(void **state)
{
    (void)state;
    static const uint64_t bytes[] = {10, 300, 5000, 80000, 2000000};
    static const int64_t time_ps[] = {900, 1300, 2100, 9000, 150000};
    struct fit const fit = fit_line(bytes, time_ps, 5);
    double squares[5] = {0};
    for (uint32_t change = 0; change < 5; change++) {
        double const alpha = fit.alpha_s * (change == 1 ? 1.01 : change == 2 ? 0.99 : 1);
        double const beta = fit.beta_s_per_byte * (change == 3 ? 1.01 : change == 4 ? 0.99 : 1);
        for (uint32_t i = 0; i < 5; i++) {
            double const t = units_seconds(time_ps[i]);
            double const off = (alpha + beta * (double)bytes[i] - t) / t;
            squares[change] += off * off;
        }
    }
    for (uint32_t change = 1; change < 5; change++) assert_true(squares[0] < squares[change]);
}

static void test_fairness(void **state)
{
    (void)state;
    struct measure_row rows[4];
    for (uint32_t i = 0; i < 4; i++) rows[i] = (struct measure_row){.time_ps = 30, .alone_ps = 10};
    assert_true(measure_row_fairness(rows, 4) == 1);
    rows[3].time_ps = 10;
    assert_true(measure_row_slowdown(&rows[3]) == 1);
    double const index = measure_row_fairness(rows, 4); /* (3·3+1)² / (4·(3·9+1)) = 100/112 */
    assert_true(index > 0.892 && index < 0.893);
    assert_true(measure_row_slowdown(&(struct measure_row){.time_ps = 3, .alone_ps = 1}) == 3);
    assert_true(measure_row_slowdown(&(struct measure_row){.time_ps = 3}) ==
                1); /* Alone it would take nothing. */
}

static void run_one(const struct measure_row_args *args, uint64_t size_bytes, const char *algorithm,
                    bool full, struct measured *ret_measured)
{
    const struct measure_row_choice *choice = NULL;
    struct error error = {0};
    struct measure_options const options = {.engine = "fast", .full = full};
    struct algorithm const asked = algorithm_read(algorithm);
    if (measure_row_choose(case_arena, args, size_bytes, &asked, "-e", &choice, &error) !=
            STATUS_OK ||
        measure_run(case_arena, args->machine, &choice->request, 1, "--algorithm", &options,
                    ret_measured, &error) != STATUS_OK)
        fail_msg("%s: %s", error.where, error.message);
}

/* The book, chapter 3: V·(N-1)/(N·2·W) on a ring, and half as many hops as ranks. */
static void test_ring(void **state)
{
    (void)state;
    struct machine const machine = case_machine("v5e:8x16");
    struct measure_row_args const args = measure_args_of(&machine, MEASURE_ALL_GATHER, "y");
    struct measured measured;
    struct measure_row row;
    uint64_t const bytes = UINT64_C(16) << 20;
    const struct measure_row_choice *choice = NULL;
    case_ok(measure_row_choose(case_arena, &args, bytes, NULL, "-e", &choice, &case_error));
    run_one(&args, bytes, NULL, false, &measured);
    measure_row_fill(&args, bytes, choice, &measured.plans[0], measured.time_ps[0],
                     measured.time_ps[0], &row);
    int64_t const expected =
        units_duration_ps(bytes * 15 / 16 / 2, machine.chip.ici_bytes_per_s) + 8 * TIME_PS_PER_US;
    assert_true(row.time_ps >= expected && row.time_ps < expected + 1000);
    assert_string_equal(row.bound_by, "wire");
    assert_string_equal(row.algorithm, "ring");
    double const busbw = row.algbw_bytes_per_s * 15 / 16;
    assert_true(row.busbw_bytes_per_s > busbw * 0.999999 &&
                row.busbw_bytes_per_s < busbw * 1.000001);
    assert_true(row.roofline_s * 1e12 <= (double)row.time_ps);
    run_one(&args, bytes, NULL, true, &measured);
    assert_int_equal(measured.time_ps[0], row.time_ps);
    assert_int_equal(measured.fold.chip_count, 128);
    case_ok(measure_row_prove(&measured.plans[0], &row, &case_error));
    assert_true(row.proved);
}

/* A plan that leaves half of each chunk behind is no plan of its collective. */
static void test_unsound_plans_are_not_proved(void **state)
{
    (void)state;
    struct machine const machine = case_machine("v5e:8x16");
    struct plan_request const request = {
        .kind = COLLECTIVE_ALL_GATHER, .group = case_group(&machine, "y"), .size_bytes = 1 << 20};
    struct plan plan = case_plan(&request);
    struct measure_row row = {.proved = false};
    plan.item[0].unit_bytes /= 2;
    case_refused(measure_row_prove(&plan, &row, &case_error), STATUS_INVALID, NULL, "carry");
    assert_false(row.proved);
}

/* Adders of switches and of chips count elements: halves of them are twice as many. Four NVSwitches
 * of 400 G additions/s, seven a element of eight GPUs. Where they take longer than ports do without
 * them, these are the bound: GPUs could add instead. */
static void test_adders_count_elements(void **state)
{
    (void)state;
    static const struct {
        enum format format;
        const char *bound_by;
        uint64_t element_bits;
    } expected[] = {{FORMAT_INT4, "port", 4},
                    {FORMAT_FP4, "port", 4},
                    {FORMAT_FP8, "switch", 8},
                    {FORMAT_BF16, "port", 16},
                    {FORMAT_FP32, "port", 32}};
    struct machine const machine = case_machine("h100-sxm:nodes=1");
    struct measure_row_args args = measure_args_of(&machine, MEASURE_ALL_REDUCE, NULL);
    uint64_t const bytes = UINT64_C(1) << 30;
    int64_t const ways_ps = 4 * machine.chip.network.nvlink_latency_ps;
    for (uint32_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        const struct measure_row_choice *choice = NULL;
        struct measured measured;
        struct measure_row row;
        args.format = expected[i].format;
        uint64_t const additions = 7 * bytes * 8 / expected[i].element_bits;
        int64_t const adding_ps = units_duration_ps(additions, UINT64_C(1600000000000));
        int64_t const port_ps = units_duration_ps(bytes, UINT64_C(450000000000));
        int64_t const least_ps = adding_ps > port_ps ? adding_ps : port_ps;
        struct algorithm const sharp = algorithm_read("sharp");
        case_ok(measure_row_choose(case_arena, &args, bytes, &sharp, "/row", &choice, &case_error));
        case_ok(measure_run(case_arena, &machine, &choice->request, 1, "/row",
                            &(struct measure_options){.engine = "fast"}, &measured, &case_error));
        measure_row_fill(&args, bytes, choice, &measured.plans[0], measured.time_ps[0],
                         measured.time_ps[0], &row);
        assert_string_equal(row.bound_by, expected[i].bound_by);
        assert_in_range(row.time_ps, least_ps, least_ps + ways_ps);
    }
    /* A third of a link's bytes a second: of fp8 a VPU adds three times slower than they come, of
     * fp32 faster. */
    struct machine pod = case_machine("v5p:4x4x4");
    int64_t time_ps[2];
    pod.chip.vector_flop_per_s = UINT64_C(30000000000);
    for (uint32_t i = 0; i < 2; i++) {
        struct measure_row_args const sum = {
            .machine = &pod,
            .operation = MEASURE_REDUCE_SCATTER,
            .format = i == 0 ? FORMAT_FP32 : FORMAT_FP8,
            .group = measure_args_of(&pod, MEASURE_ALL_REDUCE, "z").group};
        struct measured measured;
        run_one(&sum, bytes, NULL, false, &measured);
        time_ps[i] = measured.time_ps[0];
    }
    assert_true(2 * time_ps[1] > 3 * time_ps[0]);
}

/* Two that share every link: all their bytes pass one after the other. */
static void test_two_at_once(void **state)
{
    (void)state;
    struct machine const machine = case_machine("v5p:8x8x8");
    struct measure_row_args const args = measure_args_of(&machine, MEASURE_ALL_GATHER, "x");
    struct plan_request request[2];
    struct measured one, two;
    struct measure_options const options = {.engine = "fast", .count_waits = true};
    uint64_t const bytes = UINT64_C(1) << 30;
    for (uint32_t i = 0; i < 2; i++)
        case_ok(measure_row_request(&args, bytes, "-e", &request[i], &case_error));
    case_ok(
        measure_run(case_arena, &machine, request, 1, "--algorithm", &options, &one, &case_error));
    case_ok(
        measure_run(case_arena, &machine, request, 2, "--concurrent", &options, &two, &case_error));
    assert_true(two.time_ps[1] > two.time_ps[0]);
    double const slower = (double)two.time_ps[1] / (double)one.time_ps[0];
    assert_true(slower > 1.99 && slower <= 2);
    const struct trace_link *link = &two.trace.link[0];
    assert_true(link->waited_ps > 0 && link->messages > 0);
    /* Work is conserved: the link is never idle while a message waits. */
    assert_true((double)link->busy_ps / (double)two.trace.step_ps > 0.99);
    assert_int_equal(one.trace.link[0].waited_ps, 0);
}

/* Its time is that of the busiest rank's port; busbw counts what is really sent. */
static void test_ragged_rows(void **state)
{
    (void)state;
    struct machine const machine = case_machine("h100-sxm:nodes=1");
    struct measure_row_args args = measure_args_of(&machine, MEASURE_ALL_TO_ALL, NULL);
    args.ragged = (struct plan_ragged){
        .expert_count = 8, .top_k = 4, .token_bytes = 1024, .seed = 5, .skew_ppm = 500000};
    struct measure_options const options = {.engine = "fast"};
    const struct measure_row_choice *choice = NULL;
    struct measured measured;
    struct measure_row row;
    uint64_t const size = 4096 * 1024;
    case_ok(measure_row_choose(case_arena, &args, size, NULL, "/row", &choice, &case_error));
    case_ok(measure_run(case_arena, &machine, &choice->request, 1, "/row", &options, &measured,
                        &case_error));
    measure_row_fill(&args, size, choice, &measured.plans[0], measured.time_ps[0],
                     measured.time_ps[0], &row);
    case_ok(measure_row_prove(&measured.plans[0], &row, &case_error));
    assert_true(row.proved);
    uint64_t const most = row.load.received_most_bytes > row.load.sent_most_bytes
                              ? row.load.received_most_bytes
                              : row.load.sent_most_bytes;
    double const port_s = (double)most / 450e9, time_s = units_seconds(row.time_ps);
    assert_true(time_s >= port_s && time_s < port_s * 1.3 && time_s >= row.roofline_s);
    assert_true(row.busbw_bytes_per_s * time_s * 8 / (double)row.load.sent_bytes > 0.999);
    assert_true(row.busbw_bytes_per_s * time_s * 8 / (double)row.load.sent_bytes < 1.001);
    struct measure_row_factors const factors = measure_row_factors(&row);
    assert_true(factors.distinct == 0.4375);
    assert_true(factors.independent > 0.36209 && factors.independent < 0.3621);
    assert_true(factors.drawn > 0.43 && factors.drawn < 0.445); /* Different ranks, always. */
    assert_true(row.estimate_s > port_s && row.estimate_s < 1.3 * port_s);
}

/* Over nodes `auto` takes the one copy a node, its estimate comes near, and the roofline is that of
 * the stage that takes longest. */
static void test_ragged_rows_over_nodes(void **state)
{
    (void)state;
    struct machine const machine = case_machine("h100-sxm:nodes=4");
    struct measure_row_args args = measure_args_of(&machine, MEASURE_ALL_TO_ALL, NULL);
    static const char *const algorithms[] = {NULL, "flat-direct"};
    struct measure_options const options = {.engine = "fast"};
    struct measure_row row[2];
    args.ragged = (struct plan_ragged){.expert_count = 256, .top_k = 8, .token_bytes = 8192};
    uint64_t const size = 1024 * 8192;
    for (uint32_t i = 0; i < 2; i++) {
        const struct measure_row_choice *choice = NULL;
        struct measured measured;
        struct algorithm const asked = algorithm_read(algorithms[i]);
        case_ok(measure_row_choose(case_arena, &args, size, &asked, "/row", &choice, &case_error));
        case_ok(measure_run(case_arena, &machine, &choice->request, 1, "/row", &options, &measured,
                            &case_error));
        measure_row_fill(&args, size, choice, &measured.plans[0], measured.time_ps[0],
                         measured.time_ps[0], &row[i]);
        double const time_s = units_seconds(row[i].time_ps);
        assert_string_equal(row[i].farthest_axis, "node");
        case_near(row[i].roofline_s, (double)row[i].farthest_bytes / 32 / 50e9, 0.01);
        assert_true(time_s >= row[i].roofline_s && time_s < 1.1 * row[i].roofline_s);
        case_near(row[i].estimate_s, time_s, 0.05);
    }
    assert_string_equal(row[0].algorithm, "direct");
    assert_string_equal(row[0].runner[0].algorithm, "flat-direct");
    assert_int_equal(row[0].runner_count, 1);
    assert_int_equal(row[0].load.sent_bytes, row[1].load.sent_bytes);
    assert_true(row[0].farthest_bytes * 2 < row[1].farthest_bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_factors),
        cmocka_unit_test(test_size_texts),
        cmocka_unit_test(test_sweeps),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_fit),
        cmocka_unit_test(test_fit_is_least),
        cmocka_unit_test(test_fairness),
        cmocka_unit_test(test_ring),
        cmocka_unit_test(test_unsound_plans_are_not_proved),
        cmocka_unit_test(test_two_at_once),
        cmocka_unit_test(test_ragged_rows),
        cmocka_unit_test(test_ragged_rows_over_nodes),
        cmocka_unit_test(test_adders_count_elements),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
