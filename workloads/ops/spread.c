/*
 * Ranks that hold the same heads of keys keep a part of the cache each, and attend for one another:
 * their queries go to who has the rows, and what is found comes back.
 *
 * By batch a rank keeps the rows of some sequences: an AllToAll exchanges all sequences with a part
 * of the heads for a part of the sequences with all heads, and another one brings it back. By
 * sequence a rank keeps a part of each: an AllGather brings all heads, and a ReduceScatter merges
 * what was found of each part, in fp32 with the maximum and the sum of its scores. Ranks of tp_d
 * have all heads of their part already, and all want what is found: an AllReduce merges it. Ranks
 * of cp have all heads of other tokens: an AllGather brings these, and a ReduceScatter merges what
 * is found for them. Of prompts, of which each has a part, an AllGather brings the rows.
 */
#include "sim/graph/op.h"
#include "workloads/ops/attention_scores.h"

static uint64_t elements_of(const struct graph *graph, tensor of)
{
    return graph_elements(graph, &graph->tensor[of].at, 0);
}

/* Heads of an array [tokens, heads, width]. */
static uint64_t heads_of(const struct graph *graph, tensor of)
{
    const struct sharding *at = &graph->tensor[of].at;
    return elements_of(graph, of) / at->dimension[2].size;
}

static bool merges(const struct graph_op *op)
{
    return op->as.spread.kind == COLLECTIVE_REDUCE_SCATTER ||
           op->as.spread.kind == COLLECTIVE_ALL_REDUCE;
}

/* What is merged has the range and the digits of a sum. */
static enum format format_of(const struct graph *graph, const struct graph_op *op)
{
    return merges(op) ? FORMAT_FP32 : graph->tensor[op->out[0]].format;
}

/* Gathered arrays, each in its own format; of a cache with scales. */
static uint64_t gathered_bytes(const struct graph *graph, const struct graph_op *op)
{
    uint64_t bytes = 0;
    for (uint8_t i = 0; i < op->out_count; i++)
        bytes += graph_bytes(graph->tensor[op->in[i]].role, graph->tensor[op->out[i]].format,
                             elements_of(graph, op->out[i]));
    return bytes;
}

/* All sequences with some of the heads are exchanged for some sequences with all heads: the larger
 * array. Queries of prompts that stay lie in the one with some of the heads, too. */
static uint64_t exchanged_elements(const struct graph *graph, const struct graph_op *op)
{
    const struct sharding *in = &graph->tensor[op->in[0]].at, *out = &graph->tensor[op->out[0]].at;
    uint64_t const before = elements_of(graph, op->in[0]), behind = elements_of(graph, op->out[0]);
    bool const returns = in->dimension[1].size > out->dimension[1].size;
    if (op->serves == GRAPH_SERVES_ANSWERS) return returns ? before : behind;
    return before > behind ? before : behind;
}

/* What all ranks have for each other; the gathered arrays; the array before it is reduced. */
static uint64_t moved_bytes(const struct graph *graph, const struct graph_op *op)
{
    const struct graph_cache *cache = &graph->terms->cache;
    tensor const in = op->in[0];
    if (op->as.spread.kind == COLLECTIVE_ALL_TO_ALL)
        return format_bytes(format_of(graph, op),
                            exchanged_elements(graph, op) * cache->batch_ways);
    if (!merges(op)) return gathered_bytes(graph, op);
    return format_bytes(FORMAT_FP32,
                        elements_of(graph, in) + ATTENTION_STATISTICS * heads_of(graph, in));
}

static uint8_t moves(const struct graph_sharded *sharded, const struct graph_op *op,
                     enum op_pass pass, struct op_move ret_moves[OP_MOVES_MAX])
{
    ret_moves[0] = (struct op_move){
        .kind = op->as.spread.kind,
        .axis = op->as.spread.over_width      ? OP_AXIS_TP_D
                : op->as.spread.over_sequence ? OP_AXIS_SEQUENCE
                                              : OP_AXIS_HOLDERS,
        .format = format_of(sharded->graph, op),
        .bytes = moved_bytes(sharded->graph, op),
        .name = op->name,
    };
    op_move_carries(&ret_moves[0], op, pass);
    return 1;
}

const struct op_kind op_kind_spread = {
    .name = "spread",
    .help = "queries to the ranks that keep parts of the cache, or their results "
            "back",
    .source = "the book, chapter 7, 7.3.3; Pope et al., arXiv 2211.05102, 3.3; flash decoding, "
              "Dao et al. 2023",
    .moves = moves,
    .shard = op_shard_none,
    .passes_on = true,
};
