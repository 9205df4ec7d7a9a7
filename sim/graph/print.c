#include "sim/graph/print.h"

#include "sim/base/name.h"
#include "sim/base/quantity.h"
#include "sim/graph/block.h"

/* Of 80: "16.8 MB" takes 9, "8.80 TFLOP v" 12. */
enum { NAME_COLUMN = 24, SHAPE_COLUMN = 32, FLOP_COLUMN = 42, BYTES_COLUMN = 55, LAST_COLUMN = 65 };

static bool has(const tensor *list, uint8_t count, tensor of)
{
    for (uint8_t i = 0; i < count; i++)
        if (list[i] == of) return true;
    return false;
}

/* The op that makes a tensor; of weights and caches the first that reads them; NULL of what comes
 * from before the part. */
static const struct graph_op *home(const struct graph *graph, tensor of)
{
    const struct graph_tensor *at = &graph->tensor[of];
    if (at->made_by != GRAPH_NONE) return &graph->op[at->made_by];
    if (at->role != GRAPH_WEIGHT && at->role != GRAPH_CACHE) return NULL;
    for (uint8_t i = 0; i < graph->op_count; i++) {
        const struct graph_op *op = &graph->op[i];
        if (has(op->weight, op->weight_count, of) || has(op->in, op->in_count, of)) return op;
    }
    return NULL;
}

/* "attention." before a name that several blocks give to an array of theirs. */
static void prefix_add(const struct graph *graph, tensor of, struct strbuf *text)
{
    const char *name = graph->tensor[of].at.name;
    uint8_t same = 0;
    for (uint8_t t = 0; t < graph->tensor_count; t++)
        same += name_same(graph->tensor[t].at.name, name);
    if (same > 1) strbuf_add(text, "%s", graph_prefix(graph, home(graph, of)).text);
}

/* "dX", with a star where it is whole. */
static void value_add(const struct graph *graph, struct graph_value value, struct strbuf *text)
{
    prefix_add(graph, value.of, text);
    strbuf_add(text, "%s%s%s", value.gradient ? "d" : "", graph->tensor[value.of].at.name,
               value.full ? "*" : "");
}

static void array_add(const struct graph *graph, tensor of, struct strbuf *text)
{
    char buffer[SHARDING_TEXT_BYTES];
    prefix_add(graph, of, text);
    strbuf_add(text, "%s", sharding_text(&graph->terms->mesh, &graph->tensor[of].at, buffer));
}

static void axes_add(const struct graph *graph, const char *what, uint32_t axes,
                     struct strbuf *text)
{
    char buffer[SHARDING_AXES_MAX + 1];
    if (axes == 0) return;
    strbuf_add(text, "  %s_%s", what, sharding_axes_text(&graph->terms->mesh, axes, buffer));
}

/* "Q[B_X, N_Y, H], K[B_X, K_Y, H] = matmul(In[B_X, D_Y], W_Q[D_X, N_Y, H], W_K[D_X, K_Y, H])" */
static void op_add(const struct graph_sharded *sharded, const struct graph_op *op,
                   struct strbuf *text)
{
    const struct graph *graph = sharded->graph;
    const struct graph_shard *shard = graph_shard_of(sharded, op);
    strbuf_add(text, "%s%s", graph_op_label(graph, op).text, op->fused ? " (fused)" : "");
    strbuf_pad(text, NAME_COLUMN);
    for (uint8_t i = 0; i < op->out_count; i++) {
        if (i > 0) strbuf_add(text, ", ");
        array_add(graph, op->out[i], text);
    }
    strbuf_add(text, " = %s(", op->kind->name);
    for (uint8_t i = 0; i < op->in_count + op->weight_count; i++) {
        if (i > 0) strbuf_add(text, ", ");
        array_add(graph, i < op->in_count ? op->in[i] : op->weight[i - op->in_count], text);
    }
    strbuf_add(text, ")");
    axes_add(graph, "AllGather", shard->gather, text);
    axes_add(graph, "ReduceScatter", shard->scatter, text);
    axes_add(graph, "AllReduce", shard->all_reduce, text);
    strbuf_add(text, "\n");
}

void graph_print(const struct graph_sharded *sharded, struct strbuf *text)
{
    for (uint8_t i = 0; i < sharded->graph->op_count; i++)
        op_add(sharded, &sharded->graph->op[i], text);
}

/* "attention.QKV again", "attention.QKV: d inputs" */
static void op_pass_add(const struct graph *graph, const struct graph_op *op, enum op_pass pass,
                        struct strbuf *text)
{
    strbuf_add(text, "%s", graph_op_label(graph, op).text);
    if (pass != OP_FORWARD)
        strbuf_add(text, "%s%s", op_is_forward(pass) ? " " : ": ", op_pass_name(pass));
}

static void bytes_add(struct strbuf *text, uint64_t bytes)
{
    char buffer[QUANTITY_TEXT_BYTES];
    strbuf_pad(text, BYTES_COLUMN);
    strbuf_add(text, "%s", quantity_text_bytes(buffer, (double)bytes));
}

/* FLOP of matmuls; without any, of the vector unit. */
static void flop_add(struct strbuf *text, uint64_t flop, uint64_t vector_flop)
{
    char buffer[QUANTITY_TEXT_BYTES];
    strbuf_pad(text, FLOP_COLUMN);
    if (flop != 0)
        strbuf_add(text, "%s", quantity_text_rate(buffer, (double)flop, "FLOP"));
    else if (vector_flop != 0)
        strbuf_add(text, "%s v", quantity_text_rate(buffer, (double)vector_flop, "FLOP"));
    else
        strbuf_add(text, "-");
}

const char *const graph_remat_names[] = {"none", "norms", "big_matmuls", "block", "layer", NULL};

const char *graph_remat_name(enum graph_remat remat)
{
    return remat == GRAPH_REMAT_NEVER ? "never" : graph_remat_names[remat];
}

const char *graph_policy_name(const struct graph_policy *policy)
{
    static const char *const with_lists[] = {"none with lists", "norms with lists",
                                             "big_matmuls with lists", "block with lists",
                                             "layer with lists"};
    return policy->named == NULL ? graph_remat_name(policy->remat) : with_lists[policy->remat];
}

/* A tensor as it lies on a chip, gathered over some axes: its shape and its bytes. */
static void lies_add(const struct graph *graph, tensor of, uint32_t gathered, struct strbuf *text)
{
    const struct graph_tensor *at = &graph->tensor[of];
    struct sharding const whole = sharding_gathered(&at->at, gathered);
    char buffer[SHARDING_TEXT_BYTES];
    strbuf_pad(text, SHAPE_COLUMN);
    strbuf_add(text, "%s", sharding_shape_text(&graph->terms->mesh, &whole, buffer));
    bytes_add(text, graph_tensor_bytes(at, graph_elements(graph, &at->at, gathered)));
}

static bool has_biases(const struct graph *graph, tensor of)
{
    bool biased = graph->tensor[of].biased;
    for (uint8_t v = 0; v < graph->vector_count; v++)
        biased = biased || graph->vector[v].matrix == of;
    return biased;
}

static void tensor_add(const struct graph_sharded *sharded, tensor of, struct strbuf *text)
{
    const struct graph *graph = sharded->graph;
    const struct graph_tensor *at = &graph->tensor[of];
    array_add(graph, of, text);
    lies_add(graph, of, 0, text);
    strbuf_pad(text, LAST_COLUMN);
    strbuf_add(text, "%s", format_name(at->format));
    if (at->role != GRAPH_WEIGHT) strbuf_add(text, " %s", graph_remat_name(at->kept));
    if (has_biases(graph, of)) strbuf_add(text, " biased");
    strbuf_add(text, "\n");
    uint32_t const axes = at->role == GRAPH_WEIGHT ? sharding_axes(&at->at) & graph->terms->axis_x
                                                   : sharded->gathered[of];
    if (axes == 0) return;
    char letters[SHARDING_AXES_MAX + 1];
    strbuf_add(text, "  gathered over %s", sharding_axes_text(&graph->terms->mesh, axes, letters));
    lies_add(graph, of, axes, text);
    strbuf_pad(text, LAST_COLUMN);
    if (at->role == GRAPH_ACTIVATION)
        strbuf_add(text, "%s %s", format_name(at->format), graph_remat_name(at->kept_gathered));
    else
        strbuf_add(text, "%s", format_name(at->format));
    strbuf_add(text, "\n");
}

void graph_print_tensors(const struct graph_sharded *sharded, struct strbuf *text)
{
    const struct graph *graph = sharded->graph;
    for (uint8_t t = 0; t < graph->tensor_count; t++) tensor_add(sharded, t, text);
    for (uint8_t v = 0; v < graph->vector_count; v++) {
        char buffer[SHARDING_TEXT_BYTES];
        if (graph->vector[v].matrix != GRAPH_NONE) continue;
        strbuf_add(text, "%s", sharding_text(&graph->terms->mesh, &graph->vector[v].at, buffer));
        strbuf_pad(text, SHAPE_COLUMN);
        strbuf_add(text, "in no matrix\n");
    }
}

void graph_print_backward(const struct graph_sharded *sharded,
                          const struct graph_backward *backward, struct strbuf *text)
{
    const struct graph *graph = sharded->graph;
    for (uint32_t i = 0; i < backward->count; i++) {
        const struct graph_op *op = &graph->op[backward->gradient[i].op];
        op_pass_add(graph, op, backward->gradient[i].pass, text);
        strbuf_add(text, "\n");
    }
    for (uint8_t t = 0; t < graph->tensor_count; t++) {
        if (backward->due[t] == 0 && backward->parts[t] <= 1) continue;
        value_add(graph, (struct graph_value){.of = t, .gradient = true}, text);
        strbuf_pad(text, NAME_COLUMN);
        axes_add(graph, "due", backward->due[t], text);
        if (backward->parts[t] > 1) strbuf_add(text, "  in %u parts", backward->parts[t]);
        strbuf_add(text, "\n");
    }
}

void graph_print_kept(const struct graph_sharded *sharded, const struct graph_kept *kept,
                      struct strbuf *text)
{
    const struct graph *graph = sharded->graph;
    for (uint8_t t = 0; t < graph->tensor_count; t++) {
        bool const whole = kept->kept[t] == GRAPH_GATHERED;
        if (kept->kept[t] == GRAPH_NOTHING) continue;
        strbuf_add(text, "kept   ");
        array_add(graph, t, text);
        strbuf_add(text, "%s", whole ? ", gathered" : "");
        bytes_add(text, format_bytes(graph->tensor[t].format,
                                     whole ? graph_gathered_elements(sharded, t)
                                           : graph_elements(graph, &graph->tensor[t].at, 0)));
        strbuf_add(text, "\n");
    }
    for (uint8_t i = 0; i < graph->op_count; i++)
        if (kept->again[i])
            strbuf_add(text, "again  %s\n", graph_op_label(graph, &graph->op[i]).text);
    strbuf_add(text, "kept in all");
    bytes_add(text, graph_kept_bytes(sharded, kept));
    strbuf_add(text, "\n");
}

static void values_add(const struct graph *graph, const struct graph_value *values, uint8_t count,
                       struct strbuf *text)
{
    for (uint8_t i = 0; i < count; i++) {
        strbuf_add(text, " ");
        value_add(graph, values[i], text);
    }
}

void graph_print_steps(const struct graph_sharded *sharded, const struct graph_steps *steps,
                       struct strbuf *text)
{
    const struct graph *graph = sharded->graph;
    for (uint32_t i = 0; i < steps->count; i++) {
        const struct graph_step *step = &steps->step[i];
        const struct graph_op *op = &graph->op[step->op];
        strbuf_add(text, "%3u  ", i + 1);
        if (!step->is_compute) {
            strbuf_add(text, "  %s %s", collective_kind_name(step->move.kind),
                       op_axis_name(step->move.axis));
            bytes_add(text, step->move.bytes);
        } else {
            if (step->of == GRAPH_NONE)
                op_pass_add(graph, op, step->pass, text);
            else
                strbuf_add(text, "%s%s", graph_label(graph, op, "sum of d", false).text,
                           graph->tensor[step->of].at.name);
            flop_add(text, work_matmul_flop(&step->work), step->work.vector_flop);
            bytes_add(text, step->work.hbm_read_bytes + step->work.hbm_write_bytes);
        }
        strbuf_add(text, "\n      ");
        values_add(graph, step->read, step->read_count, text);
        strbuf_add(text, " ->");
        values_add(graph, step->written, step->written_count, text);
        strbuf_add(text, "\n");
    }
}

void graph_print_live(const struct graph_sharded *sharded, const struct graph_live *live,
                      uint32_t steps, struct strbuf *text)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < live->count; i++) {
        const struct graph_life *life = &live->life[i];
        value_add(sharded->graph, life->value, text);
        strbuf_pad(text, NAME_COLUMN);
        strbuf_add(text, "steps %u to %u%s%s", life->first + 1, life->last + 1,
                   life->before ? ", from before" : "", life->after ? ", stays" : "");
        bytes_add(text, life->bytes);
        strbuf_add(text, "\n");
    }
    for (uint32_t i = 1; i < steps; i++)
        if (graph_live_bytes(live, i) > graph_live_bytes(live, most)) most = i;
    strbuf_add(text, "the most, in step %u", most + 1);
    bytes_add(text, graph_live_bytes(live, most));
    strbuf_add(text, "\n");
}

void graph_print_count(const struct graph_count *count, struct strbuf *text)
{
    for (uint32_t i = 0; i < count->compute_count; i++) {
        const struct graph_compute_sum *sum = &count->compute[i];
        char useful[QUANTITY_TEXT_BYTES];
        strbuf_add(text, "%s, %llu %s %s", op_pass_name(sum->pass), (unsigned long long)sum->count,
                   format_name(sum->format), sum->kind->name);
        flop_add(text, sum->flop, sum->vector_flop);
        bytes_add(text, sum->hbm_bytes);
        if (sum->useful_flop != 0) {
            strbuf_pad(text, LAST_COLUMN);
            strbuf_add(text, "%s useful",
                       quantity_text_rate(useful, (double)sum->useful_flop, "FLOP"));
        }
        strbuf_add(text, "\n");
    }
    for (uint32_t i = 0; i < count->move_count; i++) {
        const struct graph_move_sum *sum = &count->move[i];
        strbuf_add(text, "%s, %llu %s %s of %s", op_pass_name(sum->pass),
                   (unsigned long long)sum->count, collective_kind_name(sum->collective),
                   op_axis_name(sum->axis), sum->kind->name);
        bytes_add(text, sum->bytes);
        strbuf_add(text, "\n");
    }
    strbuf_add(text, "kept");
    bytes_add(text, count->kept_bytes);
    strbuf_add(text, "\n");
}
