/* Ends of a model as ops of a template: their graphs, and how each use shares its weights. */
#include "sim/step/emit.h"
#include "sim/step/emit_parts.h"
#include "sim/step/overheads.h"

void emit_end(struct lower *lower, const struct emit_end *end, bool backward)
{
    struct step_part const part = {.part = end->part, .used_before = end->used_before};
    struct graph_request request = emit_request(lower, backward);
    /* No stage waits for gradients of the embedding: all come with those of its weights. */
    if (end->part == BLOCK_EMBEDDING && request.half == GRAPH_WEIGHT_HALF)
        request.half = GRAPH_WHOLE;
    emit_pass(lower, emit_graph(lower, &part), end, request);
}

/* --- Weights --- */

static const struct emit_use *use_of(const struct emit *emit, uint32_t at)
{
    return &emit->end->use[emit->graph->op[emit->steps->step[at].op].block];
}

/* Weights that the op does not read, but stay for later passes. */
static bool is_taken_at(const struct emit *emit, const struct graph_step *step)
{
    bool const alone = emit->graph->op[step->op].in_count == 0;
    return op_gives_weight(step->pass) && emit->lower->part.keeping == LOWER_TAKES &&
           (!lower_has_input(emit->lower) || alone);
}

/* Whether the step is the first of its block, or the one that reads the block's weights. */
static bool is_gathered_at(const struct emit *emit, uint32_t at)
{
    const struct graph_step *step = &emit->steps->step[at];
    const struct graph_op *op = &emit->graph->op[step->op];
    if (!emit->steps->request.backward || use_of(emit, at)->ahead)
        return at == 0 || emit->graph->op[step[-1].op].block != op->block;
    return step->is_compute && step->of == GRAPH_NONE && op->kind->weights_apart &&
           (op_gives_input(step->pass) || is_taken_at(emit, step));
}

void emit_end_gather(struct emit *emit, uint32_t at)
{
    const struct emit_use *use = use_of(emit, at);
    uint8_t const block = emit->graph->op[emit->steps->step[at].op].block;
    if (emit->gather[block] != LOWER_NONE || !use->gathers || !is_gathered_at(emit, at)) return;
    uint32_t const before = emit->lower->build.op_count;
    lower_buckets_gather(emit->lower, &use->read, 1, /* backward= */ false);
    if (emit->lower->build.op_count > before) emit->gather[block] = before;
}

static void end_gradient(struct emit *emit, uint32_t index, const struct emit_use *use)
{
    struct lower *lower = emit->lower;
    uint64_t const bytes = overheads_autograd_bytes(lower->ranks, use->autograd_elements);
    bool const last = lower->part.last;
    lower_take(lower, index, PROGRAM_MEMORY_AUTOGRAD, bytes);
    lower_give(lower, index, PROGRAM_MEMORY_AUTOGRAD, bytes);
    if (use->opens) lower_gradient_take(lower, index, use->bucket.elements, false);
    lower->part.last = use->last;
    if (use->closes) lower_bucket_reduce(lower, &use->bucket, index);
    lower->part.last = last;
}

void emit_end_weights(struct emit *emit, uint32_t at)
{
    const struct graph_step *step = &emit->steps->step[at];
    const struct graph_op *op = &emit->graph->op[step->op];
    const struct emit_use *use = use_of(emit, at);
    struct lower *lower = emit->lower;
    uint32_t const index = emit->op[at];
    bool const gives =
        use->gives && lower->ranks->shards > 1 && lower->part.keeping == LOWER_GATHERS;
    if (!step->is_compute || !op->kind->weights_apart || step->of != GRAPH_NONE) return;
    if (op_is_aside(step->pass)) {
        if (emit_ends_gradient(emit, at)) end_gradient(emit, index, use);
        return;
    }
    bool const reads = op_is_forward(step->pass) || op_gives_input(step->pass);
    if (reads || is_taken_at(emit, step))
        lower_need_done(lower, index, emit->gather[op->block],
                        reads ? lower_moved(lower, emit->gather[op->block]) : NULL);
    if (emit_ends_gradient(emit, at))
        end_gradient(emit, index, use);
    else if (!op_gives_weight(step->pass) && gives)
        lower_give(lower, index, PROGRAM_MEMORY_GATHERED, bucket_bytes(&use->read));
}
