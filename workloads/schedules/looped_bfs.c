/* Looped breadth-first: all microbatches through one stage of a rank, then through its next. */
#include "sim/schedule/schedule.h"

static void list(const struct schedule_request *request, uint32_t rank, struct schedule_list *list)
{
    uint32_t const v = request->chunk_count, p = request->rank_count;
    for (uint32_t chunk = 0; chunk < v; chunk++)
        for (uint32_t b = 0; b < request->microbatch_count; b++)
            schedule_add(list, SCHEDULE_FORWARD, chunk * p + rank, b);
    for (uint32_t chunk = v; chunk-- > 0;)
        for (uint32_t b = 0; b < request->microbatch_count; b++)
            schedule_add(list, SCHEDULE_BACKWARD, chunk * p + rank, b);
}

static struct schedule_formula formula(const struct schedule_request *request)
{
    const struct schedule_times *t = &request->times;
    int64_t const p = request->rank_count;
    /* With fewer microbatches than ranks a rank waits for its own first to come round. */
    bool const exact = request->microbatch_count >= request->rank_count;
    return (struct schedule_formula){
        .measure = SCHEDULE_MAKESPAN,
        .bubble_ticks = (p - 1) * (t->forward + t->input + t->weight),
        .exact = exact,
        .text = "(p-1)(F+B)/v",
        .holds = "m >= p",
    };
}

static struct schedule_peak peak(const struct schedule_request *request, uint32_t rank)
{
    (void)rank;
    return (struct schedule_peak){request->microbatch_count * request->chunk_count, 0};
}

const struct schedule_form schedule_form_looped_bfs = {
    .name = "looped-bfs",
    .pytorch = "LoopedBFS",
    .help = "v stages a rank, each for all microbatches in a row: fewest gathers of weights",
    .source = "Lamy-Poirier, Breadth-First Pipeline Parallelism (arXiv 2211.05953)",
    .model_replicas = 1,
    .list = list,
    .formula = formula,
    .peak = peak,
};
