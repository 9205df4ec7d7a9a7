/*
 * catalogue.h: models and kernels that are built in, by their names; a name that is none fails the
 * test.
 */
#ifndef TESTS_SUPPORT_CATALOGUE_H
#define TESTS_SUPPORT_CATALOGUE_H

#include "sim/kernels/kernels.h"
#include "sim/model/model_read.h"
#include "tests/support/case.h"

static inline struct model catalogue_model(const char *name)
{
    struct model model = {0};
    case_ok(model_read_name_or_path(case_arena, name, NULL, "", &model, &case_error));
    return model;
}

/* The kernels of a chip, "h100-sxm", as a stack has them, "trtllm". */
static inline struct kernel_stack catalogue_kernels(const char *chip, const char *stack)
{
    struct kernel_stack kernels;
    case_ok(kernel_stack_find(stack, chip, "", &kernels, &case_error));
    return kernels;
}

#endif
