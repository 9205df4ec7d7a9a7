/* columns.c: the figures of rows and of sets, as JSON and as CSV. */
#include "sim/base/json.h"
#include "sim/base/strbuf.h"
#include "sim/report/column_table.h"
#include "tools/podsim/validate/validate.h"

static const char *const states[] = {
    [VALIDATE_LEFT] = "left out", [VALIDATE_PLAYED] = "simulated", [VALIDATE_REFUSED] = "not run"};

#define PLAYED(value) WHERE(result->state == VALIDATE_PLAYED, value)
#define TIMED(value) WHERE(result->compute_s > 0, value)

#define ROWS(X)                                                                                    \
    X(SET, "test", WORDS(set->name), HIDDEN)                                                       \
    X(ID, "id", WORDS(row->id), HIDDEN)                                                            \
    X(LEARNED, "learned_from", FLAG(row->learned), HIDDEN)                                         \
    X(STATE, "state", WORDS(states[result->state]), HIDDEN)                                        \
    X(WHY, "reason", WHERE(result->state == VALIDATE_REFUSED, LIST(result->why)), HIDDEN)          \
    X(CHIP, "chip", WORDS(row->machine.chip), HIDDEN)                                              \
    X(CHIPS, "chips", WHOLE(row->machine.chips), HIDDEN)                                           \
    X(PRESET, "preset", WHERE(row->policy.preset != NULL, WORDS(row->policy.preset)), HIDDEN)      \
    X(POWER, "power_w", WHERE(row->machine.power_w > 0, WHOLE(row->machine.power_w)), HIDDEN)      \
    X(RECIPE, "fp8_recipe", WHERE(row->policy.recipe != NULL, WORDS(row->policy.recipe)), HIDDEN)  \
    X(STACK, "stack",                                                                              \
      WHERE(result->stack[0] != 0 && !result->stack_is_missing, WORDS(result->stack)), HIDDEN)     \
    X(MEASURED, "measured_s", WHERE(row->seconds > 0, REAL(row->seconds)), HIDDEN)                 \
    X(PREDICTED, "predicted_s", PLAYED(REAL(result->predicted_s)), HIDDEN)                         \
    X(ERROR, "error", PLAYED(REAL(validate_error(validate, row))), HIDDEN)                         \
    X(RATIO, "error_behind_factor",                                                                \
      PLAYED(REAL((1 + validate_error(validate, row)) / score->factor - 1)), HIDDEN)               \
    X(COMPUTE, "compute_s", TIMED(REAL(result->compute_s)), HIDDEN)                                \
    X(EXPOSED, "exposed_s", TIMED(REAL(result->exposed_s)), HIDDEN)                                \
    X(IDLE, "idle_s", TIMED(REAL(result->idle_s)), HIDDEN)                                         \
    X(USEFUL, "useful_s", WHERE(result->useful_s > 0, REAL(result->useful_s)), HIDDEN)             \
    X(PEAK, "measured_peak_bytes", WHERE(row->peak_bytes > 0, REAL(row->peak_bytes)), HIDDEN)      \
    X(PEAK_PREDICTED, "predicted_peak_bytes",                                                      \
      WHERE(row->peak_bytes > 0 && result->state == VALIDATE_PLAYED, REAL(result->peak_bytes)),    \
      HIDDEN)                                                                                      \
    X(OVER, "over_memory", WHERE(result->over > 0, REAL(result->over)), HIDDEN)                    \
    X(DERIVED, "derived", FLAG(row->derived), HIDDEN)                                              \
    X(LOW, "low_confidence", FLAG(row->low_confidence), HIDDEN)                                    \
    X(ASSUMED, "assumed", WHERE(row->assumed != NULL, LIST(row->assumed)), HIDDEN)

enum { ROWS(COLUMN_NAME) ROWS_TOTAL };
static const struct column rows[] = {ROWS(COLUMN_ENTRY)};
const struct column_line validate_cells = COLUMN_ALL(rows);

#define SETS(X)                                                                                    \
    X(NAME, "test", WORDS(set->name), HIDDEN)                                                      \
    X(TITLE, "title", WORDS(set->title), HIDDEN)                                                   \
    X(SOURCE, "source", WORDS(set->source), HIDDEN)                                                \
    X(SET_LEARNED, "learned_from", FLAG(set->learned), HIDDEN)                                     \
    X(RAN, "simulated", WHOLE(score->played), HIDDEN)                                              \
    X(REFUSED, "not_run", WHOLE(score->refused), HIDDEN)                                           \
    X(MEAN, "mean_error", SCORED(REAL(score->mean)), HIDDEN)                                       \
    X(ABSOLUTE, "mean_absolute_error", SCORED(REAL(score->mean_absolute)), HIDDEN)                 \
    X(AIM, "aim", WHERE(set->aim > 0, REAL(set->aim)), HIDDEN)                                     \
    X(WORST, "worst_error", SCORED(REAL(score->worst)), HIDDEN)                                    \
    X(WORST_ROW, "worst_row", SCORED(WORDS(score->worst_row->id)), HIDDEN)                         \
    X(FACTOR, "common_factor", SCORED(REAL(score->factor)), HIDDEN)                                \
    X(BEHIND, "mean_absolute_error_behind_factor", SCORED(REAL(score->ratio_absolute)), HIDDEN)    \
    X(INSIDE, "one_share_inside", SCORED(REAL(score->inside)), HIDDEN)                             \
    X(OUTSIDE, "one_share_a_chip",                                                                 \
      WHERE(score->played > 0 && score->outside_rows > 0, REAL(score->outside)), HIDDEN)           \
    X(LAYOUTS, "layout_sets", SCORED(WHOLE(score->layout_sets)), HIDDEN)                           \
    X(RANK, "rank_correlation", WHERE(score->layout_sets > 0, REAL(score->rank)), HIDDEN)          \
    X(REGRET, "regret", WHERE(score->layout_sets > 0, REAL(score->regret)), HIDDEN)                \
    X(BASE, "ratio_to_1f1b_error", WHERE(score->base_rows > 0, REAL(score->base_absolute)),        \
      HIDDEN)                                                                                      \
    X(RATIO_AIM, "ratio_aim", WHERE(set->ratio_aim > 0, REAL(set->ratio_aim)), HIDDEN)             \
    X(MEMORY, "memory_rows", SCORED(WHOLE(score->memory_rows)), HIDDEN)                            \
    X(MEMORY_MEAN, "memory_mean_error", WHERE(score->memory_rows > 0, REAL(score->memory_mean)),   \
      HIDDEN)                                                                                      \
    X(MEMORY_ABSOLUTE, "memory_mean_absolute_error",                                               \
      WHERE(score->memory_rows > 0, REAL(score->memory_absolute)), HIDDEN)

#define SCORED(value) WHERE(score->played > 0, value)

enum { SETS(COLUMN_NAME) SETS_TOTAL };
static const struct column sets[] = {SETS(COLUMN_ENTRY)};

#define HEAD(X)                                                                                    \
    X(PODSIM, "podsim", WHOLE(1), HIDDEN)                                                          \
    X(KIND, "kind", WORDS("validate"), HIDDEN)

enum { HEAD(COLUMN_NAME) HEAD_TOTAL };
static const struct column head[] = {HEAD(COLUMN_ENTRY)};

static void find_head(struct column_value *ret_values)
{
    HEAD(COLUMN_FIND)
}

static void find_row(const struct validate *validate, uint32_t s, uint32_t r,
                     struct column_value *ret_values)
{
    const struct published_set *set = &validate->published.set[s];
    const struct validate_score *score = &validate->score[s];
    const struct published_row *row = set->row[r];
    const struct validate_result *result = validate_result_of(validate, row);
    ROWS(COLUMN_FIND)
}

static void find_set(const struct validate *validate, uint32_t s, struct column_value *ret_values)
{
    const struct published_set *set = &validate->published.set[s];
    const struct validate_score *score = &validate->score[s];
    SETS(COLUMN_FIND)
}

void validate_write_csv(const struct validate *validate, struct strbuf *text)
{
    column_add_keys(&validate_cells, text);
    strbuf_add(text, "\n");
    for (uint32_t s = 0; s < validate->published.set_count; s++)
        for (uint32_t r = 0; validate->wanted[s] && r < validate->published.set[s].row_count; r++) {
            struct column_value values[ROWS_TOTAL];
            find_row(validate, s, r, values);
            column_add_cells(&validate_cells, values, text);
            strbuf_add(text, "\n");
        }
}

static void rows_put(const struct validate *validate, uint32_t s, struct json_writer *json)
{
    json_put_array(json, "rows");
    for (uint32_t r = 0; r < validate->published.set[s].row_count; r++) {
        struct column_value values[ROWS_TOTAL];
        find_row(validate, s, r, values);
        json_write_object(json);
        column_put(rows, values, 0, ROWS_TOTAL - 1, json);
        json_write_object_end(json);
    }
    json_write_array_end(json);
}

void validate_write_json(const struct validate *validate, struct strbuf *text)
{
    struct json_writer json;
    json_write_start(&json, text);
    json_write_object(&json);
    struct column_value values[HEAD_TOTAL];
    find_head(values);
    column_put(head, values, 0, HEAD_TOTAL - 1, &json);
    json_put_array(&json, "tests");
    for (uint32_t s = 0; s < validate->published.set_count; s++) {
        struct column_value figures[SETS_TOTAL];
        if (!validate->wanted[s]) continue;
        find_set(validate, s, figures);
        json_write_object(&json);
        column_put(sets, figures, 0, SETS_TOTAL - 1, &json);
        rows_put(validate, s, &json);
        json_write_object_end(&json);
    }
    json_write_array_end(&json);
    json_write_object_end(&json);
    strbuf_add(text, "\n");
}
