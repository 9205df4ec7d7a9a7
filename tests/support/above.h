/*
 * above.h: what a report lists above the lower bound of a step.
 */
#ifndef TESTS_SUPPORT_ABOVE_H
#define TESTS_SUPPORT_ABOVE_H

#include "sim/report/notes.h"

/* Fails the test unless the rows add up to the step less its lower bound; rows below 0 begin with
 * "less"; no row of compute is longer than all compute; and compute during which links are idle is
 * at most as long as the busiest of these links is idle. */
void above_check(const struct report_input *input, const struct analysis *analysis,
                 const struct notes *notes, const char *text);

#endif
