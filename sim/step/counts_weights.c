/* What a step asks for weights, whatever their blocks are: by the units that are gathered, reduced
 * and updated as one, and by shares of them. */
#include "sim/base/units.h"
#include "sim/base/vector.h"
#include "sim/step/counts_parts.h"
#include "sim/step/overheads.h"

enum { FP32 = 4 };

static double bytes_of(enum format format)
{
    return format_bits(format) / 8.0;
}

/* --- Sizes --- */

/* Elements of one of `ranks` that have equal shares: of experts, or of all others. What is gathered
 * as one lies flat, padded: FSDP pads its flat parameters, ZeRO its buckets. */
static double share_of(const struct local *local, uint32_t ranks, bool experts)
{
    struct padding_sums const sums = padding_sums(local, ranks, experts);
    return sums.units == 0 ? 0 : ((double)sums.elements + (double)sums.padding) / ranks;
}

/* Those whose optimizer state lies on this chip, of each copy of the model. */
static double state_elements(const struct local *local)
{
    return local->copies * (share_of(local, local->state_shards, /* experts= */ false) +
                            share_of(local, local->experts.state_shards, /* experts= */ true));
}

/* Of one matrix on both ends of a pipeline, what is added up. */
static double twins_share(const struct local *local)
{
    if (!local->twins) return 0;
    return 2 * (double)units_ceil_divide(local->vocabulary_elements, local->state_shards);
}

static double layer_elements(const struct local *local, uint32_t kind)
{
    const struct local_layer *layer = &local->layer[kind];
    double elements = 0;
    for (uint32_t u = 0; u < layer->unit_count; u++) elements += (double)layer->unit[u].elements;
    return elements;
}

/* --- Gathers and reductions --- */

static void gathered_add(const struct local *local, uint64_t times, double elements,
                         struct workload_counts *counts)
{
    struct workload_traffic *traffic = &counts->role[local->shard_role];
    traffic->gather_bytes += (double)times * elements * bytes_of(local->plan->formats.weights);
    traffic->gather_count += times;
}

static void scattered_add(const struct local *local, uint64_t times, uint64_t units,
                          double elements, struct workload_traffic *traffic)
{
    traffic->scatter_bytes += (double)times * elements * bytes_of(local->plan->formats.gradients);
    traffic->scatter_count += times * units;
}

/* Units that are gathered for a forward and for a backward pass, but for what is looked up, or
 * leaves its weights for the backward pass that follows at once. */
static void shards_gather(const struct local *local, struct workload_counts *counts)
{
    const struct workload_plan *plan = local->plan;
    uint64_t const microbatches = plan->accumulate;
    uint64_t heads = microbatches;
    for (uint32_t kind = 0; kind < LOCAL_KINDS; kind++)
        for (uint32_t u = 0; u < local->layer[kind].unit_count; u++)
            gathered_add(local, 2 * microbatches * local_layer_count(local, kind),
                         (double)local->layer[kind].unit[u].elements, counts);
    if (!local_is_llama(local)) return;
    /* Other passes of a pipeline may lie between the head's forward and backward pass. */
    if (local->pp > 1) heads += workload_head_returns(plan, local->pp);
    gathered_add(local, microbatches,
                 (double)(local->vocabulary_elements + local->position_elements), counts);
    gathered_add(local, heads, (double)(local->vocabulary_elements + local->head_vectors), counts);
}

/* Modules' own projection as a layer, and the embedding for each lookup. An embedding that both
 * ends use is reduced by the passes of each, unless once for all. */
static void predictors_count(const struct local *local, struct workload_counts *counts)
{
    double const vocabulary = (double)local->vocabulary_elements;
    uint64_t const microbatches = local->plan->accumulate;
    bool const shared = local->pp > 1 && local->ends_meet;
    if (local->shards > 1) {
        gathered_add(local, 2 * microbatches * local->predictors, (double)local->predictor_elements,
                     counts);
        gathered_add(local, microbatches * local->predictors, vocabulary, counts);
    }
    if (shared && local->shards > 1)
        scattered_add(local, microbatches, 1, vocabulary, &counts->role[local->shard_role]);
    if (shared && local->replicas > 1 && !local->reduce_last)
        scattered_add(local, microbatches, 1, vocabulary, &counts->role[MESH_DP]);
}

/* Gradients that several ranks have of the same weights, and, with a ZeRO stage, those weights. */
static void replicas_count(const struct local *local, bool experts,
                           struct workload_traffic *traffic)
{
    const struct workload_plan *plan = local->plan;
    uint64_t const times = local->reduce_last ? local->copies : plan->accumulate;
    uint64_t const units = padding_sums(local, local->shards, experts).units;
    double const elements = share_of(local, local->shards, experts);
    if (plan->zero == 0) {
        traffic->all_reduce_bytes += (double)times * elements * bytes_of(plan->formats.gradients);
        traffic->all_reduce_count += times * units;
        return;
    }
    scattered_add(local, times, units, elements, traffic);
    traffic->gather_bytes += local->copies * elements * bytes_of(plan->formats.weights);
    traffic->gather_count += local->copies * units;
}

static void shards_count(const struct local *local, struct workload_counts *counts)
{
    struct padding_sums const rest = padding_sums(local, 1, /* experts= */ false);
    struct padding_sums const experts = padding_sums(local, 1, /* experts= */ true);
    struct workload_traffic *traffic = &counts->role[local->shard_role];
    uint64_t const units = rest.units + experts.units;
    double const elements = (double)rest.elements + (double)experts.elements;
    /* Stages keep them whole: at least once. How often more depends on the order of passes. */
    uint64_t const times = local->reduce_once ? local->copies : local->plan->accumulate;
    if (!local->reduce_once) shards_gather(local, counts);
    scattered_add(local, times, units, elements, traffic);
    if (!local->reduce_once) return;
    traffic->gather_bytes += (double)times * elements * bytes_of(local->plan->formats.weights);
    traffic->gather_count += times * units;
}

static void update_count(const struct local *local, struct workload_counts *counts)
{
    const struct workload_formats *formats = &local->plan->formats;
    double const gradient = bytes_of(formats->gradients), state = state_elements(local);
    double const summed = local->copies > 1 ? state : 0, twins = twins_share(local);
    uint64_t const updates = local->plan->model.layers + local->predictors +
                             (local_is_llama(local) ? UINT64_C(2) - local->tied : 0);
    counts->vector_flop += twins + summed + VECTOR_ADAM * state;
    counts->hbm_bytes +=
        3 * twins * gradient + 3 * summed * gradient +
        state * (gradient + 4 * bytes_of(formats->optimizer) + 2 * bytes_of(formats->weights));
    counts->compute_count += (double)((local->twins ? 2 : 0) +
                                      (local->copies > 1 ? 4 : 1) * updates + local->twin_reads);
}

void counts_weights(const struct local *local, struct workload_counts *counts)
{
    update_count(local, counts);
    if (local->shards > 1) shards_count(local, counts);
    if (local->replicas > 1) replicas_count(local, false, &counts->role[MESH_DP]);
    if (local->experts.replicas > 1) replicas_count(local, true, &counts->experts);
    if (local->predictors != 0) predictors_count(local, counts);
}

/* --- Memory --- */

/* What is kept in the host's memory goes there and comes back once a step, or a microbatch: see
 * lower_offload.c. */
static void offload_count(const struct local *local, struct workload_counts *counts)
{
    const struct workload_plan *plan = local->plan;
    uint64_t const layers = plan->model.layers;
    double const all = (double)(layers + local->predictors);
    if (local_offloads_optimizer(local)) {
        double const elements = (double)padding_sums(local, 1, /* experts= */ false).elements;
        double const share = layer_elements(local, LOCAL_DENSE) / (elements > 0 ? elements : 1);
        counts->host_moment_bytes = counts->optimizer_bytes;
        counts->host_count +=
            2 * (layers + (local_is_llama(local) ? UINT64_C(2) - local->tied : 0));
        counts->optimizer_bytes *= share;
        if (plan->accumulate == 1) counts->gradient_bytes *= share;
    }
    if (local_offloads_activations(local)) {
        double const moved = counts->activation_bytes / all * (all - 1);
        counts->host_activation_bytes = plan->accumulate * moved;
        counts->host_count += 2 * plan->accumulate * (layers - 1);
        counts->activation_bytes *= 2 / all;
    }
}

/* What frameworks hold on top of what the book counts: overheads.h. */
static void overheads_add(const struct local *local, double kept, double gradients,
                          struct workload_counts *counts)
{
    double const weight = bytes_of(local->plan->formats.weights);
    bool const wide = weight >= FP32 || local_offloads_optimizer(local);
    uint64_t const layers[LOCAL_KINDS] = {local_layer_count(local, LOCAL_DENSE),
                                          local_layer_count(local, LOCAL_EXPERTS)};
    uint64_t resident[PROGRAM_MEMORY_COUNT] = {0};
    if (!overheads_count(local)) return;
    counts->gradient_bytes = local->copies * gradients * bytes_of(overheads_gradient_format(local));
    if (!wide)
        counts->master_bytes = overheads_of_fsdp(local) ? local->copies * kept * (FP32 - weight)
                                                        : state_elements(local) * FP32;
    overheads_chip(local, layers, resident);
    for (uint32_t kind = 0; kind < PROGRAM_MEMORY_COUNT; kind++)
        counts->fixed_bytes += (double)resident[kind];
}

void counts_memory(const struct local *local, struct workload_counts *counts)
{
    const struct workload_formats *formats = &local->plan->formats;
    double const kept =
        share_of(local, local->shards, false) + share_of(local, local->shards, true);
    double const gradients = share_of(local, local->gradient_shards, false) +
                             share_of(local, local->experts.gradient_shards, true);
    counts->parameter_bytes = local->copies * kept * bytes_of(formats->weights);
    counts->optimizer_bytes = 2 * state_elements(local) * bytes_of(formats->optimizer);
    counts->gradient_bytes = local->copies * gradients * bytes_of(formats->gradients);
    if (local->shards > 1)
        counts->gathered_bytes =
            layer_elements(local, local_last_kind(local)) * bytes_of(formats->weights);
    offload_count(local, counts);
    overheads_add(local, kept, gradients, counts);
}
