#include "sim/collective/group.h"

uint64_t group_rank_count(const struct group *group)
{
    uint64_t count = 1;
    for (uint32_t d = 0; d < group->dimension_count; d++) count *= group->dimension[d].size;
    return count;
}

uint32_t group_digit(const struct group *group, uint32_t rank, uint32_t dimension)
{
    for (uint32_t d = group->dimension_count; d-- > dimension + 1;)
        rank /= group->dimension[d].size;
    return rank % group->dimension[dimension].size;
}

bool group_equal(const struct group *a, const struct group *b)
{
    if (a->dimension_count != b->dimension_count) return false;
    for (uint32_t d = 0; d < a->dimension_count; d++) {
        const struct group_dimension *x = &a->dimension[d], *y = &b->dimension[d];
        if (x->axis != y->axis || x->size != y->size || x->stride != y->stride ||
            x->ring != y->ring)
            return false;
    }
    return true;
}
