/* Layers whose attention and MLP lie side by side: formulas and programs agree for every
 * combination of mesh, remat, gather, ZeRO stage, accumulation, order and formats; over tp each sum
 * is reduced once; no gradient reads what comes out of either half; and the rule for tp is one. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sim/graph/derive.h"
#include "sim/model/model_read.h"
#include "sim/roofline/roofline.h"
#include "tests/support/case.h"
#include "tests/support/counts.h"
#include "tests/unit/counts_case.h"
#include "tests/unit/graph_case.h"

static const char *const blocks[] = {"parallel", NULL};

static const struct {
    const char *shape, *dp, *fsdp, *tp, *cp;
    uint64_t batch_tokens;
} places[] = {
    {"16", "x", NULL, NULL, NULL, 1 << 20},
    {"4x4x4", NULL, "x y", "z", NULL, 1 << 20},
    {"4x4x4", "y", "x", "z", NULL, 1 << 20},
    {"16x16x16", NULL, "x y", "z", NULL, 1 << 22}, /* More ranks of tp than KV heads. */
    {"16x16x16", NULL, "x y", "z", NULL, 1 << 19}, /* A sequence on several ranks. */
    {"4x4x4", NULL, "y", "z", "x", 1 << 20},
};
enum { PLACES = sizeof places / sizeof *places, VARIANTS = 36 };

static void step_build(struct workload_case *made, uint32_t place, uint64_t norms)
{
    const char *const parts[MESH_ROLE_COUNT] = {[MESH_DP] = places[place].dp,
                                                [MESH_FSDP] = places[place].fsdp,
                                                [MESH_TP] = places[place].tp,
                                                [MESH_CP] = places[place].cp};
    assert_int_equal(case_build_roles(made, &case_llama_70b, places[place].shape, parts),
                     STATUS_OK);
    made->plan.batch_tokens = places[place].batch_tokens;
    made->plan.sequence_length = 8192;
    made->plan.model.blocks = blocks;
    made->plan.model.norms = norms;
}

static void formulas_and_programs_agree(void **state)
{
    (void)state;
    for (uint32_t p = 0; p < PLACES; p++)
        for (uint32_t variant = 0; variant < 2 * VARIANTS; variant++) {
            struct workload_case made;
            char name[96];
            (void)snprintf(name, sizeof name, "place %u, variant %u", p, variant);
            step_build(&made, p, 1 + variant / VARIANTS);
            made.plan.zero = places[p].fsdp == NULL ? variant / 3 % 4 : 0;
            vary(&made, variant % VARIANTS);
            if (places[p].cp != NULL) made.plan.context = (enum workload_context)(variant / 12 % 3);
            compare(name, &made);
            graph_step_hold(name, &made);
            case_free(&made);
        }
}

static uint32_t moves_count(const struct graph_derived *layer, bool backward,
                            enum collective_kind kind)
{
    struct graph_request const request = {.backward = backward};
    struct graph_steps steps;
    uint32_t count = 0;
    graph_steps(&layer->sharded, &layer->backward, &layer->kept, request, &steps);
    for (uint32_t i = 0; i < steps.count; i++)
        count += !steps.step[i].is_compute && steps.step[i].move.axis == OP_AXIS_TP &&
                 steps.step[i].move.kind == kind;
    return count;
}

/* Serial layers have two of each. */
static void over_tp_a_layer_has_one_gather_and_one_reduction_each_way(void **state)
{
    (void)state;
    for (uint32_t norms = 1; norms <= 2; norms++) {
        struct workload_case made;
        struct ranks ranks;
        struct graph_terms terms;
        struct graph_derived layer;
        step_build(&made, 1, norms);
        made.plan.remat = WORKLOAD_REMAT_NONE;
        made.plan.tp_inputs = WORKLOAD_TP_INPUTS_WHOLE;
        assert_int_equal(ranks_make(&made.plan, &made.machine, &made.mesh, &ranks, &made.error),
                         STATUS_OK);
        graph_terms_of(&ranks, 0, &terms);
        graph_derive(&terms, &made.plan.model, BLOCK_LAYER, 0, &layer);
        assert_int_equal(moves_count(&layer, false, COLLECTIVE_ALL_GATHER), norms);
        assert_int_equal(moves_count(&layer, false, COLLECTIVE_REDUCE_SCATTER), 1);
        assert_int_equal(moves_count(&layer, true, COLLECTIVE_ALL_GATHER), 1);
        assert_int_equal(moves_count(&layer, true, COLLECTIVE_REDUCE_SCATTER), norms);
        case_free(&made);
    }
}

/* All else comes again. */
static void both_out_projections_are_dead_in_a_repetition(void **state)
{
    (void)state;
    for (uint32_t norms = 1; norms <= 2; norms++) {
        struct workload_case made;
        struct ranks ranks;
        struct graph_terms terms;
        struct graph_derived layer;
        step_build(&made, 1, norms);
        made.plan.remat = WORKLOAD_REMAT_BLOCK;
        assert_int_equal(ranks_make(&made.plan, &made.machine, &made.mesh, &ranks, &made.error),
                         STATUS_OK);
        graph_terms_of(&ranks, 0, &terms);
        graph_derive(&terms, &made.plan.model, BLOCK_LAYER, 0, &layer);
        for (uint8_t i = 0; i < layer.graph.op_count; i++) {
            const struct graph_op *op = &layer.graph.op[i];
            if (!op->fused) assert_int_equal(layer.kept.again[i], strcmp(op->name, "Out") != 0);
        }
        assert_int_equal(moves_count(&layer, true, COLLECTIVE_REDUCE_SCATTER), norms);
        case_free(&made);
    }
}

/* Matrices are alike. */
static void weights_are_those_of_a_serial_layer_less_a_norm(void **state)
{
    (void)state;
    struct model model = case_llama_70b;
    struct model_counts const serial = model_count(&model);
    model.blocks = blocks;
    model.norms = 2;
    assert_int_equal(model_count(&model).total, serial.total);
    model.norms = 1;
    assert_int_equal(model_count(&model).total, serial.total - model.layers * model.width);
}

/* LLaMA-3-70B's halves side by side: F·3/2, (N+K)·H with 8 KV heads on 4 ranks, and 4097/2 keys of
 * N·H = D columns. One norm is gathered once and both results are reduced once; two norms are
 * gathered one by one. X_opt knows weights alone. */
static void the_rule_for_tp_is_of_the_whole_layer(void **state)
{
    (void)state;
    double const weights = 28672 * 1.5 + (64 + 8) * 128, scores = 8193 / 2.0;
    for (uint32_t norms = 1; norms <= 2; norms++) {
        struct workload_case made;
        struct roofline roofline;
        step_build(&made, 1, norms);
        made.plan.attention = WORKLOAD_ATTENTION_CAUSAL;
        counts_roofline(&made.plan, &made.machine, &made.mesh, &roofline);
        const struct roofline_rules *rules = &roofline.rules;
        double const share = 2.0 / (1 + norms);
        assert_true(rules->tp_attention_width == 0 && rules->tp_mlp_width == 0);
        case_near(rules->tp_layer_width, share * (weights + scores), 1e-9);
        double const batch = (double)made.plan.batch_tokens / rules->fsdp_gathers;
        case_near(rules->mixed_best_ranks, sqrt(batch / (share * weights) * 2 * 64), 1e-9);
        case_free(&made);
    }
}

/* GPT-NeoX-20B, of which each half has a norm: 64 heads of 96, F of 24,576. */
static void gpt_neox_has_three_collectives_a_layer(void **state)
{
    (void)state;
    struct workload_case made;
    struct roofline roofline;
    step_build(&made, 1, 2);
    case_ok(model_read_name_or_path(made.arena, "gpt-neox-20b", NULL, "", &made.plan.model,
                                    &made.error));
    made.plan.sequence_length = 2048;
    counts_roofline(&made.plan, &made.machine, &made.mesh, &roofline);
    const struct workload_blocks *parallel = &roofline.counts.tp.parallel;
    assert_int_equal(parallel->count, 44);
    assert_int_equal(parallel->tp_moves, 3 * 44);
    case_near(roofline.rules.tp_layer_width, (24576 + 2 * 6144 + 2048) * 2.0 / 3, 1e-9);
    assert_true(roofline.rules.tp_attention_width == 0 && roofline.rules.tp_mlp_width == 0);
    case_free(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formulas_and_programs_agree),
        cmocka_unit_test(over_tp_a_layer_has_one_gather_and_one_reduction_each_way),
        cmocka_unit_test(both_out_projections_are_dead_in_a_repetition),
        cmocka_unit_test(weights_are_those_of_a_serial_layer_less_a_norm),
        cmocka_unit_test(the_rule_for_tp_is_of_the_whole_layer),
        cmocka_unit_test(gpt_neox_has_three_collectives_a_layer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
