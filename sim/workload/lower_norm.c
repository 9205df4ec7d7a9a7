/*
 * A norm lies on the shard [B_X, D_Y]; the sum of squares of a row, one number a token and chip,
 * travels with the AllGather that follows and is not counted.
 */
#include "sim/base/vector.h"
#include "sim/workload/lower.h"

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
