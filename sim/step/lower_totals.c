/* What a chip holds from the first instant to the last. */
#include "sim/base/units.h"
#include "sim/step/overheads.h"
#include "sim/step/pipeline.h"
#include "sim/step/update.h"

/* Shares are rounded up for each bucket, as when the bucket is gathered. */
static void buckets_resident(const struct ranks *ranks, const struct bucket *buckets,
                             uint32_t count, uint64_t times,
                             uint64_t resident[PROGRAM_MEMORY_COUNT])
{
    const struct graph_formats *formats = &ranks->plan->formats;
    for (uint32_t u = 0; u < count; u++) {
        const struct replicas *replicas = ranks_replicas(ranks, buckets[u].experts);
        uint64_t const elements = buckets[u].elements;
        struct bucket_shares const shares = {
            .kept = units_ceil_divide(elements, ranks->shards),
            .state = units_ceil_divide(elements, replicas->state_shards),
            .gradients = units_ceil_divide(elements, replicas->gradient_shards)};
        resident[PROGRAM_MEMORY_PARAMETERS] +=
            times * format_stored_bytes(buckets[u].format, shares.kept);
        if (!ranks_offloads_optimizer(ranks) && !ranks_serves(ranks))
            resident[PROGRAM_MEMORY_OPTIMIZER] += times * update_moments_bytes(ranks, shares.state);
        if (ranks->gradients.resident && !overheads_count(ranks))
            resident[PROGRAM_MEMORY_GRADIENTS] +=
                times * format_bytes(formats->gradients, shares.gradients);
        overheads_bucket(ranks, &shares, times, resident);
    }
}

void lower_resident(const struct ranks *ranks, const uint64_t modules[MODULE_COUNT],
                    uint64_t resident_bytes[PROGRAM_MEMORY_COUNT])
{
    struct bucket buckets[LOWER_BUCKETS_MAX];
    for (uint32_t m = MODULE_NOTHING + 1; m < MODULE_LAYER + ranks->kinds.count; m++) {
        uint32_t const count = lower_buckets_of(ranks, (enum lower_module)m, buckets);
        buckets_resident(ranks, buckets, count, modules[m], resident_bytes);
    }
    overheads_chip(ranks, &modules[MODULE_LAYER], resident_bytes);
}
