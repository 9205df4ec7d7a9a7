/*
 * schedule_check.h: what must hold of a schedule, whoever made it.
 */
#ifndef SIM_SCHEDULE_SCHEDULE_CHECK_H
#define SIM_SCHEDULE_SCHEDULE_CHECK_H

#include "sim/schedule/schedule.h"

enum { SCHEDULE_PASS_TEXT_BYTES = 32, SCHEDULE_PLACE_BYTES = 48 };

/* "3I12", as PyTorch writes it; returns `buffer`. */
const char *schedule_pass_text(const struct schedule_pass *pass,
                               char buffer[SCHEDULE_PASS_TEXT_BYTES]);

/* Where a pass of a rank's list stands: "rank 3, pass 7", or, in the file that it came from,
 * "line 4, cell 8"; returns `buffer`. */
const char *schedule_place_text(const struct schedule *schedule, uint32_t rank, uint32_t index,
                                char buffer[SCHEDULE_PLACE_BYTES]);

/* Every stage does every microbatch of its copy once: a forward pass, then a backward pass or an
 * input and, later, a weight gradient, all on the stage's rank; and no passes wait for each other
 * in a circle. Errors: STATUS_INVALID with rank, place in its list, pass and reason; STATUS_STUCK;
 * STATUS_INTERRUPTED. */
enum status schedule_check(const struct schedule *schedule, const struct cancel *cancel,
                           const char *where, struct error *reterr);

#endif
