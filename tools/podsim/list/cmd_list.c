/*
 * cmd_list.c: the catalogues, and one entry of one.
 */
#include <stdio.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/name.h"
#include "sim/base/strbuf.h"
#include "tools/podsim/common/command.h"
#include "tools/podsim/common/output.h"
#include "tools/podsim/common/report.h"
#include "tools/podsim/list/list_text.h"

static const struct option list_options[] = {{0}};

static const struct {
    const char *name;
    const struct list_entries *entries; /* NULL: `all` and `one` say it. */
    list_all_fn *all;    /* What stands behind the entries, if there are some; NULL: nothing. */
    list_one_fn *one;    /* NULL: list_entry_add(). */
    const char *help;    /* What the entries are, and where a scenario names one. */
    const char *example; /* The name of an entry. */
} catalogues[] = {
    {"chips", NULL, list_chips, list_chip, "TPUs and GPUs, for a machine's \"chip\" and --machine",
     "h100-sxm"},
    {"shapes", NULL, list_shapes, list_shape,
     "slices of TPUs that are sold, for a machine's \"shape\"", "v5p-8192"},
    {"collectives", &list_primitives, list_algorithms, NULL,
     "algorithms, for \"algorithm\" in a run and --algorithm", "all_gather_ring"},
    {"models", NULL, list_models, list_model, "Hugging Face models, for a workload's \"model\"",
     "llama-3-70b"},
    {"blocks", &list_blocks, NULL, NULL, "parts of models, for podsim show graph", "experts"},
    {"ops", &list_ops, NULL, NULL, "kinds of ops in blocks", "attention"},
    {"kernels", NULL, list_kernels, list_kernel,
     "measured kernels by chip, for a machine's \"stack\"", "h100-sxm.trtllm"},
    {"recipes", &list_recipes, NULL, NULL,
     "how operands of products are cast to fp8, for a workload's \"fp8_recipe\"", "delayed"},
    {"presets", NULL, list_presets, list_preset,
     "what frameworks shard, recompute and overlap, for --preset and a scenario's \"preset\"",
     "megatron"},
    {"schedules", &list_forms, NULL, list_schedule,
     "orders of a pipeline's passes, for \"schedule\" and --schedules", "zb-v"},
    {"scenarios", NULL, list_scenarios, list_scenario,
     "steps with the questions that they answer, for podsim run", "llama3-70b-fsdp-v5p-16x16x16"},
};
enum { CATALOGUE_COUNT = sizeof catalogues / sizeof *catalogues };

/* The catalogues themselves, each with an entry to look at. */
static void list_catalogues(struct strbuf *text)
{
    strbuf_add(text, "podsim list CATALOGUE [NAME]\n\n");
    for (size_t i = 0; i < CATALOGUE_COUNT; i++) {
        strbuf_add(text, "  %s", catalogues[i].name);
        strbuf_pad(text, 16);
        strbuf_add(text, "%s\n", catalogues[i].help);
    }
    strbuf_add(text, "\nOne entry with all its details:\n\n");
    for (size_t i = 0; i < CATALOGUE_COUNT; i++)
        strbuf_add(text, "  podsim list %s %s\n", catalogues[i].name, catalogues[i].example);
}

static enum status list_text(struct arena *arena, const struct options *options,
                             struct strbuf *text, struct error *reterr)
{
    const char *names[CATALOGUE_COUNT + 1] = {0};
    if (options->operand_count == 0) {
        list_catalogues(text);
        return STATUS_OK;
    }
    for (size_t i = 0; i < CATALOGUE_COUNT; i++) {
        names[i] = catalogues[i].name;
        if (strcmp(options->operand[0], names[i]) != 0) continue;
        const struct list_entries *const entries = catalogues[i].entries;
        if (options->operand_count == 2)
            return catalogues[i].one != NULL
                       ? catalogues[i].one(arena, options->operand[1], text, reterr)
                       : list_entry_add(arena, entries, options->operand[1], text, reterr);
        if (entries != NULL) list_entries_add(entries, text);
        return catalogues[i].all == NULL ? STATUS_OK : catalogues[i].all(arena, text, reterr);
    }
    return error_set(reterr, STATUS_NOT_FOUND, options->operand[0], "no such catalogue%s",
                     name_offer(options->operand[0], names, "; the nearest is ", "", NULL).text);
}

static int list(const struct options *options)
{
    struct error error = {0};
    struct strbuf text = {.columns = report_columns(1)};
    struct arena *arena = arena_create(0);
    enum status status = STATUS_OK;
    if (arena == NULL) status = error_no_memory(&error, "");
    if (status == STATUS_OK) status = list_text(arena, options, &text, &error);
    if (status == STATUS_OK) status = output_print(&text, false, &error);
    strbuf_free(&text);
    arena_destroy(arena);
    return status == STATUS_OK ? EXIT_DONE : command_fail(NULL, &error);
}

const struct command command_list = {
    .name = "list",
    .usage = "podsim list [CATALOGUE [NAME]]",
    .summary = "what a scenario may name, and where its numbers come from",
    .help = "Without CATALOGUE it lists the catalogues, without NAME the entries of a catalogue.\n"
            "With NAME it prints all of an entry: a chip's numbers with the source of each, the\n"
            "products that can be sliced into a shape and the axes that wrap around, a\n"
            "collective's algorithm and source, a model's parameters, a scenario's text.\n"
            "\n"
            "  podsim list chips tpu-v5p\n"
            "  podsim list shapes 8x16x16\n"
            "  podsim list shapes v5p-8192\n"
            "  podsim list scenarios mlp-tp-v5p > mine.json\n",
    .operands_min = 0,
    .operands_max = 2,
    .options = list_options,
    .run = list,
};
