/* Drawings of machines: every chip, link and host is there once, and where it belongs. */
#include <stdio.h>
#include <string.h>

#include "sim/base/strbuf.h"
#include "sim/report/machine_svg.h"
#include "tests/support/case.h"
#include "tests/support/picture.h"

static struct picture picture;

static void draw(const char *spec, struct strbuf *text)
{
    struct machine const machine = case_machine(spec);
    machine_svg(&machine, text);
    assert_false(text->failed);
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
    draw("tpu-v5e:4x4,slices=3", &text);
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
    /* A spine of 8 switches for each slice, of 8 leaves and 64 hosts. */
    draw("tpu-v4p:4x8x8,slices=9,switch_ports=16", &text);
    assert_int_equal(occurrences(text.bytes, ">of slice 8<"), 1);
    assert_int_equal(occurrences(text.bytes, ">of slice 8, \xe2\x80\xa6 x 8<"), 1);
    assert_int_equal(occurrences(text.bytes, ">of slice 8, \xe2\x80\xa6 x 64<"), 1);
    assert_int_equal(occurrences(text.bytes, ">8 switches<"), 3);
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
        {"gb200-nvl72:gpus=576", ">NVLink: 18 x 50.0 GB/s from each GPU<"},
        {"gb200-nvl72:gpus=576", ">NVLink trunk: 648 x 50.0 GB/s from every 36 GPUs<"},
        {"gb200-nvl72:gpus=576", ">72 ports each, 64 used<"},
        {"h100-sxm:nodes=2", "leaf-spine: 32 x 50.0 GB/s up from each below"},
        {"tpu-v5p:16x16x16", "z: ring of 16"},
        {"tpu-v5p:16x16x16", "x: ring of 16, the first 7 and the last drawn"},
        {"tpu-v5p:16x16x16,slices=4", "x: ring of 16, the first 4 and the last drawn"},
        {"tpu-v5e:8x16", "x: line of 8"},
        {"tpu-v5p:4x4x8,slices=4", "PCIe: 1 x 16.0 GB/s"},
        {"tpu-v5p:4x4x4,slices=4", ">of slice 3, \xe2\x80\xa6 x 16<"},
        {"h100-pcie", "NVLink: 12 x 25.0 GB/s from each to the others"},
        {"h100-pcie", ">host: 2 GPUs a CPU<"},
        {"h100-sxm", ">host: 4 GPUs a CPU<"},
        {"tpu-v5e:1x1", ">host: 1 chip a CPU<"},
        {"tpu-v3:4x4,slices=700,leaf.oversubscription=4", "leaf-spine"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct strbuf text = {0};
        draw(rows[i][0], &text);
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
        draw(rows[i].machine, &text);
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
        /* Two of them; nine leaves below the spine and eight GPUs of each node below the leaves. */
        {"gb200-nvl72:gpus=144,nodes=2", 2 + 9 + 16 + 1},
        /* Eight leaves below the spine, sixteen GPUs below the leaves, and the CPU's. */
        {"h100-sxm:nodes=2", 8 + 16 + 1},
        /* Six hosts below the DCN, their chips below them (of three from the side, by two lines),
         * and the CPU's. */
        {"tpu-v5e:4x4,slices=3", 6 + 6 + 3 + 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct strbuf text = {0};
        draw(rows[i].machine, &text);
        if (occurrences(text.bytes, "class=\"cable\"") != rows[i].cables)
            fail_msg("%s: %u cables are drawn", rows[i].machine,
                     occurrences(text.bytes, "class=\"cable\""));
        strbuf_free(&text);
    }
}

/* A leaf whose GPUs are not drawn has the beginning of its cables, as a GPU whose leaf is not drawn
 * has their end. */
static void what_leads_out_of_the_picture_is_begun(void **state)
{
    (void)state;
    static const struct {
        const char *machine;
        uint32_t begun;
    } rows[] = {
        {"h100-sxm:nodes=2", 0},
        {"tpu-v5e:4x4,slices=3", 0},
        /* Leaves 2 to 7 are of the GPUs 8 to 31, of which none is drawn. */
        {"gb200-nvl72:nodes=4", 6},
        /* Spines 1 and 2, of which no leaf is drawn; seven GPUs of the last node. */
        {"h100-sxm:nodes=512", 2 + 7},
        /* Hosts of slices 2 to 6, which are not drawn. */
        {"tpu-v5e:2x4,slices=8", 5},
        /* All of what is drawn below nodes belongs to nodes that are drawn. */
        {"gb200-nvl72:gpus=144,nodes=4,switch_ports=128", 6},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct strbuf text = {0};
        draw(rows[i].machine, &text);
        assert_int_equal(occurrences(text.bytes, "class=\"cable goes\""), rows[i].begun);
        strbuf_free(&text);
    }
}

/* Of 32 leaves those of the eight GPUs of a node are drawn, each fourth, and the last. Each two
 * have a gap between them. */
static void each_gap_of_a_row_is_said(void **state)
{
    (void)state;
    struct strbuf text = {0};
    draw("h100-sxm:nodes=128", &text);
    assert_int_equal(occurrences(text.bytes, ">leaf "), 9);
    assert_int_equal(occurrences(text.bytes, ">leaf 28<"), 1);
    assert_int_equal(occurrences(text.bytes, ">\xe2\x80\xa6<"), 8);
    strbuf_free(&text);
}

/* The height that a line of the class has first. */
static double height_of(const char *text, const char *class)
{
    char wanted[32];
    double y1 = 0, y2 = 0;
    (void)snprintf(wanted, sizeof wanted, "class=\"%s\"", class);
    const char *at = strstr(text, wanted);
    assert_non_null(at);
    while (*at != '<') at--;
    assert_int_equal(sscanf(strstr(at, "y1="), "y1=\"%lf\"", &y1), 1);
    assert_int_equal(sscanf(strstr(at, "y2="), "y2=\"%lf\"", &y2), 1);
    return y1 > y2 ? y1 - y2 : y2 - y1;
}

/* Layers that are left out have room of their own. A column of chips has no other cables. */
static void the_gap_of_layers_is_wider_than_a_layer(void **state)
{
    (void)state;
    struct strbuf text = {0};
    draw("tpu-v5p:1x1x7,unrealisable=true", &text);
    assert_true(height_of(text.bytes, "gap") > 1.9 * height_of(text.bytes, "near"));
    strbuf_free(&text);
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
        {"h100-pcie:nodes=2", 2, ">12 cables<"},   {"h100-pcie:gpus=1", 0, ">no switch<"},
        {"h100-sxm:nodes=2", 0, ">4 NVSwitches<"}, {"gb200-nvl72", 0, ">18 NVSwitches<"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct strbuf text = {0};
        draw(rows[i].machine, &text);
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

/* The picture's host is a CPU, and GPUs that share a NIC are no host of another kind. The way to
 * the NIC is part of the NIC's latency. */
static void a_shared_nic_is_no_host(void **state)
{
    (void)state;
    struct strbuf text = {0};
    draw("h100-sxm:nodes=4,node_nics=4", &text);
    assert_non_null(strstr(text.bytes, ">shared NIC: 16<"));
    assert_non_null(strstr(text.bytes, ">shared NIC 15<"));
    assert_int_equal(occurrences(text.bytes, ">host"), 1);
    assert_non_null(strstr(text.bytes, ">into one: 128 GB/s<"));
    assert_null(strstr(text.bytes, "1.00 ps"));
    strbuf_free(&text);
}

/* Cables around a twisted axis lead to the other end and along the long axes. */
static void a_twist_is_said(void **state)
{
    (void)state;
    struct strbuf text = {0};
    draw("v5p:4x8x8_twisted", &text);
    assert_non_null(strstr(text.bytes, ">x: line of 4, its ends joined with a twist<"));
    assert_non_null(strstr(text.bytes, ">around x: to the other end, 4 further along y and z<"));
    assert_null(strstr(text.bytes, "around z"));
    assert_null(strstr(text.bytes, "twisted of"));
    strbuf_free(&text);
    draw("tpu-v5p:8x16x16_twisted,slices=3", &text);
    assert_non_null(strstr(text.bytes, ">x: line of 8, its ends joined with a twist,<"));
    assert_int_equal(occurrences(text.bytes, ">the first 4 and the last drawn<"), 1);
    strbuf_free(&text);
}

/* Beside the slice, which has a box, too. */
static void the_cpu_of_a_host_has_a_box(void **state)
{
    (void)state;
    struct strbuf text = {0};
    draw("tpu-v5e:4x4", &text);
    assert_int_equal(occurrences(text.bytes, "class=\"node\""), 2);
    assert_int_equal(occurrences(text.bytes, ">CPU, DRAM<"), 1);
    strbuf_free(&text);
}

/* The smallest box of a class around the text that says `words`. */
static const struct picture_box *box_around(const char *words, const char *class)
{
    const struct picture_text *text = NULL;
    for (uint32_t i = 0; i < picture.text_count; i++)
        if (strcmp(picture.text[i].words, words) == 0) text = &picture.text[i];
    if (text == NULL) fail_msg("\"%s\" is not drawn", words);
    for (uint32_t i = 0; i < picture.box_count; i++) {
        const struct picture_box *box = &picture.box[i];
        if (strcmp(box->class, class) == 0 && box->left <= text->box.left &&
            box->right >= text->box.right && box->top <= text->box.top &&
            box->bottom >= text->box.bottom)
            return box;
    }
    fail_msg("\"%s\" has no box", words);
    return NULL;
}

/* Below each node that is drawn is the second tier of its NVSwitches, on one cable from the first,
 * and none of another node. */
static void a_node_leads_to_its_own_switches(void **state)
{
    (void)state;
    static const struct {
        const char *machine;
        uint32_t count, last;
        uint32_t gaps; /* Between leaves, and between these switches. */
    } rows[] = {
        {"gb200-nvl72:gpus=576", 1, 0, 0},
        {"gb200-nvl72:gpus=144,nodes=2", 2, 1, 1},
        {"gb200-nvl72:gpus=144,nodes=3", 3, 2, 1},
        {"gb200-nvl72:gpus=144,nodes=4,switch_ports=128", 3, 3, 2},
        {"gb300-nvl72:gpus=144,nodes=8", 3, 7, 2},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct strbuf text = {0};
        draw(rows[i].machine, &text);
        picture_read(&picture, text.bytes);
        assert_int_equal(occurrences(text.bytes, ">NVSwitch L2 "), rows[i].count);
        assert_int_equal(occurrences(text.bytes, ">\xe2\x80\xa6<"), rows[i].gaps);
        for (uint32_t k = 0; k < rows[i].count; k++) {
            char upper[32], node[32];
            uint32_t const number = k + 1 < rows[i].count ? k : rows[i].last;
            uint32_t cables = 0;
            (void)snprintf(upper, sizeof upper, "NVSwitch L2 %u", number);
            (void)snprintf(node, sizeof node, "node %u", number);
            const struct picture_box *above = box_around(node, "node");
            const struct picture_box *below = box_around(upper, "switch");
            double const x = (above->left + above->right) / 2;
            assert_true(below->top > above->bottom);
            for (uint32_t j = 0; j < picture.line_count; j++) {
                const struct picture_line *line = &picture.line[j];
                if (!picture_crosses(line, below)) continue;
                cables++;
                case_near(line->x1, x, 1e-4);
                case_near(line->x2, x, 1e-4);
                assert_true(line->y1 > above->top && line->y1 < above->bottom);
                assert_true(line->y2 == below->top);
            }
            assert_int_equal(cables, 1);
        }
        strbuf_free(&text);
    }
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
    draw("tpu-v5e:4x4,slices=2", &text);
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
    draw("tpu-v5e:4x4,slices=3", &text); /* Six hosts, and the DCN. */
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
    draw("tpu-v5e:4x4", &text);
    assert_non_null(box_find(text.bytes, "node", &box));
    assert_true(box.x == 350);
    strbuf_free(&text);
    draw("tpu-v5e:4x4,slices=3", &text);
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
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(hosts_say_whose_they_are),
        cmocka_unit_test(a_drawing_is_one_small_file),
        cmocka_unit_test(every_link_of_a_grid_is_drawn),
        cmocka_unit_test(cables_lead_to_what_is_above),
        cmocka_unit_test(what_leads_out_of_the_picture_is_begun),
        cmocka_unit_test(each_gap_of_a_row_is_said),
        cmocka_unit_test(the_gap_of_layers_is_wider_than_a_layer),
        cmocka_unit_test(a_mesh_is_drawn_cable_by_cable),
        cmocka_unit_test(a_shared_nic_is_no_host),
        cmocka_unit_test(a_twist_is_said),
        cmocka_unit_test(the_cpu_of_a_host_has_a_box),
        cmocka_unit_test(a_node_leads_to_its_own_switches),
        cmocka_unit_test(the_frame_of_a_host_is_around_its_chips),
        cmocka_unit_test(units_of_a_tier_stand_apart),
        cmocka_unit_test(slices_stand_in_equal_parts),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
