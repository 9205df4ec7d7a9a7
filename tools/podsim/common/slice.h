/*
 * slice.h: the smallest slice of a product that a step of inference fits, with some layout of the
 * scenario's mesh axes.
 */
#ifndef TOOLS_PODSIM_COMMON_SLICE_H
#define TOOLS_PODSIM_COMMON_SLICE_H

#include "sim/report/report.h"
#include "tools/podsim/common/session.h"

struct worker;

/* Of a step that was built, and is reported as `input`: for both readings of the data sheet's GB.
 * Slices are tried from the smallest that has room for the weights and the cache, with ranks of the
 * mesh's axes in all numbers that fill them: what a run would refuse is no layout. The number of
 * tries is bounded; where they end, `is_tried` is false, and the slice is the first that was not
 * tried.
 * Errors: STATUS_INTERRUPTED if the user stopped it, STATUS_NO_MEMORY. */
enum status slice_find(const struct session *session, const struct report_input *input,
                       struct worker *worker, struct report_slices *ret_slices,
                       struct error *reterr);

#endif
