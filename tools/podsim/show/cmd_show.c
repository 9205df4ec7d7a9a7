/*
 * cmd_show.c: the product of a stage, for eyes.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sim/base/arena.h"
#include "sim/base/counted.h"
#include "sim/base/name.h"
#include "sim/base/strbuf.h"
#include "sim/report/machine_svg.h"
#include "sim/scenario/program_file.h"
#include "tools/podsim/common/command.h"
#include "tools/podsim/common/op_rows.h"
#include "tools/podsim/common/output.h"
#include "tools/podsim/common/report.h"
#include "tools/podsim/common/session.h"
#include "tools/podsim/show/show_text.h"

static const struct option show_options[] = {
    {"--machine", "SPEC", "a machine without a scenario, as \"h100-sxm:nodes=4\"", false},
    {"--svg", "FILE", "draw the machine, too; - is standard output, instead of the text", false},
    {"--set", "/POINTER=VALUE", "change a key of the scenario; may be repeated", true},
    {"--preset", "NAME", "a framework, for keys that the scenario leaves out", false},
    {"--format", "NAME",
     "of a program: listing, or text, which `podsim run --program` reads; of its ops: table or "
     "json; of the schema: json or markdown",
     false},
    {0},
};

/* Ops of a program, which are no stage of their own. */
static const char ops_name[] = "op";

static const struct {
    const char *name;
    enum session_stage stage;
} stages[] = {
    {"scenario", SESSION_SCENARIO}, {"machine", SESSION_MACHINE}, {"mesh", SESSION_MESH},
    {"graph", SESSION_GRAPH},       {"program", SESSION_PROGRAM}, {ops_name, SESSION_PROGRAM},
};
enum { STAGE_COUNT = sizeof stages / sizeof *stages };

static enum status stage_find(const char *name, enum session_stage *ret_stage, struct error *reterr)
{
    const char *names[STAGE_COUNT + 2] = {0};
    for (uint32_t i = 0; i < STAGE_COUNT; i++) {
        names[i] = stages[i].name;
        *ret_stage = stages[i].stage;
        if (strcmp(name, names[i]) == 0) return STATUS_OK;
    }
    names[STAGE_COUNT] = "schema"; /* Which is of no stage. */
    return error_set(reterr, STATUS_NOT_FOUND, name,
                     "no such stage%s (scenario, machine, mesh, graph, program, op, schema)",
                     name_offer(name, names, "; the nearest is ", "", "").text);
}

/* What a program, or its ops, may be asked for as. `ret_is_other`: not as is usual. */
static enum status asked_format_find(const struct options *options, enum session_stage stage,
                                     bool *ret_is_other, struct error *reterr)
{
    static const char *const formats[2][3] = {{"listing", "text", NULL}, {"table", "json", NULL}};
    bool const of_ops = strcmp(options->operand[0], ops_name) == 0;
    const char *const asked = options_value(options, "--format");
    *ret_is_other = asked != NULL && strcmp(asked, formats[of_ops][1]) == 0;
    if (asked == NULL) return STATUS_OK;
    if (stage != SESSION_PROGRAM)
        return error_set(reterr, STATUS_INVALID, "--format",
                         "only a program and its ops have two formats");
    if (*ret_is_other || strcmp(asked, formats[of_ops][0]) == 0) return STATUS_OK;
    return error_set(reterr, STATUS_NOT_FOUND, "--format", "no format \"%.40s\"%s (%s, %s)", asked,
                     name_offer(asked, formats[of_ops], "; the nearest is ", "", "").text,
                     formats[of_ops][0], formats[of_ops][1]);
}

/* A program's text has no workload. */
static enum status text_has_stage(const struct session *session, const char *name,
                                  enum session_stage stage, bool as_other, struct error *reterr)
{
    if (stage == SESSION_MESH && session->scenario.mesh.axis_count == 0)
        return error_set(reterr, STATUS_INVALID, name, "the program's text has no mesh");
    if (stage == SESSION_GRAPH)
        return error_set(reterr, STATUS_INVALID, name,
                         "a program's text has no model whose graph could be shown");
    if (stage == SESSION_PROGRAM && !as_other && strcmp(name, ops_name) != 0)
        return error_set(reterr, STATUS_INVALID, name,
                         "a program's text has no model for a listing; --format text prints it");
    return STATUS_OK;
}

/* The program, and of a generation the programs that its run simulates behind it. */
static enum status program_text(const struct session *session, struct strbuf *text,
                                struct error *reterr)
{
    uint64_t last = 0;
    STATUS_TRY(program_file_write(session->arena, &session->scenario, &session->machine,
                                  &session->program, text, reterr));
    for (uint32_t index = 0; session_part_last(session, index, &last); index++) {
        struct session part;
        enum status const status = session_part_build(session, index, &part, reterr);
        program_text_write_page(last, session_output(session), text);
        if (status == STATUS_OK) program_text_write(&part.program, &part.machine, text);
        session_close(&part);
        STATUS_TRY(status);
    }
    if (!text->failed) return STATUS_OK;
    return error_set(reterr, STATUS_NO_MEMORY, "", "there is no memory for a program's text");
}

static enum status stage_text(struct session *session, const char *name, enum session_stage stage,
                              bool as_other, struct strbuf *text, struct error *reterr)
{
    const struct scenario *scenario = &session->scenario;
    const char *whole = NULL;
    if (session->is_program) STATUS_TRY(text_has_stage(session, name, stage, as_other, reterr));
    switch (stage) {
    case SESSION_SCENARIO:
        text->columns = 0; /* JSON, in whose strings no line may end. */
        whole = session->is_program ? scenario_text_of_program(session->arena, scenario)
                                    : scenario_text(session->arena, scenario);
        if (whole == NULL) return error_no_memory(reterr, "");
        strbuf_add(text, "%s", whole);
        return STATUS_OK;
    case SESSION_MACHINE: /* Printed by machine_print(). */
        break;
    case SESSION_MESH:
        STATUS_TRY(mesh_stages_check(&session->mesh, reterr)); /* As a run does. */
        show_mesh(&session->machine, &session->mesh, text);
        return STATUS_OK;
    case SESSION_GRAPH:
        return workload_graphs(&session->scenario.workload, &session->machine, &session->mesh,
                               report_in_colour(STDOUT_FILENO), text, reterr);
    case SESSION_PROGRAM:
        break;
    }
    SIM_ASSERT(stage == SESSION_PROGRAM);
    if (strcmp(name, ops_name) == 0)
        return op_rows_show(session->arena, &session->machine, &session->program, as_other, text,
                            reterr);
    if (as_other) return program_text(session, text, reterr);
    return workload_listing(&session->scenario.workload, &session->machine, &session->mesh,
                            &session->program, text, reterr);
}

/* The drawing and the text of a machine, or the drawing alone where it takes standard output. */
static enum status machine_print(const struct machine *machine, const struct options *options,
                                 struct error *reterr)
{
    struct output output = {.path = NULL};
    struct strbuf drawing = {0}, text = {.columns = report_columns(1)};
    const char *const svg = options_value(options, "--svg");
    bool const alone = svg != NULL && strcmp(svg, "-") == 0;
    enum status status = output_open(&output, svg, options, reterr);
    if (status != STATUS_OK) return status;
    if (svg != NULL) {
        machine_svg(machine, &drawing);
        status = output_write(&output, &drawing, reterr);
        if (status == STATUS_OK) status = output_finish(&output, reterr);
    }
    if (status == STATUS_OK && !alone) {
        show_machine(machine, &text);
        status = output_print(&text, false, reterr);
    }
    output_abandon(&output);
    strbuf_free(&drawing);
    strbuf_free(&text);
    return status;
}

/* `show machine --machine SPEC`. */
static enum status spec_print(struct arena *arena, const char *spec, const struct options *options,
                              struct error *reterr)
{
    struct machine_plan plan;
    struct machine machine;
    STATUS_TRY(scenario_machine_parse(arena, spec, "--machine", &plan, reterr));
    STATUS_TRY(machine_build(arena, &plan, &machine, reterr));
    return machine_print(&machine, options, reterr);
}

static int show_spec(const struct options *options, const char *spec)
{
    struct error error = {0};
    struct arena *arena = arena_create(0);
    enum status status = STATUS_OK;
    if (arena == NULL)
        status = error_set(&error, STATUS_NO_MEMORY, spec, "no memory for a machine");
    else if (strcmp(options->operand[0], "machine") != 0 || options->operand_count != 1 ||
             options_has(options, "--set"))
        status = error_set(&error, STATUS_INVALID, "--machine",
                           "shows a machine alone: podsim show machine --machine SPEC");
    else
        status = spec_print(arena, spec, options, &error);
    arena_destroy(arena);
    return status == STATUS_OK ? EXIT_DONE : command_fail(spec, &error);
}

static int show_file(const struct options *options)
{
    static struct session_source source;
    const char *svg = options_value(options, "--svg");
    struct error error = {0};
    struct session session = {0};
    struct strbuf text = {.columns = report_columns(1)};
    enum session_stage stage = SESSION_SCENARIO;
    bool as_other = false;
    enum status status = stage_find(options->operand[0], &stage, &error);
    if (status == STATUS_OK) status = asked_format_find(options, stage, &as_other, &error);
    /* A scenario is shown with defaults of its machine, so what a machine refuses is refused. */
    enum session_stage const built = stage == SESSION_SCENARIO ? SESSION_MACHINE : stage;
    if (as_other) text.columns = 0; /* Which a reader has to understand. */
    if (status == STATUS_OK && svg != NULL && stage != SESSION_MACHINE)
        status = error_set(&error, STATUS_INVALID, "--svg", "only a machine is drawn");
    if (status == STATUS_OK)
        status = session_source_read_either(options, options->operand[1], &source, &error);
    if (status == STATUS_OK) status = session_build(&session, &source, built, &error);
    if (status == STATUS_OK && stage == SESSION_MACHINE) {
        status = machine_print(&session.machine, options, &error);
    } else {
        if (status == STATUS_OK)
            status = stage_text(&session, options->operand[0], stage, as_other, &text, &error);
        if (status == STATUS_OK) status = output_print(&text, false, &error);
    }
    strbuf_free(&text);
    session_close(&session);
    session_source_close(&source);
    if (status == STATUS_OK) return EXIT_DONE;
    return command_fail_scenario(options, options->operand[1], &error);
}

/* `show schema`: of every scenario, so without one. */
static int show_schema(const struct options *options)
{
    static const char *const formats[] = {"json", "markdown", NULL};
    const char *const asked = options_value(options, "--format");
    struct error error = {0};
    struct strbuf text = {0};
    enum status status = STATUS_OK;
    if (options->operand_count != 1 || options_has(options, "--set") ||
        options_has(options, "--svg") || options_has(options, "--machine"))
        status = error_set(&error, STATUS_INVALID, "schema",
                           "is of every scenario: podsim show schema [--format markdown]");
    else if (asked == NULL || strcmp(asked, "json") == 0)
        scenario_schema(&text);
    else if (strcmp(asked, "markdown") == 0)
        scenario_tables(&text);
    else
        status = error_set(&error, STATUS_NOT_FOUND, "--format",
                           "no format \"%.40s\"%s (json, markdown)", asked,
                           name_offer(asked, formats, "; the nearest is ", "", "").text);
    if (status == STATUS_OK) status = output_print(&text, false, &error);
    strbuf_free(&text);
    return status == STATUS_OK ? EXIT_DONE : command_fail("schema", &error);
}

static int show(const struct options *options)
{
    if (strcmp(options->operand[0], "schema") == 0) return show_schema(options);
    const char *spec = options_value(options, "--machine");
    if (spec != NULL) return show_spec(options, spec);
    if (options->operand_count == 2) return show_file(options);
    struct error few = {0};
    (void)error_set(&few, STATUS_INVALID, "show", "needs a stage and a FILE");
    return command_fail("show", &few);
}

const struct command command_show = {
    .name = "show",
    .usage = "podsim show scenario|machine|mesh|graph|program|op FILE [--set /pointer=value]...\n"
             "       podsim show program FILE --format text\n"
             "       podsim show machine --machine SPEC [--svg FILE]\n"
             "       podsim show schema [--format markdown]",
    .summary = "prints a stage: scenario, machine, mesh, graph, program or op; or the schema",
    .help = "  scenario   every key that means something there, with its default\n"
            "  machine    chips, links, wraparound and the reason for it; switches and totals\n"
            "  mesh       where each mesh axis lies, and the shape of its groups\n"
            "  graph      what each pass derives of each part of a model: tensors, ops,\n"
            "             gradients, what is kept, steps, lifetimes, sums\n"
            "  program    a layer forward and backward: shardings, collectives, what is reused\n"
            "  op         each compute op: its sides, its time, and which table of measured\n"
            "             kernels gave it\n"
            "  schema     the JSON Schema of scenarios; with --format markdown their keys as\n"
            "             the source of tables, for pages rather than terminals: rows are not\n"
            "             folded\n"
            "\n"
            "FILE is a scenario, a name of `podsim list scenarios`, - for standard input, or the\n"
            "text of a program, which has scenario, machine, mesh, op, and program with\n"
            "--format text.\n"
            "\n"
            "  podsim show graph mlp-fsdp-tp-v5p-4x4x4\n"
            "  podsim show program scenarios/train/mlp-fsdp-tp-v5p-4x4x4.json\n"
            "  podsim show program llama3-8b-fsdp-v5e-8x8 --format text > step.program\n"
            "  podsim show op llama3-70b-prefill-h100-8 --set /machine/profile=measured \\\n"
            "      --set /machine/stack=trtllm\n"
            "  podsim show machine scenarios/train/llama3-8b-fsdp-v5e-8x8.json\n"
            "  podsim show machine --machine h100-sxm:nodes=128 --svg superpod.svg\n",
    .operands_min = 1,
    .operands_max = 2,
    .options = show_options,
    .run = show,
};
