/* Layers whose attention and MLP lie side by side: formulas and programs agree for every
 * combination of mesh, remat, gather, ZeRO stage, accumulation, order and formats; over tp each sum
 * is reduced once; no gradient reads what comes out of either half; and the rule for tp is one. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sim/graph/parameters.h"
#include "sim/model/model_read.h"
#include "sim/roofline/roofline.h"
#include "tests/support/case.h"
#include "tests/support/counts.h"
#include "tests/unit/blocks_case.h"

/* With one norm before both halves, or one before each. */
static void parallel_set(struct model *model, uint32_t kind)
{
    model->parallel = true;
    model->norms.one_for_both = kind == 0;
}

/* FSDP over X and tensor parallelism over Y. */
static void step_build(struct workload_case *ret_made, uint32_t norms)
{
    blocks_build(ret_made, 1, parallel_set, norms - 1);
}

static void formulas_and_programs_agree(void **state)
{
    (void)state;
    blocks_agree(parallel_set, 2);
}

static uint32_t moves_count(const struct blocks_layer *layer, bool backward,
                            enum collective_kind kind)
{
    struct graph_steps steps;
    uint32_t count = 0;
    blocks_steps(layer, backward, &steps);
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
        struct blocks_layer layer;
        step_build(&made, norms);
        made.plan.remat = GRAPH_REMAT_NONE;
        made.plan.tp_inputs = WORKLOAD_TP_INPUTS_WHOLE;
        blocks_derive(&made, &layer);
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
        struct blocks_layer layer;
        step_build(&made, norms);
        made.plan.remat = GRAPH_REMAT_BLOCK;
        blocks_derive(&made, &layer);
        for (uint8_t i = 0; i < layer.of.graph.op_count; i++) {
            const struct graph_op *op = &layer.of.graph.op[i];
            if (!op->fused) assert_int_equal(layer.of.kept.again[i], strcmp(op->name, "Out") != 0);
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
    model.parallel = true;
    assert_int_equal(model_count(&model).total, serial.total);
    model.norms.one_for_both = true;
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
        step_build(&made, norms);
        made.plan.attention.mask = WORKLOAD_ATTENTION_CAUSAL;
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
    step_build(&made, 2);
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
