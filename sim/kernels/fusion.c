#include "sim/kernels/fusion.h"

#include <stddef.h>

#include "sim/base/units.h"
#include "sim/kernels/autocast.h"

/*
 * Rows say what differs from one kernel: reads and writes in bytes an element, and kernels.
 *
 * The update of Megatron-LM: the norm reads gradients (4), clipping reads and writes them (4, 4),
 * Adam works on an fp32 copy of the weights (4, 4 in place of the weights' own), which a last
 * kernel turns into weights (4, 2 more). All of these are of the rank's part of the state.
 * Gradients lie in a buffer that is not split: one kernel multiplies all of it by 1/replicas before
 * it is reduced (param_and_grad_buffer.py, start_grad_sync), another clears it (reset).
 *
 * The loss of Megatron-LM: to fp32 (2, 4), maximum (4), less it (4, 4), exponential (4, 4), sum
 * (4), over it (4, 4); backward the label's own (a number a row), times the gradient of the loss
 * (4, 4), to bf16 (4, 2).
 *
 * eager RMSNorm, as a formula of torch: to fp32 (2, 4), square (4, 4), mean (4), times its root
 * (4, 4), to bf16 (4, 2), times the weight (2, 2), and two kernels of a number a row. Backward, in
 * the order of autograd: times the weight (4, 2) and the sum of its gradient (4); to fp32 (2, 4);
 * times the root (4, 4), and the root's gradient (8, 4 and 4); of the square (4, 4), the sum of
 * both (8, 4), to bf16 (4, 2), and three kernels of a number a row.
 *
 * eager layernorm, which PyTorch has as an operator: one kernel; backward one for the gradient of
 * the input, and one for the gradients of weight and bias, which reads the result's gradient and
 * the input once more (2, 2). The gradient of a bias is a sum over tokens (torch.addmm backward).
 *
 * eager update: norm (4), clipping (4, 4), Adam with weights in fp32, and their copy in 16 bits, as
 * in Megatron-LM.
 *
 * The router of Megatron-Core, unfused, of fp32 scores: the best of them (4; two kernels), softmax
 * of these, zeros (4) that they are put in (4, 4 and a kernel), zeros (4) as integers (4, 4) that a
 * one is put in (4, 4 and a kernel), as booleans (4, 1), and their sum (1). Transformer Engine's
 * permutation: three kernels for the places of rows, and one for the rows; back one.
 *
 * The router of Hugging Face's Mixtral: softmax, the best (4), their sum, over it, to 16 bits;
 * zeros of 64 bits (8) with ones, their sum (8), where it is not zero (three kernels). For each
 * expert the places of ones (three kernels) and their rows; weights of rows, their product with the
 * rows (2, 2), and its sum into the tokens (2 more, 2). Backward the gradients of whole inputs that
 * each expert has, and their sum, are not counted.
 */
const struct fusion fusion_list[] = {
    {
        .name = "xla",
        .help = "XLA on TPUs: matmuls compute gates and functions on the way, norms the residual "
                "sum, attention the rotations: no kernels but those of the graph",
        .source =
            "a trace of LLaMA-3.1-8B on TPU v6e: norms and rotations take 1 to 2 % of a layer "
            "(casys-kaist/LLMServingSim at 5daddb21, profiler/v0/perf_models/TPU-v6e-1); products: "
            "MaxText src/MaxText/configs/base.yml (fused_qkv, fused_mlp: false)",
        .joins = PRODUCT_JOINS_NONE,
    },
    {
        .name = "te",
        .help = "Megatron-LM with Transformer Engine: kernels for norms, residual sums with "
                "dropout, gates, rotations; unfused cross-entropy and update",
        .source =
            "Megatron-LM megatron/core/fusions (fused_bias_dropout, fused_bias_swiglu), "
            "tensor_parallel/cross_entropy.py, optimizer/optimizer.py, "
            "distributed/param_and_grad_buffer.py at 50b073cc; "
            "transformer/moe/moe_utils.py (topk_routing_with_score_function) at 00611e6e; "
            "TransformerEngine transformer_engine/pytorch/module/layernorm.py, permutation.py "
            "(moe_permute with a mask); products: megatron/core/transformer/attention.py "
            "(linear_qkv), mlp.py (linear_fc1)",
        .joins = PRODUCT_JOINS_ALL,
        .sums_apart = true,
        .functions_apart = true,
        .rotates_apart = true,
        .linear = RECIPE_TRANSFORMER_ENGINE,
        .norms_belong = true,
        .buffers_gradients = true,
        .gradient_norm = {1, 4, 0},
        .clipping = {1, 4, 4},
        .experts = {.permute = {{4, 0, 0}, {1, 0, 0}}, .unpermute = {{1, 0, 0}, {1, 0, 0}}},
        .forward = {[WORK_FUNCTION_SUM] = {1, 2, 0},
                    [WORK_FUNCTION_LOSS] = {9, 28, 20},
                    [WORK_FUNCTION_UPDATE] = {2, 6, 4},
                    [WORK_FUNCTION_ROUTE] = {12, 17, 17}},
        .backward = {[WORK_FUNCTION_NORM] = {2, 0, 0},
                     [WORK_FUNCTION_SUM] = {1, 2, 2},
                     [WORK_FUNCTION_ROUTE] = {4, 0, 0}},
    },
    {
        .name = "compiled",
        .help = "torch.compile: one kernel for a chain of functions between matmuls, and two for "
                "the gradient of a norm; norms of Q and K rotate them",
        .source = "PyTorch torch/_inductor: chains of pointwise ops and their reductions become "
                  "one kernel; matmuls and attention are calls of libraries; products: pytorch/"
                  "torchtitan torchtitan/models/llama3/model.py (wq, wk, wv; w1, w3)",
        .joins = PRODUCT_JOINS_NONE,
        .functions_apart = true,
        .rotates_apart = true,
        .norms_rotate = true,
        .linear = RECIPE_TORCHAO,
        .autocast = &autocast_compiled,
        .shards = SHARD_KERNELS_FSDP2,
        .norms_belong = true,
        .gradient_norm = {1, 4, 0},
        .clipping = {1, 4, 4},
        .experts = {.permute = {{4, 0, 0}, {2, 2, 2}}, .unpermute = {{2, 2, 2}, {1, 0, 0}}},
        .forward = {[WORK_FUNCTION_LOSS] = {3, 4, 0}, [WORK_FUNCTION_ROUTE] = {4, 4, 4}},
        .backward = {[WORK_FUNCTION_NORM] = {2, 0, 0}, [WORK_FUNCTION_ROUTE] = {3, 0, 0}},
    },
    {
        .name = "xla_gpu",
        .help = "XLA on GPUs: one kernel for a chain of functions between matmuls, and two for the "
                "gradient of a norm; norms of Q and K rotate them; clipping belongs to the update",
        .source =
            "openxla/xla xla/service/gpu/transforms (priority_fusion, multi_output_fusion, "
            "gemm_rewriter: matmuls are calls of cuBLASLt); AI-Hypercomputer/maxtext "
            "configs/models/gpu (attention cudnn_flash_te: Transformer Engine's calls of cuDNN), "
            "layers/attentions.py (query, key, value), layers/linears.py (wi_0, wi_1)",
        .joins = PRODUCT_JOINS_NONE,
        .functions_apart = true,
        .rotates_apart = true,
        .norms_rotate = true,
        .linear = RECIPE_XLA,
        .norms_belong = true,
        .gradient_norm = {1, 4, 0},
        .forward = {[WORK_FUNCTION_LOSS] = {3, 4, 0}},
        .backward = {[WORK_FUNCTION_NORM] = {2, 0, 0}},
    },
    {
        .name = "eager",
        .help = "PyTorch without a compiler: a kernel for each operator, in fp32 where the model "
                "says so",
        .source =
            "Hugging Face transformers modeling_llama.py (LlamaRMSNorm, apply_rotary_pos_emb, "
            "LlamaMLP; products: q_proj, k_proj, v_proj; gate_proj, up_proj), modeling_mixtral.py "
            "(MixtralSparseMoeBlock) at 00d4b3d2; PyTorch "
            "aten/src/ATen/native/cuda/layer_norm_kernel.cu, "
            "torch/nn/utils/clip_grad.py, torch/optim/adamw.py (fused). Host: layers of "
            "Megatron-LM that vTrain traced on A100; the fastest takes 2.3 ms for 32 ops",
        .joins = PRODUCT_JOINS_NONE,
        .sums_apart = true,
        .functions_apart = true,
        .rotates_apart = true,
        .linear = RECIPE_TRANSFORMER_ENGINE,
        .gradient_norm = {1, 4, 0},
        .clipping = {1, 4, 4},
        .forward = {[WORK_FUNCTION_NORM] = {8, 18, 14},
                    [WORK_FUNCTION_SUM] = {1, 2, 0},
                    [WORK_FUNCTION_GATE] = {2, 2, 2},
                    [WORK_FUNCTION_ACTIVATION] = {1, 0, 0},
                    [WORK_FUNCTION_ROPE] = {5, 9, 7},
                    [WORK_FUNCTION_LOSS] = {6, 20, 12},
                    [WORK_FUNCTION_UPDATE] = {2, 6, 4},
                    [WORK_FUNCTION_ROUTE] = {13, 12, 8}},
        .backward = {[WORK_FUNCTION_NORM] = {12, 40, 26},
                     [WORK_FUNCTION_ROUTE] = {8, 4, 4},
                     [WORK_FUNCTION_SUM] = {1, 2, 2},
                     [WORK_FUNCTION_GATE] = {3, 6, 2},
                     [WORK_FUNCTION_ROPE] = {6, 11, 9}},
        .experts = {.unpermute = {{1, 4, 4}, {0, 8, 4}},
                    .permute_each = {4, 6},
                    .unpermute_each = {3, 5}},
        .layernorm = {1, 0, 0},
        .layernorm_backward = {2, 4, 0},
        .biases_apart = true,
        .joins_parts = true,
        .host_ps = 72 * TIME_PS_PER_US,
        .autocast = &autocast_eager,
        .shards = SHARD_KERNELS_FSDP1,
    },
    {
        .name = "served",
        .help = "vLLM and SGLang: kernels for a norm with its residual sum, gates, and rotations",
        .source = "vLLM csrc/layernorm_kernels.cu (fused_add_rms_norm), "
                  "csrc/activation_kernels.cu (silu_and_mul), csrc/pos_encoding_kernels.cu; "
                  "products: vllm/model_executor/layers/linear.py (QKVParallelLinear, "
                  "MergedColumnParallelLinear), models/deepseek_v2.py (fused_qkv_a_proj)",
        .joins = PRODUCT_JOINS_ALL,
        .joins_latents = true,
        .functions_apart = true,
        .rotates_apart = true,
    },
    {
        .name = "attending",
        .help = "TensorRT-LLM: kernels for a norm with its residual sum and for gates; attention "
                "rotates its own queries and keys, or norms of these rotate them",
        .source = "TensorRT-LLM docs/source/advanced/gpt-attention.md (rotary embedding in the "
                  "attention plugin), cpp/tensorrt_llm/kernels/fusedQKNormRopeKernel.cu; products: "
                  "tensorrt_llm/_torch/modules/attention.py (qkv_proj, kv_a_proj_with_mqa), "
                  "gated_mlp.py (gate_up_proj)",
        .joins = PRODUCT_JOINS_ALL,
        .joins_latents = true,
        .functions_apart = true,
        .norms_rotate = true,
    },
};

/*
 * Passes over the logits of a rank, forward and backward. Numbers of a row, such as its maximum,
 * are not counted.
 *
 * native: to fp32 with the maximum (2, 4); less the maximum, exponential and sum (4, 4); over the
 * sum (4, 4); times the gradient of the loss, and to bf16 (4, 4 and 2).
 *
 * te: maximum and sum at once (2); the gradient in place of the logits (2, 2); times the gradient
 * of the loss (2, 2), which a step always has, as the loss is a mean of tokens. From 2.18 on the
 * gradient is an array in fp32.
 *
 * flash_attn: maximum and sum at once (2); the gradient, times that of the loss (2, 2).
 *
 * composer: the same, and behind the backward pass of each microbatch PyTorch's own loss for each
 * of two metrics, without gradients: to fp32 (2, 4), logarithm of the softmax (4, 4).
 */
static const struct loss_kernels losses[LOSS_FUSION_COUNT] = {
    [LOSS_FUSION_NATIVE] =
        {
            .help = "Megatron-Core's, in parts that torch compiles",
            .source = "Megatron-LM megatron/core/fusions/fused_cross_entropy.py at 50b073cc",
            .made = {4, 12, 16},
            .kept_bytes = 4,
        },
    [LOSS_FUSION_TE] =
        {
            .help = "Transformer Engine's, whose gradient replaces the logits",
            .source = "TransformerEngine transformer_engine/common/triton/cross_entropy.py and "
                      "transformer_engine/pytorch/triton/cross_entropy.py before 01bbe3ee (2.18)",
            .made = {3, 4, 2},
            .kept_bytes = 0,
        },
    [LOSS_FUSION_FLASH_ATTN] =
        {
            .help = "FlashAttention's, in one kernel forward and one backward",
            .source = "flash-attention flash_attn/ops/triton/cross_entropy.py at 2.5",
            .made = {2, 2, 0},
            .kept_bytes = 2,
        },
    [LOSS_FUSION_COMPOSER] =
        {
            .help = "FlashAttention's, and the loss twice more for the metrics of Composer",
            .source = "mosaicml/composer at v0.17.2: composer/trainer/trainer.py "
                      "(_eval_train_metrics), composer/metrics/nlp.py (LanguageCrossEntropy, "
                      "LanguagePerplexity); mosaicml/llm-foundry at 5e85bd62: "
                      "llmfoundry/models/mpt/modeling_mpt.py (use_train_metrics)",
            .made = {6, 14, 16},
            .kept_bytes = 2,
        },
};

const char *const product_joins_names[] = {"none", "qkv", "all", NULL};

const char *const loss_fusion_names[] = {
#define X(name, word) word,
    LOSS_FUSION_TABLE(X)
#undef X
        NULL};

const char *const gradient_sums_names[] = {
#define X(name, word) word,
    GRADIENT_SUMS_TABLE(X)
#undef X
        NULL};

/*
 * apart: a kernel reads the gradient and the sum, and writes the sum (Megatron-LM
 * megatron/model/distributed.py at 8044c7b4, main_grad.add_; PyTorch's AccumulateGrad).
 *
 * cast: the gradient is first an array in the format of the sum (DeepSpeed
 * deepspeed/runtime/bf16_optimizer.py at 5fe9d610, update_hp_grads).
 */
struct function_pass fusion_sums(enum gradient_sums sums, uint8_t bytes, uint8_t sum_bytes)
{
    struct function_pass pass = {0, 0, 0};
    if (sums == GRADIENT_SUMS_FUSED) return pass;
    bool const casts = sums == GRADIENT_SUMS_CAST && bytes != sum_bytes;
    pass.kernels = casts ? 2 : 1;
    pass.read_bytes = (uint8_t)(bytes + (casts ? 2 : 1) * sum_bytes);
    pass.write_bytes = (uint8_t)((casts ? 2 : 1) * sum_bytes);
    return pass;
}

const struct loss_kernels *loss_kernels_of(enum loss_fusion fusion)
{
    return fusion > LOSS_FUSION_NONE && fusion < LOSS_FUSION_COUNT ? &losses[fusion] : NULL;
}

const struct fusion *fusion_at(uint32_t index)
{
    return index < sizeof fusion_list / sizeof *fusion_list ? &fusion_list[index] : NULL;
}

struct function_pass fusion_pass(const struct fusion *fusion, enum work_function function,
                                 bool backward)
{
    struct function_pass pass = {0, 0, 0};
    if (fusion != NULL) pass = (backward ? fusion->backward : fusion->forward)[function];
    if (pass.kernels == 0) pass.kernels = 1;
    return pass;
}

struct function_pass fusion_permute(const struct fusion *fusion, bool sums, bool backward)
{
    const struct expert_kernels *experts = &fusion->experts;
    struct function_pass made = (sums ? experts->unpermute : experts->permute)[backward];
    if (made.kernels == 0 && fusion_permute_each(fusion, sums, backward) == 0) made.kernels = 1;
    return made;
}

uint32_t fusion_permute_each(const struct fusion *fusion, bool sums, bool backward)
{
    const struct expert_kernels *experts = &fusion->experts;
    return (sums ? experts->unpermute_each : experts->permute_each)[backward];
}

struct function_pass fusion_gradient_norm(const struct fusion *fusion)
{
    struct function_pass norm = fusion->gradient_norm;
    if (norm.kernels == 0) norm.kernels = 1;
    return norm;
}

struct function_pass fusion_update(const struct fusion *fusion, bool clips)
{
    struct function_pass made = fusion_pass(fusion, WORK_FUNCTION_UPDATE, /* backward= */ false);
    if (!clips) return made;
    made.kernels = (uint8_t)(made.kernels + fusion->clipping.kernels);
    made.read_bytes = (uint8_t)(made.read_bytes + fusion->clipping.read_bytes);
    made.write_bytes = (uint8_t)(made.write_bytes + fusion->clipping.write_bytes);
    return made;
}

struct function_pass fusion_norm(const struct fusion *fusion, bool centred, bool backward)
{
    struct function_pass pass = {0, 0, 0};
    if (fusion != NULL && centred) pass = backward ? fusion->layernorm_backward : fusion->layernorm;
    return pass.kernels != 0 ? pass : fusion_pass(fusion, WORK_FUNCTION_NORM, backward);
}

/* apex apex/contrib/csrc/layer_norm/ln_bwd_kernels.cuh: ln_bwd_kernel, ln_bwd_finalize_kernel. */
struct function_pass fusion_persistent_norm(bool backward)
{
    return (struct function_pass){backward ? 2 : 1, 0, 0};
}

bool fusion_splits_loss(const struct fusion *fusion)
{
    return fusion != NULL && fusion->forward[WORK_FUNCTION_LOSS].kernels > 1;
}

struct function_pass fusion_loss(const struct fusion *fusion, enum loss_fusion loss)
{
    const struct loss_kernels *kernels = loss_kernels_of(loss);
    if (kernels != NULL && fusion_splits_loss(fusion)) return kernels->made;
    return fusion_pass(fusion, WORK_FUNCTION_LOSS, /* backward= */ false);
}
