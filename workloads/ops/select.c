/*
 * Rows of an array, copied: those of tokens whose logits are wanted, of each prompt the last one's
 * and of sequences that answer all.
 */
#include "sim/graph/op.h"

static void work(const struct graph_sharded *sharded, const struct graph_op *op, enum op_pass pass,
                 struct work *ret_work)
{
    struct op_bytes written = {{0}};
    (void)pass;
    op_bytes_outs(sharded, op, false, &written);
    *ret_work = (struct work){
        .math_format = sharded->graph->terms->formats.activations,
        .hbm_read_bytes = op_bytes_sum(&written),
        .hbm_write_bytes = op_bytes_sum(&written),
    };
}

const struct op_kind op_kind_select = {
    .name = "select",
    .help = "some rows of an array",
    .source = "the book, chapter 7, 7.1",
    .notation = {.formula = "Rows(%)", .remark = "tokens whose next one is wanted"},
    .work = work,
};
