/* What latent attention asks of one chip besides other attention: see
 * workloads/blocks/mla.c for the ops. */
#include "sim/base/vector.h"
#include "tests/oracle/counts_parts.h"

void oracle_latent_variables(struct variables *x)
{
    const struct ranks *ranks = x->ranks;
    const struct model_mla *mla = &ranks->plan->model.mla;
    if (!ranks_has_mla(ranks)) return;
    double const keys = (double)(mla->plain + oracle_value_width(ranks));
    x->attention.mla_up =
        (double)ranks->heads.queries *
        ((double)(mla->query_rank * oracle_head_width(ranks)) + (double)mla->kv_rank * keys);
}

void oracle_latent(const struct variables *x, struct workload_counts *counts)
{
    const struct ranks *ranks = x->ranks;
    const struct model_mla *mla = &ranks->plan->model.mla;
    if (!ranks_has_mla(ranks)) return;
    double const times = x->microbatches * x->layers, forwards = 1 + x->remat.norms_again;
    double const normed = x->mlp.rows * (double)oracle_latent_normed(ranks);
    double const product = 2 * x->mlp.rows * x->attention.mla_up;
    double const pads =
        oracle_padded_matmul(x, ranks->rows, mla->query_rank,
                             ranks->heads.queries * oracle_head_width(ranks)) +
        oracle_padded_matmul(x, ranks->rows, mla->kv_rank,
                             ranks->heads.queries * (mla->plain + oracle_value_width(ranks)));
    oracle_linear(counts, times * (forwards + 2) * product, times * (forwards + 2) * pads);
    counts->matmul_useful += times * 3 * product * x->attention.useful_heads;
    double const sums = x->mlp.rows * (double)(ranks->heads.queries * mla->rope);
    counts->vector_flop +=
        times * ((forwards * VECTOR_NORM_ALONE + VECTOR_NORM_ALONE_BACKWARD) * normed + sums);
    /* Besides the normed latents, K's turned columns are read where they lie. */
    double const input =
        (x->attention.tmp + x->attention.qkv) * x->bytes.a + x->attention.mla_up * x->bytes.w;
    double const up = input + normed * (x->bytes.m - x->bytes.a);
    double const d_weight = normed * x->bytes.m + x->attention.qkv * x->bytes.a +
                            x->attention.mla_up * x->bytes.g * (1 + x->remat.adds);
    double const norms = forwards * normed * (x->bytes.a + x->bytes.m) + 3 * normed * x->bytes.a;
    counts->hbm_bytes += times * (forwards * up + input + d_weight + norms);
    counts->ops.count += times * (2 * forwards + 3);
    if (x->remat.norms_again == 0)
        counts->memory.activation_bytes +=
            x->layers * (normed * x->bytes.m + x->attention.qkv * x->bytes.a);
}
