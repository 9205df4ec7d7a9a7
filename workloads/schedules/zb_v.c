/*
 * ZB-V: two stages a rank, down the ranks and up again, so that the last stage's gradient begins
 * where the first stage is; passes are split. At the memory of 1F1B's first rank on all ranks.
 */
#include "sim/schedule/schedule.h"

/* What a rank has listed of its two stages. */
struct course {
    struct schedule_list *list;
    uint32_t stage[2], forward[2], input[2], weight[2];
};

static void forward(struct course *course, uint32_t chunk)
{
    schedule_add(course->list, SCHEDULE_FORWARD, course->stage[chunk], course->forward[chunk]++);
}

static void input(struct course *course, uint32_t chunk)
{
    schedule_add(course->list, SCHEDULE_INPUT, course->stage[chunk], course->input[chunk]++);
}

static void weight(struct course *course, uint32_t chunk)
{
    schedule_add(course->list, SCHEDULE_WEIGHT, course->stage[chunk], course->weight[chunk]++);
}

static void list(const struct schedule_request *request, uint32_t rank, struct schedule_list *list)
{
    uint32_t const p = request->rank_count;
    /* A full warm-up is listed in any case; passes of microbatches that are not there fall out. */
    uint32_t const least = 2 * p - 1, asked = request->microbatch_count;
    uint32_t const m = asked > least ? asked : least;
    struct course course = {.list = list, .stage = {rank, 2 * p - 1 - rank}};
    for (uint32_t i = 0; i < 2 * (p - rank) - 1; i++) forward(&course, 0);
    for (uint32_t i = 0; i < rank; i++) {
        forward(&course, 1);
        forward(&course, 0);
    }
    for (uint32_t i = 0; i < p - rank; i++) {
        forward(&course, 1);
        input(&course, 1);
        weight(&course, 1);
    }
    while (course.forward[1] < course.forward[0] || course.forward[0] < m) {
        if (course.forward[0] < m) forward(&course, 0);
        input(&course, 0);
        weight(&course, 0);
        forward(&course, 1);
        input(&course, 1);
        weight(&course, 1);
    }
    for (uint32_t i = 0; i < rank; i++) {
        input(&course, 0);
        input(&course, 1);
    }
    for (uint32_t i = 0; i < p - rank; i++) {
        input(&course, 0);
        weight(&course, 0);
    }
    while (course.weight[1] < course.input[1]) weight(&course, 1);
    while (course.weight[0] < course.input[0]) weight(&course, 0);
}

static struct schedule_formula formula(const struct schedule_request *request)
{
    const struct schedule_times *t = &request->times;
    bool const exact = t->forward == t->input && t->input == t->weight &&
                       request->microbatch_count >= 2 * request->rank_count;
    return (struct schedule_formula){
        .measure = SCHEDULE_PER_RANK,
        .bubble_ticks = 0,
        .exact = exact,
        .text = "0",
        .holds = "F = I = W and m >= 2p",
    };
}

static struct schedule_peak peak(const struct schedule_request *request, uint32_t rank)
{
    (void)rank;
    uint32_t const m = request->microbatch_count, most = 2 * request->rank_count;
    return (struct schedule_peak){2 * m < most ? 2 * m : most, 0};
}

const struct schedule_form schedule_form_zb_v = {
    .name = "zb-v",
    .pytorch = "ZBVZeroBubble",
    .help = "two stages a rank in a V, split passes: no bubble if F = I = W, at 1F1B's memory",
    .source = "Qi et al. (arXiv 2401.10241), section 6; PyTorch's ScheduleZBVZeroBubble",
    .chunks = 2,
    .model_replicas = 1,
    .from_both_ends = true,
    .list = list,
    .formula = formula,
    .peak = peak,
};
