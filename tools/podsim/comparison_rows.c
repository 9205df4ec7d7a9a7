#include "tools/podsim/comparison_rows.h"

#include <string.h>

/* In quotation marks, where it has what separates cells. */
static void cell_add(struct text *text, const char *cell)
{
    if (strpbrk(cell, ",\"\n") == NULL) {
        text_add(text, "%s", cell);
        return;
    }
    text_add(text, "\"");
    for (; *cell != '\0'; cell++) text_add(text, *cell == '"' ? "\"\"" : "%c", *cell);
    text_add(text, "\"");
}

void comparison_rows_write(const struct comparison *comparison, struct text *text)
{
    text_add(text, "schedule,stages,chunks,microbatches,best,%s,refused\n",
             comparison->way->columns);
    for (uint32_t i = 0; i < comparison->done_count; i++) {
        const struct comparison_row *row = &comparison->row[comparison->order[i]];
        cell_add(text, row->name);
        text_add(text, ",%u,%u,%u,%s,", row->rank_count, row->chunk_count, row->microbatch_count,
                 row->best ? "true" : "false");
        if (row->refused.status == STATUS_OK) {
            comparison->way->write_cells(comparison, comparison->order[i], text);
            text_add(text, ",");
        } else {
            for (const char *c = comparison->way->columns; *c != '\0'; c++)
                if (*c == ',') text_add(text, ",");
            text_add(text, ",");
            cell_add(text, row->refused.message);
        }
        text_add(text, "\n");
    }
}
