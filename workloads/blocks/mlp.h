/* mlp.h: an MLP, bare or gated, as a layer has it, and of shared experts. */
#ifndef WORKLOADS_BLOCKS_MLP_H
#define WORKLOADS_BLOCKS_MLP_H

#include "sim/graph/write.h"

/* Its tensors in the notation, and its ops' names. */
struct mlp_texts {
    const char *weight_in; /* The first matrix of an MLP without a gate. */
    const char *weight_gate, *gate, *weight_up, *up;
    const char *tmp; /* What is multiplied with W_out. */
    const char *weight_out, *out;
    const char *name_gated, *name_bare, *name_out;
    const char *d_tmp_bare, *d_weight_bare; /* Gradients of a bare one's Tmp and W_in. */
    bool weighted; /* Each row is multiplied by its router's weight in between. */
};

/* From its input to its result. */
tensor mlp_write(struct graph *graph, const struct mlp_texts *texts, bool gated, tensor in);

#endif
