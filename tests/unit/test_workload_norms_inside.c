/* A norm before O and one before the last matrix of an MLP: formulas and programs agree for every
 * combination of mesh, remat, gather, ZeRO stage, accumulation, order and formats, whatever the
 * blocks are; a layer has two norms and the kernel between the matmuls more, each way; ranks of tp
 * add up a number for each row; remat keeps what both norms read as it keeps other products; and
 * weights travel with the matrices. */
#include <stdio.h>
#include <string.h>

#include "sim/base/vector.h"
#include "sim/graph/parameters.h"
#include "tests/support/case.h"
#include "tests/unit/blocks_case.h"

/* On 4 x 4 x 4, of 4 ranks of tp: what a rank has of the rows of A and of Tmp, of 1/16 of the
 * tokens. */
static uint64_t const tokens = (UINT64_C(1) << 20) / 16;
static uint64_t const found = (UINT64_C(1) << 20) / 16 * (64 / 4) * 128;
static uint64_t const hidden = (UINT64_C(1) << 20) / 16 * (28672 / 4);

static void inside_set(struct model *model, uint32_t kind)
{
    model->norms.inside = true;
    blocks_kind_set(model, kind);
}

static void plain_set(struct model *model, uint32_t kind)
{
    blocks_kind_set(model, kind);
}

static void formulas_and_programs_agree(void **state)
{
    (void)state;
    blocks_agree(inside_set, BLOCKS_KINDS);
}

static struct blocks_sums sums_of(blocks_set *set, enum blocks_kind kind, uint64_t matrices,
                                  uint32_t place, bool backward)
{
    struct workload_case made;
    struct blocks_layer layer;
    blocks_build(&made, place, set, kind);
    made.plan.model.matrices = matrices;
    made.plan.remat = GRAPH_REMAT_NONE;
    blocks_derive(&made, &layer);
    struct blocks_sums const sums = blocks_sums_of(&layer, backward);
    case_free(&made);
    return sums;
}

/* What a layer has more with norms inside than without. */
static struct blocks_sums more_of(enum blocks_kind kind, uint64_t matrices, uint32_t place,
                                  bool backward)
{
    struct blocks_sums const inside = sums_of(inside_set, kind, matrices, place, backward);
    struct blocks_sums const plain = sums_of(plain_set, kind, matrices, place, backward);
    return (struct blocks_sums){.flop = inside.flop - plain.flop,
                                .vector_flop = inside.vector_flop - plain.vector_flop,
                                .hbm_bytes = inside.hbm_bytes - plain.hbm_bytes,
                                .collective_bytes =
                                    inside.collective_bytes - plain.collective_bytes,
                                .computes = inside.computes - plain.computes,
                                .collectives = inside.collectives - plain.collectives};
}

/*
 * A norm over ranks of tp reads its rows twice and writes them; its gradient reads both rows and
 * the result's gradient twice and writes one array. A gate that lies in memory is written once and
 * read once, and its own kernel reads Gate and Up where the product behind it did. Its gradient
 * reads three arrays and writes two, where the passes of the product read four and wrote two and
 * computed the gate once more. Without a gate a function has no kernel but for a norm.
 */
static void a_layer_has_two_norms_more(void **state)
{
    static const struct {
        uint64_t matrices;
        bool backward;
        uint64_t found_arrays, hidden_arrays, found_flop, hidden_flop;
    } rows[] = {
        {3, false, 3, 3 + 3 + 1 - 2, VECTOR_NORM_ALONE, VECTOR_NORM_ALONE},
        {3, true, 5, 5 + 5 + 2 - 6, VECTOR_NORM_ALONE_BACKWARD,
         VECTOR_NORM_ALONE_BACKWARD - VECTOR_GATE},
        {2, false, 3, 3 + 2, VECTOR_NORM_ALONE, VECTOR_NORM_ALONE + VECTOR_FUNCTION},
        {2, true, 5, 5 + 3, VECTOR_NORM_ALONE_BACKWARD,
         VECTOR_NORM_ALONE_BACKWARD + VECTOR_FUNCTION_BACKWARD},
    };
    (void)state;
    for (size_t i = 0; i < 2 * sizeof rows / sizeof *rows; i++) {
        size_t const r = i / 2;
        enum blocks_kind const kind = i % 2 == 0 ? BLOCKS_SERIAL : BLOCKS_PARALLEL;
        struct blocks_sums const more = more_of(kind, rows[r].matrices, 1, rows[r].backward);
        assert_int_equal(more.flop, 0);
        assert_int_equal(more.computes, 3);
        assert_int_equal(more.hbm_bytes,
                         2 * (rows[r].found_arrays * found + rows[r].hidden_arrays * hidden));
        assert_int_equal(more.vector_flop,
                         rows[r].found_flop * found + rows[r].hidden_flop * hidden);
        assert_int_equal(more.collectives, 2);
        assert_int_equal(more.collective_bytes, 2 * 4 * tokens);
    }
}

/* Without tp rows are whole: nothing moves, and rows and gradients are read once. */
static void whole_rows_are_read_once(void **state)
{
    static const uint64_t arrays[] = {2, 3}, gate_arrays[] = {3 + 1 - 2, 5 + 2 - 6};
    (void)state;
    for (uint32_t backward = 0; backward < 2; backward++) {
        struct blocks_sums const more = more_of(BLOCKS_SERIAL, 3, 0, backward == 1);
        assert_int_equal(more.collectives, 0);
        assert_int_equal(more.collective_bytes, 0);
        assert_int_equal(more.computes, 3);
        assert_int_equal(more.hbm_bytes, 2 * tokens *
                                             (arrays[backward] * 8192 +
                                              (arrays[backward] + gate_arrays[backward]) * 28672));
    }
}

static uint8_t op_at(const struct graph *graph, const char *name)
{
    for (uint8_t i = 0; i < graph->op_count; i++)
        if (strcmp(graph->op[i].name, name) == 0) return i;
    fail_msg("no op is called %s", name);
    return 0;
}

/* Whether a step of a layer's backward pass writes the gradient of a tensor. */
static bool gradient_is_written(const struct blocks_layer *layer, tensor of)
{
    struct graph_steps steps;
    blocks_steps(layer, true, &steps);
    for (uint32_t i = 0; i < steps.count; i++)
        for (uint8_t k = 0; k < steps.step[i].written_count; k++)
            if (steps.step[i].written[k].of == of && steps.step[i].written[k].gradient) return true;
    return false;
}

/* O and the last matrix read what the norms give. A norm gives gradients of its input and of its
 * weights, and the gate those of Gate and Up. */
static void products_read_the_norms_and_each_has_its_gradients(void **state)
{
    static const char *const norms[] = {"ANorm", "TmpNorm"}, *const products[] = {"O", "Out"};
    struct workload_case made;
    struct blocks_layer layer;
    (void)state;
    blocks_build(&made, 1, inside_set, BLOCKS_SERIAL);
    blocks_derive(&made, &layer);
    const struct graph *graph = &layer.of.graph;
    for (uint32_t i = 0; i < 2; i++) {
        const struct graph_op *norm = &graph->op[op_at(graph, norms[i])];
        const struct graph_op *product = &graph->op[op_at(graph, products[i])];
        assert_int_equal(norm->weight_count, 1);
        assert_int_equal(product->in_count, 1);
        assert_int_equal(product->in[0], norm->out[0]);
        assert_true(gradient_is_written(&layer, norm->in[0]));
        assert_true(gradient_is_written(&layer, norm->weight[0]));
        assert_true(gradient_is_written(&layer, product->weight[0]));
    }
    const struct graph_op *gate = &graph->op[op_at(graph, "gate")];
    assert_int_equal(gate->in_count, 2);
    assert_true(gradient_is_written(&layer, gate->in[0]));
    assert_true(gradient_is_written(&layer, gate->in[1]));
    case_free(&made);
}

/* Attention's result is kept as flash attention says, Gate and Up as products are; both norms and
 * the gate come again wherever norms do. */
static void norms_are_repeated_as_norms_are(void **state)
{
    static const struct {
        enum graph_remat remat;
        bool keeps_found, keeps_products, keeps_normed, again;
    } rows[] = {
        {GRAPH_REMAT_NONE, true, true, true, false},
        {GRAPH_REMAT_NORMS, true, true, false, true},
        {GRAPH_REMAT_BIG_MATMULS, false, true, false, true},
        {GRAPH_REMAT_BLOCK, false, false, false, true},
        {GRAPH_REMAT_LAYER, false, false, false, true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct workload_case made;
        struct blocks_layer layer;
        blocks_build(&made, 1, inside_set, BLOCKS_SERIAL);
        made.plan.remat = rows[i].remat;
        blocks_derive(&made, &layer);
        const struct graph *graph = &layer.of.graph;
        const struct graph_kept *kept = &layer.of.kept;
        uint8_t const a = op_at(graph, "ANorm"), gate = op_at(graph, "gate"),
                      tmp = op_at(graph, "TmpNorm");
        assert_int_equal(kept->kept[graph->op[a].in[0]] != GRAPH_NOTHING, rows[i].keeps_found);
        assert_int_equal(kept->kept[graph->op[gate].in[0]] != GRAPH_NOTHING,
                         rows[i].keeps_products);
        assert_int_equal(kept->kept[graph->op[a].out[0]] != GRAPH_NOTHING, rows[i].keeps_normed);
        assert_int_equal(kept->kept[graph->op[tmp].in[0]] != GRAPH_NOTHING, rows[i].keeps_normed);
        assert_int_equal(kept->kept[graph->op[tmp].out[0]] != GRAPH_NOTHING, rows[i].keeps_normed);
        assert_int_equal(kept->again[a], rows[i].again);
        assert_int_equal(kept->again[gate], rows[i].again);
        assert_int_equal(kept->again[tmp], rows[i].again);
        case_free(&made);
    }
}

/* Each value that a pass reads is there, nothing is computed in vain, and memory is given back. */
static void values_are_there_and_are_given_back(void **state)
{
    static struct ranks ranks;
    static struct graph_cases cases;
    (void)state;
    for (uint32_t variant = 0; variant < 2 * (GRAPH_REMAT_LAYER + 1); variant++) {
        struct workload_case made;
        blocks_build(&made, 1, inside_set, BLOCKS_SERIAL);
        made.plan.remat = (enum graph_remat)(variant / 2);
        made.plan.model.matrices = 3 - variant % 2;
        graph_ranks(&made.plan, &made.machine, &made.mesh, &ranks);
        graph_cases_build(&ranks, &cases);
        for (uint32_t i = 0; i < cases.count; i++) {
            graph_values_hold("norms inside", &cases.part[i]);
            graph_steps_are_read("norms inside", &cases.part[i]);
            graph_lives_hold("norms inside", &cases.part[i]);
        }
        case_free(&made);
    }
}

/* Of 64 new tokens a data rank has 4, and a rank of tp 16 heads and a quarter of Tmp. */
static void new_tokens_are_normed_too(void **state)
{
    (void)state;
    uint64_t const inside = blocks_decode_vector_flop(inside_set, BLOCK_LAYER);
    uint64_t const plain = blocks_decode_vector_flop(plain_set, BLOCK_LAYER);
    assert_int_equal(inside - plain, VECTOR_NORM_ALONE * 4 * (16 * 128 + 28672 / 4));
}

/* A decode of 32 sequences over 4 ranks of tp and 2 of tp_d: heads lie on both axes, columns of Tmp
 * on tp alone. */
static void rows_are_added_up_where_they_lie(void **state)
{
    static struct ranks ranks;
    static struct graph_cases cases;
    struct workload_case made;
    uint32_t looked_at = 0;
    (void)state;
    blocks_decode_on_axes(&made, inside_set, "y", "x", &ranks, &cases);
    for (uint32_t i = 0; i < cases.count; i++) {
        const struct graph_case *of = &cases.part[i];
        struct op_move move[OP_MOVES_MAX];
        if (of->which.part != BLOCK_LAYER) continue;
        const struct graph_op *a = &of->graph.op[op_at(&of->graph, "ANorm")];
        const struct graph_op *tmp = &of->graph.op[op_at(&of->graph, "TmpNorm")];
        assert_int_equal(op_moves(&of->sharded, a, OP_FORWARD, move), 2);
        assert_int_equal(move[0].axis, OP_AXIS_TP);
        assert_int_equal(move[1].axis, OP_AXIS_TP_D);
        assert_int_equal(move[1].bytes, 4 * 32);
        assert_int_equal(op_moves(&of->sharded, tmp, OP_FORWARD, move), 1);
        assert_int_equal(move[0].axis, OP_AXIS_TP);
        assert_int_equal(move[0].bytes, 4 * 32);
        looked_at++;
    }
    assert_int_equal(looked_at, 1);
    case_free(&made);
}

/* A weight for each column of A and of Tmp, and a bias where norms have them. */
static void weights_travel_with_the_matrices(void **state)
{
    (void)state;
    for (uint32_t biases = 0; biases < 2; biases++) {
        struct workload_case made;
        struct blocks_layer layer;
        uint64_t elements = 0;
        blocks_build(&made, 0, inside_set, BLOCKS_SERIAL);
        made.plan.model.norms.biases = biases;
        blocks_derive(&made, &layer);
        const struct ranks_layer *bucketed = &layer.ranks.layer[ranks_last_kind(&layer.ranks)];
        for (uint32_t u = 0; u < bucketed->bucket_count; u++)
            elements += bucketed->bucket[u].elements;
        struct model_counts const inside = model_count(&made.plan.model);
        made.plan.model.norms.inside = false;
        struct model_counts const plain = model_count(&made.plan.model);
        assert_int_equal(elements, inside.attention_layer + inside.mlp_layer + inside.norm_layer);
        assert_int_equal(inside.attention_layer - plain.attention_layer, (1 + biases) * 64 * 128);
        assert_int_equal(inside.mlp_layer - plain.mlp_layer, (1 + biases) * 28672);
        assert_int_equal(inside.norm_layer, plain.norm_layer);
        case_free(&made);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formulas_and_programs_agree),
        cmocka_unit_test(a_layer_has_two_norms_more),
        cmocka_unit_test(whole_rows_are_read_once),
        cmocka_unit_test(products_read_the_norms_and_each_has_its_gradients),
        cmocka_unit_test(norms_are_repeated_as_norms_are),
        cmocka_unit_test(values_are_there_and_are_given_back),
        cmocka_unit_test(new_tokens_are_normed_too),
        cmocka_unit_test(rows_are_added_up_where_they_lie),
        cmocka_unit_test(weights_travel_with_the_matrices),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
