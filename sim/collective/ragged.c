#include "sim/collective/ragged.h"

#include <stdbool.h>
#include <stddef.h>

#include "sim/base/arena.h"
#include "sim/base/units.h"

/* A draw that hits experts already drawn this often takes the next one that is free. */
enum { ATTEMPTS_MAX = 64 };

static const uint64_t tokens_max = UINT64_C(1) << 26; /* Of all ranks. */
static const uint64_t weight_one = UINT64_C(1) << 24;

/* SplitMix64: Steele, Lea and Flood, Fast Splittable Pseudorandom Number Generators (2014). */
struct random {
    uint64_t state;
};

static uint64_t random_next(struct random *random)
{
    uint64_t z = random->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* Below `end`, by the high half of a product. */
static uint64_t random_below(struct random *random, uint64_t end)
{
    return (uint64_t)((units_wide)random_next(random) * end >> 64);
}

struct experts {
    uint64_t *end;    /* [i]: sum of the weights of the experts up to the i-th in popularity. */
    uint32_t *expert; /* [i] */
    uint32_t count;
};

uint64_t ragged_tokens(const struct plan_request *request)
{
    return request->size_bytes / group_rank_count(&request->group) / request->ragged.token_bytes;
}

enum status ragged_check(const struct plan_request *request, const char *where,
                         struct error *reterr)
{
    const struct plan_ragged *ragged = &request->ragged;
    uint64_t const ranks = group_rank_count(&request->group);
    if (ragged->expert_count == 0) return STATUS_OK;
    if (request->kind != COLLECTIVE_ALL_TO_ALL)
        return error_set(reterr, STATUS_INVALID, where, "%s cannot be ragged; AllToAll can",
                         collective_kind_name(request->kind));
    if (ragged->expert_count > RAGGED_EXPERTS_MAX || ranks > RAGGED_RANKS_MAX)
        return error_set(reterr, STATUS_LIMIT, where,
                         "%u experts on %llu ranks are more than %u on %u", ragged->expert_count,
                         (unsigned long long)ranks, RAGGED_EXPERTS_MAX, RAGGED_RANKS_MAX);
    if (ragged->expert_count % ranks != 0)
        return error_set(reterr, STATUS_INVALID, where,
                         "%u experts do not lie evenly on %llu ranks", ragged->expert_count,
                         (unsigned long long)ranks);
    uint32_t const most =
        ragged->expert_count < RAGGED_TOP_K_MAX ? ragged->expert_count : RAGGED_TOP_K_MAX;
    if (ragged->top_k < 1 || ragged->top_k > most)
        return error_set(reterr, STATUS_INVALID, where,
                         "a token cannot go to %u experts; 1 to %u can be asked for", ragged->top_k,
                         most);
    if (ragged->skew_ppm > PPM_ONE)
        return error_set(reterr, STATUS_INVALID, where, "a skew of %u millionths is more than one",
                         ragged->skew_ppm);
    if (ragged->token_bytes == 0 || ragged_tokens(request) == 0)
        return error_set(reterr, STATUS_INVALID, where,
                         "%llu bytes on %llu ranks are less than a token of %llu bytes on each",
                         (unsigned long long)request->size_bytes, (unsigned long long)ranks,
                         (unsigned long long)ragged->token_bytes);
    if (ragged_tokens(request) > tokens_max / ranks)
        return error_set(reterr, STATUS_LIMIT, where,
                         "%llu tokens on each of %llu ranks are too many",
                         (unsigned long long)ragged_tokens(request), (unsigned long long)ranks);
    return STATUS_OK;
}

static enum status experts_create(struct arena *arena, const struct plan_ragged *ragged,
                                  struct random *random, struct experts *ret_experts,
                                  struct error *reterr)
{
    void *ends = NULL, *numbers = NULL;
    STATUS_TRY(arena_try(arena, ragged->expert_count, sizeof(uint64_t), &ends, reterr));
    STATUS_TRY(arena_try(arena, ragged->expert_count, sizeof(uint32_t), &numbers, reterr));
    struct experts experts = {ends, numbers, ragged->expert_count};
    uint64_t sum = 0;
    for (uint32_t i = 0; i < experts.count; i++) {
        sum += weight_one * (PPM_ONE - ragged->skew_ppm) / PPM_ONE;
        sum += weight_one * ragged->skew_ppm / PPM_ONE / (i + 1);
        experts.end[i] = sum;
        uint32_t const other = (uint32_t)random_below(random, i + 1);
        experts.expert[i] = experts.expert[other];
        experts.expert[other] = i;
    }
    *ret_experts = experts;
    return STATUS_OK;
}

static uint32_t expert_draw(const struct experts *experts, struct random *random)
{
    uint64_t const at = random_below(random, experts->end[experts->count - 1]);
    uint32_t low = 0, high = experts->count - 1;
    while (low < high) {
        uint32_t const middle = (low + high) / 2;
        if (experts->end[middle] <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return experts->expert[low];
}

static bool is_among(const uint32_t *numbers, uint32_t count, uint32_t number)
{
    for (uint32_t i = 0; i < count; i++)
        if (numbers[i] == number) return true;
    return false;
}

/* Draws a token's experts and counts a copy for each rank that has some of them. */
static void token_draw(const struct experts *experts, const struct plan_ragged *ragged,
                       uint32_t rank_experts, struct random *random, uint32_t *row)
{
    uint32_t drawn[RAGGED_TOP_K_MAX], ranks[RAGGED_TOP_K_MAX];
    uint32_t rank_count = 0;
    for (uint32_t k = 0; k < ragged->top_k; k++) {
        uint32_t expert = expert_draw(experts, random);
        for (uint32_t tried = 1; is_among(drawn, k, expert); tried++)
            expert =
                tried < ATTEMPTS_MAX ? expert_draw(experts, random) : (expert + 1) % experts->count;
        drawn[k] = expert;
        uint32_t const rank = expert / rank_experts;
        if (is_among(ranks, rank_count, rank)) continue;
        ranks[rank_count++] = rank;
        row[rank] += 2; /* Units are halves. */
    }
}

enum status ragged_build(struct arena *arena, const struct plan_request *request, struct plan *plan,
                         struct error *reterr)
{
    const struct plan_ragged *ragged = &request->ragged;
    uint32_t const ranks = (uint32_t)group_rank_count(&request->group);
    uint64_t const tokens = ragged_tokens(request);
    struct random random = {ragged->seed};
    struct experts experts;
    void *memory = NULL;
    STATUS_TRY(experts_create(arena, ragged, &random, &experts, reterr));
    STATUS_TRY(arena_try(arena, (uint64_t)ranks * ranks, sizeof(uint32_t), &memory, reterr));
    uint32_t *units = memory;
    for (uint32_t rank = 0; rank < ranks; rank++)
        for (uint64_t token = 0; token < tokens; token++)
            token_draw(&experts, ragged, experts.count / ranks, &random,
                       &units[(uint64_t)rank * ranks]);
    plan->ragged = *ragged;
    plan->ragged_units = units;
    return STATUS_OK;
}

struct ragged_load ragged_load(const struct plan *plan)
{
    SIM_ASSERT(plan->ragged_units != NULL);
    uint64_t const ranks = group_rank_count(&plan->group), token_bytes = plan->ragged.token_bytes;
    struct ragged_load load = {.sent_least_bytes = UINT64_MAX, .received_least_bytes = UINT64_MAX};
    for (uint64_t rank = 0; rank < ranks; rank++) {
        uint64_t sent = 0, received = 0; /* In halves of tokens. */
        for (uint64_t other = 0; other < ranks; other++) {
            if (other == rank) continue;
            sent += plan->ragged_units[rank * ranks + other];
            received += plan->ragged_units[other * ranks + rank];
        }
        sent = sent / 2 * token_bytes;
        received = received / 2 * token_bytes;
        load.sent_bytes += sent;
        if (sent < load.sent_least_bytes) load.sent_least_bytes = sent;
        if (sent > load.sent_most_bytes) load.sent_most_bytes = sent;
        if (received < load.received_least_bytes) load.received_least_bytes = received;
        if (received > load.received_most_bytes) load.received_most_bytes = received;
    }
    return load;
}
