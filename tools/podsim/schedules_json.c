/* The rows of `podsim pipeline` as JSON, and as cells of its CSV. */
#include <stddef.h>

#include "sim/base/json.h"
#include "sim/base/text.h"
#include "sim/base/units.h"
#include "tools/podsim/formula.h"
#include "tools/podsim/schedules.h"

static void put_formula(struct json_writer *json, const struct schedules *schedules,
                        const struct schedules_row *row)
{
    formula_put(json, &row->of->formula, schedules_units(row, row->of->formula.bubble_ticks));
    if (row->of->formula.measure == SCHEDULE_NO_FORMULA) return;
    json_put_boolean(json, "formula_is_exact", row->of->formula.exact && schedules->hop == 0);
}

/* One array a figure, by rank. */
static void put_ranks(struct json_writer *json, const struct schedules *schedules,
                      const struct schedules_row *row)
{
    static const char *const names[] = {"peak_activations", "work", "idle"};
    for (uint32_t figure = 0; figure < sizeof names / sizeof *names; figure++) {
        json_put_array(json, names[figure]);
        for (uint32_t r = 0; r < row->of->rank_count; r++) {
            int64_t const work = row->played.lane[r].work;
            double const values[] = {schedules_peak(schedules, row, r), schedules_units(row, work),
                                     schedules_units(row, row->played.makespan - work)};
            json_write_real(json, values[figure]);
        }
        json_write_array_end(json);
    }
}

static void put_row(struct json_writer *json, const struct schedules *schedules, uint32_t index)
{
    const struct schedules_row *row = &schedules->row[index];
    const struct schedule_played *played = &row->played;
    json_write_object(json);
    if (comparison_put_row(&schedules->of->row[index], json)) {
        json_put_real(json, "makespan", schedules_units(row, played->makespan));
        json_put_real(json, "bubble_makespan", schedules_units(row, played->bubble_makespan));
        json_put_real(json, "bubble_busiest", schedules_units(row, played->bubble_busiest));
        json_put_real(json, "bubble_per_stage", schedules_units(row, played->bubble_per_rank));
        json_put_real(json, "period", schedules_units(row, row->period.time));
        json_put_unsigned(json, "period_steps", row->period.steps);
        json_put_unsigned(json, "period_cycle", row->period.cycle);
        json_put_real(json, "period_spread", schedules_units(row, row->period.spread));
        json_put_real(json, "waiting_for_hops",
                      schedules_units(row, played->makespan - row->without_hops.makespan));
        put_formula(json, schedules, row);
        put_ranks(json, schedules, row);
    }
    json_write_object_end(json);
}

void schedules_write_json(const struct comparison *comparison, struct text *text)
{
    const struct schedules *schedules = comparison->owner;
    struct json_writer json;
    json_write_start(&json, text);
    json_write_object(&json);
    json_put_unsigned(&json, "podsim", 1);
    json_put_string(&json, "kind", "pipeline");
    json_put_string(&json, "units", "as given");
    json_put_object(&json, "times");
    json_put_real(&json, "F", (double)schedules->forward / SCHEDULES_UNIT);
    json_put_real(&json, "I", (double)schedules->input / SCHEDULES_UNIT);
    json_put_real(&json, "W", (double)schedules->weight / SCHEDULES_UNIT);
    json_put_real(&json, "hop", (double)schedules->hop / SCHEDULES_UNIT);
    if (schedules->pair > 0) json_put_real(&json, "O", (double)schedules->pair / SCHEDULES_UNIT);
    json_write_object_end(&json);
    json_put_real(&json, "weight_memory", (double)schedules->kept_ppm / PPM_ONE);
    comparison_put_complete(comparison, &json);
    json_put_array(&json, "rows");
    for (uint32_t i = 0; i < comparison->done_count; i++)
        put_row(&json, schedules, comparison->order[i]);
    json_write_array_end(&json);
    json_write_object_end(&json);
}

void schedules_write_cells(const struct comparison *comparison, uint32_t row, struct text *text)
{
    const struct schedules *schedules = comparison->owner;
    const struct schedules_row *shown = &schedules->row[row];
    const struct schedule_played *played = &shown->played;
    text_add(
        text, "%.9g,%.9g,%.9g,%.9g,%.9g,%.9g", schedules_units(shown, shown->period.time),
        schedules_units(shown, played->makespan), schedules_units(shown, played->bubble_makespan),
        schedules_units(shown, played->bubble_busiest),
        schedules_units(shown, played->bubble_per_rank), schedules_peak_most(schedules, shown));
}
