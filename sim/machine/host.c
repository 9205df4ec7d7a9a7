#include "sim/machine/host.h"

#include "sim/machine/machine.h"

void host_build(struct machine *machine)
{
    const struct chip *chip = &machine->chip;
    const struct chip_network *network = &chip->network;
    struct machine_host *host = &machine->host;
    *host = (struct machine_host){
        .cable_name = "PCIe",
        .port_name = {"PCIe up", "PCIe down"},
        .bytes_per_s = chip->pcie_bytes_per_s,
        .latency_ps = network->host_latency_ps,
        .box = {1, 1, 1, 1},
        .level = LEVEL_NONE,
    };
    if (network->c2c_bytes_per_s != 0) {
        host->cable_name = "C2C";
        host->port_name[0] = "C2C up";
        host->port_name[1] = "C2C down";
        host->bytes_per_s = network->c2c_bytes_per_s;
        host->box[0] = network->host_chips;
    }
    if (chip->kind == CHIP_TPU && machine->level_count > 0) host->level = 0;
}

uint32_t host_sharers(const struct machine *machine)
{
    uint32_t sharers = 1;
    for (uint32_t axis = 0; axis < machine->axis_count; axis++) {
        uint32_t const box = machine->host.box[axis], length = machine->shape[axis];
        sharers *= box < length ? box : length;
    }
    return sharers;
}
