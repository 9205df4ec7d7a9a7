/* Pieces cut into portions between two levels: proved for all shapes, with canaries; how many. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sim/base/arena.h"
#include "sim/collective/level_overlap.h"
#include "sim/collective/plan.h"
#include "tests/support/refusals.h"
#include "tests/support/sampling.h"

enum { RANKS_MAX = 64, BYTES = 12000017 };

static const enum collective_kind kinds[] = {COLLECTIVE_ALL_GATHER, COLLECTIVE_REDUCE_SCATTER,
                                             COLLECTIVE_ALL_REDUCE};

static struct plan_request request_of(uint32_t nodes, uint32_t inside, enum collective_kind kind,
                                      const char *algorithm)
{
    return (struct plan_request){
        .kind = kind,
        .algorithm = algorithm_read(algorithm),
        .group = {{{1, nodes, 1, false, true, "node"}, {0, inside, 1, false, true, "gpu"}}, 2},
        .size_bytes = BYTES,
    };
}

static struct plan plan_of(struct arena *arena, const struct plan_request *request)
{
    struct plan plan;
    struct error error = {0};
    if (plan_build(arena, request, "/test", &plan, &error) != STATUS_OK)
        fail_msg("%s: %s", algorithm_name(arena, &request->algorithm), error.message);
    return plan;
}

static uint32_t most_portions(const struct plan *plan)
{
    uint32_t most = 1;
    for (uint32_t i = 0; i < plan->item_count; i++) {
        uint32_t const own = plan_item_portions(&plan->item[i]);
        most = own > most ? own : most;
    }
    return most;
}

static uint32_t prove(const struct plan_request *request)
{
    struct arena *arena = arena_create(0);
    struct error error = {0};
    struct plan const plan = plan_of(arena, request);
    if (plan_check(&plan, &error) != STATUS_OK)
        fail_msg("%s over %u nodes of %u, %u pieces of %u: %s",
                 algorithm_name(arena, &request->algorithm), request->group.dimension[0].size,
                 request->group.dimension[1].size, request->piece_count, request->portion_count,
                 error.message);
    uint32_t const portions = most_portions(&plan);
    arena_destroy(arena);
    return portions;
}

static void every_cut_of_every_shape_is_proved(void **state)
{
    (void)state;
    uint32_t plans = 0, walked = 0;
    for (uint32_t nodes = 2; nodes <= RANKS_MAX / 2; nodes++)
        for (uint32_t inside = 2; nodes * inside <= RANKS_MAX; inside++)
            for (uint32_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
                for (uint32_t portions = 2; portions <= nodes; portions += 1 + portions / 2) {
                    if (sampling_skips(&walked)) continue;
                    struct plan_request request = request_of(nodes, inside, kinds[k], "direct");
                    request.piece_count = 1 + (nodes + portions) % 3;
                    request.portion_count = portions;
                    assert_true(prove(&request) >= (portions + 1) / 2);
                    plans++;
                }
    assert_true(plans > 500 / sampling_of());
}

static void every_algorithm_inside_a_node_is_proved(void **state)
{
    (void)state;
    static const char *const names[] = {"ring+direct", "bruck+direct", "recursive+direct"};
    for (uint32_t i = 0; i < sizeof names / sizeof *names; i++)
        for (uint32_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            struct plan_request request = request_of(7, 8, kinds[k], names[i]);
            request.portion_count = 3;
            request.piece_count = 2;
            assert_int_equal(prove(&request), 3);
        }
}

/* What switches copy, and exchanges that are not direct, go in pieces. */
static void only_what_comes_message_by_message_is_cut(void **state)
{
    (void)state;
    static const char *const names[] = {"sharp+direct", "direct+ring", "direct+sharp", "ring"};
    for (uint32_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct plan_request request = request_of(6, 4, COLLECTIVE_ALL_GATHER, names[i]);
        request.multicasts[0] = request.multicasts[1] = true;
        request.portion_count = 3;
        assert_int_equal(prove(&request), 1);
    }
    struct plan_request request = request_of(6, 4, COLLECTIVE_ALL_TO_ALL, "direct");
    request.portion_count = 3;
    assert_int_equal(prove(&request), 1);
    request = request_of(6, 4, COLLECTIVE_ALL_GATHER, "direct");
    request.portion_count = 1;
    assert_int_equal(prove(&request), 1);
}

/* --- Canaries --- */

/* The cut item of a half, or the one behind it that waits for portions. */
static struct plan_item *item_of(struct plan *plan, enum collective_kind kind, bool cut)
{
    for (uint32_t i = 0; i < plan->item_count; i++)
        if (plan->item[i].primitive->kind == kind && (plan->item[i].portion_end != NULL) == cut)
            return &plan->item[i];
    return NULL;
}

static void refuses(const struct plan *plan, const char *reason)
{
    struct error error = {0};
    assert_int_not_equal(plan_check(plan, &error), STATUS_OK);
    if (strstr(error.message, reason) == NULL) print_error("%s\n", error.message);
    assert_non_null(strstr(error.message, reason));
    refusals_hold(&error, __FILE__);
}

static void a_portion_that_waits_for_too_little_is_refused(void **state)
{
    (void)state;
    for (uint32_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (uint32_t spoilt = 0; spoilt < 4; spoilt++) {
            struct arena *arena = arena_create(0);
            struct plan_request request = request_of(7, 3, kinds[k], "direct");
            request.portion_count = 4;
            struct plan plan = plan_of(arena, &request);
            struct plan_item *gather = item_of(&plan, COLLECTIVE_ALL_GATHER, true);
            struct plan_item *reduce = item_of(&plan, COLLECTIVE_REDUCE_SCATTER, false);
            uint32_t wait[7];
            if (gather != NULL) {
                memcpy(wait, gather->wait, 4 * sizeof *wait);
                assert_int_equal(wait[0], 0); /* The own shard is there. */
                gather->wait = wait;
                if (spoilt > 0) {
                    wait[spoilt]--;
                    refuses(&plan, "before it has come");
                    wait[spoilt]++;
                }
                wait[spoilt]++; /* Later is only slower, while there is anything to wait for. */
                if (spoilt < 3) assert_int_equal(plan_check(&plan, NULL), STATUS_OK);
                gather->wait = NULL;
                assert_int_equal(plan_check(&plan, NULL), STATUS_OK);
            }
            if (reduce != NULL) {
                memcpy(wait, reduce->wait, 6 * sizeof *wait);
                wait[spoilt]--;
                reduce->wait = wait;
                refuses(&plan, "sends a sum for rank");
                reduce->wait = NULL;
                assert_int_equal(plan_check(&plan, NULL), STATUS_OK);
            }
            assert_true(gather != NULL || reduce != NULL);
            arena_destroy(arena);
        }
}

/* Portions other than those that the waits are for. */
static void portions_with_other_nodes_are_refused(void **state)
{
    (void)state;
    struct arena *arena = arena_create(0);
    struct plan_request request = request_of(7, 3, COLLECTIVE_ALL_REDUCE, "direct");
    request.portion_count = 4;
    struct plan plan = plan_of(arena, &request);
    struct plan_item *gather = item_of(&plan, COLLECTIVE_ALL_GATHER, true);
    struct plan_item *reduce = item_of(&plan, COLLECTIVE_REDUCE_SCATTER, true);
    const uint32_t *good = gather->portion_end;
    uint32_t end[4];
    memcpy(end, good, sizeof end);
    gather->portion_end = end;
    end[1]++;
    refuses(&plan, "before it has come");
    end[1] = end[0];
    refuses(&plan, "do not make up a piece");
    memcpy(end, good, sizeof end);
    end[3]--;
    refuses(&plan, "do not make up a piece");
    gather->portion_end = good;
    good = reduce->portion_end;
    memcpy(end, good, sizeof end);
    reduce->portion_end = end;
    end[1]--;
    refuses(&plan, "sends a sum for rank");
    reduce->portion_end = good;
    reduce->portion_dimension = reduce->dimension;
    refuses(&plan, "do not make up a piece");
    reduce->portion_dimension = 0;
    assert_int_equal(plan_check(&plan, NULL), STATUS_OK);
    arena_destroy(arena);
}

/* --- How many --- */

static uint32_t size_of(const uint32_t *end, uint32_t k)
{
    return end[k] - (k == 0 ? 0 : end[k - 1]);
}

/* Neither level waits for the other: while a portion is in one, the other has what it needs. */
static void portions_are_as_long_as_the_levels_let_them(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 400; i++) {
        uint32_t const nodes = 2 + i * i % 1500;
        uint64_t const outer_rate = 1000000000 + i * 7919 % 97 * UINT64_C(3000000000);
        struct pieces_level const levels[2] = {
            {.bytes = UINT64_C(1000000) * (nodes - 1),
             .bytes_per_s = outer_rate,
             .hop_bytes = 1000 + i,
             .messages = nodes - 1},
            {.bytes = UINT64_C(7000000) * nodes,
             .bytes_per_s = UINT64_C(450000000000),
             .hop_bytes = 1000,
             .messages = 7},
        };
        struct level_overlap_choice const choice = level_overlap_choose(levels, nodes, 0, 0);
        struct arena *arena = arena_create(0);
        struct level_overlap overlap;
        assert_int_equal(level_overlap_build(arena, &choice, nodes, &overlap, NULL), STATUS_OK);
        assert_true(choice.portions >= 2 && choice.portions <= PORTIONS_MAX);
        assert_true(choice.pieces * (nodes - 1 + choice.portions * 7) <= PIECES_MESSAGES_MAX);
        bool const grows = 7 * outer_rate > UINT64_C(450000000000);
        const uint32_t *end = overlap.gather_end;
        double const outer = 1e6 / (double)outer_rate, inner = 7e6 / 450e9;
        double come = 0, done = 0, idle = 0;
        for (uint32_t k = 0; k < overlap.count; k++) {
            uint32_t const mirror = overlap.count - 1 - k;
            assert_true(size_of(end, k) >= 1);
            assert_int_equal(size_of(end, k), size_of(overlap.reduce_end, mirror));
            come = (end[k] - 1) * outer;
            if (come > done) idle += k > 0 ? come - done : 0;
            done = (come > done ? come : done) + size_of(end, k) * inner;
        }
        assert_int_equal(end[overlap.count - 1], nodes);
        if (grows) /* The level inside has always something to do, but for the first shards. */
            assert_true(idle <= 2 * choice.shortest * inner);
        else /* Behind the last message there is but the shortest portion. */
            assert_true(done - come <= (choice.shortest + 1e-6) * inner);
        arena_destroy(arena);
    }
}

/* 1 GiB over nodes of eight: the NIC's level, then the node's. */
static uint32_t pieces_over(uint32_t nodes, enum pieces_series series, bool twice)
{
    uint64_t const shard = (UINT64_C(1) << 30) / 8 / nodes;
    uint64_t const steps = series == PIECES_RING ? nodes - 1 : 9;
    struct pieces_level const levels[2] = {
        {.bytes = shard * (nodes - 1),
         .bytes_per_s = UINT64_C(50000000000),
         .hop_bytes = 102500,
         .shards = nodes - 1,
         .series = series,
         .twice = twice,
         .again_ps = steps * 1500000},
        {.bytes = shard * nodes * 7,
         .bytes_per_s = UINT64_C(450000000000),
         .hop_bytes = 270000,
         .messages = 14},
    };
    return pieces_of_levels(levels, 2);
}

/* Two rings fill each other's ways; single shards are not sent where they would be too small. */
static void pieces_are_as_many_as_their_messages_bear(void **state)
{
    (void)state;
    assert_int_equal(pieces_over(500, PIECES_RING, true), 4); /* Played: 8.04 ms; 2 take 8.91. */
    assert_int_equal(pieces_over(500, PIECES_RING, false), 1);
    assert_in_range(pieces_over(16, PIECES_RING, true), 60, 256);
    assert_in_range(pieces_over(16, PIECES_DOUBLING, true), 11, 13);
    assert_int_equal(pieces_over(12500, PIECES_DOUBLING, true), 1); /* 7 take more than this. */
    assert_true(pieces_over(1000, PIECES_DOUBLING, true) <
                pieces_over(1000, PIECES_DOUBLING, false));
    assert_in_range(pieces_over(500, PIECES_FREE, true), 100, PIECES_LEVELS_MAX);
}

/* What switches add goes up in pieces of a quarter of the way, and in no more messages than are
 * borne: 64 MiB and more over nodes of 72 that copy and add. */
static void pieces_of_what_switches_add_are_short(void **state)
{
    (void)state;
    struct pieces_level levels[2] = {
        {.bytes = UINT64_C(700000),
         .bytes_per_s = UINT64_C(50000000000),
         .hop_bytes = 75000,
         .messages = 6},
        {.bytes = UINT64_C(66000000),
         .bytes_per_s = UINT64_C(900000000000),
         .hop_bytes = 540000,
         .messages = 72,
         .passes = 2},
    };
    uint32_t const whole = pieces_of_levels(levels, 2);
    levels[1].in_network = true;
    assert_in_range(whole, 40, 42);
    assert_int_equal(pieces_of_levels(levels, 2), 4 * whole);
    levels[0].bytes *= 1000;
    levels[1].bytes *= 1000;
    assert_int_equal(pieces_of_levels(levels, 2), PIECES_MESSAGES_MAX / 78);
    levels[0].series = PIECES_RING; /* Each message goes on when it has come. */
    levels[0].again_ps = 3000000;
    assert_true(pieces_of_levels(levels, 2) <= PIECES_LEVELS_MAX);
}

static void small_arrays_are_not_cut(void **state)
{
    (void)state;
    struct plan_request request = request_of(64, 8, COLLECTIVE_ALL_REDUCE, "direct");
    request.size_bytes = 65536;
    struct arena *arena = arena_create(0);
    struct plan plan = plan_of(arena, &request);
    assert_int_equal(most_portions(&plan), 1);
    assert_int_equal(plan.item[0].piece_count, 1);
    request.size_bytes = UINT64_C(1) << 34;
    plan = plan_of(arena, &request);
    assert_int_equal(most_portions(&plan), 4); /* Of 1, 7, 49 and 7 nodes: 7 peers inside. */
    arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_cut_of_every_shape_is_proved),
        cmocka_unit_test(every_algorithm_inside_a_node_is_proved),
        cmocka_unit_test(only_what_comes_message_by_message_is_cut),
        cmocka_unit_test(a_portion_that_waits_for_too_little_is_refused),
        cmocka_unit_test(portions_with_other_nodes_are_refused),
        cmocka_unit_test(portions_are_as_long_as_the_levels_let_them),
        cmocka_unit_test(pieces_are_as_many_as_their_messages_bear),
        cmocka_unit_test(pieces_of_what_switches_add_are_short),
        cmocka_unit_test(small_arrays_are_not_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
