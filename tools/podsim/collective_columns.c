/* The columns of `podsim collective`: on the screen those of nccl-tests, in CSV and in JSON. */
#include <stdio.h>

#include "sim/base/json.h"
#include "sim/base/text.h"
#include "tools/podsim/collective.h"
#include "tools/podsim/column.h"

enum { COUNT_WIDTH = 12, TIME_WIDTH = 7, US_PER_S = 1000000 };

static const double ps_per_us = 1e6;
static const double giga = 1e9;

/* A row a column: F(name, key, value), and of those on the screen S(the same, heading, unit, width,
 * what is shown). In the order of the JSON; width 0 is that of the largest count. */
#define COLUMN_TABLE(F, S)                                                                         \
    F(OP, "op", COLUMN_OF_WORDS(operation_name(question->operation)))                              \
    F(MACHINE, "machine", COLUMN_OF_WORDS(study->asked.machine_text))                              \
    F(PROFILE, "profile", COLUMN_OF_WORDS(study->asked.machine.chip.profile))                      \
    F(AXES, "axes", COLUMN_OF_LIST(question->axes))                                                \
    F(ALGORITHM, "algorithm", COLUMN_OF_WORDS(row->algorithm))                                     \
    F(PROTOCOL, "protocol", COLUMN_OF_WORDS(protocol_name(row->protocol)))                         \
    F(RANKS, "ranks", COLUMN_OF_WHOLE(group_rank_count(&question->group)))                         \
    S(SIZE, "size_bytes", COLUMN_OF_WHOLE(row->size_bytes), "size", "(B)", 0, value[SIZE])         \
    S(ARRAY, "array_bytes", COLUMN_OF_WHOLE(row->array_bytes), "array", "(B)", 0, value[ARRAY])    \
    S(COUNT, "count", COLUMN_OF_WHOLE(row->count), "count", "(elements)", 0, value[COUNT])         \
    S(TYPE, "dtype", COLUMN_OF_WORDS(format_name(question->format)), "type", "", 8,                \
      COLUMN_OF_WORDS(format_nccl_name(question->format)))                                         \
    S(PROVED, "proved", COLUMN_WHERE(study->checks, COLUMN_OF_BOOL(row->proved)), "#wrong", "", 6, \
      COLUMN_OF_WORDS(row->proved ? "0" : "N/A"))                                                  \
    S(ROOT, "root", COLUMN_WHERE(is_rooted, COLUMN_OF_WHOLE(question->root)), "root", "", 6,       \
      is_rooted ? value[ROOT] : COLUMN_OF_WORDS("-1"))                                             \
    S(REDOP, NULL, (struct column_value){.kind = COLUMN_NONE}, "redop", "", 6,                     \
      COLUMN_OF_WORDS(operation_adds(question->operation) ? "sum" : "none"))                       \
    F(SHIFT, "shift",                                                                              \
      COLUMN_WHERE(question->operation == OPERATION_SENDRECV,                                      \
                   COLUMN_OF_WHOLE(question->shift == 0 ? 1 : question->shift)))                   \
    S(TIME, "time_ps", COLUMN_OF_WHOLE(row->time_ps), "time", "(us)", TIME_WIDTH,                  \
      COLUMN_OF_REAL((double)row->time_ps / ps_per_us))                                            \
    S(ALGBW, "algbw_bytes_per_s", COLUMN_OF_REAL(row->algbw_bytes_per_s), "algbw", "(GB/s)", 6,    \
      COLUMN_OF_REAL(row->algbw_bytes_per_s / giga))                                               \
    S(BUSBW, "busbw_bytes_per_s", COLUMN_OF_REAL(row->busbw_bytes_per_s), "busbw", "(GB/s)", 6,    \
      COLUMN_OF_REAL(row->busbw_bytes_per_s / giga))                                               \
    S(ROOFLINE, "roofline_s", COLUMN_OF_REAL(row->roofline_s), "roofline", "(us)", 8,              \
      COLUMN_OF_REAL((double)US_PER_S * row->roofline_s))                                          \
    F(LATENCY, "latency_s", COLUMN_OF_REAL(row->latency_s))                                        \
    F(STRICT, "strict_s", COLUMN_OF_REAL(row->strict_s))                                           \
    S(BOUND, "bound_by", COLUMN_OF_WORDS(row->bound_by), "bound", "", -7, value[BOUND])            \
    F(WHERE, "bound_where", COLUMN_OF_WORDS(row->bound_where))                                     \
    F(ESTIMATE, "estimate_s", COLUMN_WHERE(row->estimate_s > 0, COLUMN_OF_REAL(row->estimate_s)))  \
    F(TUNER, "tuner_line", COLUMN_WHERE(row->tuner_line > 0, COLUMN_OF_WHOLE(row->tuner_line)))    \
    F(ALONE, "alone_ps", COLUMN_OF_WHOLE(row->alone_ps))                                           \
    S(SLOWDOWN, "slowdown", COLUMN_OF_REAL(row_slowdown(row)), "slower", "", 6, value[SLOWDOWN])

enum {
#define F(name, ...) name,
    COLUMN_TABLE(F, F)
#undef F
        COLUMN_COUNT,
};

static const struct column columns[COLUMN_COUNT] = {
#define F(name, key, value) [name] = {key, NULL, NULL, 0},
#define S(name, key, value, heading, unit, width, shown) [name] = {key, heading, unit, width},
    COLUMN_TABLE(F, S)
#undef F
#undef S
};

static const uint8_t csv[] = {OP,   AXES,  ALGORITHM, PROTOCOL, RANKS,    SIZE, ARRAY,
                              TIME, ALONE, ALGBW,     BUSBW,    ROOFLINE, BOUND};

/* Out of place and in place alike; the slowdown stands last, where there is any. */
static const uint8_t screen[] = {SIZE,   COUNT, TYPE,     REDOP, ROOT,    TIME,
                                 ALGBW,  BUSBW, PROVED,   TIME,  ALGBW,   BUSBW,
                                 PROVED, ARRAY, ROOFLINE, BOUND, SLOWDOWN};
enum { SCREEN = sizeof screen, UNITS = SCREEN - 2 };

struct figures {
    struct column_value value[COLUMN_COUNT], shown[COLUMN_COUNT];
};

static void figures_find(const struct collective_study *study, const struct row *row,
                         struct figures *ret)
{
    const struct row_question *question = row->question;
    struct column_value *value = ret->value;
    bool const is_rooted = operation_is_rooted(question->operation);
#define F(name, key, of) value[name] = of;
#define S(name, key, of, heading, unit, width, as)                                                 \
    value[name] = of;                                                                              \
    ret->shown[name] = as;
    COLUMN_TABLE(F, S)
#undef F
#undef S
}

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

/* As nccl-tests: as many decimals as the width leaves, at most two. */
static const char *figure(char buffer[32], int width, double value)
{
    int power = 0;
    for (double least = 1; value >= least; least *= 10) power++;
    int const decimals = power < width - 2 ? 2 : power < width - 1 ? 1 : 0;
    if (power < width + 1)
        (void)snprintf(buffer, 32, "%*.*f", width, decimals, value);
    else
        (void)snprintf(buffer, 32, "%*.*e", width, width >= TIME_WIDTH ? 1 : 0, value);
    return buffer;
}

static uint32_t screen_count(const struct collective_study *study)
{
    return study->member_count > 1 ? SCREEN : SCREEN - 1;
}

static void write_heads(const struct collective_study *study, bool units, struct text *text)
{
    uint32_t const count = units ? UNITS : screen_count(study);
    for (uint32_t i = 0; i < count; i++) {
        const struct column *column = &columns[screen[i]];
        int const width = column->width == 0 ? collective_count_width(study) : column->width;
        text_add(text, i == 0 ? "# %*s" : "  %*s", i == 0 ? width - 2 : width,
                 units ? column->unit : column->heading);
    }
}

void collective_write_columns(const struct collective_study *study, struct text *text)
{
    int const width = collective_count_width(study);
    text_add(text, "#\n# %*s%*s%s\n", 2 * width, "", 26, "",
             "           out-of-place                       in-place");
    write_heads(study, false, text);
    text_add(text, study->member_count > 1 ? "  algorithm, of\n" : "  algorithm\n");
    write_heads(study, true, text);
    text_add(text, "\n");
}

void collective_write_cells(const struct collective_study *study, const struct row *row,
                            struct text *text)
{
    struct figures figures;
    figures_find(study, row, &figures);
    for (uint32_t i = 0; i < screen_count(study); i++) {
        struct column_value const shown = figures.shown[screen[i]];
        int const own = columns[screen[i]].width;
        int const width = own == 0 ? collective_count_width(study) : own;
        char digits[32] = "";
        if (shown.kind == COLUMN_WHOLE)
            (void)snprintf(digits, sizeof digits, "%llu", (unsigned long long)shown.whole);
        else if (shown.kind == COLUMN_REAL)
            (void)figure(digits, width < TIME_WIDTH ? width : TIME_WIDTH, shown.real);
        text_add(text, "%s%*s", i == 0 ? "" : "  ", width,
                 shown.kind == COLUMN_WORDS ? shown.words : digits);
    }
}

void collective_write_csv(const struct collective_study *study, struct text *text)
{
    column_write_keys(columns, csv, sizeof csv, text);
    for (uint32_t i = 0; i < study->row_count; i++) {
        struct figures figures;
        figures_find(study, &study->rows[i], &figures);
        column_write_cells(figures.value, csv, sizeof csv, text);
    }
}

static void put_runners(struct json_writer *json, const struct row *row)
{
    if (row->runner_count == 0) return;
    json_put_array(json, "runners_up");
    for (uint32_t i = 0; i < row->runner_count; i++) {
        const struct row_runner *runner = &row->runner[i];
        json_write_object(json);
        json_put_string(json, "algorithm", runner->algorithm);
        json_put_string(json, "protocol", protocol_name(runner->protocol));
        json_put_real(json, "estimate_s", runner->estimate_s);
        if (runner->time_ps > 0) json_put_unsigned(json, "time_ps", (uint64_t)runner->time_ps);
        json_write_object_end(json);
    }
    json_write_array_end(json);
}

void collective_put_row(const struct collective_study *study, const struct row *row,
                        struct json_writer *json)
{
    struct figures figures;
    figures_find(study, row, &figures);
    json_write_object(json);
    column_put(columns, figures.value, OP, PROVED, json);
    collective_put_ragged(row, json);
    column_put(columns, figures.value, ROOT, TUNER, json);
    put_runners(json, row);
    if (study->member_count > 1) column_put(columns, figures.value, ALONE, SLOWDOWN, json);
    json_write_object_end(json);
}
