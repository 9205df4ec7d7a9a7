/* What groups that share an axis of switches must carry adds up cable by cable, and no further. */
#include "sim/roofline/all_to_all_bound.h"
#include "sim/roofline/level_rate.h"
#include "sim/roofline/roofline.h"
#include "sim/roofline/stage_bound.h"
#include "sim/roofline/tier_load.h"
#include "tests/support/case.h"
#include "tests/unit/workload_case.h"

enum { NODE = 1 }; /* The axis. */
static const double nic = 50e9;

static struct workload_traffic gathers(struct group group, double bytes)
{
    return (struct workload_traffic){.group = group, .gather_bytes = bytes};
}

static double busy_s(const struct machine *machine, const char *algorithm, uint32_t axis,
                     const struct workload_traffic *a, const struct workload_traffic *b)
{
    struct workload_plan const plan = {.algorithm = algorithm};
    const struct workload_traffic *const traffic[] = {a, b};
    return tier_load_busy_s(&plan, machine, traffic, 2, axis);
}

static struct group strided(struct group group, uint32_t stride)
{
    for (uint32_t d = 0; d < group.dimension_count; d++)
        if (group.dimension[d].axis == NODE) group.dimension[d].stride = stride;
    return group;
}

/* 32 nodes lie under a leaf, which has a quarter of their cables upwards. */
static void groups_under_a_leaf_leave_the_cables_above_it_to_others(void **state)
{
    (void)state;
    struct machine const machine = case_machine("h100-sxm:nodes=64,leaf.oversubscription=4");
    struct group const leaf = case_group(&machine, "node:32");
    struct group const pair = strided(case_group(&machine, "node:2"), 32);
    struct workload_traffic near_a = gathers(leaf, 32e9), far_a = gathers(pair, 2e9);
    case_near(busy_s(&machine, "auto", NODE, &near_a, &near_a), 62e9 / nic, 1e-9);
    /* Alone, the strided ones wait for the leaf: 1 GB a chip, at a quarter of a NIC. */
    struct workload_traffic const none = {.gather_bytes = 0};
    case_near(busy_s(&machine, "auto", NODE, &none, &far_a), 4e9 / nic, 1e-9);
    /* Together they share the NICs, and that is longer. */
    case_near(busy_s(&machine, "auto", NODE, &near_a, &far_a), 32e9 / nic, 1e-9);
    near_a.gather_bytes = 2e9;
    case_near(busy_s(&machine, "auto", NODE, &near_a, &far_a), 4e9 / nic, 1e-9);
}

/* What enters a leaf comes once, and is passed on in it by NICs. */
static void a_group_over_leaves_fills_both_tiers(void **state)
{
    (void)state;
    struct machine const machine = case_machine("h100-sxm:nodes=64,leaf.oversubscription=4");
    struct group const all = case_group(&machine, "node");
    struct workload_traffic one = gathers(all, 64e9), none = {.gather_bytes = 0};
    case_near(busy_s(&machine, "auto", NODE, &one, &none), 63e9 / nic, 1e-9);
    one.gather_bytes = 0;
    one.all_reduce_bytes = 64e9;
    case_near(busy_s(&machine, "auto", NODE, &none, &one), 126e9 / nic, 1e-9);
    case_near(busy_s(&machine, "sharp", NODE, &none, &one), 63e9 / nic, 1e-9);
    one.all_reduce_bytes = 0;
    one.all_to_all_bytes = 64e9; /* Half of it crosses the leaves, 32 parts to each member. */
    case_near(busy_s(&machine, "auto", NODE, &one, &none), 4 * 0.5e9 / nic, 1e-9);
    one.all_to_all_bytes = 0;
    one.permute_bytes = 1e9; /* Two of 64 messages cross. */
    case_near(busy_s(&machine, "auto", NODE, &one, &none), 1e9 / nic, 1e-9);
}

/* Keys that pass round a ring are not copied by switches, whatever the plan says of the others. */
static void a_group_with_an_algorithm_of_its_own_is_played_by_that(void **state)
{
    (void)state;
    struct machine const machine = case_machine("h100-sxm:nodes=64,leaf.oversubscription=4");
    struct group const all = case_group(&machine, "node");
    struct workload_traffic const none = {.gather_bytes = 0};
    struct workload_traffic sums = {.group = all, .all_reduce_bytes = 64e9};
    struct workload_traffic ring = sums;
    ring.algorithm = "ring";
    case_near(busy_s(&machine, "sharp", NODE, &none, &ring), 126e9 / nic, 1e-9);
    case_near(busy_s(&machine, "sharp", NODE, &sums, &ring), (63e9 + 126e9) / nic, 1e-9);
    sums.algorithm = "sharp";
    case_near(busy_s(&machine, "auto", NODE, &sums, &ring), (63e9 + 126e9) / nic, 1e-9);
}

/* cp's ring on GPUs, whose other collectives are told to be done by switches: its members read and
 * write each byte, and add. */
static void a_ring_of_its_own_is_no_work_of_switches(void **state)
{
    (void)state;
    struct machine_plan const machine_plan = {
        .chip = "h100-sxm", .nodes = 1, .profile = "ideal", .wrap = {-1, -1, -1}};
    const char *const parts[MESH_ROLE_COUNT] = {[MESH_CP] = "gpu"};
    struct workload_case made;
    assert_int_equal(case_build_on(&made, &case_llama_70b, &machine_plan, parts), STATUS_OK);
    struct workload_counts const counts = {.sequence = {.group = made.mesh.axis[MESH_CP].group,
                                                        .algorithm = "ring",
                                                        .gather_bytes = 16e9,
                                                        .scatter_bytes = 16e9,
                                                        .gather_count = 1,
                                                        .scatter_count = 1},
                                           .padded_flop = 1};
    struct roofline all, own;
    made.plan.algorithm = "ring";
    roofline_from_counts(&made.plan, &made.machine, &made.mesh, &counts, &all);
    made.plan.algorithm = "sharp";
    roofline_from_counts(&made.plan, &made.machine, &made.mesh, &counts, &own);
    /* A gather: 7/8 arrive and 7/8 are read; a reduction: 7/8 are read, an eighth is written. */
    double const hbm_bytes = 16e9 * (7 + 7 + 7 + 1) / 8;
    case_near(own.hbm_collectives_s, hbm_bytes / (double)made.machine.chip.hbm_bytes_per_s, 1e-9);
    case_near(own.hbm_collectives_s, all.hbm_collectives_s, 1e-12);
    case_near(own.vector_collectives_s, all.vector_collectives_s, 1e-12);
    case_near(own.ici_s[0], all.ici_s[0], 1e-12);
    case_free(&made);
}

/* NICs bring the other node's part for one's own place, NVLink seven places' parts of both nodes;
 * where all send to all at once, only those of the own node. */
static void several_levels_have_a_part_each(void **state)
{
    (void)state;
    struct machine const machine = case_machine("h100-sxm:nodes=8");
    struct group const both = case_group(&machine, "gpu,node:2");
    double const nvlink = (double)level_bundle_bytes_per_s(&machine.level[0].tier[0]);
    struct workload_traffic const one = gathers(both, 16e9), none = {.gather_bytes = 0};
    case_near(busy_s(&machine, "auto", NODE, &one, &none), 1e9 / nic, 1e-9);
    case_near(busy_s(&machine, "auto", 0, &one, &none), 14e9 / nvlink, 1e-9);
    case_near(busy_s(&machine, "flat-direct", 0, &one, &none), 7e9 / nvlink, 1e-9);
}

/* Four and two of six nodes: of 36 messages of a rail 16 go from leaf to leaf, by a cable of each.
 */
static void a_leaf_that_is_not_full_has_as_many_cables(void **state)
{
    (void)state;
    struct machine const machine =
        case_machine("h100-sxm:nodes=6,gpus=2,switch_ports=8,leaf.oversubscription=4");
    const struct level *level = &machine.level[machine.axis_level[NODE]];
    assert_int_equal(level_unit_count(&machine, level, 0), 2 * 2);
    struct workload_traffic const none = {.gather_bytes = 0};
    struct workload_traffic const one = {.group = case_group(&machine, "node"),
                                         .all_to_all_bytes = 36e9};
    case_near(busy_s(&machine, "auto", NODE, &one, &none), 16e9 / (2 * nic), 1e-9);
}

/* Stages of nine nodes side by side have two leaves of eight at most, which others share. */
static void stages_that_begin_inside_a_leaf_have_cables_of_another(void **state)
{
    (void)state;
    struct machine const machine =
        case_machine("h100-sxm:nodes=27,gpus=2,switch_ports=16,leaf.oversubscription=4");
    static const struct {
        uint32_t stride;
        double leaves; /* That as many nodes have at most. */
    } cases[] = {{8, 1}, {9, 2}, {10, 3}, {16, 2}, {18, 18 / 8.0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct group const stages = strided(case_group(&machine, "node:3"), cases[i].stride);
        double const up = nic / 4 * 8 * cases[i].leaves;
        case_near(level_step_rate(&machine, &stages.dimension[0]), up / cases[i].stride, 1e-9);
    }
    struct group const near_ones = strided(case_group(&machine, "node:3"), 4);
    case_near(level_step_rate(&machine, &near_ones.dimension[0]), nic, 1e-9);
}

/* Over two levels the pair with most may lie in the faster one: that one is busy for as long. */
static void stages_over_two_levels_count_in_the_faster(void **state)
{
    (void)state;
    enum { GPU = 0 };
    struct machine const machine = case_machine("h100-sxm:nodes=4");
    struct workload_counts const counts = {
        .role[MESH_PP] = {.group = case_group(&machine, "node,gpu")},
        .stage.bytes = 9e9,
        .stage.sent_bytes = 18e9};
    struct roofline roofline = {.stages_s = 0};
    assert_int_equal(counts.role[MESH_PP].group.dimension_count, 2);
    stage_bound_evaluate(&machine, &counts, &roofline);
    case_near(roofline.stages_s, 9e9 / 450e9, 1e-9);
    assert_true(roofline.ici_s[GPU] == roofline.stages_s && roofline.ici_s[NODE] == 0);
}

/* On the grid, V of a line of 8: a quarter of it crosses the middle link, and a permute crosses
 * each. A second dimension halves what each member has for others along the first, and a byte takes
 * 63/24 links on the mean, of 7 each way. */
static void an_exchange_along_one_axis_is_bounded_by_its_middle(void **state)
{
    (void)state;
    struct machine machine = case_machine("tpu-v5p:8x8x8");
    for (uint32_t axis = 0; axis < machine.axis_count; axis++) machine.wrap[axis] = false;
    double const link = (double)machine.chip.ici_bytes_per_s;
    struct workload_traffic traffic = {.group = {{{0, 8, 1, false, false, "x"}}, 1},
                                       .all_to_all_bytes = 64e9};
    case_near(all_to_all_axis_s(&machine, &traffic, 0), 16e9 / link, 1e-9);
    traffic.permute_bytes = 1e9;
    case_near(all_to_all_axis_s(&machine, &traffic, 0), 17e9 / link, 1e-9);
    traffic.group.dimension[1] = (struct group_dimension){1, 8, 1, false, false, "y"};
    traffic.group.dimension_count = 2;
    for (uint32_t d = 0; d < 2; d++)
        case_near(all_to_all_axis_s(&machine, &traffic, d), 1e9 * 63 / 24 * 8 / (2 * 7 * link),
                  1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_under_a_leaf_leave_the_cables_above_it_to_others),
        cmocka_unit_test(a_group_over_leaves_fills_both_tiers),
        cmocka_unit_test(a_group_with_an_algorithm_of_its_own_is_played_by_that),
        cmocka_unit_test(a_ring_of_its_own_is_no_work_of_switches),
        cmocka_unit_test(several_levels_have_a_part_each),
        cmocka_unit_test(a_leaf_that_is_not_full_has_as_many_cables),
        cmocka_unit_test(stages_that_begin_inside_a_leaf_have_cables_of_another),
        cmocka_unit_test(stages_over_two_levels_count_in_the_faster),
        cmocka_unit_test(an_exchange_along_one_axis_is_bounded_by_its_middle),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
