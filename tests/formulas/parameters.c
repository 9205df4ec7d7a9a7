/* Parameters of a model by closed formulas. */
#include "tests/formulas/parameters.h"

static uint64_t qk_columns(const struct model *model)
{
    return (model->heads + model->kv_heads) * model->head_width;
}

/* Biases of Q, K, V and O, and a sink for each head. */
uint64_t formula_attention_vectors(const struct model *model)
{
    uint64_t const values = model->kv_heads * model_value_width(model);
    if (model_has_mla(model)) return 0;
    return model->biases.qkv * (qk_columns(model) + values) + model->biases.o * model->width +
           model->attends.sinks * model->heads;
}

uint64_t formula_mlp_biases(const struct model *model)
{
    return model->biases.mlp * ((model->matrices - 1) * model->mlp_width + model->width);
}

/* MLA: DeepSeek-V2 (arXiv 2405.04434), 2.1: down and up for Q, and for K and V; both latents are
 * normed; the columns of K that are rotated come straight from the width. */
static uint64_t mla_matrices(const struct model *model)
{
    const struct model_mla *mla = &model->mla;
    uint64_t const queries = model->heads * model->head_width;
    uint64_t const values = model->heads * model_value_width(model);
    uint64_t const query = mla->query_rank == 0 ? model->width * queries
                                                : mla->query_rank * (model->width + queries + 1);
    uint64_t const down = model->width * (mla->kv_rank + mla->rope) + mla->kv_rank;
    uint64_t const up = mla->kv_rank * (model->heads * mla->plain + values);
    return query + down + up + values * model->width;
}

/* The book, 7.1.6: 2·K·H a layer; of MLA one latent with the columns that are rotated (DeepSeek-V2,
 * 2.1.2 and 2.1.3). */
static uint64_t cache_columns(const struct model *model)
{
    return model_has_mla(model) ? model->mla.kv_rank + model->mla.rope
                                : model->kv_heads * (model->head_width + model_value_width(model));
}

/* Layernorms of Q and K have biases, as those of all D: PhiAttention of transformers. */
static uint64_t qk_norms(const struct model *model)
{
    uint64_t const weights = model->norms.qk == MODEL_QK_NORMS_NONE     ? 0
                             : model->norms.qk == MODEL_QK_NORMS_SHARED ? 2 * model->head_width
                                                                        : qk_columns(model);
    return weights * (1 + model->norms.biases);
}

/* BitNet b1.58 norms what comes to O, and what comes to the last matrix of an MLP: BitNetAttention
 * and BitNetMLP of transformers. */
static uint64_t norm_inside(const struct model *model, uint64_t columns)
{
    return model->norms.inside ? (1 + model->norms.biases) * columns : 0;
}

/* xIELU (Huang and Schlag, arXiv 2411.13010) has two: XIELUActivation of transformers. */
static uint64_t function_weights(const struct model *model)
{
    return model->xielu && model->matrices == 2 ? 2 : 0;
}

static uint64_t attention_weights(const struct model *model)
{
    uint64_t const matrices =
        model_has_mla(model) ? mla_matrices(model) : 2 * model->width * qk_columns(model);
    uint64_t const inside = norm_inside(model, model->heads * model_value_width(model));
    return matrices + inside + qk_norms(model) + formula_attention_vectors(model);
}

static uint64_t expert_matrices(const struct model *model)
{
    return model->matrices * model->width * model->experts.width;
}

/* Shared experts are one MLP: DeepSeek-V2 (arXiv 2405.04434), 2.2, as its own code has it. */
uint64_t formula_shared_biases(const struct model *model)
{
    const struct model_experts *experts = &model->experts;
    if (!experts->biased || experts->shared == 0) return 0;
    return experts->shared * (model->matrices - 1) * experts->width + model->width;
}

static uint64_t expert_weights(const struct model *model)
{
    const struct model_experts *experts = &model->experts;
    uint64_t const biases =
        experts->biased ? (model->matrices - 1) * experts->width + model->width : 0;
    return expert_matrices(model) + biases;
}

/* A serial layer has two blocks, with a norm before each; side by side they are one block, with one
 * norm before both or one for each. A norm may lie behind each block, and none before. */
static uint64_t layer_norms(const struct model *model)
{
    uint64_t const blocks = model->parallel ? 1 : 2;
    uint64_t const before = model->parallel && model->norms.one_for_both ? 1 : 2;
    return (model->norms.none_before ? 0 : before) + (model->norms.behind ? blocks : 0);
}

/* Source of the formulas: the book, chapter 4, 4.2 (parameters of the MLP 3DF or 2DF, of attention
 * 2D(N+K)H, of the vocabulary DV) and 4.3.1 (E experts, of which k are active); norms have one
 * weight a channel. */
struct model_counts formula_parameters(const struct model *model)
{
    const struct model_experts *experts = &model->experts;
    struct model_counts counts = {.mlp_layers = model_dense_layers(model)};
    counts.expert_layers = model->layers - counts.mlp_layers;
    counts.mlp_layer = model->matrices * model->width * model->mlp_width +
                       formula_mlp_biases(model) + norm_inside(model, model->mlp_width) +
                       function_weights(model);
    if (model->kind == MODEL_DECODER) {
        uint64_t const matrix = model->vocabulary * model->width;
        counts.embedding = matrix;
        counts.head_matrix = model->tied ? 0 : matrix;
        counts.head = counts.head_matrix + model->biases.head * model->vocabulary;
        counts.attention_layer = attention_weights(model);
        counts.norm_final = (1 + model->norms.biases) * model->width;
        counts.norm_layer = layer_norms(model) * counts.norm_final;
        counts.norm_embedding = model->norms.embedding ? counts.norm_final : 0;
        counts.positions = model->positions.learned * model->width;
        counts.cache_columns = cache_columns(model);
        counts.attention_columns = model->heads * (model->head_width + model_value_width(model));
        counts.decode_columns = model_has_mla(model)
                                    ? model->heads * (2 * model->mla.kv_rank + model->mla.rope)
                                    : counts.attention_columns;
    }
    if (model_has_experts(model)) {
        counts.router_layer = experts->count * (model->width + experts->router_biased);
        counts.experts_layer = experts->count * expert_weights(model);
        counts.shared_layer =
            experts->shared * expert_matrices(model) + formula_shared_biases(model);
    }
    uint64_t const both = counts.attention_layer + counts.norm_layer;
    uint64_t const layer = both + counts.router_layer + counts.experts_layer + counts.shared_layer;
    uint64_t const idle = model_has_experts(model) ? counts.experts_layer / experts->count *
                                                         (experts->count - experts->top_k)
                                                   : 0;
    counts.total = counts.embedding + counts.positions + counts.norm_embedding + counts.head +
                   counts.norm_final + counts.mlp_layers * (both + counts.mlp_layer) +
                   counts.expert_layers * layer;
    counts.active = counts.total - counts.expert_layers * idle;
    /* DeepSeek-V3 (arXiv 2412.19437), 2.2: both inputs are normed, and projected from 2D to D; a
     * layer like the last; a norm before the head. */
    uint64_t const last = counts.expert_layers > 0 ? layer : both + counts.mlp_layer;
    counts.mtp_modules =
        model->mtp_modules * (2 * model->width * model->width + 3 * counts.norm_final + last);
    counts.mtp_active = counts.mtp_modules + model->mtp_modules * model->vocabulary * model->width -
                        model->mtp_modules * idle;
    return counts;
}
