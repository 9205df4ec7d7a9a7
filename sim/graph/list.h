/*
 * list.h: a part of a model in the notation of the book (chapters 3 and 5): the steps of a pass as
 * numbered lines, each with what it makes on one chip. *_D is a product that contracts D, {U_X} a
 * sum over X that is still due, a prime the gradient of a function.
 *
 * Every line is a tensor's or an op's. Not of the graph, so given by the caller, is when weights
 * are gathered and their gradients reduced.
 */
#ifndef SIM_GRAPH_LIST_H
#define SIM_GRAPH_LIST_H

#include "sim/base/strbuf.h"
#include "sim/graph/derive.h"
#include "sim/graph/steps.h"

enum { GRAPH_LINES_MAX = 256, GRAPH_LINE_BYTES = 512 };

_Static_assert(GRAPH_TENSORS_MAX <= 128, "graph_list_weights has a bit for each");

struct graph_list_weights {
    const struct graph *state; /* The part, as gradients of weights are wanted. */
    units_wide gathers[2];     /* By pass, the backward one last: a bit for each tensor, a weight
                                  that is gathered for it. */
    units_wide again;       /* A bit for each tensor, a weight whose gather the repetition and the
                               gradients share. */
    units_wide reduces;     /* A bit for each tensor: its gradient is reduced. */
    uint32_t axis_same;     /* The axis of ranks that hold the same weights, or 0. */
    uint32_t grouped_ranks; /* Ranks that hold the same experts, where they are only a part of the
                               axis. 0: they are the whole axis. */
    bool grouped_scatters;  /* Each of the ranks wants a part of the gradients. */
};

struct graph_list {
    const struct graph_derived *part;
    struct graph_list_weights weights;
    struct strbuf *text;

    uint32_t line;                           /* The last number given in the section. */
    uint32_t forward_lines;                  /* Lines of the forward pass. */
    bool repeated[GRAPH_LINES_MAX];          /* By number: a line that remat repeats. */
    bool repeats;                            /* What is written now is. */
    bool halves;                             /* Gradients of weights come in a later pass. */
    uint32_t gathered_at[GRAPH_TENSORS_MAX]; /* The line that gathers a tensor, or 0. */
    bool shared[GRAPH_TENSORS_MAX];          /* A section's line says how it is gathered again. */
    bool weight_there[GRAPH_TENSORS_MAX];    /* A section's line gathers it. */
};

/* The forward pass, with marks on the steps that remat repeats. */
void graph_list_forward(struct graph_list *list);
/* The backward pass, or a half of it. The half of weights continues the line numbers of the half of
 * inputs. */
void graph_list_backward(struct graph_list *list, enum graph_half half);
/* A pass of an end, which goes on with the numbers of the caller's section. */
void graph_list_end(struct graph_list *list, struct graph_request request);
/* What each rank has updated of the weights is gathered. */
void graph_list_update(struct graph_list *list);

#endif
