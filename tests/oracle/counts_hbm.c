/* Bytes that the ops of a step read and write, but for those that experts, latents and modules
 * which predict further tokens have besides. */
#include "tests/oracle/counts_parts.h"

double oracle_projection_bytes(const struct variables *x, double weights, double adds, double again,
                               struct oracle_side in, struct oracle_side out)
{
    double const in_bytes = in.elements * in.bytes, out_bytes = out.elements * out.bytes;
    double const d_in = in.elements * in.gradient_bytes;
    double const d_out = out.elements * out.gradient_bytes;
    double const forward = in_bytes + out_bytes + weights * x->bytes.w;
    double const d_weight = in_bytes + d_out + weights * x->bytes.g * (1 + adds);
    return forward * (1 + again) + d_weight + d_in + d_out + weights * x->bytes.w;
}

/* Of an MLP: between its matmuls lies what only these read. */
static double mlp_bytes(const struct variables *x)
{
    bool const norm = ranks_is_decoder(x->ranks);
    struct oracle_side const in = {x->mlp.full, norm ? x->bytes.normed : x->bytes.a, x->bytes.a};
    struct oracle_side const tmp = {x->mlp.tmp, x->bytes.m, x->bytes.m},
                             mid = {x->mlp.mid, x->bytes.m, x->bytes.m};
    struct oracle_side const out = {x->mlp.full, x->bytes.a, x->bytes.a};
    return oracle_projection_bytes(x, x->mlp.in_weights, x->remat.adds, x->remat.again, in, tmp) +
           oracle_projection_bytes(x, x->mlp.out_weights, x->remat.adds, x->remat.whole, mid, out) +
           x->mlp.gated * x->mlp.mid * x->bytes.m;
}

/* Of attention's: its own products stand between them. */
static double projections_bytes(const struct variables *x)
{
    struct oracle_side const in = {x->mlp.full, x->bytes.normed, x->bytes.a};
    struct oracle_side const tmp = {x->attention.tmp, x->bytes.a, x->bytes.a};
    struct oracle_side const attended = {x->attention.attended, x->bytes.a, x->bytes.a},
                             out = {x->mlp.full, x->bytes.a, x->bytes.a};
    return oracle_projection_bytes(x, x->attention.in, x->remat.adds, x->remat.again, in, tmp) +
           oracle_projection_bytes(x, x->attention.out, x->remat.adds, x->remat.again, attended,
                                   out);
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
        double const forwards = 1 + x->remat.attention_again;
        double const summed =
            2 * (4 * x->attention.q + x->attention.statistics); /* fp32, written and read. */
        /* A norm before each block: four arrays each way, of which one is its result. */
        double const normed = 1 + x->remat.norms_again;
        double const norm =
            x->mlp.shard * (normed * (3 * x->bytes.a + x->bytes.normed) + 4 * x->bytes.a);
        layer += norm + projections_bytes(x);
        /* Of the layer's input the sum is kept: nothing is added again. */
        layer -= (x->remat.again - x->remat.whole) * 2 * x->mlp.shard * x->bytes.a;
        mlp += norm;
        sparse = 4 * x->mlp.shard * x->bytes.a * (normed + 1);
        layer +=
            forwards * ((x->attention.q + x->attention.attended + x->attention.kv) * x->bytes.a +
                        x->attention.statistics);
        layer += 2 * (x->attention.q + x->attention.attended + x->attention.kv) * x->bytes.a +
                 x->attention.statistics;
        /* S and P each written and read, dP, P, dS thrice; dropout reads and writes, and a mask. */
        layer += x->attention.unfused * (4 * forwards + 7) * x->attention.scores * x->bytes.a;
        layer += x->attention.drops * (forwards + 1) * x->attention.scores * (2 * x->bytes.a + 1);
        layer += x->attention.ring_steps * (forwards * (x->attention.q * x->bytes.a + summed) +
                                            3 * x->attention.q * x->bytes.a + summed);
        double const embedding = x->mlp.shard * x->bytes.w + x->mlp.full * x->bytes.a +
                                 x->mlp.shard * x->bytes.a + 2 * x->mlp.shard * x->bytes.g +
                                 (tied || x->remat.adds > 0 ? 0 : x->vocabulary * x->bytes.g) +
                                 (double)oracle_position_elements(ranks) *
                                     (x->bytes.w + x->bytes.g * (1 + x->remat.adds));
        double const head = 2 * 4 * x->mlp.shard * x->bytes.a + 5 * x->logits * x->bytes.a +
                            3 * x->mlp.full * x->bytes.a + 2 * x->vocabulary * x->bytes.w +
                            x->vocabulary * x->bytes.g * (1 + x->remat.adds);
        rest = embedding + head;
    }
    counts->hbm_bytes =
        3 * oracle_tied_share(x) * x->bytes.g + 3 * oracle_summed_elements(x) * x->bytes.g +
        x->microbatches * (x->dense * mlp + x->sparse * sparse + x->layers * layer + rest) +
        oracle_state_elements(x) * (x->bytes.g + 4 * x->bytes.o + 2 * x->bytes.w);
}
