/*
 * report.h: what reports are made from. Reports read finished products; they simulate nothing.
 */
#ifndef SIM_REPORT_REPORT_H
#define SIM_REPORT_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/machine/machine.h"
#include "sim/mesh/mesh.h"
#include "sim/program/program.h"
#include "sim/report/smallest_slice.h"
#include "sim/roofline/roofline.h"
#include "sim/step/workload.h"
#include "sim/trace/trace.h"

struct generation;
struct json_writer;
struct report_interval;

/* How an axis of the machine was folded. */
struct report_fold {
    uint32_t period; /* Equal to the axis' length: not folded. */
    const char *reason;
};

/* What ends the batches that fit, where memory does not: a batch that is refused, and why. */
struct report_refused {
    uint64_t batch;     /* A batch that memory may have room for and that cannot be; 0: none. */
    const char *reason; /* Why the batch is refused, as an error says it. */
};

/* The most sequences that fit a step of inference, as those who build steps have found them. */
struct report_largest {
    bool is;               /* The most sequences were looked for. */
    bool is_estimate;      /* Steps may hold more than is known of them, and fewer sequences fit. */
    uint64_t batch;        /* The most sequences, as /workload/batch counts them. */
    uint64_t batch_of_gib; /* The most sequences if the data sheet's GB are GiB. */
    struct report_refused refused;        /* The end of `batch`. */
    struct report_refused refused_of_gib; /* The end of `batch_of_gib`. */
};

/* The smallest slice that a step of inference fits, as those who build steps have found it. */
struct report_slice {
    bool is;       /* The smallest slice was looked for. */
    bool is_tried; /* A layout of the step fits it; else no layout of a smaller slice was found. */
    bool is_estimate; /* Only the first part of the step was simulated on it. */
    struct smallest_slice smallest;
};

/* With both readings of the data sheet's GB. */
struct report_slices {
    struct report_slice of_gb, of_gib;
};

struct report_input {
    const char *title;
    const char *question; /* What the scenario answers, or "". */
    /* For the timeline; NULL: it does not say. */
    const char *version;  /* The version of podsim. */
    const char *scenario; /* The scenario's name on the command line. */
    const char *settings; /* What the command line changes in the scenario, with blanks between. */
    /* A preset and its stack, which has no tables of the chip; NULL: none is lacking. */
    const char *preset, *lacking_stack;
    const struct machine *machine;
    const struct machine_plan *machine_plan; /* What `machine` is made of; NULL: it is not known. */
    const struct mesh *mesh;
    const struct workload_plan *workload;
    const struct roofline *roofline; /* NULL: the program was read, and of its workload no more
                                        is known than the names of algorithms. */
    const struct program *program;   /* Not for a roofline alone. */
    const struct trace *trace;       /* Not for a roofline alone. */
    struct report_fold fold[MACHINE_AXES_MAX]; /* By machine axis. */
    const struct generation *generation; /* Whose prefill and last step program and trace are; NULL:
                                            it is none. */
    struct report_largest largest;       /* The most sequences, for a step of inference. */
    struct report_slices slices;         /* The smallest slices, for a step of inference. */
    const struct report_interval *interval; /* NULL: it was not asked for (run_interval.h). */
    double wall_s;                          /* Wall-clock time of the replay; 0: it is not shown. */
    /* Members that the caller has for the end of the result's object; NULL: none. */
    void (*write_more)(const void *owner, struct json_writer *json);
    const void *more_owner;
};

#endif
