/* families.c: parts of layers that some types of Hugging Face have, and what others lack of them.
 */
#include <stdlib.h>

#include "sim/base/json.h"
#include "sim/base/name.h"
#include "tools/podsim/import/import.h"

struct family {
    const char *type;
    uint32_t period; /* Layers from one without a window to the next; 0: it has no windows. */
    bool caps, normed_behind, sinks, qk_normed;
};

static const struct family families[] = {
    {"gemma", 0, false, false, false, false},
    {"gemma2", 2, true, true, false, false},
    {"gemma3_text", 6, true, true, false, true},
    {"gpt_oss", 2, false, false, true, false},
    {"olmo3", 4, false, true, false, true},
    {NULL, 0, false, false, false, false}, /* All others. */
};

static const struct family *family_of(const char *type)
{
    const struct family *family = families;
    while (family->type != NULL && !name_same(family->type, type)) family++;
    return family;
}

static bool is_set(const char *number)
{
    return number != NULL && strtod(number, NULL) > 0;
}

/* Parts that layers of other types have, too: what a family of its own has none of. */
static void others_say(struct import *import, const struct family *family)
{
    static const char lacks[] = "layers of this kind have none in podsim";
    const struct import_facts *facts = &import->facts;
    const struct {
        bool is_lacking;
        const void *fact;
    } gaps[] = {
        {facts->sizes.qkv_biased && !family->sinks, &facts->sizes.qkv_biased},
        {facts->sizes.qk_norm && !family->qk_normed, &facts->sizes.qk_norm},
        {facts->experts.router_biased && !family->sinks, &facts->experts.router_biased},
        {facts->experts.count > 0 && !family->sinks, &facts->experts.count},
        {facts->experts.shared_width > 0, &facts->experts.shared},
        {facts->experts.dense_layers > 0, &facts->experts.dense_layers},
        {facts->experts.groups > 1, &facts->experts.groups},
        {facts->sizes.mtp > 0, &facts->sizes.mtp},
        {facts->mla.is_used > 0, &facts->sizes.positions},
    };
    for (uint32_t i = 0; family->type != NULL && i < sizeof gaps / sizeof *gaps; i++)
        if (gaps[i].is_lacking) import_lacks(import, gaps[i].fact, lacks);
}

void import_family_gaps(struct import *import, const char *type)
{
    const struct family *family = family_of(type);
    const struct import_parts *parts = &import->facts.parts;
    const struct {
        bool is_lacking;
        const void *fact;
        const char *what;
    } gaps[] = {
        {parts->window > 0 && family->period == 0, &parts->window, "attention within a window"},
        {parts->window > 0 && parts->window_period > 0 && family->period != parts->window_period,
         &parts->window_period, "which layers attend to all tokens before"},
        {is_set(parts->score_cap) && !family->caps, &parts->score_cap, "a cap of the scores"},
        {is_set(parts->logit_cap) && !family->caps, &parts->logit_cap, "a cap of the logits"},
        {parts->attention_normed && !family->normed_behind, &parts->attention_normed,
         "a norm behind attention"},
        {parts->mlp_normed && !family->normed_behind, &parts->mlp_normed, "a norm behind the MLP"},
        {parts->sinks && !family->sinks, &parts->sinks, "a learned term of each softmax"},
        {parts->mlp_biased && !family->sinks, &parts->mlp_biased, "biases of the MLP"},
    };
    for (uint32_t i = 0; i < sizeof gaps / sizeof *gaps; i++)
        if (gaps[i].is_lacking) import_lacks(import, gaps[i].fact, gaps[i].what);
    others_say(import, family);
}

static void put_window(struct json_writer *json, uint64_t tokens)
{
    json_write_key(json, "sliding_window");
    json_write_unsigned(json, tokens);
}

static void put_cap(struct json_writer *json, const char *key, const char *cap)
{
    json_write_key(json, key);
    if (is_set(cap))
        json_write_real(json, strtod(cap, NULL));
    else
        json_write_null(json);
}

void import_family_write(struct json_writer *json, const struct import_facts *facts,
                         const char *type)
{
    const struct family *family = family_of(type);
    if (family->period > 0 && facts->parts.window > 0) put_window(json, facts->parts.window);
    if (family->caps) put_cap(json, "attn_logit_softcapping", facts->parts.score_cap);
    if (family->caps) put_cap(json, "final_logit_softcapping", facts->parts.logit_cap);
    if (family->sinks) json_write_key(json, "attention_bias");
    if (family->sinks) json_write_boolean(json, facts->sizes.qkv_biased > 0);
}
