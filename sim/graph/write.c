#include "sim/graph/write.h"

#include <stdio.h>
#include <string.h>

#include "sim/graph/casts.h"
#include "sim/graph/op.h"
#include "sim/model/model.h"

enum { TEXT_BYTES = 96 };

/* --- Tensors --- */

static tensor tensor_add(struct graph *graph, const char *text, enum graph_role role)
{
    const struct graph_formats *formats = &graph->terms->formats;
    const struct graph_policy *policy = &graph->terms->policy;
    bool const weight = role == GRAPH_WEIGHT, statistic = role == GRAPH_STATISTIC;
    bool const narrow = policy->sums.kernels != 0 || policy->autocast == AUTOCAST_WIDE;
    SIM_ASSERT(graph->tensor_count < GRAPH_TENSORS_MAX);
    struct graph_tensor *added = &graph->tensor[graph->tensor_count];
    *added = (struct graph_tensor){
        .at = graph_sharding(graph, text, role),
        .role = role,
        .format = statistic             ? FORMAT_FP32
                  : weight              ? formats->weights
                  : role == GRAPH_CACHE ? formats->cache
                                        : formats->activations,
        .gradient = weight && !narrow ? formats->gradients : formats->activations,
        .kept = GRAPH_REMAT_NONE,
        .framework.kept = GRAPH_REMAT_NEVER,
        .kept_gathered = policy->keeps_whole ? GRAPH_REMAT_NONE : GRAPH_REMAT_NEVER,
        .adds = weight && policy->adds,
        .made_by = GRAPH_NONE,
    };
    added->gradient_at = added->at;
    return graph->tensor_count++;
}

static struct graph_op *last_op(struct graph *graph)
{
    SIM_ASSERT(graph->op_count > 0);
    return &graph->op[graph->op_count - 1];
}

/* What is fused has no gradient of its own, so whoever reads it computes that as well. */
static bool computes(const struct op_kind *kind, const struct graph_op *fused)
{
    return fused->kind->passes_on ? kind->computes_sums : kind->computes_functions;
}

static void input_add(const struct graph *graph, struct graph_op *op, tensor in)
{
    const struct graph_op *fused = graph_fused(graph, in);
    SIM_ASSERT(fused == NULL || computes(op->kind, fused));
    for (uint8_t i = 0; i < op->in_count; i++)
        if (op->in[i] == in) return;
    SIM_ASSERT(op->in_count < GRAPH_ARRAYS_MAX);
    op->in[op->in_count++] = in;
}

static tensor weight_add(struct graph *graph, const char *text)
{
    struct graph_op *op = last_op(graph);
    tensor const weight = tensor_add(graph, text, GRAPH_WEIGHT);
    SIM_ASSERT(op->weight_count < GRAPH_ARRAYS_MAX);
    return op->weight[op->weight_count++] = weight;
}

static tensor result_add(struct graph *graph, const char *text, enum graph_role role)
{
    struct graph_op *op = last_op(graph);
    tensor const out = tensor_add(graph, text, role);
    SIM_ASSERT(op->out_count < GRAPH_ARRAYS_MAX);
    graph->tensor[out].made_by = graph_index(graph, op);
    return op->out[op->out_count++] = out;
}

tensor graph_result(struct graph *graph, const char *text)
{
    return result_add(graph, text, GRAPH_ACTIVATION);
}

tensor graph_statistic(struct graph *graph, const char *text)
{
    return result_add(graph, text, GRAPH_STATISTIC);
}

tensor graph_cached(struct graph *graph, const char *text)
{
    return result_add(graph, text, GRAPH_CACHE);
}

tensor graph_borrowed(struct graph *graph, const char *text)
{
    return tensor_add(graph, text, GRAPH_CACHE);
}

void graph_set_formats(struct graph *graph, tensor of, enum format format, enum format gradient)
{
    graph->tensor[of].format = format;
    graph->tensor[of].gradient = gradient;
}

void graph_set_linear(struct graph *graph, tensor of)
{
    const struct graph_formats *formats = &graph->terms->formats;
    bool const travels = graph->terms->axis_y != 0;
    graph_set_formats(graph, of, travels ? formats->activations : formats->matmuls,
                      formats->activations);
}

void graph_set_kept(struct graph *graph, tensor of, enum graph_remat kept,
                    enum graph_remat kept_gathered)
{
    graph->tensor[of].kept = kept;
    graph->tensor[of].kept_gathered = kept_gathered;
}

void graph_set_framework(struct graph *graph, tensor of, enum graph_framework framework,
                         enum format format, enum graph_remat kept)
{
    const struct graph_policy *policy = &graph->terms->policy;
    if (!policy->counts_frameworks) return;
    graph->tensor[of].framework = (struct graph_framework_array){
        framework, format, policy->remakes_frameworks ? GRAPH_REMAT_NEVER : kept};
}

void graph_set_gradient(struct graph *graph, tensor of, const char *text)
{
    graph->tensor[of].gradient_at = graph_sharding(graph, text, GRAPH_ACTIVATION);
}

void graph_set_used(struct graph *graph, tensor weight)
{
    graph->tensor[weight].adds |= graph->terms->policy.used_before;
}

static struct graph_vector *vector_add(struct graph *graph, struct sharding at)
{
    SIM_ASSERT(graph->vector_count < GRAPH_VECTORS_MAX);
    struct graph_vector *added = &graph->vector[graph->vector_count++];
    *added = (struct graph_vector){.at = at, .matrix = GRAPH_NONE, .block = graph->block_count};
    return added;
}

void graph_vector(struct graph *graph, const char *text, bool whole)
{
    vector_add(graph, graph_sharding(graph, text, GRAPH_WEIGHT))->whole = whole;
}

void graph_set_biased(struct graph *graph, bool biased)
{
    const struct graph_op *op = last_op(graph);
    const struct graph_product *product = &op->as.matmul.product[op->product_count - 1];
    const struct sharding *left = &graph->tensor[product->left].at;
    struct sharding const weight =
        sharding_gathered(&graph->tensor[product->weight].at, graph->terms->axis_x);
    struct sharding columns = {.dimension_count = 0};
    if (!biased) return;
    memcpy(columns.name, weight.name, sizeof columns.name);
    columns.name[0] = 'b';
    for (uint32_t d = 0; d < weight.dimension_count; d++)
        if (!sharding_has(left, weight.dimension[d].name))
            columns.dimension[columns.dimension_count++] = weight.dimension[d];
    vector_add(graph, columns)->matrix = product->weight;
}

void graph_set_joined(struct graph *graph, bool joined)
{
    struct graph_op *op = last_op(graph);
    SIM_ASSERT(op->product_count > 1);
    op->as.matmul.product[op->product_count - 1].joined = joined;
}

void graph_set_all_joined(struct graph *graph)
{
    struct graph_op *op = last_op(graph);
    for (uint8_t i = 1; i < op->product_count; i++) op->as.matmul.product[i].joined = true;
}

void graph_set_columns_of_previous(struct graph *graph, tensor weight)
{
    graph->tensor[weight].columns_of_previous = true;
}

void graph_set_due(struct graph *graph, tensor of)
{
    graph->tensor[of].at.unreduced |= graph->terms->axis_y;
}

void graph_set_names(struct graph *graph, const char *input_name, const char *weight_name)
{
    last_op(graph)->gradients.input_name = input_name;
    last_op(graph)->gradients.weight_name = weight_name;
}

void graph_set_moved_as(struct graph *graph, tensor of, const char *name)
{
    graph->tensor[of].moved_as = name;
}

/* --- Ops --- */

struct graph_op *graph_op(struct graph *graph, const struct op_kind *kind, const char *name,
                          uint8_t count, const tensor *in)
{
    SIM_ASSERT(graph->op_count < GRAPH_OPS_MAX);
    struct graph_op *op = &graph->op[graph->op_count++];
    *op = (struct graph_op){
        .kind = kind, .name = name, .block = graph->block_count, .gradients.behind = GRAPH_NONE};
    memset(op->in, GRAPH_NONE, sizeof op->in);
    for (uint8_t i = 0; i < count; i++) input_add(graph, op, in[i]);
    return op;
}

struct graph_op *graph_rotating(struct graph *graph, const struct op_kind *kind, const char *name,
                                uint8_t count, const tensor *in, struct graph_rotated rotated)
{
    struct graph_op *op = graph_op(graph, kind, name, count, in);
    op->as.rotated = rotated;
    return op;
}

void graph_set_behind(struct graph *graph, uint8_t first, uint8_t end, uint8_t behind)
{
    for (uint8_t i = first; i < end; i++) graph->op[i].gradients.behind = behind;
}

tensor graph_cast(struct graph *graph, tensor in, const char *name)
{
    const struct graph_casting *casts = &graph->terms->policy.casts;
    if (casts->recipe == NULL) return in;
    enum recipe_array const array = graph_cast_array(graph, in);
    if (array == RECIPE_NORMED && casts->way->norms_write) {
        uint32_t const tp = graph->terms->axis_y | graph->terms->axis_w;
        bool const travels = (sharding_axes(&graph->tensor[in].at) & tp) != 0;
        graph->tensor[in].format = FORMAT_FP8;
        if (graph_cast_of(graph, array, travels).kernels == 0) return in;
    }
    struct graph_op *op = graph_op(graph, &op_kind_quantise, name, 1, &in);
    op->as.quantise.array = array;
    tensor const out = graph_result(graph, "In");
    const struct graph_tensor *from = &graph->tensor[in];
    struct graph_tensor *to = &graph->tensor[out];
    *to = *from;
    to->role = GRAPH_ACTIVATION;
    to->format = FORMAT_FP8;
    /* Policies that repeat a layer keep what comes to it, and cast that again. */
    if (to->kept > GRAPH_REMAT_BIG_MATMULS) to->kept = GRAPH_REMAT_BIG_MATMULS;
    to->framework = (struct graph_framework_array){.kept = GRAPH_REMAT_NEVER};
    to->made_by = graph_index(graph, op);
    size_t const length = strlen(from->at.name);
    if (length + 1 < sizeof to->at.name) (void)memcpy(to->at.name + length, "8", 2);
    memcpy(to->gradient_at.name, to->at.name, sizeof to->gradient_at.name);
    return out;
}

struct graph_op *graph_norm(struct graph *graph, const char *name)
{
    return graph_rotating(graph, &op_kind_norm, name, 0, NULL,
                          graph_rotated(GRAPH_NONE, GRAPH_NONE));
}

/* Weights of a norm; of latents a norm has no biases. */
static void norm_weight_add(struct graph *graph, const char *text, bool of_latent)
{
    tensor const weight = weight_add(graph, text);
    graph->tensor[weight].biased = graph->terms->model->norms.biases != 0 && !of_latent;
}

tensor graph_normed(struct graph *graph, tensor in, const char *text)
{
    char weight[TEXT_BYTES];
    input_add(graph, last_op(graph), in);
    tensor const out = graph_result(graph, text);
    const struct sharding *at = &graph->tensor[out].at;
    struct sharding const columns = {.dimension = {at->dimension[at->dimension_count - 1]},
                                     .dimension_count = 1};
    char letters[SHARDING_TEXT_BYTES];
    (void)snprintf(weight, sizeof weight, "w_%s%s", at->name,
                   sharding_text(&graph->terms->mesh, &columns, letters));
    norm_weight_add(graph, weight,
                    graph_dimension_of(graph->terms, columns.dimension[0].name)->counted !=
                        GRAPH_COUNTED_STREAM);
    return out;
}

tensor graph_normed_by(struct graph *graph, tensor in, const char *weight, const char *text)
{
    input_add(graph, last_op(graph), in);
    tensor const out = graph_result(graph, text);
    norm_weight_add(graph, weight, /* of_latent= */ false);
    return out;
}

tensor graph_lookup(struct graph *graph, const char *table, const char *by_position,
                    const char *text)
{
    graph_op(graph, &op_kind_lookup, "lookup", 0, NULL);
    graph_set_used(graph, weight_add(graph, table));
    if (by_position != NULL) (void)weight_add(graph, by_position);
    tensor const rows = graph_result(graph, text);
    graph_set_kept(graph, rows, GRAPH_REMAT_LAYER, GRAPH_REMAT_LAYER);
    return rows;
}

struct graph_op *graph_matmul(struct graph *graph, const char *name)
{
    struct graph_op *op = graph_op(graph, &op_kind_matmul, name, 0, NULL);
    op->as.matmul.math =
        graph->terms->policy.casts.recipe != NULL ? FORMAT_FP8 : graph->terms->formats.matmuls;
    return op;
}

struct graph_op *graph_batched_matmul(struct graph *graph, const char *name)
{
    struct graph_op *op = graph_matmul(graph, name);
    enum format const math = graph->terms->formats.batched;
    op->as.matmul.reads_copies = math != op->as.matmul.math || graph->terms->policy.names_kernels;
    op->as.matmul.math = math;
    return op;
}

static void product_add(struct graph *graph, tensor left, tensor weight, tensor out)
{
    struct graph_op *op = last_op(graph);
    struct graph_tensor *of = &graph->tensor[weight];
    SIM_ASSERT(op->product_count < GRAPH_ARRAYS_MAX);
    input_add(graph, op, left);
    for (uint32_t d = 0; d < of->at.dimension_count; d++)
        of->grouped =
            of->grouped || (!sharding_has(&graph->tensor[left].at, of->at.dimension[d].name) &&
                            !sharding_has(&graph->tensor[out].at, of->at.dimension[d].name));
    if (of->grouped) of->adds = graph->terms->policy.adds_of_experts;
    op->as.matmul.product[op->product_count++] = (struct graph_product){left, weight, out, false};
}

static tensor product_write(struct graph *graph, tensor left, tensor weight, const char *text)
{
    tensor const out = graph_result(graph, text);
    graph_set_kept(graph, out, GRAPH_REMAT_BIG_MATMULS, GRAPH_REMAT_BIG_MATMULS);
    product_add(graph, left, weight, out);
    return out;
}

tensor graph_product(struct graph *graph, tensor left, const char *weight_text, const char *text)
{
    tensor const weight = weight_add(graph, weight_text);
    return product_write(graph, left, weight, text);
}

tensor graph_product_again(struct graph *graph, tensor left, tensor weight, const char *text)
{
    struct graph_op *op = last_op(graph);
    SIM_ASSERT(op->weight_count < GRAPH_ARRAYS_MAX);
    op->weight[op->weight_count++] = weight;
    return product_write(graph, left, weight, text);
}

void graph_product_added(struct graph *graph, tensor left, const char *weight_text)
{
    const struct graph_op *op = last_op(graph);
    SIM_ASSERT(op->product_count > 0);
    tensor const out = op->as.matmul.product[op->product_count - 1].out;
    product_add(graph, left, weight_add(graph, weight_text), out);
}

tensor graph_copied(struct graph *graph, tensor in, const char *text)
{
    struct graph_op *op = last_op(graph);
    SIM_ASSERT(op->as.matmul.copy_count == 0);
    input_add(graph, op, in);
    tensor const out = graph_result(graph, text);
    op->as.matmul.copy[op->as.matmul.copy_count++] = (struct graph_copy){in, out};
    return out;
}

bool graph_functions_apart(const struct graph *graph)
{
    const struct fusion *fusion = graph->terms->policy.fusion;
    return fusion != NULL && fusion->functions_apart;
}

tensor graph_function(struct graph *graph, const char *name, const char *formula,
                      const struct graph_map *map, uint8_t count, const tensor *in,
                      const char *text)
{
    const struct graph_formats *formats = &graph->terms->formats;
    bool const apart = graph_functions_apart(graph);
    struct graph_op *op = graph_op(graph, &op_kind_map, name, count, in);
    op->formula = formula;
    op->fused = !apart;
    op->as.map = *map;
    tensor const out = graph_result(graph, text);
    if (apart)
        graph_set_formats(graph, out, formats->matmuls, formats->activations);
    else
        graph_set_kept(graph, out, GRAPH_REMAT_NEVER, GRAPH_REMAT_NEVER);
    return out;
}

/* --- Blocks --- */

tensor graph_residual(struct graph *graph)
{
    bool const first = graph->block_count == 0;
    if (first) {
        graph->stream = tensor_add(graph, "X", GRAPH_ACTIVATION);
        graph->added = tensor_add(graph, "Out", GRAPH_ACTIVATION);
    }
    struct graph_op *sum =
        graph_op(graph, &op_kind_merge, "Residual", 2, (tensor[]){graph->stream, graph->added});
    sum->fused = true;
    tensor const x = graph_result(graph, "X");
    enum graph_remat const kept = first ? GRAPH_REMAT_LAYER : GRAPH_REMAT_BIG_MATMULS;
    graph_set_kept(graph, x, kept, kept);
    return graph->stream = x;
}

tensor graph_layer_input(struct graph *graph)
{
    tensor const x = graph_residual(graph);
    if (!graph->terms->model->norms.none_before) {
        graph_norm(graph, "norm");
        return graph_normed(graph, x, "In");
    }
    graph_op(graph, &op_kind_stream, "sum", 1, &x);
    tensor const in = graph_result(graph, "In");
    graph->tensor[in].kept = GRAPH_REMAT_BIG_MATMULS;
    return in;
}

tensor graph_block_input(struct graph *graph)
{
    tensor const in = graph->block_count == 0 ? tensor_add(graph, "In", GRAPH_ACTIVATION)
                                              : graph->block[graph->block_count - 1].out;
    graph_set_kept(graph, in, GRAPH_REMAT_LAYER, GRAPH_REMAT_NORMS);
    return graph->stream = in;
}

tensor graph_shared_input(struct graph *graph)
{
    tensor const in = tensor_add(graph, "X", GRAPH_ACTIVATION);
    graph->tensor[in].shared = true;
    graph_set_kept(graph, in, GRAPH_REMAT_LAYER, GRAPH_REMAT_LAYER);
    return graph->stream = in;
}

void graph_block_output(struct graph *graph, tensor out)
{
    graph->block[graph->block_count].out = out;
    graph->added = out;
}
