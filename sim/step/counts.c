#include "sim/step/counts.h"

#include "sim/base/units.h"
#include "sim/step/counts_parts.h"

static double bytes_of(enum format format)
{
    return format_bits(format) / 8.0;
}

static struct letters letters_of(const struct local *local, const struct machine *machine)
{
    const struct workload_plan *plan = local->plan;
    struct letters x = {.local = local, .machine = machine};
    x.layers = (double)(plan->model.layers + local->predictors);
    x.predictors = (double)local->predictors;
    x.microbatches = plan->accumulate;
    x.a = bytes_of(plan->formats.activations);
    x.w = bytes_of(plan->formats.weights);
    x.g = bytes_of(plan->formats.gradients);
    x.o = bytes_of(plan->formats.optimizer);
    x.rows = (double)local->rows;
    x.shard = (double)local->block_shard;
    x.dense = (double)local_layer_count(local, LOCAL_DENSE);
    x.sparse = (double)local_layer_count(local, LOCAL_EXPERTS);
    counts_layers_letters(&x);
    x.step_elements = x.dense * x.layer_elements + x.sparse * x.sparse_elements;
    if (local_is_llama(local)) {
        counts_ends_letters(&x);
        x.vocabulary = (double)x.end[COUNTS_HEAD].graph.matrix_elements;
        x.twins = local->twins ? 2 * x.vocabulary : 0;
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
double counts_padded_matmul(const struct letters *x, uint64_t rows, uint64_t inner,
                            uint64_t columns)
{
    const struct chip *chip = &x->machine->chip;
    return 2 * padded(rows, WORK_EDGE_ROWS) * padded(inner, chip->mxu_rows) *
           padded(columns, chip->mxu_columns);
}

/* Gradients that several ranks have of the same weights, and, with a ZeRO stage, those weights. */
static void count_replicas(const struct letters *x, bool experts, uint64_t units,
                           struct workload_traffic *traffic)
{
    const struct local *local = x->local;
    const struct workload_plan *plan = local->plan;
    uint64_t const times = local->reduce_last ? local->copies : plan->accumulate;
    double const elements = counts_share(x, local->shards, experts);
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
    uint64_t const tensors = plan->model.matrices + (llama ? counts_attention_units(x) : 0);
    uint64_t const layer_units = plan->gather == WORKLOAD_GATHER_TENSOR  ? tensors
                                 : plan->gather == WORKLOAD_GATHER_LAYER ? 1
                                                                         : UINT64_C(1) + llama;
    uint64_t const expert_units = counts_expert_units(x);
    uint64_t const units =
        local_layer_count(local, LOCAL_DENSE) * layer_units +
        local_layer_count(local, LOCAL_EXPERTS) * (counts_sparse_units(x) - expert_units);
    uint64_t const of_experts = local_layer_count(local, LOCAL_EXPERTS) * expert_units;
    uint64_t const owned = llama ? UINT64_C(2) - tied + local->predictors + local->twin_reads : 0;
    double const layers = x->dense * x->layer_elements + x->sparse * x->sparse_elements;
    /* Without what counts_predictors() counts. */
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
        &counts->master_bytes,     &counts->matmul_copies};
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

void workload_count(const struct workload_plan *plan, const struct machine *machine,
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
    counts_layers(&x, &counts);
    counts_ends(&x, &counts);
    count_weights(&x, &counts);
    counts_predictors(&x, &counts);
    padding_list(&local, &counts.paddings);
    counts.kv_heads_held = (double)local.kv_heads * local.tp;
    counts.kv_heads_padded = (double)local.kv_heads_padded;

    double const tokens = (double)plan->batch_tokens;
    struct model_counts const model = model_count(&plan->model);
    uint64_t const active = model.active + (local.predictors != 0 ? model.predictors_active : 0);
    counts.parameter_flop = 6 * (double)active * tokens;
    counts.useful_attention_flop *= (double)local.data * local.tp; /* Of all ranks. */
    counts_experts(&x, &counts);
    bool const experts = x.sparse > 0;
    double const kept =
        counts_share(&x, local.shards, false) + counts_share(&x, local.shards, true);
    double gradients = counts_share(&x, local.gradient_shards, false);
    if (experts) gradients += counts_share(&x, local.experts.gradient_shards, true);
    counts.parameter_bytes = local.copies * kept * x.w;
    counts.optimizer_bytes = 2 * counts_state_elements(&x) * x.o;
    counts.gradient_bytes = local.copies * gradients * x.g;
    double const gathered = x.sparse > 0 ? x.sparse_elements + x.expert_elements : x.layer_elements;
    counts.gathered_bytes = local.shards > 1 ? gathered * x.w : 0;
    counts_offload(&x, &counts);
    counts_overheads(&x, &counts);
    stages_divide(&counts, local.pp);
    counts.activation_bytes *= (double)workload_held_ppm(plan, machine, mesh) / PPM_ONE;
    count_messages(&x, &counts);
    *ret_counts = counts;
}
