#include "sim/report/summary.h"

#include "sim/base/strbuf.h"
#include "sim/report/analysis.h"
#include "sim/report/generation.h"
#include "sim/report/inference_analysis.h"
#include "sim/report/notes.h"
#include "sim/report/report_roofline.h"
#include "sim/report/rows.h"
#include "sim/report/run_interval.h"
#include "sim/report/run_memory.h"
#include "sim/report/run_queues.h"
#include "sim/report/run_step.h"
#include "sim/report/table.h"
#include "sim/report/words.h"

/* What one screen has room for; the JSON has all. */
enum { RANKS_SHOWN = 16, COLLECTIVES_SHOWN = 7, PARTS_SHOWN = 5, NOTES_SHOWN = 7 };

/* The chip that the figures above are of, and each rank next to it. */
static void write_ranks(const struct report_input *input, struct strbuf *text)
{
    const struct trace *trace = input->trace;
    uint32_t const reported = analysis_role(input, trace->reported_chip);
    table_line(text, "rank");
    strbuf_add(text, "figures, phases and collectives are of pipeline rank %u, %s\n\n", reported,
               words_last_rank(trace->roles_meet));
    column_add_table(&rows_ranks, trace,
                     trace->role_count < RANKS_SHOWN ? trace->role_count : RANKS_SHOWN, 14, text);
    if (trace->role_count > RANKS_SHOWN)
        strbuf_add(text, "and %u more with --json\n", trace->role_count - RANKS_SHOWN);
}

static void write_notes(const struct notes *notes, struct strbuf *text)
{
    uint32_t first = 0, more = 0;
    if (notes->count > 0) strbuf_add(text, "\n");
    for (uint32_t i = 0; i < notes->count; i++) {
        if (!notes->always[i] && first++ >= NOTES_SHOWN) {
            more++;
            continue;
        }
        strbuf_add(text, "- ");
        table_wrap(text, 2, notes->text[i]);
    }
    if (more > 0) strbuf_add(text, "- %u more with --json\n", more);
}

/* Of a step that is simulated whole. */
static enum status write_body(struct arena *arena, const struct report_input *input,
                              const struct analysis *analysis, const struct notes *notes,
                              bool colour, struct strbuf *text, struct error *reterr)
{
    run_step_write(input, analysis, colour, text);
    run_step_write_shares(input, analysis, colour, text);
    if (input->program->role_count > 1) write_ranks(input, text);
    if (input->roofline != NULL) {
        report_roofline_write_bounds(input, analysis->step_s, text);
        rows_add_parts(notes, PARTS_SHOWN, text);
    }
    if (input->roofline != NULL && workload_serves(input->workload)) {
        struct inference_analysis const inference = inference_analysis_of(input, analysis);
        inference_analysis_print(&inference, text);
    }
    rows_add_phases(input->machine, analysis, text);
    STATUS_TRY(rows_add_collectives(arena, analysis, COLLECTIVES_SHOWN, text, reterr));
    run_queues_write(input, text);
    return STATUS_OK;
}

enum status summary_write(struct arena *arena, const struct report_input *input, bool colour,
                          struct strbuf *text, struct error *reterr)
{
    struct analysis analysis;
    struct notes notes = {.count = 0};
    STATUS_TRY(analysis_build(arena, input, &analysis, reterr));
    if (input->roofline != NULL) STATUS_TRY(notes_build(arena, input, &analysis, &notes, reterr));
    table_heading(input, colour, text);
    if (input->generation != NULL) {
        generation_print(input->generation, text);
        if (input->interval != NULL) strbuf_add(text, "\n");
        run_interval_write(input, text);
    } else {
        STATUS_TRY(write_body(arena, input, &analysis, &notes, colour, text, reterr));
    }
    strbuf_add(text, "\n");
    run_memory_write(input, text);
    write_notes(&notes, text);
    run_step_write_fold(input, &analysis, text);
    return STATUS_OK;
}
