#include "sim/report/machine_svg.h"

#include <stddef.h>

#include "sim/base/counted.h"
#include "sim/base/quantity.h"
#include "sim/base/svg.h"
#include "sim/base/units.h"
#include "sim/machine/machine.h"
#include "sim/machine/totals.h"
#include "sim/report/machine_svg_parts.h"
#include "sim/report/words.h"

enum { SLICES_SHOWN = 3 };

static const char classes[] =
    ".switch { fill: #dce9f7; stroke: #3a6ea5 } .chip { fill: #f7e3c4; stroke: #a5722a }\n"
    ".node { fill: #f4f4f4; stroke: #888 } .host { fill: none; stroke: #3a6ea5 }\n"
    ".cable { stroke: #3a6ea5 } .near, .wrap, .gap, .mesh { stroke: #a5722a }\n"
    ".wrap { stroke-dasharray: 3 2 } .gap { stroke-dasharray: 2 3 } .goes { stroke-dasharray: 1 3 "
    "}\n"
    ".behind { opacity: 0.6 }\n";

static const char classes_dark[] =
    ".switch { fill: #1d3448; stroke: #7fb2e5 } .chip { fill: #4a3820; stroke: #e0a95c }\n"
    ".node { fill: #1e232b; stroke: #8a93a0 } .host, .cable { stroke: #7fb2e5 }\n"
    ".near, .wrap, .gap, .mesh { stroke: #e0a95c }\n";

/* The coordinates of a unit's first chip. */
static void unit_origin(const struct machine *machine, const struct level *level, uint32_t tier,
                        uint32_t unit, uint32_t ret_at[MACHINE_AXES_MAX])
{
    for (uint32_t axis = MACHINE_AXES_MAX; axis-- > 0;) {
        uint32_t const box = level->tier[tier].box[axis];
        uint32_t const count = (uint32_t)units_ceil_divide(machine->shape[axis], box);
        ret_at[axis] = unit % count * box;
        unit /= count;
    }
}

/* The units of a tier that have the chips that will be drawn below them. */
static void row_of_chips(const struct machine *machine, const struct level *level, int32_t tier,
                         struct unit_row *row)
{
    uint32_t at[MACHINE_AXES_MAX] = {0};
    uint32_t const last = machine->axis_count - 1;
    if (machine->chip.kind == CHIP_GPU) {
        for (; at[0] < machine->shape[0] && row->count + 1 < MACHINE_SVG_UNITS_MAX; at[0]++)
            row_add(row, level_unit(machine, level, tier, at));
    } else {
        for (uint32_t i = 0; i + 1 < SLICES_SHOWN && i < machine->shape[last]; i++) {
            at[last] = i;
            row_add(row, level_unit(machine, level, tier, at));
        }
    }
    for (uint32_t axis = 0; axis < machine->axis_count; axis++) at[axis] = machine->shape[axis] - 1;
    if (machine->chip.kind == CHIP_TPU)
        for (uint32_t axis = 0; axis < last; axis++) at[axis] = 0;
    row_add(row, level_unit(machine, level, tier, at));
}

/* Whether each unit of a tier lies in one slice. The slice is the fastest part of a unit's number,
 * so slice by slice they are counted by what is left of it. */
static bool lies_in_slice(const struct machine *machine, const struct level *level, uint32_t tier)
{
    return machine->chip.kind == CHIP_TPU && machine->axis_count > machine->grid_axis_count &&
           level->tier[tier].box[machine->axis_count - 1] == 1;
}

/* One storey of units as boxes, wired to the storey above. */
static void draw_tier(struct drawing *drawing, uint32_t level_index, uint32_t tier,
                      struct unit_row *above, struct unit_row *ret_row)
{
    const struct machine *machine = drawing->machine;
    const struct level *level = &machine->level[level_index];
    uint32_t const units = level_unit_count(machine, level, (int32_t)tier);
    struct unit_row row = {.count = 0};
    bool const in_slice = lies_in_slice(machine, level, tier);
    uint32_t const slices = in_slice ? machine->shape[machine->axis_count - 1] : 1;
    if ((tier == 0 || in_slice) && units > MACHINE_SVG_UNITS_SHOWN)
        row_of_chips(machine, level, (int32_t)tier, &row);
    else
        row_choose(&row, units, MACHINE_SVG_UNITS_SHOWN);
    /* Units of a slice stand next to each other. */
    for (uint32_t i = 0; units <= MACHINE_SVG_UNITS_SHOWN && i < units; i++)
        row.unit[i] = i % (units / slices) * slices + i / (units / slices);
    double const pitch = row_pitch(&row);
    double const width = pitch - 14 > 220 ? 220 : pitch - 14;
    tier_say(drawing, level_index, tier);
    for (uint32_t i = 0; i < row.count; i++) {
        uint32_t at[MACHINE_AXES_MAX];
        row.middle[i] = (struct point){MACHINE_SVG_LEFT + (i + 0.5) * pitch,
                                       drawing->y + MACHINE_SVG_BOX_HEIGHT / 2.0};
        row_draw_unit(drawing, &level->tier[tier], row.middle[i], width, row.unit[i],
                      in_slice ? slices : 0, units);
        unit_origin(machine, level, tier, row.unit[i], at);
        if (above != NULL)
            row_draw_cable(drawing, (struct point){row.middle[i].x, drawing->y}, above,
                           level_unit(machine, level, (int32_t)tier + 1, at));
    }
    if (above != NULL) row_draw_stubs(drawing, above);
    row_say_gaps(drawing, &row, in_slice, units);
    drawing->y += MACHINE_SVG_ROW_HEIGHT;
    *ret_row = row;
}

/* Every tier of a level, the highest first. */
static void draw_level(struct drawing *drawing, uint32_t level, struct unit_row *ret_lowest)
{
    struct unit_row above = {.count = 0};
    uint32_t tier = drawing->machine->level[level].tier_count;
    while (tier-- > 0) {
        struct unit_row own;
        bool const top = tier + 1 == drawing->machine->level[level].tier_count;
        draw_tier(drawing, level, tier, top ? NULL : &above, &own);
        above = own;
    }
    *ret_lowest = above;
}

/* Around the chips of each host in a slice a line, and from there the cables to the host. */
static void draw_hosts(struct drawing *drawing, const struct grid_layout *layout,
                       struct point corner, uint32_t slice, struct unit_row *hosts)
{
    const struct machine *machine = drawing->machine;
    const struct level *level = &machine->level[0];
    double const side = corner.x + layout->width - 5;
    for (uint32_t i = 0; i < hosts->count; i++) {
        uint32_t at[MACHINE_AXES_MAX];
        struct grid_port port;
        unit_origin(machine, level, 0, hosts->unit[i], at);
        if (at[machine->grid_axis_count] != slice ||
            !grid_outline(drawing, layout, corner, at, level->tier[0].box, &port))
            continue;
        struct point const from = port.is_right ? (struct point){side, corner.y} : port.at;
        if (port.is_right) {
            svg_path_begin(drawing->text, "cable");
            svg_path_to(drawing->text, from.x, from.y);
            svg_path_to(drawing->text, side, port.at.y);
            svg_path_to(drawing->text, port.at.x, port.at.y);
            svg_path_end(drawing->text);
        }
        row_draw_cable(drawing, from, hosts, hosts->unit[i]);
    }
}

static void draw_slices(struct drawing *drawing, struct unit_row *hosts)
{
    const struct machine *machine = drawing->machine;
    uint32_t const grid = machine->grid_axis_count;
    uint32_t const slices = machine->axis_count > grid ? machine->shape[grid] : 1;
    struct unit_row row = {.count = 0};
    struct grid_layout layout;
    row_choose(&row, slices, SLICES_SHOWN);
    double const pitch = row_pitch(&row);
    grid_layout_find(machine, pitch - 20, &layout);
    drawing->y += 24;
    grid_say_axes(drawing, &layout);
    for (uint32_t i = 0; i < row.count; i++) {
        double const room = slices > 1 ? pitch - layout.width : 0;
        struct point const corner = {MACHINE_SVG_LEFT + i * pitch + room / 2, drawing->y};
        row.middle[i] = (struct point){corner.x + layout.width / 2, drawing->y};
        grid_draw(drawing, &layout, corner);
        if (hosts == NULL) continue;
        svg_say(drawing->text, corner.x, drawing->y + layout.height + 14, "tiny", "slice %u",
                row.unit[i]);
        draw_hosts(drawing, &layout, corner, row.unit[i], hosts);
    }
    if (hosts != NULL) row_draw_stubs(drawing, hosts);
    row_say_more(drawing, &row, slices, drawing->y + layout.height + 28); /* Below their names. */
    drawing->y += (layout.height < 88 ? 88 : layout.height) + 40;
}

/* What a chip's host is reached by. */
static void draw_host(struct drawing *drawing)
{
    const struct chip *chip = &drawing->machine->chip;
    const struct chip_network *network = &chip->network;
    char rate[QUANTITY_TEXT_BYTES];
    bool const c2c = network->c2c_bytes_per_s != 0, gpu = chip->kind == CHIP_GPU;
    uint32_t chips = 1; /* A node, or a grid, may have fewer than a CPU has room for. */
    for (uint32_t axis = 0; axis < (gpu ? 1 : drawing->machine->grid_axis_count); axis++)
        chips *= drawing->machine->shape[axis];
    struct point const at = {MACHINE_SVG_LEFT, drawing->y};
    svg_say(drawing->text, 20, drawing->y + 12, "head", "host: %s a CPU",
            counted(network->host_chips < chips ? network->host_chips : chips, gpu ? "GPU" : "chip")
                .text);
    svg_box(drawing->text, at.x, at.y, 130, MACHINE_SVG_BOX_HEIGHT, "chip");
    svg_say(drawing->text, at.x + 65, at.y + 25, "mid", "%s", chip->title);
    svg_line(drawing->text, at.x + 130, at.y + 20, at.x + 330, at.y + 20, "cable");
    svg_say(drawing->text, at.x + 230, at.y + 14, "tiny mid", "%s %s one way",
            c2c ? words_of_chip(chip, WORDS_C2C) : "PCIe",
            quantity_text_rate(
                rate, (double)(c2c ? network->c2c_bytes_per_s : chip->pcie_bytes_per_s), "B/s"));
    svg_box(drawing->text, at.x + 330, at.y, 130, MACHINE_SVG_BOX_HEIGHT, "node");
    svg_say(drawing->text, at.x + 395, at.y + 25, "mid", "CPU, DRAM");
    drawing->y += MACHINE_SVG_BOX_HEIGHT + 24;
}

static void say_totals(struct drawing *drawing)
{
    struct machine_totals totals;
    char egress[QUANTITY_TEXT_BYTES], bisection[QUANTITY_TEXT_BYTES];
    totals_of_machine(drawing->machine, &totals);
    svg_say(drawing->text, 20, drawing->y, "small", "one way: egress of a chip %s, bisection %s",
            quantity_text_rate(egress, (double)totals.chip_egress_bytes_per_s, "B/s"),
            quantity_text_rate(bisection, (double)totals.bisection_bytes_per_s, "B/s"));
    drawing->y += 24;
}

static void draw(struct drawing *drawing)
{
    const struct machine *machine = drawing->machine;
    bool const gpu = machine->chip.kind == CHIP_GPU;
    bool const far = machine->level_count > (gpu ? 1u : 0u);
    struct unit_row lowest = {.count = 0};
    drawing->y = 48;
    say_totals(drawing);
    if (far) draw_level(drawing, machine->level_count - 1, &lowest);
    if (gpu)
        nodes_draw(drawing, far ? &lowest : NULL);
    else
        draw_slices(drawing, far ? &lowest : NULL);
    draw_host(drawing);
}

void machine_svg(const struct machine *machine, struct strbuf *text)
{
    struct strbuf body = {0}, title = {0};
    struct drawing drawing = {machine, &body, 0};
    draw(&drawing);
    strbuf_add(&title, "%u x %s", machine->chip_count, machine->chip.title);
    svg_begin(text, &(struct svg_page){
                        .width = MACHINE_SVG_WIDTH,
                        .height = drawing.y,
                        .title = title.bytes,
                        .classes = classes,
                        .dark = classes_dark,
                    });
    svg_words(text, 20, 28, "title", title.bytes);
    strbuf_add_bytes(text, body.bytes, body.size_bytes);
    svg_end(text);
    text->failed = text->failed || body.failed || title.failed;
    strbuf_free(&body);
    strbuf_free(&title);
}
