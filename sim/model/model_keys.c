/*
 * model_keys.c: keys of a config.json that nothing reads. Some change no op, count or byte of a
 * training step; any other may, so it is refused unless it switches something off.
 *
 * Sources: PreTrainedConfig and GenerationConfig of Hugging Face's transformers, its configuration
 * classes of the families below, and the config.json of the published models.
 */
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "sim/base/json.h"
#include "sim/base/name.h"
#include "sim/model/model_read_parts.h"

/* Of any model: names and versions, tokens, formats of the checkpoint, how a model is run, how text
 * is generated; rotary and other positions that have no weights; epsilons, scales and initial
 * values; dropout, which the workload sets; losses of a router. */
static const char *const plain[] = {
    "name_or_path",
    "architectures",
    "auto_map",
    "transformers_version",
    "transformers.js_config",
    "model_name",
    "torch_dtype",
    "dtype",
    "use_bfloat16",
    "torchscript",
    "tf_legacy_loss",
    "return_dict",
    "output_attentions",
    "output_hidden_states",
    "output_router_logits",
    "use_cache",
    "cache_implementation",
    "gradient_checkpointing",
    "keys_to_ignore_at_inference",
    "attn_implementation",
    "experts_implementation",
    "use_flash_attn",
    "pretraining_tp",
    "ep_size",
    "is_decoder",
    "pruned_heads",
    "vocab_file",
    "tokenizer_class",
    "bos_token_id",
    "eos_token_id",
    "pad_token_id",
    "sep_token_id",
    "cls_token_id",
    "unk_token_id",
    "mask_token_id",
    "decoder_start_token_id",
    "prefix",
    "finetuning_task",
    "task_specific_params",
    "problem_type",
    "id2label",
    "label2id",
    "num_labels",
    "max_length",
    "max_new_tokens",
    "min_length",
    "do_sample",
    "early_stopping",
    "num_beams",
    "num_beam_groups",
    "diversity_penalty",
    "temperature",
    "top_k",
    "top_p",
    "min_p",
    "typical_p",
    "repetition_penalty",
    "length_penalty",
    "no_repeat_ngram_size",
    "encoder_no_repeat_ngram_size",
    "bad_words_ids",
    "num_return_sequences",
    "output_scores",
    "return_dict_in_generate",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "remove_invalid_values",
    "exponential_decay_length_penalty",
    "suppress_tokens",
    "begin_suppress_tokens",
    "initializer_range",
    "rms_norm_eps",
    "norm_eps",
    "layer_norm_eps",
    "layer_norm_epsilon",
    "norm_epsilon",
    "max_position_embeddings",
    "original_max_position_embeddings",
    "max_sequence_length",
    "model_max_length",
    "rope_theta",
    "rope_scaling",
    "rope_parameters",
    "rope_type",
    "rope_interleave",
    "rope_interleaved",
    "attention_dropout",
    "hidden_dropout",
    "residual_dropout",
    "embedding_dropout",
    "resid_pdrop",
    "embd_pdrop",
    "attn_pdrop",
    "attention_softmax_in_fp32",
    "scale_attention_softmax_in_fp32",
    "scale_attn_weights",
    "router_aux_loss_coef",
    "router_jitter_noise",
    "aux_loss_alpha",
    "seq_aux",
    "routed_scaling_factor",
    "norm_topk_prob",
    "scoring_func",
    "topk_method",
    NULL,
};

/* Of models of one type. */
static const struct {
    const char *type, *key;
} own[] = {
    {"qwen3_moe", "max_window_layers"}, /* Windows lie in all layers. */
    {"deepseek_v2", "qk_head_dim"},     /* The sum of two that are read. */
    {"deepseek_v3", "qk_head_dim"},
    {"kimi_k2", "qk_head_dim"},
    {"gpt_oss", "experts_per_token"}, /* As num_experts_per_tok. */
    {"gpt_oss", "num_experts"},
    {"gpt_oss", "initial_context_length"},
    {"gpt_oss", "swiglu_alpha"},
    {"gpt_oss", "swiglu_limit"},
    {"phi3", "partial_rotary_factor"},
    {"starcoder2", "activation_function"}, /* hidden_act counts. */
    {"granite", "embedding_multiplier"},
    {"granite", "logits_scaling"},
    {"granite", "residual_multiplier"},
    {"granite", "attention_multiplier"},
    {"gpt2", "n_ctx"}, /* n_positions counts. */
    {"gpt2", "scale_attn_by_inverse_layer_idx"},
    {"gpt2", "reorder_and_upcast_attn"},
    {"gpt2", "summary_type"},
    {"gpt2", "summary_use_proj"},
    {"gpt2", "summary_activation"},
    {"gpt2", "summary_proj_to_labels"},
    {"gpt2", "summary_first_dropout"},
    {"gpt_bigcode", "n_ctx"},
    {"gpt_bigcode", "summary_type"},
    {"gpt_bigcode", "summary_use_proj"},
    {"gpt_bigcode", "summary_activation"},
    {"gpt_bigcode", "summary_proj_to_labels"},
    {"gpt_bigcode", "summary_first_dropout"},
    {"gpt_bigcode", "attention_type"}, /* multi_query counts. */
    {"gpt_bigcode", "inference_runner"},
    {"gpt_bigcode", "validate_runner_input"},
    {"gpt_bigcode", "max_batch_size"},
    {"gpt_bigcode", "pad_key_length"},
    {"gpt_bigcode", "pre_allocate_kv_cache"},
};

/* Keys that are read, of some family: what a key that is written wrongly may have meant. */
static const char *const read_keys[] = {
    "model_type",
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "vocab_size",
    "hidden_act",
    "tie_word_embeddings",
    "attention_bias",
    "mlp_bias",
    "sliding_window",
    "use_sliding_window",
    "max_window_layers",
    "layer_types",
    "num_local_experts",
    "num_experts",
    "num_experts_per_tok",
    "moe_intermediate_size",
    "decoder_sparse_step",
    "mlp_only_layers",
    "n_routed_experts",
    "n_shared_experts",
    "moe_layer_freq",
    "first_k_dense_replace",
    "n_group",
    "topk_group",
    "q_lora_rank",
    "kv_lora_rank",
    "qk_nope_head_dim",
    "qk_rope_head_dim",
    "v_head_dim",
    "num_nextn_predict_layers",
    "use_bias",
    "mlp_type",
    "norm_type",
    "multi_query",
    "n_layer",
    "n_embd",
    "n_head",
    "n_inner",
    "n_positions",
    "activation_function",
};
enum { READ_KEYS = sizeof read_keys / sizeof *read_keys };

/* Whether the key changes nothing in models of the type. What begins with "_" is transformers'
 * own note, or a user's. */
static bool changes_nothing(const char *type, const char *key)
{
    if (key[0] == '_') return true;
    if (plain[name_find(key, plain)] != NULL) return true;
    for (uint32_t i = 0; i < sizeof own / sizeof *own; i++)
        if (name_same(own[i].type, type) && name_same(own[i].key, key)) return true;
    return false;
}

bool model_is_off(struct json *value)
{
    struct error ignored = {0};
    bool flag = true;
    double number = 1;
    if (json_kind(value) == JSON_NULL) return true;
    if (json_kind(value) == JSON_ARRAY || json_kind(value) == JSON_OBJECT)
        return json_count(value) == 0;
    if (json_as_boolean(value, &flag, &ignored) == STATUS_OK) return !flag;
    return json_as_real(value, -1, 1, &number, &ignored) == STATUS_OK && number == 0;
}

enum status model_end(struct json *document, const struct model_family *family,
                      struct error *reterr)
{
    const char *key = NULL;
    for (struct json *value; (value = json_rest(document, &key)) != NULL;) {
        (void)json_take(document, key);
        if (changes_nothing(family->type, key) || model_is_off(value)) continue;
        const char *names[READ_KEYS + sizeof plain / sizeof *plain];
        uint32_t count = 0; /* A key of another family is no hint to itself. */
        for (uint32_t i = 0; i < READ_KEYS; i++)
            if (!name_same(read_keys[i], key)) names[count++] = read_keys[i];
        memcpy(&names[count], plain, sizeof plain);
        return error_set(reterr, STATUS_UNSUPPORTED, json_where(value),
                         "\"%.64s\" is not known of models of type %s, and may change what a step "
                         "computes%s",
                         key, family->type,
                         name_offer(key, names, "; the nearest known key is \"", "\"", "").text);
    }
    return STATUS_OK;
}
