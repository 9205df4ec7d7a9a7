/*
 * run_interval.h: between which times a measured step would lie, next to the simulated one.
 */
#ifndef SIM_REPORT_RUN_INTERVAL_H
#define SIM_REPORT_RUN_INTERVAL_H

#include <stdint.h>

#include "sim/report/report.h"

struct json_writer;
struct strbuf;

/* What measured steps of the same kind say. Ratios are measured over simulated times. */
struct report_interval {
    double low, median, high;
    uint32_t coverage_percent; /* Measured steps that lie within. */
    const char *work;          /* The kind of work in words: "inference". */
    const char *chip, *stack;
    uint32_t rows, publications;             /* Rows and publications of this chip and stack. */
    uint32_t other_rows, other_publications; /* Rows and publications of other chips or stacks. */
};

/* The lines behind those of the step; nothing if no interval was asked for. */
void run_interval_write(const struct report_input *input, struct strbuf *text);
/* The member `uncertainty`, or none. */
void run_interval_put(const struct report_input *input, struct json_writer *json);

#endif
