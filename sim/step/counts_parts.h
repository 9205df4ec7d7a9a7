/*
 * counts_parts.h: the two halves of a step's counts: sums over the graphs of its parts (counts.c),
 * and what goes by the sizes of weights alone (counts_weights.c). Internal to sim/step.
 */
#ifndef SIM_STEP_COUNTS_PARTS_H
#define SIM_STEP_COUNTS_PARTS_H

#include "sim/step/counts.h"
#include "sim/step/ranks.h"

/* Collectives of one group. */
void counts_traffic_add(struct workload_traffic *traffic, enum collective_kind kind, uint64_t count,
                        double bytes);

/* Gathers and reductions of weights, and the update. */
void counts_weights(const struct ranks *ranks, uint32_t head_returns,
                    struct workload_counts *counts);
/* Memory of a chip that has the whole model, after what its layers save. */
void counts_memory(const struct ranks *ranks, struct workload_counts *counts);

#endif
