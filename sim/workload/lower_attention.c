/*
 * Attention between the projections: flash, unless attention_kernel says otherwise, so no T x S
 * array in HBM (the book, chapter 4, appendix A): Q, K, V are read once, the result is written once
 * with one fp32 a row and head.
 *
 * What ranks that share a sequence exchange for it stands in lower_context.c. Where no
 * context_order says otherwise, such ranks hold causal queries from both ends, so that all have the
 * same work.
 */
#include "sim/base/vector.h"
#include "sim/workload/lower.h"

/* Scores of one sequence and head on this rank, as rows and columns of a matmul. Causal: query i
 * has i keys, T·(T+1)/2 in all. Half the rows with T + 1 columns (`pairs`) is that sum exactly, and
 * padding the columns to the MXU gives what a kernel wastes in the tiles on the diagonal. */
static struct work_matmul scores(const struct local *local, uint64_t pairs)
{
    uint64_t rows = local->attention_queries;
    uint64_t columns = local->keys;
    if (local->plan->attention == WORKLOAD_ATTENTION_CAUSAL) {
        bool const even = rows % 2 == 0;
        rows = even ? rows / 2 : rows;
        columns = even ? pairs : (pairs + 1) / 2;
    }
    return (struct work_matmul){rows, local->head_width, columns,
                                local->attention_heads * local->sequences};
}

/* The same in a window of w keys, itself among them. Causal: query i has i keys, but w at most,
 * w·(2T - w + 1)/2 in all, which is 2T - w + 1 rows of w/2 columns exactly. */
static struct work_matmul window_scores(const struct local *local)
{
    uint64_t const window = local->plan->model.window;
    struct work_matmul matmul = {local->attention_queries, local->head_width, window,
                                 local->attention_heads * local->sequences};
    if (local->plan->attention != WORKLOAD_ATTENTION_CAUSAL) return matmul;
    matmul.rows = 2 * local->keys - window + 1;
    if (window % 2 == 0)
        matmul.columns /= 2;
    else
        matmul.rows /= 2;
    return matmul;
}

static struct work_matmul layer_scores(const struct lower *lower, uint64_t pairs)
{
    return lower->windowed ? window_scores(lower->local) : scores(lower->local, pairs);
}

/* The same with the scores as the operand: rows x columns times columns x the width of Q and K, or
 * of V. */
static struct work_matmul weighted(struct work_matmul of, uint64_t width)
{
    return (struct work_matmul){of.rows, of.columns, width, of.count};
}

/* The product of outputs' gradients with V: as the scores, over the width of V. */
static struct work_matmul scored(struct work_matmul of, uint64_t width)
{
    return (struct work_matmul){of.rows, width, of.columns, of.count};
}

static uint64_t masked_rows(const struct lower *lower, const struct work_matmul *score)
{
    bool const causal = lower->local->plan->attention == WORKLOAD_ATTENTION_CAUSAL;
    if (!lower->windowed || !causal) return 0;
    return local_window_masked_rows(lower->local, score->rows, score->columns);
}

/* FLOP of the two forward products as the mean rank has them. */
static uint64_t useful_flop(const struct lower *lower)
{
    const struct local *local = lower->local;
    struct work_matmul const score = layer_scores(lower, local->keys + 1);
    struct work const work = {.matmul = {score, weighted(score, local->value_width)},
                              .matmul_count = 2};
    return local_useful_heads(local, work_matmul_flop(&work));
}

static uint64_t query_elements(const struct local *local)
{
    return local->rows * local->heads * local->head_width;
}

static uint64_t output_elements(const struct local *local)
{
    return local->rows * local->heads * local->value_width;
}

/* K and V of the whole sequences, as attention reads them. */
static uint64_t key_elements(const struct local *local)
{
    return local->sequences * local->keys * local->attention_kv_heads *
           (local->head_width + local->value_width);
}

static uint64_t rope_flop(const struct local *local)
{
    if (local->plan->model.positions != 0) return 0;
    return VECTOR_ROPE * local->rows * (local->heads + local->kv_heads) * local->head_width;
}

static uint64_t statistics_bytes(const struct local *local)
{
    return format_bytes(FORMAT_FP32, local->rows * local->heads);
}

/* Steps of a ring each read the queries again, and what has been summed so far in fp32. */
static uint64_t again_bytes(const struct lower *lower, uint64_t arrays)
{
    const struct local *local = lower->local;
    uint64_t const steps = local_rings(local) ? local->cp - 1 : 0;
    return steps * (arrays * lower_activation_bytes(lower, query_elements(local)) +
                    format_bytes(FORMAT_FP32, query_elements(local)) + statistics_bytes(local));
}

static uint64_t summed_bytes(const struct local *local)
{
    uint64_t const steps = local_rings(local) ? local->cp - 1 : 0;
    return steps * (format_bytes(FORMAT_FP32, query_elements(local)) + statistics_bytes(local));
}

uint32_t lower_attention_forward(struct lower *lower, const struct lower_block *block,
                                 enum lower_pass pass, uint32_t after)
{
    const struct local *local = lower->local;
    struct work_matmul const score = layer_scores(lower, local->key_pairs);
    struct lower_keys const keys = lower_keys_forward(lower, block, pass, after);
    struct work work = {
        .matmul = {score, weighted(score, local->value_width)},
        .matmul_count = 2,
        .masked_rows = masked_rows(lower, &score),
        .math_format = local->plan->formats.activations,
        .vector_flop = rope_flop(local) + VECTOR_SOFTMAX * score.rows * score.columns * score.count,
        .hbm_read_bytes =
            lower_activation_bytes(lower, query_elements(local) + key_elements(local)) +
            again_bytes(lower, 1),
        .hbm_write_bytes = lower_activation_bytes(lower, output_elements(local)) +
                           statistics_bytes(local) + summed_bytes(local),
    };
    if (pass == LOWER_FORWARD) work.useful_flop = useful_flop(lower);
    uint32_t const op =
        lower_compute(lower, pass == LOWER_FORWARD ? "attention.flash" : "attention.flash again",
                      &work, keys.parts);
    lower_tensor_take(lower, block, LOWER_MID, pass, op);
    return lower_keys_forward_done(lower, &keys, op);
}

uint32_t lower_attention_backward(struct lower *lower, const struct lower_block *block,
                                  uint32_t d_middle)
{
    const struct local *local = lower->local;
    struct work_matmul const score = layer_scores(lower, local->key_pairs);
    struct work_matmul const weight = weighted(score, local->head_width);
    struct work_matmul const value = weighted(score, local->value_width);
    uint64_t const query_bytes = lower_activation_bytes(lower, query_elements(local));
    uint64_t const output_bytes = lower_activation_bytes(lower, output_elements(local));
    uint64_t const key_bytes = lower_activation_bytes(lower, key_elements(local));
    struct lower_keys const keys = lower_keys_backward(lower, d_middle);
    /* S again, dP = dO·V; dQ = dS·K, dV = P·dO, dK = dS·Q. */
    struct work const work = {
        .matmul = {score, scored(score, local->value_width), weight, value, weight},
        .matmul_count = 5,
        .masked_rows = masked_rows(lower, &score),
        .math_format = local->plan->formats.activations,
        .vector_flop = rope_flop(local) + VECTOR_ROW_DOT * output_elements(local) +
                       VECTOR_SOFTMAX_BACKWARD * score.rows * score.columns * score.count,
        .hbm_read_bytes = query_bytes + 2 * output_bytes + key_bytes + statistics_bytes(local) +
                          again_bytes(lower, 3), /* Q, A, dA */
        .hbm_write_bytes = query_bytes + key_bytes + summed_bytes(local),
        .useful_flop = 2 * useful_flop(lower),
    };
    uint32_t const op = lower_compute(lower, "attention.dFlash", &work, keys.parts);
    uint64_t const rows = local->rows;
    lower_take(lower, op, lower_kept_memory(lower),
               lower_activation_bytes(lower, rows * local->qkv_columns)); /* dQ, dK, dV */
    lower_give(lower, op, PROGRAM_MEMORY_BUFFERS,
               lower_activation_bytes(lower, rows * block->out_inner));          /* dA */
    if (lower_has_weight(lower)) lower_tensor_give(lower, block, LOWER_MID, op); /* dW_O is done. */
    lower_tensor_give(lower, block, LOWER_KV, op);
    return lower_keys_backward_done(lower, block, &keys, op);
}
