/* Norms of Q and K, head by head: formulas and programs agree for every combination of mesh, remat,
 * gather, ZeRO stage, accumulation, order and formats, whatever the blocks are and whether heads
 * share the norms' weights; a layer has no product, no collective and no weights more; attention
 * and the cache have what the norms give; and remat keeps Q and K as their gradient reads them. */
#include <stdio.h>
#include <string.h>

#include "sim/base/vector.h"
#include "sim/graph/parameters.h"
#include "tests/support/case.h"
#include "tests/unit/blocks_case.h"

/* Of a layer. */
enum blocks { SERIAL, EACH, PARALLEL, EXPERTS, BLOCKS };

static void qk_norms_set(struct model *model, uint32_t kind)
{
    model->norms.qk = kind == EACH ? MODEL_QK_NORMS_EACH : MODEL_QK_NORMS_SHARED;
    if (kind == EXPERTS)
        model->experts = (struct model_experts){.count = 8, .top_k = 2, .width = 4096};
    if (kind != PARALLEL) return;
    model->norms.one_for_both = true;
    model->parallel = true;
}

static void formulas_and_programs_agree(void **state)
{
    (void)state;
    blocks_agree(qk_norms_set, BLOCKS);
}

/* LLaMA-3-70B on 4 x 4 x 4: each of 4 ranks of tp norms 16 heads of Q and 2 of K, of 128 columns.
 * The norm reads and writes them, and backward reads them and the gradient of its results. */
static void a_layer_has_a_norm_more(void **state)
{
    static const uint64_t arrays[] = {2, 3};
    static const uint64_t flop[] = {VECTOR_NORM_ALONE, VECTOR_NORM_ALONE_BACKWARD};
    (void)state;
    for (uint32_t variant = 0; variant < 2 * BLOCKS; variant++) {
        bool const backward = variant % 2 == 1;
        struct workload_case made;
        struct blocks_layer layer;
        blocks_build(&made, 1, qk_norms_set, variant / 2);
        made.plan.remat = GRAPH_REMAT_NONE;
        blocks_derive(&made, &layer);
        struct blocks_sums const normed = blocks_sums_of(&layer, backward);
        made.plan.model.norms.qk = MODEL_QK_NORMS_NONE;
        blocks_derive(&made, &layer);
        struct blocks_sums const plain = blocks_sums_of(&layer, backward);
        uint64_t const elements = (1U << 20) / 16 * (16 + 2) * 128;
        assert_int_equal(normed.flop, plain.flop);
        assert_int_equal(normed.collectives, plain.collectives);
        assert_int_equal(normed.collective_bytes, plain.collective_bytes);
        assert_int_equal(normed.hbm_bytes - plain.hbm_bytes, arrays[backward] * 2 * elements);
        assert_int_equal(normed.vector_flop - plain.vector_flop, flop[backward] * elements);
        case_free(&made);
    }
}

static const struct graph_op *op_named(const struct graph *graph, const char *name)
{
    for (uint8_t i = 0; i < graph->op_count; i++)
        if (strcmp(graph->op[i].name, name) == 0) return &graph->op[i];
    return NULL;
}

/* Without remat attention's inputs are kept and those of the norm too; `norms` and `big_matmuls`
 * keep Q and K, and norm them again; `block` makes all of it again. */
static void the_norm_is_repeated_as_norms_are(void **state)
{
    static const struct {
        enum graph_remat remat;
        bool keeps_projected, keeps_normed, again;
    } rows[] = {
        {GRAPH_REMAT_NONE, true, true, false},
        {GRAPH_REMAT_NORMS, true, false, true},
        {GRAPH_REMAT_BIG_MATMULS, true, false, true},
        {GRAPH_REMAT_BLOCK, false, false, true},
    };
    (void)state;
    for (uint32_t variant = 0; variant < 4 * BLOCKS; variant++) {
        uint32_t const row = variant % 4;
        struct workload_case made;
        struct blocks_layer layer;
        blocks_build(&made, 1, qk_norms_set, variant / 4);
        made.plan.remat = rows[row].remat;
        blocks_derive(&made, &layer);
        const struct graph_kept *kept = &layer.of.kept;
        const struct graph_op *norm = op_named(&layer.of.graph, "QKNorm");
        assert_non_null(norm);
        for (uint32_t i = 0; i < 2; i++) {
            assert_int_equal(kept->kept[norm->in[i]] != GRAPH_NOTHING, rows[row].keeps_projected);
            assert_int_equal(kept->kept[norm->out[i]] != GRAPH_NOTHING, rows[row].keeps_normed);
        }
        assert_int_equal(kept->again[graph_index(&layer.of.graph, norm)], rows[row].again);
        case_free(&made);
    }
}

/* Attention of sequences on several ranks gathers normed keys; a cache has them; a layer without
 * keys of its own norms its queries alone, and turns them as attention does. */
static void attention_reads_what_the_norm_gives(void **state)
{
    (void)state;
    for (uint32_t pass = 0; pass < 3; pass++) {
        struct workload_case made;
        struct blocks_layer layer;
        static struct graph graph;
        blocks_build(&made, pass == 0 ? 5 : 1, qk_norms_set, SERIAL);
        if (pass == 2) blocks_decode(&made);
        graph_ranks(&made.plan, &made.machine, &made.mesh, &layer.ranks);
        graph_layer_terms(&layer.ranks, 0, &layer.terms);
        struct graph_terms terms = layer.terms;
        terms.layer.borrows = pass == 1;
        block_write_layer(&terms, &made.plan.model, &graph);
        const struct graph_op *norm = op_named(&graph, pass == 1 ? "QNorm" : "QKNorm");
        const struct graph_op *reader = op_named(&graph, pass == 2 ? "append" : "flash");
        assert_non_null(norm);
        assert_non_null(reader);
        assert_int_equal(norm->out_count, pass == 1 ? 1 : 2);
        assert_int_equal(norm->weight_count, norm->out_count);
        assert_int_equal(reader->in[0], norm->out[pass == 2 ? 1 : 0]);
        assert_int_equal(reader->as.rotated.of[0], reader->in[0]);
        if (pass == 0) assert_int_equal(reader->in[1], norm->out[1]);
        case_free(&made);
    }
}

/* Buckets of a layer on one rank hold what the model counts. Heads share 2 * 128 weights, or each
 * of 64 + 8 heads has 128; a layer without keys of its own has no norm of keys. */
static void weights_travel_as_they_are_counted(void **state)
{
    static const uint64_t weights[BLOCKS] = {256, 72 * 128, 256, 256};
    (void)state;
    for (uint32_t variant = 0; variant < 2 * BLOCKS; variant++) {
        uint32_t const kind = variant / 2, biases = variant % 2;
        struct workload_case made;
        struct blocks_layer layer;
        uint64_t elements = 0;
        blocks_build(&made, 0, qk_norms_set, kind);
        made.plan.model.norms.biases = biases;
        blocks_derive(&made, &layer);
        bool const experts = model_has_experts(&made.plan.model);
        const struct ranks_layer *bucketed = &layer.ranks.layer[ranks_last_kind(&layer.ranks)];
        for (uint32_t u = 0; u < bucketed->bucket_count; u++)
            elements += bucketed->bucket[u].elements;
        struct model_counts const counts = model_count(&made.plan.model);
        uint64_t const channels =
            experts ? counts.router_layer + counts.experts_layer : counts.mlp_layer;
        assert_int_equal(elements, counts.attention_layer + channels + counts.norm_layer);
        made.plan.model.norms.qk = MODEL_QK_NORMS_NONE;
        assert_int_equal(counts.attention_layer, model_count(&made.plan.model).attention_layer +
                                                     weights[kind] * (1 + biases));
        case_free(&made);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formulas_and_programs_agree),
        cmocka_unit_test(a_layer_has_a_norm_more),
        cmocka_unit_test(the_norm_is_repeated_as_norms_are),
        cmocka_unit_test(attention_reads_what_the_norm_gives),
        cmocka_unit_test(weights_travel_as_they_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
