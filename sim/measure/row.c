#include "sim/measure/row.h"

#include "sim/base/units.h"

enum status row_request(const struct row_question *question, uint64_t size_bytes,
                        const char *algorithm, const char *where, struct plan_request *ret_request,
                        struct error *reterr)
{
    uint64_t array_bytes = 0;
    const struct group *group = &question->group;
    STATUS_TRY(operation_array_bytes(question->operation, group_rank_count(group), size_bytes,
                                     where, &array_bytes, reterr));
    *ret_request = (struct plan_request){
        .kind = operation_kind(question->operation),
        .algorithm = algorithm,
        .group = *group,
        .size_bytes = array_bytes,
        .root = question->root,
    };
    /* Everyone sends to the next rank; a rank is last along the last dimension. */
    if (question->operation == OPERATION_SENDRECV)
        ret_request->offset[group->dimension_count - 1] = 1;
    return STATUS_OK;
}

static const double ps_per_s = 1e12;

void row_fill(const struct row_question *question, uint64_t size_bytes, const struct plan *plan,
              int64_t time_ps, struct row *ret_row)
{
    uint64_t const ranks = group_rank_count(&question->group);
    const struct chip *chip = &question->machine->chip;
    struct operation_factor const factor = operation_bus_factor(question->operation, ranks);
    double const time_s = (double)time_ps / ps_per_s;
    double const algbw = time_ps > 0 ? (double)size_bytes / time_s : 0;
    int64_t const hops_ps = plan_closed_form_ps(plan, UINT64_MAX, chip->hop_latency_ps);
    int64_t const whole_ps = plan_closed_form_ps(plan, chip->ici_bytes_per_s, chip->hop_latency_ps);
    *ret_row = (struct row){
        .size_bytes = size_bytes,
        .array_bytes = plan->size_bytes,
        .count = operation_count(question->operation, ranks, size_bytes, question->format),
        .algorithm = plan->algorithm,
        .time_ps = time_ps,
        .algbw_bytes_per_s = algbw,
        .busbw_bytes_per_s = algbw * (double)factor.numerator / (double)factor.denominator,
        .roofline_s = (double)whole_ps / ps_per_s,
        .bound_by = hops_ps > whole_ps - hops_ps ? "latency" : "wire",
    };
}
