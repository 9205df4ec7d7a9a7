/*
 * The most tokens of a sequence, as a config.json says it and vLLM reads it (vllm/config/model.py,
 * _get_and_verify_max_len): `model_max_length` where it is there; else the positions, which some
 * ways to stretch rotary positions multiply. "yarn" multiplies what the model was first trained
 * with; "llama3" and "longrope" stand in files that say the stretched length themselves, as do all
 * files of some types.
 */
#include <stddef.h>

#include "sim/base/json.h"
#include "sim/base/name.h"
#include "sim/model/model_read_parts.h"

static const int64_t positions_max = INT64_C(1) << 34;
static const double factor_max = 1 << 20;

/* The first of the keys that says something. */
static struct json *take_first(struct json *object, const char *const *keys)
{
    struct json *value = NULL;
    for (; *keys != NULL; keys++) {
        struct json *const here = model_take_set(object, *keys);
        if (value == NULL) value = here;
    }
    return value;
}

/* The positions that `scaling` makes of `most`. */
static enum status stretch(struct json *scaling, uint64_t *most, struct error *reterr)
{
    static const char *const type_keys[] = {"rope_type", "type", NULL};
    enum { YARN = 2 };
    static const char *const multiplying[] = {"linear", "dynamic", [YARN] = "yarn", NULL};
    struct json *const type = take_first(scaling, type_keys);
    struct json *const by = model_take_set(scaling, "factor");
    const char *name = NULL;
    double factor = 1;
    uint64_t trained = *most;
    if (type == NULL || by == NULL) return STATUS_OK;
    STATUS_TRY(json_as_string(type, &name, reterr));
    uint32_t const way = name_find(name, multiplying);
    if (multiplying[way] == NULL) return STATUS_OK;
    STATUS_TRY(json_as_real(by, 0, factor_max, &factor, reterr));
    if (way == YARN)
        STATUS_TRY(model_take_count(scaling, "original_max_position_embeddings", positions_max,
                                    trained, &trained, reterr));
    uint64_t const stretched = (uint64_t)((double)trained * factor);
    if (stretched > *most) *most = stretched;
    return STATUS_OK;
}

enum status model_read_positions(struct json *document, const struct model_family *family,
                                 struct model *model, struct error *reterr)
{
    static const char *const whole[] = {"model_max_length", NULL};
    static const char *const trained[] = {"max_position_embeddings", "n_positions", NULL};
    static const char *const scaling_keys[] = {"rope_scaling", "rope_parameters", NULL};
    struct json *const stated = take_first(document, whole);
    struct json *const positions = take_first(document, trained);
    struct json *const scaling = take_first(document, scaling_keys);
    struct json *const from = stated != NULL ? stated : positions;
    int64_t most = 0;
    if (from == NULL) return STATUS_OK;
    STATUS_TRY(json_as_integer(from, 1, positions_max, &most, reterr));
    model->positions.most = (uint64_t)most;
    if (stated != NULL || family->stretched) return STATUS_OK;
    if (scaling == NULL || json_kind(scaling) != JSON_OBJECT) return STATUS_OK;
    return stretch(scaling, &model->positions.most, reterr);
}
