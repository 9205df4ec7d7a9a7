/* A norm behind each block: formulas and programs agree for every combination of mesh, remat,
 * gather, ZeRO stage, accumulation, order and formats, whatever the blocks are; the norm reads what
 * a block gives, so remat leaves nothing of a block out; and collectives and products are those of
 * a layer without such norms. */
#include <stdio.h>
#include <string.h>

#include "sim/graph/parameters.h"
#include "tests/support/case.h"
#include "tests/unit/blocks_case.h"

/* Of a layer. */
enum blocks { SERIAL, PARALLEL, EXPERTS, BLOCKS };

static void norms_behind_set(struct model *model, uint32_t kind)
{
    model->norms.behind = true;
    if (kind == EXPERTS)
        model->experts = (struct model_experts){.count = 8, .top_k = 2, .width = 4096};
    model->parallel = kind == PARALLEL; /* With two norms before. */
}

static void formulas_and_programs_agree(void **state)
{
    (void)state;
    blocks_agree(norms_behind_set, BLOCKS);
}

/* No gradient reads what the last norm gives. It alone is left out. */
static void a_norm_behind_a_block_needs_all_of_it_again(void **state)
{
    (void)state;
    for (uint32_t blocks = 0; blocks < BLOCKS; blocks++) {
        struct workload_case made;
        struct blocks_layer layer;
        blocks_build(&made, 1, norms_behind_set, blocks);
        made.plan.remat = GRAPH_REMAT_BLOCK;
        blocks_derive(&made, &layer);
        uint8_t const last = (uint8_t)(layer.of.graph.op_count - 1);
        assert_string_equal(layer.of.graph.op[last].name, "OutNorm");
        for (uint8_t i = 0; i <= last; i++)
            if (!layer.of.graph.op[i].fused) assert_int_equal(layer.of.kept.again[i], i != last);
        case_free(&made);
    }
}

/* Each norm reads and writes its part of a row once, and backward reads it, reads the gradient of
 * the result, and writes that of its input. */
static void two_norms_are_all_that_a_layer_has_more(void **state)
{
    static const uint64_t arrays[] = {2, 3};
    (void)state;
    for (uint32_t backward = 0; backward < 2; backward++) {
        struct workload_case made;
        struct blocks_layer layer;
        blocks_build(&made, 1, norms_behind_set, SERIAL);
        blocks_derive(&made, &layer);
        struct blocks_sums const normed = blocks_sums_of(&layer, backward == 1);
        made.plan.model.norms.behind = false;
        blocks_derive(&made, &layer);
        struct blocks_sums const plain = blocks_sums_of(&layer, backward == 1);
        uint64_t const elements = (1U << 20) / 16 * 8192 / 4;
        assert_int_equal(normed.flop, plain.flop);
        assert_int_equal(normed.collectives, plain.collectives);
        assert_int_equal(normed.collective_bytes, plain.collective_bytes);
        assert_int_equal(normed.hbm_bytes - plain.hbm_bytes, 2 * arrays[backward] * 2 * elements);
        assert_true(normed.vector_flop > plain.vector_flop);
        case_free(&made);
    }
}

/* Biases of everything that may have them, and sinks. */
static void biases_set(struct model *model)
{
    model->norms.biases = 1;
    model->biases = (struct model_biases){.qkv = true, .o = true, .mlp = true, .head = true};
    model->attends.sinks = true;
    model->experts.biased = model->experts.router_biased = model_has_experts(model);
}

/* Buckets of a layer hold what the model counts, biases included. */
static void weights_travel_as_they_are_counted(void **state)
{
    (void)state;
    for (uint32_t variant = 0; variant < 2 * BLOCKS; variant++) {
        struct workload_case made;
        struct blocks_layer layer;
        uint64_t elements = 0;
        blocks_build(&made, 0, norms_behind_set, variant / 2);
        if (variant % 2 == 1) biases_set(&made.plan.model);
        blocks_derive(&made, &layer);
        bool const experts = model_has_experts(&made.plan.model);
        const struct ranks_layer *weights = &layer.ranks.layer[ranks_last_kind(&layer.ranks)];
        for (uint32_t u = 0; u < weights->bucket_count; u++)
            elements += weights->bucket[u].elements;
        struct model_counts const counts = model_count(&made.plan.model);
        uint64_t const channels =
            experts ? counts.router_layer + counts.experts_layer : counts.mlp_layer;
        assert_int_equal(elements, counts.attention_layer + channels + counts.norm_layer);
        case_free(&made);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formulas_and_programs_agree),
        cmocka_unit_test(a_norm_behind_a_block_needs_all_of_it_again),
        cmocka_unit_test(two_norms_are_all_that_a_layer_has_more),
        cmocka_unit_test(weights_travel_as_they_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
