/*
 * placing.h: ranks of a mesh on the axes of a machine, neighbours first, as parts such as "gpu" and
 * "node:4" that a scenario's mesh has.
 */
#ifndef TOOLS_PODSIM_COMMON_PLACING_H
#define TOOLS_PODSIM_COMMON_PLACING_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/mesh/mesh.h"

enum { PLACING_PART_BYTES = 32, PLACING_PARTS_MAX = 8, PLACING_SIDES_MAX = MACHINE_AXES_MAX };

/* An axis of the machine, and how many of its chips still have no rank. */
struct placing_side {
    const char *name;
    uint32_t whole, left;
};

struct placing {
    const char *where;                /* What errors are about. */
    uint32_t rank[MESH_ROLE_COUNT];   /* Ranks of each axis of the mesh that no other has; 1: it
                                         has none. */
    uint32_t ep_over;                 /* Axes that ep lies over as well, a bit each. */
    uint32_t across[MESH_ROLE_COUNT]; /* Slices that the ranks of an axis lie across; 0: nothing
                                         says it. */
    struct placing_side side[PLACING_SIDES_MAX]; /* The nearest chips first. */
    uint32_t side_count;
    bool is_grid; /* Axes but fsdp take a side that is as long as they are, where there is one. */
    struct placing_side slice; /* Copies of the grid; `whole` 0 or 1: there is one. */
    char part[MESH_ROLE_COUNT][PLACING_PARTS_MAX][PLACING_PART_BYTES]; /* Nearest first. */
    uint32_t part_count[MESH_ROLE_COUNT];
    enum mesh_role role; /* The axis that is laid last, which an error is about. */
};

void placing_side_add(struct placing *placing, const char *name, uint32_t chips);

/* Lays ranks of experts over whole axes before replicas, as Megatron-Core and torchtitan do: over
 * tp, unless its ranks split each expert and `tp` is 1, and over cp. Returns the ranks that are
 * ep's own; 0: ep would lie over a part of an axis. */
uint64_t placing_own_ep(uint64_t tp, uint64_t cp, uint64_t ep, uint32_t *ret_over);

/* Fills in the parts. Where nothing says it, replicas (dp) take the slices, if there are several,
 * and so do shards and stages of more ranks than a slice has chips left. Errors: STATUS_UNSUPPORTED
 * if ranks and chips differ in number, or do not lie evenly. */
enum status placing_find(struct placing *placing, struct error *reterr);

/* The `index`-th part of an axis of the mesh, in the order of a scenario: stages have the outer
 * side first. */
const char *placing_part(const struct placing *placing, enum mesh_role role, uint32_t index);

#endif
