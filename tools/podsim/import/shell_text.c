/*
 * shell_text.c: texts with commands, as `eval` and `bash -c "$COMMAND"` have them.
 *
 * They are read as the script is, with its conditions, loops and variables. `eval` runs its text in
 * the shell itself; other texts have a shell of their own, and what they assign ends with them.
 */
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/name.h"
#include "tools/podsim/import/shell.h"

enum { ARGUMENTS_NAMED = 10 }; /* $0 to $9. */

static const char *const argument_names[ARGUMENTS_NAMED] = {"0", "1", "2", "3", "4",
                                                            "5", "6", "7", "8", "9"};

/* --- Which words are texts --- */

/* "-c", "-lc" */
static bool is_option(const struct shell_word *word)
{
    return word->length > 1 && word->text[0] == '-' && word->text[1] != '-' &&
           word->text[word->length - 1] == 'c';
}

static bool is_shell(const struct shell_word *word)
{
    static const char *const shells[] = {"bash", "sh", "dash", "ksh", "zsh", NULL};
    const char *const slash = strrchr(word->text, '/');
    return shells[name_find(slash != NULL ? slash + 1 : word->text, shells)] != NULL;
}

/* Of a shell's "-c" a text may have its program in a variable. */
static bool is_text(const struct shell *shell, const struct shell_words *words, uint32_t at)
{
    const struct shell_word *const word = &words->word[at];
    bool const is_behind = at > 0 && is_option(word - 1);
    bool const is_of_shell = is_behind && at > 1 && is_shell(word - 2);
    if (!shell_holds_program(word))
        return is_of_shell && !word->is_open && strchr(word->text, '$') != NULL;
    return shell->run.in_variables || is_behind || strstr(word->text, " --") != NULL;
}

bool shell_text_find(const struct shell *shell, const struct shell_words *words,
                     struct shell_text *ret_text)
{
    bool const is_eval = words->count > 1 && name_same(words->word[0].text, "eval");
    *ret_text = (struct shell_text){.at = 1, .kind = SHELL_TEXT_EVAL};
    if (is_eval && shell_has_program(words)) return true;
    for (uint32_t i = 0; i < words->count; i++) {
        struct shell_words const one = {.word = &words->word[i], .count = 1};
        ret_text->at = i;
        ret_text->kind = shell->run.in_variables                   ? SHELL_TEXT_VARIABLE
                         : i > 0 && is_option(&words->word[i - 1]) ? SHELL_TEXT_ARGUMENTS
                                                                   : SHELL_TEXT_REMOTE;
        if (strstr(words->word[i].text, "python") != NULL && !is_text(shell, words, i))
            return false;
        if (is_text(shell, words, i)) return true;
        if (shell_runs_program(&one)) return false;
    }
    return false;
}

/* --- Arguments behind a text --- */

/* $0, $1 and so on, $@, $* and $#. Those that are not there have no value. */
static enum status arguments_set(struct shell *shell, const struct shell_words *arguments,
                                 struct error *reterr)
{
    struct shell_words const none = {.word = NULL};
    struct shell_words const rest = {.word = arguments->word + 1,
                                     .count = arguments->count > 0 ? arguments->count - 1 : 0};
    const char *const count = arena_format(shell->file->arena, "%u", rest.count);
    if (count == NULL) return error_no_memory(reterr, "");
    uint32_t *const line = arena_take(shell->file->arena, strlen(count), sizeof *line);
    if (line == NULL) return error_no_memory(reterr, "");
    for (uint32_t i = 0; i < strlen(count); i++) line[i] = shell->line;
    struct shell_word number = {.text = count, .line = line, .length = (uint32_t)strlen(count)};
    struct shell_words const counted = {.word = &number, .count = 1};
    for (uint32_t i = arguments->count > 0 ? 0 : 1; i < ARGUMENTS_NAMED; i++) {
        struct shell_words const one = {.word = arguments->word + i, .count = 1};
        STATUS_TRY(shell_assign(shell, argument_names[i], /* is_array= */ true,
                                /* is_more= */ false, i < arguments->count ? &one : &none, reterr));
    }
    STATUS_TRY(shell_assign(shell, "@", /* is_array= */ true, /* is_more= */ false, &rest, reterr));
    STATUS_TRY(shell_assign(shell, "*", /* is_array= */ true, /* is_more= */ false, &rest, reterr));
    return shell_assign(shell, "#", /* is_array= */ false, /* is_more= */ false, &counted, reterr);
}

enum status shell_arguments_forget(struct shell *shell, struct error *reterr)
{
    static const char *const all[] = {"@", "*", "#"};
    if (shell_variable_find(shell, all[0]) == NULL) return STATUS_OK;
    for (uint32_t i = 0; i < ARGUMENTS_NAMED + sizeof all / sizeof *all; i++) {
        const char *const name = i < ARGUMENTS_NAMED ? argument_names[i] : all[i - ARGUMENTS_NAMED];
        STATUS_TRY(shell_forget(shell, name, reterr));
        shell_variable_use(shell, name);
    }
    return STATUS_OK;
}

static bool is_used(const struct shell *shell, const char *name)
{
    const struct shell_variable *const variable = shell_variable_find(shell, name);
    return variable != NULL && variable->is_used;
}

/* Says which arguments a text does not use. Its first is a name by custom, unless it is an option.
 */
static enum status arguments_say(struct shell *shell, const struct shell_words *arguments,
                                 struct error *reterr)
{
    bool const all = is_used(shell, "@") || is_used(shell, "*");
    for (uint32_t i = 0; i < arguments->count; i++) {
        const struct shell_word *const word = &arguments->word[i];
        bool const has_name = i < ARGUMENTS_NAMED && is_used(shell, argument_names[i]);
        if (has_name || (i > 0 && all) || (i == 0 && word->text[0] != '-')) continue;
        const char *const because = arena_format(shell->file->arena,
                                                 "it is $%u of the text in front of it, not an "
                                                 "argument of the program, and the text does "
                                                 "not use it",
                                                 i);
        if (because == NULL) return error_no_memory(reterr, "");
        STATUS_TRY(shell_say(shell, word->text, "", shell_word_line(word), because, reterr));
    }
    return STATUS_OK;
}

/* --- Running --- */

/* The text with blanks for line ends: of a variable whose use is not known. */
static enum status lines_join(struct shell *shell, struct shell_word *word, struct error *reterr)
{
    char *const text = arena_format(shell->file->arena, "%s", word->text);
    if (text == NULL) return error_no_memory(reterr, "");
    for (char *at = text; *at != '\0' && strchr(text, '#') == NULL; at++)
        if (*at == '\n') *at = ' ';
    word->text = text;
    return STATUS_OK;
}

/* Commands of a word, in the place of the script. */
static enum status word_run(struct shell *shell, const struct shell_word *word,
                            struct error *reterr)
{
    struct shell_list const whole = {.ends = NULL};
    enum shell_truth ignored = SHELL_YES;
    const char *const at = shell->at, *const end = shell->end;
    const struct shell_word *const source = shell->run.source;
    struct shell_ending const ending = shell->ending;
    uint32_t const line = shell->line;
    shell->at = word->text;
    shell->end = word->text + word->length;
    shell->line = shell_word_line(word);
    shell->run.source = word;
    shell->ending = (struct shell_ending){.text = NULL};
    STATUS_TRY(shell_run_list(shell, &whole, &ignored, reterr));
    shell->at = at;
    shell->end = end;
    shell->line = line;
    shell->run.source = source;
    shell->ending = ending;
    return STATUS_OK;
}

/* What stands behind an `exit` of the text. */
static enum status end_say(struct shell *shell, uint32_t commands, struct error *reterr)
{
    uint32_t const line = shell->run.ended;
    if (line == 0 || shell->tally.lost == shell->run.lost_before) return STATUS_OK;
    if (shell->commands == commands)
        return settings_fail(shell->file, line, STATUS_NOT_FOUND, reterr,
                             "the text of a command ends here, before it runs a Python program");
    return shell_say(shell, "exit", "", line,
                     "the text of a command ends here; what stands behind it is left out", reterr);
}

/* A text that a shell of its own runs. */
static enum status child_run(struct shell *shell, const struct shell_word *word,
                             const struct shell_words *arguments, enum shell_text_kind kind,
                             struct error *reterr)
{
    uint32_t const mark = shell->undo_count, commands = shell->commands;
    uint32_t const assigned = shell->tally.assigned;
    struct shell_run const run = shell->run;
    bool const has_arguments = kind == SHELL_TEXT_ARGUMENTS;
    shell->run.in_variables = false;
    shell->run.children += kind != SHELL_TEXT_VARIABLE;
    shell->commands_open++;
    if (has_arguments) STATUS_TRY(arguments_set(shell, arguments, reterr));
    STATUS_TRY(word_run(shell, word, reterr));
    STATUS_TRY(end_say(shell, commands, reterr));
    if (has_arguments) STATUS_TRY(arguments_say(shell, arguments, reterr));
    shell->commands_open--;
    shell_restore(shell, mark);
    shell->tally.assigned = assigned;
    shell->run = run;
    return STATUS_OK;
}

enum status shell_run_text(struct shell *shell, const struct shell_words *words,
                           const struct shell_text *text, struct error *reterr)
{
    struct shell_words rest = {.word = words->word + text->at, .count = words->count - text->at};
    struct shell_words const arguments = {.word = rest.word + 1, .count = rest.count - 1};
    struct shell_words const around = shell->run.around;
    struct shell_words front = {.word = NULL};
    if (text->kind != SHELL_TEXT_ARGUMENTS && rest.count > 1)
        STATUS_TRY(shell_join(shell, &rest, reterr));
    struct shell_word word = rest.word[0];
    if (text->kind == SHELL_TEXT_EVAL) return word_run(shell, &word, reterr);
    if (text->kind == SHELL_TEXT_VARIABLE) STATUS_TRY(lines_join(shell, &word, reterr));
    for (uint32_t i = 0; i < around.count; i++)
        STATUS_TRY(shell_words_add(shell, &front, &around.word[i], reterr));
    for (uint32_t i = 0; i < text->at; i++)
        STATUS_TRY(shell_words_add(shell, &front, &words->word[i], reterr));
    shell->run.around = front;
    STATUS_TRY(child_run(shell, &word, &arguments, text->kind, reterr));
    shell->run.around = around;
    return STATUS_OK;
}
