#include "tools/podsim/bench/bench_pairs.h"

#include "sim/base/json.h"
#include "sim/base/strbuf.h"
#include "sim/report/column_table.h"
#include "tools/podsim/bench/bench_compare.h"

enum { LABEL = 25 };

#define HAS(value) WHERE(*row->refused == '\0', value)

#define TABLE(X)                                                                                   \
    X(NAME, "name", WORDS(row->name), SHOWN("", "step", -LABEL, column_words))                     \
    X(EVENTS, "events", WHOLE(row->events), HIDDEN)                                                \
    X(OTHER_EVENTS, "other_events", HAS(WHOLE(row->other_events)), HIDDEN)                         \
    X(RUNS, "runs", HAS(WHOLE(row->runs)), HIDDEN)                                                 \
    X(CPU, "cpu_s", HAS(REAL(row->cpu_s)), SHOWN("", "this", 9, column_seconds))                   \
    X(OTHER, "other_cpu_s", HAS(REAL(row->other_cpu_s)), SHOWN("", "other", 9, column_seconds))    \
    X(RATIO, "ratio", HAS(REAL(row->ratio)), SHOWN("", "ratio", 8, column_two_digits))             \
    X(LEAST, "ratio_least", HAS(REAL(row->ratio_least)), SHOWN("", "from", 7, column_two_digits))  \
    X(MOST, "ratio_most", HAS(REAL(row->ratio_most)), SHOWN("", "to", 7, column_two_digits))       \
    X(EVENT, NULL, HAS(REAL(1e9 * row->cpu_s / (double)row->events)),                              \
      SHOWN("", "ns/event", 10, column_two_digits))                                                \
    X(OTHER_EVENT, NULL, HAS(REAL(1e9 * row->other_cpu_s / (double)row->other_events)),            \
      SHOWN("", "other", 9, column_two_digits))                                                    \
    X(SAME, "same_digest", HAS(FLAG(row->same)), HIDDEN)                                           \
    X(REFUSED, "refused", OR_NULL(*row->refused != '\0', WORDS(row->refused)), HIDDEN)             \
    X(SHOWN_EVENTS, NULL, REAL(row->events), SHOWN("", "events", 9, column_scaled))

enum { TABLE(COLUMN_NAME) COLUMN_TOTAL };

static const struct column columns[] = {TABLE(COLUMN_ENTRY)};
static const uint8_t screen[] = {NAME,        SHOWN_EVENTS, CPU,   OTHER, EVENT,
                                 OTHER_EVENT, RATIO,        LEAST, MOST};

static void find(const void *owner, uint32_t index, struct column_value *ret_values)
{
    const struct bench_pairs *row = (const struct bench_pairs *)owner + index;
    TABLE(COLUMN_FIND)
}

static const struct column_table table = {columns, COLUMN_TOTAL, COLUMN_LINE(columns, screen),
                                          find};

void bench_pairs_print(const struct bench_comparing *comparing, const struct bench_pairs *rows,
                       uint32_t count, struct strbuf *text)
{
    strbuf_add(
        text, "CPU of this podsim and of %s, %u pair%s in turn; ratio: this by other, an event\n\n",
        comparing->other, comparing->pairs, comparing->pairs == 1 ? "" : "s");
    column_add_table(&table, rows, count, LABEL, text);
    for (uint32_t i = 0; i < count; i++) {
        if (*rows[i].refused != '\0')
            strbuf_add(text, "- the other has no result of %s: %s\n", rows[i].name,
                       rows[i].refused);
        else if (!rows[i].same)
            strbuf_add(text, "- the digests of %s differ: %llu events in place of %llu\n",
                       rows[i].name, (unsigned long long)rows[i].events,
                       (unsigned long long)rows[i].other_events);
    }
}

void bench_pairs_write_json(const struct bench_pairs *rows, uint32_t count,
                            struct json_writer *writer)
{
    json_write_key(writer, "pairs");
    column_put_rows(&table, rows, count, writer);
}
