#include "sim/base/period.h"

#include "sim/base/status.h"

static int64_t last_end(const int64_t *ends, uint32_t places, uint32_t step)
{
    const int64_t *row = &ends[(uint64_t)step * places];
    int64_t last = row[0];
    for (uint32_t place = 1; place < places; place++)
        if (row[place] > last) last = row[place];
    return last;
}

static bool repeats(const int64_t *ends, uint32_t places, uint32_t steps, uint32_t cycle)
{
    const int64_t *now = &ends[(uint64_t)steps * places];
    const int64_t *before = &ends[(uint64_t)(steps - cycle) * places];
    const int64_t *first = &ends[(uint64_t)(steps - 2 * cycle) * places];
    int64_t const length = now[0] - before[0];
    for (uint32_t place = 0; place < places; place++)
        if (now[place] - before[place] != length || before[place] - first[place] != length)
            return false;
    return true;
}

bool period_find(const int64_t *ends, uint32_t places, uint32_t steps, struct period *ret_period)
{
    for (uint32_t cycle = 1; 2 * cycle <= steps; cycle++) {
        if (!repeats(ends, places, steps, cycle)) continue;
        int64_t const length =
            ends[(uint64_t)steps * places] - ends[(uint64_t)(steps - cycle) * places];
        *ret_period = (struct period){.time = length / cycle, .steps = steps, .cycle = cycle};
        return true;
    }
    return false;
}

struct period period_of(const int64_t *ends, uint32_t places, uint32_t steps)
{
    struct period period = {.steps = steps};
    SIM_ASSERT(places > 0 && steps > 0);
    if (period_find(ends, places, steps, &period)) return period;
    uint32_t const from = steps / 2;
    int64_t longest = 0, shortest = INT64_MAX;
    period.time =
        (last_end(ends, places, steps) - last_end(ends, places, from)) / (int64_t)(steps - from);
    for (uint32_t step = steps > 1 ? steps - 1 : 1; step <= steps; step++)
        for (uint32_t place = 0; place < places; place++) {
            int64_t const length =
                ends[(uint64_t)step * places + place] - ends[(uint64_t)(step - 1) * places + place];
            longest = length > longest ? length : longest;
            shortest = length < shortest ? length : shortest;
        }
    period.spread = longest - shortest;
    return period;
}
