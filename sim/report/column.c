#include "sim/report/column.h"

#include <stdio.h>
#include <string.h>

#include "sim/base/guard.h"
#include "sim/base/json.h"
#include "sim/base/quantity.h"
#include "sim/base/strbuf.h"
#include "sim/report/table_fit.h"

static double number(struct column_value value)
{
    return value.kind == COLUMN_WHOLE ? (double)value.whole : value.real;
}

struct table_figure column_seconds(struct column_value value)
{
    return table_seconds(number(value));
}

struct table_figure column_bytes(struct column_value value)
{
    return table_bytes(number(value));
}

struct table_figure column_rate(struct column_value value)
{
    return table_rate(number(value));
}

struct table_figure column_instant(struct column_value value)
{
    return table_instant(number(value));
}

struct table_figure column_duration(struct column_value value)
{
    return table_duration((int64_t)value.whole);
}

struct table_figure column_rounded(struct column_value value)
{
    return table_count((uint64_t)(value.real + 0.5));
}

struct table_figure column_whole(struct column_value value)
{
    struct table_figure figure;
    (void)snprintf(figure.text, sizeof figure.text, "%.0f", value.real);
    return figure;
}

struct table_figure column_two_digits(struct column_value value)
{
    struct table_figure figure;
    (void)snprintf(figure.text, sizeof figure.text, "%.2f", value.real);
    return figure;
}

struct table_figure column_words(struct column_value value)
{
    struct table_figure figure;
    (void)snprintf(figure.text, sizeof figure.text, "%s", value.words != NULL ? value.words : "");
    return figure;
}

struct table_figure column_share(struct column_value value)
{
    return table_percent(number(value), 1);
}

struct table_figure column_percent(struct column_value value)
{
    struct table_figure figure;
    (void)snprintf(figure.text, sizeof figure.text, "%.1f%%", number(value));
    return figure;
}

struct table_figure column_count(struct column_value value)
{
    return table_count(value.whole);
}

struct table_figure column_scaled(struct column_value value)
{
    struct table_figure figure;
    (void)quantity_text_count(figure.text, value.real);
    return figure;
}

struct table_figure column_plain(struct column_value value)
{
    struct table_figure figure;
    (void)snprintf(figure.text, sizeof figure.text, "%llu", (unsigned long long)value.whole);
    return figure;
}

static void value_write(struct column_value value, struct json_writer *json)
{
    switch (value.kind) {
    case COLUMN_WORDS:
    case COLUMN_LIST:
        if (value.words == NULL)
            json_write_null(json);
        else
            json_write_string(json, value.words);
        break;
    case COLUMN_WHOLE:
        json_write_unsigned(json, value.whole);
        break;
    case COLUMN_REAL:
        json_write_real(json, value.real);
        break;
    case COLUMN_FLAG:
        json_write_boolean(json, value.flag);
        break;
    case COLUMN_NULL:
    case COLUMN_NONE:
        json_write_null(json);
        break;
    }
}

void column_put(const struct column *columns, const struct column_value *values, uint32_t first,
                uint32_t last, struct json_writer *json)
{
    for (uint32_t c = first; c <= last; c++) {
        if (columns[c].key == NULL || values[c].kind == COLUMN_NONE) continue;
        json_write_key(json, columns[c].key);
        value_write(values[c], json);
    }
}

void column_put_array(const struct column *columns, uint32_t column, column_find_fn *find,
                      const void *owner, uint32_t row_count, struct json_writer *json)
{
    struct column_value values[COLUMNS_MAX];
    json_put_array(json, columns[column].key);
    for (uint32_t row = 0; row < row_count; row++) {
        find(owner, row, values);
        value_write(values[column], json);
    }
    json_write_array_end(json);
}

void column_put_arrays(const struct column *columns, uint32_t count, column_find_fn *find,
                       const void *owner, uint32_t row_count, struct json_writer *json)
{
    SIM_ASSERT(count <= COLUMNS_MAX);
    for (uint32_t c = 0; c < count; c++) column_put_array(columns, c, find, owner, row_count, json);
}

static uint32_t column_at(const struct column_line *line, uint32_t place)
{
    return line->order == NULL ? place : line->order[place];
}

void column_add_keys(const struct column_line *line, struct strbuf *text)
{
    for (uint32_t i = 0; i < line->count; i++) {
        const struct column *column = &line->columns[column_at(line, i)];
        strbuf_add(text, "%s%s", i == 0 ? "" : ",", column->key);
        if (column->unit != NULL) strbuf_add(text, "_%s", column->unit);
    }
}

static void quoted_add(const char *words, struct strbuf *text)
{
    strbuf_add(text, "\"");
    for (; *words != '\0'; words++) strbuf_add(text, *words == '"' ? "\"\"" : "%c", *words);
    strbuf_add(text, "\"");
}

void column_add_cells(const struct column_line *line, const struct column_value *values,
                      struct strbuf *text)
{
    for (uint32_t i = 0; i < line->count; i++) {
        struct column_value const value = values[column_at(line, i)];
        bool const is_text = value.kind == COLUMN_WORDS || value.kind == COLUMN_LIST;
        if (i > 0) strbuf_add(text, ",");
        if (is_text && value.words == NULL) continue; /* An empty cell, as of COLUMN_NULL. */
        if (value.kind == COLUMN_LIST ||
            (value.kind == COLUMN_WORDS && strpbrk(value.words, ",\"\n") != NULL))
            quoted_add(value.words, text);
        else if (value.kind == COLUMN_WORDS)
            strbuf_add(text, "%s", value.words);
        else if (value.kind == COLUMN_WHOLE)
            strbuf_add(text, "%llu", (unsigned long long)value.whole);
        else if (value.kind == COLUMN_REAL)
            strbuf_add(text, "%.9g", value.real);
        else if (value.kind == COLUMN_FLAG)
            strbuf_add(text, "%s", value.flag ? "true" : "false");
    }
}

/* Returns where the place ends. */
static uint32_t place_add(const struct column *column, uint32_t at, const char *cell,
                          struct strbuf *text)
{
    bool const is_left = column->width < 0;
    uint32_t const end = at + (uint32_t)(is_left ? -column->width : column->width);
    if (*cell == '\0') return end;
    if (!is_left) {
        table_right(text, end, cell);
        return end;
    }
    if (at > 0 || strbuf_column(text) > 0) strbuf_pad(text, at + 1);
    strbuf_add(text, "%s", cell);
    return end;
}

void column_add_headings(const struct column_line *line, uint32_t of, uint32_t at,
                         struct strbuf *text)
{
    for (uint32_t i = 0; i < line->count; i++) {
        const struct column *column = &line->columns[column_at(line, i)];
        at = place_add(column, at, column->heading[of], text);
    }
}

/* Words are whole, however long they are. */
const char *column_cell(const struct column *column, struct column_value value,
                        struct table_figure *room)
{
    if (value.kind == COLUMN_NULL) return "-";
    if (value.kind == COLUMN_NONE) return column->none == NULL ? "" : column->none;
    if (value.said != NULL) return value.said;
    if (value.kind == COLUMN_WORDS || value.kind == COLUMN_LIST)
        return value.words == NULL ? "" : value.words;
    *room = column->look(value);
    return room->text;
}

void column_add_figures(const struct column_line *line, const struct column_value *values,
                        uint32_t at, bool colour, struct strbuf *text)
{
    for (uint32_t i = 0; i < line->count; i++) {
        const struct column *column = &line->columns[column_at(line, i)];
        struct column_value const value = values[column_at(line, i)];
        struct table_figure figure;
        char marked[TABLE_FIGURE_BYTES + 1];
        const char *cell = column_cell(column, value, &figure);
        if (value.is_too_much) {
            (void)snprintf(marked, sizeof marked, "%s!", figure.text);
            cell = marked;
        }
        table_colour(text, colour && value.is_too_much, TABLE_RED);
        at = place_add(column, at, cell, text);
        table_colour(text, colour && value.is_too_much, TABLE_PLAIN);
    }
}

void column_add_heading_line(const struct column_line *line, struct strbuf *text)
{
    column_add_headings(line, 1, 0, text);
    strbuf_add(text, "\n");
}

void column_add_figure_line(const struct column_line *line, const struct column_value *values,
                            struct strbuf *text)
{
    column_add_figures(line, values, 0, false, text);
    strbuf_add(text, "\n");
}

void column_put_row(const struct column_table *table, const void *owner, uint32_t row,
                    struct json_writer *json)
{
    struct column_value values[COLUMNS_MAX];
    table->find(owner, row, values);
    column_put(table->columns, values, 0, table->count - 1, json);
}

void column_put_rows(const struct column_table *table, const void *owner, uint32_t count,
                     struct json_writer *json)
{
    json_write_array(json);
    for (uint32_t i = 0; i < count; i++) {
        json_write_object(json);
        column_put_row(table, owner, i, json);
        json_write_object_end(json);
    }
    json_write_array_end(json);
}

void column_add_row(const struct column_table *table, const void *owner, uint32_t row, uint32_t at,
                    struct strbuf *text)
{
    struct column_value values[COLUMNS_MAX];
    table->find(owner, row, values);
    column_add_figures(&table->screen, values, at, false, text);
}

void column_add_table(const struct column_table *table, const void *owner, uint32_t count,
                      uint32_t label_columns, struct strbuf *text)
{
    uint64_t const begin = table_open(text);
    column_add_heading_line(&table->screen, text);
    for (uint32_t i = 0; i < count; i++) {
        column_add_row(table, owner, i, 0, text);
        strbuf_add(text, "\n");
    }
    table_close(text, begin, label_columns);
}
