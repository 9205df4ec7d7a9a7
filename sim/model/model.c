#include "sim/model/model.h"

#include <string.h>

#define FACT(at, type, name)                                                                       \
    {#at #name, offsetof(struct model, at name), sizeof(((struct model *)NULL)->at name)},
#define OTHER(type, name)
#define PART(type, name, TABLE) TABLE(FACT, OTHER, name.)
const struct model_fact model_facts[] = {MODEL_TABLE(FACT, OTHER, PART){NULL, 0, 0}};
#undef FACT
#undef OTHER
#undef PART

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
