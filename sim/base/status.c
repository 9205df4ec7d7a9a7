#include "sim/base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/base/letter.h"

enum status error_set(struct error *error, enum status status, const char *where,
                      const char *format, ...)
{
    va_list arguments;
    error->status = status;
    (void)snprintf(error->where, sizeof error->where, "%s", where);
    va_start(arguments, format);
    (void)vsnprintf(error->message, sizeof error->message, format, arguments);
    va_end(arguments);
    letters_replace(error->where, '?');
    letters_replace(error->message, '?');
    return status;
}

enum status error_no_memory(struct error *error, const char *where)
{
    return error_set(error, STATUS_NO_MEMORY, where, "there is no memory");
}

void error_in_file(struct error *error, const char *path)
{
    char place[sizeof error->where];
    (void)snprintf(place, sizeof place, "%s", error->where);
    (void)snprintf(error->where, sizeof error->where, "%.100s%s%.80s", path,
                   place[0] == '\0' ? "" : "#", place);
    letters_replace(error->where, '?');
}

_Noreturn void assert_fail(const char *file, int line, const char *function, const char *claim)
{
    (void)fprintf(stderr, "podsim: %s:%d: %s: broken invariant: %s\n", file, line, function, claim);
    abort();
}
