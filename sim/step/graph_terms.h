/* graph_terms.h: the one way from a step's ranks and sizes (struct ranks) to graphs: which parts of
 * the model have one, and what each is written for. */
#ifndef SIM_STEP_GRAPH_TERMS_H
#define SIM_STEP_GRAPH_TERMS_H

#include "sim/graph/block.h"
#include "sim/graph/count.h"
#include "sim/step/ranks.h"

/* A part of the model that has a graph of its own. */
struct step_part {
    enum block_part part;
    uint64_t layer;   /* The first of a part's layers; the model's last layer, where the part is no
                         layer. */
    uint32_t kind;    /* LAYER_DENSE or LAYER_MOE, of a layer. */
    uint8_t attends;  /* Bits of ranks_layer_attends(), of a layer. */
    bool used_before; /* Of an end: another use of the embedding, or of the head, has left its
                         gradient in the same backward pass. So has any other use of the head than
                         the model's own, and of the embedding in modules any but the last one's. */
    uint64_t count;   /* Uses of the part in the whole model with its modules, in one microbatch. */
};

enum { STEP_PARTS_MAX = ATTENDS_KINDS * LAYER_KINDS + 5 };

/* All parts that the model has, layers first; returns how many. */
uint32_t step_parts(const struct ranks *ranks, struct step_part ret_parts[STEP_PARTS_MAX]);

/* How many of the `count` layers from `layer_first` on have the part for their graph. */
uint64_t step_part_layers(const struct ranks *ranks, const struct step_part *part,
                          uint64_t layer_first, uint64_t count);

/* `used_before` of the embedding itself. */
bool step_embedding_used(const struct ranks *ranks);

/* What a part's graph is written for. Of an end of a model, or of a module's own, no more is
 * repeated than norms, whatever remat is. */
void graph_terms_of_part(const struct ranks *ranks, const struct step_part *part,
                         struct graph_terms *ret_terms);

/* What counts of a graph know of the chip. */
struct graph_units step_units(const struct chip *chip);

#endif
