#include "sim/collective/hosts.h"

#include "sim/machine/machine.h"

/* Ranks along slices; 1: the group lies in one slice. */
static uint64_t slices_of(const struct group *group)
{
    uint64_t slices = 1;
    for (uint32_t d = 0; d < group->dimension_count; d++)
        if (group->dimension[d].switched) slices *= group->dimension[d].size;
    return slices;
}

/* Messages of a rank to other slices. */
static uint64_t messages_of(enum collective_kind kind, uint64_t slices)
{
    if (kind == COLLECTIVE_PERMUTE) return 1;
    return (kind == COLLECTIVE_ALL_REDUCE ? 2 : 1) * (slices - 1);
}

static uint64_t hosts_of(const struct machine *machine, uint64_t slices)
{
    const struct chip_network *network = &machine->chip.network;
    uint64_t chips = 1;
    for (uint32_t axis = 0; axis < machine->grid_axis_count; axis++) chips *= machine->shape[axis];
    uint64_t const hosts = chips / (network->host_chips == 0 ? 1 : network->host_chips);
    return slices * (hosts == 0 ? 1 : hosts);
}

static int64_t slowest_ps(int64_t mean_ps, uint64_t hosts)
{
    int64_t sum_ps = 0;
    for (uint64_t i = 1; mean_ps != 0 && i <= hosts; i++) sum_ps += mean_ps / (int64_t)i;
    return sum_ps;
}

int64_t hosts_begin_ps(const struct machine *machine, const struct plan_request *request)
{
    const struct chip_dcn *dcn = &machine->chip.pod.dcn;
    uint64_t const slices = slices_of(&request->group);
    if (machine->chip.kind != CHIP_TPU || slices == 1) return 0;
    return dcn->begin_ps + (int64_t)messages_of(request->kind, slices) * dcn->message_ps +
           slowest_ps(dcn->spread_ps, hosts_of(machine, slices));
}

void hosts_begin(const struct machine *machine, struct plan_request *request)
{
    int64_t const begin_ps = hosts_begin_ps(machine, request);
    if (begin_ps == 0) return;
    request->protocol = (struct plan_protocol){.name = "hosts", .begin_ps = begin_ps};
}
