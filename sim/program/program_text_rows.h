/*
 * program_text_rows.h: the lines of a program's text and their keys, as tables that the writer and
 * the reader share. Internal to sim/program.
 */
#ifndef SIM_PROGRAM_PROGRAM_TEXT_ROWS_H
#define SIM_PROGRAM_PROGRAM_TEXT_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/program/program.h"

enum row_kind {
    ROW_UNSIGNED,
    ROW_SIGNED,
    ROW_TEXT,
    ROW_WORD,  /* The place of the word in its list. */
    ROW_WORDS, /* A bit for the place of each word, with commas between words. */
    ROW_AXIS,  /* An axis of the machine, by its name. */
};

/* A key of a line. */
struct text_row {
    const char *key;
    enum row_kind kind;
    uint8_t size;    /* Bytes of the member. */
    uint16_t offset; /* Offset of the member in its struct. */
    bool needed;
    uint64_t least, most;     /* The range of numbers; signed ones are at most `most` either way. */
    const char *const *words; /* Ended by NULL. */
    const char *instead;      /* What is written where the member is `instead_value`; or NULL. */
    int64_t instead_value;
    bool (*means)(const void *line); /* Whether it means something in this line; NULL: always. */
};

/* What a line belongs to is the line before it that has one step less of indentation. */
enum text_line_kind {
    LINE_STEP,
    LINE_ROLES,
    LINE_STREAM,
    LINE_WORK,
    LINE_MATMUL,
    LINE_ATTENDED,
    LINE_PLAN,
    LINE_DIMENSION,
    LINE_RAGGED,
    LINE_HOST_COPY,
    LINE_TEMPLATE,
    LINE_COMPUTE, /* Ops, in the order of enum program_op_kind. */
    LINE_COLLECTIVE,
    LINE_COPY,
    LINE_SEND,
    LINE_RECEIVE,
    LINE_NEED,
    LINE_MEMORY,
    LINE_ROLE,
    LINE_RESIDENT,
    LINE_BLOCK,
    LINE_END,
    LINE_COUNT,
};

static inline bool line_is_op(enum text_line_kind kind)
{
    return kind >= LINE_COMPUTE && kind <= LINE_RECEIVE;
}

struct text_line {
    const char *word;
    enum text_line_kind parent; /* LINE_COUNT: none. LINE_COMPUTE: an op of any kind. */
    uint32_t most;              /* In a program; 0: as many as what it belongs to can have. */
    bool numbered;
    bool named; /* By a `const char *` at `name_offset`. */
    uint16_t name_offset;
    const struct text_row *rows;
    uint32_t row_count;
};

extern const struct text_line text_lines[LINE_COUNT];
extern const struct text_line text_page_line; /* The target of the line is a struct text_page. */

/* What lines are read into and written from that have no structure of their own in a program. */
struct text_plan {
    struct plan_request request;
    const char *algorithm; /* plan_request.algorithm */
    const char *runs;      /* plan.algorithm_name */
    uint32_t from_machine; /* Links are those of the machine; else all alike. */
};

enum text_links { TEXT_LINE, TEXT_RING, TEXT_SWITCHES };

struct text_dimension {
    uint32_t axis, size, stride;
    enum text_links links;
    int32_t offset;
    uint64_t exchange_bytes;
    enum collective_kind kind; /* The kind of the plan that the dimension is of. */
};

struct text_page {
    uint64_t last; /* The last step of the page; 0: the prefill. */
    uint64_t of;   /* The last step of all. */
};

struct text_resident {
    enum program_memory memory;
    uint64_t bytes;
};

#endif
