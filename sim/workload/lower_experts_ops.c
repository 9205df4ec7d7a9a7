/* The ops that both passes of a layer's experts are made of. */
#include "sim/workload/lower_experts.h"

#include <string.h>

#include "sim/workload/overheads.h"

uint64_t experts_tmp(const struct local *local, bool shared)
{
    const struct local_experts *experts = &local->experts;
    uint64_t const elements =
        shared ? local->rows * experts->shared_columns : experts->all * experts->columns;
    return elements * local->mlp_in_count;
}

uint64_t experts_tensor_bytes(const struct local *local, enum experts_tensor tensor)
{
    enum format const format = local->plan->formats.activations;
    enum format const matmuls = local->plan->formats.matmuls;
    switch (tensor) {
    case EXPERTS_X:
        return format_bytes(format, local->block_shard);
    case EXPERTS_IN:
        return format_bytes(format, experts_gather_in(local) && !experts_keep_parts(local)
                                        ? local->block_full
                                        : local->block_shard);
    case EXPERTS_IN_WHOLE:
        return experts_keep_parts(local) ? format_bytes(format, local->block_full) : 0;
    case EXPERTS_GATES:
        return format_bytes(FORMAT_FP32,
                            local->experts.gate_rows * local->plan->model.experts.count);
    case EXPERTS_ROWS:
        return format_bytes(matmuls, local->experts.all * local->width);
    case EXPERTS_TMP:
        return format_bytes(matmuls, experts_tmp(local, false));
    case EXPERTS_SHARED_TMP:
        return format_bytes(matmuls, experts_tmp(local, true));
    case EXPERTS_PRODUCT:
        return overheads_activated_bytes(local, experts_tmp(local, false) / local->mlp_in_count);
    case EXPERTS_SHARED_PRODUCT:
        return overheads_activated_bytes(local, experts_tmp(local, true) / local->mlp_in_count);
    case EXPERTS_TENSOR_COUNT:
        break;
    }
    return 0;
}

static bool is_product(enum experts_tensor tensor)
{
    return tensor == EXPERTS_PRODUCT || tensor == EXPERTS_SHARED_PRODUCT;
}

/*
 * none: all that the backward pass reads.
 * norms: the same without In, and without what activation functions give.
 * big_matmuls: the outputs of the matmuls; tokens are sent to their experts once more.
 * block: nothing: the layer's input is attention's.
 */
bool experts_tensor_saved(const struct local *local, enum experts_tensor tensor)
{
    if (tensor == EXPERTS_IN_WHOLE) return false;
    if (is_product(tensor)) return local_keeps_outputs(local);
    switch (local->plan->remat) {
    case WORKLOAD_REMAT_NONE:
        return true;
    case WORKLOAD_REMAT_NORMS:
        return tensor != EXPERTS_IN;
    case WORKLOAD_REMAT_BIG_MATMULS:
        return tensor != EXPERTS_IN && tensor != EXPERTS_ROWS;
    case WORKLOAD_REMAT_BLOCK:
    case WORKLOAD_REMAT_LAYER:
        break;
    }
    return false;
}

static enum program_memory memory_of(const struct lower *lower, enum experts_tensor tensor)
{
    if (is_product(tensor)) return PROGRAM_MEMORY_ACTIVATED;
    return experts_tensor_saved(lower->local, tensor) ? PROGRAM_MEMORY_ACTIVATIONS
                                                      : PROGRAM_MEMORY_BUFFERS;
}

void experts_take(struct lower *lower, enum experts_tensor tensor, enum lower_pass pass,
                  uint32_t op)
{
    if (pass == LOWER_RECOMPUTE && experts_tensor_saved(lower->local, tensor)) return;
    lower_take(lower, op, memory_of(lower, tensor), experts_tensor_bytes(lower->local, tensor));
}

void experts_give(struct lower *lower, enum experts_tensor tensor, uint32_t op)
{
    lower_give(lower, op, memory_of(lower, tensor), experts_tensor_bytes(lower->local, tensor));
}

void experts_drop(struct lower *lower, enum experts_tensor tensor, enum lower_pass pass,
                  uint32_t op)
{
    if (pass == LOWER_RECOMPUTE || experts_tensor_saved(lower->local, tensor)) return;
    experts_give(lower, tensor, op);
}

const char *experts_name(struct lower *lower, const char *name, enum lower_pass pass)
{
    return pass == LOWER_RECOMPUTE ? builder_format(&lower->build, "%s again", name) : name;
}

uint32_t experts_vector(struct lower *lower, const char *name, uint64_t flop, uint64_t read_bytes,
                        uint64_t write_bytes)
{
    struct work const work = {
        .math_format = lower->local->plan->formats.activations,
        .vector_flop = flop,
        .hbm_read_bytes = read_bytes,
        .hbm_write_bytes = write_bytes,
    };
    return lower_compute(lower, name, &work, 1);
}

static enum format exchange_format(const struct local *local, bool spreads)
{
    const struct workload_formats *formats = &local->plan->formats;
    return spreads ? formats->dispatch : formats->activations;
}

/* What each rank really has for each other, once to each unit of a level on the way. */
static uint32_t drawn_plan(struct lower *lower, const struct plan_request *exchange)
{
    const struct local *local = lower->local;
    uint64_t const part = local->width / local->tp;
    enum format const format = exchange_format(local, exchange->spreads);
    struct plan_request request = *exchange;
    bool const automatic = request.algorithm == NULL || strcmp(request.algorithm, "auto") == 0;
    bool const levels = request.group.dimension_count > 1 && request.group.dimension[0].switched;
    if (automatic && levels) request.algorithm = "hierarchical";
    request.ragged = local->experts.drawn;
    request.ragged.token_bytes = format_bytes(format, part);
    request.ragged.returns = !exchange->spreads;
    return lower_plan_request(lower, &request, local->experts.ranks * local->rows * part, format);
}

uint32_t experts_exchange_plan(struct lower *lower, bool spreads)
{
    const struct local *local = lower->local;
    const struct local_experts *experts = &local->experts;
    uint64_t const part = local->width / local->tp; /* Of a token. */
    enum format const format = exchange_format(local, spreads);
    struct plan_request request = {
        .kind = COLLECTIVE_ALL_TO_ALL,
        .algorithm = local->plan->algorithm,
        .group = local->mesh->axis[MESH_EP].group,
        .spreads = spreads,
    };
    if (experts->drawn.expert_count != 0) return drawn_plan(lower, &request);
    for (uint32_t d = 0; d < request.group.dimension_count; d++)
        request.exchange_bytes[d] = format_bytes(format, experts->crossing[d] * part);
    return lower_plan_request(lower, &request, experts->exchanged * part, format);
}

uint32_t experts_exchange(struct lower *lower, const char *what, bool spreads)
{
    return lower_collective(lower, spreads ? LOWER_DISPATCH : LOWER_COMBINE, what, "ep",
                            experts_exchange_plan(lower, spreads));
}

static uint32_t over_tp(struct lower *lower, enum collective_kind kind, const char *what,
                        uint64_t elements, enum format format)
{
    const struct local *local = lower->local;
    uint32_t const plan =
        lower_plan(lower, kind, &local->mesh->axis[MESH_TP].group, elements, format, false);
    return lower_collective(
        lower, kind == COLLECTIVE_ALL_GATHER ? LOWER_GATHER_TP : LOWER_REDUCE_TP, what, "tp", plan);
}

uint32_t experts_tp(struct lower *lower, enum collective_kind kind, const char *what,
                    uint64_t elements)
{
    return over_tp(lower, kind, what, elements, lower->local->plan->formats.activations);
}

struct work experts_matmul(const struct lower *lower, bool shared, bool out, bool useful)
{
    const struct local *local = lower->local;
    const struct local_experts *experts = &local->experts;
    uint64_t const rows = shared ? local->rows : experts->rows;
    uint64_t const columns = shared ? experts->shared_columns : experts->columns;
    uint64_t const count =
        (shared ? 1 : experts->count) * (out ? UINT64_C(1) : local->mlp_in_count);
    uint64_t const assigned = shared ? local->rows : experts->kept;
    struct work work = {.math_format = local->plan->formats.matmuls, .matmul_count = 1};
    work.matmul[0] = out ? (struct work_matmul){rows, columns, local->width, count}
                         : (struct work_matmul){rows, local->width, columns, count};
    const struct model_experts *model = &local->plan->model.experts;
    uint64_t const wanted = (shared ? model->shared : 1) * model->width;
    if (useful)
        work.useful_flop = 2 * assigned * local->width * wanted *
                           (out ? UINT64_C(1) : local->mlp_in_count) / local->tp;
    return work;
}

uint64_t experts_weights(const struct lower *lower, bool shared, bool out)
{
    const struct local *local = lower->local;
    const struct local_experts *experts = &local->experts;
    uint64_t const columns = shared ? experts->shared_columns : experts->count * experts->columns;
    return local->width * columns * (out ? UINT64_C(1) : local->mlp_in_count);
}

static bool casts(const struct local *local)
{
    return local->plan->formats.dispatch != local->plan->formats.activations;
}

uint32_t experts_cast(struct lower *lower, const char *name, uint32_t source)
{
    uint64_t const shard = lower->local->block_shard;
    if (!casts(lower->local)) return source;
    uint32_t const cast = experts_vector(lower, name, 0, lower_activation_bytes(lower, shard),
                                         lower_dispatch_bytes(lower, shard));
    lower_need_done(lower, cast, source);
    lower_take(lower, cast, PROGRAM_MEMORY_BUFFERS, lower_dispatch_bytes(lower, shard));
    return cast;
}

uint32_t experts_dispatch(struct lower *lower, const char *what, const char *sort_name,
                          uint32_t source)
{
    enum format const format = lower->local->plan->formats.dispatch;
    uint64_t const arrivals = lower_dispatch_bytes(lower, experts_arrivals(lower));
    uint64_t const shard = lower_dispatch_bytes(lower, experts_arrivals_shard(lower));
    uint32_t const exchange = experts_exchange(lower, what, /* spreads= */ true);
    lower_need_done(lower, exchange, source);
    uint32_t const gather =
        over_tp(lower, COLLECTIVE_ALL_GATHER, builder_format(&lower->build, "moe.%s", what),
                experts_arrivals(lower), format);
    lower_need_done(lower, gather, exchange != LOWER_NONE ? exchange : source);
    uint32_t const sort = experts_vector(lower, sort_name, 0, arrivals,
                                         lower_matmul_bytes(lower, experts_sorted(lower)));
    lower_need_done(lower, sort,
                    gather != LOWER_NONE     ? gather
                    : exchange != LOWER_NONE ? exchange
                                             : source);
    if (casts(lower->local))
        lower_give(lower, exchange, PROGRAM_MEMORY_BUFFERS,
                   lower_dispatch_bytes(lower, lower->local->block_shard));
    if (exchange != LOWER_NONE) {
        lower_take(lower, exchange, PROGRAM_MEMORY_BUFFERS, shard);
        lower_give(lower, gather != LOWER_NONE ? gather : sort, PROGRAM_MEMORY_BUFFERS, shard);
    }
    if (gather != LOWER_NONE) {
        lower_take(lower, gather, PROGRAM_MEMORY_BUFFERS, arrivals);
        lower_give(lower, sort, PROGRAM_MEMORY_BUFFERS, arrivals);
    }
    return sort;
}

uint32_t experts_combine(struct lower *lower, const char *what, const char *sum_name)
{
    uint64_t const arrivals = lower_activation_bytes(lower, experts_arrivals(lower));
    uint64_t const shard = lower_activation_bytes(lower, experts_arrivals_shard(lower));
    uint32_t const sum =
        experts_vector(lower, sum_name, experts_sorted(lower),
                       lower_activation_bytes(lower, experts_sorted(lower)), arrivals);
    uint32_t const scatter =
        experts_tp(lower, COLLECTIVE_REDUCE_SCATTER, builder_format(&lower->build, "moe.%s", what),
                   experts_arrivals(lower));
    lower_need_done(lower, scatter, sum);
    uint32_t const exchange = experts_exchange(lower, what, /* spreads= */ false);
    uint32_t const sent = scatter != LOWER_NONE ? scatter : sum;
    lower_need_done(lower, exchange, sent);
    uint32_t const last = exchange != LOWER_NONE ? exchange : sent;
    lower_give(lower, sum, PROGRAM_MEMORY_BUFFERS,
               lower_activation_bytes(lower, experts_sorted(lower)));
    lower_take(lower, sum, PROGRAM_MEMORY_BUFFERS, arrivals);
    lower_give(lower, sent != sum || exchange == LOWER_NONE ? sent : exchange,
               PROGRAM_MEMORY_BUFFERS, arrivals);
    if (scatter != LOWER_NONE && exchange != LOWER_NONE) {
        lower_take(lower, scatter, PROGRAM_MEMORY_BUFFERS, shard);
        lower_give(lower, exchange, PROGRAM_MEMORY_BUFFERS, shard);
    }
    lower_take(lower, last, PROGRAM_MEMORY_BUFFERS, /* Given back by who reads it. */
               lower_activation_bytes(lower, experts_sent_shard(lower)));
    return last;
}
