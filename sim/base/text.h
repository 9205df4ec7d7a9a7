/*
 * text.h: a growing buffer to print into: the only printf to memory.
 */
#ifndef SIM_BASE_TEXT_H
#define SIM_BASE_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#include "sim/base/status.h"

struct text {
    char *bytes; /* Always ended by a 0 once something was added; free with text_free(). */
    uint64_t size_bytes;
    uint64_t capacity_bytes;
    uint32_t columns; /* Of the terminal that it is for; 0: for none. */
    bool failed; /* Out of memory: what was added since is missing. Checked once, when written. */
};

void text_add(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_add_list(struct text *text, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));
void text_add_bytes(struct text *text, const void *bytes, uint64_t size_bytes);
/* Where the current line has come to. Colours ("\x1b[32m") take no column. */
uint32_t text_column(const struct text *text);
/* Spaces until `column` is reached on the current line; at least one if it is already passed. */
void text_pad(struct text *text, uint32_t column);
void text_free(struct text *text);

/* Writes to PATH.tmp-PID, then renames: the file is whole or not there. "-" is standard output. */
enum status text_write_file(const struct text *text, const char *path, struct error *reterr);

#endif
