#include "sim/roofline/rate_range.h"

#include <math.h>
#include <stddef.h>

#include "sim/base/units.h"
#include "sim/roofline/level_rate.h"

void rate_range_slowest_chip(const struct machine *machine, double *ret_math, double *ret_hbm)
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

double rate_range_fastest_hbm(const struct machine *machine)
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

void rate_range_work_shares(const struct machine *machine, const struct mesh *mesh,
                            double *ret_math, double *ret_hbm)
{
    enum { RANKS_MAX = 4096 };
    uint32_t const ranks = mesh->axis[MESH_PP].size;
    uint32_t math[RANKS_MAX], hbm[RANKS_MAX];
    uint64_t math_sum = 0, hbm_sum = 0;
    if (ranks == 1 || machine->chip_override_count == 0) {
        rate_range_slowest_chip(machine, ret_math, ret_hbm);
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

/* Rates of an axis' links. */
struct link_rates {
    double slowest, fastest, mean;
};

static struct link_rates link_rates(const struct machine *machine, uint32_t axis)
{
    double const even = (double)machine->chip.ici_bytes_per_s;
    double const length = machine->shape[axis];
    double const links =
        2 * machine->chip_count *
        (machine->wrap[axis] || machine_twists(machine, axis) ? 1 : 1 - 1 / length);
    struct link_rates rates = {INFINITY, 0, 0};
    double overridden = 0;
    if (machine->axis_level[axis] != LEVEL_NONE) {
        double const rate = level_rate(machine, axis);
        return (struct link_rates){rate, rate, rate};
    }
    for (uint32_t i = 0; i < machine->link_override_count; i++) {
        const struct machine_link_override *link = &machine->links[i];
        if (link->bytes_per_s == 0 || !lies_on(link, axis)) continue;
        rates.slowest = fmin(rates.slowest, (double)link->bytes_per_s);
        rates.fastest = fmax(rates.fastest, (double)link->bytes_per_s);
        rates.mean += (double)link->bytes_per_s / links;
        overridden++;
    }
    if (overridden >= links - 0.5) return rates;
    rates.mean += even * (1 - overridden / links);
    return (struct link_rates){fmin(rates.slowest, even), fmax(rates.fastest, even), rates.mean};
}

double rate_range_slowest_link(const struct machine *machine, uint32_t axis)
{
    return link_rates(machine, axis).slowest;
}

double rate_range_fastest_link(const struct machine *machine, uint32_t axis)
{
    return link_rates(machine, axis).fastest;
}

double rate_range_mean_link(const struct machine *machine, uint32_t axis)
{
    return link_rates(machine, axis).mean;
}

int64_t rate_range_longest_hop_ps(const struct machine *machine, uint32_t axis)
{
    int64_t longest_ps = machine->chip.hop_latency_ps;
    for (uint32_t i = 0; i < machine->link_override_count; i++) {
        const struct machine_link_override *link = &machine->links[i];
        if (lies_on(link, axis) && link->latency_ps > longest_ps) longest_ps = link->latency_ps;
    }
    return longest_ps;
}
