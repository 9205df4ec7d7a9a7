#include "sim/step/ranks.h"

#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/counted.h"
#include "sim/base/units.h"
#include "sim/schedule/schedule.h"
#include "sim/step/limits.h"
#include "sim/step/refusals.h"
#include "sim/step/stages.h"
#include "sim/step/suggest.h"

enum { LAYERS_MAX = 30000 }; /* A need names a slot by a 16-bit offset, at most layers + 2 back. */

enum status ranks_divide(uint64_t amount, uint64_t by, const char *where, const char *what,
                         const char *by_what, uint64_t *ret_share, struct error *reterr)
{
    if (amount % by != 0) {
        char nearest[SUGGEST_TEXT_BYTES];
        return error_set(reterr, STATUS_INVALID, where,
                         "%s is %llu, which %llu %s do not divide; the nearest that they do: %s",
                         what, (unsigned long long)amount, (unsigned long long)by, by_what,
                         suggest_multiples(amount, by, nearest));
    }
    *ret_share = amount / by;
    return STATUS_OK;
}

uint64_t ranks_room(const struct ranks *ranks, enum mesh_role role)
{
    const struct mesh_axis *axis = &ranks->mesh->axis[role];
    uint64_t rank_count = 1;
    for (uint32_t p = 0; p < axis->part_count; p++)
        rank_count *= ranks->machine->shape[axis->part[p].axis];
    return rank_count;
}

static uint32_t letter_add(struct ranks *ranks, char letter, uint32_t size)
{
    if (size == 1) return 0;
    uint32_t const axis = ranks->axes.mesh.axis_count++;
    ranks->axes.mesh.letter[axis] = letter;
    ranks->axes.mesh.size[axis] = size;
    return 1u << axis;
}

enum status ranks_replicas_find(const struct ranks *ranks, bool experts,
                                struct replicas *ret_replicas, struct error *reterr)
{
    static const char *const names[] = {"dp", "dp",    "ep",    "dp,ep",
                                        "cp", "dp,cp", "ep,cp", "dp,ep,cp"};
    static const enum mesh_role each[] = {MESH_DP, MESH_EP, MESH_CP};
    uint32_t const roles = mesh_replica_roles(ranks->mesh, experts);
    uint32_t which = 0;
    for (uint32_t i = 0; i < sizeof each / sizeof *each; i++)
        if ((roles >> each[i] & 1) != 0) which |= 1U << i;
    ret_replicas->name = names[which];
    /* A step of inference has no gradients, which all replicas would add up together. */
    bool const gathers = ranks->plan->zero == 3;
    ret_replicas->group = (struct group){.dimension_count = 0};
    if (ranks_serves(ranks) && !gathers) return STATUS_OK;
    const char *const what =
        ranks_serves(ranks) ? "weights are gathered" : "gradients are added up";
    return mesh_union(ranks->mesh, ranks->machine, roles, what, &ret_replicas->group, reterr);
}

static bool reduces_once(const struct ranks *ranks)
{
    const struct schedule *given = ranks->plan->stages.given;
    if (ranks->pp == 1) return false;
    if (given != NULL && (given->has_gathers || given->has_reductions)) return true;
    return ranks->plan->stages.regather != WORKLOAD_REGATHER_MICROBATCH;
}

bool ranks_gathers_once(const struct ranks *ranks)
{
    const struct schedule *given = ranks->plan->stages.given;
    return ranks->pp > 1 && (ranks->plan->stages.regather != WORKLOAD_REGATHER_MICROBATCH ||
                             (given != NULL && given->has_gathers));
}

/* Which ranks split what; see the table of ZeRO stages in the book, 5.1.2. Ranks of ep and of cp
 * hold the same dense parameters, as those of dp do. */
static enum status ranks_build(struct ranks *ranks, struct error *reterr)
{
    const struct workload_plan *plan = ranks->plan;
    const struct mesh *mesh = ranks->mesh;
    uint32_t const fsdp = mesh->axis[MESH_FSDP].size;
    uint32_t const replicas =
        mesh->axis[MESH_DP].size * mesh->own_ep.size * mesh->axis[MESH_CP].size;
    STATUS_TRY(ranks_replicas_find(ranks, false, &ranks->replicas, reterr));
    ranks->tp = mesh->axis[MESH_TP].size;
    ranks->pp = mesh->axis[MESH_PP].size;
    ranks->model_replicas = workload_model_replicas(plan, ranks->pp);
    ranks->cp = mesh->axis[MESH_CP].size;
    ranks->data = replicas * fsdp;
    ranks->shard_role = plan->zero == 3 ? MESH_DP : MESH_FSDP;
    ranks->shards = plan->zero == 3 ? replicas : fsdp;
    ranks->replicas.count = plan->zero == 3 ? 1 : replicas;
    ranks->replicas.state_shards = plan->zero == 0 ? ranks->shards : ranks->data;
    ranks->replicas.gradient_shards = plan->zero >= 2 ? ranks->data : ranks->shards;
    ranks->gradients.resident = plan->accumulate > 1;
    /* What a reduction leaves on this chip must be the accumulator, or it has to wait. */
    ranks->gradients.last = ranks->replicas.count > 1 && plan->zero <= 1;
    ranks->gradients.once = reduces_once(ranks);
    if (ranks->gradients.once) {
        ranks->gradients.last = true;
        if (plan->accumulate > 1) ranks->replicas.gradient_shards = 1;
    }

    bool const beside = replicas > 1 && fsdp > 1;
    ranks->axes.z = beside ? letter_add(ranks, 'Z', replicas) : 0;
    ranks->axes.x = letter_add(ranks, 'X', beside ? fsdp : ranks->data);
    ranks->axes.w = letter_add(ranks, 'W', ranks_tp_d(ranks));
    ranks->axes.y = letter_add(ranks, 'Y', ranks->tp);
    return STATUS_OK;
}

struct ranks_heads ranks_heads_of(const struct model *model, uint32_t tp)
{
    struct ranks_heads heads = {.kv = 1, .kv_holders = 1};
    uint64_t const group = model->heads / model->kv_heads;
    uint64_t padded = model->kv_heads;
    while (padded % tp != 0 && tp % padded != 0) padded++;
    heads.kv_distinct = padded;
    if (padded >= tp)
        heads.kv = padded / tp;
    else
        heads.kv_holders = (uint32_t)(tp / padded);
    heads.queries = heads.kv * units_ceil_divide(group, heads.kv_holders);
    return heads;
}

uint32_t ranks_key_holders(const struct model *model, uint32_t tp)
{
    return model_has_mla(model) ? tp : ranks_heads_of(model, tp).kv_holders;
}

struct ranks_widths ranks_widths_of(const struct model *model, uint32_t tp)
{
    return (struct ranks_widths){.mlp = units_round_up(model->mlp_width, tp),
                                 .expert = units_round_up(model->experts.width, tp),
                                 .vocabulary = units_round_up(model->vocabulary, tp)};
}

struct ranks_padded ranks_padded_of(const struct model *model, uint32_t tp)
{
    struct ranks_padded padded = {.weights = *model, .cache = *model};
    if (model->kind != MODEL_DECODER) return padded;
    struct ranks_heads const heads = ranks_heads_of(model, tp);
    struct ranks_widths const widths = ranks_widths_of(model, tp);
    padded.weights.heads = heads.queries * tp;
    padded.weights.kv_heads = heads.kv * tp;
    padded.weights.mlp_width = widths.mlp;
    padded.weights.vocabulary = widths.vocabulary;
    padded.weights.experts.width = widths.expert;
    padded.cache.kv_heads = heads.kv_distinct;
    return padded;
}

static enum status heads_build(struct ranks *ranks, struct error *reterr)
{
    const struct model *model = &ranks->plan->model;
    uint32_t const tp = ranks->tp;
    if (tp > model->heads) {
        uint64_t const room = ranks_room(ranks, MESH_TP);
        uint64_t fits = model->heads;
        while (room % fits != 0) fits--;
        return error_set(reterr, STATUS_INVALID, "/mesh/tp",
                         "%u ranks are more than the model's %llu attention heads: some would have "
                         "none; the nearest number of ranks that fits: %llu",
                         tp, (unsigned long long)model->heads, (unsigned long long)fits);
    }
    ranks->heads = ranks_heads_of(model, tp);
    /* Of latents, which are small, each rank of tp projects all of its tokens down. */
    uint32_t const parts = ranks_key_holders(model, tp);
    if (parts > 1)
        return mesh_subgroup(ranks->mesh, ranks->machine, MESH_TP, parts, "/mesh/tp",
                             &ranks->heads.group, reterr);
    return STATUS_OK;
}

static enum status model_check(const struct ranks *ranks, struct error *reterr)
{
    const struct model *model = &ranks->plan->model;
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
    if (ranks->plan->prefetch_layers > LAYERS_MAX) {
        return error_set(reterr, STATUS_LIMIT, "/run/prefetch_layers", "%u is above %d",
                         ranks->plan->prefetch_layers, LAYERS_MAX);
    }
    return model_layer_kinds_check(model, "/workload/model", reterr);
}

static enum status tokens_build(struct ranks *ranks, struct error *reterr)
{
    const struct workload_plan *plan = ranks->plan;
    uint64_t const ways = (uint64_t)plan->accumulate * ranks->data;
    char nearest[SUGGEST_TEXT_BYTES];
    if (ranks_serves(ranks)) {
        inference_build(ranks);
        ranks->rows = ranks->inference.tokens;
        return STATUS_OK;
    }
    if (plan->batch_tokens == 0 || plan->batch_tokens % ways != 0) {
        return error_set(
            reterr, STATUS_INVALID, "/workload/batch_tokens",
            "%s cannot be split evenly over %s (dp, fsdp, ep and cp "
            "together) in %s; %s",
            counted(plan->batch_tokens, "token").text, counted(ranks->data, "data rank").text,
            counted(plan->accumulate, "microbatch").text, suggest_batch(ranks, nearest));
    }
    ranks->rows = plan->batch_tokens / ways;
    return STATUS_OK;
}

/* Whether two stages have a matrix of the vocabulary, and so copies of it. */
static void tied_build(struct ranks *ranks)
{
    bool const predicts = workload_mtp(ranks->plan) != 0;
    ranks->tie.here = ranks->plan->model.tied && ranks->pp == 1 && ranks_is_decoder(ranks);
    ranks->mtp.apart = predicts && stages_mtp_apart(ranks->plan->stages.layout);
    ranks->tie.meets =
        workload_ends_meet(ranks->plan, ranks->pp) && (ranks->pp == 1 || !ranks->mtp.apart);
    ranks->tie.lookup = predicts && !ranks->tie.meets;
    ranks->tie.apart = (ranks->plan->model.tied && ranks->pp > 1) || ranks->tie.lookup;
}

static enum status widths_build(struct ranks *ranks, struct error *reterr)
{
    ranks->widths = ranks_widths_of(&ranks->plan->model, ranks->tp);
    if (ranks_is_decoder(ranks)) {
        STATUS_TRY(heads_build(ranks, reterr));
        if (ranks_serves(ranks)) STATUS_TRY(inference_ways_check(ranks, reterr));
        STATUS_TRY(ranks_context_check(ranks, reterr));
    }
    return ranks_stages_check(ranks, reterr);
}

/* Tokens must be divisible by their axes; weights are padded, and so are the columns of In between
 * blocks where these lie in parts of D: each rank has the same, the last ones some of zeros, which
 * are gathered, reduced and kept like all others and taken off before a matmul reads them.
 * What no batch could mend is refused before the batch. */
static enum status rows_build(struct ranks *ranks, struct error *reterr)
{
    const struct workload_plan *plan = ranks->plan;
    uint64_t share = 0;
    STATUS_TRY(tokens_build(ranks, reterr));
    bool const by_tokens = plan->activations == WORKLOAD_ACTIVATIONS_TOKENS;
    if (by_tokens)
        STATUS_TRY(ranks_divide(ranks->rows, ranks->tp, "/mesh/tp",
                                "the number of tokens of a data rank", "ranks of tp", &share,
                                reterr));
    return STATUS_OK;
}

uint64_t ranks_layers_with(const struct ranks *ranks, bool experts)
{
    uint64_t layers = 0;
    for (uint32_t kind = 0; kind < ranks->kinds.count; kind++)
        if (ranks->kinds.kind[kind].experts == experts) layers += ranks_layer_count(ranks, kind);
    return layers;
}

static enum status mtp_build(struct ranks *ranks, struct error *reterr)
{
    uint64_t columns = 0;
    ranks->mtp.modules = workload_mtp(ranks->plan);
    /* With tokens each, ranks have parts of what a module projects, and of no other D. */
    if (ranks->mtp.modules == 0 || ranks_of_width(ranks) == ranks->tp) return STATUS_OK;
    return ranks_divide(ranks->plan->model.width, ranks->tp, "/mesh/tp", "the model's width D",
                        "ranks of tp", &columns, reterr);
}

static enum status make(struct arena *arena, const struct workload_plan *plan,
                        const struct machine *machine, const struct mesh *mesh,
                        struct ranks *ret_ranks, struct error *reterr)
{
    struct ranks ranks = {.plan = plan, .machine = machine, .mesh = mesh, .heads.kv_holders = 1};
    if (ranks_serves(&ranks)) {
        uint32_t const stages = mesh->axis[MESH_PP].size;
        SIM_ASSERT(stages == 1 || plan->inference.stages == stages);
        ranks.pass.index = inference_pass_count(plan) - 1;
    }
    ranks.sequences.parts = ranks.sequences.of.parts = 1;
    STATUS_TRY(model_check(&ranks, reterr));
    STATUS_TRY(ranks_build(&ranks, reterr));
    tied_build(&ranks);
    STATUS_TRY(refusals_check(&ranks, reterr));
    STATUS_TRY(limits_format_check(&ranks, reterr));
    STATUS_TRY(widths_build(&ranks, reterr));
    if (ranks_serves(&ranks)) inference_replicas_find(&ranks);
    STATUS_TRY(rows_build(&ranks, reterr));
    STATUS_TRY(ranks_kept_find(&ranks, reterr));
    STATUS_TRY(layer_kinds_find(&plan->model, workload_keys(plan), "/workload/remat/layers",
                                &ranks.kinds, reterr));
    if (ranks_is_decoder(&ranks)) {
        STATUS_TRY(ranks_sequences_build(&ranks, reterr));
        STATUS_TRY(mtp_build(&ranks, reterr));
    }
    if (model_has_experts(&plan->model)) STATUS_TRY(routing_build(&ranks, reterr));
    STATUS_TRY(limits_sizes_check(&ranks, reterr));
    if (ranks_serves(&ranks)) inference_charge(&ranks);
    STATUS_TRY(ranks_buckets_build(arena, &ranks, reterr));
    STATUS_TRY(ranks_remat_check(&ranks, reterr));
    if (ranks_serves(&ranks)) STATUS_TRY(ranks_replica_choose(&ranks, reterr));
    *ret_ranks = ranks;
    return STATUS_OK;
}

enum status ranks_make(const struct workload_plan *plan, const struct machine *machine,
                       const struct mesh *mesh, struct ranks *ret_ranks, struct error *reterr)
{
    return make(NULL, plan, machine, mesh, ret_ranks, reterr);
}

enum status ranks_take(struct arena *arena, const struct workload_plan *plan,
                       const struct machine *machine, const struct mesh *mesh,
                       struct ranks **ret_ranks, struct error *reterr)
{
    void *memory = NULL;
    STATUS_TRY(arena_try(arena, 1, sizeof **ret_ranks, &memory, reterr));
    *ret_ranks = memory;
    return make(arena, plan, machine, mesh, *ret_ranks, reterr);
}

enum status ranks_pass_set(struct ranks *ranks, uint32_t pass, struct error *reterr)
{
    bool const makes_heads = ranks->inference.makes_heads;
    if (pass == ranks->pass.index) return STATUS_OK;
    STATUS_TRY(cancel_check(ranks->plan->cancel, reterr)); /* It may have millions of sequences. */
    ranks->pass = (struct ranks_pass){.index = pass};
    STATUS_TRY(rows_build(ranks, reterr));
    if (ranks_is_decoder(ranks)) STATUS_TRY(ranks_sequences_build(ranks, reterr));
    ranks->experts = (struct routing){.count = 0};
    if (model_has_experts(&ranks->plan->model)) STATUS_TRY(routing_build(ranks, reterr));
    STATUS_TRY(limits_sizes_check(ranks, reterr));
    inference_charge(ranks);
    /* A pass in which prompts make heads has one more op that reads weights, so places move. */
    bool const alike = makes_heads == ranks->inference.makes_heads;
    return alike ? STATUS_OK : ranks_places_build(ranks, reterr);
}
