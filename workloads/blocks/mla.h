/* mla.h: the latents of latent attention, which all its blocks begin with. */
#ifndef WORKLOADS_BLOCKS_MLA_H
#define WORKLOADS_BLOCKS_MLA_H

#include "sim/graph/graph.h"

struct model;

struct mla_latents {
    tensor lq, lkv; /* Of Q, and of K and V, normed. */
    tensor kr;      /* Columns of K that are rotated by position. */
    tensor q, qr;   /* Q where it has no latent, and its rotated columns where these are apart;
                       else GRAPH_NONE. */
};

/* Writes the norm of the input, Down and the norms of latents. `apart`: columns of Q that are
 * rotated by position are an array of their own. */
struct mla_latents mla_down(struct graph *graph, const struct model *model, bool apart);

/* Latents of prompts, and what is rotated of K, from all ranks of cp, which have parts of prompts.
 */
void mla_prompts_gather(struct graph *graph, const struct mla_latents *of, tensor ret_latents[2]);

/* Attention of prompts to one another as they lie in HBM, heads and all. `heads`: Q, K and V in one
 * array or two, and last R, the rotated columns of K for each head. */
tensor mla_prompts_attend(struct graph *graph, const struct model *model, uint8_t count,
                          const tensor *heads);

/* Writes latents behind those of earlier tokens in the cache: [rows, latent and rotated columns].
 */
tensor mla_append(struct graph *graph, const struct model *model, const struct mla_latents *of);

#endif
