/*
 * scenario_shown.c: defaults that depend on the chip, the machine or the schedule, said in the keys
 * of a scenario: what it shows reads back to the same machine and the same stages.
 */
#include "sim/base/name.h"
#include "sim/machine/machine.h"
#include "sim/mesh/mesh.h"
#include "sim/scenario/scenario_parts.h"
#include "sim/step/stages.h"

/* NICs of a node: each of one GPU, or of several that share it; 0: they are not dealt evenly. */
static uint32_t node_nics(const struct chip_network *network, uint32_t gpus)
{
    if (network->nic_chips <= 1) return gpus * network->nic_count;
    return gpus % network->nic_chips == 0 ? gpus / network->nic_chips : 0;
}

/* Beyond a node or slice. A TPU's slices hang on one switch, which has no ports to count, until a
 * tier is named. */
static void far_fill(const struct machine *machine, struct machine_network_plan *plan)
{
    const struct chip_network *network = &machine->chip.network;
    if (plan->cable_latency_ps == 0) plan->cable_latency_ps = network->cable_latency_ps;
    if (plan->switch_latency_ps == 0) plan->switch_latency_ps = network->switch_latency_ps;
    if (plan->nic_bytes_per_s == 0) plan->nic_bytes_per_s = network->nic_peak_bytes_per_s;
    if (machine->chip.kind == CHIP_TPU) {
        plan->dcn_begin_ps = machine->chip.pod.dcn.begin_ps;
        plan->dcn_message_ps = machine->chip.pod.dcn.message_ps;
        plan->dcn_spread_ps = machine->chip.pod.dcn.spread_ps;
        return;
    }
    if (plan->switch_ports == 0) plan->switch_ports = network->switch_ports;
    if (plan->node_nics == 0) plan->node_nics = node_nics(network, machine->shape[0]);
}

/* Which cable a flow takes, in the tiers that there are. */
static void tiers_fill(const struct machine *machine, struct machine_network_plan *plan)
{
    for (uint32_t level = 0; level < machine->level_count; level++)
        for (uint32_t i = 0; i < machine->level[level].tier_count; i++) {
            const struct level_tier *of = &machine->level[level].tier[i];
            for (uint32_t t = 0; t < MACHINE_TIER_COUNT; t++)
                if (name_same(of->name, machine_tier_names[t]) && plan->tier[t].policy == 0)
                    plan->tier[t].policy = 1 + of->policy;
        }
}

static void machine_fill(const struct machine *machine, struct machine_plan *plan)
{
    bool const is_gpu = machine->chip.kind == CHIP_GPU;
    uint32_t const near = is_gpu ? 1 : machine->grid_axis_count;
    plan->clock_fp8_ppm = machine_clock_fp8_ppm(plan, &machine->chip);
    plan->clock_ppm = machine_clock_ppm(plan, &machine->chip);
    if (plan->launches == CHIP_LAUNCHES_EAGER)
        plan->launch_host_ps = machine_launch_host_ps(plan, &machine->chip);
    if (is_gpu && plan->gpus == 0) plan->gpus = machine->shape[0];
    if (!is_gpu && plan->slices == 0) plan->slices = 1;
    if (is_gpu && plan->network.nvlink_latency_ps == 0)
        plan->network.nvlink_latency_ps = machine->chip.network.nvlink_latency_ps;
    if (machine->axis_count > near) far_fill(machine, &plan->network);
    tiers_fill(machine, &plan->network);
}

/* Left out where the step is one that is refused: what refuses it says why. */
static enum status layout_fill(struct arena *arena, const struct machine *machine,
                               struct scenario *scenario, struct error *reterr)
{
    struct workload_plan *plan = &scenario->workload;
    struct mesh mesh;
    const char *layout = NULL;
    if (workload_serves(plan) || plan->stages.layout != NULL) return STATUS_OK;
    STATUS_TRY(mesh_build(&scenario->mesh, machine, &mesh, reterr));
    uint32_t const ranks = mesh.axis[MESH_PP].size;
    if (ranks < 2) return STATUS_OK;
    STATUS_TRY(stages_layout(arena, plan, ranks, &layout, reterr));
    plan->stages.layout = layout;
    return STATUS_OK;
}

/* Of the chip alone: a machine that cannot be built has them too. A program's text has no workload,
 * and what it does not say of software has shaped nothing. */
static enum status software_fill(struct arena *arena, struct scenario *scenario,
                                 struct error *reterr)
{
    struct workload_plan *plan = &scenario->workload;
    const char *units = NULL;
    struct chip chip;
    if (plan->model.layers == 0) return STATUS_OK;
    STATUS_TRY(machine_chip(arena, &scenario->machine, &chip, &units, reterr));
    plan->software.memory = workload_memory(plan, &chip);
    plan->software.protocols = workload_protocols(plan, &chip);
    plan->software.collective_cores = workload_collective_cores(plan, &chip);
    plan->software.fp8_recipe = workload_recipe(plan, &chip);
    plan->software.shards = workload_shards(plan, &chip);
    plan->software.joins = workload_joins(plan, &chip);
    plan->software.clips = workload_clips(plan, &chip);
    return STATUS_OK;
}

static enum status defaults_fill(struct arena *arena, struct scenario *scenario,
                                 struct error *reterr)
{
    struct machine machine;
    STATUS_TRY(software_fill(arena, scenario, reterr));
    STATUS_TRY(machine_build(arena, &scenario->machine, &machine, reterr));
    machine_fill(&machine, &scenario->machine);
    return layout_fill(arena, &machine, scenario, reterr);
}

enum status scenario_shown(struct arena *arena, const struct scenario *scenario,
                           struct scenario *ret_shown, struct error *reterr)
{
    struct error unknown = {0};
    *ret_shown = *scenario;
    if (defaults_fill(arena, ret_shown, &unknown) != STATUS_NO_MEMORY) return STATUS_OK;
    *reterr = unknown;
    return STATUS_NO_MEMORY;
}
