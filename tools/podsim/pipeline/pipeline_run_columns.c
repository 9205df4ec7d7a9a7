/* The figures of `podsim pipeline FILE`: of a row, and of each of its ranks. Times are seconds. */
#include <stdio.h>

#include "sim/base/json.h"
#include "tools/podsim/pipeline/formula.h"
#include "tools/podsim/pipeline/pipeline_run.h"

enum { MEGA = 1000000, GIGA = 1000000000 };

/* "1.23 G" */
static struct table_figure parameters(struct column_value value)
{
    struct table_figure figure;
    bool const large = value.real >= GIGA;
    (void)snprintf(figure.text, sizeof figure.text, "%.3g %s", value.real / (large ? GIGA : MEGA),
                   large ? "G" : "M");
    return figure;
}

#define SHOWN_SECONDS(first, second, width) .unit = "s", SHOWN(first, second, width, column_seconds)
#define EACH_PEAK(kind) REAL(role->memory.each_peak_bytes[kind])
#define UPDATE_PHASE role->phase[PROGRAM_PHASE_UPDATE]

#define RANKS(X)                                                                                   \
    X(RANK_SHARE, "peak_activations", REAL(row->activations[rank]), HIDDEN)                        \
    X(RANK_WORK, "work", SECONDS(pipeline_run_work_ps(role)), SHOWN_SECONDS("", "work", 10))       \
    X(RANK_IDLE, "idle", SECONDS(row->span_ps - pipeline_run_work_ps(role)), HIDDEN)               \
    X(RANK_UPDATE, "update", SECONDS(UPDATE_PHASE.compute_ps + UPDATE_PHASE.exposed_ps), HIDDEN)   \
    X(RANK_OPTIMIZER, "optimizer", SECONDS(UPDATE_PHASE.compute_ps), HIDDEN)                       \
    X(RANK_BUBBLE, "idle_bubble", SECONDS(role->bubble_ps), SHOWN_SECONDS("", "bubble", 12))       \
    X(RANK_WAITING, "idle_waiting_for_transfer", SECONDS(role->waiting_ps),                        \
      SHOWN_SECONDS("", "transfer", 12))                                                           \
    X(RANK_EXPOSED, "exposed_collectives", SECONDS(role->exposed_ps),                              \
      SHOWN_SECONDS("", "exposed", 12))                                                            \
    X(RANK_ACTIVATIONS, "peak_activations_bytes", EACH_PEAK(PROGRAM_MEMORY_ACTIVATIONS),           \
      SHOWN("", "activations", 12, column_bytes))                                                  \
    X(RANK_MEMORY, "peak_memory_bytes", REAL(role->memory.peak_bytes),                             \
      SHOWN("", "memory", 12, column_bytes))                                                       \
    X(RANK_PARAMETERS, "parameters", REAL(row->parameter_count[rank]),                             \
      SHOWN("", "parameters", 12, parameters))                                                     \
    X(RANK_SENT, "sent_bytes", REAL(role->sent_bytes), SHOWN("", "sent", 12, column_bytes))        \
    X(RANK_GATHERED, "gathered_weight_bytes", REAL(row->gathered_bytes[rank]), HIDDEN)             \
    X(RANK_HELD, "peak_gathered_weights", EACH_PEAK(PROGRAM_MEMORY_GATHERED), HIDDEN)

enum { RANKS(COLUMN_NAME) RANKS_TOTAL };

static const struct column ranks[] = {RANKS(COLUMN_ENTRY)};

static const uint8_t ranks_screen[] = {RANK_WORK,        RANK_BUBBLE, RANK_WAITING,    RANK_EXPOSED,
                                       RANK_ACTIVATIONS, RANK_MEMORY, RANK_PARAMETERS, RANK_SENT};
const struct column_line pipeline_run_ranks_screen = COLUMN_LINE(ranks, ranks_screen);

void pipeline_run_find_rank(const void *owner, uint32_t rank, struct column_value *ret_values)
{
    const struct pipeline_run_row *row = owner;
    const struct trace_role *role = &row->role[rank];
    RANKS(COLUMN_FIND)
}

/* What ranks have of a figure. */
struct spread {
    double least, mean, most;
};

static struct spread spread_of(const struct pipeline_run_row *row, uint32_t column)
{
    uint32_t const count = row->of->schedule.rank_count;
    struct spread spread = {0};
    for (uint32_t r = 0; r < count; r++) {
        struct column_value values[RANKS_TOTAL];
        pipeline_run_find_rank(row, r, values);
        double const value = values[column].real;
        if (r == 0 || value < spread.least) spread.least = value;
        if (value > spread.most) spread.most = value;
        spread.mean += value / count;
    }
    return spread;
}

#define MOST(rank_column) REAL(spread_of(row, rank_column).most)
#define STEP_SHARE(rank_column)                                                                    \
    PERCENT(spread_of(row, rank_column).mean, units_seconds(row->step_ps))
#define TIME(has, duration_ps) WHERE(has, SECONDS((duration_ps)*row->of->schedule.chunk_count))

#define TABLE(X)                                                                                   \
    X(STEP, "step", SECONDS(row->step_ps), SHOWN_SECONDS("", "step", 11))                          \
    X(PERIOD, "period", SECONDS(pipeline_run_period_ps(row)), SHOWN_SECONDS("", "period", 11))     \
    X(PERIOD_STEPS, "period_steps", WHOLE(row->period.steps), HIDDEN)                              \
    X(PERIOD_CYCLE, "period_cycle", WHOLE(row->period.cycle), HIDDEN)                              \
    X(PERIOD_SPREAD, "period_spread", SECONDS(row->period.spread), HIDDEN)                         \
    X(MAKESPAN, "makespan", SECONDS(row->span_ps), .unit = "s")                                    \
    X(BUBBLE, "bubble_makespan", SECONDS(row->bubble.makespan_ps),                                 \
      SHOWN_SECONDS("", "bubble", 11))                                                             \
    X(BUSIEST, "bubble_busiest", SECONDS(row->bubble.busiest_ps),                                  \
      SHOWN_SECONDS("of the", "busiest", 11))                                                      \
    X(PER_STAGE, "bubble_per_stage", SECONDS(row->bubble.per_rank_ps),                             \
      SHOWN_SECONDS("", "per stage", 11))                                                          \
    X(MFU, "mfu", REAL(row->mfu), SHOWN("", "MFU", 7, column_share))                               \
    X(MFU_ATTENTION, "mfu_attention", REAL(row->mfu_attention), HIDDEN)                            \
    X(TOKENS, "tokens_per_s", REAL(row->tokens_per_s), HIDDEN)                                     \
    X(FITS, "fits", FLAG(row->fits), HIDDEN)                                                       \
    X(WEIGHTS_EXPOSED, "exposed_weights", SECONDS(row->weights_exposed_ps),                        \
      SHOWN_SECONDS("", "waited for", 12))                                                         \
    X(CHIPS, "chips_replayed", WHOLE(row->chips_replayed), HIDDEN)                                 \
    X(TIME_F, "F", TIME(true, row->times.forward), SHOWN("", "F", 9, column_seconds))              \
    X(TIME_I, "I", TIME(is_split, row->times.input), SHOWN("", "I", 9, column_seconds))            \
    X(TIME_W, "W", TIME(is_split, row->times.weight), SHOWN("", "W", 9, column_seconds))           \
    X(TIME_B, "B", TIME(!is_split, row->times.input + row->times.weight),                          \
      SHOWN("", "B", 9, column_seconds))                                                           \
    X(TIME_O, "O", TIME(row->times.pair > 0, row->times.pair), SHOWN("", "O", 9, column_seconds))  \
    FORMULA_COLUMNS(X, &row->of->formula, units_seconds(row->of->formula.bubble_ticks),            \
                    SHOWN("bubble by", "formula", 10, column_seconds))                             \
    X(EQUAL, "bubble_with_equal_times",                                                            \
      WHERE(has_formula, SECONDS(formula_measured(&row->of->formula, &row->equal))),               \
      SHOWN("order", "alone", 10, column_seconds))                                                 \
    X(SIMULATED, NULL, SECONDS(is_per_rank ? row->bubble.per_rank_ps : row->bubble.makespan_ps),   \
      SHOWN("simu-", "lated", 10, column_seconds))                                                 \
    X(COMPARED, NULL, WORDS(is_per_rank ? "per stage" : "bubble"),                                 \
      SHOWN("", "which", 11, column_words))                                                        \
    X(WORK_LEAST, NULL, REAL(spread_of(row, RANK_WORK).least),                                     \
      SHOWN("work:", "least", 10, column_seconds))                                                 \
    X(WORK_MOST, NULL, REAL(spread_of(row, RANK_WORK).most),                                       \
      SHOWN("", "most", 10, column_seconds))                                                       \
    X(WAITING, NULL, REAL(spread_of(row, RANK_WAITING).mean),                                      \
      SHOWN("trans-", "fer", 10, column_seconds))                                                  \
    X(SHARE_BUBBLE, NULL, STEP_SHARE(RANK_BUBBLE), SHOWN("idle:", "bubble", 8, column_percent))    \
    X(SHARE_TRANSFER, NULL, STEP_SHARE(RANK_WAITING), SHOWN("trans-", "fer", 8, column_percent))   \
    X(SHARE_EXPOSED, NULL, STEP_SHARE(RANK_EXPOSED), SHOWN("exposed", "coll.", 8, column_percent)) \
    X(ACTIVATIONS, NULL, MOST(RANK_ACTIVATIONS), SHOWN("acti-", "vations", 10, column_bytes))      \
    X(MEMORY, "peak_memory_bytes", WHOLE(pipeline_run_peak_bytes(row)),                            \
      SHOWN("all", "memory", 10, column_bytes))                                                    \
    X(PARAMETERS, NULL, MOST(RANK_PARAMETERS), SHOWN("para-", "meters", 8, parameters))            \
    X(SENT, NULL, MOST(RANK_SENT), SHOWN("sent a", "chip", 10, column_bytes))                      \
    X(GATHERED, NULL, MOST(RANK_GATHERED), SHOWN("", "a chip gathers", 16, column_bytes))          \
    X(HELD, NULL, MOST(RANK_HELD), SHOWN("", "held at most", 14, column_bytes))

enum { TABLE(COLUMN_NAME) COLUMN_TOTAL };
_Static_assert((int)COLUMN_TOTAL <= (int)COLUMNS_MAX, "a row's values have room");

static const struct column columns[] = {TABLE(COLUMN_ENTRY)};

static const uint8_t csv[] = {PERIOD, STEP,          MAKESPAN, BUBBLE, BUSIEST, PER_STAGE,
                              MFU,    MFU_ATTENTION, TOKENS,   MEMORY, FITS};
static const uint8_t screen[] = {
    PERIOD,         STEP,          MFU,         BUBBLE, BUSIEST,    PER_STAGE, SHARE_BUBBLE,
    SHARE_TRANSFER, SHARE_EXPOSED, ACTIVATIONS, MEMORY, PARAMETERS, SENT,      FORMULA};
static const uint8_t formulas[] = {FORMULA,   EQUAL,   SIMULATED,   COMPARED, WORK_LEAST,
                                   WORK_MOST, WAITING, TIME_F,      TIME_I,   TIME_W,
                                   TIME_B,    TIME_O,  FORMULA_TEXT};
static const uint8_t weights[] = {GATHERED, HELD, WEIGHTS_EXPOSED};

const struct column_line pipeline_run_cells = COLUMN_LINE(columns, csv);
const struct column_line pipeline_run_screen = COLUMN_LINE(columns, screen);
const struct column_line pipeline_run_formulas_screen = COLUMN_LINE(columns, formulas);
const struct column_line pipeline_run_weights_screen = COLUMN_LINE(columns, weights);

void pipeline_run_find(const void *owner, uint32_t index, struct column_value *ret_values)
{
    const struct comparison *comparison = owner;
    const struct pipeline_run *staged = comparison->owner;
    const struct pipeline_run_row *row = &staged->row[index];
    bool const is_split = schedule_is_split(&row->of->schedule);
    bool const has_formula = row->of->formula.measure != SCHEDULE_NO_FORMULA;
    bool const is_per_rank = row->of->formula.measure == SCHEDULE_PER_RANK;
    TABLE(COLUMN_FIND)
    ret_values[MEMORY].is_too_much = !row->fits;
}

static const struct column head[] = {{.key = "title"}, {.key = "units"}};

void pipeline_run_put_head(const struct comparison *comparison, struct json_writer *json)
{
    const struct pipeline_run *staged = comparison->owner;
    struct column_value const values[] = {WORDS(staged->title), WORDS("seconds")};
    column_put(head, values, 0, 1, json);
}

void pipeline_run_put_row(const struct comparison *comparison, uint32_t index,
                          struct json_writer *json)
{
    const struct pipeline_run *staged = comparison->owner;
    const struct pipeline_run_row *row = &staged->row[index];
    struct column_value values[COLUMNS_MAX];
    pipeline_run_find(comparison, index, values);
    column_put(columns, values, 0, CHIPS, json);
    json_put_object(json, "times");
    column_put(columns, values, TIME_F, TIME_O, json);
    json_write_object_end(json);
    column_put(columns, values, FORMULA_TEXT, EQUAL, json);
    column_put_arrays(ranks, RANKS_TOTAL, pipeline_run_find_rank, row, row->of->schedule.rank_count,
                      json);
}
