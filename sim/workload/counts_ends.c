/* What lies before and behind the layers, and the update. */
#include "sim/base/vector.h"
#include "sim/workload/counts_parts.h"

/* The head's three products. Columns that only make the shares of tp equal are those of modules
 * that predict further tokens too, whose heads these are. */
static void count_matmuls(const struct letters *x, struct workload_counts *counts)
{
    const struct local *local = x->local;
    double const once = x->microbatches * 3 * 2 * x->rows;
    double const useful = (double)local->width / local->tp * (double)local->plan->model.vocabulary;
    counts->matmul_flop += once * x->vocabulary;
    counts->matmul_useful += once * useful;
    counts->matmul_padding += once * (1 + x->predictors) * (x->vocabulary - useful);
    counts->padded_flop +=
        x->microbatches * 3 * counts_padded_matmul(x, local->rows, local->width, local->vocabulary);
}

static void count_rest(const struct letters *x, struct workload_counts *counts)
{
    const struct local *local = x->local;
    bool const tied = local->tied;
    double const flop =
        x->shard * (VECTOR_NORM + VECTOR_NORM_BACKWARD + 1) + VECTOR_LOSS * x->logits;
    double const embedding = x->shard * x->w + x->full * x->a + x->shard * x->a +
                             2 * x->shard * x->g +
                             (tied || x->adds > 0 ? 0 : x->vocabulary * x->g) +
                             (double)local->position_elements * (x->w + x->g * (1 + x->adds));
    double const head = 2 * 4 * x->shard * x->a + 5 * x->logits * x->a + 3 * x->full * x->a +
                        2 * x->vocabulary * x->w + x->vocabulary * x->g * (1 + x->adds);
    counts->vector_flop += x->microbatches * flop;
    counts->hbm_bytes += x->microbatches * (embedding + head);
    counts->compute_count += x->microbatches * 8;
}

/* One of each kind a pass. */
static void count_traffic(const struct letters *x, struct workload_counts *counts)
{
    uint64_t const ends = 2 * (uint64_t)x->local->plan->accumulate;
    struct workload_traffic *tp = &counts->role[MESH_TP];
    if (x->local->tp == 1) return;
    tp->gather_count += ends;
    tp->scatter_count += ends;
    tp->gather_bytes += (double)ends * x->full * x->a;
    tp->scatter_bytes += (double)ends * x->full * x->a;
    counts->tp_critical_count += 2 * ends;
}

static void count_update(const struct letters *x, struct workload_counts *counts)
{
    const struct local *local = x->local;
    double const updates = x->layers + (local_is_llama(local) ? 2 - local->tied : 0);
    counts->vector_flop +=
        counts_twins_share(x) + counts_summed_elements(x) + VECTOR_ADAM * counts_state_elements(x);
    counts->hbm_bytes += 3 * counts_twins_share(x) * x->g + 3 * counts_summed_elements(x) * x->g +
                         counts_state_elements(x) * (x->g + 4 * x->o + 2 * x->w);
    counts->compute_count += (x->twins > 0 ? 2 : 0) + (local->copies > 1 ? 4 : 1) * updates;
}

void counts_ends(const struct letters *x, struct workload_counts *counts)
{
    count_update(x, counts);
    if (!local_is_llama(x->local)) return;
    count_matmuls(x, counts);
    count_rest(x, counts);
    count_traffic(x, counts);
}
