/*
 * cmd_import.c: a scenario out of a training framework's own configuration.
 */
#include <stdio.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/json.h"
#include "sim/base/name.h"
#include "sim/base/strbuf.h"
#include "sim/scenario/scenario.h"
#include "tools/podsim/common/command.h"
#include "tools/podsim/common/input.h"
#include "tools/podsim/common/output.h"
#include "tools/podsim/common/report.h"
#include "tools/podsim/common/session.h"
#include "tools/podsim/import/import.h"

enum { FLAT_DEPTH = 3, COLUMNS = 80, ARENA_BYTES_MAX = 1 << 30 };

static const struct option import_options[] = {
    {"-o", "SCENARIO.json", "where the scenario goes (standard output)", false},
    {"--machine", "SPEC", "h100-sxm:nodes=16, tpu-v5p:8x8x8, FILE.json", false},
    {"--profile", "NAME", "of the chip: measured (if left out) or ideal", false},
    {"--model", "NAME", "instead of the file's: a model, or a config.json", false},
    {"--with", "KEY=VALUE", "as if it stood behind the file's last line", true},
    {0},
};

static enum status machine_read(const struct options *options, struct import *import,
                                struct error *reterr)
{
    const char *profile = options_value(options, "--profile");
    struct machine_plan plan;
    char setting[64];
    import->machine_text = options_value(options, "--machine");
    if (import->machine_text == NULL)
        return error_set(reterr, STATUS_INVALID, "--machine",
                         "is missing, as the file does not say what it runs on; for example "
                         "--machine h100-sxm:nodes=16, or --machine tpu-v5p:8x8x8");
    STATUS_TRY(scenario_machine_json(import->arena, import->machine_text, "--machine",
                                     &import->machine_json, reterr));
    STATUS_TRY(
        scenario_machine_parse(import->arena, import->machine_text, "--machine", &plan, reterr));
    bool const is_said = json_take(import->machine_json, "profile") != NULL;
    if (profile == NULL && !is_said) profile = "measured";
    if (profile != NULL) {
        (void)snprintf(setting, sizeof setting, "/profile=\"%.40s\"", profile);
        STATUS_TRY(json_set(import->machine_json, setting, reterr));
        plan.profile = profile;
    }
    import->is_ideal = name_same(plan.profile, "ideal");
    return machine_build(import->arena, &plan, &import->machine, reterr);
}

/* Each `--with KEY=VALUE`. */
static enum status given_read(const struct options *options, struct import_file *file,
                              struct error *reterr)
{
    const char *text = NULL;
    while ((text = options_value_at(options, "--with", file->given_count)) != NULL) {
        const char *equals = strchr(text, '=');
        if (equals == NULL || equals == text)
            return error_set(reterr, STATUS_INVALID, "--with",
                             "\"%.80s\" is not KEY=VALUE, such as --with NNODES=4", text);
        if (file->given_count == IMPORT_GIVEN_MAX)
            return error_set(reterr, STATUS_LIMIT, "--with", "more than %d of them",
                             IMPORT_GIVEN_MAX);
        struct import_given *given = &file->given[file->given_count++];
        given->key = arena_format(file->arena, "%.*s", (int)(equals - text), text);
        given->value = equals + 1;
        if (given->key == NULL) return error_set(reterr, STATUS_NO_MEMORY, "", "no memory");
    }
    return STATUS_OK;
}

/* Those that no variable has taken are settings. */
static enum status given_add(struct import_file *file, struct error *reterr)
{
    for (uint32_t i = 0; i < file->given_count; i++) {
        const struct import_given *given = &file->given[i];
        struct import_setting const setting = {
            .key = given->key, .value = given->value, .form = IMPORT_TEXT};
        if (!given->is_taken) STATUS_TRY(settings_add(file, &setting, reterr));
    }
    return STATUS_OK;
}

static enum status file_read(struct import_file *file, const struct import_framework *framework,
                             struct error *reterr)
{
    char *text = NULL;
    STATUS_TRY(input_load(file->arena, file->path, IMPORT_FILE_BYTES_MAX, &text, &file->text_bytes,
                          reterr));
    file->text = text;
    const char *zero = memchr(text, '\0', file->text_bytes);
    if (zero != NULL) {
        uint32_t line = 1;
        for (const char *c = text; c < zero; c++) line += *c == '\n';
        return settings_fail(file, line, STATUS_INVALID, reterr, "a character 0; this is no text");
    }
    STATUS_TRY(framework->read(file, reterr));
    if (file->count == 0 && file->given_count == 0)
        return settings_fail(file, 0, STATUS_INVALID, reterr,
                             "the file says nothing; a key of %s is \"%s\"", framework->name,
                             framework->rows[0]->key);
    return given_add(file, reterr);
}

static enum status scenario_begin(struct import *import, const char *preset, struct error *reterr)
{
    struct strbuf text = {.bytes = NULL};
    struct json_writer json;
    const char *const slash = strrchr(import->file->path, '/');
    STATUS_TRY(json_read_text(import->arena, "scenario", "{}", 2, &import->scenario, reterr));
    STATUS_TRY(import_set(import, reterr, "/podsim=1"));
    json_write_start(&json, &text);
    json_write_string(&json, slash == NULL ? import->file->path : slash + 1);
    enum status status = text.failed ? error_set(reterr, STATUS_NO_MEMORY, "", "no memory")
                                     : import_set(import, reterr, "/title=%s", text.bytes);
    strbuf_free(&text);
    STATUS_TRY(status);
    json_write_start(&json, &text);
    json_write_value(&json, import->machine_json);
    status = text.failed ? error_set(reterr, STATUS_NO_MEMORY, "", "no memory")
                         : import_set(import, reterr, "/machine=%s", text.bytes);
    strbuf_free(&text);
    STATUS_TRY(status);
    STATUS_TRY(import_set(import, reterr, "/mesh={}"));
    STATUS_TRY(import_set(import, reterr, "/preset=%s", preset));
    return import_set(import, reterr, "/workload/kind=train_step");
}

/* The setting that has set what stands at a place of the scenario, or part of it. NULL: none has.
 */
static const struct import_setting *setter_find(const struct import_file *file, const char *where)
{
    const struct import_setting *found = NULL;
    for (uint32_t i = 0; i < file->count; i++) {
        const struct import_setting *setting = &file->setting[i];
        bool const is_place = setting->outcome == IMPORT_EXPRESSED && setting->because[0] == '/' &&
                              name_after(where, setting->because) != NULL;
        if (is_place && (found == NULL || strlen(setting->because) > strlen(found->because)))
            found = setting;
    }
    return found;
}

/* Builds what was imported, as a run would. */
static enum status scenario_check(const struct options *options, const struct import *import,
                                  const struct strbuf *text, struct error *reterr)
{
    static struct session session;
    const char *path = options_value(options, "-o");
    struct session_source const source = {
        .path = path == NULL || strcmp(path, "-") == 0 ? "scenario" : path,
        .text = text->bytes,
        .text_bytes = text->size_bytes};
    enum status const status = session_build(&session, &source, SESSION_PROGRAM, reterr);
    session_close(&session);
    if (status == STATUS_OK) return STATUS_OK;
    struct error const inner = *reterr;
    const struct import_setting *setter = setter_find(import->file, inner.where);
    return settings_fail(import->file, setter == NULL ? 0 : setter->line, status, reterr,
                         "%s%spodsim refuses what it says: %s: %s",
                         setter == NULL ? "" : setter->key, setter == NULL ? "" : ": ", inner.where,
                         inner.message);
}

static enum status import_all(const struct options *options,
                              const struct import_framework *framework, struct import *import,
                              struct strbuf *scenario, struct error *reterr)
{
    struct json_writer json;
    struct strbuf flat = {.bytes = NULL};
    STATUS_TRY(machine_read(options, import, reterr));
    STATUS_TRY(given_read(options, import->file, reterr));
    STATUS_TRY(file_read(import->file, framework, reterr));
    STATUS_TRY(import_rows(import, framework, reterr));
    STATUS_TRY(scenario_begin(import, framework->preset, reterr));
    STATUS_TRY(framework->finish(import, reterr));
    json_write_start(&json, &flat);
    json.flat = FLAT_DEPTH;
    json_write_value(&json, import->scenario);
    json_fold(&flat, COLUMNS, scenario);
    bool const failed = flat.failed || scenario->failed;
    strbuf_free(&flat);
    if (failed) return error_no_memory(reterr, "");
    return scenario_check(options, import, scenario, reterr);
}

static enum status write_all(const struct options *options,
                             const struct import_framework *framework, const struct import *import,
                             const struct strbuf *scenario, struct error *reterr)
{
    const char *path = options_value(options, "-o");
    bool const to_error = path == NULL || output_is_stdout(path);
    static struct output output;
    struct strbuf report = {.columns = report_columns(to_error ? 2 : 1)};
    output = (struct output){.path = NULL};
    enum status status = output_open(&output, path == NULL ? "-" : path, options, reterr);
    if (status == STATUS_OK) status = output_write(&output, scenario, reterr);
    if (status == STATUS_OK) status = output_finish(&output, reterr);
    output_abandon(&output);
    import_report(&report, import, framework->name);
    if (status == STATUS_OK) status = output_print(&report, to_error, reterr);
    strbuf_free(&report);
    return status;
}

static int run_import(const struct options *options)
{
    struct error error = {0};
    struct strbuf scenario = {.bytes = NULL};
    const struct import_framework *framework = import_framework_find(options->operand[0], &error);
    if (framework == NULL) return command_fail(NULL, &error);
    struct arena *arena = arena_create(ARENA_BYTES_MAX);
    enum status status = arena == NULL ? error_no_memory(&error, "") : STATUS_OK;
    struct import_file file = {.arena = arena, .path = options->operand[1]};
    static struct import import;
    import =
        (struct import){.arena = arena, .file = &file, .model = options_value(options, "--model")};
    if (status == STATUS_OK) status = import_all(options, framework, &import, &scenario, &error);
    if (status == STATUS_OK) status = write_all(options, framework, &import, &scenario, &error);
    strbuf_free(&scenario);
    arena_destroy(arena);
    return status == STATUS_OK ? EXIT_DONE : command_fail(options->operand[1], &error);
}

const struct command command_import = {
    .name = "import",
    .usage = "podsim import FRAMEWORK FILE --machine SPEC [-o SCENARIO.json] [--profile NAME]\n"
             "[--model NAME] [--with KEY=VALUE]...",
    .summary = "makes a scenario of a framework's own configuration",
    .help = "Reads the configuration of a training framework and writes the scenario that it\n"
            "describes. Prints each key of the file, with its line, under one of these headings:\n"
            "what it sets, why it has no influence on the time of a step, or what of it podsim\n"
            "cannot express. Nothing is left out. A scenario that podsim refuses is not written.\n"
            "\n"
            "FRAMEWORK is one of\n"
            "\n"
            "  deepspeed   DeepSpeed: a configuration (JSON); needs --model\n"
            "  hf-trainer  Hugging Face: TrainingArguments, or a file of accelerate (YAML, JSON)\n"
            "  maxtext     MaxText: a configuration (YAML)\n"
            "  megatron    Megatron-LM: a shell script, or a file of arguments\n"
            "  torchtitan  torchtitan: a job file (TOML)\n"
            "\n"
            "Variables that a script takes from its environment, and keys that the file leaves\n"
            "out, are given by --with.\n"
            "\n"
            "  podsim import megatron train_llama3_8b.sh --machine h100-sxm -o llama3.json\n"
            "  podsim import megatron train.sh --machine h100-sxm:nodes=16 --with NNODES=16 "
            "-o out.json\n"
            "  podsim run out.json\n",
    .operands_min = 2,
    .operands_max = 2,
    .options = import_options,
    .run = run_import,
};
