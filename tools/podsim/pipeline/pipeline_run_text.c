/* The rows of `podsim pipeline FILE` on a terminal. */
#include <stdio.h>
#include <string.h>

#include "sim/base/counted.h"
#include "sim/base/strbuf.h"
#include "sim/base/units.h"
#include "sim/report/table.h"
#include "sim/report/table_fit.h"
#include "tools/podsim/common/report.h"
#include "tools/podsim/pipeline/comparison_rows.h"
#include "tools/podsim/pipeline/formula.h"
#include "tools/podsim/pipeline/lanes.h"
#include "tools/podsim/pipeline/pipeline_run.h"

enum { SENTENCE_BYTES = 1200 };

/* Of a whole backward pass nobody knows which part is which gradient's. */
static void write_times(const struct pipeline_run_row *row, char *text, size_t text_bytes)
{
    const struct schedule_times *times = &row->times;
    uint32_t const chunks = row->of->schedule.chunk_count;
    char halves[3 * TABLE_FIGURE_BYTES], pair[TABLE_FIGURE_BYTES + 4] = "";
    if (schedule_is_split(&row->of->schedule))
        (void)snprintf(halves, sizeof halves, "I %s, W %s",
                       table_duration(times->input * chunks).text,
                       table_duration(times->weight * chunks).text);
    else
        (void)snprintf(halves, sizeof halves, "B %s",
                       table_duration((times->input + times->weight) * chunks).text);
    if (times->pair > 0)
        (void)snprintf(pair, sizeof pair, ", O %s", table_duration(times->pair * chunks).text);
    (void)snprintf(text, text_bytes, "F %s, %s%s", table_duration(times->forward * chunks).text,
                   halves, pair);
}

/* From the formula by way of the order played with equal times to what came out. */
static void write_note(const struct pipeline_run_row *row, struct strbuf *text)
{
    char sentence[SENTENCE_BYTES];
    if (row->of->formula.measure == SCHEDULE_NO_FORMULA) return;
    bool const per_rank = row->of->formula.measure == SCHEDULE_PER_RANK;
    int64_t const equal_ps = formula_measured(&row->of->formula, &row->equal);
    struct pipeline_run_spread const work = pipeline_run_work(row);
    char measured[3 * TABLE_FIGURE_BYTES];
    if (per_rank)
        (void)snprintf(measured, sizeof measured, "%s (per stage)",
                       table_duration(row->bubble.per_rank_ps).text);
    else
        (void)snprintf(measured, sizeof measured, "%s, of the busiest rank %s",
                       table_duration(row->bubble.makespan_ps).text,
                       table_duration(row->bubble.busiest_ps).text);
    char times[6 * TABLE_FIGURE_BYTES];
    write_times(row, times, sizeof times);
    (void)snprintf(
        sentence, sizeof sentence,
        "- %s, %s: %s with %s of a mean rank is %s; the same order with these "
        "times and nothing else has %s; simulated with real ops %s: ranks have from %s to %s of "
        "work, and wait %s for transfers",
        row->of->name, counted(row->of->microbatch_count, "microbatch").text, row->of->formula.text,
        times, table_duration(row->of->formula.bubble_ticks).text, table_duration(equal_ps).text,
        measured, table_seconds(work.least).text, table_seconds(work.most).text,
        table_seconds(pipeline_run_waiting(row).mean).text);
    table_wrap(text, 2, sentence);
}

/* What the formula of a row that was played is published for, where its passes do not meet that;
 * NULL: it holds. */
static const char *unmet_condition(const struct comparison_row *row)
{
    bool const holds = row->refused.status != STATUS_OK || row->formula.exact ||
                       row->formula.measure == SCHEDULE_NO_FORMULA;
    return holds ? NULL : row->formula.holds;
}

/* A line for each condition, with all formulas that it is of. */
static void write_conditions(const struct comparison *comparison, struct strbuf *text)
{
    bool belongs[COMPARISON_ROWS_MAX], is_said[COMPARISON_ROWS_MAX] = {false};
    for (uint32_t i = 0; i < comparison->done_count; i++) {
        const char *const condition = unmet_condition(&comparison->row[i]);
        struct strbuf sentence = {0};
        if (is_said[i] || condition == NULL) continue;
        for (uint32_t k = 0; k < comparison->done_count; k++) {
            const char *const other = unmet_condition(&comparison->row[k]);
            belongs[k] = other != NULL && strcmp(other, condition) == 0;
            is_said[k] = is_said[k] || belongs[k];
        }
        strbuf_add(&sentence, "- published for %s, which these passes do not meet: the formula of ",
                   condition);
        comparison_write_names(comparison, belongs, &sentence);
        text->failed = text->failed || sentence.failed;
        if (!sentence.failed) table_wrap(text, 2, sentence.bytes);
        strbuf_free(&sentence);
    }
}

static void write_legend(const struct pipeline_run *staged, struct strbuf *text)
{
    strbuf_add(text, "\n");
    comparison_write_signs(staged->of, text);
    table_wrap(text, 2,
               "bubble: from the start to the last pass, less the work of the rank with least, and "
               "of the busiest; per stage: the worst rank's time from its first to its last pass, "
               "less its work; work is compute with the collectives it waits for until then, "
               "without the update");
    table_wrap(text, 2,
               "idle: shares of the step, a mean over ranks: nothing to do, waiting for an "
               "activation or gradient on its way, waiting for collectives");
    table_wrap(text, 2,
               "activations, memory: of the fullest chip, saved for the backward pass and in all; "
               "parameters: stored on a chip of the rank with most; sent: what the busiest chip "
               "gives to other stages in a step");
    for (uint32_t i = 0; i < staged->of->done_count; i++)
        if (staged->of->row[i].refused.status == STATUS_OK && !staged->row[i].fits) {
            strbuf_add(text, "!: more than the %s of a chip\n",
                       table_bytes((double)staged->hbm_bytes).text);
            return;
        }
}

static void write_rows(const struct comparison_table *table, bool colour, struct strbuf *text)
{
    const struct comparison *comparison = table->of;
    strbuf_add(text, "\n");
    uint64_t const begin = table_open(text);
    comparison_add_headings(table, 0, "", text);
    comparison_add_headings(table, 1, "  schedule", text);
    for (uint32_t i = 0; i < comparison->done_count; i++)
        if (comparison->row[comparison->order[i]].refused.status == STATUS_OK)
            comparison_add_row(table, comparison->order[i], colour, text);
    table_close(text, begin, table->columns);
}

/* A table of weights that are gathered; nothing if none are. */
static void write_weights(const struct comparison_table *table, struct strbuf *text)
{
    const struct comparison *comparison = table->of;
    const struct pipeline_run *staged = comparison->owner;
    bool any = false;
    for (uint32_t i = 0; i < comparison->done_count; i++) {
        uint32_t const at = comparison->order[i];
        if (comparison->row[at].refused.status != STATUS_OK ||
            !pipeline_run_row_gathers(&staged->row[at]))
            continue;
        if (!any) strbuf_add(text, "\n");
        if (!any) comparison_add_headings(table, 1, "  weights", text);
        any = true;
        comparison_add_row(table, at, false, text);
    }
    if (any)
        table_wrap(text, 2,
                   "of the busiest chip, what it gathers in a step and holds at once; what the "
                   "chip that ends last waits for of its weights' gathers and gradients' "
                   "reductions");
}

/* What each rank did and holds, of one schedule. */
static void write_ranks(const struct pipeline_run_row *row, struct strbuf *text)
{
    enum { RANK = 5 };
    strbuf_add(text, "\n");
    uint64_t const table = table_open(text);
    strbuf_add(text, " rank");
    column_add_headings(&pipeline_run_ranks_screen, 1, RANK, text);
    strbuf_add(text, "\n");
    for (uint32_t r = 0; r < row->of->schedule.rank_count; r++) {
        struct column_value values[COLUMNS_MAX];
        pipeline_run_find_rank(row, r, values);
        strbuf_add(text, "%*u", RANK, r);
        column_add_figures(&pipeline_run_ranks_screen, values, RANK, false, text);
        strbuf_add(text, "\n");
    }
    table_close(text, table, RANK);
}

void pipeline_run_write_text(const struct comparison *comparison,
                             const struct report_terminal *terminal, struct strbuf *text)
{
    const struct pipeline_run *staged = comparison->owner;
    const struct comparison_row *rows = comparison->row;
    struct comparison_table const table =
        comparison_table(comparison, COMPARISON_MICROBATCHES, &pipeline_run_screen);
    struct comparison_table weights = table;
    weights.line = &pipeline_run_weights_screen;
    strbuf_add(text, "%s\n%s of pp on %s\n", staged->title,
               counted(staged->of->rank_count, "rank").text,
               counted(staged->chip_count, "chip").text);
    comparison_write_interrupted(staged->of, text);
    write_rows(&table, terminal->colour, text);
    write_weights(&weights, text);
    write_legend(staged, text);
    strbuf_add(text, "\n");
    for (uint32_t i = 0; i < comparison->done_count; i++)
        if (rows[comparison->order[i]].refused.status == STATUS_OK)
            write_note(&staged->row[comparison->order[i]], text);
    write_conditions(comparison, text);
    comparison_write_refused(comparison, text);
    if (comparison->row_count != 1 || comparison->done_count != 1) return;
    write_ranks(&staged->row[0], text);
    if (staged->row[0].played.lane != NULL)
        lanes_write(&rows[0].schedule, &staged->row[0].played, terminal, text);
    else
        strbuf_add(
            text,
            "\nmore ranks or microbatches than fit a line are not drawn as text; see --svg\n");
}
