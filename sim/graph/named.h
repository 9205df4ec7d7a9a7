/*
 * named.h: which arrays of a part are kept for its backward pass. A policy is a list of arrays: the
 * arrays whose `kept` says that the policy, or a weaker one, keeps them. Lists of names add arrays
 * to the list of the policy (`save`, `offload`), and take arrays from it (`repeat`).
 *
 * Products of one op are kept together, and so are the statistics of a result, and what lies in the
 * memory of another array with that array. A list with one of them has all.
 */
#ifndef SIM_GRAPH_NAMED_H
#define SIM_GRAPH_NAMED_H

#include "sim/graph/graph.h"

/* What a name in a list does in a graph. */
enum graph_named_fit {
    GRAPH_NAMED_UNKNOWN, /* No array has the name. */
    GRAPH_NAMED_UNFIT,   /* An array has it, which cannot be kept, or not be computed again. */
    GRAPH_NAMED_FITS,
};

/* Sets of each tensor whether it is kept. */
void graph_saved_set(struct graph *graph);

/* `repeats`: the name is in a list of arrays that are computed again; else they are kept. */
enum graph_named_fit graph_named_fit(const struct graph *graph, const char *name, bool repeats);

/* Whether two names are of one array; with `together`, or of arrays that are kept together. "*" is
 * for what no other name is of, so that it meets none. */
bool graph_named_meet(const struct graph *graph, const char *one, const char *other, bool together);

/* Whether lists may name a tensor. */
bool graph_is_listed(const struct graph *graph, tensor of);

/* The name of a tensor with the prefix of its block: "attention.A". */
struct graph_label graph_listed_name(const struct graph *graph, tensor of);

#endif
