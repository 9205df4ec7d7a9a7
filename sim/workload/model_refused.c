/*
 * model_refused.c: types of models whose layers are known, and are not those a step is made of.
 */
#include <stddef.h>
#include <string.h>

#include "sim/base/json.h"
#include "sim/workload/model_read_parts.h"

/* `key` is what a config.json says it with; NULL: the type alone says it. A type may have several
 * rows, one a key. */
struct refused_type {
    const char *type;
    const char *key;
    const char *what;
};

static const char parallel[] = "a block whose attention and MLP read the same norm, in parallel,";
static const char behind[] = "a norm behind attention and MLP, on what they add,";
static const char chunked[] = "attention within chunks of a sequence";
static const char linear[] = "linear attention";
static const char gated[] = "a shared expert behind a gate of its own";
static const char state_space[] = "a state space layer";

static const struct refused_type refused[] = {
    {"cohere", NULL, parallel},
    {"cohere2", NULL, parallel},
    {"gpt_neox", "use_parallel_residual", parallel},
    {"gptj", NULL, parallel},
    {"phi", NULL, parallel},
    {"codegen", NULL, parallel},
    {"falcon", "new_decoder_architecture", parallel},
    {"falcon", "parallel_attn", parallel},
    {"stablelm", "use_parallel_residual", parallel},
    {"gemma2", NULL, behind},
    {"gemma3_text", NULL, behind},
    {"gemma3", NULL, behind},
    {"olmo2", NULL, behind},
    {"olmo3", NULL, behind},
    {"glm4", NULL, behind},
    {"llama4_text", "attention_chunk_size", chunked},
    {"llama4", "attention_chunk_size", chunked},
    {"minimax_text_01", "attn_type_list", linear},
    {"minimax", "layer_types", linear},
    {"minimax", "attn_type_list", linear},
    {"qwen3_next", "linear_num_value_heads", linear},
    {"qwen2_moe", "shared_expert_intermediate_size", gated},
    {"mamba", "state_size", state_space},
    {"mamba2", "state_size", state_space},
    {"jamba", "mamba_d_state", state_space},
};

/* The member of the document, or of the language model inside it. */
static struct json *member_of(struct json *document, const char *key)
{
    struct json *text = model_take_set(document, "text_config");
    struct json *value = model_take_set(document, key);
    return value != NULL || text == NULL ? value : model_take_set(text, key);
}

enum status model_refuse_type(struct json *document, struct json *type, struct error *reterr)
{
    const char *name = NULL;
    const struct refused_type *found = NULL;
    STATUS_TRY(json_as_string(type, &name, reterr));
    for (uint32_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        if (strcmp(refused[i].type, name) != 0) continue;
        struct json *value = refused[i].key == NULL ? NULL : member_of(document, refused[i].key);
        found = &refused[i];
        if (value != NULL && !model_is_off(value))
            return error_set(reterr, STATUS_UNSUPPORTED, json_where(value),
                             "%s is not modelled yet; models of type \"%s\" have it", found->what,
                             name);
    }
    if (found == NULL) return STATUS_OK;
    return error_set(reterr, STATUS_UNSUPPORTED, json_where(type),
                     "%s is not modelled yet; models of type \"%s\" have it", found->what, name);
}
