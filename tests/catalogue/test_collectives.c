/* Collectives: every primitive and every plan proved on sets, and canaries that must be refused. */
#include <stdio.h>
#include <string.h>

#include "sim/collective/algorithm.h"
#include "sim/collective/collective.h"
#include "sim/collective/plan.h"
#include "tests/catalogue/costs.h"
#include "tests/support/case.h"
#include "tests/support/sampling.h"

enum { RANKS_MAX = 64 };

static bool is_power_of_two(uint32_t size)
{
    return (size & (size - 1)) == 0;
}

/* Trees of other sizes than powers of two have leaves nearer to the root, and bundles of an
 * exchange are shorter: there the entry says at most twice what is taken. */
static bool is_exact_depth(const struct primitive *primitive, uint32_t size)
{
    return is_power_of_two(size) || primitive->family != PRIMITIVE_TREE;
}

/* Of two trees at once the entry says what each would take by itself. */
static bool is_exact_bytes(const struct primitive *primitive, uint32_t size)
{
    bool const bundles =
        primitive->kind == COLLECTIVE_ALL_TO_ALL && primitive->family == PRIMITIVE_BRUCK;
    return primitive->family != PRIMITIVE_DOUBLE_TREE && (is_power_of_two(size) || !bundles);
}

static bool is_said(uint64_t said, uint64_t taken, bool exact)
{
    return exact ? said == taken : said >= taken && said <= 2 * taken;
}

/* What of an entry's cost its moves do not bear out; NULL: nothing. */
static const char *cost_error(const struct primitive *primitive, uint32_t size)
{
    struct costs_clock const ways = {0, 1, 1}, twice = {0, 1, 2}, bytes = {1, 0, 1};
    struct primitive_cost const cost = primitive->cost(size);
    bool const exact = is_exact_bytes(primitive, size);
    uint64_t port_units = 0;
    uint64_t const depth = costs_play(primitive, size, &ways, &port_units);
    uint64_t const again = costs_play(primitive, size, &twice, &port_units) - depth;
    uint64_t const units = costs_play(primitive, size, &bytes, &port_units);
    if (!is_said(cost.depth, depth, is_exact_depth(primitive, size))) return "depth";
    if (!is_said(cost.units, units, exact)) return "units";
    if (!is_said(cost.port_units, port_units, exact)) return "port_units";
    if (again != (cost.serial ? depth - 1 : 0)) return "serial";
    for (uint32_t inside = 2; cost.paired && inside < size; inside++)
        if (size % inside == 0 &&
            costs_crossing(primitive, size, inside) * (size - 1) != cost.units * (size - inside))
            return "paired";
    if (size >= 8 && is_power_of_two(size) && costs_reach(primitive, size) != cost.reach)
        return "reach";
    return NULL;
}

static void every_primitive_is_proved_for_every_size(void **state)
{
    (void)state;
    uint32_t walked = 0;
    assert_true(primitive_count >= 39);
    for (uint32_t i = 0; i < primitive_count; i++)
        for (uint32_t size = 2; size <= RANKS_MAX; size++) {
            struct error error = {0};
            if (sampling_skips(&walked)) continue;
            const struct primitive *primitive = primitive_table[i];
            enum status const status = primitive_check(primitive, size, &error);
            if (primitive->routed && primitive->refuses != NULL &&
                primitive->refuses(size) != NULL) {
                assert_int_equal(status, STATUS_INVALID);
                continue;
            }
            if (status != STATUS_OK)
                print_error("%s of %u: %s\n", error.where, size, error.message);
            assert_int_equal(status, STATUS_OK);
            const char *wrong = cost_error(primitive, size);
            if (wrong != NULL) fail_msg("%s of %u: cost: %s", primitive->name, size, wrong);
        }
}

static void every_primitive_can_be_found_and_says_where_it_comes_from(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < primitive_count; i++) {
        const struct primitive *primitive = primitive_table[i];
        assert_ptr_equal(
            primitive_find(primitive->kind, primitive_algorithm(primitive), primitive->routed),
            primitive);
        assert_true(strlen(primitive->help) > 10);
        assert_true(strlen(primitive->source) > 10);
        assert_true((primitive->chunk_at != NULL) ==
                    (primitive->kind == COLLECTIVE_REDUCE_SCATTER));
    }
    assert_null(primitive_find(COLLECTIVE_ALL_GATHER, "rings", false));
}

static void every_algorithm_is_what_its_name_says(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < PRIMITIVE_FAMILY_COUNT; i++) {
        enum primitive_family const family = (enum primitive_family)i;
        struct algorithm algorithm = algorithm_of(primitive_family_name(family));
        assert_int_equal(algorithm.means, ALGORITHM_FAMILY);
        assert_true(algorithm_is(&algorithm, family));
        assert_int_equal(algorithm.in_switches, family == PRIMITIVE_SHARP);
        char flat[PLAN_ALGORITHM_SIZE];
        (void)snprintf(flat, sizeof flat, "flat-%s", primitive_family_name(family));
        algorithm = algorithm_of(flat);
        assert_int_equal(algorithm.family, family);
        assert_true(algorithm.flat && !algorithm_is(&algorithm, family));
    }
    static const struct {
        const char *name;
        enum algorithm_means means;
        bool automatic, in_switches;
    } others[] = {
        {NULL, ALGORITHM_AUTO, true, false},
        {"auto", ALGORITHM_AUTO, true, false},
        {"hierarchical", ALGORITHM_HIERARCHICAL, true, false},
        {"scatter-gather", ALGORITHM_SCATTER_GATHER, false, false},
        {"ring+line", ALGORITHM_LEVELS, false, false},
        {"sharp+direct", ALGORITHM_LEVELS, false, true},
        {"direct+sharp", ALGORITHM_LEVELS, false, true},
        {"rings", ALGORITHM_OTHER, false, false},
        {"flat-auto", ALGORITHM_OTHER, false, false},
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        struct algorithm const algorithm = algorithm_of(others[i].name);
        assert_int_equal(algorithm.means, others[i].means);
        assert_int_equal(algorithm.family, PRIMITIVE_FAMILY_COUNT);
        assert_int_equal(algorithm_is_automatic(&algorithm), others[i].automatic);
        assert_int_equal(algorithm.in_switches, others[i].in_switches);
    }
}

static const enum collective_kind kinds[] = {COLLECTIVE_ALL_GATHER, COLLECTIVE_REDUCE_SCATTER,
                                             COLLECTIVE_ALL_REDUCE, COLLECTIVE_ALL_TO_ALL};

static void prove(const struct group *group, enum collective_kind kind, const char *algorithm,
                  uint64_t size_bytes, uint32_t chunk_count)
{
    struct error error = {0};
    struct plan plan;
    struct plan_request const request = {.kind = kind,
                                         .algorithm = algorithm,
                                         .group = *group,
                                         .size_bytes = size_bytes,
                                         .chunk_count = chunk_count};
    struct arena *arena = arena_create(0);
    enum status status = plan_build(arena, &request, "/test", &plan, &error);
    if (status == STATUS_OK) status = plan_check(&plan, &error);
    if (status != STATUS_OK) {
        print_error("%s: %s\n", error.where, error.message);
        for (uint32_t d = 0; d < group->dimension_count; d++)
            print_error("  %u%s\n", group->dimension[d].size,
                        group->dimension[d].ring ? " ring" : "");
    }
    assert_int_equal(status, STATUS_OK);
    arena_destroy(arena);
}

static void every_plan_on_one_axis_is_proved(void **state)
{
    (void)state;
    uint32_t walked = 0;
    for (uint32_t size = 2; size <= RANKS_MAX; size++)
        for (uint32_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            if (sampling_skips(&walked)) continue;
            struct group const ring = {{{1, size, 2, true, false, "y"}}, 1};
            struct group const line = {{{2, size, 1, false, false, "z"}}, 1};
            prove(&ring, kinds[k], NULL, 1000003, 0);
            prove(&line, kinds[k], "auto", 1000003, 0);
            prove(&ring, kinds[k], "line", 64, 0);
            if (kinds[k] != COLLECTIVE_ALL_TO_ALL) prove(&ring, kinds[k], "ring-one-way", 999, 0);
        }
}

static void the_default_plan_on_two_axes_is_proved(void **state)
{
    (void)state;
    uint32_t walked = 0;
    for (uint32_t a = 2; a <= RANKS_MAX / 2; a++)
        for (uint32_t b = 2; a * b <= RANKS_MAX; b++)
            for (uint32_t rings = 0; rings < 4; rings++) {
                if (sampling_skips(&walked)) continue;
                struct group const group = {{{0, a, 1, (rings & 1) != 0, false, "x"},
                                             {2, b, 1, (rings & 2) != 0, false, "z"}},
                                            2};
                for (uint32_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
                    prove(&group, kinds[k], NULL, 12000017, 0);
            }
}

static void the_default_plan_on_three_axes_is_proved(void **state)
{
    (void)state;
    uint32_t walked = 0;
    for (uint32_t a = 2; a <= RANKS_MAX / 4; a++)
        for (uint32_t b = 2; a * b <= RANKS_MAX / 2; b++)
            for (uint32_t c = 2; a * b * c <= RANKS_MAX; c++)
                for (uint32_t rings = 0; rings < 8; rings++) {
                    if (rings != 7 && a * b * c > 24) continue; /* It takes long; 2x3x4 is in. */
                    if (sampling_skips(&walked)) continue;
                    struct group const group = {{{0, a, 1, (rings & 1) != 0, false, "x"},
                                                 {1, b, 1, (rings & 2) != 0, false, "y"},
                                                 {2, c, 1, (rings & 4) != 0, false, "z"}},
                                                3};
                    for (uint32_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
                        prove(&group, kinds[k], NULL, 16000057, 0);
                }
}

/* Canaries: each breaks one promise of a good primitive, and the proof must say which. */

static void refuses(const struct primitive *canary, uint32_t size, const char *reason)
{
    case_refused(primitive_check(canary, size, &case_error), STATUS_OK, NULL, reason);
}

static struct primitive copy_of(enum collective_kind kind, const char *algorithm)
{
    const struct primitive *primitive = primitive_find(kind, algorithm, false);
    assert_non_null(primitive);
    return *primitive;
}

static uint32_t one_less(uint32_t size, uint32_t lane, uint32_t position)
{
    (void)lane;
    (void)position;
    return (size - 1) / 2 - 1;
}

static void a_gather_that_forgets_a_rank_is_refused(void **state)
{
    (void)state;
    struct primitive canary = copy_of(COLLECTIVE_ALL_GATHER, "ring");
    canary.send_count = canary.arrival_count = one_less;
    refuses(&canary, 7, "never gets what rank");
}

static struct primitive_step whole_step(uint32_t size, uint32_t lane, uint32_t position,
                                        uint32_t step)
{
    struct primitive_step whole =
        primitive_find(COLLECTIVE_ALL_GATHER, "ring", false)->step(size, lane, position, step);
    whole.units = 2;
    return whole;
}

static struct primitive_move whole_gather(uint32_t size, uint32_t lane, uint32_t position,
                                          uint32_t step, uint32_t move)
{
    struct primitive_move whole = primitive_find(COLLECTIVE_ALL_GATHER, "ring", false)
                                      ->move(size, lane, position, step, move);
    whole.halves = PRIMITIVE_HALVES;
    return whole;
}

static void a_gather_that_brings_the_antipode_twice_is_refused(void **state)
{
    (void)state;
    struct primitive canary = copy_of(COLLECTIVE_ALL_GATHER, "ring");
    canary.move = whole_gather;
    refuses(&canary, 8, "announces 1 half chunks and moves 2");
    canary.step = whole_step;
    refuses(&canary, 8, "has of rank");
    assert_int_equal(primitive_check(&canary, 7, &(struct error){0}), STATUS_OK);
}

static struct primitive_step eager_step(uint32_t size, uint32_t lane, uint32_t position,
                                        uint32_t step)
{
    struct primitive_step eager =
        primitive_find(COLLECTIVE_ALL_GATHER, "ring", false)->step(size, lane, position, step);
    eager.arrivals = 0;
    return eager;
}

static struct primitive_step stuck_step(uint32_t size, uint32_t lane, uint32_t position,
                                        uint32_t step)
{
    struct primitive_step stuck =
        primitive_find(COLLECTIVE_ALL_GATHER, "ring", false)->step(size, lane, position, step);
    stuck.arrivals += position > 0 || step > 0;
    return stuck;
}

static void a_step_that_waits_for_too_little_or_too_much_is_refused(void **state)
{
    (void)state;
    struct primitive canary = copy_of(COLLECTIVE_ALL_GATHER, "ring");
    canary.step = eager_step;
    refuses(&canary, 6, "before it has come");
    canary.step = stuck_step;
    refuses(&canary, 6, "waits for ever");
}

static struct primitive_step whole_reduction_step(uint32_t size, uint32_t lane, uint32_t position,
                                                  uint32_t step)
{
    struct primitive_step whole =
        primitive_find(COLLECTIVE_REDUCE_SCATTER, "ring", false)->step(size, lane, position, step);
    whole.units = 2;
    return whole;
}

static struct primitive_move whole_reduction(uint32_t size, uint32_t lane, uint32_t position,
                                             uint32_t step, uint32_t move)
{
    struct primitive_move whole = primitive_find(COLLECTIVE_REDUCE_SCATTER, "ring", false)
                                      ->move(size, lane, position, step, move);
    whole.halves = PRIMITIVE_HALVES;
    return whole;
}

static void a_reduction_that_adds_a_contribution_twice_is_refused(void **state)
{
    (void)state;
    struct primitive canary = copy_of(COLLECTIVE_REDUCE_SCATTER, "ring");
    canary.step = whole_reduction_step;
    canary.move = whole_reduction;
    refuses(&canary, 8, "a second time");
}

static void a_reduction_that_loses_contributions_is_refused(void **state)
{
    (void)state;
    struct primitive canary = copy_of(COLLECTIVE_REDUCE_SCATTER, "ring-one-way");
    canary.send_count = canary.arrival_count = one_less;
    refuses(&canary, 5, "lacks contributions");
}

static uint32_t chunk_in_order(uint32_t size, uint32_t position, uint32_t index)
{
    (void)size;
    (void)position;
    return index;
}

static uint32_t chunk_always_first(uint32_t size, uint32_t position, uint32_t index)
{
    (void)size;
    (void)position;
    (void)index;
    return 0;
}

static void chunks_computed_too_late_or_twice_are_refused(void **state)
{
    (void)state;
    struct primitive canary = copy_of(COLLECTIVE_REDUCE_SCATTER, "ring");
    canary.chunk_at = chunk_in_order;
    refuses(&canary, 8, "which is computed as number");
    canary.chunk_at = chunk_always_first;
    refuses(&canary, 8, "computes chunk 0 twice");
}

static uint32_t always_one(uint32_t size, uint32_t lane, uint32_t position)
{
    (void)size;
    (void)lane;
    (void)position;
    return 1;
}

static uint32_t always_none(uint32_t size, uint32_t lane, uint32_t position)
{
    (void)size;
    (void)lane;
    (void)position;
    return 0;
}

static uint32_t one_more(uint32_t size, uint32_t lane, uint32_t position)
{
    return primitive_find(COLLECTIVE_ALL_TO_ALL, "line", false)
               ->arrival_count(size, lane, position) +
           1;
}

static void counts_that_are_not_those_announced_are_refused(void **state)
{
    (void)state;
    struct primitive canary = copy_of(COLLECTIVE_ALL_TO_ALL, "line");
    canary.arrival_count = one_more;
    refuses(&canary, 5, "messages and expects");
    canary.arrival_count = always_none;
    refuses(&canary, 5, "expects 0 messages");
    canary = copy_of(COLLECTIVE_PERMUTE, "shift");
    canary.send_count = always_one;
    refuses(&canary, 4, "nobody where it sends");
}

static struct primitive_move nameless(uint32_t size, uint32_t lane, uint32_t position,
                                      uint32_t step, uint32_t move)
{
    (void)lane;
    (void)position;
    (void)step;
    (void)move;
    return (struct primitive_move){size, primitive_any, PRIMITIVE_HALVES};
}

static void moves_outside_the_dimension_are_refused(void **state)
{
    (void)state;
    struct primitive canary = copy_of(COLLECTIVE_ALL_GATHER, "ring");
    canary.move = nameless;
    refuses(&canary, 5, "names no chunk");
    refuses(&canary, 65, "not between 2 and 64");
    refuses(&canary, 1, "not between 2 and 64");
}

static struct primitive_cost spoilt; /* What wrong_cost() says. */

static struct primitive_cost wrong_cost(uint32_t size)
{
    (void)size;
    return spoilt;
}

static void costs_that_moves_do_not_bear_out_are_noticed(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < primitive_count; i++) {
        struct primitive canary = *primitive_table[i];
        struct primitive_cost const good = canary.cost(16);
        canary.cost = wrong_cost;
        spoilt = good;
        assert_null(cost_error(&canary, 16));
        spoilt.depth = good.depth - 1;
        assert_string_equal(cost_error(&canary, 16), "depth");
        spoilt = good;
        spoilt.units = good.units * 5 / 2;
        assert_string_equal(cost_error(&canary, 16), "units");
        spoilt = good;
        spoilt.port_units = good.port_units * 5 / 2;
        assert_string_equal(cost_error(&canary, 16), "port_units");
        spoilt = good;
        spoilt.serial = !good.serial;
        if (good.depth > 1) assert_string_equal(cost_error(&canary, 16), "serial");
        spoilt = good;
        spoilt.reach =
            good.reach == PRIMITIVE_REACH_ALL ? PRIMITIVE_REACH_NEAR : PRIMITIVE_REACH_ALL;
        assert_string_equal(cost_error(&canary, 16), "reach");
        spoilt = good;
        spoilt.paired = true;
        if (good.reach == PRIMITIVE_REACH_DOUBLING)
            assert_string_equal(cost_error(&canary, 16), "paired");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_primitive_is_proved_for_every_size),
        cmocka_unit_test(every_primitive_can_be_found_and_says_where_it_comes_from),
        cmocka_unit_test(every_algorithm_is_what_its_name_says),
        cmocka_unit_test(every_plan_on_one_axis_is_proved),
        cmocka_unit_test(the_default_plan_on_two_axes_is_proved),
        cmocka_unit_test(the_default_plan_on_three_axes_is_proved),
        cmocka_unit_test(a_gather_that_forgets_a_rank_is_refused),
        cmocka_unit_test(a_gather_that_brings_the_antipode_twice_is_refused),
        cmocka_unit_test(a_step_that_waits_for_too_little_or_too_much_is_refused),
        cmocka_unit_test(a_reduction_that_adds_a_contribution_twice_is_refused),
        cmocka_unit_test(a_reduction_that_loses_contributions_is_refused),
        cmocka_unit_test(chunks_computed_too_late_or_twice_are_refused),
        cmocka_unit_test(counts_that_are_not_those_announced_are_refused),
        cmocka_unit_test(moves_outside_the_dimension_are_refused),
        cmocka_unit_test(costs_that_moves_do_not_bear_out_are_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
