/* Weights that are gathered before use, and gradients that are reduced after they are computed. */
#include "sim/step/lower.h"

#include "sim/base/units.h"
#include "sim/step/emit.h"
#include "sim/step/overheads.h"
#include "sim/step/update.h"

static const struct group *role_group(const struct lower *lower, enum mesh_role role)
{
    return &lower->ranks->mesh->axis[role].group;
}

/* `prefetch_layers: n`: the gather may begin when the compute of n slots earlier has begun; 0: when
 * the slot before has been computed. */
void lower_prefetch_need(struct lower *lower, uint32_t op)
{
    uint32_t const ahead = lower->ranks->plan->prefetch_layers;
    if (lower->part.since) {
        builder_need(&lower->build, op,
                     (struct program_need){.stream = PROGRAM_COMPUTE,
                                           .slot = PROGRAM_SLOT_SINCE,
                                           .reason = PROGRAM_REASON_WINDOW});
        return;
    }
    if (ahead == 0) {
        builder_need(
            &lower->build, op,
            (struct program_need){.stream = PROGRAM_COMPUTE, .reason = PROGRAM_REASON_WINDOW});
        return;
    }
    builder_need(&lower->build, op,
                 (struct program_need){.stream = PROGRAM_COMPUTE,
                                       .begun = true,
                                       .slot = (int16_t) - (int32_t)ahead,
                                       .part = 1,
                                       .reason = PROGRAM_REASON_WINDOW});
}

/* The plan of a gather of a bucket's weights, with their scales. */
static uint32_t bucket_plan(struct lower *lower, const struct group *group,
                            const struct bucket *bucket)
{
    struct plan_request const request = {.kind = COLLECTIVE_ALL_GATHER,
                                         .group = *group,
                                         .algorithm = lower->ranks->plan->algorithm,
                                         .size_bytes = bucket_bytes(bucket)};
    return lower_plan_bytes(lower, &request, bucket->format);
}

/* Adds a collective of a bucket's weights, or of their gradients. */
static uint32_t bucket_collective(struct lower *lower, enum lower_stream stream,
                                  const struct bucket *bucket, const char *what, const char *group,
                                  uint32_t plan)
{
    uint32_t const op = lower_collective(lower, stream, what, group, plan);
    if (op != LOWER_NONE) lower->build.op[op].weights = bucket->end;
    return op;
}

/* The gather of weights of which each rank has updated its part; LOWER_NONE: none is needed. */
static uint32_t updated_gather(struct lower *lower, const struct bucket *bucket)
{
    const struct replicas *replicas = ranks_replicas(lower->ranks, bucket->experts);
    enum lower_stream const stream = bucket->experts ? LOWER_GATHER_EXPERTS : LOWER_GATHER_DP;
    if (replicas->count == 1) return LOWER_NONE;
    uint32_t const plan = bucket_plan(lower, &replicas->group, bucket);
    return bucket_collective(lower, stream, bucket, bucket->name, replicas->name, plan);
}

/* In the order of their first uses. */
static void updated_buckets_gather(struct lower *lower, const struct bucket *buckets,
                                   uint32_t bucket_count)
{
    for (uint32_t u = 0; u < bucket_count; u++) {
        if (buckets[u].elements == 0) continue;
        uint32_t const op = updated_gather(lower, &buckets[u]);
        if (op == LOWER_NONE) continue;
        lower_prefetch_need(lower, op);
        for (uint32_t p = 0; p < MATRICES_MAX; p++)
            if (buckets[u].places >> p & 1) lower->weights[p] = op;
    }
}

void lower_buckets_gather(struct lower *lower, const struct bucket *buckets, uint32_t bucket_count,
                          bool backward)
{
    const struct ranks *ranks = lower->ranks;
    if (lower->part.updated) updated_buckets_gather(lower, buckets, bucket_count);
    if (ranks->shards == 1 || lower->part.keeping == LOWER_HOLDS) return;
    for (uint32_t i = 0; i < bucket_count; i++) {
        const struct bucket *bucket = &buckets[backward ? bucket_count - 1 - i : i];
        if (bucket->elements == 0) continue;
        uint64_t const bytes = bucket_bytes(bucket);
        uint32_t const plan = bucket_plan(lower, role_group(lower, ranks->shard_role), bucket);
        uint32_t const op = bucket_collective(lower, LOWER_GATHER_WEIGHTS, bucket, bucket->name,
                                              mesh_role_name(ranks->shard_role), plan);
        lower_prefetch_need(lower, op);
        lower_take(lower, op, PROGRAM_MEMORY_GATHERED, bytes);
        uint64_t const copied = overheads_gathered_bytes(ranks, bucket->elements);
        lower_take(lower, op, PROGRAM_MEMORY_COPIES, copied);
        lower_give(lower, op, PROGRAM_MEMORY_COPIES, copied);
        for (uint32_t p = 0; p < MATRICES_MAX; p++) {
            if (bucket->places >> p & 1) lower->weights[p] = op;
        }
    }
}

void lower_weights_need(struct lower *lower, uint32_t op, uint8_t place, bool reads)
{
    if (op == LOWER_NONE || (lower->weights_needed >> place & 1) != 0) return;
    uint32_t const gather = lower->weights[place];
    lower_need_done(lower, op, gather, reads ? lower_moved(lower, gather) : NULL);
    for (uint32_t p = 0; p < MATRICES_MAX; p++) {
        if (lower->weights[p] == lower->weights[place]) lower->weights_needed |= 1u << p;
    }
}

void lower_weights_release(struct lower *lower, uint32_t op, uint8_t place, bool backward)
{
    const struct ranks *ranks = lower->ranks;
    if (ranks->shards == 1 || lower->part.keeping != LOWER_GATHERS) return;
    const struct ranks_layer *layer = lower->layer;
    for (uint32_t u = 0; u < layer->bucket_count; u++) {
        uint32_t const places = layer->bucket[u].places;
        uint32_t const rest = backward ? places & ((1u << place) - 1) : places >> (place + 1);
        if (!(places >> place & 1) || rest != 0) continue;
        lower_give(lower, op, PROGRAM_MEMORY_GATHERED, bucket_bytes(&layer->bucket[u]));
    }
}

/* Where a gradient is kept for the update that is not there all the time, and its bytes. */
static enum program_memory kept_memory(const struct lower *lower)
{
    return overheads_count(lower->ranks) ? PROGRAM_MEMORY_MAIN_GRADIENTS : PROGRAM_MEMORY_GRADIENTS;
}

static uint64_t kept_bytes(const struct lower *lower, uint64_t elements)
{
    const struct ranks *ranks = lower->ranks;
    if (overheads_of_fsdp(ranks)) return overheads_gradient_bytes(ranks, elements);
    return overheads_count(ranks) ? 0 : lower_gradient_bytes(lower, elements);
}

static uint64_t bucket_kept_bytes(const struct lower *lower, const struct bucket *bucket)
{
    uint32_t const shards = ranks_replicas(lower->ranks, bucket->experts)->gradient_shards;
    return kept_bytes(lower, units_ceil_divide(bucket->elements, shards));
}

/* A gradient that is to be reduced. FSDP2 computes it in the format of what it has gathered. */
static uint64_t unreduced_bytes(const struct lower *lower, uint64_t elements)
{
    return overheads_of_fsdp(lower->ranks) ? lower_weight_bytes(lower, elements)
                                           : lower_gradient_bytes(lower, elements);
}

void lower_gradient_take(struct lower *lower, uint32_t op, uint64_t elements, bool experts)
{
    if (ranks_replicas(lower->ranks, experts)->gradient_shards > 1) {
        lower_take(lower, op, PROGRAM_MEMORY_BUFFERS,
                   unreduced_bytes(lower, elements)); /* Until it is reduced. */
    } else if (!lower->ranks->gradients.resident) {
        lower_take(lower, op, kept_memory(lower),
                   kept_bytes(lower, elements)); /* Until the update. */
    }
}

static void reduction_need(struct lower *lower, uint32_t op, uint32_t after)
{
    if (after == LOWER_NONE)
        lower_need_before(lower, op, LOWER_COMPUTE, lower_weight_gradient);
    else
        lower_need_done(lower, op, after, lower_moved(lower, op));
}

static void parts_sums_need(struct lower *lower, uint32_t op, const struct bucket *bucket)
{
    for (uint32_t p = 0; p < MATRICES_MAX; p++)
        if (bucket->places >> p & 1)
            lower_need_done(lower, op, lower->parts_sum[p],
                            lower_moved(lower, lower->parts_sum[p]));
}

/* ZeRO-2 reduces in every microbatch. A backward pass begins when the reductions of all slots but
 * the one before are done, so gradients that wait for slow links do not fill HBM. DeepSpeed has two
 * buckets in the same way, and FSDP2 waits for the last reduction before the next. */
static void reduction_window(struct lower *lower, uint32_t reduction)
{
    uint32_t first = lower->pass_first;
    if (lower->build.status != STATUS_OK || lower->ranks->plan->zero != 2) return;
    uint8_t const stream = lower->build.op[reduction].stream;
    while (first < reduction && lower->build.op[first].stream != PROGRAM_COMPUTE) first++;
    if (first == reduction) return;
    const struct program_op *op = &lower->build.op[first];
    for (uint32_t i = 0; i < op->need_count; i++)
        if (op->need[i].stream == stream && op->need[i].reason == PROGRAM_REASON_WINDOW) return;
    builder_need(
        &lower->build, first,
        (struct program_need){.stream = stream, .slot = -1, .reason = PROGRAM_REASON_WINDOW});
}

void lower_bucket_reduce(struct lower *lower, const struct bucket *bucket, uint32_t after)
{
    const struct ranks *ranks = lower->ranks;
    const struct replicas *replicas = ranks_replicas(ranks, bucket->experts);
    enum lower_stream const stream = bucket->experts ? LOWER_REDUCE_EXPERTS : LOWER_REDUCE_DP;
    const char *what = builder_format(&lower->build, "d%s", bucket->name);
    enum format const format = ranks->plan->formats.gradients;
    uint32_t reduced = LOWER_NONE;
    if (bucket->elements == 0) return;
    if (ranks->shards > 1 && (lower->part.last || !ranks->gradients.once)) {
        uint32_t const plan =
            lower_plan(lower, COLLECTIVE_REDUCE_SCATTER, role_group(lower, ranks->shard_role),
                       bucket->elements, format);
        reduced = bucket_collective(lower, LOWER_REDUCE_WEIGHTS, bucket, what,
                                    mesh_role_name(ranks->shard_role), plan);
    }
    if (reduced != LOWER_NONE) {
        reduction_need(lower, reduced, after);
        parts_sums_need(lower, reduced, bucket);
        uint64_t const copied = overheads_reduced_bytes(ranks, bucket->elements);
        lower_take(lower, reduced, PROGRAM_MEMORY_COPIES, copied);
        lower_give(lower, reduced, PROGRAM_MEMORY_COPIES, copied);
    }
    uint32_t scattered = reduced;
    if (replicas->count > 1 && (lower->part.last || !ranks->gradients.last)) {
        bool const sum = ranks->plan->zero == 0;
        uint32_t const plan = lower_plan(
            lower, sum ? COLLECTIVE_ALL_REDUCE : COLLECTIVE_REDUCE_SCATTER, &replicas->group,
            units_ceil_divide(bucket->elements, ranks->shards), format);
        uint32_t const op = bucket_collective(lower, stream, bucket, what, replicas->name, plan);
        if (reduced != LOWER_NONE)
            lower_need_done(lower, op, reduced, what);
        else
            reduction_need(lower, op, after);
        if (reduced == LOWER_NONE) parts_sums_need(lower, op, bucket);
        if (scattered == LOWER_NONE) scattered = op;
    }
    if (replicas->gradient_shards == 1) return;
    if (scattered != LOWER_NONE) reduction_window(lower, scattered);
    if (!ranks->gradients.resident) {
        lower_take(lower, scattered, kept_memory(lower), bucket_kept_bytes(lower, bucket));
    }
    lower_give(lower, scattered, PROGRAM_MEMORY_BUFFERS, unreduced_bytes(lower, bucket->elements));
}

void lower_layer_reduce(struct lower *lower)
{
    for (uint32_t u = lower->layer->bucket_count; u-- > 0;)
        lower_bucket_reduce(lower, &lower->layer->bucket[u], LOWER_NONE);
}

void lower_gradient(struct lower *lower, uint32_t op, uint8_t place, uint32_t sum)
{
    lower->gradients |= 1u << place;
    if (!lower_has_input(lower)) lower_weights_need(lower, op, place, /* reads= */ false);
    lower->parts_sum[place] = sum;
    for (uint32_t u = 0; u < lower->layer->bucket_count; u++) {
        const struct bucket *bucket = &lower->layer->bucket[u];
        bool const ready = (bucket->places & ~lower->gradients) == 0;
        if (!ready || (lower->buckets_reduced >> u & 1)) continue;
        lower->buckets_reduced |= 1u << u;
        lower_bucket_reduce(lower, bucket, op);
    }
}

enum { REDUCTIONS = 5 };
static const enum lower_stream reductions[REDUCTIONS] = {
    LOWER_REDUCE_WEIGHTS, LOWER_REDUCE_DP, LOWER_REDUCE_EXPERTS, LOWER_SUM_KV, LOWER_SUM_ROWS};

static void reductions_need(struct lower *lower, uint32_t op)
{
    for (uint32_t i = 0; i < REDUCTIONS; i++)
        lower_need_before(lower, op, reductions[i], lower_weight_gradient);
}

static const char norm_name[] = "gradient norm";

bool lower_norm_has_experts(const struct ranks *ranks)
{
    return ranks->plan->zero == 0 && model_has_experts(&ranks->plan->model) &&
           ranks->mesh->axis[MESH_EP].size > 1;
}

/* Sums over ranks that hold different gradients, one after the other. */
struct norm_sum {
    bool used;
    enum lower_stream stream;
    const struct group *group;
    const char *name;
};
enum { NORM_SUMS = 6 };

static void norm_sums(const struct ranks *ranks, struct norm_sum ret_sums[NORM_SUMS])
{
    const struct mesh_axis *axis = ranks->mesh->axis;
    const struct replicas *replicas = &ranks->replicas;
    struct norm_sum const sums[NORM_SUMS] = {
        {ranks->tp > 1, LOWER_REDUCE_TP, &axis[MESH_TP].group, "tp"},
        {ranks_tp_d(ranks) > 1, LOWER_REDUCE_TP_D, &axis[MESH_TP_D].group, "tp_d"},
        {lower_norm_has_experts(ranks), LOWER_COMBINE, &axis[MESH_EP].group, "ep"},
        {ranks->shards > 1, LOWER_REDUCE_WEIGHTS, &axis[ranks->shard_role].group,
         mesh_role_name(ranks->shard_role)},
        {ranks->plan->zero != 0 && replicas->count > 1, LOWER_REDUCE_DP, &replicas->group,
         replicas->name},
        {ranks_sums_norm_over_stages(ranks), LOWER_SUM_PP, &axis[MESH_PP].group, "pp"},
    };
    for (uint32_t i = 0; i < NORM_SUMS; i++) ret_sums[i] = sums[i];
}

void lower_norm(struct lower *lower, uint64_t elements)
{
    struct work const work = update_norm_work(lower->ranks, elements);
    struct norm_sum sums[NORM_SUMS];
    uint32_t before = lower_compute(lower, norm_name, &work, 1);
    reductions_need(lower, before);
    norm_sums(lower->ranks, sums);
    for (uint32_t i = 0; i < NORM_SUMS; i++) {
        if (!sums[i].used) continue;
        struct plan_request const request = {.kind = COLLECTIVE_ALL_REDUCE,
                                             .group = *sums[i].group};
        uint32_t const plan = lower_plan_request(lower, &request, 1, FORMAT_FP32);
        uint32_t const sum = lower_collective(lower, sums[i].stream, norm_name, sums[i].name, plan);
        lower_need_done(lower, sum, before, norm_name);
        before = sum;
    }
}

/* The last of the sums, which needs all others. */
static void norm_need(struct lower *lower, uint32_t op)
{
    struct norm_sum sums[NORM_SUMS];
    norm_sums(lower->ranks, sums);
    for (uint32_t i = NORM_SUMS; i-- > 0;) {
        if (!sums[i].used) continue;
        lower_need_before(lower, op, sums[i].stream, norm_name);
        return;
    }
}

/* A whole update needs the norm of all gradients; or the reductions of its slot in the backward
 * pass, or all before it. */
static void update_need(struct lower *lower, uint32_t op, uint16_t backward, uint32_t slots)
{
    if (lower->build.status != STATUS_OK) return;
    if (ranks_clips(lower->ranks)) {
        norm_need(lower, op);
        return;
    }
    if (slots == 0) {
        reductions_need(lower, op);
        return;
    }
    for (uint32_t i = 0; i < REDUCTIONS; i++) {
        uint8_t const stream = lower->stream[reductions[i]];
        if (stream == PROGRAM_STREAMS_MAX) continue;
        uint32_t const parts = lower->build.program->templates[backward].stream_parts[stream];
        if (parts == 0) continue;
        builder_need(&lower->build, op,
                     (struct program_need){.stream = stream,
                                           .slot = (int16_t) - (int32_t)slots,
                                           .part = parts,
                                           .reason = PROGRAM_REASON_DATA,
                                           .array = lower_weight_gradient});
    }
}

uint64_t lower_state_elements(const struct ranks *ranks, const struct bucket *buckets,
                              uint32_t bucket_count)
{
    uint64_t elements = 0;
    for (uint32_t u = 0; u < bucket_count; u++)
        elements += units_ceil_divide(buckets[u].elements,
                                      ranks_replicas(ranks, buckets[u].experts)->state_shards);
    return elements;
}

void lower_update(struct lower *lower, const struct delayed_update *update)
{
    const struct ranks *ranks = lower->ranks;
    const struct bucket *buckets = update->buckets;
    uint32_t const bucket_count = update->bucket_count;
    uint64_t const elements = lower_state_elements(ranks, buckets, bucket_count);
    uint64_t gradients = 0, kept = 0;
    if (bucket_count == 0) return;
    for (uint32_t u = 0; u < bucket_count; u++) {
        gradients += units_ceil_divide(buckets[u].elements, ranks->shards);
        kept += bucket_kept_bytes(lower, &buckets[u]);
    }
    struct work const work = update_work(ranks, elements, gradients);
    uint32_t const op = lower_compute(lower, update->name, &work, 1);
    update_need(lower, op, update->backward, update->slots);
    lower_offload_update(lower, op, update_moments_bytes(ranks, elements));
    if (!ranks->gradients.resident) lower_give(lower, op, kept_memory(lower), kept);
    /* ZeRO-1 and 2: each rank has updated its part of parameters that all of them hold. */
    for (uint32_t u = 0; ranks->plan->zero != 0 && u < bucket_count; u++) {
        if (ranks_gathers_next(ranks) || ranks_replicas_wait(ranks)) break;
        lower_need_done(lower, updated_gather(lower, &buckets[u]), op,
                        builder_format(&lower->build, "%s", buckets[u].name));
    }
}

void lower_updated_gather(struct lower *lower, const struct bucket *buckets, uint32_t bucket_count)
{
    for (uint32_t u = 0; u < bucket_count; u++) {
        uint32_t const op =
            buckets[u].elements == 0 ? LOWER_NONE : updated_gather(lower, &buckets[u]);
        if (op != LOWER_NONE) lower_need_before(lower, op, LOWER_COMPUTE, lower_moved(lower, op));
    }
}
