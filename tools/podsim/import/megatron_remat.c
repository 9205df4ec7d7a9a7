/*
 * megatron_remat.c: Megatron-LM's recomputation as lists of arrays.
 *
 * Source: NVIDIA/Megatron-LM, core/transformer/transformer_config.py (recompute_modules),
 * transformer_block.py and transformer_layer.py.
 */
#include "tools/podsim/import/megatron.h"

#include <inttypes.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/name.h"
#include "tools/podsim/import/recompute.h"

/* A module repeats what it computes. It keeps what it is computed from. */
static const struct module {
    const char *word;
    bool of_dense, of_experts, of_shared, of_latent; /* Layers that have the module; none: all. */
    const char *repeats[4], *saves[3];
} modules[] = {
    {.word = "core_attn"}, /* Flash attention repeats its scores by itself. */
    {.word = "layernorm", .repeats = {"In"}},
    {.word = "mlp", .of_dense = true, .repeats = {"mlp.*"}, .saves = {"mlp.X", "mlp.In"}},
    {.word = "moe",
     .of_experts = true,
     .repeats = {"moe.*", "experts.*"},
     .saves = {"moe.X", "moe.In"}},
    {.word = "moe", .of_shared = true, .repeats = {"shared.*"}},
    {.word = "shared_experts", .of_shared = true, .repeats = {"shared.*"}},
    {.word = "moe_act", .of_experts = true, .repeats = {"moe.Tmp"}},
    {.word = "mla_up_proj", .of_latent = true, .repeats = {"Q", "KV"}},
};

static bool has(const struct import_layers *layers, const struct module *module)
{
    if (module->of_dense) return layers->dense;
    if (module->of_experts) return layers->experts;
    if (module->of_shared) return layers->shared;
    return !module->of_latent || layers->latent;
}

/* Adds the arrays of a module; false: there is no such module. */
static bool module_add(const struct import_layers *layers, const char *word, size_t length,
                       struct import_arrays *arrays)
{
    bool found = false;
    for (uint32_t i = 0; i < sizeof modules / sizeof *modules; i++) {
        const struct module *module = &modules[i];
        if (strlen(module->word) != length || strncmp(module->word, word, length) != 0) continue;
        found = true;
        if (!has(layers, module)) continue;
        for (const char *const *name = module->repeats; *name != NULL; name++)
            import_array_add(arrays, IMPORT_LIST_REPEAT, *name);
        for (const char *const *name = module->saves; *name != NULL; name++)
            import_array_add(arrays, IMPORT_LIST_SAVE, *name);
    }
    return found;
}

static enum status module_refuse(const struct import *import, const char *word, size_t length,
                                 struct error *reterr)
{
    static const char *const words[] = {"core_attn", "layernorm",      "mlp",         "moe",
                                        "moe_act",   "shared_experts", "mla_up_proj", NULL};
    const char *const name = arena_format(import->arena, "%.*s", (int)length, word);
    if (name == NULL) return error_no_memory(reterr, "");
    return import_refuse(import, &import->facts.policy.recompute_modules, reterr,
                         "podsim knows no module \"%.40s\"%s", name,
                         name_offer(name, words, "; the nearest is ", "", NULL).text);
}

static bool is_module(const char *words, const char *word)
{
    size_t const length = strlen(word);
    for (; *words != '\0'; words += strspn(words, " ")) {
        size_t const part = strcspn(words, " ");
        if (part == length && strncmp(words, word, length) == 0) return true;
        words += part;
    }
    return false;
}

static enum status selective_set(struct import *import, struct error *reterr)
{
    const char *const *const said = &import->facts.policy.recompute_modules;
    const char *words = *said == NULL ? "core_attn" : *said;
    struct import_arrays arrays = {.count = {0}};
    struct import_layers layers;
    STATUS_TRY(import_layers_find(import, &layers, reterr));
    for (const char *at = words; *at != '\0'; at += strspn(at, " ")) {
        size_t const length = strcspn(at, " ");
        if (!module_add(&layers, at, length, &arrays))
            return module_refuse(import, at, length, reterr);
        at += length;
    }
    /* Norms that are repeated are no inputs of a module that are kept. */
    if (is_module(words, "layernorm")) {
        for (uint32_t i = 0; i < arrays.count[IMPORT_LIST_SAVE]; i++)
            if (name_after(arrays.name[IMPORT_LIST_SAVE][i], "mlp.In") != NULL ||
                name_after(arrays.name[IMPORT_LIST_SAVE][i], "moe.In") != NULL)
                arrays.name[IMPORT_LIST_SAVE][i--] =
                    arrays.name[IMPORT_LIST_SAVE][--arrays.count[IMPORT_LIST_SAVE]];
    }
    return import_remat(import, "none", &arrays, reterr);
}

/* Layers that are repeated at the start of a stage, or together; left out: one. All of a stage are
 * repeated where it has fewer. */
static enum status layers_find(struct import *import, uint64_t *ret_layers, struct error *reterr)
{
    const uint64_t *const said = &import->facts.policy.recompute_layers;
    struct import_layers layers;
    *ret_layers = 1;
    if (import_said(import, said) == NULL) return STATUS_OK;
    STATUS_TRY(import_layers_find(import, &layers, reterr));
    uint64_t most = 0;
    STATUS_TRY(import_stage_layers(import, &most, reterr));
    *ret_layers = *said < most ? *said : most;
    if (*said != 0 && *said <= layers.count) return STATUS_OK;
    return import_refuse(import, said, reterr,
                         "%" PRIu64 " is not between 1 and the %" PRIu64 " layers of the model",
                         *said, layers.count);
}

/* NULL of the method is Megatron's "uniform". */
static enum status method_check(const struct import *import, struct error *reterr)
{
    static const char *const methods[] = {"uniform", "block", NULL};
    const char *const *const said = &import->facts.policy.recompute_method;
    if (*said == NULL || methods[name_find(*said, methods)] != NULL) return STATUS_OK;
    return import_refuse(import, said, reterr, "\"%.40s\" is neither uniform nor block", *said);
}

enum status megatron_remat_set(struct import *import, struct error *reterr)
{
    struct import_facts *facts = &import->facts;
    static const char *const words[] = {"full", "selective", NULL};
    static const char of_full[] = "it counts with --recompute-granularity full",
                      of_selective[] = "it counts with --recompute-granularity selective";
    uint64_t layers = 0;
    if (!name_same(facts->policy.recompute, words[0])) {
        import_plain(import, &facts->policy.recompute_method, of_full);
        import_plain(import, &facts->policy.recompute_layers, of_full);
    }
    if (!name_same(facts->policy.recompute, words[1]))
        import_plain(import, &facts->policy.recompute_modules, of_selective);
    if (facts->policy.recompute == NULL) return import_set(import, reterr, "/workload/remat=none");
    uint32_t const word = name_find(facts->policy.recompute, words);
    if (words[word] == NULL)
        return import_refuse(import, &facts->policy.recompute, reterr,
                             "\"%.40s\" is neither full nor "
                             "selective",
                             facts->policy.recompute);
    STATUS_TRY(method_check(import, reterr));
    if (word == 1) return selective_set(import, reterr);
    STATUS_TRY(layers_find(import, &layers, reterr));
    if (name_same(facts->policy.recompute_method, "block"))
        return import_remat_layers(import, "layer", "first", layers, reterr);
    if (layers > 1) return import_remat_layers(import, "layer", "groups_of", layers, reterr);
    return import_set(import, reterr, "/workload/remat=layer");
}
