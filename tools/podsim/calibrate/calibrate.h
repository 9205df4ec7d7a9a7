/*
 * calibrate.h: from measured rows to tables of kernels, and to the file of a stack.
 */
#ifndef TOOLS_PODSIM_CALIBRATE_CALIBRATE_H
#define TOOLS_PODSIM_CALIBRATE_CALIBRATE_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/status.h"
#include "sim/choose/protocol.h"
#include "sim/collective/algorithm.h"
#include "sim/kernels/kernels.h"
#include "sim/machine/machine.h"
#include "tools/podsim/calibrate/rows.h"

struct arena;
struct strbuf;

/* Rows of this many bytes say what share of HBM's rate a large kernel reaches. */
#define CALIBRATE_LARGE_BYTES UINT64_C(100000000)

enum {
    CALIBRATE_NAME_COLUMN = 40, /* The column of a summary where names end. */
    CALIBRATE_OVERLAP_PARTS = 16,
};

/* How far apart repeated measurements of one kernel are: from a tenth of them to nine tenths, as a
 * share of the median. */
struct calibrate_spread {
    uint32_t median_ppm; /* The median spread of all rows. */
    uint32_t most_ppm;   /* The spread of the row that is furthest apart. */
    uint32_t most_line;  /* The line of the row that is furthest apart. */
};

/* The rows of one kind of kernel, and the table that they make. */
struct calibrate_table {
    struct kernel_table table;
    uint32_t row_count;    /* Rows of the kind, also those that were left out. */
    uint32_t fast_count;   /* Rows faster than the roofline. */
    uint32_t filled_count; /* Points of the grid without a row, filled from points around them. */
    const char *refusal;   /* Why the rows make no table; NULL: they do. */
    struct calibrate_spread spread;
    struct kernel_error edges; /* With every second edge left out. */
};

/* Rows of one kind between matmuls. */
struct calibrate_function {
    uint32_t row_count, large_count;
    uint64_t largest_bytes;
    uint32_t share_ppm; /* 0: none was measured. */
    struct calibrate_spread spread;
};

/* A constant of the model of collectives. */
struct calibrate_factor {
    const struct row *row;      /* The row that it is learned from; NULL: none has it. */
    uint32_t ppm;               /* Millionths of what NCCL reckons; 0: it is not learned. */
    bool is_outside;            /* No factor that a file may have gives the row's time. */
    struct algorithm algorithm; /* Algorithm of the row, as it is simulated. */
    enum protocol protocol;     /* Protocol of the row, as it is simulated. */
};

/* How far simulated times are off measured ones. */
struct calibrate_error {
    uint32_t count;
    uint64_t median_ppm, ninetieth_ppm;
};

/* Rows of collectives, the constants that they set, and errors by kind, the last of all kinds. */
struct calibrate_collectives {
    const struct row **row; /* Rows that no wire forbids. */
    uint32_t row_count;
    struct calibrate_spread spread;
    struct chip_nccl factors; /* Those that are learned; others are 0. */
    struct calibrate_factor latency, byte, nvls;
    struct calibrate_error before[MEASURE_COUNT + 1]; /* With the constants of podsim. */
    struct calibrate_error error[MEASURE_COUNT + 1];  /* With those that are learned. */
};

/* Products while a copy holds as many cores. */
struct calibrate_overlap_part {
    uint32_t cores;        /* Cores of the copy; 0: of all rows. */
    uint64_t measured_ppm; /* How long a product takes, of its time alone: the median. */
    uint64_t modelled_ppm; /* The median by the model. */
    struct calibrate_error error;
};

/* Rows of products during a copy, and how far the model is off them. */
struct calibrate_overlap {
    const struct row **row;
    uint32_t row_count; /* Rows with a copy that are compared. */
    struct calibrate_spread spread;
    struct calibrate_overlap_part all;
    struct calibrate_overlap_part part[CALIBRATE_OVERLAP_PARTS];
    uint32_t part_count;
};

/* A row that no table has. */
struct calibrate_left_out {
    uint32_t line;
    const char *why;
};

struct calibration {
    const struct rows *rows;
    const struct chip *chip;         /* In the profile "ideal". */
    const struct kernel_stack *base; /* Has what was not measured; NULL: nobody has. */
    const char *base_name;           /* "h100-sxm.te" */
    const char *source;              /* The source of the tables, in words. */
    struct calibrate_table table[KERNEL_TABLES_MAX];
    uint32_t table_count;
    struct calibrate_function function[WORK_FUNCTION_COUNT];
    int64_t launch_ps;           /* 0: it was not measured. */
    struct machine_plan machine; /* Says the chip of machines that rows are simulated on. */
    struct calibrate_collectives collectives;
    struct calibrate_overlap overlap;
    struct calibrate_left_out *left_out;
    uint32_t left_out_count;
};

/* Makes the tables. `calibration` has rows, chip, base and source. Errors: STATUS_INVALID where no
 * row is of use, STATUS_LIMIT. `path` is the rows' file, for errors. */
enum status calibrate_tables(struct arena *arena, const char *path, struct calibration *calibration,
                             struct error *reterr);

/* Notes a row that is not used, with the reason. */
enum status calibrate_leave_out(struct arena *arena, struct calibration *calibration, uint32_t line,
                                struct error *reterr, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* Of `count` rows. */
enum status calibrate_spread(struct arena *arena, const struct row *const *row, uint32_t count,
                             struct calibrate_spread *ret_spread, struct error *reterr);

/* Shares of kernels between matmuls, and the launch. Without a base that says which kernels there
 * are, their rows are left out. */
enum status calibrate_between(struct arena *arena, struct calibration *calibration,
                              struct error *reterr);

/* Learns constants of collectives, and plays all rows. Errors: rows of more GPUs than a node has,
 * with their line; STATUS_LIMIT. */
enum status calibrate_collectives(struct arena *arena, const char *path,
                                  struct calibration *calibration, struct error *reterr);

/* Why rows of collectives set no factor; NULL: there are none. */
const char *calibrate_collectives_refusal(struct arena *arena,
                                          const struct calibration *calibration);

/* Compares products during a copy with the model of them. */
enum status calibrate_overlap(struct arena *arena, struct calibration *calibration,
                              struct error *reterr);

/* The base's table of the same kind as one of its own; NULL: it has none. */
const struct kernel_table *calibrate_base_table(const struct calibration *calibration,
                                                const struct kernel_table *table);

/* The stack with the measured tables, for kernel_stack_write(). Its kernels between matmuls are the
 * base's, with what was measured of them. */
enum status calibrate_stack(struct arena *arena, const struct calibration *calibration,
                            const char *name, struct kernel_stack *ret_stack, struct error *reterr);

/* Adds "norm, launch" of what was measured between matmuls, or of what was not, after `before`.
 * False: it is nothing, and `before` was not added either. */
bool calibrate_parts_add(const struct calibration *calibration, bool measured, const char *before,
                         struct strbuf *text);

/* What was read, for people. */
void calibrate_summary(const struct calibration *calibration, const char *path,
                       struct strbuf *text);

/* The part on collectives; nothing where no row is of one. */
void calibrate_summary_collectives(const struct calibration *calibration, struct strbuf *text);

/* The part on products during a copy; nothing where no row is of one. */
void calibrate_summary_overlap(const struct calibration *calibration, struct strbuf *text);

/* "spread 1.5%, at most 3.0% (line 12)" */
void calibrate_spread_add(const struct calibrate_spread *spread, struct strbuf *text);

/* Adds the text of the program that measures a library: "pytorch". Errors: STATUS_NOT_FOUND, with
 * the nearest. */
enum status calibrate_script(const char *name, struct strbuf *text, struct error *reterr);

/* The stack that is nearest to what a program calls: "torch-eager". "te" for rows of another
 * program, or of none (NULL). */
const char *calibrate_script_base(const char *script);

#endif
