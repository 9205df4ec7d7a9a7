/* Counts against the oracle and against the sums over lowered programs, of layers with experts:
 * routing that is even or drawn, latent attention, modules that predict further tokens. */
#include "sim/collective/ragged.h"
#include "sim/roofline/roofline_flop.h"
#include "tests/support/counts.h"
#include "tests/support/sampling.h"
#include "tests/unit/counts_case.h"
#include "tests/unit/drawn_case.h"

/* What an exchange that is drawn sends along each dimension, so often. */
static void exchange_add(const struct plan *plan, double times, double sent[GROUP_DIMENSIONS_MAX])
{
    for (uint32_t i = 0; plan->ragged_units != NULL && i < plan->item_count; i++)
        sent[plan->item[i].dimension] +=
            times * (double)ragged_item_load(plan, &plan->item[i]).sent_bytes;
}

/* The same by the tally and in the plans, over the step. */
static void exchanges_near(const char *name, const struct workload_case *made)
{
    struct workload_counts counts;
    double sent[GROUP_DIMENSIONS_MAX] = {0};
    counts_make(&made->plan, &made->machine, &made->mesh, &counts);
    const struct workload_traffic *traffic = &counts.role[MESH_EP];
    for (uint32_t t = 0; t < made->program.template_count; t++)
        for (uint32_t i = 0; i < made->program.templates[t].op_count; i++) {
            const struct program_op *op = &made->program.templates[t].op[i];
            if (op->kind != PROGRAM_OP_COLLECTIVE) continue;
            exchange_add(&made->program.plans[op->index], (double)case_repeats(&made->program, t),
                         sent);
        }
    /* As V each sum is rounded down to a token. */
    double const token = (double)format_bytes(FORMAT_BF16, made->plan.model.width);
    double const slack = (double)traffic->all_to_all_count * (token + 1);
    for (uint32_t d = 0; made->plan.routing.skew_ppm != 0 && d < traffic->group.dimension_count;
         d++) {
        /* On a grid all is sent at once, and the bound is a little below. */
        bool const grid = !traffic->group.dimension[d].switched;
        double const size =
            grid ? (double)group_rank_count(&traffic->group) : traffic->group.dimension[d].size;
        double const counted = traffic->crossing_bytes[d] * (size - 1) / size;
        if (grid) sent[d] = sent[0];
        double const less = grid ? slack + sent[d] / 10 : slack;
        if (counted > sent[d] + slack || counted < sent[d] - less || sent[d] <= 0)
            fail_msg("%s: %.9g bytes sent along a dimension by formula and %.9g in the plans", name,
                     counted, sent[d]);
    }
}

/* Copies of a program, each way. */
static void copies_near(const char *name, const struct workload_case *made,
                        const struct workload_counts *counts)
{
    double bytes[2] = {0};
    uint64_t count = 0;
    for (uint32_t t = 0; t < made->program.template_count; t++)
        for (uint32_t i = 0; i < made->program.templates[t].op_count; i++) {
            const struct program_op *op = &made->program.templates[t].op[i];
            if (op->kind != PROGRAM_OP_COPY) continue;
            const struct program_copy *copy = &made->program.copies[op->index];
            bytes[copy->to_host] +=
                (double)case_repeats(&made->program, t) * (double)copy->size_bytes;
            count += case_repeats(&made->program, t);
        }
    double const counted = counts->host.moment_bytes + counts->host.activation_bytes;
    assert_true(counted > 0);
    near(name, "loaded bytes", counted, bytes[0]);
    near(name, "stored bytes", counted, bytes[1]);
    assert_int_equal(counts->host_copy_count, count);
}

static void formulas_and_programs_agree_on_experts(void **state)
{
    (void)state;
    uint32_t walked = 0, place = 0;
    for (uint32_t p = 0; p < DRAWN_EXPERTS; p++) {
        if ((drawn_experts[p].walks & DRAWN_ROUTED) == 0) continue;
        for (uint32_t variant = 0; variant < 72; variant++) {
            struct workload_case made;
            char name[96];
            if (sampling_skips(&walked)) continue;
            (void)snprintf(name, sizeof name, "experts %u, variant %u", place, variant);
            drawn_build_nodes(&made, &drawn_experts[p]);
            drawn_vary_experts(&made, &drawn_experts[p], variant);
            made.plan.model.experts.shared = variant % 3;
            made.plan.model.experts.biased = made.plan.model.experts.router_biased = variant % 5;
            made.plan.model.biases.o = false;
            made.plan.model.attends.sinks = true;
            made.plan.routing.capacity_ppm = variant % 7 == 0    ? 1100000
                                             : variant % 11 == 0 ? 700000
                                                                 : 0;
            if (variant % (drawn_experts[p].nodes != 0 ? 5 : 20) < 2) {
                made.plan.batch_tokens = 1 << 15; /* Each of them is drawn. */
                made.plan.sequence_length = 512;
                made.plan.routing.skew_ppm = variant % 5 == 0 ? 400000 : 1000000;
                made.plan.routing.seed = variant;
            }
            compare_kept(name, &made);
            exchanges_near(name, &made);
            case_free(&made);
        }
        place++;
    }
}

/* DeepSeek's layers, smaller: what is split over tp, and what all of its ranks do alike; with as
 * many as three modules that predict further tokens. */
static void formulas_and_programs_agree_on_latent_attention(void **state)
{
    uint32_t walked = 0, place = 0;
    (void)state;
    for (uint32_t p = 0; p < DRAWN_EXPERTS; p++) {
        if ((drawn_experts[p].walks & DRAWN_MLA) == 0) continue;
        for (uint32_t variant = 0; variant < 72; variant++) {
            struct workload_case made;
            char name[96];
            if (sampling_skips_watched(&walked)) continue;
            (void)snprintf(name, sizeof name, "latent attention %u, variant %u", place, variant);
            drawn_build_nodes(&made, &drawn_experts[p]);
            drawn_vary_experts(&made, &drawn_experts[p], variant);
            drawn_set_mla(&made.plan.model);
            drawn_set_modules(&made.plan.model, variant);
            compare_kept(name, &made);
            case_free(&made);
        }
        place++;
    }
}

/* Ranks of tp that do not divide D: what the program sends is what the graph and the formulas have.
 * A token that is drawn has a whole number of bytes on each of them. */
static void exchanges_of_uneven_parts_are_as_counted(void **state)
{
    static const char *const parts[MESH_ROLE_COUNT] = {[MESH_TP] = "x", [MESH_EP] = "y"};
    (void)state;
    for (uint32_t drawn = 0; drawn < 2; drawn++) {
        struct workload_case made;
        struct workload_counts counts;
        uint32_t exchanges = 0;
        if (case_build_roles(&made, &drawn_small_experts, "7x2", parts) != STATUS_OK)
            fail_msg("%s", made.error.message);
        made.plan.batch_tokens = 2 * 7 * 1024;
        made.plan.sequence_length = 1024;
        made.plan.activations = WORKLOAD_ACTIVATIONS_TOKENS;
        made.plan.routing.skew_ppm = drawn * PPM_ONE;
        if (case_lower(&made) != STATUS_OK) fail_msg("%s", made.error.message);
        counts_make(&made.plan, &made.machine, &made.mesh, &counts);
        const struct workload_traffic *traffic = &counts.role[MESH_EP];
        for (uint32_t i = 0; i < made.program.plan_count; i++) {
            const struct plan *plan = &made.program.plans[i];
            if (plan->kind != COLLECTIVE_ALL_TO_ALL) continue;
            exchanges++;
            if (drawn != 0)
                assert_int_equal(plan->ragged.token_bytes, units_ceil_divide(2 * 2048, 7));
            else
                near("uneven parts", "an exchange",
                     traffic->all_to_all_bytes / (double)traffic->all_to_all_count,
                     (double)plan->size_bytes);
        }
        assert_true(exchanges != 0);
        case_free(&made);
    }
}

/* Moments and activations on the host: of experts' layers, and of layers without before them, or
 * arrays that lists name. Some compute shared experts before the router. */
static void formulas_and_programs_agree_on_what_lies_on_the_host(void **state)
{
    static const enum workload_offload offloads[] = {
        WORKLOAD_OFFLOAD_OPTIMIZER, WORKLOAD_OFFLOAD_ACTIVATIONS, WORKLOAD_OFFLOAD_BOTH,
        WORKLOAD_OFFLOAD_OPTIMIZER, WORKLOAD_OFFLOAD_NONE};
    static const char *const names[] = {"A",
                                        "moe.X"}; /* Of all layers, and of layers of experts. */
    uint32_t walked = 0;
    (void)state;
    for (uint32_t p = 0; p < DRAWN_EXPERTS; p++)
        for (uint32_t variant = 0; variant < 30; variant++) {
            struct workload_case made;
            struct workload_counts counts;
            char name[96];
            if ((drawn_experts[p].walks & DRAWN_ROUTED) == 0 || sampling_skips(&walked)) continue;
            (void)snprintf(name, sizeof name, "host, experts %u, variant %u", p, variant);
            drawn_build_nodes(&made, &drawn_experts[p]);
            drawn_vary_experts(&made, &drawn_experts[p], variant);
            made.plan.model.experts.shared = variant % 2;
            made.plan.kept.offload = offloads[variant % 5];
            bool const lists = variant % 5 > 2; /* The oracle knows policies alone. */
            if (lists) {
                made.plan.remat = GRAPH_REMAT_BLOCK;
                made.plan.kept.named.offload = (struct graph_names){&names[variant / 5 % 2], 1};
            }
            if (case_lower(&made) != STATUS_OK) fail_msg("%s: %s", name, made.error.message);
            counts_make(&made.plan, &made.machine, &made.mesh, &counts);
            if (!lists) oracle_hold(name, &made.plan, &made.machine, &made.mesh, counts);
            copies_near(name, &made, &counts);
            case_free(&made);
        }
}

/* Few tokens: an expert's even share of their rows is rounded up, which is no recomputation. */
static void rows_that_are_rounded_up_are_not_recomputed(void **state)
{
    (void)state;
    for (uint32_t p = 0; p < DRAWN_EXPERTS; p++) {
        double without_remat = 0;
        if ((drawn_experts[p].walks & DRAWN_ROUTED) == 0) continue;
        for (enum graph_remat remat = GRAPH_REMAT_NONE; remat <= GRAPH_REMAT_LAYER; remat++) {
            struct workload_case made;
            struct workload_counts counts;
            struct roofline roofline = {0};
            char name[96];
            (void)snprintf(name, sizeof name, "place %u, remat %u", p, remat);
            drawn_build_nodes(&made, &drawn_experts[p]);
            made.plan.batch_tokens = UINT64_C(5) * 32; /* Of 32 data ranks at most. */
            made.plan.sequence_length = 5;
            made.plan.model.experts.top_k = 5; /* Of 64. */
            made.plan.remat = remat;
            compare(name, &made);
            counts_make(&made.plan, &made.machine, &made.mesh, &counts);
            roofline_flop(&made.plan, &made.machine, &counts, &roofline);
            if (remat == GRAPH_REMAT_NONE) without_remat = roofline.flop.executed;
            assert_true(counts.spare.uneven > counts.matmul_flop / 1000);
            near(name, "recomputed FLOP", roofline.flop.recomputed,
                 roofline.flop.executed - without_remat);
            case_free(&made);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formulas_and_programs_agree_on_what_lies_on_the_host),
        cmocka_unit_test(rows_that_are_rounded_up_are_not_recomputed),
        cmocka_unit_test(exchanges_of_uneven_parts_are_as_counted),
        cmocka_unit_test(formulas_and_programs_agree_on_experts),
        cmocka_unit_test(formulas_and_programs_agree_on_latent_attention),
    };
    return templates_run("workload_counts_experts", tests);
}
