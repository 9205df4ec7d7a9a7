/*
 * played.h: what gathers and reductions of a group take as an algorithm plays them: closed forms of
 * what the catalogue says of its primitives. For estimates and bounds from above; bounds from below
 * ask no algorithm (link_bound.h).
 */
#ifndef SIM_ROOFLINE_PLAYED_H
#define SIM_ROOFLINE_PLAYED_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/collective/group.h"
#include "sim/collective/plan.h"
#include "sim/machine/machine.h"

struct played {
    const struct machine *machine;
    struct group group;
    const struct primitive *gather[GROUP_DIMENSIONS_MAX]; /* Along each dimension. */
    bool flat;   /* All dimensions at once; the primitives are those of `auto`. */
    bool closed; /* The closed forms are of what is played. */
};

/* By an algorithm's name; NULL, or what cannot run on the group: by `auto`. */
struct played played_by(const struct machine *machine, const struct group *group,
                        const char *algorithm);

/* Seconds that the links of a group need for an AllGather or ReduceScatter of `bytes`, all of its
 * axes busy equally long and no hop taking time. */
double played_gather_s(const struct played *played, double bytes);

/* As played_gather_s(), of any kind: an AllReduce has a ReduceScatter and an AllGather, and an
 * AllToAll takes a quarter of a gather of its array, as on a ring of two ways (book, chapter 3). */
double played_links_s(const struct played *played, enum collective_kind kind, double bytes);

/* Seconds of a gather from above: on the slowest links, one level after the other. */
double played_slow_s(const struct played *played, double bytes);

/* Hop latencies of one gather or reduction that has no bytes; `longest`: of the longest hops. */
double played_hop_s(const struct played *played, bool longest);

/* The same of a plan, of each dimension as the first primitive goes that it has there. */
double played_plan_hop_s(const struct machine *machine, const struct plan *plan);

/* level_group_rate() and level_group_share() of the group. */
double played_group_rate(const struct played *played);
double played_group_share(const struct played *played);

#endif
