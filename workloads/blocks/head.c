/*
 * The final norm, the head, and the loss. The head's matrix lies as the embedding's does, so that
 * tied ones are the same array: a rank of tp has the logits of its part of the vocabulary. Nothing
 * of it is repeated, as its backward pass follows at once: what comes to the product is kept as it
 * was gathered.
 */
#include "sim/graph/block.h"
#include "sim/graph/op.h"
#include "sim/graph/write.h"
#include "sim/model/model.h"

static bool applies(const struct model *model, uint64_t layer)
{
    (void)layer;
    return model->kind == MODEL_DECODER;
}

static void write(struct graph *g, const struct model *model)
{
    tensor const x = graph_residual(g);
    graph_norm(g, "norm");
    tensor const in = graph_normed(g, x, "In");
    graph_set_kept(g, in, GRAPH_REMAT_LAYER, GRAPH_REMAT_LAYER);

    struct graph_op *product = graph_matmul(g, "Logits");
    product->as.matmul.math = g->terms->formats.activations;
    tensor const logits =
        graph_product(g, in, model->tied ? "W_embedding[Vocab_Y, D_X]" : "W_head[Vocab_Y, D_X]",
                      "Logits[B_ZX, Vocab_Y]");
    graph_set_used(g, product->weight[0]);
    graph_set_names(g, "dIn", "dW");

    graph_op(g, &op_kind_loss, "Loss", 1, &logits);
    tensor const gradient = graph_result(g, "dLogits[B_ZX, Vocab_Y]");
    graph_set_kept(g, gradient, GRAPH_REMAT_LAYER, GRAPH_REMAT_LAYER);
    graph_block_output(g, gradient);
    g->begins_backward = true;
}

const struct block block_head = {
    .name = "head",
    .prefix = "head.",
    .source = "the book, chapter 4, 4.1; Megatron-LM, arXiv 1909.08053, 3",
    .place = BLOCK_GIVES_LOSS,
    .couples = true,
    .applies = applies,
    .write = write,
};
