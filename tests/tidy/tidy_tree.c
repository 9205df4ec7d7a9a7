/*
 * What one file does not show: functions that only tests call, and names in comments and pages of
 * functions and files that do not exist. A function of a header is called if its name stands in
 * product code once more than its declaration and its definition take.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tidy/tidy.h"

enum { SLOTS_FIRST = 1 << 16 };

static const char tests[] = "tests/";

static size_t slot_of(const struct tidy_tree *tree, const char *word, size_t length)
{
    /* FNV-1a, 64 bits. */
    uint64_t digest = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < length; i++)
        digest = (digest ^ (unsigned char)word[i]) * UINT64_C(0x100000001b3);
    size_t slot = (size_t)(digest >> 8) & (tree->slots - 1);
    for (; tree->word[slot].text != NULL; slot = (slot + 1) & (tree->slots - 1))
        if (strncmp(tree->word[slot].text, word, length) == 0 &&
            tree->word[slot].text[length] == '\0')
            break;
    return slot;
}

static void grow(struct tidy_tree *tree)
{
    struct tidy_tree grown = {.slots = tree->slots == 0 ? SLOTS_FIRST : 2 * tree->slots};
    grown.word = calloc(grown.slots, sizeof *grown.word);
    if (grown.word == NULL) abort();
    for (size_t i = 0; i < tree->slots; i++)
        if (tree->word[i].text != NULL)
            grown.word[slot_of(&grown, tree->word[i].text, strlen(tree->word[i].text))] =
                tree->word[i];
    free(tree->word);
    tree->word = grown.word;
    tree->slots = grown.slots;
}

static char *copy_of(const char *text, size_t length)
{
    char *copy = malloc(length + 1);
    if (copy == NULL) abort();
    memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}

static struct tidy_word *word_of(struct tidy_tree *tree, const char *word, size_t length)
{
    if (2 * tree->words >= tree->slots) grow(tree);
    struct tidy_word *of = &tree->word[slot_of(tree, word, length)];
    if (of->text == NULL) {
        of->text = copy_of(word, length);
        tree->words++;
    }
    return of;
}

static void note_words(struct tidy_tree *tree, const char *text, bool in_tests)
{
    for (const char *at = text; *at != '\0';) {
        size_t length = 0;
        while (tidy_is_word(at[length])) length++;
        if (length > 0) {
            struct tidy_word *word = word_of(tree, at, length);
            word->is_code = true;
            if (!in_tests) word->uses++;
        }
        at += length > 0 ? length : 1;
    }
}

/* Declarations stand at the beginning of a line: "enum status name(". */
static void note_declarations(struct tidy_tree *tree, const struct tidy_file *file)
{
    static const char inlined[] = "static inline ", type[] = "typedef ";
    for (const char *line = file->code; *line != '\0';) {
        size_t const length = tidy_line_length(line);
        const char *const bracket = memchr(line, '(', length);
        const char *name = bracket;
        while (name != NULL && name > line && tidy_is_word(name[-1])) name--;
        if (islower((unsigned char)*line) && name != NULL && name > line && name < bracket &&
            strncmp(line, type, sizeof type - 1) != 0) {
            struct tidy_word *word = word_of(tree, name, (size_t)(bracket - name));
            bool const is_inline = strncmp(line, inlined, sizeof inlined - 1) == 0;
            if (word->declared_in == NULL)
                word->declared_in = copy_of(file->path, strlen(file->path));
            word->line = tidy_line_of(file->code, line);
            word->own_uses = is_inline ? 1 : 2;
        }
        line += length;
        if (*line == '\n') line++;
    }
}

static void note_mention(struct tidy_tree *tree, const struct tidy_file *file, const char *at,
                         size_t length)
{
    struct tidy_mention *grown =
        realloc(tree->mention, (tree->mentions + 1) * sizeof *tree->mention);
    if (grown == NULL) abort();
    tree->mention = grown;
    tree->mention[tree->mentions++] =
        (struct tidy_mention){.text = copy_of(at, length),
                              .path = copy_of(file->path, strlen(file->path)),
                              .line = tidy_line_of(file->text, at)};
}

static bool is_of_path(char c)
{
    return tidy_is_word(c) || c == '/' || c == '.' || c == '-';
}

/* "name()" and paths of files between two places. A name that begins with a sign is the end of
 * several. */
static void note_mentions(struct tidy_tree *tree, const struct tidy_file *file, const char *begin,
                          const char *end)
{
    for (const char *at = begin; at < end;) {
        size_t length = 0, word = 0;
        while (at + length < end && is_of_path(at[length])) length++;
        while (word < length && tidy_is_word(at[word])) word++;
        bool const is_call = word == length && at + length + 1 < end && at[length] == '(' &&
                             at[length + 1] == ')' && islower((unsigned char)*at);
        size_t path = length;
        while (path > 0 && at[path - 1] == '.') path--;
        bool const is_file = path > 2 && at[path - 2] == '.' &&
                             (at[path - 1] == 'c' || at[path - 1] == 'h') &&
                             islower((unsigned char)*at);
        if (is_call) note_mention(tree, file, at, length + 2);
        if (is_file) note_mention(tree, file, at, path);
        at += length > 0 ? length : 1;
    }
}

static void note_comments(struct tidy_tree *tree, const struct tidy_file *file)
{
    for (const char *at = file->text; *at != '\0';) {
        const char *const end = tidy_token_begins(at) ? tidy_token_end(at) : at + 1;
        if (at[0] == '/' && end > at + 1) note_mentions(tree, file, at, end);
        at = end;
    }
}

/* Words in `backticks` of a page, each in one line. */
static void note_page(struct tidy_tree *tree, const struct tidy_file *file)
{
    for (const char *at = file->text; (at = strchr(at, '`')) != NULL;) {
        size_t const length = strcspn(at + 1, "`\n");
        note_mentions(tree, file, at + 1, at + 1 + length);
        at += 1 + length;
        if (*at != '\0') at++;
    }
}

void tidy_note_tree(struct tidy_tree *tree, const struct tidy_file *file)
{
    bool const in_tests = strncmp(file->path, tests, sizeof tests - 1) == 0;
    bool const is_def = tidy_ends_with(file->path, ".def");
    char **grown = realloc(tree->path, (tree->paths + 1) * sizeof *tree->path);
    if (grown == NULL) abort();
    tree->path = grown;
    tree->path[tree->paths++] = copy_of(file->path, strlen(file->path));
    if (file->code != NULL || is_def) note_words(tree, is_def ? file->text : file->code, in_tests);
    if (file->code != NULL) note_comments(tree, file);
    if (tidy_ends_with(file->path, ".md")) note_page(tree, file);
    if (tidy_ends_with(file->path, ".h") && !in_tests) note_declarations(tree, file);
}

/* Whether a mention is the end of the path of a file, from a folder on. */
static bool is_a_file(const struct tidy_tree *tree, const char *mention)
{
    for (size_t i = 0; i < tree->paths; i++) {
        size_t const own = strlen(tree->path[i]), length = strlen(mention);
        if (own == length && strcmp(tree->path[i], mention) == 0) return true;
        if (own > length && tree->path[i][own - length - 1] == '/' &&
            strcmp(tree->path[i] + own - length, mention) == 0)
            return true;
    }
    return false;
}

static bool is_a_function(const struct tidy_tree *tree, const char *mention)
{
    const struct tidy_word *word = &tree->word[slot_of(tree, mention, strlen(mention) - 2)];
    return word->text != NULL && word->is_code;
}

void tidy_check_tree(struct tidy *tidy, struct tidy_tree *tree, const char *foreign)
{
    if (tree->slots == 0) grow(tree);
    for (size_t i = 0; i < tree->slots; i++) {
        const struct tidy_word *word = &tree->word[i];
        if (word->declared_in != NULL && word->uses <= word->own_uses)
            tidy_complain(tidy, word->declared_in, word->line,
                          "%s() is called by tests alone: it belongs there", word->text);
    }
    for (size_t i = 0; i < tree->mentions; i++) {
        const struct tidy_mention *mention = &tree->mention[i];
        bool const is_call = tidy_ends_with(mention->text, "()");
        bool const exists =
            is_call ? is_a_function(tree, mention->text) : is_a_file(tree, mention->text);
        if (!exists && !tidy_is_excused(foreign, mention->text, true))
            tidy_complain(tidy, mention->path, mention->line,
                          "%s is mentioned but does not exist; what others have is in "
                          "tests/tidy/foreign.txt",
                          mention->text);
    }
}

void tidy_tree_free(struct tidy_tree *tree)
{
    for (size_t i = 0; i < tree->slots; i++) {
        free(tree->word[i].text);
        free(tree->word[i].declared_in);
    }
    for (size_t i = 0; i < tree->mentions; i++) {
        free(tree->mention[i].text);
        free(tree->mention[i].path);
    }
    for (size_t i = 0; i < tree->paths; i++) free(tree->path[i]);
    free(tree->word);
    free(tree->mention);
    free(tree->path);
    *tree = (struct tidy_tree){0};
}
