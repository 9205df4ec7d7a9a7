/*
 * megatron_tp.c: what ranks of Megatron-LM's tensor parallelism share between blocks.
 *
 * Source: NVIDIA/Megatron-LM, core/tensor_parallel/layers.py; megatron/training/arguments.py, which
 * refuses --tp-comm-overlap without --sequence-parallel.
 */
#include "tools/podsim/import/megatron.h"

/* Whether podsim runs blocks whose activations are whole on each rank. */
static bool is_expressed(const struct import *import)
{
    return !import_has_experts(import) && !import_has_mtp(import);
}

enum status megatron_tp_set(struct import *import, struct error *reterr)
{
    const struct import_policy *policy = &import->facts.policy;
    bool const overlaps = policy->overlap.overlaps_tp && policy->sequence_parallel;
    if (import->facts.ranks.tp == 1) return STATUS_OK;
    if (!policy->sequence_parallel && is_expressed(import))
        STATUS_TRY(import_set(import, reterr, "/workload/activations=replicated"));
    else if (!policy->sequence_parallel)
        STATUS_TRY(import_remark(
            import, "--sequence-parallel",
            "the file leaves it out: activations between blocks are whole on each rank of tp; of "
            "models with experts or MTP podsim shards them, by as many bytes",
            reterr));
    if (!policy->sequence_parallel)
        import_lacks(import, &policy->overlap.overlaps_tp,
                     "Megatron-LM refuses it without --sequence-parallel");
    return import_set(import, reterr, "/run/collective_matmul=%s", overlaps ? "true" : "false");
}
