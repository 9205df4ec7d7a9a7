/*
 * read_shell.c: which arguments a script of the shell gives to the Python program that it runs.
 *
 * Bash's grammar as far as such scripts go: assignments, arrays, commands, conditions. Nothing is
 * run. Arguments under a condition that is not known from the file are left out, and said to be.
 */
#include <ctype.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/name.h"
#include "tools/podsim/import/shell.h"

static enum status run_list(struct shell *shell, const char *const *ends, uint32_t *ret_end,
                            enum shell_truth *ret_truth, struct error *reterr);

static char peek(const struct shell *shell, uint32_t ahead)
{
    return (uint64_t)(shell->end - shell->at) > ahead ? shell->at[ahead] : '\0';
}

static void skip_line(struct shell *shell)
{
    while (shell->at < shell->end && *shell->at != '\n') shell->at++;
}

/* Past the lines of a text that follows a command, up to the one that ends it. */
static void skip_ended_text(struct shell *shell)
{
    size_t const length = strlen(shell->ending);
    while (shell->at < shell->end) {
        const char *line = shell->at;
        skip_line(shell);
        while (line < shell->at && *line == '\t') line++;
        bool const is_end =
            (size_t)(shell->at - line) == length && memcmp(line, shell->ending, length) == 0;
        if (shell->at < shell->end) shell->at++;
        shell->line++;
        if (is_end) break;
    }
    shell->ending = NULL;
}

/* Line ends, comments and semicolons. */
static void skip_lines(struct shell *shell)
{
    for (;;) {
        shell_skip_blanks(shell);
        if (peek(shell, 0) == '#')
            skip_line(shell);
        else if (peek(shell, 0) == '\n') {
            shell->at++;
            shell->line++;
            if (shell->ending != NULL) skip_ended_text(shell);
        } else if (peek(shell, 0) == ';') {
            shell->at++;
        } else {
            return;
        }
    }
}

/* Of letters at the cursor, if a word ends behind them. */
static bool is_at(const struct shell *shell, const char *word)
{
    size_t const length = strlen(word);
    if ((uint64_t)(shell->end - shell->at) < length) return false;
    char const next = peek(shell, (uint32_t)length);
    return memcmp(shell->at, word, length) == 0 &&
           (next == '\0' || strchr(" \t\r\n;&|()", next) != NULL);
}

/* The length of a name before "=", "+=" or "[", 0 if it is no assignment. */
static uint32_t assigned_name(const struct shell *shell)
{
    uint32_t length = 0;
    while (isalnum((unsigned char)peek(shell, length)) || peek(shell, length) == '_') length++;
    if (length == 0 || isdigit((unsigned char)peek(shell, 0))) return 0;
    bool const is_more = peek(shell, length) == '+' && peek(shell, length + 1) == '=';
    return peek(shell, length) == '=' || is_more ? length : 0;
}

static enum status read_array(struct shell *shell, struct shell_words *words, struct error *reterr)
{
    uint32_t const line = shell->line;
    shell->at++;
    for (;;) {
        skip_lines(shell);
        if (shell->at >= shell->end) return shell_refuse_end(shell, line, "an array", reterr);
        if (*shell->at == ')') break;
        if (strchr("(&|<>", *shell->at) != NULL)
            return settings_fail(shell->file, shell->line, STATUS_INVALID, reterr,
                                 "\"%c\" in an array", *shell->at);
        STATUS_TRY(shell_read_word(shell, words, reterr));
    }
    shell->at++;
    return STATUS_OK;
}

static enum status assign(struct shell *shell, uint32_t length, struct error *reterr)
{
    const char *name = arena_format(shell->file->arena, "%.*s", (int)length, shell->at);
    struct shell_words words = {.word = NULL};
    if (name == NULL) return error_set(reterr, STATUS_NO_MEMORY, "", "there is no memory");
    bool const is_more = peek(shell, length) == '+';
    shell->at += length + 1 + is_more;
    bool const is_array = peek(shell, 0) == '(';
    if (is_array) {
        STATUS_TRY(read_array(shell, &words, reterr));
    } else {
        STATUS_TRY(shell_read_word(shell, &words, reterr));
        STATUS_TRY(shell_join(shell, &words, reterr));
    }
    if (shell->skipping > 0) {
        shell->lost++;
        return STATUS_OK;
    }
    return shell_assign(shell, name, is_array, is_more, &words, reterr);
}

/* --- Commands --- */

/* What a command writes or reads is dropped. "<<EOF" begins a text behind the line. */
static enum status read_redirection(struct shell *shell, struct error *reterr)
{
    struct shell_words dropped = {.word = NULL};
    bool const is_text = peek(shell, 0) == '<' && peek(shell, 1) == '<' && peek(shell, 2) != '<';
    while (peek(shell, 0) == '<' || peek(shell, 0) == '>' || peek(shell, 0) == '&') shell->at++;
    if (is_text && peek(shell, 0) == '-') shell->at++;
    shell_skip_blanks(shell);
    STATUS_TRY(shell_read_word(shell, &dropped, reterr));
    if (is_text && dropped.count > 0) shell->ending = dropped.word[0].text;
    return STATUS_OK;
}

/* Words up to the end of a command. Within [[ ]] "&&" and "||" are words. */
static enum status read_command(struct shell *shell, struct shell_words *words,
                                struct error *reterr)
{
    bool const is_double = is_at(shell, "[[");
    for (;;) {
        shell_skip_blanks(shell);
        char const c = peek(shell, 0);
        if (c == '\0' || c == '\n' || c == ';' || c == '#') return STATUS_OK;
        bool const is_pair = (c == '&' || c == '|') && peek(shell, 1) == c;
        if (is_double && (is_pair || c == '(' || c == ')' || c == '<' || c == '>')) {
            uint32_t *line = arena_take(shell->file->arena, 1, sizeof *line);
            if (line == NULL) return error_set(reterr, STATUS_NO_MEMORY, "", "no memory");
            *line = shell->line;
            struct shell_word const word = {is_pair ? (c == '&' ? "&&" : "||") : "(", line, 1};
            STATUS_TRY(shell_words_add(shell, words, &word, reterr));
            shell->at += is_pair ? 2 : 1;
        } else if (c == '<' || c == '>' || (c == '&' && peek(shell, 1) == '>')) {
            STATUS_TRY(read_redirection(shell, reterr));
        } else if (strchr("&|()", c) != NULL) {
            return STATUS_OK;
        } else {
            STATUS_TRY(shell_read_word(shell, words, reterr));
            bool const is_number = words->count > 0 && (peek(shell, 0) == '>') &&
                                   words->word[words->count - 1].length == 1 &&
                                   isdigit((unsigned char)words->word[words->count - 1].text[0]);
            if (is_number) words->count--; /* 2>&1 */
            if (is_double && words->count > 0 &&
                name_same(words->word[words->count - 1].text, "]]"))
                return STATUS_OK;
        }
    }
}

/* Says which commands change variables, as podsim does not run them. */
static enum status say_changes(struct shell *shell, const struct shell_words *words,
                               struct error *reterr)
{
    static const char *const changing[] = {"source", ".",       "let",       "read",
                                           "unset",  "mapfile", "readarray", NULL};
    const struct shell_word *const first = words->word;
    if (changing[name_find(first->text, changing)] == NULL) return STATUS_OK;
    return shell_say(shell, first->text, words->count > 1 ? first[1].text : "", first->line[0],
                     "podsim does not run it; variables that it changes are given by --with "
                     "NAME=VALUE",
                     reterr);
}

static enum status run_command(struct shell *shell, enum shell_truth *ret_truth,
                               struct error *reterr)
{
    static const char *const prefixes[] = {"export", "declare", "local", "readonly", "env", NULL};
    static const char *const printing[] = {"echo", "printf", "cat", NULL}; /* Of what is run. */
    struct shell_words words = {.word = NULL}, dropped = {.word = NULL};
    *ret_truth = SHELL_YES;
    bool const is_test = is_at(shell, "[") || is_at(shell, "[[") || is_at(shell, "test");
    for (uint32_t i = 0; prefixes[i] != NULL; i++) {
        if (!is_at(shell, prefixes[i])) continue;
        shell->at += strlen(prefixes[i]);
        for (shell_skip_blanks(shell); peek(shell, 0) == '-'; shell_skip_blanks(shell))
            STATUS_TRY(shell_read_word(shell, &dropped, reterr)); /* declare -a */
    }
    shell_skip_blanks(shell);
    for (uint32_t length; (length = assigned_name(shell)) > 0; shell_skip_blanks(shell))
        STATUS_TRY(assign(shell, length, reterr));
    shell->unset_is_empty = is_test;
    enum status const status = read_command(shell, &words, reterr);
    shell->unset_is_empty = false;
    STATUS_TRY(status);
    if (is_test && words.count > 0) {
        bool const has_end = words.word[words.count - 1].text[0] == ']';
        struct shell_words const inner = {&words.word[1], words.count - 1 - has_end, 0};
        *ret_truth = words.count > 1 ? shell_test(&inner) : SHELL_MAYBE;
        return STATUS_OK;
    }
    if (shell->skipping == 0 && words.count > 0) STATUS_TRY(say_changes(shell, &words, reterr));
    for (uint32_t i = 0; shell->skipping > 0 && i < words.count; i++)
        shell->lost += name_after(words.word[i].text, "--") != NULL;
    if (shell->skipping > 0 || words.count == 0) return STATUS_OK;
    if (name_same(words.word[0].text, "false"))
        *ret_truth = SHELL_NO;
    else if (!name_same(words.word[0].text, "true"))
        shell->ran_program = true;
    if (printing[name_find(words.word[0].text, printing)] != NULL) return STATUS_OK;
    return shell_keep(shell, &words, reterr);
}

/* --- Conditions --- */

/* Says that what stands under a condition was left out. `is_empty`: as a variable in it is. */
static enum status say_lost(struct shell *shell, uint32_t lost, uint32_t line, const char *start,
                            bool is_empty, struct error *reterr)
{
    if (shell->lost == lost) return STATUS_OK;
    const char *const because = arena_format(
        shell->file->arena, "%s; what stands under it is left out: %u %s",
        is_empty ? "a variable is taken as empty, as neither the file nor --with assigns it"
                 : "it is not known from the file",
        shell->lost - lost,
        shell->lost - lost == 1 ? "argument or assignment" : "arguments and assignments");
    const char *const key =
        arena_format(shell->file->arena, "%.*s", (int)strcspn(start, "\n;"), start);
    if (because == NULL || key == NULL)
        return error_set(reterr, STATUS_NO_MEMORY, "", "there is no memory");
    return shell_say(shell, key, "", line, because, reterr);
}

static enum status run_if(struct shell *shell, struct error *reterr)
{
    static const char *const then[] = {"then", NULL};
    static const char *const ends[] = {"elif", "else", "fi", NULL};
    bool taken = false, unsure = false;
    uint32_t const assumed = shell->assumed;
    uint32_t end = 0;
    do {
        enum shell_truth truth = SHELL_YES, ignored;
        uint32_t const line = shell->line, lost = shell->lost;
        bool const is_else = end == 1 && is_at(shell, "else");
        const char *const start = shell->at;
        shell->at += is_else ? 4 : is_at(shell, "if") ? 2 : 4;
        shell->ran_program = false;
        if (!is_else) STATUS_TRY(run_list(shell, then, &end, &truth, reterr));
        if (shell->ran_program) truth = SHELL_MAYBE;
        if (!is_else) shell->at += 4;
        if (truth == SHELL_MAYBE && !taken) unsure = true;
        bool const runs = truth == SHELL_YES && !taken && !unsure;
        shell->skipping += !runs;
        STATUS_TRY(run_list(shell, ends, &end, &ignored, reterr));
        shell->skipping -= !runs;
        bool const is_unknown = unsure && !taken, is_empty = shell->assumed > assumed;
        if (!runs && (is_unknown || is_empty) && shell->skipping == 0)
            STATUS_TRY(say_lost(shell, lost, line, start, !is_unknown, reterr));
        taken = taken || truth == SHELL_YES;
        end = is_at(shell, "else");
    } while (!is_at(shell, "fi"));
    shell->at += 2;
    return STATUS_OK;
}

/* A loop, a choice or a function: skipped up to its last word, and said to be. */
static enum status skip_compound(struct shell *shell, const char *open, const char *close,
                                 struct error *reterr)
{
    uint32_t const line = shell->line, lost = shell->lost;
    const char *const start = shell->at;
    uint32_t depth = 0;
    do {
        struct shell_words words = {.word = NULL};
        skip_lines(shell);
        if (shell->at >= shell->end) return shell_refuse_end(shell, line, open, reterr);
        if (is_at(shell, open)) depth++;
        if (is_at(shell, close)) depth--;
        bool const is_assignment = assigned_name(shell) > 0;
        const char *const before = shell->at;
        STATUS_TRY(shell_read_word(shell, &words, reterr));
        if (shell->at == before) shell->at++;
        shell->lost += is_assignment;
        for (uint32_t i = 0; i < words.count; i++)
            shell->lost += name_after(words.word[i].text, "--") != NULL;
    } while (depth > 0);
    return shell->skipping > 0 ? STATUS_OK : say_lost(shell, lost, line, start, false, reterr);
}

static bool is_at_function(const struct shell *shell)
{
    uint32_t length = 0;
    while (isalnum((unsigned char)peek(shell, length)) || strchr("_-", peek(shell, length)) != NULL)
        if (peek(shell, length++) == '\0') return false;
    return length > 0 && peek(shell, length) == '(' && peek(shell, length + 1) == ')';
}

/* A comparison in (( )), or an assignment, which is not run and said not to be. */
static enum status run_arithmetic(struct shell *shell, enum shell_truth *ret_truth,
                                  struct error *reterr)
{
    const char *const start = shell->at, *end = start;
    uint32_t const line = shell->line;
    for (; end < shell->end && (end[0] != ')' || end[1] != ')'); end++) shell->line += *end == '\n';
    if (end == shell->end) return shell_refuse_end(shell, line, "((", reterr);
    const char *const text =
        arena_format(shell->file->arena, "%.*s", (int)(end - start - 2), start + 2);
    const char *const whole =
        arena_format(shell->file->arena, "%.*s", (int)(end + 2 - start), start);
    if (text == NULL || whole == NULL)
        return error_set(reterr, STATUS_NO_MEMORY, "", "there is no memory");
    shell->at = end + 2;
    *ret_truth = shell_test_arithmetic(shell, text);
    if (*ret_truth != SHELL_MAYBE || shell->skipping > 0) return STATUS_OK;
    return shell_say(shell, whole, "", line, "podsim does not run it", reterr);
}

static enum status run_one(struct shell *shell, enum shell_truth *ret_truth, struct error *reterr)
{
    static const char *const compounds[][2] = {
        {"case", "esac"}, {"for", "done"}, {"while", "done"}, {"until", "done"}};
    *ret_truth = SHELL_MAYBE;
    for (uint32_t i = 0; i < sizeof compounds / sizeof *compounds; i++)
        if (is_at(shell, compounds[i][0]))
            return skip_compound(shell, compounds[i][0], compounds[i][1], reterr);
    if (is_at(shell, "if")) return run_if(shell, reterr);
    if (is_at_function(shell) || is_at(shell, "function")) {
        while (shell->at < shell->end && *shell->at != '{' && *shell->at != '\n') shell->at++;
        skip_lines(shell);
        if (peek(shell, 0) == '{') return skip_compound(shell, "{", "}", reterr);
        return STATUS_OK;
    }
    if (peek(shell, 0) == '(' && peek(shell, 1) == '(')
        return run_arithmetic(shell, ret_truth, reterr);
    *ret_truth = SHELL_YES;
    bool const is_contrary = is_at(shell, "!");
    shell->at += is_contrary;
    shell_skip_blanks(shell);
    while (peek(shell, 0) == '(' || peek(shell, 0) == ')' || is_at(shell, "{") || is_at(shell, "}"))
        shell->at++;
    shell_skip_blanks(shell);
    STATUS_TRY(run_command(shell, ret_truth, reterr));
    if (is_contrary) *ret_truth = shell_contrary(*ret_truth);
    return STATUS_OK;
}

/* Commands up to one of the words, at which the cursor stays; `ends` NULL: to the end. */
static enum status run_list(struct shell *shell, const char *const *ends, uint32_t *ret_end,
                            enum shell_truth *ret_truth, struct error *reterr)
{
    uint32_t const line = shell->line;
    if (shell->depth == IMPORT_DEPTH_MAX)
        return settings_fail(shell->file, line, STATUS_LIMIT, reterr,
                             "conditions within one another more than %d deep", IMPORT_DEPTH_MAX);
    shell->depth++;
    for (;;) {
        skip_lines(shell);
        for (uint32_t i = 0; ends != NULL && ends[i] != NULL; i++)
            if (is_at(shell, ends[i])) {
                *ret_end = i;
                shell->depth--;
                return STATUS_OK;
            }
        if (shell->at >= shell->end) break;
        const char *const start = shell->at;
        uint32_t const begun = shell->line, assumed = shell->assumed;
        STATUS_TRY(run_one(shell, ret_truth, reterr));
        for (shell_skip_blanks(shell); peek(shell, 0) == '&' || peek(shell, 0) == '|';
             shell_skip_blanks(shell)) {
            bool const is_pair = peek(shell, 1) == peek(shell, 0);
            bool const is_and = peek(shell, 0) == '&';
            enum shell_truth const wanted = is_and ? SHELL_YES : SHELL_NO;
            enum shell_truth next = SHELL_YES;
            uint32_t const lost = shell->lost;
            bool const skips = is_pair && *ret_truth != wanted;
            shell->at += is_pair ? 2 : 1;
            if (!is_pair && is_and) break;
            shell->skipping += skips;
            skip_lines(shell);
            if (shell->at < shell->end) STATUS_TRY(run_one(shell, &next, reterr));
            shell->skipping -= skips;
            bool const is_unknown = *ret_truth == SHELL_MAYBE, is_empty = shell->assumed > assumed;
            if (skips && (is_unknown || is_empty) && shell->skipping == 0)
                STATUS_TRY(say_lost(shell, lost, begun, start, !is_unknown, reterr));
            if (!skips) *ret_truth = next;
        }
        if (shell->at == start) shell->at++;
    }
    shell->depth--;
    return ends == NULL ? STATUS_OK : shell_refuse_end(shell, line, "a condition or loop", reterr);
}

/* The text with line ends of Unix, so that a backslash in front of one is seen. */
static enum status text_take(struct shell *shell, struct error *reterr)
{
    const struct import_file *file = shell->file;
    void *memory = NULL;
    STATUS_TRY(arena_try(file->arena, file->text_bytes + 1, 1, &memory, reterr));
    char *text = memory, *end = text;
    for (const char *at = file->text; at < file->text + file->text_bytes; at++)
        if (at[0] != '\r' || at[1] != '\n') *end++ = *at;
    *end = '\0';
    shell->at = text;
    shell->end = end;
    return STATUS_OK;
}

enum status settings_read_shell(struct import_file *file, struct error *reterr)
{
    void *memory = NULL;
    uint32_t end = 0;
    enum shell_truth ignored = SHELL_YES;
    STATUS_TRY(arena_try(file->arena, 1, sizeof(struct shell), &memory, reterr));
    struct shell *shell = memory;
    shell->file = file;
    shell->line = 1;
    STATUS_TRY(text_take(shell, reterr));
    STATUS_TRY(run_list(shell, NULL, &end, &ignored, reterr));
    if (shell->commands == 0) STATUS_TRY(shell_keep_variables(shell, reterr));
    if (shell->commands == 0)
        return settings_fail(file, 0, STATUS_NOT_FOUND, reterr,
                             "no command runs a Python program with arguments, such as \"torchrun "
                             "pretrain_gpt.py --num-layers 32\", and none is made of arguments");
    return shell_to_settings(shell, reterr);
}
