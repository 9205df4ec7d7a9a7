/*
 * torchtitan.c: torchtitan's job files (TOML) as a scenario.
 *
 * Source: pytorch/torchtitan, torchtitan/config/job_config.py and the train_configs of its models.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/name.h"
#include "sim/base/units.h"
#include "tools/podsim/common/placing.h"
#include "tools/podsim/import/import.h"
#include "tools/podsim/import/recompute.h"
#include "tools/podsim/import/torchtitan.h"

enum { SEQUENCES = 8, TOKENS = 2048, CHUNKS = 2 };

#define AXES "parallelism."
#define SELECTIVE "activation_checkpoint.selective_ac_option"

static const struct import_row facts_of[] = {
    IMPORT_FACT("model.name", IMPORT_WORD, names.model, "/workload/model"),
    IMPORT_FACT("model.flavor", IMPORT_WORD, names.flavor, "/workload/model"),
    IMPORT_FACT("model.converters", IMPORT_WORD, formats.converters, "/workload/formats/matmuls"),
    IMPORT_FACT("training.local_batch_size", IMPORT_COUNT, batch.local, "/workload/accumulate"),
    IMPORT_FACT("training.batch_size", IMPORT_COUNT, batch.local, "/workload/accumulate"),
    IMPORT_FACT("training.global_batch_size", IMPORT_LEFT, batch.sequences,
                "/workload/batch_tokens"),
    IMPORT_FACT("training.seq_len", IMPORT_COUNT, batch.length, "/workload/sequence_length"),
    IMPORT_FACT("training.max_norm", IMPORT_WORD, policy.clips, "/workload/clip_gradients"),
    IMPORT_FACT("training.compile", IMPORT_ON, policy.compiles, "/machine/stack"),
    IMPORT_FACT("compile.enable", IMPORT_ON, policy.compiles, "/machine/stack"),
    IMPORT_FACT("training.mixed_precision_param", IMPORT_WORD, formats.weights,
                "/workload/formats"),
    IMPORT_FACT("training.mixed_precision_reduce", IMPORT_WORD, formats.gradients,
                "/workload/formats/gradients"),
    IMPORT_FACT(AXES "data_parallel_replicate_degree", IMPORT_COUNT, ranks.dp, "/mesh/dp"),
    IMPORT_FACT(AXES "data_parallel_shard_degree", IMPORT_LEFT, ranks.fsdp, "/mesh/fsdp"),
    IMPORT_FACT(AXES "tensor_parallel_degree", IMPORT_COUNT, ranks.tp, "/mesh/tp"),
    IMPORT_FACT(AXES "pipeline_parallel_degree", IMPORT_COUNT, ranks.pp, "/mesh/pp"),
    IMPORT_FACT(AXES "context_parallel_degree", IMPORT_COUNT, ranks.cp, "/mesh/cp"),
    IMPORT_FACT(AXES "expert_parallel_degree", IMPORT_COUNT, ranks.ep, "/mesh/ep"),
    IMPORT_FACT(AXES "expert_tensor_parallel_degree", IMPORT_COUNT, ranks.expert_tp, "/mesh/ep"),
    IMPORT_FACT(AXES "pipeline_parallel_schedule", IMPORT_WORD, ranks.schedule,
                "/workload/schedule"),
    IMPORT_FACT(AXES "pipeline_parallel_microbatch_size", IMPORT_COUNT, batch.microbatch,
                "/workload/accumulate"),
    IMPORT_FACT(AXES "context_parallel_rotate_method", IMPORT_WORD, policy.context,
                "/workload/context"),
    IMPORT_FACT(AXES "enable_async_tensor_parallel", IMPORT_ON, policy.overlap.overlaps_tp,
                "/run/collective_matmul"),
    IMPORT_FACT(AXES "fsdp_reshard_after_forward", IMPORT_WORD, policy.sharding,
                "/workload/regather"),
    IMPORT_FACT("activation_checkpoint.mode", IMPORT_WORD, policy.recompute, "/workload/remat"),
    IMPORT_FACT(SELECTIVE, IMPORT_WORD, policy.recompute_method, "/workload/remat"),
    IMPORT_FACT("float8.recipe_name", IMPORT_WORD, formats.fp8_recipe, "/workload/fp8_recipe"),
    IMPORT_FACT("quantize.linear.float8.recipe_name", IMPORT_WORD, formats.fp8_recipe,
                "/workload/fp8_recipe"),
    {NULL, IMPORT_NOTHING, 0, NULL, NULL},
};

/* Sizes are equal: torchtitan/models, the arguments of each flavor. */
static const struct import_name models[] = {
    {"llama2 7B", "llama-2-7b", false},
    {"llama2 13B", "llama-2-13b", false},
    {"llama2 70B", "llama-2-70b", false},
    {"llama3 debugmodel", "llama-3-debug", false},
    {"llama3 8B", "llama-3-8b", false},
    {"llama3 70B", "llama-3-70b", false},
    {"llama3 405B", "llama-3-405b", false},
    {"deepseek_v3 debugmodel", "deepseek-debug", false},
    {"deepseek_v3 671B", "deepseek-v3", true},
    {"deepseek_v3 16B", "deepseek-v2-lite", false},
    {"qwen3 0.6B", "qwen3-0.6b", false},
    {"qwen3 1.7B", "qwen3-1.7b", false},
    {"qwen3 4B", "qwen3-4b", false},
    {"qwen3 8B", "qwen3-8b", false},
    {"qwen3 14B", "qwen3-14b", false},
    {"qwen3 32B", "qwen3-32b", false},
    {"qwen3 30B-A3B", "qwen3-30b-a3b", false},
    {"qwen3 235B-A22B", "qwen3-235b-a22b", false},
    {"gpt_oss 20b", "gpt-oss-20b", false},
    {"gpt_oss 120b", "gpt-oss-120b", false},
    {NULL, NULL, false},
};

/* Replicas, then shards of what is left. */
static enum status ranks_find(struct import *import, struct error *reterr)
{
    struct import_ranks *ranks = &import->facts.ranks;
    uint64_t *const sizes[] = {&ranks->tp, &ranks->pp, &ranks->cp, &ranks->dp};
    uint64_t shards = 0;
    STATUS_TRY(import_rest(import, sizes, sizeof sizes / sizeof *sizes, &shards, reterr));
    if (ranks->fsdp == 0) ranks->fsdp = shards;
    if (ranks->fsdp != shards)
        return import_refuse(import, &ranks->fsdp, reterr,
                             "%" PRIu64 " ranks, where %s has %" PRIu64 " left besides the others",
                             ranks->fsdp, import->machine_text, shards);
    if (ranks->ep == 0) ranks->ep = 1;
    return STATUS_OK;
}

/* Ranks of ep that no other axis has. They are taken out of those that shard weights. */
static enum status own_find(struct import *import, uint64_t *ret_own, struct error *reterr)
{
    static const char gathers[] = "torchtitan gathers the tokens of a layer with experts over tp, "
                                  "and adds up its results; podsim's ranks keep their tokens";
    struct import_ranks *ranks = &import->facts.ranks;
    bool const whole = ranks->expert_tp == 1 && ranks->tp > 1;
    uint32_t over = 0;
    *ret_own = 1;
    if (ranks->expert_tp > 1 && ranks->expert_tp != ranks->tp)
        return import_refuse(import, &ranks->expert_tp, reterr,
                             "podsim splits an expert over all %" PRIu64 " ranks of tp, or over 1",
                             ranks->tp);
    if (ranks->ep == 1) return STATUS_OK;
    *ret_own = placing_own_ep(whole ? ranks->tp : 1, ranks->cp, ranks->ep, &over);
    if (*ret_own == 0 || ranks->fsdp % *ret_own != 0)
        return import_refuse(import, &ranks->ep, reterr,
                             "%" PRIu64 " ranks of experts are not whole axes%s and a divisor of "
                             "the %" PRIu64 " ranks that shard weights",
                             ranks->ep, whole ? " of tp and cp" : " of cp", ranks->fsdp);
    if (whole) import_lacks(import, &ranks->expert_tp, gathers);
    ranks->ep_over = over;
    return STATUS_OK;
}

static enum status mesh_set(struct import *import, struct error *reterr)
{
    static const char copies[] =
        "the axis is laid out; torchtitan shards weights over it too, where "
        "each of podsim's ranks has those of its shard of fsdp";
    const struct import_ranks *ranks = &import->facts.ranks;
    uint64_t own = 1;
    STATUS_TRY(own_find(import, &own, reterr));
    if (ranks->cp > 1) import_lacks(import, &ranks->cp, copies);
    if (ranks->ep > 1) import_lacks(import, &ranks->ep, copies);
    uint64_t const sizes[MESH_ROLE_COUNT] = {
        [MESH_TP] = ranks->tp, [MESH_PP] = ranks->pp, [MESH_CP] = ranks->cp,
        [MESH_EP] = own,       [MESH_DP] = ranks->dp, [MESH_FSDP] = ranks->fsdp / own};
    return import_mesh(import, sizes, reterr);
}

static enum status schedule_set(struct import *import, struct error *reterr)
{
    static const char *const theirs[] = {
        "1F1B", "GPipe", "Interleaved1F1B", "LoopedBFS", "ZBVZeroBubble", "DualPipeV", NULL};
    static const char *const ours[] = {"1f1b",       "gpipe", "interleaved",
                                       "looped-bfs", "zb-v",  "dualpipev"};
    const struct import_ranks *ranks = &import->facts.ranks;
    const char *const policy = import->facts.policy.sharding;
    if (ranks->pp == 1) return STATUS_OK;
    if (ranks->fsdp > 1)
        STATUS_TRY(import_set(import, reterr, "/workload/regather=%s",
                              name_same(policy, "always") ? "microbatch" : "step"));
    uint32_t const found =
        name_find_any_case(ranks->schedule == NULL ? theirs[0] : ranks->schedule, theirs);
    if (theirs[found] == NULL)
        return import_refuse(
            import, &ranks->schedule, reterr, "podsim has no schedule \"%.60s\"%s", ranks->schedule,
            name_offer(ranks->schedule, theirs, "; the nearest is ", "", NULL).text);
    bool const is_looped = found == 2 || found == 3;
    if (!is_looped) return import_set(import, reterr, "/workload/schedule=%s", ours[found]);
    return import_set(import, reterr, "/workload/schedule=%s:%d", ours[found], CHUNKS);
}

/* Attention, and over tp results behind their reduction. Products in float8 are in no list of ops
 * that are kept. */
static enum status selective_fp8_set(struct import *import, struct error *reterr)
{
    struct import_arrays arrays = {.count = {0}};
    struct import_layers layers;
    STATUS_TRY(import_layers_find(import, &layers, reterr));
    import_array_add(&arrays, IMPORT_LIST_SAVE, "A");
    if (import->facts.ranks.tp > 1 && !layers.parallel)
        import_array_add(&arrays, IMPORT_LIST_SAVE, "attention.Out");
    return import_remat(import, "block", &arrays, reterr);
}

/* Every second product and attention, of a dense layer: Q, V, the gate and the result of the MLP.
 * Over tp results are kept behind their reduction. */
static enum status selective_op_set(struct import *import, const void *said, struct error *reterr)
{
    struct import_arrays arrays = {.count = {0}};
    struct import_layers layers;
    STATUS_TRY(import_layers_find(import, &layers, reterr));
    if (layers.experts || layers.latent || layers.parallel || !layers.gated) {
        import_lacks(import, said,
                     "it keeps every second product; podsim keeps every product (remat "
                     "big_matmuls)");
        return import_set(import, reterr, "/workload/remat=big_matmuls");
    }
    import_lacks(import, said,
                 "K and Up come again; podsim keeps them with Q and Gate, products of the same op");
    import_array_add(&arrays, IMPORT_LIST_SAVE, "Q");
    import_array_add(&arrays, IMPORT_LIST_SAVE, "A");
    import_array_add(&arrays, IMPORT_LIST_SAVE, "Gate");
    import_array_add(&arrays, IMPORT_LIST_SAVE, "mlp.Out");
    if (import->facts.ranks.tp > 1) import_array_add(&arrays, IMPORT_LIST_SAVE, "attention.Out");
    return import_remat(import, "block", &arrays, reterr);
}

/* Layers of the rank that has most. Of the two stages of a rank in the shape of a V one has a layer
 * less where the ends of the pipeline have. */
static uint64_t layers_most(const struct import *import, uint64_t layers)
{
    static const char *const folded[] = {"ZBVZeroBubble", "DualPipeV", NULL};
    const struct import_ranks *ranks = &import->facts.ranks;
    const char *const schedule = ranks->schedule == NULL ? "" : ranks->schedule;
    uint64_t const stages = folded[name_find_any_case(schedule, folded)] == NULL ? 1 : 2;
    return stages * units_ceil_divide(layers, stages * ranks->pp);
}

/* Every n-th layer of a rank is repeated whole; none where no rank has n. */
static enum status selective_layers_set(struct import *import, const void *said, const char *option,
                                        struct error *reterr)
{
    struct import_layers layers;
    char *end = NULL;
    unsigned long const every = option == NULL ? 2 : strtoul(option, &end, 10);
    if (option != NULL && (*option < '0' || *option > '9' || *end != '\0' || every == 0))
        return import_refuse(import, said, reterr, "\"%.40s\" is neither op nor a number of layers",
                             option);
    STATUS_TRY(import_layers_find(import, &layers, reterr));
    if (every > layers_most(import, layers.count)) {
        const char *why =
            arena_format(import->arena, "no rank has %lu layers: none is recomputed", every);
        if (why == NULL) return error_no_memory(reterr, "");
        STATUS_TRY(import_remark(import, SELECTIVE, why, reterr));
        return import_set(import, reterr, "/workload/remat=none");
    }
    if (option != NULL) import_at(import, said, "/workload/remat/layers");
    return import_remat_layers(import, "block", "every", every, reterr);
}

/* What converters of a model there are, by torchtitan's names. */
struct converters {
    bool float8; /* Linear layers, with experts or without. */
    bool others;
};

/* Of a list, ["float8", "mx"], or of a text as older job files have it, "float8,mx". */
static struct converters converters_of(const char *text)
{
    static const char between[] = "[]\"', \t\n";
    static const char *const known[] = {"float8", "quantize.linear.float8",
                                        "quantize.grouped_mm.float8", NULL};
    struct converters found = {false, false};
    bool experts = false;
    for (size_t length; text != NULL && *text != '\0'; text += length) {
        char name[32];
        text += strspn(text, between);
        length = strcspn(text, between);
        if (length == 0) continue;
        (void)snprintf(name, sizeof name, "%.*s", (int)length, text);
        uint32_t const which = length < sizeof name ? name_find(name, known) : 3;
        found.float8 = found.float8 || which < 2;
        experts = experts || which == 2;
        found.others = found.others || known[which] == NULL;
    }
    found.others = found.others || (experts && !found.float8);
    return found;
}

/* "op", or n: every n-th layer is repeated whole. */
static enum status selective_set(struct import *import, struct error *reterr)
{
    const struct import_policy *policy = &import->facts.policy;
    const char *const option = policy->recompute_method;
    bool const is_float8 = converters_of(import->facts.formats.converters).float8;
    const void *const said =
        option == NULL ? (const void *)&policy->recompute : (const void *)&policy->recompute_method;
    if (name_same(option, "1")) return import_set(import, reterr, "/workload/remat=block");
    if (name_same(option, "op") && is_float8) return selective_fp8_set(import, reterr);
    if (name_same(option, "op")) return selective_op_set(import, said, reterr);
    return selective_layers_set(import, said, option, reterr);
}

static enum status remat_set(struct import *import, struct error *reterr)
{
    static const char *const words[] = {"none", "selective", "full", NULL};
    static const char *const ours[] = {"none", NULL, "block"};
    const struct import_policy *policy = &import->facts.policy;
    const char *const mode = policy->recompute == NULL ? "selective" : policy->recompute;
    uint32_t const word = name_find(mode, words);
    if (words[word] == NULL)
        return import_refuse(import, &policy->recompute, reterr,
                             "\"%.40s\" is none of none, selective and full", mode);
    if (word == 1) return selective_set(import, reterr);
    import_plain(import, &policy->recompute_method, "it counts with mode selective");
    return import_set(import, reterr, "/workload/remat=%s", ours[word]);
}

/* torchao's recipes. Where the file leaves it out, scales are of whole tensors. */
static enum status recipe_set(struct import *import, struct error *reterr)
{
    static const char *const theirs[] = {"tensorwise", "rowwise", "rowwise_with_gw_hp", NULL};
    static const char *const ours[] = {"current", "rowwise", NULL};
    const struct import_formats *formats = &import->facts.formats;
    if (formats->fp8_recipe == NULL) return STATUS_OK;
    STATUS_TRY(import_choice(import, &formats->fp8_recipe, theirs, reterr));
    uint32_t const found = name_find(formats->fp8_recipe, theirs);
    if (ours[found] == NULL) {
        import_lacks(import, &formats->fp8_recipe, "gradients of weights in another format");
        return STATUS_OK;
    }
    return import_recipe(import, &formats->fp8_recipe,
                         import->facts.policy.compiles ? "torch-compile" : "torch-eager",
                         ours[found], reterr);
}

static enum status formats_set(struct import *import, struct error *reterr)
{
    struct import_formats *formats = &import->facts.formats;
    if (formats->weights == NULL) formats->weights = "bfloat16";
    if (formats->gradients == NULL) formats->gradients = "float32";
    STATUS_TRY(import_formats_set(import, reterr));
    struct converters const found = converters_of(formats->converters);
    if (!found.float8)
        import_plain(import, &formats->fp8_recipe, "it counts with the converter float8");
    if (!found.float8 && !found.others)
        import_plain(import, &formats->converters, "the model is not converted");
    if (found.others)
        import_lacks(import, &formats->converters,
                     found.float8 ? "converters other than float8, which podsim has"
                                  : "a converter of the model; podsim has float8");
    if (!found.float8) return STATUS_OK;
    STATUS_TRY(import_set(import, reterr, "/workload/formats/matmuls=fp8"));
    return recipe_set(import, reterr);
}

static enum status batch_set(struct import *import, struct error *reterr)
{
    struct import_step *batch = &import->facts.batch;
    const struct import_ranks *ranks = &import->facts.ranks;
    uint64_t const copies = ranks->dp * ranks->fsdp;
    if (batch->local > UINT16_MAX)
        return import_refuse(import, &batch->local, reterr,
                             "%" PRIu64 " sequences of a rank are too many", batch->local);
    if (batch->local == 0) batch->local = SEQUENCES;
    if (batch->length == 0) batch->length = TOKENS;
    if (batch->sequences == 0) batch->sequences = batch->local * copies;
    if (ranks->pp > 1 && batch->microbatch == 0) batch->microbatch = 1;
    if (ranks->pp > 1 && batch->sequences > batch->local * copies)
        import_lacks(import, &batch->sequences,
                     "local batches that go through the pipeline one after the other; podsim lets "
                     "all microbatches follow without a gap");
    if (ranks->pp == 1) batch->microbatch = batch->local;
    STATUS_TRY(import_clips(import, reterr));
    return import_batch(import, copies, reterr);
}

static enum status finish(struct import *import, struct error *reterr)
{
    const struct import_facts *facts = &import->facts;
    static const char *const methods[] = {"allgather", "alltoall", NULL};
    static const char *const reshards[] = {"default", "always", "never", NULL};
    STATUS_TRY(import_choice(import, &facts->policy.context, methods, reterr));
    STATUS_TRY(import_choice(import, &facts->policy.sharding, reshards, reterr));
    STATUS_TRY(ranks_find(import, reterr));
    STATUS_TRY(mesh_set(import, reterr));
    STATUS_TRY(import_model_named(import, models, reterr));
    STATUS_TRY(batch_set(import, reterr));
    STATUS_TRY(schedule_set(import, reterr));
    STATUS_TRY(remat_set(import, reterr));
    STATUS_TRY(formats_set(import, reterr));
    STATUS_TRY(
        import_stack(import, facts->policy.compiles ? "torch-compile" : "torch-eager", reterr));
    if (facts->ranks.pp == 1 && name_same(facts->policy.sharding, "never"))
        import_lacks(import, &facts->policy.sharding,
                     "weights that stay gathered from the forward to the backward pass");
    if (facts->ranks.cp > 1)
        STATUS_TRY(
            import_set(import, reterr, "/workload/context=%s",
                       name_same(facts->policy.context, "alltoall") ? "ring" : "all_gather"));
    if (facts->ranks.tp == 1) return STATUS_OK;
    return import_set(import, reterr, "/run/collective_matmul=%s",
                      facts->policy.overlap.overlaps_tp ? "true" : "false");
}

static const struct import_row *const rows[] = {facts_of, torchtitan_plain, torchtitan_lacks, NULL};

const struct import_framework import_torchtitan = {
    .name = "torchtitan",
    .preset = "torchtitan",
    .read = settings_read_toml,
    .rows = rows,
    .finish = finish,
};
