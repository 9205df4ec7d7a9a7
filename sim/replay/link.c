#include "sim/replay/link.h"

#include "sim/base/arena.h"
#include "sim/replay/state.h"

enum status grid_links_build(struct arena *arena, struct replay *replay, struct error *reterr)
{
    const struct machine *machine = replay->machine;
    void *memory = NULL;
    replay->grid.port_count = 2 * machine->grid_axis_count;
    STATUS_TRY(arena_try(arena, (uint64_t)replay->grid.port_count * replay->chip_count,
                         sizeof *replay->grid.neighbour, &memory, reterr));
    replay->grid.neighbour = memory;
    for (uint32_t chip = 0; chip < replay->chip_count; chip++) {
        uint32_t const real = fold_machine_chip(replay->fold, machine, chip);
        for (uint32_t port = 0; port < replay->grid.port_count; port++) {
            replay->grid.neighbour[(uint64_t)port * replay->chip_count + chip] =
                machine_has_link(machine, real, port)
                    ? fold_neighbour(replay->fold, machine, chip, port)
                    : UINT32_MAX;
        }
    }
    return STATUS_OK;
}
