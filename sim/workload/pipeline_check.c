/* What pipelines cannot have. */
#include "sim/workload/pipeline.h"

enum status pipeline_check(const struct local *local, struct error *reterr)
{
    const struct group *group = &local->mesh->axis[MESH_PP].group;
    bool nested = group->dimension_count == 2;
    for (uint32_t d = 0; d < group->dimension_count; d++)
        nested = nested && group->dimension[d].switched;
    if (group->dimension_count > 1 && !nested)
        return error_set(reterr, STATUS_UNSUPPORTED, "/mesh/pp",
                         "stages over %u axes of the machine are modelled on two levels of "
                         "switches, such as [\"node\", \"gpu:4\"]; else name one axis or a part of "
                         "one",
                         group->dimension_count);
    if (nested && group->dimension[0].axis < group->dimension[1].axis)
        return error_set(reterr, STATUS_UNSUPPORTED, "/mesh/pp",
                         "stages that follow each other lie next to each other: the outer level "
                         "is named first, %s and then %s",
                         group->dimension[1].name, group->dimension[0].name);
    if (nested && local->copies > 1)
        return error_set(reterr, STATUS_UNSUPPORTED, "/mesh/pp",
                         "stages over two axes of the machine are not modelled for schedules that "
                         "lay each stage on two ranks; name one axis or a part of one");
    for (uint32_t i = 0; i < local->mesh->axis[MESH_PP].part_count; i++) {
        const struct mesh_part *part = &local->mesh->axis[MESH_PP].part[i];
        if (part->size == 1 || !machine_is_meshed(local->machine, part->axis)) continue;
        return error_set(reterr, STATUS_UNSUPPORTED, "/mesh/pp",
                         "a stage that sends to the next has one of its links along %s (no switch "
                         "joins the GPUs of %s), which is not modelled; put pp on \"node\"",
                         machine_axis_name(local->machine, part->axis), local->machine->chip.title);
    }
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
