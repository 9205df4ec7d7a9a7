/*
 * The same array split along another dimension: all of it is gathered, and each rank of tp takes
 * its part. The gradient goes back in the same way. Where both are split alike there is nothing to
 * do.
 */
#include <string.h>

#include "sim/graph/op.h"

static bool split_alike(const struct sharding *a, const struct sharding *b)
{
    for (uint32_t d = 0; d < a->dimension_count; d++) {
        const struct sharding_dimension *one = &a->dimension[d], *other = &b->dimension[d];
        if (one->axis_count != other->axis_count ||
            memcmp(one->axis, other->axis, one->axis_count) != 0)
            return false;
    }
    return true;
}

static uint8_t moves(const struct graph_sharded *sharded, const struct graph_op *op,
                     enum op_pass pass, struct op_move ret_moves[OP_MOVES_MAX])
{
    const struct graph *graph = sharded->graph;
    const struct graph_tensor *in = &graph->tensor[op->in[0]], *out = &graph->tensor[op->out[0]];
    uint32_t const tp = graph->terms->axis_y;
    bool const forward = op_is_forward(pass);
    enum format const format = forward ? in->format : out->gradient;
    if (split_alike(&in->at, &out->at)) return 0;
    ret_moves[0] = (struct op_move){
        .kind = COLLECTIVE_ALL_GATHER,
        .axis = OP_AXIS_TP,
        .format = format,
        .bytes =
            format_bytes(format, graph_elements(graph, forward ? &in->at : &out->gradient_at, tp)),
        .name = op->name,
    };
    op_move_carries(&ret_moves[0], op, pass);
    return 1;
}

const struct op_kind op_kind_reshard = {
    .name = "reshard",
    .help = "an array split along another dimension, each way by an AllGather",
    .source = "GSPMD, arXiv 2105.04663, 4.5",
    .moves = moves,
    .passes_on = true,
};
