/* list_parts.h: what the lines of a listing are made of. Internal to list*.c. */
#ifndef SIM_GRAPH_LIST_PARTS_H
#define SIM_GRAPH_LIST_PARTS_H

#include "sim/graph/list.h"

struct graph_phrase {
    char bytes[GRAPH_LINE_BYTES];
    uint32_t length;
};

static inline const struct graph *graph_list_graph(const struct graph_list *list)
{
    return list->sharded->graph;
}

static inline const struct sharding_mesh *graph_list_mesh(const struct graph_list *list)
{
    return &graph_list_graph(list)->terms->mesh;
}

void graph_phrase_add(struct graph_phrase *phrase, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* " and " or ", " or whatever `between` is, where something stands before. */
void graph_phrase_join(struct graph_phrase *phrase, const char *between);
void graph_phrase_array(struct graph_phrase *phrase, const struct graph_list *list,
                        const struct sharding *array);

/* The next line of a list. */
void graph_list_add(struct graph_list *list, const struct sharding *array, enum format format,
                    const struct graph_phrase *remark, const struct graph_phrase *what);

/* "dQ[B, N_Y, H]" of Q. */
struct sharding graph_list_gradient(const struct sharding *array);
/* An input as an op reads it, and a result before it is reduced. */
struct sharding graph_list_in(const struct graph_list *list, const struct graph_op *op, tensor of);
struct sharding graph_list_out(const struct graph_list *list, const struct graph_op *op,
                               uint8_t result);
/* left *_D right -> result, with D what both have and the result has not. */
void graph_list_product(struct graph_list *list, const struct sharding *left,
                        const struct sharding *right, const struct sharding *result,
                        enum format format, const struct graph_phrase *remark);
/* A weight as products read it; a line gathers it where it is split. */
struct sharding graph_list_weight(struct graph_list *list, tensor weight, bool backward);
/* A collective of a step that is the same in all passes: over ep or of sequences. */
void graph_list_moved(struct graph_list *list, const struct graph_step *step,
                      const struct graph_phrase *remark);
/* A step of the forward pass, or one that is repeated. */
void graph_list_step(struct graph_list *list, const struct graph_step *step);

/* "dIn = ReduceScatter_Y(dIn {U_Y})": a collective over axes that makes one array of another. */
void graph_list_collective(struct graph_list *list, const struct sharding *from,
                           const struct sharding *to, const char *kind, uint32_t axes,
                           enum format format, const char *remark);
/* Axes that a weight's gradient is a sum over: of dimensions that its product contracts. */
uint32_t graph_list_summed(const struct graph_list *list, const struct sharding *left,
                           tensor weight);
/* The sums of a gradient as its product gives it. */
void graph_list_reduce(struct graph_list *list, uint8_t block, tensor weight,
                       struct sharding gradient);
/* What the backward pass has to compute. */
void graph_list_goals(struct graph_list *list);

/* "silu(%) * %" */
const char *graph_list_formula(const struct graph_op *op);

/* "big_matmuls" */
const char *graph_list_policy(const struct graph_list *list);

#endif
