/*
 * column.h: figures of a row, each said once: as a member of JSON, a cell of CSV and a cell on the
 * screen. A verb has a table of columns, and for each row an array of values in the same order.
 */
#ifndef TOOLS_PODSIM_COLUMN_H
#define TOOLS_PODSIM_COLUMN_H

#include <stdbool.h>
#include <stdint.h>

struct json_writer;
struct text;

/* A list is words with commas, which CSV quotes. None: the row has no such figure. */
enum column_kind { COLUMN_NONE, COLUMN_WORDS, COLUMN_LIST, COLUMN_WHOLE, COLUMN_REAL, COLUMN_BOOL };

struct column_value {
    enum column_kind kind;
    union {
        const char *words;
        uint64_t whole;
        double real;
        bool boolean;
    };
};

#define COLUMN_OF_WORDS(text) ((struct column_value){COLUMN_WORDS, {.words = (text)}})
#define COLUMN_OF_LIST(text) ((struct column_value){COLUMN_LIST, {.words = (text)}})
#define COLUMN_OF_WHOLE(count) ((struct column_value){COLUMN_WHOLE, {.whole = (uint64_t)(count)}})
#define COLUMN_OF_REAL(figure) ((struct column_value){COLUMN_REAL, {.real = (figure)}})
#define COLUMN_OF_BOOL(is) ((struct column_value){COLUMN_BOOL, {.boolean = (is)}})
#define COLUMN_WHERE(has, value) ((has) ? (value) : (struct column_value){.kind = COLUMN_NONE})

struct column {
    const char *key;            /* Of JSON and CSV; NULL: the screen's alone. */
    const char *heading, *unit; /* On the screen; NULL: it is not there. */
    int width;                  /* On the screen: columns, negative: words begin at the left. */
};

/* The members that a row has, from column `first` to column `last`. */
void column_put(const struct column *columns, const struct column_value *values, uint32_t first,
                uint32_t last, struct json_writer *json);

/* A line of CSV: the keys of `count` columns in this order, and a row's cells. */
void column_write_keys(const struct column *columns, const uint8_t *order, uint32_t count,
                       struct text *text);
void column_write_cells(const struct column_value *values, const uint8_t *order, uint32_t count,
                        struct text *text);

#endif
