/*
 * layer_kinds.h: what a layer of a model is, as far as layers differ, and which layers are alike. A
 * feature that only some layers have is a row of LAYER_FLAGS. Graphs, buckets, templates and counts
 * are made for each kind, and nothing else says which layers are alike.
 */
#ifndef SIM_MODEL_LAYER_KINDS_H
#define SIM_MODEL_LAYER_KINDS_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/status.h"

struct arena;
struct model;

/*
 * FLAG(name, text): what some layers of a model have, and what is said of such a layer. A reader of
 * config.json sets the model's array of the flag; a block asks `terms->layer`.
 */
#define LAYER_FLAGS(FLAG)                                                                          \
    /* The layer has no K and V, and attends to the cache of the nearest layer before that has. */ \
    FLAG(borrows, ", with keys of another")                                                        \
    /* A query has a window of keys, and some sequence has more. */                                \
    FLAG(windowed, ", with windows")

#define LAYER_KIND_FLAG(name, text) bool name;
#define LAYER_ARRAY(name, text) bool *name;

/* Flags alone, so that layers are alike where all bytes are equal. Kinds are ordered by the first
 * flag in which they differ. */
struct layer_kind {
    bool experts; /* A router and experts are in the MLP's place. */
    LAYER_FLAGS(LAYER_KIND_FLAG)
    bool keeps;   /* The step keeps all that the backward pass reads, though it repeats layers. */
    bool grouped; /* What is kept comes from a repetition with the next layers of a group. */
};

/* Layers of a model that a step keeps, a bit each. */
enum { LAYER_SET_LAYERS = 30720 };
struct layer_set {
    bool any;
    uint8_t bits[LAYER_SET_LAYERS / 8];
};

static inline void layer_set_add(struct layer_set *set, uint64_t layer)
{
    set->any = true;
    set->bits[layer / 8] |= (uint8_t)(1U << layer % 8);
}

static inline bool layer_set_has(const struct layer_set *set, uint64_t layer)
{
    return set->any && (set->bits[layer / 8] >> layer % 8 & 1) != 0;
}

/* [layer] of each flag; NULL: no layer has it. */
struct layer_arrays {
    LAYER_FLAGS(LAYER_ARRAY)
};

enum { LAYER_KINDS_MAX = 6 };

/* The kinds that a model has, in their order. */
struct layer_kinds {
    uint64_t keys;         /* Keys of the longest sequence. */
    struct layer_set kept; /* Layers that a step keeps. */
    bool grouped;          /* Kept layers, and the next layer that is not, are repeated together. */
    uint32_t count;
    uint64_t changes; /* Layers of another kind than the layer before them. */
    struct layer_kind kind[LAYER_KINDS_MAX];
    uint64_t layers[LAYER_KINDS_MAX]; /* [kind]: how many layers are of it. */
    uint64_t first[LAYER_KINDS_MAX];  /* [kind]: the first of these layers. */
};

/* Arrays in which no layer has a flag, for a reader that sets some. */
enum status layer_arrays_make(struct arena *arena, uint64_t layers, struct layer_arrays *ret_arrays,
                              struct error *reterr);

/* Takes away arrays in which no layer has the flag. */
void layer_arrays_trim(struct layer_arrays *arrays, uint64_t layers);

bool layer_kinds_equal(struct layer_kind one, struct layer_kind other);

/* `keys`: tokens of the longest sequence. 0: no window shortens anything; UINT64_MAX: each does. */
struct layer_kind model_layer_kind(const struct model *model, uint64_t layer, uint64_t keys);

/* Refused: a model with more kinds than there is room for. `where`: the place of the model. */
enum status model_layer_kinds_check(const struct model *model, const char *where,
                                    struct error *reterr);

/* Of a model that is not refused. */
struct layer_kinds model_layer_kinds(const struct model *model, uint64_t keys);

/* Kinds of a model of which a step keeps the layers `kinds->kept`; sets all else. Refused: more
 * kinds than there is room for. `where`: the place of the key that says which layers are kept. */
enum status layer_kinds_find(const struct model *model, uint64_t keys, const char *where,
                             struct layer_kinds *kinds, struct error *reterr);

/* The kind of a layer, by its place among the kinds of the model. */
uint32_t layer_kinds_at(const struct layer_kinds *kinds, const struct model *model, uint64_t layer);

/* What is said of layers of a kind behind their number: ", with experts"; of plain layers "". */
#define LAYER_EXPERTS_TEXT ", with experts"
#define LAYER_KEPT_TEXT ", not recomputed"
#define LAYER_GROUPED_TEXT ", recomputed ahead of its group"
#define LAYER_TEXT(name, text) text
struct layer_kind_text {
    char text[sizeof(LAYER_EXPERTS_TEXT LAYER_FLAGS(LAYER_TEXT) LAYER_GROUPED_TEXT)];
};
struct layer_kind_text layer_kind_text(struct layer_kind kind);

#endif
