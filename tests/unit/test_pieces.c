/* Into how many pieces plans over several dimensions are cut, by hand. */
#include "sim/collective/pieces.h"

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
        cmocka_unit_test(the_way_to_the_next_is_a_mean_over_the_ends_of_boxes),
        cmocka_unit_test(pieces_from_a_root_wait_for_messages_by_their_protocol),
        cmocka_unit_test(rings_of_several_orders_bear_pieces_while_their_ways_are_short),
    };
    return cmocka_run_group_tests_name("pieces", tests, case_arena_up, case_arena_down);
}
