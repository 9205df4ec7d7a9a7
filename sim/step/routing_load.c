#include "sim/step/routing_load.h"

#include "sim/base/arena.h"
#include "sim/collective/ragged.h"

/* Digits of a rank, the outermost level's first: its ranks lie in rows of size·inside. */
struct digit {
    uint32_t dimension, size, inside;
};

struct tally {
    const struct group *group;
    struct digit digit[GROUP_DIMENSIONS_MAX];
    struct ragged_draw draw;
    uint64_t *expert; /* Assignments to each. */
    uint64_t *came;   /* [rank] */
    const struct cancel *cancel;
    uint32_t ranks;
    bool grid;
    uint64_t sent_on; /* Copies for other ranks. */
    uint64_t drawn;   /* Tokens. */
    struct routing_load load;
};

static void digits_fill(struct tally *tally)
{
    const struct group *group = tally->group;
    bool done[GROUP_DIMENSIONS_MAX] = {false};
    uint32_t inside = tally->ranks;
    for (uint32_t i = 0; i < group->dimension_count; i++) {
        uint32_t outer = GROUP_DIMENSIONS_MAX;
        for (uint32_t d = 0; d < group->dimension_count; d++)
            if (!done[d] && (outer == GROUP_DIMENSIONS_MAX ||
                             group->dimension[d].axis > group->dimension[outer].axis))
                outer = d;
        done[outer] = true;
        inside /= group->dimension[outer].size;
        tally->digit[i] = (struct digit){outer, group->dimension[outer].size, inside};
    }
}

/* How many boxes along a digit a token goes on to: other ones than the one that it is in. */
static uint32_t boxes_count(const struct digit *digit, uint32_t source, const uint32_t *wanted,
                            uint32_t count)
{
    uint32_t boxes[RAGGED_TOP_K_MAX];
    uint32_t found = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t const box = wanted[i] / digit->inside;
        bool known = box % digit->size == source / digit->inside % digit->size;
        for (uint32_t j = 0; j < found; j++) known = known || boxes[j] == box;
        if (!known) boxes[found++] = box;
    }
    return found;
}

/* Steps that a copy has to take along a dimension; of a line, whether it crosses the middle. */
static uint32_t steps_count(const struct group *group, uint32_t dimension, uint32_t source,
                            uint32_t receiver)
{
    const struct group_dimension *along = &group->dimension[dimension];
    uint32_t const from = group_digit(group, source, dimension);
    uint32_t const to = group_digit(group, receiver, dimension);
    uint32_t const apart = from < to ? to - from : from - to;
    if (!along->ring) return (from < along->size / 2) != (to < along->size / 2);
    return apart < along->size - apart ? apart : along->size - apart;
}

static void grid_count(struct tally *tally, uint32_t source, const uint32_t *wanted, uint32_t count)
{
    for (uint32_t d = 0; d < tally->group->dimension_count; d++)
        for (uint32_t i = 0; i < count; i++)
            tally->load.crossing[d] += steps_count(tally->group, d, source, wanted[i]);
    for (uint32_t i = 0; i < count; i++) tally->sent_on += wanted[i] != source;
}

/* Of an even exchange of V a ring of n has V·(n·n/4)/n steps to take, the square rounded down to
 * even parts; and the middle of a line is crossed by V·2·(n·n/4)/(n·n). */
static void grid_find(struct tally *tally)
{
    const struct group *group = tally->group;
    struct routing_load *load = &tally->load;
    uint64_t least = tally->sent_on * tally->ranks / (tally->ranks - 1);
    for (uint32_t d = 0; d < group->dimension_count; d++) {
        const struct group_dimension *along = &group->dimension[d];
        uint64_t const size = along->size, quarter = size * size / 4;
        uint64_t const even = along->ring ? load->crossing[d] * size / quarter
                                          : load->crossing[d] * size * size / (2 * quarter);
        if (even < least) least = even;
    }
    for (uint32_t d = 0; d < group->dimension_count; d++) load->crossing[d] = least;
}

static enum status rank_count(struct tally *tally, uint32_t source, uint64_t tokens,
                              struct error *reterr)
{
    struct routing_load *load = &tally->load;
    uint32_t wanted[RAGGED_TOP_K_MAX];
    uint64_t sent = 0;
    for (uint64_t token = 0; token < tokens; token++) {
        if (tally->drawn++ % RAGGED_WATCH_TOKENS == 0)
            STATUS_TRY(cancel_check(tally->cancel, reterr));
        uint32_t const count = ragged_draw_next(&tally->draw, wanted);
        sent += count;
        for (uint32_t i = 0; i < count; i++) tally->came[wanted[i]]++;
        for (uint32_t k = 0; k < tally->draw.top_k; k++) tally->expert[tally->draw.token[k]]++;
        if (tally->grid) grid_count(tally, source, wanted, count);
        for (uint32_t i = 0; !tally->grid && i < tally->group->dimension_count; i++)
            load->crossing[tally->digit[i].dimension] +=
                boxes_count(&tally->digit[i], source, wanted, count);
    }
    load->sent += sent;
    if (sent > load->sent_most) load->sent_most = sent;
    return STATUS_OK;
}

static void loads_find(struct tally *tally, uint64_t capacity)
{
    struct routing_load *load = &tally->load;
    for (uint32_t rank = 0; rank < tally->ranks; rank++) {
        uint64_t rows = 0, hit = 0;
        for (uint32_t i = 0; i < tally->draw.rank_experts; i++) {
            uint64_t const all = tally->expert[rank * tally->draw.rank_experts + i];
            uint64_t const kept = capacity != 0 && all > capacity ? capacity : all;
            rows += kept;
            hit += kept != 0;
            load->dropped += all - kept;
        }
        if (rows > load->rows_most) load->rows_most = rows;
        if (hit > load->hit_most) load->hit_most = hit;
        if (tally->came[rank] > load->came_most) load->came_most = tally->came[rank];
    }
}

static enum status tally_draw(struct arena *arena, struct tally *tally,
                              const struct plan_ragged *ragged, uint64_t tokens,
                              struct error *reterr)
{
    void *experts = NULL, *came = NULL;
    STATUS_TRY(arena_try(arena, ragged->expert_count, sizeof(uint64_t), &experts, reterr));
    STATUS_TRY(arena_try(arena, tally->ranks, sizeof(uint64_t), &came, reterr));
    tally->expert = experts;
    tally->came = came;
    STATUS_TRY(ragged_draw_begin(arena, ragged, tally->ranks, &tally->draw, reterr));
    for (uint32_t rank = 0; rank < tally->ranks; rank++)
        STATUS_TRY(rank_count(tally, rank, ragged_tokens_of(ragged, rank, tokens), reterr));
    return STATUS_OK;
}

static enum status load_draw(const struct routing_request *of, struct routing_load *ret_load,
                             struct error *reterr)
{
    const struct group *group = of->group;
    struct tally tally = {
        .group = group, .cancel = of->cancel, .ranks = (uint32_t)group_rank_count(group)};
    struct plan_request const request = {.kind = COLLECTIVE_ALL_TO_ALL,
                                         .group = *group,
                                         .size_bytes =
                                             of->tokens * tally.ranks * of->ragged->token_bytes,
                                         .ragged = *of->ragged};
    STATUS_TRY(ragged_check(&request, "/workload/routing_skew", reterr));
    struct arena *arena = arena_create(0);
    if (arena == NULL)
        return error_set(reterr, STATUS_NO_MEMORY, "", "no memory to draw where tokens go");
    tally.grid = tally.ranks > 1 && !group->dimension[0].switched;
    digits_fill(&tally);
    enum status const status = tally_draw(arena, &tally, of->ragged, of->tokens, reterr);
    if (status == STATUS_OK) loads_find(&tally, of->capacity);
    if (status == STATUS_OK && tally.grid) grid_find(&tally);
    arena_destroy(arena);
    *ret_load = tally.load;
    return status;
}

static bool is_drawn(const struct routing_drawn *drawn, const struct routing_request *request)
{
    if (!drawn->filled || !group_equal(&drawn->group, request->group)) return false;
    for (uint32_t d = 0; d < drawn->group.dimension_count; d++)
        if (drawn->group.dimension[d].switched != request->group->dimension[d].switched)
            return false;
    return drawn->tokens == request->tokens && drawn->capacity == request->capacity &&
           plan_ragged_equal(&drawn->ragged, request->ragged);
}

enum status routing_load_draw(const struct routing_request *request, struct routing_drawn *drawn,
                              struct routing_load *ret_load, struct error *reterr)
{
    if (drawn == NULL) return load_draw(request, ret_load, reterr);
    if (!is_drawn(drawn, request)) {
        drawn->filled = false;
        STATUS_TRY(load_draw(request, &drawn->load, reterr));
        drawn->filled = true;
        drawn->group = *request->group;
        drawn->ragged = *request->ragged;
        drawn->tokens = request->tokens;
        drawn->capacity = request->capacity;
    }
    *ret_load = drawn->load;
    return STATUS_OK;
}
