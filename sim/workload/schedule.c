/* The schedule of a training step's pipeline. */
#include "sim/schedule/schedule.h"

#include "sim/base/arena.h"
#include "sim/base/units.h"
#include "sim/schedule/schedule_traffic.h"
#include "sim/workload/schedule_times.h"
#include "sim/workload/workload.h"

static const char where[] = "/workload/schedule";

static enum status given_check(const struct workload_plan *plan, uint32_t ranks,
                               struct error *reterr)
{
    const struct schedule *given = plan->schedule_given;
    if (given->rank_count != ranks)
        return error_set(reterr, STATUS_INVALID, where,
                         "%s has %u ranks, where the mesh has %u of pp", given->name,
                         given->rank_count, ranks);
    if (given->microbatch_count != plan->accumulate)
        return error_set(reterr, STATUS_INVALID, where,
                         "%s has %u microbatches, where \"accumulate\" is %u", given->name,
                         given->microbatch_count, plan->accumulate);
    return STATUS_OK;
}

/* When weights are gathered, unless each pass does or the file says. */
static enum status gathers_add(struct arena *arena, const struct workload_plan *plan,
                               struct schedule *schedule, struct error *reterr)
{
    if (schedule->has_gathers || plan->regather == WORKLOAD_REGATHER_MICROBATCH) return STATUS_OK;
    if (plan->regather == WORKLOAD_REGATHER_STEP)
        return schedule_gather_once(arena, schedule, reterr);
    return schedule_gather_ahead(arena, schedule, SCHEDULE_STAGES_KEPT, reterr);
}

/* The plan's, by its name in the catalogue. */
static enum status form_of(const struct workload_plan *plan, const struct schedule_form **ret_form,
                           uint32_t *ret_chunks, struct error *reterr)
{
    const char *name = plan->schedule == NULL ? WORKLOAD_SCHEDULE_DEFAULT : plan->schedule;
    return schedule_form_parse(name, where, ret_form, ret_chunks, reterr);
}

enum status workload_schedule(struct arena *arena, const struct workload_plan *plan,
                              const struct machine *machine, const struct mesh *mesh,
                              struct schedule *ret_schedule, struct error *reterr)
{
    const struct schedule_form *form = NULL;
    struct schedule_request request = {.rank_count = mesh->axis[MESH_PP].size,
                                       .microbatch_count = plan->accumulate,
                                       .held_max = plan->schedule_held_max,
                                       .kept_ppm = PPM_ONE / 2,
                                       .watch = plan->watch};
    if (plan->schedule_given != NULL) {
        STATUS_TRY(given_check(plan, request.rank_count, reterr));
        *ret_schedule = *plan->schedule_given;
    } else {
        STATUS_TRY(form_of(plan, &form, &request.chunk_count, reterr));
        if (form->heeds_times)
            STATUS_TRY(schedule_times_estimate(arena, plan, machine, mesh, &request.times, reterr));
        STATUS_TRY(schedule_build(arena, form, &request, where, ret_schedule, reterr));
    }
    return gathers_add(arena, plan, ret_schedule, reterr);
}

/* Of a file, which may lay stages anywhere. */
static uint32_t given_borders(const struct schedule *given)
{
    uint32_t most = 0;
    for (uint32_t rank = 0; rank + 1 < given->rank_count; rank++) {
        uint32_t borders = 0;
        for (uint32_t s = 0; s + 1 < given->stage_count; s++) {
            uint32_t const one = given->rank_of[s], other = given->rank_of[s + 1];
            borders += (one == rank && other == rank + 1) || (one == rank + 1 && other == rank);
        }
        most = borders > most ? borders : most;
    }
    return most;
}

uint32_t workload_borders(const struct workload_plan *plan, uint32_t ranks)
{
    const struct schedule_form *form = NULL;
    uint32_t chunks = 0;
    struct error unused;
    if (ranks == 1) return 0;
    if (plan->schedule_given != NULL) return given_borders(plan->schedule_given);
    if (plan->schedule == NULL ||
        schedule_form_parse(plan->schedule, where, &form, &chunks, &unused) != STATUS_OK)
        return 1;  /* "1f1b"; or it is refused where it is built. */
    return chunks; /* Round the ranks, or down and up again: as many as a rank has stages. */
}

uint32_t workload_copies(const struct workload_plan *plan, uint32_t ranks)
{
    const struct schedule_form *form = NULL;
    uint32_t chunks = 0;
    struct error unused;
    if (ranks == 1) return 1;
    if (plan->schedule_given != NULL) return plan->schedule_given->copy_count;
    if (form_of(plan, &form, &chunks, &unused) != STATUS_OK) return 1; /* Refused where built. */
    return form->copies;
}

bool workload_ends_meet(const struct workload_plan *plan, uint32_t ranks)
{
    const struct schedule *given = plan->schedule_given;
    const struct schedule_form *form = NULL;
    uint32_t chunks = 0;
    struct error unused;
    if (ranks == 1) return true;
    if (given != NULL) {
        const uint16_t *last = &given->rank_of[given->stage_count - 1];
        if (given->copy_count == 1) return given->rank_of[0] == *last;
        return given->rank_of[0] == last[given->stage_count] &&
               given->rank_of[given->stage_count] == *last;
    }
    if (form_of(plan, &form, &chunks, &unused) != STATUS_OK) return false; /* As above. */
    return form->from_both_ends || form->copies == 2;
}
