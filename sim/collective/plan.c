#include "sim/collective/plan.h"

#include <stddef.h>
#include <string.h>

#include "sim/base/name.h"
#include "sim/base/units.h"
#include "sim/collective/choice.h"
#include "sim/collective/compose.h"
#include "sim/collective/msccl.h"
#include "sim/collective/plan_permute.h"
#include "sim/collective/ragged.h"

enum { PIECES_MAX = 65536 };

static enum status request_check(const struct plan_request *request, const char *where,
                                 struct error *reterr)
{
    const struct group *group = &request->group;
    SIM_ASSERT(group->dimension_count <= GROUP_DIMENSIONS_MAX);
    for (uint32_t d = 0; d < group->dimension_count; d++) {
        SIM_ASSERT(group->dimension[d].size >= 2 && group->dimension[d].stride >= 1);
        SIM_ASSERT(group->dimension[d].stride <= UINT16_MAX);
    }
    if (request->size_bytes == 0 || request->size_bytes > plan_size_bytes_max)
        return error_set(reterr, STATUS_INVALID, where, "%llu bytes are not between 1 and %llu",
                         (unsigned long long)request->size_bytes,
                         (unsigned long long)plan_size_bytes_max);
    if (collective_is_rooted(request->kind) && request->root >= group_rank_count(group))
        return error_set(reterr, STATUS_INVALID, where, "root %u is not one of the %llu ranks",
                         request->root, (unsigned long long)group_rank_count(group));
    bool const is_chunked =
        request->kind == COLLECTIVE_ALL_GATHER || request->kind == COLLECTIVE_REDUCE_SCATTER;
    if (request->chunk_count > 0 && !is_chunked)
        return error_set(reterr, STATUS_UNSUPPORTED, where,
                         "%s does not go chunk by chunk with another op; "
                         "AllGather and ReduceScatter do",
                         collective_kind_name(request->kind));
    if (request->chunk_count > PIECES_MAX)
        return error_set(reterr, STATUS_LIMIT, where, "%u chunks are more than %u",
                         request->chunk_count, PIECES_MAX);
    return ragged_check(request, where, reterr);
}

/* How other ops may go along with it, chunk by chunk. */
static void parts_fill(struct plan *plan)
{
    bool const is_gather = plan->kind == COLLECTIVE_ALL_GATHER;
    plan->part_count = 1;
    if (plan->chunk_count == 0) return;
    plan->chunk_parts = 1;
    if (plan->item_count > 1) {
        plan->part_count = plan->chunk_count;
    } else if (is_gather) {
        plan->counts_buckets = true;
        plan->chunk_parts = 2;
        plan->part_count = 2 * plan->chunk_count;
    }
}

/* Neighbours by number are neighbours in the innermost level. */
static void flat_fill(struct plan *plan)
{
    struct levels const levels = levels_of(&plan->group);
    uint32_t count = 0;
    for (uint32_t i = 0; i < levels.outer_count; i++)
        plan->flat_dimension[count++] = levels.outer[i];
    for (uint32_t i = 0; i < levels.grid_count; i++) plan->flat_dimension[count++] = levels.grid[i];
}

static void root_fill(struct plan *plan, uint32_t root)
{
    plan->rooted.root = root;
    for (uint32_t d = 0; d < plan->group.dimension_count; d++)
        plan->rooted.digit[d] = group_digit(&plan->group, root, d);
}

enum status plan_build(struct arena *arena, const struct plan_request *request, const char *where,
                       struct plan *ret_plan, struct error *reterr)
{
    STATUS_TRY(request_check(request, where, reterr));
    struct plan plan = {
        .kind = request->kind,
        .algorithm = algorithm_called("none"),
        .group = request->group,
        .size_bytes = request->size_bytes,
        .element_bits = request->element_bits,
        .protocol = request->protocol,
    };
    struct choice choice;
    flat_fill(&plan);
    if (collective_is_rooted(plan.kind)) root_fill(&plan, request->root);
    if (request->script != NULL) {
        STATUS_TRY(msccl_compose(request->script, request, where, &plan, reterr));
    } else if (plan.kind == COLLECTIVE_PERMUTE) {
        plan.algorithm = algorithm_by(PRIMITIVE_SHIFT);
        STATUS_TRY(choice_make(request, where, &choice, reterr));
        if (!request->mirrors)
            memcpy(plan.permute.offset, request->offset, sizeof plan.permute.offset);
        plan.permute.mirrors = request->mirrors;
        plan.permute.shift = request->shift;
        STATUS_TRY(plan_permute_build(arena, where, &plan, reterr));
    } else if (plan.group.dimension_count > 0) {
        STATUS_TRY(choice_make(request, where, &choice, reterr));
        STATUS_TRY(compose(arena, request, where, &choice, &plan, reterr));
        if (request->ragged.expert_count > 0)
            STATUS_TRY(ragged_build(arena, request, &plan, reterr));
    }
    parts_fill(&plan);
    plan.algorithm_name = algorithm_name(arena, &plan.algorithm);
    if (plan.algorithm_name == NULL)
        return error_set(reterr, STATUS_NO_MEMORY, where, "no memory for a name");
    *ret_plan = plan;
    return STATUS_OK;
}
