/* Boxes in a row, and the cables between two rows. */
#include "sim/base/counted.h"
#include "sim/base/svg.h"
#include "sim/machine/machine.h"
#include "sim/report/machine_svg_parts.h"

void row_choose(struct unit_row *row, uint32_t units, uint32_t most)
{
    row->count = units < most ? units : most;
    for (uint32_t i = 0; i < row->count; i++) row->unit[i] = i;
    if (units > most) row->unit[most - 1] = units - 1;
}

void row_add(struct unit_row *row, uint32_t unit)
{
    for (uint32_t i = 0; i < row->count; i++)
        if (row->unit[i] == unit) return;
    if (row->count < MACHINE_SVG_UNITS_MAX) row->unit[row->count++] = unit;
}

double row_pitch(const struct unit_row *row)
{
    return (double)(MACHINE_SVG_RIGHT - MACHINE_SVG_LEFT) / row->count;
}

void row_draw_unit(struct drawing *drawing, const struct level_tier *tier, struct point middle,
                   double width, uint32_t unit, uint32_t slices, uint32_t units)
{
    bool const counts_switches = tier->switch_ports != 0 && tier->switch_count > 1;
    bool const has_three_lines = slices != 0 && counts_switches;
    double y = middle.y - MACHINE_SVG_BOX_HEIGHT / 2.0;
    svg_box(drawing->text, middle.x - width / 2, y, width, MACHINE_SVG_BOX_HEIGHT, "switch");
    y += has_three_lines ? 14 : 17;
    svg_say(drawing->text, middle.x, y, "mid", "%s %u", tier_name(tier),
            unit / (slices == 0 ? 1 : slices));
    y += has_three_lines ? 11 : 15;
    if (slices != 0 && (units == slices || units <= MACHINE_SVG_UNITS_SHOWN))
        svg_say(drawing->text, middle.x, y, "tiny mid", "of slice %u", unit % slices);
    else if (slices != 0)
        svg_say(drawing->text, middle.x, y, "tiny mid", "of slice %u, \xe2\x80\xa6 x %u",
                unit % slices, units / slices);
    if (has_three_lines) y += 11;
    if (counts_switches)
        svg_say(drawing->text, middle.x, y, "tiny mid", "%s",
                counted(tier->switch_count, "switch").text);
}

void row_say_gaps(struct drawing *drawing, const struct unit_row *row, bool in_slice,
                  uint32_t units)
{
    for (uint32_t i = 0; units > row->count && i + 1 < row->count; i++) {
        struct point const a = row->middle[i], b = row->middle[i + 1];
        bool const is_gap = in_slice ? i + 2 == row->count : row->unit[i] + 1 != row->unit[i + 1];
        if (is_gap) svg_words(drawing->text, (a.x + b.x) / 2, a.y + 4, "mid", "\xe2\x80\xa6");
    }
}

void row_say_more(struct drawing *drawing, const struct unit_row *row, uint32_t units, double y)
{
    if (row->count < 2 || units <= row->count) return;
    struct point const a = row->middle[row->count - 2], b = row->middle[row->count - 1];
    svg_say(drawing->text, (a.x + b.x) / 2, y, "mid", "\xe2\x80\xa6 x %u", units);
}

void row_draw_cable(struct drawing *drawing, struct point from, struct unit_row *above,
                    uint32_t unit)
{
    for (uint32_t k = 0; k < above->count; k++)
        if (above->unit[k] == unit) {
            above->reached[k] = true;
            svg_line(drawing->text, from.x, from.y, above->middle[k].x,
                     above->middle[k].y + MACHINE_SVG_BOX_HEIGHT / 2.0, "cable");
            return;
        }
    svg_line(drawing->text, from.x, from.y, from.x, from.y - 16, "cable goes");
}

void row_draw_stubs(struct drawing *drawing, const struct unit_row *row)
{
    for (uint32_t k = 0; k < row->count; k++) {
        double const x = row->middle[k].x, y = row->middle[k].y + MACHINE_SVG_BOX_HEIGHT / 2.0;
        if (!row->reached[k]) svg_line(drawing->text, x, y, x, y + 16, "cable goes");
    }
}
