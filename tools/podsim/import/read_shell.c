/*
 * read_shell.c: which arguments a script of the shell gives to the Python program that it runs.
 *
 * Bash's grammar as far as such scripts go: lists, pipes, "&&" and "||" of commands. Nothing is
 * run. Arguments under a condition that is not known from the file are left out, and said to be.
 */
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/name.h"
#include "tools/podsim/import/shell.h"

enum status shell_run_one(struct shell *shell, enum shell_truth *ret_truth, struct error *reterr)
{
    static const char *const closing[] = {"then", "elif", "else", "fi", "do", "done", "esac", "}"};
    bool is_one = false;
    for (uint32_t i = 0; i < sizeof closing / sizeof *closing; i++)
        if (shell_is_at(shell, closing[i]))
            return settings_fail(shell->file, shell->line, STATUS_INVALID, reterr,
                                 "\"%s\" without what it belongs to", closing[i]);
    STATUS_TRY(shell_run_compound(shell, &is_one, ret_truth, reterr));
    STATUS_TRY(is_one ? shell_read_redirections(shell, reterr)
                      : shell_run_command(shell, ret_truth, reterr));
    if (shell->run.skipping > 0) *ret_truth = SHELL_MAYBE;
    return STATUS_OK;
}

/* Commands with "|" between run in shells of their own, whose assignments and `exit` end there. */
static enum status run_pipeline(struct shell *shell, enum shell_truth *ret_truth,
                                struct error *reterr)
{
    uint32_t const mark = shell->undo_count;
    struct shell_run const run = shell->run;
    bool is_contrary = false, is_plain = true;
    while (shell_is_at(shell, "!") || shell_is_at(shell, "time")) {
        is_contrary = is_contrary != shell_is_at(shell, "!");
        shell->at += shell_is_at(shell, "!") ? 1 : 4;
        shell_skip_blanks(shell);
        if (shell_is_at(shell, "-p")) shell->at += 2;
        shell_skip_blanks(shell);
    }
    STATUS_TRY(shell_run_one(shell, ret_truth, reterr));
    for (shell_skip_blanks(shell); shell_peek(shell, 0) == '|' && shell_peek(shell, 1) != '|';
         shell_skip_blanks(shell)) {
        shell->at += shell_peek(shell, 1) == '&' ? 2 : 1;
        is_plain = is_plain && *ret_truth == SHELL_YES;
        shell_restore(shell, mark);
        shell->run = run;
        shell_skip_lines(shell);
        STATUS_TRY(shell_run_one(shell, ret_truth, reterr));
        shell_restore(shell, mark);
        shell->run = run;
    }
    if (*ret_truth == SHELL_YES && !is_plain) *ret_truth = SHELL_LIKELY; /* As of pipefail. */
    if (is_contrary) *ret_truth = shell_contrary(*ret_truth);
    return STATUS_OK;
}

/* Says what counts as a program is taken to succeed. */
static enum status say_likely(struct shell *shell, uint32_t assigned, uint32_t line,
                              const char *start, struct error *reterr)
{
    if (shell->tally.assigned == assigned || shell->run.skipping > 0) return STATUS_OK;
    const char *const key =
        arena_format(shell->file->arena, "%.*s", (int)strcspn(start, "\n;"), start);
    if (key == NULL) return error_no_memory(reterr, "");
    return shell_say(shell, key, "", line,
                     "podsim does not run it, and takes it to succeed: the assignments count",
                     reterr);
}

/* After `set -e` a failure that no condition has ends the script. */
static enum status say_failure(struct shell *shell, uint32_t line, const char *start,
                               struct error *reterr)
{
    bool const ends = shell->run.ends_at_failure && shell->run.conditions == 0 && *start != '!';
    if (!ends || shell->run.skipping > 0) return STATUS_OK;
    const char *const key =
        arena_format(shell->file->arena, "%.*s", (int)strcspn(start, "\n;"), start);
    if (key == NULL) return error_no_memory(reterr, "");
    return shell_say(shell, key, "", line, SHELL_MAY_END, reterr);
}

enum shell_truth shell_truth_of_both(enum shell_truth first, enum shell_truth second, bool is_and)
{
    if (first == SHELL_MAYBE) return SHELL_MAYBE;
    if (first == SHELL_LIKELY && !is_and) return SHELL_LIKELY;
    if (first == SHELL_LIKELY) return second == SHELL_YES ? SHELL_LIKELY : second;
    return (first == SHELL_YES) == is_and ? second : first;
}

/* Pipes with "&&" and "||" between, up to "&", ";" or the end of the line. */
static enum status run_chain(struct shell *shell, enum shell_truth *ret_truth, struct error *reterr)
{
    const char *const start = shell->at;
    uint32_t const line = shell->line, assumed = shell->tally.assumed, mark = shell->undo_count;
    uint32_t const guessed = shell->tally.guessed;
    struct shell_run const run = shell->run;
    shell->commands_open++;
    STATUS_TRY(run_pipeline(shell, ret_truth, reterr));
    shell_skip_blanks(shell);
    char const behind = shell_peek(shell, 0);
    if (*ret_truth == SHELL_NO && behind != '&' && behind != '|')
        STATUS_TRY(say_failure(shell, line, start, reterr));
    for (; (shell_peek(shell, 0) == '&' || shell_peek(shell, 0) == '|') &&
           shell_peek(shell, 1) == shell_peek(shell, 0);
         shell_skip_blanks(shell)) {
        bool const is_and = shell_peek(shell, 0) == '&', is_empty = shell->tally.assumed > assumed;
        bool const is_likely = *ret_truth == SHELL_LIKELY && is_and;
        bool const runs = *ret_truth == (is_and ? SHELL_YES : SHELL_NO) || is_likely;
        bool const is_unknown = *ret_truth == SHELL_MAYBE || *ret_truth == SHELL_LIKELY;
        uint32_t const lost = shell->tally.lost, assigned = shell->tally.assigned;
        enum shell_truth next = SHELL_YES;
        shell->at += 2;
        shell_skip_lines(shell);
        shell->run.skipping += !runs;
        bool const presumes = shell->tally.guessed > guessed || is_likely;
        shell->presuming += presumes;
        STATUS_TRY(run_pipeline(shell, &next, reterr));
        shell->presuming -= presumes;
        shell->run.skipping -= !runs;
        if (!runs && (is_unknown || is_empty) && shell->run.skipping == 0)
            STATUS_TRY(shell_say_lost(shell, lost, line, start, !is_unknown, reterr));
        if (is_likely) STATUS_TRY(say_likely(shell, assigned, line, start, reterr));
        *ret_truth = shell_truth_of_both(*ret_truth, next, is_and);
    }
    if (shell_peek(shell, 0) == '&') { /* In a shell of its own. */
        shell->at++;
        shell_restore(shell, mark);
        shell->run = run;
        *ret_truth = SHELL_YES;
    }
    if (--shell->commands_open == 0) shell->undo_count = 0;
    return STATUS_OK;
}

/* ")" and ";;" end no word, so anything may stand behind them. */
static bool is_at_end(const struct shell *shell, const char *end)
{
    if (end[0] != ')' && end[0] != ';') return shell_is_at(shell, end);
    return shell_peek(shell, 0) == end[0] && (end[1] == '\0' || shell_peek(shell, 1) == end[1]);
}

static bool is_at_any(const struct shell *shell, const char *const *ends)
{
    for (uint32_t i = 0; ends != NULL && ends[i] != NULL; i++)
        if (is_at_end(shell, ends[i])) return true;
    return false;
}

enum status shell_run_list(struct shell *shell, const struct shell_list *list,
                           enum shell_truth *ret_truth, struct error *reterr)
{
    if (shell->depth == IMPORT_DEPTH_MAX)
        return settings_fail(shell->file, shell->line, STATUS_LIMIT, reterr,
                             "conditions within one another more than %d deep", IMPORT_DEPTH_MAX);
    shell->depth++;
    *ret_truth = SHELL_YES;
    for (shell_skip_lines(shell); shell->at < shell->end && !is_at_any(shell, list->ends);
         shell_skip_lines(shell)) {
        const char *const start = shell->at;
        STATUS_TRY(run_chain(shell, ret_truth, reterr));
        shell_skip_blanks(shell);
        char const next = shell_peek(shell, 0);
        bool const is_wrong = next == '(' || (next == ')' && !is_at_any(shell, list->ends));
        if (shell->at == start || is_wrong)
            return settings_fail(shell->file, shell->line, STATUS_INVALID, reterr,
                                 "\"%c\" is not expected here", next);
    }
    shell->depth--;
    return shell->at >= shell->end && list->ends != NULL
               ? shell_refuse_end(shell, list->line, list->opened, reterr)
               : STATUS_OK;
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
    struct shell_list const whole = {.ends = NULL};
    enum shell_truth ignored = SHELL_YES;
    STATUS_TRY(arena_try(file->arena, 1, sizeof(struct shell), &memory, reterr));
    struct shell *shell = memory;
    shell->file = file;
    shell->line = 1;
    STATUS_TRY(text_take(shell, reterr));
    STATUS_TRY(shell_run_list(shell, &whole, &ignored, reterr));
    bool const is_cut = shell->run.ended > 0 && shell->tally.lost > shell->run.lost_before;
    if (is_cut)
        STATUS_TRY(shell_say(shell, "exit", "", shell->run.ended,
                             "the script ends here; what stands behind it is left out", reterr));
    if (shell->commands == 0 && is_cut)
        return settings_fail(
            file, shell->run.ended, STATUS_NOT_FOUND, reterr,
            "the script ends here, before it runs a Python program; variables that "
            "it takes from its environment are given by --with NAME=VALUE");
    if (shell->commands == 0) STATUS_TRY(shell_keep_variables(shell, reterr));
    if (shell->commands == 0 && shell->tally.program > 0)
        return settings_fail(
            file, shell->tally.program, STATUS_NOT_FOUND, reterr,
            "the command that runs a Python program stands in a function, in a loop or under a "
            "condition that is false or not known, which podsim leaves out, and there is no other; "
            "write it outside of these");
    if (shell->commands == 0)
        return settings_fail(file, 0, STATUS_NOT_FOUND, reterr,
                             "no command runs a Python program with arguments, such as \"torchrun "
                             "pretrain_gpt.py --num-layers 32\", and none is made of arguments");
    return shell_to_settings(shell, reterr);
}
