/*
 * counts.h: options that are whole numbers, or lists of them with commas and ranges: "8", "4K",
 * "8,16,32", "1:512:x2" (doubled from 1 to 512), "64:256:+64" (64, 128, 192, 256). The letters K, M
 * and G stand for powers of 1024, as in a scenario.
 */
#ifndef TOOLS_PODSIM_COMMON_COUNTS_H
#define TOOLS_PODSIM_COMMON_COUNTS_H

#include <stdint.h>

#include "sim/base/status.h"

/* A whole number from 1 to `most`. `where`: the option. */
enum status counts_one(const char *text, const char *where, uint32_t most, uint32_t *ret_count,
                       struct error *reterr);

/* A list of at most `counts_max` numbers, which are appended. A range ends at its last number or
 * before. Errors: also STATUS_LIMIT for too many of them. */
enum status counts_list(const char *text, const char *where, uint32_t most, uint32_t *counts,
                        uint32_t counts_max, uint32_t *count, struct error *reterr);

#endif
