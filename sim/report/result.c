#include "sim/report/result.h"

#include "sim/base/json.h"
#include "sim/base/strbuf.h"
#include "sim/report/analysis.h"
#include "sim/report/column_table.h"
#include "sim/report/generation.h"
#include "sim/report/inference_analysis.h"
#include "sim/report/notes.h"
#include "sim/report/report_roofline.h"
#include "sim/report/rows.h"
#include "sim/report/run_interval.h"
#include "sim/report/run_memory.h"
#include "sim/report/run_queues.h"
#include "sim/report/run_step.h"

/* Rows of a table stand on one line each. */
enum { FLAT_DEPTH = 3 };

/* Of what is no run: a step that does not fit, or closed forms, which answer no question. */
#define HEAD(X)                                                                                    \
    X(PODSIM, "podsim", WHOLE(1), HIDDEN)                                                          \
    X(TITLE, "title", WORDS(input->title), HIDDEN)                                                 \
    X(QUESTION, "question",                                                                        \
      WHERE(last == FITS && input->question[0] != '\0', WORDS(input->question)), HIDDEN)           \
    X(CHIPS, "chips", WHOLE(input->machine->chip_count), HIDDEN)                                   \
    X(FITS, "fits", FLAG(false), HIDDEN)

enum { HEAD(COLUMN_NAME) HEAD_TOTAL };

static const struct column head[] = {HEAD(COLUMN_ENTRY)};

static void put_head(const struct report_input *input, uint32_t last, struct json_writer *json)
{
    struct column_value values[HEAD_TOTAL];
    struct column_value *const ret_values = values;
    HEAD(COLUMN_FIND)
    column_put(head, values, 0, last, json);
}

/* Ranks of a pipeline, first to last. */
static void put_ranks(const struct report_input *input, struct json_writer *json)
{
    const struct trace *trace = input->trace;
    if (input->program->role_count == 1) return;
    json_put_array(json, "pipeline_ranks");
    for (uint32_t i = 0; i < trace->role_count; i++) {
        json_write_object(json);
        column_put_row(&rows_ranks, trace, i, json);
        run_memory_put_parts("parts", trace->roles[i].memory.at_peak_bytes, json);
        json_write_object_end(json);
    }
    json_write_array_end(json);
}

static void put_notes(const struct notes *notes, struct json_writer *json)
{
    rows_put_parts(notes, json);
    json_put_array(json, "notes");
    for (uint32_t i = 0; i < notes->count; i++) json_write_string(json, notes->text[i]);
    json_write_array_end(json);
}

/* Of a step that is simulated whole. */
static enum status put_body(struct arena *arena, const struct report_input *input,
                            const struct analysis *analysis, struct json_writer *json,
                            struct error *reterr)
{
    if (input->roofline != NULL) report_roofline_put(input, json);
    run_step_put_shares(input, analysis, json);
    if (input->roofline != NULL && workload_serves(input->workload)) {
        struct inference_analysis const inference = inference_analysis_of(input, analysis);
        inference_analysis_write(&inference, json);
    }
    run_step_put_rank(input, analysis, json);
    put_ranks(input, json);
    rows_put_phases(input->machine, analysis, json);
    STATUS_TRY(rows_put_classes(arena, analysis, json, reterr));
    run_queues_put(input, json);
    return STATUS_OK;
}

enum status result_write(struct arena *arena, const struct report_input *input, struct strbuf *text,
                         struct error *reterr)
{
    struct analysis analysis;
    struct notes notes = {.count = 0};
    STATUS_TRY(analysis_build(arena, input, &analysis, reterr));
    if (input->roofline != NULL) STATUS_TRY(notes_build(arena, input, &analysis, &notes, reterr));
    struct json_writer json;
    json_write_start(&json, text);
    json.flat = FLAT_DEPTH;
    json_write_object(&json);
    run_step_put(input, &analysis, &json);
    run_interval_put(input, &json);
    if (input->generation != NULL) {
        const struct generation *of = input->generation;
        generation_write(of, &json);
        struct inference_analysis last = of->page[of->page_count - 1].inference;
        last.phase = "decode";
        last.fit = of->fit;
        last.fit_of_gib = of->fit_of_gib;
        if (of->infers) inference_analysis_write(&last, &json);
    } else {
        STATUS_TRY(put_body(arena, input, &analysis, &json, reterr));
    }
    run_memory_put(input, &json);
    put_notes(&notes, &json);
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
    put_head(input, FITS, &json);
    run_memory_put_least(input, least, &json);
    if (input->write_more != NULL) input->write_more(input->more_owner, &json);
    json_write_object_end(&json);
}

void result_write_roofline(const struct report_input *input, struct strbuf *text)
{
    struct json_writer json;
    json_write_start(&json, text);
    json.flat = FLAT_DEPTH;
    json_write_object(&json);
    put_head(input, CHIPS, &json);
    report_roofline_put(input, &json);
    json_write_object_end(&json);
}
