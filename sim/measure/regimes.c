#include "sim/measure/regimes.h"

#include <stdio.h>

#include "sim/base/arena.h"
#include "sim/base/name.h"
#include "sim/choose/choose.h"
#include "sim/collective/algorithm.h"
#include "sim/collective/msccl.h"
#include "sim/measure/regimes_play.h"
#include "sim/mesh/mesh.h"

static const uint64_t peak_bytes_least = UINT64_C(16) << 30;
static const uint64_t peak_bytes_enough = UINT64_C(1) << 40;

uint64_t regimes_peak_bytes(const struct sizes *sizes)
{
    uint64_t const end_bytes = sizes->end_bytes;
    if (end_bytes >= peak_bytes_enough) return end_bytes;
    return 16 * end_bytes > peak_bytes_least ? 16 * end_bytes : peak_bytes_least;
}

uint32_t regimes_groups(const struct machine *machine, const struct group *largest,
                        struct group ret_groups[REGIMES_GROUPS_MAX])
{
    uint32_t count = 0;
    for (uint32_t d = largest->dimension_count; d-- > 0;) {
        const struct group_dimension *dimension = &largest->dimension[d];
        uint32_t before = 1;
        for (uint32_t size = 2; size <= dimension->size; size++) {
            bool const is_whole = size == dimension->size;
            if (dimension->size % size != 0 || (size < 2 * before && !is_whole)) continue;
            SIM_ASSERT(count < REGIMES_GROUPS_MAX); /* Each at least doubles. */
            struct group *group = &ret_groups[count++];
            *group = (struct group){.dimension_count = 0};
            group->dimension[group->dimension_count++] =
                is_whole ? *dimension
                         : mesh_dimension(machine, &(struct mesh_part){dimension->axis, size,
                                                                       dimension->stride});
            for (uint32_t inner = d + 1; inner < largest->dimension_count; inner++)
                group->dimension[group->dimension_count++] = largest->dimension[inner];
            before = size;
        }
    }
    return count;
}

/* The arguments of an algorithm on a group: a script is run by one only. */
static struct measure_row_args args_of(const struct regimes *regimes,
                                       const struct regimes_group *group, uint32_t algorithm)
{
    struct measure_row_args args = group->args;
    if (algorithm != regimes->msccl_at) args.script = NULL;
    return args;
}

const char *regimes_place(const struct regimes *regimes, uint32_t algorithm)
{
    return algorithm == regimes->msccl_at ? "--xml" : "--algorithm";
}

enum status regimes_choose(struct arena *arena, const struct regimes *regimes,
                           const struct regimes_group *group, uint32_t algorithm,
                           uint64_t size_bytes, const struct measure_row_choice **ret_choice,
                           struct error *reterr)
{
    struct measure_row_args const args = args_of(regimes, group, algorithm);
    return measure_row_choose(arena, &args, size_bytes, &regimes->algorithm[algorithm],
                              regimes_place(regimes, algorithm), ret_choice, reterr);
}

enum status regimes_plan_build(struct arena *arena, const struct regimes *regimes,
                               const struct regimes_group *group, uint32_t algorithm,
                               uint64_t size_bytes, struct plan *ret_plan, struct error *reterr)
{
    const struct measure_row_choice *choice = NULL;
    STATUS_TRY(regimes_choose(arena, regimes, group, algorithm, size_bytes, &choice, reterr));
    struct plan_request request = choice->request;
    plan_request_links(group->args.machine, &request);
    return plan_build(arena, &request, regimes_place(regimes, algorithm), ret_plan, reterr);
}

static enum status algorithm_add(struct regimes *regimes, const struct algorithm *algorithm,
                                 struct error *reterr)
{
    uint32_t const count = regimes->algorithm_count;
    for (uint32_t a = 0; a < count; a++)
        if (algorithm_equal(&regimes->algorithm[a], algorithm)) return STATUS_OK;
    if (regimes->algorithm_count == REGIMES_ALGORITHMS_MAX)
        return error_set(reterr, STATUS_LIMIT, "--algorithm",
                         "a map has at most %d algorithms; name those of interest",
                         REGIMES_ALGORITHMS_MAX);
    regimes->algorithm[count] = *algorithm;
    (void)snprintf(regimes->algorithm_name[count], PLAN_ALGORITHM_SIZE, "%.*s",
                   PLAN_ALGORITHM_SIZE - 1, algorithm_text(algorithm).text);
    regimes->algorithm_count = count + 1;
    return STATUS_OK;
}

/* Those that were asked for, or every one that can run on some group; not "auto", which is one of
 * the others. */
static enum status names_fill(const struct regimes_plan *plan, struct regimes *regimes,
                              struct error *reterr)
{
    for (uint32_t i = 0; i < plan->algorithm_count; i++)
        STATUS_TRY(algorithm_add(regimes, &plan->algorithms[i], reterr));
    for (uint32_t g = 0; g < regimes->group_count_max && plan->algorithm_count == 0; g++) {
        struct plan_request request;
        struct error ignored;
        if (measure_row_request(&regimes->group[g].args, plan->sizes.begin_bytes, "", &request,
                                &ignored) != STATUS_OK)
            continue;
        plan_request_links(plan->args.machine, &request);
        struct plan_algorithms const all = plan_algorithms(&request);
        for (uint32_t i = 0; i < all.count; i++)
            if (!algorithm_is_chosen(&all.of[i]) &&
                (!plan->args.protocols || choose_takes_part(&request, &all.of[i])))
                STATUS_TRY(algorithm_add(regimes, &all.of[i], reterr));
    }
    return STATUS_OK;
}

/* The script comes last, so that of equals it is not the winner. */
static enum status algorithms_fill(const struct regimes_plan *plan, struct regimes *regimes,
                                   struct error *reterr)
{
    const struct msccl_script *script = plan->args.script;
    regimes->msccl_at = REGIMES_NONE;
    STATUS_TRY(names_fill(plan, regimes, reterr));
    if (script == NULL) return STATUS_OK;
    for (uint32_t a = 0; a < regimes->algorithm_count; a++)
        if (name_same(regimes->algorithm_name[a], script->name))
            return error_set(reterr, STATUS_INVALID, "--xml",
                             "\"%.60s\" is the name of another algorithm of the map too; give the "
                             "algo another one",
                             script->name);
    struct algorithm const called = algorithm_called(script->name);
    regimes->msccl_at = regimes->algorithm_count;
    return algorithm_add(regimes, &called, reterr);
}

static enum status times_take(struct arena *arena, struct regimes *regimes, struct error *reterr)
{
    void *memory = NULL;
    for (uint32_t g = 0; g < regimes->group_count_max; g++) {
        for (uint32_t a = 0; a < regimes->algorithm_count; a++) {
            struct regimes_curve *curve = &regimes->group[g].curve[a];
            STATUS_TRY(
                arena_try(arena, regimes->size_count, sizeof *curve->time_ps, &memory, reterr));
            curve->time_ps = memory;
        }
    }
    return STATUS_OK;
}

/* Finds which algorithms have plans for which group; refuses one that was asked for and has none.
 */
static enum status applies_fill(const struct regimes_plan *plan, struct regimes *regimes,
                                struct error *reterr)
{
    for (uint32_t a = 0; a < regimes->algorithm_count; a++) {
        struct error refusal = {STATUS_OK, "", ""};
        struct plan unused;
        bool applies = false;
        for (uint32_t g = 0; g < regimes->group_count_max; g++) {
            struct regimes_group *group = &regimes->group[g];
            struct arena *arena = arena_create(0);
            if (arena == NULL) return error_no_memory(reterr, "");
            bool const has = regimes_plan_build(arena, regimes, group, a, plan->sizes.end_bytes,
                                                &unused, &refusal) == STATUS_OK;
            group->curve[a].applies = has;
            applies = applies || has;
            arena_destroy(arena);
        }
        if (!applies && (plan->algorithm_count > 0 || a == regimes->msccl_at))
            return error_set(reterr, refusal.status, refusal.where, "%s", refusal.message);
    }
    return STATUS_OK;
}

static enum status tables_take(struct arena *arena, const struct regimes_plan *plan,
                               struct regimes *regimes, struct error *reterr)
{
    void *memory = NULL;
    struct group groups[REGIMES_GROUPS_MAX];
    regimes->size_count = sizes_count(&plan->sizes);
    STATUS_TRY(arena_try(arena, regimes->size_count, sizeof *regimes->size_bytes, &memory, reterr));
    regimes->size_bytes = memory;
    uint64_t bytes = 0;
    for (uint32_t s = 0; sizes_next(&plan->sizes, &bytes); s++) regimes->size_bytes[s] = bytes;
    regimes->group_count_max = regimes_groups(plan->args.machine, &plan->args.group, groups);
    STATUS_TRY(arena_try(arena, regimes->group_count_max, sizeof *regimes->group, &memory, reterr));
    regimes->group = memory;
    for (uint32_t g = 0; g < regimes->group_count_max; g++) {
        struct regimes_group *group = &regimes->group[g];
        group->args = plan->args;
        group->args.group = groups[g];
        group->ranks = group_rank_count(&groups[g]);
        STATUS_TRY(arena_try(arena, regimes->size_count, sizeof *group->winner, &memory, reterr));
        group->winner = memory;
        STATUS_TRY(arena_try(arena, regimes->size_count, sizeof *group->strict_s, &memory, reterr));
        group->strict_s = memory;
        (void)measure_group_text(plan->args.machine, &groups[g], group->args.axes);
    }
    return STATUS_OK;
}

enum status regimes_run(struct arena *arena, const struct regimes_plan *plan,
                        struct regimes *ret_regimes, struct error *reterr)
{
    *ret_regimes = (struct regimes){.algorithm_count = 0};
    STATUS_TRY(tables_take(arena, plan, ret_regimes, reterr));
    STATUS_TRY(algorithms_fill(plan, ret_regimes, reterr));
    STATUS_TRY(applies_fill(plan, ret_regimes, reterr));
    STATUS_TRY(times_take(arena, ret_regimes, reterr));
    return regimes_play(plan, ret_regimes, reterr);
}
