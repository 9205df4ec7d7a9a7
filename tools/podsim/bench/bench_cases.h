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

enum { BENCH_SETTINGS_MAX = 3, BENCH_EARLY_MAX = 2 };

struct bench_case {
    const char *name;
    const char *scenario;                         /* Built in; NULL: write() has the text. */
    void (*write)(struct strbuf *text);           /* A scenario's JSON. */
    unsigned layers;                              /* Of LLaMA-3-70B, without a model; 0: it has. */
    bool full;                                    /* Every chip and hop. */
    bool every_layer;                             /* Also of layers that recur. */
    bool quick;                                   /* Takes well under a second. */
    const char *settings[BENCH_SETTINGS_MAX + 1]; /* Settings of --set; ended by NULL. */
    /* Further ones, with which the work is that of a podsim without run.arbitration, whose remat
     * "block" is "layer" today; ended by NULL. */
    const char *early[BENCH_EARLY_MAX + 1];
};

extern const struct bench_case bench_cases[];
extern const uint32_t bench_case_count;

/* Appends the scenario's JSON, without the settings. `model`: the path of its model, where it has
 * layers; NULL: the model is part of the text. Errors: STATUS_NOT_FOUND. */
enum status bench_case_text(const struct bench_case *step, const char *model, struct strbuf *text,
                            struct error *reterr);

/* Appends its model's JSON. */
void bench_case_model(const struct bench_case *step, struct strbuf *text);

#endif
