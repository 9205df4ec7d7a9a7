#include "sim/step/emit.h"

#include "sim/graph/casts.h"
#include "sim/step/emit_parts.h"

/* --- What a step reads of others --- */

/* Two steps that stand together, a product and its collective over tp, run chunk by chunk. What is
 * gathered again for a gradient of weights is there before that begins. */
static bool is_coupled(const struct emit *emit, uint32_t first)
{
    const struct graph_step *step = &emit->steps->step[first];
    if (first + 1 >= emit->steps->count || step->is_compute == step[1].is_compute) return false;
    bool const gathers = !step->is_compute;
    const struct graph_step *collective = gathers ? step : step + 1;
    enum collective_kind const kind = gathers ? COLLECTIVE_ALL_GATHER : COLLECTIVE_REDUCE_SCATTER;
    return collective->move.kind == kind && emit_is_chunked(emit, collective) &&
           graph_step_met(step + 1, step) != NULL &&
           op_is_forward(step->pass) == op_is_forward(step[1].pass);
}

/* Parts of a compute. */
static uint32_t parts_of(struct emit *emit, uint32_t at)
{
    if (at > 0 && is_coupled(emit, at - 1))
        return lower_plan_chunks(emit->lower, emit_plan(emit, at - 1));
    if (is_coupled(emit, at)) return lower_plan_chunks(emit->lower, emit_plan(emit, at + 1));
    return 1;
}

/* The side of a product's matrices that the chunks of its collective divide. */
static enum work_side chunked_side(const struct emit *emit, const struct graph_step *product,
                                   const struct graph_step *collective)
{
    const struct graph_op *op = &emit->graph->op[product->op];
    tensor const moved = collective->move.written[0].of;
    const struct sharding *at = &emit->graph->tensor[moved].at;
    for (uint8_t p = 0; p < op->product_count; p++) {
        const struct graph_product *of = &op->as.matmul.product[p];
        if (of->left != moved && of->out != moved) continue;
        for (uint32_t d = 0; d < at->dimension_count; d++) {
            struct sharding const one = {.dimension = {at->dimension[d]}, .dimension_count = 1};
            const char *name = at->dimension[d].name;
            if ((sharding_axes(&one) & emit->graph->terms->axis_y) == 0) continue;
            return !sharding_has(&emit->graph->tensor[of->weight].at, name) ? WORK_SIDE_ROWS
                   : sharding_has(&emit->graph->tensor[of->left].at, name)  ? WORK_SIDE_INNER
                                                                            : WORK_SIDE_COLUMNS;
        }
    }
    return WORK_SIDE_NONE;
}

/* Measured kernels of a product that goes chunk by chunk. Transformer Engine cuts a product that is
 * reduced into four, whatever the ranks (initialize_ub: num_splits of the method "pipeline"). */
static uint64_t kernels_of_chunks(const struct emit *emit, uint32_t parts, bool reduces)
{
    enum { SPLITS = 4 };
    enum workload_chunks const chunks = emit->lower->ranks->plan->software.chunks;
    if (chunks == WORKLOAD_CHUNKS_RANKS) return parts;
    if (reduces) return SPLITS;
    return chunks == WORKLOAD_CHUNKS_PAIRS ? units_ceil_divide(parts, 2) : parts;
}

/* The work of a compute. Measured kernels are of chunks where the compute goes chunk by chunk. */
static struct work work_of(const struct emit *emit, uint32_t at, uint32_t parts)
{
    const struct graph_step *step = &emit->steps->step[at];
    struct work work = step->work;
    if (parts == 1 || work.kernel == WORK_KERNEL_NONE) return work;
    bool const is_behind = at > 0 && is_coupled(emit, at - 1);
    work.chunked = chunked_side(emit, step, is_behind ? step - 1 : step + 1);
    work.chunk_count =
        work.chunked == WORK_SIDE_NONE ? 0 : kernels_of_chunks(emit, parts, !is_behind);
    return work;
}

/* Whether a step adds up what ranks of tp have parts of: it comes directly behind the step that
 * gives the last of a block's gradients. */
static bool is_sum(const struct emit *emit, uint32_t at)
{
    return at < emit->steps->count && graph_step_sums_weights(emit->graph, &emit->steps->step[at]);
}

/* --- Needs --- */

/* All that have written it: of a gradient that is a sum, several. Of a stream the last is enough.
 */
static bool writers_add(const struct emit *emit, uint32_t at, struct graph_value value,
                        uint32_t writer[PROGRAM_STREAMS_MAX])
{
    bool found = false;
    for (uint32_t before = 0; before < at; before++) {
        if (!graph_step_writes(&emit->steps->step[before], value)) continue;
        uint8_t const stream = emit->lower->build.op[emit->op[before]].stream;
        if (writer[stream] == LOWER_NONE || writer[stream] < before) writer[stream] = before;
        found = true;
    }
    return found;
}

static bool writers_find(const struct emit *emit, uint32_t at, struct graph_value value,
                         uint32_t ret_writer[PROGRAM_STREAMS_MAX])
{
    for (uint32_t s = 0; s < PROGRAM_STREAMS_MAX; s++) ret_writer[s] = LOWER_NONE;
    return writers_add(emit, at, value, ret_writer);
}

/* What was kept is gathered again: for a repetition before all gradients when the gradient from
 * above is there; an op's own inputs when the gradient of its block's result is there, others for
 * this slot, not for those before. */
static void kept_need(struct emit *emit, uint32_t at)
{
    const struct graph_step *step = &emit->steps->step[at];
    const struct graph_span *block = &emit->graph->block[emit->graph->op[step->op].block];
    uint32_t writer[PROGRAM_STREAMS_MAX];
    struct lower *lower = emit->lower;
    if (at < emit->steps->repeated) {
        if (at != emit->steps->again) lower_need_output(lower, emit->op[at], true, NULL);
        return;
    }
    if (step->of != GRAPH_NONE) {
        lower_need_before(lower, emit->op[at], LOWER_COMPUTE, NULL);
        return;
    }
    if (!writers_find(emit, at, (struct graph_value){block->out, true, false}, writer)) {
        lower_need_output(lower, emit->op[at], /* gradient= */ true, NULL);
        return;
    }
    for (uint32_t s = 0; s < PROGRAM_STREAMS_MAX; s++)
        if (writer[s] != LOWER_NONE)
            lower_need_done(lower, emit->op[at], emit->op[writer[s]], NULL);
}

/* With `layer` the gradient from above waits for the end of the repetition. */
static bool repeats_first(const struct emit *emit)
{
    return emit->steps->repeated > 0 && emit->graph->terms->policy.remat == GRAPH_REMAT_LAYER;
}

/* Of values that no step before has written. */
static void outer_need(struct emit *emit, uint32_t at, struct graph_value value)
{
    const struct graph_step *step = &emit->steps->step[at];
    struct lower *lower = emit->lower;
    bool const backward = emit->steps->request.backward;
    if (emit->graph->tensor[value.of].role == GRAPH_WEIGHT) return; /* See weights_add(). */
    bool const weights_alone = emit->graph->op[step->op].in_count == 0;
    bool const has_input = emit->steps->request.half != GRAPH_WEIGHT_HALF;
    if (emit->steps->request.again && lower->part.group == RANKS_GROUP_FIRST)
        lower_need_output(lower, emit->op[at], /* gradient= */ true, NULL); /* X was kept. */
    else if (value.gradient ? has_input || weights_alone : !backward)
        lower_need_output(lower, emit->op[at], value.gradient,
                          repeats_first(emit) ? NULL : emit_value_name(emit, value));
    else if (!value.gradient && !step->is_compute && op_is_forward(step->pass))
        kept_need(emit, at);
}

/* What a backward pass reads and no step of the pass has written was kept. */
static void kept_read(struct emit *emit, uint32_t at, struct graph_value value)
{
    struct lower *lower = emit->lower;
    bool const backward = emit->steps->request.backward;
    if (!backward || value.gradient || emit->graph->tensor[value.of].role == GRAPH_WEIGHT) return;
    uint32_t *reader = &lower->kept_reader[lower->build.op[emit->op[at]].stream];
    if (*reader == LOWER_NONE) *reader = emit->op[at];
}

static void needs_add(struct emit *emit, uint32_t at)
{
    const struct graph_step *step = &emit->steps->step[at];
    struct lower *lower = emit->lower;
    uint32_t writer[PROGRAM_STREAMS_MAX];
    bool outer = false;
    if (lower->build.status != STATUS_OK) return;
    for (uint32_t s = 0; s < PROGRAM_STREAMS_MAX; s++) writer[s] = LOWER_NONE;
    for (uint8_t i = 0; i < step->read_count; i++) {
        bool const written = writers_add(emit, at, step->read[i], writer);
        if (!written) kept_read(emit, at, step->read[i]);
        if (written || outer) continue;
        outer_need(emit, at, step->read[i]);
        outer = emit->graph->tensor[step->read[i].of].role != GRAPH_WEIGHT;
    }
    /* What goes round for a gradient leaves when that of the op's result is there. */
    if (!step->is_compute && step->move.before && !op_is_forward(step->pass))
        (void)writers_add(
            emit, at, (struct graph_value){emit->graph->op[step->op].out[0], true, false}, writer);
    for (uint32_t s = 0; s < PROGRAM_STREAMS_MAX; s++) {
        if (writer[s] == LOWER_NONE) continue;
        uint32_t const target = emit->op[writer[s]];
        const struct graph_value *met = graph_step_met(step, &emit->steps->step[writer[s]]);
        const char *array = is_sum(emit, at) ? lower_moved(lower, emit->op[at])
                            : met == NULL    ? NULL
                                             : emit_value_name(emit, *met);
        if (writer[s] + 1 != at || !is_coupled(emit, writer[s]))
            lower_need_done(lower, emit->op[at], target, array);
        else if (step->is_compute)
            lower_need_chunks(lower, emit->op[at], target, array);
        else
            lower_operand(lower, emit->op[at], target, array);
    }
}

/* --- Weights --- */

/* Whether a step is a kernel directly behind a gradient of weights that fills the array which is
 * reduced. */
static bool is_filled(const struct emit *emit, uint32_t at)
{
    const struct graph_step *step = &emit->steps->step[at];
    if (at == 0 || at >= emit->steps->count || !op_fills_gradient(step->pass)) return false;
    bool const behind = step[-1].is_compute && step[-1].op == step->op;
    return behind && (op_gives_weight(step[-1].pass) || is_filled(emit, at - 1));
}

bool emit_ends_gradient(const struct emit *emit, uint32_t at)
{
    const struct graph_step *step = &emit->steps->step[at];
    bool const is_part = op_gives_weight(step->pass) || is_filled(emit, at);
    return step->is_compute && is_part && !is_filled(emit, at + 1);
}

static void weights_add(struct emit *emit, uint32_t at)
{
    const struct graph_step *step = &emit->steps->step[at];
    const struct graph_op *op = &emit->graph->op[step->op];
    struct lower *lower = emit->lower;
    uint32_t const index = emit->op[at];
    uint8_t const place = emit->of->place[step->op];
    bool const backward = !op_is_forward(step->pass);
    SIM_ASSERT(!is_sum(emit, at) || (place != MATRICES_MAX && step[-1].is_compute));
    if (is_sum(emit, at)) lower_gradient(lower, emit->op[at - 1], place, index);
    if (!step->is_compute || place == MATRICES_MAX || step->of != GRAPH_NONE) return;
    if (op_gives_weight(step->pass)) {
        uint64_t const elements = lower->layer->place_elements[place];
        bool const grouped = emit->graph->tensor[op->weight[0]].grouped;
        lower_gradient_take(lower, index, elements, grouped);
    }
    if (emit_ends_gradient(emit, at) && !is_sum(emit, at + 1))
        lower_gradient(lower, index, place, LOWER_NONE);
    if (backward && !op_gives_input(step->pass)) return;
    lower_weights_need(lower, index, place, /* reads= */ true);
    if (backward || !emit->steps->request.backward)
        lower_weights_release(lower, index, place, backward);
}

/* --- A pass --- */

/* What goes to other slots: the last block's result, or the gradient of the first one's input. */
static bool is_result(const struct emit *emit, const struct graph_value *value, bool backward)
{
    const struct graph_tensor *of = &emit->graph->tensor[value->of];
    if (value->full || value->gradient != backward) return false;
    return backward ? of->role != GRAPH_WEIGHT && of->made_by == GRAPH_NONE
                    : value->of == emit->graph->added;
}

static void output_set(struct emit *emit, uint32_t first, uint32_t end, bool backward)
{
    for (uint32_t at = first; at < end; at++)
        for (uint8_t i = 0; i < emit->steps->step[at].written_count; i++)
            if (is_result(emit, &emit->steps->step[at].written[i], backward))
                emit->lower->output = emit->op[at];
}

static enum program_purpose purpose_of(const struct emit *emit, const struct graph_step *step)
{
    const struct op_kind *kind = emit->graph->op[step->op].kind;
    if (kind->attends && ranks_serves(emit->lower->ranks)) return PROGRAM_PURPOSE_ATTENTION;
    return kind->weights_apart && step->work.matmul_count > 0 ? PROGRAM_PURPOSE_LINEAR
                                                              : PROGRAM_PURPOSE_OTHER;
}

static void step_add(struct emit *emit, uint32_t at)
{
    const struct graph_step *step = &emit->steps->step[at];
    struct lower *lower = emit->lower;
    if (step->is_compute) {
        uint32_t const parts = parts_of(emit, at);
        struct work const work = work_of(emit, at, parts);
        emit->op[at] = lower_compute(lower, emit_compute_name(emit, step), &work, parts);
        lower_purpose_set(lower, emit->op[at], purpose_of(emit, step));
    } else {
        struct emit_route const route = emit_route(lower->ranks, emit->graph, step);
        emit->op[at] = lower_collective(lower, route.stream, emit_moved_name(emit, step),
                                        op_axis_name(step->move.axis), emit_plan(emit, at));
    }
}

/* The repetition begins when the gradient from above is there. */
static void steps_add(struct emit *emit)
{
    struct lower *lower = emit->lower;
    const struct graph_steps *steps = emit->steps;
    bool const repeats = steps->again < steps->repeated;
    uint32_t above = lower->output;
    for (uint32_t at = 0; at < steps->count; at++) {
        if (at == steps->repeated && at > 0) {
            if (repeats_first(emit)) output_set(emit, 0, at, false);
            above = lower->output;
        }
        if (emit->end != NULL) emit_end_gather(emit, at);
        step_add(emit, at);
        /* A look-up reads the tokens that came, which no tensor says. */
        if (at == 0 && lower->part.module == MODULE_EMBEDDING)
            lower_need_done(lower, emit->op[at], lower->received, "Next");
        if (repeats && at == steps->again)
            lower_need_output(lower, emit->op[at], /* gradient= */ true, NULL);
        needs_add(emit, at);
        (emit->end != NULL ? emit_end_weights : weights_add)(emit, at);
        lower->output = above;
    }
}

/* The step that gives the gradient of the input of the product whose gradient of weights is the
 * first to read what a step gathers; LOWER_NONE: none before that does. */
static uint32_t product_beside(const struct graph_steps *steps, uint32_t gather)
{
    uint32_t reader = gather + 1;
    while (reader < steps->count &&
           graph_step_met(&steps->step[reader], &steps->step[gather]) == NULL)
        reader++;
    if (reader == steps->count || op_is_forward(steps->step[reader].pass)) return LOWER_NONE;
    for (uint32_t at = steps->repeated; at < reader; at++) {
        const struct graph_step *step = &steps->step[at];
        bool const gives = op_gives_input(step->pass) && !op_gives_weight(step->pass);
        if (step->is_compute && step->of == GRAPH_NONE && step->op == steps->step[reader].op &&
            gives)
            return at;
    }
    return LOWER_NONE;
}

/* Collectives over tp of the gradients of a product, which may run beside it: the gather of its
 * input for the gradient of weights beside that of the input, and the sum of the latter beside the
 * former (LinearWithGradAccumulationAndAsyncCommunication of Megatron-LM's
 * core/tensor_parallel/layers.py). */
static void issued_set(struct emit *emit)
{
    const struct graph_steps *steps = emit->steps;
    for (uint32_t at = steps->repeated; steps->request.backward && at < steps->count; at++) {
        const struct graph_step *step = &steps->step[at];
        bool const gathers = step->move.kind == COLLECTIVE_ALL_GATHER;
        bool const over_tp = step->move.axis == OP_AXIS_TP || step->move.axis == OP_AXIS_TP_D;
        if (step->is_compute || !over_tp || step->of == GRAPH_NONE ||
            graph_step_sums_weights(emit->graph, step))
            continue;
        if (op_is_forward(step->pass) != gathers) continue;
        uint32_t const beside = gathers ? product_beside(steps, at) : at;
        if (beside != LOWER_NONE)
            emit->lower->issued[emit->op[at]] = emit->op[beside < at ? at : beside];
    }
}

static struct emit emit_of(struct lower *lower, const struct lower_graph *of,
                           const struct lower_pass *pass, const struct emit_end *end)
{
    struct emit emit = {.lower = lower,
                        .of = of,
                        .graph = &of->derived->graph,
                        .steps = &pass->steps,
                        .live = &pass->live,
                        .end = end,
                        .gather = {LOWER_NONE, LOWER_NONE}};
    for (uint32_t i = 0; i < pass->steps.count; i++) emit.plan[i] = LOWER_NONE;
    return emit;
}

void emit_pass(struct lower *lower, struct lower_graph *of, const struct emit_end *end,
               struct graph_request request)
{
    const struct lower_pass *pass = of == NULL ? NULL : emit_pass_of(lower, of, request);
    if (pass == NULL) return;
    struct emit emit = emit_of(lower, of, pass, end);
    steps_add(&emit);
    if (lower->build.status != STATUS_OK) return;
    issued_set(&emit);
    emit_memory(&emit);
    output_set(&emit, pass->steps.repeated, pass->steps.count, request.backward);
}

void emit_forward(struct lower *lower)
{
    emit_pass(lower, emit_layer_graph(lower), NULL, emit_request(lower, /* backward= */ false));
}

struct graph_request emit_request(const struct lower *lower, bool backward)
{
    static const enum graph_half halves[] = {[ACT_BACKWARD] = GRAPH_WHOLE,
                                             [ACT_INPUT] = GRAPH_INPUT_HALF,
                                             [ACT_WEIGHT] = GRAPH_WEIGHT_HALF};
    const struct ranks *ranks = lower->ranks;
    /* What stays whole on each rank is added up once, in the last microbatch. */
    bool const once = ranks->replicas.gradient_shards == 1 || ranks->gradients.once;
    bool const held = lower->part.keeping == LOWER_HOLDS;
    if (!backward)
        return (struct graph_request){.again = lower->part.act == ACT_AGAIN, .weights_held = held};
    return (struct graph_request){.backward = true,
                                  .half = halves[lower->part.act],
                                  .sums_partial =
                                      ranks_sums_parts(ranks) && (lower->part.last || !once),
                                  .weights_held = held,
                                  .gradients_stay = ranks->gradients.once && !lower->part.last};
}

void emit_backward(struct lower *lower)
{
    emit_pass(lower, emit_layer_graph(lower), NULL, emit_request(lower, /* backward= */ true));
}

void emit_reduction(struct lower *lower, enum lower_module module)
{
    struct graph_request const request = {.backward = true, .sums_partial = true};
    struct step_part const end = {.part = module == MODULE_HEAD ? BLOCK_HEAD : BLOCK_EMBEDDING,
                                  .used_before =
                                      module != MODULE_HEAD && step_embedding_used(lower->ranks)};
    if (!lower_is_layer(module) && module != MODULE_HEAD && module != MODULE_EMBEDDING) return;
    struct lower_graph *of =
        lower_is_layer(module) ? emit_layer_graph(lower) : emit_graph(lower, &end);
    const struct lower_pass *pass = of == NULL ? NULL : emit_pass_of(lower, of, request);
    if (pass == NULL) return;
    struct emit emit = emit_of(lower, of, pass, NULL);
    for (uint32_t at = 0; at < pass->steps.count; at++) {
        if (pass->steps.step[at].pass == OP_COPIES) step_add(&emit, at);
        if (!is_sum(&emit, at)) continue;
        step_add(&emit, at);
        lower->parts_sum[of->place[pass->steps.step[at].op]] = emit.op[at];
        lower_need_before(lower, emit.op[at], LOWER_COMPUTE, lower_weight_gradient);
    }
}

void emit_weights_cast(struct lower *lower, enum lower_module module)
{
    const struct ranks *ranks = lower->ranks;
    struct graph_casting const casts = workload_casts(ranks->plan, &ranks->machine->chip);
    bool const has_layer = lower_is_layer(module) || module == MODULE_MTP;
    if (!has_layer || casts.recipe == NULL || !casts.way->weights_stay) return;
    struct step_part const part = {.part = BLOCK_LAYER, .kind = lower_kind_of(ranks, module)};
    const struct lower_graph *of = emit_graph(lower, &part);
    if (of == NULL) return;
    struct work const work = graph_cast_weights(&of->derived->graph);
    bool const experts = ranks->kinds.kind[part.kind].experts;
    (void)lower_compute(lower, experts ? "cast experts" : "cast layer", &work, 1);
}

/* Of one pass of inference; in training there is one. */
static void shape_streams(struct lower *lower, bool ret_used[LOWER_STREAM_COUNT])
{
    struct step_part part[STEP_PARTS_MAX];
    uint32_t const count = step_parts(lower->ranks, part);
    for (uint32_t i = 0; i < 2 * count; i++) {
        struct graph_request const request = {.backward = i % 2 == 1, .sums_partial = i % 2 == 1};
        struct lower_graph *of = emit_graph(lower, &part[i / 2]);
        const struct lower_pass *pass = of == NULL ? NULL : emit_pass_of(lower, of, request);
        for (uint32_t at = 0; pass != NULL && at < pass->steps.count; at++) {
            const struct graph_step *step = &pass->steps.step[at];
            if (step->is_compute) continue;
            ret_used[emit_route(lower->ranks, &of->derived->graph, step).stream] = true;
        }
    }
}

/* The last pass has a head. Of a generation it is the step, and the one before has prompts. */
void emit_streams(struct lower *lower, bool ret_used[LOWER_STREAM_COUNT])
{
    struct lower_shape *const last = lower->shape;
    for (uint32_t before = lower->shape_count > 1 ? 2 : 1; before-- > 0;) {
        lower->shape = last - before;
        lower->ranks = lower->shape->ranks;
        shape_streams(lower, ret_used);
    }
}
