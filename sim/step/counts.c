#include "sim/step/counts.h"

#include <stddef.h>

#include "sim/base/units.h"
#include "sim/graph/casts.h"
#include "sim/graph/count.h"
#include "sim/graph/derive.h"
#include "sim/graph/op.h"
#include "sim/step/counts_parts.h"
#include "sim/step/graph_terms.h"

/* --- Sums over the graph of a part of the model --- */

/* Parts that have the same graph. */
struct part {
    const struct ranks *ranks;
    uint64_t count; /* In one microbatch. */
    struct graph_count graph;
};

/* How many microbatches have the pass. */
static uint32_t passes_of(const struct ranks *ranks, enum op_pass pass)
{
    bool const once = (pass == OP_SHARDS && ranks_gathers_once(ranks)) ||
                      (pass == OP_COPIES && ranks->gradients.once);
    return once ? ranks->model_replicas : ranks->plan->accumulate;
}

static void compute_add(const struct part *part, const struct graph_compute_sum *sum,
                        struct workload_counts *counts)
{
    const struct workload_plan *plan = part->ranks->plan;
    double const times = (double)(passes_of(part->ranks, sum->pass) * part->count);
    bool const linear = sum->kind->weights_apart && sum->format == plan->formats.matmuls;
    bool const uneven = routing_is_drawn(part->ranks) || plan->routing.capacity_ppm != 0;
    bool const waits = !uneven && ranks_serves(part->ranks);
    double *rows = waits ? &counts->spare.waiting : &counts->spare.uneven;
    counts->matmul_flop += times * (double)sum->flop;
    counts->padded_flop += times * (double)sum->padded_flop;
    if (linear) counts->linear.flop += times * (double)sum->flop;
    if (linear) counts->linear.padded_flop += times * (double)sum->padded_flop;
    counts->matmul_useful += times * (double)sum->useful_flop;
    counts->spare.duplicated += times * (double)sum->spare.duplicated;
    counts->spare.padding += times * (double)sum->spare.padding;
    *rows += times * (double)sum->spare.rows;
    if (waits && !sum->kind->weights_apart)
        counts->spare.attended += times * (double)sum->spare.rows;
    counts->spare.flash += times * (double)sum->spare.again;
    counts->spare.waiting += times * (double)sum->spare.waiting;
    /* Products without weights are attention's. */
    if (!sum->kind->weights_apart)
        counts->useful_attention_flop += times * (double)sum->useful_flop;
    counts->vector_flop += times * (double)sum->vector_flop;
    counts->hbm_bytes += times * (double)sum->hbm_bytes;
    counts->ops.count += times * (double)sum->count;
    counts->ops.measured += times * (double)sum->measured;
    counts->scarce.padded_flop += times * (double)sum->scarce.padded_flop;
    counts->scarce.vector_flop += times * (double)sum->scarce.vector_flop;
    counts->scarce.vmem_bytes += times * (double)sum->scarce.vmem_bytes;
    counts->scarce.vmem_longer_bytes += times * (double)sum->scarce.vmem_longer_bytes;
}

void counts_traffic_add(struct workload_traffic *traffic, enum collective_kind kind, uint64_t count,
                        double bytes)
{
    struct {
        enum collective_kind kind;
        uint64_t *count;
        double *bytes;
    } const rows[] = {
        {COLLECTIVE_ALL_GATHER, &traffic->gather_count, &traffic->gather_bytes},
        {COLLECTIVE_REDUCE_SCATTER, &traffic->scatter_count, &traffic->scatter_bytes},
        {COLLECTIVE_ALL_REDUCE, &traffic->all_reduce_count, &traffic->all_reduce_bytes},
        {COLLECTIVE_ALL_TO_ALL, &traffic->all_to_all_count, &traffic->all_to_all_bytes},
        {COLLECTIVE_PERMUTE, &traffic->permute_count, &traffic->permute_bytes},
    };
    size_t const row_count = sizeof rows / sizeof *rows;
    size_t i = 0;
    while (i < row_count && rows[i].kind != kind) i++;
    SIM_ASSERT(i < row_count);
    *rows[i].count += count;
    *rows[i].bytes += bytes;
}

/* The graph's bytes are of the rows of all ranks; where routing is drawn, of all that might travel.
 */
static void exchange_add(const struct ranks *ranks, uint64_t count, double bytes,
                         struct workload_traffic *exchange)
{
    const struct routing *experts = &ranks->experts;
    bool const drawn = experts->drawn.expert_count != 0;
    uint64_t const rows = drawn ? experts->ranks * experts->tokens : experts->exchanged;
    double const row_bytes = bytes / (double)rows;
    counts_traffic_add(exchange, COLLECTIVE_ALL_TO_ALL, count,
                       (double)experts->exchanged * row_bytes);
    for (uint32_t d = 0; d < GROUP_DIMENSIONS_MAX; d++)
        exchange->crossing_bytes[d] += (double)experts->crossing[d] * row_bytes;
}

/* The collectives of the ranks that a move is over. */
static struct workload_traffic *traffic_of(enum op_axis axis, struct workload_counts *counts)
{
    switch (axis) {
    case OP_AXIS_TP:
        break;
    case OP_AXIS_TP_D:
        return &counts->role[MESH_TP_D];
    case OP_AXIS_EP:
        return &counts->role[MESH_EP];
    case OP_AXIS_SEQUENCE:
        return &counts->sequence;
    case OP_AXIS_HOLDERS:
        return &counts->kv;
    }
    return &counts->role[MESH_TP];
}

static void move_add(const struct part *part, const struct graph_move_sum *sum,
                     struct workload_counts *counts)
{
    const struct ranks *ranks = part->ranks;
    struct workload_traffic *traffic = traffic_of(sum->axis, counts);
    bool const twice = sum->collective == COLLECTIVE_ALL_REDUCE;
    bool const of_weights = sum->pass == OP_WEIGHT_GRADIENT && twice;
    bool const summed_once = of_weights && ranks->replicas.gradient_shards == 1;
    bool const rings = sum->axis == OP_AXIS_SEQUENCE && ranks->sequences.of.rings;
    uint64_t const times =
        part->count * (summed_once ? ranks->model_replicas : ranks->plan->accumulate);
    uint64_t const count = times * sum->count;
    double const bytes = (double)times * (double)sum->bytes;
    if (sum->axis == OP_AXIS_EP)
        exchange_add(ranks, count, bytes, traffic);
    else
        counts_traffic_add(traffic, sum->collective, count, bytes);
    if (rings) traffic->algorithm = ranks->sequences.rounds;
    if (!of_weights && !rings) traffic->critical_passes += twice ? 2 * count : count;
    if (format_bits(sum->widest) > format_bits(traffic->widest)) traffic->widest = sum->widest;
}

static void overlaps_add(const struct part *part, const struct graph_derived *derived,
                         struct workload_counts *counts)
{
    uint64_t const layers = part->count * part->ranks->plan->accumulate;
    struct graph_overlaps overlaps;
    graph_overlaps(&derived->sharded, &derived->backward, &derived->kept, &overlaps);
    for (uint32_t i = 0; i < overlaps.count; i++)
        graph_overlap_add(&counts->tp.overlaps, &overlaps.of[i], layers);
}

static void blocks_add(const struct part *part, const struct graph *graph,
                       struct workload_counts *counts)
{
    for (uint8_t b = 0; b < graph->block_count; b++) {
        const struct block *block = graph->block[b].block;
        const struct graph_block_sum *sum = &part->graph.block[b];
        struct workload_blocks *blocks = block->mixes_both ? &counts->tp.parallel
                                         : block->place == BLOCK_MIXES_CHANNELS
                                             ? &counts->tp.mlp
                                             : &counts->tp.attention;
        if (!block->couples) continue;
        blocks->count += part->count;
        blocks->tp_moves += part->count * sum->tp_moves;
        blocks->flop += (double)part->count * (double)sum->flop;
        blocks->linear_flop += (double)part->count * (double)sum->linear_flop;
    }
}

/* What an op reads of the cache: 0 of any other array. */
static uint64_t cached_elements(const struct graph *graph, const struct graph_op *op, tensor in)
{
    const struct graph_tensor *of = &graph->tensor[in];
    uint32_t const parts = op->kind->shares_sequence ? graph->terms->sequence.parts : 1;
    uint64_t const elements = parts * graph_elements(graph, &of->at, 0);
    if (!graph_is_of_cache(graph, in)) return 0;
    if (of->role != GRAPH_CACHE || op->serves != GRAPH_SERVES_ANSWERS) return elements;
    uint64_t const rows = sharding_local_size(&graph->terms->mesh, &of->at.dimension[0]);
    return elements / rows * graph->terms->cache.decodes.read;
}

/* Bytes of HBM that products with weights, and attention, read and write: as the program's ops are
 * of these purposes. */
static double products_bytes(const struct graph_count *graph)
{
    double bytes = 0;
    for (uint32_t i = 0; i < graph->compute_count; i++) {
        const struct graph_compute_sum *sum = &graph->compute[i];
        if (sum->kind->attends || (sum->kind->weights_apart && sum->flop > 0))
            bytes += (double)sum->hbm_bytes;
    }
    return bytes;
}

/* Weights that products read; also how much of that an earlier product of the part has read, too,
 * and how much it is more than they take in the format in which they lie. */
static double weights_read(const struct graph *graph, double *ret_again, double *ret_wider)
{
    bool read[GRAPH_TENSORS_MAX] = {false};
    double bytes = 0;
    *ret_again = 0;
    *ret_wider = 0;
    for (uint8_t i = 0; i < graph->op_count; i++) {
        const struct graph_op *op = &graph->op[i];
        for (uint8_t w = 0; op->product_count > 0 && w < op->weight_count; w++) {
            tensor const weight = op->weight[w];
            const struct graph_tensor *of = &graph->tensor[weight];
            enum format const format = op_weight_format(graph, op, weight);
            uint64_t const elements = graph_read_elements(graph, weight);
            double const each = (double)graph_bytes(of->role, format, elements);
            bytes += each;
            *ret_wider += each - (double)graph_tensor_bytes(of, elements);
            if (read[weight]) *ret_again += each;
            read[weight] = true;
        }
    }
    return bytes;
}

/* Of a step of inference: weights that products read; rows of the cache, those that were gathered
 * among them; and what else products and attention read and write. */
static void read_add(const struct graph *graph, const struct part *part,
                     struct workload_inference *ret_counts)
{
    double const times = (double)part->count;
    double again = 0, wider = 0, rows = 0;
    double const weights = weights_read(graph, &again, &wider);
    for (uint8_t i = 0; i < graph->op_count; i++) {
        const struct graph_op *op = &graph->op[i];
        for (uint8_t in = 1; op->kind->attends && in < op->in_count; in++) {
            uint64_t const elements = cached_elements(graph, op, op->in[in]);
            enum format const format = graph->tensor[op->in[in]].format;
            rows += (double)graph_bytes(GRAPH_CACHE, format, elements);
        }
    }
    ret_counts->weight_bytes += times * weights;
    ret_counts->again_bytes += times * again;
    ret_counts->wider_bytes += times * wider;
    ret_counts->kv_read_bytes += times * rows;
    ret_counts->activation_bytes += times * (products_bytes(&part->graph) - weights - rows);
}

/* Casts of weights once a step, where weights stay in the format of the products until the next
 * update. */
static void weights_cast_add(const struct part *part, const struct graph *graph,
                             struct workload_counts *counts)
{
    const struct graph_casting *casts = &graph->terms->policy.casts;
    if (casts->recipe == NULL || !casts->way->weights_stay) return;
    struct work const work = graph_cast_weights(graph);
    double const bytes = (double)work.hbm_read_bytes + (double)work.hbm_write_bytes;
    counts->hbm_bytes += (double)part->count * bytes;
    counts->scarce.vmem_bytes += (double)part->count * bytes;
    counts->scarce.vmem_longer_bytes += (double)part->count * bytes;
    counts->ops.count += (double)part->count;
    counts->ops.measured += (double)part->count;
}

static void part_add(const struct ranks *ranks, const struct step_part *which,
                     struct workload_counts *counts)
{
    struct graph_units const units = step_units(&ranks->machine->chip);
    struct part part = {.ranks = ranks, .count = which->count};
    struct step_graph room;
    const struct graph_derived *derived = step_graph(ranks, which, &room);
    graph_count(&derived->sharded, &derived->backward, &derived->kept, &units, &part.graph);
    for (uint32_t i = 0; i < part.graph.compute_count; i++)
        compute_add(&part, &part.graph.compute[i], counts);
    for (uint32_t i = 0; i < part.graph.move_count; i++)
        move_add(&part, &part.graph.move[i], counts);
    if (ranks_serves(ranks)) read_add(&derived->graph, &part, &counts->inference);
    if (which->part == BLOCK_LAYER) {
        weights_cast_add(&part, &derived->graph, counts);
        overlaps_add(&part, derived, counts);
        blocks_add(&part, &derived->graph, counts);
    }
    /* The model's end has its backward pass at once: what that reads lies in buffers. Of a group of
     * layers one input is kept, which counts with the last layer. */
    if (!derived->graph.begins_backward && !derived->graph.terms->layer.grouped)
        counts->memory.activation_bytes +=
            (double)part.count * (double)(part.graph.kept_bytes + part.graph.framework_bytes);
}

/* That each have a part of a microbatch's work. */
static double all_ranks(const struct ranks *ranks)
{
    return (double)ranks->data * ranks->tp * ranks_tp_d(ranks);
}

/* --- All of a step --- */

/* Rows of all ranks of an ep group in a microbatch, of the whole machine in a step. */
static double assigned_rows(const struct ranks *ranks, double rows)
{
    double const tokens = (double)(ranks->experts.tokens * ranks->experts.ranks);
    double const sparse = (double)ranks_layers_with(ranks, /* experts= */ true);
    return sparse == 0 ? 0 : sparse * (double)workload_tokens(ranks->plan) * rows / tokens;
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
    struct workload_scarce *scarce = &counts->scarce;
    struct workload_inference *inference = &counts->inference;
    struct workload_held *memory = &counts->memory;
    double *const shares[] = {
        &counts->matmul_flop,
        &counts->padded_flop,
        &counts->linear.flop,
        &counts->linear.padded_flop,
        &counts->vector_flop,
        &counts->hbm_bytes,
        &counts->ops.count,
        &counts->ops.measured,
        &counts->matmul_useful,
        &spare->flash,
        &spare->waiting,
        &spare->attended,
        &spare->padding,
        &spare->duplicated,
        &spare->uneven,
        &scarce->padded_flop,
        &scarce->vector_flop,
        &scarce->vmem_bytes,
        &scarce->vmem_longer_bytes,
        &inference->weight_bytes,
        &inference->again_bytes,
        &inference->wider_bytes,
        &inference->kv_read_bytes,
        &inference->activation_bytes,
        &counts->host.moment_bytes,
        &counts->host.activation_bytes,
        &memory->parameter_bytes,
        &memory->optimizer_bytes,
        &memory->gradient_bytes,
        &memory->activation_bytes,
        &memory->master_bytes,
        &memory->cache_bytes,
    };
    _Static_assert(sizeof shares / sizeof *shares * sizeof(double) ==
                       offsetof(struct workload_counts, paddings),
                   "each share of a rank is divided");
    if (rank_count == 1) return;
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) *shares[i] /= rank_count;
    for (uint32_t r = 0; r < MESH_ROLE_COUNT; r++) traffic_divide(&counts->role[r], rank_count);
    traffic_divide(&counts->experts, rank_count);
    traffic_divide(&counts->kv, rank_count);
    traffic_divide(&counts->sequence, rank_count);
}

/* `elements` of a border, one way. In inference nothing comes back but tokens, all the way. */
static void messages_count(const struct ranks *ranks, double elements,
                           struct workload_counts *counts)
{
    struct workload_borders const borders = workload_borders(ranks->plan, ranks->pp);
    double const messages = workload_microbatches(ranks->plan) / (double)ranks->model_replicas;
    double const bytes =
        elements / ranks->model_replicas * format_bits(ranks->plan->formats.activations) / 8;
    counts->stage.bytes = borders.pair * bytes;
    counts->stage.sent_bytes = (ranks_serves(ranks) ? borders.pair : borders.rank) * bytes;
    counts->stage.way_count = 2 * messages * borders.way;
    counts->stage.way_bytes = 2 * borders.way * bytes;
    if (ranks_gathers_messages(ranks)) /* Each border brings one of both. */
        counts_traffic_add(&counts->role[MESH_TP], COLLECTIVE_ALL_GATHER,
                           (uint64_t)(messages * borders.rank), ranks->tp * borders.rank * bytes);
}

enum status workload_count_ranks(struct ranks *ranks, struct workload_counts *ret_counts,
                                 struct error *reterr)
{
    const struct workload_plan *plan = ranks->plan;
    struct step_part parts[STEP_PARTS_MAX];
    struct workload_lists lists;
    STATUS_TRY(workload_lists_read(plan, ranks->machine, ranks->mesh, &lists, reterr));
    uint32_t const last = ranks->pass.index;
    double sent = 0;
    struct workload_counts counts = {.heads = {.held = (double)ranks->heads.queries * ranks->tp,
                                               .kv_held = (double)ranks->heads.kv * ranks->tp,
                                               .kv_padded = (double)ranks->heads.kv_distinct},
                                     .tp.column_flop = 2 * (double)ranks->rows *
                                                       (double)plan->model.width / ranks->tp};
    if (ranks_serves(ranks)) {
        counts.held_anyway.kept_sequences = ranks->inference.kept_sequences;
        counts.held_anyway.batches = inference_batch_count(&plan->inference);
        counts.held_anyway.keepers = (uint64_t)ranks->data / ranks->cp * inference_keepers(ranks);
    }
    for (uint32_t r = 0; r < MESH_ROLE_COUNT; r++)
        counts.role[r].group = ranks->mesh->axis[r].group;
    counts.role[MESH_DP].group = ranks->replicas.group;
    counts.weights.holders = ranks->replicas.name;
    counts.experts.group = ranks->experts.replicas.group;
    counts.kv.group = ranks->heads.group;
    counts.sequence.group = ranks->sequences.group;
    for (uint32_t p = 0; p <= last; p++) {
        if (ranks_serves(ranks) && inference_pass_is_empty(plan, p)) continue;
        STATUS_TRY(ranks_pass_set(ranks, p, reterr));
        counts.heads.spread_passes += inference_prompts_spread(ranks);
        counts.heads.summed_passes += inference_prompts_summed(ranks);
        uint32_t const count = step_parts(ranks, parts);
        for (uint32_t i = 0; i < count; i++) part_add(ranks, &parts[i], &counts);
        sent += (double)ranks_sent_elements(ranks) * plan->accumulate;
    }
    counts.useful_attention_flop *= all_ranks(ranks);
    padding_list(ranks, &counts.paddings);
    counts.rows.dropped = assigned_rows(ranks, (double)ranks->experts.dropped);
    counts.rows.assigned = assigned_rows(
        ranks, (double)(ranks->experts.tokens * plan->model.experts.top_k * ranks->experts.ranks));
    counts_weights(ranks, lists.head_returns, &counts);
    counts_memory(ranks, &counts);
    stages_divide(&counts, ranks->pp);
    counts.held_anyway.held_ppm = lists.held_ppm;
    counts.memory.activation_bytes *= (double)counts.held_anyway.held_ppm / PPM_ONE;
    messages_count(ranks, sent, &counts);
    *ret_counts = counts;
    return STATUS_OK;
}

enum status workload_count(const struct workload_plan *plan, const struct machine *machine,
                           const struct mesh *mesh, struct workload_counts *ret_counts,
                           struct error *reterr)
{
    struct ranks ranks;
    STATUS_TRY(ranks_make(plan, machine, mesh, &ranks, reterr));
    return workload_count_ranks(&ranks, ret_counts, reterr);
}
