#include "sim/base/ranked.h"

#include "sim/base/status.h"

/* By halves of the range of all numbers. */
uint64_t ranked_number(const uint64_t *numbers, uint32_t count, uint32_t rank)
{
    uint64_t least = 0, most = UINT64_MAX;
    SIM_ASSERT(rank < count);
    while (least < most) {
        uint64_t const middle = least + (most - least) / 2;
        uint32_t below = 0;
        for (uint32_t i = 0; i < count; i++) below += numbers[i] <= middle;
        if (below > rank)
            most = middle;
        else
            least = middle + 1;
    }
    return least;
}
