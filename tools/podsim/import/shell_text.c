/*
 * shell_text.c: commands in one text, as `eval` and `bash -c "$COMMAND"` have it.
 *
 * Simple commands are read with bash's words, quotes and operators, and count as those of the
 * script. A text with more of bash's grammar is refused.
 */
#include <string.h>

#include "sim/base/name.h"
#include "tools/podsim/import/shell.h"

/* Whether a command is run. */
enum place { RUNS, RUNS_NOT, MAY_RUN };

struct reader {
    struct shell *shell;
    const struct shell_word *word;
    struct shell_text *text;
    uint32_t start;           /* Words in front of the text. */
    uint32_t at;              /* In the word. */
    struct shell_buffer part; /* The word under way. */
    enum place place;         /* Of the pipe under way. */
    enum shell_truth before;  /* Of the chain up to it. */
    char link;                /* '&' or '|': "&&" or "||" in front of it; 0: none is. */
    bool is_piped;            /* "|" stands in front of the command under way. */
    bool redirects;           /* The command under way has a redirection. */
    uint32_t ended;           /* The line of an `exit` that is run; 0: none is. */
};

/* Refuses what begins a condition, a loop or the like. */
static enum status refuse(const struct reader *reader, const char *what, struct error *reterr)
{
    return settings_fail(
        reader->shell->file, reader->word->line[reader->at], STATUS_UNSUPPORTED, reterr,
        "the text of a command has \"%s\"; podsim reads commands in a text one after "
        "another, without conditions, loops, groups, functions and texts that "
        "follow a line; write them as lines of the script",
        what);
}

/* --- Words --- */

/* The number in front of a redirection is no word. */
static void number_drop(struct shell_buffer *buffer)
{
    bool const is_number =
        buffer->length > 0 && strspn(buffer->text, "0123456789") == buffer->length;
    if (is_number) *buffer = (struct shell_buffer){.text = NULL};
}

/* The length of "$(...)", "${...}" or "`...`", whatever blanks it has; 0: none is here. */
static uint32_t literal(const struct reader *reader, uint32_t at)
{
    struct shell_word open = *reader->word;
    open.is_open = true;
    return shell_literal(reader->shell, &open, at);
}

/* Behind an opening quote: the place of the one that closes it; the text's length: it is open. */
static uint32_t quote_end(const struct reader *reader, uint32_t at, char quote)
{
    const char *const text = reader->word->text;
    while (at < reader->word->length && text[at] != quote) {
        uint32_t const length = quote == '"' ? literal(reader, at) : 0;
        bool const guards = quote == '"' && text[at] == '\\' && at + 1 < reader->word->length;
        at += length > 0 ? length : guards ? 2 : 1;
    }
    return at;
}

/* At a character that no blank is: past a text in quotes, what a backslash guards, or a command in
 * a word. */
static enum status part_read(struct reader *reader, struct shell_buffer *buffer,
                             struct error *reterr)
{
    const struct shell_word *const word = reader->word;
    uint32_t first = reader->at, length = literal(reader, first);
    char const c = word->text[first];
    bool const is_command = c == '`' || (c == '$' && word->text[first + 1] == '(');
    if (c == '\'' || c == '"') {
        uint32_t const end = quote_end(reader, first + 1, c);
        if (end == word->length)
            return settings_fail(reader->shell->file, word->line[first], STATUS_INVALID, reterr,
                                 "a text in %c is open at the end of a command's text", c);
        first++;
        length = end - first;
        reader->at = end + 1;
        buffer->is_word = true;
    } else if (length == 0 && is_command) {
        return settings_fail(reader->shell->file, word->line[first], STATUS_INVALID, reterr,
                             "%s is open at the end of a command's text", c == '`' ? "`" : "$(");
    } else {
        first += c == '\\' && length == 0 && first + 1 < word->length;
        length = length == 0 ? 1 : length;
        reader->at = first + length;
    }
    for (uint32_t i = first; i < first + length; i++)
        STATUS_TRY(shell_push(reader->shell, buffer, word->text[i], word->line[i], reterr));
    return STATUS_OK;
}

/* Behind a redirection and what it names, in quotes or not; the cursor is at its "<" or ">". */
static enum status redirection_skip(struct reader *reader, struct error *reterr)
{
    struct shell *const shell = reader->shell;
    const struct shell_word *const word = reader->word;
    struct shell_buffer dropped = {.is_open = word->is_open};
    const char *const end = shell->end, *const start = word->text + reader->at;
    if (start[0] == '<' && start[1] == '<' && start[2] != '<') return refuse(reader, "<<", reterr);
    reader->at += (uint32_t)strspn(word->text + reader->at, "<>&|");
    reader->at += (uint32_t)strspn(word->text + reader->at, " \t");
    if (word->text[reader->at] == '(') { /* >(...) is a command of its own. */
        shell->end = word->text + word->length;
        const char *const last = shell_closing(shell, word->text + reader->at + 1, '(', ')');
        shell->end = end;
        if (last != NULL) reader->at = (uint32_t)(last + 1 - word->text);
    }
    while (reader->at < word->length && strchr(" \t\n;&|<>", word->text[reader->at]) == NULL)
        STATUS_TRY(part_read(reader, &dropped, reterr));
    return STATUS_OK;
}

/* --- Commands --- */

/* Refuses what begins a condition, a loop, a group or a function at the cursor. */
static enum status compound_refuse(const struct reader *reader, struct error *reterr)
{
    static const char *const words[] = {"if",     "for",      "while", "until", "case",
                                        "select", "function", "[[",    "{",     NULL};
    const char *const at = reader->word->text + reader->at;
    uint32_t const count = reader->text->words.count - reader->start;
    const char *const before = count == 1 ? reader->text->words.word[reader->start].text : "";
    bool const is_behind = name_same(before, "!") || name_same(before, "time");
    bool const is_first = (count == 0 || is_behind) && !reader->part.is_word;
    bool const is_name = count + reader->part.is_word == 1; /* "name()", "name ()" */
    if (at[0] == '(' && (is_first || is_name)) return refuse(reader, "(", reterr);
    for (uint32_t i = 0; is_first && words[i] != NULL; i++) {
        char const next = name_after(at, words[i]) == NULL ? 'x' : *name_after(at, words[i]);
        if (next == '\0' || strchr(" \t\n;&|()<>", next) != NULL)
            return refuse(reader, words[i], reterr);
    }
    return STATUS_OK;
}

static enum shell_truth truth_of(const struct shell_words *words, uint32_t at)
{
    static const char *const succeed[] = {"true", ":", "echo", "export", NULL};
    static const char *const tests[] = {"[", "test", NULL};
    const char *const first = words->word[at].text;
    if (name_same(first, "!") && at + 1 < words->count)
        return shell_contrary(truth_of(words, at + 1));
    if (name_same(first, "false")) return SHELL_NO;
    if (tests[name_find(first, tests)] != NULL) return SHELL_MAYBE;
    return succeed[name_find(first, succeed)] != NULL ? SHELL_YES : SHELL_LIKELY;
}

/* A command with a program that is not run, or may not be. */
static enum status drop(struct reader *reader, struct error *reterr)
{
    struct shell *const shell = reader->shell;
    const struct shell_word *const first = &reader->text->words.word[reader->start];
    reader->text->drops = true;
    if (reader->ended > 0 && !reader->text->kept)
        return settings_fail(shell->file, reader->ended, STATUS_NOT_FOUND, reterr,
                             "the text of a command ends here, before it runs a Python program");
    if (reader->ended > 0)
        return shell_say(shell, first->text, "", first->line[0],
                         "the text of a command ends before; it is left out", reterr);
    if (shell->tally.program == 0) shell->tally.program = first->line[0];
    return shell_say(shell, first->text, "", first->line[0],
                     "it stands under a condition in a text; it is left out", reterr);
}

/* `exit`, or `exec` with a program, in front of an operator. */
static enum status end_read(struct reader *reader, bool is_own, struct error *reterr)
{
    static const char *const ending[] = {"exit", "exec", NULL};
    const struct shell_words *const words = &reader->text->words;
    const struct shell_word *const first = &words->word[reader->start];
    uint32_t const found = name_find(first->text, ending);
    bool const is_bare = found == 1 && words->count == reader->start + 1;
    if (ending[found] == NULL || is_bare || is_own || reader->ended > 0) return STATUS_OK;
    bool const is_likely = reader->link == '&' && reader->before == SHELL_LIKELY;
    if (reader->place == RUNS && !is_likely) reader->ended = first->line[0];
    /* Behind "||" what is likely to succeed is taken to, as in a script. */
    bool const may = reader->place == MAY_RUN && reader->before != SHELL_LIKELY;
    return is_likely || may
               ? shell_say(reader->shell, first->text, "", first->line[0], SHELL_MAY_END, reterr)
               : STATUS_OK;
}

/* The words of a command, at its operator or at the end of the text. */
static enum status command_take(struct reader *reader, bool is_own, bool is_last,
                                struct error *reterr)
{
    static const char *const reading[] = {"echo", "printf", "cat", "[", "test", "ls", NULL};
    struct shell_words *const words = &reader->text->words;
    struct shell_words whole = {.word = NULL};
    const char *const first = words->word[reader->start].text;
    bool const has = shell_runs_program(words, reader->start);
    bool const runs = has && reading[name_find(first, reading)] == NULL;
    bool const is_dropped = runs && (reader->place != RUNS || reader->ended > 0);
    if (is_dropped) STATUS_TRY(drop(reader, reterr));
    STATUS_TRY(end_read(reader, is_own, reterr));
    if (runs && !is_dropped && is_last) return STATUS_OK; /* What follows the text is its too. */
    if (runs && !is_dropped) {
        for (uint32_t i = 0; i < words->count; i++)
            STATUS_TRY(shell_words_add(reader->shell, &whole, &words->word[i], reterr));
        STATUS_TRY(shell_command_keep(reader->shell, &whole, reterr));
        reader->text->kept = true;
    }
    if (has || !is_last) words->count = reader->start;
    return STATUS_OK;
}

/* At an operator, which the cursor passes. */
static enum status operator_read(struct reader *reader, struct error *reterr)
{
    const char *const at = reader->word->text + reader->at;
    bool const is_pair = (at[0] == '&' || at[0] == '|') && at[1] == at[0];
    bool const is_pipe = !is_pair && at[0] == '|';
    bool const is_own = is_pipe || reader->is_piped || (!is_pair && at[0] == '&');
    reader->at += is_pair || (is_pipe && at[1] == '&') ? 2 : 1;
    STATUS_TRY(shell_word_end(reader->shell, &reader->part, &reader->text->words, reterr));
    bool const is_empty = reader->text->words.count == reader->start;
    if (is_empty && !reader->redirects) return STATUS_OK; /* As behind "&&". */
    enum shell_truth truth =
        is_empty ? SHELL_LIKELY : truth_of(&reader->text->words, reader->start);
    reader->redirects = false;
    if (!is_empty) STATUS_TRY(command_take(reader, is_own, /* is_last= */ false, reterr));
    reader->is_piped = is_pipe;
    if (is_pipe) return STATUS_OK;
    if (reader->link != '\0')
        truth = shell_truth_of_both(reader->before, truth, reader->link == '&');
    reader->before = truth;
    reader->link = is_pair ? at[0] : '\0';
    bool const likely = truth == SHELL_LIKELY && reader->link == '&';
    bool const is_for = truth == (reader->link == '&' ? SHELL_YES : SHELL_NO) || likely;
    bool const is_known = truth == SHELL_YES || truth == SHELL_NO;
    reader->place = !is_pair || is_for ? RUNS : is_known ? RUNS_NOT : MAY_RUN;
    return STATUS_OK;
}

enum status shell_read_text(struct shell *shell, const struct shell_word *word,
                            struct shell_text *text, struct error *reterr)
{
    struct reader reader = {.shell = shell, .word = word, .text = text, .start = text->words.count};
    bool const is_open = word->is_open || strpbrk(word->text, "$`") != NULL;
    while (reader.at < word->length) {
        const char *const at = word->text + reader.at;
        bool const redirects = *at == '<' || *at == '>' || (*at == '&' && at[1] == '>');
        reader.part.is_open = is_open;
        if (*at == '\\' && at[1] == '\n') {
            reader.at += 2;
        } else if (*at == '#' && !reader.part.is_word) {
            reader.at += (uint32_t)strcspn(at, "\n");
        } else if (strchr(" \t", *at) != NULL || (*at == '\n' && shell->run.in_variables)) {
            STATUS_TRY(shell_word_end(shell, &reader.part, &text->words, reterr));
            reader.at++;
        } else if (redirects) {
            number_drop(&reader.part);
            STATUS_TRY(shell_word_end(shell, &reader.part, &text->words, reterr));
            STATUS_TRY(redirection_skip(&reader, reterr));
            reader.redirects = true;
        } else if (strchr(";|&\n", *at) != NULL) {
            STATUS_TRY(operator_read(&reader, reterr));
        } else {
            STATUS_TRY(compound_refuse(&reader, reterr));
            STATUS_TRY(part_read(&reader, &reader.part, reterr));
        }
    }
    STATUS_TRY(shell_word_end(shell, &reader.part, &text->words, reterr));
    return text->words.count == reader.start
               ? STATUS_OK
               : command_take(&reader, reader.is_piped, /* is_last= */ true, reterr);
}
