/*
 * input.h: a whole file into memory, without a mark of its byte order.
 */
#ifndef TOOLS_PODSIM_COMMON_INPUT_H
#define TOOLS_PODSIM_COMMON_INPUT_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/status.h"

struct arena;

enum { INPUT_BEGIN_BYTES_MAX = 64 };

/* Whether a regular file begins with a text that is short. No other file is read: what a pipe has
 * given is gone. */
bool input_begins(const char *path, const char *begin);

/* "-" is standard input. Errors: STATUS_IO, STATUS_LIMIT beyond `bytes_max`, STATUS_NO_MEMORY; the
 * place is the path. */
enum status input_load(struct arena *arena, const char *path, uint64_t bytes_max, char **ret_text,
                       uint64_t *ret_bytes, struct error *reterr);

#endif
