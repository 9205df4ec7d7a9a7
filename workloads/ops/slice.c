/* Some rows of an array. A kernel reads them where they lie, so that a slice has no work. */
#include "sim/graph/op.h"

const struct op_kind op_kind_slice = {
    .name = "slice",
    .help = "some rows of an array, read where they lie",
    .source = "no work: a kernel begins and ends at rows of its input",
    .notation = {.formula = "%", .remark = "some of its rows, where they lie"},
    .passes_on = true,
    .takes_rows = true,
};
