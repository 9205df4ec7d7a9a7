#include "sim/collective/ragged.h"

#include <stdbool.h>
#include <stddef.h>

#include "sim/base/arena.h"
#include "sim/base/counted.h"
#include "sim/base/random.h"
#include "sim/base/units.h"

/* A draw that hits experts already drawn this often takes the next one that is free. */
enum { ATTEMPTS_MAX = 64 };

static const uint64_t tokens_max = UINT64_C(1) << 26; /* Of all ranks. */
static const uint64_t weight_one = UINT64_C(1) << 24;

uint64_t ragged_tokens(const struct plan_request *request)
{
    return request->size_bytes / group_rank_count(&request->group) / request->ragged.token_bytes;
}

uint64_t ragged_tokens_of(const struct plan_ragged *ragged, uint64_t rank, uint64_t tokens)
{
    if (ragged->tokens == 0 || ragged->tokens / tokens > rank) return tokens;
    return ragged->tokens <= rank * tokens ? 0 : ragged->tokens - rank * tokens;
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
        return error_set(reterr, STATUS_LIMIT, where, "%s on %s are more than %u on %u",
                         counted(ragged->expert_count, "expert").text, counted(ranks, "rank").text,
                         RAGGED_EXPERTS_MAX, RAGGED_RANKS_MAX);
    if (ragged->expert_count % ranks != 0)
        return error_set(reterr, STATUS_INVALID, where, "%s cannot lie evenly on %s",
                         counted(ragged->expert_count, "expert").text, counted(ranks, "rank").text);
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
                         "%s on %s are less than a token of %s on each",
                         counted(request->size_bytes, "byte").text, counted(ranks, "rank").text,
                         counted(ragged->token_bytes, "byte").text);
    if (ragged_tokens(request) > tokens_max / ranks)
        return error_set(reterr, STATUS_LIMIT, where,
                         "%llu tokens on each of %llu ranks are too many",
                         (unsigned long long)ragged_tokens(request), (unsigned long long)ranks);
    return STATUS_OK;
}

uint64_t ragged_level_bytes(const struct plan_request *request, uint64_t held, uint64_t size)
{
    uint64_t const copies = request->ragged.top_k < held ? request->ragged.top_k : held;
    return request->size_bytes / group_rank_count(&request->group) / size * (size - 1) * copies;
}

enum status ragged_draw_begin(struct arena *arena, const struct plan_ragged *ragged, uint32_t ranks,
                              struct ragged_draw *ret_draw, struct error *reterr)
{
    void *ends = NULL, *numbers = NULL;
    uint32_t const count = ragged->expert_count;
    STATUS_TRY(arena_try(arena, count, sizeof(uint64_t), &ends, reterr));
    STATUS_TRY(arena_try(arena, count, sizeof(uint32_t), &numbers, reterr));
    struct ragged_draw draw = {.random = ragged->seed,
                               .weight_end = ends,
                               .expert = numbers,
                               .count = count,
                               .rank_experts = count / ranks,
                               .top_k = ragged->top_k};
    uint64_t sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        sum += weight_one * (PPM_ONE - ragged->skew_ppm) / PPM_ONE;
        sum += weight_one * ragged->skew_ppm / PPM_ONE / (i + 1);
        draw.weight_end[i] = sum;
        uint32_t const other = (uint32_t)random_below(&draw.random, i + 1);
        draw.expert[i] = draw.expert[other];
        draw.expert[other] = i;
    }
    *ret_draw = draw;
    return STATUS_OK;
}

static uint32_t expert_draw(struct ragged_draw *draw)
{
    uint64_t const at = random_below(&draw->random, draw->weight_end[draw->count - 1]);
    uint32_t low = 0, high = draw->count - 1;
    while (low < high) {
        uint32_t const middle = (low + high) / 2;
        if (draw->weight_end[middle] <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return draw->expert[low];
}

static bool is_among(const uint32_t *numbers, uint32_t count, uint32_t number)
{
    for (uint32_t i = 0; i < count; i++)
        if (numbers[i] == number) return true;
    return false;
}

uint32_t ragged_draw_next(struct ragged_draw *draw, uint32_t ret_ranks[RAGGED_TOP_K_MAX])
{
    uint32_t *drawn = draw->token;
    uint32_t rank_count = 0;
    for (uint32_t k = 0; k < draw->top_k; k++) {
        uint32_t expert = expert_draw(draw);
        for (uint32_t tried = 1; is_among(drawn, k, expert); tried++)
            expert = tried < ATTEMPTS_MAX ? expert_draw(draw) : (expert + 1) % draw->count;
        drawn[k] = expert;
        uint32_t const rank = expert / draw->rank_experts;
        if (!is_among(ret_ranks, rank_count, rank)) ret_ranks[rank_count++] = rank;
    }
    return rank_count;
}

/* A part of the way that tokens go: over all ranks at once, or over one dimension. Ranks come in
 * rows of `size` parts, of `inside` ranks each; a token goes on from a part to others of its row.
 */
struct leg {
    uint32_t *units; /* As plan_item.ragged_units. */
    uint32_t ranks, size, inside;
    uint32_t piece_count;
    bool returns;
};

static struct leg leg_whole(uint32_t ranks)
{
    return (struct leg){NULL, ranks, ranks, 1, 1, false};
}

static struct leg leg_of(const struct plan *plan, const struct plan_item *item)
{
    struct leg leg = leg_whole((uint32_t)group_rank_count(&plan->group));
    leg.piece_count = item->piece_count;
    leg.size = item->size;
    for (uint32_t i = plan->group.dimension_count; !item->flat && i-- > 0;) {
        if (plan->flat_dimension[i] == item->dimension) break;
        leg.inside *= plan->group.dimension[plan->flat_dimension[i]].size;
    }
    return leg;
}

static enum status leg_create(struct arena *arena, struct leg *leg, struct error *reterr)
{
    void *memory = NULL;
    uint64_t const count = (uint64_t)leg->ranks * leg->size * leg->piece_count;
    STATUS_TRY(arena_try(arena, count, sizeof(uint32_t), &memory, reterr));
    leg->units = memory;
    return STATUS_OK;
}

/* Counts a token of a source that `count` ranks want: once for each part in which some do. In the
 * row of that part it is with the rank that lies there as the source does in its own. */
static void leg_pass(const struct leg *leg, uint64_t piece, uint32_t source, const uint32_t *wanted,
                     uint32_t count)
{
    uint32_t parts[RAGGED_TOP_K_MAX];
    uint32_t const width = leg->inside * leg->size;
    uint32_t part_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t const part = wanted[i] / leg->inside;
        if (leg->inside > 1) { /* Else parts are ranks, each of which is there once. */
            if (is_among(parts, part_count, part)) continue;
            parts[part_count++] = part;
        }
        uint32_t const holder = wanted[i] / width * width + source % width;
        uint32_t const own = holder / leg->inside % leg->size, to = part % leg->size;
        uint32_t const other = holder - own * leg->inside + to * leg->inside;
        uint64_t const row = piece * leg->ranks + (leg->returns ? other : holder);
        leg->units[row * leg->size + (leg->returns ? own : to)] += 2; /* Units are halves. */
    }
}

/* Those of a piece follow one another. */
static uint64_t piece_of(uint64_t token, uint64_t tokens, uint32_t piece_count)
{
    return token * piece_count / tokens;
}

enum status ragged_build(struct arena *arena, const struct plan_request *request, struct plan *plan,
                         struct error *reterr)
{
    uint32_t const ranks = (uint32_t)group_rank_count(&request->group);
    uint64_t const tokens = ragged_tokens(request);
    struct leg legs[1 + PLAN_ITEMS_MAX] = {leg_whole(ranks)};
    uint32_t wanted[RAGGED_TOP_K_MAX], count = 1;
    struct ragged_draw draw;
    STATUS_TRY(ragged_draw_begin(arena, &request->ragged, ranks, &draw, reterr));
    STATUS_TRY(leg_create(arena, &legs[0], reterr));
    legs[0].returns = request->ragged.returns;
    plan->ragged = request->ragged;
    plan->ragged_units = legs[0].units;
    for (uint32_t i = 0; i < plan->item_count; i++) {
        struct leg leg = leg_of(plan, &plan->item[i]);
        leg.returns = request->ragged.returns;
        bool const whole = leg.size == ranks && leg.piece_count == 1;
        if (!whole) STATUS_TRY(leg_create(arena, &leg, reterr));
        if (!whole) legs[count++] = leg;
        plan->item[i].ragged_units = whole ? plan->ragged_units : leg.units;
    }
    for (uint32_t rank = 0; rank < ranks; rank++) {
        uint64_t const own = ragged_tokens_of(&request->ragged, rank, tokens);
        for (uint64_t token = 0; token < own; token++) {
            if ((rank * tokens + token) % RAGGED_WATCH_TOKENS == 0)
                STATUS_TRY(cancel_check(request->cancel, reterr));
            uint32_t const wanting = ragged_draw_next(&draw, wanted);
            for (uint32_t i = 0; i < count; i++)
                leg_pass(&legs[i], piece_of(token, tokens, legs[i].piece_count), rank, wanted,
                         wanting);
        }
    }
    return STATUS_OK;
}

/* Halves of tokens that a rank has for the others of its row. */
static uint64_t leg_sent(const struct leg *leg, const uint32_t *units, uint32_t rank)
{
    uint32_t const own = rank / leg->inside % leg->size;
    uint64_t sent = 0;
    for (uint32_t piece = 0; piece < leg->piece_count; piece++) {
        const uint32_t *row = &units[((uint64_t)piece * leg->ranks + rank) * leg->size];
        for (uint32_t part = 0; part < leg->size; part++) sent += part == own ? 0 : row[part];
    }
    return sent;
}

static uint64_t leg_received(const struct leg *leg, const uint32_t *units, uint32_t rank)
{
    uint32_t const own = rank / leg->inside % leg->size;
    uint64_t received = 0;
    for (uint32_t piece = 0; piece < leg->piece_count; piece++)
        for (uint32_t part = 0; part < leg->size; part++) {
            uint32_t const from = rank - own * leg->inside + part * leg->inside;
            uint64_t const row = (uint64_t)piece * leg->ranks + from;
            received += part == own ? 0 : units[row * leg->size + own];
        }
    return received;
}

static struct ragged_load load_of(const struct leg *leg, const uint32_t *units,
                                  uint64_t token_bytes)
{
    struct ragged_load load = {.sent_least_bytes = UINT64_MAX, .received_least_bytes = UINT64_MAX};
    for (uint32_t rank = 0; rank < leg->ranks; rank++) {
        uint64_t const sent = leg_sent(leg, units, rank) / 2 * token_bytes;
        uint64_t const received = leg_received(leg, units, rank) / 2 * token_bytes;
        load.sent_bytes += sent;
        if (sent < load.sent_least_bytes) load.sent_least_bytes = sent;
        if (sent > load.sent_most_bytes) load.sent_most_bytes = sent;
        if (received < load.received_least_bytes) load.received_least_bytes = received;
        if (received > load.received_most_bytes) load.received_most_bytes = received;
    }
    return load;
}

struct ragged_load ragged_load(const struct plan *plan)
{
    SIM_ASSERT(plan->ragged_units != NULL);
    struct leg const leg = leg_whole((uint32_t)group_rank_count(&plan->group));
    return load_of(&leg, plan->ragged_units, plan->ragged.token_bytes);
}

struct ragged_load ragged_item_load(const struct plan *plan, const struct plan_item *item)
{
    SIM_ASSERT(item->ragged_units != NULL);
    struct leg const leg = leg_of(plan, item);
    return load_of(&leg, item->ragged_units, plan->ragged.token_bytes);
}

uint64_t ragged_farthest_bytes(const struct plan *plan)
{
    const struct plan_item *item = &plan->item[0];
    struct leg const leg = leg_of(plan, item);
    uint32_t const units_farthest = plan->group.dimension[plan->flat_dimension[0]].size;
    if (!item->flat) return ragged_item_load(plan, item).sent_bytes;
    uint32_t const width = leg.ranks / units_farthest;
    uint64_t units = 0;
    for (uint64_t row = 0; row < (uint64_t)leg.ranks * leg.piece_count; row++)
        for (uint32_t to = 0; to < leg.ranks; to++)
            if (to / width != row % leg.ranks / width)
                units += item->ragged_units[row * leg.ranks + to];
    return units / 2 * plan->ragged.token_bytes;
}
