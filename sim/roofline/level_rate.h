/*
 * level_rate.h: what a level of switches has for each chip, as closed forms: the rate when all
 * chips use it at once, and the latency to the farthest member.
 *
 * Sources: the book, chapter 12, Collectives (node, leaf, spine: bytes over the bandwidth of a
 * level); chapter 5, data parallelism over DCN.
 */
#ifndef SIM_ROOFLINE_LEVEL_RATE_H
#define SIM_ROOFLINE_LEVEL_RATE_H

#include <stdint.h>

#include "sim/collective/group.h"
#include "sim/machine/machine.h"

/* To how many others of its group a member sends at once. It makes a difference only on a level
 * without a switch, where each pair has a link of its own. */
enum level_reach {
    LEVEL_TO_ALL,
    LEVEL_TO_ONE, /* Rings, trees, neighbours. */
};

/* Bytes per second, one way, that a chip has of the level that serves an axis: its own cables, and
 * its share of cables that several chips have in common. */
double level_rate(const struct machine *machine, uint32_t axis);

/* Without a switch each pair has a link: what a member has towards a number of others at once. Else
 * nothing limits it: INFINITY. */
double level_mesh_rate(const struct machine *machine, const struct group_dimension *dimension,
                       uint32_t others);

/* What a group along a dimension has of level_rate(). */
double level_slow_rate(const struct machine *machine, const struct group_dimension *dimension,
                       enum level_reach reach);

/* level_rate() for an array gathered or reduced along a dimension, at best: no tier above
 * where all members meet counts, and what has entered a leaf once is passed on inside it. Times
 * (n-1)/n of the array, a bound from below for any algorithm of that reach; level_slow_rate() is
 * from above. */
double level_dimension_rate(const struct machine *machine, const struct group_dimension *dimension,
                            enum level_reach reach);

/* level_rate() for a message from each member to the next, all at once: of the cables that all of
 * these messages must take. */
double level_step_rate(const struct machine *machine, const struct group_dimension *dimension);

/* Up to where all of the dimension's members meet, and down again. */
int64_t level_latency_ps(const struct machine *machine, const struct group_dimension *dimension);
/* Up to where two of its members meet, and down again. */
int64_t level_between_ps(const struct machine *machine, const struct group_dimension *dimension,
                         uint32_t member, uint32_t other);

/* The name of what serves an axis: "ici", "NVLink", "DCN". */
const char *level_link_name(const struct machine *machine, uint32_t axis);

/* Bytes per second at which a gathered array passes a group, by the book's rule: on the grid all
 * rings both ways together; through levels the least egress of one unit of each tier, since what
 * enters a node, or a leaf, is shared by its members. `grid_bytes_per_s` is what the group's
 * dimensions on the grid have together. */
double level_group_rate(const struct machine *machine, const struct group *group,
                        enum level_reach reach, double grid_bytes_per_s);

/* The largest of (n-1)/n over those tiers' rates, times level_group_rate(): what is left of the
 * time of an array if the finite number of units is counted. */
double level_group_share(const struct machine *machine, const struct group *group,
                         enum level_reach reach, double grid_bytes_per_s);

#endif
