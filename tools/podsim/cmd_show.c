/*
 * cmd_show.c: the product of a stage, for eyes.
 */
#include <stdio.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/name.h"
#include "sim/base/text.h"
#include "tools/podsim/command.h"
#include "tools/podsim/output.h"
#include "tools/podsim/pipeline.h"
#include "tools/podsim/show_text.h"

static const struct option show_options[] = {
    {"--machine", "SPEC", "a machine without a scenario, as \"h100-sxm:nodes=4\"", false},
    {"--set", "/POINTER=VALUE", "change a key of the scenario; may be repeated", true},
    {0},
};

static const struct {
    const char *name;
    enum pipeline_stage stage;
} stages[] = {
    {"scenario", PIPELINE_SCENARIO},
    {"machine", PIPELINE_MACHINE},
    {"mesh", PIPELINE_MESH},
    {"program", PIPELINE_PROGRAM},
};
enum { STAGE_COUNT = sizeof stages / sizeof *stages };

static enum status stage_find(const char *name, enum pipeline_stage *ret_stage,
                              struct error *reterr)
{
    const char *names[STAGE_COUNT + 1] = {0};
    for (uint32_t i = 0; i < STAGE_COUNT; i++) {
        names[i] = stages[i].name;
        *ret_stage = stages[i].stage;
        if (strcmp(name, names[i]) == 0) return STATUS_OK;
    }
    return error_set(reterr, STATUS_NOT_FOUND, name,
                     "no such stage; the nearest is %s (scenario, machine, mesh, program)",
                     name_nearest(name, names));
}

static enum status stage_text(struct pipeline *pipeline, enum pipeline_stage stage,
                              struct text *text, struct error *reterr)
{
    const char *listing = NULL;
    switch (stage) {
    case PIPELINE_SCENARIO:
        text_add(text, "%s", scenario_text(pipeline->arena, &pipeline->scenario));
        return STATUS_OK;
    case PIPELINE_MACHINE:
        show_machine(&pipeline->machine, text);
        return STATUS_OK;
    case PIPELINE_MESH:
        show_mesh(&pipeline->machine, &pipeline->mesh, text);
        return STATUS_OK;
    case PIPELINE_PROGRAM:
        break;
    }
    STATUS_TRY(workload_listing(pipeline->arena, &pipeline->scenario.workload, &pipeline->machine,
                                &pipeline->mesh, &listing, reterr));
    text_add(text, "%s", listing);
    return STATUS_OK;
}

/* `show machine --machine SPEC`. */
static enum status machine_text(struct arena *arena, const char *spec, struct text *text,
                                struct error *reterr)
{
    struct machine_plan plan;
    struct machine machine;
    STATUS_TRY(scenario_machine_parse(arena, spec, "--machine", &plan, reterr));
    STATUS_TRY(machine_build(arena, &plan, &machine, reterr));
    show_machine(&machine, text);
    return STATUS_OK;
}

static int show_spec(const struct options *options, const char *spec)
{
    struct error error = {0};
    struct text text = {0};
    struct arena *arena = arena_create(0);
    enum status status = STATUS_OK;
    if (arena == NULL)
        status = error_set(&error, STATUS_NO_MEMORY, spec, "no memory for a machine");
    else if (strcmp(options->operand[0], "machine") != 0 || options->operand_count != 1 ||
             options_has(options, "--set"))
        status = error_set(&error, STATUS_INVALID, "--machine",
                           "shows a machine alone: podsim show machine --machine SPEC");
    else
        status = machine_text(arena, spec, &text, &error);
    if (status == STATUS_OK) status = output_print(&text, false, &error);
    text_free(&text);
    arena_destroy(arena);
    return status == STATUS_OK ? EXIT_DONE : command_fail(spec, &error);
}

static int show(const struct options *options)
{
    const char *spec = options_value(options, "--machine");
    if (spec != NULL) return show_spec(options, spec);
    if (options->operand_count != 2) {
        struct error few = {0};
        (void)error_set(&few, STATUS_INVALID, "show", "needs a stage and a FILE");
        return command_fail("show", &few);
    }
    static struct pipeline_source source;
    struct error error = {0};
    struct pipeline pipeline = {0};
    struct text text = {0};
    enum pipeline_stage stage = PIPELINE_SCENARIO;
    enum status status = stage_find(options->operand[0], &stage, &error);
    if (status == STATUS_OK) {
        pipeline_source_read(options, options->operand[1], &source);
        status = pipeline_build(&pipeline, &source, stage, &error);
    }
    if (status == STATUS_OK) status = stage_text(&pipeline, stage, &text, &error);
    if (status == STATUS_OK) status = output_print(&text, false, &error);
    text_free(&text);
    pipeline_close(&pipeline);
    return status == STATUS_OK ? EXIT_DONE : command_fail(options->operand[1], &error);
}

const struct command command_show = {
    .name = "show",
    .usage = "podsim show scenario|machine|mesh|program FILE [--set /pointer=value]...\n"
             "       podsim show machine --machine SPEC",
    .summary = "prints a stage: scenario, machine, mesh or program",
    .help = "  scenario   every key, with every default filled in\n"
            "  machine    chips, links, wraparound and the reason for it\n"
            "  mesh       where each mesh axis lies, and the shape of its groups\n"
            "  program    a layer forward and backward: shardings, collectives, what is reused\n"
            "\n"
            "  podsim show program scenarios/train/mlp-fsdp-tp-v5p-4x4x4.json\n"
            "  podsim show machine scenarios/train/llama3-8b-fsdp-v5e-8x8.json\n",
    .operands_min = 1,
    .operands_max = 2,
    .options = show_options,
    .run = show,
};
