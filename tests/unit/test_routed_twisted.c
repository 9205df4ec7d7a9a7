/* Messages over a twisted torus: the shortest ways, all links that they load, and when; beside the
 * plain torus of as many chips. */
#include <stdlib.h>

#include "sim/base/units.h"
#include "tests/support/case.h"
#include "tests/support/exchange.h"
#include "tests/support/scene.h"

static const uint64_t message_bytes = 1000000; /* 10 us a link; a hop takes 1. */

/* Axes that are as short as x go round into others, shifted by half of the long ones. */
static void open_twisted(struct scene *scene, uint32_t x, uint32_t y, uint32_t z)
{
    uint32_t const least = x < z ? x : z;
    scene_open(scene, x, y, z, true);
    for (uint32_t axis = 0; axis < 3; axis++) {
        if (scene->machine.shape[axis] != least) continue;
        scene->machine.wrap[axis] = false;
        for (uint32_t other = 0; other < 3; other++)
            scene->machine.twist[axis][other] = scene->machine.shape[other] == least ? 0 : least;
    }
}

static void exchange_add(struct scene *scene, const struct primitive *primitive, bool x, bool y,
                         bool z)
{
    struct group const group = scene_group(scene, x, y, z);
    (void)scene_routed(scene, scene_stream(scene, "exchange"), primitive, &group, true,
                       message_bytes / 2, 1);
}

static uint64_t busiest(const struct trace *trace)
{
    uint64_t most = 0;
    for (uint32_t port = 0; port < MACHINE_GRID_PORTS; port++)
        most = trace->link[port].bytes > most ? trace->link[port].bytes : most;
    return most;
}

static uint64_t sum_of(const struct trace *trace)
{
    uint64_t sum = 0;
    for (uint32_t port = 0; port < MACHINE_GRID_PORTS; port++) sum += trace->link[port].sum_bytes;
    return sum;
}

/* Of the messages between all pairs that agree along the axes that the group does not span. */
static uint64_t hops_of_pairs(const struct scene *scene, const bool spans[3])
{
    const struct machine *machine = &scene->machine;
    uint64_t sum = 0;
    for (uint32_t a = 0; a < machine->chip_count; a++)
        for (uint32_t b = 0; b < machine->chip_count; b++) {
            uint32_t from[MACHINE_AXES_MAX], to[MACHINE_AXES_MAX];
            int32_t hops[CHIP_AXES_MAX];
            bool together = true;
            machine_coordinates(machine, a, from);
            machine_coordinates(machine, b, to);
            for (uint32_t axis = 0; axis < 3; axis++)
                together = together && (spans[axis] || from[axis] == to[axis]);
            if (!together) continue;
            machine_hops(machine, from, to, hops);
            sum += (uint64_t)(abs(hops[0]) + abs(hops[1]) + abs(hops[2]));
        }
    return sum;
}

static void an_exchange_of_all_pairs_gains_by_the_twist(void **state)
{
    (void)state;
    /* On 8x4x8 messages that are displaced alike, and leave at once, wait for each other longer. */
    static const uint32_t shapes[][3] = {{4, 4, 8}, {4, 8, 4}, {8, 4, 4}, {4, 8, 8}, {8, 4, 8}};
    static const bool faster[] = {true, true, true, true, false};
    static const bool all[3] = {true, true, true};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const uint32_t *shape = shapes[i];
        struct scene plain, twisted;
        scene_open(&plain, shape[0], shape[1], shape[2], true);
        exchange_add(&plain, &exchange_lanes, true, true, true);
        open_twisted(&twisted, shape[0], shape[1], shape[2]);
        exchange_add(&twisted, &exchange_lanes, true, true, true);
        struct trace const before = scene_run(&plain, 2, true, false);
        struct trace const after = scene_run_alike(&twisted, 2);
        assert_true(busiest(&after) <= busiest(&before));
        if (faster[i]) assert_true(after.step_ps < before.step_ps);
        assert_int_equal(sum_of(&after), 2 * message_bytes * hops_of_pairs(&twisted, all));
        for (uint32_t port = 0; port < MACHINE_GRID_PORTS; port++) {
            /* All chips are alike, and so are all links of a port. */
            assert_int_equal(after.link[port].link_count, twisted.machine.chip_count);
            assert_int_equal(after.link[port].sum_bytes,
                             after.link[port].bytes * twisted.machine.chip_count);
        }
        scene_close(&plain);
        scene_close(&twisted);
    }
}

/* Groups of some axes, at once: their ways may leave them, and fold along what they do not span. */
static void groups_of_two_axes_take_the_links_around_them(void **state)
{
    (void)state;
    static const struct {
        uint32_t shape[3];
        bool spans[3];
        uint32_t replayed; /* Of the folded run. */
    } cases[] = {
        {{4, 4, 8}, {true, true, false}, 16}, {{4, 4, 8}, {false, true, true}, 32},
        {{4, 4, 8}, {true, false, true}, 32}, {{4, 8, 8}, {false, true, true}, 4},
        {{8, 4, 4}, {false, true, true}, 16},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct primitive *const primitives[] = {&exchange_lanes, &exchange_unlike};
        for (size_t p = 0; p < 2; p++) {
            struct scene scene;
            open_twisted(&scene, cases[i].shape[0], cases[i].shape[1], cases[i].shape[2]);
            exchange_add(&scene, primitives[p], cases[i].spans[0], cases[i].spans[1],
                         cases[i].spans[2]);
            struct trace const trace = scene_run_alike(&scene, 2);
            assert_int_equal(sum_of(&trace),
                             2 * message_bytes * hops_of_pairs(&scene, cases[i].spans));
            if (p == 0)
                assert_int_equal(scene_run(&scene, 2, false, false).fold.replayed,
                                 cases[i].replayed);
            scene_close(&scene);
        }
    }
}

/* A line's lanes do not go around, where there are links now; rings of long axes are as they were.
 */
static void rings_and_lines_do_not_notice(void **state)
{
    (void)state;
    static const bool axes[][3] = {
        {true, false, false}, {false, false, true}, {true, true, false}, {true, true, true}};
    for (size_t i = 0; i < sizeof axes / sizeof *axes; i++)
        for (uint32_t kind = COLLECTIVE_ALL_GATHER; kind <= COLLECTIVE_REDUCE_SCATTER; kind++) {
            struct scene lines, twisted;
            scene_open(&lines, 4, 4, 8, true);
            lines.machine.wrap[0] = lines.machine.wrap[1] = false;
            open_twisted(&twisted, 4, 4, 8);
            for (uint32_t s = 0; s < 2; s++) {
                struct scene *scene = s == 0 ? &lines : &twisted;
                (void)scene_collective(
                    scene, scene_stream(scene, "collective"), (enum collective_kind)kind,
                    scene_group(scene, axes[i][0], axes[i][1], axes[i][2]), 1 << 20, NULL, 0);
            }
            struct trace const before = scene_run(&lines, 1, true, false);
            struct trace const after = scene_run(&twisted, 1, true, false);
            struct trace const folded = scene_run(&twisted, 1, false, false);
            assert_int_equal(after.step_ps, before.step_ps);
            assert_int_equal(after.step_ps, folded.step_ps);
            assert_int_equal(after.digest, before.digest);
            assert_int_equal(sum_of(&after), sum_of(&before));
            scene_close(&lines);
            scene_close(&twisted);
        }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_exchange_of_all_pairs_gains_by_the_twist),
        cmocka_unit_test(groups_of_two_axes_take_the_links_around_them),
        cmocka_unit_test(rings_and_lines_do_not_notice),
    };
    return cmocka_run_group_tests_name("routed_twisted", tests, NULL, NULL);
}
