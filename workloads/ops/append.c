/*
 * Keys and values of a pass' tokens, written behind those of earlier tokens in the cache, in the
 * format of the cache. Keys are rotated by position before. Measured kernels of attention may have
 * the write in their time.
 */
#include "sim/graph/op.h"

/* Elements of the rows that this rank keeps: as many are read and written. */
static uint64_t elements_of(const struct graph *graph, const struct graph_op *op)
{
    uint64_t columns = 0;
    for (uint8_t i = 0; i < op->in_count; i++) {
        const struct sharding *at = &graph->tensor[op->in[i]].at;
        uint64_t const rows = sharding_local_size(&graph->terms->mesh, &at->dimension[0]);
        columns += graph_elements(graph, at, 0) / rows;
    }
    return columns * graph->terms->cache.kept_rows;
}

static void work(const struct graph_sharded *sharded, const struct graph_op *op, enum op_pass pass,
                 struct work *ret_work)
{
    const struct graph *graph = sharded->graph;
    const struct graph_formats *formats = &graph->terms->formats;
    uint64_t const elements = elements_of(graph, op);
    (void)pass;
    *ret_work = (struct work){
        .math_format = formats->activations,
        .vector_flop = op_rotated_flop(graph, op),
        .hbm_read_bytes = format_bytes(formats->activations, elements),
        .hbm_write_bytes = format_stored_bytes(formats->cache, elements),
    };
    if (graph->terms->cache.appends_within) ret_work->kernel = WORK_KERNEL_WITHIN_ATTENTION;
}

const struct op_kind op_kind_append = {
    .name = "append",
    .help = "keys and values of new tokens, after those in the cache",
    .source = "the book, chapter 7, 7.1; reshape_and_cache of vLLM, arXiv 2309.06180",
    .notation = {.formula = "Append(%)", .remark = "after the rows of earlier tokens"},
    .work = work,
    .shard = op_shard_none,
};
