/*
 * intervals.c: residuals of rows that podsim may learn from, and how well intervals of them hold
 * where they are left out, and for tests, from which nothing is learned.
 */
#include <math.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/json.h"
#include "sim/base/strbuf.h"
#include "tools/podsim/common/interval.h"
#include "tools/podsim/common/median.h"
#include "tools/podsim/validate/columns.h"

enum { FLAT_DEPTH = 3, LEVELS = 5, PERCENT_LEAST = 50, PERCENTS = 100 - PERCENT_LEAST + 1 };

/* Of 100 rows, how many intervals hold. */
static const uint32_t levels[LEVELS] = {50, 60, 70, RESIDUAL_COVERAGE_PERCENT, 90};
static const int LEVEL_OF_PROJECT = 3;

/* A row's intervals: around the median, and how far, to hold PERCENT_LEAST to 100 of 100 rows that
 * are not left out. */
struct span {
    bool is;
    double median, reach[PERCENTS];
};

/* Rows with residuals: those of the residuals themselves, in their order, and of tests. */
struct folding {
    struct validate *validate;
    const struct published_row **learned; /* As the residuals. */
    bool *left_out;                       /* As the residuals. */
    struct span *span[VALIDATE_FOLDS];    /* As the published rows. */
    double *widths;                       /* Room for all rows. */
    uint32_t percent[LEVELS];             /* What intervals of each level hold of those rows. */
};

static struct validate_result *result_of(const struct folding *folding,
                                         const struct published_row *row)
{
    return &folding->validate->result[row - folding->validate->published.row];
}

static bool is_compared(const struct validate *validate, uint32_t i)
{
    const struct validate_result *result = &validate->result[i];
    return result->state == VALIDATE_PLAYED && result->has_kind;
}

static double ratio_of(const struct folding *folding, const struct published_row *row)
{
    return row->seconds / result_of(folding, row)->predicted_s;
}

static void residuals_gather(struct folding *folding)
{
    struct validate *validate = folding->validate;
    struct residuals *residuals = &validate->residuals;
    for (uint32_t i = 0; i < validate->published.row_count; i++) {
        const struct published_row *row = &validate->published.row[i];
        if (!row->learned || !is_compared(validate, i)) continue;
        folding->learned[residuals->row_count] = row;
        residuals->row[residuals->row_count++] =
            (struct residual){.id = row->id,
                              .publication = row->group,
                              .kind = validate->result[i].kind,
                              .ratio_ppm = (uint32_t)(1e6 * ratio_of(folding, row) + 0.5)};
    }
}

/* Whether a row is left out with another: it is of the same publication, or of the same model
 * there. With a row of a test nothing is. */
static bool is_left_out(const struct published_row *row, const struct published_row *with,
                        enum validate_fold fold)
{
    bool const same_model =
        fold == VALIDATE_PUBLICATION || strcmp(row->model_name, with->model_name) == 0;
    return row->learned && with->learned && strcmp(row->group, with->group) == 0 && same_model;
}

/* An earlier row that has the same residuals left out, of the same work; NULL: there is none. */
static const struct span *span_before(const struct folding *folding, uint32_t i,
                                      enum validate_fold fold)
{
    const struct validate *validate = folding->validate;
    const struct published_row *rows = validate->published.row;
    for (uint32_t j = 0; j < i; j++) {
        bool const both_test = !rows[i].learned && !rows[j].learned;
        if (is_compared(validate, j) && (both_test || is_left_out(&rows[i], &rows[j], fold)) &&
            validate->result[i].kind.work == validate->result[j].kind.work)
            return &folding->span[fold][j];
    }
    return NULL;
}

/* Neither the median nor the reach of a row's intervals is learned from what is left out. */
static enum status span_find(const struct folding *folding, uint32_t row, enum validate_fold fold,
                             struct error *reterr)
{
    struct validate *validate = folding->validate;
    const struct residuals *residuals = &validate->residuals;
    const struct residual_kind *kind = &validate->result[row].kind;
    struct span *span = &folding->span[fold][row];
    const struct span *before = span_before(folding, row, fold);
    uint32_t percents[PERCENTS];
    struct interval_pool pool;
    if (before != NULL) {
        *span = *before;
        return STATUS_OK;
    }
    for (uint32_t i = 0; i < residuals->row_count; i++)
        folding->left_out[i] =
            is_left_out(folding->learned[i], &validate->published.row[row], fold);
    STATUS_TRY(
        interval_pool_build(validate->arena, residuals, folding->left_out, kind, &pool, reterr));
    span->is = pool.count > 0;
    span->median = pool.median;
    for (uint32_t i = 0; i < PERCENTS; i++) percents[i] = PERCENT_LEAST + i;
    return interval_reach(validate->arena, residuals, folding->left_out, kind, percents, PERCENTS,
                          span->reach, reterr);
}

static enum status spans_find(const struct folding *folding, struct error *reterr)
{
    const struct validate *validate = folding->validate;
    for (int fold = 0; fold < VALIDATE_FOLDS; fold++)
        for (uint32_t i = 0; i < validate->published.row_count; i++)
            if (is_compared(validate, i))
                STATUS_TRY(span_find(folding, i, (enum validate_fold)fold, reterr));
    return STATUS_OK;
}

/* How far intervals of each work reach, by all residuals. */
static enum status reaches_find(const struct folding *folding, struct error *reterr)
{
    struct residuals *residuals = &folding->validate->residuals;
    for (int work = 0; work < RESIDUAL_WORKS; work++) {
        struct residual_kind const kind = {.work = (enum residual_work)work};
        double reach = 0;
        STATUS_TRY(interval_reach(folding->validate->arena, residuals, NULL, &kind,
                                  &folding->percent[LEVEL_OF_PROJECT], 1, &reach, reterr));
        residuals->reach_ppm[work] = (uint32_t)ceil(1e6 * reach);
    }
    return STATUS_OK;
}

/* Whether intervals that hold `percent` of 100 other rows hold `wanted` of 100 rows that podsim may
 * learn from. */
static bool holds(const struct folding *folding, uint32_t percent, uint32_t wanted)
{
    const struct validate *validate = folding->validate;
    uint32_t rows = 0, within = 0;
    for (uint32_t i = 0; i < validate->published.row_count; i++) {
        const struct published_row *row = &validate->published.row[i];
        const struct span *span = &folding->span[VALIDATE_PUBLICATION][i];
        if (!row->learned || !is_compared(validate, i) || !span->is) continue;
        rows++;
        within += interval_distance(span->median, ratio_of(folding, row)) <=
                  span->reach[percent - PERCENT_LEAST];
    }
    return (uint64_t)within * 100 >= (uint64_t)rows * wanted;
}

/* A publication that is left out lies farther from the others than they do from one another:
 * intervals have to hold more of theirs than they are to hold of its rows. */
static void percents_find(struct folding *folding)
{
    for (int level = 0; level < LEVELS; level++) {
        uint32_t percent = levels[level];
        while (percent < 100 && !holds(folding, percent, levels[level])) percent++;
        folding->percent[level] = percent;
    }
}

/* Of all rows, at a level. */
static void intervals_set(const struct folding *folding, int level)
{
    const struct validate *validate = folding->validate;
    uint32_t const at = folding->percent[level] - PERCENT_LEAST;
    for (int fold = 0; fold < VALIDATE_FOLDS; fold++)
        for (uint32_t i = 0; i < validate->published.row_count; i++) {
            const struct span *span = &folding->span[fold][i];
            struct validate_interval *interval = &validate->result[i].interval[fold];
            if (!is_compared(validate, i) || !span->is) continue;
            double const ratio = ratio_of(folding, &validate->published.row[i]);
            *interval = (struct validate_interval){
                .is = true,
                .low = span->median / span->reach[at],
                .high = span->median * span->reach[at],
                .covers = interval_distance(span->median, ratio) <= span->reach[at]};
        }
}

/* Which rows a coverage is of: all that podsim may learn from, or of a test; of a chip, of a work.
 */
struct subject {
    enum validate_subject of;
    const char *name;
    const char *chip, *test; /* NULL: all. */
    int work;                /* -1: all. */
};

static bool is_in(const struct folding *folding, const struct subject *subject,
                  const struct published_row *row)
{
    const struct validate_result *result = result_of(folding, row);
    bool is = subject->test == NULL;
    if (row->learned != (subject->of != VALIDATE_OF_TEST)) return false;
    if (!result->interval[VALIDATE_PUBLICATION].is) return false;
    if (subject->chip != NULL && strcmp(row->machine.chip, subject->chip) != 0) return false;
    if (subject->work >= 0 && (int)result->kind.work != subject->work) return false;
    for (uint32_t t = 0; t < row->test_count && !is; t++)
        is = strcmp(row->test[t], subject->test) == 0;
    return is;
}

/* Each publication's share of rows that are covered, their mean. */
static double covered_once(const struct folding *folding, const struct subject *subject,
                           uint32_t *ret_publications)
{
    const struct published *published = &folding->validate->published;
    double sum = 0;
    *ret_publications = 0;
    for (uint32_t i = 0; i < published->row_count; i++) {
        uint32_t rows = 0, within = 0;
        bool is_first = true;
        if (!is_in(folding, subject, &published->row[i])) continue;
        for (uint32_t j = 0; j < published->row_count && is_first; j++) {
            const struct published_row *row = &published->row[j];
            bool const is_of = strcmp(row->group, published->row[i].group) == 0;
            if (!is_of || !is_in(folding, subject, row)) continue;
            is_first = j >= i;
            rows++;
            within += result_of(folding, row)->interval[VALIDATE_PUBLICATION].covers;
        }
        if (!is_first) continue;
        sum += (double)within / rows;
        ++*ret_publications;
    }
    return *ret_publications == 0 ? 0 : sum / *ret_publications;
}

static void coverage_add(const struct folding *folding, struct subject subject)
{
    struct validate *validate = folding->validate;
    struct validate_coverage coverage = {.of = subject.of, .name = subject.name};
    for (int fold = 0; fold < VALIDATE_FOLDS; fold++) {
        uint32_t count = 0, within = 0;
        for (uint32_t i = 0; i < validate->published.row_count; i++) {
            const struct validate_interval *interval = &validate->result[i].interval[fold];
            if (!is_in(folding, &subject, &validate->published.row[i])) continue;
            within += interval->covers;
            folding->widths[count++] = (interval->high - interval->low) / 2;
        }
        coverage.rows = count;
        coverage.covered[fold] = count == 0 ? 0 : (double)within / count;
        coverage.half_width[fold] = median(folding->widths, count);
    }
    coverage.covered_once = covered_once(folding, &subject, &coverage.publications);
    if (coverage.rows > 0) validate->coverage[validate->coverage_count++] = coverage;
}

/* What intervals of other levels would be. Those of the project come last and stay. */
static enum status levels_find(const struct folding *folding, struct error *reterr)
{
    for (int level = 0; level < LEVELS; level++) {
        const char *name =
            arena_format(folding->validate->arena, "%u of 100 measurements", levels[level]);
        if (name == NULL)
            return error_set(reterr, STATUS_NO_MEMORY, "", "there is no memory for intervals");
        intervals_set(folding, level);
        coverage_add(folding, (struct subject){VALIDATE_OF_LEVEL, name, NULL, NULL, -1});
    }
    intervals_set(folding, LEVEL_OF_PROJECT);
    return STATUS_OK;
}

static void coverages_find(const struct folding *folding)
{
    const struct validate *validate = folding->validate;
    const struct residuals *residuals = &validate->residuals;
    for (uint32_t i = 0; i < residuals->row_count; i++) {
        bool is_first = true;
        for (uint32_t j = 0; j < i && is_first; j++)
            is_first = strcmp(residuals->row[j].kind.chip, residuals->row[i].kind.chip) != 0;
        const char *chip = residuals->row[i].kind.chip;
        if (is_first)
            coverage_add(folding, (struct subject){VALIDATE_OF_CHIP, chip, chip, NULL, -1});
    }
    coverage_add(folding, (struct subject){VALIDATE_OF_CHIP, "all", NULL, NULL, -1});
    for (int work = 0; work < RESIDUAL_WORKS; work++)
        coverage_add(folding, (struct subject){VALIDATE_OF_WORK, residual_work_names[work], NULL,
                                               NULL, work});
    for (uint32_t s = 0; s < validate->published.set_count; s++) {
        const char *test = validate->published.set[s].name;
        if (!validate->published.set[s].learned)
            coverage_add(folding, (struct subject){VALIDATE_OF_TEST, test, NULL, test, -1});
    }
    coverage_add(folding, (struct subject){VALIDATE_OF_TEST, "all", NULL, NULL, -1});
}

/* Whether all residuals are there. */
static bool is_whole(const struct validate *validate)
{
    for (uint32_t s = 0; s < validate->published.set_count; s++)
        if (validate->published.set[s].learned && !validate->wanted[s]) return false;
    return true;
}

enum status validate_intervals(struct validate *validate, struct error *reterr)
{
    const struct published *published = &validate->published;
    struct folding folding = {.validate = validate};
    uint32_t const rows = published->row_count;
    void *memory = NULL;
    STATUS_TRY(arena_try(validate->arena, rows, sizeof(struct residual), &memory, reterr));
    validate->residuals.row = memory;
    STATUS_TRY(arena_try(validate->arena, rows, sizeof(void *), &memory, reterr));
    folding.learned = memory;
    STATUS_TRY(arena_try(validate->arena, rows, sizeof(bool), &memory, reterr));
    folding.left_out = memory;
    for (int fold = 0; fold < VALIDATE_FOLDS; fold++) {
        STATUS_TRY(arena_try(validate->arena, rows, sizeof(struct span), &memory, reterr));
        folding.span[fold] = memory;
    }
    STATUS_TRY(arena_try(validate->arena, rows, sizeof(double), &memory, reterr));
    folding.widths = memory;
    STATUS_TRY(arena_try(validate->arena,
                         (uint64_t)rows + published->set_count + 2 + RESIDUAL_WORKS + LEVELS,
                         sizeof(struct validate_coverage), &memory, reterr));
    validate->coverage = memory;
    residuals_gather(&folding);
    STATUS_TRY(spans_find(&folding, reterr));
    percents_find(&folding);
    STATUS_TRY(reaches_find(&folding, reterr));
    if (!is_whole(validate)) return STATUS_OK;
    intervals_set(&folding, LEVEL_OF_PROJECT);
    coverages_find(&folding);
    return levels_find(&folding, reterr);
}

/* --- The file --- */

#define RESIDUALS(X)                                                                               \
    X(ID, "id", WORDS(residual->id), HIDDEN)                                                       \
    X(PUBLICATION, "publication", WORDS(residual->publication), HIDDEN)                            \
    X(WORK, "work", WORDS(residual_work_names[residual->kind.work]), HIDDEN)                       \
    X(CHIP, "chip", WORDS(residual->kind.chip), HIDDEN)                                            \
    X(STACK, "stack", WORDS(residual->kind.stack), HIDDEN)                                         \
    X(RATIO, "ratio_ppm", WHOLE(residual->ratio_ppm), HIDDEN)

#define REACH(work) WHOLE(residuals->reach_ppm[work])
#define HEAD(X)                                                                                    \
    X(FILE_VERSION, "podsim_residuals", WHOLE(RESIDUAL_FILE_VERSION), HIDDEN)                      \
    X(REACH_DENSE, "dense", REACH(RESIDUAL_DENSE), HIDDEN)                                         \
    X(REACH_OTHER, "other", REACH(RESIDUAL_OTHER), HIDDEN)                                         \
    X(REACH_SERVING, "serving", REACH(RESIDUAL_SERVING), HIDDEN)

enum { RESIDUALS(COLUMN_NAME) RESIDUALS_TOTAL };
enum { HEAD(COLUMN_NAME) HEAD_TOTAL };
static const struct column residual_columns[] = {RESIDUALS(COLUMN_ENTRY)};
static const struct column head_columns[] = {HEAD(COLUMN_ENTRY)};

static void find_residual(const void *owner, uint32_t row, struct column_value *ret_values)
{
    const struct residual *residual = &((const struct residuals *)owner)->row[row];
    RESIDUALS(COLUMN_FIND)
}

static void find_head(const struct residuals *residuals, struct column_value *ret_values)
{
    HEAD(COLUMN_FIND)
}

static const struct column_table residual_table = {
    residual_columns, RESIDUALS_TOTAL, {0}, find_residual};

void validate_write_residuals(const struct validate *validate, struct strbuf *text)
{
    const struct residuals *residuals = &validate->residuals;
    struct column_value values[HEAD_TOTAL];
    struct json_writer json;
    json_write_start(&json, text);
    json.flat = FLAT_DEPTH;
    json_write_object(&json);
    find_head(residuals, values);
    column_put(head_columns, values, FILE_VERSION, FILE_VERSION, &json);
    json_put_object(&json, "reach_ppm");
    column_put(head_columns, values, REACH_DENSE, REACH_SERVING, &json);
    json_write_object_end(&json);
    json_write_key(&json, "rows");
    column_put_rows(&residual_table, residuals, residuals->row_count, &json);
    json_write_object_end(&json);
}
