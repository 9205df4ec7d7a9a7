#include "sim/base/status.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

void remove_controls(char *text)
{
    for (; *text != '\0'; text++) {
        unsigned char const c = (unsigned char)text[0], next = (unsigned char)text[1];
        bool const is_c1 = c == 0xc2 && next >= 0x80 && next < 0xa0;
        if (is_c1) text[1] = '?';
        if (is_c1 || c < 0x20 || c == 0x7f) text[0] = '?';
    }
}

enum status error_set(struct error *error, enum status status, const char *where,
                      const char *format, ...)
{
    va_list arguments;
    error->status = status;
    (void)snprintf(error->where, sizeof error->where, "%s", where);
    va_start(arguments, format);
    (void)vsnprintf(error->message, sizeof error->message, format, arguments);
    va_end(arguments);
    remove_controls(error->where);
    remove_controls(error->message);
    return status;
}

void error_in_file(struct error *error, const char *path)
{
    char place[sizeof error->where];
    (void)snprintf(place, sizeof place, "%s", error->where);
    (void)snprintf(error->where, sizeof error->where, "%.100s%s%.80s", path,
                   place[0] == '\0' ? "" : "#", place);
    remove_controls(error->where);
}

_Noreturn void assert_fail(const char *file, int line, const char *function, const char *claim)
{
    (void)fprintf(stderr, "podsim: %s:%d: %s: broken invariant: %s\n", file, line, function, claim);
    abort();
}
