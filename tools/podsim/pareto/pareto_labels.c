#include "tools/podsim/pareto/pareto_labels.h"

#include <math.h>
#include <stddef.h>

#include "sim/base/arena.h"

enum { DISTANCES = 6, DISTANCE_STEP = 5, DIRECTIONS = 8, CLEARANCE = 2, NAME_PLACES = 24 };

void pareto_obstacles_begin(struct pareto_obstacles *obstacles, struct arena *arena,
                            uint32_t capacity)
{
    struct pareto_segment *const segment = arena_take(arena, capacity, sizeof *segment);
    *obstacles = (struct pareto_obstacles){segment, 0, segment == NULL ? 0 : capacity};
}

void pareto_obstacles_add(struct pareto_obstacles *obstacles, struct pareto_segment segment)
{
    if (obstacles->count < obstacles->capacity) obstacles->segment[obstacles->count++] = segment;
}

void pareto_obstacles_add_box(struct pareto_obstacles *obstacles, struct pareto_box box)
{
    double const right = box.left + box.width, bottom = box.top + box.height;
    pareto_obstacles_add(obstacles, (struct pareto_segment){box.left, box.top, right, bottom});
    pareto_obstacles_add(obstacles, (struct pareto_segment){box.left, bottom, right, box.top});
}

/* Cuts the part [low, high] of a line that begins at `from` and goes on by `by` to what lies
 * between two bounds. */
static void part_cut(double from, double by, double least, double most, double *low, double *high)
{
    if (by == 0) {
        if (from < least || from > most) *high = -1;
        return;
    }
    double const one = (least - from) / by, other = (most - from) / by;
    *low = fmax(*low, fmin(one, other));
    *high = fmin(*high, fmax(one, other));
}

static bool crosses(const struct pareto_segment *of, const struct pareto_box *box)
{
    double low = 0, high = 1;
    part_cut(of->x1, of->x2 - of->x1, box->left - CLEARANCE, box->left + box->width + CLEARANCE,
             &low, &high);
    part_cut(of->y1, of->y2 - of->y1, box->top - CLEARANCE, box->top + box->height + CLEARANCE,
             &low, &high);
    return low <= high;
}

static uint32_t crossings(const struct pareto_obstacles *obstacles, const struct pareto_box *box)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < obstacles->count; i++) count += crosses(&obstacles->segment[i], box);
    return count;
}

static bool lies_in(const struct pareto_box *box, const struct pareto_box *within)
{
    return box->left >= within->left && box->left + box->width <= within->left + within->width &&
           box->top >= within->top && box->top + box->height <= within->top + within->height;
}

struct pareto_box pareto_label_place(const struct pareto_obstacles *obstacles, double x, double y,
                                     double radius, double width, double height,
                                     struct pareto_box within)
{
    /* Shares of the way to the right and downwards. */
    static const double right[DIRECTIONS] = {-1, 0, 1, -1, 1, 1, 0, -1};
    static const double down[DIRECTIONS] = {-1, -1, 1, 0, 0, -1, 1, 1};
    struct pareto_box best = {x - radius - width, y - radius - height, width, height};
    uint32_t least = UINT32_MAX;
    for (uint32_t i = 0; i < DISTANCES * DIRECTIONS && least > 0; i++) {
        double const far = radius + CLEARANCE + i / DIRECTIONS * DISTANCE_STEP;
        double const across = right[i % DIRECTIONS], along = down[i % DIRECTIONS];
        /* On a diagonal a corner of the box is on the ring; else the middle of a side. */
        double const share = across != 0 && along != 0 ? 0.7 : 1;
        struct pareto_box const box = {x + share * across * far + (across - 1) / 2 * width,
                                       y + share * along * far + (along - 1) / 2 * height, width,
                                       height};
        if (!lies_in(&box, &within)) continue;
        uint32_t const count = crossings(obstacles, &box);
        if (count < least) best = box;
        if (count < least) least = count;
    }
    return best;
}

struct pareto_box pareto_name_place(const struct pareto_obstacles *obstacles, double x, double y,
                                    double radius, double width, double height,
                                    struct pareto_box within)
{
    struct pareto_box best = {x + radius + CLEARANCE, y - height / 2, width, height};
    uint32_t least = UINT32_MAX;
    for (uint32_t i = 0; i < 2 * NAME_PLACES && least > 0; i++) {
        uint32_t const place = i % NAME_PLACES; /* 0, one down, one up, two down, ... */
        double const steps = (place + 1) / 2 * (place % 2 == 1 ? 1.0 : -1.0);
        double const beside = radius + 2 * CLEARANCE;
        struct pareto_box const box = {i < NAME_PLACES ? x + beside : x - beside - width,
                                       y - height / 2 + steps * DISTANCE_STEP, width, height};
        if (!lies_in(&box, &within)) continue;
        uint32_t const count = crossings(obstacles, &box);
        if (count < least) best = box;
        if (count < least) least = count;
    }
    return best;
}
