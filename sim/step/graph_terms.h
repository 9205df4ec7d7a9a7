/* graph_terms.h: the one way from a step's ranks and sizes (struct ranks) to graphs: which parts of
 * the model have one, what each is written for, and the graph with all that follows from it. */
#ifndef SIM_STEP_GRAPH_TERMS_H
#define SIM_STEP_GRAPH_TERMS_H

#include "sim/graph/block.h"
#include "sim/graph/count.h"
#include "sim/graph/derive.h"
#include "sim/step/ranks.h"

/* A part of the model that has a graph of its own. */
struct step_part {
    enum block_part part;
    uint32_t kind;    /* Of a layer, its kind by the place in ranks->kinds. */
    bool used_before; /* Of an end: another use of the embedding, or of the head, has left its
                         gradient in the same backward pass. So has any other use of the head than
                         the model's own, and of the embedding in modules any but the last one's. */
    uint64_t count;   /* Uses of the part in the whole model with its modules, in one microbatch. */
};

enum { STEP_PARTS_MAX = LAYER_KINDS_MAX + 5 };

/* All parts that the model has, layers first; returns how many. */
uint32_t step_parts(const struct ranks *ranks, struct step_part ret_parts[STEP_PARTS_MAX]);

/* How many of the `count` layers from `first` on are of each kind. */
struct step_layers {
    uint32_t of[LAYER_KINDS_MAX];
};
struct step_layers step_layers(const struct ranks *ranks, uint64_t first, uint64_t count);

/* `used_before` of the embedding itself. */
bool step_embedding_used(const struct ranks *ranks);

/* What a part's graph is written for. Of an end of a model, or of a module's own, no more is
 * repeated than norms, whatever remat is. */
void graph_terms_of_part(const struct ranks *ranks, const struct step_part *part,
                         struct graph_terms *ret_terms);

/* A part's graph. It points to itself, so it is not to be copied. */
struct step_graph {
    struct step_part part;
    struct graph_terms terms;
    struct graph_derived derived;
};

/* Derives the graph of a part. */
void step_graph_derive(const struct ranks *ranks, const struct step_part *part,
                       struct step_graph *ret_graph);

/* The graph of a part that is kept with the ranks; NULL: it is not. */
const struct graph_derived *step_graph_kept(const struct ranks *ranks,
                                            const struct step_part *part);

/* The graph of a part: the kept one, or one that is derived in `room`, and then lives as long. */
const struct graph_derived *step_graph(const struct ranks *ranks, const struct step_part *part,
                                       struct step_graph *room);

/* What counts of a graph know of the chip. */
struct graph_units step_units(const struct chip *chip);

#endif
