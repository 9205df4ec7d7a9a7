/*
 * Rows of a table that lies in parts: over tp a rank has a part of the vocabulary, and zeros in the
 * place of rows that others have, so what it writes is a sum that is due. Rows of further tables
 * come by position and are added. Tokens are numbers, of which nothing is counted.
 *
 * Backward it is a scatter-add: rows are read and written where they lie, in an array that is first
 * set to zero unless something has left a gradient there. In training rows by position are all of
 * their table: sequences go through it from its first row on, and it is read once for all. In
 * inference a token reads a row of it, as long as there are fewer tokens than rows.
 */
#include "sim/graph/op.h"

/* Of all rows those that this rank has: as many as it has once the sum is reduced. */
static uint64_t own_elements(const struct graph *graph, const struct graph_op *op)
{
    return graph_elements(graph, &graph->tensor[op->out[0]].at, 0);
}

/* Elements of the tables that come by position. */
static uint64_t position_elements(const struct graph *graph, const struct graph_op *op)
{
    uint64_t const rows = own_elements(graph, op);
    uint64_t elements = 0;
    for (uint8_t i = 1; i < op->weight_count; i++) {
        uint64_t const table = graph_weight_elements(graph, op->weight[i]);
        elements += graph->terms->cache.is_there && rows < table ? rows : table;
    }
    return elements;
}

static struct work forward(const struct graph_sharded *sharded, const struct graph_op *op)
{
    const struct graph *graph = sharded->graph;
    uint64_t const read = own_elements(graph, op) + position_elements(graph, op);
    struct op_bytes written = {{0}};
    op_bytes_outs(sharded, op, false, &written);
    return (struct work){
        .math_format = graph->terms->formats.activations,
        .hbm_read_bytes = graph_tensor_bytes(&graph->tensor[op->weight[0]], read),
        .hbm_write_bytes = op_bytes_sum(&written),
    };
}

static struct work backward(const struct graph_sharded *sharded, const struct graph_op *op)
{
    const struct graph *graph = sharded->graph;
    const struct graph_tensor *table = &graph->tensor[op->weight[0]];
    uint64_t const rows = own_elements(graph, op), positions = position_elements(graph, op);
    uint64_t const cleared = table->adds ? 0 : graph_weight_elements(graph, op->weight[0]);
    bool const adds = op->weight_count > 1 && graph->tensor[op->weight[1]].adds;
    enum format const given = graph->tensor[op->out[0]].gradient;
    return (struct work){
        .math_format = graph->terms->formats.activations,
        .vector_flop = rows,
        .hbm_read_bytes = format_bytes(given, rows) + format_bytes(table->gradient, rows) +
                          (adds ? format_bytes(table->gradient, positions) : 0),
        .hbm_write_bytes = format_bytes(table->gradient, rows) +
                           format_bytes(table->gradient, cleared) +
                           format_bytes(table->gradient, positions),
    };
}

static void work(const struct graph_sharded *sharded, const struct graph_op *op, enum op_pass pass,
                 struct work *ret_work)
{
    *ret_work = (op_is_forward(pass) ? forward : backward)(sharded, op);
}

static struct graph_shard shard(const struct graph *graph, const struct graph_op *op)
{
    const struct sharding *table = &graph->tensor[op->weight[0]].at;
    struct sharding rows = *table;
    rows.dimension_count = 1;
    uint32_t const due = sharding_axes(&rows) & graph->terms->axis_y;
    uint32_t const split = sharding_axes(&graph->tensor[op->out[0]].at);
    return (struct graph_shard){.scatter = due & split, .all_reduce = due & ~split};
}

const struct op_kind op_kind_lookup = {
    .name = "lookup",
    .help = "rows of a table, and of others by position; its gradient is a scatter-add",
    .source = "Megatron-LM, arXiv 1909.08053, 3; counted from the formulas",
    .notation = {.formula = "Lookup(&)", .remark = "a row for each token"},
    .work = work,
    .shard = shard,
    .weights_apart = true,
};
