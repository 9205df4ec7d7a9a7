#include "sim/collective/group.h"

uint64_t group_rank_count(const struct group *group)
{
    uint64_t count = 1;
    for (uint32_t d = 0; d < group->dimension_count; d++) count *= group->dimension[d].size;
    return count;
}
