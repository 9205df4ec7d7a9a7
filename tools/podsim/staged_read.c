/* The options of `podsim pipeline FILE`. */
#include <string.h>

#include "sim/base/arena.h"
#include "sim/schedule/schedule_csv.h"
#include "tools/podsim/input.h"
#include "tools/podsim/lists.h"
#include "tools/podsim/staged.h"

static enum status options_check(const struct options *options, struct error *reterr)
{
    static const char *const own[] = {"--stages", "--times"};
    static const char *const given[] = {"--weight-memory", "--memory"};
    static const char key[] = "/workload/schedule=";
    const char *setting = NULL;
    for (uint32_t i = 0; i < sizeof own / sizeof *own; i++)
        if (options_has(options, own[i]))
            return error_set(reterr, STATUS_INVALID, own[i],
                             "%s says that itself; leave the option out, or the file",
                             options->operand[0]);
    for (uint32_t i = 0; i < sizeof given / sizeof *given; i++)
        if (options_has(options, given[i]))
            return error_set(reterr, STATUS_INVALID, given[i],
                             "it is for given times; chips of %s hold what they hold",
                             options->operand[0]);
    for (uint32_t i = 0; (setting = options_value_at(options, "--set", i)) != NULL; i++)
        if (strncmp(setting, key, sizeof key - 1) == 0)
            return error_set(reterr, STATUS_INVALID, "--set",
                             "each row has a schedule of its own; name them with --schedules");
    if (options_has(options, "--microbatches") && options_has(options, "--csv") &&
        !options_has(options, "--schedules"))
        return error_set(reterr, STATUS_INVALID, "--microbatches",
                         "a schedule's file says so itself; leave it out, or add --schedules");
    return STATUS_OK;
}

/* What the rows have in common; the scenario is built again for each. */
static enum status scenario_look(struct staged *staged, struct error *reterr)
{
    struct chain chain;
    enum status status = chain_build(&chain, &staged->source, CHAIN_MESH, reterr);
    if (status == STATUS_OK) {
        const struct scenario *scenario = &chain.scenario;
        staged->rank_count = chain.mesh.axis[MESH_PP].size;
        staged->default_microbatches = scenario->workload.accumulate;
        staged->chip_count = chain.machine.chip_count;
        staged->hbm_bytes = chain.machine.chip.hbm_capacity_bytes;
        staged->title = arena_text(staged->arena, scenario->title);
        if (staged->title == NULL)
            status = error_set(reterr, STATUS_NO_MEMORY, "", "there is no memory");
        else if (staged->rank_count < 2)
            status = error_set(reterr, STATUS_INVALID, "/mesh",
                               "has no pp: name the axis of the machine that the stages lie on, "
                               "such as \"pp\": \"%s:2\"",
                               machine_axis_name(&chain.machine, 0));
    }
    chain_close(&chain);
    return status;
}

static enum status row_add(struct staged *staged, struct staged_row **ret_row, struct error *reterr)
{
    if (staged->row_count == STAGED_ROWS_MAX)
        return error_set(reterr, STATUS_LIMIT, "--schedules", "more than %d rows", STAGED_ROWS_MAX);
    *ret_row = &staged->row[staged->row_count++];
    return STATUS_OK;
}

static enum status forms_read(struct staged *staged, struct error *reterr)
{
    const char *text = options_value(staged->options, "--schedules");
    struct lists_forms forms;
    if (text == NULL && options_has(staged->options, "--csv")) return STATUS_OK;
    STATUS_TRY(lists_forms(staged->arena, text, "--schedules", &forms, reterr));
    for (uint32_t i = 0; i < forms.count; i++) {
        for (uint32_t k = 0; k < staged->count; k++) {
            struct staged_row *row = NULL;
            STATUS_TRY(row_add(staged, &row, reterr));
            row->form = forms.form[i].form;
            row->chunk_count = forms.form[i].chunk_count;
            row->microbatch_count = staged->microbatches[k];
            row->name = row->form->chunks != 0 ? row->form->name
                                               : arena_format(staged->arena, "%s:%u",
                                                              row->form->name, row->chunk_count);
            if (row->name == NULL)
                return error_set(reterr, STATUS_NO_MEMORY, "--schedules", "there is no memory");
        }
    }
    return STATUS_OK;
}

static enum status files_read(struct staged *staged, struct error *reterr)
{
    const char *path = NULL;
    for (uint32_t i = 0; (path = options_value_at(staged->options, "--csv", i)) != NULL; i++) {
        struct staged_row *row = NULL;
        char *text = NULL;
        uint64_t size_bytes = 0;
        void *memory = NULL;
        STATUS_TRY(row_add(staged, &row, reterr));
        STATUS_TRY(
            input_load(staged->arena, path, SCHEDULE_CSV_BYTES_MAX, &text, &size_bytes, reterr));
        STATUS_TRY(arena_try(staged->arena, 1, sizeof(struct schedule), &memory, reterr));
        struct schedule *given = memory;
        STATUS_TRY(schedule_csv_read(staged->arena, text, size_bytes, path, given, reterr));
        if (given->rank_count != staged->rank_count)
            return error_set(reterr, STATUS_INVALID, path,
                             "%u ranks, where the scenario's mesh has %u of pp", given->rank_count,
                             staged->rank_count);
        row->given = given;
        row->name = given->name;
        row->chunk_count = given->chunk_count;
        row->microbatch_count = given->microbatch_count;
    }
    return STATUS_OK;
}

enum status staged_read(struct staged *staged, struct error *reterr)
{
    const struct options *options = staged->options;
    const char *microbatches = options_value(options, "--microbatches");
    STATUS_TRY(options_check(options, reterr));
    chain_source_read(options, options->operand[0], &staged->source);
    STATUS_TRY(scenario_look(staged, reterr));
    if (microbatches != NULL)
        STATUS_TRY(lists_counts(microbatches, "--microbatches", SCHEDULE_MICROBATCHES_MAX,
                                staged->microbatches, STAGED_COUNTS_MAX, &staged->count, reterr));
    else
        staged->microbatches[staged->count++] = staged->default_microbatches;
    STATUS_TRY(forms_read(staged, reterr));
    STATUS_TRY(files_read(staged, reterr));
    if (options_has(options, "--svg") && staged->rank_count > TRACE_SHOWN_MAX)
        return error_set(reterr, STATUS_LIMIT, "--svg", "%u ranks are too many for a picture (%d)",
                         staged->rank_count, TRACE_SHOWN_MAX);
    staged->draws = staged->rank_count <= TRACE_SHOWN_MAX &&
                    (options_has(options, "--svg") || staged->row_count == 1);
    return STATUS_OK;
}
