/*
 * scaled.h: whole numbers with a letter behind them: "64K", "1.5M". The letters K, M, G, T and P,
 * large or small, stand for powers of 1024, for bytes and for tokens alike.
 */
#ifndef SIM_BASE_SCALED_H
#define SIM_BASE_SCALED_H

#include <stdint.h>

enum scaled {
    SCALED_READ,
    SCALED_NO_NUMBER, /* No digits, or something else than a letter behind them. */
    SCALED_NOT_WHOLE, /* "1.3K". */
    SCALED_TOO_LARGE, /* More than `most`. */
};

/* `most` is 2^63 or less. `*ret_unit` is what stands behind the letter, "" if nothing does; it is
 * set but for SCALED_NO_NUMBER. */
enum scaled scaled_read(const char *text, uint64_t most, uint64_t *ret_number,
                        const char **ret_unit);

#endif
