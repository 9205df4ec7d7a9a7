/*
 * Types of models whose layers are modelled: what their config.json says beyond a llama's. Types
 * whose layers are known and not modelled: a type that becomes modelled leaves that table.
 */
#include <stddef.h>

#include "sim/base/json.h"
#include "sim/base/name.h"
#include "sim/model/model_read_parts.h"

/* --- Families without experts --- */

/* Q and K are normed head by head. */
static enum status read_qwen3(struct json *document, struct model *model, struct error *reterr)
{
    (void)document;
    (void)reterr;
    model->norms.qk = MODEL_QK_NORMS_SHARED;
    return STATUS_OK;
}

/* Q, K, V and O have biases, and each product of an MLP. */
static void bias_layer(struct model *model)
{
    model->biases.qkv = model->biases.o = model->biases.mlp = true;
}

/* Q, K and V have biases, O has none. */
static enum status read_qwen2(struct json *document, struct model *model, struct error *reterr)
{
    (void)document;
    (void)reterr;
    model->biases.qkv = true;
    return STATUS_OK;
}

/* Layernorms, an MLP without a gate, and biases everywhere unless `use_bias` is off. */
static enum status read_starcoder2(struct json *document, struct model *model, struct error *reterr)
{
    static const char *const mlps[] = {"default", NULL};
    static const char *const norms[] = {"layer_norm", NULL};
    struct json *mlp = model_take_set(document, "mlp_type");
    struct json *norm = model_take_set(document, "norm_type");
    uint32_t ignored = 0;
    bool biased = true;
    if (mlp != NULL) STATUS_TRY(json_choice(mlp, mlps, &ignored, reterr));
    if (norm != NULL) STATUS_TRY(json_choice(norm, norms, &ignored, reterr));
    STATUS_TRY(model_take_flag(document, "use_bias", true, &biased, reterr));
    model->matrices = 2;
    model_set_layernorms(model);
    if (!biased) return STATUS_OK;
    bias_layer(model);
    return STATUS_OK;
}

/* A decoder of 2019: learned positions, biases everywhere, an MLP without a gate, of four times the
 * width where the config does not say. */
static enum status read_gpt2(struct json *document, struct model *model, struct error *reterr)
{
    STATUS_TRY(
        model_need_count(document, "n_positions", UINT32_MAX, &model->positions.learned, reterr));
    model->matrices = 2;
    model_set_layernorms(model);
    bias_layer(model);
    return STATUS_OK;
}

/* A GPT-2 whose heads share one K and V, unless `multi_query` is off. Shazeer, arXiv 1911.02150. */
static enum status read_gpt_bigcode(struct json *document, struct model *model,
                                    struct error *reterr)
{
    bool shared = true;
    STATUS_TRY(model_take_flag(document, "multi_query", true, &shared, reterr));
    STATUS_TRY(read_gpt2(document, model, reterr));
    if (shared) model->kv_heads = 1;
    return STATUS_OK;
}

/* A GPT-2 with biases of scores by position in place of learned ones, and a norm behind the
 * embedding. The class knows no other width of the MLP than four times the model's.
 * BigScience, arXiv 2211.05100, 3.2.2. */
static enum status read_bloom(struct json *document, struct model *model, struct error *reterr)
{
    (void)document;
    (void)reterr;
    model->matrices = 2;
    model->mlp_width = 4 * model->width;
    model_set_layernorms(model);
    model->norms.embedding = true;
    model->attends.biases_scores = true;
    bias_layer(model);
    return STATUS_OK;
}

/* Q and K are normed head by head; an MLP without a gate, whose function has weights.
 * Project Apertus, arXiv 2509.14233, 2.1. */
static enum status read_apertus(struct json *document, struct model *model, struct error *reterr)
{
    static const char *const functions[] = {"xielu", NULL};
    struct json *function = model_take_set(document, "hidden_act");
    uint32_t ignored = 0;
    if (function != NULL) STATUS_TRY(json_choice(function, functions, &ignored, reterr));
    model->matrices = 2;
    model->xielu = true;
    return read_qwen3(document, model, reterr);
}

/* --- Experts, and shared ones behind a gate of their own --- */

/* One MLP as wide as some experts together. */
static enum status read_qwen2_moe(struct json *document, struct model *model, struct error *reterr)
{
    static const char key[] = "shared_expert_intermediate_size";
    uint64_t width = 0;
    STATUS_TRY(model_need_count(document, key, width_max, &width, reterr));
    STATUS_TRY(model_read_qwen3_moe(document, model, reterr));
    if (width % model->experts.width != 0)
        return model_refuse(json_take(document, key),
                            "a shared expert that is not as wide as some experts together,",
                            reterr);
    model->experts.shared = width / model->experts.width;
    model->experts.shared_gated = true;
    model->norms.qk = MODEL_QK_NORMS_NONE;
    return read_qwen2(document, model, reterr);
}

/* --- Norms behind attention and MLP --- */

/* Norms before and behind each; Q, K and V may have biases. */
static enum status read_glm4(struct json *document, struct model *model, struct error *reterr)
{
    bool biased = true;
    STATUS_TRY(model_take_flag(document, "attention_bias", true, &biased, reterr));
    model->norms.behind = true;
    return biased ? read_qwen2(document, model, reterr) : STATUS_OK;
}

/* Whether values pass through cap·tanh(value / cap). A key that is there and says nothing switches
 * the cap off; without the key transformers caps, or not, by the type of model. */
static enum status take_cap(struct json *document, const char *key, bool otherwise, bool *ret_caps,
                            struct error *reterr)
{
    static const double cap_max = 1 << 20;
    double cap = 0;
    struct json *value = json_take(document, key);
    enum json_kind const kind = value == NULL ? JSON_NULL : json_kind(value);
    bool const has_members = kind == JSON_OBJECT || kind == JSON_ARRAY;
    *ret_caps = value == NULL ? otherwise : has_members || !model_is_off(value);
    return value == NULL || !*ret_caps ? STATUS_OK : json_as_real(value, 0, cap_max, &cap, reterr);
}

static enum status take_caps(struct json *document, bool otherwise, struct model *model,
                             struct error *reterr)
{
    STATUS_TRY(take_cap(document, "attn_logit_softcapping", otherwise, &model->attends.caps_scores,
                        reterr));
    return take_cap(document, "final_logit_softcapping", otherwise, &model->caps_logits, reterr);
}

/* Norms before and behind each; scores and logits are capped. */
static enum status read_gemma2(struct json *document, struct model *model, struct error *reterr)
{
    model->norms.behind = true;
    return take_caps(document, true, model, reterr);
}

/* Norms of Q and K head by head in place of caps. Gemma Team, arXiv 2503.19786, 2. */
static enum status read_gemma3(struct json *document, struct model *model, struct error *reterr)
{
    struct json *both = json_take(document, "use_bidirectional_attention");
    if (both != NULL && !model_is_off(both))
        return model_refuse(both, "a decoder whose tokens attend to later ones", reterr);
    model->norms.behind = true;
    model->norms.qk = MODEL_QK_NORMS_SHARED;
    return take_caps(document, false, model, reterr);
}

/* Norms behind each and none before; Q and K are normed whole. Team OLMo, arXiv 2501.00656, 2.1. */
static enum status read_olmo2(struct json *document, struct model *model, struct error *reterr)
{
    (void)document;
    (void)reterr;
    model->norms.behind = model->norms.none_before = true;
    model->norms.qk = MODEL_QK_NORMS_WHOLE;
    return STATUS_OK;
}

/* --- Norms inside attention and MLP --- */

/* A norm before the last matrix of each. A file that says how weights are rounded is refused.
 * Microsoft, arXiv 2504.12285, 2. */
static enum status read_bitnet(struct json *document, struct model *model, struct error *reterr)
{
    (void)document;
    (void)reterr;
    model->norms.inside = true;
    return STATUS_OK;
}

/* --- All families --- */

static const struct model_keys falcon_keys = {
    "num_hidden_layers", "hidden_size", "num_attention_heads", "ffn_hidden_size", "activation"};
static const struct model_keys gpt2_keys = {"n_layer", "n_embd", "n_head", "n_inner",
                                            "activation_function"};

static const struct model_keys bloom_keys = {"n_layer", "hidden_size", "n_head", "n_inner",
                                             "activation_function"};
static const struct model_keys mpt_keys = {
    .layers = "n_layers", .width = "d_model", .heads = "n_heads"};
static const struct model_keys bloom_first_keys = {
    .layers = "num_hidden_layers", .width = "n_embed", .heads = "num_attention_heads"};

#define NAMES(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Of a head that classifies. */
#define SUMMARIES                                                                                  \
    "summary_type", "summary_use_proj", "summary_activation", "summary_proj_to_labels",            \
        "summary_first_dropout"

#define DEEPSEEK_KEYS                                                                              \
    NAMES("n_routed_experts", "num_routed_experts", "n_shared_experts", "num_experts_per_tok",     \
          "moe_intermediate_size", "moe_layer_freq", "first_k_dense_replace", "n_group",           \
          "topk_group", "q_lora_rank", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim",     \
          "v_head_dim", "num_nextn_predict_layers")

const struct model_family model_families[] = {
    {.type = "llama", .architectures = NAMES("LlamaForCausalLM", "LLaMAForCausalLM", "LlamaModel")},
    {.type = "mistral",
     .architectures = NAMES("MistralForCausalLM", "MistralModel"),
     .windows = MODEL_WINDOWS_ALL,
     .window = 4096},
    {.type = "gemma",
     .architectures = NAMES("GemmaForCausalLM", "GemmaModel"),
     .tied = true,
     .head_width = 256},
    {.type = "gemma2",
     .architectures = NAMES("Gemma2ForCausalLM", "Gemma2Model"),
     .tied = true,
     .keys = NAMES("attn_logit_softcapping", "final_logit_softcapping"),
     .ignored = NAMES("query_pre_attn_scalar", "sliding_window_size"), /* sliding_window counts. */
     .read = read_gemma2,
     .windows = MODEL_WINDOWS_PERIODIC,
     .window = 4096,
     .full_every = 2,
     .head_width = 256},
    {.type = "gemma3_text",
     .architectures = NAMES("Gemma3ForCausalLM", "Gemma3TextModel"),
     .tied = true,
     .keys =
         NAMES("attn_logit_softcapping", "final_logit_softcapping", "use_bidirectional_attention"),
     .ignored = NAMES("query_pre_attn_scalar", "rope_local_base_freq"),
     .read = read_gemma3,
     .windows = MODEL_WINDOWS_PERIODIC,
     .window = 4096,
     .full_every = 6,
     .head_width = 256,
     .stretched = true},
    {.type = "qwen3",
     .architectures = NAMES("Qwen3ForCausalLM", "Qwen3Model"),
     .read = read_qwen3,
     .windows = MODEL_WINDOWS_ABOVE,
     .window = 4096,
     .head_width = 128},
    {.type = "mixtral",
     .architectures = NAMES("MixtralForCausalLM", "MixtralModel"),
     .keys = NAMES("num_local_experts", "num_experts_per_tok"),
     .read = model_read_mixtral,
     .windows = MODEL_WINDOWS_ALL},
    {.type = "qwen3_moe",
     .architectures = NAMES("Qwen3MoeForCausalLM", "Qwen3MoeModel"),
     .keys = NAMES("num_experts", "num_experts_per_tok", "moe_intermediate_size",
                   "decoder_sparse_step", "mlp_only_layers"),
     .ignored = NAMES("max_window_layers"), /* Windows lie in all layers. */
     .read = model_read_qwen3_moe,
     .windows = MODEL_WINDOWS_USED,
     .window = 4096},
    {.type = "qwen2_moe",
     .architectures = NAMES("Qwen2MoeForCausalLM", "Qwen2MoeModel"),
     .keys = NAMES("num_experts", "num_experts_per_tok", "moe_intermediate_size",
                   "shared_expert_intermediate_size", "decoder_sparse_step", "mlp_only_layers"),
     .read = read_qwen2_moe,
     .windows = MODEL_WINDOWS_ABOVE,
     .window = 4096},
    {.type = "deepseek_v3",
     .architectures = NAMES("DeepseekV3ForCausalLM", "DeepseekV3Model"),
     .keys = DEEPSEEK_KEYS,
     .ignored = NAMES("qk_head_dim"), /* The sum of two that are read. */
     .read = model_read_deepseek_v3},
    {.type = "hunyuan",
     .architectures = NAMES("HunYuanForCausalLM", "HunYuanModel"),
     .keys = NAMES("num_experts", "moe_topk", "num_shared_expert", "use_mixed_mlp_moe",
                   "moe_intermediate_size", "moe_layer_num_skipped", "use_qk_norm", "use_cla",
                   "cla_share_factor", "attention_head_dim"),
     .ignored = NAMES("capacity_factor", "moe_drop_tokens", "moe_random_routing_dropped_token",
                      "org_vocab_size", "norm_type", "use_rotary_pos_emb", "enable_lm_head_fp32",
                      "eod_token_id", "im_start_id", "im_end_id", "text_start_id", "text_end_id",
                      "mask_init_id", "pad_id"),
     .read = model_read_hunyuan},
    {.type = "gpt_oss",
     .architectures = NAMES("GptOssForCausalLM", "GptOssModel"),
     .keys = NAMES("num_local_experts", "num_experts_per_tok", "attention_bias"),
     .ignored = NAMES("experts_per_token", /* As num_experts_per_tok. */
                      "num_experts", "initial_context_length", "swiglu_alpha", "swiglu_limit"),
     .read = model_read_gpt_oss,
     .windows = MODEL_WINDOWS_PERIODIC,
     .window = 128,
     .full_every = 2,
     .head_width = 64},
    {.type = "kimi_k2",
     .architectures = NAMES("DeepseekV3ForCausalLM", "KimiK2ForCausalLM"),
     .keys = DEEPSEEK_KEYS,
     .ignored = NAMES("qk_head_dim"),
     .read = model_read_deepseek_v3},
    {.type = "deepseek_v2",
     .architectures = NAMES("DeepseekV2ForCausalLM", "DeepseekV2Model"),
     .keys = NAMES("n_routed_experts", "q_lora_rank", "kv_lora_rank", "n_group", "topk_group"),
     .ignored = NAMES("qk_head_dim"),
     .read = model_read_deepseek_v2},
    {.type = "qwen2",
     .architectures = NAMES("Qwen2ForCausalLM", "Qwen2Model"),
     .read = read_qwen2,
     .windows = MODEL_WINDOWS_ABOVE,
     .window = 4096},
    {.type = "phi3",
     .architectures = NAMES("Phi3ForCausalLM", "Phi3Model"),
     .ignored = NAMES("partial_rotary_factor"),
     .windows = MODEL_WINDOWS_ALL},
    {.type = "starcoder2",
     .architectures = NAMES("Starcoder2ForCausalLM", "Starcoder2Model"),
     .tied = true,
     .keys = NAMES("use_bias", "mlp_type", "norm_type"),
     .ignored = NAMES("activation_function"), /* hidden_act counts. */
     .read = read_starcoder2,
     .windows = MODEL_WINDOWS_ALL},
    {.type = "granite",
     .architectures = NAMES("GraniteForCausalLM", "GraniteModel"),
     .ignored = NAMES("embedding_multiplier", "logits_scaling", "residual_multiplier",
                      "attention_multiplier")},
    {.type = "internlm2", .architectures = NAMES("InternLM2ForCausalLM", "InternLM2Model")},
    {.type = "gpt_bigcode",
     .architectures = NAMES("GPTBigCodeForCausalLM", "GPTBigCodeModel"),
     .tied = true,
     .keys = NAMES("n_positions", "multi_query"),
     .ignored = NAMES("n_ctx",          /* n_positions counts. */
                      "attention_type", /* multi_query counts. */
                      SUMMARIES, "inference_runner", "validate_runner_input", "max_batch_size",
                      "pad_key_length", "pre_allocate_kv_cache"),
     .read = read_gpt_bigcode,
     .names = &gpt2_keys},
    {.type = "gpt2",
     .architectures = NAMES("GPT2LMHeadModel", "GPT2Model"),
     .tied = true,
     .keys = NAMES("n_positions"),
     .ignored = NAMES("n_ctx", /* n_positions counts. */
                      SUMMARIES, "scale_attn_by_inverse_layer_idx", "reorder_and_upcast_attn"),
     .read = read_gpt2,
     .names = &gpt2_keys},
    {.type = "bloom",
     .architectures = NAMES("BloomForCausalLM", "BloomModel"),
     .tied = true,
     .ignored =
         NAMES("seq_length", "offset_alibi", "pretraining_tp", "skip_bias_add", "skip_bias_add_qkv",
               "bias_dropout_fusion", "masked_softmax_fusion", "attention_softmax_in_fp32"),
     .read = read_bloom,
     .names = &bloom_keys,
     .first_names = &bloom_first_keys},
    {.type = "mpt",
     .architectures = NAMES("MptForCausalLM", "MptModel", "MPTForCausalLM", "MPTModel"),
     .tied = true,
     .keys = NAMES("expansion_ratio", "max_seq_len", "learned_pos_emb", "no_bias", "attention_bias",
                   "norm_type", "attn_config", "ffn_config"),
     .ignored = NAMES("emb_pdrop", "embedding_fraction", "logit_scale", "init_config",
                      "init_device", "tokenizer_name", "fc_type", "use_pad_tok_in_ffn", "verbose"),
     .read = model_read_mpt,
     .names = &mpt_keys},
    {.type = "glm4",
     .architectures = NAMES("Glm4ForCausalLM", "Glm4Model"),
     .keys = NAMES("attention_bias"),
     .ignored = NAMES("partial_rotary_factor"),
     .read = read_glm4,
     .head_width = 128},
    {.type = "olmo2", .architectures = NAMES("Olmo2ForCausalLM", "Olmo2Model"), .read = read_olmo2},
    {.type = "olmo3",
     .architectures = NAMES("Olmo3ForCausalLM", "Olmo3Model"),
     .read = read_olmo2,
     .windows = MODEL_WINDOWS_PERIODIC,
     .window = 4096,
     .full_every = 4},
    {.type = "bitnet",
     .architectures = NAMES("BitNetForCausalLM", "BitNetModel"),
     .read = read_bitnet},
    {.type = "apertus",
     .architectures = NAMES("ApertusForCausalLM", "ApertusModel"),
     .keys = NAMES("hidden_act"),
     .ignored = NAMES("qk_norm"), /* The class norms Q and K whatever the key says. */
     .read = read_apertus},
    {.type = "cohere",
     .architectures = NAMES("CohereForCausalLM", "CohereModel"),
     .tied = true,
     .keys = NAMES("use_qk_norm"),
     .ignored = NAMES("logit_scale"),
     .read = model_read_cohere},
    {.type = "gpt_neox",
     .architectures = NAMES("GPTNeoXForCausalLM", "GPTNeoXModel"),
     .keys = NAMES("use_parallel_residual", "attention_bias"),
     .ignored = NAMES("rotary_pct", "rotary_emb_base", "classifier_dropout",
                      "attention_probs_dropout_prob", "hidden_dropout_prob"),
     .read = model_read_gpt_neox},
    {.type = "gptj",
     .architectures = NAMES("GPTJForCausalLM", "GPTJModel"),
     .ignored = NAMES("n_positions", "rotary", "rotary_dim", SUMMARIES),
     .read = model_read_gptj,
     .names = &gpt2_keys},
    {.type = "codegen",
     .architectures = NAMES("CodeGenForCausalLM", "CodeGenModel"),
     .ignored = NAMES("n_positions", "n_ctx", "rotary_dim", SUMMARIES),
     .read = model_read_gptj,
     .names = &gpt2_keys},
    {.type = "phi",
     .architectures = NAMES("PhiForCausalLM", "PhiModel"),
     .keys = NAMES("qk_layernorm"),
     .ignored = NAMES("partial_rotary_factor"),
     .read = model_read_phi},
    {.type = "falcon",
     .architectures = NAMES("FalconForCausalLM", "FalconModel"),
     .tied = true,
     .keys = NAMES("new_decoder_architecture", "parallel_attn", "multi_query", "num_kv_heads",
                   "num_ln_in_parallel_attn", "alibi", "bias"),
     .ignored = NAMES("apply_residual_connection_post_layernorm"),
     .read = model_read_falcon,
     .names = &falcon_keys},
    {.type = NULL},
};
_Static_assert(
    sizeof model_families / sizeof *model_families <= MODEL_FAMILIES_MAX,
    "the list of types that name_offer() searches has room for all and for the NULL at its end");

/* --- Types that are refused --- */

static const char unrotated[] = "attention without positions in some layers";
static const char images[] = "a tower for images";
static const char altup[] = "a stream in several copies (AltUp)";
static const char chunked[] = "attention within chunks of a sequence";
static const char linear[] = "linear attention";
static const char state_space[] = "a state space layer";

const struct model_refused_type model_refused_types[] = {
    {"cohere2", NULL, unrotated},
    {"gemma3", "vision_config", images},
    {"gemma3n_text", "altup_num_inputs", altup},
    {"gemma3n", "altup_num_inputs", altup},
    {"llama4_text", "attention_chunk_size", chunked},
    {"llama4", "attention_chunk_size", chunked},
    {"minimax_text_01", "attn_type_list", linear},
    {"minimax", "layer_types", linear},
    {"minimax", "attn_type_list", linear},
    {"qwen3_next", "linear_num_value_heads", linear},
    {"mamba", "state_size", state_space},
    {"mamba2", "state_size", state_space},
    {"jamba", "mamba_d_state", state_space},
    {NULL, NULL, NULL},
};
