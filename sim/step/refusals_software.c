/*
 * What a step refuses of software: kernels of an engine, or of a framework, that nothing runs here.
 */
#include "sim/collective/algorithm.h"
#include "sim/kernels/fusion.h"
#include "sim/kernels/recipe.h"
#include "sim/step/overheads.h"
#include "sim/step/refusals.h"

/* Engines serve, on GPUs, and leave larger arrays to NCCL. */
static enum status all_reduce_check(const struct ranks *ranks, struct error *reterr)
{
    static const char place[] = "/run/all_reduce";
    const struct workload_plan *plan = ranks->plan;
    const struct chip *chip = &ranks->machine->chip;
    if (plan->software.all_reduce == ALL_REDUCE_KERNELS_NCCL) return STATUS_OK;
    REFUSE(chip->kind != CHIP_GPU || chip->is_ideal, UNSUPPORTED, place,
           "kernels of engines have the latencies of real GPUs; %s in the profile " NAME
           " has \"nccl\"",
           chip->title, chip->profile);
    REFUSE(!ranks_serves(ranks), INVALID, place,
           "kernels of engines are for steps of inference; training has \"nccl\"");
    REFUSE(workload_protocols(plan, chip) != WORKLOAD_PROTOCOLS_NCCL, INVALID, place,
           "larger arrays go by NCCL, with \"protocols\": \"nccl\" or a \"stack\"; without "
           "them there is \"nccl\"");
    REFUSE(!algorithm_is_chosen(&plan->algorithm), INVALID, place,
           "an engine's kernels come with \"algorithm\": \"auto\"; with another there is "
           "\"nccl\"");
    return STATUS_OK;
}

/* What replaces kernels that a stack does not have. */
static enum status loss_check(const struct ranks *ranks, struct error *reterr)
{
    const struct fusion *fusion = ranks_fusion(ranks);
    if (ranks->plan->software.loss == LOSS_FUSION_NONE) return STATUS_OK;
    REFUSE(!ranks_is_decoder(ranks), INVALID, "/workload/loss_fusion",
           "the bare MLP has no loss; it has to be \"none\"");
    REFUSE(fusion != NULL && !fusion_splits_loss(fusion), INVALID, "/workload/loss_fusion",
           "the loss is one kernel with the stack \"%s\"; it has to be \"none\"",
           ranks->machine->chip.kernels.stack->name);
    return STATUS_OK;
}

/* Norms of gradients are kernels of a stack, and updates behind each layer come before the norm. */
static enum status clips_check(const struct ranks *ranks, struct error *reterr)
{
    static const char place[] = "/workload/clip_gradients";
    if (!ranks_clips(ranks)) return STATUS_OK;
    if (ranks->machine->chip.kernels.stack == NULL)
        return error_set(reterr, STATUS_UNSUPPORTED, place,
                         "the norm of gradients is a kernel of software, and the machine names no "
                         "\"stack\"; \"clip_gradients\" has to be false");
    if (ranks_offloads_optimizer(ranks))
        return error_set(reterr, STATUS_UNSUPPORTED, place,
                         "an offloaded optimizer updates behind each layer, before the norm of all "
                         "gradients is known; \"clip_gradients\" has to be false");
    return STATUS_OK;
}

/* Kernels that are added to a stack's, or replace some, need those of a stack between products. */
static enum status between_check(const struct ranks *ranks, const char *place, const char *without,
                                 struct error *reterr)
{
    const struct kernel_stack *stack = ranks->machine->chip.kernels.stack;
    REFUSE(stack == NULL, INVALID, place,
           "the kernels that it changes are those of a stack, and the machine names no \"stack\"; "
           "it has to be %s",
           without);
    REFUSE(ranks_fusion(ranks) == NULL, INVALID, place,
           "the stack \"%s\" has no kernels between products that it could change; it has to be %s",
           stack->name, without);
    return STATUS_OK;
}

/* Autocast is PyTorch's, and casts from fp32 to the format of activations. */
static enum status autocast_check(const struct ranks *ranks, struct error *reterr)
{
    static const char place[] = "/workload/autocast";
    const struct workload_plan *plan = ranks->plan;
    const struct fusion *fusion = ranks_fusion(ranks);
    if (!plan->software.autocast) return STATUS_OK;
    REFUSE(format_bits(plan->formats.activations) != 16, INVALID, place,
           "activations under autocast have 16 bits, and \"activations\" are " NAME
           "; it has to be false",
           format_name(plan->formats.activations));
    STATUS_TRY(between_check(ranks, place, "false", reterr));
    REFUSE(
        fusion->autocast == NULL, INVALID, place,
        "autocast is PyTorch's, for \"torch-eager\" and \"torch-compile\"; with the stack \"%s\" "
        "it has to be false",
        ranks->machine->chip.kernels.stack->name);
    return STATUS_OK;
}

/* apex's layernorm is for models that have one, in stacks whose own reads its arrays twice. */
static enum status layernorm_check(const struct ranks *ranks, struct error *reterr)
{
    static const char place[] = "/workload/persistent_layernorm";
    const struct workload_plan *plan = ranks->plan;
    const struct fusion *fusion = ranks_fusion(ranks);
    if (!plan->software.persistent_layernorm) return STATUS_OK;
    STATUS_TRY(between_check(ranks, place, "false", reterr));
    REFUSE(!ranks_is_decoder(ranks), INVALID, place,
           "the bare MLP has no norms; it has to be false");
    REFUSE(!plan->model.norms.centred, INVALID, place,
           "norms of " NAME " are RMSNorms, no layernorms; it has to be false", plan->model.name);
    struct function_pass const own = fusion_norm(fusion, /* centred= */ true, /* backward= */ true);
    struct function_pass const other = fusion_persistent_norm(/* backward= */ true);
    REFUSE(
        !plan->software.autocast && own.kernels == other.kernels &&
            own.read_bytes == other.read_bytes,
        INVALID, place,
        "layernorms of the stack \"%s\" read their arrays once by themselves; it has to be false",
        ranks->machine->chip.kernels.stack->name);
    return STATUS_OK;
}

/* Shards of weights, or of gradients in each microbatch, are copied by the framework. Without a
 * stack its copies have memory, but no time. */
static enum status shard_kernels_check(const struct ranks *ranks, struct error *reterr)
{
    static const char place[] = "/workload/shard_kernels";
    const struct workload_plan *plan = ranks->plan;
    enum shard_kernels const kernels = plan->software.shards;
    if (kernels == SHARD_KERNELS_DEFAULT || kernels == SHARD_KERNELS_NONE) return STATUS_OK;
    if (ranks->machine->chip.kernels.stack == NULL && overheads_of_fsdp(ranks)) return STATUS_OK;
    STATUS_TRY(between_check(ranks, place, "\"none\"", reterr));
    REFUSE(ranks_fusion(ranks)->linear == RECIPE_XLA, INVALID, place,
           "XLA casts and copies weights by itself; with the stack \"%s\" it has to be \"none\"",
           ranks->machine->chip.kernels.stack->name);
    REFUSE(!ranks->mesh->present[MESH_FSDP] && plan->zero < 2, INVALID, place,
           "neither weights nor sums of gradients are sharded, which \"fsdp\" and \"zero\" 2 and 3 "
           "do; it has to be \"none\"");
    return STATUS_OK;
}

/* An AllReduce is one collective; user buffers copy between GPUs. */
static enum status chunks_check(const struct ranks *ranks, struct error *reterr)
{
    const struct workload_plan *plan = ranks->plan;
    const struct chip *chip = &ranks->machine->chip;
    if (!plan->collective_matmul) return STATUS_OK;
    REFUSE(
        ranks->tp > 1 && plan->activations == WORKLOAD_ACTIVATIONS_REPLICATED, INVALID,
        "/run/collective_matmul",
        "with \"activations\": \"replicated\" blocks end in AllReduces, which do not go chunk by "
        "chunk; it has to be false");
    if (plan->software.chunks == WORKLOAD_CHUNKS_RANKS) return STATUS_OK;
    REFUSE(ranks->tp == 1, INVALID, "/run/matmul_chunks",
           "without ranks of tp no product waits for a collective; leave it out");
    REFUSE(ranks_serves(ranks), UNSUPPORTED, "/run/matmul_chunks",
           "user buffers are of training steps; a step of inference has \"ranks\"");
    REFUSE(chip->kind != CHIP_GPU, UNSUPPORTED, "/run/matmul_chunks",
           "user buffers are Transformer Engine's, on GPUs; for " NAME " there is \"ranks\"",
           chip->title);
    return STATUS_OK;
}

/* Updates wait for a norm only where they clip. */
static enum status norm_check(const struct ranks *ranks, struct error *reterr)
{
    static const char place[] = "/run/overlap/norm";
    if (!ranks->plan->software.overlap.norm || ranks_clips(ranks)) return STATUS_OK;
    REFUSE(ranks->machine->chip.kernels.stack == NULL, INVALID, place,
           "gradients are clipped by kernels of software, and the machine names no \"stack\": no "
           "norm is added up; \"norm\" of \"overlap\" has to be false");
    return error_set(reterr, STATUS_INVALID, place,
                     "an offloaded optimizer updates behind each layer and clips nothing, so no "
                     "norm is added up; \"norm\" of \"overlap\" has to be false");
}

enum status refusals_software(const struct ranks *ranks, struct error *reterr)
{
    STATUS_TRY(all_reduce_check(ranks, reterr));
    STATUS_TRY(loss_check(ranks, reterr));
    STATUS_TRY(autocast_check(ranks, reterr));
    STATUS_TRY(layernorm_check(ranks, reterr));
    STATUS_TRY(shard_kernels_check(ranks, reterr));
    STATUS_TRY(chunks_check(ranks, reterr));
    STATUS_TRY(norm_check(ranks, reterr));
    return clips_check(ranks, reterr);
}
