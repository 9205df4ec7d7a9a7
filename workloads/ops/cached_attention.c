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
#include "sim/graph/count.h"
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
static void products_add(const struct graph *graph, const struct graph_served *served,
                         const struct heads *heads, struct work *work)
{
    uint64_t const rows = served->rows * heads->queries;
    if (served->columns == 0) return;
    work->matmul[work->matmul_count++] =
        (struct work_matmul){rows, heads->key_width, served->columns, heads->shared};
    work->matmul[work->matmul_count++] =
        (struct work_matmul){rows, served->columns, heads->value_width, heads->shared};
    work->vector_flop +=
        attention_score_flop(graph, false) * rows * served->columns * heads->shared;
}

/* Sequences of a kind and heads of keys as cores take them, each with up to a tile of rows of
 * queries. */
struct units {
    uint64_t rows; /* Of all. */
    uint64_t count, keys, longest;
};

static struct units decodes_units(const struct graph_served *served, const struct heads *heads)
{
    uint64_t const rows = served->rows * heads->queries;
    uint64_t const each = heads->shared * units_ceil_divide(rows, SPLITS_TILE_ROWS);
    if (served->columns == 0) return (struct units){0};
    return (struct units){
        .rows = served->count * rows * heads->shared,
        .count = served->count * each,
        .keys = served->columns * each,
        .longest = served->longest,
    };
}

/* All prompts have as many queries as the mean one, and these as many keys as the mean query. */
static struct units prompts_units(const struct graph_served *served, const struct heads *heads)
{
    uint64_t const two = served->paired ? 2 : 1;
    uint64_t const rows = two * served->rows * heads->queries;
    if (served->columns == 0) return (struct units){0};
    uint64_t const each =
        units_ceil_divide(units_ceil_divide(rows, served->count), SPLITS_TILE_ROWS);
    uint64_t const count = heads->shared * served->count * each;
    uint64_t const keys = units_ceil_divide(served->columns, two);
    return (struct units){
        .rows = rows * heads->shared,
        .count = count,
        .keys = count * keys,
        .longest = served->longest > keys ? served->longest : keys,
    };
}

/* Of both kinds. */
static struct units kinds_units(const struct graph *graph, const struct graph_op *op,
                                const struct heads *heads)
{
    struct units const one = decodes_units(decodes_of(graph, op), heads),
                       other = prompts_units(prompts_of(graph, op), heads);
    return (struct units){
        .rows = one.rows + other.rows,
        .count = one.count + other.count,
        .keys = one.keys + other.keys,
        .longest = one.longest > other.longest ? one.longest : other.longest,
    };
}

/* What the parts of sequences' keys leave to be merged: values, a maximum and a sum of each row in
 * fp32, which lie in VMEM. */
static void parts_add(uint64_t rows, const struct heads *heads, struct work *work)
{
    uint64_t const numbers = heads->value_width + ATTENTION_STATISTICS;
    work->vector_flop += rows * (numbers + heads->value_width);
    work->vmem_read_bytes += rows * 2 * format_bytes(FORMAT_FP32, numbers);
}

static uint64_t moved_bytes(const struct work *work)
{
    return work->hbm_read_bytes + work->hbm_write_bytes + work->vmem_read_bytes;
}

/* What cores take for a work, as the bytes that VMEM moves in that time: matrix units, vector units
 * and VMEM work side by side. */
static units_wide cores_take(const struct graph_units *units, const struct work *work,
                             uint64_t vmem_bytes)
{
    units_wide const math = graph_moved_meanwhile(units, work_padded_flop(work, units->edges),
                                                  units->math_flop_per_s[work->math_format]);
    units_wide const vector =
        graph_moved_meanwhile(units, work->vector_flop, units->vector_flop_per_s);
    units_wide const longer = math > vector ? math : vector;
    return longer > vmem_bytes ? longer : vmem_bytes;
}

/* Of `all` keys that take as long as `all_bytes`, the number that takes as long as `bytes`. */
static uint64_t as_keys(units_wide bytes, uint64_t all, units_wide all_bytes)
{
    return (uint64_t)((bytes * all + all_bytes - 1) / all_bytes);
}

/* The work with its parts, and what of the cores' time is idle. */
static struct work shared_work(const struct work *work, const struct units *units,
                               const struct heads *heads, struct splits_shares shares)
{
    struct work shared = *work;
    uint64_t const rows = (uint64_t)((units_wide)shares.merged * units->rows / units->count);
    shared.idle_core_ppm = shares.idle_ppm;
    parts_add(rows, heads, &shared);
    return shared;
}

static bool takes_longer(const struct graph_units *units, const struct work *one,
                         const struct work *other)
{
    units_wide const own = cores_take(units, one, moved_bytes(one)),
                     others = cores_take(units, other, moved_bytes(other));
    return own * (PPM_ONE - other->idle_core_ppm) > others * (PPM_ONE - one->idle_core_ppm);
}

/* The sequences of a pass as cores share them. `besides_bytes`: of what is read and written besides
 * keys. */
static struct splits_request request_of(const struct graph_cache *cache, const struct heads *heads,
                                        const struct units *units, uint64_t besides_bytes,
                                        const struct work *work)
{
    struct work part = {.math_format = work->math_format};
    parts_add(units_ceil_divide(units->rows, units->count), heads, &part);
    units_wide const keys = cores_take(&cache->units, work, moved_bytes(work) - besides_bytes);
    return (struct splits_request){
        .units = units->count,
        .keys = units->keys,
        .longest = units->longest,
        .cores = cache->cores,
        .most = cache->splits_most,
        .besides_keys = as_keys(besides_bytes, units->keys, keys),
        .part_keys =
            as_keys(cores_take(&cache->units, &part, moved_bytes(&part)), units->keys, keys),
    };
}

/* Cores share the sequences of a pass in the way that takes least time. The tiles of prompts fill
 * the cores, unless there are fewer: then they are shared as decodes are. */
static void cores_share(const struct graph *graph, const struct graph_op *op,
                        const struct heads *heads, uint64_t besides_bytes, struct work *work)
{
    const struct graph_cache *cache = &graph->terms->cache;
    struct units const units = kinds_units(graph, op, heads);
    if (cache->cores == 1 || units.count == 0) return;
    if (prompts_units(prompts_of(graph, op), heads).count >= cache->cores) return;
    struct splits_request const request = request_of(cache, heads, &units, besides_bytes, work);
    struct splits_shares shares[SPLITS_WAYS];
    uint32_t const ways = splits_ways(&request, shares);
    struct work best = shared_work(work, &units, heads, shares[0]);
    for (uint32_t i = 1; i < ways; i++) {
        struct work const other = shared_work(work, &units, heads, shares[i]);
        if (takes_longer(&cache->units, &best, &other)) best = other;
    }
    *work = best;
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
    products_add(graph, decodes_of(graph, op), &heads, &work);
    products_add(graph, prompts_of(graph, op), &heads, &work);
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
    *ret_spare = (struct op_spare){.copies = flop - once,
                                   .padding = once - wanted,
                                   .rows = (int64_t)(wanted - of.useful_flop)};
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
