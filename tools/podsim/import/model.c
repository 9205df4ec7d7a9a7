/* model.c: the model of a configuration, as a built-in one of the same sizes or by its sizes. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/json.h"
#include "sim/base/name.h"
#include "sim/base/strbuf.h"
#include "sim/model/model_read.h"
#include "tools/podsim/import/import.h"

enum { LAYERS_MAX = 16384 };

/* Members of the config.json. */
static void put_string(struct json_writer *json, const char *key, const char *text)
{
    json_write_key(json, key);
    json_write_string(json, text);
}

static void put_boolean(struct json_writer *json, const char *key, bool value)
{
    json_write_key(json, key);
    json_write_boolean(json, value);
}

/* One that is left out where it is 0. */
static void put(struct json_writer *json, const char *key, uint64_t value)
{
    if (value == 0) return;
    json_write_key(json, key);
    json_write_unsigned(json, value);
}

/* --- Types of Hugging Face whose layers have what the facts say --- */

static bool has_mla(const struct import_facts *facts)
{
    return facts->parts.type == NULL && facts->mla.is_used > 0 && facts->experts.count > 0;
}

static const char *type_of(const struct import_facts *facts)
{
    const struct import_sizes *sizes = &facts->sizes;
    if (facts->parts.type != NULL) return facts->parts.type;
    if (has_mla(facts)) return facts->experts.router_biased ? "deepseek_v3" : "deepseek_v2";
    if (facts->experts.count > 0)
        return sizes->qk_norm || facts->experts.dense_layers > 0 || facts->experts.step > 1
                   ? "qwen3_moe"
                   : "mixtral";
    if (sizes->gated && sizes->qk_norm) return "qwen3";
    if (sizes->gated) return sizes->qkv_biased ? "qwen2" : "llama";
    if (sizes->learned_positions > 0 && !sizes->unbiased && sizes->kv_heads == sizes->heads)
        return "gpt2";
    if (sizes->learned_positions > 0 && !sizes->unbiased && sizes->kv_heads == 1)
        return "gpt_bigcode";
    return "starcoder2";
}

/* What the facts say and no layer of the type has. `name` is for what the file leaves out. */
static enum status gaps_say(struct import *import, const char *type, struct error *reterr)
{
    const struct import_facts *facts = &import->facts;
    const struct import_sizes *sizes = &facts->sizes;
    const struct import_experts *experts = &facts->experts;
    bool const is_mla = has_mla(facts), is_gated = sizes->gated || experts->count > 0;
    bool const is_gpt = name_same(type, "gpt2") || name_same(type, "gpt_bigcode");
    bool const has_qkv = name_same(type, "qwen2") || (!is_gated && !sizes->unbiased);
    bool const has_experts = experts->count > 0 && !is_mla;
    const void *const dense = experts->layers != NULL ? (const void *)&experts->layers
                              : experts->step > 1     ? (const void *)&experts->step
                                                      : (const void *)&experts->dense_layers;
    const struct {
        bool is_lacking;
        const void *fact;
        const char *name, *what;
    } gaps[] = {
        {is_gated && sizes->layer_norm, &sizes->norm, "norms",
         "a LayerNorm; podsim has an RMSNorm with a gated MLP"},
        {!is_gated && !sizes->layer_norm, &sizes->norm, "norms",
         "podsim has a LayerNorm with an MLP without a gate"},
        {is_gated && !sizes->unbiased, &sizes->unbiased, "biases",
         "the biases of its linear layers; podsim has none with a gated MLP"},
        {sizes->qkv_biased && !has_qkv, &sizes->qkv_biased, "biases of Q, K and V",
         "the biases of Q, K and V"},
        {sizes->qk_norm && !is_gated, &sizes->qk_norm, "norms of Q and K",
         "podsim has norms of Q and K with a gated MLP"},
        {sizes->learned_positions > 0 && !is_gpt, &sizes->positions, "positions",
         "the weights of learned positions"},
        {sizes->mtp > 0 && !is_mla, &sizes->mtp, "multi-token prediction",
         "podsim has multi-token prediction with latent attention alone"},
        {has_experts && (experts->dense_layers > 0 || experts->step > 1) && !sizes->qk_norm, dense,
         "layers",
         "layers without experts are expressed by a type that has norms of Q and K besides"},
        {has_experts && experts->shared_width > 0, &experts->shared_width, "shared experts",
         "podsim has experts that all tokens go to only with latent attention"},
        {has_experts && experts->groups > 1, &experts->groups, "groups of experts",
         "podsim has groups of experts only with latent attention"},
        {is_mla && experts->step > 1, dense, "layers", "which layers have no experts"},
        {has_experts && experts->router_biased, &experts->router_biased, "biases of experts",
         "podsim has biases of the router only with latent attention"},
    };
    import_family_gaps(import, type);
    for (uint32_t i = 0; facts->parts.type == NULL && i < sizeof gaps / sizeof *gaps; i++) {
        if (!gaps[i].is_lacking) continue;
        import_lacks(import, gaps[i].fact, gaps[i].what);
        if (import_said(import, gaps[i].fact) == NULL)
            STATUS_TRY(import_remark(import, gaps[i].name, gaps[i].what, reterr));
    }
    return STATUS_OK;
}

/* Sizes of parts that the model does not have: each fact of a part but its first. */
static void unused_say(struct import *import)
{
    const struct import_facts *facts = &import->facts;
    enum { MLA = sizeof facts->mla / sizeof(uint64_t) };
    enum { EXPERTS = sizeof facts->experts / sizeof(uint64_t) };
    for (uint32_t i = 1; !has_mla(facts) && i < MLA; i++)
        import_plain(import, (const uint64_t *)&facts->mla + i,
                     "it counts with latent attention alone");
    for (uint32_t i = 1; facts->experts.count == 0 && i < EXPERTS; i++)
        import_plain(import, (const uint64_t *)&facts->experts + i, "it counts with experts alone");
}

/* Where the file says how many layers have no experts, one at least is left. */
static enum status layers_check(const struct import *import, struct error *reterr)
{
    const struct import_facts *facts = &import->facts;
    if (facts->experts.count == 0 || facts->experts.dense_layers < facts->sizes.layers ||
        import_said(import, &facts->experts.dense_layers) == NULL)
        return STATUS_OK;
    return import_refuse(import, &facts->experts.dense_layers, reterr,
                         "none of the %" PRIu64 " layers has experts", facts->sizes.layers);
}

/* What no type has, and what would change most of a step. */
static enum status parts_check(struct import *import, struct error *reterr)
{
    const struct import_facts *facts = &import->facts;
    const struct import_experts *experts = &facts->experts;
    if (facts->mla.is_used && experts->count == 0)
        return import_refuse(import, &facts->mla.is_used, reterr,
                             "podsim has latent attention with experts alone");
    if (experts->count > 0 && !facts->sizes.gated)
        return import_refuse(
            import, &experts->count, reterr,
            "podsim has experts with a gated MLP alone, such as --swiglu or --quick-geglu");
    if (has_mla(facts) && experts->width > 0 && experts->shared_width % experts->width != 0)
        return import_refuse(import, &experts->shared_width, reterr,
                             "%" PRIu64 " columns are no whole number of experts of %" PRIu64,
                             experts->shared_width, experts->width);
    return STATUS_OK;
}

static void write_gpt(struct json_writer *json, const struct import_facts *facts)
{
    put(json, "n_layer", facts->sizes.layers);
    put(json, "n_embd", facts->sizes.width);
    put(json, "n_inner", facts->sizes.mlp_width);
    put(json, "n_head", facts->sizes.heads);
    put(json, "n_positions", facts->sizes.learned_positions);
}

static void write_mla(struct json_writer *json, const struct import_facts *facts)
{
    put(json, "q_lora_rank", facts->mla.query_rank);
    put(json, "kv_lora_rank", facts->mla.kv_rank);
    put(json, "qk_nope_head_dim", facts->mla.plain_width);
    put(json, "qk_rope_head_dim", facts->mla.rope_width);
    put(json, "v_head_dim", facts->mla.value_width);
    put(json, "n_routed_experts", facts->experts.count);
    put(json, "n_shared_experts",
        facts->experts.width > 0 ? facts->experts.shared_width / facts->experts.width : 0);
    put(json, "moe_intermediate_size", facts->experts.width);
    put(json, "num_experts_per_tok", facts->experts.top_k);
    put(json, "first_k_dense_replace", facts->experts.dense_layers);
    if (facts->experts.groups > 1) {
        put(json, "n_group", facts->experts.groups);
        put(json, "topk_group", facts->experts.top_groups);
    }
    put(json, "num_nextn_predict_layers", facts->sizes.mtp);
}

static void write_experts(struct json_writer *json, const struct import_facts *facts,
                          const char *type)
{
    put(json, "num_experts_per_tok", facts->experts.top_k);
    if (name_same(type, "mixtral") || name_same(type, "gpt_oss")) {
        put(json, "num_local_experts", facts->experts.count);
        return;
    }
    put(json, "num_experts", facts->experts.count);
    put(json, "moe_intermediate_size", facts->experts.width);
    put(json, "decoder_sparse_step", facts->experts.step);
    json_write_key(json, "mlp_only_layers");
    json_write_array(json);
    for (uint64_t i = 0; i < facts->experts.dense_layers && i < facts->sizes.layers; i++)
        json_write_unsigned(json, i);
    json_write_array_end(json);
}

static void write_config(struct json_writer *json, const struct import_facts *facts,
                         const char *type)
{
    bool const is_gpt = name_same(type, "gpt2") || name_same(type, "gpt_bigcode");
    json_write_object(json);
    put_string(json, "model_type", type);
    if (facts->names.model != NULL) put_string(json, "_name_or_path", facts->names.model);
    if (is_gpt) {
        write_gpt(json, facts);
    } else {
        put(json, "num_hidden_layers", facts->sizes.layers);
        put(json, "hidden_size", facts->sizes.width);
        put(json, "intermediate_size",
            name_same(type, "mixtral") || name_same(type, "gpt_oss") ? facts->experts.width
                                                                     : facts->sizes.mlp_width);
        put(json, "num_attention_heads", facts->sizes.heads);
        put(json, "num_key_value_heads", facts->sizes.kv_heads);
        if (!has_mla(facts)) put(json, "head_dim", facts->sizes.head_width);
    }
    put(json, "vocab_size", facts->sizes.vocabulary);
    put_boolean(json, "tie_word_embeddings", !facts->sizes.untied);
    if (name_same(type, "starcoder2")) put_boolean(json, "use_bias", !facts->sizes.unbiased);
    if (name_same(type, "gpt_bigcode")) put_boolean(json, "multi_query", true);
    import_family_write(json, facts, type);
    if (has_mla(facts))
        write_mla(json, facts);
    else if (facts->experts.count > 0)
        write_experts(json, facts, type);
    json_write_object_end(json);
}

/* --- Built-in models --- */

/* The name of a built-in model of the same sizes, or NULL. */
static enum status alike_find(struct import *import, const struct model *model,
                              const char **ret_name, struct error *reterr)
{
    *ret_name = NULL;
    const char *name = NULL;
    for (uint32_t i = 0; *ret_name == NULL && (name = model_name_at(i)) != NULL; i++) {
        struct model other;
        STATUS_TRY(model_read_name_or_path(import->arena, name, NULL, name, &other, reterr));
        if (model_same(model, &other)) *ret_name = name;
    }
    return STATUS_OK;
}

static enum status sizes_check(struct import *import, struct error *reterr)
{
    const struct import_facts *facts = &import->facts;
    const struct {
        const uint64_t *fact;
        const char *what;
    } needed[] = {{&facts->sizes.layers, "layers the model has"},
                  {&facts->sizes.width, "columns the model has"},
                  {&facts->sizes.heads, "heads attention has"},
                  {&facts->sizes.vocabulary, "words the vocabulary has"}};
    for (uint32_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (*needed[i].fact == 0)
            return import_refuse(import, needed[i].fact, reterr,
                                 "nothing says how many %s; `--model NAME` names a model of "
                                 "`podsim list models`, or a config.json",
                                 needed[i].what);
    if (facts->sizes.layers <= LAYERS_MAX) return STATUS_OK;
    return import_refuse(import, &facts->sizes.layers, reterr, "more than %d layers", LAYERS_MAX);
}

void import_sizes_drop(struct import *import, bool but_name, const char *why)
{
    const struct import_names *names = &import->facts.names;
    for (uint32_t i = 0; i < import->file->count; i++) {
        struct import_setting *setting = &import->file->setting[i];
        bool const is_name =
            setting == import_said(import, &names->model) ||
            (names->flavor != NULL && setting == import_said(import, &names->flavor));
        bool const is_apart = is_name || setting == import_said(import, &import->facts.sizes.mtp);
        if (setting->outcome != IMPORT_EXPRESSED || (but_name && is_apart) ||
            !name_same(setting->because, "/workload/model"))
            continue;
        setting->outcome = IMPORT_WITHOUT_INFLUENCE;
        setting->because = why;
    }
}

/* A refusal of the config.json at the setting that states what it is about. */
static enum status config_refuse(const struct import *import, enum status status,
                                 struct error *reterr)
{
    const struct import_facts *facts = &import->facts;
    const struct {
        const char *member;
        const void *fact;
    } members[] = {{"num_experts_per_tok", &facts->experts.top_k},
                   {"num_experts", &facts->experts.count},
                   {"num_local_experts", &facts->experts.count},
                   {"n_routed_experts", &facts->experts.count},
                   {"n_shared_experts", &facts->experts.shared_width},
                   {"moe_intermediate_size", &facts->experts.width},
                   {"decoder_sparse_step", &facts->experts.step},
                   {"mlp_only_layers", &facts->experts.dense_layers},
                   {"first_k_dense_replace", &facts->experts.dense_layers},
                   {"n_group", &facts->experts.groups},
                   {"topk_group", &facts->experts.top_groups},
                   {"num_key_value_heads", &facts->sizes.kv_heads},
                   {"num_attention_heads", &facts->sizes.heads},
                   {"n_head", &facts->sizes.heads},
                   {"num_hidden_layers", &facts->sizes.layers},
                   {"n_layer", &facts->sizes.layers},
                   {"hidden_size", &facts->sizes.width},
                   {"n_embd", &facts->sizes.width},
                   {"intermediate_size", &facts->sizes.mlp_width},
                   {"n_inner", &facts->sizes.mlp_width},
                   {"head_dim", &facts->sizes.head_width},
                   {"vocab_size", &facts->sizes.vocabulary},
                   {"n_positions", &facts->sizes.learned_positions},
                   {"num_nextn_predict_layers", &facts->sizes.mtp},
                   {"q_lora_rank", &facts->mla.query_rank},
                   {"kv_lora_rank", &facts->mla.kv_rank},
                   {"qk_nope_head_dim", &facts->mla.plain_width},
                   {"qk_rope_head_dim", &facts->mla.rope_width},
                   {"v_head_dim", &facts->mla.value_width},
                   {"sliding_window", &facts->parts.window}};
    struct error const inner = *reterr;
    const char *const member = name_after(inner.where, "/");
    for (uint32_t i = 0; i < sizeof members / sizeof *members; i++) {
        if (!name_same(member, members[i].member)) continue;
        if (import_said(import, members[i].fact) == NULL) break;
        return import_refuse(import, members[i].fact, reterr, "%s", inner.message);
    }
    return settings_fail(import->file, 0, status, reterr, "the model of the file: %s%s%s",
                         inner.where, inner.where[0] == '\0' ? "" : ": ", inner.message);
}

enum status import_model(struct import *import, struct error *reterr)
{
    struct strbuf text = {.bytes = NULL};
    struct json_writer json;
    struct json *document = NULL;
    struct model model;
    const char *name = NULL;
    if (import->model != NULL) {
        import_sizes_drop(import, /* but_name= */ false, "--model names the model");
        return import_set_text(import, "/workload/model", import->model, reterr);
    }
    STATUS_TRY(sizes_check(import, reterr));
    STATUS_TRY(parts_check(import, reterr));
    STATUS_TRY(layers_check(import, reterr));
    const char *const type = type_of(&import->facts);
    STATUS_TRY(gaps_say(import, type, reterr));
    unused_say(import);
    json_write_start(&json, &text);
    write_config(&json, &import->facts, type);
    const char *config = text.failed ? NULL : arena_text(import->arena, text.bytes);
    strbuf_free(&text);
    if (config == NULL) return error_no_memory(reterr, "");
    STATUS_TRY(json_read_text(import->arena, "model", config, strlen(config), &document, reterr));
    enum status const status = model_read_config(import->arena, document, "model", &model, reterr);
    if (status != STATUS_OK) return config_refuse(import, status, reterr);
    STATUS_TRY(alike_find(import, &model, &name, reterr));
    if (name != NULL) return import_set_text(import, "/workload/model", name, reterr);
    return import_set(import, reterr, "/workload/model=%s", config);
}

/* The model of `--model`. False where no model is called so, which is refused with the scenario. */
static bool given_read(const struct import *import, struct model *ret_model)
{
    struct error later;
    return model_read_name_or_path(import->arena, import->model, NULL, "--model", ret_model,
                                   &later) == STATUS_OK;
}

bool import_has_mtp(const struct import *import)
{
    struct model model;
    if (import->model == NULL) return import->facts.sizes.mtp > 0;
    return given_read(import, &model) && model.mtp_modules > 0;
}

bool import_has_experts(const struct import *import)
{
    struct model model;
    if (import->model == NULL) return import->facts.experts.count > 0;
    return given_read(import, &model) && model_has_experts(&model);
}

enum status import_capacity(struct import *import, struct error *reterr)
{
    const char *const text = import->facts.experts.capacity;
    char *end = NULL;
    double const factor = text == NULL ? 0 : strtod(text, &end);
    if (text == NULL || name_same(text, "-1") || name_same(text, "-1.0")) return STATUS_OK;
    if (*end != '\0' || end == text || !(factor > 0) || factor > UINT16_MAX)
        return import_refuse(import, &import->facts.experts.capacity, reterr,
                             "\"%.40s\" is no factor above 0", text);
    return import_set(import, reterr, "/workload/capacity_factor=%g", factor);
}

void import_mla_fill(struct import *import, const struct import_mla *otherwise)
{
    struct import_mla *mla = &import->facts.mla;
    if (mla->kv_rank == 0) mla->kv_rank = otherwise->kv_rank;
    if (mla->plain_width == 0) mla->plain_width = otherwise->plain_width;
    if (mla->rope_width == 0) mla->rope_width = otherwise->rope_width;
    if (mla->value_width == 0) mla->value_width = otherwise->value_width;
}

enum status import_model_given(struct import *import, struct error *reterr)
{
    if (import->model != NULL) return import_model(import, reterr);
    return settings_fail(
        import->file, 0, STATUS_INVALID, reterr,
        "the file does not say which model is trained; `--model NAME` names one of "
        "`podsim list models`, or a config.json");
}

enum status import_length_given(struct import *import, struct error *reterr)
{
    if (import->facts.batch.length > 0) return STATUS_OK;
    return settings_fail(import->file, 0, STATUS_INVALID, reterr,
                         "the file does not say how many tokens a sequence has; give it by --with "
                         "sequence_length=4096");
}
