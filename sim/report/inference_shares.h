/*
 * inference_shares.h: what the simulated time of a step of inference goes to, in the terms of the
 * book's figure 8.2, which a formula would only add up. The parts are the step, all of it.
 */
#ifndef SIM_REPORT_INFERENCE_SHARES_H
#define SIM_REPORT_INFERENCE_SHARES_H

#include "sim/report/analysis.h"

/* X(name, its word): products with weights that HBM bounds; attention that HBM bounds; products
 * and attention that math bounds; of the time in which compute waits for collectives their hops,
 * which are closed forms, and the rest of it; launches: overheads of all ops, and time in which
 * nothing runs because the host has launched nothing; norms, look-ups and other idle time. */
#define INFERENCE_SHARES(X)                                                                        \
    X(WEIGHTS, "weights")                                                                          \
    X(KV, "KV")                                                                                    \
    X(MATH, "math")                                                                                \
    X(HOPS, "hops")                                                                                \
    X(BYTES, "bytes")                                                                              \
    X(LAUNCHES, "launches")                                                                        \
    X(OTHER, "other")

enum inference_share {
#define X(name, word) INFERENCE_SHARE_##name,
    INFERENCE_SHARES(X)
#undef X
        INFERENCE_SHARE_COUNT,
};

/* Seconds of the reported chip, by enum inference_share. */
struct inference_shares {
    double s[INFERENCE_SHARE_COUNT];
};

const char *inference_share_word(enum inference_share share);

/* The largest; the first of equals. */
enum inference_share inference_shares_most(const struct inference_shares *shares);

struct inference_shares inference_shares_of(const struct report_input *input,
                                            const struct analysis *analysis);

#endif
