#include "sim/roofline/host_bound.h"

#include <math.h>

#include "sim/base/units.h"

double host_link_s(const struct machine *machine, double bytes)
{
    if (bytes <= 0) return 0;
    return bytes * host_sharers(machine) / (double)machine->host.bytes_per_s;
}

void host_bound(const struct machine *machine, double bytes, struct host_bound *ret_bound)
{
    struct host_bound bound = {
        .bytes_s = host_link_s(machine, bytes),
        .latency_s = units_seconds(machine->host.latency_ps),
        .hbm_s = bytes / (double)machine->chip.hbm_bytes_per_s,
        .bound_by = "latency",
    };
    bound.time_s = fmax(fmax(bound.latency_s, bound.bytes_s), bound.hbm_s);
    if (bound.time_s > bound.latency_s)
        bound.bound_by = bound.bytes_s >= bound.hbm_s ? "host" : "hbm";
    *ret_bound = bound;
}
