/*
 * above.h: what a report lists above the lower bound of a step.
 */
#ifndef TESTS_SUPPORT_ABOVE_H
#define TESTS_SUPPORT_ABOVE_H

#include "sim/report/notes.h"

/* Fails the test unless the rows add up to the difference, those that are less say so, none of
 * compute is more than all compute, and compute beside idle links is no more than the busiest of
 * these is idle for. */
void above_check(const struct report_input *input, const struct analysis *facts,
                 const struct notes *notes, const char *text);

#endif
