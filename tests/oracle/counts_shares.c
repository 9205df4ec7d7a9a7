/*
 * Shares that are padded so that all ranks are alike. Shares of parameters, of their gradients and
 * of the optimizer's state: what is gathered as one lies flat, padded so that each rank has as
 * much: FSDP pads its flat parameters, ZeRO its buckets.
 */
#include "sim/base/units.h"
#include "sim/step/padding.h"
#include "tests/oracle/counts_parts.h"

double oracle_share(const struct variables *x, uint32_t rank_count, bool experts)
{
    double const all = experts ? x->sparse * x->expert_elements : x->step_elements;
    return all == 0
               ? 0
               : (all + (double)padding_sums(x->ranks, rank_count, experts).padding) / rank_count;
}

double oracle_state_elements(const struct variables *x)
{
    const struct ranks *ranks = x->ranks;
    double const experts =
        x->sparse > 0 ? oracle_share(x, ranks->experts.replicas.state_shards, /* experts= */ true)
                      : 0;
    return ranks->model_replicas *
           (oracle_share(x, ranks->replicas.state_shards, /* experts= */ false) + experts);
}

double oracle_tied_share(const struct variables *x)
{
    const struct ranks *ranks = x->ranks;
    if (x->tied_apart == 0) return 0;
    return 2 * (double)units_ceil_divide(oracle_vocabulary(ranks) * oracle_width(ranks),
                                         ranks->replicas.state_shards);
}

/* Heads: of a KV head that several ranks hold, what it is held once more for is no padding. */
static double attention_padding(const struct variables *x)
{
    const struct ranks *ranks = x->ranks;
    const struct model *model = &ranks->plan->model;
    double const heads = (double)ranks->heads.queries * (1 - x->attention.useful_heads);
    double const values = heads * (double)oracle_value_width(ranks);
    double const width = (double)oracle_width(ranks);
    if (ranks_has_mla(ranks))
        return x->attention.mla_up * (1 - x->attention.useful_heads) + width * values;
    double const kv_heads = (double)(oracle_kv_heads_padded(ranks) - model->kv_heads) / ranks->tp;
    return width * ((heads + 2 * kv_heads) * (double)oracle_head_width(ranks) + values);
}

double oracle_matmul_padding(const struct variables *x)
{
    const struct ranks *ranks = x->ranks;
    const struct model *model = &ranks->plan->model;
    double const wanted = (double)oracle_width(ranks) / ranks->tp;
    double const mlp = x->mlp.in_weights + x->mlp.out_weights -
                       wanted * (double)(model->matrices * model->mlp_width);
    double elements = x->dense * mlp;
    if (ranks_is_decoder(ranks))
        elements += x->layers * attention_padding(x) +
                    (1 + x->mtp_modules) * (x->vocabulary - wanted * (double)model->vocabulary);
    return 3 * 2 * x->mlp.rows * elements;
}
