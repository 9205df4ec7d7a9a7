/*
 * shell.h: what the reader of shell scripts has in its parts: a cursor on the text, variables,
 * words. Each byte of a word carries the line that it was written in, through any expansion.
 */
#ifndef TOOLS_PODSIM_IMPORT_SHELL_H
#define TOOLS_PODSIM_IMPORT_SHELL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/podsim/import/settings.h"

enum {
    SHELL_BYTES_MAX = 1 << 22, /* Bytes of all words that a script makes. */
    SHELL_VARIABLES_MAX = 1024,
    SHELL_WORDS_MAX = 8192, /* Words of one command or array. */
};

/* In the line of a "$": the variable behind it was expanded, and podsim does not know its value. A
 * text that has it as it is written does not expand it again. */
#define SHELL_LEFT (UINT32_C(1) << 31)

/* What is said of a command, or of a part of one, that may change variables. */
#define SHELL_NOT_RUN                                                                              \
    "podsim does not run it; variables that it changes are given by --with NAME=VALUE"

#define SHELL_MAY_END "the script may end here; podsim reads on"

struct shell_word {
    const char *text; /* Ended by a 0. */
    const uint32_t *line;
    uint32_t length;
    bool is_open; /* A part stands as it is written, for what podsim does not know. */
};

struct shell_words {
    struct shell_word *word;
    uint32_t count, capacity;
};

struct shell_variable {
    const char *name;
    bool is_array;
    bool is_readonly;
    bool is_unknown;          /* The value, of a loop, is one that podsim does not know. */
    bool is_exported;         /* Commands, and so texts behind `bash -c`, have it. */
    bool is_used;             /* A word or a condition asked for the value. */
    uint32_t child;           /* `children` where it was assigned. */
    struct shell_words words; /* The words of an array; of a text one. */
};

/* What a variable was before an assignment. */
struct shell_undo {
    uint32_t variable;
    bool is_new;
    struct shell_variable before;
};

/* What has been read so far, and never becomes less. */
struct shell_tally {
    uint32_t lost;        /* Arguments and assignments that were skipped. */
    uint32_t assumed;     /* Variables in conditions that nothing assigns, taken as empty. */
    uint32_t guessed;     /* Assumed variables, and unassigned ones with a fallback. */
    uint32_t assigned;    /* Assignments. */
    uint32_t substituted; /* Commands within words. */
    uint32_t program;     /* The line of the first command with a program that was skipped. */
};

/* What is run of what is read. A subshell has its own. */
struct shell_run {
    uint32_t skipping;    /* Above 0: nothing is run. */
    uint32_t ended;       /* The line of an `exit` at which the script ends; 0: it goes on. */
    uint32_t lost_before; /* What `tally.lost` was where the script ended. */
    /* Conditions of `if`, within one another: a failure there ends no script. */
    uint32_t conditions;
    bool ends_at_failure; /* A failure ends the script, after `set -e`. */
    bool in_variables;    /* A variable is read whose use is not: its newlines may be blanks. */
    bool exports_all;     /* What is assigned is exported, after `set -a`. */
    bool is_exporting;    /* What the command under way assigns is exported. */
    uint32_t children;    /* Texts of `bash -c` within one another, in which a command stands. */
    const struct shell_word *source; /* A text that is read in the script's place; NULL: none is. */
    struct shell_words around;       /* Words in front of texts that are read: "srun", "bash". */
};

/* The end of a text that follows the line, "EOF" of <<EOF. */
struct shell_ending {
    const char *text; /* NULL: no text follows. */
    bool has_tabs;    /* The end may have tabs, of <<-EOF. */
};

struct shell {
    struct import_file *file;
    const char *at, *end;
    uint32_t line;
    uint32_t depth;
    uint64_t bytes;       /* Bytes of all words so far. */
    bool unset_is_empty;  /* In conditions; elsewhere "$NAME" stays as it is written. */
    bool is_whole;        /* In assignments and [[ ]]: blanks in a variable end no word. */
    bool is_declared;     /* In those of `declare` {a,b} stands for other words all the same. */
    const char *unclosed; /* In a word: what no bracket closes; nor does any behind it. */
    bool is_nothing;      /* The last "${NAME[@]}" had no elements. */
    struct shell_run run;
    uint32_t presuming; /* Above 0: what is run rests on a variable's being empty, or the like. */
    struct shell_tally tally;
    struct shell_variable variable[SHELL_VARIABLES_MAX];
    uint32_t variable_count;
    struct shell_undo *undo; /* Assignments of the command that is read, which may be undone. */
    uint32_t undo_count, undo_capacity;
    uint32_t commands_open; /* Commands within one another that are open. */
    /* The command that runs a Python program, or is made of arguments. */
    struct shell_words command;
    struct shell_words others; /* Programs of further commands without a model. */
    bool are_arguments;        /* The command's lines are arguments, without a program. */
    uint32_t commands;         /* Commands that run a Python program, or are made of arguments. */
    struct shell_ending ending;
};

/* How a command ends. SHELL_LIKELY: a program does, which is taken to succeed before "&&". */
enum shell_truth { SHELL_NO, SHELL_YES, SHELL_MAYBE, SHELL_LIKELY };

/* shell_word.c */

/* SHELL_LEFT if the byte of the text that is read has it, else 0. */
uint32_t shell_left(const struct shell *shell, const char *at);
/* The line that a word begins in. */
uint32_t shell_word_line(const struct shell_word *word);

struct shell_buffer {
    char *text;
    uint32_t *line;
    uint32_t length, capacity;
    bool is_word; /* The word has something, or quotes around nothing. */
    bool is_open; /* A part stands as it is written, as in a word. */
};

enum status shell_push(struct shell *shell, struct shell_buffer *buffer, char c, uint32_t line,
                       struct error *reterr);
/* Ends a word, if one was begun. */
enum status shell_word_end(struct shell *shell, struct shell_buffer *buffer,
                           struct shell_words *words, struct error *reterr);
/* `items`, with room for one more than `count` of `item_bytes` each; NULL: there is no memory. */
void *shell_room(struct shell *shell, void *items, uint32_t count, uint32_t *capacity,
                 size_t item_bytes, struct error *reterr);
enum status shell_words_add(struct shell *shell, struct shell_words *words,
                            const struct shell_word *word, struct error *reterr);
/* One text of all words, with a blank between. */
enum status shell_join(struct shell *shell, struct shell_words *words, struct error *reterr);
/* The line of the byte at the cursor, which a text has for each. */
void shell_line_find(struct shell *shell);
/* Blanks, and line ends after a backslash. */
void shell_skip_blanks(struct shell *shell);
/* A quoted text, an expansion or a character at the cursor, into the word. */
enum status shell_read_part(struct shell *shell, struct shell_buffer *buffer,
                            struct shell_words *words, struct error *reterr);
/* A backslash outside quotes, or before what it guards within. */
enum status shell_read_backslash(struct shell *shell, struct shell_buffer *buffer, bool is_quoted,
                                 struct error *reterr);
/* A word at the cursor, expanded; it may become none or several. */
enum status shell_read_word(struct shell *shell, struct shell_words *words, struct error *reterr);
/* The character so far behind the cursor; 0: the text ends before. */
char shell_peek(const struct shell *shell, uint32_t ahead);
/* A word of letters at the cursor, if it ends behind them. */
bool shell_is_at(const struct shell *shell, const char *word);
/* Line ends, comments and semicolons, but for ";;" and ";&". */
void shell_skip_lines(struct shell *shell);
/* Behind an opening bracket: the place of the one that closes it, past texts in quotes. NULL: it is
 * open at the end. */
const char *shell_closing(const struct shell *shell, const char *at, char open, char close);
/* The length of a command, "$(a | b)", that stands in a word as it is written; 0: none does there.
 */
uint32_t shell_literal(struct shell *shell, const struct shell_word *word, uint32_t at);
/* Refuses what is open at the end of the text. */
enum status shell_refuse_end(struct shell *shell, uint32_t line, const char *what,
                             struct error *reterr);

/* shell_expand.c */

/* At a "$" or a "`": what it stands for, into the word. */
enum status shell_expand(struct shell *shell, struct shell_buffer *buffer,
                         struct shell_words *words, bool is_quoted, struct error *reterr);

/* shell_variable.c */

/* NULL where the command under way does not have it, as where it is not exported to a text. */
const struct shell_variable *shell_variable_find(const struct shell *shell, const char *name);
/* Whether it has a value that the text under way does not have. */
bool shell_variable_is_hidden(const struct shell *shell, const char *name);
/* That its value was asked for. */
void shell_variable_use(struct shell *shell, const char *name);
/* `export NAME`. Nothing where there is no such variable. */
void shell_export(struct shell *shell, const char *name);
/* A variable's new value. `is_more` is +=. */
enum status shell_assign(struct shell *shell, const char *name, bool is_array, bool is_more,
                         const struct shell_words *words, struct error *reterr);

/* `readonly`: another assignment is refused. Nothing where there is no such variable. */
void shell_make_readonly(struct shell *shell, const char *name);
/* The variable has a value from here on that podsim does not know. */
enum status shell_forget(struct shell *shell, const char *name, struct error *reterr);
/* Variables as they were when `undo_count` was `mark`: what a subshell assigns ends with it. */
void shell_restore(struct shell *shell, uint32_t mark);

/* shell_simple.c */

/* A command without conditions: assignments, words, redirections. */
enum status shell_run_command(struct shell *shell, enum shell_truth *ret_truth,
                              struct error *reterr);
/* Words up to the end of a command. Within [[ ]] "&&" and "||" are words. */
enum status shell_read_command(struct shell *shell, struct shell_words *words,
                               struct error *reterr);
/* Redirections behind a compound command. */
enum status shell_read_redirections(struct shell *shell, struct error *reterr);

/* shell_compound.c */

/* A compound command or a function at the cursor. `ret_is_one` false: there is none. */
enum status shell_run_compound(struct shell *shell, bool *ret_is_one, enum shell_truth *ret_truth,
                               struct error *reterr);
/* Says that what stands under a condition was left out. `is_empty`: as a variable in it is. */
enum status shell_say_lost(struct shell *shell, uint32_t lost, uint32_t line, const char *start,
                           bool is_empty, struct error *reterr);

/* read_shell.c */

/* Where a list of commands ends. */
struct shell_list {
    const char *const *ends; /* Words of which one ends it; NULL: the end of the text does. */
    const char *opened;      /* The word that begins what they end, and its line. */
    uint32_t line;
};

/* Commands up to one of the words, at which the cursor stays. */
enum status shell_run_list(struct shell *shell, const struct shell_list *list,
                           enum shell_truth *ret_truth, struct error *reterr);
enum status shell_run_one(struct shell *shell, enum shell_truth *ret_truth, struct error *reterr);
/* Of two commands with "&&" or "||" between. */
enum shell_truth shell_truth_of_both(enum shell_truth first, enum shell_truth second, bool is_and);

/* shell_command.c */

/* Whether any word is a Python program, or a command that has one. */
bool shell_has_program(const struct shell_words *words);

/* Whether a word has a Python program, and more behind it. */
bool shell_holds_program(const struct shell_word *word);
/* Whether any word is a Python program. */
bool shell_runs_program(const struct shell_words *words);
/* Lists a command, or a part of one, as not expressed. */
enum status shell_say(struct shell *shell, const char *text, const char *value, uint32_t line,
                      const char *because, struct error *reterr);
/* Keeps a command if its arguments are wanted: if it says how many layers there are, or is the only
 * one that runs a Python program. Lines of arguments alone are one command. */
enum status shell_keep(struct shell *shell, const struct shell_words *words, struct error *reterr);
/* Where nothing is run: a command in a variable, else all variables that are made of arguments; of
 * these none where a command is left out, as it would be known in part. */
enum status shell_keep_variables(struct shell *shell, struct error *reterr);
/* "--key", what follows it up to the next, and "--key=value" of the command that was kept. */
enum status shell_to_settings(struct shell *shell, struct error *reterr);

/* shell_text.c */

/* What runs a text with commands. */
enum shell_text_kind {
    SHELL_TEXT_EVAL,      /* The shell itself, of all that stands behind `eval`. */
    SHELL_TEXT_VARIABLE,  /* Nothing that is known: a variable has it. */
    SHELL_TEXT_ARGUMENTS, /* `bash -c`: what stands behind the text are its arguments. */
    SHELL_TEXT_REMOTE, /* Another command, such as `ssh HOST`: what stands behind belongs to it. */
};

struct shell_text {
    uint32_t at; /* The index of the text among the words of the command. */
    enum shell_text_kind kind;
};

/* Whether a word is a text of commands: it is a variable's, follows `eval` or the "-c" of a shell,
 * or has arguments of a program. Python has texts of its own. */
bool shell_text_find(const struct shell *shell, const struct shell_words *words,
                     struct shell_text *ret_text);
/* After `shift` or `set` the arguments of the text under way are not known. */
enum status shell_arguments_forget(struct shell *shell, struct error *reterr);
/* Runs the commands of a text as those of the script. */
enum status shell_run_text(struct shell *shell, const struct shell_words *words,
                           const struct shell_text *text, struct error *reterr);

/* shell_test.c */

/* Of the words of a condition without its brackets. */
enum shell_truth shell_test(const struct shell_words *words);
enum shell_truth shell_contrary(enum shell_truth of);
/* Of what stands in (( )): a number, or two that are compared. */
enum shell_truth shell_test_arithmetic(const struct shell *shell, const char *text);
/* Whether what stands in (( )) may assign a variable. */
bool shell_arithmetic_changes(const char *text);
/* A whole number of "8*(4+2)" with names of variables. False: it is none. */
bool shell_arithmetic(const struct shell *shell, const char *text, int64_t *ret_value);

#endif
