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
    struct function_pass const made = fusion_update(fusion, ranks_clips(ranks));
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
