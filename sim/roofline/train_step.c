#include "sim/roofline/roofline.h"

enum status roofline_train_step(const struct workload_plan *plan, const struct machine *machine,
                                const struct mesh *mesh, struct roofline *ret_roofline,
                                struct error *reterr)
{
    struct workload_counts counts;
    STATUS_TRY(workload_count(plan, machine, mesh, &counts, reterr));
    roofline_from_counts(plan, machine, mesh, &counts, ret_roofline);
    return STATUS_OK;
}
