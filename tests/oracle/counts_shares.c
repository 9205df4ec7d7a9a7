/*
 * Shares that are padded so that all ranks are alike. Shares of parameters, of their gradients and
 * of the optimizer's state: what is gathered as one lies flat, padded so that each rank has as
 * much: FSDP pads its flat parameters, ZeRO its buckets.
 */
#include "sim/base/units.h"
#include "sim/step/padding.h"
#include "tests/oracle/counts_parts.h"

double oracle_share(const struct letters *x, uint32_t ranks, bool experts)
{
    double const all = experts ? x->sparse * x->expert_elements : x->step_elements;
    return all == 0 ? 0 : (all + (double)padding_sums(x->local, ranks, experts).padding) / ranks;
}

double oracle_state_elements(const struct letters *x)
{
    const struct local *local = x->local;
    double const experts =
        x->sparse > 0 ? oracle_share(x, local->experts.state_shards, /* experts= */ true) : 0;
    return local->copies * (oracle_share(x, local->state_shards, /* experts= */ false) + experts);
}

double oracle_twins_share(const struct letters *x)
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

double oracle_matmul_padding(const struct letters *x)
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
