/* The largest batch that fits on a curve of `podsim pareto`: not only among those of its points. */
#include "sim/base/arena.h"
#include "tools/podsim/common/room.h"
#include "tools/podsim/pareto/pareto.h"

static void known_add(const struct pareto_point *point, struct room_known *known)
{
    known->held[known->count++] =
        (struct batch_held){point->batch, point->memory_bytes, point->memory_is_peak};
}

/* What the curve's points hold: the first that could be, and those around the wall, of which the
 * last is returned; NULL: none could be. */
static const struct pareto_point *known_find(const struct pareto *pareto,
                                             const struct pareto_curve *curve,
                                             struct room_known *ret_known)
{
    const struct pareto_point *first = NULL, *low = NULL, *high = NULL;
    *ret_known = (struct room_known){.count = 0};
    for (uint32_t b = 0; b < pareto->batch_count && high == NULL; b++) {
        const struct pareto_point *point = &curve->point[b];
        if (point->state == PARETO_REFUSED) continue;
        if (first == NULL) first = point;
        if (point->memory_bytes <= (double)curve->hbm_bytes)
            low = point;
        else
            high = point;
    }
    if (first != NULL) known_add(first, ret_known);
    if (high != NULL && high != first) known_add(high, ret_known);
    if (low != NULL && low != first) known_add(low, ret_known);
    return low != NULL ? low : first;
}

/* Of a step that is built as that of the point. */
static enum status largest_find(const struct pareto *pareto, struct session *session,
                                const struct room_known *known, struct report_largest *ret_largest,
                                struct error *reterr)
{
    const struct workload_plan *plan = &session->scenario.workload;
    STATUS_TRY(
        roofline_train_step(plan, &session->machine, &session->mesh, &session->roofline, reterr));
    return room_find_largest(session, known, pareto->worker, ret_largest, reterr);
}

/* With buffers that stay as large as they are. */
static uint64_t room_of_unfit(const struct session *session, const struct pareto_point *point)
{
    return inference_room(&session->machine, &session->roofline, point->memory_bytes).least;
}

enum status pareto_find_wall(struct pareto *pareto, struct pareto_curve *curve,
                             struct error *reterr)
{
    struct room_known known;
    const struct pareto_point *const point = known_find(pareto, curve, &known);
    struct report_largest largest = {.is = false};
    struct session session;
    if (point == NULL) return STATUS_OK;
    enum status status = session_batch_build(&curve->whole, point->batch, true, &session, reterr);
    if (status == STATUS_OK) status = largest_find(pareto, &session, &known, &largest, reterr);
    curve->wall = largest.is                      ? largest.batch
                  : point->state == PARETO_PLAYED ? point->room
                                                  : room_of_unfit(&session, point);
    if (status == STATUS_OK && largest.refused.batch != 0) {
        curve->refused = largest.refused;
        curve->refused.reason = arena_text(pareto->arena, largest.refused.reason);
        if (curve->refused.reason == NULL) status = error_no_memory(reterr, "");
    }
    session_close(&session);
    curve->wall_is_estimate = !largest.is || largest.is_estimate;
    return status;
}
