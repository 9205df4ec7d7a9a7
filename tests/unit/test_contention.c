/* What the messages of an item take in a small simulation, and what is remembered. */
#include <math.h>
#include <string.h>

#include "sim/choose/contention.h"
#include "tests/support/case.h"

/* An algorithm along a level of so many nodes of eight H100. */
static void plan_along(uint32_t nodes, uint32_t level, const char *algorithm,
                       struct machine *ret_machine, struct plan *ret_plan)
{
    struct machine_plan const machine = {
        .chip = "h100-sxm", .profile = "ideal", .nodes = nodes, .wrap = {-1, -1, -1}};
    case_ok(machine_build(case_arena, &machine, ret_machine, &case_error));
    uint32_t axis = 0;
    while (ret_machine->axis_level[axis] != level) axis++;
    struct plan_request request = {.kind = COLLECTIVE_ALL_GATHER,
                                   .algorithm = algorithm_read(algorithm),
                                   .size_bytes = 1u << 20};
    request.group.dimension_count = 1;
    request.group.dimension[0] = (struct group_dimension){.axis = axis,
                                                          .size = ret_machine->shape[axis],
                                                          .stride = 1,
                                                          .switched = true,
                                                          .name = ret_machine->axis_name[axis]};
    plan_request_links(ret_machine, &request);
    case_ok(plan_build(case_arena, &request, "/plan", ret_plan, &case_error));
    ret_plan->item[0].piece_count = 1;
}

/* In each of the nodes. */
static void plan_in_nodes(uint32_t nodes, struct machine *ret_machine, struct plan *ret_plan)
{
    plan_along(nodes, 0, "recursive", ret_machine, ret_plan);
}

/* Messages of each simulation find nothing of the one before: a doubling begins when all of the
 * doubling before it has arrived, and a second piece when the last of the first has left. */
static void a_simulation_of_messages_begins_anew(void **state)
{
    (void)state;
    double const unit_s = 1 / 450e9;
    struct contention_times got;
    struct machine node;
    struct plan plan;
    plan_in_nodes(1, &node, &plan);
    plan.item[0].piece_count = 2;
    assert_true(contention_find(&node, &plan, &plan.item[0], NULL, &got));
    assert_true(fabs(got.latency_s / (3 * 0.6e-6) - 1) < 1e-9);
    assert_true(fabs(got.next_latency_s / (2 * 0.6e-6) - 1) < 1e-9);
    assert_true(fabs(got.byte_s / (14 * unit_s) - 1) < 1e-9); /* One, two and four of two units. */
    assert_true(fabs(got.next_byte_s / (14 * unit_s) - 1) < 1e-9);
}

/* A protocol's time on ways that no message goes is no other question. */
static void ways_that_no_message_goes_do_not_matter(void **state)
{
    (void)state;
    struct contention_cache known = {.count = 0};
    struct contention_times first, then;
    struct machine nodes;
    struct plan plan;
    plan_in_nodes(4, &nodes, &plan);
    assert_true(contention_find(&nodes, &plan, &plan.item[0], &known, &first));
    plan.protocol.message_ps[2] = 1000000; /* Between nodes. */
    assert_true(contention_find(&nodes, &plan, &plan.item[0], &known, &then));
    assert_int_equal(known.count, 1);
    assert_memory_equal(&first, &then, sizeof first);
    plan.protocol.message_ps[1] = 1000000;
    assert_true(contention_find(&nodes, &plan, &plan.item[0], &known, &then));
    assert_int_equal(known.count, 2);
    assert_true(fabs(then.latency_s - first.latency_s - 3e-6) < 1e-15);
}

/* Times of a second piece are added to those of one piece, and are those of a plan that asks for
 * both at once. */
static void a_second_piece_is_simulated_where_there_is_one(void **state)
{
    (void)state;
    struct contention_cache known = {.count = 0};
    struct contention_times once, both, anew;
    struct machine node;
    struct plan plan;
    plan_in_nodes(1, &node, &plan);
    assert_true(contention_find(&node, &plan, &plan.item[0], &known, &once));
    assert_true(once.next_byte_s == 0);
    plan.item[0].piece_count = 2;
    assert_true(contention_find(&node, &plan, &plan.item[0], &known, &both));
    assert_true(contention_find(&node, &plan, &plan.item[0], NULL, &anew));
    assert_memory_equal(&both, &anew, sizeof both);
    assert_true(both.next_byte_s > 0 && both.byte_s == once.byte_s);
    assert_true(contention_find(&node, &plan, &plan.item[0], &known, &anew));
    plan.item[0].piece_count = 1;
    assert_true(contention_find(&node, &plan, &plan.item[0], &known, &anew));
    assert_int_equal(known.count, 2);
}

/* Messages that are kept from one protocol to the next are simulated with the next one's time. */
static void kept_messages_have_the_time_of_each_protocol(void **state)
{
    (void)state;
    static struct contention_cache known, other;
    struct contention_kept kept = {.arena = case_arena};
    struct machine node;
    struct plan plan;
    plan_in_nodes(1, &node, &plan);
    known.kept = &kept;
    for (uint32_t pieces = 1; pieces <= 2; pieces++)
        for (int64_t message_ps = 0; message_ps < 3000000; message_ps += 700000) {
            struct contention_times got, anew;
            plan.item[0].piece_count = pieces;
            plan.protocol.message_ps[1] = message_ps;
            assert_true(contention_find(&node, &plan, &plan.item[0], &known, &got));
            assert_true(contention_find(&node, &plan, &plan.item[0], &other, &anew));
            assert_memory_equal(&got, &anew, sizeof got);
        }
    assert_int_equal(known.count, 10);
    assert_int_equal(kept.count, 1);
}

static void times_near(double one, double other)
{
    if (fabs(one - other) > 1e-12 * fabs(other)) fail_msg("%.17g is not %.17g", one, other);
}

/* Where no message waits for an arrival, a protocol puts all messages off alike, and those of the
 * first one are simulated for all; also those of another plan's item that is the same. */
static void messages_of_an_exchange_are_simulated_once(void **state)
{
    (void)state;
    for (uint32_t level = 0; level < 2; level++) {
        static struct contention_cache known, other;
        struct contention_kept kept = {.arena = case_arena};
        struct machine nodes;
        struct plan plan, again;
        known.count = other.count = 0;
        plan_along(64, level, "direct", &nodes, &plan);
        plan_along(64, level, "direct", &nodes, &again);
        known.kept = &kept;
        for (int64_t message_ps = 0; message_ps < 30000000; message_ps += 7000000) {
            struct contention_times got, anew;
            struct plan *asked = message_ps == 0 ? &plan : &again;
            asked->protocol.message_ps[1 + level] = message_ps;
            assert_true(contention_find(&nodes, asked, &asked->item[0], &known, &got));
            assert_true(contention_find(&nodes, asked, &asked->item[0], &other, &anew));
            times_near(got.latency_s, anew.latency_s);
            times_near(got.byte_s, anew.byte_s);
            for (uint32_t wire = 0; wire < CONTENTION_WIRES; wire++)
                times_near(got.wire_byte_s[wire], anew.wire_byte_s[wire]);
        }
        assert_int_equal(known.count, 5);
        assert_int_equal(kept.count, 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_simulation_of_messages_begins_anew),
        cmocka_unit_test(ways_that_no_message_goes_do_not_matter),
        cmocka_unit_test(a_second_piece_is_simulated_where_there_is_one),
        cmocka_unit_test(kept_messages_have_the_time_of_each_protocol),
        cmocka_unit_test(messages_of_an_exchange_are_simulated_once),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
