/*
 * model_keys.c: keys of a config.json that nothing reads. Some change no op, count or byte of a
 * training step; any other may, so it is refused unless it switches something off.
 *
 * Sources: PreTrainedConfig and GenerationConfig of Hugging Face's transformers, its configuration
 * classes of the families below, and the config.json of the published models.
 */
#include <stdbool.h>
#include <stddef.h>

#include "sim/base/json.h"
#include "sim/base/name.h"
#include "sim/model/model_read_parts.h"

enum { NAMES_MAX = 512 };

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

/* Keys that are read of more than one family: what a key that is written wrongly may have meant. */
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
    "n_layer",
    "n_embd",
    "n_head",
    "n_inner",
    "activation_function",
    NULL,
};

/* Whether the key changes nothing in models of the type. What begins with "_" is transformers'
 * own note, or a user's. */
static bool changes_nothing(const struct model_family *family, const char *key)
{
    const char *const *ignored = family->ignored;
    return key[0] == '_' || plain[name_find(key, plain)] != NULL ||
           (ignored != NULL && ignored[name_find(key, ignored)] != NULL);
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

/* A key of another family is no hint to itself. */
static void names_add(const char *const *keys, const char *but, const char *names[NAMES_MAX + 1],
                      uint32_t *count)
{
    for (; keys != NULL && *keys != NULL; keys++) {
        if (name_same(*keys, but)) continue;
        SIM_ASSERT(*count < NAMES_MAX);
        names[(*count)++] = *keys;
    }
}

/* All but one that are read of some family, or change nothing. */
static void known_keys(const char *but, const char *names[NAMES_MAX + 1])
{
    uint32_t count = 0;
    names_add(read_keys, but, names, &count);
    for (uint32_t i = 0; model_families[i].type != NULL; i++)
        names_add(model_families[i].keys, but, names, &count);
    names_add(plain, but, names, &count);
    names[count] = NULL;
}

enum status model_end(struct json *document, const struct model_family *family,
                      struct error *reterr)
{
    const char *key = NULL;
    for (struct json *value; (value = json_rest(document, &key)) != NULL;) {
        (void)json_take(document, key);
        if (changes_nothing(family, key) || model_is_off(value)) continue;
        const char *names[NAMES_MAX + 1];
        known_keys(key, names);
        return error_set(reterr, STATUS_UNSUPPORTED, json_where(value),
                         "\"%.64s\" is not known of models of type %s, and may change what a step "
                         "computes%s",
                         key, family->type,
                         name_offer(key, names, "; the nearest known key is \"", "\"", "").text);
    }
    return STATUS_OK;
}
