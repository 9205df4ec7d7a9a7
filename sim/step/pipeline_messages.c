/* Messages between pipeline stages: who sends what to whom, as the how many-th. */
#include "sim/base/arena.h"
#include "sim/step/pipeline.h"

/* Whether what the last stage samples in a pass is for the first; and whether the first begins a
 * pass with it. */
static bool gives_tokens(const struct pipeline *pipeline, uint32_t microbatch)
{
    uint32_t const passes = pipeline->schedule.answer_passes;
    if (passes == 0) return pipeline->schedule.goes_round;
    return (microbatch + 1) % passes != 0 &&
           pipeline->lower->shapes[microbatch].ranks->inference.head_rows != 0;
}

static bool takes_tokens(const struct pipeline *pipeline, uint32_t microbatch)
{
    uint32_t const passes = pipeline->schedule.answer_passes;
    return passes == 0 ? pipeline->schedule.goes_round : (microbatch + 1) % passes == 0;
}

/* The stage that a pass gives its result to (`behind`), or whose result it needs; -1: none, as it
 * is the last or first pass of a microbatch, or a weight gradient. */
static int64_t stage_beside(const struct pipeline *pipeline, const struct schedule_pass *pass,
                            bool behind)
{
    uint32_t const last = pipeline->schedule.stage_count - 1;
    if (pass->kind == SCHEDULE_WEIGHT) return -1;
    if (behind && pass->stage == last && gives_tokens(pipeline, pass->microbatch)) return 0;
    if (!behind && pass->stage == 0 && takes_tokens(pipeline, pass->microbatch)) return last;
    if (pipeline_is_forward(pass->kind) != behind) return (int64_t)pass->stage - 1;
    return pass->stage + 1u == pipeline->schedule.stage_count ? -1 : (int64_t)pass->stage + 1;
}

/* How a message goes from one rank to another. Of two ranks each is the next and the previous:
 * activations go to the next, gradients to the previous; but two copies go both ways, and never
 * around. */
static enum pipeline_way way_between(const struct pipeline *pipeline, uint32_t from, uint32_t to,
                                     bool forward)
{
    uint32_t const rank_count = pipeline->schedule.rank_count;
    if (pipeline->schedule.copy_count > 1)
        return from + 1 == to ? WAY_NEXT : from == to + 1 ? WAY_PREVIOUS : WAY_NONE;
    bool const next = (from + 1) % rank_count == to, previous = (to + 1) % rank_count == from;
    if (next && (forward || !previous)) return WAY_NEXT;
    return previous ? WAY_PREVIOUS : WAY_NONE;
}

/* How what a pass sends goes; false: to no neighbour. */
static bool pass_sends(const struct pipeline *pipeline, const struct schedule_pass *pass,
                       uint32_t rank, enum pipeline_way *ret_way, bool *ret_around)
{
    int64_t const behind = stage_beside(pipeline, pass, true);
    *ret_way = WAY_NONE;
    *ret_around = false;
    if (behind < 0) return true;
    uint32_t const to = schedule_rank_of(&pipeline->schedule, (uint32_t)behind, pass->microbatch);
    if (to == rank) return true;
    *ret_way = way_between(pipeline, rank, to, pipeline_is_forward(pass->kind));
    *ret_around = *ret_way == WAY_NEXT ? to < rank : to > rank;
    return *ret_way != WAY_NONE;
}

/* Behind a stage with modules goes what each of them gives, to the head, and comes its gradient.
 * One stage sends nothing. */
static uint32_t arrays_between(const struct pipeline *pipeline, int64_t stage, int64_t behind)
{
    int64_t const before = stage < behind ? stage : behind;
    uint32_t arrays = pipeline->schedule.stage_count > 1;
    bool const answers = pipeline->schedule.goes_round || pipeline->schedule.answer_passes != 0;
    if (answers && behind >= 0 && behind < stage) return 0;
    if (behind < 0 || !pipeline->lower->ranks->mtp.apart) return arrays;
    for (int64_t s = 0; s <= before; s++) arrays += pipeline->stages.stage[s].mtp_modules;
    return arrays;
}

static uint32_t *number_at(const struct pipeline *pipeline, bool forward, int64_t stage,
                           uint32_t microbatch)
{
    uint64_t const row = (uint64_t)stage * pipeline->schedule.microbatch_count;
    return &pipeline->number[forward ? 0 : 1][row + microbatch];
}

/* Numbers the messages of each rank in the order of its list. */
enum status pipeline_messages_number(struct pipeline *pipeline, struct error *reterr)
{
    const struct schedule *schedule = &pipeline->schedule;
    uint64_t const passes = (uint64_t)schedule->stage_count * schedule->microbatch_count;
    for (uint32_t i = 0; i < 2; i++) {
        void *memory = NULL;
        STATUS_TRY(
            arena_try(pipeline->lower->build.arena, passes, sizeof(uint32_t), &memory, reterr));
        pipeline->number[i] = memory;
    }
    for (uint32_t rank = 0; rank < schedule->rank_count; rank++) {
        uint32_t sent[WAY_COUNT] = {0};
        for (uint32_t i = 0; i < schedule->rank[rank].count; i++) {
            const struct schedule_pass *pass = &schedule->rank[rank].pass[i];
            enum pipeline_way way = WAY_NONE;
            bool around = false;
            if (!pass_sends(pipeline, pass, rank, &way, &around))
                return error_set(reterr, STATUS_UNSUPPORTED, "/workload/schedule",
                                 "%s: stage %u lies on rank %u and hands on to a rank that is not "
                                 "next to it; only neighbours along pp are sent to",
                                 schedule->name, pass->stage, rank);
            if (way != WAY_NONE)
                *number_at(pipeline, pipeline_is_forward(pass->kind), pass->stage,
                           pass->microbatch) = ++sent[way];
        }
        if (rank == 0) pipeline->tied_message[1] = sent[WAY_PREVIOUS] + 1;
        if (rank + 1 == schedule->rank_count) pipeline->tied_message[0] = sent[WAY_NEXT] + 1;
    }
    /* On streams of their own. */
    if (pipeline->lower->ranks->mtp.apart)
        pipeline->tied_message[0] = pipeline->tied_message[1] = 1;
    return STATUS_OK;
}

struct pipeline_messages pipeline_messages_of(const struct pipeline *pipeline, uint32_t rank,
                                              const struct schedule_pass *pass)
{
    struct pipeline_messages messages = {0};
    int64_t const before = stage_beside(pipeline, pass, false);
    (void)pass_sends(pipeline, pass, rank, &messages.send, &messages.around);
    messages.arrays = arrays_between(pipeline, pass->stage, stage_beside(pipeline, pass, true));
    if (before < 0) return messages;
    if (pipeline->schedule.goes_round &&
        pass->microbatch == pipeline->schedule.rank[rank].pass[0].microbatch)
        return messages;
    /* A step begins with the token that the pass before it has given. */
    bool const answers = pipeline->schedule.answer_passes != 0 && before > (int64_t)pass->stage;
    uint32_t const microbatch = pass->microbatch - answers;
    uint32_t const from = schedule_rank_of(&pipeline->schedule, (uint32_t)before, microbatch);
    struct schedule_pass const giver = {
        .microbatch = microbatch, .stage = (uint16_t)before, .kind = pass->kind};
    enum pipeline_way given = WAY_NONE;
    bool around = false;
    if (from == rank) return messages;
    (void)pass_sends(pipeline, &giver, from, &given, &around);
    messages.receive = given == WAY_NEXT ? WAY_PREVIOUS : WAY_NEXT;
    messages.arrivals = *number_at(pipeline, pipeline_is_forward(pass->kind), before, microbatch);
    return messages;
}

int32_t *pipeline_distance(struct plan_request *request)
{
    return request->group.dimension_count > 1 ? &request->shift : &request->offset[0];
}

uint32_t pipeline_send_plan(struct pipeline *pipeline, enum pipeline_way way, bool around,
                            uint32_t arrays)
{
    const struct ranks *ranks = pipeline->lower->ranks;
    int32_t const step = around ? -((int32_t)pipeline->schedule.rank_count - 1) : 1;
    struct plan_request request = {.kind = COLLECTIVE_PERMUTE,
                                   .group = ranks->mesh->axis[MESH_PP].group};
    *pipeline_distance(&request) = way == WAY_NEXT ? step : -step;
    bool const of_tokens = arrays == 0;
    return lower_plan_request(pipeline->lower, &request,
                              of_tokens ? ranks->inference.head_rows
                                        : arrays * ranks_sent_elements(ranks),
                              of_tokens ? PIPELINE_TOKEN_FORMAT : ranks->plan->formats.activations);
}
