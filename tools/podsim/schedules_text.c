/* The rows of `podsim pipeline` on a terminal. */
#include <math.h>
#include <stdio.h>

#include "sim/base/text.h"
#include "sim/base/units.h"
#include "sim/report/table.h"
#include "tools/podsim/lanes.h"
#include "tools/podsim/schedules.h"

enum {
    COLUMN_CHUNKS = 24,
    COLUMN_MAKESPAN = 36,
    COLUMN_BUBBLE = 46,
    COLUMN_SHARE = 54,
    COLUMN_STAGE = 66,
    COLUMN_FORMULA = 76,
    COLUMN_HOPS = 86,
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

static void write_head(const struct schedules *schedules, struct text *text)
{
    static const struct {
        uint32_t column;
        const char *name;
    } heads[] = {
        {COLUMN_CHUNKS, "chunks"}, {COLUMN_MAKESPAN, "makespan"}, {COLUMN_BUBBLE, "bubble"},
        {COLUMN_SHARE, "share"},   {COLUMN_STAGE, "per stage"},   {COLUMN_FORMULA, "formula"},
        {COLUMN_HOPS, "by hops"},  {COLUMN_PEAK, "held"},         {COLUMN_COPIES, "weights"}};
    text_add(text, "a rank's whole share: F %s, I %s, W %s, a hop %s",
             figure(whole(schedules->forward)).text, figure(whole(schedules->input)).text,
             figure(whole(schedules->weight)).text, figure(whole(schedules->hop)).text);
    if (schedules->pair > 0) text_add(text, ", a pair %s", figure(whole(schedules->pair)).text);
    text_add(text, "\n");
    if (schedules->done_count < schedules->row_count)
        text_add(text, "interrupted: %u of %u rows\n", schedules->done_count, schedules->row_count);
    text_add(text, "\nschedule");
    for (uint32_t i = 0; i < sizeof heads / sizeof *heads; i++)
        table_right(text, heads[i].column, heads[i].name);
    text_add(text, "\n");
}

static void write_row(const struct schedules *schedules, const struct schedules_row *row,
                      bool colour, bool best, struct text *text)
{
    char copies[16];
    double const bubble = schedules_units(row, row->played.bubble_makespan);
    double const makespan = schedules_units(row, row->played.makespan);
    if (best) table_colour(text, colour, TABLE_GREEN);
    text_add(text, "%s", row->name);
    if (best) table_colour(text, colour, TABLE_PLAIN);
    (void)snprintf(copies, sizeof copies, "%ux", row->schedule.copy_count);
    table_right(text, COLUMN_CHUNKS, table_count(row->schedule.chunk_count).text);
    table_right(text, COLUMN_MAKESPAN, figure(makespan).text);
    table_right(text, COLUMN_BUBBLE, figure(bubble).text);
    table_right(text, COLUMN_SHARE, table_percent(bubble, makespan).text);
    table_right(text, COLUMN_STAGE, figure(schedules_units(row, row->played.bubble_per_rank)).text);
    bool const has_formula = row->formula.measure != SCHEDULE_NO_FORMULA;
    table_right(text, COLUMN_FORMULA,
                has_formula ? figure(schedules_units(row, row->formula.bubble_ticks)).text : "-");
    int64_t const hops = row->played.makespan - row->without_hops.makespan;
    table_right(text, COLUMN_HOPS, figure(schedules_units(row, hops)).text);
    table_right(text, COLUMN_PEAK, figure(schedules_peak_most(schedules, row)).text);
    table_right(text, COLUMN_COPIES, copies);
    text_add(text, "\n");
}

static void write_note(const struct schedules_row *row, struct text *text)
{
    char sentence[1200];
    if (row->refused.status != STATUS_OK) {
        (void)snprintf(sentence, sizeof sentence, "- not played: %s", row->refused.message);
        table_wrap(text, 2, sentence);
        return;
    }
    if (row->formula.measure == SCHEDULE_NO_FORMULA) return;
    double const published = schedules_units(row, row->formula.bubble_ticks);
    double const measured = schedules_measured(row);
    if (fabs(published - measured) < 1e-9) return;
    const char *const which =
        row->formula.measure == SCHEDULE_PER_RANK ? "bubble per stage" : "bubble";
    if (!row->formula.exact)
        (void)snprintf(sentence, sizeof sentence,
                       "- %s: %s = %s is published for %s; played, the %s is %s", row->name,
                       row->formula.text, figure(published).text, row->formula.holds, which,
                       figure(measured).text);
    else
        (void)snprintf(sentence, sizeof sentence,
                       "- %s: %s = %s knows no hops; with them the %s is %s", row->name,
                       row->formula.text, figure(published).text, which, figure(measured).text);
    table_wrap(text, 2, sentence);
}

/* Held: activations of the worst rank, of its whole share of a microbatch. */
void schedules_write_text(const struct schedules *schedules, bool colour, struct text *text)
{
    uint32_t ranks = 0, microbatches = 0;
    write_head(schedules, text);
    for (uint32_t i = 0; i < schedules->done_count; i++) {
        const struct schedules_row *row = &schedules->row[i];
        bool seen = false, best = true;
        if (row->refused.status != STATUS_OK) continue;
        for (uint32_t k = 0; k < i; k++)
            seen = seen ||
                   (schedules->row[k].refused.status == STATUS_OK &&
                    schedules->row[k].request.microbatch_count == row->request.microbatch_count &&
                    schedules->row[k].request.rank_count == row->request.rank_count);
        if (seen) continue; /* Shown with the first of as many. */
        ranks = row->request.rank_count;
        microbatches = row->request.microbatch_count;
        text_add(text, "%u ranks, %u microbatches\n", ranks, microbatches);
        int64_t least = INT64_MAX;
        for (uint32_t pass = 0; pass < 2; pass++)
            for (uint32_t k = i; k < schedules->done_count; k++) {
                const struct schedules_row *other = &schedules->row[k];
                if (other->refused.status != STATUS_OK || other->request.rank_count != ranks ||
                    other->request.microbatch_count != microbatches)
                    continue;
                /* Ticks differ with the chunks; a common measure of both is theirs. */
                int64_t const common = (int64_t)llround(
                    schedules_units(other, other->played.makespan) * (double)SCHEDULES_UNIT);
                if (pass == 0) {
                    least = common < least ? common : least;
                    continue;
                }
                best = common == least;
                write_row(schedules, other, colour, best, text);
            }
    }
    text_add(text,
             "\nbubble: makespan less a rank's work; per stage: from a rank's first pass to its "
             "last, less its work\nheld: activations of the fullest rank, in its whole shares of a "
             "microbatch; weights: copies of the model\n");
    for (uint32_t i = 0; i < schedules->done_count; i++) write_note(&schedules->row[i], text);
    if (schedules->row_count == 1 && schedules->done_count == 1)
        lanes_write(&schedules->row[0].schedule, &schedules->row[0].played, colour, text);
}
