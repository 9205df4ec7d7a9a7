/*
 * track.h: Perfetto's packets: tracks, slices, counters, with names that are written once.
 *
 * Field numbers: perfetto.dev, protos/perfetto/trace/trace_packet.proto and the files in
 * track_event next to it.
 */
#ifndef SIM_REPORT_TRACK_H
#define SIM_REPORT_TRACK_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/status.h"
#include "sim/base/strbuf.h"

struct arena;

enum { TRACK_ARGUMENTS_MAX = 8 };

/* What a slice says when it is clicked. The name is a constant. */
struct track_argument {
    const char *name;
    const char *string; /* NULL: the value is `number`. */
    uint64_t number;
};

enum track_category {
    TRACK_LAYER = 1,
    TRACK_COMPUTE,
    TRACK_COLLECTIVE,
    TRACK_TRANSFER,
};

enum track_unit { TRACK_NO_COUNTER, TRACK_BYTES, TRACK_PERCENT };

struct track_names; /* Which names were written, by number. */

struct track_writer {
    struct strbuf *text;
    struct arena *arena;
    struct track_names *names;
    struct strbuf flows; /* Flows of the next event. */
    bool failed;         /* No memory for a name. */
};

/* Starts the trace; STATUS_NO_MEMORY. */
enum status track_writer_start(struct arena *arena, struct strbuf *text,
                               struct track_writer *ret_writer, struct error *reterr);
/* Gives back what the writer holds in addition to the trace. */
void track_writer_end(struct track_writer *writer);

/* An arrow leaves the slice whose begin or end is written next, or leads to it. An arrow has a
 * number of its own, and its slices' events follow each other in time by a nanosecond or more. */
void track_flow_from(struct track_writer *writer, uint64_t number);
void track_flow_to(struct track_writer *writer, uint64_t number);

/* A track; children stand in the order of `rank`. `pid` is not 0 for a process. */
struct track_description {
    uint64_t uuid;
    uint64_t parent_uuid; /* 0: none. */
    const char *name;
    uint32_t rank;
    uint32_t pid;
    enum track_unit unit;
};

void track_describe(struct track_writer *writer, const struct track_description *track);

/* Instants are picoseconds; a trace has nanoseconds. All are rounded down, so that what nests or
 * follows in picoseconds still does. */
void track_slice_begin(struct track_writer *writer, uint64_t uuid, int64_t at_ps,
                       enum track_category category, const char *name,
                       const struct track_argument *arguments, uint32_t argument_count);
void track_slice_end(struct track_writer *writer, uint64_t uuid, int64_t at_ps);
void track_count(struct track_writer *writer, uint64_t uuid, int64_t at_ps, int64_t value);
void track_share(struct track_writer *writer, uint64_t uuid, int64_t at_ps, double percent);

#endif
