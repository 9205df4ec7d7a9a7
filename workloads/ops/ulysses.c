/*
 * Ranks that share sequences exchange a part of each sequence with all heads for whole sequences
 * with a part of the heads, or back: an AllToAll of each input, and its own mirror backward. With
 * fewer KV heads than ranks each goes to as many ranks as share it.
 */
#include "sim/graph/op.h"

/* Whether an array has whole sequences and a part of the heads. */
static bool is_whole(const struct graph *graph, tensor of)
{
    return (sharding_axes(&graph->tensor[of].at) & graph->terms->axis_c) != 0;
}

/* What all ranks have for each other: whole sequences with all heads. */
static uint64_t elements_of(const struct graph *graph, tensor in, tensor out)
{
    tensor const whole = is_whole(graph, out) ? out : in;
    return graph_elements(graph, &graph->tensor[whole].at, graph->terms->axis_c);
}

static uint8_t moves(const struct graph_sharded *sharded, const struct graph_op *op,
                     enum op_pass pass, struct op_move ret_moves[OP_MOVES_MAX])
{
    const struct graph *graph = sharded->graph;
    SIM_ASSERT(op->in_count == op->out_count && op->in_count <= OP_MOVES_MAX);
    for (uint8_t i = 0; i < op->in_count; i++) {
        tensor const in = op->in[i], out = op->out[i];
        bool const gradient = !op_is_forward(pass), returns = is_whole(graph, in);
        enum format const format =
            gradient ? graph->tensor[out].gradient : graph->tensor[out].format;
        ret_moves[i] = (struct op_move){
            .kind = COLLECTIVE_ALL_TO_ALL,
            .axis = OP_AXIS_SEQUENCE,
            .format = format,
            .bytes = format_bytes(format, elements_of(graph, in, out)),
            .name = graph_moved_as(graph, returns ? out : in),
            .bare = true,
        };
        op_move_reads(&ret_moves[i], gradient ? out : in, gradient, /* full= */ false);
        op_move_writes(&ret_moves[i], gradient ? in : out, gradient, /* full= */ false);
    }
    return op->in_count;
}

const struct op_kind op_kind_ulysses = {
    .name = "ulysses",
    .help = "parts of sequences to whole sequences of some heads, or back",
    .source = "Jacobs et al., DeepSpeed Ulysses, arXiv 2309.14509",
    .moves = moves,
    .shard = op_shard_none,
    .passes_on = true,
};
