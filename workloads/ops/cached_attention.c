/*
 * Attention of new tokens to the rows of the cache, their own among them: scores never lie in HBM
 * (flash decoding). Each sequence reads its own rows and no others, once for all queries that share
 * a head of keys (ragged; the book, chapter 7, 7.1.4 and 7.2).
 *
 * Inputs are Q, and one or more arrays that K and V lie in: of the cache, or of the tokens of a
 * pass that attends to no others. An array without heads is shared by all of Q's.
 */
#include "sim/base/units.h"
#include "sim/base/vector.h"
#include "sim/graph/op.h"
#include "sim/graph/splits.h"
#include "workloads/ops/attention.h"

enum { STATISTICS = 2 }; /* Of a row's scores: the maximum and the sum. */

struct heads {
    uint64_t shared;  /* Heads of keys on this chip. */
    uint64_t queries; /* Heads of Q for each. */
    uint64_t key_width, value_width;
    bool are_latent; /* One array is keys and values of all heads. */
};

/* Elements of a row, without its first dimension. */
static uint64_t row_elements(const struct graph *graph, tensor of)
{
    const struct sharding *at = &graph->tensor[of].at;
    uint64_t elements = 1;
    for (uint32_t d = 1; d < at->dimension_count; d++)
        elements *= sharding_local_size(&graph->terms->mesh, &at->dimension[d]);
    return elements;
}

/* Of the sequences that the op is for. */
static const struct graph_served *decodes_of(const struct graph *graph, const struct graph_op *op)
{
    static const struct graph_served none = {0};
    return op->serves == GRAPH_SERVES_PROMPTS ? &none : &graph->terms->cache.decodes;
}

static const struct graph_served *prompts_of(const struct graph *graph, const struct graph_op *op)
{
    static const struct graph_served none = {0};
    return op->serves == GRAPH_SERVES_ANSWERS ? &none : &graph->terms->cache.prompts;
}

/* Rows of an array that are read: of the cache the sequences' own, of any other all. */
static uint64_t rows_of(const struct graph *graph, const struct graph_op *op, tensor in)
{
    const struct graph_tensor *of = &graph->tensor[in];
    if (of->role == GRAPH_CACHE) return decodes_of(graph, op)->read + prompts_of(graph, op)->read;
    return sharding_local_size(&graph->terms->mesh, &of->at.dimension[0]);
}

/* Keys and values: bytes of HBM, and FLOP to widen what the cache has in a narrower format. Rows
 * that were gathered from it have its scales. */
static void rows_read(const struct graph *graph, const struct graph_op *op, struct work *work)
{
    for (uint8_t i = 1; i < op->in_count; i++) {
        const struct graph_tensor *of = &graph->tensor[op->in[i]];
        uint64_t const rows = rows_of(graph, op, op->in[i]);
        uint64_t const elements = rows * row_elements(graph, op->in[i]);
        bool const widened = format_bits(of->format) < format_bits(work->math_format);
        enum graph_role const role = graph_is_of_cache(graph, op->in[i]) ? GRAPH_CACHE : of->role;
        work->hbm_read_bytes += graph_bytes(role, of->format, elements);
        if (widened) work->vector_flop += elements;
    }
}

static struct heads heads_of(const struct graph *graph, const struct graph_op *op)
{
    const struct sharding *q = &graph->tensor[op->in[0]].at, *a = &graph->tensor[op->out[0]].at;
    const struct sharding *k = &graph->tensor[op->in[1]].at;
    uint64_t const heads = sharding_local_size(&graph->terms->mesh, &q->dimension[1]);
    bool const alone = k->dimension_count == 2; /* No head is said. */
    struct heads of = {
        .are_latent = alone,
        .shared = alone ? 1 : sharding_local_size(&graph->terms->mesh, &k->dimension[1]),
        .key_width = q->dimension[2].size,
        .value_width = a->dimension[2].size,
    };
    of.queries = heads / of.shared;
    return of;
}

/* Scores, and what they weigh. */
static void products_add(const struct graph_served *served, const struct heads *heads,
                         struct work *work)
{
    uint64_t const rows = served->rows * heads->queries;
    if (served->columns == 0) return;
    work->matmul[work->matmul_count++] =
        (struct work_matmul){rows, heads->key_width, served->columns, heads->shared};
    work->matmul[work->matmul_count++] =
        (struct work_matmul){rows, served->columns, heads->value_width, heads->shared};
    work->vector_flop += VECTOR_SOFTMAX * rows * served->columns * heads->shared;
}

/* How cores share the decodes of a pass, and what the parts of a sequence's keys leave to be
 * merged: values, a maximum and a sum of each row in fp32, which lie in VMEM. Where prompts are
 * there, their many tiles fill the cores. */
static void cores_share(const struct graph *graph, const struct graph_op *op,
                        const struct heads *heads, struct work *work)
{
    const struct graph_cache *cache = &graph->terms->cache;
    const struct graph_served *served = decodes_of(graph, op);
    uint64_t const rows = served->rows * heads->queries;
    uint64_t const units = heads->shared * units_ceil_divide(rows, SPLITS_TILE_ROWS);
    struct splits_request const request = {.units = served->count * units,
                                           .keys = served->columns * units,
                                           .longest = served->longest,
                                           .cores = cache->cores,
                                           .most = cache->splits_most};
    if (cache->cores == 1 || served->columns == 0 || prompts_of(graph, op)->columns != 0) return;
    struct splits_shares const shares = splits_share(&request);
    work->idle_core_ppm = shares.idle_ppm;
    uint64_t const parts = (uint64_t)((units_wide)shares.merged * rows * heads->shared / units);
    work->vector_flop += parts * (2 * heads->value_width + STATISTICS);
    work->vmem_read_bytes +=
        2 * format_bytes(FORMAT_FP32, parts * (heads->value_width + STATISTICS));
}

static uint64_t useful_flop(const struct graph *graph, const struct graph_op *op,
                            const struct heads *heads)
{
    units_wide const scores = decodes_of(graph, op)->scores + prompts_of(graph, op)->scores;
    return attention_served_flop(graph, scores, heads->key_width + heads->value_width);
}

/* Ranks of tp_d that attend alike, or 1. */
static uint64_t copies_of(const struct graph_terms *terms)
{
    return terms->cache.apart == GRAPH_APART_NOTHING ? terms->ranks_w : 1;
}

/* Decodes are as long as the mean one. Of prompts the causal sequences stand for them that have as
 * many keys a query, in the mean, and as many queries. */
static void attended_set(const struct graph *graph, const struct graph_op *op,
                         const struct heads *heads, struct work *work)
{
    const struct graph_served *decodes = decodes_of(graph, op), *prompts = prompts_of(graph, op);
    struct work_attended const like = {.key_width = heads->key_width,
                                       .value_width = heads->value_width,
                                       .group = heads->queries,
                                       .is_latent = heads->are_latent,
                                       .stored = graph->tensor[op->in[1]].format};
    struct work_attended *some = work->attended, *others = work->attended + 1;
    /* Prompts that attend to latents have no measured kernels. */
    if (!graph->terms->policy.names_kernels || (heads->are_latent && prompts->columns != 0)) return;
    work->kernel = WORK_KERNEL_ATTENTION;
    if (decodes->columns != 0) {
        *some = like;
        some->tokens = units_ceil_divide(decodes->columns, decodes->count);
        some->heads = decodes->count * heads->shared;
        some->group *= decodes->rows;
        some->decodes = 1;
        some->is_other = decodes->rows > 1 || decodes->longest != some->tokens;
    }
    if (prompts->columns != 0) {
        *others = like;
        uint64_t const two = prompts->paired ? 2 : 1;
        uint64_t const rows = two * prompts->rows,
                       columns = units_ceil_divide(prompts->columns, two);
        uint64_t const queries = units_ceil_divide(rows, prompts->count);
        bool const is_whole = queries / 2 + 1 == columns; /* They begin. */
        others->tokens = is_whole ? queries : 2 * columns - 1;
        others->heads = units_ceil_divide(rows * heads->shared, others->tokens);
        others->is_other = !is_whole;
    }
}

static void work(const struct graph_sharded *sharded, const struct graph_op *op, enum op_pass pass,
                 struct work *ret_work)
{
    const struct graph *graph = sharded->graph;
    const struct graph_formats *formats = &graph->terms->formats;
    struct heads const heads = heads_of(graph, op);
    uint64_t const found = op_out_elements(sharded, op, 0);
    struct work work = {.math_format = formats->activations};
    (void)pass;
    products_add(decodes_of(graph, op), &heads, &work);
    products_add(prompts_of(graph, op), &heads, &work);
    cores_share(graph, op, &heads, &work);
    attended_set(graph, op, &heads, &work);
    work.useful_flop = useful_flop(graph, op, &heads);
    work.vector_flop += op_turned_flop(graph, op);
    /* Queries of those that it finds something for. */
    work.hbm_read_bytes =
        format_bytes(formats->activations, found / heads.value_width * heads.key_width);
    rows_read(graph, op, &work);
    work.hbm_write_bytes = format_bytes(formats->activations, found);
    *ret_work = work;
}

static void spare(const struct graph_sharded *sharded, const struct graph_op *op, enum op_pass pass,
                  struct op_spare *ret_spare)
{
    const struct graph_dimension *heads = graph_dimension_of(sharded->graph->terms, "N");
    struct work of;
    work(sharded, op, pass, &of);
    uint64_t const flop = work_matmul_flop(&of);
    uint64_t const once = flop / copies_of(sharded->graph->terms);
    uint64_t const wanted = (uint64_t)((units_wide)once * heads->useful / heads->padded);
    *ret_spare = (struct op_spare){
        .copies = flop - once, .padding = once - wanted, .rows = wanted - of.useful_flop};
}

const struct op_kind op_kind_cached_attention = {
    .name = "cached attention",
    .help = "attention of new tokens to the cache: each sequence reads its own rows, once",
    .source = "the book, chapter 7, 7.1.4; Pope et al., arXiv 2211.05102, 3.3",
    .notation = {.formula = "Attention(@)", .remark = "each sequence reads its own rows"},
    .work = work,
    .spare = spare,
    .shard = op_shard_none,
    .attends = true,
};
