#include "sim/report/summary.h"

#include <inttypes.h>
#include <stdio.h>

#include "sim/base/counted.h"
#include "sim/base/quantity.h"
#include "sim/base/strbuf.h"
#include "sim/base/units.h"
#include "sim/report/analysis.h"
#include "sim/report/inference_facts.h"
#include "sim/report/notes.h"
#include "sim/report/rows.h"
#include "sim/report/table.h"
#include "sim/report/table_fit.h"
#include "sim/report/words.h"

/* What one screen has room for; the JSON has all. */
enum {
    RANKS_SHOWN = 16,
    COLLECTIVES_SHOWN = 7,
    PARTS_SHOWN = 5,
    NOTES_SHOWN = 7,
    BAR_COLUMNS = 50,
    LABEL = 13
};

static void label(struct strbuf *text, const char *name)
{
    strbuf_add(text, "%s", name);
    strbuf_pad(text, LABEL);
}

/* From step to step, where further steps were played. */
static void write_period(const struct report_input *input, const struct analysis *facts,
                         struct strbuf *text)
{
    const struct period *period = &input->trace->period;
    if (period->steps == 0) return;
    label(text, "period");
    strbuf_add(text, "%s   from step to step", table_instant(facts->period_s).text);
    if (input->roofline != NULL)
        strbuf_add(text, "; MFU %.1f%% (%.1f%% with attention)", 100 * facts->period_mfu,
                   100 * facts->period_mfu_attention);
    strbuf_add(text, "\n");
    if (period->cycle != 0) return;
    strbuf_pad(text, LABEL);
    strbuf_add(text, "a mean: the last of %u steps still differ by up to %s\n", period->steps,
               table_duration(period->spread).text);
}

/* What a program that was read may not say: how many tokens its step has. */
static void write_rates(const struct report_input *input, const struct analysis *facts,
                        struct strbuf *text)
{
    if (input->program->tokens == 0) return;
    label(text, "tokens/s");
    strbuf_add(text, "%s", table_count((uint64_t)(facts->tokens_per_s + 0.5)).text);
    if (input->roofline != NULL)
        strbuf_add(text, "   MFU %.1f%% (%.1f%% with attention)   HFU %.1f%%", 100 * facts->mfu,
                   100 * facts->mfu_attention, 100 * facts->hfu);
    strbuf_add(text, "\n");
}

static void write_step(const struct report_input *input, const struct analysis *facts, bool colour,
                       struct strbuf *text)
{
    label(text, "step");
    table_colour(text, colour, TABLE_BOLD);
    strbuf_add(text, "%s", table_instant(facts->step_s).text);
    table_colour(text, colour, TABLE_PLAIN);
    strbuf_add(text, "   bound by %s%s%s (%.1f%% of the step",
               words_resource(input->machine, facts->bound_by),
               facts->bound_axis != NULL ? " along " : "",
               facts->bound_axis != NULL ? facts->bound_axis : "", 100 * facts->bound_share);
    if (facts->bound_is_bubble)
        strbuf_add(text, " of rank %u, which ends last",
                   analysis_role(input, input->trace->reported_chip));
    if (facts->runner_up != NULL)
        strbuf_add(text, "; %s%s%s %.1f%%", words_resource(input->machine, facts->runner_up),
                   facts->runner_up_axis != NULL ? " along " : "",
                   facts->runner_up_axis != NULL ? facts->runner_up_axis : "",
                   100 * facts->runner_up_share);
    strbuf_add(text, ")\n");
    write_rates(input, facts, text);
    write_period(input, facts, text);
    strbuf_add(text, "\n");
    if (input->wall_s > 0) {
        label(text, "simulated in");
        strbuf_add(text, "%s (%.1f million transfers/s)\n\n", table_seconds(input->wall_s).text,
                   (double)input->trace->work.transfers / input->wall_s / 1e6);
    }
}

static void write_share(const struct analysis *facts, const char *name, double seconds, bool colour,
                        enum table_colour which, struct strbuf *text)
{
    label(text, name);
    strbuf_add(text, "%s", table_seconds(seconds).text);
    table_right(text, 32, table_percent(seconds, facts->step_s).text);
    table_colour(text, colour, which);
    table_bar(text, seconds, facts->step_s, BAR_COLUMNS);
    table_colour(text, colour, TABLE_PLAIN);
    strbuf_add(text, "\n");
}

/* A part may be negative: what the bound's resource did during an exposed collective. */
static void write_part(double seconds, const char *name, struct strbuf *text)
{
    strbuf_pad(text, LABEL);
    strbuf_add(text, "%c %s", seconds < 0 ? '-' : '+',
               table_seconds(seconds < 0 ? -seconds : seconds).text);
    strbuf_pad(text, LABEL + 14);
    strbuf_add(text, "%s\n", name);
}

static void write_roofline(const struct report_input *input, const struct analysis *facts,
                           const struct notes *notes, struct strbuf *text)
{
    const struct roofline *roofline = input->roofline;
    bool const ici = roofline->bound.axis >= 0;
    strbuf_add(text, "\n");
    label(text, "roofline");
    strbuf_add(text, "lower %s (%s%s%s), upper %s; the step is %.3f times the lower bound\n",
               table_seconds(roofline->lower_s).text,
               words_resource(input->machine, roofline->bound.by), ici ? " " : "",
               ici ? machine_axis_name(input->machine, (uint32_t)roofline->bound.axis) : "",
               table_seconds(roofline->upper_s).text,
               roofline->lower_s > 0 ? facts->step_s / roofline->lower_s : 0);
    double rest = 0;
    for (uint32_t i = 0; i < notes->part_count; i++) {
        const struct notes_part *part = &notes->part[i];
        if (i >= PARTS_SHOWN) {
            rest += part->seconds;
            continue;
        }
        write_part(part->seconds, part->name, text);
    }
    if (rest != 0) write_part(rest, rest < 0 ? "less the rest" : "the rest", text);
}

/* The chip that the figures above are of, and each rank next to it. */
static void write_ranks(const struct report_input *input, struct strbuf *text)
{
    const struct trace *trace = input->trace;
    uint32_t const reported = analysis_role(input, trace->reported_chip);
    label(text, "of");
    strbuf_add(text, "pipeline rank %u, which ends last; so are phases and collectives below\n\n",
               reported);
    column_add_table(&rows_ranks, trace,
                     trace->role_count < RANKS_SHOWN ? trace->role_count : RANKS_SHOWN, 14, text);
    if (trace->role_count > RANKS_SHOWN)
        strbuf_add(text, "and %u more with --json\n", trace->role_count - RANKS_SHOWN);
}

static void write_phases(const struct report_input *input, const struct analysis *facts,
                         struct strbuf *text)
{
    uint32_t wider = 0; /* For "forward and backward". */
    for (uint32_t i = 0; i < facts->phase_count; i++) {
        uint32_t const columns = table_columns(facts->phase[i].name);
        if (columns > 18 && columns - 18 > wider) wider = columns - 18;
    }
    strbuf_add(text, "\n");
    uint64_t const table = table_open(text);
    strbuf_add(text, "phase");
    column_add_headings(&rows_phases.screen, 1, wider, text);
    strbuf_add(text, "  bound by\n");
    for (uint32_t i = 0; i < facts->phase_count; i++) {
        const struct analysis_phase *phase = &facts->phase[i];
        strbuf_add(text, "%s", phase->name);
        column_add_row(&rows_phases, facts, i, wider, text);
        strbuf_add(text, "  %s\n", words_resource(input->machine, phase->bound_by));
    }
    table_close(text, table, wider + 18);
}

static enum status write_collectives(struct arena *arena, const struct analysis *facts,
                                     struct strbuf *text, struct error *reterr)
{
    uint32_t *index;
    uint32_t count;
    STATUS_TRY(analysis_collectives(arena, facts, &index, &count, reterr));
    if (count == 0) return STATUS_OK;
    strbuf_add(text, "\n");
    uint64_t const table = table_open(text);
    strbuf_add(text, "collective");
    column_add_headings(&rows_collectives.screen, 1, 0, text);
    strbuf_add(text, "\n");
    for (uint32_t i = 0; i < count && i < COLLECTIVES_SHOWN; i++) {
        strbuf_add(text, "%.36s", facts->classes[index[i]].name);
        column_add_row(&rows_collectives, facts, index[i], 0, text);
        strbuf_add(text, "\n");
    }
    double time_s = 0, exposed_s = 0;
    for (uint32_t i = COLLECTIVES_SHOWN; i < count; i++) {
        time_s += facts->classes[index[i]].time_s;
        exposed_s += facts->classes[index[i]].exposed_s;
    }
    if (count > COLLECTIVES_SHOWN) {
        strbuf_add(text, "and %u more", count - COLLECTIVES_SHOWN);
        rows_collectives_add_sum(time_s, exposed_s, text);
        strbuf_add(text, "\n");
    }
    table_close(text, table, 36);
    return STATUS_OK;
}

bool summary_fits(const struct report_input *input)
{
    return input->trace->memory.peak_bytes <= input->machine->chip.hbm_capacity_bytes;
}

void summary_write_memory_parts(const struct report_input *input,
                                const uint64_t bytes[PROGRAM_MEMORY_COUNT], uint64_t total_bytes,
                                struct strbuf *text)
{
    static const char *const names[] = {
#define X(name, text) text,
        PROGRAM_MEMORY_TABLE(X)
#undef X
    };
    uint64_t const capacity_bytes = input->machine->chip.hbm_capacity_bytes;
    double const capacity = (double)capacity_bytes;
    for (uint32_t i = 0; i < PROGRAM_MEMORY_COUNT; i++) {
        if (bytes[i] == 0) continue;
        strbuf_add(text, "  %s", names[i]);
        table_right(text, 32, table_bytes((double)bytes[i]).text);
        table_right(text, 41, table_percent((double)bytes[i], capacity).text);
        table_bar(text, (double)bytes[i], capacity, BAR_COLUMNS);
        strbuf_add(text, "\n");
    }
    strbuf_add(text, "  in all");
    table_right(text, 32, table_bytes((double)total_bytes).text);
    table_right(text, 41, table_percent((double)total_bytes, capacity).text);
    strbuf_add(text, "  of %s HBM%s\n", table_bytes(capacity).text,
               total_bytes <= capacity_bytes ? "" : ": it does not fit");
}

void summary_write_memory(const struct report_input *input, struct strbuf *text)
{
    const struct trace *trace = input->trace;
    char slot[96], name[32];
    uint32_t const role = analysis_role(input, trace->memory.peak_chip);
    program_slot_name(&input->program->roles[role], trace->memory.peak_slot, slot, sizeof slot);
    program_role_name(input->program, role, name, sizeof name);
    strbuf_add(text, "memory of a chip%s%s at its peak, %s into the step (%s)\n",
               name[0] != '\0' ? " of " : "", name, table_duration(trace->memory.peak_at_ps).text,
               slot);
    summary_write_memory_parts(input, trace->memory.at_peak_bytes, trace->memory.peak_bytes, text);
}

/* As many in a line as a sentence has room for. */
static void write_ports(const struct report_input *input, const struct analysis *facts,
                        struct strbuf *text)
{
    static const char between[] = "   ";
    uint32_t const columns = table_wrap_columns(text);
    bool first = true;
    for (uint32_t port = 0; port < MACHINE_PORTS_MAX; port++) {
        const struct trace_link *link = &input->trace->link[port];
        if (link->link_count == 0) continue;
        const char *const name = machine_port_name(input->machine, port);
        struct table_figure const share =
            table_percent(units_seconds(link->busy_ps), facts->step_s);
        uint32_t const width = table_columns(name) + 1 + table_columns(share.text);
        if (!first && strbuf_column(text) + table_columns(between) + width > columns) {
            strbuf_add(text, "\n");
            strbuf_pad(text, LABEL);
            first = true;
        }
        strbuf_add(text, "%s%s %s", first ? "" : between, name, share.text);
        first = false;
    }
    strbuf_add(text, "%s\n", first ? "none" : "");
}

static void write_servers(const struct report_input *input, const struct analysis *facts,
                          struct strbuf *text)
{
    static const char *const queues[] = {
#define X(name, text) text,
        TRACE_QUEUE_TABLE(X)
#undef X
    };
    const struct trace *trace = input->trace;
    strbuf_add(text, "\n");
    label(text, "busy");
    for (uint32_t i = 0; i < TRACE_QUEUE_COUNT; i++) {
        double const busy = units_seconds(trace->queue_busy_ps[i]);
        strbuf_add(text, "%s%s %s", i > 0 ? "   " : "", words_resource(input->machine, queues[i]),
                   table_percent(busy, facts->step_s).text);
    }
    strbuf_add(text, "\n");
    label(text, "links busy");
    write_ports(input, facts, text);
}

static void write_fold(const struct report_input *input, struct strbuf *text)
{
    const struct trace *trace = input->trace;
    strbuf_add(text, "\n");
    label(text, "replayed");
    strbuf_add(text, "%s of %s %s", table_count(trace->fold.replayed).text,
               table_count(trace->fold.chips).text, counted_noun(trace->fold.chips, "chip").text);
    for (uint32_t i = 0; i < input->machine->axis_count; i++)
        strbuf_add(text, "%s%s %s", i == 0 ? " (" : ", ", machine_axis_name(input->machine, i),
                   input->fold[i].period == 1                          ? "folded"
                   : input->fold[i].period == input->machine->shape[i] ? "whole"
                                                                       : "in part");
    strbuf_add(text, "); %s %s", table_count(trace->work.events).text,
               counted_noun(trace->work.events, "event").text);
    strbuf_add(text, ", %s %s\n", table_count(trace->work.transfers).text,
               counted_noun(trace->work.transfers, "transfer").text);
    if (trace->fold.prefix > 0) {
        char buffer[32];
        label(text, "");
        strbuf_add(text, "up to %s as %s chips, the pipelines being alike until then\n",
                   quantity_text_seconds(buffer, units_seconds(trace->fold.prefix_ps)),
                   table_count(trace->fold.prefix).text);
    }
    label(text, "digest");
    strbuf_add(text, "%016" PRIx64 "\n", trace->digest);
}

enum status summary_write(struct arena *arena, const struct report_input *input, bool colour,
                          struct strbuf *text, struct error *reterr)
{
    struct analysis facts;
    struct notes notes = {.count = 0};
    STATUS_TRY(analysis_build(arena, input, &facts, reterr));
    if (input->roofline != NULL) STATUS_TRY(notes_build(arena, input, &facts, &notes, reterr));
    table_heading(input, colour, text);
    write_step(input, &facts, colour, text);
    write_share(&facts, "compute", facts.compute_s, colour, TABLE_GREEN, text);
    write_share(&facts, "exposed", facts.exposed_s, colour, TABLE_RED, text);
    if (input->program->role_count > 1) {
        write_share(&facts, "waiting", facts.waiting_s, colour, TABLE_YELLOW, text);
        write_share(&facts, "bubble", facts.bubble_s, colour, TABLE_YELLOW, text);
        write_ranks(input, text);
    } else {
        write_share(&facts, "idle", facts.idle_s, colour, TABLE_YELLOW, text);
    }
    if (input->roofline != NULL) write_roofline(input, &facts, &notes, text);
    if (input->roofline != NULL && input->workload->kind != WORKLOAD_TRAIN_STEP) {
        struct inference_facts const inference = inference_facts_of(input, &facts);
        inference_facts_print(&inference, text);
    }
    write_phases(input, &facts, text);
    STATUS_TRY(write_collectives(arena, &facts, text, reterr));
    write_servers(input, &facts, text);
    strbuf_add(text, "\n");
    summary_write_memory(input, text);
    if (notes.count > 0) strbuf_add(text, "\n");
    for (uint32_t i = 0; i < notes.count && i < NOTES_SHOWN; i++) {
        strbuf_add(text, "- ");
        table_wrap(text, 2, notes.text[i]);
    }
    if (notes.count > NOTES_SHOWN)
        strbuf_add(text, "- %u more with --json\n", notes.count - NOTES_SHOWN);
    write_fold(input, text);
    return STATUS_OK;
}
