#include "sim/machine/overrides.h"

#include <stdio.h>

#include "sim/base/arena.h"
#include "sim/base/units.h"

enum { WHERE_BYTES = 48, AT_BYTES = 48 };

static const uint64_t rate_max_bytes_per_s = 1000000000000000; /* 1 PB/s */
static const int64_t latency_max_ps = TIME_PS_PER_S;

static const char *at_text(char *buffer, const struct machine *machine,
                           const uint32_t at[MACHINE_AXES_MAX])
{
    int used = 0;
    for (uint32_t axis = 0; axis < machine->axis_count; axis++) {
        char const before = axis == 0 ? '[' : ',';
        used += snprintf(buffer + used, (size_t)(AT_BYTES - used), "%c%u", before, at[axis]);
    }
    (void)snprintf(buffer + used, (size_t)(AT_BYTES - used), "]");
    return buffer;
}

/* Coordinates beyond the machine's axes must be 0 (or any): they name nothing. */
static enum status check_at(const struct machine *machine, const uint32_t at[MACHINE_AXES_MAX],
                            bool any_allowed, const char *where, struct error *reterr)
{
    for (uint32_t axis = 0; axis < MACHINE_AXES_MAX; axis++) {
        if (at[axis] == machine_any) {
            if (any_allowed) continue;
            return error_set(reterr, STATUS_INVALID, where,
                             "a link is between two chips; * is not one");
        }
        if (at[axis] < machine->shape[axis]) continue;
        if (axis >= machine->axis_count) {
            return error_set(reterr, STATUS_INVALID, where,
                             "%u as coordinate %u: the machine has only %u %s", at[axis], axis + 1,
                             machine->axis_count, machine->axis_count == 1 ? "axis" : "axes");
        }
        return error_set(reterr, STATUS_INVALID, where, "%u on axis %s is not below its length, %u",
                         at[axis], machine_axis_name(machine, axis), machine->shape[axis]);
    }
    return STATUS_OK;
}

/* Whether a link, and no switch, joins two chips of one node. */
static bool joins_without_switch(const struct machine *machine, uint32_t level)
{
    for (uint32_t axis = 0; axis < machine->axis_count; axis++)
        if (machine->axis_level[axis] == level && machine_lacks_switch(machine, axis)) return true;
    return false;
}

static enum status check_link(const struct machine *machine,
                              const struct machine_link_override *link, uint32_t index,
                              struct error *reterr)
{
    char where[WHERE_BYTES];
    char from[AT_BYTES];
    char to[AT_BYTES];
    (void)snprintf(where, sizeof where, "/machine/links/%u/from", index);
    STATUS_TRY(check_at(machine, link->from, false, where, reterr));
    (void)snprintf(where, sizeof where, "/machine/links/%u/to", index);
    STATUS_TRY(check_at(machine, link->to, false, where, reterr));
    (void)snprintf(where, sizeof where, "/machine/links/%u", index);
    uint32_t const level = machine_level_between(machine, link->from, link->to);
    if (level != LEVEL_NONE) {
        return error_set(reterr, STATUS_UNSUPPORTED, where,
                         "%s and %s are joined by %s are all alike; only links of a grid can be "
                         "overridden",
                         at_text(from, machine, link->from), at_text(to, machine, link->to),
                         joins_without_switch(machine, level) ? "the links of a node, which"
                                                              : "switches, whose cables");
    }
    if (machine_port_between(machine, link->from, link->to) == MACHINE_PORTS_MAX) {
        return error_set(reterr, STATUS_INVALID, where,
                         "there is no link from %s to %s: links join neighbours on one axis",
                         at_text(from, machine, link->from), at_text(to, machine, link->to));
    }
    if (link->bytes_per_s == 0 && link->latency_ps == 0) {
        return error_set(reterr, STATUS_INVALID, where,
                         "a rate or a latency above 0 is needed, such as \"rate\": \"45GB/s\"");
    }
    if (link->bytes_per_s > rate_max_bytes_per_s)
        return error_set(reterr, STATUS_INVALID, where, "the rate is above 1 PB/s");
    if (link->latency_ps < 0 || link->latency_ps > latency_max_ps)
        return error_set(reterr, STATUS_INVALID, where, "the latency is not between 0 and 1 s");
    return STATUS_OK;
}

enum status overrides_check_links(struct arena *arena, const struct machine_plan *plan,
                                  struct machine *machine, struct error *reterr)
{
    void *memory = NULL;
    if (plan->link_count > MACHINE_OVERRIDES_MAX) {
        return error_set(reterr, STATUS_LIMIT, "/machine/links",
                         "%u links are more than the limit of %d", plan->link_count,
                         MACHINE_OVERRIDES_MAX);
    }
    STATUS_TRY(arena_try(arena, plan->link_count, sizeof(uint64_t), &memory, reterr));
    uint64_t *key = memory; /* Chip and port: which link each override means. */
    for (uint32_t i = 0; i < plan->link_count; i++) {
        const struct machine_link_override *link = &plan->links[i];
        STATUS_TRY(check_link(machine, link, i, reterr));
        key[i] = (uint64_t)machine_chip_at(machine, link->from) * MACHINE_PORTS_MAX +
                 machine_port_between(machine, link->from, link->to);
        for (uint32_t k = 0; k < i; k++) {
            char where[WHERE_BYTES];
            if (key[k] != key[i]) continue;
            (void)snprintf(where, sizeof where, "/machine/links/%u", i);
            return error_set(reterr, STATUS_INVALID, where,
                             "this link stands already at /machine/links/%u", k);
        }
    }
    machine->links = plan->links;
    machine->link_override_count = plan->link_count;
    return STATUS_OK;
}

static enum status check_ppm(uint32_t ppm, const char *what, uint32_t index, struct error *reterr)
{
    char where[WHERE_BYTES];
    if (ppm > 0 && ppm <= overrides_ppm_max) return STATUS_OK;
    (void)snprintf(where, sizeof where, "/machine/chips/%u/%s", index, what);
    return error_set(reterr, STATUS_INVALID, where,
                     "a chip's share of the rate is above 0 and at most %u",
                     overrides_ppm_max / PPM_ONE);
}

/* Writes an entry's number at all chips that the entry names. */
static void chips_enter(const struct machine *machine, const struct machine_chip_override *override,
                        uint32_t number, uint32_t *chip_entry)
{
    uint32_t at[MACHINE_AXES_MAX], axis = 0;
    for (uint32_t a = 0; a < MACHINE_AXES_MAX; a++)
        at[a] = override->at[a] == machine_any ? 0 : override->at[a];
    while (axis < machine->axis_count) {
        chip_entry[machine_chip_at(machine, at)] = number;
        for (axis = 0; axis < machine->axis_count; axis++) {
            if (override->at[axis] != machine_any) continue;
            if (++at[axis] < machine->shape[axis]) break;
            at[axis] = 0;
        }
    }
}

static bool same_chips(const struct machine *machine, const struct machine_chip_override *chip,
                       const struct machine_chip_override *other)
{
    for (uint32_t axis = 0; axis < machine->axis_count; axis++)
        if (chip->at[axis] != other->at[axis]) return false;
    return true;
}

static uint32_t first_chip(const struct machine *machine, const struct machine_chip_override *chip)
{
    uint32_t at[MACHINE_AXES_MAX];
    for (uint32_t axis = 0; axis < MACHINE_AXES_MAX; axis++)
        at[axis] = chip->at[axis] == machine_any ? 0 : chip->at[axis];
    return machine_chip_at(machine, at);
}

enum status overrides_check_chips(struct arena *arena, const struct machine_chip_override *chips,
                                  uint32_t count, struct machine *machine, struct error *reterr)
{
    if (count > MACHINE_OVERRIDES_MAX) {
        return error_set(reterr, STATUS_LIMIT, "/machine/chips",
                         "%u entries are more than the limit of %d", count, MACHINE_OVERRIDES_MAX);
    }
    machine->chips = chips;
    machine->chip_override_count = count;
    machine->chip_entry = NULL;
    if (count == 0) return STATUS_OK;
    void *memory = NULL;
    STATUS_TRY(arena_try(arena, machine->chip_count, sizeof(uint32_t), &memory, reterr));
    uint32_t *last = memory; /* [chip]: 1 + the last entry whose first chip it is; 0: none. */
    STATUS_TRY(arena_try(arena, count, sizeof(uint32_t), &memory, reterr));
    uint32_t *before = memory; /* [entry]: the entry before with that first chip, likewise. */
    for (uint32_t i = 0; i < count; i++) {
        const struct machine_chip_override *chip = &chips[i];
        char where[WHERE_BYTES];
        (void)snprintf(where, sizeof where, "/machine/chips/%u/at", i);
        STATUS_TRY(check_at(machine, chip->at, true, where, reterr));
        STATUS_TRY(check_ppm(chip->math_ppm, "math", i, reterr));
        STATUS_TRY(check_ppm(chip->hbm_ppm, "hbm", i, reterr));
        uint32_t const first = first_chip(machine, chip);
        for (uint32_t k = last[first]; k > 0; k = before[k - 1]) {
            if (!same_chips(machine, chip, &chips[k - 1])) continue;
            return error_set(reterr, STATUS_INVALID, where,
                             "these chips stand already at /machine/chips/%u", k - 1);
        }
        before[i] = last[first];
        last[first] = i + 1;
    }
    STATUS_TRY(arena_try(arena, machine->chip_count, sizeof(uint32_t), &memory, reterr));
    for (uint32_t i = 0; i < count; i++) chips_enter(machine, &chips[i], i + 1, memory);
    machine->chip_entry = memory;
    return STATUS_OK;
}
