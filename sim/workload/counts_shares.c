/*
 * Shares that are padded so that all ranks are alike. Shares of parameters, of their gradients and
 * of the optimizer's state: what is gathered as one lies flat, padded so that each rank has as
 * much: FSDP pads its flat parameters, ZeRO its buckets.
 */
#include "sim/base/units.h"
#include "sim/workload/counts_parts.h"

static double more_than_even(uint64_t elements, uint32_t ranks)
{
    return (double)(units_ceil_divide(elements, ranks) * ranks - elements) / ranks;
}

/* What the rank's share of all units has beyond an even one. */
static double padding(const struct letters *x, uint32_t ranks, bool experts)
{
    const struct local *local = x->local;
    double more = 0;
    for (uint32_t k = 0; k < LOCAL_KINDS; k++)
        for (uint32_t u = 0; u < local->layer[k].unit_count; u++) {
            const struct local_unit *unit = &local->layer[k].unit[u];
            if (unit->experts == experts)
                more += (double)local_layer_count(local, k) * more_than_even(unit->elements, ranks);
        }
    if (experts || !local_is_llama(local)) return more;
    uint64_t const norm = local->norm_elements, vocabulary = local->vocabulary_elements;
    uint64_t const embedding = vocabulary + local->position_elements;
    more += more_than_even(embedding + (local->tied ? norm : 0), ranks);
    if (!local->tied) more += more_than_even(vocabulary + norm, ranks);
    more += local->twin_reads * more_than_even(vocabulary, ranks);
    return more + x->predictors * more_than_even(local->predictor_elements, ranks);
}

double counts_share(const struct letters *x, uint32_t ranks, bool experts)
{
    double const all = experts ? x->sparse * x->expert_elements : x->step_elements;
    return all == 0 ? 0 : all / ranks + padding(x, ranks, experts);
}

double counts_state_elements(const struct letters *x)
{
    const struct local *local = x->local;
    double const experts =
        x->sparse > 0 ? counts_share(x, local->experts.state_shards, /* experts= */ true) : 0;
    return local->copies * (counts_share(x, local->state_shards, /* experts= */ false) + experts);
}

double counts_twins_share(const struct letters *x)
{
    const struct local *local = x->local;
    if (x->twins == 0) return 0;
    return 2 * (double)units_ceil_divide(local->vocabulary_elements, local->state_shards);
}

/* Heads: of a KV head that several ranks hold, what it is held once more for is no padding. */
static double attention_padding(const struct letters *x)
{
    const struct local *local = x->local;
    const struct model *model = &local->plan->model;
    double const heads = (double)local->heads * (1 - x->useful_heads);
    double const values = heads * (double)local->value_width;
    double const width = (double)local->width;
    if (local_is_latent(local)) return x->latent_up * (1 - x->useful_heads) + width * values;
    double const kv_heads = (double)(local->kv_heads_padded - model->kv_heads) / local->tp;
    return width * ((heads + 2 * kv_heads) * (double)local->head_width + values);
}

double counts_matmul_padding(const struct letters *x)
{
    const struct local *local = x->local;
    const struct model *model = &local->plan->model;
    double const wanted = (double)local->width / local->tp;
    double const mlp =
        x->in_weights + x->out_weights - wanted * (double)(model->matrices * model->mlp_width);
    double elements = x->dense * mlp;
    if (local_is_llama(local))
        elements += x->layers * attention_padding(x) +
                    (1 + x->predictors) * (x->vocabulary - wanted * (double)model->vocabulary);
    return 3 * 2 * x->rows * elements;
}
