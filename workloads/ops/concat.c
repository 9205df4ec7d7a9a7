/* Inputs side by side or one behind another: they are written there, and nothing is done for it. */
#include "sim/graph/op.h"

const struct op_kind op_kind_concat = {
    .name = "concat",
    .help = "inputs side by side, or one after another",
    .source = "no work: results of kernels are written to their part of an array",
    .notation = {.formula = "@", .remark = "each is written to its part"},
    .passes_on = true,
};
