/* list_parts.h: what the lines of a listing are made of. Internal to list*.c. */
#ifndef SIM_GRAPH_LIST_PARTS_H
#define SIM_GRAPH_LIST_PARTS_H

#include "sim/graph/list.h"

/* A part of a line; what is longer is cut off. */
struct graph_phrase {
    char text[GRAPH_LINE_BYTES];
};

/* An array as a line writes it, and what its elements take. */
struct graph_array {
    struct sharding at;
    enum format format;
    enum graph_role role;
};

static inline const struct graph *graph_list_graph(const struct graph_list *list)
{
    return &list->part->graph;
}

static inline void graph_list_steps(const struct graph_list *list, struct graph_request request,
                                    struct graph_steps *ret_steps)
{
    graph_steps(&list->part->sharded, &list->part->backward, &list->part->kept, request, ret_steps);
}

/* Adds to a phrase; `between` goes first where something stands there already. */
void graph_phrase_join(struct graph_phrase *phrase, const char *between, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The next line: "  3. what", with the shape and bytes of what it makes on one chip, NULL: nothing
 * that is worth a size; and a remark, or "". */
void graph_list_line(struct graph_list *list, const struct graph_array *made, const char *remark,
                     const char *format, ...) __attribute__((format(printf, 4, 5)));

/* "Q[B, N_Y, H]" */
struct graph_phrase graph_list_text(const struct graph_list *list, const struct graph_array *array);
/* "big_matmuls" */
const char *graph_list_policy(const struct graph_list *list);

/* A tensor of a graph, or its gradient, dQ of Q: gathered over some axes; as an op reads it; as an
 * op makes it, before it is reduced. */
struct graph_array graph_list_array(const struct graph *graph, tensor of, bool gradient,
                                    uint32_t gathered);
struct graph_array graph_list_read(const struct graph_list *list, const struct graph_op *op,
                                   tensor of, bool gradient);
struct graph_array graph_list_made(const struct graph_list *list, const struct graph_op *op,
                                   tensor of, bool gradient);
/* A weight as products read it; a line gathers it where it is split. */
struct graph_array graph_list_weight(struct graph_list *list, tensor weight, bool backward);

/* The formula of an op, NULL: products list it; and that with the op's inputs from one of them on,
 * "silu(Gate[B, F]) * Up[B, F]", or with the gradient of a result, "silu'(dTmp[B, F])". */
const char *graph_list_formula(const struct graph_op *op);
struct graph_phrase graph_list_applied(struct graph_list *list, const struct graph_op *op,
                                       uint8_t first);
struct graph_phrase graph_list_primed(const struct graph_list *list, const struct graph_op *op,
                                      uint8_t result);

/* left *_D right -> result, with D what both have and the result has not. */
void graph_list_product(struct graph_list *list, const struct graph_array *left,
                        const struct graph_array *right, const struct graph_array *result,
                        const char *remark);
/* "dIn = ReduceScatter_Y(dIn {U_Y})": a collective over axes that makes one array of another. */
void graph_list_collective(struct graph_list *list, const struct graph_array *from,
                           const struct graph_array *to, enum collective_kind kind, uint32_t axes,
                           const char *remark);
/* The collective of a step. */
void graph_list_moved(struct graph_list *list, const struct graph_step *step, const char *remark);
/* A step of the forward pass, or one that is repeated. */
void graph_list_step(struct graph_list *list, const struct graph_step *step);

/* A weight's gradient as a product, or a function, of `from` gives it: with its sums. */
struct graph_array graph_list_weight_gradient(const struct graph_list *list,
                                              const struct graph_array *from, tensor weight);
/* The lines that reduce it. */
void graph_list_reduce(struct graph_list *list, uint8_t block, tensor weight,
                       struct graph_array gradient);
/* What the backward pass has to compute. */
void graph_list_goals(struct graph_list *list);

#endif
