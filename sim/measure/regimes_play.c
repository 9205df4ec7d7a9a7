/* regimes_play.c: the runs of a map: curves, where the winner changes, landmarks. */
#include <math.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/units.h"
#include "sim/choose/estimate.h"
#include "sim/measure/regimes_play.h"
#include "sim/roofline/collective_bound.h"

static const double half = 0.5;
static const double most = 0.95;

/* What is being simulated: one part of the work. */
struct study {
    const struct regimes_plan *plan;
    struct regimes *regimes;
    struct regimes_group *group;
    struct regimes_curve *curve; /* Of this algorithm, or the best; counts the runs. */
    uint32_t thread;
    struct error *reterr;
};

/* Landmarks and crossovers take some twenty runs besides the sizes. */
static bool goes_on(const struct study *study, uint64_t events)
{
    const struct regimes_plan *plan = study->plan;
    double const runs = (double)study->curve->run_count;
    return plan->watch == NULL || plan->watch(plan->watch_owner, study->thread,
                                              runs / (runs + study->regimes->size_count), events);
}

static bool watch_run(void *owner, const struct replay_progress *progress)
{
    return goes_on(owner, progress->events);
}

/* What was simulated before has the same time again. */
static bool is_known(const struct regimes_curve *curve, uint64_t size_bytes, int64_t *ret_ps)
{
    for (uint32_t i = 0; i < curve->known_count; i++) {
        if (curve->known[i].size_bytes != size_bytes) continue;
        *ret_ps = curve->known[i].time_ps;
        return true;
    }
    return false;
}

static void known_add(struct regimes_curve *curve, uint64_t size_bytes, int64_t time_ps)
{
    if (curve->known_count < REGIMES_KNOWN_MAX)
        curve->known[curve->known_count++] = (struct regimes_known){size_bytes, time_ps};
}

static enum status play(struct study *study, uint32_t algorithm, uint64_t size_bytes,
                        int64_t *ret_ps)
{
    if (is_known(&study->group->curve[algorithm], size_bytes, ret_ps)) return STATUS_OK;
    const struct regimes_plan *plan = study->plan;
    struct regimes *regimes = study->regimes;
    const struct measure_row_choice *choice = NULL;
    struct measured measured = {.plans = NULL};
    const char *const where = regimes_place(regimes, algorithm);
    struct measure_options run = plan->run;
    struct arena *arena = arena_create(0);
    if (arena == NULL) return error_no_memory(study->reterr, "");
    run.watch = watch_run;
    run.watch_owner = study;
    enum status status =
        regimes_choose(arena, regimes, study->group, algorithm, size_bytes, &choice, study->reterr);
    if (status == STATUS_OK)
        status = measure_run(arena, plan->args.machine, &choice->request, 1, where, &run, &measured,
                             study->reterr);
    uint64_t const events = measured.trace.work.events;
    *ret_ps = measured.time_ps[0];
    arena_destroy(arena);
    if (status != STATUS_OK) return status;
    known_add(&study->group->curve[algorithm], size_bytes, *ret_ps);
    study->curve->run_count++;
    if (!goes_on(study, events))
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
        /* Other curves may be simulated at this moment. */
        if ((among & bit(a)) == 0 || !study->group->curve[a].applies) continue;
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

/* Two sizes, the lower without and the higher with a surplus, and the two that were tried last. */
struct bracket {
    struct tried {
        uint64_t size_bytes;
        double surplus; /* At least 0: enough. */
    } low, high, last, before;
    uint64_t spans[3]; /* high - low, one to three tries ago. */
};

static struct bracket bracket_begin(struct tried low, struct tried high)
{
    return (struct bracket){.low = low,
                            .high = high,
                            .last = high,
                            .before = low,
                            .spans = {UINT64_MAX, UINT64_MAX, UINT64_MAX}};
}

/* To a thousandth. */
static bool bracket_is_closed(const struct bracket *bracket)
{
    uint64_t const span = bracket->high.size_bytes - bracket->low.size_bytes;
    return span <= 1 || span <= bracket->low.size_bytes / 1000;
}

/* Where the line through two sizes crosses 0; NAN: nowhere. */
static double zero_between(const struct tried *one, const struct tried *other)
{
    double const sizes = (double)other->size_bytes - (double)one->size_bytes;
    double const rise = (other->surplus - one->surplus) / sizes;
    return rise > 0 ? (double)one->size_bytes - one->surplus / rise : (double)NAN;
}

/* The next size to try. Times are nearly straight lines, so it is where the line through the two
 * sizes tried last crosses 0. If that is where the last one was, it is a little beside it, on the
 * other side. Halves where three tries did not halve what is between. */
static uint64_t bracket_guess(const struct bracket *bracket)
{
    uint64_t const low = bracket->low.size_bytes, high = bracket->high.size_bytes;
    uint64_t const middle = low + (high - low) / 2;
    double const last = (double)bracket->last.size_bytes, beside = last / 1200 + 1;
    double guess = zero_between(&bracket->before, &bracket->last);
    if (high - low > bracket->spans[2] / 2) return middle;
    if (fabs(guess - last) < beside)
        guess = bracket->last.surplus >= 0 ? last - beside : last + beside;
    if (!(guess > (double)low && guess < (double)high))
        guess = zero_between(&bracket->low, &bracket->high);
    if (!(guess > (double)low && guess < (double)high)) return middle;
    return (uint64_t)guess + 1 < high ? (uint64_t)guess + 1 : middle;
}

static void bracket_narrow(struct bracket *bracket, struct tried tried, bool enough)
{
    bracket->spans[2] = bracket->spans[1];
    bracket->spans[1] = bracket->spans[0];
    bracket->spans[0] = bracket->high.size_bytes - bracket->low.size_bytes;
    bracket->before = bracket->last;
    bracket->last = tried;
    *(enough ? &bracket->high : &bracket->low) = tried;
}

/* By how many bytes a size is above what the wanted rate moves in its time: 0 and more is enough.
 */
static enum status surplus_find(struct study *study, uint64_t among, double wanted_bytes_per_s,
                                uint64_t size_bytes, struct tried *ret_tried)
{
    uint8_t winner = 0;
    int64_t time_ps = 0;
    STATUS_TRY(fastest(study, among, size_bytes, &winner, &time_ps));
    *ret_tried = (struct tried){size_bytes,
                                (double)size_bytes - wanted_bytes_per_s * units_seconds(time_ps)};
    return STATUS_OK;
}

/* The next size of the sweep, whose time is known; behind the sweep 16 times as much. */
static uint64_t size_next(const struct regimes *regimes, uint64_t size_bytes)
{
    for (uint32_t s = 0; s < regimes->size_count; s++)
        if (regimes->size_bytes[s] > size_bytes) return regimes->size_bytes[s];
    return 16 * size_bytes;
}

/* The size, to a thousandth, at which a wanted rate is reached: up to the first size of the sweep
 * that has it. 0 if it is beyond the size of the peak. */
static enum status size_find(struct study *study, uint64_t among, double wanted_bytes_per_s,
                             uint64_t *ret_bytes)
{
    struct tried low = {0, 0}, high;
    for (uint64_t size_bytes = 1;; size_bytes = size_next(study->regimes, size_bytes)) {
        STATUS_TRY(surplus_find(study, among, wanted_bytes_per_s, size_bytes, &high));
        if (high.surplus >= 0) break;
        low = high;
        if (size_bytes > regimes_peak_bytes(&study->plan->sizes)) {
            *ret_bytes = 0;
            return STATUS_OK;
        }
    }
    struct bracket bracket = bracket_begin(low, high);
    while (!bracket_is_closed(&bracket)) {
        struct tried tried;
        uint64_t const guess = bracket_guess(&bracket);
        STATUS_TRY(surplus_find(study, among, wanted_bytes_per_s, guess, &tried));
        bracket_narrow(&bracket, tried, tried.surplus >= 0);
    }
    *ret_bytes = bracket.high.size_bytes;
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

/* What the fabric allows for a size. */
static enum status bound_of(const struct study *study, uint64_t size_bytes,
                            struct collective_bound *ret_bound)
{
    const struct measure_row_args *args = &study->group->args;
    struct plan_request request;
    STATUS_TRY(measure_row_request(args, size_bytes, "", &request, study->reterr));
    struct collective_query query = {
        .kind = request.kind,
        .array_bytes = request.size_bytes,
        .element_bits = request.element_bits,
        .root = request.root,
    };
    memcpy(query.offset, request.offset, sizeof query.offset);
    collective_bound(args->machine, &args->group, &query, ret_bound);
    return STATUS_OK;
}

/* In the book's form the line through the bounds of one byte and of the largest size. */
static enum status bound_fill(const struct study *study)
{
    struct regimes_group *group = study->group;
    const uint64_t size_bytes = study->plan->sizes.end_bytes;
    struct collective_bound bound;
    STATUS_TRY(bound_of(study, size_bytes, &bound));
    group->bound_alpha_s = bound.latency_s;
    group->bound_beta_s_per_byte = bound.bytes_s / (double)size_bytes;
    group->bound_by = bound.bound_by;
    for (uint32_t s = 0; s < study->regimes->size_count; s++) {
        STATUS_TRY(bound_of(study, study->regimes->size_bytes[s], &bound));
        group->strict_s[s] = bound.strict_s;
    }
    return STATUS_OK;
}

/* What idle links would give: the start of the plan for the least size, which is cut into the
 * fewest pieces, and the rate of that for the greatest. */
static enum status theory_fill(struct study *study, uint32_t algorithm, struct regimes_curve *curve)
{
    const struct sizes *sizes = &study->plan->sizes;
    struct plan least, greatest;
    if (algorithm == study->regimes->msccl_at) return STATUS_OK;
    struct arena *arena = arena_create(0);
    if (arena == NULL) return error_no_memory(study->reterr, "");
    enum status status = regimes_plan_build(arena, study->regimes, study->group, algorithm,
                                            sizes->begin_bytes, &least, study->reterr);
    if (status == STATUS_OK)
        status = regimes_plan_build(arena, study->regimes, study->group, algorithm,
                                    sizes->end_bytes, &greatest, study->reterr);
    if (status == STATUS_OK) {
        const struct measure_row_args *args = &study->plan->args;
        struct collective_estimate start, rate;
        collective_estimate(args->machine, &least, args->known, &start);
        collective_estimate(args->machine, &greatest, args->known, &rate);
        curve->has_theory = true;
        curve->theory_alpha_s = start.alpha_s;
        curve->theory_beta_s_per_byte =
            rate.beta_s_per_byte * ((double)greatest.size_bytes / (double)sizes->end_bytes);
    }
    arena_destroy(arena);
    return status;
}

/* All that one algorithm does on a group. What the replay does not model is left out. */
static enum status curve_play(struct study *study, uint32_t algorithm)
{
    struct regimes *regimes = study->regimes;
    struct regimes_curve *curve = study->curve = &study->group->curve[algorithm];
    if (!curve->applies) return STATUS_OK;
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

/* The first of the fastest at each size. */
static void winners_find(const struct regimes *regimes, struct regimes_group *group)
{
    for (uint32_t s = 0; s < regimes->size_count; s++) {
        group->winner[s] = REGIMES_NONE;
        for (uint32_t a = 0; a < regimes->algorithm_count; a++) {
            uint8_t const best = group->winner[s];
            if (group->curve[a].applies &&
                (best == REGIMES_NONE ||
                 group->curve[a].time_ps[s] < group->curve[best].time_ps[s]))
                group->winner[s] = (uint8_t)a;
        }
    }
}

/* What a group has once its curves are known. */
static enum status group_end(struct study *study)
{
    struct regimes *regimes = study->regimes;
    struct regimes_group *group = study->group;
    uint64_t winners = 0;
    study->curve = &group->best;
    winners_find(regimes, group);
    STATUS_TRY(bound_fill(study));
    if (group->winner[0] == REGIMES_NONE) return STATUS_OK;
    for (uint32_t s = 1; s < regimes->size_count; s++)
        STATUS_TRY(crossovers_find(study, regimes->size_bytes[s - 1], group->winner[s - 1],
                                   regimes->size_bytes[s], group->winner[s]));
    for (uint32_t s = 0; s < regimes->size_count; s++) winners |= bit(group->winner[s]);
    return landmarks_find(study, winners, &group->best);
}

/* A step of the work: the curves of group `at`, and the end of the one before. */
struct step {
    const struct regimes_plan *plan;
    struct regimes *regimes;
    uint32_t at;
};

static enum status step_part(void *owner, uint32_t part, uint32_t thread, struct error *reterr)
{
    const struct step *step = owner;
    struct study study = {
        .plan = step->plan, .regimes = step->regimes, .thread = thread, .reterr = reterr};
    if (part > 0) {
        study.group = &step->regimes->group[step->at];
        return curve_play(&study, part - 1);
    }
    if (step->at == 0) return STATUS_OK;
    study.group = &step->regimes->group[step->at - 1];
    return group_end(&study);
}

enum status regimes_play(const struct regimes_plan *plan, struct regimes *regimes,
                         struct error *reterr)
{
    for (uint32_t at = 0; at <= regimes->group_count_max; at++) {
        struct step step = {plan, regimes, at};
        bool const has_curves = at < regimes->group_count_max;
        double const steps = 1.0 + regimes->group_count_max;
        struct parallel_work const work = {
            .part = step_part,
            .owner = &step,
            .part_count = 1 + (has_curves ? regimes->algorithm_count : 0),
            .share_begin = at / steps,
            .share_end = (at + 1) / steps,
        };
        STATUS_TRY(parallel_run(plan->parallel, &work, reterr));
        if (at == 0) continue;
        const struct regimes_group *group = &regimes->group[at - 1];
        regimes->run_count += group->best.run_count;
        for (uint32_t a = 0; a < regimes->algorithm_count; a++)
            regimes->run_count += group->curve[a].run_count;
        regimes->group_count++;
    }
    return STATUS_OK;
}
