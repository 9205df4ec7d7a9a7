/* What a level has for a chip, by hand-made levels with the numbers of the book's H100 pod. */
#include <string.h>

#include "sim/base/units.h"
#include "sim/roofline/level_rate.h"
#include "tests/support/case.h"

enum { NVLINK, INFINIBAND };

/* 8 GPUs a node, `nodes` nodes, leaves of 32 nodes and one rail. */
static struct machine pod(uint32_t nodes)
{
    struct machine machine = {
        .axis_count = 2,
        .shape = {8, nodes, 1, 1},
        .axis_name = {"gpu", "node", "", ""},
        .axis_level = {NVLINK, INFINIBAND, LEVEL_NONE, LEVEL_NONE},
        .chip_count = 8 * nodes,
        .level_count = 2,
    };
    machine.level[NVLINK] = (struct level){
        .name = "NVLink",
        .tier = {{.box = {8, 1, 1, 1},
                  .cable_count = 18,
                  .cable_bytes_per_s = UINT64_C(25000000000),
                  .latency_ps = 300000}},
        .tier_count = 1,
    };
    machine.level[INFINIBAND] = (struct level){
        .name = "InfiniBand",
        .tier = {{.box = {1, 32, 1, 1},
                  .cable_count = 1,
                  .cable_bytes_per_s = UINT64_C(50000000000),
                  .latency_ps = 1000000},
                 {.box = {8, nodes, 1, 1},
                  .cable_count = 32,
                  .cable_bytes_per_s = UINT64_C(50000000000),
                  .latency_ps = 2000000}},
        .tier_count = 2,
    };
    return machine;
}

static struct group group_of(uint32_t gpus, uint32_t nodes)
{
    struct group group = {0};
    if (gpus > 1)
        group.dimension[group.dimension_count++] = (struct group_dimension){
            .axis = 0, .size = gpus, .stride = 1, .switched = true, .name = "gpu"};
    if (nodes > 1)
        group.dimension[group.dimension_count++] = (struct group_dimension){
            .axis = 1, .size = nodes, .stride = 1, .switched = true, .name = "node"};
    return group;
}

static void a_chip_has_its_own_cables_and_its_share_of_common_ones(void **state)
{
    (void)state;
    struct machine machine = pod(128);
    case_near(level_rate(&machine, 0), 450e9, 1e-12);
    case_near(level_rate(&machine, 1), 50e9, 1e-12);
    machine.level[INFINIBAND].tier[1].cable_count = 16; /* Two to one above the leaves. */
    case_near(level_rate(&machine, 1), 25e9, 1e-12);
    machine = pod(32); /* All within a leaf: what is above it does not matter. */
    machine.level[INFINIBAND].tier[1].cable_count = 16;
    case_near(level_rate(&machine, 1), 50e9, 1e-12);
}

static void a_shared_card_is_divided_among_the_chips_of_its_host(void **state)
{
    (void)state;
    struct machine slices = {
        .axis_count = 4,
        .grid_axis_count = 3,
        .shape = {4, 4, 4, 2},
        .axis_name = {"x", "y", "z", "slice"},
        .axis_level = {LEVEL_NONE, LEVEL_NONE, LEVEL_NONE, 0},
        .chip_count = 128,
        .level_count = 1,
    };
    slices.level[0] = (struct level){
        .name = "DCN",
        .tier = {{.box = {2, 2, 1, 1},
                  .cable_count = 1,
                  .cable_bytes_per_s = UINT64_C(16000000000),
                  .latency_ps = 1},
                 {.box = {4, 4, 4, 2},
                  .cable_count = 1,
                  .cable_bytes_per_s = UINT64_C(25000000000),
                  .latency_ps = 10}},
        .tier_count = 2,
    };
    case_near(level_rate(&slices, 3), 6.25e9, 1e-12);
    struct group group = {{{3, 2, 1, false, true, "slice"}}, 1};
    assert_int_equal(level_latency_ps(&slices, &group.dimension[0]), 22);
    case_near(level_group_rate(&slices, &group, LEVEL_TO_ALL, 0), 6.25e9, 1e-12);
    case_near(level_group_share(&slices, &group, LEVEL_TO_ALL, 0), 0.5, 1e-12);
    assert_string_equal(level_link_name(&slices, 0), "ici");
    assert_string_equal(level_link_name(&slices, 3), "DCN");
}

/* Book, chapter 12: 450 GB/s in a node, 400 GB/s from node to node, 514 and 413 with (n-1)/n; two
 * nodes are bound by what is in them. */
static void the_level_that_binds_is_the_books(void **state)
{
    (void)state;
    struct machine const machine = pod(128);
    struct group const node = group_of(8, 1), rail = group_of(1, 32), unit = group_of(8, 32),
                       two = group_of(8, 2);
    case_near(level_group_rate(&machine, &node, LEVEL_TO_ALL, 0), 450e9, 1e-12);
    case_near(level_group_share(&machine, &node, LEVEL_TO_ALL, 0), 7.0 / 8, 1e-12);
    case_near(level_group_rate(&machine, &rail, LEVEL_TO_ALL, 0), 50e9, 1e-12);
    case_near(level_group_rate(&machine, &unit, LEVEL_TO_ALL, 0), 400e9, 1e-12);
    case_near(level_group_share(&machine, &unit, LEVEL_TO_ALL, 0), 31.0 / 32, 1e-12);
    case_near(level_group_share(&machine, &two, LEVEL_TO_ALL, 0) / 400e9, 7.0 / 8 / 450e9, 1e-12);
}

/* Four leaves of 32: three quarters of the array enter each, once for all of its nodes, so that the
 * nodes' own cards bind until the cables above are 42 times too few. */
static void what_enters_a_leaf_is_passed_on_inside_it(void **state)
{
    (void)state;
    struct machine machine = pod(128);
    struct group const all = group_of(1, 128), leaf = group_of(1, 32), unit = group_of(8, 128);
    machine.level[INFINIBAND].tier[1].cable_count = 8; /* Four to one. */
    case_near(level_rate(&machine, 1), 12.5e9, 1e-12);
    case_near(level_dimension_rate(&machine, &all.dimension[0], LEVEL_TO_ALL), 50e9, 1e-12);
    case_near(level_group_rate(&machine, &unit, LEVEL_TO_ALL, 0), 400e9, 1e-12);
    machine.level[INFINIBAND].tier[1].cable_bytes_per_s = 2000000000; /* A hundred to one. */
    case_near(level_dimension_rate(&machine, &all.dimension[0], LEVEL_TO_ALL),
              0.5e9 * 32 * (127.0 / 96), 1e-12);
    case_near(level_dimension_rate(&machine, &leaf.dimension[0], LEVEL_TO_ALL), 50e9, 1e-12);
}

/* A node of MI300X: 64 GB/s a pair. A part of the node has the links to its members, a ring one of
 * them, and so do neighbours; node to node it is the cards as ever. */
static void without_a_switch_a_group_has_the_links_of_its_pairs(void **state)
{
    (void)state;
    struct machine const machine = case_machine("mi300x:nodes=2");
    for (uint32_t size = 2; size <= 8; size *= 2) {
        struct group const part = {{{0, size, 1, false, true, "gpu"}}, 1};
        const struct group_dimension *along = &part.dimension[0];
        case_near(level_dimension_rate(&machine, along, LEVEL_TO_ALL), (size - 1) * 64e9, 1e-12);
        case_near(level_slow_rate(&machine, along, LEVEL_TO_ALL), (size - 1) * 64e9, 1e-12);
        case_near(level_group_rate(&machine, &part, LEVEL_TO_ALL, 0), (size - 1) * 64e9, 1e-12);
        case_near(level_dimension_rate(&machine, along, LEVEL_TO_ONE), 64e9, 1e-12);
        case_near(level_slow_rate(&machine, along, LEVEL_TO_ONE), 64e9, 1e-12);
        case_near(level_step_rate(&machine, along), 64e9, 1e-12);
    }
    struct group const rail = {{{1, 2, 1, false, true, "node"}}, 1};
    case_near(level_dimension_rate(&machine, &rail.dimension[0], LEVEL_TO_ONE), 50e9, 1e-12);
    case_near(level_rate(&machine, 0), 448e9, 1e-12);
}

static void the_way_is_as_long_as_the_farthest_members_are_apart(void **state)
{
    (void)state;
    struct machine const machine = pod(128);
    struct group const node = group_of(8, 1), leaf = group_of(1, 32), spine = group_of(1, 33);
    assert_int_equal(level_latency_ps(&machine, &node.dimension[0]), 600000);
    assert_int_equal(level_latency_ps(&machine, &leaf.dimension[0]), 2000000);
    assert_int_equal(level_latency_ps(&machine, &spine.dimension[0]), 6000000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_chip_has_its_own_cables_and_its_share_of_common_ones),
        cmocka_unit_test(a_shared_card_is_divided_among_the_chips_of_its_host),
        cmocka_unit_test(the_level_that_binds_is_the_books),
        cmocka_unit_test(what_enters_a_leaf_is_passed_on_inside_it),
        cmocka_unit_test(without_a_switch_a_group_has_the_links_of_its_pairs),
        cmocka_unit_test(the_way_is_as_long_as_the_farthest_members_are_apart),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
