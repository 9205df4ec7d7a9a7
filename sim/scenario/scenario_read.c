/*
 * scenario_read.c: a scenario file as a whole.
 */
#include "sim/base/arena.h"
#include "sim/base/json.h"
#include "sim/base/path.h"
#include "sim/scenario/preset.h"
#include "sim/scenario/scenario_parts.h"

/* Of pipelines, and where a step ends in the next one. Nearly all repeat after three steps. */
enum { STEPS_DEFAULT = 8 };

#define ROW(...) KEY_ROW(struct scenario, __VA_ARGS__)
#define KEYS_OF_BOTH                                                                               \
    ROW("podsim", key_integer, version, .needed = true, .least = 1, .most = 1,                     \
        .help = "version of the format"),                                                          \
        ROW("title", key_text, title, .word = "untitled", .values.words = "text",                  \
            .help = "the name of the run in reports"),                                             \
        ROW("question", key_text, question, .word = "", .values.words = "text",                    \
            .preset_text = "empty", .help = "the question that the scenario answers"),             \
        ROW("machine", key_object, machine, .needed = true, .members = machine_keys,               \
            .values.words = "an [object](#machine)",                                               \
            .values.example = "{\"chip\": \"tpu-v5p\", \"shape\": \"4x4x4\"}",                     \
            .help = "chips, links and switches"),                                                  \
        ROW("mesh", mesh_kind, mesh, .members = mesh_keys, .values.words = "an [object](#mesh)",   \
            .values.example = "{\"fsdp\": [\"x\", \"y\"]}", .preset_text = "no axes",              \
            .help = "mesh axes on axes of the machine")

/* Fields of both lie in the scenario itself. */
#define RUN_KEY                                                                                    \
    KEY("run", key_object, .members = run_keys, .values.words = "an [object](#run)",               \
        .values.example = "{\"seed\": 2}", .preset_text = "its keys'",                             \
        .help = "how it is simulated")

const struct key scenario_keys[] = {
    KEYS_OF_BOTH,
    ROW("preset", key_text, preset, .quiet = true,
        .values.words = "a name of `podsim list presets`", .preset_text = "none",
        .help = "what a framework does: its keys stand in for those that the scenario leaves out "
                "([below](#presets))"),
    KEY("workload", key_variants, .needed = true, .members = workload_kinds,
        .values.words = "an [object](#workload)",
        .values.example =
            "{\"kind\": \"decode\", \"model\": \"llama-3-8b\", \"batch\": 8, \"context\": "
            "4096}",
        .help = "what is computed"),
    RUN_KEY,
    {0},
};

const struct key program_keys[] = {KEYS_OF_BOTH, RUN_KEY, {0}};

static void steps_default(struct scenario *scenario)
{
    bool const overlaps = scenario->workload.parameter_gather == WORKLOAD_PARAMETERS_NEXT_STEP;
    if (scenario->run.steps != 0) return;
    scenario->run.steps = mesh_plan_has(&scenario->mesh, MESH_PP) || overlaps ? STEPS_DEFAULT : 1;
}

/* Reads `keys` into the scenario that the reader's `whole` is, and fills in what follows from the
 * mesh. */
static enum status scenario_keys_read(const struct key *keys, const struct key_reader *reader,
                                      struct scenario *scenario, struct error *reterr)
{
    STATUS_TRY(keys_read(keys, reader, reterr));
    steps_default(scenario);
    return STATUS_OK;
}

static enum status document_read(struct arena *arena, struct json *document,
                                 const char *base_folder, struct scenario *ret_scenario,
                                 struct error *reterr)
{
    struct scenario scenario = {.version = 0};
    void *memory = NULL;
    STATUS_TRY(arena_try(arena, 1, sizeof(struct preset_filled), &memory, reterr));
    struct preset_filled *const filled = memory;
    struct key_reader const reader = {.arena = arena,
                                      .base_folder = base_folder,
                                      .object = document,
                                      .whole = &scenario,
                                      .base = &scenario,
                                      .document = scenario_keys};
    STATUS_TRY(scenario_overlap_refuse(document, reterr));
    STATUS_TRY(preset_apply(arena, document, base_folder, filled, reterr));
    STATUS_TRY(scenario_keys_read(scenario_keys, &reader, &scenario, reterr));
    STATUS_TRY(scenario_lengths_build(arena, &scenario, reterr));
    scenario.lacking_stack = filled->lacking_stack;
    scenario.filled = filled;
    *ret_scenario = scenario;
    return STATUS_OK;
}

/* Whatever of `run` shaped the program is read and printed again, and shapes nothing any more. */
static enum status program_document_read(struct arena *arena, struct json *document,
                                         struct scenario *ret_scenario, struct error *reterr)
{
    struct scenario scenario = {.version = 0};
    struct key_reader const reader = {.arena = arena,
                                      .object = document,
                                      .whole = &scenario,
                                      .base = &scenario,
                                      .document = program_keys};
    STATUS_TRY(json_as_object(document, reterr));
    STATUS_TRY(scenario_overlap_move(document, reterr));
    struct json *run = json_take(document, "run");
    /* Only ZeRO-1 and 2 have it, so it says that the step was one of these. */
    if (run != NULL && json_kind(run) == JSON_OBJECT)
        scenario.workload.zero = json_take(run, "parameter_gather") != NULL;
    STATUS_TRY(scenario_keys_read(program_keys, &reader, &scenario, reterr));
    STATUS_TRY(scenario_algorithm_check(&scenario, reterr));
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
