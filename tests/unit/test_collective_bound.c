/* Bounds of collectives against the book's figures, on levels and grids made by hand. */
#include <string.h>

#include "sim/base/units.h"
#include "sim/roofline/collective_bound.h"
#include "tests/support/case.h"
#include "tests/support/scene.h"

enum { NVLINK, INFINIBAND };

static const uint64_t gb_per_s = UINT64_C(1000000000);

/* 8 GPUs a node, scalable units of 32 nodes with a leaf a rail, spines above (book, ch. 12). */
static struct machine pod(uint32_t gpus, uint32_t nodes, uint64_t nvlink_gb, uint64_t nic_gb)
{
    struct machine machine = {
        .chip = {.hbm_bytes_per_s = UINT64_C(3350000000000)},
        .axis_count = 2,
        .shape = {gpus, nodes, 1, 1},
        .axis_name = {"gpu", "node", "", ""},
        .axis_level = {NVLINK, INFINIBAND, LEVEL_NONE, LEVEL_NONE},
        .chip_count = gpus * nodes,
        .level_count = 2,
    };
    machine.level[NVLINK] = (struct level){
        .name = "NVLink",
        .tier = {{.name = "NVSwitch",
                  .cable_name = "NVLink",
                  .box = {gpus, 1, 1, 1},
                  .cable_count = 18,
                  .cable_bytes_per_s = nvlink_gb * gb_per_s / 18,
                  .latency_ps = 300000,
                  .multicasts = true,
                  .reduce_flop_per_s = UINT64_C(1600000000000)}},
        .tier_count = 1,
    };
    machine.level[INFINIBAND] = (struct level){
        .name = "InfiniBand",
        .tier = {{.name = "leaf",
                  .cable_name = "NIC",
                  .box = {1, 32, 1, 1},
                  .cable_count = 1,
                  .cable_bytes_per_s = nic_gb * gb_per_s,
                  .latency_ps = 1000000},
                 {.name = "spine",
                  .cable_name = "leaf-spine",
                  .box = {gpus, nodes, 1, 1},
                  .cable_count = 32,
                  .cable_bytes_per_s = nic_gb * gb_per_s,
                  .latency_ps = 2000000}},
        .tier_count = 2,
    };
    return machine;
}

static struct machine h100(uint32_t nodes)
{
    return pod(8, nodes, 450, 50);
}

static struct group group_of(uint32_t gpus, uint32_t nodes)
{
    struct group group = {0};
    if (nodes > 1)
        group.dimension[group.dimension_count++] = (struct group_dimension){
            .axis = 1, .size = nodes, .stride = 1, .switched = true, .name = "node"};
    if (gpus > 1)
        group.dimension[group.dimension_count++] = (struct group_dimension){
            .axis = 0, .size = gpus, .stride = 1, .switched = true, .name = "gpu"};
    return group;
}

static struct collective_bound bound_of(const struct machine *machine, struct group group,
                                        enum collective_kind kind, uint64_t bytes)
{
    struct collective_query const query = {.kind = kind, .array_bytes = bytes, .element_bits = 16};
    struct collective_bound bound;
    collective_bound(machine, &group, &query, &bound);
    assert_true(bound.strict_s > 0 && bound.strict_s <= bound.time_s);
    return bound;
}

static void a_node_is_bound_by_its_ports(void **state)
{
    (void)state;
    struct machine const node = h100(1), b200 = pod(8, 1, 900, 50);
    struct machine none_add = h100(1);
    none_add.level[NVLINK].tier[0].reduce_flop_per_s = 0;
    struct group const all = group_of(8, 1);
    uint64_t const v = 33554432; /* bf16[1024,16384], book's pop quiz 1. */
    struct collective_bound const gather = bound_of(&node, all, COLLECTIVE_ALL_GATHER, v);
    case_near(gather.time_s, 65.244729e-6, 1e-7);
    assert_string_equal(gather.bound_by, "port");
    assert_string_equal(gather.where, "NVLink");
    struct {
        const struct machine *machine;
        enum collective_kind kind;
        double time_us;
    } const rows[] = {
        {&b200, COLLECTIVE_ALL_GATHER, 32.622364},
        {&node, COLLECTIVE_REDUCE_SCATTER, 65.244729},
        {&none_add, COLLECTIVE_ALL_REDUCE, 130.48946},
        {&node, COLLECTIVE_ALL_REDUCE, 74.565404},
        {&node, COLLECTIVE_ALL_TO_ALL, 8.1555911},
        {&node, COLLECTIVE_BROADCAST, 74.565404},
        {&node, COLLECTIVE_GATHER, 65.244729},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        case_near(bound_of(rows[i].machine, all, rows[i].kind, v).time_s, rows[i].time_us * 1e-6,
                  1e-7);
    case_near(bound_of(&node, group_of(4, 1), COLLECTIVE_ALL_GATHER, v).time_s,
              33554432 * 0.75 / 450e9, 1e-9);
}

static void adders_of_a_switch_may_be_what_binds(void **state)
{
    (void)state;
    struct machine node = h100(1);
    node.level[NVLINK].tier[0].reduce_flop_per_s /= 2;
    struct collective_bound const sum =
        bound_of(&node, group_of(8, 1), COLLECTIVE_ALL_REDUCE, 33554432);
    /* Eight inputs, seven additions, of which one can be left to who gets the sum. */
    case_near(sum.time_s, 6 * 33554432 / 2.0 / 800e9, 1e-9);
    assert_string_equal(sum.bound_by, "switch");
    assert_string_equal(sum.where, "NVSwitch");
    /* Still slower ones are not asked. */
    node.level[NVLINK].tier[0].reduce_flop_per_s /= 10;
    struct collective_bound const plain =
        bound_of(&node, group_of(8, 1), COLLECTIVE_ALL_REDUCE, 33554432);
    case_near(plain.time_s, 130.48946e-6, 1e-7);
    assert_string_equal(plain.bound_by, "port");
}

static void nodes_are_bound_by_what_enters_each(void **state)
{
    (void)state;
    static const struct {
        uint32_t nodes;
        double bytes_per_s;
        const char *where;
    } cases[] = {
        {2, 514.28571e9, "NVLink"}, /* The node, though 800 GB/s would cross. */
        {4, 514.28571e9, "NVLink"},
        {32, 412.90323e9, "NIC"},
        {128, 403.149606e9, "NIC"}, /* Eq. 12.6 says 413. */
    };
    for (uint32_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct machine const machine = h100(cases[i].nodes);
        struct collective_bound const gather =
            bound_of(&machine, group_of(8, cases[i].nodes), COLLECTIVE_ALL_GATHER, gb_per_s);
        case_near(gather.time_s, 1e9 / cases[i].bytes_per_s, 1e-7);
        assert_string_equal(gather.where, cases[i].where);
    }
    struct machine const two = h100(2), su = h100(32), b200 = pod(8, 2, 900, 50);
    case_near(bound_of(&two, group_of(8, 2), COLLECTIVE_ALL_GATHER, gb_per_s).time_s, 1944.4444e-6,
              1e-7);
    case_near(bound_of(&b200, group_of(8, 2), COLLECTIVE_ALL_GATHER, gb_per_s).time_s, 1250e-6,
              1e-9);
    /* Arrays also sharded over an inner axis: llama 3 70B's MLP, y ranks of a node. */
    case_near(bound_of(&su, group_of(8, 32), COLLECTIVE_ALL_GATHER, 469762048).time_s, 1137.705e-6,
              1e-6);
    case_near(bound_of(&su, group_of(1, 32), COLLECTIVE_ALL_GATHER, 469762048 / 8).time_s,
              1137.705e-6, 1e-6);
    struct machine const rack = pod(72, 8, 900, 50);
    case_near(bound_of(&rack, group_of(72, 8), COLLECTIVE_ALL_GATHER, gb_per_s).time_s,
              1e9 / 912.67606e9, 1e-7);
}

static void a_narrow_spine_binds(void **state)
{
    (void)state;
    struct machine machine = h100(128);
    machine.level[INFINIBAND].tier[1].cable_count = 1; /* 32 to one above the leaves. */
    struct collective_bound const gather =
        bound_of(&machine, group_of(8, 128), COLLECTIVE_ALL_GATHER, gb_per_s);
    case_near(gather.time_s, 127 / 128. / 400, 1e-9); /* 3/4 at the spine's 400 GB/s still pass. */
    machine.level[INFINIBAND].tier[1].cable_bytes_per_s /= 2;
    struct collective_bound const slow =
        bound_of(&machine, group_of(8, 128), COLLECTIVE_ALL_GATHER, gb_per_s);
    case_near(slow.time_s, 0.75 * 1e9 / 200e9, 1e-9);
    assert_string_equal(slow.bound_by, "switch");
    assert_string_equal(slow.where, "leaf-spine");
    assert_int_equal(slow.tier, 1);
}

static void exchanges_and_sums_across_nodes(void **state)
{
    (void)state;
    static const struct {
        uint32_t nodes;
        double time_us;
    } cases[] = {{2, 20.97152}, {4, 15.72864}, {8, 9.17504}, {32, 2.53952}};
    for (uint32_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct machine const machine = h100(cases[i].nodes);
        struct collective_bound const all =
            bound_of(&machine, group_of(8, cases[i].nodes), COLLECTIVE_ALL_TO_ALL, 33554432);
        case_near(all.bytes_s, cases[i].time_us * 1e-6, 1e-7);
    }
    struct machine su = h100(32);
    case_near(bound_of(&su, group_of(8, 32), COLLECTIVE_ALL_REDUCE, gb_per_s).time_s,
              2 * 31 / 32.0 / 400, 1e-9); /* Only NVSwitches add. */
    su.level[INFINIBAND].tier[0].multicasts = true;
    su.level[INFINIBAND].tier[0].reduce_flop_per_s = UINT64_C(100000000000000);
    case_near(bound_of(&su, group_of(8, 32), COLLECTIVE_ALL_REDUCE, gb_per_s).time_s, 2500e-6,
              1e-9);
}

static void latency_is_that_of_the_farthest_pair(void **state)
{
    (void)state;
    struct machine const machine = h100(128);
    struct collective_bound const pod_wide =
        bound_of(&machine, group_of(8, 128), COLLECTIVE_ALL_REDUCE, 8);
    case_near(pod_wide.latency_s, 6e-6, 1e-9);
    assert_string_equal(pod_wide.bound_by, "latency");
    case_near(bound_of(&machine, group_of(8, 1), COLLECTIVE_ALL_GATHER, 8).time_s, 0.6e-6, 1e-9);
    case_near(bound_of(&machine, group_of(8, 32), COLLECTIVE_GATHER, 8).time_s, 2e-6, 1e-9);
    struct scene scene;
    scene_open(&scene, 4, 8, 3, true);
    case_near(
        bound_of(&scene.machine, scene_group(&scene, true, true, true), COLLECTIVE_ALL_GATHER, 8)
            .time_s,
        7e-6, 1e-9);
    scene_close(&scene);
    scene_open(&scene, 4, 8, 1, false);
    case_near(
        bound_of(&scene.machine, scene_group(&scene, true, true, false), COLLECTIVE_ALL_TO_ALL, 8)
            .time_s,
        10e-6, 1e-9);
    scene_close(&scene);
}

/* Links of 100 GB/s. */
static void grids_are_bound_by_their_links(void **state)
{
    (void)state;
    struct scene ring, grid;
    scene_open(&ring, 4, 4, 1, true);
    scene_open(&grid, 4, 4, 1, false);
    struct group const one = scene_group(&ring, true, false, false);
    struct group const both = scene_group(&ring, true, true, false);
    struct group const line = scene_group(&grid, true, false, false);
    struct group const corner = scene_group(&grid, true, true, false);
    uint64_t const v = 16 * gb_per_s;
    struct {
        const struct scene *scene;
        const struct group *group;
        enum collective_kind kind;
        double time_s, strict_s; /* 0: not asked. */
    } const rows[] = {
        {&ring, &one, COLLECTIVE_ALL_GATHER, 16 * .75 / 200, 0},
        {&ring, &both, COLLECTIVE_ALL_GATHER, 15 / 400., 0},
        {&ring, &both, COLLECTIVE_ALL_REDUCE, 30 / 400., 0},
        {&ring, &one, COLLECTIVE_ALL_TO_ALL, 16 / 800., 0},
        {&ring, &both, COLLECTIVE_ALL_TO_ALL, 16 / 3200., 0},
        /* The last of a line has one link, the corner of a grid two. */
        {&grid, &line, COLLECTIVE_ALL_GATHER, 12 / 100., 12 / 100.},
        {&grid, &corner, COLLECTIVE_ALL_GATHER, 15 / 200., 15 / 200.},
        {&grid, &line, COLLECTIVE_ALL_TO_ALL, 16 / 400., 0},
        /* Piped to one end and back. */
        {&grid, &line, COLLECTIVE_ALL_REDUCE, 24 / 100., 16 / 100.},
        /* The root stands at the end of both lines: what comes from the rest of its row and
         * column. */
        {&grid, &line, COLLECTIVE_SCATTER, 12 / 100., 0},
        {&grid, &corner, COLLECTIVE_GATHER, 15 / 200., 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct collective_bound const bound =
            bound_of(&rows[i].scene->machine, *rows[i].group, rows[i].kind, v);
        case_near(bound.time_s, rows[i].time_s, 1e-9);
        if (rows[i].strict_s != 0) case_near(bound.strict_s, rows[i].strict_s, 1e-9);
    }
    struct collective_bound const sum = bound_of(&grid.machine, line, COLLECTIVE_ALL_REDUCE, v);
    assert_string_equal(sum.bound_by, "wire");
    assert_string_equal(sum.where, "x");
    /* Half of a ring: as a line, unless messages find their way around the other half. */
    struct scene whole;
    scene_open(&whole, 8, 1, 1, true);
    struct group half = scene_group(&whole, true, false, false);
    half.dimension[0].size = 4;
    half.dimension[0].ring = false;
    struct collective_bound const part = bound_of(&whole.machine, half, COLLECTIVE_ALL_GATHER, v);
    case_near(part.time_s, 12 / 100., 1e-9);
    case_near(part.strict_s, 12 / 200., 1e-9);
    case_near(bound_of(&whole.machine, half, COLLECTIVE_ALL_REDUCE, v).strict_s, 24 / 200., 1e-9);
    scene_close(&whole);
    /* Members two chips apart share each link with those between them; within a line the longer
     * side of the root binds. */
    scene_open(&whole, 8, 1, 1, false);
    struct group apart = scene_group(&whole, true, false, false);
    apart.dimension[0].size = 4;
    apart.dimension[0].stride = 2;
    case_near(bound_of(&whole.machine, apart, COLLECTIVE_SCATTER, v).time_s, 12 / 50., 1e-9);
    struct collective_query const inner = {
        .kind = COLLECTIVE_SCATTER, .array_bytes = v, .root = 1, .element_bits = 16};
    struct collective_bound bound;
    collective_bound(&whole.machine, &apart, &inner, &bound);
    case_near(bound.time_s, 8 / 50., 1e-9);
    scene_close(&whole);
    scene_close(&ring);
    scene_close(&grid);
}

/* v5p slices of 4x4x4 joined by hosts of 2x2x1 with a NIC of 25 GB/s and 16 GB/s of PCIe. */
static struct machine slices(uint32_t count)
{
    struct scene scene;
    scene_open(&scene, 4, 4, 4, true);
    struct machine machine = scene.machine;
    scene_close(&scene);
    machine.axis_count = 4;
    machine.axis_name[3] = "slice";
    machine.shape[3] = count;
    machine.chip_count *= count;
    machine.axis_level[3] = 0;
    machine.level_count = 1;
    machine.level[0] = (struct level){
        .name = "DCN",
        .tier = {{.name = "host",
                  .cable_name = "PCIe",
                  .box = {2, 2, 1, 1},
                  .cable_count = 1,
                  .cable_bytes_per_s = 16 * gb_per_s,
                  .latency_ps = 1000000},
                 {.name = "DCN",
                  .cable_name = "NIC",
                  .box = {4, 4, 4, count},
                  .cable_count = 1,
                  .cable_bytes_per_s = 25 * gb_per_s,
                  .latency_ps = 5000000}},
        .tier_count = 2,
    };
    return machine;
}

static void slices_are_bound_by_the_cards_of_their_hosts(void **state)
{
    (void)state;
    struct machine machine = slices(4);
    struct group group = {.dimension_count = 1};
    group.dimension[0] = (struct group_dimension){
        .axis = 3, .size = 4, .stride = 1, .switched = true, .name = "slice"};
    struct collective_bound sum = bound_of(&machine, group, COLLECTIVE_ALL_REDUCE, gb_per_s);
    case_near(sum.time_s, 2 * .75 / 6.25, 1e-9); /* A chip's fourth of the NIC. */
    assert_string_equal(sum.where, "NIC");
    case_near(sum.latency_s, 12e-6, 1e-9);
    machine.level[0].tier[1].cable_bytes_per_s = 100 * gb_per_s;
    sum = bound_of(&machine, group, COLLECTIVE_ALL_REDUCE, gb_per_s);
    case_near(sum.time_s, 2 * .75 / 16, 1e-9);
    assert_string_equal(sum.where, "PCIe");
    /* With the slice itself, the cards carry what all chips of a slice share. */
    machine = slices(4);
    group.dimension_count = 4;
    for (uint32_t axis = 0; axis < 3; axis++)
        group.dimension[1 + axis] = (struct group_dimension){
            .axis = axis, .size = 4, .stride = 1, .ring = true, .name = "x"};
    sum = bound_of(&machine, group, COLLECTIVE_ALL_GATHER, 1000 * gb_per_s);
    case_near(sum.time_s, 750 / 400., 1e-9);
    machine.level[0].tier[1].cable_bytes_per_s = 100000 * gb_per_s;
    machine.level[0].tier[0].cable_bytes_per_s = 100000 * gb_per_s;
    sum = bound_of(&machine, group, COLLECTIVE_ALL_GATHER, 1000 * gb_per_s);
    case_near(sum.time_s, 1000 * 63 / 64. / 600, 1e-9);
    assert_string_equal(sum.bound_by, "wire");
}

/* A bound names the place that is its cause, and no other that was found before. */
static void a_bound_has_one_place(void **state)
{
    (void)state;
    struct machine machine = slices(4);
    struct group group = {.dimension_count = 2};
    group.dimension[0] = (struct group_dimension){
        .axis = 3, .size = 4, .stride = 1, .switched = true, .name = "slice"};
    group.dimension[1] =
        (struct group_dimension){.axis = 1, .size = 4, .stride = 1, .ring = true, .name = "y"};
    struct collective_bound bound =
        bound_of(&machine, group, COLLECTIVE_ALL_GATHER, 1000 * gb_per_s);
    assert_string_equal(bound.where, "NIC");
    assert_int_equal(bound.axis, -1);
    assert_int_equal(bound.level, 0);
    assert_int_equal(bound.tier, 1);
    machine.level[0].tier[0].cable_bytes_per_s = 100000 * gb_per_s;
    machine.level[0].tier[1].cable_bytes_per_s = 100000 * gb_per_s;
    bound = bound_of(&machine, group, COLLECTIVE_ALL_GATHER, 1000 * gb_per_s);
    assert_string_equal(bound.bound_by, "wire");
    assert_int_equal(bound.axis, 1);
    assert_int_equal(bound.level, -1);
    assert_int_equal(bound.tier, -1);
}

static void a_permute_takes_the_way_it_names(void **state)
{
    (void)state;
    struct machine const machine = h100(4);
    struct group const group = group_of(8, 4);
    struct collective_query query = {.kind = COLLECTIVE_PERMUTE, .array_bytes = gb_per_s};
    struct collective_bound bound;
    query.offset[1] = 1;
    collective_bound(&machine, &group, &query, &bound);
    case_near(bound.time_s, 1 / 450., 1e-9);
    query.offset[0] = 1;
    collective_bound(&machine, &group, &query, &bound);
    case_near(bound.time_s, 1 / 50., 1e-9);
    assert_string_equal(bound.where, "NIC");
    struct machine const cards = slices(4);
    struct group const far = {{{3, 4, 1, false, true, "slice"}}, 1};
    query.offset[1] = 0;
    collective_bound(&cards, &far, &query, &bound);
    case_near(bound.time_s, 1 / 6.25, 1e-9); /* A host's chips share its card. */
    struct scene scene;
    scene_open(&scene, 8, 1, 1, true);
    struct group const ring = scene_group(&scene, true, false, false);
    query.offset[0] = -3;
    collective_bound(&scene.machine, &ring, &query, &bound);
    case_near(bound.time_s, 3 / 100., 1e-9); /* Three messages share each link. */
    case_near(bound.strict_s, 3 / 200., 1e-9);
    scene_close(&scene);
    query = (struct collective_query){.kind = COLLECTIVE_PERMUTE};
    collective_bound(&machine, &group, &query, &bound);
    case_near(bound.time_s, 0.6e-6, 1e-9);
}

/* Behind links that are fast enough, memory binds, and of all chips the slowest. */
static void the_slowest_memory_binds(void **state)
{
    (void)state;
    enum { GPUS = 8 };
    static struct machine_chip_override chips[1] = {
        {.at = {3, 0, machine_any, machine_any}, .math_ppm = PPM_ONE, .hbm_ppm = PPM_ONE / 100}};
    double const v = 1 << 30, slow = 33.5e9;
    struct machine machine = h100(1);
    case_override_chips(case_arena, &machine, chips, 1);
    struct collective_bound bound =
        bound_of(&machine, group_of(GPUS, 1), COLLECTIVE_ALL_GATHER, 1 << 30);
    case_near(bound.time_s, v / slow, 1e-9);
    assert_string_equal(bound.bound_by, "hbm");
    bound = bound_of(&machine, group_of(GPUS, 1), COLLECTIVE_ALL_REDUCE, 1 << 30);
    case_near(bound.time_s, v * 15 / 8 / slow, 1e-9);
    /* Whether the slow one is a root is not looked at: at least it has its own share. */
    bound = bound_of(&machine, group_of(GPUS, 1), COLLECTIVE_GATHER, 1 << 30);
    case_near(bound.time_s, v / GPUS / slow, 1e-9);
}

static void a_group_of_one_needs_no_time(void **state)
{
    (void)state;
    struct machine const machine = h100(1);
    struct group const group = {0};
    struct collective_query const query = {.array_bytes = 1000};
    struct collective_bound bound;
    collective_bound(&machine, &group, &query, &bound);
    assert_true(bound.time_s == 0 && bound.strict_s == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_node_is_bound_by_its_ports),
        cmocka_unit_test(adders_of_a_switch_may_be_what_binds),
        cmocka_unit_test(nodes_are_bound_by_what_enters_each),
        cmocka_unit_test(a_narrow_spine_binds),
        cmocka_unit_test(exchanges_and_sums_across_nodes),
        cmocka_unit_test(latency_is_that_of_the_farthest_pair),
        cmocka_unit_test(grids_are_bound_by_their_links),
        cmocka_unit_test(slices_are_bound_by_the_cards_of_their_hosts),
        cmocka_unit_test(a_bound_has_one_place),
        cmocka_unit_test(a_permute_takes_the_way_it_names),
        cmocka_unit_test(the_slowest_memory_binds),
        cmocka_unit_test(a_group_of_one_needs_no_time),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
