/*
 * Modules that predict further tokens (MTP: DeepSeek-V3, arXiv 2412.19437, 2.2). Module k joins
 * what the module before it gives, or the model's last layer, with the embedding of the token k
 * places on: both are normed, and a matrix projects the two together, 2D, to D. A layer like the
 * model's last follows, a norm, and the model's own head. Embedding and head are the model's.
 */
#include "sim/step/local.h"

enum { PREDICTORS_MAX = 16 };

enum status local_predictors_check(const struct local *local, struct error *reterr)
{
    const struct workload_plan *plan = local->plan;
    const struct model *model = &plan->model;
    static const char where[] = "/workload/mtp";
    if (workload_predictors(plan) == 0) return STATUS_OK;
    SIM_ASSERT(model->kind == MODEL_LLAMA && model->positions == 0);
    if (model->predictors > PREDICTORS_MAX)
        return error_set(reterr, STATUS_LIMIT, where,
                         "%s has %llu modules for multi-token prediction, more than the %d that "
                         "are simulated; \"mtp\": false trains it without",
                         model->name, (unsigned long long)model->predictors, PREDICTORS_MAX);
    if (model->tied)
        return error_set(reterr, STATUS_UNSUPPORTED, where,
                         "multi-token prediction is not modelled where embedding and head are one "
                         "matrix, as in %s; \"mtp\": false trains it without",
                         model->name);
    if (local->mesh->axis[MESH_CP].size > 1)
        return error_set(reterr, STATUS_UNSUPPORTED, where,
                         "multi-token prediction is not modelled with cp, whose ranks share "
                         "sequences; \"mtp\": false trains %s without",
                         model->name);
    return STATUS_OK;
}

enum status local_predictors_build(struct local *local, struct error *reterr)
{
    uint64_t columns = 0;
    local->predictors = workload_predictors(local->plan);
    if (local->predictors == 0) return STATUS_OK;
    if (local->reduce_once)
        return error_set(reterr, STATUS_UNSUPPORTED, "/workload/mtp",
                         "multi-token prediction is not modelled where stages keep gathered "
                         "weights (\"regather\", or a schedule file that says when); \"mtp\": "
                         "false trains %s without",
                         local->plan->model.name);
    if (local->ends_meet && local->pp > 1 && local->plan->accumulate == 1)
        return error_set(reterr, STATUS_UNSUPPORTED, "/workload/accumulate",
                         "multi-token prediction is not modelled in one microbatch where the first "
                         "and the last stage share an embedding on one rank; from 2 on it is");
    STATUS_TRY(local_divide(local->width, local->tp, "/mesh/tp", "the model's width D",
                            "ranks of tp", &columns, reterr));
    local->predictor_elements = 2 * local->width * columns + 3 * local->norm_elements;
    return STATUS_OK;
}
