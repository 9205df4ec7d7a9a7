/* What a tier of a machine's network is, left of its boxes. */
#include <stdio.h>

#include "sim/base/counted.h"
#include "sim/base/quantity.h"
#include "sim/base/svg.h"
#include "sim/base/units.h"
#include "sim/machine/machine.h"
#include "sim/machine/totals.h"
#include "sim/report/machine_svg_parts.h"

/* How messages are laid on the cables between two units. */
static const char *policy_words(enum level_policy policy)
{
    return policy == LEVEL_HASH   ? "a flow keeps the cable that a hash names"
           : policy == LEVEL_RAIL ? "a flow keeps the cable of its position"
                                  : "messages are spread over all cables";
}

const char *tier_name(const struct level_tier *tier)
{
    return tier->shares_nic ? "shared NIC" : tier->name;
}

/* The height of the next line of words. */
static double next(double *y)
{
    return *y += 15;
}

/* Ports have a line of their own: a heading with them would reach into the boxes. */
static void say_heading(struct drawing *drawing, const struct level_tier *tier, bool bare,
                        const struct tier_totals *totals, double *y)
{
    if (tier->switch_ports != 0) {
        svg_say(drawing->text, 20, *y, "head", "%s: %s", tier->name,
                counted(totals->switch_count, "switch").text);
        svg_say(drawing->text, 20, next(y), "small", "%u ports each, %u used", tier->switch_ports,
                totals->ports_used);
    } else if (bare) {
        svg_say(drawing->text, 20, *y, "head", "%s: %s", tier->name,
                counted(totals->unit_count, "node").text);
    } else {
        svg_say(drawing->text, 20, *y, "head", "%s: %u", tier_name(tier), totals->unit_count);
    }
}

/* The switches of a node are drawn below its GPUs, any other tier above what it joins. */
static void say_cables(struct drawing *drawing, uint32_t level, uint32_t index, bool bare,
                       const struct tier_totals *totals, double y)
{
    const struct machine *machine = drawing->machine;
    const struct level_tier *tier = &machine->level[level].tier[index];
    char from[32] = "up from each below", rate[QUANTITY_TEXT_BYTES];
    if (bare)
        (void)snprintf(from, sizeof from, "from each to the others");
    else if (level == 0 && machine->chip.kind == CHIP_GPU && index == 0)
        (void)snprintf(from, sizeof from, "from each GPU");
    else if (level == 0 && machine->chip.kind == CHIP_GPU)
        (void)snprintf(from, sizeof from, "from every %u GPUs", tier[-1].box[0]);
    svg_say(
        drawing->text, 20, y, "small", "%s: %u x %s %s", tier->cable_name,
        tier->cable_count * totals->links_per_cable,
        quantity_text_rate(rate, (double)tier->cable_bytes_per_s / totals->links_per_cable, "B/s"),
        from);
}

void tier_say(struct drawing *drawing, uint32_t level, uint32_t index)
{
    const struct level_tier *tier = &drawing->machine->level[level].tier[index];
    struct tier_totals totals;
    char rate[QUANTITY_TEXT_BYTES], latency[QUANTITY_TEXT_BYTES] = "";
    double y = drawing->y + 12;
    totals_of_tier(drawing->machine, level, index, &totals);
    bool const bare = level == 0 && machine_lacks_switch(drawing->machine, 0);
    say_heading(drawing, tier, bare, &totals, &y);
    say_cables(drawing, level, index, bare, &totals, next(&y));
    if (!tier->shares_nic) quantity_text_seconds(latency, units_seconds(tier->latency_ps));
    svg_say(drawing->text, 20, next(&y), "small", "%s one: %s%s%s%s", bare ? "in" : "into",
            quantity_text_rate(rate, (double)totals.unit_bytes_per_s, "B/s"),
            latency[0] == '\0' ? "" : ", ", latency, latency[0] == '\0' ? "" : " one way");
    if (bare || tier->cable_count > 1)
        svg_words(drawing->text, 20, next(&y), "small",
                  tier->policy == LEVEL_PAIR ? "no switch: each pair has a link"
                  : bare                     ? "no switch"
                                             : policy_words(tier->policy));
    if (tier->reduce_flop_per_s != 0)
        svg_say(drawing->text, 20, next(&y), "small", "SHARP: %s a unit",
                quantity_text_rate(rate, (double)tier->reduce_flop_per_s, "FLOP/s"));
}
