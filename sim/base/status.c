#include "sim/base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum status error_set(struct error *error, enum status status, const char *where,
                      const char *format, ...)
{
    va_list arguments;
    error->status = status;
    (void)snprintf(error->where, sizeof error->where, "%s", where);
    va_start(arguments, format);
    (void)vsnprintf(error->message, sizeof error->message, format, arguments);
    va_end(arguments);
    return status;
}

const char *status_text(enum status status)
{
    static const char *const texts[] = {
#define X(name, text) text,
        STATUS_TABLE(X)
#undef X
    };
    return texts[status];
}

_Noreturn void assert_fail(const char *file, int line, const char *function, const char *claim)
{
    (void)fprintf(stderr, "podsim: %s:%d: %s: broken invariant: %s\n", file, line, function, claim);
    abort();
}
