/*
 * parameters.h: how many parameters a model has, summed over the weights of its graphs on one chip.
 */
#ifndef SIM_GRAPH_PARAMETERS_H
#define SIM_GRAPH_PARAMETERS_H

#include "sim/graph/block.h"

struct model_counts {
    uint64_t embedding;      /* V·D, and again for an untied head. */
    uint64_t positions;      /* Parameters of the matrix of positions. */
    uint64_t norm_embedding; /* Parameters of norms of what is looked up. */
    uint64_t head;           /* Parameters of the head; if the head is tied, its biases alone. */
    uint64_t head_matrix;    /* Parameters of the matrix of the head; 0: the head is tied. */
    uint64_t attention_layer;
    uint64_t attention_borrower; /* Parameters of attention in a layer that has no K and V. */
    uint64_t borrowers;          /* Layers that have no K and V. */
    uint64_t cache_columns;      /* Numbers that a token leaves in the cache of a layer. */
    uint64_t attention_columns;  /* Multiplications for a query and a key of prompts in a layer:
                                    N·(H+V). */
    uint64_t decode_columns;     /* Multiplications for a query and a key of decodes in a layer.
                                    Absorbed attention multiplies more. */
    uint64_t mlp_layer;          /* Parameters of the MLP, in a layer that has one MLP. */
    uint64_t mlp_layers;
    uint64_t router_layer; /* Parameters of the router, in a layer that has experts. */
    uint64_t experts_layer;
    uint64_t shared_layer;
    uint64_t expert_layers;
    uint64_t norm_layer;
    uint64_t norm_final;
    uint64_t total;
    uint64_t active;      /* Of `total`, what one token meets: k of E experts, and all else. */
    uint64_t mtp_modules; /* Not in `total`: of the layers that predict further tokens, which use
                            the model's own embedding and head. */
    uint64_t mtp_active; /* Of `mtp_modules`, parameters that one token meets, and the head's matrix
                            once more for each module. */
};

struct model_counts model_count(const struct model *model);

/* Sets what lies before and behind the layers, from the graphs of both parts on one chip, and adds
 * it to `total`. */
void graph_ends_count(const struct graph *embedding, const struct graph *head,
                      const struct model *model, struct model_counts *counts);

/* Weights of a vector on all chips together, without padding; of all vectors of the last block. */
uint64_t graph_vector_elements(const struct graph *graph, const struct graph_vector *vector);
uint64_t graph_last_vectors(const struct graph *graph);

/* Weights of a norm on one chip, with its biases. */
uint64_t graph_norm_elements(const struct graph *graph, tensor weight);

#endif
