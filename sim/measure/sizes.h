/*
 * sizes.h: sizes on a command line, and the sweep from the least to the greatest, with the habits
 * of nccl-tests: "8", "64K", "1.5M", "8G"; suffixes are binary; a factor, or a step in bytes.
 */
#ifndef SIM_MEASURE_SIZES_H
#define SIM_MEASURE_SIZES_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/status.h"

enum { SIZES_COUNT_MAX = 4096 };

struct sizes {
    uint64_t begin_bytes;
    uint64_t end_bytes;
    uint64_t step_bytes; /* 0: by factor. */
    uint32_t factor;
};

/* "8", "4K", "1.5M", "1GiB". Refused: 0, more than 2^63, parts of a byte, "MB" (which some read as
 * 10^6 bytes and some as 2^20). */
enum status sizes_parse(const char *text, const char *where, uint64_t *ret_bytes,
                        struct error *reterr);

/* The options as given, each NULL where it is not. One of begin and end alone is the only size;
 * neither: 32 MiB, as in nccl-tests. */
enum status sizes_read(const char *begin, const char *end, const char *factor, const char *step,
                       struct sizes *ret_sizes, struct error *reterr);

uint32_t sizes_count(const struct sizes *sizes);

/* The next size after `bytes` (0: the first); false behind the last. */
bool sizes_next(const struct sizes *sizes, uint64_t *bytes);

#endif
