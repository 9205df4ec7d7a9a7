/*
 * shell_compound.c: compound commands of a shell script.
 *
 * Conditions choose between lists. Loops, choices and bodies of functions are read as what is run
 * is, so that each ends where bash ends it, and what they would change is counted as left out.
 */
#include <ctype.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/name.h"
#include "tools/podsim/import/shell.h"

enum status shell_say_lost(struct shell *shell, uint32_t lost, uint32_t line, const char *start,
                           bool is_empty, struct error *reterr)
{
    if (shell->tally.lost == lost) return STATUS_OK;
    const char *const because = arena_format(
        shell->file->arena, "%s; what stands under it is left out: %u %s",
        is_empty ? "a variable is taken as empty, as neither the file nor --with assigns it"
                 : "it is not known from the file",
        shell->tally.lost - lost,
        shell->tally.lost - lost == 1 ? "argument or assignment" : "arguments and assignments");
    const char *const key =
        arena_format(shell->file->arena, "%.*s", (int)strcspn(start, "\n;"), start);
    if (because == NULL || key == NULL) return error_no_memory(reterr, "");
    return shell_say(shell, key, "", line, because, reterr);
}

static enum status expect(struct shell *shell, const char *word, struct error *reterr)
{
    shell_skip_lines(shell);
    if (shell_is_at(shell, word)) {
        shell->at += strlen(word);
        return STATUS_OK;
    }
    return settings_fail(shell->file, shell->line, STATUS_INVALID, reterr,
                         "\"%s\" is expected here, but there is \"%.*s\"", word,
                         (int)strcspn(shell->at, " \t\n;"), shell->at);
}

/* --- Conditions --- */

/* The condition of `if` or `elif`; one behind a branch that is taken, or may be, is not run. */
static enum status run_condition(struct shell *shell, uint32_t line, bool is_decided,
                                 enum shell_truth *ret_truth, struct error *reterr)
{
    static const char *const then[] = {"then", NULL};
    struct shell_list const list = {.ends = then, .opened = "if", .line = line};
    shell->run.skipping += is_decided;
    shell->run.conditions++;
    STATUS_TRY(shell_run_list(shell, &list, ret_truth, reterr));
    shell->run.conditions--;
    shell->run.skipping -= is_decided;
    if (is_decided || *ret_truth == SHELL_LIKELY) *ret_truth = SHELL_MAYBE;
    shell->at += strlen(then[0]);
    return STATUS_OK;
}

static enum status run_if(struct shell *shell, enum shell_truth *ret_truth, struct error *reterr)
{
    static const char *const ends[] = {"elif", "else", "fi", NULL};
    bool taken = false, unsure = false;
    uint32_t const assumed = shell->tally.assumed, guessed = shell->tally.guessed;
    struct shell_list const list = {.ends = ends, .opened = "if", .line = shell->line};
    *ret_truth = SHELL_MAYBE;
    do {
        enum shell_truth truth = SHELL_YES, ignored;
        uint32_t const line = shell->line, lost = shell->tally.lost;
        bool const is_else = shell_is_at(shell, "else");
        const char *const start = shell->at;
        shell->at += shell_is_at(shell, "if") ? 2 : 4;
        if (!is_else) STATUS_TRY(run_condition(shell, list.line, taken || unsure, &truth, reterr));
        if (truth == SHELL_MAYBE && !taken) unsure = true;
        bool const runs = truth == SHELL_YES && !taken && !unsure;
        bool const is_unknown = unsure && !taken, is_empty = shell->tally.assumed > assumed;
        shell->run.skipping += !runs;
        bool const presumes = shell->tally.guessed > guessed;
        shell->presuming += presumes;
        STATUS_TRY(shell_run_list(shell, &list, &ignored, reterr));
        shell->presuming -= presumes;
        shell->run.skipping -= !runs;
        if (!runs && (is_unknown || is_empty) && shell->run.skipping == 0)
            STATUS_TRY(shell_say_lost(shell, lost, line, start, !is_unknown, reterr));
        taken = taken || truth == SHELL_YES;
    } while (!shell_is_at(shell, "fi"));
    shell->at += 2;
    return STATUS_OK;
}

/* --- What is skipped, and said to be --- */

/* "NAME in WORDS", "NAME" or "((...))". `ret_name`: of the variable that the loop changes. */
static enum status skip_names(struct shell *shell, const char **ret_name, struct error *reterr)
{
    struct shell_words dropped = {.word = NULL};
    uint32_t const line = shell->line;
    shell_skip_blanks(shell);
    if (shell_peek(shell, 0) == '(' && shell_peek(shell, 1) == '(') {
        const char *const start = shell->at + 2 + strspn(shell->at + 2, " \t");
        const char *const end = shell_closing(shell, shell->at + 2, '(', ')');
        if (end == NULL || end[1] != ')') return shell_refuse_end(shell, line, "((", reterr);
        *ret_name =
            arena_format(shell->file->arena, "%.*s", (int)strcspn(start, " \t+-*/%<>=;)"), start);
        for (; shell->at < end + 2; shell->at++) shell->line += *shell->at == '\n';
    } else {
        uint32_t length = 0;
        while (isalnum((unsigned char)shell_peek(shell, length)) ||
               shell_peek(shell, length) == '_')
            length++;
        *ret_name = arena_format(shell->file->arena, "%.*s", (int)length, shell->at);
        shell->at += length;
        shell_skip_lines(shell);
        if (shell_is_at(shell, "in")) {
            shell->at += 2;
            STATUS_TRY(shell_read_command(shell, &dropped, reterr));
        }
    }
    return *ret_name == NULL ? error_no_memory(reterr, "") : STATUS_OK;
}

static enum status skip_loop(struct shell *shell, enum shell_truth *ret_truth, struct error *reterr)
{
    static const char *const begins[] = {"do", NULL}, *const ends[] = {"done", NULL};
    uint32_t const line = shell->line, lost = shell->tally.lost;
    const char *const start = shell->at;
    const char *name = "";
    bool const has_name = shell_is_at(shell, "for") || shell_is_at(shell, "select");
    shell->at += strcspn(shell->at, " \t\r\n;&|()<>");
    const char *const opened =
        arena_format(shell->file->arena, "%.*s", (int)(shell->at - start), start);
    if (opened == NULL) return error_no_memory(reterr, "");
    struct shell_list const head = {.ends = begins, .opened = opened, .line = line};
    struct shell_list const body = {.ends = ends, .opened = opened, .line = line};
    shell->run.skipping++;
    if (has_name)
        STATUS_TRY(skip_names(shell, &name, reterr));
    else
        STATUS_TRY(shell_run_list(shell, &head, ret_truth, reterr));
    STATUS_TRY(expect(shell, begins[0], reterr));
    STATUS_TRY(shell_run_list(shell, &body, ret_truth, reterr));
    STATUS_TRY(expect(shell, ends[0], reterr));
    shell->run.skipping--;
    *ret_truth = SHELL_MAYBE;
    if (shell->run.skipping > 0) return STATUS_OK;
    if (name[0] != '\0') STATUS_TRY(shell_forget(shell, name, reterr));
    return shell_say_lost(shell, lost, line, start, /* is_empty= */ false, reterr);
}

/* "a | b)" */
static enum status skip_patterns(struct shell *shell, struct error *reterr)
{
    shell_skip_blanks(shell);
    shell->at += shell_peek(shell, 0) == '(';
    for (;;) {
        struct shell_words dropped = {.word = NULL};
        shell_skip_blanks(shell);
        const char *const before = shell->at;
        STATUS_TRY(shell_read_word(shell, &dropped, reterr));
        shell_skip_blanks(shell);
        if (shell->at == before || strchr("|)", shell_peek(shell, 0)) == NULL ||
            shell->at >= shell->end)
            return settings_fail(shell->file, shell->line, STATUS_INVALID, reterr,
                                 "\"%.*s\" is no pattern of a case that podsim reads",
                                 (int)strcspn(before, "\n"), before);
        if (*shell->at++ == ')') return STATUS_OK;
    }
}

static enum status skip_case(struct shell *shell, enum shell_truth *ret_truth, struct error *reterr)
{
    static const char *const ends[] = {";;", ";&", "esac", NULL};
    struct shell_words dropped = {.word = NULL};
    uint32_t const line = shell->line, lost = shell->tally.lost;
    const char *const start = shell->at;
    struct shell_list const list = {.ends = ends, .opened = "case", .line = line};
    shell->at += strlen("case");
    shell->run.skipping++;
    shell_skip_blanks(shell);
    STATUS_TRY(shell_read_word(shell, &dropped, reterr));
    STATUS_TRY(expect(shell, "in", reterr));
    for (shell_skip_lines(shell); !shell_is_at(shell, "esac"); shell_skip_lines(shell)) {
        if (shell->at >= shell->end) return shell_refuse_end(shell, line, "case", reterr);
        STATUS_TRY(skip_patterns(shell, reterr));
        STATUS_TRY(shell_run_list(shell, &list, ret_truth, reterr));
        while (shell_peek(shell, 0) == ';' || shell_peek(shell, 0) == '&') shell->at++;
    }
    STATUS_TRY(expect(shell, "esac", reterr));
    shell->run.skipping--;
    *ret_truth = SHELL_MAYBE;
    return shell->run.skipping > 0
               ? STATUS_OK
               : shell_say_lost(shell, lost, line, start, /* is_empty= */ false, reterr);
}

/* The length up to the body, of "name()" or "function name"; 0: there is no function. */
static uint32_t function_at(const struct shell *shell)
{
    bool const is_named = shell_is_at(shell, "function");
    uint32_t at = is_named ? (uint32_t)strlen("function") : 0;
    while (is_named && isblank((unsigned char)shell_peek(shell, at))) at++;
    uint32_t const start = at;
    while (shell_peek(shell, at) != '\0' &&
           strchr(" \t\r\n;&|<>()'\"$`\\=#", shell_peek(shell, at)) == NULL)
        at++;
    uint32_t const end = at;
    while (isblank((unsigned char)shell_peek(shell, at))) at++;
    if (end == start || shell_peek(shell, at) != '(') return is_named ? end : 0;
    at++;
    while (isblank((unsigned char)shell_peek(shell, at))) at++;
    return shell_peek(shell, at) == ')' ? at + 1 : is_named ? end : 0;
}

static enum status skip_function(struct shell *shell, uint32_t length, enum shell_truth *ret_truth,
                                 struct error *reterr)
{
    uint32_t const line = shell->line, lost = shell->tally.lost;
    const char *const start = shell->at;
    bool is_one = false;
    shell->at += length;
    shell_skip_lines(shell);
    shell->run.skipping++;
    if (function_at(shell) == 0) STATUS_TRY(shell_run_compound(shell, &is_one, ret_truth, reterr));
    shell->run.skipping--;
    *ret_truth = SHELL_YES;
    if (!is_one)
        return settings_fail(shell->file, line, STATUS_INVALID, reterr,
                             "a function whose body does not stand in { }");
    return shell->run.skipping > 0
               ? STATUS_OK
               : shell_say_lost(shell, lost, line, start, /* is_empty= */ false, reterr);
}

/* --- Groups and arithmetic --- */

static enum status run_group(struct shell *shell, enum shell_truth *ret_truth, struct error *reterr)
{
    static const char *const ends[] = {"}", NULL};
    struct shell_list const list = {.ends = ends, .opened = "{", .line = shell->line};
    shell->at++;
    STATUS_TRY(shell_run_list(shell, &list, ret_truth, reterr));
    return expect(shell, ends[0], reterr);
}

/* What it assigns, and its `exit`, end with it. */
static enum status run_subshell(struct shell *shell, enum shell_truth *ret_truth,
                                struct error *reterr)
{
    static const char *const ends[] = {")", NULL};
    uint32_t const mark = shell->undo_count;
    struct shell_run const run = shell->run;
    struct shell_list const list = {.ends = ends, .opened = "(", .line = shell->line};
    shell->at++;
    STATUS_TRY(shell_run_list(shell, &list, ret_truth, reterr));
    shell->at++;
    shell_restore(shell, mark);
    shell->run = run;
    return STATUS_OK;
}

/* A comparison in (( )), or an assignment, which is not run and said not to be. */
static enum status run_arithmetic(struct shell *shell, const char *end, enum shell_truth *ret_truth,
                                  struct error *reterr)
{
    const char *const start = shell->at;
    uint32_t const line = shell->line;
    const char *const text =
        arena_format(shell->file->arena, "%.*s", (int)(end - start - 2), start + 2);
    const char *const whole =
        arena_format(shell->file->arena, "%.*s", (int)(end + 2 - start), start);
    if (text == NULL || whole == NULL) return error_no_memory(reterr, "");
    for (; shell->at < end + 2; shell->at++) shell->line += *shell->at == '\n';
    bool const changes = shell_arithmetic_changes(text);
    *ret_truth = changes ? SHELL_MAYBE : shell_test_arithmetic(shell, text);
    shell->tally.lost += changes && shell->run.skipping > 0;
    if (!changes || shell->run.skipping > 0) return STATUS_OK;
    return shell_say(shell, whole, "", line, SHELL_NOT_RUN, reterr);
}

enum status shell_run_compound(struct shell *shell, bool *ret_is_one, enum shell_truth *ret_truth,
                               struct error *reterr)
{
    static const struct {
        const char *word;
        enum status (*run)(struct shell *shell, enum shell_truth *ret_truth, struct error *reterr);
    } compounds[] = {{"if", run_if},       {"case", skip_case},  {"for", skip_loop},
                     {"while", skip_loop}, {"until", skip_loop}, {"select", skip_loop},
                     {"{", run_group}};
    *ret_is_one = true;
    for (uint32_t i = 0; i < sizeof compounds / sizeof *compounds; i++)
        if (shell_is_at(shell, compounds[i].word))
            return compounds[i].run(shell, ret_truth, reterr);
    if (shell_peek(shell, 0) == '(') {
        const char *const end =
            shell_peek(shell, 1) == '(' ? shell_closing(shell, shell->at + 2, '(', ')') : NULL;
        return end != NULL && end[1] == ')' ? run_arithmetic(shell, end, ret_truth, reterr)
                                            : run_subshell(shell, ret_truth, reterr);
    }
    uint32_t const length = function_at(shell);
    *ret_is_one = length > 0;
    return length > 0 ? skip_function(shell, length, ret_truth, reterr) : STATUS_OK;
}
