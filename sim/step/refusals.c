/*
 * What a step refuses by a combination of its model, mesh and plan, in the order in which it is
 * said: what holds; the status; the place; a sentence. What a block has no ops for it says itself
 * (`lacks` of struct block).
 */
#include "sim/step/refusals.h"

#include <stdio.h>

#include "sim/base/counted.h"
#include "sim/schedule/schedule.h"
#include "sim/step/overheads.h"
#include "sim/step/suggest.h"

enum { MTP_MODULES_MAX = 16, GENERATION_PAGES_MAX = 1 << 14 };

/* Ranks of cp, in inference. */
static enum status context_check(const struct ranks *ranks, struct error *reterr)
{
    const struct inference_plan *plan = &ranks->plan->inference;
    bool const prompts = plan->prompts.count > 0, decodes = inference_decode_count(plan) > 0;
    bool const gathers = ranks->plan->attention.context == WORKLOAD_CONTEXT_ALL_GATHER;
    bool const holds =
        ranks_is_decoder(ranks) && ranks_heads_of(&ranks->plan->model, ranks->tp).kv_holders > 1;
    REFUSE(ranks_tp_d(ranks) > 1, UNSUPPORTED, "/mesh/cp",
           "cp with tp_d is not modelled in this version; cp with tp is");
    REFUSE(ranks_has_mla(ranks) && !gathers, UNSUPPORTED, "/workload/context",
           "latent attention (MLA) has one latent for all heads, which no server passes round or "
           "exchanges for heads; \"all_gather\" is modelled");
    REFUSE(prompts && decodes && holds && !gathers, UNSUPPORTED, "/workload/context",
           "%u ranks of tp are more than the model's %llu heads of keys, and those with the same "
           "keep parts of sequences that answer, which only \"all_gather\" takes",
           ranks->tp, (unsigned long long)ranks->plan->model.kv_heads);
    return STATUS_OK;
}

/* Of the bare MLP, whose tokens have no keys and no logits. */
static enum status bare_check(const struct ranks *ranks, struct error *reterr)
{
    const struct workload_plan *plan = ranks->plan;
    const struct inference_plan *inference = &plan->inference;
    REFUSE(plan->kind != WORKLOAD_PREFILL, UNSUPPORTED, "/workload/kind",
           "the bare MLP has no attention and no head, so that it cannot answer; \"prefill\" takes "
           "tokens through its layers, prompts of one token as a decode would");
    REFUSE(inference->prompts.cached > 0, INVALID, "/workload/cached",
           "the bare MLP has no attention, so no tokens in a cache; 0 is what it has");
    REFUSE(inference->ways.sharding != INFERENCE_AUTO, INVALID, "/workload/kv_sharding",
           "the bare MLP has no cache that ranks could share; \"auto\" is what it has");
    REFUSE(plan->attention.mask == WORKLOAD_ATTENTION_FULL, INVALID, "/workload/attention",
           "the bare MLP has no attention that could be full");
    REFUSE(inference->cache != plan->formats.activations, INVALID, "/workload/formats/kv",
           "the bare MLP has no keys and values");
    REFUSE(inference->head != plan->formats.weights, INVALID, "/workload/formats/head",
           "the bare MLP has no head");
    return STATUS_OK;
}

/* Passes, and steps of a generation, that are simulated. Of a batch there is one pass at least, and
 * of a generation the step behind it. */
static enum status passes_check(const struct workload_plan *plan, struct error *reterr)
{
    uint32_t const batches = inference_batch_count(&plan->inference);
    uint32_t const behind = inference_follows(&plan->inference) ? 1 : 0;
    uint32_t const batches_most = INFERENCE_PASSES_MAX / (1 + behind);
    uint32_t const passes_most = INFERENCE_PASSES_MAX / batches;
    const struct inference_generation *generation = &plan->inference.generation;
    uint64_t const pages =
        generation->output == 0 ? 0 : units_ceil_divide(generation->output, generation->page);
    REFUSE(batches > batches_most, LIMIT, "/mesh/pp",
           "%u stages work on a batch each%s, which is more than the %d passes that are "
           "simulated; they have room for %u stages",
           batches, behind ? ", of two passes at least" : "", INFERENCE_PASSES_MAX, batches_most);
    REFUSE(inference_batch_passes(&plan->inference) > passes_most, LIMIT, "/workload/chunk",
           "prompts would go through %u passes of %s, more than the %u that are simulated; "
           "the nearest chunk that goes: %llu",
           inference_batch_passes(&plan->inference) - behind,
           counted(plan->inference.prompts.chunk, "token").text, passes_most - behind,
           (unsigned long long)units_ceil_divide(inference_keys_most_of(plan, INFERENCE_PROMPTS) -
                                                     plan->inference.prompts.cached,
                                                 passes_most - behind));
    REFUSE(pages > GENERATION_PAGES_MAX, LIMIT, "/workload/page",
           "%llu steps would be simulated, one for each page, more than the %d that are; pages of "
           "%llu steps go",
           (unsigned long long)pages, GENERATION_PAGES_MAX,
           (unsigned long long)units_ceil_divide(generation->output, GENERATION_PAGES_MAX));
    return STATUS_OK;
}

/* The key, and of lengths that are given one by one the element. */
static const char *long_key(const struct workload_plan *plan, uint64_t positions, char *buffer,
                            size_t buffer_bytes)
{
    const struct inference_prompts *prompts = &plan->inference.prompts;
    uint64_t const asked = inference_keys_most_of(plan, INFERENCE_PROMPTS);
    bool const asks = asked > positions;
    const struct lengths *lengths = asks ? &prompts->tokens : &plan->inference.decodes.context;
    const char *const key = asks ? "/workload/prompt" : "/workload/context";
    uint32_t longest = 0;
    if (asks && prompts->cached > 0 && asked - prompts->cached <= positions)
        return "/workload/cached";
    if (!asks && plan->kind == WORKLOAD_GENERATE) return "/workload/output";
    if (lengths->of.mean != 0 || lengths->count < 2) return key;
    for (uint32_t i = 1; i < lengths->count; i++)
        if (lengths->tokens[i] > lengths->tokens[longest]) longest = i;
    (void)snprintf(buffer, buffer_bytes, "%s/%u", key, longest);
    return buffer;
}

static enum status positions_check(const struct workload_plan *plan, struct error *reterr)
{
    char buffer[64];
    uint64_t const positions = plan->model.positions.most;
    uint64_t const keys = inference_keys_most(plan);
    if (positions == 0 || keys <= positions) return STATUS_OK;
    return error_set(reterr, STATUS_INVALID, long_key(plan, positions, buffer, sizeof buffer),
                     "a sequence has %llu tokens, and " NAME " is made for %llu at most; %s",
                     (unsigned long long)keys, plan->model.name, (unsigned long long)positions,
                     plan->model.positions.learned != 0 ? "its table of positions has no more rows"
                     : !model_rotates(&plan->model)
                         ? "its config.json states no more"
                         : "a config.json whose \"rope_scaling\" stretches them goes farther");
}

static enum status inference_check(const struct ranks *ranks, struct error *reterr)
{
    const struct workload_plan *plan = ranks->plan;
    const struct mesh *mesh = ranks->mesh;
    bool const serves = ranks_serves(ranks);
    bool const gathers = serves && plan->inference.weights == INFERENCE_GATHERED;
    bool const prefetches = plan->inference.prefetch != INFERENCE_PREFETCH_NONE;
    uint64_t const decodes = inference_decode_count(&plan->inference);
    bool const replicates = plan->activations == WORKLOAD_ACTIVATIONS_REPLICATED && ranks->tp > 1;
    if (serves && !ranks_is_decoder(ranks)) STATUS_TRY(bare_check(ranks, reterr));
    REFUSE(
        replicates && model_has_experts(&plan->model) && mesh->axis[MESH_EP].size > 1, UNSUPPORTED,
        "/workload/activations",
        "\"replicated\" over tp is modelled of experts that lie on all ranks, not over ep, where "
        "each rank of tp would send whole rows; \"model\" and \"tokens\" are");
    REFUSE(replicates && !serves && (model_has_experts(&plan->model) || ranks->mtp.modules != 0),
           UNSUPPORTED, "/workload/activations",
           "\"replicated\" in training is modelled of dense layers without MTP: Megatron-LM trains "
           "experts over tp with sequence parallelism alone, which is \"tokens\"");
    if (serves) STATUS_TRY(positions_check(plan, reterr));
    REFUSE(serves && plan->model.tied && plan->inference.head != plan->formats.weights, INVALID,
           "/workload/formats/head",
           "the head of " NAME " is its embedding, which lies in the format of \"weights\", %s",
           plan->model.name, format_name(plan->formats.weights));
    if (serves) STATUS_TRY(passes_check(plan, reterr));
    REFUSE(gathers && !mesh->present[MESH_DP], INVALID, "/workload/weights",
           "the mesh has no dp whose ranks could have a part of the weights each; those of fsdp "
           "gather them without the key");
    REFUSE(gathers && (mesh->present[MESH_FSDP] || mesh->axis[MESH_EP].size > 1 || ranks->cp > 1),
           UNSUPPORTED, "/workload/weights",
           "weights that ranks of dp gather are not modelled with %s; fsdp in the place of dp is",
           mesh->present[MESH_FSDP]       ? "fsdp"
           : mesh->axis[MESH_EP].size > 1 ? "ep"
                                          : "cp");
    REFUSE(
        prefetches && !serves, UNSUPPORTED, "/run/prefetch_weights",
        "weights are prefetched for steps of inference; a training step has \"prefetch_layers\"");
    REFUSE(prefetches && ranks->machine->chip.kind == CHIP_GPU, UNSUPPORTED,
           "/run/prefetch_weights",
           "the cores of " NAME " read weights where kernels ask for them, and L2 keeps none for "
           "later ones; \"none\" is modelled for GPUs",
           ranks->machine->chip.title);
    REFUSE(plan->inference.whole_units && ranks->machine->chip.kind == CHIP_TPU, INVALID,
           "/run/split_attention",
           "the cores of " NAME " work as one on each op, so that none has a sequence of its own; "
           "leave it out",
           ranks->machine->chip.title);
    REFUSE(!serves && ranks_tp_d(ranks) > 1, UNSUPPORTED, "/mesh/tp_d",
           "weights in two dimensions (tp and tp_d) are modelled for steps of inference; training "
           "has tp and fsdp");
    REFUSE(serves && decodes != 0 && decodes < ranks->pp, INVALID, "/workload/batch",
           "%s cannot be a batch for each of the %u stages of pp; the nearest batch that can: %u",
           counted(decodes, "sequence").text, ranks->pp, ranks->pp);
    return serves && ranks->cp > 1 ? context_check(ranks, reterr) : STATUS_OK;
}

/* Layers that attend to the cache of a layer before them. */
static enum status borrowing_check(const struct ranks *ranks, struct error *reterr)
{
    const struct workload_plan *plan = ranks->plan;
    const struct model *model = &plan->model;
    if (model->by_layer.borrows == NULL) return STATUS_OK;
    REFUSE(!ranks_serves(ranks), UNSUPPORTED, "/workload/kind",
           "layers of " NAME " share keys and values, whose gradients come from several layers; "
           "that is modelled in \"prefill\", \"decode\", \"mixed\" and \"generate\"",
           model->name);
    REFUSE(ranks->shards > 1, UNSUPPORTED,
           plan->inference.weights == INFERENCE_GATHERED ? "/workload/weights" : "/mesh/fsdp",
           "layers of " NAME " that share keys and values have weights of two sizes, which are not "
           "gathered in this version; dp, ep, tp and pp hold them whole",
           model->name);
    REFUSE(ranks->cp > 1, UNSUPPORTED, "/mesh/cp",
           "layers of " NAME " share keys and values, which is not modelled where ranks share "
           "sequences; tp, dp, ep and pp are",
           model->name);
    return STATUS_OK;
}

static enum status model_check(const struct ranks *ranks, struct error *reterr)
{
    const struct workload_plan *plan = ranks->plan;
    const struct model *model = &plan->model;
    bool const mtp = workload_mtp(plan) != 0, cp = ranks->cp > 1;
    bool const offloads = ranks_offloads(ranks);
    const char *const offloaded = workload_offload_key(plan);
    const char *unshared = block_lacking(model, BLOCK_SHARED_IN_TRAINING);
    STATUS_TRY(borrowing_check(ranks, reterr));
    REFUSE(unshared != NULL && cp && !ranks_serves(ranks), UNSUPPORTED, "/mesh/cp",
           "training steps whose ranks share sequences are not modelled with %s; dp, ep, tp and pp "
           "are",
           unshared);
    REFUSE(workload_mtp(plan) > MTP_MODULES_MAX, LIMIT, "/workload/mtp",
           NAME " has %llu modules for multi-token prediction, more than the 16 that are "
                "simulated; \"mtp\": false trains it without",
           model->name, (unsigned long long)model->mtp_modules);
    REFUSE(mtp && model->tied, UNSUPPORTED, "/workload/mtp",
           "multi-token prediction is not modelled where embedding and head are one matrix, as "
           "in " NAME "; \"mtp\": false trains it without",
           model->name);
    REFUSE(mtp && cp, UNSUPPORTED, "/workload/mtp",
           "multi-token prediction is not modelled with cp, whose ranks share sequences; \"mtp\": "
           "false trains " NAME " without",
           model->name);
    REFUSE(!ranks_is_decoder(ranks) && !ranks_serves(ranks) &&
               plan->attention.mask == WORKLOAD_ATTENTION_CAUSAL,
           INVALID, "/workload/attention", "the bare MLP has no attention that could be causal");
    REFUSE(offloads && mtp, UNSUPPORTED, offloaded,
           "nothing is offloaded with multi-token prediction; \"mtp\": false trains without");
    REFUSE(offloads && ranks->machine->host.bytes_per_s == 0, UNSUPPORTED, offloaded,
           NAME " has no link to a host whose memory could keep anything",
           ranks->machine->chip.title);
    REFUSE(ranks_offloads_activations(ranks) && model->layers < 2, INVALID, offloaded,
           "the last layer keeps its activations on the chip, so a model of one layer has none to "
           "offload; \"optimizer\" can be");
    return STATUS_OK;
}

/* Whether a schedule is named that is not the default, which is right for one stage. */
static bool names_schedule(const struct workload_plan *plan)
{
    const struct schedule_form *named = NULL, *preset = NULL;
    uint32_t chunks = 0;
    struct error unused;
    if (plan->stages.schedule == NULL) return false;
    (void)schedule_form_parse(plan->stages.schedule, "", &named, &chunks, &unused);
    (void)schedule_form_parse(WORKLOAD_SCHEDULE_DEFAULT, "", &preset, &chunks, &unused);
    return named != preset;
}

/* Axes of the mesh that the model has no use for, and policies of axes that are not there. */
static enum status axes_check(const struct ranks *ranks, struct error *reterr)
{
    static const char unshared[] = "the mesh has no cp whose ranks could share a sequence";
    const struct workload_plan *plan = ranks->plan;
    const struct mesh *mesh = ranks->mesh;
    const char *name = plan->model.name;
    bool const inputs = plan->tp_inputs != WORKLOAD_TP_INPUTS_SHARDS;
    bool const cp = mesh->present[MESH_CP], pp = ranks->pp > 1;
    enum workload_context const preset =
        ranks_serves(ranks) ? WORKLOAD_CONTEXT_ALL_GATHER : WORKLOAD_CONTEXT_RING;
    REFUSE(plan->formats.dispatch != plan->formats.activations && mesh->axis[MESH_EP].size <= 1,
           INVALID, "/workload/formats/dispatch",
           "no tokens travel to experts: the mesh has no ep of two ranks or more");
    REFUSE(plan->routing.token_copies == WORKLOAD_COPY_AN_EXPERT && mesh->axis[MESH_EP].size <= 1,
           INVALID, "/workload/token_copies",
           "no tokens travel to experts: the mesh has no ep of two ranks or more; leave it out");
    REFUSE(ranks_serves(ranks) && plan->activations != WORKLOAD_ACTIVATIONS_MODEL &&
               !mesh->present[MESH_TP],
           INVALID, "/workload/activations",
           "the mesh has no tp, and only its ranks can share activations or have them whole; leave "
           "the key out");
    REFUSE(mesh->present[MESH_EP] && !model_has_experts(&plan->model), UNSUPPORTED, "/mesh/ep",
           NAME " has no experts that could be split over ep", name);
    REFUSE(mesh->ep_over != 0 && ranks_serves(ranks), UNSUPPORTED, "/mesh/ep",
           "ep over other axes of the mesh is modelled in training; here it has ranks of its own");
    REFUSE(ranks_tp_of_ep(ranks) > 1 && plan->activations != WORKLOAD_ACTIVATIONS_TOKENS,
           UNSUPPORTED, "/workload/activations",
           "ep lies over tp, whose ranks send tokens of their own: \"tokens\" is modelled");
    REFUSE(cp && !ranks_is_decoder(ranks), UNSUPPORTED, "/mesh/cp",
           NAME " has no attention, so no sequences that cp could split; dp splits its tokens",
           name);
    REFUSE(plan->attention.context != preset && !cp, INVALID, "/workload/context", unshared);
    REFUSE(plan->attention.order != WORKLOAD_CONTEXT_ZIGZAG && !cp, INVALID,
           "/workload/context_order", unshared);
    REFUSE(inputs && !mesh->present[MESH_TP], INVALID, "/workload/tp_inputs",
           "the mesh has no tp that would gather an input");
    REFUSE(inputs && !ranks_is_decoder(ranks), INVALID, "/workload/tp_inputs",
           NAME " has no norms; it keeps its input whole without the key", name);
    REFUSE(inputs && plan->remat != GRAPH_REMAT_NONE, INVALID, "/workload/tp_inputs",
           "the gathered input is kept with remat \"none\" alone; any other gathers it again");
    REFUSE(plan->stages.regather != WORKLOAD_REGATHER_MICROBATCH && !pp, INVALID,
           "/workload/regather", "the mesh has no pp; without stages each microbatch gathers");
    REFUSE((plan->stages.given != NULL || names_schedule(plan)) && !pp, INVALID,
           "/workload/schedule", "the mesh has no pp whose stages it could schedule");
    REFUSE(plan->stages.layout != NULL && !pp, INVALID, "/workload/layout",
           "the mesh has no pp whose stages it could lay out");
    return STATUS_OK;
}

/* Shards, and what frameworks hold. */
static enum status shards_check(const struct ranks *ranks, struct error *reterr)
{
    const struct workload_plan *plan = ranks->plan;
    const bool *present = ranks->mesh->present;
    bool const replicas = present[MESH_DP] || present[MESH_EP] || present[MESH_CP];
    bool const gradients = plan->formats.main_gradients != FORMAT_FP32;
    REFUSE(plan->zero > 3, INVALID, "/workload/zero", "stage %u is above 3", plan->zero);
    REFUSE(plan->zero != 0 && !replicas, INVALID, "/workload/zero",
           "zero is a stage of dp, which the mesh does not have (fsdp is stage 3)");
    REFUSE(plan->zero != 0 && present[MESH_FSDP], UNSUPPORTED, "/workload/zero",
           "zero %u with fsdp is not modelled: dp replicates the shards of fsdp", plan->zero);
    REFUSE(plan->zero == 3 && (ranks->mesh->axis[MESH_EP].size > 1 || ranks->cp > 1), UNSUPPORTED,
           "/workload/zero", "zero 3 with ep or cp is not modelled; fsdp with them is");
    REFUSE(plan->stages.regather != WORKLOAD_REGATHER_MICROBATCH && ranks->pp > 1 &&
               ranks->shards <= 1,
           INVALID, "/workload/regather",
           "no weights are gathered: they are not split over fsdp, nor over dp with zero 3");
    REFUSE(
        plan->software.sums != GRADIENT_SUMS_FUSED &&
            (ranks->shards > 1 || ranks->replicas.gradient_shards > 1),
        INVALID, "/workload/gradient_sums",
        "gradients are reduced to shards before they are added up, so no kernel adds whole ones");
    REFUSE(gradients && !overheads_count(ranks), INVALID, "/workload/formats/main_gradients",
           "\"memory\": \"book\" has no main gradients; its gradients lie in the format of "
           "\"gradients\"");
    REFUSE(gradients && overheads_of_fsdp(ranks), INVALID, "/workload/formats/main_gradients",
           "FSDP keeps gradients in the format of its shards, which is fp32; what it reduces has "
           "the format of \"gradients\"");
    REFUSE(overheads_count(ranks) && ranks->machine->chip.kind != CHIP_GPU, UNSUPPORTED,
           "/workload/memory",
           "\"framework\" counts what Megatron-LM and PyTorch hold on GPUs; for " NAME
           " there is \"book\"",
           ranks->machine->chip.title);
    REFUSE(plan->software.protocols == WORKLOAD_PROTOCOLS_NCCL &&
               (ranks->machine->chip.kind != CHIP_GPU || ranks->machine->chip.is_ideal),
           UNSUPPORTED, "/run/protocols",
           "\"nccl\" has the latencies of real GPUs; %s in the profile " NAME " has \"none\"",
           ranks->machine->chip.title, ranks->machine->chip.profile);
    REFUSE(plan->software.collective_cores == WORKLOAD_COLLECTIVE_CORES_NCCL &&
               workload_protocols(plan, &ranks->machine->chip) != WORKLOAD_PROTOCOLS_NCCL,
           UNSUPPORTED, "/run/collective_cores",
           "\"nccl\" counts the channels of NCCL, which come with \"protocols\": \"nccl\"; "
           "without them there is \"none\"");
    REFUSE(plan->accumulate == 0, INVALID, "/workload/accumulate", "0 microbatches");
    REFUSE(plan->sequence_length == 0 && ranks_is_decoder(ranks) && !ranks_serves(ranks), INVALID,
           "/workload/sequence_length", "0 tokens");
    return STATUS_OK;
}

/* Of two ranks each is next to the other, on a line too. */
static bool is_line(const struct group_dimension *dimension)
{
    return !dimension->ring && !dimension->switched && dimension->size != 2;
}

static enum status attention_check(const struct ranks *ranks, struct error *reterr)
{
    const struct workload_plan *plan = ranks->plan;
    const struct group *cp = &ranks->mesh->axis[MESH_CP].group;
    bool const unfused = ranks_is_unfused(ranks), rings = ranks_has_ring(ranks);
    /* What attends to a cache counts each query's own keys. */
    bool const window =
        !ranks_serves(ranks) && model_window_layers(&plan->model, plan->sequence_length) != 0;
    bool const shares = ranks->cp > 1 || ranks->sequences.parts > 1;
    uint32_t const parts = ranks->cp > 1 ? ranks->cp : ranks->sequences.parts;
    unsigned long long const keys = plan->model.attends.window;
    const char *fused = block_lacking(&plan->model, BLOCK_UNFUSED);
    const char *unshared = block_lacking(&plan->model, BLOCK_SHARED_IN_TRAINING);
    char batch[SUGGEST_TEXT_BYTES];
    REFUSE(rings && cp->dimension_count > 1, UNSUPPORTED, "/workload/context",
           "\"ring\" goes round one axis of the machine, and cp lies on %u; \"all_gather\" and "
           "\"ulysses\" go over several",
           cp->dimension_count);
    REFUSE(rings && is_line(&cp->dimension[0]), UNSUPPORTED, "/workload/context",
           "\"ring\" needs an axis that closes, and the %u ranks of cp along %s are a line; "
           "\"all_gather\" and \"ulysses\" go over lines",
           parts, cp->dimension[0].name);
    REFUSE(unfused && !ranks_is_decoder(ranks), INVALID, "/workload/attention_kernel",
           "the bare MLP has no attention that could be fused or not");
    REFUSE(
        unfused && plan->attention.mask == WORKLOAD_ATTENTION_CAUSAL, UNSUPPORTED,
        "/workload/attention",
        "kernels that are not fused, by /workload/attention_kernel, compute the whole square and "
        "mask half of it: \"full\" is what they do");
    REFUSE(unfused && fused != NULL, UNSUPPORTED, "/workload/attention_kernel",
           "%s is modelled with \"flash\" only", fused);
    REFUSE(unfused && shares, UNSUPPORTED, "/workload/attention_kernel",
           "sequences that %u ranks share are modelled with \"flash\" only", parts);
    REFUSE(unshared != NULL && shares && !ranks_serves(ranks), UNSUPPORTED,
           "/workload/batch_tokens",
           "%u of the %u data ranks would share each sequence, which is not modelled with %s; %s",
           parts, ranks->data, unshared, suggest_batch(ranks, batch));
    REFUSE(window && unfused, UNSUPPORTED, "/workload/attention_kernel",
           "layers that attend to a window of %llu keys are modelled with \"flash\" only, unless "
           "sequences have as many tokens or fewer",
           keys);
    REFUSE(window && ranks->cp > 1 && !ranks_has_ulysses(ranks), UNSUPPORTED, "/workload/context",
           "layers that attend to a window of %llu keys are modelled with cp where each rank "
           "attends to whole sequences (\"ulysses\"), or where sequences have %llu tokens or fewer",
           keys, keys);
    REFUSE(window && shares && ranks->cp <= 1, UNSUPPORTED, "/workload/batch_tokens",
           "%u ranks share each sequence, which is not modelled for layers that attend to a window "
           "of %llu keys; %s",
           parts, keys, suggest_batch(ranks, batch));
    return STATUS_OK;
}

/* Whether switches, or links of a grid, serve some dimension of a group. */
static bool has_links(const struct group *group, bool switched)
{
    for (uint32_t d = 0; d < group->dimension_count; d++)
        if (group->dimension[d].switched == switched) return true;
    return false;
}

/* Pipelines, and routing that is drawn. */
static enum status stages_check(const struct ranks *ranks, struct error *reterr)
{
    const struct workload_plan *plan = ranks->plan;
    const struct group *ep = &ranks->mesh->axis[MESH_EP].group;
    bool const mtp = workload_mtp(plan) != 0, drawn = routing_is_drawn(ranks);
    bool const copies = routing_copies_each(ranks);
    REFUSE(ranks->mesh->axis[MESH_PP].group.dimension_count > 1 && ranks->model_replicas > 1,
           UNSUPPORTED, "/mesh/pp",
           "stages over two axes of the machine are not modelled for schedules that lay each "
           "stage on two ranks; name one axis or a part of one");
    REFUSE(ranks->pp > 1 && ranks_offloads(ranks), UNSUPPORTED, workload_offload_key(plan),
           "nothing is offloaded from pipeline stages in this version");
    REFUSE(mtp && ranks->gradients.once, UNSUPPORTED, "/workload/mtp",
           "multi-token prediction is not modelled where stages keep gathered weights "
           "(\"regather\", or a schedule file that says when); \"mtp\": false trains " NAME
           " without",
           plan->model.name);
    REFUSE(mtp && ranks->tie.meets && ranks->pp > 1 && plan->accumulate == 1, UNSUPPORTED,
           "/workload/accumulate",
           "multi-token prediction is not modelled in one microbatch where the first and the last "
           "stage share an embedding on one rank; from 2 on it is");
    REFUSE(copies && ranks->machine->chip.kind != CHIP_GPU, UNSUPPORTED, "/workload/token_copies",
           "a token goes once for each of its experts by kernels of GPUs; \"rank\" is modelled "
           "for " NAME,
           ranks->machine->chip.title);
    REFUSE(copies && drawn, UNSUPPORTED, "/workload/token_copies",
           "tokens whose experts are drawn go once to each rank; \"rank\" is modelled with a skew");
    REFUSE(drawn && plan->model.experts.groups != 0, UNSUPPORTED, "/workload/routing_skew",
           "a skew is not modelled where a token's experts are in few groups of them");
    REFUSE(drawn && has_links(ep, true) && has_links(ep, false), UNSUPPORTED,
           "/workload/routing_skew",
           "a skew is modelled where switches alone or links of a grid alone join the ranks of "
           "ep, and here both do");
    REFUSE(drawn && has_links(ep, false) && machine_is_twisted(ranks->machine), UNSUPPORTED,
           "/workload/routing_skew", "a skew is modelled on tori that are not twisted");
    return STATUS_OK;
}

enum status refusals_check(const struct ranks *ranks, struct error *reterr)
{
    STATUS_TRY(inference_check(ranks, reterr));
    STATUS_TRY(model_check(ranks, reterr));
    STATUS_TRY(axes_check(ranks, reterr));
    STATUS_TRY(shards_check(ranks, reterr));
    STATUS_TRY(attention_check(ranks, reterr));
    STATUS_TRY(refusals_casts(ranks, reterr));
    STATUS_TRY(refusals_software(ranks, reterr));
    return stages_check(ranks, reterr);
}
