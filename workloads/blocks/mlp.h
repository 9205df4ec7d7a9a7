/* mlp.h: an MLP, bare or gated, as a layer has it, and of shared experts. */
#ifndef WORKLOADS_BLOCKS_MLP_H
#define WORKLOADS_BLOCKS_MLP_H

#include "sim/graph/write.h"

/* An MLP's tensors in the notation, and names of its ops. */
struct mlp_texts {
    const char *weight_in; /* The first matrix of an MLP without a gate. */
    const char *weight_gate, *gate, *weight_up, *up;
    const char *tmp;       /* What is multiplied with W_out. */
    const char *activated; /* Of a bare one's Tmp, where its function has a kernel of its own. */
    const char *weight_normed, *normed; /* Of a norm before W_out; NULL: none lies there. */
    const char *weight_out, *out;
    const char *name_gated, *name_bare, *name_out;
    const char *d_tmp_bare, *d_weight_bare; /* Gradients of a bare one's Tmp and W_in. */
    const char *cast_in, *cast_tmp;         /* Names of casts to fp8. */
    bool weighted; /* Each row is multiplied by its router's weight in between. */
};

/* Of the MLP that all tokens of a layer meet. */
extern const struct mlp_texts mlp_texts_dense;

/* What a model says of an MLP. */
struct mlp_shape {
    bool gated;  /* Three matrices. Else two. */
    bool biased; /* Each column of its matrices has a bias. */
};

/* What the in-projection of an MLP gives: Gate and Up, or one array. */
struct mlp_hidden {
    tensor of[2];
    uint8_t count;
};

/* The in-projection, as products of the last op. mlp_activated(): what is multiplied with W_out,
 * computed from the in-projection, and normed where the model norms it. */
struct mlp_hidden mlp_products(struct graph *graph, const struct mlp_texts *texts,
                               struct mlp_shape shape, tensor in);
tensor mlp_activated(struct graph *graph, const struct mlp_texts *texts,
                     const struct mlp_hidden *hidden);

/* From its input to its result. */
tensor mlp_write(struct graph *graph, const struct mlp_texts *texts, struct mlp_shape shape,
                 tensor in);

#endif
