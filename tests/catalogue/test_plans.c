/* Plans: shares, chunks and routes as promised; what cannot run is refused; broken plans too. */
#include <string.h>

#include "tests/oracle/plan_cost.h"
#include "tests/support/case.h"
#include "tests/support/refusals.h"

static const struct group ring16 = {{{0, 16, 1, true, false, "x"}}, 1};
static const struct group line8 = {{{1, 8, 1, false, false, "y"}}, 1};
static const struct group torus448 = {
    {{0, 4, 1, true, false, "x"}, {1, 4, 1, true, false, "y"}, {2, 8, 1, true, false, "z"}}, 3};
static const struct group torus34 = {{{0, 3, 1, true, false, "x"}, {1, 4, 1, true, false, "y"}}, 2};

static void is_refused(struct plan_request request, enum status status, const char *reason)
{
    static const char where[] = "/collective/algorithm";
    struct plan plan = {.item_count = 77};
    case_refused(plan_build(case_arena, &request, where, &plan, &case_error), status, where,
                 reason);
    assert_int_equal(plan.item_count, 77);
}

static void what_cannot_run_is_refused_with_the_reason(void **state)
{
    (void)state;
    struct plan_request request = {.kind = COLLECTIVE_ALL_GATHER,
                                   .algorithm = algorithm_read("rnig"),
                                   .group = ring16,
                                   .size_bytes = 1000};
    is_refused(request, STATUS_NOT_FOUND, "did you mean \"ring\"?");
    request.kind = COLLECTIVE_ALL_TO_ALL;
    request.algorithm = algorithm_read("tree");
    is_refused(request, STATUS_NOT_FOUND, "(auto, bruck, direct, line, ring");
    request.kind = COLLECTIVE_PERMUTE;
    request.algorithm = algorithm_read("ring");
    is_refused(request, STATUS_NOT_FOUND, "for Permute");
    request.kind = COLLECTIVE_ALL_REDUCE;
    request.group = line8;
    is_refused(request, STATUS_UNSUPPORTED, "the 8 chips along y do not");
    request.algorithm = (struct algorithm){.means = ALGORITHM_AUTO};
    request.chunk_count = 8;
    is_refused(request, STATUS_UNSUPPORTED, "AllReduce does not go chunk by chunk");
    request.kind = COLLECTIVE_ALL_GATHER;
    request.chunk_count = 1000000;
    is_refused(request, STATUS_LIMIT, "1000000 chunks");
    request.chunk_count = 0;
    request.size_bytes = 0;
    is_refused(request, STATUS_INVALID, "0 bytes");
    request.size_bytes = UINT64_MAX;
    is_refused(request, STATUS_INVALID, "bytes are not between");
}

static void shares_make_every_axis_carry_the_same_bytes(void **state)
{
    (void)state;
    uint64_t const size = UINT64_C(1) << 40;
    struct plan const plan = case_plan(&(struct plan_request){
        .kind = COLLECTIVE_ALL_GATHER, .group = torus448, .size_bytes = size});
    static const uint64_t expected_ppm[] = {269841, 333333, 396825}; /* 17, 21 and 25 of 63. */
    assert_int_equal(plan.order_count, 3);
    for (uint32_t i = 0; i < plan.item_count; i++) {
        const struct plan_item *item = &plan.item[i];
        if (item->after != PLAN_NO_ITEM) continue;
        uint64_t const share = item->unit_bytes * 2 * 128 * item->piece_count;
        assert_in_range(share / (size / 1000000), expected_ppm[item->order] - 1,
                        expected_ppm[item->order] + 1);
    }
    uint32_t const at[GROUP_DIMENSIONS_MAX] = {1, 2, 3};
    uint64_t const x = plan_sent_bytes(&plan, 0, at), z = plan_sent_bytes(&plan, 2, at);
    assert_in_range(plan_sent_bytes(&plan, 1, at), x - x / 10000, x + x / 10000);
    assert_in_range(z, x - x / 10000, x + x / 10000);
    uint64_t const all = size / 128 * 127;
    assert_in_range(2 * x + z, all - all / 10000, all + all / 10000);
}

static void what_names_its_receivers_counts_where_they_lie_elsewhere(void **state)
{
    (void)state;
    uint64_t const message = 1000; /* Of each pair. */
    uint32_t const at[GROUP_DIMENSIONS_MAX] = {1, 2, 3};
    struct plan_request request = {.kind = COLLECTIVE_ALL_TO_ALL,
                                   .algorithm = algorithm_read("flat-direct"),
                                   .group = torus448,
                                   .size_bytes = message * 128 * 128};
    struct plan plan = case_plan(&request);
    assert_int_equal(plan_sent_bytes(&plan, 0, at), message * (128 - 32));
    assert_int_equal(plan_sent_bytes(&plan, 1, at), message * (128 - 32));
    assert_int_equal(plan_sent_bytes(&plan, 2, at), message * (128 - 16));
    request = (struct plan_request){.kind = COLLECTIVE_GATHER,
                                    .algorithm = algorithm_read("direct"),
                                    .group = torus448,
                                    .size_bytes = message * 128,
                                    .root = 8};
    plan = case_plan(&request);
    uint32_t const root[GROUP_DIMENSIONS_MAX] = {0, 1, 0},
                   overlap[GROUP_DIMENSIONS_MAX] = {0, 2, 0};
    assert_int_equal(plan_sent_bytes(&plan, 1, root), 0);
    assert_int_equal(plan_sent_bytes(&plan, 1, overlap), message);
    assert_int_equal(plan_sent_bytes(&plan, 2, overlap), 0);
}

static void axes_alike_carry_exactly_the_same_bytes(void **state)
{
    (void)state;
    struct group const cube = {
        {{0, 5, 1, true, false, "x"}, {1, 5, 1, true, false, "y"}, {2, 5, 1, true, false, "z"}}, 3};
    uint32_t const at[GROUP_DIMENSIONS_MAX] = {0};
    struct plan const plan = case_plan(&(struct plan_request){
        .kind = COLLECTIVE_ALL_REDUCE, .group = cube, .size_bytes = 1234567});
    assert_int_equal(plan.item_count, 18);
    for (uint32_t d = 1; d < 3; d++)
        assert_int_equal(plan_sent_bytes(&plan, d, at), plan_sent_bytes(&plan, 0, at));
    for (uint32_t i = 0; i < plan.item_count; i++) {
        assert_int_equal(plan.item[i].piece_count, 1);
        assert_int_equal(plan.item[i].turn, PLAN_NO_ITEM);
    }
}

static void a_line_carries_less_than_a_ring_beside_it(void **state)
{
    (void)state;
    struct group group = torus34;
    group.dimension[1].ring = false;
    uint32_t const end[GROUP_DIMENSIONS_MAX] = {1, 0}, middle[GROUP_DIMENSIONS_MAX] = {1, 1};
    struct plan const plan = case_plan(&(struct plan_request){
        .kind = COLLECTIVE_REDUCE_SCATTER, .group = group, .size_bytes = 1 << 30});
    assert_string_equal(plan.algorithm_name, "ring+line");
    /* An end of the line sends all one way, a rank of the ring half each way. */
    uint64_t const one_way = plan_sent_bytes(&plan, 0, middle) / 2;
    assert_in_range(plan_sent_bytes(&plan, 1, end), one_way - one_way / 100,
                    one_way + one_way / 100);
    /* A line so long that the ring cannot keep up: whatever the shares, they are no less than 0. */
    group = (struct group){{{0, 2, 1, true, false, "x"}, {1, 16, 1, false, false, "y"}}, 2};
    struct plan const long_line = case_plan(&(struct plan_request){
        .kind = COLLECTIVE_ALL_GATHER, .group = group, .size_bytes = 1 << 30});
    assert_int_equal(long_line.order_count, 1);
    assert_int_equal(long_line.item[0].dimension, 1);
}

static void chunks_say_how_others_may_go_along(void **state)
{
    (void)state;
    struct plan_request request = {.kind = COLLECTIVE_ALL_GATHER,
                                   .algorithm = algorithm_read("ring"),
                                   .group = ring16,
                                   .size_bytes = 1 << 20,
                                   .chunk_count = 16};
    struct plan plan = case_plan(&request);
    assert_true(plan.counts_buckets);
    assert_int_equal(plan.part_count, 32);
    assert_int_equal(plan.chunk_parts, 2);
    assert_int_equal(plan.chunk_count, 16);
    assert_int_equal(plan.item[0].piece_count, 1);
    request.kind = COLLECTIVE_REDUCE_SCATTER;
    plan = case_plan(&request);
    assert_false(plan.counts_buckets);
    assert_int_equal(plan.part_count, 1);
    assert_int_equal(plan.chunk_count, 16);
    request.group = torus448;
    request.size_bytes = UINT64_C(1) << 32;
    plan = case_plan(&request);
    assert_int_equal(plan.part_count, 16);
    assert_int_equal(plan.chunk_parts, 1);
    assert_int_equal(plan.chunk_count, 16);
    for (uint32_t i = 0; i < plan.item_count; i++) assert_int_equal(plan.item[i].piece_count, 16);
    /* Chunks that would take less than their hops are not granted, all or any. */
    request.size_bytes = 1 << 27;
    plan = case_plan(&request);
    assert_in_range(plan.chunk_count, 2, 15);
    assert_int_equal(plan.part_count, plan.chunk_count);
    request.size_bytes = 1 << 20;
    plan = case_plan(&request);
    assert_int_equal(plan.part_count, 1);
    assert_int_equal(plan.chunk_count, 0);
    request.chunk_count = 0;
    plan = case_plan(&request);
    assert_int_equal(plan.part_count, 1);
    assert_int_equal(plan.chunk_count, 0);
    request.group = (struct group){.dimension_count = 0};
    request.chunk_count = 4;
    plan = case_plan(&request);
    assert_int_equal(plan.item_count, 0);
    assert_int_equal(plan.part_count, 1);
    assert_int_equal(plan_closed_form_ps(&plan, 1, 1), 0);
}

static struct plan shift(const struct group *group, int32_t x, int32_t y, int32_t z)
{
    struct plan_request const request = {
        .kind = COLLECTIVE_PERMUTE, .group = *group, .size_bytes = 1000, .offset = {x, y, z}};
    struct plan const plan = case_plan(&request);
    case_ok(plan_check(&plan, &case_error));
    return plan;
}

static void a_permute_takes_the_shortest_way_and_every_hop(void **state)
{
    (void)state;
    for (int32_t x = -9; x <= 9; x++)
        for (int32_t y = -9; y <= 9; y++) (void)shift(&torus34, x, y, 0);
    struct plan plan = shift(&ring16, 9, 0, 0);
    assert_int_equal(plan.lane[0].leg[0].port, machine_port(0, true));
    assert_int_equal(plan.lane[0].leg[0].hops, 7);
    plan = shift(&ring16, -8, 0, 0);
    assert_int_equal(plan.lane[0].leg[0].port, machine_port(0, false));
    assert_int_equal(plan.lane[0].leg[0].hops, 8);
    assert_int_equal(plan_closed_form_ps(&plan, 1000000000, 7), 1000000 + 8 * 7);
    assert_int_equal(shift(&ring16, 32, 0, 0).item_count, 0);
    plan = shift(&line8, -5, 0, 0);
    assert_int_equal(plan.lane[0].leg[0].hops, 5);
    assert_int_equal(plan.lane[0].send_count[4], 0);
    assert_int_equal(plan.lane[0].send_count[5], 1);
    assert_int_equal(plan.lane[0].arrival_count[2], 1);
    assert_int_equal(plan.lane[0].arrival_count[3], 0);

    struct group strided = torus34;
    strided.dimension[0].stride = 4;
    strided.dimension[1].ring = false;
    plan = shift(&strided, 1, -1, 0);
    assert_int_equal(plan.lane[0].leg_count, 2);
    assert_int_equal(plan.lane[0].leg[0].hops, 4);
    assert_int_equal(plan.lane[0].leg[1].port, machine_port(1, true));
    assert_int_equal(plan_closed_form_ps(&plan, 1000000000, 7), 1000000 + (4 + 1) * 7);
    uint32_t const at[GROUP_DIMENSIONS_MAX] = {0, 1}, end[GROUP_DIMENSIONS_MAX] = {0, 0};
    assert_int_equal(plan_sent_bytes(&plan, 0, at), 1000);
    assert_int_equal(plan_sent_bytes(&plan, 0, end), 0);
}

static void a_permute_that_reaches_nobody_is_refused(void **state)
{
    (void)state;
    struct plan_request request = {
        .kind = COLLECTIVE_PERMUTE, .group = line8, .size_bytes = 1000, .offset = {8, 0, 0}};
    is_refused(request, STATUS_INVALID, "reaches nobody");
    request.group = (struct group){{{0, 4, 1, false, false, "x"}, {1, 4, 1, false, false, "y"}}, 2};
    request.offset[0] = request.offset[1] = 1;
    is_refused(request, STATUS_UNSUPPORTED, "two axes without wraparound");
}

/* On grids, lines and switches alike: who is as far from the other end names its receiver. */
static void a_mirror_joins_members_as_far_from_either_end(void **state)
{
    (void)state;
    for (uint32_t size = 2; size <= 16; size++)
        for (uint32_t form = 0; form < 3; form++) {
            struct group const group = {{{0, size, 2, form == 1, form == 2, "x"}}, 1};
            struct plan_request const request = {
                .kind = COLLECTIVE_PERMUTE, .group = group, .size_bytes = 1000, .mirrors = true};
            if (size % 2 != 0) {
                is_refused(request, STATUS_UNSUPPORTED, "an even number");
                continue;
            }
            struct plan const plan = case_plan(&request);
            case_ok(plan_check(&plan, &case_error));
            assert_int_equal(plan_item_shift(&plan, &plan.item[0], 0), size);
            for (uint32_t r = 0; r < size; r++) {
                uint32_t const at[MACHINE_AXES_MAX] = {2 * r + 1}, own[GROUP_DIMENSIONS_MAX] = {r};
                uint32_t to[MACHINE_AXES_MAX];
                uint32_t const peer = plan_step(&plan, &plan.item[0], 0, r, 0).peer;
                plan_item_peer(&plan, &plan.item[0], at, peer, to);
                assert_int_equal(to[0], 2 * (size - 1 - r) + 1);
                assert_int_equal(plan_sent_bytes(&plan, 0, own), 1000);
            }
            struct plan bad = plan;
            bad.permute.mirrors = false;
            bad.permute.peer = 1;
            assert_int_not_equal(plan_check(&bad, &case_error), STATUS_OK);
        }
    struct plan_request const both = {
        .kind = COLLECTIVE_PERMUTE, .group = torus34, .size_bytes = 1000, .mirrors = true};
    is_refused(both, STATUS_UNSUPPORTED, "along one axis");
}

/* Canaries: plans as they are built, each with one mistake. */
static void is_caught(const struct plan *plan, const char *reason)
{
    struct error error = {0};
    assert_int_not_equal(plan_check(plan, &error), STATUS_OK);
    if (strstr(error.message, reason) == NULL) print_error("%s\n", error.message);
    assert_non_null(strstr(error.message, reason));
    refusals_hold(&error, __FILE__);
}

static void broken_plans_are_caught(void **state)
{
    (void)state;
    struct plan_request request = {
        .kind = COLLECTIVE_ALL_GATHER, .group = torus34, .size_bytes = 120000000};
    struct plan const good = case_plan(&request);
    assert_int_equal(good.item_count, 4);
    struct plan bad = good;
    bad.item[1].after = PLAN_NO_ITEM;
    is_caught(&bad, "carries");
    bad = good;
    bad.item[0].unit_bytes /= 2;
    is_caught(&bad, "carries");
    bad = good;
    bad.item[1].unit_bytes++;
    is_caught(&bad, "not whole multiples");
    bad = good;
    bad.item[0].turn = 3; /* Which waits for item 2, which waits for item 1. */
    bad.item[2].turn = 1;
    is_caught(&bad, "waits for ever");
    bad = good;
    bad.lane[0].leg[0].port = (uint8_t)machine_port(0, true);
    is_caught(&bad, "already");
    bad = good;
    bad.lane[0].leg[0].hops = 4;
    is_caught(&bad, "nobody where it sends");
    uint32_t const none[4] = {0};
    bad = good;
    bad.lane[1].send_count = bad.lane[1].arrival_count = none;
    is_caught(&bad, "before it has come");
    bad = good;
    bad.item_count = 2;
    bad.lane_count = 4;
    is_caught(&bad, "the orders carry");
}

static const struct primitive *untouched;

/* As it was, but for the last position, which computes its first two chunks in turned order. */
static uint32_t chunk_turned_at_the_end(uint32_t size, uint32_t position, uint32_t index)
{
    uint32_t const turned = position + 1 == size && index < 2 ? 1 - index : index;
    return untouched->chunk_at(size, position, turned);
}

/* As it was, but for the last position, which first sends the chunk before. */
static struct primitive_move move_turned_at_the_end(uint32_t size, uint32_t lane, uint32_t position,
                                                    uint32_t step, uint32_t move)
{
    struct primitive_move moved = untouched->move(size, lane, position, step, move);
    assert_true(move < untouched->step(size, lane, position, step).move_count);
    if (position + 1 == size && move == 0)
        moved.destination = (moved.destination + size - 1) % size;
    return moved;
}

/* Of each step all moves are compared, the first of them too, and no more than it has. */
static void a_primitive_that_translates_but_in_its_chunks_or_moves_is_caught(void **state)
{
    (void)state;
    struct plan_request const request = {.kind = COLLECTIVE_REDUCE_SCATTER,
                                         .group = {{{0, 8, 1, false, true, "x"}}, 1},
                                         .size_bytes = 16000,
                                         .algorithm = algorithm_read("direct")};
    struct plan bad = case_plan(&request);
    untouched = bad.item[0].primitive;
    assert_true(untouched->translates);
    struct primitive chunks = *untouched, moves = *untouched;
    chunks.chunk_at = chunk_turned_at_the_end;
    moves.move = move_turned_at_the_end;
    bad.item[0].primitive = &chunks;
    is_caught(&bad, "says that it translates, but in lane 0 position 7 does not do");
    bad.item[0].primitive = &moves;
    is_caught(&bad, "says that it translates, but in lane 0 position 7 does not do");
}

static void broken_reductions_are_caught(void **state)
{
    (void)state;
    struct plan_request request = {
        .kind = COLLECTIVE_ALL_REDUCE, .group = ring16, .size_bytes = 16000};
    struct plan const good = case_plan(&request);
    struct plan bad = good;
    assert_int_equal(good.item_count, 2);
    bad.item[1].after = PLAN_NO_ITEM;
    is_caught(&bad, "before it is complete");
    bad = good;
    bad.item_count = 1;
    bad.lane_count = 2;
    is_caught(&bad, "never gets");
    bad = good;
    bad.item[0].primitive = primitive_find(COLLECTIVE_ALL_GATHER, PRIMITIVE_RING, false);
    is_caught(&bad, "before it is complete");
    struct plan far = shift(&ring16, 3, 0, 0);
    far.lane[0].leg[0].hops = 2;
    is_caught(&far, "does not send where it should");
    struct group const large = {{{0, 16, 1, true, false, "x"}, {1, 16, 1, true, false, "y"}}, 2};
    request.group = large;
    bad = case_plan(&request);
    is_caught(&bad, "256 ranks are more than");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_cannot_run_is_refused_with_the_reason),
        cmocka_unit_test(shares_make_every_axis_carry_the_same_bytes),
        cmocka_unit_test(what_names_its_receivers_counts_where_they_lie_elsewhere),
        cmocka_unit_test(axes_alike_carry_exactly_the_same_bytes),
        cmocka_unit_test(a_line_carries_less_than_a_ring_beside_it),
        cmocka_unit_test(chunks_say_how_others_may_go_along),
        cmocka_unit_test(a_permute_takes_the_shortest_way_and_every_hop),
        cmocka_unit_test(a_permute_that_reaches_nobody_is_refused),
        cmocka_unit_test(a_mirror_joins_members_as_far_from_either_end),
        cmocka_unit_test(broken_plans_are_caught),
        cmocka_unit_test(a_primitive_that_translates_but_in_its_chunks_or_moves_is_caught),
        cmocka_unit_test(broken_reductions_are_caught),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
