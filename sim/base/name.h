/*
 * name.h: the nearest known name to a misspelt one.
 */
#ifndef SIM_BASE_NAME_H
#define SIM_BASE_NAME_H

#include <stdint.h>

/* By edit distance with transpositions, one that begins the same before all others; the first of
 * equals. NULL if `names` (ended by NULL) is empty. */
const char *name_nearest(const char *name, const char *const *names);

#endif
