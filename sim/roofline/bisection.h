/*
 * bisection.h: what must cross the border of sets of ranks, over what there is to carry it:
 * the part of collective_bound.h that is about bytes.
 */
#ifndef SIM_ROOFLINE_BISECTION_H
#define SIM_ROOFLINE_BISECTION_H

#include "sim/roofline/collective_bound.h"

struct bisection {
    double book_s, strict_s; /* The book's bound and the strict one (collective_bound.h). */
    const char *bound_by;    /* What sets book_s (collective_bound.h). */
    const char *where;
    int32_t axis, level, tier;
};

struct bisection bisection_tightest(const struct machine *machine, const struct group *group,
                                    const struct collective_query *query);

/* Whether messages in the group may take links around the twisted axes of a grid: along one axis
 * nothing is shorter than the plain way. */
bool collective_on_twisted(const struct machine *machine, const struct group *group);

#endif
