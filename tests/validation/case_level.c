/*
 * Evaluators of what joins chips that are not neighbours: switches, cables and what can pass at
 * once, of a tier and of the whole machine (sim/machine/totals.h).
 */
#include <string.h>

#include "sim/machine/totals.h"
#include "tests/validation/case_parts.h"

static uint32_t level_of(const struct case_row *row, const struct machine *machine)
{
    const char *name = row_text(row, "level");
    for (uint32_t level = 0; level < machine->level_count; level++)
        if (strcmp(machine->level[level].name, name) == 0) return level;
    row_fail(row, "the machine has no level %s", name);
}

static uint32_t tier_of(const struct case_row *row, const struct level *level)
{
    const char *name = row_text(row, "tier");
    for (uint32_t tier = 0; tier < level->tier_count; tier++)
        if (strcmp(level->tier[tier].name, name) == 0) return tier;
    row_fail(row, "%s has no %s", level->name, name);
}

static struct case_value tier_number(const struct case_row *row)
{
    struct machine const machine = row_machine(row);
    uint32_t const level = level_of(row, &machine);
    struct tier_totals totals;
    uint32_t const tier = tier_of(row, &machine.level[level]);
    totals_of_tier(&machine, level, tier, &totals);
    const struct {
        const char *name;
        double value;
    } numbers[] = {
        {"switches", (double)totals.switch_count},
        {"unit_chips", level_box_chips(&machine, &machine.level[level], (int32_t)tier)},
        {"ports_used", totals.ports_used},
        {"cables", (double)totals.cable_count},
        {"cable_rate", (double)totals.cable_bytes_per_s},
        {"switch_rate", (double)totals.switch_bytes_per_s},
        {"unit_rate", (double)totals.unit_bytes_per_s},
        {"pair_rate", (double)totals.pair_bytes_per_s},
        {"share_rate", (double)totals.share_bytes_per_s},
    };
    const char *what = row_text(row, "what");
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (strcmp(numbers[i].name, what) == 0) return value_number(numbers[i].value);
    row_fail(row, "a tier has no %s", what);
}

static struct case_value machine_number(const struct case_row *row)
{
    struct machine const machine = row_machine(row);
    struct machine_totals totals;
    totals_of_machine(&machine, &totals);
    const struct {
        const char *name;
        double value;
    } numbers[] = {
        {"chips", machine.chip_count},
        {"far_units", machine.shape[machine.axis_count - 1]}, /* Nodes, slices. */
        {"switches", (double)totals.switch_count},
        {"chip_egress", (double)totals.chip_egress_bytes_per_s},
        {"unit_egress", (double)totals.unit_egress_bytes_per_s},
        {"bisection", (double)totals.bisection_bytes_per_s},
    };
    const char *what = row_text(row, "what");
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (strcmp(numbers[i].name, what) == 0) return value_number(numbers[i].value);
    row_fail(row, "a machine has no %s", what);
}

const struct case_evaluator case_level[] = {
    {"tier", tier_number}, {"machine", machine_number}, {NULL, NULL}};
