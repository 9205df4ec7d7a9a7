/*
 * stream_use.h: what a stream is for: what its ops do, and for whom. Its name is printed from it.
 */
#ifndef SIM_PROGRAM_STREAM_USE_H
#define SIM_PROGRAM_STREAM_USE_H

#include <stdint.h>

#define STREAM_VERB_TABLE(X)                                                                       \
    X(GATHER, "gather")                                                                            \
    X(REDUCE, "reduce")                                                                            \
    X(SUM, "sum")                                                                                  \
    X(DISPATCH, "dispatch")                                                                        \
    X(COMBINE, "combine")                                                                          \
    X(EXCHANGE, "exchange")                                                                        \
    X(HOME, "home")                                                                                \
    X(SEND, "send")                                                                                \
    X(RECEIVE, "receive")                                                                          \
    X(STORE, "store")                                                                              \
    X(LOAD, "load")

enum stream_verb {
    STREAM_NO_VERB,
#define X(name, text) STREAM_##name,
    STREAM_VERB_TABLE(X)
#undef X
        STREAM_VERB_COUNT,
};

/* Mesh axes, in the order of enum mesh_role; arrays that have ranks of their own; the other ends of
 * messages; what lies in the host's memory. */
#define STREAM_OF_TABLE(X)                                                                         \
    X(DP, "dp")                                                                                    \
    X(FSDP, "fsdp")                                                                                \
    X(TP, "tp")                                                                                    \
    X(PP, "pp")                                                                                    \
    X(EP, "ep")                                                                                    \
    X(CP, "cp")                                                                                    \
    X(TP_D, "tp_d")                                                                                \
    X(SEQUENCE, "sequence")                                                                        \
    X(EXPERTS, "experts")                                                                          \
    X(KV, "kv")                                                                                    \
    X(NEXT, "next")                                                                                \
    X(PREVIOUS, "previous")                                                                        \
    X(COPY, "copy")                                                                                \
    X(MTP, "mtp")                                                                                  \
    X(FIRST, "first")                                                                              \
    X(ACTIVATIONS, "activations")                                                                  \
    X(OPTIMIZER, "optimizer")

/* A bit each: replicas may lie along several mesh axes. */
enum stream_of {
#define X(name, text) STREAM_PLACE_##name,
    STREAM_OF_TABLE(X)
#undef X
        STREAM_PLACE_COUNT,
#define X(name, text) STREAM_OF_##name = 1 << STREAM_PLACE_##name,
    STREAM_OF_TABLE(X)
#undef X
};

_Static_assert(STREAM_PLACE_COUNT <= 31, "stream_use.of has a bit for each");

struct stream_use {
    enum stream_verb verb;
    uint32_t of; /* Bits of enum stream_of; 0: nothing that is known. */
};

enum { STREAM_USE_BYTES = 128 };

/* "dp,ep"; "" of 0. Returns `buffer`. */
const char *stream_of_text(uint32_t of, char buffer[STREAM_USE_BYTES]);

/* "gather fsdp", "kv". Returns `buffer`. */
const char *stream_use_text(struct stream_use use, char buffer[STREAM_USE_BYTES]);

#endif
