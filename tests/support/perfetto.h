/*
 * perfetto.h: a reader of timelines, for tests: protobuf back into tracks, slices and arrows. It
 * fails the test where the format is broken: slices that do not nest, names that nobody wrote,
 * arrows without an end.
 */
#ifndef TESTS_SUPPORT_PERFETTO_H
#define TESTS_SUPPORT_PERFETTO_H

#include <stdbool.h>
#include <stdint.h>

struct strbuf;

struct perfetto_field {
    uint32_t number;
    uint32_t wire;
    uint64_t value;       /* Varint, or the bits of a fixed64. */
    const uint8_t *bytes; /* Length delimited. */
    uint64_t size_bytes;
};

bool perfetto_field_read(const uint8_t **at, const uint8_t *end, struct perfetto_field *ret_field);
/* The first field of that number in a message; false if there is none. */
bool perfetto_field_find(const struct perfetto_field *message, uint32_t number,
                         struct perfetto_field *ret_field);
/* The number in it; 0 if there is none. */
uint64_t perfetto_number(const struct perfetto_field *message, uint32_t number);

enum {
    PERFETTO_TRACKS = 32768,
    PERFETTO_DEPTH = 4,
    PERFETTO_CATEGORIES = 4,
    PERFETTO_NAMES = 8192,
    PERFETTO_NAME_BYTES = 96,
    PERFETTO_SAID_BYTES = 320,
    PERFETTO_SLICES = 1 << 15,
    PERFETTO_FLOWS = 1 << 13,
};

struct perfetto_track {
    uint64_t parent;
    uint64_t rank; /* Among the children of its parent. */
    bool described, counter;
    char name[PERFETTO_NAME_BYTES];
    uint32_t open[PERFETTO_DEPTH]; /* Slices. */
    uint32_t depth, slices, most_depth;
    uint64_t last_ns;
    uint64_t last_value, most_value;
    uint32_t points;
};

struct perfetto_slice {
    uint32_t track;
    const char *name;
    uint64_t begin_ns, end_ns;
    char said[PERFETTO_SAID_BYTES]; /* Its arguments: "bytes=4096; to=chip 5 (0,1,1); " */
};

struct perfetto_flow {
    uint64_t number;
    uint32_t from, to; /* Slices. */
    uint64_t from_ns, to_ns;
};

struct perfetto {
    struct perfetto_track track[PERFETTO_TRACKS]; /* By uuid. */
    bool category_name[PERFETTO_CATEGORIES + 1];
    bool event_name[PERFETTO_NAMES], argument_name[PERFETTO_NAMES];
    char name[PERFETTO_NAMES][PERFETTO_NAME_BYTES];
    struct perfetto_slice slice[PERFETTO_SLICES];
    uint32_t slice_count;
    struct perfetto_flow flow[PERFETTO_FLOWS]; /* By number. */
    uint32_t flow_count;
    uint32_t packets, events, cleared;
};

/* The last trace that was read. */
extern struct perfetto perfetto;

void perfetto_read(const struct strbuf *text);

/* The track of that name of a process, by uuid of the chip's: 256 (number among the shown + 1);
 * fails the test if there is none. */
struct perfetto_track *perfetto_track(uint64_t chip, const char *name);
/* The slices of a track, one after the other: the first from `after` on; NULL: no more. */
const struct perfetto_slice *perfetto_next(const struct perfetto_track *track, uint32_t *after);

#endif
