/* row_read.h: a line of a file of rows, and the row that it is. */
#ifndef TOOLS_PODSIM_CALIBRATE_ROW_READ_H
#define TOOLS_PODSIM_CALIBRATE_ROW_READ_H

#include "tools/podsim/calibrate/rows.h"

enum { LINE_FIELDS_MAX = 16, LINE_BYTES_MAX = 1000 };

/* A line, cut into words. */
struct line {
    const char *path;
    uint32_t number;
    char text[LINE_BYTES_MAX + 1];
    const char *word;
    const char *rest; /* What follows the word, for lines of text. */
    struct field {
        const char *key, *value;
        bool is_taken;
    } field[LINE_FIELDS_MAX];
    uint32_t field_count;
    uint32_t texts_seen;  /* Texts of the program: a bit for each word. */
    uint32_t rows_before; /* Rows of other programs. */
    uint32_t first;       /* First line of the program. */
};

/* Words of rows, in the order of messages; ROW_WORDS: none of them. */
enum row_word {
    WORD_MATMUL,
    WORD_ATTENTION,
    WORD_BACKWARD,
    WORD_BETWEEN,
    WORD_LAUNCH,
    WORD_COLLECTIVE,
    WORD_OVERLAP,
    ROW_WORDS,
};

/* Refuses the line, with its place. */
enum status line_refuse(const struct line *line, enum status status, struct error *reterr,
                        const char *format, ...) __attribute__((format(printf, 4, 5)));

/* The row of a line that begins with a word of rows. */
enum status row_read(struct line *line, enum row_word word, struct row *ret_row,
                     struct error *reterr);

#endif
