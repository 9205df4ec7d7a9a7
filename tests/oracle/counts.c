#include "tests/oracle/oracle.h"

#include "sim/base/units.h"
#include "sim/base/vector.h"
#include "tests/formulas/parameters.h"
#include "tests/oracle/counts_parts.h"

static double bytes_of(enum format format)
{
    return format_bits(format) / 8.0;
}

static uint64_t partial_elements(const struct ranks *ranks)
{
    if (!ranks_has_mla(ranks))
        return 2 * oracle_width(ranks) * ranks->heads.kv * oracle_head_width(ranks);
    return oracle_width(ranks) * oracle_latent_columns(ranks) + oracle_latent_normed(ranks);
}

/* Keys and values that attention keeps besides the rank's own, and of its output what it keeps
 * besides what is multiplied. */
static uint64_t shared_kept_elements(const struct ranks *ranks)
{
    uint64_t const columns = 2 * ranks->sequences.of.count * oracle_head_width(ranks);
    if (ranks_has_ulysses(ranks))
        return columns * (oracle_keys(ranks) * ranks->sequences.kv_heads -
                          oracle_queries(ranks) * ranks->heads.kv) +
               ranks->rows * ranks->heads.queries * oracle_head_width(ranks);
    if (ranks_has_ring(ranks)) return 0;
    return columns * (oracle_keys(ranks) - oracle_queries(ranks)) * ranks->heads.kv;
}

static struct variables variables_of(const struct ranks *ranks, const struct machine *machine)
{
    const struct workload_plan *plan = ranks->plan;
    bool const llama = ranks_is_decoder(ranks);
    struct variables x = {.ranks = ranks, .machine = machine};
    struct error error;
    enum status const status = workload_lists_read(plan, machine, ranks->mesh, &x.lists, &error);
    SIM_ASSERT(status == STATUS_OK);
    x.layers = (double)(plan->model.layers + ranks->mtp.modules);
    x.mtp_modules = (double)ranks->mtp.modules;
    x.microbatches = plan->accumulate;
    x.remat.again = graph_remat_repeats(plan->remat);
    x.remat.whole = plan->remat == GRAPH_REMAT_LAYER;
    x.remat.attention_again = plan->remat >= GRAPH_REMAT_BIG_MATMULS;
    x.remat.norms_again = plan->remat != GRAPH_REMAT_NONE;
    x.remat.adds = plan->accumulate > 1 && ranks->replicas.gradient_shards == 1;
    x.bytes.a = bytes_of(plan->formats.activations);
    x.bytes.m = bytes_of(plan->formats.matmuls);
    x.bytes.d = bytes_of(plan->formats.dispatch);
    x.bytes.normed = bytes_of(oracle_normed_format(ranks));
    x.bytes.w = bytes_of(plan->formats.weights);
    x.bytes.g = bytes_of(plan->formats.gradients);
    x.bytes.o = bytes_of(plan->formats.optimizer);
    x.mlp.rows = (double)ranks->rows;
    x.mlp.full = x.mlp.rows * (double)ranks_block_columns(ranks);
    x.mlp.shard = x.mlp.full / ranks->tp;
    x.mlp.in_kept = ranks_keeps_parts(ranks) ? x.mlp.shard : x.mlp.full;
    x.mlp.gated = plan->model.matrices == 3;
    double const columns = (double)oracle_mlp_columns(ranks);
    x.mlp.in_weights = (double)oracle_width(ranks) * columns * (1 + x.mlp.gated);
    x.mlp.out_weights = (double)oracle_width(ranks) * columns;
    x.mlp.tmp = x.mlp.mid = x.mlp.rows * columns * (1 + x.mlp.gated);
    x.dense = (double)ranks_layers_with(ranks, false);
    x.sparse = (double)ranks_layers_with(ranks, true);
    x.layer_elements = x.mlp.in_weights + x.mlp.out_weights;
    if (llama) {
        oracle_attention_variables(&x);
        oracle_latent_variables(&x);
        x.vocabulary = (double)oracle_vocabulary(ranks) * (double)oracle_width(ranks);
        x.logits = x.mlp.rows * (double)oracle_vocabulary(ranks);
        x.tied_apart = ranks->tie.apart ? 2 * x.vocabulary : 0;
        double const both =
            x.attention.in + x.attention.out + 2 * (double)oracle_norm_elements(ranks) +
            (double)oracle_vector_share(ranks, formula_attention_vectors(&plan->model)) +
            x.attention.mla_up + (double)oracle_latent_normed(ranks);
        x.layer_elements +=
            both + (double)oracle_vector_share(ranks, formula_mlp_biases(&plan->model));
        x.sparse_elements += both;
    }
    oracle_experts_variables(&x);
    x.step_elements = x.dense * x.layer_elements + x.sparse * x.sparse_elements;
    if (llama) {
        x.step_elements += x.vocabulary * ((ranks->tie.here ? 1 : 2) + ranks->tie.lookup) +
                           (double)(oracle_norm_elements(ranks) + oracle_position_elements(ranks));
        x.step_elements += x.mtp_modules * (double)oracle_mtp_elements(ranks);
    }
    return x;
}

static double padded(uint64_t amount, uint64_t multiple)
{
    return (double)units_round_up(amount, multiple);
}

/* 2·rows·inner·columns with the shape padded to the chip's MXU. */
double oracle_padded_matmul(const struct variables *x, uint64_t rows, uint64_t inner,
                            uint64_t columns)
{
    const struct chip *chip = &x->machine->chip;
    return 2 * padded(rows, 8) * padded(inner, chip->mxu.rows) * padded(columns, chip->mxu.columns);
}

/* Each weight is multiplied forward, for dW, for dX, and once more where it is repeated. */
static void count_matmuls(const struct variables *x, struct workload_counts *counts)
{
    const struct ranks *ranks = x->ranks;
    const struct model *model = &ranks->plan->model;
    double const passes = 3 + x->remat.again;
    double const mlp =
        2 * x->mlp.rows * (passes * x->mlp.in_weights + (3 + x->remat.whole) * x->mlp.out_weights);
    double const layer = passes * 2 * x->mlp.rows * (x->attention.in + x->attention.out);
    double const head = 2 * x->mlp.rows * x->vocabulary;
    /* Scores and their gradients' products are as wide as K, the others as V. */
    double const dots = 2 * x->attention.all_scores * (double)oracle_head_width(ranks);
    double const values = 2 * x->attention.all_scores * (double)oracle_value_width(ranks);
    double const widths = 2 * (double)(oracle_head_width(ranks) + oracle_value_width(ranks));
    double const mean_dots = x->attention.all_mean_scores * widths;
    double const useful_dots = x->attention.all_useful_scores * widths;
    double const all_dots = (4 - x->attention.unfused + x->remat.attention_again) * dots +
                            (3 + x->remat.attention_again) * values;
    counts->matmul_flop =
        x->microbatches * (x->dense * mlp + x->layers * layer + all_dots + 3 * head);
    counts->linear.flop = x->microbatches * (x->dense * mlp + x->layers * layer);
    counts->spare.flash = x->microbatches * (1 - x->attention.unfused) * dots;
    counts->spare.waiting = x->microbatches * 3 * (dots + values - mean_dots);
    counts->spare.padding =
        x->microbatches * (3 * (mean_dots - useful_dots) + oracle_matmul_padding(x));

    double const columns =
        (double)(ranks_has_mla(ranks)
                     ? oracle_latent_columns(ranks) + model->heads * oracle_value_width(ranks)
                     : (2 * model->heads + 2 * model->kv_heads) * model->head_width);
    double const mlp_width = x->dense * (double)(model->matrices * model->mlp_width);
    double const useful_width = mlp_width + x->layers * columns;
    double const useful = 2 * x->mlp.rows * (double)oracle_width(ranks) / ranks->tp;
    counts->matmul_useful = x->microbatches * (3 * useful * useful_width + 3 * useful_dots +
                                               3 * useful * (double)model->vocabulary);
}

static void count_padded(const struct variables *x, struct workload_counts *counts)
{
    const struct ranks *ranks = x->ranks;
    double const passes = 3 + x->remat.again;
    uint64_t const rows = ranks->rows;
    uint64_t const width = oracle_width(ranks);
    double const pad =
        passes * (1 + x->mlp.gated) *
            oracle_padded_matmul(x, rows, width, oracle_mlp_columns(ranks)) +
        (3 + x->remat.whole) * oracle_padded_matmul(x, rows, oracle_mlp_columns(ranks), width);
    double pad_attention = 0;
    double pad_dots = 0;
    double pad_head = 0;
    if (ranks_is_decoder(ranks)) {
        uint64_t const key = oracle_head_width(ranks), value = oracle_value_width(ranks);
        uint64_t const columns =
            ranks_has_mla(ranks) ? oracle_latent_columns(ranks) : oracle_qkv_columns(ranks);
        pad_attention =
            passes * (oracle_padded_matmul(x, rows, width, columns) +
                      oracle_padded_matmul(x, rows, ranks->heads.queries * value, width));
        pad_dots = (2 - x->attention.unfused + x->remat.attention_again) *
                       oracle_padded_scores(x, key, false) +
                   (1 + x->remat.attention_again) * oracle_padded_scores(x, value, true) +
                   oracle_padded_scores(x, value, false) + 2 * oracle_padded_scores(x, key, true) +
                   oracle_padded_scores(x, value, true);
        pad_head = 3 * oracle_padded_matmul(x, rows, width, oracle_vocabulary(ranks));
    }
    counts->padded_flop =
        x->microbatches * (x->dense * pad + x->layers * pad_attention + pad_dots + pad_head);
    counts->linear.padded_flop = x->microbatches * (x->dense * pad + x->layers * pad_attention);
}

void oracle_linear(struct workload_counts *counts, double flop, double padded_flop)
{
    counts->matmul_flop += flop;
    counts->linear.flop += flop;
    counts->padded_flop += padded_flop;
    counts->linear.padded_flop += padded_flop;
}

static void count_vector(const struct variables *x, struct workload_counts *counts)
{
    const struct ranks *ranks = x->ranks;
    double const gate = x->mlp.gated * x->mlp.rows * (double)oracle_mlp_columns(ranks);
    double const mlp = gate * ((2 + x->remat.whole) * VECTOR_GATE + VECTOR_GATE_BACKWARD);
    double layer = 0;
    double rest = 0;
    if (ranks_is_decoder(ranks)) {
        double const forwards = 1 + x->remat.attention_again;
        double const latent = (double)((ranks->heads.queries + 1) * ranks->plan->model.mla.rope);
        double const turned = ranks->plan->model.positions.learned != 0 ? 0
                              : ranks_has_mla(ranks)
                                  ? x->mlp.rows * latent
                                  : x->attention.q + (x->attention.qkv - x->attention.q) / 2;
        double const rope = VECTOR_ROPE * turned;
        layer +=
            2 * x->mlp.shard * ((1 + x->remat.norms_again) * VECTOR_NORM + VECTOR_NORM_BACKWARD);
        /* Of the layer's input the sum is kept. */
        layer -=
            (x->remat.again - x->remat.whole) * x->mlp.shard * (VECTOR_NORM - VECTOR_NORM_ALONE);
        layer += forwards * rope;
        layer += rope + (1 - x->attention.unfused) * VECTOR_ROW_DOT * x->attention.attended;
        rest = (forwards * VECTOR_SOFTMAX + VECTOR_SOFTMAX_BACKWARD) * x->attention.all_scores;
        rest += (forwards + 1) * x->attention.drops * VECTOR_DROPOUT * x->attention.all_scores;
        rest += x->mlp.shard * (VECTOR_NORM + VECTOR_NORM_BACKWARD + 1) + VECTOR_LOSS * x->logits;
    }
    counts->vector_flop = oracle_tied_share(x) + oracle_summed_elements(x) +
                          x->microbatches * (x->dense * mlp + x->layers * layer + rest) +
                          VECTOR_ADAM * oracle_state_elements(x);
}

/* A layer of the bare MLP has two projections, each forward, dW and dX. A llama's also has two
 * norms each way, and flash attention each way; before and behind the layers are the embedding and
 * its gradient, and the head's norm each way, logits, loss, dW and dIn. `layer` repeats all of it,
 * `block` all but the last matmul; big_matmuls repeats what lies between the matmuls: the norms and
 * flash attention; `norms` only these. */
static void count_ops(const struct variables *x, struct workload_counts *counts)
{
    bool const llama = ranks_is_decoder(x->ranks);
    double const more = 2 * x->attention.unfused + x->attention.drops,
                 back = 4 * x->attention.unfused + x->attention.drops;
    double const forward = llama ? 7 + more : 2, backward = llama ? 11 + back : 4;
    double const between =
        llama ? 2 * x->remat.norms_again + x->remat.attention_again * (1 + more) : 0;
    double const again = x->remat.again > 0 ? forward - 1 + x->remat.whole : between;
    double const updates = x->layers + (llama ? 2 - x->ranks->tie.here : 0);
    counts->ops.count =
        (x->tied_apart > 0 ? 2 : 0) + (x->ranks->model_replicas > 1 ? 4 : 1) * updates +
        x->microbatches * (x->layers * (forward + backward + again) + (llama ? 8 : 0));
    if (x->sparse == 0) return;
    /* Of what is counted for an MLP: a norm, two matmuls; backwards a norm and four. */
    double const instead = 3 + 5 + (x->remat.again > 0 ? 2 + x->remat.whole : x->remat.norms_again);
    counts->ops.count -= x->microbatches * x->sparse * instead;
}

/* Gradients that several ranks have of the same weights, and, with a ZeRO stage, those weights. */
static void count_replicas(const struct variables *x, bool experts, uint64_t units,
                           struct workload_traffic *traffic)
{
    const struct ranks *ranks = x->ranks;
    const struct workload_plan *plan = ranks->plan;
    uint64_t const times = ranks->gradients.last ? ranks->model_replicas : plan->accumulate;
    double const elements = oracle_share(x, ranks->shards, experts);
    if (plan->zero == 0) {
        traffic->all_reduce_bytes += (double)times * elements * x->bytes.g;
        traffic->all_reduce_count += times * units;
        return;
    }
    traffic->scatter_bytes += (double)times * elements * x->bytes.g;
    traffic->scatter_count += times * units;
    traffic->gather_bytes += ranks->model_replicas * elements * x->bytes.w;
    traffic->gather_count += ranks->model_replicas * units;
}

/* Weights gathered and gradients reduced, as one op a unit. */
static void count_weights(const struct variables *x, struct workload_counts *counts)
{
    const struct ranks *ranks = x->ranks;
    const struct workload_plan *plan = ranks->plan;
    bool const llama = ranks_is_decoder(ranks);
    bool const tied = ranks->tie.here;
    uint64_t const tensors = plan->model.matrices + (llama ? oracle_attention_units(x) : 0);
    uint64_t const layer_units = plan->gather == WORKLOAD_GATHER_TENSOR  ? tensors
                                 : plan->gather == WORKLOAD_GATHER_LAYER ? 1
                                                                         : UINT64_C(1) + llama;
    uint64_t const expert_units = oracle_expert_units(x);
    uint64_t const units = ranks_layers_with(ranks, false) * layer_units +
                           ranks_layers_with(ranks, true) * (oracle_sparse_units(x) - expert_units);
    uint64_t const of_experts = ranks_layers_with(ranks, true) * expert_units;
    uint64_t const owned = llama ? UINT64_C(2) - tied + ranks->mtp.modules + ranks->tie.lookup : 0;
    double const layers = x->dense * x->layer_elements + x->sparse * x->sparse_elements;
    /* Without what oracle_predictors() counts. */
    double const rest = x->step_elements - layers -
                        x->mtp_modules * (double)oracle_mtp_elements(ranks) -
                        (ranks->tie.lookup ? x->vocabulary : 0);
    double const experts = x->sparse * x->expert_elements;
    if (ranks->shards > 1 && ranks->gradients.once) {
        /* At least once: how often more depends on the order of passes. */
        struct workload_traffic *traffic = &counts->role[ranks->shard_role];
        traffic->gather_bytes += ranks->model_replicas * (x->step_elements + experts) * x->bytes.w;
        traffic->gather_count += ranks->model_replicas * (units + of_experts + owned);
        traffic->scatter_bytes += ranks->model_replicas * (x->step_elements + experts) * x->bytes.g;
        traffic->scatter_count += ranks->model_replicas * (units + of_experts + owned);
    } else if (ranks->shards > 1) {
        struct workload_traffic *traffic = &counts->role[ranks->shard_role];
        /* Tied, the one matrix is gathered for the lookup and for the head. */
        traffic->gather_bytes += x->microbatches *
                                 (2 * (layers + experts) + rest + (tied ? x->vocabulary : 0)) *
                                 x->bytes.w;
        traffic->gather_count += plan->accumulate * (2 * (units + of_experts) + (llama ? 2 : 0));
        /* Other passes of a pipeline may lie between the head's forward and backward pass. */
        if (ranks->pp > 1 && llama) {
            uint32_t const returns = x->lists.head_returns;
            traffic->gather_bytes +=
                returns * (x->vocabulary + (double)oracle_norm_elements(ranks)) * x->bytes.w;
            traffic->gather_count += returns;
        }
        traffic->scatter_bytes += x->microbatches * (x->step_elements + experts) * x->bytes.g;
        traffic->scatter_count += plan->accumulate * (units + of_experts + owned);
    }
    if (ranks->replicas.count > 1)
        count_replicas(x, /* experts= */ false, units + owned, &counts->role[MESH_DP]);
    if (ranks->experts.replicas.count > 1) count_replicas(x, true, of_experts, &counts->experts);
}

static void count_activations(const struct variables *x, struct workload_counts *counts)
{
    const struct ranks *ranks = x->ranks;
    const struct workload_plan *plan = ranks->plan;
    bool const llama = ranks_is_decoder(ranks);
    uint64_t const layers = plan->model.layers + ranks->mtp.modules;
    uint64_t const mlps = ranks_layers_with(ranks, false), attentions = layers * llama;
    uint64_t const ends =
        llama ? UINT64_C(2) : 0; /* Embedding and head: one of each kind a pass. */
    bool const parts = ranks_keeps_parts(ranks);
    bool const in_again = llama ? parts || x->remat.norms_again > 0 : x->remat.attention_again > 0;
    uint64_t const gathers = UINT64_C(2) + in_again;
    uint64_t const repeated =
        (x->remat.again > 0 ? attentions : 0) + (x->remat.whole > 0 ? mlps : 0);
    struct workload_traffic *tp = &counts->role[MESH_TP];
    if (ranks->tp > 1) {
        tp->gather_count = plan->accumulate * ((attentions + mlps) * gathers + ends);
        tp->scatter_count = plan->accumulate * (2 * (attentions + mlps) + repeated + ends);
        tp->gather_bytes = (double)tp->gather_count * x->mlp.full * x->bytes.a;
        tp->scatter_bytes = (double)tp->scatter_count * x->mlp.full * x->bytes.a;
        tp->critical_passes = tp->gather_count + tp->scatter_count;
    }
    if (ranks->heads.group.dimension_count > 0) {
        uint64_t const times =
            ranks->replicas.gradient_shards == 1 ? ranks->model_replicas : plan->accumulate;
        counts->kv.all_reduce_count = times * layers;
        counts->kv.all_reduce_bytes =
            (double)counts->kv.all_reduce_count * (double)partial_elements(ranks) * x->bytes.g;
    }
}

/* Keys and values gathered for attention, forward and again, and their gradients reduced; or passed
 * round a ring, in the backward pass too; or, with queries and output, turned to other heads. */
static void count_sequences(const struct variables *x, struct workload_counts *counts)
{
    const struct ranks *ranks = x->ranks;
    const struct workload_plan *plan = ranks->plan;
    if (ranks->sequences.parts == 1) return;
    struct workload_traffic *traffic = &counts->sequence;
    uint64_t const layers = plan->accumulate * (plan->model.layers + ranks->mtp.modules);
    uint64_t const forwards = UINT64_C(1) + (x->remat.attention_again > 0);
    if (ranks_has_ulysses(ranks)) {
        double const turned =
            2 * (x->attention.q * ranks->cp + x->attention.kv / 2 * ranks->cp) * x->bytes.a;
        traffic->all_to_all_count = traffic->critical_passes = 4 * layers * (forwards + 1);
        traffic->all_to_all_bytes = (double)(layers * (forwards + 1)) * turned;
        return;
    }
    traffic->gather_count = layers * (forwards + ranks_has_ring(ranks));
    traffic->scatter_count = layers;
    traffic->gather_bytes = (double)traffic->gather_count * x->attention.kv * x->bytes.a;
    traffic->scatter_bytes = (double)traffic->scatter_count * x->attention.kv * x->bytes.a;
    if (!ranks_has_ring(ranks)) {
        traffic->critical_passes = traffic->gather_count + traffic->scatter_count;
        return;
    }
    traffic->algorithm = ranks->sequences.rounds;
    traffic->permute_count = layers;
    traffic->permute_bytes = (double)layers * x->attention.kv * x->bytes.a / ranks->cp;
}

/* Bytes that the layers keep from their forward to their backward pass. */
double oracle_saved_bytes(const struct variables *x)
{
    const struct ranks *ranks = x->ranks;
    bool const llama = ranks_is_decoder(ranks);
    double const normed = (1 - x->remat.norms_again) * x->mlp.in_kept * x->bytes.normed;
    switch (ranks->plan->remat) {
    case GRAPH_REMAT_NONE:
    case GRAPH_REMAT_NORMS:
        if (!llama) return x->layers * (x->mlp.full * x->bytes.a + x->mlp.tmp * x->bytes.m);
        return x->dense * (x->mlp.shard * x->bytes.a + normed + x->mlp.tmp * x->bytes.m) +
               x->layers * ((x->mlp.shard + x->attention.tmp + x->attention.attended) * x->bytes.a +
                            normed + x->attention.statistics +
                            x->attention.scores * (x->attention.unfused * x->bytes.a +
                                                   x->attention.drops * (x->bytes.a + 1)) +
                            (double)shared_kept_elements(ranks) * x->bytes.a);
    case GRAPH_REMAT_BIG_MATMULS:
        return x->dense * (x->mlp.shard * x->bytes.a + x->mlp.tmp * x->bytes.m) +
               x->layers * (llama * x->mlp.shard + x->attention.tmp) * x->bytes.a;
    case GRAPH_REMAT_BLOCK:
    case GRAPH_REMAT_LAYER:
    case GRAPH_REMAT_NEVER:
        break;
    }
    return x->layers * x->mlp.shard * x->bytes.a;
}

/* Counts up: a rank that has any collective has a whole one. */
static void traffic_divide(struct workload_traffic *traffic, uint32_t rank_count)
{
    traffic->gather_bytes /= rank_count;
    traffic->scatter_bytes /= rank_count;
    traffic->all_reduce_bytes /= rank_count;
    traffic->all_to_all_bytes /= rank_count;
    traffic->permute_bytes /= rank_count;
    for (uint32_t d = 0; d < GROUP_DIMENSIONS_MAX; d++) traffic->crossing_bytes[d] /= rank_count;
    traffic->gather_count = units_ceil_divide(traffic->gather_count, rank_count);
    traffic->scatter_count = units_ceil_divide(traffic->scatter_count, rank_count);
    traffic->all_reduce_count = units_ceil_divide(traffic->all_reduce_count, rank_count);
    traffic->all_to_all_count = units_ceil_divide(traffic->all_to_all_count, rank_count);
    traffic->permute_count = units_ceil_divide(traffic->permute_count, rank_count);
    traffic->critical_passes = units_ceil_divide(traffic->critical_passes, rank_count);
}

/* All that a chip would do if there were no stages, divided among `ranks`. */
static void stages_divide(struct workload_counts *counts, uint32_t rank_count)
{
    struct workload_spare *spare = &counts->spare;
    struct workload_held *held = &counts->memory;
    struct workload_copies *host = &counts->host;
    double *const shares[] = {
        &counts->matmul_flop,    &counts->padded_flop,   &counts->vector_flop,
        &counts->hbm_bytes,      &counts->ops.count,     &counts->matmul_useful,
        &spare->flash,           &host->moment_bytes,    &host->activation_bytes,
        &held->parameter_bytes,  &held->optimizer_bytes, &held->gradient_bytes,
        &held->activation_bytes, &spare->waiting,        &spare->uneven,
        &spare->padding,         &counts->linear.flop,   &counts->linear.padded_flop,
        &held->master_bytes};
    if (rank_count == 1) return;
    for (uint32_t i = 0; i < sizeof shares / sizeof *shares; i++) *shares[i] /= rank_count;
    for (uint32_t r = 0; r < MESH_ROLE_COUNT; r++) traffic_divide(&counts->role[r], rank_count);
    traffic_divide(&counts->experts, rank_count);
    traffic_divide(&counts->kv, rank_count);
    traffic_divide(&counts->sequence, rank_count);
}

void oracle_count(const struct workload_plan *plan, const struct machine *machine,
                  const struct mesh *mesh, struct workload_counts *ret_counts)
{
    struct ranks ranks;
    struct error error;
    enum status status = ranks_make(plan, machine, mesh, &ranks, &error);
    SIM_ASSERT(status == STATUS_OK);
    struct variables x = variables_of(&ranks, machine);
    SIM_ASSERT(workload_lists_read(plan, machine, mesh, &x.lists, &error) == STATUS_OK);
    struct workload_counts counts = {0};
    for (uint32_t r = 0; r < MESH_ROLE_COUNT; r++) counts.role[r].group = mesh->axis[r].group;
    counts.role[MESH_DP].group = ranks.replicas.group;
    counts.experts.group = ranks.experts.replicas.group;
    counts.kv.group = ranks.heads.group;
    counts.sequence.group = ranks.sequences.group;
    count_matmuls(&x, &counts);
    count_padded(&x, &counts);
    count_vector(&x, &counts);
    oracle_hbm(&x, &counts);
    count_ops(&x, &counts);
    count_weights(&x, &counts);
    count_activations(&x, &counts);
    count_sequences(&x, &counts);
    oracle_latent(&x, &counts);
    oracle_predictors(&x, &counts);
    padding_list(&ranks, &counts.paddings);
    counts.heads.kv_held = (double)ranks.heads.kv * ranks.tp;
    counts.heads.kv_padded = (double)oracle_kv_heads_padded(&ranks);

    if (ranks_is_decoder(&ranks)) {
        double const widths = (double)(oracle_head_width(&ranks) + oracle_value_width(&ranks));
        double const ways = (double)plan->batch_tokens / x.mlp.rows * ranks.tp;
        counts.useful_attention_flop = 6 * x.attention.all_useful_scores * widths * ways;
    }
    oracle_experts(&x, &counts);
    bool const experts = x.sparse > 0;
    double const kept =
        oracle_share(&x, ranks.shards, false) + oracle_share(&x, ranks.shards, true);
    double gradients = oracle_share(&x, ranks.replicas.gradient_shards, false);
    if (experts) gradients += oracle_share(&x, ranks.experts.replicas.gradient_shards, true);
    counts.memory.parameter_bytes = ranks.model_replicas * kept * x.bytes.w;
    counts.memory.optimizer_bytes = 2 * oracle_state_elements(&x) * x.bytes.o;
    counts.memory.gradient_bytes = ranks.model_replicas * gradients * x.bytes.g;
    counts.memory.activation_bytes += oracle_saved_bytes(&x);
    oracle_overheads_saved(&x, &counts);
    double const gathered = x.sparse > 0 ? x.sparse_elements + x.expert_elements : x.layer_elements;
    counts.held_anyway.gathered_bytes = ranks.shards > 1 ? gathered * x.bytes.w : 0;
    oracle_offload(&x, &counts);
    oracle_overheads(&x, &counts);
    stages_divide(&counts, ranks.pp);
    counts.held_anyway.held_ppm = x.lists.held_ppm;
    counts.memory.activation_bytes *= (double)counts.held_anyway.held_ppm / PPM_ONE;
    *ret_counts = counts;
}
