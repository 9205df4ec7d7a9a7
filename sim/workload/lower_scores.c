/*
 * Attention without fusing (Vaswani et al. 2017; Megatron-LM before flash attention): the scores of
 * all queries and keys lie in HBM between kernels of their own, and what the softmax makes of them
 * is saved, or computed again. Masks are applied in the softmax's kernel, so the whole square is
 * computed whatever they hide.
 */
#include "sim/base/vector.h"
#include "sim/workload/lower.h"

static struct work_matmul product(const struct local *local, uint64_t rows, uint64_t inner,
                                  uint64_t columns)
{
    return (struct work_matmul){rows, inner, columns, local->attention_heads * local->sequences};
}

/* Queries times keys, of one of the two. */
static struct work matmul(const struct local *local, struct work_matmul of, bool useful,
                          uint64_t read_bytes, uint64_t write_bytes)
{
    struct work work = {
        .matmul = {of},
        .matmul_count = 1,
        .math_format = local->plan->formats.activations,
        .hbm_read_bytes = read_bytes,
        .hbm_write_bytes = write_bytes,
    };
    if (useful) work.useful_flop = local_useful_heads(local, work_matmul_flop(&work));
    return work;
}

static uint32_t softmax(struct lower *lower, const char *name, uint64_t flop, uint64_t read_bytes,
                        uint64_t write_bytes)
{
    struct work const work = {
        .math_format = lower->local->plan->formats.activations,
        .vector_flop = flop,
        .hbm_read_bytes = read_bytes,
        .hbm_write_bytes = write_bytes,
    };
    return lower_compute(lower, name, &work, 1);
}

struct sizes {
    uint64_t queries, keys, width; /* Of the products. */
    uint64_t scores;
    uint64_t score_bytes, mask_bytes, query_bytes, key_bytes; /* K's, and V's as many. */
    uint64_t turn_flop;
    bool drops;
};

static struct sizes sizes_of(const struct lower *lower)
{
    const struct local *local = lower->local;
    uint64_t const head = local->head_width;
    uint64_t const key_elements = local->sequences * local->keys * local->attention_kv_heads * head;
    struct sizes sizes = {
        .queries = local->attention_queries,
        .keys = local->keys,
        .width = head,
        .scores = local_score_count(local),
        .query_bytes = lower_activation_bytes(lower, local->rows * local->heads * head),
        .key_bytes = lower_activation_bytes(lower, key_elements),
        .drops = local->plan->attention_kernel == WORKLOAD_KERNEL_DROPOUT,
    };
    if (local->plan->model.positions == 0)
        sizes.turn_flop = VECTOR_ROPE * local->rows * (local->heads + local->kv_heads) * head;
    sizes.score_bytes = lower_activation_bytes(lower, sizes.scores);
    sizes.mask_bytes = sizes.drops ? sizes.scores : 0;
    return sizes;
}

static const char *name_of(enum lower_pass pass, const char *once, const char *again)
{
    return pass == LOWER_FORWARD ? once : again;
}

uint32_t lower_scores_forward(struct lower *lower, const struct lower_block *block,
                              enum lower_pass pass)
{
    const struct local *local = lower->local;
    struct sizes const s = sizes_of(lower);
    bool const useful = pass == LOWER_FORWARD;
    struct work work = matmul(local, product(local, s.queries, s.width, s.keys), useful,
                              s.query_bytes + s.key_bytes, s.score_bytes);
    work.vector_flop = s.turn_flop;
    uint32_t const scores =
        lower_compute(lower, name_of(pass, "attention.S", "attention.S again"), &work, 1);
    uint32_t const made = softmax(lower, name_of(pass, "attention.P", "attention.P again"),
                                  VECTOR_SOFTMAX * s.scores, s.score_bytes, s.score_bytes);
    if (s.drops)
        (void)softmax(lower, name_of(pass, "attention.dropout", "attention.dropout again"),
                      VECTOR_DROPOUT * s.scores, s.score_bytes, s.score_bytes + s.mask_bytes);
    work = matmul(local, product(local, s.queries, s.keys, s.width), useful,
                  s.score_bytes + s.key_bytes, s.query_bytes);
    uint32_t const op =
        lower_compute(lower, name_of(pass, "attention.A", "attention.A again"), &work, 1);
    lower_take(lower, scores, PROGRAM_MEMORY_BUFFERS, s.score_bytes);
    lower_give(lower, made, PROGRAM_MEMORY_BUFFERS, s.score_bytes);
    lower_tensor_take(lower, block, LOWER_SCORES, pass, made);
    lower_tensor_drop(lower, block, LOWER_SCORES, pass, op);
    lower_tensor_take(lower, block, LOWER_MID, pass, op);
    return op;
}

uint32_t lower_scores_backward(struct lower *lower, const struct lower_block *block)
{
    const struct local *local = lower->local;
    struct sizes const s = sizes_of(lower);
    struct work_matmul const over_queries = product(local, s.keys, s.queries, s.width);
    struct work work =
        matmul(local, over_queries, true, s.score_bytes + s.query_bytes, s.key_bytes);
    uint32_t const values = lower_compute(lower, "attention.dV", &work, 1);
    work = matmul(local, product(local, s.queries, s.width, s.keys), true,
                  s.query_bytes + s.key_bytes, s.score_bytes);
    uint32_t const taken = lower_compute(lower, "attention.dP", &work, 1);
    if (s.drops)
        (void)softmax(lower, "attention.dDropout", VECTOR_DROPOUT * s.scores,
                      s.score_bytes + s.mask_bytes, s.score_bytes);
    uint32_t const scores = softmax(lower, "attention.dS", VECTOR_SOFTMAX_BACKWARD * s.scores,
                                    2 * s.score_bytes, s.score_bytes);
    work = matmul(local, product(local, s.queries, s.keys, s.width), true,
                  s.score_bytes + s.key_bytes, s.query_bytes);
    work.vector_flop = s.turn_flop;
    (void)lower_compute(lower, "attention.dQ", &work, 1);
    work = matmul(local, over_queries, true, s.score_bytes + s.query_bytes, s.key_bytes);
    uint32_t const last = lower_compute(lower, "attention.dK", &work, 1);
    lower_take(lower, values, lower_kept_memory(lower),
               lower_activation_bytes(lower, local->rows * local->qkv_columns)); /* dQ, dK, dV */
    lower_take(lower, taken, PROGRAM_MEMORY_BUFFERS, s.score_bytes);
    lower_give(lower, taken, PROGRAM_MEMORY_BUFFERS,
               lower_activation_bytes(lower, local->rows * block->out_inner)); /* dA */
    lower_take(lower, scores, PROGRAM_MEMORY_BUFFERS, s.score_bytes);
    lower_give(lower, scores, PROGRAM_MEMORY_BUFFERS, s.score_bytes);
    lower_tensor_give(lower, block, LOWER_SCORES, scores);
    lower_give(lower, last, PROGRAM_MEMORY_BUFFERS, s.score_bytes);
    if (lower_has_weight(lower)) lower_tensor_give(lower, block, LOWER_MID, last);
    return last;
}
