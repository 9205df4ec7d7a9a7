/*
 * Rows go to the ranks that have their experts, or come back: an AllToAll over ep, and its own
 * mirror backward.
 */
#include "sim/graph/op.h"

static uint8_t moves(const struct graph_sharded *sharded, const struct graph_op *op,
                     enum op_pass pass, struct op_move ret_moves[OP_MOVES_MAX])
{
    const struct graph *graph = sharded->graph;
    const struct graph_tensor *out = &graph->tensor[op->out[0]];
    enum format const format = op_is_forward(pass) ? out->format : out->gradient;
    if (graph->terms->ranks_exchange == 1) return 0;
    ret_moves[0] = (struct op_move){
        .kind = COLLECTIVE_ALL_TO_ALL,
        .axis = OP_AXIS_EP,
        .format = format,
        .bytes = format_bytes(format, graph_elements(graph, &op->as.exchange.sent, 0)),
        .name = op->name,
        .bare = true,
        .spreads = op->as.exchange.spreads == op_is_forward(pass),
    };
    op_move_carries(&ret_moves[0], op, pass);
    return 1;
}

const struct op_kind op_kind_exchange = {
    .name = "exchange",
    .help = "tokens to the ranks of their experts, or back",
    .source = "GShard, arXiv 2006.16668, 3.2",
    .moves = moves,
    .passes_on = true,
};
