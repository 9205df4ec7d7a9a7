/*
 * choose.h: which algorithm and which protocol suit a collective: what `auto` takes, and the
 * others that could have run, by their estimated cost.
 */
#ifndef SIM_CHOOSE_CHOOSE_H
#define SIM_CHOOSE_CHOOSE_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/status.h"
#include "sim/choose/estimate.h"
#include "sim/choose/protocol.h"
#include "sim/choose/tuner.h"
#include "sim/collective/plan.h"
#include "sim/machine/machine.h"

struct arena;

enum { CHOOSE_MAX = PLAN_ALGORITHMS_MAX * PROTOCOL_COUNT };

struct choose_args {
    const struct machine *machine;
    struct plan_request request; /* Without algorithm and protocol; its `algorithm` is passed over.
                                    Links need not be filled. */
    bool protocols;              /* NCCL's compete, and only algorithms that NCCL has, if it has
                                    any for the kind; else no protocol is used. */
    enum protocol protocol;      /* Where they compete: only this one; PROTOCOL_NONE: all. */
    bool registered;             /* Arrays are registered with NCCL. */
    const struct tuner *tuner;   /* May be NULL. */
    uint64_t size_bytes;         /* The size of nccl-tests, which the tuner is asked for. */
    struct contention_cache *known; /* Of the machine, from size to size (contention.h); or NULL. */
};

struct choose_candidate {
    struct algorithm algorithm;
    enum protocol protocol;
    struct collective_estimate estimate;
    uint64_t message_count; /* Of its plan, over the chips that are not folded away. */
    int64_t played_ps;      /* 0: not simulated. */
};

struct choose_ranking {
    struct choose_candidate candidate[CHOOSE_MAX]; /* The best first; equals in the order of
                                                      plan_algorithms() and of the protocols. A
                                                      plan that has several names is there once. */
    uint32_t count;    /* While others are left, without candidates whose run would take minutes: of
                          more than 2^24 messages, over the chips that are not folded away. */
    uint32_t left_out; /* Candidates that are left out for that reason. */
    const struct tuner_rule
        *rule; /* The rule that puts the first candidate in its place, or NULL. */
};

/* Whether a machine's profile has collectives go by NCCL's protocols: GPUs', but not in `ideal`. */
bool choose_by_protocols(const struct machine *machine);

/* Whether an algorithm of a request takes part where protocols compete. Algorithms that NCCL has
 * take part; if the request has none that NCCL has, all of its algorithms do. */
bool choose_takes_part(const struct plan_request *request, const struct algorithm *algorithm);

/* A rule of the tuner that cannot be honoured is refused with its line; so is a protocol that no
 * algorithm can use. */
enum status choose_rank(struct arena *arena, const struct choose_args *args, const char *where,
                        struct choose_ranking *ret_ranking, struct error *reterr);

/* Whether two plans of one request are the same but for their names. */
bool choose_is_same(const struct plan *plan, const struct plan *other);

/* A request with a candidate's algorithm, and its protocol made. */
enum status choose_apply(const struct choose_args *args, const struct choose_candidate *candidate,
                         const char *where, struct plan_request *ret_request, struct error *reterr);

#endif
