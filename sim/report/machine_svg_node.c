/* The nodes of a machine of GPUs: GPUs above, what joins them below. */
#include <math.h>
#include <stddef.h>

#include "sim/base/counted.h"
#include "sim/base/svg.h"
#include "sim/machine/machine.h"
#include "sim/machine/totals.h"
#include "sim/report/machine_svg_parts.h"

enum {
    NODES_SHOWN = 3,
    CHIPS_SHOWN = 8,
    NODE_HEIGHT = 96,
    SWITCHES_END = 76, /* The lower edge of a node's switches, below the node's upper edge. */
};

/* The NVSwitches of a node, below its GPUs. */
static void draw_switches(struct drawing *drawing, struct point corner, double width,
                          const struct unit_row *gpus, double size)
{
    const struct machine *machine = drawing->machine;
    uint32_t const nodes = machine->axis_count > 1 ? machine->shape[1] : 1;
    uint32_t const switches = machine->level[0].tier[0].switch_count *
                              level_unit_count(machine, &machine->level[0], 0) / nodes;
    svg_box(drawing->text, corner.x + 6, corner.y + 58, width - 12, SWITCHES_END - 58, "switch");
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
                      const struct unit_row *gpus, double size)
{
    uint32_t const count = drawing->machine->shape[0];
    struct tier_totals totals;
    totals_of_tier(drawing->machine, 0, 0, &totals);
    for (uint32_t i = 0; i < gpus->count; i++)
        for (uint32_t k = i + 1; k < gpus->count; k++) {
            double const y = gpus->middle[i].y + size / 2;
            draw_arc(drawing, (struct point){gpus->middle[i].x, y},
                     (struct point){gpus->middle[k].x, y},
                     (corner.y + SWITCHES_END - y) * (k - i) / gpus->count);
        }
    if (count > 1)
        svg_say(drawing->text, corner.x + width / 2, corner.y + 90, "tiny mid", "%s",
                counted(count * (count - 1) / 2 * totals.links_per_cable, "cable").text);
}

static void draw_node(struct drawing *drawing, uint32_t node, struct point corner, double width,
                      struct unit_row *leaves)
{
    const struct machine *machine = drawing->machine;
    struct unit_row gpus = {.count = 0};
    row_choose(&gpus, machine->shape[0], CHIPS_SHOWN);
    double const pitch = (width - 12) / gpus.count;
    double const size = pitch - 4 > 24 ? 24 : pitch - 4;
    svg_box(drawing->text, corner.x, corner.y, width, NODE_HEIGHT, "node");
    svg_say(drawing->text, corner.x + 6, corner.y + 90, "tiny", "node %u", node);
    for (uint32_t i = 0; i < gpus.count; i++) {
        struct point const at = {corner.x + 6 + i * pitch + (pitch - size) / 2, corner.y + 10};
        uint32_t const chip[MACHINE_AXES_MAX] = {gpus.unit[i], node, 0, 0};
        gpus.middle[i] = (struct point){at.x + size / 2, at.y + size / 2};
        svg_box(drawing->text, at.x, at.y, size, size, "chip");
        svg_say(drawing->text, gpus.middle[i].x, gpus.middle[i].y + 4, "tiny mid", "%u",
                gpus.unit[i]);
        if (leaves != NULL)
            row_draw_cable(drawing, (struct point){gpus.middle[i].x, at.y}, leaves,
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

/* The second tier of NVSwitches, below the nodes: no cable of another tier passes there. */
static void draw_upper_switches(struct drawing *drawing, const struct unit_row *nodes,
                                uint32_t node_count)
{
    struct unit_row row = *nodes;
    tier_say(drawing, 0, 1);
    for (uint32_t i = 0; i < row.count; i++) {
        double const x = nodes->middle[i].x;
        row.middle[i].y = drawing->y + MACHINE_SVG_BOX_HEIGHT / 2.0;
        svg_line(drawing->text, x, nodes->middle[i].y - NODE_HEIGHT / 2.0 + SWITCHES_END, x,
                 drawing->y, "cable");
        row_draw_unit(drawing, &drawing->machine->level[0].tier[1], row.middle[i], 200, row.unit[i],
                      0, node_count);
    }
    row_say_gaps(drawing, &row, /* in_slice= */ false, node_count);
    drawing->y += MACHINE_SVG_ROW_HEIGHT;
}

void nodes_draw(struct drawing *drawing, struct unit_row *leaves)
{
    const struct machine *machine = drawing->machine;
    uint32_t const nodes = machine->axis_count > 1 ? machine->shape[1] : 1;
    struct unit_row row = {.count = 0};
    row_choose(&row, nodes, NODES_SHOWN);
    double const pitch = row_pitch(&row);
    double const width = pitch - 40 > 360 ? 360 : pitch - 40;
    tier_say(drawing, 0, 0);
    for (uint32_t i = 0; i < row.count; i++) {
        struct point const corner = {MACHINE_SVG_LEFT + i * pitch + (pitch - width) / 2,
                                     drawing->y};
        row.middle[i] = (struct point){corner.x + width / 2, drawing->y + NODE_HEIGHT / 2.0};
        draw_node(drawing, row.unit[i], corner, width, leaves);
    }
    if (leaves != NULL) row_draw_stubs(drawing, leaves);
    row_say_more(drawing, &row, nodes, drawing->y + 110);
    drawing->y += 130;
    if (machine->level[0].tier_count > 1) draw_upper_switches(drawing, &row, nodes);
}
