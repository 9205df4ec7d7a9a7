/* Rooflines from counts made by hand: the book's figures, and what a bound must never forget. */
#include <stdlib.h>
#include <string.h>

#include "sim/roofline/gather_form.h"
#include "sim/roofline/roofline.h"
#include "tests/support/case.h"
#include "tests/support/counts.h"
#include "tests/unit/workload_case.h"

struct step {
    struct workload_case made;
    struct workload_counts counts;
    struct roofline roofline;
};

/* A machine of rings (or lines), with an fsdp and a tp axis on it, either of them NULL. */
static struct step *step_of(const char *shape, bool rings, const char *fsdp, const char *tp)
{
    struct step *step = calloc(1, sizeof *step);
    assert_non_null(step);
    assert_int_equal(case_build(&step->made, &case_mlp, shape, NULL, fsdp, tp), STATUS_OK);
    for (uint32_t i = 0; i < step->made.machine.axis_count; i++) step->made.machine.wrap[i] = rings;
    const char *const texts[] = {fsdp, tp};
    struct mesh_plan plan = {0};
    for (uint32_t i = 0; i < 2; i++) {
        if (texts[i] == NULL) continue;
        struct mesh_axis_plan *axis = &plan.axis[plan.axis_count++];
        axis->role = plan.order[plan.order_count++] = i == 0 ? MESH_FSDP : MESH_TP;
        char *text = arena_text(step->made.arena, texts[i]);
        for (char *rest = NULL, *part = strtok_r(text, " ", &rest); part != NULL;
             part = strtok_r(NULL, " ", &rest))
            axis->part[axis->part_count++] = part;
    }
    assert_int_equal(mesh_build(step->made.arena, &plan, &step->made.machine, &step->made.mesh,
                                &step->made.error),
                     STATUS_OK);
    return step;
}

static void step_free(struct step *step)
{
    case_free(&step->made);
    free(step);
}

/* The forward pass of the bare MLP: each of 8 layers' two matrices is gathered over fsdp, and over
 * tp the input is gathered and the output reduced. */
static void forward_counts(struct step *step, double tokens_per_chip)
{
    struct workload_counts *counts = &step->counts;
    const struct mesh *mesh = &step->made.mesh;
    double const layers = 8, width = 8192, mlp = 32768;
    double const tp = mesh->axis[MESH_TP].size, fsdp = mesh->axis[MESH_FSDP].size;
    double const chips = tp * fsdp, array = 2 * tokens_per_chip * chips / fsdp * width;
    uint32_t const microbatches = step->made.plan.accumulate;
    step->made.plan.batch_tokens = (uint64_t)(tokens_per_chip * chips + 0.5);
    counts->weights = (struct workload_weights){
        .gathers = microbatches, .reductions = step->made.plan.zero <= 1 ? 1 : microbatches};
    counts->matmul_flop = 4 * tokens_per_chip * width * mlp * layers;
    counts->padded_flop = counts->matmul_useful = counts->matmul_flop;
    counts->role[MESH_FSDP].group = mesh->axis[MESH_FSDP].group;
    counts->role[MESH_FSDP].gather_bytes = 2 * 2 * width * mlp / tp * layers;
    counts->role[MESH_FSDP].gather_count = fsdp > 1 ? 16 : 0;
    struct workload_traffic *of_tp = &counts->role[MESH_TP];
    of_tp->group = mesh->axis[MESH_TP].group;
    of_tp->gather_bytes = of_tp->scatter_bytes = array * layers;
    of_tp->gather_count = of_tp->scatter_count = tp > 1 ? 8 : 0;
    of_tp->critical_passes = tp > 1 ? 16 : 0;
    roofline_from_counts(&step->made.plan, &step->made.machine, mesh, counts, &step->roofline);
}

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
    case_near(counts.spare.copies * step->made.machine.chip_count,
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
    line->made.plan.algorithm = "ring-one-way";
    ring->made.plan.algorithm = "ring-one-way";
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
        gather_form_by(&step->made.machine, group, step->made.plan.algorithm);
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

static void overheads_lengthen_the_upper_bound_alone(void **state)
{
    (void)state;
    struct step *step = step_of("4x4", true, "x", "y");
    step->counts.compute_count = 1000;
    forward_counts(step, 3000);
    struct roofline const even = step->roofline;
    step->made.machine.chip.launch.op_ps = 2000000;
    forward_counts(step, 3000);
    case_near(step->roofline.upper_s - even.upper_s, 2e-3, 1e-6);
    case_near(step->roofline.lower_s, even.lower_s, 1e-12);
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
        cmocka_unit_test(strided_parts_share_the_links_between_their_members),
        cmocka_unit_test(a_slow_axis_decides_and_the_others_wait_for_it),
        cmocka_unit_test(hbm_pays_for_both_ends_of_a_gather_and_the_shard_of_a_reduction),
        cmocka_unit_test(the_slowest_chip_bounds_the_step),
        cmocka_unit_test(a_slow_link_delays_only_rings_that_cross_it),
        cmocka_unit_test(chips_that_are_all_faster_shorten_the_bound),
        cmocka_unit_test(overheads_lengthen_the_upper_bound_alone),
        cmocka_unit_test(the_bounds_are_the_largest_and_the_sum_of_the_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
