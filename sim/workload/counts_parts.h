/*
 * counts_parts.h: what the counts of a training step are made of, for counts*.c: sums over graphs
 * of layers, and formulas for the rest.
 */
#ifndef SIM_WORKLOAD_COUNTS_PARTS_H
#define SIM_WORKLOAD_COUNTS_PARTS_H

#include "sim/graph/count.h"
#include "sim/workload/counts.h"
#include "sim/workload/local.h"

/* Layers that are alike. */
struct counts_layers {
    uint64_t count; /* With those of modules that predict further tokens. 0: there are none. */
    struct graph_count graph;
};

/* One chip, one microbatch, elements unless the name says more. */
struct letters {
    const struct local *local;
    const struct machine *machine;
    struct counts_layers like[LOCAL_KINDS][2]; /* By kind; with a window or without. */
    double layers, microbatches; /* Layers with those in modules that predict further tokens; */
    double predictors;           /* the modules. */
    double dense, sparse;        /* Layers that have an MLP, and experts in its place. */
    double attention_again;      /* 1: remat repeats attention, */
    double norms_again;          /* 1: and norms. */
    double adds;                 /* 1: dW reads the accumulator that it is added to. */
    double a, w, g, o;        /* Bytes of an element: activations, weights, gradients, moments; */
    double m;                 /* what only matmuls read; */
    double normed;            /* what a norm gives to them. */
    double rows, full, shard; /* Tokens; of [rows, D] all, and what lies between blocks. */
    double in_kept;           /* Without remat. */
    double vocabulary, logits;
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

/* Attention that no block describes (counts_attention.c), between its projections: of ranks of cp,
 * and with scores in HBM. Nothing where graphs have it. */
void counts_attention(const struct letters *x, struct workload_counts *counts);
/* Scores of all layers, of the mean rank and of heads that are no padding. */
double counts_useful_scores(const struct letters *x);

/* Before and behind the layers, and the update (counts_ends.c). */
void counts_ends(const struct letters *x, struct workload_counts *counts);

double counts_padded_matmul(const struct letters *x, uint64_t rows, uint64_t inner,
                            uint64_t columns);

/* Matmuls of linear layers, padded or not, are in their own format. */
void counts_linear(struct workload_counts *counts, double flop, double padded_flop);

/* Of experts (counts_experts.c): what is drawn, dropped and exchanged. */
void counts_experts(const struct letters *x, struct workload_counts *counts);
/* `count` exchanges over ep, of as many bytes as the graph has. */
void counts_exchange(const struct letters *x, uint64_t count, double bytes,
                     struct workload_counts *counts);
/* Units of weights of a layer that has experts, and those of them that are the experts'. */
uint64_t counts_sparse_units(const struct letters *x);
uint64_t counts_expert_units(const struct letters *x);

/* Elements between the projections of all layers' experts, as the second reads them. */
double counts_experts_products(const struct letters *x);

/* What frameworks hold (counts_overheads.c): of activations; and of the rest, after what is
 * offloaded. */
void counts_overheads_saved(const struct letters *x, struct workload_counts *counts);
void counts_overheads(const struct letters *x, struct workload_counts *counts);

/* Of what is kept in the host's memory (counts_offload.c), after all of the chip's memory. */
void counts_offload(const struct letters *x, struct workload_counts *counts);

/* Of modules that predict further tokens, besides their layers (counts_predictors.c). */
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
