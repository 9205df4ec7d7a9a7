/* Latent attention (MLA): its columns on one chip, and what is refused. */
#include "sim/step/local.h"
#include "sim/step/nearest.h"

enum status local_latent_check(const struct local *local, struct error *reterr)
{
    const struct workload_plan *plan = local->plan;
    const struct model *model = &plan->model;
    if (local_is_latent(local) && model->latent.query_rank == 0)
        return error_set(reterr, STATUS_UNSUPPORTED, "/workload/model",
                         "training %s is not modelled in this version: its latent attention (MLA) "
                         "has no latent for Q (\"q_lora_rank\")",
                         model->name);
    if (local_is_latent(local) && local->mesh->axis[MESH_CP].size > 1)
        return error_set(reterr, STATUS_UNSUPPORTED, "/mesh/cp",
                         "sequences that ranks share are not modelled with latent attention "
                         "(MLA); dp, ep, tp and pp are");
    return STATUS_OK;
}

enum status local_latent_sequences_check(const struct local *local, struct error *reterr)
{
    char nearest[NEAREST_TEXT_BYTES];
    if (!local_is_latent(local) || local->sequence_parts == 1) return STATUS_OK;
    return error_set(
        reterr, STATUS_UNSUPPORTED, "/workload/batch_tokens",
        "%u of the %u data ranks would share each sequence, which is not modelled with latent "
        "attention (MLA); the nearest batch_tokens that fit: %s",
        local->sequence_parts, local->data, nearest_batch(local, nearest));
}

/* Each rank of tp projects all of its tokens down, for what comes out is small compared with its
 * heads. So each has the part of the gradients that its heads give, as holders of a KV head have.
 */
void local_latent_build(struct local *local)
{
    const struct model_latent *latent = &local->plan->model.latent;
    if (!local_is_latent(local)) return;
    local->latent_normed = latent->query_rank + latent->kv_rank;
    local->latent_columns = model_latent_columns(&local->plan->model);
    local->partial_ranks = local->tp;
    local->partial_elements = local->width * local->latent_columns + local->latent_normed;
}
