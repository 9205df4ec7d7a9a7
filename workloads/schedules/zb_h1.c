/*
 * ZB-H1: 1F1B whose backward passes are split; the n-th weight gradient waits until rank r has done
 * r further input gradients, so that input gradients go back at once and the weights fill the end.
 */
#include "sim/schedule/warmup.h"

static uint32_t in_flight(const struct schedule_request *request, uint32_t rank)
{
    return warmup_in_flight(request, request->rank_count - rank);
}

static void list(const struct schedule_request *request, uint32_t rank, struct schedule_list *list)
{
    warmup_split_list(request, rank, in_flight(request, rank), rank, list);
}

static struct schedule_formula formula(const struct schedule_request *request)
{
    const struct schedule_times *t = &request->times;
    int64_t const p = request->rank_count;
    bool const exact = t->weight <= t->forward && request->microbatch_count >= request->rank_count;
    return (struct schedule_formula){
        .measure = SCHEDULE_PER_RANK,
        .bubble_ticks = (p - 1) * (t->forward + t->input - t->weight),
        .exact = exact,
        .text = "(p-1)(F+I-W)",
        .holds = "W <= F and m >= p",
    };
}

static struct schedule_peak peak(const struct schedule_request *request, uint32_t rank)
{
    return warmup_split_peak(request, in_flight(request, rank), rank);
}

const struct schedule_form schedule_form_zb_h1 = {
    .name = "zb-h1",
    .help = "1F1B with weight gradients delayed to fill the end; no more memory than 1F1B",
    .source = "Qi et al., Zero Bubble Pipeline Parallelism (arXiv 2401.10241)",
    .chunks = 1,
    .model_replicas = 1,
    .list = list,
    .formula = formula,
    .peak = peak,
};
