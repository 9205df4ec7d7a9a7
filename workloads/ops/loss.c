/*
 * The loss of logits, of which each rank of tp has those of its part of the vocabulary. The same
 * kernel gives the logits' gradient, p - 1 of the right one, which lies in their place: there is
 * nothing to compute backward. The maximum and the sum of a row, one number a token, travel with
 * the next collective and are not counted.
 */
#include "sim/base/vector.h"
#include "sim/graph/op.h"
#include "sim/model/model.h"

static void work(const struct graph_sharded *sharded, const struct graph_op *op, enum op_pass pass,
                 struct work *ret_work)
{
    struct op_bytes const none = {{0}};
    uint64_t const logits = op_in_elements(sharded, op, 0);
    uint64_t const cap =
        sharded->graph->terms->model->caps_logits ? VECTOR_CAP + VECTOR_CAP_BACKWARD : 0;
    if (!op_is_forward(pass)) return;
    *ret_work = op_streamed(sharded, op, pass, none, (VECTOR_LOSS + cap) * logits);
    op_function(sharded->graph, WORK_FUNCTION_LOSS, pass, logits, ret_work);
}

static uint8_t reads(const struct graph *graph, const struct graph_op *op, enum op_pass pass,
                     tensor ret_reads[OP_READS_MAX])
{
    (void)graph;
    (void)pass;
    ret_reads[0] = op->out[0];
    return 1;
}

const struct op_kind op_kind_loss = {
    .name = "loss",
    .help = "softmax and cross-entropy of logits, with their gradient",
    .source = "Megatron-LM, arXiv 1909.08053, 3; counted from the formulas",
    .notation = {.formula = "Loss'(%)", .remark = "with the loss"},
    .work = work,
    .reads = reads,
    .gives_gradient = true,
};
