/*
 * group.h: the shape of a group of ranks on the machine, as collectives see it: one dimension for
 * each machine axis (or part of one) that the group spans. Every group of a mesh axis has the same
 * shape, so one description serves all of them.
 */
#ifndef SIM_COLLECTIVE_GROUP_H
#define SIM_COLLECTIVE_GROUP_H

#include <stdbool.h>
#include <stdint.h>

enum { GROUP_DIMENSIONS_MAX = 4 };

struct group_dimension {
    uint32_t axis;    /* The machine's axis. */
    uint32_t size;    /* Members along it; at least 2. */
    uint32_t stride;  /* Links between neighbouring members; 1: neighbours on the axis. */
    bool ring;        /* The last member has a link path onwards to the first. */
    bool switched;    /* Any member reaches any other through a level's switches; not a ring. */
    const char *name; /* Of the machine axis, for messages. */
};

/* Where a member stands in a dimension: (coordinate on the machine axis / stride) mod size. */
struct group {
    struct group_dimension dimension[GROUP_DIMENSIONS_MAX];
    uint32_t dimension_count; /* 0: a group of one rank, whose collectives are empty. */
};

/* Product of the sizes; 1 for an empty group. */
uint64_t group_rank_count(const struct group *group);

/* A rank's place in a dimension of its group; the last dimension is the fastest. */
uint32_t group_digit(const struct group *group, uint32_t rank, uint32_t dimension);

/* Whether two groups have the same members in the same order, on rings or lines alike. */
bool group_equal(const struct group *a, const struct group *b);

/* The coordinate of a member in a dimension, from its coordinate on the machine axis. */
static inline uint32_t group_position(const struct group_dimension *dimension, uint32_t coordinate)
{
    return coordinate / dimension->stride % dimension->size;
}

#endif
