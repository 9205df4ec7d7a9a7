#include "sim/model/model_read.h"

#include <sys/stat.h>

#include "sim/base/arena.h"
#include "sim/base/embed.h"
#include "sim/base/json.h"
#include "sim/base/key.h"
#include "sim/base/name.h"
#include "sim/base/path.h"
#include "sim/base/strbuf.h"
#include "sim/model/model_read_parts.h"

/* Written at build time from workloads/models/. */
extern const struct embed_file model_files[];
extern const unsigned model_files_count;

enum { MODEL_NAMES_MAX = 64 };

const char *model_name_at(uint32_t index)
{
    return index < model_files_count ? model_files[index].name : NULL;
}

const char *model_json(const char *name, uint32_t *ret_size_bytes)
{
    const struct embed_file *file = embed_find(model_files, model_files_count, name);
    if (file == NULL) return NULL;
    *ret_size_bytes = file->size_bytes;
    return file->bytes;
}

/* Whether a list of keys, which may be NULL, has the key. */
static bool knows(const char *const *keys, const char *key)
{
    return keys != NULL && keys[name_find(key, keys)] != NULL;
}

static bool has_key(const struct model_family *family, const void *key)
{
    return knows(family->keys, key);
}

static bool is_any(const struct model_family *family, const void *nothing)
{
    (void)family;
    (void)nothing;
    return true;
}

/* Keys that, when set, mean a computation that the lowering does not have, or not in models of this
 * type. */
static enum status refuse_features(struct json *document, const struct model_family *family,
                                   struct error *reterr)
{
    static const struct {
        const char *key;
        const char *what;
        int64_t unused; /* No experts or further layers; a single group, which limits nothing. */
    } features[] = {
        {"text_config", "a multimodal model", 0},
        {"num_local_experts", "a mixture of experts", 0},
        {"num_experts", "a mixture of experts", 0},
        {"n_routed_experts", "a mixture of experts", 0},
        {"num_routed_experts", "a mixture of experts", 0},
        {"n_group", "routing to few groups of experts", 1},
        {"topk_group", "routing to few groups of experts", 1},
        {"q_lora_rank", "latent attention (MLA)", 0},
        {"kv_lora_rank", "latent attention (MLA)", 0},
        {"num_nextn_predict_layers", "multi-token prediction", 0},
        {"quantization_config", "a quantised model (set formats in the workload instead)", 0},
        {"attn_logit_softcapping", "attention with capped scores", 0},
        {"use_cla", "sharing of keys and values between layers", 0},
        {"num_kv_shared_layers", "sharing of keys and values between the last layers", 0},
    };
    for (uint32_t i = 0; i < sizeof features / sizeof features[0]; i++) {
        struct json *value = model_take_set(document, features[i].key);
        int64_t count = 0;
        bool flag = true;
        struct error ignored = {0};
        if (value == NULL || knows(family->keys, features[i].key)) continue;
        if (json_as_boolean(value, &flag, &ignored) == STATUS_OK && !flag) continue;
        if (json_as_integer(value, INT64_MIN, INT64_MAX, &count, &ignored) == STATUS_OK) {
            STATUS_TRY(json_as_integer(value, 0, INT64_MAX, &count, reterr));
            if (count <= features[i].unused) continue;
        }
        return model_refuse_of(value, features[i].what, family, has_key, features[i].key, reterr);
    }
    static const char *const biases[] = {"attention_bias", "mlp_bias", "qkv_bias", "bias"};
    for (uint32_t i = 0; i < sizeof biases / sizeof biases[0]; i++) {
        bool biased = false;
        STATUS_TRY(model_take_flag(document, biases[i], false, &biased, reterr));
        if (biased && !knows(family->keys, biases[i]))
            return model_refuse(json_take(document, biases[i]), "a bias", reterr);
    }
    return STATUS_OK;
}

static enum status read_family(struct json *document, const struct model_family **ret_family,
                               struct error *reterr)
{
    const char *types[MODEL_FAMILIES_MAX] = {NULL};
    struct json *value = NULL;
    const char *type = NULL;
    STATUS_TRY(json_need(document, "model_type", &value, reterr));
    STATUS_TRY(json_as_string(value, &type, reterr));
    for (uint32_t i = 0; model_families[i].type != NULL; i++) types[i] = model_families[i].type;
    *ret_family = &model_families[name_find(type, types)];
    if ((*ret_family)->type != NULL) return STATUS_OK;
    STATUS_TRY(model_refuse_type(document, value, reterr));
    struct strbuf known = {0};
    model_types_write(&known, is_any, NULL);
    enum status const status =
        known.failed
            ? error_set(reterr, STATUS_NO_MEMORY, "", "no memory for the types of models")
            : error_set(reterr, STATUS_UNSUPPORTED, json_where(value),
                        "models of type \"%.40s\" are not modelled yet; %s are%s", type,
                        known.bytes, name_offer(type, types, "; the nearest is \"", "\"", "").text);
    strbuf_free(&known);
    return status;
}

/* Hugging Face's names of decoders whose layers are those of the family. */
static enum status check_architectures(struct json *document, const struct model_family *family,
                                       struct error *reterr)
{
    struct json *list = NULL;
    STATUS_TRY(model_take_list(document, "architectures", &list, reterr));
    for (uint32_t i = 0; list != NULL && i < json_count(list); i++) {
        const char *name = NULL;
        STATUS_TRY(json_as_string(json_at(list, i), &name, reterr));
        if (knows(family->architectures, name)) continue;
        return error_set(reterr, STATUS_UNSUPPORTED, json_where(json_at(list, i)),
                         "the architecture \"%.40s\" is not modelled for models of type \"%s\"; "
                         "%s is",
                         name, family->type, family->architectures[0]);
    }
    return STATUS_OK;
}

/* The MLP is gated, and its gate is counted as a sigmoid's: all of these cost about that. A type
 * whose activation is more than that reads the key itself. */
static enum status check_activation(struct json *document, const struct model_family *family,
                                    struct error *reterr)
{
    const char *const keys[] = {"hidden_act", family->names == NULL ? "hidden_activation"
                                                                    : family->names->activation};
    static const char *const known[] = {"silu",       "swish",     "gelu",
                                        "gelu_new",   "gelu_fast", "gelu_pytorch_tanh",
                                        "quick_gelu", "relu2",     NULL};
    for (uint32_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        struct json *value = keys[i] == NULL ? NULL : model_take_set(document, keys[i]);
        const char *name = NULL;
        if (value == NULL || knows(family->keys, keys[i])) continue;
        STATUS_TRY(json_as_string(value, &name, reterr));
        if (known[name_find(name, known)] != NULL) continue;
        return error_set(reterr, STATUS_UNSUPPORTED, json_where(value),
                         "an MLP with \"%.40s\" is not modelled in models of type %s, only ones "
                         "gated by silu, gelu or relu2, or with gelu or relu2 alone%s",
                         name, family->type,
                         name_offer(name, known, "; the nearest name is \"", "\"", NULL).text);
    }
    return STATUS_OK;
}

static enum status read_head_width(struct json *document, const struct model_keys *keys,
                                   uint64_t otherwise, struct model *model, struct error *reterr)
{
    STATUS_TRY(model_take_count(document, "num_key_value_heads", heads_max, model->heads,
                                &model->kv_heads, reterr));
    if (model->heads % model->kv_heads != 0) {
        return error_set(reterr, STATUS_INVALID,
                         json_where(json_take(document, "num_key_value_heads")),
                         "%llu key and value heads do not divide the %llu heads",
                         (unsigned long long)model->kv_heads, (unsigned long long)model->heads);
    }
    if (model_take_set(document, "head_dim") != NULL)
        return model_need_count(document, "head_dim", head_width_max, &model->head_width, reterr);
    if (otherwise != 0) {
        model->head_width = otherwise;
        return STATUS_OK;
    }
    if (model->width % model->heads != 0) {
        return error_set(reterr, STATUS_INVALID, json_where(json_take(document, keys->heads)),
                         "%llu heads do not divide the width %llu; head_dim is needed",
                         (unsigned long long)model->heads, (unsigned long long)model->width);
    }
    model->head_width = model->width / model->heads;
    return STATUS_OK;
}

/* The key by which a file says a dimension. The other name then says nothing. */
static const char *key_in(struct json *document, const char *first, const char *otherwise)
{
    if (model_take_set(document, first) == NULL) return otherwise;
    (void)json_take(document, otherwise);
    return first;
}

/* The keys of a file, of those that its type has. */
static struct model_keys keys_in(struct json *document, const struct model_family *family)
{
    static const struct model_keys llama = {"num_hidden_layers", "hidden_size",
                                            "num_attention_heads", "intermediate_size", NULL};
    const struct model_keys *first = family->first_names;
    struct model_keys keys = family->names != NULL ? *family->names : llama;
    if (first == NULL) return keys;
    keys.layers = key_in(document, first->layers, keys.layers);
    keys.width = key_in(document, first->width, keys.width);
    keys.heads = key_in(document, first->heads, keys.heads);
    return keys;
}

static enum status read_dimensions(struct json *document, const struct model_family *family,
                                   struct model *model, struct error *reterr)
{
    struct model_keys const keys = keys_in(document, family);
    STATUS_TRY(model_need_count(document, keys.layers, layers_max, &model->layers, reterr));
    STATUS_TRY(model_need_count(document, keys.width, width_max, &model->width, reterr));
    STATUS_TRY(model_need_count(document, keys.heads, heads_max, &model->heads, reterr));
    if (family->names == NULL)
        STATUS_TRY(
            model_need_count(document, keys.mlp_width, width_max, &model->mlp_width, reterr));
    else if (keys.mlp_width != NULL)
        STATUS_TRY(model_take_count(document, keys.mlp_width, width_max, 4 * model->width,
                                    &model->mlp_width, reterr));
    STATUS_TRY(
        model_need_count(document, "vocab_size", vocabulary_max, &model->vocabulary, reterr));
    return read_head_width(document, &keys, family->head_width, model, reterr);
}

enum status model_read_config(struct arena *arena, struct json *document, const char *name,
                              struct model *ret_model, struct error *reterr)
{
    struct model model = {.kind = MODEL_DECODER, .matrices = 3};
    const struct model_family *family = NULL;
    STATUS_TRY(json_as_object(document, reterr));
    STATUS_TRY(read_family(document, &family, reterr));
    STATUS_TRY(refuse_features(document, family, reterr));
    STATUS_TRY(check_architectures(document, family, reterr));
    STATUS_TRY(check_activation(document, family, reterr));
    STATUS_TRY(read_dimensions(document, family, &model, reterr));
    STATUS_TRY(layer_arrays_make(arena, model.layers, &model.by_layer, reterr));
    STATUS_TRY(model_read_windows(document, family, &model, reterr));
    STATUS_TRY(model_read_positions(document, family, &model, reterr));
    STATUS_TRY(model_take_flag(document, "tie_word_embeddings", family->tied, &model.tied, reterr));
    if (family->read != NULL) STATUS_TRY(family->read(document, &model, reterr));
    STATUS_TRY(model_end(document, family, reterr));
    layer_arrays_trim(&model.by_layer, model.layers);
    model.name = arena_text(arena, name);
    if (model.name == NULL)
        return error_set(reterr, STATUS_NO_MEMORY, "", "no memory for the model's name");
    *ret_model = model;
    return STATUS_OK;
}

static const char *const mlp_names[] = {"mlp", NULL};

#define SIZE(text, member, low, high, ...)                                                         \
    KEY_ROW(struct model, text, key_integer, member, .least = (low), .most = (high), __VA_ARGS__)
const struct key model_mlp_keys[] = {
    KEY("kind", key_choice, .needed = true, .choices = mlp_names,
        .help = "MLPs without norms, embedding or head"),
    SIZE("D", width, 1, width_max, .needed = true, .help = "width of the model"),
    SIZE("F", mlp_width, 1, width_max, .needed = true, .help = "width of an MLP"),
    SIZE("layers", layers, 1, layers_max, .needed = true, .help = "MLPs, one after the other"),
    SIZE("matrices", matrices, 2, 3, .preset = 2, .help = "matrices of an MLP; a gated one has 3"),
    {0},
};

/* A config.json in the scenario. Without a name the model is called by its type and sizes. */
static enum status read_config_object(struct arena *arena, struct json *object,
                                      struct model *ret_model, struct error *reterr)
{
    struct json *value = model_take_set(object, "_name_or_path");
    const char *name = NULL;
    if (value != NULL) STATUS_TRY(json_as_string(value, &name, reterr));
    STATUS_TRY(model_read_config(arena, object, name == NULL ? "" : name, ret_model, reterr));
    if (name != NULL && name[0] != '\0') return STATUS_OK;
    STATUS_TRY(json_as_string(json_take(object, "model_type"), &name, reterr));
    ret_model->name =
        arena_format(arena, "%s of %llu layers of %llu", name,
                     (unsigned long long)ret_model->layers, (unsigned long long)ret_model->width);
    if (ret_model->name == NULL)
        return error_set(reterr, STATUS_NO_MEMORY, "", "no memory for the model's name");
    return STATUS_OK;
}

/* What an object that is no config.json may be: there is one kind. */
static enum status kind_check(struct json *object, struct error *reterr)
{
    struct json *const kind = json_take(object, "kind");
    const char *name = NULL;
    uint32_t which = 0;
    struct error ignored;
    if (kind == NULL)
        return error_set(reterr, STATUS_INVALID, json_where(object),
                         "the object has neither \"kind\": \"%s\", which is a bare MLP, nor the "
                         "\"model_type\" of a config.json",
                         mlp_names[0]);
    STATUS_TRY(json_as_string(kind, &name, reterr));
    if (json_choice(kind, mlp_names, &which, &ignored) == STATUS_OK) return STATUS_OK;
    return error_set(reterr, STATUS_INVALID, json_where(kind),
                     "\"%.40s\" is no kind of model; \"%s\" is a bare MLP, and others are given "
                     "by name (`podsim list models`) or have the \"model_type\" of a config.json",
                     name, mlp_names[0]);
}

enum status model_read_object(struct arena *arena, struct json *object, struct model *ret_model,
                              struct error *reterr)
{
    struct model model = {.kind = MODEL_MLP};
    if (json_kind(object) == JSON_OBJECT && json_take(object, "model_type") != NULL)
        return read_config_object(arena, object, ret_model, reterr);
    struct key_reader const reader = {.arena = arena, .object = object, .base = &model};
    if (json_kind(object) == JSON_OBJECT) STATUS_TRY(kind_check(object, reterr));
    STATUS_TRY(keys_read(model_mlp_keys, &reader, reterr));
    model.name = arena_format(arena, "mlp %llu x %llu", (unsigned long long)model.width,
                              (unsigned long long)model.mlp_width);
    if (model.name == NULL)
        return error_set(reterr, STATUS_NO_MEMORY, "", "no memory for the model's name");
    *ret_model = model;
    return STATUS_OK;
}

/* The file that a path means, or NULL if there is none: itself, or its config.json. */
static enum status file_at(struct arena *arena, const char *folder, const char *path,
                           const char **ret_file, struct error *reterr)
{
    struct stat status;
    const char *full = folder == NULL || path[0] == '/'
                           ? arena_text(arena, path)
                           : arena_format(arena, "%s/%s", folder, path);
    *ret_file = NULL;
    if (full == NULL) return error_set(reterr, STATUS_NO_MEMORY, "", "no memory for a path");
    if (stat(full, &status) != 0) return STATUS_OK;
    if (S_ISDIR(status.st_mode)) {
        full = arena_format(arena, "%s/config.json", full);
        if (full == NULL) return error_set(reterr, STATUS_NO_MEMORY, "", "no memory for a path");
        if (stat(full, &status) != 0) return STATUS_OK;
    }
    if (path_is_json(full)) *ret_file = full;
    return STATUS_OK;
}

enum status model_read_name_or_path(struct arena *arena, const char *name_or_path,
                                    const char *base_folder, const char *where,
                                    struct model *ret_model, struct error *reterr)
{
    struct json *document = NULL;
    const char *path = NULL;
    const struct embed_file *embedded = embed_find(model_files, model_files_count, name_or_path);
    if (embedded != NULL) {
        STATUS_TRY(json_read_text(arena, embedded->name, embedded->bytes, embedded->size_bytes,
                                  &document, reterr));
    } else {
        STATUS_TRY(file_at(arena, base_folder, name_or_path, &path, reterr));
        if (path == NULL && base_folder != NULL)
            STATUS_TRY(file_at(arena, NULL, name_or_path, &path, reterr));
        if (path == NULL) {
            const char *names[MODEL_NAMES_MAX + 1] = {NULL};
            for (uint32_t i = 0; i < MODEL_NAMES_MAX; i++) names[i] = model_name_at(i);
            return error_set(reterr, STATUS_NOT_FOUND, where,
                             "no model is called \"%.80s\", and there is no such .json file or "
                             "folder with a config.json%s",
                             name_or_path,
                             name_offer(name_or_path, names, "; the nearest name is \"", "\"",
                                        "; `podsim list models` has the names")
                                 .text);
        }
        STATUS_TRY(json_read_file(arena, path, &document, reterr));
    }
    enum status const status = model_read_config(arena, document, name_or_path, ret_model, reterr);
    json_free(document);
    if (status != STATUS_OK && path != NULL) error_in_file(reterr, path);
    return status;
}
