/* No collective of the catalogue is played faster than its bound, on any fabric, in the ideal
 * profile, and the best come near to it; what is estimated to be the fastest is not
 * much slower than what is. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sim/base/arena.h"
#include "sim/base/units.h"
#include "sim/choose/contention.h"
#include "sim/choose/estimate.h"
#include "sim/measure/measure.h"
#include "sim/measure/measure_group.h"
#include "sim/roofline/collective_bound.h"
#include "tests/support/sampling.h"

static const struct fabric {
    const char *chip, *shape;
    uint32_t nodes, gpus, slices;
    const char *axes;
    /* Of the bound, for the best at the largest size; 0: not known. */
    double most;        /* AllGather, ReduceScatter, AllToAll; */
    double spread_most; /* Broadcast, Reduce (docs/collectives.md says why more on grids); */
    double root_most;   /* Gather, Scatter. */
} fabrics[] = {
    {"h100-sxm", NULL, 0, 0, 0, NULL, 1.03, 1.01, 1.01},
    {"h100-sxm", NULL, 0, 4, 0, NULL, 1.03, 1.01, 1.01},
    {"h100-sxm", NULL, 2, 0, 0, NULL, 1.01, 1.03, 1.01},
    {"h100-sxm", NULL, 4, 0, 0, NULL, 1.01, 1.03, 1.01},
    {"h100-sxm", NULL, 4, 0, 0, "node", 1.03, 1.03, 1.01},
    {"h100-sxm", NULL, 4, 0, 0, "node:2,gpu:4", 1.01, 1.03, 1.01},
    {"b200", NULL, 2, 0, 0, NULL, 1.01, 1.03, 1.01},
    {"mi300x", NULL, 0, 0, 0, NULL, 1.03, 0, 1.01},
    {"mi300x", NULL, 0, 0, 0, "gpu:2", 1.03, 0, 1.01},
    {"mi300x", NULL, 0, 0, 0, "gpu:4", 1.03, 0, 1.01},
    {"mi300x", NULL, 2, 0, 0, NULL, 1.03, 0, 1.05},
    {"tpu-v5e", "4x4", 0, 0, 0, NULL, 1.03, 1.3, 1.01},
    {"tpu-v5e", "8x16", 0, 0, 0, NULL, 1.02, 0, 0},
    {"tpu-v5e", "8x16", 0, 0, 0, "y", 1.03, 1.03, 1.01},
    {"tpu-v5e", "8x16", 0, 0, 0, "x", 1.03, 1.03, 1.01},
    {"tpu-v5e", "8x16", 0, 0, 0, "y:4", 1.03, 1.03, 0},
    {"tpu-v5e", "4x8", 0, 0, 0, NULL, 0, 1.35, 1.01},
    {"tpu-v5p", "4x4x4", 0, 0, 0, NULL, 1.03, 1.03, 1.01},
    {"tpu-v5p", "4x4x4", 0, 0, 0, "x", 1.03, 1.03, 1.01},
    {"tpu-v5p", "4x4x4", 0, 0, 2, NULL, 0, 1.15, 1.05},
    {"tpu-v5p", "4x4x4", 0, 0, 2, "slice", 0, 1.03, 0},
    {"tpu-v4p", "4x4x8_twisted", 0, 0, 0, NULL, 0, 1.4, 0},
    {"tpu-v4p", "4x4x8_twisted", 0, 0, 0, "x,y", 0, 1.3, 0},
};

static const enum collective_kind kinds[] = {
    COLLECTIVE_ALL_GATHER, COLLECTIVE_REDUCE_SCATTER, COLLECTIVE_ALL_REDUCE,
    COLLECTIVE_ALL_TO_ALL, COLLECTIVE_BROADCAST,      COLLECTIVE_REDUCE,
    COLLECTIVE_GATHER,     COLLECTIVE_SCATTER,        COLLECTIVE_PERMUTE,
};

/* The fastest by its estimate is at most so much slower than the fastest. All but one of these are
 * within 1.25: an AllReduce of 1 MiB on 4x4, 1.38 (docs/algorithm-choice.md). */
static const double chosen_most = 1.4;
/* Beside one slow link: all but two within 1.35, a Reduce of 4 KiB over 16, 1.71, and a Scatter of
 * 1 GiB on 4x4, 1.50. Estimates that do not know the link lose up to 5. */
static const double chosen_beside_slow_most = 1.75;

static const uint64_t sizes[] = {4096, UINT64_C(1) << 20, UINT64_C(1) << 30};

struct outcome {
    double least_of_all; /* Time over bound, at the largest size. */
    double fastest_s;    /* Of the algorithms of one size, */
    double estimate_s;   /* the least estimate, */
    double chosen_s;     /* and what that one took. */
    uint32_t played;
    struct contention_cache known; /* Of the fabric. */
};

static bool play(struct arena *arena, const struct machine *machine,
                 const struct plan_request *request, struct measured *ret_measured)
{
    struct error error = {0};
    struct measure_options const options = {.engine = "fast"};
    enum status const status =
        measure_run(arena, machine, request, 1, "/test", &options, ret_measured, &error);
    if (status != STATUS_OK && status != STATUS_UNSUPPORTED && status != STATUS_INVALID)
        fail_msg("%s: %s", error.where, error.message);
    return status == STATUS_OK;
}

/* By which the choice of a protocol leaves those out whose flags alone take too long. */
static void wires_bound_estimate(const struct machine *machine, const struct plan *plan,
                                 struct contention_cache *known,
                                 const struct collective_estimate *estimate)
{
    struct plan flagged = *plan;
    struct collective_estimate twice;
    double const slack = 1 + 1e-9;
    if (plan->protocol.wire_ppm != 0) return;
    flagged.protocol.wire_ppm = 2 * PPM_ONE;
    collective_estimate(machine, &flagged, known, &twice);
    assert_true(estimate->wire_s <= estimate->time_s * slack);
    assert_true(twice.wire_s <= twice.time_s * slack);
    assert_true(twice.wire_s <= 2 * estimate->wire_s * slack);
    assert_true(twice.wire_s * slack >= 2 * estimate->wire_s);
}

static void judge(const struct fabric *fabric, const struct machine *machine,
                  const struct plan_request *request, const struct measured *measured,
                  struct outcome *outcome)
{
    struct collective_query query = {.kind = request->kind, .array_bytes = request->size_bytes};
    struct collective_bound bound;
    memcpy(query.offset, request->offset, sizeof query.offset);
    collective_bound(machine, &request->group, &query, &bound);
    double const time_s = units_seconds(measured->time_ps[0]);
    double const slack = 1 + 1e-9;
    /* In a tree a rank may send and get the array once, at a corner of an open grid for instance,
     * where the book's AllReduce has everybody do so almost twice. */
    double const least_s = request->kind == COLLECTIVE_ALL_REDUCE ? bound.strict_s : bound.time_s;
    if (time_s * slack < least_s)
        fail_msg("%s %s %s, %s, %s of %llu bytes: %g s, below the bound of %g s by %s %s",
                 fabric->chip, fabric->shape == NULL ? "" : fabric->shape,
                 fabric->axes == NULL ? "" : fabric->axes, collective_kind_name(request->kind),
                 measured->plans->algorithm_name, (unsigned long long)request->size_bytes, time_s,
                 least_s, bound.bound_by, bound.where);
    struct collective_estimate estimate;
    collective_estimate(machine, measured->plans, &outcome->known, &estimate);
    wires_bound_estimate(machine, measured->plans, &outcome->known, &estimate);
    if (outcome->fastest_s == 0 || time_s < outcome->fastest_s) outcome->fastest_s = time_s;
    if (outcome->estimate_s == 0 || estimate.time_s < outcome->estimate_s) {
        outcome->estimate_s = estimate.time_s;
        outcome->chosen_s = time_s;
    }
    double const over = time_s / bound.time_s;
    if (request->size_bytes == sizes[2] && over < outcome->least_of_all)
        outcome->least_of_all = over;
    outcome->played++;
}

static void run_kind(const struct fabric *fabric, const struct machine *machine,
                     const struct group *group, enum collective_kind kind, struct outcome *outcome)
{
    for (uint32_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        struct plan_request request = {.kind = kind, .group = *group, .size_bytes = sizes[s]};
        if (kind == COLLECTIVE_PERMUTE) request.offset[group->dimension_count - 1] = 1;
        outcome->fastest_s = outcome->estimate_s = outcome->chosen_s = 0;
        plan_request_links(machine, &request);
        struct plan_algorithms const names = plan_algorithms(&request);
        for (uint32_t i = 0; i < names.count; i++) {
            struct arena *arena = arena_create(0);
            struct measured measured;
            request.algorithm = names.of[i];
            if (play(arena, machine, &request, &measured))
                judge(fabric, machine, &request, &measured, outcome);
            arena_destroy(arena);
        }
        bool const several = kind != COLLECTIVE_PERMUTE;
        double const most =
            machine->link_override_count > 0 ? chosen_beside_slow_most : chosen_most;
        if (several && outcome->chosen_s > most * outcome->fastest_s)
            fail_msg("%s %s, %s of %llu bytes: %g s are chosen instead of %g s", fabric->chip,
                     fabric->axes == NULL ? "" : fabric->axes, collective_kind_name(kind),
                     (unsigned long long)sizes[s], outcome->chosen_s, outcome->fastest_s);
    }
}

static double most_of(const struct fabric *fabric, enum collective_kind kind)
{
    if (kind == COLLECTIVE_ALL_REDUCE || kind == COLLECTIVE_PERMUTE) return 0;
    if (kind == COLLECTIVE_BROADCAST || kind == COLLECTIVE_REDUCE) return fabric->spread_most;
    return collective_is_rooted(kind) ? fabric->root_most : fabric->most;
}

/* Every algorithm of every kind; `slow`, if given, is an overridden link. */
static void run_fabric(const struct fabric *fabric, const struct machine_link_override *slow,
                       uint32_t *walked)
{
    struct arena *arena = arena_create(0);
    struct machine_plan const plan = {.chip = fabric->chip,
                                      .shape = fabric->shape,
                                      .nodes = fabric->nodes,
                                      .gpus = fabric->gpus,
                                      .slices = fabric->slices,
                                      .profile = "ideal",
                                      .wrap = {-1, -1, -1},
                                      .links = slow,
                                      .link_count = slow != NULL};
    struct machine machine;
    struct group group;
    struct error error = {0};
    if (machine_build(arena, &plan, &machine, &error) != STATUS_OK ||
        measure_group(&machine, fabric->axes, "/test", &group, &error) != STATUS_OK)
        fail_msg("%s: %s", error.where, error.message);
    for (uint32_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        static struct outcome outcome;
        if (sampling_skips(walked)) continue;
        outcome = (struct outcome){.least_of_all = INFINITY};
        run_kind(fabric, &machine, &group, kinds[k], &outcome);
        double const most = most_of(fabric, kinds[k]);
        assert_true(outcome.played >= sizeof sizes / sizeof *sizes);
        if (most > 0 && outcome.least_of_all > most)
            fail_msg("%s, %s %s: at best %.3f of the bound", collective_kind_name(kinds[k]),
                     fabric->chip, fabric->shape == NULL ? "" : fabric->shape,
                     outcome.least_of_all);
    }
    arena_destroy(arena);
}

static void no_collective_is_faster_than_its_bound(void **state)
{
    (void)state;
    uint32_t walked = 0;
    for (uint32_t f = 0; f < sizeof fabrics / sizeof *fabrics; f++)
        run_fabric(&fabrics[f], NULL, &walked);
}

/* One link at a tenth of its rate, or far longer than the others: rings and lines that pass it lose
 * to what goes around it, and the estimates know. Its rate and latency are in the closed forms of
 * neighbours, and in the simulations of messages that are routed. */
static void one_slow_link_is_estimated(void **state)
{
    (void)state;
    static const struct {
        struct fabric fabric;
        struct machine_link_override link;
    } rows[] = {
        {{"tpu-v5e", "4x4", 0, 0, 0, NULL, 0, 0, 0}, {{1, 2}, {2, 2}, 4500000000, 0}},
        {{"tpu-v5e", "8x16", 0, 0, 0, "y", 0, 0, 0}, {{1, 15}, {1, 0}, 4500000000, 0}},
        {{"tpu-v5e", "4x8", 0, 0, 0, NULL, 0, 0, 0}, {{2, 5}, {2, 4}, 0, 20000000}},
        {{"tpu-v4p", "4x4x4", 0, 0, 0, NULL, 0, 0, 0}, {{1, 2, 1}, {2, 2, 1}, 4500000000, 0}},
    };
    uint32_t walked = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        run_fabric(&rows[i].fabric, &rows[i].link, &walked);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_collective_is_faster_than_its_bound),
        cmocka_unit_test(one_slow_link_is_estimated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
