#include "sim/report/machine_svg.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "sim/base/counted.h"
#include "sim/base/quantity.h"
#include "sim/base/svg.h"
#include "sim/base/units.h"
#include "sim/machine/machine.h"
#include "sim/machine/totals.h"
#include "sim/report/machine_svg_parts.h"
#include "sim/report/words.h"

enum {
    LEFT = 350, /* Where boxes begin; words stand left of it. */
    RIGHT = MACHINE_SVG_WIDTH - 30,
    ROW_HEIGHT = 110,
    BOX_HEIGHT = 40,
    UNITS_SHOWN = 8,
    NODES_SHOWN = 3,
    CHIPS_SHOWN = 8,
    SLICES_SHOWN = 3,
};

static const char classes[] =
    ".switch { fill: #dce9f7; stroke: #3a6ea5 } .chip { fill: #f7e3c4; stroke: #a5722a }\n"
    ".node { fill: #f4f4f4; stroke: #888 } .host { fill: none; stroke: #3a6ea5 }\n"
    ".cable { stroke: #3a6ea5 } .near, .wrap, .gap, .mesh { stroke: #a5722a }\n"
    ".wrap { stroke-dasharray: 3 2 } .gap, .goes { stroke-dasharray: 1 3 } .behind { opacity: 0.6 "
    "}\n";

static const char classes_dark[] =
    ".switch { fill: #1d3448; stroke: #7fb2e5 } .chip { fill: #4a3820; stroke: #e0a95c }\n"
    ".node { fill: #1e232b; stroke: #8a93a0 } .host, .cable { stroke: #7fb2e5 }\n"
    ".near, .wrap, .gap, .mesh { stroke: #e0a95c }\n";

/* What a row of boxes shows of its units, and where the middle of each box is. */
struct measure_row {
    uint32_t unit[UNITS_SHOWN];
    struct point middle[UNITS_SHOWN];
    bool reached[UNITS_SHOWN]; /* By a cable from something that is drawn below. */
    uint32_t count;
};

/* The first few units and the last; `most` is at least 2. */
static void row_choose(struct measure_row *row, uint32_t units, uint32_t most)
{
    row->count = units < most ? units : most;
    for (uint32_t i = 0; i < row->count; i++) row->unit[i] = i;
    if (units > most) row->unit[most - 1] = units - 1;
}

static double row_pitch(const struct measure_row *row)
{
    return (double)(RIGHT - LEFT) / row->count;
}

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

/* In the gap of a row of boxes that stands for units that are not drawn; words beside the row say
 * how many there are. */
static void say_gap(struct drawing *drawing, const struct measure_row *row, uint32_t units)
{
    if (row->count < 2 || units <= row->count) return;
    struct point const a = row->middle[row->count - 2], b = row->middle[row->count - 1];
    svg_words(drawing->text, (a.x + b.x) / 2, a.y + 4, "mid", "\xe2\x80\xa6");
}

/* How many there are, under the gap in a row that stands for those not drawn. */
static void say_more(struct drawing *drawing, const struct measure_row *row, uint32_t units,
                     double y)
{
    if (row->count < 2 || units <= row->count) return;
    struct point const a = row->middle[row->count - 2], b = row->middle[row->count - 1];
    svg_say(drawing->text, (a.x + b.x) / 2, y, "mid", "\xe2\x80\xa6 x %u", units);
}

static void row_add(struct measure_row *row, uint32_t unit)
{
    for (uint32_t i = 0; i < row->count; i++)
        if (row->unit[i] == unit) return;
    if (row->count < UNITS_SHOWN) row->unit[row->count++] = unit;
}

/* The lowest units of a network: those of the chips that will be drawn below them. */
static void row_of_chips(const struct machine *machine, const struct level *level,
                         struct measure_row *row)
{
    uint32_t at[MACHINE_AXES_MAX] = {0};
    uint32_t const last = machine->axis_count - 1;
    if (machine->chip.kind == CHIP_GPU) {
        for (; at[0] < machine->shape[0] && row->count + 1 < UNITS_SHOWN; at[0]++)
            row_add(row, level_unit(machine, level, 0, at));
    } else {
        for (uint32_t i = 0; i + 1 < SLICES_SHOWN && i < machine->shape[last]; i++) {
            at[last] = i;
            row_add(row, level_unit(machine, level, 0, at));
        }
    }
    for (uint32_t axis = 0; axis < machine->axis_count; axis++) at[axis] = machine->shape[axis] - 1;
    if (machine->chip.kind == CHIP_TPU)
        for (uint32_t axis = 0; axis < last; axis++) at[axis] = 0;
    row_add(row, level_unit(machine, level, 0, at));
}

/* How messages are laid on the cables between two units. */
static const char *policy_words(enum level_policy policy)
{
    return policy == LEVEL_HASH   ? "a flow keeps the cable that a hash names"
           : policy == LEVEL_RAIL ? "a flow keeps the cable of its position"
                                  : "messages are spread over all cables";
}

/* The host of the picture is a CPU. */
static const char *tier_name(const struct level_tier *tier)
{
    return tier->shares_nic ? "shared NIC" : tier->name;
}

static void say_tier(struct drawing *drawing, uint32_t level, uint32_t index)
{
    const struct level_tier *tier = &drawing->machine->level[level].tier[index];
    struct tier_totals totals;
    char rate[QUANTITY_TEXT_BYTES], latency[QUANTITY_TEXT_BYTES] = "";
    double const y = drawing->y + 12;
    totals_of_tier(drawing->machine, level, index, &totals);
    bool const bare = level == 0 && machine_lacks_switch(drawing->machine, 0);
    if (tier->switch_ports != 0)
        svg_say(drawing->text, 20, y, "head", "%s: %s of %u ports, %u used", tier->name,
                counted(totals.switch_count, "switch").text, tier->switch_ports, totals.ports_used);
    else if (bare)
        svg_say(drawing->text, 20, y, "head", "%s: %s", tier->name,
                counted(totals.unit_count, "node").text);
    else
        svg_say(drawing->text, 20, y, "head", "%s: %u", tier_name(tier), totals.unit_count);
    svg_say(
        drawing->text, 20, y + 16, "small",
        bare ? "%s: %u x %s from each to the others" : "%s: %u x %s up from each below",
        tier->cable_name, tier->cable_count * totals.links_per_cable,
        quantity_text_rate(rate, (double)tier->cable_bytes_per_s / totals.links_per_cable, "B/s"));
    if (!tier->shares_nic) quantity_text_seconds(latency, units_seconds(tier->latency_ps));
    svg_say(drawing->text, 20, y + 31, "small", "%s one: %s%s%s%s", bare ? "in" : "into",
            quantity_text_rate(rate, (double)totals.unit_bytes_per_s, "B/s"),
            latency[0] == '\0' ? "" : ", ", latency, latency[0] == '\0' ? "" : " one way");
    if (bare || tier->cable_count > 1)
        svg_words(drawing->text, 20, y + 46, "small",
                  tier->policy == LEVEL_PAIR ? "no switch: each pair has a link"
                  : bare                     ? "no switch"
                                             : policy_words(tier->policy));
    if (tier->reduce_flop_per_s != 0)
        svg_say(drawing->text, 20, y + 61, "small", "SHARP: %s a unit",
                quantity_text_rate(rate, (double)tier->reduce_flop_per_s, "FLOP/s"));
}

/* Whether each unit of a tier lies in one slice. The slice is the fastest part of a unit's number,
 * so slice by slice they are counted by what is left of it. */
static bool lies_in_slice(const struct machine *machine, const struct level *level, uint32_t tier)
{
    return machine->chip.kind == CHIP_TPU && machine->axis_count > machine->grid_axis_count &&
           level->tier[tier].box[machine->axis_count - 1] == 1;
}

/* A cable from the upper edge of something to the lower edge of the unit above that it leads to. If
 * that is not drawn, only the cable's beginning is. */
static void draw_cable(struct drawing *drawing, struct point from, struct measure_row *above,
                       uint32_t unit)
{
    for (uint32_t k = 0; k < above->count; k++)
        if (above->unit[k] == unit) {
            above->reached[k] = true;
            svg_line(drawing->text, from.x, from.y, above->middle[k].x,
                     above->middle[k].y + BOX_HEIGHT / 2.0, "cable");
            return;
        }
    svg_line(drawing->text, from.x, from.y, from.x, from.y - 16, "cable goes");
}

/* Below units to which nothing that is drawn leads: where their cables come from. */
static void draw_stubs(struct drawing *drawing, const struct measure_row *row)
{
    for (uint32_t k = 0; k < row->count; k++) {
        struct point const at = {row->middle[k].x, row->middle[k].y + BOX_HEIGHT / 2.0};
        if (!row->reached[k]) svg_line(drawing->text, at.x, at.y, at.x, at.y + 16, "cable goes");
    }
}

/* Whose a box is and, where others of the slice are not drawn, how many there are. */
static void say_slice(struct drawing *drawing, struct point at, uint32_t slice, uint32_t units,
                      bool are_all_drawn)
{
    if (are_all_drawn)
        svg_say(drawing->text, at.x, at.y, "tiny mid", "of slice %u", slice);
    else
        svg_say(drawing->text, at.x, at.y, "tiny mid", "of slice %u, \xe2\x80\xa6 x %u", slice,
                units);
}

/* One storey of units as boxes, wired to the storey above. */
static void draw_tier(struct drawing *drawing, uint32_t level_index, uint32_t tier,
                      struct measure_row *above, struct measure_row *ret_row)
{
    const struct machine *machine = drawing->machine;
    const struct level *level = &machine->level[level_index];
    uint32_t const units = level_unit_count(machine, level, (int32_t)tier);
    struct measure_row row = {.count = 0};
    bool const in_slice = lies_in_slice(machine, level, tier);
    uint32_t const slices = in_slice ? machine->shape[machine->axis_count - 1] : 1;
    if (tier == 0 && units > UNITS_SHOWN)
        row_of_chips(machine, level, &row);
    else
        row_choose(&row, units, UNITS_SHOWN);
    /* Units of a slice stand next to each other. */
    for (uint32_t i = 0; units <= UNITS_SHOWN && i < units; i++)
        row.unit[i] = i % (units / slices) * slices + i / (units / slices);
    double const pitch = row_pitch(&row);
    double const width = pitch - 14 > 220 ? 220 : pitch - 14;
    say_tier(drawing, level_index, tier);
    for (uint32_t i = 0; i < row.count; i++) {
        struct point const corner = {LEFT + i * pitch + (pitch - width) / 2, drawing->y};
        uint32_t at[MACHINE_AXES_MAX];
        row.middle[i] = (struct point){corner.x + width / 2, drawing->y + BOX_HEIGHT / 2};
        svg_box(drawing->text, corner.x, corner.y, width, BOX_HEIGHT, "switch");
        svg_say(drawing->text, row.middle[i].x, drawing->y + 17, "mid", "%s %u",
                tier_name(&level->tier[tier]), row.unit[i] / slices);
        if (in_slice)
            say_slice(drawing, (struct point){row.middle[i].x, drawing->y + 32},
                      row.unit[i] % slices, units / slices, units <= UNITS_SHOWN);
        if (level->tier[tier].switch_ports != 0 && level->tier[tier].switch_count > 1)
            svg_say(drawing->text, row.middle[i].x, drawing->y + 32, "tiny mid", "%s",
                    counted(level->tier[tier].switch_count, "switch").text);
        unit_origin(machine, level, tier, row.unit[i], at);
        if (above != NULL)
            draw_cable(drawing, (struct point){row.middle[i].x, drawing->y}, above,
                       level_unit(machine, level, (int32_t)tier + 1, at));
    }
    if (above != NULL) draw_stubs(drawing, above);
    say_gap(drawing, &row, units);
    drawing->y += ROW_HEIGHT;
    *ret_row = row;
}

/* Every tier of a level, the highest first. */
static void draw_level(struct drawing *drawing, uint32_t level, uint32_t least_tier,
                       struct measure_row *ret_lowest)
{
    struct measure_row above = {.count = 0};
    uint32_t tier = drawing->machine->level[level].tier_count;
    while (tier-- > least_tier) {
        struct measure_row own;
        bool const top = tier + 1 == drawing->machine->level[level].tier_count;
        draw_tier(drawing, level, tier, top ? NULL : &above, &own);
        above = own;
    }
    *ret_lowest = above;
}

/* The NVSwitches of a node, below its GPUs. */
static void draw_switches(struct drawing *drawing, struct point corner, double width,
                          const struct measure_row *gpus, double size)
{
    const struct machine *machine = drawing->machine;
    uint32_t const nodes = machine->axis_count > 1 ? machine->shape[1] : 1;
    uint32_t const switches = machine->level[0].tier[0].switch_count *
                              level_unit_count(machine, &machine->level[0], 0) / nodes;
    svg_box(drawing->text, corner.x + 6, corner.y + 58, width - 12, 18, "switch");
    svg_say(drawing->text, corner.x + width / 2, corner.y + 71, "tiny mid", "%s",
            counted(switches, machine->level[0].tier[0].name).text);
    for (uint32_t i = 0; i < gpus->count; i++)
        svg_line(drawing->text, gpus->middle[i].x, gpus->middle[i].y + size / 2, gpus->middle[i].x,
                 corner.y + 58, "near");
}

/* Half an ellipse below two points of one height. */
static void draw_arc(struct drawing *drawing, struct point a, struct point b, double depth)
{
    enum { PARTS = 16 };
    static double const half_turn = 3.14159265358979323846;
    double const middle = (a.x + b.x) / 2, half = (b.x - a.x) / 2;
    svg_path_begin(drawing->text, "mesh");
    svg_path_to(drawing->text, a.x, a.y);
    for (uint32_t i = 1; i <= PARTS; i++)
        svg_path_to(drawing->text, middle - half * cos(half_turn * i / PARTS),
                    a.y + depth * sin(half_turn * i / PARTS));
    svg_path_end(drawing->text);
}

/* Without a switch: a cable from each GPU that is drawn to each other one. */
static void draw_mesh(struct drawing *drawing, struct point corner, double width,
                      const struct measure_row *gpus, double size)
{
    uint32_t const count = drawing->machine->shape[0];
    struct tier_totals totals;
    totals_of_tier(drawing->machine, 0, 0, &totals);
    for (uint32_t i = 0; i < gpus->count; i++)
        for (uint32_t k = i + 1; k < gpus->count; k++) {
            double const y = gpus->middle[i].y + size / 2;
            draw_arc(drawing, (struct point){gpus->middle[i].x, y},
                     (struct point){gpus->middle[k].x, y},
                     (corner.y + 76 - y) * (k - i) / gpus->count);
        }
    if (count > 1)
        svg_say(drawing->text, corner.x + width / 2, corner.y + 90, "tiny mid", "%s",
                counted(count * (count - 1) / 2 * totals.links_per_cable, "cable").text);
}

static void draw_node(struct drawing *drawing, uint32_t node, struct point corner, double width,
                      struct measure_row *leaves)
{
    const struct machine *machine = drawing->machine;
    struct measure_row gpus = {.count = 0};
    row_choose(&gpus, machine->shape[0], CHIPS_SHOWN);
    double const pitch = (width - 12) / gpus.count;
    double const size = pitch - 4 > 24 ? 24 : pitch - 4;
    svg_box(drawing->text, corner.x, corner.y, width, 96, "node");
    svg_say(drawing->text, corner.x + 6, corner.y + 90, "tiny", "node %u", node);
    for (uint32_t i = 0; i < gpus.count; i++) {
        struct point const at = {corner.x + 6 + i * pitch + (pitch - size) / 2, corner.y + 10};
        uint32_t const chip[MACHINE_AXES_MAX] = {gpus.unit[i], node, 0, 0};
        gpus.middle[i] = (struct point){at.x + size / 2, at.y + size / 2};
        svg_box(drawing->text, at.x, at.y, size, size, "chip");
        svg_say(drawing->text, gpus.middle[i].x, gpus.middle[i].y + 4, "tiny mid", "%u",
                gpus.unit[i]);
        if (leaves != NULL)
            draw_cable(drawing, (struct point){gpus.middle[i].x, at.y}, leaves,
                       level_unit(machine, &machine->level[1], 0, chip));
    }
    if (machine_lacks_switch(machine, 0))
        draw_mesh(drawing, corner, width, &gpus, size);
    else
        draw_switches(drawing, corner, width, &gpus, size);
    if (machine->shape[0] > gpus.count)
        svg_say(drawing->text, corner.x + width - 6, corner.y + 90, "tiny end", "GPUs x %u",
                machine->shape[0]);
}

/* `boards`: what joins the NVSwitches of a node in a second tier, or NULL. */
static void draw_nodes(struct drawing *drawing, struct measure_row *leaves,
                       struct measure_row *boards)
{
    const struct machine *machine = drawing->machine;
    uint32_t const nodes = machine->axis_count > 1 ? machine->shape[1] : 1;
    struct measure_row row = {.count = 0};
    row_choose(&row, nodes, NODES_SHOWN);
    double const pitch = row_pitch(&row);
    double const width = pitch - 40 > 360 ? 360 : pitch - 40;
    say_tier(drawing, 0, 0);
    for (uint32_t i = 0; i < row.count; i++) {
        struct point const corner = {LEFT + i * pitch + (pitch - width) / 2, drawing->y};
        row.middle[i] = (struct point){corner.x + width / 2, drawing->y + 48};
        draw_node(drawing, row.unit[i], corner, width, leaves);
        if (boards != NULL)
            draw_cable(drawing, (struct point){row.middle[i].x, drawing->y}, boards, row.unit[i]);
    }
    if (leaves != NULL) draw_stubs(drawing, leaves);
    if (boards != NULL) draw_stubs(drawing, boards);
    say_more(drawing, &row, nodes, drawing->y + 110);
    drawing->y += 130;
}

/* Around the chips of each host in a slice a line, and from there the cables to the host. */
static void draw_hosts(struct drawing *drawing, const struct grid_layout *layout,
                       struct point corner, uint32_t slice, struct measure_row *hosts)
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
        draw_cable(drawing, from, hosts, hosts->unit[i]);
    }
}

static void draw_slices(struct drawing *drawing, struct measure_row *hosts)
{
    const struct machine *machine = drawing->machine;
    uint32_t const grid = machine->grid_axis_count;
    uint32_t const slices = machine->axis_count > grid ? machine->shape[grid] : 1;
    struct measure_row row = {.count = 0};
    struct grid_layout layout;
    row_choose(&row, slices, SLICES_SHOWN);
    double const pitch = row_pitch(&row);
    grid_layout_find(machine, pitch - 20, &layout);
    drawing->y += 24;
    grid_say_axes(drawing, &layout);
    for (uint32_t i = 0; i < row.count; i++) {
        double const room = slices > 1 ? pitch - layout.width : 0;
        struct point const corner = {LEFT + i * pitch + room / 2, drawing->y};
        row.middle[i] = (struct point){corner.x + layout.width / 2, drawing->y};
        grid_draw(drawing, &layout, corner);
        if (hosts == NULL) continue;
        svg_say(drawing->text, corner.x, drawing->y + layout.height + 14, "tiny", "slice %u",
                row.unit[i]);
        draw_hosts(drawing, &layout, corner, row.unit[i], hosts);
    }
    if (hosts != NULL) draw_stubs(drawing, hosts);
    say_more(drawing, &row, slices, drawing->y + layout.height + 28); /* Below their names. */
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
    struct point const at = {LEFT, drawing->y};
    svg_say(drawing->text, 20, drawing->y + 12, "head", "host: %s a CPU",
            counted(network->host_chips < chips ? network->host_chips : chips, gpu ? "GPU" : "chip")
                .text);
    svg_box(drawing->text, at.x, at.y, 110, BOX_HEIGHT, "chip");
    svg_say(drawing->text, at.x + 55, at.y + 25, "mid", "%s", chip->title);
    svg_line(drawing->text, at.x + 110, at.y + 20, at.x + 330, at.y + 20, "cable");
    svg_say(drawing->text, at.x + 220, at.y + 14, "tiny mid", "%s %s one way",
            c2c ? words_of_chip(chip, WORDS_C2C) : "PCIe",
            quantity_text_rate(
                rate, (double)(c2c ? network->c2c_bytes_per_s : chip->pcie_bytes_per_s), "B/s"));
    svg_box(drawing->text, at.x + 330, at.y, 110, BOX_HEIGHT, "node");
    svg_say(drawing->text, at.x + 385, at.y + 25, "mid", "CPU, DRAM");
    drawing->y += BOX_HEIGHT + 24;
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
    struct measure_row lowest = {.count = 0};
    drawing->y = 48;
    say_totals(drawing);
    if (far) draw_level(drawing, machine->level_count - 1, 0, &lowest);
    bool const two_tiers = gpu && machine->level[0].tier_count > 1;
    struct measure_row boards = {.count = 0};
    if (two_tiers) draw_level(drawing, 0, 1, &boards);
    if (gpu)
        draw_nodes(drawing, far ? &lowest : NULL, two_tiers ? &boards : NULL);
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
