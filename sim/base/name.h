/*
 * name.h: the nearest known name to a misspelt one.
 */
#ifndef SIM_BASE_NAME_H
#define SIM_BASE_NAME_H

#include <stdbool.h>
#include <stdint.h>

/* By edit distance with transpositions, one that begins the same before all others, then one that
 * has the whole name as a word ("all_gather_ring" of "ring"); of equals one that has a word in
 * common, then the first. NULL if `names` (ended by NULL) is empty. */
const char *name_nearest(const char *name, const char *const *names);
/* Whether at most a quarter of the letters differ: who wrote the one may have meant the other. */
bool name_is_near(const char *name, const char *other);

#endif
