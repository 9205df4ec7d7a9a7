/* measure_args.h: the arguments of a measured row of a collective, for tests. */
#ifndef TESTS_SUPPORT_MEASURE_ARGS_H
#define TESTS_SUPPORT_MEASURE_ARGS_H

#include "sim/measure/measure_row.h"
#include "tests/support/case.h"

/* In bf16, over `axes` of the machine; all else by default. */
static inline struct measure_row_args measure_args_of(const struct machine *machine,
                                                      enum measure_op operation, const char *axes)
{
    struct measure_row_args args = {
        .machine = machine, .operation = operation, .format = FORMAT_BF16};
    case_ok(measure_group(machine, axes, "--axes", &args.group, &case_error));
    (void)measure_group_text(machine, &args.group, args.axes);
    return args;
}

#endif
