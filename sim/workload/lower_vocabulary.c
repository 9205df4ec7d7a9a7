/*
 * The embedding before the layers, and the final norm, the head and the loss after them.
 *
 * Both matrices lie as [V_Y, D_X], so that tied ones are the same array. A rank of tp looks up the
 * tokens of its part of the vocabulary; the rows of the others are zero, so the lookup ends in a
 * ReduceScatter like a block, and the head begins with an AllGather. What the loss needs of the
 * other ranks, a maximum and a sum for each token, travels with the next collective.
 *
 * The head is not recomputed: its backward pass follows at once, with weights and logits still
 * there. Tied gradients are summed on the chip and reduced once, after the embedding's.
 */
#include "sim/workload/lower.h"
#include "sim/workload/vector.h"

struct local_unit lower_embedding_unit(const struct local *local)
{
    return (struct local_unit){.name = "W_embedding",
                               .elements = local->vocabulary_elements + local->position_elements +
                                           (local->tied ? local->norm_elements : 0)};
}

struct local_unit lower_head_unit(const struct local *local)
{
    if (local->tied) return lower_embedding_unit(local);
    return (struct local_unit){.name = "W_head",
                               .elements = local->vocabulary_elements + local->norm_elements};
}

/* A collective of the whole [B_X, D] over tp. */
static uint32_t tp_plan(struct lower *lower, enum collective_kind kind, bool chunked)
{
    return lower_plan(lower, kind, &lower->local->mesh->axis[MESH_TP].group,
                      lower->local->block_full, lower->local->plan->formats.activations,
                      chunked && lower->local->plan->collective_matmul);
}

/* The gather of a unit that is of no layer, or LOWER_NONE. */
static uint32_t unit_gather(struct lower *lower, const struct local_unit *unit)
{
    uint32_t const before = lower->op_count;
    lower_units_gather(lower, unit, 1, false);
    return lower->op_count > before ? before : LOWER_NONE;
}

void lower_embedding_forward(struct lower *lower)
{
    const struct local *local = lower->local;
    struct local_unit const unit = lower_embedding_unit(local);
    uint64_t const full_bytes = lower_activation_bytes(lower, local->block_full);
    uint32_t const gather = unit_gather(lower, &unit);
    struct work const work = {
        .math_format = local->plan->formats.activations,
        .hbm_read_bytes = /* The rows it has, and those by position. */
        lower_weight_bytes(lower, local->block_shard + local->position_elements),
        .hbm_write_bytes = full_bytes,
    };
    uint32_t const op = lower_compute(lower, "embedding.lookup", &work, 1);
    lower_need_done(lower, op, gather);
    if (gather != LOWER_NONE && lower->keeping == LOWER_GATHERS) {
        lower_give(lower, op, PROGRAM_MEMORY_GATHERED, lower_weight_bytes(lower, unit.elements));
    }
    uint32_t const plan = tp_plan(lower, COLLECTIVE_REDUCE_SCATTER, false);
    uint32_t const scatter = lower_collective(lower, LOWER_REDUCE_TP, "embedding.Out", "tp", plan);
    lower_need_done(lower, scatter, op);
    lower_take(lower, op, PROGRAM_MEMORY_BUFFERS, full_bytes);
    lower->output = scatter != LOWER_NONE ? scatter : op;
    lower_give(lower, lower->output, PROGRAM_MEMORY_BUFFERS, full_bytes);
}

void lower_embedding_backward(struct lower *lower, const struct lower_behind *update)
{
    const struct local *local = lower->local;
    struct local_unit const unit = lower_embedding_unit(local);
    bool const tied = local->tied;
    uint64_t const full_bytes = lower_activation_bytes(lower, local->block_full);
    uint64_t const rows_bytes = lower_gradient_bytes(lower, local->block_shard);
    uint32_t const plan = tp_plan(lower, COLLECTIVE_ALL_GATHER, false);
    uint32_t const gather = lower_collective(lower, LOWER_GATHER_TP, "embedding.dOut", "tp", plan);
    lower_need_output(lower, gather);
    /* A scatter-add: the rows of this part of the vocabulary are read and written where they lie,
     * in an array that is first set to zero, unless the head or a microbatch has left its own. */
    bool const adds = tied || lower_gradient_adds(lower);
    uint64_t const zero_bytes = adds ? 0 : lower_gradient_bytes(lower, local->vocabulary_elements);
    uint64_t const position_bytes = lower_gradient_bytes(lower, local->position_elements);
    uint64_t const kept_bytes = lower_gradient_adds(lower) ? position_bytes : 0;
    struct work const work = {
        .math_format = local->plan->formats.activations,
        .vector_flop = local->block_shard,
        .hbm_read_bytes =
            lower_activation_bytes(lower, local->block_shard) + rows_bytes + kept_bytes,
        .hbm_write_bytes = rows_bytes + zero_bytes + position_bytes,
    };
    /* Not read here; but later passes do not gather it again. */
    uint32_t const weights = lower->keeping == LOWER_TAKES ? unit_gather(lower, &unit) : LOWER_NONE;
    uint32_t const op = lower_compute(lower, "embedding.dW", &work, 1);
    lower_need_done(lower, op, gather);
    if (gather == LOWER_NONE) lower_need_output(lower, op);
    lower_need_done(lower, op, weights);
    lower_take(lower, gather != LOWER_NONE ? gather : op, PROGRAM_MEMORY_BUFFERS, full_bytes);
    lower_give(lower, op, PROGRAM_MEMORY_BUFFERS, full_bytes);
    if (!tied) lower_gradient_take(lower, op, unit.elements);
    lower_unit_reduce(lower, &unit, op);
    lower_update_behind(lower, update);
}

static struct work head_work(const struct lower *lower)
{
    const struct local *local = lower->local;
    struct work work = {
        .matmul = {{local->rows, local->width, local->vocabulary, 1}},
        .matmul_count = 1,
        .math_format = local->plan->formats.activations,
    };
    work.useful_flop = 2 * local->rows * local->width * local->plan->model.vocabulary / local->tp;
    return work;
}

/* The head's backward pass follows its forward pass at once, unless a pipeline's schedule has other
 * passes between them. */
static bool head_keeps_weights(const struct local *local)
{
    return local->shards == 1 || local->pp == 1;
}

void lower_head_forward(struct lower *lower)
{
    const struct local *local = lower->local;
    struct local_unit const unit = lower_head_unit(local);
    uint64_t const full_bytes = lower_activation_bytes(lower, local->block_full);
    uint64_t const logits = local->rows * local->vocabulary;
    uint64_t const logit_bytes = lower_activation_bytes(lower, logits);
    uint32_t const weights = unit_gather(lower, &unit);
    uint32_t const norm = lower_norm(lower, "head.norm");
    lower_need_output(lower, norm);
    uint32_t const plan = tp_plan(lower, COLLECTIVE_ALL_GATHER, true);
    uint32_t const gather = lower_collective(lower, LOWER_GATHER_TP, "head.In", "tp", plan);
    lower_need_done(lower, gather, norm);
    struct work work = head_work(lower);
    work.hbm_read_bytes = full_bytes + lower_weight_bytes(lower, local->vocabulary_elements);
    work.hbm_write_bytes = logit_bytes;
    uint32_t const matmul =
        lower_compute(lower, "head.Logits", &work, lower_plan_chunks(lower, plan));
    lower_need_chunks(lower, matmul, gather);
    lower_need_done(lower, matmul, weights);
    struct work const loss_work = {
        .math_format = local->plan->formats.activations,
        .vector_flop = VECTOR_LOSS * logits,
        .hbm_read_bytes = logit_bytes,
        .hbm_write_bytes = logit_bytes, /* dLogits in their place. */
    };
    (void)lower_compute(lower, "head.Loss", &loss_work, 1);
    lower_take(lower, norm, PROGRAM_MEMORY_BUFFERS,
               lower_activation_bytes(lower, local->block_shard));
    lower_take(lower, gather != LOWER_NONE ? gather : norm, PROGRAM_MEMORY_BUFFERS, full_bytes);
    lower_take(lower, matmul, PROGRAM_MEMORY_BUFFERS, logit_bytes);
    if (!head_keeps_weights(local) && lower->keeping == LOWER_GATHERS)
        lower_give(lower, matmul, PROGRAM_MEMORY_GATHERED,
                   lower_weight_bytes(lower, unit.elements));
}

/* dW of the head, and the end of what it reads. */
static uint32_t head_weight(struct lower *lower, const struct local_unit *unit)
{
    const struct local *local = lower->local;
    uint64_t const full_bytes = lower_activation_bytes(lower, local->block_full);
    uint64_t const logit_bytes = lower_activation_bytes(lower, local->rows * local->vocabulary);
    uint64_t const gradient_bytes = lower_gradient_bytes(lower, local->vocabulary_elements);
    struct work work = head_work(lower);
    work.hbm_read_bytes =
        full_bytes + logit_bytes + (lower_gradient_adds(lower) ? gradient_bytes : 0);
    work.hbm_write_bytes = gradient_bytes;
    bool const takes = lower->half == LOWER_WEIGHT && lower->keeping == LOWER_TAKES;
    uint32_t const weights = takes ? unit_gather(lower, unit) : LOWER_NONE;
    uint32_t const op = lower_compute(lower, "head.dW", &work, 1);
    lower_need_done(lower, op, weights);
    lower_gradient_take(lower, op, unit->elements);
    if (!local->tied) lower_unit_reduce(lower, unit, op);
    lower_give(lower, op, PROGRAM_MEMORY_BUFFERS, full_bytes); /* In */
    return op;
}

/* dIn of the head, with its ReduceScatter. */
static uint32_t head_input(struct lower *lower, const struct local_unit *unit)
{
    const struct local *local = lower->local;
    uint64_t const full_bytes = lower_activation_bytes(lower, local->block_full);
    uint64_t const logit_bytes = lower_activation_bytes(lower, local->rows * local->vocabulary);
    uint32_t const weights = head_keeps_weights(local) ? LOWER_NONE : unit_gather(lower, unit);
    struct work work = head_work(lower);
    work.hbm_read_bytes = logit_bytes + lower_weight_bytes(lower, local->vocabulary_elements);
    work.hbm_write_bytes = full_bytes;
    uint32_t const plan = tp_plan(lower, COLLECTIVE_REDUCE_SCATTER, true);
    uint32_t const op = lower_compute(lower, "head.dIn", &work, lower_plan_chunks(lower, plan));
    lower_need_done(lower, op, weights);
    uint32_t const scatter = lower_collective(lower, LOWER_REDUCE_TP, "head.dIn", "tp", plan);
    lower_operand(lower, scatter, op);
    lower->output = scatter != LOWER_NONE ? scatter : op;
    lower_take(lower, op, PROGRAM_MEMORY_BUFFERS, full_bytes);
    lower_give(lower, lower->output, PROGRAM_MEMORY_BUFFERS, full_bytes);
    if (local->shards > 1 && lower->keeping == LOWER_GATHERS)
        lower_give(lower, op, PROGRAM_MEMORY_GATHERED, lower_weight_bytes(lower, unit->elements));
    return op;
}

void lower_head_backward(struct lower *lower)
{
    const struct local *local = lower->local;
    struct local_unit const unit = lower_head_unit(local);
    bool const dx_first = local->plan->backward_order == WORKLOAD_BACKWARD_DX_FIRST;
    uint32_t op = LOWER_NONE;
    for (uint32_t i = 0; i < 2; i++) {
        bool const is_weight = dx_first ? i == 1 : i == 0;
        if (!(is_weight ? lower_has_weight(lower) : lower_has_input(lower))) continue;
        op = (is_weight ? head_weight : head_input)(lower, &unit);
    }
    if (lower_has_weight(lower))
        lower_give(lower, op, PROGRAM_MEMORY_BUFFERS,
                   lower_activation_bytes(lower, local->rows * local->vocabulary));
    if (!lower_has_input(lower)) return;
    uint32_t const norm = lower_norm_backward(lower, "head.dNorm");
    lower_need_done(lower, norm, lower->output);
    lower->output = norm;
    lower_give(lower, norm, PROGRAM_MEMORY_BUFFERS,
               lower_activation_bytes(lower, local->block_shard));
}
