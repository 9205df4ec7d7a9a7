#include "sim/graph/op.h"

#include "sim/base/vector.h"
#include "sim/model/model.h"

const struct op_kind *const op_kind_table[] = {
#define OP(name) &op_kind_##name,
#include "workloads/ops.def"
#undef OP
};

const uint32_t op_kind_count = sizeof op_kind_table / sizeof *op_kind_table;

const char *op_axis_name(enum op_axis axis)
{
    static const char *const names[] = {
        [OP_AXIS_TP] = "tp",      [OP_AXIS_TP_D] = "tp_d",
        [OP_AXIS_EP] = "ep",      [OP_AXIS_SEQUENCE] = "sequence",
        [OP_AXIS_HOLDERS] = "kv",
    };
    return names[axis];
}

const char *op_pass_name(enum op_pass pass)
{
    static const char *const names[] = {
        [OP_FORWARD] = "forward",
        [OP_AGAIN] = "again",
        [OP_AGAIN_ALONE] = "again, alone",
        [OP_INPUT_GRADIENT] = "d inputs",
        [OP_WEIGHT_GRADIENT] = "d weights",
        [OP_BOTH_GRADIENTS] = "d inputs, d weights",
        [OP_LEFT_GRADIENT] = "d left",
        [OP_RIGHT_GRADIENT] = "d right",
        [OP_CAST] = "d results in fp8",
        [OP_CAST_SECOND] = "second arrays",
        [OP_CAST_WEIGHTS] = "weights in fp8",
        [OP_INPUT_CASTS] = "inputs in 16 bits",
        [OP_AUTOCAST_WEIGHTS] = "weights in 16 bits",
        [OP_SHARDS] = "copies around gathers",
        [OP_PADS] = "copies around attention",
        [OP_BIASES] = "d biases",
        [OP_GRADIENT_CASTS] = "d weights in fp32",
        [OP_SUMS] = "d weights, summed",
        [OP_COPIES] = "d weights, copied",
    };
    return names[pass];
}

struct work op_work(const struct graph_sharded *sharded, const struct graph_op *op,
                    enum op_pass pass)
{
    struct work work = {.math_format = sharded->graph->terms->formats.activations};
    if (op->kind->work != NULL) op->kind->work(sharded, op, pass, &work);
    if (work.kernel == WORK_KERNEL_NONE && work.matmul_count == 0 && op_has_work(&work))
        op_function(sharded->graph, WORK_FUNCTION_REST, pass, 0, &work);
    if (op->kernel == WORK_KERNEL_NONE || !op_has_work(&work)) return work;
    work.kernel = op->kernel;
    work.kernel_count = 0;
    return work;
}

static void made_add(struct function_pass made, enum work_function function, uint64_t elements,
                     struct work *work)
{
    work->hbm_read_bytes += made.read_bytes * elements;
    work->hbm_write_bytes += made.write_bytes * elements;
    work->kernel_count += made.kernels;
    if (work->kernel == WORK_KERNEL_NONE) work->kernel = WORK_KERNEL_FUNCTIONS + (uint64_t)function;
}

void op_function(const struct graph *graph, enum work_function function, enum op_pass pass,
                 uint64_t elements, struct work *work)
{
    const struct graph_policy *policy = &graph->terms->policy;
    const struct fusion *fusion = policy->fusion;
    if (fusion == NULL) return;
    bool const backward = !op_is_forward(pass);
    struct function_pass const own = function == WORK_FUNCTION_LOSS
                                         ? fusion_loss(fusion, policy->replacing.loss)
                                         : fusion_pass(fusion, function, backward);
    made_add(autocast_pass(fusion, policy->autocast, function, /* centred= */ false, backward, own),
             function, elements, work);
}

/* Whether a norm reads the residual stream; else it reads what a product or attention gives. */
static bool reads_stream(const struct graph *graph, const struct graph_op *op)
{
    const struct graph_op *maker = graph_maker(graph, op->in[0]);
    while (maker != NULL && maker->kind->passes_on) maker = graph_maker(graph, maker->in[0]);
    return maker == NULL || graph_fused(graph, op->in[0]) != NULL || maker->kind->computes_sums ||
           (maker->kind->weights_apart && maker->product_count == 0);
}

void op_norm(const struct graph *graph, const struct graph_op *op, enum op_pass pass,
             uint64_t elements, struct work *work)
{
    const struct graph_policy *policy = &graph->terms->policy;
    const struct fusion *fusion = policy->fusion;
    if (fusion == NULL) return;
    bool const backward = !op_is_forward(pass), centred = graph->terms->model->norms.centred;
    bool const narrow = policy->autocast == AUTOCAST_WIDE && !reads_stream(graph, op);
    enum autocast const autocast = narrow ? AUTOCAST_NARROW : policy->autocast;
    struct function_pass made = fusion_persistent_norm(backward);
    if (!centred || !policy->replacing.persistent_layernorm)
        made = autocast_pass(fusion, autocast, WORK_FUNCTION_NORM, centred, backward,
                             fusion_norm(fusion, centred, backward));
    made_add(made, WORK_FUNCTION_NORM, elements, work);
}

uint8_t op_reads(const struct graph *graph, const struct graph_op *op, enum op_pass pass,
                 tensor ret_reads[OP_READS_MAX])
{
    return op->kind->reads == NULL ? 0 : op->kind->reads(graph, op, pass, ret_reads);
}

uint8_t op_moves(const struct graph_sharded *sharded, const struct graph_op *op, enum op_pass pass,
                 struct op_move ret_moves[OP_MOVES_MAX])
{
    return op->kind->moves == NULL ? 0 : op->kind->moves(sharded, op, pass, ret_moves);
}

void op_move_reads(struct op_move *move, tensor of, bool gradient, bool full)
{
    SIM_ASSERT(move->read_count < GRAPH_VALUES_MAX);
    move->read[move->read_count++] = (struct graph_value){of, gradient, full};
}

void op_move_writes(struct op_move *move, tensor of, bool gradient, bool full)
{
    SIM_ASSERT(move->written_count < GRAPH_VALUES_MAX);
    move->written[move->written_count++] = (struct graph_value){of, gradient, full};
}

void op_move_tensor(struct op_move *move, tensor of, bool gradient)
{
    bool const gathers = move->kind == COLLECTIVE_ALL_GATHER;
    op_move_reads(move, of, gradient, !gathers);
    op_move_writes(move, of, gradient, gathers);
}

void op_move_carries(struct op_move *move, const struct graph_op *op, enum op_pass pass)
{
    bool const gradient = !op_is_forward(pass);
    for (uint8_t i = 0; i < op->in_count; i++)
        (gradient ? op_move_writes : op_move_reads)(move, op->in[i], gradient, false);
    for (uint8_t i = 0; i < op->out_count; i++)
        (gradient ? op_move_reads : op_move_writes)(move, op->out[i], gradient, false);
}

struct graph_shard op_shard_none(const struct graph *graph, const struct graph_op *op)
{
    (void)graph;
    (void)op;
    return (struct graph_shard){0};
}

static void add(const struct graph_sharded *sharded, tensor of, uint32_t gathered, bool gradient,
                struct op_bytes *bytes)
{
    const struct graph *graph = sharded->graph;
    const struct graph_tensor *at = &graph->tensor[of];
    bytes->elements[gradient ? at->gradient : at->format] +=
        graph_elements(graph, gradient ? &at->gradient_at : &at->at, gathered);
}

void op_bytes_in(const struct graph_sharded *sharded, const struct graph_op *op, uint8_t input,
                 bool gradient, struct op_bytes *bytes)
{
    uint32_t const gather = graph_shard_of(sharded, op)->gather;
    const struct graph_op *fused = graph_fused(sharded->graph, op->in[input]);
    if (fused == NULL) {
        add(sharded, op->in[input], gather, gradient, bytes);
        return;
    }
    for (uint8_t i = 0; i < fused->in_count; i++)
        add(sharded, fused->in[i], gather, gradient, bytes);
}

void op_bytes_ins(const struct graph_sharded *sharded, const struct graph_op *op, bool gradient,
                  struct op_bytes *bytes)
{
    for (uint8_t i = 0; i < op->in_count; i++) op_bytes_in(sharded, op, i, gradient, bytes);
}

void op_bytes_outs(const struct graph_sharded *sharded, const struct graph_op *op, bool gradient,
                   struct op_bytes *bytes)
{
    for (uint8_t i = 0; i < op->out_count; i++)
        add(sharded, op->out[i], graph_scattered(sharded, op, op->out[i]), gradient, bytes);
}

uint64_t op_bytes_sum(const struct op_bytes *bytes)
{
    uint64_t sum = 0;
    for (uint32_t f = 0; f < FORMAT_COUNT; f++)
        sum += format_bytes((enum format)f, bytes->elements[f]);
    return sum;
}

struct work op_streamed(const struct graph_sharded *sharded, const struct graph_op *op,
                        enum op_pass pass, struct op_bytes read, uint64_t vector_flop)
{
    bool const backward = !op_is_forward(pass);
    struct op_bytes written = {{0}};
    (backward ? op_bytes_outs : op_bytes_ins)(sharded, op, backward, &read);
    (backward ? op_bytes_ins : op_bytes_outs)(sharded, op, backward, &written);
    return (struct work){
        .math_format = sharded->graph->terms->formats.activations,
        .vector_flop = vector_flop,
        .hbm_read_bytes = op_bytes_sum(&read),
        .hbm_write_bytes = op_bytes_sum(&written),
    };
}

uint64_t op_bytes_stored_sum(const struct op_bytes *bytes)
{
    uint64_t sum = 0;
    for (uint32_t f = 0; f < FORMAT_COUNT; f++)
        sum += format_stored_bytes((enum format)f, bytes->elements[f]);
    return sum;
}

uint64_t op_rotated_flop(const struct graph *graph, const struct graph_op *op)
{
    const struct graph_rotated *rotated = &op->as.rotated;
    uint64_t elements = 0;
    for (uint32_t i = 0; i < sizeof rotated->of / sizeof *rotated->of; i++)
        if (rotated->of[i] != GRAPH_NONE)
            elements += graph_elements(graph, &graph->tensor[rotated->of[i]].at, 0);
    return VECTOR_ROPE * elements / (rotated->ways == 0 ? 1 : rotated->ways);
}

enum format op_weight_format(const struct graph *graph, const struct graph_op *op, tensor weight)
{
    const struct graph_terms *terms = graph->terms;
    enum format const math = op->as.matmul.math, format = graph->tensor[weight].format;
    bool const has_casts = terms->cache.is_there || terms->policy.casts.recipe != NULL;
    bool const is_narrowed =
        terms->policy.names_kernels && has_casts && format_bits(math) < format_bits(format);
    if (op->as.matmul.reads_copies || is_narrowed) return math;
    return terms->policy.autocast == AUTOCAST_WIDE ? terms->formats.activations : format;
}

uint64_t op_in_elements(const struct graph_sharded *sharded, const struct graph_op *op,
                        uint8_t input)
{
    return graph_elements(sharded->graph, &sharded->graph->tensor[op->in[input]].at,
                          graph_shard_of(sharded, op)->gather);
}

uint64_t op_out_elements(const struct graph_sharded *sharded, const struct graph_op *op,
                         uint8_t result)
{
    return graph_elements(sharded->graph, &sharded->graph->tensor[op->out[result]].at,
                          graph_scattered(sharded, op, op->out[result]));
}
