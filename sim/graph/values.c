/* What each step reads and writes: tensors between ops, and their gradients. */
#include "sim/graph/steps.h"

struct values {
    const struct graph_sharded *sharded;
    const struct graph_kept *kept;
};

/* Whether a pass of an op has neither compute nor collective: what goes in comes out. */
static bool is_silent(const struct graph_sharded *sharded, const struct graph_op *op,
                      enum op_pass pass)
{
    struct work work;
    struct op_move move[OP_MOVES_MAX];
    if (op->fused || !op->kind->passes_on) return false;
    op->kind->work(sharded, op, pass, &work);
    return !op_has_work(&work) &&
           (op->kind->moves == NULL || op->kind->moves(sharded, op, pass, move) == 0);
}

/* The tensor whose value, or whose gradient, is there in the place of another's. */
static tensor value_at(const struct graph_sharded *sharded, tensor of)
{
    const struct graph_op *maker = graph_maker(sharded->graph, of);
    while (maker != NULL && is_silent(sharded, maker, OP_FORWARD)) {
        of = maker->in[0];
        maker = graph_maker(sharded->graph, of);
    }
    return of;
}

/* The op that alone reads a tensor, or NULL. */
static const struct graph_op *only_reader(const struct graph *graph, tensor of)
{
    const struct graph_op *found = NULL;
    for (uint8_t i = 0; i < graph->op_count; i++)
        for (uint8_t in = 0; !graph->op[i].fused && in < graph->op[i].in_count; in++) {
            if (graph->op[i].in[in] != of) continue;
            if (found != NULL) return NULL;
            found = &graph->op[i];
        }
    return found;
}

static tensor gradient_at(const struct graph_sharded *sharded, tensor of)
{
    const struct graph_op *reader = only_reader(sharded->graph, of);
    while (reader != NULL && is_silent(sharded, reader, OP_INPUT_GRADIENT)) {
        of = reader->out[0];
        reader = only_reader(sharded->graph, of);
    }
    return of;
}

static void read_add(const struct graph_sharded *sharded, struct graph_step *step, tensor of,
                     bool gradient)
{
    SIM_ASSERT(step->read_count < GRAPH_VALUES_MAX);
    step->read[step->read_count++] =
        (struct graph_value){gradient ? gradient_at(sharded, of) : value_at(sharded, of), gradient};
}

static void written_add(struct graph_step *step, tensor of, bool gradient)
{
    SIM_ASSERT(step->written_count < GRAPH_VALUES_MAX);
    step->written[step->written_count++] = (struct graph_value){of, gradient};
}

/* A fused input: it is computed on the way, and written where someone reads it later. What was kept
 * is read. */
static void fused_values(const struct values *values, tensor of, struct graph_step *step)
{
    const struct graph *graph = values->sharded->graph;
    const struct graph_op *fused = graph_fused(graph, of);
    bool const stored = graph->tensor[of].kept != GRAPH_REMAT_NEVER;
    if (step->pass != OP_FORWARD && values->kept->kept[of] != GRAPH_NOTHING) {
        read_add(values->sharded, step, of, false);
        return;
    }
    for (uint8_t i = 0; i < fused->in_count; i++)
        read_add(values->sharded, step, fused->in[i], false);
    if (stored) written_add(step, of, false);
}

static void forward_values(const struct values *values, const struct graph_op *op,
                           struct graph_step *step)
{
    for (uint8_t i = 0; i < op->in_count; i++) {
        if (graph_fused(values->sharded->graph, op->in[i]) != NULL)
            fused_values(values, op->in[i], step);
        else
            read_add(values->sharded, step, op->in[i], false);
    }
    for (uint8_t i = 0; i < op->weight_count; i++)
        read_add(values->sharded, step, op->weight[i], false);
    for (uint8_t i = 0; i < op->out_count; i++) written_add(step, op->out[i], false);
}

/* Gradients of inputs, of a fused one of its own; where that is a sum of the stream, the stream's
 * gradient comes in. */
static void input_gradients(const struct values *values, const struct graph_op *op,
                            struct graph_step *step)
{
    const struct graph *graph = values->sharded->graph;
    for (uint8_t i = 0; i < op->in_count; i++) {
        const struct graph_op *fused = graph_fused(graph, op->in[i]);
        if (fused == NULL) {
            written_add(step, op->in[i], true);
            continue;
        }
        if (fused->kind->passes_on) read_add(values->sharded, step, op->in[i], true);
        for (uint8_t k = 0; k < fused->in_count; k++) written_add(step, fused->in[k], true);
    }
}

static void gradient_values(const struct values *values, const struct graph_op *op,
                            struct graph_step *step)
{
    const struct graph *graph = values->sharded->graph;
    tensor read[OP_READS_MAX];
    uint8_t const count = op->kind->reads(graph, op, step->pass, read);
    bool const matmul = op->kind == &op_kind_matmul;
    for (uint8_t i = 0; i < op->out_count; i++)
        if (graph->tensor[op->out[i]].role == GRAPH_ACTIVATION)
            read_add(values->sharded, step, op->out[i], true);
    for (uint8_t i = 0; i < count; i++) {
        const struct graph_op *fused = graph_fused(graph, read[i]);
        bool const stored = graph->tensor[read[i]].kept != GRAPH_REMAT_NEVER;
        if (fused == NULL || stored) read_add(values->sharded, step, read[i], false);
        for (uint8_t k = 0; fused != NULL && !stored && k < fused->in_count; k++)
            read_add(values->sharded, step, fused->in[k], false);
    }
    for (uint8_t i = 0; op_gives_input(step->pass) && i < op->weight_count; i++)
        read_add(values->sharded, step, op->weight[i], false);
    if (op_gives_input(step->pass)) input_gradients(values, op, step);
    for (uint8_t i = 0; (op_gives_weight(step->pass) || !matmul) && i < op->weight_count; i++)
        written_add(step, op->weight[i], true);
}

static void own_values(const struct values *values, const struct graph_op *op,
                       struct graph_step *step)
{
    bool const gradient = !op_is_forward(step->pass), carries = step->move.carries;
    for (uint8_t i = 1; !carries && i < op->in_count; i++) {
        read_add(values->sharded, step, op->in[i], gradient);
        written_add(step, op->in[i], gradient);
    }
    for (uint8_t i = 0; carries && i < op->in_count; i++) {
        if (gradient)
            written_add(step, op->in[i], true);
        else
            read_add(values->sharded, step, op->in[i], false);
    }
    if (carries && gradient) read_add(values->sharded, step, op->out[0], true);
    if (carries && !gradient) written_add(step, op->out[0], false);
}

/* What each reader gives of a tensor's gradient, and their sum. */
static void sum_values(const struct values *values, tensor of, struct graph_step *step)
{
    const struct graph *graph = values->sharded->graph;
    for (uint8_t i = 0; i < graph->op_count; i++)
        for (uint8_t in = 0; !graph->op[i].fused && in < graph->op[i].in_count; in++)
            if (graph->op[i].in[in] == of)
                read_add(values->sharded, step,
                         graph->op[i].kind->passes_on ? graph->op[i].out[0] : of, true);
    written_add(step, of, true);
}

/* A collective of one tensor, or of an op's gradients of weights. */
static void moved_values(const struct values *values, const struct graph_op *op,
                         struct graph_step *step)
{
    bool const gradient = !op_is_forward(step->pass);
    if (step->move.axis != OP_AXIS_HOLDERS) {
        read_add(values->sharded, step, step->of, gradient);
        written_add(step, step->of, gradient);
        return;
    }
    for (uint8_t w = 0; w < op->weight_count; w++) {
        read_add(values->sharded, step, op->weight[w], true);
        written_add(step, op->weight[w], true);
    }
}

void graph_step_values(const struct graph_sharded *sharded, const struct graph_kept *kept,
                       struct graph_step *step)
{
    struct values const values = {sharded, kept};
    const struct graph_op *op = &sharded->graph->op[step->op];
    if (step->is_compute && step->of != GRAPH_NONE)
        sum_values(&values, step->of, step);
    else if (step->is_compute)
        (op_is_forward(step->pass) ? forward_values : gradient_values)(&values, op, step);
    else if (step->of == GRAPH_NONE)
        own_values(&values, op, step);
    else
        moved_values(&values, op, step);
}
