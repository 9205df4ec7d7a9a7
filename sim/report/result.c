#include "sim/report/result.h"

#include <inttypes.h>
#include <stdio.h>

#include "sim/base/json.h"
#include "sim/base/strbuf.h"
#include "sim/base/units.h"
#include "sim/report/analysis.h"
#include "sim/report/inference_facts.h"
#include "sim/report/least_memory.h"
#include "sim/report/notes.h"
#include "sim/report/result_mesh.h"
#include "sim/report/rows.h"
#include "sim/report/summary.h"

/* Rows of a table stand on one line each. */
enum { FLAT_DEPTH = 3 };

static void write_groups(struct json_writer *json, const struct roofline *roofline)
{
    json_write_key(json, "groups");
    column_put_rows(&rows_groups, roofline, roofline->group_count, json);
}

static void write_overlaps(struct json_writer *json, const struct roofline *roofline)
{
    json_write_key(json, "tp_collectives");
    column_put_rows(&rows_overlaps, roofline, roofline->overlap_count, json);
}

static void put_rule(struct json_writer *json, const char *key, double value)
{
    if (value > 0) json_put_real(json, key, value);
}

static void write_rules(struct json_writer *json, const struct roofline_rules *rules)
{
    json_put_object(json, "rules");
    json_put_real(json, "flop_per_byte", rules->alpha);
    json_put_real(json, "tokens_per_chip", rules->tokens_per_chip);
    put_rule(json, "fsdp_critical_tokens", rules->fsdp_critical_tokens);
    put_rule(json, "fsdp_exact_tokens", rules->fsdp_exact_tokens);
    put_rule(json, "fsdp_crossing_tokens", rules->fsdp_crossing_tokens);
    put_rule(json, "dp_critical_tokens", rules->dp_critical_tokens);
    put_rule(json, "dp_exact_tokens", rules->dp_exact_tokens);
    put_rule(json, "experts_critical_tokens", rules->experts_critical_tokens);
    put_rule(json, "experts_exact_tokens", rules->experts_exact_tokens);
    put_rule(json, "tp_critical_width", rules->tp_critical_width);
    put_rule(json, "tp_exact_width", rules->tp_exact_width);
    put_rule(json, "tp_mlp_width", rules->tp_mlp_width);
    put_rule(json, "tp_attention_width", rules->tp_attention_width);
    put_rule(json, "tp_layer_width", rules->tp_layer_width);
    put_rule(json, "mixed_best_ranks", rules->mixed_best_ranks);
    put_rule(json, "mixed_critical_tokens", rules->mixed_critical_tokens);
    put_rule(json, "offload_optimizer_tokens", rules->offload_optimizer_tokens);
    put_rule(json, "ring_tokens", rules->ring_tokens);
    put_rule(json, "ring_rank_tokens", rules->ring_rank_tokens);
    put_rule(json, "offload_activations_share", rules->offload_activations_share);
    json_write_object_end(json);
}

static void write_roofline_object(struct json_writer *json, const struct report_input *input)
{
    const struct roofline *roofline = input->roofline;
    json_write_object(json);
    json_put_real(json, "math_s", roofline->math_s);
    json_put_real(json, "vector_s", roofline->vector_s);
    json_put_real(json, "hbm_s", roofline->hbm_s);
    json_put_object(json, "ici_s");
    for (uint32_t i = 0; i < input->machine->axis_count; i++)
        json_put_real(json, machine_axis_name(input->machine, i), roofline->ici_s[i]);
    json_write_object_end(json);
    json_put_real(json, "host_s", roofline->host_s);
    if (roofline->stages_s > 0) json_put_real(json, "stages_s", roofline->stages_s);
    json_put_real(json, "latency_s", roofline->latency_s);
    json_put_real(json, "lower_s", roofline->lower_s);
    json_put_real(json, "upper_s", roofline->upper_s);
    json_put_real(json, "critical_s", roofline->critical_s);
    json_put_real(json, "tp_excess_s", roofline->tp_excess_s);
    json_put_string(json, "bound_by", roofline->bound.by);
    json_put_real(json, "ideal_s", roofline->ideal_s);
    json_put_real(json, "useful_flop", roofline->flop.useful);
    json_put_real(json, "useful_attention_flop", roofline->flop.useful_attention);
    json_put_real(json, "executed_flop", roofline->flop.executed);
    json_put_real(json, "padded_flop", roofline->flop.padded);
    json_put_real(json, "recomputed_flop", roofline->flop.recomputed);
    json_put_real(json, "flash_flop", roofline->flop.flash);
    json_put_real(json, "duplicated_flop", roofline->flop.duplicated);
    json_put_real(json, "share_padding_flop",
                  roofline->counts.spare.padding * input->machine->chip_count);
    json_put_real(json, "memory_bytes", roofline->memory_bytes);
    write_groups(json, roofline);
    write_overlaps(json, roofline);
    write_rules(json, &roofline->rules);
    json_write_object_end(json);
}

/* Of the whole machine, a step. */
static void write_experts(struct json_writer *json, const struct report_input *input)
{
    const struct workload_counts *counts = &input->roofline->counts;
    if (counts->rows_assigned == 0) return;
    json_put_object(json, "experts");
    json_put_real(json, "assignments", counts->rows_assigned);
    json_put_real(json, "dropped", counts->rows_dropped);
    json_put_real(json, "dropped_fraction", counts->rows_dropped / counts->rows_assigned);
    json_put_real(json, "uneven_flop", counts->spare.uneven * input->machine->chip_count);
    json_write_object_end(json);
}

/* From step to step, where further steps were played. */
static void write_period(struct json_writer *json, const struct report_input *input,
                         const struct analysis *facts)
{
    const struct period *period = &input->trace->period;
    if (period->steps == 0) return;
    json_put_integer(json, "period_time_ps", period->time);
    json_put_real(json, "period_time_s", facts->period_s);
    json_put_unsigned(json, "period_steps", period->steps);
    json_put_unsigned(json, "period_cycle", period->cycle);
    json_put_integer(json, "period_spread_ps", period->spread);
    json_put_real(json, "period_tokens_per_s", facts->period_tokens_per_s);
    if (input->roofline == NULL) return;
    json_put_real(json, "period_mfu", facts->period_mfu);
    json_put_real(json, "period_mfu_attention", facts->period_mfu_attention);
}

static void write_head(struct json_writer *json, const struct report_input *input,
                       const struct analysis *facts)
{
    const struct trace *trace = input->trace;
    char digest[17];
    (void)snprintf(digest, sizeof digest, "%016" PRIx64, trace->digest);
    json_put_unsigned(json, "podsim", 1);
    json_put_string(json, "title", input->title);
    if (input->question[0] != '\0') json_put_string(json, "question", input->question);
    json_put_string(json, "digest", digest);
    json_put_integer(json, "step_time_ps", trace->step_ps);
    json_put_real(json, "step_time_s", facts->step_s);
    write_period(json, input, facts);
    json_put_boolean(json, "fits", summary_fits(input));
    json_put_unsigned(json, "chips", trace->fold.chips);
    json_put_unsigned(json, "chips_replayed", trace->fold.replayed);
    if (trace->fold.prefix > 0) {
        json_put_unsigned(json, "early_chips", trace->fold.prefix);
        json_put_real(json, "early_until_s", units_seconds(trace->fold.prefix_ps));
    }
    result_mesh_write(json, input->machine, input->mesh);
    if (input->roofline != NULL) result_padding_write(json, &input->roofline->counts.paddings);
    json_put_array(json, "folded_axes");
    for (uint32_t i = 0; i < input->machine->axis_count; i++) {
        json_write_object(json);
        json_put_string(json, "axis", machine_axis_name(input->machine, i));
        json_put_unsigned(json, "length", input->machine->shape[i]);
        json_put_unsigned(json, "period", input->fold[i].period);
        json_put_string(json, "reason", input->fold[i].reason);
        json_write_object_end(json);
    }
    json_write_array_end(json);
    json_put_unsigned(json, "events", trace->work.events);
    json_put_unsigned(json, "transfers", trace->work.transfers);
    json_put_unsigned(json, "bound_checks", trace->work.bound_checks);
    json_put_unsigned(json, "tokens", input->program->tokens);
    json_put_real(json, "tokens_per_s", facts->tokens_per_s);
    if (input->roofline != NULL) {
        json_put_real(json, "mfu", facts->mfu);
        json_put_real(json, "mfu_attention", facts->mfu_attention);
        json_put_real(json, "hfu", facts->hfu);
    }
    json_put_string(json, "bound_by", facts->bound_by);
    if (facts->bound_axis != NULL) json_put_string(json, "bound_axis", facts->bound_axis);
    if (input->roofline != NULL) write_experts(json, input);
    if (input->wall_s > 0) {
        json_put_real(json, "wall_s", input->wall_s);
        json_put_real(json, "events_per_s", (double)trace->work.events / input->wall_s);
        json_put_real(json, "transfers_per_s", (double)trace->work.transfers / input->wall_s);
    }
}

static void write_phases(struct json_writer *json, const struct report_input *input,
                         const struct analysis *facts)
{
    json_put_array(json, "phases");
    for (uint32_t i = 0; i < facts->phase_count; i++) {
        const struct analysis_phase *phase = &facts->phase[i];
        json_write_object(json);
        column_put_row(&rows_phases, facts, i, json);
        json_put_object(json, "ici_s");
        for (uint32_t a = 0; a < input->machine->axis_count; a++)
            json_put_real(json, machine_axis_name(input->machine, a), phase->ici_s[a]);
        json_write_object_end(json);
        json_put_string(json, "bound_by", phase->bound_by);
        json_write_object_end(json);
    }
    json_write_array_end(json);
}

static enum status write_collectives(struct arena *arena, struct json_writer *json,
                                     const struct analysis *facts, struct error *reterr)
{
    uint32_t *index;
    uint32_t count;
    STATUS_TRY(analysis_collectives(arena, facts, &index, &count, reterr));
    json_put_array(json, "collectives");
    for (uint32_t i = 0; i < count; i++) {
        json_write_object(json);
        column_put_row(&rows_collectives, facts, index[i], json);
        json_write_object_end(json);
    }
    json_write_array_end(json);
    json_put_array(json, "compute");
    for (uint32_t i = 0; i < facts->class_count; i++) {
        const struct analysis_class *row = &facts->classes[i];
        if (row->collective || row->receives) continue;
        json_write_object(json);
        json_put_string(json, "name", row->name);
        json_put_unsigned(json, "count", row->count);
        json_put_real(json, "time_s", row->time_s);
        json_put_real(json, "math_s", row->math_s);
        json_write_object_end(json);
    }
    json_write_array_end(json);
    return STATUS_OK;
}

static double of_step(const struct trace *trace, int64_t busy_ps)
{
    return trace->step_ps > 0 ? (double)busy_ps / (double)trace->step_ps : 0;
}

static void write_servers(struct json_writer *json, const struct report_input *input)
{
    static const char *const queues[] = {
#define X(name, text) text,
        TRACE_QUEUE_TABLE(X)
#undef X
    };
    const struct trace *trace = input->trace;
    json_put_array(json, "links");
    for (uint32_t port = 0; port < MACHINE_PORTS_MAX; port++) {
        const struct trace_link *link = &trace->link[port];
        if (link->link_count == 0) continue;
        json_write_object(json);
        if (port < MACHINE_GRID_PORTS) {
            json_put_string(json, "axis", machine_axis_name(input->machine, port / 2));
            json_put_string(json, "direction", port % 2 == 0 ? "+" : "-");
        } else {
            json_put_string(json, "cable", machine_port_name(input->machine, port));
        }
        json_put_unsigned(json, "bytes", link->bytes);
        json_put_real(json, "busy_fraction", of_step(trace, link->busy_ps));
        json_put_real(json, "mean_bytes", (double)link->sum_bytes / (double)link->link_count);
        json_put_real(json, "queued_s", units_seconds(link->queued_ps));
        json_write_object_end(json);
    }
    json_write_array_end(json);
    json_put_array(json, "queues");
    for (uint32_t i = 0; i < TRACE_QUEUE_COUNT; i++) {
        json_write_object(json);
        json_put_string(json, "name", queues[i]);
        json_put_real(json, "busy_fraction", of_step(trace, trace->queue_busy_ps[i]));
        if (i == TRACE_QUEUE_HBM)
            json_put_real(json, "collectives_fraction", of_step(trace, trace->dma_ps));
        json_write_object_end(json);
    }
    json_write_array_end(json);
}

/* "saved activations" is the key "saved_activations". Overheads are left out where there are none.
 */
static void put_memory(struct json_writer *json, uint32_t memory, uint64_t bytes)
{
    if (bytes == 0 && memory >= PROGRAM_OVERHEAD_FIRST) return;
    static const char *const names[] = {
#define X(name, text) text,
        PROGRAM_MEMORY_TABLE(X)
#undef X
    };
    char key[64];
    (void)snprintf(key, sizeof key, "%s", names[memory]);
    for (char *c = key; *c != '\0'; c++)
        if (*c == ' ') *c = '_';
    json_put_unsigned(json, key, bytes);
}

static void write_memory(struct json_writer *json, const struct report_input *input)
{
    const struct trace *trace = input->trace;
    json_put_object(json, "memory");
    json_put_unsigned(json, "capacity_bytes", input->machine->chip.hbm_capacity_bytes);
    json_put_unsigned(json, "peak_bytes", trace->memory.peak_bytes);
    json_put_real(json, "peak_at_s", units_seconds(trace->memory.peak_at_ps));
    json_put_object(json, "parts");
    for (uint32_t i = 0; i < PROGRAM_MEMORY_COUNT; i++)
        put_memory(json, i, trace->memory.at_peak_bytes[i]);
    json_write_object_end(json);
    json_put_object(json, "parts_peak");
    for (uint32_t i = 0; i < PROGRAM_MEMORY_COUNT; i++)
        put_memory(json, i, trace->memory.each_peak_bytes[i]);
    json_write_object_end(json);
    json_write_object_end(json);
}

/* Ranks of a pipeline, first to last. */
static void write_ranks(struct json_writer *json, const struct report_input *input)
{
    const struct trace *trace = input->trace;
    if (input->program->role_count == 1) return;
    json_put_unsigned(json, "reported_rank", analysis_role(input, trace->reported_chip));
    json_put_array(json, "pipeline_ranks");
    for (uint32_t i = 0; i < trace->role_count; i++) {
        const struct trace_role *role = &trace->roles[i];
        json_write_object(json);
        column_put_row(&rows_ranks, trace, i, json);
        json_put_object(json, "parts");
        for (uint32_t m = 0; m < PROGRAM_MEMORY_COUNT; m++)
            put_memory(json, m, role->memory.at_peak_bytes[m]);
        json_write_object_end(json);
        json_write_object_end(json);
    }
    json_write_array_end(json);
}

static void write_notes(struct json_writer *json, const struct notes *notes)
{
    json_put_array(json, "above_lower");
    for (uint32_t i = 0; i < notes->part_count; i++) {
        json_write_object(json);
        json_put_string(json, "name", notes->part[i].name);
        json_put_real(json, "seconds", notes->part[i].seconds);
        json_write_object_end(json);
    }
    json_write_array_end(json);
    json_put_array(json, "notes");
    for (uint32_t i = 0; i < notes->count; i++) json_write_string(json, notes->text[i]);
    json_write_array_end(json);
}

enum status result_write(struct arena *arena, const struct report_input *input, struct strbuf *text,
                         struct error *reterr)
{
    struct analysis facts;
    struct notes notes = {.count = 0};
    STATUS_TRY(analysis_build(arena, input, &facts, reterr));
    if (input->roofline != NULL) STATUS_TRY(notes_build(arena, input, &facts, &notes, reterr));
    struct json_writer json;
    json_write_start(&json, text);
    json.flat = FLAT_DEPTH;
    json_write_object(&json);
    write_head(&json, input, &facts);
    if (input->roofline != NULL) {
        json_write_key(&json, "roofline");
        write_roofline_object(&json, input);
    }
    json_put_object(&json, "breakdown");
    json_put_real(&json, "compute_s", facts.compute_s);
    json_put_real(&json, "exposed_communication_s", facts.exposed_s);
    json_put_real(&json, "idle_s", facts.idle_s);
    if (input->program->role_count > 1) {
        json_put_real(&json, "waiting_s", facts.waiting_s);
        json_put_real(&json, "bubble_s", facts.bubble_s);
    }
    json_write_object_end(&json);
    if (input->roofline != NULL && input->workload->kind != WORKLOAD_TRAIN_STEP) {
        struct inference_facts const inference = inference_facts_of(input, &facts);
        inference_facts_write(&inference, &json);
    }
    write_ranks(&json, input);
    write_phases(&json, input, &facts);
    STATUS_TRY(write_collectives(arena, &json, &facts, reterr));
    write_servers(&json, input);
    write_memory(&json, input);
    write_notes(&json, &notes);
    if (input->write_more != NULL) input->write_more(input->more_owner, &json);
    json_write_object_end(&json);
    return STATUS_OK;
}

void result_write_unfit(const struct report_input *input, const struct least_memory *least,
                        struct strbuf *text)
{
    struct json_writer json;
    json_write_start(&json, text);
    json.flat = FLAT_DEPTH;
    json_write_object(&json);
    json_put_unsigned(&json, "podsim", 1);
    json_put_string(&json, "title", input->title);
    if (input->question[0] != '\0') json_put_string(&json, "question", input->question);
    json_put_unsigned(&json, "chips", input->machine->chip_count);
    json_put_boolean(&json, "fits", false);
    json_put_object(&json, "memory");
    json_put_unsigned(&json, "capacity_bytes", input->machine->chip.hbm_capacity_bytes);
    json_put_unsigned(&json, "least_bytes", least->total_bytes);
    json_put_object(&json, "parts");
    for (uint32_t i = 0; i < PROGRAM_MEMORY_COUNT; i++) put_memory(&json, i, least->bytes[i]);
    json_write_object_end(&json);
    json_write_object_end(&json);
    if (input->write_more != NULL) input->write_more(input->more_owner, &json);
    json_write_object_end(&json);
}

void result_write_roofline(const struct report_input *input, struct strbuf *text)
{
    struct json_writer json;
    json_write_start(&json, text);
    json.flat = FLAT_DEPTH;
    json_write_object(&json);
    json_put_unsigned(&json, "podsim", 1);
    json_put_string(&json, "title", input->title);
    json_put_unsigned(&json, "chips", input->machine->chip_count);
    json_write_key(&json, "roofline");
    write_roofline_object(&json, input);
    json_write_object_end(&json);
}
