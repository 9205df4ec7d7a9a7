/* What a step asks for weights, whatever their blocks are: by the buckets that are gathered,
 * reduced and updated as one, and by shares of them. */
#include "sim/base/units.h"
#include "sim/graph/derive.h"
#include "sim/graph/remat.h"
#include "sim/schedule/schedule.h"
#include "sim/step/counts_parts.h"
#include "sim/step/graph_terms.h"
#include "sim/step/overheads.h"
#include "sim/step/update.h"

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
    return sums.buckets == 0 ? 0 : ((double)sums.elements + (double)sums.padding) / rank_count;
}

/* Those whose optimizer state lies on this chip, of each copy of the model. */
static double state_elements(const struct ranks *ranks)
{
    return ranks->model_replicas *
           (share_of(ranks, ranks->replicas.state_shards, /* experts= */ false) +
            share_of(ranks, ranks->experts.replicas.state_shards, /* experts= */ true));
}

/* Of one matrix on both ends of a pipeline, what is added up. */
static double tied_share(const struct ranks *ranks)
{
    if (!ranks->tie.apart) return 0;
    return 2 * (double)units_ceil_divide(ranks->end[BLOCK_EMBEDDING].matrix,
                                         ranks->replicas.state_shards);
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

/* Weights or gradients of a number of buckets, `times` over. */
static void moved_add(struct workload_traffic *traffic, enum collective_kind kind,
                      enum format format, uint64_t times, uint64_t buckets, double elements)
{
    bool const weights = kind == COLLECTIVE_ALL_GATHER;
    double const bytes = weights ? format_stored_number_bytes(format) : bytes_of(format);
    counts_traffic_add(traffic, kind, times * buckets, (double)times * elements * bytes);
}

/* Each pass gathers what it reads, but for a backward pass that finds the head's weights there;
 * other passes of a pipeline may lie before that. A lookup has nothing to read in its own. */
static void passes_gather(const struct ranks *ranks, uint32_t head_returns,
                          struct workload_traffic *traffic)
{
    uint64_t const microbatches = workload_microbatches(ranks->plan);
    uint64_t const modules = ranks->mtp.modules;
    uint64_t const heads =
        ranks_serves(ranks) ? inference_head_passes(ranks->plan) : microbatches + head_returns;
    uint64_t const passes = ranks_serves(ranks) ? 1 : 2;
    bool const ends = ranks_is_decoder(ranks);
    struct {
        uint64_t times;
        const struct bucket *bucket;
    } const of_ends[] = {
        {ends ? microbatches * (1 + modules) : 0, &ranks->end[BLOCK_EMBEDDING].read},
        {ends ? heads : 0, &ranks->end[BLOCK_HEAD].read},
        {2 * microbatches * modules, &ranks->end[BLOCK_MTP].read}};
    for (uint32_t kind = 0; kind < ranks->kinds.count; kind++)
        for (uint32_t u = 0; u < ranks->layer[kind].bucket_count; u++)
            moved_add(traffic, COLLECTIVE_ALL_GATHER, ranks->layer[kind].bucket[u].format,
                      (passes + ranks->kinds.kind[kind].grouped) * microbatches *
                          ranks_layer_count(ranks, kind),
                      1, (double)ranks->layer[kind].bucket[u].elements);
    for (uint32_t i = 0; i < sizeof of_ends / sizeof *of_ends; i++)
        moved_add(traffic, COLLECTIVE_ALL_GATHER, of_ends[i].bucket->format, of_ends[i].times, 1,
                  (double)of_ends[i].bucket->elements);
}

/* Gradients that several ranks have of the same weights, and, with a ZeRO stage, those weights. */
static void replicas_count(const struct ranks *ranks, bool experts, uint64_t times,
                           struct workload_traffic *traffic)
{
    const struct workload_plan *plan = ranks->plan;
    uint64_t const buckets = padding_sums(ranks, ranks->shards, experts).buckets;
    double const elements = share_of(ranks, ranks->shards, experts);
    moved_add(traffic, plan->zero == 0 ? COLLECTIVE_ALL_REDUCE : COLLECTIVE_REDUCE_SCATTER,
              plan->formats.gradients, times, buckets, elements);
    if (plan->zero != 0)
        moved_add(traffic, COLLECTIVE_ALL_GATHER, plan->formats.weights, ranks->model_replicas,
                  buckets, elements);
}

/* Where stages keep them whole: at least once. How often more depends on the order of passes. */
static void shards_count(const struct ranks *ranks, bool gathers_once, uint32_t head_returns,
                         struct workload_traffic *traffic)
{
    const struct graph_formats *formats = &ranks->plan->formats;
    struct padding_sums const rest = padding_sums(ranks, 1, /* experts= */ false);
    struct padding_sums const experts = padding_sums(ranks, 1, /* experts= */ true);
    uint64_t const buckets = rest.buckets + experts.buckets;
    double const elements = (double)rest.elements + (double)experts.elements;
    moved_add(traffic, COLLECTIVE_REDUCE_SCATTER, formats->gradients,
              ranks->gradients.once ? ranks->model_replicas : ranks->plan->accumulate, buckets,
              elements);
    if (gathers_once)
        moved_add(traffic, COLLECTIVE_ALL_GATHER, formats->weights, ranks->model_replicas, buckets,
                  elements);
    else
        passes_gather(ranks, head_returns, traffic);
}

/* An embedding that modules on the same rank look up too is reduced by the passes of both ends,
 * unless once for all. */
static void lookups_reduce(const struct ranks *ranks, struct workload_traffic *traffic)
{
    bool const shared = ranks->mtp.modules != 0 && ranks->pp > 1 && ranks->tie.meets;
    moved_add(traffic, COLLECTIVE_REDUCE_SCATTER, ranks->plan->formats.gradients,
              shared ? ranks->plan->accumulate : 0, 1,
              (double)ranks->end[BLOCK_EMBEDDING].bucket.elements);
}

/* VMEM of ops of the vector units, each of whose numbers has the same work. */
static void vmem_add(const struct ranks *ranks, double flop, double bytes,
                     struct workload_scarce *scarce)
{
    const struct chip *chip = &ranks->machine->chip;
    double const meanwhile =
        flop * (double)chip->vmem_bytes_per_s / (double)chip->vector_flop_per_s;
    scarce->vmem_bytes += bytes;
    scarce->vmem_longer_bytes += bytes > meanwhile ? bytes - meanwhile : 0;
}

/* A block of weights has whole bytes in any format. */
static void update_count(const struct ranks *ranks, struct workload_counts *counts)
{
    double const gradient = bytes_of(ranks->plan->formats.gradients);
    double const state = state_elements(ranks), blocks = state / FORMAT_BLOCK;
    double const all =
        ranks->model_replicas * (share_of(ranks, ranks->shards, /* experts= */ false) +
                                 share_of(ranks, ranks->shards, /* experts= */ true));
    struct work const block = update_work(ranks, FORMAT_BLOCK, 0);
    struct work const buffer = update_work(ranks, 0, FORMAT_BLOCK);
    double const flop = blocks * (double)block.vector_flop;
    double const bytes =
        blocks * (double)(block.hbm_read_bytes + block.hbm_write_bytes) +
        all / FORMAT_BLOCK * (double)(buffer.hbm_read_bytes + buffer.hbm_write_bytes);
    struct work const norm =
        ranks_clips(ranks) ? update_norm_work(ranks, FORMAT_BLOCK) : (struct work){.kernel = 0};
    double const norm_flop = blocks * (double)norm.vector_flop;
    double const norm_bytes = blocks * (double)norm.hbm_read_bytes;
    double const norms = ranks_clips(ranks) ? ranks->pp : 0;
    double const added = tied_share(ranks) + (ranks->model_replicas > 1 ? state : 0);
    uint64_t const updates = ranks->plan->model.layers + ranks->mtp.modules +
                             (ranks_is_decoder(ranks) ? UINT64_C(2) - ranks->tie.here : 0);
    if (ranks->model_replicas > 1) {
        counts->stage.copy_bytes = state * gradient / ranks->pp;
        counts->stage.copy_count = (double)(ranks->model_replicas * updates);
    }
    counts->vector_flop += added + flop + norm_flop;
    counts->hbm_bytes += 3 * added * gradient + bytes + norm_bytes;
    if (norm.kernel != WORK_KERNEL_NONE) counts->ops.measured += norms;
    counts->ops.count += norms;
    vmem_add(ranks, norm_flop, norm_bytes, &counts->scarce);
    vmem_add(ranks, added, 3 * added * gradient, &counts->scarce);
    vmem_add(ranks, flop, bytes, &counts->scarce);
    if (block.kernel != WORK_KERNEL_NONE) counts->ops.measured += (double)updates;
    counts->ops.count +=
        (double)((ranks->tie.apart ? 2 : 0) + (ranks->model_replicas > 1 ? 4 : 1) * updates +
                 ranks->tie.lookup);
}

void counts_weights(const struct ranks *ranks, uint32_t head_returns,
                    struct workload_counts *counts)
{
    const struct workload_plan *plan = ranks->plan;
    bool const once = ranks_gathers_once(ranks);
    struct workload_traffic *shards = &counts->role[ranks->shard_role];
    uint32_t const last = ranks->gradients.last ? ranks->model_replicas : plan->accumulate;
    counts->weights.gathers = once ? 1 : workload_microbatches(plan);
    counts->weights.reductions =
        plan->zero <= 1 || ranks->gradients.once ? ranks->model_replicas : plan->accumulate;
    if (ranks_serves(ranks)) {
        if (ranks->shards > 1) passes_gather(ranks, 0, shards);
        return;
    }
    update_count(ranks, counts);
    if (ranks->shards > 1) {
        shards_count(ranks, once, head_returns, shards);
        lookups_reduce(ranks, shards);
    }
    if (ranks->replicas.count > 1) {
        replicas_count(ranks, false, last, &counts->role[MESH_DP]);
        if (!ranks->gradients.last) lookups_reduce(ranks, &counts->role[MESH_DP]);
    }
    if (ranks->experts.replicas.count > 1) replicas_count(ranks, true, last, &counts->experts);
}

/* --- Memory --- */

/* How much of the elements that are split over ranks, of the whole model, the last layer has. Ranks
 * split experts' elements among others than all the rest. */
static double last_layer_share(const struct ranks *ranks, bool of_state)
{
    const struct ranks_layer *layer = &ranks->layer[ranks_last_kind(ranks)];
    double own = 0, all = 0;
    for (uint32_t experts = 0; experts < 2; experts++) {
        const struct replicas *replicas = ranks_replicas(ranks, experts != 0);
        double const shards = of_state ? replicas->state_shards : replicas->gradient_shards;
        double const elements = (double)padding_sums(ranks, 1, experts != 0).elements;
        if (elements == 0) continue;
        all += elements / shards;
        for (uint32_t u = 0; u < layer->bucket_count; u++)
            if (layer->bucket[u].experts == (experts != 0))
                own += (double)layer->bucket[u].elements / shards;
    }
    return all > 0 ? own / all : 0;
}

/* Bytes of a layer of a kind that the host keeps: all that the layer keeps, or what lists name. */
static double offloaded_bytes(const struct ranks *ranks, uint32_t kind)
{
    struct step_part const part = {.part = BLOCK_LAYER, .kind = kind};
    struct step_graph room;
    const struct graph_derived *derived = step_graph(ranks, &part, &room);
    return (double)(ranks_offloads_kept(ranks) ? graph_kept_bytes : graph_offloaded_bytes)(
        &derived->sharded, &derived->kept);
}

/* Activations of all layers but the last go; the layer before the last still has its own when the
 * last one has. */
static void activations_offload(const struct ranks *ranks, struct workload_counts *counts)
{
    uint32_t const accumulate = ranks->plan->accumulate;
    uint32_t const last = ranks_last_kind(ranks);
    uint32_t const before = ranks_kind_at(ranks, ranks->plan->model.layers - 2);
    double moved = 0;
    uint64_t copies = 0;
    for (uint32_t kind = 0; kind < ranks->kinds.count; kind++) {
        uint64_t const layers = ranks_layer_count(ranks, kind) - (kind == last);
        double const each = offloaded_bytes(ranks, kind);
        moved += (double)layers * each;
        copies += each > 0 ? layers : 0;
    }
    counts->host.activation_bytes = accumulate * moved;
    counts->host_copy_count += UINT64_C(2) * accumulate * copies;
    counts->memory.activation_bytes -= moved - offloaded_bytes(ranks, before);
}

/* What the layers of the largest group keep from their repetition to their backward passes. The
 * input of the group was kept, and that of its last layer takes as much. */
static double largest_group_bytes(const struct ranks *ranks)
{
    double each[LAYER_KINDS_MAX] = {0}, group = 0, most = 0;
    if (!ranks->kinds.grouped) return 0;
    for (uint32_t kind = 0; kind < ranks->kinds.count; kind++) {
        struct step_part const part = {.part = BLOCK_LAYER, .kind = kind};
        struct step_graph room;
        const struct graph_derived *derived = step_graph(ranks, &part, &room);
        each[kind] = (double)(graph_kept_bytes(&derived->sharded, &derived->kept) +
                              graph_framework_bytes(&derived->graph));
    }
    for (uint64_t layer = 0; layer < ranks->plan->model.layers; layer++) {
        uint32_t const kind = ranks_kind_at(ranks, layer);
        group = ranks->kinds.kind[kind].grouped ? group + each[kind] : 0;
        most = group > most ? group : most;
    }
    return most;
}

/* What is kept in the host's memory goes there and comes back once a step, or a microbatch: see
 * lower_offload.c. */
static void offload_count(const struct ranks *ranks, struct workload_counts *counts)
{
    const struct workload_plan *plan = ranks->plan;
    uint64_t const layers = plan->model.layers;
    if (ranks_offloads_optimizer(ranks)) {
        counts->host.moment_bytes = counts->memory.optimizer_bytes;
        counts->host_copy_count +=
            2 * (layers + (ranks_is_decoder(ranks) ? UINT64_C(2) - ranks->tie.here : 0));
        counts->memory.optimizer_bytes *= last_layer_share(ranks, /* of_state= */ true);
        if (plan->accumulate == 1)
            counts->memory.gradient_bytes *= last_layer_share(ranks, /* of_state= */ false);
    }
    if (ranks_offloads_activations(ranks)) activations_offload(ranks, counts);
}

/* What frameworks hold on top of what the book counts: overheads.h. */
static void overheads_add(const struct ranks *ranks, double kept, double gradients,
                          struct workload_counts *counts)
{
    double const weight = format_stored_number_bytes(ranks->plan->formats.weights);
    bool const wide = weight >= FP32 || ranks_offloads_optimizer(ranks);
    uint64_t layers[LAYER_KINDS_MAX] = {0};
    uint64_t resident[PROGRAM_MEMORY_COUNT] = {0};
    if (!overheads_count(ranks)) return;
    counts->memory.gradient_bytes =
        ranks->model_replicas * gradients * bytes_of(overheads_gradient_format(ranks));
    if (!wide)
        counts->memory.master_bytes = overheads_of_wide_shards(ranks)
                                          ? ranks->model_replicas * kept * (FP32 - weight)
                                          : state_elements(ranks) * FP32;
    for (uint32_t kind = 0; kind < ranks->kinds.count; kind++)
        layers[kind] = ranks_layer_count(ranks, kind);
    overheads_chip(ranks, layers, resident);
    for (uint32_t kind = 0; kind < PROGRAM_MEMORY_COUNT; kind++)
        counts->held_anyway.fixed_bytes += (double)resident[kind];
}

void counts_memory(const struct ranks *ranks, struct workload_counts *counts)
{
    const struct graph_formats *formats = &ranks->plan->formats;
    double const kept =
        share_of(ranks, ranks->shards, false) + share_of(ranks, ranks->shards, true);
    double const gradients = share_of(ranks, ranks->replicas.gradient_shards, false) +
                             share_of(ranks, ranks->experts.replicas.gradient_shards, true);
    const struct bucket *head = &ranks->end[BLOCK_HEAD].bucket;
    double const of_head = (double)units_ceil_divide(head->elements, ranks->shards);
    counts->memory.parameter_bytes =
        ranks->model_replicas * kept * format_stored_number_bytes(formats->weights) +
        of_head * (format_stored_number_bytes(head->format) -
                   format_stored_number_bytes(formats->weights));
    if (ranks->shards > 1)
        counts->held_anyway.gathered_bytes = layer_elements(ranks, ranks_last_kind(ranks)) *
                                             format_stored_number_bytes(formats->weights);
    if (ranks_serves(ranks)) {
        uint64_t const layers = ranks->plan->model.layers;
        counts->memory.cache_bytes = (double)inference_cache_bytes(ranks, 0, layers);
        return;
    }
    counts->memory.optimizer_bytes =
        state_elements(ranks) / FORMAT_BLOCK * (double)update_moments_bytes(ranks, FORMAT_BLOCK);
    counts->memory.gradient_bytes =
        ranks->model_replicas * gradients * bytes_of(formats->gradients);
    counts->held_anyway.group_bytes = largest_group_bytes(ranks);
    offload_count(ranks, counts);
    overheads_add(ranks, kept, gradients, counts);
}
