#include "tests/oracle/oracle.h"

#include "sim/base/units.h"
#include "sim/base/vector.h"
#include "tests/oracle/counts_parts.h"

static double bytes_of(enum format format)
{
    return format_bits(format) / 8.0;
}

static uint64_t partial_elements(const struct local *local)
{
    if (!local_is_latent(local)) return 2 * local->width * local->kv_heads * local->head_width;
    return local->width * oracle_latent_columns(local) + oracle_latent_normed(local);
}

/* Keys and values that attention keeps besides the rank's own, and of its output what it keeps
 * besides what is multiplied. */
static uint64_t shared_kept_elements(const struct local *local)
{
    uint64_t const columns = 2 * local->sequences * local->head_width;
    if (local_turns(local))
        return columns *
                   (local->keys * local->attention_kv_heads - local->queries * local->kv_heads) +
               local->rows * local->heads * local->head_width;
    if (local_rings(local)) return 0;
    return columns * (local->keys - local->queries) * local->kv_heads;
}

static struct letters letters_of(const struct local *local, const struct machine *machine)
{
    const struct workload_plan *plan = local->plan;
    bool const llama = local_is_llama(local);
    struct letters x = {.local = local, .machine = machine};
    x.layers = (double)(plan->model.layers + local->predictors);
    x.predictors = (double)local->predictors;
    x.microbatches = plan->accumulate;
    x.again = workload_remat_repeats(plan->remat);
    x.whole = plan->remat == WORKLOAD_REMAT_LAYER;
    x.attention_again = plan->remat >= WORKLOAD_REMAT_BIG_MATMULS;
    x.norms_again = plan->remat != WORKLOAD_REMAT_NONE;
    x.adds = plan->accumulate > 1 && local->gradient_shards == 1;
    x.a = bytes_of(plan->formats.activations);
    x.m = bytes_of(plan->formats.matmuls);
    x.d = bytes_of(plan->formats.dispatch);
    x.normed = bytes_of(oracle_normed_format(local));
    x.w = bytes_of(plan->formats.weights);
    x.g = bytes_of(plan->formats.gradients);
    x.o = bytes_of(plan->formats.optimizer);
    x.rows = (double)local->rows;
    x.full = x.rows * (double)local->block_columns;
    x.shard = x.full / local->tp;
    x.in_kept = local_keeps_parts(local) ? x.shard : x.full;
    x.gated = plan->model.matrices == 3;
    double const columns = (double)local->mlp_columns;
    x.in_weights = (double)local->width * columns * (1 + x.gated);
    x.out_weights = (double)local->width * columns;
    x.tmp = x.mid = x.rows * columns * (1 + x.gated);
    x.dense = (double)local_layer_count(local, LOCAL_DENSE);
    x.sparse = (double)local_layer_count(local, LOCAL_EXPERTS);
    x.layer_elements = x.in_weights + x.out_weights;
    if (llama) {
        double const head = (double)plan->model.head_width;
        x.q = x.rows * (double)local->heads * head;
        double const value = (double)local->value_width;
        x.attended = x.rows * (double)local->heads * value;
        x.qkv = x.rows * (double)oracle_qkv_columns(local);
        x.attention_tmp =
            local_is_latent(local) ? x.rows * (double)oracle_latent_columns(local) : x.qkv;
        x.kv = (double)local->sequences * (double)local->keys * (double)local->attention_kv_heads *
               (head + value);
        x.useful_heads = (double)plan->model.heads / ((double)local->heads * (double)local->tp);
        oracle_scores_letters(&x);
        x.unfused = local_is_unfused(local);
        x.drops = plan->attention_kernel == WORKLOAD_KERNEL_DROPOUT;
        x.statistics = x.unfused > 0 ? 0 : 4 * x.rows * (double)local->heads;
        x.ring_steps = local_rings(local) ? local->cp - 1.0 : 0;
        x.attention_in = x.attention_tmp / x.rows * (double)local->width;
        x.attention_out = x.attended / x.rows * (double)local->width;
        oracle_latent_letters(&x);
        x.vocabulary = (double)local->vocabulary * (double)local->width;
        x.logits = x.rows * (double)local->vocabulary;
        x.twins = local->twins ? 2 * x.vocabulary : 0;
        double const both = x.attention_in + x.attention_out + 2 * (double)local->norm_elements +
                            (double)local->attention_vectors + x.latent_up +
                            (double)oracle_latent_normed(local);
        x.layer_elements += both + (double)local->mlp_vectors;
        x.sparse_elements += both;
    }
    oracle_experts_letters(&x);
    x.step_elements = x.dense * x.layer_elements + x.sparse * x.sparse_elements;
    if (llama) {
        x.step_elements += x.vocabulary * ((local->tied ? 1 : 2) + local->twin_reads) +
                           (double)(local->norm_elements + local->position_elements);
        x.step_elements += x.predictors * (double)local->predictor_elements;
    }
    return x;
}

static double padded(uint64_t amount, uint64_t multiple)
{
    return (double)units_round_up(amount, multiple);
}

/* 2·rows·inner·columns with the shape padded to the chip's MXU. */
double oracle_padded_matmul(const struct letters *x, uint64_t rows, uint64_t inner,
                            uint64_t columns)
{
    const struct chip *chip = &x->machine->chip;
    return 2 * padded(rows, 8) * padded(inner, chip->mxu_rows) * padded(columns, chip->mxu_columns);
}

/* Each weight is multiplied forward, for dW, for dX, and once more where it is repeated. */
static void count_matmuls(const struct letters *x, struct workload_counts *counts)
{
    const struct local *local = x->local;
    const struct model *model = &local->plan->model;
    double const passes = 3 + x->again;
    double const mlp = 2 * x->rows * (passes * x->in_weights + (3 + x->whole) * x->out_weights);
    double const layer = passes * 2 * x->rows * (x->attention_in + x->attention_out);
    double const head = 2 * x->rows * x->vocabulary;
    /* Scores and their gradients' products are as wide as K, the others as V. */
    double const dots = 2 * x->all_scores * (double)local->head_width;
    double const values = 2 * x->all_scores * (double)local->value_width;
    double const widths = 2 * (double)(local->head_width + local->value_width);
    double const mean_dots = x->all_mean_scores * widths;
    double const useful_dots = x->all_useful_scores * widths;
    double const all_dots =
        (4 - x->unfused + x->attention_again) * dots + (3 + x->attention_again) * values;
    counts->matmul_flop =
        x->microbatches * (x->dense * mlp + x->layers * layer + all_dots + 3 * head);
    counts->linear_flop = x->microbatches * (x->dense * mlp + x->layers * layer);
    counts->matmul_flash = x->microbatches * (1 - x->unfused) * dots;
    counts->matmul_waiting = x->microbatches * 3 * (dots + values - mean_dots);
    counts->matmul_padding =
        x->microbatches * (3 * (mean_dots - useful_dots) + oracle_matmul_padding(x));

    double const columns =
        (double)(local_is_latent(local)
                     ? oracle_latent_columns(local) + model->heads * local->value_width
                     : (2 * model->heads + 2 * model->kv_heads) * model->head_width);
    double const mlp_width = x->dense * (double)(model->matrices * model->mlp_width);
    double const useful_width = mlp_width + x->layers * columns;
    double const useful = 2 * x->rows * (double)local->width / local->tp;
    counts->matmul_useful = x->microbatches * (3 * useful * useful_width + 3 * useful_dots +
                                               3 * useful * (double)model->vocabulary);
}

static void count_padded(const struct letters *x, struct workload_counts *counts)
{
    const struct local *local = x->local;
    double const passes = 3 + x->again;
    uint64_t const rows = local->rows;
    uint64_t const width = local->width;
    double const pad =
        passes * (1 + x->gated) * oracle_padded_matmul(x, rows, width, local->mlp_columns) +
        (3 + x->whole) * oracle_padded_matmul(x, rows, local->mlp_columns, width);
    double pad_attention = 0;
    double pad_dots = 0;
    double pad_head = 0;
    if (local_is_llama(local)) {
        uint64_t const key = local->head_width, value = local->value_width;
        uint64_t const columns =
            local_is_latent(local) ? oracle_latent_columns(local) : oracle_qkv_columns(local);
        pad_attention = passes * (oracle_padded_matmul(x, rows, width, columns) +
                                  oracle_padded_matmul(x, rows, local->heads * value, width));
        pad_dots = (2 - x->unfused + x->attention_again) * oracle_padded_scores(x, key, false) +
                   (1 + x->attention_again) * oracle_padded_scores(x, value, true) +
                   oracle_padded_scores(x, value, false) + 2 * oracle_padded_scores(x, key, true) +
                   oracle_padded_scores(x, value, true);
        pad_head = 3 * oracle_padded_matmul(x, rows, width, local->vocabulary);
    }
    counts->padded_flop =
        x->microbatches * (x->dense * pad + x->layers * pad_attention + pad_dots + pad_head);
    counts->padded_linear_flop = x->microbatches * (x->dense * pad + x->layers * pad_attention);
}

void oracle_linear(struct workload_counts *counts, double flop, double padded_flop)
{
    counts->matmul_flop += flop;
    counts->linear_flop += flop;
    counts->padded_flop += padded_flop;
    counts->padded_linear_flop += padded_flop;
}

static void count_vector(const struct letters *x, struct workload_counts *counts)
{
    const struct local *local = x->local;
    double const gate = x->gated * x->rows * (double)local->mlp_columns;
    double const mlp = gate * ((2 + x->whole) * VECTOR_GATE + VECTOR_GATE_BACKWARD);
    double layer = 0;
    double rest = 0;
    if (local_is_llama(local)) {
        double const forwards = 1 + x->attention_again;
        double const latent = (double)((local->heads + 1) * local->plan->model.latent.rope);
        double const turned = local->plan->model.positions != 0 ? 0
                              : local_is_latent(local)          ? x->rows * latent
                                                                : x->q + (x->qkv - x->q) / 2;
        double const rope = VECTOR_ROPE * turned;
        layer += 2 * x->shard * ((1 + x->norms_again) * VECTOR_NORM + VECTOR_NORM_BACKWARD);
        /* Of the layer's input the sum is kept. */
        layer -= (x->again - x->whole) * x->shard * (VECTOR_NORM - VECTOR_NORM_ALONE);
        layer += forwards * rope;
        layer += rope + (1 - x->unfused) * VECTOR_ROW_DOT * x->attended;
        rest = (forwards * VECTOR_SOFTMAX + VECTOR_SOFTMAX_BACKWARD) * x->all_scores;
        rest += (forwards + 1) * x->drops * VECTOR_DROPOUT * x->all_scores;
        rest += x->shard * (VECTOR_NORM + VECTOR_NORM_BACKWARD + 1) + VECTOR_LOSS * x->logits;
    }
    counts->vector_flop = oracle_twins_share(x) + oracle_summed_elements(x) +
                          x->microbatches * (x->dense * mlp + x->layers * layer + rest) +
                          VECTOR_ADAM * oracle_state_elements(x);
}

/* A layer of the bare MLP has two projections, each forward, dW and dX. A llama's also has two
 * norms each way, and flash attention each way; before and behind the layers are the embedding and
 * its gradient, and the head's norm each way, logits, loss, dW and dIn. `layer` repeats all of it,
 * `block` all but the last matmul; big_matmuls repeats what lies between the matmuls: the norms and
 * flash attention; `norms` only these. */
static void count_ops(const struct letters *x, struct workload_counts *counts)
{
    bool const llama = local_is_llama(x->local);
    double const more = 2 * x->unfused + x->drops, back = 4 * x->unfused + x->drops;
    double const forward = llama ? 7 + more : 2, backward = llama ? 11 + back : 4;
    double const between = llama ? 2 * x->norms_again + x->attention_again * (1 + more) : 0;
    double const again = x->again > 0 ? forward - 1 + x->whole : between;
    double const updates = x->layers + (llama ? 2 - x->local->tied : 0);
    counts->compute_count =
        (x->twins > 0 ? 2 : 0) + (x->local->copies > 1 ? 4 : 1) * updates +
        x->microbatches * (x->layers * (forward + backward + again) + (llama ? 8 : 0));
    if (x->sparse == 0) return;
    /* Of what is counted for an MLP: a norm, two matmuls; backwards a norm and four. */
    double const instead = 3 + 5 + (x->again > 0 ? 2 + x->whole : x->norms_again);
    counts->compute_count -= x->microbatches * x->sparse * instead;
}

/* Gradients that several ranks have of the same weights, and, with a ZeRO stage, those weights. */
static void count_replicas(const struct letters *x, bool experts, uint64_t units,
                           struct workload_traffic *traffic)
{
    const struct local *local = x->local;
    const struct workload_plan *plan = local->plan;
    uint64_t const times = local->reduce_last ? local->copies : plan->accumulate;
    double const elements = oracle_share(x, local->shards, experts);
    if (plan->zero == 0) {
        traffic->all_reduce_bytes += (double)times * elements * x->g;
        traffic->all_reduce_count += times * units;
        return;
    }
    traffic->scatter_bytes += (double)times * elements * x->g;
    traffic->scatter_count += times * units;
    traffic->gather_bytes += local->copies * elements * x->w;
    traffic->gather_count += local->copies * units;
}

/* Weights gathered and gradients reduced, as one op a unit. */
static void count_weights(const struct letters *x, struct workload_counts *counts)
{
    const struct local *local = x->local;
    const struct workload_plan *plan = local->plan;
    bool const llama = local_is_llama(local);
    bool const tied = local->tied;
    uint64_t const tensors = plan->model.matrices + (llama ? oracle_attention_units(x) : 0);
    uint64_t const layer_units = plan->gather == WORKLOAD_GATHER_TENSOR  ? tensors
                                 : plan->gather == WORKLOAD_GATHER_LAYER ? 1
                                                                         : UINT64_C(1) + llama;
    uint64_t const expert_units = oracle_expert_units(x);
    uint64_t const units =
        local_layer_count(local, LOCAL_DENSE) * layer_units +
        local_layer_count(local, LOCAL_EXPERTS) * (oracle_sparse_units(x) - expert_units);
    uint64_t const of_experts = local_layer_count(local, LOCAL_EXPERTS) * expert_units;
    uint64_t const owned = llama ? UINT64_C(2) - tied + local->predictors + local->twin_reads : 0;
    double const layers = x->dense * x->layer_elements + x->sparse * x->sparse_elements;
    /* Without what oracle_predictors() counts. */
    double const rest = x->step_elements - layers -
                        x->predictors * (double)local->predictor_elements -
                        (local->twin_reads ? x->vocabulary : 0);
    double const experts = x->sparse * x->expert_elements;
    if (local->shards > 1 && local->reduce_once) {
        /* At least once: how often more depends on the order of passes. */
        struct workload_traffic *traffic = &counts->role[local->shard_role];
        traffic->gather_bytes += local->copies * (x->step_elements + experts) * x->w;
        traffic->gather_count += local->copies * (units + of_experts + owned);
        traffic->scatter_bytes += local->copies * (x->step_elements + experts) * x->g;
        traffic->scatter_count += local->copies * (units + of_experts + owned);
    } else if (local->shards > 1) {
        struct workload_traffic *traffic = &counts->role[local->shard_role];
        /* Tied, the one matrix is gathered for the lookup and for the head. */
        traffic->gather_bytes +=
            x->microbatches * (2 * (layers + experts) + rest + (tied ? x->vocabulary : 0)) * x->w;
        traffic->gather_count += plan->accumulate * (2 * (units + of_experts) + (llama ? 2 : 0));
        /* Other passes of a pipeline may lie between the head's forward and backward pass. */
        if (local->pp > 1 && llama) {
            uint32_t const returns = workload_head_returns(plan, local->pp);
            traffic->gather_bytes +=
                returns * (x->vocabulary + (double)local->norm_elements) * x->w;
            traffic->gather_count += returns;
        }
        traffic->scatter_bytes += x->microbatches * (x->step_elements + experts) * x->g;
        traffic->scatter_count += plan->accumulate * (units + of_experts + owned);
    }
    if (local->replicas > 1)
        count_replicas(x, /* experts= */ false, units + owned, &counts->role[MESH_DP]);
    if (local->experts.replicas > 1) count_replicas(x, true, of_experts, &counts->experts);
}

static void count_activations(const struct letters *x, struct workload_counts *counts)
{
    const struct local *local = x->local;
    const struct workload_plan *plan = local->plan;
    bool const llama = local_is_llama(local);
    uint64_t const layers = plan->model.layers + local->predictors;
    uint64_t const mlps = local_layer_count(local, LOCAL_DENSE), attentions = layers * llama;
    uint64_t const ends =
        llama ? UINT64_C(2) : 0; /* Embedding and head: one of each kind a pass. */
    bool const parts = local_keeps_parts(local);
    bool const in_again = llama ? parts || x->norms_again > 0 : x->attention_again > 0;
    uint64_t const gathers = UINT64_C(2) + in_again;
    uint64_t const repeated = (x->again > 0 ? attentions : 0) + (x->whole > 0 ? mlps : 0);
    struct workload_traffic *tp = &counts->role[MESH_TP];
    if (local->tp > 1) {
        tp->gather_count = plan->accumulate * ((attentions + mlps) * gathers + ends);
        tp->scatter_count = plan->accumulate * (2 * (attentions + mlps) + repeated + ends);
        tp->gather_bytes = (double)tp->gather_count * x->full * x->a;
        tp->scatter_bytes = (double)tp->scatter_count * x->full * x->a;
        counts->tp_critical_count = tp->gather_count + tp->scatter_count;
    }
    if (local->partial_ranks > 1) {
        uint64_t const times = local->gradient_shards == 1 ? local->copies : plan->accumulate;
        counts->kv.all_reduce_count = times * layers;
        counts->kv.all_reduce_bytes =
            (double)counts->kv.all_reduce_count * (double)partial_elements(local) * x->g;
    }
}

/* Keys and values gathered for attention, forward and again, and their gradients reduced; or passed
 * round a ring, in the backward pass too; or, with queries and output, turned to other heads. */
static void count_sequences(const struct letters *x, struct workload_counts *counts)
{
    const struct local *local = x->local;
    const struct workload_plan *plan = local->plan;
    if (local->sequence_parts == 1) return;
    struct workload_traffic *traffic = &counts->sequence;
    uint64_t const layers = plan->accumulate * plan->model.layers;
    uint64_t const forwards = UINT64_C(1) + (x->attention_again > 0);
    if (local_turns(local)) {
        double const turned = 2 * (x->q * local->cp + x->kv / 2 * local->cp) * x->a;
        traffic->all_to_all_count = 4 * layers * (forwards + 1);
        traffic->all_to_all_bytes = (double)(layers * (forwards + 1)) * turned;
        return;
    }
    traffic->gather_count = layers * (forwards + local_rings(local));
    traffic->scatter_count = layers;
    traffic->gather_bytes = (double)traffic->gather_count * x->kv * x->a;
    traffic->scatter_bytes = (double)traffic->scatter_count * x->kv * x->a;
    if (!local_rings(local)) return;
    traffic->algorithm = local->ring_name;
    traffic->permute_count = layers;
    traffic->permute_bytes = (double)layers * x->kv * x->a / local->cp;
}

/* Bytes that the layers keep from their forward to their backward pass. */
static double saved_bytes(const struct letters *x)
{
    const struct local *local = x->local;
    bool const llama = local_is_llama(local);
    double const normed = (1 - x->norms_again) * x->in_kept * x->normed;
    switch (local->plan->remat) {
    case WORKLOAD_REMAT_NONE:
    case WORKLOAD_REMAT_NORMS:
        if (!llama) return x->layers * (x->full * x->a + x->tmp * x->m);
        return x->dense * (x->shard * x->a + normed + x->tmp * x->m) +
               x->layers *
                   ((x->shard + x->attention_tmp + x->attended) * x->a + normed + x->statistics +
                    x->scores * (x->unfused * x->a + x->drops * (x->a + 1)) +
                    (double)shared_kept_elements(local) * x->a);
    case WORKLOAD_REMAT_BIG_MATMULS:
        return x->dense * (x->shard * x->a + x->tmp * x->m) +
               x->layers * (llama * x->shard + x->attention_tmp) * x->a;
    case WORKLOAD_REMAT_BLOCK:
    case WORKLOAD_REMAT_LAYER:
        break;
    }
    return x->layers * x->shard * x->a;
}

/* Up: a rank that has any collective has a whole one. */
static void count_divide(uint64_t *count, uint32_t ranks)
{
    *count = (*count + ranks - 1) / ranks;
}

static void traffic_divide(struct workload_traffic *traffic, uint32_t ranks)
{
    traffic->gather_bytes /= ranks;
    traffic->scatter_bytes /= ranks;
    traffic->all_reduce_bytes /= ranks;
    traffic->all_to_all_bytes /= ranks;
    traffic->permute_bytes /= ranks;
    for (uint32_t d = 0; d < GROUP_DIMENSIONS_MAX; d++) traffic->crossing_bytes[d] /= ranks;
    count_divide(&traffic->gather_count, ranks);
    count_divide(&traffic->scatter_count, ranks);
    count_divide(&traffic->all_reduce_count, ranks);
    count_divide(&traffic->all_to_all_count, ranks);
    count_divide(&traffic->permute_count, ranks);
}

/* All that a chip would do if there were no stages, divided among `ranks`. */
static void stages_divide(struct workload_counts *counts, uint32_t ranks)
{
    double *const shares[] = {
        &counts->matmul_flop,      &counts->padded_flop,       &counts->vector_flop,
        &counts->hbm_bytes,        &counts->compute_count,     &counts->matmul_useful,
        &counts->matmul_flash,     &counts->host_moment_bytes, &counts->host_activation_bytes,
        &counts->parameter_bytes,  &counts->optimizer_bytes,   &counts->gradient_bytes,
        &counts->activation_bytes, &counts->matmul_waiting,    &counts->matmul_uneven,
        &counts->matmul_padding,   &counts->linear_flop,       &counts->padded_linear_flop,
        &counts->master_bytes};
    if (ranks == 1) return;
    for (uint32_t i = 0; i < sizeof shares / sizeof *shares; i++) *shares[i] /= ranks;
    for (uint32_t r = 0; r < MESH_ROLE_COUNT; r++) traffic_divide(&counts->role[r], ranks);
    traffic_divide(&counts->experts, ranks);
    traffic_divide(&counts->kv, ranks);
    traffic_divide(&counts->sequence, ranks);
    counts->tp_critical_count /= ranks;
}

static void count_messages(const struct letters *x, struct workload_counts *counts)
{
    const struct local *local = x->local;
    struct workload_borders const borders = workload_borders(local->plan, local->pp);
    double const messages = x->microbatches / local->copies;
    double const bytes = x->shard * x->a;
    counts->stage_bytes = messages * borders.pair * bytes;
    counts->stage_sent_bytes = messages * borders.rank * bytes;
    counts->stage_way_count = 2 * messages * borders.way;
    counts->stage_way_bytes = counts->stage_way_count * bytes;
}

void oracle_count(const struct workload_plan *plan, const struct machine *machine,
                  const struct mesh *mesh, struct workload_counts *ret_counts)
{
    struct local local;
    struct error error;
    struct workload_plan unwatched = *plan; /* It cannot say that it was interrupted. */
    unwatched.watch = NULL;
    enum status const status = local_build(&unwatched, machine, mesh, &local, &error);
    SIM_ASSERT(status == STATUS_OK);
    struct letters const x = letters_of(&local, machine);
    struct workload_counts counts = {0};
    for (uint32_t r = 0; r < MESH_ROLE_COUNT; r++) counts.role[r].group = mesh->axis[r].group;
    counts.role[MESH_DP].group = local.replica_group;
    counts.experts.group = local.experts.replica_group;
    counts.kv.group = local.kv_group;
    counts.sequence.group = local.sequence_group;
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
    padding_list(&local, &counts.paddings);
    counts.kv_heads_held = (double)local.kv_heads * local.tp;
    counts.kv_heads_padded = (double)local.kv_heads_padded;

    double const tokens = (double)plan->batch_tokens;
    struct model_counts const model = model_count(&plan->model);
    uint64_t const active = model.active + (local.predictors != 0 ? model.predictors_active : 0);
    counts.parameter_flop = 6 * (double)active * tokens;
    if (local_is_llama(&local)) {
        double const widths = (double)(local.head_width + local.value_width);
        double const ways = (double)plan->batch_tokens / x.rows * local.tp;
        counts.useful_attention_flop = 6 * x.all_useful_scores * widths * ways;
    }
    oracle_experts(&x, &counts);
    bool const experts = x.sparse > 0;
    double const kept =
        oracle_share(&x, local.shards, false) + oracle_share(&x, local.shards, true);
    double gradients = oracle_share(&x, local.gradient_shards, false);
    if (experts) gradients += oracle_share(&x, local.experts.gradient_shards, true);
    counts.parameter_bytes = local.copies * kept * x.w;
    counts.optimizer_bytes = 2 * oracle_state_elements(&x) * x.o;
    counts.gradient_bytes = local.copies * gradients * x.g;
    counts.activation_bytes += saved_bytes(&x);
    oracle_overheads_saved(&x, &counts);
    double const gathered = x.sparse > 0 ? x.sparse_elements + x.expert_elements : x.layer_elements;
    counts.gathered_bytes = local.shards > 1 ? gathered * x.w : 0;
    oracle_offload(&x, &counts);
    oracle_overheads(&x, &counts);
    stages_divide(&counts, local.pp);
    counts.activation_bytes *= (double)workload_held_ppm(plan, machine, mesh) / PPM_ONE;
    count_messages(&x, &counts);
    *ret_counts = counts;
}
