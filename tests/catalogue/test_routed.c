/* Routed primitives and plans on switches, proved on sets. */
#include <string.h>

#include "sim/choose/choose.h"
#include "sim/collective/collective.h"
#include "sim/collective/plan.h"
#include "tests/support/case.h"
#include "tests/support/refusals.h"
#include "tests/support/sampling.h"

enum { RANKS_MAX = 64 };

static const enum collective_kind kinds[] = {
    COLLECTIVE_ALL_GATHER, COLLECTIVE_REDUCE_SCATTER, COLLECTIVE_ALL_REDUCE, COLLECTIVE_ALL_TO_ALL,
    COLLECTIVE_BROADCAST,  COLLECTIVE_REDUCE,         COLLECTIVE_GATHER,     COLLECTIVE_SCATTER};

static struct plan_request request_of(const struct group *group, enum collective_kind kind,
                                      uint64_t size_bytes)
{
    return (struct plan_request){.kind = kind,
                                 .group = *group,
                                 .size_bytes = size_bytes,
                                 .multicasts = {true, true, true, true},
                                 .reduces = {true, true, true, true}};
}

/* The name that a plan goes by is one that builds it. */
static enum status build_again(struct arena *arena, const struct plan_request *request,
                               const struct plan *plan, struct error *reterr)
{
    struct plan_request named = *request;
    struct plan again;
    named.algorithm = plan->algorithm;
    enum status const status = plan_build(arena, &named, "/named", &again, reterr);
    if (status != STATUS_OK) return status;
    if (choose_is_same(plan, &again)) return STATUS_OK;
    return error_set(reterr, STATUS_INVALID, "/named", "\"%s\" is another plan",
                     plan->algorithm_name);
}

static void prove(const struct plan_request *request)
{
    struct error error = {0};
    struct plan plan;
    struct arena *arena = arena_create(0);
    enum status status = plan_build(arena, request, "/test", &plan, &error);
    if (status == STATUS_OK) status = plan_check(&plan, &error);
    if (status == STATUS_OK) status = build_again(arena, request, &plan, &error);
    if (status != STATUS_OK) {
        print_error("%s, %s: %s\n", error.where, algorithm_text(&request->algorithm).text,
                    error.message);
        for (uint32_t d = 0; d < request->group.dimension_count; d++)
            print_error("  %u%s\n", request->group.dimension[d].size,
                        request->group.dimension[d].switched ? " switched" : "");
    }
    assert_int_equal(status, STATUS_OK);
    arena_destroy(arena);
}

/* Every algorithm that the plan says can run is proved, and is said to be what was asked for. */
static void prove_all(const struct group *group, uint64_t size_bytes)
{
    for (uint32_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        struct plan_request request = request_of(group, kinds[k], size_bytes);
        struct plan_algorithms const all = plan_algorithms(&request);
        assert_true(all.count > 1);
        assert_true(algorithm_is_chosen(&all.of[0]));
        for (uint32_t i = 0; i < all.count; i++) {
            request.algorithm = all.of[i];
            request.root = (uint32_t)(i * 7 % group_rank_count(group));
            request.piece_count = 1 + (i + k) % 3; /* More are only more of the same. */
            prove(&request);
        }
    }
}

static void every_algorithm_on_one_switch_is_proved(void **state)
{
    (void)state;
    uint32_t walked = 0;
    for (uint32_t size = 2; size <= RANKS_MAX; size++) {
        if (sampling_skips(&walked)) continue;
        struct group const group = {{{0, size, 1, false, true, "gpu"}}, 1};
        prove_all(&group, 1000003);
    }
}

static void every_algorithm_on_two_levels_is_proved(void **state)
{
    (void)state;
    uint32_t walked = 0;
    for (uint32_t a = 2; a <= RANKS_MAX / 2; a++)
        for (uint32_t b = 2; a * b <= RANKS_MAX; b++) {
            if (a > 9 && b > 2 && a != 16) continue;
            if (sampling_skips(&walked)) continue;
            struct group const group = {
                {{1, a, 1, false, true, "node"}, {0, b, 1, false, true, "gpu"}}, 2};
            prove_all(&group, 12000017);
        }
}

/* Routed messages cross a grid as well, in several orders of its dimensions. */
static void every_algorithm_on_a_grid_is_proved(void **state)
{
    (void)state;
    static const struct group groups[] = {
        {{{0, 4, 1, true, false, "x"}, {1, 4, 1, true, false, "y"}}, 2},
        {{{0, 4, 1, true, false, "x"}, {1, 3, 1, false, false, "y"}}, 2},
        {{{0, 2, 1, false, false, "x"}, {1, 2, 1, false, false, "y"}, {2, 2, 1, false, false, "z"}},
         3},
        {{{0, 4, 1, true, false, "x"}, {1, 4, 1, true, false, "y"}, {2, 4, 1, true, false, "z"}},
         3},
    };
    for (uint32_t i = 0; i < sizeof groups / sizeof *groups; i++) prove_all(&groups[i], 16000057);
}

static void every_algorithm_on_a_grid_of_slices_is_proved(void **state)
{
    (void)state;
    static const struct group groups[] = {
        {{{0, 4, 1, true, false, "x"}, {3, 2, 1, false, true, "slice"}}, 2},
        {{{0, 3, 1, false, false, "x"},
          {1, 4, 1, true, false, "y"},
          {3, 4, 1, false, true, "slice"}},
         3},
        {{{0, 3, 1, false, false, "x"}, {3, 5, 1, false, true, "slice"}}, 2},
        {{{0, 4, 1, true, false, "x"},
          {1, 4, 1, true, false, "y"},
          {3, 3, 1, false, true, "slice"}},
         3},
        {{{0, 2, 1, true, false, "x"},
          {1, 4, 1, true, false, "y"},
          {2, 3, 1, false, false, "z"},
          {3, 2, 1, false, true, "slice"}},
         4},
    };
    for (uint32_t i = 0; i < sizeof groups / sizeof *groups; i++) prove_all(&groups[i], 12000017);
}

static void a_request_for_switches_that_cannot_is_refused(void **state)
{
    (void)state;
    struct group const group = {{{0, 8, 1, false, true, "gpu"}}, 1};
    struct plan_request request = request_of(&group, COLLECTIVE_ALL_REDUCE, 1000);
    struct plan plan;
    request.algorithm = algorithm_read("sharp");
    request.reduces[0] = false;
    case_refused(plan_build(case_arena, &request, "/test", &plan, &case_error), STATUS_UNSUPPORTED,
                 NULL, "needs switches that add, and those along gpu do not");
    assert_non_null(strstr(case_error.message, "direct"));
    refusals_hold(&case_error, __FILE__);
    request.algorithm = algorithm_read("flat-direct");
    case_refused(plan_build(case_arena, &request, "/test", &plan, &case_error), STATUS_UNSUPPORTED,
                 NULL, "several axes");
    request.algorithm = algorithm_read("direct+direct");
    case_refused(plan_build(case_arena, &request, "/test", &plan, &case_error), STATUS_UNSUPPORTED,
                 NULL, "one name for each of the group's 1 levels");
    request.algorithm = algorithm_read("hierarchical");
    case_refused(plan_build(case_arena, &request, "/test", &plan, &case_error), STATUS_UNSUPPORTED,
                 NULL, "several levels");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_algorithm_on_one_switch_is_proved),
        cmocka_unit_test(every_algorithm_on_two_levels_is_proved),
        cmocka_unit_test(every_algorithm_on_a_grid_is_proved),
        cmocka_unit_test(every_algorithm_on_a_grid_of_slices_is_proved),
        cmocka_unit_test(a_request_for_switches_that_cannot_is_refused),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
