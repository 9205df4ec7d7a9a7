/* The figures of `podsim pipeline` with given times. */
#include <stdio.h>
#include <string.h>

#include "sim/base/json.h"
#include "sim/base/units.h"
#include "tools/podsim/pipeline/formula.h"
#include "tools/podsim/pipeline/schedules.h"

struct table_figure schedules_figure(double value)
{
    struct table_figure figure;
    (void)snprintf(figure.text, sizeof figure.text, "%.4f", value);
    size_t end = strlen(figure.text);
    while (end > 0 && figure.text[end - 1] == '0') end--;
    if (end > 0 && figure.text[end - 1] == '.') end--;
    figure.text[end] = '\0';
    return strcmp(figure.text, "-0") == 0 ? (struct table_figure){"0"} : figure;
}

static struct table_figure look(struct column_value value)
{
    return schedules_figure(value.real);
}

static struct table_figure copies(struct column_value value)
{
    struct table_figure figure;
    (void)snprintf(figure.text, sizeof figure.text, "%ux", (unsigned)value.whole);
    return figure;
}

#define UNITS(ticks) REAL(schedules_units(row, ticks))

#define TABLE(X)                                                                                   \
    X(MAKESPAN, "makespan", UNITS(played->makespan), SHOWN("", "makespan", 10, look))              \
    X(BUBBLE, "bubble_makespan", UNITS(played->bubble_makespan), SHOWN("", "bubble", 9, look))     \
    X(BUSIEST, "bubble_busiest", UNITS(played->bubble_busiest), HIDDEN)                            \
    X(PER_STAGE, "bubble_per_stage", UNITS(played->bubble_per_rank),                               \
      SHOWN("", "per stage", 10, look))                                                            \
    X(PERIOD, "period", UNITS(row->period.time), SHOWN("", "period", 9, look))                     \
    X(STEPS, "period_steps", WHOLE(row->period.steps), HIDDEN)                                     \
    X(CYCLE, "period_cycle", WHOLE(row->period.cycle), HIDDEN)                                     \
    X(SPREAD, "period_spread", UNITS(row->period.spread), HIDDEN)                                  \
    X(HOPS, "waiting_for_hops", UNITS(played->makespan - row->without_hops.makespan),              \
      SHOWN("", "by hops", 9, look))                                                               \
    FORMULA_COLUMNS(X, &row->of->formula, schedules_units(row, row->of->formula.bubble_ticks),     \
                    SHOWN("", "formula", 9, look))                                                 \
    X(EXACT, "formula_is_exact",                                                                   \
      WHERE(row->of->formula.measure != SCHEDULE_NO_FORMULA,                                       \
            FLAG(row->of->formula.exact && schedules->hop == 0)),                                  \
      HIDDEN)                                                                                      \
    X(HELD, "peak_activations", REAL(schedules_peak_most(schedules, row)),                         \
      SHOWN("", "held", 8, look))                                                                  \
    X(SHARE, NULL,                                                                                 \
      PERCENT(schedules_units(row, played->bubble_makespan),                                       \
              schedules_units(row, played->makespan)),                                             \
      SHOWN("", "share", 8, column_percent))                                                       \
    X(COPIES, NULL, WHOLE(row->of->schedule.copy_count), SHOWN("", "weights", 8, copies))

#define RANKS(X)                                                                                   \
    X(RANK_HELD, "peak_activations", REAL(schedules_peak(of->schedules, row, rank)), HIDDEN)       \
    X(RANK_WORK, "work", UNITS(row->played.lane[rank].work), HIDDEN)                               \
    X(RANK_IDLE, "idle", UNITS(row->played.makespan - row->played.lane[rank].work), HIDDEN)

enum { TABLE(COLUMN_NAME) COLUMN_TOTAL };
enum { RANKS(COLUMN_NAME) RANKS_TOTAL };
_Static_assert((int)COLUMN_TOTAL <= (int)COLUMNS_MAX, "a row's values have room");

static const struct column columns[] = {TABLE(COLUMN_ENTRY)};
static const struct column ranks[] = {RANKS(COLUMN_ENTRY)};

static const uint8_t csv[] = {PERIOD, MAKESPAN, BUBBLE, BUSIEST, PER_STAGE, HELD};
static const uint8_t screen[] = {PERIOD,  MAKESPAN, BUBBLE, SHARE, PER_STAGE,
                                 FORMULA, HOPS,     HELD,   COPIES};

const struct column_line schedules_cells = COLUMN_LINE(columns, csv);
const struct column_line schedules_screen = COLUMN_LINE(columns, screen);

void schedules_find(const void *owner, uint32_t index, struct column_value *ret_values)
{
    const struct comparison *comparison = owner;
    const struct schedules *schedules = comparison->owner;
    const struct schedules_row *row = &schedules->row[index];
    const struct schedule_played *played = &row->played;
    TABLE(COLUMN_FIND)
}

struct ranks_of {
    const struct schedules *schedules;
    const struct schedules_row *row;
};

static void ranks_find(const void *owner, uint32_t rank, struct column_value *ret_values)
{
    const struct ranks_of *of = owner;
    const struct schedules_row *row = of->row;
    RANKS(COLUMN_FIND)
}

#define HEAD(X)                                                                                    \
    X(UNITS, "units", WORDS("as given"), HIDDEN)                                                   \
    X(TIME_F, "F", UNIT(schedules->forward), HIDDEN)                                               \
    X(TIME_I, "I", UNIT(schedules->input), HIDDEN)                                                 \
    X(TIME_W, "W", UNIT(schedules->weight), HIDDEN)                                                \
    X(TIME_HOP, "hop", UNIT(schedules->hop), HIDDEN)                                               \
    X(TIME_O, "O", WHERE(schedules->pair > 0, UNIT(schedules->pair)), HIDDEN)                      \
    X(KEPT, "weight_memory", REAL((double)schedules->kept_ppm / PPM_ONE), HIDDEN)
#define UNIT(ticks) REAL((double)(ticks) / SCHEDULES_UNIT)

enum { HEAD(COLUMN_NAME) HEAD_TOTAL };

static const struct column head[] = {HEAD(COLUMN_ENTRY)};

static void find_head(const struct schedules *schedules, struct column_value *ret_values)
{
    HEAD(COLUMN_FIND)
}

void schedules_put_head(const struct comparison *comparison, struct json_writer *json)
{
    struct column_value values[HEAD_TOTAL];
    find_head(comparison->owner, values);
    column_put(head, values, UNITS, UNITS, json);
    json_put_object(json, "times");
    column_put(head, values, TIME_F, TIME_O, json);
    json_write_object_end(json);
    column_put(head, values, KEPT, KEPT, json);
}

void schedules_put_row(const struct comparison *comparison, uint32_t index,
                       struct json_writer *json)
{
    const struct schedules *schedules = comparison->owner;
    struct ranks_of const of = {schedules, &schedules->row[index]};
    struct column_value values[COLUMNS_MAX];
    schedules_find(comparison, index, values);
    column_put(columns, values, 0, EXACT, json);
    column_put_arrays(ranks, RANKS_TOTAL, ranks_find, &of, of.row->of->rank_count, json);
}
