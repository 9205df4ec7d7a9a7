/*
 * algorithm.h: what the name of an algorithm says, looked up once.
 */
#ifndef SIM_COLLECTIVE_ALGORITHM_H
#define SIM_COLLECTIVE_ALGORITHM_H

#include <stdbool.h>

#include "sim/collective/collective.h"

enum algorithm_means {
    ALGORITHM_AUTO,           /* "auto", and no name. */
    ALGORITHM_HIERARCHICAL,   /* "hierarchical": level by level, each by what `auto` takes. */
    ALGORITHM_SCATTER_GATHER, /* "scatter-gather" of a broadcast or reduction. */
    ALGORITHM_FAMILY,         /* "tree", and "flat-tree" over all dimensions at once. */
    ALGORITHM_LEVELS,         /* "ring+direct": a name a level, the innermost first. */
    ALGORITHM_OTHER,          /* None that is known: out of a file, or misspelt. */
};

struct algorithm {
    enum algorithm_means means;
    enum primitive_family family; /* Of ALGORITHM_FAMILY; else PRIMITIVE_FAMILY_COUNT. */
    bool flat;
};

struct algorithm algorithm_of(const char *name);

/* Whether the algorithm is chosen: "auto", or no name. */
static inline bool algorithm_is_chosen(const char *name)
{
    return algorithm_of(name).means == ALGORITHM_AUTO;
}

/* PRIMITIVE_FAMILY_COUNT of no family's name. */
enum primitive_family primitive_family_find(const char *name);

/* Which of NCCL's algorithms a family is like; NCCL_NONE of no family. */
enum nccl_algorithm primitive_family_nccl(enum primitive_family family);

/* Whether NCCL itself runs the kind by the family; false of no family. */
bool primitive_family_is_of_nccl(enum primitive_family family, enum collective_kind kind);

/* The family that one of NCCL's algorithms has for a kind: one that NCCL runs, or else the first
 * that is like it. PRIMITIVE_FAMILY_COUNT: none is. */
enum primitive_family primitive_family_of_nccl(enum nccl_algorithm nccl, enum collective_kind kind);

/* Whether it is this family, dimension by dimension. */
static inline bool algorithm_is(const struct algorithm *algorithm, enum primitive_family family)
{
    return algorithm->family == family && !algorithm->flat;
}

/* Whether it has each dimension go by what suits it. */
static inline bool algorithm_is_automatic(const struct algorithm *algorithm)
{
    return algorithm->means == ALGORITHM_AUTO || algorithm->means == ALGORITHM_HIERARCHICAL;
}

#endif
