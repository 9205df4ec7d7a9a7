/*
 * Flash attention of ranks that share sequences and pass their keys and values round. It is as many
 * parts as there are ranks: each takes in the keys and values of one rank, its own first, while
 * those of the next are on their way. Nothing stays but the block that is read and the one that
 * arrives.
 *
 * Backward the blocks go round again, and the sums of dK and dV after them: sum k leaves after
 * part k, and a last hop takes it home to the rank whose keys they are. Between parts what has been
 * summed of the output, or of dQ, lies in HBM in fp32.
 */
#include "workloads/ops/attention.h"

static void work(const struct graph_sharded *sharded, const struct graph_op *op, enum op_pass pass,
                 struct work *ret_work)
{
    const struct graph *graph = sharded->graph;
    uint64_t const arrays = op_is_forward(pass) ? 1 : 3; /* Q; and A and dA. */
    uint64_t const steps = graph->terms->sequence.parts - 1;
    uint64_t const queries = graph_elements(graph, &graph->tensor[op->in[0]].at, 0);
    uint64_t const rows = graph_elements(graph, &graph->tensor[op->out[1]].at, 0);
    uint64_t const summed = format_bytes(FORMAT_FP32, queries) + format_bytes(FORMAT_FP32, rows);
    attention_work(sharded, op, pass, ret_work);
    ret_work->hbm_read_bytes +=
        steps * (arrays * format_bytes(graph->terms->formats.activations, queries) + summed);
    ret_work->hbm_write_bytes += steps * summed;
}

static uint8_t moves(const struct graph_sharded *sharded, const struct graph_op *op,
                     enum op_pass pass, struct op_move ret_moves[OP_MOVES_MAX])
{
    const struct graph *graph = sharded->graph;
    enum format const format = graph->tensor[op->in[1]].format;
    uint64_t const bytes = attention_key_bytes(graph, op);
    struct op_move const all = {
        .axis = OP_AXIS_SEQUENCE, .format = format, .bytes = bytes, .bare = true};
    struct op_move *const there = &ret_moves[0], *sums = &ret_moves[1], *home = &ret_moves[2];
    *there = *sums = *home = all;
    there->kind = COLLECTIVE_ALL_GATHER;
    there->before = there->rounds = true;
    sums->kind = COLLECTIVE_REDUCE_SCATTER;
    sums->rounds = true;
    home->kind = COLLECTIVE_PERMUTE;
    home->bytes = bytes / graph->terms->sequence.parts;
    for (uint8_t i = 1; i < op->in_count; i++) {
        op_move_tensor(there, op->in[i], /* gradient= */ false);
        op_move_tensor(sums, op->in[i], /* gradient= */ true);
        /* Sums come home with what their last rank adds. */
        op_move_reads(home, op->in[i], /* gradient= */ true, /* full= */ false);
        op_move_tensor(home, op->in[i], /* gradient= */ true);
    }
    return op_is_forward(pass) ? 1 : 3;
}

const struct op_kind op_kind_ring_attention = {
    .name = "ring attention",
    .help = "flash attention in parts, while keys and values pass round",
    .source = "Liu et al., arXiv 2310.01889",
    .notation = {.formula = "Attention(@)",
                 .remark =
                     "flash: no T x S array in HBM; a part for each rank's keys, as they come",
                 .remark_further = attention_remark,
                 .remark_backward = "computes the scores again, part by part"},
    .work = work,
    .reads = attention_reads,
    .moves = moves,
    .spare = attention_spare,
    .attends = true,
    .shares_sequence = true,
    .passes_round = true,
};
