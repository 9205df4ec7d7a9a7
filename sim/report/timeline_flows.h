/*
 * timeline_flows.h: the arrows of a timeline: from an op to the compute that waited for it, from a
 * SEND to the RECEIVE that its message ends.
 */
#ifndef SIM_REPORT_TIMELINE_FLOWS_H
#define SIM_REPORT_TIMELINE_FLOWS_H

#include "sim/report/report.h"
#include "sim/report/timeline_sort.h"
#include "sim/report/track.h"

struct arena;

/* Which shown chips send to which, as far as both are shown. */
struct timeline_p2p {
    bool *sends;        /* [shown][stream]: to a shown chip. */
    uint32_t *receives; /* [shown][stream of SENDs]: from which shown chip; UINT32_MAX: none. */
};

enum status timeline_p2p_find(struct arena *arena, const struct report_input *input,
                              const struct timeline_sorted *sorted, struct timeline_p2p *ret_p2p,
                              struct error *reterr);

/* Of one shown chip. */
struct timeline_flows {
    const struct report_input *input;
    const struct timeline_p2p *p2p;
    const struct timeline_records *records;
    const struct program_role *role;
    uint32_t shown; /* The chip's number among the shown chips. */

    uint32_t *parts_before; /* [record]: of its stream. */
    uint32_t *waiter;       /* [record]: the record of the first compute that waited for it. */
    uint32_t *waiter_next;  /* [record of compute]: the next; UINT32_MAX: none. */
    uint32_t *awaited;      /* [record of compute]: what it waited for; UINT32_MAX: nothing. */
    uint32_t arrival_next[TRACE_STREAMS_MAX]; /* The next arrival of each stream of RECEIVEs. */
};

enum status timeline_flows_find(struct arena *arena, const struct report_input *input,
                                const struct timeline_p2p *p2p,
                                const struct timeline_records *records,
                                const struct program_role *role, uint32_t shown,
                                struct timeline_flows *ret_flows, struct error *reterr);

/* Before the begin, and before the end, of the slice of a record (by its place among the chip's) is
 * written. Slices of a stream come in order. */
void timeline_flows_begin(struct timeline_flows *flows, uint32_t record,
                          struct track_writer *writer);
void timeline_flows_end(struct timeline_flows *flows, uint32_t record, struct track_writer *writer);

/* The op of a record. */
const struct program_op *timeline_op(const struct program *program, const struct program_role *role,
                                     const struct trace_record *record);

#endif
