/* A norm behind each block and none before, and norms of whole Q and K: formulas and programs agree
 * for every combination of mesh, remat, gather, ZeRO stage, accumulation, order and formats; a
 * block reads the stream, whose sum is a kernel of its own; remat keeps the stream once, where it
 * lies; ranks of tp add up a number for each row of Q and of K; and parameters are as published. */
#include <stdio.h>
#include <string.h>

#include "sim/graph/parameters.h"
#include "tests/support/case.h"
#include "tests/unit/blocks_case.h"
#include "tests/unit/config_case.h"

/* Of a layer; and both halves side by side, which read one stream. */
enum blocks { SERIAL, EXPERTS, BLOCKS, PARALLEL = BLOCKS, KINDS };

/* On 4 x 4 x 4, of 4 ranks of tp: what a rank has of the stream, and of Q and K, of 1/16 of the
 * tokens. */
static uint64_t const tokens = (UINT64_C(1) << 20) / 16;
static uint64_t const stream = (UINT64_C(1) << 20) / 16 * 8192 / 4;
static uint64_t const heads = (UINT64_C(1) << 20) / 16 * (16 + 2) * 128;

static void behind_alone_set(struct model *model, uint32_t kind)
{
    model->norms.behind = model->norms.none_before = true;
    model->norms.qk = MODEL_QK_NORMS_WHOLE;
    static const enum blocks_kind kinds[] = {BLOCKS_SERIAL, BLOCKS_EXPERTS, BLOCKS_PARALLEL};
    blocks_kind_set(model, kinds[kind]);
}

static void before_alone_set(struct model *model, uint32_t kind)
{
    behind_alone_set(model, kind);
    model->norms.behind = model->norms.none_before = false;
}

static void heads_apart_set(struct model *model, uint32_t kind)
{
    behind_alone_set(model, kind);
    model->norms.qk = MODEL_QK_NORMS_EACH;
}

static void formulas_and_programs_agree(void **state)
{
    (void)state;
    blocks_agree(behind_alone_set, KINDS);
}

static struct blocks_sums sums_of(blocks_set *set, uint32_t kind, uint32_t place, bool backward)
{
    struct workload_case made;
    struct blocks_layer layer;
    blocks_build(&made, place, set, kind);
    made.plan.remat = GRAPH_REMAT_NONE;
    blocks_derive(&made, &layer);
    struct blocks_sums const sums = blocks_sums_of(&layer, backward);
    case_free(&made);
    return sums;
}

/* A norm before reads the stream and what is added, and writes their sum and its result; backward
 * it reads the gradients of both, and the sum, and writes one. The sum alone writes no result and
 * reads no sum; the norm behind is a kernel more. */
static void a_norm_behind_is_in_the_place_of_one_before(void **state)
{
    static const uint64_t before[] = {2 + 2, 3 + 1}, sum[] = {2 + 1, 2 + 1}, norm[] = {2, 3};
    (void)state;
    for (uint32_t variant = 0; variant < 2 * BLOCKS; variant++) {
        bool const backward = variant % 2 == 1;
        struct blocks_sums const behind = sums_of(behind_alone_set, variant / 2, 1, backward);
        struct blocks_sums const plain = sums_of(before_alone_set, variant / 2, 1, backward);
        uint64_t const arrays = sum[backward] + norm[backward] - before[backward];
        assert_int_equal(behind.flop, plain.flop);
        assert_int_equal(behind.vector_flop, plain.vector_flop);
        assert_int_equal(behind.computes, plain.computes + 2);
        assert_int_equal(behind.collectives, plain.collectives);
        assert_int_equal(behind.collective_bytes, plain.collective_bytes);
        assert_int_equal(behind.hbm_bytes - plain.hbm_bytes, 2 * arrays * 2 * stream);
    }
}

/* Of the first block the layer keeps the stream; that of the second is added up again with what
 * gives it. No kernel makes a block's input of a stream that is there. */
static void the_stream_is_kept_once(void **state)
{
    static const struct {
        enum graph_remat remat;
        uint64_t kept; /* Of arrays that lie as the stream does: inputs, and results for norms. */
        uint32_t again;
    } rows[] = {
        {GRAPH_REMAT_NONE, 4, 0},  {GRAPH_REMAT_NORMS, 4, 0}, {GRAPH_REMAT_BIG_MATMULS, 4, 0},
        {GRAPH_REMAT_BLOCK, 1, 1}, {GRAPH_REMAT_LAYER, 1, 1},
    };
    (void)state;
    for (size_t row = 0; row < sizeof rows / sizeof *rows; row++) {
        struct workload_case made;
        struct blocks_layer layer;
        struct graph_steps steps;
        uint64_t kept = 0;
        uint32_t again = 0;
        blocks_build(&made, 1, behind_alone_set, SERIAL);
        made.plan.remat = rows[row].remat;
        blocks_derive(&made, &layer);
        const struct graph *graph = &layer.of.graph;
        for (uint8_t t = 0; t < graph->tensor_count; t++)
            kept += layer.of.kept.kept[t] != GRAPH_NOTHING &&
                    graph_elements(graph, &graph->tensor[t].at, 0) == stream &&
                    graph->tensor[t].at.dimension_count == 2;
        blocks_steps(&layer, true, &steps);
        for (uint32_t i = 0; i < steps.count; i++)
            again += steps.step[i].is_compute && op_is_forward(steps.step[i].pass) &&
                     strcmp(graph->op[steps.step[i].op].name, "sum") == 0;
        assert_int_equal(kept, rows[row].kept);
        assert_int_equal(again, rows[row].again);
        case_free(&made);
    }
}

/* Bytes that each chip has of the stream's arrays while a pass adds them up. */
static uint64_t summed_bytes(const struct blocks_layer *layer, bool backward)
{
    struct graph_steps steps;
    static struct graph_live live;
    uint64_t bytes = 0;
    blocks_steps(layer, backward, &steps);
    graph_live(&layer->of.sharded, &layer->of.kept, &steps, NULL, &live);
    for (uint32_t i = 0; i < live.count; i++) {
        const struct graph_step *step = &steps.step[live.life[i].first];
        bool const sums = strcmp(layer->of.graph.op[step->op].name, "sum") == 0 &&
                          !live.life[i].before && step->is_compute && op_is_forward(step->pass);
        if (sums) bytes += live.life[i].bytes;
    }
    return bytes;
}

/* Each of two sums of a layer takes one array in memory, whatever remat keeps; but two where
 * products want another format than the stream has. */
static void a_sum_takes_one_array(void **state)
{
    (void)state;
    for (uint32_t variant = 0; variant < 2 * (GRAPH_REMAT_LAYER + 1); variant++) {
        bool const copies = variant % 2 == 1;
        struct workload_case made;
        struct blocks_layer layer;
        uint64_t const array = UINT64_C(2) * tokens * (copies ? 8192 : 8192 / 4);
        blocks_build(&made, copies ? 0 : 1, behind_alone_set, SERIAL);
        made.plan.remat = (enum graph_remat)(variant / 2);
        if (copies) made.plan.formats.matmuls = FORMAT_INT8;
        blocks_derive(&made, &layer);
        assert_int_equal(summed_bytes(&layer, false), copies ? 2 * array + array : 2 * array);
        if (graph_remat_repeats(made.plan.remat) && !copies)
            assert_int_equal(summed_bytes(&layer, true), array);
        case_free(&made);
    }
}

/* Two numbers in fp32 for each token, and the rows are read once more, backward with the gradient
 * of the result. Where no rank has a part of a row nothing moves. */
static void ranks_of_tp_add_up_rows(void **state)
{
    static const uint64_t arrays[] = {1, 2};
    (void)state;
    for (uint32_t backward = 0; backward < 2; backward++) {
        struct blocks_sums const whole = sums_of(behind_alone_set, SERIAL, 1, backward == 1);
        struct blocks_sums const apart = sums_of(heads_apart_set, SERIAL, 1, backward == 1);
        assert_int_equal(whole.collectives, apart.collectives + 1);
        assert_int_equal(whole.collective_bytes - apart.collective_bytes, 2 * 4 * tokens);
        assert_int_equal(whole.hbm_bytes - apart.hbm_bytes, arrays[backward] * 2 * heads);
        assert_int_equal(whole.computes, apart.computes);
        struct blocks_sums const one = sums_of(behind_alone_set, SERIAL, 0, backward == 1);
        struct blocks_sums const other = sums_of(heads_apart_set, SERIAL, 0, backward == 1);
        assert_memory_equal(&one, &other, sizeof one);
    }
}

/* Attention waits for the sums, and the product before it for those of the gradients. */
static void what_follows_waits_for_the_sums(void **state)
{
    (void)state;
    for (uint32_t backward = 0; backward < 2; backward++) {
        struct workload_case made;
        struct blocks_layer layer;
        struct graph_steps steps;
        uint32_t at = 0;
        blocks_build(&made, 1, behind_alone_set, SERIAL);
        made.plan.remat = GRAPH_REMAT_NONE;
        blocks_derive(&made, &layer);
        blocks_steps(&layer, backward == 1, &steps);
        while (at < steps.count && !steps.step[at].move.apart) at++;
        assert_in_range(at, 1, steps.count - 2);
        assert_true(steps.step[at - 1].is_compute);
        assert_non_null(graph_step_met(&steps.step[at], &steps.step[at - 1]));
        assert_non_null(graph_step_met(&steps.step[at + 1], &steps.step[at]));
        case_free(&made);
    }
}

/* A decode over tp and tp_d, whose 8 ranks have 8 of 64 heads each: the rows of 32 new tokens are
 * sums over both. */
static void heads_on_two_axes_are_added_up_over_both(void **state)
{
    static const enum op_axis axes[] = {OP_AXIS_TP, OP_AXIS_TP_D};
    static struct ranks ranks;
    static struct graph_cases cases;
    struct workload_case made;
    uint32_t found = 0;
    (void)state;
    blocks_decode_on_axes(&made, behind_alone_set, "x", "y", &ranks, &cases);
    for (uint32_t i = 0; i < cases.count; i++) {
        const struct graph_case *of = &cases.part[i];
        for (uint8_t k = 0; of->which.part == BLOCK_LAYER && k < of->graph.op_count; k++) {
            struct op_move move[OP_MOVES_MAX];
            if (strcmp(of->graph.op[k].name, "QKNorm") != 0) continue;
            assert_int_equal(
                of->graph.op[k].kind->moves(&of->sharded, &of->graph.op[k], OP_FORWARD, move), 2);
            for (uint32_t m = 0; m < 2; m++) {
                assert_int_equal(move[m].axis, axes[m]);
                assert_int_equal(move[m].bytes, 2 * 4 * 32);
            }
            found++;
        }
    }
    assert_int_equal(found, 1);
    case_free(&made);
}

/* Published: the parameters of OLMo-2-1124-7B and 13B, as the safetensors of their repositories on
 * Hugging Face have them. Two norms of a layer are those
 * behind; Q and K have a weight for each of their columns. */
static void published_counts_are_those_of_the_graph(void **state)
{
    (void)state;
    static const struct {
        uint64_t width, mlp_width, layers, parameters;
    } rows[] = {{4096, 11008, 32, 7298617344}, {5120, 13824, 40, 13716198400}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *config = arena_format(
            case_arena,
            "{\"model_type\": \"olmo2\", \"architectures\": [\"Olmo2ForCausalLM\"], "
            "\"attention_bias\": false, \"hidden_size\": %llu, \"intermediate_size\": %llu, "
            "\"num_attention_heads\": %llu, \"num_hidden_layers\": %llu, \"vocab_size\": 100352}",
            (unsigned long long)rows[i].width, (unsigned long long)rows[i].mlp_width,
            (unsigned long long)rows[i].width / 128, (unsigned long long)rows[i].layers);
        struct model const model = config_model(config);
        assert_int_equal(model_count(&model).total, rows[i].parameters);
        assert_true(model.norms.behind && model.norms.none_before);
        assert_int_equal(model.norms.qk, MODEL_QK_NORMS_WHOLE);
        assert_int_equal(model_count(&model).norm_layer, 2 * model.width);
        assert_int_equal(model_count(&model).attention_layer,
                         4 * model.width * model.width + 2 * model.width);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formulas_and_programs_agree),
        cmocka_unit_test(a_norm_behind_is_in_the_place_of_one_before),
        cmocka_unit_test(the_stream_is_kept_once),
        cmocka_unit_test(a_sum_takes_one_array),
        cmocka_unit_test(ranks_of_tp_add_up_rows),
        cmocka_unit_test(what_follows_waits_for_the_sums),
        cmocka_unit_test(heads_on_two_axes_are_added_up_over_both),
        cmocka_unit_test(published_counts_are_those_of_the_graph),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
