/*
 * notes_links.h: parts of a step above its lower bound, where links are the bound.
 */
#ifndef SIM_REPORT_NOTES_LINKS_H
#define SIM_REPORT_NOTES_LINKS_H

#include "sim/report/notes.h"

/* The machine axes of the links, as bits, and ANALYSIS_HOST_BIT; 0: the bound is a unit of the
 * chip. */
uint32_t notes_links_bits(const struct roofline_bound *bound);

/* Adds the parts of time that the links account for. `within_s`: exposed time of collectives on
 * these links, which no other part has. */
void notes_links_build(struct arena *arena, const struct report_input *input,
                       const struct analysis *analysis, double within_s, struct notes *notes);

#endif
