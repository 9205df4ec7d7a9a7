/*
 * run_memory.h: what of the memory of a chip needs how much at the peak, against the capacity: also
 * the body of the error when a step does not fit.
 */
#ifndef SIM_REPORT_RUN_MEMORY_H
#define SIM_REPORT_RUN_MEMORY_H

#include <stdbool.h>

#include "sim/program/least_memory.h"
#include "sim/report/report.h"

struct json_writer;
struct strbuf;

/* Whether the peak is within the chip's HBM. */
bool run_memory_fits(const struct report_input *input);

/* A table of the peak; of what a step holds at least that was not simulated to its end. */
void run_memory_write(const struct report_input *input, struct strbuf *text);
void run_memory_write_least(const struct report_input *input, const struct least_memory *least,
                            struct strbuf *text);

/* The member "memory" of a result, and of one that was not simulated to its end. */
void run_memory_put(const struct report_input *input, struct json_writer *json);
void run_memory_put_least(const struct report_input *input, const struct least_memory *least,
                          struct json_writer *json);

/* A member for each kind of memory: "saved activations" is the key "saved_activations". Overheads
 * are left out where there are none. */
void run_memory_put_parts(const char *key, const uint64_t bytes[PROGRAM_MEMORY_COUNT],
                          struct json_writer *json);

#endif
