/*
 * A block: [norm,] AllGather In, in-projection, [attention,] out-projection, ReduceScatter Out, and
 * its backward pass. Matmuls are as large as one chip's part, rows are tokens.
 *
 * Each array lies in HBM in one format. What only matmuls read is written in theirs; what travels,
 * and what norms and attention read too, in that of the activations, which matmuls convert as they
 * read it, as they do weights.
 *
 * A norm lies on the shard [B_X, D_Y]; the sum of squares of a row, one number a token and chip,
 * travels with the AllGather that follows and is not counted.
 */
#include "sim/base/vector.h"
#include "sim/workload/layout.h"
#include "sim/workload/lower.h"

uint32_t lower_blocks(const struct local *local, struct lower_block ret_blocks[2])
{
    const struct model *model = &local->plan->model;
    bool const llama = local_is_llama(local);
    bool const gated = model->matrices == 3;
    struct lower_block const attention = {
        .prefix = "attention.",
        .name_in = "QKV",
        .name_out = "O",
        .name_grad_in = "dW_QKV",
        .name_grad_out = "dW_O",
        .name_grad_tmp = "dA",
        .in = LOCAL_ATTENTION_IN,
        .out = LOCAL_ATTENTION_OUT,
        .first = true,
        .norm = true,
        .attention = true,
        .in_columns = local->qkv_columns,
        .in_count = 1,
        .in_useful = (model->heads + 2 * model->kv_heads) * model->head_width,
        .out_inner = local->heads * local->value_width,
        .out_useful = model->heads * local->value_width,
    };
    struct lower_block const mlp = {
        .prefix = llama ? "mlp." : "",
        .name_in = gated ? "Gate,Up" : "Tmp",
        .name_out = "Out",
        .name_grad_in = gated ? "dW_gate,up" : "dW_in",
        .name_grad_out = "dW_out",
        .name_grad_tmp = gated ? "dGate,dUp" : "dTmp",
        .in = LOCAL_MLP_IN,
        .out = LOCAL_MLP_OUT,
        .first = !llama,
        .norm = llama,
        .gated = gated,
        .in_columns = local->mlp_columns,
        .in_count = local->mlp_in_count,
        .in_useful = local->mlp_in_count * model->mlp_width,
        .out_inner = local->mlp_columns,
        .out_useful = model->mlp_width,
    };
    if (!llama) {
        ret_blocks[0] = mlp;
        return 1;
    }
    ret_blocks[0] = attention;
    ret_blocks[1] = mlp;
    return 2;
}

static const char *op_name(struct lower *lower, const struct lower_block *block, const char *name,
                           enum lower_pass pass)
{
    return builder_format(&lower->build, "%s%s%s", block->prefix, name,
                          pass == LOWER_RECOMPUTE ? " again" : "");
}

uint32_t lower_norm(struct lower *lower, const char *name, enum format normed)
{
    uint64_t const shard = lower->local->block_shard;
    struct work const work = {
        .math_format = lower->local->plan->formats.activations,
        .vector_flop = VECTOR_NORM * shard,
        .hbm_read_bytes = 2 * lower_activation_bytes(lower, shard), /* x, and what is added */
        .hbm_write_bytes =                                          /* the sum, and its norm */
        lower_activation_bytes(lower, shard) + format_bytes(normed, shard),
    };
    return lower_compute(lower, name, &work, 1);
}

uint32_t lower_norm_alone(struct lower *lower, const char *name, enum format normed)
{
    uint64_t const shard = lower->local->block_shard;
    struct work const work = {
        .math_format = lower->local->plan->formats.activations,
        .vector_flop = VECTOR_NORM_ALONE * shard,
        .hbm_read_bytes = lower_activation_bytes(lower, shard),
        .hbm_write_bytes = format_bytes(normed, shard),
    };
    return lower_compute(lower, name, &work, 1);
}

uint32_t lower_norm_backward(struct lower *lower, const char *name)
{
    uint64_t const shard = lower->local->block_shard;
    struct work const work = {
        .math_format = lower->local->plan->formats.activations,
        .vector_flop = VECTOR_NORM_BACKWARD * shard,
        .hbm_read_bytes = 3 * lower_activation_bytes(lower, shard), /* dIn, x, d residual */
        .hbm_write_bytes = lower_activation_bytes(lower, shard),
    };
    return lower_compute(lower, name, &work, 1);
}

/* The matmul of a projection, in any of the three products it takes part in. */
static struct work projection(const struct lower *lower, const struct lower_block *block, bool out,
                              bool useful)
{
    const struct local *local = lower->local;
    struct work work = {.math_format = local->plan->formats.matmuls, .matmul_count = 1};
    if (out) {
        work.matmul[0] = (struct work_matmul){local->rows, block->out_inner, local->width, 1};
        if (useful)
            work.useful_flop = 2 * local->rows * local->width * block->out_useful / local->tp;
    } else {
        work.matmul[0] =
            (struct work_matmul){local->rows, local->width, block->in_columns, block->in_count};
        if (useful) {
            work.useful_flop = 2 * local->rows * local->width * block->in_useful / local->tp;
        }
    }
    return work;
}

static uint64_t projection_elements(const struct local *local, const struct lower_block *block,
                                    bool out)
{
    return local->width * (out ? block->out_inner : block->in_columns * block->in_count);
}

/* In as it is read; what lies between the projections; what the out-projection multiplies. */
static uint64_t in_bytes(const struct lower *lower, const struct lower_block *block)
{
    return format_bytes(lower_in_format(lower->local, block), lower->local->block_full);
}

static uint64_t tmp_bytes_of(const struct lower *lower, const struct lower_block *block)
{
    return format_bytes(lower_between_format(lower->local, block),
                        lower_tmp_elements(lower->local, block));
}

static uint64_t mid_bytes_of(const struct lower *lower, const struct lower_block *block)
{
    return format_bytes(lower_between_format(lower->local, block),
                        lower_mid_elements(lower->local, block));
}

static void bytes_set(struct work *work, uint64_t read_bytes, uint64_t write_bytes)
{
    work->hbm_read_bytes = read_bytes;
    work->hbm_write_bytes = write_bytes;
}

static void layout_of(const struct lower *lower, const struct lower_block *block,
                      struct layout_block *ret_layout)
{
    (block->attention ? layout_attention : layout_mlp)(lower->local, ret_layout);
}

/* A collective of the whole [B_X, D] over tp, if the product's axes have it. */
static uint32_t tp_plan(struct lower *lower, enum collective_kind kind, uint32_t axes)
{
    const struct local *local = lower->local;
    if ((axes & local->axis_y) == 0) return LOWER_NONE;
    return lower_plan(lower, kind, &local->mesh->axis[MESH_TP].group, local->block_full,
                      local->plan->formats.activations, local->plan->collective_matmul);
}

/* The in-projection with its AllGather. Returns the last op. */
static uint32_t in_forward(struct lower *lower, const struct lower_block *block,
                           const struct layout_block *layout, enum lower_pass pass)
{
    const struct local *local = lower->local;
    bool const useful = pass == LOWER_FORWARD;
    uint32_t norm = LOWER_NONE;
    if (block->norm) {
        /* Of the layer's input the sum is kept. */
        bool const summed =
            pass == LOWER_RECOMPUTE && block->first && local->plan->remat == WORKLOAD_REMAT_BLOCK;
        norm = (summed ? lower_norm_alone : lower_norm)(lower, op_name(lower, block, "norm", pass),
                                                        lower_in_format(local, block));
        lower_need_output(lower, norm);
    }
    uint32_t const plan = tp_plan(lower, COLLECTIVE_ALL_GATHER, layout->in[0].forward.gather_left);
    uint32_t const gather = lower_collective(
        lower, LOWER_GATHER_TP, builder_format(&lower->build, "%sIn", block->prefix), "tp", plan);
    lower_need_done(lower, gather, norm);
    struct work work = projection(lower, block, false, useful);
    bytes_set(&work,
              in_bytes(lower, block) +
                  lower_weight_bytes(lower, projection_elements(local, block, false)),
              tmp_bytes_of(lower, block));
    uint32_t const matmul = lower_compute(lower, op_name(lower, block, block->name_in, pass), &work,
                                          lower_plan_chunks(lower, plan));
    lower_need_chunks(lower, matmul, gather);
    if (!block->norm) lower_need_output(lower, gather != LOWER_NONE ? gather : matmul);
    lower_weights_need(lower, matmul, block->in);
    if (pass == LOWER_FORWARD) lower_weights_release(lower, matmul, block->in, false);

    uint32_t const begin = norm != LOWER_NONE ? norm : gather != LOWER_NONE ? gather : matmul;
    lower_tensor_take(lower, block, LOWER_X, pass, begin);
    uint32_t const whole = gather != LOWER_NONE ? gather : begin;
    lower_tensor_take(lower, block, LOWER_IN, pass, local_keeps_parts(local) ? begin : whole);
    lower_tensor_take(lower, block, LOWER_IN_WHOLE, pass, whole);
    lower_tensor_take(lower, block, LOWER_TMP, pass, matmul);
    lower_tensor_take(lower, block, LOWER_PRODUCT, pass, matmul);
    lower_tensor_drop(lower, block, LOWER_IN, pass, matmul);
    lower_tensor_drop(lower, block, LOWER_IN_WHOLE, pass, matmul);
    return matmul;
}

/* The out-projection with its ReduceScatter, which ends the block. */
static void out_forward(struct lower *lower, const struct lower_block *block,
                        const struct layout_block *layout, enum lower_pass pass, uint32_t middle)
{
    const struct local *local = lower->local;
    uint64_t const full_bytes = lower_activation_bytes(lower, local->block_full);
    uint32_t const plan = tp_plan(lower, COLLECTIVE_REDUCE_SCATTER, layout->out.forward.scatter);
    struct work work = projection(lower, block, true, pass == LOWER_FORWARD);
    bytes_set(&work,
              mid_bytes_of(lower, block) +
                  lower_weight_bytes(lower, projection_elements(local, block, true)),
              full_bytes);
    if (block->gated) work.vector_flop = VECTOR_GATE * local->rows * block->out_inner;
    uint32_t const matmul = lower_compute(lower, op_name(lower, block, block->name_out, pass),
                                          &work, lower_plan_chunks(lower, plan));
    lower_need_done(lower, matmul, middle);
    lower_weights_need(lower, matmul, block->out);
    if (pass == LOWER_FORWARD) lower_weights_release(lower, matmul, block->out, false);
    uint32_t const scatter = lower_collective(
        lower, LOWER_REDUCE_TP, builder_format(&lower->build, "%sOut", block->prefix), "tp", plan);
    lower_operand(lower, scatter, matmul);
    lower->output = scatter != LOWER_NONE ? scatter : matmul;

    lower_take(lower, matmul, PROGRAM_MEMORY_BUFFERS, full_bytes);
    lower_give(lower, lower->output, PROGRAM_MEMORY_BUFFERS, full_bytes);
    lower_tensor_drop(lower, block, LOWER_X, pass, lower->output);
    lower_tensor_drop(lower, block, LOWER_TMP, pass, matmul);
    lower_tensor_drop(lower, block, LOWER_PRODUCT, pass, matmul);
    lower_tensor_drop(lower, block, LOWER_MID, pass, matmul);
    lower_tensor_drop(lower, block, LOWER_KV, pass, matmul);
}

void lower_block_forward(struct lower *lower, const struct lower_block *block, enum lower_pass pass)
{
    struct layout_block layout;
    layout_of(lower, block, &layout);
    uint32_t const in = in_forward(lower, block, &layout, pass);
    uint32_t const middle = block->attention ? lower_attention_forward(lower, block, pass, in) : in;
    out_forward(lower, block, &layout, pass, middle);
}

/* dW of the out-projection: the first of the two gradients waits for dOut. */
static uint32_t out_weight(struct lower *lower, const struct lower_block *block, uint32_t chunks)
{
    const struct local *local = lower->local;
    uint64_t const full_bytes = lower_activation_bytes(lower, local->block_full);
    uint64_t const mid_bytes = mid_bytes_of(lower, block);
    uint64_t const gradient_bytes =
        lower_gradient_bytes(lower, projection_elements(local, block, true));
    struct work work = projection(lower, block, true, true);
    bytes_set(&work, mid_bytes + full_bytes + (lower_gradient_adds(lower) ? gradient_bytes : 0),
              gradient_bytes);
    if (block->gated) work.vector_flop = VECTOR_GATE * local->rows * block->out_inner;
    return lower_compute(lower, op_name(lower, block, block->name_grad_out, LOWER_FORWARD), &work,
                         chunks);
}

/* dTmp, or dA of attention. */
static uint32_t out_input(struct lower *lower, const struct lower_block *block, uint32_t chunks)
{
    const struct local *local = lower->local;
    uint64_t const full_bytes = lower_activation_bytes(lower, local->block_full);
    uint64_t const mid_bytes = mid_bytes_of(lower, block);
    uint64_t const weights = projection_elements(local, block, true);
    struct work work = projection(lower, block, true, true);
    bytes_set(&work,
              full_bytes + lower_weight_bytes(lower, weights) + (block->gated ? mid_bytes : 0),
              mid_bytes);
    if (block->gated) work.vector_flop = VECTOR_GATE_BACKWARD * local->rows * block->out_inner;
    return lower_compute(lower, op_name(lower, block, block->name_grad_tmp, LOWER_FORWARD), &work,
                         chunks);
}

static void out_weight_done(struct lower *lower, const struct lower_block *block, uint32_t op)
{
    lower_gradient_take(lower, op, lower->layer->place_elements[block->out]);
    lower_gradient(lower, op, block->out);
    bool const repeated = workload_remat_repeats(lower->local->plan->remat);
    if (!repeated) lower_tensor_take(lower, block, LOWER_PRODUCT, LOWER_RECOMPUTE, op);
    lower_tensor_give(lower, block, LOWER_PRODUCT, op);
    if (lower->half == LOWER_WEIGHT && block->attention)
        lower_tensor_give(lower, block, LOWER_MID, op);
}

static void out_input_done(struct lower *lower, const struct lower_block *block, uint32_t op)
{
    lower_weights_need(lower, op, block->out);
    lower_weights_release(lower, op, block->out, true);
    /* The gradient that attention's own backward pass reads is of no use to dW. */
    lower_take(lower, op, block->attention ? PROGRAM_MEMORY_BUFFERS : lower_kept_memory(lower),
               mid_bytes_of(lower, block));
}

/* Backward of the out-projection: dOut gathered, dW_out and dTmp in the order that is asked for.
 * `middle`: the op that gives what it multiplies again. Returns what gives dTmp, or LOWER_NONE. */
static uint32_t out_backward(struct lower *lower, const struct lower_block *block,
                             const struct layout_block *layout, uint32_t middle)
{
    const struct local *local = lower->local;
    bool const dx_first = local->plan->backward_order == WORKLOAD_BACKWARD_DX_FIRST;
    uint64_t const full_bytes = lower_activation_bytes(lower, local->block_full);
    uint32_t gather = LOWER_NONE, chunks = 1, first = LOWER_NONE, last = LOWER_NONE;
    uint32_t input = LOWER_NONE;
    if (lower_has_input(lower)) {
        uint32_t const plan = tp_plan(lower, COLLECTIVE_ALL_GATHER, layout->out.d_left.gather_left);
        gather =
            lower_collective(lower, LOWER_GATHER_TP,
                             builder_format(&lower->build, "%sdOut", block->prefix), "tp", plan);
        lower_need_output(lower, gather);
        chunks = lower_plan_chunks(lower, plan);
    }
    for (uint32_t i = 0; i < 2; i++) {
        bool const is_weight = dx_first ? i == 1 : i == 0;
        if (!(is_weight ? lower_has_weight(lower) : lower_has_input(lower))) continue;
        last = (is_weight ? out_weight : out_input)(lower, block, first == LOWER_NONE ? chunks : 1);
        if (is_weight)
            lower_need_done(lower, last, middle);
        else
            input = last;
        if (first == LOWER_NONE) {
            first = last;
            lower_need_chunks(lower, first, gather);
            if (gather == LOWER_NONE && lower_has_input(lower) && lower->output == LOWER_NONE)
                lower_need_output(lower, first);
            if (lower_has_input(lower)) {
                lower_take(lower, gather != LOWER_NONE ? gather : first, lower_kept_memory(lower),
                           full_bytes);
            }
        }
        if (last != first || lower->half == LOWER_WEIGHT)
            lower_give(lower, last, lower_kept_memory(lower), full_bytes);
        (is_weight ? out_weight_done : out_input_done)(lower, block, last);
    }
    return input;
}

/* dW of the in-projection. `regather`: In was not kept whole, and is gathered again. */
static uint32_t in_weight(struct lower *lower, const struct lower_block *block, uint32_t regather)
{
    const struct local *local = lower->local;
    uint64_t const tmp_bytes = tmp_bytes_of(lower, block);
    uint64_t const gradient_bytes =
        lower_gradient_bytes(lower, projection_elements(local, block, false));
    struct work work = projection(lower, block, false, true);
    bytes_set(&work,
              in_bytes(lower, block) + tmp_bytes +
                  (lower_gradient_adds(lower) ? gradient_bytes : 0),
              gradient_bytes);
    uint32_t const op =
        lower_compute(lower, op_name(lower, block, block->name_grad_in, LOWER_FORWARD), &work, 1);
    lower_need_done(lower, op, regather);
    lower_gradient_take(lower, op, lower->layer->place_elements[block->in]);
    lower_gradient(lower, op, block->in);
    lower_tensor_give(lower, block, LOWER_IN, op);
    lower_tensor_give(lower, block, LOWER_IN_WHOLE, op);
    return op;
}

/* dIn, which feeds its ReduceScatter. */
static uint32_t in_input(struct lower *lower, const struct lower_block *block,
                         const struct layout_block *layout)
{
    const struct local *local = lower->local;
    uint64_t const full_bytes = lower_activation_bytes(lower, local->block_full);
    uint64_t const tmp_bytes = tmp_bytes_of(lower, block);
    uint64_t const weights = projection_elements(local, block, false);
    uint32_t const plan = tp_plan(lower, COLLECTIVE_REDUCE_SCATTER, layout->in[0].d_left.scatter);
    struct work work = projection(lower, block, false, true);
    bytes_set(&work, tmp_bytes + lower_weight_bytes(lower, weights), full_bytes);
    uint32_t const op = lower_compute(lower, op_name(lower, block, "dIn", LOWER_FORWARD), &work,
                                      lower_plan_chunks(lower, plan));
    lower_weights_need(lower, op, block->in);
    lower_weights_release(lower, op, block->in, true);
    uint32_t const scatter = lower_collective(
        lower, LOWER_REDUCE_TP, builder_format(&lower->build, "%sdIn", block->prefix), "tp", plan);
    lower_operand(lower, scatter, op);
    lower->output = scatter != LOWER_NONE ? scatter : op;
    lower_take(lower, op, PROGRAM_MEMORY_BUFFERS, full_bytes);
    lower_give(lower, lower->output, PROGRAM_MEMORY_BUFFERS, full_bytes);
    return op;
}

/* What ends with the block's last matmul: attention's Q, K and V are of no use to dW_QKV. */
static void in_give(struct lower *lower, const struct lower_block *block, uint32_t last)
{
    uint64_t const tmp_bytes = tmp_bytes_of(lower, block);
    bool const tmp_ends = block->attention ? lower_has_input(lower) : lower_has_weight(lower);
    if (lower_has_weight(lower)) lower_give(lower, last, lower_kept_memory(lower), tmp_bytes);
    if (tmp_ends) lower_tensor_give(lower, block, LOWER_TMP, last);
    if (!block->norm && lower_has_weight(lower)) lower_tensor_give(lower, block, LOWER_X, last);
}

/* Backward of the in-projection. `before`: the op after which dTmp is whole, dK and dV summed. */
static void in_backward(struct lower *lower, const struct lower_block *block,
                        const struct layout_block *layout, uint32_t regather, uint32_t before)
{
    bool const dx_first = lower->local->plan->backward_order == WORKLOAD_BACKWARD_DX_FIRST;
    uint32_t last = LOWER_NONE;
    for (uint32_t i = 0; i < 2; i++) {
        bool const is_weight = dx_first ? i == 1 : i == 0;
        if (!(is_weight ? lower_has_weight(lower) : lower_has_input(lower))) continue;
        bool const first = last == LOWER_NONE;
        last = is_weight ? in_weight(lower, block, regather) : in_input(lower, block, layout);
        if (first) lower_need_done(lower, last, before);
    }
    in_give(lower, block, last);
    if (!block->norm || !lower_has_input(lower)) return;
    uint32_t const norm = lower_norm_backward(lower, op_name(lower, block, "dNorm", LOWER_FORWARD));
    lower_need_done(lower, norm, lower->output);
    lower->output = norm;
    lower_tensor_give(lower, block, LOWER_X, norm);
}

/* With big_matmuls, In is computed again from the block's input: the norm and the AllGather; with
 * norms, where there is one. Of parts that were kept, In is gathered again. */
static uint32_t in_again(struct lower *lower, const struct lower_block *block,
                         const struct layout_block *layout)
{
    enum workload_remat const remat = lower->local->plan->remat;
    bool const parts = local_keeps_parts(lower->local);
    bool const again =
        remat == WORKLOAD_REMAT_BIG_MATMULS || (remat == WORKLOAD_REMAT_NORMS && block->norm);
    if (!again && !parts) return LOWER_NONE;
    uint32_t norm = LOWER_NONE;
    if (block->norm && !parts)
        norm = lower_norm(lower, op_name(lower, block, "norm", LOWER_RECOMPUTE),
                          lower_in_format(lower->local, block));
    uint32_t const plan = tp_plan(lower, COLLECTIVE_ALL_GATHER, layout->in[0].d_weight.gather_left);
    uint32_t const gather = lower_collective(
        lower, LOWER_GATHER_TP, builder_format(&lower->build, "%sIn", block->prefix), "tp", plan);
    if (norm != LOWER_NONE) {
        lower_need_done(lower, gather, norm);
    } else {
        lower_need_before(lower, gather, LOWER_COMPUTE, PROGRAM_REASON_ORDER);
    }
    lower_tensor_take(lower, block, parts ? LOWER_IN_WHOLE : LOWER_IN, LOWER_RECOMPUTE,
                      gather != LOWER_NONE ? gather : norm);
    return gather;
}

void lower_block_backward(struct lower *lower, const struct lower_block *block)
{
    struct layout_block layout;
    layout_of(lower, block, &layout);
    enum workload_remat const remat = lower->local->plan->remat;
    bool const reads = lower_has_input(lower);
    bool const again = reads && block->attention && remat == WORKLOAD_REMAT_BIG_MATMULS;
    uint32_t const middle =
        again ? lower_attention_forward(lower, block, LOWER_RECOMPUTE, LOWER_NONE) : LOWER_NONE;
    uint32_t const d_middle = out_backward(lower, block, &layout, middle);
    uint32_t const regather =
        lower_has_weight(lower) ? in_again(lower, block, &layout) : LOWER_NONE;
    uint32_t const before =
        reads && block->attention ? lower_attention_backward(lower, block, d_middle) : LOWER_NONE;
    in_backward(lower, block, &layout, regather, before);
}
