/*
 * block.h: a block of a model, written once. A new one is one file in workloads/blocks, with its
 * line in workloads/blocks.def.
 */
#ifndef SIM_GRAPH_BLOCK_H
#define SIM_GRAPH_BLOCK_H

#include "sim/base/strbuf.h"
#include "sim/graph/graph.h"
#include "sim/model/model.h"

/* A part of a model is written as one graph: what lies before the layers, a layer, what lies behind
 * them; and what a module that predicts a further token has before its own layer and head. */
enum block_part { BLOCK_EMBEDDING, BLOCK_LAYER, BLOCK_HEAD, BLOCK_MTP };
enum { BLOCK_PART_COUNT = BLOCK_MTP + 1 };

/* A part has one block at each of its places, or none: of those that apply, the one that no other
 * replaces. */
enum block_place {
    BLOCK_LOOKS_UP,
    BLOCK_MIXES_TOKENS,
    BLOCK_MIXES_CHANNELS,
    BLOCK_GIVES_LOSS,
    BLOCK_JOINS_EMBEDDING,
    BLOCK_PLACE_COUNT
};

/* Ways of a step for which a block may have no ops. */
enum block_way {
    BLOCK_UNFUSED,            /* Scores lie in HBM between separate kernels. */
    BLOCK_SHARED_IN_TRAINING, /* Ranks share a sequence in a training step. */
    BLOCK_WAY_COUNT
};

enum { BLOCK_REPLACES_MAX = 2 };

struct block {
    const char *name;   /* "attention" */
    const char *prefix; /* The beginning of names of the block's ops: "attention." */
    const char *help;
    const char *source;
    enum block_place place;
    const char *bucket; /* What the weights of the block are called together. */
    const char
        *bucket_shared; /* The name where shared experts are among the weights. NULL: `bucket`. */
    bool mixes_both;    /* Mixes tokens and channels: layers with it have no block for channels. */
    bool couples; /* The block's products may run chunk by chunk with the collectives over tp that
                     bring their operands and take their results. */
    /* [way]: the block's name in sentences that refuse a way which it lacks; NULL: it has ops. */
    const char *lacks[BLOCK_WAY_COUNT];
    /* Blocks that a layer has without this one, and not with it. Behind the last NULL. */
    const struct block *replaces[BLOCK_REPLACES_MAX + 1];
    /* Whether the layer of the terms has the block, or the part before or behind the layers, unless
     * another replaces it. NULL: all have. */
    bool (*applies)(const struct graph_terms *terms, const struct model *model);
    void (*write)(struct graph *graph, const struct model *model);
    /* Adds dimensions of the block's own arrays, with sizes of the model (graph_dimension_set()),
     * whether the model has the block or not. NULL: the block has those of terms.c alone. */
    void (*dimensions)(const struct model *model, struct graph_terms *terms);
    /* Adds lines to the legend of a listing: what a reader has to know of the block in a layer, and
     * of the same block in layers of other kinds, in addition to dimensions. NULL: nothing. */
    void (*explain)(const struct graph *layer, const struct layer_kinds *kinds,
                    struct strbuf *text);
};

extern const struct block *const block_table[];
extern const uint32_t block_count;

#define BLOCK(name) extern const struct block block_##name;
#include "workloads/blocks.def"
#undef BLOCK

/* Whether some step has the block in a layer of the model, or before or behind its layers. */
bool block_is_of(const struct block *block, const struct model *model);

/* The name of a model's block that lacks a way of a step; NULL: all blocks of the model have it. */
const char *block_lacking(const struct model *model, enum block_way way);

/* Writes one more block of a part, which begins with {.terms = ...}. */
void block_write(const struct block *block, const struct model *model, struct graph *graph);

/* Writes the blocks of a part, in their order. */
void block_write_part(const struct graph_terms *terms, const struct model *model,
                      enum block_part part, struct graph *ret_graph);
static inline void block_write_layer(const struct graph_terms *terms, const struct model *model,
                                     struct graph *ret_graph)
{
    block_write_part(terms, model, BLOCK_LAYER, ret_graph);
}

#endif
