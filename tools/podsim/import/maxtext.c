/*
 * maxtext.c: MaxText's configurations (YAML) as a scenario.
 *
 * Source: AI-Hypercomputer/maxtext, configs/base.yml, from which what a file leaves out comes.
 */
#include "tools/podsim/import/maxtext.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/name.h"

enum { TOKENS = 2048 };

static const double sequences_of_a_chip = 12;

/* Sizes are equal: configs/models of MaxText. Its vocabularies of Gemma have up to 128 words more
 * or less. */
static const struct import_name models[] = {
    {"llama2-7b", "llama-2-7b", false},
    {"llama2-13b", "llama-2-13b", false},
    {"llama2-70b", "llama-2-70b", false},
    {"llama3-8b", "llama-3-8b", false},
    {"llama3.1-8b", "llama-3-8b", false},
    {"llama3-70b", "llama-3-70b", false},
    {"llama3.1-70b", "llama-3-70b", false},
    {"llama3.3-70b", "llama-3-70b", false},
    {"llama3-405b", "llama-3-405b", false},
    {"llama3.1-405b", "llama-3-405b", false},
    {"mixtral-8x7b", "mixtral-8x7b", false},
    {"mixtral-8x22b", "mixtral-8x22b", false},
    {"mistral-7b", "mistral-7b", false},
    {"gemma-2b", "gemma-2b", false},
    {"gemma-7b", "gemma-7b", false},
    {"gemma2-2b", "gemma-2-2b", false},
    {"gemma2-9b", "gemma-2-9b", false},
    {"gemma2-27b", "gemma-2-27b", false},
    {"gemma3-4b", "gemma-3-4b", false},
    {"gemma3-12b", "gemma-3-12b", false},
    {"gemma3-27b", "gemma-3-27b", false},
    {"gpt3-6b", "gpt-3-6b", false},
    {"gpt3-22b", "gpt-3-22b", false},
    {"gpt3-175b", "gpt-3-175b", false},
    {"olmo3-7b", "olmo-3-7b", false},
    {"olmo3-7b-pt", "olmo-3-7b", false},
    {"olmo3-32b", "olmo-3-32b", false},
    {"deepseek2-16b", "deepseek-v2-lite", false},
    {"deepseek2-236b", "deepseek-v2", false},
    {"deepseek3-671b", "deepseek-v3", true},
    {"kimi-k2-1t", "kimi-k2", false},
    {"qwen2.5-1.5b", "qwen2.5-1.5b", false},
    {"qwen2.5-7b", "qwen2.5-7b", false},
    {"qwen2.5-14b", "qwen2.5-14b", false},
    {"qwen3-0.6b", "qwen3-0.6b", false},
    {"qwen3-1.7b", "qwen3-1.7b", false},
    {"qwen3-4b", "qwen3-4b", false},
    {"qwen3-4b-thinking-2507", "qwen3-4b", false},
    {"qwen3-14b", "qwen3-14b", false},
    {"qwen3-480b-a35b", "qwen3-480b-a35b", false},
    {"qwen3-8b", "qwen3-8b", false},
    {"qwen3-32b", "qwen3-32b", false},
    {"qwen3-30b-a3b", "qwen3-30b-a3b", false},
    {"qwen3-235b-a22b", "qwen3-235b-a22b", false},
    {"gpt-oss-20b", "gpt-oss-20b", false},
    {"gpt-oss-120b", "gpt-oss-120b", false},
    {NULL, NULL, false},
};

/* --- The model --- */

static void default_set(uint64_t *fact, uint64_t value)
{
    if (*fact == 0) *fact = value;
}

/* What MaxText calls layers, and the type of Hugging Face that has such; NULL: by their sizes. */
static const struct block {
    const char *name, *type;
    uint32_t layers; /* Layers of one of MaxText's. */
} blocks[] = {
    {"llama2", NULL, 1},   {"mistral", NULL, 1},      {"mixtral", NULL, 1},
    {"qwen2", NULL, 1},    {"qwen3", NULL, 1},        {"qwen3_moe", NULL, 1},
    {"deepseek", NULL, 1}, {"default", NULL, 1},      {"gpt3", NULL, 1},
    {"gemma", "gemma", 1}, {"gemma2", "gemma2", 2},   {"gemma3", "gemma3_text", 1},
    {"olmo3", "olmo3", 1}, {"gpt_oss", "gpt_oss", 1}, {NULL, NULL, 1},
};

/* An MLP with a gate has two activations, the second of which is none. */
static void mlp_find(struct import *import)
{
    static const char *const gated[] = {"silu linear", "gelu linear", "sigmoid linear",
                                        "relu linear", NULL};
    static const char *const plain[] = {"silu", "gelu", "relu", NULL};
    struct import_sizes *sizes = &import->facts.sizes;
    const char *const said =
        import->facts.parts.activations == NULL ? gated[0] : import->facts.parts.activations;
    sizes->gated = plain[name_find(said, plain)] == NULL;
    if (sizes->gated && gated[name_find(said, gated)] == NULL)
        import_lacks(import, &import->facts.parts.activations,
                     "another MLP than one that a gate weighs");
}

/* Whole parts that a kind of layers has, whatever the file says of them. */
static void block_set(struct import *import, const struct block *block)
{
    struct import_sizes *sizes = &import->facts.sizes;
    bool const is_gpt = name_same(block->name, "gpt3");
    mlp_find(import);
    import->facts.parts.type = block->type;
    sizes->unbiased = !is_gpt;
    sizes->layer_norm = is_gpt;
    if (sizes->layers <= UINT32_MAX) sizes->layers *= block->layers;
    if (!is_gpt && sizes->learned_positions > 0) {
        import_lacks(import, &sizes->learned_positions, "learned positions");
        sizes->learned_positions = 0;
    }
}

/* A model by its sizes, of decoders that podsim has. */
static enum status sizes_find(struct import *import, struct error *reterr)
{
    struct import_facts *facts = &import->facts;
    struct import_sizes *sizes = &facts->sizes;
    const char *const name = facts->names.flavor == NULL ? "llama2" : facts->names.flavor;
    const struct block *block = blocks;
    while (block->name != NULL && !name_same(block->name, name)) block++;
    if (block->name == NULL)
        return import_refuse(import, &facts->names.flavor, reterr,
                             "podsim does not make layers of \"%.40s\" out of sizes; `--model "
                             "NAME` names a model, or a config.json",
                             name);
    default_set(&sizes->width, 2048);
    default_set(&sizes->heads, 16);
    default_set(&sizes->kv_heads, 16);
    default_set(&sizes->mlp_width, 7168);
    default_set(&sizes->layers, 16);
    default_set(&sizes->head_width, 128);
    default_set(&sizes->vocabulary, 32000);
    block_set(import, block);
    if (import_said(import, &sizes->untied) == NULL) sizes->untied = 1;
    sizes->qkv_biased |= name_same(block->name, "qwen2");
    static const char *const kinds[] = {"global", "mla",        "local_sliding",   "chunk",
                                        "full",   "compressed", "block_diffusion", NULL};
    STATUS_TRY(import_choice(import, &sizes->positions, kinds, reterr));
    if (sizes->positions != NULL && name_find(sizes->positions, kinds) > 1)
        import_lacks(import, &sizes->positions, "attention to other tokens than all before");
    facts->mla.is_used = name_same(sizes->positions, "mla");
    if (facts->mla.is_used) {
        static const struct import_mla otherwise = {
            .kv_rank = 512, .plain_width = 128, .rope_width = 64, .value_width = 128};
        import_mla_fill(import, &otherwise);
    }
    if (facts->experts.count == 1) facts->experts.count = 0;
    default_set(&facts->experts.top_k, 1);
    default_set(&facts->experts.width, sizes->mlp_width);
    if (facts->experts.shared > UINT32_MAX || facts->experts.width > UINT32_MAX)
        return import_refuse(import, &facts->experts.shared, reterr, "too many experts");
    facts->experts.shared_width = facts->experts.shared * facts->experts.width;
    return import_model(import, reterr);
}

static enum status model_set(struct import *import, struct error *reterr)
{
    const char *const name = import->facts.names.model;
    bool const is_named = name != NULL && !name_same(name, "default");
    if (import->model != NULL) return import_model(import, reterr);
    if (!is_named) return sizes_find(import, reterr);
    const struct import_setting *other = settings_find(import->file, "override_model_config");
    if (other != NULL && other->outcome == IMPORT_NOT_EXPRESSED)
        return settings_fail(import->file, other->line, STATUS_UNSUPPORTED, reterr,
                             "override_model_config: podsim takes the sizes of %.40s, or those of "
                             "the file where model_name is left out",
                             name);
    import->facts.names.flavor = NULL; /* The model's own, in any case. */
    return import_model_named(import, models, reterr);
}

/* --- Policies --- */

static enum status batch_set(struct import *import, uint64_t copies, struct error *reterr)
{
    struct import_step *batch = &import->facts.batch;
    char *end = NULL;
    double const each = batch->each == NULL ? sequences_of_a_chip : strtod(batch->each, &end);
    double const sequences = each * import->machine.chip_count;
    if ((batch->each != NULL && (*end != '\0' || end == batch->each)) || !(sequences >= 1) ||
        sequences > UINT32_MAX || fabs(sequences - round(sequences)) > 1e-6)
        return import_refuse(import, &batch->each, reterr,
                             "\"%.40s\" on %u chips is no whole number of sequences",
                             batch->each == NULL ? "12" : batch->each, import->machine.chip_count);
    if (batch->accumulate == 0) batch->accumulate = 1;
    if (batch->accumulate > UINT16_MAX)
        return import_refuse(import, &batch->accumulate, reterr, "too many microbatches");
    batch->sequences = (uint64_t)round(sequences) * batch->accumulate;
    if (batch->length == 0) batch->length = TOKENS;
    STATUS_TRY(import_clips(import, reterr));
    return import_batch(import, copies, reterr);
}

static enum status formats_set(struct import *import, struct error *reterr)
{
    static const char *const kinds[] = {"", "int8", "fp8", NULL};
    struct import_formats *formats = &import->facts.formats;
    if (formats->activations == NULL) formats->activations = "bfloat16";
    if (formats->gradients == NULL) formats->gradients = formats->activations;
    if (formats->weights != NULL && !name_same(formats->weights, formats->activations))
        import_lacks(import, &formats->weights,
                     "weights in another format than activations; podsim holds and gathers them "
                     "in that of activations");
    if (formats->weights == NULL)
        STATUS_TRY(import_remark(import, "weight_dtype",
                                 "the file leaves it out: weights lie in memory in float32; podsim "
                                 "holds and gathers them in the format of activations",
                                 reterr));
    formats->weights = formats->activations;
    STATUS_TRY(import_formats_set(import, reterr));
    const char *const quantized = formats->converters == NULL ? "" : formats->converters;
    uint32_t const kind = name_find(quantized, kinds);
    if (kinds[kind] == NULL)
        import_lacks(import, &formats->converters, "podsim has int8 and fp8 for all products");
    if (kinds[kind] == NULL || kind == 0) return STATUS_OK;
    return import_set(import, reterr, "/workload/formats/matmuls=%s", kinds[kind]);
}

static enum status attention_set(struct import *import, struct error *reterr)
{
    static const char *const kinds[] = {
        "autoselected",    "dot_product", "flash",    "cudnn_flash_te",
        "cudnn_flash_jax", "paged",       "vllm_rpa", NULL};
    const char *const *const said = &import->facts.policy.attention;
    STATUS_TRY(import_choice(import, said, kinds, reterr));
    if (name_same(*said, "paged") || name_same(*said, "vllm_rpa"))
        import_lacks(import, said, "a kernel of inference; podsim takes flash attention");
    if (!name_same(*said, "dot_product")) return STATUS_OK;
    STATUS_TRY(import_set(import, reterr, "/workload/attention=full"));
    return import_set(import, reterr, "/workload/attention_kernel=unfused");
}

static enum status finish(struct import *import, struct error *reterr)
{
    struct import_facts *facts = &import->facts;
    uint64_t copies = 1;
    STATUS_TRY(maxtext_mesh_set(import, &copies, reterr));
    STATUS_TRY(model_set(import, reterr));
    STATUS_TRY(batch_set(import, copies, reterr));
    STATUS_TRY(maxtext_remat_set(import, reterr));
    STATUS_TRY(formats_set(import, reterr));
    STATUS_TRY(attention_set(import, reterr));
    if (facts->experts.count > 1) STATUS_TRY(import_capacity(import, reterr));
    if (facts->ranks.cp > 1) STATUS_TRY(import_set(import, reterr, "/workload/context=all_gather"));
    if (!facts->policy.offloads_optimizer) return STATUS_OK;
    return import_set(import, reterr, "/workload/offload=optimizer");
}

static const struct import_row *const rows[] = {maxtext_facts, maxtext_plain, maxtext_lacks, NULL};

const struct import_framework import_maxtext = {
    .name = "maxtext",
    .preset = "maxtext",
    .read = settings_read_yaml,
    .rows = rows,
    .finish = finish,
};
