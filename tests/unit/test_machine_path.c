/* The way between any two chips: links that follow each other, as few as can be, at their rates. */
#include <stdlib.h>
#include <string.h>

#include "sim/machine/path.h"
#include "tests/support/case.h"

static const char *const machines[] = {
    "tpu-v5e:4x8",
    "tpu-v5p:4x4x4",
    "v4p:4x4x8_twisted",
    "v4p:4x8x8_twisted",
    "tpu-v5e:4x4,slices=2",
    "h100-sxm",
    "h100-sxm:nodes=4",
    "h100-sxm:nodes=6,policy=hash",
    "h100-sxm:nodes=8,policy=rail,leaf.oversubscription=4",
    "a100-sxm:nodes=3,nvlink.policy=hash",
};

struct pair {
    uint32_t from[MACHINE_AXES_MAX], to[MACHINE_AXES_MAX];
};

/* Over the grid each link leaves the chip that the one before it leads to. */
static uint32_t walk_grid(const struct paths *paths, struct path_course course,
                          const struct pair *pair)
{
    const struct machine *machine = paths->machine;
    uint32_t here[MACHINE_AXES_MAX], hop = 0;
    struct path_link link = {.last = false};
    memcpy(here, pair->from, sizeof here);
    for (; !link.last; hop++) {
        uint32_t next[MACHINE_AXES_MAX];
        path_link(paths, course, pair->from, pair->to, hop, &link);
        struct path_rate const rate = path_rate(paths, course, &link, hop);
        assert_memory_equal(link.at, here, sizeof here);
        assert_true(machine_has_link(machine, machine_chip_at(machine, here), link.port));
        assert_int_equal(rate.bytes_per_s, machine->chip.ici_bytes_per_s);
        assert_int_equal(rate.latency_ps, machine->chip.hop_latency_ps);
        machine_neighbour(machine, here, link.port, next);
        memcpy(here, next, sizeof here);
    }
    assert_memory_equal(here, pair->to, sizeof here);
    return hop;
}

/* Through a level it goes up from the sender and down to the receiver, as long as that takes. */
static void walk_level(const struct paths *paths, struct path_course course,
                       const struct pair *pair)
{
    const struct level *level = paths->level[course.level].level;
    int64_t latency_ps = 0;
    bool down = false;
    struct path_link link = {.last = false};
    assert_int_equal(course.top, level_meeting_tier(level, pair->from, pair->to));
    for (uint32_t hop = 0; !link.last; hop++) {
        path_link(paths, course, pair->from, pair->to, hop, &link);
        struct path_rate const rate = path_rate(paths, course, &link, hop);
        const struct level_tier *tier = &level->tier[link.tier];
        uint32_t const cables = paths->level[course.level].tier[link.tier].cable_count;
        assert_true(level_tier_queues(level, link.tier));
        assert_true(link.down || !down);
        down = link.down;
        assert_memory_equal(link.at, down ? pair->to : pair->from, sizeof link.at);
        assert_int_equal(link.port, machine_level_port(course.level, link.tier, down));
        assert_true(link.cable < cables);
        assert_int_equal(rate.bytes_per_s * cables, level_bundle_bytes_per_s(tier));
        latency_ps += rate.latency_ps;
    }
    assert_true(down);
    assert_int_equal(latency_ps, level_way_ps(level, course.top));
}

static void ways_lead_from_chip_to_chip(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof machines / sizeof *machines; i++) {
        struct machine const machine = case_machine(machines[i]);
        struct paths paths;
        case_ok(paths_build(case_arena, &machine, &paths, &case_error));
        case_ok(paths_rates_build(case_arena, &paths, &case_error));
        for (uint32_t a = 0; a < machine.chip_count; a++)
            for (uint32_t b = 0; b < machine.chip_count; b++) {
                struct pair pair;
                int32_t hops[CHIP_AXES_MAX];
                if (a == b) continue;
                machine_coordinates(&machine, a, pair.from);
                machine_coordinates(&machine, b, pair.to);
                struct path_course course = path_course(&paths, pair.from, pair.to);
                if (course.level != LEVEL_NONE) {
                    walk_level(&paths, course, &pair);
                    continue;
                }
                course.twisted = machine_is_twisted(&machine);
                machine_hops(&machine, pair.from, pair.to, hops);
                assert_int_equal(walk_grid(&paths, course, &pair),
                                 abs(hops[0]) + abs(hops[1]) + abs(hops[2]));
                course.antipode = 7; /* The other way round is as long. */
                assert_int_equal(walk_grid(&paths, course, &pair),
                                 abs(hops[0]) + abs(hops[1]) + abs(hops[2]));
            }
    }
}

/* All pairs of an exchange put the same on every link, both ways round; also of members that stand
 * apart, at any place between. */
static void antipodes_go_either_way_as_often(void **state)
{
    (void)state;
    struct machine const machine = case_machine("tpu-v5p:4x4x4");
    struct paths paths;
    case_ok(paths_build(case_arena, &machine, &paths, &case_error));
    for (uint32_t stride = 1; stride <= 2; stride++) {
        struct path_balance const balance = {
            .by_other = 7, .other = {1, 2, 0}, .stride = {stride, stride, stride, 1}};
        uint32_t load[64][MACHINE_GRID_PORTS] = {{0}};
        for (uint32_t a = 0; a < 64; a++)
            for (uint32_t b = 0; b < 64; b++) {
                struct pair pair;
                bool together = a != b;
                machine_coordinates(&machine, a, pair.from);
                machine_coordinates(&machine, b, pair.to);
                for (uint32_t axis = 0; axis < 3; axis++)
                    together = together && pair.from[axis] % stride == pair.to[axis] % stride;
                if (!together) continue;
                struct path_course course = path_course(&paths, pair.from, pair.to);
                course.antipode = path_antipode_by(&balance, pair.from, pair.to);
                struct path_link link = {.last = false};
                for (uint32_t hop = 0; !link.last; hop++) {
                    path_link(&paths, course, pair.from, pair.to, hop, &link);
                    load[machine_chip_at(&machine, link.at)][link.port]++;
                }
            }
        for (uint32_t chip = 0; chip < 64; chip++)
            for (uint32_t port = 0; port < 6; port++)
                assert_int_equal(load[chip][port], load[0][0]);
    }
}

static void overridden_links_have_rates_of_their_own(void **state)
{
    (void)state;
    struct machine machine = case_machine("tpu-v5p:4x4x4");
    struct machine_link_override const slow = {.from = {3}, .to = {0}, .bytes_per_s = 1000000};
    struct paths paths;
    machine.links = &slow;
    machine.link_override_count = 1;
    case_ok(paths_build(case_arena, &machine, &paths, &case_error));
    case_ok(paths_rates_build(case_arena, &paths, &case_error));
    struct path_course const course = path_course(&paths, slow.from, slow.to);
    struct path_link link;
    path_link(&paths, course, slow.from, slow.to, 0, &link);
    struct path_rate const rate = path_rate(&paths, course, &link, 0);
    assert_int_equal(rate.bytes_per_s, 1000000);
    assert_int_equal(rate.latency_ps, machine.chip.hop_latency_ps);
    path_link(&paths, course, slow.to, slow.from, 0, &link);
    assert_int_equal(path_rate(&paths, course, &link, 0).bytes_per_s, machine.chip.ici_bytes_per_s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ways_lead_from_chip_to_chip),
        cmocka_unit_test(antipodes_go_either_way_as_often),
        cmocka_unit_test(overridden_links_have_rates_of_their_own),
    };
    return cmocka_run_group_tests_name("machine_path", tests, case_arena_up, case_arena_down);
}
