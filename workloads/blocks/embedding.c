/*
 * The embedding: a row of the table for each token, and, where a model learns them, one for its
 * position. A rank of tp looks up the tokens of its part of the vocabulary, so the rows are a sum
 * that ends in a ReduceScatter, like a block's.
 *
 * BLOOM norms the rows before the first layer (arXiv 2211.05100, 3.2.2; word_embeddings_layernorm
 * of BloomModel in transformers). The gradient of the norm reads the rows. All policies keep them:
 * what a framework repeats are layers.
 */
#include "sim/graph/block.h"
#include "sim/graph/write.h"
#include "sim/model/model.h"

static bool applies(const struct graph_terms *terms, const struct model *model)
{
    (void)terms;
    return model->kind == MODEL_DECODER;
}

static tensor normed_write(struct graph *g, tensor rows)
{
    graph_norm(g, "norm");
    return graph_normed(g, rows, "X");
}

static void write(struct graph *g, const struct model *model)
{
    /* Ranks with all rows add the rows by position to all, behind the sum. */
    bool const whole = g->terms->policy.replicated && !g->terms->cache.is_there;
    const char *positions =
        g->terms->policy.by_tokens || whole ? "W_position[P, D_WX]" : "W_position[P_Y, D_WX]";
    tensor const rows = graph_lookup(g, "W_embedding[Vocab_Y, D_WX]",
                                     model->positions.learned == 0 ? NULL : positions, "Rows");
    graph_set_names(g, NULL, "dW");
    graph_set_moved_as(g, rows, "Out");
    g->stream = model->norms.embedding ? normed_write(g, rows) : rows;
    graph_block_output(g, g->stream);
}

static void dimensions(const struct model *model, struct graph_terms *terms)
{
    graph_dimension_plain(terms, "P", model->positions.learned,
                          "positions that have a row of a table");
}

const struct block block_embedding = {
    .name = "embedding",
    .prefix = "embedding.",
    .help = "rows of the vocabulary's matrix, rows by position and a norm where a model has them",
    .source = "Megatron-LM, arXiv 1909.08053, 3; GPT-2's rows by position, Radford et al. 2019; "
              "BLOOM's norm, arXiv 2211.05100, 3.2.2",
    .bucket = "W_embedding",
    .place = BLOCK_LOOKS_UP,
    .applies = applies,
    .write = write,
    .dimensions = dimensions,
};
