/*
 * analysis.h: figures that several reports show, derived once from the trace, the program and the
 * roofline.
 */
#ifndef SIM_REPORT_ANALYSIS_H
#define SIM_REPORT_ANALYSIS_H

#include "sim/base/status.h"
#include "sim/report/report.h"

struct algorithm;
struct arena;

/* In axis_bits: over the link to the host. */
enum { ANALYSIS_HOST_BIT = 1 << MACHINE_AXES_MAX };

/* What may bound a compute op; words.h has their names. */
enum analysis_resource {
    ANALYSIS_MXU = ROOFLINE_MXU,
    ANALYSIS_VPU = ROOFLINE_VPU,
    ANALYSIS_HBM = ROOFLINE_HBM,
    ANALYSIS_RESOURCES
};
extern const char *const analysis_resource_names[ANALYSIS_RESOURCES + 1]; /* NULL ends them. */

/* A class of ops: one row of a report. */
struct analysis_class {
    const char *name;
    bool collective; /* A copy or a message to another rank of the pipeline counts too. */
    bool receives;   /* The op is a wait for a message from another rank of the pipeline. */
    uint64_t count;
    double time_s;    /* Sum over ops of end - begin. */
    double exposed_s; /* Exposed time of the step, which is charged to the collective that compute
                         waits for: classes add up to it. */
    /* Time of time_s while the compute stream was idle; each op is charged in full. */
    double idle_s;

    /* Collectives, and copies to and from the host, which are a collective of one rank here. */
    const char *kind;           /* "AllGather"; "store" */
    const char *axis;           /* The group of its stream: "fsdp", "sequence"; "" if unknown. */
    uint32_t of;                /* The group of its stream, as bits of enum stream_of. */
    enum stream_verb verb;      /* What its stream does. */
    enum collective_kind runs;  /* KIND_COUNT: a message to another rank of the pipeline, a copy. */
    const char *algorithm;      /* "ring" */
    const struct algorithm *by; /* What `algorithm` is the text of; NULL of a copy. */
    bool in_switches;           /* Switches copy or add for the collective. */
    const char *machine_axes;   /* "x y" */
    uint32_t axis_bits;         /* The machine axes as bits. */
    uint64_t rank_count;
    double bytes; /* Sum of V over `count`, of a whole array or of what one rank sends. */
    bool of_rank; /* `bytes` are of what one rank sends, as of a Permute. */
    double busbw_bytes_per_s;
    double hop_s; /* Hop latency of one collective, were it empty. */

    /* Compute: how much longer HBM takes than matrix and vector units, on the reported chip, by the
     * times of compute_time(). */
    double hbm_excess_s;
    /* Compute: of ops whose slowest unit is the second, how much longer it takes than the first. */
    double beyond_s[ANALYSIS_RESOURCES][ANALYSIS_RESOURCES];
    double math_s; /* Compute: time of the matrix unit. */
};

/* The time of compute ops of a class alone on the chip, and that of those that no table of the
 * machine's stack has. */
struct analysis_alone {
    double time_s, untabled_s;
};

struct analysis_phase {
    const char *name;
    bool is_update;
    double begin_s, end_s, compute_s, exposed_s, idle_s;
    double waiting_s; /* Of idle_s: for messages of other ranks that are on their way. */
    double ici_s[MACHINE_AXES_MAX]; /* Time of each axis' busiest link that fell into the phase. */
    const char *bound_by;
};

/* From step to step; all 0: it was not asked for. */
struct analysis_period {
    double time_s, tokens_per_s, mfu, mfu_attention;
};

struct analysis {
    double step_s, compute_s, exposed_s, idle_s;
    double async_s; /* Of compute_s: start and end of asynchronous collectives. */
    /* Idle time of a pipeline's rank: for messages on their way; the rest. */
    double waiting_s, bubble_s;
    double tokens_per_s, mfu, mfu_attention, hfu; /* The last three 0 without a roofline. */
    struct analysis_period period;
    const char *bound_by;   /* The busiest resource of the step; "latency" if idle time and the
                               hops that compute waits for take longer than any is busy; "launches"
                               of the host; in a pipeline "waiting" if the chip waits longer for
                               messages that are on their way, "bubble" if it waits longer for work
                               of other ranks. */
    bool bound_is_idle;     /* "waiting" or "bubble". */
    const char *bound_axis; /* "z" if it is "ici", else NULL. */
    double bound_share;     /* Share of the step that the resource is busy. */
    const char *runner_up;  /* The resource that is busy nearly as long; NULL: none is. */
    const char *runner_up_axis;
    double runner_up_share;
    struct analysis_class *classes; /* By class_index of the program. */
    struct analysis_alone *alone;   /* By class_index of the program. */
    uint32_t class_count;
    struct analysis_phase phase[TRACE_PHASES_MAX]; /* Phases that the step has. */
    uint32_t phase_count;
    /* Time of the longest chain of collectives of inference, had they no bytes. */
    double hop_chain_s;
};

/* The role of a chip of the machine. */
uint32_t analysis_role(const struct report_input *input, uint32_t chip);

/* Of a run that has ended, before anything is made of it. STATUS_STUCK: the step is shorter than
 * its roofline's lower bound, so one of the two is wrong. */
enum status analysis_bound_check(const struct roofline *roofline, const struct trace *trace,
                                 struct error *reterr);

/* The input has a program and a trace. What is counted per chip is of the reported one's role. */
enum status analysis_build(struct arena *arena, const struct report_input *input,
                           struct analysis *ret_analysis, struct error *reterr);

/* Collectives in order of exposed time, then of time, longest first: indexes into `classes`. */
enum status analysis_collectives(struct arena *arena, const struct analysis *analysis,
                                 uint32_t **ret_indexes, uint32_t *ret_count, struct error *reterr);

#endif
