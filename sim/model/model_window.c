/*
 * Layers whose queries see a window of keys only: transformers' `sliding_window`, of which a
 * query's own key is one (its mask lets a key through that lies less than a window before the
 * query).
 */
#include <stddef.h>

#include "sim/base/counted.h"
#include "sim/base/json.h"
#include "sim/base/name.h"
#include "sim/model/model_read_parts.h"

static const int64_t window_max = INT64_C(1) << 34;
static const uint64_t qwen_full_layers = 28; /* `max_window_layers` where it is left out. */

static bool has_windows(const struct model_family *family, const void *nothing)
{
    (void)nothing;
    return family->windows != MODEL_WINDOWS_NONE;
}

/* Whether `layer_types` may say which layers have windows. */
static bool has_list(const struct model_family *family, const void *nothing)
{
    (void)nothing;
    return family->windows == MODEL_WINDOWS_ABOVE || family->windows == MODEL_WINDOWS_PERIODIC;
}

/* The window, or 0. Of models that have none, what says otherwise is refused. */
static enum status read_window(struct json *document, const struct model_family *family,
                               uint64_t *ret_window, struct error *reterr)
{
    struct json *value = json_take(document, "sliding_window");
    bool const asks =
        family->windows == MODEL_WINDOWS_USED || family->windows == MODEL_WINDOWS_ABOVE;
    bool used = !asks;
    *ret_window = family->window;
    STATUS_TRY(model_take_flag(document, "use_sliding_window", used, &used, reterr));
    if (value != NULL) *ret_window = 0;
    if (model_take_set(document, "sliding_window") != NULL)
        STATUS_TRY(model_need_count(document, "sliding_window", window_max, ret_window, reterr));
    if (!used) *ret_window = 0;
    if (*ret_window != 0 && family->windows == MODEL_WINDOWS_NONE)
        return model_refuse_of(value, "sliding-window attention", family, has_windows, NULL,
                               reterr);
    return STATUS_OK;
}

/* What the family says where no list does: a number of layers, which `windows` gives a meaning. */
static bool is_windowed(enum model_windows windows, uint64_t full_layers, uint64_t layer)
{
    if (windows == MODEL_WINDOWS_ABOVE) return layer >= full_layers;
    if (windows == MODEL_WINDOWS_PERIODIC) return (layer + 1) % full_layers != 0;
    return windows != MODEL_WINDOWS_NONE;
}

/* Of those above, how many layers below have none; of periodic ones, each how many-th has none. */
static enum status read_full_layers(struct json *document, const struct model_family *family,
                                    uint64_t *ret_layers, struct error *reterr)
{
    struct json *full = NULL;
    int64_t count = 0;
    if (family->windows == MODEL_WINDOWS_PERIODIC) {
        return model_take_count(document, "sliding_window_pattern", layers_max, family->full_every,
                                ret_layers, reterr);
    }
    *ret_layers = qwen_full_layers;
    if (family->windows == MODEL_WINDOWS_ABOVE)
        full = model_take_set(document, "max_window_layers");
    if (full == NULL) return STATUS_OK;
    STATUS_TRY(json_as_integer(full, 0, layers_max, &count, reterr));
    *ret_layers = (uint64_t)count;
    return STATUS_OK;
}

/* One of `layer_types`. Where a family takes no list, it may still say what is so. */
static enum status read_type(struct json *value, const struct model_family *family, uint64_t window,
                             bool *windowed, struct error *reterr)
{
    static const char *const types[] = {"sliding_attention", "full_attention", NULL};
    const char *type = NULL;
    STATUS_TRY(json_as_string(value, &type, reterr));
    uint32_t const found = name_find(type, types);
    bool const slides = found == 0;
    if (types[found] == NULL)
        return error_set(reterr, STATUS_UNSUPPORTED, json_where(value),
                         "\"%.40s\" is not modelled; \"sliding_attention\" and \"full_attention\" "
                         "are",
                         type);
    if (!has_list(family, NULL) && slides != *windowed)
        return model_refuse_of(value, "attention that differs by layer", family, has_list, NULL,
                               reterr);
    if (slides && window == 0)
        return error_set(reterr, STATUS_INVALID, json_where(value),
                         "the layer attends to a window, and sliding_window gives it no size, or "
                         "use_sliding_window does not switch it on");
    *windowed = slides;
    return STATUS_OK;
}

enum status model_read_windows(struct json *document, const struct model_family *family,
                               struct model *model, struct error *reterr)
{
    uint64_t full_layers = 0;
    struct json *types = NULL;
    bool *const windowed = model->by_layer.windowed;
    STATUS_TRY(read_window(document, family, &model->attends.window, reterr));
    STATUS_TRY(model_take_list(document, "layer_types", &types, reterr));
    STATUS_TRY(read_full_layers(document, family, &full_layers, reterr));
    if (types != NULL && json_count(types) != model->layers)
        return error_set(reterr, STATUS_INVALID, json_where(types), "%s for %s",
                         counted(json_count(types), "type").text,
                         counted(model->layers, "layer").text);
    uint64_t const window = model->attends.window;
    for (uint32_t i = 0; i < model->layers; i++) {
        windowed[i] = window != 0 && is_windowed(family->windows, full_layers, i);
        if (types != NULL)
            STATUS_TRY(read_type(json_at(types, i), family, window, &windowed[i], reterr));
    }
    return STATUS_OK;
}
