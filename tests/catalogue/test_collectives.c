/* Collectives: every primitive, its cost and every plan proved on sets. */
#include <stdio.h>
#include <string.h>

#include "sim/collective/algorithm.h"
#include "sim/collective/collective.h"
#include "sim/collective/plan.h"
#include "tests/catalogue/costs.h"
#include "tests/support/case.h"
#include "tests/support/primitive_check.h"
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

/* Of a ReduceScatter: whether each rank has sent all chunks but its own by its last message, and
 * waits for no more of them than that; a chunk that it keeps may be the last that comes about. */
static bool chunks_end_before_own(const struct primitive *primitive, uint32_t size)
{
    for (uint32_t position = 0; position < size; position++) {
        uint32_t most = 0;
        for (uint32_t lane = 0; lane < primitive->lane_count; lane++)
            for (uint32_t s = 0; s < primitive->send_count(size, lane, position); s++) {
                uint32_t const chunks = primitive->step(size, lane, position, s).chunks;
                most = chunks > most ? chunks : most;
            }
        if (most != size - 1) return false;
    }
    return true;
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
            if (primitive->chunk_at != NULL && !chunks_end_before_own(primitive, size))
                fail_msg("%s of %u: chunks", primitive->name, size);
        }
}

static void every_primitive_can_be_found_and_says_where_it_comes_from(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < primitive_count; i++) {
        const struct primitive *primitive = primitive_table[i];
        assert_ptr_equal(primitive_find(primitive->kind, primitive->family, primitive->routed),
                         primitive);
        assert_true(strlen(primitive->help) > 10);
        assert_true(strlen(primitive->source) > 10);
        assert_true((primitive->chunk_at != NULL) ==
                    (primitive->kind == COLLECTIVE_REDUCE_SCATTER));
    }
    assert_null(primitive_find(COLLECTIVE_ALL_GATHER, PRIMITIVE_FAMILY_COUNT, false));
}

static void every_algorithm_is_what_its_name_says(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < PRIMITIVE_FAMILY_COUNT; i++) {
        enum primitive_family const family = (enum primitive_family)i;
        struct algorithm algorithm = algorithm_read(primitive_family_name(family));
        assert_int_equal(algorithm.means, ALGORITHM_FAMILY);
        assert_true(algorithm_family(&algorithm) == family && !algorithm.flat);
        assert_string_equal(algorithm_text(&algorithm).text, primitive_family_name(family));
        char flat[PLAN_ALGORITHM_SIZE];
        (void)snprintf(flat, sizeof flat, "flat-%s", primitive_family_name(family));
        algorithm = algorithm_read(flat);
        assert_int_equal(algorithm.family, family);
        assert_true(algorithm.flat);
        assert_string_equal(algorithm_text(&algorithm).text, flat);
    }
    static const struct {
        const char *name;
        enum algorithm_means means;
        bool automatic;
    } others[] = {
        {NULL, ALGORITHM_AUTO, true},
        {"auto", ALGORITHM_AUTO, true},
        {"hierarchical", ALGORITHM_HIERARCHICAL, true},
        {"scatter-gather", ALGORITHM_SCATTER_GATHER, false},
        {"ring+line", ALGORITHM_LEVELS, false},
        {"sharp+direct", ALGORITHM_LEVELS, false},
        {"auto+rings", ALGORITHM_LEVELS, false},
        {"flat-ring+ring", ALGORITHM_OTHER, false},
        {"ring+ring+ring+ring+ring+ring", ALGORITHM_OTHER, false},
        {"", ALGORITHM_OTHER, false},
        {"rings", ALGORITHM_OTHER, false},
        {"flat-auto", ALGORITHM_OTHER, false},
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        struct algorithm const algorithm = algorithm_read(others[i].name);
        assert_int_equal(algorithm.means, others[i].means);
        assert_int_equal(algorithm_family(&algorithm), PRIMITIVE_FAMILY_COUNT);
        assert_string_equal(algorithm_text(&algorithm).text,
                            others[i].name != NULL ? others[i].name : "auto");
        assert_true(algorithm_equal(&algorithm, &algorithm));
        assert_int_equal(algorithm_is_automatic(&algorithm), others[i].automatic);
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
                                         .algorithm = algorithm_read(algorithm),
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
        cmocka_unit_test(costs_that_moves_do_not_bear_out_are_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
