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
    bool are_latent;     /* One array is keys and values of all heads. */
    uint64_t tiles_most; /* Of a sequence and a head of keys, that a work has. */
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

/* Keys or values: bytes of HBM, and FLOP to widen what the cache has in a narrower format. Rows
 * that were gathered from it have its scales. */
static void array_read(const struct graph *graph, tensor in, uint64_t rows, struct work *work)
{
    const struct graph_tensor *of = &graph->tensor[in];
    uint64_t const elements = rows * row_elements(graph, in);
    bool const widened = format_bits(of->format) < format_bits(work->math_format);
    enum graph_role const role = graph_is_of_cache(graph, in) ? GRAPH_CACHE : of->role;
    work->hbm_read_bytes += graph_bytes(role, of->format, elements);
    if (widened) work->vector_flop += elements;
}

static void keys_read(const struct graph *graph, const struct graph_op *op, struct work *work)
{
    for (uint8_t i = 1; i < op->in_count; i++)
        array_read(graph, op->in[i], rows_of(graph, op, op->in[i]), work);
}

/* Rows that L2 has once more, for further tiles of heads: keys that the cache has in a narrower
 * format are widened again. */
static void tiles_read(const struct graph *graph, const struct graph_op *op, uint64_t rows,
                       struct work *work)
{
    struct work again = {.math_format = work->math_format};
    for (uint8_t i = 1; i < op->in_count; i++) array_read(graph, op->in[i], rows, &again);
    work->vmem_read_bytes += again.hbm_read_bytes;
    work->vector_flop += again.vector_flop;
}

static struct heads heads_of(const struct graph *graph, const struct graph_op *op)
{
    const struct sharding *q = &graph->tensor[op->in[0]].at, *a = &graph->tensor[op->out[0]].at;
    const struct sharding *k = &graph->tensor[op->in[1]].at;
    uint64_t const heads = sharding_local_size(&graph->terms->mesh, &q->dimension[1]);
    bool const alone = k->dimension_count == 2; /* No head is said. */
    struct heads of = {
        .are_latent = alone,
        .tiles_most = UINT64_MAX,
        .shared = alone ? 1 : sharding_local_size(&graph->terms->mesh, &k->dimension[1]),
        .key_width = q->dimension[2].size,
        .value_width = a->dimension[2].size,
    };
    of.queries = heads / of.shared;
    return of;
}

/* Scores of rows of queries, and what they weigh. */
static void products_add(const struct graph *graph, const struct graph_served *served,
                         const struct heads *heads, uint64_t rows, struct work *work)
{
    if (served->columns == 0) return;
    work->matmul[work->matmul_count++] =
        (struct work_matmul){rows, heads->key_width, served->columns, heads->shared};
    work->matmul[work->matmul_count++] =
        (struct work_matmul){rows, served->columns, heads->value_width, heads->shared};
    work->vector_flop +=
        attention_score_flop(graph, false) * rows * served->columns * heads->shared;
}

/* The rows of queries of a sequence and a head of keys as kernels take them: in tiles of FlashMLA
 * (block M), or of flash-attention 3 (hopper/tile_size.h), whose clusters of two read keys once. */
struct tiles {
    uint64_t count;
    uint64_t half_reads; /* Twice: of the keys, by all tiles but the first one. */
    uint64_t rows;       /* Of queries. */
    uint64_t full_rows;  /* With the rows that fill the last of several tiles. */
};

static struct tiles tiles_of(const struct heads *heads, uint64_t rows)
{
    bool const narrow = heads->are_latent || rows <= SPLITS_TILE_ROWS;
    uint64_t const edge = narrow ? SPLITS_TILE_ROWS : SPLITS_WIDE_TILE_ROWS;
    uint64_t const all = units_ceil_divide(rows, edge);
    uint64_t const count = all < heads->tiles_most ? all : heads->tiles_most;
    return (struct tiles){
        .count = count,
        .half_reads = narrow ? 2 * (count - 1) : units_larger(count, 2) - 2,
        .rows = count < all ? count * edge : rows,
        .full_rows = count == 1 && all == 1 ? rows : count * edge,
    };
}

/* Sequences of a kind and heads of keys as cores take them, each with up to a tile of rows of
 * queries. */
struct units {
    uint64_t rows;      /* Of all. */
    uint64_t full_rows; /* With the rows that fill the last of several tiles. */
    uint64_t again;     /* Keys that further tiles of a head read, of a head for all sequences. */
    uint64_t count, keys, longest;
};

static struct units decodes_units(const struct graph_served *served, const struct heads *heads)
{
    if (served->columns == 0) return (struct units){0};
    struct tiles const tiles = tiles_of(heads, served->rows * heads->queries);
    uint64_t const each = heads->shared * tiles.count;
    return (struct units){
        .rows = served->count * tiles.rows * heads->shared,
        .full_rows = served->count * tiles.full_rows * heads->shared,
        .again = units_ceil_divide(served->columns * tiles.half_reads, 2),
        .count = served->count * each,
        .keys = served->columns * each,
        .longest = served->longest,
    };
}

/* All prompts have as many queries as the mean one, and these as many keys as the mean query. */
static struct units prompts_units(const struct graph_served *served, const struct heads *heads)
{
    if (served->columns == 0) return (struct units){0};
    uint64_t const two = served->paired ? 2 : 1;
    uint64_t const rows = served->rows * heads->queries;
    struct tiles const tiles = tiles_of(heads, units_ceil_divide(two * rows, served->count));
    uint64_t const count = heads->shared * served->count * tiles.count;
    uint64_t const keys = units_ceil_divide(served->columns, two);
    uint64_t const some =
        tiles.rows * served->count; /* Of unlike prompts the mean is rounded up. */
    uint64_t const taken = some < two * rows ? some : two * rows;
    bool const are_full = tiles.full_rows == tiles.rows;
    return (struct units){
        .rows = heads->shared * taken,
        .full_rows = heads->shared * (are_full ? taken : tiles.full_rows * served->count),
        .again = units_ceil_divide(keys * served->count * tiles.half_reads, 2),
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
        .full_rows = one.full_rows + other.full_rows,
        .again = one.again + other.again,
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

/* Cores share a work in the way that takes least time. The tiles of prompts fill the cores, unless
 * there are fewer: then they are shared as decodes are. */
static struct work best_work(const struct graph *graph, const struct graph_op *op,
                             const struct heads *heads, uint64_t besides_bytes,
                             const struct work *work, struct splits_shares *ret_shares)
{
    const struct graph_cache *cache = &graph->terms->cache;
    struct units const units = kinds_units(graph, op, heads);
    struct splits_shares shares[SPLITS_WAYS] = {{0}};
    uint32_t ways = 1, best = 0;
    if (prompts_units(prompts_of(graph, op), heads).count < cache->cores) {
        struct splits_request const of = request_of(cache, heads, &units, besides_bytes, work);
        ways = splits_ways(&of, shares);
    }
    struct work least = shared_work(work, &units, heads, shares[0]);
    for (uint32_t i = 1; i < ways; i++) {
        struct work const other = shared_work(work, &units, heads, shares[i]);
        if (!takes_longer(&cache->units, &least, &other)) continue;
        least = other;
        best = i;
    }
    *ret_shares = shares[best];
    return least;
}

/* Products as kernels do them, which multiply whole tiles where a head has several. */
static void full_products_add(const struct graph *graph, const struct graph_op *op,
                              const struct heads *heads, struct work *work)
{
    const struct graph_served *decodes = decodes_of(graph, op), *prompts = prompts_of(graph, op);
    uint64_t const some = decodes_units(decodes, heads).full_rows / heads->shared,
                   others = prompts_units(prompts, heads).full_rows / heads->shared;
    if (decodes->count != 0) products_add(graph, decodes, heads, some / decodes->count, work);
    products_add(graph, prompts, heads, units_ceil_divide(others, prompts->paired ? 2 : 1), work);
}

static void own_products_add(const struct graph *graph, const struct graph_op *op,
                             const struct heads *heads, struct work *work)
{
    const struct graph_served *decodes = decodes_of(graph, op), *prompts = prompts_of(graph, op);
    products_add(graph, decodes, heads, decodes->rows * heads->queries, work);
    products_add(graph, prompts, heads, prompts->rows * heads->queries, work);
}

/* A work with whole tiles in place of the queries' rows. */
static struct work full_work(const struct graph *graph, const struct graph_op *op,
                             const struct heads *heads, const struct units *units,
                             uint64_t besides_bytes, const struct work *work)
{
    struct work own = {.matmul_count = 0}, full = *work;
    own_products_add(graph, op, heads, &own);
    full.matmul_count = 0;
    full.vector_flop -= own.vector_flop;
    full_products_add(graph, op, heads, &full);
    uint64_t const filling = units->full_rows - units->rows;
    full.hbm_write_bytes += (uint64_t)((units_wide)besides_bytes * filling / units->rows);
    return full;
}

/* The work of the first tile of each sequence and head of keys. */
static struct work first_work(const struct graph *graph, const struct graph_op *op,
                              const struct heads *first, uint64_t besides_bytes,
                              enum format math_format)
{
    struct work work = {.math_format = math_format, .hbm_write_bytes = besides_bytes};
    full_products_add(graph, op, first, &work);
    keys_read(graph, op, &work);
    return work;
}

/* The share of the cores with which a work takes as long as another one, in millionths. */
static uint64_t busy_like_ppm(const struct graph_units *units, const struct work *work,
                              const struct work *other)
{
    units_wide const own = cores_take(units, work, moved_bytes(work)),
                     others = cores_take(units, other, moved_bytes(other));
    return (uint64_t)(own * (PPM_ONE - other->idle_core_ppm) / others);
}

/* Cores share the tiles of a pass. They multiply whole tiles, and are idle by as much. The pass
 * takes no less time than its first tiles alone. */
static void cores_share(const struct graph *graph, const struct graph_op *op,
                        const struct heads *heads, uint64_t besides_bytes, struct work *work)
{
    const struct graph_cache *cache = &graph->terms->cache;
    struct units const units = kinds_units(graph, op, heads);
    struct heads one = *heads;
    struct splits_shares shares, firsts_shares;
    if (cache->cores == 1 || units.count == 0) return;
    tiles_read(graph, op, units.again, work);
    struct work const full = full_work(graph, op, heads, &units, besides_bytes, work),
                      best = best_work(graph, op, heads, besides_bytes, &full, &shares);
    *work = shared_work(work, &units, heads, shares);
    uint64_t busy_ppm = busy_like_ppm(&cache->units, work, &best);
    one.tiles_most = 1;
    struct units const firsts = kinds_units(graph, op, &one);
    if (firsts.count < units.count) {
        uint64_t const bytes = (uint64_t)((units_wide)besides_bytes * firsts.rows / units.rows);
        struct work const first = first_work(graph, op, &one, bytes, work->math_format),
                          least = best_work(graph, op, &one, bytes, &first, &firsts_shares);
        uint64_t const most_ppm = busy_like_ppm(&cache->units, work, &least);
        busy_ppm = busy_ppm < most_ppm ? busy_ppm : most_ppm;
    }
    work->idle_core_ppm = PPM_ONE - busy_ppm;
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
    own_products_add(graph, op, &heads, &work);
    attended_set(graph, op, &heads, &work);
    work.useful_flop = useful_flop(graph, op, &heads);
    work.vector_flop += op_rotated_flop(graph, op);
    work.hbm_read_bytes = format_bytes(formats->activations, rows * heads.key_width);
    work.hbm_write_bytes = format_bytes(formats->activations, rows * heads.value_width);
    uint64_t const besides_bytes = work.hbm_read_bytes + work.hbm_write_bytes;
    keys_read(graph, op, &work);
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
