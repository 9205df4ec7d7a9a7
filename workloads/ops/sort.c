/*
 * Rows that come to a chip are copied for each of its experts that wants them and lie by expert; or
 * rows of experts are added up where they are one token's. Each is the gradient of the other.
 */
#include "sim/graph/op.h"

static void work(const struct graph_sharded *sharded, const struct graph_op *op, enum op_pass pass,
                 struct work *ret_work)
{
    struct op_bytes const none = {{0}};
    bool const backward = !op_is_forward(pass), sums = op->as.sort.sums != backward;
    uint64_t const summed =
        backward ? op_out_elements(sharded, op, 0) : op_in_elements(sharded, op, 0);
    *ret_work = op_streamed(sharded, op, pass, none, sums ? summed : 0);
}

const struct op_kind op_kind_sort = {
    .name = "sort",
    .help = "rows in the order of their experts, or the sum of each token's "
            "results",
    .source = "counted from the formulas",
    .notation = {.formula = "$(%)"},
    .work = work,
};
