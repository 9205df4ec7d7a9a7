/*
 * Ranks that share sequences turn a part of each sequence with all heads into whole sequences with
 * a part of the heads, or back: an AllToAll of each input, and its own mirror backward. With fewer
 * KV heads than ranks each goes to as many ranks as share it.
 */
#include "sim/graph/op.h"

/* What all ranks have for each other: whole sequences with all heads. */
static uint64_t elements_of(const struct graph *graph, tensor in, tensor out)
{
    uint32_t const axis = graph->terms->axis_c;
    const struct sharding *from = &graph->tensor[in].at, *to = &graph->tensor[out].at;
    return graph_elements(graph, (sharding_axes(to) & axis) != 0 ? to : from, axis);
}

static uint8_t moves(const struct graph_sharded *sharded, const struct graph_op *op,
                     enum op_pass pass, struct op_move ret_moves[OP_MOVES_MAX])
{
    const struct graph *graph = sharded->graph;
    SIM_ASSERT(op->in_count == op->out_count && op->in_count <= OP_MOVES_MAX);
    for (uint8_t i = 0; i < op->in_count; i++) {
        const struct graph_tensor *out = &graph->tensor[op->out[i]];
        enum format const format = op_is_forward(pass) ? out->format : out->gradient;
        ret_moves[i] = (struct op_move){
            .kind = COLLECTIVE_ALL_TO_ALL,
            .axis = OP_AXIS_SEQUENCE,
            .format = format,
            .bytes = format_bytes(format, elements_of(graph, op->in[i], op->out[i])),
            .carries = true,
            .of = i,
        };
    }
    return op->in_count;
}

const struct op_kind op_kind_ulysses = {
    .name = "turn",
    .help = "parts of sequences to whole sequences of some heads, or back",
    .source = "Jacobs et al., DeepSpeed Ulysses, arXiv 2309.14509",
    .moves = moves,
    .shard = op_shard_none,
    .passes_on = true,
};
