/* Collectives of a pass: the stream, the group and the plan of each. */
#include "sim/collective/algorithm.h"
#include "sim/step/emit.h"
#include "sim/step/emit_parts.h"

struct emit_route emit_route(const struct ranks *ranks, const struct graph *graph,
                             const struct graph_step *step)
{
    bool const gathers = step->move.kind == COLLECTIVE_ALL_GATHER;
    bool const exchanges = step->move.kind == COLLECTIVE_ALL_TO_ALL;
    bool const home = step->move.kind == COLLECTIVE_PERMUTE;
    bool const scatters = step->move.kind == COLLECTIVE_REDUCE_SCATTER;
    /* Where every rank has all of D, blocks end in an AllReduce. */
    bool const sums = step->move.kind == COLLECTIVE_ALL_REDUCE &&
                      ranks->plan->activations != WORKLOAD_ACTIVATIONS_REPLICATED;
    const struct mesh_axis *axis = ranks->mesh->axis;
    switch (step->move.axis) {
    case OP_AXIS_EP:
        return (struct emit_route){step->move.spreads ? LOWER_DISPATCH : LOWER_COMBINE,
                                   &axis[MESH_EP].group};
    case OP_AXIS_TP_D:
        return (struct emit_route){gathers    ? LOWER_GATHER_TP_D
                                   : scatters ? LOWER_REDUCE_TP_D
                                              : LOWER_SUM_TP_D,
                                   &axis[MESH_TP_D].group};
    case OP_AXIS_SEQUENCE:
        return (struct emit_route){gathers || exchanges ? LOWER_GATHER_SEQUENCE
                                   : home               ? LOWER_HOME_SEQUENCE
                                                        : LOWER_REDUCE_SEQUENCE,
                                   &ranks->sequences.group};
    case OP_AXIS_HOLDERS:
        return (struct emit_route){gathers || exchanges ? LOWER_GATHER_KV
                                   : scatters           ? LOWER_REDUCE_KV
                                                        : LOWER_SUM_KV,
                                   &ranks->heads.group};
    case OP_AXIS_TP:
        break;
    }
    return (struct emit_route){graph_step_sums_weights(graph, step) ? LOWER_SUM_ROWS
                               : gathers                            ? LOWER_GATHER_TP
                               : sums                               ? LOWER_SUM_LOGITS
                                                                    : LOWER_REDUCE_TP,
                               &axis[MESH_TP].group};
}

bool emit_is_chunked(const struct emit *emit, const struct graph_step *step)
{
    const struct graph_op *op = &emit->graph->op[step->op];
    if (step->move.rounds) return true;
    if (step->move.kind == COLLECTIVE_ALL_REDUCE) return false; /* It is one. */
    if (step->move.apart) return false;
    struct emit_route const route = emit_route(emit->lower->ranks, emit->graph, step);
    struct plan_request const request = {.kind = step->move.kind, .group = *route.group};
    if (lower_overlap_crosses(emit->lower, &request)) return false;
    return emit->lower->ranks->plan->collective_matmul && step->move.axis == OP_AXIS_TP &&
           !graph_step_sums_weights(emit->graph, step) &&
           emit->graph->block[op->block].block->couples;
}

/* To the next rank. Two ranks on a line close their ring over the one cable between them: each is
 * the next of the other, and both send. */
static void home_set(struct plan_request *request)
{
    const struct group_dimension *dimension = &request->group.dimension[0];
    bool const line = !dimension->ring && !dimension->switched;
    request->algorithm = (struct algorithm){.means = ALGORITHM_AUTO};
    request->mirrors = line;
    request->offset[0] = line ? 0 : 1;
}

/* --- Rows on their way to experts, or back --- */

/* What each rank really has for each other, once to each unit of a level on the way: a token has a
 * whole number of bytes. */
static void drawn_set(const struct emit *emit, struct plan_request *exchange)
{
    const struct ranks *ranks = emit->lower->ranks;
    uint64_t const tokens = ranks->experts.ranks * ranks->experts.tokens;
    bool const automatic = algorithm_is_chosen(&exchange->algorithm);
    bool const levels =
        exchange->group.dimension_count > 1 && exchange->group.dimension[0].switched;
    if (automatic && levels) exchange->algorithm.means = ALGORITHM_HIERARCHICAL;
    exchange->ragged = ranks->experts.drawn;
    exchange->ragged.token_bytes = units_ceil_divide(exchange->size_bytes, tokens);
    exchange->ragged.returns = !exchange->spreads;
    exchange->size_bytes = tokens * exchange->ragged.token_bytes;
}

/* Of the array's bytes each dimension is crossed by its part of the tokens. */
static void exchange_set(const struct emit *emit, const struct graph_step *step,
                         struct plan_request *request)
{
    const struct routing *experts = &emit->lower->ranks->experts;
    units_wide const bytes = request->size_bytes, exchanged = experts->exchanged;
    bool const automatic = algorithm_is_chosen(&request->algorithm);
    request->spreads = step->move.spreads;
    if (routing_copies_each(emit->lower->ranks)) {
        if (automatic) request->algorithm = algorithm_by_pairs(&request->group);
        return;
    }
    if (experts->drawn.expert_count != 0) {
        drawn_set(emit, request);
        return;
    }
    for (uint32_t d = 0; d < request->group.dimension_count; d++)
        request->exchange_bytes[d] =
            (uint64_t)((bytes * experts->crossing[d] + exchanged - 1) / exchanged);
}

uint32_t emit_plan(struct emit *emit, uint32_t at)
{
    const struct graph_step *step = &emit->steps->step[at];
    struct lower *lower = emit->lower;
    if (emit->plan[at] != LOWER_NONE || lower->build.status != STATUS_OK) return emit->plan[at];
    struct emit_route const route = emit_route(lower->ranks, emit->graph, step);
    struct plan_request request = {
        .kind = step->move.kind,
        .algorithm = lower->ranks->plan->algorithm,
        .group = *route.group,
        .chunk_count = emit_is_chunked(emit, step) ? (uint32_t)group_rank_count(route.group) : 0,
        .size_bytes = step->move.bytes,
    };
    if (step->move.rounds) request.algorithm = lower->ranks->sequences.rounds;
    if (step->move.kind == COLLECTIVE_PERMUTE) home_set(&request);
    if (step->move.axis == OP_AXIS_EP) exchange_set(emit, step, &request);
    emit->plan[at] = lower_plan_bytes(lower, &request, step->move.format);
    return emit->plan[at];
}
