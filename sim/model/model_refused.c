/*
 * model_refused.c: types of models whose layers are known, and are not those a step is made of.
 */
#include <stdbool.h>
#include <stddef.h>

#include "sim/base/json.h"
#include "sim/base/name.h"
#include "sim/model/model_read_parts.h"

/* `key` is what a config.json says it with; NULL: the type alone says it. A type may have several
 * rows, one a key. What Hugging Face's class does without the key is `by_default`. */
struct refused_type {
    const char *type;
    const char *key;
    const char *what;
    bool by_default;
};

static const char parallel[] = "a block whose attention and MLP read the same norm, in parallel,";
static const char two_norms[] =
    "a block whose attention and MLP run in parallel, each behind a norm of its own,";
static const char behind[] = "a norm behind attention and MLP, on what they add,";
static const char chunked[] = "attention within chunks of a sequence";
static const char linear[] = "linear attention";
static const char gated[] = "a shared expert behind a gate of its own";
static const char state_space[] = "a state space layer";

static const struct refused_type refused[] = {
    {"cohere", NULL, parallel, true},
    {"cohere2", NULL, parallel, true},
    {"gpt_neox", "use_parallel_residual", two_norms, true},
    {"gptj", NULL, parallel, true},
    {"phi", NULL, parallel, true},
    {"codegen", NULL, parallel, true},
    {"falcon", "new_decoder_architecture", two_norms, false},
    {"falcon", "parallel_attn", parallel, true},
    {"stablelm", "use_parallel_residual", parallel, false},
    {"gemma2", NULL, behind, true},
    {"gemma3_text", NULL, behind, true},
    {"gemma3", NULL, behind, true},
    {"olmo2", NULL, behind, true},
    {"olmo3", NULL, behind, true},
    {"glm4", NULL, behind, true},
    {"llama4_text", "attention_chunk_size", chunked, true},
    {"llama4", "attention_chunk_size", chunked, true},
    {"minimax_text_01", "attn_type_list", linear, true},
    {"minimax", "layer_types", linear, true},
    {"minimax", "attn_type_list", linear, true},
    {"qwen3_next", "linear_num_value_heads", linear, true},
    {"qwen2_moe", "shared_expert_intermediate_size", gated, true},
    {"mamba", "state_size", state_space, true},
    {"mamba2", "state_size", state_space, true},
    {"jamba", "mamba_d_state", state_space, true},
};

/* The member of the document, or of the language model inside it. */
static struct json *member_of(struct json *document, const char *key)
{
    struct json *text = model_take_set(document, "text_config");
    struct json *value = model_take_set(document, key);
    return value != NULL || text == NULL ? value : model_take_set(text, key);
}

static enum status refuse_row(const struct refused_type *row, struct json *place,
                              struct error *reterr)
{
    return error_set(reterr, STATUS_UNSUPPORTED, json_where(place),
                     "%s is not modelled yet; models of type \"%s\" have it", row->what, row->type);
}

/* First what the file says, then what it leaves to the default. A type whose key is off is refused
 * for no reason of these. */
enum status model_refuse_type(struct json *document, struct json *type, struct error *reterr)
{
    const char *name = NULL;
    const struct refused_type *by_default = NULL;
    STATUS_TRY(json_as_string(type, &name, reterr));
    for (uint32_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        const struct refused_type *row = &refused[i];
        if (!name_same(row->type, name)) continue;
        struct json *value = row->key == NULL ? NULL : member_of(document, row->key);
        if (value != NULL && !model_is_off(value)) return refuse_row(row, value, reterr);
        if (value == NULL && row->by_default && by_default == NULL) by_default = row;
    }
    return by_default == NULL ? STATUS_OK : refuse_row(by_default, type, reterr);
}
