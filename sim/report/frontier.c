#include "sim/report/frontier.h"

static bool beats(const struct frontier_point *one, const struct frontier_point *other)
{
    return one->is && one->latency_s <= other->latency_s && one->rate >= other->rate &&
           (one->latency_s < other->latency_s || one->rate > other->rate);
}

void frontier_mark(const struct frontier_point *points, uint32_t count, bool *ret_on)
{
    for (uint32_t i = 0; i < count; i++) {
        ret_on[i] = points[i].is;
        for (uint32_t k = 0; k < count && ret_on[i]; k++)
            ret_on[i] = !beats(&points[k], &points[i]);
    }
}

uint32_t frontier_knee(const struct frontier_point *points, uint32_t count)
{
    uint32_t knee = frontier_none;
    for (uint32_t i = 0; i < count; i++) {
        if (!points[i].is) continue;
        if (knee == frontier_none ||
            points[i].rate * points[knee].latency_s > points[knee].rate * points[i].latency_s)
            knee = i;
    }
    return knee;
}
