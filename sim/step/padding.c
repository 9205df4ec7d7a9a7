#include "sim/step/padding.h"

#include "sim/base/units.h"
#include "sim/step/ranks.h"

static void sums_add(struct padding_sums *sums, uint32_t rank_count, uint64_t elements,
                     uint64_t times)
{
    sums->units += times;
    sums->elements += times * elements;
    sums->padding += times * (units_round_up(elements, rank_count) - elements);
}

struct padding_sums padding_sums(const struct ranks *ranks, uint32_t rank_count, bool experts)
{
    struct padding_sums sums = {0, 0, 0};
    for (uint32_t k = 0; k < LAYER_KINDS; k++)
        for (uint32_t u = 0; u < ranks->layer[k].bucket_count; u++)
            if (ranks->layer[k].bucket[u].experts == experts)
                sums_add(&sums, rank_count, ranks->layer[k].bucket[u].elements,
                         ranks_layer_count(ranks, k));
    if (experts || !ranks_is_decoder(ranks)) return sums;
    uint64_t const head = ranks->head_vectors, vocabulary = ranks->vocabulary_elements;
    sums_add(&sums, rank_count, vocabulary + ranks->position_elements + (ranks->tied ? head : 0),
             1);
    if (!ranks->tied) sums_add(&sums, rank_count, vocabulary + head, 1);
    if (ranks->tied_lookup) sums_add(&sums, rank_count, vocabulary, 1);
    sums_add(&sums, rank_count, ranks->mtp_elements, ranks->mtp_modules);
    return sums;
}

static void list_add(struct paddings *paddings, const char *what, const char *role,
                     uint32_t rank_count, uint64_t size, uint64_t padded)
{
    if (padded == size) return;
    SIM_ASSERT(paddings->count < PADDINGS_MAX);
    paddings->of[paddings->count++] = (struct padding){what, role, rank_count, size, padded};
}

static void flat_add(const struct ranks *ranks, struct paddings *paddings, const char *what,
                     const char *role, uint32_t rank_count, bool experts)
{
    struct padding_sums const sums = padding_sums(ranks, rank_count, experts);
    list_add(paddings, what, role, rank_count, sums.elements, sums.elements + sums.padding);
}

void padding_list(const struct ranks *ranks, struct paddings *ret_paddings)
{
    const struct model *model = &ranks->plan->model;
    struct paddings paddings = {.count = 0};
    uint32_t const tp = ranks->tp;
    const char *const tp_name = mesh_role_name(MESH_TP);
    bool const zero = ranks->plan->zero != 0;
    const char *const role = zero ? ranks->replica_name : mesh_role_name(ranks->shard_role);
    const char *const what = ranks->shards > 1 ? "flat parameters" : "flat optimizer state";
    list_add(&paddings, "columns of D between blocks", tp_name, tp, ranks->width,
             ranks->block_columns);
    if (ranks_is_decoder(ranks)) {
        list_add(&paddings, "attention heads", tp_name, tp, model->heads, ranks->heads * tp);
        list_add(&paddings, "KV heads", tp_name, tp, model->kv_heads, ranks->kv_heads_padded);
        list_add(&paddings, "vocabulary", tp_name, tp, model->vocabulary, ranks->vocabulary * tp);
    }
    if (ranks->layer[LAYER_DENSE].count != 0)
        list_add(&paddings, "columns of the MLP", tp_name, tp, model->mlp_width,
                 ranks->mlp_columns * tp);
    if (ranks->layer[LAYER_MOE].count != 0) {
        list_add(&paddings, "columns of an expert", tp_name, tp, model->experts.width,
                 ranks->experts.columns * tp);
        flat_add(ranks, &paddings,
                 ranks->shards > 1 ? "flat parameters of experts" : "flat state of experts", role,
                 ranks->experts.state_shards, /* experts= */ true);
    }
    flat_add(ranks, &paddings, what, role, ranks->state_shards, /* experts= */ false);
    *ret_paddings = paddings;
}
