/*
 * Evaluators that play one collective on an idle machine (sim/measure/measure.h). The book's
 * formulas drop (N-1)/N and the hops; the replay does not, and the rows say so by their factor and
 * their hops.
 */
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/units.h"
#include "sim/choose/choose.h"
#include "sim/collective/ragged.h"
#include "sim/measure/measure.h"
#include "sim/measure/measure_group.h"
#include "sim/measure/measure_op.h"
#include "sim/roofline/collective_bound.h"
#include "tests/oracle/plan_cost.h"
#include "tests/validation/case_parts.h"

static enum collective_kind kind_of(const struct case_row *row)
{
    const char *name = row_text(row, "kind");
    for (int kind = COLLECTIVE_ALL_GATHER; kind < COLLECTIVE_KIND_COUNT; kind++)
        if (strcmp(name, collective_kind_name((enum collective_kind)kind)) == 0)
            return (enum collective_kind)kind;
    row_fail(row, "no collective %s", name);
}

/* Parts of axes, "x y" or "node:2 gpu"; all of them if the row does not say. */
static struct group group_of(const struct case_row *row, const struct machine *machine)
{
    if (row_has(row, "role")) {
        struct mesh const mesh = row_mesh(row, machine);
        return row_role(row, &mesh)->group;
    }
    char *axes = NULL;
    if (row_has(row, "axes")) {
        axes = arena_text(row->arena, row_text(row, "axes"));
        if (axes == NULL) row_fail(row, "no memory");
        for (char *at = axes; *at != '\0'; at++)
            if (*at == ' ') *at = ',';
    }
    struct group group;
    struct error error = {0};
    row_check(row, measure_group(machine, axes, "/axes", &group, &error), &error);
    return group;
}

static struct plan_request request_of(const struct case_row *row, const struct machine *machine,
                                      uint64_t size_bytes)
{
    struct plan_request request = {.kind = kind_of(row),
                                   .algorithm =
                                       algorithm_read(row_text_or(row, "algorithm", "auto")),
                                   .group = group_of(row, machine),
                                   .size_bytes = size_bytes,
                                   .piece_count = (uint32_t)row_count_or(row, "pieces", 0),
                                   .ragged = {
                                       .expert_count = (uint32_t)row_count_or(row, "experts", 0),
                                       .top_k = (uint32_t)row_count_or(row, "top_k", 0),
                                       .token_bytes = row_count_or(row, "token_bytes", 0),
                                       .seed = row_count_or(row, "seed", 0),
                                   }};
    struct json *offset = row_find(row, "offset");
    if (offset != NULL)
        for (uint32_t i = 0; i < json_count(offset); i++)
            request.offset[i] = (int32_t)row_operand(row, json_at(offset, i));
    return request;
}

static struct plan plan_of(const struct case_row *row, const struct machine *machine,
                           uint64_t size_bytes)
{
    struct plan_request const request = request_of(row, machine, size_bytes);
    struct plan plan;
    struct error error = {0};
    row_check(row, plan_build(row->arena, &request, "/collective", &plan, &error), &error);
    return plan;
}

/* What the command line would play: where NCCL's protocols are in use, the cheapest algorithm with
 * the cheapest of them. */
static struct plan_request chosen(const struct case_row *row, const struct machine *machine,
                                  uint64_t size_bytes)
{
    struct plan_request request = request_of(row, machine, size_bytes);
    if (!choose_by_protocols(machine)) return request;
    struct choose_args const args = {
        .machine = machine, .request = request, .protocols = true, .size_bytes = size_bytes};
    struct choose_ranking ranking;
    struct error error = {0};
    uint32_t first = 0;
    row_check(row, choose_rank(row->arena, &args, "/collective", &ranking, &error), &error);
    while (!algorithm_is_chosen(&request.algorithm) && first < ranking.count &&
           !algorithm_equal(&ranking.candidate[first].algorithm, &request.algorithm))
        first++;
    if (first == ranking.count)
        row_fail(row, "%s is no candidate", algorithm_text(&request.algorithm).text);
    row_check(row, choose_apply(&args, &ranking.candidate[first], "/collective", &request, &error),
              &error);
    return request;
}

static struct measured played(const struct case_row *row, const struct machine *machine,
                              uint64_t size_bytes)
{
    struct plan_request const request = chosen(row, machine, size_bytes);
    struct measure_options const options = {.engine = "fast"};
    struct measured measured;
    struct error error = {0};
    row_simulates();
    row_check(
        row,
        measure_run(row->arena, machine, &request, 1, "/collective", &options, &measured, &error),
        &error);
    return measured;
}

static double played_s(const struct case_row *row, const struct machine *machine,
                       uint64_t size_bytes)
{
    struct arena *arena = arena_create(0);
    if (arena == NULL) row_fail(row, "no memory");
    struct case_row const inner = {.outer = row, .name = row->name, .arena = arena};
    struct measured const measured = played(&inner, machine, size_bytes);
    arena_destroy(arena);
    return units_seconds(measured.time_ps[0]);
}

/* Bus bandwidth as nccl-tests counts it, of kinds whose size is the array. */
static double bus_bytes_per_s(const struct case_row *row, const struct machine *machine,
                              uint64_t size_bytes)
{
    struct group const group = group_of(row, machine);
    struct collective_factor const factor =
        collective_bus_factor(kind_of(row), group_rank_count(&group));
    return (double)size_bytes * (double)factor.numerator / (double)factor.denominator /
           played_s(row, machine, size_bytes);
}

static uint32_t port_of(const struct case_row *row, const struct machine *machine, const char *name)
{
    for (uint32_t level = 0; level < machine->level_count; level++)
        for (uint32_t end = 0; end < 2 * machine->level[level].tier_count; end++) {
            uint32_t const port = machine_level_port(level, end / 2, end % 2);
            if (strcmp(machine_port_name(machine, port), name) == 0) return port;
        }
    row_fail(row, "no port %s", name);
}

/* Bytes over all links of a port, "NVLink up": of the chips that were played, for all. */
static double carried_bytes(const struct case_row *row, const struct machine *machine,
                            uint64_t size_bytes)
{
    uint32_t const port = port_of(row, machine, row_text(row, "port"));
    struct measured const measured = played(row, machine, size_bytes);
    double const played_share = (double)measured.trace.fold.replayed / machine->chip_count;
    return (double)measured.trace.link[port].sum_bytes / played_share;
}

/* Bytes at which the time is twice that of nothing but hops: where the curve bends. */
static double bend_bytes(const struct case_row *row, const struct machine *machine)
{
    double const hops_s = played_s(row, machine, 1);
    uint64_t low = 1, high = 1;
    while (played_s(row, machine, high) < 2 * hops_s) high *= 2;
    while (high - low > 1) {
        uint64_t const middle = low + (high - low) / 2;
        if (played_s(row, machine, middle) < 2 * hops_s)
            low = middle;
        else
            high = middle;
    }
    return (double)high;
}

/* Messages that follow one another: those that the busiest position receives in a lane of an item,
 * over the items of the first order. */
static double steps_of(const struct plan *plan)
{
    uint32_t most[PLAN_ITEMS_MAX] = {0}, steps = 0;
    for (uint32_t lane = 0; lane < plan->lane_count; lane++) {
        uint32_t const index = plan->lane[lane].item;
        uint32_t const size = plan->item[index].size;
        for (uint32_t position = 0; position < size; position++) {
            uint32_t const count = plan->lane[lane].arrival_count[position];
            if (count > most[index]) most[index] = count;
        }
    }
    for (uint32_t i = 0; i < plan->item_count; i++)
        if (plan->item[i].order == 0) steps += most[i];
    return steps;
}

static struct case_value collective(const struct case_row *row)
{
    struct machine const machine = row_machine(row);
    const char *what = row_text_or(row, "what", "time");
    uint64_t const size_bytes = row_count_or(row, "bytes", 1);
    if (strcmp(what, "time") == 0) return value_number(played_s(row, &machine, size_bytes));
    if (strcmp(what, "busbw") == 0) return value_number(bus_bytes_per_s(row, &machine, size_bytes));
    if (strcmp(what, "carried") == 0) return value_number(carried_bytes(row, &machine, size_bytes));
    if (strcmp(what, "bend") == 0) return value_number(bend_bytes(row, &machine));
    struct plan const plan = plan_of(row, &machine, size_bytes);
    uint32_t const first[GROUP_DIMENSIONS_MAX] = {0};
    if (strcmp(what, "steps") == 0) return value_number(steps_of(&plan));
    if (strcmp(what, "sent") == 0) return value_number((double)plan_sent_bytes(&plan, 0, first));
    if (strcmp(what, "both_ways") == 0) { /* An axis' links, both directions, of all its axes. */
        double rate = 0;
        for (uint32_t i = 0; i < 2 * plan.group.dimension_count; i++) {
            uint64_t bytes_per_s = 0;
            int64_t latency_ps = 0;
            machine_link(&machine, 0, 2 * plan.group.dimension[i / 2].axis + i % 2, &bytes_per_s,
                         &latency_ps);
            rate += (double)bytes_per_s;
        }
        return value_number(rate);
    }
    row_fail(row, "a collective has no %s", what);
}

/* What a rank of a ragged exchange sends in the mean, of a buffer with a slot a token for each of
 * the ranks; they need no machine. */
static struct case_value ragged_factor(const struct case_row *row)
{
    uint64_t const ranks = row_count(row, "ranks");
    struct plan_request request = {
        .kind = COLLECTIVE_ALL_TO_ALL,
        .group = {.dimension = {{.size = (uint32_t)ranks, .stride = 1, .switched = true}},
                  .dimension_count = 1},
        .size_bytes = ranks * row_count(row, "tokens"),
        .ragged = {.expert_count = (uint32_t)row_count(row, "experts"),
                   .top_k = (uint32_t)row_count(row, "top_k"),
                   .token_bytes = 1,
                   .seed = row_count_or(row, "seed", 0)},
    };
    struct plan plan;
    struct error error = {0};
    row_check(row, plan_build(row->arena, &request, "/ragged", &plan, &error), &error);
    return value_number((double)ragged_load(&plan).sent_bytes / (double)request.size_bytes /
                        (double)ranks);
}

/* The least time that the fabric's cuts allow, as sim/roofline/collective_bound.h states it. */
static struct case_value bound(const struct case_row *row)
{
    struct machine const machine = row_machine(row);
    struct group const group = group_of(row, &machine);
    struct collective_query const query = {.kind = kind_of(row),
                                           .array_bytes = row_count(row, "bytes")};
    struct collective_bound bound;
    collective_bound(&machine, &group, &query, &bound);
    return value_number(bound.bytes_s);
}

const struct case_evaluator case_collective[] = {
    {"collective", collective}, {"bound", bound}, {"ragged_factor", ragged_factor}, {NULL, NULL}};
