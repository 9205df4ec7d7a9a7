/*
 * layout.h: how the arrays of a block lie on the mesh, and the six products of its forward and
 * backward pass. The lowering and the listing both read their collectives from here, so they
 * cannot disagree.
 *
 * A block is In·W_in -> Tmp, Tmp·W_out -> Out; attention is one as well, with Q, K and V as W_in's
 * results, W_O as W_out, and N and H in the place of F. The backward products are derived from the
 * forward ones: of left·right -> result, d right = left·d result and d left = d result·right, each
 * sharded as the array that it is the gradient of. So an AllGather becomes a ReduceScatter.
 */
#ifndef SIM_WORKLOAD_LAYOUT_H
#define SIM_WORKLOAD_LAYOUT_H

#include "sim/mesh/sharding.h"
#include "sim/workload/local.h"

enum { LAYOUT_IN_MAX = 3 };

struct layout_matrix {
    struct sharding weight;           /* As it is stored: "W_in[D_X, F_Y]" */
    struct sharding state;            /* As its gradient is wanted: "dW_in[D_X, F_Y]" */
    struct sharding left;             /* What it is multiplied with. */
    struct sharding right;            /* ... and what comes out: "Tmp[B_X, F_Y]" */
    struct sharding_product forward;  /* left · weight -> right */
    struct sharding_product d_weight; /* left · d right -> state */
    struct sharding_product d_left;   /* d right · weight -> d left */
};

struct layout_block {
    struct layout_matrix in[LAYOUT_IN_MAX];
    uint32_t in_count;
    struct layout_matrix out;
};

void layout_mlp(const struct local *local, struct layout_block *ret_layout);
void layout_attention(const struct local *local, struct layout_block *ret_layout);

/* The gradient's name: "dW_in", with the same split. */
struct sharding layout_gradient(const struct sharding *array);

#endif
