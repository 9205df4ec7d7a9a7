/* The options of `podsim pipeline FILE`. */
#include <string.h>

#include "sim/base/arena.h"
#include "tools/podsim/pipeline/pipeline_run.h"

/* Whether --set changes this key. */
static bool is_set(const struct options *options, const char *key)
{
    const char *setting = NULL;
    size_t const length = strlen(key);
    for (uint32_t i = 0; (setting = options_value_at(options, "--set", i)) != NULL; i++)
        if (strncmp(setting, key, length) == 0 && setting[length] == '=') return true;
    return false;
}

static enum status options_check(const struct options *options, struct error *reterr)
{
    static const char *const own[] = {"--stages", "--times"};
    static const char count_key[] = "/workload/accumulate";
    for (uint32_t i = 0; i < sizeof own / sizeof *own; i++)
        if (options_has(options, own[i]))
            return error_set(reterr, STATUS_INVALID, own[i],
                             "%s says that itself; leave the option out, or the file",
                             options->operand[0]);
    if (options_has(options, "--weight-memory"))
        return error_set(reterr, STATUS_INVALID, "--weight-memory",
                         "it is for given times; chips of %s hold what they hold",
                         options->operand[0]);
    if (is_set(options, "/workload/schedule"))
        return error_set(reterr, STATUS_INVALID, "--set",
                         "each row has a schedule of its own; name them with --schedules");
    if (is_set(options, count_key) && options_has(options, "--microbatches"))
        return error_set(reterr, STATUS_INVALID, "--set",
                         "%s and --microbatches are the same; leave one of them out", count_key);
    bool const only_files =
        options_has(options, "--schedule-csv") && !options_has(options, "--schedules");
    if (is_set(options, count_key) && only_files)
        return error_set(reterr, STATUS_INVALID, "--set",
                         "%s: a schedule's file says so itself; leave it out, or add --schedules",
                         count_key);
    if (options_has(options, "--microbatches") && only_files)
        return error_set(reterr, STATUS_INVALID, "--microbatches",
                         "a schedule's file says so itself; leave it out, or add --schedules");
    return STATUS_OK;
}

/* What the rows have in common; the scenario is built again for each. */
static enum status scenario_look(struct pipeline_run *staged, struct error *reterr)
{
    struct session session;
    enum status status = session_build(&session, &staged->source, SESSION_MESH, reterr);
    if (status == STATUS_OK) {
        const struct scenario *scenario = &session.scenario;
        const char *const kind = workload_kind_names[scenario->workload.kind];
        staged->of->rank_count = session.mesh.axis[MESH_PP].size;
        staged->default_microbatches = scenario->workload.accumulate;
        staged->chip_count = session.machine.chip_count;
        staged->hbm_bytes = session.machine.chip.hbm_capacity_bytes;
        const char *own = scenario->workload.stages.schedule;
        own = own == NULL ? WORKLOAD_SCHEDULE_DEFAULT : own;
        staged->of->own = arena_text(staged->of->arena, own);
        staged->title = arena_text(staged->of->arena, scenario->title);
        if (staged->title == NULL || staged->of->own == NULL)
            status = error_no_memory(reterr, "");
        else if (workload_serves(&scenario->workload))
            status = error_set(reterr, STATUS_INVALID, "/workload/kind",
                               "is \"%s\"; pipeline schedules are orders of a train_step's passes",
                               kind);
        else if (staged->of->rank_count < 2)
            status = error_set(reterr, STATUS_INVALID, "/mesh",
                               "has no pp, or one of a single rank: name the axis of the machine "
                               "that the stages lie on, such as \"pp\": [\"%s:2\"]",
                               machine_axis_name(&session.machine, 0));
    }
    session_close(&session);
    return status;
}

/* Files of other ranks are not of this pipeline. */
static enum status ranks_check(const struct comparison *comparison, struct error *reterr)
{
    for (uint32_t i = 0; i < comparison->row_count; i++)
        if (comparison->row[i].rank_count != comparison->rank_count)
            return error_set(reterr, STATUS_INVALID, comparison->row[i].name,
                             "%u ranks, where the scenario's mesh has %u of pp",
                             comparison->row[i].rank_count, comparison->rank_count);
    return STATUS_OK;
}

/* A lane of text has some hundred cells: of more microbatches it shows nothing. */
static const uint32_t drawn_max = 256;

/* And of more ranks, a screen. */
static const uint32_t ranks_drawn_max = 64;

void pipeline_run_close(struct comparison *comparison)
{
    struct pipeline_run *staged = comparison->owner;
    if (staged != NULL) session_source_close(&staged->source);
}

enum status pipeline_run_read(struct comparison *comparison, struct error *reterr)
{
    const struct options *options = comparison->options;
    void *memory = NULL;
    STATUS_TRY(arena_try(comparison->arena, 1, sizeof(struct pipeline_run), &memory, reterr));
    struct pipeline_run *staged = comparison->owner = memory;
    staged->of = comparison;
    STATUS_TRY(options_check(options, reterr));
    STATUS_TRY(session_source_read(options, options->operand[0], &staged->source, reterr));
    STATUS_TRY(scenario_look(staged, reterr));
    STATUS_TRY(comparison_read_rows(comparison, staged->default_microbatches, reterr));
    STATUS_TRY(ranks_check(comparison, reterr));
    STATUS_TRY(comparison_read_memory(comparison, &staged->source.schedule_held_max, reterr));
    STATUS_TRY(comparison_check_sort(comparison, reterr));
    uint32_t const ranks = comparison->rank_count;
    if (options_has(options, "--svg") && ranks > ranks_drawn_max)
        return error_set(reterr, STATUS_LIMIT, "--svg", "%u ranks are too many for a picture (%u)",
                         ranks, ranks_drawn_max);
    bool const alone =
        comparison->row_count == 1 && comparison->row[0].microbatch_count <= drawn_max;
    staged->draws_memory = options_has(options, "--svg");
    staged->draws = staged->draws_memory || (alone && ranks <= ranks_drawn_max);
    return STATUS_OK;
}
