/*
 * parse_uint.h: whole numbers as people write them, in decimal digits and nothing else.
 */
#ifndef SIM_BASE_PARSE_UINT_H
#define SIM_BASE_PARSE_UINT_H

#include <stdint.h>

/* The digits that `text` begins with, as a number; more than `most`, which is 2^63 or less, comes
 * out as `most` + 1. Returns where they end: at `text` itself if there are none. */
static inline const char *parse_uint(const char *text, uint64_t most, uint64_t *ret_number)
{
    uint64_t number = 0;
    for (; *text >= '0' && *text <= '9'; text++) {
        if (number <= most / 10)
            number = 10 * number + (uint64_t)(*text - '0');
        else
            number = most + 1;
        if (number > most) number = most + 1;
    }
    *ret_number = number;
    return text;
}

#endif
