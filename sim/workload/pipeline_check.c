/* What pipelines cannot have. */
#include "sim/workload/pipeline.h"

enum status pipeline_check(const struct local *local, struct error *reterr)
{
    uint32_t parts = 0;
    for (uint32_t i = 0; i < local->mesh->axis[MESH_PP].part_count; i++)
        parts += local->mesh->axis[MESH_PP].part[i].size > 1;
    if (parts != 1)
        return error_set(reterr, STATUS_UNSUPPORTED, "/mesh/pp",
                         "stages over %u axes of the machine are not modelled; name one axis or a "
                         "part of one",
                         parts);
    if (local->plan->offload != WORKLOAD_OFFLOAD_NONE)
        return error_set(reterr, STATUS_UNSUPPORTED, "/workload/offload",
                         "nothing is offloaded from pipeline stages in this version");
    return STATUS_OK;
}

enum status pipeline_schedule_check(const struct local *local, const struct schedule *schedule,
                                    struct error *reterr)
{
    uint32_t const last = schedule->stage_count - 1;
    bool const ends = schedule->copy_count == 1 && schedule_rank_of(schedule, 0, 0) == 0 &&
                      schedule_rank_of(schedule, last, 0) == schedule->rank_count - 1;
    if (!local->twins || ends) return STATUS_OK;
    if (local->twin_reads)
        return error_set(reterr, STATUS_UNSUPPORTED, "/workload/mtp",
                         "multi-token prediction needs the embedding on the last stage too, which "
                         "is modelled where the first and the last stage share a rank, as in "
                         "dualpipev, or lie on the first and the last one, as in 1f1b, but not as "
                         "in %s; \"mtp\": false trains %s without",
                         schedule->name, local->plan->model.name);
    return error_set(reterr, STATUS_UNSUPPORTED, "/workload/schedule",
                     "%s ties its embedding to its head, which is modelled where they lie on the "
                     "first and last rank, as in 1f1b, interleaved or looped-bfs, but not as "
                     "in %s",
                     local->plan->model.name, schedule->name);
}
