#include "sim/kernels/shards.h"

#include <stddef.h>

const char *const shard_kernels_names[] = {
#define X(name, word) word,
    SHARD_KERNELS_TABLE(X)
#undef X
        NULL};

/*
 * Bytes an element: read, written. Weights that are gathered in 16 bits come first, then those that
 * are gathered in fp32, which no kernel casts; within gradients by the format of the reduction.
 *
 * fsdp1, whose weights are parts of one array: the shard in fp32 is cast (4, 2). Autograd joins
 * gradients (2, 2; of fp32 4, 4); they are brought to the format of the reduction, if it is another
 * (2, 4; 4, 2), and divided by a part of the number of ranks, so that sums do not overflow (2, 2;
 * in fp32 4, 4). The gather writes where weights lie.
 *
 * fsdp2, whose weights are arrays by themselves: shards in fp32 are cast to one array (4, 2), and
 * that is copied to the place that it is gathered to (2, 2); fp32 is copied there at once (4, 4).
 * Gathered parts are copied to weights (2, 2; 4, 4). Gradients are brought to the order of ranks
 * and to the format of the reduction in one kernel (2, 2; 2, 4; 4, 2; 4, 4). NCCL divides.
 *
 * deepspeed: weights that are gathered together are then joined each (2, 2; 4, 4), and a weight
 * that is gathered by itself stays where it is. Gradients are copied to a bucket (2, 2; 4, 4) and
 * divided (2, 2; 4, 4); they are brought to another format of the reduction (2, 4; 4, 2) between
 * the two. Shards have the format of weights, and the update makes them.
 */
static const struct shard_copies copies[SHARD_KERNELS_COUNT] = {
    [SHARD_KERNELS_NONE] = {.source = ""},
    [SHARD_KERNELS_FSDP1] =
        {
            .source = "PyTorch torch/distributed/fsdp/flat_param.py (_use_low_precision_shard), "
                      "_runtime_utils.py (_post_backward_hook) at 2.1",
            .wide = true,
            .shard = {{1, 4, 2}},
            .gradients = {{{2, 4, 4}, {3, 8, 10}}, {{3, 10, 8}, {2, 8, 8}}},
            .gathers = SHARD_ARRAY_SHARD,
            .reduces = SHARD_ARRAY_CAST,
        },
    [SHARD_KERNELS_FSDP2] =
        {
            .source = "PyTorch torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py "
                      "(foreach_all_gather, foreach_all_gather_copy_out, foreach_reduce)",
            .wide = true,
            .shard = {{2, 6, 4}, {1, 4, 4}},
            .gathered = {{1, 2, 2}, {1, 4, 4}},
            .gradients = {{{1, 2, 2}, {1, 2, 4}}, {{1, 4, 2}, {1, 4, 4}}},
            .gathers = SHARD_ARRAY_ALL,
            .reduces = SHARD_ARRAY_ALL,
        },
    [SHARD_KERNELS_DEEPSPEED] =
        {
            .source = "DeepSpeed deepspeed/runtime/zero/partition_parameters.py "
                      "(AllGatherCoalescedHandle, AllGatherHandle), stage3.py "
                      "(__add_grad_to_ipg_bucket, __avg_scatter_grads)",
            .tensors_stay = true,
            .gathered = {{1, 2, 2}, {1, 4, 4}},
            .gradients = {{{2, 4, 4}, {3, 8, 10}}, {{3, 10, 8}, {2, 8, 8}}},
            .gathers = SHARD_ARRAY_ALL,
            .reduces = SHARD_ARRAY_ALL,
        },
};

const struct shard_copies *shard_copies_of(enum shard_kernels kernels)
{
    return &copies[kernels];
}
