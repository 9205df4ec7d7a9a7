/*
 * streams.h: the ops of a stream in order, and where each chip is in them.
 */
#ifndef SIM_REPLAY_STREAMS_H
#define SIM_REPLAY_STREAMS_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/program/program.h"
#include "sim/replay/breakdown.h"
#include "sim/replay/server.h"
#include "sim/trace/trace.h"

struct chains;
struct stretches;
struct replay;

/* A compute op on one class of chips. A span of time is cut into the op's parts as evenly
 * as integers allow: the first `longer` have 1 ps more. */
struct op_table {
    int64_t idle_ps; /* Time of a part on a chip without messages. */
    uint32_t idle_longer;
    uint32_t parts; /* 0: no op has this work. */
    bool spares;    /* All servers have time to spare, and cores do not matter. */
    struct op_server server[SERVER_COUNT];
    struct op_cores cores;
};

/* Ops of one stream in one template, as indices into the template. */
struct stream_ops {
    const uint16_t *op;
    uint32_t op_count;
};

enum stream_phase {
    STREAM_WAITS,
    STREAM_RUNS,
    STREAM_LEAVES, /* Only messages that wait for turns at a link are left. */
    STREAM_ENDS,
    STREAM_FINISHED,
};

struct stream_state {           /* A line of the cache. */
    _Alignas(64) uint32_t done; /* Parts done since the start of the step. */
    uint32_t begun;             /* Parts begun since the start of the step. */
    uint32_t op_first;          /* Value of `done` when the running op began. */
    uint32_t slot;
    uint16_t position; /* In stream_ops of the slot's template. */
    uint8_t phase;     /* enum stream_phase */
    uint8_t lanes_left;
    uint32_t waiters;    /* Streams of this chip that wait for parts of this stream; bits. */
    uint32_t wake_done;  /* The least number of done parts that wakes a waiter. */
    uint32_t wake_begun; /* The least number of begun parts that wakes a waiter. */
    uint16_t part;       /* Compute: part of the running op. Copy: piece of the copy. */
    bool part_runs;
    uint8_t epoch;          /* Collectives begun, modulo 64. */
    uint32_t operand_first; /* Collective: parts of the compute stream before the operand's op. */
    uint32_t operand_parts; /* Collective: parts of the operand's op; 0: the operand is there. */
    uint32_t wants;         /* Twice the parts that it waits for where it has named itself; odd: of
                               begun ones. Valid as long as it waits. */
    int64_t begin_ps;       /* Begin of the running op. */
};

struct streams {
    struct stream_ops *ops;      /* [template][stream] */
    struct op_table *works;      /* [work][chip class]: chips mostly run the same op. */
    struct stream_state *states; /* [stream][chip] */
    struct chains *chains;       /* chain.h; NULL: each compute op has events of its own. */
    struct stretches *stretches; /* stretch.h; NULL: there are none. */
    uint32_t recorded;           /* Chips of which a stretch is recorded. */
    uint32_t stretched;          /* These, and chips for which the end of one is posted. */
};

struct chip_state {
    /* The first line of the cache has what parts of ops need. */
    _Alignas(64) int64_t part_begin_ps;
    int64_t part_end_ps;  /* When the part ends, as far as is known. */
    int64_t breakdown_ps; /* Instant up to which the breakdown is written. */
    int64_t start_ps;     /* Begin of the step. */
    int64_t exposed_ps;   /* Exposed time in all. */
    uint32_t running;     /* Streams with a collective or a copy under way, as bits. */
    uint32_t sends;       /* Streams with a message to another rank under way, as bits. */
    uint16_t chip_class;  /* The fold's class of the chip. */
    uint16_t role;
    uint8_t block_phase; /* enum program_phase of the compute stream's slot. */
    uint8_t last_phase;  /* enum program_phase of the op that ended last before the update. */
    bool computes;
    bool shown;
    int64_t first_begin_ps;   /* Of compute before the update; TIME_PS_NEVER: none yet. */
    int64_t last_end_ps;      /* Of compute before the update. */
    int64_t exposed_last_ps;  /* Exposed time up to last_end_ps. */
    int64_t exposed_first_ps; /* Exposed time up to first_begin_ps. */
};

/* NEED_CACHES: chips of a batch pass to the next op in turn, so the needs of both are kept. */
enum { NEED_CACHES = 8 };

/* Needs of one op of one slot, as absolute counts. */
struct need_cache {
    uint32_t slot;
    uint16_t position;
    bool filled;
    uint8_t phase; /* enum program_phase */
    const struct program_op *op;
    uint32_t count[PROGRAM_NEEDS_MAX];
    uint32_t per_part[PROGRAM_NEEDS_MAX];
    uint32_t operand_first; /* Parts of the compute stream before the operand's op. */
    uint32_t operand_parts; /* Parts of the operand's op. */
    uint32_t arrivals;      /* Messages that a RECEIVE waits for. */
    uint32_t pass;          /* Pass of the block. */
    int64_t launched_ps;    /* Since the step's start: when the host has launched it. */
};

/* The data that chips of a role share. */
struct role_table {
    const struct program_role *role;
    uint16_t *slot_template;  /* [slot] */
    uint32_t *slot_block;     /* [slot]; NULL: blocks are few, and searched. */
    uint64_t *block_launches; /* [block]: ops of the slots before; NULL: no host launches them. */
    uint64_t prefetch_bytes;  /* Weights of the whole step that may come early. */
    uint32_t prefix_end_slot; /* Slot at which a prefix fold ends; UINT32_MAX: no prefix fold. */
    struct need_cache (*needs)[NEED_CACHES]; /* [stream] */
    int64_t *pass_ps;         /* [pass, from 1]: time of pass_chip; [0]: of no pass. NULL: none. */
    int64_t *pass_begin_ps;   /* [pass]: begin on pass_chip. */
    int64_t *pass_end_ps;     /* [pass]: end on pass_chip; 0: it has not begun. */
    int64_t pass_until_ps;    /* End of the time that pass_ps counts. */
    uint32_t pass_count;      /* Passes, [0] included. */
    uint32_t pass_chip;       /* The first chip of the role. */
    struct trace_curve curve; /* Memory of pass_chip; room for the whole step, or none. */
};

enum status roles_build(struct arena *arena, struct replay *replay, struct error *reterr);
enum status streams_build(struct arena *arena, struct replay *replay, struct error *reterr);
/* Times of a compute op on a chip of class `kind`. VMEM already holds `there_bytes` of the weights
 * of each part of the op. */
struct op_table op_table_of(const struct replay *replay, uint32_t kind, const struct program_op *op,
                            uint64_t there_bytes);
/* Durations of compute ops; needs the servers. */
enum status ops_build(struct arena *arena, struct replay *replay, struct error *reterr);

/* Stream `waiter`, of state `own`, waits until another of its chip has `parts` parts done (or
 * begun). Lanes of a collective may want several counts: the least wakes their stream. */
static inline void stream_wait(struct stream_state *own, struct stream_state *other,
                               uint32_t waiter, bool begun, uint32_t parts)
{
    uint32_t *least = begun ? &other->wake_begun : &other->wake_done;
    uint32_t const wants = 2 * parts + begun;
    if ((other->waiters >> waiter & 1) == 0 || wants < own->wants) own->wants = wants;
    other->waiters |= 1u << waiter;
    if (parts < *least) *least = parts;
}

/* Whether enough has come for one of those who wait at the stream. */
static inline bool stream_has_come(const struct stream_state *state)
{
    return state->done >= state->wake_done || state->begun >= state->wake_begun;
}

void streams_start(struct replay *replay, uint32_t chip, int64_t now_ps);
/* The stream goes on if what it waits for has come; or the host has launched its op. */
void streams_advance(struct replay *replay, uint32_t stream, uint32_t chip, int64_t now_ps);
/* Finds anew the least of what others wait for at a stream: counts of done parts, and of begun
 * ones. */
void streams_wakes_settle(struct replay *replay, uint32_t chip, struct stream_state *state);
/* Wakes streams of a chip, as bits, that waited for parts. */
void streams_wake(struct replay *replay, uint32_t chip, uint32_t waiters, int64_t now_ps);
void streams_compute_end(struct replay *replay, const uint32_t *chips, uint32_t count,
                         int64_t now_ps);
/* Of several chips, each at its instant. */
void streams_compute_window(struct replay *replay, const uint32_t *chips, const int64_t *at_ps,
                            uint32_t count);
/* The chip has finished if all streams have ended and no server owes anything: streams_finish(). */
void streams_finish(struct replay *replay, uint32_t chip, int64_t now_ps);
void streams_check_finished(struct replay *replay, uint32_t chip, int64_t now_ps);
/* A collective's last message has left and all have arrived, or a copy is done. */
void streams_collective_end(struct replay *replay, uint32_t stream, uint32_t chip, int64_t now_ps);
/* Counts `parts` more as done (of a running op) and wakes streams that wait for them. */
void streams_progress(struct replay *replay, uint32_t stream, uint32_t chip, uint32_t parts,
                      int64_t now_ps);
void streams_needs_fill(const struct replay *replay, const struct role_table *role, uint32_t stream,
                        const struct stream_state *state, struct need_cache *cache);

uint16_t streams_op_index(struct replay *replay, uint32_t stream, uint32_t chip); /* Template's. */

#endif
