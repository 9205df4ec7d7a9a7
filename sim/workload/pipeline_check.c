/* What pipelines cannot have. */
#include "sim/workload/pipeline.h"

enum status pipeline_check(const struct local *local, struct error *reterr)
{
    STATUS_TRY(mesh_stages_check(local->mesh, reterr));
    if (local->mesh->axis[MESH_PP].group.dimension_count > 1 && local->copies > 1)
        return error_set(reterr, STATUS_UNSUPPORTED, "/mesh/pp",
                         "stages over two axes of the machine are not modelled for schedules that "
                         "lay each stage on two ranks; name one axis or a part of one");
    if (local->plan->offload != WORKLOAD_OFFLOAD_NONE)
        return error_set(reterr, STATUS_UNSUPPORTED, "/workload/offload",
                         "nothing is offloaded from pipeline stages in this version");
    return STATUS_OK;
}

enum status pipeline_schedule_check(const struct local *local, const struct schedule *schedule,
                                    uint32_t twin_rank, struct error *reterr)
{
    bool const last = twin_rank == schedule->rank_count - 1;
    bool const ends = schedule_rank_of(schedule, 0, 0) == 0 && schedule->copy_count == 1;
    if (!local->twins || (ends && (last || (local->twin_reads && twin_rank != 0))))
        return STATUS_OK;
    if (local->twin_reads)
        return error_set(
            reterr, STATUS_UNSUPPORTED, "/workload/mtp",
            "multi-token prediction needs the embedding on its own stage too, which is "
            "modelled with 1f1b, interleaved, looped-bfs and others with the first "
            "stage on the first rank and \"m\" on another; and where \"m\" and \"L\" "
            "share that rank, as in dualpipev; \"mtp\": false trains %s without",
            local->plan->model.name);
    return error_set(reterr, STATUS_UNSUPPORTED, "/workload/schedule",
                     "%s ties its embedding to its head, which is modelled where they lie on the "
                     "first and last rank, as in 1f1b, interleaved or looped-bfs, but not as "
                     "in %s",
                     local->plan->model.name, schedule->name);
}
