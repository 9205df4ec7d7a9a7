/* Rows of copies between chips and their hosts, which no algorithm and no plan are chosen for. */
#include <stdio.h>

#include "sim/base/units.h"
#include "sim/measure/measure_row.h"
#include "sim/roofline/host_bound.h"

struct program_copy measure_row_copy(const struct measure_row_args *args, uint64_t size_bytes)
{
    return (struct program_copy){.to_host = args->operation == MEASURE_HOST_STORE,
                                 .size_bytes = size_bytes};
}

void measure_row_fill_copy(const struct measure_row_args *args, uint64_t size_bytes,
                           int64_t time_ps, int64_t alone_ps, struct measure_row *ret_row)
{
    struct host_bound bound;
    const struct machine *machine = args->machine;
    uint64_t const ranks = group_rank_count(&args->group);
    double const algbw = time_ps > 0 ? (double)size_bytes / units_seconds(time_ps) : 0;
    host_bound(machine, (double)size_bytes, &bound);
    *ret_row = (struct measure_row){
        .args = args,
        .size_bytes = size_bytes,
        .array_bytes = size_bytes * ranks,
        .count = measure_op_count(args->operation, ranks, size_bytes, args->format),
        .time_ps = time_ps,
        .alone_ps = alone_ps,
        .algbw_bytes_per_s = algbw,
        .busbw_bytes_per_s = algbw,
        .roofline_s = bound.time_s,
        .latency_s = bound.latency_s,
        .strict_s = bound.time_s,
        .bound_by = bound.bound_by,
        .bound_where = machine->host.cable_name,
    };
    (void)snprintf(ret_row->algorithm, sizeof ret_row->algorithm, "copy");
}
