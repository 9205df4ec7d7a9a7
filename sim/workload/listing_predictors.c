/*
 * A module that predicts a further token as steps: see lower_predictors.c. Its layer is listed with
 * the model's, and its head as the model's own is: not at all but by name.
 */
#include "sim/workload/listing.h"

static const char critical[] = "on critical path";

static bool turns_tokens(const struct listing *listing)
{
    return listing->local->tp > 1 &&
           listing->local->plan->activations == WORKLOAD_ACTIVATIONS_TOKENS;
}

static void gather_add(struct listing *listing, const char *name)
{
    if (listing->local->shards > 1)
        listing_step(listing, NULL, 0, "can be done ahead of time", "%s = AllGather_X(%s)", name,
                     name);
}

static void tp_add(struct listing *listing, const char *what, const char *remark)
{
    if (listing->local->tp > 1) listing_step(listing, NULL, 0, remark, "%s", what);
}

static void pair_add(struct listing *listing, const char *remark)
{
    listing_step(listing, NULL, 0, remark, "In = Norm(X), Norm(E): %llu columns",
                 (unsigned long long)(2 * listing->local->width));
    tp_add(listing, "In = AllGather_Y(In)", critical);
}

static void forward_add(struct listing *listing)
{
    const struct local *local = listing->local;
    gather_add(listing, "W_embedding");
    listing_step(listing, NULL, 0, "of the token one place further on than the module before has",
                 "E = rows of W_embedding");
    tp_add(listing, "E = ReduceScatter_Y(E)", critical);
    gather_add(listing, "W_mtp");
    pair_add(listing, "");
    listing_step(listing, NULL, 0, "", "X = In *_2D W_mtp: %llu x %llu",
                 (unsigned long long)(2 * local->width),
                 (unsigned long long)(local->width / local->tp));
    if (turns_tokens(listing))
        listing_step(listing, NULL, 0, critical, "X = AllGather_Y(X), of which its tokens");
    listing_step(listing, NULL, 0, "as above", "X = a layer of X");
    listing_step(listing, NULL, 0, "with the model's own W_head", "Loss += Loss of Norm(X)");
}

static void backward_add(struct listing *listing)
{
    const struct local *local = listing->local;
    bool const splits = local->shards > 1;
    listing_step(listing, NULL, 0, "added to the head's own", "dW_head, dX of Loss");
    listing_step(listing, NULL, 0, "as above", "dX of a layer");
    if (turns_tokens(listing))
        listing_step(listing, NULL, 0, critical, "dX = AllGather_Y(dX), of which its columns");
    gather_add(listing, "W_mtp");
    if (local->plan->remat != WORKLOAD_REMAT_NONE) pair_add(listing, "not kept");
    listing_step(listing, NULL, 0, "", "dW_mtp, dIn of X");
    if (splits)
        listing_step(listing, NULL, 0, "not on critical path, can be done async",
                     "dW_mtp = ReduceScatter_X(dW_mtp)");
    if (local->replicas > 1)
        listing_step(listing, NULL, 0, "not on critical path, can be done async",
                     "dW_mtp reduced over %s", local->replica_name);
    tp_add(listing, "dIn = ReduceScatter_Y(dIn)", critical);
    listing_step(listing, NULL, 0, "added to what the model's own head gives",
                 "dE, dX += Norm'(dIn)");
    tp_add(listing, "dE = AllGather_Y(dE)", "can be done async");
    listing_step(listing, NULL, 0,
                 local->twin_reads
                     ? "of a copy, which adds to the first stage's once all are reduced"
                     : "with the embedding's own",
                 "dW_embedding += rows dE");
}

void listing_predictors(struct listing *listing)
{
    const struct local *local = listing->local;
    if (local->predictors == 0) return;
    listing->step = 0;
    text_add(listing->text,
             "\nMulti-token prediction, each of %llu module%s behind the last layer: forward\n",
             (unsigned long long)local->predictors, local->predictors == 1 ? "" : "s");
    forward_add(listing);
    listing->step = 0;
    text_add(listing->text, "\nMulti-token prediction: backward\n");
    backward_add(listing);
}
