/*
 * trace.h: what a run leaves behind: totals for reports, and records of the shown chips for
 * timelines. It knows numbers of streams, classes and ports, not their names: those are the
 * program's and the machine's.
 *
 * Filled by sim/replay, read by sim/report. Instants are picoseconds since the start of the step.
 */
#ifndef SIM_TRACE_TRACE_H
#define SIM_TRACE_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/period.h"

enum {
    TRACE_PORTS_MAX = 6 + 16 + 2, /* Of the grid, levels, the host: machine_port_name(). */
    TRACE_STREAMS_MAX = 24,
    TRACE_PHASES_MAX = 8,
    TRACE_MEMORY_MAX = 17,
    TRACE_SHOWN_MAX = 256,        /* Chips of a timeline. */
    TRACE_LINK_SETS_MAX = 1 << 5, /* Sets of machine axes, and of the host. */
};

/* The servers of a chip, as rows of a report. */
#define TRACE_QUEUE_TABLE(X)                                                                       \
    X(MXU, "mxu")                                                                                  \
    X(VPU, "vpu")                                                                                  \
    X(HBM, "hbm")                                                                                  \
    X(VMEM, "vmem")

enum trace_queue {
#define X(name, text) TRACE_QUEUE_##name,
    TRACE_QUEUE_TABLE(X)
#undef X
        TRACE_QUEUE_COUNT,
};

enum trace_kind {
    TRACE_OP,       /* One part of an op on a stream: lane is the part. */
    TRACE_TRANSFER, /* One message over one link: stream is its collective's, port the link's. */
    TRACE_MEMORY,   /* At begin_ps `bytes` of one category are held; lane is the category. */
    TRACE_ARRIVAL, /* At begin_ps a SEND's message has come: stream is the SEND's, number counts the
                      sender's on it, inbox is the stream of the RECEIVEs. */
};

static const uint32_t trace_no_chip = UINT32_MAX;

/* 64 bytes. For TRACE_OP and TRACE_MEMORY `slot` and `op` find the op in the role of the chip; of
 * a TRACE_TRANSFER, which may be another chip's, `slot` is the op's template.
 *
 * A replayed chip stands for others, so who sends to whom is said of three chips of the machine
 * that lie to each other as the real ones do: `from`, `to`, and `at`, which is where `chip` lies.
 */
struct trace_record {
    int64_t begin_ps;
    int64_t end_ps;
    union {
        uint64_t bytes; /* Transfer: of the message. Memory: held. */
        uint64_t came;  /* Arrival: messages for its inbox so far, with this one. */
    };
    int64_t wait_ps; /* Transfer: for the link, before begin_ps, its first byte; where messages take
                        turns, also between these. */
    uint32_t chip;
    uint32_t slot;
    uint32_t from;   /* Transfer, arrival: the sender. */
    uint32_t to;     /* Transfer, arrival: the receiver. trace_no_chip: a switch, or the host. */
    uint32_t at;     /* Whose link it takes, or whose cable from the switches. */
    uint32_t number; /* Transfer: among the sender's messages of its lane and op, from 0. */
    uint16_t op;     /* In the slot's template. */
    uint8_t kind;
    uint8_t stream;
    union {
        uint16_t lane;
        uint16_t inbox; /* Arrival. */
    };
    uint16_t port; /* Transfer: of the link. */
};

struct trace_class { /* Of one class of ops, on the reported chip. */
    uint64_t count;
    int64_t busy_ps;    /* Sum over ops of end - begin. */
    int64_t exposed_ps; /* Of the chip's exposed time: each instant is one class's, of the
                           collective that compute waits for. Classes add up to it. */
    int64_t idle_ps;    /* Of busy_ps, while the compute stream was idle: each in full. Of a compute
                           that is cut into parts, what it waited for between them. */
    int64_t end_ps;     /* When the last chip has ended the last op. */
};

struct trace_phase {
    int64_t begin_ps, end_ps; /* By the compute stream. Phases overlap where it changes between
                                 them, as in a pipeline. */
    int64_t compute_ps;
    int64_t exposed_ps; /* Compute stream idle, at least one collective running. */
    int64_t idle_ps;
    int64_t waiting_ps; /* Of idle_ps: for messages of other ranks that were on their way. */
    int64_t mxu_ps, vpu_ps, hbm_ps, vmem_ps; /* Demand of the ops that began in the phase. */
    int64_t ends_ps; /* What these take longer than their largest demand, without overheads: the
                        ends of their pipelines of tiles. */
    int64_t stream_ps[TRACE_STREAMS_MAX]; /* In which collectives or copies of the stream ran. */
};

struct trace_link {
    uint64_t bytes;        /* Busiest link of the port, over all replayed chips. */
    int64_t busy_ps;       /* Busy time of the busiest link. */
    uint64_t sum_bytes;    /* Over all replayed chips. */
    uint64_t link_count;   /* Links of the port that exist, among the replayed chips. */
    uint32_t busiest_chip; /* The machine's chip that the busiest link leaves; of a unit of
                              switches the first of its chips. */
    int64_t sum_busy_ps;   /* Over all replayed chips. */
    int64_t queued_ps;     /* Longest wait of a message for that port's link. */
    /* Waits on the grid are counted only where the run was asked to. */
    uint64_t waited_ps;    /* Waits of all messages of the busiest link together. Divided by a time:
                              the mean number of waiting messages. */
    uint64_t messages;     /* Messages of the busiest link. */
    uint64_t sum_messages; /* Over all replayed chips. */
};

/* What a chip holds: bytes from each instant on, to the next. */
struct trace_curve {
    int64_t *at_ps;
    uint64_t *bytes;
    uint64_t count; /* 0: it was not asked for. */
};

/* Of the chip that holds most. */
struct trace_memory {
    uint64_t peak_bytes;
    int64_t peak_at_ps;
    uint32_t peak_chip; /* The chip's number in the machine. */
    uint32_t peak_slot; /* What the compute stream was at. */
    uint16_t peak_op;
    uint64_t at_peak_bytes[TRACE_MEMORY_MAX]; /* By enum program_memory. */
    uint64_t each_peak_bytes[TRACE_MEMORY_MAX];
};

/* A rank of a pipeline: of its replayed chips the one that ends last; lowest number among equals.
 * Compute, exposed and idle add up to step_ps, also where the chip ends before others. */
struct trace_role {
    uint32_t chip;          /* The chip's number in the machine. */
    int64_t first_begin_ps; /* Begin of the first compute before the update; 0: there is none. */
    int64_t last_end_ps;    /* End of the last compute before the update; 0: there is none. */
    int64_t finished_ps;    /* End of the chip's step, update included. */
    int64_t compute_ps;
    int64_t exposed_ps;        /* Time in which only collectives and copies run. */
    int64_t exposed_before_ps; /* Exposed time before first_begin_ps. */
    struct {
        int64_t compute_ps, exposed_ps;
    } phase[TRACE_PHASES_MAX]; /* Compute and exposed time by enum program_phase; time behind
                                  last_end_ps is the update's. */
    /* Of the rank's first chip, [pass of its list]: compute, and collectives waited for since the
     * pass before; NULL: it has no passes. */
    int64_t *pass_ps;
    int64_t *pass_begin_ps; /* [pass]: when its first compute begins. */
    int64_t *pass_end_ps;   /* [pass]: when its last compute ends. */
    uint32_t pass_count;
    struct trace_curve curve; /* Memory of the rank's first chip over time. */
    int64_t idle_ps;          /* waiting_ps + bubble_ps. */
    int64_t waiting_ps;       /* Idle while a message comes to the rank or leaves it. */
    int64_t bubble_ps;        /* Idle otherwise. */
    uint64_t sent_bytes;
    struct trace_memory memory; /* Memory of the role's chip that holds most. */
};

/* What the simulator did. */
struct trace_work {
    uint64_t events;       /* One handler call for one chip. */
    uint64_t transfers;    /* One move over one link. */
    uint64_t bound_checks; /* In every run: no collective faster than its port allows. */
    uint64_t recurred;     /* Of `events`: not simulated one by one, as the same came before. */
    uint64_t foreseen;     /* Further steps that were not simulated to their end. */
    /* Of collectives, a chip's by itself: simulated once for all that are alike; of these some that
     * another message disturbed, whose rest was simulated; all of whose messages were simulated. */
    uint64_t recorded, posted, landed, simulated;
    uint64_t landed_off; /* Landed, whose links others had taken over. */
    /* Stretches of a chip's step that were recorded, and repeated from the record; of these some
     * that another chip disturbed, so that they were simulated up to then. */
    uint64_t stretches, repeated, broken;
};

/* Chips of the machine, and chips that were replayed for all of them. */
struct trace_fold {
    uint64_t chips;
    uint64_t replayed;
    uint64_t prefix;   /* Chips that were replayed up to prefix_ps, each for several of `replayed`;
                          0: none. */
    int64_t prefix_ps; /* Instant up to which those of the prefix were replayed; 0: at no time. */
};

struct trace_records {
    struct trace_record *record; /* In order of (end of) occurrence; NULL if none was asked for. */
    uint64_t count;
};

/* Chips of a timeline. */
struct trace_shown {
    uint32_t chip[TRACE_SHOWN_MAX];     /* Chips as they were asked for. */
    uint32_t recorded[TRACE_SHOWN_MAX]; /* The chip in the records that stands for each. */
    uint32_t count;
};

struct trace {
    int64_t step_ps;
    struct period period; /* From step to step, in picoseconds; steps 0: it was not asked for. */
    uint64_t digest;
    struct trace_work work;
    struct trace_fold fold;

    uint32_t reported_chip; /* The one that finishes last; lowest number among equals. */
    bool roles_meet;    /* Ranks of a pipeline end together, as they add something up behind their
                           passes: `reported_chip` is the one whose passes end last. */
    int64_t compute_ps; /* Adds up to step_ps with exposed_ps and idle_ps. */
    int64_t exposed_ps;
    int64_t idle_ps;
    /* The part of compute_ps during which collectives and copies of the chip, and messages that it
     * sends to other ranks, were under way along exactly a set of machine axes. The index has a bit
     * for each axis, and behind them a bit for the host. */
    int64_t links_ps[TRACE_LINK_SETS_MAX];
    int64_t waiting_ps; /* Of idle_ps: for messages of other ranks that were on their way. */
    int64_t queue_busy_ps[TRACE_QUEUE_COUNT];
    int64_t dma_ps;            /* HBM time of the collectives; part of queue_busy_ps[HBM]. */
    uint64_t prefetched_bytes; /* Of weights, read while the compute stream waited. */

    struct trace_phase phase[TRACE_PHASES_MAX]; /* By enum program_phase. */
    uint32_t phase_count;
    struct trace_class *classes; /* By class_index of the program. */
    uint32_t class_count;
    struct trace_link link[TRACE_PORTS_MAX];

    struct trace_role *roles; /* By role of the program. */
    uint32_t role_count;

    struct trace_memory memory;
    struct trace_records records;
    struct trace_shown shown;
};

#endif
