#include "sim/graph/print.h"

#include <inttypes.h>

#include "sim/graph/block.h"

enum { NAME_COLUMN = 24, BYTES_COLUMN = 48 };

static const char *prefix_of(const struct graph *graph, const struct graph_op *op)
{
    return graph->block[op->block].block->prefix;
}

static void array_add(const struct graph *graph, tensor of, struct text *text)
{
    char buffer[SHARDING_TEXT_BYTES];
    text_add(text, "%s", sharding_text(&graph->terms->mesh, &graph->tensor[of].at, buffer));
}

static void axes_add(const struct graph *graph, const char *what, uint32_t axes, struct text *text)
{
    char buffer[SHARDING_AXES_MAX + 1];
    if (axes == 0) return;
    text_add(text, "  %s_%s", what, sharding_axes_text(&graph->terms->mesh, axes, buffer));
}

/* "Q[B_X, N_Y, H], K[B_X, K_Y, H] = matmul(In[B_X, D_Y], W_Q[D_X, N_Y, H], W_K[D_X, K_Y, H])" */
static void op_add(const struct graph_sharded *sharded, const struct graph_op *op,
                   struct text *text)
{
    const struct graph *graph = sharded->graph;
    const struct graph_shard *shard = graph_shard_of(sharded, op);
    text_add(text, "%s%s%s", prefix_of(graph, op), op->name, op->fused ? " (fused)" : "");
    text_pad(text, NAME_COLUMN);
    for (uint8_t i = 0; i < op->out_count; i++) {
        if (i > 0) text_add(text, ", ");
        array_add(graph, op->out[i], text);
    }
    text_add(text, " = %s(", op->kind->name);
    for (uint8_t i = 0; i < op->in_count + op->weight_count; i++) {
        if (i > 0) text_add(text, ", ");
        array_add(graph, i < op->in_count ? op->in[i] : op->weight[i - op->in_count], text);
    }
    text_add(text, ")");
    axes_add(graph, "AllGather", shard->gather, text);
    axes_add(graph, "ReduceScatter", shard->scatter, text);
    axes_add(graph, "AllReduce", shard->all_reduce, text);
    text_add(text, "\n");
}

void graph_print(const struct graph_sharded *sharded, struct text *text)
{
    for (uint8_t i = 0; i < sharded->graph->op_count; i++)
        op_add(sharded, &sharded->graph->op[i], text);
}

static const char *pass_text(enum op_pass pass)
{
    static const char *const texts[] = {"",           " again",      " again, alone",
                                        ": d inputs", ": d weights", ": d inputs, d weights",
                                        ": d left",   ": d right"};
    return texts[pass];
}

void graph_print_backward(const struct graph_sharded *sharded,
                          const struct graph_backward *backward, struct text *text)
{
    const struct graph *graph = sharded->graph;
    for (uint32_t i = 0; i < backward->count; i++) {
        const struct graph_op *op = &graph->op[backward->gradient[i].op];
        text_add(text, "%s%s%s\n", prefix_of(graph, op), op->name,
                 pass_text(backward->gradient[i].pass));
    }
    for (uint8_t t = 0; t < graph->tensor_count; t++) {
        if (backward->due[t] == 0 && backward->parts[t] <= 1) continue;
        text_add(text, "d%s", graph->tensor[t].at.name);
        text_pad(text, NAME_COLUMN);
        axes_add(graph, "due", backward->due[t], text);
        if (backward->parts[t] > 1) text_add(text, "  in %u parts", backward->parts[t]);
        text_add(text, "\n");
    }
}

void graph_print_kept(const struct graph_sharded *sharded, const struct graph_kept *kept,
                      struct text *text)
{
    const struct graph *graph = sharded->graph;
    for (uint8_t t = 0; t < graph->tensor_count; t++) {
        if (kept->kept[t] == GRAPH_NOTHING) continue;
        text_add(text, "kept");
        text_pad(text, NAME_COLUMN);
        array_add(graph, t, text);
        text_add(text, "%s\n", kept->kept[t] == GRAPH_GATHERED ? " as gathered" : "");
    }
    for (uint8_t i = 0; i < graph->op_count; i++) {
        if (!kept->again[i]) continue;
        text_add(text, "again");
        text_pad(text, NAME_COLUMN);
        text_add(text, "%s%s\n", prefix_of(graph, &graph->op[i]), graph->op[i].name);
    }
}

static void values_add(const struct graph *graph, const char *verb,
                       const struct graph_value *values, uint8_t count, struct text *text)
{
    text_add(text, "  %s", verb);
    for (uint8_t i = 0; i < count; i++)
        text_add(text, " %s%s", values[i].gradient ? "d" : "", graph->tensor[values[i].of].at.name);
}

static const char *const axis_texts[] = {"tp", "ep", "sequence", "kv"};

void graph_print_steps(const struct graph_sharded *sharded, const struct graph_steps *steps,
                       struct text *text)
{
    const struct graph *graph = sharded->graph;
    for (uint32_t i = 0; i < steps->count; i++) {
        const struct graph_step *step = &steps->step[i];
        const struct graph_op *op = &graph->op[step->op];
        if (step->is_compute) {
            if (step->of == GRAPH_NONE)
                text_add(text, "%s%s%s", prefix_of(graph, op), op->name, pass_text(step->pass));
            else
                text_add(text, "%ssum of d%s", prefix_of(graph, op),
                         graph->tensor[step->of].at.name);
            text_pad(text, BYTES_COLUMN);
            text_add(text, "%" PRIu64 " FLOP %" PRIu64 " bytes", work_matmul_flop(&step->work),
                     step->work.hbm_read_bytes + step->work.hbm_write_bytes);
        } else {
            text_add(text, "  %s %s", collective_kind_name(step->move.kind),
                     axis_texts[step->move.axis]);
            text_pad(text, BYTES_COLUMN);
            text_add(text, "%" PRIu64 " bytes", step->move.bytes);
        }
        values_add(graph, "reads", step->read, step->read_count, text);
        values_add(graph, "writes", step->written, step->written_count, text);
        text_add(text, "\n");
    }
}

void graph_print_live(const struct graph_sharded *sharded, const struct graph_live *live,
                      struct text *text)
{
    for (uint32_t i = 0; i < live->count; i++) {
        const struct graph_life *life = &live->life[i];
        const struct graph_tensor *of = &sharded->graph->tensor[life->value.of];
        text_add(text, "%s%s%s", life->value.full ? "full " : "", life->value.gradient ? "d" : "",
                 of->at.name);
        text_pad(text, NAME_COLUMN);
        text_add(text, "%" PRIu64 " bytes, steps %u to %u%s%s\n", life->bytes, life->first,
                 life->last, life->before ? ", there before" : "", life->after ? ", stays" : "");
    }
}

void graph_print_count(const struct graph_count *count, struct text *text)
{
    static const char *const passes[] = {"forward",  "again",     "again, alone",
                                         "d inputs", "d weights", "d inputs, d weights",
                                         "d left",   "d right"};
    for (uint32_t i = 0; i < count->compute_count; i++) {
        const struct graph_compute_sum *sum = &count->compute[i];
        text_add(text, "%s, %s, %s", passes[sum->pass], sum->kind->name, format_name(sum->format));
        text_pad(text, BYTES_COLUMN);
        text_add(text,
                 "%" PRIu64 " of %" PRIu64 " FLOP, %" PRIu64 " useful, %" PRIu64 " vector, %" PRIu64
                 " bytes\n",
                 sum->count, sum->flop, sum->useful_flop, sum->vector_flop, sum->hbm_bytes);
    }
    for (uint32_t i = 0; i < count->move_count; i++) {
        const struct graph_move_sum *sum = &count->move[i];
        text_add(text, "%s, %s, %s %s", passes[sum->pass], sum->kind->name,
                 collective_kind_name(sum->collective), axis_texts[sum->axis]);
        text_pad(text, BYTES_COLUMN);
        text_add(text, "%" PRIu64 " of %" PRIu64 " bytes\n", sum->count, sum->bytes);
    }
    text_add(text, "kept");
    text_pad(text, BYTES_COLUMN);
    text_add(text, "%" PRIu64 " bytes\n", count->kept_bytes);
}
