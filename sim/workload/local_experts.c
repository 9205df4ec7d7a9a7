#include "sim/workload/local_experts.h"

#include "sim/base/units.h"
#include "sim/workload/local.h"
#include "sim/workload/nearest.h"
#include "sim/workload/routing.h"

/* Tokens that cross each dimension of the ep group, from the outermost level in: those of all ranks
 * that share a rank's place in the levels inside, for each unit that the dimension leads to. On
 * the grid there are no units between, and each rank gets its own copies. */
static enum status crossing_build(struct local *local, struct error *reterr)
{
    const struct group *group = &local->mesh->axis[MESH_EP].group;
    const struct model_experts *model = &local->plan->model.experts;
    struct local_experts *experts = &local->experts;
    uint64_t const ranks = group_rank_count(group);
    bool done[GROUP_DIMENSIONS_MAX] = {false};
    uint64_t units = 1;
    for (uint32_t i = 0; i < group->dimension_count; i++) {
        uint32_t outer = GROUP_DIMENSIONS_MAX;
        for (uint32_t d = 0; d < group->dimension_count; d++)
            if (!done[d] && group->dimension[d].switched &&
                (outer == GROUP_DIMENSIONS_MAX ||
                 group->dimension[d].axis > group->dimension[outer].axis))
                outer = d;
        if (outer != GROUP_DIMENSIONS_MAX) done[outer] = true;
        units = outer == GROUP_DIMENSIONS_MAX ? ranks : units * group->dimension[outer].size;
        uint64_t const held = model->count / units;
        if (!routing_fits_groups(model, held))
            return error_set(reterr, STATUS_UNSUPPORTED, "/mesh/ep",
                             "%llu experts lie together, and a token's experts are in %llu of %llu "
                             "groups of %llu: that is modelled only where groups fit into what "
                             "lies together, or it into them",
                             (unsigned long long)held, (unsigned long long)model->top_groups,
                             (unsigned long long)model->groups,
                             (unsigned long long)(model->count / model->groups));
        uint64_t const tokens = ranks * units * routing_hits(model, held, local->rows);
        for (uint32_t d = 0; d < group->dimension_count; d++)
            if (d == outer || (outer == GROUP_DIMENSIONS_MAX && !done[d]))
                experts->crossing[d] = tokens;
        if (outer == GROUP_DIMENSIONS_MAX) break;
    }
    return STATUS_OK;
}

static const char *replica_name(const struct mesh *mesh)
{
    static const char *const names[] = {"dp", "dp", "cp", "dp,cp"};
    return names[(mesh->axis[MESH_DP].size > 1) + 2u * (mesh->axis[MESH_CP].size > 1)];
}

/* Who else holds the same experts. */
static enum status replicas_build(struct local *local, struct error *reterr)
{
    struct local_experts *experts = &local->experts;
    uint32_t const zero = local->plan->zero;
    STATUS_TRY(mesh_union(local->mesh, local->machine, 1u << MESH_DP | 1u << MESH_CP, "/mesh",
                          &experts->replica_group, reterr));
    experts->replica_name = replica_name(local->mesh);
    experts->replicas = local->replicas / (zero == 3 ? 1 : experts->ranks);
    experts->state_shards = zero == 0 ? local->shards : local->data / experts->ranks;
    experts->gradient_shards = zero >= 2 ? local->data / experts->ranks : local->shards;
    if (local->reduce_once && local->plan->accumulate > 1) experts->gradient_shards = 1;
    return STATUS_OK;
}

enum status local_experts_build(struct local *local, struct error *reterr)
{
    const struct workload_plan *plan = local->plan;
    const struct model_experts *model = &plan->model.experts;
    struct local_experts *experts = &local->experts;
    bool const by_tokens = plan->activations == WORKLOAD_ACTIVATIONS_TOKENS;
    experts->ranks = local->mesh->axis[MESH_EP].size;
    if (model->count % experts->ranks != 0) {
        char nearest[NEAREST_TEXT_BYTES];
        return error_set(reterr, STATUS_INVALID, "/mesh/ep",
                         "%u ranks cannot split a layer's %llu experts evenly; the nearest numbers "
                         "of ranks that can: %s",
                         experts->ranks, (unsigned long long)model->count,
                         nearest_divisors(model->count, experts->ranks, nearest));
    }
    experts->count = model->count / experts->ranks;
    STATUS_TRY(local_divide(model->width, local->tp, "/mesh/tp", "the width F of an expert",
                            "ranks of tp", &experts->columns, reterr));
    experts->shared_columns = model->shared * experts->columns;
    uint64_t const tokens = local->rows * experts->ranks;
    experts->rows = units_ceil_divide(tokens * model->top_k, model->count);
    experts->all = experts->count * experts->rows;
    experts->copies = experts->ranks * routing_hits(model, experts->count, local->rows);
    experts->gate_rows = by_tokens ? local->rows / local->tp : local->rows;
    experts->router_rows = experts->gate_rows;
    experts->router_inner = by_tokens ? local->width : local->width / local->tp;
    STATUS_TRY(crossing_build(local, reterr));
    return replicas_build(local, reterr);
}
