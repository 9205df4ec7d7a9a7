/*
 * timeline_lanes.h: which of a stream's, or a port's, tracks a slice stands on. Slices of one track
 * must not overlap, so a slice that begins before another has ended gets a track of its own below.
 * Messages of several streams that take turns at a link overlap: each is shown from its first byte
 * to its last.
 */
#ifndef SIM_REPORT_TIMELINE_LANES_H
#define SIM_REPORT_TIMELINE_LANES_H

#include <stdint.h>

#include "sim/base/status.h"
#include "sim/report/timeline_sort.h"

struct arena;

/* Of one chip. */
struct timeline_lanes {
    uint32_t *of;  /* [record]: the lane of the slice that begins with it, from 0. */
    uint32_t most; /* Lanes of the stream or port that needs the most lanes. */
};

/* A slice takes the first lane that is free when it begins, and every slice gets one. */
enum status timeline_lanes_find(struct arena *arena, const struct timeline_records *records,
                                struct timeline_lanes *ret_lanes, struct error *reterr);

/* How many of a track's records, from its `at`-th on, are one slice: the parts of an op. A message
 * is a slice by itself. */
uint32_t timeline_slice_records(const struct timeline_records *records,
                                const struct timeline_track *track, uint32_t at);

#endif
