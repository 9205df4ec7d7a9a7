/*
 * counts.h: the counts and the roofline of a training step that can be lowered. An error ends the
 * test, with its sentence.
 */
#ifndef TESTS_SUPPORT_COUNTS_H
#define TESTS_SUPPORT_COUNTS_H

#include <stdio.h>
#include <stdlib.h>

#include "sim/roofline/roofline.h"
#include "sim/step/counts.h"

static inline void counts_need(enum status status, const struct error *error)
{
    if (status == STATUS_OK) return;
    (void)fprintf(stderr, "%s: %s\n", error->where, error->message);
    abort();
}

static inline void counts_make(const struct workload_plan *plan, const struct machine *machine,
                               const struct mesh *mesh, struct workload_counts *ret_counts)
{
    struct error error;
    counts_need(workload_count(plan, machine, mesh, ret_counts, &error), &error);
}

static inline void counts_roofline(const struct workload_plan *plan, const struct machine *machine,
                                   const struct mesh *mesh, struct roofline *ret_roofline)
{
    struct error error;
    counts_need(roofline_train_step(plan, machine, mesh, ret_roofline, &error), &error);
}

#endif
