/* What ops of a pass take and give back of a chip's memory. */
#include "sim/step/emit.h"
#include "sim/step/emit_parts.h"
#include "sim/step/overheads.h"

/* --- Values --- */

/* Whether a value is there when the pass begins. The input of a group's first layer is there when
 * the layer is repeated. That of the last one, which is repeated by its own backward pass, was not
 * kept, as the layer before was repeated for it. */
static bool is_there(const struct emit *emit, const struct graph_life *life)
{
    const struct lower_part *part = &emit->lower->part;
    const struct graph_request *request = &emit->steps->request;
    bool const repeats = graph_remat_repeats(emit->graph->terms->policy.remat);
    if (life->value.gradient || emit->end != NULL || !emit_is_input(emit->graph, life->value.of))
        return life->before;
    if (request->again && part->group == RANKS_GROUP_FIRST) return true;
    if (request->backward && request->half != GRAPH_WEIGHT_HALF &&
        part->group == RANKS_GROUP_LATER && repeats)
        return false;
    return life->before;
}

/* What a later pass finds, or an earlier one has left, is saved. */
static void lives_add(struct emit *emit)
{
    const struct graph_live *live = emit->live;
    struct lower *lower = emit->lower;
    for (uint32_t i = 0; i < live->count; i++) {
        const struct graph_life *life = &live->life[i];
        /* The head's backward pass follows at once: it keeps buffers. */
        bool const kept = (life->before || life->after) && !emit->graph->begins_backward;
        enum program_memory const memory =
            kept ? PROGRAM_MEMORY_ACTIVATIONS : PROGRAM_MEMORY_BUFFERS;
        if (emit->end != NULL && emit->end->shares_input && life->value.of == emit->graph->stream)
            continue;
        if (!is_there(emit, life)) lower_take(lower, emit->op[life->first], memory, life->bytes);
        if (!life->after) lower_give(lower, emit->op[life->last], memory, life->bytes);
    }
}

/* --- What frameworks keep --- */

enum framework_pass { FRAMEWORK_FORWARD, FRAMEWORK_GRADIENT, FRAMEWORK_WEIGHT };

static bool is_in(enum op_pass pass, enum framework_pass wanted)
{
    if (wanted == FRAMEWORK_FORWARD) return op_is_forward(pass);
    return wanted == FRAMEWORK_WEIGHT ? op_gives_weight(pass) : !op_is_forward(pass);
}

/* The first step of an op in a pass; LOWER_NONE: there is none. */
static uint32_t op_in(const struct emit *emit, uint8_t op, enum framework_pass pass)
{
    for (uint32_t i = 0; i < emit->steps->count; i++) {
        const struct graph_step *step = &emit->steps->step[i];
        if (step->is_compute && step->of == GRAPH_NONE && step->op == op && is_in(step->pass, pass))
            return emit->op[i];
    }
    return LOWER_NONE;
}

/* Arrays that only frameworks keep: from the op that writes it to the one that reads it, and to
 * that one's gradient where it is kept; else a function's output is made again for that. */
static void framework_add(struct emit *emit, tensor of, uint8_t writer, uint8_t reader)
{
    const struct graph *graph = emit->graph;
    const struct graph_tensor *at = &graph->tensor[of];
    bool const backward = emit->steps->request.backward;
    bool const again = emit->steps->request.again;
    bool const dropped = !backward && !again && emit->lower->part.group != RANKS_GROUP_NONE;
    bool const kept = at->framework_saved && !dropped;
    bool const repeats = graph_remat_repeats(graph->terms->policy.remat),
               is_mask = at->framework.what == GRAPH_FRAMEWORK_MASK;
    uint64_t const bytes = format_bytes(at->framework.format, graph_elements(graph, &at->at, 0));
    enum program_memory const memory = is_mask ? PROGRAM_MEMORY_MASKS : PROGRAM_MEMORY_ACTIVATED;
    enum framework_pass const gradient = is_mask ? FRAMEWORK_GRADIENT : FRAMEWORK_WEIGHT;
    uint32_t const made = op_in(emit, writer, FRAMEWORK_FORWARD);
    uint32_t const read = op_in(emit, reader, backward ? gradient : FRAMEWORK_FORWARD);
    bool const here = !backward || (repeats && emit->of->derived->kept.again[writer]);
    if (is_mask && (!kept || emit->steps->request.half == GRAPH_WEIGHT_HALF))
        return; /* Drawn again, or read. */
    if (!kept || !backward) lower_take(emit->lower, here ? made : read, memory, bytes);
    if (!kept || backward) lower_give(emit->lower, read, memory, bytes);
}

/* A mask is read by the gradients of the op that gives what is dropped. */
static void framework_arrays_add(struct emit *emit)
{
    const struct graph *graph = emit->graph;
    for (uint8_t i = 0; i < graph->op_count; i++) {
        const struct graph_op *op = &graph->op[i];
        if (graph->tensor[op->out[0]].framework.what == GRAPH_FRAMEWORK_MASK)
            framework_add(emit, op->out[0], i, i);
        for (uint8_t in = 0; !op->fused && in < op->in_count; in++) {
            const struct graph_op *maker = graph_maker(graph, op->in[in]);
            if (graph->tensor[op->in[in]].framework.what != GRAPH_FRAMEWORK_OUTPUT) continue;
            if (maker->fused) maker = graph_maker(graph, maker->in[0]);
            framework_add(emit, op->in[in], graph_index(graph, maker), i);
        }
    }
}

/* Logits on this chip. */
static uint64_t logits_of(const struct graph *graph)
{
    uint8_t i = 0;
    while (!graph->op[i].kind->gives_gradient) i++;
    return graph_elements(graph, &graph->tensor[graph->op[i].in[0]].at, 0);
}

/* What they write for the loss, until the first gradient behind it is there. */
static void loss_add(struct emit *emit)
{
    struct lower *lower = emit->lower;
    uint64_t const bytes = overheads_loss_bytes(lower->ranks, logits_of(emit->graph));
    for (uint32_t i = 0; i < emit->steps->count; i++) {
        const struct graph_step *step = &emit->steps->step[i];
        if (!step->is_compute) continue;
        if (emit->steps->request.backward) {
            if (lower_has_input(lower)) lower_give(lower, emit->op[i], PROGRAM_MEMORY_LOSS, bytes);
            return;
        }
        if (emit->graph->op[step->op].kind->gives_gradient)
            lower_take(lower, emit->op[i], PROGRAM_MEMORY_LOSS, bytes);
    }
}

void emit_memory(struct emit *emit)
{
    lives_add(emit);
    framework_arrays_add(emit);
    if (emit->graph->begins_backward) loss_add(emit);
}
