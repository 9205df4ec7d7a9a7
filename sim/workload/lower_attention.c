/*
 * Attention between the projections: flash, so no T x S array in HBM (the book, chapter 4,
 * appendix A): Q, K, V are read once, the result is written once with one fp32 a row and head.
 *
 * Ranks that share a sequence gather its keys and values and attend with their own queries; in the
 * backward pass each sums its part of dK and dV. With causal attention the ranks are taken to hold
 * queries from both ends of the sequence, so that all have the same work.
 */
#include "sim/workload/lower.h"
#include "sim/workload/vector.h"

/* Scores of one sequence and head on this rank, as rows and columns of a matmul. Causal: query i
 * has i keys, T·(T+1)/2 in all. Half the rows with T + 1 columns is that sum exactly, and padding
 * the columns to the MXU gives what a kernel wastes in the tiles on the diagonal. */
static struct work_matmul scores(const struct local *local)
{
    uint64_t rows = local->queries;
    uint64_t columns = local->keys;
    if (local->plan->attention == WORKLOAD_ATTENTION_CAUSAL) {
        bool const even = rows % 2 == 0;
        rows = even ? rows / 2 : rows;
        columns = even ? columns + 1 : (columns + 2) / 2;
    }
    return (struct work_matmul){rows, local->head_width, columns, local->heads * local->sequences};
}

/* The same with the scores as the operand: rows x columns times columns x H. */
static struct work_matmul weighted(const struct local *local)
{
    struct work_matmul const of = scores(local);
    return (struct work_matmul){of.rows, of.columns, of.inner, of.count};
}

static uint64_t query_elements(const struct local *local)
{
    return local->rows * local->heads * local->head_width;
}

/* K and V of the whole sequences, as attention reads them. */
static uint64_t key_elements(const struct local *local)
{
    return 2 * local->sequences * local->keys * local->kv_heads * local->head_width;
}

static uint64_t rope_flop(const struct local *local)
{
    return VECTOR_ROPE * local->rows * (local->heads + local->kv_heads) * local->head_width;
}

static uint64_t statistics_bytes(const struct local *local)
{
    return format_bytes(FORMAT_FP32, local->rows * local->heads);
}

/* K and V of a sequence that several ranks share: gathered, or their gradients reduced. */
static uint32_t sequence_collective(struct lower *lower, enum collective_kind kind)
{
    const struct local *local = lower->local;
    bool const gather = kind == COLLECTIVE_ALL_GATHER;
    uint32_t const plan = lower_plan(lower, kind, &local->sequence_group, key_elements(local),
                                     local->plan->formats.activations, false);
    return lower_collective(lower, gather ? LOWER_GATHER_SEQUENCE : LOWER_REDUCE_SEQUENCE,
                            gather ? "K V" : "dK dV", "sequence", plan);
}

uint32_t lower_attention_forward(struct lower *lower, const struct lower_block *block,
                                 enum lower_pass pass, uint32_t after)
{
    const struct local *local = lower->local;
    struct work_matmul const score = scores(local);
    uint32_t const gather = sequence_collective(lower, COLLECTIVE_ALL_GATHER);
    if (after != LOWER_NONE) {
        lower_need_done(lower, gather, after);
    } else {
        lower_need_output(lower, gather);
    }
    struct work work = {
        .matmul = {score, weighted(local)},
        .matmul_count = 2,
        .math_format = local->plan->formats.activations,
        .vector_flop = rope_flop(local) + VECTOR_SOFTMAX * score.rows * score.columns * score.count,
        .hbm_read_bytes =
            lower_activation_bytes(lower, query_elements(local) + key_elements(local)),
        .hbm_write_bytes =
            lower_activation_bytes(lower, query_elements(local)) + statistics_bytes(local),
    };
    if (pass == LOWER_FORWARD) work.useful_flop = work_matmul_flop(&work);
    uint32_t const op = lower_compute(
        lower, pass == LOWER_FORWARD ? "attention.flash" : "attention.flash again", &work, 1);
    lower_need_done(lower, op, gather);
    lower_tensor_take(lower, block, LOWER_KV, pass, gather);
    lower_tensor_take(lower, block, LOWER_MID, pass, op);
    return op;
}

uint32_t lower_attention_backward(struct lower *lower, const struct lower_block *block)
{
    const struct local *local = lower->local;
    struct work_matmul const score = scores(local);
    struct work_matmul const weight = weighted(local);
    uint64_t const query_bytes = lower_activation_bytes(lower, query_elements(local));
    uint64_t const key_bytes = lower_activation_bytes(lower, key_elements(local));
    /* S again, dP = dO·V; dQ = dS·K, dV = P·dO, dK = dS·Q. */
    struct work work = {
        .matmul = {score, score, weight, weight, weight},
        .matmul_count = 5,
        .math_format = local->plan->formats.activations,
        .vector_flop = rope_flop(local) + VECTOR_ROW_DOT * query_elements(local) +
                       VECTOR_SOFTMAX_BACKWARD * score.rows * score.columns * score.count,
        .hbm_read_bytes = 3 * query_bytes + key_bytes + statistics_bytes(local), /* Q, A, dA */
        .hbm_write_bytes = query_bytes + key_bytes,
    };
    work.useful_flop = work_matmul_flop(&work) / 5 * 4;
    uint32_t const op = lower_compute(lower, "attention.dFlash", &work, 1);
    uint32_t const reduce = sequence_collective(lower, COLLECTIVE_REDUCE_SCATTER);
    lower_need_done(lower, reduce, op);

    uint64_t const rows = local->rows;
    lower_take(lower, op, lower_kept_memory(lower),
               lower_activation_bytes(lower, rows * block->in_columns)); /* dQ, dK, dV */
    lower_give(lower, op, PROGRAM_MEMORY_BUFFERS,
               lower_activation_bytes(lower, rows * block->out_inner)); /* dA */
    lower_take(lower, op, PROGRAM_MEMORY_BUFFERS,
               lower_tensor_bytes(local, block, LOWER_KV)); /* dK and dV of the other ranks */
    lower_give(lower, reduce, PROGRAM_MEMORY_BUFFERS, lower_tensor_bytes(local, block, LOWER_KV));
    if (lower_has_weight(lower)) lower_tensor_give(lower, block, LOWER_MID, op); /* dW_O is done. */
    lower_tensor_give(lower, block, LOWER_KV, op);
    return reduce != LOWER_NONE ? reduce : op;
}
