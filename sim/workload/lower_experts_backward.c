/*
 * The backward pass of a layer's experts: the mirror of the forward one. Gradients of the outputs
 * go the way that tokens went, those of the rows come back.
 */
#include "sim/workload/lower_experts.h"

#include "sim/base/vector.h"

static uint64_t adds_bytes(const struct lower *lower, bool shared, uint64_t bytes)
{
    bool const adds = shared ? lower_gradient_adds(lower) : lower_experts_gradient_adds(lower);
    return adds ? bytes : 0;
}

/* The experts' rows, sorted for them, and the gradients of what they give; the shared ones' In and
 * dOut are those of the block. */
static uint64_t rows_bytes_of(const struct lower *lower, bool shared, uint64_t elements)
{
    return shared ? lower_activation_bytes(lower, elements) : lower_matmul_bytes(lower, elements);
}

/* dW of a projection, which reads its input and the gradient of its output. */
static uint32_t weight_op(struct lower *lower, bool shared, bool out, uint64_t rows_elements)
{
    static const char *const names[2][2] = {{"experts.dW_gate,up", "experts.dW_out"},
                                            {"shared.dW_gate,up", "shared.dW_out"}};
    const struct local *local = lower->local;
    enum local_place const place = shared ? (out ? LOCAL_SHARED_OUT : LOCAL_SHARED_IN)
                                   : out  ? LOCAL_MLP_OUT
                                          : LOCAL_MLP_IN;
    uint64_t const gradient = lower_gradient_bytes(lower, experts_weights(lower, shared, out));
    uint64_t const tmp = experts_tmp(local, shared);
    struct work work = experts_matmul(lower, shared, out, true);
    work.hbm_read_bytes = rows_bytes_of(lower, shared, rows_elements) +
                          lower_matmul_bytes(lower, tmp) + adds_bytes(lower, shared, gradient);
    work.hbm_write_bytes = gradient;
    if (out) /* What was multiplied with W_out is computed again from Gate and Up. */
        work.vector_flop =
            (uint64_t)((shared ? 0 : 1) + (local->mlp_in_count == 2 ? VECTOR_GATE : 0)) *
            (tmp / local->mlp_in_count);
    uint32_t const op = lower_compute(lower, names[shared][out], &work, 1);
    (shared ? lower_gradient_take
            : lower_experts_gradient_take)(lower, op, lower->layer->place_elements[place]);
    lower_gradient(lower, op, place);
    return op;
}

/* dTmp of the out-projection, dIn of the in-projection. */
static uint32_t input_op(struct lower *lower, bool shared, bool out, uint64_t rows_elements)
{
    static const char *const names[2][2] = {{"experts.dIn", "experts.dGate,dUp"},
                                            {"shared.dIn", "shared.dGate,dUp"}};
    const struct local *local = lower->local;
    enum local_place const place = shared ? (out ? LOCAL_SHARED_OUT : LOCAL_SHARED_IN)
                                   : out  ? LOCAL_MLP_OUT
                                          : LOCAL_MLP_IN;
    bool const gated = local->mlp_in_count == 2;
    uint64_t const tmp = experts_tmp(local, shared);
    uint64_t const tmp_bytes = lower_matmul_bytes(lower, tmp);
    uint64_t const rows_bytes = rows_bytes_of(lower, shared, rows_elements);
    struct work work = experts_matmul(lower, shared, out, true);
    uint64_t const weights = lower_weight_bytes(lower, experts_weights(lower, shared, out));
    work.hbm_read_bytes = weights + (out ? rows_bytes + (gated ? tmp_bytes : 0) : tmp_bytes);
    work.hbm_write_bytes = out ? tmp_bytes : lower_activation_bytes(lower, rows_elements);
    if (out) /* And the gradient of the router's weight: a dot product a row. */
        work.vector_flop =
            (uint64_t)((shared ? 0 : VECTOR_ROW_DOT + 1) + (gated ? VECTOR_GATE_BACKWARD : 0)) *
            (tmp / local->mlp_in_count);
    uint32_t const op = lower_compute(lower, names[shared][out], &work, 1);
    lower_weights_need(lower, op, place);
    lower_weights_release(lower, op, place, true);
    return op;
}

/* Both gradients of a projection in the order that is asked for, or the one that its half of the
 * pass has; returns the first op. `ret_input`: the one that gives the gradient of its input. */
static uint32_t projection_backward(struct lower *lower, bool shared, bool out,
                                    uint64_t rows_elements, uint32_t again, uint32_t *ret_input)
{
    bool const dx_first = lower->local->plan->backward_order == WORKLOAD_BACKWARD_DX_FIRST;
    uint32_t first = LOWER_NONE;
    for (uint32_t i = 0; i < 2; i++) {
        bool const is_weight = dx_first ? i == 1 : i == 0;
        if (!(is_weight ? lower_has_weight(lower) : lower_has_input(lower))) continue;
        uint32_t const op = (is_weight ? weight_op : input_op)(lower, shared, out, rows_elements);
        if (is_weight) lower_need_done(lower, op, again);
        if (!is_weight) *ret_input = op;
        if (first == LOWER_NONE) first = op;
    }
    return first;
}

/* In from the parts of it that were kept, for the shared experts. */
static uint32_t in_whole(struct lower *lower)
{
    uint32_t const gather =
        experts_tp(lower, COLLECTIVE_ALL_GATHER, "moe.In", lower->local->block_full);
    lower_need_before(lower, gather, LOWER_COMPUTE, PROGRAM_REASON_ORDER);
    experts_take(lower, EXPERTS_IN_WHOLE, LOWER_RECOMPUTE, gather);
    return gather;
}

/* With norms, In is not kept; with big_matmuls the rows neither: they are sent once more. Returns
 * the op that gives these, or LOWER_NONE; `ret_in`: the one that gives In. */
static uint32_t rows_again(struct lower *lower, uint32_t *ret_in)
{
    const struct local *local = lower->local;
    enum workload_remat const remat = local->plan->remat;
    bool const again = remat == WORKLOAD_REMAT_NORMS || remat == WORKLOAD_REMAT_BIG_MATMULS;
    *ret_in = LOWER_NONE;
    if (!lower_has_weight(lower)) return LOWER_NONE;
    if (experts_keep_parts(local)) *ret_in = in_whole(lower);
    if (!again) return LOWER_NONE;
    uint32_t const norm = lower_norm(lower, "moe.norm again", local->plan->formats.activations);
    uint32_t gather = LOWER_NONE;
    if (experts_gather_in(local))
        gather = experts_tp(lower, COLLECTIVE_ALL_GATHER, "moe.In", local->block_full);
    lower_need_done(lower, gather, norm);
    *ret_in = gather != LOWER_NONE ? gather : norm;
    experts_take(lower, EXPERTS_IN, LOWER_RECOMPUTE, *ret_in);
    if (remat == WORKLOAD_REMAT_NORMS) return LOWER_NONE;
    uint32_t const cast = experts_cast(lower, "moe.Cast again", norm);
    uint32_t const sort = experts_dispatch(lower, "rows", "moe.Sort again", cast);
    experts_take(lower, EXPERTS_ROWS, LOWER_RECOMPUTE, sort);
    return sort;
}

/* dOut of the shared experts, whole over tp; it is read by both gradients of the out-projection. */
static uint32_t shared_gather(struct lower *lower)
{
    if (!lower_has_input(lower)) return LOWER_NONE;
    uint32_t const gather =
        experts_tp(lower, COLLECTIVE_ALL_GATHER, "shared.dOut", lower->local->block_full);
    lower_need_output(lower, gather);
    return gather;
}

/* The shared experts, while gradients travel. Returns the op after which their dIn is there. */
static uint32_t shared_backward(struct lower *lower, uint32_t in)
{
    const struct local *local = lower->local;
    enum program_memory const kept = lower_kept_memory(lower);
    uint64_t const full_bytes = lower_activation_bytes(lower, local->block_full);
    uint64_t const tmp_bytes = lower_matmul_bytes(lower, experts_tmp(local, true));
    uint32_t d_tmp = LOWER_NONE, d_in = LOWER_NONE;
    if (local->experts.shared_columns == 0) return LOWER_NONE;
    uint32_t const gather = shared_gather(lower);
    uint32_t const first =
        projection_backward(lower, true, true, local->block_full, LOWER_NONE, &d_tmp);
    uint32_t const last = lower->build.op_count - 1; /* The one that reads dOut last. */
    lower_need_done(lower, first, gather);
    lower_take(lower, d_tmp, kept, tmp_bytes);
    lower_take(lower, gather, kept, full_bytes);
    if (local->tp > 1 && lower_has_weight(lower)) lower_give(lower, last, kept, full_bytes);
    (void)projection_backward(lower, true, false, local->block_full, in, &d_in);
    if (!lower_has_input(lower)) return LOWER_NONE;
    lower_take(lower, d_in, PROGRAM_MEMORY_BUFFERS, full_bytes);
    uint32_t const scatter =
        experts_tp(lower, COLLECTIVE_REDUCE_SCATTER, "shared.dIn", local->block_full);
    lower_need_done(lower, scatter, d_in);
    return scatter != LOWER_NONE ? scatter : d_in;
}

/* The experts' own four products, between the sorted gradients and those of the rows. */
static void matmuls_backward(struct lower *lower, uint32_t sorted, uint32_t again)
{
    const struct local *local = lower->local;
    enum program_memory const kept = lower_kept_memory(lower);
    uint64_t const rows_bytes = lower_matmul_bytes(lower, experts_sorted(lower));
    uint64_t const tmp_bytes = lower_matmul_bytes(lower, experts_tmp(local, false));
    uint32_t d_tmp = LOWER_NONE, d_in = LOWER_NONE;
    lower_take(lower, sorted, kept, rows_bytes);
    (void)projection_backward(lower, false, true, experts_sorted(lower), LOWER_NONE, &d_tmp);
    lower_take(lower, d_tmp, kept, tmp_bytes);
    uint32_t const first =
        projection_backward(lower, false, false, experts_sorted(lower), again, &d_in);
    if (lower_has_weight(lower)) lower_give(lower, first, kept, rows_bytes); /* dOut */
    lower_take(lower, d_in, PROGRAM_MEMORY_BUFFERS,
               lower_activation_bytes(lower, experts_sorted(lower)));
}

/* The gradient of the router's logits. Returns the op. */
static uint32_t route_backward(struct lower *lower)
{
    const struct local_experts *experts = &lower->local->experts;
    uint64_t const logits = experts->gate_rows * lower->local->plan->model.experts.count;
    uint64_t const logit_bytes = format_bytes(FORMAT_FP32, logits);
    struct work const route = {
        .math_format = lower->local->plan->formats.activations,
        .vector_flop = VECTOR_ROUTE_BACKWARD * logits,
        .hbm_read_bytes = 2 * logit_bytes,
        .hbm_write_bytes = logit_bytes,
    };
    uint32_t const op = lower_compute(lower, "moe.dRoute", &route, 1);
    if (lower->half == LOWER_INPUT) lower_take(lower, op, PROGRAM_MEMORY_ACTIVATIONS, logit_bytes);
    return op;
}

/* The router's weights, and its part of dIn: of a whole pass in one op. */
static uint32_t router_backward(struct lower *lower)
{
    static const char *const names[] = {"moe.dRouter", "moe.dIn", "moe.dW_router"};
    const struct local *local = lower->local;
    const struct local_experts *experts = &local->experts;
    const struct model_experts *model = &local->plan->model.experts;
    bool const weight = lower_has_weight(lower), input = lower_has_input(lower);
    uint64_t const logit_bytes = format_bytes(FORMAT_FP32, experts->gate_rows * model->count);
    uint64_t const shard_bytes = lower_activation_bytes(lower, local->block_shard);
    uint64_t const weights = experts->router_inner * model->count;
    uint64_t const gradient = lower_gradient_bytes(lower, weights);
    struct work_matmul const product = {experts->router_rows, experts->router_inner, model->count,
                                        1};
    struct work work = {
        .math_format = local->plan->formats.activations,
        .matmul = {product, product}, /* dW_router, dIn */
        .matmul_count = (uint32_t)weight + input,
        .hbm_read_bytes = logit_bytes,
    };
    if (weight) {
        work.hbm_read_bytes += shard_bytes + (lower_gradient_adds(lower) ? gradient : 0);
        work.hbm_write_bytes += gradient;
    }
    if (input) {
        work.hbm_read_bytes += lower_weight_bytes(lower, weights);
        work.hbm_write_bytes += shard_bytes;
    }
    work.useful_flop = work_matmul_flop(&work);
    uint32_t const op = lower_compute(lower, names[lower->half], &work, 1);
    if (weight) {
        lower_gradient_take(lower, op, lower->layer->place_elements[LOCAL_ROUTER]);
        lower_gradient(lower, op, LOCAL_ROUTER);
        experts_give(lower, EXPERTS_IN, op);
        experts_give(lower, EXPERTS_IN_WHOLE, op);
    }
    if (!input) {
        lower_give(lower, op, PROGRAM_MEMORY_ACTIVATIONS, logit_bytes);
        return op;
    }
    lower_weights_need(lower, op, LOCAL_ROUTER);
    lower_weights_release(lower, op, LOCAL_ROUTER, true);
    experts_give(lower, EXPERTS_GATES, op);
    lower_take(lower, op, PROGRAM_MEMORY_BUFFERS, shard_bytes);
    return op;
}

/* Made again where it was not kept, unless a repetition of the layer did so. */
static void product_give(struct lower *lower, enum experts_tensor product, uint32_t op)
{
    bool const repeated = workload_remat_repeats(lower->local->plan->remat);
    if (!repeated) experts_take(lower, product, LOWER_RECOMPUTE, op);
    experts_give(lower, product, op);
}

/* What ends with the last op that reads it: rows, what lies between the projections, and its
 * gradient. */
static void tensors_give(struct lower *lower, uint32_t op)
{
    lower_give(lower, op, lower_kept_memory(lower),
               lower_matmul_bytes(lower, experts_tmp(lower->local, false))); /* dTmp */
    experts_give(lower, EXPERTS_ROWS, op);
    experts_give(lower, EXPERTS_TMP, op);
    product_give(lower, EXPERTS_PRODUCT, op);
}

/* The same of the shared experts. */
static void shared_give(struct lower *lower, uint32_t op)
{
    if (lower->local->experts.shared_columns == 0) return;
    lower_give(lower, op, lower_kept_memory(lower),
               lower_matmul_bytes(lower, experts_tmp(lower->local, true)));
    experts_give(lower, EXPERTS_SHARED_TMP, op);
    product_give(lower, EXPERTS_SHARED_PRODUCT, op);
}

/* Weight gradients alone: all they read is there, but for what remat has dropped. */
static void weights_backward(struct lower *lower)
{
    uint32_t in = LOWER_NONE;
    uint32_t const again = rows_again(lower, &in);
    (void)shared_backward(lower, in);
    matmuls_backward(lower, LOWER_NONE, again);
    uint32_t const router = router_backward(lower);
    tensors_give(lower, router);
    shared_give(lower, router);
}

void lower_experts_backward(struct lower *lower)
{
    const struct local *local = lower->local;
    bool const shared = local->experts.shared_columns != 0, whole = lower->half == LOWER_WHOLE;
    uint32_t in = LOWER_NONE;
    if (!lower_has_input(lower)) {
        weights_backward(lower);
        return;
    }
    uint32_t const again = rows_again(lower, &in);
    uint32_t const sort_first = lower->build.op_count;
    uint32_t const cast = experts_cast(lower, "moe.dCast", lower->output);
    uint32_t const sorted = experts_dispatch(lower, "dOutputs", "moe.dSum", cast);
    if (lower->output == LOWER_NONE) lower_need_output(lower, sort_first);
    uint32_t const others = shared_backward(lower, in);
    matmuls_backward(lower, sorted, again);
    uint32_t const sum = lower->build.op_count;
    uint32_t const back = experts_combine(lower, "dRows", "moe.dSort");
    if (whole) tensors_give(lower, sum);
    lower_need_done(lower, route_backward(lower), back);
    (void)router_backward(lower);
    uint64_t const shard = local->block_shard, came = experts_sent_shard(lower);
    uint64_t const read = came + shard + (shared ? shard : 0);
    uint32_t const merge =
        experts_vector(lower, "moe.dMerge", read, lower_activation_bytes(lower, read),
                       lower_activation_bytes(lower, shard));
    lower_need_done(lower, merge, back);
    lower_need_done(lower, merge, others);
    lower_give(lower, merge, PROGRAM_MEMORY_BUFFERS,
               lower_activation_bytes(lower, came) + lower_activation_bytes(lower, shard));
    if (shared)
        lower_give(lower, merge, PROGRAM_MEMORY_BUFFERS,
                   lower_activation_bytes(lower, local->block_full));
    if (whole) shared_give(lower, merge);
    uint32_t const norm = lower_norm_backward(lower, "moe.dNorm");
    experts_give(lower, EXPERTS_X, norm);
    lower->output = norm;
}
