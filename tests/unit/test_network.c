/* Machines joined by switches: nodes, fat trees, slices; and what a level says of itself. */
#include <string.h>

#include "sim/base/units.h"
#include "sim/machine/totals.h"
#include "sim/scenario/scenario.h"
#include "tests/support/case.h"

static const uint64_t giga = 1000000000;

static void refused(const char *text, enum status status, const char *where, const char *words)
{
    struct machine_plan plan;
    struct machine machine;
    enum status result = scenario_machine_parse(case_arena, text, "--machine", &plan, &case_error);
    if (result == STATUS_OK) result = machine_build(case_arena, &plan, &machine, &case_error);
    case_refused(result, status, where, words);
}

/* Sources: the book's table and NVIDIA's DGX SuperPOD reference architecture, Table 3. */
static void switches_are_those_of_the_superpod(void **state)
{
    (void)state;
    static const struct {
        uint32_t nodes, leaves, spines, cores, links_of_a_pair;
    } rows[] = {
        {32, 8, 4, 0, 8},         {64, 16, 8, 0, 4},        {96, 24, 16, 0, 2},
        {128, 32, 16, 0, 2},      {256, 64, 32, 0, 1},      {512, 128, 128, 64, 1},
        {1024, 256, 256, 128, 1}, {2048, 512, 512, 256, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct tier_totals leaf, spine, core = {0};
        const char *text = arena_format(case_arena, "h100-sxm:nodes=%u", rows[i].nodes);
        struct machine const machine = case_machine(text);
        const struct level *level = &machine.level[1];
        assert_int_equal(machine.chip_count, 8 * rows[i].nodes);
        assert_int_equal(level->tier_count, rows[i].cores == 0 ? 2 : 3);
        totals_of_tier(&machine, 1, 0, &leaf);
        totals_of_tier(&machine, 1, 1, &spine);
        if (rows[i].cores != 0) totals_of_tier(&machine, 1, 2, &core);
        assert_int_equal(leaf.switch_count, rows[i].leaves);
        assert_int_equal(spine.switch_count, rows[i].spines);
        assert_int_equal(core.switch_count, rows[i].cores);
        assert_int_equal(leaf.ports_used, 64);
        assert_true(spine.ports_used <= 64 && core.ports_used <= 64);
        /* As many cables at each storey as there are GPUs. */
        assert_int_equal(leaf.cable_count, machine.chip_count);
        assert_int_equal(spine.cable_count, machine.chip_count);
        if (rows[i].cores != 0) assert_int_equal(core.cable_count, machine.chip_count);
        assert_int_equal(level->tier[1].cable_count, 32);
        assert_int_equal(level->tier[1].cable_count / level->tier[1].switch_count,
                         rows[i].links_of_a_pair);
    }
}

/* The book, Tables 12.7 to 12.9; the spines of Appendix B (25.6 TB/s) would be half a bisection. */
static void a_superpod_has_the_rates_of_the_book(void **state)
{
    (void)state;
    struct machine const machine = case_machine("h100-sxm:nodes=128");
    struct tier_totals node, leaf, spine;
    struct machine_totals all;
    totals_of_tier(&machine, 0, 0, &node);
    totals_of_tier(&machine, 1, 0, &leaf);
    totals_of_tier(&machine, 1, 1, &spine);
    totals_of_machine(&machine, &all);
    assert_int_equal(node.unit_bytes_per_s, 3600 * giga);
    assert_int_equal(node.switch_bytes_per_s / node.unit_count, 6400 * giga);
    assert_int_equal(node.pair_bytes_per_s, 450 * giga);
    assert_int_equal(node.ports_used, 40); /* 5 + 4 + 4 + 5 links of 8 GPUs. */
    assert_int_equal(8 * leaf.unit_bytes_per_s, 12800 * giga);
    assert_int_equal(8 * (leaf.switch_bytes_per_s / leaf.unit_count), 25600 * giga);
    assert_int_equal(spine.unit_bytes_per_s, 51200 * giga);
    assert_int_equal(spine.switch_bytes_per_s, 51200 * giga);
    assert_int_equal(leaf.share_bytes_per_s, 50 * giga);
    assert_int_equal(spine.share_bytes_per_s, 50 * giga);
    assert_int_equal(spine.pair_bytes_per_s, 50 * giga);
    assert_int_equal(all.switch_count, 560);
    assert_int_equal(all.unit_egress_bytes_per_s, 400 * giga);
    assert_int_equal(all.bisection_bytes_per_s, 25600 * giga);
    assert_int_equal(machine.level[0].tier[0].reduce_flop_per_s, 1600 * giga);
}

/* The book, Tables 12.8 and 12.10, and GB200: 72 GPUs fill 72 ports of 18 switches. */
static void nodes_have_the_egress_of_the_book(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint32_t gpus, switches, ports_used;
        uint64_t gpu_gb_s, node_gb_s, bisection_gb_s;
    } rows[] = {
        {"h100-sxm", 8, 4, 40, 450, 400, 1800}, {"a100-sxm", 8, 6, 16, 300, 200, 1200},
        {"b200", 8, 2, 72, 900, 400, 3600},     {"gb200-nvl72", 72, 18, 72, 900, 3600, 32400},
        {"v100-sxm", 8, 6, 8, 150, 0, 600},     {"gh200-nvl32", 32, 18, 32, 450, 1600, 7200},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct machine const machine = case_machine(rows[i].text);
        struct tier_totals node;
        struct machine_totals all;
        totals_of_tier(&machine, 0, 0, &node);
        totals_of_machine(&machine, &all);
        assert_int_equal(machine.axis_count, 1);
        assert_int_equal(machine.grid_axis_count, 0);
        assert_string_equal(machine.axis_name[0], "gpu");
        assert_int_equal(machine.axis_level[0], 0);
        assert_int_equal(machine.shape[0], rows[i].gpus);
        assert_int_equal(node.switch_count, rows[i].switches);
        assert_int_equal(node.ports_used, rows[i].ports_used);
        assert_int_equal(all.chip_egress_bytes_per_s, rows[i].gpu_gb_s * giga);
        assert_int_equal(all.unit_egress_bytes_per_s, rows[i].node_gb_s * giga);
        assert_int_equal(all.bisection_bytes_per_s, rows[i].bisection_gb_s * giga);
    }
}

/* A GPU's own cables are one bundle by position too: nothing below it chooses one. */
static void a_chip_alone_has_all_cables_but_of_a_hash(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t bytes_per_s;
    } rows[] = {{"h100-sxm", 450 * giga},
                {"h100-sxm:nvlink.policy=rail", 450 * giga},
                {"h100-sxm:nvlink.policy=hash", 25 * giga}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct machine const machine = case_machine(rows[i].text);
        struct tier_totals totals;
        totals_of_tier(&machine, 0, 0, &totals);
        assert_int_equal(totals.pair_bytes_per_s, rows[i].bytes_per_s);
        assert_int_equal(totals.share_bytes_per_s, 450 * giga);
    }
}

static void nvlink_domains_grow_by_a_second_tier(void **state)
{
    (void)state;
    for (uint32_t gpus = 1; gpus <= machine_gpus_max; gpus += gpus < 80 ? 1 : 31) {
        static const char *const chips[] = {"a100-sxm", "h100-sxm", "b200", "gb200-nvl72"};
        for (size_t i = 0; i < 4; i++) {
            const char *text = arena_format(case_arena, "%s:gpus=%u", chips[i], gpus);
            struct machine const machine = case_machine(text);
            const struct level *level = &machine.level[0];
            uint32_t const ports = machine.chip.network.nvswitch_ports;
            assert_int_equal(level->tier_count, gpus <= ports ? 1 : 2);
            for (uint32_t tier = 0; tier < level->tier_count; tier++) {
                struct tier_totals totals;
                totals_of_tier(&machine, 0, tier, &totals);
                assert_true(totals.ports_used <= ports);
                assert_int_equal(totals.share_bytes_per_s, totals.pair_bytes_per_s);
            }
            /* Never in the way, so a second tier costs time only by its latency. */
            if (level->tier_count == 2) assert_false(level_tier_queues(level, 1));
        }
    }
    assert_int_equal(case_machine("v100-sxm:gpus=162").level[0].tier[1].switch_count, 9 * 6);
    refused("v100-sxm:gpus=163", STATUS_LIMIT, "/machine/gpus", "162 at most");
    assert_true(case_machine("h100-sxm:gpus=16").level[0].tier[0].assumed);
    refused("b200:gpus=577", STATUS_LIMIT, "/machine/gpus", "577 GPUs");
}

/* Any number of nodes on switches of any size: no switch has too many cables, and without
 * oversubscription all GPUs can send at once. */
static void no_tree_uses_more_ports_than_there_are(void **state)
{
    (void)state;
    static const uint32_t ports[] = {4, 10, 32, 40, 64, 144};
    uint32_t built = 0, too_large = 0;
    for (size_t p = 0; p < sizeof ports / sizeof *ports; p++)
        for (uint32_t nodes = 1; nodes < 3000; nodes += 1 + nodes / 3) {
            struct machine_plan const plan = {
                .chip = nodes % 2 == 0 ? "h100-sxm" : "gb200-nvl72",
                .profile = "ideal",
                .nodes = nodes,
                .wrap = {-1, -1, -1},
                .network = {.switch_ports = ports[p]},
            };
            struct machine machine;
            struct error error = {0};
            enum status const status = machine_build(case_arena, &plan, &machine, &error);
            if (status != STATUS_OK) {
                too_large++;
                assert_true(strcmp(error.where, "/machine/network/switch_ports") == 0);
                continue;
            }
            built++;
            const struct level *level = &machine.level[1];
            for (uint32_t tier = 0; tier < level->tier_count; tier++) {
                struct tier_totals totals;
                totals_of_tier(&machine, 1, tier, &totals);
                assert_true(totals.ports_used <= ports[p]);
                assert_int_equal(totals.share_bytes_per_s, 50 * giga);
                assert_false(tier > 0 && level_tier_queues(level, tier));
            }
            const struct level_tier *top = &level->tier[level->tier_count - 1];
            for (uint32_t axis = 0; axis < 2; axis++)
                assert_true(top->box[axis] >= machine.shape[axis]);
        }
    assert_true(built > 60 && too_large > 5);
}

static void oversubscription_thins_the_cables_up(void **state)
{
    (void)state;
    struct machine const machine = case_machine("h100-sxm:nodes=128,leaf.oversubscription=2");
    struct tier_totals spine;
    struct machine_totals all;
    totals_of_tier(&machine, 1, 1, &spine);
    totals_of_machine(&machine, &all);
    assert_int_equal(machine.level[1].tier[1].cable_count, 16);
    assert_int_equal(spine.switch_count, 8);
    assert_int_equal(spine.share_bytes_per_s, 25 * giga);
    assert_int_equal(all.bisection_bytes_per_s, 12800 * giga);
    assert_true(level_tier_queues(&machine.level[1], 1));
    /* A ratio with a period, 32 to 24, is taken in parts per million. */
    assert_int_equal(case_machine("h100-sxm:nodes=128,leaf.oversubscription=1.333333")
                         .level[1]
                         .tier[1]
                         .cable_count,
                     24);
    refused("h100-sxm:nodes=128,leaf.oversubscription=3", STATUS_INVALID,
            "/machine/network/leaf/oversubscription",
            "32 cables down would need 10.66 cables up; 10 and 11 are whole");
    refused("h100-sxm:nodes=128,spine.oversubscription=2", STATUS_INVALID,
            "/machine/network/spine/oversubscription", "nothing lies above a spine");
    struct machine const pods = case_machine("h100-sxm:nodes=512,spine.oversubscription=3");
    totals_of_tier(&pods, 1, 2, &spine);
    assert_true(spine.share_bytes_per_s < 17 * giga && spine.share_bytes_per_s > 16 * giga);
}

static void latencies_of_a_path_add_up(void **state)
{
    (void)state;
    struct machine const machine = case_machine("h100-sxm:nodes=512,switch_latency=100ns,"
                                                "cable_latency=10ns,nvlink.latency=200ns");
    const struct level_tier *tier = machine.level[1].tier;
    int64_t const nic = machine.chip.network.nic_latency_ps;
    assert_int_equal(machine.level[0].tier[0].latency_ps, 200000);
    /* Up and down: both NICs, two cables and one switch; each tier two more of both. */
    assert_int_equal(2 * tier[0].latency_ps, 2 * nic + 2 * 10000 + 100000);
    assert_int_equal(tier[1].latency_ps, 110000);
    assert_int_equal(tier[2].latency_ps, 110000);
}

static void policies_and_sharp_are_set_by_level_and_tier(void **state)
{
    (void)state;
    struct machine machine = case_machine("gb200-nvl72:nodes=8");
    assert_true(machine.level[0].tier[0].multicasts && !machine.level[1].tier[0].multicasts);
    assert_int_equal(machine.level[1].tier[1].policy, LEVEL_SPRAY);
    machine = case_machine("gb200-nvl72:nodes=8,policy=hash,spine.policy=rail,sharp=on");
    assert_int_equal(machine.level[0].tier[0].policy, LEVEL_SPRAY);
    assert_int_equal(machine.level[1].tier[0].policy, LEVEL_HASH);
    assert_int_equal(machine.level[1].tier[1].policy, LEVEL_RAIL);
    assert_true(machine.level[1].tier[0].multicasts);
    assert_int_equal(machine.level[1].tier[0].reduce_flop_per_s, 1600 * giga);
    assert_int_equal(machine.level[1].tier[1].reduce_flop_per_s, 16 * 1600 * giga);
    machine = case_machine("h100-sxm:sharp=off,nvlink.policy=hash");
    assert_false(machine.level[0].tier[0].multicasts);
    assert_int_equal(machine.level[0].tier[0].reduce_flop_per_s, 0);
    assert_int_equal(machine.level[0].tier[0].policy, LEVEL_HASH);
    machine = case_machine("h100-sxm:nodes=2,sharp=on,nvlink.sharp=off");
    assert_true(!machine.level[0].tier[0].multicasts && machine.level[1].tier[0].multicasts);
    /* Ampere's switches do not reduce, so `on` is for those that do. */
    machine = case_machine("a100-sxm:nodes=2,sharp=on");
    assert_true(!machine.level[0].tier[0].multicasts && machine.level[1].tier[0].multicasts);
    refused("a100-sxm:sharp=on", STATUS_INVALID, "/machine/network/sharp", "no switch");
    refused("a100-sxm:nvlink.sharp=on", STATUS_INVALID, "/machine/network/nvlink/sharp",
            "NVLink 4");
    refused("tpu-v5e:8x16,nvlink.policy=hash", STATUS_INVALID, "/machine/network/nvlink/policy",
            "no NVLink");
    refused("h100-sxm:policy=hash", STATUS_INVALID, "/machine/network/policy",
            "beyond the one node");
    refused("tpu-v5e:8x16,slices=2,core.policy=hash", STATUS_INVALID,
            "/machine/network/core/policy", "no core");
}

static void slices_are_joined_by_hosts_and_dcn(void **state)
{
    (void)state;
    struct machine const machine = case_machine("tpu-v5p:4x4x8,slices=3");
    const struct level *dcn = &machine.level[0];
    struct machine_totals all;
    assert_int_equal(machine.axis_count, 4);
    assert_int_equal(machine.grid_axis_count, 3);
    assert_string_equal(machine.axis_name[3], "slice");
    assert_int_equal(machine.axis_level[2], LEVEL_NONE);
    assert_int_equal(machine.axis_level[3], 0);
    assert_int_equal(machine.chip_count, 3 * 128);
    assert_int_equal(dcn->tier_count, 2);
    assert_memory_equal(dcn->tier[0].box, ((uint32_t[]){2, 2, 1, 1}), sizeof dcn->tier[0].box);
    assert_int_equal(dcn->tier[0].cable_bytes_per_s, 16 * giga);
    assert_int_equal(dcn->tier[1].cable_bytes_per_s, 25 * giga);
    totals_of_machine(&machine, &all);
    assert_int_equal(all.bisection_bytes_per_s, 192 * (25 * giga / 4));
    assert_int_equal(all.chip_egress_bytes_per_s, 540 * giga);
    /* Links stay within a slice; slices meet in the DCN. */
    uint32_t const a[] = {3, 0, 0, 0}, b[] = {0, 0, 0, 0}, c[] = {0, 0, 0, 2};
    assert_int_equal(machine_port_between(&machine, a, b), 0);
    assert_int_equal(machine_port_between(&machine, b, c), MACHINE_PORTS_MAX);
    assert_int_equal(machine_level_between(&machine, a, b), LEVEL_NONE);
    assert_int_equal(machine_level_between(&machine, b, c), 0);
    assert_int_equal(level_meeting_tier(dcn, b, c), 1);
    /* One slice has no axis of its own. */
    assert_int_equal(case_machine("tpu-v5p:4x4x8,slices=1").axis_count, 3);
    /* A host of 4x2 is turned where that fits better. */
    assert_memory_equal(case_machine("v5e-8,slices=2").level[0].tier[0].box,
                        ((uint32_t[]){2, 4, 1, 1}), 4 * sizeof(uint32_t));
    refused("tpu-v5e:16x16,slices=8192", STATUS_LIMIT, "/machine/slices", "2097152 chips");
}

static void slices_may_hang_on_leaves(void **state)
{
    (void)state;
    struct machine const machine =
        case_machine("tpu-v5e:8x16,slices=16,leaf.oversubscription=2,switch_ports=16");
    const struct level *dcn = &machine.level[0];
    struct tier_totals leaf, spine, core;
    assert_int_equal(dcn->tier_count, 4);
    totals_of_tier(&machine, 0, 1, &leaf);
    totals_of_tier(&machine, 0, 2, &spine);
    totals_of_tier(&machine, 0, 3, &core);
    assert_int_equal(leaf.unit_count, 32);
    assert_int_equal(leaf.ports_used, 8 + 4);
    assert_true(spine.ports_used <= 16 && core.ports_used <= 16);
    assert_int_equal(core.share_bytes_per_s, 25 * giga / 8 / 2);
    /* Leaves come with any value, also with one that has as many cables up as down. */
    assert_int_equal(case_machine("tpu-v5e:8x16,slices=16").level[0].tier_count, 2);
    struct machine const full = case_machine("tpu-v5e:8x16,slices=16,leaf.oversubscription=1");
    assert_string_equal(full.level[0].tier[1].name, "leaf");
    /* Small slices share a leaf. */
    struct machine const small = case_machine("tpu-v5e:2x4,slices=64,switch_ports=32");
    assert_memory_equal(small.level[0].tier[1].box, ((uint32_t[]){2, 4, 16, 1}),
                        4 * sizeof(uint32_t));
}

static void what_cannot_be_joined_is_refused(void **state)
{
    (void)state;
    refused("v100-sxm:nodes=2", STATUS_INVALID, "/machine/nodes", "without a NIC");
    refused("h100-sxm:nodes=2,slices=2", STATUS_INVALID, "/machine/slices", "write \"nodes\"");
    refused("tpu-v5e:8x16,nodes=2", STATUS_INVALID, "/machine/nodes", "\"slices\"");
    refused("tpu-v5e:8x16,gpus=2", STATUS_INVALID, "/machine/gpus", "\"slices\"");
    refused("h100-sxm:8x8", STATUS_INVALID, "/machine/shape", "write \"nodes\"");
    refused("h100-sxm-8", STATUS_INVALID, "/machine/chip", "no product names");
    refused("h100-sxm:nodes=200000", STATUS_LIMIT, "/machine/nodes", "1600000 chips");
    refused("h100-sxm:nodes=12500", STATUS_LIMIT, "/machine/network/switch_ports",
            "3128 leaves are more than three tiers of switches with 64 ports join");
    refused("h100-sxm:nodes=4,switch_ports=1", STATUS_INVALID, "/machine/network/switch_ports",
            "at least 4 ports");
    assert_int_equal(case_machine("h100-sxm:nodes=12500,switch_ports=144").chip_count, 100000);
    assert_int_equal(case_machine("h100-sxm:nodes=131072,switch_ports=256").chip_count,
                     MACHINE_CHIPS_MAX);
}

/* By brute force: the shortest shift that divides the axis and maps each tier's units that can be
 * told apart onto units, for a machine that is one line along the axis. */
static bool translates(const struct machine *machine, const struct level *level, uint32_t axis,
                       uint32_t shift)
{
    uint32_t const length = machine->shape[axis];
    for (uint32_t i = 0; i < length; i++)
        for (uint32_t k = 0; k < length; k++) {
            uint32_t a[LEVEL_AXES_MAX] = {0}, b[LEVEL_AXES_MAX] = {0};
            uint32_t c[LEVEL_AXES_MAX] = {0}, d[LEVEL_AXES_MAX] = {0};
            a[axis] = i;
            b[axis] = k;
            c[axis] = (i + shift) % length;
            d[axis] = (k + shift) % length;
            if (level_meeting_tier(level, a, b) != level_meeting_tier(level, c, d)) return false;
        }
    return true;
}

static uint32_t period_of(const struct machine *machine, const struct level *level, uint32_t axis)
{
    return level_period(machine, level, level->tier_count, axis);
}

static void a_period_maps_units_onto_units(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint32_t level, axis, period;
    } rows[] = {
        {"h100-sxm", 0, 0, 1},             /* One node: any shift. */
        {"h100-sxm:nodes=32", 1, 1, 1},    /* All on the same leaves. */
        {"h100-sxm:nodes=128", 1, 1, 32},  /* Scalable units. */
        {"h100-sxm:nodes=128", 1, 0, 1},   /* A leaf a rail. */
        {"h100-sxm:nodes=100", 1, 1, 100}, /* The last unit holds fewer. */
        {"h100-sxm:nodes=512", 1, 1, 128}, /* Pods of four units. */
        {"gb200-nvl72:nodes=8", 1, 0, 4},  /* Four GPUs of a tray on a leaf. */
        {"gb200-nvl72:nodes=8", 1, 1, 1},
        {"b200:gpus=576", 0, 0, 36},
        {"b200:gpus=100", 0, 0, 100},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct machine const machine = case_machine(rows[i].text);
        const struct level *level = &machine.level[rows[i].level];
        uint32_t const axis = rows[i].axis, length = machine.shape[axis];
        uint32_t const period = period_of(&machine, level, axis);
        if (period != rows[i].period) fail_msg("%s axis %u: period %u", rows[i].text, axis, period);
        assert_true(translates(&machine, level, axis, period % length));
        for (uint32_t shift = 1; shift < period; shift++)
            if (period % shift == 0) assert_false(translates(&machine, level, axis, shift));
    }
    /* A hash of a flow's ends knows no symmetry; positions keep theirs if they share evenly. */
    struct machine const hashed = case_machine("h100-sxm:nodes=64,policy=hash");
    assert_int_equal(period_of(&hashed, &hashed.level[1], 0), 8);
    assert_int_equal(period_of(&hashed, &hashed.level[1], 1), 64);
    assert_int_equal(period_of(&hashed, &hashed.level[0], 0), 1);
    struct machine const railed = case_machine("h100-sxm:nodes=64,policy=rail");
    assert_int_equal(period_of(&railed, &railed.level[1], 0), 1);
    assert_int_equal(period_of(&railed, &railed.level[1], 1), 32);
    struct machine const uneven = case_machine("h100-sxm:gpus=20,nvlink.policy=rail");
    assert_int_equal(period_of(&uneven, &uneven.level[0], 0), 20);
    /* A host's NIC queues, so chips of one host cannot be folded onto each other. */
    struct machine const slices = case_machine("tpu-v5p:4x4x8,slices=4");
    assert_int_equal(period_of(&slices, &slices.level[0], 0), 2);
    assert_int_equal(period_of(&slices, &slices.level[0], 1), 2);
    assert_int_equal(period_of(&slices, &slices.level[0], 2), 1);
    assert_int_equal(period_of(&slices, &slices.level[0], 3), 1);
}

static void tiers_queue_where_they_are_thinner_or_not_spread(void **state)
{
    (void)state;
    struct machine machine = case_machine("h100-sxm:nodes=128");
    assert_true(level_tier_queues(&machine.level[0], 0));
    assert_true(level_tier_queues(&machine.level[1], 0));
    assert_false(level_tier_queues(&machine.level[1], 1));
    machine = case_machine("h100-sxm:nodes=128,policy=hash");
    assert_true(level_tier_queues(&machine.level[1], 1));
    machine = case_machine("tpu-v5p:4x4x8,slices=2");
    assert_true(level_tier_queues(&machine.level[0], 1)); /* 25 GB/s for 4 x 16. */
}

static void units_are_numbered_row_major_over_their_boxes(void **state)
{
    (void)state;
    struct machine const machine = case_machine("gb200-nvl72:nodes=20");
    const struct level *level = &machine.level[1];
    uint32_t const at[] = {9, 17, 0, 0};
    assert_int_equal(level_unit_count(&machine, level, -1), machine.chip_count);
    assert_int_equal(level_unit(&machine, level, -1, at), machine_chip_at(&machine, at));
    /* Leaves hold 4 GPUs of 8 racks: 18 along gpu, 3 along node, the last incomplete. */
    assert_int_equal(level_unit_count(&machine, level, 0), 18 * 3);
    assert_int_equal(level_unit(&machine, level, 0, at), 2 * 3 + 2);
    assert_int_equal(level_unit_count(&machine, level, 1), 1);
    assert_int_equal(level_unit(&machine, level, 1, at), 0);
    assert_string_equal(level_policy_name(LEVEL_RAIL), "rail");
}

static void cables_have_ports_and_names(void **state)
{
    (void)state;
    struct machine const machine = case_machine("h100-sxm:nodes=512");
    assert_string_equal(machine_port_name(&machine, machine_level_port(0, 0, false)), "NVLink up");
    assert_string_equal(machine_port_name(&machine, machine_level_port(1, 0, true)), "NIC down");
    assert_string_equal(machine_port_name(&machine, machine_level_port(1, 2, false)),
                        "spine-core up");
    assert_false(machine_has_link(&machine, 0, 0));
    assert_int_equal(machine_link_count(&machine), 0);
    uint32_t const a[] = {0, 1, 0, 0}, b[] = {5, 1, 0, 0}, c[] = {5, 2, 0, 0};
    assert_int_equal(machine_level_between(&machine, a, b), 0);
    assert_int_equal(machine_level_between(&machine, a, c), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(switches_are_those_of_the_superpod),
        cmocka_unit_test(a_superpod_has_the_rates_of_the_book),
        cmocka_unit_test(nodes_have_the_egress_of_the_book),
        cmocka_unit_test(a_chip_alone_has_all_cables_but_of_a_hash),
        cmocka_unit_test(nvlink_domains_grow_by_a_second_tier),
        cmocka_unit_test(no_tree_uses_more_ports_than_there_are),
        cmocka_unit_test(oversubscription_thins_the_cables_up),
        cmocka_unit_test(latencies_of_a_path_add_up),
        cmocka_unit_test(policies_and_sharp_are_set_by_level_and_tier),
        cmocka_unit_test(slices_are_joined_by_hosts_and_dcn),
        cmocka_unit_test(slices_may_hang_on_leaves),
        cmocka_unit_test(what_cannot_be_joined_is_refused),
        cmocka_unit_test(a_period_maps_units_onto_units),
        cmocka_unit_test(tiers_queue_where_they_are_thinner_or_not_spread),
        cmocka_unit_test(units_are_numbered_row_major_over_their_boxes),
        cmocka_unit_test(cables_have_ports_and_names),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
