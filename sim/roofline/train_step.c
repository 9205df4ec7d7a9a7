#include "sim/roofline/roofline.h"
#include "sim/step/ranks.h"

enum status roofline_of_ranks(struct ranks *ranks, struct roofline *ret_roofline,
                              struct error *reterr)
{
    struct workload_counts counts;
    STATUS_TRY(workload_count_ranks(ranks, &counts, reterr));
    roofline_from_counts(ranks->plan, ranks->machine, ranks->mesh, &counts, ret_roofline);
    return STATUS_OK;
}

enum status roofline_train_step(const struct workload_plan *plan, const struct machine *machine,
                                const struct mesh *mesh, struct roofline *ret_roofline,
                                struct error *reterr)
{
    struct ranks ranks;
    STATUS_TRY(ranks_make(plan, machine, mesh, &ranks, reterr));
    return roofline_of_ranks(&ranks, ret_roofline, reterr);
}
