/*
 * Latent attention (MLA: DeepSeek-V2, arXiv 2405.04434, 2.1) between the block's in-projection,
 * which here takes tokens down to the latents of Q and of K and V, and the attention itself, which
 * is as with any other heads: the norms of both latents, and the projections up to the chip's
 * heads.
 *
 * Over tp the heads are split, and with them the projections up. Down-projections and norms are
 * done by every rank for all of its tokens: the latents are thin compared with the heads. So the
 * gradient of a latent, and of what gives it, is a sum over tp, of which each rank has the part of
 * its heads: dIn is summed by the ReduceScatter that ends the block, and dW_DQ and dW_DKV by one
 * AllReduce, as gradients of shared KV heads are. Both are linear in the latents' gradients, so
 * nothing has to be summed before.
 *
 * K is written whole: the turned columns, which all heads share, are repeated for each.
 */
#include "sim/base/vector.h"
#include "sim/workload/lower.h"

static uint64_t normed_elements(const struct lower *lower)
{
    return lower->local->rows * lower->local->latent_normed;
}

/* What the projections up read, of which the turned columns of K lie where they came. */
static uint64_t up_input_bytes(const struct lower *lower)
{
    uint64_t const turned = lower->local->latent_columns - lower->local->latent_normed;
    return lower_matmul_bytes(lower, normed_elements(lower)) +
           lower_activation_bytes(lower, lower->local->rows * turned);
}

static uint64_t latent_bytes(const struct lower *lower)
{
    return lower_activation_bytes(lower, lower->local->rows * lower->local->latent_columns);
}

static uint64_t heads_bytes(const struct lower *lower)
{
    return lower_activation_bytes(lower, lower->local->rows * lower->local->qkv_columns);
}

/* Both projections up, in any of the three products that they take part in. */
static struct work up(const struct lower *lower, bool useful)
{
    const struct local *local = lower->local;
    const struct model_latent *latent = &local->plan->model.latent;
    struct work work = {
        .matmul = {{local->rows, latent->query_rank, local->heads * local->head_width, 1},
                   {local->rows, latent->kv_rank,
                    local->heads * (latent->plain + local->value_width), 1}},
        .matmul_count = 2,
        .math_format = local->plan->formats.matmuls,
    };
    if (useful) work.useful_flop = local_useful_heads(local, work_matmul_flop(&work));
    return work;
}

static uint64_t up_elements(const struct lower *lower)
{
    return lower->layer->place_elements[LOCAL_ATTENTION_UP];
}

static const char *name_of(enum lower_pass pass, const char *once, const char *again)
{
    return pass == LOWER_FORWARD ? once : again;
}

uint32_t lower_latent_forward(struct lower *lower, const struct lower_block *block,
                              enum lower_pass pass, uint32_t after)
{
    const struct local *local = lower->local;
    struct work const norm_work = {
        .math_format = local->plan->formats.activations,
        .vector_flop = VECTOR_NORM_ALONE * local->rows * local->latent_normed,
        .hbm_read_bytes = lower_activation_bytes(lower, normed_elements(lower)),
        .hbm_write_bytes = lower_matmul_bytes(lower, normed_elements(lower)),
    };
    uint32_t const norm = lower_compute(
        lower, name_of(pass, "attention.LatentNorm", "attention.LatentNorm again"), &norm_work, 1);
    lower_need_done(lower, norm, after);
    lower_tensor_take(lower, block, LOWER_LATENT, pass, norm);
    struct work work = up(lower, pass == LOWER_FORWARD);
    work.hbm_read_bytes = up_input_bytes(lower) + lower_weight_bytes(lower, up_elements(lower));
    work.hbm_write_bytes = heads_bytes(lower);
    uint32_t const op =
        lower_compute(lower, name_of(pass, "attention.Up", "attention.Up again"), &work, 1);
    lower_weights_need(lower, op, LOCAL_ATTENTION_UP);
    if (pass == LOWER_FORWARD) lower_weights_release(lower, op, LOCAL_ATTENTION_UP, false);
    lower_tensor_take(lower, block, LOWER_QKV, pass, op);
    return op;
}

/* dW_UQ and dW_UKV. */
static uint32_t up_weight(struct lower *lower, const struct lower_block *block)
{
    uint64_t const gradient_bytes = lower_gradient_bytes(lower, up_elements(lower));
    struct work work = up(lower, true);
    work.hbm_read_bytes = lower_matmul_bytes(lower, normed_elements(lower)) + heads_bytes(lower) +
                          (lower_gradient_adds(lower) ? gradient_bytes : 0);
    work.hbm_write_bytes = gradient_bytes;
    uint32_t const op = lower_compute(lower, "attention.dW_up", &work, 1);
    lower_gradient_take(lower, op, up_elements(lower));
    lower_gradient(lower, op, LOCAL_ATTENTION_UP);
    lower_tensor_give(lower, block, LOWER_LATENT, op);
    return op;
}

/* The gradient of the normed latents, with that of K's turned columns, summed over its heads. */
static uint32_t up_input(struct lower *lower)
{
    const struct local *local = lower->local;
    const struct model_latent *latent = &local->plan->model.latent;
    struct work work = up(lower, true);
    work.vector_flop = local->rows * local->heads * latent->rope;
    work.hbm_read_bytes = heads_bytes(lower) + lower_weight_bytes(lower, up_elements(lower));
    work.hbm_write_bytes = latent_bytes(lower);
    uint32_t const op = lower_compute(lower, "attention.dLatent", &work, 1);
    lower_weights_need(lower, op, LOCAL_ATTENTION_UP);
    lower_weights_release(lower, op, LOCAL_ATTENTION_UP, true);
    lower_take(lower, op, lower_kept_memory(lower), latent_bytes(lower));
    return op;
}

/* In place of the normed latents' gradient comes the latents'. */
static uint32_t norm_backward(struct lower *lower)
{
    const struct local *local = lower->local;
    struct work const work = {
        .math_format = local->plan->formats.activations,
        .vector_flop = VECTOR_NORM_ALONE_BACKWARD * local->rows * local->latent_normed,
        .hbm_read_bytes = 2 * lower_activation_bytes(lower, normed_elements(lower)),
        .hbm_write_bytes = lower_activation_bytes(lower, normed_elements(lower)),
    };
    return lower_compute(lower, "attention.dLatentNorm", &work, 1);
}

uint32_t lower_latent_backward(struct lower *lower, const struct lower_block *block,
                               uint32_t before)
{
    bool const dx_first = lower->local->plan->backward_order == WORKLOAD_BACKWARD_DX_FIRST;
    uint32_t last = LOWER_NONE;
    for (uint32_t i = 0; i < 2; i++) {
        bool const is_weight = dx_first ? i == 1 : i == 0;
        if (!(is_weight ? lower_has_weight(lower) : lower_has_input(lower))) continue;
        bool const first = last == LOWER_NONE;
        last = is_weight ? up_weight(lower, block) : up_input(lower);
        if (first) lower_need_done(lower, last, before);
    }
    if (lower_has_weight(lower))
        lower_give(lower, last, lower_kept_memory(lower), heads_bytes(lower));
    if (!lower_has_input(lower)) return LOWER_NONE;
    lower_tensor_give(lower, block, LOWER_QKV, last);
    return norm_backward(lower);
}
