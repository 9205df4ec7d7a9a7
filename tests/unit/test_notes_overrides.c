/* Notes of a step made by hand: slow links and chips, the layout, padding, experts. */
#include "sim/base/units.h"
#include "sim/report/notes_layout.h"
#include "sim/report/notes_model.h"
#include "sim/report/notes_overrides.h"
#include "tests/unit/notes_case.h"

static struct notes_overrides overrides(void)
{
    notes_case_again();
    return notes_overrides_build(case_arena, &made.input, &made.analysis, &made.notes);
}

static void a_slow_link_is_named_where_it_is_busier(void **state)
{
    (void)state;
    struct machine_link_override const links[] = {
        {{0, 0, 3}, {0, 0, 0}, UINT64_C(90000000000), 0}, /* As fast as the others. */
        {{0, 1, 0}, {0, 2, 0}, 0, 5000000},               /* Later, but no slower. */
        {{1, 1, 0}, {1, 2, 0}, UINT64_C(45000000000), 0},
    };
    made.machine.links = links;
    made.machine.link_override_count = 3;
    struct trace_link *port = &made.trace.link[2];
    port->busiest_chip = machine_chip_at(&made.machine, links[2].from);
    port->link_count = 5;
    port->busy_ps = TIME_PS_PER_S / 10 * 6;
    port->sum_busy_ps = TIME_PS_PER_S / 10 * 14;
    struct notes_overrides const slow = overrides();
    notes_case_are("the link from (1,1,0) to (1,2,0) has 45.0 GB/s instead of 90.0 GB/s and is "
                   "busy for 600 ms (60.0% of the step), the other y+ links for 20.0% on "
                   "average: the collectives on it go at its pace");
    assert_int_equal(slow.axis_bits, 2);
    assert_false(slow.chip);
    port->sum_busy_ps = port->busy_ps + 4 * (TIME_PS_PER_S / 100 * 54);
    assert_int_equal(overrides().axis_bits, 2);
    port->sum_busy_ps = port->busy_ps + 4 * (TIME_PS_PER_S / 100 * 55);
    assert_int_equal(overrides().axis_bits, 0);
    notes_case_are(NULL);
    port->link_count = 1;
    assert_int_equal(overrides().axis_bits, 0);
    port->link_count = 2;
    port->sum_busy_ps = port->busy_ps;
    assert_int_equal(overrides().axis_bits, 2);
    port->busiest_chip = machine_chip_at(&made.machine, links[1].from);
    assert_int_equal(overrides().axis_bits, 0);
    made.trace.link[5] = *port; /* Downwards along z, from the first link's receiver. */
    made.trace.link[5].busiest_chip = machine_chip_at(&made.machine, links[0].from);
    assert_int_equal(overrides().axis_bits, 0);
}

static void slow_chips_are_named_with_what_they_cost(void **state)
{
    (void)state;
    uint32_t const any = machine_any;
    struct machine_chip_override chips[] = {
        {{0, 0, 0}, 900000, PPM_ONE}, {{1, 2, 3}, 750000, PPM_ONE}, {{1, 2, 0}, 750000, PPM_ONE}};
    case_override_chips(case_arena, &made.machine, chips, 3);
    made.roofline.math_s = 0.5;
    made.roofline.hbm_s = 0.25;
    assert_true(overrides().chip);
    notes_case_are("chip (1,2,3) computes at 75.0% of the rate: its math takes 500 ms by "
                   "formulas, 125 ms longer than at the full rate, and every collective makes "
                   "the other chips wait for it");
    chips[1] = (struct machine_chip_override){{any, 2, any}, PPM_ONE, 500000};
    case_override_chips(case_arena, &made.machine, chips, 2);
    assert_true(overrides().chip);
    notes_case_are("chip (0,0,0) computes at 90.0% of the rate: its math takes 500 ms by "
                   "formulas, 50.0 ms longer than at the full rate, and every collective makes "
                   "the other chips wait for it",
                   "chips (*,2,*) load at 50.0% of the rate: its HBM traffic takes 250 ms by "
                   "formulas, 125 ms longer than at the full rate, and every collective makes "
                   "the other chips wait for it");
    chips[0] = (struct machine_chip_override){{any, any, any}, 500000, PPM_ONE};
    case_override_chips(case_arena, &made.machine, chips, 1);
    assert_false(overrides().chip);
    notes_case_are("chips (*,*,*) compute at 50.0% of the rate: its math takes 500 ms by "
                   "formulas, 250 ms longer than at the full rate");
    chips[0].math_ppm = PPM_ONE;
    assert_false(overrides().chip);
    notes_case_are(NULL);
}

/* In a pipeline what a slow rank has to do is its stage's, which may be given fewer layers. */
static void a_slow_rank_of_a_pipeline_is_set_against_a_mean_one(void **state)
{
    (void)state;
    struct machine_chip_override const chip = {{0, machine_any, 1}, 500000, 250000};
    case_override_chips(case_arena, &made.machine, &chip, 1);
    made.mesh.axis[MESH_PP].size = 2;
    made.roofline.counts.padded_flop = 1e12;
    made.roofline.rates.mean_flop_per_s = 4e12;
    made.roofline.counts.hbm_bytes = (double)made.machine.chip.hbm_bytes_per_s / 8;
    assert_true(overrides().chip);
    notes_case_are(
        "chips (0,*,1) compute at 50.0% of the rate: the math of a mean rank's ops would take "
        "500 ms there, where others take 250 ms; a pipeline goes at the pace of the rank that "
        "takes longest, and \"layout\" gives a slow one fewer layers",
        "chips (0,*,1) load at 25.0% of the rate: HBM traffic of a mean rank's ops would take "
        "500 ms there, where others take 125 ms; a pipeline goes at the pace of the rank that "
        "takes longest, and \"layout\" gives a slow one fewer layers");
}

static void layout(void)
{
    notes_case_again();
    notes_layout_build(case_arena, &made.input, &made.notes);
}

static void the_order_on_a_shared_axis_is_said(void **state)
{
    (void)state;
    struct mesh *mesh = &made.mesh;
    mesh->keys_differ_on = 1;
    mesh->order_count = 3;
    enum mesh_role const order[] = {MESH_TP, MESH_FSDP, MESH_DP};
    for (uint32_t i = 0; i < 3; i++) {
        mesh->order[i] = order[i];
        mesh->named[i] = order[2 - i];
        mesh->axis[order[i]].part_count = 1;
        mesh->axis[order[i]].part[0] = (struct mesh_part){.axis = 1, .size = 2, .stride = 1};
    }
    mesh->axis[MESH_FSDP].part[0].size = 1;
    mesh->axis[MESH_FSDP].part[1] = (struct mesh_part){.axis = 0, .size = 4, .stride = 1};
    mesh->axis[MESH_FSDP].part_count = 2;
    layout();
    notes_case_are("on y the mesh axes lie in the order tp, dp, the innermost first, "
                   "whatever the order of the file's keys, which is dp, tp; \"order\": "
                   "[\"dp\", \"fsdp\", \"tp\"] in the mesh keeps the order of the keys");
}

static void skew_without_experts_apart_changes_nothing(void **state)
{
    (void)state;
    made.plan.routing.skew_ppm = PPM_ONE / 2 * 3;
    layout();
    notes_case_are("routing_skew 1.5 changes nothing: without ep each rank has all experts and "
                   "computes all rows of its own tokens, and without a capacity_factor no expert "
                   "lacks room");
    made.plan.routing.capacity_ppm = 1;
    layout();
    notes_case_are(NULL);
    made.plan.routing.capacity_ppm = 0;
    made.mesh.axis[MESH_EP].size = 2;
    layout();
    notes_case_are(NULL);
}

static void all_padding_is_said(void **state)
{
    (void)state;
    struct workload_counts *counts = &made.roofline.counts;
    counts->paddings.of[0] = (struct padding){"attention heads", "tp", 16, 40, 48};
    counts->paddings.of[1] = (struct padding){"flat parameters", "fsdp", 16, 1000000, 1000001};
    counts->paddings.of[2] = (struct padding){"vocabulary", "fsdp", 8, 10000, 10001};
    counts->paddings.count = 3;
    counts->matmul_flop = 200;
    counts->spare.padding = 5;
    layout();
    notes_case_are(
        "padded, so that all ranks are alike: attention heads from 40 to 48 over 16 "
        "ranks of tp (20.00% more), flat parameters from 1000000 to 1000001 over 16 "
        "ranks of fsdp (less than 0.01% more), vocabulary from 10000 to 10001 over 8 ranks of fsdp "
        "(0.01% more); that is 2.50% of the executed FLOP, which HFU counts and MFU "
        "does not");
    made.plan.remat = GRAPH_REMAT_BLOCK;
    counts->paddings.count = 1;
    layout();
    notes_case_are("padded, so that all ranks are alike: attention heads from 40 to 48 over 16 "
                   "ranks of tp (20.00% more); that is 2.50% of the executed FLOP without what is "
                   "recomputed, which HFU counts and MFU does not");
    counts->spare.padding = 0;
    layout();
    notes_case_are("padded, so that all ranks are alike: attention heads from 40 to 48 over 16 "
                   "ranks of tp (20.00% more)");
    counts->paddings.count = 0;
    layout();
    notes_case_are(NULL);
}

static void model(void)
{
    notes_case_again();
    case_ok(notes_model_build(case_arena, &made.input, &made.notes, &case_error));
}

static void experts_say_what_is_dropped_or_uneven(void **state)
{
    (void)state;
    struct workload_counts *counts = &made.roofline.counts;
    made.roofline.flop.executed = 6400;
    counts->spare.uneven = 5; /* Of each of 64 chips. */
    model();
    notes_case_are("experts compute whole rows: rounding up the even share of each is "
                   "5.0% of the executed FLOP, which HFU counts and MFU does not");
    made.plan.routing.skew_ppm = PPM_ONE / 4; /* Without ep nothing is drawn. */
    model();
    notes_case_are("experts compute whole rows: rounding up the even share of each is "
                   "5.0% of the executed FLOP, which HFU counts and MFU does not");
    made.mesh.axis[MESH_EP].size = 2;
    model();
    notes_case_are("routing_skew 0.25: the combine waits for the most loaded rank of ep, so every "
                   "rank is charged the rows of that rank: 5.0% of the executed FLOP exceed the "
                   "ranks' own rows, and HFU counts them");
    made.plan.routing.capacity_ppm = PPM_ONE / 4 * 5;
    counts->rows.dropped = 3;
    counts->rows.assigned = 200;
    model();
    notes_case_are("experts have room for 1.25 times their even rows: 3 of 200 tokens' assignments "
                   "are dropped (1.50%), which MFU does not count; rows that stay empty are 5.0% "
                   "of the executed FLOP, which HFU counts");
    made.plan.routing.capacity_ppm = 0;
    counts->spare.uneven = 0;
    model();
    notes_case_are(NULL);
    made.plan.routing.skew_ppm = 0;
    counts->spare.uneven = 0.05; /* 0.05 %. */
    model();
    notes_case_are(NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, notes_case_up, case_arena_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_slow_link_is_named_where_it_is_busier),
        TEST(slow_chips_are_named_with_what_they_cost),
        TEST(a_slow_rank_of_a_pipeline_is_set_against_a_mean_one),
        TEST(the_order_on_a_shared_axis_is_said),
        TEST(skew_without_experts_apart_changes_nothing),
        TEST(all_padding_is_said),
        TEST(experts_say_what_is_dropped_or_uneven),
    };
    return cmocka_run_group_tests_name("notes of overrides", tests, NULL, NULL);
}
