/*
 * hf_trainer.c: arguments of Hugging Face's trainers (YAML or JSON), and configurations of
 * accelerate, as a scenario.
 *
 * Source: TrainingArguments of huggingface/transformers; huggingface/accelerate, where FSDP takes
 * the format of mixed precision for weights, activations and reductions, and without FSDP weights
 * and gradients stay in fp32. Mixed precision is PyTorch's autocast, but with DeepSpeed, whose
 * engine has a model of 16 bits (accelerator.py: prepare_model and _prepare_deepspeed).
 */
#include "tools/podsim/import/hf_trainer.h"

#include <inttypes.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/name.h"

enum { SEQUENCES = 8 };

/* Sizes are equal: the models' own config.json. Ends such as -Instruct are left off. */
static const struct import_name models[] = {
    {"meta-llama/Llama-2-7b-hf", "llama-2-7b", false},
    {"meta-llama/Llama-2-7b-chat-hf", "llama-2-7b", false},
    {"meta-llama/Llama-2-13b-hf", "llama-2-13b", false},
    {"meta-llama/Llama-2-13b-chat-hf", "llama-2-13b", false},
    {"meta-llama/Llama-2-70b-hf", "llama-2-70b", false},
    {"meta-llama/Llama-2-70b-chat-hf", "llama-2-70b", false},
    {"meta-llama/Meta-Llama-3-8B", "llama-3-8b", false},
    {"meta-llama/Meta-Llama-3.1-8B", "llama-3-8b", false},
    {"meta-llama/Llama-3.1-8B", "llama-3-8b", false},
    {"meta-llama/Meta-Llama-3-70B", "llama-3-70b", false},
    {"meta-llama/Meta-Llama-3.1-70B", "llama-3-70b", false},
    {"meta-llama/Llama-3.1-70B", "llama-3-70b", false},
    {"meta-llama/Llama-3.3-70B", "llama-3-70b", false},
    {"meta-llama/Llama-3.1-405B", "llama-3-405b", false},
    {"meta-llama/Llama-3.2-1B", "llama-3.2-1b", false},
    {"meta-llama/Llama-3.2-3B", "llama-3.2-3b", false},
    {"mistralai/Mistral-7B-v0.1", "mistral-7b-v0.1", false},
    {"mistralai/Mistral-7B-Instruct-v0.1", "mistral-7b-v0.1", false},
    {"mistralai/Mistral-7B-Instruct-v0.2", "mistral-7b-v0.2", false},
    {"mistralai/Mistral-7B-v0.3", "mistral-7b", false},
    {"mistralai/Mistral-7B-Instruct-v0.3", "mistral-7b", false},
    {"alignment-handbook/zephyr-7b-sft-full", "mistral-7b-v0.1", false},
    {"alignment-handbook/zephyr-7b-sft-qlora", "mistral-7b-v0.1", false},
    {"alignment-handbook/mistral-7b-sft-constitutional-ai", "mistral-7b-v0.1", false},
    {"HuggingFaceH4/zephyr-7b-beta", "mistral-7b-v0.1", false},
    {"mistralai/Mixtral-8x7B-v0.1", "mixtral-8x7b", false},
    {"mistralai/Mixtral-8x7B-Instruct-v0.1", "mixtral-8x7b", false},
    {"mistralai/Mixtral-8x22B-v0.1", "mixtral-8x22b-v0.1", false},
    {"mistral-community/Mixtral-8x22B-v0.1", "mixtral-8x22b-v0.1", false},
    {"google/gemma-2b", "gemma-2b", false},
    {"google/gemma-7b", "gemma-7b", false},
    {"HuggingFaceH4/zephyr-7b-gemma-sft-v0.1", "gemma-7b", false},
    {"google/gemma-2-2b", "gemma-2-2b", false},
    {"google/gemma-2-9b", "gemma-2-9b", false},
    {"google/gemma-2-27b", "gemma-2-27b", false},
    {"google/gemma-3-1b-pt", "gemma-3-1b", false},
    {"google/gemma-3-1b", "gemma-3-1b", false},
    {"microsoft/phi-4", "phi-4", false},
    {"microsoft/Phi-3-mini-4k-instruct", "phi-3-mini", false},
    {"Qwen/Qwen2.5-0.5B", "qwen2.5-0.5b", false},
    {"Qwen/Qwen2.5-1.5B", "qwen2.5-1.5b", false},
    {"Qwen/Qwen2.5-3B", "qwen2.5-3b", false},
    {"Qwen/Qwen2.5-7B", "qwen2.5-7b", false},
    {"Qwen/Qwen2.5-14B", "qwen2.5-14b", false},
    {"Qwen/Qwen2.5-32B", "qwen2.5-32b", false},
    {"Qwen/Qwen2.5-72B", "qwen2.5-72b", false},
    {"Qwen/Qwen3-0.6B", "qwen3-0.6b", false},
    {"Qwen/Qwen3-1.7B", "qwen3-1.7b", false},
    {"Qwen/Qwen3-4B", "qwen3-4b", false},
    {"Qwen/Qwen3-8B", "qwen3-8b", false},
    {"Qwen/Qwen3-14B", "qwen3-14b", false},
    {"Qwen/Qwen3-32B", "qwen3-32b", false},
    {"Qwen/Qwen3-30B-A3B", "qwen3-30b-a3b", false},
    {"Qwen/Qwen3-235B-A22B", "qwen3-235b-a22b", false},
    {"openai/gpt-oss-20b", "gpt-oss-20b", false},
    {"openai/gpt-oss-120b", "gpt-oss-120b", false},
    {"openai-community/gpt2", "gpt-2", false},
    {"gpt2", "gpt-2", false},
    {"openai-community/gpt2-xl", "gpt-2-xl", false},
    {"gpt2-xl", "gpt-2-xl", false},
    {"HuggingFaceTB/SmolLM-135M", "smollm-135m", false},
    {"HuggingFaceTB/SmolLM-360M", "smollm-360m", false},
    {"HuggingFaceTB/SmolLM-1.7B", "smollm-1.7b", false},
    {"HuggingFaceTB/SmolLM2-135M", "smollm-135m", false},
    {"HuggingFaceTB/SmolLM2-360M", "smollm-360m", false},
    {"HuggingFaceTB/SmolLM2-1.7B", "smollm-1.7b", false},
    {"loubnabnl/smollm2-360M-sft", "smollm-360m", false},
    {"loubnabnl/smollm2-1.7B-sft", "smollm-1.7b", false},
    {"TinyLlama/TinyLlama-1.1B-Chat-v1.0", "tinyllama-1.1b", false},
    {"bigcode/starcoder2-3b", "starcoder2-3b", false},
    {"bigcode/starcoder2-15b", "starcoder2-15b", false},
    {"allenai/Olmo-3-1025-7B", "olmo-3-7b", false},
    {"deepseek-ai/DeepSeek-V2-Lite", "deepseek-v2-lite", false},
    {NULL, NULL, false},
};

enum sharding {
    SHARDING_NONE,
    SHARDING_OPTIMIZER,
    SHARDING_GRADIENTS,
    SHARDING_FULL,
    SHARDING_HYBRID,
};

/* What is trained by another library than PyTorch's has its own file. */
static enum status kind_find(struct import *import, enum sharding *ret_sharding,
                             struct error *reterr)
{
    static const char *const kinds[] = {"NO", "MULTI_GPU", "FSDP", "DEEPSPEED", NULL};
    static const enum sharding stages[] = {SHARDING_NONE, SHARDING_OPTIMIZER, SHARDING_GRADIENTS,
                                           SHARDING_FULL};
    const struct import_facts *facts = &import->facts;
    const struct import_setting *file = settings_find(import->file, "deepspeed");
    const char *const kind = facts->names.flavor == NULL ? "NO" : facts->names.flavor;
    uint32_t const found = name_find_any_case(kind, kinds);
    bool const has_stage = import_said(import, &facts->policy.stage) != NULL;
    if (kinds[found] == NULL)
        return import_refuse(import, &facts->names.flavor, reterr,
                             "podsim does not model \"%.40s\"%s", kind,
                             name_offer(kind, kinds, "; the nearest is ", "", NULL).text);
    if ((file != NULL && file->form != IMPORT_NULL) || (found == 3 && !has_stage))
        return settings_fail(import->file, file == NULL ? 0 : file->line, STATUS_UNSUPPORTED,
                             reterr,
                             "DeepSpeed shards by a file of its own, which `podsim import "
                             "deepspeed` reads");
    if (facts->policy.stage > 3)
        return import_refuse(import, &facts->policy.stage, reterr, "stages go from 0 to 3");
    if (found != 3) {
        static const char why[] = "it counts with distributed_type DEEPSPEED";
        import_plain(import, &facts->policy.stage, why);
        import_plain(import, &facts->policy.offload, why);
        import->facts.policy.offload = NULL;
    }
    *ret_sharding = found == 2   ? SHARDING_FULL
                    : found == 3 ? stages[facts->policy.stage]
                                 : SHARDING_NONE;
    return STATUS_OK;
}

static bool is_deepspeed(const struct import *import)
{
    static const char *const kinds[] = {"DEEPSPEED", NULL};
    const char *const kind = import->facts.names.flavor;
    return kind != NULL && name_find_any_case(kind, kinds) == 0;
}

/* "full_shard auto_wrap", "FULL_SHARD", "1"; FSDP2 says it by resharding alone. */
static enum status sharding_find(struct import *import, enum sharding *ret_sharding,
                                 struct error *reterr)
{
    static const char *const nots[] = {"false", "0", NULL};
    static const char *const words[] = {"no_shard",   "shard_grad_op",
                                        "full_shard", "hybrid_shard",
                                        "true",       "1",
                                        "2",          "3",
                                        "4",          "false",
                                        "0",          "",
                                        NULL};
    static const enum sharding meant[] = {SHARDING_NONE,      SHARDING_GRADIENTS, SHARDING_FULL,
                                          SHARDING_HYBRID,    SHARDING_FULL,      SHARDING_FULL,
                                          SHARDING_GRADIENTS, SHARDING_NONE,      SHARDING_HYBRID,
                                          SHARDING_NONE,      SHARDING_NONE,      SHARDING_NONE};
    const struct import_policy *policy = &import->facts.policy;
    STATUS_TRY(kind_find(import, ret_sharding, reterr));
    if (policy->sharding != NULL) {
        const char *const word = policy->sharding;
        const char *first = arena_format(import->arena, "%.*s", (int)strcspn(word, " ,"), word);
        if (first == NULL) return error_no_memory(reterr, "");
        uint32_t const found = name_find_any_case(first, words);
        if (words[found] == NULL)
            return import_refuse(import, &policy->sharding, reterr,
                                 "no way to shard is called \"%.40s\"%s", first,
                                 name_offer(first, words, "; the nearest is ", "", "").text);
        if (meant[found] != SHARDING_NONE && is_deepspeed(import))
            return import_refuse(import, &policy->sharding, reterr,
                                 "distributed_type DEEPSPEED shards the model as well, and "
                                 "transformers takes one of both");
        *ret_sharding = meant[found];
        if (strstr(word, "offload") != NULL)
            import_lacks(import, &policy->sharding, "it is sharded; weights on the host are not");
    }
    bool const keeps =
        policy->reshard != NULL && nots[name_find_any_case(policy->reshard, nots)] != NULL;
    if (keeps && *ret_sharding == SHARDING_FULL) *ret_sharding = SHARDING_GRADIENTS;
    return STATUS_OK;
}

static enum status ranks_set(struct import *import, enum sharding sharding, uint64_t *ret_copies,
                             struct error *reterr)
{
    struct import_ranks *ranks = &import->facts.ranks;
    uint64_t *const sizes[] = {&ranks->tp, &ranks->cp};
    uint64_t copies = 1, shards = 1, left = 1;
    STATUS_TRY(import_rest(import, sizes, sizeof sizes / sizeof *sizes, &left, reterr));
    *ret_copies = left;
    uint64_t const chips = import->machine.chip_count;
    uint64_t const inner = chips / import_slices(import);
    if (sharding == SHARDING_HYBRID && inner % (ranks->tp * ranks->cp) != 0)
        return import_refuse(import, &import->facts.policy.sharding, reterr,
                             "tp and cp do not lie within a node");
    shards = sharding == SHARDING_FULL     ? left
             : sharding == SHARDING_HYBRID ? inner / (ranks->tp * ranks->cp)
                                           : 1;
    if (ranks->fsdp > 0) shards = ranks->fsdp;
    if (ranks->fsdp > 0 && ranks->dp > 0) left = ranks->fsdp * ranks->dp;
    if (shards == 0 || left % shards != 0 || left != *ret_copies)
        return import_refuse(import, &ranks->fsdp, reterr,
                             "%" PRIu64 " shards, where %" PRIu64 " of %" PRIu64 " chips are left",
                             shards, *ret_copies, chips);
    copies = left / shards;
    if (ranks->nodes > 0 && import->machine.chip.kind == CHIP_GPU &&
        ranks->nodes != import_slices(import))
        import_lacks(import, &ranks->nodes,
                     "the file starts another number of nodes than --machine has; podsim takes "
                     "the machine's");
    if (ranks->node_ranks > 0 && ranks->node_ranks != chips)
        import_lacks(import, &ranks->node_ranks,
                     "the file starts another number of ranks than --machine has chips; podsim "
                     "takes the machine's");
    uint64_t const mesh[MESH_ROLE_COUNT] = {
        [MESH_TP] = ranks->tp, [MESH_CP] = ranks->cp, [MESH_FSDP] = shards, [MESH_DP] = copies};
    STATUS_TRY(import_mesh(import, mesh, reterr));
    if (copies == 1 || (sharding != SHARDING_OPTIMIZER && sharding != SHARDING_GRADIENTS))
        return STATUS_OK;
    return import_set(import, reterr, "/workload/zero=%d", sharding == SHARDING_OPTIMIZER ? 1 : 2);
}

/* `has_master`: weights are copies of others in fp32, which the update changes. `casts`: mixed
 * precision is autocast. */
static enum status formats_set(struct import *import, bool has_master, bool casts,
                               struct error *reterr)
{
    static const char *const full[] = {"float32", "fp32", NULL};
    static const char *const words[] = {"no", "bf16", "fp16", "fp8", NULL};
    struct import_formats *formats = &import->facts.formats;
    uint32_t const found = formats->precision == NULL ? 0 : name_find(formats->precision, words);
    if (words[found] == NULL)
        return import_refuse(
            import, &formats->precision, reterr, "no precision \"%.40s\"%s", formats->precision,
            name_offer(formats->precision, words, "; the nearest is ", "", NULL).text);
    if (found == 3)
        import_lacks(import, &formats->precision,
                     "products in fp8, which podsim takes in bf16, as all else is");
    bool const is_bf16 = formats->bf16 || found == 1 || found == 3,
               is_fp16 = formats->fp16 || found == 2;
    formats->activations = is_bf16 ? "bf16" : is_fp16 ? "fp16" : "fp32";
    STATUS_TRY(import_precision_check(import, reterr));
    if (has_master || full[name_find(formats->weights, full)] != NULL)
        import_plain(import, &formats->weights, "the format of the checkpoint");
    else
        import_lacks(import, &formats->weights,
                     "weights, gradients and update in that format; without sharding podsim takes "
                     "fp32");
    formats->weights = has_master ? formats->activations : "fp32";
    formats->gradients = formats->weights;
    if (casts && (is_bf16 || is_fp16)) STATUS_TRY(import_autocast(import, reterr));
    return import_formats_set(import, reterr);
}

static enum status attention_set(struct import *import, struct error *reterr)
{
    static const char *const kinds[] = {
        "eager",          "sdpa", "flash_attention_2", "flash_attention_3", "flash_attention_4",
        "flex_attention", NULL};
    const struct import_facts *facts = &import->facts;
    const char *const *const said = &facts->policy.attention;
    /* "kernels-community/flash-attn" is a kernel of a repository. */
    if (*said != NULL && strchr(*said, '/') == NULL)
        STATUS_TRY(import_choice(import, said, kinds, reterr));
    if (facts->ranks.cp > 1) STATUS_TRY(import_set(import, reterr, "/workload/context=all_gather"));
    if (!name_same(facts->policy.attention, "eager")) return STATUS_OK;
    STATUS_TRY(import_set(import, reterr, "/workload/attention=full"));
    return import_set(import, reterr, "/workload/attention_kernel=unfused");
}

static enum status shard_kernels_set(struct import *import, bool shards, struct error *reterr)
{
    const struct import_policy *policy = &import->facts.policy;
    if (policy->sharding_version != 2) return STATUS_OK;
    if (shards && import_has_torch(import))
        return import_set(import, reterr, "/workload/shard_kernels=fsdp2");
    import_plain(import, &policy->sharding_version,
                 shards ? "podsim has no kernels of PyTorch here" : "nothing is sharded");
    return STATUS_OK;
}

static enum status finish(struct import *import, struct error *reterr)
{
    struct import_facts *facts = &import->facts;
    enum sharding sharding = SHARDING_NONE;
    uint64_t copies = 1;
    if (facts->names.model == NULL && import->model == NULL)
        STATUS_TRY(import_model_given(import, reterr));
    STATUS_TRY(import_length_given(import, reterr));
    STATUS_TRY(sharding_find(import, &sharding, reterr));
    STATUS_TRY(ranks_set(import, sharding, &copies, reterr));
    bool const is_deep = is_deepspeed(import);
    bool const has_master = sharding != SHARDING_NONE || facts->ranks.fsdp > 1 || is_deep;
    facts->names.flavor = NULL; /* That of the distribution is no part of a model's name. */
    STATUS_TRY(import_model_named(import, models, reterr));
    if (facts->batch.microbatch == 0) facts->batch.microbatch = SEQUENCES;
    STATUS_TRY(import_batch(import, copies, reterr));
    STATUS_TRY(import_set(import, reterr, "/workload/remat=%s",
                          facts->policy.repeats || facts->policy.checkpoints ? "block" : "none"));
    STATUS_TRY(attention_set(import, reterr));
    if (settings_find(import->file, "packing") == NULL)
        STATUS_TRY(import_remark(import, "packing",
                                 "the file leaves it out: a batch is as long as its longest "
                                 "sequence; podsim takes all as long as may be",
                                 reterr));
    STATUS_TRY(import_offload(import, reterr));
    STATUS_TRY(shard_kernels_set(import, sharding > SHARDING_OPTIMIZER && !is_deep, reterr));
    STATUS_TRY(import_clips(import, reterr));
    STATUS_TRY(formats_set(import, has_master, !is_deep, reterr));
    return import_stack(import, facts->policy.compiles ? "torch-compile" : "torch-eager", reterr);
}

static const struct import_row *const rows[] = {hf_trainer_facts, hf_trainer_plain,
                                                hf_trainer_lacks, NULL};

const struct import_framework import_hf_trainer = {
    .name = "hf-trainer",
    .preset = "fsdp",
    .read = settings_read_yaml,
    .rows = rows,
    .finish = finish,
};
