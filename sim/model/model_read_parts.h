/*
 * model_read_parts.h: what the readers of config.json share: members, bounds, and the families of
 * models whose layers are known.
 */
#ifndef SIM_MODEL_MODEL_READ_PARTS_H
#define SIM_MODEL_MODEL_READ_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/status.h"
#include "sim/model/model.h"

struct json;
struct strbuf;

/* Bounds under which no count below 2^64 overflows: 3·D·F·L is below 2^56. */
enum { width_max = 1 << 20, layers_max = 1 << 14 };
static const int64_t heads_max = 1 << 14;
static const int64_t head_width_max = 1 << 12;
static const int64_t vocabulary_max = 1 << 26;
static const int64_t experts_max = 1 << 12;

enum { MODEL_FAMILIES_MAX = 64 };

/* What a config.json calls a model's dimensions. Without `mlp_width` the type's reader sets it. */
struct model_keys {
    const char *layers, *width, *heads, *mlp_width, *activation;
};

/* Which layers attend to a window of keys, as transformers reads it. */
enum model_windows {
    MODEL_WINDOWS_NONE,     /* What says so is refused. */
    MODEL_WINDOWS_ALL,      /* All, where `sliding_window` is a number. */
    MODEL_WINDOWS_USED,     /* All, where `use_sliding_window` is set besides. */
    MODEL_WINDOWS_ABOVE,    /* Then those above the first `max_window_layers`, or what `layer_types`
                               says. */
    MODEL_WINDOWS_PERIODIC, /* All but each n-th, or what `layer_types` says. */
};

/* Models of one `model_type`. */
struct model_family {
    const char *type;
    const char *const *architectures;
    bool tied;                  /* Where the config does not say: the default in transformers. */
    const char *const *keys;    /* What `read` reads; features among them are refused of others. */
    const char *const *ignored; /* What changes no op, count or byte in models of this type; NULL:
                                   nothing beyond what changes none in any. */
    /* Sets facts, and flags in the arrays of `by_layer`, which has all of them, unset. */
    enum status (*read)(struct json *document, struct model *model, struct error *reterr);
    const struct model_keys *names; /* NULL: a llama's. */
    /* Further names of layers, width and heads, which count where a file has them; NULL: none. */
    const struct model_keys *first_names;
    enum model_windows windows;
    uint64_t window; /* Where the config does not say; 0: none. */
    /* Of `windows` that are periodic: n where `sliding_window_pattern` does not say. */
    uint32_t full_every;
    uint64_t head_width; /* Where the config does not say, in transformers; 0: width / heads. */
    bool stretched;      /* `max_position_embeddings` is what `rope_scaling` has made already. */
};

extern const struct model_family model_families[]; /* Ended by a NULL type. */

/* A type whose layers are known and not modelled. It may have several rows, one a key. */
struct model_refused_type {
    const char *type;
    const char *key;  /* Of the config.json that asks for such layers; NULL: the type alone does. */
    const char *what; /* "linear attention" */
};

extern const struct model_refused_type model_refused_types[]; /* Ended by a NULL type. */

/* Families with experts (model_moe.c). */
enum status model_read_mixtral(struct json *document, struct model *model, struct error *reterr);
enum status model_read_qwen3_moe(struct json *document, struct model *model, struct error *reterr);
enum status model_read_deepseek_v2(struct json *document, struct model *model,
                                   struct error *reterr);
enum status model_read_deepseek_v3(struct json *document, struct model *model,
                                   struct error *reterr);
enum status model_read_hunyuan(struct json *document, struct model *model, struct error *reterr);
enum status model_read_gpt_oss(struct json *document, struct model *model, struct error *reterr);

/* Families with attention and MLP side by side (model_parallel.c). */
enum status model_read_cohere(struct json *document, struct model *model, struct error *reterr);
enum status model_read_gpt_neox(struct json *document, struct model *model, struct error *reterr);
enum status model_read_gptj(struct json *document, struct model *model, struct error *reterr);
enum status model_read_phi(struct json *document, struct model *model, struct error *reterr);
enum status model_read_falcon(struct json *document, struct model *model, struct error *reterr);

/* Models of type mpt (model_mpt.c). */
enum status model_read_mpt(struct json *document, struct model *model, struct error *reterr);

/* The member if it is there and says something: Hugging Face writes null for "not used". */
struct json *model_take_set(struct json *object, const char *key);
enum status model_need_count(struct json *document, const char *key, int64_t most,
                             uint64_t *ret_count, struct error *reterr);
enum status model_take_count(struct json *document, const char *key, int64_t most,
                             uint64_t otherwise, uint64_t *ret_count, struct error *reterr);
enum status model_take_flag(struct json *document, const char *key, bool otherwise, bool *ret_flag,
                            struct error *reterr);
/* Sets `window` and `windowed` (model_window.c). */
enum status model_read_windows(struct json *document, const struct model_family *family,
                               struct model *model, struct error *reterr);
/* Sets `positions.most` (model_positions.c). */
enum status model_read_positions(struct json *document, const struct model_family *family,
                                 struct model *model, struct error *reterr);
/* NULL if it says nothing; refused if it is no list. */
enum status model_take_list(struct json *document, const char *key, struct json **ret_list,
                            struct error *reterr);
/* Refuses a type whose layers are known but not modelled, at the key that says what they are; other
 * types are left to the caller. `type` is the value of "model_type". */
enum status model_refuse_type(struct json *document, struct json *type, struct error *reterr);
/* Whether a value says that a model does without: null, false, 0, or nothing in a list. */
bool model_is_off(struct json *value);
/* Refuses the first key that nothing has read, unless it is off or known to change nothing. */
enum status model_end(struct json *document, const struct model_family *family,
                      struct error *reterr);
/* "... is not modelled yet", at the value's place. */
enum status model_refuse(struct json *value, const char *what, struct error *reterr);

/* Whether models of a family have something; `which` says which of several. */
typedef bool model_family_has(const struct model_family *family, const void *which);
/* "llama, mistral and gemma": the types of the families that have something. */
void model_types_write(struct strbuf *text, model_family_has *has, const void *which);
/* "... is not modelled in models of type ...; it is in those of ..." */
enum status model_refuse_of(struct json *value, const char *what, const struct model_family *family,
                            model_family_has *has, const void *which, struct error *reterr);

/* Norms are layernorms with biases, in kernels of a library. */
static inline void model_set_layernorms(struct model *model)
{
    model->norms.centred = true;
    model->norms.biases = 1;
}

#endif
