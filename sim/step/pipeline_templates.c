/*
 * Templates of a step, each once: all that a template is made of is a variant, by which it is found
 * again. A template of a pass has a module, what comes before it and what goes from it; others do
 * something with all gradients of a module, between the passes and behind them.
 */
#include <string.h>

#include "sim/step/emit.h"
#include "sim/step/pipeline.h"

/* Equal variants are equal byte by byte. */
_Static_assert(sizeof(struct lower_part) == 16 + sizeof(struct mtp_position), "without gaps");
_Static_assert(sizeof(struct pipeline_variant) ==
                   2 * sizeof(uint64_t) + 2 * sizeof(struct lower_part) + 4,
               "without gaps");

const char *pipeline_module_name(enum lower_module module)
{
    static const char *const names[MODULE_LAYER + 1] = {
        [MODULE_NOTHING] = "stage",     [MODULE_EMBEDDING] = "embedding", [MODULE_MTP] = "mtp",
        [MODULE_MTP_HEAD] = "mtp head", [MODULE_HEAD] = "head",           [MODULE_LAYER] = "layer"};
    return names[lower_is_layer(module) ? MODULE_LAYER : module];
}

/* The RECEIVE of the message that a variant waits for, or LOWER_NONE. */
static uint32_t receive_add(struct lower *lower, const struct pipeline_variant *variant)
{
    enum lower_stream const stream =
        variant->receive == WAY_PREVIOUS ? LOWER_RECEIVE_PREVIOUS : LOWER_RECEIVE_NEXT;
    bool const forward = pipeline_is_forward(variant->part[0].act);
    const struct lower_part *part = &variant->part[0];
    bool const of_tokens = forward && (part->module == MODULE_EMBEDDING ||
                                       (part->module == MODULE_NOTHING && part->around));
    const char *name = variant->part_count > 1 ? "receive both"
                       : of_tokens             ? "receive tokens"
                       : forward               ? "receive activations"
                                               : "receive gradients";
    if (variant->receive == WAY_NONE) return LOWER_NONE;
    uint32_t const received =
        lower_op_add(lower, (struct program_op){.name = name,
                                                .class_name = name,
                                                .kind = PROGRAM_OP_RECEIVE,
                                                .stream = lower->stream[stream],
                                                .parts = 1});
    lower_need_before(lower, received, LOWER_COMPUTE, NULL);
    return received;
}

/* The op that brings what a variant waits for: its RECEIVE, or the gather of the parts that ranks
 * of tp have received. */
static uint32_t arrival_add(struct lower *lower, const struct pipeline_variant *variant)
{
    const struct ranks *ranks = lower->ranks;
    uint32_t const received = receive_add(lower, variant);
    bool const forward = pipeline_is_forward(variant->part[0].act);
    uint64_t arrays = 0;
    if (received == LOWER_NONE || !ranks_gathers_messages(ranks)) return received;
    for (uint32_t i = 0; i < variant->part_count; i++) arrays += variant->part[i].receives;
    uint32_t const plan = lower_plan(
        lower, COLLECTIVE_ALL_GATHER, &ranks->mesh->axis[MESH_TP].group,
        arrays * ranks->tp * ranks_sent_elements(ranks), ranks->plan->formats.activations);
    uint32_t const gather =
        lower_collective(lower, LOWER_GATHER_TP, forward ? "received" : "received gradients",
                         mesh_role_name(MESH_TP), plan);
    lower_need_done(lower, gather, received, NULL);
    return gather;
}

static void send_add(struct pipeline *pipeline, const struct lower_part *part)
{
    struct lower *lower = pipeline->lower;
    enum pipeline_way const way = (enum pipeline_way)part->send;
    bool const next = way == WAY_NEXT;
    bool const forward = pipeline_is_forward(part->act);
    bool const of_tokens = part->arrays == 0;
    const char *name = of_tokens ? "send tokens" : forward ? "send activations" : "send gradients";
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
    lower_need_output(lower, op, !forward,
                      forward ? lower_stream_activation : lower_stream_gradient);
    uint64_t const bytes =
        of_tokens ? format_bytes(PIPELINE_TOKEN_FORMAT, lower->ranks->inference.head_rows)
                  : lower_activation_bytes(lower, part->arrays * ranks_sent_elements(lower->ranks));
    lower_take(lower, op, PROGRAM_MEMORY_BUFFERS, bytes);
    lower_give(lower, op, PROGRAM_MEMORY_BUFFERS, bytes);
}

/* The template of the backward pass that reduces the gradients of a module; a head's are reduced by
 * the first of the modules where there are some. */
static uint16_t reducing_template(const struct pipeline *pipeline, enum lower_module module,
                                  struct mtp_position place)
{
    const struct ranks *ranks = pipeline->lower->ranks;
    uint32_t const count = pipeline->lower->build.program->template_count;
    if (module == MODULE_HEAD && ranks->mtp.modules != 0) {
        module = MODULE_MTP;
        place = mtp_position_at(ranks, 0);
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct lower_part *part = &pipeline->variant[i].part[0];
        if (lower_weights_module(ranks, part->module) == module && part->act == ACT_BACKWARD &&
            part->last && part->place.first == place.first && part->place.last == place.last)
            return (uint16_t)i;
    }
    SIM_ASSERT(false);
    return 0;
}

/* Slots from a module's backward pass to its update. Updates of stages come once all gradients of a
 * rank are reduced, as Megatron's optimizer does: 0. Without stages they follow the order of the
 * backward pass, so each waits for a slot equally far back; but modules are updated before the
 * head, whose gradient the first of them adds to as the last: one slot less behind their own. Where
 * the optimizer is offloaded, updates are part of the backward pass, a slot behind each. Groups of
 * layers are repeated in slots between backward passes, and updates wait as those of stages do. */
static uint32_t update_slots(const struct ranks *ranks, enum lower_module module)
{
    bool const has_ends = ranks_is_decoder(ranks), own_head = has_ends && !ranks->tie.here;
    if (ranks->pp > 1 || ranks_replicas_wait(ranks) || ranks->kinds.grouped) return 0;
    if (ranks_offloads_optimizer(ranks)) return 1;
    return (uint32_t)(ranks->plan->model.layers + ranks->mtp.modules) + has_ends + own_head -
           (module == MODULE_MTP);
}

static void update_add(struct pipeline *pipeline, enum lower_module module,
                       struct mtp_position place)
{
    struct lower *lower = pipeline->lower;
    struct bucket buckets[LOWER_BUCKETS_MAX];
    struct delayed_update update = {
        .name = builder_format(&lower->build, "update %s", pipeline_module_name(module)),
        .buckets = buckets,
        .bucket_count = lower_buckets_of(lower->ranks, module, buckets),
        .slots = update_slots(lower->ranks, module),
    };
    if (update.slots != 0) update.backward = reducing_template(pipeline, module, place);
    lower_update(lower, &update);
    emit_weights_cast(lower, module);
}

static void reductions_add(struct lower *lower, enum lower_module module)
{
    struct bucket buckets[LOWER_BUCKETS_MAX];
    emit_reduction(lower, module);
    if (lower_is_layer(module)) {
        lower_layer_reduce(lower);
        return;
    }
    uint32_t const count = lower_buckets_of(lower->ranks, module, buckets);
    for (uint32_t u = 0; u < count; u++) lower_bucket_reduce(lower, &buckets[u], LOWER_NONE);
}

static void gathers_add(struct lower *lower, enum lower_module module)
{
    struct bucket buckets[LOWER_BUCKETS_MAX];
    uint32_t const count = lower_buckets_of(lower->ranks, module, buckets);
    lower_updated_gather(lower, buckets, count);
}

static void part_emit(struct pipeline *pipeline, const struct pipeline_variant *variant,
                      const struct lower_part *part)
{
    struct lower *lower = pipeline->lower;
    enum lower_module const module = (enum lower_module)part->module;
    switch ((enum lower_act)part->act) {
    case ACT_FORWARD:
    case ACT_BACKWARD:
    case ACT_INPUT:
    case ACT_WEIGHT:
    case ACT_AGAIN:
        lower_module_emit(lower);
        if (part->updates != MODULE_NOTHING)
            update_add(pipeline, (enum lower_module)part->updates, part->place);
        send_add(pipeline, part);
        break;
    case ACT_UPDATE:
        update_add(pipeline, module, part->place);
        break;
    case ACT_REDUCE:
        reductions_add(lower, module);
        break;
    case ACT_GATHER:
        gathers_add(lower, module);
        break;
    case ACT_SEND_COPY:
        lower_copy_send(lower, module);
        break;
    case ACT_SUM_COPIES:
        lower_copies_sum(lower, module);
        break;
    case ACT_TIE:
        lower_tie(lower, pipeline->tied_rank, module == MODULE_HEAD);
        break;
    case ACT_TIE_SWAP:
        lower_tie_swap(lower, pipeline->tied_rank, module == MODULE_HEAD);
        break;
    case ACT_TIE_SUM:
        lower_tie_sum(lower, module == MODULE_HEAD);
        break;
    case ACT_NORM:
        lower_norm(lower, variant->norm_elements);
        break;
    case ACT_COUNT:
        break;
    }
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

static const char *pass_name(uint32_t act)
{
    return act == ACT_AGAIN ? "forward again" : schedule_kind_name((enum schedule_kind)act);
}

/* What tells layers apart where they are recomputed otherwise than others: their kind, and their
 * place in a group. */
static const char *layer_words(struct lower *lower, const struct lower_part *part)
{
    static const char *const groups[] = {[RANKS_GROUP_NONE] = ", recomputed alone",
                                         [RANKS_GROUP_FIRST] = ", first of its group",
                                         [RANKS_GROUP_LATER] = ", within its group"};
    const struct layer_kinds *kinds = &lower->ranks->kinds;
    if (!kinds->kept.any || !lower_is_layer(part->module)) return "";
    struct layer_kind kind = kinds->kind[part->module - MODULE_LAYER];
    bool const ends = !kind.keeps && part->group == RANKS_GROUP_LATER;
    if (kinds->grouped) kind.keeps = false;
    return builder_format(&lower->build, "%s%s", layer_kind_text(kind).text,
                          !kinds->grouped ? ""
                          : ends          ? ", last of its group"
                                          : groups[part->group]);
}

static const char *template_name(struct lower *lower, const struct pipeline_variant *variant)
{
    static const char *const acts[ACT_COUNT] = {[ACT_UPDATE] = "update",
                                                [ACT_REDUCE] = "reduce",
                                                [ACT_GATHER] = "gather",
                                                [ACT_SEND_COPY] = "send",
                                                [ACT_SUM_COPIES] = "sum"};
    const struct lower_part *one = &variant->part[0], *other = &variant->part[1];
    const char *module = pipeline_module_name((enum lower_module)one->module);
    if (one->act == ACT_TIE) return "tied gradients";
    if (one->act == ACT_TIE_SWAP) return "swap of tied gradients";
    if (one->act == ACT_TIE_SUM) return "sum of tied gradients";
    if (one->act == ACT_NORM) return "gradient norm";
    if (one->act >= SCHEDULE_KIND_COUNT && one->act != ACT_AGAIN)
        return builder_format(&lower->build, "%s %s", acts[one->act], module);
    const char *kind = pass_name(one->act);
    bool const chunks = inference_batch_passes(&lower->ranks->plan->inference) > 1;
    if (variant->part_count == 1 && lower->shape_count > 1)
        return builder_format(&lower->build, "%s %s, %s %u", module, kind,
                              chunks ? "pass" : "batch", one->pass + 1U);
    if (variant->part_count == 1)
        return builder_format(&lower->build, "%s %s%s", module, kind, layer_words(lower, one));
    return builder_format(&lower->build, "%s %s, %s %s", module, kind,
                          pipeline_module_name((enum lower_module)other->module),
                          pass_name(other->act));
}

static void variant_emit(struct pipeline *pipeline, const struct pipeline_variant *variant)
{
    struct lower *lower = pipeline->lower;
    uint32_t second = 0;
    lower_template_begin(lower, template_name(lower, variant), &variant->part[0]);
    uint32_t const received = arrival_add(lower, variant), first = lower->build.op_count;
    for (uint32_t i = 0; i < variant->part_count; i++) {
        second = lower->build.op_count;
        if (i > 0) lower_pass_begin(lower, &variant->part[i]);
        if (variant->part[i].receives) lower->received = received;
        part_emit(pipeline, variant, &variant->part[i]);
    }
    if (variant->part_count > 1) pipeline_ops_mix(lower, first, second);
    if (variant->given_bytes > 0) given_add(lower, variant->given_bytes);
}

static bool variants_equal(const struct pipeline_variant *one, const struct pipeline_variant *other)
{
    return memcmp(one, other, sizeof *one) == 0;
}

uint16_t pipeline_template(struct pipeline *pipeline, const struct pipeline_variant *variant)
{
    struct lower *lower = pipeline->lower;
    uint32_t const count = lower->build.program->template_count;
    if (lower->build.status != STATUS_OK) return 0;
    /* Most slots play what the one before does. */
    if (count > 0 && variants_equal(&pipeline->variant[pipeline->played], variant))
        return pipeline->played;
    for (uint32_t i = 0; i < count; i++)
        if (variants_equal(&pipeline->variant[i], variant)) return pipeline->played = (uint16_t)i;
    if (count == PROGRAM_TEMPLATES_MAX) {
        (void)builder_fail(&lower->build, STATUS_LIMIT, "/workload/schedule",
                           "passes of more than %d kinds, by what they gather, reduce, receive and "
                           "send",
                           PROGRAM_TEMPLATES_MAX);
        return 0;
    }
    pipeline->variant[count] = *variant;
    variant_emit(pipeline, variant);
    bool const may_be_empty =
        variant->part[0].act == ACT_REDUCE || variant->part[0].act == ACT_GATHER;
    if (may_be_empty && lower->build.op_count == 0) return PROGRAM_NONE;
    uint16_t const index = lower_template_end(lower);
    if (lower->build.status != STATUS_OK || variant->part_count > 1) return index;
    lower->build.program->templates[index].module = variant->part[0].module;
    lower->build.program->templates[index].act = variant->part[0].act;
    return index;
}

uint16_t pipeline_rest(struct pipeline *pipeline, enum lower_module module, enum lower_act act,
                       struct mtp_position place)
{
    struct pipeline_variant const variant = {
        .part = {{.module = (uint8_t)module, .act = (uint8_t)act, .last = true, .place = place}},
        .part_count = 1};
    bool const waits = ranks_replicas_wait(pipeline->lower->ranks);
    if (act == ACT_REDUCE && !pipeline->schedule.has_reductions && !waits) return PROGRAM_NONE;
    if (act == ACT_GATHER && (!waits || pipeline->lower->ranks->plan->zero == 0))
        return PROGRAM_NONE;
    return pipeline_template(pipeline, &variant);
}

/* Templates of all acts of a module. */
static void rests_build(struct pipeline *pipeline, enum lower_module module,
                        struct mtp_position place)
{
    enum lower_act const end = pipeline->lower->ranks->model_replicas > 1 ? ACT_TIE : ACT_SEND_COPY;
    for (uint32_t act = ACT_UPDATE; act < end; act++)
        (void)pipeline_rest(pipeline, module, (enum lower_act)act, place);
}

/* Layers with equal weights have the templates of the first kind of them. */
static void layers_rests_build(struct pipeline *pipeline)
{
    const struct ranks *ranks = pipeline->lower->ranks;
    for (uint32_t kind = 0; kind < ranks->kinds.count; kind++)
        if (ranks->layer[kind].weights == kind)
            rests_build(pipeline, lower_module_of(kind), (struct mtp_position){false, false});
}

/* In an order of their own, whatever the passes are. */
void pipeline_rests_build(struct pipeline *pipeline)
{
    static const enum lower_module orders[2][4] = {
        {MODULE_MTP, MODULE_LAYER, MODULE_EMBEDDING, MODULE_HEAD},
        {MODULE_MTP, MODULE_HEAD, MODULE_LAYER, MODULE_EMBEDDING}};
    const struct ranks *ranks = pipeline->lower->ranks;
    struct stage const all = {.layer_count = (uint32_t)ranks->plan->model.layers,
                              .mtp_modules = (uint32_t)ranks->mtp.modules,
                              .embedding = ranks_is_decoder(ranks),
                              .head = ranks_is_decoder(ranks)};
    struct mtp_position const no_place = {false, false};
    uint32_t counts[MODULE_COUNT];
    pipeline_module_counts(pipeline, &all, counts);
    for (uint32_t i = 0; i < sizeof orders[0] / sizeof *orders[0]; i++) {
        enum lower_module const module = orders[ranks->pp == 1][i];
        bool const placed = module == MODULE_MTP && ranks->pp == 1;
        if (module == MODULE_LAYER) {
            layers_rests_build(pipeline);
            continue;
        }
        for (uint32_t k = 0; k < (placed ? counts[module] : counts[module] > 0); k++)
            rests_build(pipeline, module, placed ? mtp_position_at(ranks, k) : no_place);
    }
    if (!ranks->tie.apart) return;
    (void)pipeline_rest(pipeline, MODULE_EMBEDDING, ACT_TIE, no_place);
    (void)pipeline_rest(pipeline, MODULE_HEAD, ACT_TIE, no_place);
}
