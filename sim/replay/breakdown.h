/*
 * breakdown.h: the books of a run: where time went, what memory was held.
 */
#ifndef SIM_REPLAY_BREAKDOWN_H
#define SIM_REPLAY_BREAKDOWN_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/status.h"
#include "sim/machine/machine.h"
#include "sim/program/program.h"

struct arena;
struct need_cache;
struct replay;
struct role_table;

struct breakdown {
    int64_t compute_ps;
    int64_t exposed_ps;
    int64_t idle_ps;
    int64_t waiting_ps; /* Of idle_ps: for messages of other ranks that were on their way. */
};

struct phase_span {
    int64_t begin_ps;
    int64_t end_ps;
};

struct class_total {
    uint64_t count;
    int64_t busy_ps;
    int64_t exposed_ps; /* Exposed time charged to the class: each instant to one class. */
    int64_t idle_ps;    /* Time of its ops while the compute stream was idle, each in full. */
};

struct memory_state {
    int64_t held_bytes[PROGRAM_MEMORY_COUNT];
    int64_t each_peak_bytes[PROGRAM_MEMORY_COUNT];
    int64_t at_peak_bytes[PROGRAM_MEMORY_COUNT];
    int64_t total_bytes;
    int64_t peak_bytes;
    int64_t peak_at_ps;
    uint32_t peak_slot;
    uint16_t peak_op;
};

struct breakdowns {
    struct breakdown *of_phase;    /* [phase][chip] */
    struct phase_span *spans;      /* [phase][chip] */
    int64_t *links_ps;             /* [set of machine axes][chip]: trace.links_ps. */
    int64_t *stream_ps;            /* [phase][stream][chip]: what is_exposed() ran meanwhile. */
    struct class_total *classes;   /* [class][chip] */
    int64_t *class_end_ps;         /* [class]: end of the last op on any chip. */
    struct memory_state *memories; /* [chip] */
    uint32_t link_sets;            /* Number of sets of machine axes. */
    bool is_off;              /* In further steps no spans are counted; stretches ask for them. */
    bool digest_apart;        /* digest_add_apart(): in a prefix fold, and in further steps. */
    uint32_t effect_watchers; /* That ask for each effect: curves, stretches recorded. */
    /* Machine axes along which a stream's collectives, copies or messages go, as bits. */
    uint8_t stream_links[PROGRAM_STREAMS_MAX];
};

/* What is counted over all chips. */
struct tally {
    uint64_t transfers;
    uint64_t digest;
    uint64_t bound_checks;
    uint64_t parts_done; /* Parts of compute ops that are done. */
    uint64_t parts_total;
    /* Of collectives (flight.h), a chip's by itself: simulated once for all that are alike, and by
     * that posted; of these landed; all of whose messages were simulated. */
    uint64_t recorded, posted, landed, simulated;
    uint64_t landed_off; /* Landed, whose links others had taken over. */
    /* Stretches (stretch.h) that were recorded, and repeated; of these some that were broken. */
    uint64_t stretches, repeated, broken;
    uint64_t flown;        /* Events of collectives that have flown. */
    uint64_t recurred;     /* Events that were not simulated one by one (recur.h). */
    uint32_t prefix_chips; /* Chips of the prefix fold that the run continued; 0: none. */
    int64_t prefix_ps;     /* Instant at which the run continued the prefix fold. */
    int64_t queued_ps[MACHINE_PORTS_MAX]; /* The longest wait for a link of a port. */
};

/* Finds the links that each stream uses. */
void breakdown_links_build(struct replay *replay);
/* The breakdown of a chip since it was last written, which lies in the past: breakdown_until(). */
void breakdown_span(struct replay *replay, uint32_t chip, int64_t now_ps);
/* An op of a stream takes memory, or gives it back. */
void breakdown_effect(struct replay *replay, const struct program_effect *effect, uint32_t stream,
                      uint32_t chip, int64_t now_ps);
/* An op takes memory or gives it back whose place in its template alone is known. */
void breakdown_effect_at(struct replay *replay, const struct program_effect *effect, uint32_t slot,
                         uint16_t op, uint32_t chip, int64_t now_ps);
void breakdown_class(struct replay *replay, const struct program_op *op, uint32_t chip,
                     int64_t begin_ps, int64_t end_ps);
/* What a chip's passes have taken so far: compute and exposed time before the update. */
int64_t breakdown_passes_ps(const struct replay *replay, uint32_t chip);
/* An op of compute before the update ends. */
void breakdown_pass(struct replay *replay, const struct need_cache *needs, uint32_t chip,
                    int64_t begin_ps, int64_t end_ps);
/* Adds `counted_ps` to the pass of an op of compute before the update, which has ended. */
void breakdown_pass_add(struct role_table *role, const struct need_cache *needs, int64_t counted_ps,
                        int64_t begin_ps, int64_t end_ps);
/* Reserves the curve of a role: room for the effects of all ops of the step and for the start.
 * Pages that are never written cost nothing. */
enum status breakdown_curve_build(struct arena *arena, const struct program *program,
                                  struct role_table *table, struct error *reterr);
void breakdown_resident(struct replay *replay, uint32_t chip);

#endif
