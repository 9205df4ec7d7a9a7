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
static double share_of(const struct ranks *ranks, uint32_t rank_count, bool experts)
{
    struct padding_sums const sums = padding_sums(ranks, rank_count, experts);
    return sums.units == 0 ? 0 : ((double)sums.elements + (double)sums.padding) / rank_count;
}

/* Those whose optimizer state lies on this chip, of each copy of the model. */
static double state_elements(const struct ranks *ranks)
{
    return ranks->copies * (share_of(ranks, ranks->state_shards, /* experts= */ false) +
                            share_of(ranks, ranks->experts.state_shards, /* experts= */ true));
}

/* Of one matrix on both ends of a pipeline, what is added up. */
static double tied_share(const struct ranks *ranks)
{
    if (!ranks->tied_apart) return 0;
    return 2 * (double)units_ceil_divide(ranks->vocabulary_elements, ranks->state_shards);
}

static double layer_elements(const struct ranks *ranks, uint32_t kind)
{
    const struct ranks_layer *layer = &ranks->layer[kind];
    double elements = 0;
    for (uint32_t u = 0; u < layer->bucket_count; u++)
        elements += (double)layer->bucket[u].elements;
    return elements;
}

/* --- Gathers and reductions --- */

static void gathered_add(const struct ranks *ranks, uint64_t times, double elements,
                         struct workload_counts *counts)
{
    struct workload_traffic *traffic = &counts->role[ranks->shard_role];
    traffic->gather_bytes += (double)times * elements * bytes_of(ranks->plan->formats.weights);
    traffic->gather_count += times;
}

static void scattered_add(const struct ranks *ranks, uint64_t times, uint64_t units,
                          double elements, struct workload_traffic *traffic)
{
    traffic->scatter_bytes += (double)times * elements * bytes_of(ranks->plan->formats.gradients);
    traffic->scatter_count += times * units;
}

/* Units that are gathered for a forward and for a backward pass, if there is one, but for what is
 * looked up, or leaves its weights for the backward pass that follows at once. */
static void shards_gather(const struct ranks *ranks, uint32_t head_returns,
                          struct workload_counts *counts)
{
    const struct workload_plan *plan = ranks->plan;
    uint64_t const microbatches = plan->accumulate, passes = ranks_serves(ranks) ? 1 : 2;
    uint64_t heads = microbatches;
    for (uint32_t kind = 0; kind < LAYER_KINDS; kind++)
        for (uint32_t u = 0; u < ranks->layer[kind].bucket_count; u++)
            gathered_add(ranks, passes * microbatches * ranks_layer_count(ranks, kind),
                         (double)ranks->layer[kind].bucket[u].elements, counts);
    if (!ranks_is_decoder(ranks)) return;
    /* Other passes of a pipeline may lie between the head's forward and backward pass. */
    heads += head_returns;
    gathered_add(ranks, microbatches,
                 (double)(ranks->vocabulary_elements + ranks->position_elements), counts);
    gathered_add(ranks, heads, (double)(ranks->vocabulary_elements + ranks->head_vectors), counts);
}

/* Modules' own projection as a layer, and the embedding for each lookup. An embedding that both
 * ends use is reduced by the passes of each, unless once for all. */
static void mtp_count(const struct ranks *ranks, struct workload_counts *counts)
{
    double const vocabulary = (double)ranks->vocabulary_elements;
    uint64_t const microbatches = ranks->plan->accumulate;
    bool const shared = ranks->pp > 1 && ranks->ends_meet;
    if (ranks->shards > 1) {
        gathered_add(ranks, 2 * microbatches * ranks->mtp_modules, (double)ranks->mtp_elements,
                     counts);
        gathered_add(ranks, microbatches * ranks->mtp_modules, vocabulary, counts);
    }
    if (shared && ranks->shards > 1)
        scattered_add(ranks, microbatches, 1, vocabulary, &counts->role[ranks->shard_role]);
    if (shared && ranks->replicas > 1 && !ranks->reduce_last)
        scattered_add(ranks, microbatches, 1, vocabulary, &counts->role[MESH_DP]);
}

/* Gradients that several ranks have of the same weights, and, with a ZeRO stage, those weights. */
static void replicas_count(const struct ranks *ranks, bool experts,
                           struct workload_traffic *traffic)
{
    const struct workload_plan *plan = ranks->plan;
    uint64_t const times = ranks->reduce_last ? ranks->copies : plan->accumulate;
    uint64_t const units = padding_sums(ranks, ranks->shards, experts).units;
    double const elements = share_of(ranks, ranks->shards, experts);
    if (plan->zero == 0) {
        traffic->all_reduce_bytes += (double)times * elements * bytes_of(plan->formats.gradients);
        traffic->all_reduce_count += times * units;
        return;
    }
    scattered_add(ranks, times, units, elements, traffic);
    traffic->gather_bytes += ranks->copies * elements * bytes_of(plan->formats.weights);
    traffic->gather_count += ranks->copies * units;
}

static void shards_count(const struct ranks *ranks, uint32_t head_returns,
                         struct workload_counts *counts)
{
    struct padding_sums const rest = padding_sums(ranks, 1, /* experts= */ false);
    struct padding_sums const experts = padding_sums(ranks, 1, /* experts= */ true);
    struct workload_traffic *traffic = &counts->role[ranks->shard_role];
    uint64_t const units = rest.units + experts.units;
    double const elements = (double)rest.elements + (double)experts.elements;
    /* Stages keep them whole: at least once. How often more depends on the order of passes. */
    uint64_t const times = ranks->reduce_once ? ranks->copies : ranks->plan->accumulate;
    if (!ranks->reduce_once) shards_gather(ranks, head_returns, counts);
    scattered_add(ranks, times, units, elements, traffic);
    if (!ranks->reduce_once) return;
    traffic->gather_bytes += (double)times * elements * bytes_of(ranks->plan->formats.weights);
    traffic->gather_count += times * units;
}

static void update_count(const struct ranks *ranks, struct workload_counts *counts)
{
    const struct workload_formats *formats = &ranks->plan->formats;
    double const gradient = bytes_of(formats->gradients), state = state_elements(ranks);
    double const summed = ranks->copies > 1 ? state : 0, tied_apart = tied_share(ranks);
    uint64_t const updates = ranks->plan->model.layers + ranks->mtp_modules +
                             (ranks_is_decoder(ranks) ? UINT64_C(2) - ranks->tied : 0);
    counts->vector_flop += tied_apart + summed + VECTOR_ADAM * state;
    counts->hbm_bytes +=
        3 * tied_apart * gradient + 3 * summed * gradient +
        state * (gradient + 4 * bytes_of(formats->optimizer) + 2 * bytes_of(formats->weights));
    counts->compute_count += (double)((ranks->tied_apart ? 2 : 0) +
                                      (ranks->copies > 1 ? 4 : 1) * updates + ranks->tied_lookup);
}

enum status counts_weights(const struct ranks *ranks, struct workload_counts *counts,
                           struct error *reterr)
{
    bool const regathers = ranks->shards > 1 && !ranks->reduce_once && ranks_is_decoder(ranks);
    uint32_t head_returns = 0;
    if (ranks_serves(ranks)) {
        if (ranks->shards > 1) shards_gather(ranks, 0, counts);
        return STATUS_OK;
    }
    if (regathers) STATUS_TRY(workload_head_returns(ranks->plan, ranks->pp, &head_returns, reterr));
    update_count(ranks, counts);
    if (ranks->shards > 1) shards_count(ranks, head_returns, counts);
    if (ranks->replicas > 1) replicas_count(ranks, false, &counts->role[MESH_DP]);
    if (ranks->experts.replicas > 1) replicas_count(ranks, true, &counts->experts);
    if (ranks->mtp_modules != 0) mtp_count(ranks, counts);
    return STATUS_OK;
}

/* --- Memory --- */

/* What is kept in the host's memory goes there and comes back once a step, or a microbatch: see
 * lower_offload.c. */
static void offload_count(const struct ranks *ranks, struct workload_counts *counts)
{
    const struct workload_plan *plan = ranks->plan;
    uint64_t const layers = plan->model.layers;
    double const all = (double)(layers + ranks->mtp_modules);
    if (ranks_offloads_optimizer(ranks)) {
        double const elements = (double)padding_sums(ranks, 1, /* experts= */ false).elements;
        double const share = layer_elements(ranks, LAYER_DENSE) / (elements > 0 ? elements : 1);
        counts->host.moment_bytes = counts->memory.optimizer_bytes;
        counts->host.count +=
            2 * (layers + (ranks_is_decoder(ranks) ? UINT64_C(2) - ranks->tied : 0));
        counts->memory.optimizer_bytes *= share;
        if (plan->accumulate == 1) counts->memory.gradient_bytes *= share;
    }
    if (ranks_offloads_activations(ranks)) {
        double const moved = counts->memory.activation_bytes / all * (all - 1);
        counts->host.activation_bytes = plan->accumulate * moved;
        counts->host.count += 2 * plan->accumulate * (layers - 1);
        counts->memory.activation_bytes *= 2 / all;
    }
}

/* What frameworks hold on top of what the book counts: overheads.h. */
static void overheads_add(const struct ranks *ranks, double kept, double gradients,
                          struct workload_counts *counts)
{
    double const weight = bytes_of(ranks->plan->formats.weights);
    bool const wide = weight >= FP32 || ranks_offloads_optimizer(ranks);
    uint64_t const layers[LAYER_KINDS] = {ranks_layer_count(ranks, LAYER_DENSE),
                                          ranks_layer_count(ranks, LAYER_MOE)};
    uint64_t resident[PROGRAM_MEMORY_COUNT] = {0};
    if (!overheads_count(ranks)) return;
    counts->memory.gradient_bytes =
        ranks->copies * gradients * bytes_of(overheads_gradient_format(ranks));
    if (!wide)
        counts->memory.master_bytes = overheads_of_fsdp(ranks)
                                          ? ranks->copies * kept * (FP32 - weight)
                                          : state_elements(ranks) * FP32;
    overheads_chip(ranks, layers, resident);
    for (uint32_t kind = 0; kind < PROGRAM_MEMORY_COUNT; kind++)
        counts->memory.fixed_bytes += (double)resident[kind];
}

void counts_memory(const struct ranks *ranks, struct workload_counts *counts)
{
    const struct workload_formats *formats = &ranks->plan->formats;
    double const kept =
        share_of(ranks, ranks->shards, false) + share_of(ranks, ranks->shards, true);
    double const gradients = share_of(ranks, ranks->gradient_shards, false) +
                             share_of(ranks, ranks->experts.gradient_shards, true);
    counts->memory.parameter_bytes = ranks->copies * kept * bytes_of(formats->weights);
    if (ranks->shards > 1)
        counts->memory.gathered_bytes =
            layer_elements(ranks, ranks_last_kind(ranks)) * bytes_of(formats->weights);
    if (ranks_serves(ranks)) {
        counts->memory.cache_bytes = (double)inference_cache_bytes(ranks);
        return;
    }
    counts->memory.optimizer_bytes = 2 * state_elements(ranks) * bytes_of(formats->optimizer);
    counts->memory.gradient_bytes = ranks->copies * gradients * bytes_of(formats->gradients);
    offload_count(ranks, counts);
    overheads_add(ranks, kept, gradients, counts);
}
