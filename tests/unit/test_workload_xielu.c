/* An MLP with xIELU between its matrices: formulas and programs agree for every combination of
 * mesh, remat, gather, ZeRO stage, accumulation, order and formats, in series and side by side with
 * attention; the vector unit computes the function forward, and backward its gradients; where the
 * stack has kernels for functions, one of its own does; remat keeps what the function reads as it
 * keeps other products; and both weights of a layer travel whole with the matrices. */
#include <stdio.h>
#include <string.h>

#include "sim/base/vector.h"
#include "sim/graph/parameters.h"
#include "tests/support/case.h"
#include "tests/unit/blocks_case.h"

enum { KINDS = BLOCKS_PARALLEL + 1 };

/* Counted by hand: p·x² + x/2 or n·(exp(min(x, e)) - 1 - x) + x/2. Backward the slope, and the
 * products with the gradient for p and n, which are added up. */
enum { FLOP = 2 + 4 + 1 + 2, BACKWARD_FLOP = 1 + 3 + 3 + 5 };

/* On 4 x 4 x 4, of 4 ranks of tp: what a rank has of the rows of Tmp, of 1/16 of the tokens. */
static uint64_t const hidden = (UINT64_C(1) << 20) / 16 * (28672 / 4);

static void xielu_set(struct model *model, uint32_t kind)
{
    model->matrices = 2;
    model->xielu = true;
    blocks_kind_set(model, kind);
}

static void plain_set(struct model *model, uint32_t kind)
{
    model->matrices = 2;
    blocks_kind_set(model, kind);
}

static void formulas_and_programs_agree(void **state)
{
    (void)state;
    blocks_agree(xielu_set, KINDS);
}

static struct blocks_sums sums_of(blocks_set *set, enum blocks_kind kind,
                                  const struct fusion *fusion, bool backward)
{
    struct workload_case made;
    struct blocks_layer layer;
    blocks_build(&made, 1, set, kind);
    made.plan.remat = GRAPH_REMAT_NONE;
    blocks_derive(&made, &layer);
    layer.terms.policy.fusion = fusion;
    graph_derive(&layer.terms, &made.plan.model, BLOCK_LAYER, &layer.of);
    struct blocks_sums const sums = blocks_sums_of(&layer, backward);
    case_free(&made);
    return sums;
}

/* A fusion whose functions have one kernel each, of 16-bit arrays; NULL: none has a kernel. */
static const struct fusion *fusion_apart(void)
{
    for (uint32_t i = 0; fusion_at(i) != NULL; i++)
        if (fusion_at(i)->functions_apart &&
            fusion_at(i)->forward[WORK_FUNCTION_ACTIVATION].kernels == 0)
            return fusion_at(i);
    fail_msg("no fusion has such functions");
    return NULL;
}

/* Without kernels for functions the products behind and before compute xIELU on the way, and the
 * gradient of the inputs reads Tmp once more; the gradient of the weights computes xIELU again. A
 * kernel of its own costs the bytes of GELU's. */
static void each_number_of_tmp_has_the_function_and_its_gradients(void **state)
{
    const struct fusion *apart = fusion_apart();
    const struct {
        const struct fusion *fusion;
        bool backward;
        uint64_t flop, arrays;
    } rows[] = {
        {NULL, false, FLOP, 0},
        {NULL, true, FLOP + BACKWARD_FLOP, 1},
        {apart, false, FLOP - VECTOR_FUNCTION, 0},
        {apart, true, BACKWARD_FLOP - VECTOR_FUNCTION_BACKWARD, 0},
    };
    (void)state;
    for (size_t i = 0; i < KINDS * sizeof rows / sizeof *rows; i++) {
        size_t const r = i / KINDS;
        enum blocks_kind const kind = (enum blocks_kind)(i % KINDS);
        struct blocks_sums const with = sums_of(xielu_set, kind, rows[r].fusion, rows[r].backward);
        struct blocks_sums const plain = sums_of(plain_set, kind, rows[r].fusion, rows[r].backward);
        assert_int_equal(with.flop, plain.flop);
        assert_int_equal(with.computes, plain.computes);
        assert_int_equal(with.collectives, plain.collectives);
        assert_int_equal(with.collective_bytes, plain.collective_bytes);
        assert_int_equal(with.vector_flop - plain.vector_flop, rows[r].flop * hidden);
        assert_int_equal(with.hbm_bytes - plain.hbm_bytes, 2 * rows[r].arrays * hidden);
    }
}

static const struct graph_op *op_called(const struct graph *graph, const char *name)
{
    for (uint8_t i = 0; i < graph->op_count; i++)
        if (strcmp(graph->op[i].name, name) == 0) return &graph->op[i];
    fail_msg("no op is called %s", name);
    return NULL;
}

static bool is_written(const struct blocks_layer *layer, tensor of)
{
    struct graph_steps steps;
    bool written = false;
    blocks_steps(layer, true, &steps);
    for (uint32_t i = 0; i < steps.count; i++)
        for (uint8_t k = 0; k < steps.step[i].written_count; k++)
            written =
                written || (steps.step[i].written[k].of == of && steps.step[i].written[k].gradient);
    return written;
}

/* The last matrix reads what the function gives; Tmp and both matrices have their gradients. */
static void the_last_product_reads_it_and_each_has_its_gradient(void **state)
{
    struct workload_case made;
    struct blocks_layer layer;
    (void)state;
    blocks_build(&made, 1, xielu_set, BLOCKS_SERIAL);
    blocks_derive(&made, &layer);
    const struct graph_op *in = op_called(&layer.of.graph, "Tmp");
    const struct graph_op *function = op_called(&layer.of.graph, "gate");
    const struct graph_op *out = op_called(&layer.of.graph, "Out");
    assert_string_equal(function->formula, "xielu(%)");
    assert_int_equal(function->in_count, 1);
    assert_int_equal(function->in[0], in->out[0]);
    assert_int_equal(out->in[0], function->out[0]);
    assert_true(is_written(&layer, function->in[0]));
    assert_true(is_written(&layer, in->weight[0]));
    assert_true(is_written(&layer, out->weight[0]));
    case_free(&made);
}

/* Tmp is kept as products are, and no array of the function is. */
static void remat_keeps_what_the_function_reads(void **state)
{
    (void)state;
    for (uint32_t remat = GRAPH_REMAT_NONE; remat <= GRAPH_REMAT_LAYER; remat++) {
        struct workload_case made;
        struct blocks_layer layer;
        blocks_build(&made, 1, xielu_set, BLOCKS_SERIAL);
        made.plan.remat = (enum graph_remat)remat;
        blocks_derive(&made, &layer);
        const struct graph *graph = &layer.of.graph;
        const struct graph_op *in = op_called(graph, "Tmp"), *function = op_called(graph, "gate");
        bool const keeps = remat <= GRAPH_REMAT_BIG_MATMULS;
        assert_int_equal(layer.of.kept.kept[in->out[0]] != GRAPH_NOTHING, keeps);
        assert_int_equal(layer.of.kept.again[graph_index(graph, in)], !keeps);
        assert_int_equal(layer.of.kept.kept[function->out[0]], GRAPH_NOTHING);
        case_free(&made);
    }
}

/* Each value that a pass reads is there, nothing is computed in vain, and memory is given back. */
static void values_are_there_and_are_given_back(void **state)
{
    static struct ranks ranks;
    static struct graph_cases cases;
    (void)state;
    for (uint32_t variant = 0; variant < KINDS * (GRAPH_REMAT_LAYER + 1); variant++) {
        struct workload_case made;
        blocks_build(&made, 1, xielu_set, variant % KINDS);
        made.plan.remat = (enum graph_remat)(variant / KINDS);
        graph_ranks(&made.plan, &made.machine, &made.mesh, &ranks);
        graph_cases_build(&ranks, &cases);
        for (uint32_t i = 0; i < cases.count; i++) {
            graph_values_hold("xielu", &cases.part[i]);
            graph_steps_are_read("xielu", &cases.part[i]);
            graph_lives_hold("xielu", &cases.part[i]);
        }
        case_free(&made);
    }
}

/* Of 64 new tokens a data rank has 4, and a rank of tp a quarter of Tmp. */
static void new_tokens_have_it_too(void **state)
{
    (void)state;
    uint64_t const with = blocks_decode_vector_flop(xielu_set, BLOCK_LAYER);
    uint64_t const plain = blocks_decode_vector_flop(plain_set, BLOCK_LAYER);
    assert_int_equal(with - plain, FLOP * 4 * (28672 / 4));
}

static uint64_t bucket_elements(const struct blocks_layer *layer)
{
    const struct ranks_layer *of = &layer->ranks.layer[ranks_last_kind(&layer->ranks)];
    uint64_t elements = 0;
    for (uint32_t u = 0; u < of->bucket_count; u++) elements += of->bucket[u].elements;
    return elements;
}

/* Two numbers of the MLP, in series and side by side with attention, which each rank of tp has. */
static void both_weights_travel_whole_with_the_matrices(void **state)
{
    (void)state;
    for (uint32_t variant = 0; variant < 2 * KINDS; variant++) {
        struct workload_case made;
        struct blocks_layer layer;
        blocks_build(&made, variant / KINDS, xielu_set, variant % KINDS);
        blocks_derive(&made, &layer);
        uint64_t const elements = bucket_elements(&layer);
        struct model_counts const with = model_count(&made.plan.model);
        made.plan.model.xielu = false;
        blocks_derive(&made, &layer);
        struct model_counts const plain = model_count(&made.plan.model);
        assert_int_equal(elements - bucket_elements(&layer), 2);
        assert_int_equal(with.mlp_layer - plain.mlp_layer, 2);
        assert_int_equal(with.attention_layer, plain.attention_layer);
        assert_int_equal(with.total - plain.total, 2 * made.plan.model.layers);
        case_free(&made);
    }
}

/* Experts, and a gated MLP, have functions of their own. */
static void no_other_mlp_has_it(void **state)
{
    static const struct {
        enum blocks_kind kind;
        uint64_t matrices;
    } rows[] = {{BLOCKS_EXPERTS, 3}, {BLOCKS_EXPERTS, 2}, {BLOCKS_SERIAL, 3}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct workload_case made;
        struct blocks_layer layer;
        blocks_build(&made, 1, xielu_set, rows[i].kind);
        made.plan.model.matrices = rows[i].matrices;
        blocks_derive(&made, &layer);
        assert_int_equal(layer.of.graph.vector_count, 0);
        case_free(&made);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formulas_and_programs_agree),
        cmocka_unit_test(each_number_of_tmp_has_the_function_and_its_gradients),
        cmocka_unit_test(the_last_product_reads_it_and_each_has_its_gradient),
        cmocka_unit_test(remat_keeps_what_the_function_reads),
        cmocka_unit_test(values_are_there_and_are_given_back),
        cmocka_unit_test(new_tokens_have_it_too),
        cmocka_unit_test(both_weights_travel_whole_with_the_matrices),
        cmocka_unit_test(no_other_mlp_has_it),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
