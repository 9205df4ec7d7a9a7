/*
 * drawn_case.h: drawn steps: places where they lie, and what varies from one to the next. A step
 * that is refused fails the test.
 */
#ifndef TESTS_UNIT_DRAWN_CASE_H
#define TESTS_UNIT_DRAWN_CASE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/workload_case.h"

/* --- Where they lie --- */

struct drawn_place {
    const struct model *model;
    const char *shape;
    uint64_t batch_tokens;
    const char *parts[MESH_ROLE_COUNT];
};

enum { DRAWN_DENSE = 11, DRAWN_BLOCKS = 6, DRAWN_EXPERTS = 15 };

static const struct drawn_place drawn_dense[DRAWN_DENSE] = {
    {&case_mlp, "16", 1 << 20, {[MESH_DP] = "x"}},
    {&case_mlp, "16", 1 << 20, {[MESH_FSDP] = "x"}},
    {&case_mlp, "16", 1 << 20, {[MESH_TP] = "x"}},
    {&case_mlp, "4x4x4", 1 << 20, {[MESH_FSDP] = "x y", [MESH_TP] = "z"}},
    {&case_mlp, "4x4x4", 1 << 20, {[MESH_DP] = "y", [MESH_FSDP] = "x", [MESH_TP] = "z"}},
    {&case_llama_70b, "16x16x16", 1 << 22, {[MESH_FSDP] = "x y", [MESH_TP] = "z"}},
    {&case_llama_70b, "16x16x16", 1 << 19, {[MESH_FSDP] = "x y", [MESH_TP] = "z"}}, /* Shared. */
    {&case_llama_70b, "4x4x4", 1 << 20, {[MESH_DP] = "x y", [MESH_TP] = "z"}},
    {&case_llama_70b, "4x4x4", 1 << 20, {[MESH_DP] = "y", [MESH_FSDP] = "x", [MESH_TP] = "z"}},
    {&case_llama_70b, "16x16x16", 1 << 22, {[MESH_FSDP] = "x y z"}},
    {&case_llama_70b, "16", 1 << 20, {[MESH_TP] = "x"}},
};

/* For layers of other blocks. */
static const struct drawn_place drawn_blocks[DRAWN_BLOCKS] = {
    {&case_llama_70b, "16", 1 << 20, {[MESH_DP] = "x"}},
    {&case_llama_70b, "4x4x4", 1 << 20, {[MESH_FSDP] = "x y", [MESH_TP] = "z"}},
    {&case_llama_70b, "4x4x4", 1 << 20, {[MESH_DP] = "y", [MESH_FSDP] = "x", [MESH_TP] = "z"}},
    /* More ranks of tp than KV heads; and a sequence on several ranks. */
    {&case_llama_70b, "16x16x16", 1 << 22, {[MESH_FSDP] = "x y", [MESH_TP] = "z"}},
    {&case_llama_70b, "16x16x16", 1 << 19, {[MESH_FSDP] = "x y", [MESH_TP] = "z"}},
    {&case_llama_70b, "4x4x4", 1 << 20, {[MESH_FSDP] = "y", [MESH_TP] = "z", [MESH_CP] = "x"}},
};

/* Tests that go to a place of experts; sums are sets. */
enum drawn_walks { DRAWN_ROUTED = 1, DRAWN_MLA = 2, DRAWN_MODULES = 4 };

/* Machines are nodes of GPUs and a torus. The ranks of ep lie in a node, across nodes, or over
 * both, on meshes that also have dp, fsdp or tp; or they lie over those of tp, cp and dp. */
static const struct drawn_nodes {
    uint32_t nodes; /* Of 8 H100; 0: a 4x4 torus. */
    const char *parts[MESH_ROLE_COUNT];
    unsigned walks;
} drawn_experts[DRAWN_EXPERTS] = {
    {1, {[MESH_EP] = "gpu"}, DRAWN_ROUTED | DRAWN_MLA | DRAWN_MODULES},
    {2, {[MESH_EP] = "node gpu"}, DRAWN_ROUTED},
    {1, {[MESH_TP] = "gpu"}, DRAWN_MLA | DRAWN_MODULES},
    {4, {[MESH_DP] = "node", [MESH_EP] = "gpu"}, DRAWN_ROUTED | DRAWN_MLA | DRAWN_MODULES},
    {4, {[MESH_FSDP] = "node", [MESH_EP] = "gpu"}, DRAWN_ROUTED | DRAWN_MLA | DRAWN_MODULES},
    {4, {[MESH_EP] = "node", [MESH_TP] = "gpu"}, DRAWN_ROUTED | DRAWN_MLA | DRAWN_MODULES},
    {4, {[MESH_FSDP] = "node", [MESH_TP] = "gpu"}, DRAWN_ROUTED | DRAWN_MLA | DRAWN_MODULES},
    {4, {[MESH_DP] = "node:2", [MESH_EP] = "node:2", [MESH_TP] = "gpu"}, DRAWN_ROUTED | DRAWN_MLA},
    {0, {[MESH_EP] = "x y"}, DRAWN_ROUTED},
    {0, {[MESH_FSDP] = "x", [MESH_EP] = "y"}, DRAWN_ROUTED},
    {0, {[MESH_FSDP] = "x", [MESH_TP] = "y"}, DRAWN_MLA | DRAWN_MODULES},
    {4,
     {[MESH_DP] = "node", [MESH_EP] = "tp gpu:2", [MESH_TP] = "gpu:4"},
     DRAWN_ROUTED | DRAWN_MLA | DRAWN_MODULES},
    {4, {[MESH_DP] = "node", [MESH_EP] = "dp tp", [MESH_TP] = "gpu"}, DRAWN_ROUTED | DRAWN_MLA},
    {4, {[MESH_FSDP] = "node", [MESH_EP] = "tp", [MESH_TP] = "gpu"}, DRAWN_ROUTED | DRAWN_MODULES},
    {0, {[MESH_EP] = "y tp", [MESH_TP] = "x"}, DRAWN_ROUTED},
};

static const struct model drawn_small_experts = {
    .kind = MODEL_DECODER,
    .name = "experts",
    .layers = 5,
    .width = 2048,
    .mlp_width = 8192,
    .matrices = 3,
    .heads = 16,
    .kv_heads = 8,
    .head_width = 128,
    .vocabulary = 32768,
    .experts = {.count = 64, .top_k = 6, .width = 1024}};

/* ZeRO's stages are of ranks that hold the same, and not of fsdp. */
static inline bool drawn_has_zero(const char *const parts[MESH_ROLE_COUNT])
{
    return (parts[MESH_DP] != NULL || parts[MESH_EP] != NULL) && parts[MESH_FSDP] == NULL;
}

static inline void drawn_build(struct workload_case *ret_made, const struct drawn_place *place)
{
    if (case_build_roles(ret_made, place->model, place->shape, place->parts) != STATUS_OK)
        fail_msg("%s: %s", ret_made->error.where, ret_made->error.message);
    ret_made->plan.batch_tokens = place->batch_tokens;
}

static inline void drawn_build_nodes(struct workload_case *ret_made,
                                     const struct drawn_nodes *place)
{
    bool const gpus = place->nodes != 0;
    struct machine_plan const machine = {.chip = gpus ? "h100-sxm" : "tpu-v5p",
                                         .nodes = place->nodes,
                                         .shape = gpus ? NULL : "4x4",
                                         .profile = "ideal",
                                         .unrealisable = !gpus,
                                         .wrap = {-1, -1, -1}};
    if (case_build_on(ret_made, &drawn_small_experts, &machine, place->parts) != STATUS_OK)
        fail_msg("%s: %s", ret_made->error.where, ret_made->error.message);
    if (mesh_ep_over(&ret_made->mesh, MESH_TP))
        ret_made->plan.activations = WORKLOAD_ACTIVATIONS_TOKENS;
}

/* --- What varies --- */

/* Other formats than the activations' for linear layers, and for tokens that travel to experts. */
static inline void drawn_vary_formats(struct workload_case *made, uint32_t variant)
{
    static const enum format narrow[] = {FORMAT_BF16, FORMAT_INT8, FORMAT_INT4};
    struct graph_formats *formats = &made->plan.formats;
    bool const gpu = made->machine.grid_axis_count == 0;
    formats->matmuls = narrow[variant % 3];
    if (gpu && formats->matmuls == FORMAT_INT4) formats->matmuls = FORMAT_FP8;
    if (made->mesh.axis[MESH_EP].size > 1) formats->dispatch = narrow[variant / 3 % 2];
}

/* Five bits choose the rest: all 32 for each place and ZeRO stage would be much the same. */
static inline void drawn_vary(struct workload_case *made, uint32_t variant)
{
    struct workload_plan *plan = &made->plan;
    drawn_vary_formats(made, variant / 3 + variant % 2);
    plan->model.layers = 5;
    plan->remat = (enum graph_remat)((variant + variant / 3) % 5);
    bool const may_keep = made->mesh.present[MESH_TP] && plan->model.kind == MODEL_DECODER &&
                          plan->remat == GRAPH_REMAT_NONE;
    if (may_keep) plan->tp_inputs = (enum workload_tp_inputs)(variant / 6 % 2);
    if (made->machine.chip.kind == CHIP_GPU && variant / 5 % 2 != 0)
        plan->software.memory = WORKLOAD_MEMORY_FRAMEWORK;
    bool const shards = made->mesh.present[MESH_FSDP] || plan->zero == 3;
    if (plan->software.memory == WORKLOAD_MEMORY_FRAMEWORK && variant % 3 == 0 && !shards)
        plan->formats.main_gradients = FORMAT_BF16;
    plan->gather = (enum workload_gather)(variant / 3 % 3);
    plan->accumulate = 1 + variant % 2;
    plan->collective_matmul = variant / 2 % 2;
    plan->backward_order = (enum workload_backward)(variant / 4 % 2);
    if (variant / 8 % 2 == 0) return;
    plan->activations = WORKLOAD_ACTIVATIONS_TOKENS;
    if (plan->model.kind == MODEL_DECODER) plan->attention.mask = WORKLOAD_ATTENTION_CAUSAL;
    plan->model.tied = plan->model.kind == MODEL_DECODER;
    plan->model.matrices = plan->model.kind == MODEL_DECODER ? 2 : 3;
    if (plan->model.kind != MODEL_DECODER) return;
    plan->model.positions.learned = 4096; /* As a GPT has it, with biases. */
    plan->model.norms.biases = 1;
    plan->model.biases = (struct model_biases){.qkv = true, .o = true, .mlp = true};
}

static inline void drawn_vary_experts(struct workload_case *made, const struct drawn_nodes *place,
                                      uint32_t variant)
{
    made->plan.zero = drawn_has_zero(place->parts) ? variant % 3 : 0;
    drawn_vary(made, variant / 2);
    made->plan.model.experts.dense_layers = variant % 4;
}

static inline void drawn_set_mla(struct model *model)
{
    model->mla = (struct model_mla){768, 256, 128, 64};
    model->head_width = 192;
    model->value_width = 128;
    model->kv_heads = model->heads;
}

/* None to three modules that predict, which come with untied ends and without learned positions. */
static inline void drawn_set_modules(struct model *model, uint32_t variant)
{
    model->experts.shared = variant % 2;
    if (variant % 3 != 0) model->tied = false;
    if (!model->tied) model->mtp_modules = variant % 4;
    if (model->mtp_modules != 0) model->positions.learned = 0;
}

#endif
