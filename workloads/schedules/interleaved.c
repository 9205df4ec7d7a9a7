/*
 * Interleaved 1F1B: a rank holds v stages; microbatches go through the stages of a rank in groups,
 * a group of one stage after the same group of the one before.
 */
#include <stdio.h>

#include "sim/schedule/schedule.h"

/* Rounds in which the microbatches come, at least one; each is a group of as many. */
static uint32_t rounds_of(const struct schedule_request *request)
{
    uint32_t const rounds = request->microbatch_count / request->rank_count;
    return rounds == 0 ? 1 : rounds;
}

static const char *refuses(const struct schedule_request *request, char *buffer,
                           uint32_t buffer_bytes)
{
    uint32_t const rounds = rounds_of(request), m = request->microbatch_count;
    if (m % rounds == 0) return NULL;
    uint32_t fewer = m, more = m;
    struct schedule_request other = *request;
    do other.microbatch_count = --fewer;
    while (fewer % rounds_of(&other) != 0);
    do other.microbatch_count = ++more;
    while (more % rounds_of(&other) != 0);
    (void)snprintf(buffer, buffer_bytes,
                   "%u microbatches on %u ranks come in %u rounds, which does not divide them; the "
                   "nearest counts are %u and %u",
                   m, request->rank_count, rounds, fewer, more);
    return buffer;
}

/* The stage and the microbatch of a rank's k-th forward, or backward, pass. */
static void pass_add(const struct schedule_request *request, uint32_t rank, bool backward,
                     uint32_t k, struct schedule_list *list)
{
    uint32_t const v = request->chunk_count;
    uint32_t const group = request->microbatch_count / rounds_of(request);
    uint32_t const forward_chunk = k / group % v;
    uint32_t const chunk = backward ? v - 1 - forward_chunk : forward_chunk;
    schedule_add(list, backward ? SCHEDULE_BACKWARD : SCHEDULE_FORWARD,
                 chunk * request->rank_count + rank, k / (group * v) * group + k % group);
}

static uint32_t ahead_of(const struct schedule_request *request, uint32_t rank)
{
    uint32_t const all = request->microbatch_count * request->chunk_count;
    uint32_t const group = request->microbatch_count / rounds_of(request);
    uint32_t const ahead =
        (request->chunk_count - 1) * group + 2 * (request->rank_count - 1 - rank);
    return ahead < all ? ahead : all;
}

static void list(const struct schedule_request *request, uint32_t rank, struct schedule_list *list)
{
    uint32_t const all = request->microbatch_count * request->chunk_count;
    uint32_t const ahead = ahead_of(request, rank);
    for (uint32_t k = 0; k < ahead; k++) pass_add(request, rank, false, k, list);
    for (uint32_t k = 0; k < all; k++) {
        if (k + ahead < all) pass_add(request, rank, false, k + ahead, list);
        pass_add(request, rank, true, k, list);
    }
}

static struct schedule_formula formula(const struct schedule_request *request)
{
    const struct schedule_times *t = &request->times;
    int64_t const p = request->rank_count;
    bool const exact = request->microbatch_count % request->rank_count == 0;
    return (struct schedule_formula){
        .measure = SCHEDULE_MAKESPAN,
        .bubble_ticks = (p - 1) * (t->forward + t->input + t->weight),
        .exact = exact,
        .text = "(p-1)(F+B)/v",
        .holds = "m a multiple of p",
    };
}

static struct schedule_peak peak(const struct schedule_request *request, uint32_t rank)
{
    uint32_t const all = request->microbatch_count * request->chunk_count;
    uint32_t const most = ahead_of(request, rank) + 1;
    return (struct schedule_peak){most < all ? most : all, 0};
}

const struct schedule_form schedule_form_interleaved = {
    .name = "interleaved",
    .pytorch = "Interleaved1F1B",
    .help = "1F1B over v stages a rank (interleaved:2): a bubble v times smaller, v times the hops",
    .source = "Narayanan et al. (arXiv 2104.04473); rounds and warm-up as PyTorch's "
              "ScheduleInterleaved1F1B",
    .model_replicas = 1,
    .refuses = refuses,
    .list = list,
    .formula = formula,
    .peak = peak,
};
