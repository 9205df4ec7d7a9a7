/* GPipe: all forward passes, then all backward passes. */
#include "sim/schedule/warmup.h"

static void list(const struct schedule_request *request, uint32_t rank, struct schedule_list *list)
{
    for (uint32_t b = 0; b < request->microbatch_count; b++)
        schedule_add(list, SCHEDULE_FORWARD, rank, b);
    for (uint32_t b = 0; b < request->microbatch_count; b++)
        schedule_add(list, SCHEDULE_BACKWARD, rank, b);
}

static struct schedule_peak peak(const struct schedule_request *request, uint32_t rank)
{
    (void)rank;
    return (struct schedule_peak){request->microbatch_count, 0};
}

const struct schedule_form schedule_form_gpipe = {
    .name = "gpipe",
    .help = "all forward, then all backward passes; holds the activations of all microbatches",
    .source = "Huang et al., GPipe (arXiv 1811.06965)",
    .chunks = 1,
    .model_replicas = 1,
    .list = list,
    .formula = warmup_formula,
    .peak = peak,
};
