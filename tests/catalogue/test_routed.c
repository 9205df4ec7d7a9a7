/* Routed primitives and plans on switches: proved on sets; canaries that must be refused. */
#include <string.h>

#include "sim/choose/choose.h"
#include "sim/collective/collective.h"
#include "sim/collective/plan.h"
#include "tests/support/case.h"
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
    return error_set(reterr, STATUS_INVALID, "/named", "\"%s\" is another plan", plan->algorithm);
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
        print_error("%s, %s: %s\n", error.where, request->algorithm, error.message);
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
        struct plan_algorithms const names = plan_algorithms(&request);
        assert_true(names.count > 1);
        assert_string_equal(names.name[0], "auto");
        for (uint32_t i = 0; i < names.count; i++) {
            request.algorithm = names.name[i];
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
    request.algorithm = "sharp";
    request.reduces[0] = false;
    case_refused(plan_build(case_arena, &request, "/test", &plan, &case_error), STATUS_UNSUPPORTED,
                 NULL, "needs switches that add, and those along gpu do not");
    assert_non_null(strstr(case_error.message, "direct"));
    request.algorithm = "flat-direct";
    case_refused(plan_build(case_arena, &request, "/test", &plan, &case_error), STATUS_UNSUPPORTED,
                 NULL, "several axes");
    request.algorithm = "direct+direct";
    case_refused(plan_build(case_arena, &request, "/test", &plan, &case_error), STATUS_UNSUPPORTED,
                 NULL, "one name for each of the group's 1 levels");
    request.algorithm = "hierarchical";
    case_refused(plan_build(case_arena, &request, "/test", &plan, &case_error), STATUS_UNSUPPORTED,
                 NULL, "several levels");
}

/* Canaries: each breaks one promise of a good primitive, and the proof must say which. */

static void refuses(const struct primitive *canary, uint32_t size, const char *reason)
{
    case_refused(primitive_check(canary, size, &case_error), STATUS_OK, NULL, reason);
}

static struct primitive copy_of(enum collective_kind kind, const char *algorithm)
{
    const struct primitive *primitive = primitive_find(kind, algorithm, true);
    assert_non_null(primitive);
    return *primitive;
}

/* A step of a good primitive, to be spoilt. */
static struct primitive_step good_step(enum collective_kind kind, const char *algorithm,
                                       uint32_t size, uint32_t lane, uint32_t position,
                                       uint32_t step)
{
    return primitive_find(kind, algorithm, true)->step(size, lane, position, step);
}

static struct primitive_step always_next(uint32_t size, uint32_t lane, uint32_t position,
                                         uint32_t step)
{
    struct primitive_step bad =
        good_step(COLLECTIVE_ALL_GATHER, "direct", size, lane, position, step);
    bad.peer = 1;
    return bad;
}

static struct primitive_step to_nobody(uint32_t size, uint32_t lane, uint32_t position,
                                       uint32_t step)
{
    struct primitive_step bad =
        good_step(COLLECTIVE_ALL_GATHER, "direct", size, lane, position, step);
    bad.peer += 1;
    return bad;
}

static void a_message_to_the_wrong_peer_is_refused(void **state)
{
    (void)state;
    struct primitive canary = copy_of(COLLECTIVE_ALL_GATHER, "direct");
    canary.step = always_next;
    refuses(&canary, 5, "has of rank");
    canary.step = to_nobody;
    refuses(&canary, 5, "nobody where it sends");
}

static struct primitive_step one_slot(uint32_t size, uint32_t lane, uint32_t position,
                                      uint32_t step)
{
    struct primitive_step bad =
        good_step(COLLECTIVE_ALL_GATHER, "direct", size, lane, position, step);
    bad.slot = 0;
    return bad;
}

static struct primitive_step slot_beyond(uint32_t size, uint32_t lane, uint32_t position,
                                         uint32_t step)
{
    struct primitive_step bad =
        good_step(COLLECTIVE_ALL_GATHER, "direct", size, lane, position, step);
    bad.slot++;
    return bad;
}

static void slots_that_are_no_permutation_are_refused(void **state)
{
    (void)state;
    struct primitive canary = copy_of(COLLECTIVE_ALL_GATHER, "direct");
    canary.step = one_slot;
    refuses(&canary, 5, "which has come");
    canary.step = slot_beyond;
    refuses(&canary, 5, "expects 4 messages a piece");
}

/* Position 0 begins with its neighbour, the others with the one before. */
static struct primitive_step turned_step(uint32_t size, uint32_t lane, uint32_t position,
                                         uint32_t step)
{
    (void)lane;
    uint32_t const peer = position == 0 ? step + 1 : size - 1 - step;
    return (struct primitive_step){.units = 2, .move_count = 1, .peer = peer, .slot = peer - 1};
}

static void a_translation_that_is_none_is_refused(void **state)
{
    (void)state;
    struct primitive canary = copy_of(COLLECTIVE_ALL_GATHER, "direct");
    canary.step = turned_step;
    refuses(&canary, 5, "position 1 does not do what position 0 does");
}

static struct primitive_step waits_for_one(uint32_t size, uint32_t lane, uint32_t position,
                                           uint32_t step)
{
    struct primitive_step bad =
        good_step(COLLECTIVE_ALL_GATHER, "direct", size, lane, position, step);
    bad.arrivals = step;
    return bad;
}

static struct primitive_step waits_elsewhere(uint32_t size, uint32_t lane, uint32_t position,
                                             uint32_t step)
{
    struct primitive_step bad =
        good_step(COLLECTIVE_ALL_GATHER, "direct", size, lane, position, step);
    bad.wait_lane = 1;
    return bad;
}

static void waiting_for_particular_arrivals_has_to_be_declared(void **state)
{
    (void)state;
    struct primitive canary = copy_of(COLLECTIVE_ALL_GATHER, "direct");
    canary.step = waits_for_one;
    refuses(&canary, 5, "does not say that it is ordered");
    canary.ordered = true;
    assert_int_equal(primitive_check(&canary, 5, &(struct error){0}), STATUS_OK);
    canary.step = waits_elsewhere;
    refuses(&canary, 5, "waits for lane 1 of 1");
}

static struct primitive_move second_hand(uint32_t size, uint32_t lane, uint32_t position,
                                         uint32_t step, uint32_t move)
{
    (void)lane;
    (void)step;
    (void)move;
    return (struct primitive_move){(position + size - 1) % size, primitive_any, PRIMITIVE_HALVES};
}

static void what_has_not_been_waited_for_cannot_be_sent(void **state)
{
    (void)state;
    struct primitive canary = copy_of(COLLECTIVE_ALL_GATHER, "direct");
    canary.move = second_hand;
    refuses(&canary, 5, "before it has come");
}

static struct primitive_step names_a_receiver(uint32_t size, uint32_t lane, uint32_t position,
                                              uint32_t step)
{
    struct primitive_step bad =
        good_step(COLLECTIVE_ALL_GATHER, "sharp", size, lane, position, step);
    bad.peer = 1;
    return bad;
}

static uint32_t two(uint32_t size, uint32_t lane, uint32_t position)
{
    (void)size;
    (void)lane;
    (void)position;
    return 2;
}

static void what_switches_do_has_to_fit_what_is_sent(void **state)
{
    (void)state;
    struct primitive canary = copy_of(COLLECTIVE_ALL_GATHER, "sharp");
    canary.step = names_a_receiver;
    refuses(&canary, 5, "where switches send to all");
    canary = copy_of(COLLECTIVE_ALL_GATHER, "sharp");
    canary.network = PRIMITIVE_NETWORK_NONE;
    refuses(&canary, 5, "nobody where it sends");
    canary = copy_of(COLLECTIVE_REDUCE_SCATTER, "sharp");
    canary.network = PRIMITIVE_NETWORK_NONE;
    refuses(&canary, 5, "which has come");
    canary = copy_of(COLLECTIVE_REDUCE_SCATTER, "direct");
    canary.network = PRIMITIVE_NETWORK_REDUCE;
    refuses(&canary, 5, "messages and expects");
    canary = copy_of(COLLECTIVE_ALL_REDUCE, "sharp");
    canary.send_count = canary.arrival_count = two;
    refuses(&canary, 5, "which has come");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_algorithm_on_one_switch_is_proved),
        cmocka_unit_test(every_algorithm_on_two_levels_is_proved),
        cmocka_unit_test(every_algorithm_on_a_grid_is_proved),
        cmocka_unit_test(every_algorithm_on_a_grid_of_slices_is_proved),
        cmocka_unit_test(a_request_for_switches_that_cannot_is_refused),
        cmocka_unit_test(a_message_to_the_wrong_peer_is_refused),
        cmocka_unit_test(slots_that_are_no_permutation_are_refused),
        cmocka_unit_test(a_translation_that_is_none_is_refused),
        cmocka_unit_test(waiting_for_particular_arrivals_has_to_be_declared),
        cmocka_unit_test(what_has_not_been_waited_for_cannot_be_sent),
        cmocka_unit_test(what_switches_do_has_to_fit_what_is_sent),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
