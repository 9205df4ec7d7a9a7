/*
 * layout.h: how the arrays of a block lie on the mesh, and the six products of its forward and
 * backward pass, from which the lowering reads its collectives.
 *
 * A block is In·W_in -> Tmp, Tmp·W_out -> Out; attention is one as well, with Q as W_in's result,
 * as K and V lie as it does, W_O as W_out, and N and H in the place of F. The backward products are
 * derived from the forward ones: of left·right -> result, d right = left·d result and d left =
 * d result·right, each sharded as the array that it is the gradient of. So an AllGather becomes a
 * ReduceScatter.
 */
#ifndef SIM_WORKLOAD_LAYOUT_H
#define SIM_WORKLOAD_LAYOUT_H

#include "sim/mesh/sharding.h"
#include "sim/workload/local.h"

struct layout_matrix {
    struct sharding weight;           /* As it is stored: "W_in[D_X, F_Y]" */
    struct sharding left;             /* What it is multiplied with. */
    struct sharding right;            /* ... and what comes out: "Tmp[B_X, F_Y]" */
    struct sharding_product forward;  /* left · weight -> right */
    struct sharding_product d_weight; /* left · d right -> d weight */
    struct sharding_product d_left;   /* d right · weight -> d left */
};

struct layout_block {
    struct layout_matrix in[1]; /* The first of those that read In: the others lie alike. */
    struct layout_matrix out;
};

void layout_mlp(const struct local *local, struct layout_block *ret_layout);
void layout_attention(const struct local *local, struct layout_block *ret_layout);

#endif
