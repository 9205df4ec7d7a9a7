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

enum { RANKS_MAX = 64, FEW = 8 };

static bool is_said(uint64_t said, uint64_t taken, bool bounds)
{
    return bounds ? said >= taken && said <= 2 * taken : said == taken;
}

/* Whether blocks of some size, or of none, have a part of the busiest position's traffic as large
 * as the block. */
static bool is_paired(const struct primitive *primitive, uint32_t size, uint64_t units)
{
    for (uint32_t inside = 2; inside < size; inside++)
        if (size % inside == 0 &&
            costs_crossing(primitive, size, inside) * (size - 1) != units * (size - inside))
            return false;
    return true;
}

static bool has_blocks(uint32_t size)
{
    for (uint32_t inside = 2; inside < size; inside++)
        if (size % inside == 0) return true;
    return false;
}

/* What an entry says and its moves take. */
struct figures {
    uint64_t depth, units, port_units;
    uint64_t again; /* Ways that a second piece is later than the first. */
};

static struct figures figures_of(const struct primitive *primitive, uint32_t size)
{
    struct costs_clock const ways = {0, 1, 1}, twice = {0, 1, 2}, bytes = {1, 0, 1};
    struct figures taken;
    taken.depth = costs_play(primitive, size, &ways, &taken.port_units);
    taken.again = costs_play(primitive, size, &twice, &taken.port_units) - taken.depth;
    taken.units = costs_play(primitive, size, &bytes, &taken.port_units);
    return taken;
}

/* What of an entry's cost its moves do not bear out; NULL: nothing. Of few positions several
 * answers are right. */
static const char *cost_error(const struct primitive *primitive, uint32_t size)
{
    struct primitive_cost const cost = primitive->cost(size);
    struct figures const taken = figures_of(primitive, size);
    bool const bounds_units = (cost.bounds & PRIMITIVE_COST_UNITS) != 0;
    if (!is_said(cost.depth, taken.depth, (cost.bounds & PRIMITIVE_COST_DEPTH) != 0))
        return "depth";
    if (!is_said(cost.units, taken.units, bounds_units)) return "units";
    if (!is_said(cost.port_units, taken.port_units, bounds_units)) return "port_units";
    if (taken.again != (cost.serial ? taken.depth - 1 : 0)) return "serial";
    bool const has_receivers = primitive->routed && primitive->network == PRIMITIVE_NETWORK_NONE;
    if (size >= FEW && has_blocks(size) &&
        (has_receivers && is_paired(primitive, size, cost.units)) != cost.paired)
        return "paired";
    if (size >= FEW && costs_reach(primitive, size) != cost.reach) return "reach";
    if (size >= FEW && costs_relay(primitive, size) != cost.relay) return "relay";
    return NULL;
}

/* Whether an entry says of a figure that it is a bound, and says more than is taken. */
static bool is_above(const struct primitive *primitive, uint32_t size, uint8_t bit)
{
    struct primitive_cost const cost = primitive->cost(size);
    struct figures const taken = figures_of(primitive, size);
    bool const depth = bit == PRIMITIVE_COST_DEPTH;
    return (cost.bounds & bit) != 0 &&
           (depth ? cost.depth > taken.depth : cost.units > taken.units);
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

/* What is exact for every size is no bound. */
static void bounds_are_said_where_they_are_needed(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < primitive_count; i++)
        for (uint8_t bit = PRIMITIVE_COST_DEPTH; bit <= PRIMITIVE_COST_UNITS; bit *= 2) {
            bool said = false, needed = false;
            const struct primitive *primitive = primitive_table[i];
            for (uint32_t size = 2; size <= RANKS_MAX / 2 && !needed; size++) {
                if (primitive->refuses != NULL && primitive->refuses(size) != NULL) continue;
                said = said || (primitive->cost(size).bounds & bit) != 0;
                needed = is_above(primitive, size, bit);
            }
            if (said && !needed) fail_msg("%s: %u is no bound", primitive->name, bit);
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
        spoilt.paired = !good.paired;
        assert_string_equal(cost_error(&canary, 16), "paired");
        spoilt = good;
        spoilt.relay =
            good.relay == PRIMITIVE_RELAY_NONE ? PRIMITIVE_RELAY_WHOLE : PRIMITIVE_RELAY_NONE;
        assert_string_equal(cost_error(&canary, 16), "relay");
        for (uint32_t size = 9; size <= 12; size += 3) {
            if (canary.refuses != NULL && canary.refuses(size) != NULL) continue;
            spoilt = primitive_table[i]->cost(size);
            spoilt.reach =
                spoilt.reach == PRIMITIVE_REACH_NEXT ? PRIMITIVE_REACH_NEAR : PRIMITIVE_REACH_NEXT;
            assert_string_equal(cost_error(&canary, size), "reach");
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_primitive_is_proved_for_every_size),
        cmocka_unit_test(bounds_are_said_where_they_are_needed),
        cmocka_unit_test(every_primitive_can_be_found_and_says_where_it_comes_from),
        cmocka_unit_test(every_algorithm_is_what_its_name_says),
        cmocka_unit_test(every_plan_on_one_axis_is_proved),
        cmocka_unit_test(the_default_plan_on_two_axes_is_proved),
        cmocka_unit_test(the_default_plan_on_three_axes_is_proved),
        cmocka_unit_test(costs_that_moves_do_not_bear_out_are_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
