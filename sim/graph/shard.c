#include "sim/graph/shard.h"

#include "sim/graph/op.h"

struct graph_shard graph_product_shard(const struct graph *graph,
                                       const struct graph_product *product)
{
    const struct graph_tensor *out = &graph->tensor[product->out];
    uint32_t const tp = graph->terms->axis_y | graph->terms->axis_w;
    struct sharding_product of;
    struct error error;
    enum status const status =
        sharding_multiply(&graph->terms->mesh, &graph->tensor[product->left].at,
                          &graph->tensor[product->weight].at, &out->at, &of, &error);
    SIM_ASSERT(status == STATUS_OK);
    return (struct graph_shard){
        .gather = (of.gather_left | of.gather_result) & tp,
        .scatter = of.scatter & tp,
        .all_reduce = of.all_reduce & ~out->at.unreduced & tp,
    };
}

static struct graph_shard plain_shard(const struct graph *graph, const struct graph_op *op)
{
    if (op->in_count == 0) return (struct graph_shard){.gather = 0};
    const struct sharding *in = &graph->tensor[op->in[0]].at, *out = &graph->tensor[op->out[0]].at;
    uint32_t const ended = in->unreduced & ~out->unreduced, split = sharding_axes(out);
    return (struct graph_shard){
        .gather = sharding_axes(in) & ~split,
        .scatter = ended & split,
        .all_reduce = ended & ~split,
    };
}

/* Where every rank of tp has all rows between blocks, products that read these have parts of the
 * columns, so the gradient that they give is a sum. */
static uint32_t summed_of(const struct graph *graph, const struct graph_op *op, tensor in)
{
    const struct graph_terms *terms = graph->terms;
    bool const training = terms->policy.replicated && !terms->cache.is_there;
    return training && op->kind->weights_apart && sharding_has(&graph->tensor[in].at, "D")
               ? terms->axis_y
               : 0;
}

void graph_shard(const struct graph *graph, struct graph_sharded *ret_sharded)
{
    *ret_sharded = (struct graph_sharded){.graph = graph};
    for (uint8_t i = 0; i < graph->op_count; i++) {
        const struct graph_op *op = &graph->op[i];
        uint32_t const parts = graph->terms->sequence.parts;
        bool const shares = op->kind->shares_sequence && parts > 1;
        ret_sharded->op[i] = (op->kind->shard != NULL ? op->kind->shard : plain_shard)(graph, op);
        for (uint8_t in = 0; in < op->in_count; in++) {
            ret_sharded->gathered[op->in[in]] |=
                ret_sharded->op[i].gather & sharding_axes(&graph->tensor[op->in[in]].at);
            ret_sharded->summed[op->in[in]] |= summed_of(graph, op, op->in[in]);
            if (shares && in > 0)
                ret_sharded->whole[op->in[in]] = op->kind->passes_round ? 2 : parts;
        }
    }
}

uint32_t graph_scattered(const struct graph_sharded *sharded, const struct graph_op *op, tensor of)
{
    return graph_shard_of(sharded, op)->scatter & sharding_axes(&sharded->graph->tensor[of].at);
}

uint32_t graph_all_reduced(const struct graph_sharded *sharded, const struct graph_op *op,
                           tensor of)
{
    return graph_shard_of(sharded, op)->all_reduce & ~sharding_axes(&sharded->graph->tensor[of].at);
}

uint64_t graph_gathered_elements(const struct graph_sharded *sharded, tensor of)
{
    const struct graph *graph = sharded->graph;
    uint64_t const elements = graph_elements(graph, &graph->tensor[of].at, sharded->gathered[of]);
    return sharded->whole[of] != 0 ? elements * sharded->whole[of] : elements;
}
