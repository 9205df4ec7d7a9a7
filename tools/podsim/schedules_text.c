/* The rows of `podsim pipeline` on a terminal. */
#include <math.h>
#include <stdio.h>

#include "sim/base/text.h"
#include "sim/base/units.h"
#include "sim/report/table.h"
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

static void write_head(const struct schedules *schedules, uint32_t wider, struct text *text)
{
    static const struct {
        uint32_t column;
        const char *name;
    } heads[] = {
        {COLUMN_CHUNKS, "chunks"},   {COLUMN_PERIOD, "period"}, {COLUMN_MAKESPAN, "makespan"},
        {COLUMN_BUBBLE, "bubble"},   {COLUMN_SHARE, "share"},   {COLUMN_STAGE, "per stage"},
        {COLUMN_FORMULA, "formula"}, {COLUMN_HOPS, "by hops"},  {COLUMN_PEAK, "held"},
        {COLUMN_COPIES, "weights"}};
    text_add(text, "a rank's whole share: F %s, I %s, W %s, a hop %s",
             figure(whole(schedules->forward)).text, figure(whole(schedules->input)).text,
             figure(whole(schedules->weight)).text, figure(whole(schedules->hop)).text);
    if (schedules->pair > 0) text_add(text, ", a pair %s", figure(whole(schedules->pair)).text);
    text_add(text, "\n");
    comparison_write_interrupted(schedules->of, text);
    text_add(text, "\nschedule");
    for (uint32_t i = 0; i < sizeof heads / sizeof *heads; i++)
        table_right(text, heads[i].column + wider, heads[i].name);
    text_add(text, "\n");
}

static void write_row(const struct schedules *schedules, const struct schedules_row *row,
                      uint32_t wider, bool colour, bool best, struct text *text)
{
    char copies[16];
    double const bubble = schedules_units(row, row->played.bubble_makespan);
    double const makespan = schedules_units(row, row->played.makespan);
    if (best) table_colour(text, colour, TABLE_GREEN);
    text_add(text, "%s", row->of->name);
    if (best) table_colour(text, colour, TABLE_PLAIN);
    (void)snprintf(copies, sizeof copies, "%ux", row->of->schedule.copy_count);
    table_right(text, wider + COLUMN_CHUNKS, table_count(row->of->schedule.chunk_count).text);
    table_right(text, wider + COLUMN_PERIOD,
                figure(schedules_units(row, row->period.time)).text);
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

static void write_note(const struct schedules_row *row, struct text *text)
{
    char sentence[1200];
    if (row->of->formula.measure == SCHEDULE_NO_FORMULA) return;
    double const published = schedules_units(row, row->of->formula.bubble_ticks);
    double const measured = schedules_measured(row);
    if (fabs(published - measured) < 1e-9) return;
    const char *const which =
        row->of->formula.measure == SCHEDULE_PER_RANK ? "bubble per stage" : "bubble";
    if (!row->of->formula.exact)
        (void)snprintf(sentence, sizeof sentence,
                       "- %s: %s = %s is published for %s; played, the %s is %s", row->of->name,
                       row->of->formula.text, figure(published).text, row->of->formula.holds, which,
                       figure(measured).text);
    else
        (void)snprintf(sentence, sizeof sentence,
                       "- %s: %s = %s knows no hops; with them the %s is %s", row->of->name,
                       row->of->formula.text, figure(published).text, which, figure(measured).text);
    table_wrap(text, 2, sentence);
}

/* Rows of as many ranks and microbatches stand together. */
static bool are_together(const struct comparison_row *one, const struct comparison_row *other)
{
    return one->refused.status == STATUS_OK && other->refused.status == STATUS_OK &&
           one->rank_count == other->rank_count && one->microbatch_count == other->microbatch_count;
}

/* Ticks differ with the chunks; a common measure of all rows is parts of a unit. */
static int64_t period_parts(const struct schedules_row *row)
{
    return llround(schedules_units(row, row->period.time) * (double)SCHEDULES_UNIT);
}

/* Those that stand together with a row, which is the first of them. */
static void write_group(const struct schedules *schedules, uint32_t first, uint32_t wider,
                        bool colour, struct text *text)
{
    const struct comparison_row *rows = schedules->of->row;
    int64_t least = INT64_MAX;
    text_add(text, "%u rank%s, %u microbatch%s\n", rows[first].rank_count,
             rows[first].rank_count == 1 ? "" : "s", rows[first].microbatch_count,
             rows[first].microbatch_count == 1 ? "" : "es");
    for (uint32_t i = first; i < schedules->of->done_count; i++)
        if (are_together(&rows[first], &rows[i]) && period_parts(&schedules->row[i]) < least)
            least = period_parts(&schedules->row[i]);
    for (uint32_t i = first; i < schedules->of->done_count; i++)
        if (are_together(&rows[first], &rows[i]))
            write_row(schedules, &schedules->row[i], wider, colour,
                      period_parts(&schedules->row[i]) == least, text);
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
    write_head(schedules, wider, text);
    for (uint32_t i = 0; i < comparison->done_count; i++) {
        uint32_t first = 0;
        while (first < i && !are_together(&comparison->row[first], &comparison->row[i])) first++;
        if (first == i && comparison->row[i].refused.status == STATUS_OK)
            write_group(schedules, i, wider, terminal->colour, text);
    }
    text_add(text,
             "\nperiod: from step to step, each rank beginning the next as soon as it has ended "
             "its own; bubble: makespan\nless a rank's work, of the rank with least; per stage: "
             "of the worst rank, from its first pass to its last,\nless its work; held: "
             "activations of the fullest rank, in its whole shares of a microbatch; weights:\n"
             "copies of the model\n");
    for (uint32_t i = 0; i < comparison->done_count; i++)
        if (!comparison_write_refused(&comparison->row[i], text))
            write_note(&schedules->row[i], text);
    if (comparison->row_count == 1 && comparison->done_count == 1)
        lanes_write(&comparison->row[0].schedule, &schedules->row[0].played, terminal, text);
}
