#include "sim/model/model.h"

#include <string.h>

/* tests/unit/test_model_same.c finds a member of struct model that has no row. */
const struct model_fact model_facts[] = {
#define FACT(member)                                                                               \
    {                                                                                              \
#member, offsetof(struct model, member), sizeof(((struct model *)NULL)->member)            \
    }
    FACT(kind),
    FACT(layers),
    FACT(width),
    FACT(mlp_width),
    FACT(matrices),
    FACT(heads),
    FACT(kv_heads),
    FACT(head_width),
    FACT(value_width),
    FACT(vocabulary),
    FACT(tied),
    FACT(vectors.qk),
    FACT(vectors.v),
    FACT(vectors.attention),
    FACT(vectors.mlp),
    FACT(vectors.head),
    FACT(norms.count),
    FACT(norms.behind),
    FACT(norms.biases),
    FACT(norms.qk),
    FACT(parallel),
    FACT(positions.learned),
    FACT(attends.window),
    FACT(mtp_modules),
    FACT(experts.count),
    FACT(experts.top_k),
    FACT(experts.width),
    FACT(experts.shared),
    FACT(experts.dense_layers),
    FACT(experts.step),
    FACT(experts.groups),
    FACT(experts.top_groups),
    FACT(experts.router_biased),
    FACT(experts.biased),
    FACT(experts.shared_gated),
    FACT(latent.query_rank),
    FACT(latent.kv_rank),
    FACT(latent.plain),
    FACT(latent.rope),
#undef FACT
    {NULL, 0, 0},
};

/* The model with sizes that no layer has left out, and with defaults filled in. */
static struct model plain_of(const struct model *model)
{
    struct model plain = *model;
    plain.value_width = model_value_width(model);
    if (model_dense_layers(model) == 0) plain.mlp_width = 0;
    return plain;
}

bool model_same(const struct model *model, const struct model *other)
{
    struct model const one = plain_of(model), two = plain_of(other);
    for (const struct model_fact *fact = model_facts; fact->name != NULL; fact++)
        if (memcmp((const char *)&one + fact->at, (const char *)&two + fact->at,
                   fact->size_bytes) != 0)
            return false;
    for (uint64_t layer = 0; layer < model->layers; layer++)
        if (!layer_kinds_equal(model_layer_kind(&one, layer, UINT64_MAX),
                               model_layer_kind(&two, layer, UINT64_MAX)))
            return false;
    return true;
}

uint64_t model_window_layers(const struct model *model, uint64_t length)
{
    uint64_t count = 0;
    for (uint64_t layer = 0; layer < model->layers; layer++)
        count += model_layer_kind(model, layer, length).windowed;
    return count;
}

uint64_t model_borrowing_layers(const struct model *model)
{
    uint64_t count = 0;
    for (uint64_t layer = 0; layer < model->layers; layer++)
        count += model_layer_kind(model, layer, 0).borrows;
    return count;
}
