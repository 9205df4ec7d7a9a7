/*
 * ZB-H2: begins with so many forward passes that the first input gradient is there when they end,
 * and puts weight gradients off twice as long as ZB-H1. No rank idles between its first and its
 * last pass; the ranks begin and end one after the other.
 */
#include "sim/schedule/warmup.h"

static uint32_t in_flight(const struct schedule_request *request, uint32_t rank)
{
    return warmup_in_flight(request, 2 * (request->rank_count - 1 - rank) + 1);
}

static void list(const struct schedule_request *request, uint32_t rank, struct schedule_list *list)
{
    warmup_split_list(request, rank, in_flight(request, rank), 2 * rank, list);
}

static struct schedule_formula formula(const struct schedule_request *request)
{
    const struct schedule_times *t = &request->times;
    int64_t const p = request->rank_count;
    bool const exact = t->weight <= t->forward && 2 * t->weight <= t->forward + t->input &&
                       request->microbatch_count >= 2 * request->rank_count - 1;
    return (struct schedule_formula){
        .measure = SCHEDULE_PER_RANK,
        .bubble_ticks = (p - 1) * (t->forward + t->input - 2 * t->weight),
        .exact = exact,
        .text = "(p-1)(F+I-2W)",
        .holds = "W <= F, 2W <= F+I and m >= 2p-1",
    };
}

static struct schedule_peak peak(const struct schedule_request *request, uint32_t rank)
{
    return warmup_split_peak(request, in_flight(request, rank), 2 * rank);
}

const struct schedule_form schedule_form_zb_h2 = {
    .name = "zb-h2",
    .help = "no rank idles once it has begun, if F = I = W; about twice the memory of 1F1B",
    .source = "Qi et al., Zero Bubble Pipeline Parallelism (arXiv 2401.10241)",
    .chunks = 1,
    .model_replicas = 1,
    .list = list,
    .formula = formula,
    .peak = peak,
};
