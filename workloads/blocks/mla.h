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

/* Writes latents behind those of earlier tokens in the cache: [rows, latent and rotated columns].
 */
tensor mla_append(struct graph *graph, const struct model *model, const struct mla_latents *of);

#endif
