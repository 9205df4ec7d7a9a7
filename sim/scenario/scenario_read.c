/*
 * scenario_read.c: a scenario file as a whole.
 */
#include "sim/base/arena.h"
#include "sim/base/json.h"
#include "sim/base/path.h"
#include "sim/scenario/key.h"
#include "sim/scenario/scenario_parts.h"

/* Of pipelines, and where a step ends in the next one. Nearly all repeat after three steps. */
enum { STEPS_DEFAULT = 8 };

/* Members that scenarios and programs' texts have alike. */
struct parts {
    struct json *machine, *mesh, *workload, *run;
};

static enum status parts_take(struct json *document, const char *const *known, struct parts *parts,
                              struct scenario *scenario, struct error *reterr)
{
    struct json *version = NULL;
    int64_t ignored = 0;
    STATUS_TRY(json_need(document, "podsim", &version, reterr));
    STATUS_TRY(json_as_integer(version, 1, 1, &ignored, reterr));
    STATUS_TRY(scenario_take_text(document, "title", &scenario->title, reterr));
    STATUS_TRY(scenario_take_text(document, "question", &scenario->question, reterr));
    parts->mesh = json_take(document, "mesh");
    parts->run = json_take(document, "run");
    (void)json_take(document, "machine");
    if (parts->workload != NULL) parts->workload = json_take(document, "workload");
    STATUS_TRY(json_end(document, known, reterr)); /* A misspelt key before a missing one. */
    return json_need(document, "machine", &parts->machine, reterr);
}

static bool is_staged(const struct mesh_plan *mesh)
{
    for (uint32_t i = 0; i < mesh->axis_count; i++)
        if (mesh->axis[i].role == MESH_PP) return true;
    return false;
}

static void steps_default(struct scenario *scenario)
{
    bool const overlaps = scenario->workload.parameter_gather == WORKLOAD_PARAMETERS_NEXT_STEP;
    if (scenario->run.steps != 0) return;
    scenario->run.steps = is_staged(&scenario->mesh) || overlaps ? STEPS_DEFAULT : 1;
}

static enum status document_read(struct arena *arena, struct json *document,
                                 const char *base_folder, struct scenario *ret_scenario,
                                 struct error *reterr)
{
    static const char *const known[] = {"podsim", "title",    "question", "machine",
                                        "mesh",   "workload", "run",      NULL};
    struct scenario scenario = {.title = "untitled", .question = ""};
    struct parts parts = {.workload = document};
    STATUS_TRY(parts_take(document, known, &parts, &scenario, reterr));
    STATUS_TRY(json_need(document, "workload", &parts.workload, reterr));
    STATUS_TRY(scenario_machine_read(arena, parts.machine, base_folder, &scenario.machine, reterr));
    if (parts.mesh != NULL) STATUS_TRY(scenario_mesh_read(parts.mesh, &scenario.mesh, reterr));
    struct key_reader reader = {arena, base_folder, parts.workload, &scenario};
    STATUS_TRY(keys_read(workload_keys, &reader, reterr));
    reader.object = parts.run;
    STATUS_TRY(keys_read(run_keys, &reader, reterr));
    steps_default(&scenario);
    *ret_scenario = scenario;
    return STATUS_OK;
}

/* Whatever of `run` shaped the program is read and printed again, and shapes nothing any more. */
static enum status program_document_read(struct arena *arena, struct json *document,
                                         struct scenario *ret_scenario, struct error *reterr)
{
    static const char *const known[] = {"podsim", "title", "question", "machine",
                                        "mesh",   "run",   NULL};
    struct scenario scenario = {.title = "untitled", .question = ""};
    struct parts parts = {.workload = NULL};
    STATUS_TRY(parts_take(document, known, &parts, &scenario, reterr));
    STATUS_TRY(scenario_machine_read(arena, parts.machine, NULL, &scenario.machine, reterr));
    if (parts.mesh != NULL) STATUS_TRY(scenario_mesh_read(parts.mesh, &scenario.mesh, reterr));
    if (parts.run != NULL) {
        STATUS_TRY(json_as_object(parts.run, reterr));
        /* Only ZeRO-1 and 2 have it, so it says that the step was one of these. */
        scenario.workload.zero = json_take(parts.run, "parameter_gather") != NULL;
    }
    struct key_reader const reader = {arena, NULL, parts.run, &scenario};
    STATUS_TRY(keys_read(run_keys, &reader, reterr));
    steps_default(&scenario);
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

static enum status text_parse(struct arena *arena, const char *name, const char *text,
                              uint64_t text_bytes, const struct scenario_setting *settings,
                              uint32_t setting_count, struct json **ret_document,
                              struct error *reterr)
{
    STATUS_TRY(json_read_text(arena, name, text, text_bytes, ret_document, reterr));
    return settings_apply(*ret_document, settings, setting_count, reterr);
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
    STATUS_TRY(
        text_parse(arena, name, text, text_bytes, settings, setting_count, &document, reterr));
    return document_read(arena, document, NULL, ret_scenario, reterr);
}

enum status scenario_read_of_program(struct arena *arena, const char *name, const char *text,
                                     uint64_t text_bytes, const struct scenario_setting *settings,
                                     uint32_t setting_count, struct scenario *ret_scenario,
                                     struct error *reterr)
{
    struct json *document = NULL;
    STATUS_TRY(
        text_parse(arena, name, text, text_bytes, settings, setting_count, &document, reterr));
    return program_document_read(arena, document, ret_scenario, reterr);
}
