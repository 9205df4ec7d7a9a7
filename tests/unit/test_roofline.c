/* Rooflines from counts made by hand: the book's figures, and what a bound must never forget. */
#include <string.h>

#include "sim/roofline/roofline.h"
#include "tests/support/counts.h"
#include "tests/unit/roofline_case.h"

static void fsdp_crossings_are_the_books_with_their_finite_forms(void **state)
{
    static const struct {
        const char *shape, *fsdp;
        double book, exact, crossing;
    } cases[] = {
        {"16", "x", 2550, 2390.6, 2397},
        {"16x16", "x y", 1275, 1270, 1284},
        {"16x16x16", "x y z", 850, 849.8, 870},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct step *step = step_of(cases[i].shape, true, cases[i].fsdp, NULL);
        forward_counts(step, 3000);
        case_near(step->roofline.rules.fsdp_critical_tokens, cases[i].book, 1e-9);
        case_near(step->roofline.rules.fsdp_exact_tokens, cases[i].exact, 1e-4);
        case_near(step->roofline.rules.fsdp_crossing_tokens, cases[i].crossing, 5e-4);
        assert_string_equal(step->roofline.bound.by, "mxu");
        /* At that many tokens the two times are the same. */
        forward_counts(step, cases[i].exact);
        case_near(step->roofline.math_s, step->roofline.group[0].time_s, 1e-4);
        forward_counts(step, cases[i].exact * 0.9);
        assert_string_equal(step->roofline.bound.by, "ici");
        step_free(step);
    }
}

/* What follows from the graph of the model's layers. */
static void blocks_count(struct step *step)
{
    struct workload_counts counted;
    counts_make(&step->made.plan, &step->made.machine, &step->made.mesh, &counted);
    step->counts.tp.overlaps = counted.tp.overlaps;
    step->counts.tp.column_flop = counted.tp.column_flop;
    step->counts.tp.attention = counted.tp.attention;
    step->counts.tp.mlp = counted.tp.mlp;
}

static void tp_is_bound_by_its_width_at_any_batch(void **state)
{
    (void)state;
    struct step *step = step_of("16", true, NULL, "x");
    blocks_count(step);
    for (double tokens = 1000; tokens < 1e6; tokens *= 10) {
        forward_counts(step, tokens);
        case_near(step->roofline.rules.tp_critical_width, 16 * 2550, 1e-9);
        case_near(step->roofline.rules.tp_exact_width, 15 * 2550, 1e-9);
        case_near(step->roofline.rules.tp_mlp_width, 32768, 1e-9);
        case_near(step->roofline.ici_s[0] / step->roofline.math_s, 15.0 * 2550 / 32768, 1e-9);
        assert_string_equal(step->roofline.bound.by, "ici");
        assert_int_equal(step->roofline.bound.axis, 0);
        case_near(step->roofline.latency_s, 16 * 8e-6, 1e-9);
    }
    step_free(step);
}

static void attention_is_narrower_than_a_gated_mlp(void **state)
{
    (void)state;
    struct step *step = step_of("16x16x16", true, "x y", "z");
    step->made.plan.model = case_llama_70b;
    step->made.plan.batch_tokens = 4194304;
    step->counts.heads.kv_held = 16;
    step->counts.heads.kv_padded = 8;
    blocks_count(step);
    forward_counts(step, 1024);
    struct roofline_rules const *rules = &step->roofline.rules;
    case_near(rules->tp_mlp_width, 28672 * 1.5, 1e-9);
    /* 64 heads and 16 of K (each of 8 on two chips) of 128, and T·N·H/D. */
    case_near(rules->tp_attention_width, (64 + 16) * 128 + 4096, 1e-9);
    step->made.plan.attention.mask = WORKLOAD_ATTENTION_CAUSAL;
    blocks_count(step);
    forward_counts(step, 1024);
    case_near(rules->tp_attention_width, (64 + 16) * 128 + 4097 / 2.0, 1e-9);
    /* K and V of 8 heads that two chips hold are computed again, forward and twice backward. */
    double const tokens = 1024.0 * 4096;
    struct workload_counts counts;
    counts_make(&step->made.plan, &step->made.machine, &step->made.mesh, &counts);
    case_near(counts.spare.duplicated * step->made.machine.chip_count,
              3 * 2 * tokens * 8192 * 2 * 128 * 8 * 80, 1e-9);
    step_free(step);
}

static void the_best_mix_is_the_books(void **state)
{
    (void)state;
    struct step *step = step_of("4x4x4", true, "x y", "z");
    step->made.plan.batch_tokens = 48000; /* 750 on each of 64 chips. */
    blocks_count(step);
    forward_counts(step, 750);
    case_near(step->roofline.rules.mixed_best_ranks, 13.69, 1e-3);
    case_near(step->roofline.rules.mixed_critical_tokens, 2550.0 * 2550 / (2 * 32768), 1e-9);
    case_near(step->roofline.rules.fsdp_critical_tokens, 2550.0 / (2 * 4), 1e-9); /* 319 */
    case_near(step->roofline.rules.fsdp_exact_tokens, 2550.0 / 8 * 15 / 16, 1e-9);
    step_free(step);
}

/* Two-byte gradients of 16 replicas on one ring: an AllReduce of all needs C/W tokens a chip, as a
 * gather needs of a forward pass, and ZeRO-2's reduction is half of one for each microbatch. */
static void the_dp_rule_counts_the_reductions_of_a_step(void **state)
{
    static const struct {
        uint32_t zero, accumulate;
        enum format gradients;
        double sums;
    } cases[] = {
        {0, 8, FORMAT_BF16, 1},   {1, 8, FORMAT_BF16, 1},
        {2, 1, FORMAT_BF16, 1},   {2, 8, FORMAT_BF16, (8 + 1) / 2.0},
        {3, 8, FORMAT_BF16, 8},   {0, 8, FORMAT_FP32, 2},
        {2, 8, FORMAT_FP32, 8.5}, {3, 8, FORMAT_FP32, 12},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct step *step = step_of("16", true, "x", NULL);
        struct workload_plan *plan = &step->made.plan;
        struct mesh_axis *fsdp = &step->made.mesh.axis[MESH_FSDP];
        plan->zero = cases[i].zero;
        plan->accumulate = cases[i].accumulate;
        plan->formats.gradients = cases[i].gradients;
        step->counts.role[MESH_DP] = (struct workload_traffic){
            .group = fsdp->group, .scatter_bytes = 1e9, .scatter_count = 1};
        fsdp->size = 1;
        forward_counts(step, 3000);
        case_near(step->roofline.rules.dp_critical_tokens, 2550 * cases[i].sums, 1e-9);
        case_near(step->roofline.rules.dp_exact_tokens, 2550 * cases[i].sums * 15 / 16, 1e-9);
        step_free(step);
    }
}

static void a_line_has_half_a_rings_bandwidth_and_more_hops(void **state)
{
    (void)state;
    struct step *ring = step_of("16", true, "x", NULL), *line = step_of("16", false, "x", NULL);
    forward_counts(ring, 3000);
    forward_counts(line, 3000);
    case_near(line->roofline.group[0].time_s, 2 * ring->roofline.group[0].time_s, 1e-9);
    case_near(ring->roofline.group[0].hop_s, 8e-6, 1e-9);
    case_near(line->roofline.group[0].hop_s, 15e-6, 1e-9);
    case_near(line->roofline.group[0].axes, 0.5, 1e-9);
    line->made.plan.algorithm = algorithm_read("ring-one-way");
    ring->made.plan.algorithm = algorithm_read("ring-one-way");
    forward_counts(ring, 3000);
    case_near(ring->roofline.group[0].time_s, line->roofline.group[0].time_s, 1e-9);
    case_near(ring->roofline.group[0].hop_s, 15e-6, 1e-9);
    step_free(ring);
    step_free(line);
}

static void a_gather_and_a_reduction_fill_different_links_of_a_line(void **state)
{
    (void)state;
    struct step *step = step_of("8", false, "x", NULL);
    struct workload_counts counts = {
        .role[MESH_FSDP] = {.group = step->made.mesh.axis[MESH_FSDP].group,
                            .gather_bytes = 16e9,
                            .scatter_bytes = 8e9,
                            .gather_count = 2,
                            .scatter_count = 1},
        .padded_flop = 1};
    struct roofline roofline;
    roofline_from_counts(&step->made.plan, &step->made.machine, &step->made.mesh, &counts,
                         &roofline);
    /* The last link carries 7 of 8 chunks of both gathers and 1 of the reduction's. */
    case_near(roofline.ici_s[0], (7 * 2e9 + 1e9) / 90e9, 1e-9);
    case_near(roofline.group[0].time_s, 21e9 / 90e9, 1e-9); /* One after the other. */
    step_free(step);
}

/* A sum that everybody gets is a reduction and a gather: no link carries less or more. */
static void an_all_reduce_fills_an_axis_as_its_two_halves_do(void **state)
{
    (void)state;
    for (uint32_t rings = 0; rings < 2; rings++) {
        struct step *step = step_of("8", rings == 1, "x", NULL);
        struct workload_counts counts = {
            .role[MESH_FSDP] = {.group = step->made.mesh.axis[MESH_FSDP].group,
                                .all_reduce_bytes = 16e9,
                                .all_reduce_count = 1},
            .padded_flop = 1};
        struct roofline whole, halves;
        roofline_from_counts(&step->made.plan, &step->made.machine, &step->made.mesh, &counts,
                             &whole);
        counts.role[MESH_FSDP].all_reduce_bytes = 0;
        counts.role[MESH_FSDP].all_reduce_count = 0;
        counts.role[MESH_FSDP].gather_bytes = counts.role[MESH_FSDP].scatter_bytes = 16e9;
        counts.role[MESH_FSDP].gather_count = counts.role[MESH_FSDP].scatter_count = 1;
        roofline_from_counts(&step->made.plan, &step->made.machine, &step->made.mesh, &counts,
                             &halves);
        /* A line's last link carries 7 of 8 chunks of one half and 1 of the other. */
        case_near(whole.ici_s[0], rings == 1 ? 28e9 / 180e9 : 16e9 / 90e9, 1e-9);
        case_near(whole.ici_s[0], halves.ici_s[0], 1e-12);
        case_near(whole.group[0].time_s, halves.group[0].time_s, 1e-12);
        step_free(step);
    }
}

static void tp_hides_behind_wide_matmuls_only(void **state)
{
    (void)state;
    struct step *step = step_of("16x16x16", true, "x y", "z");
    step->made.plan.model = case_llama_70b;
    step->made.plan.batch_tokens = 4194304;
    step->made.plan.collective_matmul = true;
    blocks_count(step);
    forward_counts(step, 1024);
    double excess = 0;
    assert_int_equal(step->roofline.overlap_count, 8);
    for (uint32_t i = 0; i < 8; i++) {
        const struct roofline_overlap *overlap = &step->roofline.overlap[i];
        /* At the exact width the two times are the same. */
        case_near(overlap->math_s / overlap->link_s, overlap->width / (15 * 2550), 1e-9);
        bool const narrow =
            strncmp(overlap->name, "attention", 9) == 0 || strcmp(overlap->name, "mlp.Out") == 0;
        assert_int_equal(narrow, overlap->math_s < overlap->link_s);
        bool const again = overlap->kind == COLLECTIVE_ALL_GATHER && strstr(overlap->name, ".In");
        assert_int_equal(overlap->count, again ? 160 : 80); /* In is kept in shards. */
        if (narrow) excess += (double)overlap->count * (overlap->link_s - overlap->math_s);
    }
    case_near(step->roofline.tp_excess_s, excess, 1e-9);
    case_near(step->roofline.critical_s, step->roofline.math_s + excess + step->roofline.latency_s,
              1e-9);
    step->made.plan.collective_matmul = false;
    forward_counts(step, 1024);
    case_near(step->roofline.tp_excess_s, roofline_group_find(&step->roofline, MESH_TP)->time_s,
              1e-9);
    step_free(step);
}

static void hbm_pays_for_both_ends_of_a_gather_and_the_shard_of_a_reduction(void **state)
{
    (void)state;
    struct step *step = step_of("4", true, NULL, "x");
    struct workload_counts counts = {.role[MESH_TP] = {.group = step->made.mesh.axis[MESH_TP].group,
                                                       .gather_bytes = 4e9,
                                                       .gather_count = 1},
                                     .padded_flop = 1};
    struct roofline roofline;
    double const rate = 2.8e12;
    roofline_from_counts(&step->made.plan, &step->made.machine, &step->made.mesh, &counts,
                         &roofline);
    case_near(roofline.hbm_s, 6e9 / rate, 1e-9); /* 3 GB leave and 3 GB arrive. */
    counts.role[MESH_TP].gather_bytes = 0;
    counts.role[MESH_TP].scatter_bytes = 4e9;
    roofline_from_counts(&step->made.plan, &step->made.machine, &step->made.mesh, &counts,
                         &roofline);
    case_near(roofline.hbm_s, 4e9 / rate, 1e-9); /* 3 GB are read and 1 GB is written. */
    counts.role[MESH_TP].scatter_bytes = 0;
    counts.role[MESH_TP].all_reduce_bytes = 4e9;
    roofline_from_counts(&step->made.plan, &step->made.machine, &step->made.mesh, &counts,
                         &roofline);
    case_near(roofline.hbm_s, 10e9 / rate, 1e-9);
    case_near(roofline.group[0].time_s, 6e9 / 180e9, 1e-9); /* Twice 3 GB, both ways round. */
    step_free(step);
}

static void overheads_lengthen_the_upper_bound_alone(void **state)
{
    (void)state;
    struct step *step = step_of("4x4", true, "x", "y");
    step->counts.ops.count = 1000;
    forward_counts(step, 3000);
    struct roofline const even = step->roofline;
    step->made.machine.chip.launch.op_ps = 2000000;
    forward_counts(step, 3000);
    case_near(step->roofline.upper_s - even.upper_s, 2e-3, 1e-6);
    case_near(step->roofline.lower_s, even.lower_s, 1e-12);
    step_free(step);
}

static double upper_of(const struct step *step, const struct workload_counts *counts)
{
    struct roofline roofline;
    roofline_from_counts(&step->made.plan, &step->made.machine, &step->made.mesh, counts,
                         &roofline);
    return roofline.upper_s;
}

/* It goes on beside the math of its op; chips whose math is faster may wait for all of it. */
static void the_upper_bound_has_what_vmem_takes_longer(void **state)
{
    (void)state;
    struct step *step = step_of("1", true, NULL, NULL);
    double const rate = (double)step->made.machine.chip.vmem_bytes_per_s;
    struct workload_counts counts = step->counts;
    counts.scarce = (struct workload_scarce){0};
    double const without_s = upper_of(step, &counts);
    counts.scarce.vmem_bytes = 3e-3 * rate;
    counts.scarce.vmem_longer_bytes = 2e-3 * rate;
    case_near(upper_of(step, &counts) - without_s, 2e-3, 1e-6);
    const struct machine_chip_override fast = {.math_ppm = 2 * PPM_ONE, .hbm_ppm = PPM_ONE};
    case_override_chips(step->made.arena, &step->made.machine, &fast, 1);
    counts.scarce = (struct workload_scarce){0};
    double const fast_s = upper_of(step, &counts);
    counts.scarce.vmem_bytes = 3e-3 * rate;
    counts.scarce.vmem_longer_bytes = 2e-3 * rate;
    case_near(upper_of(step, &counts) - fast_s, 3e-3, 1e-6);
    step_free(step);
}

static void the_bounds_are_the_largest_and_the_sum_of_the_parts(void **state)
{
    (void)state;
    struct step *step = step_of("16x16x16", true, "x y", "z");
    forward_counts(step, 700);
    struct roofline const *roofline = &step->roofline;
    double most = roofline->math_s;
    if (roofline->vector_s > most) most = roofline->vector_s;
    if (roofline->hbm_s > most) most = roofline->hbm_s;
    for (uint32_t i = 0; i < 3; i++)
        if (roofline->ici_s[i] > most) most = roofline->ici_s[i];
    case_near(roofline->lower_s, most, 1e-12);
    double sum = roofline->math_s + roofline->vector_s + roofline->hbm_s;
    assert_int_equal(roofline->group_count, 2);
    for (uint32_t i = 0; i < roofline->group_count; i++)
        sum += roofline->group[i].time_s + roofline->group[i].hops_total_s;
    case_near(roofline->upper_s, sum, 1e-12);
    assert_true(roofline->upper_s > roofline->lower_s);
    /* x and y carry half of the gathers each, at the same time. */
    case_near(roofline->ici_s[0], roofline->ici_s[1], 1e-12);
    case_near(roofline->ici_s[0], roofline_group_find(roofline, MESH_FSDP)->time_s, 1e-12);
    assert_null(roofline_group_find(roofline, MESH_DP));
    case_near(roofline->ideal_s, roofline->flop.useful / (4096 * 459e12), 1e-12);
    step_free(step);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fsdp_crossings_are_the_books_with_their_finite_forms),
        cmocka_unit_test(tp_is_bound_by_its_width_at_any_batch),
        cmocka_unit_test(attention_is_narrower_than_a_gated_mlp),
        cmocka_unit_test(the_best_mix_is_the_books),
        cmocka_unit_test(the_dp_rule_counts_the_reductions_of_a_step),
        cmocka_unit_test(a_line_has_half_a_rings_bandwidth_and_more_hops),
        cmocka_unit_test(a_gather_and_a_reduction_fill_different_links_of_a_line),
        cmocka_unit_test(an_all_reduce_fills_an_axis_as_its_two_halves_do),
        cmocka_unit_test(tp_hides_behind_wide_matmuls_only),
        cmocka_unit_test(hbm_pays_for_both_ends_of_a_gather_and_the_shard_of_a_reduction),
        cmocka_unit_test(overheads_lengthen_the_upper_bound_alone),
        cmocka_unit_test(the_upper_bound_has_what_vmem_takes_longer),
        cmocka_unit_test(the_bounds_are_the_largest_and_the_sum_of_the_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
