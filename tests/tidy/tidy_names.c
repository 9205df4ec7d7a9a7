#include <ctype.h>
#include <stddef.h>
#include <string.h>

#include "sim/collective/collective.h"
#include "tests/tidy/tidy.h"

/* Calls that compare text. */
static const char *const compares[] = {"strcmp",      "strncmp", "strcasecmp",
                                       "strncasecmp", "strstr",  "strcasestr"};
/* Compares text as well as structs. */
static const char bytes_compare[] = "memcmp";
/* What sim/base has for two names that were read or made: neither of them is written there. */
static const char same[] = "name_same";
/* Calls that may tell what a name means: read once, it has an enum that says so. */
static const char *const tells[] = {same, bytes_compare, "strchr", "strrchr"};
static const char tells_alone[] = "tells: "; /* An excuse of these alone. */

/* Finds a call of a function from `from` on: where its arguments begin; NULL if there is none. */
static const char *call_find(const char *code, const char *from, const char *name)
{
    size_t const length = strlen(name);
    for (const char *at = from; (at = strstr(at, name)) != NULL; at += length)
        if ((at == code || !tidy_is_word(at[-1])) && at[length] == '(') return at + length;
    return NULL;
}

/* Whether the arguments that begin at a bracket have a string among them. */
static bool has_string(const char *at)
{
    int depth = 0;
    do {
        if (*at == '"') return true;
        depth += (*at == '(') - (*at == ')');
    } while (depth > 0 && *++at != '\0');
    return false;
}

/* Whether the list, whose name begins at `name` below its definition, has one name and NULL. A list
 * in a function is none of the next function's. */
static bool is_of_one(const char *code, const char *name, size_t length)
{
    for (const char *at = code; (at = strstr(at, "[] = {")) != NULL && at < name; at++) {
        const char *line = at;
        while (line > code && line[-1] != '\n') line--;
        const char *const function_end = strstr(at, "\n}");
        if (*line == ' ' && function_end != NULL && function_end < name) continue;
        if (at - code < (ptrdiff_t)length || strncmp(at - length, name, length) != 0 ||
            tidy_is_word(at[-(ptrdiff_t)length - 1]))
            continue;
        const char *const end = strchr(at, '}'), *const comma = strchr(at, ',');
        return end != NULL && comma != NULL && comma < end &&
               memchr(comma + 1, ',', (size_t)(end - comma - 1)) == NULL;
    }
    return false;
}

/* The end of the arguments that begin at a bracket. */
static const char *arguments_end(const char *at)
{
    int depth = 0;
    do {
        depth += (*at == '(') - (*at == ')');
    } while (depth > 0 && *++at != '\0');
    return at;
}

/* The last argument of a call whose arguments begin at a bracket; `ret_length` 0: no name. */
static const char *last_argument(const char *at, size_t *ret_length)
{
    at = arguments_end(at);
    *ret_length = 0;
    while (tidy_is_word(at[-(ptrdiff_t)*ret_length - 1])) ++*ret_length;
    return at - *ret_length;
}

/* Whether the arguments that begin at a bracket have a macro among them: "DEFAULT". */
static bool has_macro(const char *at)
{
    int depth = 0;
    do {
        size_t upper = 0;
        depth += (*at == '(') - (*at == ')');
        while (isupper((unsigned char)at[upper]) ||
               (upper > 0 && tidy_is_word(at[upper]) && !islower((unsigned char)at[upper])))
            upper++;
        bool const is_whole = strchr("( ", at[-1]) != NULL && strchr(",)", at[upper]) != NULL;
        if (upper > 1 && is_whole && strncmp(at, "NULL", upper) != 0) return true;
    } while (depth > 0 && *++at != '\0');
    return false;
}

/* Whether a given element begins at a word's end, or an argument is the first of a list: "[0]",
 * "[KIND_MLP]", "*names". */
static bool is_element(const char *at)
{
    size_t digits = 0, upper = 0;
    if (*at == '[') {
        digits = strspn(at + 1, "0123456789");
        while (tidy_is_word(at[1 + upper]) && !islower((unsigned char)at[1 + upper])) upper++;
        return (digits > 0 && at[1 + digits] == ']') || (upper > 1 && at[1 + upper] == ']');
    }
    static const char names[] = "names";
    if (*at != '*' || strchr("(, \n", at[-1]) == NULL) return false;
    for (at++; tidy_is_word(*at); at++) upper++;
    return upper >= sizeof names - 1 && strncmp(at - (sizeof names - 1), names, 5) == 0;
}

/* Whether the arguments that begin at a bracket have a given element of a list among them, which is
 * a name as one that is written. */
static bool has_element(const char *at)
{
    for (const char *const end = arguments_end(at); at < end; at++)
        if (is_element(at)) return true;
    return false;
}

/* Whether the arguments that begin at a bracket have a text of the file among them, which is a name
 * as one that is written: "static const char none[] = ...". */
static bool has_text(const char *code, const char *at)
{
    static const char is[] = "[] =", type[] = "char ";
    for (const char *const end = arguments_end(at); at < end; at++) {
        size_t length = 0;
        while (tidy_is_word(at[length])) length++;
        if (length == 0 || tidy_is_word(at[-1])) continue;
        for (const char *text = code; (text = strstr(text, type)) != NULL; text++) {
            const char *const name = text + sizeof type - 1;
            if (strncmp(name, at, length) == 0 && strncmp(name + length, is, sizeof is - 1) == 0)
                return true;
        }
    }
    return false;
}

/* Whether the arguments that begin at a bracket are two texts and a length: they have no size of a
 * struct and no number of bytes among them. */
static bool is_of_text(const char *at)
{
    static const char *const sizes[] = {"bytes", "sizeof", "offsetof"};
    for (const char *const end = arguments_end(at); at < end; at++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            if (strncmp(at, sizes[i], strlen(sizes[i])) == 0 && !tidy_is_word(at[strlen(sizes[i])]))
                return false;
    return true;
}

static void check_lists(struct tidy *tidy, const struct tidy_file *file)
{
    static const char *const finds[] = {"name_find", "name_find_any_case"};
    for (size_t i = 0; i < sizeof finds / sizeof *finds; i++)
        for (const char *at = file->code; (at = call_find(file->code, at, finds[i])) != NULL;) {
            size_t length = 0;
            const char *const list = last_argument(at, &length);
            if (length > 0 && is_of_one(file->code, list, length))
                tidy_complain(tidy, file->path, tidy_line_of(file->code, at),
                              "%s() looks in a list of one name, which compares by name: the name "
                              "is read to a value once",
                              finds[i]);
        }
}

/* Calls that may tell what a name means; their number. Letters that are written there are no name.
 */
static unsigned check_tells(struct tidy *tidy, const struct tidy_file *file, bool excused)
{
    unsigned count = 0;
    for (size_t i = 0; i < sizeof tells / sizeof *tells; i++)
        for (const char *at = file->code; (at = call_find(file->code, at, tells[i])) != NULL;) {
            if (file->text[at - file->code + 1] == '"') continue;
            if (tells[i] == bytes_compare && !is_of_text(at)) continue;
            count++;
            if (!excused)
                tidy_complain(tidy, file->path, tidy_line_of(file->code, at),
                              "%s() may tell what a name means, which is read once: "
                              "tests/tidy/names.txt says why it does not",
                              tells[i]);
        }
    return count;
}

/* Whether "==" or "!=" stands before a place, or at it, behind blanks. */
static bool is_compared(const char *code, const char *from, const char *to)
{
    while (from > code && isspace((unsigned char)from[-1])) from--;
    while (isspace((unsigned char)*to)) to++;
    bool const before = from - code >= 2 && from[-1] == '=' && strchr("=!", from[-2]) != NULL;
    return before || strncmp(to, "==", 2) == 0 || strncmp(to, "!=", 2) == 0;
}

/* Whether what lies between two places is `== 'm'`, `'m' ==`, or `case 'm'`. */
static bool is_told_apart(const char *code, const char *from, const char *to)
{
    static const char word[] = "case";
    if (is_compared(code, from, to)) return true;
    while (from > code && isspace((unsigned char)from[-1])) from--;
    size_t const length = sizeof word - 1;
    return from - code > (ptrdiff_t)length && !tidy_is_word(from[-(ptrdiff_t)length - 1]) &&
           strncmp(from - length, word, length) == 0;
}

/* Letters that a text is told apart by; their number. Marks, such as a comma, are no names. */
static unsigned check_letters(struct tidy *tidy, const struct tidy_file *file, bool excused)
{
    unsigned count = 0;
    const char *at = file->text;
    while (*at != '\0') {
        if (!tidy_token_begins(at)) {
            at++;
            continue;
        }
        const char *const end = tidy_token_end(at), *const code = file->code;
        if (at[0] == '\'' && isalpha((unsigned char)at[1]) && end - at == 3 &&
            is_told_apart(code, code + (at - file->text), code + (end - file->text))) {
            count++;
            if (!excused)
                tidy_complain(tidy, file->path, tidy_line_of(file->text, at),
                              "'%c' may tell what a name means, which is read once: "
                              "tests/tidy/names.txt says why it does not",
                              at[1]);
        }
        at = end;
    }
    return count;
}

void tidy_check_names(struct tidy *tidy, const struct tidy_file *file, const char *names)
{
    unsigned count = 0;
    if (file->code == NULL || strncmp(file->path, "sim/", 4) != 0 ||
        strncmp(file->path, "sim/base/", 9) == 0)
        return;
    const char *const excuse = tidy_excuse(names, file->path, false);
    bool const alone = excuse != NULL && strncmp(excuse, tells_alone, strlen(tells_alone)) == 0;
    bool const excused = excuse != NULL && !alone;
    unsigned const told =
        check_tells(tidy, file, excuse != NULL) + check_letters(tidy, file, excuse != NULL);
    for (size_t i = 0; i < sizeof compares / sizeof *compares; i++)
        for (const char *at = file->code; (at = call_find(file->code, at, compares[i])) != NULL;
             count++)
            if (!excused)
                tidy_complain(tidy, file->path, tidy_line_of(file->code, at),
                              "%s() is not used here: a name is looked up where it is read "
                              "(sim/base/name.h), or tests/tidy/names.txt says why not",
                              compares[i]);
    for (const char *at = file->code; (at = call_find(file->code, at, bytes_compare)) != NULL;) {
        if (!has_string(file->text + (at - file->code))) continue;
        count++;
        if (!excused)
            tidy_complain(tidy, file->path, tidy_line_of(file->code, at),
                          "%s() has a name among its arguments: name_find() says which it is",
                          bytes_compare);
    }
    for (const char *at = file->code; (at = call_find(file->code, at, same)) != NULL;) {
        if (!has_string(file->text + (at - file->code)) && !has_macro(at) && !has_element(at) &&
            !has_text(file->code, at))
            continue;
        count++;
        if (!excused)
            tidy_complain(tidy, file->path, tidy_line_of(file->code, at),
                          "%s() has a name among its arguments: name_find() says which it is",
                          same);
    }
    if (!excused) check_lists(tidy, file);
    if ((alone ? told : count) == 0 && tidy_is_excused(names, file->path, true))
        tidy_complain(tidy, file->path, 1, "compares no text, but tests/tidy/names.txt excuses it");
}

/* Where names become families, `auto` takes one, and entries and plans of messages are made. */
static const char *const makers[] = {"sim/collective/algorithm.c",    "sim/collective/choice.c",
                                     "sim/collective/choice_names.c", "sim/collective/plan.c",
                                     "sim/collective/plan_permute.c", "sim/collective/spanning.c"};

void tidy_check_families(struct tidy *tidy, const struct tidy_file *file)
{
    static const char *const families[] = {
#define X(name, text, nccl, kinds) "PRIMITIVE_" #name,
        PRIMITIVE_FAMILY_TABLE(X)
#undef X
    };
    if (file->code == NULL || strncmp(file->path, "sim/", 4) != 0) return;
    for (size_t i = 0; i < sizeof makers / sizeof *makers; i++)
        if (strcmp(file->path, makers[i]) == 0) return;
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        const char *const at = tidy_word_find(file->code, file->code, families[i]);
        if (at != NULL)
            tidy_complain(tidy, file->path, tidy_line_of(file->code, at),
                          "%s is not told apart here: what an algorithm takes is asked of its "
                          "entry (primitive.cost)",
                          families[i]);
    }
}

void tidy_check_entries(struct tidy *tidy, const struct tidy_file *file)
{
    static const char *const entries[] = {"&op_kind_", "&block_"};
    if (file->code == NULL || strncmp(file->path, "sim/", 4) != 0) return;
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++)
        for (const char *at = file->code; (at = strstr(at, entries[i])) != NULL; at++) {
            const char *end = at + 1;
            while (tidy_is_word(*end)) end++;
            if (*end != '[' && is_compared(file->code, at, end))
                tidy_complain(tidy, file->path, tidy_line_of(file->code, at),
                              "%.*s is not told apart here: what an entry states is asked of it "
                              "(struct op_kind, struct block)",
                              (int)(end - at - 1), at + 1);
        }
}

/* What reads files that name algorithms; the definition among them. */
static const char *const readers[] = {"sim/choose/tuner.c", "sim/collective/algorithm.c",
                                      "sim/program/program_text_plan.c", "sim/scenario/run_keys.c"};

void tidy_check_readers(struct tidy *tidy, const struct tidy_file *file)
{
    if (file->code == NULL || strncmp(file->path, "sim/", 4) != 0 ||
        tidy_ends_with(file->path, ".h"))
        return;
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++)
        if (strcmp(file->path, readers[i]) == 0) return;
    for (const char *at = file->code; (at = call_find(file->code, at, "algorithm_read")) != NULL;)
        tidy_complain(tidy, file->path, tidy_line_of(file->code, at),
                      "algorithm_read() is called by readers of files alone: a request and a plan "
                      "have the algorithm itself");
}
