/* Families with attention and MLP side by side: what their config.json says beyond a llama's. */
#include "sim/base/json.h"
#include "sim/model/model_read_parts.h"

/* One norm for both; command-r-plus norms Q and K, with weights of each head. */
enum status model_read_cohere(struct json *document, struct model *model, struct error *reterr)
{
    bool normed = false;
    STATUS_TRY(model_take_flag(document, "use_qk_norm", false, &normed, reterr));
    model->parallel = true;
    model->norms.one_for_both = true;
    if (normed) model->norms.qk = MODEL_QK_NORMS_EACH;
    return STATUS_OK;
}

/* Layernorms, one for each half; biases everywhere, or in the MLP and the norms alone. */
enum status model_read_gpt_neox(struct json *document, struct model *model, struct error *reterr)
{
    bool parallel = true, biased = true;
    STATUS_TRY(model_take_flag(document, "use_parallel_residual", true, &parallel, reterr));
    STATUS_TRY(model_take_flag(document, "attention_bias", true, &biased, reterr));
    model->parallel = parallel;
    model->matrices = 2;
    model_set_layernorms(model);
    model->biases.mlp = true;
    model->biases.qkv = model->biases.o = biased;
    return STATUS_OK;
}

/* One layernorm for both, and biases of the MLP and of the head. */
enum status model_read_gptj(struct json *document, struct model *model, struct error *reterr)
{
    (void)document;
    (void)reterr;
    model->parallel = true;
    model->norms.one_for_both = true;
    model->matrices = 2;
    model_set_layernorms(model);
    model->biases.mlp = model->biases.head = true;
    return STATUS_OK;
}

/* The same with biases of attention; Q and K may have layernorms, head by head. */
enum status model_read_phi(struct json *document, struct model *model, struct error *reterr)
{
    bool normed = false;
    STATUS_TRY(model_take_flag(document, "qk_layernorm", false, &normed, reterr));
    STATUS_TRY(model_read_gptj(document, model, reterr));
    model->biases.qkv = model->biases.o = true;
    if (normed) model->norms.qk = MODEL_QK_NORMS_SHARED;
    return STATUS_OK;
}

/* Layernorms. Heads share one K and V, or, in the new architecture, groups of them do. There each
 * half has a norm of its own, unless `num_ln_in_parallel_attn` is 1. With `alibi` scores have
 * biases by position, and with `bias` all products. */
enum status model_read_falcon(struct json *document, struct model *model, struct error *reterr)
{
    bool parallel = true, shared = true, grouped = false, biased = false;
    uint64_t norms = 0, kv_heads = 0;
    STATUS_TRY(model_take_flag(document, "new_decoder_architecture", false, &grouped, reterr));
    STATUS_TRY(model_take_flag(document, "parallel_attn", true, &parallel, reterr));
    STATUS_TRY(model_take_flag(document, "multi_query", true, &shared, reterr));
    STATUS_TRY(model_take_flag(document, "alibi", false, &model->attends.biases_scores, reterr));
    STATUS_TRY(model_take_flag(document, "bias", false, &biased, reterr));
    STATUS_TRY(
        model_take_count(document, "num_kv_heads", heads_max, model->heads, &kv_heads, reterr));
    STATUS_TRY(
        model_take_count(document, "num_ln_in_parallel_attn", 2, grouped ? 2 : 1, &norms, reterr));
    model->matrices = 2;
    model_set_layernorms(model);
    if (biased) model->biases.qkv = model->biases.o = model->biases.mlp = true;
    model->kv_heads = grouped || !shared ? kv_heads : 1;
    if (model->heads % model->kv_heads != 0)
        return error_set(reterr, STATUS_INVALID, json_where(json_take(document, "num_kv_heads")),
                         "%llu key and value heads do not divide the %llu heads",
                         (unsigned long long)model->kv_heads, (unsigned long long)model->heads);
    if (!parallel && !grouped) return STATUS_OK;
    model->parallel = true;
    model->norms.one_for_both = norms == 1;
    return STATUS_OK;
}
