/* The rows of `podsim pipeline FILE` as JSON, and as cells of its CSV. Times are seconds. */
#include "sim/base/json.h"
#include "sim/base/text.h"
#include "sim/base/units.h"
#include "tools/podsim/formula.h"
#include "tools/podsim/staged.h"

static void put_times(struct json_writer *json, const struct staged_row *row)
{
    uint32_t const chunks = row->of->schedule.chunk_count;
    json_put_object(json, "times");
    json_put_real(json, "F", units_seconds(row->times.forward * chunks));
    if (schedule_is_split(&row->of->schedule)) {
        json_put_real(json, "I", units_seconds(row->times.input * chunks));
        json_put_real(json, "W", units_seconds(row->times.weight * chunks));
    } else {
        json_put_real(json, "B", units_seconds((row->times.input + row->times.weight) * chunks));
    }
    if (row->times.pair > 0) json_put_real(json, "O", units_seconds(row->times.pair * chunks));
    json_write_object_end(json);
}

static void put_formula(struct json_writer *json, const struct staged_row *row)
{
    formula_put(json, &row->of->formula, units_seconds(row->of->formula.bubble_ticks));
    if (row->of->formula.measure == SCHEDULE_NO_FORMULA) return;
    json_put_real(json, "bubble_with_equal_times",
                  units_seconds(formula_measured(&row->of->formula, &row->equal)));
}

/* One array a figure, by rank. */
static void put_ranks(struct json_writer *json, const struct staged_row *row)
{
    enum {
        SHARE,
        WORK,
        IDLE,
        UPDATE,
        OPTIMIZER,
        BUBBLE,
        WAITING,
        EXPOSED,
        ACTIVATIONS,
        MEMORY,
        PARAMETERS,
        SENT,
        GATHERED,
        HELD,
        FIGURES
    };
    static const char *const names[FIGURES] = {"peak_activations",
                                               "work",
                                               "idle",
                                               "update",
                                               "optimizer",
                                               "idle_bubble",
                                               "idle_waiting_for_transfer",
                                               "exposed_collectives",
                                               "peak_activations_bytes",
                                               "peak_memory_bytes",
                                               "parameters",
                                               "sent_bytes",
                                               "gathered_weight_bytes",
                                               "peak_gathered_weights"};
    for (uint32_t figure = 0; figure < FIGURES; figure++) {
        json_put_array(json, names[figure]);
        for (uint32_t r = 0; r < row->of->schedule.rank_count; r++) {
            const struct trace_role *role = &row->role[r];
            int64_t const update_ps = role->phase[PROGRAM_PHASE_UPDATE].compute_ps +
                                      role->phase[PROGRAM_PHASE_UPDATE].exposed_ps;
            double const values[FIGURES] = {
                [SHARE] = row->activations[r],
                [WORK] = units_seconds(staged_work_ps(role)),
                [IDLE] = units_seconds(row->span_ps - staged_work_ps(role)),
                [UPDATE] = units_seconds(update_ps),
                [OPTIMIZER] = units_seconds(role->phase[PROGRAM_PHASE_UPDATE].compute_ps),
                [BUBBLE] = units_seconds(role->bubble_ps),
                [WAITING] = units_seconds(role->waiting_ps),
                [EXPOSED] = units_seconds(role->exposed_ps),
                [ACTIVATIONS] = (double)role->memory_each_peak_bytes[PROGRAM_MEMORY_ACTIVATIONS],
                [MEMORY] = (double)role->memory_peak_bytes,
                [PARAMETERS] = (double)row->parameter_count[r],
                [SENT] = (double)role->sent_bytes,
                [GATHERED] = (double)row->gathered_bytes[r],
                [HELD] = (double)role->memory_each_peak_bytes[PROGRAM_MEMORY_GATHERED],
            };
            json_write_real(json, values[figure]);
        }
        json_write_array_end(json);
    }
}

static void put_row(struct json_writer *json, const struct staged_row *row)
{
    json_put_real(json, "step", units_seconds(row->step_ps));
    json_put_real(json, "period", units_seconds(staged_period_ps(row)));
    json_put_unsigned(json, "period_steps", row->period.steps);
    json_put_unsigned(json, "period_cycle", row->period.cycle);
    json_put_real(json, "period_spread", units_seconds(row->period.spread));
    json_put_real(json, "makespan", units_seconds(row->span_ps));
    json_put_real(json, "bubble_makespan", units_seconds(row->bubble.makespan_ps));
    json_put_real(json, "bubble_busiest", units_seconds(row->bubble.busiest_ps));
    json_put_real(json, "bubble_per_stage", units_seconds(row->bubble.per_rank_ps));
    json_put_real(json, "mfu", row->mfu);
    json_put_real(json, "mfu_attention", row->mfu_attention);
    json_put_real(json, "tokens_per_s", row->tokens_per_s);
    json_put_boolean(json, "fits", row->fits);
    json_put_real(json, "exposed_weights", units_seconds(row->weights_exposed_ps));
    json_put_unsigned(json, "chips_replayed", row->chips_replayed);
    put_times(json, row);
    put_formula(json, row);
    put_ranks(json, row);
}

void staged_write_json(const struct comparison *comparison, struct text *text)
{
    const struct staged *staged = comparison->owner;
    struct json_writer json;
    json_write_start(&json, text);
    json_write_object(&json);
    json_put_unsigned(&json, "podsim", 1);
    json_put_string(&json, "kind", "pipeline");
    json_put_string(&json, "title", staged->title);
    json_put_string(&json, "units", "seconds");
    comparison_put_complete(comparison, &json);
    json_put_array(&json, "rows");
    for (uint32_t i = 0; i < comparison->done_count; i++) {
        uint32_t const at = comparison->order[i];
        json_write_object(&json);
        if (comparison_put_row(&comparison->row[at], &json)) put_row(&json, &staged->row[at]);
        json_write_object_end(&json);
    }
    json_write_array_end(&json);
    json_write_object_end(&json);
}

void staged_write_cells(const struct comparison *comparison, uint32_t row, struct text *text)
{
    const struct staged *staged = comparison->owner;
    const struct staged_row *shown = &staged->row[row];
    text_add(text, "%.9g,%.9g,%.9g,%.9g,%.9g,%.9g,%.9g,%.9g,%.9g,%llu,%s",
             units_seconds(staged_period_ps(shown)), units_seconds(shown->step_ps),
             units_seconds(shown->span_ps), units_seconds(shown->bubble.makespan_ps),
             units_seconds(shown->bubble.busiest_ps), units_seconds(shown->bubble.per_rank_ps),
             shown->mfu, shown->mfu_attention, shown->tokens_per_s,
             (unsigned long long)staged_peak_bytes(shown), shown->fits ? "true" : "false");
}
