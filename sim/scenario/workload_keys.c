/*
 * workload_keys.c: the rows of `workload`.
 */
#include "sim/base/json.h"
#include "sim/base/path.h"
#include "sim/base/units.h"
#include "sim/kernels/fusion.h"
#include "sim/model/model_read.h"
#include "sim/scenario/scenario_parts.h"

enum { ACCUMULATE_MAX = 65536, SHARE_LEAST_PPM = 1000, CAPACITY_MAX = 4000 };
#define ROW WORKLOAD_ROW

const char *const scenario_kind_choice[][2] = {
#define X(kind, word) {#word, NULL},
    WORKLOAD_KIND_TABLE(X)
#undef X
};

/* In the order of the enums of workload.h. */
static const char *const recipe_names[] = {"none",
#define RECIPE(name) #name,
#include "workloads/recipes.def"
#undef RECIPE
                                           NULL};
static const char *const tp_inputs_names[] = {"shards", "whole", NULL};
static const char *const memory_names[] = {"book", "framework", NULL};
const char *const scenario_attention_names[] = {"full", "causal", NULL};
static const char *const kernel_names[] = {"flash", "unfused", "unfused_dropout", "flash_padded",
                                           NULL};
static const char *const gather_names[] = {"block", "tensor", "layer", NULL};
static const char *const backward_names[] = {"dw_first", "dx_first", NULL};
static const char *const activations_names[] = {"model", "tokens", "replicated", NULL};
const char *const scenario_context_names[] = {"ring", "all_gather", "ulysses", NULL};
const char *const scenario_context_order_names[] = {"zigzag", "contiguous", NULL};
static const char *const offload_names[] = {"none", "optimizer", "activations", "both", NULL};
static const char *const regather_names[] = {"microbatch", "step", "stage", NULL};
const char *const scenario_format_names[] = {
#define X(name, text, nccl, bits) text,
    FORMAT_TABLE(X)
#undef X
        NULL};
/* The first of them. */
static const char *const wide_names[] = {"bf16", "fp16", "fp32", NULL};
_Static_assert(FORMAT_BF16 == 0 && FORMAT_FP16 == 1 && FORMAT_FP32 == 2, "wide formats first");

static bool is_model(const char *text)
{
    uint32_t size_bytes = 0;
    return model_json(text, &size_bytes) != NULL;
}

/* A model beside the scenario is called with its folder; so what scenario_text() prints is found
 * from where it was printed. */
enum status scenario_model_read(struct arena *arena, struct json *json, const char *base_folder,
                                struct model *ret_model, struct error *reterr)
{
    const char *text = NULL;
    if (json_kind(json) == JSON_OBJECT) return model_read_object(arena, json, ret_model, reterr);
    if (json_kind(json) != JSON_STRING)
        return error_set(reterr, STATUS_INVALID, json_where(json),
                         "must be a model's name, the path of a config.json, a config.json itself, "
                         "or an object like "
                         "{\"kind\": \"mlp\", \"D\": 8192, \"F\": 32768, \"layers\": 8}");
    STATUS_TRY(json_as_string(json, &text, reterr));
    if (!is_model(text)) STATUS_TRY(path_beside(arena, base_folder, text, &text, reterr));
    return model_read_name_or_path(arena, text, NULL, json_where(json), ret_model, reterr);
}

static enum status model_kind_read(const struct key *row, const struct key_reader *reader,
                                   struct json *value, struct error *reterr)
{
    (void)row;
    if (json_kind(value) == JSON_OBJECT && json_take(value, "model_type") != NULL)
        scenario_of(reader)->model_config = value;
    return scenario_model_read(reader->arena, value, reader->base_folder,
                               &scenario_of(reader)->workload.model, reterr);
}

static void model_kind_write(struct json_writer *writer, const struct key *row,
                             const struct key_source *source)
{
    const struct model *model = &shown_of(source)->workload.model;
    (void)row;
    if (shown_of(source)->model_config != NULL) {
        json_write_value(writer, shown_of(source)->model_config);
        return;
    }
    if (model->kind != MODEL_MLP) {
        json_write_string(writer, model->name);
        return;
    }
    struct key_source const own = {.base = model};
    json_write_object(writer);
    keys_write(writer, model_mlp_keys, &own);
    json_write_object_end(writer);
}

static void model_kind_schema(struct json_writer *writer, const struct key *row)
{
    static const char *const definitions[] = {"#/$defs/mlp", "#/$defs/config", NULL};
    (void)row;
    scenario_text_or_schema(writer, definitions);
}

const struct key_kind scenario_model_kind = {
    .read = model_kind_read, .write = model_kind_write, .waits = true, .schema = model_kind_schema};

/* A schedule that is named asks for stages; the default does not. */
static enum status schedule_settle(const struct key_reader *reader, struct json *member,
                                   struct error *reterr)
{
    (void)reterr;
    if (member == NULL) scenario_of(reader)->workload.stages.schedule = NULL;
    return STATUS_OK;
}

static void schedule_write(struct json_writer *writer, const struct key_source *source)
{
    json_write_string(writer, workload_schedule_name(&shown_of(source)->workload));
}

/* To an MLP, tokens are just tokens. */
static enum status length_settle(const struct key_reader *reader, struct json *member,
                                 struct error *reterr)
{
    struct workload_plan *plan = &scenario_of(reader)->workload;
    if (member != NULL) return STATUS_OK;
    if (plan->model.kind != MODEL_MLP)
        return error_set(reterr, STATUS_INVALID, json_where(reader->object),
                         "\"sequence_length\" is missing; only the bare MLP needs none");
    plan->sequence_length = plan->batch_tokens;
    return STATUS_OK;
}

/* Modules that are asked for by name are there. */
static enum status mtp_settle(const struct key_reader *reader, struct json *member,
                              struct error *reterr)
{
    const struct workload_plan *plan = &scenario_of(reader)->workload;
    if (member == NULL || plan->without_mtp || plan->model.mtp_modules != 0) return STATUS_OK;
    return error_set(reterr, STATUS_INVALID, json_where(member),
                     "%s has no modules for multi-token prediction that a step could train",
                     plan->model.name);
}

/* A share of routers' work, which only a model with experts has. */
enum status scenario_routing_settle(const struct key_reader *reader, struct json *member,
                                    struct error *reterr)
{
    const struct workload_plan *plan = &scenario_of(reader)->workload;
    double value = 0;
    if (member == NULL) return STATUS_OK;
    STATUS_TRY(json_as_real(member, 0, CAPACITY_MAX, &value, reterr));
    if (value > 0 && !model_has_experts(&plan->model))
        return error_set(reterr, STATUS_INVALID, json_where(member),
                         "%s has no experts that tokens could be routed to", plan->model.name);
    if (value > 0 && value < (double)SHARE_LEAST_PPM / PPM_ONE)
        return error_set(reterr, STATUS_INVALID, json_where(member), "must be 0, or at least %g",
                         (double)SHARE_LEAST_PPM / PPM_ONE);
    return STATUS_OK;
}

/* A key of an axis that the mesh does not have is shown if it was given all the same: a run refuses
 * it, and may not run as what is shown instead. */
bool scenario_shows_context(const struct key_source *source)
{
    const struct workload_plan *plan = &shown_of(source)->workload;
    bool const trains = plan->kind == WORKLOAD_TRAIN_STEP;
    return mesh_plan_has(&shown_of(source)->mesh, MESH_CP) ||
           plan->attention.context !=
               (trains ? WORKLOAD_CONTEXT_RING : WORKLOAD_CONTEXT_ALL_GATHER);
}

bool scenario_shows_context_order(const struct key_source *source)
{
    const struct scenario *scenario = shown_of(source);
    return mesh_plan_has(&scenario->mesh, MESH_CP) ||
           scenario->workload.attention.order != WORKLOAD_CONTEXT_ZIGZAG;
}

static bool shows_schedule(const struct key_source *source)
{
    const struct scenario *scenario = shown_of(source);
    return mesh_plan_has(&scenario->mesh, MESH_PP) || scenario->workload.stages.schedule != NULL;
}

static bool shows_regather(const struct key_source *source)
{
    const struct scenario *scenario = shown_of(source);
    bool const shards = mesh_plan_has(&scenario->mesh, MESH_FSDP) || scenario->workload.zero == 3;
    return (mesh_plan_has(&scenario->mesh, MESH_PP) && shards) ||
           scenario->workload.stages.regather != WORKLOAD_REGATHER_MICROBATCH;
}

bool scenario_has_experts(const struct key_source *source)
{
    return model_has_experts(&shown_of(source)->workload.model);
}

static bool shows_loss(const struct key_source *source)
{
    const struct scenario *scenario = shown_of(source);
    return scenario->machine.stack != NULL ||
           scenario->workload.software.memory == WORKLOAD_MEMORY_FRAMEWORK ||
           scenario->workload.software.loss != LOSS_FUSION_NONE;
}

static bool shows_sums(const struct key_source *source)
{
    const struct scenario *scenario = shown_of(source);
    return scenario->machine.stack != NULL ||
           scenario->workload.software.sums != GRADIENT_SUMS_FUSED;
}

static bool shows_shards(const struct key_source *source)
{
    const struct scenario *scenario = shown_of(source);
    bool const shards = mesh_plan_has(&scenario->mesh, MESH_FSDP) || scenario->workload.zero >= 2;
    return scenario->machine.stack != NULL && shards;
}

static bool shows_autocast(const struct key_source *source)
{
    const struct scenario *scenario = shown_of(source);
    return scenario->machine.stack != NULL || scenario->workload.software.autocast;
}

static bool shows_layernorm(const struct key_source *source)
{
    const struct scenario *scenario = shown_of(source);
    return scenario->machine.stack != NULL || scenario->workload.software.persistent_layernorm;
}

static bool has_mtp(const struct key_source *source)
{
    const struct workload_plan *plan = &shown_of(source)->workload;
    return plan->model.mtp_modules != 0 || plan->without_mtp;
}

static const struct key format_keys[] = {
    FORMATS_OF_ARRAYS,
    FORMAT("gradients", formats.gradients, .help = "number format of gradients"),
    FORMAT("optimizer", formats.optimizer, .preset = FORMAT_FP32,
           .help = "number format of each of Adam's two moments"),
    FORMATS_OF_WORK,
    ROW("main_gradients", key_choice, formats.main_gradients, .choices = wide_names,
        .preset = FORMAT_FP32,
        .help = "number format of the buffer that adds up microbatches' gradients"),
    {0},
};

const struct key workload_train_step_keys[] = {
    ROW("kind", key_choice, kind, .needed = true,
        .choices = scenario_kind_choice[WORKLOAD_TRAIN_STEP],
        .help = "forward, backward and update"),
    KEY("model", scenario_model_kind, .needed = true,
        .values.words =
            "a name of `podsim list models`, the path of a Hugging Face `config.json`, such a "
            "[file itself](#models), or `{\"kind\": \"mlp\", \"D\": 8192, \"F\": 32768, "
            "\"layers\": 8, \"matrices\": 2}`",
        .help = "the model to train"),
    ROW("batch_tokens", key_count, batch_tokens, .needed = true, .least = 1,
        .most = (int64_t)WORKLOAD_TOKENS_MAX, .help = "tokens a step, whole machine"),
    ROW("sequence_length", key_count, sequence_length, .least = 1,
        .most = (int64_t)WORKLOAD_TOKENS_MAX, .settle = length_settle,
        .preset_text = "none; needed, but for the bare MLP",
        .help = "tokens a sequence; the bare MLP has no sequences"),
    ROW("remat", scenario_remat_kind, remat, .choices = graph_remat_names,
        .members = scenario_remat_keys, .preset_text = "`none`",
        .values.words = "`none`, `norms`, `big_matmuls`, `block`, `layer`; or "
                        "[lists of arrays](program.md#lists-of-arrays) such as "
                        "`{\"save\": [\"Q\", \"A\"]}`, and [some layers](program.md#some-layers) "
                        "alone such as `{\"layers\": {\"every\": 2}}`",
        .help = "what the backward pass computes again. `block`: what the backward pass of a layer "
                "reads, as `jax.checkpoint` does; `layer`: the whole layer, as Megatron's own "
                "checkpoint does ([programs](program.md))"),
    ROW("tp_inputs", key_choice, tp_inputs, .choices = tp_inputs_names,
        .help =
            "with `remat` `none`: a rank of `tp` keeps its shard of a norm's result and gathers "
            "it again, or keeps the gathered array "
            "([programs](program.md#what-the-backward-pass-computes-again)). `whole` is refused "
            "where it changes nothing"),
    ROW("memory", key_choice, software.memory, .choices = memory_names,
        .least = WORKLOAD_MEMORY_BOOK, .preset = WORKLOAD_MEMORY_DEFAULT, .quiet = true,
        .preset_text = "`framework` on GPUs in another profile than `ideal`, else `book`",
        .help = "the bytes that count: [the book's](program.md#memory), or also the bytes of "
                "Megatron-LM, PyTorch, NCCL and CUDA. `framework` needs GPUs"),
    ROW("zero", key_count, zero, .most = 3,
        .help = "what `dp` shards: 1 optimizer state, 2 also gradients, 3 also parameters"),
    ROW("accumulate", key_count, accumulate, .least = 1, .most = ACCUMULATE_MAX, .preset = 1,
        .help = "microbatches a step"),
    ROW("attention", key_choice, attention.mask, .choices = scenario_attention_names,
        .help = "the full rectangle of scores, as the book counts, or the half below the diagonal; "
                "layers with a [window](moe.md#windows) count the keys of the window"),
    ROW("attention_kernel", key_choice, attention.kernel, .choices = kernel_names,
        .help = "`flash`, `flash_padded`: scores stay on the chip. Otherwise scores lie in HBM "
                "between separate kernels ([below](#attention-kernels))"),
    KEY("formats", key_object, .members = format_keys,
        .values.words =
            "`weights`, `activations`, `gradients`, `optimizer`, `matmuls`, `dispatch`: `bf16` "
            "`fp16` `fp32` `fp8` `int8` `int4` `fp4` `mxfp4` `nvfp4`; `main_gradients`: `bf16` "
            "`fp16` `fp32`",
        .preset_text = "`bf16`, optimizer and `main_gradients` `fp32`; `matmuls` and `dispatch` as "
                       "`activations`",
        .help = "[number format](#formats) of each kind of tensor. `optimizer` is that of each of "
                "Adam's two moments"),
    ROW("fp8_recipe", key_choice, software.fp8_recipe, .choices = recipe_names,
        .least = WORKLOAD_RECIPE_NONE, .preset = WORKLOAD_RECIPE_DEFAULT, .quiet = true,
        .preset_text = "what the library of the `stack` does where `matmuls` are fp8, else `none`",
        .help = "how operands of products are cast to fp8, and by which "
                "[kernels](kernels.md#recipes-of-fp8); `none`: in the time of the products"),
    ROW("loss_fusion", key_choice, software.loss, .choices = loss_fusion_names, .shown = shows_loss,
        .when = "with a `stack`, or with `memory` `framework`",
        .help = "[kernels of the loss](kernels.md#the-loss) in place of the stack's: Megatron's "
                "fused ones (`--cross-entropy-loss-fusion`), Transformer Engine's, or "
                "FlashAttention's, also with Composer's metrics. `none`: the stack's own"),
    ROW("clip_gradients", key_flag, software.clips, .preset = -1, .quiet = true,
        .preset_text = "`true` with a `stack`, unless the optimizer is offloaded",
        .help =
            "the update scales gradients by [their norm](kernels.md#the-update), so it waits for "
            "all reductions and for AllReduces of a number. `true` needs a `stack`"),
    ROW("gradient_sums", key_choice, software.sums, .choices = gradient_sums_names,
        .shown = shows_sums, .when = "with a `stack`",
        .help =
            "how [gradients of microbatches](kernels.md#sums-of-gradients) are added up. "
            "`fused`: by the product; `apart`: by a kernel of its own; `cast`: by two, of which "
            "the first brings the gradient to the format of the sum"),
    ROW("autocast", key_flag, software.autocast, .shown = shows_autocast, .when = "with a `stack`",
        .help =
            "the step runs under PyTorch's [autocast](kernels.md#autocast), whose kernels cast "
            "between fp32 and 16 bits. With `weights` in `fp32` the residual stream is in fp32"),
    ROW("persistent_layernorm", key_flag, software.persistent_layernorm, .shown = shows_layernorm,
        .when = "with a `stack`",
        .help = "layernorms run [apex's FastLayerNorm](kernels.md#kernels-of-frameworks), whose "
                "gradient reads its arrays once"),
    ROW("shard_kernels", key_choice, software.shards, .choices = shard_kernels_names,
        .least = SHARD_KERNELS_NONE, .preset = SHARD_KERNELS_DEFAULT, .quiet = true,
        .shown = shows_shards, .when = "with `fsdp` or `zero` 2 or 3",
        .preset_text = "`fsdp1` with `torch-eager`, `fsdp2` with `torch-compile`, else `none`",
        .help = "whose [kernels](kernels.md#sharded-weights) cast and copy weights around gathers, "
                "and gradients before reductions. Without a `stack` their "
                "[memory](program.md#memory) alone counts"),
    ROW("gather", key_choice, gather, .choices = gather_names,
        .help = "the weights that one gather brings; a layer of the bare MLP is one block"),
    ROW("backward_order", key_choice, backward_order, .choices = backward_names,
        .help = "the order of a block's backward matmuls, where a schedule does not split them"),
    ROW("activations", key_choice, activations, .choices = activations_names,
        .help = "what is sharded over `tp` between blocks. `replicated`: nothing. Each rank has "
                "[all rows](program.md#whole-rows), of dense layers"),
    ROW("context", key_choice, attention.context, .choices = scenario_context_names,
        .shown = scenario_shows_context, .when = "with `cp`",
        .help = "how its ranks attend to [shared sequences](context.md)"),
    ROW("context_order", key_choice, attention.order, .choices = scenario_context_order_names,
        .shown = scenario_shows_context_order, .when = "with `cp`",
        .help = "a rank holds a part from each end of a causal sequence, or one part"),
    ROW("offload", key_choice, kept.offload, .choices = offload_names,
        .help = "what is kept in the [host's memory](offload.md)"),
    ROUTING_SKEW,
    TOKEN_COPIES,
    ROW("capacity_factor", key_share, routing.capacity_ppm,
        .most = INT64_C(1) * CAPACITY_MAX * PPM_ONE, .settle = scenario_routing_settle,
        .shown = scenario_has_experts, .values.words = "0, or up to experts over experts a token",
        .when = "with experts",
        .help = "rows that an expert computes, as a multiple of its even share; rows above are "
                "dropped. 0: all are computed"),
    ROW("schedule", key_text, stages.schedule, .word = WORKLOAD_SCHEDULE_DEFAULT,
        .settle = schedule_settle, .write = schedule_write, .shown = shows_schedule,
        .values.words = "a name of `podsim list schedules`, with `:chunks` where it has them",
        .when = "with `pp`",
        .help =
            "the [order of a rank's passes](pipeline.md). Files of passes are for `podsim pipeline "
            "FILE --schedule-csv`"),
    ROW("layout", key_text, stages.layout, .quiet = true, .values.words = "Megatron's letters",
        .values.example = "\"Et*7|(t*8|)*2t*9L\"",
        .preset_text = "as many layers on each, or one less on the first and the last",
        .when = "with `pp`",
        .help = "which layers each [stage of the pipeline](pipeline.md#the-pipeline-of-a-scenario) "
                "has"),
    ROW("regather", key_choice, stages.regather, .choices = regather_names, .shown = shows_regather,
        .when = "with `pp` and sharded weights",
        .help = "how long a rank keeps [gathered "
                "weights](pipeline.md#how-long-gathered-weights-are-kept)"),
    ROW("mtp", key_flag, without_mtp, .negated = true, .preset = 1, .settle = mtp_settle,
        .shown = has_mtp, .preset_text = "`true`; `false` for a model without modules",
        .when = "models with MTP",
        .help =
            "train the modules for [multi-token prediction](moe.md#multi-token-prediction) of the "
            "model's `config.json`; `true` is refused where it has none"),
    ROW("allow_oversubscription", key_flag, allow_oversubscription,
        .help = "simulate a step that does not fit the memory. Otherwise it is refused, with a "
                "table of its memory"),
    {0},
};
