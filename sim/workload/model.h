/*
 * model.h: what a model is, by the book's letters, and what it counts: parameters, FLOP, bytes.
 * Read from a Hugging Face config.json, or from the bare MLP that the book reasons on.
 */
#ifndef SIM_WORKLOAD_MODEL_H
#define SIM_WORKLOAD_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/status.h"

enum model_kind {
    MODEL_LLAMA, /* Decoder of attention and MLP blocks, norms, embedding and head. */
    MODEL_MLP,   /* `layers` MLPs of `matrices` matrices and nothing else. */
};

struct model {
    enum model_kind kind;
    const char *name;
    uint64_t layers;     /* L */
    uint64_t width;      /* D */
    uint64_t mlp_width;  /* F */
    uint64_t matrices;   /* Of the MLP: 2, or 3 when gated. */
    uint64_t heads;      /* N */
    uint64_t kv_heads;   /* K */
    uint64_t head_width; /* H */
    uint64_t vocabulary; /* V */
    bool tied;           /* Embedding and head are one matrix. */
};

struct model_counts {
    uint64_t embedding; /* V·D, and again for an untied head. */
    uint64_t head;      /* 0 if tied. */
    uint64_t attention_layer;
    uint64_t mlp_layer;
    uint64_t norm_layer;
    uint64_t norm_final;
    uint64_t total;
};

struct model_counts model_count(const struct model *model);

/* FLOP of one training step's attention dot products over `tokens` in sequences of `length`:
 * 12·B·T·S·N·H·L, the full rectangle (book, 4.2.2). */
double model_attention_flop(const struct model *model, uint64_t tokens, uint64_t length);

#endif
