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

/* N and H of Q, and the width of a head's values. */
struct heads {
    const struct graph_dimension *all;
    uint64_t count; /* On this chip. */
    uint64_t width, value_width;
};

static struct heads heads_of(const struct graph *graph, const struct graph_op *op)
{
    const struct sharding *q = &graph->tensor[op->in[0]].at, *a = &graph->tensor[op->out[0]].at;
    return (struct heads){
        .all = graph_dimension_of(graph->terms, q->dimension[1].name),
        .count = sharding_local_size(&graph->terms->mesh, &q->dimension[1]),
        .width = q->dimension[2].size,
        .value_width = a->dimension[2].size,
    };
}

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
static struct work_matmul causal_window_scores(const struct graph_sequence *sequence)
{
    uint64_t const window = sequence->window, rows = 2 * sequence->keys - window + 1;
    bool const even = window % 2 == 0;
    return (struct work_matmul){.rows = even ? rows : rows / 2,
                                .columns = even ? window / 2 : window};
}

static struct work_matmul scores(const struct graph *graph, const struct heads *heads,
                                 uint64_t pairs)
{
    const struct graph_sequence *sequence = &graph->terms->sequence;
    const struct graph_served *served = &graph->terms->cache.prompts;
    bool const windowed = sequence->window != 0;
    if (graph->terms->cache.is_there)
        return (struct work_matmul){served->rows, heads->width, served->columns, heads->count};
    struct work_matmul of = {.rows = sequence->queries,
                             .columns = windowed ? sequence->window : sequence->keys};
    if (sequence->causal)
        of = windowed ? causal_window_scores(sequence) : causal_scores(sequence, pairs);
    of.inner = heads->width;
    of.count = heads->count * sequence->count;
    return of;
}

/* Rows of scores that are multiplied for nothing, in tiles that a window's edges cut. */
static uint64_t masked_rows(const struct graph *graph, const struct work_matmul *score)
{
    const struct graph_sequence *sequence = &graph->terms->sequence;
    uint64_t const edge = sequence->tile_columns;
    if (sequence->window == 0 || !sequence->causal || graph->terms->cache.is_there) return 0;
    uint64_t const blocks = units_ceil_divide(sequence->keys, edge);
    uint64_t before = units_ceil_divide(sequence->window - 1, edge);
    if (before >= blocks) before = blocks - 1;
    units_wide const tiles = (units_wide)(before + 1) * (2 * blocks - before) / 2;
    uint64_t const wide = units_round_up(score->columns, edge);
    uint64_t const all = (uint64_t)((tiles * edge * edge + wide - 1) / wide);
    return all > score->rows ? all - score->rows : 0;
}

/* The same scores as the left operand, or as the result of a product over another width. */
static struct work_matmul weighted(struct work_matmul score, uint64_t width)
{
    return (struct work_matmul){score.rows, score.columns, width, score.count};
}

static struct work_matmul scored(struct work_matmul score, uint64_t width)
{
    return (struct work_matmul){score.rows, width, score.columns, score.count};
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
    enum format const wide = graph->terms->formats.activations;
    uint64_t sum = 0;
    for (uint8_t i = 1; i < op->in_count; i++)
        if (format_bits(graph->tensor[op->in[i]].format) < format_bits(wide))
            sum += elements(graph, op->in[i]);
    return sum * graph->terms->sequence.parts;
}

uint64_t attention_served_flop(const struct graph *graph, units_wide scores, uint64_t columns)
{
    uint64_t const heads = graph_dimension_of(graph->terms, "N")->useful;
    return (uint64_t)(2 * scores * heads * columns / graph->terms->ranks);
}

uint64_t attention_score_flop(const struct graph *graph, bool backward)
{
    uint64_t const capped = graph->terms->sequence.capped ? 1 : 0;
    return backward ? VECTOR_SOFTMAX_BACKWARD + capped * (VECTOR_CAP + VECTOR_CAP_BACKWARD)
                    : VECTOR_SOFTMAX + capped * VECTOR_CAP;
}

/* FLOP of the two forward products, of the rank that has most; of the mean one; of heads that are
 * no padding; and of these, without rows that not every rank has. */
struct forward_flop {
    uint64_t most, mean, wanted, useful;
};

static uint64_t products_flop(const struct heads *heads, struct work_matmul score)
{
    struct work const forward = {.matmul = {score, weighted(score, heads->value_width)},
                                 .matmul_count = 2};
    return work_matmul_flop(&forward);
}

static struct forward_flop forward_flop_of(const struct graph *graph, const struct heads *heads)
{
    const struct graph_sequence *sequence = &graph->terms->sequence;
    const struct graph_cache *cache = &graph->terms->cache;
    uint64_t const mean = products_flop(heads, scores(graph, heads, sequence->keys + 1));
    uint64_t const wanted = (uint64_t)((units_wide)mean * heads->all->useful / heads->all->padded);
    uint64_t const columns = heads->width + heads->value_width;
    return (struct forward_flop){
        .most = products_flop(heads, scores(graph, heads, sequence->pairs)),
        .mean = mean,
        .wanted = wanted,
        .useful =
            cache->is_there ? attention_served_flop(graph, cache->prompts.scores, columns) : wanted,
    };
}

static struct work forward(const struct graph *graph, const struct graph_op *op,
                           const struct heads *heads, struct work_matmul score)
{
    enum format const format = graph->terms->formats.activations;
    return (struct work){
        .matmul = {score, weighted(score, heads->value_width)},
        .matmul_count = 2,
        .vector_flop =
            op_rotated_flop(graph, op) + widening_flop(graph, op) +
            attention_score_flop(graph, false) * score.rows * score.columns * score.count,
        .hbm_read_bytes =
            format_bytes(format, elements(graph, op->in[0])) + attention_key_bytes(graph, op),
        .hbm_write_bytes = format_bytes(format, elements(graph, op->out[0])) +
                           format_bytes(FORMAT_FP32, elements(graph, op->out[1])),
    };
}

/* S again, dP = dO·V; dQ = dS·K, dV = P·dO, dK = dS·Q. */
static struct work backward(const struct graph *graph, const struct graph_op *op,
                            const struct heads *heads, struct work_matmul score)
{
    enum format const format = graph->terms->formats.activations;
    struct work_matmul const weight = weighted(score, heads->width);
    struct work_matmul const value = weighted(score, heads->value_width);
    uint64_t const query = format_bytes(format, elements(graph, op->in[0]));
    uint64_t const output = format_bytes(format, elements(graph, op->out[0]));
    uint64_t const keys = attention_key_bytes(graph, op);
    return (struct work){
        .matmul = {score, scored(score, heads->value_width), weight, value, weight},
        .matmul_count = 5,
        .vector_flop = op_rotated_flop(graph, op) + VECTOR_ROW_DOT * elements(graph, op->out[0]) +
                       attention_score_flop(graph, true) * score.rows * score.columns * score.count,
        .hbm_read_bytes =
            query + 2 * output + keys + format_bytes(FORMAT_FP32, elements(graph, op->out[1])),
        .hbm_write_bytes = query + keys,
    };
}

/* The causal sequences that a kernel has in a table with as many keys a query, in the mean, and as
 * many queries. Of a ring each part is a kernel. */
static struct work_attended attended_of(const struct graph *graph, const struct graph_op *op,
                                        const struct heads *heads, const struct work_matmul *score)
{
    const struct graph_sequence *sequence = &graph->terms->sequence;
    const struct sharding *k = &graph->tensor[op->in[1]].at;
    uint64_t const keys_heads =
        k->dimension_count > 2 ? sharding_local_size(&graph->terms->mesh, &k->dimension[1]) : 1;
    const struct graph_served *served = &graph->terms->cache.prompts;
    bool const serves = graph->terms->cache.is_there;
    uint64_t const asked = served->rows * (served->paired ? 2 : 1);
    uint64_t const queries = serves ? asked : sequence->queries,
                   count = serves ? 1 : sequence->count;
    uint64_t const parts = sequence->rings ? sequence->parts : 1;
    units_wide const pairs = (units_wide)score->rows * score->columns;
    uint64_t const twice = (uint64_t)((2 * pairs + queries * parts - 1) / (queries * parts));
    uint64_t const tokens = twice > 1 ? twice - 1 : 1;
    units_wide const rows = (units_wide)keys_heads * count * queries;
    return (struct work_attended){
        .tokens = tokens,
        .heads = (uint64_t)((rows + tokens - 1) / tokens),
        .group = units_ceil_divide(heads->count, keys_heads),
        .key_width = heads->width,
        .value_width = heads->value_width,
        .stored = serves ? graph->tensor[op->in[1]].format : graph->terms->formats.activations,
        .is_other = !sequence->causal || sequence->window != 0 || sequence->parts > 1,
    };
}

void attention_work(const struct graph_sharded *sharded, const struct graph_op *op,
                    enum op_pass pass, struct work *ret_work)
{
    const struct graph *graph = sharded->graph;
    struct heads const heads = heads_of(graph, op);
    struct work_matmul const score = scores(graph, &heads, graph->terms->sequence.pairs);
    uint64_t const useful = forward_flop_of(graph, &heads).useful;
    bool const is_forward = op_is_forward(pass);
    *ret_work = (is_forward ? forward : backward)(graph, op, &heads, score);
    ret_work->math_format = graph->terms->formats.activations;
    ret_work->masked_rows = masked_rows(graph, &score);
    if (graph->terms->policy.names_kernels) {
        ret_work->kernel = is_forward ? WORK_KERNEL_ATTENTION : WORK_KERNEL_ATTENTION_BACKWARD;
        ret_work->attended[0] = attended_of(graph, op, &heads, &score);
    }
    if (pass == OP_FORWARD) ret_work->useful_flop = useful;
    if (!is_forward) ret_work->useful_flop = 2 * useful;
}

void attention_spare(const struct graph_sharded *sharded, const struct graph_op *op,
                     enum op_pass pass, struct op_spare *ret_spare)
{
    const struct graph *graph = sharded->graph;
    struct heads const heads = heads_of(graph, op);
    struct forward_flop const flop = forward_flop_of(graph, &heads);
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
        .before = gathers,
    };
    return 1;
}

const struct op_kind op_kind_attention = {
    .name = "attention",
    .help = "flash attention: two products forward, five backward, scores never in HBM",
    .source = "Dao et al., arXiv 2205.14135; the book, chapter 4, appendix A",
    .notation = {.formula = "Attention(@)",
                 .remark = "flash: no T x S array in HBM",
                 .remark_backward = "computes the scores again"},
    .work = attention_work,
    .reads = attention_reads,
    .moves = moves,
    .spare = attention_spare,
    .shares_sequence = true,
};
