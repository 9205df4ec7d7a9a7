/* What latent attention asks of one chip besides other attention: see
 * workloads/blocks/latent_attention.c for the ops. */
#include "sim/base/vector.h"
#include "tests/oracle/counts_parts.h"

void oracle_latent_letters(struct letters *x)
{
    const struct local *local = x->local;
    const struct model_latent *latent = &local->plan->model.latent;
    if (!local_is_latent(local)) return;
    double const keys = (double)(latent->plain + local->value_width);
    x->latent_up = (double)local->heads * ((double)(latent->query_rank * local->head_width) +
                                           (double)latent->kv_rank * keys);
}

void oracle_latent(const struct letters *x, struct workload_counts *counts)
{
    const struct local *local = x->local;
    const struct model_latent *latent = &local->plan->model.latent;
    if (!local_is_latent(local)) return;
    double const times = x->microbatches * x->layers, forwards = 1 + x->norms_again;
    double const normed = x->rows * (double)oracle_latent_normed(local);
    double const product = 2 * x->rows * x->latent_up;
    double const pads =
        oracle_padded_matmul(x, local->rows, latent->query_rank, local->heads * local->head_width) +
        oracle_padded_matmul(x, local->rows, latent->kv_rank,
                             local->heads * (latent->plain + local->value_width));
    oracle_linear(counts, times * (forwards + 2) * product, times * (forwards + 2) * pads);
    counts->matmul_useful += times * 3 * product * x->useful_heads;
    double const sums = x->rows * (double)(local->heads * latent->rope);
    counts->vector_flop +=
        times * ((forwards * VECTOR_NORM_ALONE + VECTOR_NORM_ALONE_BACKWARD) * normed + sums);
    /* Besides the normed latents, K's turned columns are read where they lie. */
    double const input = (x->attention_tmp + x->qkv) * x->a + x->latent_up * x->w;
    double const up = input + normed * (x->m - x->a);
    double const d_weight = normed * x->m + x->qkv * x->a + x->latent_up * x->g * (1 + x->adds);
    double const norms = forwards * normed * (x->a + x->m) + 3 * normed * x->a;
    counts->hbm_bytes += times * (forwards * up + input + d_weight + norms);
    counts->compute_count += times * (2 * forwards + 3);
    if (x->norms_again == 0)
        counts->activation_bytes += x->layers * (normed * x->m + x->qkv * x->a);
}
