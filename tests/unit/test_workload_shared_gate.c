/* Shared experts behind a gate of their own: formulas and programs agree for every combination of
 * mesh, remat, gather, ZeRO stage, accumulation, order and formats; the gate is one more column of
 * the router's product; what it weighs is read again by its gradient. */
#include <stdio.h>
#include <string.h>

#include "sim/base/vector.h"
#include "tests/support/case.h"
#include "tests/support/play.h"
#include "tests/support/sampling.h"
#include "tests/unit/blocks_case.h"

static void gate_set(struct model *model, bool gated)
{
    model->experts.shared = 2;
    model->experts.shared_gated = gated;
}

static void formulas_and_programs_agree(void **state)
{
    enum { VARIANTS = 72 };
    uint32_t walked = 0;
    (void)state;
    for (uint32_t p = 0; p < DRAWN_EXPERTS; p++)
        for (uint32_t variant = p % 3; variant < VARIANTS; variant += 3) {
            struct workload_case made;
            char name[96];
            if (sampling_skips_watched(&walked)) continue;
            (void)snprintf(name, sizeof name, "place %u, variant %u", p, variant);
            drawn_build_nodes(&made, &drawn_experts[p]);
            drawn_vary_experts(&made, &drawn_experts[p], variant);
            gate_set(&made.plan.model, true);
            compare(name, &made);
            graph_step_hold(name, &made);
            case_free(&made);
        }
}

/* A layer over fsdp on nodes and tp on their 8 GPUs. */
static void layer_build(struct workload_case *ret_made, enum graph_remat remat, bool gated,
                        struct blocks_layer *ret_layer)
{
    drawn_build_nodes(ret_made, &drawn_experts[6]);
    gate_set(&ret_made->plan.model, gated);
    ret_made->plan.remat = remat;
    blocks_derive(ret_made, ret_layer);
}

static const struct graph_op *op_of(const struct graph *graph, const char *name)
{
    for (uint8_t i = 0; i < graph->op_count; i++)
        if (strcmp(graph->op[i].name, name) == 0) return &graph->op[i];
    return NULL;
}

/* 64 experts of 2,048 columns over 8 ranks of tp, whose parts of each sum are added up. */
static void the_gate_is_a_column_of_the_router(void **state)
{
    (void)state;
    for (uint32_t gated = 0; gated < 2; gated++) {
        struct workload_case made;
        struct blocks_layer layer;
        struct work work;
        layer_build(&made, GRAPH_REMAT_NONE, gated, &layer);
        const struct graph_op *router = op_of(&layer.of.graph, "Router");
        router->kind->work(&layer.of.sharded, router, OP_FORWARD, &work);
        assert_int_equal(work.matmul_count, 1);
        assert_int_equal(work.matmul[0].rows, layer.ranks.rows);
        assert_int_equal(work.matmul[0].inner, 2048 / 8);
        assert_int_equal(work.matmul[0].columns, 64 + gated);
        assert_int_equal(router->weight_count, 1 + gated);
        assert_true((op_of(&layer.of.graph, "shared.Weighted") != NULL) == gated);
        case_free(&made);
    }
}

/* A part of a row on each rank of tp, in bf16: it is read with its weight, and written; backward
 * it is read with the gradient, and gradients of both are written. So it is kept, or comes again.
 */
static void what_is_weighed_is_read_by_its_gradient(void **state)
{
    struct workload_case made;
    struct blocks_layer layer;
    struct work work;
    (void)state;
    layer_build(&made, GRAPH_REMAT_NONE, true, &layer);
    const struct graph_op *op = op_of(&layer.of.graph, "shared.Weighted");
    uint64_t const rows = layer.ranks.rows, elements = rows * 2048 / 8;
    op->kind->work(&layer.of.sharded, op, OP_FORWARD, &work);
    assert_int_equal(work.vector_flop, elements);
    assert_int_equal(work.hbm_read_bytes, 2 * elements + 4 * rows);
    assert_int_equal(work.hbm_write_bytes, 2 * elements);
    op->kind->work(&layer.of.sharded, op, OP_INPUT_GRADIENT, &work);
    assert_int_equal(work.vector_flop, (VECTOR_ROW_DOT + 1) * elements);
    assert_int_equal(work.hbm_read_bytes, 2 * (2 * elements) + 4 * rows);
    assert_int_equal(work.hbm_write_bytes, 2 * elements + 4 * rows);
    case_free(&made);
    for (uint32_t gated = 0; gated < 2; gated++) {
        layer_build(&made, GRAPH_REMAT_BLOCK, gated, &layer);
        const struct graph_op *out = op_of(&layer.of.graph, "shared.Out");
        assert_int_equal(layer.of.kept.again[graph_index(&layer.of.graph, out)], gated);
        case_free(&made);
    }
}

/* Qwen1.5-MoE-A2.7B's config.json: 24 layers, D of 2048, 16 heads of 128; 60 experts of 1408, 4 of
 * them for each token, and one of 5632 for all, with a gate. Of 8 prompts of 4096 tokens. */
static void flop_are_those_of_qwen_moe(void **state)
{
    static const struct play_options lower_only = {.lower_only = true};
    static const char *const meshes[] = {"tp", "dp"};
    double const layer = 4 * 2048.0 * 2048 + 2048.0 * (60 + 1) + 3 * 2048.0 * (4 * 1408 + 5632);
    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        char text[512];
        struct play play;
        case_text(text, sizeof text,
                  "{\"podsim\": 1, \"machine\": {\"chip\": \"h100-sxm\", \"gpus\": 8}, \"mesh\": "
                  "{\"%s\": [\"gpu\"]}, \"workload\": {\"kind\": \"prefill\", \"prompt\": 4096, "
                  "\"batch\": 8, \"model\": \"qwen1.5-moe-14b\"}}",
                  meshes[i]);
        play_run(&play, text, &lower_only);
        case_near(play.roofline.flop.useful, 2 * 8 * 4096.0 * 24 * layer + 2 * 8 * 2048 * 151936.0,
                  1e-9);
        play_close(&play);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formulas_and_programs_agree),
        cmocka_unit_test(the_gate_is_a_column_of_the_router),
        cmocka_unit_test(what_is_weighed_is_read_by_its_gradient),
        cmocka_unit_test(flop_are_those_of_qwen_moe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
