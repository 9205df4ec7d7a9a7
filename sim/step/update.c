#include "sim/step/update.h"

#include "sim/base/vector.h"
#include "sim/kernels/fusion.h"
#include "sim/step/overheads.h"
#include "sim/step/ranks.h"

uint64_t update_moments_bytes(const struct ranks *ranks, uint64_t elements)
{
    return 2 * format_bytes(ranks->plan->formats.optimizer, elements);
}

/* Gradients are cleared for the next step; of several replicas they are a mean. */
static void buffer_add(const struct ranks *ranks, uint64_t gradients, struct work *work)
{
    uint64_t const bytes = format_bytes(overheads_gradient_format(ranks), gradients);
    bool const scaled = ranks->replicas.count > 1;
    work->hbm_read_bytes += scaled ? bytes : 0;
    work->hbm_write_bytes += scaled ? 2 * bytes : bytes;
    work->kernel_count += scaled ? 2 : 1;
}

/* Weights in fp32, and shards in fp32 that each gather casts, have no copy in 16 bits, which the
 * update would make of them: one kernel reads gradients in fp32, moments and weights, and writes
 * the latter two. */
static struct function_pass made_of(const struct ranks *ranks)
{
    const struct graph_formats *formats = &ranks->plan->formats;
    const struct fusion *fusion = ranks_fusion(ranks);
    struct function_pass made = fusion_update(fusion, ranks_clips(ranks));
    if (format_bits(formats->weights) <= 16 && !ranks_casts_shards(ranks)) return made;
    struct function_pass const update = fusion_update(fusion, false);
    uint8_t const weights = (uint8_t)(4 - format_bytes(formats->weights, 1));
    uint8_t const gradients = (uint8_t)(4 - format_bytes(formats->gradients, 1));
    made.kernels = (uint8_t)(made.kernels - update.kernels + 1);
    made.read_bytes = (uint8_t)(made.read_bytes - update.read_bytes + weights + gradients);
    made.write_bytes = (uint8_t)(made.write_bytes - update.write_bytes + weights);
    return made;
}

struct work update_work(const struct ranks *ranks, uint64_t elements, uint64_t gradients)
{
    const struct graph_formats *formats = &ranks->plan->formats;
    const struct fusion *fusion = ranks_fusion(ranks);
    uint64_t const written =
        update_moments_bytes(ranks, elements) + format_stored_bytes(formats->weights, elements);
    struct work work = {
        .math_format = formats->optimizer,
        .vector_flop = VECTOR_ADAM * elements,
        .hbm_read_bytes = format_bytes(formats->gradients, elements) + written,
        .hbm_write_bytes = written,
    };
    if (fusion == NULL) return work;
    struct function_pass const made = made_of(ranks);
    work.hbm_read_bytes += made.read_bytes * elements;
    work.hbm_write_bytes += made.write_bytes * elements;
    work.kernel_count = made.kernels;
    work.kernel = WORK_KERNEL_FUNCTIONS + WORK_FUNCTION_UPDATE;
    if (fusion->buffers_gradients) buffer_add(ranks, gradients, &work);
    return work;
}

/* Kernels that read no bytes of their own read gradients in their format; so does a norm that is no
 * kernel of the stack's. */
struct work update_norm_work(const struct ranks *ranks, uint64_t elements)
{
    const struct graph_formats *formats = &ranks->plan->formats;
    const struct fusion *fusion = ranks_fusion(ranks);
    struct work work = {
        .math_format = formats->optimizer,
        .vector_flop = VECTOR_SQUARE * elements,
        .hbm_read_bytes = format_bytes(formats->gradients, elements),
    };
    if (fusion == NULL) return work;
    struct function_pass const made = fusion_gradient_norm(fusion);
    if (made.read_bytes != 0) work.hbm_read_bytes = made.read_bytes * elements;
    work.kernel_count = made.kernels;
    work.kernel = WORK_KERNEL_FUNCTIONS + WORK_FUNCTION_UPDATE;
    return work;
}
