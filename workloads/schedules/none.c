/* No pipelining: one microbatch at a time goes through all stages and back. */
#include "sim/schedule/schedule.h"

static void list(const struct schedule_request *request, uint32_t rank, struct schedule_list *list)
{
    for (uint32_t b = 0; b < request->microbatch_count; b++) {
        schedule_add(list, SCHEDULE_FORWARD, rank, b);
        schedule_add(list, SCHEDULE_BACKWARD, rank, b);
    }
}

static struct schedule_formula formula(const struct schedule_request *request)
{
    const struct schedule_times *t = &request->times;
    int64_t const m = request->microbatch_count, p = request->rank_count;
    return (struct schedule_formula){
        .measure = SCHEDULE_MAKESPAN,
        .bubble_ticks = m * (p - 1) * (t->forward + t->input + t->weight),
        .exact = true,
        .text = "m(p-1)(F+B)",
    };
}

static struct schedule_peak peak(const struct schedule_request *request, uint32_t rank)
{
    (void)request;
    (void)rank;
    return (struct schedule_peak){1, 0};
}

const struct schedule_form schedule_form_none = {
    .name = "none",
    .help = "one microbatch at a time: a rank works 1/p of the time",
    .source = "How to Scale Your Model, chapter 5, pipelining: the naive schedule",
    .chunks = 1,
    .model_replicas = 1,
    .is_baseline = true,
    .list = list,
    .formula = formula,
    .peak = peak,
};
