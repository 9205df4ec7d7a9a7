#include "tools/podsim/common/session.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/base/arena.h"
#include "sim/base/json.h"
#include "sim/base/name.h"
#include "sim/base/path.h"
#include "sim/base/strbuf.h"
#include "sim/measure/choices.h"
#include "sim/scenario/preset.h"
#include "sim/scenario/program_file.h"
#include "sim/step/ranks.h"
#include "tools/podsim/common/input.h"
#include "tools/podsim/common/scenarios.h"
#include "tools/podsim/common/setting_place.h"

/* As a shell's <(command) is. */
static bool is_pipe(const char *path)
{
    struct stat found;
    return stat(path, &found) == 0 && S_ISFIFO(found.st_mode);
}

/* All of a file, of a pipe, or of "-". */
static enum status text_load(struct session_source *source, const char *operand, uint64_t most,
                             struct error *reterr)
{
    char *text = NULL;
    if (strcmp(operand, "-") == 0) source->path = "standard input";
    source->arena = arena_create(0);
    if (source->arena == NULL) return error_no_memory(reterr, source->path);
    STATUS_TRY(input_load(source->arena, operand, most, &text, &source->text_bytes, reterr));
    source->text = text;
    return STATUS_OK;
}

/* A path to nothing whose last part is a scenario's name, or nearly. */
static enum status path_refuse(struct session_source *source, const char *const *names,
                               struct error *reterr)
{
    const char *const slash = strrchr(source->path, '/');
    const char *const last = slash == NULL ? source->path : slash + 1;
    size_t const length = strlen(last);
    size_t const ending = path_is_json(last) ? 5 : 0;
    const char *const name = arena_format(source->arena, "%.*s", (int)(length - ending), last);
    if (name == NULL) return error_no_memory(reterr, "");
    const char *const nearest = name_nearest(name, names);
    if (nearest == NULL || !name_is_near(name, nearest)) return STATUS_OK;
    return error_set(reterr, STATUS_IO, source->path,
                     "no such file; `podsim list scenarios` has %s, without a folder", nearest);
}

/* Names as `podsim list scenarios` prints them. */
static enum status builtin_find(struct session_source *source, struct error *reterr)
{
    void *memory = NULL;
    const struct embed_file *const file =
        embed_find(embed_scenarios, embed_scenarios_count, source->path);
    if (file != NULL && !path_is(source->path)) {
        source->text = file->bytes;
        source->text_bytes = file->size_bytes;
        return STATUS_OK;
    }
    source->arena = arena_create(0);
    if (source->arena == NULL) return error_no_memory(reterr, source->path);
    STATUS_TRY(
        arena_try(source->arena, embed_scenarios_count + 1, sizeof(char *), &memory, reterr));
    const char **names = memory;
    for (uint32_t i = 0; i < embed_scenarios_count; i++) names[i] = embed_scenarios[i].name;
    if (path_is(source->path)) return path_refuse(source, names, reterr);
    return error_set(reterr, STATUS_NOT_FOUND, source->path,
                     "no file, and no scenario of `podsim list scenarios`%s",
                     name_offer(source->path, names, "; the nearest is ", "", "").text);
}

/* `--preset NAME` is `--set /preset=NAME`. */
static enum status preset_add(const struct options *options, struct session_source *source,
                              struct error *reterr)
{
    const char *const name = options_value(options, "--preset");
    if (name == NULL) return STATUS_OK;
    if (source->is_program)
        return error_set(reterr, STATUS_INVALID, "--preset",
                         "a program's text has no workload that it could set");
    if (snprintf(source->preset, sizeof source->preset, "/preset=\"%s\"", name) >=
        (int)sizeof source->preset)
        return error_set(reterr, STATUS_NOT_FOUND, "--preset",
                         "no preset has such a long name; `podsim list presets` has the names");
    source->preset_name = name;
    source->settings[source->setting_count++].text = source->preset;
    return STATUS_OK;
}

/* Two values of one pointer are a slip. Of pointers that lie in one another the later one counts.
 */
static enum status settings_distinct(const struct session_source *source, struct error *reterr)
{
    for (uint32_t i = 0; i < source->setting_count; i++) {
        const char *const setting = source->settings[i].text;
        size_t const pointer = strcspn(setting, "=");
        for (uint32_t k = 0; k < i; k++) {
            if (strncmp(source->settings[k].text, setting, pointer + 1) != 0) continue;
            return error_set(reterr, STATUS_INVALID, "--set", "%.*s is given twice", (int)pointer,
                             setting);
        }
    }
    return STATUS_OK;
}

/* A text of a program is one with or without --program, where the verb takes it. */
static enum status text_find(struct session_source *source, const char *operand, bool takes_program,
                             struct error *reterr)
{
    size_t const length = strlen(program_file_begin);
    bool const takes_more = source->is_program || takes_program;
    bool const is_text = source->is_piped || source->is_program;
    bool begins = !is_text && input_begins(operand, program_file_begin);
    if (is_text || (begins && takes_program))
        STATUS_TRY(text_load(source, operand,
                             takes_more ? PROGRAM_FILE_BYTES_MAX : JSON_FILE_BYTES_MAX, reterr));
    if (is_text)
        begins =
            source->text_bytes >= length && memcmp(source->text, program_file_begin, length) == 0;
    if (begins && !takes_more)
        return error_set(reterr, STATUS_INVALID, source->path,
                         "is a program's text, which `podsim run --program` and `podsim show` "
                         "read");
    source->is_program = source->is_program || begins;
    return STATUS_OK;
}

static enum status source_read(const struct options *options, const char *operand,
                               bool takes_program, struct session_source *ret_source,
                               struct error *reterr)
{
    *ret_source = (struct session_source){.path = operand,
                                          .full = options_has(options, "--full"),
                                          .is_program = options_has(options, "--program")};
    const char *text = NULL;
    while ((text = options_value_at(options, "--set", ret_source->setting_count)) != NULL)
        ret_source->settings[ret_source->setting_count++].text = text;
    ret_source->set_count = ret_source->setting_count;
    ret_source->is_piped = strcmp(operand, "-") == 0 || is_pipe(operand);
    STATUS_TRY(text_find(ret_source, operand, takes_program, reterr));
    STATUS_TRY(preset_add(options, ret_source, reterr));
    STATUS_TRY(settings_distinct(ret_source, reterr));
    if (ret_source->text != NULL || access(operand, F_OK) == 0) return STATUS_OK;
    return builtin_find(ret_source, reterr);
}

enum status session_source_read(const struct options *options, const char *operand,
                                struct session_source *ret_source, struct error *reterr)
{
    return source_read(options, operand, false, ret_source, reterr);
}

enum status session_source_read_either(const struct options *options, const char *operand,
                                       struct session_source *ret_source, struct error *reterr)
{
    return source_read(options, operand, true, ret_source, reterr);
}

void session_source_close(struct session_source *source)
{
    arena_destroy(source->arena);
    source->arena = NULL;
}

static enum status scenario_build(struct session *session, const struct session_source *source,
                                  struct error *reterr)
{
    if (source->text == NULL)
        return scenario_read(session->arena, source->path, source->settings, source->setting_count,
                             &session->scenario, reterr);
    return scenario_read_text(session->arena, source->path, source->text, source->text_bytes,
                              source->settings, source->setting_count, &session->scenario, reterr);
}

/* What the file calls itself may no longer be true; what the command line calls it is. */
static enum status title_build(struct session *session, const struct session_source *source,
                               struct error *reterr)
{
    struct strbuf title = {0};
    bool is_given = false;
    strbuf_add(&title, "%s", session->scenario.title);
    if (source->preset_name != NULL) strbuf_add(&title, ", with --preset %s", source->preset_name);
    for (uint32_t i = 0; i < source->set_count; i++) {
        const char *const setting = source->settings[i].text;
        is_given = is_given || strncmp(setting, "/title=", strlen("/title=")) == 0;
        strbuf_add(&title, i == 0 && source->preset_name == NULL ? ", with " : ", ");
        setting_add(setting, &title);
    }
    session->title = is_given ? session->scenario.title : NULL;
    if (!is_given && !title.failed) session->title = arena_text(session->arena, title.bytes);
    strbuf_free(&title);
    if (session->title != NULL) return STATUS_OK;
    return error_set(reterr, STATUS_NO_MEMORY, "", "there is no memory for a title");
}

/* What the text has fixed would be named in the title, and change nothing. */
static enum status fixed_refuse(struct session *session, const struct session_source *source,
                                struct error *reterr)
{
    for (uint32_t i = 0; i < source->set_count; i++) {
        const char *const setting = source->settings[i].text, *place = NULL;
        STATUS_TRY(scenario_shapes_program(session->arena, setting, &place, reterr));
        if (place == NULL) continue;
        const char *const where = arena_format(session->arena, "--set %s", setting);
        return error_set(reterr, STATUS_INVALID, where == NULL ? "--set" : where,
                         "the text of a program has the ops of each chip and what they wait for; "
                         "`podsim show program` writes another text of a scenario with %s",
                         place);
    }
    return STATUS_OK;
}

/* A text has the kernels of the stack that its scenario named, joined and fused as that has them:
 * tables of another stack have no times of them. */
static enum status stack_check(struct session *session, const struct session_source *source,
                               struct error *reterr)
{
    static const char machine[] = "/machine";
    struct scenario plain;
    struct program_file_rest rest;
    const char *place = NULL;
    for (uint32_t i = 0; i < source->set_count; i++)
        if (strncmp(source->settings[i].text, machine, sizeof machine - 1) == 0)
            place = source->settings[i].text;
    if (place == NULL) return STATUS_OK;
    STATUS_TRY(program_file_read_scenario(session->arena, source->path, source->text,
                                          source->text_bytes, NULL, 0, &plain, &rest, reterr));
    const char *const own = plain.machine.stack, *const other = session->scenario.machine.stack;
    if (own == other || (own != NULL && other != NULL && strcmp(own, other) == 0)) return STATUS_OK;
    const char *const where = arena_format(session->arena, "--set %s", place);
    return error_set(reterr, STATUS_INVALID, where == NULL ? "--set" : where,
                     "the text of a program has the kernels of its scenario, %s%s%s; `podsim show "
                     "program` writes another text of a scenario with /machine/stack",
                     own == NULL ? "which names no \"stack\"" : "of the stack \"",
                     own == NULL ? "" : own, own == NULL ? "" : "\"");
}

/* There is no workload, so no roofline and nothing that would refuse what does not fit. */
static enum status program_build(struct session *session, const struct session_source *source,
                                 struct error *reterr)
{
    struct program_file_rest rest;
    struct scenario *scenario = &session->scenario;
    STATUS_TRY(fixed_refuse(session, source, reterr));
    STATUS_TRY(program_file_read_scenario(session->arena, source->path, source->text,
                                          source->text_bytes, source->settings,
                                          source->setting_count, scenario, &rest, reterr));
    STATUS_TRY(stack_check(session, source, reterr));
    STATUS_TRY(title_build(session, source, reterr));
    scenario->workload.allow_oversubscription = true;
    session->is_program = true;
    STATUS_TRY(machine_build(session->arena, &scenario->machine, &session->machine, reterr));
    if (scenario->mesh.axis_count > 0) /* Which only reports ask for. */
        STATUS_TRY(mesh_build(&scenario->mesh, &session->machine, &session->mesh, reterr));
    STATUS_TRY(program_file_pages(session->arena, source->path, &rest, &session->pages,
                                  &session->page_count, reterr));
    return program_file_read(session->arena, source->path, &rest, &session->machine,
                             &session->program, reterr);
}

static enum status program_lower(struct session *session, struct error *reterr)
{
    struct ranks *ranks = NULL;
    STATUS_TRY(ranks_take(session->arena, &session->scenario.workload, &session->machine,
                          &session->mesh, &ranks, reterr));
    STATUS_TRY(workload_lower_ranks(session->arena, ranks, &session->program, reterr));
    return roofline_of_ranks(ranks, &session->roofline, reterr);
}

struct choices_args session_choices(const struct session *session)
{
    const struct workload_plan *plan = &session->scenario.workload;
    return (struct choices_args){
        .machine = &session->machine,
        .protocols = workload_protocols(plan, &session->machine.chip) == WORKLOAD_PROTOCOLS_NCCL,
        .all_reduce = plan->software.all_reduce,
    };
}

/* Of a scenario that is read. */
static enum status stages_build(struct session *session, const struct session_source *source,
                                enum session_stage stage, struct error *reterr)
{
    struct scenario *scenario = &session->scenario;
    STATUS_TRY(title_build(session, source, reterr));
    if (stage < SESSION_PROGRAM) STATUS_TRY(scenario_algorithm_check(scenario, reterr));
    if (source->schedule != NULL) scenario->workload.stages.given = source->schedule;
    scenario->workload.stages.held_max = source->schedule_held_max;
    scenario->workload.cancel = source->cancel;
    scenario->workload.routing.drawn = source->drawn;
    if (source->drawn == NULL) {
        void *memory = NULL;
        STATUS_TRY(arena_try(session->arena, 1, sizeof(struct routing_drawn), &memory, reterr));
        scenario->workload.routing.drawn = memory;
    }
    if (stage < SESSION_MACHINE) return STATUS_OK;
    if (source->machine != NULL)
        session->machine = *source->machine;
    else
        STATUS_TRY(machine_build(session->arena, &scenario->machine, &session->machine, reterr));
    if (stage < SESSION_MESH) return STATUS_OK;
    STATUS_TRY(mesh_build(&scenario->mesh, &session->machine, &session->mesh, reterr));
    inference_stages_set(&scenario->workload, session->mesh.axis[MESH_PP].size);
    if (stage < SESSION_PROGRAM) return STATUS_OK;
    struct choices_args const choices = session_choices(session);
    if (source->chooser != NULL)
        scenario->workload.inference.chooser = *source->chooser;
    else
        STATUS_TRY(choices_create(session->arena, &choices, &scenario->workload.inference.chooser,
                                  reterr));
    return program_lower(session, reterr);
}

/* Whether a text has a pointer as a whole, not the begin of a longer one. */
static bool has_pointer(const char *text, const char *pointer)
{
    size_t const bytes = strlen(pointer);
    for (const char *at = strstr(text, pointer); at != NULL; at = strstr(at + bytes, pointer))
        if (at[bytes] == '\0' || strchr(" ,;:=.", at[bytes]) != NULL) return true;
    return false;
}

/* Says in an error that has a key of the preset as its place or in its text that the preset sets
 * it: the scenario does not have it. */
static void preset_blame(const struct scenario *scenario, struct error *error)
{
    const struct preset_filled *filled = scenario->filled;
    struct error const from = *error;
    for (uint32_t i = 0; i < filled->count; i++) {
        const char *const pointer = filled->pointer[i];
        if (strcmp(from.where, pointer) != 0 && !has_pointer(from.message, pointer)) continue;
        (void)error_set(error, from.status, from.where, "%s; the preset \"%.40s\" sets %s to %s",
                        from.message, scenario->preset, pointer, filled->value[i]);
        return;
    }
}

enum status session_build(struct session *session, const struct session_source *source,
                          enum session_stage stage, struct error *reterr)
{
    *session = (struct session){.arena = arena_create(0)};
    const struct scenario *scenario = &session->scenario;
    if (session->arena == NULL)
        return error_set(reterr, STATUS_NO_MEMORY, "", "there is no memory to begin with");
    if (source->is_program) return program_build(session, source, reterr);
    STATUS_TRY(scenario_build(session, source, reterr));
    enum status const status = stages_build(session, source, stage, reterr);
    if (status != STATUS_OK && scenario->preset != NULL) preset_blame(scenario, reterr);
    return status;
}

static enum status part_begin(const struct session *whole, struct session *ret_part,
                              struct error *reterr)
{
    *ret_part = *whole;
    ret_part->roofline = (struct roofline){.lower_s = 0};
    ret_part->arena = arena_create(0);
    if (ret_part->arena != NULL) return STATUS_OK;
    return error_set(reterr, STATUS_NO_MEMORY, "", "there is no memory for a step");
}

uint64_t session_output(const struct session *session)
{
    if (!session->is_program) return session->scenario.workload.inference.generation.output;
    return session->page_count == 0 ? 0 : session->pages[session->page_count - 1].last;
}

bool session_part_last(const struct session *session, uint32_t index, uint64_t *ret_last)
{
    uint64_t const page = session->scenario.workload.inference.generation.page;
    uint64_t const output = session_output(session);
    if (session->is_program) {
        if (index < session->page_count) *ret_last = session->pages[index].last;
        return index < session->page_count;
    }
    if (output == 0 || (index > 0 && (index - 1) * page >= output)) return false;
    *ret_last = output / page < index ? output : index * page;
    return true;
}

enum status session_part_build(const struct session *whole, uint32_t index,
                               struct session *ret_part, struct error *reterr)
{
    struct inference_generation *generation = &ret_part->scenario.workload.inference.generation;
    STATUS_TRY(part_begin(whole, ret_part, reterr));
    if (whole->is_program) {
        const struct program_text_part *page = &whole->pages[index];
        return program_text_read(ret_part->arena, &ret_part->machine, whole->program.text_name,
                                 page->line, page->text, page->text_bytes, &ret_part->program,
                                 reterr);
    }
    bool const is_there = session_part_last(whole, index, &generation->step);
    SIM_ASSERT(is_there);
    generation->played = index == 0 ? INFERENCE_PREFILL : INFERENCE_STEP;
    return program_lower(ret_part, reterr);
}

uint64_t session_batch(const struct session *session)
{
    const struct inference_plan *plan = &session->scenario.workload.inference;
    return inference_batch_part(plan) == INFERENCE_DECODES ? plan->decodes.count
                                                           : plan->prompts.count;
}

enum status session_batch_build(const struct session *whole, uint64_t batch, bool plays,
                                struct session *ret_part, struct error *reterr)
{
    struct workload_plan *plan = &ret_part->scenario.workload;
    STATUS_TRY(part_begin(whole, ret_part, reterr));
    if (!plays) plan->inference.chooser = (struct plan_chooser){.owner = NULL};
    STATUS_TRY(scenario_batch_set(ret_part->arena, batch, &ret_part->scenario, reterr));
    return workload_lower(ret_part->arena, plan, &ret_part->machine, &ret_part->mesh,
                          &ret_part->program, reterr);
}

void session_close(struct session *session)
{
    arena_destroy(session->arena);
    *session = (struct session){0};
}
