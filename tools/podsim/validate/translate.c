/* translate.c: the scenario of a published row. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/json.h"
#include "sim/base/name.h"
#include "sim/base/strbuf.h"
#include "sim/scenario/preset.h"
#include "tools/podsim/common/placing.h"
#include "tools/podsim/validate/published.h"

enum {
    FLAT_DEPTH = 3,
    SIDES_MAX = 3,      /* x, y and z. */
    RAIL_PORTS = 65536, /* One switch a rail, so that one pipeline stands for all that are alike. */
};

static enum status refuse(const struct published_row *row, const char *why, struct error *reterr)
{
    return error_set(reterr, STATUS_UNSUPPORTED, row->id, "%s", why);
}

static void gpus_add(struct placing *placing, const struct published_machine *machine)
{
    placing_side_add(placing, "gpu", machine->gpus);
    placing_side_add(placing, "node", machine->nodes);
}

/* Replicas are slices where there are several; the rest lies within them. */
static void tpus_add(struct placing *placing, const struct published_machine *machine)
{
    static const char *const names[SIDES_MAX] = {"x", "y", "z"};
    const char *at = machine->shape;
    placing->is_grid = true;
    placing->slice = (struct placing_side){"slice", machine->slices, machine->slices};
    while (placing->side_count < SIDES_MAX && *at != '\0') {
        placing_side_add(placing, names[placing->side_count], (uint32_t)strtoul(at, NULL, 10));
        at += strspn(at, "0123456789");
        at += *at == 'x';
    }
}

static enum status place(const struct published_row *row, struct placing *ret_placing,
                         struct error *reterr)
{
    *ret_placing = (struct placing){.where = row->id};
    for (uint32_t role = 0; role < MESH_ROLE_COUNT; role++)
        ret_placing->rank[role] = row->ranks[role];
    ret_placing->ep_over = row->ep_over;
    if (row->machine.shape == NULL)
        gpus_add(ret_placing, &row->machine);
    else
        tpus_add(ret_placing, &row->machine);
    return placing_find(ret_placing, reterr);
}

/* --- Writing: a setting for each key, as those of a command line --- */

struct writing {
    struct arena *arena;
    struct json *document;
};

static enum status set(const struct writing *writing, struct error *reterr, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static enum status set(const struct writing *writing, struct error *reterr, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    enum status const status = json_set_list(writing->document, reterr, format, arguments);
    va_end(arguments);
    return status;
}

/* A part of a published file. */
static enum status set_value(const struct writing *writing, const char *pointer, struct json *value,
                             struct error *reterr)
{
    struct strbuf text = {0};
    struct json_writer json;
    json_write_start(&json, &text);
    json_write_value(&json, value);
    enum status const status = text.failed ? error_no_memory(reterr, "")
                                           : set(writing, reterr, "%s=%s", pointer, text.bytes);
    strbuf_free(&text);
    return status;
}

static enum status network_set(const struct writing *writing,
                               const struct published_machine *machine, struct error *reterr)
{
    if (machine->network != NULL)
        STATUS_TRY(set_value(writing, "/machine/network", machine->network, reterr));
    return set(writing, reterr, "/machine/network/switch_ports=%d", RAIL_PORTS);
}

static enum status machine_set(const struct writing *writing,
                               const struct published_machine *machine, struct error *reterr)
{
    STATUS_TRY(set(writing, reterr, "/machine/chip=%s", machine->chip));
    STATUS_TRY(set(writing, reterr, "/machine/profile=measured"));
    if (machine->shape != NULL) {
        STATUS_TRY(set(writing, reterr, "/machine/shape=%s", machine->shape));
        if (machine->slices <= 1) return STATUS_OK;
        return set(writing, reterr, "/machine/slices=%u", machine->slices);
    }
    if (machine->power_w != 0)
        STATUS_TRY(set(writing, reterr, "/machine/power=%uW", machine->power_w));
    STATUS_TRY(set(writing, reterr, "/machine/gpus=%u", machine->gpus));
    if (machine->nodes > 1) {
        STATUS_TRY(set(writing, reterr, "/machine/nodes=%u", machine->nodes));
        STATUS_TRY(network_set(writing, machine, reterr));
    }
    if (machine->hbm_share <= 0) return STATUS_OK;
    return set(writing, reterr, "/machine/chips=[{\"at\": [\"*\"%s], \"hbm\": %g}]",
               machine->nodes > 1 ? ", \"*\"" : "", machine->hbm_share);
}

static enum status mesh_set(const struct writing *writing, const struct placing *placing,
                            struct error *reterr)
{
    STATUS_TRY(set(writing, reterr, "/mesh={}"));
    for (uint32_t i = 0; i < MESH_ROLE_COUNT; i++) {
        enum mesh_role const role = mesh_order_standard[i];
        for (uint32_t p = 0; p < placing->part_count[role]; p++)
            STATUS_TRY(set(writing, reterr, "/mesh/%s/%u=%s", mesh_role_name(role), p,
                           placing_part(placing, role, p)));
    }
    return STATUS_OK;
}

/* Recipes of fp8 by the words of publications. A row without such a word has the default of its
 * stack's library. */
static enum status recipe_set(const struct writing *writing, const struct published_policy *policy,
                              struct error *reterr)
{
    static const char *const words[][2] = {{"tensorwise", "current"}, /* torchao's. */
                                           {"cs", "current"},         /* Megatron-Bridge's. */
                                           {"rowwise", "rowwise"},
                                           {"mxfp8", "mxfp8"}};
    if (policy->recipe == NULL) return STATUS_OK;
    for (uint32_t i = 0; i < sizeof words / sizeof *words; i++)
        if (name_same(policy->recipe, words[i][0]))
            return set(writing, reterr, "/workload/fp8_recipe=%s", words[i][1]);
    return error_set(reterr, STATUS_NOT_FOUND, "recipe",
                     "podsim has no recipe of fp8 for \"%.40s\"; \"cs\" is one that it has",
                     policy->recipe);
}

static enum status formats_set(const struct writing *writing, const struct published_policy *policy,
                               struct error *reterr)
{
    if (name_same(policy->precision, "fp8"))
        STATUS_TRY(set(writing, reterr, "/workload/formats/matmuls=fp8"));
    STATUS_TRY(recipe_set(writing, policy, reterr));
    if (policy->main_gradients != NULL)
        STATUS_TRY(
            set(writing, reterr, "/workload/formats/main_gradients=%s", policy->main_gradients));
    if (policy->gradients == NULL) return STATUS_OK;
    return set(writing, reterr, "/workload/formats/gradients=%s", policy->gradients);
}

/* What the row says beside its preset. */
static enum status policy_set(const struct writing *writing, const struct published_policy *policy,
                              struct error *reterr)
{
    const struct {
        const char *pointer, *text;
    } words[] = {{"/workload/schedule", policy->schedule},
                 {"/workload/layout", policy->layout},
                 {"/workload/context", policy->context},
                 {"/workload/loss_fusion", policy->loss_fusion},
                 {"/workload/attention_kernel", policy->attention_kernel},
                 {"/workload/gradient_sums", policy->gradient_sums},
                 {"/workload/activations", policy->activations},
                 {"/workload/backward_order", policy->backward_order},
                 {"/run/matmul_chunks", policy->matmul_chunks}};
    STATUS_TRY(formats_set(writing, policy, reterr));
    for (uint32_t i = 0; i < sizeof words / sizeof *words; i++)
        if (words[i].text != NULL)
            STATUS_TRY(set(writing, reterr, "%s=\"%s\"", words[i].pointer, words[i].text));
    if (policy->zero != PUBLISHED_UNSAID)
        STATUS_TRY(set(writing, reterr, "/workload/zero=%d", policy->zero));
    if (policy->mtp == 0) STATUS_TRY(set(writing, reterr, "/workload/mtp=false"));
    if (policy->persistent_layernorm == 1)
        STATUS_TRY(set(writing, reterr, "/workload/persistent_layernorm=true"));
    if (policy->capacity_factor > 0)
        STATUS_TRY(set(writing, reterr, "/workload/capacity_factor=%g", policy->capacity_factor));
    if (policy->token_copies != NULL)
        STATUS_TRY(set(writing, reterr, "/workload/token_copies=%s", policy->token_copies));
    if (policy->tp_overlap != PUBLISHED_UNSAID)
        STATUS_TRY(set(writing, reterr, "/run/collective_matmul=%s",
                       policy->tp_overlap == 1 ? "true" : "false"));
    /* It ran, whatever podsim counts. */
    return set(writing, reterr, "/workload/allow_oversubscription=true");
}

/* What runs beside compute among replicas. */
static enum status overlap_set(const struct writing *writing, const struct published_row *row,
                               struct error *reterr)
{
    bool const has_replicas =
        row->ranks[MESH_DP] > 1 || row->ranks[MESH_EP] > 1 || row->ranks[MESH_CP] > 1;
    if (row->policy.overlap != 0) return STATUS_OK;
    STATUS_TRY(set(writing, reterr, "/run/parameter_gather=end"));
    return has_replicas ? set(writing, reterr, "/run/overlap/dp=false") : STATUS_OK;
}

/* Passes of a rank in a step. */
static enum status accumulate_find(const struct published_row *row, uint64_t *ret_accumulate,
                                   struct error *reterr)
{
    uint64_t const replicas =
        (uint64_t)row->ranks[MESH_DP] * row->ranks[MESH_FSDP] * row->ranks[MESH_EP];
    uint64_t const at_once = replicas * row->microbatch;
    if (at_once == 0 || row->sequences % at_once != 0)
        return refuse(row, "its sequences are no whole number of microbatches a rank", reterr);
    *ret_accumulate = row->sequences / at_once;
    return STATUS_OK;
}

/* What a word for recomputation sets. Layers that are recomputed take a time, wherever they lie. */
static enum status word_set(const struct writing *writing, const struct preset_word *word,
                            uint32_t layers, struct error *reterr)
{
    for (uint32_t i = 0; i < word->key_count; i++) {
        const struct preset_key *key = &word->key[i];
        if (layers != 0 && strcmp(key->pointer, "/workload/remat") == 0)
            STATUS_TRY(set(writing, reterr, "%s={\"policy\": %s, \"layers\": {\"first\": %u}}",
                           key->pointer, key->value, layers));
        else
            STATUS_TRY(set(writing, reterr, "%s=%s", key->pointer, key->value));
    }
    return STATUS_OK;
}

/* What the framework's word for recomputation sets. */
static enum status recompute_set(const struct writing *writing, const struct published_row *row,
                                 struct error *reterr)
{
    struct preset preset;
    STATUS_TRY(preset_find(writing->arena, row->policy.preset, row->id, &preset, reterr));
    for (uint32_t w = 0; w < preset.recompute_count; w++) {
        const struct preset_word *word = &preset.recompute[w];
        if (!name_same(word->word, row->policy.recompute)) continue;
        return word_set(writing, word, row->policy.recompute_layers, reterr);
    }
    return error_set(reterr, STATUS_NOT_FOUND, row->id, "%s has no recomputation called \"%s\"",
                     preset.name, row->policy.recompute);
}

static const char *format_of_cache(const struct published_policy *policy)
{
    return name_same(policy->precision, "fp8") ? "fp8" : "bf16";
}

/* A batch of equal sequences. Where products are in fp8, so are weights and the cache. */
static enum status inference_set(const struct writing *writing, const struct published_row *row,
                                 struct error *reterr)
{
    const struct published_policy *policy = &row->policy;
    const char *const cache = format_of_cache(policy);
    STATUS_TRY(set(writing, reterr, "/workload/kind=%s", published_kind_names[row->kind]));
    STATUS_TRY(set_value(writing, "/workload/model", row->model, reterr));
    STATUS_TRY(set(writing, reterr, "/workload/batch=%llu", (unsigned long long)row->sequences));
    STATUS_TRY(set(writing, reterr, "/workload/%s=%llu",
                   row->kind == PUBLISHED_DECODE ? "context" : "prompt",
                   (unsigned long long)row->length_tokens));
    if (row->kind == PUBLISHED_GENERATE)
        STATUS_TRY(
            set(writing, reterr, "/workload/output=%llu", (unsigned long long)row->output_tokens));
    if (name_same(cache, "fp8"))
        STATUS_TRY(
            set(writing, reterr, "/workload/formats={\"matmuls\": \"fp8\", \"kv\": \"fp8\"}"));
    if (policy->weights != NULL)
        STATUS_TRY(set(writing, reterr, "/workload/formats/weights=%s", policy->weights));
    if (policy->activations != NULL)
        STATUS_TRY(set(writing, reterr, "/workload/activations=%s", policy->activations));
    return set(writing, reterr, "/workload/allow_oversubscription=true");
}

static enum status step_set(const struct writing *writing, const struct published_row *row,
                            struct error *reterr)
{
    uint64_t accumulate = 0;
    STATUS_TRY(accumulate_find(row, &accumulate, reterr));
    STATUS_TRY(set(writing, reterr, "/workload/kind=%s", published_kind_names[row->kind]));
    STATUS_TRY(set_value(writing, "/workload/model", row->model, reterr));
    STATUS_TRY(set(writing, reterr, "/workload/batch_tokens=%llu",
                   (unsigned long long)(row->sequences * row->length_tokens)));
    STATUS_TRY(set(writing, reterr, "/workload/sequence_length=%llu",
                   (unsigned long long)row->length_tokens));
    STATUS_TRY(set(writing, reterr, "/workload/accumulate=%llu", (unsigned long long)accumulate));
    STATUS_TRY(policy_set(writing, &row->policy, reterr));
    STATUS_TRY(overlap_set(writing, row, reterr));
    return recompute_set(writing, row, reterr);
}

static enum status text_write(const struct writing *writing, const char **ret_text,
                              struct error *reterr)
{
    struct strbuf text = {0};
    struct json_writer json;
    json_write_start(&json, &text);
    json.flat = FLAT_DEPTH;
    json_write_value(&json, writing->document);
    *ret_text = text.failed ? NULL : arena_text(writing->arena, text.bytes);
    strbuf_free(&text);
    if (*ret_text == NULL) return error_no_memory(reterr, "");
    return STATUS_OK;
}

/* What `podsim collective` plays for the row. */
static enum status command_write(struct arena *arena, const struct published_row *row,
                                 const char **ret_text, struct error *reterr)
{
    unsigned long long const bytes = row->collective.size_bytes;
    *ret_text = arena_format(
        arena,
        "podsim collective --machine %s:gpus=%u,profile=measured --op %s -b %llu -e %llu%s%s%s\n",
        row->machine.chip, row->machine.gpus, row->collective.operation, bytes, bytes,
        row->collective.algorithm == NULL ? "" : " --algorithm ",
        row->collective.algorithm == NULL ? "" : row->collective.algorithm,
        row->collective.registered ? " --registered" : "");
    if (*ret_text == NULL) return error_no_memory(reterr, "");
    return STATUS_OK;
}

enum status published_scenario(struct arena *arena, const struct published_row *row,
                               const char **ret_text, struct error *reterr)
{
    struct placing placing;
    struct writing writing = {.arena = arena};
    if (row->lacks != NULL)
        return error_set(reterr, STATUS_UNSUPPORTED, row->id, "the publication does not say %s",
                         row->lacks);
    if (row->kind == PUBLISHED_COLLECTIVE) return command_write(arena, row, ret_text, reterr);
    STATUS_TRY(place(row, &placing, reterr));
    STATUS_TRY(json_read_text(arena, row->id, "{}", 2, &writing.document, reterr));
    STATUS_TRY(set(&writing, reterr, "/podsim=1"));
    STATUS_TRY(set(&writing, reterr, "/title=\"%s\"", row->id));
    STATUS_TRY(set(&writing, reterr, "/preset=%s", row->policy.preset));
    STATUS_TRY(machine_set(&writing, &row->machine, reterr));
    STATUS_TRY(mesh_set(&writing, &placing, reterr));
    STATUS_TRY(row->kind == PUBLISHED_STEP ? step_set(&writing, row, reterr)
                                           : inference_set(&writing, row, reterr));
    return text_write(&writing, ret_text, reterr);
}
