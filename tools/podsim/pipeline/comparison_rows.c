#include "tools/podsim/pipeline/comparison_rows.h"

#include "sim/base/json.h"
#include "sim/report/column_table.h"

/* What every row says of itself. */
#define TABLE(X)                                                                                   \
    X(SCHEDULE, "schedule", WORDS(row->name), HIDDEN)                                              \
    X(STAGES, "stages", WHOLE(row->rank_count), HIDDEN)                                            \
    X(MICROBATCHES, "microbatches", WHOLE(row->microbatch_count),                                  \
      SHOWN("micro-", "batches", 23, column_count))                                                \
    X(CHUNKS, "chunks", WHOLE(row->chunk_count), SHOWN("", "chunks", 24, column_count))            \
    X(REFUSED, "refused", WHERE(!was_played, WORDS(row->reason)), HIDDEN)                          \
    X(COPIES, "copies", WHERE(was_played, WHOLE(row->schedule.copy_count)), HIDDEN)                \
    X(BEST, "best", FLAG(row->best), HIDDEN)                                                       \
    X(SEARCH, "search", FLAG(row->form != NULL && row->form->heeds_times), HIDDEN)

enum { TABLE(COLUMN_NAME) COLUMN_TOTAL };

static const struct column columns[] = {TABLE(COLUMN_ENTRY)};

static const uint8_t before[] = {SCHEDULE, STAGES, CHUNKS, MICROBATCHES, BEST};
static const uint8_t behind[] = {REFUSED};
static const uint8_t counts[] = {
    [COMPARISON_MICROBATCHES] = MICROBATCHES, [COMPARISON_CHUNKS] = CHUNKS};
const struct column_line comparison_cells = COLUMN_LINE(columns, before);
static const struct column_line behind_line = COLUMN_LINE(columns, behind);

static void find(const struct comparison_row *row, struct column_value *ret_values)
{
    bool const was_played = row->refused.status == STATUS_OK;
    TABLE(COLUMN_FIND)
}

#define HEAD(X)                                                                                    \
    X(PODSIM, "podsim", WHOLE(1), HIDDEN)                                                          \
    X(KIND, "kind", WORDS("pipeline"), HIDDEN)                                                     \
    X(COMPLETE, "complete",                                                                        \
      FLAG(comparison->done_count == comparison->row_count && comparison->failed_count == 0),      \
      HIDDEN)

enum { HEAD(COLUMN_NAME) HEAD_TOTAL };

static const struct column head[] = {HEAD(COLUMN_ENTRY)};

static void find_head(const struct comparison *comparison, struct column_value *ret_values)
{
    HEAD(COLUMN_FIND)
}

void comparison_write_json(const struct comparison *comparison, struct strbuf *text)
{
    struct column_value head_values[HEAD_TOTAL];
    struct json_writer json;
    json_write_start(&json, text);
    json_write_object(&json);
    find_head(comparison, head_values);
    column_put(head, head_values, PODSIM, KIND, &json);
    comparison->way->put_head(comparison, &json);
    column_put(head, head_values, COMPLETE, COMPLETE, &json);
    json_put_array(&json, "rows");
    for (uint32_t i = 0; i < comparison->done_count; i++) {
        struct column_value values[COLUMN_TOTAL];
        find(&comparison->row[comparison->order[i]], values);
        json_write_object(&json);
        column_put(columns, values, 0, COLUMN_TOTAL - 1, &json);
        if (values[REFUSED].kind == COLUMN_NONE)
            comparison->way->put_row(comparison, comparison->order[i], &json);
        json_write_object_end(&json);
    }
    json_write_array_end(&json);
    json_write_object_end(&json);
}

void comparison_write_csv(const struct comparison *comparison, struct strbuf *text)
{
    const struct comparison_way *way = comparison->way;
    column_add_keys(&comparison_cells, text);
    strbuf_add(text, ",");
    column_add_keys(way->cells, text);
    strbuf_add(text, ",");
    column_add_keys(&behind_line, text);
    strbuf_add(text, "\n");
    for (uint32_t i = 0; i < comparison->done_count; i++) {
        struct column_value own[COLUMN_TOTAL], values[COLUMNS_MAX] = {0};
        find(&comparison->row[comparison->order[i]], own);
        if (own[REFUSED].kind == COLUMN_NONE) way->find(comparison, comparison->order[i], values);
        column_add_cells(&comparison_cells, own, text);
        strbuf_add(text, ",");
        column_add_cells(way->cells, values, text);
        strbuf_add(text, ",");
        column_add_cells(&behind_line, own, text);
        strbuf_add(text, "\n");
    }
}

static struct table_figure count_text(const struct comparison_table *table,
                                      const struct comparison_row *row)
{
    struct column_value values[COLUMN_TOTAL];
    uint32_t const column = counts[table->count];
    find(row, values);
    return columns[column].look(values[column]);
}

struct comparison_table comparison_table(const struct comparison *comparison,
                                         enum comparison_count count,
                                         const struct column_line *line)
{
    struct comparison_table table = {comparison, count, line,
                                     (uint32_t)columns[counts[count]].width};
    for (uint32_t i = 0; i < comparison->done_count; i++) {
        const struct comparison_row *row = &comparison->row[i];
        uint32_t const width = table_columns(comparison_label(row).text) + 1 +
                               table_columns(count_text(&table, row).text);
        if (row->refused.status == STATUS_OK && width > table.columns) table.columns = width;
    }
    return table;
}

void comparison_add_headings(const struct comparison_table *table, uint32_t of, const char *label,
                             struct strbuf *text)
{
    strbuf_add(text, "%s", label);
    table_right(text, table->columns, columns[counts[table->count]].heading[of]);
    column_add_headings(table->line, of, table->columns, text);
    strbuf_add(text, "\n");
}

void comparison_add_row(const struct comparison_table *table, uint32_t row, bool colour,
                        struct strbuf *text)
{
    const struct comparison_row *of = &table->of->row[row];
    struct column_value values[COLUMNS_MAX];
    table->of->way->find(table->of, row, values);
    table_colour(text, colour && of->best, TABLE_GREEN);
    strbuf_add(text, "%s", comparison_label(of).text);
    table_colour(text, colour && of->best, TABLE_PLAIN);
    table_right(text, table->columns, count_text(table, of).text);
    column_add_figures(table->line, values, table->columns, colour, text);
    strbuf_add(text, "\n");
}
