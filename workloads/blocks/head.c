/*
 * The final norm, the head, and the loss; in inference the next tokens. The head's matrix lies as
 * the embedding's does, so that tied ones are the same array: a rank of tp has the logits of its
 * part of the vocabulary. Nothing of it is repeated, as its backward pass follows at once: what
 * comes to the product is kept as it was gathered. Logits may be capped before loss or sampling
 * (Gemma 2, arXiv 2408.00118, 2), which the kernel of the loss, or of the sampling, does on the
 * way.
 */
#include "sim/graph/block.h"
#include "sim/graph/op.h"
#include "sim/graph/write.h"
#include "sim/model/model.h"

static bool applies(const struct graph_terms *terms, const struct model *model)
{
    (void)terms;
    return model->kind == MODEL_DECODER;
}

static tensor logits_write(struct graph *g, const struct model *model, tensor in, const char *text)
{
    struct graph_op *product = graph_matmul(g, "Logits");
    product->as.matmul.math = g->terms->formats.activations;
    tensor const logits = graph_product(
        g, in, model->tied ? "W_embedding[Vocab_Y, D_WX]" : "W_head[Vocab_Y, D_WX]", text);
    graph_set_biased(g, model->biases.head);
    graph_set_used(g, product->weight[0]);
    graph_set_names(g, "dIn", "dW");
    g->tensor[product->weight[0]].format = g->terms->formats.head;
    return logits;
}

/* Inference wants logits of some tokens alone, and their next ones. */
static void next_write(struct graph *g, const struct model *model, tensor in)
{
    const char *text = g->terms->policy.by_tokens    ? "Last[Bh_ZXY, D_W]"
                       : g->terms->policy.replicated ? "Last[Bh_ZX, D_W]"
                                                     : "Last[Bh_ZX, D_WY]";
    bool const all =
        graph_dimension_of(g->terms, "Bh")->padded == graph_dimension_of(g->terms, "B")->padded;
    if (!all) {
        graph_op(g, &op_kind_select, "Last", 1, &in);
        in = graph_result(g, text);
    }
    tensor const logits =
        logits_write(g, model, in, all ? "Logits[B_ZX, Vocab_Y]" : "Logits[Bh_ZX, Vocab_Y]");
    graph_op(g, &op_kind_sample, "Sample", 1, &logits);
    graph_block_output(g, graph_statistic(g, all ? "Next[B_ZX, Pick]" : "Next[Bh_ZX, Pick]"));
}

static void write(struct graph *g, const struct model *model)
{
    tensor const x = graph_residual(g);
    graph_norm(g, "norm");
    tensor const in = graph_normed(g, x, "In");
    graph_set_kept(g, in, GRAPH_REMAT_LAYER, GRAPH_REMAT_LAYER);
    if (g->terms->cache.is_there) {
        next_write(g, model, in);
        return;
    }
    tensor const logits = logits_write(g, model, in, "Logits[B_ZX, Vocab_Y]");
    graph_op(g, &op_kind_loss, "Loss", 1, &logits);
    tensor const gradient = graph_result(g, "dLogits[B_ZX, Vocab_Y]");
    graph_set_kept(g, gradient, GRAPH_REMAT_LAYER, GRAPH_REMAT_LAYER);
    graph_block_output(g, gradient);
    g->begins_backward = true;
}

const struct block block_head = {
    .name = "head",
    .prefix = "head.",
    .help = "logits of the vocabulary, and the loss",
    .source = "the book, chapter 4, 4.1; Megatron-LM, arXiv 1909.08053, 3",
    .bucket = "W_head",
    .place = BLOCK_GIVES_LOSS,
    .couples = true,
    .applies = applies,
    .write = write,
};
