/*
 * timeline_sort.h: the records of one chip, by track and, on a track, by their begin.
 */
#ifndef SIM_REPORT_TIMELINE_SORT_H
#define SIM_REPORT_TIMELINE_SORT_H

#include <stdint.h>

#include "sim/base/status.h"
#include "sim/trace/trace.h"

struct arena;

enum { TIMELINE_TRACKS_MAX = TRACE_STREAMS_MAX + TRACE_PORTS_MAX + 1 };

struct timeline_track {
    uint8_t kind;    /* enum trace_kind */
    uint32_t number; /* Of the stream or port. */
    uint32_t first;
    uint32_t count;
};

struct timeline_records {
    const struct trace_record **record;
    uint32_t record_count;
    struct timeline_track track[TIMELINE_TRACKS_MAX]; /* Streams, ports, memory. */
    uint32_t track_count;                             /* That have records. */
};

/* Records with the same begin keep the order of the trace. */
enum status timeline_sort(struct arena *arena, const struct trace *trace, uint32_t chip,
                          struct timeline_records *ret_records, struct error *reterr);

#endif
