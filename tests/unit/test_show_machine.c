/* What product names mean, in words. */
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/strbuf.h"
#include "sim/machine/chip.h"
#include "sim/machine/published.h"
#include "sim/report/show_levels.h"
#include "sim/report/show_machine.h"
#include "tests/support/case.h"

static void products_of(const char *name, struct strbuf *text)
{
    struct chip chip;
    case_ok(chip_find(case_arena, name, "ideal", "", "", &chip, &case_error));
    show_machine_products(&chip, text);
    assert_false(text->failed);
}

static void every_slice_of_v5e_is_a_line(void **state)
{
    (void)state;
    struct strbuf text = {0};
    products_of("v5e", &text);
    assert_string_equal(text.bytes, "v5e-1         1 chip        1x1         no rings\n"
                                    "v5e-4         4 chips       2x2         no rings\n"
                                    "v5e-8         8 chips       2x4         no rings\n"
                                    "v5e-16        16 chips      4x4         no rings\n"
                                    "v5e-32        32 chips      4x8         no rings\n"
                                    "v5e-64        64 chips      8x8         no rings\n"
                                    "v5e-128       128 chips     8x16        rings on y\n"
                                    "v5e-256       256 chips     16x16       rings on x, y\n");
    strbuf_free(&text);
}

static void names_of_v5p_count_cores(void **state)
{
    (void)state;
    struct strbuf text = {0};
    products_of("v5p", &text);
    assert_non_null(strstr(text.bytes, "v5p-8         4 chips       2x2x1       no rings\n"));
    assert_non_null(strstr(text.bytes, "v5p-8192      4096 chips    16x16x16    rings on x, y, z"));
    assert_non_null(strstr(text.bytes, "v5p-17920     8960 chips    16x20x28    rings on x, y, z"));
    strbuf_free(&text);
}

static void names_of_gpus_are_nodes(void **state)
{
    (void)state;
    struct strbuf text = {0};
    products_of("h100", &text);
    assert_non_null(strstr(text.bytes, "8 GPUs, 18 links each, on 4 NVSwitches of 64 ports\n"));
    assert_non_null(strstr(text.bytes, "h100-sxm:nodes=N "));
    strbuf_free(&text);
    struct strbuf alone = {0};
    products_of("v100", &alone);
    assert_null(strstr(alone.bytes, "nodes=N"));
    strbuf_free(&alone);
}

static void with_machine(const char *spec, void (*show)(const struct machine *, struct strbuf *),
                         struct strbuf *text)
{
    struct machine const machine = case_machine(spec);
    show(&machine, text);
    assert_false(text->failed);
}

static void levels_are_a_line_a_tier(void **state)
{
    (void)state;
    struct strbuf text = {0};
    with_machine("h100-sxm:nodes=128", show_levels, &text);
    assert_true(strncmp(text.bytes, "\nlevel  ", 8) == 0);
    with_machine("h100-sxm:nodes=128", show_totals, &text);
    assert_non_null(
        strstr(text.bytes, "512       40 of 64   18 x 25.0 GB/s   3.60 TB/s  450 GB/s"));
    assert_non_null(strstr(text.bytes, "1x32      32        64 of 64   1 x 50.0 GB/s"));
    assert_non_null(strstr(text.bytes, "SHARP 1.60 TFLOP/s"));
    assert_non_null(strstr(text.bytes, "560 (512 NVSwitch, 32 leaf, 16 spine)"));
    assert_non_null(strstr(text.bytes, "bisection             25.6 TB/s"));
    strbuf_free(&text);
    with_machine("h100-sxm:nodes=64,leaf.oversubscription=4", show_levels, &text);
    assert_non_null(strstr(text.bytes, "8 x 50.0 GB/s    6.40 TB/s  50.0 GB/s  12.5 GB/s  300 ns"));
    assert_null(strstr(text.bytes, "Under `pair`"));
    strbuf_free(&text);
    with_machine("mi300x:nodes=2", show_levels, &text);
    assert_non_null(strstr(text.bytes, "Under `pair` each two chips have a link of their own"));
    strbuf_free(&text);
    struct strbuf grid = {0};
    with_machine("tpu-v5e:8x16", show_levels, &grid);
    assert_int_equal(grid.size_bytes, 0);
    with_machine("tpu-v5e:8x16", show_totals, &grid);
    assert_non_null(strstr(grid.bytes, "bisection             720 GB/s"));
    strbuf_free(&grid);
}

/* On an open axis of two no chip has a neighbour on both sides. */
static void chips_have_the_links_that_are_wired(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"tpu-v5p:2x2x1", "chip      180 GB/s"}, {"tpu-v5p:2x2x2", "chip      270 GB/s"},
        {"tpu-v5p:2x2x4", "chip      360 GB/s"}, {"tpu-v5p:4x4x4", "chip      540 GB/s"},
        {"tpu-v5e:2x4", "chip      135 GB/s"},   {"tpu-v5e:8x16", "chip      180 GB/s"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct strbuf text = {0};
        with_machine(rows[i][0], show_totals, &text);
        assert_non_null(strstr(text.bytes, rows[i][1]));
        strbuf_free(&text);
    }
}

/* Figures of whole machines that the machine is not built from. */
static void published_totals_are_met(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "v100-sxm",           "a100-sxm:nodes=2",    "h100-sxm",
        "h100-sxm:nodes=64",  "h100-sxm:nodes=128",  "h100-sxm:nodes=256",
        "h100-sxm:nodes=512", "h100-sxm:nodes=1024", "h100-sxm:nodes=2048",
        "b200:nodes=512",     "b200:nodes=2048",     "gb200-nvl72:nodes=8",
        "tpu-v3:32x32",
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct machine const machine = case_machine(rows[i]);
        struct published figure;
        uint32_t index = 0, count = 0;
        for (; published_next(&machine, &index, &figure); count++) {
            if (figure.here != figure.published)
                fail_msg("%s: %s is %llu, not %llu as in %s", rows[i], figure.name,
                         (unsigned long long)figure.here, (unsigned long long)figure.published,
                         figure.source);
        }
        assert_true(count > 0);
    }
}

/* A figure of a chip that the catalogue does not have would be missing here. */
static void each_figure_has_its_machine(void **state)
{
    (void)state;
    static const char *const specs[] = {
        "v100-sxm",         "a100-sxm",      "a100-40gb",     "h100-pcie",
        "h20-sxm",          "mi300x",        "h100-sxm",      "b200",
        "gb200-nvl72",      "b300",          "gb300-nvl72",   "tpu-v3:32x32",
        "tpu-v4p:16x16x16", "tpu-v5e:16x16", "tpu-v5p:4x4x4", "tpu-v6e:16x16",
        "tpu-7x:2x2x1"};
    uint32_t count = 0;
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        struct machine const machine = case_machine(specs[i]);
        struct published figure;
        for (uint32_t index = 0; published_next(&machine, &index, &figure); count++)
            assert_true(strlen(figure.source) > 0);
    }
    assert_int_equal(count, 49);
}

static void differences_from_published_totals_are_said(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"h100-sxm:nodes=128", "published totals, one way: 13 of 13 equal\n"},
        {"h100-sxm:nodes=512", "core switches         published 64 ("},
        {"h100-sxm:nodes=128,leaf.oversubscription=2",
         "half of 128 nodes of 400 GB/s): here 12.8 TB/s, 50.0 % less\n"},
        {"h100-sxm:nodes=128,switch_ports=32", "core switches         published 0 ("},
        {"h100-sxm:profile=measured", "; the profile measured scales rates\n"},
        {"tpu-v5p:4x4x4", "both ways): here 540 GB/s, 10.0 % less\n"},
        {"tpu-v5e:16x16,slices=4", "bisection of the pod  published 1.60 TB/s"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct strbuf text = {0};
        with_machine(rows[i][0], show_published, &text);
        if (strstr(text.bytes, rows[i][1]) == NULL)
            fail_msg("%s: \"%s\" is not in:%s", rows[i][0], rows[i][1], text.bytes);
        strbuf_free(&text);
    }
    struct strbuf none = {0};
    with_machine("h100-sxm:gpus=64", show_published, &none);
    with_machine("gh200-nvl32", show_published, &none);
    assert_int_equal(none.size_bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_slice_of_v5e_is_a_line),
        cmocka_unit_test(names_of_v5p_count_cores),
        cmocka_unit_test(names_of_gpus_are_nodes),
        cmocka_unit_test(levels_are_a_line_a_tier),
        cmocka_unit_test(chips_have_the_links_that_are_wired),
        cmocka_unit_test(published_totals_are_met),
        cmocka_unit_test(each_figure_has_its_machine),
        cmocka_unit_test(differences_from_published_totals_are_said),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
