/*
 * counts_parts.h: what the counts of a training step are made of, for counts*.c: sums over graphs
 * of a model's parts, and formulas for weights and the update.
 */
#ifndef SIM_STEP_COUNTS_PARTS_H
#define SIM_STEP_COUNTS_PARTS_H

#include "sim/graph/block.h"
#include "sim/graph/count.h"
#include "sim/step/counts.h"
#include "sim/step/local.h"

/* Layers that are alike, or ends. */
struct counts_layers {
    uint64_t
        count; /* Of layers with those of modules that predict further tokens. 0: there are none. */
    struct graph_count graph;
};

/* Ends, and modules' own parts: each once more where the matrix has been used before in a backward
 * pass. */
enum counts_end {
    COUNTS_EMBEDDING,
    COUNTS_HEAD,
    COUNTS_HEAD_AGAIN,
    COUNTS_MTP,
    COUNTS_MTP_AGAIN,
    COUNTS_ENDS
};

/* One chip, one microbatch, elements unless the name says more. */
struct letters {
    const struct local *local;
    const struct machine *machine;
    struct counts_layers like[LOCAL_KINDS][2]; /* By kind; with a window or without. */
    struct counts_layers end[COUNTS_ENDS];
    double layers, microbatches; /* Layers with those in modules that predict further tokens; */
    double predictors;           /* the modules. */
    double dense, sparse;        /* Layers that have an MLP, and experts in its place. */
    double a, w, g, o;      /* Bytes of an element: activations, weights, gradients, moments; */
    double rows, shard;     /* Tokens; of [rows, D] what lies between blocks. */
    double vocabulary;      /* The matrix of the embedding, or of the head. */
    double twins;           /* Of both ends of a pipeline, what is added up. */
    double layer_elements;  /* All weights of a layer that has an MLP; */
    double sparse_elements; /* of one that has experts, without these, */
    double expert_elements; /* and these. */
    double step_elements;   /* All weights of the model, without experts; with a copy of the
                               embedding where a pipeline has one. */
};

/* Layers (counts_layers.c): their graphs' sums, and their weights; all that these ask. */
void counts_layers_letters(struct letters *x);
void counts_layers(const struct letters *x, struct workload_counts *counts);

/* The sums over the graph of a part of a model. */
void counts_graph_derive(const struct letters *x, const struct graph_terms *terms,
                         enum block_part part, uint64_t layer, struct graph_count *ret_count);
/* What parts that are alike ask in a step, but for what they keep. */
void counts_graph_add(const struct letters *x, const struct counts_layers *like,
                      struct workload_counts *counts);

/* Before and behind the layers, with modules that predict further tokens; and the update
 * (counts_ends.c). */
void counts_ends_letters(struct letters *x);
void counts_ends(const struct letters *x, struct workload_counts *counts);

double counts_padded_matmul(const struct letters *x, uint64_t rows, uint64_t inner,
                            uint64_t columns);

/* Of experts (counts_experts.c): what is drawn, dropped and exchanged. */
void counts_experts(const struct letters *x, struct workload_counts *counts);
/* `count` exchanges over ep, of as many bytes as the graph has. */
void counts_exchange(const struct letters *x, uint64_t count, double bytes,
                     struct workload_counts *counts);
/* Units of weights of a layer that has experts, and those of them that are the experts'. */
uint64_t counts_sparse_units(const struct letters *x);
uint64_t counts_expert_units(const struct letters *x);

/* What frameworks hold whatever layers save (counts_overheads.c), after what is offloaded. */
void counts_overheads(const struct letters *x, struct workload_counts *counts);

/* Of what is kept in the host's memory (counts_offload.c), after all of the chip's memory. */
void counts_offload(const struct letters *x, struct workload_counts *counts);

/* Weights of modules that predict further tokens, besides their layers', and of the embedding that
 * they share (counts_predictors.c). */
void counts_predictors(const struct letters *x, struct workload_counts *counts);

/* Matrices of a layer's attention. */
static inline uint64_t counts_attention_units(const struct letters *x)
{
    return local_is_latent(x->local) ? 5 : 4;
}

/* Shares (counts_shares.c): elements of one of a number of ranks, of experts or of all others,
 * equal on every rank; those whose optimizer state lies on this chip, of each copy of the model;
 * and of both ends of a pipeline, what is added up. */
double counts_share(const struct letters *x, uint32_t ranks, bool experts);
double counts_state_elements(const struct letters *x);
double counts_twins_share(const struct letters *x);

/* Elements of them whose gradients are added to those of another copy. */
static inline double counts_summed_elements(const struct letters *x)
{
    return x->local->copies > 1 ? counts_state_elements(x) : 0;
}

#endif
