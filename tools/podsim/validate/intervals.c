/*
 * intervals.c: residuals of rows that podsim may learn from, and how well intervals of them hold
 * where they are left out, and for tests, from which nothing is learned.
 */
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/json.h"
#include "sim/base/strbuf.h"
#include "tools/podsim/common/interval.h"
#include "tools/podsim/validate/columns.h"

enum { FLAT_DEPTH = 3, WEIGHT_LEAST = 50, WEIGHT_MOST = 90, WEIGHT_STEP = 10 };

/* Rows with residuals: those of the residuals themselves, in their order, and of tests. */
struct folding {
    struct validate *validate;
    const struct published_row **learned; /* As the residuals. */
    bool *left_out;                       /* As the residuals. */
    double *mass;                         /* As the residuals: what an interval needs. */
    double *widths;                       /* Room for all rows. */
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

/* The residuals without those of a row's publication, or of its model there; of a row of a test,
 * all. */
static enum status pool_without(const struct folding *folding, const struct published_row *row,
                                enum validate_fold fold, struct interval_pool *ret_pool,
                                struct error *reterr)
{
    const struct residuals *residuals = &folding->validate->residuals;
    for (uint32_t i = 0; i < residuals->row_count; i++) {
        const struct published_row *other = folding->learned[i];
        bool const same_model =
            fold == VALIDATE_PUBLICATION || strcmp(other->model_name, row->model_name) == 0;
        folding->left_out[i] = row->learned && strcmp(other->group, row->group) == 0 && same_model;
    }
    return interval_pool_build(folding->validate->arena, residuals, folding->left_out,
                               &result_of(folding, row)->kind, ret_pool, reterr);
}

/* The least share of the weight, in percent, with which intervals hold as many of a hundred rows as
 * they should, each with its publication left out. */
static enum status mass_find(struct folding *folding, struct error *reterr)
{
    struct residuals *residuals = &folding->validate->residuals;
    for (uint32_t i = 0; i < residuals->row_count; i++) {
        struct interval_pool pool;
        STATUS_TRY(pool_without(folding, folding->learned[i], VALIDATE_PUBLICATION, &pool, reterr));
        folding->mass[i] =
            pool.count == 0 ? 1 : interval_mass(&pool, residuals->row[i].ratio_ppm / 1e6);
    }
    for (residuals->mass_percent = 1; residuals->mass_percent < 99; residuals->mass_percent++) {
        uint32_t within = 0;
        for (uint32_t i = 0; i < residuals->row_count; i++)
            within += 100 * folding->mass[i] < residuals->mass_percent;
        if (100 * within >= RESIDUAL_COVERAGE_PERCENT * residuals->row_count) break;
    }
    return STATUS_OK;
}

static enum status row_interval(const struct folding *folding, const struct published_row *row,
                                enum validate_fold fold, uint32_t mass_percent,
                                struct error *reterr)
{
    struct validate_interval *interval = &result_of(folding, row)->interval[fold];
    double const ratio = ratio_of(folding, row);
    struct interval_pool pool;
    STATUS_TRY(pool_without(folding, row, fold, &pool, reterr));
    interval->is = pool.count > 0;
    if (!interval->is) return STATUS_OK;
    interval_cut(&pool, mass_percent, &interval->low, &interval->high);
    interval->covers = interval->low <= ratio && ratio <= interval->high;
    return STATUS_OK;
}

/* Of all rows, with a share of the weight. */
static enum status intervals_find(const struct folding *folding, uint32_t mass_percent,
                                  struct error *reterr)
{
    const struct validate *validate = folding->validate;
    for (uint32_t i = 0; i < validate->published.row_count; i++)
        for (int fold = 0; fold < VALIDATE_FOLDS && is_compared(validate, i); fold++)
            STATUS_TRY(row_interval(folding, &validate->published.row[i], (enum validate_fold)fold,
                                    mass_percent, reterr));
    return STATUS_OK;
}

static double median(double *values, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        double const value = values[i];
        uint32_t at = i;
        for (; at > 0 && values[at - 1] > value; at--) values[at] = values[at - 1];
        values[at] = value;
    }
    return count == 0 ? 0 : (values[(count - 1) / 2] + values[count / 2]) / 2;
}

static bool is_in(const struct published_row *row, const char *chip, const char *test)
{
    bool is = test == NULL;
    if (chip != NULL && strcmp(row->machine.chip, chip) != 0) return false;
    for (uint32_t t = 0; t < row->test_count && !is; t++) is = strcmp(row->test[t], test) == 0;
    return is;
}

/* Of a chip, a test, or (both NULL) all. */
static void coverage_add(const struct folding *folding, enum validate_subject of, const char *name,
                         const char *chip, const char *test)
{
    struct validate *validate = folding->validate;
    struct validate_coverage coverage = {.of = of, .name = name};
    for (int fold = 0; fold < VALIDATE_FOLDS; fold++) {
        uint32_t count = 0, within = 0;
        for (uint32_t i = 0; i < validate->published.row_count; i++) {
            const struct published_row *row = &validate->published.row[i];
            const struct validate_interval *interval = &validate->result[i].interval[fold];
            bool const is_of = row->learned == (of != VALIDATE_OF_TEST);
            if (!is_of || !interval->is || !is_in(row, chip, test)) continue;
            within += interval->covers;
            folding->widths[count++] = (interval->high - interval->low) / 2;
        }
        coverage.rows = count;
        coverage.covered[fold] = count == 0 ? 0 : (double)within / count;
        coverage.half_width[fold] = median(folding->widths, count);
    }
    if (coverage.rows > 0) validate->coverage[validate->coverage_count++] = coverage;
}

/* What intervals of less and of more weight would be. Those of the project come last and stay. */
static enum status weights_find(const struct folding *folding, struct error *reterr)
{
    struct validate *validate = folding->validate;
    for (uint32_t mass = WEIGHT_LEAST; mass <= WEIGHT_MOST; mass += WEIGHT_STEP) {
        const char *name = arena_format(validate->arena, "%u %% of the weight", mass);
        if (name == NULL)
            return error_set(reterr, STATUS_NO_MEMORY, "", "there is no memory for intervals");
        STATUS_TRY(intervals_find(folding, mass, reterr));
        coverage_add(folding, VALIDATE_OF_WEIGHT, name, NULL, NULL);
    }
    return intervals_find(folding, validate->residuals.mass_percent, reterr);
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
        if (is_first) coverage_add(folding, VALIDATE_OF_CHIP, chip, chip, NULL);
    }
    coverage_add(folding, VALIDATE_OF_CHIP, "all", NULL, NULL);
    for (uint32_t s = 0; s < validate->published.set_count; s++) {
        const char *test = validate->published.set[s].name;
        if (!validate->published.set[s].learned)
            coverage_add(folding, VALIDATE_OF_TEST, test, NULL, test);
    }
    coverage_add(folding, VALIDATE_OF_TEST, "all", NULL, NULL);
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
    STATUS_TRY(arena_try(validate->arena, 2 * (uint64_t)rows, sizeof(double), &memory, reterr));
    folding.mass = memory;
    folding.widths = folding.mass + rows;
    STATUS_TRY(arena_try(validate->arena, (uint64_t)rows + published->set_count + 2 + WEIGHT_MOST,
                         sizeof(struct validate_coverage), &memory, reterr));
    validate->coverage = memory;
    residuals_gather(&folding);
    STATUS_TRY(mass_find(&folding, reterr));
    if (!is_whole(validate)) return STATUS_OK;
    STATUS_TRY(intervals_find(&folding, validate->residuals.mass_percent, reterr));
    coverages_find(&folding);
    return weights_find(&folding, reterr);
}

/* --- The file --- */

#define RESIDUALS(X)                                                                               \
    X(ID, "id", WORDS(residual->id), HIDDEN)                                                       \
    X(PUBLICATION, "publication", WORDS(residual->publication), HIDDEN)                            \
    X(WORK, "work", WORDS(residual_work_names[residual->kind.work]), HIDDEN)                       \
    X(CHIP, "chip", WORDS(residual->kind.chip), HIDDEN)                                            \
    X(STACK, "stack", WORDS(residual->kind.stack), HIDDEN)                                         \
    X(EIGHT_BITS, "eight_bits", FLAG(residual->kind.eight_bits), HIDDEN)                           \
    X(RATIO, "ratio_ppm", WHOLE(residual->ratio_ppm), HIDDEN)

#define HEAD(X)                                                                                    \
    X(RESIDUALS_VERSION, "podsim_residuals", WHOLE(1), HIDDEN)                                     \
    X(MASS, "mass_percent", WHOLE(residuals->mass_percent), HIDDEN)

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
    column_put(head_columns, values, 0, HEAD_TOTAL - 1, &json);
    json_write_key(&json, "rows");
    column_put_rows(&residual_table, residuals, residuals->row_count, &json);
    json_write_object_end(&json);
}
