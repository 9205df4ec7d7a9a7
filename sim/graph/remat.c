#include "sim/graph/steps.h"

struct remat {
    const struct graph_sharded *sharded;
    enum graph_remat policy;
    struct graph_kept *kept;
    bool saved[GRAPH_TENSORS_MAX], saved_gathered[GRAPH_TENSORS_MAX];
    bool for_input[GRAPH_TENSORS_MAX]; /* Gradients of inputs read it. */
    bool summed[GRAPH_TENSORS_MAX];    /* A fused one that is not kept: its array is read. */
    uint8_t block[GRAPH_TENSORS_MAX];  /* The last block that reads it. */
};

static bool is_kept(const struct remat *remat, tensor of)
{
    bool const gathered = remat->kept->read[of] == GRAPH_GATHERED;
    return remat->saved[of] || (gathered && remat->saved_gathered[of]);
}

/* Who reads a tensor: a block's part of the backward pass; gradients of inputs, or of weights
 * alone. */
struct reader {
    uint8_t block;
    bool for_input;
};

static void mark(struct remat *remat, tensor of, enum graph_part part, struct reader reader)
{
    if (remat->kept->read[of] < part) remat->kept->read[of] = part;
    remat->for_input[of] = remat->for_input[of] || reader.for_input;
    if (remat->block[of] < reader.block) remat->block[of] = reader.block;
}

/* A tensor that an op reads; of a fused one that is not kept, what that is computed from. */
static void read_mark(struct remat *remat, const struct graph_op *op, tensor of,
                      struct reader reader)
{
    const struct graph *graph = remat->sharded->graph;
    const struct graph_op *fused = graph_fused(graph, of);
    bool const whole = op->kind->shares_sequence && remat->sharded->whole[of] != 0;
    bool const gathers =
        (graph_shard_of(remat->sharded, op)->gather & sharding_axes(&graph->tensor[of].at)) != 0;
    if (fused == NULL || remat->saved[of]) {
        mark(remat, of, whole || gathers ? GRAPH_GATHERED : GRAPH_OWN, reader);
        return;
    }
    remat->summed[of] = graph->tensor[of].kept != GRAPH_REMAT_NEVER;
    remat->for_input[of] = remat->for_input[of] || reader.for_input;
    if (remat->block[of] < reader.block) remat->block[of] = reader.block;
    for (uint8_t i = 0; i < fused->in_count; i++) mark(remat, fused->in[i], GRAPH_OWN, reader);
}

static void gradients_mark(struct remat *remat, const struct graph_backward *backward)
{
    const struct graph *graph = remat->sharded->graph;
    for (uint32_t i = 0; i < backward->count; i++) {
        const struct graph_gradient *gradient = &backward->gradient[i];
        const struct graph_op *op = &graph->op[gradient->op];
        tensor read[OP_READS_MAX];
        bool const ends = graph_maker(graph, graph->block[op->block].out) == op;
        struct reader const reader = {op->block, ends || !op_gives_weight(gradient->pass)};
        uint8_t const count = op_reads(graph, op, gradient->pass, read);
        for (uint8_t k = 0; k < count; k++) read_mark(remat, op, read[k], reader);
    }
}

/* Adds who waits for a tensor that an op gives. */
static void reader_add(const struct remat *remat, tensor of, struct reader *reader)
{
    reader->for_input = reader->for_input || remat->for_input[of];
    if (reader->block < remat->block[of]) reader->block = remat->block[of];
}

/* Whether an op is repeated, and for whom. The op that reads a fused tensor first writes that
 * tensor's array. */
static bool is_again(const struct remat *remat, const struct graph_op *op,
                     struct reader *ret_reader)
{
    const struct graph *graph = remat->sharded->graph;
    bool again = remat->policy == GRAPH_REMAT_LAYER;
    *ret_reader = (struct reader){.block = op->block};
    for (uint8_t i = 0; i < op->out_count; i++) {
        bool const read = remat->kept->read[op->out[i]] != GRAPH_NOTHING;
        again =
            again || (read && !is_kept(remat, op->out[i])) || graph->tensor[op->out[i]].repeated;
        reader_add(remat, op->out[i], ret_reader);
    }
    for (uint8_t i = 0; i < op->in_count; i++) {
        if (!remat->summed[op->in[i]] || !graph_reads_first(graph, op, op->in[i])) continue;
        again = true;
        reader_add(remat, op->in[i], ret_reader);
    }
    return again;
}

/* From the last op to the first: what is repeated reads results of earlier ones. */
static void again_mark(struct remat *remat)
{
    const struct graph *graph = remat->sharded->graph;
    for (uint8_t i = graph->op_count; i-- > 0;) {
        const struct graph_op *op = &graph->op[i];
        struct reader reader;
        if (op->fused) continue;
        bool const again = is_again(remat, op, &reader);
        remat->kept->again[i] = again;
        remat->kept->for_input[i] = again && reader.for_input;
        remat->kept->block[i] = reader.block;
        for (uint8_t in = 0; again && in < op->in_count; in++)
            read_mark(remat, op, op->in[in], reader);
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
                mark(remat, product[p].out, GRAPH_OWN, (struct reader){.block = op->block});
        }
    }
}

static enum graph_part part_kept(const struct remat *remat, tensor of)
{
    enum graph_part const read = remat->kept->read[of];
    if (read == GRAPH_GATHERED && remat->saved_gathered[of]) return GRAPH_GATHERED;
    return read != GRAPH_NOTHING && remat->saved[of] ? GRAPH_OWN : GRAPH_NOTHING;
}

/* A chip's own part is kept where it lies. */
static void kept_set(struct remat *remat, tensor of)
{
    enum graph_part const part = part_kept(remat, of);
    tensor const in = part == GRAPH_OWN ? graph_lies_in(remat->sharded->graph, of) : of;
    if (remat->kept->kept[in] < part) remat->kept->kept[in] = part;
}

/* What is kept by the lists of the graph. The result of an op without compute and collective is no
 * array: its inputs are kept in its place. */
static void saved_find(struct remat *remat)
{
    const struct graph *graph = remat->sharded->graph;
    bool const named = graph->terms->policy.named != NULL;
    for (uint8_t t = 0; t < graph->tensor_count; t++) {
        remat->saved[t] = graph->tensor[t].saved;
        remat->saved_gathered[t] = graph->tensor[t].saved_gathered;
        remat->kept->offloaded[t] = graph->tensor[t].offloaded;
    }
    for (uint8_t i = graph->op_count; named && i-- > 0;) {
        const struct graph_op *op = &graph->op[i];
        tensor const out = op->out[0];
        if (!graph_is_silent(remat->sharded, i)) continue;
        for (uint8_t in = 0; in < op->in_count; in++) {
            bool const lasts = graph->tensor[op->in[in]].kept != GRAPH_REMAT_NEVER;
            if (remat->saved[out] && lasts) remat->saved[op->in[in]] = true;
            if (remat->kept->offloaded[out] && lasts) remat->kept->offloaded[op->in[in]] = true;
        }
        remat->saved[out] = remat->saved_gathered[out] = false;
    }
}

void graph_remat(const struct graph_sharded *sharded, const struct graph_backward *backward,
                 struct graph_kept *ret_kept)
{
    const struct graph *graph = sharded->graph;
    struct remat remat = {
        .sharded = sharded, .policy = graph->terms->policy.remat, .kept = ret_kept};
    *ret_kept = (struct graph_kept){.again = {false}};
    saved_find(&remat);
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

/* Bytes of a tensor that are kept. */
static uint64_t bytes_of(const struct graph_sharded *sharded, const struct graph_kept *kept,
                         tensor of)
{
    const struct graph *graph = sharded->graph;
    const struct graph_tensor *at = &graph->tensor[of];
    if (kept->kept[of] == GRAPH_NOTHING) return 0;
    return format_bytes(at->format, kept->kept[of] == GRAPH_GATHERED
                                        ? graph_gathered_elements(sharded, of)
                                        : graph_elements(graph, &at->at, 0));
}

uint64_t graph_kept_bytes(const struct graph_sharded *sharded, const struct graph_kept *kept)
{
    uint64_t bytes = 0;
    for (uint8_t t = 0; t < sharded->graph->tensor_count; t++) bytes += bytes_of(sharded, kept, t);
    return bytes;
}

uint64_t graph_offloaded_bytes(const struct graph_sharded *sharded, const struct graph_kept *kept)
{
    uint64_t bytes = 0;
    for (uint8_t t = 0; t < sharded->graph->tensor_count; t++)
        if (kept->offloaded[t]) bytes += bytes_of(sharded, kept, t);
    return bytes;
}

uint64_t graph_framework_bytes(const struct graph *graph)
{
    uint64_t bytes = 0;
    for (uint8_t t = 0; t < graph->tensor_count; t++) {
        const struct graph_tensor *at = &graph->tensor[t];
        if (at->framework.what != GRAPH_FRAMEWORK_NOTHING && at->framework_saved)
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
