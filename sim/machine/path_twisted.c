/*
 * path_twisted.c: ways over a twisted torus.
 *
 * Such a torus looks alike from every chip: it is the integer grid, in which chips that lie a whole
 * way round apart are one, and going round a short axis also shifts the long ones. So a way is
 * chosen for each displacement, not for each pair, and then all links of a port carry the same when
 * all pairs exchange. What is left to balance are the ports: of equally short ways each
 * displacement gets the one that loads them most evenly, and its opposite the same way back.
 */
#include <stdlib.h>

#include "sim/base/arena.h"
#include "sim/machine/path.h"

/* Around each axis that twists, with its shifts, then around the rings. */
void path_twisted_reduce(const struct machine *machine, int32_t at[CHIP_AXES_MAX])
{
    for (uint32_t axis = 0; axis < CHIP_AXES_MAX; axis++) {
        int32_t const length = (int32_t)machine->shape[axis];
        if (machine->wrap[axis]) continue;
        while (at[axis] < 0 || at[axis] >= length) {
            int32_t const up = at[axis] < 0 ? -1 : 1;
            at[axis] -= up * length;
            for (uint32_t other = 0; other < CHIP_AXES_MAX; other++)
                at[other] += up * (int32_t)machine->twist[axis][other];
        }
    }
    for (uint32_t axis = 0; axis < CHIP_AXES_MAX; axis++) {
        int32_t const length = (int32_t)machine->shape[axis];
        while (at[axis] < 0) at[axis] += length;
        while (at[axis] >= length) at[axis] -= length;
    }
}

static uint32_t displacement_index(const struct machine *machine, int32_t by[CHIP_AXES_MAX])
{
    uint32_t index = 0;
    path_twisted_reduce(machine, by);
    for (uint32_t axis = 0; axis < CHIP_AXES_MAX; axis++)
        index = index * machine->shape[axis] + (uint32_t)by[axis];
    return index;
}

/* What all pairs of a displacement and of its opposite put on the links of each axis. Up and down
 * carry the same but for a displacement that is its own opposite. */
struct loads {
    int64_t port[2 * CHIP_AXES_MAX];
};

static void load(struct loads *loads, const int32_t way[CHIP_AXES_MAX], bool both)
{
    for (uint32_t axis = 0; axis < CHIP_AXES_MAX; axis++) {
        int64_t const hops = abs(way[axis]);
        loads->port[machine_port(axis, way[axis] < 0)] += hops;
        if (both) loads->port[machine_port(axis, way[axis] > 0)] += hops;
    }
}

/* The less, the more even are the ports. */
static int64_t unevenness(struct loads loads, const int32_t way[CHIP_AXES_MAX], bool both)
{
    int64_t sum = 0;
    load(&loads, way, both);
    for (uint32_t port = 0; port < 2 * CHIP_AXES_MAX; port++)
        sum += loads.port[port] * loads.port[port];
    return sum;
}

/* Chooses the way of a displacement and its opposite, if it has several ways or one, as asked. */
static void choose(struct paths *paths, uint32_t index, bool several, struct loads *loads)
{
    const struct machine *machine = paths->machine;
    uint32_t const from[MACHINE_AXES_MAX] = {0};
    uint32_t to[MACHINE_AXES_MAX] = {0};
    int32_t ways[MACHINE_WAYS_MAX][CHIP_AXES_MAX], back[CHIP_AXES_MAX];
    uint32_t rest = index;
    for (uint32_t axis = CHIP_AXES_MAX; axis-- > 0; rest /= machine->shape[axis]) {
        to[axis] = rest % machine->shape[axis];
        back[axis] = -(int32_t)to[axis];
    }
    uint32_t const opposite = displacement_index(machine, back);
    if (opposite < index) return;
    uint32_t const count = machine_ways(machine, from, to, ways);
    if ((count > 1) != several) return;
    uint32_t best = 0;
    for (uint32_t way = 1; way < count; way++)
        if (unevenness(*loads, ways[way], opposite != index) <
            unevenness(*loads, ways[best], opposite != index))
            best = way;
    load(loads, ways[best], opposite != index);
    for (uint32_t axis = 0; axis < CHIP_AXES_MAX; axis++) {
        paths->twisted[opposite].by[axis] = -ways[best][axis];
        paths->twisted[index].by[axis] = ways[best][axis];
    }
}

enum status paths_twisted_build(struct arena *arena, struct paths *paths, struct error *reterr)
{
    uint32_t count = 1;
    void *memory = NULL;
    struct loads loads = {{0}};
    for (uint32_t axis = 0; axis < CHIP_AXES_MAX; axis++) count *= paths->machine->shape[axis];
    STATUS_TRY(arena_try(arena, count, sizeof *paths->twisted, &memory, reterr));
    paths->twisted = memory;
    for (uint32_t index = 0; index < count; index++) choose(paths, index, false, &loads);
    for (uint32_t index = 0; index < count; index++) choose(paths, index, true, &loads);
    return STATUS_OK;
}

const struct path_hops *path_twisted_hops(const struct paths *paths, int32_t by[CHIP_AXES_MAX])
{
    return &paths->twisted[displacement_index(paths->machine, by)];
}
