/* Attention whose scores lie in HBM: what is refused with it. */
#include "sim/step/local.h"

enum status local_scores_check(const struct local *local, struct error *reterr)
{
    static const char where[] = "/workload/attention_kernel";
    if (!local_is_unfused(local)) return STATUS_OK;
    if (!local_is_llama(local))
        return error_set(reterr, STATUS_INVALID, where,
                         "the bare MLP has no attention that could be fused or not");
    if (local->plan->attention != WORKLOAD_ATTENTION_FULL)
        return error_set(reterr, STATUS_UNSUPPORTED, "/workload/attention",
                         "kernels that are not fused compute the whole square and mask half of it: "
                         "\"full\" is what they do");
    if (local_is_latent(local))
        return error_set(reterr, STATUS_UNSUPPORTED, where,
                         "latent attention (MLA) is modelled with \"flash\" only");
    if (local->sequence_parts > 1)
        return error_set(reterr, STATUS_UNSUPPORTED, where,
                         "sequences that %u ranks share are modelled with \"flash\" only",
                         local->sequence_parts);
    return STATUS_OK;
}
