/* Rooflines of machines whose axes, links or chips are not all alike. */
#include "sim/roofline/gather_form.h"
#include "tests/unit/roofline_case.h"

static void strided_parts_share_the_links_between_their_members(void **state)
{
    (void)state;
    struct step *step = step_of("16", true, "x:4", "x:4");
    forward_counts(step, 3000);
    const struct roofline_group *near_group = roofline_group_find(&step->roofline, MESH_FSDP);
    const struct roofline_group *far_group = roofline_group_find(&step->roofline, MESH_TP);
    assert_non_null(near_group);
    assert_non_null(far_group);
    /* Neighbours have no ring; the strided do, and four of their rings share every link. */
    case_near(near_group->axes, 0.5, 1e-9);
    case_near(far_group->axes, 0.25, 1e-9);
    /* The line's gathers may take the links of both directions that other lines leave idle. */
    case_near(step->roofline.ici_s[0], near_group->time_s / 2 + far_group->time_s, 1e-9);
    step_free(step);
}

/* A long line beside a short ring has to carry its own, 15 of 32 parts, whatever the ring does. */
static void a_slow_axis_decides_and_the_others_wait_for_it(void **state)
{
    (void)state;
    struct step *step = step_of("2x16", true, "x y", NULL);
    struct group *group = &step->made.mesh.axis[MESH_FSDP].group;
    assert_int_equal(group->dimension_count, 2);
    group->dimension[0].ring = true;
    group->dimension[1].ring = false;
    double const rate = 90e9;
    struct gather_form played =
        gather_form_by(&step->made.machine, group, &step->made.plan.algorithm);
    case_near(gather_form_s(&played, 32e9), 15e9 / rate, 1e-9);
    struct workload_counts counts = {
        .role[MESH_FSDP] = {.group = *group, .gather_bytes = 32e9, .gather_count = 1},
        .padded_flop = 1};
    struct roofline roofline;
    roofline_from_counts(&step->made.plan, &step->made.machine, &step->made.mesh, &counts,
                         &roofline);
    case_near(roofline.ici_s[1], 15e9 / rate, 1e-9);
    case_near(roofline.ici_s[0], 16e9 / (2 * rate), 1e-9); /* 31 parts arrive. */
    /* Eight times as far apart, the ring can only help an eighth as much. */
    group->dimension[0].stride = 8;
    played.group = *group;
    case_near(gather_form_s(&played, 32e9), 31e9 / (rate * 1.25), 1e-9);
    step_free(step);
}

/* What a chip has to read and write of gathers and reductions even if it passes nothing on. */
static double least_hbm_s(const struct step *step)
{
    const struct workload_traffic *fsdp = &step->counts.role[MESH_FSDP],
                                  *tp = &step->counts.role[MESH_TP];
    return (fsdp->gather_bytes + tp->gather_bytes + tp->scatter_bytes) /
           (double)step->made.machine.chip.hbm_bytes_per_s;
}

static void the_slowest_chip_bounds_the_step(void **state)
{
    (void)state;
    struct step *step = step_of("16x16", true, "x", "y");
    forward_counts(step, 3000);
    struct roofline const even = step->roofline;
    struct machine_chip_override const chips[] = {{{3, 0, 0}, 800000, 1000000},
                                                  {{4, 0, 0}, 500000, 250000}};
    case_override_chips(step->made.arena, &step->made.machine, chips, 2);
    forward_counts(step, 3000);
    case_near(step->roofline.math_s, 2 * even.math_s, 1e-9);
    case_near(step->roofline.hbm_s, 4 * least_hbm_s(step), 1e-9);
    assert_true(step->roofline.hbm_s > 2 * even.hbm_s);
    step_free(step);
}

/* x:2 outside x:2: pairs of neighbours that never cross 1 to 2, and strided pairs whose rings do.
 * Nothing has to, so that only estimates and the bound from above know the slow link. */
static void a_slow_link_delays_only_rings_that_cross_it(void **state)
{
    (void)state;
    struct step *step = step_of("4", true, "x:2", "x:2");
    forward_counts(step, 3000);
    struct roofline const even = step->roofline;
    struct machine_link_override const links[] = {{{1, 0, 0}, {2, 0, 0}, UINT64_C(9000000000), 0}};
    step->made.machine.links = links;
    step->made.machine.link_override_count = 1;
    forward_counts(step, 3000);
    for (uint32_t g = 0; g < step->roofline.group_count; g++) {
        const struct roofline_group *group = &step->roofline.group[g];
        case_near(group->time_s, even.group[g].time_s * (group->group.dimension[0].ring ? 10 : 1),
                  1e-9);
    }
    assert_true(step->roofline.ici_s[0] >= even.ici_s[0]);
    assert_true(step->roofline.ici_s[0] <= even.ici_s[0] / (1 - 0.9 / 8));
    assert_true(step->roofline.upper_s > 2 * even.upper_s); /* From above it may carry all. */
    step_free(step);
}

static void chips_that_are_all_faster_shorten_the_bound(void **state)
{
    (void)state;
    struct step *step = step_of("4x4", true, "x", "y");
    forward_counts(step, 3000);
    struct roofline const even = step->roofline;
    struct machine_chip_override const chips[] = {{{machine_any, machine_any, 0}, 2000000, 3000000},
                                                  {{1, 1, 0}, 4000000, 4000000}};
    case_override_chips(step->made.arena, &step->made.machine, chips, 2);
    forward_counts(step, 3000);
    case_near(step->roofline.math_s, even.math_s / 2, 1e-9);
    case_near(step->roofline.hbm_s, least_hbm_s(step) / 3, 1e-9);
    step_free(step);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(strided_parts_share_the_links_between_their_members),
        cmocka_unit_test(a_slow_axis_decides_and_the_others_wait_for_it),
        cmocka_unit_test(the_slowest_chip_bounds_the_step),
        cmocka_unit_test(a_slow_link_delays_only_rings_that_cross_it),
        cmocka_unit_test(chips_that_are_all_faster_shorten_the_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
