/*
 * The next token of each row of logits. A rank of tp has the logits of its part of the vocabulary
 * and finds the largest of them, with noise that is drawn for each (the Gumbel-max trick, Maddison
 * et al., arXiv 1411.0030, 2); of all ranks' the largest is taken, by an AllReduce of the value and
 * its token.
 */
#include "sim/base/vector.h"
#include "sim/graph/op.h"
#include "sim/model/model.h"

static void work(const struct graph_sharded *sharded, const struct graph_op *op, enum op_pass pass,
                 struct work *ret_work)
{
    struct op_bytes const none = {{0}};
    uint64_t const cap = sharded->graph->terms->model->caps_logits ? VECTOR_CAP : 0;
    uint64_t const flop = (VECTOR_SAMPLE + cap) * op_in_elements(sharded, op, 0);
    *ret_work = op_streamed(sharded, op, pass, none, flop);
}

static struct graph_shard shard(const struct graph *graph, const struct graph_op *op)
{
    uint32_t const split = sharding_axes(&graph->tensor[op->in[0]].at);
    return (struct graph_shard){.all_reduce = split & graph->terms->axis_y};
}

const struct op_kind op_kind_sample = {
    .name = "sample",
    .help = "the next token of each row of logits",
    .source = "the book, chapter 7, 7.1; counted from the formulas",
    .notation = {.formula = "Sample(%)", .remark = "a value and its token for each row"},
    .work = work,
    .shard = shard,
};
