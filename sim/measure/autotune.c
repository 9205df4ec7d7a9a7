#include "sim/measure/autotune.h"

#include <string.h>

#include "sim/base/arena.h"
#include "sim/measure/measure.h"

/* Bounds of trials, and of the messages of all of them on top of the row's own. MESSAGES_FEW are
 * always allowed, up to MESSAGES_SHARE times the row's own are, and never more than MESSAGES_MAX.
 */
enum {
    AUTOTUNE_PLANS_MAX = 3,
    MESSAGES_FEW = 1 << 14,
    MESSAGES_SHARE = 16,
    MESSAGES_MAX = 1 << 20
};

/* A candidate whose estimate is this multiple of the first one's is no match for it. */
static const double farthest_off = 1.6;

/* In memory of its own; folded, as that changes no instant. */
static enum status one_play(const struct choose_args *args, const char *where,
                            struct choose_candidate *candidate, struct error *reterr)
{
    struct measure_options const options = {.engine = "fast"};
    struct plan_request request;
    struct measured measured;
    struct arena *arena = arena_create(0);
    if (arena == NULL) return error_no_memory(reterr, "");
    enum status status = choose_apply(args, candidate, where, &request, reterr);
    if (status == STATUS_OK)
        status = measure_run(arena, args->machine, &request, 1, where, &options, &measured, reterr);
    if (status == STATUS_OK) candidate->played_ps = measured.time_ps[0];
    arena_destroy(arena);
    return status;
}

static uint64_t budget_of(uint64_t own)
{
    if (own > MESSAGES_MAX / MESSAGES_SHARE) return MESSAGES_MAX;
    uint64_t const share = MESSAGES_SHARE * own;
    return share > MESSAGES_FEW ? share : MESSAGES_FEW;
}

/* Those that are tried, the first among them; fewer than two: none. */
static uint32_t tried_find(const struct choose_ranking *ranking, uint32_t tried[AUTOTUNE_PLANS_MAX])
{
    const struct choose_candidate *first = &ranking->candidate[0];
    uint64_t messages = 0, budget = budget_of(first->message_count);
    uint32_t count = 0;
    for (uint32_t i = 0; i < ranking->count && count < AUTOTUNE_PLANS_MAX; i++) {
        const struct choose_candidate *candidate = &ranking->candidate[i];
        if (candidate->estimate.time_s > farthest_off * first->estimate.time_s) break;
        if (candidate->message_count > budget - messages) {
            if (i == 0) return 0;
            continue;
        }
        messages += candidate->message_count;
        tried[count++] = i;
    }
    return count;
}

static enum status few_play(const struct choose_args *args, const char *where,
                            struct choose_ranking *ranking, struct error *reterr)
{
    uint32_t tried[AUTOTUNE_PLANS_MAX], fastest = 0;
    if (args->protocols || args->request.ragged.expert_count > 0 || ranking->rule != NULL)
        return STATUS_OK;
    uint32_t const count = tried_find(ranking, tried);
    if (count < 2) return STATUS_OK;
    struct choose_ranking played = *ranking;
    for (uint32_t i = 0; i < count; i++) {
        struct choose_candidate *candidate = &played.candidate[tried[i]];
        STATUS_TRY(one_play(args, where, candidate, reterr));
        if (candidate->played_ps < played.candidate[fastest].played_ps) fastest = tried[i];
    }
    if (fastest == 0) return STATUS_OK;
    struct choose_candidate const winner = played.candidate[fastest];
    memmove(&played.candidate[1], &played.candidate[0], fastest * sizeof played.candidate[0]);
    played.candidate[0] = winner;
    *ranking = played;
    return STATUS_OK;
}

enum status autotune_choose(struct arena *arena, const struct choose_args *args, const char *where,
                            struct choose_ranking *ret_ranking, struct error *reterr)
{
    STATUS_TRY(choose_rank(arena, args, where, ret_ranking, reterr));
    return few_play(args, where, ret_ranking, reterr);
}
