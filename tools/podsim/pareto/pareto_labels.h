/*
 * pareto_labels.h: places for small words in a picture where no line runs.
 */
#ifndef TOOLS_PODSIM_PARETO_PARETO_LABELS_H
#define TOOLS_PODSIM_PARETO_PARETO_LABELS_H

#include <stdbool.h>
#include <stdint.h>

struct arena;

struct pareto_segment {
    double x1, y1, x2, y2;
};

struct pareto_box {
    double left, top, width, height;
};

/* Lines and boxes that words keep clear of. Beyond the capacity they are forgotten. */
struct pareto_obstacles {
    struct pareto_segment *segment;
    uint32_t count, capacity;
};

/* Without memory nothing is kept clear of. */
void pareto_obstacles_begin(struct pareto_obstacles *obstacles, struct arena *arena,
                            uint32_t capacity);
void pareto_obstacles_add(struct pareto_obstacles *obstacles, struct pareto_segment segment);
void pareto_obstacles_add_box(struct pareto_obstacles *obstacles, struct pareto_box box);

/* The place for a box of words around a point with a ring of `radius`: in `within`, crossed by the
 * fewest obstacles, and of these places the nearest, from the left above on. */
struct pareto_box pareto_label_place(const struct pareto_obstacles *obstacles, double x, double y,
                                     double radius, double width, double height,
                                     struct pareto_box within);

/* The place for a curve's name. The curve ends at (x, y); the name stands to the right of this
 * point, or else to the left, moved up or down to where it covers the fewest obstacles. */
struct pareto_box pareto_name_place(const struct pareto_obstacles *obstacles, double x, double y,
                                    double radius, double width, double height,
                                    struct pareto_box within);

#endif
