/*
 * overlap.h: which products of a layer run while its collectives over tp travel, by what its steps
 * read and write. It knows no streams. In a block whose products couple with collectives chunk by
 * chunk, a product runs meanwhile if it reads what is gathered, or gives what is reduced. In any
 * other block a product runs meanwhile if it stands between.
 */
#ifndef SIM_GRAPH_OVERLAP_H
#define SIM_GRAPH_OVERLAP_H

#include "sim/graph/steps.h"

/* Rows of struct graph_overlaps. Once there are GRAPH_OVERLAPS_SIZES rows, collectives of a known
 * array join its last row, whatever their size: passes of inference have many sizes. */
enum { GRAPH_OVERLAPS_MAX = 32, GRAPH_OVERLAPS_SIZES = 24 };

/* Collectives of one array, in all passes in which it has one size. Where there are too many sizes,
 * the row has collectives of several, and their mean size. */
struct graph_overlap {
    struct graph_label label; /* "attention.In" */
    const struct block *block;
    tensor of;
    bool gradient; /* The gradient of the tensor is moved. */
    enum collective_kind kind;
    uint64_t count;
    uint64_t bytes; /* Bytes of one collective. */
    double flop;    /* FLOP of the matmuls that run during all these collectives together. */
};

struct graph_overlaps {
    struct graph_overlap of[GRAPH_OVERLAPS_MAX]; /* By block; forward, then backward. */
    uint32_t count;
};

void graph_overlaps(const struct graph_sharded *sharded, const struct graph_backward *backward,
                    const struct graph_kept *kept, struct graph_overlaps *ret_overlaps);

/* Adds a collective `times` over: to the row of the same array and size, or as a new row behind all
 * others. */
void graph_overlap_add(struct graph_overlaps *overlaps, const struct graph_overlap *overlap,
                       uint64_t times);

#endif
