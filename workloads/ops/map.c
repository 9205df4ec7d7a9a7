/* A function of each element, of one or more inputs: a gate, a router's softmax. */
#include "sim/graph/op.h"

static void work(const struct graph_sharded *sharded, const struct graph_op *op, enum op_pass pass,
                 struct work *ret_work)
{
    const struct graph_map *map = &op->as.map;
    struct op_bytes read = {{0}};
    bool const forward = op_is_forward(pass);
    uint64_t const flop = forward ? map->flop : map->flop_backward;
    if (!forward && map->reads_inputs) op_bytes_ins(sharded, op, false, &read);
    if (!forward && map->reads_result) op_bytes_outs(sharded, op, false, &read);
    uint64_t const elements = op_out_elements(sharded, op, 0);
    *ret_work = op_streamed(sharded, op, pass, read, flop * elements);
    op_function(sharded->graph, map->function, pass, elements, ret_work);
}

static uint8_t reads(const struct graph *graph, const struct graph_op *op, enum op_pass pass,
                     tensor ret_reads[OP_READS_MAX])
{
    uint8_t count = 0;
    (void)graph;
    (void)pass;
    for (uint8_t i = 0; op->as.map.reads_inputs && i < op->in_count; i++)
        ret_reads[count++] = op->in[i];
    if (op->as.map.reads_result) ret_reads[count++] = op->out[0];
    return count;
}

static struct op_fused fused(const struct graph_op *op)
{
    const struct graph_map *map = &op->as.map;
    SIM_ASSERT(!map->reads_result); /* It never lies in memory. */
    return (struct op_fused){map->flop, map->flop_backward, map->reads_inputs};
}

static enum recipe_array cast_as(const struct graph *graph)
{
    (void)graph;
    return RECIPE_FUNCTION;
}

const struct op_kind op_kind_map = {
    .name = "map",
    .help = "a function of each element, with its FLOP each way",
    .source = "counted from the formulas; the book, chapter 4, 4.2.4",
    .notation = {.formula = "$(%)"},
    .work = work,
    .reads = reads,
    .cast_as = cast_as,
    .fused = fused,
};
