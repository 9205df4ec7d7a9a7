/* Hops that a collective cannot do without, against ways that are found link by link. */
#include "sim/roofline/collective_bound.h"
#include "tests/support/case.h"
#include "tests/support/scene.h"

static double latency_us(const struct machine *machine, const struct group *group,
                         struct collective_query query)
{
    struct collective_bound bound;
    query.array_bytes = 8;
    collective_bound(machine, group, &query, &bound);
    return bound.latency_s * 1e6;
}

/* Hops from a chip to all others, link by link. */
static void hops_find(const struct machine *machine, uint32_t from, uint32_t *hops)
{
    uint32_t queue[128], count = 0;
    for (uint32_t chip = 0; chip < machine->chip_count; chip++) hops[chip] = UINT32_MAX;
    hops[from] = 0;
    queue[count++] = from;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t port = 0; port < 2 * machine->axis_count; port++) {
            uint32_t at[MACHINE_AXES_MAX], to[MACHINE_AXES_MAX];
            machine_coordinates(machine, queue[i], at);
            machine_neighbour(machine, at, port, to);
            uint32_t const chip = machine_chip_at(machine, to);
            if (hops[chip] != UINT32_MAX) continue;
            hops[chip] = hops[queue[i]] + 1;
            queue[count++] = chip;
        }
}

/* From the root to the farthest, or to whom a permute names; by the fastest of the hops. */
static void latency_is_that_of_the_root_or_of_the_message(void **state)
{
    (void)state;
    struct machine const twisted = case_machine("v4p:4x4x8_twisted");
    struct group const all = case_group(&twisted, NULL), line = case_group(&twisted, "z");
    uint32_t hops[128], most = 0;
    for (uint32_t root = 0; root < 128; root += 37) {
        uint32_t farthest = 0;
        hops_find(&twisted, root, hops);
        for (uint32_t chip = 0; chip < 128; chip++)
            farthest = hops[chip] > farthest ? hops[chip] : farthest;
        struct collective_query const rooted = {.kind = COLLECTIVE_BROADCAST, .root = root};
        case_near(latency_us(&twisted, &all, rooted), farthest, 1e-9);
        most = farthest;
    }
    case_near(latency_us(&twisted, &all, (struct collective_query){.kind = COLLECTIVE_ALL_GATHER}),
              most, 1e-9); /* From any chip. */
    for (int32_t x = -1; x < 3; x++)
        for (int32_t z = -5; z < 6; z += 2) {
            struct collective_query permute = {.kind = COLLECTIVE_PERMUTE};
            uint32_t const from[MACHINE_AXES_MAX] = {x < 0 ? 1u : 0u, 0, z < 0 ? (uint32_t)-z : 0};
            uint32_t const to[MACHINE_AXES_MAX] = {x > 0 ? (uint32_t)x : 0, 0,
                                                   z > 0 ? (uint32_t)z : 0};
            for (uint32_t d = 0; d < all.dimension_count; d++)
                permute.offset[d] = all.dimension[d].axis == 0   ? x
                                    : all.dimension[d].axis == 2 ? z
                                                                 : 0;
            hops_find(&twisted, machine_chip_at(&twisted, from), hops);
            case_near(latency_us(&twisted, &all, permute), hops[machine_chip_at(&twisted, to)],
                      1e-9);
        }
    case_near(latency_us(&twisted, &line, (struct collective_query){.kind = COLLECTIVE_ALL_GATHER}),
              4, 1e-9);
}

/* On a line the root's longer side counts; a faster hop makes all of its axis faster. */
static void latency_on_lines_is_that_of_the_longer_side(void **state)
{
    (void)state;
    struct scene grid;
    scene_open(&grid, 8, 4, 1, false);
    struct group const both = scene_group(&grid, true, true, false);
    for (uint32_t root = 0; root < 32; root++) {
        uint32_t const x = group_digit(&both, root, 0), y = group_digit(&both, root, 1);
        uint32_t const far_x = x > 7 - x ? x : 7 - x, far_y = y > 3 - y ? y : 3 - y;
        struct collective_query const rooted = {.kind = COLLECTIVE_REDUCE, .root = root};
        case_near(latency_us(&grid.machine, &both, rooted), far_x + far_y, 1e-9);
    }
    struct machine_link_override const links[] = {
        {{2, 0}, {3, 0}, 0, 250000}, {{0, 1}, {0, 2}, 0, 0}, {{0, 1}, {0, 2}, 0, 2000000}};
    grid.machine.links = links;
    grid.machine.link_override_count = 3;
    grid.machine.chip.launch.message_ps = 500000;
    case_near(
        latency_us(&grid.machine, &both, (struct collective_query){.kind = COLLECTIVE_ALL_GATHER}),
        7 * 0.25 + 3 + 0.5, 1e-9);
    scene_close(&grid);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(latency_is_that_of_the_root_or_of_the_message,
                                        case_arena_up, case_arena_down),
        cmocka_unit_test(latency_on_lines_is_that_of_the_longer_side),
    };
    return cmocka_run_group_tests_name("latency of collectives", tests, NULL, NULL);
}
