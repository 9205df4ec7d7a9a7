/* The rows of `podsim pipeline` on a terminal. */
#include <math.h>
#include <string.h>

#include "sim/base/counted.h"
#include "sim/base/strbuf.h"
#include "sim/base/units.h"
#include "sim/report/table.h"
#include "sim/report/table_fit.h"
#include "tools/podsim/common/report.h"
#include "tools/podsim/pipeline/comparison_rows.h"
#include "tools/podsim/pipeline/lanes.h"
#include "tools/podsim/pipeline/schedules.h"

static double whole(int64_t parts)
{
    return (double)parts / SCHEDULES_UNIT;
}

static void write_times(const struct schedules *schedules, struct strbuf *text)
{
    strbuf_add(text, "a rank's whole share: F %s, I %s, W %s, a hop %s",
               schedules_figure(whole(schedules->forward)).text,
               schedules_figure(whole(schedules->input)).text,
               schedules_figure(whole(schedules->weight)).text,
               schedules_figure(whole(schedules->hop)).text);
    if (schedules->pair > 0)
        strbuf_add(text, ", a pair %s", schedules_figure(whole(schedules->pair)).text);
    strbuf_add(text, "\n");
}

/* Whether a formula and what came out differ. */
static bool is_off(const struct schedules_row *row)
{
    if (row->of->refused.status != STATUS_OK || row->of->formula.measure == SCHEDULE_NO_FORMULA)
        return false;
    return fabs(schedules_units(row, row->of->formula.bubble_ticks) - schedules_measured(row)) >=
           1e-9;
}

/* What a formula is published for; NULL where only hops keep it from holding. */
static const char *condition_of(const struct schedules_row *row)
{
    return row->of->formula.exact ? NULL : row->of->formula.holds;
}

static bool have_one_condition(const struct schedules_row *row, const struct schedules_row *other)
{
    const char *const of = condition_of(row), *const others = condition_of(other);
    return of == others || (of != NULL && others != NULL && strcmp(of, others) == 0);
}

static void write_difference(const struct schedules_row *row, bool counts, struct strbuf *sentence)
{
    bool const per_rank = row->of->formula.measure == SCHEDULE_PER_RANK;
    strbuf_add(sentence, "%s", row->of->name);
    if (counts)
        strbuf_add(sentence, " with %s", counted(row->of->microbatch_count, "microbatch").text);
    struct table_figure const published =
        schedules_figure(schedules_units(row, row->of->formula.bubble_ticks));
    strbuf_add(sentence, " %s", row->of->formula.text);
    if (strcmp(row->of->formula.text, published.text) != 0)
        strbuf_add(sentence, " = %s", published.text);
    strbuf_add(sentence, ", simulated %s%s", schedules_figure(schedules_measured(row)).text,
               per_rank ? " per stage" : "");
}

/* A line for each condition that is not met, with all formulas that it is of. */
static void write_differences(const struct schedules *schedules, struct strbuf *text)
{
    const struct comparison *comparison = schedules->of;
    bool is_said[COMPARISON_ROWS_MAX] = {false};
    for (uint32_t i = 0; i < comparison->done_count; i++) {
        const struct schedules_row *row = &schedules->row[comparison->order[i]];
        const char *separator = ": ";
        struct strbuf sentence = {0};
        if (is_said[i] || !is_off(row)) continue;
        if (condition_of(row) == NULL)
            strbuf_add(&sentence, "- published without hops");
        else
            strbuf_add(&sentence, "- published for %s", condition_of(row));
        for (uint32_t k = i; k < comparison->done_count; k++) {
            const struct schedules_row *other = &schedules->row[comparison->order[k]];
            if (is_said[k] || !is_off(other) || !have_one_condition(row, other)) continue;
            is_said[k] = true;
            strbuf_add(&sentence, "%s", separator);
            write_difference(other, comparison->count > 1, &sentence);
            separator = "; ";
        }
        text->failed = text->failed || sentence.failed;
        if (!sentence.failed) table_wrap(text, 2, sentence.bytes);
        strbuf_free(&sentence);
    }
}

/* Rows that stand together with one, which is the first of them. */
static void write_group(const struct comparison_table *table, uint32_t first, bool colour,
                        struct strbuf *text)
{
    const struct comparison *comparison = table->of;
    const struct comparison_row *of = &comparison->row[comparison->order[first]];
    strbuf_add(text, "%s, %s\n", counted(of->rank_count, "rank").text,
               counted(of->microbatch_count, "microbatch").text);
    for (uint32_t i = first; i < comparison->done_count; i++) {
        uint32_t const at = comparison->order[i];
        if (comparison->row[at].refused.status == STATUS_OK &&
            schedules_are_together(of, &comparison->row[at]))
            comparison_add_row(table, at, colour, text);
    }
}

/* Held: activations of the worst rank, of its whole share of a microbatch. */
void schedules_write_text(const struct comparison *comparison,
                          const struct report_terminal *terminal, struct strbuf *text)
{
    const struct schedules *schedules = comparison->owner;
    struct comparison_table const table =
        comparison_table(comparison, COMPARISON_CHUNKS, &schedules_screen);
    write_times(schedules, text);
    comparison_write_interrupted(comparison, text);
    strbuf_add(text, "\n");
    uint64_t const begin = table_open(text);
    comparison_add_headings(&table, 1, "  schedule", text);
    for (uint32_t i = 0; i < comparison->done_count; i++) {
        const struct comparison_row *row = &comparison->row[comparison->order[i]];
        uint32_t first = 0;
        while (first < i &&
               (comparison->row[comparison->order[first]].refused.status != STATUS_OK ||
                !schedules_are_together(&comparison->row[comparison->order[first]], row)))
            first++;
        if (first == i && row->refused.status == STATUS_OK)
            write_group(&table, i, terminal->colour, text);
    }
    table_close(text, begin, table.columns);
    strbuf_add(text, "\n");
    comparison_write_signs(comparison, text);
    table_wrap(text, 2,
               "period: from step to step, each rank beginning the next as soon as it has ended "
               "its own; bubble: makespan less a rank's work, of the rank with least; per stage: "
               "of the worst rank, from its first pass to its last, less its work; held: "
               "activations of the fullest rank, in its whole shares of a microbatch; weights: "
               "copies of the model");
    comparison_write_refused(comparison, text);
    write_differences(schedules, text);
    if (comparison->row_count == 1 && comparison->done_count == 1)
        lanes_write(&comparison->row[0].schedule, &schedules->row[0].played, terminal, text);
}
