/*
 * rows.h: measurements of kernels and collectives, a line of text each, as the programs of `podsim
 * calibrate
 * --script` print them. docs/calibrate.md has the format.
 */
#ifndef TOOLS_PODSIM_CALIBRATE_ROWS_H
#define TOOLS_PODSIM_CALIBRATE_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/status.h"
#include "sim/base/work.h"
#include "sim/kernels/kernels.h"
#include "sim/measure/measure_op.h"

struct arena;

enum {
    ROWS_VERSION = 1,
    ROWS_FILE_BYTES_MAX = 64 * 1024 * 1024,
    ROWS_MAX = 250000, /* All products of a stack on its dense grid, twice. */
    ROWS_SKIPPED_MAX = 8,
};

enum row_what {
    ROW_KERNEL,     /* A point of a table: a product, or attention. */
    ROW_BETWEEN,    /* A kernel between matmuls. */
    ROW_LAUNCH,     /* A kernel that has next to nothing to do. */
    ROW_COLLECTIVE, /* A collective of the GPUs of a node. */
    ROW_OVERLAP,    /* A product at the same time as a copy that holds cores. */
};

struct row {
    uint32_t line;
    enum row_what what;
    enum kernel_family family; /* The family of a table's point. */
    enum format format;        /* The format that a point's kernel multiplies. */
    enum kernel_layout layout; /* The layout of a matmul. */
    enum format result;        /* The result's format, for a matmul. */
    enum work_cast cast;       /* A matmul's cast before it: which scales the operands have. */
    uint32_t side[KERNEL_SIDES_MAX]; /* Of a point: its place in the grid. */
    enum work_function function;     /* Of a kernel between matmuls: what it computes. */
    uint64_t moved_bytes;            /* Bytes that a kernel between matmuls reads and writes. */
    enum measure_op operation;       /* A collective's name in nccl-tests. */
    uint32_t ranks;                  /* GPUs of a collective. */
    uint64_t size_bytes;             /* A collective's size in nccl-tests. */
    uint32_t cores;                  /* Cores that a copy holds at the same time as a product. */
    uint64_t copied_bytes_per_s;     /* Bytes that such a copy reads and writes in HBM. */
    uint32_t repeats;                /* Measurements behind the three times. */
    int64_t median_ps;               /* Half of the repeats took less. */
    int64_t low_ps;                  /* A tenth of the repeats took less. */
    int64_t high_ps;                 /* A tenth of the repeats took longer. */
};

/* What the lines of a file say. Texts are NULL where no line has them. A file may have the rows of
 * several programs one after the other: texts are those of the first then, and libraries of all. */
struct rows {
    const char *script;    /* "pytorch" */
    const char *device;    /* "NVIDIA H100 80GB HBM3" */
    const char *driver;    /* "550.54.15" */
    const char *libraries; /* "PyTorch 2.6.0, built with 12.4; NCCL 2.27.3" */
    const char *clock;     /* "1755 MHz after the warm-up, 1740 MHz at the end" */
    const struct row *row;
    uint32_t count;
    const char *skipped[ROWS_SKIPPED_MAX]; /* The first reasons of what was not measured. */
    uint32_t skipped_count;                /* Lines "skipped", all. */
    uint32_t cut_line; /* A line that the end of the file cuts off, and is left out; 0: none. */
    bool is_whole;     /* The last line says that the last program came to its end. */
};

/* Reads the text of a file. `path` is for errors, whose place is "path:line". Errors: what is no
 * such line, with the nearest word; STATUS_LIMIT. */
enum status rows_read(struct arena *arena, const char *path, const char *text, uint64_t text_bytes,
                      struct rows *ret_rows, struct error *reterr);

#endif
