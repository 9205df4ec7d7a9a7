/* DualPipeV: DualPipe cut in half: two stages a rank in a V instead of two copies of the model. */
#include <stdio.h>

#include "sim/schedule/dualpipe_common.h"

static const char *refuses(const struct schedule_request *request, char *buffer,
                           uint32_t buffer_bytes)
{
    uint32_t const least = 2 * request->rank_count;
    if (request->microbatch_count >= least) return NULL;
    (void)snprintf(
        buffer, buffer_bytes,
        "it needs at least twice as many microbatches as ranks; %u are too few, the nearest is %u",
        request->microbatch_count, least);
    return buffer;
}

static void list(const struct schedule_request *request, uint32_t rank, struct schedule_list *list)
{
    uint32_t const p = request->rank_count, m = request->microbatch_count;
    struct dualpipe dual = {
        .list = list,
        .way = {{.stage = rank, .microbatch_first = 0},
                {.stage = 2 * p - 1 - rank, .microbatch_first = 0}},
    };
    dualpipe_list(&dual, &(struct dualpipe_counts){.half = p,
                                                   .place = rank,
                                                   .steady = m - 2 * p + rank + 1,
                                                   .at_bottom = rank == p - 1});
}

static struct schedule_formula formula(const struct schedule_request *request)
{
    return dualpipe_formula(request, request->rank_count, "(PP/2-1)(O+B-3W), of PP = 2p stages");
}

static struct schedule_peak peak(const struct schedule_request *request, uint32_t rank)
{
    (void)rank;
    return (struct schedule_peak){2 * request->rank_count + 1, 0};
}

const struct schedule_form schedule_form_dualpipev = {
    .name = "dualpipev",
    .help = "DualPipe with one copy of the model: two stages a rank in a V",
    .source = "github.com/deepseek-ai/DualPipe; PyTorch's ScheduleDualPipeV",
    .chunks = 2,
    .model_replicas = 1,
    .from_both_ends = true,
    .refuses = refuses,
    .list = list,
    .formula = formula,
    .peak = peak,
};
