/*
 * attention_scores.h: what attention computes with scores, whether keys lie in a cache or not:
 * products, FLOP of the vector unit, useful FLOP. A fact of the model that changes the cost of a
 * score is counted here and nowhere else.
 */
#ifndef WORKLOADS_OPS_ATTENTION_SCORES_H
#define WORKLOADS_OPS_ATTENTION_SCORES_H

#include "sim/graph/op.h"

/* Numbers of a row of scores that go with what a part of the keys has given: the maximum and the
 * sum. */
enum { ATTENTION_STATISTICS = 2 };

/* Heads that a rank attends with, and their columns. */
struct attention_shape {
    uint64_t queries; /* Heads of Q. */
    uint64_t keys;    /* Heads of K and V; 1: one array is for all heads of Q. */
    uint64_t group;   /* Heads of Q for each head of K. */
    uint64_t key_width, value_width;
    bool is_latent; /* One array without heads has keys and values. */
};
struct attention_shape attention_shape_of(const struct graph *graph, const struct graph_op *op);

/* FLOP of the vector unit for a score. A flash kernel computes all of them. */
struct attention_score_flop {
    uint64_t softmax, softmax_backward; /* The kernel of the softmax. */
    uint64_t cap, cap_backward;         /* The kernel before it, if scores are stored; 0: none. */
};
struct attention_score_flop attention_score_flop(const struct graph_terms *terms);

/* The products of `score`, whose rows are queries and whose columns are keys. */
struct work_matmul attention_score(const struct attention_shape *shape, uint64_t rows,
                                   uint64_t columns, uint64_t count);

/* Adds scores, their softmax, and the product with values. */
void attention_products_add(const struct graph_terms *terms, const struct attention_shape *shape,
                            struct work_matmul score, struct work *work);
/* Adds scores again, dP = dO·V; dQ = dS·K, dV = P·dO, dK = dS·Q; and the gradients of scores. */
void attention_gradients_add(const struct graph_terms *terms, const struct attention_shape *shape,
                             struct work_matmul score, struct work *work);

/* FLOP of the products forward. */
uint64_t attention_products_flop(const struct attention_shape *shape, struct work_matmul score);
/* Of a number of FLOP, the part of the heads that are no padding. */
uint64_t attention_wanted_flop(const struct graph_terms *terms, uint64_t flop);
/* Useful FLOP in inference, an even share for each rank; the rank with the longest sequences has
 * more. `scores`: of one head, over all sequences on all ranks. */
uint64_t attention_served_flop(const struct graph_terms *terms, const struct attention_shape *shape,
                               units_wide scores);

/* FLOP that widen elements of keys or values which lie in a narrower format. */
uint64_t attention_widening_flop(const struct graph *graph, tensor in, uint64_t elements);

/* What a listing says of the layer's scores. */
struct op_remark attention_remark(const struct graph *graph);

#endif
