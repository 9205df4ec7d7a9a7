/*
 * Products of weights, in one kernel: forward, and both gradients. An input that is fused is
 * computed on the way, from its own inputs, and so is its gradient.
 */
#include "sim/base/units.h"
#include "sim/graph/casts.h"
#include "sim/graph/op.h"

/* A product on one chip. A dimension of the weight that left has is summed over, unless the result
 * has it too: then it counts products. One that neither left nor the result has counts matrices,
 * those of experts without rows left out; for each of the others left has as many rows. */
struct shape {
    struct work_matmul matmul;
    uint64_t rows;     /* Of left. */
    uint64_t filled;   /* These, where each of several matrices has an even part, rounded up. */
    units_wide useful; /* Rows, inner and columns without padding, of all ranks. */
};

static struct shape shape_of(const struct graph_sharded *sharded, const struct graph_op *op,
                             const struct graph_product *product)
{
    const struct graph *graph = sharded->graph;
    const struct graph_terms *terms = graph->terms;
    const struct sharding left =
        sharding_gathered(&graph->tensor[product->left].at, graph_shard_of(sharded, op)->gather);
    const struct sharding weight =
        sharding_gathered(&graph->tensor[product->weight].at, terms->axis_x);
    const struct sharding *out = &graph->tensor[product->out].at;
    struct shape shape = {{1, 1, 1, 1}, 1, 1, 1};
    uint64_t products = 1;
    for (uint32_t d = 0; d < left.dimension_count; d++) {
        if (sharding_has(&weight, left.dimension[d].name)) continue;
        shape.matmul.rows *= sharding_local_size(&terms->mesh, &left.dimension[d]);
        shape.useful *= graph_dimension_of(terms, left.dimension[d].name)->useful;
    }
    for (uint32_t d = 0; d < weight.dimension_count; d++) {
        const struct sharding_dimension *at = &weight.dimension[d];
        bool const in_left = sharding_has(&left, at->name), in_out = sharding_has(out, at->name);
        uint64_t size = sharding_local_size(&terms->mesh, at);
        if (!in_left && !in_out) size = graph_asked(graph, product->weight, size);
        *(in_left && in_out ? &products
          : in_left         ? &shape.matmul.inner
          : in_out          ? &shape.matmul.columns
                            : &shape.matmul.count) *= size;
        if (in_left || in_out) shape.useful *= graph_dimension_of(terms, at->name)->useful;
    }
    shape.rows = shape.matmul.rows;
    shape.matmul.rows = units_ceil_divide(shape.rows, shape.matmul.count);
    shape.filled = shape.matmul.rows * shape.matmul.count;
    shape.matmul.count *= products;
    return shape;
}

static bool alike(const struct work_matmul *a, const struct work_matmul *b)
{
    return a->rows == b->rows && a->inner == b->inner && a->columns == b->columns;
}

/* One more product. It is further columns of the one before, if they are joined; the same once
 * more, if both have one left operand and one shape; else a product of its own. */
static void product_add(struct work *work, const struct work_matmul *product, bool joins,
                        bool same_left)
{
    struct work_matmul *last =
        work->matmul_count == 0 ? NULL : &work->matmul[work->matmul_count - 1];
    if (same_left && joins) {
        SIM_ASSERT(last->rows == product->rows && last->inner == product->inner &&
                   last->count == product->count);
        last->columns += product->columns;
    } else if (same_left && alike(last, product)) {
        last->count += product->count;
    } else {
        SIM_ASSERT(work->matmul_count < WORK_MATMULS_MAX);
        work->matmul[work->matmul_count++] = *product;
    }
}

static struct work products(const struct graph_sharded *sharded, const struct graph_op *op,
                            bool useful)
{
    const struct graph_matmul *matmul = &op->as.matmul;
    struct work work = {.math_format = matmul->math};
    units_wide flop = 0;
    for (uint8_t i = 0; i < op->product_count; i++) {
        struct shape const shape = shape_of(sharded, op, &matmul->product[i]);
        bool const same_left = i > 0 && matmul->product[i].left == matmul->product[i - 1].left;
        flop += 2 * shape.useful;
        product_add(&work, &shape.matmul, matmul->product[i].joined, same_left);
    }
    if (useful) work.useful_flop = (uint64_t)(flop / sharded->graph->terms->ranks);
    return work;
}

/* The gradients of the inputs and of the weights: as many products each. */
static void both_set(struct work *work)
{
    uint32_t const count = work->matmul_count;
    SIM_ASSERT(2 * count <= WORK_MATMULS_MAX);
    for (uint32_t i = 0; i < count; i++) work->matmul[work->matmul_count++] = work->matmul[i];
    work->useful_flop *= 2;
}

static uint64_t weight_bytes(const struct graph_sharded *sharded, const struct graph_op *op,
                             bool gradient)
{
    const struct graph *graph = sharded->graph;
    struct op_bytes bytes = {{0}};
    for (uint8_t i = 0; i < op->weight_count; i++) {
        const struct graph_tensor *at = &graph->tensor[op->weight[i]];
        bytes.elements[gradient ? at->gradient : op_weight_format(graph, op, op->weight[i])] +=
            gradient ? graph_weight_elements(graph, op->weight[i])
                     : graph_read_elements(graph, op->weight[i]);
    }
    return gradient ? op_bytes_sum(&bytes) : op_bytes_stored_sum(&bytes);
}

/* Weights that are known before the product begins: not those of experts, which its tokens choose,
 * and none that are gathered. */
static uint64_t early_bytes(const struct graph_sharded *sharded, const struct graph_op *op)
{
    const struct graph *graph = sharded->graph;
    struct op_bytes bytes = {{0}};
    for (uint8_t i = 0; i < op->weight_count && graph->terms->cache.prefetches; i++) {
        const struct graph_tensor *at = &graph->tensor[op->weight[i]];
        if (!at->grouped && (sharding_axes(&at->at) & graph->terms->axis_x) == 0)
            bytes.elements[op_weight_format(graph, op, op->weight[i])] +=
                graph_read_elements(graph, op->weight[i]);
    }
    return op_bytes_stored_sum(&bytes);
}

static bool is_left(const struct graph_op *op, tensor of)
{
    const struct graph_matmul *matmul = &op->as.matmul;
    for (uint8_t i = 0; i < op->product_count; i++)
        if (matmul->product[i].left == of) return true;
    return false;
}

/* Weights in another format than the numbers that the unit multiplies are widened or narrowed on
 * the way. */
static uint64_t converted(const struct graph_sharded *sharded, const struct graph_op *op)
{
    const struct graph *graph = sharded->graph;
    enum format const math = op->as.matmul.math;
    uint64_t elements = 0;
    for (uint8_t i = 0; i < op->weight_count; i++) {
        enum format const format = op_weight_format(graph, op, op->weight[i]);
        if (format_bits(format) < format_bits(math) || op_narrows(graph, format, math))
            elements += graph_read_elements(graph, op->weight[i]);
    }
    return elements;
}

/* And so are activations that lie wider. */
static uint64_t narrowed(const struct graph_sharded *sharded, const struct graph_op *op)
{
    const struct graph *graph = sharded->graph;
    uint64_t elements = 0;
    for (uint8_t i = 0; i < op->in_count; i++)
        if (is_left(op, op->in[i]) &&
            op_narrows(graph, graph->tensor[op->in[i]].format, op->as.matmul.math))
            elements += op_in_elements(sharded, op, i);
    return elements;
}

static uint64_t all_bytes(const struct graph_sharded *sharded, const struct graph_op *op,
                          bool results, bool gradient)
{
    struct op_bytes bytes = {{0}};
    (results ? op_bytes_outs : op_bytes_ins)(sharded, op, gradient, &bytes);
    return op_bytes_sum(&bytes);
}

/* What an input costs on the way. One that is not computed so costs nothing. */
static struct op_fused fused_of(const struct graph *graph, tensor in)
{
    const struct graph_op *fused = graph_fused(graph, in);
    return fused == NULL ? (struct op_fused){0, 0, false} : fused->kind->fused(fused);
}

/* FLOP of inputs that are computed on the way, or of their gradients. */
static uint64_t fused_flop(const struct graph_sharded *sharded, const struct graph_op *op,
                           bool backward)
{
    uint64_t flop = 0;
    for (uint8_t i = 0; i < op->in_count; i++) {
        struct op_fused const fused = fused_of(sharded->graph, op->in[i]);
        flop += (backward ? fused.flop_backward : fused.flop) * op_in_elements(sharded, op, i);
    }
    return flop;
}

/* Whether a gradient reads an input: that of the weights does, and that of a fused one may. */
static bool input_is_read(const struct graph *graph, const struct graph_op *op, tensor in,
                          bool gives_weight)
{
    return is_left(op, in) && (gives_weight || fused_of(graph, in).reads_inputs);
}

static uint64_t lefts_bytes(const struct graph_sharded *sharded, const struct graph_op *op,
                            bool gives_weight)
{
    struct op_bytes bytes = {{0}};
    for (uint8_t i = 0; i < op->in_count; i++)
        if (input_is_read(sharded->graph, op, op->in[i], gives_weight))
            op_bytes_in(sharded, op, i, false, &bytes);
    return op_bytes_sum(&bytes);
}

/* Gradients of copies add up to that of what is copied. */
static uint64_t copies(const struct graph_sharded *sharded, const struct graph_op *op)
{
    const struct graph *graph = sharded->graph;
    uint64_t elements = 0;
    for (uint8_t i = 0; i < op->as.matmul.copy_count; i++)
        elements += graph_elements(graph, &graph->tensor[op->as.matmul.copy[i].out].at, 0);
    return elements;
}

static void weight_gradient(const struct graph_sharded *sharded, const struct graph_op *op,
                            struct work *work)
{
    bool const adds = sharded->graph->tensor[op->weight[0]].adds;
    uint64_t const gradient = weight_bytes(sharded, op, true);
    work->vector_flop += fused_flop(sharded, op, false);
    work->hbm_read_bytes += lefts_bytes(sharded, op, true) + (adds ? gradient : 0);
    work->hbm_write_bytes += gradient;
}

static void input_gradient(const struct graph_sharded *sharded, const struct graph_op *op,
                           struct work *work)
{
    work->vector_flop +=
        fused_flop(sharded, op, true) + copies(sharded, op) + converted(sharded, op);
    work->hbm_read_bytes += weight_bytes(sharded, op, false);
    work->hbm_read_bytes += lefts_bytes(sharded, op, false);
    work->hbm_write_bytes += all_bytes(sharded, op, false, true);
}

static enum work_kernel kernel_of(enum op_pass pass)
{
    return op_is_forward(pass)         ? WORK_KERNEL_FORWARD
           : pass == OP_BOTH_GRADIENTS ? WORK_KERNEL_GRADIENTS
           : op_gives_weight(pass)     ? WORK_KERNEL_WEIGHT
                                       : WORK_KERNEL_INPUT;
}

/* One product for each of several experts, in kernels that are not those of a whole layer. */
static bool is_of_experts(const struct graph_sharded *sharded, const struct graph_op *op)
{
    return op->kernel == WORK_KERNEL_NONE && op->weight_count > 0 &&
           sharded->graph->tensor[op->weight[0]].grouped &&
           shape_of(sharded, op, &op->as.matmul.product[0]).matmul.count > 1;
}

/* A dimension that both operands and the result have: heads. */
static bool is_batched(const struct graph *graph, const struct graph_product *product)
{
    const struct sharding *weight = &graph->tensor[product->weight].at;
    for (uint32_t d = 0; d < weight->dimension_count; d++) {
        const char *name = weight->dimension[d].name;
        if (sharding_has(&graph->tensor[product->left].at, name) &&
            sharding_has(&graph->tensor[product->out].at, name))
            return true;
    }
    return false;
}

static void work(const struct graph_sharded *sharded, const struct graph_op *op, enum op_pass pass,
                 struct work *ret_work)
{
    struct work work = products(sharded, op, pass == OP_FORWARD || !op_is_forward(pass));
    if (graph_casts(sharded->graph, op))
        work.cast = sharded->graph->terms->policy.casts.recipe->cast;
    if (sharded->graph->terms->policy.names_kernels) {
        work.kernel = kernel_of(pass);
        work.of_experts = is_of_experts(sharded, op);
        work.batched = op->product_count == 1 && is_batched(sharded->graph, op->as.matmul.product);
        if (op_gives_weight(pass) && op->weight_count > 0)
            work.result = sharded->graph->tensor[op->weight[0]].gradient;
    }
    if (op_is_forward(pass)) {
        work.vector_flop =
            fused_flop(sharded, op, false) + converted(sharded, op) + narrowed(sharded, op);
        work.hbm_read_bytes =
            all_bytes(sharded, op, false, false) + weight_bytes(sharded, op, false);
        work.hbm_write_bytes = all_bytes(sharded, op, true, false);
        work.prefetch_bytes = early_bytes(sharded, op);
        *ret_work = work;
        return;
    }
    work.hbm_read_bytes = all_bytes(sharded, op, true, true);
    if (op_gives_weight(pass)) weight_gradient(sharded, op, &work);
    if (op_gives_input(pass)) input_gradient(sharded, op, &work);
    if (pass == OP_BOTH_GRADIENTS) both_set(&work);
    *ret_work = work;
}

/* What is left of a product's FLOP where a dimension is as long as in the model. Holders of a part
 * are no padding: each part counts once for each. */
static uint64_t without_padding(const struct graph_terms *terms,
                                const struct sharding_dimension *at, uint64_t flop)
{
    const struct graph_dimension *of = graph_dimension_of(terms, at->name);
    return (uint64_t)((units_wide)flop * of->useful * of->holders / at->size);
}

/* Ranks that compute the same: holders of the same rows; of tp holders of a part, or all where none
 * has a part of its own, and all of tp_d where none has. */
static uint64_t ranks_alike(const struct graph_sharded *sharded, const struct graph_op *op,
                            const struct graph_product *product)
{
    const struct graph *graph = sharded->graph;
    const struct sharding *weight = &graph->tensor[product->weight].at;
    const struct sharding *left = &graph->tensor[product->left].at;
    uint32_t const gathered = graph_shard_of(sharded, op)->gather;
    uint32_t const split = (sharding_axes(left) & ~gathered) | sharding_axes(weight);
    uint64_t ranks = (split & graph->terms->axis_w) == 0 ? graph->terms->ranks_w : 1;
    for (uint32_t d = 0; d < left->dimension_count; d++)
        if (!sharding_has(weight, left->dimension[d].name))
            ranks *= graph_dimension_of(graph->terms, left->dimension[d].name)->holders;
    if ((split & graph->terms->axis_y) == 0) return ranks * graph->terms->ranks_y;
    for (uint32_t d = 0; d < weight->dimension_count; d++) {
        const struct sharding_dimension *at = &weight->dimension[d];
        ranks *= graph_dimension_of(graph->terms, at->name)->holders;
    }
    return ranks;
}

static struct op_spare product_spare(const struct graph_sharded *sharded, const struct graph_op *op,
                                     const struct graph_product *product)
{
    const struct graph *graph = sharded->graph;
    const struct sharding *left = &graph->tensor[product->left].at;
    const struct sharding *weight = &graph->tensor[product->weight].at;
    const struct sharding *out = &graph->tensor[product->out].at;
    struct shape const shape = shape_of(sharded, op, product);
    struct work const one = {.matmul = {shape.matmul}, .matmul_count = 1};
    uint64_t const all = work_matmul_flop(&one), own = all / ranks_alike(sharded, op, product);
    uint64_t rows = (uint64_t)((units_wide)own * shape.rows / shape.filled);
    for (uint32_t d = 0; d < left->dimension_count; d++)
        if (!sharding_has(weight, left->dimension[d].name))
            rows = without_padding(graph->terms, &left->dimension[d], rows);
    uint64_t wanted = rows;
    for (uint32_t d = 0; d < weight->dimension_count; d++) {
        const struct sharding_dimension *at = &weight->dimension[d];
        if (!sharding_has(left, at->name) && !sharding_has(out, at->name)) continue;
        wanted = without_padding(graph->terms, at, wanted);
    }
    return (struct op_spare){
        .duplicated = all - own, .padding = rows - wanted, .rows = (int64_t)(own - rows)};
}

static void spare(const struct graph_sharded *sharded, const struct graph_op *op, enum op_pass pass,
                  struct op_spare *ret_spare)
{
    const struct graph_matmul *matmul = &op->as.matmul;
    bool const again = op_is_forward(pass) && pass != OP_FORWARD;
    uint64_t const times = pass == OP_BOTH_GRADIENTS ? 2 : 1;
    *ret_spare = (struct op_spare){0};
    for (uint8_t i = 0; i < op->product_count; i++) {
        struct op_spare const one = product_spare(sharded, op, &matmul->product[i]);
        ret_spare->duplicated += times * one.duplicated;
        if (again) continue;
        ret_spare->padding += times * one.padding;
        ret_spare->rows += (int64_t)times * one.rows;
    }
}

static uint8_t reads(const struct graph *graph, const struct graph_op *op, enum op_pass pass,
                     tensor ret_reads[OP_READS_MAX])
{
    uint8_t count = 0;
    for (uint8_t i = 0; i < op->in_count; i++)
        if (input_is_read(graph, op, op->in[i], op_gives_weight(pass)))
            ret_reads[count++] = op->in[i];
    return count;
}

static struct graph_shard shard(const struct graph *graph, const struct graph_op *op)
{
    const struct graph_matmul *matmul = &op->as.matmul;
    struct graph_shard all = {0};
    for (uint8_t i = 0; i < op->product_count; i++) {
        struct graph_shard const one = graph_product_shard(graph, &matmul->product[i]);
        all.gather |= one.gather;
        all.scatter |= one.scatter;
        all.all_reduce |= one.all_reduce;
    }
    return all;
}

/* Over ranks that split columns of a weight, the gradient of what it is multiplied with is a sum.
 */
static uint32_t columns_due(const struct graph *graph, const struct graph_product *product)
{
    uint32_t const columns = sharding_axes(&graph->tensor[product->weight].at) &
                             sharding_axes(&graph->tensor[product->out].at) &
                             ~sharding_axes(&graph->tensor[product->left].at);
    return columns & graph->terms->axis_y;
}

/* Over ranks that split what a weight is multiplied with by rows, its gradient is a sum. */
static uint32_t rows_due(const struct graph *graph, const struct graph_product *product)
{
    const struct sharding *left = &graph->tensor[product->left].at;
    const struct sharding *weight = &graph->tensor[product->weight].at;
    struct sharding rows = {.dimension_count = 0};
    for (uint32_t d = 0; d < left->dimension_count; d++)
        if (!sharding_has(weight, left->dimension[d].name))
            rows.dimension[rows.dimension_count++] = left->dimension[d];
    return sharding_axes(&rows) & ~sharding_axes(weight) & graph->terms->axis_y;
}

static void due_add(const struct graph_sharded *sharded, const struct graph_op *op,
                    uint32_t due[GRAPH_TENSORS_MAX])
{
    const struct graph *graph = sharded->graph;
    const struct graph_matmul *matmul = &op->as.matmul;
    uint32_t const gather = graph_shard_of(sharded, op)->gather;
    for (uint8_t i = 0; i < op->product_count; i++) {
        const struct graph_product *product = &matmul->product[i];
        uint32_t const of_result = due[product->out];
        due[product->weight] |= of_result | (rows_due(graph, product) & ~gather);
        due[product->left] |=
            (of_result | columns_due(graph, product)) & ~gather & ~sharded->summed[product->left];
    }
    /* Each rank has copies for its heads, and the gradients of these. */
    for (uint8_t i = 0; i < matmul->copy_count; i++) {
        const struct graph_copy *copy = &matmul->copy[i];
        due[copy->in] |= sharding_axes(&graph->tensor[copy->out].at) &
                         ~sharding_axes(&graph->tensor[copy->in].at) & graph->terms->axis_y;
    }
}

const struct op_kind op_kind_matmul = {
    .name = "matmul",
    .help = "products with weights; each gradient is a product of as many FLOP",
    .source = "the book, chapter 4",
    .work = work,
    .reads = reads,
    .spare = spare,
    .shard = shard,
    .due = due_add,
    .weights_apart = true,
    .computes_functions = true,
};
