#include "sim/machine/network_check.h"

#include <stdio.h>

#include "sim/base/counted.h"
#include "sim/base/name.h"
#include "sim/base/units.h"
#include "sim/machine/network.h"

enum { NETWORK_WHERE_BYTES = 64 };

/* Refuses what the plan says of a tier that is not there. */
static enum status check_tiers(const struct machine_network_plan *plan,
                               const struct machine *machine, struct error *reterr)
{
    char where[NETWORK_WHERE_BYTES];
    for (uint32_t tier = 0; tier < MACHINE_TIER_COUNT; tier++) {
        bool there = false;
        bool above = false;
        const struct machine_tier_plan *own = &plan->tier[tier];
        for (uint32_t i = 0; i < machine->level_count; i++)
            for (uint32_t k = 0; k < machine->level[i].tier_count; k++) {
                if (!name_same(machine->level[i].tier[k].name, machine_tier_names[tier])) continue;
                there = true;
                above = k + 1 < machine->level[i].tier_count;
            }
        bool const over = own->oversubscription_ppm != 0 && own->oversubscription_ppm != PPM_ONE;
        (void)snprintf(where, sizeof where, "/machine/network/%s/%s", machine_tier_names[tier],
                       over ? "oversubscription" : "policy");
        if (!there && (over || own->policy != 0)) {
            return error_set(reterr, STATUS_INVALID, where, "this machine has no %s",
                             machine_tier_names[tier]);
        }
        if (over && !above) {
            return error_set(reterr, STATUS_INVALID, where,
                             "nothing lies above a %s of this machine, so its cables up cannot be "
                             "too few",
                             machine_tier_names[tier]);
        }
    }
    return STATUS_OK;
}

/* Refuses what no level of the machine can do. */
static enum status check_sharp(const struct machine_network_plan *plan,
                               const struct machine *machine, struct error *reterr)
{
    bool any = false;
    for (uint32_t i = 0; i < machine->level_count; i++)
        any = any || machine->level[i].tier[0].multicasts;
    if (plan->nvlink_sharp == MACHINE_SHARP_ON && machine->chip.network.nvswitch_count == 0) {
        return error_set(reterr, STATUS_INVALID, "/machine/network/nvlink/sharp",
                         "no switch joins the GPUs of %s, so none can reduce", machine->chip.title);
    }
    if (plan->nvlink_sharp == MACHINE_SHARP_ON && machine->chip.network.nvswitch_flop_per_s == 0) {
        return error_set(reterr, STATUS_INVALID, "/machine/network/nvlink/sharp",
                         "the %s of %s do not reduce; those of NVLink 4 and 5 do",
                         counted_noun(2, network_switch_name(&machine->chip.network)).text,
                         machine->chip.title);
    }
    if (plan->sharp == MACHINE_SHARP_ON && !any) {
        return error_set(reterr, STATUS_INVALID, "/machine/network/sharp",
                         "no switch of this machine reduces: SHARP is in NVSwitches from NVLink 4 "
                         "on and in InfiniBand between nodes");
    }
    return STATUS_OK;
}

enum status network_check_built(const struct machine_network_plan *plan,
                                const struct machine *machine, struct error *reterr)
{
    STATUS_TRY(check_tiers(plan, machine, reterr));
    return check_sharp(plan, machine, reterr);
}

static bool says_policy(uint32_t policy)
{
    return policy != 0 && policy != 1 + LEVEL_SPRAY;
}

enum status network_check_plan(const struct machine_network_plan *plan,
                               const struct machine *machine, bool far, struct error *reterr)
{
    bool const gpu = machine->chip.kind == CHIP_GPU;
    const char *key = plan->switch_ports != 0        ? "switch_ports"
                      : says_policy(plan->policy)    ? "policy"
                      : plan->cable_latency_ps != 0  ? "cable_latency"
                      : plan->switch_latency_ps != 0 ? "switch_latency"
                      : plan->nic_bytes_per_s != 0   ? "nic_rate"
                      : plan->node_nics != 0         ? "node_nics"
                                                     : NULL;
    bool const begins = machine_dcn_says(plan, plan->dcn_begin_ps, MACHINE_DCN_BEGIN);
    bool const sends = machine_dcn_says(plan, plan->dcn_message_ps, MACHINE_DCN_MESSAGE);
    bool const spreads = machine_dcn_says(plan, plan->dcn_spread_ps, MACHINE_DCN_SPREAD);
    const char *const dcn = begins    ? "dcn_begin"
                            : sends   ? "dcn_message"
                            : spreads ? "dcn_spread"
                                      : NULL;
    char where[NETWORK_WHERE_BYTES];
    if ((key != NULL || dcn != NULL) && !far) {
        (void)snprintf(where, sizeof where, "/machine/network/%s", key != NULL ? key : dcn);
        return error_set(reterr, STATUS_INVALID, where,
                         "nothing lies beyond the one %s of this machine; \"%s\": 2 makes it two",
                         gpu ? "node" : "slice", gpu ? "nodes" : "slices");
    }
    if (dcn != NULL && gpu) {
        (void)snprintf(where, sizeof where, "/machine/network/%s", dcn);
        return error_set(reterr, STATUS_INVALID, where, "GPUs have no slices; leave it out");
    }
    if (plan->switch_ports != 0 && plan->switch_ports < 4) {
        return error_set(reterr, STATUS_INVALID, "/machine/network/switch_ports",
                         "a switch of a tree has at least 4 ports, not %u", plan->switch_ports);
    }
    if (gpu && machine->chip.network.nvswitch_count == 0 && says_policy(plan->nvlink_policy))
        return error_set(reterr, STATUS_INVALID, "/machine/network/nvlink/policy",
                         "no switch joins the GPUs of %s, so no message has a choice of cables",
                         machine->chip.title);
    key = says_policy(plan->nvlink_policy)           ? "policy"
          : plan->nvlink_latency_ps != 0             ? "latency"
          : plan->nvlink_sharp != MACHINE_SHARP_AUTO ? "sharp"
                                                     : NULL;
    if (key != NULL && !gpu) {
        (void)snprintf(where, sizeof where, "/machine/network/nvlink/%s", key);
        return error_set(reterr, STATUS_INVALID, where, "%s has no NVLink", machine->chip.title);
    }
    return STATUS_OK;
}
