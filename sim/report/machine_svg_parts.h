/*
 * machine_svg_parts.h: the parts of a machine's drawing that lie in files of their own. Internal to
 * machine_svg*.c.
 */
#ifndef SIM_REPORT_MACHINE_SVG_PARTS_H
#define SIM_REPORT_MACHINE_SVG_PARTS_H

#include <stdbool.h>
#include <stdint.h>

struct machine;
struct strbuf;

enum { MACHINE_SVG_WIDTH = 1180, MACHINE_SVG_GRID_SHOWN = 8 };

struct point {
    double x, y;
};

struct drawing {
    const struct machine *machine;
    struct strbuf *text;
    double y; /* Down to here something is drawn. */
};

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
