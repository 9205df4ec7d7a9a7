/*
 * Latent attention as steps: see lower_latent.c. C are the columns of both latents and of K that
 * are turned, which no mesh axis splits.
 */
#include "sim/workload/listing.h"

static void gather_add(struct listing *listing, const char *name, const char *remark)
{
    if (listing->local->shards > 1)
        listing_step(listing, NULL, 0, remark, "%s = AllGather_X(%s)", name, name);
}

static void norm_add(struct listing *listing)
{
    listing_step(listing, NULL, 0, "", "In = Norm(X)");
    if (listing->local->tp > 1)
        listing_step(listing, NULL, 0, "on critical path", "In = AllGather_Y(In)");
}

static void up_add(struct listing *listing)
{
    const struct local *local = listing->local;
    const struct model_latent *latent = &local->plan->model.latent;
    listing_step(listing, NULL, 0, "", "Latents = Norm(C): %llu columns of Q, %llu of K and V",
                 (unsigned long long)latent->query_rank, (unsigned long long)latent->kv_rank);
    listing_step(listing, NULL, 0, "the turned columns of K for each head",
                 "Q, K, V = Latents *_C W_UQ, W_UKV: %llu heads of %llu, %llu, %llu",
                 (unsigned long long)local->heads, (unsigned long long)local->head_width,
                 (unsigned long long)local->head_width, (unsigned long long)local->value_width);
}

void listing_latent_forward(struct listing *listing)
{
    const struct local *local = listing->local;
    norm_add(listing);
    gather_add(listing, "W_attention", "can be done ahead of time");
    listing_step(listing, NULL, 0, local->tp > 1 ? "the same on all ranks of tp" : "",
                 "C = In *_D W_DQ, W_DKV: %llu columns", (unsigned long long)local->latent_columns);
    up_add(listing);
    listing_step(listing, NULL, 0, "flash: no T x S array in HBM", "A = Attention(Q, K, V)");
    listing_step(listing, NULL, 0, "", "Out = A *_NH W_O: %llu x %llu",
                 (unsigned long long)(local->heads * local->value_width),
                 (unsigned long long)local->width);
    if (local->tp > 1)
        listing_step(listing, NULL, 0, "on critical path", "Out = ReduceScatter_Y(Out)");
    listing_step(listing, NULL, 0, "with the next norm", "X += Out");
}

static void reduce_add(struct listing *listing, const char *name)
{
    const struct local *local = listing->local;
    const char *remark = "not on critical path, can be done async";
    if (local->shards > 1)
        listing_step(listing, NULL, 0, remark, "%s = ReduceScatter_X(%s)", name, name);
    if (local->replicas > 1)
        listing_step(listing, NULL, 0, remark, "%s reduced over %s", name, local->replica_name);
}

void listing_latent_backward(struct listing *listing)
{
    const struct local *local = listing->local;
    enum workload_remat const remat = local->plan->remat;
    if (remat == WORKLOAD_REMAT_NORMS || remat == WORKLOAD_REMAT_BIG_MATMULS) up_add(listing);
    if (remat == WORKLOAD_REMAT_BIG_MATMULS) {
        listing_step(listing, NULL, 0, "not kept by big_matmuls, as Q, K and V are not",
                     "A = Attention(Q, K, V) again");
    }
    if (local->tp > 1) listing_step(listing, NULL, 0, "on critical path", "dOut = AllGather_Y(dX)");
    gather_add(listing, "W_attention", "can be done ahead of time");
    listing_step(listing, NULL, 0, "", "dW_O, dA of Out");
    listing_step(listing, NULL, 0, "computes the scores again", "dQ, dK, dV = Attention'(dA)");
    listing_step(listing, NULL, 0, "of this chip's heads", "dW_UQ, dW_UKV, dLatents of Q, K, V");
    listing_step(listing, NULL, 0, "", "dC = Norm'(dLatents)");
    listing_step(listing, NULL, 0, local->tp > 1 ? "each a part of a sum over tp" : "",
                 "dW_DQ, dW_DKV, dIn of C");
    if (local->tp > 1)
        listing_step(listing, NULL, 0, "can be done async",
                     "dW_DQ, dW_DKV = AllReduce_Y(dW_DQ, dW_DKV)");
    reduce_add(listing, "dW_attention");
    if (local->tp > 1)
        listing_step(listing, NULL, 0, "on critical path", "dIn = ReduceScatter_Y(dIn)");
    listing_step(listing, NULL, 0, "needed for previous layers", "dX += Norm'(dIn)");
}
