/* Steps that NCCL's algorithms take in series over nodes. */
#include "sim/choose/protocol.h"
#include "tests/support/case.h"

static struct machine machine;

/* Four nodes of so many ranks each. */
static struct plan_protocol made(uint32_t members, enum collective_kind kind, const char *algorithm,
                                 enum protocol_stand stands, enum protocol protocol)
{
    struct machine_plan const plan = {
        .chip = "h100-sxm", .profile = "ideal", .nodes = 4, .wrap = {-1, -1, -1}};
    struct group group = {.dimension_count = members > 1 ? 2 : 1};
    struct plan_protocol result;
    case_ok(machine_build(case_arena, &plan, &machine, &case_error));
    group.dimension[0] =
        (struct group_dimension){.axis = 1, .size = 4, .stride = 1, .switched = true};
    group.dimension[1] =
        (struct group_dimension){.axis = 0, .size = members, .stride = 1, .switched = true};
    struct protocol_use const use = {&machine, &group, kind,  algorithm_read(algorithm),
                                     1024,     false,  stands};
    case_ok(protocol_make(&use, protocol, "/protocol", &result, &case_error));
    return result;
}

/* Of 31 steps 3 cross the network: a ring on each level has 7 and 3, an exchange 1 and 1. Latencies
 * of a node are 1.23 times NCCL's; its time to post to the network, 1 us, holds for LL. */
static void a_ring_goes_through_all_ranks(void **state)
{
    (void)state;
    assert_int_equal(
        made(8, COLLECTIVE_ALL_GATHER, "ring", PROTOCOL_STANDS_ALONE, PROTOCOL_SIMPLE).begin_ps,
        INT64_C(8400000) * 123 / 100 + (28 - 7) * INT64_C(4182000));
    assert_int_equal(
        made(8, COLLECTIVE_ALL_GATHER, NULL, PROTOCOL_STANDS_FOR_RING, PROTOCOL_SIMPLE).begin_ps,
        INT64_C(8400000) * 123 / 100 + (28 - 1) * INT64_C(4182000) + (3 - 1) * 14000000);
    assert_int_equal(
        made(8, COLLECTIVE_ALL_REDUCE, NULL, PROTOCOL_STANDS_FOR_RING, PROTOCOL_LL).begin_ps,
        INT64_C(6600000) * 123 / 100 + 2 * ((28 - 1) * 1000000 + (3 - 1) * 2700000));
    assert_int_equal(
        made(8, COLLECTIVE_ALL_GATHER, "direct", PROTOCOL_STANDS_ALONE, PROTOCOL_LL).begin_ps,
        INT64_C(6600000) * 123 / 100);
}

static void trees_go_up_and_down(void **state)
{
    (void)state;
    struct plan_protocol const got =
        made(8, COLLECTIVE_ALL_REDUCE, NULL, PROTOCOL_STANDS_FOR_TREE, PROTOCOL_LL);
    assert_int_equal(got.begin_ps,
                     INT64_C(6800000) * 123 / 100 + 2 * ((7 - 1) * 738000 + (2 - 1) * 5000000));
    assert_int_equal(
        made(8, COLLECTIVE_ALL_REDUCE, "sharp", PROTOCOL_STANDS_ALONE, PROTOCOL_SIMPLE).begin_ps,
        INT64_C(25000000) * 123 / 100 - 600000 + 2 * (2 * 20900000 - 18000000));
}

/* 8 us, two doublings of 4 us and 2.8 us a rank, less the message of 14 us that there is. */
static void pat_has_a_rank_a_node(void **state)
{
    (void)state;
    struct plan_protocol const got =
        made(1, COLLECTIVE_ALL_GATHER, NULL, PROTOCOL_STANDS_FOR_PAT, PROTOCOL_SIMPLE);
    assert_int_equal(got.begin_ps, 8000000 + 2 * 4000000 + 4 * 2800000 - 14000000);
    assert_int_equal(got.wire_ppm, 1333333);
}

static void nccl_has_what_stands_for_it(void **state)
{
    (void)state;
    (void)made(1, COLLECTIVE_ALL_GATHER, NULL, PROTOCOL_STANDS_ALONE, PROTOCOL_LL);
    struct group group = {.dimension_count = 1};
    group.dimension[0] =
        (struct group_dimension){.axis = 1, .size = 4, .stride = 1, .switched = true};
    struct protocol_use use = {&machine, &group, COLLECTIVE_ALL_GATHER,  algorithm_read("sharp"),
                               1024,     false,  PROTOCOL_STANDS_FOR_PAT};
    assert_true(protocol_stands(&use));
    assert_non_null(protocol_refusal(&use, PROTOCOL_LL));
    use.kind = COLLECTIVE_ALL_REDUCE;
    assert_false(protocol_stands(&use));
    use.stands = PROTOCOL_STANDS_FOR_TREE;
    assert_true(protocol_stands(&use));
    use.kind = COLLECTIVE_ALL_TO_ALL;
    assert_false(protocol_stands(&use));
    use.stands = PROTOCOL_STANDS_FOR_RING;
    assert_false(protocol_stands(&use));
    /* Switches gather in a node alone, and add over nodes too. */
    use.stands = PROTOCOL_STANDS_ALONE;
    use.kind = COLLECTIVE_ALL_GATHER;
    assert_false(protocol_contends(&use));
    use.kind = COLLECTIVE_ALL_REDUCE;
    assert_true(protocol_contends(&use));
    group.dimension[0].axis = 0;
    use.kind = COLLECTIVE_ALL_GATHER;
    assert_true(protocol_contends(&use));
    use.stands = PROTOCOL_STANDS_FOR_RING;
    assert_false(protocol_stands(&use));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ring_goes_through_all_ranks),
        cmocka_unit_test(trees_go_up_and_down),
        cmocka_unit_test(pat_has_a_rank_a_node),
        cmocka_unit_test(nccl_has_what_stands_for_it),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
