#include "sim/replay/link.h"

#include "sim/base/arena.h"
#include "sim/fold/fold.h"
#include "sim/machine/machine.h"

enum status grid_links_build(struct arena *arena, const struct machine *machine,
                             const struct fold *fold, struct grid_links *ret_grid,
                             struct error *reterr)
{
    uint32_t const port_count = 2 * machine->grid_axis_count;
    void *memory = NULL;
    STATUS_TRY(arena_try(arena, (uint64_t)port_count * fold->chip_count,
                         sizeof *ret_grid->neighbour, &memory, reterr));
    ret_grid->port_count = port_count;
    ret_grid->neighbour = memory;
    for (uint32_t chip = 0; chip < fold->chip_count; chip++) {
        uint32_t const real = fold_machine_chip(fold, machine, chip);
        for (uint32_t port = 0; port < port_count; port++)
            ret_grid->neighbour[(uint64_t)port * fold->chip_count + chip] =
                machine_has_link(machine, real, port) ? fold_neighbour(fold, machine, chip, port)
                                                      : UINT32_MAX;
    }
    return STATUS_OK;
}
