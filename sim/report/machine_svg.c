#include "sim/report/machine_svg.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "sim/base/quantity.h"
#include "sim/base/text.h"
#include "sim/base/units.h"
#include "sim/machine/machine.h"
#include "sim/machine/shape.h"
#include "sim/machine/totals.h"

enum {
    PAGE_WIDTH = 1180,
    LEFT = 350, /* Where boxes begin; words stand left of it. */
    RIGHT = PAGE_WIDTH - 30,
    ROW_HEIGHT = 110,
    BOX_HEIGHT = 40,
    UNITS_SHOWN = 8,
    NODES_SHOWN = 3,
    CHIPS_SHOWN = 8,
    SLICES_SHOWN = 3,
    GRID_SHOWN = 8, /* Chips drawn along an axis. */
    LAYERS_SHOWN = 3,
    CELL = 22,
    WORDS_BYTES = 160,
};

struct point {
    int32_t x, y;
};

/* What a row of boxes shows of its units, and where each box's upper and lower middle are. */
struct row {
    uint32_t unit[UNITS_SHOWN];
    struct point middle[UNITS_SHOWN];
    uint32_t count;
};

struct drawing {
    const struct machine *machine;
    struct text *text;
    int32_t y; /* Down to here something is drawn. */
};

/* Text between tags: as HTML and XML want it. */
static void add_words(struct drawing *drawing, struct point at, const char *style,
                      const char *words)
{
    text_add(drawing->text, "<text x=\"%d\" y=\"%d\" class=\"%s\">", at.x, at.y, style);
    for (const char *c = words; *c != '\0'; c++) {
        switch (*c) {
        case '&':
            text_add(drawing->text, "&amp;");
            break;
        case '<':
            text_add(drawing->text, "&lt;");
            break;
        case '>':
            text_add(drawing->text, "&gt;");
            break;
        default:
            text_add(drawing->text, "%c", *c);
        }
    }
    text_add(drawing->text, "</text>\n");
}

__attribute__((format(printf, 4, 5))) static void say(struct drawing *drawing, struct point at,
                                                      const char *style, const char *format, ...)
{
    char words[WORDS_BYTES];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(words, sizeof words, format, arguments);
    va_end(arguments);
    add_words(drawing, at, style, words);
}

static void add_box(struct drawing *drawing, struct point at, int32_t width, int32_t height,
                    const char *style)
{
    text_add(drawing->text,
             "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"3\" class=\"%s\"/>\n", at.x,
             at.y, width, height, style);
}

static void add_line(struct drawing *drawing, struct point from, struct point to, const char *style)
{
    text_add(drawing->text, "<line x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\" class=\"%s\"/>\n",
             from.x, from.y, to.x, to.y, style);
}

/* The first few units and the last; `most` is at least 2. */
static void row_choose(struct row *row, uint32_t units, uint32_t most)
{
    row->count = units < most ? units : most;
    for (uint32_t i = 0; i < row->count; i++) row->unit[i] = i;
    if (units > most) row->unit[most - 1] = units - 1;
}

static int32_t row_pitch(const struct row *row)
{
    return (RIGHT - LEFT) / (int32_t)row->count;
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

/* How many there are, under the gap in a row that stands for those not drawn. */
static void say_more(struct drawing *drawing, const struct row *row, uint32_t units, int32_t y)
{
    if (row->count < 2 || units <= row->count) return;
    struct point const a = row->middle[row->count - 2], b = row->middle[row->count - 1];
    say(drawing, (struct point){(a.x + b.x) / 2, y}, "mid", "\xe2\x80\xa6 x %u", units);
}

static void row_add(struct row *row, uint32_t unit)
{
    for (uint32_t i = 0; i < row->count; i++)
        if (row->unit[i] == unit) return;
    if (row->count < UNITS_SHOWN) row->unit[row->count++] = unit;
}

/* The lowest units of a network: those of the chips that will be drawn below them. */
static void row_of_chips(const struct machine *machine, const struct level *level, struct row *row)
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

static void say_tier(struct drawing *drawing, uint32_t level, uint32_t index)
{
    const struct level_tier *tier = &drawing->machine->level[level].tier[index];
    struct tier_totals totals;
    char rate[QUANTITY_TEXT_BYTES], into[QUANTITY_TEXT_BYTES], latency[QUANTITY_TEXT_BYTES];
    int32_t const y = drawing->y + 12;
    totals_of_tier(drawing->machine, level, index, &totals);
    if (tier->switch_ports != 0)
        say(drawing, (struct point){20, y}, "head", "%s: %" PRIu64 " switches of %u ports, %u used",
            tier->name, totals.switch_count, tier->switch_ports, totals.ports_used);
    else
        say(drawing, (struct point){20, y}, "head", "%s: %u", tier->name, totals.unit_count);
    say(drawing, (struct point){20, y + 16}, "small", "%s: %u x %s up from each below",
        tier->cable_name, tier->cable_count,
        quantity_text_rate(rate, (double)tier->cable_bytes_per_s, "B/s"));
    say(drawing, (struct point){20, y + 31}, "small", "into one: %s, %s one way, %s",
        quantity_text_rate(into, (double)totals.unit_bytes_per_s, "B/s"),
        quantity_text_seconds(latency, units_seconds(tier->latency_ps)),
        level_policy_name(tier->policy));
    if (tier->reduce_flop_per_s != 0)
        say(drawing, (struct point){20, y + 46}, "small", "SHARP: %s a unit",
            quantity_text_rate(rate, (double)tier->reduce_flop_per_s, "FLOP/s"));
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
                      const struct row *above, struct row *ret_row)
{
    const struct machine *machine = drawing->machine;
    const struct level *level = &machine->level[level_index];
    uint32_t const units = level_unit_count(machine, level, (int32_t)tier);
    struct row row = {.count = 0};
    bool const in_slice = lies_in_slice(machine, level, tier);
    uint32_t const slices = in_slice ? machine->shape[machine->axis_count - 1] : 1;
    if (tier == 0 && units > UNITS_SHOWN)
        row_of_chips(machine, level, &row);
    else
        row_choose(&row, units, UNITS_SHOWN);
    /* Those of a slice beside each other. */
    for (uint32_t i = 0; units <= UNITS_SHOWN && i < units; i++)
        row.unit[i] = i % (units / slices) * slices + i / (units / slices);
    int32_t const pitch = row_pitch(&row);
    int32_t const width = pitch - 14 > 220 ? 220 : pitch - 14;
    say_tier(drawing, level_index, tier);
    for (uint32_t i = 0; i < row.count; i++) {
        struct point const corner = {LEFT + (int32_t)i * pitch + (pitch - width) / 2, drawing->y};
        uint32_t at[MACHINE_AXES_MAX];
        row.middle[i] = (struct point){corner.x + width / 2, drawing->y + BOX_HEIGHT / 2};
        add_box(drawing, corner, width, BOX_HEIGHT, "switch");
        say(drawing, (struct point){row.middle[i].x, drawing->y + 17}, "mid", "%s %u",
            level->tier[tier].name, row.unit[i] / slices);
        if (in_slice)
            say(drawing, (struct point){row.middle[i].x, drawing->y + 32}, "tiny-mid",
                "of slice %u", row.unit[i] % slices);
        if (level->tier[tier].switch_ports != 0 && level->tier[tier].switch_count > 1)
            say(drawing, (struct point){row.middle[i].x, drawing->y + 32}, "tiny-mid",
                "%u switches", level->tier[tier].switch_count);
        unit_origin(machine, level, tier, row.unit[i], at);
        for (uint32_t k = 0; above != NULL && k < above->count; k++)
            if (level_unit(machine, level, (int32_t)tier + 1, at) == above->unit[k])
                add_line(drawing, (struct point){row.middle[i].x, drawing->y},
                         (struct point){above->middle[k].x, above->middle[k].y + BOX_HEIGHT / 2},
                         "cable");
    }
    say_more(drawing, &row, units, drawing->y + BOX_HEIGHT + 14);
    drawing->y += ROW_HEIGHT;
    *ret_row = row;
}

/* Every tier of a level, the highest first. */
static void draw_level(struct drawing *drawing, uint32_t level, uint32_t least_tier,
                       struct row *ret_lowest)
{
    struct row above = {.count = 0};
    uint32_t tier = drawing->machine->level[level].tier_count;
    while (tier-- > least_tier) {
        struct row own;
        bool const top = tier + 1 == drawing->machine->level[level].tier_count;
        draw_tier(drawing, level, tier, top ? NULL : &above, &own);
        above = own;
    }
    *ret_lowest = above;
}

/* The cable from a chip to the unit of a level's first tier, if that is drawn. */
static void wire_chip(struct drawing *drawing, const struct level *level,
                      const uint32_t at[MACHINE_AXES_MAX], struct point top,
                      const struct row *above)
{
    for (uint32_t k = 0; k < above->count; k++)
        if (level_unit(drawing->machine, level, 0, at) == above->unit[k])
            add_line(drawing, top,
                     (struct point){above->middle[k].x, above->middle[k].y + BOX_HEIGHT / 2},
                     "cable");
}

static void draw_node(struct drawing *drawing, uint32_t node, struct point corner, int32_t width,
                      const struct row *leaves)
{
    const struct machine *machine = drawing->machine;
    struct row gpus = {.count = 0};
    row_choose(&gpus, machine->shape[0], CHIPS_SHOWN);
    int32_t const pitch = (width - 12) / (int32_t)gpus.count;
    int32_t const size = pitch - 4 > 24 ? 24 : pitch - 4;
    add_box(drawing, corner, width, 96, "node");
    say(drawing, (struct point){corner.x + 6, corner.y + 90}, "tiny", "node %u", node);
    add_box(drawing, (struct point){corner.x + 6, corner.y + 58}, width - 12, 18, "switch");
    say(drawing, (struct point){corner.x + width / 2, corner.y + 71}, "tiny-mid", "%u NVSwitches",
        machine->level[0].tier[0].switch_count * level_unit_count(machine, &machine->level[0], 0) /
            (machine->axis_count > 1 ? machine->shape[1] : 1));
    for (uint32_t i = 0; i < gpus.count; i++) {
        struct point const at = {corner.x + 6 + (int32_t)i * pitch + (pitch - size) / 2,
                                 corner.y + 10};
        uint32_t const chip[MACHINE_AXES_MAX] = {gpus.unit[i], node, 0, 0};
        gpus.middle[i] = (struct point){at.x + size / 2, at.y + size / 2};
        add_box(drawing, at, size, size, "chip");
        add_line(drawing, (struct point){gpus.middle[i].x, at.y + size},
                 (struct point){gpus.middle[i].x, corner.y + 58}, "near");
        say(drawing, (struct point){gpus.middle[i].x, gpus.middle[i].y + 4}, "tiny-mid", "%u",
            gpus.unit[i]);
        if (leaves != NULL)
            wire_chip(drawing, &machine->level[1], chip, (struct point){gpus.middle[i].x, at.y},
                      leaves);
    }
    if (machine->shape[0] > gpus.count)
        say(drawing, (struct point){corner.x + width - 6, corner.y + 90}, "tiny-end", "GPUs x %u",
            machine->shape[0]);
}

/* `boards`: what joins the NVSwitches of a node in a second tier, or NULL. */
static void draw_nodes(struct drawing *drawing, const struct row *leaves, const struct row *boards)
{
    const struct machine *machine = drawing->machine;
    uint32_t const nodes = machine->axis_count > 1 ? machine->shape[1] : 1;
    struct row row = {.count = 0};
    row_choose(&row, nodes, NODES_SHOWN);
    int32_t const pitch = row_pitch(&row);
    int32_t const width = pitch - 40 > 360 ? 360 : pitch - 40;
    say_tier(drawing, 0, 0);
    for (uint32_t i = 0; i < row.count; i++) {
        struct point const corner = {LEFT + (int32_t)i * pitch + (pitch - width) / 2, drawing->y};
        row.middle[i] = (struct point){corner.x + width / 2, drawing->y + 48};
        draw_node(drawing, row.unit[i], corner, width, leaves);
        for (uint32_t k = 0; boards != NULL && k < boards->count; k++)
            if (boards->unit[k] == row.unit[i])
                add_line(drawing, (struct point){row.middle[i].x, drawing->y},
                         (struct point){boards->middle[k].x, boards->middle[k].y + BOX_HEIGHT / 2},
                         "cable");
    }
    say_more(drawing, &row, nodes, drawing->y + 110);
    drawing->y += 130;
}

/* One grid: the layer at z = 0, the edges of the next ones behind it, arcs where axes wrap. */
static void draw_grid(struct drawing *drawing, struct point corner)
{
    const struct machine *machine = drawing->machine;
    uint32_t const wide = machine->shape[0] < GRID_SHOWN ? machine->shape[0] : GRID_SHOWN;
    uint32_t const axes = machine->grid_axis_count;
    uint32_t const rows = axes > 1 ? machine->shape[1] : 1;
    uint32_t const high = rows < GRID_SHOWN ? rows : GRID_SHOWN;
    uint32_t const deep = axes > 2 ? machine->shape[2] : 1;
    int32_t const width = (int32_t)wide * CELL, height = (int32_t)high * CELL;
    for (int32_t layer = deep < LAYERS_SHOWN ? (int32_t)deep : LAYERS_SHOWN; layer-- > 1;)
        add_box(drawing, (struct point){corner.x + 8 * layer, corner.y - 8 * layer}, width, height,
                "layer");
    add_box(drawing, corner, width, height, "node");
    for (uint32_t y = 0; y < high; y++) {
        int32_t const middle = corner.y + (int32_t)y * CELL + CELL / 2;
        add_line(drawing, (struct point){corner.x + CELL / 2, middle},
                 (struct point){corner.x + width - CELL / 2, middle}, "near");
        if (machine->wrap[0])
            text_add(drawing->text,
                     "<path d=\"M %d %d q -14 -10 0 -9 h %d q 14 -1 0 9\" class=\"wrap\"/>\n",
                     corner.x + CELL / 2, middle, width - CELL);
    }
    for (uint32_t x = 0; x < wide; x++) {
        int32_t const middle = corner.x + (int32_t)x * CELL + CELL / 2;
        add_line(drawing, (struct point){middle, corner.y + CELL / 2},
                 (struct point){middle, corner.y + height - CELL / 2}, "near");
        if (axes > 1 && machine->wrap[1])
            text_add(drawing->text,
                     "<path d=\"M %d %d q -10 -14 -9 0 v %d q -1 14 9 0\" class=\"wrap\"/>\n",
                     middle, corner.y + CELL / 2, height - CELL);
        for (uint32_t y = 0; y < high; y++)
            add_box(drawing,
                    (struct point){middle - 5, corner.y + (int32_t)y * CELL + CELL / 2 - 5}, 10, 10,
                    "chip");
    }
}

static void say_axes(struct drawing *drawing)
{
    const struct machine *machine = drawing->machine;
    char rate[QUANTITY_TEXT_BYTES], latency[QUANTITY_TEXT_BYTES];
    int32_t y = drawing->y + 12;
    say(drawing, (struct point){20, y}, "head", "ICI: %s a link, %s a hop",
        quantity_text_rate(rate, (double)machine->chip.ici_bytes_per_s, "B/s"),
        quantity_text_seconds(latency, units_seconds(machine->chip.hop_latency_ps)));
    for (uint32_t axis = 0; axis < machine->grid_axis_count; axis++) {
        bool const part = axis < 2 && machine->shape[axis] > GRID_SHOWN;
        y += 16;
        say(drawing, (struct point){20, y}, "small", "%s: %s of %u%s",
            machine_axis_name(machine, axis),
            machine->wrap[axis]             ? "ring"
            : machine_twists(machine, axis) ? "twisted"
                                            : "line",
            machine->shape[axis], part ? ", the first 8 drawn" : "");
    }
}

static void draw_slices(struct drawing *drawing, const struct row *hosts)
{
    const struct machine *machine = drawing->machine;
    uint32_t const grid = machine->grid_axis_count;
    uint32_t const slices = machine->axis_count > grid ? machine->shape[grid] : 1;
    struct row row = {.count = 0};
    row_choose(&row, slices, SLICES_SHOWN);
    int32_t const pitch = row_pitch(&row);
    uint32_t const high = grid < 2 ? 1 : machine->shape[1];
    int32_t const height = (int32_t)(high < GRID_SHOWN ? high : GRID_SHOWN) * CELL;
    drawing->y += 24;
    say_axes(drawing);
    for (uint32_t i = 0; i < row.count; i++) {
        struct point const corner = {LEFT + (int32_t)i * pitch + 30, drawing->y};
        uint32_t at[MACHINE_AXES_MAX] = {0};
        row.middle[i] = (struct point){corner.x + 40, drawing->y};
        draw_grid(drawing, corner);
        if (hosts == NULL) continue;
        at[grid] = row.unit[i];
        say(drawing, (struct point){corner.x, drawing->y + height + 14}, "tiny", "slice %u",
            row.unit[i]);
        wire_chip(drawing, &machine->level[0], at,
                  (struct point){corner.x + CELL / 2, corner.y + CELL / 2}, hosts);
    }
    say_more(drawing, &row, slices, drawing->y + height + 14);
    drawing->y += (height < 64 ? 64 : height) + 40;
}

/* What a chip's host is reached by. */
static void draw_host(struct drawing *drawing)
{
    const struct chip *chip = &drawing->machine->chip;
    const struct chip_network *network = &chip->network;
    char rate[QUANTITY_TEXT_BYTES];
    bool const c2c = network->c2c_bytes_per_s != 0;
    struct point const at = {LEFT, drawing->y};
    say(drawing, (struct point){20, drawing->y + 12}, "head", "host: %u %s a CPU",
        network->host_chips, chip->kind == CHIP_GPU ? "GPUs" : "chips");
    add_box(drawing, at, 110, BOX_HEIGHT, "chip");
    say(drawing, (struct point){at.x + 55, at.y + 25}, "mid", "%s", chip->title);
    add_line(drawing, (struct point){at.x + 110, at.y + 20}, (struct point){at.x + 330, at.y + 20},
             "cable");
    say(drawing, (struct point){at.x + 220, at.y + 14}, "tiny-mid", "%s %s one way",
        c2c ? "NVLink-C2C" : "PCIe",
        quantity_text_rate(rate, (double)(c2c ? network->c2c_bytes_per_s : chip->pcie_bytes_per_s),
                           "B/s"));
    add_box(drawing, (struct point){at.x + 330, at.y}, 110, BOX_HEIGHT, "node");
    say(drawing, (struct point){at.x + 385, at.y + 25}, "mid", "CPU, DRAM");
    drawing->y += BOX_HEIGHT + 24;
}

static void say_totals(struct drawing *drawing)
{
    struct machine_totals totals;
    char egress[QUANTITY_TEXT_BYTES], bisection[QUANTITY_TEXT_BYTES];
    totals_of_machine(drawing->machine, &totals);
    say(drawing, (struct point){20, drawing->y}, "small",
        "one way: egress of a chip %s, bisection %s",
        quantity_text_rate(egress, (double)totals.chip_egress_bytes_per_s, "B/s"),
        quantity_text_rate(bisection, (double)totals.bisection_bytes_per_s, "B/s"));
    drawing->y += 24;
}

static void draw(struct drawing *drawing)
{
    const struct machine *machine = drawing->machine;
    bool const gpu = machine->chip.kind == CHIP_GPU;
    bool const far = machine->level_count > (gpu ? 1u : 0u);
    struct row lowest = {.count = 0};
    say(drawing, (struct point){20, 28}, "title", "%u x %s", machine->chip_count,
        machine->chip.title);
    drawing->y = 48;
    say_totals(drawing);
    if (far) draw_level(drawing, machine->level_count - 1, 0, &lowest);
    bool const two_tiers = gpu && machine->level[0].tier_count > 1;
    struct row boards = {.count = 0};
    if (two_tiers) draw_level(drawing, 0, 1, &boards);
    if (gpu)
        draw_nodes(drawing, far ? &lowest : NULL, two_tiers ? &boards : NULL);
    else
        draw_slices(drawing, far ? &lowest : NULL);
    draw_host(drawing);
}

void machine_svg(const struct machine *machine, struct text *text)
{
    struct text body = {0};
    struct drawing drawing = {machine, &body, 0};
    draw(&drawing);
    text_add(text,
             "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
             "viewBox=\"0 0 %d %d\">\n<style>\n"
             "text { font-family: sans-serif; fill: #222 }\n"
             ".title { font-size: 18px; font-weight: bold } .head { font-size: 13px; font-weight: "
             "bold }\n.small { font-size: 12px } .tiny, .tiny-mid, .tiny-end { font-size: 10px }\n"
             ".mid { font-size: 12px } .mid, .tiny-mid { text-anchor: middle } .tiny-end { "
             "text-anchor: end }\n"
             ".switch { fill: #dce9f7; stroke: #3a6ea5 } .chip { fill: #f7e3c4; stroke: #a5722a }\n"
             ".node { fill: #f4f4f4; stroke: #888 } .layer { fill: none; stroke: #bbb }\n"
             ".cable { stroke: #3a6ea5; stroke-width: 1 } .near { stroke: #a5722a }\n"
             ".wrap { fill: none; stroke: #a5722a; stroke-dasharray: 3 2 }\n</style>\n"
             "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
             PAGE_WIDTH, drawing.y, PAGE_WIDTH, drawing.y);
    text_add_bytes(text, body.bytes, body.size_bytes);
    text_add(text, "</svg>\n");
    text->failed = text->failed || body.failed;
    text_free(&body);
}
