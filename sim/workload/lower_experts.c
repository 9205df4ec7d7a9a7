/* The forward pass of a layer's experts. */
#include "sim/workload/lower_experts.h"

#include "sim/base/vector.h"

/* The norm, and In gathered over tp if shared experts read it. Returns the norm; `ret_in`: the op
 * after which the gathered In is there. */
static uint32_t in_forward(struct lower *lower, enum lower_pass pass, uint32_t *ret_in)
{
    const struct local *local = lower->local;
    uint32_t const norm =
        lower_norm(lower, experts_name(lower, "moe.norm", pass), local->plan->formats.activations);
    lower_need_output(lower, norm);
    uint32_t gather = LOWER_NONE;
    if (experts_gather_in(local))
        gather = experts_tp(lower, COLLECTIVE_ALL_GATHER, "moe.In", local->block_full);
    lower_need_done(lower, gather, norm);
    *ret_in = gather != LOWER_NONE ? gather : norm;
    experts_take(lower, EXPERTS_X, pass, norm);
    experts_take(lower, EXPERTS_IN, pass, experts_keep_parts(local) ? norm : *ret_in);
    experts_take(lower, EXPERTS_IN_WHOLE, pass, *ret_in);
    return norm;
}

/* Logits, summed over tp where each chip has a part of D, and the choice of k experts. */
static uint32_t router_forward(struct lower *lower, enum lower_pass pass)
{
    const struct local *local = lower->local;
    const struct local_experts *experts = &local->experts;
    const struct model_experts *model = &local->plan->model.experts;
    uint64_t const logits = experts->gate_rows * model->count;
    uint64_t const logit_bytes = format_bytes(FORMAT_FP32, logits);
    struct work work = {
        .math_format = local->plan->formats.activations,
        .matmul = {{experts->router_rows, experts->router_inner, model->count, 1}},
        .matmul_count = 1,
        .hbm_read_bytes = lower_activation_bytes(lower, local->block_shard) +
                          lower_weight_bytes(lower, experts->router_inner * model->count),
        .hbm_write_bytes = logit_bytes,
    };
    if (pass == LOWER_FORWARD) work.useful_flop = work_matmul_flop(&work);
    uint32_t const scores = lower_compute(lower, experts_name(lower, "moe.Router", pass), &work, 1);
    lower_weights_need(lower, scores, LOCAL_ROUTER);
    if (pass == LOWER_FORWARD) lower_weights_release(lower, scores, LOCAL_ROUTER, false);
    uint32_t sum = LOWER_NONE;
    if (local_sums_logits(local)) {
        uint32_t const plan =
            lower_plan(lower, COLLECTIVE_ALL_REDUCE, &local->mesh->axis[MESH_TP].group, logits,
                       FORMAT_FP32, false);
        sum = lower_collective(lower, LOWER_SUM_LOGITS, "moe.Logits", "tp", plan);
    }
    lower_need_done(lower, sum, scores);
    struct work const choice = {
        .math_format = local->plan->formats.activations,
        .vector_flop = (VECTOR_ROUTE + model->top_k) * logits,
        .hbm_read_bytes = logit_bytes,
        .hbm_write_bytes = logit_bytes,
    };
    uint32_t const route = lower_compute(lower, experts_name(lower, "moe.Route", pass), &choice, 1);
    lower_need_done(lower, route, sum);
    experts_take(lower, EXPERTS_GATES, pass, scores);
    return route;
}

/* The shared experts, and the sum of their parts over tp. Returns the op after which it is there,
 * or LOWER_NONE. */
static uint32_t shared_forward(struct lower *lower, enum lower_pass pass, uint32_t in)
{
    const struct local *local = lower->local;
    bool const useful = pass == LOWER_FORWARD;
    if (local->experts.shared_columns == 0) return LOWER_NONE;
    uint64_t const full_bytes = lower_activation_bytes(lower, local->block_full);
    uint64_t const tmp_bytes = lower_matmul_bytes(lower, experts_tmp(local, true));
    struct work first = experts_matmul(lower, true, false, useful);
    first.hbm_read_bytes =
        full_bytes + lower_weight_bytes(lower, experts_weights(lower, true, false));
    first.hbm_write_bytes = tmp_bytes;
    struct work second = experts_matmul(lower, true, true, useful);
    second.hbm_read_bytes =
        tmp_bytes + lower_weight_bytes(lower, experts_weights(lower, true, true));
    second.hbm_write_bytes = full_bytes;
    if (local->mlp_in_count == 2)
        second.vector_flop = VECTOR_GATE * local->rows * local->experts.shared_columns;
    uint32_t const up =
        lower_compute(lower, experts_name(lower, "shared.Gate,Up", pass), &first, 1);
    lower_need_done(lower, up, in);
    lower_weights_need(lower, up, LOCAL_SHARED_IN);
    experts_take(lower, EXPERTS_SHARED_TMP, pass, up);
    experts_take(lower, EXPERTS_SHARED_PRODUCT, pass, up);
    uint32_t const out = lower_compute(lower, experts_name(lower, "shared.Out", pass), &second, 1);
    lower_weights_need(lower, out, LOCAL_SHARED_OUT);
    if (useful) {
        lower_weights_release(lower, up, LOCAL_SHARED_IN, false);
        lower_weights_release(lower, out, LOCAL_SHARED_OUT, false);
    }
    experts_drop(lower, EXPERTS_SHARED_TMP, pass, out);
    experts_drop(lower, EXPERTS_SHARED_PRODUCT, pass, out);
    lower_take(lower, out, PROGRAM_MEMORY_BUFFERS, full_bytes);
    uint32_t const scatter =
        experts_tp(lower, COLLECTIVE_REDUCE_SCATTER, "shared.Out", local->block_full);
    lower_need_done(lower, scatter, out);
    return scatter != LOWER_NONE ? scatter : out;
}

/* All experts of the chip, each with its rows. */
static void matmuls_forward(struct lower *lower, enum lower_pass pass)
{
    const struct local *local = lower->local;
    const struct local_experts *experts = &local->experts;
    bool const useful = pass == LOWER_FORWARD;
    uint64_t const rows_bytes = lower_matmul_bytes(lower, experts_sorted(lower));
    uint64_t const out_bytes = lower_activation_bytes(lower, experts_sorted(lower));
    uint64_t const tmp_bytes = lower_matmul_bytes(lower, experts_tmp(local, false));
    struct work first = experts_matmul(lower, false, false, useful);
    first.hbm_read_bytes =
        rows_bytes + lower_weight_bytes(lower, experts_weights(lower, false, false));
    first.hbm_write_bytes = tmp_bytes;
    struct work second = experts_matmul(lower, false, true, useful);
    second.hbm_read_bytes =
        tmp_bytes + lower_weight_bytes(lower, experts_weights(lower, false, true));
    second.hbm_write_bytes = out_bytes;
    /* And the router's weight of a row. */
    second.vector_flop =
        (local->mlp_in_count == 2 ? VECTOR_GATE + 1 : 1) * experts->all * experts->columns;
    uint32_t const up =
        lower_compute(lower, experts_name(lower, "experts.Gate,Up", pass), &first, 1);
    lower_weights_need(lower, up, LOCAL_MLP_IN);
    experts_take(lower, EXPERTS_TMP, pass, up);
    experts_take(lower, EXPERTS_PRODUCT, pass, up);
    experts_drop(lower, EXPERTS_ROWS, pass, up);
    uint32_t const out = lower_compute(lower, experts_name(lower, "experts.Out", pass), &second, 1);
    lower_weights_need(lower, out, LOCAL_MLP_OUT);
    if (useful) {
        lower_weights_release(lower, up, LOCAL_MLP_IN, false);
        lower_weights_release(lower, out, LOCAL_MLP_OUT, false);
    }
    experts_drop(lower, EXPERTS_TMP, pass, out);
    experts_drop(lower, EXPERTS_PRODUCT, pass, out);
    lower_take(lower, out, PROGRAM_MEMORY_BUFFERS, out_bytes);
}

void lower_experts_forward(struct lower *lower, enum lower_pass pass)
{
    const struct local *local = lower->local;
    bool const shared = local->experts.shared_columns != 0;
    uint32_t in = LOWER_NONE;
    (void)in_forward(lower, pass, &in);
    uint32_t const route = router_forward(lower, pass);
    uint32_t const cast = experts_cast(lower, experts_name(lower, "moe.Cast", pass), route);
    uint32_t const others = shared_forward(lower, pass, in);
    uint32_t const sort =
        experts_dispatch(lower, "rows", experts_name(lower, "moe.Sort", pass), cast);
    experts_take(lower, EXPERTS_ROWS, pass, sort);
    matmuls_forward(lower, pass);
    uint32_t const back = experts_combine(lower, "outputs", experts_name(lower, "moe.Sum", pass));
    uint64_t const shard = local->block_shard, came = experts_sent_shard(lower);
    uint32_t const merge =
        experts_vector(lower, experts_name(lower, "moe.Merge", pass), came + (shared ? shard : 0),
                       lower_activation_bytes(lower, came + (shared ? shard : 0)),
                       lower_activation_bytes(lower, shard));
    lower_need_done(lower, merge, back);
    lower_need_done(lower, merge, others);
    lower_give(lower, merge, PROGRAM_MEMORY_BUFFERS, lower_activation_bytes(lower, came));
    if (shared)
        lower_give(lower, merge, PROGRAM_MEMORY_BUFFERS,
                   lower_activation_bytes(lower, local->block_full));
    lower_take(lower, merge, PROGRAM_MEMORY_BUFFERS, lower_activation_bytes(lower, shard));
    lower_give(lower, merge, PROGRAM_MEMORY_BUFFERS, lower_activation_bytes(lower, shard));
    experts_drop(lower, EXPERTS_X, pass, merge);
    experts_drop(lower, EXPERTS_IN, pass, merge);
    experts_drop(lower, EXPERTS_IN_WHOLE, pass, merge);
    experts_drop(lower, EXPERTS_GATES, pass, merge);
    lower->output = merge;
}
