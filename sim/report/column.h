/*
 * column.h: a figure of a row is said once. Its members of JSON, its cells of CSV and its figures
 * on a screen come from a table of columns; each row fills an array with a value a column.
 */
#ifndef SIM_REPORT_COLUMN_H
#define SIM_REPORT_COLUMN_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/report/table.h"

struct json_writer;
struct strbuf;

/* A list is words with commas, which CSV quotes. None: the row has no such figure, and its place is
 * empty. Null: JSON says that it has none, as of words that are NULL, and the screen "-". */
enum column_kind {
    COLUMN_NONE,
    COLUMN_NULL,
    COLUMN_WORDS,
    COLUMN_LIST,
    COLUMN_WHOLE,
    COLUMN_REAL,
    COLUMN_FLAG
};

struct column_value {
    enum column_kind kind;
    union {
        const char *words;
        uint64_t whole;
        double real;
        bool flag;
    };
    bool is_too_much; /* A screen says so, in red and with "!". */
    const char *said; /* On a screen, where JSON has a figure or a short word; NULL: the same. */
};

/* How a figure reads on a screen. */
typedef struct table_figure column_look(struct column_value value);
column_look column_seconds, column_bytes, column_rate, column_percent, column_count, column_words;
column_look column_instant, column_duration; /* An instant of seconds; a duration of picoseconds. */
column_look column_rounded;                  /* "4,194,304" of 4194303.7 */
column_look column_plain;                    /* "4194304" */
column_look column_whole;                    /* "4194304" of 4194303.7 */
column_look column_share;                    /* "12.3%" of 0.123 */
column_look column_scaled;                   /* "4.19 M" of 4194304 */
column_look column_two_digits;               /* "4.26" of 4.2634 */

struct column {
    const char *key;  /* The key of JSON and CSV; NULL: the column is the screen's alone. */
    const char *unit; /* What CSV adds to the key: "period_s". */
    /* The heading on the screen, in two lines or, of the second alone, one. */
    const char *heading[2];
    int width; /* The width on the screen; negative: text begins at the left, behind a blank. */
    column_look *look; /* NULL: the screen does not have it. */
    const char *none; /* What the screen shows of a row without the figure; NULL: an empty place. */
};

enum { COLUMNS_MAX = 48 };

/* What fills the values of a row. */
typedef void column_find_fn(const void *owner, uint32_t row, struct column_value *ret_values);

/* The members that a row has, from column `first` to column `last`. */
void column_put(const struct column *columns, const struct column_value *values, uint32_t first,
                uint32_t last, struct json_writer *json);

/* A column's array of all rows; of the first `count` columns an array each. */
void column_put_array(const struct column *columns, uint32_t column, column_find_fn *find,
                      const void *owner, uint32_t row_count, struct json_writer *json);
void column_put_arrays(const struct column *columns, uint32_t count, column_find_fn *find,
                       const void *owner, uint32_t row_count, struct json_writer *json);

/* Columns in the order of a line; of `order` NULL in their own. */
struct column_line {
    const struct column *columns;
    const uint8_t *order;
    uint32_t count;
};
#define COLUMN_ALL(columns)                                                                        \
    {                                                                                              \
        columns, NULL, sizeof(columns) / sizeof *(columns)                                         \
    }
#define COLUMN_LINE(columns, order)                                                                \
    {                                                                                              \
        columns, order, sizeof(order)                                                              \
    }

/* CSV: the keys, and a row's cells, each with a comma behind but the last. */
void column_add_keys(const struct column_line *line, struct strbuf *text);
void column_add_cells(const struct column_line *line, const struct column_value *values,
                      struct strbuf *text);

/* On a screen: one line of the headings, and a row's figures; the first has its width behind column
 * `at`. A left one that begins the line has no blank before it. */
void column_add_headings(const struct column_line *line, uint32_t of, uint32_t at,
                         struct strbuf *text);
void column_add_figures(const struct column_line *line, const struct column_value *values,
                        uint32_t at, bool colour, struct strbuf *text);

/* One figure, for a line of words; a row without it has an empty one. `room` is where it stands
 * unless it is words. CELL() of column_table.h calls it. */
const char *column_cell(const struct column *column, struct column_value value,
                        struct table_figure *room);

/* Lines of headings and of figures, each from the first column to the end of the line. */
void column_add_heading_line(const struct column_line *line, struct strbuf *text);
void column_add_figure_line(const struct column_line *line, const struct column_value *values,
                            struct strbuf *text);

/* Rows that the screen and the JSON share. */
struct column_table {
    const struct column *columns;
    uint32_t count;
    struct column_line screen;
    column_find_fn *find;
};

/* All members of a row, and its figures. */
void column_put_row(const struct column_table *table, const void *owner, uint32_t row,
                    struct json_writer *json);

/* An array of the first `count` rows, each an object. */
void column_put_rows(const struct column_table *table, const void *owner, uint32_t count,
                     struct json_writer *json);
/* The headings and the first `count` rows. A narrow terminal has the table in parts, each with the
 * first `label_columns` of its lines. */
void column_add_table(const struct column_table *table, const void *owner, uint32_t count,
                      uint32_t label_columns, struct strbuf *text);
void column_add_row(const struct column_table *table, const void *owner, uint32_t row, uint32_t at,
                    struct strbuf *text);

#endif
