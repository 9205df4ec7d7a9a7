/*
 * Attention between its projections, where no block describes it: of ranks of cp, and with scores
 * in HBM; see lower_context.c and lower_scores.c for the ops. Useful scores are of any kernel.
 */
#include <math.h>

#include "sim/base/vector.h"
#include "sim/workload/counts_parts.h"
#include "sim/workload/graph_terms.h"

/* Of all layers, which differ where some have a window. */
struct scores {
    double layer;            /* Of one without window. */
    double all, mean;        /* And of the mean rank. */
    double windowed, useful; /* Layers that have a window; heads that are no padding, a part. */
    double q, attended, kv;
    double statistics;     /* Bytes. */
    double unfused, drops; /* 1: scores lie in HBM; 1: with dropout. */
    double ring_steps;     /* Parts of attention after the first. */
};

static struct scores scores_of(const struct letters *x)
{
    const struct local *local = x->local;
    const struct model *model = &local->plan->model;
    bool const causal = local->plan->attention == WORKLOAD_ATTENTION_CAUSAL;
    double const keys = (double)local->keys, pairs = (double)local->key_pairs;
    double const queries = x->rows * (double)local->heads;
    double const window = (double)model->window;
    double const mean = queries * (causal ? (keys + 1) / 2 : keys);
    /* Causal, the first w of T queries have w·(w + 1)/2 keys, the others w each. */
    double const in_window = causal ? window - window * (window - 1) / 2 / keys : window;
    double const widths = (double)(local->head_width + local->value_width);
    struct scores s = {.layer = queries * (causal ? pairs / 2 : keys),
                       .windowed = (double)local->window_layers};
    s.all = (x->layers - s.windowed) * s.layer + s.windowed * queries * in_window;
    s.mean = (x->layers - s.windowed) * mean + s.windowed * queries * in_window;
    s.useful = (double)model->heads / ((double)local->heads * (double)local->tp);
    s.q = queries * (double)local->head_width;
    s.attended = queries * (double)local->value_width;
    s.kv =
        (double)local->sequences * (double)local->keys * (double)local->attention_kv_heads * widths;
    s.unfused = local_is_unfused(local);
    s.drops = local->plan->attention_kernel == WORKLOAD_KERNEL_DROPOUT;
    s.statistics = s.unfused > 0 ? 0 : 4 * queries;
    s.ring_steps = local_rings(local) ? local->cp - 1.0 : 0;
    return s;
}

double counts_useful_scores(const struct letters *x)
{
    struct scores const s = scores_of(x);
    return s.mean * s.useful;
}

/* The scores of all heads and sequences, with and without the causal half; see
 * lower_attention.c for how the half is laid out. */
static double padded_whole_scores(const struct letters *x, uint64_t width, bool weighted)
{
    const struct local *local = x->local;
    uint64_t rows = local->attention_queries;
    uint64_t columns = local->keys;
    if (local->plan->attention == WORKLOAD_ATTENTION_CAUSAL) {
        columns = rows % 2 == 0 ? local->key_pairs : (local->key_pairs + 1) / 2;
        rows = rows % 2 == 0 ? rows / 2 : rows;
    }
    double const one = weighted ? counts_padded_matmul(x, rows, columns, width)
                                : counts_padded_matmul(x, rows, width, columns);
    return one * (double)(local->attention_heads * local->sequences);
}

/* The same of a layer with a window: a block of queries, as many as a tile has rows of the MXU,
 * meets the tile on the diagonal and those before it that the window reaches into. */
static double padded_window_scores(const struct letters *x, uint64_t width, bool weighted)
{
    const struct local *local = x->local;
    double const edge = x->machine->chip.mxu_columns;
    uint64_t const window = local->plan->model.window;
    uint64_t rows = local->attention_queries, columns = window;
    if (local->plan->attention == WORKLOAD_ATTENTION_CAUSAL) {
        double const blocks = ceil((double)local->keys / edge);
        double const reach = fmin(ceil(((double)window - 1) / edge), blocks - 1);
        double const tiles = (reach + 1) * blocks - reach * (reach + 1) / 2;
        columns = window % 2 == 0 ? window / 2 : window;
        double const own =
            (2 * (double)local->keys - (double)window + 1) * (double)window / 2 / (double)columns;
        double const wide = edge * ceil((double)columns / edge);
        rows = (uint64_t)fmax(own, ceil(tiles * edge * edge / wide));
    }
    double const one = weighted ? counts_padded_matmul(x, rows, columns, width)
                                : counts_padded_matmul(x, rows, width, columns);
    return one * (double)(local->attention_heads * local->sequences);
}

/* Of all layers. */
static double padded_scores(const struct letters *x, const struct scores *s, uint64_t width,
                            bool weighted)
{
    double flop = (x->layers - s->windowed) * padded_whole_scores(x, width, weighted);
    if (s->windowed > 0) flop += s->windowed * padded_window_scores(x, width, weighted);
    return flop;
}

/* Scores and their gradients' products are as wide as K, the others as V. */
static void count_matmuls(const struct letters *x, const struct scores *s,
                          struct workload_counts *counts)
{
    const struct local *local = x->local;
    uint64_t const key = local->head_width, value = local->value_width;
    double const dots = 2 * s->all * (double)key, values = 2 * s->all * (double)value;
    double const mean = 2 * s->mean * (double)(key + value), useful = mean * s->useful;
    double const forwards = 1 + x->attention_again;
    counts->matmul_flop +=
        x->microbatches * ((3 - s->unfused + forwards) * dots + (2 + forwards) * values);
    counts->matmul_flash += x->microbatches * (1 - s->unfused) * dots;
    counts->matmul_waiting += x->microbatches * 3 * (dots + values - mean);
    counts->matmul_padding += x->microbatches * 3 * (mean - useful);
    counts->matmul_useful += x->microbatches * 3 * useful;
    counts->padded_flop +=
        x->microbatches * ((1 - s->unfused + forwards) * padded_scores(x, s, key, false) +
                           (forwards + 1) * padded_scores(x, s, value, true) +
                           padded_scores(x, s, value, false) + 2 * padded_scores(x, s, key, true));
}

static void count_rest(const struct letters *x, const struct scores *s,
                       struct workload_counts *counts)
{
    const struct local *local = x->local;
    double const times = x->microbatches * x->layers, forwards = 1 + x->attention_again;
    bool const turns = local->plan->model.positions == 0;
    double const rope =
        turns ? VECTOR_ROPE * (s->q + x->rows * (double)local->kv_heads * (double)local->head_width)
              : 0;
    double flop = (forwards * VECTOR_SOFTMAX + VECTOR_SOFTMAX_BACKWARD) * s->all;
    flop += (forwards + 1) * s->drops * VECTOR_DROPOUT * s->all;
    flop += x->layers * ((forwards + 1) * rope + (1 - s->unfused) * VECTOR_ROW_DOT * s->attended);
    counts->vector_flop += x->microbatches * flop;

    double const summed = 2 * (4 * s->q + s->statistics); /* fp32, written and read. */
    double bytes = forwards * ((s->q + s->attended + s->kv) * x->a + s->statistics);
    bytes += 2 * (s->q + s->attended + s->kv) * x->a + s->statistics;
    /* S and P each written and read, dP, P, dS thrice; dropout reads and writes, and a mask. */
    bytes += s->unfused * (4 * forwards + 7) * s->layer * x->a;
    bytes += s->drops * (forwards + 1) * s->layer * (2 * x->a + 1);
    bytes += s->ring_steps * (forwards * (s->q * x->a + summed) + 3 * s->q * x->a + summed);
    counts->hbm_bytes += times * bytes;

    counts->compute_count +=
        times * (forwards * (1 + 2 * s->unfused + s->drops) + 1 + 4 * s->unfused + s->drops);
    double const kept = (double)(local->kv_kept_elements + local->mid_kept_elements) * x->a;
    if (x->attention_again == 0)
        counts->activation_bytes +=
            x->layers * (s->layer * (s->unfused * x->a + s->drops * (x->a + 1)) + kept);
}

/* Keys and values gathered for attention, forward and again, and their gradients reduced; or passed
 * round a ring, in the backward pass too; or, with queries and output, turned to other heads. */
static void count_traffic(const struct letters *x, const struct scores *s,
                          struct workload_counts *counts)
{
    const struct local *local = x->local;
    struct workload_traffic *traffic = &counts->sequence;
    uint64_t const layers = local->plan->accumulate * local->plan->model.layers;
    uint64_t const forwards = UINT64_C(1) + (x->attention_again > 0);
    if (local->cp == 1) return;
    if (local_turns(local)) {
        double const turned = 2 * (s->q * local->cp + s->kv / 2 * local->cp) * x->a;
        traffic->all_to_all_count = 4 * layers * (forwards + 1);
        traffic->all_to_all_bytes = (double)(layers * (forwards + 1)) * turned;
        return;
    }
    traffic->gather_count = layers * (forwards + local_rings(local));
    traffic->scatter_count = layers;
    traffic->gather_bytes = (double)traffic->gather_count * s->kv * x->a;
    traffic->scatter_bytes = (double)traffic->scatter_count * s->kv * x->a;
    if (!local_rings(local)) return;
    traffic->algorithm = local->ring_name;
    traffic->permute_count = layers;
    traffic->permute_bytes = (double)layers * s->kv * x->a / local->cp;
}

void counts_attention(const struct letters *x, struct workload_counts *counts)
{
    if (!local_is_llama(x->local) || graph_terms_attend(x->local)) return;
    struct scores const s = scores_of(x);
    count_matmuls(x, &s, counts);
    count_rest(x, &s, counts);
    count_traffic(x, &s, counts);
}
