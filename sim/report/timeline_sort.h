/*
 * timeline_sort.h: the records of the shown chips, by chip, by track and, on a track, by their
 * begin.
 */
#ifndef SIM_REPORT_TIMELINE_SORT_H
#define SIM_REPORT_TIMELINE_SORT_H

#include <stdint.h>

#include "sim/base/status.h"
#include "sim/trace/trace.h"

struct arena;

enum { TIMELINE_TRACKS_MAX = TRACE_STREAMS_MAX + TRACE_PORTS_MAX + 2 };

struct timeline_track {
    uint8_t kind;    /* enum trace_kind */
    uint32_t number; /* The number of the stream or port. */
    uint32_t first;
    uint32_t count;
};

struct timeline_records {
    uint32_t chip; /* In the records. */
    const struct trace_record **record;
    uint32_t record_count;
    struct timeline_track track[TIMELINE_TRACKS_MAX]; /* Streams, ports, memory, arrivals. */
    uint32_t track_count;                             /* Tracks that have records. */
};

/* Of each chip of the records, ascending. */
struct timeline_sorted {
    struct timeline_records *of;
    uint32_t count;
};

/* Records with the same begin keep the order of the trace. */
enum status timeline_sort(struct arena *arena, const struct trace *trace,
                          struct timeline_sorted *ret_sorted, struct error *reterr);

/* Records of a chip, which is one of trace->shown.recorded. */
const struct timeline_records *timeline_records_of(const struct timeline_sorted *sorted,
                                                   uint32_t chip);

/* The track of a stream, or NULL if nothing ran on it. */
const struct timeline_track *timeline_stream(const struct timeline_records *records,
                                             uint32_t stream);

#endif
