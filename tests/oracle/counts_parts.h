/*
 * counts_parts.h: what the oracle's formulas are written in, for counts*.c. Frozen, as oracle.h
 * says.
 */
#ifndef TESTS_ORACLE_COUNTS_PARTS_H
#define TESTS_ORACLE_COUNTS_PARTS_H

#include "sim/base/units.h"
#include "sim/step/ranks.h"
#include "tests/oracle/oracle.h"

/* Of what remat repeats: 1 or 0. */
struct variables_remat {
    double again;           /* The forward pass, */
    double whole;           /* with what nothing reads, the last projection and what follows. */
    double attention_again; /* So does big_matmuls with the attention between the matmuls, */
    double norms_again;     /* and these and `norms` with the norms and the latents. */
    double adds;            /* dW reads the accumulator that it is added to. */
};

/* Bytes of an element. */
struct variables_bytes {
    double a, w, g, o; /* Activations, weights, gradients, moments; */
    double m, d;       /* what only matmuls read, what travels to experts; */
    double normed;     /* what a norm gives to them. */
};

struct variables_mlp {
    double rows, full, shard, tmp, mid, in_weights, out_weights;
    double in_kept; /* Without remat. */
    double gated;
};

struct variables_attention {
    double q, qkv, kv, scores, in, out;
    double attended, tmp;     /* What attention gives, and its in-projection. */
    double mla_up;            /* Matrices that take latents up to the heads. */
    double all_scores;        /* Of all layers, which differ where some have a window, */
    double all_mean_scores;   /* of the mean rank, */
    double all_useful_scores; /* and of heads that are no padding. */
    double useful_heads;      /* These, of a rank's heads. */
    double windowed;          /* Layers that have one. */
    double unfused, drops;    /* 1: scores lie in HBM; 1: with dropout. */
    double ring_steps;        /* Parts of attention after the first. */
    double statistics;        /* Bytes. */
};

/* One chip, one microbatch, elements unless the name says more. */
struct variables {
    const struct ranks *ranks;
    const struct machine *machine;
    struct workload_lists lists;
    double layers, microbatches; /* Layers with those in modules that predict further tokens; */
    double mtp_modules;          /* the modules. */
    double dense, sparse;        /* Layers that have an MLP, and experts in its place. */
    struct variables_remat remat;
    struct variables_bytes bytes;
    struct variables_mlp mlp;
    struct variables_attention attention;
    double vocabulary, logits;
    double tied_apart;      /* Of both ends of a pipeline, what is added up. */
    double layer_elements;  /* All weights of a layer that has an MLP; */
    double sparse_elements; /* of one that has experts, without these, */
    double expert_elements; /* and these. */
    double step_elements;   /* All weights of the model, without experts; with a copy of the
                               embedding where a pipeline has one. */
};

/* Columns of latent attention's projections down. */
static inline uint64_t oracle_mla_columns(const struct model *model)
{
    return model->mla.query_rank + model->mla.kv_rank + model->mla.rope;
}

/* Of the layer on one chip, once more by formulas. */
static inline uint64_t oracle_latent_columns(const struct ranks *ranks)
{
    return ranks_has_mla(ranks) ? oracle_mla_columns(&ranks->plan->model) : 0;
}
static inline uint64_t oracle_latent_normed(const struct ranks *ranks)
{
    const struct model_mla *mla = &ranks->plan->model.mla;
    return ranks_has_mla(ranks) ? mla->query_rank + mla->kv_rank : 0;
}
/* Padded over tp. */
static inline uint64_t oracle_vocabulary(const struct ranks *ranks)
{
    return units_ceil_divide(ranks->plan->model.vocabulary, ranks->tp);
}
static inline uint64_t oracle_mlp_columns(const struct ranks *ranks)
{
    return units_ceil_divide(ranks->plan->model.mlp_width, ranks->tp);
}
static inline uint64_t oracle_kv_heads_padded(const struct ranks *ranks)
{
    uint64_t padded = ranks->plan->model.kv_heads;
    while (padded % ranks->tp != 0 && ranks->tp % padded != 0) padded++;
    return padded;
}
static inline uint64_t oracle_width(const struct ranks *ranks)
{
    return ranks->plan->model.width;
}
static inline uint64_t oracle_head_width(const struct ranks *ranks)
{
    return ranks->plan->model.head_width;
}
static inline uint64_t oracle_value_width(const struct ranks *ranks)
{
    return model_value_width(&ranks->plan->model);
}
static inline uint64_t oracle_keys(const struct ranks *ranks)
{
    return ranks->plan->sequence_length;
}
static inline uint64_t oracle_queries(const struct ranks *ranks)
{
    return oracle_keys(ranks) / ranks->sequences.parts;
}
/* Weights in no matrix lie with the tokens between blocks. */
static inline uint64_t oracle_vector_share(const struct ranks *ranks, uint64_t elements)
{
    bool const whole = ranks->plan->activations == WORKLOAD_ACTIVATIONS_TOKENS;
    return whole ? elements : units_ceil_divide(elements, ranks->tp);
}
static inline uint64_t oracle_norm_elements(const struct ranks *ranks)
{
    const struct model *model = &ranks->plan->model;
    return oracle_vector_share(ranks, (1 + model->norms.biases) * model->width);
}
static inline uint64_t oracle_position_elements(const struct ranks *ranks)
{
    const struct model *model = &ranks->plan->model;
    return oracle_vector_share(ranks, model->positions.learned * model->width);
}
/* Of a module, outside its layer: it joins two arrays, each normed, to one of D, and ends in a
 * norm.
 */
static inline uint64_t oracle_mtp_elements(const struct ranks *ranks)
{
    uint64_t const width = oracle_width(ranks);
    return 2 * width * units_ceil_divide(width, ranks->tp) + 3 * oracle_norm_elements(ranks);
}
/* What a norm gives to a linear layer: over tp it travels. */
static inline enum format oracle_normed_format(const struct ranks *ranks)
{
    const struct graph_formats *formats = &ranks->plan->formats;
    return ranks->tp > 1 ? formats->activations : formats->matmuls;
}
static inline uint64_t oracle_qkv_columns(const struct ranks *ranks)
{
    return (ranks->heads.queries + ranks->heads.kv) * oracle_head_width(ranks) +
           ranks->heads.kv * oracle_value_width(ranks);
}
static inline uint64_t oracle_attention_heads(const struct ranks *ranks)
{
    return ranks->heads.queries / (ranks_has_ulysses(ranks) ? ranks->cp : 1);
}

double oracle_padded_matmul(const struct variables *x, uint64_t rows, uint64_t inner,
                            uint64_t columns);

/* Scores (counts_scores.c): their variables; and their products in all layers, with shapes padded.
 */
void oracle_attention_variables(struct variables *x);
double oracle_padded_scores(const struct variables *x, uint64_t width, bool weighted);

/* Operand and result of a projection: elements, and bytes of one in the forward pass and of its
 * gradient. */
struct oracle_side {
    double elements, bytes, gradient_bytes;
};
/* A projection's operands and results forward, for its dW and for its dX. `adds` as in struct
 * variables; `again`: 1 if it is repeated. */
double oracle_projection_bytes(const struct variables *x, double weights, double adds, double again,
                               struct oracle_side in, struct oracle_side out);
/* All of it, but for experts, latent attention's own, and modules that predict further tokens. */
void oracle_hbm(const struct variables *x, struct workload_counts *counts);
/* Matmuls of linear layers, padded or not, are in their own format. */
void oracle_linear(struct workload_counts *counts, double flop, double padded_flop);

/* What shares are padded by (counts_shares.c): FLOP of the matmuls, once for each pass and for both
 * gradients; of experts' columns a part. */
double oracle_matmul_padding(const struct variables *x);

/* Of experts (counts_experts.c): their variables, and what they add to everything. */
void oracle_experts_variables(struct variables *x);
void oracle_experts(const struct variables *x, struct workload_counts *counts);
/* Units of weights of a layer that has experts, and those of them that are the experts'. */
uint64_t oracle_sparse_units(const struct variables *x);
uint64_t oracle_expert_units(const struct variables *x);

/* Elements between the projections of all layers' experts, as the second reads them. */
double oracle_experts_products(const struct variables *x);

/* What frameworks hold (counts_overheads.c): of activations; and of the rest, after what is
 * offloaded. */
void oracle_overheads_saved(const struct variables *x, struct workload_counts *counts);
void oracle_overheads(const struct variables *x, struct workload_counts *counts);

/* What layers save for the backward pass, in one microbatch; of experts see oracle_experts(). */
double oracle_saved_bytes(const struct variables *x);

/* Of what is kept in the host's memory (counts_offload.c), after all of the chip's memory. */
void oracle_offload(const struct variables *x, struct workload_counts *counts);

/* Of latent attention (counts_latent.c): the same. Without it nothing. */
void oracle_latent_variables(struct variables *x);
void oracle_latent(const struct variables *x, struct workload_counts *counts);

/* Of modules that predict further tokens, besides their layers (counts_predictors.c). */
void oracle_predictors(const struct variables *x, struct workload_counts *counts);

/* Matrices of a layer's attention. */
static inline uint64_t oracle_attention_units(const struct variables *x)
{
    return ranks_has_mla(x->ranks) ? 5 : 4;
}

/* Shares (counts_shares.c): elements of one of a number of ranks, of experts or of all others,
 * equal on every rank; those whose optimizer state lies on this chip, of each copy of the model;
 * and of both ends of a pipeline, what is added up. */
double oracle_share(const struct variables *x, uint32_t rank_count, bool experts);
double oracle_state_elements(const struct variables *x);
double oracle_tied_share(const struct variables *x);

/* Elements of them whose gradients are added to those of another copy. */
static inline double oracle_summed_elements(const struct variables *x)
{
    return x->ranks->model_replicas > 1 ? oracle_state_elements(x) : 0;
}

#endif
