/*
 * columns.h: the figures of a published row and of a set of rows, each said once: members of JSON,
 * cells of CSV, figures on a terminal and in the tables of a page come from them.
 */
#ifndef TOOLS_PODSIM_VALIDATE_COLUMNS_H
#define TOOLS_PODSIM_VALIDATE_COLUMNS_H

#include "sim/report/column_table.h"
#include "tools/podsim/validate/validate.h"

column_look validate_signed; /* "-12.3 %" of -0.123 */
column_look validate_share;  /* "12.3 %" */
column_look validate_factor; /* "0.974" */
column_look validate_rank;   /* "0.87" */

#define PLAYED(value) WHERE(result->state == VALIDATE_PLAYED, value)
#define TIMED(value) WHERE(result->compute_s > 0, value)

/* With its publication left out. */
#define WITHIN(bound)                                                                              \
    WHERE(result->interval[VALIDATE_PUBLICATION].is,                                               \
          REAL(result->interval[VALIDATE_PUBLICATION].bound * result->predicted_s))

/* Of `row` of `set`, with its `result` and the set's `score`. A page has the first heading where
 * there are two. */
#define VALIDATE_ROWS(X)                                                                           \
    X(ROW_SET, "test", WORDS(set->name), NAMED("test", column_words))                              \
    X(ROW_ID, "id", WORDS(row->id), NAMED("row", column_words))                                    \
    X(ROW_LEARNED, "learned_from", FLAG(row->learned), HIDDEN)                                     \
    X(ROW_STATE, "state", WORDS(validate_state_word(result->state)), HIDDEN)                       \
    X(ROW_WHY, "reason", WHERE(result->state == VALIDATE_REFUSED, LIST(result->why)),              \
      NAMED("why it is not run", column_words))                                                    \
    X(ROW_CHIP, "chip", WORDS(row->machine.chip), HIDDEN)                                          \
    X(ROW_CHIPS, "chips", WHOLE(row->machine.chips), HIDDEN)                                       \
    X(ROW_PRESET, "preset", WHERE(row->policy.preset != NULL, WORDS(row->policy.preset)), HIDDEN)  \
    X(ROW_POWER, "power_w", WHERE(row->machine.power_w > 0, WHOLE(row->machine.power_w)), HIDDEN)  \
    X(ROW_RECIPE, "fp8_recipe", WHERE(row->policy.recipe != NULL, WORDS(row->policy.recipe)),      \
      HIDDEN)                                                                                      \
    X(ROW_STACK, "stack",                                                                          \
      WHERE(result->stack[0] != 0 && !result->stack_is_missing, WORDS(result->stack)), HIDDEN)     \
    X(ROW_MEASURED, "measured_s", WHERE(row->seconds > 0, REAL(row->seconds)),                     \
      SHOWN("", "measured", 11, column_seconds))                                                   \
    X(ROW_PREDICTED, "predicted_s", PLAYED(REAL(result->predicted_s)),                             \
      SHOWN("", "predicted", 11, column_seconds))                                                  \
    X(ROW_ERROR, "error", PLAYED(REAL(validate_error(validate, row))),                             \
      SHOWN("", "error", 11, validate_signed))                                                     \
    X(ROW_RATIO, "error_behind_factor",                                                            \
      PLAYED(REAL((1 + validate_error(validate, row)) / score->factor - 1)),                       \
      SHOWN("behind the factor", "ratio", 11, validate_signed))                                    \
    X(ROW_LOW_TIME, "interval_low_s", WITHIN(low), HIDDEN)                                         \
    X(ROW_HIGH_TIME, "interval_high_s", WITHIN(high), HIDDEN)                                      \
    X(ROW_COMPUTE, "compute_s", TIMED(REAL(result->compute_s)), HIDDEN)                            \
    X(ROW_EXPOSED, "exposed_s", TIMED(REAL(result->exposed_s)), HIDDEN)                            \
    X(ROW_IDLE, "idle_s", TIMED(REAL(result->idle_s)), HIDDEN)                                     \
    X(ROW_USEFUL, "useful_s", WHERE(result->useful_s > 0, REAL(result->useful_s)), HIDDEN)         \
    X(ROW_PEAK, "measured_peak_bytes", WHERE(row->peak_bytes > 0, REAL(row->peak_bytes)), HIDDEN)  \
    X(ROW_PEAK_PREDICTED, "predicted_peak_bytes",                                                  \
      WHERE(row->peak_bytes > 0 && result->state == VALIDATE_PLAYED, REAL(result->peak_bytes)),    \
      HIDDEN)                                                                                      \
    X(ROW_OVER, "over_memory", WHERE(result->over > 0, REAL(result->over)), HIDDEN)                \
    X(ROW_DERIVED, "derived", FLAG(row->derived), HIDDEN)                                          \
    X(ROW_LOW, "low_confidence", FLAG(row->low_confidence), HIDDEN)                                \
    X(ROW_ASSUMED, "assumed", WHERE(row->assumed != NULL, LIST(row->assumed)),                     \
      NAMED("assumed", column_words))

#define SCORED(value) WHERE(score->played > 0, value)
#define RANKED(value) WHERE(score->layout_sets > 0, value)
#define BASED(value) WHERE(score->base_rows > 0, value)
#define REMEMBERED(value) WHERE(score->memory_rows > 0, value)
/* A set that podsim may learn from has no title and no aim but in JSON. */
#define UNLESS_LEARNED(its_kind, ...)                                                              \
    COLUMN_VALUE(its_kind, __VA_ARGS__, .said = set->learned ? "" : NULL)
#define MET(reached, its_aim) WORDS((reached) <= (its_aim) ? "met" : "missed")

/* Of `set` and its `score`. */
#define VALIDATE_SETS(X)                                                                           \
    X(SET_NAME, "test", WORDS(set->name), NAMED("test", column_words))                             \
    X(SET_GROUP, NULL, WORDS(set->name), NAMED("group", column_words))                             \
    X(SET_TITLE, "title", UNLESS_LEARNED(COLUMN_WORDS, .words = set->title),                       \
      NAMED("", column_words))                                                                     \
    X(SET_SOURCE, "source", WORDS(set->source), HIDDEN)                                            \
    X(SET_LEARNED, "learned_from", FLAG(set->learned), HIDDEN)                                     \
    X(SET_RAN, "simulated", WHOLE(score->played), NAMED("run", column_plain))                      \
    X(SET_REFUSED, "not_run", WHOLE(score->refused), NAMED("not run", column_plain))               \
    X(SET_MEAN, "mean_error", SCORED(REAL(score->mean)), NAMED("mean error", validate_signed))     \
    X(SET_ABSOLUTE, "mean_absolute_error", SCORED(REAL(score->mean_absolute)),                     \
      NAMED("mean absolute", validate_share))                                                      \
    X(SET_AIM, "aim", WHERE(set->aim > 0, UNLESS_LEARNED(COLUMN_REAL, .real = set->aim)),          \
      NAMED("aim", validate_share))                                                                \
    X(SET_AIM_MET, NULL,                                                                           \
      WHERE(set->aim > 0 && !set->learned, MET(score->mean_absolute, set->aim)),                   \
      IN_WORDS(column_words))                                                                      \
    X(SET_WORST, "worst_error", SCORED(REAL(score->worst)), NAMED("worst", validate_signed))       \
    X(SET_WORST_ROW, "worst_row", SCORED(WORDS(score->worst_row->id)), HIDDEN)                     \
    X(SET_FACTOR, "common_factor", SCORED(REAL(score->factor)), IN_WORDS(validate_factor))         \
    X(SET_BEHIND, "mean_absolute_error_behind_factor", SCORED(REAL(score->ratio_absolute)),        \
      NAMED("behind one factor", validate_share))                                                  \
    X(SET_INSIDE, "one_share_inside", SCORED(REAL(score->inside)),                                 \
      NAMED("best share inside", validate_share))                                                  \
    X(SET_OUTSIDE, "one_share_a_chip",                                                             \
      WHERE(score->played > 0 && score->outside_rows > 0, REAL(score->outside)), HIDDEN)           \
    X(SET_OUTSIDE_ROWS, "one_share_a_chip_rows", SCORED(WHOLE(score->outside_rows)), HIDDEN)       \
    X(SET_OUTSIDE_SAID, NULL, SCORED(WORDS(score->outside_said)),                                  \
      NAMED("chip's share outside", column_words))                                                 \
    X(SET_LAYOUTS, "layout_sets", SCORED(WHOLE(score->layout_sets)),                               \
      NAMED("choices", column_plain))                                                              \
    X(SET_RANK, "rank_correlation", RANKED(REAL(score->rank)),                                     \
      NAMED("rank correlation", validate_rank))                                                    \
    X(SET_REGRET, "regret", RANKED(REAL(score->regret)), NAMED("regret", validate_share))          \
    X(SET_BASE, "ratio_to_1f1b_error", BASED(REAL(score->base_absolute)),                          \
      NAMED("ratios to 1F1B", validate_share))                                                     \
    X(SET_RATIO_AIM, "ratio_aim", WHERE(set->ratio_aim > 0, REAL(set->ratio_aim)),                 \
      NAMED("aim", validate_share))                                                                \
    X(SET_RATIO_MET, NULL, WHERE(set->ratio_aim > 0, MET(score->base_absolute, set->ratio_aim)),   \
      IN_WORDS(column_words))                                                                      \
    X(SET_MEMORY, "memory_rows", SCORED(WHOLE(score->memory_rows)),                                \
      NAMED("peak memory, rows", column_plain))                                                    \
    X(SET_MEMORY_MEAN, "memory_mean_error", REMEMBERED(REAL(score->memory_mean)),                  \
      NAMED("mean", validate_signed))                                                              \
    X(SET_MEMORY_ABSOLUTE, "memory_mean_absolute_error", REMEMBERED(REAL(score->memory_absolute)), \
      NAMED("mean absolute", validate_share))

/* Of `coverage`. */
#define FOLDED(value) WHERE(coverage->of != VALIDATE_OF_TEST, value)
#define VALIDATE_COVERAGES(X)                                                                      \
    X(COVERAGE_NAME, "name", WORDS(coverage->name), SHOWN("chip", "rows of", -20, column_words))   \
    X(COVERAGE_TEST, NULL, WORDS(coverage->name), NAMED("test", column_words))                     \
    X(COVERAGE_LEVEL, NULL, WORDS(coverage->name), NAMED("interval", column_words))                \
    X(COVERAGE_WORK, NULL, WORDS(coverage->name), NAMED("work", column_words))                     \
    X(COVERAGE_OF, "of", WORDS(validate_subject_word(coverage->of)), HIDDEN)                       \
    X(COVERAGE_ROWS, "rows", WHOLE(coverage->rows), SHOWN("rows", "rows", 7, column_plain))        \
    X(PUBLICATIONS, "publications", FOLDED(WHOLE(coverage->publications)),                         \
      NAMED("publications", column_plain))                                                         \
    X(COVERED, "covered", REAL(coverage->covered[VALIDATE_PUBLICATION]),                           \
      SHOWN("covered", "covered", 10, validate_share))                                             \
    X(HALF_WIDTH, "half_width", REAL(coverage->half_width[VALIDATE_PUBLICATION]),                  \
      SHOWN("half-width", "half-width", 12, validate_share))                                       \
    X(COVERED_ONCE, "covered_publication_once", FOLDED(REAL(coverage->covered_once)),              \
      NAMED("covered, a publication once", validate_share))                                        \
    X(COVERED_MODEL, "covered_model_left_out", FOLDED(REAL(coverage->covered[VALIDATE_MODEL])),    \
      SHOWN("covered, model left out", "covered", 10, validate_share))                             \
    X(HALF_WIDTH_MODEL, "half_width_model_left_out",                                               \
      FOLDED(REAL(coverage->half_width[VALIDATE_MODEL])),                                          \
      SHOWN("half-width, model left out", "half-width", 12, validate_share))

enum { VALIDATE_ROWS(COLUMN_NAME) ROWS_TOTAL };
enum { VALIDATE_SETS(COLUMN_NAME) SETS_TOTAL };
enum { VALIDATE_COVERAGES(COLUMN_NAME) COVERAGES_TOTAL };

extern const struct column validate_rows[ROWS_TOTAL];
extern const struct column validate_sets[SETS_TOTAL];
extern const struct column validate_coverages[COVERAGES_TOTAL];

void validate_find_row(const struct validate *validate, uint32_t set, uint32_t row,
                       struct column_value ret_values[ROWS_TOTAL]);
void validate_find_set(const struct validate *validate, uint32_t set,
                       struct column_value ret_values[SETS_TOTAL]);
void validate_find_coverage(const void *validate, uint32_t index, struct column_value *ret_values);
/* "chip" */
const char *validate_subject_word(enum validate_subject subject);
/* "simulated" */
const char *validate_state_word(enum validate_state state);

#endif
