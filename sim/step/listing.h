/*
 * listing.h: the parts of workload_listing(). Internal to sim/step.
 */
#ifndef SIM_STEP_LISTING_H
#define SIM_STEP_LISTING_H

#include "sim/base/strbuf.h"
#include "sim/program/program.h"
#include "sim/step/ranks.h"

struct listing {
    struct strbuf *text;
    const struct ranks *ranks;
    struct workload_listing *made;
    enum workload_section section;
    uint32_t step; /* The last number given in this section. */
};

/* Notes a collective of the section. */
void listing_tell(struct listing *listing, enum collective_kind kind, const char *group,
                  uint64_t size_bytes);

/* What the letters of a step mean. */
void listing_heading(struct strbuf *text, const struct ranks *ranks);

/* A step that makes nothing worth a size: "3. what   (why)". */
void listing_step(struct listing *listing, const char *remark, const char *what, ...)
    __attribute__((format(printf, 3, 4)));

/* Copies to and from the host's memory, which are no steps of the graph: those of the first
 * template of that name that has some. The last layer has none. */
void listing_copies(struct listing *listing, const struct program *program, const char *name);

/* A layer of the kind at the top, from its graph. When stages of a pipeline gather weights and
 * reduce gradients is the schedule's, so the program says it. */
void listing_layer(struct listing *listing, const struct program *program);

/* All ops of a template of that name, with their collectives; false: the program has none. */
bool listing_template(struct listing *listing, const struct program *program, const char *name);

/* The streams, and for every op of a template what it waits for. */
void listing_streams(struct strbuf *text, const struct program *program);

#endif
