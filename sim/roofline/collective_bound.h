/*
 * collective_bound.h: how long a collective takes at least on a fabric, from its cuts alone:
 * what must cross the border of a set of ranks, over the rate of the cables that cross it. It
 * knows no plan, no primitive, no piece and no queue. Whether switches add is up to the machine.
 *
 * Two bounds are told apart. The book's (`time_s`) lets every byte cross each level once, as
 * nearly all plans of the catalogue do: a node's members gather among themselves over NVLink while
 * NICs bring in what other nodes have, and an AllReduce is a ReduceScatter and an AllGather unless
 * switches add. The strict one (`strict_s`), which nothing beats, also grants NICs that help inside
 * a node, and partial sums piped along a line and back, as trees on a grid without wraparound do.
 *
 * All groups of the machine are taken to run at once, as those of a mesh axis do, so a group has
 * its members' share of cables that are common to several.
 *
 * Sources: the book, chapter 3 (rings, lines, AllToAll's bisection), chapter 12, Collectives
 * (eq. 12.6 and its neighbours). Eq. 12.6 takes (D_i-1)/D_i of each level by itself; a node in one
 * of four scalable units must also receive what the other three hold through the same NICs, so the
 * cut here is (M-1)/M with M all nodes: 403 GB/s rather than 413 on 128 nodes.
 */
#ifndef SIM_ROOFLINE_COLLECTIVE_BOUND_H
#define SIM_ROOFLINE_COLLECTIVE_BOUND_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/collective/collective.h"
#include "sim/collective/group.h"
#include "sim/machine/machine.h"

/* What is asked. Fields that are left 0 ask for the least bound that any of their values gives. */
struct collective_query {
    enum collective_kind kind;
    uint64_t array_bytes;  /* V, as plan.size_bytes: the whole gathered, unreduced or exchanged
                              array; of a permute a message. */
    uint32_t element_bits; /* For the adders of switches; 0: they are not looked at. */
    uint32_t root;         /* Of the rooted kinds: its rank, the last dimension fastest. */
    int32_t offset[GROUP_DIMENSIONS_MAX]; /* Permute. */
};

struct collective_bound {
    double time_s;    /* The largest of the three below. */
    double bytes_s;   /* Bytes through the tightest cut; no hop takes time. */
    double latency_s; /* Of the farthest pair that must hear of each other, had they no bytes. */
    double hbm_s;     /* Each byte read once and written once where it must be. */
    double strict_s;  /* Below which no algorithm whatever can come; at most time_s. */
    const char *bound_by; /* "latency"; "port": a chip's own cables; "switch": those between
                             switches, or their adders; "wire": links of a grid; "hbm". */
    const char *where;    /* The cable or axis that binds: "NVLink", "NIC", "x"; "" if none. */
    int32_t axis;         /* Of the machine, if it is an axis of the grid, or one of a level; -1:
                             several together, or none. */
    int32_t level, tier;  /* -1: none. */
};

/* A group of one rank needs no time. */
void collective_bound(const struct machine *machine, const struct group *group,
                      const struct collective_query *query, struct collective_bound *ret_bound);

#endif
