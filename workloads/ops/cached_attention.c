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

/* Tokens of a rank's prompts. */
static uint64_t prompt_tokens(const struct graph_served *prompts)
{
    return prompts->paired ? 2 * prompts->rows : prompts->rows;
}

/* Rows of prompts that attend to an array of their own: of the sequences that the op is for, which
 * other ranks may have more of. Ranks that have a part of each prompt have gathered the array, of
 * all tokens of the prompts or of their rows in the cache. */
static uint64_t prompt_rows(const struct graph_cache *cache, const struct graph_served *prompts)
{
    uint64_t const of_rank =
        cache->prompt_ways > 1 && cache->own_rows ? prompt_tokens(prompts) : prompts->read;
    return cache->prompt_ways * of_rank;
}

/* Rows of an array that are read: of the cache the sequences' own, of any other those of prompts.
 */
static uint64_t rows_of(const struct graph *graph, const struct graph_op *op, tensor in)
{
    const struct graph_served *decodes = decodes_of(graph, op), *prompts = prompts_of(graph, op);
    if (graph->tensor[in].role == GRAPH_CACHE) return decodes->read + prompts->read;
    return prompt_rows(&graph->terms->cache, prompts);
}

/* Tokens whose queries the op has. */
static uint64_t queries_of(const struct graph *graph, const struct graph_op *op)
{
    const struct graph_served *decodes = decodes_of(graph, op);
    return decodes->count * decodes->rows + prompt_tokens(prompts_of(graph, op));
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

/* Sequences and heads of keys as cores take them, each with up to a tile of rows of queries. */
struct units {
    uint64_t rows; /* Of all. */
    struct splits_request request;
};

static void units_add(uint64_t count, uint64_t keys, uint64_t longest, struct units *units)
{
    units->request.units += count;
    units->request.keys += keys;
    if (longest > units->request.longest) units->request.longest = longest;
}

static void decodes_add(const struct graph_served *served, const struct heads *heads,
                        struct units *units)
{
    uint64_t const rows = served->rows * heads->queries;
    uint64_t const each = heads->shared * units_ceil_divide(rows, SPLITS_TILE_ROWS);
    if (served->columns == 0) return;
    units->rows += served->count * rows * heads->shared;
    units_add(served->count * each, served->columns * each, served->longest, units);
}

/* All prompts have as many queries as the mean one, and these as many keys as the mean query. False
 * where their tiles are enough for all cores. */
static bool prompts_add(const struct graph_served *served, const struct heads *heads,
                        struct units *units)
{
    uint64_t const two = served->paired ? 2 : 1;
    uint64_t const rows = two * served->rows * heads->queries;
    if (served->columns == 0) return true;
    uint64_t const each =
        units_ceil_divide(units_ceil_divide(rows, served->count), SPLITS_TILE_ROWS);
    uint64_t const count = heads->shared * served->count * each;
    uint64_t const keys = units_ceil_divide(served->columns, two);
    if (count >= units->request.cores) return false;
    units->rows += rows * heads->shared;
    units_add(count, count * keys, served->longest > keys ? served->longest : keys, units);
    return true;
}

/* Bytes of L2 as a number of keys. Cores wait for L2 longer than for vector units. */
static uint64_t as_keys(uint64_t bytes, uint64_t keys, uint64_t key_bytes)
{
    return (uint64_t)(((units_wide)bytes * keys + key_bytes - 1) / key_bytes);
}

/* How cores share the sequences of a pass, and what the parts of a sequence's keys leave to be
 * merged: values, a maximum and a sum of each row in fp32, which lie in VMEM. The tiles of prompts
 * fill the cores, unless there are fewer: then they are shared as decodes are. */
static void cores_share(const struct graph *graph, const struct graph_op *op,
                        const struct heads *heads, uint64_t besides_bytes, struct work *work)
{
    const struct graph_cache *cache = &graph->terms->cache;
    struct units units = {.request = {.cores = cache->cores, .most = cache->splits_most}};
    struct splits_request *request = &units.request;
    if (cache->cores == 1 || !prompts_add(prompts_of(graph, op), heads, &units)) return;
    decodes_add(decodes_of(graph, op), heads, &units);
    if (request->units == 0) return;
    uint64_t const row_flop = 2 * heads->value_width + ATTENTION_STATISTICS;
    uint64_t const row_bytes =
        2 * format_bytes(FORMAT_FP32, heads->value_width + ATTENTION_STATISTICS);
    uint64_t const part_bytes = units_ceil_divide(units.rows, request->units) * row_bytes;
    uint64_t const key_bytes = work->hbm_read_bytes + work->hbm_write_bytes - besides_bytes;
    request->besides_keys = as_keys(besides_bytes, request->keys, key_bytes);
    request->part_keys = as_keys(part_bytes, request->keys, key_bytes);
    struct splits_shares const shares = splits_share(request);
    work->idle_core_ppm = shares.idle_ppm;
    uint64_t const parts = (uint64_t)((units_wide)shares.merged * units.rows / request->units);
    work->vector_flop += parts * row_flop;
    work->vmem_read_bytes += parts * row_bytes;
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
    uint64_t const rows = queries_of(graph, op) * heads.shared * heads.queries;
    struct work work = {.math_format = formats->activations};
    (void)pass;
    products_add(decodes_of(graph, op), &heads, &work);
    products_add(prompts_of(graph, op), &heads, &work);
    attended_set(graph, op, &heads, &work);
    work.useful_flop = useful_flop(graph, op, &heads);
    work.vector_flop += op_rotated_flop(graph, op);
    work.hbm_read_bytes = format_bytes(formats->activations, rows * heads.key_width);
    work.hbm_write_bytes = format_bytes(formats->activations, rows * heads.value_width);
    uint64_t const besides_bytes = work.hbm_read_bytes + work.hbm_write_bytes;
    rows_read(graph, op, &work);
    cores_share(graph, op, &heads, besides_bytes, &work);
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
