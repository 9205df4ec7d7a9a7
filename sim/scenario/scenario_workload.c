/*
 * scenario_workload.c: the workload and the run of a scenario.
 */
#include <math.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/json.h"
#include "sim/base/name.h"
#include "sim/base/path.h"
#include "sim/base/units.h"
#include "sim/collective/choice.h"
#include "sim/collective/collective.h"
#include "sim/model/model_read.h"
#include "sim/scenario/scenario_parts.h"

enum { ACCUMULATE_MAX = 65536, PREFETCH_MAX = 1024, ALGORITHMS_MAX = 64, STEPS_MAX = 64 };
static const int64_t tokens_max = INT64_C(1) << 34;
static const double capacity_most = 4000, routing_least = 0.001; /* But for 0. */

const char *const scenario_regather_names[] = {"microbatch", "step", "stage", NULL};
const char *const scenario_remat_names[] = {"none", "norms", "big_matmuls", "block", "layer", NULL};
const char *const scenario_attention_names[] = {"full", "causal", NULL};
const char *const scenario_kernel_names[] = {"flash", "unfused", "unfused_dropout", NULL};
const char *const scenario_gather_names[] = {"block", "tensor", "layer", NULL};
const char *const scenario_backward_names[] = {"dw_first", "dx_first", NULL};
const char *const scenario_activations_names[] = {"model", "tokens", NULL};
const char *const scenario_context_names[] = {"ring", "all_gather", "ulysses", NULL};
const char *const scenario_context_order_names[] = {"zigzag", "contiguous", NULL};
const char *const scenario_tp_inputs_names[] = {"shards", "whole", NULL};
const char *const scenario_memory_names[] = {"default", "book", "framework", NULL};
const char *const scenario_offload_names[] = {"none", "optimizer", "activations", "both", NULL};
const char *const scenario_parameters_names[] = {"end", "next_step", NULL};
const char *const scenario_engine_names[] = {"fast", "reference", NULL};
const char *const scenario_arbitration_names[] = {"fair", "priority", "fifo", NULL};

static enum status formats_read(struct json *object, struct workload_formats *ret_formats,
                                struct error *reterr)
{
    enum { ACTIVATIONS = 1, FIRST_LIKE_ACTIVATIONS = 4 };
    static const char *const known[] = {"weights", "activations", "gradients",      "optimizer",
                                        "matmuls", "dispatch",    "main_gradients", NULL};
    static const char *const names[] = {
#define X(name, text, nccl, bits) text,
        FORMAT_TABLE(X)
#undef X
            NULL};
    static const enum format wide[] = {FORMAT_BF16, FORMAT_FP16, FORMAT_FP32};
    static const char *const wide_names[] = {"bf16", "fp16", "fp32", NULL};
    uint32_t formats[] = {FORMAT_BF16, FORMAT_BF16, FORMAT_BF16,
                          FORMAT_FP32, FORMAT_BF16, FORMAT_BF16};
    uint32_t main_gradients = 2; /* fp32 */
    if (object != NULL) {
        STATUS_TRY(json_as_object(object, reterr));
        for (uint32_t i = 0; i < sizeof formats / sizeof *formats; i++) {
            if (i >= FIRST_LIKE_ACTIVATIONS) formats[i] = formats[ACTIVATIONS];
            STATUS_TRY(scenario_take_choice(object, known[i], names, &formats[i], reterr));
        }
        STATUS_TRY(
            scenario_take_choice(object, "main_gradients", wide_names, &main_gradients, reterr));
        STATUS_TRY(json_end(object, known, reterr));
    }
    *ret_formats = (struct workload_formats){
        .weights = (enum format)formats[0],
        .activations = (enum format)formats[1],
        .gradients = (enum format)formats[2],
        .optimizer = (enum format)formats[3],
        .matmuls = (enum format)formats[4],
        .dispatch = (enum format)formats[5],
        .main_gradients = wide[main_gradients],
    };
    return STATUS_OK;
}

static bool is_model(const char *text)
{
    for (uint32_t i = 0; model_name_at(i) != NULL; i++)
        if (name_same(model_name_at(i), text)) return true;
    return false;
}

/* A model beside the scenario is called with its folder; so what scenario_text() prints is found
 * from where it was printed. */
static enum status model_read(struct arena *arena, struct json *json, const char *base_folder,
                              struct model *ret_model, struct error *reterr)
{
    const char *text = NULL;
    if (json_kind(json) == JSON_OBJECT) return model_read_object(arena, json, ret_model, reterr);
    if (json_kind(json) != JSON_STRING)
        return error_set(reterr, STATUS_INVALID, json_where(json),
                         "must be a model's name, the path of a config.json, or an object like "
                         "{\"kind\": \"mlp\", \"D\": 8192, \"F\": 32768, \"layers\": 8}");
    STATUS_TRY(json_as_string(json, &text, reterr));
    if (!is_model(text)) STATUS_TRY(path_beside(arena, base_folder, text, &text, reterr));
    return model_read_name_or_path(arena, text, NULL, json_where(json), ret_model, reterr);
}

static enum status tokens_read(struct json *object, struct workload_plan *plan,
                               struct error *reterr)
{
    struct json *batch = NULL;
    int64_t tokens = 0;
    STATUS_TRY(json_need(object, "batch_tokens", &batch, reterr));
    STATUS_TRY(json_as_count(batch, 1, tokens_max, &tokens, reterr));
    plan->batch_tokens = (uint64_t)tokens;
    struct json *length = json_take(object, "sequence_length");
    if (length != NULL) {
        STATUS_TRY(json_as_count(length, 1, tokens_max, &tokens, reterr));
    } else if (plan->model.kind != MODEL_MLP) {
        return error_set(reterr, STATUS_INVALID, json_where(object),
                         "\"sequence_length\" is missing; only the bare MLP needs none");
    }
    plan->sequence_length = (uint64_t)tokens; /* To an MLP, tokens are just tokens. */
    return STATUS_OK;
}

/* Without the key the machine says. */
static enum status memory_read(struct json *object, enum workload_memory *ret_memory,
                               struct error *reterr)
{
    uint32_t memory = 0;
    if (json_take(object, "memory") == NULL) return STATUS_OK;
    STATUS_TRY(scenario_take_choice(object, "memory", &scenario_memory_names[WORKLOAD_MEMORY_BOOK],
                                    &memory, reterr));
    *ret_memory = (enum workload_memory)(WORKLOAD_MEMORY_BOOK + memory);
    return STATUS_OK;
}

static enum status policies_read(struct json *object, struct workload_plan *plan,
                                 struct error *reterr)
{
    uint32_t remat = WORKLOAD_REMAT_NONE, attention = WORKLOAD_ATTENTION_FULL;
    uint32_t gather = WORKLOAD_GATHER_BLOCK, backward = WORKLOAD_BACKWARD_DW_FIRST;
    uint32_t activations = WORKLOAD_ACTIVATIONS_MODEL, offload = WORKLOAD_OFFLOAD_NONE;
    uint32_t context = WORKLOAD_CONTEXT_RING, order = WORKLOAD_CONTEXT_ZIGZAG;
    uint32_t regather = WORKLOAD_REGATHER_MICROBATCH;
    uint32_t kernel = WORKLOAD_KERNEL_FLASH, tp_inputs = WORKLOAD_TP_INPUTS_SHARDS;
    bool mtp = true;
    plan->accumulate = 1;
    STATUS_TRY(scenario_take_choice(object, "remat", scenario_remat_names, &remat, reterr));
    STATUS_TRY(
        scenario_take_choice(object, "attention", scenario_attention_names, &attention, reterr));
    STATUS_TRY(
        scenario_take_choice(object, "attention_kernel", scenario_kernel_names, &kernel, reterr));
    STATUS_TRY(scenario_take_choice(object, "gather", scenario_gather_names, &gather, reterr));
    STATUS_TRY(
        scenario_take_choice(object, "backward_order", scenario_backward_names, &backward, reterr));
    STATUS_TRY(scenario_take_choice(object, "activations", scenario_activations_names, &activations,
                                    reterr));
    STATUS_TRY(scenario_take_choice(object, "context", scenario_context_names, &context, reterr));
    STATUS_TRY(scenario_take_choice(object, "context_order", scenario_context_order_names, &order,
                                    reterr));
    STATUS_TRY(
        scenario_take_choice(object, "tp_inputs", scenario_tp_inputs_names, &tp_inputs, reterr));
    STATUS_TRY(memory_read(object, &plan->memory, reterr));
    STATUS_TRY(scenario_take_choice(object, "offload", scenario_offload_names, &offload, reterr));
    STATUS_TRY(scenario_take_count(object, "zero", 0, 3, &plan->zero, reterr));
    STATUS_TRY(
        scenario_take_count(object, "accumulate", 1, ACCUMULATE_MAX, &plan->accumulate, reterr));
    STATUS_TRY(scenario_take_text(object, "schedule", &plan->schedule, reterr));
    STATUS_TRY(scenario_take_text(object, "layout", &plan->layout, reterr));
    STATUS_TRY(
        scenario_take_choice(object, "regather", scenario_regather_names, &regather, reterr));
    STATUS_TRY(scenario_take_flag(object, "mtp", &mtp, reterr));
    plan->without_predictors = !mtp;
    STATUS_TRY(scenario_take_flag(object, "allow_oversubscription", &plan->allow_oversubscription,
                                  reterr));
    plan->remat = (enum workload_remat)remat;
    plan->attention = (enum workload_attention)attention;
    plan->attention_kernel = (enum workload_kernel)kernel;
    plan->gather = (enum workload_gather)gather;
    plan->backward_order = (enum workload_backward)backward;
    plan->activations = (enum workload_activations)activations;
    plan->context = (enum workload_context)context;
    plan->context_order = (enum workload_context_order)order;
    plan->tp_inputs = (enum workload_tp_inputs)tp_inputs;
    plan->offload = (enum workload_offload)offload;
    plan->regather = (enum workload_regather)regather;
    return STATUS_OK;
}

/* Modules that are asked for by name are there. */
static enum status predictors_check(struct json *member, const struct workload_plan *plan,
                                    struct error *reterr)
{
    if (member == NULL || plan->without_predictors || plan->model.predictors != 0) return STATUS_OK;
    return error_set(reterr, STATUS_INVALID, json_where(member),
                     "%s has no modules for multi-token prediction that a step could train",
                     plan->model.name);
}

/* A share of routers' work, which only a model with experts has. */
static enum status routing_read(struct json *member, double most, const struct workload_plan *plan,
                                uint32_t *ret_ppm, struct error *reterr)
{
    double value = 0;
    if (member == NULL) return STATUS_OK;
    STATUS_TRY(json_as_real(member, 0, most, &value, reterr));
    if (value > 0 && !model_has_experts(&plan->model))
        return error_set(reterr, STATUS_INVALID, json_where(member),
                         "%s has no experts that tokens could be routed to", plan->model.name);
    if (value > 0 && value < routing_least)
        return error_set(reterr, STATUS_INVALID, json_where(member), "must be 0, or at least %g",
                         routing_least);
    *ret_ppm = (uint32_t)lround(value * PPM_ONE);
    return STATUS_OK;
}

enum status scenario_workload_read(struct arena *arena, struct json *object,
                                   const char *base_folder, struct workload_plan *ret_plan,
                                   struct error *reterr)
{
    static const char *const known[] = {"kind",
                                        "model",
                                        "batch_tokens",
                                        "sequence_length",
                                        "remat",
                                        "tp_inputs",
                                        "memory",
                                        "zero",
                                        "accumulate",
                                        "attention",
                                        "attention_kernel",
                                        "formats",
                                        "gather",
                                        "activations",
                                        "backward_order",
                                        "context",
                                        "context_order",
                                        "offload",
                                        "schedule",
                                        "layout",
                                        "regather",
                                        "mtp",
                                        "routing_skew",
                                        "capacity_factor",
                                        "allow_oversubscription",
                                        NULL};
    static const char *const kinds[] = {"train_step", NULL};
    struct workload_plan plan = {.zero = 0};
    struct json *kind = NULL, *model = NULL;
    uint32_t ignored = 0;
    STATUS_TRY(json_need(object, "kind", &kind, reterr));
    STATUS_TRY(json_choice(kind, kinds, &ignored, reterr));
    STATUS_TRY(policies_read(object, &plan, reterr));
    STATUS_TRY(formats_read(json_take(object, "formats"), &plan.formats, reterr));
    STATUS_TRY(json_need(object, "model", &model, reterr));
    (void)json_take(object, "batch_tokens");
    (void)json_take(object, "sequence_length");
    struct json *skew = json_take(object, "routing_skew");
    struct json *capacity = json_take(object, "capacity_factor");
    STATUS_TRY(json_end(object, known, reterr));
    STATUS_TRY(model_read(arena, model, base_folder, &plan.model, reterr));
    STATUS_TRY(predictors_check(json_take(object, "mtp"), &plan, reterr));
    STATUS_TRY(tokens_read(object, &plan, reterr));
    STATUS_TRY(routing_read(skew, 1, &plan, &plan.routing_skew_ppm, reterr));
    STATUS_TRY(routing_read(capacity, capacity_most, &plan, &plan.capacity_ppm, reterr));
    *ret_plan = plan;
    return STATUS_OK;
}

static bool is_among(const char *text, size_t length, const char *const *names)
{
    char name[PLAN_ALGORITHM_SIZE];
    if (length >= sizeof name) return false;
    memcpy(name, text, length);
    name[length] = '\0';
    return names[name_find(name, names)] != NULL;
}

/* Families, "flat-" before one, and several with "+" between; the plan says what can run. */
static bool is_composed(const char *text, const char *const *names)
{
    const char *base = plan_flat_base(text);
    if (base != NULL) return is_among(base, strlen(base), names);
    for (const char *end = text; end != NULL; text = end + 1) {
        end = strchr(text, '+');
        if (!is_among(text, end == NULL ? strlen(text) : (size_t)(end - text), names)) return false;
        if (end == NULL) break;
    }
    return true;
}

/* "auto" and the families of the catalogue. */
static enum status algorithm_read(struct json *object, const char **ret_algorithm,
                                  struct error *reterr)
{
    const char *names[ALGORITHMS_MAX + 1] = {"auto", "hierarchical"};
    struct json *member = json_take(object, "algorithm");
    uint32_t count = 2, chosen = 0;
    _Static_assert(PRIMITIVE_FAMILY_COUNT + 2 <= ALGORITHMS_MAX, "names have room");
    for (uint32_t i = 0; i < PRIMITIVE_FAMILY_COUNT; i++)
        names[count++] = primitive_family_name((enum primitive_family)i);
    *ret_algorithm = names[0];
    if (member == NULL) return STATUS_OK;
    if (json_kind(member) == JSON_STRING) {
        STATUS_TRY(json_as_string(member, ret_algorithm, reterr));
        if (is_composed(*ret_algorithm, names)) return STATUS_OK;
        const char *const synonym = choice_synonym(*ret_algorithm);
        if (synonym != NULL)
            return error_set(reterr, STATUS_INVALID, json_where(member),
                             "no algorithm \"%.64s\"; did you mean \"%s\"?", *ret_algorithm,
                             synonym);
    }
    return json_choice(member, names, &chosen, reterr);
}

/* What ZeRO-1 and 2 alone have to gather. */
static enum status parameters_read(struct json *object, struct workload_plan *workload,
                                   struct error *reterr)
{
    struct json *member = json_take(object, "parameter_gather");
    uint32_t chosen = WORKLOAD_PARAMETERS_END;
    if (member == NULL) return STATUS_OK;
    STATUS_TRY(json_choice(member, scenario_parameters_names, &chosen, reterr));
    workload->parameter_gather = (enum workload_parameters)chosen;
    if (chosen == WORKLOAD_PARAMETERS_END || workload->zero == 1 || workload->zero == 2)
        return STATUS_OK;
    return error_set(reterr, STATUS_INVALID, json_where(member),
                     "with \"zero\": %u no updated weights are gathered; \"next_step\" is for 1 "
                     "and 2",
                     workload->zero);
}

enum status scenario_run_read(struct json *object, struct run_plan *ret_run,
                              struct workload_plan *workload, struct error *reterr)
{
    static const char *const known[] = {
        "prefetch_layers", "collective_matmul", "seed",  "algorithm", "engine",
        "arbitration",     "parameter_gather",  "steps", NULL};
    uint32_t engine = 0, arbitration = 0, steps = 0;
    int64_t seed = 0;
    workload->prefetch_layers = 1;
    workload->algorithm = "auto";
    if (object != NULL) {
        STATUS_TRY(json_as_object(object, reterr));
        STATUS_TRY(scenario_take_count(object, "prefetch_layers", 0, PREFETCH_MAX,
                                       &workload->prefetch_layers, reterr));
        STATUS_TRY(
            scenario_take_flag(object, "collective_matmul", &workload->collective_matmul, reterr));
        STATUS_TRY(algorithm_read(object, &workload->algorithm, reterr));
        STATUS_TRY(scenario_take_choice(object, "engine", scenario_engine_names, &engine, reterr));
        STATUS_TRY(parameters_read(object, workload, reterr));
        STATUS_TRY(scenario_take_count(object, "steps", 1, STEPS_MAX, &steps, reterr));
        STATUS_TRY(scenario_take_choice(object, "arbitration", scenario_arbitration_names,
                                        &arbitration, reterr));
        struct json *member = json_take(object, "seed");
        if (member != NULL) STATUS_TRY(json_as_integer(member, 0, INT64_MAX, &seed, reterr));
        STATUS_TRY(json_end(object, known, reterr));
    }
    workload->seed = (uint64_t)seed;
    *ret_run = (struct run_plan){.seed = (uint64_t)seed,
                                 .arbitration = scenario_arbitration_names[arbitration],
                                 .engine = scenario_engine_names[engine],
                                 .steps = steps};
    return STATUS_OK;
}
