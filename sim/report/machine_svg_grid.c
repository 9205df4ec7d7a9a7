/* An ICI grid: x to the right, y downwards, z into the page, a layer a plane of x and y. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sim/base/quantity.h"
#include "sim/base/svg.h"
#include "sim/base/units.h"
#include "sim/machine/machine.h"
#include "sim/machine/shape.h"
#include "sim/report/machine_svg_parts.h"

enum {
    CELL_MOST = 46,
    CELL_LEAST = 14,
    CELL_CLEAR = 36, /* Layers in cells as wide can be told apart. */
    CHIPS_LEAST = 4, /* Of an axis, however narrow the cells. */
    CHIP = 9,
    END = 13, /* A cable that closes an axis, at either end. */
    LAYERS_SHOWN = 4,
    EDGE = 8, /* Room around the chips. */
};

/* Layers lie this part of a cell up and to the right of one another. Where some are left out there
 * is room for two, and the last layer is as far from the next cell. */
static const double layer_share = 0.24, layer_share_gap = 0.2;

static void axis_choose(uint32_t length, uint32_t most, struct grid_axis *ret)
{
    ret->count = length < most ? length : most;
    for (uint32_t i = 0; i < ret->count; i++) ret->chip[i] = i;
    ret->has_gap = length > most;
    if (ret->has_gap) ret->chip[most - 1] = length - 1;
}

/* Layers from the first to one that is drawn, as far as there is room for them. */
static double layers_to(const struct grid_layout *layout, uint32_t z)
{
    const struct grid_axis *shown = &layout->axis[2];
    return z + (shown->has_gap && z + 1 == shown->count);
}

static double layers_deep(const struct grid_layout *layout)
{
    return layers_to(layout, layout->axis[2].count - 1);
}

/* With at most `chips` drawn of x and of y. */
static void layout_try(const struct machine *machine, double width_most, uint32_t chips,
                       struct grid_layout *ret)
{
    *ret = (struct grid_layout){.cell = CELL_MOST};
    for (uint32_t axis = 0; axis < 3; axis++)
        axis_choose(axis < machine->grid_axis_count ? machine->shape[axis] : 1,
                    axis == 2 ? LAYERS_SHOWN : chips, &ret->axis[axis]);
    double const share = ret->axis[2].has_gap ? layer_share_gap : layer_share;
    double const deep = share * layers_deep(ret);
    double const rim = 2 * (EDGE + END) + CHIP;
    ret->cell = (width_most - rim) / (ret->axis[0].count - 1 + deep + 0.001);
    ret->cell = fmax(fmin(ret->cell, CELL_MOST), CELL_LEAST);
    ret->layer = ret->cell * share;
    ret->width = rim + ret->cell * (ret->axis[0].count - 1 + deep);
    ret->height = rim + ret->cell * (ret->axis[1].count - 1 + deep);
}

void grid_layout_find(const struct machine *machine, double width_most, struct grid_layout *ret)
{
    uint32_t chips = MACHINE_SVG_GRID_SHOWN;
    layout_try(machine, width_most, chips, ret);
    while (ret->axis[2].count > 1 && ret->cell < CELL_CLEAR && chips > CHIPS_LEAST)
        layout_try(machine, width_most, --chips, ret);
}

/* The middle of the chip that is drawn at these numbers of the axes. */
static struct point chip_place(const struct grid_layout *layout, struct point corner, uint32_t x,
                               uint32_t y, uint32_t z)
{
    double const rim = EDGE + END + CHIP / 2.0, depth = layout->layer * layers_to(layout, z);
    double const front = layout->layer * layers_deep(layout);
    return (struct point){corner.x + rim + layout->cell * x + depth,
                          corner.y + rim + front + layout->cell * y - depth};
}

/* The cable from a chip to the next along an axis, and at its ends what closes it. */
static void draw_cables(const struct drawing *drawing, const struct grid_layout *layout,
                        struct point corner, const uint32_t at[3])
{
    const struct machine *machine = drawing->machine;
    struct point const here = chip_place(layout, corner, at[0], at[1], at[2]);
    for (uint32_t axis = 0; axis < machine->grid_axis_count; axis++) {
        const struct grid_axis *shown = &layout->axis[axis];
        double const slope = 0.6 * END;
        struct point const away = {axis == 0   ? END
                                   : axis == 2 ? slope
                                               : 0,
                                   axis == 1   ? END
                                   : axis == 2 ? -slope
                                               : 0};
        if (at[axis] + 1 < shown->count) {
            struct point const next = chip_place(layout, corner, at[0] + (axis == 0),
                                                 at[1] + (axis == 1), at[2] + (axis == 2));
            bool const is_gap = shown->has_gap && at[axis] + 2 == shown->count;
            svg_line(drawing->text, here.x, here.y, next.x, next.y, is_gap ? "gap" : "near");
        }
        if (!machine->wrap[axis] && !machine_twists(machine, axis)) continue;
        if (at[axis] == 0)
            svg_line(drawing->text, here.x, here.y, here.x - away.x, here.y - away.y, "wrap");
        if (at[axis] + 1 == shown->count)
            svg_line(drawing->text, here.x, here.y, here.x + away.x, here.y + away.y, "wrap");
    }
}

void grid_draw(const struct drawing *drawing, const struct grid_layout *layout, struct point corner)
{
    svg_box(drawing->text, corner.x, corner.y, layout->width, layout->height, "node");
    /* The layers behind the first as one, so that no line shines through a chip before it. */
    svg_group_begin(drawing->text, "behind");
    for (uint32_t z = layout->axis[2].count; z-- > 0;) {
        if (z == 0) svg_group_end(drawing->text);
        for (uint32_t y = 0; y < layout->axis[1].count; y++)
            for (uint32_t x = 0; x < layout->axis[0].count; x++)
                draw_cables(drawing, layout, corner, (uint32_t[3]){x, y, z});
        for (uint32_t y = 0; y < layout->axis[1].count; y++)
            for (uint32_t x = 0; x < layout->axis[0].count; x++) {
                struct point const at = chip_place(layout, corner, x, y, z);
                svg_box(drawing->text, at.x - CHIP / 2.0, at.y - CHIP / 2.0, CHIP, CHIP, "chip");
            }
    }
}

bool grid_outline(const struct drawing *drawing, const struct grid_layout *layout,
                  struct point corner, const uint32_t *at, const uint32_t *box,
                  struct grid_port *ret_port)
{
    uint32_t first[3] = {0}, last[3] = {0};
    for (uint32_t axis = 0; axis < 3; axis++) {
        const struct grid_axis *shown = &layout->axis[axis];
        bool const has = axis < drawing->machine->grid_axis_count;
        uint32_t const from = has ? at[axis] : 0, to = has ? at[axis] + box[axis] : 1;
        uint32_t i = 0;
        while (i < shown->count && shown->chip[i] < from) i++;
        if (i == shown->count || shown->chip[i] >= to) return false;
        first[axis] = last[axis] = i;
        while (last[axis] + 1 < shown->count && shown->chip[last[axis] + 1] < to) last[axis]++;
    }
    double const around = CHIP / 2.0 + 4;
    struct point const a = chip_place(layout, corner, first[0], first[1], first[2]);
    struct point const b = chip_place(layout, corner, last[0], last[1], first[2]);
    svg_box(drawing->text, a.x - around, a.y - around, b.x - a.x + 2 * around,
            b.y - a.y + 2 * around, "host");
    /* Rows below the first are reached from the side, past the chips above them. */
    ret_port->is_right = first[1] > 0;
    ret_port->at = ret_port->is_right ? (struct point){b.x + around, a.y}
                                      : (struct point){(a.x + b.x) / 2, a.y - around};
    return true;
}

/* Where the cables come out that go around a twisted axis. */
static void say_twist(const struct drawing *drawing, uint32_t axis, double y)
{
    const struct machine *machine = drawing->machine;
    char along[32] = "";
    uint32_t shift = 0;
    for (uint32_t other = 0; other < machine->grid_axis_count; other++) {
        if (machine->twist[axis][other] == 0) continue;
        size_t const used = strlen(along);
        (void)snprintf(along + used, sizeof along - used, "%s%s", used == 0 ? "" : " and ",
                       machine_axis_name(machine, other));
        shift = machine->twist[axis][other];
    }
    svg_say(drawing->text, 20, y, "tiny", "around %s: to the other end, %u further along %s",
            machine_axis_name(machine, axis), shift, along);
}

/* An axis, and which of its chips are drawn: below the axis where a twist takes up the line. */
static void say_axis(const struct drawing *drawing, const struct grid_axis *shown, uint32_t axis,
                     double *y)
{
    const struct machine *machine = drawing->machine;
    const char *name = machine_axis_name(machine, axis);
    const char *kind = machine->wrap[axis] ? "ring" : "line";
    char drawn[64] = "";
    if (shown->has_gap)
        (void)snprintf(drawn, sizeof drawn, "the first %u%s and the last drawn", shown->count - 1,
                       axis == 2 ? " layers" : "");
    *y += 16;
    if (!machine_twists(machine, axis)) {
        svg_say(drawing->text, 20, *y, "small", "%s: %s of %u%s%s", name, kind,
                machine->shape[axis], shown->has_gap ? ", " : "", drawn);
        return;
    }
    svg_say(drawing->text, 20, *y, "small", "%s: %s of %u, its ends joined with a twist%s", name,
            kind, machine->shape[axis], shown->has_gap ? "," : "");
    if (shown->has_gap) svg_words(drawing->text, 33, *y += 15, "small", drawn);
}

void grid_say_axes(const struct drawing *drawing, const struct grid_layout *layout)
{
    const struct machine *machine = drawing->machine;
    char rate[QUANTITY_TEXT_BYTES], latency[QUANTITY_TEXT_BYTES];
    double y = drawing->y + 12;
    bool closes = false;
    svg_say(drawing->text, 20, y, "head", "ICI: %s a link, %s a hop",
            quantity_text_rate(rate, (double)machine->chip.ici_bytes_per_s, "B/s"),
            quantity_text_seconds(latency, units_seconds(machine->chip.hop_latency_ps)));
    for (uint32_t axis = 0; axis < machine->grid_axis_count; axis++) {
        closes = closes || machine_twists(machine, axis) || machine->wrap[axis];
        say_axis(drawing, &layout->axis[axis], axis, &y);
    }
    if (closes)
        svg_words(drawing->text, 20, y + 18, "tiny", "dashed ends: joined to the other end");
    for (uint32_t axis = 0; axis < machine->grid_axis_count; axis++)
        if (machine_twists(machine, axis)) {
            say_twist(drawing, axis, y + 31);
            y += 13;
        }
}
