/* What latent attention asks of one chip beside other attention: see lower_latent.c for the ops. */
#include "sim/workload/counts_parts.h"
#include "sim/workload/vector.h"

void counts_latent_letters(struct letters *x)
{
    const struct local *local = x->local;
    const struct model_latent *latent = &local->plan->model.latent;
    if (!local_is_latent(local)) return;
    double const keys = (double)(latent->plain + local->value_width);
    x->latent_up = (double)local->heads * ((double)(latent->query_rank * local->head_width) +
                                           (double)latent->kv_rank * keys);
}

void counts_latent(const struct letters *x, struct workload_counts *counts)
{
    const struct local *local = x->local;
    const struct model_latent *latent = &local->plan->model.latent;
    if (!local_is_latent(local)) return;
    double const times = x->microbatches * x->layers, forwards = 1 + x->attention_again;
    double const normed = x->rows * (double)local->latent_normed;
    double const product = 2 * x->rows * x->latent_up;
    double const pads =
        counts_padded_matmul(x, local->rows, latent->query_rank, local->heads * local->head_width) +
        counts_padded_matmul(x, local->rows, latent->kv_rank,
                             local->heads * (latent->plain + local->value_width));
    counts->matmul_flop += times * (forwards + 2) * product;
    counts->matmul_useful += times * 3 * product;
    counts->padded_flop += times * (forwards + 2) * pads;
    double const sums = x->rows * (double)(local->heads * latent->rope);
    counts->vector_flop +=
        times * ((forwards * VECTOR_NORM_ALONE + VECTOR_NORM_ALONE_BACKWARD) * normed + sums);
    double const up = (x->attention_tmp + x->qkv) * x->a + x->latent_up * x->w;
    double const d_weight = (normed + x->qkv) * x->a + x->latent_up * x->g * (1 + x->adds);
    counts->hbm_bytes +=
        times * ((forwards + 1) * up + d_weight + (2 * forwards + 3) * normed * x->a);
    counts->compute_count += times * (2 * forwards + 3);
    if (x->attention_again == 0) counts->activation_bytes += x->layers * (normed + x->qkv) * x->a;
}
