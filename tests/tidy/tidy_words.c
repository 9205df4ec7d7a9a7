#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "tests/tidy/tidy.h"

/* What is not called here, and why. */
static const struct {
    const char *name;
    const char *reason;
} banned_calls[] = {
    {"strcpy", "it does not know the buffer's size"},
    {"strcat", "it does not know the buffer's size"},
    {"sprintf", "it does not know the buffer's size"},
    {"vsprintf", "it does not know the buffer's size"},
    {"gets", "it does not know the buffer's size"},
    {"atoi", "it cannot report an error"},
    {"atol", "it cannot report an error"},
    {"rand", "a run depends on its inputs only"},
    {"srand", "a run depends on its inputs only"},
    {"time", "a run depends on its inputs only"},
    {"qsort", "its order of equals is not defined"},
};

const char *tidy_word_find(const char *text, const char *from, const char *word)
{
    size_t const length = strlen(word);
    for (const char *at = from; (at = strstr(at, word)) != NULL; at += length)
        if ((at == text || !tidy_is_word(at[-1])) && !tidy_is_word(at[length])) return at;
    return NULL;
}

/* Words of this project that readers need not learn: in what is printed, and on pages. */
static const char *const private_words[] = {
    "played", "plays", "beside", "so many", "held against", "waits for what", "comes to lie"};

/* A private word, also at the beginning of a sentence. */
static const char *private_find(const char *text, const char *from, const char *word)
{
    char capital[32];
    (void)snprintf(capital, sizeof capital, "%c%s", toupper((unsigned char)word[0]), word + 1);
    const char *inside = tidy_word_find(text, from, word);
    const char *first = tidy_word_find(text, from, capital);
    return inside == NULL || (first != NULL && first < inside) ? first : inside;
}

/* The end of a comment, string or character that begins at `at`, or the next character. */
static const char *piece_end(const char *at)
{
    char const quote = *at;
    if (at[0] == '/' && at[1] == '*') {
        const char *end = strstr(at, "*/");
        return end == NULL ? at + strlen(at) : end + 2;
    }
    if (at[0] == '/' && at[1] == '/') return at + strcspn(at, "\n");
    if (quote != '"' && quote != '\'') return at + 1;
    for (at++; *at != quote && *at != '\0'; at++) at += at[0] == '\\' && at[1] != '\0';
    return *at == '\0' ? at : at + 1;
}

/* Whether a place of a source is in a string, but for lines of the preprocessor. */
static bool is_printed(const char *text, const char *place)
{
    for (const char *at = text, *end = at; *at != '\0'; at = end) {
        end = *at == '#' ? at + strcspn(at, "\n") : piece_end(at);
        if (place < end) return *at == '"';
    }
    return false;
}

static void check_private_words(struct tidy *tidy, const struct tidy_file *file)
{
    bool const is_page =
        strncmp(file->path, "docs/", 5) == 0 || strcmp(file->path, "README.md") == 0 ||
        strcmp(file->path, "ARCHITECTURE.md") == 0 || strcmp(file->path, "CONTRIBUTING.md") == 0;
    bool const is_source = file->code != NULL && strncmp(file->path, "tests/", 6) != 0;
    for (size_t i = 0; i < sizeof private_words / sizeof *private_words; i++)
        for (const char *at = file->text;
             (at = private_find(file->text, at, private_words[i])) != NULL; at++)
            if (is_page || (is_source && is_printed(file->text, at)))
                tidy_complain(tidy, file->path, tidy_line_of(file->text, at),
                              "\"%s\" is no word for users", private_words[i]);
}

/* A comment of a source that says "played" of what is simulated, or run. Names of fields are
 * quoted.
 */
static void check_played(struct tidy *tidy, const struct tidy_file *file)
{
    static const char word[] = "played";
    if (file->code == NULL || strncmp(file->path, "tests/", 6) == 0) return;
    for (const char *at = file->text; (at = private_find(file->text, at, word)) != NULL; at++) {
        bool const is_comment = file->code[at - file->text] == ' ' && !is_printed(file->text, at);
        if (is_comment && strchr("`\"", at[-1]) == NULL)
            tidy_complain(tidy, file->path, tidy_line_of(file->text, at),
                          "what is \"%s\" is simulated, or run", word);
    }
}

/* Pictures are drawn by sim/base/svg.c, which escapes words and writes numbers. */
static void check_elements(struct tidy *tidy, const struct tidy_file *file)
{
    static const char *const elements[] = {"svg",    "text",    "rect", "line", "path",
                                           "circle", "pattern", "g",    "style"};
    if (file->code == NULL || strncmp(file->path, "tests/", 6) == 0 ||
        strcmp(file->path, "sim/base/svg.c") == 0)
        return;
    for (size_t i = 0; i < sizeof elements / sizeof *elements; i++)
        for (const char *at = file->text;
             (at = tidy_word_find(file->text, at, elements[i])) != NULL; at++)
            if (at > file->text && at[-1] == '<' && is_printed(file->text, at))
                tidy_complain(tidy, file->path, tidy_line_of(file->text, at),
                              "<%s> is drawn by sim/base/svg.h", elements[i]);
}

void tidy_check_words(struct tidy *tidy, const struct tidy_file *file, const char *doubles)
{
    static const char *const reminders[] = {"TO"
                                            "DO",
                                            "FIX"
                                            "ME"};
    for (size_t i = 0; i < sizeof reminders / sizeof *reminders; i++)
        for (const char *at = file->text;
             (at = tidy_word_find(file->text, at, reminders[i])) != NULL; at++)
            tidy_complain(tidy, file->path, tidy_line_of(file->text, at), "%s: do it or leave it",
                          reminders[i]);
    check_private_words(tidy, file);
    check_played(tidy, file);
    check_elements(tidy, file);
    if (file->code == NULL) return;

    for (size_t i = 0; i < sizeof banned_calls / sizeof *banned_calls; i++) {
        const char *at = file->code;
        while ((at = tidy_word_find(file->code, at, banned_calls[i].name)) != NULL) {
            const char *found = at;
            at += strlen(banned_calls[i].name);
            if (*at == '(')
                tidy_complain(tidy, file->path, tidy_line_of(file->code, found),
                              "%s() is not used here: %s", banned_calls[i].name,
                              banned_calls[i].reason);
        }
    }
    const char *found = tidy_word_find(file->code, file->code, "float");
    if (found != NULL)
        tidy_complain(tidy, file->path, tidy_line_of(file->code, found), "float is not used here");
    if (strncmp(file->path, "tests/", 6) == 0 || tidy_is_excused(doubles, file->path, false))
        return;
    found = tidy_word_find(file->code, file->code, "double");
    if (found != NULL)
        tidy_complain(tidy, file->path, tidy_line_of(file->code, found),
                      "double decides no instant and no order: "
                      "a file that needs it says why in tests/tidy/doubles.txt");
}

void tidy_check_excuse(struct tidy *tidy, const struct tidy_file *file, const char *doubles)
{
    if (!tidy_is_excused(doubles, file->path, true) || file->code == NULL) return;
    if (tidy_word_find(file->code, file->code, "double") == NULL)
        tidy_complain(tidy, file->path, 1, "has no double, but tests/tidy/doubles.txt excuses it");
}
