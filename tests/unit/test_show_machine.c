/* What product names mean, in words. */
#include <stdio.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/strbuf.h"
#include "sim/machine/chip.h"
#include "sim/machine/published.h"
#include "sim/report/machine_svg.h"
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

static uint32_t occurrences(const char *text, const char *of)
{
    uint32_t count = 0;
    for (const char *at = text; (at = strstr(at, of)) != NULL; at += strlen(of)) count++;
    return count;
}

/* Hosts are counted slice by slice, and those of a slice stand beside each other. */
static void hosts_say_whose_they_are(void **state)
{
    (void)state;
    struct strbuf text = {0};
    with_machine("tpu-v5e:4x4,slices=3", machine_svg, &text);
    const char *at = text.bytes;
    for (uint32_t i = 0; i < 6; i++) {
        char host[32], slice[32];
        (void)snprintf(host, sizeof host, ">host %u<", i % 2);
        (void)snprintf(slice, sizeof slice, ">of slice %u<", i / 2);
        at = strstr(at, host);
        assert_non_null(at);
        at = strstr(at, slice);
        assert_non_null(at);
    }
    assert_int_equal(occurrences(text.bytes, ">of slice "), 6);
    strbuf_free(&text);
}

/* Whole, without references to others, small whatever the machine's size, and with what it says. */
static void a_drawing_is_one_small_file(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"h100-sxm", "18 x 25.0 GB/s"},
        {"h100-sxm:nodes=512", "\xe2\x80\xa6 x 512"},
        {"h100-sxm:nodes=131072,switch_ports=256", "\xe2\x80\xa6 x 131072"},
        {"gb200-nvl72:nodes=8", "GPUs x 72"},
        {"gb200-nvl72:gpus=576", "NVSwitch L2"},
        {"tpu-v5p:16x16x16", "z: ring of 16"},
        {"tpu-v5p:16x16x16", "x: ring of 16, the first 7 and the last drawn"},
        {"tpu-v5p:16x16x16,slices=4", "x: ring of 16, the first 4 and the last drawn"},
        {"tpu-v5e:8x16", "x: line of 8"},
        {"tpu-v5p:4x4x8,slices=4", "PCIe: 1 x 16.0 GB/s"},
        {"tpu-v3:4x4,slices=700,leaf.oversubscription=4", "leaf-spine"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct strbuf text = {0};
        with_machine(rows[i][0], machine_svg, &text);
        if (strstr(text.bytes, rows[i][1]) == NULL)
            fail_msg("%s: \"%s\" is not drawn", rows[i][0], rows[i][1]);
        assert_int_equal(strncmp(text.bytes, "<svg xmlns=", 11), 0);
        assert_string_equal(text.bytes + text.size_bytes - 7, "</svg>\n");
        assert_int_equal(occurrences(text.bytes, "<text"), occurrences(text.bytes, "</text>"));
        assert_int_equal(occurrences(text.bytes, "<g "), occurrences(text.bytes, "</g>"));
        assert_int_equal(occurrences(text.bytes, "http"), 1);
        assert_null(strstr(text.bytes, "href"));
        assert_true(text.size_bytes < 100000);
        strbuf_free(&text);
    }
}

/* A grid that is drawn whole shows every link once: between neighbours a line, and for a link that
 * closes an axis an end on either side. */
static void every_link_of_a_grid_is_drawn(void **state)
{
    (void)state;
    static const struct {
        const char *machine;
        uint32_t cables, ends;
    } rows[] = {
        {"tpu-v5e:4x4", 24, 0},     {"tpu-v5e:2x4", 10, 0},  {"tpu-v5p:4x4x4", 144, 96},
        {"tpu-v5p:2x2x1", 4, 0},    {"tpu-v5e:8x8", 112, 0}, {"tpu-v5e:4x4,slices=2", 48, 0},
        {"tpu-v4p:4x4x4", 144, 96},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct strbuf text = {0};
        with_machine(rows[i].machine, machine_svg, &text);
        if (occurrences(text.bytes, "class=\"near\"") != rows[i].cables ||
            occurrences(text.bytes, "class=\"wrap\"") != rows[i].ends)
            fail_msg("%s: %u cables and %u ends are drawn", rows[i].machine,
                     occurrences(text.bytes, "class=\"near\""),
                     occurrences(text.bytes, "class=\"wrap\""));
        strbuf_free(&text);
    }
}

/* A node leads to the second tier of its NVSwitches, a host to its chips. */
static void cables_lead_to_what_is_above(void **state)
{
    (void)state;
    static const struct {
        const char *machine;
        uint32_t cables;
    } rows[] = {
        /* One node below the second tier, and the CPU's. */
        {"gb200-nvl72:gpus=576", 1 + 1},
        /* Two of them; eight leaves below the spine and eight GPUs of each node below the leaves.
         */
        {"gb200-nvl72:gpus=144,nodes=2", 2 + 8 + 16 + 1},
        /* Eight leaves below the spine, sixteen GPUs below the leaves, and the CPU's. */
        {"h100-sxm:nodes=2", 8 + 16 + 1},
        /* Six hosts below the DCN, their chips below them (of three from the side, by two lines),
         * and the CPU's. */
        {"tpu-v5e:4x4,slices=3", 6 + 6 + 3 + 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct strbuf text = {0};
        with_machine(rows[i].machine, machine_svg, &text);
        if (occurrences(text.bytes, "class=\"cable\"") != rows[i].cables)
            fail_msg("%s: %u cables are drawn", rows[i].machine,
                     occurrences(text.bytes, "class=\"cable\""));
        strbuf_free(&text);
    }
}

/* A node without a switch has a cable from each GPU to each other one, and speaks of no switch. */
static void a_mesh_is_drawn_cable_by_cable(void **state)
{
    (void)state;
    static const struct {
        const char *machine;
        uint32_t cables;
        const char *says;
    } rows[] = {
        {"mi300x:nodes=2", 2 * 28, ">28 cables<"}, {"mi300x", 28, ">28 cables<"},
        {"h100-pcie:nodes=2", 2, ">1 cable<"},     {"h100-pcie:gpus=1", 0, ">no switch<"},
        {"h100-sxm:nodes=2", 0, ">4 NVSwitches<"}, {"gb200-nvl72", 0, ">18 NVSwitches<"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct strbuf text = {0};
        with_machine(rows[i].machine, machine_svg, &text);
        bool const meshed = strstr(text.bytes, "NVSwitch") == NULL;
        if (occurrences(text.bytes, "class=\"mesh\"") != rows[i].cables ||
            strstr(text.bytes, rows[i].says) == NULL ||
            meshed != (strstr(rows[i].says, "NVS") == NULL))
            fail_msg("%s: %u cables, \"%s\"", rows[i].machine,
                     occurrences(text.bytes, "class=\"mesh\""), rows[i].says);
        assert_null(strstr(text.bytes, "spray")); /* A key's value, not a word for a picture. */
        strbuf_free(&text);
    }
}

/* The picture's host is a CPU, and GPUs that share a NIC are no host of another kind. */
static void a_shared_nic_is_no_host(void **state)
{
    (void)state;
    struct strbuf text = {0};
    with_machine("h100-sxm:nodes=4,node_nics=4", machine_svg, &text);
    assert_non_null(strstr(text.bytes, ">shared NIC: 16<"));
    assert_non_null(strstr(text.bytes, ">shared NIC 15<"));
    assert_int_equal(occurrences(text.bytes, ">host"), 1);
    strbuf_free(&text);
}

/* Cables around a twisted axis lead to the other end and along the long axes. */
static void a_twist_is_said(void **state)
{
    (void)state;
    struct strbuf text = {0};
    with_machine("v5p:4x8x8_twisted", machine_svg, &text);
    assert_non_null(strstr(text.bytes, ">x: line of 4, its ends joined with a twist<"));
    assert_non_null(strstr(text.bytes, ">around x: to the other end, 4 further along y and z<"));
    assert_null(strstr(text.bytes, "around z"));
    assert_null(strstr(text.bytes, "twisted of"));
    strbuf_free(&text);
}

/* Beside the slice, which has a box, too. */
static void the_cpu_of_a_host_has_a_box(void **state)
{
    (void)state;
    struct strbuf text = {0};
    with_machine("tpu-v5e:4x4", machine_svg, &text);
    assert_int_equal(occurrences(text.bytes, "class=\"node\""), 2);
    assert_int_equal(occurrences(text.bytes, ">CPU, DRAM<"), 1);
    strbuf_free(&text);
}

/* Two nodes below the second tiers of their NVSwitches: each is wired to what is above it. */
static void a_node_leads_to_its_own_switches(void **state)
{
    (void)state;
    struct strbuf text = {0};
    uint32_t straight = 0;
    with_machine("gb200-nvl72:gpus=144,nodes=2", machine_svg, &text);
    for (const char *at = text.bytes; (at = strstr(at, "<line ")) != NULL; at++) {
        double from = 0, to = 0, y = 0;
        char class[16] = "";
        if (sscanf(at, "<line x1=\"%lf\" y1=\"%lf\" x2=\"%lf\" y2=\"%*f\" class=\"%15[a-z]", &from,
                   &y, &to, class) == 4 &&
            strcmp(class, "cable") == 0)
            straight += from == to;
    }
    assert_int_equal(straight, 2);
    strbuf_free(&text);
}

/* The next box of a class behind `at`; NULL if there is none. */
struct box {
    double x, y, width, height;
};

static const char *box_find(const char *at, const char *class, struct box *ret_box)
{
    char found[32] = "";
    while ((at = strstr(at, "<rect ")) != NULL) {
        at++;
        if (sscanf(at, "rect x=\"%lf\" y=\"%lf\" width=\"%lf\" height=\"%lf\" class=\"%31[a-z ]",
                   &ret_box->x, &ret_box->y, &ret_box->width, &ret_box->height, found) == 5 &&
            strcmp(found, class) == 0)
            return at;
    }
    return NULL;
}

/* The frame of a host lies 4 pixels outside the chips of the host, on each side. */
static void the_frame_of_a_host_is_around_its_chips(void **state)
{
    (void)state;
    struct strbuf text = {0};
    struct box host, chip;
    uint32_t hosts = 0;
    with_machine("tpu-v5e:4x4,slices=2", machine_svg, &text);
    for (const char *at = text.bytes; (at = box_find(at, "host", &host)) != NULL; hosts++) {
        double const right = host.x + host.width, below = host.y + host.height;
        double room[4] = {1e9, 1e9, 1e9, 1e9};
        uint32_t framed = 0;
        for (const char *from = text.bytes; (from = box_find(from, "chip", &chip)) != NULL;) {
            double const x = chip.x + chip.width / 2, y = chip.y + chip.height / 2;
            double const here[4] = {chip.x - host.x, right - chip.x - chip.width, chip.y - host.y,
                                    below - chip.y - chip.height};
            if (x < host.x || x > right || y < host.y || y > below) continue;
            framed++;
            for (uint32_t side = 0; side < 4; side++)
                room[side] = here[side] < room[side] ? here[side] : room[side];
        }
        assert_int_equal(framed, 8);
        for (uint32_t side = 0; side < 4; side++) {
            if (room[side] < 3.99 || room[side] > 4.01)
                fail_msg("host %u, side %u: %g pixels", hosts, side, room[side]);
        }
    }
    assert_int_equal(hosts, 4);
    strbuf_free(&text);
}

/* The box of a unit is no wider than words need, however few units a tier has, and units next to
 * each other stand apart. */
static void units_of_a_tier_stand_apart(void **state)
{
    (void)state;
    struct strbuf text = {0};
    struct box box, last = {0};
    uint32_t widest = 0, apart = 0;
    with_machine("tpu-v5e:4x4,slices=3", machine_svg, &text); /* Six hosts, and the DCN. */
    for (const char *at = text.bytes; (at = box_find(at, "switch", &box)) != NULL; last = box) {
        assert_true(box.width < 220.01);
        widest += box.width > 219.99;
        if (box.y != last.y) continue;
        assert_true(box.x > last.x + last.width + 13.99);
        apart++;
    }
    assert_true(widest == 1 && apart == 5);
    strbuf_free(&text);
}

/* One slice stands at the left, several each in the middle of an equal part of what is right of the
 * words. */
static void slices_stand_in_equal_parts(void **state)
{
    (void)state;
    struct strbuf text = {0};
    struct box box;
    with_machine("tpu-v5e:4x4", machine_svg, &text);
    assert_non_null(box_find(text.bytes, "node", &box));
    assert_true(box.x == 350);
    strbuf_free(&text);
    with_machine("tpu-v5e:4x4,slices=3", machine_svg, &text);
    const char *at = text.bytes;
    for (uint32_t i = 0; i < 3; i++) {
        at = box_find(at, "node", &box);
        assert_non_null(at);
        double const off = box.x + box.width / 2 - (350 + (i + 0.5) * 800 / 3);
        assert_true(off > -0.02 && off < 0.02);
    }
    strbuf_free(&text);
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
        cmocka_unit_test(hosts_say_whose_they_are),
        cmocka_unit_test(a_mesh_is_drawn_cable_by_cable),
        cmocka_unit_test(a_shared_nic_is_no_host),
        cmocka_unit_test(a_twist_is_said),
        cmocka_unit_test(a_drawing_is_one_small_file),
        cmocka_unit_test(every_link_of_a_grid_is_drawn),
        cmocka_unit_test(cables_lead_to_what_is_above),
        cmocka_unit_test(the_cpu_of_a_host_has_a_box),
        cmocka_unit_test(a_node_leads_to_its_own_switches),
        cmocka_unit_test(the_frame_of_a_host_is_around_its_chips),
        cmocka_unit_test(units_of_a_tier_stand_apart),
        cmocka_unit_test(slices_stand_in_equal_parts),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
