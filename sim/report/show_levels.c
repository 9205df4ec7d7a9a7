#include "sim/report/show_levels.h"

#include <inttypes.h>
#include <stdio.h>

#include "sim/base/strbuf.h"
#include "sim/machine/machine.h"
#include "sim/machine/totals.h"
#include "sim/report/column_table.h"
#include "sim/report/table_fit.h"

enum { CELL_BYTES = 64 };

#define TIERS(X)                                                                                   \
    X(TIER_LEVEL, NULL, WORDS(level), SHOWN(NULL, "level", -11, column_words))                     \
    X(TIER, NULL, WORDS(tier->name), SHOWN(NULL, "tier", -16, column_words))                       \
    X(TIER_UNITS, NULL, WHOLE(totals.unit_count), SHOWN(NULL, "units", -8, column_plain))          \
    X(TIER_HOLD, NULL, WORDS(box), SHOWN(NULL, "hold", -10, column_words))                         \
    X(TIER_SWITCHES, NULL, OR_NULL(has_switches, WHOLE(totals.switch_count)),                      \
      SHOWN(NULL, "switches", -10, column_plain))                                                  \
    X(TIER_PORTS, NULL, OR_NULL(has_switches, WORDS(ports)),                                       \
      SHOWN(NULL, "ports", -11, column_words))                                                     \
    X(TIER_CABLES, NULL, WORDS(cables), SHOWN(NULL, "cables up", -17, column_words))               \
    X(TIER_UNIT, NULL, WHOLE(totals.unit_bytes_per_s), SHOWN(NULL, "into one", -11, column_rate))  \
    X(TIER_PAIR, NULL, WHOLE(totals.pair_bytes_per_s), SHOWN(NULL, "pair", -11, column_rate))      \
    X(TIER_SHARE, NULL, WHOLE(totals.share_bytes_per_s), SHOWN(NULL, "all", -11, column_rate))     \
    X(TIER_LATENCY, NULL, OR_NULL(!tier->shares_nic, SECONDS(tier->latency_ps)),                   \
      SHOWN(NULL, "one way", -9, column_seconds))                                                  \
    X(TIER_POLICY, NULL, WORDS(policy), SHOWN(NULL, "policy", -8, column_words))

enum { TIERS(COLUMN_NAME) TIERS_TOTAL };
static const struct column tiers[] = {TIERS(COLUMN_ENTRY)};
static const struct column_line tiers_line = COLUMN_ALL(tiers);
enum { LABEL_COLUMNS = 28 }; /* Level and tier. */

/* "1x32": a whole unit along each axis. */
static const char *box_text(char buffer[CELL_BYTES], const struct machine *machine,
                            const struct level_tier *tier)
{
    int used = 0;
    for (uint32_t axis = 0; axis < machine->axis_count; axis++) {
        uint32_t const box = tier->box[axis], length = machine->shape[axis];
        used += snprintf(buffer + used, (size_t)(CELL_BYTES - used), "%s%u", axis == 0 ? "" : "x",
                         box < length ? box : length);
    }
    return buffer;
}

static void add_tier(struct strbuf *text, const struct machine *machine, uint32_t of,
                     uint32_t index)
{
    const struct level_tier *tier = &machine->level[of].tier[index];
    const char *const level = index == 0 ? machine->level[of].name : "";
    bool const has_switches = tier->switch_ports != 0, adds = tier->reduce_flop_per_s != 0;
    char box[CELL_BYTES], ports[CELL_BYTES], cables[CELL_BYTES], policy[CELL_BYTES];
    struct tier_totals totals;
    struct column_value ret_values[TIERS_TOTAL];
    totals_of_tier(machine, of, index, &totals);
    (void)box_text(box, machine, tier);
    (void)snprintf(ports, sizeof ports, "%u of %u", totals.ports_used, tier->switch_ports);
    (void)snprintf(cables, sizeof cables, "%u x %s", tier->cable_count * totals.links_per_cable,
                   table_rate((double)tier->cable_bytes_per_s / totals.links_per_cable).text);
    (void)snprintf(policy, sizeof policy, "%s%s%s", level_policy_name(tier->policy),
                   adds ? ", SHARP " : "",
                   adds ? table_flop_rate((double)tier->reduce_flop_per_s).text : "");
    TIERS(COLUMN_FIND)
    column_add_figure_line(&tiers_line, ret_values, text);
}

void show_levels(const struct machine *machine, struct strbuf *text)
{
    if (machine->level_count == 0) return;
    strbuf_add(text, "\n");
    uint64_t const table = table_open(text);
    column_add_heading_line(&tiers_line, text);
    for (uint32_t level = 0; level < machine->level_count; level++)
        for (uint32_t tier = 0; tier < machine->level[level].tier_count; tier++)
            add_tier(text, machine, level, tier);
    table_close(text, table, LABEL_COLUMNS);
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
    table_label(text, name);
    strbuf_add(text, "%s\n", table_rate((double)bytes_per_s).text);
}

/* "512 NVSwitches, 32 leaves, ..." as counts behind tier names. */
static void add_switches(struct strbuf *text, const struct machine *machine, uint64_t count)
{
    const char *before = " (";
    if (count == 0) return;
    table_label(text, "switches");
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
    struct strbuf rows = {.columns = text->columns};
    totals_of_machine(machine, &totals);
    add_total(&rows, gpu ? "egress of a GPU" : "egress of a chip", totals.chip_egress_bytes_per_s);
    if (gpu || far)
        add_total(&rows, gpu ? "egress of a node" : "egress of a host",
                  totals.unit_egress_bytes_per_s);
    if (far && !gpu) add_total(&rows, "bisection of a slice", totals.slice_bisection_bytes_per_s);
    add_total(&rows, "bisection", totals.bisection_bytes_per_s);
    add_switches(&rows, machine, totals.switch_count);
    /* A chip alone sends nothing anywhere. */
    if (rows.size_bytes > 0) strbuf_add(text, "\ntotals, one way\n%s", rows.bytes);
    text->failed = text->failed || rows.failed;
    strbuf_free(&rows);
}
