/* What links must carry at least, whoever plays the collectives: of groups that share them it adds
 * up cable by cable, and no further. */
#include "sim/roofline/level_rate.h"
#include "sim/roofline/link_bound.h"
#include "sim/roofline/roofline.h"
#include "sim/roofline/stage_bound.h"
#include "tests/support/case.h"
#include "tests/unit/workload_case.h"

enum { NODE = 1 }; /* The axis. */
static const double nic = 50e9;

static struct workload_traffic gathers(struct group group, double bytes)
{
    return (struct workload_traffic){.group = group, .gather_bytes = bytes};
}

static double busy_s(const struct machine *machine, uint32_t axis, const struct workload_traffic *a,
                     const struct workload_traffic *b)
{
    const struct workload_traffic *const traffic[] = {a, b};
    double busy[MACHINE_AXES_MAX];
    link_bound(machine, traffic, 2, busy);
    return busy[axis];
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
    case_near(busy_s(&machine, NODE, &near_a, &near_a), 62e9 / nic, 1e-9);
    /* Alone, the strided ones wait for the leaf: 1 GB a chip, at a quarter of a NIC. */
    struct workload_traffic const none = {.gather_bytes = 0};
    case_near(busy_s(&machine, NODE, &none, &far_a), 4e9 / nic, 1e-9);
    /* Together they share the NICs, and that is longer. */
    case_near(busy_s(&machine, NODE, &near_a, &far_a), 32e9 / nic, 1e-9);
    near_a.gather_bytes = 2e9;
    case_near(busy_s(&machine, NODE, &near_a, &far_a), 4e9 / nic, 1e-9);
}

/* Of four groups of 24 nodes the second and the third lie under two leaves: each has two messages
 * to a neighbour that cross, half of a message for a group on the mean, each way. */
static void groups_that_lie_under_one_leaf_leave_it_to_others(void **state)
{
    (void)state;
    struct machine const machine = case_machine("h100-sxm:nodes=96,leaf.oversubscription=32");
    struct group const group = case_group(&machine, "node:24");
    struct workload_traffic const none = {.gather_bytes = 0};
    struct workload_traffic const one = {.group = group, .permute_bytes = 1e9};
    case_near(busy_s(&machine, NODE, &one, &none), 32.0 / 24 * 1e9 / nic, 1e-9);
}

/* What enters a leaf comes once, and is passed on in it by NICs. */
static void a_group_over_leaves_fills_both_tiers(void **state)
{
    (void)state;
    struct machine const machine = case_machine("h100-sxm:nodes=64,leaf.oversubscription=4");
    struct group const all = case_group(&machine, "node");
    struct workload_traffic one = gathers(all, 64e9), none = {.gather_bytes = 0};
    case_near(busy_s(&machine, NODE, &one, &none), 63e9 / nic, 1e-9);
    one.gather_bytes = 0;
    one.all_reduce_bytes = 64e9;
    case_near(busy_s(&machine, NODE, &none, &one), 126e9 / nic, 1e-9);
    one.all_reduce_bytes = 0;
    one.all_to_all_bytes = 64e9; /* Half of it crosses the leaves, 32 parts to each member. */
    case_near(busy_s(&machine, NODE, &one, &none), 4 * 0.5e9 / nic, 1e-9);
    one.all_to_all_bytes = 0;
    one.permute_bytes = 1e9; /* Two of 64 messages cross. */
    case_near(busy_s(&machine, NODE, &one, &none), 1e9 / nic, 1e-9);
}

/* A chip tells its part and hears the sum, whatever the number of ranks; or it tells and hears
 * twice all that others have, where switches may not add. */
static void switches_that_add_halve_a_sum(void **state)
{
    (void)state;
    static const struct {
        const char *machine, *axes;
        double sums, gathers;
    } cases[] = {
        {"h100-sxm", "gpu", 16e9 / 450e9, 14e9 / 450e9},
        {"h100-sxm:gpus=2", "gpu", 16e9 / 450e9, 8e9 / 450e9},
        {"h100-sxm:sharp=off", "gpu", 28e9 / 450e9, 14e9 / 450e9},
        {"h100-sxm:nodes=8,sharp=on", "node", 16e9 / 50e9, 14e9 / 50e9},
        {"h100-sxm:nodes=8", "node", 28e9 / 50e9, 14e9 / 50e9},
        {"a100-sxm", "gpu", 28e9 / 300e9, 14e9 / 300e9},
        {"tpu-v5e:16x16", "x", 30e9 / 90e9, 15e9 / 90e9},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct machine const machine = case_machine(cases[i].machine);
        struct group const group = case_group(&machine, cases[i].axes);
        struct workload_traffic const none = {.gather_bytes = 0}, gather = gathers(group, 16e9),
                                      sum = {.group = group, .all_reduce_bytes = 16e9};
        uint32_t const axis = group.dimension[0].axis;
        case_near(busy_s(&machine, axis, &sum, &none), cases[i].sums, 1e-9);
        case_near(busy_s(&machine, axis, &gather, &none), cases[i].gathers, 1e-9);
    }
}

/* Where switches copy and add, a gather comes down and a reduction goes up: side by side. */
static void gathers_and_reductions_pass_each_other_at_switches(void **state)
{
    (void)state;
    struct machine const adds = case_machine("h100-sxm"), not = case_machine("h100-sxm:sharp=off");
    struct workload_traffic both = gathers(case_group(&adds, "gpu"), 16e9);
    struct workload_traffic const none = {.gather_bytes = 0};
    both.scatter_bytes = 16e9;
    case_near(busy_s(&adds, 0, &both, &none), 16e9 / 450e9, 1e-9);
    case_near(busy_s(&not, 0, &both, &none), 28e9 / 450e9, 1e-9);
}

/* A bound is of the machine: whatever the step's collectives are played by, and those that have an
 * algorithm of their own. */
static void no_algorithm_moves_the_lower_bound(void **state)
{
    static const char *const names[] = {"auto", "ring", "direct", "sharp", "tree", "bruck"};
    (void)state;
    for (int adds = 0; adds < 2; adds++) {
        struct machine_plan const machine_plan = {.chip = "h100-sxm",
                                                  .nodes = 1,
                                                  .profile = "ideal",
                                                  .wrap = {-1, -1, -1},
                                                  .network.sharp = adds ? MACHINE_SHARP_AUTO
                                                                        : MACHINE_SHARP_OFF};
        const char *const parts[MESH_ROLE_COUNT] = {[MESH_CP] = "gpu"};
        struct workload_case made;
        assert_int_equal(case_build_on(&made, &case_llama_70b, &machine_plan, parts), STATUS_OK);
        struct workload_counts counts = {.sequence = {.group = made.mesh.axis[MESH_CP].group,
                                                      .gather_bytes = 16e9,
                                                      .scatter_bytes = 16e9,
                                                      .all_reduce_bytes = 4e9,
                                                      .gather_count = 1,
                                                      .scatter_count = 1,
                                                      .all_reduce_count = 1},
                                         .padded_flop = 1};
        struct roofline first = {.lower_s = 0}, roofline;
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            made.plan.algorithm = algorithm_read(names[i]);
            counts.sequence.algorithm = algorithm_read(i % 2 == 0 ? NULL : "ring");
            roofline_from_counts(&made.plan, &made.machine, &made.mesh, &counts, &roofline);
            if (i == 0) first = roofline;
            assert_true(roofline.lower_s == first.lower_s && roofline.ici_s[0] == first.ici_s[0]);
            assert_true(roofline.hbm_s == first.hbm_s && roofline.vector_s == first.vector_s);
        }
        /* Of gathers 7/8 arrive, and 7/8 are read, or the own part once where switches copy it; of
         * reductions 7/8 are read, and an eighth is written. */
        double const eighths = adds ? 7 + 1 + 7 + 1 : 7 + 7 + 7 + 1;
        case_near(first.hbm_collectives_s,
                  20e9 * eighths / 8 / (double)made.machine.chip.hbm_bytes_per_s, 1e-9);
        assert_int_equal(first.vector_collectives_s > 0, !adds);
        case_free(&made);
    }
}

/* NICs bring the other seven nodes' parts for one's own place, NVLink seven places' parts of all
 * nodes. Of two nodes NICs have time to bring more than the other's part. */
static void several_levels_have_a_part_each(void **state)
{
    (void)state;
    struct machine const machine = case_machine("h100-sxm:nodes=8");
    double const nvlink = (double)level_bundle_bytes_per_s(&machine.level[0].tier[0]);
    struct workload_traffic const none = {.gather_bytes = 0};
    struct workload_traffic const all = gathers(case_group(&machine, "gpu,node"), 64e9);
    struct workload_traffic const two = gathers(case_group(&machine, "gpu,node:2"), 16e9);
    case_near(busy_s(&machine, NODE, &all, &none), 7e9 / nic, 1e-9);
    case_near(busy_s(&machine, 0, &all, &none), 56e9 / nvlink, 1e-9);
    for (uint32_t axis = 0; axis < 2; axis++)
        case_near(busy_s(&machine, axis, &two, &none), 15e9 / (nvlink + nic), 1e-9);
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
    case_near(busy_s(&machine, NODE, &one, &none), 16e9 / (2 * nic), 1e-9);
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
    struct roofline roofline = {.stages.messages_s = 0};
    assert_int_equal(counts.role[MESH_PP].group.dimension_count, 2);
    stage_bound_evaluate(&machine, &counts, &roofline);
    case_near(roofline.stages.messages_s, 9e9 / 450e9, 1e-9);
    assert_true(roofline.ici_s[GPU] == roofline.stages.messages_s && roofline.ici_s[NODE] == 0);
}

/* On the grid, V of a line of 8: a quarter of it crosses the middle link, and a permute crosses
 * each. Tokens that go once to each unit of a level have bytes of their own. A second dimension
 * halves what each member has for others along the first. Around a ring it is half of that. */
static void an_exchange_is_bounded_by_the_middle_of_each_axis(void **state)
{
    (void)state;
    for (uint32_t rings = 0; rings < 2; rings++) {
        struct machine machine = case_machine("tpu-v5p:8x8x8");
        for (uint32_t axis = 0; axis < machine.axis_count; axis++) machine.wrap[axis] = rings == 1;
        double const link = (double)machine.chip.ici_bytes_per_s, ways = 1 + rings;
        struct workload_traffic const none = {.gather_bytes = 0};
        struct workload_traffic traffic = {.group = {{{0, 8, 1, rings == 1, false, "x"}}, 1},
                                           .all_to_all_bytes = 64e9};
        case_near(busy_s(&machine, 0, &traffic, &none), 16e9 / link / ways, 1e-9);
        traffic.crossing_bytes[0] = 32e9;
        case_near(busy_s(&machine, 0, &traffic, &none), 8e9 / link / ways, 1e-9);
        traffic.crossing_bytes[0] = 0;
        traffic.permute_bytes = 1e9;
        case_near(busy_s(&machine, 0, &traffic, &none), (16 / ways + 1) * 1e9 / link, 1e-9);
        traffic.group.dimension[1] = (struct group_dimension){1, 8, 1, rings == 1, false, "y"};
        traffic.group.dimension_count = 2;
        for (uint32_t axis = 0; axis < 2; axis++)
            case_near(busy_s(&machine, axis, &traffic, &none), 2e9 / link / ways, 1e-9);
    }
}

/* The group on x has to stay there; what may go over both axes goes along y instead. */
static void groups_that_may_go_elsewhere_leave_an_axis_to_others(void **state)
{
    (void)state;
    struct machine const machine = case_machine("tpu-v5p:16x16x16");
    struct workload_traffic const near_a = gathers(case_group(&machine, "x"), 16e9);
    struct workload_traffic both = gathers(case_group(&machine, "x,y"), 256e9);
    double const rings = 2 * (double)machine.chip.ici_bytes_per_s;
    for (uint32_t axis = 0; axis < 2; axis++)
        case_near(busy_s(&machine, axis, &near_a, &both), (15e9 + 255e9) / 2 / rings, 1e-9);
    /* No more than there is: 15 parts have to come along each. */
    both.gather_bytes = 16e9;
    case_near(busy_s(&machine, 0, &near_a, &both), (15e9 + 15e9 / 16) / rings, 1e-9);
    case_near(busy_s(&machine, 1, &near_a, &both), 15e9 / rings, 1e-9);
}

/* A slow link may be left to those whose way it is; what all links have together is not more. */
static void links_that_differ_carry_what_all_of_them_have(void **state)
{
    (void)state;
    struct machine machine = case_machine("tpu-v5e:16x16");
    struct workload_traffic const none = {.gather_bytes = 0},
                                  one = gathers(case_group(&machine, "x"), 16e9);
    double const even = busy_s(&machine, 0, &one, &none);
    struct machine_link_override const links[] = {
        {{0, 0, 0}, {1, 0, 0}, machine.chip.ici_bytes_per_s / 2, 0}};
    machine.links = links;
    machine.link_override_count = 1;
    case_near(busy_s(&machine, 0, &one, &none), even / (1 - 0.5 / 512), 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_under_a_leaf_leave_the_cables_above_it_to_others),
        cmocka_unit_test(groups_that_lie_under_one_leaf_leave_it_to_others),
        cmocka_unit_test(a_group_over_leaves_fills_both_tiers),
        cmocka_unit_test(switches_that_add_halve_a_sum),
        cmocka_unit_test(gathers_and_reductions_pass_each_other_at_switches),
        cmocka_unit_test(no_algorithm_moves_the_lower_bound),
        cmocka_unit_test(several_levels_have_a_part_each),
        cmocka_unit_test(a_leaf_that_is_not_full_has_as_many_cables),
        cmocka_unit_test(stages_that_begin_inside_a_leaf_have_cables_of_another),
        cmocka_unit_test(stages_over_two_levels_count_in_the_faster),
        cmocka_unit_test(an_exchange_is_bounded_by_the_middle_of_each_axis),
        cmocka_unit_test(groups_that_may_go_elsewhere_leave_an_axis_to_others),
        cmocka_unit_test(links_that_differ_carry_what_all_of_them_have),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
