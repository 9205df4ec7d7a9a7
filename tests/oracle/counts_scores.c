/* Sizes and scores of attention: how many there are, and how many a kernel multiplies for them; see
 * workloads/ops/attention.c for the ops. */
#include <math.h>

#include "tests/oracle/counts_parts.h"

static void scores_variables(struct variables *x)
{
    const struct ranks *ranks = x->ranks;
    bool const causal = ranks->plan->attention.mask == WORKLOAD_ATTENTION_CAUSAL;
    double const keys = (double)oracle_keys(ranks), pairs = (double)ranks->sequences.of.pairs;
    double const queries = x->mlp.rows * (double)ranks->heads.queries;
    double const window = (double)ranks->plan->model.attends.window;
    double const mean = queries * (causal ? (keys + 1) / 2 : keys);
    /* Causal, the first w of T queries have w·(w + 1)/2 keys, the others w each. */
    double const in_window = causal ? window - window * (window - 1) / 2 / keys : window;
    x->attention.scores = queries * (causal ? pairs / 2 : keys);
    x->attention.windowed = (double)model_window_layers(&ranks->plan->model, ranks->kinds.keys);
    x->attention.all_scores = (x->layers - x->attention.windowed) * x->attention.scores +
                              x->attention.windowed * queries * in_window;
    x->attention.all_mean_scores =
        (x->layers - x->attention.windowed) * mean + x->attention.windowed * queries * in_window;
    x->attention.all_useful_scores = x->attention.all_mean_scores * x->attention.useful_heads;
}

void oracle_attention_variables(struct variables *x)
{
    const struct ranks *ranks = x->ranks;
    const struct model *model = &ranks->plan->model;
    double const head = (double)model->head_width;
    x->attention.q = x->mlp.rows * (double)ranks->heads.queries * head;
    double const value = (double)oracle_value_width(ranks);
    x->attention.attended = x->mlp.rows * (double)ranks->heads.queries * value;
    x->attention.qkv = x->mlp.rows * (double)oracle_qkv_columns(ranks);
    x->attention.tmp = ranks_has_mla(ranks) ? x->mlp.rows * (double)oracle_latent_columns(ranks)
                                            : x->attention.qkv;
    x->attention.kv = (double)ranks->sequences.of.count * (double)oracle_keys(ranks) *
                      (double)ranks->sequences.kv_heads * (head + value);
    x->attention.useful_heads =
        (double)model->heads / ((double)ranks->heads.queries * (double)ranks->tp);
    scores_variables(x);
    x->attention.unfused = ranks_is_unfused(ranks);
    x->attention.drops = ranks->plan->attention.kernel == WORKLOAD_KERNEL_DROPOUT;
    x->attention.statistics =
        x->attention.unfused > 0 ? 0 : 4 * x->mlp.rows * (double)ranks->heads.queries;
    x->attention.ring_steps = ranks_has_ring(ranks) ? ranks->cp - 1.0 : 0;
    x->attention.in = x->attention.tmp / x->mlp.rows * (double)oracle_width(ranks);
    x->attention.out = x->attention.attended / x->mlp.rows * (double)oracle_width(ranks);
}

/* The scores of all heads and sequences, with and without the causal half; see
 * workloads/ops/attention.c for how the half is laid out. */
static double padded_whole_scores(const struct variables *x, uint64_t width, bool weighted)
{
    const struct ranks *ranks = x->ranks;
    uint64_t rows = ranks->sequences.of.queries;
    uint64_t columns = oracle_keys(ranks);
    if (ranks->plan->attention.mask == WORKLOAD_ATTENTION_CAUSAL) {
        columns = rows % 2 == 0 ? ranks->sequences.of.pairs : (ranks->sequences.of.pairs + 1) / 2;
        rows = rows % 2 == 0 ? rows / 2 : rows;
    }
    double const one = weighted ? oracle_padded_matmul(x, rows, columns, width)
                                : oracle_padded_matmul(x, rows, width, columns);
    return one * (double)(oracle_attention_heads(ranks) * ranks->sequences.of.count);
}

/* The same of a layer with a window: a block of queries, as many as a tile has rows of the MXU,
 * meets the tile on the diagonal and those before it that the window reaches into. */
static double padded_window_scores(const struct variables *x, uint64_t width, bool weighted)
{
    const struct ranks *ranks = x->ranks;
    double const edge = x->machine->chip.mxu.columns;
    uint64_t const window = ranks->plan->model.attends.window;
    uint64_t rows = ranks->sequences.of.queries, columns = window;
    if (ranks->plan->attention.mask == WORKLOAD_ATTENTION_CAUSAL) {
        double const blocks = ceil((double)oracle_keys(ranks) / edge);
        double const reach = fmin(ceil(((double)window - 1) / edge), blocks - 1);
        double const tiles = (reach + 1) * blocks - reach * (reach + 1) / 2;
        columns = window % 2 == 0 ? window / 2 : window;
        double const own = (2 * (double)oracle_keys(ranks) - (double)window + 1) * (double)window /
                           2 / (double)columns;
        double const wide = edge * ceil((double)columns / edge);
        rows = (uint64_t)fmax(own, ceil(tiles * edge * edge / wide));
    }
    double const one = weighted ? oracle_padded_matmul(x, rows, columns, width)
                                : oracle_padded_matmul(x, rows, width, columns);
    return one * (double)(oracle_attention_heads(ranks) * ranks->sequences.of.count);
}

/* Of all layers. */
double oracle_padded_scores(const struct variables *x, uint64_t width, bool weighted)
{
    double flop = (x->layers - x->attention.windowed) * padded_whole_scores(x, width, weighted);
    if (x->attention.windowed > 0)
        flop += x->attention.windowed * padded_window_scores(x, width, weighted);
    return flop;
}
