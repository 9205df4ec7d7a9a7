/*
 * counted.h: a number with the noun that it counts: "1 switch", "4 switches", "1 data rank".
 */
#ifndef SIM_BASE_COUNTED_H
#define SIM_BASE_COUNTED_H

#include <stdint.h>

struct counted {
    char text[64];
};

/* The noun is given in the singular, of 32 letters at most; its last word takes the plural. */
struct counted counted(uint64_t count, const char *noun);
/* The noun alone, for a number that is written some other way. */
struct counted counted_noun(uint64_t count, const char *noun);

#endif
