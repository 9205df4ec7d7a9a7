/*
 * model.h: what a model is, by the book's letters. Read from a Hugging Face config.json, or from
 * the bare MLP that the book reasons on. What it counts follows from its graph (sim/graph).
 */
#ifndef SIM_MODEL_MODEL_H
#define SIM_MODEL_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/base/status.h"
#include "sim/model/layer_kinds.h"

enum model_kind {
    MODEL_DECODER, /* Decoder of attention and MLP blocks, norms, embedding and head. */
    MODEL_MLP,     /* `layers` MLPs of `matrices` matrices and nothing else. */
};

/*
 * A model's structs are tables with a row for each member.
 *
 * FACT(at, type, name): a number, a flag or a choice, by which models are told apart (model_facts).
 *     `at` is the place of the struct in struct model: "experts.".
 * OTHER(type, name): a member that changes no step, or that is compared layer by layer.
 * PART(type, name, TABLE): a struct with a table of its own.
 */
#define MODEL_FACT(at, type, name) type name;
#define MODEL_OTHER(type, name) type name;
#define MODEL_PART(type, name, TABLE) type name;

/* Layers whose MLP is a set of experts, of which each token goes to a few. count 0: none are. */
#define MODEL_EXPERTS_TABLE(FACT, OTHER, at)                                                       \
    FACT(at, uint64_t, count)        /* E, of a layer. */                                          \
    FACT(at, uint64_t, top_k)        /* k */                                                       \
    FACT(at, uint64_t, width)        /* F of one expert. */                                        \
    FACT(at, uint64_t, shared)       /* Experts as wide that every token goes to. */               \
    FACT(at, uint64_t, dense_layers) /* The first layers, which have one MLP of `mlp_width`. */    \
    /* From layer `dense_layers` on one layer of `step` has experts, the first of them first. */   \
    /* 0: all have experts. */                                                                     \
    FACT(at, uint64_t, step)                                                                       \
    FACT(at, uint64_t, groups) /* Of experts; a token goes to the best alone. 0: no groups. */     \
    FACT(at, uint64_t, top_groups)                                                                 \
    FACT(at, bool, router_biased) /* A router has E more weights. */                               \
    FACT(at, bool, biased)        /* Each column of an expert has a bias. */                       \
    FACT(at, bool, shared_gated)  /* Shared experts have a gate: D more weights. */
struct model_experts {
    MODEL_EXPERTS_TABLE(MODEL_FACT, MODEL_OTHER, )
};

/* Latent attention (MLA): Q comes from `query_rank` columns, K and V from `kv_rank`, which all
 * heads share, as they do the `rope` columns of K that are rotated by position. kv_rank 0: none. */
#define MODEL_MLA_TABLE(FACT, OTHER, at)                                                           \
    FACT(at, uint64_t, query_rank) /* 0: Q comes from the width itself. */                         \
    FACT(at, uint64_t, kv_rank)                                                                    \
    FACT(at, uint64_t, plain) /* Columns of a head that are not rotated. */                        \
    FACT(at, uint64_t, rope)
struct model_mla {
    MODEL_MLA_TABLE(MODEL_FACT, MODEL_OTHER, )
};

#define MODEL_POSITIONS_TABLE(FACT, OTHER, at)                                                     \
    /* Rows that are added to the embedding by position; 0: none are. */                           \
    FACT(at, uint64_t, learned)                                                                    \
    /* Tokens of the longest sequence that the model is made for; 0: nothing says it. */           \
    OTHER(uint64_t, most)
struct model_positions {
    MODEL_POSITIONS_TABLE(MODEL_FACT, MODEL_OTHER, )
};

/* Products of which each column has a bias. Experts: struct model_experts. */
#define MODEL_BIASES_TABLE(FACT, OTHER, at)                                                        \
    FACT(at, bool, qkv) /* Of Q, K and V. */                                                       \
    FACT(at, bool, o)                                                                              \
    FACT(at, bool, mlp) /* Of each of an MLP's. */                                                 \
    FACT(at, bool, head)
struct model_biases {
    MODEL_BIASES_TABLE(MODEL_FACT, MODEL_OTHER, )
};

/* What the norms of Q and K have for weights. All but the last are over the columns of a head. */
enum model_qk_norms {
    MODEL_QK_NORMS_NONE,   /* Q and K are not normed. */
    MODEL_QK_NORMS_SHARED, /* H of Q and H of K, which all heads share. */
    MODEL_QK_NORMS_EACH,   /* H of each head of Q and of K. */
    MODEL_QK_NORMS_WHOLE,  /* H of each head of Q and of K, in a norm of all heads together. */
};

#define MODEL_NORMS_TABLE(FACT, OTHER, at)                                                         \
    /* One norm lies before attention and MLP that are side by side, and none before each. */      \
    FACT(at, bool, one_for_both)                                                                   \
    FACT(at, bool,                                                                                 \
         behind) /* What a block of a layer gives is normed before the stream adds it. */          \
    FACT(at, bool, none_before)       /* A block of a layer reads the stream itself. */            \
    FACT(at, bool, inside)            /* What O and an MLP's last matrix read is normed whole. */  \
    FACT(at, bool, embedding)         /* Rows of the embedding are normed before layers. */        \
    FACT(at, uint64_t, biases)        /* Of a weight of a norm, but for latents: 0 or 1. */        \
    FACT(at, bool, centred)           /* Norms subtract the mean (LayerNorm), but for latents. */  \
    FACT(at, enum model_qk_norms, qk) /* Of the columns of Q and of K. */
struct model_norms {
    MODEL_NORMS_TABLE(MODEL_FACT, MODEL_OTHER, )
};

/* How layers attend. */
#define MODEL_ATTENDS_TABLE(FACT, OTHER, at)                                                       \
    FACT(at, bool, caps_scores)   /* c·tanh(s/c) of each score comes before their softmax. */     \
    FACT(at, bool, biases_scores) /* Each score has a bias by position (ALiBi). */                 \
    FACT(at, bool, sinks)         /* Each head has one more score, which is a weight. */           \
    /* Keys that a query of a windowed layer has at most, its own among them. */                   \
    FACT(at, uint64_t, window)
struct model_attends {
    MODEL_ATTENDS_TABLE(MODEL_FACT, MODEL_OTHER, )
};

#define MODEL_TABLE(FACT, OTHER, PART)                                                             \
    FACT(, enum model_kind, kind)                                                                  \
    OTHER(const char *, name)                                                                      \
    FACT(, uint64_t, layers)      /* L */                                                          \
    FACT(, uint64_t, width)       /* D */                                                          \
    FACT(, uint64_t, mlp_width)   /* F */                                                          \
    FACT(, uint64_t, matrices)    /* Of the MLP: 2, or 3 when gated. */                            \
    FACT(, bool, xielu)           /* Between both of a layer's MLP: xIELU, of two weights. */      \
    FACT(, uint64_t, heads)       /* N */                                                          \
    FACT(, uint64_t, kv_heads)    /* K */                                                          \
    FACT(, uint64_t, head_width)  /* H, of Q and K. */                                             \
    FACT(, uint64_t, value_width) /* Of V; 0: H. */                                                \
    FACT(, uint64_t, vocabulary)  /* V */                                                          \
    FACT(, bool, tied)            /* Embedding and head are one matrix. */                         \
    FACT(, bool, caps_logits)     /* c·tanh(l/c) of each logit comes before loss or sampling. */  \
    PART(struct model_biases, biases, MODEL_BIASES_TABLE)                                          \
    PART(struct model_norms, norms, MODEL_NORMS_TABLE)                                             \
    FACT(, bool, parallel) /* Attention and MLP of a layer lie side by side. */                    \
    PART(struct model_positions, positions, MODEL_POSITIONS_TABLE)                                 \
    PART(struct model_attends, attends, MODEL_ATTENDS_TABLE)                                       \
    OTHER(struct layer_arrays, by_layer)                                                           \
    FACT(, uint64_t, mtp_modules) /* Layers behind the last that predict further tokens (MTP). */  \
    PART(struct model_experts, experts, MODEL_EXPERTS_TABLE)                                       \
    PART(struct model_mla, mla, MODEL_MLA_TABLE)
struct model {
    MODEL_TABLE(MODEL_FACT, MODEL_OTHER, MODEL_PART)
};

/* Where a fact lies in struct model. */
struct model_fact {
    const char *name; /* "experts.top_k" */
    size_t at, size_bytes;
};
extern const struct model_fact model_facts[]; /* Ended by a NULL name. */

/* Whether two models have equal facts, and each layer attends in the same way in both. `mlp_width`
 * does not count where all layers have experts. A value width of 0 is the width of keys. */
bool model_same(const struct model *model, const struct model *other);

static inline bool model_has_experts(const struct model *model)
{
    return model->experts.count != 0;
}

static inline bool model_has_mla(const struct model *model)
{
    return model->mla.kv_rank != 0;
}

/* Layers that have one MLP. */
static inline uint64_t model_dense_layers(const struct model *model)
{
    uint64_t const behind = model->layers - model->experts.dense_layers;
    uint64_t const step = model->experts.step == 0 ? 1 : model->experts.step;
    return model_has_experts(model) ? model->layers - (behind + step - 1) / step : model->layers;
}

/* Whether Q and K are rotated by position, as no other part of the model says positions. */
static inline bool model_rotates(const struct model *model)
{
    return model->positions.learned == 0 && !model->attends.biases_scores;
}

static inline uint64_t model_value_width(const struct model *model)
{
    return model->value_width != 0 ? model->value_width : model->head_width;
}

/* How many layers' windows are shorter than sequences of `length`. */
uint64_t model_window_layers(const struct model *model, uint64_t length);

/* How many layers attend to the cache of a layer before them. */
uint64_t model_borrowing_layers(const struct model *model);

#endif
