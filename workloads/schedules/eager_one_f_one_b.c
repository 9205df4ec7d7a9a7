/* Eager 1F1B: begins with so many forward passes more than 1F1B that transfers have time. */
#include "sim/schedule/schedule.h"

static uint32_t in_flight(const struct schedule_request *request, uint32_t rank)
{
    uint32_t const most = 2 * (request->rank_count - 1 - rank) + 1;
    return most < request->microbatch_count ? most : request->microbatch_count;
}

static void list(const struct schedule_request *request, uint32_t rank, struct schedule_list *list)
{
    uint32_t const ahead = in_flight(request, rank) - 1, m = request->microbatch_count;
    for (uint32_t b = 0; b < ahead; b++) schedule_add(list, SCHEDULE_FORWARD, rank, b);
    for (uint32_t b = 0; b < m; b++) {
        schedule_add(list, SCHEDULE_FORWARD, rank, b + ahead);
        schedule_add(list, SCHEDULE_BACKWARD, rank, b);
    }
}

static struct schedule_formula formula(const struct schedule_request *request)
{
    const struct schedule_times *t = &request->times;
    int64_t const p = request->rank_count;
    return (struct schedule_formula){
        .measure = SCHEDULE_MAKESPAN,
        .bubble_ticks = (p - 1) * (t->forward + t->input + t->weight),
        .exact = true,
        .text = "(p-1)(F+B)",
    };
}

static struct schedule_peak peak(const struct schedule_request *request, uint32_t rank)
{
    return (struct schedule_peak){in_flight(request, rank), 0};
}

const struct schedule_form schedule_form_eager_one_f_one_b = {
    .name = "eager-1f1b",
    .help = "1F1B with forward passes further ahead, so that hops do not stall it; holds 2(p-r)-1",
    .source =
        "Zhuang et al., On Optimizing the Communication of Model Parallelism (arXiv 2211.05322)",
    .chunks = 1,
    .copies = 1,
    .list = list,
    .formula = formula,
    .peak = peak,
};
