/* 1F1B: as soon as the first backward pass has come, one forward pass for each backward pass. */
#include "sim/schedule/schedule.h"

static uint32_t in_flight(const struct schedule_request *request, uint32_t rank)
{
    uint32_t const most = request->rank_count - rank;
    return most < request->microbatch_count ? most : request->microbatch_count;
}

static void list(const struct schedule_request *request, uint32_t rank, struct schedule_list *list)
{
    uint32_t const ahead = in_flight(request, rank) - 1, m = request->microbatch_count;
    for (uint32_t b = 0; b < ahead; b++) schedule_add(list, SCHEDULE_FORWARD, rank, b);
    for (uint32_t b = 0; b < m; b++) {
        schedule_add(list, SCHEDULE_FORWARD, rank, b + ahead); /* Beyond the last: none. */
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

const struct schedule_form schedule_form_one_f_one_b = {
    .name = "1f1b",
    .help = "one forward, one backward pass; holds p-r microbatches on rank r",
    .source = "Narayanan et al., PipeDream-Flush (arXiv 2006.09503); Megatron-LM",
    .chunks = 1,
    .copies = 1,
    .list = list,
    .formula = formula,
    .peak = peak,
};
