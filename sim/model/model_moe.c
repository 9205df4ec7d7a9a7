/* Families of models with experts: what their config.json says beyond a llama's. */
#include <stddef.h>

#include "sim/base/json.h"
#include "sim/base/units.h"
#include "sim/model/model_read_parts.h"

enum { WEIGHTS_BITS = 60 };

/* The place of a key, or of the whole where it was left out or goes by another name. */
static const char *where_of(struct json *document, const char *key)
{
    struct json *value = json_take(document, key);
    return json_where(value != NULL ? value : document);
}

/* Layer i has experts if i + 1 is a multiple of `decoder_sparse_step` and the list does not name
 * it. The list is modelled where it names the first of these layers; others that it names have no
 * experts anyway. Source: Qwen3MoeDecoderLayer of transformers'
 * models/qwen3_moe/modeling_qwen3_moe.py. */
static enum status read_sparse_layers(struct json *document, struct model *model,
                                      struct error *reterr)
{
    struct model_experts *experts = &model->experts;
    uint64_t step = 1, named = 0;
    STATUS_TRY(model_take_count(document, "decoder_sparse_step", layers_max, 1, &step, reterr));
    struct json *list = NULL;
    STATUS_TRY(model_take_list(document, "mlp_only_layers", &list, reterr));
    for (uint32_t i = 0; list != NULL && i < json_count(list); i++) {
        int64_t layer = 0;
        STATUS_TRY(json_as_integer(json_at(list, i), 0, layers_max, &layer, reterr));
        if (((uint64_t)layer + 1) % step != 0) continue;
        if ((uint64_t)layer + 1 != (named + 1) * step)
            return model_refuse(json_at(list, i), "a layer without experts after one with experts",
                                reterr);
        named++;
    }
    experts->dense_layers = (named + 1) * step - 1;
    if (step != 1) experts->step = step;
    return STATUS_OK;
}

/* A token goes to no more experts than there are; and some layer has them. */
static enum status check_experts(struct json *document, const struct model *model,
                                 struct error *reterr)
{
    const struct model_experts *experts = &model->experts;
    if (experts->top_k > experts->count)
        return error_set(reterr, STATUS_INVALID, where_of(document, "num_experts_per_tok"),
                         "a token cannot go to %llu of %llu experts",
                         (unsigned long long)experts->top_k, (unsigned long long)experts->count);
    units_wide weights = (units_wide)model->matrices * model->width * experts->width;
    weights *= (experts->count + experts->shared) * model->layers;
    if (weights >> WEIGHTS_BITS != 0)
        return error_set(reterr, STATUS_LIMIT, json_where(document),
                         "the experts would have 2^%d weights or more", WEIGHTS_BITS);
    if (experts->dense_layers >= model->layers)
        return error_set(reterr, STATUS_INVALID, json_where(document),
                         "none of the %llu layers has experts", (unsigned long long)model->layers);
    return STATUS_OK;
}

enum status model_read_mixtral(struct json *document, struct model *model, struct error *reterr)
{
    struct model_experts *experts = &model->experts;
    STATUS_TRY(
        model_need_count(document, "num_local_experts", experts_max, &experts->count, reterr));
    STATUS_TRY(
        model_need_count(document, "num_experts_per_tok", experts_max, &experts->top_k, reterr));
    experts->width = model->mlp_width;
    return check_experts(document, model, reterr);
}

enum status model_read_qwen3_moe(struct json *document, struct model *model, struct error *reterr)
{
    struct model_experts *experts = &model->experts;
    model->norms.qk = MODEL_QK_NORMS_SHARED;
    STATUS_TRY(model_need_count(document, "num_experts", experts_max, &experts->count, reterr));
    STATUS_TRY(
        model_need_count(document, "num_experts_per_tok", experts_max, &experts->top_k, reterr));
    STATUS_TRY(
        model_need_count(document, "moe_intermediate_size", width_max, &experts->width, reterr));
    STATUS_TRY(read_sparse_layers(document, model, reterr));
    return check_experts(document, model, reterr);
}

static enum status read_mla(struct json *document, struct model *model, struct error *reterr)
{
    struct model_mla *mla = &model->mla;
    STATUS_TRY(model_take_count(document, "q_lora_rank", width_max, 0, &mla->query_rank, reterr));
    STATUS_TRY(model_need_count(document, "kv_lora_rank", width_max, &mla->kv_rank, reterr));
    STATUS_TRY(model_need_count(document, "qk_nope_head_dim", head_width_max, &mla->plain, reterr));
    STATUS_TRY(model_need_count(document, "qk_rope_head_dim", head_width_max, &mla->rope, reterr));
    STATUS_TRY(
        model_need_count(document, "v_head_dim", head_width_max, &model->value_width, reterr));
    model->head_width = mla->plain + mla->rope;
    model->kv_heads = model->heads; /* Each has its own K and V, once they come from the latent. */
    return STATUS_OK;
}

/* A token's experts are in the best `topk_group` of `n_group` groups. */
static enum status read_groups(struct json *document, struct model *model, struct error *reterr)
{
    struct model_experts *experts = &model->experts;
    STATUS_TRY(model_take_count(document, "n_group", experts_max, 0, &experts->groups, reterr));
    STATUS_TRY(model_take_count(document, "topk_group", experts_max, experts->groups,
                                &experts->top_groups, reterr));
    struct json *top = model_take_set(document, "topk_group");
    if (experts->groups == 0 && top != NULL)
        return error_set(reterr, STATUS_INVALID, json_where(top),
                         "a token's experts are in the best %llu groups, and n_group does not say "
                         "of how many; without both a token goes to any",
                         (unsigned long long)experts->top_groups);
    if (experts->groups == 0) return STATUS_OK;
    if (experts->count % experts->groups != 0)
        return error_set(reterr, STATUS_INVALID, where_of(document, "n_group"),
                         "%llu experts do not make %llu equal groups",
                         (unsigned long long)experts->count, (unsigned long long)experts->groups);
    if (experts->top_groups > experts->groups)
        return error_set(reterr, STATUS_INVALID, where_of(document, "topk_group"),
                         "a token cannot go to %llu of %llu groups",
                         (unsigned long long)experts->top_groups,
                         (unsigned long long)experts->groups);
    if (experts->count / experts->groups * experts->top_groups < experts->top_k)
        return error_set(reterr, STATUS_INVALID, where_of(document, "topk_group"),
                         "%llu groups have fewer than the %llu experts that a token goes to",
                         (unsigned long long)experts->top_groups,
                         (unsigned long long)experts->top_k);
    if (experts->top_groups == experts->groups) experts->groups = experts->top_groups = 0;
    return STATUS_OK;
}

enum status model_read_deepseek_v2(struct json *document, struct model *model, struct error *reterr)
{
    struct model_experts *experts = &model->experts;
    /* Some copies of the file have other names. */
    const char *routed = json_take(document, "num_routed_experts") != NULL ? "num_routed_experts"
                                                                           : "n_routed_experts";
    const char *shared = json_take(document, "num_shared_experts") != NULL ? "num_shared_experts"
                                                                           : "n_shared_experts";
    uint64_t every = 1;
    STATUS_TRY(read_mla(document, model, reterr));
    STATUS_TRY(model_need_count(document, routed, experts_max, &experts->count, reterr));
    STATUS_TRY(model_take_count(document, shared, experts_max, 0, &experts->shared, reterr));
    STATUS_TRY(
        model_need_count(document, "num_experts_per_tok", experts_max, &experts->top_k, reterr));
    STATUS_TRY(
        model_need_count(document, "moe_intermediate_size", width_max, &experts->width, reterr));
    STATUS_TRY(model_take_count(document, "moe_layer_freq", layers_max, 1, &every, reterr));
    if (every != 1)
        return error_set(reterr, STATUS_UNSUPPORTED,
                         json_where(json_take(document, "moe_layer_freq")),
                         "a model in which only each n-th layer has experts is not modelled with "
                         "latent attention; models of qwen2_moe and qwen3_moe may have it");
    struct json *dense = model_take_set(document, "first_k_dense_replace");
    int64_t layers = 0;
    if (dense != NULL) STATUS_TRY(json_as_integer(dense, 0, layers_max, &layers, reterr));
    experts->dense_layers = (uint64_t)layers;
    STATUS_TRY(read_groups(document, model, reterr));
    struct json *more = model_take_set(document, "num_nextn_predict_layers");
    if (more != NULL) STATUS_TRY(json_as_integer(more, 0, layers_max, &layers, reterr));
    model->mtp_modules = more == NULL ? 0 : (uint64_t)layers;
    return check_experts(document, model, reterr);
}

/* A bias of each expert balances their load: arXiv 2412.19437, 2.1.2. */
enum status model_read_deepseek_v3(struct json *document, struct model *model, struct error *reterr)
{
    model->experts.router_biased = true;
    return model_read_deepseek_v2(document, model, reterr);
}

/* Biases everywhere, and a sink for each head besides its keys. */
enum status model_read_gpt_oss(struct json *document, struct model *model, struct error *reterr)
{
    struct model_experts *experts = &model->experts;
    bool biased = true;
    STATUS_TRY(
        model_need_count(document, "num_local_experts", experts_max, &experts->count, reterr));
    const char *top_k = json_take(document, "num_experts_per_tok") != NULL ? "num_experts_per_tok"
                                                                           : "experts_per_token";
    STATUS_TRY(model_need_count(document, top_k, experts_max, &experts->top_k, reterr));
    STATUS_TRY(model_take_flag(document, "attention_bias", true, &biased, reterr));
    experts->width = model->mlp_width;
    experts->biased = experts->router_biased = true;
    model->biases.qkv = model->biases.o = biased;
    model->attends.sinks = true;
    return check_experts(document, model, reterr);
}

/* Of each `cla_share_factor` layers the first computes keys and values, and the others attend to
 * its cache. Source: cross-layer attention, Brandon et al., arXiv 2405.12981; HunYuanDecoderLayer
 * of vLLM's models/hunyuan_v1.py, whose other layers have q_proj alone. */
static enum status read_sharing(struct json *document, struct model *model, struct error *reterr)
{
    uint64_t layers = 1;
    bool used = false;
    STATUS_TRY(model_take_flag(document, "use_cla", false, &used, reterr));
    STATUS_TRY(model_take_count(document, "cla_share_factor", layers_max, 1, &layers, reterr));
    for (uint64_t i = 0; used && i < model->layers; i++)
        model->by_layer.borrows[i] = i % layers != 0;
    return STATUS_OK;
}

/* One MLP, or experts with shared ones beside them. Source: HunYuanConfig and HunYuanMoE of
 * TensorRT-LLM's _torch/models/modeling_hunyuan_moe.py. */
enum status model_read_hunyuan(struct json *document, struct model *model, struct error *reterr)
{
    struct model_experts *experts = &model->experts;
    bool normed = false, mixed = false;
    uint64_t count = 1, shared = 1, skipped = 0;
    STATUS_TRY(read_sharing(document, model, reterr));
    STATUS_TRY(model_take_count(document, "attention_head_dim", head_width_max, model->head_width,
                                &model->head_width, reterr));
    STATUS_TRY(model_take_flag(document, "use_qk_norm", false, &normed, reterr));
    if (normed) model->norms.qk = MODEL_QK_NORMS_SHARED;
    STATUS_TRY(model_take_count(document, "num_experts", experts_max, 1, &count, reterr));
    STATUS_TRY(model_take_count(document, "moe_topk", experts_max, 1, &experts->top_k, reterr));
    STATUS_TRY(model_take_flag(document, "use_mixed_mlp_moe", false, &mixed, reterr));
    STATUS_TRY(model_take_count(document, "num_shared_expert", experts_max, 1, &shared, reterr));
    STATUS_TRY(model_take_count(document, "moe_intermediate_size", width_max, model->mlp_width,
                                &experts->width, reterr));
    if (model_take_set(document, "moe_layer_num_skipped") != NULL)
        STATUS_TRY(
            model_take_count(document, "moe_layer_num_skipped", layers_max, 0, &skipped, reterr));
    if (count == 1) {
        *experts = (struct model_experts){.count = 0};
        return STATUS_OK;
    }
    if (mixed && shared * model->mlp_width % experts->width != 0)
        return model_refuse(json_take(document, "moe_intermediate_size"),
                            "a shared expert that is not as wide as some experts together,",
                            reterr);
    experts->count = count;
    experts->shared = mixed ? shared * model->mlp_width / experts->width : 0;
    experts->dense_layers = skipped;
    return check_experts(document, model, reterr);
}
