/*
 * Source of the products: Dao et al., arXiv 2205.14135, and the book, chapter 4, appendix A. Source
 * of caps: Gemma 2, arXiv 2408.00118, 2. Source of biases by position: ALiBi, Press et al., arXiv
 * 2108.12409, 3.
 */
#include "workloads/ops/attention_scores.h"

#include <stdio.h>
#include <string.h>

#include "sim/base/vector.h"
#include "sim/model/model.h"

/* A head's slope · the distance of query and key, and the sum; per score. */
enum { VECTOR_BIAS = 2 };

struct attention_shape attention_shape_of(const struct graph *graph, const struct graph_op *op)
{
    const struct sharding *q = &graph->tensor[op->in[0]].at, *a = &graph->tensor[op->out[0]].at;
    const struct sharding *k = &graph->tensor[op->in[1]].at;
    bool const alone = k->dimension_count == 2; /* No head is said. */
    struct attention_shape shape = {
        .queries = sharding_local_size(&graph->terms->mesh, &q->dimension[1]),
        .keys = alone ? 1 : sharding_local_size(&graph->terms->mesh, &k->dimension[1]),
        .key_width = q->dimension[2].size,
        .value_width = a->dimension[2].size,
        .is_latent = alone,
    };
    shape.group = shape.queries / shape.keys;
    return shape;
}

/* The kernel of the softmax adds biases. Slopes are no weights: no gradient is theirs, and that of
 * a score passes unchanged. */
static uint64_t bias_flop(const struct graph_terms *terms)
{
    return terms->model->attends.biases_scores ? VECTOR_BIAS : 0;
}

struct attention_score_flop attention_score_flop(const struct graph_terms *terms)
{
    bool const caps = terms->model->attends.caps_scores;
    return (struct attention_score_flop){
        .softmax = VECTOR_SOFTMAX + bias_flop(terms),
        .softmax_backward = VECTOR_SOFTMAX_BACKWARD,
        .cap = caps ? VECTOR_CAP : 0,
        .cap_backward = caps ? VECTOR_CAP_BACKWARD : 0,
    };
}

static uint64_t scores_of(struct work_matmul score)
{
    return score.rows * score.columns * score.count;
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

struct work_matmul attention_score(const struct attention_shape *shape, uint64_t rows,
                                   uint64_t columns, uint64_t count)
{
    return (struct work_matmul){rows, shape->key_width, columns, count};
}

static void matmul_add(struct work_matmul matmul, struct work *work)
{
    work->matmul[work->matmul_count++] = matmul;
}

void attention_products_add(const struct graph_terms *terms, const struct attention_shape *shape,
                            struct work_matmul score, struct work *work)
{
    struct attention_score_flop const flop = attention_score_flop(terms);
    matmul_add(score, work);
    matmul_add(weighted(score, shape->value_width), work);
    work->vector_flop += (flop.softmax + flop.cap) * scores_of(score);
}

void attention_gradients_add(const struct graph_terms *terms, const struct attention_shape *shape,
                             struct work_matmul score, struct work *work)
{
    struct attention_score_flop const flop = attention_score_flop(terms);
    matmul_add(score, work);
    matmul_add(scored(score, shape->value_width), work);
    matmul_add(weighted(score, shape->key_width), work);
    matmul_add(weighted(score, shape->value_width), work);
    matmul_add(weighted(score, shape->key_width), work);
    uint64_t const again = flop.cap + bias_flop(terms);
    work->vector_flop += (flop.softmax_backward + again + flop.cap_backward) * scores_of(score);
}

uint64_t attention_products_flop(const struct attention_shape *shape, struct work_matmul score)
{
    struct work const forward = {.matmul = {score, weighted(score, shape->value_width)},
                                 .matmul_count = 2};
    return work_matmul_flop(&forward);
}

uint64_t attention_wanted_flop(const struct graph_terms *terms, uint64_t flop)
{
    const struct graph_dimension *heads = graph_dimension_of(terms, "N");
    return (uint64_t)((units_wide)flop * heads->useful / heads->padded);
}

uint64_t attention_served_flop(const struct graph_terms *terms, const struct attention_shape *shape,
                               units_wide scores)
{
    uint64_t const heads = graph_dimension_of(terms, "N")->useful;
    uint64_t const columns = shape->key_width + shape->value_width;
    return (uint64_t)(2 * scores * heads * columns / terms->ranks);
}

uint64_t attention_widening_flop(const struct graph *graph, tensor in, uint64_t elements)
{
    enum format const wide = graph->terms->formats.activations;
    return format_bits(graph->tensor[in].format) < format_bits(wide) ? elements : 0;
}

static void remark_add(struct op_remark *remark, const char *words)
{
    size_t const length = strlen(remark->text);
    (void)snprintf(remark->text + length, OP_REMARK_BYTES - length, "%s%s", length == 0 ? "" : "; ",
                   words);
}

struct op_remark attention_remark(const struct graph *graph)
{
    const struct graph_terms *terms = graph->terms;
    unsigned long long const window = graph_window(terms);
    struct op_remark remark = {""};
    if (window != 0) (void)snprintf(remark.text, OP_REMARK_BYTES, "%llu keys at most", window);
    if (terms->model->attends.caps_scores) remark_add(&remark, "scores are capped");
    if (terms->model->attends.biases_scores) remark_add(&remark, "scores have biases");
    return remark;
}
