/*
 * strbuf.h: a growing buffer to print into: the only printf to memory.
 */
#ifndef SIM_BASE_STRBUF_H
#define SIM_BASE_STRBUF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#include "sim/base/status.h"

struct strbuf {
    char *bytes; /* Always ended by a 0 once something was added; free with strbuf_free(). */
    uint64_t size_bytes;
    uint64_t capacity_bytes;
    uint32_t columns; /* Columns of the terminal that the text is for; 0: it is for none. */
    bool failed; /* Out of memory: what was added since is missing. Checked once, when written. */
};

void strbuf_add(struct strbuf *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void strbuf_add_list(struct strbuf *text, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));
void strbuf_add_bytes(struct strbuf *text, const void *bytes, uint64_t size_bytes);
/* Where the current line has come to. Colours ("\x1b[32m") take no column. */
uint32_t strbuf_column(const struct strbuf *text);
/* Spaces until `column` is reached on the current line; at least one if it is already passed. */
void strbuf_pad(struct strbuf *text, uint32_t column);
void strbuf_free(struct strbuf *text);

/* Writes to PATH.tmp-PID, then renames: the file is whole or not there. "-" is standard output. */
enum status strbuf_write_file(const struct strbuf *text, const char *path, struct error *reterr);

#endif
