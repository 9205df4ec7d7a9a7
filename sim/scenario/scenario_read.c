/*
 * scenario_read.c: a scenario file as a whole.
 */
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/json.h"
#include "sim/base/path.h"
#include "sim/scenario/scenario_parts.h"

/* Of pipelines, and where a step ends in the next one. Nearly all repeat after three steps. */
enum { STEPS_DEFAULT = 8 };

/* Titles go to terminals and into timelines as they are. */
static enum status line_read(struct json *object, const char *key, const char **value,
                             struct error *reterr)
{
    STATUS_TRY(scenario_take_text(object, key, value, reterr));
    for (const char *c = *value; *c != '\0'; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            return error_set(reterr, STATUS_INVALID, json_where(json_take(object, key)),
                             "holds a control character; it must be one line of text");
    return STATUS_OK;
}

static enum status document_read(struct arena *arena, struct json *document,
                                 const char *base_folder, struct scenario *ret_scenario,
                                 struct error *reterr)
{
    static const char *const known[] = {"podsim", "title",    "question", "machine",
                                        "mesh",   "workload", "run",      NULL};
    struct scenario scenario = {.title = "untitled", .question = ""};
    struct json *version = NULL, *machine = NULL, *workload = NULL;
    int64_t ignored = 0;
    STATUS_TRY(json_need(document, "podsim", &version, reterr));
    STATUS_TRY(json_as_integer(version, 1, 1, &ignored, reterr));
    STATUS_TRY(line_read(document, "title", &scenario.title, reterr));
    STATUS_TRY(line_read(document, "question", &scenario.question, reterr));
    struct json *mesh = json_take(document, "mesh");
    struct json *run = json_take(document, "run");
    (void)json_take(document, "machine");
    (void)json_take(document, "workload");
    STATUS_TRY(json_end(document, known, reterr)); /* A misspelt key before a missing one. */
    STATUS_TRY(json_need(document, "machine", &machine, reterr));
    STATUS_TRY(json_need(document, "workload", &workload, reterr));
    STATUS_TRY(scenario_machine_read(arena, machine, base_folder, &scenario.machine, reterr));
    if (mesh != NULL) STATUS_TRY(scenario_mesh_read(mesh, &scenario.mesh, reterr));
    STATUS_TRY(scenario_workload_read(arena, workload, base_folder, &scenario.workload, reterr));
    bool staged = false;
    for (uint32_t i = 0; i < scenario.mesh.axis_count; i++)
        staged = staged || scenario.mesh.axis[i].role == MESH_PP;
    STATUS_TRY(scenario_run_read(run, &scenario.run, &scenario.workload, reterr));
    bool const overlaps = scenario.workload.parameter_gather == WORKLOAD_PARAMETERS_NEXT_STEP;
    if (scenario.run.steps == 0) scenario.run.steps = staged || overlaps ? STEPS_DEFAULT : 1;
    *ret_scenario = scenario;
    return STATUS_OK;
}

static enum status settings_apply(struct json *document, const struct scenario_setting *settings,
                                  uint32_t setting_count, struct error *reterr)
{
    for (uint32_t i = 0; i < setting_count; i++)
        STATUS_TRY(json_set(document, settings[i].text, reterr));
    return STATUS_OK;
}

enum status scenario_read(struct arena *arena, const char *path,
                          const struct scenario_setting *settings, uint32_t setting_count,
                          struct scenario *ret_scenario, struct error *reterr)
{
    struct json *document = NULL;
    const char *folder = NULL;
    STATUS_TRY(path_folder(arena, path, &folder, reterr));
    STATUS_TRY(json_read_file(arena, path, &document, reterr));
    STATUS_TRY(settings_apply(document, settings, setting_count, reterr));
    return document_read(arena, document, folder, ret_scenario, reterr);
}

enum status scenario_read_text(struct arena *arena, const char *name, const char *text,
                               uint64_t text_bytes, const struct scenario_setting *settings,
                               uint32_t setting_count, struct scenario *ret_scenario,
                               struct error *reterr)
{
    struct json *document = NULL;
    STATUS_TRY(json_read_text(arena, name, text, text_bytes, &document, reterr));
    STATUS_TRY(settings_apply(document, settings, setting_count, reterr));
    return document_read(arena, document, NULL, ret_scenario, reterr);
}
