#include "sim/base/arena.h"
#include "sim/schedule/schedule.h"
#include "sim/workload/pipeline.h"
#include "sim/workload/stages.h"

/* What a template is made of. `nothing`: a stage that has neither layers nor ends in this pass, and
 * only hands on what it gets. */
enum unit_kind { UNIT_EMBEDDING, UNIT_LAYER, UNIT_HEAD, UNIT_NOTHING };

/* A message goes to a neighbour along pp, who may be the one around. */
enum way { WAY_NONE, WAY_NEXT, WAY_PREVIOUS };

struct variant {
    uint8_t unit;          /* enum unit_kind */
    uint8_t layer;         /* Of a layer: LOCAL_DENSE or LOCAL_EXPERTS. */
    uint8_t kind;          /* enum schedule_kind */
    uint8_t receive, send; /* enum way */
    bool around;           /* It is sent from the last rank to the first, or back. */
    bool last;             /* Gradients are reduced. */
    uint16_t template_index;
};

enum {
    VARIANTS_MAX = LOWER_TEMPLATES_MAX,
    PLANS_OF_SENDS = 4,
    BLOCKS_A_PASS = 6,
    UPDATES = 4, /* Of a stage. */
    TWINS = 2,
};

struct pipeline {
    struct lower *lower;
    uint64_t dense_layers; /* The first so many have one MLP. */
    struct schedule schedule;
    struct stages stages;
    struct variant variant[VARIANTS_MAX];
    uint32_t variant_count;
    int32_t displacement[PLANS_OF_SENDS]; /* Of plans that exist. */
    uint32_t plan[PLANS_OF_SENDS];
    uint32_t plan_count;
    uint32_t *number[2]; /* [stage · microbatches + microbatch]: the message that a forward (0) or
                            backward pass (1) sends is that of its sender's stream, from 1. */
    uint16_t update[UNIT_NOTHING];      /* Templates, by unit; */
    uint16_t update_layer[LOCAL_KINDS]; /* of each kind of layer; */
    uint16_t twin[TWINS];               /* of the first stage, and of the last, */
    uint32_t twin_message[TWINS];       /* which comes as the message of this number. */
    bool differs;                       /* Only the last microbatch reduces gradients. */
    struct program_block *block;        /* Of the role under construction. */
    uint32_t block_count;
};

static bool is_forward(uint32_t kind)
{
    return kind == SCHEDULE_FORWARD;
}

/* The stage that a pass gives its result to, or -1: the last pass of a microbatch, or a weight
 * gradient. */
static int64_t stage_behind(const struct pipeline *pipeline, const struct schedule_pass *pass)
{
    if (pass->kind == SCHEDULE_WEIGHT) return -1;
    if (!is_forward(pass->kind)) return (int64_t)pass->stage - 1;
    return pass->stage + 1u == pipeline->schedule.stage_count ? -1 : (int64_t)pass->stage + 1;
}

/* The stage whose result a pass needs, or -1. */
static int64_t stage_before(const struct pipeline *pipeline, const struct schedule_pass *pass)
{
    if (pass->kind == SCHEDULE_WEIGHT) return -1;
    if (is_forward(pass->kind)) return (int64_t)pass->stage - 1;
    return pass->stage + 1u == pipeline->schedule.stage_count ? -1 : (int64_t)pass->stage + 1;
}

/* How a message goes from one rank to another. Of two ranks each is the next and the previous:
 * activations go to the next, gradients to the previous. */
static enum way way_between(const struct pipeline *pipeline, uint32_t from, uint32_t to,
                            bool forward)
{
    uint32_t const ranks = pipeline->schedule.rank_count;
    bool const next = (from + 1) % ranks == to, previous = (to + 1) % ranks == from;
    if (next && (forward || !previous)) return WAY_NEXT;
    return previous ? WAY_PREVIOUS : WAY_NONE;
}

/* How what a pass sends goes; false: to no neighbour. */
static bool pass_sends(const struct pipeline *pipeline, const struct schedule_pass *pass,
                       uint32_t rank, enum way *ret_way, bool *ret_around)
{
    int64_t const behind = stage_behind(pipeline, pass);
    *ret_way = WAY_NONE;
    *ret_around = false;
    if (behind < 0) return true;
    uint32_t const to = schedule_rank_of(&pipeline->schedule, (uint32_t)behind, pass->microbatch);
    if (to == rank) return true;
    *ret_way = way_between(pipeline, rank, to, is_forward(pass->kind));
    *ret_around = *ret_way == WAY_NEXT ? to < rank : to > rank;
    return *ret_way != WAY_NONE;
}

static uint32_t *number_at(const struct pipeline *pipeline, bool forward, int64_t stage,
                           uint32_t microbatch)
{
    uint64_t const row = (uint64_t)stage * pipeline->schedule.microbatch_count;
    return &pipeline->number[forward ? 0 : 1][row + microbatch];
}

/* Numbers the messages of each rank in the order of its list. */
static enum status messages_number(struct pipeline *pipeline, struct error *reterr)
{
    const struct schedule *schedule = &pipeline->schedule;
    uint64_t const passes = (uint64_t)schedule->stage_count * schedule->microbatch_count;
    for (uint32_t i = 0; i < 2; i++) {
        void *memory = NULL;
        STATUS_TRY(arena_try(pipeline->lower->arena, passes, sizeof(uint32_t), &memory, reterr));
        pipeline->number[i] = memory;
    }
    for (uint32_t rank = 0; rank < schedule->rank_count; rank++) {
        uint32_t sent[WAY_PREVIOUS + 1] = {0};
        for (uint32_t i = 0; i < schedule->rank[rank].count; i++) {
            const struct schedule_pass *pass = &schedule->rank[rank].pass[i];
            enum way way = WAY_NONE;
            bool around = false;
            if (!pass_sends(pipeline, pass, rank, &way, &around))
                return error_set(reterr, STATUS_UNSUPPORTED, "/workload/schedule",
                                 "%s: stage %u lies on rank %u and hands on to a rank that is not "
                                 "next to it; only neighbours along pp are sent to",
                                 schedule->name, pass->stage, rank);
            if (way != WAY_NONE)
                *number_at(pipeline, is_forward(pass->kind), pass->stage, pass->microbatch) =
                    ++sent[way];
        }
        if (rank == 0) pipeline->twin_message[1] = sent[WAY_PREVIOUS] + 1;
        if (rank + 1 == schedule->rank_count) pipeline->twin_message[0] = sent[WAY_NEXT] + 1;
    }
    return STATUS_OK;
}

/* One rank's message of what a data rank's tokens are, sharded as it is between blocks. */
static uint32_t send_plan(struct pipeline *pipeline, int32_t displacement)
{
    struct lower *lower = pipeline->lower;
    const struct local *local = lower->local;
    struct program *program = lower->program;
    for (uint32_t i = 0; i < pipeline->plan_count; i++)
        if (pipeline->displacement[i] == displacement) return pipeline->plan[i];
    if (lower->status != STATUS_OK) return LOWER_NONE;
    SIM_ASSERT(program->plan_count < LOWER_PLANS_MAX && pipeline->plan_count < PLANS_OF_SENDS);
    struct plan_request request = {
        .kind = COLLECTIVE_PERMUTE,
        .group = local->mesh->axis[MESH_PP].group,
        .size_bytes = lower_activation_bytes(lower, local->block_shard),
        .offset = {displacement},
    };
    plan_request_links(local->machine, &request);
    lower->status = plan_build(lower->arena, &request, "/mesh/pp",
                               &program->plans[program->plan_count], lower->error);
    if (lower->status != STATUS_OK) return LOWER_NONE;
    pipeline->displacement[pipeline->plan_count] = displacement;
    return pipeline->plan[pipeline->plan_count++] = program->plan_count++;
}

static void receive_add(struct pipeline *pipeline, const struct variant *variant)
{
    struct lower *lower = pipeline->lower;
    enum lower_stream const stream =
        variant->receive == WAY_PREVIOUS ? LOWER_RECEIVE_PREVIOUS : LOWER_RECEIVE_NEXT;
    const char *name = is_forward(variant->kind) ? "receive activations" : "receive gradients";
    if (variant->receive == WAY_NONE) return;
    lower->received = lower_op_add(lower, (struct program_op){.name = name,
                                                              .class_name = name,
                                                              .kind = PROGRAM_OP_RECEIVE,
                                                              .stream = lower->stream[stream],
                                                              .parts = 1});
    lower_need_before(lower, lower->received, LOWER_COMPUTE);
}

static void send_add(struct pipeline *pipeline, const struct variant *variant)
{
    struct lower *lower = pipeline->lower;
    bool const next = variant->send == WAY_NEXT;
    int32_t const around = (int32_t)pipeline->schedule.rank_count - 1;
    const char *name = is_forward(variant->kind) ? "send activations" : "send gradients";
    if (variant->send == WAY_NONE) return;
    int32_t const step = variant->around ? -around : 1;
    uint32_t const plan = send_plan(pipeline, next ? step : -step);
    if (plan == LOWER_NONE) return;
    uint32_t const op = lower_op_add(
        lower,
        (struct program_op){.name = name,
                            .class_name = name,
                            .kind = PROGRAM_OP_SEND,
                            .stream = lower->stream[next ? LOWER_SEND_NEXT : LOWER_SEND_PREVIOUS],
                            .parts = 1,
                            .index = (uint16_t)plan});
    lower_need_output(lower, op);
    uint64_t const bytes = lower_activation_bytes(lower, lower->local->block_shard);
    lower_take(lower, op, PROGRAM_MEMORY_BUFFERS, bytes);
    lower_give(lower, op, PROGRAM_MEMORY_BUFFERS, bytes);
}

static void unit_emit(struct lower *lower, const struct variant *variant)
{
    static const struct lower_behind no_update = {0};
    bool const forward = is_forward(variant->kind);
    switch ((enum unit_kind)variant->unit) {
    case UNIT_EMBEDDING:
        if (forward)
            lower_embedding_forward(lower);
        else
            lower_embedding_backward(lower, &no_update);
        break;
    case UNIT_LAYER:
        if (forward)
            lower_layer_forward(lower, /* top= */ false);
        else
            lower_layer_backward(lower, /* top= */ false, &no_update);
        break;
    case UNIT_HEAD:
        if (forward)
            lower_head_forward(lower);
        else
            lower_head_backward(lower);
        break;
    case UNIT_NOTHING:
        break;
    }
}

static uint16_t variant_template(struct pipeline *pipeline, struct variant variant)
{
    static const char *const units[] = {"embedding", "layer", "head", "stage"};
    static const enum lower_half halves[] = {LOWER_WHOLE, LOWER_WHOLE, LOWER_INPUT, LOWER_WEIGHT};
    struct lower *lower = pipeline->lower;
    for (uint32_t i = 0; i < pipeline->variant_count; i++) {
        const struct variant *known = &pipeline->variant[i];
        if (known->unit == variant.unit && known->layer == variant.layer &&
            known->kind == variant.kind && known->receive == variant.receive &&
            known->send == variant.send && known->around == variant.around &&
            known->last == variant.last)
            return known->template_index;
    }
    SIM_ASSERT(pipeline->variant_count < VARIANTS_MAX);
    lower->layer = &lower->local->layer[variant.layer];
    lower_template_begin(lower, lower_format(lower, "%s %s", units[variant.unit],
                                             schedule_kind_name((enum schedule_kind)variant.kind)));
    lower->half = halves[variant.kind];
    lower->last_microbatch = variant.last;
    receive_add(pipeline, &variant);
    unit_emit(lower, &variant);
    send_add(pipeline, &variant);
    variant.template_index = lower_template_end(lower);
    pipeline->variant[pipeline->variant_count++] = variant;
    return variant.template_index;
}

/* The units of a stage in the order of the forward pass, without those that a pass has no part of:
 * the embedding has no input gradient. */
struct units {
    const struct stage *stage;
    bool embedding, head;
    uint32_t count;
};

static struct units units_of(const struct pipeline *pipeline, const struct schedule_pass *pass)
{
    const struct stage *stage = &pipeline->stages.stage[pass->stage];
    bool const embedding = stage->embedding && pass->kind != SCHEDULE_INPUT;
    return (struct units){.stage = stage,
                          .embedding = embedding,
                          .head = stage->head,
                          .count = stage->layer_count + embedding + stage->head};
}

/* The unit that a pass plays at a place; `ret_layer` is its layer, or -1. */
static enum unit_kind unit_at(const struct units *units, bool forward, uint32_t place,
                              int32_t *ret_layer)
{
    uint32_t const at = forward ? place : units->count - 1 - place;
    *ret_layer = -1;
    if (units->embedding && at == 0) return UNIT_EMBEDDING;
    if (units->head && at + 1 == units->count) return UNIT_HEAD;
    *ret_layer = (int32_t)(units->stage->layer_first + at - units->embedding);
    return UNIT_LAYER;
}

static void block_add(struct pipeline *pipeline, const struct program_block *block)
{
    struct program_block *former =
        pipeline->block_count == 0 ? NULL : &pipeline->block[pipeline->block_count - 1];
    if (former != NULL && former->template_index == block->template_index &&
        former->pass == block->pass && former->layer_first >= 0 && block->layer_first >= 0 &&
        former->phase == block->phase &&
        former->layer_first + former->layer_step * (int32_t)former->repeat == block->layer_first) {
        former->repeat += block->repeat;
        return;
    }
    pipeline->block[pipeline->block_count++] = *block;
}

static void pass_add(struct pipeline *pipeline, uint32_t rank, uint32_t index, bool last)
{
    static const char *const names[] = {"embedding", "layer", "head", "stage"};
    static const enum program_phase phases[] = {PROGRAM_PHASE_FORWARD, PROGRAM_PHASE_BACKWARD,
                                                PROGRAM_PHASE_BACKWARD, PROGRAM_PHASE_WEIGHT};
    const struct schedule_pass *pass = &pipeline->schedule.rank[rank].pass[index];
    bool const forward = is_forward(pass->kind);
    struct units const units = units_of(pipeline, pass);
    struct variant variant = {.kind = pass->kind, .last = !forward && (last || !pipeline->differs)};
    enum way send = WAY_NONE, receive = WAY_NONE;
    uint64_t arrivals = 0;
    int64_t const before = stage_before(pipeline, pass);
    bool around = false, around_before = false;
    (void)pass_sends(pipeline, pass, rank, &send, &around);
    if (before >= 0) {
        uint32_t const from =
            schedule_rank_of(&pipeline->schedule, (uint32_t)before, pass->microbatch);
        struct schedule_pass const giver = {
            .microbatch = pass->microbatch, .stage = (uint16_t)before, .kind = pass->kind};
        enum way given = WAY_NONE;
        if (from != rank) (void)pass_sends(pipeline, &giver, from, &given, &around_before);
        receive = given == WAY_NEXT ? WAY_PREVIOUS : given == WAY_PREVIOUS ? WAY_NEXT : WAY_NONE;
        if (from != rank) arrivals = *number_at(pipeline, forward, before, pass->microbatch);
    }
    uint32_t const count = units.count == 0 && (send || receive) ? 1 : units.count;
    for (uint32_t place = 0; place < count; place++) {
        int32_t layer = -1;
        variant.unit =
            units.count == 0 ? UNIT_NOTHING : (uint8_t)unit_at(&units, forward, place, &layer);
        variant.layer = (uint8_t)(layer >= (int64_t)pipeline->dense_layers);
        variant.receive = place == 0 ? (uint8_t)receive : WAY_NONE;
        variant.send = place + 1 == count ? (uint8_t)send : WAY_NONE;
        variant.around = variant.send != WAY_NONE && around;
        struct program_block const block = {
            .template_index = variant_template(pipeline, variant),
            .phase = phases[pass->kind],
            .name = names[variant.unit],
            .repeat = 1,
            .layer_first = layer,
            .layer_step = layer < 0 ? 0
                          : forward ? 1
                                    : -1,
            .microbatch = pass->microbatch,
            .pass = index + 1,
            .arrivals = variant.receive == WAY_NONE ? 0 : arrivals,
        };
        block_add(pipeline, &block);
    }
}

/* Once all gradients of a rank are reduced: as Megatron's optimizer does, and unlike a step without
 * stages, where each layer is updated as soon as its own are. */
static void updates_build(struct pipeline *pipeline)
{
    struct lower *lower = pipeline->lower;
    const struct local *local = lower->local;
    struct local_unit const head = lower_head_unit(local), embedding = lower_embedding_unit(local);
    for (uint32_t k = 0; k < LOCAL_KINDS; k++) {
        struct lower_behind const layer = {.name = "update layer",
                                           .units = local->layer[k].unit,
                                           .unit_count = local->layer[k].unit_count};
        if (local->layer[k].count != 0) pipeline->update_layer[k] = lower_update(lower, &layer);
    }
    if (!local_is_llama(local)) return;
    struct lower_behind const first = {
        .name = "update embedding", .units = &embedding, .unit_count = 1};
    struct lower_behind const last = {.name = "update head", .units = &head, .unit_count = 1};
    pipeline->update[UNIT_EMBEDDING] = lower_update(lower, &first);
    pipeline->update[UNIT_HEAD] = lower_update(lower, &last);
    if (!local->twins) return;
    pipeline->twin[0] = lower_twin(lower, &pipeline->schedule, /* head= */ false);
    pipeline->twin[1] = lower_twin(lower, &pipeline->schedule, /* head= */ true);
}

static void update_add(struct pipeline *pipeline, const struct stage *stage)
{
    uint32_t const microbatch = pipeline->schedule.microbatch_count - 1;
    struct program_block block = {
        .phase = PROGRAM_PHASE_UPDATE, .repeat = 1, .layer_first = -1, .microbatch = microbatch};
    if (stage->head) {
        block.name = "head";
        block.template_index = pipeline->update[UNIT_HEAD];
        block_add(pipeline, &block);
    }
    if (stage->embedding) {
        block.name = "embedding";
        block.template_index = pipeline->update[UNIT_EMBEDDING];
        block_add(pipeline, &block);
    }
    uint32_t const dense = stages_dense_layers(stage, pipeline->dense_layers);
    for (uint32_t k = LOCAL_KINDS; k-- > 0;) {
        uint32_t const count = k == LOCAL_DENSE ? dense : stage->layer_count - dense;
        uint32_t const below = k == LOCAL_DENSE ? 0 : dense;
        if (count == 0) continue;
        block.name = "layer";
        block.template_index = pipeline->update_layer[k];
        block.repeat = count;
        block.layer_first = (int32_t)(stage->layer_first + below + count - 1);
        block.layer_step = -1;
        block_add(pipeline, &block);
    }
}

/* Whether no later pass of the rank adds to the same stage's gradients. */
static bool pass_is_last(const struct schedule_rank *list, uint32_t index)
{
    const struct schedule_pass *pass = &list->pass[index];
    if (pass->kind != SCHEDULE_BACKWARD && pass->kind != SCHEDULE_WEIGHT) return false;
    for (uint32_t i = index + 1; i < list->count; i++) {
        const struct schedule_pass *later = &list->pass[i];
        bool const adds = later->kind == SCHEDULE_BACKWARD || later->kind == SCHEDULE_WEIGHT;
        if (adds && later->stage == pass->stage) return false;
    }
    return true;
}

static enum status role_add(struct pipeline *pipeline, uint32_t rank, struct program_role *role,
                            struct error *reterr)
{
    struct lower *lower = pipeline->lower;
    const struct schedule *schedule = &pipeline->schedule;
    const struct schedule_rank *list = &schedule->rank[rank];
    uint64_t layers[LOCAL_KINDS] = {0}, most = UPDATES + TWINS;
    bool embedding = false, head = false;
    void *memory = NULL;
    for (uint32_t s = 0; s < schedule->stage_count; s++) {
        if (schedule->rank_of[s] != rank) continue;
        const struct stage *stage = &pipeline->stages.stage[s];
        uint32_t const dense = stages_dense_layers(stage, pipeline->dense_layers);
        layers[LOCAL_DENSE] += dense;
        layers[LOCAL_EXPERTS] += stage->layer_count - dense;
        embedding = embedding || stage->embedding;
        head = head || stage->head;
        most += UPDATES;
    }
    most += (uint64_t)list->count * BLOCKS_A_PASS;
    STATUS_TRY(arena_try(lower->arena, most, sizeof *pipeline->block, &memory, reterr));
    pipeline->block = memory;
    pipeline->block_count = 0;
    for (uint32_t i = 0; i < list->count; i++) pass_add(pipeline, rank, i, pass_is_last(list, i));
    for (uint32_t i = 0; lower->local->twins && i < TWINS; i++) {
        struct program_block const twin =
            lower_twin_block(schedule, i == 1, pipeline->twin[i], pipeline->twin_message[i]);
        if (i == 1 ? head : embedding) block_add(pipeline, &twin);
    }
    for (uint32_t s = schedule->stage_count; s-- > 0;)
        if (schedule->rank_of[s] == rank) update_add(pipeline, &pipeline->stages.stage[s]);
    SIM_ASSERT(pipeline->block_count <= most);
    role->block = pipeline->block;
    role->block_count = pipeline->block_count;
    lower_resident(lower->local, layers, embedding, head, role->resident_bytes);
    return STATUS_OK;
}

static enum status pipeline_build(struct pipeline *pipeline, struct error *reterr)
{
    struct lower *lower = pipeline->lower;
    const struct local *local = lower->local;
    struct program *program = lower->program;
    const struct mesh_axis *axis = &local->mesh->axis[MESH_PP];
    void *memory = NULL;
    STATUS_TRY(pipeline_check(local, reterr));
    STATUS_TRY(
        workload_schedule(lower->arena, local->plan, local->mesh, &pipeline->schedule, reterr));
    STATUS_TRY(pipeline_schedule_check(local, &pipeline->schedule, reterr));
    STATUS_TRY(stages_build(lower->arena, local->plan, pipeline->schedule.stage_count,
                            &pipeline->stages, reterr));
    STATUS_TRY(messages_number(pipeline, reterr));
    bool const kv_last = local->kv_holders > 1 && local->gradient_shards == 1;
    pipeline->differs = local->plan->accumulate > 1 && (local->reduce_last || kv_last);
    updates_build(pipeline);
    program->role_count = pipeline->schedule.rank_count;
    STATUS_TRY(
        arena_try(lower->arena, program->role_count, sizeof *program->roles, &memory, reterr));
    program->roles = memory;
    for (uint32_t rank = 0; rank < program->role_count; rank++)
        STATUS_TRY(role_add(pipeline, rank, &program->roles[rank], reterr));
    for (uint32_t i = 0; i < axis->part_count; i++) {
        if (axis->part[i].size == 1) continue;
        program->role_axis = (uint8_t)axis->part[i].axis;
        program->role_stride = axis->part[i].stride;
    }
    return lower->status;
}

void lower_pipeline(struct lower *lower)
{
    void *memory = NULL;
    if (lower->status != STATUS_OK) return;
    lower->status = arena_try(lower->arena, 1, sizeof(struct pipeline), &memory, lower->error);
    if (lower->status != STATUS_OK) return;
    struct pipeline *pipeline = memory;
    pipeline->lower = lower;
    pipeline->dense_layers = lower->local->layer[LOCAL_DENSE].count;
    enum status const status = pipeline_build(pipeline, lower->error);
    if (lower->status == STATUS_OK) lower->status = status;
}
