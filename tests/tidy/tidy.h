/*
 * tidy.h: the rules of the house that a compiler does not check. Each function looks at one file
 * and complains; main.c gives them the tree, test_tidy.c gives them canaries.
 */
#ifndef TESTS_TIDY_TIDY_H
#define TESTS_TIDY_TIDY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TIDY_COLUMNS_MAX = 100, TIDY_FUNCTION_LINES_MAX = 75, TIDY_FILE_LINES_MAX = 500 };
/* A struct of more fields is seen by no more files (tidy_wide.c). */
enum { TIDY_FIELDS_MAX = 25, TIDY_INCLUDERS_MAX = 5, TIDY_TABLE_DEPTH_MAX = 4 };

/* Complaints, a line each; "path:line: sentence". */
struct tidy {
    char *text; /* Grows; freed by tidy_free(). */
    size_t size;
    unsigned count;
};

struct tidy_file {
    const char *path; /* From the root: "sim/base/arena.c". */
    const char *text; /* Ended by a 0. */
    const char *code; /* C only: the same with comments and strings blanked, else NULL. */
};

void tidy_complain(struct tidy *tidy, const char *path, unsigned line, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void tidy_free(struct tidy *tidy);

bool tidy_ends_with(const char *text, const char *end);
/* Returns the length of the line at `text`, without its newline. */
size_t tidy_line_length(const char *text);

/* Whether a comment, a string or a character begins at a place, and where it ends. */
bool tidy_token_begins(const char *at);
const char *tidy_token_end(const char *at);
/* Comments and strings become blanks, newlines stay; the caller frees the result. */
char *tidy_blank(const char *text);

/* Whether a word goes on with the letter. */
bool tidy_is_word(char c);
/* Finds a whole word from `from` on; NULL if there is none. */
const char *tidy_word_find(const char *text, const char *from, const char *word);
/* The line of a place in the text, from 1 on. */
unsigned tidy_line_of(const char *text, const char *at);

/* The reason of the line that a list of excuses has for the file, or for its folder unless only
 * `by_name`: "path: reason". NULL: it has none. */
const char *tidy_excuse(const char *list, const char *path, bool by_name);
/* Whether tidy_excuse() finds a reason. */
bool tidy_is_excused(const char *list, const char *path, bool by_name);

/* Width, tabs, trailing blanks, final newline, length of files and functions. */
void tidy_check_layout(struct tidy *tidy, const struct tidy_file *file);

/* Calls and types that are not used here. `doubles` is the text of doubles.txt. */
void tidy_check_words(struct tidy *tidy, const struct tidy_file *file, const char *doubles);
/* Lines of doubles.txt that excuse a file which needs no excuse. */
void tidy_check_excuse(struct tidy *tidy, const struct tidy_file *file, const char *doubles);

/* Of sim/: names that are compared outside sim/base, also in a list of one name. `names` is the
 * text of names.txt. */
void tidy_check_names(struct tidy *tidy, const struct tidy_file *file, const char *names);

/* Of sim/: families of algorithms, where neither plans are made of them nor one is chosen. */
void tidy_check_families(struct tidy *tidy, const struct tidy_file *file);

/* Of sim/: a block or a kind of op that is told apart from others, where what its entry states says
 * it. */
void tidy_check_entries(struct tidy *tidy, const struct tidy_file *file);

/* Of sim/: names of algorithms that are read anywhere but where they come in. */
void tidy_check_readers(struct tidy *tidy, const struct tidy_file *file);

/* Of reports: members of JSON that are no rows of columns. */
void tidy_check_figures(struct tidy *tidy, const struct tidy_file *file);

/* Of sim/: a model's heads or vocabulary times a width. The graph has such products, the counts of
 * parameters, and the book's formulas. */
void tidy_check_products(struct tidy *tidy, const struct tidy_file *file);

/* Of headers: comments that run on from one field into the next, or lean on another. */
void tidy_check_comments(struct tidy *tidy, const struct tidy_file *file);

/* Of tests: two draws in the arguments of one call, or in one initializer. */
void tidy_check_draws(struct tidy *tidy, const struct tidy_file *file);

/* Includes against `layers`, the text of tools/layers.txt. */
void tidy_check_includes(struct tidy *tidy, const struct tidy_file *file, const char *layers);

/* The structs of each header, and which file includes which, for a rule that one file does not
 * show. */
struct tidy_headers {
    struct tidy_header {
        char *path;      /* Of a header, or of another file that includes one. */
        char *code;      /* Of a header, without comments and strings; else NULL. */
        unsigned fields; /* Of its widest struct. */
        unsigned line;   /* Of that struct. */
        bool sees;       /* Includes the header that is looked at, itself or by others. */
    } * header;
    size_t count;
    struct tidy_include {
        size_t by, of; /* Indexes of headers. */
    } * include;
    size_t includes;
};
/* Notes the structs of a header, and what the file includes. */
void tidy_note_header(struct tidy_headers *headers, const struct tidy_file *file);
/* Wide structs that many files see. */
void tidy_check_headers(struct tidy *tidy, struct tidy_headers *headers);
void tidy_headers_free(struct tidy_headers *headers);

/* Words, functions and mentions of all files, for rules that one file does not show. */
struct tidy_tree {
    struct tidy_word {
        char *text;
        char *declared_in; /* The header of a function; NULL: none. */
        unsigned line;     /* Of the declaration. */
        unsigned uses;     /* In product code. */
        unsigned own_uses; /* That declaration and definition take. */
        bool is_code;      /* Stands in code, of tests too. */
    } * word;
    size_t slots, words;
    struct tidy_mention {
        char *text; /* "name()", or the path of a file */
        char *path;
        unsigned line;
    } * mention;
    size_t mentions;
    char **path; /* Of every file. */
    size_t paths;
};
/* Notes the words of code, and what comments and pages mention. */
void tidy_note_tree(struct tidy_tree *tree, const struct tidy_file *file);
/* Functions that only tests call; mentioned functions and files that do not exist, but for those of
 * others in `foreign`, the text of foreign.txt. */
void tidy_check_tree(struct tidy *tidy, struct tidy_tree *tree, const char *foreign);
void tidy_tree_free(struct tidy_tree *tree);

/* A .def file: one entry a line, in order. */
void tidy_check_order(struct tidy *tidy, const struct tidy_file *def);
/* Whether a .def names the entry. */
bool tidy_def_has(const char *def, const char *name, size_t length);
/* An entry of a catalogue says where it comes from. */
void tidy_check_source(struct tidy *tidy, const struct tidy_file *entry);

#endif
