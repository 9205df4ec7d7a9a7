/*
 * bench_cases.h: the steps that podsim bench simulates: scenarios that are shipped, and some that
 * are not: long ones, and ones with overrides of all chips, or of one chip or link of thousands.
 *
 * A new step is one line of the table, and a function if its text is not a scenario's.
 */
#ifndef TOOLS_PODSIM_BENCH_BENCH_CASES_H
#define TOOLS_PODSIM_BENCH_BENCH_CASES_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/status.h"

struct strbuf;

enum { BENCH_SETTINGS_MAX = 3 };

struct bench_case {
    const char *name;
    const char *scenario;                         /* Built in; NULL: write() has the text. */
    void (*write)(struct strbuf *text);           /* A scenario's JSON. */
    bool full;                                    /* Every chip and hop. */
    bool every_layer;                             /* Also of layers that recur. */
    bool quick;                                   /* Takes well under a second. */
    const char *settings[BENCH_SETTINGS_MAX + 1]; /* Settings of --set; ended by NULL. */
};

extern const struct bench_case bench_cases[];
extern const uint32_t bench_case_count;

/* Appends the scenario's JSON, without the settings. Errors: STATUS_NOT_FOUND. */
enum status bench_case_text(const struct bench_case *step, struct strbuf *text,
                            struct error *reterr);

#endif
