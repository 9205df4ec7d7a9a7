/*
 * algorithm.h: by which algorithm a collective is asked to go. A name is read once, where it comes
 * in; what it says is asked of the entry from there on, and text is made of it for people alone.
 */
#ifndef SIM_COLLECTIVE_ALGORITHM_H
#define SIM_COLLECTIVE_ALGORITHM_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/collective/collective.h"
#include "sim/collective/group.h"

struct arena;

enum algorithm_means {
    ALGORITHM_AUTO,           /* "auto", and no name. */
    ALGORITHM_HIERARCHICAL,   /* "hierarchical": level by level, each by what `auto` takes. */
    ALGORITHM_SCATTER_GATHER, /* "scatter-gather" of a broadcast or reduction. */
    ALGORITHM_FAMILY,         /* "tree", and "flat-tree" over all dimensions at once. */
    ALGORITHM_LEVELS,         /* "ring+direct": a name a level, the innermost first. */
    ALGORITHM_OTHER,          /* Not known: out of a file, or misspelt. */
};

/* Levels of a group, and one more where the axes of the grid differ ("ring+line"). */
enum { ALGORITHM_LEVELS_MAX = GROUP_DIMENSIONS_MAX + 1, ALGORITHM_TEXT_BYTES = 128 };

/* By what a level goes. */
struct algorithm_level {
    enum algorithm_means means;   /* Any but ALGORITHM_LEVELS. */
    enum primitive_family family; /* The family of ALGORITHM_FAMILY. */
    const char *asked;            /* The text of ALGORITHM_OTHER, up to a "+" or the end. */
};

/* All zero: `auto`. */
struct algorithm {
    enum algorithm_means means;
    enum primitive_family family; /* The family of ALGORITHM_FAMILY: algorithm_family(). */
    bool flat;                    /* "flat-" before the name. */
    uint32_t level_count;         /* The number of levels of ALGORITHM_LEVELS. */
    struct algorithm_level level[ALGORITHM_LEVELS_MAX];
    const char *asked; /* The text of ALGORITHM_OTHER; it lives as long as whoever read it. */
};

/* What a name says; NULL is "auto". Called by readers of files and of the command line alone. */
struct algorithm algorithm_read(const char *name);
/* An algorithm of one family, and `auto` of none. */
struct algorithm algorithm_by(enum primitive_family family);
/* An algorithm that only a text names: that of a script. */
struct algorithm algorithm_called(const char *name);
/* By which a message goes from each rank of a group to each other at once. */
struct algorithm algorithm_by_pairs(const struct group *group);
/* By which every member of a dimension passes blocks on to its next, round after round. */
struct algorithm algorithm_by_rounds(const struct group_dimension *dimension);

bool algorithm_equal(const struct algorithm *a, const struct algorithm *b);

/* For people: what algorithm_read() reads. */
struct algorithm_text {
    char text[ALGORITHM_TEXT_BYTES];
};
struct algorithm_text algorithm_text(const struct algorithm *algorithm);
struct algorithm_text algorithm_level_text(const struct algorithm_level *level);
/* The text of an algorithm, which lives as long as the arena; NULL: there is no memory for it. */
const char *algorithm_name(struct arena *arena, const struct algorithm *algorithm);

/* Which of NCCL's algorithms a family is like; NCCL_NONE of no family. */
enum nccl_algorithm primitive_family_nccl(enum primitive_family family);

/* Whether NCCL itself runs the kind by the family; false of no family. */
bool primitive_family_is_of_nccl(enum primitive_family family, enum collective_kind kind);

/* The family that one of NCCL's algorithms has for a kind: one that NCCL runs, or else the first
 * that is like it. PRIMITIVE_FAMILY_COUNT: none is. */
enum primitive_family primitive_family_of_nccl(enum nccl_algorithm nccl, enum collective_kind kind);

/* Whether it is chosen: nothing is asked for. */
static inline bool algorithm_is_chosen(const struct algorithm *algorithm)
{
    return algorithm->means == ALGORITHM_AUTO;
}

/* PRIMITIVE_FAMILY_COUNT of an algorithm that is none of one family. */
static inline enum primitive_family algorithm_family(const struct algorithm *algorithm)
{
    return algorithm->means == ALGORITHM_FAMILY ? algorithm->family : PRIMITIVE_FAMILY_COUNT;
}

/* Whether it has each dimension go by what suits it. */
static inline bool algorithm_is_automatic(const struct algorithm *algorithm)
{
    return algorithm->means == ALGORITHM_AUTO || algorithm->means == ALGORITHM_HIERARCHICAL;
}

#endif
