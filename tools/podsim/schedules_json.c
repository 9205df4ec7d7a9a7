/* The rows of `podsim pipeline` as JSON. */
#include <stddef.h>

#include "sim/base/text.h"
#include "sim/base/units.h"
#include "tools/podsim/formula.h"
#include "tools/podsim/json_put.h"
#include "tools/podsim/schedules.h"

static void put_formula(struct json_writer *json, const struct schedules_row *row)
{
    formula_put(json, &row->formula, schedules_units(row, row->formula.bubble_ticks));
    if (row->formula.measure == SCHEDULE_NO_FORMULA) return;
    if (row->formula.holds != NULL) put_text(json, "formula_holds", row->formula.holds);
    json_write_key(json, "formula_is_exact");
    json_write_boolean(json, row->formula.exact && row->request.times.hop == 0);
}

static void put_ranks(struct json_writer *json, const struct schedules *schedules,
                      const struct schedules_row *row)
{
    json_write_key(json, "peak_activations");
    json_write_array(json);
    for (uint32_t r = 0; r < row->schedule.rank_count; r++)
        json_write_real(json, schedules_peak(schedules, row, r));
    json_write_array_end(json);
    json_write_key(json, "idle");
    json_write_array(json);
    for (uint32_t r = 0; r < row->schedule.rank_count; r++)
        json_write_real(json,
                        schedules_units(row, row->played.makespan - row->played.lane[r].work));
    json_write_array_end(json);
}

static void put_row(struct json_writer *json, const struct schedules *schedules,
                    const struct schedules_row *row)
{
    json_write_object(json);
    put_text(json, "schedule", row->name);
    put_count(json, "stages", row->request.rank_count);
    put_count(json, "microbatches", row->request.microbatch_count);
    put_count(json, "chunks", row->request.chunk_count);
    if (row->refused.status != STATUS_OK) {
        put_text(json, "refused", row->refused.message);
        json_write_object_end(json);
        return;
    }
    put_count(json, "copies", row->schedule.copy_count);
    put_real(json, "makespan", schedules_units(row, row->played.makespan));
    put_real(json, "bubble_makespan", schedules_units(row, row->played.bubble_makespan));
    put_real(json, "bubble_per_stage", schedules_units(row, row->played.bubble_per_rank));
    put_real(json, "waiting_for_hops",
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
    put_count(&json, "podsim", 1);
    put_text(&json, "kind", "pipeline");
    json_write_key(&json, "times");
    json_write_object(&json);
    put_real(&json, "F", (double)schedules->forward / SCHEDULES_UNIT);
    put_real(&json, "I", (double)schedules->input / SCHEDULES_UNIT);
    put_real(&json, "W", (double)schedules->weight / SCHEDULES_UNIT);
    put_real(&json, "hop", (double)schedules->hop / SCHEDULES_UNIT);
    if (schedules->pair > 0) put_real(&json, "O", (double)schedules->pair / SCHEDULES_UNIT);
    json_write_object_end(&json);
    put_real(&json, "weight_memory", (double)schedules->kept_ppm / PPM_ONE);
    json_write_key(&json, "complete");
    json_write_boolean(&json, schedules->done_count == schedules->row_count);
    json_write_key(&json, "rows");
    json_write_array(&json);
    for (uint32_t i = 0; i < schedules->done_count; i++)
        put_row(&json, schedules, &schedules->row[i]);
    json_write_array_end(&json);
    json_write_object_end(&json);
}
