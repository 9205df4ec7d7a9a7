/* The largest batch that fits on a curve of `podsim pareto`: not only among those of its points. */
#include <math.h>

#include "tools/podsim/common/largest_batch.h"
#include "tools/podsim/common/worker.h"
#include "tools/podsim/pareto/pareto.h"

struct wall {
    struct pareto *pareto;
    struct pareto_curve *curve;
};

static enum status held_find(void *owner, double hbm_bytes, bool plays, struct batch_held *held,
                             struct error *reterr)
{
    const struct wall *wall = owner;
    struct pareto_point point = {.batch = (uint32_t)held->batch};
    SIM_ASSERT(hbm_bytes == (double)wall->curve->hbm_bytes); /* By which points are played. */
    STATUS_TRY(worker_check(wall->pareto->worker, reterr));
    STATUS_TRY(pareto_take(wall->pareto, wall->curve, &point, plays, reterr));
    held->bytes = point.state == PARETO_REFUSED ? INFINITY : point.memory_bytes;
    held->is_peak = point.memory_is_peak;
    return STATUS_OK;
}

/* From what the curve's points hold: the first that fits, and those around the wall. */
enum status pareto_find_wall(struct pareto *pareto, struct pareto_curve *curve,
                             struct error *reterr)
{
    struct wall wall = {.pareto = pareto, .curve = curve};
    struct largest_batch search = {.held_find = held_find, .owner = &wall};
    struct batch_held low = {.batch = 0};
    for (uint32_t b = 0; b < pareto->batch_count; b++) {
        const struct pareto_point *point = &curve->point[b];
        struct batch_held const held = {point->batch, point->memory_bytes, point->memory_is_peak};
        if (point->state == PARETO_REFUSED) continue;
        bool const fits = held.bytes <= (double)curve->hbm_bytes;
        if (!fits || search.known_count == 0) largest_batch_add(&search, &held);
        if (!fits) break;
        low = held;
    }
    if (low.batch != 0) largest_batch_add(&search, &low);
    return largest_batch_find(&search, (double)curve->hbm_bytes, 0, &curve->wall, reterr);
}
