/* Ops of a layer with PyTorch's autocast and without. */
#include <string.h>

#include "sim/graph/asides.h"
#include "sim/graph/block.h"
#include "sim/graph/op.h"
#include "sim/kernels/kernels.h"
#include "sim/step/graph_terms.h"
#include "tests/support/case.h"
#include "tests/unit/graph_case.h"

enum { LAYER = 1 };

struct layer {
    struct workload_case made;
    struct kernel_stack stack;
    struct ranks ranks;
    struct graph_terms terms;
    struct graph graph;
    struct graph_sharded sharded;
};

/* A layer of LLaMA-3-70B whose queries and keys are normed, on 4 x 4 chips. */
static void layer_make(const char *fusion, bool autocast, enum format weights, struct layer *layer)
{
    const char *const parts[MESH_ROLE_COUNT] = {[MESH_DP] = "x", [MESH_TP] = "y"};
    struct model model = case_llama_70b;
    uint32_t i = 0;
    model.norms.qk = MODEL_QK_NORMS_SHARED;
    *layer = (struct layer){.stack = {.name = "case", .title = "A case"}};
    while (strcmp(fusion_at(i)->name, fusion) != 0) i++;
    layer->stack.between.fusion = fusion_at(i);
    assert_int_equal(case_build_roles(&layer->made, &model, "4x4x1", parts), STATUS_OK);
    layer->made.machine.chip.kernels.stack = &layer->stack;
    layer->made.plan.software.autocast = autocast;
    layer->made.plan.formats.weights = weights;
    graph_ranks(&layer->made.plan, &layer->made.machine, &layer->made.mesh, &layer->ranks);
    graph_layer_terms(&layer->ranks, LAYER, &layer->terms);
    block_write_part(&layer->terms, &layer->made.plan.model, BLOCK_LAYER, &layer->graph);
    graph_shard(&layer->graph, &layer->sharded);
}

static uint64_t bytes_of(const struct layer *layer, uint32_t op, enum op_pass pass)
{
    struct work const work = op_work(&layer->sharded, &layer->graph.op[op], pass);
    return work.hbm_read_bytes + work.hbm_write_bytes;
}

/* Norms of the stream in fp32 alone are left without casts of their own, and products read 16 bits.
 * Norms of queries and keys read what a product gives, in 16 bits. */
static void autocast_shortens_no_op_between_products(void **state)
{
    static const char *const fusions[] = {"eager", "compiled"};
    static struct layer with, without;
    (void)state;
    for (uint32_t i = 0; i < 4; i++) {
        enum format const weights = i % 2 == 0 ? FORMAT_BF16 : FORMAT_FP32;
        layer_make(fusions[i / 2], /* autocast= */ true, weights, &with);
        layer_make(fusions[i / 2], /* autocast= */ false, weights, &without);
        assert_int_equal(with.graph.op_count, without.graph.op_count);
        for (uint32_t op = 0; op < with.graph.op_count; op++) {
            const struct graph_op *of = &with.graph.op[op];
            if (of->fused || of->product_count != 0 || strcmp(of->name, "norm") == 0) continue;
            if (bytes_of(&with, op, OP_FORWARD) < bytes_of(&without, op, OP_FORWARD) ||
                bytes_of(&with, op, OP_INPUT_GRADIENT) < bytes_of(&without, op, OP_INPUT_GRADIENT))
                fail_msg("case %u: autocast shortens %s", i, of->name);
        }
        case_free(&with.made);
        case_free(&without.made);
    }
}

/* Its gradient reads 4 bytes an element less than that of the stack's, and no product casts. */
static void a_persistent_layernorm_goes_before_autocast(void **state)
{
    static struct layer layer;
    (void)state;
    layer_make("eager", /* autocast= */ true, FORMAT_BF16, &layer);
    layer.made.plan.model.norms.centred = true;
    layer.terms.policy.replacing.persistent_layernorm = true;
    uint32_t norm = 0, product = 0;
    while (strcmp(layer.graph.op[norm].name, "norm") != 0) norm++;
    while (strcmp(layer.graph.op[product].name, "QKV") != 0) product++;
    uint64_t const persistent = bytes_of(&layer, norm, OP_INPUT_GRADIENT);
    struct work const cast =
        graph_input_casts_work(&layer.sharded, &layer.graph.op[product], /* backward= */ false);
    assert_false(op_has_work(&cast));
    layer.terms.policy.autocast = AUTOCAST_NONE;
    assert_int_equal(bytes_of(&layer, norm, OP_INPUT_GRADIENT), persistent);
    layer.terms.policy.replacing.persistent_layernorm = false;
    assert_true(bytes_of(&layer, norm, OP_INPUT_GRADIENT) > persistent);
    case_free(&layer.made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(autocast_shortens_no_op_between_products),
        cmocka_unit_test(a_persistent_layernorm_goes_before_autocast),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
