/* Neighbours and ways on grids: lines, rings and twisted tori, against a search over the graph. */
#include <stdlib.h>
#include <string.h>

#include "sim/machine/totals.h"
#include "sim/scenario/scenario.h"
#include "tests/support/case.h"

enum { CHIPS_MAX = 1024 };

static struct machine machine_of(const char *text)
{
    struct machine const machine = case_machine(text);
    assert_true(machine.chip_count <= CHIPS_MAX);
    return machine;
}

/* Links from a chip to all others, breadth first. */
static void distances(const struct machine *machine, uint32_t source, uint32_t distance[CHIPS_MAX])
{
    uint32_t queue[CHIPS_MAX], first = 0, end = 0;
    for (uint32_t i = 0; i < machine->chip_count; i++) distance[i] = UINT32_MAX;
    distance[source] = 0;
    queue[end++] = source;
    while (first < end) {
        uint32_t const chip = queue[first++];
        uint32_t at[MACHINE_AXES_MAX], next[MACHINE_AXES_MAX];
        machine_coordinates(machine, chip, at);
        for (uint32_t port = 0; port < 2 * machine->grid_axis_count; port++) {
            if (!machine_has_link(machine, chip, port)) continue;
            machine_neighbour(machine, at, port, next);
            uint32_t const other = machine_chip_at(machine, next);
            if (distance[other] != UINT32_MAX) continue;
            distance[other] = distance[chip] + 1;
            queue[end++] = other;
        }
    }
}

/* Takes hops axis by axis, to a chip; returns how many they were. */
static uint32_t walk_by(const struct machine *machine, uint32_t from, uint32_t to,
                        const int32_t hops[CHIP_AXES_MAX])
{
    uint32_t at[MACHINE_AXES_MAX], steps = 0;
    machine_coordinates(machine, from, at);
    for (uint32_t axis = 0; axis < CHIP_AXES_MAX; axis++)
        for (int32_t left = abs(hops[axis]); left > 0; left--, steps++) {
            uint32_t next[MACHINE_AXES_MAX];
            uint32_t const port = machine_port(axis, hops[axis] < 0);
            assert_true(machine_has_link(machine, machine_chip_at(machine, at), port));
            machine_neighbour(machine, at, port, next);
            memcpy(at, next, sizeof at);
        }
    assert_int_equal(machine_chip_at(machine, at), to);
    return steps;
}

/* The same by the way that machine_hops() says. */
static uint32_t walk(const struct machine *machine, uint32_t from, uint32_t to)
{
    uint32_t at[MACHINE_AXES_MAX], target[MACHINE_AXES_MAX];
    int32_t hops[CHIP_AXES_MAX];
    machine_coordinates(machine, from, at);
    machine_coordinates(machine, to, target);
    machine_hops(machine, at, target, hops);
    return walk_by(machine, from, to, hops);
}

static const char *const shapes[] = {
    "v4p:4x4x8_twisted", "v4p:4x8x4_twisted", "v4p:4x8x8_twisted",
    "v5p:8x8x4_twisted", "v4p:4x4x8",         "v4p:4x8x8",
    "tpu-v5e:8x16",      "tpu-v5e:4x8",       "v4p:8x8x16_twisted",
};

static void ways_are_as_short_as_there_are(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        struct machine const machine = machine_of(shapes[i]);
        uint32_t distance[CHIPS_MAX];
        uint32_t const step = machine.chip_count > 256 ? 97 : 11;
        for (uint32_t from = 0; from < machine.chip_count; from += step) {
            distances(&machine, from, distance);
            for (uint32_t to = 0; to < machine.chip_count; to++)
                if (walk(&machine, from, to) != distance[to])
                    fail_msg("%s: %u to %u: %u hops, not %u", shapes[i], from, to,
                             walk(&machine, from, to), distance[to]);
        }
    }
}

/* As many as a search over the numbers of hops finds that lead there. */
static void all_equally_short_ways_are_found(void **state)
{
    (void)state;
    static const char *const twisted[] = {"v4p:4x4x8_twisted", "v4p:4x8x8_twisted", "v4p:4x4x8"};
    for (size_t i = 0; i < sizeof twisted / sizeof *twisted; i++) {
        struct machine const machine = machine_of(twisted[i]);
        uint32_t const from = 23;
        uint32_t distance[CHIPS_MAX], count[CHIPS_MAX] = {0};
        distances(&machine, from, distance);
        for (int32_t x = -8; x <= 8; x++)
            for (int32_t y = -8; y <= 8; y++)
                for (int32_t z = -8; z <= 8; z++) {
                    uint32_t at[MACHINE_AXES_MAX];
                    int32_t const left[] = {x, y, z};
                    machine_coordinates(&machine, from, at);
                    for (uint32_t axis = 0; axis < 3; axis++)
                        for (int32_t n = 0; n < abs(left[axis]); n++) {
                            uint32_t next[MACHINE_AXES_MAX];
                            machine_neighbour(&machine, at, machine_port(axis, left[axis] < 0),
                                              next);
                            memcpy(at, next, sizeof at);
                        }
                    uint32_t const to = machine_chip_at(&machine, at);
                    count[to] += distance[to] == (uint32_t)(abs(x) + abs(y) + abs(z));
                }
        for (uint32_t to = 0; to < machine.chip_count; to++) {
            int32_t ways[MACHINE_WAYS_MAX][CHIP_AXES_MAX];
            uint32_t at[MACHINE_AXES_MAX], target[MACHINE_AXES_MAX];
            machine_coordinates(&machine, from, at);
            machine_coordinates(&machine, to, target);
            assert_int_equal(machine_ways(&machine, at, target, ways), count[to]);
            for (uint32_t way = 0; way < count[to]; way++) {
                assert_int_equal(walk_by(&machine, from, to, ways[way]), distance[to]);
                for (uint32_t other = 0; other < way; other++)
                    assert_memory_not_equal(ways[way], ways[other], sizeof ways[way]);
            }
        }
    }
}

static void links_go_both_ways_and_are_found_by_their_ends(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        struct machine const machine = machine_of(shapes[i]);
        uint64_t links = 0;
        for (uint32_t chip = 0; chip < machine.chip_count; chip++)
            for (uint32_t port = 0; port < MACHINE_GRID_PORTS; port++) {
                uint32_t at[MACHINE_AXES_MAX], next[MACHINE_AXES_MAX], back[MACHINE_AXES_MAX];
                if (!machine_has_link(&machine, chip, port)) continue;
                machine_coordinates(&machine, chip, at);
                machine_neighbour(&machine, at, port, next);
                machine_neighbour(&machine, next, port ^ 1, back);
                assert_memory_equal(at, back, sizeof at);
                assert_int_equal(machine_port_between(&machine, at, next), port);
                links++;
            }
        assert_int_equal(links, machine_link_count(&machine));
    }
}

/* A twisted torus looks alike from every chip, is no wider, and twice as much crosses its middle.
 */
static void twisting_brings_chips_nearer(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"v4p:4x4x8_twisted", "v4p:4x4x8"},
        {"v4p:4x8x8_twisted", "v4p:4x8x8"},
        {"v4p:8x8x16_twisted", "v4p:8x8x16"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        struct machine const twisted = machine_of(pairs[i][0]), plain = machine_of(pairs[i][1]);
        uint64_t sum[2] = {0, 0};
        uint32_t far[2] = {0, 0}, distance[CHIPS_MAX];
        for (uint32_t from = 0; from < twisted.chip_count; from += 37) {
            uint64_t own = 0;
            distances(&twisted, from, distance);
            for (uint32_t to = 0; to < twisted.chip_count; to++) {
                own += distance[to];
                if (distance[to] > far[0]) far[0] = distance[to];
            }
            if (from == 0) sum[0] = own;
            assert_int_equal(own, sum[0]);
        }
        distances(&plain, 0, distance);
        for (uint32_t to = 0; to < plain.chip_count; to++) {
            sum[1] += distance[to];
            if (distance[to] > far[1]) far[1] = distance[to];
        }
        assert_true(sum[0] < sum[1] && far[0] < far[1]);
        struct machine_totals a, b;
        totals_of_machine(&twisted, &a);
        totals_of_machine(&plain, &b);
        assert_int_equal(a.bisection_bytes_per_s, 2 * b.bisection_bytes_per_s);
        assert_int_equal(machine_link_count(&twisted), machine_link_count(&plain));
    }
}

static void only_the_long_axes_are_rings(void **state)
{
    (void)state;
    struct machine const machine = machine_of("v5p:8x4x8_twisted");
    assert_true(machine.wrap[0] && !machine.wrap[1] && machine.wrap[2]);
    assert_true(!machine_twists(&machine, 0) && machine_twists(&machine, 1));
    assert_non_null(strstr(machine.wrap_reason[1], "twisted"));
    uint32_t const top[] = {1, 3, 7, 0};
    uint32_t next[MACHINE_AXES_MAX];
    machine_neighbour(&machine, top, machine_port(1, false), next);
    assert_memory_equal(next, ((uint32_t[]){5, 0, 3, 0}), sizeof next);
    static const char *const bad[] = {"v4p:4x4x4_twisted", "v4p:4x4x12_twisted",
                                      "v4p:2x2x4_twisted", "tpu-v5e:8x16_twisted",
                                      "v4p:4x4x8_twist",   "v4p:4x4x8_twistedx4"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct machine_plan plan;
        struct machine refused;
        case_ok(scenario_machine_parse(case_arena, bad[i], "", &plan, &case_error));
        case_refused(machine_build(case_arena, &plan, &refused, &case_error), STATUS_INVALID,
                     "/machine/shape", "");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ways_are_as_short_as_there_are),
        cmocka_unit_test(links_go_both_ways_and_are_found_by_their_ends),
        cmocka_unit_test(all_equally_short_ways_are_found),
        cmocka_unit_test(twisting_brings_chips_nearer),
        cmocka_unit_test(only_the_long_axes_are_rings),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
