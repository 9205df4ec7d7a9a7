/* Words of a picture stand where no line runs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sim/base/arena.h"
#include "tools/podsim/pareto/pareto_labels.h"

static const struct pareto_box page = {0, 0, 400, 300};

/* Whether one of many points of the line is in the box. */
static bool runs_through(struct pareto_segment line, struct pareto_box box)
{
    enum { POINTS = 1000 };
    for (int i = 0; i <= POINTS; i++) {
        double const share = (double)i / POINTS;
        double const x = line.x1 + share * (line.x2 - line.x1);
        double const y = line.y1 + share * (line.y2 - line.y1);
        if (x > box.left && x < box.left + box.width && y > box.top && y < box.top + box.height)
            return true;
    }
    return false;
}

static void words_keep_clear_of_lines(void **state)
{
    /* Left above, straight above and right above of the point; lines of all directions. */
    static const struct pareto_segment lines[] = {
        {100, 100, 220, 160}, {150, 160, 195, 140}, {200, 0, 200, 145}, {210, 140, 300, 120}};
    struct arena *arena = arena_create(0);
    struct pareto_obstacles obstacles;
    (void)state;
    pareto_obstacles_begin(&obstacles, arena, 16);
    for (uint32_t count = 0; count <= 4; count++) {
        struct pareto_box const box = pareto_label_place(&obstacles, 200, 150, 8, 21, 8, page);
        for (uint32_t i = 0; i < count; i++) assert_false(runs_through(lines[i], box));
        if (count == 0) assert_true(box.left + box.width < 200 && box.top + box.height < 150);
        if (count < 4) pareto_obstacles_add(&obstacles, lines[count]);
    }
    /* Words are obstacles to other words. */
    struct pareto_box const first = pareto_label_place(&obstacles, 200, 150, 8, 21, 8, page);
    pareto_obstacles_add_box(&obstacles, first);
    struct pareto_box const second = pareto_label_place(&obstacles, 200, 150, 8, 21, 8, page);
    assert_true(second.left >= first.left + first.width || first.left >= second.left + 21 ||
                second.top >= first.top + first.height || first.top >= second.top + 8);
    arena_destroy(arena);
}

static void words_stay_in_the_picture(void **state)
{
    static const double corners[][2] = {{1, 1}, {399, 1}, {1, 299}, {399, 299}};
    struct arena *arena = arena_create(0);
    struct pareto_obstacles obstacles;
    (void)state;
    pareto_obstacles_begin(&obstacles, arena, 4);
    for (uint32_t i = 0; i < 4; i++) {
        struct pareto_box const box =
            pareto_label_place(&obstacles, corners[i][0], corners[i][1], 8, 21, 8, page);
        assert_true(box.left >= 0 && box.left + box.width <= 400);
        assert_true(box.top >= 0 && box.top + box.height <= 300);
    }
    arena_destroy(arena);
}

/* Four lines end at one point, one at the right edge: no name lies on a line, on a ring or on
 * another name, none leaves the picture, and each is beside its end. */
static void names_of_lines_that_end_together_lie_apart(void **state)
{
    static const double ends[][2] = {{200, 150}, {202, 152}, {204, 150}, {200, 156}, {398, 60}};
    enum { NAMES = sizeof ends / sizeof *ends, WIDTH = 45, HEIGHT = 11 };
    struct pareto_box box[NAMES];
    struct pareto_segment const across = {203, 144, 260, 148};
    struct arena *arena = arena_create(0);
    struct pareto_obstacles obstacles;
    (void)state;
    pareto_obstacles_begin(&obstacles, arena, 64);
    pareto_obstacles_add(&obstacles, across);
    for (uint32_t i = 0; i < NAMES; i++)
        pareto_obstacles_add_box(&obstacles,
                                 (struct pareto_box){ends[i][0] - 4, ends[i][1] - 4, 8, 8});
    for (uint32_t i = 0; i < NAMES; i++) {
        box[i] = pareto_name_place(&obstacles, ends[i][0], ends[i][1], 8, WIDTH, HEIGHT, page);
        pareto_obstacles_add_box(&obstacles, box[i]);
        assert_false(runs_through(across, box[i]));
        assert_true(box[i].left >= 0 && box[i].left + WIDTH <= 400);
        assert_true(box[i].left >= ends[i][0] + 8 || box[i].left + WIDTH <= ends[i][0] - 8);
        assert_true(box[i].top >= 0 && box[i].top + HEIGHT <= 300);
        for (uint32_t k = 0; k < i; k++)
            assert_true(box[i].left >= box[k].left + WIDTH || box[k].left >= box[i].left + WIDTH ||
                        box[i].top >= box[k].top + HEIGHT || box[k].top >= box[i].top + HEIGHT);
    }
    assert_true(box[NAMES - 1].left + WIDTH <= 390);
    arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_keep_clear_of_lines),
        cmocka_unit_test(words_stay_in_the_picture),
        cmocka_unit_test(names_of_lines_that_end_together_lie_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
