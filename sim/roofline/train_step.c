#include "sim/roofline/roofline.h"

void roofline_train_step(const struct workload_plan *plan, const struct machine *machine,
                         const struct mesh *mesh, struct roofline *ret_roofline)
{
    struct workload_counts counts;
    workload_count(plan, machine, mesh, &counts);
    roofline_from_counts(plan, machine, mesh, &counts, ret_roofline);
}
