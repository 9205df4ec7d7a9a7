/*
 * megatron_formats.c: number formats of Megatron-LM's steps.
 *
 * Source: NVIDIA/Megatron-LM, megatron/training/arguments.py.
 */
#include "sim/base/name.h"
#include "tools/podsim/import/megatron.h"
#include "tools/podsim/import/recompute.h"

/* Transformer Engine's recipes. */
static enum status recipe_set(struct import *import, struct error *reterr)
{
    static const char *const theirs[] = {"tensorwise", "delayed", "mxfp8",
                                         "blockwise",  "custom",  NULL};
    static const char *const ours[] = {"current", "delayed", "mxfp8", "block", NULL};
    const struct import_formats *formats = &import->facts.formats;
    const char *const recipe = formats->fp8_recipe;
    if (recipe == NULL) return STATUS_OK;
    if (!formats->fp8 && formats->fp8_format == NULL) {
        import_plain(import, &formats->fp8_recipe, "it counts with --fp8-format");
        return STATUS_OK;
    }
    STATUS_TRY(import_choice(import, &formats->fp8_recipe, theirs, reterr));
    uint32_t const found = name_find(recipe, theirs);
    if (ours[found] != NULL)
        return import_recipe(import, &formats->fp8_recipe, "te", ours[found], reterr);
    import_lacks(import, &formats->fp8_recipe, "a recipe of its own");
    return STATUS_OK;
}

/*
 * Source: megatron/core/distributed/fsdp/src/megatron_fsdp/param_and_grad_buffer.py: the buffer of
 * a shard's gradients has the format of the reduction, and the update casts it.
 */
static enum status main_gradients_set(struct import *import, uint32_t stage, bool is_narrow,
                                      const char *format, struct error *reterr)
{
    if (import->is_ideal || import->machine.chip.kind != CHIP_GPU)
        return STATUS_OK; /* With the memory of the framework alone. */
    if (stage < 3 || !is_narrow)
        return import_set(import, reterr, "/workload/formats/main_gradients=%s", format);
    import_lacks(import, &import->facts.policy.full_sharding,
                 "shards of gradients are added up in the 16 bits that they are reduced in; podsim "
                 "adds up those of FSDP in fp32, 2 bytes a weight of the shard more");
    return STATUS_OK;
}

enum status megatron_formats_set(struct import *import, uint32_t stage, struct error *reterr)
{
    struct import_facts *facts = &import->facts;
    const char *const format = facts->formats.bf16 ? "bf16" : facts->formats.fp16 ? "fp16" : "fp32";
    bool const is_fp32 = facts->formats.bf16
                             ? !facts->formats.gradients_bf16
                             : !facts->formats.fp16 || facts->formats.gradients_fp32;
    const char *const gradients = is_fp32 ? "fp32" : format;
    STATUS_TRY(import_precision_check(import, reterr));
    STATUS_TRY(import_set(import, reterr, "/workload/formats/weights=%s", format));
    STATUS_TRY(import_set(import, reterr, "/workload/formats/activations=%s", format));
    STATUS_TRY(import_set(import, reterr, "/workload/formats/gradients=%s",
                          facts->formats.gradients == NULL ? gradients : facts->formats.gradients));
    STATUS_TRY(main_gradients_set(import, stage, !is_fp32, gradients, reterr));
    if (facts->formats.fp8 || facts->formats.fp8_format != NULL)
        STATUS_TRY(import_set(import, reterr, "/workload/formats/matmuls=fp8"));
    STATUS_TRY(recipe_set(import, reterr));
    if (facts->formats.moments != NULL)
        STATUS_TRY(
            import_set(import, reterr, "/workload/formats/optimizer=%s", facts->formats.moments));
    return STATUS_OK;
}
