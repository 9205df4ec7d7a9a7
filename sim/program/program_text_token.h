/*
 * program_text_token.h: a line of a program's text as tokens, and its keys as members of a
 * structure. Internal to sim/program.
 */
#ifndef SIM_PROGRAM_PROGRAM_TEXT_TOKEN_H
#define SIM_PROGRAM_PROGRAM_TEXT_TOKEN_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/status.h"
#include "sim/machine/machine.h"
#include "sim/program/program_text_rows.h"

struct arena;

/* The line that is read. */
struct text_cursor {
    struct arena *arena;
    const struct machine *machine;
    const char *name; /* The name of the text. */
    uint32_t line;    /* From 1. */
    const char *begin, *at, *end;
    struct error *reterr;
};

/* Refuses what stands at `at`, with its line and column. */
enum status cursor_refuse(const struct text_cursor *cursor, enum status status, const char *at,
                          const char *format, ...) __attribute__((format(printf, 4, 5)));

/* The next line of the rest of a text, which then begins behind it; false at the text's end. */
bool cursor_line(struct text_cursor *cursor, const char **rest, const char *end);

/* Past blanks; whether something is left of the line. */
bool cursor_more(struct text_cursor *cursor);

/* The word at the cursor, up to a blank, "=" or the end. */
uint32_t cursor_word(const struct text_cursor *cursor);

/* Whether the word at the cursor is this one. */
bool cursor_says(const struct text_cursor *cursor, const char *word);

/* A number that must be the next one that is counted. */
enum status cursor_number(struct text_cursor *cursor, const char *what, uint32_t next);

/* Text in quotes, into the arena. */
enum status cursor_text(struct text_cursor *cursor, const char **ret_text);

/* All keys of the line, into `target`, which has what holds for keys that are left out. */
enum status cursor_rows(struct text_cursor *cursor, const struct text_line *line, void *target);

#endif
