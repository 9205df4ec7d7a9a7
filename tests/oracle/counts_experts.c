/* What a layer's experts ask of one chip: see workloads/blocks/moe.c for the ops. */
#include "sim/base/units.h"
#include "sim/base/vector.h"
#include "tests/formulas/parameters.h"
#include "tests/oracle/counts_parts.h"

/* Letters of the experts, on one chip and in one microbatch. */
struct expert_variables {
    double in, out;                 /* Matrices of a projection, as if each row met one expert's. */
    double weights_in, weights_out; /* All of the chip's experts. */
    double shared_in, shared_out;
    double sorted, arrivals,
        part; /* Rows of D: as experts read them; as they come; on one of tp. */
    double tmp, shared_tmp;
    double assigned;       /* Rows, not rounded up. */
    double logits, router; /* Elements of the router's result and of its matrix. */
    double router_inner;   /* Columns of In that a rank scores. */
    double adds;
    double shared;  /* 1: there are shared experts; */
    double gathers; /* 1: and they gather In over tp. */
    double sums;    /* 1: logits are summed over tp. */
    double idle;    /* Of a rank's experts those that no token asks for, which are not read. */
    double casts;   /* 1: what travels to experts is a copy in a format of its own. */
};

/* Ranks of tp that split an expert: none where ep lies over tp. */
static uint32_t ways_of(const struct ranks *ranks)
{
    return mesh_ep_over(ranks->mesh, MESH_TP) ? 1 : ranks->tp;
}

/* F of an expert on one rank, rounded up; and of a shared one, which all of tp split. */
static uint64_t columns_of(const struct ranks *ranks)
{
    return units_ceil_divide(ranks->plan->model.experts.width, ways_of(ranks));
}

static uint64_t shared_columns_of(const struct ranks *ranks)
{
    return units_ceil_divide(ranks->plan->model.experts.width, ranks->tp);
}

static struct expert_variables variables_of(const struct variables *x)
{
    const struct ranks *ranks = x->ranks;
    const struct routing *experts = &ranks->experts;
    const struct model_experts *model = &ranks->plan->model.experts;
    double const width = (double)oracle_width(ranks), tp = ranks->tp;
    double const row = (double)ranks_block_columns(ranks); /* Of D, with padding. */
    double const columns = (double)columns_of(ranks);
    double const shared_columns = (double)shared_columns_of(ranks);
    double const count = (double)model->count / experts->ranks;
    bool const by_tokens = ranks->plan->activations == WORKLOAD_ACTIVATIONS_TOKENS;
    struct expert_variables e = {.shared = model->shared != 0};
    e.idle = 1 - (double)experts->asked / count;
    e.in = width * columns * (1 + x->mlp.gated);
    e.out = width * columns;
    e.weights_in = count * e.in;
    e.weights_out = count * e.out;
    e.shared_out = (double)model->shared * width * shared_columns;
    e.shared_in = e.shared_out * (1 + x->mlp.gated);
    e.sorted = (double)experts->all * row;
    e.arrivals = (double)experts->arrivals * row;
    e.part = (double)experts->sent * row / ways_of(ranks);
    e.tmp = (double)experts->all * columns * (1 + x->mlp.gated);
    e.shared_tmp = x->mlp.rows * (double)model->shared * shared_columns * (1 + x->mlp.gated);
    e.assigned = (double)experts->kept;
    e.logits = x->mlp.rows * (by_tokens ? 1 / tp : 1) * (double)model->count;
    e.router_inner = by_tokens ? width : row / tp;
    e.router = e.router_inner * (double)model->count;
    e.adds = ranks->plan->accumulate > 1 && experts->replicas.gradient_shards == 1;
    e.gathers = e.shared > 0 && ranks->tp > 1;
    e.sums = ranks->tp > 1 && !by_tokens;
    e.casts = ranks->plan->formats.dispatch != ranks->plan->formats.activations;
    return e;
}

void oracle_experts_variables(struct variables *x)
{
    const struct model_experts *model = &x->ranks->plan->model.experts;
    if (x->sparse == 0) return;
    struct expert_variables const e = variables_of(x);
    double const count = (double)model->count / x->ranks->experts.ranks;
    double const columns = (double)columns_of(x->ranks);
    double const bias = columns * (1 + x->mlp.gated) + (double)oracle_width(x->ranks);
    x->sparse_elements += e.router + (model->router_biased ? (double)model->count : 0);
    x->sparse_elements += e.shared_in + e.shared_out;
    x->sparse_elements +=
        (double)oracle_vector_share(x->ranks, formula_shared_biases(&x->ranks->plan->model));
    x->expert_elements = e.weights_in + e.weights_out + (model->biased ? count * bias : 0);
}

uint64_t oracle_sparse_units(const struct variables *x)
{
    const struct workload_plan *plan = x->ranks->plan;
    if (x->sparse == 0) return 0;
    if (plan->gather == WORKLOAD_GATHER_LAYER) return 2;
    if (plan->gather == WORKLOAD_GATHER_BLOCK) return 3;
    return oracle_attention_units(x) + 1 +
           plan->model.matrices * (plan->model.experts.shared != 0 ? 2 : 1);
}

uint64_t oracle_expert_units(const struct variables *x)
{
    const struct workload_plan *plan = x->ranks->plan;
    if (x->sparse == 0) return 0;
    return plan->gather == WORKLOAD_GATHER_TENSOR ? plan->model.matrices : 1;
}

static void count_matmuls(const struct variables *x, const struct expert_variables *e,
                          struct workload_counts *counts)
{
    const struct ranks *ranks = x->ranks;
    const struct routing *experts = &ranks->experts;
    const struct model_experts *model = &ranks->plan->model.experts;
    double const passes = 3 + x->remat.again, times = x->microbatches * x->sparse;
    double const ins = passes, outs = 3 + x->remat.whole;
    double const shared = 2 * x->mlp.rows * (e->shared_in + e->shared_out);
    double const router = 2 * e->logits * e->router_inner;
    bool const by_tokens = ranks->plan->activations == WORKLOAD_ACTIVATIONS_TOKENS;
    double const scored = (double)oracle_width(ranks) / (by_tokens ? 1 : ranks->tp);
    double const useful_router = 2 * e->logits * scored;
    double const all = (double)(experts->asked * experts->rows);
    counts->spare.uneven = times * 3 * 2 * (all - e->assigned) * (e->in + e->out);
    counts->matmul_flop += times * passes * router;
    double const kept = 2 * e->assigned * (e->in + e->out);
    uint64_t const columns = columns_of(ranks);
    uint64_t const overlap = model->shared * shared_columns_of(ranks);
    double const useful = (double)model->width / (double)columns / ways_of(ranks);
    double const useful_shared =
        (double)model->width / (double)shared_columns_of(ranks) / (double)ranks->tp;
    double const wanted = kept * useful + shared * useful_shared;
    counts->matmul_useful += times * 3 * (wanted + useful_router);
    counts->spare.padding += times * 3 * (kept + shared - wanted + router - useful_router);
    uint64_t const router_rows = by_tokens ? ranks->rows / ranks->tp : ranks->rows;
    double const gates = ins * (1 + x->mlp.gated);
    double pads = (double)experts->asked *
                  (gates * oracle_padded_matmul(x, experts->rows, oracle_width(ranks), columns) +
                   outs * oracle_padded_matmul(x, experts->rows, columns, oracle_width(ranks)));
    if (e->shared > 0)
        pads += gates * oracle_padded_matmul(x, ranks->rows, oracle_width(ranks), overlap) +
                outs * oracle_padded_matmul(x, ranks->rows, overlap, oracle_width(ranks));
    counts->padded_flop +=
        times * passes *
        oracle_padded_matmul(x, router_rows, (uint64_t)e->router_inner, model->count);
    oracle_linear(counts,
                  times * (2 * all * (ins * e->in + outs * e->out) +
                           2 * x->mlp.rows * (ins * e->shared_in + outs * e->shared_out)),
                  times * pads);
}

static void count_vector(const struct variables *x, const struct expert_variables *e,
                         struct workload_counts *counts)
{
    const struct model_experts *model = &x->ranks->plan->model.experts;
    double const times = x->microbatches * x->sparse, forwards = 1 + x->remat.again;
    double const outs = 2 + x->remat.whole; /* Out-projections, or their dW, and ways back. */
    double const one = e->tmp / (1 + x->mlp.gated), shared = e->shared_tmp / (1 + x->mlp.gated);
    double const gate = x->mlp.gated * VECTOR_GATE;
    double const back = x->mlp.gated * VECTOR_GATE_BACKWARD;
    double flop = forwards * (double)(VECTOR_ROUTE + model->top_k) * e->logits;
    flop += VECTOR_ROUTE_BACKWARD * e->logits;
    flop += outs * ((1 + gate) * one + gate * shared);
    flop += (VECTOR_ROW_DOT + 1 + back) * one + back * shared;
    /* Sums of a token's experts on a chip, and of what comes back of it. */
    flop += outs * (e->sorted + e->part + e->shared * x->mlp.shard) + x->mlp.shard;
    counts->vector_flop += times * flop;
}

/* Both projections: experts read rows that are sorted for them, and so gradients of what they give;
 * shared experts read the block's own. */
static double projections_bytes(const struct variables *x, double adds, const double weights[2],
                                double rows, double rows_bytes, double tmp)
{
    struct oracle_side const in = {rows, rows_bytes, x->bytes.a},
                             between = {tmp, x->bytes.m, x->bytes.m};
    struct oracle_side const out = {rows, x->bytes.a, rows_bytes};
    return oracle_projection_bytes(x, weights[0], adds, x->remat.again, in, between) +
           oracle_projection_bytes(x, weights[1], adds, x->remat.whole, between, out) +
           x->mlp.gated * tmp * x->bytes.m;
}

static void count_hbm(const struct variables *x, const struct expert_variables *e,
                      struct workload_counts *counts)
{
    double const forwards = 1 + x->remat.again, outs = 2 + x->remat.whole;
    double const weights[2] = {e->weights_in, e->weights_out};
    double const shared[2] = {e->shared_in, e->shared_out};
    double bytes = projections_bytes(x, e->adds, weights, e->sorted, x->bytes.m, e->tmp);
    bytes -= e->idle * x->bytes.w *
             ((2 + x->remat.again) * weights[0] + (2 + x->remat.whole) * weights[1]);
    if (e->shared > 0)
        bytes +=
            projections_bytes(x, x->remat.adds, shared, x->mlp.full, x->bytes.a, e->shared_tmp);
    bytes += forwards * (x->mlp.shard * x->bytes.a + e->router * x->bytes.w + 3 * 4 * e->logits);
    bytes += 2 * x->mlp.shard * x->bytes.a + e->router * x->bytes.w + 4 * 4 * e->logits +
             e->router * x->bytes.g * (1 + x->remat.adds);
    /* Sorted and summed, both ways, and sorted once more where rows are not kept. */
    double const sorts = forwards + 1 + (x->remat.attention_again - x->remat.again);
    bytes += sorts * (e->arrivals * x->bytes.d + e->sorted * x->bytes.m);
    bytes += outs * (e->arrivals + e->sorted) * x->bytes.a;
    bytes += sorts * e->casts * x->mlp.shard * (x->bytes.a + x->bytes.d);
    bytes +=
        outs * (e->part + (1 + e->shared) * x->mlp.shard) * x->bytes.a + x->mlp.shard * x->bytes.a;
    counts->hbm_bytes += x->microbatches * x->sparse * bytes;
}

static void count_traffic(const struct variables *x, const struct expert_variables *e,
                          struct workload_counts *counts)
{
    const struct ranks *ranks = x->ranks;
    const struct routing *experts = &ranks->experts;
    uint64_t const layers = ranks->plan->accumulate * ranks_layers_with(ranks, true);
    uint64_t const block = x->remat.again > 0, big = x->remat.attention_again > 0 && !block;
    uint64_t const outs =
        2 + (x->remat.whole > 0); /* Ways back, of what experts give or gradients. */
    if (experts->ranks > 1) {
        struct workload_traffic *exchange = &counts->role[MESH_EP];
        double const part = (double)ranks_block_columns(ranks) / ways_of(ranks); /* Of a token. */
        uint64_t const there = layers * (2 + block + big), back = layers * outs;
        double const bytes = part * ((double)there * x->bytes.d + (double)back * x->bytes.a);
        exchange->all_to_all_count = there + back;
        exchange->critical_passes = there + back;
        exchange->all_to_all_bytes = (double)experts->exchanged * bytes;
        for (uint32_t d = 0; d < GROUP_DIMENSIONS_MAX; d++)
            exchange->crossing_bytes[d] = (double)experts->crossing[d] * bytes;
    }
    if (ranks->tp == 1) return;
    struct workload_traffic *tp = &counts->role[MESH_TP];
    uint64_t const shared = e->shared > 0, times = 1 + block;
    /* In alone. */
    uint64_t const again = (x->remat.norms_again > 0 && !block) || ranks_keeps_parts(ranks);
    uint64_t const split = ways_of(ranks) > 1; /* 1: ranks of tp gather rows, and add them up. */
    uint64_t const rows_gathered = split * layers * (times + 1 + big);
    uint64_t const rows_scattered = split * layers * outs;
    uint64_t const in_gathered = layers * shared * (times + 1 + again);
    uint64_t const out_scattered = layers * shared * outs;
    uint64_t const sums = e->sums > 0 ? layers * times : 0;
    tp->gather_count += rows_gathered + in_gathered;
    tp->gather_bytes += (double)rows_gathered * e->arrivals * x->bytes.d +
                        (double)in_gathered * x->mlp.full * x->bytes.a;
    tp->scatter_count += rows_scattered + out_scattered;
    tp->scatter_bytes +=
        ((double)rows_scattered * e->arrivals + (double)out_scattered * x->mlp.full) * x->bytes.a;
    tp->all_reduce_count += sums;
    tp->all_reduce_bytes += (double)sums * 4 * e->logits;
    /* Each rank has the router's gradient of its own tokens. */
    if (ranks->plan->activations == WORKLOAD_ACTIVATIONS_TOKENS) {
        bool const once = ranks->replicas.gradient_shards == 1;
        uint64_t const of_router = ranks_layers_with(ranks, true) *
                                   (once ? ranks->model_replicas : ranks->plan->accumulate);
        tp->all_reduce_count += of_router;
        tp->all_reduce_bytes += (double)of_router * e->router * x->bytes.g;
    }
    tp->critical_passes += rows_gathered + rows_scattered + in_gathered + out_scattered + 2 * sums;
}

/* Tokens that are dropped are not what the step is for. */
static void count_dropped(const struct variables *x, struct workload_counts *counts)
{
    const struct workload_plan *plan = x->ranks->plan;
    const struct routing *experts = &x->ranks->experts;
    double const rows = x->mlp.rows * ways_of(x->ranks) / x->ranks->tp;
    double const all = rows * (double)plan->model.experts.top_k * experts->ranks;
    counts->rows.assigned =
        x->sparse * (double)plan->batch_tokens * (double)plan->model.experts.top_k;
    counts->rows.dropped = counts->rows.assigned * (double)experts->dropped / all;
}

double oracle_experts_products(const struct variables *x)
{
    if (x->sparse == 0) return 0;
    struct expert_variables const e = variables_of(x);
    return x->sparse * (e.tmp + e.shared_tmp) / (1 + x->mlp.gated);
}

void oracle_experts(const struct variables *x, struct workload_counts *counts)
{
    if (x->sparse == 0) return;
    struct expert_variables const e = variables_of(x);
    count_matmuls(x, &e, counts);
    count_vector(x, &e, counts);
    count_hbm(x, &e, counts);
    count_traffic(x, &e, counts);
    count_dropped(x, counts);
    double const forward = 8 + 2 * e.shared, backward = 10 + 4 * e.shared;
    double const dead = (1 - x->remat.whole) * (3 + e.shared); /* Out, the way back and the sum. */
    double const again =
        x->remat.again > 0 ? forward - dead : x->remat.norms_again + x->remat.attention_again;
    double const casts = e.casts * (2 + x->remat.attention_again);
    counts->ops.count += x->microbatches * x->sparse * (forward + backward + again + casts);
    if (x->remat.again > 0) return;
    double kept = x->mlp.shard * x->bytes.a + (e.tmp + e.shared_tmp) * x->bytes.m + 4 * e.logits;
    if (x->remat.attention_again == 0) kept += e.sorted * x->bytes.m;
    if (x->remat.norms_again == 0)
        kept += (e.gathers > 0 ? x->mlp.in_kept : x->mlp.shard) * x->bytes.a;
    counts->memory.activation_bytes += x->sparse * kept;
}
