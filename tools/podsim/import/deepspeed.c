/*
 * deepspeed.c: DeepSpeed's configuration (JSON) as a scenario. It says nothing of the model, of the
 * length of sequences and of recomputation, which options give.
 *
 * Source: DeepSpeed's documentation of its configuration JSON, and the files of
 * microsoft/Megatron-DeepSpeed and of the tests of huggingface/transformers.
 */
#include <inttypes.h>

#include "sim/base/name.h"
#include "tools/podsim/import/import.h"

#define ZERO "zero_optimization."

static const struct import_row facts_of[] = {
    IMPORT_FACT("train_batch_size", IMPORT_COUNT, batch.sequences, "/workload/batch_tokens"),
    IMPORT_FACT("train_micro_batch_size_per_gpu", IMPORT_COUNT, batch.microbatch,
                "/workload/accumulate"),
    IMPORT_FACT("gradient_accumulation_steps", IMPORT_COUNT, batch.accumulate,
                "/workload/accumulate"),
    IMPORT_FACT("sequence_length", IMPORT_COUNT, batch.length, "/workload/sequence_length"),
    IMPORT_FACT("gradient_checkpointing", IMPORT_ON, policy.repeats, "/workload/remat"),
    IMPORT_FACT("tensor_parallel.autotp_size", IMPORT_COUNT, ranks.tp, "/mesh/tp"),
    IMPORT_FACT("sequence_parallel_size", IMPORT_COUNT, ranks.cp, "/mesh/cp"),
    IMPORT_FACT(ZERO "stage", IMPORT_AMOUNT, policy.stage, "/workload/zero"),
    IMPORT_FACT(ZERO "overlap_comm", IMPORT_ON, policy.overlap.reduces_ahead, "/run/overlap"),
    IMPORT_FACT(ZERO "offload_optimizer.device", IMPORT_WORD, policy.offload, "/workload/offload"),
    IMPORT_FACT("bf16.enabled", IMPORT_ON, formats.bf16, "/workload/formats"),
    IMPORT_FACT("bfloat16.enabled", IMPORT_ON, formats.bf16, "/workload/formats"),
    IMPORT_FACT("fp16.enabled", IMPORT_ON, formats.fp16, "/workload/formats"),
    IMPORT_FACT("torch_autocast.enabled", IMPORT_ON, policy.autocasts, "/workload/autocast"),
    IMPORT_FACT("torch_autocast.dtype", IMPORT_WORD, formats.precision, "/workload/formats"),
    IMPORT_FACT("communication_data_type", IMPORT_WORD, formats.gradients,
                "/workload/formats/gradients"),
    IMPORT_FACT("compile.enabled", IMPORT_ON, policy.compiles, "/machine/stack"),
    {NULL, IMPORT_NOTHING, 0, NULL, NULL},
};

#define LOGGED "logging"
#define WAITS "gradients are reduced after the backward pass; podsim reduces them during it"
#define SHARDS_WAIT "gathers and reductions wait; podsim overlaps them"
#define RATE "learning rate and other numbers of the optimizer"

static const struct import_row plain[] = {
    IMPORT_SAYS_NOTHING("steps_per_print", LOGGED),
    IMPORT_SAYS_NOTHING("wall_clock_breakdown", LOGGED),
    IMPORT_SAYS_NOTHING("dump_state", LOGGED),
    IMPORT_SAYS_NOTHING("memory_breakdown", LOGGED),
    IMPORT_SAYS_NOTHING("flops_profiler.*", LOGGED),
    IMPORT_SAYS_NOTHING("comms_logger.*", LOGGED),
    IMPORT_SAYS_NOTHING("tensorboard.*", LOGGED),
    IMPORT_SAYS_NOTHING("wandb.*", LOGGED),
    IMPORT_SAYS_NOTHING("csv_monitor.*", LOGGED),
    IMPORT_SAYS_NOTHING("checkpoint.*", "checkpoints, between steps"),
    IMPORT_SAYS_NOTHING(
        "gradient_clipping",
        "the norm is found in any case (scaled_global_norm in the step of stages 1 to 3)"),
    IMPORT_SAYS_NOTHING("prescale_gradients", RATE),
    IMPORT_SAYS_NOTHING("gradient_predivide_factor", RATE),
    IMPORT_SAYS_NOTHING("optimizer.params.*", RATE),
    IMPORT_SAYS_NOTHING("scheduler.*", RATE),
    IMPORT_SAYS_NOTHING("fp16.*", "the factor of the loss"),
    IMPORT_SAYS_NOTHING("bf16.auto_cast", "the preset's products are in 16 bits"),
    IMPORT_SAYS_NOTHING("zero_allow_untested_optimizer", "it permits other keys"),
    IMPORT_SAYS_NOTHING("zero_force_ds_cpu_optimizer", "it permits other keys"),
    IMPORT_SAYS_NOTHING(ZERO "contiguous_gradients", "where gradients lie in memory"),
    IMPORT_SAYS_NOTHING(ZERO "round_robin_gradients", "which rank has which gradients"),
    IMPORT_SAYS_NOTHING(ZERO "allgather_partitions", "a gather, as podsim has it"),
    IMPORT_SAYS_NOTHING(ZERO "load_from_fp32_weights", "checkpoints, between steps"),
    IMPORT_SAYS_NOTHING(ZERO "elastic_checkpoint", "checkpoints, between steps"),
    IMPORT_SAYS_NOTHING(ZERO "stage3_gather_fp16_weights_on_model_save",
                        "checkpoints, between steps"),
    IMPORT_SAYS_NOTHING(ZERO "stage3_gather_16bit_weights_on_model_save",
                        "checkpoints, between steps"),
    IMPORT_SAYS_NOTHING(ZERO "offload_optimizer.pin_memory", "how the host holds it"),
    IMPORT_SAYS_NOTHING(ZERO "offload_param.pin_memory", "how the host holds it"),
    {NULL, IMPORT_NOTHING, 0, NULL, NULL},
};

#define BUCKET "bytes of one collective; podsim has one for each tensor or block"
#define AHEAD "how many weights are gathered ahead, and kept; podsim has \"prefetch_layers\""

static const struct import_row lacks[] = {
    IMPORT_NOT_MODELLED("optimizer.type", "Adam|AdamW|FusedAdam", "another update than Adam's"),
    IMPORT_NOT_MODELLED(ZERO "reduce_scatter", "true", "an AllReduce of gradients"),
    IMPORT_NOT_MODELLED(ZERO "reduce_bucket_size", "auto", BUCKET),
    IMPORT_NOT_MODELLED(ZERO "allgather_bucket_size", "auto", BUCKET),
    IMPORT_NOT_MODELLED(ZERO "stage3_prefetch_bucket_size", "auto", AHEAD),
    IMPORT_NOT_MODELLED(ZERO "stage3_max_live_parameters", NULL, AHEAD),
    IMPORT_NOT_MODELLED(ZERO "stage3_max_reuse_distance", NULL, AHEAD),
    IMPORT_NOT_MODELLED(ZERO "stage3_param_persistence_threshold", "auto|0",
                        "small weights stay on all ranks"),
    IMPORT_NOT_MODELLED(ZERO "sub_group_size", "auto", "parts of the update"),
    IMPORT_NOT_MODELLED(ZERO "offload_param.device", "none", "weights on the host"),
    IMPORT_NOT_MODELLED(ZERO "offload_param.*", NULL, "weights on the host"),
    IMPORT_NOT_MODELLED(ZERO "offload_optimizer.*", NULL, "buffers of the host"),
    IMPORT_NOT_MODELLED(ZERO "zero_hpz_partition_size", "1", "a second copy of weights in a node"),
    IMPORT_NOT_MODELLED(ZERO "zero_quantized_weights", "false", "weights gathered in 8 bits"),
    IMPORT_NOT_MODELLED(ZERO "zero_quantized_gradients", "false", "gradients reduced in 4 bits"),
    IMPORT_NOT_MODELLED(ZERO "zero_quantized_nontrainable_weights", "false",
                        "weights gathered in 8 bits"),
    IMPORT_NOT_MODELLED(ZERO "mics_shard_size", "-1", "weights sharded within groups of ranks"),
    IMPORT_NOT_MODELLED(ZERO "mics_hierarchical_params_gather", "false",
                        "gathers within a node, then across"),
    IMPORT_NOT_MODELLED("activation_checkpointing.partition_activations", "false",
                        "inputs of repeated layers, sharded over tp"),
    IMPORT_NOT_MODELLED("activation_checkpointing.cpu_checkpointing", "false",
                        "inputs of repeated layers on the host"),
    IMPORT_NOT_MODELLED("activation_checkpointing.*", NULL,
                        "how activations are kept; --with gradient_checkpointing=true says that "
                        "they are repeated"),
    IMPORT_NOT_MODELLED("torch_autocast.lower_precision_safe_modules", NULL,
                        "modules whose gradients are reduced in 16 bits; podsim takes all"),
    IMPORT_NOT_MODELLED("data_types.grad_accum_dtype", NULL, "the format that gradients add up in"),
    IMPORT_NOT_MODELLED("pipeline.*", NULL, "a pipeline; podsim does not express DeepSpeed's"),
    IMPORT_NOT_MODELLED("sparse_attention.*", NULL, "attention to some of the keys"),
    IMPORT_NOT_MODELLED("sparse_gradients", "false", "gradients of the embedding as lists"),
    IMPORT_NOT_MODELLED("amp.enabled", "false", "NVIDIA's Apex instead of bf16 or fp16"),
    IMPORT_NOT_MODELLED("data_efficiency.*", NULL, "steps that differ from one another"),
    IMPORT_NOT_MODELLED("curriculum_learning.*", NULL, "steps that differ from one another"),
    {NULL, IMPORT_NOTHING, 0, NULL, NULL},
};

static enum status ranks_set(struct import *import, uint64_t *ret_copies, struct error *reterr)
{
    struct import_facts *facts = &import->facts;
    struct import_ranks *ranks = &facts->ranks;
    uint64_t *const sizes[] = {&ranks->tp, &ranks->cp};
    if (facts->policy.stage > 3)
        return import_refuse(import, &facts->policy.stage, reterr, "stages go from 0 to 3");
    STATUS_TRY(import_rest(import, sizes, sizeof sizes / sizeof *sizes, ret_copies, reterr));
    uint64_t const mesh[MESH_ROLE_COUNT] = {[MESH_TP] = ranks->tp,
                                            [MESH_CP] = ranks->cp,
                                            [MESH_DP] = facts->policy.stage == 3 ? 1 : *ret_copies,
                                            [MESH_FSDP] =
                                                facts->policy.stage == 3 ? *ret_copies : 1};
    if (ranks->cp > 1) STATUS_TRY(import_set(import, reterr, "/workload/context=ulysses"));
    return import_mesh(import, mesh, reterr);
}

/* What podsim runs without overlap: below stage 2 reductions behind the backward pass, in stage 2
 * a backward pass that stops for each, both unless `overlap_comm` is set. */
static bool reductions_wait(const struct import *import)
{
    const struct import_policy *policy = &import->facts.policy;
    bool const at_once = policy->offload != NULL && !name_same(policy->offload, "none");
    if (policy->stage > 2 || policy->overlap.reduces_ahead) return false;
    return policy->stage == 2 || (!import_has_mtp(import) && !at_once);
}

static enum status zero_set(struct import *import, uint64_t copies, struct error *reterr)
{
    struct import_facts *facts = &import->facts;
    struct import_policy *policy = &facts->policy;
    bool const is_said = import_said(import, &policy->overlap.reduces_ahead) != NULL;
    bool const is_shared = copies > 1 || facts->ranks.cp > 1;
    if (policy->stage < 3 && is_shared)
        STATUS_TRY(import_set(import, reterr, "/workload/zero=%" PRIu64, policy->stage));
    if (is_shared && reductions_wait(import))
        STATUS_TRY(import_set(import, reterr, "/run/overlap/dp=false"));
    else if (policy->stage == 3 && copies > 1 && is_said && !policy->overlap.reduces_ahead)
        STATUS_TRY(import_set(import, reterr, "/run/overlap/fsdp=false"));
    else if (is_said && !is_shared)
        import_plain(import, &policy->overlap.reduces_ahead, "there are no replicas");
    else if (is_said && !policy->overlap.reduces_ahead)
        import_lacks(import, &policy->overlap.reduces_ahead,
                     policy->stage < 3 ? WAITS : SHARDS_WAIT);
    else if (!is_said && policy->stage < 3 && !policy->overlap.reduces_ahead && is_shared)
        STATUS_TRY(
            import_remark(import, ZERO "overlap_comm", "the file leaves it out: " WAITS, reterr));
    return import_offload(import, reterr);
}

/* Under autocast weights are in fp32. Gradients are reduced in 16 bits, and stage 3 gathers weights
 * in 16 bits (docs/code-docs/source/training.rst: torch_autocast). */
static enum status autocast_set(struct import *import, struct error *reterr)
{
    struct import_facts *facts = &import->facts;
    const char *const format = facts->formats.precision == NULL ? "bf16" : facts->formats.precision;
    if (!facts->policy.autocasts) {
        import_plain(import, &facts->formats.precision, "torch_autocast is not enabled");
        return STATUS_OK;
    }
    if (facts->formats.bf16 || facts->formats.fp16)
        return import_refuse(import, &facts->policy.autocasts, reterr,
                             "DeepSpeed takes it with neither bf16 nor fp16");
    facts->formats.activations = facts->formats.gradients = format;
    if (facts->policy.stage == 3) {
        facts->formats.weights = format;
        import_lacks(import, &facts->policy.autocasts,
                     "embedding and norms are gathered in fp32, and so is the residual stream");
    }
    return import_autocast(import, reterr);
}

static enum status finish(struct import *import, struct error *reterr)
{
    struct import_facts *facts = &import->facts;
    uint64_t copies = 1;
    STATUS_TRY(import_model_given(import, reterr));
    STATUS_TRY(import_length_given(import, reterr));
    STATUS_TRY(ranks_set(import, &copies, reterr));
    if (facts->batch.microbatch == 0 && facts->batch.sequences > 0 && facts->batch.accumulate == 0)
        facts->batch.accumulate = 1;
    STATUS_TRY(import_batch(import, copies, reterr));
    STATUS_TRY(zero_set(import, copies, reterr));
    STATUS_TRY(
        import_set(import, reterr, "/workload/remat=%s", facts->policy.repeats ? "block" : "none"));
    STATUS_TRY(import_set(import, reterr, "/workload/attention=causal"));
    STATUS_TRY(import_set(import, reterr, "/workload/attention_kernel=flash"));
    STATUS_TRY(import_precision_check(import, reterr));
    facts->formats.weights = facts->formats.bf16 ? "bf16" : facts->formats.fp16 ? "fp16" : "fp32";
    STATUS_TRY(autocast_set(import, reterr));
    if (facts->formats.gradients == NULL) facts->formats.gradients = facts->formats.weights;
    STATUS_TRY(import_formats_set(import, reterr));
    return import_stack(import, facts->policy.compiles ? "torch-compile" : "torch-eager", reterr);
}

static const struct import_row *const rows[] = {facts_of, plain, lacks, NULL};

const struct import_framework import_deepspeed = {
    .name = "deepspeed",
    .preset = "deepspeed",
    .read = settings_read_json,
    .rows = rows,
    .finish = finish,
};
