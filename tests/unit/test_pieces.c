/* Into how many pieces plans over several dimensions are cut, by hand. */
#include "sim/collective/pieces.h"

#include "sim/measure/measure.h"
#include "tests/support/case.h"

/* Rings along several axes, of 1 ms, next to a level without a way: as many pieces as leave their
 * ways an eighth of the time of the rings, or what the longer level leaves bare, but at least three
 * times the square root of what a piece hides over its way. */
static void rings_of_several_orders_bear_pieces_while_their_ways_are_short(void **state)
{
    (void)state;
    static const struct {
        uint64_t other_bytes, again_ps, wanted;
    } rows[] = {
        {1000000, 1000000, 125}, /* 1 ms / (8·1 us). */
        {1200000, 1000000, 200}, /* (1.2 ms - 1 ms) / 1 us. */
        {1100000, 1000000, 125}, /* 100 of them would be fewer. */
        {1000000, 10000000, 30}, /* 3·sqrt(1 ms / 10 us). */
        {1000000, 100000000, 9}, /* 3·sqrt(1 ms / 100 us), rounded down first. */
        {1000000, 400000, 256},  /* 312, more than a plan has. */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct pieces_level const levels[] = {
            {.bytes = 1000000,
             .bytes_per_s = 1000000000,
             .hop_bytes = 1000,
             .series = PIECES_GRID,
             .again_ps = rows[i].again_ps},
            {.bytes = rows[i].other_bytes, .bytes_per_s = 1000000000, .series = PIECES_FREE}};
        assert_int_equal(pieces_wanted(levels, 2), rows[i].wanted);
    }
}

/* Levels without a way, of which none bears fewer: as many as a plan may have. */
static void pieces_that_cost_nothing_are_as_many_as_may_be(void **state)
{
    (void)state;
    struct pieces_level const level = {
        .bytes = 1000000, .bytes_per_s = 1000000000, .series = PIECES_FREE};
    struct pieces_level const levels[] = {level, level};
    assert_int_equal(pieces_wanted(levels, 2), 256);
}

/* Of levels of `ns` nanoseconds each. */
static uint64_t needed_of(const uint64_t *ns, uint32_t count, bool longer_alone)
{
    struct pieces_level levels[3];
    for (uint32_t i = 0; i < count; i++)
        levels[i] = (struct pieces_level){.bytes = ns[i],
                                          .bytes_per_s = 1000000000,
                                          .hop_bytes = 1,
                                          .longer_alone = longer_alone && i == 1};
    return pieces_needed(levels, count);
}

/* A 200th of the longest level is 0.5 % of it, and one piece more leaves less. */
static void no_more_pieces_are_needed_than_leave_half_a_percent_bare(void **state)
{
    (void)state;
    static const struct {
        uint64_t ns[3];
        uint64_t pieces;
    } rows[] = {
        {{1000000, 1000000, 0}, 201}, {{1000000, 500000, 0}, 101},
        {{500000, 1000000, 0}, 101},  {{400000, 1000000, 800000}, 241},
        {{1000000, 4999, 0}, 1},      {{1000000, 5000, 0}, 2},
        {{1000000, 0, 0}, 1},         {{0, 0, 0}, 1},
        {{1000000, 999999, 0}, 200},  {{UINT64_C(9000000000), UINT64_C(9000000000), 0}, 201},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(needed_of(rows[i].ns, 3, false), rows[i].pieces);
        assert_true(needed_of(rows[i].ns, 3, true) == UINT64_MAX);
    }
}

/* In how many pieces a collective goes, and how long it takes. */
struct cut {
    uint32_t pieces;
    int64_t ps;
};

static struct cut cut_of(const char *machine_text, enum collective_kind kind, const char *algorithm,
                         uint32_t piece_count)
{
    struct machine const machine = case_machine(machine_text);
    struct plan_request const request = {.kind = kind,
                                         .algorithm = algorithm_read(algorithm),
                                         .group = case_group(&machine, NULL),
                                         .size_bytes = UINT64_C(4) << 30,
                                         .piece_count = piece_count};
    struct measure_options const options = {.engine = "fast"};
    struct measured measured;
    case_ok(
        measure_run(case_arena, &machine, &request, 1, "/test", &options, &measured, &case_error));
    return (struct cut){measured.plans[0].item[0].piece_count, measured.time_ps[0]};
}

/* Nodes of eight: 7/8 of the array goes within, and all but a node's part between nodes. */
static void exchanges_have_the_pieces_that_they_need(void **state)
{
    (void)state;
    static const struct {
        const char *machine;
        uint32_t pieces;
    } rows[] = {
        {"h100-sxm:nodes=4", 26}, /* (7/8 / 450) / (3/4 / 50) = 0.1296 of 200, and 1. */
        {"h100-sxm:nodes=8", 23}, /* (7/8 / 450) / (7/8 / 50) = 0.1111 */
        {"h800-sxm:nodes=4", 39}, /* (7/8 / 300) / (3/4 / 50) = 0.1944 */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct cut const cut = cut_of(rows[i].machine, COLLECTIVE_ALL_TO_ALL, "hierarchical", 0);
        assert_int_equal(cut.pieces, rows[i].pieces);
        struct cut const most =
            cut_of(rows[i].machine, COLLECTIVE_ALL_TO_ALL, "hierarchical", PIECES_LEVELS_MAX);
        assert_true(cut.ps > most.ps);
        case_near((double)cut.ps, (double)most.ps, 0.006);
    }
}

/* Storey by storey, and by switches that add, a piece takes longer than its bytes: with these few
 * pieces the tree would take 0.8 % longer. */
static void where_more_is_bare_there_are_as_many_pieces_as_before(void **state)
{
    (void)state;
    static const char *const names[] = {"direct+double-tree", "sharp"};
    for (uint32_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct cut const cut = cut_of("h100-sxm:nodes=4", COLLECTIVE_ALL_REDUCE, names[i], 0);
        assert_true(cut.pieces >= 200);
    }
}

/* From a node to the next: within a leaf mostly, from the last of each leaf over a spine. */
static void the_way_to_the_next_is_a_mean_over_the_ends_of_boxes(void **state)
{
    (void)state;
    struct machine const machine = case_machine("h100-sxm:nodes=256");
    struct plan_request request = {.group = case_group(&machine, "node")};
    plan_request_links(&machine, &request);
    /* Two cables and a leaf each way, and one of 32 also goes by a spine, 300 ns each way. */
    assert_int_equal(request.next_ps[0], 1450000 + 600000 / 32);
}

/* From a root: 1 ms along its ring of 8 both ways, and 2 ms behind that, the fill, the slices, and
 * the gather round the ring. Its four messages in series take 1 us each and what the protocol says:
 * as many pieces as the square root of the 2 ms over that. */
static void pieces_from_a_root_wait_for_messages_by_their_protocol(void **state)
{
    (void)state;
    static const struct {
        int64_t message_ps;
        uint32_t pieces;
    } rows[] = {{0, 22}, {1000000, 16}, {10000000, 7}, {99000000, 2}};
    static const struct group slices = {
        {{0, 8, 1, true, false, "x"}, {3, 4, 1, false, true, "slice"}}, 2};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct plan_request const request = {.kind = COLLECTIVE_BROADCAST,
                                             .algorithm = algorithm_read("hierarchical"),
                                             .group = slices,
                                             .size_bytes = 100000000,
                                             .bytes_per_s = {50000000000, 50000000000},
                                             .hop_bytes = {50000, 50000},
                                             .protocol.message_ps = {rows[i].message_ps}};
        assert_int_equal(case_plan(&request).item[0].piece_count, rows[i].pieces);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_that_cost_nothing_are_as_many_as_may_be),
        cmocka_unit_test(no_more_pieces_are_needed_than_leave_half_a_percent_bare),
        cmocka_unit_test(exchanges_have_the_pieces_that_they_need),
        cmocka_unit_test(where_more_is_bare_there_are_as_many_pieces_as_before),
        cmocka_unit_test(the_way_to_the_next_is_a_mean_over_the_ends_of_boxes),
        cmocka_unit_test(pieces_from_a_root_wait_for_messages_by_their_protocol),
        cmocka_unit_test(rings_of_several_orders_bear_pieces_while_their_ways_are_short),
    };
    return cmocka_run_group_tests_name("pieces", tests, case_arena_up, case_arena_down);
}
