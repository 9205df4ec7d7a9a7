#include "tools/podsim/import/recompute.h"

#include "sim/base/json.h"
#include "sim/base/name.h"
#include "sim/base/strbuf.h"
#include "sim/kernels/kernels.h"
#include "sim/model/model_read.h"
#include "sim/step/stages.h"

/* The model that the scenario has: a name, or sizes. */
static enum status model_of(struct import *import, struct model *ret_model, struct error *reterr)
{
    struct json *workload = json_take(import->scenario, "workload");
    struct json *model = workload == NULL ? NULL : json_take(workload, "model");
    const char *name = NULL;
    SIM_ASSERT(model != NULL);
    if (json_kind(model) != JSON_STRING)
        return model_read_object(import->arena, model, ret_model, reterr);
    STATUS_TRY(json_as_string(model, &name, reterr));
    return model_read_name_or_path(import->arena, name, NULL, "--model", ret_model, reterr);
}

/* Whether the step has modules that predict further tokens: the model has, and "mtp" leaves them.
 */
static enum status mtp_find(struct import *import, const struct model *model, bool *ret_mtp,
                            struct error *reterr)
{
    struct json *workload = json_take(import->scenario, "workload");
    struct json *mtp = json_take(workload, "mtp");
    *ret_mtp = model->mtp_modules != 0;
    if (mtp == NULL || !*ret_mtp) return STATUS_OK;
    return json_as_boolean(mtp, ret_mtp, reterr);
}

enum status import_layers_find(struct import *import, struct import_layers *ret_layers,
                               struct error *reterr)
{
    struct model model;
    bool mtp = false;
    STATUS_TRY(model_of(import, &model, reterr));
    STATUS_TRY(mtp_find(import, &model, &mtp, reterr));
    struct layer_kinds const kinds = model_layer_kinds(&model, 0);
    *ret_layers = (struct import_layers){
        .count = model.layers,
        .shared = model.experts.shared != 0,
        .gated = model.matrices == 3,
        .latent = model.mla.kv_rank != 0,
        .parallel = model.parallel,
        .offloads = !mtp && model.layers > 1 && import->machine.host.bytes_per_s != 0 &&
                    import->facts.ranks.pp <= 1,
    };
    for (uint32_t i = 0; i < kinds.count; i++)
        *(kinds.kind[i].experts ? &ret_layers->experts : &ret_layers->dense) = true;
    return STATUS_OK;
}

enum status import_stage_layers(struct import *import, uint64_t *ret_layers, struct error *reterr)
{
    const struct import_ranks *ranks = &import->facts.ranks;
    uint64_t const stages = ranks->pp * (ranks->chunks > 1 ? ranks->chunks : 1);
    struct workload_plan plan = {.stages.layout = ranks->layout};
    struct stages built;
    struct error unused;
    STATUS_TRY(model_of(import, &plan.model, reterr));
    *ret_layers = plan.model.layers;
    if (stages <= 1 || stages > plan.model.layers ||
        stages_build(import->arena, &plan, (uint32_t)stages, 1, &built, &unused) != STATUS_OK)
        return STATUS_OK;
    *ret_layers = 0;
    for (uint32_t s = 0; s < built.count; s++)
        if (built.stage[s].layer_count > *ret_layers) *ret_layers = built.stage[s].layer_count;
    return STATUS_OK;
}

void import_array_add(struct import_arrays *arrays, enum import_list list, const char *name)
{
    for (uint32_t l = 0; l < IMPORT_LISTS; l++)
        for (uint32_t i = 0; i < arrays->count[l]; i++) {
            if (!name_same(arrays->name[l][i], name)) continue;
            if (l == list) return;
            arrays->name[l][i] = arrays->name[l][--arrays->count[l]];
        }
    SIM_ASSERT(arrays->count[list] < IMPORT_ARRAYS_MAX);
    arrays->name[list][arrays->count[list]++] = name;
}

static void list_write(struct json_writer *json, const struct import_arrays *arrays,
                       enum import_list list, const char *key)
{
    if (arrays->count[list] == 0) return;
    json_write_key(json, key);
    json_write_array(json);
    for (uint32_t i = 0; i < arrays->count[list]; i++)
        json_write_string(json, arrays->name[list][i]);
    json_write_array_end(json);
}

enum status import_remat(struct import *import, const char *policy,
                         const struct import_arrays *arrays, struct error *reterr)
{
    struct strbuf text = {.bytes = NULL};
    struct json_writer json;
    uint32_t count = 0;
    for (uint32_t l = 0; l < IMPORT_LISTS; l++) count += arrays->count[l];
    if (count == 0) return import_set(import, reterr, "/workload/remat=%s", policy);
    json_write_start(&json, &text);
    json_write_object(&json);
    list_write(&json, arrays, IMPORT_LIST_SAVE, "save");
    list_write(&json, arrays, IMPORT_LIST_REPEAT, "repeat");
    list_write(&json, arrays, IMPORT_LIST_OFFLOAD, "offload");
    json_write_key(&json, "policy");
    json_write_string(&json, policy);
    json_write_object_end(&json);
    enum status const status = text.failed
                                   ? error_no_memory(reterr, "")
                                   : import_set(import, reterr, "/workload/remat=%s", text.bytes);
    strbuf_free(&text);
    return status;
}

enum status import_remat_layers(struct import *import, const char *policy, const char *which,
                                uint64_t count, struct error *reterr)
{
    return import_set(import, reterr,
                      "/workload/remat={\"layers\": {\"%s\": %llu}, \"policy\": \"%s\"}", which,
                      (unsigned long long)count, policy);
}

enum status import_recipe(struct import *import, const void *fact, const char *stack,
                          const char *recipe, struct error *reterr)
{
    if (import->is_ideal || !kernel_stack_is_shipped(import->machine.chip.name, stack)) {
        import_lacks(import, fact,
                     "how scales of fp8 are found: \"fp8_recipe\" says it, on a machine with a "
                     "\"stack\"");
        return STATUS_OK;
    }
    return import_set(import, reterr, "/workload/fp8_recipe=%s", recipe);
}
