/*
 * Collectives that compute waits for. A template has one line: its compute ops, and the
 * collectives that are waited for, in the order of the program. Each op of the line begins when the
 * one before has ended, and the first when the lines of all earlier slots have. A gather of weights
 * stands in the line directly before the first op that reads these weights.
 */
#include "sim/base/arena.h"
#include "sim/collective/plan.h"
#include "sim/step/lower.h"

/* The ends of a template's line. */
struct lower_line {
    bool used;
    uint16_t first;   /* The first op of the line. */
    uint8_t trailing; /* The stream of the line's last op. */
};

static bool is_waited(enum workload_overlap overlap, enum collective_kind kind)
{
    bool const gathers = kind == COLLECTIVE_ALL_GATHER;
    bool const reduces = kind == COLLECTIVE_REDUCE_SCATTER || kind == COLLECTIVE_ALL_REDUCE;
    switch (overlap) {
    case WORKLOAD_OVERLAP_ALL:
        return false;
    case WORKLOAD_OVERLAP_NONE:
    case WORKLOAD_OVERLAP_PRODUCTS: /* But for those that places_find() finds issued before. */
        return true;
    case WORKLOAD_OVERLAP_GATHERS:
        return !gathers;
    case WORKLOAD_OVERLAP_REDUCTIONS:
        return !reduces;
    }
    return false;
}

/* What is issued behind all passes and updates stands alone already. */
static bool replicas_wait(const struct ranks *ranks)
{
    return ranks->plan->software.overlap.dp_apart && !ranks_replicas_wait(ranks);
}

/* The key of a stream's collectives. */
enum policy { POLICY_NONE, POLICY_WEIGHTS, POLICY_DP, POLICY_TP, POLICY_EP, POLICY_PP };
static const uint8_t policies[LOWER_STREAM_COUNT] = {
    [LOWER_GATHER_WEIGHTS] = POLICY_WEIGHTS,
    [LOWER_REDUCE_WEIGHTS] = POLICY_WEIGHTS,
    [LOWER_GATHER_TP] = POLICY_TP,
    [LOWER_REDUCE_TP] = POLICY_TP,
    [LOWER_GATHER_TP_D] = POLICY_TP,
    [LOWER_REDUCE_TP_D] = POLICY_TP,
    [LOWER_SUM_TP_D] = POLICY_TP,
    [LOWER_REDUCE_DP] = POLICY_DP,
    [LOWER_GATHER_DP] = POLICY_DP,
    [LOWER_SUM_KV] = POLICY_TP,
    [LOWER_SUM_LOGITS] = POLICY_TP,
    [LOWER_SUM_ROWS] = POLICY_TP,
    [LOWER_DISPATCH] = POLICY_EP,
    [LOWER_COMBINE] = POLICY_EP,
    [LOWER_REDUCE_EXPERTS] = POLICY_DP,
    [LOWER_GATHER_EXPERTS] = POLICY_DP,
    [LOWER_GATHER_KV] = POLICY_TP,
    [LOWER_REDUCE_KV] = POLICY_TP,
    [LOWER_SEND_NEXT] = POLICY_PP,
    [LOWER_SEND_PREVIOUS] = POLICY_PP,
};

static bool axis_waits(const struct lower *lower, enum lower_stream stream,
                       enum collective_kind kind)
{
    const struct ranks *ranks = lower->ranks;
    const struct workload_overlaps *overlap = &ranks->plan->software.overlap;
    switch ((enum policy)policies[stream]) {
    case POLICY_WEIGHTS:
        return ranks->shard_role == MESH_FSDP ? is_waited(overlap->fsdp, kind)
                                              : replicas_wait(ranks);
    case POLICY_DP:
        return replicas_wait(ranks);
    case POLICY_TP:
        if (stream == LOWER_GATHER_TP && ranks_gathers_messages(ranks)) return overlap->pp_apart;
        return is_waited(overlap->tp, kind);
    case POLICY_EP:
        return overlap->ep_apart;
    case POLICY_PP:
        return overlap->pp_apart;
    case POLICY_NONE:
        break;
    }
    return false;
}

bool lower_overlap_crosses(const struct lower *lower, const struct plan_request *request)
{
    enum workload_overlap const overlap = lower->ranks->plan->software.overlap.dcn;
    if (overlap == WORKLOAD_OVERLAP_ALL || lower->ranks->machine->chip.kind != CHIP_TPU ||
        !is_waited(overlap, request->kind))
        return false;
    for (uint32_t d = 0; d < request->group.dimension_count; d++)
        if (request->group.dimension[d].switched) return true;
    return false;
}

bool lower_overlap_waits(const struct lower *lower, const struct program_op *op)
{
    enum lower_stream stream = LOWER_COMPUTE;
    if (op->kind != PROGRAM_OP_COLLECTIVE && op->kind != PROGRAM_OP_SEND) return false;
    const struct plan_request *request = &lower->build.requests[op->index];
    if (request->chunk_count != 0) return false; /* It goes chunk by chunk with its matmul. */
    while (lower->stream[stream] != op->stream) stream++;
    return axis_waits(lower, stream, request->kind) || lower_overlap_crosses(lower, request);
}

static bool gathers_weights(const struct lower *lower, const struct program_op *op)
{
    return op->stream == lower->stream[LOWER_GATHER_WEIGHTS] ||
           op->stream == lower->stream[LOWER_GATHER_DP] ||
           op->stream == lower->stream[LOWER_GATHER_EXPERTS];
}

/* The first op behind a gather of weights that reads them, or the gather itself: none of the
 * template does. */
static uint32_t reader_of(const struct lower *lower, uint32_t gather)
{
    const struct builder *build = &lower->build;
    const struct program_op *of = &build->op[gather];
    if (!gathers_weights(lower, of) || build->requests[of->index].kind != COLLECTIVE_ALL_GATHER)
        return gather;
    for (uint32_t i = gather + 1; i < build->op_count; i++)
        for (uint32_t n = 0; build->op[i].stream == PROGRAM_COMPUTE && n < build->op[i].need_count;
             n++) {
            const struct program_need *need = &build->op[i].need[n];
            if (need->stream == of->stream && need->slot == 0 && need->part > of->part_first)
                return i;
        }
    return gather;
}

/* Whether a collective runs beside a product, whose gradients it is of: it is issued in its place,
 * and no op of the line waits for it but those that read what it moves. */
static bool is_beside(const struct lower *lower, uint32_t op)
{
    return lower->ranks->plan->software.overlap.tp == WORKLOAD_OVERLAP_PRODUCTS &&
           lower->issued[op] != LOWER_NONE;
}

/* Before which op a collective is issued; LOWER_NONE: it is not waited for. Ops of a stream stay in
 * their order. */
static void places_find(const struct lower *lower, uint32_t ret_place[PROGRAM_OPS_MAX])
{
    const struct builder *build = &lower->build;
    uint32_t next[PROGRAM_STREAMS_MAX];
    for (uint32_t s = 0; s < PROGRAM_STREAMS_MAX; s++) next[s] = LOWER_NONE;
    for (uint32_t i = build->op_count; i-- > 0;) {
        ret_place[i] = LOWER_NONE;
        if (!lower_overlap_waits(lower, &build->op[i])) continue;
        uint32_t *const later = &next[build->op[i].stream];
        ret_place[i] = is_beside(lower, i) ? lower->issued[i] : reader_of(lower, i);
        if (*later < ret_place[i]) ret_place[i] = *later;
        *later = ret_place[i];
    }
}

/* The next op of the line. */
static void line_add(struct lower *lower, struct lower_line *line, uint32_t *last, uint32_t op)
{
    if (*last != LOWER_NONE) {
        lower_need_done(lower, op, *last, NULL);
    } else {
        line->used = true;
        line->first = (uint16_t)op;
        lower_need_before(lower, op, LOWER_COMPUTE, NULL);
    }
    *last = op;
    line->trailing = lower->build.op[op].stream;
}

static bool has_policy(const struct workload_overlaps *overlap)
{
    return overlap->fsdp != WORKLOAD_OVERLAP_ALL || overlap->dcn != WORKLOAD_OVERLAP_ALL ||
           overlap->tp != WORKLOAD_OVERLAP_ALL || overlap->dp_apart || overlap->ep_apart ||
           overlap->pp_apart;
}

void lower_overlap_template(struct lower *lower)
{
    uint32_t place[PROGRAM_OPS_MAX], last = LOWER_NONE;
    void *memory = NULL;
    struct builder *build = &lower->build;
    if (!has_policy(&lower->ranks->plan->software.overlap) || build->status != STATUS_OK) return;
    if (lower->line == NULL)
        build->status = arena_try(build->arena, PROGRAM_TEMPLATES_MAX, sizeof *lower->line, &memory,
                                  build->error);
    if (build->status != STATUS_OK) return;
    if (lower->line == NULL) lower->line = memory;
    if (build->program->template_count == PROGRAM_TEMPLATES_MAX) return; /* Refused at its end. */
    struct lower_line *line = &lower->line[build->program->template_count];
    places_find(lower, place);
    for (uint32_t i = 0; i < build->op_count; i++) {
        for (uint32_t k = 0; k < build->op_count; k++) {
            if (place[k] != i) continue;
            if (!is_beside(lower, k))
                line_add(lower, line, &last, k);
            else if (last != LOWER_NONE)
                lower_need_done(lower, k, last, NULL);
        }
        if (build->op[i].stream == PROGRAM_COMPUTE) line_add(lower, line, &last, i);
    }
}

static bool has_need_before(const struct program_op *op, uint32_t stream)
{
    for (uint32_t n = 0; n < op->need_count; n++)
        if (op->need[n].stream == stream && op->need[n].slot == 0 && !op->need[n].begun)
            return true;
    return op->stream == stream;
}

void lower_overlap_slots(struct lower *lower)
{
    const struct program *program = lower->build.program;
    bool trailing[PROGRAM_STREAMS_MAX] = {false};
    if (lower->line == NULL) return;
    for (uint32_t t = 0; t < program->template_count; t++)
        if (lower->line[t].used) trailing[lower->line[t].trailing] = true;
    for (uint32_t t = 0; t < program->template_count; t++)
        for (uint32_t s = PROGRAM_COMPUTE + 1; s < program->stream_count; s++) {
            struct program_need const need = {.stream = (uint8_t)s, .reason = PROGRAM_REASON_ORDER};
            struct program_op *first = &program->templates[t].op[lower->line[t].first];
            if (!lower->line[t].used || !trailing[s] || has_need_before(first, s)) continue;
            if (builder_need_keep(&lower->build, first, &need) != STATUS_OK) return;
        }
}
