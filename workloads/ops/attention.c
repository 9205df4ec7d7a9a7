/*
 * Flash attention: no T x S array in HBM (the book, chapter 4, appendix A). Q, K and V are read
 * once, the result is written once, with one fp32 a row and head.
 *
 * Inputs are Q, and one or more tensors that K and V lie in; results the heads' values, and the
 * statistics of their rows. Ranks that share a sequence gather its keys and values, and reduce
 * their gradients.
 *
 * Causal queries of such ranks are charged as the rank has them that has most; see
 * sim/step/sequences.c for which those are.
 */
#include "workloads/ops/attention.h"

#include "sim/base/units.h"
#include "sim/base/vector.h"
#include "sim/graph/op.h"

/* Scores of all heads as rows and columns of a matmul. Causal: query i has i keys, T·(T+1)/2 in
 * all. Half the rows with T + 1 columns (`pairs`) is that sum exactly, and padding the columns to
 * the MXU gives what a kernel wastes in the tiles on the diagonal. */
static struct work_matmul causal_scores(const struct graph_sequence *sequence, uint64_t pairs)
{
    uint64_t const rows = sequence->queries;
    bool const even = rows % 2 == 0;
    return (struct work_matmul){.rows = even ? rows / 2 : rows,
                                .columns = even ? pairs : (pairs + 1) / 2};
}

/* The same in a window of w keys, itself among them: w·(2T - w + 1)/2 in all, which is 2T - w + 1
 * rows of w/2 columns exactly. */
static struct work_matmul causal_window_scores(const struct graph_sequence *sequence,
                                               uint64_t window)
{
    uint64_t const rows = 2 * sequence->keys - window + 1;
    bool const even = window % 2 == 0;
    return (struct work_matmul){.rows = even ? rows : rows / 2,
                                .columns = even ? window / 2 : window};
}

static struct work_matmul scores(const struct graph *graph, const struct attention_shape *shape,
                                 uint64_t pairs)
{
    const struct graph_sequence *sequence = &graph->terms->sequence;
    const struct graph_served *served = &graph->terms->cache.prompts;
    uint64_t const window = graph_window(graph->terms);
    if (graph->terms->cache.is_there)
        return attention_score(shape, served->rows, served->columns, shape->queries);
    struct work_matmul of = {.rows = sequence->queries,
                             .columns = window != 0 ? window : sequence->keys};
    if (sequence->causal)
        of = window != 0 ? causal_window_scores(sequence, window) : causal_scores(sequence, pairs);
    return attention_score(shape, of.rows, of.columns, shape->queries * sequence->count);
}

/* Rows of scores that are multiplied for nothing, in tiles that a window's edges cut. */
static uint64_t masked_rows(const struct graph *graph, const struct work_matmul *score)
{
    const struct graph_sequence *sequence = &graph->terms->sequence;
    uint64_t const edge = sequence->tile_columns, window = graph_window(graph->terms);
    if (window == 0 || !sequence->causal || graph->terms->cache.is_there) return 0;
    uint64_t const blocks = units_ceil_divide(sequence->keys, edge);
    uint64_t before = units_ceil_divide(window - 1, edge);
    if (before >= blocks) before = blocks - 1;
    units_wide const tiles = (units_wide)(before + 1) * (2 * blocks - before) / 2;
    uint64_t const wide = units_round_up(score->columns, edge);
    uint64_t const all = (uint64_t)((tiles * edge * edge + wide - 1) / wide);
    return all > score->rows ? all - score->rows : 0;
}

static uint64_t elements(const struct graph *graph, tensor of)
{
    return graph_elements(graph, &graph->tensor[of].at, 0);
}

uint64_t attention_key_bytes(const struct graph *graph, const struct graph_op *op)
{
    uint64_t sum = 0;
    for (uint8_t i = 1; i < op->in_count; i++)
        sum += graph_tensor_bytes(&graph->tensor[op->in[i]],
                                  elements(graph, op->in[i]) * graph->terms->sequence.parts);
    return sum;
}

/* FLOP that widen what a cache has in a narrower format. */
static uint64_t widening_flop(const struct graph *graph, const struct graph_op *op)
{
    uint64_t const parts = graph->terms->sequence.parts;
    uint64_t sum = 0;
    for (uint8_t i = 1; i < op->in_count; i++)
        sum += attention_widening_flop(graph, op->in[i], elements(graph, op->in[i]) * parts);
    return sum;
}

/* FLOP of the two forward products, of the rank that has most; of the mean one; of heads that are
 * no padding; and of these, without rows that not every rank has. */
struct forward_flop {
    uint64_t most, mean, wanted, useful;
};

static struct forward_flop forward_flop_of(const struct graph *graph,
                                           const struct attention_shape *shape)
{
    const struct graph_terms *terms = graph->terms;
    const struct graph_sequence *sequence = &terms->sequence;
    const struct graph_cache *cache = &terms->cache;
    uint64_t const mean = attention_products_flop(shape, scores(graph, shape, sequence->keys + 1));
    uint64_t const wanted = attention_wanted_flop(terms, mean);
    return (struct forward_flop){
        .most = attention_products_flop(shape, scores(graph, shape, sequence->pairs)),
        .mean = mean,
        .wanted = wanted,
        .useful =
            cache->is_there ? attention_served_flop(terms, shape, cache->prompts.scores) : wanted,
    };
}

static struct work forward(const struct graph *graph, const struct graph_op *op,
                           const struct attention_shape *shape, struct work_matmul score)
{
    enum format const format = graph->terms->formats.activations;
    struct work work = {
        .vector_flop = op_rotated_flop(graph, op) + widening_flop(graph, op),
        .hbm_read_bytes =
            format_bytes(format, elements(graph, op->in[0])) + attention_key_bytes(graph, op),
        .hbm_write_bytes = format_bytes(format, elements(graph, op->out[0])) +
                           format_bytes(FORMAT_FP32, elements(graph, op->out[1])),
    };
    attention_products_add(graph->terms, shape, score, &work);
    return work;
}

static struct work backward(const struct graph *graph, const struct graph_op *op,
                            const struct attention_shape *shape, struct work_matmul score)
{
    enum format const format = graph->terms->formats.activations;
    uint64_t const query = format_bytes(format, elements(graph, op->in[0]));
    uint64_t const output = format_bytes(format, elements(graph, op->out[0]));
    uint64_t const keys = attention_key_bytes(graph, op);
    struct work work = {
        .vector_flop = op_rotated_flop(graph, op) + VECTOR_ROW_DOT * elements(graph, op->out[0]),
        .hbm_read_bytes =
            query + 2 * output + keys + format_bytes(FORMAT_FP32, elements(graph, op->out[1])),
        .hbm_write_bytes = query + keys,
    };
    attention_gradients_add(graph->terms, shape, score, &work);
    return work;
}

/* The causal sequences that a kernel has in a table with as many keys a query, in the mean, and as
 * many queries. Of a ring each part is a kernel, and in all of them but one each query has all keys
 * that the kernel reads for it. */
static struct work_attended attended_of(const struct graph *graph, const struct graph_op *op,
                                        const struct attention_shape *shape,
                                        const struct work_matmul *score)
{
    const struct graph_sequence *sequence = &graph->terms->sequence;
    const struct graph_served *served = &graph->terms->cache.prompts;
    bool const serves = graph->terms->cache.is_there;
    uint64_t const asked = served->rows * (served->paired ? 2 : 1);
    uint64_t const queries = serves ? asked : sequence->queries,
                   count = serves ? 1 : sequence->count;
    uint64_t const parts = sequence->rings ? sequence->parts : 1;
    units_wide const pairs = (units_wide)score->rows * score->columns;
    uint64_t const twice = (uint64_t)((2 * pairs + queries * parts - 1) / (queries * parts));
    uint64_t const tokens = twice > 1 ? twice - 1 : 1;
    units_wide const rows = (units_wide)shape->keys * count * queries;
    bool const is_full = (!sequence->causal || parts > 1) && graph_window(graph->terms) == 0;
    uint64_t const keys = is_full ? units_ceil_divide(twice, 2) : 0;
    units_wide const queries_of_all = (units_wide)shape->queries * count * queries;
    return (struct work_attended){
        .tokens = tokens,
        .heads = (uint64_t)((rows + tokens - 1) / tokens),
        .group = units_ceil_divide(shape->queries, shape->keys),
        .key_width = shape->key_width,
        .value_width = shape->value_width,
        .stored = serves ? graph->tensor[op->in[1]].format : graph->terms->formats.activations,
        .is_other = !sequence->causal || graph_window(graph->terms) != 0 || sequence->parts > 1,
        .full_tokens = keys,
        .full_heads = is_full ? (uint64_t)((queries_of_all + keys - 1) / keys) : 0,
        .full_is_other = is_full && (sequence->causal || sequence->parts > 1),
    };
}

void attention_work(const struct graph_sharded *sharded, const struct graph_op *op,
                    enum op_pass pass, struct work *ret_work)
{
    const struct graph *graph = sharded->graph;
    struct attention_shape const shape = attention_shape_of(graph, op);
    struct work_matmul const score = scores(graph, &shape, graph->terms->sequence.pairs);
    uint64_t const useful = forward_flop_of(graph, &shape).useful;
    bool const is_forward = op_is_forward(pass);
    *ret_work = (is_forward ? forward : backward)(graph, op, &shape, score);
    ret_work->math_format = graph->terms->formats.activations;
    ret_work->masked_rows = masked_rows(graph, &score);
    if (graph->terms->policy.names_kernels) {
        ret_work->kernel = is_forward ? WORK_KERNEL_ATTENTION : WORK_KERNEL_ATTENTION_BACKWARD;
        ret_work->attended[0] = attended_of(graph, op, &shape, &score);
    }
    if (pass == OP_FORWARD) ret_work->useful_flop = useful;
    if (!is_forward) ret_work->useful_flop = 2 * useful;
}

void attention_spare(const struct graph_sharded *sharded, const struct graph_op *op,
                     enum op_pass pass, struct op_spare *ret_spare)
{
    const struct graph *graph = sharded->graph;
    struct attention_shape const shape = attention_shape_of(graph, op);
    struct forward_flop const flop = forward_flop_of(graph, &shape);
    uint64_t const times = pass == OP_FORWARD ? 1 : op_is_forward(pass) ? 0 : 2;
    struct work all;
    attention_work(sharded, op, pass, &all);
    *ret_spare = (struct op_spare){
        .padding = times * (flop.mean - flop.wanted),
        .rows = (int64_t)(times * (flop.wanted - flop.useful)),
        .waiting = times * (flop.most - flop.mean),
        .again = times == 0 ? 0 : work_matmul_flop(&all) - times * flop.most,
    };
}

uint8_t attention_reads(const struct graph *graph, const struct graph_op *op, enum op_pass pass,
                        tensor ret_reads[OP_READS_MAX])
{
    uint8_t count = 0;
    (void)graph;
    (void)pass;
    for (uint8_t i = 0; i < op->in_count; i++) ret_reads[count++] = op->in[i];
    for (uint8_t i = 0; i < op->out_count; i++) ret_reads[count++] = op->out[i];
    return count;
}

static uint8_t moves(const struct graph_sharded *sharded, const struct graph_op *op,
                     enum op_pass pass, struct op_move ret_moves[OP_MOVES_MAX])
{
    const struct graph *graph = sharded->graph;
    if (graph->terms->sequence.parts == 1) return 0;
    bool const gathers = op_is_forward(pass);
    ret_moves[0] = (struct op_move){
        .kind = gathers ? COLLECTIVE_ALL_GATHER : COLLECTIVE_REDUCE_SCATTER,
        .axis = OP_AXIS_SEQUENCE,
        .format = graph->terms->formats.activations,
        .bytes = attention_key_bytes(graph, op),
        .bare = true,
        .before = gathers,
    };
    for (uint8_t i = 1; i < op->in_count; i++) op_move_tensor(&ret_moves[0], op->in[i], !gathers);
    return 1;
}

const struct op_kind op_kind_attention = {
    .name = "attention",
    .help = "flash attention: two products forward, five backward, scores never in HBM",
    .source = "Dao et al., arXiv 2205.14135; the book, chapter 4, appendix A",
    .notation = {.formula = "Attention(@)",
                 .remark = "flash: no T x S array in HBM",
                 .remark_further = attention_remark,
                 .remark_backward = "computes the scores again"},
    .work = attention_work,
    .reads = attention_reads,
    .moves = moves,
    .spare = attention_spare,
    .attends = true,
    .shares_sequence = true,
};
