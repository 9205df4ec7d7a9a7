/*
 * cmd_list.c: the catalogues, and one entry of one.
 */
#include <stdio.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/name.h"
#include "sim/base/text.h"
#include "tools/podsim/command.h"
#include "tools/podsim/list_text.h"
#include "tools/podsim/output.h"

static const struct option list_options[] = {{0}};

static const struct {
    const char *name;
    list_all_fn *all;
    list_one_fn *one;
} catalogues[] = {
    {"chips", list_chips, list_chip},
    {"shapes", list_shapes, list_shape},
    {"collectives", list_collectives, list_collective},
    {"models", list_models, list_model},
    {"schedules", list_schedules, list_schedule},
    {"scenarios", list_scenarios, list_scenario},
};
enum { CATALOGUE_COUNT = sizeof catalogues / sizeof *catalogues };

static enum status list_text(struct arena *arena, const struct options *options, struct text *text,
                             struct error *reterr)
{
    const char *names[CATALOGUE_COUNT + 1] = {0};
    for (size_t i = 0; i < CATALOGUE_COUNT; i++) {
        names[i] = catalogues[i].name;
        if (strcmp(options->operand[0], names[i]) != 0) continue;
        if (options->operand_count == 1) return catalogues[i].all(arena, text, reterr);
        return catalogues[i].one(arena, options->operand[1], text, reterr);
    }
    return error_set(reterr, STATUS_NOT_FOUND, options->operand[0],
                     "no such catalogue; the nearest is %s",
                     name_nearest(options->operand[0], names));
}

static int list(const struct options *options)
{
    struct error error = {0};
    struct text text = {0};
    struct arena *arena = arena_create(0);
    enum status status = STATUS_OK;
    if (arena == NULL) status = error_set(&error, STATUS_NO_MEMORY, "", "there is no memory");
    if (status == STATUS_OK) status = list_text(arena, options, &text, &error);
    if (status == STATUS_OK) status = output_print(&text, false, &error);
    text_free(&text);
    arena_destroy(arena);
    return status == STATUS_OK ? EXIT_DONE : command_fail(NULL, &error);
}

const struct command command_list = {
    .name = "list",
    .usage = "podsim list chips|shapes|collectives|schedules|models|scenarios [NAME]",
    .summary = "what a scenario may name, and where its numbers come from",
    .help = "Without NAME one line an entry; with NAME all there is to know about it: a chip's\n"
            "numbers with the source of each, which products can be sliced into a shape and\n"
            "which of its axes wrap around, a collective's algorithm and source, a model's\n"
            "parameters, a scenario's text.\n"
            "\n"
            "  podsim list chips tpu-v5p\n"
            "  podsim list shapes 8x16x16\n"
            "  podsim list shapes v5p-8192\n"
            "  podsim list scenarios mlp-tp-v5p > mine.json\n",
    .operands_min = 1,
    .operands_max = 2,
    .options = list_options,
    .run = list,
};
