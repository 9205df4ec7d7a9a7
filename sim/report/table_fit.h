/*
 * table_fit.h: text on a terminal of text.columns columns. 0 is a file or a pipe:
 * tables keep their full width, and sentences are wrapped at TABLE_COLUMNS.
 */
#ifndef SIM_REPORT_TABLE_FIT_H
#define SIM_REPORT_TABLE_FIT_H

#include <stdint.h>

#include "sim/base/strbuf.h"

/* Where a table begins in the text: for table_close(). */
static inline uint64_t table_open(const struct strbuf *text)
{
    return text->size_bytes;
}

/* Behind the last line of a table. One that is too wide loses blanks between its columns, up to the
 * last one if that is enough; else it comes in parts, each with the first `label_columns` columns
 * of its lines. */
void table_close(struct strbuf *text, uint64_t begin, uint32_t label_columns);

/* Before a line between the rows of a table that is a sentence, not columns: it does not widen the
 * table, and stands whole in the first part. */
void table_sentence(struct strbuf *text);

/* Breaks what is still too wide at its blanks. Further lines stand below the last column of the
 * left half; those of a comment ("#") are comments too. */
void table_break(struct strbuf *text);

#endif
