/* 1F1B: as soon as the first backward pass has come, one forward pass for each backward pass. */
#include "sim/schedule/warmup.h"

static uint32_t in_flight(const struct schedule_request *request, uint32_t rank)
{
    return warmup_in_flight(request, request->rank_count - rank);
}

static void list(const struct schedule_request *request, uint32_t rank, struct schedule_list *list)
{
    warmup_list(request, rank, in_flight(request, rank), list);
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
    .model_replicas = 1,
    .list = list,
    .formula = warmup_formula,
    .peak = peak,
};
