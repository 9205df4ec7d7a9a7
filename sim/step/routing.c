#include "sim/step/routing.h"

#include "sim/base/units.h"

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
    units_wide const hits = (units_wide)(one - miss) * tokens + one - 1;
    return (uint64_t)(hits >> ONE_BITS);
}
