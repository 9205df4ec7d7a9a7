/* A layer's weights: what is gathered and reduced as one. */
#include "sim/step/local.h"

#include <string.h>

static void unit_add(struct local_layer *layer, const char *name, uint32_t places,
                     uint64_t elements)
{
    SIM_ASSERT(layer->unit_count < LOCAL_UNITS_MAX);
    bool const experts =
        layer->experts && (places & (1u << LOCAL_MLP_IN | 1u << LOCAL_MLP_OUT)) != 0;
    layer->unit[layer->unit_count++] = (struct local_unit){name, places, elements, experts};
}

/* Norms of the latents lie with the matrices that give them. */
static void latent_by_tensor(const struct local *local, struct local_layer *layer)
{
    const struct model_latent *latent = &local->plan->model.latent;
    uint64_t const width = local->width, values = local->heads * local->value_width;
    unit_add(layer, "W_DQ", 1u << LOCAL_ATTENTION_IN,
             (width + 1) * latent->query_rank + local->norm_elements + local->attention_vectors);
    unit_add(layer, "W_DKV", 1u << LOCAL_ATTENTION_IN,
             width * (latent->kv_rank + latent->rope) + latent->kv_rank);
    unit_add(layer, "W_UQ", 1u << LOCAL_ATTENTION_UP,
             latent->query_rank * local->heads * local->head_width);
    unit_add(layer, "W_UKV", 1u << LOCAL_ATTENTION_UP,
             latent->kv_rank * (local->heads * latent->plain + values));
    unit_add(layer, "W_O", 1u << LOCAL_ATTENTION_OUT, values * width);
}

static void attention_by_tensor(const struct local *local, struct local_layer *layer)
{
    uint64_t const head = local->width * local->head_width;
    unit_add(layer, "W_Q", 1u << LOCAL_ATTENTION_IN,
             head * local->heads + local->norm_elements + local->attention_vectors);
    unit_add(layer, "W_K", 1u << LOCAL_ATTENTION_IN, head * local->kv_heads);
    unit_add(layer, "W_V", 1u << LOCAL_ATTENTION_IN, head * local->kv_heads);
    unit_add(layer, "W_O", 1u << LOCAL_ATTENTION_OUT, head * local->heads);
}

static void mlp_by_tensor(const struct local *local, struct local_layer *layer)
{
    uint64_t const mlp = local->width * local->mlp_columns;
    if (local->plan->model.matrices == 3) {
        unit_add(layer, "W_gate", 1u << LOCAL_MLP_IN,
                 mlp + local->norm_elements + local->mlp_vectors);
        unit_add(layer, "W_up", 1u << LOCAL_MLP_IN, mlp);
    } else {
        unit_add(layer, "W_in", 1u << LOCAL_MLP_IN,
                 mlp + local->norm_elements + local->mlp_vectors);
    }
    unit_add(layer, "W_out", 1u << LOCAL_MLP_OUT, mlp);
}

/* The router with the norm; shared experts; all experts of the chip. */
static void experts_by_tensor(const struct local *local, struct local_layer *layer)
{
    const struct local_experts *experts = &local->experts;
    const struct model_experts *model = &local->plan->model.experts;
    bool const gated = local->plan->model.matrices == 3;
    uint64_t const shared = local->width * experts->shared_columns;
    uint64_t const all = experts->count * local->width * experts->columns;
    uint64_t const bias_in = model->biased ? experts->count * experts->columns : 0;
    uint64_t const bias_out = model->biased ? experts->count * local->width : 0;
    uint64_t const router =
        experts->router_inner * model->count + (model->router_biased ? model->count : 0);
    unit_add(layer, "W_router", 1u << LOCAL_ROUTER, router + local->norm_elements);
    if (shared != 0) {
        if (gated) unit_add(layer, "W_shared_gate", 1u << LOCAL_SHARED_IN, shared);
        unit_add(layer, gated ? "W_shared_up" : "W_shared_in", 1u << LOCAL_SHARED_IN, shared);
        unit_add(layer, "W_shared_out", 1u << LOCAL_SHARED_OUT, shared);
    }
    if (gated) unit_add(layer, "W_gate", 1u << LOCAL_MLP_IN, all + bias_in);
    unit_add(layer, gated ? "W_up" : "W_in", 1u << LOCAL_MLP_IN, all + bias_in);
    unit_add(layer, "W_out", 1u << LOCAL_MLP_OUT, all + bias_out);
}

/* Experts are reduced over other ranks than the rest, so they are units of their own. */
static void layer_build(const struct local *local, struct local_layer *layer)
{
    enum { ATTENTION, MLP, EXPERTS, BLOCKS };
    static const uint32_t attention =
        1u << LOCAL_ATTENTION_IN | 1u << LOCAL_ATTENTION_UP | 1u << LOCAL_ATTENTION_OUT;
    uint64_t sum[BLOCKS] = {0};
    uint32_t places[BLOCKS] = {0};
    if (local_is_llama(local))
        (local_is_latent(local) ? latent_by_tensor : attention_by_tensor)(local, layer);
    (layer->experts ? experts_by_tensor : mlp_by_tensor)(local, layer);
    for (uint32_t u = 0; u < layer->unit_count; u++) {
        const struct local_unit *unit = &layer->unit[u];
        uint32_t const block = unit->experts ? EXPERTS : (unit->places & attention) == 0;
        sum[block] += unit->elements;
        places[block] |= unit->places;
        for (uint32_t p = 0; p < LOCAL_PLACE_COUNT; p++) {
            if (unit->places >> p & 1) layer->place_elements[p] += unit->elements;
        }
    }
    if (local->plan->gather == WORKLOAD_GATHER_TENSOR) return;
    const char *const router =
        local->plan->model.experts.shared == 0 ? "W_router" : "W_router,shared";
    layer->unit_count = 0;
    if (local->plan->gather == WORKLOAD_GATHER_LAYER) {
        unit_add(layer, "W_layer", places[ATTENTION] | places[MLP], sum[ATTENTION] + sum[MLP]);
    } else {
        if (sum[ATTENTION] != 0) unit_add(layer, "W_attention", places[ATTENTION], sum[ATTENTION]);
        unit_add(layer, layer->experts ? router : "W_mlp", places[MLP], sum[MLP]);
    }
    if (layer->experts) unit_add(layer, "W_experts", places[EXPERTS], sum[EXPERTS]);
}

void local_units_build(struct local *local)
{
    const struct model *model = &local->plan->model;
    local->layer[LOCAL_DENSE].count = model_dense_layers(model);
    local->layer[LOCAL_EXPERTS].count = model->layers - model_dense_layers(model);
    local->layer[LOCAL_EXPERTS].experts = true;
    for (uint32_t k = 0; k < LOCAL_KINDS; k++)
        if (local->layer[k].count != 0) layer_build(local, &local->layer[k]);
}
