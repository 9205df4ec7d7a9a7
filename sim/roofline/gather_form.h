/*
 * gather_form.h: the closed form of an AllGather or ReduceScatter of a group by an algorithm, of
 * what the catalogue says of its primitives. For estimates and bounds from above; bounds from below
 * ask no algorithm (link_bound.h).
 */
#ifndef SIM_ROOFLINE_GATHER_FORM_H
#define SIM_ROOFLINE_GATHER_FORM_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/collective/group.h"
#include "sim/collective/plan.h"
#include "sim/machine/machine.h"

struct gather_form {
    const struct machine *machine;
    struct group group;
    const struct primitive *gather[GROUP_DIMENSIONS_MAX]; /* Along each dimension. */
    bool flat;   /* All dimensions at once; the primitives are those of `auto`. */
    bool closed; /* The closed forms are of the plan that runs. */
};

/* What cannot run on the group goes by `auto`. */
struct gather_form gather_form_by(const struct machine *machine, const struct group *group,
                                  const struct algorithm *algorithm);

/* Seconds that the links of a group need for an AllGather or ReduceScatter of `bytes`, all of its
 * axes busy equally long and no hop taking time. */
double gather_form_s(const struct gather_form *form, double bytes);

/* Seconds of a gather from above: on the slowest links, one level after the other. */
double gather_form_slow_s(const struct gather_form *form, double bytes);

/* Hop latencies of one gather or reduction that has no bytes; `longest`: of the longest hops. */
double gather_form_hop_s(const struct gather_form *form, bool longest);

/* Hop latencies of a plan that has no bytes. Each dimension counts as its first primitive goes. */
double gather_form_plan_hop_s(const struct machine *machine, const struct plan *plan);

/* level_group_rate() and level_group_share() of the group. */
double gather_form_rate(const struct gather_form *form);
double gather_form_share(const struct gather_form *form);

#endif
