#include "sim/workload/model.h"

/* Source of the formulas: the book, chapter 4, 4.2 (parameters of the MLP 3DF or 2DF, of attention
 * 2D(N+K)H, of the vocabulary DV); norms have one weight a channel. */
struct model_counts model_count(const struct model *model)
{
    struct model_counts counts = {0};
    counts.mlp_layer = model->matrices * model->width * model->mlp_width;
    if (model->kind == MODEL_LLAMA) {
        uint64_t const matrix = model->vocabulary * model->width;
        counts.embedding = matrix;
        counts.head = model->tied ? 0 : matrix;
        counts.attention_layer =
            2 * model->width * (model->heads + model->kv_heads) * model->head_width;
        counts.norm_layer = 2 * model->width;
        counts.norm_final = model->width;
    }
    counts.total = counts.embedding + counts.head + counts.norm_final +
                   model->layers * (counts.attention_layer + counts.mlp_layer + counts.norm_layer);
    return counts;
}

double model_attention_flop(const struct model *model, uint64_t tokens, uint64_t length)
{
    if (model->kind == MODEL_MLP) return 0.0;
    return 12.0 * (double)tokens * (double)length * (double)model->heads *
           (double)model->head_width * (double)model->layers;
}
