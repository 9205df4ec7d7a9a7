/*
 * name.h: what a name stands for: its place among those known, or the nearest to a misspelt one.
 *
 * A name is looked up once, where it is read. What comes of it is a number or an entry, by which
 * everything else decides.
 */
#ifndef SIM_BASE_NAME_H
#define SIM_BASE_NAME_H

#include <stdbool.h>
#include <stdint.h>

/* The place of a name among `names`, which NULL ends. Their number, if the name is NULL or not
 * among them. */
uint32_t name_find(const char *name, const char *const *names);
/* As name_find(), whatever the case of the letters. */
uint32_t name_find_any_case(const char *name, const char *const *names);
/* Whether two names that were read or made are the same; NULL is like NULL alone. */
bool name_same(const char *name, const char *other);
/* What comes after a beginning, "tree" of "flat-tree" after "flat-"; NULL if it is not there. */
const char *name_after(const char *name, const char *beginning);
/* By edit distance with transpositions, one that begins the same before all others, then one that
 * has the whole name as a word ("all_gather_ring" of "ring"); of equals one that has a word in
 * common, then the first. NULL if none of `names` (ended by NULL) is near: at most a third of the
 * letters differ, or the beginning or a word is the same, half of the shorter name or more. */
const char *name_nearest(const char *name, const char *const *names);

struct name_offer {
    char text[768];
};

/* What a refusal offers instead of a name that nobody has: the nearest between `before` and
 * `after`; where none is near `otherwise`, or if that is NULL "; there are ring, line and tree",
 * as many of `names` as fit. Without any names "". */
struct name_offer name_offer(const char *name, const char *const *names, const char *before,
                             const char *after, const char *otherwise);

/* "; there are ring, line and tree", as many of `names` as fit; without any "". */
struct name_offer name_list(const char *const *names);

/* Whether at most a quarter of the letters differ: who wrote the one may have meant the other. */
bool name_is_near(const char *name, const char *other);

#endif
