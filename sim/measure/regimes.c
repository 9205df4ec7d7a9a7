#include "sim/measure/regimes.h"

#include <stdio.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/name.h"
#include "sim/base/units.h"
#include "sim/choose/choose.h"
#include "sim/choose/estimate.h"
#include "sim/collective/algorithm.h"
#include "sim/collective/msccl.h"
#include "sim/mesh/mesh.h"
#include "sim/roofline/collective_bound.h"

static const double half = 0.5;
static const double most = 0.95;

static const uint64_t peak_bytes_least = UINT64_C(16) << 30;
static const uint64_t peak_bytes_enough = UINT64_C(1) << 40;

/* What is being played. */
struct study {
    const struct regimes_plan *plan;
    struct regimes *regimes;
    struct regimes_group *group;
    struct error *reterr;
};

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

/* The question of an algorithm: a script is played by one only. */
static struct measure_row_question question_of(const struct study *study, uint32_t algorithm)
{
    struct measure_row_question question = study->group->question;
    if (algorithm != study->regimes->msccl_at) question.script = NULL;
    return question;
}

static const char *place_of(const struct study *study, uint32_t algorithm)
{
    return algorithm == study->regimes->msccl_at ? "--xml" : "--algorithm";
}

static enum status play(struct study *study, uint32_t algorithm, uint64_t size_bytes,
                        int64_t *ret_ps)
{
    const struct regimes_plan *plan = study->plan;
    struct regimes *regimes = study->regimes;
    const struct measure_row_choice *choice = NULL;
    struct measured measured = {.plans = NULL};
    struct measure_row_question const question = question_of(study, algorithm);
    const char *const where = place_of(study, algorithm);
    struct arena *arena = arena_create(0);
    if (arena == NULL) return error_set(study->reterr, STATUS_NO_MEMORY, "", "there is no memory");
    enum status status = measure_row_choose(
        arena, &question, size_bytes, regimes->algorithm[algorithm], where, &choice, study->reterr);
    if (status == STATUS_OK)
        status = measure_run(arena, plan->question.machine, &choice->request, 1, where, &plan->run,
                             &measured, study->reterr);
    uint64_t const events = measured.trace.work.events;
    *ret_ps = measured.time_ps[0];
    arena_destroy(arena);
    if (status != STATUS_OK) return status;
    regimes->run_count++;
    double const share = (double)regimes->group_count / regimes->group_count_max;
    if (plan->watch != NULL && !plan->watch(plan->watch_owner, share, events))
        return error_set(study->reterr, STATUS_INTERRUPTED, "", "interrupted");
    return STATUS_OK;
}

static uint64_t bit(uint32_t algorithm)
{
    return UINT64_C(1) << algorithm;
}

/* The first of the fastest at a size, of the algorithms whose bits are set. */
static enum status fastest(struct study *study, uint64_t among, uint64_t size_bytes,
                           uint8_t *ret_winner, int64_t *ret_ps)
{
    *ret_ps = INT64_MAX;
    *ret_winner = REGIMES_NONE;
    for (uint32_t a = 0; a < study->regimes->algorithm_count; a++) {
        int64_t time_ps = 0;
        if (!study->group->curve[a].applies || (among & bit(a)) == 0) continue;
        STATUS_TRY(play(study, a, size_bytes, &time_ps));
        if (time_ps >= *ret_ps) continue;
        *ret_ps = time_ps;
        *ret_winner = (uint8_t)a;
    }
    SIM_ASSERT(*ret_winner != REGIMES_NONE);
    return STATUS_OK;
}

/* Everything between two sizes with known winners, to a thousandth of a size: where the second
 * passes the first, found by these two alone; then, unless a third wins there, that is the change.
 */
static enum status crossovers_find(struct study *study, uint64_t low, uint8_t low_winner,
                                   uint64_t high, uint8_t high_winner)
{
    struct regimes_group *group = study->group;
    uint64_t const two = bit(low_winner) | bit(high_winner), all = UINT64_MAX;
    uint64_t before = low, after = high;
    uint8_t winner = 0;
    int64_t time_ps = 0;
    if (low_winner == high_winner) return STATUS_OK;
    if (group->crossover_count == REGIMES_CROSSOVERS_MAX)
        return error_set(study->reterr, STATUS_LIMIT, "--algorithm",
                         "the winner changes more than %d times; name fewer of those that run here",
                         REGIMES_CROSSOVERS_MAX);
    while (after - before > 1 && after - before > before / 1000) {
        uint64_t const middle = before + (after - before) / 2;
        STATUS_TRY(fastest(study, two, middle, &winner, &time_ps));
        if (winner == low_winner)
            before = middle;
        else
            after = middle;
    }
    winner = high_winner;
    if (after != high) STATUS_TRY(fastest(study, all, after, &winner, &time_ps));
    if (winner == high_winner || winner == low_winner) {
        group->crossover[group->crossover_count++] =
            (struct regimes_crossover){after, low_winner, high_winner};
        return STATUS_OK;
    }
    STATUS_TRY(crossovers_find(study, low, low_winner, after, winner));
    return crossovers_find(study, after, winner, high, high_winner);
}

/* By how many bytes a size is above what the wanted rate moves in its time: 0 and more is enough.
 */
static double surplus(uint64_t size_bytes, int64_t time_ps, double wanted_bytes_per_s)
{
    return (double)size_bytes - wanted_bytes_per_s * units_seconds(time_ps);
}

/* Two sizes, the lower without and the higher with a surplus. */
struct bracket {
    uint64_t low, high;
    double low_surplus, high_surplus;
};

/* The next size to try. Times are nearly straight lines, so the first guess is where a line through
 * both ends crosses 0, and the second a little beside it on the other side; then halves. */
static uint64_t bracket_guess(const struct bracket *bracket, uint32_t tries, bool was_enough)
{
    uint64_t const span = bracket->high - bracket->low;
    double const rise = bracket->high_surplus - bracket->low_surplus;
    uint64_t const beside = was_enough ? bracket->high - bracket->high / 1200 - 1
                                       : bracket->low + bracket->low / 1200 + 1;
    uint64_t guess = bracket->low + span / 2;
    if (tries == 0 && rise > 0)
        guess = bracket->low + (uint64_t)((double)span * (-bracket->low_surplus / rise)) + 1;
    else if (tries == 1)
        guess = beside;
    return guess > bracket->low && guess < bracket->high ? guess : bracket->low + span / 2;
}

/* The least size (to a thousandth) with a wanted rate; 0 if it is beyond the size of the peak. */
static enum status size_find(struct study *study, uint64_t among, double wanted_bytes_per_s,
                             uint64_t *ret_bytes)
{
    struct bracket bracket = {0, 1, 0, 0};
    uint8_t winner = 0;
    int64_t time_ps = 0;
    for (;; bracket.high *= 16) {
        STATUS_TRY(fastest(study, among, bracket.high, &winner, &time_ps));
        bracket.high_surplus = surplus(bracket.high, time_ps, wanted_bytes_per_s);
        if (bracket.high_surplus >= 0) break;
        bracket.low = bracket.high;
        bracket.low_surplus = bracket.high_surplus;
        if (bracket.high > regimes_peak_bytes(&study->plan->sizes)) {
            *ret_bytes = 0;
            return STATUS_OK;
        }
    }
    bool was_enough = true;
    for (uint32_t tries = 0;
         bracket.high - bracket.low > 1 && bracket.high - bracket.low > bracket.low / 1000;
         tries++) {
        uint64_t const guess = bracket_guess(&bracket, tries, was_enough);
        STATUS_TRY(fastest(study, among, guess, &winner, &time_ps));
        double const found = surplus(guess, time_ps, wanted_bytes_per_s);
        was_enough = found >= 0;
        if (was_enough) {
            bracket.high = guess;
            bracket.high_surplus = found;
        } else {
            bracket.low = guess;
            bracket.low_surplus = found;
        }
    }
    *ret_bytes = bracket.high;
    return STATUS_OK;
}

/* Floor, peak, and the sizes that have half of the peak and 95 %. */
static enum status landmarks_find(struct study *study, uint64_t among, struct regimes_curve *curve)
{
    uint64_t const largest = regimes_peak_bytes(&study->plan->sizes);
    uint8_t winner = 0;
    int64_t time_ps = 0;
    STATUS_TRY(fastest(study, among, 1, &winner, &curve->floor_ps));
    STATUS_TRY(fastest(study, among, largest, &winner, &time_ps));
    curve->peak_bytes_per_s = (double)largest / units_seconds(time_ps);
    STATUS_TRY(size_find(study, among, half * curve->peak_bytes_per_s, &curve->half_bytes));
    return size_find(study, among, most * curve->peak_bytes_per_s, &curve->most_bytes);
}

/* What the fabric allows: the line through its bounds of one byte and of the largest size. */
static enum status bound_fill(const struct study *study)
{
    struct regimes_group *group = study->group;
    const struct measure_row_question *question = &group->question;
    const uint64_t size_bytes = study->plan->sizes.end_bytes;
    struct plan_request request;
    struct collective_bound bound;
    STATUS_TRY(measure_row_request(question, size_bytes, "", &request, study->reterr));
    struct collective_query query = {
        .kind = request.kind,
        .array_bytes = request.size_bytes,
        .element_bits = request.element_bits,
        .root = request.root,
    };
    memcpy(query.offset, request.offset, sizeof query.offset);
    collective_bound(question->machine, &question->group, &query, &bound);
    group->bound_alpha_s = bound.latency_s;
    group->bound_beta_s_per_byte = bound.bytes_s / (double)size_bytes;
    group->bound_by = bound.bound_by;
    return STATUS_OK;
}

/* The plan for a size; the arena is the caller's. */
static enum status plan_make(struct study *study, uint32_t algorithm, uint64_t size_bytes,
                             struct arena *arena, struct plan *ret_plan, struct error *reterr)
{
    const struct measure_row_choice *choice = NULL;
    struct measure_row_question const question = question_of(study, algorithm);
    const char *const where = place_of(study, algorithm);
    STATUS_TRY(measure_row_choose(arena, &question, size_bytes,
                                  study->regimes->algorithm[algorithm], where, &choice, reterr));
    struct plan_request request = choice->request;
    plan_request_links(study->plan->question.machine, &request);
    return plan_build(arena, &request, where, ret_plan, reterr);
}

/* What idle links would give: the start of the plan for the least size, which is cut into the
 * fewest pieces, and the rate of that for the greatest. */
static enum status theory_fill(struct study *study, uint32_t algorithm, struct regimes_curve *curve)
{
    const struct sizes *sizes = &study->plan->sizes;
    struct plan least, greatest;
    if (algorithm == study->regimes->msccl_at) return STATUS_OK;
    struct arena *arena = arena_create(0);
    if (arena == NULL) return error_set(study->reterr, STATUS_NO_MEMORY, "", "there is no memory");
    enum status status =
        plan_make(study, algorithm, sizes->begin_bytes, arena, &least, study->reterr);
    if (status == STATUS_OK)
        status = plan_make(study, algorithm, sizes->end_bytes, arena, &greatest, study->reterr);
    if (status == STATUS_OK) {
        const struct measure_row_question *question = &study->plan->question;
        struct collective_estimate start, rate;
        collective_estimate(question->machine, &least, question->known, &start);
        collective_estimate(question->machine, &greatest, question->known, &rate);
        curve->has_theory = true;
        curve->theory_alpha_s = start.alpha_s;
        curve->theory_beta_s_per_byte =
            rate.beta_s_per_byte * ((double)greatest.size_bytes / (double)sizes->end_bytes);
    }
    arena_destroy(arena);
    return status;
}

/* All that one algorithm does on a group. What the replay does not model is left out. */
static enum status curve_play(struct arena *arena, struct study *study, uint32_t algorithm)
{
    struct regimes *regimes = study->regimes;
    struct regimes_curve *curve = &study->group->curve[algorithm];
    void *memory = NULL;
    STATUS_TRY(
        arena_try(arena, regimes->size_count, sizeof *curve->time_ps, &memory, study->reterr));
    curve->time_ps = memory;
    for (uint32_t s = 0; s < regimes->size_count; s++) {
        enum status const status =
            play(study, algorithm, regimes->size_bytes[s], &curve->time_ps[s]);
        if (status == STATUS_UNSUPPORTED && study->plan->algorithm_count == 0) {
            curve->applies = false;
            return STATUS_OK;
        }
        if (status != STATUS_OK) return status;
    }
    curve->fit = fit_line(regimes->size_bytes, curve->time_ps, regimes->size_count);
    STATUS_TRY(theory_fill(study, algorithm, curve));
    return landmarks_find(study, bit(algorithm), curve);
}

static enum status group_play(struct arena *arena, struct study *study)
{
    struct regimes *regimes = study->regimes;
    struct regimes_group *group = study->group;
    uint32_t const sizes = regimes->size_count;
    void *memory = NULL;
    STATUS_TRY(arena_try(arena, sizes, sizeof *group->winner, &memory, study->reterr));
    group->winner = memory;
    for (uint32_t a = 0; a < regimes->algorithm_count; a++)
        if (group->curve[a].applies) STATUS_TRY(curve_play(arena, study, a));
    for (uint32_t s = 0; s < sizes; s++) {
        group->winner[s] = REGIMES_NONE;
        for (uint32_t a = 0; a < regimes->algorithm_count; a++) {
            uint8_t const best = group->winner[s];
            if (group->curve[a].applies &&
                (best == REGIMES_NONE ||
                 group->curve[a].time_ps[s] < group->curve[best].time_ps[s]))
                group->winner[s] = (uint8_t)a;
        }
    }
    STATUS_TRY(bound_fill(study));
    if (group->winner[0] == REGIMES_NONE) return STATUS_OK;
    for (uint32_t s = 1; s < sizes; s++)
        STATUS_TRY(crossovers_find(study, regimes->size_bytes[s - 1], group->winner[s - 1],
                                   regimes->size_bytes[s], group->winner[s]));
    uint64_t winners = 0;
    for (uint32_t s = 0; s < sizes; s++) winners |= bit(group->winner[s]);
    return landmarks_find(study, winners, &group->best);
}

static enum status algorithm_add(struct regimes *regimes, const char *name, struct error *reterr)
{
    for (uint32_t a = 0; a < regimes->algorithm_count; a++)
        if (name_same(regimes->algorithm[a], name)) return STATUS_OK;
    if (regimes->algorithm_count == REGIMES_ALGORITHMS_MAX)
        return error_set(reterr, STATUS_LIMIT, "--algorithm",
                         "a map has at most %d algorithms; name those of interest",
                         REGIMES_ALGORITHMS_MAX);
    (void)snprintf(regimes->algorithm[regimes->algorithm_count++], PLAN_ALGORITHM_SIZE, "%s", name);
    return STATUS_OK;
}

/* Those that were asked for, or every one that can run on some group; not "auto", which is one of
 * the others. */
static enum status names_fill(const struct regimes_plan *plan, struct regimes *regimes,
                              struct error *reterr)
{
    for (uint32_t i = 0; i < plan->algorithm_count; i++)
        STATUS_TRY(algorithm_add(regimes, plan->algorithms[i], reterr));
    for (uint32_t g = 0; g < regimes->group_count_max && plan->algorithm_count == 0; g++) {
        struct plan_request request;
        struct error ignored;
        if (measure_row_request(&regimes->group[g].question, plan->sizes.begin_bytes, "", &request,
                                &ignored) != STATUS_OK)
            continue;
        plan_request_links(plan->question.machine, &request);
        struct plan_algorithms const names = plan_algorithms(&request);
        for (uint32_t i = 0; i < names.count; i++)
            if (algorithm_of(names.name[i]).means != ALGORITHM_AUTO &&
                (!plan->question.protocols || choose_takes_part(&request, names.name[i])))
                STATUS_TRY(algorithm_add(regimes, names.name[i], reterr));
    }
    return STATUS_OK;
}

/* The script comes last, so that of equals it is not the winner. */
static enum status algorithms_fill(const struct regimes_plan *plan, struct regimes *regimes,
                                   struct error *reterr)
{
    const struct msccl_script *script = plan->question.script;
    regimes->msccl_at = REGIMES_NONE;
    STATUS_TRY(names_fill(plan, regimes, reterr));
    if (script == NULL) return STATUS_OK;
    uint32_t const count = regimes->algorithm_count;
    STATUS_TRY(algorithm_add(regimes, script->name, reterr));
    if (regimes->algorithm_count == count)
        return error_set(reterr, STATUS_INVALID, "--xml",
                         "\"%.60s\" is the name of another algorithm of the map too; give the algo "
                         "another one",
                         script->name);
    regimes->msccl_at = count;
    return STATUS_OK;
}

/* Finds which algorithms have plans for which group; refuses one that was asked for and has none.
 */
static enum status applies_fill(struct study *study)
{
    struct regimes *regimes = study->regimes;
    for (uint32_t a = 0; a < regimes->algorithm_count; a++) {
        struct error refusal = {STATUS_OK, "", ""};
        struct plan unused;
        bool applies = false;
        for (uint32_t g = 0; g < regimes->group_count_max; g++) {
            struct arena *arena = arena_create(0);
            if (arena == NULL)
                return error_set(study->reterr, STATUS_NO_MEMORY, "", "there is no memory");
            study->group = &regimes->group[g];
            bool const has = plan_make(study, a, study->plan->sizes.end_bytes, arena, &unused,
                                       &refusal) == STATUS_OK;
            study->group->curve[a].applies = has;
            applies = applies || has;
            arena_destroy(arena);
        }
        if (!applies && (study->plan->algorithm_count > 0 || a == regimes->msccl_at))
            return error_set(study->reterr, refusal.status, refusal.where, "%s", refusal.message);
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
    regimes->group_count_max =
        regimes_groups(plan->question.machine, &plan->question.group, groups);
    STATUS_TRY(arena_try(arena, regimes->group_count_max, sizeof *regimes->group, &memory, reterr));
    regimes->group = memory;
    for (uint32_t g = 0; g < regimes->group_count_max; g++) {
        struct regimes_group *group = &regimes->group[g];
        group->question = plan->question;
        group->question.group = groups[g];
        group->ranks = group_rank_count(&groups[g]);
        (void)measure_group_text(plan->question.machine, &groups[g], group->question.axes);
    }
    return STATUS_OK;
}

enum status regimes_run(struct arena *arena, const struct regimes_plan *plan,
                        struct regimes *ret_regimes, struct error *reterr)
{
    *ret_regimes = (struct regimes){.algorithm_count = 0};
    struct study study = {.plan = plan, .regimes = ret_regimes, .reterr = reterr};
    STATUS_TRY(tables_take(arena, plan, ret_regimes, reterr));
    STATUS_TRY(algorithms_fill(plan, ret_regimes, reterr));
    STATUS_TRY(applies_fill(&study));
    while (ret_regimes->group_count < ret_regimes->group_count_max) {
        study.group = &ret_regimes->group[ret_regimes->group_count];
        STATUS_TRY(group_play(arena, &study));
        ret_regimes->group_count++;
    }
    return STATUS_OK;
}
