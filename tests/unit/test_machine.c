/* Machines: product names, shapes, wraparound, neighbours, overrides. */
#include <stdio.h>
#include <string.h>

#include "sim/base/units.h"
#include "sim/machine/machine.h"
#include "sim/machine/shape.h"
#include "tests/support/case.h"

static struct machine_plan plan_of(const char *chip, const char *shape)
{
    return (struct machine_plan){
        .chip = chip, .shape = shape, .profile = "ideal", .wrap = {-1, -1, -1}};
}

static void refused(const struct machine_plan *plan, const char *where, const char *words)
{
    struct machine machine;
    case_refused(machine_build(case_arena, plan, &machine, &case_error), STATUS_OK, where, words);
}

static void refused_shape(const char *chip, const char *shape, const char *words)
{
    struct machine_plan const plan = plan_of(chip, shape);
    refused(&plan, "/machine/shape", words);
}

/* Sources: Cloud TPU documentation (v3, v4, v5p, v5e, v6e) and the slice table of apple/axlearn. */
static void a_product_name_gives_the_slice_that_is_sold(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const char *shape;
    } rows[] = {
        {"v5p-8", "2x2x1"},        {"v5p-16", "2x2x2"},       {"v5p-32", "2x2x4"},
        {"v5p-64", "2x4x4"},       {"v5p-128", "4x4x4"},      {"v5p-256", "4x4x8"},
        {"v5p-384", "4x4x12"},     {"v5p-512", "4x8x8"},      {"v5p-640", "4x4x20"},
        {"v5p-1024", "8x8x8"},     {"v5p-1152", "4x12x12"},   {"v5p-1536", "8x8x12"},
        {"v5p-2048", "8x8x16"},    {"v5p-3072", "8x12x16"},   {"v5p-3456", "12x12x12"},
        {"v5p-4096", "8x16x16"},   {"v5p-6144", "12x16x16"},  {"v5p-7680", "12x16x20"},
        {"v5p-8192", "16x16x16"},  {"v5p-8960", "8x20x28"},   {"v5p-10240", "16x16x20"},
        {"v5p-12288", "16x16x24"}, {"v5p-17920", "16x20x28"}, {"tpu-v5p-8192", "16x16x16"},
        {"v4-8", "2x2x1"},         {"v4-128", "4x4x4"},       {"v4-1536", "8x8x12"},
        {"v4-4096", "8x16x16"},    {"v4p-8192", "16x16x16"},  {"v3-8", "2x2"},
        {"v3-32", "4x4"},          {"v3-1024", "16x32"},      {"v3-2048", "32x32"},
        {"v5e-1", "1x1"},          {"v5e-4", "2x2"},          {"v5e-8", "2x4"},
        {"v5e-16", "4x4"},         {"v5e-32", "4x8"},         {"v5e-64", "8x8"},
        {"v5litepod-128", "8x16"}, {"v5e-256", "16x16"},      {"v6e-64", "8x8"},
        {"tpu-v6e-256", "16x16"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[SHAPE_TEXT_BYTES];
        struct machine const machine = case_machine(rows[i].name);
        struct shape shape = {machine.axis_count, {1, 1, 1}, false};
        memcpy(shape.length, machine.shape, sizeof shape.length);
        assert_string_equal(shape_text(text, &shape), rows[i].shape);
        assert_string_equal(machine.product, rows[i].name);
    }
    assert_int_equal(case_machine("v5p-8192").chip_count, 4096);
    assert_int_equal(case_machine("v5e-256").chip_count, 256);
    assert_int_equal(case_machine("tpu-v5p:16x20x28").chip_count, 8960);
}

/* Every name up to past the pod either gives a slice of just that many chips that may also be asked
 * for by its shape, or is refused with a name that does. */
static void every_product_name_is_a_slice_or_is_refused_with_one_that_is(void **state)
{
    (void)state;
    static const char *const chips[] = {"v5p", "v5e", "v3"};
    for (size_t c = 0; c < 3; c++) {
        uint32_t accepted = 0;
        struct chip chip;
        struct error error = {0};
        case_ok(chip_find(case_arena, chips[c], "ideal", "", "", &chip, &case_error));
        for (uint32_t units = 0; units < 18100; units++) {
            struct shape shape;
            struct shape nearest;
            unsigned suggested = 0;
            if (shape_of_product(&chip, units, "name", "", &shape, &error) == STATUS_OK) {
                assert_int_equal(shape_chip_count(&shape) * chip.pod.name_units, units);
                case_ok(shape_check(&chip, &shape, "", &case_error));
                accepted++;
                continue;
            }
            const char *name = strrchr(error.message, '-');
            assert_non_null(name);
            assert_int_equal(sscanf(name, "-%u", &suggested), 1);
            assert_true(shape_standard(&chip, suggested / chip.pod.name_units, &nearest));
        }
        /* v5p: 47 counts of cubes within 4x5x7 of them, and four smaller slices. */
        assert_int_equal(accepted, c == 0 ? 51 : 8);
    }
}

static void product_names_that_mean_nothing_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const char *words;
    } rows[] = {
        {"v5p-7", "v5p-8"}, {"v5p-8193", "v5p-8192"}, {"v5p-99999999999999999999", "v5p-17920"},
        {"v5e-0", "v5e-1"}, {"v5e-48", "v5e-32"},     {"v9-8", "no chip is called \"v9\""},
        {"-8", "no chip"},  {"v5p-", "no chip"},      {"", "no chip"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct machine_plan const plan = plan_of(rows[i].name, NULL);
        refused(&plan, "/machine/chip", rows[i].words);
    }
    struct machine_plan plan = plan_of("v5p", NULL);
    refused(&plan, "/machine/shape", "needs a shape too");
    plan = plan_of("v5p-128", "4x4x8");
    refused(&plan, "/machine/shape", "v5p-128 has 64 chips, 4x4x8 has 128");
    assert_int_equal(case_machine("v5p-1024:4x8x16").chip_count, 512);
}

/* Cases topology.wraparound of the book, chapter 2. */
static void axes_wrap_by_the_products_rule(void **state)
{
    (void)state;
    static const struct {
        const char *chip;
        const char *shape;
        bool wrap[3];
    } rows[] = {
        {"v4p", "2x2x1", {0, 0, 0}},    {"v4p", "2x2x2", {0, 0, 0}},
        {"v4p", "2x2x4", {0, 0, 0}},    {"v5p", "2x4x4", {0, 0, 0}},
        {"v4p", "4x4x4", {1, 1, 1}},    {"v5p", "4x4x8", {1, 1, 1}},
        {"v5p", "16x16x16", {1, 1, 1}}, {"v5p", "16x20x28", {1, 1, 1}},
        {"v5p", "28x16x20", {1, 1, 1}}, {"v5e", "2x2", {0, 0, 0}},
        {"v5e", "4x2", {0, 0, 0}},      {"v5e", "8x8", {0, 0, 0}},
        {"v5e", "8x16", {0, 1, 0}},     {"v5e", "16x8", {1, 0, 0}},
        {"v5e", "16x16", {1, 1, 0}},    {"v6e", "8x16", {0, 1, 0}},
        {"v3", "16x16", {0, 0, 0}},     {"v3", "16x32", {0, 1, 0}},
        {"v3", "32x32", {1, 1, 0}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct machine const machine =
            case_machine(arena_format(case_arena, "%s:%s", rows[i].chip, rows[i].shape));
        for (uint32_t axis = 0; axis < 3; axis++) {
            const char *reason = machine.wrap_reason[axis];
            assert_int_equal(machine.wrap[axis], rows[i].wrap[axis]);
            if (axis >= machine.axis_count) continue;
            assert_non_null(strstr(reason, rows[i].wrap[axis] ? "ring: " : "line: "));
        }
    }
}

static void shapes_that_cannot_be_sliced_are_refused_with_the_nearest(void **state)
{
    (void)state;
    refused_shape("v5p", "32x16x16", "the nearest is 28x16x16");
    refused_shape("v5p", "2048x2x2", "does not fit the pod of TPU v5p, 16x20x28");
    refused_shape("v5p", "20x20x20", "in any orientation");
    refused_shape("v5p", "6x8x8", "whole cubes of 4x4x4");
    refused_shape("v5p", "8x6x8", "the nearest is 8x4x8");
    refused_shape("v5p", "1x1x1", "the nearest is ");
    refused_shape("v5p", "16x16", "has 3 axes, 16x16 has 2");
    refused_shape("v5p", "16", "has 3 axes");
    refused_shape("v5e", "16x16x1", "the nearest is 16x16");
    refused_shape("v5e", "4x16", "only into 1x1, 2x2, 2x4");
    refused_shape("v5e", "16x32", "does not fit");
    refused_shape("v4p", "16x16x20", "does not fit");
    refused_shape("v3", "8x32", "the nearest is ");
}

static void texts_that_are_no_shapes_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "x",
                                      "4x",
                                      "x4",
                                      "4xx4",
                                      "4x4x4x4",
                                      "4 x4",
                                      "-4x4",
                                      "4X4x4",
                                      "4x4.0",
                                      "0x4x4",
                                      "4x0",
                                      "99999999999999999999999x4",
                                      "16x16x16 "};
    struct machine machine;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct machine_plan plan = plan_of("v5p", bad[i]);
        plan.unrealisable = true;
        case_refused(machine_build(case_arena, &plan, &machine, &case_error), STATUS_INVALID,
                     "/machine/shape", "");
    }
}

static void the_limit_of_chips_is_checked_before_memory_is_taken(void **state)
{
    (void)state;
    struct machine machine;
    struct machine_plan plan = plan_of("v5p", "1048576x1048576x1048576");
    plan.unrealisable = true;
    case_refused(machine_build(case_arena, &plan, &machine, &case_error), STATUS_LIMIT, NULL, "");
    plan.shape = "1048577";
    case_refused(machine_build(case_arena, &plan, &machine, &case_error), STATUS_INVALID, NULL, "");
    plan.shape = "1024x1024x1";
    case_ok(machine_build(case_arena, &plan, &machine, &case_error));
    assert_int_equal(machine.chip_count, 1 << 20);
}

static void what_cannot_be_built_may_be_asked_for_by_name(void **state)
{
    (void)state;
    struct machine_plan plan = plan_of("v5p", "16");
    plan.unrealisable = true;
    assert_false(case_machine_built(&plan).wrap[0]);
    plan.wrap[0] = 1;
    struct machine machine = case_machine_built(&plan);
    assert_true(machine.wrap[0]);
    assert_int_equal(machine.axis_count, 1);
    assert_non_null(strstr(machine.wrap_reason[0], "set by the scenario"));
    plan.wrap[1] = 0;
    refused(&plan, "/machine/wrap/y", "no axis y");
    plan = plan_of("v5p", "4x4x4");
    plan.wrap[2] = 0;
    refused(&plan, "/machine/wrap/z", "unrealisable");
    plan.unrealisable = true;
    assert_false(case_machine_built(&plan).wrap[2]);
    assert_true(case_machine_built(&plan).wrap[0]);
    plan = plan_of("v5p", "2x3");
    plan.unrealisable = true;
    plan.wrap[0] = 1;
    refused(&plan, "/machine/wrap/x", "the shortest ring is 3");
    plan.wrap[0] = -1;
    plan.wrap[1] = 1;
    assert_true(case_machine_built(&plan).wrap[1]);
    plan = plan_of("v5e", "8x16x4");
    plan.unrealisable = true;
    assert_true(case_machine_built(&plan).wrap[1]);
    plan = plan_of("v5p", "32x32x32");
    plan.unrealisable = true;
    assert_true(case_machine_built(&plan).wrap[0]);
}

/* Every pair of chips of small grids with every choice of wraparound, against the definition. */
static void ports_and_links_agree_on_every_small_grid(void **state)
{
    (void)state;
    for (uint32_t code = 0; code < 4 * 4 * 3 * 8; code++) {
        char text[SHAPE_TEXT_BYTES];
        uint32_t const length[MACHINE_AXES_MAX] = {1 + code % 4, 1 + code / 4 % 4,
                                                   1 + code / 16 % 3, 1};
        (void)snprintf(text, sizeof text, "%ux%ux%u", length[0], length[1], length[2]);
        struct machine_plan plan = plan_of("v5p", text);
        plan.unrealisable = true;
        for (uint32_t axis = 0; axis < 3; axis++)
            plan.wrap[axis] = length[axis] >= 3 && (code / 48 >> axis & 1) != 0;
        struct machine const machine = case_machine_built(&plan);
        uint64_t links = 0;
        for (uint32_t chip = 0; chip < machine.chip_count; chip++) {
            uint32_t at[MACHINE_AXES_MAX];
            machine_coordinates(&machine, chip, at);
            assert_int_equal(machine_chip_at(&machine, at), chip);
            assert_int_equal(chip, (at[0] * length[1] + at[1]) * length[2] + at[2]);
            for (uint32_t port = 0; port < MACHINE_GRID_PORTS; port++) {
                uint32_t to[MACHINE_AXES_MAX] = {at[0], at[1], at[2]};
                uint32_t const axis = port / 2;
                uint32_t const step = port % 2 == 0 ? 1 : length[axis] - 1;
                bool const inside = port % 2 == 0 ? at[axis] + 1 < length[axis] : at[axis] > 0;
                to[axis] = (at[axis] + step) % length[axis];
                bool const has = inside || (machine.wrap[axis] && length[axis] > 1);
                assert_int_equal(machine_has_link(&machine, chip, port), has);
                links += has;
                if (has) assert_int_equal(machine_port_between(&machine, at, to), port);
            }
            uint32_t found = 0;
            for (uint32_t other = 0; other < machine.chip_count; other++) {
                uint32_t to[MACHINE_AXES_MAX];
                machine_coordinates(&machine, other, to);
                found += machine_port_between(&machine, at, to) != MACHINE_PORTS_MAX;
            }
            uint32_t ports = 0;
            for (uint32_t port = 0; port < MACHINE_GRID_PORTS; port++)
                ports += machine_has_link(&machine, chip, port);
            assert_int_equal(found, ports);
        }
        assert_int_equal(machine_link_count(&machine), links);
    }
    assert_int_equal(machine_link_count(&(struct machine){.axis_count = 3,
                                                          .grid_axis_count = 3,
                                                          .shape = {16, 16, 16},
                                                          .wrap = {true, true, true},
                                                          .chip_count = 4096}),
                     24576);
}

static void an_overridden_link_is_one_direction_of_one_cable(void **state)
{
    (void)state;
    struct machine_link_override const links[] = {
        {.from = {0, 0, 0}, .to = {1, 0, 0}, .bytes_per_s = 45000000000},
        {.from = {0, 0, 0}, .to = {3, 0, 0}, .latency_ps = 5 * TIME_PS_PER_US},
    };
    struct machine_plan plan = plan_of("v5p", "4x4x4");
    uint64_t rate = 0;
    int64_t latency = 0;
    plan.links = links;
    plan.link_count = 2;
    struct machine const machine = case_machine_built(&plan);
    for (uint32_t chip = 0; chip < 64; chip++) {
        for (uint32_t port = 0; port < MACHINE_PORTS_MAX; port++) {
            machine_link(&machine, chip, port, &rate, &latency);
            assert_int_equal(rate, chip == 0 && port == 0 ? 45000000000 : 90000000000);
            assert_int_equal(latency, (chip == 0 && port == 1 ? 5 : 1) * TIME_PS_PER_US);
        }
    }
}

static void links_that_are_not_there_or_say_nothing_are_refused(void **state)
{
    (void)state;
    uint64_t const rate = 45000000000;
    static const char first[] = "/machine/links/0";
    struct machine_link_override link[2] = {{.from = {0, 0, 0}, .to = {2, 0, 0}, rate, 0}};
    struct machine_plan plan = plan_of("v5p", "2x2x4");
    plan.links = link;
    plan.link_count = 1;
    refused(&plan, "/machine/links/0/to", "2 on axis x is not below its length, 2");
    link[0].to[0] = 1;
    link[0].to[2] = 1;
    refused(&plan, first, "no link from [0,0,0] to [1,0,1]");
    link[0].to[2] = 0;
    link[0].to[0] = 0;
    refused(&plan, first, "no link");
    link[0].to[2] = 3; /* No wraparound on a sub-cube. */
    refused(&plan, first, "no link");
    link[0].to[2] = machine_any;
    refused(&plan, "/machine/links/0/to", "*");
    link[0].to[3] = 7;
    link[0].to[2] = 1;
    refused(&plan, "/machine/links/0/to", "7 as coordinate 4: the machine has only 3 axes");
    link[0].to[3] = 0;
    link[0].to[2] = 1;
    (void)case_machine_built(&plan);
    link[0].bytes_per_s = 0;
    refused(&plan, first, "above 0");
    link[0].latency_ps = -1;
    refused(&plan, first, "latency");
    link[0].latency_ps = 0;
    link[0].bytes_per_s = rate;
    link[1] = link[0];
    plan.link_count = 2;
    refused(&plan, "/machine/links/1", "stands already at /machine/links/0");
    link[1].from[2] = 1;
    link[1].to[2] = 0; /* The other direction is another link. */
    (void)case_machine_built(&plan);
    plan.link_count = MACHINE_OVERRIDES_MAX + 1;
    refused(&plan, "/machine/links", "limit");
    plan = plan_of("v5e", "4x4");
    link[0] = (struct machine_link_override){{0, 0, 1}, {0, 1, 1}, rate, 0};
    plan.links = link;
    plan.link_count = 1;
    refused(&plan, "/machine/links/0/from", "only 2 axes");
}

static void slower_chips_are_named_by_patterns_and_the_last_holds(void **state)
{
    (void)state;
    struct machine_chip_override chips[] = {
        {.at = {3, machine_any, machine_any}, .math_ppm = 500000, .hbm_ppm = PPM_ONE},
        {.at = {3, 1, 2}, .math_ppm = PPM_ONE, .hbm_ppm = 250000},
        {.at = {machine_any, 0, machine_any}, .math_ppm = 700000, .hbm_ppm = PPM_ONE},
    };
    struct machine_plan plan = plan_of("v5p", "4x4x4");
    plan.chips = chips;
    plan.chip_count = 3;
    struct machine const machine = case_machine_built(&plan);
    for (uint32_t chip = 0; chip < 64; chip++) {
        uint32_t at[MACHINE_AXES_MAX];
        uint32_t math = 0;
        uint32_t hbm = 0;
        machine_coordinates(&machine, chip, at);
        machine_chip_ppm(&machine, chip, &math, &hbm);
        bool const last = at[0] == 3 && at[1] == 1 && at[2] == 2;
        assert_int_equal(math, at[1] == 0 ? 700000 : at[0] == 3 && !last ? 500000 : PPM_ONE);
        assert_int_equal(hbm, last ? 250000 : PPM_ONE);
    }
    chips[1].hbm_ppm = 0;
    refused(&plan, "/machine/chips/1/hbm", "above 0");
    chips[1].hbm_ppm = PPM_ONE;
    chips[1].math_ppm = UINT32_MAX;
    refused(&plan, "/machine/chips/1/math", "above 0");
    chips[1] = chips[0];
    refused(&plan, "/machine/chips/1/at", "stand already at /machine/chips/0");
    chips[1].at[0] = 4;
    refused(&plan, "/machine/chips/1/at", "4 on axis x");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_product_name_gives_the_slice_that_is_sold),
        cmocka_unit_test(every_product_name_is_a_slice_or_is_refused_with_one_that_is),
        cmocka_unit_test(product_names_that_mean_nothing_are_refused),
        cmocka_unit_test(axes_wrap_by_the_products_rule),
        cmocka_unit_test(shapes_that_cannot_be_sliced_are_refused_with_the_nearest),
        cmocka_unit_test(texts_that_are_no_shapes_are_refused),
        cmocka_unit_test(the_limit_of_chips_is_checked_before_memory_is_taken),
        cmocka_unit_test(what_cannot_be_built_may_be_asked_for_by_name),
        cmocka_unit_test(ports_and_links_agree_on_every_small_grid),
        cmocka_unit_test(an_overridden_link_is_one_direction_of_one_cable),
        cmocka_unit_test(links_that_are_not_there_or_say_nothing_are_refused),
        cmocka_unit_test(slower_chips_are_named_by_patterns_and_the_last_holds),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
