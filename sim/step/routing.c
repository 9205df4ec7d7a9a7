#include "sim/step/routing.h"

#include <stdio.h>

#include "sim/base/units.h"
#include "sim/collective/ragged.h"
#include "sim/step/ranks.h"
#include "sim/step/routing_load.h"
#include "sim/step/suggest.h"

/* Probabilities are fractions of 2^32. */
enum { ONE_BITS = 32 };
static const uint64_t one = UINT64_C(1) << ONE_BITS;

static uint64_t scale(uint64_t probability, uint64_t numerator, uint64_t denominator)
{
    return (uint64_t)((units_wide)probability * numerator / denominator);
}

/* That none of `drawn` different ones out of `count` is among `held` of them. */
static uint64_t missed(uint64_t count, uint64_t held, uint64_t drawn)
{
    uint64_t probability = one;
    for (uint64_t i = 0; i < drawn && probability != 0; i++)
        probability = held + i >= count ? 0 : scale(probability, count - held - i, count - i);
    return probability;
}

/* That exactly `hits` of `drawn` different groups are among `held` of `count`. */
static uint64_t hit_exactly(uint64_t count, uint64_t held, uint64_t drawn, uint64_t hits)
{
    uint64_t probability = one;
    if (hits > held || drawn - hits > count - held) return 0;
    /* One order of hits and misses, times the number of orders. */
    for (uint64_t i = 0; i < hits; i++) {
        probability = scale(probability, held - i, count - i);
        probability = scale(probability, drawn - i, i + 1);
    }
    for (uint64_t i = 0; i < drawn - hits; i++)
        probability = scale(probability, count - held - i, count - hits - i);
    return probability;
}

bool routing_fits_groups(const struct model_experts *experts, uint64_t held)
{
    if (experts->groups == 0) return true;
    uint64_t const group = experts->count / experts->groups;
    return group % held == 0 || held % group == 0;
}

/* First the groups are chosen, then the experts from all of theirs. */
static uint64_t missed_by_groups(const struct model_experts *experts, uint64_t held)
{
    uint64_t const group = experts->count / experts->groups;
    uint64_t const open = experts->top_groups * group;
    uint64_t probability = 0;
    if (held <= group) {
        uint64_t const chosen = scale(one, experts->top_groups, experts->groups);
        uint64_t const within = missed(open, held, experts->top_k);
        return one - scale(chosen, one - within, one);
    }
    uint64_t const groups = held / group;
    for (uint64_t hits = 0; hits <= experts->top_groups && hits <= groups; hits++)
        probability += scale(hit_exactly(experts->groups, groups, experts->top_groups, hits),
                             missed(open, hits * group, experts->top_k), one);
    return probability;
}

uint64_t routing_hits(const struct model_experts *experts, uint64_t held, uint64_t tokens)
{
    if (held >= experts->count) return tokens;
    uint64_t const miss = experts->groups != 0 ? missed_by_groups(experts, held)
                                               : missed(experts->count, held, experts->top_k);
    uint64_t const hits = (uint64_t)(((units_wide)(one - miss) * tokens + one - 1) >> ONE_BITS);
    /* Each has a row at least, of which there are as many as of even parts. */
    units_wide const rows = (units_wide)tokens * experts->top_k * held + experts->count - 1;
    uint64_t const most = (uint64_t)(rows / experts->count);
    return hits < most ? hits : most;
}

/* --- What a chip has --- */

/* Of the ranks that share a set of experts. In inference the last ranks may have fewer tokens than
 * others. */
static uint64_t tokens_of(const struct ranks *ranks)
{
    const struct routing *experts = &ranks->experts;
    uint64_t const most = experts->tokens * experts->ranks, all = ranks->inference.all.tokens;
    return ranks_serves(ranks) && all < most ? all : most;
}

/* Of the tokens of all ranks those with an expert among `held`. */
static uint64_t hits_of(const struct ranks *ranks, uint64_t held)
{
    return routing_hits(&ranks->plan->model.experts, held, tokens_of(ranks));
}

/* Tokens that cross each dimension of the ep group, from the outermost level in: those of all ranks
 * that share a rank's place in the levels inside, for each unit that the dimension leads to. On
 * the grid there are no units between, and each rank gets its own. */
static enum status crossing_build(struct ranks *ranks, struct error *reterr)
{
    const struct group *group = &ranks->mesh->axis[MESH_EP].group;
    const struct model_experts *model = &ranks->plan->model.experts;
    struct routing *experts = &ranks->experts;
    uint64_t const rank_count = group_rank_count(group);
    bool done[GROUP_DIMENSIONS_MAX] = {false};
    uint64_t units = 1;
    for (uint32_t i = 0; i < group->dimension_count; i++) {
        uint32_t outer = GROUP_DIMENSIONS_MAX;
        for (uint32_t d = 0; d < group->dimension_count; d++)
            if (!done[d] && group->dimension[d].switched &&
                (outer == GROUP_DIMENSIONS_MAX ||
                 group->dimension[d].axis > group->dimension[outer].axis))
                outer = d;
        if (outer != GROUP_DIMENSIONS_MAX) done[outer] = true;
        units = outer == GROUP_DIMENSIONS_MAX ? rank_count : units * group->dimension[outer].size;
        uint64_t const held = model->count / units;
        if (!routing_fits_groups(model, held))
            return error_set(reterr, STATUS_UNSUPPORTED, "/mesh/ep",
                             "%llu experts lie together, and a token's experts are in %llu of %llu "
                             "groups of %llu: that is modelled only where groups fit into what "
                             "lies together, or it into them",
                             (unsigned long long)held, (unsigned long long)model->top_groups,
                             (unsigned long long)model->groups,
                             (unsigned long long)(model->count / model->groups));
        uint64_t const tokens = units * hits_of(ranks, held);
        for (uint32_t d = 0; d < group->dimension_count; d++)
            if (d == outer || (outer == GROUP_DIMENSIONS_MAX && !done[d]))
                experts->crossing[d] = tokens;
        if (outer == GROUP_DIMENSIONS_MAX) break;
    }
    return STATUS_OK;
}

bool routing_is_drawn(const struct ranks *ranks)
{
    const struct workload_plan *plan = ranks->plan;
    /* In inference experts that no token asks for are not read, on one rank too. */
    bool const spread = ranks->mesh->axis[MESH_EP].size > 1 || ranks_serves(ranks);
    return plan->routing.skew_ppm != 0 && (spread || plan->routing.capacity_ppm != 0);
}

bool routing_copies_each(const struct ranks *ranks)
{
    return ranks->plan->routing.token_copies == WORKLOAD_COPY_AN_EXPERT &&
           ranks->mesh->axis[MESH_EP].size > 1;
}

/* One microbatch is drawn, and all draw alike. */
static enum status choices_check(const struct ranks *ranks, struct error *reterr)
{
    const struct workload_plan *plan = ranks->plan;
    uint64_t const rank_count = ranks->experts.ranks, top_k = plan->model.experts.top_k;
    uint64_t const tokens = tokens_of(ranks);
    if (ragged_choices_fit(tokens, 1, (uint32_t)top_k)) return STATUS_OK;
    if (ranks_serves(ranks))
        return error_set(
            reterr, STATUS_LIMIT, "/workload/routing_skew",
            "%llu tokens on %llu ranks of ep choose %llu experts each, and all are drawn: more "
            "than 2^26 choices would take minutes; up to %llu tokens on these ranks are drawn",
            (unsigned long long)tokens, (unsigned long long)rank_count, (unsigned long long)top_k,
            (unsigned long long)(RAGGED_CHOICES_MAX / top_k));
    uint64_t const ways = ranks->data * plan->accumulate * ranks_tp_of_ep(ranks);
    uint64_t const most = RAGGED_CHOICES_MAX / rank_count / top_k * ways;
    uint64_t const fits = suggest_batch_below(ranks, most);
    char batch[SUGGEST_TEXT_BYTES] = "no batch_tokens of so long sequences fits";
    if (fits != 0)
        (void)snprintf(batch, sizeof batch, "the nearest batch_tokens that fits: %llu",
                       (unsigned long long)fits);
    return error_set(reterr, STATUS_LIMIT, "/workload/routing_skew",
                     "%llu tokens of a microbatch on each of %llu ranks of ep choose %llu experts "
                     "each, and all are drawn: more than 2^26 choices would take minutes; more "
                     "microbatches (\"accumulate\") draw fewer, and %s",
                     (unsigned long long)ranks->experts.tokens, (unsigned long long)rank_count,
                     (unsigned long long)top_k, batch);
}

/* As V of an exchange of which every rank has as much: on switches, of what is sent along. */
static void crossing_drawn(const struct group *group, const struct routing_load *load,
                           struct routing *experts)
{
    for (uint32_t d = 0; d < group->dimension_count; d++) {
        uint64_t const size = group->dimension[d].size;
        bool const sent = group->dimension[d].switched;
        experts->crossing[d] = sent ? load->crossing[d] * size / (size - 1) : load->crossing[d];
    }
}

/* Who has most is waited for by all at the combine, so everyone is charged what it has. */
static enum status loads_build(struct ranks *ranks, struct error *reterr)
{
    struct routing *experts = &ranks->experts;
    const struct model_experts *model = &ranks->plan->model.experts;
    const struct group *group = &ranks->mesh->axis[MESH_EP].group;
    uint64_t const tokens = tokens_of(ranks);
    uint64_t const capacity = ranks->plan->routing.capacity_ppm == 0 ? 0 : experts->rows;
    struct routing_load load;
    experts->drawn = (struct plan_ragged){
        .expert_count = (uint32_t)model->count,
        .top_k = (uint32_t)model->top_k,
        .token_bytes = 1,
        .tokens = tokens < experts->tokens * experts->ranks ? tokens : 0,
        .seed = ranks->plan->routing.seed,
        .skew_ppm = ranks->plan->routing.skew_ppm,
    };
    struct routing_request const request = {.group = group,
                                            .ragged = &experts->drawn,
                                            .tokens = experts->tokens,
                                            .capacity = capacity,
                                            .cancel = ranks->plan->cancel};
    STATUS_TRY(choices_check(ranks, reterr));
    STATUS_TRY(routing_load_draw(&request, ranks->plan->routing.drawn, &load, reterr));
    if (capacity == 0) {
        experts->asked = load.hit_most;
        experts->all = load.rows_most;
    }
    experts->dropped = load.dropped;
    experts->arrivals = load.came_most;
    experts->sent = load.sent_most;
    experts->exchanged = load.sent;
    crossing_drawn(group, &load, experts);
    return STATUS_OK;
}

/* With a capacity an expert has as many rows, filled or not, and what is above is dropped. */
static enum status capacity_build(struct ranks *ranks, struct error *reterr)
{
    struct routing *experts = &ranks->experts;
    const struct model_experts *model = &ranks->plan->model.experts;
    uint64_t const wanted = experts->tokens * model->top_k * experts->ranks;
    uint64_t const factor_ppm = ranks->plan->routing.capacity_ppm;
    if (factor_ppm == 0) return STATUS_OK;
    if ((units_wide)factor_ppm * model->top_k > (units_wide)model->count * PPM_ONE)
        return error_set(reterr, STATUS_INVALID, "/workload/capacity_factor",
                         "a token has %llu of %llu experts: none can get more than %llu/%llu of "
                         "its even rows",
                         (unsigned long long)model->top_k, (unsigned long long)model->count,
                         (unsigned long long)model->count, (unsigned long long)model->top_k);
    units_wide const share = (units_wide)model->count * PPM_ONE;
    experts->asked = experts->count;
    experts->rows = (uint64_t)(((units_wide)wanted * factor_ppm + share - 1) / share);
    experts->all = experts->count * experts->rows;
    uint64_t const places = model->count * experts->rows;
    experts->dropped = wanted > places ? wanted - places : 0;
    return STATUS_OK;
}

/* Who else holds the same experts. */
static enum status replicas_build(struct ranks *ranks, struct error *reterr)
{
    struct replicas *replicas = &ranks->experts.replicas;
    uint32_t const zero = ranks->plan->zero;
    /* Ranks that have the same matrices of the same experts, or shards of these. */
    uint32_t const same = ranks->data * ranks_tp_of_ep(ranks) / ranks->experts.ranks;
    STATUS_TRY(ranks_replicas_find(ranks, true, replicas, reterr));
    replicas->count = zero == 3 ? 1 : same / ranks->shards;
    replicas->state_shards = zero == 0 ? ranks->shards : same;
    replicas->gradient_shards = zero >= 2 ? same : ranks->shards;
    if (ranks->gradients.once && ranks->plan->accumulate > 1) replicas->gradient_shards = 1;
    return STATUS_OK;
}

enum { SHARE_BITS = 62 };

/* (1 - k/E)^tokens in units of 2^-SHARE_BITS, by squares, rounded down. */
static uint64_t missed_share(const struct model_experts *experts, uint64_t tokens)
{
    units_wide const whole = (units_wide)1 << SHARE_BITS;
    units_wide power = whole * (experts->count - experts->top_k) / experts->count, share = whole;
    for (; tokens > 0; tokens /= 2) {
        if (tokens % 2 == 1) share = share * power >> SHARE_BITS;
        power = power * power >> SHARE_BITS;
    }
    return (uint64_t)share;
}

/* Rows of a rank's experts. Of the experts those have rows that a token asks for: if each asks for
 * any k of E, E·(1 - (1 - k/E)^B) of all. */
static void rows_build(struct ranks *ranks)
{
    struct routing *experts = &ranks->experts;
    const struct model_experts *model = &ranks->plan->model.experts;
    uint64_t const tokens = tokens_of(ranks);
    uint64_t const missed = missed_share(model, tokens);
    experts->asked = experts->count - (uint64_t)((units_wide)experts->count * missed >> SHARE_BITS);
    experts->all = units_ceil_divide(tokens * model->top_k, experts->ranks);
}

/* Where ranks wait for each other all read as many experts as one that has most, which are whole
 * ones: no fewer than the mean, rounded up. A rank that has all experts reads the mean. */
static struct graph_share read_of(const struct ranks *ranks)
{
    const struct routing *experts = &ranks->experts;
    uint64_t const whole = UINT64_C(1) << SHARE_BITS;
    bool const is_mean = ranks_serves(ranks) && experts->ranks == 1 && !routing_is_drawn(ranks) &&
                         ranks->plan->routing.capacity_ppm == 0;
    if (!is_mean) return (struct graph_share){experts->asked, experts->count};
    uint64_t const missed = missed_share(&ranks->plan->model.experts, tokens_of(ranks));
    return (struct graph_share){whole - missed, whole};
}

enum status routing_build(struct ranks *ranks, struct error *reterr)
{
    const struct workload_plan *plan = ranks->plan;
    const struct model_experts *model = &plan->model.experts;
    struct routing *experts = &ranks->experts;
    experts->ranks = ranks->mesh->axis[MESH_EP].size;
    if (model->count % experts->ranks != 0) {
        char nearest[SUGGEST_TEXT_BYTES];
        return error_set(reterr, STATUS_INVALID, "/mesh/ep",
                         "%u ranks cannot split a layer's %llu experts evenly; the nearest numbers "
                         "of ranks that can: %s",
                         experts->ranks, (unsigned long long)model->count,
                         suggest_divisors(model->count, experts->ranks, nearest));
    }
    experts->count = model->count / experts->ranks;
    experts->tokens = ranks->rows / ranks_tp_of_ep(ranks);
    rows_build(ranks);
    bool const each = routing_copies_each(ranks);
    experts->arrivals = each ? experts->all : hits_of(ranks, experts->count);
    experts->sent = each ? experts->tokens * model->top_k
                         : routing_hits(model, experts->count, experts->ranks * experts->tokens);
    experts->exchanged =
        each ? tokens_of(ranks) * model->top_k : experts->ranks * experts->arrivals;
    if (!each) STATUS_TRY(crossing_build(ranks, reterr));
    STATUS_TRY(capacity_build(ranks, reterr));
    if (routing_is_drawn(ranks)) STATUS_TRY(loads_build(ranks, reterr));
    experts->rows = units_ceil_divide(experts->all, experts->asked);
    experts->read = read_of(ranks);
    experts->kept =
        experts->tokens * model->top_k - units_ceil_divide(experts->dropped, experts->ranks);
    return replicas_build(ranks, reterr);
}
