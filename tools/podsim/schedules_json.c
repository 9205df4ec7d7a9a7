/* The rows of `podsim pipeline` as JSON. */
#include <stddef.h>

#include "sim/base/json.h"
#include "sim/base/text.h"
#include "sim/base/units.h"
#include "tools/podsim/formula.h"
#include "tools/podsim/schedules.h"

static void put_formula(struct json_writer *json, const struct schedules_row *row)
{
    formula_put(json, &row->formula, schedules_units(row, row->formula.bubble_ticks));
    if (row->formula.measure == SCHEDULE_NO_FORMULA) return;
    if (row->formula.holds != NULL) json_put_string(json, "formula_holds", row->formula.holds);
    json_put_boolean(json, "formula_is_exact", row->formula.exact && row->request.times.hop == 0);
}

static void put_ranks(struct json_writer *json, const struct schedules *schedules,
                      const struct schedules_row *row)
{
    json_put_array(json, "peak_activations");
    for (uint32_t r = 0; r < row->schedule.rank_count; r++)
        json_write_real(json, schedules_peak(schedules, row, r));
    json_write_array_end(json);
    json_put_array(json, "idle");
    for (uint32_t r = 0; r < row->schedule.rank_count; r++)
        json_write_real(json,
                        schedules_units(row, row->played.makespan - row->played.lane[r].work));
    json_write_array_end(json);
}

static void put_row(struct json_writer *json, const struct schedules *schedules,
                    const struct schedules_row *row)
{
    json_write_object(json);
    json_put_string(json, "schedule", row->name);
    json_put_unsigned(json, "stages", row->request.rank_count);
    json_put_unsigned(json, "microbatches", row->request.microbatch_count);
    json_put_unsigned(json, "chunks", row->request.chunk_count);
    if (row->refused.status != STATUS_OK) {
        json_put_string(json, "refused", row->refused.message);
        json_write_object_end(json);
        return;
    }
    json_put_unsigned(json, "copies", row->schedule.copy_count);
    json_put_real(json, "makespan", schedules_units(row, row->played.makespan));
    json_put_real(json, "bubble_makespan", schedules_units(row, row->played.bubble_makespan));
    json_put_real(json, "bubble_per_stage", schedules_units(row, row->played.bubble_per_rank));
    json_put_real(json, "waiting_for_hops",
                  schedules_units(row, row->played.makespan - row->without_hops.makespan));
    put_formula(json, row);
    put_ranks(json, schedules, row);
    json_write_object_end(json);
}

void schedules_write_json(const struct schedules *schedules, struct text *text)
{
    struct json_writer json;
    json_write_start(&json, text);
    json_write_object(&json);
    json_put_unsigned(&json, "podsim", 1);
    json_put_string(&json, "kind", "pipeline");
    json_put_object(&json, "times");
    json_put_real(&json, "F", (double)schedules->forward / SCHEDULES_UNIT);
    json_put_real(&json, "I", (double)schedules->input / SCHEDULES_UNIT);
    json_put_real(&json, "W", (double)schedules->weight / SCHEDULES_UNIT);
    json_put_real(&json, "hop", (double)schedules->hop / SCHEDULES_UNIT);
    if (schedules->pair > 0) json_put_real(&json, "O", (double)schedules->pair / SCHEDULES_UNIT);
    json_write_object_end(&json);
    json_put_real(&json, "weight_memory", (double)schedules->kept_ppm / PPM_ONE);
    json_put_boolean(&json, "complete", schedules->done_count == schedules->row_count);
    json_put_array(&json, "rows");
    for (uint32_t i = 0; i < schedules->done_count; i++)
        put_row(&json, schedules, &schedules->row[i]);
    json_write_array_end(&json);
    json_write_object_end(&json);
}
