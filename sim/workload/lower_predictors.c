/*
 * A module that predicts a further token (local_predictors.c), as one slot: lookup, norms and
 * projection; a layer; norm, head and loss. Those of the forward pass come before the model's own
 * head, as in Megatron, where all losses end the forward pass, and so behind it in the backward
 * pass: the gradient of the model's last layer is the sum of both, and so it is from module to
 * module. A pipeline may have its modules on a stage before the head's: then norm, head and loss
 * are slots of that stage, to which go what all modules and the model's last layer give.
 *
 * The projection is W_mtp[2D, D_Y], whose inputs are gathered over tp, as Megatron's is: what comes
 * out is [B_X, D_Y], as between blocks. Where that is split by tokens, it is gathered once more and
 * each rank takes its tokens.
 *
 * With remat the two inputs are kept, and the layer's: norms, and the AllGather behind them, come
 * again, but not the projection. What a norm adds up in a row of layers has been charged to the
 * head's norm, so the norm of the hidden state stands alone.
 */
#include "sim/base/vector.h"
#include "sim/workload/lower.h"

static struct local_unit own_unit(const struct local *local)
{
    return (struct local_unit){.name = "W_mtp", .elements = local->predictor_elements};
}

uint32_t lower_predictor_units(const struct local *local,
                               struct local_unit ret_units[LOWER_PREDICTOR_UNITS_MAX])
{
    const struct local_layer *layer = &local->layer[local_last_kind(local)];
    uint32_t count = 0;
    for (; count < layer->unit_count; count++) ret_units[count] = layer->unit[count];
    ret_units[count++] = own_unit(local);
    return count;
}

static bool keeps_pair(const struct local *local)
{
    return local->plan->remat == WORKLOAD_REMAT_NONE;
}

static bool turns_tokens(const struct local *local)
{
    return local->tp > 1 && local->plan->activations == WORKLOAD_ACTIVATIONS_TOKENS;
}

static uint64_t shard_bytes(const struct lower *lower)
{
    return lower_activation_bytes(lower, lower->local->block_shard);
}

/* Of both inputs, normed, side by side: [B_X, 2D]; */
static uint64_t pair_bytes(const struct lower *lower)
{
    return format_bytes(local_normed_format(lower->local), 2 * lower->local->block_full);
}

/* what of them a rank keeps, */
static uint64_t kept_pair_bytes(const struct lower *lower)
{
    const struct local *local = lower->local;
    uint64_t const elements = local_keeps_parts(local) ? local->block_shard : local->block_full;
    return keeps_pair(local) ? format_bytes(local_normed_format(local), 2 * elements) : 0;
}

/* and what it has only while a pass reads it; */
static uint64_t whole_pair_bytes(const struct lower *lower)
{
    bool const whole = keeps_pair(lower->local) && !local_keeps_parts(lower->local);
    return whole ? 0 : pair_bytes(lower);
}

/* of their gradients. */
static uint64_t d_pair_bytes(const struct lower *lower)
{
    return lower_activation_bytes(lower, 2 * lower->local->block_full);
}

static uint32_t over_tp(struct lower *lower, enum collective_kind kind, enum lower_stream stream,
                        const char *what, uint64_t elements)
{
    const struct local *local = lower->local;
    uint32_t const plan = lower_plan(lower, kind, &local->mesh->axis[MESH_TP].group, elements,
                                     local->plan->formats.activations, false);
    return lower_collective(lower, stream, what, "tp", plan);
}

static uint32_t norm_alone(struct lower *lower, const char *name)
{
    return lower_norm_alone(lower, name, local_normed_format(lower->local));
}

/* The projection, in any of the products that it takes part in. */
static struct work projection(const struct lower *lower)
{
    const struct local *local = lower->local;
    struct work work = {
        .matmul = {{local->rows, 2 * local->width, local->width / local->tp, 1}},
        .matmul_count = 1,
        .math_format = local->plan->formats.matmuls,
    };
    work.useful_flop = work_matmul_flop(&work);
    return work;
}

static uint64_t matrix_elements(const struct local *local)
{
    return 2 * local->width * (local->width / local->tp);
}

/* From [B_X, D_Y] to [B_XY, D], or back: all of it is gathered, and a part of it taken. */
static uint32_t tokens_turn(struct lower *lower, const char *what, uint32_t source)
{
    uint64_t const elements = lower->local->block_full;
    uint32_t const op = over_tp(lower, COLLECTIVE_ALL_GATHER, LOWER_GATHER_TP, what, elements);
    lower_need_done(lower, op, source);
    lower_take(lower, op, PROGRAM_MEMORY_BUFFERS, lower_activation_bytes(lower, elements));
    lower_give(lower, op, PROGRAM_MEMORY_BUFFERS, lower_activation_bytes(lower, elements));
    return op;
}

static void join_forward(struct lower *lower)
{
    const struct local *local = lower->local;
    struct local_unit const unit = own_unit(local);
    uint32_t const rows = lower_predictor_lookup(lower);
    uint32_t const weights = lower_unit_gather(lower, &unit);
    uint32_t const hidden = norm_alone(lower, "mtp.hnorm");
    lower_need_output(lower, hidden);
    uint32_t const embedded = norm_alone(lower, "mtp.enorm");
    lower_need_done(lower, embedded, rows);
    uint32_t const gather =
        over_tp(lower, COLLECTIVE_ALL_GATHER, LOWER_GATHER_TP, "mtp.In", 2 * local->block_full);
    lower_need_done(lower, gather, embedded);
    struct work work = projection(lower);
    work.hbm_read_bytes = pair_bytes(lower) + lower_weight_bytes(lower, matrix_elements(local));
    work.hbm_write_bytes = shard_bytes(lower);
    uint32_t const op = lower_compute(lower, "mtp.Project", &work, 1);
    lower_need_done(lower, op, gather);
    lower_need_done(lower, op, weights);
    if (weights != LOWER_NONE && local->shards > 1)
        lower_give(lower, op, PROGRAM_MEMORY_GATHERED, lower_weight_bytes(lower, unit.elements));
    lower_take(lower, hidden, PROGRAM_MEMORY_ACTIVATIONS, shard_bytes(lower));
    lower_take(lower, embedded, PROGRAM_MEMORY_ACTIVATIONS, shard_bytes(lower));
    uint32_t const whole = gather != LOWER_NONE ? gather : hidden;
    lower_take(lower, local_keeps_parts(local) ? hidden : whole, PROGRAM_MEMORY_ACTIVATIONS,
               kept_pair_bytes(lower));
    lower_take(lower, whole, PROGRAM_MEMORY_BUFFERS,
               whole_pair_bytes(lower));
    lower_give(lower, op, PROGRAM_MEMORY_BUFFERS, whole_pair_bytes(lower));
    lower->output = op;
    if (!turns_tokens(local)) return;
    lower->output = tokens_turn(lower, "mtp.Out", op);
}

/* The norms' results once more, or what is gathered of them, for the weight gradient. Returns what
 * they are there after, or LOWER_NONE. */
static uint32_t pair_again(struct lower *lower)
{
    bool const kept = keeps_pair(lower->local);
    uint32_t hidden = LOWER_NONE, embedded = LOWER_NONE;
    if (kept && !local_keeps_parts(lower->local)) return LOWER_NONE;
    if (!kept) {
        hidden = norm_alone(lower, "mtp.hnorm again");
        embedded = norm_alone(lower, "mtp.enorm again");
    }
    uint32_t const gather = over_tp(lower, COLLECTIVE_ALL_GATHER, LOWER_GATHER_TP, "mtp.In",
                                    2 * lower->local->block_full);
    if (kept)
        lower_need_before(lower, gather, LOWER_COMPUTE, PROGRAM_REASON_ORDER);
    else
        lower_need_done(lower, gather, embedded);
    lower_take(lower, gather != LOWER_NONE ? gather : hidden, PROGRAM_MEMORY_BUFFERS,
               whole_pair_bytes(lower));
    return gather;
}

static uint32_t project_weight(struct lower *lower, uint32_t d_out)
{
    const struct local *local = lower->local;
    struct local_unit const unit = own_unit(local);
    uint64_t const gradient_bytes = lower_gradient_bytes(lower, matrix_elements(local));
    uint32_t const again = pair_again(lower);
    struct work work = projection(lower);
    work.hbm_read_bytes =
        pair_bytes(lower) + shard_bytes(lower) + (lower_gradient_adds(lower) ? gradient_bytes : 0);
    work.hbm_write_bytes = gradient_bytes;
    uint32_t const op = lower_compute(lower, "mtp.dW", &work, 1);
    lower_need_done(lower, op, again);
    lower_need_done(lower, op, d_out);
    lower_gradient_take(lower, op, unit.elements);
    lower_unit_reduce(lower, &unit, op);
    lower_give(lower, op, PROGRAM_MEMORY_BUFFERS, whole_pair_bytes(lower));
    lower_give(lower, op, PROGRAM_MEMORY_ACTIVATIONS, kept_pair_bytes(lower));
    return op;
}

static uint32_t project_input(struct lower *lower, uint32_t d_out, uint32_t weights)
{
    const struct local *local = lower->local;
    struct work work = projection(lower);
    work.hbm_read_bytes = shard_bytes(lower) + lower_weight_bytes(lower, matrix_elements(local));
    work.hbm_write_bytes = d_pair_bytes(lower);
    uint32_t const op = lower_compute(lower, "mtp.dIn", &work, 1);
    lower_need_done(lower, op, d_out);
    lower_need_done(lower, op, weights);
    if (weights != LOWER_NONE)
        lower_give(lower, op, PROGRAM_MEMORY_GATHERED,
                   lower_weight_bytes(lower, local->predictor_elements));
    uint32_t const scatter = over_tp(lower, COLLECTIVE_REDUCE_SCATTER, LOWER_REDUCE_TP, "mtp.dIn",
                                     2 * local->block_full);
    lower_need_done(lower, scatter, op);
    lower->output = scatter != LOWER_NONE ? scatter : op;
    lower_take(lower, op, PROGRAM_MEMORY_BUFFERS, d_pair_bytes(lower));
    lower_give(lower, lower->output, PROGRAM_MEMORY_BUFFERS, d_pair_bytes(lower));
    return op;
}

/* Both norms backwards; that of the hidden state adds the gradient that its other uses have left.
 * Returns the op that gives the lookup's. */
static uint32_t norms_backward(struct lower *lower)
{
    struct work const work = {
        .math_format = lower->local->plan->formats.activations,
        .vector_flop = VECTOR_NORM_ALONE_BACKWARD * lower->local->block_shard,
        .hbm_read_bytes = 2 * shard_bytes(lower), /* dIn, x */
        .hbm_write_bytes = shard_bytes(lower),
    };
    uint32_t const embedded = lower_compute(lower, "mtp.dENorm", &work, 1);
    lower_need_done(lower, embedded, lower->output);
    lower->output = lower_norm_backward(lower, "mtp.dHNorm");
    lower_take(lower, embedded, lower_kept_memory(lower), shard_bytes(lower));
    return embedded;
}

/* What the norms read is given back behind them, and by the last weight gradient that needs it. */
static void inputs_give(struct lower *lower, uint32_t op)
{
    bool const reads = keeps_pair(lower->local) ? lower_has_input(lower) : lower_has_weight(lower);
    if (reads) lower_give(lower, op, PROGRAM_MEMORY_ACTIVATIONS, 2 * shard_bytes(lower));
}

static void join_backward(struct lower *lower, struct lower_place place, uint32_t weights)
{
    const struct local *local = lower->local;
    bool const dx_first = local->plan->backward_order == WORKLOAD_BACKWARD_DX_FIRST;
    uint32_t d_out = LOWER_NONE, first = LOWER_NONE, last = LOWER_NONE, embedded = LOWER_NONE;
    if (lower_has_input(lower)) d_out = lower->output;
    if (lower_has_input(lower) && turns_tokens(local))
        d_out = tokens_turn(lower, "mtp.dOut", d_out);
    for (uint32_t i = 0; i < 2; i++) {
        bool const is_weight = dx_first ? i == 1 : i == 0;
        if (!(is_weight ? lower_has_weight(lower) : lower_has_input(lower))) continue;
        last = is_weight ? project_weight(lower, d_out) : project_input(lower, d_out, weights);
        if (first == LOWER_NONE) first = last;
    }
    if (lower_has_input(lower))
        lower_take(lower, first, lower_kept_memory(lower), shard_bytes(lower));
    if (lower_has_weight(lower))
        lower_give(lower, last, lower_kept_memory(lower), shard_bytes(lower));
    if (lower_has_input(lower)) {
        embedded = norms_backward(lower);
        last = lower->output;
    }
    inputs_give(lower, last);
    if (!lower_has_weight(lower)) return;
    uint32_t const rows = lower_predictor_lookup_backward(lower, place, embedded);
    lower_give(lower, rows, lower_kept_memory(lower), shard_bytes(lower));
}

void lower_predictor_forward(struct lower *lower, struct lower_place place)
{
    lower->layer = &lower->local->layer[local_last_kind(lower->local)];
    join_forward(lower);
    lower_layer_forward(lower, /* top= */ true);
    if (!lower->local->predictors_apart) lower_predictor_head_forward(lower, place);
}

void lower_predictor_backward(struct lower *lower, struct lower_place place)
{
    static const struct lower_behind no_update = {0};
    struct local_unit const unit = own_unit(lower->local);
    lower->layer = &lower->local->layer[local_last_kind(lower->local)];
    if (!lower->local->predictors_apart) lower_predictor_head_backward(lower, place);
    lower_layer_backward(lower, /* top= */ true, &no_update);
    uint32_t const weights = lower_has_input(lower) ? lower_unit_gather(lower, &unit) : LOWER_NONE;
    join_backward(lower, place, weights);
}
