#include "sim/report/run_interval.h"

#include <stdio.h>

#include "sim/base/counted.h"
#include "sim/base/json.h"
#include "sim/base/strbuf.h"
#include "sim/report/column_table.h"
#include "sim/report/generation.h"

/* Of which simulated time. */
struct interval {
    const struct report_interval *of;
    bool is_period;
    double simulated_s;
};

static struct table_figure signed_share(struct column_value value)
{
    struct table_figure figure;
    (void)snprintf(figure.text, sizeof figure.text, "%+.1f%%", 100 * (value.real - 1));
    return figure;
}

#define TABLE(X)                                                                                   \
    X(OF, "of",                                                                                    \
      SAID(interval->is_period ? "period_time_s" : "step_time_s",                                  \
           interval->is_period ? "period" : "step"),                                               \
      IN_WORDS(column_words))                                                                      \
    X(COVERAGE, "coverage", REAL(of->coverage_percent / 100.0), HIDDEN)                            \
    X(LOW, "low_s", REAL(of->low * interval->simulated_s), NAMED("interval", column_seconds))      \
    X(MEDIAN, "median_s", REAL(of->median * interval->simulated_s), HIDDEN)                        \
    X(HIGH, "high_s", REAL(of->high * interval->simulated_s), IN_WORDS(column_seconds))            \
    X(LOW_RATIO, "low_ratio", REAL(of->low), IN_WORDS(signed_share))                               \
    X(MEDIAN_RATIO, "median_ratio", REAL(of->median), IN_WORDS(signed_share))                      \
    X(HIGH_RATIO, "high_ratio", REAL(of->high), IN_WORDS(signed_share))                            \
    X(WORK, "work", WORDS(of->work), IN_WORDS(column_words))                                       \
    X(CHIP, "chip", WORDS(of->chip), IN_WORDS(column_words))                                       \
    X(STACK, "stack", WORDS(of->stack), IN_WORDS(column_words))                                    \
    X(ROWS, "rows", WHOLE(of->rows), IN_WORDS(column_plain))                                       \
    X(PUBLICATIONS, "publications", WHOLE(of->publications), HIDDEN)                               \
    X(OTHER_ROWS, "other_rows", WHOLE(of->other_rows), IN_WORDS(column_plain))                     \
    X(OTHER_PUBLICATIONS, "other_publications", WHOLE(of->other_publications), HIDDEN)             \
    X(NOT_COVERED, "not_covered",                                                                  \
      WORDS("limits of power, other clocks, slow or failing chips and networks, data loading"),    \
      IN_WORDS(column_words))

enum { TABLE(COLUMN_NAME) COLUMN_TOTAL };
static const struct column columns[] = {TABLE(COLUMN_ENTRY)};

#define FIGURE(name) CELL(columns, values, name)

static void find(const struct interval *interval, struct column_value *ret_values)
{
    const struct report_interval *of = interval->of;
    TABLE(COLUMN_FIND)
}

static struct interval interval_of(const struct report_input *input)
{
    int64_t const period_ps = input->generation == NULL ? input->trace->period.time : 0;
    int64_t const step_ps =
        input->generation == NULL ? input->trace->step_ps : generation_total_ps(input->generation);
    return (struct interval){.of = input->interval,
                             .is_period = period_ps > 0,
                             .simulated_s = units_seconds(period_ps > 0 ? period_ps : step_ps)};
}

static void add_rows(uint32_t rows, uint32_t publications, struct strbuf *sentence)
{
    strbuf_add(sentence, "%s of %s", counted(rows, "measurement").text,
               counted(publications, "publication").text);
}

void run_interval_write(const struct report_input *input, struct strbuf *text)
{
    struct column_value values[COLUMN_TOTAL];
    struct strbuf sentence = {0};
    if (input->interval == NULL) return;
    struct interval const interval = interval_of(input);
    const struct report_interval *of = interval.of;
    find(&interval, values);
    table_line(text, columns[LOW].heading[1]);
    strbuf_add(text, "%u of 100 measurements would lie between %s and %s\n", of->coverage_percent,
               FIGURE(LOW), FIGURE(HIGH));
    table_line(text, "");
    strbuf_add(text, "that is %s to %s of the %s; the median is at %s\n", FIGURE(LOW_RATIO),
               FIGURE(HIGH_RATIO), FIGURE(OF), FIGURE(MEDIAN_RATIO));
    table_line(text, "");
    strbuf_add(&sentence, "by ");
    if (of->rows > 0)
        add_rows(of->rows, of->publications, &sentence);
    else
        strbuf_add(&sentence, "no measurement");
    strbuf_add(&sentence, " on %s with %s and ", FIGURE(CHIP), FIGURE(STACK));
    add_rows(of->other_rows, of->other_publications, &sentence);
    strbuf_add(&sentence, " elsewhere, of %s; not for %s", FIGURE(WORK), FIGURE(NOT_COVERED));
    table_wrap_close(text, TABLE_LINE_COLUMNS, &sentence);
}

void run_interval_put(const struct report_input *input, struct json_writer *json)
{
    struct column_value values[COLUMN_TOTAL];
    if (input->interval == NULL) return;
    struct interval const interval = interval_of(input);
    find(&interval, values);
    json_put_object(json, "uncertainty");
    column_put(columns, values, 0, COLUMN_TOTAL - 1, json);
    json_write_object_end(json);
}
