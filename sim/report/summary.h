/*
 * summary.h: one screen for the terminal: how long the step takes, what bounds it, what is exposed,
 * what it needs, and why it is not the roofline.
 */
#ifndef SIM_REPORT_SUMMARY_H
#define SIM_REPORT_SUMMARY_H

#include <stdbool.h>

#include "sim/base/status.h"
#include "sim/report/report.h"

struct arena;
struct strbuf;

/* `colour`: the reader is a terminal that shows it. */
enum status summary_write(struct arena *arena, const struct report_input *input, bool colour,
                          struct strbuf *text, struct error *reterr);

/* What of the memory needs how much at the peak, against the capacity: also the body of the error
 * when a scenario does not fit. */
void summary_write_memory(const struct report_input *input, struct strbuf *text);

/* The lines of the memory: each kind, and all together. */
void summary_write_memory_parts(const struct report_input *input,
                                const uint64_t bytes[PROGRAM_MEMORY_COUNT], uint64_t total_bytes,
                                struct strbuf *text);

/* Whether the peak is within the chip's HBM. */
bool summary_fits(const struct report_input *input);

#endif
