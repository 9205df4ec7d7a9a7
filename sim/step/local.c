#include "sim/step/local.h"

#include <string.h>

#include "sim/base/counted.h"
#include "sim/base/units.h"
#include "sim/schedule/schedule.h"
#include "sim/step/limits.h"
#include "sim/step/nearest.h"
#include "sim/step/refusals.h"
#include "sim/step/stages.h"

enum { LAYERS_MAX = 30000 }; /* A need names a slot by a 16-bit offset, at most layers + 2 back. */

enum status local_divide(uint64_t amount, uint64_t by, const char *where, const char *what,
                         const char *by_what, uint64_t *ret_share, struct error *reterr)
{
    if (amount % by != 0) {
        char nearest[NEAREST_TEXT_BYTES];
        return error_set(reterr, STATUS_INVALID, where,
                         "%s is %llu, which %llu %s do not divide; the nearest that they do: %s",
                         what, (unsigned long long)amount, (unsigned long long)by, by_what,
                         nearest_multiples(amount, by, nearest));
    }
    *ret_share = amount / by;
    return STATUS_OK;
}

uint64_t local_room(const struct local *local, enum mesh_role role)
{
    const struct mesh_axis *axis = &local->mesh->axis[role];
    uint64_t ranks = 1;
    for (uint32_t p = 0; p < axis->part_count; p++)
        ranks *= local->machine->shape[axis->part[p].axis];
    return ranks;
}

static uint32_t letter_add(struct local *local, char letter, uint32_t size)
{
    if (size == 1) return 0;
    uint32_t const axis = local->axes.axis_count++;
    local->axes.letter[axis] = letter;
    local->axes.size[axis] = size;
    return 1u << axis;
}

static const char *replica_name(const struct mesh *mesh)
{
    static const char *const names[] = {"dp", "dp",    "ep",    "dp,ep",
                                        "cp", "dp,cp", "ep,cp", "dp,ep,cp"};
    uint32_t which = mesh->axis[MESH_DP].size > 1;
    if (mesh->axis[MESH_EP].size > 1) which += 2;
    if (mesh->axis[MESH_CP].size > 1) which += 4;
    return names[which];
}

static bool reduces_once(const struct local *local)
{
    const struct schedule *given = local->plan->schedule_given;
    if (local->pp == 1) return false;
    if (given != NULL && (given->has_gathers || given->has_reductions)) return true;
    return local->plan->regather != WORKLOAD_REGATHER_MICROBATCH;
}

/* Which ranks split what; see the table of ZeRO stages in the book, 5.1.2. Ranks of ep and of cp
 * hold the same dense parameters, as those of dp do. */
static enum status ranks_build(struct local *local, struct error *reterr)
{
    const struct workload_plan *plan = local->plan;
    const struct mesh *mesh = local->mesh;
    uint32_t const fsdp = mesh->axis[MESH_FSDP].size;
    uint32_t const replicas =
        mesh->axis[MESH_DP].size * mesh->axis[MESH_EP].size * mesh->axis[MESH_CP].size;
    STATUS_TRY(mesh_union(mesh, local->machine, 1u << MESH_DP | 1u << MESH_EP | 1u << MESH_CP,
                          "/mesh", &local->replica_group, reterr));
    local->replica_name = replica_name(mesh);
    local->tp = mesh->axis[MESH_TP].size;
    local->pp = mesh->axis[MESH_PP].size;
    local->copies = workload_copies(plan, local->pp);
    local->cp = mesh->axis[MESH_CP].size;
    local->data = replicas * fsdp;
    local->shard_role = plan->zero == 3 ? MESH_DP : MESH_FSDP;
    local->shards = plan->zero == 3 ? replicas : fsdp;
    local->replicas = plan->zero == 3 ? 1 : replicas;
    local->state_shards = plan->zero == 0 ? local->shards : local->data;
    local->gradient_shards = plan->zero >= 2 ? local->data : local->shards;
    local->gradients_resident = plan->accumulate > 1;
    /* What a reduction leaves on this chip must be the accumulator, or it has to wait. */
    local->reduce_last = local->replicas > 1 && plan->zero <= 1;
    local->reduce_once = reduces_once(local);
    if (local->reduce_once) {
        local->reduce_last = true;
        if (plan->accumulate > 1) local->gradient_shards = 1;
    }

    bool const beside = replicas > 1 && fsdp > 1;
    local->axis_z = beside ? letter_add(local, 'Z', replicas) : 0;
    local->axis_x = letter_add(local, 'X', beside ? fsdp : local->data);
    local->axis_y = letter_add(local, 'Y', local->tp);
    return STATUS_OK;
}

/* Heads over the ranks of tp. A KV head stays together with the heads that ask it, and all ranks
 * have as many, so there are padded ones where the numbers do not divide: KV heads up to a multiple
 * of the ranks, or up to a divisor of them, whose holders then share the heads that ask. */
static void heads_split(struct local *local)
{
    const struct model *model = &local->plan->model;
    uint64_t const tp = local->tp, group = model->heads / model->kv_heads;
    uint64_t padded = model->kv_heads;
    while (padded % tp != 0 && tp % padded != 0) padded++;
    local->kv_heads_padded = padded;
    local->kv_heads = padded >= tp ? padded / tp : 1;
    local->kv_holders = padded >= tp ? 1 : (uint32_t)(tp / padded);
    local->heads = local->kv_heads * units_ceil_divide(group, local->kv_holders);
}

static enum status heads_build(struct local *local, struct error *reterr)
{
    const struct model *model = &local->plan->model;
    uint32_t const tp = local->tp;
    if (tp > model->heads) {
        uint64_t const room = local_room(local, MESH_TP);
        uint64_t fits = model->heads;
        while (room % fits != 0) fits--;
        return error_set(reterr, STATUS_INVALID, "/mesh/tp",
                         "%u ranks are more than the model's %llu attention heads: some would have "
                         "none; the nearest number of ranks that fits: %llu",
                         tp, (unsigned long long)model->heads, (unsigned long long)fits);
    }
    heads_split(local);
    local->head_width = model->head_width;
    local->value_width = model_value_width(model);
    /* Of latents, which are small, each rank of tp projects all of its tokens down. */
    local->partial_ranks = local_is_latent(local) ? tp : local->kv_holders;
    if (local->partial_ranks > 1) {
        STATUS_TRY(mesh_subgroup(local->mesh, local->machine, MESH_TP, local->partial_ranks,
                                 "/mesh/tp", &local->kv_group, reterr));
    }
    local->vocabulary = units_ceil_divide(model->vocabulary, tp);
    return STATUS_OK;
}

static enum status model_check(const struct local *local, struct error *reterr)
{
    const struct model *model = &local->plan->model;
    if (model->layers == 0 || model->layers > LAYERS_MAX) {
        return error_set(reterr, STATUS_LIMIT, "/workload/model",
                         "%llu layers are not between 1 and %d", (unsigned long long)model->layers,
                         LAYERS_MAX);
    }
    if (model->matrices != 2 && model->matrices != 3) {
        return error_set(reterr, STATUS_UNSUPPORTED, "/workload/model",
                         "an MLP has 2 matrices, or 3 when it is gated, not %llu",
                         (unsigned long long)model->matrices);
    }
    if (local->plan->prefetch_layers > LAYERS_MAX) {
        return error_set(reterr, STATUS_LIMIT, "/run/prefetch_layers", "%u is above %d",
                         local->plan->prefetch_layers, LAYERS_MAX);
    }
    return STATUS_OK;
}

static enum status tokens_build(struct local *local, struct error *reterr)
{
    const struct workload_plan *plan = local->plan;
    uint64_t const ways = (uint64_t)plan->accumulate * local->data;
    char nearest[NEAREST_TEXT_BYTES];
    if (plan->batch_tokens == 0 || plan->batch_tokens % ways != 0) {
        return error_set(
            reterr, STATUS_INVALID, "/workload/batch_tokens",
            "%s cannot be split evenly over %s (dp, fsdp, ep and cp "
            "together) in %s; the nearest batch_tokens that fit: %s",
            counted(plan->batch_tokens, "token").text, counted(local->data, "data rank").text,
            counted(plan->accumulate, "microbatch").text, nearest_batch(local, nearest));
    }
    local->rows = plan->batch_tokens / ways;
    return STATUS_OK;
}

/* Whether two stages have a matrix of the vocabulary, and so copies of it. */
static void twins_build(struct local *local)
{
    bool const predicts = workload_predictors(local->plan) != 0;
    local->predictors_apart = predicts && stages_predictors_apart(local->plan->layout);
    local->ends_meet =
        workload_ends_meet(local->plan, local->pp) && (local->pp == 1 || !local->predictors_apart);
    local->twin_reads = predicts && !local->ends_meet;
    local->twins = (local->plan->model.tied && local->pp > 1) || local->twin_reads;
}

/* Tokens must be divisible by their axes; weights are padded, and so are the columns of In between
 * blocks where these lie in parts of D: each rank has the same, the last ones some of zeros, which
 * are gathered, reduced and kept like all others and taken off before a matmul reads them.
 * What no batch could mend is refused before the batch. */
static enum status widths_build(struct local *local, struct error *reterr)
{
    const struct workload_plan *plan = local->plan;
    uint64_t share = 0;
    local->width = plan->model.width;
    local->mlp_columns = units_ceil_divide(plan->model.mlp_width, local->tp);
    if (local_is_llama(local)) {
        STATUS_TRY(heads_build(local, reterr));
        STATUS_TRY(local_context_check(local, reterr));
    }
    STATUS_TRY(local_stages_check(local, reterr));
    STATUS_TRY(tokens_build(local, reterr));
    bool const by_tokens = plan->activations == WORKLOAD_ACTIVATIONS_TOKENS;
    /* An expert's rows are whole ones, of which each rank of tp has as many columns. */
    bool const divides = by_tokens || model_has_experts(&plan->model);
    if (divides)
        STATUS_TRY(
            local_divide(by_tokens ? local->rows : local->width, local->tp, "/mesh/tp",
                         by_tokens ? "the number of tokens of a data rank" : "the model's width D",
                         "ranks of tp", &share, reterr));
    local->block_columns = by_tokens ? local->width : units_round_up(local->width, local->tp);
    local->block_shard = local->rows * local->block_columns / local->tp;
    return STATUS_OK;
}

/* Weights in no matrix. They lie with the tokens between blocks: whole on each rank of tp, or, like
 * the columns of D, in parts. */
static uint64_t vector_share(const struct local *local, uint64_t elements)
{
    bool const whole = local->plan->activations == WORKLOAD_ACTIVATIONS_TOKENS;
    return whole ? elements : units_ceil_divide(elements, local->tp);
}

static void vectors_build(struct local *local)
{
    const struct model *model = &local->plan->model;
    local->norm_elements = vector_share(local, (1 + model->norm_biases) * local->width);
    local->head_vectors = local->norm_elements + units_ceil_divide(model->head_vectors, local->tp);
    local->attention_vectors = vector_share(local, model->attention_vectors);
    local->mlp_vectors = vector_share(local, model->mlp_vectors);
    local->position_elements = vector_share(local, model->positions * local->width);
    local->vocabulary_elements = local->vocabulary * local->width;
    local->tied = model->tied && local->pp == 1;
}

/* Layers that attend to a window; where sequences fit it they are as any other. */
static void windows_build(struct local *local)
{
    const struct model *model = &local->plan->model;
    local->window_layers = model_window_layers(model, local->plan->sequence_length);
    for (uint64_t layer = 1; layer < model->layers && local->window_layers != 0; layer++)
        local->window_turns +=
            model_layer_is_windowed(model, layer) != model_layer_is_windowed(model, layer - 1);
}

/* A module joins two arrays, each normed, to one of D, and ends in a norm. */
static enum status predictors_build(struct local *local, struct error *reterr)
{
    uint64_t columns = 0;
    local->predictors = workload_predictors(local->plan);
    if (local->predictors == 0) return STATUS_OK;
    STATUS_TRY(local_divide(local->width, local->tp, "/mesh/tp", "the model's width D",
                            "ranks of tp", &columns, reterr));
    local->predictor_elements = 2 * local->width * columns + 3 * local->norm_elements;
    return STATUS_OK;
}

enum status local_build(const struct workload_plan *plan, const struct machine *machine,
                        const struct mesh *mesh, struct local *ret_local, struct error *reterr)
{
    struct local local = {.plan = plan, .machine = machine, .mesh = mesh, .kv_holders = 1};
    local.sequence_parts = local.partial_ranks = 1;
    STATUS_TRY(model_check(&local, reterr));
    STATUS_TRY(ranks_build(&local, reterr));
    twins_build(&local);
    STATUS_TRY(refusals_check(&local, reterr));
    STATUS_TRY(limits_format_check(&local, reterr));
    STATUS_TRY(widths_build(&local, reterr));
    if (local_is_llama(&local)) {
        STATUS_TRY(local_sequences_build(&local, reterr));
        windows_build(&local);
        vectors_build(&local);
        STATUS_TRY(predictors_build(&local, reterr));
    }
    if (model_has_experts(&plan->model)) STATUS_TRY(routing_build(&local, reterr));
    STATUS_TRY(limits_sizes_check(&local, reterr));
    local_units_build(&local);
    *ret_local = local;
    return STATUS_OK;
}
