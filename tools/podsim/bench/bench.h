/*
 * bench.h: how fast the engine is here, by loads that are no scenario. Each runs a few times; the
 * best counts, since other programs can only slow it down. Whole steps: see bench_steps.h.
 *
 * A new row is one function and one line in bench.c's table.
 */
#ifndef TOOLS_PODSIM_BENCH_BENCH_H
#define TOOLS_PODSIM_BENCH_BENCH_H

#include <stdint.h>

#include "sim/base/status.h"

struct json_writer;
struct strbuf;

enum { BENCH_ROWS_MAX = 16 };

/* What one run of a load did. */
struct bench_sample {
    uint64_t count;          /* The number of what the row counts: transfers, or holds. */
    uint64_t event_count;    /* Handler calls, one for each chip. */
    uint64_t entry_count;    /* Batches taken from the queue. */
    uint64_t chip_count;     /* 0: the load has none. */
    uint64_t reserved_bytes; /* Reserved; less is touched. */
    uint64_t digest;         /* The digest of what happened: equal in every run. */
    double wall_s;           /* Without the setting up. */
};

/* `shrink` divides the length of the load; 1 is the real one. */
typedef enum status bench_load_fn(uint32_t shrink, struct bench_sample *ret_sample,
                                  struct error *reterr);

struct bench_result {
    const char *name;
    const char *title;
    const char *unit;
    struct bench_sample best;
};

struct bench {
    uint32_t row_count;
    struct bench_result rows[BENCH_ROWS_MAX];
};

struct bench_options {
    uint32_t repeats; /* At least 1. */
    uint32_t shrink;  /* At least 1. */
};

/* Runs every row; a digest that differs between the runs of a row is an assertion. */
enum status bench_run(const struct bench_options *options, struct bench *ret_bench,
                      struct error *reterr);

void bench_print(const struct bench *bench, struct strbuf *text);
/* An array with one object a row, where a value may stand. */
void bench_write_json(const struct bench *bench, struct json_writer *writer);

/* The wall clock, for loads. */
double bench_clock_s(void);

/* The loads of bench_loads.c. */
bench_load_fn bench_hold_fast;
bench_load_fn bench_hold_reference;
bench_load_fn bench_torus_lockstep;
bench_load_fn bench_torus_routed;
bench_load_fn bench_torus_unequal;

#endif
