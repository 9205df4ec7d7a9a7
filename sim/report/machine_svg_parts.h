/*
 * machine_svg_parts.h: the parts of a machine's drawing that lie in files of their own. Internal to
 * machine_svg*.c.
 */
#ifndef SIM_REPORT_MACHINE_SVG_PARTS_H
#define SIM_REPORT_MACHINE_SVG_PARTS_H

#include <stdbool.h>
#include <stdint.h>

struct level_tier;
struct machine;
struct strbuf;

enum {
    MACHINE_SVG_WIDTH = 1180,
    MACHINE_SVG_LEFT = 350, /* Where boxes begin; words stand left of it. */
    MACHINE_SVG_RIGHT = MACHINE_SVG_WIDTH - 30,
    MACHINE_SVG_ROW_HEIGHT = 110,
    MACHINE_SVG_BOX_HEIGHT = 40,
    MACHINE_SVG_UNITS_SHOWN = 8,
    MACHINE_SVG_UNITS_MAX = 9, /* A leaf of each GPU of a node, and the last leaf. */
    MACHINE_SVG_GRID_SHOWN = 8,
};

struct point {
    double x, y;
};

struct drawing {
    const struct machine *machine;
    struct strbuf *text;
    double y; /* Down to here something is drawn. */
};

/* What a row of boxes shows of its units, and where the middle of each box is. */
struct unit_row {
    uint32_t unit[MACHINE_SVG_UNITS_MAX];
    struct point middle[MACHINE_SVG_UNITS_MAX];
    bool reached[MACHINE_SVG_UNITS_MAX]; /* By a cable from something that is drawn below. */
    uint32_t count;
};

/* The first few units and the last; `most` is at least 2. */
void row_choose(struct unit_row *row, uint32_t units, uint32_t most);
/* One more unit, unless it is there or the row is full. */
void row_add(struct unit_row *row, uint32_t unit);
/* From box to box. */
double row_pitch(const struct unit_row *row);
/* The box of a unit: its name, its slice and, where others of the slice are not drawn, how many
 * there are of all `units`, and its switches. `slices` is 0 unless the unit lies in one slice. */
void row_draw_unit(struct drawing *drawing, const struct level_tier *tier, struct point middle,
                   double width, uint32_t unit, uint32_t slices, uint32_t units);
/* In each gap of a row of boxes that stands for units that are not drawn; words left of the row say
 * how many there are. Of units that lie in one slice each, the last gap stands for all. */
void row_say_gaps(struct drawing *drawing, const struct unit_row *row, bool in_slice,
                  uint32_t units);
/* How many units there are, under the gap in a row that stands for units that are not drawn. */
void row_say_more(struct drawing *drawing, const struct unit_row *row, uint32_t units, double y);
/* A cable from the upper edge of something to the lower edge of the unit above that it leads to. If
 * that is not drawn, only the cable's beginning is. */
void row_draw_cable(struct drawing *drawing, struct point from, struct unit_row *above,
                    uint32_t unit);
/* Below units to which nothing that is drawn leads: where their cables come from. */
void row_draw_stubs(struct drawing *drawing, const struct unit_row *row);

/* The host of the picture is a CPU, and GPUs that share a NIC are no host. */
const char *tier_name(const struct level_tier *tier);
/* What a tier is, left of its boxes. */
void tier_say(struct drawing *drawing, uint32_t level, uint32_t index);

/* The first nodes and the last, wired to the leaves (NULL: none), and below them what joins their
 * NVSwitches. */
void nodes_draw(struct drawing *drawing, struct unit_row *leaves);

/* How a slice's grid is laid out: which chips of each axis are drawn, and how far apart. */
struct grid_layout {
    struct grid_axis {
        uint32_t chip[MACHINE_SVG_GRID_SHOWN]; /* Coordinates along the axis, ascending. */
        uint32_t count;
        bool has_gap; /* Chips between the last two are not drawn. */
    } axis[3];
    double cell, layer; /* Pixels from chip to chip in x and y, and from layer to layer. */
    double width, height;
};

/* The largest layout that is at most `width_most` pixels wide. Where layers lie behind each other
 * fewer chips are drawn than would fit, so that each can be seen. */
void grid_layout_find(const struct machine *machine, double width_most, struct grid_layout *ret);
/* Every cable between chips that are drawn; cables that close an axis as dashed ends on both sides
 * of it. */
void grid_draw(const struct drawing *drawing, const struct grid_layout *layout,
               struct point corner);
/* Where the cables of a host's chips leave them. */
struct grid_port {
    struct point at;
    bool is_right; /* On the right edge of the box around the chips; else on its upper edge. */
};

/* A box around the chips from `at` to `at` + `box` in their layer, as far as they are drawn, and
 * where cables leave it; false if none of the chips is drawn. */
bool grid_outline(const struct drawing *drawing, const struct grid_layout *layout,
                  struct point corner, const uint32_t *at, const uint32_t *box,
                  struct grid_port *ret_port);
/* What each axis is, left of the drawing. */
void grid_say_axes(const struct drawing *drawing, const struct grid_layout *layout);

#endif
