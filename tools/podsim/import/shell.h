/*
 * shell.h: what the reader of shell scripts has in its parts: a cursor on the text, variables,
 * words. Each byte of a word carries the line that it was written in, through any expansion.
 */
#ifndef TOOLS_PODSIM_IMPORT_SHELL_H
#define TOOLS_PODSIM_IMPORT_SHELL_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/podsim/import/settings.h"

enum {
    SHELL_BYTES_MAX = 1 << 22, /* Of all words that a script makes. */
    SHELL_VARIABLES_MAX = 1024,
    SHELL_WORDS_MAX = 8192, /* Of one command or array. */
};

struct shell_word {
    const char *text; /* Ended by a 0. */
    const uint32_t *line;
    uint32_t length;
};

struct shell_words {
    struct shell_word *word;
    uint32_t count, capacity;
};

struct shell_variable {
    const char *name;
    bool is_array;
    struct shell_words words; /* Of a text: one. */
};

struct shell {
    struct import_file *file;
    const char *at, *end;
    uint32_t line;
    uint32_t depth;
    uint64_t bytes;      /* Of all words so far. */
    bool unset_is_empty; /* In conditions; elsewhere "$NAME" stays as it is written. */
    uint32_t skipping;   /* Above 0: nothing is run. */
    uint32_t lost;       /* Arguments and assignments that were skipped. */
    bool ran_program;    /* A command that is no test, whose end nothing says. */
    uint32_t assumed;    /* Variables in conditions that nothing assigns, taken as empty. */
    struct shell_variable variable[SHELL_VARIABLES_MAX];
    uint32_t variable_count;
    struct shell_words command; /* That runs a Python program, or is made of arguments. */
    bool are_arguments;         /* Its lines are arguments, without a program. */
    uint32_t commands;          /* Of that kind. */
    const char *ending; /* Of a text that follows the line, "EOF" of <<EOF; NULL: none does. */
};

/* shell_word.c */

struct shell_buffer {
    char *text;
    uint32_t *line;
    uint32_t length, capacity;
    bool is_word; /* It has something, or quotes around nothing. */
};

enum status shell_push(struct shell *shell, struct shell_buffer *buffer, char c, uint32_t line,
                       struct error *reterr);
/* Ends a word, if one was begun. */
enum status shell_word_end(struct shell *shell, struct shell_buffer *buffer,
                           struct shell_words *words, struct error *reterr);
enum status shell_words_add(struct shell *shell, struct shell_words *words,
                            const struct shell_word *word, struct error *reterr);
/* One text of all words, with a blank between. */
enum status shell_join(struct shell *shell, struct shell_words *words, struct error *reterr);
/* Blanks, and line ends after a backslash. */
void shell_skip_blanks(struct shell *shell);
/* A word at the cursor, expanded; it may become none or several. */
enum status shell_read_word(struct shell *shell, struct shell_words *words, struct error *reterr);
/* Refuses what is open at the end of the text. */
enum status shell_refuse_end(struct shell *shell, uint32_t line, const char *what,
                             struct error *reterr);

/* shell_expand.c */

/* At a "$" or a "`": what it stands for, into the word. */
enum status shell_expand(struct shell *shell, struct shell_buffer *buffer,
                         struct shell_words *words, bool is_quoted, struct error *reterr);
const struct shell_variable *shell_variable_find(const struct shell *shell, const char *name);
/* A variable's new value. `is_more` is +=. */
enum status shell_assign(struct shell *shell, const char *name, bool is_array, bool is_more,
                         const struct shell_words *words, struct error *reterr);

/* shell_command.c */

/* Lists a command, or a part of one, as not expressed. */
enum status shell_say(struct shell *shell, const char *text, const char *value, uint32_t line,
                      const char *because, struct error *reterr);
/* Keeps a command if its arguments are wanted: if it says how many layers there are, or is the only
 * one that runs a Python program. Lines of arguments alone are one command. */
enum status shell_keep(struct shell *shell, const struct shell_words *words, struct error *reterr);
/* Where nothing is run: a command in a variable, else all variables that are made of arguments. */
enum status shell_keep_variables(struct shell *shell, struct error *reterr);
/* "--key", what follows it up to the next, and "--key=value" of the command that was kept. */
enum status shell_to_settings(struct shell *shell, struct error *reterr);

/* shell_test.c */

enum shell_truth { SHELL_NO, SHELL_YES, SHELL_MAYBE };

/* Of the words of a condition without its brackets. */
enum shell_truth shell_test(const struct shell_words *words);
enum shell_truth shell_contrary(enum shell_truth of);
/* Of what stands in (( )): a number, or two that are compared. */
enum shell_truth shell_test_arithmetic(const struct shell *shell, const char *text);
/* A whole number of "8*(4+2)" with names of variables. False: it is none. */
bool shell_arithmetic(const struct shell *shell, const char *text, int64_t *ret_value);

#endif
