/*
 * listing.h: the parts of workload_listing(). Internal to sim/step.
 */
#ifndef SIM_STEP_LISTING_H
#define SIM_STEP_LISTING_H

#include "sim/base/strbuf.h"
#include "sim/program/program.h"
#include "sim/step/ranks.h"

/* The parts of the model that a legend is for. */
enum listing_parts {
    LISTING_LAYER, /* The last layer, and what a module has of its own. */
    LISTING_ALL_PARTS,
};

/* What the letters of a step mean. */
void listing_heading(struct strbuf *text, const struct ranks *ranks, enum listing_parts parts);

/* A layer of the kind at the top, and a module that predicts a further token, from their graphs.
 * When stages of a pipeline gather weights and reduce gradients is the schedule's, so the program
 * says it. */
void listing_passes(struct strbuf *text, const struct ranks *ranks, const struct program *program);

/* The streams, and for every op of a template what it waits for. */
void listing_streams(struct strbuf *text, const struct program *program);

#endif
