/*
 * DualPipe: two copies of the model from opposite ends, each for half of the microbatches; a
 * forward pass of one overlaps a backward pass of the other, so that the AllToAlls of experts hide.
 */
#include <stdio.h>

#include "sim/schedule/dualpipe_common.h"

static const char *refuses(const struct schedule_request *request, char *buffer,
                           uint32_t buffer_bytes)
{
    uint32_t const p = request->rank_count, m = request->microbatch_count;
    if (p % 2 == 0 && m % 2 == 0 && m >= 2 * p) return NULL;
    if (p == 1)
        (void)snprintf(buffer, buffer_bytes,
                       "it needs an even number of ranks; the nearest to 1 is 2");
    else if (p % 2 != 0)
        (void)snprintf(buffer, buffer_bytes,
                       "it needs an even number of ranks; the nearest to %u are %u and %u", p,
                       p - 1, p + 1);
    else if (m <= 2 * p)
        (void)snprintf(buffer, buffer_bytes,
                       "it needs an even number of microbatches, at least twice the ranks; the "
                       "nearest to %u is %u",
                       m, 2 * p);
    else
        (void)snprintf(buffer, buffer_bytes,
                       "it needs an even number of microbatches, at least twice the ranks; the "
                       "nearest to %u are %u and %u",
                       m, m - 1, m + 1);
    return buffer;
}

static void list(const struct schedule_request *request, uint32_t rank, struct schedule_list *list)
{
    uint32_t const p = request->rank_count, half = request->microbatch_count / 2;
    bool const far = rank >= p / 2; /* Nearer to where the second copy begins. */
    uint32_t const near = far ? p - 1 - rank : rank;
    struct dualpipe dual = {
        .list = list,
        .way = {{.stage = near, .microbatch_first = far ? half : 0},
                {.stage = p - 1 - near, .microbatch_first = far ? 0 : half}},
    };
    dualpipe_list(&dual, &(struct dualpipe_counts){.half = p / 2,
                                                   .place = near,
                                                   .steady = half - p + near + 1,
                                                   .at_bottom = near == p / 2 - 1});
}

static struct schedule_formula formula(const struct schedule_request *request)
{
    return dualpipe_formula(request, request->rank_count / 2, "(p/2-1)(O+B-3W)");
}

static struct schedule_peak peak(const struct schedule_request *request, uint32_t rank)
{
    (void)rank;
    return (struct schedule_peak){request->rank_count + 1, 0};
}

const struct schedule_form schedule_form_dualpipe = {
    .name = "dualpipe",
    .help = "two copies of the model from both ends, forward and backward passes overlapped",
    .source = "DeepSeek-V3 technical report (arXiv 2412.19437); github.com/deepseek-ai/DualPipe",
    .chunks = 1,
    .model_replicas = 2,
    .refuses = refuses,
    .list = list,
    .formula = formula,
    .peak = peak,
};
