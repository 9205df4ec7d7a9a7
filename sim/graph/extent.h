/*
 * extent.h: how large the numbers of a part of a model become on one chip, a microbatch. The
 * integers do not wrap where the integers of other passes would. A workload asks for them before it
 * counts a part. A number of 2^64 or more may come out smaller, but not below 2^64.
 */
#ifndef SIM_GRAPH_EXTENT_H
#define SIM_GRAPH_EXTENT_H

#include "sim/base/units.h"
#include "sim/graph/steps.h"

/* Elements of all tensors together, each with its gradient. A tensor counts as large as its reader
 * of most elements sees it. */
units_wide graph_extent_elements(const struct graph_sharded *sharded);

/* FLOP of all matmuls of both passes. */
units_wide graph_extent_flop(const struct graph_sharded *sharded,
                             const struct graph_backward *backward, const struct graph_kept *kept);

#endif
