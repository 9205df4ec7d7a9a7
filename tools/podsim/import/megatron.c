/*
 * megatron.c: Megatron-LM's arguments as a scenario: what they default to, and what follows.
 *
 * Source: NVIDIA/Megatron-LM, megatron/training/arguments.py.
 */
#include "tools/podsim/import/megatron.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/name.h"
#include "tools/podsim/common/placing.h"
#include "tools/podsim/import/recompute.h"

enum { VOCABULARY_MULTIPLE = 128 };

/* --- The model --- */

/* Words of the tokenizers whose type says them, before padding. */
static uint64_t words_of(const char *tokenizer)
{
    static const char *const types[] = {"GPT2BPETokenizer", "Llama2Tokenizer", NULL};
    static const uint64_t words[] = {50257, 32000, 0};
    /* pretrain_gpt.py takes GPT-2's where nothing is said. */
    return words[name_find(tokenizer == NULL ? types[0] : tokenizer, types)];
}

/* Embedding and head are split over tp in whole multiples. */
static enum status vocabulary_find(struct import *import, struct error *reterr)
{
    struct import_facts *facts = &import->facts;
    if (facts->sizes.padded_vocabulary > 0) {
        facts->sizes.vocabulary = facts->sizes.padded_vocabulary;
        return STATUS_OK;
    }
    /* --vocab-size does not count the word that ends a document. */
    if (name_same(facts->names.tokenizer, "NullTokenizer") && facts->sizes.vocabulary > 0)
        facts->sizes.vocabulary++;
    if (facts->sizes.vocabulary == 0) facts->sizes.vocabulary = words_of(facts->names.tokenizer);
    if (facts->sizes.vocabulary == 0 && import->model == NULL)
        return import_refuse(import, &facts->names.tokenizer, reterr,
                             "nothing says how many words the vocabulary has; give it by --with "
                             "--vocab-size=128256, or name a model by --model");
    if (facts->sizes.vocabulary_multiple > UINT32_MAX)
        return import_refuse(import, &facts->sizes.vocabulary_multiple, reterr,
                             "a vocabulary of too many words");
    uint64_t const multiple =
        (facts->sizes.vocabulary_multiple == 0 ? VOCABULARY_MULTIPLE
                                               : facts->sizes.vocabulary_multiple) *
        facts->ranks.tp;
    if (multiple > UINT32_MAX || facts->sizes.vocabulary > UINT32_MAX)
        return import_refuse(import, &facts->sizes.vocabulary, reterr,
                             "a vocabulary of too many words");
    facts->sizes.vocabulary = (facts->sizes.vocabulary + multiple - 1) / multiple * multiple;
    return STATUS_OK;
}

/* `--swiglu` has two thirds of the width, in whole multiples of 64. */
static uint64_t mlp_width_of(const struct import_facts *facts)
{
    if (facts->sizes.gated) return 4 * facts->sizes.width * 2 / 3 / 64 * 64;
    return 4 * facts->sizes.width;
}

static enum status model_find(struct import *import, struct error *reterr)
{
    struct import_facts *facts = &import->facts;
    static const char *const rotated[] = {"rope", "yarn", "none", NULL};
    if (facts->sizes.width > UINT32_MAX)
        return import_refuse(import, &facts->sizes.width, reterr, "a model of too many columns");
    if (facts->sizes.mlp_width == 0) facts->sizes.mlp_width = mlp_width_of(facts);
    facts->sizes.gated |= facts->sizes.quick_gated; /* Of the whole width, unlike --swiglu. */
    bool const is_split = facts->sizes.head_width == 0 && facts->sizes.heads > 0;
    if (is_split && facts->sizes.width % facts->sizes.heads != 0 && import->model == NULL)
        return import_refuse(import, &facts->sizes.heads, reterr,
                             "%" PRIu64 " heads do not divide the %" PRIu64 " columns of the model",
                             facts->sizes.heads, facts->sizes.width);
    if (is_split) facts->sizes.head_width = facts->sizes.width / facts->sizes.heads;
    if (!facts->sizes.grouped)
        import_plain(import, &facts->sizes.kv_heads,
                     "it counts with --group-query-attention alone");
    if (!facts->sizes.grouped || facts->sizes.kv_heads == 0)
        facts->sizes.kv_heads = facts->sizes.heads;
    facts->sizes.layer_norm = !name_same(facts->sizes.norm, "RMSNorm");
    if (facts->sizes.rotary || rotated[name_find(facts->sizes.positions, rotated)] != NULL) {
        facts->sizes.learned_positions = 0;
        import_plain(import, &facts->sizes.learned_positions, "Q and K are rotated by position");
    } else if (facts->sizes.learned_positions == 0) {
        facts->sizes.learned_positions = facts->batch.length;
    }
    if (name_same(facts->sizes.positions, "none"))
        import_lacks(import, &facts->sizes.positions, "podsim rotates Q and K by position");
    if (facts->mla.is_used) {
        static const struct import_mla otherwise = {
            .kv_rank = 32, .plain_width = 128, .rope_width = 64, .value_width = 128};
        import_mla_fill(import, &otherwise);
        facts->sizes.qk_norm = 0; /* Norms of the latents are part of it. */
    }
    STATUS_TRY(vocabulary_find(import, reterr));
    if (facts->experts.count > 0) STATUS_TRY(megatron_experts_find(import, reterr));
    return import_model(import, reterr);
}

/* --- Ranks --- */

/* A word of a path, between "/", "_", "-" and ".". */
static bool has_word(const char *path, const char *word)
{
    size_t const wanted = strlen(word);
    for (size_t length = 0; *path != '\0'; path += length + (path[length] != '\0')) {
        length = strcspn(path, "/_-.");
        if (length == wanted && strncmp(path, word, length) == 0) return true;
    }
    return false;
}

/* Programs of Megatron-LM whose models are no decoders of attention and MLP alone. */
static enum status program_check(const struct import *import, struct error *reterr)
{
    static const char *const others[] = {"bert",   "t5",  "mamba",      "hybrid", "vlm", "retro",
                                         "vision", "ict", "multimodal", "mimo",   NULL};
    const char *const program = import->file->program;
    const struct import_setting *const other = settings_find(import->file, "--deepspeed");
    if (other != NULL)
        return settings_fail(import->file, other->line, STATUS_UNSUPPORTED, reterr,
                             "--deepspeed: DeepSpeed shards by a file of its own, which `podsim "
                             "import deepspeed` reads");
    const char *const slash = program == NULL ? NULL : strrchr(program, '/');
    bool const is_other = program != NULL && !has_word(slash == NULL ? program : slash, "gpt");
    for (uint32_t i = 0; is_other && others[i] != NULL; i++)
        if (has_word(program, others[i]))
            return settings_fail(import->file, import->file->program_line, STATUS_UNSUPPORTED,
                                 reterr,
                                 "%.80s trains another model than a GPT; pretrain_gpt.py is "
                                 "expressed",
                                 program);
    return STATUS_OK;
}

/* What is sharded over replicas: 0 to 3, as ZeRO counts. */
static enum status stage_find(struct import *import, uint32_t *ret_stage, struct error *reterr)
{
    static const char *const strategies[] = {"no_shard", "optim", "optim_grads",
                                             "optim_grads_params", NULL};
    const struct import_policy *policy = &import->facts.policy;
    *ret_stage = policy->shards_optimizer ? 1 : 0;
    if (!policy->full_sharding || policy->sharding == NULL) return STATUS_OK;
    *ret_stage = name_find(policy->sharding, strategies);
    if (strategies[*ret_stage] != NULL) return STATUS_OK;
    return import_refuse(
        import, &policy->sharding, reterr, "no strategy \"%.40s\"%s", policy->sharding,
        name_offer(policy->sharding, strategies, "; the nearest is ", "", NULL).text);
}

/* Ranks of ep that no other axis has. Where nothing says how many ranks of tp split an expert, all
 * do. */
static enum status own_find(struct import *import, uint64_t replicas, uint64_t *ret_own,
                            struct error *reterr)
{
    struct import_ranks *ranks = &import->facts.ranks;
    uint64_t const split = ranks->expert_tp == 0 ? ranks->tp : ranks->expert_tp;
    uint32_t over = 0;
    if (split != ranks->tp && split != 1)
        return import_refuse(import, &ranks->expert_tp, reterr,
                             "podsim splits an expert over all %" PRIu64 " ranks of tp, or over 1",
                             ranks->tp);
    *ret_own = 1;
    if (ranks->ep == 1 && import->facts.experts.count == 0) return STATUS_OK;
    *ret_own = placing_own_ep(split == 1 ? ranks->tp : 1, ranks->cp, ranks->ep, &over);
    if (*ret_own == 0 && split == 1 && ranks->tp > 1)
        return import_refuse(import, &ranks->ep, reterr,
                             "%" PRIu64 " ranks of experts lie over a part of the %" PRIu64
                             " ranks of tp%s; podsim lays them over whole axes",
                             ranks->ep, ranks->tp * ranks->cp, ranks->cp > 1 ? " and cp" : "");
    if (*ret_own == 0) {
        *ret_own = ranks->ep;
        import_lacks(
            import, &ranks->ep,
            "the axis is laid out over replicas; Megatron-LM's goes over ranks of cp first");
    }
    ranks->ep_over = over;
    if (replicas % *ret_own == 0) return STATUS_OK;
    return import_refuse(import, &ranks->ep, reterr,
                         "%" PRIu64 " replicas are not divided by %" PRIu64 " ranks of experts",
                         replicas, *ret_own);
}

/* Neighbours first: tp, cp, ep, dp, pp. */
static enum status ranks_find(struct import *import, uint32_t stage, struct error *reterr)
{
    struct import_facts *facts = &import->facts;
    uint64_t const chips = import->machine.chip_count;
    uint64_t *const sizes[] = {&facts->ranks.tp, &facts->ranks.cp, &facts->ranks.pp,
                               &facts->ranks.ep};
    const uint64_t *odd = NULL; /* The first whose ranks do not divide what is left. */
    uint64_t copy = 1;
    for (uint32_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        if (*sizes[i] == 0) *sizes[i] = 1;
        if (*sizes[i] > chips)
            return import_refuse(import, sizes[i], reterr,
                                 "%" PRIu64 " ranks are more than the %" PRIu64 " chips of %s",
                                 *sizes[i], chips, import->machine_text);
        if (i < 3) copy *= *sizes[i];
        if (odd == NULL && chips % copy != 0) odd = sizes[i];
    }
    if (odd != NULL)
        return import_refuse(import, odd, reterr,
                             "a copy of the model on %" PRIu64 " ranks (tp, cp and pp) does not "
                             "divide the %" PRIu64 " chips of %s",
                             copy, chips, import->machine_text);
    uint64_t const replicas = chips / copy;
    uint64_t own = 1;
    STATUS_TRY(own_find(import, replicas, &own, reterr));
    uint64_t const rest = replicas / own;
    uint64_t const ranks[MESH_ROLE_COUNT] = {
        [MESH_TP] = facts->ranks.tp,         [MESH_CP] = facts->ranks.cp,
        [MESH_PP] = facts->ranks.pp,         [MESH_EP] = own,
        [MESH_FSDP] = stage == 3 ? rest : 1, [MESH_DP] = stage == 3 ? 1 : rest};
    facts->ranks.dp = replicas;
    facts->ranks.fsdp = ranks[MESH_FSDP];
    if (facts->ranks.nodes > 0 && facts->ranks.node_ranks > 0 &&
        facts->ranks.nodes * facts->ranks.node_ranks != chips)
        import_lacks(import, &facts->ranks.nodes,
                     "the script starts another number of ranks than "
                     "--machine has chips; podsim takes the machine's");
    return import_mesh(import, ranks, reterr);
}

static enum status schedule_set(struct import *import, struct error *reterr)
{
    struct import_facts *facts = &import->facts;
    if (facts->ranks.pp == 1) return STATUS_OK;
    if (facts->ranks.layout != NULL)
        STATUS_TRY(import_set_text(import, "/workload/layout", facts->ranks.layout, reterr));
    if (facts->ranks.chunks == 0 && facts->ranks.stage_layers > 0) {
        bool const is_known = facts->sizes.layers > 0 && facts->ranks.stage_layers <= UINT16_MAX;
        uint64_t const layers = facts->ranks.pp * facts->ranks.stage_layers;
        if (!is_known || facts->sizes.layers % layers != 0)
            return import_refuse(import, &facts->ranks.stage_layers, reterr,
                                 "%" PRIu64 " layers on %" PRIu64 " stages are no whole number of "
                                 "parts of %" PRIu64,
                                 facts->sizes.layers, facts->ranks.pp, facts->ranks.stage_layers);
        facts->ranks.chunks = facts->sizes.layers / layers;
    }
    /* Only interleaved stages compute while messages are on their way. */
    bool const waits = facts->ranks.chunks <= 1 || facts->policy.overlap.waits_for_stages;
    if (waits) STATUS_TRY(import_set(import, reterr, "/run/overlap/pp=false"));
    if (facts->ranks.chunks <= 1) return import_set(import, reterr, "/workload/schedule=1f1b");
    return import_set(import, reterr, "/workload/schedule=interleaved:%" PRIu64,
                      facts->ranks.chunks);
}

/* --- Policies --- */

static bool has_copies(const struct import_facts *facts)
{
    return facts->ranks.dp > 1 || facts->ranks.cp > 1;
}

static bool gathers_ahead(const struct import_facts *facts, uint32_t stage)
{
    return facts->policy.overlap.gathers_ahead && (stage == 1 || stage == 2);
}

/* What podsim runs with reductions behind the backward pass. */
static bool reductions_wait(const struct import *import, uint32_t stage)
{
    const struct import_policy *policy = &import->facts.policy;
    return stage <= 1 && !gathers_ahead(&import->facts, stage) && !policy->overlap.reduces_ahead &&
           !policy->full_sharding && !policy->offloads_optimizer && !import_has_mtp(import);
}

/* Which collectives of shards run beside compute. */
static enum status shards_overlap(struct import *import, struct error *reterr)
{
    const struct import_policy *policy = &import->facts.policy;
    if (policy->overlap.gathers_ahead && policy->overlap.reduces_ahead) return STATUS_OK;
    return import_set(import, reterr, "/run/overlap/fsdp=%s",
                      policy->overlap.gathers_ahead   ? "gathers"
                      : policy->overlap.reduces_ahead ? "reductions"
                                                      : "false");
}

static enum status zero_set(struct import *import, uint32_t stage, struct error *reterr)
{
    const struct import_facts *facts = &import->facts;
    const char *const gather = gathers_ahead(facts, stage) ? "next_step" : "end";
    if (!has_copies(facts)) return STATUS_OK;
    STATUS_TRY(import_set(import, reterr, "/workload/zero=%u", stage < 3 ? stage : 0));
    if (reductions_wait(import, stage) || (stage == 2 && !facts->policy.overlap.reduces_ahead))
        STATUS_TRY(import_set(import, reterr, "/run/overlap/dp=false"));
    if (facts->ranks.fsdp > 1) STATUS_TRY(shards_overlap(import, reterr));
    return import_set(import, reterr, "/run/parameter_gather=%s", gather);
}

static enum status attention_set(struct import *import, struct error *reterr)
{
    struct import_facts *facts = &import->facts;
    static const char *const kinds[] = {"p2p", "all_gather", "a2a", NULL};
    static const char *const ours[] = {"ring", "all_gather", "ulysses"};
    if (name_same(facts->policy.attention, "unfused") ||
        name_same(facts->policy.attention, "local")) {
        STATUS_TRY(import_set(import, reterr, "/workload/attention=full"));
        STATUS_TRY(import_set(import, reterr, "/workload/attention_kernel=unfused"));
    }
    if (facts->ranks.cp == 1 || facts->policy.context == NULL) return STATUS_OK;
    uint32_t const kind = name_find(facts->policy.context, kinds);
    if (kinds[kind] != NULL) return import_set(import, reterr, "/workload/context=%s", ours[kind]);
    return import_refuse(import, &facts->policy.context, reterr,
                         "podsim has p2p, all_gather and a2a, each for all layers");
}

/* Gradients that are reduced to shards before they are added up are whole in no kernel. */
static enum status sums_set(struct import *import, uint32_t stage, struct error *reterr)
{
    const struct import_policy *policy = &import->facts.policy;
    if (!policy->sums_apart) return STATUS_OK;
    if (stage <= 1) return import_set(import, reterr, "/workload/gradient_sums=apart");
    import_lacks(import, &policy->sums_apart,
                 "sums by kernels of their own; podsim reduces gradients to shards before it adds "
                 "them up");
    return STATUS_OK;
}

static enum status loss_set(struct import *import, struct error *reterr)
{
    const char *const whose = import->facts.policy.loss_fusion;
    if (!import->facts.policy.fuses_loss) {
        import_plain(import, &import->facts.policy.loss_fusion,
                     "it counts with --cross-entropy-loss-fusion");
        return STATUS_OK;
    }
    return import_set(import, reterr, "/workload/loss_fusion=%s", whose == NULL ? "native" : whose);
}

/* What it means that the file leaves an argument out. */
static enum status defaults_say(struct import *import, uint32_t stage, struct error *reterr)
{
    const struct import_ranks *ranks = &import->facts.ranks;
    const struct {
        bool applies;
        const char *key, *what;
    } remarks[] = {
        {true, "--attention-dropout",
         "the file leaves it out: 0.1, a mask of the scores, drawn on the chip"},
        {true, "--hidden-dropout",
         "the file leaves it out: 0.1, a mask of each block's result, drawn and kept"},
        {has_copies(&import->facts) && stage <= 1 && !reductions_wait(import, stage),
         "--overlap-grad-reduce",
         "the file leaves it out: gradients are reduced after the backward pass; podsim reduces "
         "them during it"},
        {ranks->ep > 1, "--moe-token-dispatcher-type",
         "the file leaves it out: tokens go to experts by gathers; podsim exchanges them"},
    };
    for (uint32_t i = 0; i < sizeof remarks / sizeof *remarks; i++)
        if (remarks[i].applies && settings_find(import->file, remarks[i].key) == NULL)
            STATUS_TRY(import_remark(import, remarks[i].key, remarks[i].what, reterr));
    return STATUS_OK;
}

static enum status words_check(const struct import *import, struct error *reterr)
{
    static const char *const norms[] = {"LayerNorm", "RMSNorm", NULL};
    static const char *const positions[] = {"learned_absolute", "rope", "yarn", "none", NULL};
    static const char *const formats[] = {"e4m3", "hybrid", NULL};
    static const char *const losses[] = {"native", "te", NULL};
    static const char *const backends[] = {"auto", "flash", "fused", "unfused", "local", NULL};
    const struct import_facts *facts = &import->facts;
    STATUS_TRY(import_choice(import, &facts->sizes.norm, norms, reterr));
    STATUS_TRY(import_choice(import, &facts->sizes.positions, positions, reterr));
    STATUS_TRY(import_choice(import, &facts->formats.fp8_format, formats, reterr));
    STATUS_TRY(import_choice(import, &facts->policy.loss_fusion, losses, reterr));
    return import_choice(import, &facts->policy.attention, backends, reterr);
}

static enum status finish(struct import *import, struct error *reterr)
{
    uint32_t stage = 0;
    struct import_facts *facts = &import->facts;
    STATUS_TRY(program_check(import, reterr));
    STATUS_TRY(words_check(import, reterr));
    STATUS_TRY(stage_find(import, &stage, reterr));
    STATUS_TRY(ranks_find(import, stage, reterr));
    STATUS_TRY(model_find(import, reterr));
    STATUS_TRY(import_batch(import, facts->ranks.dp, reterr));
    STATUS_TRY(import_clips(import, reterr));
    STATUS_TRY(schedule_set(import, reterr));
    STATUS_TRY(megatron_remat_set(import, reterr));
    STATUS_TRY(zero_set(import, stage, reterr));
    STATUS_TRY(megatron_formats_set(import, stage, reterr));
    STATUS_TRY(attention_set(import, reterr));
    STATUS_TRY(sums_set(import, stage, reterr));
    STATUS_TRY(loss_set(import, reterr));
    STATUS_TRY(defaults_say(import, stage, reterr));
    if (facts->policy.offloads_optimizer)
        STATUS_TRY(import_set(import, reterr, "/workload/offload=optimizer"));
    if (facts->ranks.ep > 1)
        STATUS_TRY(import_set(import, reterr, "/run/overlap/ep=%s",
                              facts->policy.overlap.overlaps_shared ? "true" : "false"));
    return megatron_tp_set(import, reterr);
}

static const struct import_row *const rows[] = {megatron_facts, megatron_plain, megatron_lacks,
                                                NULL};

const struct import_framework import_megatron = {
    .name = "megatron",
    .preset = "megatron",
    .read = settings_read_shell,
    .rows = rows,
    .finish = finish,
};
