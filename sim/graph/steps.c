#include "sim/graph/steps.h"

#include "sim/graph/asides.h"
#include "sim/graph/casts.h"

struct writer {
    const struct graph_sharded *sharded;
    const struct graph_backward *backward;
    const struct graph_kept *kept;
    struct graph_request request;
    struct graph_steps *steps;
    uint32_t gradients;               /* That are written. */
    bool gathered[GRAPH_TENSORS_MAX]; /* In this pass. */
};

static const struct graph *graph_of(const struct writer *writer)
{
    return writer->sharded->graph;
}

/* --- One step --- */

static void step_add(struct writer *writer, const struct graph_step *step)
{
    struct graph_step *added = &writer->steps->step[writer->steps->count++];
    SIM_ASSERT(writer->steps->count <= GRAPH_STEPS_MAX);
    SIM_ASSERT(step->is_compute || (step->move.read_count > 0 && step->move.written_count > 0));
    *added = *step;
    graph_step_values(writer->sharded, writer->kept, added);
}

static void compute_add(struct writer *writer, uint8_t index, enum op_pass pass)
{
    const struct graph_op *op = &graph_of(writer)->op[index];
    struct graph_step const step = {.is_compute = true,
                                    .of = GRAPH_NONE,
                                    .op = index,
                                    .pass = pass,
                                    .work = op_work(writer->sharded, op, pass)};
    if (op_has_work(&step.work)) step_add(writer, &step);
}

/* A collective of a tensor's value or gradient over one axis. */
static struct graph_step moved_step(const struct writer *writer, uint8_t index, enum op_pass pass,
                                    tensor of, enum collective_kind kind, uint32_t axis)
{
    const struct graph *graph = graph_of(writer);
    const struct graph_tensor *at = &graph->tensor[of];
    bool const gradient = !op_is_forward(pass);
    uint32_t const gathered = kind == COLLECTIVE_ALL_REDUCE ? 0 : axis;
    uint64_t const elements =
        graph_elements(graph, gradient ? &at->gradient_at : &at->at, gathered);
    enum format const format = kind == COLLECTIVE_ALL_GATHER
                                   ? graph_cast_format(graph, &graph->op[index], of, gradient)
                               : gradient ? at->gradient
                                          : at->format;
    bool const by_width = axis == graph->terms->axis_w;
    SIM_ASSERT(by_width || (axis & graph->terms->axis_w) == 0);
    struct op_move move = {.kind = kind,
                           .axis = by_width ? OP_AXIS_TP_D : OP_AXIS_TP,
                           .format = format,
                           .bytes = format_bytes(format, elements),
                           .apart = graph->terms->policy.bulk && gradient &&
                                    kind == COLLECTIVE_REDUCE_SCATTER};
    op_move_tensor(&move, of, gradient);
    return (struct graph_step){.of = of, .op = index, .pass = pass, .move = move};
}

static void tp_add(struct writer *writer, uint8_t index, enum op_pass pass, tensor of,
                   enum collective_kind kind, uint32_t axis)
{
    if (axis == 0) return;
    struct graph_step const step = moved_step(writer, index, pass, of, kind, axis);
    step_add(writer, &step);
}

/* Whether an op that is repeated finds what it gathered. */
static bool finds_gathered(const struct writer *writer, const struct op_move *move,
                           enum op_pass pass)
{
    bool const again = pass != OP_FORWARD && op_is_forward(pass);
    return again && move->before && !move->rounds &&
           writer->kept->kept[move->written[0].of] == GRAPH_GATHERED;
}

/* Collectives of an op's own. */
static void own_moves_add(struct writer *writer, uint8_t index, enum op_pass pass, bool before)
{
    const struct graph_op *op = &graph_of(writer)->op[index];
    struct op_move move[OP_MOVES_MAX];
    uint8_t const count = op_moves(writer->sharded, op, pass, move);
    for (uint8_t i = 0; i < count; i++) {
        if (move[i].before != before || finds_gathered(writer, &move[i], pass)) continue;
        step_add(writer, &(struct graph_step){
                             .of = GRAPH_NONE, .op = index, .pass = pass, .move = move[i]});
    }
}

/* Adds the casts for products in fp8. Casts that no product waits for stand behind the product.
 * Their place changes no time, and there they do not lie between a product and the collective whose
 * chunks it is coupled with. */
static void casts_add(struct writer *writer, uint8_t index, enum op_pass pass, bool backward)
{
    const struct graph *graph = graph_of(writer);
    const struct graph_op *op = &graph->op[index];
    if (!graph_casts(graph, op)) return;
    struct graph_step step = {.is_compute = true, .of = GRAPH_NONE, .op = index, .pass = pass};
    if (pass == OP_CAST) step.work = graph_cast_gradients(writer->sharded, op);
    if (pass == OP_CAST_SECOND) step.work = graph_cast_seconds(writer->sharded, op);
    if (pass == OP_CAST_WEIGHTS) step.work = graph_cast_by_pass(graph, op, backward);
    if (op_has_work(&step.work)) step_add(writer, &step);
}

/* Adds the additional kernels of a framework (asides.h). Kernels that fill gradients of
 * weights stand directly behind the product, since the reduction waits for them. */
static void aside_add(struct writer *writer, uint8_t index, enum op_pass pass, bool backward)
{
    const struct graph *graph = graph_of(writer);
    struct graph_step const step = {
        .is_compute = true,
        .of = GRAPH_NONE,
        .op = index,
        .pass = pass,
        .work = graph_aside_work(writer->sharded, &graph->op[index], pass, backward)};
    if (op_has_work(&step.work)) step_add(writer, &step);
}

/* The kernels for which no place is given. One gather of weights serves a repetition and the
 * gradients behind it. */
static void asides_add(struct writer *writer, uint8_t index, bool again, bool backward)
{
    aside_add(writer, index, OP_INPUT_CASTS, backward);
    if (!backward) aside_add(writer, index, OP_AUTOCAST_WEIGHTS, backward);
    if (!again && !writer->request.weights_held) aside_add(writer, index, OP_SHARDS, backward);
    aside_add(writer, index, OP_PADS, backward);
}

/* --- Forward, and again --- */

/* Gathers what some op of this pass reads gathered, unless it was kept so. */
static void gather_add(struct writer *writer, uint8_t index, enum op_pass pass, tensor of)
{
    uint32_t const axes = writer->sharded->gathered[of];
    bool const wanted = pass == OP_FORWARD || (writer->kept->read[of] == GRAPH_GATHERED &&
                                               writer->kept->kept[of] != GRAPH_GATHERED);
    if (axes == 0 || writer->gathered[of] || !wanted) return;
    writer->gathered[of] = true;
    tp_add(writer, index, pass, of, COLLECTIVE_ALL_GATHER, axes);
}

/* Sums that end in the op over one axis. Results of one kernel that are reduced alike travel
 * together. */
static void sums_along_add(struct writer *writer, uint8_t index, enum op_pass pass,
                           enum collective_kind kind, uint32_t axis)
{
    const struct graph_op *op = &graph_of(writer)->op[index];
    bool const everywhere = kind == COLLECTIVE_ALL_REDUCE;
    const struct graph_shard *shard = graph_shard_of(writer->sharded, op);
    if (((everywhere ? shard->all_reduce : shard->scatter) & axis) == 0) return;
    struct graph_step all = {.of = GRAPH_NONE};
    for (uint8_t i = 0; i < op->out_count; i++) {
        uint32_t const own =
            (everywhere ? graph_all_reduced : graph_scattered)(writer->sharded, op, op->out[i]);
        if ((own & axis) == 0) continue;
        SIM_ASSERT(own == axis || everywhere);
        struct graph_step const step = moved_step(writer, index, pass, op->out[i], kind, axis);
        if (all.of == GRAPH_NONE) {
            all = step;
            continue;
        }
        all.move.bytes += step.move.bytes;
        op_move_tensor(&all.move, op->out[i], !op_is_forward(pass));
    }
    if (all.of != GRAPH_NONE) step_add(writer, &all);
}

/* Over tp before tp_d, whose ranks are farther apart. */
static void sums_add(struct writer *writer, uint8_t index, enum op_pass pass,
                     enum collective_kind kind)
{
    const struct graph_terms *terms = graph_of(writer)->terms;
    sums_along_add(writer, index, pass, kind, terms->axis_y);
    sums_along_add(writer, index, pass, kind, terms->axis_w);
}

/* Whether the pass makes a tensor, which is gathered as soon as it is there. */
static bool is_made(const struct writer *writer, enum op_pass pass, tensor of)
{
    uint8_t const maker = graph_of(writer)->tensor[of].made_by;
    return maker != GRAPH_NONE && (pass == OP_FORWARD || writer->kept->again[maker]);
}

static void forward_add(struct writer *writer, uint8_t index, enum op_pass pass)
{
    const struct graph_op *op = &graph_of(writer)->op[index];
    if (op->fused) return;
    for (uint8_t i = 0; i < op->in_count; i++)
        if (!is_made(writer, pass, op->in[i])) gather_add(writer, index, pass, op->in[i]);
    own_moves_add(writer, index, pass, true);
    compute_add(writer, index, pass);
    sums_add(writer, index, pass, COLLECTIVE_REDUCE_SCATTER);
    sums_add(writer, index, pass, COLLECTIVE_ALL_REDUCE);
    own_moves_add(writer, index, pass, false);
    for (uint8_t i = 0; i < op->out_count; i++) gather_add(writer, index, pass, op->out[i]);
    casts_add(writer, index, OP_CAST_WEIGHTS, /* backward= */ false);
    asides_add(writer, index, pass != OP_FORWARD, /* backward= */ false);
}

static void again_add(struct writer *writer, uint8_t index)
{
    forward_add(writer, index, graph_again_pass(writer->sharded, writer->kept, index));
}

/* What an op moves for its gradient alone, since its result is kept: whole sequences, which are not
 * kept so. What goes round, the gradient moves itself. */
static void wholes_add(struct writer *writer, uint8_t index)
{
    const struct graph *graph = graph_of(writer);
    const struct graph_op *op = &graph->op[index];
    struct op_move move[OP_MOVES_MAX];
    if (op->fused || !op->kind->shares_sequence) return;
    uint8_t const count = op_moves(writer->sharded, op, OP_AGAIN, move);
    for (uint8_t i = 0; i < count; i++) {
        tensor const of = move[i].written[0].of;
        if (!move[i].before || move[i].rounds || writer->kept->read[of] != GRAPH_GATHERED) continue;
        if (writer->kept->kept[of] == GRAPH_GATHERED) continue;
        step_add(writer, &(struct graph_step){
                             .of = GRAPH_NONE, .op = index, .pass = OP_AGAIN, .move = move[i]});
    }
}

/* An op that is repeated, or what its gradient wants of the repetition. */
static void before_add(struct writer *writer, uint8_t index)
{
    (writer->kept->again[index] ? again_add : wholes_add)(writer, index);
}

/* --- Backward --- */

static bool has_input(const struct writer *writer)
{
    return writer->request.half != GRAPH_WEIGHT_HALF;
}

static bool has_weight(const struct writer *writer)
{
    return writer->request.half != GRAPH_INPUT_HALF;
}

/* The pass as the half of the backward pass has it; false: not at all. */
static bool pass_of(const struct writer *writer, enum op_pass pass, enum op_pass *ret_pass)
{
    *ret_pass = pass;
    if (pass == OP_BOTH_GRADIENTS && !has_weight(writer)) *ret_pass = OP_INPUT_GRADIENT;
    if (pass == OP_BOTH_GRADIENTS && !has_input(writer)) *ret_pass = OP_WEIGHT_GRADIENT;
    return (op_gives_input(*ret_pass) && has_input(writer)) ||
           (op_gives_weight(*ret_pass) && has_weight(writer));
}

/* Adds what has to come before an op's gradients: the sum of its result's gradients, if several ops
 * read the result; the cast of that gradient; the gather of what the forward pass has scattered. */
static void results_add(struct writer *writer, uint8_t index)
{
    const struct graph_op *op = &graph_of(writer)->op[index];
    bool const weights_alone = op->in_count == 0;
    bool const wanted = weights_alone ? has_weight(writer) : has_input(writer);
    enum op_pass const pass = weights_alone ? OP_WEIGHT_GRADIENT : OP_INPUT_GRADIENT;
    for (uint8_t i = 0; wanted && i < op->out_count; i++) {
        uint32_t const scatter = graph_scattered(writer->sharded, op, op->out[i]);
        if (writer->backward->readers[op->out[i]] > 1)
            step_add(writer,
                     &(struct graph_step){.is_compute = true,
                                          .of = op->out[i],
                                          .op = index,
                                          .pass = pass,
                                          .work = graph_gradient_sum(writer->sharded, op->out[i])});
        if (i == 0) casts_add(writer, index, OP_CAST, /* backward= */ true);
        tp_add(writer, index, pass, op->out[i], COLLECTIVE_ALL_GATHER, scatter);
    }
}

/* What the forward pass has gathered: for the op alone, its part of the sum. What every rank had
 * whole: the sum of what the ranks give. */
static void inputs_add(struct writer *writer, uint8_t index)
{
    const struct graph *graph = graph_of(writer);
    const struct graph_op *op = &graph->op[index];
    for (uint8_t i = 0; i < op->in_count; i++) {
        uint32_t const axes = graph_shard_of(writer->sharded, op)->gather &
                              sharding_axes(&graph->tensor[op->in[i]].at);
        tp_add(writer, index, OP_INPUT_GRADIENT, op->in[i], COLLECTIVE_ALL_REDUCE,
               writer->sharded->summed[op->in[i]]);
        tp_add(writer, index, OP_INPUT_GRADIENT, op->in[i], COLLECTIVE_REDUCE_SCATTER, axes);
    }
}

/* The sum of a block's weights' gradients that lie in parts, directly behind the last of them. */
static void partial_add(struct writer *writer, const struct graph_gradient *gradient)
{
    const struct graph *graph = graph_of(writer);
    const struct graph_op *op = &graph->op[gradient->op];
    struct graph_partial const partial =
        graph_partial_of(writer->sharded, writer->backward, op->block);
    bool const gives = op_gives_weight(gradient->pass) && has_weight(writer);
    if (!writer->request.sums_partial || partial.last != gradient->op || !gives) return;
    struct op_move move = {
        .kind = COLLECTIVE_ALL_REDUCE,
        .axis = partial.axis,
        .format = graph->terms->formats.gradients,
        .bytes = format_bytes(graph->terms->formats.gradients, partial.elements),
    };
    for (uint8_t w = 0; w < op->weight_count; w++) {
        op_move_reads(&move, op->weight[w], /* gradient= */ true, /* full= */ false);
        op_move_writes(&move, op->weight[w], /* gradient= */ true, /* full= */ false);
    }
    step_add(writer, &(struct graph_step){.of = op->weight[0],
                                          .op = gradient->op,
                                          .pass = OP_WEIGHT_GRADIENT,
                                          .move = move});
}

static void fillers_add(struct writer *writer, uint8_t index)
{
    aside_add(writer, index, OP_BIASES, /* backward= */ true);
    aside_add(writer, index, OP_GRADIENT_CASTS, /* backward= */ true);
    aside_add(writer, index, OP_SUMS, /* backward= */ true);
    if (!writer->request.gradients_stay) aside_add(writer, index, OP_COPIES, /* backward= */ true);
}

static void gradient_add(struct writer *writer)
{
    const struct graph_backward *backward = writer->backward;
    uint32_t const at = writer->gradients++;
    const struct graph_gradient *gradient = &backward->gradient[at];
    bool const first = at == 0 || gradient[-1].op != gradient->op;
    bool const last = at + 1 == backward->count || gradient[1].op != gradient->op;
    bool const apart = graph_of(writer)->op[gradient->op].gradients.behind != GRAPH_NONE;
    enum op_pass pass = gradient->pass;
    if (first) results_add(writer, gradient->op);
    if (pass_of(writer, gradient->pass, &pass)) {
        own_moves_add(writer, gradient->op, pass, true);
        compute_add(writer, gradient->op, pass);
        if (pass == OP_WEIGHT_GRADIENT) fillers_add(writer, gradient->op);
        own_moves_add(writer, gradient->op, pass, false);
        partial_add(writer, gradient);
        if (op_gives_input(pass) && !apart) inputs_add(writer, gradient->op);
        if (pass == OP_BOTH_GRADIENTS) fillers_add(writer, gradient->op);
    }
    if (last && has_weight(writer))
        casts_add(writer, gradient->op, OP_CAST_SECOND, /* backward= */ true);
    if (last && has_input(writer)) {
        casts_add(writer, gradient->op, OP_CAST_WEIGHTS, /* backward= */ true);
        asides_add(writer, gradient->op, /* again= */ false, /* backward= */ true);
    }
    /* What ops of a side branch give is read by the sum of gradients alone, which comes last. */
    if (last && apart && has_input(writer)) inputs_add(writer, gradient->op);
}

/* What only gradients of a block's weights wait for: ops that are repeated for them, unless all
 * repetitions came before, and what was kept as it lay and is gathered again. */
static void weights_again_add(struct writer *writer, const struct graph_span *span)
{
    const struct graph *graph = graph_of(writer);
    const struct graph_kept *kept = writer->kept;
    bool const repeated = graph_remat_repeats(graph->terms->policy.remat);
    if (!has_weight(writer)) return;
    for (uint8_t i = 0; i < span->first + span->count; i++) {
        const struct graph_op *op = &graph->op[i];
        bool const again = kept->again[i], here = kept->block[i] == span - graph->block;
        if (!repeated && again && here && !kept->for_input[i]) again_add(writer, i);
        if (i < span->first) continue;
        for (uint8_t in = 0; !again && !op->fused && in < op->in_count; in++)
            if (!is_made(writer, OP_AGAIN, op->in[in]) &&
                graph_kept_part(graph, kept, op->in[in]) == GRAPH_OWN)
                gather_add(writer, i, OP_AGAIN, op->in[in]);
    }
}

/* Whether a gradient of weights reads what comes again for these alone. */
static bool waits_for_weights_again(const struct writer *writer,
                                    const struct graph_gradient *gradient)
{
    const struct graph *graph = graph_of(writer);
    const struct graph_op *op = &graph->op[gradient->op];
    const struct graph_kept *kept = writer->kept;
    tensor read[OP_READS_MAX];
    if (!op_gives_weight(gradient->pass)) return false;
    uint8_t const count = op_reads(graph, op, gradient->pass, read);
    for (uint8_t i = 0; i < count; i++) {
        uint8_t const maker = graph->tensor[read[i]].made_by;
        bool const again = maker != GRAPH_NONE && kept->again[maker] && !kept->for_input[maker];
        bool const gathers = graph_kept_part(graph, kept, read[i]) == GRAPH_OWN &&
                             kept->read[read[i]] == GRAPH_GATHERED;
        if (again || gathers) return true;
    }
    return false;
}

/* The op that ends a block, if it has gradients of weights apart: less those behind it that only
 * pass theirs on. GRAPH_NONE: it has none. */
static uint8_t block_end(const struct graph *graph, const struct graph_span *span)
{
    const struct graph_op *end = graph_maker(graph, span->out);
    while (end->kind->passes_on && graph_maker(graph, end->in[0]) != NULL)
        end = graph_maker(graph, end->in[0]);
    return end->kind->weights_apart ? graph_index(graph, end) : GRAPH_NONE;
}

static bool is_exchange(const struct writer *writer, const struct graph_gradient *gradient)
{
    const struct graph_op *op = &graph_of(writer)->op[gradient->op];
    struct op_move move[OP_MOVES_MAX];
    return op_moves(writer->sharded, op, gradient->pass, move) > 0 && move[0].axis == OP_AXIS_EP;
}

/* The gradient of a block's result travels to experts ahead of all that is repeated: it reads
 * nothing of that, and has the compute of the repetition to hide behind. */
static void exchange_add(struct writer *writer, uint8_t block)
{
    const struct graph *graph = graph_of(writer);
    const struct graph_backward *backward = writer->backward;
    uint32_t end = writer->gradients;
    if (!has_input(writer) || graph->terms->policy.remat == GRAPH_REMAT_LAYER) return;
    for (; end < backward->count; end++) {
        const struct graph_gradient *gradient = &backward->gradient[end];
        const struct graph_op *op = &graph->op[gradient->op];
        tensor read[OP_READS_MAX];
        bool const reads = op_reads(graph, op, gradient->pass, read) > 0;
        if (op->block != block || reads) return;
        if (is_exchange(writer, gradient)) break;
    }
    while (end < backward->count && writer->gradients <= end) gradient_add(writer);
}

/* Whether an op is repeated, or wants whole sequences, before the gradients of a block. */
static bool is_before(const struct writer *writer, uint8_t index, uint8_t block)
{
    const struct graph_kept *kept = writer->kept;
    if (!kept->again[index]) return graph_of(writer)->op[index].block == block;
    return kept->for_input[index] && kept->block[index] == block;
}

static void block_add(struct writer *writer, uint8_t block)
{
    const struct graph *graph = graph_of(writer);
    const struct graph_backward *backward = writer->backward;
    const struct graph_span *span = &graph->block[block];
    bool const repeated = graph_remat_repeats(graph->terms->policy.remat);
    uint8_t const last = block_end(graph, span);
    bool again = false; /* Already. */
    if (!repeated) exchange_add(writer, block);
    for (uint8_t i = 0; !repeated && has_input(writer) && i < span->first + span->count; i++)
        if (is_before(writer, i, block)) before_add(writer, i);
    while (writer->gradients < backward->count) {
        const struct graph_gradient *gradient = &backward->gradient[writer->gradients];
        if (graph->op[gradient->op].block != block) break;
        bool const behind = last == GRAPH_NONE || gradient->op < last;
        if (!again && (behind || waits_for_weights_again(writer, gradient))) {
            weights_again_add(writer, span);
            again = true;
        }
        gradient_add(writer);
    }
}

/* A forward pass that is repeated whole does what the first one did, and counts as no progress. */
static void repetition_mark(struct graph_steps *steps)
{
    for (uint32_t i = 0; i < steps->count; i++) {
        struct graph_step *step = &steps->step[i];
        if (step->pass == OP_FORWARD) step->pass = OP_AGAIN;
        step->work.useful_flop = 0;
    }
}

void graph_steps(const struct graph_sharded *sharded, const struct graph_backward *backward,
                 const struct graph_kept *kept, struct graph_request request,
                 struct graph_steps *ret_steps)
{
    const struct graph *graph = sharded->graph;
    struct writer writer = {.sharded = sharded,
                            .backward = backward,
                            .kept = kept,
                            .request = request,
                            .steps = ret_steps};
    bool const repeats =
        request.backward && has_input(&writer) && graph_remat_repeats(graph->terms->policy.remat);
    ret_steps->request = request;
    ret_steps->count = 0;
    if (repeats) exchange_add(&writer, graph->block_count - 1);
    ret_steps->again = ret_steps->count;
    for (uint8_t i = 0; i < graph->op_count; i++) {
        if (!request.backward) forward_add(&writer, i, OP_FORWARD);
        if (repeats) before_add(&writer, i);
    }
    if (request.again) repetition_mark(ret_steps);
    ret_steps->repeated = repeats ? ret_steps->count : ret_steps->again;
    for (uint8_t block = graph->block_count; request.backward && block-- > 0;)
        block_add(&writer, block);
}
