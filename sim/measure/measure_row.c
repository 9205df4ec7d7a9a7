#include "sim/measure/measure_row.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/name.h"
#include "sim/base/units.h"
#include "sim/collective/algorithm.h"
#include "sim/collective/hosts.h"
#include "sim/collective/msccl.h"
#include "sim/collective/proof.h"
#include "sim/measure/autotune.h"
#include "sim/roofline/collective_bound.h"

/* The digits of a shift, of the last dimension first. */
static void shift_fill(const struct measure_row_args *args, int32_t offset[GROUP_DIMENSIONS_MAX])
{
    uint32_t rest = args->shift == 0 ? 1 : args->shift;
    for (uint32_t d = args->group.dimension_count; d-- > 0;) {
        offset[d] = (int32_t)(rest % args->group.dimension[d].size);
        rest /= args->group.dimension[d].size;
    }
}

struct measure_row_senders measure_row_senders(const struct measure_row_args *args)
{
    int32_t offset[GROUP_DIMENSIONS_MAX];
    uint64_t const ranks = group_rank_count(&args->group);
    struct measure_row_senders senders = {.count = ranks};
    shift_fill(args, offset);
    for (uint32_t d = 0; d < args->group.dimension_count; d++) {
        const struct group_dimension *dimension = &args->group.dimension[d];
        if (dimension->ring || dimension->switched || offset[d] == 0) continue;
        senders.line = dimension;
        senders.silent = (uint32_t)offset[d];
        senders.count = ranks / dimension->size * (dimension->size - senders.silent);
    }
    return senders;
}

enum status measure_row_request(const struct measure_row_args *args, uint64_t size_bytes,
                                const char *where, struct plan_request *ret_request,
                                struct error *reterr)
{
    uint64_t array_bytes = 0;
    const struct group *group = &args->group;
    STATUS_TRY(measure_op_array_bytes(args->operation, group_rank_count(group), size_bytes, where,
                                      &array_bytes, reterr));
    *ret_request = (struct plan_request){
        .kind = measure_op_kind(args->operation),
        .group = *group,
        .size_bytes = array_bytes,
        .root = args->root,
        .element_bits = format_bits(args->format),
        .ragged = args->ragged,
    };
    if (args->operation == MEASURE_SENDRECV) shift_fill(args, ret_request->offset);
    hosts_begin(args->machine, ret_request);
    return STATUS_OK;
}

/* The arguments of a size for sim/choose. */
static enum status args_make(const struct measure_row_args *args, uint64_t size_bytes,
                             const char *where, struct choose_args *ret_asked, struct error *reterr)
{
    *ret_asked = (struct choose_args){
        .machine = args->machine,
        .protocols = args->protocols,
        .protocol = args->protocol,
        .registered = args->registered,
        .tuner = args->tuner,
        .size_bytes = size_bytes,
        .known = args->known,
    };
    return measure_row_request(args, size_bytes, where, &ret_asked->request, reterr);
}

static enum status choice_take(struct arena *arena, struct measure_row_choice **ret_choice,
                               struct error *reterr)
{
    void *memory = NULL;
    STATUS_TRY(arena_try(arena, 1, sizeof **ret_choice, &memory, reterr));
    *ret_choice = memory;
    return STATUS_OK;
}

/* The best by a name that was asked for, where protocols compete: the first in the ranking that has
 * it. What NCCL does not have goes without. */
static enum status protocol_choose(struct arena *arena, const struct choose_args *asked,
                                   const char *where, struct choose_candidate *candidate,
                                   struct error *reterr)
{
    struct choose_args untuned = *asked;
    void *memory = NULL;
    untuned.tuner = NULL;
    STATUS_TRY(arena_try(arena, 1, sizeof(struct choose_ranking), &memory, reterr));
    struct choose_ranking *ranking = memory;
    STATUS_TRY(choose_rank(arena, &untuned, where, ranking, reterr));
    for (uint32_t i = 0; i < ranking->count; i++) {
        if (!algorithm_equal(&ranking->candidate[i].algorithm, &candidate->algorithm)) continue;
        candidate->protocol = ranking->candidate[i].protocol;
        return STATUS_OK;
    }
    candidate->protocol = asked->protocol;
    return STATUS_OK;
}

/* A script runs as it is, with a protocol where one is asked for or the profile has them. */
static enum status msccl_choose(const struct choose_args *asked,
                                const struct measure_row_args *args, const char *where,
                                struct measure_row_choice *choice, struct error *reterr)
{
    const struct msccl_script *script = args->script;
    choice->request = asked->request;
    choice->request.script = script;
    choice->candidate.algorithm = algorithm_called(script->name);
    if (!args->protocols) return STATUS_OK;
    choice->candidate.protocol = args->protocol;
    if (args->protocol == PROTOCOL_NONE)
        STATUS_TRY(protocol_find(script->protocol, where, &choice->candidate.protocol, reterr));
    struct protocol_use const use = protocol_use_of(asked->machine, &asked->request,
                                                    choice->candidate.algorithm, asked->registered);
    return protocol_make(&use, choice->candidate.protocol, where, &choice->request.protocol,
                         reterr);
}

/* One message a rank can go one way only; where protocols compete, by the one that NCCL takes. */
static enum status sendrecv_choose(struct arena *arena, const struct choose_args *asked,
                                   const struct algorithm *algorithm, const char *where,
                                   struct measure_row_choice *choice, struct error *reterr)
{
    double least_s = INFINITY;
    choice->request = asked->request;
    choice->request.algorithm = *algorithm;
    if (!asked->protocols) return STATUS_OK;
    struct protocol_use const use =
        protocol_use_of(asked->machine, &asked->request, algorithm_by_pairs(&asked->request.group),
                        asked->registered);
    for (uint32_t p = 0; p < PROTOCOL_COUNT; p++) {
        struct plan plan;
        struct collective_estimate estimate;
        struct plan_request request = choice->request;
        bool const asks = asked->protocol == PROTOCOL_NONE
                              ? p != PROTOCOL_NONE && protocol_is_taken(&use, (enum protocol)p)
                              : p == (uint32_t)asked->protocol;
        if (!asks || protocol_refusal(&use, (enum protocol)p) != NULL) continue;
        STATUS_TRY(protocol_make(&use, (enum protocol)p, where, &request.protocol, reterr));
        plan_request_links(asked->machine, &request);
        STATUS_TRY(plan_build(arena, &request, where, &plan, reterr));
        collective_estimate(asked->machine, &plan, asked->known, &estimate);
        if (estimate.time_s >= least_s) continue;
        least_s = estimate.time_s;
        choice->request.protocol = request.protocol;
        choice->candidate.protocol = (enum protocol)p;
    }
    return STATUS_OK;
}

enum status measure_row_choose(struct arena *arena, const struct measure_row_args *args,
                               uint64_t size_bytes, const struct algorithm *algorithm,
                               const char *where, const struct measure_row_choice **ret_choice,
                               struct error *reterr)
{
    struct choose_args asked;
    struct measure_row_choice *choice = NULL;
    struct algorithm const chosen = {.means = ALGORITHM_AUTO};
    if (algorithm == NULL) algorithm = &chosen;
    struct algorithm_text const name = algorithm_text(algorithm);
    STATUS_TRY(args_make(args, size_bytes, where, &asked, reterr));
    STATUS_TRY(choice_take(arena, &choice, reterr));
    if (args->operation == MEASURE_SENDRECV) {
        STATUS_TRY(sendrecv_choose(arena, &asked, algorithm, where, choice, reterr));
    } else if (args->script != NULL) {
        STATUS_TRY(msccl_choose(&asked, args, where, choice, reterr));
    } else if (algorithm_is_chosen(algorithm)) {
        void *memory = NULL;
        STATUS_TRY(arena_try(arena, 1, sizeof(struct choose_ranking), &memory, reterr));
        struct choose_ranking *ranking = memory;
        STATUS_TRY(autotune_choose(arena, &asked, where, ranking, reterr));
        choice->candidate = ranking->candidate[0];
        choice->ranking = ranking;
        STATUS_TRY(choose_apply(&asked, &choice->candidate, where, &choice->request, reterr));
    } else if (strlen(name.text) >= PLAN_ALGORITHM_SIZE) {
        return error_set(reterr, STATUS_NOT_FOUND, where, "no algorithm \"%.40s...\"", name.text);
    } else {
        choice->candidate.algorithm = *algorithm;
        if (args->protocols)
            STATUS_TRY(protocol_choose(arena, &asked, where, &choice->candidate, reterr));
        STATUS_TRY(choose_apply(&asked, &choice->candidate, where, &choice->request, reterr));
    }
    *ret_choice = choice;
    return STATUS_OK;
}

enum status measure_row_choose_other(struct arena *arena, const struct measure_row_args *args,
                                     uint64_t size_bytes, const struct choose_candidate *candidate,
                                     const char *where,
                                     const struct measure_row_choice **ret_choice,
                                     struct error *reterr)
{
    struct choose_args asked;
    struct measure_row_choice *choice = NULL;
    STATUS_TRY(args_make(args, size_bytes, where, &asked, reterr));
    STATUS_TRY(choice_take(arena, &choice, reterr));
    choice->candidate = *candidate;
    STATUS_TRY(choose_apply(&asked, &choice->candidate, where, &choice->request, reterr));
    *ret_choice = choice;
    return STATUS_OK;
}

/* Raises a bound to that of the uniform exchanges, in the groups that an item goes over, in which
 * ranks send each other as many bytes. */
static void bound_raise(const struct measure_row_args *args, const struct plan *plan,
                        const struct plan_item *item, const struct collective_query *all,
                        struct collective_bound *bound)
{
    struct group group = args->group;
    struct collective_query query = *all;
    struct collective_bound own;
    if (!item->flat) group = (struct group){{args->group.dimension[item->dimension]}, 1};
    double const groups = (double)group_rank_count(&args->group) / item->size;
    query.array_bytes = (uint64_t)((double)ragged_item_load(plan, item).sent_bytes / groups *
                                   item->size / (item->size - 1));
    collective_bound(args->machine, &group, &query, &own);
    if (own.time_s > bound->time_s) *bound = own;
}

static struct collective_bound bound_of(const struct measure_row_args *args,
                                        const struct plan *plan)
{
    bool const ragged = plan->ragged_units != NULL;
    struct collective_query query = {
        .kind = plan->kind,
        .array_bytes = ragged ? 0 : plan->size_bytes,
        .element_bits = plan_element_bits(plan),
        .root = plan->rooted.root,
    };
    struct collective_bound bound;
    for (uint32_t d = 0; d < GROUP_DIMENSIONS_MAX; d++) query.offset[d] = plan->permute.offset[d];
    collective_bound(args->machine, &args->group, &query, &bound);
    if (!ragged) return bound;
    double const latency_s = bound.latency_s;
    for (uint32_t i = 0; i < plan->item_count; i++)
        bound_raise(args, plan, &plan->item[i], &query, &bound);
    bound.latency_s = bound.strict_s = latency_s;
    return bound;
}

/* Those behind the first. */
static void runners_fill(const struct choose_ranking *ranking, struct measure_row *row)
{
    for (uint32_t i = 1; i < ranking->count && row->runner_count < ROW_RUNNERS_MAX; i++) {
        struct measure_row_runner *runner = &row->runner[row->runner_count++];
        (void)snprintf(runner->algorithm, sizeof runner->algorithm, "%.*s", PLAN_ALGORITHM_SIZE - 1,
                       algorithm_text(&ranking->candidate[i].algorithm).text);
        runner->protocol = ranking->candidate[i].protocol;
        runner->estimate_s = ranking->candidate[i].estimate.time_s;
        runner->time_ps = ranking->candidate[i].played_ps;
    }
    row->left_out = ranking->left_out;
    row->tuner_line = ranking->rule != NULL ? ranking->rule->line : 0;
}

static void ragged_fill(const struct plan *plan, struct measure_row *row)
{
    uint64_t const ranks = group_rank_count(&plan->group);
    double const time_s = row->time_ps > 0 ? units_seconds(row->time_ps) : 1;
    row->load = ragged_load(plan);
    const struct group_dimension *farthest = &plan->group.dimension[plan->flat_dimension[0]];
    if (plan->group.dimension_count > 1 && farthest->switched) row->farthest_axis = farthest->name;
    row->farthest_bytes = ragged_farthest_bytes(plan);
    row->count = measure_op_count(row->args->operation, 1, row->size_bytes, row->args->format);
    row->busbw_bytes_per_s = (double)row->load.sent_bytes / (double)ranks / time_s;
}

struct measure_row_factors measure_row_factors(const struct measure_row *row)
{
    double const ranks = (double)group_rank_count(&row->args->group);
    const struct plan_ragged *ragged = &row->args->ragged;
    uint64_t const tokens = row->size_bytes / ragged->token_bytes;
    double const dense = ranks * ranks * (double)tokens * (double)ragged->token_bytes;
    double missed = 1;
    for (uint32_t k = 0; k < ragged->top_k; k++) missed *= (ranks - 1) / ranks;
    double const share = ragged->top_k < ranks ? ragged->top_k / ranks : 1;
    return (struct measure_row_factors){
        .drawn = (double)row->load.sent_bytes / dense,
        .distinct = share * (ranks - 1) / ranks,
        .independent = (1 - missed) * (ranks - 1) / ranks,
    };
}

void measure_row_fill(const struct measure_row_args *args, uint64_t size_bytes,
                      const struct measure_row_choice *choice, const struct plan *plan,
                      int64_t time_ps, int64_t alone_ps, struct measure_row *ret_row)
{
    struct collective_estimate estimate;
    uint64_t const ranks = group_rank_count(&args->group);
    struct collective_factor const factor =
        collective_bus_factor(measure_op_kind(args->operation), ranks);
    struct collective_bound const bound = bound_of(args, plan);
    double const algbw = time_ps > 0 ? (double)size_bytes / (units_seconds(time_ps)) : 0;
    *ret_row = (struct measure_row){
        .args = args,
        .size_bytes = size_bytes,
        .array_bytes = plan->size_bytes,
        .count = measure_op_count(args->operation, ranks, size_bytes, args->format),
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
    if (plan->ragged_units != NULL) ragged_fill(plan, ret_row);
    if (plan->script == NULL) collective_estimate(args->machine, plan, args->known, &estimate);
    ret_row->estimate_s = plan->script == NULL ? estimate.time_s : 0;
    ret_row->protocol = choice->candidate.protocol;
    if (choice->ranking != NULL) runners_fill(choice->ranking, ret_row);
    (void)snprintf(ret_row->algorithm, sizeof ret_row->algorithm, "%s", plan->algorithm_name);
}

enum status measure_row_prove(const struct plan *plan, struct measure_row *row,
                              struct error *reterr)
{
    if (group_rank_count(&plan->group) > PROOF_RANKS_MAX) return STATUS_OK;
    STATUS_TRY(plan_check(plan, reterr));
    row->proved = true;
    return STATUS_OK;
}

bool measure_row_beats_roofline(const struct measure_row *row)
{
    return (double)row->time_ps < floor(row->roofline_s * (double)TIME_PS_PER_S);
}

double measure_row_slowdown(const struct measure_row *row)
{
    return row->alone_ps > 0 ? (double)row->time_ps / (double)row->alone_ps : 1;
}

double measure_row_fairness(const struct measure_row *rows, uint32_t count)
{
    double sum = 0, squares = 0;
    for (uint32_t i = 0; i < count; i++) {
        double const slowdown = measure_row_slowdown(&rows[i]);
        sum += slowdown;
        squares += slowdown * slowdown;
    }
    return squares > 0 ? sum * sum / (count * squares) : 1;
}

bool measure_row_port_was_used(const struct measure_row_run *run, uint32_t port)
{
    return run->link[port].sum_messages > 0;
}

struct measure_row_port measure_row_port(const struct measure_row_run *run, uint32_t port)
{
    const struct trace_link *link = &run->link[port];
    double const time_ps = run->time_ps > 0 ? (double)run->time_ps : 1;
    double const messages = link->messages > 0 ? (double)link->messages : 1;
    return (struct measure_row_port){
        .busy_fraction = (double)link->busy_ps / time_ps,
        .mean_depth = (double)link->waited_ps / time_ps,
        .mean_wait_s = (double)link->waited_ps / messages / (double)TIME_PS_PER_S,
        .longest_wait_s = units_seconds(link->queued_ps),
    };
}

uint32_t measure_row_busiest_port(const struct measure_row_run *run)
{
    uint32_t busiest = TRACE_PORTS_MAX;
    for (uint32_t port = 0; port < TRACE_PORTS_MAX; port++)
        if (measure_row_port_was_used(run, port) &&
            (busiest == TRACE_PORTS_MAX || run->link[port].busy_ps > run->link[busiest].busy_ps))
            busiest = port;
    return busiest;
}
