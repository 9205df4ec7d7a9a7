/* Bytes that the ops of a step read and write, but for those that experts, latents and modules
 * which predict further tokens have besides. */
#include "tests/oracle/counts_parts.h"

double oracle_projection_bytes(const struct variables *x, double weights, double adds, double again,
                               struct oracle_side in, struct oracle_side out)
{
    double const in_bytes = in.elements * in.bytes, out_bytes = out.elements * out.bytes;
    double const d_in = in.elements * in.gradient_bytes;
    double const d_out = out.elements * out.gradient_bytes;
    double const forward = in_bytes + out_bytes + weights * x->w;
    double const d_weight = in_bytes + d_out + weights * x->g * (1 + adds);
    return forward * (1 + again) + d_weight + d_in + d_out + weights * x->w;
}

/* Of an MLP: between its matmuls lies what only these read. */
static double mlp_bytes(const struct variables *x)
{
    bool const norm = ranks_is_decoder(x->ranks);
    struct oracle_side const in = {x->full, norm ? x->normed : x->a, x->a};
    struct oracle_side const tmp = {x->tmp, x->m, x->m}, mid = {x->mid, x->m, x->m};
    struct oracle_side const out = {x->full, x->a, x->a};
    return oracle_projection_bytes(x, x->in_weights, x->adds, x->again, in, tmp) +
           oracle_projection_bytes(x, x->out_weights, x->adds, x->whole, mid, out) +
           x->gated * x->mid * x->m;
}

/* Of attention's: its own products stand between them. */
static double projections_bytes(const struct variables *x)
{
    struct oracle_side const in = {x->full, x->normed, x->a};
    struct oracle_side const tmp = {x->attention_tmp, x->a, x->a};
    struct oracle_side const attended = {x->attended, x->a, x->a}, out = {x->full, x->a, x->a};
    return oracle_projection_bytes(x, x->attention_in, x->adds, x->again, in, tmp) +
           oracle_projection_bytes(x, x->attention_out, x->adds, x->again, attended, out);
}

void oracle_hbm(const struct variables *x, struct workload_counts *counts)
{
    const struct ranks *ranks = x->ranks;
    bool const tied = ranks->tie.here;
    double mlp = mlp_bytes(x);
    double layer = 0;
    double sparse = 0;
    double rest = 0;
    if (ranks_is_decoder(ranks)) {
        double const forwards = 1 + x->attention_again;
        double const summed = 2 * (4 * x->q + x->statistics); /* fp32, written and read. */
        /* A norm before each block: four arrays each way, of which one is its result. */
        double const normed = 1 + x->norms_again;
        double const norm = x->shard * (normed * (3 * x->a + x->normed) + 4 * x->a);
        layer += norm + projections_bytes(x);
        /* Of the layer's input the sum is kept: nothing is added again. */
        layer -= (x->again - x->whole) * 2 * x->shard * x->a;
        mlp += norm;
        sparse = 4 * x->shard * x->a * (normed + 1);
        layer += forwards * ((x->q + x->attended + x->kv) * x->a + x->statistics);
        layer += 2 * (x->q + x->attended + x->kv) * x->a + x->statistics;
        /* S and P each written and read, dP, P, dS thrice; dropout reads and writes, and a mask. */
        layer += x->unfused * (4 * forwards + 7) * x->scores * x->a;
        layer += x->drops * (forwards + 1) * x->scores * (2 * x->a + 1);
        layer += x->ring_steps * (forwards * (x->q * x->a + summed) + 3 * x->q * x->a + summed);
        double const embedding =
            x->shard * x->w + x->full * x->a + x->shard * x->a + 2 * x->shard * x->g +
            (tied || x->adds > 0 ? 0 : x->vocabulary * x->g) +
            (double)oracle_position_elements(ranks) * (x->w + x->g * (1 + x->adds));
        double const head = 2 * 4 * x->shard * x->a + 5 * x->logits * x->a + 3 * x->full * x->a +
                            2 * x->vocabulary * x->w + x->vocabulary * x->g * (1 + x->adds);
        rest = embedding + head;
    }
    counts->hbm_bytes =
        3 * oracle_tied_share(x) * x->g + 3 * oracle_summed_elements(x) * x->g +
        x->microbatches * (x->dense * mlp + x->sparse * sparse + x->layers * layer + rest) +
        oracle_state_elements(x) * (x->g + 4 * x->o + 2 * x->w);
}
