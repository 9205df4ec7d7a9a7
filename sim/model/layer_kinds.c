#include "sim/model/layer_kinds.h"

#include <stdio.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/model/model.h"

#define COUNT(name, text) +1
_Static_assert(sizeof(struct layer_kind) == (3 LAYER_FLAGS(COUNT)) * sizeof(bool),
               "flags alone, without gaps");
#undef COUNT

static bool has_experts(const struct model_experts *experts, uint64_t layer)
{
    return experts->count != 0 && layer >= experts->dense_layers &&
           (experts->step == 0 || (layer - experts->dense_layers) % experts->step == 0);
}

enum status layer_arrays_make(struct arena *arena, uint64_t layers, struct layer_arrays *ret_arrays,
                              struct error *reterr)
{
    void *memory = NULL;
#define MAKE(name, text)                                                                           \
    STATUS_TRY(arena_try(arena, layers, sizeof *ret_arrays->name, &memory, reterr));               \
    ret_arrays->name = memory;
    LAYER_FLAGS(MAKE)
#undef MAKE
    return STATUS_OK;
}

void layer_arrays_trim(struct layer_arrays *arrays, uint64_t layers)
{
#define TRIM(name, text)                                                                           \
    if (memchr(arrays->name, true, layers) == NULL) arrays->name = NULL;
    LAYER_FLAGS(TRIM)
#undef TRIM
}

struct layer_kind model_layer_kind(const struct model *model, uint64_t layer, uint64_t keys)
{
    const struct layer_arrays *arrays = &model->by_layer;
    struct layer_kind kind = {.experts = has_experts(&model->experts, layer)};
#define SET(name, text) kind.name = arrays->name != NULL && arrays->name[layer];
    LAYER_FLAGS(SET)
#undef SET
    if (model->attends.window >= keys) kind.windowed = false;
    return kind;
}

/* Below 0: the first comes before the other. */
static int compare(struct layer_kind one, struct layer_kind other)
{
    return memcmp(&one, &other, sizeof one);
}

bool layer_kinds_equal(struct layer_kind one, struct layer_kind other)
{
    return compare(one, other) == 0;
}

/* The place of a kind, or of the first kind behind it. */
static uint32_t index_of(const struct layer_kinds *kinds, struct layer_kind kind)
{
    uint32_t at = 0;
    while (at < kinds->count && compare(kinds->kind[at], kind) < 0) at++;
    return at;
}

static void kind_insert(struct layer_kinds *kinds, uint32_t at, struct layer_kind kind,
                        uint64_t layer)
{
    for (uint32_t i = kinds->count++; i > at; i--) {
        kinds->kind[i] = kinds->kind[i - 1];
        kinds->layers[i] = kinds->layers[i - 1];
        kinds->first[i] = kinds->first[i - 1];
    }
    kinds->kind[at] = kind;
    kinds->layers[at] = 0;
    kinds->first[at] = layer;
}

static struct layer_kind kind_of(const struct layer_kinds *kinds, const struct model *model,
                                 uint64_t layer)
{
    struct layer_kind kind = model_layer_kind(model, layer, kinds->keys);
    kind.keeps = layer_set_has(&kinds->kept, layer);
    kind.grouped = kind.keeps && kinds->grouped;
    return kind;
}

/* Stops at a layer of one kind too many, and returns its number; else the number of layers. */
static uint64_t kinds_find(const struct model *model, uint64_t keys, struct layer_kinds *kinds)
{
    struct layer_kind former = {.experts = false};
    uint64_t layer = 0;
    uint32_t at = 0;
    kinds->keys = keys;
    kinds->count = 0;
    kinds->changes = 0;
    for (; layer < model->layers; layer++) {
        struct layer_kind const kind = kind_of(kinds, model, layer);
        bool const changes = layer == 0 || !layer_kinds_equal(kind, former);
        former = kind;
        if (changes) at = index_of(kinds, kind);
        kinds->changes += changes && layer > 0;
        if (at == kinds->count || !layer_kinds_equal(kinds->kind[at], kind)) {
            if (kinds->count == LAYER_KINDS_MAX) break;
            kind_insert(kinds, at, kind, layer);
        }
        kinds->layers[at]++;
    }
    return layer;
}

enum status model_layer_kinds_check(const struct model *model, const char *where,
                                    struct error *reterr)
{
    struct layer_kinds kinds = {.kept.any = false};
    uint64_t const found = kinds_find(model, UINT64_MAX, &kinds);
    if (found == model->layers) return STATUS_OK;
    return error_set(reterr, STATUS_LIMIT, where,
                     "layers of %.60s are of more than %d kinds: layer %llu is like none before "
                     "it; models with layers of %d kinds or fewer are modelled",
                     model->name, LAYER_KINDS_MAX, (unsigned long long)found, LAYER_KINDS_MAX);
}

struct layer_kinds model_layer_kinds(const struct model *model, uint64_t keys)
{
    struct layer_kinds kinds = {.kept.any = false};
    uint64_t const found = kinds_find(model, keys, &kinds);
    SIM_ASSERT(found == model->layers);
    return kinds;
}

enum status layer_kinds_find(const struct model *model, uint64_t keys, const char *where,
                             struct layer_kinds *kinds, struct error *reterr)
{
    if (kinds_find(model, keys, kinds) == model->layers) return STATUS_OK;
    return error_set(reterr, STATUS_LIMIT, where,
                     "layers of %.60s that are recomputed, and layers that are not, are of more "
                     "than %d kinds; leave the key out",
                     model->name, LAYER_KINDS_MAX);
}

uint32_t layer_kinds_at(const struct layer_kinds *kinds, const struct model *model, uint64_t layer)
{
    return kinds->count == 1 ? 0 : index_of(kinds, kind_of(kinds, model, layer));
}

static void text_add(struct layer_kind_text *text, const char *words)
{
    size_t const length = strlen(text->text);
    (void)snprintf(text->text + length, sizeof text->text - length, "%s", words);
}

struct layer_kind_text layer_kind_text(struct layer_kind kind)
{
    struct layer_kind_text text = {""};
    if (kind.experts) text_add(&text, LAYER_EXPERTS_TEXT);
#define ADD(name, words)                                                                           \
    if (kind.name) text_add(&text, words);
    LAYER_FLAGS(ADD)
#undef ADD
    if (kind.keeps) text_add(&text, kind.grouped ? LAYER_GROUPED_TEXT : LAYER_KEPT_TEXT);
    return text;
}
