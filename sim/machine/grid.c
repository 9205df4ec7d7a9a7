/*
 * grid.c: neighbours and ways on the grid of a machine.
 */
#include <string.h>

#include "sim/machine/machine.h"

bool machine_twists(const struct machine *machine, uint32_t axis)
{
    for (uint32_t other = 0; axis < CHIP_AXES_MAX && other < CHIP_AXES_MAX; other++)
        if (machine->twist[axis][other] != 0) return true;
    return false;
}

bool machine_is_twisted(const struct machine *machine)
{
    for (uint32_t axis = 0; axis < machine->grid_axis_count; axis++)
        if (machine_twists(machine, axis)) return true;
    return false;
}

bool machine_has_link(const struct machine *machine, uint32_t chip, uint32_t port)
{
    uint32_t at[MACHINE_AXES_MAX];
    uint32_t const axis = port / 2;
    if (axis >= machine->grid_axis_count || machine->shape[axis] == 1) return false;
    if (machine->wrap[axis] || machine_twists(machine, axis)) return true;
    machine_coordinates(machine, chip, at);
    return port % 2 == 0 ? at[axis] + 1 < machine->shape[axis] : at[axis] > 0;
}

void machine_neighbour(const struct machine *machine, const uint32_t at[MACHINE_AXES_MAX],
                       uint32_t port, uint32_t ret_at[MACHINE_AXES_MAX])
{
    uint32_t const axis = port / 2;
    bool const up = port % 2 == 0;
    uint32_t const length = machine->shape[axis];
    bool const around = up ? at[axis] + 1 == length : at[axis] == 0;
    SIM_ASSERT(axis < machine->grid_axis_count);
    SIM_ASSERT(!around || machine->wrap[axis] || machine_twists(machine, axis));
    memcpy(ret_at, at, MACHINE_AXES_MAX * sizeof *ret_at);
    ret_at[axis] = (at[axis] + (up ? 1 : length - 1)) % length;
    for (uint32_t other = 0; around && other < machine->grid_axis_count; other++) {
        uint32_t const shift = machine->twist[axis][other];
        uint32_t const whole = machine->shape[other];
        ret_at[other] = (ret_at[other] + (up ? shift : whole - shift)) % whole;
    }
}

uint32_t machine_port_between(const struct machine *machine, const uint32_t from[MACHINE_AXES_MAX],
                              const uint32_t to[MACHINE_AXES_MAX])
{
    uint32_t const chip = machine_chip_at(machine, from);
    for (uint32_t port = 0; port < 2 * machine->grid_axis_count; port++) {
        uint32_t next[MACHINE_AXES_MAX];
        if (!machine_has_link(machine, chip, port)) continue;
        machine_neighbour(machine, from, port, next);
        if (memcmp(next, to, sizeof next) == 0) return port;
    }
    return MACHINE_PORTS_MAX;
}

uint64_t machine_link_count(const struct machine *machine)
{
    uint64_t links = 0;
    for (uint32_t axis = 0; axis < machine->grid_axis_count; axis++) {
        bool const around = machine->wrap[axis] || machine_twists(machine, axis);
        uint64_t const lines = machine->chip_count / machine->shape[axis];
        links += 2 * lines * (machine->shape[axis] - !around);
    }
    return links;
}

static uint32_t size_of(int32_t hops)
{
    return (uint32_t)(hops < 0 ? -hops : hops);
}

/* Whether one way is to be preferred to another. */
static bool is_before(const int32_t a[CHIP_AXES_MAX], const int32_t b[CHIP_AXES_MAX])
{
    uint32_t sum_a = 0, sum_b = 0;
    for (uint32_t axis = 0; axis < CHIP_AXES_MAX; axis++) {
        sum_a += size_of(a[axis]);
        sum_b += size_of(b[axis]);
    }
    if (sum_a != sum_b) return sum_a < sum_b;
    for (uint32_t axis = 0; axis < CHIP_AXES_MAX; axis++)
        if (size_of(a[axis]) != size_of(b[axis])) return size_of(a[axis]) < size_of(b[axis]);
    for (uint32_t axis = 0; axis < CHIP_AXES_MAX; axis++)
        if (a[axis] != b[axis]) return a[axis] > b[axis];
    return false;
}

/* The way that goes around each twisted axis as often as `around` says. */
static void way_around(const struct machine *machine, const uint32_t from[MACHINE_AXES_MAX],
                       const uint32_t to[MACHINE_AXES_MAX], const int32_t around[CHIP_AXES_MAX],
                       int32_t ret_hops[CHIP_AXES_MAX])
{
    for (uint32_t axis = 0; axis < CHIP_AXES_MAX; axis++) {
        ret_hops[axis] = 0;
        if (axis >= machine->grid_axis_count) continue;
        int32_t const length = (int32_t)machine->shape[axis];
        int32_t hops = (int32_t)to[axis] - (int32_t)from[axis] + around[axis] * length;
        for (uint32_t other = 0; other < CHIP_AXES_MAX; other++)
            hops -= around[other] * (int32_t)machine->twist[other][axis];
        if (machine->wrap[axis]) {
            hops = (hops % length + length) % length;
            if (2 * hops > length) hops -= length;
        }
        ret_hops[axis] = hops;
    }
}

/* How often the `way`-th of 27 goes around each axis; whether the machine has it. */
static bool around_of(const struct machine *machine, uint32_t way,
                      int32_t ret_around[CHIP_AXES_MAX])
{
    bool possible = true;
    for (uint32_t axis = 0; axis < CHIP_AXES_MAX; axis++, way /= 3) {
        ret_around[axis] = (int32_t)(way % 3) - 1;
        possible = possible && (ret_around[axis] == 0 || machine_twists(machine, axis));
    }
    return possible;
}

void machine_hops(const struct machine *machine, const uint32_t from[MACHINE_AXES_MAX],
                  const uint32_t to[MACHINE_AXES_MAX], int32_t ret_hops[CHIP_AXES_MAX])
{
    int32_t const none[CHIP_AXES_MAX] = {0};
    way_around(machine, from, to, none, ret_hops);
    for (uint32_t way = 0; way < 27; way++) {
        int32_t around[CHIP_AXES_MAX], hops[CHIP_AXES_MAX];
        if (!around_of(machine, way, around)) continue;
        way_around(machine, from, to, around, hops);
        if (is_before(hops, ret_hops)) memcpy(ret_hops, hops, sizeof hops);
    }
}

/* Goes down where half way round leaves the choice. */
static bool go_down(const struct machine *machine, uint32_t axes, int32_t hops[CHIP_AXES_MAX])
{
    for (uint32_t axis = 0; axis < CHIP_AXES_MAX; axis++) {
        if ((axes >> axis & 1) == 0) continue;
        if (!machine->wrap[axis] || 2 * hops[axis] != (int32_t)machine->shape[axis]) return false;
        hops[axis] = -hops[axis];
    }
    return true;
}

uint32_t machine_ways(const struct machine *machine, const uint32_t from[MACHINE_AXES_MAX],
                      const uint32_t to[MACHINE_AXES_MAX],
                      int32_t ret_hops[MACHINE_WAYS_MAX][CHIP_AXES_MAX])
{
    int32_t best[CHIP_AXES_MAX];
    uint32_t count = 0;
    machine_hops(machine, from, to, best);
    uint32_t const least = size_of(best[0]) + size_of(best[1]) + size_of(best[2]);
    for (uint32_t way = 0; way < MACHINE_WAYS_MAX; way++) {
        int32_t around[CHIP_AXES_MAX], hops[CHIP_AXES_MAX];
        if (!around_of(machine, way / 8, around)) continue;
        way_around(machine, from, to, around, hops);
        if (!go_down(machine, way % 8, hops)) continue;
        bool known = size_of(hops[0]) + size_of(hops[1]) + size_of(hops[2]) != least;
        for (uint32_t i = 0; i < count && !known; i++)
            known = memcmp(ret_hops[i], hops, sizeof hops) == 0;
        if (!known) memcpy(ret_hops[count++], hops, sizeof hops);
    }
    return count;
}
