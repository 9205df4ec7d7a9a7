/* What modules that predict further tokens ask of one chip besides their layers, which are counted
 * with the model's: see workloads/blocks/mtp.c for the ops. */
#include "sim/base/vector.h"
#include "tests/oracle/counts_parts.h"

/* Of all modules, in a microbatch: the projection with its norms, once more lookup and head. */
static void count_compute(const struct variables *x, struct workload_counts *counts)
{
    const struct ranks *ranks = x->ranks;
    double const times = x->microbatches * x->mtp_modules;
    uint64_t const width = oracle_width(ranks), columns = units_ceil_divide(width, ranks->tp);
    double const matrix = 2 * (double)width * (double)columns;
    double const useful = 3 * 2 * x->mlp.rows * 2 * (double)width * (double)width / ranks->tp;
    double const project = 3 * 2 * x->mlp.rows * matrix;
    double const again = x->remat.norms_again; /* The norms, and the gather behind them. */
    counts->spare.padding += times * (project - useful);
    oracle_linear(counts, times * project,
                  times * 3 * oracle_padded_matmul(x, ranks->rows, 2 * width, columns));
    counts->matmul_flop += times * 3 * 2 * x->mlp.rows * x->vocabulary;
    counts->matmul_useful +=
        times * (useful + 3 * 2 * x->mlp.rows * (double)width *
                              (double)ranks->plan->model.vocabulary / ranks->tp);
    counts->padded_flop +=
        times * 3 * oracle_padded_matmul(x, ranks->rows, width, oracle_vocabulary(ranks));

    double flop = 2 * (1 + again) * VECTOR_NORM_ALONE + VECTOR_NORM_ALONE_BACKWARD;
    flop += VECTOR_NORM_BACKWARD;                   /* Of the hidden state. */
    flop += VECTOR_NORM + VECTOR_NORM_BACKWARD + 1; /* Of head and lookup. */
    counts->vector_flop += times * (flop * x->mlp.shard + VECTOR_LOSS * x->logits);

    double bytes =
        (2 * (1 + again) * (x->bytes.a + x->bytes.normed) + (3 + 4) * x->bytes.a) * x->mlp.shard;
    bytes +=
        2 * 2 * x->mlp.full * x->bytes.normed + (2 * x->mlp.full + 3 * x->mlp.shard) * x->bytes.a;
    bytes += 2 * matrix * x->bytes.w + matrix * x->bytes.g * (1 + x->remat.adds);
    bytes += x->mlp.shard * x->bytes.w + x->mlp.full * x->bytes.a + x->mlp.shard * x->bytes.a +
             2 * x->mlp.shard * x->bytes.g;
    /* The head's gradient is added to the one before it. */
    bytes += 2 * 4 * x->mlp.shard * x->bytes.a + 5 * x->logits * x->bytes.a +
             3 * x->mlp.full * x->bytes.a + 2 * x->vocabulary * x->bytes.w +
             2 * x->vocabulary * x->bytes.g;
    counts->hbm_bytes += times * bytes;
    /* In other passes than the embedding's own, its gradient begins at zero as there. */
    if (ranks->pp > 1 && x->remat.adds == 0)
        counts->hbm_bytes += x->microbatches * x->vocabulary * x->bytes.g;
    counts->ops.count += times * (8 + 7 + 2 * again) + ranks->tie.lookup;
}

static void count_traffic(const struct variables *x, struct workload_counts *counts)
{
    const struct ranks *ranks = x->ranks;
    const struct workload_plan *plan = ranks->plan;
    uint64_t const modules = plan->accumulate * ranks->mtp.modules;
    uint64_t const again = x->remat.norms_again > 0 || ranks_keeps_parts(ranks);
    uint64_t const turns = plan->activations == WORKLOAD_ACTIVATIONS_TOKENS ? 2 * modules : 0;
    struct workload_traffic *tp = &counts->role[MESH_TP];
    if (ranks->shards > 1) {
        /* The projection as a layer; the embedding for each lookup. */
        struct workload_traffic *shards = &counts->role[ranks->shard_role];
        shards->gather_bytes +=
            (double)modules * (2 * (double)oracle_mtp_elements(ranks) + x->vocabulary) * x->bytes.w;
        shards->gather_count += 3 * modules;
    }
    /* An embedding that both ends use is reduced by the passes of each, unless once for all. */
    bool const shared = ranks->pp > 1 && ranks->tie.meets;
    if (shared && ranks->shards > 1) {
        counts->role[ranks->shard_role].scatter_bytes +=
            x->microbatches * x->vocabulary * x->bytes.g;
        counts->role[ranks->shard_role].scatter_count += plan->accumulate;
    }
    if (shared && ranks->replicas.count > 1 && !ranks->gradients.last) {
        counts->role[MESH_DP].scatter_bytes += x->microbatches * x->vocabulary * x->bytes.g;
        counts->role[MESH_DP].scatter_count += plan->accumulate;
    }
    if (ranks->tp == 1) return;
    tp->gather_count += modules * (3 + again) + turns;
    tp->gather_bytes += ((double)modules * (2 + 2 * (1.0 + (double)again)) + (double)turns) *
                        x->mlp.full * x->bytes.a;
    tp->scatter_count += modules * 3;
    tp->scatter_bytes += (double)modules * (2 + 2) * x->mlp.full * x->bytes.a;
    tp->critical_passes += modules * (6 + again) + turns;
}

void oracle_predictors(const struct variables *x, struct workload_counts *counts)
{
    if (x->mtp_modules == 0) return;
    count_compute(x, counts);
    count_traffic(x, counts);
    double const pair = x->remat.norms_again > 0 ? 0 : 2 * x->mlp.in_kept;
    counts->memory.activation_bytes +=
        x->mtp_modules * (2 * x->mlp.shard * x->bytes.a + pair * x->bytes.normed);
}
