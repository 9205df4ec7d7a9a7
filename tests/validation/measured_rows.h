/*
 * measured_rows.h: collectives that others have measured.
 */
#ifndef TESTS_VALIDATION_MEASURED_ROWS_H
#define TESTS_VALIDATION_MEASURED_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/measure/measure_op.h"

struct measured_row {
    const char *chip;
    enum measure_op operation;
    uint32_t gpus;       /* 0: not a GPU. */
    uint64_t size_bytes; /* As nccl-tests means it. */
    uint64_t time_ns;    /* Measured; or */
    uint64_t busbw_bytes_per_s;
    const char *algorithm; /* Where that is known. */
    const char *shape;     /* TPU: of the slice, */
    const char *axes;      /* and what of it takes part. */
    const char *what;      /* Single figures: what it is, and its source. */
    const char *source;
    bool registered; /* NCCL wrote to arrays directly. */
};

/* nccl-tests on one node: ai-dynamo/aiconfigurator at 095f58a51c4c, aic-core/src/
 * aiconfigurator_core/systems/data/CHIP/comm/nccl: NCCL 2.29.2, on A100 2.27.3; half precision,
 * one process with a thread a GPU, out of place. NCCL's choice is not recorded. */
extern const struct measured_row measured_nodes[];
extern const uint32_t measured_node_count;

extern const struct measured_row measured_figures[];
extern const uint32_t measured_figure_count;

#endif
