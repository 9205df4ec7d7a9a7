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

/* Layers whose MLP is a set of experts, of which each token goes to a few. count 0: none are. */
struct model_experts {
    uint64_t count;        /* E, of a layer. */
    uint64_t top_k;        /* k */
    uint64_t width;        /* F of one expert. */
    uint64_t shared;       /* Experts as wide that every token goes to. */
    uint64_t dense_layers; /* The first layers, which have one MLP of `mlp_width`. */
    uint64_t step;   /* From layer `dense_layers` on, one layer of `step` has experts, the first of
                        them first; the others have one MLP. 0: all have experts. */
    uint64_t groups; /* Groups of experts; a token goes to the best groups only. 0: no groups. */
    uint64_t top_groups;
    bool router_biased; /* A router has E more weights. */
    bool biased;        /* An expert has 2F + D more weights. */
    bool shared_gated;  /* A gate weighs what shared experts give each token: D more weights. */
};

/* Latent attention (MLA): Q comes from `query_rank` columns, K and V from `kv_rank`, which all
 * heads share, as they do the `rope` columns of K that are rotated by position. kv_rank 0: none. */
struct model_mla {
    uint64_t query_rank; /* 0: Q comes from the width itself. */
    uint64_t kv_rank;
    uint64_t plain; /* Columns of a head that are not rotated. */
    uint64_t rope;
};

struct model_positions {
    uint64_t learned; /* Rows that are added to the embedding by position; 0: Q and K are turned by
                         position instead. */
    uint64_t most;    /* Tokens of the longest sequence that the model is made for; 0: nothing says
                         it. */
};

/* Weights that are in no matrix, but for those of norms. */
struct model_vectors {
    uint64_t qk;        /* Biases of each column of Q and of K: 0 or 1. */
    uint64_t v;         /* Biases of each column of V: 0 or 1. */
    uint64_t attention; /* All others of a layer's attention: biases of the result and of norms of Q
                           and K, sinks. */
    uint64_t mlp;       /* Biases of one MLP. */
    uint64_t head;      /* Biases of the head. */
};

/* What the norms of Q and K, each over the columns of a head, have for weights. */
enum model_qk_norms {
    MODEL_QK_NORMS_NONE,   /* Q and K are not normed. */
    MODEL_QK_NORMS_SHARED, /* H of Q and H of K, which all heads share. */
    MODEL_QK_NORMS_EACH,   /* H of each head of Q and of K. */
};

struct model_norms {
    uint64_t count;  /* Of a layer; 0: one before attention, one before the MLP. */
    bool behind;     /* What a block of a layer gives is normed before the stream adds it; `count`
                        has these too. */
    uint64_t biases; /* Biases of a channel of a norm of D: 0 or 1. */
    enum model_qk_norms qk; /* Of the columns of a head of Q and of K. */
};

/* Keys and values that layers attend to, where these are not all of the layer's own. */
struct model_attends {
    uint64_t window; /* Keys that a query of a windowed layer has at most, its own among them. */
    const bool *windowed; /* [layer]; NULL: none is. */
    const bool *borrows; /* [layer]: it computes no K and V, and attends to the cache of the nearest
                            layer before it that does; NULL: none is so. */
};

struct model {
    enum model_kind kind;
    const char *name;
    uint64_t layers;      /* L */
    uint64_t width;       /* D */
    uint64_t mlp_width;   /* F */
    uint64_t matrices;    /* Of the MLP: 2, or 3 when gated. */
    uint64_t heads;       /* N */
    uint64_t kv_heads;    /* K */
    uint64_t head_width;  /* H, of Q and K. */
    uint64_t value_width; /* Of V; 0: H. */
    uint64_t vocabulary;  /* V */
    bool tied;            /* Embedding and head are one matrix. */
    struct model_vectors vectors;
    struct model_norms norms;
    bool parallel; /* Attention and MLP of a layer lie side by side. */
    struct model_positions positions;
    struct model_attends attends;
    uint64_t mtp_modules; /* Layers behind the last that predict further tokens (MTP). */
    struct model_experts experts;
    struct model_mla latent;
};

/* A number, a flag or a choice of a model: a member of struct model, or of a struct in it. The
 * members that are no facts are `name`, `positions.most`, which changes no step, and arrays by
 * layer.
 */
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

/* Layers that have one MLP. */
static inline uint64_t model_dense_layers(const struct model *model)
{
    uint64_t const behind = model->layers - model->experts.dense_layers;
    uint64_t const step = model->experts.step == 0 ? 1 : model->experts.step;
    return model_has_experts(model) ? model->layers - (behind + step - 1) / step : model->layers;
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
