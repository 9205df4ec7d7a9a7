/*
 * Queries and keys are rotated by position (rope), where that has a kernel of its own. A gradient
 * is rotated back, and reads no value. Sines and cosines are the same for all heads and are not
 * counted.
 */
#include "sim/base/vector.h"
#include "sim/graph/op.h"

static void work(const struct graph_sharded *sharded, const struct graph_op *op, enum op_pass pass,
                 struct work *ret_work)
{
    struct op_bytes const none = {{0}};
    uint64_t elements = 0;
    for (uint8_t i = 0; i < op->out_count; i++) elements += op_out_elements(sharded, op, i);
    *ret_work = op_streamed(sharded, op, pass, none, VECTOR_ROPE * elements);
    op_function(sharded->graph, WORK_FUNCTION_ROPE, pass, elements, ret_work);
}

const struct op_kind op_kind_rope = {
    .name = "rope",
    .help = "queries and keys are rotated by position",
    .source = "Su et al., RoFormer, arXiv 2104.09864",
    .notation = {.formula = "Rope(%)"},
    .work = work,
};
