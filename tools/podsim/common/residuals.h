/*
 * residuals.h: how long published steps took next to simulated ones: a ratio for each measurement
 * that podsim may learn from, and for what kind of step. `podsim validate` writes them to
 * workloads/residuals.json, and `podsim run --uncertainty` reads them.
 */
#ifndef TOOLS_PODSIM_COMMON_RESIDUALS_H
#define TOOLS_PODSIM_COMMON_RESIDUALS_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/status.h"

struct arena;
struct session;

enum {
    RESIDUAL_FILE_VERSION = 2,
    RESIDUAL_COVERAGE_PERCENT = 80,   /* The share of measured steps within an interval. */
    RESIDUAL_STEADY_MFU_PERCENT = 25, /* Below this MFU a training step is far from the peak. */
    RESIDUAL_PAST_YEAR = 2022,
    RESIDUAL_RATIO_MOST_PPM = 1000 * 1000 * 1000,
};

/* Steps of one work are compared with each other alone. */
enum residual_work {
    RESIDUAL_DENSE,   /* Training of a dense model, near the peak. */
    RESIDUAL_OTHER,   /* Training with experts, far from the peak, or by a framework of 2022. */
    RESIDUAL_SERVING, /* A step of inference, or a whole answer. */
    RESIDUAL_WORKS
};
/* Words of the file; NULL ends. */
extern const char *const residual_work_names[RESIDUAL_WORKS + 1];
extern const char *const residual_work_words[RESIDUAL_WORKS]; /* Words for people. */

/* What a step has in common with measured ones. */
struct residual_kind {
    enum residual_work work;
    const char *chip;
    const char *stack; /* The stack whose measured kernels the step has. */
    bool is_own_stack; /* The stack is a file of the user: no measured step had it. */
};

struct residual {
    const char *id;          /* The id of the published row. */
    const char *publication; /* Rows of one publication share an error. */
    struct residual_kind kind;
    uint32_t ratio_ppm; /* Measured over simulated time, in millionths. */
};

struct residuals {
    struct residual *row;
    uint32_t row_count;
    /* How far intervals of a work reach from their median, up and down, as a ratio in millionths.
     */
    uint32_t reach_ppm[RESIDUAL_WORKS];
};

/* The file of the project. Errors: what is no such file, with its place. */
enum status residuals_read(struct arena *arena, struct residuals *ret_residuals,
                           struct error *reterr);

/* Whether measured steps are compared with a step that was built, before it is replayed.
 * STATUS_UNSUPPORTED: none is, as in a program's text, in the profile "ideal", or without a stack.
 */
enum status residual_kind_check(const struct session *session, struct error *reterr);

/* The kind of a step that was replayed. Errors: residual_kind_check()'s. */
enum status residual_kind_find(const struct session *session, struct residual_kind *ret_kind,
                               struct error *reterr);

#endif
