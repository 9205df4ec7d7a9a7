/* Overridden chips and links of the machine. */
#include <string.h>

#include "sim/base/arena.h"
#include "sim/fold/fold_input.h"

static uint16_t chip_class_find(struct fold *fold, const struct machine_chip_override *override)
{
    for (uint32_t i = 0; i < fold->chip_class_count; i++) {
        const struct fold_chip_class *known = &fold->chip_classes[i];
        if (known->math_ppm == override->math_ppm && known->hbm_ppm == override->hbm_ppm)
            return (uint16_t)i;
    }
    SIM_ASSERT(fold->chip_class_count < FOLD_CHIP_CLASSES_MAX);
    fold->chip_classes[fold->chip_class_count] =
        (struct fold_chip_class){.math_ppm = override->math_ppm, .hbm_ppm = override->hbm_ppm};
    return (uint16_t)fold->chip_class_count++;
}

static enum status link_class_find(const struct machine *machine,
                                   const struct machine_link_override *override, struct fold *fold,
                                   uint8_t *ret_class, struct error *reterr)
{
    struct fold_link_class wanted;
    machine_override_rate(machine, override, &wanted.bytes_per_s, &wanted.latency_ps);
    for (uint32_t i = 0; i < fold->link_class_count; i++) {
        const struct fold_link_class *known = &fold->link_classes[i];
        if (known->bytes_per_s == wanted.bytes_per_s && known->latency_ps == wanted.latency_ps) {
            *ret_class = (uint8_t)i;
            return STATUS_OK;
        }
    }
    if (fold->link_class_count == FOLD_LINK_CLASSES_MAX) {
        return error_set(reterr, STATUS_LIMIT, "/machine/links",
                         "more than %d different kinds of links", FOLD_LINK_CLASSES_MAX);
    }
    fold->link_classes[fold->link_class_count] = wanted;
    *ret_class = (uint8_t)fold->link_class_count++;
    return STATUS_OK;
}

static enum status chip_classes_find(struct arena *arena, const struct machine *machine,
                                     struct fold *fold, struct fold_overrides *overrides,
                                     struct error *reterr)
{
    void *memory = NULL;
    STATUS_TRY(arena_try(arena, machine->chip_override_count, sizeof(uint16_t), &memory, reterr));
    uint16_t *entry_class = memory;
    for (uint32_t i = 0; i < machine->chip_override_count; i++)
        entry_class[i] = chip_class_find(fold, &machine->chips[i]);
    STATUS_TRY(arena_try(arena, machine->chip_count, sizeof(uint16_t), &memory, reterr));
    uint16_t *chip_class = memory;
    for (uint32_t chip = 0; chip < machine->chip_count; chip++) {
        uint32_t const entry = machine->chip_entry[chip];
        chip_class[chip] = entry == 0 ? 0 : entry_class[entry - 1];
        overrides->chips_differ = overrides->chips_differ || chip_class[chip] != chip_class[0];
    }
    if (overrides->chips_differ || chip_class[0] != 0) overrides->chip_class = chip_class;
    return STATUS_OK;
}

static enum status link_classes_find(struct arena *arena, const struct machine *machine,
                                     struct fold *fold, struct fold_overrides *overrides,
                                     struct error *reterr)
{
    void *memory = NULL;
    STATUS_TRY(
        arena_try(arena, (uint64_t)machine->chip_count * MACHINE_PORTS_MAX, 1, &memory, reterr));
    uint8_t *link_class = memory;
    for (uint32_t i = 0; i < machine->link_override_count; i++) {
        const struct machine_link_override *link = &machine->links[i];
        uint8_t kind = 0;
        STATUS_TRY(link_class_find(machine, link, fold, &kind, reterr));
        uint32_t const port = machine_port_between(machine, link->from, link->to);
        SIM_ASSERT(port < MACHINE_PORTS_MAX);
        link_class[(uint64_t)machine_chip_at(machine, link->from) * MACHINE_PORTS_MAX + port] =
            kind;
        if (kind != 0) overrides->link_class = link_class;
    }
    return STATUS_OK;
}

enum status fold_overrides_find(struct arena *arena, const struct machine *machine,
                                struct fold *fold, struct fold_overrides *overrides,
                                struct error *reterr)
{
    if (machine->chip_override_count > 0)
        STATUS_TRY(chip_classes_find(arena, machine, fold, overrides, reterr));
    if (machine->link_override_count > 0)
        STATUS_TRY(link_classes_find(arena, machine, fold, overrides, reterr));
    return STATUS_OK;
}

bool fold_overrides_repeat(const struct machine *machine, const struct fold_overrides *overrides,
                           uint32_t axis, uint32_t period)
{
    if (fold_overrides_even(overrides)) return true;
    for (uint32_t chip = 0; chip < machine->chip_count; chip++) {
        uint32_t at[MACHINE_AXES_MAX];
        machine_coordinates(machine, chip, at);
        at[axis] = (at[axis] + period) % machine->shape[axis];
        uint32_t const image = machine_chip_at(machine, at);
        if (overrides->chips_differ && overrides->chip_class[chip] != overrides->chip_class[image])
            return false;
        if (overrides->link_class == NULL) continue;
        for (uint32_t port = 0; port < MACHINE_PORTS_MAX; port++) {
            if (overrides->link_class[(uint64_t)chip * MACHINE_PORTS_MAX + port] !=
                overrides->link_class[(uint64_t)image * MACHINE_PORTS_MAX + port])
                return false;
        }
    }
    return true;
}
