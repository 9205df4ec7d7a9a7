/* What collectives take at most where nothing overlaps: as they are played, not as they could be.
 */
#include "sim/base/units.h"
#include "sim/roofline/all_to_all_bound.h"
#include "sim/roofline/roofline_bounds.h"
#include "sim/roofline/stage_bound.h"
#include "tests/support/case.h"

static const double nic = 50e9;

static double gather_s(const struct machine *machine, struct group group, double bytes)
{
    struct workload_plan const plan = {.algorithm = algorithm_read("auto")};
    struct roofline_group const of = {.group = group, .gather_bytes = bytes};
    return roofline_group_slow_s(&plan, machine, &of);
}

static void a_ring_takes_what_its_links_carry(void **state)
{
    (void)state;
    struct machine const machine = case_machine("tpu-v5e:16x16");
    double const link = (double)machine.chip.ici_bytes_per_s;
    case_near(gather_s(&machine, case_group(&machine, "x"), 32e9), 15e9 / link, 1e-9);
    case_near(gather_s(&machine, case_group(&machine, "x,y"), 256e9), 63.75e9 / link, 1e-9);
    struct workload_traffic const traffic = {.group = case_group(&machine, "x,y"),
                                             .all_to_all_bytes = 256e9};
    case_near(all_to_all_slow_s(&machine, &traffic), 2e9 / link, 1e-9);
}

/* Each carries half of the 31 parts, and the other may wait for it. */
static void lines_of_several_axes_may_go_one_after_the_other(void **state)
{
    (void)state;
    struct machine const machine = case_machine("tpu-v5e:4x8");
    double const link = (double)machine.chip.ici_bytes_per_s;
    case_near(gather_s(&machine, case_group(&machine, "x,y"), 32e9), 31e9 / link, 1e-9);
    case_near(gather_s(&machine, case_group(&machine, "y"), 32e9), 28e9 / link, 1e-9);
}

static void bundles_on_a_line_are_stored_and_forwarded(void **state)
{
    (void)state;
    struct machine const machine = case_machine("tpu-v5e:4x8");
    double const link = (double)machine.chip.ici_bytes_per_s;
    struct workload_traffic traffic = {.group = case_group(&machine, "y"),
                                       .all_to_all_bytes = 64e9};
    /* Seven hops of 4 parts on average; the bisection alone would take 16 GB. */
    case_near(all_to_all_s(&machine, &traffic), 16e9 / link, 1e-9);
    case_near(all_to_all_slow_s(&machine, &traffic), 28e9 / link, 1e-9);
    traffic.group = case_group(&machine, "x,y");
    case_near(all_to_all_slow_s(&machine, &traffic), (2 * 1.5 + 2 * 3.5) * 1e9 / link, 1e-9);
}

static void levels_go_one_after_the_other(void **state)
{
    (void)state;
    struct machine const machine = case_machine("h100-sxm:nodes=8");
    double const nvlink = (double)level_bundle_bytes_per_s(&machine.level[0].tier[0]);
    case_near(gather_s(&machine, case_group(&machine, "gpu,node:2"), 16e9),
              1e9 / nic + 14e9 / nvlink, 1e-9);
    struct machine const slices = case_machine("tpu-v5e:4x4,slices=2");
    double const dcn = gather_s(&slices, case_group(&slices, "slice"), 2e9);
    double const grid = gather_s(&slices, case_group(&slices, "x,y"), 32e9);
    case_near(gather_s(&slices, case_group(&slices, "x,y,slice"), 32e9), dcn + grid, 1e-9);
}

/* What goes once to each unit of a level, less the own part; axes of a grid share theirs. */
static void tokens_that_cross_levels_are_sent_at_each(void **state)
{
    (void)state;
    struct machine const node = case_machine("h100-sxm:nodes=8"),
                         grid = case_machine("tpu-v5e:4x8");
    struct workload_traffic traffic = {.group = case_group(&node, "gpu,node:2"),
                                       .all_to_all_bytes = 64e9};
    case_near(all_to_all_sent_bytes(&traffic), 4e9 * 15 / 16, 1e-9);
    traffic.crossing_bytes[0] = 32e9;
    case_near(all_to_all_sent_bytes(&traffic), 2e9 * 7 / 8, 1e-9);
    traffic.crossing_bytes[1] = 16e9;
    case_near(all_to_all_sent_bytes(&traffic), 2e9 * 7 / 8 + 1e9 / 2, 1e-9);
    traffic.group = case_group(&grid, "x,y");
    case_near(all_to_all_sent_bytes(&traffic), (1e9 + 0.5e9) * 31 / 32 / 2, 1e-9);
}

/* Pipelines that lie between each other share the links, and each message takes several. */
static void messages_between_stages_take_every_link_on_their_way(void **state)
{
    (void)state;
    struct machine const machine = case_machine("tpu-v5e:16x16");
    struct chip const *chip = &machine.chip;
    struct workload_counts counts = {.role[MESH_PP] = {.group = case_group(&machine, "x:4")},
                                     .stage.way_bytes = 45e9,
                                     .stage.way_count = 1000};
    for (uint32_t stride = 1; stride <= 4; stride++) {
        int64_t const way_ps = stride * chip->hop_latency_ps + chip->launch.message_ps;
        counts.role[MESH_PP].group.dimension[0].stride = stride;
        case_near(stage_bound_slow_s(&machine, &counts),
                  stride * 45e9 / (double)chip->ici_bytes_per_s + 1000 * units_seconds(way_ps),
                  1e-12);
    }
}

/* Over switches one message after another; on a line to the farthest rank. */
static void gradients_of_copies_go_to_the_farthest_rank(void **state)
{
    (void)state;
    struct machine const machine = case_machine("tpu-v5e:16x16");
    struct chip const *chip = &machine.chip;
    struct workload_counts const counts = {.role[MESH_PP] = {.group = case_group(&machine, "x:4")},
                                           .stage.copy_bytes = 45e9 / 4,
                                           .stage.copy_count = 1000};
    int64_t const way_ps = 3 * chip->hop_latency_ps + chip->launch.message_ps;
    case_near(stage_bound_slow_s(&machine, &counts),
              45e9 / (double)chip->ici_bytes_per_s + 1000 * units_seconds(way_ps), 1e-12);
}

static double copies_s(const struct machine *machine, struct group group)
{
    struct workload_counts const counts = {
        .role[MESH_PP] = {.group = group},
        .stage = {.bytes = 1, .sent_bytes = 1, .copy_bytes = 45e9}};
    struct roofline roofline = {0};
    stage_bound_evaluate(machine, &counts, &roofline);
    return roofline.stages.copies_s;
}

/* On a level the bytes of a mean rank; on a line those of half of the ranks over its middle. */
static void gradients_of_copies_take_the_cables_they_must(void **state)
{
    (void)state;
    struct machine const grid = case_machine("tpu-v5e:4x4");
    struct machine const nodes = case_machine("h100-sxm:nodes=8");
    double const link = (double)grid.chip.ici_bytes_per_s;
    case_near(copies_s(&grid, case_group(&grid, "x")), 2 * 45e9 / link, 1e-12);
    case_near(copies_s(&grid, case_group(&grid, "x:2")), 45e9 / link, 1e-12);
    case_near(copies_s(&nodes, case_group(&nodes, "node:4")), 45e9 / nic, 1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ring_takes_what_its_links_carry),
        cmocka_unit_test(lines_of_several_axes_may_go_one_after_the_other),
        cmocka_unit_test(bundles_on_a_line_are_stored_and_forwarded),
        cmocka_unit_test(levels_go_one_after_the_other),
        cmocka_unit_test(tokens_that_cross_levels_are_sent_at_each),
        cmocka_unit_test(messages_between_stages_take_every_link_on_their_way),
        cmocka_unit_test(gradients_of_copies_go_to_the_farthest_rank),
        cmocka_unit_test(gradients_of_copies_take_the_cables_they_must),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
