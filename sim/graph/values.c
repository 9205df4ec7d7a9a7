/* What each step reads and writes: tensors between ops, and their gradients; and the name of what a
 * step moves. */
#include <stdio.h>
#include <string.h>

#include "sim/graph/steps.h"

struct values {
    const struct graph_sharded *sharded;
    const struct graph_kept *kept;
    const struct graph_op *op;
    struct graph_step *step;
};

static const struct graph *graph_of(const struct values *values)
{
    return values->sharded->graph;
}

/* --- One value --- */

/* Whether a pass of an op has neither compute nor collective: what goes in comes out. */
static bool is_silent(const struct graph_sharded *sharded, const struct graph_op *op,
                      enum op_pass pass)
{
    struct op_move move[OP_MOVES_MAX];
    if (op->fused || !op->kind->passes_on) return false;
    struct work const work = op_work(sharded, op, pass);
    return !op_has_work(&work) && op_moves(sharded, op, pass, move) == 0;
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

/* Whether arrays have columns of one dimension: rows that an op hands on, and no others that come
 * with them. */
static bool columns_alike(const struct sharding *a, const struct sharding *b)
{
    return strcmp(a->dimension[a->dimension_count - 1].name,
                  b->dimension[b->dimension_count - 1].name) == 0;
}

/* Whether a result has other rows than an input: rows of several arrays, or some rows of one. */
static bool has_other_rows(const struct graph *graph, const struct graph_op *op)
{
    return op->kind->takes_rows ||
           (op->in_count > 1 &&
            columns_alike(&graph->tensor[op->in[0]].at, &graph->tensor[op->in[1]].at));
}

/* The tensor whose gradient lies where the gradient of `of` is read: silent ops pass gradients on.
 * A step that reads the gradient waits for its writer, whatever columns it has. A listing (`alike`)
 * stops where columns differ: gates that travel with rows have a gradient of their own name. */
static tensor gradient_at(const struct graph_sharded *sharded, tensor of, bool alike)
{
    const struct graph *graph = sharded->graph;
    const struct graph_op *reader = only_reader(graph, of);
    while (reader != NULL && is_silent(sharded, reader, OP_INPUT_GRADIENT)) {
        tensor const out = reader->out[0];
        if (alike && !columns_alike(&graph->tensor[of].at, &graph->tensor[out].at)) break;
        of = out;
        reader = only_reader(graph, of);
    }
    return of;
}

static tensor made_at(const struct graph_sharded *sharded, tensor of)
{
    const struct graph_op *maker = graph_maker(sharded->graph, of);
    while (maker != NULL && is_silent(sharded, maker, OP_FORWARD)) {
        const struct graph_tensor *tensors = sharded->graph->tensor;
        if (!columns_alike(&tensors[of].at, &tensors[maker->in[0]].at)) break;
        if (has_other_rows(sharded->graph, maker)) break;
        of = maker->in[0];
        maker = graph_maker(sharded->graph, of);
    }
    return of;
}

tensor graph_value_at(const struct graph_sharded *sharded, tensor of, bool gradient)
{
    return gradient ? gradient_at(sharded, of, /* alike= */ true) : made_at(sharded, of);
}

bool graph_is_silent(const struct graph_sharded *sharded, uint8_t op)
{
    return is_silent(sharded, &sharded->graph->op[op], OP_FORWARD);
}

bool graph_makes_silently(const struct graph_sharded *sharded, uint8_t op)
{
    const struct graph_op *of = &sharded->graph->op[op];
    return op < sharded->graph->op_count && is_silent(sharded, of, OP_FORWARD) &&
           made_at(sharded, of->out[0]) == of->out[0];
}

/* Where a value lies. In the backward pass a chip's own part of what was kept gathered lies in
 * that. */
static tensor lies_in(const struct values *values, struct graph_value value)
{
    bool const gathered =
        values->step->pass != OP_FORWARD && values->kept->kept[value.of] == GRAPH_GATHERED;
    bool const apart = value.gradient || value.full || gathered;
    return apart ? value.of : graph_lies_in(graph_of(values), value.of);
}

static void value_add(const struct values *values, struct graph_value value)
{
    struct graph_step *step = values->step;
    SIM_ASSERT(step->read_count < GRAPH_VALUES_MAX);
    value.of = lies_in(values, value);
    step->read[step->read_count++] = value;
}

/* A step that reads the result of a silent op reads the op's inputs. The result of a collective has
 * the name of its tensor. */
static void read_add(const struct values *values, tensor of, bool gradient, bool full)
{
    const struct graph_op *maker = graph_maker(graph_of(values), of);
    if (gradient && !full) of = gradient_at(values->sharded, of, /* alike= */ false);
    const struct graph_op *reader = gradient ? only_reader(graph_of(values), of) : NULL;
    if (reader != NULL && reader->kind->gives_gradient) {
        value_add(values, (struct graph_value){reader->out[0], false, false});
        return;
    }
    if (gradient || full || maker == NULL || !is_silent(values->sharded, maker, OP_FORWARD)) {
        value_add(values, (struct graph_value){of, gradient, full});
        return;
    }
    for (uint8_t i = 0; i < maker->in_count; i++) read_add(values, maker->in[i], false, false);
}

static void written_add(const struct values *values, tensor of, bool gradient, bool full)
{
    struct graph_step *step = values->step;
    struct graph_value value = {of, gradient, full};
    value.of = lies_in(values, value);
    if (value.of != of && graph_step_writes(step, value)) return;
    SIM_ASSERT(step->written_count < GRAPH_VALUES_MAX);
    step->written[step->written_count++] = value;
}

/* Whether an op reads an input gathered. */
static bool is_full_in(const struct values *values, tensor of)
{
    const struct graph_op *op = values->op;
    uint32_t const gather = graph_shard_of(values->sharded, op)->gather;
    return (gather & sharding_axes(&graph_of(values)->tensor[of].at)) != 0 ||
           (op->kind->shares_sequence && values->sharded->whole[of] != 0);
}

/* Whether a result of an op is still to be reduced. */
static bool is_full_out(const struct values *values, tensor of)
{
    return (graph_scattered(values->sharded, values->op, of) |
            graph_all_reduced(values->sharded, values->op, of)) != 0;
}

/* --- Forward --- */

/* A fused input is computed on the way, and written where an op reads it later. One that was kept
 * is read. */
static void fused_values(const struct values *values, tensor of)
{
    const struct graph *graph = graph_of(values);
    const struct graph_op *fused = graph_fused(graph, of);
    bool const stored = graph->tensor[of].kept != GRAPH_REMAT_NEVER;
    if (values->step->pass != OP_FORWARD && values->kept->kept[of] != GRAPH_NOTHING) {
        read_add(values, of, false, false);
        return;
    }
    for (uint8_t i = 0; i < fused->in_count; i++) read_add(values, fused->in[i], false, false);
    if (stored) written_add(values, of, false, false);
}

static void forward_values(const struct values *values)
{
    const struct graph_op *op = values->op;
    for (uint8_t i = 0; i < op->in_count; i++) {
        bool const fused = graph_fused(graph_of(values), op->in[i]) != NULL;
        if (fused && graph_reads_first(graph_of(values), op, op->in[i]))
            fused_values(values, op->in[i]);
        else
            read_add(values, op->in[i], false, is_full_in(values, op->in[i]));
    }
    for (uint8_t i = 0; i < op->weight_count; i++) read_add(values, op->weight[i], false, false);
    for (uint8_t i = 0; i < op->out_count; i++)
        written_add(values, op->out[i], false, is_full_out(values, op->out[i]));
}

/* --- Backward --- */

/* A step writes the gradients of its inputs. Of a fused input it writes the gradients of the fused
 * op's inputs, and reads the stream's gradient where the fused op is a sum of the stream. */
static void input_gradients(const struct values *values)
{
    const struct graph_op *op = values->op;
    enum op_pass const other[2] = {OP_RIGHT_GRADIENT, OP_LEFT_GRADIENT};
    for (uint8_t i = 0; i < op->in_count; i++) {
        const struct graph_op *fused = graph_fused(graph_of(values), op->in[i]);
        if (op->kind->inputs_apart && values->step->pass == other[i]) continue;
        if (fused == NULL) {
            if (graph_of(values)->tensor[op->in[i]].shared)
                read_add(values, op->in[i], true, false);
            written_add(values, op->in[i], true,
                        is_full_in(values, op->in[i]) || values->sharded->summed[op->in[i]] != 0);
            continue;
        }
        if (fused->kind->passes_on && !graph_of(values)->begins_backward)
            read_add(values, op->in[i], true, false);
        for (uint8_t k = 0; k < fused->in_count; k++)
            written_add(values, fused->in[k], true, false);
    }
}

/* A gradient reads values of the forward pass. Of a value that it computes on the way it reads the
 * inputs. */
static void values_read(const struct values *values)
{
    const struct graph *graph = graph_of(values);
    tensor read[OP_READS_MAX];
    uint8_t const count = op_reads(graph, values->op, values->step->pass, read);
    for (uint8_t i = 0; i < count; i++) {
        const struct graph_op *fused = graph_fused(graph, read[i]);
        bool const stored = graph->tensor[read[i]].kept != GRAPH_REMAT_NEVER;
        if (fused == NULL || stored) read_add(values, read[i], false, is_full_in(values, read[i]));
        for (uint8_t k = 0; fused != NULL && !stored && k < fused->in_count; k++)
            read_add(values, fused->in[k], false, false);
    }
}

/* What is cast lies there as before, in fewer bytes: whoever reads it waits for the cast. */
static void aside_values(const struct values *values)
{
    const struct graph_op *op = values->op;
    enum op_pass const pass = values->step->pass;
    bool const none = pass == OP_CAST_WEIGHTS || pass == OP_INPUT_CASTS ||
                      pass == OP_AUTOCAST_WEIGHTS || pass == OP_SHARDS || pass == OP_PADS ||
                      pass == OP_GRADIENT_CASTS || pass == OP_SUMS || pass == OP_COPIES;
    for (uint8_t i = 0; !none && i < op->out_count; i++) {
        bool const full = values->step->pass == OP_CAST_SECOND &&
                          graph_scattered(values->sharded, op, op->out[i]) != 0;
        if (graph_of(values)->tensor[op->out[i]].role != GRAPH_ACTIVATION) continue;
        read_add(values, op->out[i], true, full);
        if (values->step->pass == OP_CAST) written_add(values, op->out[i], true, full);
    }
}

static void gradient_values(const struct values *values)
{
    const struct graph_op *op = values->op;
    enum op_pass const pass = values->step->pass;
    for (uint8_t i = 0; i < op->out_count; i++)
        if (graph_of(values)->tensor[op->out[i]].role == GRAPH_ACTIVATION)
            read_add(values, op->out[i], true,
                     graph_scattered(values->sharded, op, op->out[i]) != 0);
    values_read(values);
    for (uint8_t i = 0; op_gives_input(pass) && i < op->weight_count; i++)
        read_add(values, op->weight[i], false, false);
    if (op_gives_input(pass)) input_gradients(values);
    for (uint8_t i = 0; op_gives_weights(op, pass) && i < op->weight_count; i++)
        written_add(values, op->weight[i], true, false);
}

/* The gradient of a tensor with several readers is the sum of what each reader gives. */
static void sum_values(const struct values *values)
{
    const struct graph *graph = graph_of(values);
    tensor const of = values->step->of;
    for (uint8_t i = 0; i < graph->op_count; i++)
        for (uint8_t in = 0; !graph->op[i].fused && in < graph->op[i].in_count; in++)
            if (graph->op[i].in[in] == of)
                read_add(values, graph->op[i].kind->passes_on ? graph->op[i].out[0] : of, true,
                         false);
    written_add(values, of, true, false);
}

/* --- Collectives --- */

static void collective_values(const struct values *values)
{
    const struct op_move *move = &values->step->move;
    for (uint8_t i = 0; i < move->read_count; i++)
        read_add(values, move->read[i].of, move->read[i].gradient, move->read[i].full);
    for (uint8_t i = 0; i < move->written_count; i++)
        written_add(values, move->written[i].of, move->written[i].gradient, move->written[i].full);
}

void graph_step_values(const struct graph_sharded *sharded, const struct graph_kept *kept,
                       struct graph_step *step)
{
    struct values const values = {sharded, kept, &sharded->graph->op[step->op], step};
    if (!step->is_compute)
        collective_values(&values);
    else if (step->of != GRAPH_NONE)
        sum_values(&values);
    else if (op_is_aside(step->pass))
        aside_values(&values);
    else
        (op_is_forward(step->pass) ? forward_values : gradient_values)(&values);
}

bool graph_step_writes(const struct graph_step *step, struct graph_value value)
{
    for (uint8_t i = 0; i < step->written_count; i++)
        if (graph_value_same(step->written[i], value)) return true;
    return false;
}

const struct graph_value *graph_step_met(const struct graph_step *reader,
                                         const struct graph_step *writer)
{
    for (uint8_t i = 0; i < reader->read_count; i++)
        if (graph_step_writes(writer, reader->read[i])) return &reader->read[i];
    return NULL;
}

struct graph_label graph_step_label(const struct graph *graph, const struct graph_step *step)
{
    const struct op_move *move = &step->move;
    const struct graph_op *op = move->bare ? NULL : &graph->op[step->op];
    struct graph_value const first = move->written[0];
    const char *name = move->name != NULL ? move->name : graph_moved_as(graph, first.of);
    struct graph_label label = graph_label(graph, op, name, first.gradient);
    for (uint8_t i = 1; move->name == NULL && i < move->written_count; i++) {
        struct graph_value const value = move->written[i];
        size_t const used = strlen(label.text);
        (void)snprintf(label.text + used, sizeof label.text - used, " %s%s",
                       value.gradient ? "d" : "", graph_moved_as(graph, value.of));
    }
    return label;
}
