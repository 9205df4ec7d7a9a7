/*
 * What a block's forward pass leaves for its backward pass, and for how long.
 */
#include "sim/workload/lower.h"
#include "sim/workload/overheads.h"

/* Elements of what the in-projection gives, and of what the out-projection multiplies. */
uint64_t lower_tmp_elements(const struct local *local, const struct lower_block *block)
{
    return local->rows * block->in_columns * block->in_count;
}

uint64_t lower_mid_elements(const struct local *local, const struct lower_block *block)
{
    return block->attention ? local->rows * block->out_inner : lower_tmp_elements(local, block);
}

uint64_t lower_tensor_bytes(const struct local *local, const struct lower_block *block,
                            enum lower_tensor tensor)
{
    enum format const format = local->plan->formats.activations;
    switch (tensor) {
    case LOWER_X:
        return format_bytes(format, local->block_shard);
    case LOWER_IN: /* Without norm and tp it is the input itself. */
        if (local_keeps_parts(local))
            return format_bytes(lower_in_format(local, block), local->block_shard);
        return block->norm || local->tp > 1
                   ? format_bytes(lower_in_format(local, block), local->block_full)
                   : 0;
    case LOWER_IN_WHOLE:
        return local_keeps_parts(local)
                   ? format_bytes(lower_in_format(local, block), local->block_full)
                   : 0;
    case LOWER_TMP:
        return format_bytes(lower_between_format(local, block), lower_tmp_elements(local, block));
    case LOWER_KV:
        return block->attention ? format_bytes(format, local->kv_kept_elements) : 0;
    case LOWER_MID: /* One fp32 a row and head: the logarithm of the softmax's sum. */
        return block->attention ? format_bytes(format, lower_mid_elements(local, block)) +
                                      format_bytes(format, local->mid_kept_elements) +
                                      format_bytes(FORMAT_FP32, local->rows * local->heads)
                                : 0;
    case LOWER_PRODUCT:
        return block->attention ? 0
                                : overheads_activated_bytes(local, local->rows * block->in_columns);
    case LOWER_TENSOR_COUNT:
        break;
    }
    return 0;
}

/*
 * none: all that the backward pass reads: of a norm what it reads and what it gives, of which a
 *   rank of tp keeps its part; Q, K, V, attention's output and its row statistics; Gate and Up. In
 *   the bare MLP over tp, the gathered In holds its shard as well.
 * norms: the same without what norms and activation functions give.
 * big_matmuls: the outputs of the layer's seven matmuls. Q, K, V, Gate and Up as they are; O and
 *   Out as the inputs of the two blocks, which are the running sum after them.
 * block: the layer's input.
 */
bool lower_tensor_saved(const struct local *local, const struct lower_block *block,
                        enum lower_tensor tensor)
{
    if (tensor == LOWER_IN_WHOLE) return false;
    if (tensor == LOWER_PRODUCT) return local_keeps_outputs(local);
    switch (local->plan->remat) {
    case WORKLOAD_REMAT_NORMS:
        if (block->norm && tensor == LOWER_IN) return false;
        return tensor != LOWER_X || block->norm || local->tp == 1;
    case WORKLOAD_REMAT_NONE:
        return tensor != LOWER_X || block->norm || local->tp == 1;
    case WORKLOAD_REMAT_BIG_MATMULS:
        return tensor == LOWER_X || tensor == LOWER_TMP;
    case WORKLOAD_REMAT_BLOCK:
    case WORKLOAD_REMAT_LAYER:
        break;
    }
    return tensor == LOWER_X && block->first;
}

static enum program_memory tensor_memory(const struct lower *lower, const struct lower_block *block,
                                         enum lower_tensor tensor)
{
    if (tensor == LOWER_PRODUCT) return PROGRAM_MEMORY_ACTIVATED;
    return lower_tensor_saved(lower->local, block, tensor) ? PROGRAM_MEMORY_ACTIVATIONS
                                                           : PROGRAM_MEMORY_BUFFERS;
}

/* Whether the tensor is there at all: a bare MLP that keeps In needs no X. */
static bool tensor_used(const struct lower *lower, const struct lower_block *block,
                        enum lower_tensor tensor)
{
    return tensor != LOWER_X || block->norm || lower_tensor_saved(lower->local, block, LOWER_X);
}

void lower_tensor_take(struct lower *lower, const struct lower_block *block,
                       enum lower_tensor tensor, enum lower_pass pass, uint32_t op)
{
    bool const again = pass == LOWER_RECOMPUTE && lower_tensor_saved(lower->local, block, tensor);
    if (again || !tensor_used(lower, block, tensor)) return;
    lower_take(lower, op, tensor_memory(lower, block, tensor),
               lower_tensor_bytes(lower->local, block, tensor));
}

void lower_tensor_give(struct lower *lower, const struct lower_block *block,
                       enum lower_tensor tensor, uint32_t op)
{
    if (!tensor_used(lower, block, tensor)) return;
    lower_give(lower, op, tensor_memory(lower, block, tensor),
               lower_tensor_bytes(lower->local, block, tensor));
}

void lower_tensor_drop(struct lower *lower, const struct lower_block *block,
                       enum lower_tensor tensor, enum lower_pass pass, uint32_t op)
{
    if (pass == LOWER_RECOMPUTE || lower_tensor_saved(lower->local, block, tensor)) return;
    lower_tensor_give(lower, block, tensor, op);
}
