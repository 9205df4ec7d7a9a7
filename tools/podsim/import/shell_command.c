/* shell_command.c: the command of a shell script that is wanted, and its arguments as settings. */
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/name.h"
#include "tools/podsim/import/shell.h"

static bool is_program(const struct shell_word *word)
{
    return word->length > 3 && name_same(word->text + word->length - 3, ".py");
}

/* Words of a variable's text: at blanks, as bash divides a variable without quotes. */
static enum status split_text(struct shell *shell, const struct shell_word *word,
                              struct shell_words *words, struct error *reterr)
{
    struct shell_buffer buffer = {.is_open = word->is_open};
    for (uint32_t i = 0, whole = 0; i < word->length; i++) {
        buffer.is_open = word->is_open;
        whole -= whole > 0;
        if (whole == 0) whole = shell_literal(shell, word, i);
        if (whole == 0 && strchr(" \t\n", word->text[i]) != NULL)
            STATUS_TRY(shell_word_end(shell, &buffer, words, reterr));
        else
            STATUS_TRY(shell_push(shell, &buffer, word->text[i], word->line[i], reterr));
    }
    return shell_word_end(shell, &buffer, words, reterr);
}

bool shell_holds_program(const struct shell_word *word)
{
    for (const char *at = strstr(word->text, ".py"); at != NULL; at = strstr(at + 1, ".py"))
        if (at[3] == ' ' || at[3] == '\n') return true;
    return false;
}

bool shell_has_program(const struct shell_words *words)
{
    for (uint32_t i = 0; i < words->count; i++)
        if (is_program(&words->word[i]) || shell_holds_program(&words->word[i])) return true;
    return false;
}

/* --- The command that is wanted --- */

bool shell_runs_program(const struct shell_words *words)
{
    for (uint32_t i = 0; i < words->count; i++)
        if (is_program(&words->word[i])) return true;
    return false;
}

/* A further program of which no argument says that it trains a model. */
static enum status other_add(struct shell *shell, const struct shell_words *words,
                             struct error *reterr)
{
    uint32_t at = 0;
    while (!is_program(&words->word[at])) at++;
    return shell_words_add(shell, &shell->others, &words->word[at], reterr);
}

/* Programs that might train the model as well as the one whose arguments are read. */
static enum status others_say(struct shell *shell, struct error *reterr)
{
    const struct shell_word *const first = &shell->command.word[0];
    if (shell->commands > 1 || shell->are_arguments) return STATUS_OK;
    for (uint32_t i = 0; i < shell->others.count; i++) {
        const char *const because = arena_format(
            shell->file->arena,
            "another program without --num-layers or --micro-batch-size; podsim reads the "
            "arguments of the first, in line %u",
            shell_word_line(first));
        if (because == NULL) return error_no_memory(reterr, "");
        STATUS_TRY(shell_say(shell, shell->others.word[i].text, "",
                             shell_word_line(&shell->others.word[i]), because, reterr));
    }
    return STATUS_OK;
}

static enum status command_keep(struct shell *shell, const struct shell_words *words,
                                struct error *reterr)
{
    bool runs = false, is_model = false;
    for (uint32_t i = 0; i < words->count; i++) {
        runs = runs || is_program(&words->word[i]);
        is_model = is_model || name_after(words->word[i].text, "--num-layers") != NULL ||
                   name_after(words->word[i].text, "--micro-batch-size") != NULL;
    }
    bool const begins = words->count > 0 && name_after(words->word[0].text, "--") != NULL;
    if (!runs && !begins) return STATUS_OK;
    if (!runs && (shell->commands == 0 || shell->are_arguments)) {
        shell->are_arguments = true;
        shell->commands = 1;
        for (uint32_t i = 0; i < words->count; i++)
            STATUS_TRY(shell_words_add(shell, &shell->command, &words->word[i], reterr));
        return STATUS_OK;
    }
    if (!runs && !is_model)
        return shell_say(shell, words->word[0].text, words->count > 1 ? words->word[1].text : "",
                         shell_word_line(&words->word[0]),
                         "no command has it: the line before ends without a backslash", reterr);
    if (!is_model && shell->commands > 0) return other_add(shell, words, reterr);
    if (is_model && shell->commands > 1)
        return settings_fail(shell->file, shell_word_line(&words->word[0]), STATUS_UNSUPPORTED,
                             reterr,
                             "a second command with a model; the first is in line %u, and a file "
                             "of one command makes one scenario",
                             shell_word_line(&shell->command.word[0]));
    shell->command = *words;
    shell->commands = is_model ? 2 : 1;
    return STATUS_OK;
}

enum status shell_keep(struct shell *shell, const struct shell_words *words, struct error *reterr)
{
    struct shell_text text;
    struct shell_words const around = shell->run.around;
    struct shell_words whole = {.word = NULL};
    if (shell_text_find(shell, words, &text)) return shell_run_text(shell, words, &text, reterr);
    if (around.count == 0 || !shell_runs_program(words)) return command_keep(shell, words, reterr);
    for (uint32_t i = 0; i < around.count; i++)
        STATUS_TRY(shell_words_add(shell, &whole, &around.word[i], reterr));
    for (uint32_t i = 0; i < words->count; i++)
        STATUS_TRY(shell_words_add(shell, &whole, &words->word[i], reterr));
    return command_keep(shell, &whole, reterr);
}

enum status shell_say(struct shell *shell, const char *text, const char *value, uint32_t line,
                      const char *because, struct error *reterr)
{
    struct import_setting const setting = {.key = text,
                                           .value = value,
                                           .line = line,
                                           .outcome = IMPORT_NOT_EXPRESSED,
                                           .because = because};
    return settings_add(shell->file, &setting, reterr);
}

/* What podsim does not know by itself: any arguments, or none. */
static bool adds_arguments(const struct shell_word *word)
{
    return word->is_open && word->length > 0 && strchr("$`{", word->text[0]) != NULL;
}

/* "$NAME", "${NAME}", which --with may give. */
static bool is_variable(const struct shell_word *word)
{
    size_t const length = strcspn(word->text, "(`%#/[^,@*");
    return word->text[0] == '$' && word->text[length] == '\0';
}

/* How many words behind a key are its values. In front of the program stand commands that start it,
 * whose options have one value at most: "srun --nodes 2 bash -c torchrun train.py". */
static uint32_t values_count(const struct shell_words *words, uint32_t key)
{
    uint32_t program = 0, count = 0;
    while (program < words->count && !is_program(&words->word[program])) program++;
    bool const is_before = program < words->count && key < program;
    bool const is_given = strchr(words->word[key].text, '=') != NULL;
    for (uint32_t i = key + 1; i < words->count; i++, count++) {
        const struct shell_word *const word = &words->word[i];
        bool const is_other = word->text[0] == '-' || is_given || count == 1;
        if (name_after(word->text, "--") != NULL || is_program(word)) break;
        if ((is_before && is_other) || (count > 0 && adds_arguments(word))) break;
    }
    return count;
}

enum status shell_to_settings(struct shell *shell, struct error *reterr)
{
    const struct shell_words *words = &shell->command;
    struct arena *arena = shell->file->arena;
    STATUS_TRY(others_say(shell, reterr));
    for (uint32_t i = 0; i < words->count; i++) {
        const struct shell_word *word = &words->word[i];
        if (adds_arguments(word))
            STATUS_TRY(shell_say(shell, word->text, "", shell_word_line(word),
                                 is_variable(word) ? IMPORT_OPEN
                                                   : "podsim does not know what it stands for",
                                 reterr));
        if (is_program(word)) shell->file->program = word->text;
        if (is_program(word)) shell->file->program_line = shell_word_line(word);
        if (name_after(word->text, "--") == NULL || word->length == 2) continue;
        size_t const name = strcspn(word->text, "=");
        struct shell_words more = {.word = &words->word[i + 1], .count = values_count(words, i)};
        const char *value = word->text[name] == '=' ? word->text + name + 1 : "";
        i += more.count;
        uint32_t const values = more.count + (word->text[name] == '=');
        if (more.count > 0) STATUS_TRY(shell_join(shell, &more, reterr));
        if (more.count > 0) value = more.word[0].text;
        struct import_setting const setting = {
            .key = arena_format(arena, "%.*s", (int)name, word->text),
            .value = value,
            .line = shell_word_line(word),
            .form = values == 0   ? IMPORT_FLAG
                    : values == 1 ? IMPORT_TEXT
                                  : IMPORT_LIST};
        if (setting.key == NULL || value == NULL) return error_no_memory(reterr, "");
        STATUS_TRY(settings_add(shell->file, &setting, reterr));
    }
    return STATUS_OK;
}

enum status shell_keep_variables(struct shell *shell, struct error *reterr)
{
    shell->run.in_variables = true;
    for (uint32_t i = 0; shell->commands == 0 && i < shell->variable_count; i++)
        for (uint32_t w = 0; w < shell->variable[i].words.count; w++)
            if (shell_holds_program(&shell->variable[i].words.word[w]))
                STATUS_TRY(shell_keep(shell, &shell->variable[i].words, reterr));
    if (shell->commands > 0 || shell->tally.program > 0) return STATUS_OK;
    for (uint32_t i = 0; i < shell->variable_count; i++) {
        struct shell_words split = {.word = NULL};
        for (uint32_t w = 0; w < shell->variable[i].words.count; w++)
            STATUS_TRY(
                shell->variable[i].is_array
                    ? shell_words_add(shell, &split, &shell->variable[i].words.word[w], reterr)
                    : split_text(shell, &shell->variable[i].words.word[w], &split, reterr));
        STATUS_TRY(shell_keep(shell, &split, reterr));
    }
    return STATUS_OK;
}
