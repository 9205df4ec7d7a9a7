#include "sim/measure/row.h"

#include <stdio.h>

#include "sim/roofline/collective_bound.h"

static const double ps_per_s = 1e12;

enum status row_request(const struct row_question *question, uint64_t size_bytes,
                        const char *algorithm, const char *where, struct plan_request *ret_request,
                        struct error *reterr)
{
    uint64_t array_bytes = 0;
    const struct group *group = &question->group;
    STATUS_TRY(operation_array_bytes(question->operation, group_rank_count(group), size_bytes,
                                     where, &array_bytes, reterr));
    *ret_request = (struct plan_request){
        .kind = operation_kind(question->operation),
        .algorithm = algorithm,
        .group = *group,
        .size_bytes = array_bytes,
        .root = question->root,
    };
    /* Everyone sends to the next rank along the last dimension. */
    if (question->operation == OPERATION_SENDRECV)
        ret_request->offset[group->dimension_count - 1] = 1;
    return STATUS_OK;
}

/* Whether switches add or multicast for it. */
static bool is_in_network(const struct plan *plan)
{
    for (uint32_t i = 0; i < plan->item_count; i++)
        if (plan->item[i].primitive->network != PRIMITIVE_NETWORK_NONE) return true;
    return false;
}

static struct collective_bound bound_of(const struct row_question *question,
                                        const struct plan *plan)
{
    struct collective_query query = {
        .kind = plan->kind,
        .array_bytes = plan->size_bytes,
        .in_network = is_in_network(plan),
        .element_bytes = (format_bits(question->format) + 7) / 8,
        .root = plan->root,
    };
    struct collective_bound bound;
    for (uint32_t d = 0; d < GROUP_DIMENSIONS_MAX; d++) query.offset[d] = plan->offset[d];
    collective_bound(question->machine, &question->group, &query, &bound);
    return bound;
}

void row_fill(const struct row_question *question, uint64_t size_bytes, const struct plan *plan,
              int64_t time_ps, int64_t alone_ps, struct row *ret_row)
{
    uint64_t const ranks = group_rank_count(&question->group);
    struct operation_factor const factor = operation_bus_factor(question->operation, ranks);
    struct collective_bound const bound = bound_of(question, plan);
    double const algbw = time_ps > 0 ? (double)size_bytes / ((double)time_ps / ps_per_s) : 0;
    *ret_row = (struct row){
        .question = question,
        .size_bytes = size_bytes,
        .array_bytes = plan->size_bytes,
        .count = operation_count(question->operation, ranks, size_bytes, question->format),
        .time_ps = time_ps,
        .alone_ps = alone_ps,
        .algbw_bytes_per_s = algbw,
        .busbw_bytes_per_s = algbw * (double)factor.numerator / (double)factor.denominator,
        .roofline_s = bound.time_s,
        .latency_s = bound.latency_s,
        .strict_s = bound.strict_s,
        .bound_by = bound.bound_by,
        .bound_where = bound.where,
    };
    (void)snprintf(ret_row->algorithm, sizeof ret_row->algorithm, "%s", plan->algorithm);
}

double row_slowdown(const struct row *row)
{
    return row->alone_ps > 0 ? (double)row->time_ps / (double)row->alone_ps : 1;
}

double row_fairness(const struct row *rows, uint32_t count)
{
    double sum = 0, squares = 0;
    for (uint32_t i = 0; i < count; i++) {
        double const slowdown = row_slowdown(&rows[i]);
        sum += slowdown;
        squares += slowdown * slowdown;
    }
    return squares > 0 ? sum * sum / (count * squares) : 1;
}

bool row_port_was_used(const struct row_run *run, uint32_t port)
{
    return run->link[port].sum_messages > 0;
}

struct row_port row_port(const struct row_run *run, uint32_t port)
{
    const struct trace_link *link = &run->link[port];
    double const time_ps = run->time_ps > 0 ? (double)run->time_ps : 1;
    double const messages = link->messages > 0 ? (double)link->messages : 1;
    return (struct row_port){
        .busy_fraction = (double)link->busy_ps / time_ps,
        .mean_depth = (double)link->waited_ps / time_ps,
        .mean_wait_s = (double)link->waited_ps / messages / ps_per_s,
        .longest_wait_s = (double)link->queued_ps / ps_per_s,
    };
}

uint32_t row_busiest_port(const struct row_run *run)
{
    uint32_t busiest = TRACE_PORTS_MAX;
    for (uint32_t port = 0; port < TRACE_PORTS_MAX; port++)
        if (row_port_was_used(run, port) &&
            (busiest == TRACE_PORTS_MAX || run->link[port].busy_ps > run->link[busiest].busy_ps))
            busiest = port;
    return busiest;
}
