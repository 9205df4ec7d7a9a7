/*
 * The experts of a layer as steps: see lower_experts.h. What ep splits is said in words, for the
 * letters are those of tp and of the ranks that the batch and the parameters are split over.
 */
#include "sim/workload/listing.h"

static void way_there_add(struct listing *listing, const char *what, const char *rows)
{
    const struct local_experts *experts = &listing->local->experts;
    const struct workload_formats *formats = &listing->local->plan->formats;
    if (formats->dispatch != formats->activations)
        listing_step(listing, NULL, 0, "the copy that travels", "%s in %s = %s", what,
                     format_name(formats->dispatch), what);
    if (experts->ranks > 1)
        listing_step(listing, NULL, 0, "on critical path: once to each rank that has an expert",
                     "%s = AllToAll(%s) over the %u ranks of ep: %llu tokens come", rows, what,
                     experts->ranks, (unsigned long long)experts->arrivals);
    if (listing->local->tp > 1)
        listing_step(listing, NULL, 0, "on critical path", "%s = AllGather_Y(%s)", rows, rows);
}

static void way_back_add(struct listing *listing, const char *what, const char *rows)
{
    const struct local_experts *experts = &listing->local->experts;
    if (listing->local->tp > 1)
        listing_step(listing, NULL, 0, "on critical path", "%s = ReduceScatter_Y(%s)", rows, rows);
    if (experts->ranks > 1)
        listing_step(listing, NULL, 0, "on critical path", "%s = AllToAll(%s) over ep, back", what,
                     rows);
}

static void weights_add(struct listing *listing, const char *names)
{
    if (listing->local->shards > 1)
        listing_step(listing, NULL, 0, "can be done ahead of time", "%s = AllGather_X(%s)", names,
                     names);
}

void listing_experts_forward(struct listing *listing)
{
    const struct local *local = listing->local;
    const struct local_experts *experts = &local->experts;
    const struct model_experts *model = &local->plan->model.experts;
    listing_step(listing, NULL, 0, "", "In = Norm(X)");
    weights_add(listing, "W_router");
    listing_step(listing, NULL, 0, "", "Logits = In *_D W_router: %llu tokens, %llu experts",
                 (unsigned long long)experts->gate_rows, (unsigned long long)model->count);
    if (local_sums_logits(local))
        listing_step(listing, NULL, 0, "on critical path", "Logits = AllReduce_Y(Logits)");
    listing_step(listing, NULL, 0, "", "Gates = the best %llu of each token",
                 (unsigned long long)model->top_k);
    if (experts->shared_columns != 0) {
        weights_add(listing, "W_shared");
        listing_step(listing, NULL, 0, "while tokens travel",
                     "Shared = an MLP of In, %llu columns a chip",
                     (unsigned long long)experts->shared_columns);
    }
    way_there_add(listing, "In", "Rows");
    listing_step(listing, NULL, 0, "", "Sorted = Rows by expert: %llu experts, %llu rows each",
                 (unsigned long long)experts->count, (unsigned long long)experts->rows);
    weights_add(listing, "W_experts");
    listing_step(listing, NULL, 0, "each expert by itself",
                 "Gate, Up = Sorted *_D W_gate, W_up: %llu columns a chip",
                 (unsigned long long)experts->columns);
    listing_step(listing, NULL, 0, "with the gate of each row",
                 "Outputs = (silu(Gate) * Up) *_F W_out");
    listing_step(listing, NULL, 0, "of a token's experts on this chip", "Rows = sums of Outputs");
    way_back_add(listing, "Outputs", "Rows");
    listing_step(listing, NULL, 0, "with the next norm", "X += sums of Outputs%s",
                 experts->shared_columns != 0 ? " and Shared" : "");
}

static void gradient_add(struct listing *listing, const char *name, bool experts)
{
    const struct local *local = listing->local;
    if (local->shards > 1)
        listing_step(listing, NULL, 0, "not on critical path, can be done async",
                     "%s = ReduceScatter_X(%s)", name, name);
    if (experts ? local->experts.replicas > 1 : local->replicas > 1)
        listing_step(listing, NULL, 0, "not on critical path, can be done async",
                     "%s reduced over %s", name,
                     experts ? local->experts.replica_name : local->replica_name);
}

void listing_experts_backward(struct listing *listing)
{
    const struct local_experts *experts = &listing->local->experts;
    if (listing->local->plan->remat == WORKLOAD_REMAT_BIG_MATMULS)
        listing_step(listing, NULL, 0, "not kept by big_matmuls", "In, Rows, Sorted again");
    if (listing->local->plan->remat == WORKLOAD_REMAT_NORMS)
        listing_step(listing, NULL, 0, "not kept by norms", "In again");
    way_there_add(listing, "dX", "dRows");
    if (experts->shared_columns != 0)
        listing_step(listing, NULL, 0, "while gradients travel", "dW_shared, dIn of Shared");
    listing_step(listing, NULL, 0, "", "dOutputs = dRows by expert");
    listing_step(listing, NULL, 0, "and the gates' gradients", "dW_out, dGate, dUp of Outputs");
    listing_step(listing, NULL, 0, "", "dW_gate, dW_up, dSorted of Gate, Up");
    gradient_add(listing, "dW_experts", true);
    listing_step(listing, NULL, 0, "of a token's experts on this chip", "dRows = sums of dSorted");
    way_back_add(listing, "dIn", "dRows");
    listing_step(listing, NULL, 0, "", "dW_router, dIn of Logits");
    gradient_add(listing, "dW_router,shared", false);
    listing_step(listing, NULL, 0, "needed for previous layers", "dX += Norm'(sums of dIn)");
}
