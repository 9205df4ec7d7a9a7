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

/* What the formula of a row that was simulated is published for, where its passes do not meet that;
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

/* Whether a row that was simulated belongs in a table behind that of all rows. */
typedef bool belongs_fn(const struct pipeline_run_row *row);

static bool has_formula(const struct pipeline_run_row *row)
{
    return row->of->formula.measure != SCHEDULE_NO_FORMULA;
}

/* The columns of a line that some row has a figure in. */
static uint8_t columns_used(const struct comparison_table *table, belongs_fn *belongs,
                            uint8_t ret_order[COLUMNS_MAX])
{
    const struct comparison *comparison = table->of;
    const struct pipeline_run *staged = comparison->owner;
    bool used[COLUMNS_MAX] = {false};
    uint8_t count = 0;
    for (uint32_t i = 0; i < comparison->done_count; i++) {
        struct column_value values[COLUMNS_MAX];
        if (comparison->row[i].refused.status != STATUS_OK || !belongs(&staged->row[i])) continue;
        pipeline_run_find(comparison, i, values);
        for (uint32_t c = 0; c < table->line->count; c++)
            used[c] = used[c] || values[table->line->order[c]].kind != COLUMN_NONE;
    }
    for (uint32_t c = 0; c < table->line->count; c++)
        if (used[c]) ret_order[count++] = table->line->order[c];
    return count;
}

/* A further table, of rows that belong in it, and what its columns mean; nothing if none do. */
static void write_further(const struct comparison_table *main, const struct column_line *line,
                          belongs_fn *belongs, const char *label, const char *legend,
                          struct strbuf *text)
{
    const struct comparison *comparison = main->of;
    const struct pipeline_run *staged = comparison->owner;
    struct comparison_table table = *main;
    uint8_t order[COLUMNS_MAX];
    table.line = line;
    struct column_line const used = {line->columns, order, columns_used(&table, belongs, order)};
    if (used.count == 0) return;
    table.line = &used;
    strbuf_add(text, "\n");
    uint64_t const begin = table_open(text);
    comparison_add_headings(&table, 0, "", text);
    comparison_add_headings(&table, 1, label, text);
    for (uint32_t i = 0; i < comparison->done_count; i++) {
        uint32_t const at = comparison->order[i];
        if (comparison->row[at].refused.status == STATUS_OK && belongs(&staged->row[at]))
            comparison_add_row(&table, at, false, text);
    }
    table_close(text, begin, table.columns);
    table_wrap(text, 2, legend);
}

/* From the formula by way of the order run with equal times to what came out. */
static void write_formulas(const struct comparison_table *table, struct strbuf *text)
{
    write_further(
        table, &pipeline_run_formulas_screen, has_formula, "  by formula",
        "bubble by formula: with F, I and W, of a whole backward pass B, of an overlapped "
        "pair O, each of a mean rank; order alone: the schedule's order with these times "
        "and nothing else; simulated: with real ops, the bubble that the formula is of; "
        "work: of the ranks with least and most; transfer: what ranks wait for "
        "transfers, a mean",
        text);
}

static void write_weights(const struct comparison_table *table, struct strbuf *text)
{
    write_further(table, &pipeline_run_weights_screen, pipeline_run_row_gathers, "  weights",
                  "of the busiest chip, what it gathers in a step and holds at once; what the "
                  "chip that ends last waits for of its weights' gathers and gradients' "
                  "reductions",
                  text);
}

/* Behind a blank line, if there are any. */
static void write_reasons(const struct comparison *comparison, struct strbuf *text)
{
    struct strbuf reasons = {.columns = text->columns};
    write_conditions(comparison, &reasons);
    comparison_write_refused(comparison, &reasons);
    if (reasons.size_bytes > 0) strbuf_add(text, "\n%s", reasons.bytes);
    text->failed = text->failed || reasons.failed;
    strbuf_free(&reasons);
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
    strbuf_add(text, "%s\n%s of pp on %s\n", staged->title,
               counted(staged->of->rank_count, "rank").text,
               counted(staged->chip_count, "chip").text);
    comparison_write_interrupted(staged->of, text);
    write_rows(&table, terminal->colour, text);
    write_weights(&table, text);
    write_legend(staged, text);
    write_formulas(&table, text);
    write_reasons(comparison, text);
    if (comparison->row_count != 1 || comparison->done_count != 1) return;
    write_ranks(&staged->row[0], text);
    if (staged->row[0].played.lane != NULL)
        lanes_write(&rows[0].schedule, &staged->row[0].played, terminal, text);
    else
        strbuf_add(
            text,
            "\nmore ranks or microbatches than fit a line are not drawn as text; see --svg\n");
}
