/*
 * listing.h: the parts of workload_listing(). Internal to sim/step.
 */
#ifndef SIM_STEP_LISTING_H
#define SIM_STEP_LISTING_H

#include "sim/base/strbuf.h"
#include "sim/program/program.h"
#include "sim/step/lower.h"

struct listing {
    struct strbuf *text;
    const struct ranks *ranks;
    struct workload_listing *made;
    enum workload_section section;
};

/* Notes a collective of the section. */
void listing_tell(struct listing *listing, enum collective_kind kind, const char *group,
                  uint64_t size_bytes);

/* What the letters of a step mean. */
void listing_heading(struct strbuf *text, const struct ranks *ranks);

/* Copies to and from the host's memory, which are no steps of the graph: those of a layer's
 * template of that pass that has most, of equals the last. The last layer, which comes first
 * backward, loads no activations, and with it the head's moments are copied, not a layer's. */
void listing_copies(struct listing *listing, const struct program *program, enum lower_act act);

/* A layer of the kind at the top, and a module that predicts a further token, from their graphs.
 * When stages of a pipeline gather weights and reduce gradients is the schedule's, so the program
 * says it. */
void listing_passes(struct listing *listing, const struct program *program);

/* The streams, and for every op of a template what it waits for. */
void listing_streams(struct strbuf *text, const struct program *program);

#endif
