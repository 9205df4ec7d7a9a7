/*
 * Attention of new tokens to the rows of the cache, their own among them: scores never lie in HBM
 * (flash decoding). Each sequence reads its own rows and no others, once for all queries that share
 * a head of keys (ragged; the book, chapter 7, 7.1.4 and 7.2).
 *
 * Inputs are Q, and one or more arrays that K and V lie in: of the cache, or of the tokens of a
 * pass that attends to no others. An array without heads is shared by all of Q's.
 */
#include "sim/base/units.h"
#include "workloads/ops/attention_cores.h"

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

static void keys_read(const struct graph *graph, const struct graph_op *op, struct work *work)
{
    for (uint8_t i = 1; i < op->in_count; i++)
        attention_rows_read(graph, op->in[i], rows_of(graph, op, op->in[i]), work);
}

static struct attention_served served_of(const struct graph *graph, const struct graph_op *op)
{
    return (struct attention_served){.graph = graph,
                                     .op = op,
                                     .shape = attention_shape_of(graph, op),
                                     .decodes = decodes_of(graph, op),
                                     .prompts = prompts_of(graph, op)};
}

static uint64_t useful_flop(const struct attention_served *of)
{
    return attention_served_flop(of->graph->terms, &of->shape,
                                 of->decodes->scores + of->prompts->scores);
}

/* Ranks of tp_d that attend alike, or 1. */
static uint64_t copies_of(const struct graph_terms *terms)
{
    return terms->cache.apart == GRAPH_APART_NOTHING ? terms->ranks_w : 1;
}

/* Prompts that attend to latents are as decodes: all heads and tokens of a prompt have the same
 * rows of the cache. A sequence stands for each 128 queries: the largest group that published rows
 * of latent decodes have (TensorRT-LLM, the 128 heads of DeepSeek-V3 in topology/kernels), and a
 * whole number of tiles, which have 64 queries in FlashMLA (block M). */
static void latent_prompts_set(const struct attention_served *of, struct work_attended *prompts)
{
    enum { GROUP_MOST = 128 };
    const struct graph_served *served = of->prompts;
    uint64_t const two = served->paired ? 2 : 1;
    uint64_t const queries = of->shape.group * units_ceil_divide(two * served->rows, served->count);
    prompts->tokens = units_ceil_divide(served->columns, two);
    prompts->group = queries < GROUP_MOST ? queries : GROUP_MOST;
    prompts->heads = served->count * of->shape.keys * units_ceil_divide(queries, prompts->group);
    prompts->decodes = 1;
    prompts->is_other = 1;
}

/* Decodes are as long as the mean one. Of prompts the causal sequences stand for them that have as
 * many keys a query, in the mean, and as many queries. */
static void attended_set(const struct attention_served *of, struct work *work)
{
    const struct graph_served *decodes = of->decodes, *prompts = of->prompts;
    const struct attention_shape *shape = &of->shape;
    struct work_attended const like = {.key_width = shape->key_width,
                                       .value_width = shape->value_width,
                                       .group = shape->group,
                                       .is_latent = shape->is_latent,
                                       .stored = of->graph->tensor[of->op->in[1]].format};
    struct work_attended *some = work->attended, *others = work->attended + 1;
    if (!of->graph->terms->policy.names_kernels) return;
    work->kernel = WORK_KERNEL_ATTENTION;
    if (decodes->columns != 0) {
        *some = like;
        some->tokens = units_ceil_divide(decodes->columns, decodes->count);
        some->heads = decodes->count * shape->keys;
        some->group *= decodes->rows;
        some->decodes = 1;
        some->is_other = decodes->rows > 1 || decodes->longest != some->tokens;
    }
    if (prompts->columns != 0) *others = like;
    if (prompts->columns != 0 && shape->is_latent) {
        latent_prompts_set(of, others);
    } else if (prompts->columns != 0) {
        uint64_t const two = prompts->paired ? 2 : 1;
        uint64_t const rows = two * prompts->rows,
                       columns = units_ceil_divide(prompts->columns, two);
        uint64_t const queries = units_ceil_divide(rows, prompts->count);
        bool const is_whole = queries / 2 + 1 == columns; /* They begin. */
        others->tokens = is_whole ? queries : 2 * columns - 1;
        others->heads = units_ceil_divide(rows * shape->keys, others->tokens);
        others->is_other = !is_whole;
    }
}

static void work(const struct graph_sharded *sharded, const struct graph_op *op, enum op_pass pass,
                 struct work *ret_work)
{
    const struct graph *graph = sharded->graph;
    enum format const format = graph->terms->formats.activations;
    struct attention_served const of = served_of(graph, op);
    const struct attention_shape *shape = &of.shape;
    uint64_t const rows = queries_of(graph, op) * shape->keys * shape->group;
    uint64_t const read_bytes = format_bytes(format, rows * shape->key_width),
                   written_bytes = format_bytes(format, rows * shape->value_width);
    struct work work = {.math_format = format};
    (void)pass;
    attention_served_products_add(&of, of.decodes, of.decodes->rows * shape->group, &work);
    attention_served_products_add(&of, of.prompts, of.prompts->rows * shape->group, &work);
    attended_set(&of, &work);
    keys_read(graph, op, &work);
    work.useful_flop = useful_flop(&of);
    work.vector_flop += op_rotated_flop(graph, op);
    work.hbm_read_bytes += read_bytes;
    work.hbm_write_bytes = written_bytes;
    attention_cores_share(&of, read_bytes + written_bytes, &work);
    *ret_work = work;
}

static void spare(const struct graph_sharded *sharded, const struct graph_op *op, enum op_pass pass,
                  struct op_spare *ret_spare)
{
    struct work of;
    work(sharded, op, pass, &of);
    uint64_t const flop = work_matmul_flop(&of);
    uint64_t const once = flop / copies_of(sharded->graph->terms);
    uint64_t const wanted = attention_wanted_flop(sharded->graph->terms, once);
    *ret_spare = (struct op_spare){.duplicated = flop - once,
                                   .padding = once - wanted,
                                   .rows = (int64_t)(wanted - of.useful_flop)};
}

const struct op_kind op_kind_cached_attention = {
    .name = "cached attention",
    .help = "attention of new tokens to the cache: each sequence reads its own rows, once",
    .source = "the book, chapter 7, 7.1.4; Pope et al., arXiv 2211.05102, 3.3",
    .notation = {.formula = "Attention(@)",
                 .remark = "each sequence reads its own rows",
                 .remark_further = attention_remark},
    .work = work,
    .spare = spare,
    .shard = op_shard_none,
    .attends = true,
};
