#include "sim/schedule/warmup.h"

uint32_t warmup_in_flight(const struct schedule_request *request, uint32_t most)
{
    return most < request->microbatch_count ? most : request->microbatch_count;
}

void warmup_list(const struct schedule_request *request, uint32_t rank, uint32_t in_flight,
                 struct schedule_list *list)
{
    uint32_t const ahead = in_flight - 1, m = request->microbatch_count;
    for (uint32_t b = 0; b < ahead; b++) schedule_add(list, SCHEDULE_FORWARD, rank, b);
    for (uint32_t b = 0; b < m; b++) {
        schedule_add(list, SCHEDULE_FORWARD, rank, b + ahead); /* Beyond the last: none. */
        schedule_add(list, SCHEDULE_BACKWARD, rank, b);
    }
}

void warmup_split_list(const struct schedule_request *request, uint32_t rank, uint32_t in_flight,
                       uint32_t late, struct schedule_list *list)
{
    uint32_t const ahead = in_flight - 1, m = request->microbatch_count;
    for (uint32_t b = 0; b < ahead; b++) schedule_add(list, SCHEDULE_FORWARD, rank, b);
    for (uint32_t b = 0; b < m + late; b++) {
        if (b < m) schedule_add(list, SCHEDULE_FORWARD, rank, b + ahead);
        if (b < m) schedule_add(list, SCHEDULE_INPUT, rank, b);
        if (b >= late) schedule_add(list, SCHEDULE_WEIGHT, rank, b - late);
    }
}

struct schedule_peak warmup_split_peak(const struct schedule_request *request, uint32_t in_flight,
                                       uint32_t late)
{
    uint32_t const rest = request->microbatch_count - in_flight;
    return (struct schedule_peak){in_flight, rest < late ? rest : late};
}

struct schedule_formula warmup_formula(const struct schedule_request *request)
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
