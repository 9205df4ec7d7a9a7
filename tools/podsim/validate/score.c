/* score.c: how far predictions are off, and how far simple rules would be. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sim/base/arena.h"
#include "tools/podsim/validate/validate.h"

enum { LAYOUTS_MAX = 64, LAYOUTS_LEAST = 3 };

/* A set's rows that were simulated, and room to sort them. */
struct scoring {
    const struct validate *validate;
    const struct published_set *set;
    const struct published_row **row;
    uint32_t count;
    double *shares; /* Room for all rows. */
    struct validate_score *score;
};

const struct validate_result *validate_result_of(const struct validate *validate,
                                                 const struct published_row *row)
{
    return &validate->result[row - validate->published.row];
}

double validate_error(const struct validate *validate, const struct published_row *row)
{
    return validate_result_of(validate, row)->predicted_s / row->seconds - 1;
}

bool validate_names_stack(const struct validate *validate, const struct published_set *set,
                          uint32_t r)
{
    const struct published_row *row = set->row[r];
    const struct validate_result *result = validate_result_of(validate, row);
    if (result->stack[0] == '\0') return false;
    for (uint32_t before = 0; before < r; before++)
        if (strcmp(validate_result_of(validate, set->row[before])->stack, result->stack) == 0 &&
            strcmp(set->row[before]->machine.chip, row->machine.chip) == 0)
            return false;
    return true;
}

static double predicted(const struct scoring *scoring, uint32_t i)
{
    return validate_result_of(scoring->validate, scoring->row[i])->predicted_s;
}

static double useful(const struct scoring *scoring, uint32_t i)
{
    return validate_result_of(scoring->validate, scoring->row[i])->useful_s;
}

static void errors_score(struct scoring *scoring)
{
    struct validate_score *score = scoring->score;
    double logarithms = 0;
    for (uint32_t i = 0; i < scoring->count; i++) {
        double const error = validate_error(scoring->validate, scoring->row[i]);
        score->mean += error / scoring->count;
        score->mean_absolute += fabs(error) / scoring->count;
        logarithms += log1p(error) / scoring->count;
        if (fabs(error) <= fabs(score->worst) && score->worst_row != NULL) continue;
        score->worst = error;
        score->worst_row = scoring->row[i];
    }
    score->factor = exp(logarithms);
    for (uint32_t i = 0; i < scoring->count; i++) {
        double const error =
            (1 + validate_error(scoring->validate, scoring->row[i])) / score->factor - 1;
        score->ratio_absolute += fabs(error) / scoring->count;
    }
}

/* --- Yardsticks: a share of the peak, and nothing else --- */

/* The mean absolute error where all rows reach one share of the peak. */
static double share_error(const struct scoring *scoring, double share)
{
    double sum = 0;
    for (uint32_t i = 0; i < scoring->count; i++)
        sum += fabs(useful(scoring, i) / share / scoring->row[i]->seconds - 1);
    return sum / scoring->count;
}

/* The error is piecewise linear in 1 / share, so the best share is that of a row. */
static void inside_score(struct scoring *scoring)
{
    double best = INFINITY;
    for (uint32_t i = 0; i < scoring->count; i++) {
        double const error = share_error(scoring, useful(scoring, i) / scoring->row[i]->seconds);
        if (error < best) best = error;
    }
    scoring->score->inside = best;
}

/* Rising. */
static void share_insert(double *shares, uint32_t count, double share)
{
    uint32_t at = count;
    for (; at > 0 && shares[at - 1] > share; at--) shares[at] = shares[at - 1];
    shares[at] = share;
}

/* Training, prompts, and what is bound by reading weights reach other shares. */
static bool is_same_work(const struct published_row *one, const struct published_row *other)
{
    bool const reads = one->kind == PUBLISHED_DECODE || one->kind == PUBLISHED_GENERATE;
    if (!reads) return one->kind == other->kind;
    return other->kind == PUBLISHED_DECODE || other->kind == PUBLISHED_GENERATE;
}

/* "": collectives have none. */
static const char *precision_of(const struct published_row *row)
{
    return row->policy.precision == NULL ? "" : row->policy.precision;
}

/* The median of the shares of rows that were learned from, of this row's chip and precision.
 * `shares` has room for all rows. */
static double share_of_others(const struct validate *validate, const struct published_row *row,
                              double *shares, uint32_t *ret_count)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < validate->published.row_count; i++) {
        const struct published_row *other = &validate->published.row[i];
        double const useful_s = validate->result[i].useful_s;
        if (!other->learned || other == row || !is_same_work(other, row) || useful_s <= 0 ||
            other->seconds <= 0 || strcmp(other->machine.chip, row->machine.chip) != 0 ||
            strcmp(precision_of(other), precision_of(row)) != 0)
            continue;
        share_insert(shares, count++, useful_s / other->seconds);
    }
    *ret_count = count;
    return count == 0 ? 0 : (shares[(count - 1) / 2] + shares[count / 2]) / 2;
}

/* What a row's work is called, of which there are no rows to learn from. */
static const char *const works[] = {[PUBLISHED_STEP] = "steps",
                                    [PUBLISHED_PREFILL] = "prompts",
                                    [PUBLISHED_DECODE] = "decodes",
                                    [PUBLISHED_GENERATE] = "decodes",
                                    [PUBLISHED_COLLECTIVE] = "collectives"};

/* "14.0 %", "24.1 % (14 rows)", "none: no bf16 steps of b200". `without`: the first of the rows of
 * which there are no others. */
static void outside_say(const struct scoring *scoring, const struct published_row *without)
{
    struct validate_score *score = scoring->score;
    bool one_chip = true, one_precision = true;
    if (score->outside_rows == score->played) {
        (void)snprintf(score->outside_said, sizeof score->outside_said, "%.1f %%",
                       100 * score->outside);
        return;
    }
    if (score->outside_rows > 0) {
        (void)snprintf(score->outside_said, sizeof score->outside_said, "%.1f %% (%u rows)",
                       100 * score->outside, score->outside_rows);
        return;
    }
    for (uint32_t i = 0; i < scoring->count; i++) {
        const struct published_row *row = scoring->row[i];
        one_chip = one_chip && strcmp(row->machine.chip, without->machine.chip) == 0;
        one_precision = one_precision && strcmp(precision_of(row), precision_of(without)) == 0;
    }
    const char *const precision = one_precision ? precision_of(without) : "";
    (void)snprintf(score->outside_said, sizeof score->outside_said, "none: no %.8s%s%s%s%.16s",
                   precision, *precision != '\0' ? " " : "", works[without->kind],
                   one_chip ? " of " : "", one_chip ? without->machine.chip : "");
}

/* Of the rows whose chip, precision and work others have. */
static void outside_score(struct scoring *scoring)
{
    struct validate_score *score = scoring->score;
    const struct published_row *without = NULL;
    double sum = 0;
    for (uint32_t i = 0; i < scoring->count; i++) {
        uint32_t count = 0;
        double const share =
            share_of_others(scoring->validate, scoring->row[i], scoring->shares, &count);
        if (count == 0 && without == NULL) without = scoring->row[i];
        if (count == 0) continue;
        score->outside_rows++;
        sum += fabs(useful(scoring, i) / share / scoring->row[i]->seconds - 1);
    }
    if (score->outside_rows > 0) score->outside = sum / score->outside_rows;
    outside_say(scoring, without);
}

/* --- Layouts --- */

/* Passes of a rank, which are as many where only the layout differs. */
static uint64_t passes(const struct published_row *row)
{
    uint64_t const replicas =
        (uint64_t)row->ranks[MESH_DP] * row->ranks[MESH_FSDP] * row->ranks[MESH_EP];
    return row->sequences / (replicas * row->microbatch);
}

static bool differs_in_layout_alone(const struct published_row *one,
                                    const struct published_row *other)
{
    return one->kind == PUBLISHED_STEP && other->kind == PUBLISHED_STEP &&
           strcmp(one->model_name, other->model_name) == 0 &&
           one->machine.chips == other->machine.chips &&
           strcmp(one->machine.chip, other->machine.chip) == 0 &&
           strcmp(one->policy.precision, other->policy.precision) == 0 &&
           one->length_tokens == other->length_tokens && passes(one) == passes(other);
}

static double rank_of(const double *values, uint32_t count, uint32_t i)
{
    double rank = 0;
    for (uint32_t j = 0; j < count; j++)
        rank += values[j] < values[i] ? 1 : j != i && values[j] == values[i] ? 0.5 : 0;
    return rank;
}

/* Spearman's: of the ranks. */
static double rank_correlation(const double *one, const double *other, uint32_t count)
{
    double const mean = (count - 1) / 2.0;
    double covariance = 0, variance_one = 0, variance_other = 0;
    for (uint32_t i = 0; i < count; i++) {
        double const a = rank_of(one, count, i) - mean, b = rank_of(other, count, i) - mean;
        covariance += a * b;
        variance_one += a * a;
        variance_other += b * b;
    }
    if (variance_one <= 0 || variance_other <= 0) return 0;
    return covariance / sqrt(variance_one * variance_other);
}

/* A set of layouts: rates of each, and what is compared with 1F1B where that is one of them. */
static void layouts_score(struct scoring *scoring, const uint32_t *index, uint32_t count)
{
    struct validate_score *score = scoring->score;
    double got[LAYOUTS_MAX], wanted[LAYOUTS_MAX];
    uint32_t chosen = 0, best = 0, base = LAYOUTS_MAX;
    bool has_schedules = true;
    for (uint32_t k = 0; k < count; k++) {
        const struct published_row *row = scoring->row[index[k]];
        got[k] = (double)row->sequences / predicted(scoring, index[k]);
        wanted[k] = (double)row->sequences / row->seconds;
        if (got[k] > got[chosen]) chosen = k;
        if (wanted[k] > wanted[best]) best = k;
        has_schedules = has_schedules && row->policy.schedule != NULL;
        if (has_schedules && strcmp(row->policy.schedule, "1f1b") == 0) base = k;
    }
    score->layout_sets++;
    score->rank += rank_correlation(got, wanted, count);
    score->regret += 1 - wanted[chosen] / wanted[best];
    for (uint32_t k = 0; has_schedules && base != LAYOUTS_MAX && k < count; k++) {
        if (k == base) continue;
        score->base_rows++;
        score->base_absolute += fabs(got[k] / got[base] / (wanted[k] / wanted[base]) - 1);
    }
}

static void layouts_find(struct scoring *scoring)
{
    struct validate_score *score = scoring->score;
    for (uint32_t i = 0; i < scoring->count; i++) {
        uint32_t index[LAYOUTS_MAX], count = 0;
        bool is_first = true;
        for (uint32_t j = 0; j < scoring->count && count < LAYOUTS_MAX; j++) {
            if (!differs_in_layout_alone(scoring->row[i], scoring->row[j])) continue;
            is_first = is_first && j >= i;
            index[count++] = j;
        }
        if (is_first && count >= LAYOUTS_LEAST) layouts_score(scoring, index, count);
    }
    if (score->layout_sets > 0) score->rank /= score->layout_sets;
    if (score->layout_sets > 0) score->regret /= score->layout_sets;
    if (score->base_rows > 0) score->base_absolute /= score->base_rows;
}

/* --- Memory --- */

static void memory_score(struct scoring *scoring)
{
    struct validate_score *score = scoring->score;
    for (uint32_t i = 0; i < scoring->count; i++) {
        const struct published_row *row = scoring->row[i];
        if (row->peak_bytes <= 0) continue;
        double const error =
            validate_result_of(scoring->validate, row)->peak_bytes / row->peak_bytes - 1;
        score->memory_rows++;
        score->memory_mean += error;
        score->memory_absolute += fabs(error);
    }
    if (score->memory_rows == 0) return;
    score->memory_mean /= score->memory_rows;
    score->memory_absolute /= score->memory_rows;
}

static void set_score(struct scoring *scoring)
{
    const struct published_set *set = scoring->set;
    for (uint32_t r = 0; r < set->row_count; r++) {
        bool const is =
            validate_result_of(scoring->validate, set->row[r])->state == VALIDATE_PLAYED;
        if (is) scoring->row[scoring->count++] = set->row[r];
    }
    *scoring->score = (struct validate_score){.played = scoring->count,
                                              .refused = set->row_count - scoring->count};
    if (scoring->count == 0) return;
    errors_score(scoring);
    inside_score(scoring);
    outside_score(scoring);
    layouts_find(scoring);
    memory_score(scoring);
}

enum status validate_score(struct validate *validate, struct error *reterr)
{
    const struct published *published = &validate->published;
    void *memory = NULL, *shares = NULL;
    STATUS_TRY(arena_try(validate->arena, published->row_count, sizeof(void *), &memory, reterr));
    STATUS_TRY(arena_try(validate->arena, published->row_count, sizeof(double), &shares, reterr));
    for (uint32_t s = 0; s < published->set_count; s++) {
        struct scoring scoring = {.validate = validate,
                                  .set = &published->set[s],
                                  .row = memory,
                                  .shares = shares,
                                  .score = &validate->score[s]};
        if (validate->wanted[s]) set_score(&scoring);
    }
    return STATUS_OK;
}
