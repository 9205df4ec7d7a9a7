#include "tools/podsim/bench/bench.h"

#include <stdio.h>
#include <time.h>

#include "sim/base/json.h"
#include "sim/base/strbuf.h"
#include "sim/report/column_table.h"

struct bench_row {
    const char *name;
    const char *title;
    const char *unit;
    bench_load_fn *load;
};

static const struct bench_row bench_rows[] = {
    {"hold", "random times, 24,576 pending: take one, post one", "holds", bench_hold_fast},
    {"hold-reference", "the same with the reference queue", "holds", bench_hold_reference},
    {"torus-lockstep", "16x16x16 rings in lockstep, every link", "transfers", bench_torus_lockstep},
    {"torus-routed", "16x16x16, chunks to random chips, 24,576 in flight", "transfers",
     bench_torus_routed},
    {"torus-unequal", "16x16x16 halo exchange, every compute time its own", "transfers",
     bench_torus_unequal},
};

enum { BENCH_ROW_COUNT = sizeof bench_rows / sizeof bench_rows[0] };
_Static_assert((unsigned)BENCH_ROW_COUNT <= (unsigned)BENCH_ROWS_MAX,
               "the result has a place for every row");

double bench_clock_s(void)
{
    struct timespec now;
    SIM_ASSERT(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

enum status bench_run(const struct bench_options *options, struct bench *ret_bench,
                      struct error *reterr)
{
    SIM_ASSERT(options->repeats >= 1 && options->shrink >= 1);
    struct bench bench = {.row_count = BENCH_ROW_COUNT};
    for (uint32_t i = 0; i < BENCH_ROW_COUNT; i++) {
        const struct bench_row *row = &bench_rows[i];
        struct bench_sample best = {0};
        for (uint32_t j = 0; j < options->repeats; j++) {
            struct bench_sample sample = {0};
            STATUS_TRY(row->load(options->shrink, &sample, reterr));
            SIM_ASSERT(j == 0 || sample.digest == best.digest);
            if (j == 0 || sample.wall_s < best.wall_s) best = sample;
        }
        bench.rows[i] = (struct bench_result){row->name, row->title, row->unit, best};
    }
    *ret_bench = bench;
    return STATUS_OK;
}

/* A load too short for the clock has no rate. */
static double per(double amount, double by)
{
    return by > 0 ? amount / by : 0;
}

static struct table_figure digits(struct column_value value, int decimals, double unit)
{
    struct table_figure figure;
    (void)snprintf(figure.text, sizeof figure.text, "%.*f", decimals, value.real * unit);
    return figure;
}

static struct table_figure millions(struct column_value value)
{
    return digits(value, 2, 1e-6);
}

static struct table_figure hundredths(struct column_value value)
{
    return digits(value, 2, 1);
}

static struct table_figure tenths(struct column_value value)
{
    return digits(value, 1, 1);
}

static struct table_figure whole(struct column_value value)
{
    return digits(value, 0, 1);
}

enum { LABEL = 18 };

#define TABLE(X)                                                                                   \
    X(NAME, "name", WORDS(row->name), SHOWN("", "load", -LABEL, column_words))                     \
    X(TITLE, "title", WORDS(row->title), HIDDEN)                                                   \
    X(UNIT, "unit", WORDS(row->unit), HIDDEN)                                                      \
    X(RATE, "per_s", REAL(per((double)best->count, best->wall_s)),                                 \
      SHOWN("", "million/s", 11, millions))                                                        \
    X(EVENT, "event_ns", REAL(per(1e9 * best->wall_s, (double)best->event_count)),                 \
      SHOWN("", "ns/event", 11, hundredths))                                                       \
    X(WALL, "wall_s", REAL(best->wall_s), HIDDEN)                                                  \
    X(COUNT, "count", WHOLE(best->count), HIDDEN)                                                  \
    X(EVENTS, "events", WHOLE(best->event_count), HIDDEN)                                          \
    X(ENTRIES, "entries", WHOLE(best->entry_count), HIDDEN)                                        \
    X(CHIPS, "chips", WHOLE(best->chip_count), HIDDEN)                                             \
    X(RESERVED, "reserved_bytes", WHOLE(best->reserved_bytes), HIDDEN)                             \
    X(MILLIONS, NULL, REAL(best->event_count), SHOWN("", "million events", 16, millions))          \
    X(PER_ENTRY, NULL, REAL(per((double)best->event_count, (double)best->entry_count)),            \
      SHOWN("", "events/entry", 14, tenths))                                                       \
    X(PER_CHIP, NULL,                                                                              \
      WHERE(best->chip_count > 0,                                                                  \
            REAL(per((double)best->reserved_bytes, (double)best->chip_count))),                    \
      SHOWN("", "reserved B/chip", 17, whole))

enum { TABLE(COLUMN_NAME) COLUMN_TOTAL };

static const struct column columns[] = {TABLE(COLUMN_ENTRY)};
static const uint8_t screen[] = {NAME, RATE, EVENT, MILLIONS, PER_ENTRY, PER_CHIP};

static void find(const void *owner, uint32_t index, struct column_value *ret_values)
{
    const struct bench *bench = owner;
    const struct bench_result *row = &bench->rows[index];
    const struct bench_sample *best = &row->best;
    TABLE(COLUMN_FIND)
}

static const struct column_table table = {columns, COLUMN_TOTAL, COLUMN_LINE(columns, screen),
                                          find};

void bench_print(const struct bench *bench, struct strbuf *text)
{
    column_add_table(&table, bench, bench->row_count, LABEL, text);
    strbuf_add(text, "\n");
    for (uint32_t i = 0; i < bench->row_count; i++)
        strbuf_add(text, "%-*s %s; counts %s\n", LABEL, bench->rows[i].name, bench->rows[i].title,
                   bench->rows[i].unit);
}

void bench_write_json(const struct bench *bench, struct json_writer *writer)
{
    column_put_rows(&table, bench, bench->row_count, writer);
}
