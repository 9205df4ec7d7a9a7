/* Templates of a pipeline's passes: a unit, what comes before it and what goes from it. */
#include "sim/base/arena.h"
#include "sim/step/pipeline.h"

const char *pipeline_module_name(enum pipeline_module module)
{
    static const char *const names[] = {"embedding", "layer", "layer", "mtp",
                                        "mtp head",  "head",  "stage"};
    return names[module];
}

static void receive_add(struct pipeline *pipeline, const struct pipeline_variant *variant)
{
    struct lower *lower = pipeline->lower;
    enum lower_stream const stream =
        variant->receive == WAY_PREVIOUS ? LOWER_RECEIVE_PREVIOUS : LOWER_RECEIVE_NEXT;
    bool const forward = pipeline_is_forward(variant->part[0].kind);
    const char *name = variant->part_count > 1 ? "receive both"
                       : forward               ? "receive activations"
                                               : "receive gradients";
    if (variant->receive == WAY_NONE) return;
    lower->received = lower_op_add(lower, (struct program_op){.name = name,
                                                              .class_name = name,
                                                              .kind = PROGRAM_OP_RECEIVE,
                                                              .stream = lower->stream[stream],
                                                              .parts = 1});
    lower_need_before(lower, lower->received, LOWER_COMPUTE, NULL);
}

static void send_add(struct pipeline *pipeline, const struct pipeline_pass *part)
{
    struct lower *lower = pipeline->lower;
    enum pipeline_way const way = (enum pipeline_way)part->send;
    bool const next = way == WAY_NEXT;
    bool const forward = pipeline_is_forward(part->kind);
    const char *name = forward ? "send activations" : "send gradients";
    if (way == WAY_NONE) return;
    uint32_t const plan = pipeline_send_plan(pipeline, way, part->around, part->arrays);
    if (lower->build.status != STATUS_OK) return;
    uint32_t const op = lower_op_add(
        lower,
        (struct program_op){.name = name,
                            .class_name = name,
                            .kind = PROGRAM_OP_SEND,
                            .stream = lower->stream[next ? LOWER_SEND_NEXT : LOWER_SEND_PREVIOUS],
                            .parts = 1,
                            .index = (uint16_t)plan});
    lower_need_output(lower, op, forward ? lower_stream_activation : lower_stream_gradient);
    uint64_t const bytes = lower_activation_bytes(lower, part->arrays * lower->ranks->block_shard);
    lower_take(lower, op, PROGRAM_MEMORY_BUFFERS, bytes);
    lower_give(lower, op, PROGRAM_MEMORY_BUFFERS, bytes);
}

static void unit_emit(struct lower *lower, const struct pipeline_pass *part)
{
    static const struct delayed_update no_update = {0};
    bool const forward = pipeline_is_forward(part->kind);
    switch ((enum pipeline_module)part->module) {
    case MODULE_EMBEDDING:
        lower_embedding(lower, !forward);
        break;
    case MODULE_LAYER:
    case MODULE_EXPERTS:
        if (forward)
            lower_layer_forward(lower, /* top= */ false);
        else
            lower_layer_backward(lower, /* top= */ false, &no_update);
        break;
    case MODULE_MTP:
        if (forward)
            lower_mtp_forward(lower, part->place);
        else
            lower_mtp_backward(lower, part->place);
        break;
    case MODULE_MTP_HEAD:
        lower_mtp_head(lower, part->place, !forward);
        break;
    case MODULE_HEAD:
        lower_head(lower, !forward);
        break;
    case MODULE_NOTHING:
    case MODULE_COUNT:
        break;
    }
}

static const struct ranks_layer *layer_of(const struct lower *lower, enum pipeline_module module)
{
    return &lower->ranks->layer[module == MODULE_EXPERTS ? LAYER_MOE : LAYER_DENSE];
}

static void part_emit(struct pipeline *pipeline, const struct pipeline_pass *part,
                      uint32_t received)
{
    static const enum lower_half halves[] = {LOWER_WHOLE, LOWER_WHOLE, LOWER_INPUT, LOWER_WEIGHT};
    struct lower *lower = pipeline->lower;
    lower->layer = layer_of(lower, (enum pipeline_module)part->module);
    lower->windowed = part->windowed;
    lower->half = halves[part->kind];
    lower->last_microbatch = part->last;
    lower->last_lookup = part->last_lookup;
    lower->keeping = (enum lower_weights)part->keeping;
    lower->head_stays = part->head_stays;
    lower->updated = part->updated;
    lower->gathers_since = part->since;
    lower->received = part->receives ? received : LOWER_NONE;
    unit_emit(lower, part);
    send_add(pipeline, part);
}

/* Weights that stages have held are given back with the last compute op. */
static void given_add(struct lower *lower, uint64_t bytes)
{
    uint32_t op = LOWER_NONE;
    for (uint32_t i = 0; i < lower->build.op_count; i++)
        if (lower->build.op[i].kind == PROGRAM_OP_COMPUTE) op = i;
    if (op == LOWER_NONE && lower->build.op_count > 0) op = lower->build.op_count - 1;
    lower_give(lower, op, PROGRAM_MEMORY_GATHERED, bytes);
}

static bool variants_equal(const struct pipeline_variant *a, const struct pipeline_variant *b)
{
    if (a->part_count != b->part_count || a->receive != b->receive ||
        a->given_bytes != b->given_bytes)
        return false;
    for (uint32_t i = 0; i < a->part_count; i++) {
        const struct pipeline_pass *one = &a->part[i], *other = &b->part[i];
        if (one->module != other->module || one->windowed != other->windowed ||
            one->kind != other->kind || one->send != other->send ||
            one->keeping != other->keeping || one->head_stays != other->head_stays ||
            one->updated != other->updated || one->receives != other->receives ||
            one->since != other->since || one->around != other->around ||
            one->arrays != other->arrays || one->last != other->last ||
            one->last_lookup != other->last_lookup || one->place.first != other->place.first ||
            one->place.last != other->place.last)
            return false;
    }
    return true;
}

static const char *template_name(struct lower *lower, const struct pipeline_variant *variant)
{
    const struct pipeline_pass *one = &variant->part[0], *other = &variant->part[1];
    const char *kind = schedule_kind_name((enum schedule_kind)one->kind);
    const char *module = pipeline_module_name((enum pipeline_module)one->module);
    if (variant->part_count == 1) return builder_format(&lower->build, "%s %s", module, kind);
    return builder_format(&lower->build, "%s %s, %s %s", module, kind,
                          pipeline_module_name((enum pipeline_module)other->module),
                          schedule_kind_name((enum schedule_kind)other->kind));
}

uint16_t pipeline_template(struct pipeline *pipeline, const struct pipeline_variant *variant)
{
    struct lower *lower = pipeline->lower;
    const struct pipeline_pass *part = &variant->part[0];
    if (lower->build.status != STATUS_OK) return 0;
    for (uint32_t i = 0; i < pipeline->variant_count; i++)
        if (variants_equal(&pipeline->variant[i], variant)) return pipeline->variant_template[i];
    if (lower->build.program->template_count == PROGRAM_TEMPLATES_MAX) {
        lower->build.status =
            error_set(lower->build.error, STATUS_LIMIT, "/workload/schedule",
                      "passes of more than %d kinds, by what they gather, reduce, "
                      "receive and send",
                      PROGRAM_TEMPLATES_MAX);
        return 0;
    }
    lower_template_begin(lower, template_name(lower, variant));
    receive_add(pipeline, variant);
    uint32_t const received = lower->received, first = lower->build.op_count;
    part_emit(pipeline, part, received);
    if (variant->part_count > 1) {
        uint32_t const second = lower->build.op_count;
        lower_pass_begin(lower);
        part_emit(pipeline, &variant->part[1], received);
        pipeline_ops_mix(lower, first, second);
    }
    if (variant->given_bytes > 0) given_add(lower, variant->given_bytes);
    uint16_t const template_index = lower_template_end(lower);
    pipeline->variant[pipeline->variant_count] = *variant;
    pipeline->variant_template[pipeline->variant_count++] = template_index;
    return template_index;
}

uint64_t pipeline_gathered_bytes(const struct pipeline *pipeline, enum pipeline_module module)
{
    const struct lower *lower = pipeline->lower;
    const struct ranks_layer *layer = layer_of(lower, module);
    uint64_t bytes = 0;
    if (module == MODULE_EMBEDDING)
        return lower_weight_bytes(lower, lower_embedding_gathered(lower->ranks));
    if (module == MODULE_HEAD) return lower_weight_bytes(lower, lower_head_gathered(lower->ranks));
    SIM_ASSERT(module == MODULE_LAYER || module == MODULE_EXPERTS);
    for (uint32_t u = 0; u < layer->bucket_count; u++)
        bytes += lower_weight_bytes(lower, layer->bucket[u].elements);
    return bytes;
}

/* The reductions of a unit as a slot of their own; PROGRAM_NONE if there are none. */
static uint16_t reduce_template(struct lower *lower, enum pipeline_module module,
                                const struct bucket *end)
{
    lower_template_begin(lower,
                         builder_format(&lower->build, "reduce %s", pipeline_module_name(module)));
    lower->layer = layer_of(lower, module);
    if (end != NULL)
        lower_bucket_reduce(lower, end, LOWER_NONE);
    else
        lower_layer_reduce(lower);
    return lower->build.op_count == 0 ? (uint16_t)PROGRAM_NONE : lower_template_end(lower);
}

/* Of two copies, what goes between their ranks of what is updated as one. */
static void copies_build(struct pipeline *pipeline, enum pipeline_module module,
                         const struct delayed_update *update)
{
    struct delayed_update const copied = {.name = pipeline_module_name(module),
                                          .buckets = update->buckets,
                                          .bucket_count = update->bucket_count};
    if (pipeline->lower->ranks->copies == 1) return;
    pipeline->send_replica[module] = lower_replica_send(pipeline->lower, &copied);
    pipeline->sum_replicas[module] = lower_replica_sum(pipeline->lower, &copied);
}

/* Updates come once all gradients of a rank are reduced: as Megatron's optimizer does, and unlike a
 * step without stages, where each layer is updated as soon as its own are. */
void pipeline_rests_build(struct pipeline *pipeline)
{
    struct lower *lower = pipeline->lower;
    const struct ranks *ranks = lower->ranks;
    struct bucket const head = lower_head_bucket(ranks), embedding = lower_embedding_bucket(ranks);
    struct bucket of_mtp[LOWER_MTP_BUCKETS_MAX];
    static const enum pipeline_module order[] = {MODULE_LAYER, MODULE_EXPERTS, MODULE_EMBEDDING,
                                                 MODULE_HEAD};
    for (uint32_t u = 0; u < MODULE_COUNT; u++) {
        pipeline->update[u] = pipeline->reduce[u] = PROGRAM_NONE;
        pipeline->send_replica[u] = pipeline->sum_replicas[u] = PROGRAM_NONE;
    }
    if (ranks->mtp_modules != 0) {
        struct delayed_update const behind = {
            .name = "update mtp",
            .buckets = of_mtp,
            .bucket_count = lower_mtp_buckets(ranks, of_mtp),
        };
        pipeline->update[MODULE_MTP] = lower_update(lower, &behind);
        copies_build(pipeline, MODULE_MTP, &behind);
    }
    for (uint32_t i = 0; i < sizeof order / sizeof *order; i++) {
        enum pipeline_module const module = order[i];
        bool const is_layer = module == MODULE_LAYER || module == MODULE_EXPERTS;
        const struct bucket *end = module == MODULE_HEAD ? &head : &embedding;
        const struct ranks_layer *layer = layer_of(lower, module);
        if (is_layer ? layer->count == 0 : !ranks_is_decoder(ranks)) continue;
        struct delayed_update const behind = {
            .name = builder_format(&lower->build, "update %s", pipeline_module_name(module)),
            .buckets = is_layer ? layer->bucket : end,
            .bucket_count = is_layer ? layer->bucket_count : 1,
        };
        pipeline->update[module] = lower_update(lower, &behind);
        if (pipeline->schedule.has_reductions)
            pipeline->reduce[module] = reduce_template(lower, module, is_layer ? NULL : end);
        copies_build(pipeline, module, &behind);
    }
    if (!ranks->tied_apart) return;
    pipeline->tied[0] = lower_tied(lower, pipeline->tied_rank, /* head= */ false);
    pipeline->tied[1] = lower_tied(lower, pipeline->tied_rank, /* head= */ true);
}
