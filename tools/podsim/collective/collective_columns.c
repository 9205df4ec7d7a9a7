/* The columns of `podsim collective`: on the screen those of nccl-tests, in CSV and in JSON. */
#include <stdio.h>

#include "sim/base/json.h"
#include "sim/base/strbuf.h"
#include "sim/report/column_table.h"
#include "tools/podsim/collective/collective.h"

enum { COUNT_WIDTH = 12, TIME_WIDTH = 7, US_PER_S = 1000000 };

static const double ps_per_us = 1e6;
static const double giga = 1e9;

/* As nccl-tests: as many decimals as the width leaves, at most two. */
static struct table_figure figure(int width, double value)
{
    struct table_figure figure;
    int power = 0;
    for (double least = 1; value >= least; least *= 10) power++;
    int const decimals = power < width - 2 ? 2 : power < width - 1 ? 1 : 0;
    if (power < width + 1)
        (void)snprintf(figure.text, sizeof figure.text, "%*.*f", width, decimals, value);
    else
        (void)snprintf(figure.text, sizeof figure.text, "%*.*e", width, width >= TIME_WIDTH ? 1 : 0,
                       value);
    return figure;
}

static struct table_figure digits(struct column_value value)
{
    struct table_figure figure;
    (void)snprintf(figure.text, sizeof figure.text, "%llu", (unsigned long long)value.whole);
    return figure;
}

static struct table_figure root(struct column_value value)
{
    return value.kind == COLUMN_NONE ? (struct table_figure){"-1"} : digits(value);
}

static struct table_figure wrong(struct column_value value)
{
    bool const proved = value.kind == COLUMN_FLAG && value.flag;
    return proved ? (struct table_figure){"0"} : (struct table_figure){"N/A"};
}

static struct table_figure us_of_ps(struct column_value value)
{
    return figure(TIME_WIDTH, (double)value.whole / ps_per_us);
}

static struct table_figure us_of_s(struct column_value value)
{
    return figure(TIME_WIDTH, (double)US_PER_S * value.real);
}

static struct table_figure per_giga(struct column_value value)
{
    return figure(TIME_WIDTH - 1, value.real / giga);
}

static struct table_figure times(struct column_value value)
{
    return figure(TIME_WIDTH - 1, value.real);
}

/* Width 0 is that of the largest count. */
#define TABLE(X)                                                                                   \
    X(OP, "op", WORDS(measure_op_name(args->operation)), HIDDEN)                                   \
    X(MACHINE, "machine", WORDS(study->asked.machine_text), HIDDEN)                                \
    X(PROFILE, "profile", WORDS(study->asked.machine.chip.profile), HIDDEN)                        \
    X(AXES, "axes", LIST(args->axes), HIDDEN)                                                      \
    X(ALGORITHM, "algorithm", WORDS(row->algorithm), HIDDEN)                                       \
    X(PROTOCOL, "protocol", WORDS(protocol_name(row->protocol)), HIDDEN)                           \
    X(RANKS, "ranks", WHOLE(group_rank_count(&args->group)), HIDDEN)                               \
    X(SIZE, "size_bytes", WHOLE(row->size_bytes), SHOWN("size", "(B)", 0, digits))                 \
    X(ARRAY, "array_bytes", WHOLE(row->array_bytes), SHOWN("array", "(B)", 0, digits))             \
    X(COUNT, "count", WHOLE(row->count), SHOWN("count", "(elements)", 0, digits))                  \
    X(DTYPE, "dtype", WORDS(format_name(args->format)), HIDDEN)                                    \
    X(TYPE, NULL, WORDS(format_nccl_name(args->format)), SHOWN("type", "", 8, column_words))       \
    X(PROVED, "proved", WHERE(study->checks, FLAG(row->proved)), SHOWN("#wrong", "", 6, wrong))    \
    X(ROOT, "root", WHERE(measure_op_is_rooted(args->operation), WHOLE(args->root)),               \
      SHOWN("root", "", 6, root))                                                                  \
    X(REDOP, NULL, WORDS(measure_op_adds(args->operation) ? "sum" : "none"),                       \
      SHOWN("redop", "", 6, column_words))                                                         \
    X(SHIFT, "shift",                                                                              \
      WHERE(args->operation == MEASURE_SENDRECV, WHOLE(args->shift == 0 ? 1 : args->shift)),       \
      HIDDEN)                                                                                      \
    X(SENDERS, "senders",                                                                          \
      WHERE(args->operation == MEASURE_SENDRECV, WHOLE(measure_row_senders(args).count)), HIDDEN)  \
    X(TIME, "time_ps", WHOLE(row->time_ps), SHOWN("time", "(us)", TIME_WIDTH, us_of_ps))           \
    X(ALGBW, "algbw_bytes_per_s", REAL(row->algbw_bytes_per_s),                                    \
      SHOWN("algbw", "(GB/s)", 6, per_giga))                                                       \
    X(BUSBW, "busbw_bytes_per_s", REAL(row->busbw_bytes_per_s),                                    \
      SHOWN("busbw", "(GB/s)", 6, per_giga))                                                       \
    X(ROOFLINE, "roofline_s", REAL(row->roofline_s), SHOWN("roofline", "(us)", 8, us_of_s))        \
    X(LATENCY, "latency_s", REAL(row->latency_s), HIDDEN)                                          \
    X(STRICT, "strict_s", REAL(row->strict_s), HIDDEN)                                             \
    X(BOUND, "bound_by", WORDS(row->bound_by), SHOWN("bound", "", -7, column_words))               \
    X(WHERE, "bound_where", WORDS(row->bound_where), HIDDEN)                                       \
    X(ESTIMATE, "estimate_s", WHERE(row->estimate_s > 0, REAL(row->estimate_s)),                   \
      IN_WORDS(column_seconds))                                                                    \
    X(HOSTS, "hosts_s", WHERE(hosts_ps > 0, SECONDS(hosts_ps)), HIDDEN)                            \
    X(TUNER, "tuner_line", WHERE(row->tuner_line > 0, WHOLE(row->tuner_line)), HIDDEN)             \
    X(ALONE, "alone_ps", WHOLE(row->alone_ps), HIDDEN)                                             \
    X(SLOWDOWN, "slowdown", REAL(measure_row_slowdown(row)), SHOWN("slower", "", 6, times))

enum { TABLE(COLUMN_NAME) COLUMN_TOTAL };

static const struct column columns[] = {TABLE(COLUMN_ENTRY)};

static void find(const struct collective_study *study, const struct measure_row *row,
                 struct column_value *ret_values)
{
    const struct measure_row_args *args = row->args;
    int64_t const hosts_ps = collective_hosts_ps(args);
    TABLE(COLUMN_FIND)
}

static const uint8_t csv[] = {OP,   AXES,  ALGORITHM, PROTOCOL, RANKS,    SIZE, ARRAY,
                              TIME, ALONE, ALGBW,     BUSBW,    ROOFLINE, BOUND};
const struct column_line collective_cells = COLUMN_LINE(columns, csv);

/* Out of place and in place alike; the slowdown stands last, where there is any. */
static const uint8_t screen[] = {SIZE,   COUNT, TYPE,     REDOP, ROOT,    TIME,
                                 ALGBW,  BUSBW, PROVED,   TIME,  ALGBW,   BUSBW,
                                 PROVED, ARRAY, ROOFLINE, BOUND, SLOWDOWN};
enum { SCREEN = sizeof screen, UNITS = SCREEN - 2 };

/* Of bytes and elements: nccl-tests' 12, or as many digits as there are. */
int collective_count_width(const struct collective_study *study)
{
    uint64_t most = 0;
    int digits = 0;
    for (uint32_t i = 0; i < study->row_count; i++)
        if (study->rows[i].array_bytes > most) most = study->rows[i].array_bytes;
    for (; most > 0; most /= 10) digits++;
    return digits > COUNT_WIDTH ? digits : COUNT_WIDTH;
}

static uint32_t screen_count(const struct collective_study *study)
{
    return study->member_count > 1 ? SCREEN : SCREEN - 1;
}

static int width_of(const struct collective_study *study, uint32_t column)
{
    int const width = columns[column].width;
    return width == 0 ? collective_count_width(study) : width;
}

static void write_heads(const struct collective_study *study, bool units, struct strbuf *text)
{
    uint32_t const count = units ? UNITS : screen_count(study);
    for (uint32_t i = 0; i < count; i++)
        strbuf_add(text, i == 0 ? "# %*s" : "  %*s", width_of(study, screen[i]) - (i == 0 ? 2 : 0),
                   columns[screen[i]].heading[units]);
}

void collective_write_columns(const struct collective_study *study, struct strbuf *text)
{
    int const width = collective_count_width(study);
    strbuf_add(text, "#\n# %*s%*s%s\n", 2 * width, "", 26, "",
               "           out-of-place                       in-place");
    write_heads(study, false, text);
    strbuf_add(text, study->member_count > 1 ? "  algorithm, of\n" : "  algorithm\n");
    write_heads(study, true, text);
    strbuf_add(text, "\n");
}

void collective_write_cells(const struct collective_study *study, const struct measure_row *row,
                            struct strbuf *text)
{
    struct column_value values[COLUMN_TOTAL];
    find(study, row, values);
    for (uint32_t i = 0; i < screen_count(study); i++)
        strbuf_add(text, "%s%*s", i == 0 ? "" : "  ", width_of(study, screen[i]),
                   columns[screen[i]].look(values[screen[i]]).text);
}

void collective_write_csv(const struct collective_study *study, struct strbuf *text)
{
    column_add_keys(&collective_cells, text);
    strbuf_add(text, "\n");
    for (uint32_t i = 0; i < study->row_count; i++) {
        struct column_value values[COLUMN_TOTAL];
        find(study, &study->rows[i], values);
        column_add_cells(&collective_cells, values, text);
        strbuf_add(text, "\n");
    }
}

/* What was chosen, and what "auto" did not take: estimated, and the time if it was simulated. */
#define RUNNERS(X)                                                                                 \
    X(RUNNER, "algorithm", WORDS(runner->algorithm), IN_WORDS(column_words))                       \
    X(RUNNER_PROTOCOL, "protocol", WORDS(protocol_name(runner->protocol)), IN_WORDS(column_words)) \
    X(RUNNER_ESTIMATE, "estimate_s", REAL(runner->estimate_s), IN_WORDS(column_seconds))           \
    X(RUNNER_TIME, "time_ps", WHERE(runner->time_ps > 0, WHOLE(runner->time_ps)),                  \
      IN_WORDS(column_duration))

enum { RUNNERS(COLUMN_NAME) RUNNERS_TOTAL };

static const struct column runners[] = {RUNNERS(COLUMN_ENTRY)};

static void find_runner(const void *owner, uint32_t index, struct column_value *ret_values)
{
    const struct measure_row *row = owner;
    const struct measure_row_runner *runner = &row->runner[index];
    RUNNERS(COLUMN_FIND)
}

static const struct column_table runners_table = {runners, RUNNERS_TOTAL, {0}, find_runner};

static void add_algorithm(const char *algorithm, const char *protocol, bool has_protocol,
                          struct strbuf *text)
{
    strbuf_add(text, "%s%s%s", algorithm, has_protocol ? "/" : "", has_protocol ? protocol : "");
}

void collective_write_algorithm(const struct measure_row *row, struct strbuf *text)
{
    add_algorithm(row->algorithm, protocol_name(row->protocol), row->protocol != PROTOCOL_NONE,
                  text);
}

void collective_write_runners(const struct measure_row *row, struct strbuf *text)
{
    enum { SHOWN_MAX = 2 };
    struct column_value values[RUNNERS_TOTAL];
    if (row->tuner_line > 0) strbuf_add(text, " (tuner, line %u)", row->tuner_line);
    if (row->runner_count == 0) return;
    strbuf_add(text, " (est. %s", columns[ESTIMATE].look(REAL(row->estimate_s)).text);
    for (uint32_t i = 0; i < row->runner_count && i < SHOWN_MAX; i++) {
        find_runner(row, i, values);
        strbuf_add(text, i == 0 ? "; then " : ", ");
        add_algorithm(CELL(runners, values, RUNNER), CELL(runners, values, RUNNER_PROTOCOL),
                      row->runner[i].protocol != PROTOCOL_NONE, text);
        strbuf_add(text, " %s", CELL(runners, values, RUNNER_ESTIMATE));
        if (row->runner[i].time_ps > 0)
            strbuf_add(text, " simulated %s", CELL(runners, values, RUNNER_TIME));
    }
    strbuf_add(text, ")");
}

static void put_runners(struct json_writer *json, const struct measure_row *row)
{
    if (row->runner_count == 0) return;
    json_write_key(json, "runners_up");
    column_put_rows(&runners_table, row, row->runner_count, json);
}

void collective_put_row(const struct collective_study *study, const struct measure_row *row,
                        struct json_writer *json)
{
    struct column_value values[COLUMN_TOTAL];
    find(study, row, values);
    json_write_object(json);
    column_put(columns, values, OP, PROVED, json);
    collective_put_ragged(row, json);
    column_put(columns, values, ROOT, TUNER, json);
    put_runners(json, row);
    if (study->member_count > 1) column_put(columns, values, ALONE, SLOWDOWN, json);
    json_write_object_end(json);
}
