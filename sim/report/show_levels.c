#include "sim/report/show_levels.h"

#include <inttypes.h>

#include "sim/base/quantity.h"
#include "sim/base/strbuf.h"
#include "sim/base/units.h"
#include "sim/machine/machine.h"
#include "sim/machine/totals.h"
#include "sim/report/table.h"
#include "sim/report/table_fit.h"

enum {
    COLUMN_TIER = 12,
    COLUMN_UNITS = 28,
    COLUMN_HOLDS = 36,
    COLUMN_SWITCHES = 46,
    COLUMN_PORTS = 56,
    COLUMN_CABLES = 67,
    COLUMN_UNIT = 84,
    COLUMN_PAIR = 95,
    COLUMN_SHARE = 106,
    COLUMN_LATENCY = 117,
    COLUMN_POLICY = 126,
    COLUMN_TOTAL = 24,
};

static void add_rate(struct strbuf *text, uint32_t column, uint64_t bytes_per_s)
{
    char buffer[QUANTITY_TEXT_BYTES];
    strbuf_pad(text, column);
    strbuf_add(text, "%s", quantity_text_rate(buffer, (double)bytes_per_s, "B/s"));
}

/* "1x32": a whole unit along each axis. */
static void add_box(struct strbuf *text, const struct machine *machine,
                    const struct level_tier *tier)
{
    for (uint32_t axis = 0; axis < machine->axis_count; axis++) {
        uint32_t const box = tier->box[axis];
        uint32_t const length = machine->shape[axis];
        strbuf_add(text, "%s%u", axis == 0 ? "" : "x", box < length ? box : length);
    }
}

static void add_tier(struct strbuf *text, const struct machine *machine, uint32_t level,
                     uint32_t index)
{
    const struct level_tier *tier = &machine->level[level].tier[index];
    struct tier_totals totals;
    char buffer[QUANTITY_TEXT_BYTES];
    totals_of_tier(machine, level, index, &totals);
    strbuf_add(text, "%s", index == 0 ? machine->level[level].name : "");
    strbuf_pad(text, COLUMN_TIER);
    strbuf_add(text, "%s", tier->name);
    strbuf_pad(text, COLUMN_UNITS);
    strbuf_add(text, "%u", totals.unit_count);
    strbuf_pad(text, COLUMN_HOLDS);
    add_box(text, machine, tier);
    strbuf_pad(text, COLUMN_SWITCHES);
    if (tier->switch_ports == 0)
        strbuf_add(text, "-");
    else
        strbuf_add(text, "%" PRIu64, totals.switch_count);
    strbuf_pad(text, COLUMN_PORTS);
    if (tier->switch_ports == 0)
        strbuf_add(text, "-");
    else
        strbuf_add(text, "%u of %u", totals.ports_used, tier->switch_ports);
    strbuf_pad(text, COLUMN_CABLES);
    strbuf_add(text, "%u x %s", tier->cable_count,
               quantity_text_rate(buffer, (double)tier->cable_bytes_per_s, "B/s"));
    add_rate(text, COLUMN_UNIT, totals.unit_bytes_per_s);
    add_rate(text, COLUMN_PAIR, totals.pair_bytes_per_s);
    add_rate(text, COLUMN_SHARE, totals.share_bytes_per_s);
    strbuf_pad(text, COLUMN_LATENCY);
    strbuf_add(text, "%s", quantity_text_seconds(buffer, units_seconds(tier->latency_ps)));
    strbuf_pad(text, COLUMN_POLICY);
    strbuf_add(text, "%s", level_policy_name(tier->policy));
    if (tier->reduce_flop_per_s != 0)
        strbuf_add(text, ", SHARP %s",
                   quantity_text_rate(buffer, (double)tier->reduce_flop_per_s, "FLOP/s"));
    strbuf_add(text, "\n");
}

void show_levels(const struct machine *machine, struct strbuf *text)
{
    static const struct {
        uint32_t column;
        const char *name;
    } heads[] = {
        {COLUMN_TIER, "tier"},         {COLUMN_UNITS, "units"},  {COLUMN_HOLDS, "hold"},
        {COLUMN_SWITCHES, "switches"}, {COLUMN_PORTS, "ports"},  {COLUMN_CABLES, "cables up"},
        {COLUMN_UNIT, "into one"},     {COLUMN_PAIR, "pair"},    {COLUMN_SHARE, "all"},
        {COLUMN_LATENCY, "one way"},   {COLUMN_POLICY, "policy"}};
    if (machine->level_count == 0) return;
    strbuf_add(text, "\n");
    uint64_t const table = table_open(text);
    strbuf_add(text, "level");
    for (uint32_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        strbuf_pad(text, heads[i].column);
        strbuf_add(text, "%s", heads[i].name);
    }
    strbuf_add(text, "\n");
    for (uint32_t level = 0; level < machine->level_count; level++)
        for (uint32_t tier = 0; tier < machine->level[level].tier_count; tier++)
            add_tier(text, machine, level, tier);
    table_close(text, table, COLUMN_UNITS);
    table_wrap(text, 0,
               "Cables lead from each unit of the tier below into one of this tier, and as many "
               "back; rates are one way. Chips that meet in a tier have `pair` while they are "
               "alone, and `all` while all chips send there.");
    if (machine->level[0].tier[0].policy == LEVEL_PAIR)
        table_wrap(text, 0,
                   "Under `pair` each two chips have a link of their own: what one sends to one "
                   "other has that link, and `all` is what it sends to all others at once.");
    if (machine->level[0].tier[0].assumed)
        strbuf_add(
            text,
            "No node is sold with this number of GPUs: assumed is one switch for each of a GPU's "
            "links%s.\n",
            machine->level[0].tier_count == 2 ? ",\nand a second tier that never is in the way"
                                              : "");
}

static void add_total(struct strbuf *text, const char *name, uint64_t bytes_per_s)
{
    if (bytes_per_s == 0) return;
    strbuf_add(text, "  %s", name);
    add_rate(text, COLUMN_TOTAL, bytes_per_s);
    strbuf_add(text, "\n");
}

/* "512 NVSwitches, 32 leaves, ..." as counts behind tier names. */
static void add_switches(struct strbuf *text, const struct machine *machine, uint64_t count)
{
    const char *before = " (";
    if (count == 0) return;
    strbuf_add(text, "  switches");
    strbuf_pad(text, COLUMN_TOTAL);
    strbuf_add(text, "%" PRIu64, count);
    for (uint32_t level = 0; level < machine->level_count; level++)
        for (uint32_t tier = 0; tier < machine->level[level].tier_count; tier++) {
            struct tier_totals totals;
            if (machine->level[level].tier[tier].switch_ports == 0) continue;
            totals_of_tier(machine, level, tier, &totals);
            strbuf_add(text, "%s%" PRIu64 " %s", before, totals.switch_count,
                       machine->level[level].tier[tier].name);
            before = ", ";
        }
    strbuf_add(text, ")\n");
}

void show_totals(const struct machine *machine, struct strbuf *text)
{
    bool const gpu = machine->chip.kind == CHIP_GPU;
    bool const far = machine->level_count > (gpu ? 1u : 0u);
    struct machine_totals totals;
    totals_of_machine(machine, &totals);
    strbuf_add(text, "\ntotals, one way\n");
    add_total(text, gpu ? "egress of a GPU" : "egress of a chip", totals.chip_egress_bytes_per_s);
    if (gpu || far)
        add_total(text, gpu ? "egress of a node" : "egress of a host",
                  totals.unit_egress_bytes_per_s);
    if (far && !gpu) add_total(text, "bisection of a slice", totals.slice_bisection_bytes_per_s);
    add_total(text, "bisection", totals.bisection_bytes_per_s);
    add_switches(text, machine, totals.switch_count);
}
