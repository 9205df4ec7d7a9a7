/* Eager 1F1B: begins with so many forward passes more than 1F1B that transfers have time. */
#include "sim/schedule/warmup.h"

static uint32_t in_flight(const struct schedule_request *request, uint32_t rank)
{
    return warmup_in_flight(request, 2 * (request->rank_count - 1 - rank) + 1);
}

static void list(const struct schedule_request *request, uint32_t rank, struct schedule_list *list)
{
    warmup_list(request, rank, in_flight(request, rank), list);
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
    .model_replicas = 1,
    .list = list,
    .formula = warmup_formula,
    .peak = peak,
};
