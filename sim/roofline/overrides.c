#include "sim/roofline/overrides.h"

#include <stddef.h>

#include "sim/base/units.h"
#include "sim/roofline/level_rate.h"

void overrides_slowest_chip(const struct machine *machine, double *ret_math, double *ret_hbm)
{
    uint32_t math = PPM_ONE, hbm = PPM_ONE;
    for (uint32_t chip = 0; machine->chip_override_count > 0 && chip < machine->chip_count;
         chip++) {
        uint32_t chip_math, chip_hbm;
        machine_chip_ppm(machine, chip, &chip_math, &chip_hbm);
        if (chip == 0 || chip_math < math) math = chip_math;
        if (chip == 0 || chip_hbm < hbm) hbm = chip_hbm;
    }
    *ret_math = (double)math / PPM_ONE;
    *ret_hbm = (double)hbm / PPM_ONE;
}

double overrides_fastest_hbm(const struct machine *machine)
{
    uint32_t fastest = machine->chip_override_count > 0 ? 0 : PPM_ONE;
    for (uint32_t chip = 0; machine->chip_override_count > 0 && chip < machine->chip_count;
         chip++) {
        uint32_t math, hbm;
        machine_chip_ppm(machine, chip, &math, &hbm);
        if (hbm > fastest) fastest = hbm;
    }
    return (double)fastest / PPM_ONE;
}

void overrides_work_shares(const struct machine *machine, const struct mesh *mesh, double *ret_math,
                           double *ret_hbm)
{
    enum { RANKS_MAX = 4096 };
    uint32_t const ranks = mesh->axis[MESH_PP].size;
    uint32_t math[RANKS_MAX], hbm[RANKS_MAX];
    uint64_t math_sum = 0, hbm_sum = 0;
    if (ranks == 1 || machine->chip_override_count == 0) {
        overrides_slowest_chip(machine, ret_math, ret_hbm);
        return;
    }
    SIM_ASSERT(ranks <= RANKS_MAX);
    for (uint32_t r = 0; r < ranks; r++) math[r] = hbm[r] = UINT32_MAX;
    for (uint32_t chip = 0; chip < machine->chip_count; chip++) {
        uint32_t const rank = mesh_rank(mesh, machine, MESH_PP, chip);
        uint32_t chip_math, chip_hbm;
        machine_chip_ppm(machine, chip, &chip_math, &chip_hbm);
        if (chip_math < math[rank]) math[rank] = chip_math;
        if (chip_hbm < hbm[rank]) hbm[rank] = chip_hbm;
    }
    for (uint32_t r = 0; r < ranks; r++) {
        math_sum += math[r];
        hbm_sum += hbm[r];
    }
    *ret_math = (double)math_sum / ranks / PPM_ONE;
    *ret_hbm = (double)hbm_sum / ranks / PPM_ONE;
}

/* The axis whose link it is. */
static bool lies_on(const struct machine_link_override *link, uint32_t axis)
{
    return link->from[axis] != link->to[axis];
}

static double overridden_link(const struct machine *machine, uint32_t axis,
                              const struct algorithm *algorithm, bool slowest)
{
    if (machine->axis_level[axis] != LEVEL_NONE) return level_rate(machine, axis);
    bool const one_way = algorithm != NULL && algorithm_is(algorithm, PRIMITIVE_RING_ONE_WAY);
    uint64_t const length = machine->shape[axis];
    uint64_t const links = machine->chip_count / length *
                           (machine->wrap[axis] ? length : length - 1) * (one_way ? 1 : 2);
    uint64_t overridden = 0;
    double rate = 0;
    for (uint32_t i = 0; i < machine->link_override_count; i++) {
        const struct machine_link_override *link = &machine->links[i];
        if (link->bytes_per_s == 0 || !lies_on(link, axis)) continue;
        uint32_t const port = machine_port_between(machine, link->from, link->to);
        if (one_way && port != machine_port(axis, false)) continue;
        double const other = (double)link->bytes_per_s;
        if (overridden++ == 0 || (slowest ? other < rate : other > rate)) rate = other;
    }
    if (overridden == links && overridden > 0) return rate;
    double const even = (double)machine->chip.ici_bytes_per_s;
    if (overridden == 0) return even;
    return slowest == (rate < even) ? rate : even;
}

double overrides_slowest_link(const struct machine *machine, uint32_t axis,
                              const struct algorithm *algorithm)
{
    return overridden_link(machine, axis, algorithm, true);
}

double overrides_fastest_link(const struct machine *machine, uint32_t axis,
                              const struct algorithm *algorithm)
{
    return overridden_link(machine, axis, algorithm, false);
}

bool overrides_reaches_all(const struct machine *machine, const struct group_dimension *dimension,
                           const struct algorithm *algorithm)
{
    bool const rings = algorithm->means == ALGORITHM_AUTO ||
                       algorithm_is(algorithm, PRIMITIVE_RING) ||
                       algorithm_is(algorithm, PRIMITIVE_RING_ONE_WAY);
    return rings && dimension->ring &&
           dimension->size * dimension->stride == machine->shape[dimension->axis];
}

int64_t overrides_longest_hop_ps(const struct machine *machine, uint32_t axis)
{
    int64_t longest_ps = machine->chip.hop_latency_ps;
    for (uint32_t i = 0; i < machine->link_override_count; i++) {
        const struct machine_link_override *link = &machine->links[i];
        if (lies_on(link, axis) && link->latency_ps > longest_ps) longest_ps = link->latency_ps;
    }
    return longest_ps;
}
