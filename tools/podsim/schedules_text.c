/* The rows of `podsim pipeline` on a terminal. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sim/base/counted.h"
#include "sim/base/text.h"
#include "sim/base/units.h"
#include "sim/report/table.h"
#include "sim/report/table_fit.h"
#include "tools/podsim/lanes.h"
#include "tools/podsim/report.h"
#include "tools/podsim/schedules.h"

enum {
    COLUMN_CHUNKS = 24,
    COLUMN_PERIOD = 33,
    COLUMN_MAKESPAN = 43,
    COLUMN_BUBBLE = 52,
    COLUMN_SHARE = 60,
    COLUMN_STAGE = 70,
    COLUMN_FORMULA = 79,
    COLUMN_HOPS = 88,
    COLUMN_PEAK = 96,
    COLUMN_COPIES = 104,
};

/* Four digits behind the point at most, none that are 0. */
static struct table_figure figure(double value)
{
    struct table_figure figure;
    (void)snprintf(figure.text, sizeof figure.text, "%.4f", value);
    size_t end = 0;
    while (figure.text[end] != '\0') end++;
    while (end > 0 && figure.text[end - 1] == '0') end--;
    if (end > 0 && figure.text[end - 1] == '.') end--;
    figure.text[end] = '\0';
    if (figure.text[0] == '-' && figure.text[1] == '0' && figure.text[2] == '\0')
        figure.text[0] = '0', figure.text[1] = '\0';
    return figure;
}

static double whole(int64_t parts)
{
    return (double)parts / SCHEDULES_UNIT;
}

/* Returns where the table begins. */
static uint64_t write_head(const struct schedules *schedules, uint32_t wider, struct text *text)
{
    static const struct {
        uint32_t column;
        const char *name;
    } heads[] = {{COLUMN_CHUNKS, "chunks"},     {COLUMN_PERIOD, "period"},
                 {COLUMN_MAKESPAN, "makespan"}, {COLUMN_BUBBLE, "bubble"},
                 {COLUMN_SHARE, "share"},       {COLUMN_STAGE, "per stage"},
                 {COLUMN_FORMULA, "formula"},   {COLUMN_HOPS, "by hops"},
                 {COLUMN_PEAK, "held"},         {COLUMN_COPIES, "weights"}};
    text_add(text, "a rank's whole share: F %s, I %s, W %s, a hop %s",
             figure(whole(schedules->forward)).text, figure(whole(schedules->input)).text,
             figure(whole(schedules->weight)).text, figure(whole(schedules->hop)).text);
    if (schedules->pair > 0) text_add(text, ", a pair %s", figure(whole(schedules->pair)).text);
    text_add(text, "\n");
    comparison_write_interrupted(schedules->of, text);
    text_add(text, "\n");
    uint64_t const table = table_open(text);
    text_add(text, "  schedule");
    for (uint32_t i = 0; i < sizeof heads / sizeof *heads; i++)
        table_right(text, heads[i].column + wider, heads[i].name);
    text_add(text, "\n");
    return table;
}

static void write_row(const struct schedules *schedules, const struct schedules_row *row,
                      uint32_t wider, bool colour, struct text *text)
{
    char copies[16];
    double const bubble = schedules_units(row, row->played.bubble_makespan);
    double const makespan = schedules_units(row, row->played.makespan);
    table_colour(text, colour && row->of->best, TABLE_GREEN);
    text_add(text, "%s", comparison_label(row->of).text);
    table_colour(text, colour && row->of->best, TABLE_PLAIN);
    (void)snprintf(copies, sizeof copies, "%ux", row->of->schedule.copy_count);
    table_right(text, wider + COLUMN_CHUNKS, table_count(row->of->schedule.chunk_count).text);
    table_right(text, wider + COLUMN_PERIOD, figure(schedules_units(row, row->period.time)).text);
    table_right(text, wider + COLUMN_MAKESPAN, figure(makespan).text);
    table_right(text, wider + COLUMN_BUBBLE, figure(bubble).text);
    table_right(text, wider + COLUMN_SHARE, table_percent(bubble, makespan).text);
    table_right(text, wider + COLUMN_STAGE,
                figure(schedules_units(row, row->played.bubble_per_rank)).text);
    bool const has_formula = row->of->formula.measure != SCHEDULE_NO_FORMULA;
    table_right(text, wider + COLUMN_FORMULA,
                has_formula ? figure(schedules_units(row, row->of->formula.bubble_ticks)).text
                            : "-");
    int64_t const hops = row->played.makespan - row->without_hops.makespan;
    table_right(text, wider + COLUMN_HOPS, figure(schedules_units(row, hops)).text);
    table_right(text, wider + COLUMN_PEAK, figure(schedules_peak_most(schedules, row)).text);
    table_right(text, wider + COLUMN_COPIES, copies);
    text_add(text, "\n");
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

static void write_difference(const struct schedules_row *row, bool counts, struct text *sentence)
{
    bool const per_rank = row->of->formula.measure == SCHEDULE_PER_RANK;
    text_add(sentence, "%s", row->of->name);
    if (counts)
        text_add(sentence, " with %s", counted(row->of->microbatch_count, "microbatch").text);
    struct table_figure const published =
        figure(schedules_units(row, row->of->formula.bubble_ticks));
    text_add(sentence, " %s", row->of->formula.text);
    if (strcmp(row->of->formula.text, published.text) != 0)
        text_add(sentence, " = %s", published.text);
    text_add(sentence, ", simulated %s%s", figure(schedules_measured(row)).text,
             per_rank ? " per stage" : "");
}

/* A line for each condition that is not met, with all formulas that it is of. */
static void write_differences(const struct schedules *schedules, struct text *text)
{
    const struct comparison *comparison = schedules->of;
    bool is_said[COMPARISON_ROWS_MAX] = {false};
    for (uint32_t i = 0; i < comparison->done_count; i++) {
        const struct schedules_row *row = &schedules->row[comparison->order[i]];
        const char *separator = ": ";
        struct text sentence = {0};
        if (is_said[i] || !is_off(row)) continue;
        if (condition_of(row) == NULL)
            text_add(&sentence, "- published without hops");
        else
            text_add(&sentence, "- published for %s", condition_of(row));
        for (uint32_t k = i; k < comparison->done_count; k++) {
            const struct schedules_row *other = &schedules->row[comparison->order[k]];
            if (is_said[k] || !is_off(other) || !have_one_condition(row, other)) continue;
            is_said[k] = true;
            text_add(&sentence, "%s", separator);
            write_difference(other, comparison->count > 1, &sentence);
            separator = "; ";
        }
        text->failed = text->failed || sentence.failed;
        if (!sentence.failed) table_wrap(text, 2, sentence.bytes);
        text_free(&sentence);
    }
}

/* Rows that stand together with one, which is the first of them. */
static void write_group(const struct schedules *schedules, uint32_t first, uint32_t wider,
                        bool colour, struct text *text)
{
    const struct comparison *comparison = schedules->of;
    const struct comparison_row *of = &comparison->row[comparison->order[first]];
    text_add(text, "%s, %s\n", counted(of->rank_count, "rank").text,
             counted(of->microbatch_count, "microbatch").text);
    for (uint32_t i = first; i < comparison->done_count; i++) {
        uint32_t const at = comparison->order[i];
        if (comparison->row[at].refused.status == STATUS_OK &&
            schedules_are_together(of, &comparison->row[at]))
            write_row(schedules, &schedules->row[at], wider, colour, text);
    }
}

static uint32_t chunks_columns(const struct comparison_row *row)
{
    return table_columns(table_count(row->chunk_count).text);
}

/* Held: activations of the worst rank, of its whole share of a microbatch. */
void schedules_write_text(const struct comparison *comparison,
                          const struct report_terminal *terminal, struct text *text)
{
    const struct schedules *schedules = comparison->owner;
    uint32_t const wider = comparison_widening(comparison, COLUMN_CHUNKS, chunks_columns);
    uint64_t const table = write_head(schedules, wider, text);
    for (uint32_t i = 0; i < comparison->done_count; i++) {
        const struct comparison_row *row = &comparison->row[comparison->order[i]];
        uint32_t first = 0;
        while (first < i &&
               (comparison->row[comparison->order[first]].refused.status != STATUS_OK ||
                !schedules_are_together(&comparison->row[comparison->order[first]], row)))
            first++;
        if (first == i && row->refused.status == STATUS_OK)
            write_group(schedules, i, wider, terminal->colour, text);
    }
    table_close(text, table, wider + COLUMN_CHUNKS);
    text_add(text, "\n");
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
