#include "sim/step/padding.h"

#include "sim/base/units.h"
#include "sim/step/local.h"

static void sums_add(struct padding_sums *sums, uint32_t ranks, uint64_t elements, uint64_t times)
{
    sums->units += times;
    sums->elements += times * elements;
    sums->padding += times * (units_round_up(elements, ranks) - elements);
}

struct padding_sums padding_sums(const struct local *local, uint32_t ranks, bool experts)
{
    struct padding_sums sums = {0, 0, 0};
    for (uint32_t k = 0; k < LOCAL_KINDS; k++)
        for (uint32_t u = 0; u < local->layer[k].unit_count; u++)
            if (local->layer[k].unit[u].experts == experts)
                sums_add(&sums, ranks, local->layer[k].unit[u].elements,
                         local_layer_count(local, k));
    if (experts || !local_is_llama(local)) return sums;
    uint64_t const head = local->head_vectors, vocabulary = local->vocabulary_elements;
    sums_add(&sums, ranks, vocabulary + local->position_elements + (local->tied ? head : 0), 1);
    if (!local->tied) sums_add(&sums, ranks, vocabulary + head, 1);
    if (local->twin_reads) sums_add(&sums, ranks, vocabulary, 1);
    sums_add(&sums, ranks, local->predictor_elements, local->predictors);
    return sums;
}

static void list_add(struct paddings *paddings, const char *what, const char *role, uint32_t ranks,
                     uint64_t size, uint64_t padded)
{
    if (padded == size) return;
    SIM_ASSERT(paddings->count < PADDINGS_MAX);
    paddings->of[paddings->count++] = (struct padding){what, role, ranks, size, padded};
}

static void flat_add(const struct local *local, struct paddings *paddings, const char *what,
                     const char *role, uint32_t ranks, bool experts)
{
    struct padding_sums const sums = padding_sums(local, ranks, experts);
    list_add(paddings, what, role, ranks, sums.elements, sums.elements + sums.padding);
}

void padding_list(const struct local *local, struct paddings *ret_paddings)
{
    const struct model *model = &local->plan->model;
    struct paddings paddings = {.count = 0};
    uint32_t const tp = local->tp;
    const char *const tp_name = mesh_role_name(MESH_TP);
    bool const zero = local->plan->zero != 0;
    const char *const role = zero ? local->replica_name : mesh_role_name(local->shard_role);
    const char *const what = local->shards > 1 ? "flat parameters" : "flat optimizer state";
    list_add(&paddings, "columns of D between blocks", tp_name, tp, local->width,
             local->block_columns);
    if (local_is_llama(local)) {
        list_add(&paddings, "attention heads", tp_name, tp, model->heads, local->heads * tp);
        list_add(&paddings, "KV heads", tp_name, tp, model->kv_heads, local->kv_heads_padded);
        list_add(&paddings, "vocabulary", tp_name, tp, model->vocabulary, local->vocabulary * tp);
    }
    if (local->layer[LOCAL_DENSE].count != 0)
        list_add(&paddings, "columns of the MLP", tp_name, tp, model->mlp_width,
                 local->mlp_columns * tp);
    if (local->layer[LOCAL_EXPERTS].count != 0) {
        list_add(&paddings, "columns of an expert", tp_name, tp, model->experts.width,
                 local->experts.columns * tp);
        flat_add(local, &paddings,
                 local->shards > 1 ? "flat parameters of experts" : "flat state of experts", role,
                 local->experts.state_shards, /* experts= */ true);
    }
    flat_add(local, &paddings, what, role, local->state_shards, /* experts= */ false);
    *ret_paddings = paddings;
}
