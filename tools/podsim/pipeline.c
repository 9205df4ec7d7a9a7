#include "tools/podsim/pipeline.h"

#include "sim/base/arena.h"

void pipeline_source_read(const struct options *options, const char *path,
                          struct pipeline_source *ret_source)
{
    *ret_source = (struct pipeline_source){.path = path, .full = options_has(options, "--full")};
    const char *text = NULL;
    while ((text = options_value_at(options, "--set", ret_source->setting_count)) != NULL)
        ret_source->settings[ret_source->setting_count++].text = text;
}

static enum status scenario_build(struct pipeline *pipeline, const struct pipeline_source *source,
                                  struct error *reterr)
{
    if (source->text == NULL)
        return scenario_read(pipeline->arena, source->path, source->settings, source->setting_count,
                             &pipeline->scenario, reterr);
    return scenario_read_text(pipeline->arena, source->path, source->text, source->text_bytes,
                              source->settings, source->setting_count, &pipeline->scenario, reterr);
}

enum status pipeline_build(struct pipeline *pipeline, const struct pipeline_source *source,
                           enum pipeline_stage stage, struct error *reterr)
{
    *pipeline = (struct pipeline){.arena = arena_create(0)};
    struct scenario *scenario = &pipeline->scenario;
    if (pipeline->arena == NULL)
        return error_set(reterr, STATUS_NO_MEMORY, "", "there is no memory to begin with");
    STATUS_TRY(scenario_build(pipeline, source, reterr));
    if (source->schedule != NULL) scenario->workload.schedule_given = source->schedule;
    if (stage < PIPELINE_MACHINE) return STATUS_OK;
    STATUS_TRY(machine_build(pipeline->arena, &scenario->machine, &pipeline->machine, reterr));
    if (stage < PIPELINE_MESH) return STATUS_OK;
    STATUS_TRY(
        mesh_build(pipeline->arena, &scenario->mesh, &pipeline->machine, &pipeline->mesh, reterr));
    if (stage < PIPELINE_PROGRAM) return STATUS_OK;
    STATUS_TRY(workload_lower(pipeline->arena, &scenario->workload, &pipeline->machine,
                              &pipeline->mesh, &pipeline->program, reterr));
    roofline_train_step(&scenario->workload, &pipeline->machine, &pipeline->mesh,
                        &pipeline->roofline);
    return STATUS_OK;
}

void pipeline_close(struct pipeline *pipeline)
{
    arena_destroy(pipeline->arena);
    *pipeline = (struct pipeline){0};
}
