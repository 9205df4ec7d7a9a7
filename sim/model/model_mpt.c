/*
 * Models of type mpt: a decoder whose attention and MLP have objects of their own in config.json.
 *
 * Two classes read such files. transformers' MptForCausalLM has ALiBi, an MLP of 4 D, all heads of
 * keys and values, and no biases, whatever a file says (transformers at 0206c7b0, modeling_mpt.py);
 * a file that says otherwise is refused. MosaicML's MPTForCausalLM, which files name under
 * `architectures`, does as they say, and has learned positions and biases by default
 * (mosaicml/llm-foundry at 49521837, llmfoundry/models/mpt/configuration_mpt.py and
 * modeling_mpt.py).
 */
#include <stddef.h>

#include "sim/base/json.h"
#include "sim/base/name.h"
#include "sim/model/model_read_parts.h"

static const int64_t positions_max = UINT32_MAX;
enum { POSITIONS_DEFAULT = 2048, RATIO_MAX = 1 << 10 };

/* What a file leaves to the class. */
struct defaults {
    bool alibi, without_biases;
    bool fixed; /* And nothing else. */
};

static enum status defaults_of(struct json *document, struct defaults *ret_defaults,
                               struct error *reterr)
{
    static const char *const foundry[] = {"MPTForCausalLM", "MPTModel", NULL};
    struct json *list = NULL;
    STATUS_TRY(model_take_list(document, "architectures", &list, reterr));
    *ret_defaults = (struct defaults){.alibi = true, .without_biases = true, .fixed = true};
    for (uint32_t i = 0; list != NULL && i < json_count(list); i++) {
        const char *name = NULL;
        STATUS_TRY(json_as_string(json_at(list, i), &name, reterr));
        if (foundry[name_find(name, foundry)] != NULL) *ret_defaults = (struct defaults){0};
    }
    return STATUS_OK;
}

/* --- Attention --- */

/* What changes no op, count or byte: how scores are computed and scaled, and positions that have
 * no weights. */
static const char *const attention_ignored[] = {
    "attn_impl",  "alibi_bias_max",   "softmax_scale",  "fused_qkv", "rope_theta", "rope_impl",
    "kv_n_heads", "rope_dail_config", "rope_hf_config", "verbose",   NULL,
};

/* Heads of keys and values. */
static enum status take_kv_heads(struct json *attention, struct model *model, struct error *reterr)
{
    enum { HEADS, ONE, GROUPS };
    static const char *const types[] = {[HEADS] = "multihead_attention",
                                        [ONE] = "multiquery_attention",
                                        [GROUPS] = "grouped_query_attention",
                                        NULL};
    struct json *const type = model_take_set(attention, "attn_type");
    uint32_t which = HEADS;
    if (type != NULL) STATUS_TRY(json_choice(type, types, &which, reterr));
    if (which == ONE) model->kv_heads = 1;
    if (which != GROUPS) return STATUS_OK;
    STATUS_TRY(model_need_count(attention, "kv_n_heads", heads_max, &model->kv_heads, reterr));
    if (model->heads % model->kv_heads == 0) return STATUS_OK;
    return error_set(reterr, STATUS_INVALID, json_where(json_take(attention, "kv_n_heads")),
                     "%llu key and value heads do not divide the %llu heads",
                     (unsigned long long)model->kv_heads, (unsigned long long)model->heads);
}

/* A window of -1 token is none. */
static enum status check_window(struct json *attention, struct error *reterr)
{
    struct json *const window = model_take_set(attention, "sliding_window_size");
    int64_t tokens = 0;
    if (window == NULL) return STATUS_OK;
    STATUS_TRY(json_as_integer(window, -1, INT64_MAX, &tokens, reterr));
    return tokens == -1 ? STATUS_OK : model_refuse(window, "attention within windows", reterr);
}

static enum status read_attention(struct json *attention, bool *alibi, bool *rope,
                                  struct model *model, struct error *reterr)
{
    static const struct model_family members = {.type = "mpt", .ignored = attention_ignored};
    bool normed = false;
    STATUS_TRY(json_as_object(attention, reterr));
    STATUS_TRY(take_kv_heads(attention, model, reterr));
    STATUS_TRY(model_take_flag(attention, "alibi", *alibi, alibi, reterr));
    STATUS_TRY(model_take_flag(attention, "rope", false, rope, reterr));
    STATUS_TRY(model_take_flag(attention, "qk_ln", false, &normed, reterr));
    if (normed) model->norms.qk = MODEL_QK_NORMS_WHOLE;
    STATUS_TRY(check_window(attention, reterr));
    return model_end(attention, &members, reterr);
}

/* --- MLP --- */

/* As wide as a multiple of the model that need not be whole. */
static enum status take_mlp_width(struct json *document, struct model *model, struct error *reterr)
{
    struct json *const ratio = model_take_set(document, "expansion_ratio");
    double times = 4;
    if (ratio != NULL) STATUS_TRY(json_as_real(ratio, 0, RATIO_MAX, &times, reterr));
    double const width = times * (double)model->width;
    model->mlp_width = (uint64_t)width;
    if (model->mlp_width > 0 && (double)model->mlp_width == width && width <= width_max)
        return STATUS_OK;
    return error_set(reterr, STATUS_INVALID,
                     json_where(ratio != NULL ? ratio : json_take(document, "d_model")),
                     "an MLP %g times as wide as the model has %g columns; they have to be a whole "
                     "number from 1 to %d",
                     times, width, width_max);
}

static enum status read_mlp(struct json *mlp, struct model *model, struct error *reterr)
{
    enum { PLAIN, GATED };
    static const char *const types[] = {[PLAIN] = "mptmlp", [GATED] = "mptglu", NULL};
    static const char *const ignored[] = {"fc_type", NULL};
    static const struct model_family members = {.type = "mpt", .ignored = ignored};
    uint32_t which = PLAIN;
    STATUS_TRY(json_as_object(mlp, reterr));
    struct json *const type = model_take_set(mlp, "ffn_type");
    if (type != NULL) STATUS_TRY(json_choice(type, types, &which, reterr));
    if (which == GATED) model->matrices = 3;
    return model_end(mlp, &members, reterr);
}

/* --- Norms, biases, positions --- */

static enum status read_norms(struct json *document, bool without_biases, struct model *model,
                              struct error *reterr)
{
    enum { LAYERNORMS = 2 }; /* The first two. */
    static const char *const norms[] = {"low_precision_layernorm", "layernorm",      "rmsnorm",
                                        "low_precision_rmsnorm",   "triton_rmsnorm", NULL};
    struct json *const norm = model_take_set(document, "norm_type");
    uint32_t which = 0;
    bool biased = false;
    if (norm != NULL) STATUS_TRY(json_choice(norm, norms, &which, reterr));
    STATUS_TRY(model_take_flag(document, "no_bias", without_biases, &without_biases, reterr));
    STATUS_TRY(model_take_flag(document, "attention_bias", !without_biases, &biased, reterr));
    model->norms.centred = which < LAYERNORMS;
    model->norms.biases = model->norms.centred && !without_biases;
    model->biases.qkv = biased;
    model->biases.o = model->biases.mlp = !without_biases;
    return STATUS_OK;
}

static enum status read_positions(struct json *document, bool alibi, bool rope, struct model *model,
                                  struct error *reterr)
{
    bool learned = true;
    STATUS_TRY(model_take_count(document, "max_seq_len", positions_max, POSITIONS_DEFAULT,
                                &model->positions.most, reterr));
    STATUS_TRY(model_take_flag(document, "learned_pos_emb", true, &learned, reterr));
    model->attends.biases_scores = alibi;
    if (alibi && rope)
        return model_refuse(json_take(json_take(document, "attn_config"), "rope"),
                            "rotation by position where scores have biases by position", reterr);
    if (alibi || rope) return STATUS_OK;
    if (!learned)
        return model_refuse(json_take(document, "learned_pos_emb"), "attention without positions",
                            reterr);
    model->positions.learned = model->positions.most;
    return STATUS_OK;
}

/* Refuses what the class of transformers has not. */
static enum status check_fixed(struct json *document, bool rope, const struct model *model,
                               struct error *reterr)
{
    struct json *const architectures = json_take(document, "architectures");
    bool const biased = model->biases.qkv || model->biases.o || model->biases.mlp;
    if (!biased && !rope && model->attends.biases_scores && model->kv_heads == model->heads &&
        model->norms.qk == MODEL_QK_NORMS_NONE && model->matrices == 2 &&
        model->mlp_width == 4 * model->width && model->norms.biases == 0)
        return STATUS_OK;
    return error_set(
        reterr, STATUS_UNSUPPORTED,
        json_where(architectures != NULL ? architectures : json_take(document, "model_type")),
        "MptForCausalLM of transformers has ALiBi, an MLP 4 times as wide as the "
        "model, all heads of keys and values and no biases, whatever the file says; "
        "a file of MosaicML's class has \"architectures\": [\"MPTForCausalLM\"]");
}

enum status model_read_mpt(struct json *document, struct model *model, struct error *reterr)
{
    struct defaults defaults;
    STATUS_TRY(defaults_of(document, &defaults, reterr));
    struct json *const attention = model_take_set(document, "attn_config");
    struct json *const mlp = model_take_set(document, "ffn_config");
    bool alibi = defaults.alibi, rope = false;
    model->matrices = 2;
    STATUS_TRY(take_mlp_width(document, model, reterr));
    if (attention != NULL) STATUS_TRY(read_attention(attention, &alibi, &rope, model, reterr));
    if (mlp != NULL) STATUS_TRY(read_mlp(mlp, model, reterr));
    STATUS_TRY(read_norms(document, defaults.without_biases, model, reterr));
    STATUS_TRY(read_positions(document, alibi, rope, model, reterr));
    return defaults.fixed ? check_fixed(document, rope, model, reterr) : STATUS_OK;
}
