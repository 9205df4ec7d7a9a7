/*
 * main.c: which verb, and what every verb has in common: help, version, exit status.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sys/resource.h>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include "sim/base/letter.h"
#include "sim/base/name.h"
#include "sim/base/strbuf.h"
#include "tools/podsim/common/command.h"
#include "tools/podsim/common/output.h"
#include "tools/podsim/common/report.h"
#include "tools/podsim/common/setting_place.h"
#include "tools/podsim/common/thread.h"
#include "tools/podsim/common/version.h"

#define COMMAND(name) extern const struct command command_##name;
#include "tools/podsim/commands.def"
#undef COMMAND

static const struct command *const commands[] = {
#define COMMAND(name) &command_##name,
#include "tools/podsim/commands.def"
#undef COMMAND
};
enum {
    COMMAND_COUNT = sizeof commands / sizeof *commands,
    HELP_COLUMNS = 80, /* On a terminal and elsewhere. */
    SENTENCE_BYTES = 4096,
    STACK_BYTES = 640 * 1024, /* More than any verb takes of its thread's stack. */
};

/* Whether the place is a JSON pointer, not a file: pointers and absolute paths look alike, but
 * what concerns a file is an error of I/O or begins with the file's own name. */
static bool lies_in_input(const char *input, const struct error *error)
{
    char name[sizeof error->where];
    (void)snprintf(name, sizeof name, "%s", input);
    letters_replace(name, '?'); /* As error_set() does. */
    size_t const length = strlen(name);
    bool const names_input = length > 0 && strncmp(error->where, name, length) == 0 &&
                             (error->where[length] == ':' || error->where[length] == '\0');
    if (error->where[0] == '\0') return true;
    return error->where[0] == '/' && error->status != STATUS_IO && !names_input;
}

/* A line on standard error, broken where a terminal ends. */
static void say_wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void say_wrong(const char *format, ...)
{
    char sentence[SENTENCE_BYTES];
    struct strbuf text = {.columns = report_columns(2)};
    struct error ignored;
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    letters_replace(sentence, '?');
    strbuf_add(&text, "podsim: %s\n", sentence);
    if (output_print(&text, true, &ignored) == STATUS_NO_MEMORY)
        (void)fprintf(stderr, "podsim: %s\n", sentence); /* In one line. */
    strbuf_free(&text);
}

int command_fail(const char *input, const struct error *error)
{
    if (error->status == STATUS_INTERRUPTED) {
        say_wrong("interrupted; nothing was written");
        return EXIT_INTERRUPTED;
    }
    bool const has_input = input != NULL && lies_in_input(input, error);
    if (input != NULL && strcmp(input, "-") == 0) input = "standard input";
    say_wrong("%s%s%s%s%s", has_input ? input : "", has_input ? ": " : "", error->where,
              error->where[0] != '\0' ? ": " : "", error->message);
    return EXIT_WRONG;
}

int command_fail_scenario(const struct options *options, const char *input,
                          const struct error *error)
{
    struct error placed = *error;
    setting_place(options, &placed);
    return command_fail(input, &placed);
}

/* Help is at most 80 columns wide, on a narrower terminal as wide as that. */
static uint32_t help_columns(int descriptor)
{
    uint32_t const columns = report_columns(descriptor);
    return columns > 0 && columns < HELP_COLUMNS ? columns : HELP_COLUMNS;
}

/* A command of an example, or a further line of one, that is too wide is broken as a shell takes
 * it. Options keep their arguments, and a quoted word stays whole. */
static void add_example(const char *line, size_t length, struct strbuf *text)
{
    enum { INDENT = 6, BACKSLASH = 2 };
    for (size_t i = 0, word = 0; i < length; i += word) {
        size_t const begin = i;
        bool is_quoted = false;
        while (i < length && line[i] == ' ') i++;
        for (word = 0; i + word < length && (is_quoted || line[i + word] != ' '); word++)
            is_quoted = is_quoted != (line[i + word] == '"');
        size_t const next = i + word + 1;
        bool const is_bare = next < length && line[next] == '-' && line[next + 1] == ' ';
        bool const has_value =
            line[i] == '-' && next < length &&
            (is_bare || (line[next] != '-' && line[next] != '\\' && line[next] != '|'));
        if (has_value) word += 1 + strcspn(line + next, line[next] == '"' ? "\n" : " \n");
        size_t const needed = i - begin + word + (i + word < length ? BACKSLASH : 0);
        bool const breaks = begin > 0 && strbuf_column(text) + needed > text->columns;
        if (breaks) strbuf_add(text, " \\\n%*s", INDENT, "");
        strbuf_add_bytes(text, line + (breaks ? i : begin), word + (breaks ? 0 : i - begin));
    }
    strbuf_add(text, "\n");
}

/* Lines that begin with a blank are examples and stay as they are, but for wide commands; others
 * are sentences. */
static void add_paragraphs(const char *help, struct strbuf *text)
{
    static const char command[] = "  podsim ", further[] = "      ";
    bool in_paragraph = false;
    while (*help != '\0') {
        size_t const length = strcspn(help, "\n");
        bool const is_prose = length > 0 && *help != ' ';
        if (in_paragraph && !is_prose) strbuf_add(text, "\n");
        for (size_t i = 0; is_prose && i < length;) {
            size_t const word = strcspn(help + i, " \n");
            bool const fits = strbuf_column(text) + 1 + word <= text->columns;
            if (in_paragraph || i > 0) strbuf_add(text, fits ? " " : "\n");
            strbuf_add_bytes(text, help + i, word);
            i += word;
            while (i < length && help[i] == ' ') i++;
        }
        bool const is_command = strncmp(help, command, strlen(command)) == 0 ||
                                strncmp(help, further, strlen(further)) == 0;
        if (!is_prose && is_command) {
            add_example(help, length, text);
        } else if (!is_prose) {
            strbuf_add_bytes(text, help, length);
            strbuf_add(text, "\n");
        }
        in_paragraph = is_prose;
        help += length + (help[length] == '\n');
    }
    if (in_paragraph) strbuf_add(text, "\n");
}

/* A word of a usage that is not broken: "[--json FILE|-]...", "--machine SPEC", "FILE". */
static size_t usage_word(const char *usage)
{
    size_t length = strcspn(usage, " \n");
    if (*usage == '[') {
        uint32_t depth = 0;
        for (length = 0; usage[length] != '\0'; length++) {
            depth += usage[length] == '[';
            depth -= usage[length] == ']';
            if (depth == 0) break;
        }
        return length + strcspn(usage + length, " \n");
    }
    bool const has_value = *usage == '-' && usage[length] == ' ' && usage[length + 1] != '[' &&
                           usage[length + 1] != '-';
    if (has_value) return length + 1 + strcspn(usage + length + 1, " \n");
    return length;
}

/* The same, with the dots of "and so on" behind it. */
static size_t usage_part(const char *usage)
{
    static const char more[] = " ...";
    size_t const length = usage_word(usage);
    return length + (strncmp(usage + length, more, strlen(more)) == 0 ? strlen(more) : 0);
}

/* Each "podsim VERB" begins a line; what does not fit goes on below its parts. */
static void add_usage(const char *usage, struct strbuf *text)
{
    static const char program[] = "podsim ";
    uint32_t hang = 0;
    for (bool first = true; *usage != '\0'; first = false) {
        size_t const length = usage_part(usage);
        bool const begins = strncmp(usage, program, strlen(program)) == 0;
        bool const fits = strbuf_column(text) + 1 + length <= text->columns;
        if (begins) strbuf_add(text, first ? "" : "\n");
        if (!begins && !fits)
            strbuf_add(text, "\n%*s", hang + length <= text->columns ? (int)hang : 2, "");
        if (!begins && fits) strbuf_add(text, " ");
        strbuf_add_bytes(text, usage, length);
        if (begins) hang = (uint32_t)(strcspn(usage + length + 1, " ") + strlen(program) + 1);
        usage += length;
        while (*usage == ' ' || *usage == '\n') usage++;
    }
}

/* Returns the exit status. */
static int print_and_free(struct strbuf *text, bool to_error)
{
    struct error error;
    enum status const status = output_print(text, to_error, &error);
    strbuf_free(text);
    return status == STATUS_OK ? EXIT_DONE : command_fail(NULL, &error);
}

static int print_overview(bool to_error)
{
    struct strbuf text = {.columns = help_columns(to_error ? 2 : 1)};
    add_paragraphs(
        "podsim simulates a training step, a step of inference, or one collective, on a\n"
        "TPU pod or a GPU cluster: how long it takes, what bounds it, what is exposed.\n\n",
        &text);
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        strbuf_add(&text, "  podsim %-10s %s\n", commands[i]->name, commands[i]->summary);
    strbuf_add(&text, "\n  podsim help VERB      explains a verb, with examples\n"
                      "  podsim --version\n\n"
                      "Begin with\n\n"
                      "  podsim list scenarios\n"
                      "  podsim run llama3-70b-fsdp-tp-v5p-16x16x16\n"
                      "  podsim run llama3-8b-fsdp-v5e-16x16 --set /workload/batch_tokens=768K\n"
                      "  podsim run llama3-70b-decode-int8-v5e-4x4\n"
                      "  podsim collective --machine h100-sxm:nodes=4 --op all_reduce\n\n");
    add_paragraphs("Exit status: 0 done, 1 something given is wrong, 130 interrupted.\n", &text);
    return print_and_free(&text, to_error);
}

static int print_help(const struct command *command)
{
    struct strbuf text = {.columns = help_columns(1)};
    add_usage(command->usage, &text);
    strbuf_add(&text, "\n\n");
    add_paragraphs(command->help, &text);
    if (command->options[0].name != NULL) strbuf_add(&text, "\nOptions:\n");
    for (const struct option *option = command->options; option->name != NULL; option++) {
        char left[64];
        (void)snprintf(left, sizeof left, "%s%s%s", option->name, option->value != NULL ? " " : "",
                       option->value != NULL ? option->value : "");
        strbuf_add(&text, "  %-24s  %s\n", left, option->help);
    }
    return print_and_free(&text, false);
}

static const struct command *command_find(const char *name)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (strcmp(commands[i]->name, name) == 0) return commands[i];
    return NULL;
}

static int command_unknown(const char *name)
{
    const char *names[COMMAND_COUNT + 4] = {0};
    for (size_t i = 0; i < COMMAND_COUNT; i++) names[i] = commands[i]->name;
    names[COMMAND_COUNT] = "--help";
    names[COMMAND_COUNT + 1] = "--version";
    names[COMMAND_COUNT + 2] = "help";
    say_wrong("%.64s: unknown %s%s (see podsim --help)", name, name[0] == '-' ? "option" : "verb",
              name_offer(name, names, "; the nearest known one is ", "", "").text);
    return EXIT_WRONG;
}

static int more_given(const char *name, const char *usage)
{
    say_wrong("%s: more is given than expected; usage: %s", name, usage);
    return EXIT_WRONG;
}

/* `podsim help [VERB]` */
static int help(uint32_t count, const char *const *verb)
{
    bool const is_overview = count == 0 || strcmp(verb[0], "help") == 0;
    const struct command *command = is_overview ? NULL : command_find(verb[0]);
    if (!is_overview && command == NULL) return command_unknown(verb[0]);
    if (count > 1) return more_given("help", "podsim help [VERB]");
    return command != NULL ? print_help(command) : print_overview(false);
}

static bool asks_for_help(uint32_t count, const char *const *arguments)
{
    for (uint32_t i = 0; i < count && strcmp(arguments[i], "--") != 0; i++)
        if (strcmp(arguments[i], "--help") == 0 || strcmp(arguments[i], "-h") == 0) return true;
    return false;
}

static int command_start(const struct command *command, uint32_t count,
                         const char *const *arguments)
{
    struct error error = {0};
    static struct options options;
    if (asks_for_help(count, arguments)) return print_help(command);
    enum status status = options_read(&options, command->options, count, arguments, &error);
    if (status == STATUS_OK && (options.operand_count < command->operands_min ||
                                options.operand_count > command->operands_max)) {
        struct strbuf text = {.columns = help_columns(2)};
        strbuf_add(&text, "podsim: %s: %s than expected; usage:\n", command->name,
                   options.operand_count < command->operands_min ? "less is given"
                                                                 : "more is given");
        add_usage(command->usage, &text);
        strbuf_add(&text, "\n");
        (void)print_and_free(&text, true);
        return EXIT_WRONG;
    }
    if (status != STATUS_OK) {
        say_wrong("%s: %s", command->name, error.message);
        return EXIT_WRONG;
    }
    return command->run(&options);
}

/* glibc keeps the large blocks of an arena that was destroyed, and hands them out again zeroed by
 * hand: megabytes for each short run of a sweep. Fresh pages of the system are zero only where they
 * are touched. */
static void keep_large_blocks_apart(void)
{
#if defined(__GLIBC__)
    (void)mallopt(M_MMAP_THRESHOLD, 128 * 1024);
    (void)mallopt(M_TRIM_THRESHOLD, 16 * 1024 * 1024);
#endif
}

static void stack_touch(void)
{
    volatile char stack[STACK_BYTES];
    stack[0] = 0;
    (void)stack[0];
}

/* A stack grows as it is used, and where there is no memory for it the process ends by a signal.
 * The first thread's stack grows here, where the lack of memory can still be said. Returns false if
 * there is no memory. */
static bool stack_grow(void)
{
    void (*volatile touch)(void) = stack_touch; /* A call that is not inlined. */
    void *volatile room = malloc(STACK_BYTES);
    bool const has_room = room != NULL;
    free(room);
    if (has_room) touch();
    return has_room;
}

/* Whether the first thread's stack may not grow as far as a verb needs it (`ulimit -s`). */
static bool stack_is_limited(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur / 2 < STACK_BYTES;
}

/* The arguments of the command, and what it ended with. */
struct call {
    int argument_count;
    char **arguments;
    int exit_status;
};

static int call_run(const struct call *call)
{
    const char *const *const arguments = (const char *const *)call->arguments;
    int exit_status = EXIT_DONE;
    if (call->argument_count < 2) {
        (void)print_overview(true);
        return EXIT_WRONG;
    }
    uint32_t const count = (uint32_t)call->argument_count - 2;
    const struct command *command = command_find(arguments[1]);
    if (command != NULL)
        exit_status = command_start(command, count, arguments + 2);
    else if (strcmp(arguments[1], "--help") == 0 || strcmp(arguments[1], "-h") == 0 ||
             strcmp(arguments[1], "help") == 0)
        exit_status = help(count, arguments + 2);
    else if (strcmp(arguments[1], "--version") == 0 && count > 0)
        return more_given("--version", "podsim --version");
    else if (strcmp(arguments[1], "--version") == 0)
        (void)printf("podsim %s\n", PODSIM_VERSION);
    else
        return command_unknown(arguments[1]);

    struct error error = {0};
    if (exit_status == EXIT_DONE && output_flush(&error) != STATUS_OK)
        return command_fail(NULL, &error);
    return exit_status;
}

static void on_thread(void *owner)
{
    struct call *call = owner;
    call->exit_status = call_run(call);
}

/* Returns false if no thread can be started. */
static bool call_on_thread(struct call *call)
{
    uv_thread_t thread;
    if (!thread_start(&thread, on_thread, call)) return false;
    int const code = uv_thread_join(&thread);
    SIM_ASSERT(code == 0);
    return true;
}

int main(int argument_count, char **arguments)
{
    struct call call = {argument_count, arguments, EXIT_DONE};
    output_prepare();
    keep_large_blocks_apart();
    bool const is_limited = stack_is_limited();
    if (is_limited ? !call_on_thread(&call) : !stack_grow()) {
        say_wrong(is_limited ? THREAD_NONE : "there is no memory for the stack");
        return EXIT_WRONG;
    }
    if (!is_limited) on_thread(&call);
    return call.exit_status;
}
