/*
 * kernel_stack.h: a stack of kernels of an H100, read from a document that a test writes.
 */
#ifndef TESTS_SUPPORT_KERNEL_STACK_H
#define TESTS_SUPPORT_KERNEL_STACK_H

#include <string.h>

#include "sim/base/json.h"
#include "sim/kernels/kernels.h"
#include "tests/support/case.h"

/* `rest`: members behind the title, each behind a comma. */
static inline enum status kernel_stack_made(const char *rest, struct kernel_stack *ret_stack)
{
    struct json *document = NULL;
    const char *text = arena_format(case_arena,
                                    "{\"podsim_kernels\": 1, \"chip\": \"h100-sxm\", \"stack\": "
                                    "\"mine\", \"title\": \"Mine\"%s}",
                                    rest);
    case_ok(json_read_text(case_arena, "test", text, strlen(text), &document, &case_error));
    enum status const status = kernel_stack_read(case_arena, document, ret_stack, &case_error);
    json_free(document);
    return status;
}

#endif
