/*
 * `podsim calibrate` and products during a copy: they are compared with the model of fewer cores
 * and of shared HBM, and set nothing.
 */
#include <stdio.h>
#include <string.h>

#include "tests/support/case.h"
#include "tools/podsim/calibrate/calibrate.h"

#define HEAD "podsim_rows 1\n"
#define PRODUCT "overlap format=bf16 layout=TN m=4096 n=4096 k=4096 "
#define TIMES(median) " repeats=11 median=" median " low=1us high=1s\n"
#define ALONE PRODUCT "cores=0" TIMES("200us")

static struct calibration calibration;
static struct kernel_stack base;
static struct rows rows;
static struct chip chip;

static enum status compared(const char *text)
{
    enum status const status =
        rows_read(case_arena, "rows", text, strlen(text), &rows, &case_error);
    if (status != STATUS_OK) return status;
    case_ok(chip_find(case_arena, "h100-sxm", "ideal", "", "", &chip, &case_error));
    case_ok(kernel_stack_find("te", "h100-sxm", "", &base, &case_error));
    calibration = (struct calibration){.rows = &rows, .chip = &chip, .source = "a case"};
    calibration.base = &base;
    calibration.base_name = "h100-sxm.te";
    return calibrate_tables(case_arena, "rows", &calibration, &case_error);
}

/* 1,024 tiles are 8 waves of 132 cores, and 11 of 100. */
static void fewer_cores_take_more_waves(void **state)
{
    (void)state;
    case_ok(compared(HEAD ALONE PRODUCT "cores=32 copied=1TB/s" TIMES("280us")));
    const struct calibrate_overlap *of = &calibration.overlap;
    assert_int_equal(of->row_count, 1);
    assert_int_equal(of->part_count, 1);
    assert_int_equal(of->part[0].cores, 32);
    assert_int_equal(of->part[0].measured_ppm, 1400000);
    assert_int_equal(of->part[0].modelled_ppm, 1375000);
    assert_int_equal(of->all.error.median_ppm, 25000 * UINT64_C(1000000) / 1400000);
}

/* A product of 16 rows reads its weights, at 3.35 TB/s less those of the copy. */
static void a_product_that_reads_shares_hbm(void **state)
{
    (void)state;
    static const char text[] =
        HEAD "overlap format=bf16 layout=TN m=16 n=16384 k=16384 cores=0 repeats=9 median=170us "
             "low=170us "
             "high=170us\n"
             "overlap format=bf16 layout=TN m=16 n=16384 k=16384 cores=8 copied=1675GB/s repeats=9 "
             "median=330us low=330us high=330us\n";
    case_ok(compared(text));
    double const bytes = 2.0 * (16.0 * 16384 + 16384.0 * 16384 + 16.0 * 16384);
    double const wanted = bytes / 1.675e12 / 170e-6;
    assert_in_range(calibration.overlap.all.modelled_ppm, (uint64_t)(wanted * 999000),
                    (uint64_t)(wanted * 1001000));
}

static void parts_come_in_the_order_of_their_cores(void **state)
{
    (void)state;
    case_ok(compared(HEAD ALONE PRODUCT "cores=32 copied=1TB/s" TIMES("280us") PRODUCT
                     "cores=8 copied=400GB/s" TIMES("230us") PRODUCT
                     "cores=8 copied=400GB/s" TIMES("240us")));
    const struct calibrate_overlap *of = &calibration.overlap;
    assert_int_equal(of->part_count, 2);
    assert_int_equal(of->part[0].cores, 8);
    assert_int_equal(of->part[0].error.count, 2);
    assert_int_equal(of->part[1].cores, 32);
    assert_int_equal(of->all.error.count, 3);
}

static void rows_that_cannot_be_compared_are_left_out(void **state)
{
    (void)state;
    static const char *const why[][2] = {
        {PRODUCT "cores=132 copied=1TB/s" TIMES("280us"), "no core of the chip"},
        {PRODUCT "cores=8 copied=3350GB/s" TIMES("280us"), "faster than HBM"},
        {"overlap format=bf16 layout=NN m=4096 n=4096 k=4096 cores=8 copied=1TB/s" TIMES("280us"),
         "without one (cores=0)"},
    };
    for (size_t i = 0; i < sizeof why / sizeof *why; i++) {
        const char *text = arena_format(case_arena, "%s%s%s", HEAD ALONE, why[i][0],
                                        PRODUCT "cores=8 copied=1TB/s" TIMES("230us"));
        case_ok(compared(text));
        assert_int_equal(calibration.left_out_count, 1);
        assert_int_equal(calibration.left_out[0].line, 3);
        assert_non_null(strstr(calibration.left_out[0].why, why[i][1]));
        assert_int_equal(calibration.overlap.row_count, 1);
    }
}

static void lines_that_are_none_are_refused(void **state)
{
    (void)state;
    static const char *const wrong[][2] = {
        {PRODUCT "copied=1TB/s" TIMES("1us"), "\"overlap\" lacks cores="},
        {PRODUCT "cores=8" TIMES("1us"), "lacks copied=..."},
        {PRODUCT "cores=0 copied=1TB/s" TIMES("1us"), "cores=0: there is no copy"},
        {PRODUCT "cores=8 copied=fast" TIMES("1us"), "copied=fast: "},
        {PRODUCT "cores=-8 copied=1TB/s" TIMES("1us"), "cores=-8 is no whole number"},
        {PRODUCT "cores=8 copied=1TB/s core=1" TIMES("1us"), "\"overlap\" has no \"core\""},
        {"overlap layout=TN m=1 n=1 k=1 cores=0" TIMES("1us"), "\"overlap\" lacks format="},
        {"overlaps " TIMES("1us"), "the nearest is overlap"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const char *text = arena_format(case_arena, "%s%s", HEAD, wrong[i][0]);
        assert_int_equal(compared(text), STATUS_INVALID);
        assert_string_equal(case_error.where, "rows:2");
        if (strstr(case_error.message, wrong[i][1]) == NULL)
            fail_msg("%s is refused by: %s", wrong[i][0], case_error.message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fewer_cores_take_more_waves),
        cmocka_unit_test(a_product_that_reads_shares_hbm),
        cmocka_unit_test(parts_come_in_the_order_of_their_cores),
        cmocka_unit_test(rows_that_cannot_be_compared_are_left_out),
        cmocka_unit_test(lines_that_are_none_are_refused),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
