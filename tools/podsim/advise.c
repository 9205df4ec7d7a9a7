#include "tools/podsim/advise.h"

#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/text.h"
#include "sim/report/facts.h"
#include "sim/report/least_memory.h"
#include "tools/podsim/report.h"
#include "tools/podsim/shell.h"

enum { SPLITS_MAX = 6 };

struct search {
    const struct chain_source *source;
    const struct chain *chain; /* Of the scenario itself. */
    struct shell *shell;
    struct advise *advise;
    uint64_t events; /* Of all rows so far, for the line of progress. */
    bool shards;     /* Replicas that do not fit become shards: dp is called fsdp in every split. */
};

/* What a neighbour's run has done; beyond the limit it stops. */
struct row_watch {
    struct search *search;
    bool too_long;
};

static bool watch(void *owner, const struct replay_progress *progress)
{
    struct row_watch *row = owner;
    struct search *search = row->search;
    row->too_long = progress->events > ADVISE_EVENTS_MAX;
    double const share = (search->advise->count + progress->share) / ADVISE_ROWS_MAX;
    return shell_progress(search->shell, share, search->events + progress->events) &&
           !row->too_long;
}

/* Plays one built neighbour and keeps what came of it. */
static enum status row_play(struct search *search, struct chain_source *source, struct chain *chain,
                            struct advise_row *row, struct error *reterr)
{
    struct least_memory least;
    STATUS_TRY(least_memory_of(chain->arena, &chain->program, &least, reterr));
    row->memory_bytes = least.total_bytes;
    row->state = ADVISE_UNFIT;
    if (least.total_bytes > search->advise->hbm_bytes) return STATUS_OK;
    struct row_watch owner = {.search = search};
    struct replay_options const options = {.watch = watch, .watch_owner = &owner};
    enum status const status = chain_replay(chain, source, &options, reterr);
    row->state = ADVISE_TOO_LONG;
    if (owner.too_long && shell_check(search->shell, reterr) == STATUS_OK) return STATUS_OK;
    if (status != STATUS_OK) return status;
    struct report_input input;
    struct facts facts;
    report_from_chain(chain, &input);
    STATUS_TRY(facts_build(chain->arena, &input, &facts, reterr));
    row->state = ADVISE_PLAYED;
    row->step_ps = chain->trace.step_ps;
    row->mfu = facts.mfu;
    row->memory_bytes = chain->trace.memory_peak_bytes;
    row->fits = row->memory_bytes <= search->advise->hbm_bytes;
    search->events += chain->trace.events;
    return STATUS_OK;
}

static bool settings_equal(const struct advise_row *one, const struct advise_row *other)
{
    if (one->setting_count != other->setting_count) return false;
    for (uint32_t i = 0; i < one->setting_count; i++)
        if (strcmp(one->setting[i], other->setting[i]) != 0) return false;
    return true;
}

static const char one_step[] = "/run/steps=1";

/* Plays the scenario with these settings, unless that has been done. */
static enum status row_add(struct search *search, struct advise_row row, struct error *reterr)
{
    struct advise *advise = search->advise;
    struct arena *arena = search->chain->arena;
    struct chain_source source = *search->source;
    struct chain chain;
    struct error error = {0};
    for (uint32_t i = 0; i < advise->count; i++)
        if (settings_equal(&advise->row[i], &row)) return STATUS_OK;
    if (advise->count == ADVISE_ROWS_MAX) return STATUS_OK;
    if (source.setting_count + row.setting_count + 1 > CHAIN_SETTINGS_MAX)
        return error_set(reterr, STATUS_LIMIT, "--advise", "too many --set beside it");
    source.full = false;
    for (uint32_t i = 0; i < row.setting_count; i++)
        source.settings[source.setting_count++].text = row.setting[i];
    /* Steps are compared, not periods, which take several. */
    if (search->chain->mesh.present[MESH_PP])
        source.settings[source.setting_count++].text = one_step;
    enum status status = chain_build(&chain, &source, CHAIN_PROGRAM, &error);
    if (status == STATUS_OK) status = row_play(search, &source, &chain, &row, &error);
    if (status != STATUS_OK && status != STATUS_INTERRUPTED && status != STATUS_NO_MEMORY) {
        row.state = ADVISE_REFUSED;
        row.why = arena_text(arena, error.message);
        status = row.why == NULL ? error_set(&error, STATUS_NO_MEMORY, "", "there is no memory")
                                 : STATUS_OK;
    }
    chain_close(&chain);
    if (status != STATUS_OK) *reterr = error;
    if (status == STATUS_OK) advise->row[advise->count++] = row;
    return status;
}

/* One more change has to gain half a percent. */
static bool is_better(const struct advise_row *row, const struct advise_row *best)
{
    if (row->setting_count <= best->setting_count) return row->step_ps < best->step_ps;
    return row->step_ps < best->step_ps - best->step_ps / 200;
}

static void best_find(struct advise *advise)
{
    advise->best = ADVISE_NONE;
    for (uint32_t i = 0; i < advise->count; i++) {
        const struct advise_row *row = &advise->row[i];
        if (row->state != ADVISE_PLAYED || !row->fits) continue;
        if (advise->best == ADVISE_NONE || is_better(row, &advise->row[advise->best]))
            advise->best = i;
    }
}

/* The mesh axis that has what tp has not: weights and batch, or the batch alone. */
static enum mesh_role data_role(const struct mesh *mesh)
{
    return mesh->present[MESH_FSDP] || !mesh->present[MESH_DP] ? MESH_FSDP : MESH_DP;
}

/* How many ranks of a role lie along each axis of the machine. */
static void ranks_on_axes(const struct mesh *mesh, enum mesh_role role,
                          uint32_t ret_ranks[MACHINE_AXES_MAX])
{
    for (uint32_t axis = 0; axis < MACHINE_AXES_MAX; axis++) ret_ranks[axis] = 1;
    const struct mesh_axis *axis = &mesh->axis[role];
    for (uint32_t p = 0; mesh->present[role] && p < axis->part_count; p++)
        ret_ranks[axis->part[p].axis] *= axis->part[p].size;
}

/* The axis along which neighbours are nearest: tp's own, else the nodes' GPUs or the last of the
 * grid. */
static uint32_t tp_axis(const struct chain *chain)
{
    const struct mesh *mesh = &chain->mesh;
    const struct mesh_axis *tp = &mesh->axis[MESH_TP];
    if (mesh->present[MESH_TP] && tp->part_count > 0) return tp->part[tp->part_count - 1].axis;
    const struct machine *machine = &chain->machine;
    return machine->chip.kind == CHIP_GPU ? 0 : machine->grid_axis_count - 1;
}

static void part_add(const struct machine *machine, uint32_t axis, uint32_t ranks, bool *first,
                     struct text *text)
{
    if (ranks == 1) return;
    text_add(text, "%s\"%s", *first ? "" : ",", machine_axis_name(machine, axis));
    text_add(text, ranks == machine->shape[axis] ? "\"" : ":%u\"", ranks);
    *first = false;
}

/* A role's ranks on each axis of the machine as a member of the mesh. */
static void role_add(const struct machine *machine, enum mesh_role role,
                     const uint32_t ranks[MACHINE_AXES_MAX], bool *first, struct text *text)
{
    uint32_t all = 1;
    bool first_part = true;
    for (uint32_t axis = 0; axis < machine->axis_count; axis++) all *= ranks[axis];
    if (all == 1) return;
    text_add(text, "%s\"%s\":[", *first ? "" : ",", mesh_role_name(role));
    *first = false;
    for (uint32_t axis = 0; axis < machine->axis_count; axis++)
        part_add(machine, axis, ranks[axis], &first_part, text);
    text_add(text, "]");
}

/* "/mesh={...}" with tp over so many neighbours of its axis and the data axis over the rest of what
 * both have; every other axis stays. NULL: no memory. */
static const char *mesh_setting(const struct search *search, uint32_t tp_ranks)
{
    const struct chain *chain = search->chain;
    const struct mesh *mesh = &chain->mesh;
    enum mesh_role const data = data_role(mesh);
    uint32_t const along = tp_axis(chain);
    uint32_t ranks[MESH_ROLE_COUNT][MACHINE_AXES_MAX];
    for (uint32_t role = 0; role < MESH_ROLE_COUNT; role++)
        ranks_on_axes(mesh, (enum mesh_role)role, ranks[role]);
    for (uint32_t axis = 0; axis < MACHINE_AXES_MAX; axis++) {
        ranks[data][axis] *= ranks[MESH_TP][axis];
        ranks[MESH_TP][axis] = 1;
    }
    ranks[MESH_TP][along] = tp_ranks;
    ranks[data][along] /= tp_ranks;
    struct text text = {0};
    bool first = true;
    text_add(&text, "/mesh={");
    for (uint32_t role = 0; role < MESH_ROLE_COUNT; role++)
        role_add(&chain->machine,
                 search->shards && role == MESH_DP ? MESH_FSDP : (enum mesh_role)role, ranks[role],
                 &first, &text);
    text_add(&text, "}");
    const char *setting = text.failed ? NULL : arena_text(chain->arena, text.bytes);
    text_free(&text);
    return setting;
}

/* Powers of two of neighbours that tp may have, and what it has. */
static uint32_t splits_find(const struct chain *chain, uint32_t ret_ranks[SPLITS_MAX])
{
    uint32_t tp[MACHINE_AXES_MAX], data[MACHINE_AXES_MAX], count = 0;
    uint32_t const along = tp_axis(chain);
    ranks_on_axes(&chain->mesh, MESH_TP, tp);
    ranks_on_axes(&chain->mesh, data_role(&chain->mesh), data);
    uint32_t const room = tp[along] * data[along];
    for (uint32_t ranks = 1; ranks <= room && count < SPLITS_MAX; ranks *= 2)
        if (room % ranks == 0) ret_ranks[count++] = ranks;
    return count;
}

static enum status setting_add(struct arena *arena, struct advise_row *row, const char *setting,
                               struct error *reterr)
{
    SIM_ASSERT(row->setting_count < ADVISE_SETTINGS_MAX);
    row->setting[row->setting_count] = setting == NULL ? NULL : arena_text(arena, setting);
    if (row->setting[row->setting_count++] == NULL)
        return error_set(reterr, STATUS_NO_MEMORY, "--advise", "there is no memory");
    return STATUS_OK;
}

/* Whether tp has these ranks already, along the axis that splits are of. */
static bool split_is_current(const struct chain *chain, uint32_t tp_ranks)
{
    uint32_t tp[MACHINE_AXES_MAX];
    ranks_on_axes(&chain->mesh, MESH_TP, tp);
    return chain->mesh.axis[MESH_TP].size == tp[tp_axis(chain)] && tp[tp_axis(chain)] == tp_ranks;
}

/* Every split of tp, with remat as it is and with either of the usual ones. */
static enum status splits_play(struct search *search, struct error *reterr)
{
    static const struct {
        enum workload_remat remat;
        const char *setting;
    } remats[] = {{WORKLOAD_REMAT_NONE, "/workload/remat=none"},
                  {WORKLOAD_REMAT_BLOCK, "/workload/remat=block"}};
    const struct chain *chain = search->chain;
    uint32_t ranks[SPLITS_MAX];
    uint32_t const splits = splits_find(chain, ranks);
    for (uint32_t s = 0; s < splits; s++) {
        struct advise_row split = {.setting_count = 0};
        if (search->shards || !split_is_current(chain, ranks[s]))
            STATUS_TRY(setting_add(chain->arena, &split, mesh_setting(search, ranks[s]), reterr));
        if (search->shards && chain->scenario.workload.zero > 0)
            STATUS_TRY(setting_add(chain->arena, &split, "/workload/zero=0", reterr));
        STATUS_TRY(row_add(search, split, reterr));
        for (uint32_t r = 0; r < sizeof remats / sizeof *remats; r++) {
            struct advise_row row = split;
            if (chain->scenario.workload.remat == remats[r].remat) continue;
            STATUS_TRY(setting_add(chain->arena, &row, remats[r].setting, reterr));
            STATUS_TRY(row_add(search, row, reterr));
        }
    }
    return STATUS_OK;
}

/* The best so far with one thing more changed. */
static enum status rest_play(struct search *search, struct error *reterr)
{
    const struct workload_plan *plan = &search->chain->scenario.workload;
    struct arena *arena = search->chain->arena;
    const char *const settings[] = {
        plan->collective_matmul ? "/run/collective_matmul=false" : "/run/collective_matmul=true",
        plan->prefetch_layers == 1 ? "/run/prefetch_layers=2" : "/run/prefetch_layers=1",
    };
    for (uint32_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        best_find(search->advise);
        if (search->advise->best == ADVISE_NONE) return STATUS_OK;
        struct advise_row row = {.setting_count = 0};
        const struct advise_row *best = &search->advise->row[search->advise->best];
        memcpy(row.setting, best->setting, sizeof row.setting);
        row.setting_count = best->setting_count;
        STATUS_TRY(setting_add(arena, &row, settings[i], reterr));
        STATUS_TRY(row_add(search, row, reterr));
    }
    return STATUS_OK;
}

/* Where nothing fits so far: weights sharded instead of replicated, then smaller microbatches. */
static enum status smaller_play(struct search *search, struct error *reterr)
{
    struct arena *arena = search->chain->arena;
    const struct workload_plan *plan = &search->chain->scenario.workload;
    bool const shards = search->chain->mesh.present[MESH_DP];
    for (uint32_t more = 2; more <= 16; more *= 2) {
        best_find(search->advise);
        if (search->advise->best != ADVISE_NONE) return STATUS_OK;
        struct advise_row row = {.setting_count = 0};
        STATUS_TRY(setting_add(
            arena, &row, arena_format(arena, "/workload/accumulate=%u", plan->accumulate * more),
            reterr));
        STATUS_TRY(setting_add(arena, &row, "/workload/remat=block", reterr));
        if (shards && plan->zero < 3)
            STATUS_TRY(setting_add(arena, &row, "/workload/zero=3", reterr));
        STATUS_TRY(row_add(search, row, reterr));
    }
    return STATUS_OK;
}

enum status advise_run(const struct chain_source *source, const struct chain *chain,
                       struct shell *shell, struct advise *ret_advise, struct error *reterr)
{
    *ret_advise = (struct advise){.hbm_bytes = chain->machine.chip.hbm_capacity_bytes};
    struct search search = {.source = source, .chain = chain, .shell = shell, .advise = ret_advise};
    STATUS_TRY(row_add(&search, (struct advise_row){.setting_count = 0}, reterr));
    search.shards = !ret_advise->row[0].fits && data_role(&chain->mesh) == MESH_DP &&
                    !chain->mesh.present[MESH_PP];
    STATUS_TRY(splits_play(&search, reterr));
    STATUS_TRY(smaller_play(&search, reterr));
    STATUS_TRY(rest_play(&search, reterr));
    best_find(ret_advise);
    return STATUS_OK;
}
