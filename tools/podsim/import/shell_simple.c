/*
 * shell_simple.c: commands of a shell script without conditions: assignments, words, redirections.
 *
 * What stands before a command's words is the command's alone. What a command changes that podsim
 * does not run is said.
 */
#include <ctype.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/name.h"
#include "tools/podsim/import/shell.h"

enum { SUBSCRIPT_BYTES_MAX = 256 };

/* --- Assignments --- */

/* "TP=", "TP+=", "TP[0]=" */
struct assignment {
    uint32_t name_length, length; /* The second up to behind the "=". */
    bool is_more, is_element;
};

static uint32_t name_length(const char *text)
{
    uint32_t length = 0;
    if (isdigit((unsigned char)text[0])) return 0;
    while (isalnum((unsigned char)text[length]) || text[length] == '_') length++;
    return length;
}

/* `name_length` 0: there is none. */
static struct assignment assignment_at(const struct shell *shell)
{
    struct assignment found = {.name_length = name_length(shell->at)};
    uint32_t length = found.name_length;
    if (length > 0 && shell_peek(shell, length) == '[') {
        found.is_element = true;
        for (uint32_t i = 0; i < SUBSCRIPT_BYTES_MAX; i++, length++) {
            char const c = shell_peek(shell, length);
            if (c == '\0' || c == '\n' || c == ']') break;
        }
        length += shell_peek(shell, length) == ']';
    }
    found.is_more = shell_peek(shell, length) == '+';
    found.length = length + found.is_more + 1;
    bool const is_one = shell_peek(shell, found.length - 1) == '=';
    return is_one ? found : (struct assignment){.name_length = 0};
}

/* In an array "[2]=x" is element 2, and does not stand where it is written. */
static enum status element_refuse(struct shell *shell, struct error *reterr)
{
    if (shell_peek(shell, 0) != '[') return STATUS_OK;
    size_t const length = strcspn(shell->at, "] \t\n");
    if (shell->at[length] != ']' || shell->at[length + 1] != '=') return STATUS_OK;
    return settings_fail(shell->file, shell->line, STATUS_UNSUPPORTED, reterr,
                         "\"%.*s]=\": podsim reads arrays whose elements follow one another, "
                         "without subscripts",
                         (int)length, shell->at);
}

static enum status read_array(struct shell *shell, struct shell_words *words, struct error *reterr)
{
    uint32_t const line = shell->line;
    shell->at++;
    for (;;) {
        shell_skip_lines(shell);
        if (shell->at >= shell->end) return shell_refuse_end(shell, line, "an array", reterr);
        if (*shell->at == ')') break;
        if (strchr("(&|<>;", *shell->at) != NULL)
            return settings_fail(shell->file, shell->line, STATUS_INVALID, reterr,
                                 "\"%c\" in an array", *shell->at);
        if (shell->run.skipping == 0) STATUS_TRY(element_refuse(shell, reterr));
        STATUS_TRY(shell_read_word(shell, words, reterr));
    }
    shell->at++;
    return STATUS_OK;
}

/* A value, in which blanks of variables end no word. */
static enum status read_text(struct shell *shell, struct shell_words *words, struct error *reterr)
{
    shell->is_whole = true;
    enum status const status = shell_read_word(shell, words, reterr);
    shell->is_whole = false;
    STATUS_TRY(status);
    return shell_join(shell, words, reterr);
}

static enum status assign(struct shell *shell, const struct assignment *assignment,
                          struct error *reterr)
{
    uint32_t const line = shell->line;
    const char *const name =
        arena_format(shell->file->arena, "%.*s", (int)assignment->name_length, shell->at);
    const char *const whole =
        arena_format(shell->file->arena, "%.*s", (int)assignment->length, shell->at);
    struct shell_words words = {.word = NULL};
    if (name == NULL || whole == NULL) return error_no_memory(reterr, "");
    shell->at += assignment->length;
    bool const is_array = shell_peek(shell, 0) == '(';
    STATUS_TRY(is_array ? read_array(shell, &words, reterr) : read_text(shell, &words, reterr));
    if (shell->run.skipping > 0) {
        shell->tally.lost++;
        return STATUS_OK;
    }
    if (assignment->is_element)
        return shell_say(shell, whole, words.count > 0 ? words.word[0].text : "", line,
                         "podsim sets no elements of arrays; the array is as before", reterr);
    if (name_same(name, "IFS"))
        return shell_say(shell, whole, words.count > 0 ? words.word[0].text : "", line,
                         "podsim divides words at blanks, tabs and line ends", reterr);
    return shell_assign(shell, name, is_array, assignment->is_more, &words, reterr);
}

static enum status assign_all(struct shell *shell, uint32_t *ret_count, struct error *reterr)
{
    *ret_count = 0;
    for (struct assignment found; (found = assignment_at(shell)).name_length > 0; ++*ret_count) {
        STATUS_TRY(assign(shell, &found, reterr));
        shell_skip_blanks(shell);
    }
    return STATUS_OK;
}

/* --- Words and redirections --- */

/* What a command writes or reads is dropped. "<<EOF" begins a text behind the line. */
static enum status read_redirection(struct shell *shell, struct error *reterr)
{
    struct shell_words dropped = {.word = NULL};
    uint32_t const line = shell->line;
    bool const is_text =
        shell_peek(shell, 0) == '<' && shell_peek(shell, 1) == '<' && shell_peek(shell, 2) != '<';
    while (shell_peek(shell, 0) == '<' || shell_peek(shell, 0) == '>' ||
           shell_peek(shell, 0) == '&')
        shell->at++;
    if (shell->at[-1] == '>' && shell_peek(shell, 0) == '|') shell->at++;
    bool const has_tabs = is_text && shell_peek(shell, 0) == '-';
    shell->at += has_tabs;
    shell_skip_blanks(shell);
    if (shell_peek(shell, 0) == '(') { /* <(...) is a command of its own. */
        const char *const end = shell_closing(shell, shell->at + 1, '(', ')');
        if (end == NULL) return shell_refuse_end(shell, line, "<(", reterr);
        for (; shell->at <= end; shell->at++) shell->line += *shell->at == '\n';
        return STATUS_OK;
    }
    STATUS_TRY(shell_read_word(shell, &dropped, reterr));
    if (is_text && dropped.count > 0) {
        shell->ending.text = dropped.word[0].text;
        shell->ending.has_tabs = has_tabs;
    }
    return STATUS_OK;
}

/* "<", ">", "&>", "2>" */
static bool is_at_redirection(const struct shell *shell, uint32_t *ret_digits)
{
    uint32_t digits = 0;
    while (isdigit((unsigned char)shell_peek(shell, digits))) digits++;
    char const c = shell_peek(shell, digits);
    *ret_digits = digits;
    return c == '<' || c == '>' || (digits == 0 && c == '&' && shell_peek(shell, 1) == '>');
}

enum status shell_read_redirections(struct shell *shell, struct error *reterr)
{
    uint32_t digits = 0;
    for (shell_skip_blanks(shell); is_at_redirection(shell, &digits); shell_skip_blanks(shell)) {
        shell->at += digits;
        STATUS_TRY(read_redirection(shell, reterr));
    }
    return STATUS_OK;
}

/* In [[ ]]: an operator as a word, all brackets and orders as "(". */
static enum status read_operator(struct shell *shell, bool is_pair, struct shell_words *words,
                                 struct error *reterr)
{
    uint32_t *line = arena_take(shell->file->arena, 1, sizeof *line);
    if (line == NULL) return error_no_memory(reterr, "");
    *line = shell->line;
    bool const is_and = shell_peek(shell, 0) == '&';
    struct shell_word const word = {.text = !is_pair ? "("
                                            : is_and ? "&&"
                                                     : "||",
                                    .line = line,
                                    .length = 1};
    shell->at += is_pair ? 2 : 1;
    return shell_words_add(shell, words, &word, reterr);
}

/* From "[[" to "]]". */
static enum status read_condition(struct shell *shell, struct shell_words *words,
                                  struct error *reterr)
{
    uint32_t const line = shell->line;
    shell->is_whole = true;
    enum status status = STATUS_OK;
    while (status == STATUS_OK) {
        shell_skip_blanks(shell);
        char const c = shell_peek(shell, 0);
        bool const is_pair = (c == '&' || c == '|') && shell_peek(shell, 1) == c;
        if (words->count > 0 && name_same(words->word[words->count - 1].text, "]]")) break;
        if (c == '\0' || c == ';') {
            status = shell_refuse_end(shell, line, "[[", reterr);
        } else if (c == '\n') {
            shell->at++;
            shell->line++;
        } else if (is_pair || strchr("&|()<>", c) != NULL) {
            status = read_operator(shell, is_pair, words, reterr);
        } else {
            uint32_t const count = words->count;
            status = shell_read_word(shell, words, reterr);
            if (status == STATUS_OK && words->count == count) { /* An empty variable. */
                struct shell_buffer buffer = {.is_word = true};
                status = shell_word_end(shell, &buffer, words, reterr);
            }
        }
    }
    shell->is_whole = false;
    return status;
}

enum status shell_read_command(struct shell *shell, struct shell_words *words, struct error *reterr)
{
    if (shell_is_at(shell, "[[")) {
        STATUS_TRY(read_condition(shell, words, reterr));
        return shell_read_redirections(shell, reterr);
    }
    for (;;) {
        STATUS_TRY(shell_read_redirections(shell, reterr));
        char const c = shell_peek(shell, 0);
        if (c == '\0' || strchr("\n;#&|()", c) != NULL) return STATUS_OK;
        STATUS_TRY(shell_read_word(shell, words, reterr));
    }
}

/* --- Commands --- */

/* Says which commands change variables, as podsim does not run them. */
static enum status say_changes(struct shell *shell, const struct shell_words *words,
                               struct error *reterr)
{
    static const char *const around[] = {"command", "builtin", "exec", NULL};
    static const char *const changing[] = {"source",  ".",         "let",    "read",    "unset",
                                           "mapfile", "readarray", "eval",   "getopts", "declare",
                                           "local",   "readonly",  "export", "typeset", "coproc",
                                           "alias",   NULL};
    uint32_t at = 0;
    while (at + 1 < words->count && around[name_find(words->word[at].text, around)] != NULL) at++;
    const struct shell_word *const first = &words->word[at];
    const char *const second = at + 1 < words->count ? first[1].text : "";
    bool const is_unknown =
        first->is_open && (first->text[0] == '`' || name_after(first->text, "$(") != NULL);
    bool const is_set = name_same(first->text, "set") && second[0] != '\0' &&
                        (name_same(second, "--") || strchr("-+", second[0]) == NULL);
    if (is_set || name_same(first->text, "shift"))
        STATUS_TRY(shell_arguments_forget(shell, reterr));
    bool const sets = is_set || (name_same(first->text, "printf") && name_same(second, "-v")) ||
                      (name_same(first->text, "wait") && name_same(second, "-p")) ||
                      (name_same(first->text, "shopt") && strstr(second, "-s") != NULL);
    if (changing[name_find(first->text, changing)] == NULL && !sets && !is_unknown)
        return STATUS_OK;
    if (shell_has_program(words)) return STATUS_OK; /* Of which the words are wanted. */
    shell->tally.lost += shell->run.skipping > 0;
    if (shell->run.skipping > 0) return STATUS_OK;
    return shell_say(shell, first->text, second, shell_word_line(first), SHELL_NOT_RUN, reterr);
}

/* A word of `export` or `declare` that became an assignment, "declare "$NAME=8"". */
static enum status assign_word(struct shell *shell, const struct shell_word *word,
                               struct error *reterr)
{
    uint32_t const length = name_length(word->text);
    const char *const sign = strchr(word->text, '=');
    if (sign == NULL && !word->is_open) return STATUS_OK;
    shell->tally.lost += shell->run.skipping > 0;
    if (shell->run.skipping > 0) return STATUS_OK;
    if (length == 0 || word->is_open || word->text[length] != '=')
        return shell_say(shell, word->text, "", shell_word_line(word), SHELL_NOT_RUN, reterr);
    const char *const name = arena_format(shell->file->arena, "%.*s", (int)length, word->text);
    if (name == NULL) return error_no_memory(reterr, "");
    struct shell_word value = {.text = word->text + length + 1,
                               .line = word->line + length + 1,
                               .length = word->length - length - 1};
    if (value.length == 0) value.line = word->line;
    struct shell_words const words = {.word = &value, .count = 1};
    return shell_assign(shell, name, /* is_array= */ false, /* is_more= */ false, &words, reterr);
}

/* The length of `export` and its like at the cursor, whose words are assignments. */
static uint32_t declaration_at(const struct shell *shell)
{
    static const char *const names[] = {"export", "declare", "local", "readonly", "typeset"};
    for (uint32_t i = 0; i < sizeof names / sizeof *names; i++)
        if (shell_is_at(shell, names[i])) return (uint32_t)strlen(names[i]);
    return 0;
}

static enum status run_declaration(struct shell *shell, uint32_t length, struct error *reterr)
{
    const char *const start = shell->at;
    bool is_readonly = shell_is_at(shell, "readonly");
    shell->run.is_exporting = shell_is_at(shell, "export");
    shell->at += length;
    for (;;) {
        struct shell_words words = {.word = NULL};
        STATUS_TRY(shell_read_redirections(shell, reterr));
        char const c = shell_peek(shell, 0);
        struct assignment const found = assignment_at(shell);
        if (c == '\0' || strchr("\n;#&|()", c) != NULL) return STATUS_OK;
        if (found.name_length > 0) {
            const char *const name =
                arena_format(shell->file->arena, "%.*s", (int)found.name_length, shell->at);
            if (name == NULL) return error_no_memory(reterr, "");
            STATUS_TRY(assign(shell, &found, reterr));
            if (is_readonly && shell->run.skipping == 0) shell_make_readonly(shell, name);
            continue;
        }
        uint32_t const line = shell->line;
        STATUS_TRY(shell_read_word(shell, &words, reterr));
        is_readonly = is_readonly || (c == '-' && strchr(words.word[0].text, 'r') != NULL);
        if (c == '-' && strchr(words.word[0].text, 'x') != NULL) shell->run.is_exporting = true;
        if (c != '-' && c != '+') {
            for (uint32_t i = 0; i < words.count; i++) {
                STATUS_TRY(assign_word(shell, &words.word[i], reterr));
                if (shell->run.is_exporting && shell->run.skipping == 0)
                    shell_export(shell, words.word[i].text);
                if (is_readonly && shell->run.skipping == 0)
                    shell_make_readonly(shell, words.word[i].text);
            }
        } else if (strspn(words.word[0].text, "-+agrxpfF") < words.word[0].length) {
            const char *const name = arena_format(shell->file->arena, "%.*s", (int)length, start);
            if (name == NULL) return error_no_memory(reterr, "");
            shell->tally.lost += shell->run.skipping > 0;
            if (shell->run.skipping == 0)
                STATUS_TRY(shell_say(shell, name, words.word[0].text, line, SHELL_NOT_RUN, reterr));
        }
    }
}

/* At the end of a script nothing more is run. Under what podsim presumes it is read on. */
static enum status end_script(struct shell *shell, const struct shell_word *word,
                              struct error *reterr)
{
    if (shell->presuming > 0 || shell->tally.lost > 0)
        return shell_say(shell, word->text, "", shell_word_line(word), SHELL_MAY_END, reterr);
    shell->run.skipping++;
    shell->run.ended = shell_word_line(word);
    shell->run.lost_before = shell->tally.lost;
    return STATUS_OK;
}

/* What a program's words say. */
static enum status take_words(struct shell *shell, const struct shell_words *words,
                              enum shell_truth *ret_truth, struct error *reterr)
{
    /* Of what is run. */
    static const char *const printing[] = {"echo", "printf", "cat", "ls", NULL};
    const char *const first = words->word[0].text;
    STATUS_TRY(say_changes(shell, words, reterr));
    if (shell->run.skipping > 0) {
        bool const prints = printing[name_find(first, printing)] != NULL;
        bool const runs = !prints && shell_has_program(words);
        shell->tally.lost += runs;
        if (runs && shell->tally.program == 0)
            shell->tally.program = shell_word_line(&words->word[0]);
        for (uint32_t i = 0; !prints && i < words->count; i++)
            shell->tally.lost += name_after(words->word[i].text, "--") != NULL;
        return STATUS_OK;
    }
    bool const succeeds = name_same(first, "true") || name_same(first, ":") ||
                          name_same(first, "echo") || name_same(first, "export");
    *ret_truth = name_same(first, "false") ? SHELL_NO : succeeds ? SHELL_YES : SHELL_LIKELY;
    if (printing[name_find(first, printing)] == NULL) STATUS_TRY(shell_keep(shell, words, reterr));
    for (uint32_t i = 1; name_same(first, "set") && i < words->count; i++) {
        const char *const text = words->word[i].text;
        shell->run.ends_at_failure = shell->run.ends_at_failure || name_same(text, "errexit") ||
                                     (text[0] == '-' && strchr(text, 'e') != NULL);
        shell->run.exports_all = shell->run.exports_all || name_same(text, "allexport") ||
                                 (text[0] == '-' && strchr(text, 'a') != NULL);
        if (name_same(text, "+a")) shell->run.exports_all = false;
    }
    bool const is_exec = name_same(first, "exec") && words->count > 1 && shell->presuming == 0;
    if (name_same(first, "exit") || is_exec) return end_script(shell, &words->word[0], reterr);
    return STATUS_OK;
}

static enum status take_test(struct shell *shell, const struct shell_words *words,
                             enum shell_truth *ret_truth, struct error *reterr)
{
    const struct shell_word *const last = &words->word[words->count - 1];
    bool const has_end = name_same(last->text, "]") || name_same(last->text, "]]");
    bool const wants_end = words->word[0].text[0] == '[';
    if (wants_end && !has_end)
        return settings_fail(shell->file, shell_word_line(&words->word[0]), STATUS_INVALID, reterr,
                             "\"%s\" without what closes it", words->word[0].text);
    struct shell_words const inner = {.word = &words->word[1],
                                      .count = words->count - 1 - wants_end};
    *ret_truth = shell_test(&inner);
    return STATUS_OK;
}

/* Assignments without a command behind them count. */
static enum status assign_again(struct shell *shell, const char *start, uint32_t line,
                                struct error *reterr)
{
    const char *const end = shell->at;
    uint32_t const end_line = shell->line;
    uint32_t ignored = 0;
    shell->at = start;
    shell->line = line;
    STATUS_TRY(assign_all(shell, &ignored, reterr));
    shell->at = end;
    shell->line = end_line;
    return STATUS_OK;
}

/* A text has the assignments in front of its command, which end with it. */
static enum status take_assigned(struct shell *shell, const struct shell_words *words,
                                 const char *start, uint32_t line, enum shell_truth *ret_truth,
                                 struct error *reterr)
{
    uint32_t const mark = shell->undo_count, assigned = shell->tally.assigned;
    shell->run.is_exporting = true;
    STATUS_TRY(assign_again(shell, start, line, reterr));
    shell->run.is_exporting = false;
    STATUS_TRY(take_words(shell, words, ret_truth, reterr));
    shell_restore(shell, mark);
    shell->tally.assigned = assigned;
    return STATUS_OK;
}

enum status shell_run_command(struct shell *shell, enum shell_truth *ret_truth,
                              struct error *reterr)
{
    struct shell_words words = {.word = NULL};
    uint32_t const substituted = shell->tally.substituted, lost = shell->tally.lost;
    uint32_t const declaration = declaration_at(shell);
    uint32_t assignments = 0;
    *ret_truth = SHELL_YES;
    if (declaration > 0) {
        /* Outside functions, whose bodies are skipped, `local` assigns nothing. */
        bool const is_vain = shell->run.skipping == 0 && shell_is_at(shell, "local");
        shell->run.skipping += is_vain;
        shell->is_declared = true;
        STATUS_TRY(run_declaration(shell, declaration, reterr));
        shell->is_declared = shell->run.is_exporting = false;
        shell->run.skipping -= is_vain;
        if (is_vain) shell->tally.lost = lost;
        return STATUS_OK;
    }
    bool const is_env = shell_is_at(shell, "env");
    shell->at += is_env ? 3 : 0;
    STATUS_TRY(shell_read_redirections(shell, reterr));
    const char *const start = shell->at;
    uint32_t const line = shell->line;
    /* The words know nothing of the assignments before them. */
    shell->run.skipping++;
    STATUS_TRY(assign_all(shell, &assignments, reterr));
    shell->run.skipping--;
    uint32_t const lost_there = shell->tally.lost - lost;
    bool const is_test =
        shell_is_at(shell, "[") || shell_is_at(shell, "[[") || shell_is_at(shell, "test");
    shell->unset_is_empty = is_test;
    STATUS_TRY(shell_read_command(shell, &words, reterr));
    shell->unset_is_empty = false;
    if (words.count > 0 || is_env || shell->run.skipping == 0) shell->tally.lost -= lost_there;
    if (words.count == 0) {
        if (shell->run.skipping > 0 || is_env) return STATUS_OK;
        STATUS_TRY(assign_again(shell, start, line, reterr));
        if (shell->tally.substituted > substituted) *ret_truth = SHELL_LIKELY;
        return STATUS_OK;
    }
    /* "A=${B:=1} command" keeps B, and "A=1 $B" is no command if B is empty. */
    bool const may_keep = lost_there > assignments ||
                          (assignments > 0 && words.word[0].is_open && !shell_has_program(&words));
    if (shell->run.skipping == 0 && may_keep)
        STATUS_TRY(shell_say(shell, words.word[0].text, "", line, SHELL_NOT_RUN, reterr));
    struct shell_text text;
    bool const has_own =
        assignments > 0 && shell->run.skipping == 0 && shell_text_find(shell, &words, &text);
    return is_test   ? take_test(shell, &words, ret_truth, reterr)
           : has_own ? take_assigned(shell, &words, start, line, ret_truth, reterr)
                     : take_words(shell, &words, ret_truth, reterr);
}
