/*
 * bench_steps.h: how fast whole steps are simulated, and in how much memory. Each is simulated in a
 * process of its own, so that its peak memory is its own.
 */
#ifndef TOOLS_PODSIM_BENCH_BENCH_STEPS_H
#define TOOLS_PODSIM_BENCH_BENCH_STEPS_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/status.h"

enum { BENCH_STEPS_MAX = 16 };

struct bench_step {
    const char *name;
    uint64_t chips;
    uint64_t chips_replayed;
    uint64_t events;
    uint64_t transfers;
    uint64_t digest;
    double wall_s; /* From the fork to the end of the process: reading, building and playing. */
    double replay_s;
    uint64_t peak_bytes; /* Resident. */
};

/* Fills up to BENCH_STEPS_MAX rows; `quick`: only steps that take well under a second. */
enum status bench_steps_run(bool quick, struct bench_step *ret_steps, uint32_t *ret_count,
                            struct error *reterr);

#endif
