/*
 * run_room.h: how many sequences fit the memory of a step of inference, in a result and in words.
 */
#ifndef TOOLS_PODSIM_RUN_RUN_ROOM_H
#define TOOLS_PODSIM_RUN_RUN_ROOM_H

#include <stdbool.h>

#include "sim/base/strbuf.h"
#include "sim/program/least_memory.h"
#include "sim/report/report.h"
#include "tools/podsim/common/session.h"

struct worker;

/* The largest batches that fit, of a step that was simulated and is reported as `input`; `least` is
 * what its program holds. `of_gib`: also if the data sheet's GB are GiB. Errors: as
 * room_find_largest(). */
enum status run_room_find(const struct session *session, const struct report_input *input,
                          const struct least_memory *least, bool of_gib, struct worker *worker,
                          struct report_largest *ret_largest, struct error *reterr);

/* The largest batches that fit, of a step that does not: with fewer sequences than the step has, or
 * nothing is found. */
enum status run_room_find_unfit(const struct session *session, const struct report_input *input,
                                const struct least_memory *least, bool of_gib,
                                struct worker *worker, struct report_largest *ret_largest,
                                struct error *reterr);

/* "185 sequences of this length would fit": of a step that does not fit, a chip of which holds
 * `peak_bytes`; as `largest` has it, or a range if no batches were looked at. Returns whether any
 * would. */
bool run_room_write(const struct session *session, const struct report_largest *largest,
                    double peak_bytes, struct strbuf *text);

#endif
