/* Latent attention whose Q has no latent, as small models have it: formulas and programs agree for
 * every combination of mesh, remat, gather, ZeRO stage, accumulation, order and formats; Q comes
 * from the block's input in the product that goes down, and is not made again with what goes up. */
#include <stdio.h>
#include <string.h>

#include "tests/support/case.h"
#include "tests/support/play.h"
#include "tests/support/sampling.h"
#include "tests/unit/blocks_case.h"

static void direct_set(struct model *model)
{
    drawn_set_mla(model);
    model->mla.query_rank = 0;
}

static void formulas_and_programs_agree(void **state)
{
    enum { VARIANTS = 72 };
    uint32_t walked = 0;
    (void)state;
    for (uint32_t p = 0; p < DRAWN_EXPERTS; p++)
        for (uint32_t variant = p % 2; variant < VARIANTS; variant += 2) {
            struct workload_case made;
            char name[96];
            if (sampling_skips_watched(&walked)) continue;
            if ((drawn_experts[p].walks & DRAWN_MLA) == 0) continue;
            (void)snprintf(name, sizeof name, "place %u, variant %u", p, variant);
            drawn_build_nodes(&made, &drawn_experts[p]);
            drawn_vary_experts(&made, &drawn_experts[p], variant);
            direct_set(&made.plan.model);
            drawn_set_modules(&made.plan.model, variant);
            compare(name, &made);
            graph_step_hold(name, &made);
            case_free(&made);
        }
}

/* A layer over fsdp on nodes and tp on their 8 GPUs. */
static void layer_build(struct workload_case *ret_made, enum graph_remat remat,
                        struct blocks_layer *ret_layer)
{
    drawn_build_nodes(ret_made, &drawn_experts[6]);
    direct_set(&ret_made->plan.model);
    ret_made->plan.remat = remat;
    blocks_derive(ret_made, ret_layer);
}

static const struct graph_op *op_of(const struct graph *graph, const char *name)
{
    for (uint8_t i = 0; i < graph->op_count; i++)
        if (graph->op[i].block == 0 && strcmp(graph->op[i].name, name) == 0) return &graph->op[i];
    return NULL;
}

/* 2 of 16 heads of 192 columns, a latent of 256, and 64 columns that are turned: one product, whose
 * input is gathered once and whose gradient is reduced once. */
static void queries_come_with_the_way_down(void **state)
{
    struct workload_case made;
    struct blocks_layer layer;
    (void)state;
    layer_build(&made, GRAPH_REMAT_BLOCK, &layer);
    uint32_t const sharded = layer.terms.axis_y;
    const struct graph_op *down = op_of(&layer.of.graph, "Q,Down");
    struct work work;
    assert_non_null(down);
    assert_null(op_of(&layer.of.graph, "Down"));
    down->kind->work(&layer.of.sharded, down, OP_FORWARD, &work);
    assert_int_equal(work.matmul_count, 1);
    assert_int_equal(work.matmul[0].rows, layer.ranks.rows);
    assert_int_equal(work.matmul[0].inner, 2048);
    assert_int_equal(work.matmul[0].columns, 2 * 192 + 256 + 64);
    assert_int_equal(graph_shard_of(&layer.of.sharded, down)->gather, sharded);
    assert_int_equal(layer.of.backward.due[down->in[0]] & sharded, 0);
    /* A rank has all of the gradient of its own heads' columns, and a part of the latents'. */
    assert_int_equal(layer.of.backward.parts[down->weight[0]], 1);
    assert_int_equal(layer.of.backward.parts[down->weight[1]], 8);
    assert_int_equal(layer.of.backward.parts[down->weight[2]], 8);
    case_free(&made);
}

static void what_goes_up_comes_again_without_queries(void **state)
{
    struct workload_case made;
    struct blocks_layer layer;
    (void)state;
    layer_build(&made, GRAPH_REMAT_NORMS, &layer);
    const struct graph *graph = &layer.of.graph;
    const struct graph_op *up = op_of(graph, "Up"), *down = op_of(graph, "Q,Down");
    assert_true(layer.of.kept.again[graph_index(graph, up)]);
    assert_false(layer.of.kept.again[graph_index(graph, down)]);
    assert_int_equal(up->product_count, 1);
    assert_int_equal(op_of(graph, "LatentNorm")->weight_count, 1);
    case_free(&made);
}

/* DeepSeek-V2-Lite's config.json: D of 2048, 16 heads, a latent of 512, 64 columns that are turned;
 * 27 layers, the first with an MLP of 10944, the others with 64 experts of 1408, 6 of them and 2
 * shared ones for each token. Q of 16 x 192 columns comes from D. Of 8 prompts of 4096 tokens, and
 * of 8 decodes, whose queries score latents. */
static void flop_are_those_of_deepseek_v2_lite(void **state)
{
    static const struct play_options lower_only = {.lower_only = true};
    static const char *const sequences[] = {"\"prefill\", \"prompt\": 4096",
                                            "\"decode\", \"context\": 4096"};
    static const char *const meshes[] = {"tp", "ep"};
    double const down = 2048.0 * (16 * 192 + 512 + 64), out = 16.0 * 128 * 2048;
    double const up[] = {512.0 * 16 * 256, 2 * 16 * 128 * 512.0};
    double const tokens[] = {8 * 4096, 8}, pairs[] = {8 * 4096.0 * 4097 / 2, 8 * 4096.0};
    double const columns[] = {192 + 128, 576 + 512};
    (void)state;
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t const decodes = i / 2;
        char text[512];
        struct play play;
        case_text(text, sizeof text,
                  "{\"podsim\": 1, \"machine\": {\"chip\": \"h100-sxm\", \"gpus\": 8}, \"mesh\": "
                  "{\"%s\": [\"gpu\"]}, \"workload\": {\"kind\": %s, \"batch\": 8, \"model\": "
                  "\"deepseek-v2-lite\"}}",
                  meshes[i % 2], sequences[decodes]);
        play_run(&play, text, &lower_only);
        double const layers = 27 * (down + up[decodes] + out) + 3 * 2048.0 * 10944 +
                              26 * (2048.0 * 64 + 8 * 3 * 2048.0 * 1408);
        case_near(play.roofline.flop.useful, 2 * tokens[decodes] * layers + 2 * 8 * 2048 * 102400.0,
                  1e-9);
        case_near(play.roofline.flop.useful_attention,
                  27 * 2 * 16 * columns[decodes] * pairs[decodes], 1e-9);
        play_close(&play);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formulas_and_programs_agree),
        cmocka_unit_test(queries_come_with_the_way_down),
        cmocka_unit_test(what_goes_up_comes_again_without_queries),
        cmocka_unit_test(flop_are_those_of_deepseek_v2_lite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
