/*
 * What a module that predicts a further token (MTP) has of its own. It joins what the module before
 * it gives, or the model's last layer, with the embedding of a token further on: both are normed,
 * and a matrix projects the two together, side by side, to D. A layer like the model's last
 * follows, and the model's own head.
 *
 * The inputs are gathered over tp, as Megatron's are, and the result is [B_X, D_Y], as between
 * blocks; where that is split by tokens it is gathered once more. Both inputs are kept. Their norms
 * come again, but not the projection.
 */
#include "sim/graph/block.h"
#include "sim/graph/op.h"
#include "sim/graph/write.h"
#include "sim/model/model.h"

static bool applies(const struct graph_terms *terms, const struct model *model)
{
    (void)terms;
    return model->mtp_modules != 0;
}

static tensor normed(struct graph *g, const char *name, const char *gradient, tensor in,
                     const char *text)
{
    graph_norm(g, name);
    graph_set_names(g, gradient, NULL);
    tensor const out = graph_normed(g, in, text);
    graph_set_linear(g, out);
    return out;
}

static void write(struct graph *g, const struct model *model)
{
    (void)model;
    bool const tokens = g->terms->policy.by_tokens;
    tensor const rows = graph_block_input(g), x = graph_shared_input(g);
    tensor const hidden = normed(g, "hnorm", "dHNorm", x, "Hidden");
    tensor const embedded = normed(g, "enorm", "dENorm", rows, "Embedded");
    graph_op(g, &op_kind_concat, "concat", 2, (const tensor[]){hidden, embedded});
    tensor const in = graph_result(g, tokens ? "In[B_ZXY, 2D]" : "In[B_ZX, 2D_Y]");
    graph_set_linear(g, in);
    /* Its halves are kept, or all of it as it was gathered. */
    graph_set_kept(g, in, GRAPH_REMAT_NEVER, g->tensor[in].kept_gathered);

    tensor const cast = graph_cast(g, in, "Cast In");
    graph_matmul(g, "Project");
    graph_set_names(g, "dIn", "dW");
    tensor const out = graph_product(g, cast, "W_mtp[2D_X, D_Y]", "Projected[B_ZX, D_Y]");
    graph_op(g, &op_kind_reshard, "Out", 1, &out);
    graph_block_output(g, graph_result(g, "Out"));
}

static void dimensions(const struct model *model, struct graph_terms *terms)
{
    graph_dimension_plain(terms, "2D", 2 * model->width, "columns of two arrays side by side");
}

const struct block block_mtp = {
    .name = "multi-token prediction",
    .prefix = "mtp.",
    .help = "one more token's embedding joins the layers' result, for one more "
            "layer and loss",
    .source = "DeepSeek-V3, arXiv 2412.19437, 2.2",
    .bucket = "W_mtp",
    .place = BLOCK_JOINS_EMBEDDING,
    .applies = applies,
    .write = write,
    .dimensions = dimensions,
};
