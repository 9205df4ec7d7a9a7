#include "sim/schedule/dualpipe_common.h"

static uint32_t forward_next(struct dualpipe_way *way)
{
    return way->microbatch_first + way->forward_count++;
}

static uint32_t backward_next(struct dualpipe_way *way)
{
    return way->microbatch_first + way->backward_count++;
}

static void forward(struct dualpipe *dual, uint32_t way)
{
    schedule_add(dual->list, SCHEDULE_FORWARD, dual->way[way].stage, forward_next(&dual->way[way]));
}

static void backward(struct dualpipe *dual, uint32_t way, bool split)
{
    schedule_add(dual->list, split ? SCHEDULE_INPUT : SCHEDULE_BACKWARD, dual->way[way].stage,
                 backward_next(&dual->way[way]));
}

/* The weight gradient of the oldest input gradient that has none. */
static void weight(struct dualpipe *dual)
{
    while (dual->list->pass[dual->weight_first].kind != SCHEDULE_INPUT) {
        dual->weight_first++;
        SIM_ASSERT(dual->weight_first < dual->list->count);
    }
    const struct schedule_pass *pass = &dual->list->pass[dual->weight_first++];
    schedule_add(dual->list, SCHEDULE_WEIGHT, pass->stage, pass->microbatch);
}

static void together(struct dualpipe *dual, uint32_t forward_way, uint32_t backward_way)
{
    struct dualpipe_way *there = &dual->way[forward_way], *back = &dual->way[backward_way];
    uint32_t const b = forward_next(there);
    schedule_add_pair(dual->list, there->stage, b, back->stage, backward_next(back));
}

void dualpipe_list(struct dualpipe *dual, const struct dualpipe_counts *counts)
{
    uint32_t const before = counts->half - counts->place - 1, ends = counts->place + 1;
    for (uint32_t i = 0; i < 2 * before; i++) forward(dual, 0);
    for (uint32_t i = 0; i < ends; i++) {
        forward(dual, 0);
        forward(dual, 1);
    }
    for (uint32_t i = 0; i < before; i++) {
        backward(dual, 1, true);
        weight(dual);
        forward(dual, 1);
    }
    for (uint32_t i = 0; i < counts->steady; i++) {
        if (i == 0 && counts->at_bottom) {
            forward(dual, 0);
            backward(dual, 1, false);
        } else {
            together(dual, 0, 1);
        }
        together(dual, 1, 0);
    }
    for (uint32_t i = 0; i < before; i++) {
        backward(dual, 1, false);
        together(dual, 1, 0);
    }
    /* The second half of these is split: their weight gradients fill the end. */
    for (uint32_t i = 0; i < 2 * ends; i++) backward(dual, i % 2 == 0 ? 1 : 0, i >= ends);
    for (uint32_t i = 0; i < before; i++) {
        weight(dual);
        backward(dual, 0, true);
    }
    for (uint32_t i = 0; i < ends; i++) weight(dual);
}

struct schedule_formula dualpipe_formula(const struct schedule_request *request, uint32_t ends,
                                         const char *text)
{
    const struct schedule_times *t = &request->times;
    int64_t const back = t->input + t->weight;
    int64_t const pair = t->pair == 0 ? t->forward + back : t->pair;
    bool const exact = t->forward == t->input && t->input == t->weight && pair >= 2 * t->forward &&
                       pair <= 3 * t->forward;
    return (struct schedule_formula){
        .measure = SCHEDULE_MAKESPAN,
        .bubble_ticks = ((int64_t)ends - 1) * (pair + back - 3 * t->weight),
        .exact = exact,
        .text = text,
        .holds = "F = I = W and O from 2F to 3F",
    };
}
