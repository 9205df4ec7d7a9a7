/* V-Min: a third of 1F1B's activations; dear where F, I and W differ. */
#include "sim/schedule/v_schedule.h"

static struct v_schedule_block block(uint32_t p, uint32_t rank)
{
    uint32_t const pause = p % 3 == 0 ? 2 : 0;
    return (struct v_schedule_block){
        {rank, 2 * p - rank - 1, 2 * p + pause + rank, 4 * p + pause - rank - 1}};
}

static enum status list_all(struct arena *arena, const struct schedule_request *request,
                            struct schedule_list *lists, struct error *reterr)
{
    return v_schedule_list(arena, request, block, lists, reterr);
}

static struct schedule_formula formula(const struct schedule_request *request)
{
    (void)request;
    return v_schedule_formula("about 2/3 of 1F1B's");
}

static struct schedule_peak peak(const struct schedule_request *request, uint32_t rank)
{
    (void)rank;
    return v_schedule_peak(request, (request->rank_count + 4) / 3);
}

const struct schedule_form schedule_form_v_min = {
    .name = "v-min",
    .help = "two stages a rank in a V, a third of 1F1B's activations",
    .source = "Qi et al., Pipeline Parallelism with Controllable Memory (arXiv 2405.15362)",
    .chunks = 2,
    .model_replicas = 1,
    .from_both_ends = true,
    .list_all = list_all,
    .formula = formula,
    .peak = peak,
};
