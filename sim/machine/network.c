#include "sim/machine/network.h"

#include <stdio.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/counted.h"
#include "sim/base/units.h"
#include "sim/machine/network_check.h"

enum { NETWORK_WHERE_BYTES = 64 };

static const char *const tier_cables[] = {
#define X(name, text, cable) cable,
    MACHINE_TIER_TABLE(X)
#undef X
};

static const char *where_of(char *buffer, enum machine_tier tier, const char *key)
{
    (void)snprintf(buffer, NETWORK_WHERE_BYTES, "/machine/network/%s/%s", machine_tier_names[tier],
                   key);
    return buffer;
}

static enum level_policy policy_of(uint32_t wish, uint32_t otherwise)
{
    if (wish != 0) return (enum level_policy)(wish - 1);
    return otherwise != 0 ? (enum level_policy)(otherwise - 1) : LEVEL_SPRAY;
}

static uint32_t units_needed(uint32_t count, uint32_t of)
{
    return (uint32_t)units_ceil_divide(count, of);
}

/* What a fat tree is built for: the numbers of one plan, and how far it has come. */
struct tree {
    const struct machine *machine;
    const struct machine_network_plan *plan;
    const struct chip_network *chip;
    uint32_t ports;
    uint64_t cable_bytes_per_s, cable_peak_bytes_per_s;
    int64_t cable_latency_ps, switch_latency_ps;
    bool reduces;
};

/* One more tier on top of a level; `tier` says what kind. */
static struct level_tier *tree_tier(const struct tree *tree, struct level *level,
                                    enum machine_tier tier)
{
    struct level_tier *own = &level->tier[level->tier_count++];
    *own = (struct level_tier){
        .name = machine_tier_names[tier],
        .cable_name = tier_cables[tier],
        .switch_count = 1,
        .switch_ports = tree->ports,
        .cable_count = 1,
        .cable_bytes_per_s = tree->cable_bytes_per_s,
        .cable_peak_bytes_per_s = tree->cable_peak_bytes_per_s,
        .latency_ps = tree->cable_latency_ps + tree->switch_latency_ps,
        .policy = policy_of(tree->plan->tier[tier].policy, tree->plan->policy),
        .multicasts = tree->reduces,
    };
    for (uint32_t axis = 0; axis < LEVEL_AXES_MAX; axis++) own->box[axis] = 1;
    return own;
}

/* Cables up for `down` cables down, which must come out whole. */
static enum status cables_up(const struct tree *tree, enum machine_tier tier, uint32_t down,
                             uint32_t *ret_up, struct error *reterr)
{
    char where[NETWORK_WHERE_BYTES];
    uint32_t const wish = tree->plan->tier[tier].oversubscription_ppm;
    uint64_t const ratio = wish == 0 ? PPM_ONE : wish;
    uint64_t const up = ((uint64_t)down * PPM_ONE + ratio / 2) / ratio;
    /* A ratio in parts per million is off by up to half a part. */
    uint64_t const error = up * ratio > (uint64_t)down * PPM_ONE
                               ? up * ratio - (uint64_t)down * PPM_ONE
                               : (uint64_t)down * PPM_ONE - up * ratio;
    if (up == 0 || error > up) {
        uint64_t const fewer = (uint64_t)down * PPM_ONE / ratio;
        return error_set(reterr, STATUS_INVALID, where_of(where, tier, "oversubscription"),
                         "%u cables down would need %llu.%02llu cables up; %llu and %llu are whole",
                         down, (unsigned long long)fewer,
                         (unsigned long long)((uint64_t)down * PPM_ONE * 100 / ratio % 100),
                         (unsigned long long)(fewer == 0 ? 1 : fewer),
                         (unsigned long long)(fewer + 1));
    }
    *ret_up = (uint32_t)up;
    return STATUS_OK;
}

/* The fewest switches over units with `up` cables each, so that all have equally many cables to
 * every unit and none needs more than its ports; 0: there is no such number. */
static uint32_t switches_above(uint32_t units, uint32_t up, uint32_t ports)
{
    for (uint32_t count = 1; count <= up; count++)
        if (up % count == 0 && (uint64_t)units * (up / count) <= ports) return count;
    return 0;
}

static void cover_machine(const struct machine *machine, struct level_tier *tier)
{
    for (uint32_t axis = 0; axis < LEVEL_AXES_MAX; axis++) tier->box[axis] = machine->shape[axis];
}

static void set_reduction(const struct tree *tree, struct level *level)
{
    for (uint32_t tier = 0; tier < level->tier_count && tree->reduces; tier++)
        level->tier[tier].reduce_flop_per_s =
            level->tier[tier].switch_count * tree->chip->switch_flop_per_s;
}

/* How leaves lie: `per_group` of them serve the same nodes (or hosts), `group_count` such groups
 * stand along the axis `axis`, each `group_length` chips long. */
struct leaves {
    uint32_t per_group, group_count, group_length, axis;
    uint32_t up; /* Cables up from one leaf. */
};

static enum status refuse_size(const struct tree *tree, uint32_t leaf_count, struct error *reterr)
{
    return error_set(reterr, STATUS_LIMIT, "/machine/network/switch_ports",
                     "%u leaves are more than three tiers of switches with %u ports join; switches "
                     "with more ports are needed, such as \"switch_ports\": %u",
                     leaf_count, tree->ports, 2 * tree->ports);
}

/* Pods of leaves around spines, joined by cores. */
static enum status build_pods(const struct tree *tree, const struct leaves *leaves,
                              struct level *level, struct error *reterr)
{
    const struct machine *machine = tree->machine;
    uint32_t const leaf_count = leaves->per_group * leaves->group_count;
    uint32_t const wish = tree->plan->tier[MACHINE_SPINE].oversubscription_ppm;
    uint64_t const ratio = wish == 0 ? PPM_ONE : wish;
    uint32_t const down = (uint32_t)(tree->ports * ratio / (ratio + PPM_ONE));
    uint32_t const groups = down / leaves->per_group;
    if (groups == 0) return refuse_size(tree, leaf_count, reterr);
    uint32_t const pod_leaves = groups * leaves->per_group;
    uint32_t const pods = units_needed(leaves->group_count, groups);
    uint32_t spine_up = 0;
    STATUS_TRY(cables_up(tree, MACHINE_SPINE, pod_leaves, &spine_up, reterr));
    uint32_t const pod_up = leaves->up * spine_up;
    uint32_t const cores = switches_above(pods, pod_up, tree->ports);
    if (cores == 0) return refuse_size(tree, leaf_count, reterr);
    struct level_tier *spine = tree_tier(tree, level, MACHINE_SPINE);
    cover_machine(machine, spine);
    spine->box[leaves->axis] = groups * leaves->group_length;
    spine->switch_count = leaves->up;
    spine->cable_count = leaves->up;
    struct level_tier *core = tree_tier(tree, level, MACHINE_CORE);
    cover_machine(machine, core);
    core->switch_count = cores;
    core->cable_count = pod_up;
    return STATUS_OK;
}

/* What joins the leaves, which are the top tier so far. */
static enum status build_above_leaves(const struct tree *tree, const struct leaves *leaves,
                                      struct level *level, struct error *reterr)
{
    uint32_t const leaf_count = leaves->per_group * leaves->group_count;
    if (leaf_count > 1) {
        uint32_t const spines = switches_above(leaf_count, leaves->up, tree->ports);
        if (spines == 0) {
            STATUS_TRY(build_pods(tree, leaves, level, reterr));
        } else {
            struct level_tier *spine = tree_tier(tree, level, MACHINE_SPINE);
            cover_machine(tree->machine, spine);
            spine->switch_count = spines;
            spine->cable_count = leaves->up;
        }
    }
    set_reduction(tree, level);
    return STATUS_OK;
}

static bool sharp_on(enum machine_sharp wish, bool otherwise)
{
    return wish == MACHINE_SHARP_AUTO ? otherwise : wish == MACHINE_SHARP_ON;
}

/* A node without a switch: links lead from each GPU to each other one. */
static enum status build_mesh(const struct machine_network_plan *plan, struct machine *machine,
                              struct error *reterr)
{
    const struct chip_network *chip = &machine->chip.network;
    struct level *level = &machine->level[machine->level_count++];
    uint32_t const gpus = machine->shape[0];
    uint32_t const links = chip->nvlink_count / (chip->node_chips - 1);
    if (gpus > chip->node_chips)
        return error_set(reterr, STATUS_LIMIT, "/machine/gpus",
                         "the %u links of %s join %u GPUs each to each, without a switch; write "
                         "\"nodes\" for more",
                         chip->nvlink_count, machine->chip.title, chip->node_chips);
    level->name = chip->link_name;
    level->tier_count = 1;
    level->tier[0] = (struct level_tier){
        .name = "mesh",
        .cable_name = chip->link_name,
        .box = {gpus, 1, 1, 1},
        .switch_count = 1,
        .cable_count = gpus > 1 ? gpus - 1 : 1,
        .policy = gpus > 2 ? LEVEL_PAIR : LEVEL_SPRAY,
        .cable_bytes_per_s = links * chip->nvlink_bytes_per_s,
        .cable_peak_bytes_per_s = links * chip->nvlink_peak_bytes_per_s,
        .latency_ps =
            plan->nvlink_latency_ps != 0 ? plan->nvlink_latency_ps : chip->nvlink_latency_ps,
    };
    return STATUS_OK;
}

/* What the maker calls the tiers of a node, and the cables between them. */
static const struct {
    const char *name[2], *trunk;
} node_tiers[CHIP_MAKERS] = {
    [CHIP_NVIDIA] = {{"NVSwitch", "NVSwitch L2"}, "NVLink trunk"},
    [CHIP_AMD] = {{"switch", "switch L2"}, "trunk"},
};

const char *network_switch_name(const struct chip_network *chip)
{
    return node_tiers[chip->maker].name[0];
}

static enum status build_nvlink(const struct machine_network_plan *plan, struct machine *machine,
                                struct error *reterr)
{
    const struct chip_network *chip = &machine->chip.network;
    struct level *level = &machine->level[machine->level_count++];
    uint32_t const gpus = machine->shape[0];
    uint32_t const ports = chip->nvswitch_ports, board = ports / 2;
    bool const one_tier = gpus <= ports;
    /* Real switches as long as they have the ports, else one for each link of a GPU. */
    bool const real =
        (uint64_t)gpus * units_needed(chip->nvlink_count, chip->nvswitch_count) <= ports;
    bool const reduces = chip->nvswitch_flop_per_s != 0 &&
                         sharp_on(plan->nvlink_sharp, sharp_on(plan->sharp, /* otherwise= */ true));
    level->name = chip->link_name;
    level->tier_count = one_tier ? 1 : 2;
    for (uint32_t tier = 0; tier < level->tier_count; tier++) {
        struct level_tier *own = &level->tier[tier];
        *own = (struct level_tier){
            .name = node_tiers[chip->maker].name[tier],
            .cable_name = tier == 0 ? chip->link_name : node_tiers[chip->maker].trunk,
            .box = {gpus, 1, 1, 1},
            .switch_count = real ? chip->nvswitch_count : chip->nvlink_count,
            .switch_ports = ports,
            .cable_count = chip->nvlink_count,
            .cable_bytes_per_s = chip->nvlink_bytes_per_s,
            .cable_peak_bytes_per_s = chip->nvlink_peak_bytes_per_s,
            .latency_ps =
                plan->nvlink_latency_ps != 0 ? plan->nvlink_latency_ps : chip->nvlink_latency_ps,
            .policy = policy_of(plan->nvlink_policy, 0),
            .multicasts = reduces,
            .assumed = !real,
        };
    }
    if (!one_tier) {
        level->tier[0].box[0] = board;
        level->tier[1].cable_count = board * chip->nvlink_count;
        level->tier[1].switch_count =
            switches_above(units_needed(gpus, board), board * chip->nvlink_count, ports);
        if (level->tier[1].switch_count == 0)
            return error_set(reterr, STATUS_LIMIT, "/machine/gpus",
                             "%u GPUs on two tiers of %s with %u ports: %u at most", gpus,
                             counted_noun(2, network_switch_name(chip)).text, ports, board * ports);
    }
    for (uint32_t tier = 0; tier < level->tier_count && reduces; tier++)
        level->tier[tier].reduce_flop_per_s =
            level->tier[tier].switch_count * chip->nvswitch_flop_per_s;
    return STATUS_OK;
}

static struct tree tree_of(const struct machine_network_plan *plan, const struct machine *machine)
{
    const struct chip_network *chip = &machine->chip.network;
    return (struct tree){
        .machine = machine,
        .plan = plan,
        .chip = chip,
        .ports = plan->switch_ports != 0 ? plan->switch_ports : chip->switch_ports,
        .cable_bytes_per_s = chip->nic_bytes_per_s,
        .cable_peak_bytes_per_s = chip->nic_peak_bytes_per_s,
        .cable_latency_ps =
            plan->cable_latency_ps != 0 ? plan->cable_latency_ps : chip->cable_latency_ps,
        .switch_latency_ps =
            plan->switch_latency_ps != 0 ? plan->switch_latency_ps : chip->switch_latency_ps,
        .reduces = chip->switch_flop_per_s != 0 && sharp_on(plan->sharp, /* otherwise= */ false),
    };
}

/* From the end of a cable that is no switch. */
static int64_t edge_latency_ps(const struct tree *tree)
{
    return tree->chip->nic_latency_ps + tree->cable_latency_ps + tree->switch_latency_ps / 2;
}

/* GPUs that share a NIC reach it over PCIe. The way to the NIC is part of the NIC's latency, so the
 * tier itself adds the least that time knows. */
static void add_shared_nics(const struct machine *machine, struct level *level)
{
    struct level_tier *host = &level->tier[level->tier_count++];
    *host = (struct level_tier){
        .name = "host",
        .cable_name = "PCIe",
        .box = {machine->chip.network.nic_chips, 1, 1, 1},
        .switch_count = 1,
        .cable_count = 1,
        .cable_bytes_per_s = machine->chip.pcie_bytes_per_s,
        .cable_peak_bytes_per_s = machine->chip.pcie_bytes_per_s,
        .latency_ps = 1,
        .shares_nic = true,
    };
}

static enum status build_infiniband(const struct machine_network_plan *plan,
                                    struct machine *machine, struct error *reterr)
{
    const struct chip_network *chip = &machine->chip.network;
    struct tree const tree = tree_of(plan, machine);
    struct level *level = &machine->level[machine->level_count++];
    uint32_t const owners = machine->shape[0] / chip->nic_chips;
    uint32_t const rails = chip->leaf_rails < owners ? chip->leaf_rails : owners;
    uint32_t const unit_nodes = tree.ports / 2 / (rails * chip->nic_count);
    struct leaves leaves = {
        .per_group = units_needed(owners, rails),
        .group_length = unit_nodes,
        .axis = 1,
    };
    level->name = "InfiniBand";
    if (unit_nodes == 0) {
        return error_set(reterr, STATUS_INVALID, "/machine/network/switch_ports",
                         "a leaf takes %u cables from a node in half of its ports, of which there "
                         "are %u",
                         rails * chip->nic_count, tree.ports);
    }
    leaves.group_count = units_needed(machine->shape[1], unit_nodes);
    STATUS_TRY(
        cables_up(&tree, MACHINE_LEAF, unit_nodes * rails * chip->nic_count, &leaves.up, reterr));
    if (chip->nic_chips > 1) add_shared_nics(machine, level);
    struct level_tier *leaf = tree_tier(&tree, level, MACHINE_LEAF);
    leaf->box[0] = rails * chip->nic_chips;
    leaf->box[1] = unit_nodes;
    leaf->cable_count = chip->nic_count;
    leaf->latency_ps = edge_latency_ps(&tree);
    return build_above_leaves(&tree, &leaves, level, reterr);
}

/* The host's box turned such that it divides the slice, as far as it can be. */
static void host_box(const struct machine *machine, uint32_t ret_box[LEVEL_AXES_MAX])
{
    static const uint8_t orders[6][CHIP_AXES_MAX] = {{0, 1, 2}, {1, 0, 2}, {0, 2, 1},
                                                     {2, 1, 0}, {1, 2, 0}, {2, 0, 1}};
    uint32_t const axes = machine->grid_axis_count;
    const uint32_t *host = machine->chip.pod.host_shape;
    for (uint32_t axis = 0; axis < LEVEL_AXES_MAX; axis++)
        ret_box[axis] = axis < axes ? host[axis] : 1;
    for (uint32_t i = 0; i < 6; i++) {
        bool divides = true;
        for (uint32_t axis = 0; axis < CHIP_AXES_MAX && divides; axis++) {
            uint32_t const from = orders[i][axis];
            divides =
                axis < axes ? from < axes && machine->shape[axis] % host[from] == 0 : from >= axes;
        }
        if (!divides) continue;
        for (uint32_t axis = 0; axis < axes; axis++) ret_box[axis] = host[orders[i][axis]];
        return;
    }
}

/* As many units as fit, whole lines first: along the last grid axis, then the one before, then over
 * slices. Returns how many. */
static uint32_t grow_box(const struct machine *machine, uint32_t box[LEVEL_AXES_MAX], uint32_t most)
{
    uint32_t count = 1;
    for (uint32_t i = 0; i < machine->axis_count; i++) {
        uint32_t const grid = machine->grid_axis_count;
        uint32_t const axis = i < grid ? grid - 1 - i : i;
        uint32_t const there = units_needed(machine->shape[axis], box[axis]);
        uint32_t take = most / count < there ? most / count : there;
        while (there % take != 0) take--;
        box[axis] = take == there ? machine->shape[axis] : box[axis] * take;
        count *= take;
        if (take != there) break;
    }
    return count;
}

static enum status build_leaves_of_hosts(const struct tree *tree, struct machine *machine,
                                         struct level *level, struct error *reterr)
{
    uint32_t box[LEVEL_AXES_MAX];
    memcpy(box, level->tier[0].box, sizeof box);
    uint32_t const down = grow_box(machine, box, tree->ports / 2);
    struct leaves leaves = {.per_group = 1, .group_count = 1};
    for (uint32_t axis = 0; axis < machine->axis_count; axis++)
        leaves.per_group *= units_needed(machine->shape[axis], box[axis]);
    /* Pods are boxes along the slices, if a leaf lies within one. */
    leaves.axis = machine->axis_count - 1;
    leaves.group_length = box[leaves.axis];
    leaves.group_count = units_needed(machine->shape[leaves.axis], leaves.group_length);
    leaves.per_group /= leaves.group_count;
    STATUS_TRY(cables_up(tree, MACHINE_LEAF, down, &leaves.up, reterr));
    struct level_tier *leaf = tree_tier(tree, level, MACHINE_LEAF);
    memcpy(leaf->box, box, sizeof leaf->box);
    leaf->latency_ps = edge_latency_ps(tree);
    return build_above_leaves(tree, &leaves, level, reterr);
}

static enum status build_dcn(const struct machine_network_plan *plan, struct machine *machine,
                             struct error *reterr)
{
    const struct chip_network *chip = &machine->chip.network;
    struct tree const tree = tree_of(plan, machine);
    struct level *level = &machine->level[machine->level_count++];
    struct level_tier *host = &level->tier[level->tier_count++];
    bool leaves = plan->switch_ports != 0;
    for (uint32_t tier = 0; tier < MACHINE_TIER_COUNT; tier++)
        leaves = leaves || plan->tier[tier].oversubscription_ppm != 0;
    level->name = "DCN";
    *host = (struct level_tier){
        .name = "host",
        .cable_name = "PCIe",
        .switch_count = 1,
        .cable_count = 1,
        .cable_bytes_per_s = machine->chip.pcie_bytes_per_s,
        .cable_peak_bytes_per_s = machine->chip.pcie_bytes_per_s,
        .latency_ps = chip->host_latency_ps,
    };
    host_box(machine, host->box);
    if (leaves) return build_leaves_of_hosts(&tree, machine, level, reterr);
    struct level_tier *dcn = tree_tier(&tree, level, MACHINE_LEAF);
    dcn->name = "DCN";
    dcn->switch_ports = 0;
    dcn->latency_ps = edge_latency_ps(&tree);
    cover_machine(machine, dcn);
    return STATUS_OK;
}

static enum status name_ports(struct arena *arena, struct machine *machine, struct error *reterr)
{
    static const char *const ways[] = {"up", "down"};
    for (uint32_t i = 0; i < machine->level_count; i++)
        for (uint32_t k = 0; k < machine->level[i].tier_count; k++)
            for (uint32_t way = 0; way < 2; way++) {
                struct level_tier *tier = &machine->level[i].tier[k];
                tier->port_name[way] = arena_format(arena, "%s %s", tier->cable_name, ways[way]);
                if (tier->port_name[way] == NULL)
                    return error_set(reterr, STATUS_NO_MEMORY, "", "no memory for a name");
            }
    return STATUS_OK;
}

enum status network_build(struct arena *arena, const struct machine_plan *plan,
                          struct machine *machine, struct error *reterr)
{
    const struct machine_network_plan *network = &plan->network;
    uint32_t const near = machine->grid_axis_count == 0 ? 1 : machine->grid_axis_count;
    bool const far = machine->axis_count > near;
    STATUS_TRY(network_check_plan(network, machine, far, reterr));
    if (machine->chip.kind == CHIP_GPU) {
        if (machine->chip.network.nvswitch_count == 0)
            STATUS_TRY(build_mesh(network, machine, reterr));
        else
            STATUS_TRY(build_nvlink(network, machine, reterr));
        if (far) STATUS_TRY(build_infiniband(network, machine, reterr));
    } else if (far) {
        STATUS_TRY(build_dcn(network, machine, reterr));
    }
    STATUS_TRY(network_check_built(network, machine, reterr));
    for (uint32_t axis = machine->grid_axis_count; axis < machine->axis_count; axis++)
        machine->axis_level[axis] = (uint8_t)(axis - machine->grid_axis_count);
    return name_ports(arena, machine, reterr);
}
