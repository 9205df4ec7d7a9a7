#include "sim/graph/remat.h"

struct remat {
    const struct graph_sharded *sharded;
    enum graph_remat policy;
    struct graph_kept *kept;
    bool for_input[GRAPH_TENSORS_MAX]; /* Gradients of inputs read it. */
};

static bool is_kept(const struct remat *remat, tensor of)
{
    const struct graph_tensor *at = &remat->sharded->graph->tensor[of];
    bool const gathered = remat->kept->read[of] == GRAPH_GATHERED;
    return at->kept >= remat->policy || (gathered && at->kept_gathered >= remat->policy);
}

static void mark(struct remat *remat, tensor of, enum graph_part part, bool for_input)
{
    if (remat->kept->read[of] < part) remat->kept->read[of] = part;
    remat->for_input[of] = remat->for_input[of] || for_input;
}

/* A tensor that an op reads; of a fused one that is not kept, what that is computed from. */
static void read_mark(struct remat *remat, const struct graph_op *op, tensor of, bool for_input)
{
    const struct graph *graph = remat->sharded->graph;
    const struct graph_op *fused = graph_fused(graph, of);
    bool const whole = op->kind->shares_sequence && remat->sharded->whole[of] != 0;
    bool const gathers =
        (graph_shard_of(remat->sharded, op)->gather & sharding_axes(&graph->tensor[of].at)) != 0;
    if (fused == NULL || graph->tensor[of].kept >= remat->policy) {
        mark(remat, of, whole || gathers ? GRAPH_GATHERED : GRAPH_OWN, for_input);
        return;
    }
    for (uint8_t i = 0; i < fused->in_count; i++) mark(remat, fused->in[i], GRAPH_OWN, for_input);
}

static void gradients_mark(struct remat *remat, const struct graph_backward *backward)
{
    const struct graph *graph = remat->sharded->graph;
    for (uint32_t i = 0; i < backward->count; i++) {
        const struct graph_gradient *gradient = &backward->gradient[i];
        const struct graph_op *op = &graph->op[gradient->op];
        tensor read[OP_READS_MAX];
        bool const ends = graph_maker(graph, graph->block[op->block].out) == op;
        bool const for_input = ends || !op_gives_weight(gradient->pass);
        uint8_t const count = op_reads(graph, op, gradient->pass, read);
        for (uint8_t k = 0; k < count; k++) read_mark(remat, op, read[k], for_input);
    }
}

/* From the last op to the first: what is repeated reads results of earlier ones. */
static void again_mark(struct remat *remat)
{
    const struct graph *graph = remat->sharded->graph;
    for (uint8_t i = graph->op_count; i-- > 0;) {
        const struct graph_op *op = &graph->op[i];
        bool again = remat->policy == GRAPH_REMAT_LAYER, for_input = false;
        if (op->fused) continue;
        for (uint8_t out = 0; out < op->out_count; out++) {
            bool const read = remat->kept->read[op->out[out]] != GRAPH_NOTHING;
            again = again || (read && !is_kept(remat, op->out[out]));
            for_input = for_input || remat->for_input[op->out[out]];
        }
        remat->kept->again[i] = again;
        remat->kept->for_input[i] = again && for_input;
        for (uint8_t in = 0; again && in < op->in_count; in++)
            read_mark(remat, op, op->in[in], for_input);
    }
}

/* Joined results lie in one array, which is kept if any of them is. */
static void joined_mark(struct remat *remat)
{
    const struct graph *graph = remat->sharded->graph;
    for (uint8_t i = 0; i < graph->op_count; i++) {
        const struct graph_op *op = &graph->op[i];
        const struct graph_product *product = op->as.matmul.product;
        for (uint8_t first = 0, end = 0; first < op->product_count; first = end) {
            bool read = false;
            for (end = first; end == first || (end < op->product_count && product[end].joined);
                 end++)
                read = read || remat->kept->read[product[end].out] != GRAPH_NOTHING;
            for (uint8_t p = first; read && end > first + 1 && p < end; p++)
                mark(remat, product[p].out, GRAPH_OWN, false);
        }
    }
}

static enum graph_part part_kept(const struct remat *remat, tensor of)
{
    const struct graph_tensor *at = &remat->sharded->graph->tensor[of];
    enum graph_part const read = remat->kept->read[of];
    if (read == GRAPH_GATHERED && at->kept_gathered >= remat->policy) return GRAPH_GATHERED;
    return read != GRAPH_NOTHING && at->kept >= remat->policy ? GRAPH_OWN : GRAPH_NOTHING;
}

/* A chip's own part is kept where it lies. */
static void kept_set(struct remat *remat, tensor of)
{
    enum graph_part const part = part_kept(remat, of);
    tensor const in = part == GRAPH_OWN ? graph_lies_in(remat->sharded->graph, of) : of;
    if (remat->kept->kept[in] < part) remat->kept->kept[in] = part;
}

void graph_remat(const struct graph_sharded *sharded, const struct graph_backward *backward,
                 struct graph_kept *ret_kept)
{
    const struct graph *graph = sharded->graph;
    struct remat remat = {
        .sharded = sharded, .policy = graph->terms->policy.remat, .kept = ret_kept};
    *ret_kept = (struct graph_kept){.again = {false}};
    gradients_mark(&remat, backward);
    again_mark(&remat);
    joined_mark(&remat);
    for (uint8_t t = 0; t < graph->tensor_count; t++) kept_set(&remat, t);
}

enum graph_part graph_kept_part(const struct graph *graph, const struct graph_kept *kept, tensor of)
{
    enum graph_part const own = kept->kept[graph_lies_in(graph, of)];
    if (kept->kept[of] == GRAPH_GATHERED) return GRAPH_GATHERED;
    return own == GRAPH_NOTHING ? GRAPH_NOTHING : GRAPH_OWN;
}

uint64_t graph_kept_bytes(const struct graph_sharded *sharded, const struct graph_kept *kept)
{
    const struct graph *graph = sharded->graph;
    uint64_t bytes = 0;
    for (uint8_t t = 0; t < graph->tensor_count; t++) {
        const struct graph_tensor *at = &graph->tensor[t];
        if (kept->kept[t] == GRAPH_NOTHING) continue;
        bytes += format_bytes(at->format, kept->kept[t] == GRAPH_GATHERED
                                              ? graph_gathered_elements(sharded, t)
                                              : graph_elements(graph, &at->at, 0));
    }
    return bytes;
}

uint64_t graph_framework_bytes(const struct graph *graph)
{
    uint64_t bytes = 0;
    for (uint8_t t = 0; t < graph->tensor_count; t++) {
        const struct graph_tensor *at = &graph->tensor[t];
        bool const kept = at->framework.kept >= graph->terms->policy.remat;
        if (at->framework.what != GRAPH_FRAMEWORK_NOTHING && kept)
            bytes += format_bytes(at->framework.format, graph_elements(graph, &at->at, 0));
    }
    return bytes;
}

enum op_pass graph_again_pass(const struct graph_sharded *sharded, const struct graph_kept *kept,
                              uint8_t op)
{
    const struct graph *graph = sharded->graph;
    const struct graph_op *of = &graph->op[op];
    if (of->in_count == 0) return OP_AGAIN;
    bool const summed =
        graph_fused(graph, of->in[0]) != NULL && graph->tensor[of->in[0]].kept != GRAPH_REMAT_NEVER;
    /* A block's own repetition of its norm adds up the stream once more, though the sum is kept:
     * its kernel is one. */
    bool const alone = graph->terms->policy.remat == GRAPH_REMAT_BLOCK && summed &&
                       kept->kept[of->in[0]] != GRAPH_NOTHING;
    return alone ? OP_AGAIN_ALONE : OP_AGAIN;
}
