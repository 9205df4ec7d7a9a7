/* NCCL over nodes: what a node's NVLink lacks stays there, and NICs have shares of their own. */
#include "sim/choose/protocol.h"
#include "sim/measure/measure_row.h"
#include "tests/support/case.h"

static struct machine machine_of(const char *chip, uint32_t nodes)
{
    struct machine_plan const plan = {
        .chip = chip, .profile = "measured", .nodes = nodes, .wrap = {-1, -1, -1}};
    struct machine machine;
    case_ok(machine_build(case_arena, &plan, &machine, &case_error));
    return machine;
}

static struct plan_protocol made(const char *chip, uint32_t nodes, enum collective_kind kind,
                                 const char *algorithm, enum protocol_stand stands,
                                 enum protocol protocol)
{
    struct machine const machine = machine_of(chip, nodes);
    struct group group;
    struct plan_protocol result;
    case_ok(measure_group(&machine, NULL, "--axes", &group, &case_error));
    struct protocol_use const use = {.machine = &machine,
                                     .group = &group,
                                     .kind = kind,
                                     .algorithm = algorithm_read(algorithm),
                                     .array_bytes = UINT64_C(1) << 30,
                                     .stands = stands};
    case_ok(protocol_make(&use, protocol, "/protocol", &result, &case_error));
    return result;
}

/* .85 of NVLink, and 1.27 times as long; the NICs have all of their rate. Trees of more than two
 * nodes send an array twice where an exchange sends it 2 (M-1)/M times. */
static void switches_of_a_node_are_as_slow_over_nodes(void **state)
{
    (void)state;
    struct plan_protocol got =
        made("h100-sxm", 2, COLLECTIVE_ALL_REDUCE, "sharp", PROTOCOL_STANDS_ALONE, PROTOCOL_SIMPLE);
    assert_int_equal(got.wire_ppm, 1494118);
    assert_int_equal(got.far_ppm, 1000000);
    got =
        made("h100-sxm", 4, COLLECTIVE_ALL_REDUCE, "sharp", PROTOCOL_STANDS_ALONE, PROTOCOL_SIMPLE);
    assert_int_equal(got.wire_ppm, 1494118);
    assert_int_equal(got.far_ppm, 1333333);
    got =
        made("h100-sxm", 4, COLLECTIVE_ALL_REDUCE, NULL, PROTOCOL_STANDS_FOR_TREE, PROTOCOL_SIMPLE);
    assert_int_equal(got.wire_ppm, 1086957);
    assert_int_equal(got.far_ppm, 1449275);
}

/* A byte of NVLink takes 1.06 times as long on Ampere. Of eight channels of 25 GB/s, one of 32
 * steps copies as long as it sends. NCCL's ring leaves each of four nodes with 31/32 of an array,
 * where the plan sends 3/4. */
static void bytes_of_a_node_take_as_long_over_nodes(void **state)
{
    (void)state;
    struct plan_protocol const got =
        made("a100-sxm", 4, COLLECTIVE_ALL_GATHER, NULL, PROTOCOL_STANDS_FOR_RING, PROTOCOL_SIMPLE);
    assert_int_equal(got.far_ppm, 1312500);
    assert_int_equal(got.wire_ppm, 1077097);
    struct plan_protocol const same =
        made("b200", 4, COLLECTIVE_ALL_GATHER, NULL, PROTOCOL_STANDS_FOR_RING, PROTOCOL_LL128);
    assert_int_equal(same.far_ppm, 1431159);
    assert_int_equal(same.wire_ppm, 1107994);
}

/* In a node a tree is a chain of eight, where an exchange has one message there and back. */
static void trees_are_chains_in_their_nodes(void **state)
{
    (void)state;
    struct plan_protocol const got = made("h100-sxm", 4, COLLECTIVE_ALL_REDUCE, "double-tree",
                                          PROTOCOL_STANDS_ALONE, PROTOCOL_LL);
    assert_int_equal(got.begin_ps, INT64_C(6800000) * 123 / 100 + 2 * (7 - 1) * 738000);
}

static int64_t time_of(const char *chip, uint32_t nodes, enum measure_op operation, uint64_t bytes)
{
    struct machine const machine = machine_of(chip, nodes);
    struct measure_row_args args = {
        .machine = &machine, .operation = operation, .format = FORMAT_BF16, .protocols = true};
    const struct measure_row_choice *choice = NULL;
    struct measure_options const options = {.engine = "fast"};
    struct measured measured;
    case_ok(measure_group(&machine, NULL, "--axes", &args.group, &case_error));
    case_ok(measure_row_choose(case_arena, &args, bytes, NULL, "-e", &choice, &case_error));
    case_ok(measure_run(case_arena, &machine, &choice->request, 1, "--algorithm", &options,
                        &measured, &case_error));
    return measured.time_ps[0];
}

static void two_nodes_are_no_faster_than_one(void **state)
{
    (void)state;
    static const char *const chips[] = {"a100-sxm", "h100-sxm", "b200"};
    static const enum measure_op operations[] = {MEASURE_ALL_GATHER, MEASURE_REDUCE_SCATTER,
                                                 MEASURE_ALL_REDUCE};
    for (uint32_t c = 0; c < 3; c++)
        for (uint32_t o = 0; o < 3; o++)
            for (uint64_t bytes = 1 << 16; bytes <= 1 << 30; bytes *= 4) {
                int64_t const one_ps = time_of(chips[c], 1, operations[o], bytes);
                int64_t const two_ps = time_of(chips[c], 2, operations[o], bytes);
                if (two_ps < one_ps)
                    fail_msg("%s, %s, %llu bytes: %lld ps on a node, %lld on two", chips[c],
                             measure_op_name(operations[o]), (unsigned long long)bytes,
                             (long long)one_ps, (long long)two_ps);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(switches_of_a_node_are_as_slow_over_nodes),
        cmocka_unit_test(bytes_of_a_node_take_as_long_over_nodes),
        cmocka_unit_test(trees_are_chains_in_their_nodes),
        cmocka_unit_test(two_nodes_are_no_faster_than_one),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
